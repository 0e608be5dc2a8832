//! Which lines differ, and the hunks around them: what `git diff` with its defaults finds.
//!
//! Git's defaults are Myers' algorithm, the indent heuristic and three lines of context.

use super::{Edit, Hunk, Lines};
use imara_diff::sources::byte_lines;
use imara_diff::{Algorithm, Diff, IndentHeuristic, IndentLevel, InternedInput, Interner, Token};

/// Unchanged lines before and after an edit.
const CONTEXT: u32 = 3;

/// Returns the hunks that turn `old` into `new`; none when they are equal.
pub(in crate::diff) fn between(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    if old == new {
        return Vec::new();
    }
    if old.is_empty() || new.is_empty() || too_many_lines(old) || too_many_lines(new) {
        return group(old, new, vec![Edit { old: all(old), new: all(new) }]);
    }
    group(old, new, edits(old, new))
}

/// Returns one hunk that holds a whole file.
fn all(text: &[u8]) -> Lines {
    Lines { start: 1, count: count(text), bytes: 0..text.len() }
}

/// Counts lines; the last one may lack its end. Saturates.
pub(in crate::diff) fn count(text: &[u8]) -> u32 {
    let ends = memchr::memchr_iter(b'\n', text).count();
    let open = text.last().is_some_and(|b| *b != b'\n');
    u32::try_from(ends + usize::from(open)).unwrap_or(u32::MAX)
}

/// The algorithm numbers lines with 31 bits; what has more is shown as replaced.
fn too_many_lines(text: &[u8]) -> bool {
    text.len() >= i32::MAX as usize && count(text) >= i32::MAX as u32
}

/// Finds the edits, in order.
///
/// Git compares the whole files. So does this, in effect; but of the lines that both files begin and end
/// with it only finds out what can matter: whether they equal a line in between (how often a line occurs
/// decides what the algorithm leaves out at first, and equal lines let an edit slide), and how far they
/// are indented (which decides where an edit that can slide comes to rest).
fn edits(old: &[u8], new: &[u8]) -> Vec<Edit> {
    let (prefix, suffix) = common_ends(old, new);
    let mut tokens = Tokens::new();
    let old_middle = tokens.of_middle(&old[prefix..old.len() - suffix]);
    let new_middle = tokens.of_middle(&new[prefix..new.len() - suffix]);
    let mut before = tokens.of_outside(&old[..prefix]);
    let first = before.len() as u32;
    let mut after = before.clone();
    before.extend(old_middle);
    after.extend(new_middle);
    let tail = tokens.of_outside(&old[old.len() - suffix..]);
    before.extend_from_slice(&tail);
    after.extend(tail);
    let input = InternedInput { before, after, interner: tokens.interner };
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_with_heuristic(&input, IndentHeuristic::new(|token| input.interner[token].level()));
    let mut old = Cursor { text: old, line: first, byte: prefix };
    let mut new = Cursor { text: new, line: first, byte: prefix };
    diff.hunks().map(|h| Edit { old: old.take(h.before), new: new.take(h.after) }).collect()
}

/// Returns how many bytes of whole lines both texts begin with, and end with after that.
fn common_ends(old: &[u8], new: &[u8]) -> (usize, usize) {
    /// Compared at once.
    const BLOCK: usize = 256;
    let equal = |(a, b): &(&[u8], &[u8])| a == b;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK)).take_while(equal).count() * BLOCK;
    let bytes = old[blocks..].iter().zip(&new[blocks..]).take_while(|(a, b)| a == b).count();
    let prefix = memchr::memrchr(b'\n', &old[..blocks + bytes]).map_or(0, |i| i + 1);
    let (old, new) = (&old[prefix..], &new[prefix..]);
    let blocks = old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK)).take_while(equal).count() * BLOCK;
    let (old_rest, new_rest) = (&old[..old.len() - blocks], &new[..new.len() - blocks]);
    let bytes = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let tail = &old[old.len() - blocks - bytes..];
    // The first of these lines may begin before them, and differently.
    (prefix, memchr::memchr(b'\n', tail).map_or(0, |i| tail.len() - i - 1))
}

/// A line as the comparison sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Line<'a> {
    /// Known by its bytes.
    Whole(&'a [u8]),
    /// Equal to no line between the common ends; known by how far it is indented.
    Other(u8),
}

/// Further than this, git does not count (`MAX_INDENT` of its `xdiff/xdiffi.c`).
const MAX_INDENT: u8 = 200;
/// Stands for a line of blanks alone.
const BLANK: u8 = u8::MAX;

impl Line<'_> {
    fn level(self) -> IndentLevel {
        let indent = match self {
            Self::Whole(text) => indent(text),
            Self::Other(indent) => indent,
        };
        match indent {
            BLANK => IndentLevel::for_ascii_line([], 8),
            n => IndentLevel::for_ascii_line(std::iter::repeat_n(b' ', usize::from(n)).chain([b'x']), 8),
        }
    }
}

/// Returns the column of the first byte that is no blank, with tab stops every 8 columns.
///
/// Form feeds and vertical tabs are no blanks to git.
fn indent(line: &[u8]) -> u8 {
    let mut column = 0;
    for b in line {
        match b {
            b' ' => column += 1,
            b'\t' => column += 8 - column % 8,
            b'\n' | b'\r' => {}
            _ => return column,
        }
        if column >= MAX_INDENT {
            return MAX_INDENT;
        }
    }
    BLANK
}

/// Numbers lines so that equal ones have equal numbers.
struct Tokens<'a> {
    interner: Interner<Line<'a>>,
    /// Which lines stand between the common ends: a bit for the [`hash`] of each.
    middle: [u64; 256],
    /// The tokens of [`Line::Other`].
    others: [Option<Token>; 256],
}

impl<'a> Tokens<'a> {
    fn new() -> Self {
        Self { interner: Interner::new(0), middle: [0; 256], others: [None; 256] }
    }

    fn of_middle(&mut self, text: &'a [u8]) -> Vec<Token> {
        let mut out = Vec::with_capacity(text.len() / 32);
        for line in byte_lines(text) {
            let hash = hash(line);
            self.middle[hash / 64] |= 1 << (hash % 64);
            out.push(self.interner.intern(Line::Whole(line)));
        }
        out
    }

    /// Every line between the ends must be known before.
    fn of_outside(&mut self, text: &'a [u8]) -> Vec<Token> {
        let mut out = Vec::with_capacity(text.len() / 32);
        for line in byte_lines(text) {
            let hash = hash(line);
            out.push(if self.middle[hash / 64] >> (hash % 64) & 1 == 1 {
                self.interner.intern(Line::Whole(line))
            } else {
                let indent = indent(line);
                let interner = &mut self.interner;
                *self.others[usize::from(indent)].get_or_insert_with(|| interner.intern(Line::Other(indent)))
            });
        }
        out
    }
}

/// Hashes the length and both ends of a line to 14 bits.
fn hash(line: &[u8]) -> usize {
    let eight = |bytes: &[u8]| {
        let mut padded = [0; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(padded)
    };
    let n = line.len().min(8);
    let (head, tail) = match (line.first_chunk(), line.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (eight(&line[..n]), 0),
    };
    let mixed = (head ^ tail.rotate_left(29) ^ line.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 50) as usize
}

/// A line number (from 0) and where that line starts.
struct Cursor<'a> {
    text: &'a [u8],
    line: u32,
    byte: usize,
}

impl Cursor<'_> {
    /// Moves to the end of a range of lines and returns where they stand.
    fn take(&mut self, range: std::ops::Range<u32>) -> Lines {
        // An edit may have slid up into what both files begin with.
        while self.line > range.start {
            self.byte = memchr::memrchr(b'\n', &self.text[..self.byte - 1]).map_or(0, |i| i + 1);
            self.line -= 1;
        }
        self.move_down(range.start);
        let start = self.byte;
        self.move_down(range.end);
        Lines { start: range.start + 1, count: range.end - range.start, bytes: start..self.byte }
    }

    fn move_down(&mut self, line: u32) {
        while self.line < line {
            self.byte += super::line_len(&self.text[self.byte..]);
            self.line += 1;
        }
    }
}

/// Puts edits that are at most twice the context apart into one hunk, and the context around it.
fn group(old: &[u8], new: &[u8], edits: Vec<Edit>) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for edit in edits {
        let near = hunks.last_mut().filter(|h| {
            h.edits.last().is_some_and(|last| edit.old.start - (last.old.start + last.old.count) <= 2 * CONTEXT)
        });
        match near {
            Some(hunk) => hunk.edits.push(edit),
            None => hunks.push(Hunk {
                old: edit.old.clone(),
                new: edit.new.clone(),
                edits: vec![edit],
                section: Vec::new(),
            }),
        }
    }
    for hunk in &mut hunks {
        let (Some(first), Some(last)) = (hunk.edits.first(), hunk.edits.last()) else { continue };
        hunk.old = with_context(old, &first.old, &last.old);
        hunk.new = with_context(new, &first.new, &last.new);
    }
    hunks
}

fn with_context(text: &[u8], first: &Lines, last: &Lines) -> Lines {
    let (mut before, mut start) = (0, first.bytes.start);
    while before < CONTEXT && start > 0 {
        start = memchr::memrchr(b'\n', &text[..start - 1]).map_or(0, |i| i + 1);
        before += 1;
    }
    let (mut after, mut end) = (0, last.bytes.end);
    while after < CONTEXT && end < text.len() {
        end = memchr::memchr(b'\n', &text[end..]).map_or(text.len(), |i| end + i + 1);
        after += 1;
    }
    let count = last.start + last.count - first.start + before + after;
    Lines { start: first.start - before, count, bytes: start..end }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain way: every line of both files is told apart.
    fn edits_of_whole_files(old: &[u8], new: &[u8]) -> Vec<Edit> {
        let mut tokens = Tokens::new();
        let (before, after) = (tokens.of_middle(old), tokens.of_middle(new));
        let input = InternedInput { before, after, interner: tokens.interner };
        let mut diff = Diff::compute(Algorithm::Myers, &input);
        diff.postprocess_with_heuristic(&input, IndentHeuristic::new(|token| input.interner[token].level()));
        let mut old = Cursor { text: old, line: 0, byte: 0 };
        let mut new = Cursor { text: new, line: 0, byte: 0 };
        diff.hunks().map(|h| Edit { old: old.take(h.before), new: new.take(h.after) }).collect()
    }

    #[test]
    fn common_ends_do_not_change_the_edits() {
        let mut random = crate::diff::tests::Random(3);
        for _ in 0..3000 {
            let (old, new) = crate::diff::tests::random_edit(&mut random);
            if old != new {
                let seen = || format!("{}\n---\n{}", String::from_utf8_lossy(&old), String::from_utf8_lossy(&new));
                assert_eq!(edits(&old, &new), edits_of_whole_files(&old, &new), "{}", seen());
            }
        }
    }

    #[test]
    fn common_ends_are_whole_lines() {
        for (old, new, want) in [
            ("a\nb\n", "a\nc\n", (2, 0)),
            ("a\nb\nc\nd\n", "a\nx\nc\nd\n", (2, 4)),
            ("a\n", "a\na\n", (2, 0)),
            ("xa\nb\n", "ya\nb\n", (0, 2)),
            ("a", "b", (0, 0)),
            ("a\nb", "a\nb\n", (2, 0)),
        ] {
            assert_eq!(common_ends(old.as_bytes(), new.as_bytes()), want, "{old:?} {new:?}");
        }
    }
}
