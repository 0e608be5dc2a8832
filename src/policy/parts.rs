//! Reports where a change to `[[path]]` weakens the policy.
//!
//! For each path, the last entry that matches it and sets a key decides. A key is therefore weaker
//! for a path only if the deciding entry of the new version sets less than that of the old version.
//! Each such pair of entries is reported, unless no path can have both: either the entries match no
//! common path, or a later entry decides for all of their common paths in one of the versions.

use super::cover::{Area, Effort};
use super::weaken::{Weakening, reaches, unreached};
use super::{PathRule, Policy};
use crate::finding::{Confidence, Severity};
use std::collections::HashSet;

/// Pairs of entries that are compared, at most.
const MOST: usize = 1 << 20;
/// Patterns that are reported, at most.
const MOST_TOLD: usize = 50;

/// An entry of one pattern, or the top level: it matches everything and comes before all entries.
struct PathEntry<'a> {
    /// `None`: the top level.
    glob: Option<&'a str>,
    area: Area,
    block_on: Option<&'a [Severity]>,
    warn_on: Option<&'a [Severity]>,
    min_confidence: Option<Confidence>,
    line: Option<u32>,
}

/// The entries of a version, the top level first.
struct PathEntries<'a> {
    entries: Vec<PathEntry<'a>>,
    /// The shortest `block_on` of all entries.
    least: &'a [Severity],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ThresholdKey {
    BlockOn,
    WarnOn,
    MinConfidence,
}

/// Compares the thresholds for parts of the repository.
pub(super) fn compare(old: &Policy, new: &Policy, found: &mut Vec<Weakening>) {
    let (old, new) = (PathEntries::of(old), PathEntries::of(new));
    if old.entries.len() * new.entries.len() > MOST {
        let alike = old.entries.len() == new.entries.len()
            && old
                .entries
                .iter()
                .zip(&new.entries)
                .skip(1)
                .all(|(a, b)| a.glob == b.glob && a.values() == b.values());
        if !alike {
            found.push(too_much());
        }
        return;
    }
    let mut told: HashSet<&str> = HashSet::new();
    let mut effort = Effort::default();
    for (j, is) in new.entries.iter().enumerate() {
        for (i, was) in old.entries.iter().enumerate() {
            // The top level is compared separately.
            let Some(glob) = is.glob.or(was.glob) else {
                continue;
            };
            if told.contains(glob) {
                continue;
            }
            let mut ways = ThresholdKey::ALL
                .into_iter()
                .filter_map(|key| weaker((&old, i), (&new, j), key, &mut effort));
            let Some(what) = ways.next() else { continue };
            drop(ways);
            // A longer list is of no use to a reader.
            if told.len() >= MOST_TOLD || effort.is_spent() {
                found.push(too_much());
                return;
            }
            told.insert(glob);
            let here = new.entries.iter().rev().find(|e| e.glob == Some(glob));
            let place = match (was.glob, is.glob) {
                (Some(was), Some(is)) if was != is => {
                    format!("paths that match both {was} and {is}")
                }
                _ => glob.to_owned(),
            };
            let line = here.and_then(|e| e.line);
            found.push(Weakening {
                key: "path".to_owned(),
                line,
                text: format!("{what} in {place}"),
            });
        }
    }
}

fn too_much() -> Weakening {
    let text = "[[path]] changes and has too many entries to compare".to_owned();
    Weakening {
        key: "path".to_owned(),
        line: None,
        text,
    }
}

/// Describes how the new entry is weaker than the old one, if a path can have both.
fn weaker(
    (old, i): (&PathEntries<'_>, usize),
    (new, j): (&PathEntries<'_>, usize),
    key: ThresholdKey,
    effort: &mut Effort,
) -> Option<String> {
    let (was, is) = (&old.entries[i], &new.entries[j]);
    let what = lowered((old, was), (new, is), key)?;
    if was.area.is_apart_from(&is.area, effort) {
        return None;
    }
    let mut later = old.entries[i + 1..]
        .iter()
        .chain(&new.entries[j + 1..])
        .filter(|e| e.sets(key));
    let is_covered =
        later.any(|e| is.area.is_within(&e.area, effort) || was.area.is_within(&e.area, effort));
    (!is_covered).then_some(what)
}

/// Describes how a value is weaker than another.
fn lowered(
    (old, was): (&PathEntries<'_>, &PathEntry<'_>),
    (new, is): (&PathEntries<'_>, &PathEntry<'_>),
    key: ThresholdKey,
) -> Option<String> {
    match key {
        ThresholdKey::BlockOn => {
            let gone = unreached(was.block_on?, is.block_on?).next()?;
            Some(format!("block_on no longer includes {gone}"))
        }
        ThresholdKey::WarnOn => {
            // Severities that blocked before belong to `block_on`; severities that block now need
            // no warning.
            let (blocked, blocks) = (
                was.block_on.unwrap_or(old.least),
                is.block_on.unwrap_or(new.least),
            );
            let mut gone = unreached(was.warn_on?, is.warn_on?);
            let gone = gone.find(|s| !reaches(blocked, *s) && !reaches(blocks, *s))?;
            Some(format!("warn_on no longer includes {gone}"))
        }
        ThresholdKey::MinConfidence => {
            let (was, is) = (was.min_confidence?, is.min_confidence?);
            (is > was).then(|| {
                format!(
                    "min_confidence changes from {} to {}",
                    was.name(),
                    is.name()
                )
            })
        }
    }
}

impl<'a> PathEntries<'a> {
    fn of(policy: &'a Policy) -> Self {
        let top = PathEntry {
            glob: None,
            area: Area::everything(),
            block_on: Some(&policy.block_on),
            warn_on: Some(&policy.warn_on),
            min_confidence: Some(policy.min_confidence),
            line: None,
        };
        let mut entries = vec![top];
        entries.extend(
            policy
                .paths
                .iter()
                .flat_map(|rule| rule.glob.iter().map(move |glob| PathEntry::of(rule, glob))),
        );
        let lists = entries.iter().filter_map(|e| e.block_on);
        let least =
            lists.min_by_key(|list| Severity::ALL.iter().filter(|s| reaches(list, **s)).count());
        Self {
            least: least.unwrap_or_default(),
            entries,
        }
    }
}

impl<'a> PathEntry<'a> {
    /// Creates the entry of one pattern of a `[[path]]`.
    fn of(rule: &'a PathRule, glob: &'a str) -> Self {
        Self {
            glob: Some(glob),
            area: Area::of(glob),
            block_on: rule.block_on.as_deref(),
            warn_on: rule.warn_on.as_deref(),
            min_confidence: rule.min_confidence,
            line: rule.origin.line,
        }
    }

    fn sets(&self, key: ThresholdKey) -> bool {
        match key {
            ThresholdKey::BlockOn => self.block_on.is_some(),
            ThresholdKey::WarnOn => self.warn_on.is_some(),
            ThresholdKey::MinConfidence => self.min_confidence.is_some(),
        }
    }

    fn values(
        &self,
    ) -> (
        Option<&'a [Severity]>,
        Option<&'a [Severity]>,
        Option<Confidence>,
    ) {
        (self.block_on, self.warn_on, self.min_confidence)
    }
}

impl ThresholdKey {
    const ALL: [Self; 3] = [Self::BlockOn, Self::WarnOn, Self::MinConfidence];
}
