//! Converts a stored report back to a review, so that every format can display it and a policy can
//! judge it again. Pure.
//!
//! A finding that was proven before it was stored needs no new proof. Data that a report lacks is
//! not restored: the columns of a match except for the first, and the texts of dropped claims.

use super::region::changes;
use crate::ai::{Dropped, Models};
use crate::diff::{FileChange, LineKind, ObjectId, trim_line_end};
use crate::error::ExitStatus;
use crate::finding::{Evidence, Finding, Frame, FrameLine, LineSpan, Location, Origin, Proof};
use crate::policy::Policy;
use crate::request::OnTestFailure;
use crate::review::{PolicyInfo, Review, SessionRef, Stat, TestResults};
use crate::wire::{self, mapping};
use std::time::Duration;

/// Lines around a finding that are displayed, lines of it, and bytes of a line, at most.
const AROUND: u32 = 1;
const FRAME_LINES: u32 = 8;
const FRAME_BYTES: usize = 1_000;

/// Claims of models that could not be anchored and are restored, at most: each has an entry in
/// memory.
pub(super) const DROPPED_MOST: usize = 100_000;

/// Returns the review of a report. `change` is the stored change; unreadable parts of it display no
/// code.
pub fn review(report: &wire::Report, change: &[u8]) -> Review {
    let files = changes(change).unwrap_or_default();
    let mut asked: Vec<String> = report.usage.iter().map(|u| u.backend.clone()).collect();
    asked.dedup();
    Review {
        decisions: Default::default(),
        source: mapping::source(report),
        outcome: report.outcome.into(),
        verdict: report.verdict.into(),
        exit: ExitStatus::ALL
            .into_iter()
            .find(|e| e.code() == report.exit_code)
            .unwrap_or(ExitStatus::Incomplete),
        findings: report.findings.iter().map(|f| framed(f, &files)).collect(),
        unlisted: report
            .summary
            .unlisted
            .as_ref()
            .map(Into::into)
            .unwrap_or_default(),
        notes: report.notes.iter().map(Into::into).collect(),
        coverage: (&report.coverage).into(),
        stat: Stat::of(files.iter().map(|(_, file)| file)),
        first_change: first_change(&files),
        policy: PolicyInfo {
            origin: report.policy.origin.clone(),
            hash: report.policy.hash.clone(),
        },
        judged_by: judged_by(report),
        rules_hash: report.tool.rules_hash.clone(),
        rules_only: asked.is_empty(),
        models: models(report, asked),
        context: report.context.iter().map(Into::into).collect(),
        tests: report.test_results.as_ref().map(|t| TestResults {
            outcome: mapping::test_outcome(t),
            summary: t.summary.clone(),
            failing: t.failing_tests.clone(),
            coverage: t.coverage.clone(),
        }),
        timestamp: report.timestamp.parse().unwrap_or_default(),
        duration: Duration::from_millis(report.duration_ms),
        place: None,
        is_elsewhere: false,
        merge_inputs: Default::default(),
        record: None,
        unrecorded: Vec::new(),
        session: report.review_id.clone().map(|id| SessionRef {
            id,
            round: report.round,
        }),
    }
}

/// Returns the part of the report's policy that formats need: whether failed tests block.
fn judged_by(report: &wire::Report) -> Box<Policy> {
    let mut policy = Policy::default();
    if report.test_results.as_ref().is_some_and(|t| !t.blocking) {
        policy.tests.on_failure = OnTestFailure::Warn;
    }
    Box::new(policy)
}

/// Returns stored findings, with their code from `change`.
pub fn findings(recorded: &[wire::Finding], change: &[u8]) -> Vec<Finding> {
    let files = changes(change).unwrap_or_default();
    recorded.iter().map(|f| framed(f, &files)).collect()
}

/// Returns a stored finding without its code.
fn finding(f: &wire::Finding) -> Finding {
    finding_at(f, None)
}

/// Returns a stored finding without its code. `columns` are those of the match in its first line.
pub(super) fn finding_at(f: &wire::Finding, columns: Option<(u32, u32)>) -> Finding {
    let origin = match f.origin.as_str() {
        name if name == Origin::Rules.name() => Origin::Rules,
        name => Origin::Backend(name.to_owned()),
    };
    let evidence = f.evidence.iter();
    let evidence = evidence.filter_map(|e| mapping::evidence(e)).collect();
    let proof = Proof::recorded(origin, evidence, f.confidence.into(), &f.fingerprint);
    let mut draft = mapping::draft(f);
    if let Some(lines) = draft.location.as_mut().and_then(|l| l.lines.as_mut()) {
        lines.columns = columns;
    }
    let mut out = Finding::new(proof, draft);
    out.commit = f.commit.as_deref().and_then(ObjectId::from_hex);
    out.suppressed = f.suppressed.as_ref().map(Into::into);
    out.waived = f.waived.as_ref().map(Into::into);
    out.disputed.clone_from(&f.disputed);
    out.disposition = mapping::disposition(f);
    out.reproduction = f.reproduction.as_ref().map(Into::into);
    out.blocking = f.blocking;
    out.stated_column = f.column;
    out
}

fn framed(f: &wire::Finding, files: &[(Option<String>, FileChange)]) -> Finding {
    let mut out = finding(f);
    if let (Some(file), Some(span)) = (out.file(), out.lines()) {
        let mut files = files.iter().rev();
        let change = files.find(|(commit, change)| *commit == f.commit && change.path() == file);
        out.frame = change.and_then(|(_, change)| frame(change, span));
    }
    out
}

/// Returns the lines around a finding from the stored change, where they are masked already.
fn frame(change: &FileChange, span: LineSpan) -> Option<Frame> {
    let text = change.text()?;
    let at = span.first.get();
    let hunk = text
        .hunks
        .iter()
        .find(|h| h.new.start <= at && at < h.new.start.saturating_add(h.new.count))?;
    let last = span.last.get().min(at.saturating_add(FRAME_LINES - 1));
    let wanted = at.saturating_sub(AROUND)..=last.saturating_add(AROUND);
    let shown = text
        .lines(hunk)
        .filter_map(|l| Some((l.new?, l)))
        .filter(|(n, _)| wanted.contains(&n.get()));
    let mut first = None;
    let lines = shown.map(|(n, l)| {
        first.get_or_insert(n);
        let whole = trim_line_end(l.text);
        let text = whole[..whole.len().min(FRAME_BYTES)].to_vec();
        FrameLine {
            text,
            skipped: 0,
            added: l.kind == LineKind::Added,
        }
    });
    let lines = lines.collect();
    Some(Frame {
        first: first?,
        lines,
    })
}

/// Returns the position of the first added line of a change.
fn first_change(files: &[(Option<String>, FileChange)]) -> Option<Location> {
    files.iter().find_map(|(_, change)| {
        let first = change.text()?.added().next()?.first;
        let span = LineSpan {
            first,
            last: first,
            columns: None,
        };
        Some(Location {
            file: change.path().clone(),
            lines: Some(span),
        })
    })
}

/// Returns the round of the session that reported a stored finding, if no later one has: see
/// [`Finding::carried_from`].
pub fn carried_from(f: &wire::Finding) -> Option<u32> {
    let mut evidence = f.evidence.iter().filter_map(|text| mapping::evidence(text));
    evidence.find_map(|e| match e {
        Evidence::Carried { round } => Some(round),
        _ => None,
    })
}

fn models(report: &wire::Report, asked: Vec<String>) -> Models {
    // Only their number is stored.
    let dropped = Dropped {
        backend: String::new(),
        claim: "a claim".to_owned(),
        why: "its text was not stored".into(),
    };
    Models {
        // Neither is stored.
        owed: false,
        no_conventions: None,
        asked,
        usage: report.usage.iter().map(Into::into).collect(),
        dropped: vec![dropped; report.summary.dropped.min(DROPPED_MOST)],
        compliance: report.design_compliance.as_ref().map(Into::into),
        missing: report.missing_requirements.iter().map(Into::into).collect(),
        // Neither is stored.
        setbacks: Vec::new(),
        criteria: Vec::new(),
        opinions: report.opinions.iter().map(Into::into).collect(),
    }
}

#[cfg(test)]
mod tests;
