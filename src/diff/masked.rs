//! A change with its secrets masked, for the store.

use super::{Text, TextChange};
use std::borrow::Cow;
use std::ops::Range;

/// Finds the byte ranges of a text that have to be masked: in order, not overlapping.
pub(super) type MaskSearch<'m> = dyn Fn(&[u8]) -> Vec<Range<usize>> + 'm;

impl Text {
    /// Returns a part of the text with its secrets masked; `None` if it is not a slice of this
    /// text. The surrounding text can reveal a secret, so the whole text is searched, once; the
    /// result of the first caller's search is kept.
    pub fn masked_part<'p>(
        &self,
        part: &'p [u8],
        search: &MaskSearch<'_>,
    ) -> Option<Cow<'p, [u8]>> {
        let Range { start, end } = self.range_of(part)?;
        let hidden = self.hidden(search);
        let first = hidden.partition_point(|h| h.end <= start);
        let mut masked = Cow::Borrowed(part);
        for h in hidden[first..].iter().take_while(|h| h.start < end) {
            blank(
                masked.to_mut(),
                h.start.max(start) - start..h.end.min(end) - start,
            );
        }
        Some(masked)
    }

    /// Returns the position of a slice of this text.
    pub(in crate::diff) fn range_of(&self, part: &[u8]) -> Option<Range<usize>> {
        let at = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        let end = at.checked_add(part.len())?;
        (end <= self.bytes.len()).then_some(at..end)
    }

    fn hidden(&self, search: &MaskSearch<'_>) -> &[Range<usize>] {
        self.hidden.get_or_init(|| search(&self.bytes).into())
    }

    fn masked(&self, search: &MaskSearch<'_>) -> Text {
        let mut bytes = self.bytes.clone();
        blank_all(&mut bytes, self.hidden(search));
        Text {
            bytes,
            runs: self.runs.clone(),
            complete: self.complete,
            ..Text::default()
        }
    }
}

/// Overwrites ranges of a text with `*`, except line ends, so that lines and columns do not move.
pub(crate) fn blank_all(text: &mut [u8], hidden: &[Range<usize>]) {
    hidden.iter().for_each(|h| blank(text, h.clone()));
}

fn blank(text: &mut [u8], span: Range<usize>) {
    for b in &mut text[span] {
        if !matches!(b, b'\n' | b'\r') {
            *b = b'*';
        }
    }
}

impl TextChange {
    /// Returns the change with its text masked, in the form that git would show.
    pub fn masked(&self, search: &MaskSearch<'_>) -> Self {
        let mut hunks = self.hunks.clone();
        for h in &mut hunks {
            let hidden = search(&h.section);
            blank_all(&mut h.section, &hidden);
        }
        Self {
            old: self.old.masked(search),
            new: self.new.masked(search),
            hunks,
            encoding: self.encoding,
            hidden: None,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::code;

    /// Finds every run of `abc`.
    fn search(text: &[u8]) -> Vec<Range<usize>> {
        text.windows(3)
            .enumerate()
            .filter(|(_, w)| w == b"abc")
            .map(|(i, _)| i..i + 3)
            .collect()
    }

    #[test]
    fn what_is_masked_keeps_its_lines() {
        let change = code::added("a".into(), b"x = 1\nkey = abc\n".to_vec());
        let masked = change.text().unwrap().masked(&search);
        let lines: Vec<_> = masked
            .lines(&masked.hunks[0])
            .map(|l| String::from_utf8_lossy(l.text).into_owned())
            .collect();
        assert_eq!(lines, ["x = 1\n", "key = ***\n"]);
    }

    #[test]
    fn a_part_is_masked_where_it_overlaps_a_secret() {
        let change = code::added("a".into(), b"abc 1 abc 2 abc\n".to_vec());
        let text = &change.text().unwrap().new;
        for (range, masked) in [
            (0..16, "*** 1 *** 2 ***\n"),
            (2..7, "* 1 *"),
            (3..6, " 1 "),
            (7..8, "*"),
            (13..16, "**\n"),
        ] {
            let part = text.masked_part(&text.bytes[range], &search).unwrap();
            assert_eq!(String::from_utf8_lossy(&part), masked);
        }
        assert!(text.masked_part(b"abc", &search).is_none());
    }
}
