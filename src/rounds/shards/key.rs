//! What makes two reports shards of one review.

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
}

impl ReviewKey {
    /// Returns the facts of a report; `None` if it is not of a shard.
    fn of(given: &GivenReport) -> Option<Self> {
        let report = &given.report;
        Some(Self {
            source: report.source.clone(),
            policy: report.policy.clone(),
            rules: report.tool.rules_hash.clone(),
            version: report.tool.version.clone(),
            of: given.shard()?.of(),
        })
    }

    /// Returns the facts that most reports share; of two with as many reports, those of the first
    /// one given. `None` if no report is of a shard.
    pub(super) fn of_most(given: &[GivenReport]) -> Option<Self> {
        let mut found: Vec<(Self, usize)> = Vec::new();
        for key in given.iter().filter_map(Self::of) {
            match found.iter_mut().find(|(known, _)| *known == key) {
                Some((_, n)) => *n += 1,
                None => found.push((key, 1)),
            }
        }
        let most = found.iter().map(|(_, n)| *n).max()?;
        let first = found.into_iter().find(|(_, n)| *n == most)?;
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
        let ends = |s: &ReviewedSource| (s.base.clone(), s.head.clone(), s.tree.clone());
        let differences = [
            (self.version != other.version, "other version"),
            (self.source.kind != other.source.kind, "other source"),
            (ends(&self.source) != ends(&other.source), "other revision"),
            (self.policy != other.policy, "other policy"),
            (self.rules != other.rules, "other rules"),
            (self.of != other.of, "other number of shards"),
        ];
        let named = differences.into_iter().filter(|(differs, _)| *differs);
        let named: Vec<&str> = named.map(|(_, what)| what).collect();
        named.join(", ")
    }
}
