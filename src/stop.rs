//! The stop signal of a run: Ctrl-C, a signal, or a client that disconnects.

use crate::error::ExitStatus;
use tokio::sync::watch;

/// Why a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C, or a client that cancels.
    Interrupt,
    /// `SIGTERM` or `SIGHUP`.
    Terminate,
}

impl From<Signal> for ExitStatus {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Interrupt => Self::Interrupted,
            Signal::Terminate => Self::Terminated,
        }
    }
}

/// The stop signal of a run; clones share it.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Option<Signal>>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Stop {
    /// Stops the run. Only the first signal counts.
    pub fn now(&self, signal: Signal) {
        self.0
            .send_if_modified(|s| s.is_none() && s.replace(signal).is_none());
    }

    /// Returns the signal that stopped the run, if there is one.
    pub fn signal(&self) -> Option<Signal> {
        *self.0.borrow()
    }

    /// Waits until the run is stopped; forever if it never is.
    pub async fn wait(&self) -> Signal {
        let mut seen = self.0.subscribe();
        match seen.wait_for(Option::is_some).await.map(|s| *s) {
            Ok(Some(signal)) => signal,
            // Unreachable: `self` holds the sender.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
