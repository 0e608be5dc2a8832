//! Tests of quotes that several lines match: which line is chosen, and when no line is certain.

use super::*;

#[test]
fn equal_lines_are_told_apart_by_the_number() {
    let case = case();
    for (line, expected) in [
        // Lines 21 and 31 (new side) match; both are within the tolerance for a claimed number.
        (21, "src/a.rs:21 as numbered"),
        (31, "src/a.rs:31 as numbered"),
        (22, "src/a.rs:21 loosely"),
        (33, "src/a.rs:31 loosely"),
        (26, "src/a.rs loosely"),
        (0, "src/a.rs loosely"),
        (55, "src/a.rs:31 loosely"),
    ] {
        assert_eq!(
            place(&case.anchor(claim("src/a.rs", line, "free(buffer);"))),
            expected,
            "{line}"
        );
    }
    let c = case.candidate(claim("src/a.rs", 26, "free(buffer);"));
    assert!(
        c.draft
            .message
            .ends_with("The quoted line occurs in several places: 21, 31."),
        "{}",
        c.draft.message
    );
}

#[test]
fn a_quote_that_may_be_a_part_of_another_line_is_believed_less() {
    let case = ClaimCase::new(&[(
        "a.c",
        "int a;\n",
        "int a;\nclose(f);\nif (x) close(f);\nopen(f);\n",
    )]);
    for (line, expected) in [
        (2, "a.c:2 as numbered"),
        (3, "a.c:2 loosely"),
        (0, "a.c:2 loosely"),
        (90, "a.c:2 exactly"),
    ] {
        assert_eq!(
            place(&case.anchor(claim("a.c", line, "close(f);"))),
            expected,
            "{line}"
        );
    }
    assert_eq!(
        place(&case.anchor(claim("a.c", 9, "open(f);"))),
        "a.c:4 exactly"
    );
}

#[test]
fn a_quote_that_every_file_has_is_no_tie_away_from_its_number() {
    let rest: String = (4..=60)
        .map(|i| format!("let value_{i} = compute_{i}(input);\n"))
        .collect();
    let case = ClaimCase::new(&[("src/a.rs", "", &format!("fn a() {{\n    b();\n}}\n{rest}"))]);
    for (line, quote, expected) in [
        (50, "}", "src/a.rs:3 loosely"),
        (0, "}", "src/a.rs:3 loosely"),
        (4, "}", "src/a.rs:3 exactly"),
        (3, "}", "src/a.rs:3 exactly"),
        (50, "    b();\n}", "src/a.rs:2-3 loosely"),
        (50, "fn a() {\n    b();", "src/a.rs:1-2 exactly"),
    ] {
        assert_eq!(
            place(&case.anchor(claim("src/a.rs", line, quote))),
            expected,
            "{line} {quote}"
        );
    }
}

#[test]
fn numbers_of_a_diff_view_are_recognised() {
    let lines: String = (1..=400).map(|i| format!("row {i}\n")).collect();
    // `retry(job);` is added after rows 100, 200 and 300: lines 101, 202 and 303 of the new side.
    let new: String = (1..=400)
        .map(|i| match i {
            100 | 200 | 300 => format!("row {i}\n    retry(job);\n"),
            _ => format!("row {i}\n"),
        })
        .collect();
    let case = ClaimCase::new(&[("jobs.txt", &lines, &new)]);
    for (line, expected) in [
        (202, "jobs.txt:202 exactly"),
        // Another line is equal, and the number matches neither.
        (207, "jobs.txt:202 loosely"),
        (210, "jobs.txt:202 loosely"),
        (200, "jobs.txt:202 loosely"),
        // The position is the same in each hunk, so it distinguishes nothing.
        (4, "jobs.txt loosely"),
        // Position in the diff of the file: 7 lines per hunk, plus headers.
        (13, "jobs.txt:202 loosely"),
    ] {
        let anchored = case.anchor(claim("jobs.txt", line, "retry(job);"));
        assert_eq!(place(&anchored), expected, "{line}");
    }
}

/// Returns a case with a file of 120 lines, of which only the given ones are added.
fn with_added(path: &str, added: &[(usize, &str)]) -> ClaimCase {
    with_lines(path, added, &[])
}

/// Like [`with_added`], with unchanged lines that replace others.
fn with_lines(path: &str, added: &[(usize, &str)], unchanged: &[(usize, &str)]) -> ClaimCase {
    let (old, new) = edited(added, unchanged);
    ClaimCase::new(&[(path, &old, &new)])
}

/// Returns the old and the new text of such a file.
pub(super) fn edited(added: &[(usize, &str)], unchanged: &[(usize, &str)]) -> (String, String) {
    let (mut old, mut new) = (String::new(), String::new());
    for i in 1..=120 {
        match (line_at(added, i), line_at(unchanged, i)) {
            (Some(text), _) => new += &format!("{text}\n"),
            (None, unchanged) => {
                let line =
                    unchanged.map_or_else(|| format!("row {i}\n"), |text| format!("{text}\n"));
                old += &line;
                new += &line;
            }
        }
    }
    (old, new)
}

fn line_at<'t>(lines: &[(usize, &'t str)], i: usize) -> Option<&'t str> {
    lines.iter().find(|(n, _)| *n == i).map(|(_, text)| *text)
}

#[track_caller]
pub(super) fn check(case: &ClaimCase, file: &str, expected: &[(i64, &str, &str)]) {
    for (line, quote, expected) in expected {
        assert_eq!(
            place(&case.anchor(claim(file, *line, quote))),
            *expected,
            "{line} {quote}"
        );
    }
}

#[test]
fn identical_lines_40_apart_are_told_apart_by_their_number_or_their_neighbours_only() {
    let case = with_added(
        "a.c",
        &[
            (20, "free(buffer);"),
            (21, "done(a);"),
            (60, "free(buffer);"),
            (61, "done(b);"),
        ],
    );
    check(
        &case,
        "a.c",
        &[
            // 20 is also the position of the second line in the diff.
            (20, "free(buffer);", "a.c:20 as numbered"),
            (60, "free(buffer);", "a.c:60 exactly"),
            (22, "free(buffer);", "a.c:20 loosely"),
            (45, "free(buffer);", "a.c:60 loosely"),
            (0, "free(buffer);", "a.c loosely"),
            // Additional quoted lines decide, whatever the number is.
            (0, "free(buffer);\ndone(b);", "a.c:60-61 exactly"),
            (25, "free(buffer);\ndone(b);", "a.c:60-61 exactly"),
            (60, "free(buffer);\ndone(a);", "a.c:20-21 exactly"),
        ],
    );
}

#[test]
fn a_part_of_several_lines_is_believed_at_the_claimed_number_only() {
    let case = with_lines(
        "a.c",
        &[
            (20, "x = load(path, 1);"),
            (60, "y = load(path, 2);"),
            (90, "z = store(path, 3);"),
        ],
        &[(22, "w = load(path, 0);"), (92, "v = store(path, 4);")],
    );
    check(
        &case,
        "a.c",
        &[
            (20, "load(path,", "a.c:20 as numbered"),
            (60, "load(path,", "a.c:60 as numbered"),
            (58, "load(path,", "a.c:60 loosely"),
            // The line with the number is not changed.
            (22, "load(path,", "remark a.c:22"),
            // Only one changed line contains it, and no unchanged line is nearer.
            (0, "store(path,", "a.c:90 as numbered"),
            (88, "store(path,", "a.c:90 as numbered"),
            (93, "store(path,", "a.c:90 loosely"),
            (92, "store(path,", "remark a.c:92"),
        ],
    );
}

#[test]
fn a_part_counts_from_eight_characters_and_two_tokens_with_a_word() {
    let case = with_added(
        "a.c",
        &[
            (20, "  levels[\"LESS\"] = \"-R\"; });  });"),
            (21, "// ---------------- end"),
            (22, "import click.shell;"),
            (23, "forgot(it);"),
        ],
    );
    check(
        &case,
        "a.c",
        &[
            (20, "[\"LESS\"] = \"", "a.c:20 as numbered"),
            (22, "import c", "a.c:22 as numbered"),
            (22, "import c…", "a.c:22 as numbered"),
            (22, "…ick.shell", "a.c:22 as numbered"),
            (22, "+ import cli", "a.c:22 as numbered"),
            (22, "click.s", "a.c:22 loosely"),
            // White space does not lengthen a part.
            (22, "import           c", "a.c:22 as numbered"),
            (22, "k    .    s", "a.c:22 loosely"),
            // Punctuation is in many lines.
            (20, "});  });", "a.c:20 loosely"),
            (21, "----------------", "a.c:21 loosely"),
            (21, "// -----", "a.c:21 loosely"),
            // Separated words do not equal the joined word.
            (23, "for got(it)", "a.c:23 loosely"),
            // Each side of an omission must be long enough.
            (20, "levels[...; });", "a.c:20 loosely"),
        ],
    );
}

#[test]
fn back_ticks_around_a_line_do_not_take_its_own() {
    let lines = [
        (20, "`row` is a name"),
        (21, "use `row`"),
        (22, "```py"),
        (23, "plain text"),
        (24, "it’s “here”…"),
    ];
    let case = with_added("a.md", &lines);
    for (n, text) in lines {
        let quoted = format!("`{text}`");
        assert_eq!(
            place(&case.anchor(claim("a.md", n as i64, &quoted))),
            format!("a.md:{n} exactly"),
            "{quoted}"
        );
    }
    check(
        &case,
        "a.md",
        &[
            (24, "it's \"here\"...", "a.md:24 exactly"),
            (23, "```plain text```", "a.md:23 exactly"),
        ],
    );
}

#[test]
fn what_looks_like_a_diff_marker_may_be_part_of_the_line() {
    let case = with_added(
        "ci.yml",
        &[
            (20, "    - uses: actions/checkout"),
            (60, "      uses: actions/checkout"),
        ],
    );
    check(
        &case,
        "ci.yml",
        &[
            (20, "-uses: actions/checkout", "ci.yml:20 exactly"),
            (20, "- uses: actions/checkout", "ci.yml:20 exactly"),
            (60, "+ uses: actions/checkout", "ci.yml:60 exactly"),
            // The quote matches one line, and the number another.
            (60, "- uses: actions/checkout", "ci.yml:60 loosely"),
            (58, "- uses: actions/checkout", "ci.yml:20 loosely"),
        ],
    );
}

#[test]
fn characters_that_look_alike_are_not_equal() {
    let case = with_added(
        "a.py",
        &[
            (20, "if user == \u{430}dmin:"),
            (60, "if user == admin:"),
            (90, "if user == guest:"),
        ],
    );
    check(
        &case,
        "a.py",
        &[
            (60, "if user == \u{430}dmin:", "a.py:20 exactly"),
            (20, "if user == admin:", "a.py:60 exactly"),
            (90, "if user == gu\u{435}st:", "a.py:90 loosely"),
        ],
    );
}

#[test]
fn a_bracket_is_believed_at_its_number_only() {
    let case = with_added("a.c", &[(20, "}"), (60, "}"), (61, "});")]);
    check(
        &case,
        "a.c",
        &[
            (20, "}", "a.c:20 as numbered"),
            (21, "}", "a.c:20 loosely"),
            (59, "}", "a.c:60 loosely"),
            (0, "}", "a.c loosely"),
        ],
    );
    // The model received one such line, but the file contains several.
    let case = with_lines("a.c", &[(20, "}")], &[(70, "}")]);
    check(
        &case,
        "a.c",
        &[
            (21, "}", "a.c:20 loosely"),
            (20, "}", "a.c:20 as numbered"),
            (0, "}", "a.c:20 loosely"),
        ],
    );
}

#[test]
fn an_equal_line_of_another_file_counts_only_with_its_number() {
    let [a, b] = [20, 40].map(|at| {
        let lines = (1..=80).map(|i| {
            if i == at {
                "open(it);\n".into()
            } else {
                format!("{at} {i}\n")
            }
        });
        lines.collect::<String>()
    });
    let case = ClaimCase::new(&[("a.c", "", &a), ("b.c", "", &b), ("c.c", "", "none\n")]);
    check(
        &case,
        "a.c",
        &[
            (20, "open(it);", "a.c:20 exactly"),
            (25, "open(it);", "a.c:20 as numbered"),
        ],
    );
    check(
        &case,
        "a.c",
        &[
            (0, "open(it);", "a.c:20 as numbered"),
            (40, "open(it);", "a.c:20 loosely"),
        ],
    );
    check(
        &case,
        "c.c",
        &[
            (40, "open(it);", "b.c:40 as numbered"),
            (42, "open(it);", "b.c:40 loosely"),
        ],
    );
}

#[test]
fn a_line_that_was_read_and_not_shown_is_what_a_claim_with_its_number_is_about() {
    let case = with_lines(
        "a.c",
        &[(20, "return open(it);")],
        &[(90, "return open(it);")],
    );
    check(&case, "a.c", &[(90, "return open(it);", "a.c:20 exactly")]);
    let case = case.read("a.c", 80, 100);
    check(
        &case,
        "a.c",
        &[
            (90, "return open(it);", "remark a.c:90"),
            (90, "return open(", "remark a.c:90"),
        ],
    );
    check(&case, "a.c", &[(21, "return open(it);", "a.c:20 exactly")]);
}

#[test]
fn no_quote_makes_a_claim_about_a_changed_line_disappear() {
    let case = with_lines(
        "a.c",
        &[(20, "first(a, b);"), (60, "second(a, b);")],
        &[(90, "import click.another")],
    );
    for quote in [
        "import click.another",
        "import click.an",
        "}",
        "first",
        "nothing like it",
        "row 1",
        "row",
        "…",
        "\u{430}",
    ] {
        for line in [20, 60] {
            let anchored = case.anchor(claim("a.c", line, quote));
            assert!(
                matches!(anchored, Anchored::Candidate(_)),
                "{line} {quote}: {anchored:?}"
            );
        }
    }
    check(
        &case,
        "a.c",
        &[
            (60, "import click.another", "a.c:60 loosely"),
            (60, "secnd(a, b);", "a.c:60 loosely"),
        ],
    );
}

#[test]
fn a_very_long_line_or_quote_is_worked_through() {
    let long = "a(b, c); ".repeat(5_000);
    let words: String = (0..5_000).map(|i| format!("word_{i}, ")).collect();
    let case = ClaimCase::new(&[("a.c", "", &format!("{long}\n{words}\nend(of, it);\n"))]);
    let dots = [
        "... ".repeat(5_000),
        "a…".repeat(5_000),
        "+ 1 ".repeat(5_000),
        words.replace("word", "other"),
    ];
    for quote in
        dots.iter()
            .map(String::as_str)
            .chain([&long[..], &long[..20_000], &words[1..], "b, c); a"])
    {
        for line in 1..=3 {
            let anchored = case.anchor(claim("a.c", line, quote));
            assert!(
                matches!(anchored, Anchored::Candidate(_)),
                "{line} {}: {anchored:?}",
                &quote[..8]
            );
        }
    }
}
