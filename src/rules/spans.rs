//! Ranges of a text: which of them overlap, and which lines they are in.

use std::ops::Range;

/// Bytes of a long line that are processed at once.
const PIECE: usize = 64 << 10;
/// Bytes that two pieces share, so that no short text is split.
const SHARED: usize = 256;

/// Splits a line into pieces that share some bytes and start and end between characters. A short
/// line is one piece.
pub(super) fn pieces(text: &[u8], line: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end_of_line = line.end;
    let mut next = Some(line.start);
    std::iter::from_fn(move || {
        let start = next?;
        let end = next_boundary(text, start + PIECE).min(end_of_line);
        next = (end < end_of_line).then(|| next_boundary(text, end - SHARED));
        Some(start..end)
    })
}

/// Returns the start of the first character from an offset.
fn next_boundary(text: &[u8], at: usize) -> usize {
    (at..at + 4)
        .find(|i| text.get(*i).is_none_or(|b| b & 0xc0 != 0x80))
        .unwrap_or(at)
}

/// The lines of a text, for ranges that mostly ascend.
#[derive(Debug)]
pub(super) struct LineCursor<'t> {
    text: &'t [u8],
    /// The line of the last range without its line end, and the number of lines before it.
    line: Range<usize>,
    index: u32,
}

impl<'t> LineCursor<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            line: 0..memchr::memchr(b'\n', text).unwrap_or(text.len()),
            index: 0,
        }
    }

    /// Returns the lines that contain a range, as one range, and the number of lines before them.
    pub(super) fn around(&mut self, range: &Range<usize>) -> (Range<usize>, u32) {
        // Words are decoded after runs, so the text is read twice.
        if range.start < self.line.start {
            *self = Self::of(self.text);
        }
        if range.start > self.line.end {
            let from = self.line.end;
            self.index += memchr::memchr_iter(b'\n', &self.text[from..range.start]).count() as u32;
            let start =
                memchr::memrchr(b'\n', &self.text[from..range.start]).map_or(0, |n| from + n + 1);
            self.line = start..start;
        }
        if range.end > self.line.end || self.line.is_empty() {
            let end = memchr::memchr(b'\n', &self.text[range.end..])
                .map_or(self.text.len(), |n| range.end + n);
            self.line.end = end;
        }
        (self.line.clone(), self.index)
    }
}

/// Parts of a text, in order and not overlapping.
#[derive(Debug)]
pub(super) struct Spans(Vec<Range<usize>>);

impl Spans {
    pub(super) fn of(spans: impl Iterator<Item = Range<usize>>) -> Self {
        let mut all: Vec<Range<usize>> = spans.collect();
        all.sort_unstable_by_key(|s| s.start);
        let mut out: Vec<Range<usize>> = Vec::with_capacity(all.len());
        for span in all {
            match out.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => out.push(span),
            }
        }
        Self(out)
    }

    /// Returns true if one of them overlaps a range.
    pub(super) fn overlap(&self, range: &Range<usize>) -> bool {
        let i = self.0.partition_point(|s| s.end <= range.start);
        self.0.get(i).is_some_and(|s| s.start < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_in_any_order() {
        let text = b"ab\n\ncdef\nx";
        fn expected(text: &[u8], at: usize) -> (Range<usize>, u32) {
            let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
            (
                start..end,
                text[..at].iter().filter(|b| **b == b'\n').count() as u32,
            )
        }
        let mut lines = LineCursor::of(text);
        for at in [0, 1, 4, 6, 7, 9, 5, 0, 9] {
            assert_eq!(lines.around(&(at..at + 1)), expected(text, at), "{at}");
        }
    }

    #[test]
    fn pieces_cover_a_line_and_cut_no_character() {
        let text = "é\u{200b}x".repeat(60_000);
        let line = 6..text.len() - 6;
        let all: Vec<_> = pieces(text.as_bytes(), &line).collect();
        assert!(all.len() > 3 && all.iter().all(|p| text.get(p.clone()).is_some()));
        assert_eq!(
            (all[0].start, all[all.len() - 1].end),
            (line.start, line.end)
        );
        assert!(
            all.windows(2)
                .all(|w| w[1].start < w[0].end && w[0].start < w[1].start)
        );
        assert_eq!(
            pieces(text.as_bytes(), &(3..9)).collect::<Vec<_>>().len(),
            1
        );
    }

    #[test]
    fn spans_overlap_what_shares_a_byte() {
        let spans = Spans::of([4..6, 0..2, 5..9].into_iter());
        let overlapping: Vec<usize> = (0..10).filter(|at| spans.overlap(&(*at..at + 1))).collect();
        assert_eq!(overlapping, [0, 1, 4, 5, 6, 7, 8]);
    }
}
