//! Runs the few programs that an operator names: a backend's, a key command, the project's tests.
//!
//! A program gets what it is given and nothing else: its arguments, an environment of listed names, a folder, its
//! standard input; no descriptor of ours, no shell. It leads a process group of its own, and the group ends with
//! it: at its deadline, when the run is stopped, and when it leaves children behind.

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

/// From the polite signal to the last one, when a program is late.
const GRACE: Duration = Duration::from_secs(5);
/// The same when a person waits for the prompt.
const SHORT_GRACE: Duration = Duration::from_millis(600);
/// How long what is still in the pipes is waited for when nobody is left to write.
const DRAIN: Duration = Duration::from_millis(500);
/// Between two looks at a group that was told to end.
const LOOK: Duration = Duration::from_millis(10);
/// How often a program whose file is being written is tried again.
const BUSY_TRIES: u32 = 20;

/// A program to run, and all that it gets.
#[derive(Clone, Copy)]
pub struct Program<'a> {
    /// Absolute; see [`find_program`].
    pub path: &'a Path,
    pub args: &'a [OsString],
    /// All of it: nothing is inherited.
    pub env: &'a [(OsString, OsString)],
    /// Where it runs; absolute.
    pub dir: &'a Path,
    pub stdin: &'a [u8],
    pub deadline: Instant,
    /// Bytes of standard output at most; more ends the program.
    pub max_stdout: usize,
    /// Bytes of standard error that are kept, the last ones; any number is read.
    pub max_stderr: usize,
    /// Bytes of memory that it and its descendants may use at once, on Linux; more ends them.
    pub max_memory: Option<u64>,
}

impl fmt::Debug for Program<'_> {
    /// Shows neither values of the environment nor what is fed in: both can hold keys.
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

/// What a program left.
#[derive(Debug)]
pub struct Output {
    pub end: End,
    /// Empty where the lines were taken one by one.
    pub stdout: Vec<u8>,
    /// The last bytes.
    pub stderr: Vec<u8>,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exit(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// At its deadline.
    TimedOut,
    /// With the run.
    Stopped(Signal),
    /// It wrote more than it may.
    TooMuch,
    /// It and its descendants used more memory than they may.
    OutOfMemory,
    /// Whoever took its lines had seen enough.
    Ended,
}

/// Runs a program to its end and keeps what it writes.
///
/// # Errors
/// It cannot be started.
pub async fn run(program: &Program<'_>, stop: &Stop) -> io::Result<Output> {
    let mut stdout = Vec::new();
    let mut keep = |bytes: &[u8]| {
        if stdout.len() + bytes.len() > program.max_stdout {
            return ControlFlow::Break(End::TooMuch);
        }
        stdout.extend_from_slice(bytes);
        ControlFlow::Continue(())
    };
    let (end, stderr) = supervise(program, stop, program.stdin, &mut keep).await?;
    Ok(Output { end, stdout, stderr })
}

/// Runs a program as [`run`] does, for callers that wait: on a thread of its own, since they may be part of a runtime.
///
/// # Errors
/// It cannot be started.
pub fn wait(program: &Program<'_>, stop: &Stop) -> io::Result<Output> {
    let work = || tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(program, stop));
    std::thread::scope(|s| s.spawn(work).join()).unwrap_or_else(|_| Err(io::Error::other("the thread panicked")))
}

/// Runs a program to its end and hands on each line of its standard output as it comes, without its line end; what
/// stands behind the last line end is a line too. A line of more than `max_line` bytes ends the program, and so does
/// `on_line` when it breaks.
///
/// # Errors
/// It cannot be started.
pub async fn run_lines(
    program: &Program<'_>,
    stop: &Stop,
    max_line: usize,
    on_line: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<Output> {
    converse(program, stop, max_line, program.stdin, on_line).await
}

/// Runs a program as [`run_lines`] does, and feeds it from `input` as that comes, until its end.
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
    let mut seen = 0;
    let mut rest = Vec::new();
    let mut cut = |mut bytes: &[u8]| {
        seen += bytes.len();
        if seen > program.max_stdout {
            return ControlFlow::Break(End::TooMuch);
        }
        while let Some(i) = memchr::memchr(b'\n', bytes) {
            let (line, after) = (&bytes[..i], &bytes[i + 1..]);
            if rest.len() + line.len() > max_line {
                return ControlFlow::Break(End::TooMuch);
            }
            let next = if rest.is_empty() {
                on_line(line)
            } else {
                rest.extend_from_slice(line);
                let next = on_line(&rest);
                rest.clear();
                next
            };
            if next.is_break() {
                return ControlFlow::Break(End::Ended);
            }
            bytes = after;
        }
        if rest.len() + bytes.len() > max_line {
            return ControlFlow::Break(End::TooMuch);
        }
        rest.extend_from_slice(bytes);
        ControlFlow::Continue(())
    };
    let (mut end, stderr) = supervise(program, stop, input, &mut cut).await?;
    if !rest.is_empty() && !matches!(end, End::TooMuch | End::Ended) && on_line(&rest).is_break() {
        end = End::Ended;
    }
    Ok(Output { end, stdout: Vec::new(), stderr })
}

/// Gets what a program writes, and may end it.
type Take<'a> = dyn FnMut(&[u8]) -> ControlFlow<End> + 'a;

/// Runs a program and sees to its end.
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
    let mut group = Group::of(&child);
    let child_id = child.id();
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::Error::other("the program has no pipes"));
    };
    let mut last = Tail { bytes: Vec::new(), max: program.max_stderr };
    let end = {
        let feed = async move {
            // A program may rightly stop reading early.
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
        // What it still says on its way out is read, so that no full pipe holds it up.
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

/// Starts the program as the leader of a group.
async fn start(program: &Program<'_>) -> io::Result<Child> {
    let mut command = Command::new(program.path);
    command.args(program.args).env_clear().envs(program.env.iter().map(|(k, v)| (k, v))).current_dir(program.dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    {
        command.process_group(0);
        // Ours are closed by themselves; what our own caller left open is not.
        close_fds::set_fds_cloexec_threadsafe(3, &[]);
    }
    let mut tries = 0;
    loop {
        match command.spawn() {
            // Just installed, and still open for writing in a process that is about to become another.
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
    status.code().map_or_else(|| End::Signal(status.signal().unwrap_or_default()), End::Exit)
}

#[cfg(not(unix))]
fn end_of(status: ExitStatus) -> End {
    End::Exit(status.code().unwrap_or(-1))
}

/// Reads a pipe to its end. What cannot be read has ended.
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

/// The process group that a program leads; killed when it is dropped before its time.
#[derive(Debug)]
struct Group {
    /// `None` once it is known to be gone.
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// Asks all of them to end, and waits so long that they can.
    async fn end(&mut self, child: &mut Child, grace: Duration) {
        self.signal(rustix::process::Signal::TERM);
        self.wait(child, grace).await;
    }

    /// Ends whoever is left.
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

    /// Waits until nobody is left, at most so long.
    async fn wait(&mut self, child: &mut Child, most: Duration) {
        let until = Instant::now() + most;
        while let Some(leader) = self.leader {
            // A leader that nobody has asked for still counts as there.
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
impl Drop for Group {
    fn drop(&mut self) {
        self.signal(rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
impl Group {
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
