//! What a change does not show: the files of the state under review that git was told not to look at, and what was not
//! asked for.

use crate::wire::Finding;
use std::fmt::Debug;

/// The state under review, beside its change. Asked only about findings that are about to be called fixed.
pub trait Look: Debug {
    /// Returns true if a file belongs to what was asked for.
    fn selects(&self, file: &str) -> bool;

    /// Returns, as a patch with its secrets masked, the files that differ and do not belong to what was asked for.
    fn left_out(&self) -> &[u8];

    /// Reads a file, named as reports do. `is_shown`: the change has it, so that only another text than the change
    /// shows tells something.
    fn file(&self, file: &str, is_shown: bool) -> Aside;

    /// Returns true if a finding is of a rule that finds exposed secrets.
    fn is_secret(&self, f: &Finding) -> bool;
}

/// A file that is beside the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// There is none, or the change tells all of it.
    Nothing,
    /// There is one that cannot be read, or is too much to read.
    Unreadable,
    /// Secrets masked, as in the stored change. `base`: what it is without the change; empty where there is none.
    Text { now: Vec<u8>, base: Vec<u8>, aside: Standing },
}

/// How a file comes to be there and not in the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Git was told on this machine alone not to look at it.
    Hidden,
    /// It is in the worktree, and what is reviewed is the index.
    Unstaged,
    /// A tracked `.gitignore` names it: whoever reads the change can see that.
    Ignored,
}
