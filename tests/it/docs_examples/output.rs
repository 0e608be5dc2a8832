//! Compares the output of a command with the output that a page shows.
//!
//! A line `…` on a page stands for omitted lines, and a `…` at the end of a line for its rest.
//! Values that differ from run to run match any value of their kind: durations, dates, hexadecimal
//! IDs and numbers of tokens.

use regex::Regex;
use std::sync::LazyLock;

static DATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b20\d\d-\d\d-\d\d(T[0-9:.]+Z)?").unwrap());
static DURATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d[\d.,]* (ms|s|min)\b").unwrap());
static HEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{12,64}\b").unwrap());
static TOKENS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d[\d,]* tokens in, \d[\d,]* out").unwrap());
static AGE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b(just now|\d+ \w+ ago)\b").unwrap());

/// Replaces values that differ from run to run by the name of their kind.
fn masked(line: &str) -> String {
    let kinds = [
        (&DATE, "DATE"),
        (&DURATION, "DURATION"),
        (&HEX, "HEX"),
        (&TOKENS, "TOKENS"),
        (&AGE, "AGE"),
    ];
    kinds.iter().fold(line.to_owned(), |line, (pattern, kind)| {
        pattern.replace_all(&line, *kind).into_owned()
    })
}

/// Replaces durations and dates by fixed values, so that a page always shows the same.
fn steady(line: &str) -> String {
    let line = DATE.replace_all(line, "2026-11-23$1");
    DURATION.replace_all(&line, "5 ms").into_owned()
}

fn is_same(shown: &str, actual: &str) -> bool {
    match shown.strip_suffix('…') {
        Some("") => actual == shown,
        Some(start) => masked(actual).starts_with(&masked(start)),
        None => masked(shown) == masked(actual),
    }
}

/// Returns true if the output matches the page.
pub fn matches(shown: &[String], actual: &[String]) -> bool {
    match shown.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line == "…" => {
            (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]))
        }
        Some((line, rest)) => actual
            .split_first()
            .is_some_and(|(a, others)| is_same(line, a) && matches(rest, others)),
    }
}

/// Returns the new content of the page: the output, with the page's omissions, and with the page's
/// own values where only those differ.
pub fn updated(shown: &[String], actual: &[String]) -> Vec<String> {
    if matches(shown, actual) {
        return shown.to_vec();
    }
    let lines = if shown.iter().any(|l| l == "…") {
        shortened(shown, actual)
    } else {
        actual.to_vec()
    };
    let mut rest = shown;
    let mut updated = Vec::new();
    for line in lines {
        match rest.iter().position(|l| is_same(l, &line)) {
            Some(at) => {
                updated.push(rest[at].clone());
                rest = &rest[at + 1..];
            }
            None => updated.push(steady(&line)),
        }
    }
    updated
}

/// Omits lines as the page does. A line stays if the page has one that starts with the same word.
fn shortened(shown: &[String], actual: &[String]) -> Vec<String> {
    let word = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let kept: Vec<String> = shown.iter().map(|l| word(l)).collect();
    let mut lines: Vec<String> = Vec::new();
    for line in actual {
        if kept.contains(&word(line)) {
            lines.push(line.clone());
        } else if lines.last().is_none_or(|l| l != "…") {
            lines.push("…".to_owned());
        }
    }
    lines
}

#[test]
fn lines_that_differ_only_in_values_of_a_run_match() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let shown = lines("1 file, 5 ms, stored as 2026-01-02-001\n…\nhead 0123456789abcdef");
    assert!(matches(
        &shown,
        &lines("1 file, 1.5 s, stored as 2031-12-31-001\na\nb\nhead fedcba9876543210")
    ));
    assert!(!matches(
        &shown,
        &lines("2 files, 5 ms, stored as 2026-01-02-001\nhead fedcba9876543210")
    ));
    assert!(!matches(
        &shown,
        &lines("1 file, 5 ms, stored as 2026-01-02-001\nhead fedcba9876543210\nmore")
    ));
    assert!(matches(&lines("one of `a`, …"), &lines("one of `a`, `b`")));
    let actual = lines("1 files, 7 ms\nb\nhead fedcba9876543210");
    assert_eq!(
        updated(&shown, &actual),
        lines("1 files, 5 ms\n…\nhead 0123456789abcdef")
    );
}
