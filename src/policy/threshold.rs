//! Thresholds: lists of severities, of which the lowest one and all above it count.
//!
//! `["minor"]`, `["critical", "minor"]` and `["critical", "major", "minor"]` are the same
//! threshold. An empty list includes no severity.

use crate::finding::Severity;

/// The two thresholds of a version of the policy, at the top level or for a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThresholdPair<'a> {
    pub(super) block_on: &'a [Severity],
    pub(super) warn_on: &'a [Severity],
}

/// Returns true if a threshold includes a severity.
pub(super) fn includes(threshold: &[Severity], severity: Severity) -> bool {
    threshold.iter().any(|lowest| severity >= *lowest)
}

/// Returns the severities that the old threshold includes and the new one does not, worst first.
pub(super) fn no_longer_included<'a>(
    old: &'a [Severity],
    new: &'a [Severity],
) -> impl Iterator<Item = Severity> + 'a {
    Severity::ALL
        .into_iter()
        .filter(|s| includes(old, *s) && !includes(new, *s))
}

/// Returns the severities that only warned and now neither warn nor block, worst first. A severity
/// that blocked is left out: it is missing in the new `block_on`, which is reported for that key.
pub(super) fn no_longer_warning<'a>(
    old: ThresholdPair<'a>,
    new: ThresholdPair<'a>,
) -> impl Iterator<Item = Severity> + 'a {
    no_longer_included(old.warn_on, new.warn_on)
        .filter(move |s| !includes(old.block_on, *s) && !includes(new.block_on, *s))
}
