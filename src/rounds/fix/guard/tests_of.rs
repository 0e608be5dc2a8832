//! Tests: a fix may add lines to them. It may not remove, change or skip what they check.

use super::{Changed, added, removed};
use crate::rules::is_test_path;
use std::collections::BTreeMap;

/// Parts of calls that check something, in lower case.
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
/// Words that declare a test, in lower case.
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
/// Words that skip a test, in lower case.
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
const EARLY_ENDS: &[&str] =
    &["return", "return;", "return ok(());", "return nil", "pass", "exit 0", "exit(0)", "exit(0);", "exit"];
/// Lines that one assertion may have.
const MOST_LINES: usize = 60;

/// Returns what a fix weakens in a test; `None`: nothing. `is_of_finding`: a finding is about the file, so that lines which
/// check nothing may change.
pub(super) fn weakened(change: &Changed, is_of_finding: bool) -> Option<String> {
    let before = change.before.as_deref()?;
    let is_test = is_test_path(change.path.as_bytes());
    let (before, after) = match is_test {
        true => (before, change.after.as_slice()),
        // Tests beside code, as in Rust.
        false => (inner(before)?, inner(&change.after).unwrap_or_default()),
    };
    if let Some(check) = lost(&checks(before), &checks(after)) {
        return Some(format!("loses or changes a check of a test: {check}"));
    }
    if let Some(line) = added(before, after).into_iter().find(|line| skips(line)) {
        return Some(format!("skips a test: {}", shown(line)));
    }
    let is_code = |line: &&[u8]| !line.trim_ascii().is_empty() && !is_comment(line);
    let line = removed(before, after).into_iter().filter(|_| !is_of_finding).find(is_code)?;
    Some(format!("loses or changes a line of a test: {}", shown(line)))
}

/// Returns the part of a source file with tests; `None`: it has none.
fn inner(text: &[u8]) -> Option<&[u8]> {
    let marks: [&[u8]; 3] = [b"#[cfg(test)]", b"#[test]", b"unittest.TestCase"];
    let at = marks.iter().filter_map(|mark| memchr::memmem::find(text, mark)).min()?;
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
            let whole = if is_check { statement(&lines[i..]) } else { (*line).to_owned() };
            *out.entry(whole.split_whitespace().collect::<String>()).or_insert(0) += 1;
        }
    }
    out
}

/// Returns a statement that begins on the first line: as far as its brackets are open.
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
    let is_lost = |(text, n): &(&String, &usize)| after.get(*text).copied().unwrap_or(0) < **n;
    before.iter().find(is_lost).map(|(text, _)| shown(text.as_bytes()))
}

fn skips(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line).trim().to_lowercase();
    SKIPS.iter().any(|s| line.contains(s)) || EARLY_ENDS.contains(&line.as_str())
}

fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    // An attribute of Rust checks something.
    line.starts_with(b"//")
        || line.starts_with(b"--")
        || line.starts_with(b"#") && !line.starts_with(b"#[") && !line.starts_with(b"#!")
}

/// Returns the first characters of a line.
fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(line.trim_ascii()).chars().take(80).collect()
}
