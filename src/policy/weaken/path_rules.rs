//! Reports where a change to `[[path]]` weakens the policy.
//!
//! # Which entry decides
//!
//! A version of the policy is a list of entries: first the top level, which matches every path,
//! then one entry for each pattern of each `[[path]]`, in the order of the file. An entry sets some
//! of three keys: `block_on`, `warn_on`, `min_confidence`. For one path and one key, the last entry
//! decides that matches the path and sets the key.
//!
//! # What is reported
//!
//! The new version is weaker for a path if the entry that decides there sets less than the entry
//! that decided there in the old version. There are too many paths to try, so the comparison takes
//! every pair of an old and a new entry. It reports a pair in which the new entry sets less, unless
//! it is proven that these two entries decide together for no path:
//!
//! - the patterns of the two entries match no common path, or
//! - in one of the versions, a later entry that sets the key matches all of their common paths. That
//!   entry decides instead, and the pairs that contain it are compared on their own.
//!
//! Where a proof fails, the pair is reported: a report can be unnecessary and is never missing.
//!
//! Two top levels are not compared here: their keys are compared like all others.

use super::Weakening;
use crate::finding::{Confidence, Severity};
use crate::policy::cover::{Area, ProofBudget};
use crate::policy::threshold::{ThresholdPair, includes, no_longer_included, no_longer_warning};
use crate::policy::{PathRule, Policy};
use std::collections::HashSet;

/// Pairs of entries that are compared, at most.
const MAX_PAIRS: usize = 1 << 20;
/// Patterns that are reported, at most. A longer list is of no use to a reader.
const MAX_REPORTED: usize = 50;

/// The thresholds that one pattern of a `[[path]]`, or the top level, sets.
struct PathEntry<'a> {
    /// `None`: the top level.
    pattern: Option<&'a str>,
    area: Area,
    block_on: Option<&'a [Severity]>,
    warn_on: Option<&'a [Severity]>,
    min_confidence: Option<Confidence>,
    /// 1-based line of the `[[path]]`.
    line: Option<u32>,
}

/// The entries of a version, the top level first.
struct PathEntries<'a> {
    entries: Vec<PathEntry<'a>>,
    /// The `block_on` that includes the fewest severities, of all entries.
    weakest_block_on: &'a [Severity],
}

/// The keys that an entry can set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ThresholdKey {
    BlockOn,
    WarnOn,
    MinConfidence,
}

/// Compares the thresholds for parts of the repository. Reports each pattern once.
pub(super) fn weaker_path_rules(old: &Policy, new: &Policy) -> Vec<Weakening> {
    let (old, new) = (PathEntries::of(old), PathEntries::of(new));
    if old.entries.len() * new.entries.len() > MAX_PAIRS {
        return match old.has_same_path_rules(&new) {
            true => Vec::new(),
            false => vec![too_many_entries()],
        };
    }
    let mut found = Vec::new();
    let mut reported: HashSet<&str> = HashSet::new();
    let mut budget = ProofBudget::default();
    for new_at in 0..new.entries.len() {
        for old_at in 0..old.entries.len() {
            let pair = EntryPair {
                old: &old,
                new: &new,
                old_at,
                new_at,
            };
            let Some(pattern) = pair.pattern().filter(|p| !reported.contains(p)) else {
                continue;
            };
            let Some(how) = pair.weaker(&mut budget) else {
                continue;
            };
            if reported.len() >= MAX_REPORTED || budget.is_spent() {
                found.push(too_many_entries());
                return found;
            }
            reported.insert(pattern);
            found.push(Weakening {
                key: "path".to_owned(),
                line: new.line_of(pattern),
                text: format!("{how} in {}", pair.paths(pattern)),
            });
        }
    }
    found
}

/// Returns the report in place of further reports.
fn too_many_entries() -> Weakening {
    Weakening {
        key: "path".to_owned(),
        line: None,
        text: "[[path]] changes and has too many entries to compare".to_owned(),
    }
}

/// An entry of the old version and one of the new version.
struct EntryPair<'e, 'a> {
    old: &'e PathEntries<'a>,
    new: &'e PathEntries<'a>,
    /// Position in `old`.
    old_at: usize,
    /// Position in `new`.
    new_at: usize,
}

impl<'a> EntryPair<'_, 'a> {
    /// Returns the old entry.
    fn old_entry(&self) -> &PathEntry<'a> {
        &self.old.entries[self.old_at]
    }

    /// Returns the new entry.
    fn new_entry(&self) -> &PathEntry<'a> {
        &self.new.entries[self.new_at]
    }

    /// Returns the pattern that the pair is reported for: that of the new entry, or that of the old
    /// one if the new entry is the top level. `None` for two top levels.
    fn pattern(&self) -> Option<&'a str> {
        self.new_entry().pattern.or(self.old_entry().pattern)
    }

    /// Describes the common paths of both entries.
    fn paths(&self, pattern: &str) -> String {
        match (self.old_entry().pattern, self.new_entry().pattern) {
            (Some(old), Some(new)) if old != new => {
                format!("paths that match both {old} and {new}")
            }
            _ => pattern.to_owned(),
        }
    }

    /// Describes the first key for which the new entry is weaker than the old one, if both can
    /// decide for a common path.
    fn weaker(&self, budget: &mut ProofBudget) -> Option<String> {
        ThresholdKey::ALL
            .into_iter()
            .find_map(|key| self.sets_less(key).filter(|_| self.can_decide(key, budget)))
    }

    /// Describes how the new entry sets less than the old one for a key. `None` also if one of them
    /// does not set the key.
    fn sets_less(&self, key: ThresholdKey) -> Option<String> {
        let (old, new) = (self.old_entry(), self.new_entry());
        match key {
            ThresholdKey::BlockOn => {
                let gone = no_longer_included(old.block_on?, new.block_on?).next()?;
                Some(format!("block_on no longer includes {gone}"))
            }
            ThresholdKey::WarnOn => {
                let was = self.old.thresholds(old, old.warn_on?);
                let is = self.new.thresholds(new, new.warn_on?);
                let gone = no_longer_warning(was, is).next()?;
                Some(format!("warn_on no longer includes {gone}"))
            }
            ThresholdKey::MinConfidence => {
                let (was, is) = (old.min_confidence?, new.min_confidence?);
                let (from, to) = (was.name(), is.name());
                (is > was).then(|| format!("min_confidence changes from {from} to {to}"))
            }
        }
    }

    /// Returns false if it is proven that the two entries decide together for no path.
    fn can_decide(&self, key: ThresholdKey, budget: &mut ProofBudget) -> bool {
        let (old, new) = (&self.old_entry().area, &self.new_entry().area);
        if old.is_apart_from(new, budget) {
            return false;
        }
        let later_old = self.old.entries[self.old_at + 1..].iter();
        let later_new = self.new.entries[self.new_at + 1..].iter();
        // An area that covers one of the two covers all of their common paths.
        !later_old
            .chain(later_new)
            .filter(|later| later.sets(key))
            .any(|later| new.is_within(&later.area, budget) || old.is_within(&later.area, budget))
    }
}

impl<'a> PathEntries<'a> {
    /// Lists the entries of a policy.
    fn of(policy: &'a Policy) -> Self {
        let mut entries = vec![PathEntry::top_level(policy)];
        for rule in &policy.paths {
            entries.extend(rule.glob.iter().map(|glob| PathEntry::of(rule, glob)));
        }
        let weakest_block_on = entries
            .iter()
            .filter_map(|e| e.block_on)
            .min_by_key(|list| Severity::ALL.iter().filter(|s| includes(list, **s)).count());
        Self {
            weakest_block_on: weakest_block_on.unwrap_or_default(),
            entries,
        }
    }

    /// Returns the thresholds of an entry that sets `warn_on`. Another entry can decide `block_on`
    /// for its paths; the weakest one is assumed, with which most severities count as warnings.
    fn thresholds(&self, entry: &PathEntry<'a>, warn_on: &'a [Severity]) -> ThresholdPair<'a> {
        ThresholdPair {
            block_on: entry.block_on.unwrap_or(self.weakest_block_on),
            warn_on,
        }
    }

    /// Returns true if both versions have the same `[[path]]` entries in the same order.
    fn has_same_path_rules(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self
                .entries
                .iter()
                .zip(&other.entries)
                .skip(1)
                .all(|(a, b)| a.sets_same(b))
    }

    /// Returns the line of the last entry with a pattern; `None` if the version does not have it.
    fn line_of(&self, pattern: &str) -> Option<u32> {
        self.entries
            .iter()
            .rev()
            .find(|e| e.pattern == Some(pattern))?
            .line
    }
}

impl<'a> PathEntry<'a> {
    /// Creates the entry of the top level, which sets all keys.
    fn top_level(policy: &'a Policy) -> Self {
        Self {
            pattern: None,
            area: Area::everything(),
            block_on: Some(&policy.block_on),
            warn_on: Some(&policy.warn_on),
            min_confidence: Some(policy.min_confidence),
            line: None,
        }
    }

    /// Creates the entry of one pattern of a `[[path]]`.
    fn of(rule: &'a PathRule, glob: &'a str) -> Self {
        Self {
            pattern: Some(glob),
            area: Area::of(glob),
            block_on: rule.block_on.as_deref(),
            warn_on: rule.warn_on.as_deref(),
            min_confidence: rule.min_confidence,
            line: rule.origin.line,
        }
    }

    /// Returns true if the entry sets a key.
    fn sets(&self, key: ThresholdKey) -> bool {
        match key {
            ThresholdKey::BlockOn => self.block_on.is_some(),
            ThresholdKey::WarnOn => self.warn_on.is_some(),
            ThresholdKey::MinConfidence => self.min_confidence.is_some(),
        }
    }

    /// Returns true if both entries set the same values for the same pattern.
    fn sets_same(&self, other: &Self) -> bool {
        self.pattern == other.pattern
            && self.block_on == other.block_on
            && self.warn_on == other.warn_on
            && self.min_confidence == other.min_confidence
    }
}

impl ThresholdKey {
    /// All keys, in the order in which they are reported.
    const ALL: [Self; 3] = [Self::BlockOn, Self::WarnOn, Self::MinConfidence];
}
