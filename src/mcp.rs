//! The MCP server: input and output lines (`lines`), open requests (`calls`), the tools (`tools`),
//! and the paths that clients may name (`fence`). It has no review logic: a tool builds a request
//! and calls the same functions as the command line.

mod answer;
mod args;
mod batch;
mod calls;
mod fence;
mod lines;
mod log;
mod progress;
mod prompts;
mod resources;
mod scan;
mod server;
mod tools;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::review::SCAN_STACK;
use crate::stop::Signal;
use calls::Calls;
use fence::Fence;
use lines::ConnectionEnds;
use log::Log;
use rmcp::service::ServerInitializeError;
use server::{McpServer, Shared};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Time that stopped runs have to end. A program that ignores a signal is killed after 600 ms, so
/// that the server ends well within 2 s, including the grace period of open requests and the last
/// lines.
const STOPPING: Duration = Duration::from_millis(900);
/// Time limit for writing the last lines.
const WRITING: Duration = Duration::from_millis(100);

/// Options of the server.
#[derive(Debug)]
pub struct Serve {
    /// Folder that clients may name paths in. `None`: the repository around `dir`, else `dir`.
    pub root: Option<PathBuf>,
    /// Folder in which the program was started.
    pub dir: PathBuf,
    /// A policy file that the operator named.
    pub config: Option<PathBuf>,
    pub env: Env,
    /// Verbosity of the log on standard error.
    pub verbose: u8,
}

/// Serves one client over standard input and output until it disconnects.
///
/// # Errors
///
/// Usage: `root` is not a directory. Incomplete: a thread or the runtime cannot be started.
pub fn serve(serve: Serve) -> Result<()> {
    let env = without_git(&serve.env, &serve.dir);
    let fence = Fence::new(serve.root.as_deref(), &serve.dir, &env)?;
    let config = serve.config.map(|c| serve.dir.join(c));
    let calls = Arc::new(Calls::default());
    let log = Log(serve.verbose);
    let shared = Shared {
        env,
        config,
        fence,
        calls: Arc::clone(&calls),
        log,
        tools: tools::ALL,
    };
    let (lines, ends) = lines::open(std::io::stdin(), std::io::stdout(), Arc::clone(&calls), log)
        .map_err(|e| not_started(&e))?;
    // Reviews run on threads of the runtime.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder
        .thread_stack_size(SCAN_STACK)
        .enable_all()
        .build()
        .map_err(|e| not_started(&e))?;
    let ended = runtime.block_on(until_gone(McpServer::new(shared), lines, ends, &calls));
    // Remaining tasks must not delay the exit.
    runtime.shutdown_background();
    ended
}

fn not_started(e: &std::io::Error) -> Error {
    Error::incomplete("the server cannot be started").caused_by(e)
}

/// Returns the stream of a signal.
fn signals(kind: SignalKind) -> Result<tokio::signal::unix::Signal> {
    signal(kind).map_err(|e| Error::incomplete("signals cannot be heard").caused_by(&e))
}

/// Serves until the client disconnects or a signal arrives, then waits until the runs have stopped.
async fn until_gone(
    server: McpServer,
    lines: lines::LineConnection,
    ends: ConnectionEnds,
    calls: &Calls,
) -> Result<()> {
    let mut terminate = signals(SignalKind::terminate())?;
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut hangup = signals(SignalKind::hangup())?;
    let ConnectionEnds { gone, written } = ends;
    let heard = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
        calls.stop(Signal::Terminate);
        gone.send_replace(true);
        std::future::pending::<()>().await;
    };
    let stopping = async {
        let began = calls.ending().await;
        let _ = tokio::time::timeout_at(began + STOPPING, calls.still()).await;
        // A client that does not read its answers would otherwise delay the exit without end.
        tokio::time::sleep(WRITING).await;
    };
    tokio::select! {
        () = served(server, lines) => {}
        () = heard => {}
        () = stopping => {}
    }
    // Programs that a review started end with it. The wait for them is bounded.
    let began = calls.stop(Signal::Terminate);
    let _ = tokio::time::timeout_at(began + STOPPING, calls.still()).await;
    let _ = tokio::time::timeout(WRITING, written).await;
    Ok(())
}

/// Serves until the client disconnects.
async fn served(server: McpServer, lines: lines::LineConnection) {
    let running = match rmcp::serve_server(server, lines).await {
        Ok(running) => running,
        // The client disconnected before the handshake, or the answer to it could not be written.
        Err(
            ServerInitializeError::ConnectionClosed(_)
            | ServerInitializeError::TransportError { .. },
        ) => return,
        // The client got an error message.
        Err(_) => return,
    };
    // A closed and a cancelled session end in the same way.
    let _ = running.waiting().await;
}

/// Removes the variables that point git at another repository: only arguments of a call select the
/// repository.
fn without_git(env: &Env, dir: &std::path::Path) -> Env {
    const POINTERS: &[&str] = &[
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
    ];
    let kept = env
        .vars()
        .filter(|(name, _)| !POINTERS.iter().any(|p| *name == std::ffi::OsStr::new(p)));
    Env::from_pairs(dir.to_owned(), kept)
}
