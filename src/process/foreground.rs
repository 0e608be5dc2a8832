//! Runs a program in the foreground: it gets the terminal, as if a user had started it in a shell.

use super::{End, GRACE, end_of};
use crate::stop::Stop;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use tokio::process::Command;
use tokio::time::timeout;

/// A program that gets the terminal.
#[derive(Clone, Copy, Debug)]
pub struct Foreground<'a> {
    /// Absolute path; see [`super::find_program`].
    pub path: &'a Path,
    pub args: &'a [OsString],
    /// The whole environment.
    pub env: &'a [(OsString, OsString)],
    /// Working directory, absolute.
    pub dir: &'a Path,
}

/// Runs a program with the standard streams and in the process group of this one, so that the keys
/// of the terminal (Ctrl-C, Ctrl-Z) reach it. Waits for its end. If the run is stopped, the program
/// gets SIGTERM.
///
/// # Errors
/// It cannot be started.
pub async fn foreground(program: &Foreground<'_>, stop: &Stop) -> io::Result<End> {
    let mut command = Command::new(program.path);
    command
        .args(program.args)
        .env_clear()
        .envs(program.env.iter().map(|(k, v)| (k, v)))
        .current_dir(program.dir);
    #[cfg(unix)]
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut child = command.spawn()?;
    tokio::select! {
        status = child.wait() => Ok(end_of(status?)),
        signal = stop.wait() => {
            ask_to_end(&child);
            if timeout(GRACE, child.wait()).await.is_err() {
                child.kill().await?;
            }
            Ok(End::Stopped(signal))
        }
    }
}

#[cfg(unix)]
fn ask_to_end(child: &tokio::process::Child) {
    let id = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(rustix::process::Pid::from_raw);
    if let Some(id) = id {
        // The program may have ended in the meantime.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn ask_to_end(_: &tokio::process::Child) {}
