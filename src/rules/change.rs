//! Rules over the change itself: modes, attributes, workflows, lockfiles, tests that vanish.

use super::report::Reporter;
use crate::diff::FileChange;
use crate::git::Change;

/// Looks at one changed file, after the text rules did.
pub(super) fn scan(_file: &FileChange, _out: &mut Reporter<'_>) {}

/// Looks at what only the whole change shows.
pub(super) fn scan_change(_change: &Change, _out: &mut Reporter<'_>) {}
