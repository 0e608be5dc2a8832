//! Rules over the change itself: modes, attributes, workflows, lockfiles, tests that vanish.

use super::report::Reporter;
use crate::diff::{Entry, FileChange};

/// Looks at one changed file, after the text rules did.
pub(super) fn scan(_file: &FileChange, _out: &mut Reporter<'_>) {}

/// Looks at what only the whole change shows: its entries, in git's order, without content.
pub(super) fn scan_change(_entries: &[Entry], _out: &mut Reporter<'_>) {}
