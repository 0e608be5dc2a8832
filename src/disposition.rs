//! Decisions of people on findings: accepted, rejected or deferred.
//!
//! A decision is bound to a finding and its lines: the entry has the fingerprint of the finding,
//! and a digest of the unmasked lines, because findings that differ only in a masked secret share a
//! fingerprint. An entry applies until it expires, the lines change, or the file gets another copy
//! of them. There are two files of one format: the shared one in the repository, and the one in the
//! store, which belongs to one person. Pure.

mod comments;
mod digest;
mod file;
mod memory;
mod occurrence;
mod weaker;

pub use digest::{Digest, forget, memory_text, of_all, remember};
pub use file::{DispositionProblem, Sheet, parse, render};
pub use memory::Memory;
pub use occurrence::{DecidedContent, Occurrence};
pub use weaker::weaker;

use crate::finding::{Decision, Disposition, Finding, Severity};
use jiff::civil::Date;
use std::collections::{BTreeMap, BTreeSet};

/// Path of the shared file, relative to the top of the repository.
pub const SHARED: &str = ".claude-reviewer/dispositions.toml";
/// Bytes of a file, at most.
pub const MAX_BYTES: usize = 4 << 20;
/// Prefix of the rule IDs of claims of models.
const CLAIM: &str = "ai-";
/// Days after which a deferred finding is pending again, unless a date is given.
pub const DEFERRED_DAYS: i64 = 90;

/// A decision on one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionEntry {
    pub fingerprint: String,
    pub rule: String,
    /// Path in the form of reports.
    pub path: Option<String>,
    /// The first of the lines, secrets masked, for readers of the file.
    pub line: String,
    /// Digest of the unmasked lines, or of the file for a finding without lines. `None` for a
    /// finding about the whole change.
    pub digest: Option<Digest>,
    /// The occurrence among equal texts of the file. The fingerprint does not identify it: its
    /// ordinal counts the findings of one change.
    pub occurrence: Occurrence,
    pub decision: Decision,
    pub reason: String,
    pub owner: String,
    pub created: Date,
    /// The first day on which the entry no longer applies.
    pub expires: Option<Date>,
}

impl DecisionEntry {
    /// Returns true if the entry is sufficient: rejecting a critical finding needs a reason.
    fn is_enough(&self, finding: &Finding) -> bool {
        let needs_reason =
            self.decision == Decision::Rejected && finding.severity() == Severity::Critical;
        !needs_reason || !self.reason.trim().is_empty()
    }

    /// Returns true for a claim of a model.
    pub fn is_claim(&self) -> bool {
        self.rule.starts_with(CLAIM)
    }

    /// Returns true if the entry rejects a claim of a model, and has not expired.
    fn rejects_claim(&self, today: Date) -> bool {
        self.decision == Decision::Rejected && self.is_claim() && !self.is_expired(today)
    }

    /// Returns true if the entry is about this content, at this occurrence.
    fn is_about(&self, content: &DecidedContent) -> bool {
        self.occurrence == content.occurrence
            && self.digest.as_ref().is_some_and(|d| d.is_of(&content.text))
    }

    /// Returns true if the decision no longer applies on a day.
    pub fn is_expired(&self, today: Date) -> bool {
        self.expires.is_some_and(|date| date <= today)
    }

    /// Returns the decision in the form of a finding.
    pub fn disposition(&self) -> Disposition {
        Disposition {
            decision: self.decision,
            reason: self.reason.clone(),
            owner: self.owner.clone(),
            expires: self.expires,
        }
    }
}

/// The entries that a review uses.
#[derive(Clone, Debug, Default)]
pub struct DecisionEntries {
    by_fingerprint: BTreeMap<String, Vec<DecisionEntry>>,
    /// Rules with an entry about one of several equal texts.
    repeated: BTreeSet<String>,
    /// Other versions of the file. A finding is dismissed only if each of them dismisses it too.
    also: Vec<Self>,
}

impl DecisionEntries {
    /// Merges the entries of several files.
    pub fn new(all: impl IntoIterator<Item = DecisionEntry>) -> Self {
        let mut out = Self::default();
        for entry in all {
            if entry.occurrence.total > 1 {
                out.repeated.insert(entry.rule.clone());
            }
            out.by_fingerprint
                .entry(entry.fingerprint.clone())
                .or_default()
                .push(entry);
        }
        out
    }

    /// Requires that another version of the file dismisses findings too. Decisions that a finding
    /// is right stay.
    #[must_use]
    pub fn agreed_by(mut self, other: Self) -> Self {
        self.also.push(other);
        self
    }

    /// Returns the entries that dismiss findings and have no dismissing entry for the same finding
    /// in another version.
    pub fn missing_from<'e>(&'e self, other: &'e Self) -> impl Iterator<Item = &'e DecisionEntry> {
        self.by_fingerprint
            .values()
            .flatten()
            .filter(move |e| sets_aside(e) && !other.same(e).any(sets_aside))
    }

    /// Returns the entries with the fingerprint of another version's entry.
    fn same(&self, other: &DecisionEntry) -> impl Iterator<Item = &DecisionEntry> {
        self.by_fingerprint
            .get(&other.fingerprint)
            .into_iter()
            .flatten()
    }

    /// Returns true if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.by_fingerprint.is_empty()
    }

    /// Returns the entries that reject claims of models and have not expired, in the order of their
    /// fingerprints.
    pub fn rejected_claims(&self, today: Date) -> impl Iterator<Item = &DecisionEntry> {
        self.by_fingerprint
            .values()
            .flatten()
            .filter(move |e| self.is_rejected_claim(e, today))
    }

    /// Returns true if an entry rejects a claim of a model on a day, and every other file that must
    /// agree has it too.
    fn is_rejected_claim(&self, e: &DecisionEntry, today: Date) -> bool {
        e.rejects_claim(today)
            && self
                .also
                .iter()
                .all(|other| other.same(e).any(|e| e.rejects_claim(today)))
    }

    /// Returns true if an entry may apply to the finding. The lines decide whether it does.
    pub fn names(&self, finding: &Finding) -> bool {
        self.by_fingerprint
            .contains_key(finding.fingerprint().as_str())
            || self.repeated.contains(finding.rule_id())
    }

    /// Returns the decision that applies to a finding: that of the newest unexpired entry about
    /// this content. `content` is the content of the finding; `None` for the whole change.
    pub fn of(
        &self,
        finding: &Finding,
        content: Option<&DecidedContent>,
        today: Date,
    ) -> Option<Disposition> {
        self.entry(finding, content, today)
            .map(DecisionEntry::disposition)
    }

    /// Returns the entry of the decision that [`Self::of`] returns.
    pub fn entry(
        &self,
        finding: &Finding,
        content: Option<&DecidedContent>,
        today: Date,
    ) -> Option<&DecisionEntry> {
        let entries = self.holding(finding, content, today);
        let entry = entries
            .into_iter()
            .min_by_key(|e| e.expires.unwrap_or(Date::MAX))?;
        let counts = !entry.decision.sets_aside()
            || self
                .also
                .iter()
                .all(|other| other.sets_aside(finding, content, today));
        counts.then_some(entry)
    }

    /// Returns true if the valid entry for a finding rejects or defers it.
    fn sets_aside(&self, finding: &Finding, content: Option<&DecidedContent>, today: Date) -> bool {
        self.entry(finding, content, today)
            .is_some_and(|e| e.decision.sets_aside())
    }

    /// Returns the entries of the decision that applies to a finding: one, or one for each copy of
    /// a text of which the file has fewer copies now.
    pub fn holding(
        &self,
        finding: &Finding,
        content: Option<&DecidedContent>,
        today: Date,
    ) -> Vec<&DecisionEntry> {
        let mut valid = self.candidates(finding);
        valid.retain(|e| {
            e.rule == finding.rule_id() && !e.is_expired(today) && e.is_enough(finding)
        });
        // An entry with a future date could always be the newest, so it counts as the oldest.
        valid.sort_by_key(|e| (e.created > today, std::cmp::Reverse(e.created)));
        let here = match content {
            None => valid.iter().find(|e| e.digest.is_none()),
            Some(content) => valid.iter().find(|e| e.is_about(content)),
        };
        match (here, content) {
            (Some(entry), _) => vec![entry],
            (None, Some(content)) => of_every_copy(&valid, content),
            (None, None) => Vec::new(),
        }
    }

    /// Computes the digests that [`Self::of`] compares for findings, on all cores. A digest takes
    /// milliseconds.
    pub fn prepare(&self, findings: &[(&Finding, &DecidedContent)], today: Date) {
        let mut wanted = Vec::new();
        for all in std::iter::once(self).chain(&self.also) {
            for (finding, content) in findings {
                let digests = all.compared(finding, content, today).into_iter();
                wanted.extend(digests.map(|digest| (digest, content.text.as_slice())));
            }
        }
        digest::prepare(wanted);
    }

    /// Returns the digests of the entries that are compared for a finding.
    fn compared(&self, finding: &Finding, content: &DecidedContent, today: Date) -> Vec<&Digest> {
        let mut valid = self.candidates(finding);
        valid.retain(|e| {
            e.rule == finding.rule_id() && !e.is_expired(today) && e.is_enough(finding)
        });
        if valid.iter().any(|e| e.occurrence == content.occurrence) {
            valid.retain(|e| e.occurrence == content.occurrence);
        } else {
            valid.retain(|e| e.occurrence.total > content.occurrence.total);
        }
        valid
            .into_iter()
            .filter_map(|e| e.digest.as_ref())
            .collect()
    }

    /// Returns the entries that may be about a finding: those with its fingerprint, and those about
    /// one of several equal texts, because the ordinal in their fingerprints differs from change to
    /// change.
    fn candidates(&self, finding: &Finding) -> Vec<&DecisionEntry> {
        let own = finding.fingerprint().as_str();
        let mut all: Vec<&DecisionEntry> =
            self.by_fingerprint.get(own).into_iter().flatten().collect();
        if self.repeated.contains(finding.rule_id()) {
            let others = finding.fingerprints().filter(|f| f.as_str() != own);
            let entries =
                others.flat_map(|f| self.by_fingerprint.get(f.as_str()).into_iter().flatten());
            all.extend(entries.filter(|e| e.occurrence.total > 1));
        }
        all
    }
}

/// Returns the entries about a text of which the file has fewer copies than at the time of the
/// decision. It is unknown which copies are left, so all of them must have the same kind of
/// decision. `valid` is ordered from newest to oldest.
fn of_every_copy<'e>(
    valid: &[&'e DecisionEntry],
    content: &DecidedContent,
) -> Vec<&'e DecisionEntry> {
    let mut by_total: BTreeMap<u32, BTreeMap<u32, &'e DecisionEntry>> = BTreeMap::new();
    for entry in valid
        .iter()
        .filter(|e| e.occurrence.total > content.occurrence.total)
    {
        let is_of = entry
            .digest
            .as_ref()
            .is_some_and(|d| d.is_of(&content.text));
        if is_of {
            by_total
                .entry(entry.occurrence.total)
                .or_default()
                .entry(entry.occurrence.number)
                .or_insert(entry);
        }
    }
    let whole = by_total
        .into_iter()
        .find(|(total, copies)| is_decided(*total, copies));
    whole
        .map(|(_, copies)| copies.into_values().collect())
        .unwrap_or_default()
}

/// Returns true if every copy has a decision, and either all of them dismiss findings or none does.
fn is_decided(total: u32, copies: &BTreeMap<u32, &DecisionEntry>) -> bool {
    let aside = copies.values().filter(|e| e.decision.sets_aside()).count();
    copies.len() == total as usize && (aside == 0 || aside == copies.len())
}

fn sets_aside(entry: &DecisionEntry) -> bool {
    entry.decision.sets_aside()
}

/// Adds an entry to a file. It replaces the entries of the same finding.
pub fn put(entries: &mut Vec<DecisionEntry>, entry: DecisionEntry) {
    entries.retain(|e| e.fingerprint != entry.fingerprint);
    entries.push(entry);
}

#[cfg(test)]
mod tests;
