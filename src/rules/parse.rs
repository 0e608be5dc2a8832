//! Parses files for the rules that need a syntax tree, within limits of size, work and time.

use crate::symbols;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use tree_sitter::{Language, ParseOptions, Parser, Tree};

/// Bytes of a parsed file, at most.
const MOST_BYTES: usize = 1 << 20;
/// Bytes of the longest line of a parsed file, at most. People write shorter lines, and the parser
/// of Kotlin takes time that is quadratic in a line that it cannot read.
const MOST_OF_LINE: usize = 20_000;
/// Time of the parser, at most: this, plus time for each byte. Usual files take milliseconds. In a
/// file that is one long syntax error, each step of the parser takes longer than the one before, so
/// a number of steps does not bound the time.
const TIME: Duration = Duration::from_secs(2);
const TIME_PER_BYTE: Duration = Duration::from_micros(1);
/// Steps of the parser, at most: this, plus one for a number of bytes.
const STEPS: usize = 5_000;
const BYTES_PER_STEP: usize = 20;

/// Returns true if a file is small enough, its lines are short enough, and it is not nested too
/// deeply, to be parsed.
pub(super) fn is_bounded(text: &[u8]) -> bool {
    text.len() <= MOST_BYTES
        && text
            .split(|b| *b == b'\n')
            .all(|line| line.len() <= MOST_OF_LINE)
        && !symbols::is_too_deep(text)
}

/// A parsed text with its tree.
pub(super) struct Parse<'t> {
    grammar: Language,
    text: &'t [u8],
    tree: Tree,
}

impl<'t> Parse<'t> {
    pub(super) fn new(grammar: Language, text: &'t [u8], tree: Tree) -> Self {
        Self {
            grammar,
            text,
            tree,
        }
    }

    /// Returns the tree of a text if it is the same part of memory, parsed with the same grammar.
    pub(super) fn tree_of(&self, grammar: &Language, text: &[u8]) -> Option<Tree> {
        (self.grammar == *grammar && std::ptr::eq(self.text, text)).then(|| self.tree.clone())
    }
}

/// Parses a text. `None`: a limit of work or time ended the parser.
pub(super) fn tree(language: &Language, text: &[u8]) -> Option<Tree> {
    tree_of_parts(language, text, &[])
}

/// Parses the parts of a text, in order, as if they were adjacent. Without parts, parses the whole
/// text.
pub(super) fn tree_of_parts(
    language: &Language,
    text: &[u8],
    parts: &[Range<usize>],
) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(language).ok()?;
    parser.set_included_ranges(&points(text, parts)).ok()?;
    let size = if parts.is_empty() {
        text.len()
    } else {
        parts.iter().map(Range::len).sum()
    };
    let mut steps = STEPS + text.len() / BYTES_PER_STEP;
    let end = Instant::now() + TIME + TIME_PER_BYTE * u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut stop = |_: &tree_sitter::ParseState| {
        steps = steps.saturating_sub(1);
        if steps > 0 && Instant::now() < end {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let options = ParseOptions::new().progress_callback(&mut stop);
    let started = Instant::now();
    let ends = if *language == Language::from(tree_sitter_kotlin_ng::LANGUAGE) {
        unwritten_ends(text)
    } else {
        Vec::new()
    };
    let tree = parser.parse_with_options(&mut |at, _| read(text, &ends, at), None, Some(options));
    // `benches/compare` sums these values.
    tracing::debug!(
        bytes = size,
        of = text.len(),
        us = started.elapsed().as_micros(),
        "parsed"
    );
    tree
}

/// Returns the text from a position on, up to the next of the sorted positions whose byte is read
/// as a semicolon.
fn read<'t>(text: &'t [u8], ends: &[usize], at: usize) -> &'t [u8] {
    let next = ends.get(ends.partition_point(|end| *end < at));
    match next {
        Some(end) if *end == at => b";",
        Some(end) => text.get(at..*end).unwrap_or_default(),
        None => text.get(at..).unwrap_or_default(),
    }
}

/// Returns the positions of the spaces in front of calls of `get` that the grammar of Kotlin would
/// read as the getter of the declaration on the line above: `val root = File("a")` and
/// `get("/files") {` of Ktor.
fn unwritten_ends(text: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(text, b"get(\"")
        .filter_map(|call| {
            let line = memchr::memrchr(b'\n', &text[..call])?;
            let is_indented = call > line + 1 && text[line + 1..call].trim_ascii().is_empty();
            let above = text[..line].trim_ascii_end();
            let above = &above[memchr::memrchr(b'\n', above).map_or(0, |i| i + 1)..];
            (is_indented && is_declaration(above.trim_ascii_start())).then_some(call - 1)
        })
        .collect()
}

/// Returns true for a line of Kotlin that declares a variable and needs no further line.
fn is_declaration(line: &[u8]) -> bool {
    (line.starts_with(b"val ") || line.starts_with(b"var "))
        && memchr::memmem::find(line, b"//").is_none_or(|i| line[..i].contains(&b'"'))
        && line.last().is_some_and(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b')' | b']' | b'}' | b'"' | b'!' | b'_')
        })
}

/// Returns ranges of bytes with their rows and columns.
fn points(text: &[u8], parts: &[Range<usize>]) -> Vec<tree_sitter::Range> {
    let (mut at, mut row, mut line) = (0, 0, 0);
    let mut point_of = |to: usize| {
        let passed = &text[at..to];
        row += memchr::memchr_iter(b'\n', passed).count();
        line = memchr::memrchr(b'\n', passed).map_or(line, |i| at + i + 1);
        at = to;
        tree_sitter::Point {
            row,
            column: to - line,
        }
    };
    let mut out = Vec::with_capacity(parts.len());
    for part in parts {
        let (start_point, end_point) = (point_of(part.start), point_of(part.end));
        out.push(tree_sitter::Range {
            start_byte: part.start,
            end_byte: part.end,
            start_point,
            end_point,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text as the parser reads it.
    fn as_read(text: &str) -> String {
        let ends = unwritten_ends(text.as_bytes());
        let mut out = Vec::new();
        while out.len() < text.len() {
            let part = read(text.as_bytes(), &ends, out.len());
            assert!(!part.is_empty());
            out.extend_from_slice(part);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_call_of_get_below_a_declaration_of_kotlin_is_a_statement_of_its_own() {
        assert_eq!(
            as_read("{\n  val a = b.c\n  get(\"/x\") {\n  }\n}"),
            "{\n  val a = b.c\n ;get(\"/x\") {\n  }\n}"
        );
        assert_eq!(
            as_read("val u = \"http://a\"\n\n  get(\"/x\")"),
            "val u = \"http://a\"\n\n ;get(\"/x\")"
        );
        for text in [
            "{\n  run()\n  get(\"/x\")\n}",
            "  val a: Int\n    get() = 1",
            "val a =\n  get(\"/x\")",
            "val a = listOf(\n  get(\"/x\"),\n  get(\"/y\"))",
            "val a = b(c, // d\n  get(\"/x\"))",
            "val a = b\n  .get(\"/x\")",
        ] {
            assert_eq!(as_read(text), text);
        }
    }
}
