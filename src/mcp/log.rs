//! The log of the server on standard error, with `-v`.

use crate::untrusted::Inert;
use std::io::Write as _;

/// Verbosity: 0 nothing, 1 requests and rejections, 2 more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Log(pub(super) u8);

impl Log {
    /// Writes a line if the verbosity is at least `level`. Control characters in untrusted text are
    /// escaped.
    pub(super) fn say(self, level: u8, what: impl FnOnce() -> String) {
        if self.0 >= level {
            let line = format!("serve-mcp: {}\n", Inert::new(what()));
            // A failure to write to standard error cannot be reported.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}
