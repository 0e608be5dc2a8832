//! Decisions of people on findings: accepted, rejected or deferred.
//!
//! A decision is about a finding and the lines as they were: its entry has the fingerprint of the finding, and a digest of
//! the lines without masking, since findings that differ in a masked secret share a fingerprint. An entry holds until it
//! expires or the lines change. Entries are in two files of one format: the shared one of the repository, and that of the
//! store, which belongs to one person. Pure.

mod digest;
mod file;
mod weaker;

pub use digest::Digest;
pub use file::{Problem, parse, render};
pub use weaker::weaker;

use crate::finding::{Decision, Disposition, Finding, Severity};
use jiff::civil::Date;
use std::collections::BTreeMap;

/// The shared file, from the top of the repository.
pub const SHARED: &str = ".claude-reviewer/dispositions.toml";
/// Bytes of a file.
pub const MAX_BYTES: usize = 4 << 20;
/// What the rule IDs of claims of models start with.
const CLAIM: &str = "ai-";
/// Days after which a deferred finding is pending again, unless a date is given.
pub const DEFERRED_DAYS: i64 = 90;

/// A decision on one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub fingerprint: String,
    pub rule: String,
    /// As reports write paths.
    pub path: Option<String>,
    /// The first of the lines, secrets masked: for people who read the file.
    pub line: String,
    /// Of the lines without masking, or of the file if the finding has no lines. `None`: it is about the whole change.
    pub digest: Option<Digest>,
    pub decision: Decision,
    pub reason: String,
    pub owner: String,
    pub created: Date,
    /// The first day on which it no longer holds.
    pub expires: Option<Date>,
}

impl Entry {
    /// Returns true if the entry says enough: a critical finding is not rejected without a reason.
    fn is_enough(&self, finding: &Finding) -> bool {
        let needs_reason = self.decision == Decision::Rejected && finding.severity() == Severity::Critical;
        !needs_reason || !self.reason.trim().is_empty()
    }

    /// Returns true for a claim of a model.
    pub fn is_claim(&self) -> bool {
        self.rule.starts_with(CLAIM)
    }

    fn is_expired(&self, today: Date) -> bool {
        self.expires.is_some_and(|date| date <= today)
    }

    /// Returns what a finding with this entry says of it.
    pub fn disposition(&self) -> Disposition {
        Disposition {
            decision: self.decision,
            reason: self.reason.clone(),
            owner: self.owner.clone(),
            expires: self.expires,
        }
    }
}

/// The entries of the files that a review heeds.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    by_fingerprint: BTreeMap<String, Vec<Entry>>,
}

impl Entries {
    /// Joins the entries of several files.
    pub fn new(all: impl IntoIterator<Item = Entry>) -> Self {
        let mut out = Self::default();
        for entry in all {
            out.by_fingerprint.entry(entry.fingerprint.clone()).or_default().push(entry);
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.by_fingerprint.is_empty()
    }

    /// Returns the entries that reject claims of models and have not expired, in the order of their fingerprints.
    pub fn rejected_claims(&self, today: Date) -> impl Iterator<Item = &Entry> {
        let is_one = move |e: &&Entry| e.decision == Decision::Rejected && e.is_claim() && !e.is_expired(today);
        self.by_fingerprint.values().flatten().filter(is_one)
    }

    /// Returns true if an entry names the finding. Whether it holds depends on the lines.
    pub fn names(&self, finding: &Finding) -> bool {
        self.by_fingerprint.contains_key(finding.fingerprint().as_str())
    }

    /// Returns the decision that holds for a finding: the newest entry of its fingerprint that is about these lines and has
    /// not expired. `lines`: the lines of the finding without masking; `None`: it has none.
    pub fn of(&self, finding: &Finding, lines: Option<&[u8]>, today: Date) -> Option<Disposition> {
        self.entry(finding, lines, today).map(Entry::disposition)
    }

    /// Returns the entry behind [`Self::of`].
    pub fn entry(&self, finding: &Finding, lines: Option<&[u8]>, today: Date) -> Option<&Entry> {
        let entries = self.by_fingerprint.get(finding.fingerprint().as_str())?;
        let mut valid: Vec<&Entry> = entries
            .iter()
            .filter(|e| e.rule == finding.rule_id() && !e.is_expired(today) && e.is_enough(finding))
            .collect();
        valid.sort_by_key(|e| std::cmp::Reverse(e.created));
        let is_about = |entry: &&Entry| match (&entry.digest, lines) {
            (Some(digest), Some(lines)) => digest.is_of(lines),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        valid.into_iter().find(is_about)
    }
}

/// Adds an entry to those of a file. It replaces those of the same finding.
pub fn put(entries: &mut Vec<Entry>, entry: Entry) {
    entries.retain(|e| e.fingerprint != entry.fingerprint);
    entries.push(entry);
}

#[cfg(test)]
mod tests;
