//! Tests: a fix may add lines to them, but may not remove, change or skip their checks.

use super::{ChangedFile, added, removed};
use crate::diff::RepoPath;
use crate::rules::{is_test_path, may_be_test};
use std::collections::BTreeMap;

/// Parts of calls that check something, in lowercase.
const CHECKS: &[&str] = &[
    "assert",
    "expect",
    "should",
    "require.",
    "require(",
    "require!",
    "check(",
    "verify(",
    "xct",
    "t.error",
    "t.fatal",
    "t.fail",
    "fail(",
    "refute",
    "must_",
    "ensure!",
    "panic!",
    "raises",
    "throws",
    "matches!",
    "snapshot",
    "ok(",
    "equal(",
    "deep_equal",
    "is_deeply",
    "approvals",
];
/// Words that declare a test, in lowercase.
const DECLARATIONS: &[&str] = &[
    "def test",
    "#[test",
    "#[tokio::test",
    "#[rstest",
    "#[case",
    "func test",
    "func benchmark",
    "func fuzz",
    "it(",
    "test(",
    "describe(",
    "context(",
    "scenario(",
    "@test",
    "@parameterizedtest",
    "@pytest.mark.parametrize",
    "[fact]",
    "[theory]",
    "[test]",
    "[testmethod]",
    "[testcase",
    "test_case",
    "test_f(",
    "test_p(",
    "specify ",
    "it \"",
    "it '",
    "test \"",
    "public function test",
    "class test",
    "testcase",
];
/// Words that skip a test, in lowercase.
const SKIPS: &[&str] = &[
    "pytest.skip",
    "mark.skip",
    "skipif",
    "skiptest",
    "unittest.skip",
    "@skip",
    "t.skip",
    "it.skip",
    "test.skip",
    "describe.skip",
    "skip(\"",
    "skip('",
    "skip:",
    "xfail",
    "#[ignore",
    "should_panic",
    "@ignore",
    "@disabled",
    ".only(",
    "fit(",
    "fdescribe(",
    "xit(",
    "xdescribe(",
    "xtest(",
    "it.todo",
    "test.todo",
    "pending(",
    "t.skipnow",
    "assumetrue",
    "assumefalse",
    "assume.",
    "os.exit",
    "sys.exit",
    "process.exit",
    "os._exit",
    "if false",
    "if (false",
    "if 0:",
    "#[cfg(any())]",
    "if true {",
    "if (true)",
];
/// Whole lines that end a test early.
const EARLY_ENDS: &[&str] = &[
    "return",
    "return;",
    "return ok(());",
    "return nil",
    "pass",
    "exit 0",
    "exit(0)",
    "exit(0);",
    "exit",
];
/// Names of files with test helpers, without extensions.
const HELPERS: &[&str] = &[
    "testing",
    "assert",
    "asserts",
    "assertion",
    "assertions",
    "expectations",
    "matchers",
    "test_utils",
    "test-utils",
    "test_util",
    "testhelper",
    "testhelpers",
    "test_helper",
    "test_helpers",
    "test-helper",
    "test-helpers",
    "test_support",
    "testsupport",
    "test_tools",
    "custom_matchers",
    "custom_assertions",
];
/// Extensions of files that are tests in any folder.
const FORMATS: &[&str] = &[
    ".feature",
    ".robot",
    ".bats",
    ".phpt",
    ".slt",
    ".hurl",
    ".cram",
    ".doctest",
    ".story",
    ".spec.json",
];
/// Prompts of examples in documentation that a runner checks: in Python and in Elixir.
const PROMPTS: &[&str] = &[">>>", "iex>", "iex("];
/// Markers of documentation in Rust, whose examples are tests.
const DOCUMENTATION: &[&str] = &["///", "//!"];
/// Lines of one assertion, at most.
const MOST_LINES: usize = 60;

/// The relation of a file to tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestRelation {
    /// All of its lines belong to tests.
    Tests,
    /// It has checks and other code.
    Some,
    /// It may contain tests next to its code.
    Program,
}

/// Returns true if a path is that of a test.
pub(super) fn is_test(path: &RepoPath) -> bool {
    part(path) == TestRelation::Tests
}

fn part(path: &RepoPath) -> TestRelation {
    let text = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let (folder, name) = text.rsplit_once('/').unwrap_or(("", &text));
    // Step definitions and hooks of behavior tests: `features/steps/a.py`,
    // `features/support/env.rb`.
    let is_step = is_within(folder, &["features"])
        && (is_within(folder, &["steps", "support"]) || name.starts_with("environment."));
    let is_perl = name.ends_with(".t") && is_within(folder, &["t", "xt"]);
    if is_test_path(path.as_bytes())
        || is_step
        || is_perl
        || FORMATS.iter().any(|end| name.ends_with(end))
    {
        return TestRelation::Tests;
    }
    let stem = name.split('.').next().unwrap_or(name);
    if HELPERS.contains(&stem) || may_be_test(path.as_bytes()) {
        TestRelation::Some
    } else {
        TestRelation::Program
    }
}

/// Returns true if a component of a folder has one of the names.
fn is_within(folder: &str, names: &[&str]) -> bool {
    folder.split('/').any(|f| names.contains(&f))
}

/// Returns how a fix weakens a test, or `None` if it does not. With `is_of_finding`, a finding is
/// about the file, so that lines without a check may change.
pub(super) fn weakened(change: &ChangedFile, is_of_finding: bool) -> Option<String> {
    let part = part(&change.path);
    let Some(before) = change.before.as_deref() else {
        // A new test may return early, but may not skip or end the run.
        let mut lines = change
            .after
            .split(|b| *b == b'\n')
            .filter(|line| !is_comment(line));
        let line = lines.find(|line| part != TestRelation::Program && has_skip(line))?;
        return Some(format!("skips a test: {}", shown(line)));
    };
    if let Some(example) = lost(&examples(before), &examples(&change.after)) {
        return Some(format!(
            "loses or changes an example that is a test: {example}"
        ));
    }
    if part == TestRelation::Some {
        if let Some(check) = lost(&assertions(before), &assertions(&change.after)) {
            return Some(format!("loses or changes a check of a test: {check}"));
        }
        if let Some(line) = added(before, &change.after)
            .into_iter()
            .find(|line| has_skip(line))
        {
            return Some(format!("skips a test: {}", shown(line)));
        }
    }
    let (before, after) = match part {
        TestRelation::Tests => (before, change.after.as_slice()),
        // Tests in a source file, as in Rust.
        TestRelation::Some | TestRelation::Program => {
            (inner(before)?, inner(&change.after).unwrap_or_default())
        }
    };
    if let Some(check) = lost(&checks(before), &checks(after)) {
        return Some(format!("loses or changes a check of a test: {check}"));
    }
    if let Some(line) = added(before, after).into_iter().find(|line| skips(line)) {
        return Some(format!("skips a test: {}", shown(line)));
    }
    // In a test format, each line is a step or a check.
    let may_change = is_of_finding && !has_test_format(&change.path);
    let mut lines = removed(before, after).into_iter().filter(|_| !may_change);
    let line = lines.find(|line| !line.trim_ascii().is_empty() && !is_comment(line))?;
    Some(format!(
        "loses or changes a line of a test: {}",
        shown(line)
    ))
}

fn has_test_format(path: &RepoPath) -> bool {
    let name = String::from_utf8_lossy(path.file_name()).to_lowercase();
    FORMATS.iter().any(|end| name.ends_with(end))
}

/// Counts the checks whose name marks them as assertions, for files that contain other code too.
fn assertions(text: &[u8]) -> BTreeMap<String, usize> {
    let mut out = checks(text);
    out.retain(|text, _| {
        ["assert", "expect"]
            .iter()
            .any(|word| text.to_lowercase().contains(word))
    });
    out
}

/// Counts the examples of documentation that are tests, without white space: a prompt with its
/// expected value, and assertions in Rust documentation.
fn examples(text: &[u8]) -> BTreeMap<String, usize> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text
        .lines()
        .map(|line| {
            line.trim()
                .trim_start_matches(['*', '#', '/', '!'])
                .trim_start()
        })
        .collect();
    let mut out = BTreeMap::new();
    for (i, line) in lines.iter().enumerate().filter(|(_, line)| is_prompt(line)) {
        let value = lines[i + 1..].iter().take(MOST_LINES).take_while(|line| {
            !line.is_empty()
                && !is_prompt(line)
                && !line.starts_with("\"\"\"")
                && !line.starts_with("'''")
        });
        let whole: String = std::iter::once(line)
            .chain(value)
            .flat_map(|l| l.split_whitespace())
            .collect();
        *out.entry(whole).or_insert(0) += 1;
    }
    for line in text
        .lines()
        .map(str::trim)
        .filter(|line| DOCUMENTATION.iter().any(|mark| line.starts_with(mark)))
    {
        let lower = line.to_lowercase();
        if lower.contains("assert") && lower.contains('!') && lower.contains('(') {
            *out.entry(line.split_whitespace().collect()).or_insert(0) += 1;
        }
    }
    out
}

/// Returns true if a line of documentation begins with the prompt of an interpreter.
fn is_prompt(line: &str) -> bool {
    PROMPTS.iter().any(|prompt| line.starts_with(prompt))
}

/// Returns the part of a source file with tests, or `None` if it has none.
fn inner(text: &[u8]) -> Option<&[u8]> {
    let marks: [&[u8]; 3] = [b"#[cfg(test)]", b"#[test]", b"unittest.TestCase"];
    let at = marks
        .iter()
        .filter_map(|mark| memchr::memmem::find(text, mark))
        .min()?;
    Some(&text[at..])
}

/// Counts the declarations and checks of tests, without white space.
fn checks(text: &[u8]) -> BTreeMap<String, usize> {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<&str> = text.lines().collect();
    let mut out = BTreeMap::new();
    for (i, line) in lines.iter().enumerate() {
        let lower = line.to_lowercase();
        if is_comment(line.as_bytes()) {
            continue;
        }
        let is_check = CHECKS.iter().any(|c| lower.contains(c));
        if is_check || DECLARATIONS.iter().any(|d| lower.contains(d)) {
            let whole = if is_check {
                statement(&lines[i..])
            } else {
                (*line).to_owned()
            };
            *out.entry(whole.split_whitespace().collect::<String>())
                .or_insert(0) += 1;
        }
    }
    out
}

/// Returns the statement that begins on the first line, up to its closing bracket.
fn statement(lines: &[&str]) -> String {
    let mut open = 0_i32;
    let mut out = String::new();
    for line in lines.iter().take(MOST_LINES) {
        out.push_str(line);
        for b in line.bytes() {
            match b {
                b'(' | b'[' => open += 1,
                b')' | b']' => open -= 1,
                _ => {}
            }
        }
        if open <= 0 {
            break;
        }
    }
    out
}

/// Returns the first entry that the new text has less often.
fn lost(before: &BTreeMap<String, usize>, after: &BTreeMap<String, usize>) -> Option<String> {
    let lost = before
        .iter()
        .find(|(text, n)| after.get(*text).copied().unwrap_or(0) < **n);
    lost.map(|(text, _)| shown(text.as_bytes()))
}

fn skips(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line).trim().to_lowercase();
    has_skip(line) || EARLY_ENDS.contains(&text.as_str())
}

/// Returns true if a line has words that skip a test.
fn has_skip(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line).to_lowercase();
    SKIPS.iter().any(|s| line.contains(s))
}

pub(super) fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    // A Rust attribute can be a check.
    line.starts_with(b"//")
        || line.starts_with(b"--")
        || line.starts_with(b"#") && !line.starts_with(b"#[") && !line.starts_with(b"#!")
}

/// Returns the first characters of a line.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.trim_ascii())
        .chars()
        .take(80)
        .collect()
}
