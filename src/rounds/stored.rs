//! Converts a review to the format of the store.

use crate::report::json;
use crate::review::{Record, Review};
use crate::rules::RuleSet;
use crate::verdict::{Outcome, Verdict};
use crate::wire::stored::{
    self, Advice, Comment, CommentType, Requirement, RoundTotals, Since, Status, StoredChange,
    StoredCompliance,
};
use crate::wire::{Category, Finding, Report, Severity};
use serde_json::Value;
use std::collections::HashMap;

/// The stored data of a round outside of its review.
#[derive(Clone, Debug)]
pub(super) struct RoundExtras {
    /// Author's summary of this round, with secrets masked.
    pub(super) author_summary: Option<String>,
    pub(super) since: Option<Since>,
    pub(super) advice: Advice,
    pub(super) change: StoredChange,
}

/// Returns the report of a review for storage and for the comparison of rounds: file names,
/// revisions and notes have their secrets masked.
///
/// A printed report has unmasked file names, so that the files can be found.
pub(super) fn report(review: &Review, rules: &RuleSet) -> Report {
    let report = json::report(review);
    let Ok(mut value) = serde_json::to_value(&report) else {
        return report;
    };
    let mut mask = Mask {
        rules,
        known: HashMap::new(),
    };
    if !mask.apply(&mut value) {
        return report;
    }
    // Only strings were replaced, so it is still a valid report.
    serde_json::from_value(value).unwrap_or(report)
}

/// Masks the strings of a report. Thousands of findings share texts, so results are cached.
struct Mask<'r> {
    rules: &'r RuleSet,
    /// By text: its masked form, if it contains a secret.
    known: HashMap<String, Option<String>>,
}

impl Mask<'_> {
    /// Bytes of a cached text, and number of cached texts, at most.
    const KEPT_BYTES: usize = 512;
    const KEPT_TEXTS: usize = 2_000;

    /// Masks every string; returns true if any contained a secret.
    fn apply(&mut self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => match self.masked(text) {
                Some(masked) => {
                    *text = masked;
                    true
                }
                None => false,
            },
            // `count` visits all elements, unlike `any`.
            Value::Array(all) => {
                all.iter_mut()
                    .map(|v| self.apply(v))
                    .filter(|masked| *masked)
                    .count()
                    > 0
            }
            Value::Object(fields) => {
                fields
                    .values_mut()
                    .map(|v| self.apply(v))
                    .filter(|masked| *masked)
                    .count()
                    > 0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Returns the masked form of a text, or `None` if it contains no secret. Masks equal texts
    /// once.
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

/// Returns true for an object ID or fingerprint, a time, and a single short word such as a status.
/// The program writes those itself, and compiling the rules' expressions that could match such a
/// text costs more than a small review.
fn is_made_here(text: &str) -> bool {
    let is_id = matches!(text.len(), 32 | 40 | 64)
        && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_time = text.len() <= 32
        && text
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'T' | b'Z' | b':' | b'-' | b'+' | b'.'));
    let is_word = text.len() <= 16 && text.bytes().all(|b| matches!(b, b'a'..=b'z' | b'_'));
    is_id || is_time || is_word
}

/// Returns the masked form of a text, or `None` if it contains no secret.
pub(super) fn masked(text: &str, rules: &RuleSet) -> Option<String> {
    let masked = rules.mask(text.as_bytes());
    (*masked != *text.as_bytes()).then(|| String::from_utf8_lossy(&masked).into_owned())
}

/// Returns the number of findings with a severity.
fn count_of(findings: &[&Finding], severity: Severity) -> usize {
    findings.iter().filter(|f| f.severity == severity).count()
}

/// Returns the stored form of a round; `report` is that of the review, with its ID and round.
pub(super) fn review(review: &Review, report: Report, beside: RoundExtras) -> stored::Review {
    let counts: Vec<&Finding> = report.findings.iter().filter(|f| f.counts()).collect();
    let violations = report
        .design_compliance
        .as_ref()
        .map_or(0, |c| c.violations.len());
    stored::Review {
        schema_version: stored::STORED_VERSION,
        review_id: report.review_id.clone().unwrap_or_default(),
        timestamp: report.timestamp.clone(),
        status: status(review),
        round: report.round,
        outcome: report.outcome,
        verdict: report.verdict,
        design_compliance: report.design_compliance.as_ref().map(|c| StoredCompliance {
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
        summary: RoundTotals {
            design_violations: violations,
            critical_issues: count_of(&counts, Severity::Critical),
            major_issues: count_of(&counts, Severity::Major),
            minor_issues: count_of(&counts, Severity::Minor),
            suggestions: count_of(&counts, Severity::Suggestion),
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

/// Returns the status of a session after a round.
fn status(review: &Review) -> Status {
    match (review.outcome, review.verdict) {
        (Outcome::Cancelled, _) => Status::Cancelled,
        (_, Verdict::Block) => Status::NeedsChanges,
        (_, Verdict::Pass | Verdict::Warn | Verdict::Incomplete) => Status::InProgress,
    }
}

/// Returns the description of a change's text.
pub(super) fn change(record: &Record) -> StoredChange {
    StoredChange {
        hash: record.hash(),
        bytes: record.text.len() as u64,
        left_out: record.left_out.clone(),
    }
}

/// Converts a finding to a comment of the stored review.
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
        r#type: if f.line.is_some() {
            CommentType::Specific
        } else {
            CommentType::General
        },
        file: f.file.clone(),
        line: f.line,
        severity: f.severity,
        category: category(f.category).to_owned(),
        comment: text,
        suggested_fix: f.replacement.clone().or_else(|| f.suggestion.clone()),
        blocking: f.blocking,
    }
}

/// Returns the name of a category in the review format.
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
