//! The stdio transport of MCP
//! (<https://modelcontextprotocol.io/specification/2025-06-18/basic/transports>): a program that
//! reads and writes a message on each line of its standard input and output.

use super::pipe::{Closed, MAX_MESSAGE};
use crate::process::{self, End, Program};
use crate::stop::Stop;
use std::cell::Cell;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;
use tokio::io::{AsyncWriteExt as _, DuplexStream, WriteHalf, split};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Bytes of all messages of a connection, at most.
const MAX_ALL: usize = 16 << 20;
/// Lines that are not JSON and are skipped, at most: programs print banners.
const MAX_NOISE: u32 = 20;
/// Bytes of standard error that are kept, at most.
const MAX_STDERR: usize = 4 << 10;
/// Bytes of memory of the program and its children, at most.
const MAX_MEMORY: u64 = 2 << 30;

/// A program that serves MCP on its standard input and output.
#[derive(Clone)]
pub(super) struct Spawn {
    pub(super) path: PathBuf,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) dir: PathBuf,
}

/// Runs a program and forwards messages until the client disconnects or the program ends.
pub(super) async fn run(spawn: Spawn, pipe: DuplexStream, deadline: Instant, stop: Stop) -> Closed {
    let (input, output) = split(pipe);
    let noise = Rc::new(Cell::new(0));
    let (sender, receiver) = unbounded_channel();
    let seen = Rc::clone(&noise);
    let talk = async move {
        let program = Program {
            path: &spawn.path,
            args: &spawn.args,
            env: &spawn.env,
            dir: &spawn.dir,
            stdin: &[],
            deadline,
            max_stdout: MAX_ALL,
            max_stderr: MAX_STDERR,
            max_memory: Some(MAX_MEMORY),
        };
        process::converse(&program, &stop, MAX_MESSAGE, input, &mut |line| {
            forward(line, &seen, &sender)
        })
        .await
    };
    let (ended, ()) = tokio::join!(talk, deliver(receiver, output));
    match ended {
        Ok(_) if noise.get() > MAX_NOISE => {
            Closed::new("it does not speak MCP on its standard output", false)
        }
        Ok(output) => Closed::new(
            reason_of(output.end, &output.stderr),
            is_passing(output.end),
        ),
        Err(e) => Closed::new(format!("it cannot be started: {e}"), false),
    }
}

/// Forwards a line of a program if it is JSON. Breaks after too many other lines, or if nothing
/// reads the lines.
fn forward(line: &[u8], noise: &Cell<u32>, to: &UnboundedSender<Vec<u8>>) -> ControlFlow<()> {
    if line.trim_ascii().is_empty() {
        return ControlFlow::Continue(());
    }
    if serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err() {
        noise.set(noise.get() + 1);
        return if noise.get() > MAX_NOISE {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        };
    }
    match to.send(line.to_vec()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// Forwards lines to the client, and closes the pipe after the last one.
async fn deliver(mut lines: UnboundedReceiver<Vec<u8>>, mut output: WriteHalf<DuplexStream>) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if output.write_all(&line).await.is_err() {
            break;
        }
    }
    let _ = output.shutdown().await;
}

/// Returns true if a retry can succeed.
fn is_passing(end: End) -> bool {
    matches!(end, End::Exit(_) | End::Signal(_) | End::Ended)
}

/// Describes the end of a program, with the last line of its standard error if it exited.
fn reason_of(end: End, stderr: &[u8]) -> String {
    let what = match end {
        End::Exit(code) => format!("it exited with code {code}"),
        End::Signal(signal) => format!("it was ended by signal {signal}"),
        End::TimedOut => "it did not answer in time".to_owned(),
        End::Stopped(_) => "the run was stopped".to_owned(),
        End::TooMuch => format!(
            "it sent more than {} MiB at once, or {} MiB in all",
            MAX_MESSAGE >> 20,
            MAX_ALL >> 20
        ),
        End::OutOfMemory => format!("it used more than {} GiB of memory", MAX_MEMORY >> 30),
        End::Ended => "the connection was closed".to_owned(),
    };
    let text = String::from_utf8_lossy(stderr);
    let last = text.lines().rev().map(str::trim).find(|l| !l.is_empty());
    match last.filter(|_| matches!(end, End::Exit(_))) {
        Some(last) => format!("{what}: {}", last.chars().take(200).collect::<String>()),
        None => what,
    }
}
