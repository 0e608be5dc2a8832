//! Tests of aligning lines of two changes.

use super::*;
use crate::diff::{
    Attribute, Body, ChangeKind, Entry, FileChange, FileMode, ObjectId, RepoPath, unified,
};

/// Returns numbered lines `from..to`.
fn lines(from: u32, to: u32) -> String {
    (from..to).map(|n| format!("line {n}\n")).collect()
}

fn side(path: &str, id: Option<u8>) -> Option<crate::diff::Side> {
    let id = id.and_then(|n| ObjectId::from_raw(&[n; 20]));
    Some(crate::diff::Side {
        path: RepoPath::from(path),
        mode: FileMode::Regular,
        id,
    })
}

/// Returns a stored change from `(path, text)` to `(path, text)`, both optional. Without IDs, as
/// for a worktree.
fn change(old: Option<(&str, &str)>, new: Option<(&str, &str)>) -> String {
    change_of(
        old.map(|(p, t)| (p, t, None)),
        new.map(|(p, t)| (p, t, None)),
    )
}

/// Returns a stored change of `a.rs`.
fn change_of_a(old: &str, new: &str) -> String {
    change(Some(("a.rs", old)), Some(("a.rs", new)))
}

fn change_of(
    old: Option<(&str, &str, Option<u8>)>,
    new: Option<(&str, &str, Option<u8>)>,
) -> String {
    let kind = match (old, new) {
        (None, _) => ChangeKind::Added,
        (_, None) => ChangeKind::Deleted,
        (Some(o), Some(n)) if o.0 != n.0 => ChangeKind::Renamed { similarity: 90 },
        _ => ChangeKind::Modified,
    };
    let entry = Entry {
        kind,
        old: old.and_then(|(p, _, id)| side(p, id)),
        new: new.and_then(|(p, _, id)| side(p, id)),
    };
    let [before, after] = [old, new].map(|s| s.map(|(_, text, _)| text.as_bytes().to_vec()));
    let change = FileChange {
        entry,
        body: Body::between(before, after, Attribute::Unset),
    };
    let mut out = Vec::new();
    unified::write(&change, &mut out);
    String::from_utf8(out).unwrap()
}

fn align(before: &str, now: &str) -> Alignment {
    Alignment::between(
        RoundChange {
            text: before.as_bytes(),
            left_out: &[],
        },
        RoundChange {
            text: now.as_bytes(),
            left_out: &[],
        },
        true,
    )
}

/// Aligns two rounds with the same base.
fn rounds(base: &str, before: &str, now: &str) -> Alignment {
    let [before, now] = [before, now].map(|new| match new == base {
        true => String::new(),
        false => change_of_a(base, new),
    });
    align(&before, &now)
}

fn at(first: u32, end: u32, kept: Preserved) -> LinePosition {
    LinePosition::At(MovedLines {
        file: "a.rs".to_owned(),
        commit: None,
        lines: first..end,
        kept,
    })
}

/// Checks that every line of `before` is found at its position in `now`. All lines must differ.
#[track_caller]
fn all_lines_are_found(base: &str, before: &str, now: &str) {
    let alignment = rounds(base, before, now);
    for (i, line) in before.lines().enumerate() {
        let place = alignment.place(None, "a.rs", i as u32 + 1, i as u32 + 1);
        let expected = now.lines().position(|l| l == line).map(|i| i as u32 + 1);
        match (&place, expected) {
            (LinePosition::At(MovedLines { lines, kept, .. }), Some(n)) => {
                assert!(
                    *kept != Preserved::Not && *lines == (n..n + 1),
                    "{line}: {place:?}, not {n}"
                );
            }
            (LinePosition::At(MovedLines { kept, .. }), None) => {
                assert_eq!(*kept, Preserved::Not, "{line}: {place:?}");
            }
            // Nothing remains of the change.
            (LinePosition::Gone, _) => assert_eq!(now, base),
            _ => panic!("{line}: {place:?}"),
        }
    }
    for (i, line) in now.lines().enumerate() {
        let n = i as u32 + 1;
        let is_old = before.lines().any(|l| l == line);
        let is_new = alignment.is_new(None, "a.rs", n, n);
        if !is_old {
            assert_eq!(
                is_new,
                if now == base { None } else { Some(true) },
                "{line} is new"
            );
        }
    }
}

/// Inserts a text after a numbered line.
fn insert(text: &str, after: u32, what: &str) -> String {
    text.replace(&format!("line {after}\n"), &format!("line {after}\n{what}"))
}

/// Removes a numbered line.
fn drop(text: &str, n: u32) -> String {
    text.replace(&format!("line {n}\n"), "")
}

#[test]
fn every_line_is_found_again() {
    let base = lines(1, 60);
    let one = insert(&base, 10, "first\nsecond\nthird\n");
    let cases = [
        // Unmodified; fixed in place; lines added above; lines added below; the base without the
        // fix.
        (one.clone(), one.clone()),
        (one.clone(), one.replace("second", "other")),
        (one.clone(), insert(&one, 2, "x\ny\n")),
        (one.clone(), insert(&one, 40, "x\ny\n")),
        (one.clone(), drop(&one, 5)),
        (one.clone(), drop(&drop(&one, 30), 31)),
        (one.clone(), one.replace("first\nsecond\n", "")),
        (one.clone(), base.clone()),
        (base.clone(), one.clone()),
        // Far apart, touching, overlapping, at both ends.
        (insert(&one, 50, "z\n"), insert(&one, 20, "w\n")),
        (
            insert(&base, 20, "a\nb\n"),
            insert(&insert(&base, 21, "c\n"), 17, "d\n"),
        ),
        (drop(&base, 20), drop(&base, 21)),
        (drop(&drop(&base, 1), 59), insert(&base, 59, "end\n")),
        (format!("top\n{base}"), format!("top\nmore\n{base}")),
        (format!("top\n{base}"), drop(&base, 1)),
        ("all new\n".to_owned(), format!("all new\n{base}")),
    ];
    for (before, now) in &cases {
        all_lines_are_found(&base, before, now);
        all_lines_are_found(&base, now, before);
    }
}

#[test]
fn a_place_tells_how_much_of_it_is_as_it_was() {
    let base = lines(1, 40);
    let before = base.replace("line 20\n", "line 20\nbad one\nbad two\n");
    for (now, first, last, expected) in [
        // `bad one` and `bad two` are lines 21 and 22.
        (before.clone(), 21, 22, at(21, 23, Preserved::Whole)),
        (
            before.replace("line 2\n", ""),
            21,
            21,
            at(20, 21, Preserved::Whole),
        ),
        (
            before.replace("line 30\n", "x\n"),
            21,
            22,
            at(21, 23, Preserved::Whole),
        ),
        // A change next to them.
        (
            before.replace("line 19\n", "line 19\nguard\n"),
            21,
            21,
            at(22, 23, Preserved::Lines),
        ),
        (
            before.replace("line 22\n", ""),
            22,
            22,
            at(22, 23, Preserved::Lines),
        ),
        // A change of some or all of them.
        (
            base.replace("line 20\n", "line 20\nbad one\nguard\nbad two\n"),
            21,
            22,
            at(21, 24, Preserved::Not),
        ),
        (
            base.replace("line 20\n", "line 20\ngood\n"),
            21,
            22,
            at(21, 22, Preserved::Not),
        ),
        (
            base.replace("line 20\n", "line 20\nbad one\n"),
            21,
            22,
            at(21, 22, Preserved::Not),
        ),
        (
            base.replace("line 20\n", "line 20\nbad one\n"),
            22,
            22,
            at(22, 22, Preserved::Not),
        ),
        (
            base.replace("line 20\n", "line 20\ngood\nbetter\nbest\n"),
            21,
            22,
            at(21, 24, Preserved::Not),
        ),
        // Lines outside of all hunks.
        (
            before.replace("line 2\n", "line 2\nx\nx\n"),
            35,
            36,
            at(37, 39, Preserved::Whole),
        ),
    ] {
        let place = rounds(&base, &before, &now).place(None, "a.rs", first, last);
        assert_eq!(place, expected, "{first}-{last} in\n{now}");
    }
    let place = rounds(&base, &before, &base).place(None, "a.rs", 21, 22);
    assert_eq!(place, LinePosition::Gone, "the change was taken back");
}

#[test]
fn what_is_new_is_what_was_not_there() {
    let base = lines(1, 40);
    let before = base.replace("line 20\n", "line 20\nbad\n");
    let now = before
        .replace("bad\n", "good\n")
        .replace("line 30\n", "")
        .replace("line 35\n", "line 35\nmore\n");
    let alignment = rounds(&base, &before, &now);
    for (first, last, expected) in [
        (1, 1, false),
        (20, 20, false),
        (21, 21, true),
        (19, 23, true),
        // The line directly above it is gone.
        (22, 22, true),
        (23, 23, false),
        (30, 30, false),
        (31, 31, true),
        (36, 36, true),
        (38, 40, false),
    ] {
        assert_eq!(
            alignment.is_new(None, "a.rs", first, last),
            Some(expected),
            "{first}-{last}"
        );
    }
    assert_eq!(alignment.differs(), Some(true));
    assert_eq!(rounds(&base, &before, &before).differs(), Some(false));
    assert_eq!(alignment.is_new(None, "other.rs", 1, 1), None);
}

/// Returns the change of a file of thirty lines to another name and text.
fn renamed(old: &str, new: &str, text: &str) -> String {
    change(Some((old, &lines(1, 30))), Some((new, text)))
}

fn new(path: &str, text: &str) -> String {
    change(None, Some((path, text)))
}

/// Returns the position of one unmodified line.
fn whole(file: &str, n: u32) -> LinePosition {
    LinePosition::At(MovedLines {
        file: file.to_owned(),
        commit: None,
        lines: n..n + 1,
        kept: Preserved::Whole,
    })
}

#[test]
fn files_are_found_under_other_names() {
    let base = lines(1, 30);
    let before = base.replace("line 9\n", "line 9\nbad\n");
    // Changed, then renamed; renamed, then renamed again.
    let a = align(
        &renamed("a.rs", "a.rs", &before),
        &renamed("a.rs", "b.rs", &before),
    );
    assert_eq!(a.place(None, "a.rs", 10, 10), whole("b.rs", 10));
    assert_eq!(a.path(None, "a.rs"), Some("b.rs"));
    assert_eq!(a.file_differs(None, "b.rs"), Some(true));
    let a = align(
        &renamed("a.rs", "b.rs", &before),
        &renamed("a.rs", "c.rs", &format!("x\n{before}")),
    );
    assert_eq!(a.place(None, "b.rs", 10, 10), whole("c.rs", 11));
    // New files that were renamed, and one with only a few common lines.
    let text = lines(1, 12);
    let a = align(
        &new("a.rs", &text),
        &(new("x.rs", &lines(100, 112)) + &new("b.rs", &text.replace("line 3\n", ""))),
    );
    assert_eq!(a.place(None, "a.rs", 9, 9), whole("b.rs", 8));
    assert_eq!(a.is_new(None, "x.rs", 1, 1), Some(true));
    let a = align(&new("a.rs", &text), &new("b.rs", &lines(10, 100)));
    assert_eq!(a.place(None, "a.rs", 9, 9), LinePosition::Gone);
    // Deleted.
    let a = align(
        &renamed("a.rs", "a.rs", &before),
        &change(Some(("a.rs", &base)), None),
    );
    let place = a.place(None, "a.rs", 10, 10);
    assert!(
        matches!(place, LinePosition::At(MovedLines { ref lines, kept: Preserved::Not, .. }) if lines.is_empty())
    );
}

#[test]
fn of_different_bases_only_what_both_show_is_known() {
    let base = lines(1, 60);
    let other = base.replace("line 2\n", "line 2\nmerged\n");
    let [before, now] = [&base, &other].map(|text| text.replace("line 30\n", "line 30\nbad\n"));
    let now = now.replace("line 31\n", "line 31\nmore\n");
    let before = change_of(
        Some(("a.rs", &base, Some(1))),
        Some(("a.rs", &before, Some(2))),
    );
    let now = change_of(
        Some(("a.rs", &other, Some(3))),
        Some(("a.rs", &now, Some(4))),
    );
    let a = align(&before, &now);
    assert_eq!(a.place(None, "a.rs", 31, 31), at(32, 33, Preserved::Lines));
    assert_eq!(a.place(None, "a.rs", 50, 50), LinePosition::Unknown);
    assert_eq!(a.is_new(None, "a.rs", 32, 32), Some(false));
    assert_eq!(a.is_new(None, "a.rs", 34, 34), Some(true));
    // A line is known to be gone if its neighbors are shown next to each other.
    let mended = other.replace("line 30\n", "line 30\ngood\n");
    let now = change_of(
        Some(("a.rs", &other, Some(3))),
        Some(("a.rs", &mended, Some(5))),
    );
    assert_eq!(
        align(&before, &now).place(None, "a.rs", 31, 31),
        at(32, 33, Preserved::Not)
    );
    // A file that only one change shows is unknown.
    let a = Alignment::between(
        RoundChange {
            text: before.as_bytes(),
            left_out: &[],
        },
        RoundChange {
            text: b"",
            left_out: &[],
        },
        false,
    );
    assert_eq!(a.place(None, "a.rs", 31, 31), LinePosition::Unknown);
}

#[test]
fn a_change_on_top_of_the_earlier_one_is_its_own_map() {
    let (base, before) = (
        lines(1, 60),
        lines(1, 60).replace("line 30\n", "line 30\nbad\n"),
    );
    let first = change_of(
        Some(("a.rs", &base, Some(1))),
        Some(("a.rs", &before, Some(2))),
    );
    let now = before.replace("line 5\n", "").replace("bad\n", "good\n");
    let second = change_of(
        Some(("a.rs", &before, Some(2))),
        Some(("a.rs", &now, Some(3))),
    );
    let a = align(&first, &second);
    assert_eq!(a.place(None, "a.rs", 20, 20), at(19, 20, Preserved::Whole));
    assert_eq!(a.place(None, "a.rs", 31, 31), at(30, 31, Preserved::Not));
}

#[test]
fn what_was_left_out_or_cannot_be_read_is_not_known() {
    let base = lines(1, 9);
    let text = change(
        Some(("a.rs", &base)),
        Some(("a.rs", &base.replace("line 3", "x"))),
    );
    let left_out = ["a.rs".to_owned()];
    let known = RoundChange {
        text: text.as_bytes(),
        left_out: &[],
    };
    let a = Alignment::between(
        known,
        RoundChange {
            text: text.as_bytes(),
            left_out: &left_out,
        },
        true,
    );
    assert_eq!(
        (a.place(None, "a.rs", 3, 3), a.differs()),
        (LinePosition::Unknown, None)
    );
    for damaged in [
        &b"@@ -1 +1 @@\n"[..],
        b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,9 +1 @@\n x\n",
        b"no change at all",
    ] {
        let a = Alignment::between(
            known,
            RoundChange {
                text: damaged,
                left_out: &[],
            },
            true,
        );
        assert_eq!(
            (
                a.place(None, "a.rs", 3, 3),
                a.differs(),
                a.is_new(None, "a.rs", 3, 3)
            ),
            (LinePosition::Unknown, None, None)
        );
    }
}

#[test]
fn each_commit_of_a_range_has_its_own_lines() {
    let (one, two) = ("1".repeat(40), "2".repeat(40));
    let (base, first) = (lines(1, 20), lines(1, 20).replace("line 4\n", "bad\n"));
    let second = first.replace("line 15\n", "");
    let text = format!(
        "commit {one}\n{}commit {two}\n{}",
        change_of_a(&base, &first),
        change_of_a(&first, &second)
    );
    let a = align(&text, &text);
    fn at(a: &Alignment, commit: &str, line: u32) -> Option<(String, u32)> {
        match a.place(Some(commit), "a.rs", line, line) {
            LinePosition::At(spot) => Some((spot.commit.unwrap(), spot.lines.start)),
            _ => None,
        }
    }
    assert_eq!(at(&a, &one, 4), Some((one.clone(), 4)));
    assert_eq!(at(&a, &two, 12), Some((two.clone(), 12)));
    assert_eq!(at(&a, &"3".repeat(40), 4), None);
    assert_eq!(a.differs(), Some(false));
}

#[test]
fn every_line_of_a_large_change_is_put_where_it_is_now() {
    let base = lines(1, 40_000);
    // No line above 17 differs. Every line that ends in 5 is in both changes, in 7 in one of them.
    let before: String = base.replace("5\n", "5!\n");
    let now = before.replace("7\n", "7!\n").replace("line 1\n", "");
    let a = rounds(&base, &before, &now);
    for (first, last, expected) in [
        (20_001, 20_001, at(20_000, 20_001, Preserved::Whole)),
        (20_005, 20_005, at(20_004, 20_005, Preserved::Lines)),
        (20_007, 20_007, at(20_006, 20_007, Preserved::Not)),
        (20_006, 20_008, at(20_005, 20_008, Preserved::Not)),
        (39_999, 39_999, at(39_998, 39_999, Preserved::Lines)),
    ] {
        assert_eq!(
            a.place(None, "a.rs", first, last),
            expected,
            "{first}-{last}"
        );
    }
    let new: Vec<u32> = (2..39_999)
        .filter(|n| a.is_new(None, "a.rs", *n, *n) == Some(true))
        .collect();
    // Line `n` was line `n + 1`. It is new if that number ends in 7, and so is the following line,
    // since the line above it is gone.
    let expected: Vec<u32> = (2..39_999)
        .filter(|n| matches!((n + 1) % 10, 7 | 8))
        .collect();
    assert_eq!(new, expected);
}

#[test]
fn as_many_hunks_as_a_file_can_have_are_looked_up_one_by_one() {
    // Twenty thousand hunks on each side, and two million lookups: a linear search in the hunks
    // would take minutes.
    let base: String = (1..160_000).map(|n| format!("{n}\n")).collect();
    fn change(last: u32, what: &str) -> String {
        (1..160_000)
            .map(|n| {
                if n % 8 == last {
                    format!("{n}{what}\n")
                } else {
                    format!("{n}\n")
                }
            })
            .collect()
    }
    let a = rounds(&base, &change(3, "!"), &change(7, "?"));
    for n in (1..160_000).step_by(7) {
        let kept = match n % 8 {
            3 | 7 => Preserved::Not,
            _ => Preserved::Lines,
        };
        assert_eq!(a.place(None, "a.rs", n, n), at(n, n + 1, kept), "{n}");
    }
}
