//! Claims that are shown while other questions are open.

use crate::ai::anchor::ClaimCandidate;
use crate::finding;
use crate::untrusted::Inert;
use std::collections::HashSet;

/// Claims that are shown in one run, at most.
const MOST: usize = 20;

/// The claims that were already shown in a run.
#[derive(Debug, Default)]
pub(super) struct Early {
    shown: HashSet<(String, String)>,
}

impl Early {
    /// Returns a line for each claim that was not shown before. Several lenses can report the same
    /// claim.
    ///
    /// A claim is unconfirmed until all questions are answered: the second review can dispute it,
    /// and it can repeat a finding of the rules.
    pub(super) fn lines(&mut self, candidates: &[ClaimCandidate]) -> Vec<Inert> {
        let mut lines = Vec::new();
        for claim in candidates.iter().filter(|c| c.disputed.is_none()) {
            let place = finding::place(claim.draft.location.as_ref());
            let title = &claim.draft.title;
            if self.shown.len() < MOST && self.shown.insert((place.clone(), title.clone())) {
                let (severity, by) = (claim.severity(), &claim.backend);
                lines.push(Inert::new(format!(
                    "{place}: {severity} {title} ({by}, unconfirmed)"
                )));
            }
        }
        lines
    }
}
