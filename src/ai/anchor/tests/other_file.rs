//! Tests of claims that name a file other than the one with the quote, and of quotes that are in
//! two files.

use super::equal::{check, edited};
use super::*;

/// Lines of a file: number and text.
type FileLines<'a> = &'a [(usize, &'a str)];

/// Returns a change of files of 120 lines: path, added lines, and unchanged lines that replace
/// others.
fn with_files(files: &[(&str, FileLines<'_>, FileLines<'_>)]) -> ClaimCase {
    let texts: Vec<(String, String)> = files
        .iter()
        .map(|(_, added, unchanged)| edited(added, unchanged))
        .collect();
    let all = files
        .iter()
        .zip(&texts)
        .map(|((path, ..), (old, new))| (*path, old.as_str(), new.as_str()));
    ClaimCase::new(&all.collect::<Vec<_>>())
}

#[test]
fn a_quote_that_the_named_file_has_where_it_was_not_shown_is_not_believed_in_another() {
    let twice = opened_in_another(&[(90, "open( it );"), (100, "open( it );")]);
    check(
        &twice,
        "a.c",
        &[
            (40, "open(it);", "b.c:40 loosely"),
            (0, "open(it);", "b.c:40 loosely"),
            (90, "open(it);", "remark a.c:90"),
            (0, "open(it);\nrow 41", "b.c:40 exactly"),
        ],
    );
    let as_part = opened_in_another(&[(90, "if (x) open(it);"), (100, "if (y) open(it);")]);
    check(
        &as_part,
        "a.c",
        &[
            // An equal line with the claimed number takes precedence over a line that contains the
            // quote.
            (40, "open(it);", "b.c:40 exactly"),
            (42, "open(it);", "b.c:40 loosely"),
            (0, "open(it);", "b.c:40 loosely"),
            (100, "open(it);", "remark a.c:100"),
        ],
    );
    let only = opened_in_another(&[]);
    check(
        &only,
        "a.c",
        &[
            (0, "open(it);", "b.c:40 exactly"),
            (42, "open(it);", "b.c:40 exactly"),
        ],
    );
}

/// Returns a change that adds `open(it);` only to `b.c`. `a.c` has other unchanged lines.
fn opened_in_another(unchanged: FileLines<'_>) -> ClaimCase {
    with_files(&[
        ("a.c", &[(20, "close(it);")], unchanged),
        ("b.c", &[(40, "open(it);")], &[]),
    ])
}

#[test]
fn a_line_that_moved_from_the_named_file_is_told_from_the_removed_one_by_the_number_only() {
    let (old, _) = edited(
        &[],
        &[(50, "check(user, role);"), (51, "check(user, group);")],
    );
    let new = old.replace("check(user, role);\ncheck(user, group);\n", "");
    let (other_old, other_new) = edited(
        &[(10, "check(user, role);"), (11, "check(user, group);")],
        &[],
    );
    let case = ClaimCase::new(&[("a.c", &old, &new), ("b.c", &other_old, &other_new)]);
    check(
        &case,
        "a.c",
        &[
            // The number of the next line on the new side, the number on the old side, and the
            // number in the other file.
            (50, "check(user, role);", "a.c:50 exactly"),
            (51, "check(user, group);", "a.c:50 exactly"),
            (10, "check(user, role);", "b.c:10 as numbered"),
            (
                10,
                "check(user, role);\ncheck(user, group);",
                "b.c:10-11 as numbered",
            ),
            (55, "check(user, role);", "a.c:50 loosely"),
            (0, "check(user, role);", "a.c:50 loosely"),
            (
                0,
                "check(user, role);\ncheck(user, group);",
                "a.c:50 loosely",
            ),
            (12, "check(user, role);", "b.c:10 loosely"),
        ],
    );
    // The claim names the other file, which contains the line.
    check(
        &case,
        "b.c",
        &[(10, "check(user, role);", "b.c:10 exactly")],
    );
    // Brackets are in every file.
    let case = ClaimCase::new(&[
        ("a.c", "row 1\n}\nrow 2\n", "row 1\nrow 2\n"),
        ("b.c", "", &format!("{old}}}\n")),
    ]);
    check(
        &case,
        "a.c",
        &[(121, "}", "a.c:2 loosely"), (2, "}", "a.c:2 as numbered")],
    );
}

#[test]
fn a_quote_that_fits_the_named_file_only_without_its_marker_is_not_believed() {
    let case = with_files(&[
        ("a.yml", &[(42, "  uses: actions/checkout@v4")], &[]),
        ("b.yml", &[(40, "- uses: actions/checkout@v4")], &[]),
        ("c.yml", &[(70, "- uses: actions/checkout@v4")], &[]),
    ]);
    for quote in [
        "- uses: actions/checkout@v4",
        "- uses: actions/check",
        "- uses: actions/check…",
    ] {
        check(
            &case,
            "a.yml",
            &[
                (40, quote, "b.yml:40 loosely"),
                (42, quote, "a.yml:42 loosely"),
                (0, quote, "a.yml:42 loosely"),
                (110, quote, "a.yml:42 loosely"),
            ],
        );
    }
    check(
        &case,
        "b.yml",
        &[(40, "- uses: actions/checkout@v4", "b.yml:40 exactly")],
    );
    // No other file contains it with the marker.
    check(
        &case,
        "a.yml",
        &[
            (42, "+ uses: actions/checkout@v4", "a.yml:42 exactly"),
            (42, "+ uses: actions/ch", "a.yml:42 as numbered"),
        ],
    );
}

#[test]
fn a_part_that_only_another_file_has_lands_there() {
    let case = with_files(&[
        ("a.py", &[(20, "row(1, 2)")], &[]),
        (
            "b.py",
            &[
                (40, "name = \"simple\""),
                (60, "try:"),
                (80, "seen(a); seen(b)"),
                (84, ");"),
            ],
            &[],
        ),
        ("c.py", &[(90, "seen(a)")], &[]),
    ]);
    check(
        &case,
        "a.py",
        &[
            (40, "name = \"si", "b.py:40 as numbered"),
            (64, "name = \"si", "b.py:40 loosely"),
            (20, "name = \"si…", "b.py:40 loosely"),
            (0, "name = \"si", "b.py:40 loosely"),
            // The part is too short to be certain, but only one line contains it.
            (60, "try:", "b.py:60 loosely"),
            (0, "try:", "b.py:60 loosely"),
            // Brackets are in every file.
            (0, ");", "dropped"),
            // The named line is part of the change.
            (20, "try:", "a.py:20 loosely"),
            // It equals one line and is a part of another.
            (90, "seen(a)", "c.py:90 as numbered"),
            (95, "seen(a)", "c.py:90 loosely"),
        ],
    );
    // The named file contains it in lines that the model did not receive.
    let hidden = with_files(&[
        (
            "a.py",
            &[(20, "row(1, 2)")],
            &[(90, "name = \"single\""), (100, "name = \"side\"")],
        ),
        ("b.py", &[(40, "name = \"simple\"")], &[]),
    ]);
    check(
        &hidden,
        "a.py",
        &[
            (40, "name = \"si", "b.py:40 loosely"),
            (0, "name = \"si", "b.py:40 loosely"),
        ],
    );
}

#[test]
fn a_part_of_one_line_of_the_named_file_is_not_believed_with_the_number_of_another_file() {
    let case = with_files(&[
        ("a.c", &[(20, "x = load(path, 1);")], &[]),
        ("b.c", &[(40, "y = load(path, 2);")], &[]),
    ]);
    check(
        &case,
        "a.c",
        &[
            (40, "load(path,", "a.c:20 loosely"),
            (30, "load(path,", "a.c:20 as numbered"),
        ],
    );
}

#[test]
fn a_part_of_the_numbered_line_may_equal_a_removed_one() {
    let case = ClaimCase::new(&[("a.md", "v1\n====\n", "v1.1\n======\nv1\n")]);
    check(
        &case,
        "a.md",
        &[
            (2, "====", "a.md:2 loosely"),
            (3, "====", "a.md:3 as numbered"),
        ],
    );
    // Both interpretations lead to the same line.
    let case = ClaimCase::new(&[(
        "a.c",
        "row 1\nopen(it)\nrow 2\n",
        "row 1\nopen(it).close()\nrow 2\n",
    )]);
    check(&case, "a.c", &[(2, "open(it)", "a.c:2 exactly")]);
}
