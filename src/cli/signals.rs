//! Signals while a command works: the first one ends the work, and nothing outlives it for long.

use crate::error::ExitStatus;
use crate::stop::{Signal, Stop};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// How long work that was told to end may take for that. What does not hear of it (a pipe that nobody reads) ends with
/// the process.
const GRACE: Duration = Duration::from_secs(5);
/// Within this time a second signal is the same word twice: `timeout` tells a process and then its group.
const ECHO: Duration = Duration::from_secs(1);

/// Does work from whose beginning to whose end signals are heard: once anybody has listened, as whoever asks a model or
/// fetches does, they never end the process by themselves again.
pub(super) fn heard<T>(stop: &Stop, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|s| {
        let (over, ended) = oneshot::channel::<()>();
        s.spawn(|| listen(stop, ended));
        let done = work();
        drop(over);
        done
    })
}

/// Returns how a program exits that a signal has ended; `None`: there was none.
pub(super) fn ended(stop: &Stop) -> Option<ExitStatus> {
    stop.signal().map(|signal| match signal {
        Signal::Interrupt => ExitStatus::Interrupted,
        Signal::Terminate => ExitStatus::Terminated,
    })
}

/// Where signals cannot be heard, they do what they do without anybody listening: they end the process.
fn listen(stop: &Stop, mut over: oneshot::Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    runtime.block_on(async {
        let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()].map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else { return };
        let mut first: Option<Instant> = None;
        loop {
            let late = async {
                match first {
                    Some(first) => sleep_until(first + GRACE).await,
                    None => std::future::pending().await,
                }
            };
            let signal = tokio::select! {
                biased;
                _ = &mut over => return,
                _ = interrupt.recv() => Signal::Interrupt,
                _ = terminate.recv() => Signal::Terminate,
                _ = hangup.recv() => Signal::Terminate,
                () = late => return leave(stop),
            };
            match first {
                None => {
                    stop.now(signal);
                    first = Some(Instant::now());
                }
                Some(first) if first.elapsed() >= ECHO => return leave(stop),
                Some(_) => {}
            }
        }
    });
}

/// Ends the process. Files appear as a whole or not at all, so nothing is left half written; private copies are removed.
#[expect(clippy::exit, clippy::disallowed_methods, reason = "what the work waits for does not hear of signals")]
pub(super) fn leave(stop: &Stop) {
    crate::ai::desk::discard();
    let status = ended(stop).unwrap_or(ExitStatus::Interrupted);
    std::process::exit(i32::from(status.code()));
}
