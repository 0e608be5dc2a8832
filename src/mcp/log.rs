//! What the server says of itself, on standard error, to whoever started it with `-v`.

use crate::untrusted::Inert;
use std::io::Write as _;

/// How much is said: 0 nothing, 1 what is asked and refused, 2 more.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Log(pub(super) u8);

impl Log {
    /// Says something, where that much is wanted. Foreign text in it is shown, not acted on.
    pub(super) fn say(self, level: u8, what: impl FnOnce() -> String) {
        if self.0 >= level {
            let line = format!("serve-mcp: {}\n", Inert::new(what()));
            // Nobody is left to tell when stderr is gone.
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }
}
