//! Which finding of the new round an earlier one is.

use super::*;

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
