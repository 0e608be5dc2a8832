//! Waits for keys, signals and programs at the same time, on one thread.

use super::Ended;
use crate::process::{End, Foreground, foreground};
use crate::stop::{self, Stop};
use crate::triage::key::{Decoder, Typed};
use nix::unistd::{getpgrp, getppid, getsid};
use rustix::process::{Signal, kill_current_process_group};
use std::collections::VecDeque;
use std::future::pending;
use std::io::{self, Stdin};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::sleep;

/// Time that a single Escape waits for the rest of a sequence: longer than the usual delay of a
/// packet on a slow connection.
const ESCAPE: Duration = Duration::from_millis(60);

/// An action of the user or of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Event {
    Typed(Typed),
    /// The size of the terminal changed.
    Resized,
    /// The process got `SIGTSTP`.
    Suspend,
    /// The process continues after another program had the terminal.
    Continued,
    Ended(Ended),
}

/// The sources of events.
pub(in crate::cli) struct Events {
    runtime: Runtime,
    stdin: AsyncFd<Stdin>,
    signals: Option<Signals>,
    decoder: Decoder,
    typed: VecDeque<Typed>,
}

/// Handled signals. Created again with the terminal: earlier signals were meant for the program
/// that had it.
struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    resize: unix::Signal,
    stop: unix::Signal,
    resume: unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let stop = SignalKind::from_raw(Signal::TSTP.as_raw());
        let resume = SignalKind::from_raw(Signal::CONT.as_raw());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
            stop: signal(stop)?,
            resume: signal(resume)?,
        })
    }
}

/// A part of an event: bytes of the terminal, or the end of a wait.
enum InputPart {
    Bytes(io::Result<Vec<u8>>),
    Escape,
    Event(Event),
}

impl Events {
    #[expect(
        deprecated,
        reason = "its successor is unsafe code, for descriptors that may close; standard input stays open"
    )]
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let stdin = AsyncFd::with_interest(io::stdin(), Interest::READABLE)?;
        drop(entered);
        Ok(Self {
            runtime,
            stdin,
            signals: None,
            decoder: Decoder::default(),
            typed: VecDeque::new(),
        })
    }

    /// Starts to handle signals.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let entered = self.runtime.enter();
        self.signals = Some(Signals::new()?);
        drop(entered);
        // Discard input that was meant for another program.
        self.decoder = Decoder::default();
        self.typed.clear();
        Ok(())
    }

    /// Waits for the next event.
    pub(super) fn next(&mut self) -> Event {
        loop {
            if let Some(typed) = self.typed.pop_front() {
                return Event::Typed(typed);
            }
            let (stdin, is_waiting) = (&self.stdin, self.decoder.is_waiting());
            let signals = self.signals.as_mut();
            let part = self.runtime.block_on(async {
                tokio::select! {
                    biased;
                    event = heard(signals) => InputPart::Event(event),
                    bytes = read(stdin) => InputPart::Bytes(bytes),
                    () = sleep(ESCAPE), if is_waiting => InputPart::Escape,
                }
            });
            match part {
                InputPart::Event(event) => return event,
                InputPart::Escape => self.typed.extend(self.decoder.end()),
                InputPart::Bytes(Ok(bytes)) if !bytes.is_empty() => {
                    self.typed.extend(self.decoder.take(&bytes));
                }
                InputPart::Bytes(_) => return Event::Ended(Ended::Closed),
            }
        }
    }

    /// Runs a program in the foreground. It gets the signals of the keyboard, and is stopped
    /// together with this program.
    pub(super) fn run(&mut self, program: &Foreground<'_>) -> io::Result<End> {
        self.listen()?;
        let stop = Stop::default();
        let signals = self.signals.as_mut();
        self.runtime.block_on(async {
            let watch = watch(signals, &stop);
            tokio::pin!(watch);
            tokio::select! {
                end = foreground(program, &stop) => end,
                () = &mut watch => Err(io::Error::other("the signals cannot be heard")),
            }
        })
    }

    /// Waits until the user presses Enter, or Ctrl-C, which has the same effect here. The terminal
    /// is not in raw mode.
    pub(super) fn wait_for_line(&mut self) -> Result<(), Ended> {
        if self.listen().is_err() {
            return Err(Ended::Closed);
        }
        loop {
            let (stdin, signals) = (&self.stdin, self.signals.as_mut());
            let part = self.runtime.block_on(async {
                tokio::select! {
                    event = heard(signals) => InputPart::Event(event),
                    bytes = read(stdin) => InputPart::Bytes(bytes),
                }
            });
            match part {
                InputPart::Bytes(Ok(bytes)) if bytes.contains(&b'\n') => return Ok(()),
                InputPart::Bytes(Ok(bytes)) if !bytes.is_empty() => {}
                InputPart::Event(Event::Ended(Ended::Signal(stop::Signal::Interrupt))) => {
                    return Ok(());
                }
                InputPart::Event(Event::Ended(ended)) => return Err(ended),
                InputPart::Event(Event::Suspend) => stop_group(),
                InputPart::Event(_) | InputPart::Escape => {}
                InputPart::Bytes(_) => return Err(Ended::Closed),
            }
        }
    }
}

/// Returns the next signal as an event.
async fn heard(signals: Option<&mut Signals>) -> Event {
    let Some(signals) = signals else {
        return pending().await;
    };
    tokio::select! {
        biased;
        _ = signals.terminate.recv() => Event::Ended(Ended::Signal(stop::Signal::Terminate)),
        _ = signals.hangup.recv() => Event::Ended(Ended::Signal(stop::Signal::Terminate)),
        _ = signals.interrupt.recv() => Event::Ended(Ended::Signal(stop::Signal::Interrupt)),
        _ = signals.stop.recv() => Event::Suspend,
        _ = signals.resume.recv() => Event::Continued,
        _ = signals.resize.recv() => Event::Resized,
    }
}

/// Handles signals while another program has the terminal.
async fn watch(mut signals: Option<&mut Signals>, stop: &Stop) {
    loop {
        match heard(signals.as_deref_mut()).await {
            // The program gets Ctrl-C from the terminal.
            Event::Ended(Ended::Signal(stop::Signal::Interrupt)) => {}
            Event::Ended(Ended::Signal(signal)) => stop.now(signal),
            Event::Suspend => stop_group(),
            _ => {}
        }
    }
}

/// Reads the available bytes of the terminal; empty if it is closed.
async fn read(stdin: &AsyncFd<Stdin>) -> io::Result<Vec<u8>> {
    let mut guard = stdin.readable().await?;
    let mut bytes = vec![0; 4096];
    let read = loop {
        match rustix::io::read(stdin.get_ref(), &mut bytes) {
            Err(rustix::io::Errno::INTR) => {}
            read => break read,
        }
    };
    // Reads from the descriptor block, so readiness is kept only if more bytes are available.
    match rustix::io::ioctl_fionread(stdin.get_ref()) {
        Ok(more) if more > 0 => guard.retain_ready(),
        _ => guard.clear_ready(),
    }
    bytes.truncate(read?);
    Ok(bytes)
}

/// Stops the process group, as Ctrl-Z does, until a shell continues it.
///
/// A group that no shell controls would never be continued, so it is not stopped. POSIX calls such
/// a group orphaned; the kernel does not send `SIGTSTP` to it. `SIGTSTP` has a handler here, so
/// `SIGSTOP` is sent, which every group gets.
pub(super) fn stop_group() {
    if has_job_control() {
        // It fails only for a missing group.
        let _ = kill_current_process_group(Signal::STOP);
    }
}

/// Returns true if the parent is in the same session and this process does not lead that session.
///
/// An ID is 0 if its process is outside of the PID namespace, as the session of a command of
/// `docker exec` is, whose parent is outside too.
fn has_job_control() -> bool {
    let (own, parent) = (getsid(None), getppid());
    own != Ok(getpgrp()) && parent.as_raw() != 0 && own == getsid(Some(parent))
}
