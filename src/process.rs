//! Runs the few programs that an operator configures: backends, key commands, the project's tests.
//!
//! A program gets only its arguments, an environment of listed variables, a folder, and its
//! standard input: no descriptor of this process, and no shell. It leads its own process group,
//! which ends with it: at its deadline, when the run is stopped, and when it leaves children
//! behind.

pub mod detached;
mod editor;
mod find;
mod foreground;
mod memory;

pub use editor::edit;
pub use find::{Unfit, find_program};
pub use foreground::{Foreground, foreground};

use crate::log::millis;
use crate::stop::{Signal, Stop};
use crate::untrusted::Inert;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};
use tokio::time::{sleep, sleep_until, timeout};

/// Time between SIGTERM and SIGKILL for a program that is late.
const GRACE: Duration = Duration::from_secs(5);
/// The same, when a user waits for the prompt.
const SHORT_GRACE: Duration = Duration::from_millis(600);
/// Time for reading the rest of the pipes after all writers have ended.
const DRAIN: Duration = Duration::from_millis(500);
/// Interval at which a terminated group is checked.
const LOOK: Duration = Duration::from_millis(10);
/// Retries for a program whose file is still open for writing.
const BUSY_TRIES: u32 = 20;

/// A program to run, with all of its inputs.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// Absolute path; see [`find_program`].
    pub path: &'a Path,
    pub args: &'a [OsString],
    /// The whole environment: nothing is inherited.
    pub env: &'a [(OsString, OsString)],
    /// Working directory, absolute.
    pub dir: &'a Path,
    pub stdin: &'a [u8],
    pub deadline: Instant,
    /// Bytes of standard output, at most; more ends the program.
    pub max_stdout: usize,
    /// Bytes of standard error that are kept, the last ones. All of it is read.
    pub max_stderr: usize,
    /// Bytes of memory that the program and its descendants may use together, on Linux; more ends
    /// them.
    pub max_memory: Option<u64>,
}

impl fmt::Debug for Program<'_> {
    /// Omits the values of the environment and the input: both can contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Program")
            .field("path", &self.path)
            .field("args", &self.args)
            .field("env", &names)
            .field("dir", &self.dir)
            .field("stdin", &self.stdin.len())
            .finish_non_exhaustive()
    }
}

/// The output of a program.
#[derive(Debug)]
pub struct Output {
    pub end: End,
    /// Empty if the lines were passed on one by one.
    pub stdout: Vec<u8>,
    /// The last bytes of standard error.
    pub stderr: Vec<u8>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Exited with this code.
    Exit(i32),
    /// Ended by a signal that this program did not send.
    Signal(i32),
    /// Ended at its deadline.
    TimedOut,
    /// Ended because the run was stopped.
    Stopped(Signal),
    /// Exceeded the limit of its output.
    TooMuch,
    /// Exceeded the memory limit, with its descendants.
    OutOfMemory,
    /// Ended by the reader of its lines.
    Ended,
}

/// Runs a program to its end and returns its output.
///
/// # Errors
/// The program cannot be started.
pub async fn run(program: &Program<'_>, stop: &Stop) -> io::Result<Output> {
    let mut stdout = Vec::new();
    let (end, stderr) = supervise(program, stop, program.stdin, &mut |bytes: &[u8]| {
        if stdout.len() + bytes.len() > program.max_stdout {
            return ControlFlow::Break(End::TooMuch);
        }
        stdout.extend_from_slice(bytes);
        ControlFlow::Continue(())
    })
    .await?;
    Ok(Output {
        end,
        stdout,
        stderr,
    })
}

/// Runs a program like [`run`], for blocking callers: on another thread, because the caller's may
/// belong to a runtime.
///
/// # Errors
/// It cannot be started.
pub fn wait(program: &Program<'_>, stop: &Stop) -> io::Result<Output> {
    let output = std::thread::scope(|s| {
        let thread = s.spawn(|| {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?
                .block_on(run(program, stop))
        });
        thread.join()
    });
    output.unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// Runs a program to its end and passes on each line of its standard output, without the line end.
/// Text after the last line end counts as a line. A line of more than `max_line` bytes ends the
/// program, and so does a break by `on_line`.
///
/// # Errors
/// The program cannot be started.
pub async fn run_lines(
    program: &Program<'_>,
    stop: &Stop,
    max_line: usize,
    on_line: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<Output> {
    converse(program, stop, max_line, program.stdin, on_line).await
}

/// Runs a program like [`run_lines`], and copies `input` to its standard input until it ends.
///
/// # Errors
/// It cannot be started.
pub async fn converse(
    program: &Program<'_>,
    stop: &Stop,
    max_line: usize,
    input: impl AsyncRead + Unpin,
    on_line: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<Output> {
    let mut lines = LineSplitter {
        seen: 0,
        rest: Vec::new(),
        max: program.max_stdout,
        max_line,
        on_line,
    };
    let (mut end, stderr) =
        supervise(program, stop, input, &mut |bytes: &[u8]| lines.take(bytes)).await?;
    let LineSplitter { rest, on_line, .. } = lines;
    if !rest.is_empty() && !matches!(end, End::TooMuch | End::Ended) && on_line(&rest).is_break() {
        end = End::Ended;
    }
    Ok(Output {
        end,
        stdout: Vec::new(),
        stderr,
    })
}

/// Splits the output of a program into lines.
struct LineSplitter<'a> {
    /// Number of the bytes so far.
    seen: usize,
    /// The start of a line whose end has not come yet.
    rest: Vec<u8>,
    /// Bytes of output, at most.
    max: usize,
    /// Bytes of a line, at most.
    max_line: usize,
    on_line: &'a mut dyn FnMut(&[u8]) -> ControlFlow<()>,
}

impl LineSplitter<'_> {
    /// Passes on the lines that end in these bytes.
    fn take(&mut self, mut bytes: &[u8]) -> ControlFlow<End> {
        self.seen += bytes.len();
        if self.seen > self.max {
            return ControlFlow::Break(End::TooMuch);
        }
        while let Some(i) = memchr::memchr(b'\n', bytes) {
            let (line, after) = (&bytes[..i], &bytes[i + 1..]);
            if self.rest.len() + line.len() > self.max_line {
                return ControlFlow::Break(End::TooMuch);
            }
            let next = if self.rest.is_empty() {
                (self.on_line)(line)
            } else {
                self.rest.extend_from_slice(line);
                let next = (self.on_line)(&self.rest);
                self.rest.clear();
                next
            };
            if next.is_break() {
                return ControlFlow::Break(End::Ended);
            }
            bytes = after;
        }
        if self.rest.len() + bytes.len() > self.max_line {
            return ControlFlow::Break(End::TooMuch);
        }
        self.rest.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }
}

/// Receives the output of a program, and may end it.
type Take<'a> = dyn FnMut(&[u8]) -> ControlFlow<End> + 'a;

/// Runs a program, and supervises its end.
async fn supervise(
    program: &Program<'_>,
    stop: &Stop,
    mut input: impl AsyncRead + Unpin,
    take: &mut Take<'_>,
) -> io::Result<(End, Vec<u8>)> {
    if let Some(signal) = stop.signal() {
        return Ok((End::Stopped(signal), Vec::new()));
    }
    if program.deadline <= Instant::now() {
        return Ok((End::TimedOut, Vec::new()));
    }
    let started = Instant::now();
    let mut child = start(program).await?;
    let mut group = ProcessGroup::of(&child);
    let child_id = child.id();
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the program has no pipes"));
    };
    let mut last = Tail {
        bytes: Vec::new(),
        max: program.max_stderr,
    };
    let end = {
        let feed = async move {
            // A program may stop reading early.
            let _ = tokio::io::copy(&mut input, &mut stdin).await;
            let _ = stdin.shutdown().await;
            drop(stdin);
            Ok(())
        };
        let pump = async {
            let read = drink(stdout, take);
            let mut keep = |bytes: &[u8]| {
                last.push(bytes);
                ControlFlow::Continue(())
            };
            let log = drink(stderr, &mut keep);
            tokio::try_join!(feed, read, log).err()
        };
        tokio::pin!(pump);
        let mut pumping = true;
        let end = loop {
            tokio::select! {
                biased;
                signal = stop.wait() => break End::Stopped(signal),
                early = &mut pump, if pumping => {
                    pumping = false;
                    if let Some(end) = early {
                        break end;
                    }
                }
                status = child.wait() => break end_of(status?),
                () = sleep_until(program.deadline.into()) => break End::TimedOut,
                () = memory::exceeds(child_id, program.max_memory) => break End::OutOfMemory,
            }
        };
        // Its last output is read, so that a full pipe does not block it.
        let ending = async {
            match end {
                End::Exit(_) | End::Signal(_) => group.end(&mut child, DRAIN).await,
                End::Stopped(_) | End::TooMuch | End::OutOfMemory | End::Ended => {
                    group.end(&mut child, SHORT_GRACE).await;
                }
                End::TimedOut => tokio::select! {
                    () = group.end(&mut child, GRACE) => {}
                    () = async { stop.wait().await; sleep(SHORT_GRACE).await } => {}
                },
            }
            group.kill(&mut child).await;
        };
        tokio::pin!(ending);
        let mut early = None;
        loop {
            tokio::select! {
                () = &mut ending => break,
                over = &mut pump, if pumping => {
                    pumping = false;
                    early = over;
                }
            }
        }
        if pumping {
            early = timeout(DRAIN, &mut pump).await.ok().flatten();
        }
        match end {
            End::Exit(_) | End::Signal(_) => early.unwrap_or(end),
            _ => end,
        }
    };
    let program = Inert::new(program.path.display().to_string());
    tracing::debug!(%program, ?end, ms = millis(started, Instant::now()), "program ended");
    Ok((end, last.bytes))
}

/// Starts the program as the leader of a process group.
async fn start(program: &Program<'_>) -> io::Result<Child> {
    let mut command = Command::new(program.path);
    command
        .args(program.args)
        .env_clear()
        .envs(program.env.iter().map(|(k, v)| (k, v)))
        .current_dir(program.dir);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    {
        command.process_group(0);
        // Descriptors of this process are closed on exec. Descriptors that its caller left open are
        // closed here.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
    }
    let mut tries = 0;
    loop {
        match command.spawn() {
            // The file was just installed, and is still open for writing in a process that is about
            // to exec.
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES => {
                tries += 1;
                sleep(LOOK).await;
            }
            end => return end,
        }
    }
}

#[cfg(unix)]
fn end_of(status: ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().map_or_else(
        || End::Signal(status.signal().unwrap_or_default()),
        End::Exit,
    )
}

#[cfg(not(unix))]
fn end_of(status: ExitStatus) -> End {
    End::Exit(status.code().unwrap_or(-1))
}

/// Reads a pipe to its end. An error counts as the end.
async fn drink(mut pipe: impl AsyncRead + Unpin, take: &mut Take<'_>) -> Result<(), End> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return Ok(()),
            Ok(n) => {
                if let ControlFlow::Break(end) = take(&buffer[..n]) {
                    return Err(end);
                }
            }
        }
    }
}

/// The last bytes of a stream.
struct Tail {
    bytes: Vec<u8>,
    max: usize,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.max)..];
        let over = (self.bytes.len() + bytes.len()).saturating_sub(self.max);
        self.bytes.drain(..over);
        self.bytes.extend_from_slice(bytes);
    }
}

/// The process group that a program leads; killed if it is dropped before its end.
#[derive(Debug)]
struct ProcessGroup {
    /// `None` once the group is known to have ended.
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Sends SIGTERM to the group, and waits for at most `grace`.
    async fn end(&mut self, child: &mut Child, grace: Duration) {
        self.signal(rustix::process::Signal::TERM);
        self.wait(child, grace).await;
    }

    /// Kills the remaining processes.
    async fn kill(&mut self, child: &mut Child) {
        self.signal(rustix::process::Signal::KILL);
        self.wait(child, DRAIN).await;
    }

    fn signal(&mut self, signal: rustix::process::Signal) {
        let Some(leader) = self.leader else { return };
        if rustix::process::kill_process_group(leader, signal) == Err(rustix::io::Errno::SRCH) {
            self.leader = None;
        }
    }

    /// Waits until all processes have ended, for at most the given time.
    async fn wait(&mut self, child: &mut Child, most: Duration) {
        let until = Instant::now() + most;
        while let Some(leader) = self.leader {
            // A leader that is not reaped yet counts as a process of the group.
            let _ = child.try_wait();
            if rustix::process::test_kill_process_group(leader) == Err(rustix::io::Errno::SRCH) {
                self.leader = None;
            } else if Instant::now() < until {
                sleep(LOOK).await;
            } else {
                return;
            }
        }
    }
}

#[cfg(unix)]
impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    fn of(_: &Child) -> Self {
        Self {}
    }

    async fn end(&mut self, child: &mut Child, grace: Duration) {
        let _ = timeout(grace, child.wait()).await;
    }

    async fn kill(&mut self, child: &mut Child) {
        let _ = child.kill().await;
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests;
