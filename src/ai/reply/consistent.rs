//! Detects replies that contradict themselves: they report problems or an incomplete review, but
//! list none.
//!
//! The summary is interpreted narrowly. "No critical issues found", "fixes a critical bug" and
//! "adds a check for blocking errors" are not contradictions. Only a plain statement that a grave
//! problem exists counts.

use super::extras::{ListedFindings, contradicts};
use super::json::Json;
use super::read::short;
use crate::ai::claim::Reply;
use crate::finding::Severity;

/// Returns a description of the contradiction in a reply, if there is one. `extras` holds its
/// members outside the schema.
pub(super) fn contradiction(reply: &Reply, extras: &[(String, Json)]) -> Option<String> {
    let violations = reply.design_compliance.iter().flat_map(|c| &c.violations);
    let listed = reply.findings.iter().map(|f| &f.severity);
    let mut listed = listed
        .chain(violations.map(|v| &v.impact))
        .chain(reply.missing_requirements.iter().map(|m| &m.severity));
    let all = listed.clone().count();
    let has_grave = listed.any(|s| Severity::parse(s).is_none_or(|s| s >= Severity::Major));
    let listed = ListedFindings { all, has_grave };
    if let Some((key, _)) = extras
        .iter()
        .find(|(key, value)| contradicts(key, value, listed))
    {
        let (key, count) = (
            short(key, 40),
            if all == 0 {
                "no finding".to_owned()
            } else {
                format!("{all} findings")
            },
        );
        return Some(format!("its `{key}` contradicts its list of {count}"));
    }
    if has_grave {
        return None;
    }
    let nothing = all == 0;
    if speaks_of_grave_problems(&reply.summary) {
        return Some(
            "its summary speaks of critical or blocking problems, and none is listed".to_owned(),
        );
    }
    let leaves_design = reply
        .design_compliance
        .as_ref()
        .is_some_and(|c| !c.follows_architecture);
    (nothing && leaves_design)
        .then(|| "reports that the design is not followed, but lists no violation".to_owned())
}

const GRAVE: [&str; 3] = ["critical", "blocking", "severe"];
const PROBLEM: [&str; 14] = [
    "issue",
    "issues",
    "bug",
    "bugs",
    "problem",
    "problems",
    "vulnerability",
    "vulnerabilities",
    "flaw",
    "flaws",
    "defect",
    "defects",
    "finding",
    "findings",
];
/// Verbs that state the existence of a problem.
const THERE: [&str; 14] = [
    "found",
    "has",
    "have",
    "contains",
    "contain",
    "introduces",
    "introduce",
    "is",
    "are",
    "identified",
    "remains",
    "remain",
    "exists",
    "exist",
];
const COUNTS: [&str; 11] = [
    "one", "two", "three", "four", "five", "six", "several", "multiple", "many", "some", "numerous",
];
/// Words that can follow the problem. Any other word may make it part of a longer term, such as
/// `critical issue tracker`.
const BEHIND: [&str; 24] = [
    "exist", "exists", "remain", "remains", "in", "that", "which", "with", "where", "at", "on",
    "and", "of", "to", "is", "are", "was", "were", "here", "because", "as", "below", "before",
    "by",
];
/// Words that negate a statement, or change its subject.
const DENIES: [&str; 30] = [
    "no",
    "not",
    "none",
    "never",
    "without",
    "nothing",
    "neither",
    "nor",
    "zero",
    "free",
    "any",
    "if",
    "unless",
    "could",
    "may",
    "might",
    "would",
    "should",
    "potential",
    "potentially",
    "possible",
    "whether",
    "previous",
    "previously",
    "earlier",
    "existing",
    "old",
    "former",
    "cannot",
    "pre",
];
const MENDS: [&str; 25] = [
    "fix", "resolv", "address", "remov", "prevent", "closes", "closed", "mitigat", "correct",
    "solv", "eliminat", "patch", "handles", "handled", "handling", "avoid", "repair", "lack",
    "absen", "detect", "report", "logs", "check", "test", "flag",
];

fn speaks_of_grave_problems(summary: &str) -> bool {
    // Code is not a statement.
    let words: String = summary
        .split('`')
        .step_by(2)
        .collect::<Vec<_>>()
        .join("code");
    let clauses = words.split(['.', ';', '!', '?', '\n', ':', '—']);
    clauses
        .flat_map(|c| c.split(" but "))
        .flat_map(|c| c.split(" however"))
        .any(states_a_grave_problem)
}

fn states_a_grave_problem(clause: &str) -> bool {
    let clause = clause.to_lowercase();
    let words: Vec<&str> = clause
        .split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’')
        .filter(|w| !w.is_empty())
        .collect();
    let denied = words.iter().any(|w| {
        let taken_back =
            DENIES.contains(w) || *w == "0" || w.ends_with("n't") || w.ends_with("n’t");
        taken_back || MENDS.iter().any(|m| w.starts_with(m))
    });
    if denied {
        return false;
    }
    words.iter().enumerate().any(|(i, word)| {
        let Some(noun) = (i + 1..words.len().min(i + 3)).find(|n| PROBLEM.contains(&words[*n]))
        else {
            return false;
        };
        let counted = i.checked_sub(1).is_some_and(|b| {
            let before = words[b];
            COUNTS.contains(&before) || before.bytes().all(|b| b.is_ascii_digit())
        });
        let there = counted || words[..i].iter().any(|w| THERE.contains(w));
        let ends = words.get(noun + 1).is_none_or(|w| BEHIND.contains(w));
        GRAVE.contains(word) && there && ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_statement_of_something_grave_is_one() {
        for summary in [
            "The change adds a cache. I found two critical issues.",
            "1 critical bug",
            "It introduces a critical security vulnerability in the login.",
            "There are blocking problems in the parser; see below.",
            "Looks tidy, however there is a severe bug in `close`.",
            "Several critical vulnerabilities exist.",
            "The handler has a critical flaw that leaks memory",
        ] {
            assert!(speaks_of_grave_problems(summary), "{summary}");
        }
    }

    #[test]
    fn an_honest_summary_is_never_taken_for_one() {
        for summary in [
            "",
            "No critical issues found.",
            "There are no critical or blocking issues.",
            "I found no critical issues; two small ones are listed.",
            "Did not find any critical bugs.",
            "The code is free of critical vulnerabilities",
            "0 critical issues, 2 minor ones.",
            "This fixes a critical bug in the parser.",
            "Two critical vulnerabilities are fixed by this change.",
            "The change addresses several critical issues in the scheduler.",
            "Adds a check for critical problems and blocking errors.",
            "The report now has a critical issues section",
            "It has a critical section that is held too long.",
            "Would be a critical issue if the input were foreign.",
            "There isn't a critical problem here.",
            "The critical path is tested; blocking calls are in a thread of their own.",
            "It contains blocking IO on the main thread.",
            "Removes a critical flaw that was in the old code.",
            "Nothing critical. A few issues are listed.",
            "This introduces a critical issue tracker for the team.",
            "The tool has severe findings handling",
        ] {
            assert!(!speaks_of_grave_problems(summary), "{summary}");
        }
    }
}
