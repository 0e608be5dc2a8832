//! The lines around a finding, secrets masked.

use crate::diff::{Hunk, LineNo, TextChange};
use crate::finding::{Frame, FrameLine, LineSpan};
use crate::rules::RuleSet;

/// Lines shown before and after a finding.
const AROUND: u32 = 1;
/// Lines of a finding that are shown, at most.
const FRAME_LINES: u32 = 8;
/// Bytes of a line that the frame keeps, at most.
const FRAME_BYTES: usize = 1_000;

/// Extracts frames from one changed file. The first frame searches the file for secrets. The cost
/// of each further one does not depend on the size of the file.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    text: &'a TextChange,
    rules: &'a RuleSet,
    /// The lines of the last frame. Many findings can be in one line, and finding the end of a long
    /// line is slow.
    last: Vec<(LineNo, &'a [u8])>,
}

impl<'a> Frames<'a> {
    pub(super) fn of(text: &'a TextChange, rules: &'a RuleSet) -> Self {
        Self {
            text,
            rules,
            last: Vec::new(),
        }
    }

    /// Returns the lines around a finding; `None` if the change does not contain its first line.
    pub(super) fn around(&mut self, span: LineSpan) -> Option<Frame> {
        let at = self
            .text
            .hunks
            .partition_point(|h| end(h) <= span.first.get());
        let hunk = self
            .text
            .hunks
            .get(at)
            .filter(|h| h.new.start <= span.first.get())?;
        let last = span
            .last
            .get()
            .min(span.first.get().saturating_add(FRAME_LINES - 1));
        let first = span.first.get().saturating_sub(AROUND).max(hunk.new.start);
        let last = last.saturating_add(AROUND).min(end(hunk) - 1);
        let mut lines = Vec::new();
        let numbers = (first..=last).filter_map(LineNo::new);
        self.last = numbers.filter_map(|n| Some((n, self.whole(n)?))).collect();
        for (n, whole) in &self.last {
            let at = if *n == span.first {
                span.columns.map_or(0, |c| c.0 as usize)
            } else {
                0
            };
            lines.push(self.line(whole, at, is_added(hunk, *n)));
        }
        Some(Frame {
            first: LineNo::new(first)?,
            lines,
        })
    }

    fn whole(&self, n: LineNo) -> Option<&'a [u8]> {
        let known = self.last.iter().find(|(known, _)| *known == n);
        known.map_or_else(|| self.text.new.line(n), |(_, line)| Some(*line))
    }

    /// Returns the part of a line around a column, with its secrets masked.
    fn line(&self, whole: &[u8], at: usize, added: bool) -> FrameLine {
        let start = if whole.len() <= FRAME_BYTES {
            0
        } else {
            at.saturating_sub(FRAME_BYTES / 4).min(whole.len())
        };
        let part = &whole[start..whole.len().min(start + FRAME_BYTES)];
        let hidden = self
            .text
            .new
            .masked_part(part, &|text| self.rules.hidden(text));
        FrameLine {
            text: hidden.unwrap_or_default().into_owned(),
            skipped: start as u32,
            added,
        }
    }
}

/// Returns the number of the line after a hunk.
fn end(hunk: &Hunk) -> u32 {
    hunk.new.start.saturating_add(hunk.new.count)
}

/// Returns true if the change adds a line of the hunk.
fn is_added(hunk: &Hunk, line: LineNo) -> bool {
    let n = line.get();
    let i = hunk
        .edits
        .partition_point(|e| e.new.start.saturating_add(e.new.count) <= n);
    hunk.edits
        .get(i)
        .is_some_and(|e| e.new.start <= n && e.new.count > 0)
}
