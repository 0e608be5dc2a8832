//! The order in which the files of a tree are read.

use crate::ai::risk::{FileFacts, FileRisk, RiskBand};
use crate::git::{Change, YearOfChanges};
use std::cmp::Reverse;

/// Returns the positions of the entries of a tree in the order in which they are read: by their names
/// and commits, the riskiest first, so that a limit of time or memory leaves out the least risky.
pub(super) fn reading_order(change: &Change, year: &YearOfChanges) -> Vec<usize> {
    let mut order: Vec<usize> = (0..change.entries.len()).collect();
    order.sort_by_cached_key(|index| {
        let path = change.entries[*index].path();
        let risk = FileRisk::of(&FileFacts {
            path,
            text: &[],
            commits: year.commits.get(path).copied().unwrap_or_default(),
            findings: 0,
        });
        (risk.band == RiskBand::Last, Reverse(risk.score), *index)
    });
    order
}
