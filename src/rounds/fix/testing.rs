//! Runs the project's tests on a fix. A model wrote the code under test, so it runs only in the
//! sandbox.
//!
//! That code can imitate the exit of a missing program or of a lack of memory. So an unusual exit
//! is attributed to the sandbox only if the tests exit in the same way without the fix.

use super::copy::Copy;
use crate::env::Env;
use crate::policy::TestsPolicy;
use crate::process::{End, Output};
use crate::sandbox::{Folders, Sandbox, Settings};
use crate::stop::Stop;
use crate::untrusted::Inert;
use std::io;
use std::path::Path;
use std::time::Instant;

/// Last lines of output that are kept.
const MOST_LINES: usize = 60;
/// Bytes of these lines that are kept. They are stored, printed, and sent to the model.
const MOST_BYTES: usize = 8 << 10;

/// The result of the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tests {
    /// The policy does not run tests.
    NotAsked,
    Passed,
    /// Reason, with the last lines of output.
    Failed(String),
    /// They did not run, for this reason.
    NotRun(String),
}

/// The code under test.
#[derive(Clone, Copy, Debug)]
pub(super) struct TestSubject<'a> {
    /// Private copy with the fix.
    pub(super) fixed: &'a Copy,
    /// Unmodified copy without the fix.
    pub(super) base: &'a Copy,
    /// The user's worktree.
    pub(super) top: &'a Path,
}

/// Runs the policy's command in a copy.
pub(super) fn run(
    policy: &TestsPolicy,
    subject: TestSubject<'_>,
    env: &Env,
    deadline: Instant,
    stop: &Stop,
) -> Tests {
    let Some(command) = policy.command.as_deref().filter(|_| policy.run) else {
        return Tests::NotAsked;
    };
    let settings = Settings {
        command: &policy.sandbox,
        paths: &policy.sandbox_paths,
        top: Some(subject.top),
    };
    // The caller's thread may belong to a runtime.
    let done = std::thread::scope(|s| {
        let thread = s.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            io::Result::Ok(
                runtime.block_on(tested(command, &settings, subject, env, deadline, stop)),
            )
        });
        thread.join()
    });
    match done {
        Ok(Ok(tests)) => tests,
        Ok(Err(e)) => Tests::NotRun(e.to_string()),
        Err(_) => Tests::NotRun("an internal error ended the tests".to_owned()),
    }
}

async fn tested(
    command: &str,
    settings: &Settings<'_>,
    subject: TestSubject<'_>,
    env: &Env,
    deadline: Instant,
    stop: &Stop,
) -> Tests {
    let sandbox = match Sandbox::open(settings, env, folders(subject.fixed), stop).await {
        Ok(sandbox) => sandbox,
        Err(why) => {
            return Tests::NotRun(format!(
                "{why}; install bubblewrap or set sandbox in [tests]"
            ));
        }
    };
    let output = match sandbox
        .run(command, folders(subject.fixed), deadline, stop)
        .await
    {
        Ok(output) => output,
        Err(e) => return Tests::NotRun(format!("the sandbox does not start: {e}")),
    };
    let why = match output.end {
        End::Exit(0) => return Tests::Passed,
        End::Stopped(_) => return Tests::NotRun("the run was ended".to_owned()),
        End::Exit(code @ (126 | 127)) => {
            format!("the command cannot be run in the sandbox (exit code {code})")
        }
        End::OutOfMemory => "they ran out of memory".to_owned(),
        End::Ended | End::TooMuch => "they wrote too much output".to_owned(),
        // The remaining time may be too short for a second run.
        End::TimedOut => return Tests::Failed(with_output("they did not end in time", &output)),
        End::Exit(code) => {
            return Tests::Failed(with_output(&format!("exit code {code}"), &output));
        }
        End::Signal(signal) => {
            return Tests::Failed(with_output(&format!("signal {signal}"), &output));
        }
    };
    let Ok(original) = subject.base.again(stop) else {
        return Tests::Failed(with_output(&why, &output));
    };
    match sandbox
        .run(command, folders(&original), deadline, stop)
        .await
    {
        Ok(without) if without.end == output.end => Tests::NotRun(why),
        _ => Tests::Failed(with_output(&why, &output)),
    }
}

/// Returns the folders of a copy for the sandbox.
fn folders(copy: &Copy) -> Folders<'_> {
    Folders {
        tree: copy.top(),
        scratch: copy.scratch(),
    }
}

/// Returns the last lines of the tests' output.
fn last_lines(output: &Output) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // Escapes lengthen the text, so it is measured as printed and sent.
    let lines: Vec<String> = Inert::lines(&text).map(|line| line.to_string()).collect();
    let last = lines[lines.len().saturating_sub(MOST_LINES)..].join("\n");
    let start =
        (last.len().saturating_sub(MOST_BYTES)..last.len()).find(|at| last.is_char_boundary(*at));
    start.map_or_else(String::new, |start| last[start..].to_owned())
}

/// Returns why the tests did not pass, with the last lines of their output.
fn with_output(why: &str, output: &Output) -> String {
    match last_lines(output) {
        lines if lines.trim().is_empty() => format!("{why}, and no output"),
        lines => format!("{why}\n{lines}"),
    }
}
