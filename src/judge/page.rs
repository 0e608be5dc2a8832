//! `JUDGE_REPORT.md`: the report for people. Untrusted text is escaped.

use crate::text::one_line;
use crate::untrusted::markdown;
use crate::wire::judge::{Criterion, Issue, JudgeReport};
use crate::wire::{TestOutcome, TestResults, name};
use std::fmt::Write as _;

/// Returns the report. `summary` is our own text.
pub(super) fn render(report: &JudgeReport, summary: &str) -> String {
    let mut out = "# Judge report\n\n".to_owned();
    let task = report
        .task_id
        .as_deref()
        .map_or_else(|| "not named".to_owned(), line);
    let verdict = report
        .verdict
        .map_or_else(|| "none".to_owned(), |v| name(&v));
    let _ = writeln!(out, "- Task: {task}");
    let _ = writeln!(out, "- Verdict: **{}**", verdict.replace('_', "\\_"));
    let _ = writeln!(out, "- Outcome: {}", line(&name(&report.outcome)));
    if let Some(contract) = &report.contract {
        let _ = writeln!(
            out,
            "- Contract: {} (SHA-256 {})",
            line(&contract.path),
            contract.sha256
        );
    }
    let _ = writeln!(out, "- Began: {}", line(&report.timestamp));
    let _ = writeln!(
        out,
        "- Duration: {:.1} s, tokens: {}\n",
        report.duration_ms as f64 / 1000.0,
        report.tokens_used
    );
    let _ = writeln!(out, "{}\n", line(summary));
    if let Some(error) = &report.error {
        let _ = writeln!(out, "**No verdict.** {}\n", line(error));
    }
    issues(&mut out, "Blocking issues", &report.blocking_issues);
    if !report.criteria.is_empty() {
        out.push_str("## Criteria\n\n");
        report.criteria.iter().for_each(|c| criterion(&mut out, c));
    }
    issues(&mut out, "Suggestions", &report.suggestions);
    if !report.notes.is_empty() {
        out.push_str("## Notes\n\n");
        report
            .notes
            .iter()
            .for_each(|n| out.push_str(&format!("- {}\n", line(n))));
        out.push('\n');
    }
    if let Some(tests) = report.report.as_ref().and_then(|r| r.test_results.as_ref()) {
        self::tests(&mut out, tests);
    }
    if let Some(review) = &report.report {
        let c = &review.coverage;
        let _ = writeln!(
            out,
            "## Coverage\n\n{} of {} files reviewed.\n",
            c.files_reviewed, c.files_total
        );
        for (name, r) in c.by_reviewer.iter().filter(|_| c.by_reviewer.len() > 1) {
            let _ = writeln!(
                out,
                "- {}: {} of {} files",
                line(name),
                r.files_reviewed,
                r.files_total
            );
        }
        for s in &c.skipped {
            let _ = writeln!(
                out,
                "- not shown to a model: {} ({})",
                line(&s.file),
                line(&s.reason)
            );
        }
        for f in &c.failed {
            let file = f
                .file
                .as_deref()
                .map_or_else(|| "the change as a whole".to_owned(), line);
            let _ = writeln!(out, "- **not reviewed**: {file}: {}", line(&f.reason));
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn issues(out: &mut String, heading: &str, all: &[Issue]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "## {heading}\n");
    for issue in all {
        let severity = match (issue.severity, issue.kind.as_str()) {
            (Some(severity), _) => name(&severity),
            (None, "tests") => "failed".to_owned(),
            (None, _) => "not met".to_owned(),
        };
        let _ = writeln!(
            out,
            "### {}: {} ({severity})\n",
            line(&issue.id),
            line(&issue.title)
        );
        if let Some(file) = &issue.file {
            let at = issue
                .line
                .map(|n| format!(", line {n}"))
                .unwrap_or_default();
            let _ = writeln!(out, "{}{at}\n", line(file));
        }
        quoted(out, &issue.message);
        if let Some(suggestion) = &issue.suggestion {
            out.push_str("To do:\n\n");
            quoted(out, suggestion);
        }
    }
}

/// Writes the result of the project's tests.
fn tests(out: &mut String, t: &TestResults) {
    let word = match t.outcome {
        Some(TestOutcome::NotStarted) => "could not be started",
        Some(TestOutcome::TimedOut) => "timed out",
        Some(TestOutcome::Stopped) => "were stopped",
        Some(TestOutcome::Passed | TestOutcome::Failed) | None if t.passed => "passed",
        Some(TestOutcome::Passed | TestOutcome::Failed) | None => "**failed**",
    };
    let coverage = t
        .coverage
        .as_ref()
        .map(|c| format!(", coverage {}", line(c)))
        .unwrap_or_default();
    let _ = writeln!(
        out,
        "## Tests\n\nThe project's tests {word}: {}{coverage}.\n",
        line(&t.summary)
    );
    t.failing_tests
        .iter()
        .for_each(|name| out.push_str(&format!("- {}\n", line(name))));
    if !t.failing_tests.is_empty() {
        out.push('\n');
    }
}

fn criterion(out: &mut String, c: &Criterion) {
    let met = match c.met {
        Some(true) => "met",
        Some(false) => "**not met**",
        None => "**not decided**",
    };
    let _ = writeln!(out, "- {} {met}: {}", line(&c.id), line(&c.text));
    if !c.reason.is_empty() {
        let who = c
            .backend
            .as_deref()
            .map(|b| format!("{}: ", line(b)))
            .unwrap_or_default();
        let _ = writeln!(out, "  - {who}{}", line(&c.reason));
    }
    if let Some(e) = &c.evidence {
        let at = e.line.map(|n| format!(", line {n}")).unwrap_or_default();
        let _ = writeln!(out, "  - {}{at}: “{}”", line(&e.file), line(&e.quote));
    }
    out.push('\n');
}

/// Returns untrusted text on one line, escaped.
fn line(text: &str) -> String {
    markdown(&one_line(text))
}

/// Writes untrusted text of several lines as a quotation.
fn quoted(out: &mut String, text: &str) {
    for l in markdown(text).lines() {
        let _ = writeln!(out, "> {}", l.trim_end());
    }
    out.push('\n');
}
