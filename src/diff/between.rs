//! Compares two contents into a [`Body`]. All decisions on how a change is shown are made here.

use super::content::{self, ContentClass, JudgedContent};
use super::{BinaryChange, Body, Encoding, Hidden, RepoPath, Text, TextChange, Undecoded, hunks};

/// Git's `diff` attribute of a path.
///
/// `diff=driver` counts as unset: the driver configures a function line pattern or a program, and
/// this program uses neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attribute {
    #[default]
    Unset,
    /// `diff`: always text.
    Text,
    /// `-diff` or `binary`: never text.
    Binary,
}

/// The contents of the old and the new side; `None` if the side does not exist.
pub type Sides = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Body {
    /// Compares the contents of two sides; `None` is a side that does not exist.
    ///
    /// Content that git shows as text becomes text here, byte by byte. Content that git treats as
    /// binary for its bytes (a NUL in the first 8000 of either side) is judged by its name and the
    /// whole content; if it is readable, it becomes text with a reason in [`Hidden`]. UTF-16 and
    /// UTF-32 are always decoded. The attribute only decides whether the text counts as hidden.
    pub fn of_file(
        path: &RepoPath,
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
        attribute: Attribute,
    ) -> Self {
        let old = SideContent::new(old);
        let new = SideContent::new(new);
        if old.bytes == new.bytes {
            return Self::Same;
        }
        let is_nul_early = old.early_nul || new.early_nul;
        let old_judged = content::judge_named(&old.bytes, path.as_bytes(), is_nul_early);
        let new_judged = content::judge_named(&new.bytes, path.as_bytes(), is_nul_early);
        // The side that a reviewer reads: the new one, unless the file was deleted.
        let (shown, judged) = if new.exists {
            (&new, &new_judged)
        } else {
            (&old, &old_judged)
        };
        if judged.content == ContentClass::Binary {
            return Self::Binary(BinaryChange::of(old, new));
        }
        let git_hides = match attribute {
            Attribute::Unset => is_nul_early,
            Attribute::Text => false,
            Attribute::Binary => true,
        };
        let hidden = match judged.content {
            _ if attribute == Attribute::Binary => Some(Hidden::Attribute),
            ContentClass::Wide(_) => Some(Hidden::Utf16),
            _ if !git_hides && !matches!(old_judged.content, ContentClass::Wide(_)) => None,
            _ if shown.early_nul && attribute == Attribute::Unset => Some(Hidden::Nul),
            _ => Some(Hidden::OldSide),
        };
        let encoding = match judged.content {
            ContentClass::Wide(encoding) => encoding,
            _ => Encoding::Bytes,
        };
        let undecoded = if new.exists {
            new_judged.undecoded.clone()
        } else {
            None
        };
        let narrow =
            has_narrow_part(&new, &new_judged).then(|| (old.without_nuls(), new.without_nuls()));
        let (old, new) = (
            old.into_text(old_judged.content),
            new.into_text(new_judged.content),
        );
        let mut change = TextChange::between(old, new, encoding, hidden);
        change.undecoded = undecoded;
        change
            .readings
            .extend(narrow.map(|(old, new)| TextChange::between(old, new, Encoding::Bytes, None)));
        Self::Text(change)
    }

    /// Compares two contents under a neutral name; see [`Body::of_file`].
    pub fn between(old: Option<Vec<u8>>, new: Option<Vec<u8>>, attribute: Attribute) -> Self {
        Self::of_file(&RepoPath::from("content.data"), old, new, attribute)
    }
}

impl Body {
    /// Adds the contents that a checkout writes in place of the blobs, which are scanned too, and
    /// the name of an unsupported encoding.
    pub fn add_checkouts(&mut self, path: &RepoPath, written: Vec<Sides>, unknown: Option<String>) {
        let bodies = written
            .into_iter()
            .map(|(old, new)| Self::of_file(path, old, new, Attribute::Unset));
        for text in bodies.filter_map(Self::into_text) {
            match self {
                Self::Text(own) if own.new.bytes == text.new.bytes => {}
                Self::Text(own) => own.readings.push(text),
                Self::Binary(_) => *self = Self::Text(text),
                Self::Same | Self::Submodule { .. } => {}
            }
        }
        let Some(name) = unknown else { return };
        match self {
            Self::Text(own) => own.undecoded = Some(Undecoded::Checkout(name)),
            Self::Binary(own) => own.undecoded = Some(Undecoded::Checkout(name)),
            Self::Same | Self::Submodule { .. } => {}
        }
    }

    fn into_text(self) -> Option<TextChange> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Returns true if a part of a UTF-16 or UTF-32 text may be text when read as bytes: its units are
/// two ASCII characters each.
///
/// An interpreter that reads raw bytes runs such a part. East Asian text has such units too.
fn has_narrow_part(side: &SideContent, judged: &JudgedContent) -> bool {
    const NARROW: usize = 8;
    let mut windows = side.bytes.windows(NARROW).step_by(NARROW / 2);
    matches!(judged.content, ContentClass::Wide(_))
        && windows.any(|w| {
            w.iter()
                .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
        })
}

impl TextChange {
    /// Compares two texts.
    pub(in crate::diff) fn between(
        old: Text,
        new: Text,
        encoding: Encoding,
        hidden: Option<Hidden>,
    ) -> Self {
        let hunks = hunks::between(&old.bytes, &new.bytes);
        Self {
            old,
            new,
            hunks,
            encoding,
            hidden,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

impl BinaryChange {
    fn of(old: SideContent, new: SideContent) -> Self {
        Self {
            old_size: old.size(),
            new_size: new.size(),
            old: old.bytes,
            new: new.bytes,
            undecoded: None,
        }
    }
}

/// The content of one side.
struct SideContent {
    bytes: Vec<u8>,
    exists: bool,
    early_nul: bool,
}

impl SideContent {
    fn new(bytes: Option<Vec<u8>>) -> Self {
        let exists = bytes.is_some();
        let bytes = bytes.unwrap_or_default();
        let early_nul = content::has_early_nul(&bytes);
        Self {
            bytes,
            exists,
            early_nul,
        }
    }

    /// Returns the number of bytes; `None` for a side that does not exist.
    fn size(&self) -> Option<u64> {
        self.exists.then_some(self.bytes.len() as u64)
    }

    /// Returns the bytes without NUL. This turns ASCII in UTF-16 or UTF-32 into plain ASCII.
    fn without_nuls(&self) -> Text {
        Text::of_file(self.bytes.iter().copied().filter(|b| *b != 0).collect())
    }

    fn into_text(self, content: ContentClass) -> Text {
        match content {
            ContentClass::Text => Text::of_file(self.bytes),
            ContentClass::Wide(encoding) => Text::of_file(content::decode(self.bytes, encoding)),
            ContentClass::Binary => Text::default(),
        }
    }
}
