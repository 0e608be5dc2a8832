//! Moves edits to where git shows them: next to the edit that they can be merged with, next to a
//! removal, or where the indentation fits best (`xdl_change_compact` of git's `xdiff/xdiffi.c`).
//!
//! The library that compares lines does the same, but it searches the rest of the other file for
//! each edit, which takes minutes for a file in which every other line is added.

use imara_diff::{Diff, Token};
use std::ops::Range;

/// Steps for each line that edits may be moved by in all. An edit that can be merged with many
/// others is moved along all of them for each, so the work would not be linear without a limit.
const STEPS_PER_LINE: usize = 64;
/// Steps that edits may be moved by in a file of any length.
const STEPS_MIN: usize = 1 << 16;

/// The lines of both files that belong to edits: `true` at their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EditedLines {
    pub(super) removed: Vec<bool>,
    pub(super) added: Vec<bool>,
}

impl EditedLines {
    /// Returns the lines that a comparison found, of files with these numbers of lines.
    pub(super) fn of(diff: &Diff, before: usize, after: usize) -> Self {
        Self {
            removed: (0..before as u32).map(|i| diff.is_removed(i)).collect(),
            added: (0..after as u32).map(|i| diff.is_added(i)).collect(),
        }
    }

    /// Moves the edits of the old file, which is done first. `best_end` returns the end of an edit
    /// that can be moved freely: it takes the edit at its last position, and its end at the first
    /// one.
    ///
    /// Returns the number of steps, with the lines that were visited to find the positions. Beyond
    /// the limit, the current edit stops where it is, and the others stay where they are.
    pub(super) fn slide_removed(
        &mut self,
        before: &[Token],
        best_end: impl FnMut(Range<u32>, u32) -> u32,
    ) -> usize {
        Slider::new(before, &mut self.removed, &self.added).run(best_end)
    }

    /// Moves the edits of the new file: see [`Self::slide_removed`].
    pub(super) fn slide_added(
        &mut self,
        after: &[Token],
        best_end: impl FnMut(Range<u32>, u32) -> u32,
    ) -> usize {
        Slider::new(after, &mut self.added, &self.removed).run(best_end)
    }

    /// Returns the edits in order: their lines in the old file and in the new one.
    pub(super) fn edits(&self) -> Vec<(Range<u32>, Range<u32>)> {
        let mut out = Vec::new();
        let (mut old, mut new) = (0, 0);
        loop {
            let unchanged = self.removed[old..]
                .iter()
                .zip(&self.added[new..])
                .take_while(|(removed, added)| !**removed && !**added)
                .count();
            (old, new) = (old + unchanged, new + unchanged);
            let ends = (end_of(&self.removed, old), end_of(&self.added, new));
            if ends == (old, new) {
                return out;
            }
            out.push((old as u32..ends.0 as u32, new as u32..ends.1 as u32));
            (old, new) = ends;
        }
    }
}

/// The state of the edits of one file while they are moved.
struct Slider<'a> {
    /// The lines of the file as tokens.
    tokens: &'a [Token],
    /// Lines of the file that belong to edits.
    changed: &'a mut [bool],
    /// Lines of the other file that belong to edits.
    others: &'a [bool],
    /// The current edit.
    own: Range<usize>,
    /// The edit of the other file at the same position, or an empty range there.
    other: Range<usize>,
    /// Steps so far: moves by one line, and lines of the edits of both files that they reach.
    steps: usize,
    /// Steps at most.
    limit: usize,
    /// Lines of the other file that were visited to find the position of an edit.
    visited: usize,
}

impl<'a> Slider<'a> {
    fn new(tokens: &'a [Token], changed: &'a mut [bool], others: &'a [bool]) -> Self {
        Self {
            tokens,
            changed,
            others,
            own: 0..0,
            other: 0..0,
            steps: 0,
            limit: STEPS_MIN + STEPS_PER_LINE * tokens.len(),
            visited: 0,
        }
    }

    /// Moves each edit, and returns the number of steps and of visited lines.
    fn run(mut self, mut best_end: impl FnMut(Range<u32>, u32) -> u32) -> usize {
        while self.steps < self.limit && self.go_to_next() {
            let (earliest_end, is_modification) = self.slide_to_last();
            if self.own.end == earliest_end {
                continue;
            }
            if is_modification {
                // The edit is moved to the one of the other file, so that both are one change.
                while self.other.is_empty() && self.slide_up() {}
            } else {
                let edit = self.own.start as u32..self.own.end as u32;
                let end = best_end(edit, earliest_end as u32);
                while self.own.end > end as usize && self.slide_up() {}
            }
        }
        self.steps + self.visited
    }

    /// Moves the current edit up, and then down, as far as possible, again if it was merged with
    /// another one. Returns its end at the first position, and true if an edit of the other file is
    /// at one of the positions.
    fn slide_to_last(&mut self) -> (usize, bool) {
        loop {
            while self.slide_up() {}
            let (earliest_end, lines) = (self.own.end, self.own.len());
            let mut is_modification = !self.other.is_empty();
            while self.slide_down() {
                is_modification |= !self.other.is_empty();
            }
            if lines == self.own.len() {
                return (earliest_end, is_modification);
            }
        }
    }

    /// Makes the next edit of the file the current one. Returns false after the last one.
    fn go_to_next(&mut self) -> bool {
        let unchanged = self.changed[self.own.end..].iter().position(|c| *c);
        let Some(unchanged) = unchanged else {
            return false;
        };
        let mut left = unchanged;
        loop {
            // Lines of the other file beyond the position of the edit do not matter.
            let same = self.others[self.other.end..]
                .iter()
                .take(left + 1)
                .take_while(|c| !**c)
                .count();
            self.visited += same;
            if same > left {
                let at = self.other.end + left;
                self.other = at..at;
                break;
            }
            left -= same;
            let start = self.other.end + same;
            self.other = start..end_of(self.others, start);
            if left == 0 {
                break;
            }
        }
        let start = self.own.end + unchanged;
        self.own = start..end_of(self.changed, start);
        true
    }

    /// Moves the current edit down by one line, and merges it with the edit that it reaches.
    fn slide_down(&mut self) -> bool {
        let Range { start, end } = self.own;
        if self.tokens.get(end) != self.tokens.get(start) || self.steps >= self.limit {
            return false;
        }
        (self.changed[start], self.changed[end]) = (false, true);
        self.own = start + 1..end_of(self.changed, end);
        let below = self.other.end + 1;
        self.other = below..end_of(self.others, below);
        self.steps += self.own.end - end + self.other.len();
        true
    }

    /// Moves the current edit up by one line, and merges it with the edit that it reaches.
    fn slide_up(&mut self) -> bool {
        let Range { start, end } = self.own;
        let is_last = start == 0 || self.tokens[start - 1] != self.tokens[end - 1];
        if is_last || self.steps >= self.limit {
            return false;
        }
        (self.changed[start - 1], self.changed[end - 1]) = (true, false);
        self.own = start_of(self.changed, start - 1)..end - 1;
        let above = self.other.start - 1;
        self.other = start_of(self.others, above)..above;
        self.steps += start - self.own.start + self.other.len();
        true
    }
}

/// Returns the end of the edit that starts at a line, which is the line itself if it is unchanged.
fn end_of(changed: &[bool], from: usize) -> usize {
    let rest = changed.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|c| **c).count()
}

/// Returns the start of the edit that ends before a line.
fn start_of(changed: &[bool], to: usize) -> usize {
    to - changed[..to].iter().rev().take_while(|c| **c).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use imara_diff::{Algorithm, InternedInput};

    /// Returns the edited lines of two texts before any is moved.
    fn compared(input: &InternedInput<&str>) -> (Diff, EditedLines) {
        let diff = Diff::compute(Algorithm::Myers, input);
        let lines = EditedLines::of(&diff, input.before.len(), input.after.len());
        (diff, lines)
    }

    #[test]
    fn edits_are_moved_as_the_library_moves_them() {
        let mut random = crate::diff::tests::Random(7);
        for _ in 0..3000 {
            let (old, new) = crate::diff::tests::random_edit(&mut random);
            let texts = [old, new].map(|t| String::from_utf8_lossy(&t).into_owned());
            let input = InternedInput::new(texts[0].as_str(), texts[1].as_str());
            let (mut diff, mut lines) = compared(&input);
            // Any choice of a position will do: here, the middle.
            diff.postprocess_with(
                &input.before,
                &input.after,
                |_: &[Token], edit: Range<u32>, end| u32::midpoint(edit.end, end),
            );
            lines.slide_removed(&input.before, |edit, end| u32::midpoint(edit.end, end));
            lines.slide_added(&input.after, |edit, end| u32::midpoint(edit.end, end));
            let theirs: Vec<_> = diff.hunks().map(|h| (h.before, h.after)).collect();
            assert_eq!(lines.edits(), theirs, "{texts:?}");
        }
    }

    #[test]
    fn slo_01_the_steps_that_move_edits_grow_with_the_lines_and_not_with_their_square() {
        let every_other = |n: usize| -> [String; 2] {
            [
                (0..n).map(|i| format!("line {i}\n")).collect(),
                (0..n).map(|i| format!("line {i}\nx {i}\n")).collect(),
            ]
        };
        let equal = |n: usize| -> [String; 2] { ["a\n".repeat(n), "a\na\nb\n".repeat(n)] };
        let merged = |n: usize| -> [String; 2] { ["a\nb\n".repeat(n), "a\na\n".repeat(n)] };
        for [old, new] in [every_other(20_000), equal(20_000), merged(20_000)] {
            let input = InternedInput::new(old.as_str(), new.as_str());
            let (_, mut lines) = compared(&input);
            let count = lines.clone();
            let steps = lines.slide_removed(&input.before, |edit, _| edit.end)
                + lines.slide_added(&input.after, |edit, _| edit.end);
            let all = input.before.len() + input.after.len();
            assert!(
                steps <= 2 * STEPS_MIN + STEPS_PER_LINE * all + all,
                "{steps}"
            );
            let number = |of: &[bool]| of.iter().filter(|c| **c).count();
            assert_eq!(number(&lines.added), number(&count.added));
            assert_eq!(number(&lines.removed), number(&count.removed));
        }
    }
}
