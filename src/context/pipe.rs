//! What both transports of an MCP server share: the pipe to the client, the limit of a message, and
//! the end of a connection.

use tokio::io::{DuplexStream, ReadHalf};

/// Bytes of one message, at most.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// The reading half of a pipe.
pub(super) type PipeInput = ReadHalf<DuplexStream>;

/// The reason why a connection ended. A lowercase fragment; untrusted and not masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) reason: String,
    /// A retry can succeed.
    pub(super) is_passing: bool,
}

impl Closed {
    pub(super) fn new(reason: impl Into<String>, is_passing: bool) -> Self {
        Self {
            reason: reason.into(),
            is_passing,
        }
    }
}
