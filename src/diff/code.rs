//! Whole files as changes: every line counts as added.

use super::{Attribute, Body, ChangeKind, Entry, FileChange, FileMode, RepoPath, Side};

/// Makes the change that adds a file.
pub fn added(path: RepoPath, content: Vec<u8>) -> FileChange {
    let new = Side { path, mode: FileMode::Regular, id: None };
    FileChange {
        entry: Entry { kind: ChangeKind::Added, old: None, new: Some(new) },
        body: Body::between(None, Some(content), Attribute::Unset),
    }
}
