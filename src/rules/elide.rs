//! Omits the insides of unchanged functions and types from the syntax tree, because no match with a
//! changed line can depend on them.
//!
//! Parsing takes most of the time of a small review, and most of a large file is unchanged. The
//! omitted parts are the insides of braces, or the statements after the first one in a definition
//! of Python, so that the rest remains correct code. Of consecutive definitions at the top of a
//! file, only the first remains: from its opening brace to the closing brace of the last.

mod name_graph;
mod reach;

pub(super) use name_graph::{NameGraph, is_name, words};
pub(super) use reach::reaching;

use super::language::Languages;
use super::{lexer, parse};
use std::ops::Range;

/// Languages whose definitions have braces.
const BRACES: &[&str] = &[
    "javascript",
    "typescript",
    "go",
    "java",
    "kotlin",
    "php",
    "rust",
    "c",
    "cpp",
    "csharp",
];
/// Bytes of an omitted part, at least, because omitting a shorter one saves too little.
const SHORTEST: usize = 200;
/// A smaller file is parsed as a whole, because finding its definitions costs too much.
const SMALL: usize = 600;
/// Words that continue a statement after its closing brace.
const CONTINUATIONS: &[&[u8]] = &[b"catch", b"finally", b"else", b"while", b"until"];

/// Returns the parts of a file to parse, in order. `changed`: ranges of bytes in order. `None`:
/// parse the whole file, because only little can be omitted or its structure is unclear.
pub(super) fn kept(
    languages: Languages,
    text: &[u8],
    changed: &[Range<usize>],
) -> Option<Vec<Range<usize>>> {
    let is_large =
        text.len() >= SMALL && changed.iter().map(Range::len).sum::<usize>() * 2 < text.len();
    let is_known = languages.any_of(&["python"]) || languages.any_of(BRACES);
    if !(is_large && is_known && parse::is_bounded(text)) {
        return None;
    }
    let code = ElidableCode {
        text,
        other: lexer::not_code(languages, text),
        changed,
    };
    let left_out = if languages.any_of(&["python"]) {
        code.definitions()
    } else {
        code.blocks()?
    };
    let size: usize = left_out.iter().map(Range::len).sum();
    (size * 4 > text.len()).then(|| complement(&left_out, text.len()))
}

/// Returns the gaps between some ranges, which are in order.
pub(super) fn complement(ranges: &[Range<usize>], length: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|r| r.end));
    let ends = ranges
        .iter()
        .map(|r| r.start)
        .chain(std::iter::once(length));
    starts
        .zip(ends)
        .map(|(start, end)| start..end)
        .filter(|r| !r.is_empty())
        .collect()
}

struct ElidableCode<'t> {
    text: &'t [u8],
    /// Comments and strings, in order.
    other: Vec<Range<usize>>,
    changed: &'t [Range<usize>],
}

/// A line of Python that starts a statement.
#[derive(Clone, Copy, Debug)]
struct Statement {
    start: usize,
    indent: usize,
}

impl ElidableCode<'_> {
    /// Returns true if a change touches a range.
    fn is_changed(&self, range: &Range<usize>) -> bool {
        let first = self.changed.partition_point(|c| c.end < range.start);
        self.changed
            .get(first)
            .is_some_and(|c| c.start <= range.end)
    }

    fn is_code(&self, at: usize) -> bool {
        let i = self.other.partition_point(|r| r.end <= at);
        self.other.get(i).is_none_or(|r| at < r.start)
    }

    /// Returns the parts of the text that are code, in order.
    fn parts(&self) -> Vec<Range<usize>> {
        complement(&self.other, self.text.len())
    }

    /// Returns the insides of the outermost unchanged braces; `None` if the braces do not match.
    fn blocks(&self) -> Option<Vec<Range<usize>>> {
        let mut open = Vec::new();
        let mut out: Vec<Range<usize>> = Vec::new();
        for part in self.parts() {
            let braces =
                memchr::memchr2_iter(b'{', b'}', &self.text[part.clone()]).map(|i| part.start + i);
            for at in braces {
                if self.text[at] == b'{' {
                    open.push(at);
                    continue;
                }
                let inside = open.pop()? + 1..at;
                if self.is_changed(&inside) || self.is_in_string(inside.start - 1) {
                    continue;
                }
                out.truncate(out.partition_point(|r| r.start < inside.start));
                match out
                    .last_mut()
                    .filter(|last| open.is_empty() && self.are_neighbours(last, &inside))
                {
                    Some(last) => last.end = inside.end,
                    None => out.push(inside),
                }
            }
            // The text of a template continues with the brace that closes its code.
            if self.text.get(part.end) == Some(&b'}') {
                open.pop()?;
            }
        }
        out.retain(|inside| inside.len() >= SHORTEST);
        open.is_empty().then_some(out)
    }

    /// Returns true if two insides of braces at the top of the file belong to different statements,
    /// and nothing between them is changed.
    fn are_neighbours(&self, first: &Range<usize>, second: &Range<usize>) -> bool {
        let between = &self.text[first.end + 1..second.start - 1];
        let line = memchr::memchr(b'\n', between).unwrap_or(between.len());
        let is_end = between[..line]
            .iter()
            .all(|b| b.is_ascii_whitespace() || matches!(b, b';' | b')' | b','));
        let next = between[line..].trim_ascii_start();
        is_end
            && line < between.len()
            && !CONTINUATIONS.iter().any(|word| next.starts_with(word))
            && self.is_at_top(first.start - 1)
            && !self.is_changed(&(first.end..second.start))
    }

    /// Returns true if the line of a brace is not indented.
    fn is_at_top(&self, brace: usize) -> bool {
        let start = memchr::memrchr(b'\n', &self.text[..brace]).map_or(0, |i| i + 1);
        !self.text[start].is_ascii_whitespace()
    }

    /// Returns true if a brace opens code inside of a string, which may not be empty.
    fn is_in_string(&self, brace: usize) -> bool {
        brace
            .checked_sub(1)
            .is_some_and(|before| self.text[before] == b'$' || !self.is_code(before))
    }

    /// Returns the statements after the first one in unchanged definitions of Python.
    fn definitions(&self) -> Vec<Range<usize>> {
        let statements = self.statements();
        let mut out = Vec::new();
        let mut i = 0;
        while let Some(statement) = statements.get(i) {
            let count = statements[i + 1..]
                .iter()
                .take_while(|s| s.indent > statement.indent)
                .count();
            let end = statements
                .get(i + 1 + count)
                .map_or(self.text.len(), |s| s.start);
            let is_unchanged =
                self.is_definition(statement.start) && !self.is_changed(&(statement.start..end));
            if !is_unchanged || count == 0 {
                i += 1;
                continue;
            }
            let body = &statements[i + 1..i + 1 + count];
            i += 1 + count;
            let Some(second) = body.iter().skip(1).find(|s| s.indent <= body[0].indent) else {
                continue;
            };
            let mut left_out = second.start..end;
            if statement.indent == 0 {
                let more = self.definitions_from(&statements[i..]);
                left_out.end = statements
                    .get(i + more)
                    .map_or(self.text.len(), |s| s.start);
                i += more;
            }
            out.extend(Some(left_out).filter(|r| r.len() >= SHORTEST));
        }
        out
    }

    /// Returns the number of statements that are unchanged definitions at the top of the file, with
    /// their decorators and bodies.
    fn definitions_from(&self, statements: &[Statement]) -> usize {
        let mut taken = 0;
        loop {
            let rest = statements[taken..].iter();
            let head = taken
                + rest
                    .take_while(|s| s.indent == 0 && self.text[s.start] == b'@')
                    .count();
            let Some(definition) = statements
                .get(head)
                .filter(|s| s.indent == 0 && self.is_definition(s.start))
            else {
                return taken;
            };
            let inner = statements[head + 1..]
                .iter()
                .take_while(|s| s.indent > 0)
                .count();
            let end = statements
                .get(head + 1 + inner)
                .map_or(self.text.len(), |s| s.start);
            let start = statements.get(taken).map_or(definition.start, |s| s.start);
            if self.is_changed(&(start..end)) {
                return taken;
            }
            taken = head + 1 + inner;
        }
    }

    fn is_definition(&self, start: usize) -> bool {
        let line = self.text[start..].trim_ascii_start();
        [&b"def "[..], b"class ", b"async def "]
            .iter()
            .any(|word| line.starts_with(word))
    }

    /// Returns the lines of Python that start a statement: outside of brackets and strings, neither
    /// blank nor comments.
    fn statements(&self) -> Vec<Statement> {
        let mut out = Vec::new();
        let (mut depth, mut is_continued) = (0usize, false);
        for line in lines(self.text) {
            let indent = self.text[line.clone()]
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count();
            let first = line.start + indent;
            let is_blank = self.text[first..line.end].trim_ascii().is_empty();
            let is_comment = !is_blank && !self.is_code(first) && self.text[first] == b'#';
            if depth == 0
                && !is_continued
                && !is_blank
                && !is_comment
                && !self.is_inside(line.start)
            {
                out.push(Statement {
                    start: line.start,
                    indent,
                });
            }
            for at in line
                .clone()
                .filter(|at| matches!(self.text[*at], b'(' | b')' | b'[' | b']' | b'{' | b'}'))
            {
                match self.text[at] {
                    _ if !self.is_code(at) => {}
                    b'(' | b'[' | b'{' => depth += 1,
                    _ => depth = depth.saturating_sub(1),
                }
            }
            let end = line.start + self.text[line.clone()].trim_ascii_end().len();
            is_continued = end > line.start && self.text[end - 1] == b'\\' && self.is_code(end - 1);
        }
        out
    }

    /// Returns true if a string that starts before a byte continues there.
    fn is_inside(&self, at: usize) -> bool {
        let i = self.other.partition_point(|r| r.end <= at);
        self.other.get(i).is_some_and(|r| r.start < at)
    }
}

/// Returns the lines of a text, with their line ends.
fn lines(text: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    std::iter::from_fn(move || {
        let from = start;
        (from < text.len()).then(|| {
            start = memchr::memchr(b'\n', &text[from..]).map_or(text.len(), |i| from + i + 1);
            from..start
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parsed parts of a file whose line with `HERE` is changed.
    fn parsed(path: &str, text: &str) -> Option<String> {
        let at = text.find("HERE").unwrap();
        let ranges = kept(
            Languages::of(path.as_bytes(), b""),
            text.as_bytes(),
            std::slice::from_ref(&(at..at + 4)),
        )?;
        Some(ranges.into_iter().map(|r| &text[r]).collect())
    }

    #[test]
    fn the_inside_of_unchanged_braces_is_left_out() {
        let long = "x; ".repeat(100);
        let text = format!(
            "function a(b) {{ {long} }}\nclass C {{\n d() {{ {long} }}\n e() {{ if (HERE) {{ }} }}\n}}\n"
        );
        let rest = "function a(b) {}\nclass C {\n d() {}\n e() { if (HERE) { } }\n}\n";
        assert_eq!(parsed("a.js", &text).unwrap(), rest);
        // Of consecutive definitions at the top, one remains.
        let three = format!(
            "function a() {{ {long} }}\n\n// c\nfunction b() {{ {long} }}\nx = {{ {long} }};\nHERE()\n"
        );
        assert_eq!(
            parsed("a.js", &three).unwrap(),
            "function a() {};\nHERE()\n"
        );
        let tried = format!("try {{ {long} }}\ncatch (e) {{ {long} }}\nHERE()\n");
        assert_eq!(
            parsed("a.js", &tried).unwrap(),
            "try {}\ncatch (e) {}\nHERE()\n"
        );
        // Braces in strings and comments are not counted.
        let text = text.replace("x; x;", "'}'; /* } */ x; ");
        assert_eq!(parsed("a.js", &text).unwrap(), rest);
        assert_eq!(parsed("a.js", &format!("{text}}}")), None);
        // An empty `${}` is not code.
        let text = format!("f(`${{ {long} }}`);\nfunction a() {{ {long} }}\nHERE");
        assert_eq!(
            parsed("a.js", &text).unwrap(),
            format!("f(`${{ {long} }}`);\nfunction a() {{}}\nHERE")
        );
    }

    #[test]
    fn unchanged_definitions_of_python_keep_their_first_statement() {
        let long = "        x = f('''\na = 1\n''', [\n1])\n".repeat(20);
        let text = format!(
            "import os\n\nclass A:\n    y = 1\n    @p\n    def b(self):\n        '''\ntext\n'''\n{long}    def c(self):\n        HERE\n\
             {long}\ndef d():\n    if a:\n        b()\n{long}"
        );
        // The second definition is a compound statement, which remains whole.
        let rest = format!(
            "import os\n\nclass A:\n    y = 1\n    @p\n    def b(self):\n        '''\ntext\n'''\n    def c(self):\n        HERE\n\
             {long}\ndef d():\n    if a:\n        b()\n{long}"
        );
        assert_eq!(parsed("a.py", &text).unwrap(), rest);
        // Of consecutive definitions at the top, one remains.
        let def = format!("def d():\n    a()\n{}", "    b()\n".repeat(60));
        let text = format!("{def}\n{def}@p\n{def}@q\ndef c():\n    HERE\n");
        assert_eq!(
            parsed("a.py", &text).unwrap(),
            "def d():\n    a()\n@q\ndef c():\n    HERE\n"
        );
    }

    #[test]
    fn other_languages_and_small_parts_are_parsed_as_a_whole() {
        let long = "x; ".repeat(100);
        assert_eq!(parsed("a.rb", &format!("def a\n{long}\nend\nHERE")), None);
        assert_eq!(parsed("a.go", "func a() {\n}\n// HERE\n"), None);
        assert_eq!(
            parsed("a.go", &format!("func a() {{\n{long} HERE}}\n")),
            None
        );
    }
}
