//! Signals while a command works: the first one stops the work, and after a short time the process
//! ends in any case.

use crate::error::ExitStatus;
use crate::stop::{Signal, Stop};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

/// Time that stopped work has to end. Work that cannot be stopped, such as a blocked write to a
/// pipe, ends with the process.
const GRACE: Duration = Duration::from_secs(5);
/// A second signal within this time is ignored as a duplicate: `timeout` signals a process and then
/// its group.
const ECHO: Duration = Duration::from_secs(1);

/// Runs work with signal handlers for all of its duration: once tokio has installed a handler, as
/// code that asks a model or fetches does, a signal never ends the process by default again.
pub(super) fn heard<T>(stop: &Stop, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|s| {
        let (over, ended) = oneshot::channel::<()>();
        s.spawn(|| listen(stop, ended));
        let done = work();
        drop(over);
        done
    })
}

/// Returns the exit code for a run that a signal ended; `None` without a signal.
pub(super) fn ended(stop: &Stop) -> Option<ExitStatus> {
    stop.signal().map(ExitStatus::from)
}

/// If the handlers cannot be installed, signals keep their default action and end the process.
fn listen(stop: &Stop, mut over: oneshot::Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    runtime.block_on(async {
        let signals = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
            return;
        };
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

/// Ends the process. Files are written completely or not at all, so no file is left half written;
/// private copies are removed.
#[expect(
    clippy::exit,
    clippy::disallowed_methods,
    reason = "what the work waits for does not hear of signals"
)]
pub(super) fn leave(stop: &Stop) {
    crate::ai::desk::discard();
    let status = ended(stop).unwrap_or(ExitStatus::Interrupted);
    std::process::exit(i32::from(status.code()));
}
