//! Standard output and standard error of commands that print a text.

use crate::error::{Error, ExitStatus, Result};
use std::io::{BufWriter, ErrorKind, Write as _};

/// Writes text to standard output. A closed pipe is not an error.
///
/// # Errors
///
/// The output cannot be written, for example because the disk is full.
pub(super) fn print(text: &str) -> Result<ExitStatus> {
    write(|out| out.write_all(text.as_bytes()))
}

/// Writes to standard output by a function. A closed pipe is not an error.
///
/// # Errors
///
/// Same as [`print`].
pub(super) fn write(
    by: impl FnOnce(&mut dyn std::io::Write) -> std::io::Result<()>,
) -> Result<ExitStatus> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    match by(&mut out).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::incomplete("standard output cannot be written").caused_by(&e))
        }
        _ => Ok(ExitStatus::Pass),
    }
}

/// Writes text to standard error. The caller escapes foreign text.
pub(super) fn eprint(text: &str) {
    // An error of stderr cannot be reported anywhere.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
