//! The severity, category and weakness that a claim states, as far as they are valid.

use super::{merging, text};
use crate::ai::claim::Claim;
use crate::finding::{Category, Severity};
use crate::rules::RuleSet;

/// How a claim is rated, with notes about how its statements were read.
#[derive(Debug)]
pub(super) struct Rating {
    pub(super) severity: Severity,
    pub(super) category: Category,
    /// CWE number.
    pub(super) cwe: Option<u32>,
    /// Sentences without a period, secrets masked.
    pub(super) notes: Vec<String>,
}

impl Rating {
    /// Reads the statements of a claim.
    pub(super) fn of(rules: &RuleSet, claim: &Claim) -> Self {
        let (severity, severity_note) = severity(&claim.severity);
        let (category, category_note) = category(&claim.category);
        let mut notes: Vec<String> = severity_note.into_iter().chain(category_note).collect();
        let of_parser = claim.notes.iter();
        notes.extend(of_parser.map(|n| text::clean(rules, n, text::TITLE)));
        let cwe = claim.cwe.and_then(|n| u32::try_from(n).ok());
        Self {
            severity,
            category,
            cwe: cwe.filter(|n| *n > 0),
            notes,
        }
    }

    /// Lowers the severity by one, with the reason.
    pub(super) fn lower(&mut self, reason: &str) {
        self.severity = lower(self.severity);
        self.notes.push(format!("{reason}; one severity lower"));
    }

    /// Raises a security claim without a CWE number to at least major.
    ///
    /// Without the number the weakness cannot be looked up, and omitting it must not lower the
    /// severity. A claim that calls a rule's finding a false positive is not about a weakness.
    pub(super) fn raise_security(&mut self, claim: &Claim) {
        let is_weakness = self.category == Category::Security
            && !merging::speaks_of_a_false_alarm(&claim.title, &claim.message);
        if is_weakness && self.cwe.is_none() {
            self.severity = self.severity.max(Severity::Major);
            self.notes
                .push("security claim without a CWE number; at least major".to_owned());
        }
    }
}

/// Parses a severity. An unknown severity counts as major.
pub(super) fn severity(said: &str) -> (Severity, Option<String>) {
    match (Severity::parse(said), said.trim()) {
        (Some(severity), _) => (severity, None),
        (None, "") => (
            Severity::Major,
            Some("names no severity; taken as major".to_owned()),
        ),
        (None, said) => (
            Severity::Major,
            Some(format!(
                "severity `{}` is unknown; taken as major",
                text::cut(said, 40)
            )),
        ),
    }
}

/// Parses a category, including synonyms that models use.
fn category(said: &str) -> (Category, Option<String>) {
    let word = said.trim().to_ascii_lowercase().replace(['_', ' '], "-");
    let known = Category::parse(said).or(match word.as_str() {
        "" | "correctness" | "logic" | "logic-error" | "reliability" | "concurrency"
        | "error-handling" | "robustness" | "error" | "functionality" | "data-loss"
        | "resource-leak" => Some(Category::Bug),
        "vulnerability" | "vulnerabilities" | "injection" | "privacy" | "secret" | "secrets" => {
            Some(Category::Security)
        }
        "maintainability" | "readability" | "naming" | "formatting" | "documentation"
        | "convention" | "conventions" => Some(Category::Style),
        "efficiency" => Some(Category::Performance),
        "testing" | "test-coverage" => Some(Category::Test),
        "practice" | "code-quality" | "quality" => Some(Category::BestPractice),
        _ => None,
    });
    match known {
        Some(category) => (category, None),
        None => (
            Category::Bug,
            Some(format!(
                "category `{}` is unknown; taken as bug",
                text::cut(&word, 40)
            )),
        ),
    }
}

/// Returns the next lower severity.
fn lower(severity: Severity) -> Severity {
    match severity {
        Severity::Critical => Severity::Major,
        Severity::Major => Severity::Minor,
        Severity::Minor | Severity::Suggestion => Severity::Suggestion,
    }
}
