//! Judges stored reviews by another policy: which verdicts differ, and why. Pure.
//!
//! Only the contents of a report can be judged again: the findings and the coverage. New rules and
//! backends that were not used would have to review the change; the result lists them for each
//! round.

use super::recall;
use crate::diff::RepoPath;
use crate::finding::{Confidence, Severity};
use crate::policy::Policy;
use crate::request::{OnBlock, OnIncomplete, OnTestFailure};
use crate::review::Review;
use crate::rules::RuleSet;
use crate::verdict::{FailureCause, Outcome, Skip};
use crate::wire::replay::{Because, Replayed, RoundResult};
use crate::wire::stored;
use crate::wire::{self, Failed, Finding, Report, Skipped, mapping};
use std::collections::BTreeMap;

/// The decisions on findings for a replay, by fingerprint; `None` if the finding is pending.
pub type Decisions = BTreeMap<String, Option<(wire::Disposition, wire::Decided)>>;

/// Judges a stored round by a policy. `rules` are the built-in ones without changes by the policy.
/// Findings that are not in `decisions` have their stored decision.
pub fn round(
    stored: &stored::Review,
    policy: &Policy,
    rules: &RuleSet,
    decisions: &Decisions,
) -> Replayed {
    let was = &stored.report;
    let mut report = was.clone();
    let mut because = Vec::new();
    look_away(&mut report, policy, &mut because);
    weigh(&mut report, policy, rules);
    decide(&mut report, decisions);
    truncated(&mut report, policy, &mut because);
    let mut review = recall::review(&report, b"");
    *review.judged_by = policy.clone();
    if matches!(review.outcome, Outcome::Reviewed | Outcome::Incomplete) {
        let complete = review.coverage.is_complete();
        review.outcome = if complete {
            Outcome::Reviewed
        } else {
            Outcome::Incomplete
        };
    }
    review.judge_again(OnBlock::Fail);
    for (f, judged) in report.findings.iter().zip(&review.findings) {
        let before = was.findings.iter().find(|b| b.id == f.id);
        because.extend(before.and_then(|b| differs(b, f, judged.blocking, policy)));
    }
    because.extend(tests(was, policy));
    because.sort_by_key(|b| {
        was.findings
            .iter()
            .position(|f| Some(&f.id) == b.id.as_ref())
    });
    let would_be = RoundResult {
        verdict: verdict(&review),
        exit_code: review.exit.code(),
    };
    let was_ending = RoundResult {
        verdict: was.verdict,
        exit_code: was.exit_code,
    };
    Replayed {
        review_id: stored.review_id.clone(),
        round: stored.round,
        timestamp: stored.timestamp.clone(),
        outcome: was.outcome,
        was: was_ending,
        would_be,
        flips: was.verdict != would_be.verdict,
        because,
        unknown: unknown(was, policy),
    }
}

/// Returns the reason that failed tests block or only warn, if that differs from the stored result.
fn tests(was: &Report, policy: &Policy) -> Option<Because> {
    let tests = was.test_results.as_ref().filter(|t| !t.passed)?;
    let blocks = policy.tests.on_failure == OnTestFailure::Block;
    let what = if blocks {
        "failed tests block"
    } else {
        "failed tests are a warning"
    };
    (tests.blocking != blocks).then(|| about(None, format!("{what}: tests.on_failure")))
}

/// Removes findings in files and of rules that the policy excludes.
fn look_away(report: &mut Report, policy: &Policy, because: &mut Vec<Because>) {
    report.findings.retain(|f| {
        let what = if is_ignored(f.file.as_deref(), policy) {
            "gone: its file is ignored"
        } else if is_rule(f) && policy.rules.disable.contains(&f.rule_id) {
            "gone: the rule is disabled"
        } else {
            return true;
        };
        because.push(of(f, what.to_owned()));
        false
    });
    let (gone, left): (Vec<Failed>, Vec<Failed>) = std::mem::take(&mut report.coverage.failed)
        .into_iter()
        .partition(|f| is_ignored(f.file.as_deref(), policy));
    report.coverage.failed = left;
    for f in gone {
        because.push(about(f.file.clone(), "not reviewed: ignored".to_owned()));
        report.coverage.skipped.extend(f.file.map(|file| Skipped {
            file,
            reason: Skip::Ignored.name().to_owned(),
        }));
    }
}

/// Returns true if a policy excludes a file; false if there is none.
fn is_ignored(file: Option<&str>, policy: &Policy) -> bool {
    file.is_some_and(|f| policy.ignores(&path(f)))
}

/// Assigns the policy's severity to every finding of a rule.
fn weigh(report: &mut Report, policy: &Policy, rules: &RuleSet) {
    for f in report.findings.iter_mut().filter(|f| is_rule(f)) {
        let set = policy
            .rules
            .severity
            .iter()
            .rev()
            .find(|(id, _)| *id == f.rule_id)
            .map(|(_, s)| *s);
        // A team rule keeps its severity: its file is not read here.
        if let Some(severity) = set.or_else(|| rules.severity(&f.rule_id)) {
            f.severity = severity.into();
        }
    }
}

/// Assigns the current decisions to findings.
fn decide(report: &mut Report, decisions: &Decisions) {
    for f in &mut report.findings {
        match decisions.get(&f.fingerprint) {
            None => {}
            Some(None) => (f.disposition, f.decided) = (wire::Disposition::Pending, None),
            Some(Some((disposition, decided))) => {
                (f.disposition, f.decided) = (*disposition, Some(decided.clone()));
            }
        }
    }
}

/// Applies the policy's setting for truncated files.
fn truncated(report: &mut Report, policy: &Policy, because: &mut Vec<Because>) {
    let c = &mut report.coverage;
    match policy.on_truncated {
        OnIncomplete::Warn => {
            let (cut, left): (Vec<Failed>, Vec<Failed>) = std::mem::take(&mut c.failed)
                .into_iter()
                .partition(|f| f.file.is_some() && is_cut_off(f));
            c.failed = left;
            for file in cut.into_iter().filter_map(|f| f.file) {
                because.push(about(
                    Some(file.clone()),
                    "may be cut off: on_truncated = \"warn\"".to_owned(),
                ));
                c.skipped.push(Skipped {
                    file,
                    reason: Skip::Limit.name().to_owned(),
                });
            }
        }
        OnIncomplete::Fail => {
            let (cut, left): (Vec<Skipped>, Vec<Skipped>) = std::mem::take(&mut c.skipped)
                .into_iter()
                .partition(|s| s.reason == Skip::Limit.name());
            c.skipped = left;
            for s in cut {
                because.push(about(
                    Some(s.file.clone()),
                    "was cut off: on_truncated = \"fail\"".to_owned(),
                ));
                let limit = "a limit".to_owned();
                c.failed.push(Failed {
                    file: Some(s.file),
                    reason: FailureCause::CutOff { limit }.to_string(),
                });
            }
        }
    }
}

/// Returns true if a limit kept a part of a file from the models.
fn is_cut_off(failed: &Failed) -> bool {
    matches!(
        FailureCause::parse(&failed.reason),
        FailureCause::CutOff { .. }
    )
}

/// Returns how the effect of a finding differs, if it does.
fn differs(before: &Finding, f: &Finding, blocks: bool, policy: &Policy) -> Option<Because> {
    let (name, earlier) = (
        Severity::from(f.severity).name(),
        Severity::from(before.severity).name(),
    );
    let changed = before.severity != f.severity;
    let weight = if changed {
        format!("severity {name} instead of {earlier}")
    } else {
        format!("severity {name}")
    };
    let thresholds = policy.thresholds(f.file.as_deref().map(path).as_ref());
    let confidence = Confidence::from(f.confidence);
    let weak = !is_rule(f) && confidence < thresholds.min_confidence;
    let what = match (before.blocking, blocks) {
        (false, true) => format!("blocks: {weight}"),
        (true, false) if !f.counts() => format!("no longer blocks: {}", wire::name(&f.disposition)),
        (true, false) if weak => format!(
            "no longer blocks: confidence {} is below min_confidence",
            confidence.name()
        ),
        (true, false) => format!("no longer blocks: {weight}"),
        _ if changed => weight,
        _ => return None,
    };
    Some(of(before, what))
}

/// Returns the results that are unknown without another review.
fn unknown(report: &Report, policy: &Policy) -> Vec<String> {
    let mut out = Vec::new();
    let backends = policy.review.backends.iter().map(String::as_str);
    let new: Vec<_> = backends
        .filter(|name| report.usage.iter().all(|u| u.backend != *name))
        .collect();
    if !new.is_empty() {
        out.push(format!(
            "findings of {}, which did not run then",
            new.join(", ")
        ));
    }
    let gone: Vec<_> = report
        .usage
        .iter()
        .map(|u| u.backend.as_str())
        .filter(|u| !policy.review.backends.iter().any(|b| b == u))
        .collect();
    if !gone.is_empty() {
        out.push(format!(
            "findings of {} count, although the policy does not name it",
            gone.join(", ")
        ));
    }
    let ignored = report
        .coverage
        .skipped
        .iter()
        .filter(|s| s.reason == Skip::Ignored.name());
    let unread = ignored.filter(|s| !policy.ignores(&path(&s.file))).count();
    if unread > 0 {
        out.push(format!(
            "findings in {unread} file{} that were ignored then",
            if unread == 1 { "" } else { "s" }
        ));
    }
    let same = RuleSet::new(&policy.rules, &[]).is_ok_and(|r| r.hash() == report.tool.rules_hash);
    if !same {
        out.push("findings of rules that were not active then".to_owned());
    }
    out
}

/// Returns true if a rule reported the finding.
fn is_rule(f: &Finding) -> bool {
    f.origin == crate::finding::Origin::Rules.name()
}

/// Parses a path as in reports.
fn path(wire: &str) -> RepoPath {
    mapping::path(wire)
}

/// Returns a reason with its finding.
fn of(f: &Finding, what: String) -> Because {
    Because {
        id: Some(f.id.clone()),
        fingerprint: Some(f.fingerprint.clone()),
        rule_id: Some(f.rule_id.clone()),
        file: f.file.clone(),
        line: f.line,
        severity: Some(f.severity),
        what,
    }
}

/// Returns a reason that is about a file or about the whole review.
fn about(file: Option<String>, what: String) -> Because {
    Because {
        id: None,
        fingerprint: None,
        rule_id: None,
        file,
        line: None,
        severity: None,
        what,
    }
}

/// Returns the verdict of a review for reports.
fn verdict(review: &Review) -> wire::Verdict {
    crate::report::json::report(review).verdict
}

#[cfg(test)]
mod tests;
