//! Tests of the unresolved findings of a session.

use super::*;
use crate::report::{json, sample};
use crate::wire::Severity;
use serde_json::json;

/// Returns a finding: `F1` of a rule, or of a model if the name of the rule begins with `ai-`.
fn finding(rule: &str, blocking: bool) -> Finding {
    let origin = if rule.starts_with("ai-") {
        "m"
    } else {
        "rules"
    };
    serde_json::from_value(json!({
        "id": "F1", "fingerprint": rule, "rule_id": rule, "origin": origin, "file": "a.py", "line": 3, "end_line": 3,
        "commit": null, "severity": "major", "category": "bug", "confidence": "high", "title": rule, "message": "m",
        "failure": null, "suggestion": null, "replacement": null, "quote": "q", "cwe": null, "convention": null,
        "evidence": [], "blocking": blocking, "disputed": null, "waived": null, "disposition": "pending",
        "suppressed": null, "references": []
    }))
    .unwrap()
}

fn round(
    number: u32,
    policy: &str,
    findings: Vec<Finding>,
    states: &[(State, &str)],
) -> (Report, Since) {
    let mut report = json::report(&sample::clean());
    (report.round, report.policy.hash, report.findings) = (number, policy.to_owned(), findings);
    let entries = states
        .iter()
        .map(|(state, rule)| entry(*state, rule))
        .collect();
    (
        report,
        Since {
            entries,
            ..Since::default()
        },
    )
}

fn entry(state: State, rule: &str) -> ComparedFinding {
    ComparedFinding {
        state,
        fingerprint: rule.to_owned(),
        id: (!matches!(state, State::Fixed | State::Unchecked)).then(|| "F1".to_owned()),
        previous_id: Some("F1".to_owned()),
        rule_id: rule.to_owned(),
        severity: Severity::Major,
        title: rule.to_owned(),
        file: Some("a.py".to_owned()),
        line: Some(3),
        previous_line: Some(3),
    }
}

/// Returns the names of unresolved findings, with their state.
fn left(rounds: &[(Report, Since)]) -> Vec<String> {
    let rounds: Vec<_> = rounds
        .iter()
        .map(|(report, since)| RoundRecord {
            report,
            since: Some(since),
        })
        .collect();
    owed(&rounds)
        .iter()
        .map(|o| format!("{}: {}", o.name(), state_of(o)))
        .collect()
}

fn state_of(owed: &Owed<'_>) -> &'static str {
    match owed.now {
        Some(_) => "let through",
        None if owed.other_policy => "not looked for under another policy",
        None => "not looked for",
    }
}

/// Returns a round in which a rule blocks, and one in which its changed finding has a state.
fn second(
    rule: &str,
    policy: &str,
    state: State,
    change: &dyn Fn(&mut Finding),
) -> [(Report, Since); 2] {
    let mut f = finding(rule, false);
    change(&mut f);
    [
        round(1, "p", vec![finding(rule, true)], &[]),
        round(2, policy, vec![f], &[(state, rule)]),
    ]
}

/// Returns what is left of a rule's finding that is not in the second round.
fn left_of_gone(rule: &str, policy: &str, state: State) -> Vec<String> {
    left(&[
        round(1, "p", vec![finding(rule, true)], &[]),
        round(2, policy, vec![], &[(state, rule)]),
    ])
}

#[test]
fn what_another_policy_lets_through_is_owed_and_what_was_answered_is_not() {
    use State::{Fixed, Moved, StillThere, Unchecked};
    type FindingChange = fn(&mut Finding);
    let answers: [(&str, FindingChange); 3] = [
        ("waived", |f| {
            f.waived = serde_json::from_value(json!({"reason": "r", "actor": "a"})).unwrap();
        }),
        ("suppressed", |f| {
            f.suppressed = serde_json::from_value(json!({"by": "inline", "reason": "r"})).unwrap();
        }),
        ("disputed", |f| f.disputed = Some("it is none".to_owned())),
    ];
    for (rule, through) in [
        ("eval-call", "F1 of round 1 (eval-call at a.py:3)"),
        ("ai-bug", "F1 of round 1 (ai-bug at a.py:3)"),
    ] {
        for state in [StillThere, Moved] {
            assert_eq!(
                left(&second(rule, "q", state, &|_| ())),
                [format!("{through}: let through")]
            );
            // Under the policy under which it blocked, the code or the severity changed.
            assert_eq!(left(&second(rule, "p", state, &|_| ())), [""; 0]);
            assert_eq!(
                left(&second(rule, "q", state, &|f| f.blocking = true)),
                [""; 0],
                "it blocks"
            );
            for (how, answer) in answers {
                // A model's dispute does not affect a rule's finding.
                let stands = rule == "eval-call" && how == "disputed";
                let left = left(&second(rule, "q", state, &answer));
                assert_eq!(left.len(), usize::from(stands), "{rule} {how}: {left:?}");
            }
        }
        assert_eq!(left_of_gone(rule, "q", Fixed), [""; 0]);
        assert_eq!(
            left_of_gone(rule, "p", Unchecked),
            [format!("{through}: not looked for")]
        );
        let expected = format!("{through}: not looked for under another policy");
        assert_eq!(left_of_gone(rule, "q", Unchecked), [expected]);
    }
}

/// Returns a round under the policy `p` in which a finding blocks.
fn first() -> (Report, Since) {
    round(1, "p", vec![finding("eval-call", true)], &[])
}

/// Returns a round under the policy `q` in which the finding does not block.
fn lenient(n: u32, state: State) -> (Report, Since) {
    round(
        n,
        "q",
        vec![finding("eval-call", false)],
        &[(state, "eval-call")],
    )
}

/// Returns a round under the policy `q` without the finding.
fn silent(n: u32, state: State) -> (Report, Since) {
    round(n, "q", vec![], &[(state, "eval-call")])
}

#[test]
fn a_further_round_under_the_same_lenient_policy_answers_nothing() {
    use State::{Fixed, StillThere, Unchecked};
    for (rounds, owed) in [
        (
            vec![first(), lenient(2, StillThere), lenient(3, StillThere)],
            1,
        ),
        (
            vec![first(), lenient(2, StillThere), silent(3, Unchecked)],
            1,
        ),
        (
            vec![first(), silent(2, Unchecked), lenient(3, StillThere)],
            1,
        ),
        (
            vec![
                first(),
                silent(2, Unchecked),
                silent(3, Unchecked),
                silent(4, Fixed),
            ],
            0,
        ),
        (vec![first(), lenient(2, StillThere), silent(3, Fixed)], 0),
        (
            vec![first(), silent(2, Fixed), lenient(3, State::Reopened)],
            1,
        ),
        (vec![first(), silent(2, Fixed), lenient(3, State::New)], 0),
        (vec![first(), silent(2, Fixed)], 0),
        // It never blocked.
        (vec![lenient(1, StillThere), lenient(2, StillThere)], 0),
    ] {
        assert_eq!(left(&rounds).len(), owed, "{:?}", left(&rounds));
    }
}

/// Returns true if a second round that reviewed some of its files is blind.
fn is_second_blind(blocking: bool, reviewed: usize, total: usize) -> bool {
    let mut all = [
        round(1, "p", vec![finding("eval-call", blocking)], &[]),
        round(2, "p", vec![], &[(State::Fixed, "eval-call")]),
    ];
    (
        all[1].0.coverage.files_reviewed,
        all[1].0.coverage.files_total,
    ) = (reviewed, total);
    let rounds: Vec<_> = all
        .iter()
        .map(|(report, since)| RoundRecord {
            report,
            since: Some(since),
        })
        .collect();
    is_blind(&rounds)
}

#[test]
fn a_round_that_looked_at_no_file_is_blind_where_an_earlier_one_blocked() {
    assert!(is_second_blind(true, 0, 2));
    assert!(
        !is_second_blind(true, 1, 2)
            && !is_second_blind(true, 0, 0)
            && !is_second_blind(false, 0, 2)
    );
}

#[test]
fn many_names_are_told_in_short() {
    let findings: Vec<Finding> = (1..=7)
        .map(|n| Finding {
            id: format!("F{n}"),
            line: Some(n),
            ..finding("eval-call", true)
        })
        .collect();
    let report = round(1, "p", findings, &[]).0;
    let all: Vec<Owed<'_>> = report
        .findings
        .iter()
        .map(|f| Owed {
            finding: f,
            round: 1,
            now: None,
            other_policy: false,
            policy: "p",
            last: f,
        })
        .collect();
    assert_eq!(names(&all[..1]), "F1 of round 1 (eval-call at a.py:1)");
    assert!(
        names(&all[..2]).contains("a.py:1) and F2 of"),
        "{}",
        names(&all[..2])
    );
    assert!(
        names(&all).ends_with("a.py:5) and 2 more"),
        "{}",
        names(&all)
    );
}
