//! Runs the project's own tests if the operator's policy enables them, and parses their output.
//!
//! Only the operator can set the command (see the trust table of the policy). It executes the code
//! under review, so it gets listed environment variables without credentials, its own process
//! group, and a deadline.

mod output;

use super::TestResults;
use crate::env::Env;
use crate::process::{End, Program, find_program, run};
use crate::sandbox::TOOLCHAIN;
use crate::stop::Stop;
use crate::verdict::TestOutcome;
use output::TestOutput;
use std::ffi::OsString;
use std::path::Path;
use std::time::Instant;

/// Variables that the tests get in addition to [`TOOLCHAIN`].
const PERSONAL: &[&str] = &[
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TMPDIR",
    "TERM",
    "XDG_CACHE_HOME",
    "GOCACHE",
    "SystemRoot",
    "USERPROFILE",
];
/// Bytes that are kept of each output stream; of standard error, the last ones.
const MAX_OUTPUT: usize = 32 << 20;
/// Exit code of a POSIX shell for a command that exists but cannot be executed.
const NOT_EXECUTABLE: i32 = 126;
/// Exit code of a POSIX shell for a command that is not found.
const NOT_FOUND: i32 = 127;

/// Runs the command in the top of the worktree and parses its output. `passed` depends only on the
/// exit code. Names, counts and coverage come from the output if its format is known.
pub(super) async fn tests(
    command: &str,
    top: &Path,
    env: &Env,
    deadline: Instant,
    stop: &Stop,
) -> TestResults {
    let shell = match find_program("sh", env, Some(top)) {
        Ok(path) => path,
        Err(e) => return TestResults::not_started(e.to_string()),
    };
    let args = ["-c".into(), command.into()];
    let program = Program {
        path: &shell,
        args: &args,
        env: &environment(env),
        dir: top,
        stdin: b"",
        deadline,
        max_stdout: MAX_OUTPUT,
        max_stderr: MAX_OUTPUT,
        max_memory: None,
    };
    let output = match run(&program, stop).await {
        Ok(output) => output,
        Err(e) => return TestResults::not_started(e.to_string()),
    };
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    results(&TestOutput::read(&text), &output.end)
}

/// Returns the environment variables of the tests.
fn environment(env: &Env) -> Vec<(OsString, OsString)> {
    let names = TOOLCHAIN.iter().chain(PERSONAL);
    names
        .filter_map(|name| Some((OsString::from(name), env.os(name)?.clone())))
        .collect()
}

/// Combines the parsed output with the end of the command.
fn results(read: &TestOutput, end: &End) -> TestResults {
    let (outcome, how) = ending(end);
    let counts = read.counts();
    let summary = match (counts.is_empty(), how.is_empty()) {
        (true, true) => "the command succeeded".to_owned(),
        (true, false) => how,
        (false, true) => counts,
        (false, false) => format!("{counts} ({how})"),
    };
    TestResults {
        outcome,
        summary,
        failing: read.failing.clone(),
        coverage: read.coverage.clone(),
    }
}

/// Returns the outcome and, unless the tests passed, how the command ended.
fn ending(end: &End) -> (TestOutcome, String) {
    match end {
        End::Exit(0) => (TestOutcome::Passed, String::new()),
        End::Exit(code @ (NOT_EXECUTABLE | NOT_FOUND)) => {
            let why = if *code == NOT_FOUND {
                "not found"
            } else {
                "not executable"
            };
            (
                TestOutcome::NotStarted,
                format!("the shell reports a command as {why}, exit code {code}"),
            )
        }
        End::Exit(code) => (TestOutcome::Failed, format!("exit code {code}")),
        End::Signal(signal) => (TestOutcome::Failed, format!("ended by signal {signal}")),
        End::TimedOut => (TestOutcome::TimedOut, "timed out".to_owned()),
        End::Stopped(_) => (TestOutcome::Stopped, "stopped".to_owned()),
        End::OutOfMemory => (TestOutcome::Stopped, "stopped: out of memory".to_owned()),
        End::Ended | End::TooMuch => (
            TestOutcome::Stopped,
            format!("stopped after {MAX_OUTPUT} bytes of output"),
        ),
    }
}

impl TestResults {
    /// Creates the results of tests that did not run.
    pub(super) fn not_started(why: String) -> Self {
        Self {
            outcome: TestOutcome::NotStarted,
            summary: why,
            failing: Vec::new(),
            coverage: None,
        }
    }

    /// Returns why the review is incomplete; `None` if the tests ran to completion.
    pub(super) fn missing(&self) -> Option<String> {
        let what = match self.outcome {
            TestOutcome::Passed | TestOutcome::Failed => return None,
            TestOutcome::NotStarted => "could not be started",
            TestOutcome::TimedOut => "timed out",
            TestOutcome::Stopped => "were stopped",
        };
        Some(format!("the project's tests {what}: {}", self.summary))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ver_01_tests_that_cannot_start_or_end_are_not_failed_tests() {
        let none = TestOutput::default();
        for (end, outcome) in [
            (End::Exit(0), TestOutcome::Passed),
            (End::Exit(1), TestOutcome::Failed),
            (End::Exit(101), TestOutcome::Failed),
            (End::Signal(11), TestOutcome::Failed),
            (End::Exit(126), TestOutcome::NotStarted),
            (End::Exit(127), TestOutcome::NotStarted),
            (End::TimedOut, TestOutcome::TimedOut),
            (End::TooMuch, TestOutcome::Stopped),
        ] {
            let results = results(&none, &end);
            assert_eq!(results.outcome, outcome, "{end:?}");
            let ran = matches!(outcome, TestOutcome::Passed | TestOutcome::Failed);
            assert_eq!(results.missing().is_none(), ran, "{end:?}");
        }
    }
}
