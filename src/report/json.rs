//! The JSON report: the review in the types of [`crate::wire`].

use super::{counted, dispositioned, facts, suppressed, totals, words};
use crate::review::{Review, TestResults};
use crate::text::plural;
use crate::verdict::{self, TestOutcome};
use crate::wire::{self, mapping};
use std::io::{self, Write};

/// Writes the JSON report, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    wire::write(&report(review), out)
}

/// Returns the report of a review.
pub fn report(review: &Review) -> wire::Report {
    let models = &review.models;
    let findings = review.findings.iter().enumerate();
    let assessment = review.verdict.assessment(review.outcome);
    wire::Report {
        schema_version: wire::SCHEMA_VERSION,
        tool: tool(&review.rules_hash),
        review_id: review.session.as_ref().map(|s| s.id.clone()),
        round: review.session.as_ref().map_or(1, |s| s.round),
        outcome: review.outcome.into(),
        timestamp: review.timestamp.to_string(),
        source: (&review.source).into(),
        shard: review.source.shard.map(Into::into),
        verdict: review.verdict.into(),
        exit_code: review.exit.code(),
        assessment: assessment.map(Into::into),
        summary: summary(review),
        findings: findings.map(|(i, f)| mapping::finding(i, f)).collect(),
        notes: review.notes.iter().map(Into::into).collect(),
        design_compliance: models.compliance.as_ref().map(Into::into),
        context: review.context.iter().map(Into::into).collect(),
        missing_requirements: models.missing.iter().map(Into::into).collect(),
        opinions: models.opinions.iter().map(Into::into).collect(),
        test_results: review.tests.as_ref().map(|t| test_results(t, review)),
        coverage: (&review.coverage).into(),
        usage: models.usage.iter().map(Into::into).collect(),
        policy: (&review.policy).into(),
        duration_ms: wire::milliseconds(review.duration),
        merge: (review.source.shard).map(|_| Box::new(facts::of(review))),
    }
}

/// Returns this program, with the hash of the rules of a review.
pub(super) fn tool(rules_hash: &str) -> wire::Tool {
    wire::Tool {
        name: crate::NAME.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        rules_hash: rules_hash.to_owned(),
    }
}

/// Returns the results of the project's tests, and whether they block under the policy.
fn test_results(t: &TestResults, review: &Review) -> wire::TestResults {
    wire::TestResults {
        passed: t.outcome == TestOutcome::Passed,
        outcome: Some(t.outcome.into()),
        blocking: words::tests_block(review),
        summary: t.summary.clone(),
        failing_tests: t.failing.clone(),
        coverage: t.coverage.clone(),
    }
}

/// Returns the totals, and the review in one sentence.
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
            words::nothing(review).to_owned()
        }
        (verdict::Outcome::NothingToReview, _) => {
            format!("Nothing to review: {}", words::left_out(review))
        }
        (verdict::Outcome::Cancelled, _) => format!("Cancelled: {reviewed}; {found}"),
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
        unlisted: mapping::unlisted(&review.unlisted),
    }
}
