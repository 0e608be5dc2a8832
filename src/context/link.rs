//! Connects an MCP client with a server: the client gets one end of a pipe, and a task forwards
//! messages between the pipe and the server. The limits apply here, before the SDK sees a byte.

use super::pipe::Closed;
use super::program::{self, Spawn};
use super::web;
use crate::http;
use crate::stop::Stop;
use std::time::{Duration, Instant};
use tokio::io::{DuplexStream, duplex};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

/// Bytes in the pipe between the client and the task.
const PIPE: usize = 64 << 10;
/// Time that a server has to end after the client has disconnected.
const ENDING: Duration = Duration::from_secs(1);

/// A connection.
#[derive(Debug)]
pub(super) struct Link {
    task: JoinHandle<Closed>,
}

impl Link {
    /// Starts a program. Returns the client's end of the pipe.
    pub(super) fn program(spawn: Spawn, deadline: Instant, stop: Stop) -> (Self, DuplexStream) {
        let (ours, theirs) = duplex(PIPE);
        (
            Self {
                task: spawn_local(program::run(spawn, theirs, deadline, stop)),
            },
            ours,
        )
    }

    /// Connects to a server over HTTP. Returns the client's end of the pipe.
    pub(super) fn web(
        server: http::Server,
        url: http::Url,
        deadline: Instant,
        stop: Stop,
    ) -> (Self, DuplexStream) {
        let (ours, theirs) = duplex(PIPE);
        (
            Self {
                task: spawn_local(web::run(server, url, theirs, deadline, stop)),
            },
            ours,
        )
    }

    /// Waits for the end of a connection whose client has disconnected, and ends it after a second.
    pub(super) async fn closed(mut self) -> Closed {
        match timeout(ENDING, &mut self.task).await {
            Ok(Ok(closed)) => closed,
            _ => {
                // Dropping the task ends the program and its group.
                self.task.abort();
                let _ = self.task.await;
                Closed::new("it did not answer", true)
            }
        }
    }
}
