//! The lines around a finding, secrets masked.

use crate::diff::{Hunk, LineNo, TextChange};
use crate::finding::{Frame, FrameLine, LineSpan};
use crate::rules::{self, RuleSet};

/// Lines shown before and after a finding.
const AROUND: u32 = 1;
/// Lines of a finding that are shown at most.
const FRAME_LINES: u32 = 8;
/// Bytes of a line that are kept for the frame.
const FRAME_BYTES: usize = 1_000;
/// How far above a frame the header of a private key is looked for.
const KEY_LINES: u32 = 400;

/// Cuts frames out of one changed file. Each takes a time that does not depend on the size of the file.
#[derive(Debug)]
pub(super) struct Frames<'a> {
    text: &'a TextChange,
    rules: &'a RuleSet,
    /// The numbers of the lines that speak of a private key; made for the first frame.
    keys: Option<Vec<u32>>,
}

impl<'a> Frames<'a> {
    pub(super) fn of(text: &'a TextChange, rules: &'a RuleSet) -> Self {
        Self { text, rules, keys: None }
    }

    /// Returns the lines around a finding; `None` where the change does not show its first line.
    pub(super) fn around(&mut self, span: LineSpan) -> Option<Frame> {
        let at = self.text.hunks.partition_point(|h| end(h) <= span.first.get());
        let hunk = self.text.hunks.get(at).filter(|h| h.new.start <= span.first.get())?;
        let last = span.last.get().min(span.first.get().saturating_add(FRAME_LINES - 1));
        let first = span.first.get().saturating_sub(AROUND).max(hunk.new.start);
        let last = last.saturating_add(AROUND).min(end(hunk) - 1);
        let mut lines = Vec::new();
        for n in (first..=last).filter_map(LineNo::new) {
            let at = if n == span.first { span.columns.map_or(0, |c| c.0 as usize) } else { 0 };
            let Some(whole) = self.text.new.line(n) else { continue };
            lines.push(self.line(whole, at, is_added(hunk, n)));
        }
        self.hide_keys(hunk, first, last, &mut lines);
        Some(Frame { first: LineNo::new(first)?, lines })
    }

    /// Returns the part of a line around a column, masked with what stands around the cut, so that a secret that is
    /// cut in two is still seen.
    fn line(&self, whole: &[u8], at: usize, added: bool) -> FrameLine {
        let start = if whole.len() <= FRAME_BYTES { 0 } else { at.saturating_sub(FRAME_BYTES / 4).min(whole.len()) };
        let end = whole.len().min(start + FRAME_BYTES);
        let margin = start.saturating_sub(FRAME_BYTES)..whole.len().min(end + FRAME_BYTES);
        let masked = self.rules.mask(&whole[margin.clone()]);
        FrameLine { text: masked[start - margin.start..end - margin.start].to_vec(), skipped: start as u32, added }
    }

    /// Hides the lines of a private key's body. It is known by its edges only, which may be far above.
    fn hide_keys(&mut self, hunk: &Hunk, first: u32, last: u32, lines: &mut [FrameLine]) {
        let from = first.saturating_sub(KEY_LINES).max(hunk.new.start);
        let text = self.text;
        let keys = self.keys.get_or_insert_with(|| key_edges(text));
        let near = keys.get(keys.partition_point(|n| *n < from));
        if near.is_none_or(|n| *n > last) {
            return;
        }
        let clipped = |n: LineNo| text.new.line(n).map(|l| &l[..l.len().min(FRAME_BYTES)]);
        let above: Vec<&[u8]> = (from..=last).filter_map(LineNo::new).filter_map(clipped).collect();
        let hidden = rules::key_lines(&above);
        let shown = hidden.len().saturating_sub(lines.len());
        for (line, _) in lines.iter_mut().zip(&hidden[shown..]).filter(|(_, hidden)| **hidden) {
            rules::hide_body(&mut line.text);
        }
    }
}

/// Returns the number of the line after a hunk's last one.
fn end(hunk: &Hunk) -> u32 {
    hunk.new.start.saturating_add(hunk.new.count)
}

/// Returns true if the change adds a line of the hunk.
fn is_added(hunk: &Hunk, line: LineNo) -> bool {
    let n = line.get();
    let i = hunk.edits.partition_point(|e| e.new.start.saturating_add(e.new.count) <= n);
    hunk.edits.get(i).is_some_and(|e| e.new.start <= n && e.new.count > 0)
}

/// Returns the numbers of the new lines, in order, that hold the edge of a private key.
fn key_edges(text: &TextChange) -> Vec<u32> {
    let mut out = Vec::new();
    for hunk in &text.hunks {
        let (mut number, mut counted) = (hunk.new.start, 0);
        let bytes = text.new.slice(&hunk.new);
        for at in memchr::memmem::find_iter(bytes, b"PRIVATE KEY") {
            number = number.saturating_add(memchr::memchr_iter(b'\n', &bytes[counted..at]).count() as u32);
            counted = at;
            if out.last() != Some(&number) {
                out.push(number);
            }
        }
    }
    out
}
