//! Decides whether two findings of different rounds are the same, and finds the current position
//! of an earlier one.

use super::spans::Spans;
use crate::finding::Origin;
use crate::rounds::region::{Alignment, LinePosition};
use crate::text::one_line;
use crate::wire::Finding;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Percentage of common words from which two titles are about the same issue.
const LIKE: usize = 50;

/// Returns true if a rule reported it.
pub(super) fn is_rule(f: &Finding) -> bool {
    f.origin == Origin::Rules.name()
}

/// Returns the current position of an earlier finding's lines, or `None` if it has no lines.
pub(super) fn current_position(f: &Finding, alignment: &Alignment) -> Option<LinePosition> {
    let (file, line) = (f.file.as_deref()?, f.line?);
    Some(alignment.place(f.commit.as_deref(), file, line, f.end_line.unwrap_or(line)))
}

/// Returns the lines of a finding, end excluded.
pub(super) fn lines(f: &Finding) -> Option<Range<u32>> {
    let line = f.line?;
    Some(line..f.end_line.unwrap_or(line).max(line).saturating_add(1))
}

/// Returns true if two ranges share a line.
pub(super) fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Returns true if two findings have the same quote and rule: the input of a fingerprint except the
/// position.
pub(super) fn has_same_text(a: &Finding, b: &Finding) -> bool {
    let same = a.quote == b.quote || a.quote.split_whitespace().eq(b.quote.split_whitespace());
    a.rule_id == b.rule_id && is_rule(a) == is_rule(b) && same
}

/// Returns the input of [`has_same_text`] as one key.
pub(super) fn text_key(f: &Finding) -> String {
    format!("{} {} {}", is_rule(f), f.rule_id, one_line(&f.quote))
}

/// Returns true if two findings are about the same issue, even in other words. `like` is the
/// percentage of common words in their titles.
pub(super) fn is_same_trouble(a: &Finding, b: &Finding, like: usize) -> bool {
    if is_rule(a) != is_rule(b) || a.rule_id != b.rule_id {
        return false;
    }
    let same_cwe = a.cwe.is_some() && a.cwe == b.cwe;
    let same_rule = a.convention.is_some() && a.convention == b.convention;
    is_rule(a) || same_cwe || same_rule || like >= LIKE
}

/// Returns the significant words of a title.
pub(super) fn title_words(f: &Finding) -> BTreeSet<String> {
    let words = f.title.split(|c: char| !c.is_alphanumeric() && c != '_');
    words
        .filter(|w| w.chars().count() > 2)
        .map(str::to_lowercase)
        .collect()
}

/// Returns the percentage of common words in two titles.
pub(super) fn shared(a: &BTreeSet<String>, b: &BTreeSet<String>) -> usize {
    a.intersection(b).count() * 200 / (a.len() + b.len()).max(1)
}

/// The findings of an earlier round, indexed for matching.
#[derive(Debug)]
pub(super) struct EarlierFindings {
    by_fingerprint: HashMap<String, Vec<usize>>,
    /// By current path and text.
    by_text: HashMap<(Option<String>, String), Vec<usize>>,
    /// Current lines, by current path.
    by_lines: HashMap<String, Spans>,
}

impl EarlierFindings {
    /// Indexes findings at their current positions.
    pub(super) fn of(all: &[Finding], alignment: &Alignment) -> Self {
        let mut by_fingerprint: HashMap<String, Vec<usize>> = HashMap::new();
        let mut by_text: HashMap<(Option<String>, String), Vec<usize>> = HashMap::new();
        let mut ranges = Vec::new();
        for (i, f) in all.iter().enumerate() {
            let fingerprint = f.fingerprint.clone();
            by_fingerprint.entry(fingerprint).or_default().push(i);
            let text = (path(f, alignment), text_key(f));
            by_text.entry(text).or_default().push(i);
            if let Some(LinePosition::At(spot)) = current_position(f, alignment) {
                let lines = spot.at_least_one();
                ranges.push((spot.file, lines, i));
            }
        }
        Self {
            by_fingerprint,
            by_text,
            by_lines: Spans::by_file(ranges),
        }
    }

    /// Returns the candidates for a finding of the new round, in order: see [`is_same`].
    pub(super) fn like(&self, now: &Finding) -> Vec<usize> {
        let mut out: Vec<usize> = self
            .by_fingerprint
            .get(&now.fingerprint)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        out.extend(
            self.by_text
                .get(&(now.file.clone(), text_key(now)))
                .into_iter()
                .flatten(),
        );
        let of_file = now.file.as_deref().and_then(|file| self.by_lines.get(file));
        out.extend(
            of_file
                .zip(lines(now))
                .into_iter()
                .flat_map(|(s, l)| s.touching(&l).collect::<Vec<_>>()),
        );
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// Returns the current path of an earlier finding's file.
fn path(f: &Finding, alignment: &Alignment) -> Option<String> {
    f.file
        .as_deref()
        .and_then(|p| alignment.path(f.commit.as_deref(), p))
        .map(str::to_owned)
}

/// Returns true if a finding of the new round is the same as one of an earlier round, at any
/// position.
pub(super) fn is_same(now: &Finding, before: &Finding, alignment: &Alignment) -> bool {
    if now.fingerprint == before.fingerprint {
        return true;
    }
    if has_same_text(now, before) && !before.quote.is_empty() && path(before, alignment) == now.file
    {
        return true;
    }
    match current_position(before, alignment) {
        Some(LinePosition::At(spot)) if Some(spot.file.as_str()) == now.file.as_deref() => {
            let near = lines(now).is_some_and(|l| overlap(&l, &spot.at_least_one()));
            near && is_same_trouble(now, before, shared(&title_words(now), &title_words(before)))
        }
        _ => false,
    }
}
