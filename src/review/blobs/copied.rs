//! The lines of a blob that are copied from its base, and those that are not. Pure.

use crate::diff::{FileChange, LineNo};
use crate::finding::Finding;
use crate::git::CopiedPart;
use std::ops::Range;

/// The lines of a blob, compared with its base by the instructions of its delta.
pub(super) struct CopiedLines {
    /// Copied parts of which no two are one part.
    parts: Vec<CopiedPart>,
    /// Whole lines that are not copied as whole lines, in order, which do not touch each other.
    fresh: Vec<Range<usize>>,
}

impl CopiedLines {
    /// Compares a blob with its base.
    pub(super) fn new(data: &[u8], base: &[u8], copied: &[CopiedPart]) -> Self {
        let mut lines = Self {
            parts: joined(copied),
            fresh: Vec::new(),
        };
        let mut end = 0;
        for at in 0..lines.parts.len() {
            let part = lines.parts[at].clone();
            if end < part.start {
                lines.mark(data, end..part.start);
            }
            let is_line_start = |text: &[u8], at: usize| at == 0 || text[at - 1] == b'\n';
            // Removed lines make neighbours of the lines around them, as new ones do. Packs mostly
            // store an old version as a delta of a new one, from which added lines are removed.
            let base_end = lines.parts[..at].last().map_or(0, |p| p.base.end);
            let is_after_removed = end == part.start && base_end != part.base.start;
            if is_after_removed
                || !is_line_start(data, part.start)
                || !is_line_start(base, part.base.start)
            {
                lines.mark(data, part.start..part.start + 1);
            }
            end = part.start + part.base.len();
            let is_last_of_both = end == data.len() && part.base.end == base.len();
            if end > 0 && data[end - 1] != b'\n' && !is_last_of_both {
                lines.mark(data, end - 1..end);
            }
        }
        let is_end_removed = lines.parts.last().is_some_and(|p| p.base.end < base.len());
        if end < data.len() {
            lines.mark(data, end..data.len());
        } else if is_end_removed && end > 0 {
            lines.mark(data, end - 1..end);
        }
        lines
    }

    /// Returns the lines that the base does not have as whole lines.
    pub(super) fn fresh(&self) -> &[Range<usize>] {
        &self.fresh
    }

    /// Returns the places of whole lines of the base in the blob. A delta can copy lines several
    /// times, and not all of the copies need to be whole lines.
    pub(super) fn copies_of(
        &self,
        data: &[u8],
        lines: &Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> {
        let parts = self.parts.iter();
        let parts = parts.filter(move |p| p.base.start <= lines.start && lines.end <= p.base.end);
        let copies = parts.map(move |part| {
            let start = part.start + lines.start - part.base.start;
            start..start + lines.len()
        });
        copies.filter(move |copy| is_whole_lines(data, copy))
    }

    /// Marks the lines that contain a range.
    fn mark(&mut self, data: &[u8], range: Range<usize>) {
        let lines = whole_lines(data, &range);
        match self.fresh.last_mut() {
            Some(last) if lines.start <= last.end => {
                last.start = last.start.min(lines.start);
                last.end = last.end.max(lines.end);
            }
            _ => self.fresh.push(lines),
        }
    }
}

/// Returns true if a range consists of whole lines. The last one may be without its line end.
fn is_whole_lines(data: &[u8], range: &Range<usize>) -> bool {
    let is_line = range.start == 0 || data[range.start - 1] == b'\n';
    let ends = range.end == data.len() || data[range.end - 1] == b'\n' || data[range.end] == b'\n';
    is_line && ends && !range.is_empty()
}

/// Joins parts that follow each other in both texts. Git divides long copies.
fn joined(copied: &[CopiedPart]) -> Vec<CopiedPart> {
    let mut parts: Vec<CopiedPart> = Vec::with_capacity(copied.len());
    for part in copied.iter().filter(|p| !p.base.is_empty()) {
        match parts.last_mut() {
            Some(last)
                if last.start + last.base.len() == part.start
                    && last.base.end == part.base.start =>
            {
                last.base.end = part.base.end;
            }
            _ => parts.push(part.clone()),
        }
    }
    parts
}

/// Returns the whole lines that contain a range, which is not empty.
fn whole_lines(data: &[u8], range: &Range<usize>) -> Range<usize> {
    let start = memchr::memrchr(b'\n', &data[..range.start]).map_or(0, |i| i + 1);
    let end = match data[..range.end].last() {
        Some(b'\n') => range.end,
        _ => memchr::memchr(b'\n', &data[range.end..]).map_or(data.len(), |i| range.end + i + 1),
    };
    start..end
}

/// Returns whole lines with up to `count` lines above and below them.
pub(super) fn with_neighbours(data: &[u8], lines: &Range<usize>, count: usize) -> Range<usize> {
    let above = memchr::memrchr_iter(b'\n', &data[..lines.start]).nth(count);
    let below = memchr::memchr_iter(b'\n', &data[lines.end..]).nth(count.saturating_sub(1));
    let start = above.map_or(0, |i| i + 1);
    let end = below.map_or(data.len(), |i| lines.end + i + 1);
    start..end
}

/// Returns the bytes of a finding's lines with their line ends; `None` if it is about the whole
/// file.
pub(super) fn lines_of(finding: &Finding, file: &FileChange) -> Option<Range<usize>> {
    let (text, lines) = (&file.text()?.new, finding.lines()?);
    let start = |number: LineNo| {
        let line = text.line(number)?;
        Some(line.as_ptr() as usize - text.known().as_ptr() as usize)
    };
    let first = start(lines.first)?;
    let end = start(lines.last.plus(1)).unwrap_or(text.known().len());
    Some(first..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that are not copied, given the copied parts as their start in the blob and
    /// their range in the base.
    fn fresh<'d>(data: &'d str, base: &str, copied: &[(usize, Range<usize>)]) -> Vec<&'d str> {
        let copied: Vec<CopiedPart> = copied
            .iter()
            .map(|(start, base)| CopiedPart {
                start: *start,
                base: base.clone(),
            })
            .collect();
        for part in &copied {
            let end = part.start + part.base.len();
            assert_eq!(
                data[part.start..end],
                base[part.base.clone()],
                "the test is right"
            );
        }
        let lines = CopiedLines::new(data.as_bytes(), base.as_bytes(), &copied);
        lines.fresh().iter().map(|r| &data[r.clone()]).collect()
    }

    #[test]
    fn a_line_that_is_copied_as_a_whole_is_not_read_again() {
        assert!(fresh("a\nb\n", "a\nb\n", &[(0, 0..4)]).is_empty());
        assert!(fresh("a\nb\n", "a\nb\n", &[(0, 0..1), (1, 1..4)]).is_empty());
        assert_eq!(
            fresh("a\nX\nb\n", "a\nb\n", &[(0, 0..2), (4, 2..4)]),
            ["X\n"]
        );
    }

    #[test]
    fn a_line_that_is_copied_in_part_is_read_again() {
        // The start, the end or the middle of a line is new.
        assert_eq!(fresh("Xa\nb\n", "a\nb\n", &[(1, 0..4)]), ["Xa\n"]);
        assert_eq!(
            fresh("aX\nb\n", "a\nb\n", &[(0, 0..1), (2, 1..4)]),
            ["aX\n"]
        );
        // A removed part joins two lines, or shortens one.
        assert_eq!(fresh("ab\n", "a\nb\n", &[(0, 0..1), (1, 2..4)]), ["ab\n"]);
        assert_eq!(fresh("y\nb\n", "xy\nb\n", &[(0, 1..5)]), ["y\n"]);
        assert_eq!(fresh("x", "xy\n", &[(0, 0..1)]), ["x"]);
        // The rest of the last line is gone, but its end is that of the file.
        assert_eq!(fresh("a\nb", "a\nb\n", &[(0, 0..3)]), ["b"]);
    }

    #[test]
    fn lines_of_the_base_are_found_where_they_are_copied_to() {
        let (data, base) = (&b"new\na\nsecret\nb\n"[..], &b"a\nsecret\nb\n"[..]);
        let copied = [CopiedPart {
            start: 4,
            base: 0..11,
        }];
        let lines = CopiedLines::new(data, base, &copied);
        let copies: Vec<_> = lines.copies_of(data, &(2..9)).collect();
        assert_eq!(copies, vec![Range { start: 6, end: 13 }]);
        let copied = [CopiedPart {
            start: 4,
            base: 0..5,
        }];
        let lines = CopiedLines::new(b"new\na\nsec", base, &copied);
        assert_eq!(lines.copies_of(b"new\na\nsec", &(2..9)).count(), 0);
    }

    #[test]
    fn each_copy_of_a_line_is_found_where_it_is_a_whole_line() {
        let (data, base) = (
            &b"a\nxsecret\nsecret\nb\nsecret\n"[..],
            &b"a\nsecret\nb\n"[..],
        );
        let copied = [(0, 0..2), (3, 2..9), (10, 2..11), (19, 2..9)];
        let copied = copied.map(|(start, base)| CopiedPart { start, base });
        let lines = CopiedLines::new(data, base, &copied);
        let copies: Vec<_> = lines.copies_of(data, &(2..9)).collect();
        assert_eq!(copies, [10..17, 19..26]);
    }

    #[test]
    fn a_line_after_removed_lines_is_read_again() {
        assert_eq!(
            fresh("a\nc\nd\n", "a\nb\nc\nd\n", &[(0, 0..2), (2, 4..8)]),
            ["c\n"]
        );
        assert_eq!(fresh("b\nc\n", "a\nb\nc\n", &[(0, 2..6)]), ["b\n"]);
        assert_eq!(fresh("a\nb\n", "a\nb\nc\n", &[(0, 0..4)]), ["b\n"]);
        // Lines that change places are next to other lines than before.
        assert_eq!(
            fresh("b\na\n", "a\nb\n", &[(0, 2..4), (2, 0..2)]),
            ["b\na\n"]
        );
        // All of it can be removed.
        assert!(fresh("", "a\n", &[]).is_empty());
    }

    #[test]
    fn neighbours_are_whole_lines_within_the_text() {
        let data = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        assert_eq!(with_neighbours(data, &(8..10), 3), 2..16);
        assert_eq!(with_neighbours(data, &(0..2), 3), 0..8);
        assert_eq!(with_neighbours(data, &(16..18), 3), 10..18);
    }
}
