//! Compares two files of decisions by what they dismiss.

use super::DecisionEntry;
use crate::finding::Decision;
use std::collections::BTreeMap;

/// Describes in one sentence what a change of the shared file would dismiss: new entries, and
/// entries that became wider. `None` if there are none.
pub fn weaker(before: &[DecisionEntry], after: &[DecisionEntry]) -> Option<String> {
    let known: BTreeMap<&str, &DecisionEntry> =
        before.iter().map(|e| (e.fingerprint.as_str(), e)).collect();
    let mut added: BTreeMap<Decision, usize> = BTreeMap::new();
    let mut wider = 0;
    for entry in after.iter().filter(|e| e.decision.sets_aside()) {
        match known
            .get(entry.fingerprint.as_str())
            .filter(|old| old.decision.sets_aside())
        {
            None => *added.entry(entry.decision).or_default() += 1,
            Some(old) => wider += usize::from(is_wider(old, entry)),
        }
    }
    let mut parts = Vec::new();
    if !added.is_empty() {
        let counts: Vec<String> = added
            .iter()
            .map(|(decision, n)| format!("{n} {}", decision.name()))
            .collect();
        let findings = if added.values().sum::<usize>() == 1 {
            "finding"
        } else {
            "findings"
        };
        parts.push(format!("adds {} {findings}", counts.join(" and ")));
    }
    if wider > 0 {
        parts.push(format!(
            "covers more with {wider} {}",
            if wider == 1 { "entry" } else { "entries" }
        ));
    }
    (!parts.is_empty()).then(|| format!("the file of dispositions {}", parts.join(" and ")))
}

/// Returns true if an entry covers more than before: other lines, another rule, or a later day; or
/// if it states more than before: that the finding is wrong, or a reason, which rejecting a
/// critical finding needs.
fn is_wider(old: &DecisionEntry, new: &DecisionEntry) -> bool {
    let is_rejected_now = new.decision == Decision::Rejected && old.decision != Decision::Rejected;
    let is_explained_now = old.reason.trim().is_empty() && !new.reason.trim().is_empty();
    let is_later = match (old.expires, new.expires) {
        (Some(old), Some(new)) => new > old,
        (Some(_), None) => true,
        (None, _) => false,
    };
    let takes_effect = is_rejected_now || new.decision == Decision::Rejected && is_explained_now;
    let is_elsewhere =
        old.occurrence != new.occurrence || old.rule != new.rule || old.path != new.path;
    is_later || takes_effect || is_elsewhere || old.digest != new.digest
}
