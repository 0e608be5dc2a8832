//! Detects members outside the schema that contradict the reply: a verdict against the change, an
//! error, a count of findings that are not listed, or a statement that the review is incomplete.
//! Pure.
//!
//! Models spell such keys in many ways (`isApproved`, `num-findings`), so keys and values are
//! compared word by word.

use super::json::Json;

/// Counts of the findings that a reply lists.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedFindings {
    /// Findings, violations and missing requirements together.
    pub(super) all: usize,
    /// True if one of them is major or critical.
    pub(super) has_grave: bool,
}

/// Keys of booleans that must be true.
const GOOD: [&str; 26] = [
    "accept",
    "acceptable",
    "accepted",
    "approve",
    "approved",
    "approves",
    "clean",
    "compliant",
    "correct",
    "lgtm",
    "mergeable",
    "merge",
    "ok",
    "okay",
    "pass",
    "passed",
    "passes",
    "passing",
    "ready",
    "safe",
    "secure",
    "ship",
    "shippable",
    "success",
    "successful",
    "valid",
];
/// Keys of booleans that must be false. They are also values of a verdict.
const BAD: [&str; 38] = [
    "bad",
    "block",
    "blocked",
    "blocker",
    "blockers",
    "blocking",
    "blocks",
    "broken",
    "critical",
    "declined",
    "deny",
    "denied",
    "disapprove",
    "disapproved",
    "fail",
    "failed",
    "failing",
    "fails",
    "failure",
    "flagged",
    "insecure",
    "invalid",
    "malicious",
    "nack",
    "negative",
    "nogo",
    "nok",
    "red",
    "reject",
    "rejected",
    "rejects",
    "revise",
    "rework",
    "unacceptable",
    "unapproved",
    "unsafe",
    "vulnerable",
    "wrong",
];
/// Words that request something, such as `needs` in `needs_changes`.
const NEEDS: [&str; 11] = [
    "need",
    "needed",
    "needs",
    "request",
    "requested",
    "requests",
    "require",
    "required",
    "requires",
    "suggested",
    "must",
];
const CHANGES: [&str; 12] = [
    "change",
    "changes",
    "fix",
    "fixed",
    "fixes",
    "fixing",
    "revision",
    "revisions",
    "rework",
    "work",
    "correction",
    "corrections",
];
/// Words of a key or a verdict that indicate an incomplete review.
const PARTIAL: [&str; 24] = [
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "exceeded",
    "inconclusive",
    "incomplete",
    "incompletely",
    "interrupted",
    "omitted",
    "overflow",
    "partial",
    "partially",
    "skipped",
    "timeout",
    "timedout",
    "truncate",
    "truncated",
    "truncation",
    "unable",
    "unfinished",
    "unread",
    "unreviewed",
    "unseen",
];
/// Keys of booleans that indicate an incomplete review if they are false.
const WHOLE: [&str; 8] = [
    "complete",
    "completed",
    "completely",
    "done",
    "finished",
    "full",
    "fully",
    "reviewed",
];
/// Keys that report an error.
const ERRORS: [&str; 9] = [
    "error",
    "errors",
    "errored",
    "exception",
    "exceptions",
    "fault",
    "refusal",
    "refused",
    "traceback",
];
/// Keys of a verdict.
const VERDICTS: [&str; 26] = [
    "action",
    "approval",
    "assessment",
    "conclusion",
    "decision",
    "determination",
    "disposition",
    "evaluation",
    "gate",
    "grade",
    "judgement",
    "judgment",
    "opinion",
    "outcome",
    "overall",
    "rating",
    "recommendation",
    "recommended",
    "result",
    "results",
    "review",
    "stance",
    "state",
    "status",
    "verdict",
    "vote",
];
/// Words for findings.
const PROBLEMS: [&str; 30] = [
    "blocker",
    "blockers",
    "bug",
    "bugs",
    "claim",
    "claims",
    "comment",
    "comments",
    "concern",
    "concerns",
    "critical",
    "criticals",
    "defect",
    "defects",
    "finding",
    "findings",
    "flaw",
    "flaws",
    "issue",
    "issues",
    "major",
    "majors",
    "problem",
    "problems",
    "violation",
    "violations",
    "vulnerabilities",
    "vulnerability",
    "weakness",
    "weaknesses",
];
/// Words in the key of a count, in addition to the counted objects.
const COUNTING: [&str; 22] = [
    "all",
    "amount",
    "blocking",
    "code",
    "count",
    "counts",
    "detected",
    "found",
    "has",
    "have",
    "high",
    "identified",
    "is",
    "n",
    "num",
    "number",
    "of",
    "open",
    "reported",
    "security",
    "severe",
    "total",
];
/// Values that mean "none".
const NOTHING: [&str; 10] = [
    "", "0", "na", "n", "nil", "no", "none", "null", "false", "nothing",
];
/// Words with which a value denies something.
const DENIALS: [&str; 6] = ["no", "none", "nothing", "zero", "0", "without"];

/// Returns true if a member of a reply contradicts the listed findings.
pub(super) fn contradicts(key: &str, value: &Json, listed: ListedFindings) -> bool {
    let key = words(key);
    let negated = key
        .iter()
        .any(|w| matches!(w.as_str(), "no" | "not" | "non" | "never" | "un"));
    let nothing = listed.all == 0;
    if has_any(&key, &PARTIAL) && !has_any(&key, &["tokens"]) {
        return says_yes(value) != negated && is_answer(value);
    }
    if has_any(&key, &ERRORS)
        && !negated
        && !has_any(&key, &["handling", "handler", "handled"])
        && !counts_only(&key)
    {
        return !is_denial(value);
    }
    if counts_only(&key) && has_any(&key, &PROBLEMS)
        || key.iter().all(|w| COUNTING.contains(&w.as_str())) && has_any(&key, &["count", "total"])
    {
        return match number(value) {
            Some(n) => n > listed.all as f64,
            // A comment can be positive.
            None => {
                nothing && !is_denial(value) && !has_any(&key, &["comment", "comments", "claim"])
            }
        };
    }
    if has_any(&key, &["severity", "severest", "worst"]) && !has_any(&key, &VERDICTS) {
        return !listed.has_grave
            && text_of(value).is_some_and(|t| words(&t).iter().any(|w| is_grave(w)));
    }
    if has_any(&key, &WHOLE)
        && !has_any(&key, &PROBLEMS)
        && key.len() <= 4
        && !has_any(&key, &["summary", "at", "by", "files"])
    {
        return says_no(value) != negated && is_answer(value);
    }
    if !nothing {
        // The listed findings explain a verdict against the change.
        return false;
    }
    let asks = has_any(&key, &NEEDS) && has_any(&key, &CHANGES);
    if has_any(&key, &BAD) || asks {
        return if is_answer(value) {
            says_yes(value) != negated
        } else {
            !is_denial(value) && !negated
        };
    }
    if has_any(&key, &GOOD) && is_answer(value) {
        return says_no(value) != negated;
    }
    (has_any(&key, &VERDICTS) || has_any(&key, &GOOD)) && is_against(value)
}

/// Returns true if one of the words is in a list.
fn has_any(words: &[String], list: &[&str]) -> bool {
    words.iter().any(|w| list.contains(&w.as_str()))
}

/// Splits a key or a value into lower-case words, at punctuation and before capital letters.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in text.chars() {
        let starts = !before.is_alphanumeric() || before.is_lowercase() && c.is_uppercase();
        if c.is_alphanumeric() {
            match words.last_mut() {
                Some(word) if !starts => word.extend(c.to_lowercase()),
                _ => words.push(c.to_lowercase().collect()),
            }
        }
        // Treat `don't` as one word.
        before = if matches!(c, '\'' | '’') { before } else { c };
    }
    words
}

/// Returns true if every word of a key can be part of a count, such as `num_findings`.
fn counts_only(key: &[String]) -> bool {
    key.iter()
        .all(|w| COUNTING.contains(&w.as_str()) || PROBLEMS.contains(&w.as_str()))
}

fn text_of(value: &Json) -> Option<String> {
    value.clone().into_text()
}

/// Parses a number, including a number at the start of a string: `4`, `"4"`, `"4 findings"`.
fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Int(n) => Some(*n as f64),
        Json::Float(n) => Some(*n),
        Json::Text(text) => text.split_whitespace().next()?.parse().ok(),
        _ => None,
    }
}

/// Returns true if a value is a yes or a no, in any spelling.
fn is_answer(value: &Json) -> bool {
    says_yes(value) || says_no(value)
}

fn says_yes(value: &Json) -> bool {
    match value {
        Json::Bool(b) => *b,
        Json::Int(n) => *n > 0,
        Json::Float(n) => *n > 0.0,
        Json::Text(text) => {
            let words = words(text);
            let first = words.first().map(String::as_str);
            number(value).is_some_and(|n| n > 0.0)
                || matches!(first, Some("true" | "yes" | "y" | "t" | "on"))
                || !is_denial(value) && words.iter().any(|w| PARTIAL.contains(&w.as_str()))
        }
        _ => false,
    }
}

fn says_no(value: &Json) -> bool {
    match value {
        Json::Bool(b) => !*b,
        Json::Int(n) => *n == 0,
        Json::Float(n) => *n == 0.0,
        Json::Text(text) => {
            let words = words(text);
            matches!(
                words.first().map(String::as_str),
                Some("false" | "no" | "n" | "f" | "not" | "off" | "0")
            )
        }
        _ => false,
    }
}

/// Returns true if a value means "none": null, false, 0, `none`, `no issues found`.
fn is_denial(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::Bool(b) => !b,
        Json::Int(n) => *n == 0,
        Json::Float(n) => *n == 0.0,
        Json::Text(text) => {
            let words = words(text);
            let all: String = words.concat();
            NOTHING.contains(&all.as_str())
                || words.first().is_some_and(|w| DENIALS.contains(&w.as_str()))
                || words.len() <= 6 && has_any(&words, &DENIALS)
        }
        Json::List(list) => list.is_empty(),
        Json::Object(object) => object.0.is_empty(),
    }
}

/// Returns true if the value of a verdict is negative or undecided.
fn is_against(value: &Json) -> bool {
    let Json::Text(text) = value else {
        return matches!(value, Json::Bool(false));
    };
    let words = words(text);
    // A sentence is an opinion; only a short value is a verdict.
    if words.is_empty() || words.len() > 5 {
        return false;
    }
    let against = has_any(&words, &BAD)
        || has_any(&words, &PARTIAL)
        || has_any(&words, &ERRORS)
        || has_any(&words, &NEEDS) && has_any(&words, &CHANGES)
        || has_any(&words, &PROBLEMS)
        || has_any(
            &words,
            &["pending", "unknown", "undecided", "unclear", "changes"],
        );
    let good = has_any(&words, &GOOD)
        || has_any(&words, &WHOLE)
        || has_any(&words, &["go", "mergeable", "approval"]);
    match words.iter().any(|w| is_negation(w)) {
        // `no issues` and `not blocked` are positive; `not approved` and `no` are negative.
        true => !against && (good || words.len() == 1),
        false => against,
    }
}

/// Returns true if a word negates the others, such as `not` or `isnt`.
fn is_negation(word: &str) -> bool {
    matches!(
        word,
        "no" | "not" | "non" | "none" | "nothing" | "never" | "without" | "zero" | "cannot"
    ) || word.ends_with("nt") && word.len() <= 6
}

fn is_grave(word: &str) -> bool {
    crate::finding::Severity::parse(word).is_some_and(|s| s >= crate::finding::Severity::Major)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: ListedFindings = ListedFindings {
        all: 0,
        has_grave: false,
    };

    fn check(members: &str, listed: ListedFindings) -> bool {
        let Ok(Json::Object(object)) = super::super::json::read(&format!("{{{members}}}")) else {
            unreachable!()
        };
        object
            .0
            .iter()
            .any(|(key, value)| contradicts(key, value, listed))
    }

    #[test]
    fn mod_04_a_key_that_denies_an_empty_list_is_a_contradiction() {
        for members in [
            "\"verdict\": \"fail\"",
            "\"Verdict\": \"FAIL\"",
            "\"overall_verdict\": \"Rejected\"",
            "\"overallVerdict\": \"not approved\"",
            "\"final-verdict\": \"do not merge\"",
            "\"assessment\": \"needs_changes\"",
            "\"decision\": \"REQUEST_CHANGES\"",
            "\"decision\": \"changesRequested\"",
            "\"status\": \"failed\"",
            "\"status\": \"incomplete\"",
            "\"status\": \"error\"",
            "\"result\": \"blocked\"",
            "\"review_status\": \"partial\"",
            "\"outcome\": \"issues found\"",
            "\"recommendation\": \"don't merge\"",
            "\"approved\": false",
            "\"approved\": \"no\"",
            "\"isApproved\": false",
            "\"is_approved\": 0",
            "\"APPROVED\": \"False\"",
            "\"approval\": \"denied\"",
            "\"approval\": false",
            "\"passed\": false",
            "\"pass\": \"false\"",
            "\"lgtm\": false",
            "\"LGTM\": \"no\"",
            "\"ok\": false",
            "\"success\": false",
            "\"safe_to_merge\": false",
            "\"can_merge\": false",
            "\"mergeable\": \"no\"",
            "\"not_approved\": true",
            "\"truncated\": true",
            "\"isTruncated\": true",
            "\"was_truncated\": \"yes\"",
            "\"output_truncated\": 1",
            "\"incomplete\": true",
            "\"Incomplete\": \"true\"",
            "\"complete\": false",
            "\"isComplete\": false",
            "\"review_complete\": \"no\"",
            "\"not_complete\": true",
            "\"partial\": true",
            "\"partial_review\": true",
            "\"skipped\": 3",
            "\"fully_reviewed\": false",
            "\"error\": \"context window exceeded\"",
            "\"Error\": \"x\"",
            "\"error_message\": \"could not read b.py\"",
            "\"error\": true",
            "\"errors\": 2",
            "\"exception\": \"Timeout\"",
            "\"num_findings\": 4",
            "\"numFindings\": 4",
            "\"findings_count\": \"4\"",
            "\"total_findings\": 4.0",
            "\"findingCount\": 1",
            "\"issue_count\": 2",
            "\"issues_found\": 3",
            "\"issues_found\": true",
            "\"number of issues\": 1",
            "\"total\": 4",
            "\"count\": 1",
            "\"has_issues\": true",
            "\"has_findings\": \"yes\"",
            "\"issues\": \"SQL injection in a.py\"",
            "\"critical\": 1",
            "\"critical_issues\": 2",
            "\"blocking\": true",
            "\"blocked\": true",
            "\"rejected\": true",
            "\"failed\": true",
            "\"needs_changes\": true",
            "\"changes_required\": true",
            "\"requires_fix\": true",
            "\"vulnerable\": true",
            "\"max_severity\": \"high\"",
            "\"highestSeverity\": \"CRITICAL\"",
            "\"severity\": \"major\"",
        ] {
            assert!(check(members, EMPTY), "{members}");
        }
    }

    #[test]
    fn mod_04_a_key_that_agrees_is_not() {
        for members in [
            "\"verdict\": \"pass\"",
            "\"verdict\": \"lgtm\"",
            "\"verdict\": \"approve\"",
            "\"verdict\": \"no issues\"",
            "\"verdict\": \"No issues found\"",
            "\"verdict\": \"not blocked\"",
            "\"verdict\": \"pass without changes\"",
            "\"overall_assessment\": \"lgtm_with_suggestions\"",
            "\"decision\": \"approved\"",
            "\"status\": \"ok\"",
            "\"status\": \"complete\"",
            "\"status\": \"success\"",
            "\"result\": \"clean\"",
            "\"recommendation\": \"merge\"",
            "\"recommendation\": \"Consider a test for the empty list in a later change.\"",
            "\"approved\": true",
            "\"approved\": \"yes\"",
            "\"passed\": true",
            "\"ok\": 1",
            "\"truncated\": false",
            "\"truncated\": \"no\"",
            "\"incomplete\": 0",
            "\"complete\": true",
            "\"not_complete\": false",
            "\"partial\": \"none\"",
            "\"error\": null",
            "\"error\": \"\"",
            "\"error\": \"none\"",
            "\"error\": \"No errors\"",
            "\"error\": false",
            "\"errors\": []",
            "\"num_findings\": 0",
            "\"findings_count\": \"0\"",
            "\"total_findings\": 0",
            "\"issues\": \"none\"",
            "\"issues\": \"No issues found.\"",
            "\"issues\": []",
            "\"has_issues\": false",
            "\"blocking\": false",
            "\"critical_issues\": 0",
            "\"needs_changes\": false",
            "\"severity\": \"none\"",
            "\"max_severity\": \"minor\"",
            "\"score\": 3",
            "\"confidence\": 0.4",
            "\"files_count\": 3",
            "\"lines_reviewed\": 120",
            "\"tokens\": 900",
            "\"model\": \"m\"",
            "\"language\": \"python\"",
            "\"risk\": \"high\"",
            "\"error_handling\": \"good\"",
            "\"comment\": \"none\"",
            "\"comments\": \"A tidy change.\"",
            "\"reviewed_by\": \"m\"",
            "\"reviewed\": true",
            "\"review\": \"The change adds a cache and looks fine.\"",
        ] {
            assert!(!check(members, EMPTY), "{members}");
        }
    }

    #[test]
    fn mod_04_a_verdict_beside_findings_is_an_opinion_but_a_missing_finding_is_not() {
        let two = ListedFindings {
            all: 2,
            has_grave: false,
        };
        for members in [
            "\"verdict\": \"fail\"",
            "\"approved\": false",
            "\"num_findings\": 2",
            "\"blocked\": true",
        ] {
            assert!(!check(members, two), "{members}");
        }
        for members in [
            "\"num_findings\": 3",
            "\"truncated\": true",
            "\"error\": \"x\"",
            "\"incomplete\": true",
            "\"max_severity\": \"critical\"",
        ] {
            assert!(check(members, two), "{members}");
        }
    }
}
