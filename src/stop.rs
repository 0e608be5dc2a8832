//! The one way to end a run before it is done: Ctrl-C, a signal, a client that goes away.

use tokio::sync::watch;

/// Why a run ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C, or a client that cancels.
    Interrupt,
    /// `SIGTERM` or `SIGHUP`.
    Terminate,
}

/// Shared by everything that works for one run; clones speak of the same run.
#[derive(Clone, Debug)]
pub struct Stop(watch::Sender<Option<Signal>>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Stop {
    /// Ends the run. The first word counts.
    pub fn now(&self, signal: Signal) {
        self.0.send_if_modified(|s| s.is_none() && s.replace(signal).is_none());
    }

    /// Returns the signal that ends the run, if one arrived.
    pub fn signal(&self) -> Option<Signal> {
        *self.0.borrow()
    }

    /// Waits until the run is to end; forever, if nobody ends it.
    pub async fn wait(&self) -> Signal {
        let mut seen = self.0.subscribe();
        match seen.wait_for(Option::is_some).await.map(|s| *s) {
            Ok(Some(signal)) => signal,
            // Cannot be: `self` holds the sender.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
