//! Finds the differing lines and groups them into hunks, with the same result as `git diff` with
//! its defaults.
//!
//! Git's defaults are Myers' algorithm, the indent heuristic and three lines of context.

use super::slide::EditedLines;
use super::{Hunk, LineEdit, LineRange};
use imara_diff::{
    Algorithm, Diff, IndentHeuristic, IndentLevel, Interner, SliderHeuristic as _, Token,
};
use std::cell::Cell;
use std::ops::Range;

/// Unchanged lines before and after an edit.
const CONTEXT: u32 = 3;

/// Returns the hunks that turn `old` into `new`; empty if they are equal.
pub(in crate::diff) fn between(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    if old == new {
        return Vec::new();
    }
    if old.is_empty() || new.is_empty() || too_many_lines(old) || too_many_lines(new) {
        return group(
            old,
            new,
            vec![LineEdit {
                old: all(old),
                new: all(new),
            }],
        );
    }
    group(old, new, edits(old, new))
}

/// Returns a range that covers a whole file.
fn all(text: &[u8]) -> LineRange {
    LineRange {
        start: 1,
        count: count(text),
        bytes: 0..text.len(),
    }
}

/// Counts lines; the last one may lack its end. Saturates.
pub(in crate::diff) fn count(text: &[u8]) -> u32 {
    let ends = memchr::memchr_iter(b'\n', text).count();
    let open = text.last().is_some_and(|b| *b != b'\n');
    u32::try_from(ends + usize::from(open)).unwrap_or(u32::MAX)
}

/// The algorithm numbers lines with 31 bits; a longer file is shown as replaced.
fn too_many_lines(text: &[u8]) -> bool {
    text.len() >= i32::MAX as usize && count(text) >= i32::MAX as u32
}

/// Finds the edits, in order.
///
/// Git compares the whole files, and the result here is the same. But for the lines that both files
/// share at the start and end, this function only computes what affects the result: whether they
/// equal a line in between. The number of such lines decides which lines the algorithm ignores at
/// first, and equal lines let an edit slide.
fn edits(old: &[u8], new: &[u8]) -> Vec<LineEdit> {
    let ends = common_ends(old, new);
    edits_between(old, new, ends)
}

/// Finds the edits of files that have `prefix` bytes at the start and `suffix` bytes at the end in
/// common.
fn edits_between(old: &[u8], new: &[u8], (prefix, suffix): (usize, usize)) -> Vec<LineEdit> {
    let mut tokens = Tokens::new();
    let (old_middle, old_starts) = tokens.of_middle(old, prefix..old.len() - suffix);
    let (new_middle, new_starts) = tokens.of_middle(new, prefix..new.len() - suffix);
    let mut before = tokens.of_outside(&old[..prefix]);
    let first = before.len() as u32;
    let mut after = before.clone();
    before.extend(old_middle);
    after.extend(new_middle);
    let tail = tokens.of_outside(&old[old.len() - suffix..]);
    before.extend_from_slice(&tail);
    after.extend(tail);
    let old = Starts::new(old, first, old_starts);
    let new = Starts::new(new, first, new_starts);
    let mut diff = Diff::default();
    diff.compute_with(
        Algorithm::Myers,
        &before,
        &after,
        tokens.interner.num_tokens(),
    );
    let mut edited = EditedLines::of(&diff, before.len(), after.len());
    let counts = (before.len() as u32, after.len() as u32);
    edited.slide_removed(&before, |edit, end| best_end(&old, counts.0, edit, end));
    edited.slide_added(&after, |edit, end| best_end(&new, counts.1, edit, end));
    let edits = edited.edits().into_iter();
    edits
        .map(|(removed, added)| LineEdit {
            old: old.lines(removed),
            new: new.lines(added),
        })
        .collect()
}

/// Selects the position of an edit that can slide by the surrounding indentation, as git does.
///
/// The library asks for the indentation of a token, but here one token can represent many lines. So
/// the library gets separate tokens for the lines whose indentation it needs.
fn best_end(starts: &Starts<'_>, lines: u32, edit: Range<u32>, earliest_end: u32) -> u32 {
    /// Number of positions that are tried, and a bound on the lines around each that matter
    /// (`INDENT_HEURISTIC_MAX_SLIDING` and `MAX_BLANKS` of git's `xdiff/xdiffi.c`).
    const TRIED: u32 = 100;
    const AROUND: u32 = 24;
    let first_end = earliest_end.max(edit.end.saturating_sub(TRIED));
    let from = first_end.saturating_sub(edit.end - edit.start + AROUND);
    let to = lines.min(edit.end + AROUND);
    let tokens: Vec<Token> = (0..to - from).map(Token).collect();
    let mut heuristic =
        IndentHeuristic::new(|token: Token| level(&starts.text[starts.of(from + token.0)..]));
    from + heuristic.best_slider_end(
        &tokens,
        edit.start - from..edit.end - from,
        earliest_end.saturating_sub(from),
    )
}

/// Returns the indentation of the first line of `text`. Git does not count form feeds as blanks.
fn level(text: &[u8]) -> IndentLevel {
    let line = text.iter().take_while(|b| **b != b'\n');
    IndentLevel::for_ascii_line(line.map(|b| if *b == 0x0c { b'x' } else { *b }), 8)
}

/// Returns the number of bytes of whole lines that both texts share at the start, and at the end
/// after that.
fn common_ends(old: &[u8], new: &[u8]) -> (usize, usize) {
    /// Bytes that are compared at once.
    const BLOCK: usize = 256;
    let blocks = old.chunks_exact(BLOCK).zip(new.chunks_exact(BLOCK));
    let blocks = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let bytes = old[blocks..]
        .iter()
        .zip(&new[blocks..])
        .take_while(|(a, b)| a == b)
        .count();
    let prefix = memchr::memrchr(b'\n', &old[..blocks + bytes]).map_or(0, |i| i + 1);
    let (old, new) = (&old[prefix..], &new[prefix..]);
    let blocks = old.rchunks_exact(BLOCK).zip(new.rchunks_exact(BLOCK));
    let blocks = blocks.take_while(|(a, b)| a == b).count() * BLOCK;
    let (old_rest, new_rest) = (&old[..old.len() - blocks], &new[..new.len() - blocks]);
    let bytes = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let tail = &old[old.len() - blocks - bytes..];
    // The first of these lines may begin earlier, with different bytes.
    (
        prefix,
        memchr::memchr(b'\n', tail).map_or(0, |i| tail.len() - i - 1),
    )
}

/// Assigns numbers to lines, so that equal lines have equal numbers.
struct Tokens<'a> {
    interner: Interner<&'a [u8]>,
    /// For each [`hash`] of a line between the common ends, the token of one such line, or
    /// [`NONE`].
    middle: [Token; 1 << HASH_BITS],
}

const HASH_BITS: u32 = 12;
/// The token of all lines that equal no line between the common ends.
const NONE: Token = Token(0);

impl<'a> Tokens<'a> {
    fn new() -> Self {
        let mut interner = Interner::new(0);
        // No line is empty, so the empty text reserves the first token, which is [`NONE`].
        interner.intern(&[][..]);
        Self {
            interner,
            middle: [NONE; 1 << HASH_BITS],
        }
    }

    /// Returns the tokens of the lines in `range`, the start of each line, and the end of the last
    /// one.
    fn of_middle(&mut self, text: &'a [u8], range: Range<usize>) -> (Vec<Token>, Vec<usize>) {
        let mut out = Vec::with_capacity(guess(range.len()));
        let mut starts = Vec::with_capacity(guess(range.len()));
        let mut at = range.start;
        starts.push(at);
        for line in lines(&text[range]) {
            let slot = hash(line);
            if self.middle[slot] == NONE || self.interner[self.middle[slot]] != line {
                self.middle[slot] = self.interner.intern(line);
            }
            out.push(self.middle[slot]);
            at += line.len();
            starts.push(at);
        }
        (out, starts)
    }

    /// All lines between the common ends must be registered before.
    fn of_outside(&mut self, text: &'a [u8]) -> Vec<Token> {
        let mut out = Vec::with_capacity(guess(text.len()));
        for line in lines(text) {
            let known = self.middle[hash(line)];
            out.push(if known == NONE || self.interner[known] == line {
                known
            } else {
                self.interner.intern(line)
            });
        }
        out
    }
}

/// Estimates the number of lines in a number of bytes; capped, because a file of few long lines
/// needs little room.
fn guess(bytes: usize) -> usize {
    (bytes / 32).min(1 << 16) + 1
}

/// Cuts a text into lines; the last one may lack its end.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let open = text
        .last()
        .is_some_and(|b| *b != b'\n')
        .then_some(text.len());
    let mut start = 0;
    memchr::memchr_iter(b'\n', text)
        .map(|i| i + 1)
        .chain(open)
        .map(move |end| {
            let line = &text[start..end];
            start = end;
            line
        })
}

/// Hashes the length and both ends of a line.
fn hash(line: &[u8]) -> usize {
    let (head, tail) = match (line.first_chunk(), line.last_chunk()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (line.iter().fold(0, |n, b| n << 8 | u64::from(*b)), 0),
    };
    let mixed =
        (head ^ tail.rotate_left(29) ^ line.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - HASH_BITS)) as usize
}

/// The starts of the lines of a file.
struct Starts<'a> {
    text: &'a [u8],
    /// Number (from 0) of the first line between the common ends.
    first: u32,
    /// Starts of the lines between the common ends, and the end of the last one.
    middle: Vec<usize>,
    /// The last requested line outside the middle, and its start: the next request is near.
    last: Cell<(u32, usize)>,
}

impl<'a> Starts<'a> {
    fn new(text: &'a [u8], first: u32, middle: Vec<usize>) -> Self {
        let last = Cell::new((first, middle[0]));
        Self {
            text,
            first,
            middle,
            last,
        }
    }

    fn of(&self, line: u32) -> usize {
        if let Some(start) = line
            .checked_sub(self.first)
            .and_then(|n| self.middle.get(n as usize))
        {
            return *start;
        }
        // Only an edit that slid out of the middle needs such a line.
        let end = self.first + (self.middle.len() - 1) as u32;
        let edge = if line < self.first {
            (self.first, self.middle[0])
        } else {
            (end, self.middle[(end - self.first) as usize])
        };
        let last = self.last.get();
        let (from, mut at) = if last.0.abs_diff(line) < edge.0.abs_diff(line) {
            last
        } else {
            edge
        };
        for _ in from..line {
            at += super::line_len(&self.text[at..]);
        }
        for _ in line..from {
            at = memchr::memrchr(b'\n', &self.text[..at - 1]).map_or(0, |i| i + 1);
        }
        self.last.set((line, at));
        at
    }

    fn lines(&self, range: Range<u32>) -> LineRange {
        let bytes = self.of(range.start)..self.of(range.end);
        LineRange {
            start: range.start + 1,
            count: range.end - range.start,
            bytes,
        }
    }
}

/// Groups edits that are at most twice the context apart into one hunk, and adds the context.
fn group(old: &[u8], new: &[u8], edits: Vec<LineEdit>) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for edit in edits {
        let near = hunks.last_mut().filter(|h| {
            h.edits.last().is_some_and(|last| {
                edit.old.start - (last.old.start + last.old.count) <= 2 * CONTEXT
            })
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
        let (Some(first), Some(last)) = (hunk.edits.first(), hunk.edits.last()) else {
            continue;
        };
        hunk.old = with_context(old, &first.old, &last.old);
        hunk.new = with_context(new, &first.new, &last.new);
    }
    hunks
}

fn with_context(text: &[u8], first: &LineRange, last: &LineRange) -> LineRange {
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
    LineRange {
        start: first.start - before,
        count,
        bytes: start..end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference implementation: compares all lines of both files.
    fn edits_of_whole_files(old: &[u8], new: &[u8]) -> Vec<LineEdit> {
        edits_between(old, new, (0, 0))
    }

    #[test]
    fn common_ends_do_not_change_the_edits() {
        let mut random = crate::diff::tests::Random(3);
        for _ in 0..3000 {
            let (old, new) = crate::diff::tests::random_edit(&mut random);
            if old != new {
                assert_eq!(
                    edits(&old, &new),
                    edits_of_whole_files(&old, &new),
                    "{}\n---\n{}",
                    String::from_utf8_lossy(&old),
                    String::from_utf8_lossy(&new)
                );
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
            assert_eq!(
                common_ends(old.as_bytes(), new.as_bytes()),
                want,
                "{old:?} {new:?}"
            );
        }
    }
}
