//! Compares two values of one key by the key's rule, [`Weaker`].

use super::PolicyVersions;
use crate::finding::Severity;
use crate::policy::cover::{Area, ProofBudget};
use crate::policy::keys::Weaker;
use crate::policy::threshold::{ThresholdPair, no_longer_included, no_longer_warning};
use crate::policy::value::PolicyValue;
use std::time::Duration;

/// Describes each way in which the new value is weaker than the old one. A description follows the
/// name of the key: `no longer includes major`. The two values differ.
pub(super) fn descriptions(
    rule: Weaker,
    was: &PolicyValue,
    is: &PolicyValue,
    versions: &PolicyVersions<'_>,
) -> Vec<String> {
    let description = match rule {
        Weaker::Never => None,
        Weaker::EntryRemoved => no_longer_includes(&missing(was, is)),
        Weaker::EntryAdded => listed("now includes", &missing(is, was)),
        Weaker::MatchesMore => listed("now matches", &uncovered(was, is)),
        Weaker::BlocksLess => no_longer_includes(&names(no_longer_included(
            &was.to_severities(),
            &is.to_severities(),
        ))),
        Weaker::WarnsLess => no_longer_includes(&no_longer_warned(was, is, versions)),
        Weaker::CoversLess => covers_less(was, is),
        Weaker::Lower => lower(was, is),
        Weaker::Longer(unset) => longer(was, is, Duration::from_secs(unset)),
        Weaker::Later(steps) => later(steps, was, is),
        Weaker::Different => different(was, is),
        Weaker::RuleSeverityLower => return lower_rule_severities(was, is, versions),
    };
    description.into_iter().collect()
}

/// Describes entries that are gone; `None` if there are none.
fn no_longer_includes(entries: &[String]) -> Option<String> {
    listed("no longer includes", entries)
}

/// Returns a verb phrase and the entries of a list; `None` for an empty list.
fn listed(what: &str, entries: &[String]) -> Option<String> {
    (!entries.is_empty()).then(|| format!("{what} {}", entries.join(", ")))
}

/// Returns the entries of a list that another list does not have.
fn missing(from: &PolicyValue, other: &PolicyValue) -> Vec<String> {
    from.list()
        .iter()
        .filter(|s| !other.list().contains(s))
        .cloned()
        .collect()
}

/// Returns the new patterns that the old patterns do not provably cover.
fn uncovered(was: &PolicyValue, is: &PolicyValue) -> Vec<String> {
    let before: Vec<Area> = was.list().iter().map(|p| Area::of(p)).collect();
    let mut budget = ProofBudget::default();
    let mut added = missing(is, was);
    added.retain(|p| !Area::of(p).is_within_any(&before, &mut budget));
    added
}

/// Returns the severities that only warned, and neither warn nor block now. The values are those of
/// the top level's `warn_on`.
fn no_longer_warned(
    was: &PolicyValue,
    is: &PolicyValue,
    versions: &PolicyVersions<'_>,
) -> Vec<String> {
    let old = ThresholdPair {
        block_on: &versions.old.block_on,
        warn_on: &was.to_severities(),
    };
    let new = ThresholdPair {
        block_on: &versions.new.block_on,
        warn_on: &is.to_severities(),
    };
    names(no_longer_warning(old, new))
}

/// Returns the names of severities.
fn names(severities: impl Iterator<Item = Severity>) -> Vec<String> {
    severities.map(|s| s.name().to_owned()).collect()
}

/// Describes a selection that is smaller. An empty list selects everything.
fn covers_less(was: &PolicyValue, is: &PolicyValue) -> Option<String> {
    if was.list().is_empty() {
        return listed("is now limited to", is.list());
    }
    match is.list() {
        [] => None,
        _ => no_longer_includes(&missing(was, is)),
    }
}

/// Describes a smaller number or duration.
fn lower(was: &PolicyValue, is: &PolicyValue) -> Option<String> {
    let is_lower = match (was, is) {
        (PolicyValue::Count(was), PolicyValue::Count(is)) => is < was,
        (PolicyValue::Number(was), PolicyValue::Number(is)) => is < was,
        (PolicyValue::Span(was), PolicyValue::Span(is)) => is < was,
        _ => false,
    };
    is_lower.then(|| format!("is lowered from {} to {}", was.to_toml(), is.to_toml()))
}

/// Describes a longer duration. `unset` is the duration of a value that is not set.
fn longer(was: &PolicyValue, is: &PolicyValue, unset: Duration) -> Option<String> {
    let [was, is] = [was, is].map(|value| match value {
        PolicyValue::Span(span) => *span,
        _ => unset,
    });
    let [old, new] = [was, is].map(|span| PolicyValue::Span(span).to_toml());
    (is > was).then(|| format!("is raised from {old} to {new}"))
}

/// Describes a value that is later in a list of names, which starts with the strictest one.
fn later(steps: &[&str], was: &PolicyValue, is: &PolicyValue) -> Option<String> {
    let (was, is) = (name_of_choice(was), name_of_choice(is));
    (step_of(&is, steps) > step_of(&was, steps)).then(|| format!("changes from {was} to {is}"))
}

/// Returns the name of a choice, or `true` or `false`. A flag that is unset is false.
fn name_of_choice(value: &PolicyValue) -> String {
    match value {
        PolicyValue::Text(name) => name.clone(),
        PolicyValue::Unset => "false".to_owned(),
        value => value.to_toml(),
    }
}

/// Returns the position of a name in a list; `None` if it is not there.
fn step_of(name: &str, steps: &[&str]) -> Option<usize> {
    steps.iter().position(|step| *step == name)
}

/// Describes another value. A removed value is not weaker: the default of this program applies.
fn different(was: &PolicyValue, is: &PolicyValue) -> Option<String> {
    let was = match was {
        PolicyValue::Unset => "nothing".to_owned(),
        was => was.to_toml(),
    };
    (*is != PolicyValue::Unset).then(|| {
        format!(
            "changes from {was} to {}; this key decides which programs run or where data goes",
            is.to_toml()
        )
    })
}

/// Describes each rule whose severity is lower, in the order of their IDs. The values are tables of
/// rule IDs and severities; a rule without a row has its built-in severity.
fn lower_rule_severities(
    was: &PolicyValue,
    is: &PolicyValue,
    versions: &PolicyVersions<'_>,
) -> Vec<String> {
    let rows = was.table().iter().chain(is.table());
    let mut ids: Vec<&String> = rows.map(|(id, _)| id).collect();
    ids.sort();
    ids.dedup();
    ids.into_iter()
        .filter_map(|id| {
            let before = severity_of_rule(id, was, versions);
            let after = severity_of_rule(id, is, versions);
            (after < before).then(|| format!("lowers {id} from {before} to {after}"))
        })
        .collect()
}

/// Returns the severity of a rule under a table of severities. The built-in severity of an unknown
/// rule counts as critical.
fn severity_of_rule(id: &str, table: &PolicyValue, versions: &PolicyVersions<'_>) -> Severity {
    table
        .row(id)
        .and_then(|v| Severity::parse(v.text()))
        .or_else(|| (versions.built_in_severity)(id))
        .unwrap_or(Severity::Critical)
}
