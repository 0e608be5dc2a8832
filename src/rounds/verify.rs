//! Decides whether findings are fixed, by a follow-up round of their review.

use crate::wire::stored::{ComparedFinding, Review, State};
use crate::wire::{self, Outcome};

/// The state of findings after a follow-up round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verified {
    /// IDs in the earlier round of the findings that are fixed.
    pub fixed: Vec<String>,
    /// IDs of the findings that are not fixed, with their state.
    pub open: Vec<(String, State)>,
    /// New findings that block.
    pub new: Vec<wire::Finding>,
    /// Parts that the round did not review.
    pub unreviewed: Vec<String>,
}

impl Verified {
    /// Returns true if all findings are fixed, no new finding blocks, and everything was reviewed.
    pub fn is_fixed(&self) -> bool {
        self.open.is_empty() && self.new.is_empty() && self.unreviewed.is_empty()
    }
}

/// Compares findings of an earlier round with the following round. Pure.
pub fn verified<'f>(
    findings: impl IntoIterator<Item = &'f wire::Finding>,
    round: &Review,
) -> Verified {
    let mut out = Verified::default();
    let entries: Vec<&ComparedFinding> = round.since.iter().flat_map(|s| &s.entries).collect();
    for f in findings {
        // The fingerprint differs if the finding still exists in changed lines.
        let mut entries = entries.iter();
        let entry = entries
            .find(|e| e.previous_id.as_ref() == Some(&f.id) || e.fingerprint == f.fingerprint);
        match entry.map(|e| e.state) {
            Some(State::Fixed) => out.fixed.push(f.id.clone()),
            Some(state) => out.open.push((f.id.clone(), state)),
            None => out.open.push((f.id.clone(), State::Unchecked)),
        }
    }
    let new = round
        .report
        .findings
        .iter()
        .filter(|f| f.blocking)
        .filter(|f| {
            let state = entries
                .iter()
                .find(|e| e.id.as_ref() == Some(&f.id))
                .map(|e| e.state);
            !matches!(
                state,
                Some(State::StillThere | State::Moved | State::Unchecked)
            )
        });
    out.new = new.cloned().collect();
    if round.outcome != Outcome::Reviewed {
        let failed = round.report.coverage.failed.iter().map(|f| match &f.file {
            Some(file) => format!("{file}: {}", f.reason),
            None => f.reason.clone(),
        });
        out.unreviewed = failed.collect();
        if out.unreviewed.is_empty() {
            out.unreviewed.push(wire::name(&round.outcome));
        }
    }
    out
}
