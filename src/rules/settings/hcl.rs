//! A reader of HCL: the blocks of a Terraform file, their settings, and which values are literals.
//!
//! It reads no expressions. What it does not understand is a value that is not known, and a block
//! without its end is not complete, so that nothing is concluded from what it lacks. The work is
//! linear in the length of the text.

/// Blocks and objects that are nested deeper than this are values that are not known.
const DEPTH: usize = 16;

/// A block, or an object that is the value of a setting.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Block<'t> {
    pub(super) name: &'t str,
    /// The quoted words after the name, such as the type and the name of a resource.
    pub(super) labels: Vec<&'t str>,
    /// Number of the line with the name, from 1.
    pub(super) line: u32,
    pub(super) parts: Vec<Part<'t>>,
    /// False if the text ends before the block does.
    pub(super) is_complete: bool,
}

/// A part of a block.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Setting(Setting<'t>),
    Block(Block<'t>),
}

/// A setting with its value.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting<'t> {
    pub(super) name: &'t str,
    pub(super) line: u32,
    /// The literal, or the literals of a list. Empty: an expression.
    pub(super) literals: Vec<Literal<'t>>,
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Literal<'t> {
    /// The word or the number, or the string without its quotes.
    pub(super) text: &'t str,
    pub(super) line: u32,
}

/// Returns the blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    // Editors on Windows start a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader {
        text,
        at: 0,
        line: 1,
    };
    let mut root = Block::default();
    // A brace too many does not end the file.
    while reader.at < text.len() {
        reader.parts(&mut root, 0);
    }
    let blocks = root.parts.into_iter().filter_map(as_block);
    blocks.collect()
}

fn as_block(part: Part<'_>) -> Option<Block<'_>> {
    match part {
        Part::Block(block) => Some(block),
        Part::Setting(_) => None,
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// Number of the line at `at`.
    line: u32,
}

impl<'t> Reader<'t> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves ahead, and counts the lines that are left behind.
    fn skip(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        let passed = &self.text.as_bytes()[self.at..end];
        let lines = memchr::memchr_iter(b'\n', passed).count();
        self.line += u32::try_from(lines).unwrap_or(u32::MAX);
        self.at = end;
    }

    /// Returns the length of the comment at the position, without the end of its line.
    fn comment(&self) -> Option<usize> {
        let rest = self.rest();
        if rest.starts_with('#') || rest.starts_with("//") {
            return Some(memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len()));
        }
        let body = rest.strip_prefix("/*")?;
        Some(body.find("*/").map_or(rest.len(), |end| end + 4))
    }

    /// Skips blanks and comments, and the ends of lines if `over_lines`.
    fn blanks(&mut self, over_lines: bool) {
        loop {
            match self.byte() {
                Some(b'\n') if !over_lines => return,
                Some(b) if b.is_ascii_whitespace() => self.skip(1),
                Some(b'#' | b'/') => match self.comment() {
                    Some(length) => self.skip(length),
                    None => return,
                },
                _ => return,
            }
        }
    }

    /// Reads parts of a block up to its closing brace or the end of the text.
    fn parts(&mut self, block: &mut Block<'t>, depth: usize) {
        loop {
            self.blanks(true);
            match self.byte() {
                None => return,
                Some(b'}') => {
                    self.skip(1);
                    block.is_complete = true;
                    return;
                }
                Some(b) if is_word(b) || b == b'"' => self.part(block, depth),
                Some(_) => self.other(),
            }
        }
    }

    /// Skips what is not the name of a part: a byte, or brackets with what is in them.
    fn other(&mut self) {
        match self.byte() {
            Some(b'[' | b'(' | b'{') => self.value(false),
            _ => self.skip(self.rest().chars().next().map_or(1, char::len_utf8)),
        }
    }

    fn part(&mut self, block: &mut Block<'t>, depth: usize) {
        let line = self.line;
        let Some(name) = self.name() else {
            return;
        };
        let mut labels = Vec::new();
        loop {
            self.blanks(false);
            match self.byte() {
                Some(b'=' | b':') => {
                    self.skip(1);
                    return self.setting(block, (name, line), depth);
                }
                Some(b'{') => {
                    let mut inner = Block {
                        name,
                        labels,
                        line,
                        ..Block::default()
                    };
                    self.inner(&mut inner, depth);
                    return block.parts.push(Part::Block(inner));
                }
                Some(b) if is_word(b) || b == b'"' => match self.name() {
                    Some(label) => labels.push(label),
                    None => return,
                },
                _ => return,
            }
        }
    }

    /// Reads the braces of a block or an object. Braces that are too deep have no known parts.
    fn inner(&mut self, block: &mut Block<'t>, depth: usize) {
        if depth >= DEPTH {
            return self.value(false);
        }
        self.skip(1);
        self.parts(block, depth + 1);
    }

    fn setting(&mut self, block: &mut Block<'t>, (name, line): (&'t str, u32), depth: usize) {
        self.blanks(false);
        if self.byte() == Some(b'{') && !self.is_for() && depth < DEPTH {
            let mut object = Block {
                name,
                line,
                ..Block::default()
            };
            self.inner(&mut object, depth);
            return block.parts.push(Part::Block(object));
        }
        let mut value = Reader {
            text: "",
            at: self.at,
            line: self.line,
        };
        self.value(false);
        value.text = self.text.get(..self.at).unwrap_or_default();
        let literals = value.literals();
        block.parts.push(Part::Setting(Setting {
            name,
            line,
            literals,
        }));
    }

    /// Returns true if the braces at the position compute an object: `{ for … }`.
    fn is_for(&self) -> bool {
        let inner = self.rest().trim_start_matches('{').trim_start();
        inner.starts_with("for ")
    }

    /// Reads a word or a string, and returns it without quotes.
    fn name(&mut self) -> Option<&'t str> {
        let start = self.at;
        if self.byte() == Some(b'"') {
            self.string();
            let word = self.text.get(start + 1..self.at)?;
            return word.strip_suffix('"');
        }
        let rest = self.rest().as_bytes();
        let length = rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len());
        self.skip(length.max(1));
        self.text.get(start..start + length)
    }

    /// Skips a string with the templates in it, which can have strings of their own. A string ends
    /// at the end of its line at the latest, unless a template is open.
    fn string(&mut self) {
        self.skip(1);
        // For each string that is open, the open braces of its template.
        let mut open = vec![0usize];
        while let (Some(b), Some(braces)) = (self.byte(), open.last_mut()) {
            match b {
                b'"' if *braces > 0 => open.push(0),
                b'"' => {
                    open.pop();
                }
                b'{' if *braces > 0 => *braces += 1,
                b'}' => *braces = braces.saturating_sub(1),
                b'\n' if *braces == 0 => return,
                b'\\' if *braces == 0 => self.skip(1),
                b'$' | b'%' if *braces == 0 => match self.text.as_bytes().get(self.at + 1..) {
                    Some([b'{', ..]) => {
                        *braces = 1;
                        self.skip(1);
                    }
                    // `$${` and `%%{` are the texts `${` and `%{`.
                    Some([second, b'{', ..]) if *second == b => self.skip(2),
                    _ => {}
                },
                _ => {}
            }
            self.skip(1);
        }
    }

    /// Skips a heredoc, if there is one at the position.
    fn heredoc(&mut self) -> bool {
        let Some(rest) = self.rest().strip_prefix("<<") else {
            return false;
        };
        let rest = rest.strip_prefix('-').unwrap_or(rest);
        let length = rest.bytes().position(|b| !is_word(b)).unwrap_or(rest.len());
        let word = &rest[..length];
        if word.is_empty() {
            return false;
        }
        let whole = self.rest();
        let mut end = 0;
        for line in whole.split_inclusive('\n') {
            let is_end = end > 0 && line.trim() == word;
            end += line.len();
            if is_end {
                // The end of the line ends the value.
                end -= line.len() - line.trim_end().len();
                break;
            }
        }
        self.skip(end);
        true
    }

    /// Skips a value: up to a comma or a closing bracket outside of brackets, or the end of the
    /// line, if the value is not `in_list`.
    fn value(&mut self, in_list: bool) {
        let mut open = 0usize;
        while let Some(b) = self.byte() {
            match b {
                b'"' => {
                    self.string();
                    continue;
                }
                b'<' if self.heredoc() => continue,
                b'#' | b'/' => {
                    if let Some(length) = self.comment() {
                        self.skip(length);
                        continue;
                    }
                }
                b'[' | b'(' | b'{' => open += 1,
                b']' | b')' | b'}' if open == 0 => return,
                b']' | b')' | b'}' => open -= 1,
                b'\n' if open == 0 && !in_list => return,
                b',' if open == 0 => return,
                _ => {}
            }
            self.skip(1);
        }
    }

    /// Reads the rest of the text, which is a value, and returns it if it is a literal, or the
    /// literals of a list. If one item of a list is an expression, the others are still known.
    fn literals(mut self) -> Vec<Literal<'t>> {
        self.blanks(true);
        if self.byte() != Some(b'[') {
            return self.literal().into_iter().collect();
        }
        let mut out = Vec::new();
        while matches!(self.byte(), Some(b'[' | b',')) {
            self.skip(1);
            out.extend(self.item());
            if self.byte() == Some(b']') {
                self.skip(1);
                self.blanks(true);
                // An index or an operator behind the list makes it an expression.
                return self.byte().map_or(out, |_| Vec::new());
            }
        }
        Vec::new()
    }

    /// Reads an item of a list, and returns it if it is a literal.
    fn item(&mut self) -> Option<Literal<'t>> {
        let (at, line) = (self.at, self.line);
        self.value(true);
        let text = self.text.get(..self.at)?;
        Reader { text, at, line }.literal()
    }

    /// Reads the rest of the text, and returns it without comments, quotes and parentheses if it is
    /// a literal.
    fn literal(mut self) -> Option<Literal<'t>> {
        let mut open = 0usize;
        self.blanks(true);
        while self.byte() == Some(b'(') {
            open += 1;
            self.skip(1);
            self.blanks(true);
        }
        let (start, line) = (self.at, self.line);
        self.name();
        let text = known(self.text.get(start..self.at)?)?;
        self.blanks(true);
        while open > 0 && self.byte() == Some(b')') {
            open -= 1;
            self.skip(1);
            self.blanks(true);
        }
        (open == 0 && self.byte().is_none()).then_some(Literal { text, line })
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.' || b >= 0x80
}

/// Returns a string without its quotes, or a word, if its value is the text itself.
fn known(text: &str) -> Option<&str> {
    if let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        let is_plain =
            !inner.contains(['"', '\\']) && !inner.contains("${") && !inner.contains("%{");
        return is_plain.then_some(inner);
    }
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    (is_number || matches!(text, "true" | "false" | "null")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(literals: &[Literal<'_>]) -> String {
        let texts: Vec<_> = literals.iter().map(|l| l.text).collect();
        match &texts[..] {
            [] => "?".to_owned(),
            all => all.join("+"),
        }
    }

    /// Returns the parts of the first block in short: `name=literal`, `name=?`, `name{…}`.
    fn short(text: &str) -> String {
        fn parts(block: &Block<'_>) -> String {
            let all = block.parts.iter().map(|part| match part {
                Part::Setting(s) => format!("{}={}@{}", s.name, shown(&s.literals), s.line),
                Part::Block(b) => format!("{}{{{}}}@{}", b.name, parts(b), b.line),
            });
            all.collect::<Vec<_>>().join(" ")
        }
        let blocks = blocks(text);
        blocks.first().map(parts).unwrap_or_default()
    }

    #[test]
    fn settings_and_blocks_have_their_lines_and_literals() {
        assert_eq!(
            short(
                "resource \"a\" \"b\" {\n  x = true # c\n  y = \"q\" // \"}\"\n  z = var.z\n  n = 14\n  m {\n    k = \"${v}\"\n  }\n}\n"
            ),
            "x=true@2 y=q@3 z=?@4 n=14@5 m{k=?@7}@6"
        );
        let read = blocks("resource \"a\" \"b\" {}\ndata \"c\" \"d\" {\n x = 1\n");
        assert_eq!(read[0].labels, ["a", "b"]);
        assert!(read[0].is_complete && !read[1].is_complete);
        assert_eq!((read[1].name, read[1].line), ("data", 2));
    }

    #[test]
    fn objects_are_blocks_and_other_values_are_skipped_whole() {
        assert_eq!(
            short(
                "r \"a\" \"b\" {\n  m = {\n    \"k-l\" = \"1\"\n    j: false,\n  }\n  l = [\n    { a = 1 },\n  ]\n  f = jsonencode({\n    x = true\n  })\n  p = <<-EOF\n    q = false }\n    EOF\n  z = (true)\n}"
            ),
            "m{k-l=1@3 j=false@4}@2 l=?@6 f=?@9 p=?@12 z=true@15"
        );
        assert_eq!(
            short(
                "r \"a\" {\n  m = { for k, v in x : k => v }\n  c = x ? {\n    a = 1\n  } : null\n  o { enabled = false }\n}"
            ),
            "m=?@2 c=?@3 o{enabled=false@6}@6"
        );
    }

    #[test]
    fn the_strings_of_a_list_are_literals() {
        assert_eq!(
            short(
                "r \"a\" {\n  l = [\"x\", var.y, \"z\"] # w\n  m = [\n    \"k\", # \"v\"\n  ]\n  n = [{ o = 1 }]\n  p = []\n  q = [f(\"r\", \"s\"), \"t\"]\n}"
            ),
            "l=x+z@2 m=k@3 n=?@6 p=?@7 q=t@8"
        );
    }

    #[test]
    fn each_literal_has_its_line() {
        let read = blocks("r \"a\" {\n  l = [\"x\", # y\n    /*\n*/ (1), v,\n\n  \"z\"\n, ]\n}\n");
        let Part::Setting(setting) = &read[0].parts[0] else {
            panic!("{read:?}")
        };
        let lines: Vec<_> = setting.literals.iter().map(|l| (l.text, l.line)).collect();
        assert_eq!(
            (setting.line, lines),
            (2, vec![("x", 2), ("1", 4), ("z", 6)])
        );
    }

    #[test]
    fn comments_and_parentheses_around_a_literal_do_not_count() {
        assert_eq!(
            short(
                "r \"a\" {\n  a = /* b */ (( \"c\" /* d */ ) ) /* e */ # f\n  g = (1\n  )\n  h = (1) + 1\n  i = ((1)\n}\n"
            ),
            "a=c@2 g=1@3 h=?@5 i=?@6"
        );
        assert_eq!(
            short("r \"a\" {\n  l = [\"x\" /* ] */, /* \"y\" */ \"z\"] /* w */\n  m = [1][0]\n}\n"),
            "l=x+z@2 m=?@3"
        );
    }

    #[test]
    fn comments_braces_in_strings_and_broken_text_do_not_end_a_block() {
        assert_eq!(
            short("r \"a\" {\n  /* } */ x = \"}\"\n  # }\n  y = \"${f(\"}\")}\"\r\n  z = 1\r\n}\n"),
            "x=}@2 y=?@4 z=1@5"
        );
        assert_eq!(blocks("} } \u{fc} \"\nr \"a\" {\n}\n").len(), 1);
        let deep = "a {\n".repeat(100_000);
        assert!(!blocks(&deep)[0].is_complete);
    }
}
