//! Turns signals to the process into an early end of the run.

use crate::stop::{Signal, Stop};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Runs `work` with a thread that turns signals into a stop.
pub(crate) fn with_signal_handler<T: Send>(stop: &Stop, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|s| {
        let (over, ended) = oneshot::channel::<()>();
        s.spawn(|| stop_on_signals(stop, ended));
        let done = work();
        drop(over);
        done
    })
}

/// Stops the run on a signal, until `over` is closed.
///
/// If the handlers cannot be installed, signals keep their default action and end the process.
fn stop_on_signals(stop: &Stop, over: oneshot::Receiver<()>) {
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
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = &mut over => return,
                _ = interrupt.recv() => stop.now(Signal::Interrupt),
                _ = terminate.recv() => stop.now(Signal::Terminate),
                _ = hangup.recv() => stop.now(Signal::Terminate),
            }
        }
    });
}
