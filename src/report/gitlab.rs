//! GitLab's Code Quality report: a list of entries, empty without findings.
//!
//! It follows <https://docs.gitlab.com/ci/testing/code_quality/>: every entry has a position and a
//! unique fingerprint, because GitLab shows only the first of several entries with one fingerprint.

use super::words::{self, paragraphs, placed, somewhere, unreviewed};
use crate::finding::{Finding, Location, Severity};
use crate::review::Review;
use crate::untrusted;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{self, Write};

/// Files named in the entry about an incomplete review.
const NAMES: usize = 20;

/// Writes the list, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    crate::wire::write(&entries(review), out)
}

fn entries(review: &Review) -> Vec<Value> {
    let fallback = somewhere(review);
    let mut seen: HashMap<&str, u32> = HashMap::new();
    let mut entries = Vec::new();
    if !review.coverage.is_complete() {
        let failed = review.coverage.failed.iter().find_map(|f| f.file.clone());
        let place = failed
            .map(|file| Location { file, lines: None })
            .or_else(|| fallback.clone());
        let text = format!(
            "The review is incomplete: {}",
            unreviewed(review, NAMES).join("; ")
        );
        // GitLab accepts no entry without a position. The exit code of the job still shows the
        // result.
        entries.extend(place.map(|at| {
            entry(
                "incomplete-review",
                &text,
                "blocker",
                "incomplete-review",
                &at,
            )
        }));
    }
    let tests = words::failed_tests(review, NAMES).map(|text| {
        let severity = if words::tests_block(review) {
            "blocker"
        } else {
            "minor"
        };
        ("tests-failed", text, severity)
    });
    let cut = words::truncated(review).map(|text| ("review-cut-short", text, "minor"));
    for (rule, text, severity) in tests.into_iter().chain(cut) {
        entries.extend(
            fallback
                .as_ref()
                .map(|at| entry(rule, &text, severity, rule, at)),
        );
    }
    if let Some(text) = words::unlisted(review) {
        let at = fallback
            .clone()
            .or_else(|| review.findings.iter().find_map(|f| placed(f, review)));
        entries.extend(at.map(|at| {
            entry(
                "findings-not-listed",
                &text,
                "info",
                "findings-not-listed",
                &at,
            )
        }));
    }
    for f in review.findings.iter().filter(|f| f.counts()) {
        let Some(at) = placed(f, review).or_else(|| fallback.clone()) else {
            continue;
        };
        let fingerprint = f.fingerprint().as_str();
        let n = seen.entry(fingerprint).or_default();
        let unique = if *n == 0 {
            fingerprint.to_owned()
        } else {
            format!("{fingerprint}-{n}")
        };
        *n += 1;
        entries.push(entry(
            f.rule_id(),
            &paragraphs(f, review).join(" "),
            severity(f),
            &unique,
            &at,
        ));
    }
    entries
}

fn entry(rule: &str, text: &str, severity: &str, fingerprint: &str, at: &Location) -> Value {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    json!({
        "description": untrusted::plain(&text),
        "check_name": untrusted::plain(rule),
        "fingerprint": fingerprint,
        "severity": severity,
        "location": {
            "path": untrusted::relative(&at.file.to_wire()),
            // GitLab needs a line: a finding about a whole file is shown at the first.
            "lines": { "begin": at.lines.map_or(1, |l| l.first.get()) },
        },
    })
}

/// Returns the severity in GitLab's terms. `blocker` is reserved for an incomplete review and for
/// failed tests.
fn severity(f: &Finding) -> &'static str {
    match f.severity() {
        Severity::Critical => "critical",
        Severity::Major => "major",
        Severity::Minor => "minor",
        Severity::Suggestion => "info",
    }
}
