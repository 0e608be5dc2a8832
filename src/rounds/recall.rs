//! Converts a stored report back to a review, so that every format can display it and a policy can
//! judge it again. Pure.
//!
//! A finding that was proven before it was stored needs no new proof. Data that a report lacks is
//! not restored: the columns of a match, the texts of dropped claims, the label of the source
//! (which the stored request has).

use super::region::changes;
use crate::ai::ask::Spent;
use crate::ai::{
    BackendUsage, Compliance, DesignViolation, Dropped, Models, Opinion, UnmetRequirement,
};
use crate::context::GatheredItem;
use crate::diff::{FileChange, LineKind, LineNo, ObjectId, RepoPath, trim_line_end, unified};
use crate::error::ExitStatus;
use crate::finding::listing::Unlisted;
use crate::finding::{
    Also, Category, Confidence, Decision, Disposition, Draft, Evidence, Finding, FlowRole,
    FlowStep, Frame, FrameLine, LineSpan, Location, Origin, Proof, Reproduction, Severity,
    Suppression, Waiver,
};
use crate::policy::Policy;
use crate::request::OnTestFailure;
use crate::review::{
    Note, PolicyInfo, Review, SessionRef, SourceInfo, SourceKind, Stat, TestResults,
};
use crate::verdict::{
    Coverage, CoverageFailure, FailureCause, Outcome, Share, Skip, TestOutcome, Verdict,
};
use crate::wire;
use std::time::Duration;

/// Lines around a finding that are displayed, lines of it, and bytes of a line, at most.
const AROUND: u32 = 1;
const FRAME_LINES: u32 = 8;
const FRAME_BYTES: usize = 1_000;

/// Returns the review of a report. `change` is the stored change; unreadable parts of it display no
/// code.
pub fn review(report: &wire::Report, change: &[u8]) -> Review {
    let files = changes(change).unwrap_or_default();
    let mut asked: Vec<String> = report.usage.iter().map(|u| u.backend.clone()).collect();
    asked.dedup();
    Review {
        decisions: Default::default(),
        source: source(&report.source),
        outcome: match report.outcome {
            wire::Outcome::Reviewed => Outcome::Reviewed,
            wire::Outcome::Incomplete => Outcome::Incomplete,
            wire::Outcome::NothingToReview => Outcome::NothingToReview,
            wire::Outcome::Cancelled => Outcome::Cancelled,
        },
        verdict: match report.verdict {
            wire::Verdict::Pass => Verdict::Pass,
            wire::Verdict::Warn => Verdict::Warn,
            wire::Verdict::Block => Verdict::Block,
            wire::Verdict::Incomplete => Verdict::Incomplete,
        },
        exit: ExitStatus::ALL
            .into_iter()
            .find(|e| e.code() == report.exit_code)
            .unwrap_or(ExitStatus::Incomplete),
        findings: report.findings.iter().map(|f| framed(f, &files)).collect(),
        unlisted: report
            .summary
            .unlisted
            .as_ref()
            .map(unlisted)
            .unwrap_or_default(),
        notes: report.notes.iter().map(note).collect(),
        coverage: coverage(&report.coverage),
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
        context: report.context.iter().map(context).collect(),
        tests: report.test_results.as_ref().map(|t| TestResults {
            outcome: test_outcome(t),
            summary: t.summary.clone(),
            failing: t.failing_tests.clone(),
            coverage: t.coverage.clone(),
        }),
        timestamp: report.timestamp.parse().unwrap_or_default(),
        duration: Duration::from_millis(report.duration_ms),
        place: None,
        is_elsewhere: false,
        record: None,
        unrecorded: Vec::new(),
        session: report.review_id.clone().map(|id| SessionRef {
            id,
            round: report.round,
        }),
    }
}

/// Returns a ticket that models got; its text is not stored.
fn context(c: &wire::ContextItem) -> GatheredItem {
    GatheredItem {
        reference: c.reference.clone(),
        title: c.title.clone(),
        source: c.source.clone(),
        version: c.version.clone(),
        digest: c.digest.clone(),
        text: String::new(),
    }
}

fn test_outcome(t: &wire::TestResults) -> TestOutcome {
    match t.outcome {
        Some(wire::TestOutcome::Passed) => TestOutcome::Passed,
        Some(wire::TestOutcome::Failed) => TestOutcome::Failed,
        Some(wire::TestOutcome::NotStarted) => TestOutcome::NotStarted,
        Some(wire::TestOutcome::TimedOut) => TestOutcome::TimedOut,
        Some(wire::TestOutcome::Stopped) => TestOutcome::Stopped,
        None if t.passed => TestOutcome::Passed,
        None => TestOutcome::Failed,
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
    let draft = Draft {
        rule_id: f.rule_id.clone(),
        location: f.file.as_deref().map(|file| Location {
            file: path(file),
            lines: span(f),
        }),
        also: f.also.iter().filter_map(also).collect(),
        flow: f.flow.iter().filter_map(flow_step).collect(),
        severity: severity(f.severity),
        category: category(f.category),
        title: f.title.clone(),
        message: f.message.clone(),
        failure: f.failure.clone(),
        suggestion: f.suggestion.clone(),
        replacement: f.replacement.clone(),
        quote: f.quote.clone(),
        cwe: f.cwe,
        convention: f.convention.clone(),
        references: f.references.clone(),
    };
    let origin = match f.origin.as_str() {
        name if name == Origin::Rules.name() => Origin::Rules,
        name => Origin::Backend(name.to_owned()),
    };
    let confidence = confidence(f.confidence);
    let evidence = f.evidence.iter().filter_map(|e| evidence(e)).collect();
    let mut out = Finding::new(
        Proof::recorded(origin, evidence, confidence, &f.fingerprint),
        draft,
    );
    out.commit = f.commit.as_deref().and_then(ObjectId::from_hex);
    out.suppressed = f.suppressed.as_ref().map(|s| Suppression {
        by: if s.by == "inline" { "inline" } else { "policy" },
        reason: s.reason.clone(),
    });
    out.waived = f.waived.as_ref().map(|w| Waiver {
        reason: w.reason.clone(),
        actor: w.actor.clone(),
        link: w.link.clone(),
    });
    out.disputed.clone_from(&f.disputed);
    out.disposition = disposition(f);
    out.reproduction = f.reproduction.as_ref().map(reproduction);
    out.blocking = f.blocking;
    out
}

fn disposition(f: &wire::Finding) -> Option<Disposition> {
    let decision = match f.disposition {
        wire::Disposition::Accepted => Decision::Accepted,
        wire::Disposition::Rejected => Decision::Rejected,
        wire::Disposition::Deferred => Decision::Deferred,
        wire::Disposition::Pending | wire::Disposition::Fixed => return None,
    };
    let decided = f.decided.as_ref()?;
    let expires = decided.expires.as_ref().and_then(|date| date.parse().ok());
    Some(Disposition {
        decision,
        reason: decided.reason.clone(),
        owner: decided.owner.clone(),
        expires,
    })
}

fn reproduction(r: &wire::ReproductionTest) -> Reproduction {
    let files = r
        .files
        .iter()
        .map(|f| (f.path.clone(), f.text.clone()))
        .collect();
    Reproduction {
        command: r.command.clone(),
        files,
    }
}

/// Returns a related line of a stored finding, or `None` if it has no number.
fn also(a: &wire::Also) -> Option<Also> {
    Some(Also {
        file: path(&a.file),
        line: LineNo::new(a.line)?,
        quote: a.quote.clone(),
    })
}

/// Returns a step of a stored data flow, or `None` if it has no number.
fn flow_step(s: &wire::FlowStep) -> Option<FlowStep> {
    let role = match s.role {
        wire::FlowRole::Source => FlowRole::Source,
        wire::FlowRole::Through => FlowRole::Through,
        wire::FlowRole::Sink => FlowRole::Sink,
    };
    Some(FlowStep {
        line: LineNo::new(s.line)?,
        role,
        quote: s.quote.clone(),
    })
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

fn source(s: &wire::ReviewedSource) -> SourceInfo {
    let kind = match s.kind {
        wire::SourceKind::Staged => SourceKind::Staged,
        wire::SourceKind::Unstaged => SourceKind::Unstaged,
        wire::SourceKind::Changes => SourceKind::Changes,
        wire::SourceKind::Commit => SourceKind::Commit,
        wire::SourceKind::Branch => SourceKind::Branch,
        wire::SourceKind::Patch => SourceKind::Patch,
        wire::SourceKind::Code => SourceKind::Code,
        wire::SourceKind::Pr => SourceKind::Pr,
    };
    let (base, head, tree) = (s.base.clone(), s.head.clone(), s.tree.clone());
    SourceInfo {
        kind,
        base,
        head,
        tree,
        base_tree: None,
        label: kind.name().to_owned(),
    }
}

fn note(n: &wire::ReportNote) -> Note {
    Note {
        file: n.file.as_deref().map(path),
        line: n.line.and_then(LineNo::new),
        text: n.text.clone(),
        origin: n.origin.clone(),
    }
}

fn unlisted(u: &wire::UnlistedCounts) -> Unlisted {
    let mut out = Unlisted {
        counting: [u.critical, u.major, u.minor, u.suggestion],
        warning: u.warning,
        suppressed: u.suppressed,
        ..Unlisted::default()
    };
    // The severities of blocking ones are not stored: assume the highest.
    let mut left = u.blocking;
    for (blocking, counting) in out.blocking.iter_mut().zip(out.counting) {
        *blocking = left.min(counting);
        left -= *blocking;
    }
    out
}

fn coverage(c: &wire::Coverage) -> Coverage {
    Coverage {
        files_total: c.files_total,
        files_reviewed: c.files_reviewed,
        by_reviewer: c
            .by_reviewer
            .iter()
            .map(|(name, r)| (name.clone(), share(r)))
            .collect(),
        hunks_total: c.hunks_total,
        hunks_reviewed: c.hunks_reviewed,
        // Not stored; only a running review needs it.
        hunks_by_rules: c.hunks_reviewed,
        cached: c.cached,
        records: c.records,
        skipped: c
            .skipped
            .iter()
            .map(|s| (path(&s.file), skip(&s.reason)))
            .collect(),
        failed: c
            .failed
            .iter()
            .map(|f| CoverageFailure {
                file: f.file.as_deref().map(path),
                cause: FailureCause::parse(&f.reason),
            })
            .collect(),
    }
}

/// Returns the reason with a name why a file was skipped.
fn skip(name: &str) -> Skip {
    Skip::ALL
        .iter()
        .copied()
        .find(|s| s.name() == name)
        .unwrap_or(Skip::Ignored)
}

fn share(r: &wire::ReviewerCoverage) -> Share {
    Share {
        files_reviewed: r.files_reviewed,
        files_total: r.files_total,
    }
}

fn models(report: &wire::Report, asked: Vec<String>) -> Models {
    // Only their number is stored.
    let dropped = Dropped {
        backend: String::new(),
        claim: "a claim".to_owned(),
        why: "its text was not stored",
    };
    Models {
        // Neither is stored.
        owed: false,
        no_conventions: None,
        asked,
        usage: report
            .usage
            .iter()
            .map(|u| BackendUsage {
                backend: u.backend.clone(),
                model: u.model.clone(),
                spent: Spent {
                    requests: u.requests,
                    input_tokens: u.input_tokens,
                    cached_tokens: u.cached_tokens,
                    output_tokens: u.output_tokens,
                    cost_usd: u.cost_usd,
                    ..Spent::default()
                },
                from_cache: u.from_cache,
                failed: u.failed,
                duration: Duration::from_millis(u.duration_ms),
            })
            .collect(),
        dropped: vec![dropped; report.summary.dropped],
        compliance: report.design_compliance.as_ref().map(|c| Compliance {
            follows: c.follows_architecture,
            violations: c
                .violations
                .iter()
                .map(|v| DesignViolation {
                    issue: v.issue.clone(),
                    description: v.description.clone(),
                    impact: severity(v.impact),
                    reference: v.reference.clone(),
                    recommendation: v.recommendation.clone(),
                })
                .collect(),
        }),
        missing: report
            .missing_requirements
            .iter()
            .map(|m| UnmetRequirement {
                requirement: m.requirement.clone(),
                reference: m.reference.clone(),
                severity: severity(m.severity),
            })
            .collect(),
        // Neither is stored.
        setbacks: Vec::new(),
        criteria: Vec::new(),
        opinions: report
            .opinions
            .iter()
            .map(|o| Opinion {
                backend: o.backend.clone(),
                text: o.text.clone(),
            })
            .collect(),
    }
}

fn span(f: &wire::Finding) -> Option<LineSpan> {
    let first = LineNo::new(f.line?)?;
    let last = f
        .end_line
        .and_then(LineNo::new)
        .filter(|l| *l >= first)
        .unwrap_or(first);
    Some(LineSpan {
        first,
        last,
        columns: None,
    })
}

fn evidence(text: &str) -> Option<Evidence> {
    if text == "quote" {
        return Some(Evidence::Quote);
    }
    if text == "reproduced" {
        return Some(Evidence::Reproduced);
    }
    let (kind, rest) = text.split_once(':')?;
    match kind {
        "rule" => Some(Evidence::Rule(rest.to_owned())),
        "backend" => Some(Evidence::Backend(rest.to_owned())),
        "carried" => Some(Evidence::Carried {
            round: rest.strip_prefix("round-")?.parse().ok()?,
        }),
        "read" => {
            let (file, lines) = rest.rsplit_once(':')?;
            let (first, last) = lines.split_once('-')?;
            let first = LineNo::new(first.parse().ok()?)?;
            let last = LineNo::new(last.parse().ok()?)?;
            Some(Evidence::Read {
                path: path(file),
                first,
                last,
            })
        }
        _ => None,
    }
}

/// Parses a path as in reports: a path that is not UTF-8 is quoted as in git.
pub(super) fn path(wire: &str) -> RepoPath {
    let quoted = unified::unquote(wire.as_bytes());
    match quoted.filter(|(bytes, end)| *end == wire.len() && std::str::from_utf8(bytes).is_err()) {
        Some((bytes, _)) => RepoPath::new(bytes),
        None => RepoPath::from(wire),
    }
}

pub(super) fn severity(s: wire::Severity) -> Severity {
    match s {
        wire::Severity::Critical => Severity::Critical,
        wire::Severity::Major => Severity::Major,
        wire::Severity::Minor => Severity::Minor,
        wire::Severity::Suggestion => Severity::Suggestion,
    }
}

/// Converts a severity for reports.
pub(super) fn wire_severity(s: Severity) -> wire::Severity {
    match s {
        Severity::Critical => wire::Severity::Critical,
        Severity::Major => wire::Severity::Major,
        Severity::Minor => wire::Severity::Minor,
        Severity::Suggestion => wire::Severity::Suggestion,
    }
}

pub(super) fn confidence(c: wire::Confidence) -> Confidence {
    match c {
        wire::Confidence::High => Confidence::High,
        wire::Confidence::Medium => Confidence::Medium,
        wire::Confidence::Low => Confidence::Low,
    }
}

fn category(c: wire::Category) -> Category {
    match c {
        wire::Category::Bug => Category::Bug,
        wire::Category::Security => Category::Security,
        wire::Category::Performance => Category::Performance,
        wire::Category::Style => Category::Style,
        wire::Category::Architecture => Category::Architecture,
        wire::Category::Design => Category::Design,
        wire::Category::MissingRequirement => Category::MissingRequirement,
        wire::Category::BestPractice => Category::BestPractice,
        wire::Category::Test => Category::Test,
    }
}

#[cfg(test)]
mod tests;
