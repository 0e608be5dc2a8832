//! Which lines differ, and the hunks around them: what `git diff` with its defaults finds.
//!
//! Git's defaults are Myers' algorithm, the indent heuristic and three lines of context.

use super::{Edit, Hunk, Lines};
use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

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

fn edits(old: &[u8], new: &[u8]) -> Vec<Edit> {
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let mut old = Cursor::default();
    let mut new = Cursor::default();
    diff.hunks()
        .map(|h| Edit {
            old: old.take(h.before, |line| input.interner[input.before[line]].len()),
            new: new.take(h.after, |line| input.interner[input.after[line]].len()),
        })
        .collect()
}

/// A line number (from 0) and where that line starts.
#[derive(Default)]
struct Cursor {
    line: u32,
    byte: usize,
}

impl Cursor {
    /// Moves to the end of a range of lines that lies ahead.
    fn take(&mut self, range: std::ops::Range<u32>, len: impl Fn(usize) -> usize) -> Lines {
        let sum = |from: u32, to: u32| (from..to).map(|line| len(line as usize)).sum::<usize>();
        let start = self.byte + sum(self.line, range.start);
        let end = start + sum(range.start, range.end);
        *self = Self { line: range.end, byte: end };
        Lines { start: range.start + 1, count: range.end - range.start, bytes: start..end }
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
