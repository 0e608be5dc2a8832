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
    let tree = parser.parse_with_options(
        &mut |at, _| text.get(at..).unwrap_or_default(),
        None,
        Some(options),
    );
    // `benches/compare` sums these values.
    tracing::debug!(
        bytes = size,
        of = text.len(),
        us = started.elapsed().as_micros(),
        "parsed"
    );
    tree
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
