//! A change with its secrets hidden, for what is stored.

use super::{Text, TextChange};
use std::borrow::Cow;
use std::ops::Range;

/// What masks a text: it keeps length and line ends.
pub(super) type Mask<'m> = dyn Fn(&[u8]) -> Cow<'_, [u8]> + 'm;

impl Text {
    /// Returns all of the text as it may be shown or stored. A secret is known by what stands around it, so the text is
    /// masked as a whole, once; the first caller's mask counts.
    pub fn masked(&self, mask: &Mask<'_>) -> &[u8] {
        let made = self.masked.get_or_init(|| masked(&self.bytes, mask));
        made.as_deref().unwrap_or(&self.bytes)
    }

    /// Returns a part of the text as it may be shown; `None`: it is not a slice of this text.
    pub fn masked_part(&self, part: &[u8], mask: &Mask<'_>) -> Option<&[u8]> {
        let range = self.range_of(part)?;
        self.masked(mask).get(range)
    }

    /// Returns where a slice of this text stands.
    fn range_of(&self, part: &[u8]) -> Option<Range<usize>> {
        let at = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize)?;
        let end = at.checked_add(part.len())?;
        (end <= self.bytes.len()).then_some(at..end)
    }
}

/// Masks bytes; `None`: there is nothing to mask.
fn masked(bytes: &[u8], mask: &Mask<'_>) -> Option<Box<[u8]>> {
    match mask(bytes) {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) if masked.len() == bytes.len() => Some(masked.into()),
        // Not what was promised: nothing of it is shown.
        Cow::Owned(_) => Some(bytes.iter().map(|b| if *b == b'\n' { b'\n' } else { b'*' }).collect()),
    }
}

impl TextChange {
    /// Returns the change with its text as it may be stored, as what git would show.
    pub fn masked(&self, mask: &Mask<'_>) -> Self {
        let mut hunks = self.hunks.clone();
        for h in &mut hunks {
            h.section = mask(&h.section).into_owned();
        }
        Self {
            old: masked_side(&self.old, mask),
            new: masked_side(&self.new, mask),
            hunks,
            encoding: self.encoding,
            hidden: None,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

fn masked_side(text: &Text, mask: &Mask<'_>) -> Text {
    let bytes = text.masked(mask).to_vec();
    Text { bytes, runs: text.runs.clone(), complete: text.complete, ..Text::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::code;

    #[test]
    fn what_is_masked_keeps_its_lines() {
        let change = code::added("a".into(), b"x = 1\nkey = abc\n".to_vec());
        let text = change.text().unwrap();
        let masked = text.masked(&|t| t.iter().map(|b| if b"abc".contains(b) { b'*' } else { *b }).collect());
        let lines: Vec<_> =
            masked.lines(&masked.hunks[0]).map(|l| String::from_utf8_lossy(l.text).into_owned()).collect();
        assert_eq!(lines, ["x = 1\n", "key = ***\n"]);
        let change = code::added("a".into(), b"x = 1\nkey = abc\n".to_vec());
        let broken = change.text().unwrap().masked(&|_| Cow::Owned(Vec::new()));
        let lines: Vec<_> =
            broken.lines(&broken.hunks[0]).map(|l| String::from_utf8_lossy(l.text).into_owned()).collect();
        assert_eq!(lines, ["*****\n", "*********\n"]);
    }
}
