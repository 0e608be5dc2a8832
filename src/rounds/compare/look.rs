//! Reads files that a change does not show: files of the reviewed state that git is configured to
//! ignore, and files outside of the request.

use crate::wire::Finding;
use std::fmt::Debug;

/// Access to the reviewed state outside of its change. Used only for findings that are about to be
/// declared fixed.
pub trait UnshownFiles: Debug {
    /// Returns true if the request includes a file.
    fn selects(&self, file: &str) -> bool;

    /// Returns the changed files outside of the request, as a patch with secrets masked.
    fn left_out(&self) -> &[u8];

    /// Reads a file by its name in reports. With `is_shown`, the change has the file, so that only
    /// a different content is of interest.
    fn file(&self, file: &str, is_shown: bool) -> UnshownFile;

    /// Returns true if the rule of a finding detects exposed secrets.
    fn is_secret(&self, f: &Finding) -> bool;
}

/// The content of a file that the change does not show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnshownFile {
    /// The file does not exist, or the change shows all of it.
    Nothing,
    /// The file cannot be read, or is too large.
    Unreadable,
    /// Content with secrets masked, as in the stored change. `base` is the content without the
    /// change; empty if there is none.
    Text {
        now: Vec<u8>,
        base: Vec<u8>,
        reason: UnshownReason,
    },
}

/// The reason why an existing file is not in the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnshownReason {
    /// Git ignores it by configuration of this machine alone.
    Hidden,
    /// It is in the worktree, and the index is under review.
    Unstaged,
    /// A tracked `.gitignore` lists it, which is visible to reviewers.
    Ignored,
}
