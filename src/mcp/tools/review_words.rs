//! The text of a review for the agent that acts on it.

use crate::wire;

/// Findings that the text lists, at most.
const NAMED: usize = 20;
/// Skipped files that the text lists, at most.
const NAMED_SKIPPED: usize = 10;

/// Describes a review for the agent that acts on it.
pub(in crate::mcp) fn report(report: &wire::Report) -> String {
    let s = &report.summary;
    if report.outcome == wire::Outcome::NothingToReview {
        let why = match report.coverage.files_total {
            0 => "Nothing differs: there was nothing to review.".to_owned(),
            _ => format!("{}.", s.text),
        };
        return format!("{why} This is not an approval.\n{}", skipped(report));
    }
    let mut text = format!(
        "verdict: {}. {}\ncritical {}, major {}, minor {}, suggestions {}\n",
        wire::name(&report.verdict),
        s.text,
        s.critical,
        s.major,
        s.minor,
        s.suggestion
    );
    if let Some(tests) = report.test_results.as_ref().filter(|t| !t.passed) {
        for name in tests.failing_tests.iter().take(NAMED) {
            text.push_str(&format!("failed test: {}\n", name.replace('\n', " ")));
        }
    }
    let counted = report.findings.iter().filter(|f| f.counts());
    for f in counted.clone().take(NAMED) {
        let place = match (&f.file, f.line) {
            (Some(file), Some(line)) => format!("{file}:{line}"),
            (Some(file), None) => file.clone(),
            _ => "the change".to_owned(),
        };
        let blocks = if f.blocking { " (blocks)" } else { "" };
        let what = format!(
            "{} {} {place}: {}{blocks}. {}",
            f.id,
            wire::name(&f.severity),
            f.title,
            f.message
        );
        text.push_str(&what.replace('\n', " "));
        if let Some(fix) = &f.suggestion {
            text.push_str(&format!(" Fix: {}", fix.replace('\n', " ")));
        }
        text.push('\n');
    }
    let more = counted.count().saturating_sub(NAMED);
    if more > 0 {
        text.push_str(&format!("{more} more are in the structured content.\n"));
    }
    for f in &report.coverage.failed {
        let what = f.file.as_deref().unwrap_or("the change");
        text.push_str(&format!(
            "not reviewed: {what}: {}\n",
            f.reason.replace('\n', " ")
        ));
    }
    text.push_str(&skipped(report));
    text
}

/// Lists the skipped files, one a line.
fn skipped(report: &wire::Report) -> String {
    let all = &report.coverage.skipped;
    let mut text = String::new();
    for s in all.iter().take(NAMED_SKIPPED) {
        text.push_str(&format!(
            "not reviewed: {} ({})\n",
            s.file.replace('\n', " "),
            s.reason.replace('\n', " ")
        ));
    }
    let more = all.len().saturating_sub(NAMED_SKIPPED);
    if more > 0 {
        text.push_str(&format!("{more} more were not reviewed.\n"));
    }
    text
}
