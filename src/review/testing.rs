//! Runs the project's own tests, where the operator's policy asks for that, and reads what they say.
//!
//! The command comes from the operator only (see the policy's trust table). It executes what is under review, so it
//! gets an environment of listed names without credentials, a process group of its own and a deadline.

use super::TestResults;
use crate::env::Env;
use crate::process::{End, Program, find_program, run};
use crate::stop::Stop;
use regex::Regex;
use std::ffi::OsString;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Instant;

/// What tests see of the environment: places of tools, the language, nothing that opens a door.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "TERM",
    "XDG_CACHE_HOME",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "MAVEN_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "GEM_HOME",
    "RBENV_ROOT",
    "DOTNET_ROOT",
    "SystemRoot",
    "USERPROFILE",
];
/// Bytes of output that are kept of each stream, the last ones of standard error.
const MAX_OUTPUT: usize = 8 << 20;
/// Failing tests that are named.
const MAX_NAMES: usize = 200;

/// Runs the command in the top of the worktree and reads its output.
pub(super) async fn tests(command: &str, top: &Path, env: &Env, deadline: Instant, stop: &Stop) -> TestResults {
    let failed = |summary: String| TestResults { passed: false, summary, failing: Vec::new(), coverage: None };
    let shell = match find_program("sh", env, Some(top)) {
        Ok(path) => path,
        Err(e) => return failed(format!("the tests were not run: {e}")),
    };
    let vars: Vec<(OsString, OsString)> =
        PASSED.iter().filter_map(|name| Some((OsString::from(name), env.os(name)?.clone()))).collect();
    let args = ["-c".into(), command.into()];
    let program = Program {
        path: &shell,
        args: &args,
        env: &vars,
        dir: top,
        stdin: b"",
        deadline,
        max_stdout: MAX_OUTPUT,
        max_stderr: MAX_OUTPUT,
    };
    let output = match run(&program, stop).await {
        Ok(output) => output,
        Err(e) => return failed(format!("the tests were not run: {e}")),
    };
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    let mut results = read(&text);
    let how = match output.end {
        End::Exit(0) => {
            results.passed = true;
            String::new()
        }
        End::Exit(code) => format!("exit code {code}"),
        End::Signal(signal) => format!("ended by signal {signal}"),
        End::TimedOut => "not done at the deadline".to_owned(),
        End::Stopped(_) => "stopped".to_owned(),
        End::Ended | End::TooMuch => format!("more than {MAX_OUTPUT} bytes of output"),
    };
    results.summary = match (results.summary.is_empty(), how.is_empty()) {
        (true, true) => "the command succeeded".to_owned(),
        (true, false) => how,
        (false, true) => results.summary,
        (false, false) => format!("{} ({how})", results.summary),
    };
    results
}

/// An expression of this file. They are fixed; one that were wrong would read nothing (a test tries each).
fn expression(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

/// Terminal styling, which test programs leave in.
static STYLING: LazyLock<Option<Regex>> = LazyLock::new(|| expression(r"\x1b\[[0-9;]*[A-Za-z]"));
/// `41 passed`, `1 failed`, `2 skipped` of cargo, pytest, jest, vitest and their kin; `41 passing` of mocha.
static COUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(r"(?i)\b(\d+) (passed|passing|failed|failing|failures?|errors?|ignored|skipped|pending|todo)\b")
});
/// A line that sums up: its counts are those of the whole, or of one test program of several.
static TOTALS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"^\s*(?:test result:|Tests:|Tests\s+\d|=+ .*\b\d+ (?:passed|failed|error)|\d+ (?:passing|failing|pending)\b|Tests run:|\d+ (?:passed|failed), )",
    )
});
/// Names of tests that failed, by what programs print: cargo, pytest, go, TAP, jest and vitest.
static FAILING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?m)^(?:test (?P<cargo>\S+)(?: - should panic)? \.\.\. FAILED|FAILED (?P<pytest>\S+)|\s*--- FAIL: (?P<go>\S+)|not ok \d+ -? ?(?P<tap>[^#\n]+)|\s*● (?P<jest>[^\n]*›[^\n]*)|\s*(?:FAIL|×) +(?P<vitest>\S+ > [^\n]+))",
    )
});
/// Coverage as pytest-cov, go, istanbul, tarpaulin and llvm-cov print it.
static COVERAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    expression(
        r"(?m)^(?:TOTAL\s.*?(?P<total>\d+(?:\.\d+)?%)|.*\bcoverage: (?P<go>\d+(?:\.\d+)?%) of statements|All files\s*\|\s*(?P<all>\d+(?:\.\d+)?)\s*\||(?P<tarpaulin>\d+(?:\.\d+)?%) coverage)",
    )
});

/// Reads what a test program says: totals, names of failing tests, coverage.
fn read(text: &str) -> TestResults {
    let mut out = TestResults { passed: false, summary: String::new(), failing: Vec::new(), coverage: None };
    let (Some(styling), Some(count), Some(totals), Some(failing), Some(coverage)) =
        (&*STYLING, &*COUNT, &*TOTALS, &*FAILING, &*COVERAGE)
    else {
        return out;
    };
    let text = styling.replace_all(text, "");
    let (mut passed, mut failed, mut skipped, mut any) = (0u64, 0u64, 0u64, false);
    for line in text.lines().filter(|l| totals.is_match(l)) {
        for c in count.captures_iter(line) {
            let n: u64 = c[1].parse().unwrap_or(0);
            any = true;
            match c[2].to_ascii_lowercase().as_str() {
                "passed" | "passing" => passed += n,
                "ignored" | "skipped" | "pending" | "todo" => skipped += n,
                _ => failed += n,
            }
        }
    }
    if any {
        out.summary = format!("{passed} passed, {failed} failed, {skipped} skipped");
    }
    for c in failing.captures_iter(&text) {
        let name = c.iter().skip(1).flatten().next().map(|m| m.as_str().trim().to_owned());
        if let Some(name) = name.filter(|n| !n.is_empty() && !out.failing.contains(n))
            && out.failing.len() < MAX_NAMES
        {
            out.failing.push(name);
        }
    }
    let percent = coverage.captures_iter(&text).last().and_then(|c| c.iter().skip(1).flatten().next());
    out.coverage = percent.map(|m| format!("{}%", m.as_str().trim_end_matches('%')));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_test_programs_print_is_understood() {
        let cargo = "test a::ok ... ok\ntest a::b ... FAILED\n\ntest result: FAILED. 41 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.1s\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let pytest = "FAILED tests/test_x.py::test_y - assert 1 == 2\nTOTAL     120   9   92%\n=== 1 failed, 41 passed, 3 skipped in 1.20s ===\n";
        let jest =
            "  ● pools › have names\n\nAll files |   92.1 |   80 |\nTests:       1 failed, 41 passed, 42 total\n";
        let go = "--- FAIL: TestPool (0.00s)\nFAIL\nok  \texample.com/a\t0.01s\tcoverage: 92.0% of statements\n";
        let mocha = "\u{1b}[32m  41 passing\u{1b}[0m (1s)\n  1 failing\n";
        let tap = "ok 1 - a\nnot ok 2 - b c # time=1\n";
        for (text, summary, failing, coverage) in [
            (cargo, "44 passed, 1 failed, 2 skipped", &["a::b"][..], None),
            (pytest, "41 passed, 1 failed, 3 skipped", &["tests/test_x.py::test_y"], Some("92%")),
            (jest, "41 passed, 1 failed, 0 skipped", &["pools › have names"], Some("92.1%")),
            (go, "", &["TestPool"], Some("92.0%")),
            (mocha, "41 passed, 1 failed, 0 skipped", &[], None),
            (tap, "", &["b c"], None),
            ("nothing of the kind: 3 failed attempts\n", "", &[], None),
        ] {
            let r = read(text);
            assert_eq!(r.summary, summary, "{text}");
            assert_eq!(r.failing, failing, "{text}");
            assert_eq!(r.coverage.as_deref(), coverage, "{text}");
        }
    }
}
