//! Parses the output of test programs: totals, names of failing tests, coverage. Pure.
//!
//! Supported are the plain output of cargo, nextest, pytest, unittest, go, node, jest, vitest,
//! mocha, deno, RSpec, PHPUnit, Maven, Gradle and .NET, TAP, and JUnit's XML.

use crate::text::first_bytes;
use regex::Regex;
use std::sync::LazyLock;

/// Failing tests that are listed, at most.
const MAX_NAMES: usize = 200;
/// Bytes of a name, at most.
const MAX_NAME: usize = 300;

/// The parsed output of a test program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TestOutput {
    /// Passed, failed, skipped; `None` without a summary line.
    totals: Option<Totals>,
    /// Without repeats, in the order of the output, at most [`MAX_NAMES`].
    pub(super) failing: Vec<String>,
    /// `92.1%`.
    pub(super) coverage: Option<String>,
}

/// Counts of tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
}

/// Compiles an expression of this file. A test compiles each of them.
fn expression(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

/// Escape sequences for terminal styling.
static STYLING: LazyLock<Option<Regex>> = LazyLock::new(|| expression(r"\x1b\[[0-9;]*[A-Za-z]"));
/// `41 passed`, `1 failed`, `2 skipped` of cargo, pytest, jest and vitest; `41 passing` of mocha.
static COUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?i)\b(\d+) (passed|passing|failed|failing|failures?|errors?|ignored|skipped|pending|todo)\b",
    )
});
/// `# pass 41` and `ℹ fail 1` of node's test runner; `Failures: 1`, `Failed: 1` of Maven and .NET.
static LABELLED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?:(?:#|ℹ) |, |- |^(?:\[\w+\] )?)(pass|fail|skipped|todo|Failures|Errors|Skipped|Failed|Passed):?\s+(\d+)\b",
    )
});
/// `Tests run: 42`: Maven names no passed ones.
static RUN: LazyLock<Option<Regex>> = LazyLock::new(|| expression(r"Tests run: (\d+)"));
/// A summary line: its counts are totals, or those of one test program of several.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"^\s*(?:test result:|Tests:|Tests\s+\d|=+ .*\b\d+ (?:passed|failed|error)|\d+ (?:passing|failing|pending)\b|\d+ (?:passed|failed), |\d+ examples?, |Summary \[|(?:ok|FAILED) \| \d+ passed|\d+ tests? completed, )",
    )
});
/// A summary line with labels before the numbers.
static LABELLED_TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"^(?:(?:#|ℹ) (?:pass|fail|skipped|todo) \d+$|(?:\[\w+\] )?Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+\s*$|(?:Failed|Passed)!\s+- Failed:\s+\d+, Passed:)",
    )
});
/// Names of tests that failed. Each group is the form of one program or of several.
static FAILING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r#"(?mx)^(?:
          test\ (?P<cargo>\S+)(?:\ -\ should\ panic)?\ \.\.\.\ FAILED
        | test\ (?P<doctest>\S+\ -\ .*\(line\ \d+\))(?:\ -\ \w+)?\ \.\.\.\ FAILED
        | \s*(?:FAIL|TIMEOUT|SIGSEGV|SIGABRT)\ +\[[^\]]*\]\ +(?:\(.*?\)\ +)?(?P<nextest>\S+\ +\S+)\s*$
        | (?:FAILED|ERROR)\ (?P<pytest>[^\s(|][^\s]*)(?:\ -\ .*)?$
        | (?:FAIL|ERROR):\ (?P<unittest>\w+\ \([\w.]+\)).*$
        | \s*---\ FAIL:\ (?P<go>\S+)
        | FAIL\t(?P<package>\S+)\ \[(?:build|setup)\ failed\]
        | \s*not\ ok\ \d+\ -?\ ?(?P<tap>[^\#\n]+)
        | \s*●\ (?P<jest>[^\n]*›[^\n]*)
        | \s*(?:FAIL|×)\ +(?P<vitest>\S+\ >\ [^\n]+)
        | (?P<deno>[^\n]+?)\ \.\.\.\ FAILED\ \(\d+m?s\)
        | rspec\ (?P<rspec>\./\S+\ \#\ [^\n]+)
        | \d+\)\ (?P<phpunit>[\w\\]+::\w+)
        | \[ERROR\]\ +(?P<maven>[\w.$]+\.\w+(?:\([^)]*\))?)(?::\d+|\ +(?:--|Time\ elapsed:).*(?:FAILURE|ERROR)!)
        | (?P<gradle>[\w.$]+\ >\ [^\n]+?)\ FAILED$
        | \s*Failed\ (?P<dotnet>[\w.+`]+(?:\([^\n]*\))?)\ \[[^\]\n]*\]
        )"#,
    )
});
/// A failed test in the tree of node's and jest's output, which has its name without the parents.
static CROSSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(r"(?m)^\s*[✖✕✗] (?P<name>[^\n]+?)(?: \((?:\d+(?:\.\d+)?) ?m?s\))?$")
});
/// The list of failures at the end of mocha's output.
static MOCHA: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(r"(?m)^  \d+\) (?P<first>[^\n]+)\n(?P<rest>(?:       +[^\n]+\n)*)")
});
/// A failed case in JUnit's XML.
static JUNIT: LazyLock<Option<Regex>> =
    LazyLock::new(|| expression(r"<testcase\b(?P<attributes>[^>]*[^/])>\s*<(?:failure|error)\b"));
/// An attribute of a JUnit case.
static ATTRIBUTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| expression(r#"\b(name|classname)="([^"]*)""#));
/// Coverage as pytest-cov, go, istanbul, tarpaulin, llvm-cov and SimpleCov print it.
static COVERAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?m)^(?:TOTAL\s.*?(?P<total>\d+(?:\.\d+)?%)|.*\bcoverage: (?P<go>\d+(?:\.\d+)?%) of statements|(?:#\s|ℹ\s)?\s*[Aa]ll files\s*\|\s*(?P<all>\d+(?:\.\d+)?)\s*\||(?P<tarpaulin>\d+(?:\.\d+)?%) coverage|(?:Lines|Statements)\s*:\s*(?P<nyc>\d+(?:\.\d+)?%)|Line Coverage: (?P<simplecov>\d+(?:\.\d+)?%))",
    )
});

impl TestOutput {
    /// Parses the output of a test program.
    pub(super) fn read(text: &str) -> Self {
        let Some(styling) = &*STYLING else {
            return Self::default();
        };
        let text = styling.replace_all(text, "").replace('\r', "");
        Self {
            totals: totals(&text),
            failing: failing(&text),
            coverage: coverage(&text),
        }
    }

    /// Returns `41 passed, 1 failed, 2 skipped`; empty without a summary line.
    pub(super) fn counts(&self) -> String {
        let Some(Totals {
            passed,
            failed,
            skipped,
        }) = self.totals
        else {
            return String::new();
        };
        format!("{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Totals {
    fn add(&mut self, word: &str, n: u64) {
        let count = match word.to_ascii_lowercase().as_str() {
            "passed" | "passing" | "pass" => &mut self.passed,
            "ignored" | "skipped" | "pending" | "todo" => &mut self.skipped,
            _ => &mut self.failed,
        };
        *count = count.saturating_add(n);
    }
}

fn totals(text: &str) -> Option<Totals> {
    let (count, labelled, run) = (COUNT.as_ref()?, LABELLED.as_ref()?, RUN.as_ref()?);
    let (plain, with_labels) = (TOTALS.as_ref()?, LABELLED_TOTALS.as_ref()?);
    let mut out = None;
    for line in text.lines() {
        if with_labels.is_match(line) {
            let sum: &mut Totals = out.get_or_insert_default();
            let mut others = 0;
            for c in labelled.captures_iter(line) {
                let n = c[2].parse().unwrap_or(0);
                sum.add(&c[1], n);
                others += n;
            }
            let all = run.captures(line).and_then(|c| c[1].parse::<u64>().ok());
            sum.passed += all.map_or(0, |all| all.saturating_sub(others));
        } else if plain.is_match(line) {
            for c in count.captures_iter(line) {
                out.get_or_insert_default()
                    .add(&c[2], c[1].parse().unwrap_or(0));
            }
            if let Some(examples) = examples(line) {
                let sum = out.get_or_insert_default();
                sum.passed = examples.saturating_sub(sum.failed + sum.skipped);
            }
        }
    }
    out
}

/// Parses the number of tests that RSpec or Gradle ran: `12 examples, 1 failure`,
/// `12 tests completed, 1 failed`.
fn examples(line: &str) -> Option<u64> {
    let (n, rest) = line.trim_start().split_once(' ')?;
    let counts_all = rest.starts_with("example") || rest.contains("completed, ");
    n.parse().ok().filter(|_| counts_all)
}

fn failing(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in FAILING.iter().flat_map(|r| r.captures_iter(text)) {
        c.iter()
            .skip(1)
            .flatten()
            .take(1)
            .for_each(|m| add_name(&mut out, m.as_str()));
    }
    junit(text).iter().for_each(|name| add_name(&mut out, name));
    if text.lines().any(|l| l.trim_end().ends_with(" failing")) {
        mocha(text).iter().for_each(|name| add_name(&mut out, name));
    }
    if out.is_empty() {
        let crossed = CROSSED.iter().flat_map(|r| r.captures_iter(text));
        for name in crossed.filter_map(|c| c.name("name")).map(|m| m.as_str()) {
            if !name.ends_with(':') && !out.iter().any(|k| k == name) && out.len() < MAX_NAMES {
                out.push(first_bytes(name, MAX_NAME).to_owned());
            }
        }
    }
    out
}

/// Adds the name of a failed test that is not in the list yet.
fn add_name(names: &mut Vec<String>, name: &str) {
    let name = name.trim().trim_end_matches(" (unhandled)");
    let name = first_bytes(name, MAX_NAME);
    let is_new = !name.is_empty() && !names.iter().any(|known| known == name);
    if is_new && names.len() < MAX_NAMES {
        names.push(name.to_owned());
    }
}

/// Returns the failed cases of JUnit's XML, as `class name`.
fn junit(text: &str) -> Vec<String> {
    let (Some(case), Some(attribute)) = (&*JUNIT, &*ATTRIBUTE) else {
        return Vec::new();
    };
    let names = case.captures_iter(text).map(|c| {
        let parts = ["classname", "name"].map(|key| {
            let mut all = attribute.captures_iter(&c["attributes"]);
            all.find(|a| &a[1] == key).map(|a| a[2].to_owned())
        });
        parts
            .into_iter()
            .flatten()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    });
    names.collect()
}

/// Parses mocha's list of failures: a number, the title and the titles below it, the last one with
/// a colon.
fn mocha(text: &str) -> Vec<String> {
    let Some(entry) = &*MOCHA else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for c in entry.captures_iter(text) {
        let mut title = vec![c["first"].trim()];
        let is_whole = title[0].ends_with(':');
        for line in c["rest"].lines().filter(|_| !is_whole) {
            title.push(line.trim());
            if line.trim_end().ends_with(':') {
                break;
            }
        }
        let name = title.join(" › ");
        out.extend(name.strip_suffix(':').map(str::to_owned));
    }
    out
}

fn coverage(text: &str) -> Option<String> {
    let last = COVERAGE.as_ref()?.captures_iter(text).last()?;
    let percent = last.iter().skip(1).flatten().next()?;
    Some(format!("{}%", percent.as_str().trim_end_matches('%')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_compiles() {
        let all = [
            &STYLING,
            &COUNT,
            &LABELLED,
            &RUN,
            &TOTALS,
            &LABELLED_TOTALS,
            &FAILING,
            &CROSSED,
            &MOCHA,
            &JUNIT,
            &ATTRIBUTE,
            &COVERAGE,
        ];
        assert!(all.iter().all(|r| r.is_some()));
    }

    #[test]
    fn ver_01_the_output_of_test_programs_names_counts_failures_and_coverage() {
        let cargo = "test a::ok ... ok\ntest a::b ... FAILED\n\ntest result: FAILED. 41 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let pytest = "FAILED tests/test_x.py::test_y - assert 1 == 2\nERROR tests/test_z.py::test_w - boom\nTOTAL     120   9   92%\n=== 1 failed, 41 passed, 3 skipped in 1.20s ===\n";
        let unittest = "FAIL: test_x (tests.Pool)\n----\nERROR: test_y (tests.Pool.test_y)\nFAILED (failures=1, errors=1)\n";
        let jest = "  ✕ have names (5 ms)\n\n  ● pools › have names\n\nAll files |   92.1 |   80 |\nTests:       1 failed, 41 passed, 42 total\n";
        let go = "--- FAIL: TestPool (0.00s)\n    --- FAIL: TestPool/empty (0.00s)\nFAIL\nok  \texample.com/a\t0.01s\tcoverage: 92.0% of statements\nFAIL\texample.com/b [build failed]\n";
        let mocha = "\u{1b}[32m  41 passing\u{1b}[0m (1s)\n  1 failing\n\n  1) Pool\n       #close\n         ends once:\n\n      AssertionError: 1 == 2\n";
        let tap = "ok 1 - a\nnot ok 2 - b c # time=1\n";
        let node_tap = "# Subtest: a\nnot ok 1 - a\n  ---\n# tests 2\n# pass 1\n# fail 1\n# skipped 0\n# todo 0\n";
        let node_spec = "✔ one (0.5ms)\n✖ two (1.2ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\n\n✖ failing tests:\n\ntest at a.mjs:3:1\n✖ two (1.2ms)\n";
        let vitest = " FAIL  src/a.test.ts > pool > closes\n Tests  1 failed | 4 passed (5)\n";
        let nextest = "        FAIL [   0.005s] my-crate pool::tests::closes\n     Summary [   0.010s] 2 tests run: 1 passed, 1 failed, 0 skipped\n";
        let rspec =
            "12 examples, 1 failure, 2 pending\n\nrspec ./spec/pool_spec.rb:4 # Pool closes\n";
        let phpunit = "There was 1 failure:\n\n1) Tests\\PoolTest::testClose\nFailed asserting\n";
        let maven = "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 1, Time elapsed: 0.1 s <<< FAILURE!\n[ERROR] com.example.PoolTest.closes -- Time elapsed: 0.01 s <<< FAILURE!\n[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 1\n";
        let gradle = "com.example.PoolTest > closes() FAILED\n    java.lang.AssertionError\n4 tests completed, 1 failed\n";
        let dotnet = "  Failed Example.PoolTests.Closes [12 ms]\nFailed!  - Failed:     1, Passed:     3, Skipped:     0, Total:     4\n";
        let xml = "<testsuite tests=\"2\" failures=\"1\"><testcase classname=\"a.B\" name=\"ok\"/>\n<testcase classname=\"a.B\" name=\"bad\" time=\"0\">\n<failure message=\"x\">y</failure></testcase></testsuite>\n";
        let deno = "closes ... FAILED (3ms)\n\nFAILED | 4 passed | 1 failed (10ms)\n";
        for (text, summary, failing, coverage) in [
            (cargo, "44 passed, 1 failed, 2 skipped", &["a::b"][..], None),
            (
                pytest,
                "41 passed, 1 failed, 3 skipped",
                &["tests/test_x.py::test_y", "tests/test_z.py::test_w"],
                Some("92%"),
            ),
            (
                unittest,
                "",
                &["test_x (tests.Pool)", "test_y (tests.Pool.test_y)"],
                None,
            ),
            (
                jest,
                "41 passed, 1 failed, 0 skipped",
                &["pools › have names"],
                Some("92.1%"),
            ),
            (
                go,
                "",
                &["TestPool", "TestPool/empty", "example.com/b"],
                Some("92.0%"),
            ),
            (
                mocha,
                "41 passed, 1 failed, 0 skipped",
                &["Pool › #close › ends once"],
                None,
            ),
            (tap, "", &["b c"], None),
            (node_tap, "1 passed, 1 failed, 0 skipped", &["a"], None),
            (node_spec, "1 passed, 1 failed, 0 skipped", &["two"], None),
            (
                vitest,
                "4 passed, 1 failed, 0 skipped",
                &["src/a.test.ts > pool > closes"],
                None,
            ),
            (
                nextest,
                "1 passed, 1 failed, 0 skipped",
                &["my-crate pool::tests::closes"],
                None,
            ),
            (
                rspec,
                "9 passed, 1 failed, 2 skipped",
                &["./spec/pool_spec.rb:4 # Pool closes"],
                None,
            ),
            (phpunit, "", &["Tests\\PoolTest::testClose"], None),
            (
                maven,
                "2 passed, 1 failed, 1 skipped",
                &["com.example.PoolTest.closes"],
                None,
            ),
            (
                gradle,
                "3 passed, 1 failed, 0 skipped",
                &["com.example.PoolTest > closes()"],
                None,
            ),
            (
                dotnet,
                "3 passed, 1 failed, 0 skipped",
                &["Example.PoolTests.Closes"],
                None,
            ),
            (xml, "", &["a.B bad"], None),
            (deno, "4 passed, 1 failed, 0 skipped", &["closes"], None),
            ("nothing of the kind: 3 failed attempts\n", "", &[], None),
        ] {
            let r = TestOutput::read(text);
            assert_eq!(r.counts(), summary, "{text}");
            assert_eq!(r.failing, failing, "{text}");
            assert_eq!(r.coverage.as_deref(), coverage, "{text}");
        }
    }

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let many: String = (0..500)
            .map(|i| format!("test t{i}{} ... FAILED\n", "x".repeat(1_000)))
            .collect();
        let read = TestOutput::read(&many);
        assert_eq!(read.failing.len(), MAX_NAMES);
        assert!(read.failing.iter().all(|n| n.len() <= MAX_NAME));
    }
}
