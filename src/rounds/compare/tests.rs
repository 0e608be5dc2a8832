//! Tests of sessions with a few rounds, and the states of their findings.

mod again;
mod coverage;
mod pairs;

use super::super::sample::{change, claim, explains, report, rule, stored};
use super::look::UnshownFile;
use super::*;
use crate::wire::{Failed, Outcome, Severity, Skipped, SourceKind, Suppression, Waiver};
use std::collections::HashMap;

/// Returns numbered lines; `with` adds lines after some of them.
fn text(with: &[(u32, &str)]) -> String {
    (1..40)
        .map(|n| {
            let more: String = with
                .iter()
                .filter(|(after, _)| *after == n)
                .map(|(_, l)| format!("{l}\n"))
                .collect();
            format!("line {n}\n{more}")
        })
        .collect()
}

/// Returns the change from the base to a text of `a.rs`.
fn change_to(new: &str) -> Vec<u8> {
    change("a.rs", &text(&[]), new)
}

/// Files outside of the change, set by a test.
#[derive(Debug, Default)]
struct FilesBeside {
    narrowed: bool,
    left_out: Vec<u8>,
    files: HashMap<String, UnshownFile>,
}

impl UnshownFiles for FilesBeside {
    fn selects(&self, _: &str) -> bool {
        !self.narrowed
    }

    fn left_out(&self) -> &[u8] {
        &self.left_out
    }

    fn file(&self, file: &str, _: bool) -> UnshownFile {
        self.files
            .get(file)
            .cloned()
            .unwrap_or(UnshownFile::Nothing)
    }

    fn is_secret(&self, f: &Finding) -> bool {
        f.rule_id == "secret"
    }
}

/// A session: the texts of `a.rs`, round by round, with the findings of each.
struct SessionCase {
    rounds: Vec<(String, Report, Option<Since>)>,
    response: Option<Response>,
    same_base: bool,
    beside: FilesBeside,
    cover: Cover,
}

impl SessionCase {
    /// Returns the first round: `a.rs` with added lines.
    fn first(with: &[(u32, &str)], findings: Vec<Finding>) -> Self {
        let rounds = vec![(text(with), report(1, findings), None)];
        Self {
            rounds,
            response: None,
            same_base: true,
            beside: FilesBeside::default(),
            cover: Cover::Whole,
        }
    }

    /// Adds a round, as it would be stored.
    fn then(mut self, with: &[(u32, &str)], findings: Vec<Finding>) -> Self {
        let (since, _, report) = self.compare(with, findings);
        self.rounds.push((text(with), report, Some(since)));
        self
    }

    fn report(&self, findings: Vec<Finding>) -> Report {
        report(self.rounds.len() as u32 + 1, findings)
    }

    fn set_source(&self, report: &mut Report) {
        report.source.kind = SourceKind::Changes;
        report.source.base = self.same_base.then(|| "1".repeat(40));
    }

    /// Returns the states after a silent round without the bad line, with a report that `change`
    /// modifies.
    fn mended(&self, change: &dyn Fn(&mut Report)) -> Vec<String> {
        let mut now = self.report(vec![]);
        change(&mut now);
        told(&self.compare_with(&[(20, "good")], now).0)
    }

    /// Returns the state of a finding after a silent round, with a report that `change` modifies.
    /// Nothing is carried.
    fn gone(&self, with: &[(u32, &str)], change: &dyn Fn(&mut Report)) -> String {
        let mut now = self.report(vec![]);
        change(&mut now);
        let (since, carried, _) = self.compare_with(with, now);
        assert_eq!(carried, []);
        told(&since).remove(0)
    }

    fn compare(
        &self,
        with: &[(u32, &str)],
        findings: Vec<Finding>,
    ) -> (Since, Vec<Finding>, Report) {
        self.compare_with(with, self.report(findings))
    }

    /// Returns the states of all findings, the carried ones, and the finished report.
    fn compare_with(&self, with: &[(u32, &str)], mut now: Report) -> (Since, Vec<Finding>, Report) {
        self.set_source(&mut now);
        let stored: Vec<(Review, Vec<u8>)> = self
            .rounds
            .iter()
            .map(|(text, report, since)| {
                let mut report = report.clone();
                self.set_source(&mut report);
                (stored(report, since.clone()), change_to(text))
            })
            .collect();
        let earlier: Vec<Earlier<'_>> = stored
            .iter()
            .map(|(review, change)| Earlier {
                review,
                response: None,
                change,
                cover: self.cover,
            })
            .collect();
        let change = change_to(&text(with));
        let current = Current {
            change: RoundChange {
                text: &change,
                left_out: &[],
            },
            source: &now.source.clone(),
            look: &self.beside,
        };
        let comparison = Comparison::new(&earlier, &current);
        let carried = comparison.carried(&now, self.response.as_ref());
        let mut all = now.findings.clone();
        all.extend(carried.clone());
        all.sort_by_key(|f| (f.file.clone(), f.line));
        let finished = Report {
            source: now.source.clone(),
            coverage: now.coverage.clone(),
            usage: now.usage.clone(),
            outcome: now.outcome,
            ..report(now.round, all)
        };
        let finished = Report {
            tool: now.tool,
            ..finished
        };
        let since = comparison.since(&finished);
        assert_eq!(since, comparison.since(&finished), "the same every time");
        (since, carried, finished)
    }
}

/// Formats entries: state, previous ID, current ID.
fn told(since: &Since) -> Vec<String> {
    let mut all = Vec::new();
    for e in &since.entries {
        let state = serde_json::to_string(&e.state).unwrap();
        let ids = [&e.previous_id, &e.id].map(|id| id.as_deref().unwrap_or("-"));
        all.push(format!("{} {} {}", state.trim_matches('"'), ids[0], ids[1]));
    }
    all
}

fn off_by_one(line: u32) -> Finding {
    claim(line, "Off by one")
}

const BAD: &[(u32, &str)] = &[(20, "bad")];

#[test]
fn what_became_of_a_finding_follows_from_its_code() {
    let first = SessionCase::first(BAD, vec![off_by_one(21)]);
    for (what, with, now, expected) in [
        (
            "nothing changed",
            BAD,
            vec![off_by_one(21)],
            vec!["still_there F1 F1"],
        ),
        (
            "lines above",
            &[(3, "x"), (20, "bad")][..],
            vec![off_by_one(22)],
            vec!["still_there F1 F1"],
        ),
        ("mended", &[(20, "good")], vec![], vec!["fixed F1 -"]),
        (
            "removed, something else changed",
            &[(3, "x")],
            vec![],
            vec!["fixed F1 -"],
        ),
        (
            "a guard above it",
            &[(19, "guard"), (20, "bad")],
            vec![],
            vec!["fixed F1 -"],
        ),
        (
            "other words",
            BAD,
            vec![Finding {
                quote: "bad".to_owned(),
                ..claim(21, "Wrong bound of a loop")
            }],
            vec!["still_there F1 F1"],
        ),
        (
            "another category",
            BAD,
            vec![Finding {
                rule_id: "ai-design".to_owned(),
                ..claim(21, "Bound is wrong")
            }],
            vec!["still_there F1 F1"],
        ),
        (
            "changed, the same trouble",
            &[(20, "bad, again")],
            vec![Finding {
                quote: "bad, again".to_owned(),
                ..off_by_one(21)
            }],
            vec!["still_there F1 F1"],
        ),
        (
            "changed, another trouble",
            &[(20, "worse")],
            vec![claim(21, "Reads a freed buffer")],
            vec!["introduced_by_fix - F1", "fixed F1 -"],
        ),
        (
            "moved away",
            &[(30, "bad")],
            vec![off_by_one(31)],
            vec!["moved F1 F1"],
        ),
        (
            "new elsewhere, old code",
            &[(20, "good")],
            vec![claim(8, "Leaks a handle")],
            vec!["new - F1", "fixed F1 -"],
        ),
        (
            "new elsewhere, new code",
            &[(20, "good"), (30, "leak")],
            vec![claim(32, "Leaks a handle")],
            vec!["introduced_by_fix - F1", "fixed F1 -"],
        ),
        (
            "a check was taken away above it",
            &[(20, "good")],
            vec![claim(22, "Not checked")],
            vec!["introduced_by_fix - F1", "fixed F1 -"],
        ),
    ] {
        let (since, carried, _) = first.compare(with, now);
        assert_eq!(
            (told(&since), carried.len()),
            (expected.into_iter().map(str::to_owned).collect(), 0),
            "{what}"
        );
        assert_eq!(since.round, 1);
    }
}

#[test]
fn a_claim_that_nobody_repeats_about_unchanged_code_is_carried_over() {
    let first = SessionCase::first(
        BAD,
        vec![Finding {
            evidence: vec!["quote".to_owned(), "backend:n".to_owned()],
            ..off_by_one(21)
        }],
    );
    for (with, line) in [
        (BAD, 21),
        (&[(3, "x"), (3, "y"), (20, "bad")][..], 23),
        (&[(20, "bad"), (30, "x")], 21),
    ] {
        let (since, carried, now) = first.compare(with, vec![]);
        assert_eq!(told(&since), ["still_there F1 F1"], "{with:?}");
        assert_eq!(
            (carried[0].line, carried[0].end_line),
            (Some(line), Some(line))
        );
        let told = [
            &first.rounds[0].1.findings[0].evidence[..],
            &["carried:round-1".to_owned()],
        ]
        .concat();
        assert_eq!((&carried[0].evidence, &carried[0].disputed), (&told, &None));
        assert_eq!(now.findings.len(), 1);
    }
    // And again in the following round, until its code changes.
    let second = SessionCase::first(BAD, vec![off_by_one(21)]).then(BAD, vec![]);
    assert_eq!(told(&second.compare(BAD, vec![]).0), ["still_there F1 F1"]);
    assert_eq!(
        told(&second.compare(&[(20, "good")], vec![]).0),
        ["fixed F1 -"]
    );
}

#[test]
fn what_the_coder_explained_is_carried_as_disputed() {
    let mut case = SessionCase::first(
        BAD,
        vec![off_by_one(21), claim(5, "Unused"), claim(9, "Slow")],
    );
    let fingerprint = case.rounds[0].1.findings[1].fingerprint.clone();
    case.response = Some(explains("f1", "the bound is\ninclusive here"));
    case.response
        .as_mut()
        .unwrap()
        .explanations
        .extend(explains(&fingerprint, "it is used by the build").explanations);
    case.response
        .as_mut()
        .unwrap()
        .explanations
        .push(crate::wire::stored::Explanation {
            finding: None,
            text: "all is well".to_owned(),
        });
    let (since, carried, _) = case.compare(BAD, vec![]);
    assert_eq!(since.still_there, 3);
    let disputed: Vec<_> = carried.iter().map(|f| f.disputed.as_deref()).collect();
    let said = "not repeated after the explanation: the bound is inclusive here";
    assert_eq!(
        disputed,
        [
            Some(said),
            Some("not repeated after the explanation: it is used by the build"),
            None
        ]
    );
    // A repeated finding remains, whatever was explained.
    let (_, carried, now) = case.compare(BAD, vec![off_by_one(21)]);
    assert_eq!(carried.len(), 2);
    assert!(
        now.findings
            .iter()
            .any(|f| f.line == Some(21) && f.disputed.is_none())
    );
}

#[test]
fn a_rule_is_believed_and_never_carried() {
    let first = SessionCase::first(BAD, vec![rule("py-eval", 21)]);
    assert_eq!(first.gone(&[(20, "good")], &|_| {}), "fixed F1 -");
    // The code is the same, and the rule is silent: the rule or its file is disabled.
    assert_eq!(first.gone(BAD, &|_| {}), "unchecked F1 -");
    assert_eq!(first.gone(&[(3, "x"), (20, "bad")], &|_| {}), "fixed F1 -");
    assert_eq!(
        first.gone(&[(3, "x"), (20, "bad")], &|r| r.tool.rules_hash =
            "other".to_owned()),
        "unchecked F1 -"
    );
    // A suppressed or waived finding still exists.
    for set_aside in [
        Finding {
            suppressed: Some(Suppression {
                by: "inline".to_owned(),
                reason: "x".to_owned(),
            }),
            ..rule("py-eval", 22)
        },
        Finding {
            waived: Some(Waiver {
                reason: "x".to_owned(),
                actor: "y".to_owned(),
                link: None,
            }),
            ..rule("py-eval", 22)
        },
    ] {
        assert_eq!(
            told(
                &first
                    .compare(&[(19, "# off"), (20, "bad")], vec![set_aside])
                    .0
            ),
            ["still_there F1 F1"]
        );
    }
    // Another rule at the same position is another finding.
    let (since, ..) = first.compare(&[(20, "good")], vec![rule("py-exec", 21)]);
    assert_eq!(told(&since), ["introduced_by_fix - F1", "fixed F1 -"]);
    // Another secret in its place is not.
    let (since, ..) = first.compare(
        &[(20, "good")],
        vec![Finding {
            quote: "other".to_owned(),
            ..rule("py-eval", 21)
        }],
    );
    assert_eq!(told(&since), ["still_there F1 F1"]);
}

/// Returns a claim about the whole file.
fn file(title: &str) -> Finding {
    Finding {
        line: None,
        end_line: None,
        quote: String::new(),
        ..claim(1, title)
    }
}

/// Returns a claim about the whole change.
fn whole(title: &str) -> Finding {
    Finding {
        file: None,
        ..file(title)
    }
}

/// Returns a finding of a rule about the whole change.
fn lockfile(id: &str) -> Finding {
    Finding {
        file: None,
        line: None,
        end_line: None,
        ..rule(id, 1)
    }
}

#[test]
fn findings_without_lines_are_compared_by_file_and_words() {
    let first = SessionCase::first(
        BAD,
        vec![
            whole("No test for the limit"),
            file("The module has two purposes"),
        ],
    );
    // Reported again; not reported again for unchanged code; not reported again after a change.
    let again = vec![
        whole("No test covers the limit"),
        file("The module has two purposes"),
    ];
    assert_eq!(
        told(&first.compare(BAD, again).0),
        ["still_there F1 F1", "still_there F2 F2"]
    );
    let (since, carried, _) = first.compare(BAD, vec![]);
    assert_eq!(
        (told(&since), carried.len()),
        (
            vec![
                "still_there F1 F1".to_owned(),
                "still_there F2 F2".to_owned()
            ],
            2
        )
    );
    assert_eq!(
        told(&first.compare(&[(20, "good")], vec![]).0),
        ["fixed F1 -", "fixed F2 -"]
    );
    let other = vec![whole("The changelog is missing")];
    assert_eq!(
        told(&first.compare(&[(20, "good")], other).0),
        ["new - F1", "fixed F1 -", "fixed F2 -"]
    );
    // Rules are deterministic: a new finding came with the change.
    let first = SessionCase::first(BAD, vec![]);
    assert_eq!(
        told(&first.compare(&[(20, "good")], vec![lockfile("drift")]).0),
        ["introduced_by_fix - F1"]
    );
    assert_eq!(
        told(&first.compare(BAD, vec![lockfile("drift")]).0),
        ["new - F1"]
    );
}

#[test]
fn severities_and_places_are_those_of_the_newest_report() {
    let first = SessionCase::first(BAD, vec![off_by_one(21)]);
    let worse = Finding {
        severity: Severity::Critical,
        ..claim(22, "Off by one")
    };
    let (since, ..) = first.compare(&[(3, "x"), (20, "bad")], vec![worse]);
    let e = &since.entries[0];
    assert_eq!(
        (e.severity, e.line, e.previous_line),
        (Severity::Critical, Some(22), Some(21))
    );
    assert_eq!(since.still_there, 1);
    let (since, ..) = first.compare(&[(20, "good")], vec![]);
    let e = &since.entries[0];
    assert_eq!(
        (e.line, e.previous_line, e.file.as_deref()),
        (None, Some(21), Some("a.rs"))
    );
}

#[test]
fn what_is_carried_over_says_so() {
    let case =
        SessionCase::first(&[], vec![claim(5, "Empty list raises")]).then(&[(30, "x")], Vec::new());
    let (_, carried, _) = case.compare(&[(30, "y")], Vec::new());
    assert_eq!(
        carried[0].evidence,
        ["quote", "carried:round-1"],
        "also in the third round"
    );
}

#[test]
fn an_explanation_does_not_take_away_what_is_critical() {
    let critical = Finding {
        severity: Severity::Critical,
        ..claim(5, "Anyone may log in")
    };
    for (finding, blocks) in [(critical, true), (claim(5, "Anyone may log in"), false)] {
        let mut case = SessionCase::first(&[], vec![finding]);
        case.response = Some(explains("F1", "it is meant so"));
        let (_, carried, _) = case.compare(&[(30, "far")], Vec::new());
        assert_eq!(carried[0].disputed.is_none(), blocks, "{:?}", carried[0]);
    }
}

#[test]
fn an_id_in_an_answer_names_no_finding_of_an_earlier_round() {
    let mut case = SessionCase::first(BAD, vec![off_by_one(21)]);
    // No backend is used: the claim is unchecked, and another finding has its ID now.
    let silent = Report {
        usage: Vec::new(),
        ..case.report(vec![rule("todo", 5)])
    };
    let (since, _, second) = case.compare_with(BAD, silent);
    assert!(
        told(&since).contains(&"unchecked F1 -".to_owned()),
        "{:?}",
        told(&since)
    );
    assert_eq!(
        (&*second.findings[0].id, &*second.findings[0].rule_id),
        ("F1", "todo")
    );
    let fingerprint = case.rounds[0].1.findings[0].fingerprint.clone();
    case.rounds.push((text(BAD), second, Some(since)));
    for (name, is_heard) in [("F1", false), (&*fingerprint, true)] {
        case.response = Some(explains(name, "it is meant to be so"));
        let (_, carried, _) = case.compare(BAD, vec![rule("todo", 5)]);
        assert_eq!(carried.len(), 1, "{carried:#?}");
        assert_eq!(carried[0].disputed.is_some(), is_heard, "{name}");
    }
}

#[test]
fn a_suppression_goes_along_only_where_nothing_changed_around_it() {
    let set_aside = Suppression {
        by: "inline".to_owned(),
        reason: "a sample".to_owned(),
    };
    let found = Finding {
        suppressed: Some(set_aside),
        ..off_by_one(21)
    };
    let case = SessionCase::first(BAD, vec![found]);
    for (with, is_kept) in [
        (&[(3, "far"), (20, "bad")][..], true),
        (&[(19, ""), (20, "bad")], false),
    ] {
        let (_, carried, _) = case.compare(with, Vec::new());
        assert_eq!(
            (carried.len(), carried[0].suppressed.is_some()),
            (1, is_kept),
            "{with:?}"
        );
    }
}
