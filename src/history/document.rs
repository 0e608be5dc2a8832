//! The files of a session: their names, their size limits, and the documents in them.

use super::LATEST;
use super::disk::StoreFolder;
use super::trouble::{Result, Trouble};
use crate::disposition;
use crate::review::decided::{OWN, PROPOSED};
use crate::wire;
use crate::wire::fixing::Fixes;
use crate::wire::stored::{self, StoredDocument, UnreadDocument};

pub(super) const REQUEST: &str = "request.json";
pub(super) const CHANGE: &str = "changes.diff";
pub(super) const REVIEW: &str = "review.json";
pub(super) const RESPONSE: &str = "response.json";
pub(super) const SEAL: &str = "seal.json";
pub(super) const COMPLETE: &str = "complete.json";
pub(super) const FIXES: &str = "fixes.json";

/// Returns the bytes of a file of the store, at most. Larger files are neither written nor read.
pub(super) fn most(name: &str) -> u64 {
    match name {
        CHANGE | REVIEW => 64 << 20,
        SEAL | LATEST => 64 << 10,
        OWN | PROPOSED => disposition::MAX_BYTES as u64,
        _ => 8 << 20,
    }
}

/// Returns the folder name of a round.
pub(super) fn round_name(round: u32) -> String {
    format!("round-{round}")
}

/// Returns the number of a round from its folder's name.
pub(super) fn round_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("round-")?.parse().ok()?;
    (name == round_name(number)).then_some(number)
}

/// Reads a document of the store.
pub(super) fn document<T: StoredDocument>(folder: &StoreFolder, name: &str) -> Result<T> {
    understand(&folder.read(name, most(name))?, || folder.shown(name))
}

/// Parses a document. `shown` returns the name of its file for messages.
pub(super) fn understand<T: StoredDocument>(bytes: &[u8], shown: impl Fn() -> String) -> Result<T> {
    stored::read(bytes).map_err(|e| match e {
        UnreadDocument::Future(version) => Trouble::Future(shown(), version),
        UnreadDocument::Malformed(_) if bytes.is_empty() => {
            Trouble::Damaged(shown(), "it is empty".to_owned())
        }
        UnreadDocument::Malformed(_) if bytes.iter().all(|b| *b == 0) => {
            Trouble::Damaged(shown(), "it contains only zeros".to_owned())
        }
        UnreadDocument::Malformed(why) => Trouble::Damaged(shown(), why),
    })
}

/// Returns a document, or `None` if it is missing.
pub(super) fn optional<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(Trouble::Absent) => Ok(None),
        read => read.map(Some),
    }
}

/// Returns a document of a session. A missing one means that the session is damaged.
pub(super) fn required<T>(read: Result<T>, folder: &StoreFolder, name: &str) -> Result<T> {
    match read {
        Err(Trouble::Absent) => Err(Trouble::Damaged(
            folder.shown(name),
            "it is missing".to_owned(),
        )),
        read => read,
    }
}

/// Formats a document as the store has it.
pub(super) fn text(document: &impl StoredDocument) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    wire::write(document, &mut bytes)
        .map_err(|e| Trouble::Failed("cannot write a document".to_owned(), e))?;
    Ok(bytes)
}

/// Reads the fixes of a session. No verdict depends on them, so an unreadable file counts as
/// missing.
pub(super) fn stored_fixes(folder: &StoreFolder) -> Option<Fixes> {
    optional(document(folder, FIXES)).unwrap_or_default()
}
