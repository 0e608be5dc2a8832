//! Compares the files of a round with its seal. Pure.

use crate::wire;
use crate::wire::stored::{Seal, StoredDocument};

/// Returns the files that differ from the seal of a round, each with the reason. `now` is the seal
/// of the current files, and `path` the path of the stored seal.
pub(super) fn differences(path: &str, stored: &Seal, now: &Seal) -> Vec<(String, &'static str)> {
    let mut out = Vec::new();
    if now.head == stored.head {
        // The head covers the files and the previous head. The lists in the seal only say which
        // file changed, but their text must not change either.
        if now.files != stored.files || now.previous != stored.previous {
            out.push((path.to_owned(), "it was modified"));
        }
        return out;
    }
    for file in &now.files {
        match stored.files.iter().find(|f| f.name == file.name) {
            Some(sealed) if sealed.sha256 == file.sha256 => {}
            Some(_) => out.push((file.name.clone(), "it was modified")),
            None => out.push((
                file.name.clone(),
                "it was not there when the round was stored",
            )),
        }
    }
    for file in &stored.files {
        if !now.files.iter().any(|f| f.name == file.name) {
            out.push((file.name.clone(), "it was there when the round was stored"));
        }
    }
    if out.is_empty() {
        out.push((path.to_owned(), "its head is not that of the round"));
    }
    if now.previous != stored.previous {
        out.push((path.to_owned(), "it does not continue the chain"));
    }
    out
}

/// Returns true if a document is formatted exactly as this program writes it, so that every byte is
/// significant.
pub(super) fn is_as_written(document: &impl StoredDocument, bytes: &[u8]) -> bool {
    let mut again = Vec::with_capacity(bytes.len());
    wire::write(document, &mut again).is_ok() && again == bytes
}
