//! A review in the words of the store.

use crate::report::json;
use crate::review::{Record, Review};
use crate::rules::RuleSet;
use crate::verdict::{Outcome, Verdict};
use crate::wire::stored::{self, Advice, Change, Comment, CommentType, Compliance, Counts, Requirement, Since, Status};
use crate::wire::{Category, Finding, Report, Severity};
use serde_json::Value;
use std::collections::HashMap;

/// What a round has besides its review.
#[derive(Clone, Debug)]
pub(super) struct Beside {
    /// What the author says of this round. Secrets masked.
    pub(super) author_summary: Option<String>,
    pub(super) since: Option<Since>,
    pub(super) advice: Advice,
    pub(super) change: Change,
}

/// Returns the report of a review as it is kept, and as rounds are compared: no name of a file, no revision and no
/// note holds a secret.
///
/// A report that is printed names files as they are, so that they are found.
pub(super) fn report(review: &Review, rules: &RuleSet) -> Report {
    let report = json::report(review);
    let Ok(mut value) = serde_json::to_value(&report) else { return report };
    let mut mask = Mask { rules, known: HashMap::new() };
    if !mask.apply(&mut value) {
        return report;
    }
    // Strings for strings: it is a report still.
    serde_json::from_value(value).unwrap_or(report)
}

/// Masks the strings of a report. Thousands of findings share their words, so what was searched is kept.
struct Mask<'r> {
    rules: &'r RuleSet,
    /// By text: what it reads without its secrets, where it holds any.
    known: HashMap<String, Option<String>>,
}

impl Mask<'_> {
    /// The longest text that is kept, in bytes, and the most of them.
    const KEPT_BYTES: usize = 512;
    const KEPT_TEXTS: usize = 2_000;

    /// Masks every string; returns true if there was anything to mask.
    fn apply(&mut self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.masked(text) {
                Some(masked) => {
                    *text = masked;
                    true
                }
                None => false,
            },
            // Every one of them, whatever the others hold.
            Value::Array(all) => all.iter_mut().map(|v| self.apply(v)).filter(|masked| *masked).count() > 0,
            Value::Object(fields) => fields.values_mut().map(|v| self.apply(v)).filter(|masked| *masked).count() > 0,
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn masked(&mut self, text: &str) -> Option<String> {
        if is_made_here(text) {
            return None;
        }
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let made = masked(text, self.rules);
        if text.len() <= Self::KEPT_BYTES && self.known.len() < Self::KEPT_TEXTS {
            self.known.insert(text.to_owned(), made.clone());
        }
        made
    }
}

/// Returns true for an object ID or fingerprint, a time, and a single short word such as a status: the program writes those
/// itself, and compiling the expressions of the rules that such a text could match costs more than a small review.
fn is_made_here(text: &str) -> bool {
    let all = |is: fn(&u8) -> bool| text.as_bytes().iter().all(is);
    let is_id = matches!(text.len(), 32 | 40 | 64) && all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_time = text.len() <= 32 && all(|b| matches!(b, b'0'..=b'9' | b'T' | b'Z' | b':' | b'-' | b'+' | b'.'));
    let is_word = text.len() <= 16 && all(|b| matches!(b, b'a'..=b'z' | b'_'));
    is_id || is_time || is_word
}

/// Returns a text without its secrets; `None` where it holds none.
pub(super) fn masked(text: &str, rules: &RuleSet) -> Option<String> {
    let masked = rules.mask(text.as_bytes());
    (*masked != *text.as_bytes()).then(|| String::from_utf8_lossy(&masked).into_owned())
}

/// Returns what is stored of a round; `report` is that of the review, with its id and round.
pub(super) fn review(review: &Review, report: Report, beside: Beside) -> stored::Review {
    let counts: Vec<&Finding> = report.findings.iter().filter(|f| f.counts()).collect();
    let of = |s: Severity| counts.iter().filter(|f| f.severity == s).count();
    let violations = report.design_compliance.as_ref().map_or(0, |c| c.violations.len());
    stored::Review {
        schema_version: stored::STORED_VERSION,
        review_id: report.review_id.clone().unwrap_or_default(),
        timestamp: report.timestamp.clone(),
        status: status(review),
        round: report.round,
        outcome: report.outcome,
        verdict: report.verdict,
        design_compliance: report.design_compliance.as_ref().map(|c| Compliance {
            follows_architecture: c.follows_architecture,
            major_violations: c.violations.clone(),
        }),
        comments: counts.iter().map(|f| comment(f)).collect(),
        missing_requirements: report
            .missing_requirements
            .iter()
            .map(|m| Requirement {
                requirement: m.requirement.clone(),
                design_doc_reference: m.reference.clone(),
                severity: m.severity,
            })
            .collect(),
        summary: Counts {
            design_violations: violations,
            critical_issues: of(Severity::Critical),
            major_issues: of(Severity::Major),
            minor_issues: of(Severity::Minor),
            suggestions: of(Severity::Suggestion),
        },
        test_results: report.test_results.clone(),
        overall_assessment: report.assessment,
        author_summary: beside.author_summary,
        since: beside.since,
        advice: beside.advice,
        change: beside.change,
        report,
    }
}

/// Returns how a session stands after a round.
fn status(review: &Review) -> Status {
    match (review.outcome, review.verdict) {
        (Outcome::Cancelled, _) => Status::Cancelled,
        (_, Verdict::Block) => Status::NeedsChanges,
        (_, Verdict::Pass | Verdict::Warn | Verdict::Incomplete) => Status::InProgress,
    }
}

/// Returns what is told of the text of a change.
pub(super) fn change(record: &Record) -> Change {
    Change { hash: record.hash(), bytes: record.text.len() as u64, left_out: record.left_out.clone() }
}

fn comment(f: &Finding) -> Comment {
    let mut text = f.message.clone();
    if !text.to_lowercase().contains(&f.title.to_lowercase()) {
        text = format!("{}: {text}", f.title);
    }
    if let Some(failure) = &f.failure {
        text.push_str("\n\n");
        text.push_str(failure);
    }
    Comment {
        id: f.id.clone(),
        fingerprint: f.fingerprint.clone(),
        r#type: if f.line.is_some() { CommentType::Specific } else { CommentType::General },
        file: f.file.clone(),
        line: f.line,
        severity: f.severity,
        category: category(f.category).to_owned(),
        comment: text,
        suggested_fix: f.replacement.clone().or_else(|| f.suggestion.clone()),
        blocking: f.blocking,
    }
}

/// Returns a category as the review format calls it.
fn category(c: Category) -> &'static str {
    match c {
        Category::Bug => "bug",
        Category::Security => "security",
        Category::Performance => "performance",
        Category::Style => "style",
        Category::Architecture => "architecture",
        Category::Design => "design",
        Category::MissingRequirement => "missing_feature",
        Category::BestPractice => "best-practice",
        Category::Test => "test",
    }
}
