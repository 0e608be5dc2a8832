//! How a report contradicts itself. A report whose verdict is better than its content must not open
//! a gate. A consistent report with another content cannot be distinguished from an honest one.

use crate::finding::Origin;
use crate::request::Shard;
use crate::verdict::Skip;
use crate::wire::merging::PolicyEffect;
use crate::wire::{
    self, Disposition, Finding, Outcome, Severity, SourceKind, TestOutcome, UnlistedCounts, Verdict,
};

/// Returns how a report contradicts itself; `None` if it does not.
pub(super) fn of(report: &wire::Report) -> Option<String> {
    if let Some(shard) = report.shard
        && Shard::new(shard.index, shard.of).is_none()
    {
        return Some(format!("there is no shard {}/{}", shard.index, shard.of));
    }
    wrong_verdict(report)
        .or_else(|| wrong_outcome(report))
        .or_else(|| wrong_exit(report))
        .or_else(|| wrong_coverage(report))
        .or_else(|| wrong_totals(report))
        .or_else(|| wrong_facts(report))
}

/// Returns why the verdict is better than the findings, the tests and the coverage.
fn wrong_verdict(report: &wire::Report) -> Option<String> {
    let unlisted = unlisted(report);
    let verdict = report.verdict;
    let failed = !report.coverage.failed.is_empty();
    let tests = report.test_results.as_ref();
    let is_limited = || {
        let mut skipped = report.coverage.skipped.iter();
        skipped.any(|s| s.reason == Skip::Limit.name())
    };
    let why = if verdict != Verdict::Block {
        if report.findings.iter().any(|f| f.blocking) || unlisted.blocking > 0 {
            "a finding blocks, and the verdict is not block"
        } else if tests.is_some_and(|t| has_failed(t) && t.blocking) {
            "failed tests block, and the verdict is not block"
        } else if verdict == Verdict::Incomplete && !failed {
            "the verdict is incomplete, and no part is named"
        } else if failed && verdict != Verdict::Incomplete {
            "a part was not reviewed, and the verdict does not say so"
        } else if verdict == Verdict::Pass
            && (unlisted.warning > 0 || is_limited() || tests.is_some_and(has_failed))
        {
            "there is a warning, and the verdict is pass"
        } else {
            return None;
        }
    } else {
        return None;
    };
    Some(why.to_owned())
}

/// Returns true if the project's tests ran and failed.
fn has_failed(tests: &wire::TestResults) -> bool {
    match tests.outcome {
        Some(outcome) => outcome == TestOutcome::Failed,
        None => !tests.passed,
    }
}

/// Returns the numbers of findings that are not listed.
fn unlisted(report: &wire::Report) -> UnlistedCounts {
    report.summary.unlisted.clone().unwrap_or_default()
}

/// Returns why the outcome does not fit the coverage. A cancelled review can be complete: the signal
/// came at its end.
fn wrong_outcome(report: &wire::Report) -> Option<String> {
    let failed = !report.coverage.failed.is_empty();
    let why = match report.outcome {
        Outcome::NothingToReview if !report.findings.is_empty() => {
            "nothing was reviewed, and there are findings"
        }
        Outcome::Incomplete if !failed => "the outcome is incomplete, and no part is named",
        Outcome::Reviewed | Outcome::NothingToReview if failed => {
            "a part was not reviewed, and the outcome does not say so"
        }
        Outcome::Cancelled if !matches!(report.exit_code, 130 | 143) => {
            "the review was cancelled, and the exit code does not say so"
        }
        _ => return None,
    };
    Some(why.to_owned())
}

/// Returns why the numbers of files do not fit each other. In a complete review, a file that was not
/// reviewed was skipped. The skipped files of a history are not listed, and a path that several
/// commits skip is listed once. A finding can be in a file that was not reviewed: rules about the
/// change as a whole read files that a filter or another shard has.
fn wrong_coverage(report: &wire::Report) -> Option<String> {
    let c = &report.coverage;
    if c.files_reviewed > c.files_total {
        return Some("more files were reviewed than there are".to_owned());
    }
    let left = c.files_total - c.files_reviewed;
    let lists_all = report.shard.is_some() || report.source.kind != SourceKind::Tree;
    let is_listed = match report.shard {
        Some(_) => left <= c.skipped.len(),
        None => left == 0 || !c.skipped.is_empty(),
    };
    (c.failed.is_empty() && lists_all && !is_listed)
        .then(|| format!("{left} files were neither reviewed nor skipped"))
}

/// Returns true if the exit code is that of a signal. A signal can come after the review, while its
/// report is written.
fn is_ended(report: &wire::Report) -> bool {
    matches!(report.exit_code, 130 | 143)
}

/// Returns why the exit code is not one of the verdict.
fn wrong_exit(report: &wire::Report) -> Option<String> {
    let fits = match report.verdict {
        Verdict::Pass | Verdict::Warn => report.exit_code == 0,
        Verdict::Block => report.exit_code <= 1,
        Verdict::Incomplete => matches!(report.exit_code, 0 | 3),
    };
    let why = || {
        let verdict = wire::name(&report.verdict);
        format!(
            "the exit code is {}, and the verdict {verdict}",
            report.exit_code
        )
    };
    (!fits && !is_ended(report)).then(why)
}

/// Returns why the totals are not those of the listed and unlisted findings.
fn wrong_totals(report: &wire::Report) -> Option<String> {
    let s = &report.summary;
    let unlisted = unlisted(report);
    let severities = [
        (Severity::Critical, s.critical, unlisted.critical),
        (Severity::Major, s.major, unlisted.major),
        (Severity::Minor, s.minor, unlisted.minor),
        (Severity::Suggestion, s.suggestion, unlisted.suggestion),
    ];
    for (severity, stated, unlisted) in severities {
        let counting = report.findings.iter().filter(|f| f.counts());
        let listed = counting.filter(|f| f.severity == severity).count();
        if listed.checked_add(unlisted) != Some(stated) {
            let name = wire::name(&severity);
            return Some(format!("the summary counts {stated} {name} findings"));
        }
    }
    let is_undecided =
        |f: &&wire::Finding| f.disposition != Disposition::Pending && f.decided.is_none();
    let undecided = report.findings.iter().find(is_undecided);
    undecided.map(|f| format!("the decision on {} is missing", f.id))
}

/// Returns why the facts for the merge do not belong to the report.
fn wrong_facts(report: &wire::Report) -> Option<String> {
    let facts = match (&report.merge, report.shard) {
        (None, None) => return None,
        (None, Some(_)) => return Some("the report of a shard lacks `merge`".to_owned()),
        (Some(_), None) => return Some("it has `merge`, and is not of a shard".to_owned()),
        (Some(facts), Some(_)) => facts,
    };
    if facts.findings.len() != report.findings.len() {
        return Some("`merge` has another number of findings".to_owned());
    }
    let accepts = match report.verdict {
        Verdict::Block => Some(facts.exit_zero),
        Verdict::Incomplete => Some(facts.incomplete_passes),
        Verdict::Pass | Verdict::Warn => None,
    };
    if !is_ended(report) && accepts.is_some_and(|accepts| accepts != (report.exit_code == 0)) {
        return Some("`merge` has another exit code".to_owned());
    }
    let unlisted = unlisted(report);
    let blocking = facts.unlisted_blocking.iter().sum::<usize>();
    let counting = [
        unlisted.critical,
        unlisted.major,
        unlisted.minor,
        unlisted.suggestion,
    ];
    let mut pairs = facts.unlisted_blocking.iter().zip(counting);
    if blocking != unlisted.blocking || pairs.any(|(blocking, all)| *blocking > all) {
        return Some("`merge` has another number of blocking findings".to_owned());
    }
    let mut pairs = report.findings.iter().zip(&facts.findings);
    let wrong = pairs.find(|(f, facts)| has_wrong_effect(f, facts.effect, report.verdict));
    wrong.map(|(f, _)| format!("`merge` has another effect of {}", f.id))
}

/// Returns true if the effect that the policy gives to a finding does not fit the finding and the
/// verdict. The finding of a model that is not certain or is disputed warns instead of blocking.
fn has_wrong_effect(f: &Finding, effect: PolicyEffect, verdict: Verdict) -> bool {
    let counts = f.counts();
    let is_of_rules = f.origin == Origin::Rules.name();
    let blocks = counts && effect == PolicyEffect::Blocks;
    let warns = counts && effect != PolicyEffect::Counts;
    (f.blocking && !blocks)
        || (blocks && is_of_rules && !f.blocking)
        || (warns && verdict == Verdict::Pass)
}
