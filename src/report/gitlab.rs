//! GitLab's Code Quality report: a list of entries, empty without findings.
//!
//! It follows <https://docs.gitlab.com/ci/testing/code_quality/>: every entry has a position and a
//! unique fingerprint, because GitLab shows only the first of several entries with one fingerprint.

use super::finding_text::{paragraphs, placed};
use super::words::{self, somewhere, unreviewed};
use crate::finding::{Finding, Location, Severity};
use crate::review::Review;
use crate::text::one_line;
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

/// Returns the entries: an incomplete or truncated review, failed tests and unlisted findings first,
/// then the findings that count.
fn entries(review: &Review) -> Vec<Value> {
    let fallback = somewhere(review);
    let mut entries = of_the_whole(review, fallback.as_ref());
    let mut seen: HashMap<&str, u32> = HashMap::new();
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

/// Returns the entries about the review as a whole: an incomplete or truncated one, failed tests,
/// and findings that are not listed. GitLab accepts no entry without a position, so there is none
/// where no position is known; the exit code of the job still shows the result.
fn of_the_whole(review: &Review, fallback: Option<&Location>) -> Vec<Value> {
    let mut about: Vec<(&str, String, &str, Option<Location>)> = Vec::new();
    if !review.coverage.is_complete() {
        let failed = review.coverage.failed.iter().find_map(|f| f.file.clone());
        let at = failed.map(|file| Location { file, lines: None });
        let text = format!(
            "The review is incomplete: {}",
            unreviewed(review, NAMES).join("; ")
        );
        about.push(("incomplete-review", text, "blocker", at));
    }
    if let Some(text) = words::failed_tests(review, NAMES) {
        let severity = if words::tests_block(review) {
            "blocker"
        } else {
            "minor"
        };
        about.push(("tests-failed", text, severity, None));
    }
    if let Some(text) = words::truncated(review) {
        about.push(("review-cut-short", text, "minor", None));
    }
    if let Some(text) = words::unlisted(review) {
        let first = review.findings.iter().find_map(|f| placed(f, review));
        let at = first.filter(|_| fallback.is_none());
        about.push(("findings-not-listed", text, "info", at));
    }
    about
        .into_iter()
        .filter_map(|(rule, text, severity, at)| {
            let at = at.as_ref().or(fallback)?;
            Some(entry(rule, &text, severity, rule, at))
        })
        .collect()
}

/// Returns an entry. `text` and `rule` are escaped here.
fn entry(rule: &str, text: &str, severity: &str, fingerprint: &str, at: &Location) -> Value {
    let text = one_line(text);
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
