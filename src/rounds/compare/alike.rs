//! Whether two findings of different rounds are one.

use crate::finding::Origin;
use crate::rounds::region::{Alignment, Place};
use crate::wire::Finding;
use std::collections::BTreeSet;
use std::ops::Range;

/// The share of words that two titles have in common, in percent, from which on they speak of the same.
const LIKE: usize = 50;

/// Tells whether a rule found it.
pub(super) fn is_rule(f: &Finding) -> bool {
    f.origin == Origin::Rules.name()
}

/// Tells where the lines of an earlier finding are now; `None`: it has no lines.
pub(super) fn place(f: &Finding, alignment: &Alignment) -> Option<Place> {
    let (file, line) = (f.file.as_deref()?, f.line?);
    Some(alignment.place(f.commit.as_deref(), file, line, f.end_line.unwrap_or(line)))
}

/// Returns the lines of a finding, the end excluded.
pub(super) fn lines(f: &Finding) -> Option<Range<u32>> {
    let line = f.line?;
    Some(line..f.end_line.unwrap_or(line).max(line).saturating_add(1))
}

/// Tells whether two ranges share a line.
pub(super) fn overlap(a: &Range<u32>, b: &Range<u32>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Tells whether two findings quote the same under the same rule: what a fingerprint is made of, without its place.
pub(super) fn has_same_text(a: &Finding, b: &Finding) -> bool {
    let same = a.quote == b.quote || a.quote.split_whitespace().eq(b.quote.split_whitespace());
    a.rule_id == b.rule_id && is_rule(a) == is_rule(b) && same
}

/// Tells whether two findings speak of the same trouble, in whatever words.
pub(super) fn is_same_trouble(a: &Finding, b: &Finding) -> bool {
    if is_rule(a) != is_rule(b) || a.rule_id != b.rule_id {
        return false;
    }
    let same_cwe = a.cwe.is_some() && a.cwe == b.cwe;
    let same_rule = a.convention.is_some() && a.convention == b.convention;
    is_rule(a) || same_cwe || same_rule || likeness(a, b) >= LIKE
}

/// Returns how many words two titles share, in percent.
pub(super) fn likeness(a: &Finding, b: &Finding) -> usize {
    let words = |f: &Finding| -> BTreeSet<String> {
        let words = f.title.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.filter(|w| w.chars().count() > 2).map(str::to_lowercase).collect()
    };
    let (a, b) = (words(a), words(b));
    a.intersection(&b).count() * 200 / (a.len() + b.len()).max(1)
}

/// Tells whether a finding of the new round is one of an earlier round, wherever it stands.
pub(super) fn is_same(now: &Finding, before: &Finding, alignment: &Alignment) -> bool {
    if now.fingerprint == before.fingerprint {
        return true;
    }
    let path = |f: &Finding| f.file.as_deref().and_then(|p| alignment.path(f.commit.as_deref(), p)).map(str::to_owned);
    if has_same_text(now, before) && !before.quote.is_empty() && path(before) == now.file {
        return true;
    }
    match place(before, alignment) {
        Some(Place::At(spot)) if Some(spot.file.as_str()) == now.file.as_deref() => {
            let near =
                lines(now).is_some_and(|l| overlap(&l, &(spot.lines.start..spot.lines.end.max(spot.lines.start + 1))));
            near && is_same_trouble(now, before)
        }
        _ => false,
    }
}
