//! Tests of sessions with a few rounds, and the states of their findings.

use super::super::sample::{change, claim, explains, report, rule, stored};
use super::*;
use crate::wire::{Failed, Severity, Skipped, SourceKind, Suppression, Waiver};
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

fn fail(file: Option<&str>) -> Failed {
    Failed {
        file: file.map(str::to_owned),
        reason: "m: refused".to_owned(),
    }
}

fn skip(why: &str) -> Skipped {
    Skipped {
        file: "a.rs".to_owned(),
        reason: why.to_owned(),
    }
}

#[test]
fn nobody_looked_is_not_mended() {
    let first = SessionCase::first(BAD, vec![off_by_one(21), rule("py-eval", 25)]);
    let rule_says = "fixed F2 -";
    assert_eq!(first.mended(&|_| {}), ["fixed F1 -", rule_says]);
    assert_eq!(
        first.mended(&|r| r.usage.clear()),
        ["unchecked F1 -", rule_says]
    );
    assert_eq!(
        first.mended(&|r| r.usage[0].backend = "other".to_owned()),
        ["unchecked F1 -", rule_says]
    );
    assert_eq!(
        first.mended(&|r| r.coverage.failed.push(fail(None))),
        ["unchecked F1 -", rule_says]
    );
    assert_eq!(
        first.mended(&|r| r.coverage.failed.push(fail(Some("b.rs")))),
        ["fixed F1 -", rule_says]
    );
    assert_eq!(
        first.mended(&|r| r.coverage.failed.push(fail(Some("a.rs")))),
        ["unchecked F1 -", "unchecked F2 -"]
    );
    assert_eq!(
        first.mended(&|r| r.coverage.skipped.push(skip("generated"))),
        ["unchecked F1 -", rule_says]
    );
    assert_eq!(
        first.mended(&|r| r.coverage.skipped.push(skip("ignored"))),
        ["unchecked F1 -", "unchecked F2 -"]
    );
    assert_eq!(
        first.mended(&|r| r.outcome = Outcome::Cancelled),
        ["unchecked F1 -", "unchecked F2 -"]
    );
    // Only checked findings are carried over.
    let mut now = first.report(vec![rule("py-eval", 25)]);
    now.usage.clear();
    let (since, carried, _) = first.compare_with(BAD, now);
    assert_eq!(
        (told(&since), carried.len()),
        (
            vec!["still_there F2 F1".to_owned(), "unchecked F1 -".to_owned()],
            0
        )
    );
}

#[test]
fn what_was_not_looked_for_stays_open_until_somebody_does() {
    let mut case = SessionCase::first(BAD, vec![off_by_one(21)]);
    // The second round was run without the backend.
    let mut now = case.report(vec![]);
    now.usage.clear();
    let (since, _, report) = case.compare_with(BAD, now);
    assert_eq!(told(&since), ["unchecked F1 -"]);
    case.rounds.push((text(BAD), report, Some(since)));
    assert_eq!(
        told(&case.compare(BAD, vec![off_by_one(21)]).0),
        ["still_there F1 F1"]
    );
    assert_eq!(
        told(&case.compare(&[(20, "good")], vec![]).0),
        ["fixed F1 -"]
    );
    let (since, carried, _) = case.compare(BAD, vec![]);
    assert_eq!(
        (told(&since), carried.len()),
        (vec!["still_there F1 F1".to_owned()], 1)
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

#[test]
fn equal_lines_are_told_apart_by_where_they_stand() {
    let twice = &[(10, "bad"), (30, "bad")][..];
    let first = SessionCase::first(twice, vec![rule("py-eval", 11), rule("py-eval", 32)]);
    // The first one was fixed, so the second one has its fingerprint now.
    let (since, _, now) = first.compare(&[(10, "good"), (30, "bad")], vec![rule("py-eval", 32)]);
    assert_eq!(
        now.findings[0].fingerprint,
        first.rounds[0].1.findings[0].fingerprint
    );
    assert_eq!(told(&since), ["still_there F2 F1", "fixed F1 -"]);
    // One more before them.
    let more = &[(5, "bad"), (10, "bad"), (30, "bad")][..];
    let (since, ..) = first.compare(
        more,
        vec![rule("py-eval", 6), rule("py-eval", 12), rule("py-eval", 33)],
    );
    assert_eq!(
        told(&since),
        [
            "introduced_by_fix - F1",
            "still_there F1 F2",
            "still_there F2 F3"
        ]
    );
    // Two claims about one line remain two.
    let first = SessionCase::first(BAD, vec![off_by_one(21), claim(21, "Reads a freed buffer")]);
    let (since, ..) = first.compare(
        BAD,
        vec![
            claim(21, "A buffer is read after it was freed"),
            claim(21, "Bound off by one"),
        ],
    );
    assert_eq!(told(&since), ["still_there F2 F1", "still_there F1 F2"]);
}

#[test]
fn what_comes_back_is_reopened() {
    let case = SessionCase::first(BAD, vec![off_by_one(21)]).then(&[(20, "good")], vec![]);
    let (since, _, now) = case.compare(BAD, vec![off_by_one(21)]);
    assert_eq!(told(&since), ["reopened F1 F1"]);
    assert_eq!((since.round, since.reopened), (2, 1));
    // Also in other words. Another issue at the position is not reopened, but it is reported.
    let (since, ..) = case.compare(
        BAD,
        vec![Finding {
            quote: "bad".to_owned(),
            ..claim(21, "Loop is off by one")
        }],
    );
    assert_eq!(told(&since), ["reopened F1 F1"]);
    let (since, _, other) = case.compare(&[(20, "worse")], vec![claim(21, "Reads a freed buffer")]);
    assert_eq!(told(&since), ["introduced_by_fix - F1"]);
    for (report, with) in [(now, BAD), (other, &[(20, "worse")][..])] {
        let again = again(&case, with, &report);
        assert_eq!(again.len(), 1, "{with:?}");
        assert_eq!(
            (again[0].line, again[0].previous_id.as_str(), again[0].round),
            (Some(21), "F1", 1)
        );
    }
    let (_, _, far) = case.compare(
        &[(20, "good"), (30, "x")],
        vec![claim(32, "Leaks a handle")],
    );
    assert_eq!(again(&case, &[(20, "good"), (30, "x")], &far), []);
}

fn again(case: &SessionCase, with: &[(u32, &str)], report: &Report) -> Vec<Again> {
    let base = text(&[]);
    let stored: Vec<_> = case
        .rounds
        .iter()
        .map(|(t, r, s)| {
            let mut r = r.clone();
            r.source = report.source.clone();
            (stored(r, s.clone()), change("a.rs", &base, t))
        })
        .collect();
    let earlier: Vec<_> = stored
        .iter()
        .map(|(review, change)| Earlier {
            review,
            response: None,
            change,
            cover: Cover::Whole,
        })
        .collect();
    let now = change("a.rs", &base, &text(with));
    let current = Current {
        change: RoundChange {
            text: &now,
            left_out: &[],
        },
        source: &report.source,
        look: &case.beside,
    };
    let comparison = Comparison::new(&earlier, &current);
    comparison.again(report, &comparison.since(report))
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
fn what_left_the_change_is_mended_unless_only_a_part_was_asked_for() {
    let mut case = SessionCase::first(BAD, vec![off_by_one(21), rule("py-eval", 21)]);
    let mut now = case.report(vec![]);
    // Nothing is left to review.
    now.usage.clear();
    now.outcome = Outcome::NothingToReview;
    assert_eq!(
        told(&case.compare_with(&[], now.clone()).0),
        ["fixed F1 -", "fixed F2 -"]
    );
    case.beside.narrowed = true;
    assert_eq!(
        told(&case.compare_with(&[], now.clone()).0),
        ["unchecked F1 -", "unchecked F2 -"]
    );
    // From another base, or about another source: an absent finding proves nothing.
    case.beside.narrowed = false;
    for cover in [Cover::Nothing, Cover::Onward, Cover::Given] {
        case.cover = cover;
        case.same_base = false;
        assert_eq!(
            told(&case.compare_with(&[], now.clone()).0),
            ["unchecked F1 -", "unchecked F2 -"],
            "{cover:?}"
        );
    }
}

#[test]
fn a_source_that_does_not_show_the_lines_mends_nothing() {
    let mut case = SessionCase::first(BAD, vec![off_by_one(21), rule("py-eval", 21)]);
    fn told(case: &SessionCase, with: &[(u32, &str)]) -> Vec<String> {
        self::told(&case.compare(with, vec![]).0)
    }
    for with in [&[(20, "good")][..], BAD, &[(3, "x"), (20, "bad")]] {
        case.cover = Cover::Nothing;
        assert_eq!(
            told(&case, with),
            ["unchecked F1 -", "unchecked F2 -"],
            "{with:?}"
        );
    }
    // It starts where the other ended: only findings on replaced lines are fixed.
    case.cover = Cover::Onward;
    assert_eq!(told(&case, &[(20, "good")]), ["fixed F1 -", "fixed F2 -"]);
    assert_eq!(
        told(&case, &[(3, "x"), (20, "bad")]),
        ["still_there F1 F1", "unchecked F2 -"]
    );
    assert_eq!(
        told(&case, &[(20, "bad"), (20, "x")]),
        ["fixed F1 -", "unchecked F2 -"]
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
fn each_of_thousands_of_findings_is_found_again() {
    // A rule reports every line, in each of two rounds, in many files.
    fn many(shift: u32) -> Vec<Finding> {
        let all = (0..2_000).map(|n| Finding {
            file: Some(format!("f{}.rs", n % 20)),
            quote: format!("quote {n}"),
            ..rule("py-eval", n / 20 + 1 + shift)
        });
        all.collect()
    }
    let first = SessionCase::first(BAD, many(0));
    let (since, ..) = first.compare(BAD, many(1));
    assert_eq!((since.entries.len(), since.moved), (2_000, 2_000));
}

#[test]
fn each_of_thousands_of_findings_of_one_file_is_found_again() {
    // Every other finding has its own text; the others are equal. Comparing all pairs would take
    // minutes.
    fn many(shift: u32) -> Vec<Finding> {
        let all = (0..10_000).map(|n| Finding {
            file: Some("f.rs".to_owned()),
            quote: format!("quote {}", n % 2 * n),
            ..rule("py-eval", n + 1 + shift)
        });
        all.collect()
    }
    let first = SessionCase::first(BAD, many(0));
    let (since, ..) = first.compare(BAD, many(1));
    assert_eq!((since.entries.len(), since.moved), (10_000, 10_000));
}

/// Returns a suggestion with the quote of another claim.
fn nit(title: &str) -> Finding {
    Finding {
        severity: Severity::Suggestion,
        blocking: false,
        quote: "quote of Empty list raises".to_owned(),
        ..claim(5, title)
    }
}

#[test]
fn a_trifle_on_the_same_line_does_not_stand_for_what_blocked() {
    let far = [(30, "far away")];
    for title in ["Variable name is short", "Empty list raises"] {
        let case = SessionCase::first(&[], vec![claim(5, "Empty list raises")]);
        let (since, carried, report) = case.compare(&far, vec![nit(title)]);
        assert_eq!(carried.len(), 1, "{title}");
        assert_eq!(
            report.findings.iter().filter(|f| f.blocking).count(),
            1,
            "{title}"
        );
        assert_eq!(
            (since.still_there, since.fixed),
            (1, 0),
            "{title}: {since:?}"
        );
    }
    let both = SessionCase::first(
        &[],
        vec![claim(5, "Empty list raises"), nit("Variable name is short")],
    );
    let (since, carried, report) = both.compare(&far, vec![nit("Variable name is short")]);
    assert_eq!(
        (carried.len(), report.findings.len(), since.still_there),
        (1, 2, 2),
        "{since:?}"
    );
    let worse = Finding {
        severity: Severity::Critical,
        ..claim(5, "No item, no head")
    };
    let (since, carried, _) =
        SessionCase::first(&[], vec![claim(5, "Empty list raises")]).compare(&far, vec![worse]);
    assert_eq!(
        (carried.len(), since.still_there),
        (0, 1),
        "other words of the same weight: {since:?}"
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
fn what_was_found_in_a_file_that_has_no_changed_line_left_is_gone() {
    let first = report(1, vec![claim(2, "Off by one")]);
    let (before, emptied) = (
        change("a.rs", "", "one\ntwo\n"),
        "diff --git a/a.rs b/a.rs\nnew file mode 100644\n",
    );
    let review = stored(first, None);
    let unasked = Report {
        usage: Vec::new(),
        ..report(2, Vec::new())
    };
    let now = Current {
        change: RoundChange {
            text: emptied.as_bytes(),
            left_out: &[],
        },
        source: &unasked.source.clone(),
        look: &FilesBeside::default(),
    };
    let narrowed = FilesBeside {
        narrowed: true,
        ..FilesBeside::default()
    };
    for (now, cover, state) in [
        (now, Cover::Whole, State::Fixed),
        (now, Cover::Onward, State::Unchecked),
        (
            Current {
                look: &narrowed,
                ..now
            },
            Cover::Whole,
            State::Unchecked,
        ),
        // Too large to be stored: its lines exist, but are unknown.
        (
            Current {
                change: RoundChange {
                    left_out: &["a.rs".to_owned()],
                    ..now.change
                },
                ..now
            },
            Cover::Whole,
            State::Unchecked,
        ),
    ] {
        let earlier = [Earlier {
            review: &review,
            response: None,
            change: &before,
            cover,
        }];
        let since = Comparison::new(&earlier, &now).since(&unasked);
        assert_eq!(since.entries[0].state, state, "{cover:?} {now:?}");
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
fn silence_about_a_file_whose_lines_are_not_kept_mends_nothing() {
    /// Returns the state of a finding on a replaced line. The lines of the rounds with `true` are
    /// unknown.
    fn fate(found: Finding, before: bool, after: bool, look: &FilesBeside) -> State {
        let (then, now) = (change_to(&text(BAD)), change_to(&text(&[(20, "good")])));
        let left_out = ["a.rs".to_owned()];
        let mut review = stored(report(1, vec![found]), None);
        review.change.left_out = if before {
            left_out.to_vec()
        } else {
            Vec::new()
        };
        let report = report(2, Vec::new());
        let kept: &[String] = if after { &left_out } else { &[] };
        let current = Current {
            change: RoundChange {
                text: &now,
                left_out: kept,
            },
            source: &report.source,
            look,
        };
        let earlier = [Earlier {
            review: &review,
            response: None,
            change: &then,
            cover: Cover::Whole,
        }];
        Comparison::new(&earlier, &current).since(&report).entries[0].state
    }
    let nothing = FilesBeside::default();
    assert_eq!(fate(off_by_one(21), false, false, &nothing), State::Fixed);
    for (before, after) in [(true, false), (false, true), (true, true)] {
        assert_eq!(
            fate(off_by_one(21), before, after, &nothing),
            State::Unchecked,
            "{before} {after}"
        );
    }
    // A change without lines does not prove that the file equals what it shows.
    let (now, base) = (text(BAD).into_bytes(), text(&[]).into_bytes());
    let hidden = UnshownFile::Text {
        now,
        base,
        aside: look::Standing::Hidden,
    };
    let beside = FilesBeside {
        files: [("a.rs".to_owned(), hidden)].into(),
        ..FilesBeside::default()
    };
    assert_eq!(
        fate(rule("todo", 21), false, true, &beside),
        State::Unchecked
    );
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
