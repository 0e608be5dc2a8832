//! Merges a fix with later edits of the same file: three ways, by lines. Pure.

use crate::diff;
use std::ops::Range;

/// An edit of the base: a range of lines, and their replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReplacedLines<'t> {
    lines: Range<usize>,
    new: Vec<&'t [u8]>,
}

/// Returns the text with the edits of both sides, or `None` if both edit the same or adjacent
/// lines.
pub(super) fn merged(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if ours == base || ours == theirs {
        return Some(theirs.to_vec());
    }
    if theirs == base {
        return Some(ours.to_vec());
    }
    let lines = lines(base);
    let (mut own, mut other) = (edits(base, ours), edits(base, theirs));
    own.retain(|edit| !other.contains(edit));
    if own.iter().any(|a| other.iter().any(|b| a.touches(b))) {
        return None;
    }
    own.append(&mut other);
    own.sort_by_key(|edit| (edit.lines.start, edit.lines.end));
    let mut out: Vec<&[u8]> = Vec::new();
    let mut at = 0;
    for edit in own {
        out.extend(lines.get(at..edit.lines.start)?);
        out.extend(edit.new);
        at = edit.lines.end;
    }
    out.extend(lines.get(at..)?);
    Some(out.concat())
}

impl ReplacedLines<'_> {
    /// Returns true if two edits share a line, or are next to each other.
    fn touches(&self, other: &Self) -> bool {
        self.lines.start <= other.lines.end && other.lines.start <= self.lines.end
    }
}

/// Returns the lines of a text, each with its line ending.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|b| *b == b'\n').collect()
}

/// Returns the edits that turn the base into one side.
fn edits<'t>(base: &[u8], side: &'t [u8]) -> Vec<ReplacedLines<'t>> {
    let new = lines(side);
    let replaced = diff::replaced(base, side).into_iter();
    let edits = replaced.map(|(from, to)| ReplacedLines {
        lines: indices(&from),
        new: new.get(indices(&to)).unwrap_or_default().to_vec(),
    });
    edits.collect()
}

/// Converts indices of lines.
fn indices(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(base: &str, ours: &str, theirs: &str) -> Option<String> {
        merged(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())
            .map(|t| String::from_utf8(t).unwrap())
    }

    #[test]
    fn edits_of_other_lines_survive() {
        let base = "a\nb\nc\nd\ne\n";
        assert_eq!(
            of(base, "a\nb\nc\nd\nE\n", "A\nb\nc\nd\ne\n").unwrap(),
            "A\nb\nc\nd\nE\n"
        );
        assert_eq!(
            of(base, "0\na\nb\nc\nd\ne\n", "a\nb\nc\ne\n").unwrap(),
            "0\na\nb\nc\ne\n"
        );
        assert_eq!(of(base, base, "x\n").unwrap(), "x\n");
        assert_eq!(
            of(base, "a\nB\nc\nd\ne\n", "a\nB\nc\nd\nE\n").unwrap(),
            "a\nB\nc\nd\nE\n",
            "the same edit twice"
        );
        assert_eq!(
            of("a\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nc\r\n").unwrap(),
            "A\r\nb\r\nC\r\n"
        );
    }

    #[test]
    fn edits_of_the_same_or_neighbouring_lines_conflict() {
        let base = "a\nb\nc\n";
        assert_eq!(of(base, "a\nx\nc\n", "a\ny\nc\n"), None);
        assert_eq!(of(base, "a\nx\nc\n", "a\nb\ny\n"), None);
        assert_eq!(of(base, "a\nx\nb\nc\n", "a\ny\nb\nc\n"), None);
        assert_eq!(of(base, "", "a\ny\nc\n"), None);
    }
}
