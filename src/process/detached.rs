//! Programs that outlive this one: started without a terminal, identified later, and ended as a
//! group.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The priority of background work: the lowest. Linux derives the priority of its disk access from
/// it.
const LOWEST: i32 = 19;

/// A program to start without waiting for it.
pub struct Detached<'a> {
    /// Absolute path.
    pub path: &'a Path,
    pub args: &'a [OsString],
    /// The whole environment: nothing is inherited.
    pub env: &'a [(OsString, OsString)],
    /// Working directory, absolute.
    pub dir: &'a Path,
    /// Receives its standard output and standard error.
    pub log: &'a File,
}

impl fmt::Debug for Detached<'_> {
    /// Omits the environment, which can contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detached")
            .field("path", &self.path)
            .field("args", &self.args)
            .finish_non_exhaustive()
    }
}

/// Starts a program and does not wait for it. It gets none of the caller's descriptors, so that a
/// caller that reads a pipe of this program to its end does not wait either.
///
/// The program is still in the session of the caller until it calls [`leave`].
///
/// # Errors
///
/// The program cannot be started.
pub fn start(program: &Detached<'_>) -> io::Result<()> {
    let mut command = Command::new(program.path);
    command
        .args(program.args)
        .env_clear()
        .envs(program.env.iter().map(|(k, v)| (k, v)))
        .current_dir(program.dir);
    command
        .stdin(Stdio::null())
        .stdout(program.log.try_clone()?)
        .stderr(program.log.try_clone()?);
    // Descriptors of this process are closed on exec. Descriptors that its caller left open are
    // closed here.
    #[cfg(unix)]
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    // It outlives this process, and init waits for it.
    command.spawn().map(drop)
}

/// Moves this process into its own session without a terminal, and gives it the lowest priority.
///
/// A process that leads a group cannot do that and stays in its session, which does not occur after
/// [`start`].
#[cfg(unix)]
pub fn leave() {
    let _ = rustix::process::setsid();
    let _ = rustix::process::setpriority_process(None, LOWEST);
}

/// Returns what distinguishes a running process from a later one with the same ID: its start time
/// in clock ticks since boot, from `/proc`. `None` if the process does not exist, or on systems
/// without `/proc`.
pub fn birth(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    birth_in(&text)
}

/// Reads field 22 of `/proc/PID/stat`. The name in parentheses can contain anything, so fields are
/// counted from its end.
fn birth_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// How the processes of a group are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupEnding {
    /// The processes can finish writing.
    Politely,
    AtOnce,
}

/// Sends a signal to the process group that a process leads. The caller has checked that the
/// process is its own.
///
/// # Errors
///
/// No such group, or one of another user.
#[cfg(unix)]
pub fn end_group(pid: u32, ending: GroupEnding) -> io::Result<()> {
    let leader = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let leader = leader.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let signal = match ending {
        GroupEnding::Politely => rustix::process::Signal::TERM,
        GroupEnding::AtOnce => rustix::process::Signal::KILL,
    };
    Ok(rustix::process::kill_process_group(leader, signal)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_time_is_read_behind_any_name() {
        let rest = "S 17 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 4096000 321";
        for name in ["sh", "a) S 9 9", "x y"] {
            assert_eq!(birth_in(&format!("42 ({name}) {rest}")), Some(99), "{name}");
        }
        assert_eq!(birth_in("42 (sh) S 17"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_does_not_exist_has_no_start_time() {
        assert!(birth(std::process::id()).is_some());
        assert_eq!(birth(u32::MAX - 1), None);
    }
}
