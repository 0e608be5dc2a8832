//! A change with its secrets hidden, for what is stored.

use super::{Hunk, Lines, Text, TextChange};
use std::ops::Range;
use std::sync::OnceLock;

/// What stands before a hunk and is looked at with it: the head of a private key may lie so far above its lines.
const ABOVE: usize = 64 << 10;

impl TextChange {
    /// Returns the change with its text replaced where `mask` hides something, as what git would show.
    ///
    /// `mask` is given the hunks with what stands before them, and keeps length and line ends.
    pub fn masked(&self, mask: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let side = |text: &Text, lines: fn(&Hunk) -> &Lines| {
            let mut bytes = text.bytes.clone();
            for range in windows(self.hunks.iter().map(|h| lines(h).bytes.clone())) {
                let masked = mask(&bytes[range.clone()]);
                if masked.len() == range.len() {
                    bytes[range].copy_from_slice(&masked);
                } else {
                    // Not what was promised: nothing of it is shown.
                    bytes[range].iter_mut().filter(|b| **b != b'\n').for_each(|b| *b = b'*');
                }
            }
            Text { bytes, runs: text.runs.clone(), complete: text.complete, index: OnceLock::new() }
        };
        let mut hunks = self.hunks.clone();
        for h in &mut hunks {
            h.section = mask(&h.section);
        }
        Self {
            old: side(&self.old, |h| &h.old),
            new: side(&self.new, |h| &h.new),
            hunks,
            encoding: self.encoding,
            hidden: None,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

/// Returns the ranges with what stands before them, those that touch as one.
fn windows(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for r in ranges.filter(|r| !r.is_empty()) {
        let start = r.start.saturating_sub(ABOVE);
        match out.last_mut() {
            Some(last) if start <= last.end => last.end = last.end.max(r.end),
            _ => out.push(start..r.end),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::code;

    #[test]
    fn what_is_masked_keeps_its_lines() {
        let change = code::added("a".into(), b"x = 1\nkey = abc\n".to_vec());
        let text = change.text().unwrap();
        let masked = text.masked(|t| t.iter().map(|b| if b"abc".contains(b) { b'*' } else { *b }).collect());
        let lines: Vec<_> =
            masked.lines(&masked.hunks[0]).map(|l| String::from_utf8_lossy(l.text).into_owned()).collect();
        assert_eq!(lines, ["x = 1\n", "key = ***\n"]);
        let broken = text.masked(|_| Vec::new());
        let lines: Vec<_> =
            broken.lines(&broken.hunks[0]).map(|l| String::from_utf8_lossy(l.text).into_owned()).collect();
        assert_eq!(lines, ["*****\n", "*********\n"]);
    }

    #[test]
    fn windows_that_touch_are_one() {
        assert_eq!(windows([0..0, 10..20, 30..40].into_iter()), *std::slice::from_ref(&(0..40)));
        let far = ABOVE * 4;
        assert_eq!(windows([10..20, far..far + 5].into_iter()), [0..20, far - ABOVE..far + 5]);
    }
}
