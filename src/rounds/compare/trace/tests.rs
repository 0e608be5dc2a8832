//! Tests of searching for the text of findings that are not reported again.

use super::super::look::{UnshownFile, UnshownFiles, UnshownReason};
use super::super::{Comparison, Current, Earlier};
use crate::rounds::cover::Cover;
use crate::rounds::region::RoundChange;
use crate::rounds::sample::{change, claim, report, rule, stored};
use crate::wire::stored::State;
use crate::wire::{Finding, SourceKind};

/// A file outside of the change.
#[derive(Debug)]
struct FileBeside(UnshownFile);

impl UnshownFiles for FileBeside {
    fn selects(&self, _: &str) -> bool {
        true
    }

    fn left_out(&self) -> &[u8] {
        b""
    }

    fn file(&self, _: &str, _: bool) -> UnshownFile {
        self.0.clone()
    }

    fn is_secret(&self, f: &Finding) -> bool {
        f.rule_id == "secret"
    }
}

/// Returns the numbered lines that all files have in the base.
fn base() -> String {
    (1..=40).map(|n| format!("base_{n}();\n")).collect()
}

/// Returns the base with a text in place of one line.
fn with(line: u32, text: &str) -> String {
    base().replace(&format!("base_{line}();\n"), text)
}

/// Files of a change: name, and text in place of the base.
type FileTexts<'f> = &'f [(&'f str, &'f str)];

/// Returns the stored change of files from the base.
fn changes(files: FileTexts<'_>) -> Vec<u8> {
    files
        .iter()
        .flat_map(|(f, t)| change(f, &base(), t))
        .collect()
}

/// Returns a report of the changes since one base commit.
fn from_base(mut report: crate::wire::Report) -> crate::wire::Report {
    report.source.kind = SourceKind::Changes;
    report.source.base = Some("1".repeat(40));
    report
}

fn told(
    found: Finding,
    before: FileTexts<'_>,
    now: FileTexts<'_>,
    aside: UnshownFile,
) -> (State, Option<(String, u32)>) {
    let (before, after) = (changes(before), changes(now));
    let review = stored(from_base(report(1, vec![found])), None);
    let earlier = [Earlier {
        review: &review,
        response: None,
        change: &before,
        cover: Cover::Whole,
    }];
    let silent = from_base(report(2, Vec::new()));
    let beside = FileBeside(aside);
    let now = Current {
        change: RoundChange {
            text: &after,
            left_out: &[],
        },
        source: &silent.source,
        look: &beside,
    };
    let comparison = Comparison::new(&earlier, &now);
    let carried = comparison.carried(&silent, None);
    let place = carried
        .first()
        .map(|f| (f.file.clone().unwrap(), f.line.unwrap()));
    let since = comparison.since(&from_base(report(2, carried)));
    assert_eq!(since.entries.len(), 1, "{since:?}");
    (since.entries[0].state, place)
}

/// Returns the state of a claim about line `line` of a text that begins at line 20 of `a.rs`.
fn claimed(text: &str, line: u32, now: FileTexts<'_>) -> (State, Option<(String, u32)>) {
    told(
        claim(19 + line, "Off by one"),
        &[("a.rs", &with(20, text))],
        now,
        UnshownFile::Nothing,
    )
}

fn there(state: State, file: &str, line: u32) -> (State, Option<(String, u32)>) {
    (state, Some((file.to_owned(), line)))
}

const FIXED: (State, Option<(String, u32)>) = (State::Fixed, None);
const CALL: &str = "begin();\nlet rest = split(all, count + 1);\nend();\n";

#[test]
fn white_space_is_no_answer() {
    for (what, text, line) in [
        (
            "indented",
            "begin();\n    let rest = split(all, count + 1);\nend();\n".to_owned(),
            21,
        ),
        (
            "indented together",
            CALL.replace("b", "  b")
                .replace("let", "\tlet")
                .replace("end", "\tend"),
            21,
        ),
        (
            "spaced",
            "begin();\nlet  rest =  split(all,  count + 1);\nend();\n".to_owned(),
            21,
        ),
        (
            "set apart",
            CALL.replace("let", "\n\nlet").replace("end", "\nend"),
            23,
        ),
        ("blank lines above", CALL.replace("begin", "\nbegin"), 22),
    ] {
        assert_eq!(
            claimed(CALL, 2, &[("a.rs", &with(20, &text))]),
            there(State::StillThere, "a.rs", line),
            "{what}"
        );
    }
}

#[test]
fn other_code_beside_the_lines_is_an_answer() {
    for (what, text) in [
        ("a guard above", CALL.replace("let", "check(all);\nlet")),
        (
            "a guard, and indented under it",
            CALL.replace("let", "if ok {\n    let")
                .replace("end", "}\nend"),
        ),
        (
            "a guard over all of it",
            format!(
                "if ok {{\n{}}}\n",
                CALL.replace("b", "  b").replace("let", "  let")
            ),
        ),
        ("something below", CALL.replace("end", "check(rest);\nend")),
        ("a line beside it changed", CALL.replace("begin", "start")),
        ("a line beside it is gone", CALL.replace("end();\n", "")),
        (
            "deleted",
            CALL.replace("let rest = split(all, count + 1);\n", ""),
        ),
        ("written anew", CALL.replace("+ 1", "+ 2")),
        (
            "put after the line below it",
            "begin();\nend();\nlet rest = split(all, count + 1);\n".to_owned(),
        ),
    ] {
        assert_eq!(
            claimed(CALL, 2, &[("a.rs", &with(20, &text))]),
            FIXED,
            "{what}"
        );
    }
    // Around a block that is longer than the compared surroundings.
    let long: String = (1..=9)
        .map(|n| format!("step_{n}(all, count);\n"))
        .collect();
    let under: String = long.lines().map(|l| format!("    {l}\n")).collect();
    let same = with(20, &under);
    assert_eq!(
        claimed(&long, 5, &[("a.rs", &same)]),
        there(State::StillThere, "a.rs", 24)
    );
    let guarded = with(20, &format!("if ok {{\n{under}}}\n"));
    assert_eq!(claimed(&long, 5, &[("a.rs", &guarded)]), FIXED);
    // In a language with significant indentation.
    fn of(file: &str) -> (State, Option<(String, u32)>) {
        let (inside, after) = (
            "for x in all:\n    use(x)\n    return x\n",
            "for x in all:\n    use(x)\nreturn x\n",
        );
        let found = Finding {
            file: Some(file.to_owned()),
            ..claim(22, "Off by one")
        };
        told(
            found,
            &[(file, &with(20, inside))],
            &[(file, &with(20, after))],
            UnshownFile::Nothing,
        )
    }
    assert_eq!((of("a.py"), of("a.rs").0), (FIXED, State::StillThere));
}

#[test]
fn a_text_that_was_moved_is_still_there() {
    let moved = with(35, CALL);
    assert_eq!(
        claimed(CALL, 2, &[("a.rs", &moved)]),
        there(State::Moved, "a.rs", 36)
    );
    let indented = with(35, &CALL.replace("let", "    let"));
    assert_eq!(
        claimed(CALL, 2, &[("a.rs", &indented)]),
        there(State::Moved, "a.rs", 36)
    );
    let (rest, other) = (with(20, "begin_now();\n"), with(5, CALL));
    assert_eq!(
        claimed(CALL, 2, &[("a.rs", &rest), ("b.rs", &other)]),
        there(State::Moved, "b.rs", 6)
    );
    // Alone, if the text is distinctive.
    let alone = with(5, "let rest = split(all, count + 1);\n");
    assert_eq!(
        claimed(CALL, 2, &[("a.rs", &rest), ("b.rs", &alone)]),
        there(State::Moved, "b.rs", 5)
    );
    // Moved and fixed.
    for (what, text) in [
        ("other text", CALL.replace("+ 1", "+ 2")),
        ("a check above", CALL.replace("let", "check(all);\nlet")),
        (
            "under a guard",
            CALL.replace("let", "if ok {\n    let")
                .replace("end", "}\nend"),
        ),
    ] {
        let there = with(35, &text);
        assert_eq!(claimed(CALL, 2, &[("a.rs", &there)]), FIXED, "{what}");
        assert_eq!(
            claimed(CALL, 2, &[("a.rs", &rest), ("b.rs", &there)]),
            FIXED,
            "{what}"
        );
    }
}

#[test]
fn a_line_of_which_there_are_many_is_not_found_in_another_one() {
    for line in [
        "}",
        "return None;",
        "import os",
        "return nil, err",
        "assert x",
    ] {
        let text = format!("begin();\n{line}\nend();\n");
        let rest = with(20, "begin();\nend();\n");
        // It existed before, elsewhere in the file.
        let [before, after] = [with(20, &text), rest.clone()]
            .map(|text| text.replace("base_3();\n", &format!("base_3();\n{line}\n")));
        let found = claim(22, "Off by one");
        assert_eq!(
            told(
                found,
                &[("a.rs", &before)],
                &[("a.rs", &after)],
                UnshownFile::Nothing
            ),
            FIXED,
            "{line}"
        );
        // It is new elsewhere, among other lines.
        let new = rest.replace(
            "base_30();\n",
            &format!("if at_end() {{\n{line}\nother();\n"),
        );
        assert_eq!(claimed(&text, 2, &[("a.rs", &new)]), FIXED, "{line}");
        assert_eq!(
            claimed(&text, 2, &[("a.rs", &rest), ("b.rs", &with(9, &new))]),
            FIXED,
            "{line}"
        );
        // Moved with an adjacent line, it is the same line.
        let moved = with(35, &text);
        if line != "}" {
            assert_eq!(
                claimed(&text, 2, &[("a.rs", &moved)]),
                there(State::Moved, "a.rs", 36),
                "{line}"
            );
        }
    }
    // Of two equal lines, the one with the finding is deleted: adjacent, or far apart.
    let line = "let rest = split(all, count + 1);\n";
    for first in [1, 2] {
        assert_eq!(
            claimed(
                &format!("{line}{line}"),
                first,
                &[("a.rs", &with(20, line))]
            ),
            FIXED
        );
    }
    let far = format!("{line}one();\ntwo();\nthree();\nfour();\nfive();\n{line}");
    let kept = far.strip_prefix(line).unwrap();
    assert_eq!(claimed(&far, 1, &[("a.rs", &with(20, kept))]), FIXED);
    assert_eq!(
        claimed(
            &far,
            7,
            &[("a.rs", &with(20, far.strip_suffix(line).unwrap()))]
        ),
        FIXED
    );
}

#[test]
fn a_rule_is_believed_about_the_file_that_it_looked_at() {
    fn ruled(now: FileTexts<'_>) -> State {
        told(
            rule("py-eval", 21),
            &[("a.rs", &with(20, CALL))],
            now,
            UnshownFile::Nothing,
        )
        .0
    }
    let indented = with(20, &CALL.replace("let", "    let"));
    assert_eq!(ruled(&[("a.rs", &indented)]), State::Fixed);
    assert_eq!(ruled(&[("a.rs", &with(35, CALL))]), State::Fixed);
    // In a file that the rule may not read.
    assert_eq!(
        ruled(&[("a.rs", &base()), ("b.rs", &with(9, CALL))]),
        State::Unchecked
    );
    assert_eq!(
        ruled(&[("b.rs", &with(9, &CALL.replace("+ 1", "+ 2")))]),
        State::Fixed
    );
    // The interpreter line is gone.
    let [before, now] =
        ["#!/usr/bin/python3", "#"].map(|first| with(20, CALL).replace("base_1();", first));
    let found = Finding {
        file: Some("a".to_owned()),
        ..rule("py-eval", 21)
    };
    assert_eq!(
        told(
            found,
            &[("a", &before)],
            &[("a", &now)],
            UnshownFile::Nothing
        )
        .0,
        State::Unchecked
    );
    let now = before.replace("base_5();", "base_five();");
    assert_eq!(
        told(
            rule("py-eval", 21),
            &[("a", &before)],
            &[("a", &now)],
            UnshownFile::Nothing
        )
        .0,
        State::Fixed
    );
}

/// Returns the current content of a file outside of the change.
fn aside(now: &str, reason: UnshownReason) -> UnshownFile {
    UnshownFile::Text {
        now: now.as_bytes().to_vec(),
        base: base().into_bytes(),
        reason,
    }
}

#[test]
fn what_is_beside_the_change_is_looked_through() {
    fn of(found: Finding, aside: UnshownFile) -> (State, Option<(String, u32)>) {
        told(found, &[("a.rs", &with(20, CALL))], &[], aside)
    }
    fn claim() -> Finding {
        crate::rounds::sample::claim(21, "Off by one")
    }
    fn hidden(reason: UnshownReason) -> UnshownFile {
        aside(&with(20, CALL), reason)
    }
    let before = with(20, CALL);
    for (what, beside, expected) in [
        ("gone", UnshownFile::Nothing, FIXED),
        (
            "as the base has it",
            aside(&base(), UnshownReason::Hidden),
            FIXED,
        ),
        (
            "hidden",
            aside(&before, UnshownReason::Hidden),
            there(State::StillThere, "a.rs", 21),
        ),
        (
            "hidden, and further down",
            aside(&with(30, CALL), UnshownReason::Hidden),
            there(State::Moved, "a.rs", 31),
        ),
        (
            "hidden and mended",
            aside(
                &with(20, &CALL.replace("+ 1", "+ 2")),
                UnshownReason::Hidden,
            ),
            FIXED,
        ),
        (
            "ignored for all",
            aside(&before, UnshownReason::Ignored),
            (State::Unchecked, None),
        ),
        (
            "not staged",
            aside(&before, UnshownReason::Unstaged),
            (State::Unchecked, None),
        ),
        (
            "not to be read",
            UnshownFile::Unreadable,
            (State::Unchecked, None),
        ),
    ] {
        assert_eq!(of(claim(), beside), expected, "{what}");
    }
    assert_eq!(
        of(rule("py-eval", 21), hidden(UnshownReason::Hidden)).0,
        State::Unchecked
    );
    assert_eq!(
        of(rule("py-eval", 21), hidden(UnshownReason::Ignored)).0,
        State::Unchecked
    );
    assert_eq!(
        of(rule("secret", 21), hidden(UnshownReason::Hidden)).0,
        State::Unchecked
    );
    assert_eq!(
        of(rule("secret", 21), hidden(UnshownReason::Ignored)).0,
        State::Fixed
    );
    // A secret that only one of the policies masks is the same text.
    let stars = CALL.replace("count + 1", "**********");
    let key = CALL.replace("count + 1", "keykeykeyk");
    let masked = with(20, &stars);
    let found = told(
        claim(),
        &[("a.rs", &masked)],
        &[],
        aside(&with(20, &key), UnshownReason::Hidden),
    );
    assert_eq!(found, there(State::StillThere, "a.rs", 21));
    let product = with(20, &CALL.replace("+ 1", "* 1"));
    assert_eq!(
        told(
            claim(),
            &[("a.rs", &product)],
            &[],
            aside(&before, UnshownReason::Hidden)
        ),
        FIXED
    );
}
