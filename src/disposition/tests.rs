//! Tests of entries, their digests and their file.

use super::*;
use crate::finding::{Category, Confidence, Draft, Severity};

fn day(text: &str) -> Date {
    text.parse().unwrap()
}

fn only(text: &str) -> DecidedContent {
    DecidedContent {
        text: text.as_bytes().to_vec(),
        occurrence: Occurrence::ONLY,
    }
}

fn digest(lines: &str) -> Digest {
    Digest::of(lines.as_bytes(), [7; 16])
}

fn finding(quote: &str) -> Finding {
    let draft = Draft {
        rule_id: "eval-call".to_owned(),
        location: None,
        severity: Severity::Major,
        category: Category::Security,
        title: "title".to_owned(),
        message: "message".to_owned(),
        failure: None,
        suggestion: None,
        replacement: None,
        quote: quote.to_owned(),
        cwe: None,
        convention: None,
        also: Vec::new(),
        flow: Vec::new(),
        references: Vec::new(),
    };
    Finding::sample(draft, Confidence::High)
}

fn entry(of: &Finding, decision: Decision) -> DecisionEntry {
    DecisionEntry {
        fingerprint: of.fingerprint().to_string(),
        rule: of.rule_id().to_owned(),
        path: Some("a.py".to_owned()),
        line: "eval(x)  # \"\\ \u{1b}[2J".to_owned(),
        digest: Some(digest("eval(x)")),
        occurrence: Occurrence::ONLY,
        decision,
        reason: "x is a number".to_owned(),
        owner: "Ada <ada@example.com>".to_owned(),
        created: day("2026-01-02"),
        expires: (decision == Decision::Deferred).then(|| day("2026-04-02")),
    }
}

#[test]
fn a_digest_is_of_the_lines_without_the_white_space_around_them() {
    let one = digest("  if x:\n    eval(x)\r\n");
    assert!(one.is_of(b"if x:\n\teval(x)\n"));
    for other in [
        "if x:\n  eval(y)\n",
        "if x:\neval(x)",
        "if x: eval(x)\n",
        "",
    ] {
        assert!(!one.is_of(other.as_bytes()), "{other:?}");
    }
    assert_ne!(
        digest("x").to_string(),
        Digest::of(b"x", [8; 16]).to_string()
    );
    assert_eq!(Digest::parse(&one.to_string()), Some(one.clone()));
    let text = one.to_string();
    for bad in [
        text.replace("scrypt:", "sha256:"),
        text.replace(":13:", ":31:"),
        text.replace(":13:", ":1:"),
        text[..text.len() - 1].to_owned(),
        format!("{text}:00"),
        text.replace('7', "é"),
    ] {
        assert_eq!(Digest::parse(&bad), None, "{bad}");
    }
}

/// Returns the decision of a deferred entry about `eval(x)` on these lines.
fn deferred(lines: Option<&str>, date: &str) -> Option<Decision> {
    let found = finding("eval(x)");
    let entries = DecisionEntries::new([entry(&found, Decision::Deferred)]);
    entries
        .of(&found, lines.map(only).as_ref(), day(date))
        .map(|d| d.decision)
}

#[test]
fn dsp_01_an_entry_holds_for_its_lines_until_it_expires() {
    let entries = DecisionEntries::new([entry(&finding("eval(x)"), Decision::Deferred)]);
    assert_eq!(
        deferred(Some("    eval(x)"), "2026-04-01"),
        Some(Decision::Deferred)
    );
    assert_eq!(deferred(Some("eval(x)"), "2026-04-02"), None, "expired");
    assert_eq!(deferred(Some("eval(y)"), "2026-02-01"), None, "other lines");
    assert_eq!(deferred(None, "2026-02-01"), None, "no lines");
    assert_eq!(
        entries.of(
            &finding("eval(y)"),
            Some(&only("eval(x)")),
            day("2026-02-01")
        ),
        None,
        "another finding"
    );
}

#[test]
fn the_newest_entry_that_holds_decides() {
    let found = finding("eval(x)");
    let old = entry(&found, Decision::Rejected);
    let new = DecisionEntry {
        created: day("2026-01-03"),
        ..entry(&found, Decision::Accepted)
    };
    let expired = DecisionEntry {
        created: day("2026-01-04"),
        expires: Some(day("2026-01-05")),
        ..old.clone()
    };
    let entries = DecisionEntries::new([old, new, expired]);
    let holds = entries
        .of(&found, Some(&only("eval(x)")), day("2026-02-01"))
        .unwrap();
    assert_eq!(holds.decision, Decision::Accepted);
}

#[test]
fn a_file_is_read_as_it_was_written_in_one_order() {
    let (one, other) = (finding("eval(x)"), finding("eval(y)"));
    let mut entries = vec![
        DecisionEntry {
            path: Some("z.py".to_owned()),
            ..entry(&one, Decision::Rejected)
        },
        DecisionEntry {
            digest: None,
            path: None,
            ..entry(&other, Decision::Deferred)
        },
    ];
    let text = render(&entries);
    assert!(!text.contains('\u{1b}'), "{text}");
    entries.reverse();
    assert_eq!(render(&entries), text);
    assert_eq!(parse(&text).unwrap(), entries);
    assert_eq!(parse("version = 1\n").unwrap(), []);
    let again = DecisionEntry {
        decision: Decision::Accepted,
        ..entries[0].clone()
    };
    put(&mut entries, again);
    assert_eq!(
        entries.iter().map(|e| e.decision).collect::<Vec<_>>(),
        [Decision::Rejected, Decision::Accepted]
    );
}

#[test]
fn dsp_03_a_file_with_an_error_has_no_entries_and_names_the_line() {
    let good = render(&[entry(&finding("eval(x)"), Decision::Deferred)]);
    assert!(parse(&good).is_ok());
    let cases = [
        (
            good.replace("status = \"deferred\"", "status = \"fixed\""),
            "status",
        ),
        (
            good.replace("status = \"deferred\"", "status = deferred"),
            "status",
        ),
        (
            good.replace("created = \"2026-01-02\"", "created = \"soon\""),
            "created",
        ),
        (
            good.replace("expires = \"2026-04-02\"", "expires = \"2026-02-30\""),
            "expires",
        ),
        (good.replace("expires = \"2026-04-02\"\n", ""), "status"),
        (
            good.replace("digest = \"scrypt:13", "digest = \"scrypt:15x"),
            "digest",
        ),
        (
            good.replace("fingerprint = \"", "fingerprint = \"X"),
            "fingerprint",
        ),
        (good.replace("owner = ", "owned = "), "owner"),
        (good.replace("version = 1", "version = 2"), "version"),
    ];
    let cases = cases.map(|(text, key)| {
        (
            text,
            good.lines().position(|l| l.starts_with(key)).unwrap() + 1,
        )
    });
    let conflict = (format!("{good}\n<<<<<<< HEAD\n"), good.lines().count() + 2);
    for (text, expected) in cases.into_iter().chain([conflict]) {
        let problem = parse(&text).unwrap_err();
        assert_eq!(problem.line, Some(expected), "{problem:?}\n{text}");
    }
    let twice = format!("{good}{}", good.split_once("\n\n").unwrap().1);
    assert!(
        parse(&twice)
            .unwrap_err()
            .message
            .starts_with("a second entry for"),
        "{twice}"
    );
}

fn said(before: &[DecisionEntry], after: &[DecisionEntry]) -> String {
    weaker(before, after).unwrap_or_default()
}

#[test]
fn dsp_02_new_and_wider_entries_are_weaker_and_others_are_not() {
    let found = finding("eval(x)");
    let deferred = entry(&found, Decision::Deferred);
    let rejected = DecisionEntry {
        expires: None,
        ..entry(&finding("eval(y)"), Decision::Rejected)
    };
    let accepted = entry(&finding("eval(z)"), Decision::Accepted);
    let both = [deferred.clone(), rejected.clone()];
    assert_eq!(
        said(&[], &both),
        "the file of dispositions adds 1 rejected and 1 deferred findings"
    );
    assert_eq!(
        said(&[], std::slice::from_ref(&rejected)),
        "the file of dispositions adds 1 rejected finding"
    );
    let later = DecisionEntry {
        expires: Some(day("2027-01-01")),
        ..deferred.clone()
    };
    let forever = DecisionEntry {
        expires: None,
        ..deferred.clone()
    };
    let lines = DecisionEntry {
        digest: Some(digest("eval(q)")),
        ..deferred.clone()
    };
    let silenced = DecisionEntry {
        decision: Decision::Rejected,
        ..accepted.clone()
    };
    let other_rule = DecisionEntry {
        rule: "another-rule".to_owned(),
        ..deferred.clone()
    };
    let other_path = DecisionEntry {
        path: Some("**".to_owned()),
        ..deferred.clone()
    };
    let without_digest = DecisionEntry {
        digest: None,
        ..deferred.clone()
    };
    let other_copy = DecisionEntry {
        occurrence: Occurrence {
            number: 1,
            total: 2,
        },
        ..deferred.clone()
    };
    // The day is the same, but now models see that the finding is wrong.
    let wrong = DecisionEntry {
        decision: Decision::Rejected,
        ..deferred.clone()
    };
    for wider in [
        later,
        forever,
        lines,
        other_rule,
        other_path,
        without_digest,
        other_copy,
        wrong,
    ] {
        assert_eq!(
            said(std::slice::from_ref(&deferred), &[wider]),
            "the file of dispositions covers more with 1 entry"
        );
    }
    assert_eq!(
        said(std::slice::from_ref(&accepted), &[silenced]),
        "the file of dispositions adds 1 rejected finding"
    );
    // Without a reason, the entry cannot reject a critical finding.
    let silent = DecisionEntry {
        reason: " ".to_owned(),
        ..rejected.clone()
    };
    let explained = DecisionEntry {
        reason: "because".to_owned(),
        ..rejected.clone()
    };
    assert_eq!(
        said(
            std::slice::from_ref(&silent),
            std::slice::from_ref(&explained)
        ),
        "the file of dispositions covers more with 1 entry"
    );
    assert_eq!(
        weaker(
            std::slice::from_ref(&explained),
            std::slice::from_ref(&silent)
        ),
        None
    );
    let back = DecisionEntry {
        decision: Decision::Deferred,
        ..rejected.clone()
    };
    assert_eq!(weaker(std::slice::from_ref(&rejected), &[back]), None);
    let sooner = DecisionEntry {
        expires: Some(day("2026-02-01")),
        reason: "other words".to_owned(),
        ..deferred.clone()
    };
    for (before, after) in [
        (vec![deferred.clone()], vec![deferred.clone()]),
        (vec![deferred.clone()], vec![sooner]),
        (vec![deferred, rejected], vec![]),
        (vec![], vec![accepted]),
    ] {
        assert_eq!(weaker(&before, &after), None);
    }
}

/// Returns an entry about one of several equal texts, with the fingerprint that its finding has in
/// a change with all of them.
fn copy(of: &Finding, number: u32, total: u32) -> DecisionEntry {
    let fingerprint = of
        .fingerprints()
        .nth(number as usize - 1)
        .unwrap()
        .to_string();
    DecisionEntry {
        fingerprint,
        occurrence: Occurrence { number, total },
        ..entry(of, Decision::Rejected)
    }
}

/// Returns true if entries decide about a copy of `eval(x)`.
fn holds(entries: &[DecisionEntry], number: u32, total: u32) -> bool {
    let content = DecidedContent {
        occurrence: Occurrence { number, total },
        ..only("eval(x)")
    };
    let entries = DecisionEntries::new(entries.iter().cloned());
    entries
        .of(&finding("eval(x)"), Some(&content), day("2026-02-01"))
        .is_some()
}

#[test]
fn dsp_01_an_entry_holds_for_its_occurrence_and_entries_of_all_hold_for_fewer() {
    let found = finding("eval(x)");
    let second = [copy(&found, 2, 3)];
    assert!(
        holds(&second, 2, 3),
        "the finding is the first one of a change of its line alone"
    );
    for (number, total) in [(1, 3), (3, 3), (1, 1), (2, 2), (2, 4)] {
        assert!(!holds(&second, number, total), "{number} of {total}");
    }
    let all: Vec<DecisionEntry> = (1..=3).map(|number| copy(&found, number, 3)).collect();
    for (number, total) in [(1, 3), (2, 3), (3, 3), (1, 1), (1, 2), (2, 2)] {
        assert!(holds(&all, number, total), "{number} of {total}");
    }
    assert!(!holds(&all, 1, 4) && !holds(&all[..2], 1, 2));
    let mut mixed = all.clone();
    mixed[1].decision = Decision::Accepted;
    assert!(!holds(&mixed, 1, 2), "one of them is right");
    let mut other = all;
    other[1].digest = Some(digest("eval(y)"));
    assert!(!holds(&other, 1, 2), "one is about another text");
}

/// Returns the decision about `eval(x)` of an entry, if another version of the file has other
/// entries.
fn agreed(first: &DecisionEntry, other: &[DecisionEntry]) -> Option<Decision> {
    let entries = DecisionEntries::new([first.clone()])
        .agreed_by(DecisionEntries::new(other.iter().cloned()));
    entries
        .of(
            &finding("eval(x)"),
            Some(&only("eval(x)")),
            day("2026-02-01"),
        )
        .map(|d| d.decision)
}

#[test]
fn dsp_02_another_version_of_the_file_has_to_agree() {
    let found = finding("eval(x)");
    let rejected = entry(&found, Decision::Rejected);
    let deferred = entry(&found, Decision::Deferred);
    let expired = DecisionEntry {
        expires: Some(day("2026-01-05")),
        ..rejected.clone()
    };
    let accepted = entry(&found, Decision::Accepted);
    let resalted = DecisionEntry {
        digest: Some(Digest::of(b"eval(x)", [9; 16])),
        ..rejected.clone()
    };
    for other in [&rejected, &deferred, &resalted] {
        assert_eq!(
            agreed(&rejected, std::slice::from_ref(other)),
            Some(Decision::Rejected)
        );
    }
    for other in [&[][..], &[expired], std::slice::from_ref(&accepted)] {
        assert_eq!(agreed(&rejected, other), None);
    }
    assert_eq!(
        agreed(&accepted, &[]),
        Some(Decision::Accepted),
        "it lets nothing through"
    );
}
