//! From two contents to a [`Body`]: the one place where it is decided how a change is shown.

use super::content::{self, Content};
use super::{BinaryChange, Body, Encoding, Hidden, Text, TextChange, hunks};

/// What git's `diff` attribute says of a path.
///
/// `diff=driver` counts as unset: the driver names a function line pattern or a program, and neither is
/// used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribute {
    #[default]
    Unset,
    /// `diff`: always text.
    Text,
    /// `-diff` or `binary`: never text.
    Binary,
}

/// How much of a binary's new side is kept.
const HEAD: usize = 512;

impl Body {
    /// Compares two contents; `None` is a side that does not exist.
    ///
    /// What git would show as text is text here, byte by byte. What git calls binary (a NUL in the
    /// first 8000 bytes of either side, or the attribute) is judged by its whole content, and is text
    /// that is [`Hidden`] when it can be read. A known UTF-16 or UTF-32 file is decoded whatever git calls it.
    pub fn between(old: Option<Vec<u8>>, new: Option<Vec<u8>>, attribute: Attribute) -> Self {
        let old = Input::new(old);
        let new = Input::new(new);
        if old.bytes == new.bytes {
            return Self::Same;
        }
        let git_hides = match attribute {
            Attribute::Unset => old.early_nul || new.early_nul,
            Attribute::Text => false,
            Attribute::Binary => true,
        };
        let judge = |side: &Input| {
            if !git_hides && content::marked(&side.bytes).is_none() {
                return Content::Text;
            }
            match content::judge(&side.bytes) {
                Content::Binary if !git_hides => Content::Text,
                judged => judged,
            }
        };
        let (old_content, new_content) = (judge(&old), judge(&new));
        // The side that a reader cares for: the new one, unless the file is gone.
        let (shown, shown_content) = if new.exists { (&new, new_content) } else { (&old, old_content) };
        if shown_content == Content::Binary {
            return Self::Binary(BinaryChange::of(&old, &new));
        }
        let hidden = match shown_content {
            _ if attribute == Attribute::Binary => Some(Hidden::Attribute),
            Content::Wide(_) => Some(Hidden::Utf16),
            _ if !git_hides && !matches!(old_content, Content::Wide(_)) => None,
            _ if shown.early_nul && attribute == Attribute::Unset => Some(Hidden::Nul),
            _ => Some(Hidden::OldSide),
        };
        let encoding = match shown_content {
            Content::Wide(encoding) => encoding,
            _ => Encoding::Bytes,
        };
        Self::Text(TextChange::between(old.into_text(old_content), new.into_text(new_content), encoding, hidden))
    }
}

impl TextChange {
    /// Compares two texts.
    pub(in crate::diff) fn between(old: Text, new: Text, encoding: Encoding, hidden: Option<Hidden>) -> Self {
        let hunks = hunks::between(&old.bytes, &new.bytes);
        Self { old, new, hunks, encoding, hidden }
    }
}

impl BinaryChange {
    fn of(old: &Input, new: &Input) -> Self {
        let size = |side: &Input| side.exists.then_some(side.bytes.len() as u64);
        Self { old_size: size(old), new_size: size(new), head: new.bytes[..new.bytes.len().min(HEAD)].to_vec() }
    }
}

/// One side's content.
struct Input {
    bytes: Vec<u8>,
    exists: bool,
    early_nul: bool,
}

impl Input {
    fn new(bytes: Option<Vec<u8>>) -> Self {
        let exists = bytes.is_some();
        let bytes = bytes.unwrap_or_default();
        let early_nul = content::has_early_nul(&bytes);
        Self { bytes, exists, early_nul }
    }

    fn into_text(self, content: Content) -> Text {
        match content {
            Content::Text => Text::of_file(self.bytes),
            Content::Wide(encoding) => Text::of_file(content::decode(self.bytes, encoding)),
            Content::Binary => Text::default(),
        }
    }
}
