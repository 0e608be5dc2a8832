//! Compares the instructions for models: `[[guideline]]` entries and `review.conventions`.
//!
//! A guideline has patterns and a text. A guideline covers another one if it has all of its
//! patterns; their order does not matter. A guideline is kept if a guideline of the new version
//! covers it and has its whole text, alone or within a longer one.

use super::Weakening;
use crate::policy::{Guideline, Policy};

/// The end of every text about new instructions. The models of this review get the instructions of
/// the base.
const AFTER_MERGE: &str = "takes effect for models after the merge";

/// Reports the guidelines of the old version that the new one does not keep.
pub(super) fn weaker_guidelines(old: &Policy, new: &Policy) -> Vec<Weakening> {
    let lost = old.guidelines.iter().filter_map(|guideline| {
        let mut successors = new
            .guidelines
            .iter()
            .filter(|n| covers_patterns_of(n, guideline));
        let first = successors.clone().next();
        if successors.any(|n| n.text.contains(guideline.text.trim())) {
            return None;
        }
        let what = match first {
            Some(_) => "reworded",
            None => "removed",
        };
        Some(Weakening {
            key: "guideline".to_owned(),
            line: first.and_then(|n| n.origin.line),
            text: format!("the guideline for {} is {what}", guideline.glob.join(", ")),
        })
    });
    lost.collect()
}

/// Reports the instructions that the new version adds: see [`super::new_instructions`].
pub(super) fn new_instructions(old: &Policy, new: &Policy) -> Vec<Weakening> {
    let mut added: Vec<Weakening> = new
        .guidelines
        .iter()
        .filter_map(|guideline| new_guideline(guideline, &old.guidelines))
        .collect();
    added.extend(new_conventions(old, new));
    added
}

/// Describes what a guideline adds to the old ones; `None` if an old one says the same for all of
/// its patterns.
fn new_guideline(guideline: &Guideline, old: &[Guideline]) -> Option<Weakening> {
    let text = guideline.text.trim();
    let is_known = old
        .iter()
        .any(|o| covers_patterns_of(o, guideline) && o.text.trim() == text);
    if is_known {
        return None;
    }
    // Old guidelines for the same files, or for some of them.
    let predecessors = old.iter().filter(|o| covers_patterns_of(guideline, o));
    let extended = predecessors
        .clone()
        .find_map(|o| text.split_once(o.text.trim()));
    let what = match extended {
        Some(("", "")) => format!("applies to more files: {text:?}"),
        Some((start, end)) => {
            let added: Vec<&str> = [start.trim(), end.trim()]
                .into_iter()
                .filter(|t| !t.is_empty())
                .collect();
            format!("adds: {:?}", added.join(" … "))
        }
        None if predecessors.clone().next().is_some() => format!("changes to: {text:?}"),
        None => format!("is new: {text:?}"),
    };
    Some(Weakening {
        key: "guideline".to_owned(),
        line: guideline.origin.line,
        text: format!(
            "the guideline for {} {what}; {AFTER_MERGE}",
            guideline.glob.join(", ")
        ),
    })
}

/// Describes the documents that the new version adds to `review.conventions`.
fn new_conventions(old: &Policy, new: &Policy) -> Option<Weakening> {
    const KEY: &str = "review.conventions";
    let added: Vec<&str> = new
        .review
        .conventions
        .iter()
        .filter(|document| !old.review.conventions.contains(document))
        .map(String::as_str)
        .collect();
    (!added.is_empty()).then(|| Weakening {
        key: KEY.to_owned(),
        line: new.origin_of(KEY).line,
        text: format!("{KEY} now includes {}; {AFTER_MERGE}", added.join(", ")),
    })
}

/// Returns true if a guideline has all patterns of another one.
fn covers_patterns_of(guideline: &Guideline, other: &Guideline) -> bool {
    other.glob.iter().all(|p| guideline.glob.contains(p))
}
