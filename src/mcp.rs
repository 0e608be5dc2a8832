//! The MCP server: lines in and out (`lines`), what is open (`calls`), the menu (`tools`), and where clients may
//! point (`fence`). No review logic: a tool builds a request and calls what the command line calls.

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
use lines::Ends;
use log::Log;
use rmcp::service::ServerInitializeError;
use server::{Server, Shared};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How long stopped runs may take to end: a program that does not heed a signal is killed after 600 ms. With the grace
/// of what is still open and the last lines, it is over well within 2 s.
const STOPPING: Duration = Duration::from_millis(900);
/// How long the last lines may take to be written.
const WRITING: Duration = Duration::from_millis(100);

/// How the server is started.
#[derive(Debug)]
pub struct Serve {
    /// The folder that clients may point into; `None`: the repository around `dir`, else `dir`.
    pub root: Option<PathBuf>,
    /// Where the program was started.
    pub dir: PathBuf,
    /// A policy file that the operator named.
    pub config: Option<PathBuf>,
    pub env: Env,
    /// How much is said on standard error.
    pub verbose: u8,
}

/// Serves one client over standard input and output until it goes away.
///
/// # Errors
///
/// Usage: the folder is none. Incomplete: no thread, no runtime.
pub fn serve(serve: Serve) -> Result<()> {
    let env = without_git(&serve.env, &serve.dir);
    let fence = Fence::new(serve.root.as_deref(), &serve.dir, &env)?;
    let config = serve.config.map(|c| serve.dir.join(c));
    let calls = Arc::new(Calls::default());
    let log = Log(serve.verbose);
    let shared = Shared { env, config, fence, calls: Arc::clone(&calls), log, tools: tools::ALL };
    let failed = |e: std::io::Error| Error::incomplete("the server cannot be started").caused_by(&e);
    let (lines, ends) = lines::open(std::io::stdin(), std::io::stdout(), Arc::clone(&calls), log).map_err(failed)?;
    // Reviews run on threads of the runtime.
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.thread_stack_size(SCAN_STACK).enable_all().build().map_err(failed)?;
    let ended = runtime.block_on(until_gone(Server::new(shared), lines, ends, &calls));
    // Nothing that is left may hold the program up.
    runtime.shutdown_background();
    ended
}

/// Serves until the client or a signal ends it, and until what ran has stopped.
async fn until_gone(server: Server, lines: lines::Lines, ends: Ends, calls: &Calls) -> Result<()> {
    let failed = |e: std::io::Error| Error::incomplete("signals cannot be heard").caused_by(&e);
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let Ends { gone, written } = ends;
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
        // Answers that nobody reads would be waited for without end.
        tokio::time::sleep(WRITING).await;
    };
    tokio::select! {
        () = served(server, lines) => {}
        () = heard => {}
        () = stopping => {}
    }
    // Programs that a review started end with it; it is waited for, not for long.
    let began = calls.stop(Signal::Terminate);
    let _ = tokio::time::timeout_at(began + STOPPING, calls.still()).await;
    let _ = tokio::time::timeout(WRITING, written).await;
    Ok(())
}

/// Serves until the client is gone.
async fn served(server: Server, lines: lines::Lines) {
    let running = match rmcp::serve_server(server, lines).await {
        Ok(running) => running,
        // Nobody began a session, or the answer could not be written: the client is gone.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::TransportError { .. }) => return,
        // The client was told.
        Err(_) => return,
    };
    // Whether it was closed or cancelled, it is over.
    let _ = running.waiting().await;
}

/// Leaves out the variables by which git is pointed at another repository: which one is meant, a call says.
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
    let kept = env.vars().filter(|(name, _)| !POINTERS.iter().any(|p| *name == std::ffi::OsStr::new(p)));
    Env::from_pairs(dir.to_owned(), kept)
}
