//! The block of a configuration that a line belongs to: a pair of braces, or a mapping of YAML.
//!
//! Rules that judge one setting by its neighbours search this text. It has no comments, no empty
//! lines and no indentation, and its lines end with `\n`, so that the layout of a file does not
//! affect results.

use super::MARK;
use super::language::Languages;
use super::lexer::Readings;
use std::collections::HashMap;
use std::ops::Range;

/// Braces and lines of YAML that are nested deeper than this belong to the block at this depth.
/// Each level is searched separately, so the work on a file is at most this many times its length.
/// on a file is at most this many times its length.
const DEPTH: usize = 32;
/// Bytes of the text that names a pair of braces, at most.
const NAME: usize = 256;

/// The text of a file without comments and layout, and its blocks.
#[derive(Debug)]
pub(super) struct Outline {
    text: Vec<u8>,
    lines: Vec<OutlineLine>,
    /// YAML: the lines between documents.
    marks: Vec<usize>,
    /// The kept parts of the file, in order: their offsets in the file and in `text`.
    pieces: Vec<(usize, usize)>,
    blocks: Blocks,
    /// Results by rule and block.
    answers: HashMap<(u16, usize, usize), bool>,
}

/// A line of the outline: its offset, and the column of its first byte in the file.
#[derive(Clone, Copy, Debug)]
struct OutlineLine {
    start: usize,
    indent: usize,
}

#[derive(Debug)]
enum Blocks {
    Braces(Vec<Braces>),
    Yaml(Vec<IndentedLine>),
}

/// A pair of braces, in bytes of the outline's text.
#[derive(Clone, Debug)]
struct Braces {
    /// The text that names it, such as `location /files` or the key of the list that it is an item
    /// of.
    name: Range<usize>,
    open: usize,
    /// Offset after the closing brace.
    close: usize,
    parent: Option<usize>,
}

/// A line of YAML in the tree of indentation.
#[derive(Clone, Copy, Debug)]
struct IndentedLine {
    /// Twice the column, plus one for an item of a list, because its parent may be in the same
    /// column.
    depth: usize,
    /// The line above with less depth.
    parent: Option<usize>,
    /// The number of lines above it in the tree.
    level: usize,
    /// The first line below that is not deeper.
    end: usize,
}

/// A block: its lines or braces, and the line that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedBlock {
    header: Range<usize>,
    body: Range<usize>,
}

impl Outline {
    /// Reads a text. `languages`: languages of the rule, which determine comments. `of_file`:
    /// languages of the file.
    pub(super) fn new(
        text: &[u8],
        readings: &mut Readings<'_>,
        languages: Languages,
        of_file: Languages,
    ) -> Self {
        let mut out = Self {
            text: Vec::with_capacity(text.len()),
            lines: Vec::new(),
            marks: Vec::new(),
            pieces: Vec::new(),
            blocks: Blocks::Yaml(Vec::new()),
            answers: HashMap::new(),
        };
        let is_yaml = of_file.any_of(&["yaml"]);
        let mut braces = Stack::default();
        let mut start = if text.starts_with(MARK) {
            MARK.len()
        } else {
            0
        };
        while start < text.len() {
            let end =
                memchr::memchr2(b'\n', b'\r', &text[start..]).map_or(text.len(), |i| start + i);
            out.line(text, start..end, readings, languages, &mut braces);
            start = end + 1;
        }
        out.blocks = if is_yaml {
            Blocks::Yaml(out.nodes())
        } else {
            Blocks::Braces(braces.finish(out.text.len()))
        };
        out
    }

    /// Adds a line of the file without comments and blanks at its ends.
    fn line(
        &mut self,
        text: &[u8],
        line: Range<usize>,
        readings: &mut Readings<'_>,
        languages: Languages,
        braces: &mut Stack,
    ) {
        let blanks = text[line.clone()]
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        let at = self.text.len();
        let mut in_piece = false;
        let mut is_quoted = None;
        for i in line.start + blanks..line.end {
            if readings.is_comment(languages, i) {
                in_piece = false;
                continue;
            }
            if languages.is_empty() && opens_comment(text, &line, i, is_quoted) {
                break;
            }
            if !in_piece {
                if self.text.len() > at {
                    self.text.push(b' ');
                } else if text[i].is_ascii_whitespace() {
                    continue;
                }
                self.pieces.push((i, self.text.len()));
                in_piece = true;
            }
            match (text[i], is_quoted) {
                (quote @ (b'"' | b'\''), None) => is_quoted = Some(quote),
                (quote, Some(open)) if quote == open => is_quoted = None,
                (brace @ (b'{' | b'}'), _) if readings.is_code(languages, i) => {
                    braces.take(brace, &self.text);
                }
                _ => {}
            }
            self.text.push(text[i]);
        }
        let kept = self.text[at..].trim_ascii_end().len();
        self.text.truncate(at + kept);
        if kept > 0 {
            self.lines.push(OutlineLine {
                start: at,
                indent: blanks,
            });
            self.text.push(b'\n');
        }
    }

    /// Returns the tree of lines by indentation. `---` and `...` end a document.
    fn nodes(&mut self) -> Vec<IndentedLine> {
        let mut nodes: Vec<IndentedLine> = Vec::with_capacity(self.lines.len());
        let mut open: Vec<usize> = Vec::new();
        for (i, line) in self.lines.iter().enumerate() {
            let text = &self.text[line.start..];
            let is_mark =
                line.indent == 0 && (text.starts_with(b"---") || text.starts_with(b"..."));
            self.marks.extend(is_mark.then_some(i));
            let depth = 2 * line.indent + usize::from(dash(text) > 0);
            while let Some(last) = open.pop_if(|last| is_mark || nodes[*last].depth >= depth) {
                nodes[last].end = i;
            }
            nodes.push(IndentedLine {
                depth,
                parent: open.last().copied(),
                level: open.len(),
                end: self.lines.len(),
            });
            open.push(i);
        }
        nodes
    }

    /// Returns true if the block around a byte of the file fits. The result is computed once for
    /// each block.
    pub(super) fn fits(&mut self, rule: u16, at: usize, fits: impl FnOnce(&[u8]) -> bool) -> bool {
        let at = self.place_of(at);
        let section = self.section(at);
        let key = (rule, section.body.start, section.body.end);
        if let Some(known) = self.answers.get(&key) {
            return *known;
        }
        let mut text = self.text[section.header].to_vec();
        text.extend(
            text.last()
                .filter(|b| !b.is_ascii_whitespace())
                .map(|_| b' '),
        );
        text.extend_from_slice(&self.text[section.body]);
        let answer = fits(&text);
        self.answers.insert(key, answer);
        answer
    }

    /// Returns the offset of a byte of the file in the outline's text.
    fn place_of(&self, at: usize) -> usize {
        let i = self.pieces.partition_point(|(origin, _)| *origin <= at);
        let Some((origin, start)) = i.checked_sub(1).and_then(|i| self.pieces.get(i)) else {
            return 0;
        };
        let next = self
            .pieces
            .get(i)
            .map_or(self.text.len(), |(_, start)| *start);
        (start + (at - origin)).min(next.saturating_sub(1))
    }

    /// Returns the text that names a pair of braces. The content of a `dynamic` block of Terraform
    /// has the name of that block.
    fn name_of(&self, all: &[Braces], i: usize) -> Range<usize> {
        let outer = all[i]
            .parent
            .filter(|_| self.text[all[i].name.clone()].trim_ascii() == b"content");
        all[outer.unwrap_or(i)].name.clone()
    }

    /// Returns the block that a byte of the outline's text belongs to.
    fn section(&self, at: usize) -> NamedBlock {
        match &self.blocks {
            Blocks::Braces(all) => self.braces(all, at),
            Blocks::Yaml(nodes) => self.mapping(nodes, at),
        }
    }

    /// Returns the innermost braces around a byte, or the whole text.
    fn braces(&self, all: &[Braces], at: usize) -> NamedBlock {
        let mut next = all.partition_point(|b| b.open <= at).checked_sub(1);
        while let Some(i) = next {
            if at < all[i].close {
                return NamedBlock {
                    header: self.name_of(all, i),
                    body: all[i].open..all[i].close,
                };
            }
            next = all[i].parent;
        }
        NamedBlock {
            header: 0..0,
            body: 0..self.text.len(),
        }
    }

    fn line_of(&self, at: usize) -> usize {
        self.lines
            .partition_point(|l| l.start <= at)
            .saturating_sub(1)
    }

    /// Returns the mapping of YAML that a line belongs to, or the item of a list, and the line that
    /// names it.
    fn mapping(&self, nodes: &[IndentedLine], at: usize) -> NamedBlock {
        let mut line = self.line_of(at);
        while let Some(node) = nodes.get(line).filter(|node| node.level > DEPTH) {
            line = node.parent.unwrap_or_default();
        }
        let Some(node) = nodes.get(line) else {
            return NamedBlock {
                header: 0..0,
                body: 0..self.text.len(),
            };
        };
        let is_item = node.depth % 2 == 1;
        let item = if is_item {
            Some(line)
        } else {
            node.parent.filter(|p| nodes[*p].depth % 2 == 1)
        };
        // The first key of an item is on the line of its dash.
        let item = item.filter(|i| *i == line || self.content(*i) == self.lines[line].indent);
        let (parent, lines) = match (item, node.parent) {
            (Some(item), _) => (nodes[item].parent, item..nodes[item].end),
            (None, Some(parent)) => (Some(parent), parent + 1..self.end_of(nodes, parent)),
            (None, None) => (None, self.document(line)),
        };
        let header = parent.map_or(0..0, |p| self.text_of(&(p..p + 1)));
        NamedBlock {
            header,
            body: self.text_of(&lines),
        }
    }

    /// Returns the line after the mapping that a line names. The first key of an item names only
    /// lines that are deeper than the keys of the item.
    fn end_of(&self, nodes: &[IndentedLine], parent: usize) -> usize {
        let IndentedLine { depth, end, .. } = nodes[parent];
        let keys = if depth % 2 == 1 {
            self.content(parent)
        } else {
            0
        };
        (parent + 1..end)
            .find(|line| self.lines[*line].indent <= keys && keys > 0)
            .unwrap_or(end)
    }

    /// Returns the column of the content after the dash of an item.
    fn content(&self, line: usize) -> usize {
        self.lines[line].indent + dash(&self.text[self.lines[line].start..])
    }

    /// Returns the lines of the document that a line at the top belongs to.
    fn document(&self, line: usize) -> Range<usize> {
        let next = self.marks.partition_point(|mark| *mark <= line);
        let start = next
            .checked_sub(1)
            .and_then(|i| self.marks.get(i))
            .copied()
            .unwrap_or(0);
        start..self.marks.get(next).copied().unwrap_or(self.lines.len())
    }

    fn text_of(&self, lines: &Range<usize>) -> Range<usize> {
        self.start_of_line(lines.start)..self.start_of_line(lines.end)
    }

    /// Returns the offset of a line, or the end of the text after the last one.
    fn start_of_line(&self, line: usize) -> usize {
        self.lines.get(line).map_or(self.text.len(), |l| l.start)
    }
}

/// Returns the bytes before the content of a list item: the dash and its blanks; 0 for other lines.
fn dash(line: &[u8]) -> usize {
    match line {
        [b'-', b' ' | b'\t', ..] => {
            1 + line[1..]
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count()
        }
        [b'-'] | [b'-', b'\n', ..] => 2,
        _ => 0,
    }
}

/// Returns true for a `#` outside of quotes that starts a word: a comment in files of unknown
/// language.
fn opens_comment(text: &[u8], line: &Range<usize>, at: usize, is_quoted: Option<u8>) -> bool {
    text[at] == b'#'
        && is_quoted.is_none()
        && (at == line.start || text[at - 1].is_ascii_whitespace())
}

/// The open braces while a text is read.
#[derive(Debug, Default)]
struct Stack {
    all: Vec<Braces>,
    open: Vec<usize>,
    /// Number of open braces deeper than [`DEPTH`].
    deeper: usize,
    /// The pair that was closed most recently.
    closed: Option<usize>,
}

impl Stack {
    /// Handles a brace after the text that was read so far.
    fn take(&mut self, brace: u8, text: &[u8]) {
        let at = text.len();
        match brace {
            b'{' if self.open.len() >= DEPTH => self.deeper += 1,
            b'{' => {
                let braces = Braces {
                    name: self.name(text),
                    open: at,
                    close: usize::MAX,
                    parent: self.open.last().copied(),
                };
                self.open.push(self.all.len());
                self.all.push(braces);
            }
            _ if self.deeper > 0 => self.deeper -= 1,
            _ => {
                if let Some(last) = self.open.pop() {
                    self.all[last].close = at + 1;
                    self.closed = Some(last);
                }
            }
        }
    }

    /// Returns the text that names a pair which opens after `text`. Items of a list have the name
    /// of the list.
    fn name(&self, text: &[u8]) -> Range<usize> {
        let openers = text
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_whitespace() || matches!(b, b'[' | b'('));
        let mut end = text.len() - openers.count();
        if let Some(before) = text[..end].strip_suffix(b",") {
            let before = before.trim_ascii_end();
            let sibling = self
                .closed
                .map(|i| &self.all[i])
                .filter(|b| b.close == before.len());
            if let Some(sibling) = sibling {
                return sibling.name.clone();
            }
            end = before.len();
        }
        let from = end.saturating_sub(NAME);
        let before = text[from..end]
            .iter()
            .rposition(|b| matches!(b, b'\n' | b';' | b'{' | b'}'));
        let start = before.map_or(from, |i| from + i + 1);
        let blanks = text[start..end]
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        start + blanks..end.max(start + blanks)
    }

    /// Returns all pairs. A pair without an end reaches the end of the text.
    fn finish(mut self, length: usize) -> Vec<Braces> {
        for last in self.open {
            self.all[last].close = length;
        }
        self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the block around the first `HERE` of a file.
    fn block(path: &str, text: &str) -> String {
        let of_file = Languages::of(path.as_bytes(), b"");
        let mut readings = Readings::new(text.as_bytes(), of_file, true);
        let mut outline = Outline::new(text.as_bytes(), &mut readings, of_file, of_file);
        let mut out = Vec::new();
        outline.fits(0, text.find("HERE").unwrap(), |text| {
            out = text.to_vec();
            true
        });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn hid_01_to_10_layout_and_comments_are_not_part_of_a_block_in_braces() {
        let expected = "ingress {\nfrom_port = 22\ncidr = \"HERE\"\n}";
        for text in [
            "ingress {\n  from_port = 22\n  cidr = \"HERE\"\n}\negress {\n}\n".to_owned(),
            "egress {\r}\ringress {\r  from_port = 22 # {\r\r  cidr = \"HERE\"\r}\r".to_owned(),
            format!(
                "ingress {{{0}\n{0}from_port = 22{0}\n# }}\n{0}cidr = \"HERE\" # {0}\n}}\n",
                " ".repeat(20_000)
            ),
            "ingress { # } egress\n /* } */ from_port = 22\n/*\n}\n*/\ncidr = \"HERE\"\n}"
                .to_owned(),
        ] {
            assert_eq!(block("a.tf", &text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_line_above_names_a_block_whose_brace_stands_alone() {
        assert_eq!(
            block("a.json", "{\n\"Egress\": [\n{ \"a\": \"HERE\" }\n]\n}"),
            "\"Egress\": { \"a\": \"HERE\" }"
        );
        let line = r#"{"x": {"b": 1}, "a": "HERE", "y": "}"}"#;
        assert_eq!(block("a.json", line), line);
        let list = "egress = [\n{ a = 1 }, { a = 2 },\n  {\n a = HERE }]\n";
        assert_eq!(block("a.tf", list), "egress = {\na = HERE }");
        let dynamic = "dynamic \"egress\" {\n  for_each = a\n  content {\n    b = HERE\n  }\n}";
        assert_eq!(block("a.tf", dynamic), "dynamic \"egress\" {\nb = HERE\n}");
        assert_eq!(
            block("a.conf", "server { location /a { alias HERE; } }"),
            "location /a { alias HERE; }"
        );
        assert_eq!(block("a.tf", "a = HERE\n"), "a = HERE\n");
        assert_eq!(block("a.tf", "x {\na = HERE\n"), "x {\na = HERE\n");
    }

    #[test]
    fn a_mapping_of_yaml_ends_where_its_indentation_ends() {
        let item = "In:\n- Proto: tcp\nPort: 22\nIp: HERE\nMore:\n- x\n";
        for text in [
            "R:\n  In:\n    - Proto: udp\n      Ip: a\n    # x\n    - Proto: tcp\n      Port: 22 # y\n      Ip: HERE\n      \
             More:\n        - x\n    - Proto: z\n  Out:\n",
            "R:\n  In:\n  - Proto: udp\n    Ip: a\n\n  -   Proto: tcp\n      Port: 22\n\n      Ip: HERE\n      More:\n      - x\n",
        ] {
            assert_eq!(block("a.yaml", text).replace("-   ", "- "), item, "{text}");
        }
        assert_eq!(
            block("a.yaml", "add:\n- HERE\n- b\ndrop:\n- c\n"),
            "add:\n- HERE\n"
        );
        assert_eq!(
            block("a.yaml", "hostPath:\n  type: x\n  path: HERE\nb: 1\n"),
            "hostPath:\ntype: x\npath: HERE\n"
        );
        assert_eq!(
            block(
                "a.yaml",
                "l:\n  - a:\n      b: HERE\n    c: 1\n    d:\n      e: 2\n"
            ),
            "- a:\nb: HERE\n"
        );
        assert_eq!(
            block("a.yaml", "l:\n- a:\n    - x\n    - HERE\n  c: 1\n"),
            "- a:\n- HERE\n"
        );
        assert_eq!(
            block("a.yaml", "l:\n- c: 1\n  a:\n    b: HERE\n"),
            "a:\nb: HERE\n"
        );
        assert_eq!(
            block("a.yaml", "a: 1\n---\nb:\n  c: 1\nd: HERE\n---\ne: 1\n"),
            "---\nb:\nc: 1\nd: HERE\n"
        );
    }

    #[test]
    fn braces_nested_deeper_than_the_limit_belong_to_the_block_above() {
        let text = format!("{}HERE{}", "{ ".repeat(DEPTH + 3), "} ".repeat(DEPTH + 3));
        let found = block("a.tf", &text);
        assert!(
            found.matches('{').count() >= 4 && found.contains("HERE"),
            "{found}"
        );
    }
}
