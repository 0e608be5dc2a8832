//! Whole files as changes: every line counts as added.

use super::{Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side};

/// Creates the change that adds a file.
pub fn added(path: RepoPath, content: Vec<u8>) -> FileChange {
    let body = Body::of_file(&path, None, Some(content), Attribute::Unset);
    let new = Side {
        path,
        mode: FileMode::Regular,
        id: None,
    };
    FileChange {
        entry: Entry {
            kind: ChangeKind::Added,
            old: None,
            new: Some(new),
        },
        body,
    }
}

/// Returns the lines of a whole file as a change would show them, with UTF-16 and UTF-32 decoded;
/// `None` if the file is not text.
pub fn text_of(path: &RepoPath, content: Vec<u8>) -> Option<Vec<u8>> {
    match Body::of_file(path, None, Some(content), Attribute::Unset) {
        // Both sides are empty.
        Body::Same => Some(Vec::new()),
        Body::Text(change) => Some(change.new.bytes),
        Body::Binary(_) | Body::Submodule { .. } => None,
    }
}
