//! The JSON report: the review in the types of [`crate::wire`].

use super::{counted, dispositioned, plural, suppressed, totals, words};
use crate::ai;
use crate::diff::RepoPath;
use crate::finding::listing::Unlisted;
use crate::finding::{self, Evidence};
use crate::review::{Review, SourceKind};
use crate::verdict::{self, Share, TestOutcome};
use crate::wire;
use std::io::{self, Write};

/// Writes the JSON report, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    wire::write(&report(review), out)
}

/// Returns the report of a review.
pub fn report(review: &Review) -> wire::Report {
    let c = &review.coverage;
    wire::Report {
        schema_version: wire::SCHEMA_VERSION,
        tool: wire::Tool {
            name: crate::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rules_hash: review.rules_hash.clone(),
        },
        review_id: review.session.as_ref().map(|s| s.id.clone()),
        round: review.session.as_ref().map_or(1, |s| s.round),
        outcome: match review.outcome {
            verdict::Outcome::Reviewed => wire::Outcome::Reviewed,
            verdict::Outcome::Incomplete => wire::Outcome::Incomplete,
            verdict::Outcome::NothingToReview => wire::Outcome::NothingToReview,
            verdict::Outcome::Cancelled => wire::Outcome::Cancelled,
        },
        timestamp: review.timestamp.to_string(),
        source: source(review),
        verdict: match review.verdict {
            verdict::Verdict::Pass => wire::Verdict::Pass,
            verdict::Verdict::Warn => wire::Verdict::Warn,
            verdict::Verdict::Block => wire::Verdict::Block,
            verdict::Verdict::Incomplete => wire::Verdict::Incomplete,
        },
        exit_code: review.exit.code(),
        assessment: review.verdict.assessment(review.outcome).map(|a| match a {
            verdict::Assessment::Lgtm => wire::Assessment::Lgtm,
            verdict::Assessment::LgtmWithSuggestions => wire::Assessment::LgtmWithSuggestions,
            verdict::Assessment::NeedsChanges => wire::Assessment::NeedsChanges,
        }),
        summary: summary(review),
        findings: review
            .findings
            .iter()
            .enumerate()
            .map(|(i, f)| finding(i, f))
            .collect(),
        notes: review
            .notes
            .iter()
            .map(|n| wire::ReportNote {
                file: n.file.as_ref().map(RepoPath::to_wire),
                line: n.line.map(|l| l.get()),
                text: n.text.clone(),
                origin: n.origin.clone(),
            })
            .collect(),
        design_compliance: review
            .models
            .compliance
            .as_ref()
            .map(|c| wire::DesignCompliance {
                follows_architecture: c.follows,
                violations: c
                    .violations
                    .iter()
                    .map(|v| wire::DesignViolation {
                        issue: v.issue.clone(),
                        description: v.description.clone(),
                        impact: severity(v.impact),
                        reference: v.reference.clone(),
                        recommendation: v.recommendation.clone(),
                    })
                    .collect(),
            }),
        context: review.context.iter().map(context).collect(),
        missing_requirements: review
            .models
            .missing
            .iter()
            .map(|m| wire::MissingRequirement {
                requirement: m.requirement.clone(),
                reference: m.reference.clone(),
                severity: severity(m.severity),
            })
            .collect(),
        opinions: review
            .models
            .opinions
            .iter()
            .map(|o| wire::Opinion {
                backend: o.backend.clone(),
                text: o.text.clone(),
            })
            .collect(),
        test_results: review.tests.as_ref().map(|t| wire::TestResults {
            passed: t.outcome == TestOutcome::Passed,
            outcome: Some(test_outcome(t.outcome)),
            blocking: words::tests_block(review),
            summary: t.summary.clone(),
            failing_tests: t.failing.clone(),
            coverage: t.coverage.clone(),
        }),
        coverage: wire::Coverage {
            files_total: c.files_total,
            files_reviewed: c.files_reviewed,
            by_reviewer: c
                .by_reviewer
                .iter()
                .map(|(name, share)| (name.clone(), reviewer(*share)))
                .collect(),
            hunks_total: c.hunks_total,
            hunks_reviewed: c.hunks_reviewed,
            cached: c.cached,
            records: c.records,
            skipped: c
                .skipped
                .iter()
                .map(|(p, why)| wire::Skipped {
                    file: p.to_wire(),
                    reason: why.name().to_owned(),
                })
                .collect(),
            failed: c
                .failed
                .iter()
                .map(|f| wire::Failed {
                    file: f.file.as_ref().map(RepoPath::to_wire),
                    reason: f.reason(),
                })
                .collect(),
        },
        usage: review.models.usage.iter().map(usage).collect(),
        policy: wire::Policy {
            origin: review.policy.origin.clone(),
            hash: review.policy.hash.clone(),
        },
        duration_ms: wire::milliseconds(review.duration),
    }
}

fn reviewer(share: Share) -> wire::ReviewerCoverage {
    wire::ReviewerCoverage {
        files_reviewed: share.files_reviewed,
        files_total: share.files_total,
    }
}

fn test_outcome(outcome: TestOutcome) -> wire::TestOutcome {
    match outcome {
        TestOutcome::Passed => wire::TestOutcome::Passed,
        TestOutcome::Failed => wire::TestOutcome::Failed,
        TestOutcome::NotStarted => wire::TestOutcome::NotStarted,
        TestOutcome::TimedOut => wire::TestOutcome::TimedOut,
        TestOutcome::Stopped => wire::TestOutcome::Stopped,
    }
}

fn source(review: &Review) -> wire::ReviewedSource {
    let s = &review.source;
    wire::ReviewedSource {
        kind: match s.kind {
            SourceKind::Staged => wire::SourceKind::Staged,
            SourceKind::Unstaged => wire::SourceKind::Unstaged,
            SourceKind::Changes => wire::SourceKind::Changes,
            SourceKind::Commit => wire::SourceKind::Commit,
            SourceKind::Branch => wire::SourceKind::Branch,
            SourceKind::Patch => wire::SourceKind::Patch,
            SourceKind::Code => wire::SourceKind::Code,
            SourceKind::Pr => wire::SourceKind::Pr,
        },
        base: s.base.clone(),
        head: s.head.clone(),
        tree: s.tree.clone(),
    }
}

fn context(item: &crate::context::GatheredItem) -> wire::ContextItem {
    wire::ContextItem {
        reference: item.reference.clone(),
        title: item.title.clone(),
        source: item.source.clone(),
        version: item.version.clone(),
        digest: item.digest.clone(),
    }
}

fn summary(review: &Review) -> wire::Summary {
    let totals = totals(review);
    let [(_, critical), (_, major), (_, minor), (_, suggestion)] = totals;
    let c = &review.coverage;
    let blocking: usize = super::blocking(review).iter().map(|(_, n)| n).sum();
    let found = match counted(&totals) {
        n if n.is_empty() => "nothing found".to_owned(),
        n => n,
    };
    let reviewed = words::reviewed(review);
    let first = match (review.outcome, review.verdict) {
        (verdict::Outcome::NothingToReview, _) if c.files_total == 0 => {
            "No changes to review".to_owned()
        }
        (verdict::Outcome::NothingToReview, _) => {
            format!("Nothing to review: {}", words::left_out(review))
        }
        (_, verdict::Verdict::Block) => match blocking {
            0 => format!("Blocked: {found}; {reviewed}"),
            n => format!("Blocked by {}: {found}; {reviewed}", plural(n, "finding")),
        },
        (_, verdict::Verdict::Incomplete) => format!("Incomplete: {reviewed}; {found}"),
        (_, verdict::Verdict::Warn) => format!("Passed with warnings: {found}; {reviewed}"),
        (_, verdict::Verdict::Pass) => format!("Passed, {found}; {reviewed}"),
    };
    let others = [
        words::tests(review),
        words::truncated(review),
        words::unlisted(review),
        words::conventions(review),
    ];
    let text = std::iter::once(first)
        .chain(others.into_iter().flatten())
        .collect::<Vec<_>>()
        .join("; ");
    wire::Summary {
        text,
        critical,
        major,
        minor,
        suggestion,
        suppressed: suppressed(review),
        dispositioned: dispositioned(review),
        dropped: review.models.dropped.len(),
        unlisted: unlisted(&review.unlisted),
    }
}

fn unlisted(u: &Unlisted) -> Option<wire::UnlistedCounts> {
    let [critical, major, minor, suggestion] = u.counting;
    let out = wire::UnlistedCounts {
        critical,
        major,
        minor,
        suggestion,
        blocking: u.total_blocking(),
        warning: u.warning,
        suppressed: u.suppressed,
    };
    (*u != Unlisted::default()).then_some(out)
}

fn finding(index: usize, f: &finding::Finding) -> wire::Finding {
    let lines = f.lines();
    wire::Finding {
        id: format!("F{}", index + 1),
        fingerprint: f.fingerprint().to_string(),
        rule_id: f.rule_id().to_owned(),
        origin: f.origin().name().to_owned(),
        file: f.file().map(RepoPath::to_wire),
        line: lines.map(|l| l.first.get()),
        end_line: lines.map(|l| l.last.get()),
        also: f.also().iter().map(also).collect(),
        flow: f.flow().iter().map(flow_step).collect(),
        commit: f.commit.map(|c| c.to_string()),
        severity: severity(f.severity()),
        category: match f.category() {
            finding::Category::Bug => wire::Category::Bug,
            finding::Category::Security => wire::Category::Security,
            finding::Category::Performance => wire::Category::Performance,
            finding::Category::Style => wire::Category::Style,
            finding::Category::Architecture => wire::Category::Architecture,
            finding::Category::Design => wire::Category::Design,
            finding::Category::MissingRequirement => wire::Category::MissingRequirement,
            finding::Category::BestPractice => wire::Category::BestPractice,
            finding::Category::Test => wire::Category::Test,
        },
        confidence: match f.confidence() {
            finding::Confidence::High => wire::Confidence::High,
            finding::Confidence::Medium => wire::Confidence::Medium,
            finding::Confidence::Low => wire::Confidence::Low,
        },
        title: f.title().to_owned(),
        message: f.message().to_owned(),
        failure: f.failure().map(str::to_owned),
        suggestion: f.suggestion().map(str::to_owned),
        replacement: f.replacement().map(str::to_owned),
        quote: f.quote().to_owned(),
        cwe: f.cwe(),
        convention: f.convention().map(str::to_owned),
        evidence: f.evidence().iter().map(evidence).collect(),
        blocking: f.blocking,
        disputed: f.disputed.clone(),
        reproduction: f.reproduction.as_ref().map(reproduction),
        waived: f.waived.as_ref().map(|w| wire::Waiver {
            reason: w.reason.clone(),
            actor: w.actor.clone(),
            link: w.link.clone(),
        }),
        disposition: f
            .disposition
            .as_ref()
            .map_or(wire::Disposition::Pending, |d| decision(d.decision)),
        decided: f.disposition.as_ref().map(decided),
        suppressed: f.suppressed.as_ref().map(|s| wire::Suppression {
            by: s.by.to_owned(),
            reason: s.reason.clone(),
        }),
        references: f.references().to_vec(),
    }
}

/// Returns a decision in the type of the report.
pub(crate) fn decision(d: finding::Decision) -> wire::Disposition {
    match d {
        finding::Decision::Accepted => wire::Disposition::Accepted,
        finding::Decision::Rejected => wire::Disposition::Rejected,
        finding::Decision::Deferred => wire::Disposition::Deferred,
    }
}

fn decided(d: &finding::Disposition) -> wire::Decided {
    let expires = d.expires.map(|date| date.to_string());
    wire::Decided {
        reason: d.reason.clone(),
        owner: d.owner.clone(),
        expires,
    }
}

fn reproduction(r: &finding::Reproduction) -> wire::ReproductionTest {
    let files = r.files.iter().map(|(path, text)| wire::TestFile {
        path: path.clone(),
        text: text.clone(),
    });
    wire::ReproductionTest {
        command: r.command.clone(),
        files: files.collect(),
    }
}

fn also(a: &finding::Also) -> wire::Also {
    wire::Also {
        file: a.file.to_wire(),
        line: a.line.get(),
        quote: a.quote.clone(),
    }
}

fn flow_step(s: &finding::FlowStep) -> wire::FlowStep {
    let role = match s.role {
        finding::FlowRole::Source => wire::FlowRole::Source,
        finding::FlowRole::Through => wire::FlowRole::Through,
        finding::FlowRole::Sink => wire::FlowRole::Sink,
    };
    wire::FlowStep {
        role,
        line: s.line.get(),
        quote: s.quote.clone(),
    }
}

fn severity(s: finding::Severity) -> wire::Severity {
    match s {
        finding::Severity::Critical => wire::Severity::Critical,
        finding::Severity::Major => wire::Severity::Major,
        finding::Severity::Minor => wire::Severity::Minor,
        finding::Severity::Suggestion => wire::Severity::Suggestion,
    }
}

pub(super) fn usage(u: &ai::BackendUsage) -> wire::BackendUsage {
    wire::BackendUsage {
        backend: u.backend.clone(),
        model: u.model.clone(),
        requests: u.spent.requests,
        from_cache: u.from_cache,
        failed: u.failed,
        input_tokens: u.spent.input_tokens,
        cached_tokens: u.spent.cached_tokens,
        output_tokens: u.spent.output_tokens,
        cost_usd: u.spent.cost_usd,
        duration_ms: wire::milliseconds(u.duration),
    }
}

fn evidence(e: &Evidence) -> String {
    match e {
        Evidence::Rule(id) => format!("rule:{id}"),
        Evidence::Quote => "quote".to_owned(),
        Evidence::Reproduced => "reproduced".to_owned(),
        Evidence::Read { path, first, last } => format!("read:{}:{first}-{last}", path.to_wire()),
        Evidence::Backend(name) => format!("backend:{name}"),
        Evidence::Carried { round } => format!("carried:round-{round}"),
    }
}
