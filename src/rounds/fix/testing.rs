//! Runs the project's tests on a fix. A model wrote the code under test, so that it runs in the sandbox or not at all.

use super::copy::Copy;
use crate::env::Env;
use crate::policy::TestsPolicy;
use crate::process::End;
use crate::sandbox::{Folders, Sandbox, Settings};
use crate::stop::Stop;
use std::io;
use std::path::Path;
use std::time::Instant;

/// Lines of output that are kept, the last ones.
const MOST_LINES: usize = 60;

/// The result of the tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tests {
    /// The policy does not run tests.
    NotAsked,
    Passed,
    /// The last lines of their output.
    Failed(String),
    /// They did not run, and why.
    NotRun(String),
}

/// Runs the command of the policy in a copy.
pub(super) fn run(
    policy: &TestsPolicy,
    (copy, top): (&Copy, &Path),
    env: &Env,
    deadline: Instant,
    stop: &Stop,
) -> Tests {
    let Some(command) = policy.command.as_deref().filter(|_| policy.run) else { return Tests::NotAsked };
    let settings = Settings { command: &policy.sandbox, paths: &policy.sandbox_paths, top: Some(top) };
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        io::Result::Ok(runtime.block_on(tested(command, &settings, copy, env, deadline, stop)))
    };
    // The caller's thread may be part of a runtime.
    let done = std::thread::scope(|s| s.spawn(work).join());
    match done {
        Ok(Ok(tests)) => tests,
        Ok(Err(e)) => Tests::NotRun(e.to_string()),
        Err(_) => Tests::NotRun("an internal error ended the tests".to_owned()),
    }
}

async fn tested(
    command: &str,
    settings: &Settings<'_>,
    copy: &Copy,
    env: &Env,
    deadline: Instant,
    stop: &Stop,
) -> Tests {
    let folders = || Folders { tree: copy.top(), scratch: copy.scratch() };
    let sandbox = match Sandbox::open(settings, env, folders(), stop).await {
        Ok(sandbox) => sandbox,
        Err(why) => return Tests::NotRun(format!("{why}; install bubblewrap or set sandbox in [tests]")),
    };
    let output = match sandbox.run(command, folders(), deadline, stop).await {
        Ok(output) => output,
        Err(e) => return Tests::NotRun(format!("the sandbox does not start: {e}")),
    };
    let said = || {
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(MOST_LINES)..].join("\n")
    };
    match output.end {
        End::Exit(0) => Tests::Passed,
        End::Exit(code @ (126 | 127)) => {
            Tests::NotRun(format!("the command cannot be run in the sandbox (exit code {code})"))
        }
        End::Exit(_) | End::Signal(_) => Tests::Failed(said()),
        End::TimedOut => Tests::NotRun("they did not end in time".to_owned()),
        End::OutOfMemory => Tests::NotRun("they ran out of memory".to_owned()),
        End::Stopped(_) => Tests::NotRun("the run was ended".to_owned()),
        End::Ended | End::TooMuch => Tests::NotRun("they wrote too much output".to_owned()),
    }
}
