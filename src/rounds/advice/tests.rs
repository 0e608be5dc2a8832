//! The advice after each outcome of a round.

use super::super::sample::{claim, report, rule, stored};
use super::*;
use crate::wire::Failed;
use crate::wire::stored::{ComparedFinding, Review};

fn small(line: u32) -> Finding {
    Finding {
        severity: Severity::Minor,
        blocking: false,
        ..claim(line, "Slow")
    }
}

fn since(states: &[(State, &str, Severity)]) -> Since {
    let entries = states.iter().map(|(state, id, severity)| ComparedFinding {
        state: *state,
        fingerprint: (*id).to_owned(),
        id: (*state != State::Unchecked && *state != State::Fixed).then(|| (*id).to_owned()),
        previous_id: Some((*id).to_owned()),
        rule_id: "ai-bug".to_owned(),
        severity: *severity,
        title: String::new(),
        file: None,
        line: None,
        previous_line: None,
    });
    Since {
        entries: entries.collect(),
        ..Since::default()
    }
}

#[derive(Default)]
struct AdviceCase {
    earlier: Vec<Review>,
    since: Option<Since>,
    again: Vec<Again>,
    /// Whether a backend is unreachable.
    unreachable: bool,
    pull: Option<&'static str>,
}

impl AdviceCase {
    fn of(&self, report: &Report) -> Advice {
        let earlier: Vec<_> = self
            .earlier
            .iter()
            .map(|review| Earlier {
                review,
                response: None,
                change: b"",
                cover: crate::rounds::cover::Cover::Whole,
            })
            .collect();
        advice(&Told {
            report,
            since: self.since.as_ref(),
            again: &self.again,
            earlier: &earlier,
            max_rounds: 5,
            pull: self.pull,
            retry: Retry {
                retryable: self.unreachable,
                after: None,
            },
        })
    }
}

fn first(report: &Report) -> Advice {
    AdviceCase::default().of(report)
}

/// Returns the advice if a backend is unreachable.
fn unreachable(report: &Report) -> Advice {
    AdviceCase {
        unreachable: true,
        ..AdviceCase::default()
    }
    .of(report)
}

fn with(report: Report, change: impl Fn(&mut Report)) -> Report {
    let mut report = report;
    change(&mut report);
    report
}

#[test]
fn a_pull_request_is_reviewed_again_as_the_forge_has_it() {
    let command = "claude-reviewer review pr 7 --remote up";
    let case = AdviceCase {
        pull: Some(command),
        ..AdviceCase::default()
    };
    let text = case.of(&report(1, vec![rule("python-eval-input", 1)])).text;
    assert!(
        text.contains(&format!(
            "push them and review the pull request again: {command}."
        )),
        "{text}"
    );
    assert!(!text.contains("follow-up"), "{text}");
}

/// Returns a report with a file that was not reviewed.
fn incomplete(file: Option<&str>, reason: &str) -> Report {
    with(report(1, vec![]), |r| {
        (r.verdict, r.outcome) = (Verdict::Incomplete, Outcome::Incomplete);
        r.coverage.failed = vec![Failed {
            file: file.map(str::to_owned),
            reason: reason.to_owned(),
        }];
    })
}

#[test]
fn each_end_of_a_round_has_its_advice() {
    let warned = with(report(1, vec![small(1)]), |r| r.verdict = Verdict::Warn);
    for (report, action, says) in [
        (
            report(1, vec![]),
            Action::Complete,
            "No findings. Close the session",
        ),
        (warned, Action::Complete, "F1 is optional: fix it if"),
        (
            report(1, vec![claim(1, "x")]),
            Action::Fix,
            "F1 blocks. Fix the findings you agree with, then request a follow-up review and list your changes in the response. If you disagree with F1,",
        ),
        (
            report(1, vec![claim(1, "x"), rule("y", 2)]),
            Action::Fix,
            "F1 and F2 block.",
        ),
        (
            with(report(1, vec![]), |r| r.outcome = Outcome::NothingToReview),
            Action::Nothing,
            "This is not an approval",
        ),
        (
            with(report(1, vec![claim(1, "x")]), |r| {
                r.outcome = Outcome::Cancelled;
            }),
            Action::RetryLater,
            "was cancelled",
        ),
        (
            incomplete(Some("a.rs"), "m: the key is not accepted"),
            Action::AskAPerson,
            "(a.rs: m: the key is not accepted)",
        ),
        (
            incomplete(Some("a.rs"), "the object is damaged"),
            Action::AskAPerson,
            "(a.rs: the object is damaged)",
        ),
    ] {
        let advice = first(&report);
        assert_eq!(advice.action, action, "{}", advice.text);
        assert!(advice.text.contains(says), "{}", advice.text);
        assert_eq!(advice.circling, [] as [String; 0]);
    }
    let later = unreachable(&incomplete(Some("a.rs"), "m: connection refused"));
    assert_eq!(later.action, Action::RetryLater);
    assert!(
        later
            .text
            .contains("m: connection refused. This is not an approval"),
        "{}",
        later.text
    );
    assert!(later.text.contains("Do not retry immediately"));
    let mut both = report(1, vec![claim(1, "x")]);
    both.outcome = Outcome::Incomplete;
    assert!(
        first(&both)
            .text
            .contains("Part of the change was not reviewed")
    );
}

#[test]
fn many_findings_are_named_in_short() {
    let many = report(1, (1..9).map(|n| claim(n, "x")).collect());
    assert!(
        first(&many)
            .text
            .starts_with("F1, F2, F3, F4, F5 and 3 more block."),
        "{}",
        first(&many).text
    );
}

fn blocked(round: u32) -> Report {
    report(round, vec![claim(1, "x"), claim(2, "y")])
}

/// Returns an earlier round with `n` blocking findings.
fn before(round: u32, n: u32, since: Option<Since>) -> Review {
    stored(
        report(round, (1..=n).map(|l| claim(l, "x")).collect()),
        since,
    )
}

/// Returns the comparison of a round whose fix introduced a finding.
fn introduced(severity: Severity) -> Option<Since> {
    Some(since(&[(State::IntroducedByFix, "F1", severity)]))
}

#[test]
fn rounds_that_circle_go_to_a_person() {
    let again = Again {
        id: "F1".to_owned(),
        file: "a.rs".to_owned(),
        line: Some(7),
        previous_id: "F3".to_owned(),
        round: 1,
    };
    for (case, round, says) in [
        (
            AdviceCase {
                again: vec![again],
                earlier: vec![before(1, 3, None), before(2, 2, None)],
                ..AdviceCase::default()
            },
            3,
            "F1 is at a.rs:7, where F3 of round 1 was fixed",
        ),
        (
            AdviceCase {
                since: introduced(Severity::Major),
                earlier: vec![
                    before(1, 3, None),
                    before(2, 3, introduced(Severity::Major)),
                ],
                ..AdviceCase::default()
            },
            3,
            "the fixes of two consecutive rounds introduced new findings",
        ),
        (
            AdviceCase {
                earlier: vec![before(1, 1, None), before(2, 2, None)],
                ..AdviceCase::default()
            },
            3,
            "the number of blocking findings is not falling: 1, 2, 2",
        ),
        (
            AdviceCase {
                earlier: vec![before(4, 3, None)],
                ..AdviceCase::default()
            },
            5,
            "round 5 of 5 was the last one",
        ),
    ] {
        let advice = case.of(&blocked(round));
        assert_eq!(
            (advice.action, advice.circling),
            (Action::AskAPerson, vec![says.to_owned()])
        );
        assert!(
            advice.text.contains("Show the findings to the user"),
            "{}",
            advice.text
        );
    }
    // Rounds that converge are not reported.
    for case in [
        AdviceCase {
            earlier: vec![before(1, 3, None), before(2, 3, None)],
            ..AdviceCase::default()
        },
        AdviceCase {
            since: introduced(Severity::Major),
            earlier: vec![before(1, 5, None), before(2, 4, None)],
            ..AdviceCase::default()
        },
    ] {
        let advice = case.of(&blocked(3));
        assert_eq!((advice.action, advice.circling), (Action::Fix, vec![]));
    }
    // Introduced suggestions do not count.
    let suggested = introduced(Severity::Suggestion);
    let earlier = vec![before(1, 5, None), before(2, 4, suggested.clone())];
    let case = AdviceCase {
        since: suggested,
        earlier,
        ..AdviceCase::default()
    };
    assert_eq!(case.of(&blocked(3)).circling, [] as [String; 0]);
}

#[test]
fn only_small_findings_end_a_session() {
    fn warned(round: u32) -> Report {
        with(report(round, vec![small(1), small(2)]), |r| {
            r.verdict = Verdict::Warn;
        })
    }
    let case = AdviceCase {
        earlier: vec![stored(report(1, vec![claim(1, "x")]), None)],
        ..AdviceCase::default()
    };
    let advice = case.of(&warned(2));
    assert_eq!(
        (advice.action, advice.circling),
        (
            Action::Complete,
            vec!["only minor findings are left".to_owned()]
        )
    );
    assert!(
        advice
            .text
            .contains("do not request another round for them"),
        "{}",
        advice.text
    );
    // Even in the last round.
    assert_eq!(case.of(&warned(5)).action, Action::Complete);
}

#[test]
fn what_nobody_looked_for_is_no_approval() {
    let unchecked = AdviceCase {
        since: Some(since(&[(State::Unchecked, "F2", Severity::Major)])),
        ..AdviceCase::default()
    };
    let advice = unchecked.of(&report(2, vec![]));
    assert_eq!(advice.action, Action::RetryLater);
    assert!(advice.text.contains("did not check F2"), "{}", advice.text);
    let minor = AdviceCase {
        since: Some(since(&[(State::Unchecked, "F2", Severity::Minor)])),
        ..AdviceCase::default()
    };
    assert_eq!(minor.of(&report(2, vec![])).action, Action::Complete);
}

#[test]
fn what_was_not_found_again_is_named_and_what_was_is_not() {
    let still = AdviceCase {
        since: Some(since(&[(State::StillThere, "F1", Severity::Major)])),
        ..AdviceCase::default()
    };
    let again = still.of(&report(2, vec![claim(1, "x")])).text;
    assert!(!again.contains("again"), "it was: {again}");
    let mut carried = claim(1, "x");
    carried.evidence.push("carried:round-1".to_owned());
    let text = still.of(&report(2, vec![carried])).text;
    assert!(
        text.contains("did not report F1 again, but the lines are unmodified"),
        "{text}"
    );
}

#[test]
fn only_what_can_be_argued_about_is_to_be_explained() {
    let text = first(&report(1, vec![rule("x", 1)])).text;
    assert!(
        !text.contains("explain")
            && text.contains("F1 needs a code change, or a waiver from a person"),
        "{text}"
    );
    let critical = Finding {
        severity: Severity::Critical,
        ..claim(1, "x")
    };
    let text = first(&report(1, vec![critical, claim(2, "y")])).text;
    assert!(
        text.contains("disagree with F2,")
            && text.contains("F1 needs a code change, or a waiver from a person"),
        "{text}"
    );
}

#[test]
fn a_round_that_looked_at_nothing_approves_nothing() {
    let unread = with(report(1, vec![]), |r| {
        (r.coverage.files_total, r.coverage.files_reviewed) = (1, 0);
    });
    let advice = first(&unread);
    assert_eq!(advice.action, Action::AskAPerson, "{}", advice.text);
}

#[test]
fn a_foreign_reason_is_one_short_line() {
    let long = format!("m: {}", "no\n\n".repeat(500));
    let text = first(&incomplete(None, &long)).text;
    assert!(!text.contains('\n') && text.len() < 600, "{text}");
}

#[test]
fn ver_01_failed_tests_and_what_was_not_reviewed_are_no_approval() {
    fn tests(blocking: bool) -> Option<crate::wire::TestResults> {
        Some(crate::wire::TestResults {
            passed: false,
            outcome: Some(crate::wire::TestOutcome::Failed),
            blocking,
            summary: "41 passed, 1 failed".to_owned(),
            failing_tests: Vec::new(),
            coverage: None,
        })
    }
    let blocked = with(report(1, vec![]), |r| {
        (r.verdict, r.test_results) = (Verdict::Block, tests(true));
    });
    let both = with(report(1, vec![claim(1, "x")]), |r| {
        r.test_results = tests(true);
    });
    let warned = with(report(1, vec![]), |r| {
        (r.verdict, r.test_results) = (Verdict::Warn, tests(false));
    });
    let cut = with(report(1, vec![]), |r| {
        r.verdict = Verdict::Warn;
        let skipped = crate::wire::Skipped {
            file: "a.rs".to_owned(),
            reason: "limit".to_owned(),
        };
        r.coverage.skipped = vec![skipped];
    });
    let unread = with(report(1, vec![]), |r| {
        r.outcome = Outcome::NothingToReview;
        (r.coverage.files_reviewed, r.coverage.files_total) = (0, 2);
    });
    for (report, action, says) in [
        (blocked, Action::Fix, "tests failed (41 passed, 1 failed)"),
        (both, Action::Fix, "F1 blocks."),
        (warned, Action::AskAPerson, "only a person can approve"),
        (cut, Action::AskAPerson, "a limit stopped the review"),
        (
            unread,
            Action::AskAPerson,
            "No file of this change was reviewed",
        ),
    ] {
        let advice = first(&report);
        assert_eq!(advice.action, action, "{}", advice.text);
        assert!(advice.text.contains(says), "{}", advice.text);
    }
}
