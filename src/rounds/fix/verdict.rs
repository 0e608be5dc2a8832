//! Decides whether the follow-up review accepts a fix. Pure.

use crate::ai::ask::Spent;
use crate::rounds::Done;
use crate::rounds::verify::verified;
use crate::wire;
use crate::wire::fixing::AttemptVerdict;
use crate::wire::stored::State;
use std::collections::BTreeSet;

/// The follow-up review of a copy.
#[derive(Debug)]
pub(super) struct Verification {
    done: Done,
}

impl Verification {
    /// Wraps the round that reviewed a fix.
    pub(super) fn new(done: Done) -> Self {
        Self { done }
    }

    /// Returns the findings of the review.
    pub(super) fn findings(&self) -> impl Iterator<Item = &wire::Finding> {
        self.done.stored.report.findings.iter()
    }

    /// Returns the IDs of the findings that are fixed.
    pub(super) fn fixed(&self, findings: &[wire::Finding]) -> Vec<String> {
        verified(findings, &self.done.stored).fixed
    }

    /// Returns the cost of the review.
    pub(super) fn usage(&self) -> impl Iterator<Item = Spent> {
        self.done.review.models.usage.iter().map(|u| u.spent)
    }

    /// Decides on the fix: its findings must be gone, and no new finding may block. `known` has the
    /// fingerprints of findings in the worktree before the fix.
    pub(super) fn verdict(
        &self,
        findings: &[wire::Finding],
        known: &BTreeSet<String>,
    ) -> (AttemptVerdict, Vec<String>) {
        let verified = verified(findings, &self.done.stored);
        let (unchecked, open): (Vec<_>, Vec<_>) = verified
            .open
            .iter()
            .partition(|(_, state)| *state == State::Unchecked);
        let mut reasons: Vec<String> = open.into_iter().map(told).collect();
        reasons.extend(
            verified
                .new
                .iter()
                .filter(|f| !known.contains(&f.fingerprint))
                .map(|f| {
                    let file = f.file.as_deref().unwrap_or("the whole change");
                    let line = f.line.map(|line| format!(":{line}")).unwrap_or_default();
                    format!(
                        "new and blocking: {} at {file}{line}: {}: {}",
                        f.rule_id, f.title, f.message
                    )
                }),
        );
        if !reasons.is_empty() {
            return (AttemptVerdict::Rejected, reasons);
        }
        // A fix may revert the whole change.
        let is_empty = self.done.stored.outcome == wire::Outcome::NothingToReview;
        let unreviewed = verified.unreviewed.iter().filter(|_| !is_empty);
        let mut missing: Vec<String> = unreviewed
            .map(|what| format!("not reviewed: {what}"))
            .collect();
        missing.extend(unchecked.into_iter().map(told));
        if missing.is_empty() {
            (AttemptVerdict::Verified, missing)
        } else {
            (AttemptVerdict::Unverified, missing)
        }
    }
}

/// Formats the ID of a finding with its state.
fn told((id, state): &(String, State)) -> String {
    format!("{id} is {}", wire::name(state).replace('_', " "))
}
