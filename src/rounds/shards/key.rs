//! The facts that are equal in all shards of one review.

use super::GivenReport;
use crate::wire::{Policy, ReviewedSource};

/// The facts that the reports of all shards of a review share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReviewKey {
    source: ReviewedSource,
    policy: Policy,
    rules: String,
    /// Version of the program.
    pub(super) version: String,
    /// Number of shards.
    pub(super) of: u32,
    /// The base of the change governs.
    gate: bool,
    rules_only: bool,
    /// Digest of the divided files.
    state: String,
    /// Digest of the patterns that select files.
    selection: String,
    /// Digest of the options.
    options: String,
}

impl ReviewKey {
    /// Returns the facts of a report; `None` if it is not of a shard.
    fn of(given: &GivenReport) -> Option<Self> {
        let report = &given.report;
        let facts = report.merge.as_deref()?;
        Some(Self {
            // Jobs can name one source in different ways.
            source: ReviewedSource {
                label: None,
                ..report.source.clone()
            },
            policy: report.policy.clone(),
            rules: report.tool.rules_hash.clone(),
            version: report.tool.version.clone(),
            of: given.shard()?.of(),
            gate: facts.gate,
            rules_only: facts.rules_only,
            state: facts.state.clone(),
            selection: facts.selection.clone(),
            options: facts.options.clone(),
        })
    }

    /// Returns the facts that most reports of this version of the program share; of two with as
    /// many reports, those of the first one given. Without a report of this version, those of other
    /// versions. `None` if no report is of a shard.
    pub(super) fn of_most(given: &[GivenReport]) -> Option<Self> {
        let mut found: Vec<(Self, usize)> = Vec::new();
        for key in given.iter().filter_map(Self::of) {
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, n)) => *n += 1,
                None => found.push((key, 1)),
            }
        }
        let rank = |(key, n): &(Self, usize)| (key.version == env!("CARGO_PKG_VERSION"), *n);
        let most = found.iter().map(rank).max()?;
        let first = found.into_iter().find(|f| rank(f) == most)?;
        Some(first.0)
    }

    /// Returns true if a report has these facts.
    pub(super) fn is_of(&self, given: &GivenReport) -> bool {
        Self::of(given).as_ref() == Some(self)
    }

    /// Returns how a report differs, in words.
    pub(super) fn difference(&self, given: &GivenReport) -> String {
        let Some(other) = Self::of(given) else {
            return "not a shard".to_owned();
        };
        let ends = |s: &ReviewedSource| {
            let of_commits = (s.base.clone(), s.head.clone(), s.checked_out.clone());
            (of_commits, s.tree.clone())
        };
        let is_of_one_source =
            self.source.kind == other.source.kind && ends(&self.source) == ends(&other.source);
        let differences = [
            (self.version != other.version, "other version"),
            (
                (self.source.kind, self.source.history)
                    != (other.source.kind, other.source.history),
                "other source",
            ),
            (ends(&self.source) != ends(&other.source), "other revision"),
            (self.policy != other.policy, "other policy"),
            (self.rules != other.rules, "other rules"),
            (self.of != other.of, "other number of shards"),
            // The files of another revision are others in any case.
            (is_of_one_source && self.state != other.state, "other files"),
            (self.selection != other.selection, "other paths"),
            (self.gate != other.gate, "other gate mode"),
            (
                self.options != other.options && self.gate == other.gate
                    || self.rules_only != other.rules_only,
                "other options",
            ),
        ];
        let named = differences.into_iter().filter(|(differs, _)| *differs);
        let named: Vec<&str> = named.map(|(_, what)| what).collect();
        named.join(", ")
    }
}
