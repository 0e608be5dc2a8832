//! A missing finding counts only if the round would have shown it.

use super::*;

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
        reason: look::UnshownReason::Hidden,
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
