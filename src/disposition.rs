//! Decisions of people on findings: accepted, rejected or deferred.
//!
//! A decision is bound to a finding and its lines: the entry has the fingerprint of the finding, and a digest of the
//! unmasked lines, because findings that differ only in a masked secret share a fingerprint. An entry applies until
//! it expires, the lines change, or the file gets another copy of them. There are two files of one format: the shared
//! one in the repository, and the one in the store, which belongs to one person. Pure.

mod comments;
mod digest;
mod file;
mod memory;
mod occurrence;
mod weaker;

pub use digest::{Digest, forget, memory_text, of_all, remember};
pub use file::{Problem, Sheet, parse, render};
pub use memory::Memory;
pub use occurrence::{Content, Occurrence};
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
pub struct Entry {
    pub fingerprint: String,
    pub rule: String,
    /// Path in the form of reports.
    pub path: Option<String>,
    /// The first of the lines, secrets masked, for readers of the file.
    pub line: String,
    /// Digest of the unmasked lines, or of the file for a finding without lines. `None` for a finding about the whole
    /// change.
    pub digest: Option<Digest>,
    /// The occurrence among equal texts of the file. The fingerprint does not identify it: its ordinal counts the
    /// findings of one change.
    pub occurrence: Occurrence,
    pub decision: Decision,
    pub reason: String,
    pub owner: String,
    pub created: Date,
    /// The first day on which the entry no longer applies.
    pub expires: Option<Date>,
}

impl Entry {
    /// Returns true if the entry is sufficient: rejecting a critical finding needs a reason.
    fn is_enough(&self, finding: &Finding) -> bool {
        let needs_reason = self.decision == Decision::Rejected && finding.severity() == Severity::Critical;
        !needs_reason || !self.reason.trim().is_empty()
    }

    /// Returns true for a claim of a model.
    pub fn is_claim(&self) -> bool {
        self.rule.starts_with(CLAIM)
    }

    /// Returns true if the entry is about this content, at this occurrence.
    fn is_about(&self, content: &Content) -> bool {
        self.occurrence == content.occurrence && self.digest.as_ref().is_some_and(|d| d.is_of(&content.text))
    }

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
pub struct Entries {
    by_fingerprint: BTreeMap<String, Vec<Entry>>,
    /// Rules with an entry about one of several equal texts.
    repeated: BTreeSet<String>,
    /// Other versions of the file. A finding is dismissed only if each of them dismisses it too.
    also: Vec<Self>,
}

impl Entries {
    /// Merges the entries of several files.
    pub fn new(all: impl IntoIterator<Item = Entry>) -> Self {
        let mut out = Self::default();
        for entry in all {
            if entry.occurrence.total > 1 {
                out.repeated.insert(entry.rule.clone());
            }
            out.by_fingerprint.entry(entry.fingerprint.clone()).or_default().push(entry);
        }
        out
    }

    /// Requires that another version of the file dismisses findings too. Decisions that a finding is right stay.
    #[must_use]
    pub fn agreed_by(mut self, other: Self) -> Self {
        self.also.push(other);
        self
    }

    /// Returns the entries that dismiss findings and have no dismissing entry for the same finding in another
    /// version.
    pub fn missing_from<'e>(&'e self, other: &'e Self) -> impl Iterator<Item = &'e Entry> {
        let has = |e: &Entry| other.by_fingerprint.get(&e.fingerprint).is_some_and(|all| all.iter().any(sets_aside));
        self.by_fingerprint.values().flatten().filter(move |e| sets_aside(e) && !has(e))
    }

    pub fn is_empty(&self) -> bool {
        self.by_fingerprint.is_empty()
    }

    /// Returns the entries that reject claims of models and have not expired, in the order of their fingerprints.
    pub fn rejected_claims(&self, today: Date) -> impl Iterator<Item = &Entry> {
        self.by_fingerprint.values().flatten().filter(move |e| self.is_rejected_claim(e, today))
    }

    fn is_rejected_claim(&self, e: &Entry, today: Date) -> bool {
        let rejects = |e: &Entry| e.decision == Decision::Rejected && e.is_claim() && !e.is_expired(today);
        let is_agreed =
            |other: &Self| other.by_fingerprint.get(&e.fingerprint).is_some_and(|all| all.iter().any(rejects));
        rejects(e) && self.also.iter().all(is_agreed)
    }

    /// Returns true if an entry may apply to the finding. The lines decide whether it does.
    pub fn names(&self, finding: &Finding) -> bool {
        self.by_fingerprint.contains_key(finding.fingerprint().as_str()) || self.repeated.contains(finding.rule_id())
    }

    /// Returns the decision that applies to a finding: that of the newest unexpired entry about this content.
    /// `content` is the content of the finding; `None` for the whole change.
    pub fn of(&self, finding: &Finding, content: Option<&Content>, today: Date) -> Option<Disposition> {
        self.entry(finding, content, today).map(Entry::disposition)
    }

    /// Returns the entry of the decision that [`Self::of`] returns.
    pub fn entry(&self, finding: &Finding, content: Option<&Content>, today: Date) -> Option<&Entry> {
        let entries = self.holding(finding, content, today);
        let entry = entries.into_iter().min_by_key(|e| e.expires.unwrap_or(Date::MAX))?;
        let is_agreed = |other: &Self| other.sets_aside(finding, content, today);
        (!entry.decision.sets_aside() || self.also.iter().all(is_agreed)).then_some(entry)
    }

    fn sets_aside(&self, finding: &Finding, content: Option<&Content>, today: Date) -> bool {
        self.entry(finding, content, today).is_some_and(|e| e.decision.sets_aside())
    }

    /// Returns the entries of the decision that applies to a finding: one, or one for each copy of a text of which
    /// the file has fewer copies now.
    pub fn holding(&self, finding: &Finding, content: Option<&Content>, today: Date) -> Vec<&Entry> {
        let mut valid = self.candidates(finding);
        valid.retain(|e| e.rule == finding.rule_id() && !e.is_expired(today) && e.is_enough(finding));
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

    /// Computes the digests that [`Self::of`] compares for findings, on all cores. A digest takes milliseconds.
    pub fn prepare(&self, findings: &[(&Finding, &Content)], today: Date) {
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
    fn compared(&self, finding: &Finding, content: &Content, today: Date) -> Vec<&Digest> {
        let mut valid = self.candidates(finding);
        valid.retain(|e| e.rule == finding.rule_id() && !e.is_expired(today) && e.is_enough(finding));
        let is_here = |e: &&&Entry| e.occurrence == content.occurrence;
        let is_of_more = |e: &&&Entry| e.occurrence.total > content.occurrence.total;
        let has_one = valid.iter().any(|e| e.occurrence == content.occurrence);
        let compared = valid.iter().filter(|e| if has_one { is_here(e) } else { is_of_more(e) });
        compared.filter_map(|e| e.digest.as_ref()).collect()
    }

    /// Returns the entries that may be about a finding: those with its fingerprint, and those about one of several
    /// equal texts, because the ordinal in their fingerprints differs from change to change.
    fn candidates(&self, finding: &Finding) -> Vec<&Entry> {
        let own = finding.fingerprint().as_str();
        let mut all: Vec<&Entry> = self.by_fingerprint.get(own).into_iter().flatten().collect();
        if self.repeated.contains(finding.rule_id()) {
            let others = finding.fingerprints().filter(|f| f.as_str() != own);
            let entries = others.flat_map(|f| self.by_fingerprint.get(f.as_str()).into_iter().flatten());
            all.extend(entries.filter(|e| e.occurrence.total > 1));
        }
        all
    }
}

/// Returns the entries about a text of which the file has fewer copies than at the time of the decision. It is
/// unknown which copies are left, so all of them must have the same kind of decision. `valid` is ordered from newest
/// to oldest.
fn of_every_copy<'e>(valid: &[&'e Entry], content: &Content) -> Vec<&'e Entry> {
    let mut by_total: BTreeMap<u32, BTreeMap<u32, &'e Entry>> = BTreeMap::new();
    for entry in valid.iter().filter(|e| e.occurrence.total > content.occurrence.total) {
        let is_of = entry.digest.as_ref().is_some_and(|d| d.is_of(&content.text));
        if is_of {
            by_total.entry(entry.occurrence.total).or_default().entry(entry.occurrence.number).or_insert(entry);
        }
    }
    let whole = by_total.into_iter().find(|(total, copies)| is_decided(*total, copies));
    whole.map(|(_, copies)| copies.into_values().collect()).unwrap_or_default()
}

/// Returns true if every copy has a decision, and either all of them dismiss findings or none does.
fn is_decided(total: u32, copies: &BTreeMap<u32, &Entry>) -> bool {
    let aside = copies.values().filter(|e| e.decision.sets_aside()).count();
    copies.len() == total as usize && (aside == 0 || aside == copies.len())
}

fn sets_aside(entry: &Entry) -> bool {
    entry.decision.sets_aside()
}

/// Adds an entry to a file. It replaces the entries of the same finding.
pub fn put(entries: &mut Vec<Entry>, entry: Entry) {
    entries.retain(|e| e.fingerprint != entry.fingerprint);
    entries.push(entry);
}

#[cfg(test)]
mod tests;
