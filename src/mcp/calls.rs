//! Open requests: their IDs, the bytes that they occupy, and the signal that stops their runs.

use crate::stop::{Signal, Stop};
use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Open requests at a time, at most, and the bytes that they may occupy together.
const MOST: usize = 64;
const MOST_BYTES: usize = 32 << 20;
/// Reviews that run at the same time.
const AT_ONCE: usize = 4;

/// All requests that are not answered yet.
#[derive(Debug)]
pub(super) struct Calls {
    inner: Mutex<Inner>,
    changed: Notify,
    /// Permits for reviews that ask a model.
    pub(super) turns: Semaphore,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            inner: Mutex::default(),
            changed: Notify::new(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    open: HashMap<RequestId, Open>,
    bytes: usize,
    running: HashMap<u64, Stop>,
    next: u64,
    ended: Option<(Signal, Instant)>,
}

/// A request that is not answered yet.
#[derive(Debug)]
struct Open {
    bytes: usize,
    /// The request calls a tool, and stays open until the tool has ended.
    is_call: bool,
    cancelled: bool,
}

/// The reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// An open request has the same ID.
    Taken,
    /// Too many requests are open.
    Busy,
}

impl Calls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a request of this size.
    pub(super) fn begin(&self, id: &RequestId, bytes: usize, is_call: bool) -> Result<(), Refused> {
        let mut inner = self.inner();
        if inner.open.contains_key(id) {
            return Err(Refused::Taken);
        }
        if inner.open.len() >= MOST || inner.bytes + bytes > MOST_BYTES && !inner.open.is_empty() {
            return Err(Refused::Busy);
        }
        inner.bytes += bytes;
        inner.open.insert(
            id.clone(),
            Open {
                bytes,
                is_call,
                cancelled: false,
            },
        );
        Ok(())
    }

    /// Returns true if a request with this ID is open.
    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.inner().open.contains_key(id)
    }

    /// Closes a request that is answered, or that never will be.
    pub(super) fn end(&self, id: &RequestId) {
        let mut inner = self.inner();
        if let Some(open) = inner.open.remove(id) {
            inner.bytes -= open.bytes;
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Handles a cancellation: no answer will be sent. A call stays open until its run has ended.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut inner = self.inner();
        let Some(open) = inner.open.get_mut(id) else {
            return;
        };
        open.cancelled = true;
        let is_call = open.is_call;
        drop(inner);
        if !is_call {
            self.end(id);
        }
    }

    /// Handles the end of a call. A cancelled call is closed.
    pub(super) fn ended(&self, id: &RequestId) {
        let cancelled = self.inner().open.get(id).is_some_and(|o| o.cancelled);
        if cancelled {
            self.end(id);
        }
    }

    /// Registers a run that `stop` stops until the guard is dropped. After `stop` was called, a new
    /// run is stopped at once.
    pub(super) fn run(self: &Arc<Self>) -> Running {
        let stop = Stop::default();
        let mut inner = self.inner();
        let key = inner.next;
        inner.next += 1;
        inner.running.insert(key, stop.clone());
        if let Some((signal, _)) = inner.ended {
            stop.now(signal);
        }
        drop(inner);
        Running {
            calls: Arc::clone(self),
            key,
            stop,
        }
    }

    /// Stops all current and later runs. Returns the time of the first stop.
    pub(super) fn stop(&self, signal: Signal) -> Instant {
        let mut inner = self.inner();
        let (_, began) = *inner.ended.get_or_insert_with(|| (signal, Instant::now()));
        inner.running.values().for_each(|s| s.now(signal));
        drop(inner);
        self.changed.notify_waiters();
        began
    }

    /// Waits until no request is open and no run is active.
    pub(super) async fn idle(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let idle = {
                let inner = self.inner();
                inner.open.is_empty() && inner.running.is_empty()
            };
            if idle {
                return;
            }
            changed.await;
        }
    }

    /// Waits until `stop` is called; returns the time of that call.
    pub(super) async fn ending(&self) -> Instant {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let ended = self.inner().ended;
            if let Some((_, began)) = ended {
                return began;
            }
            changed.await;
        }
    }

    /// Waits until no run is active.
    pub(super) async fn still(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.inner().running.is_empty() {
                return;
            }
            changed.await;
        }
    }
}

/// A registered run that can be stopped.
#[derive(Debug)]
pub(super) struct Running {
    calls: Arc<Calls>,
    key: u64,
    pub(super) stop: Stop,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.calls.inner().running.remove(&self.key);
        self.calls.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> RequestId {
        RequestId::Number(n)
    }

    #[test]
    fn an_id_that_is_open_is_not_taken_twice() {
        let calls = Calls::default();
        assert_eq!(calls.begin(&id(1), 10, false), Ok(()));
        assert_eq!(calls.begin(&id(1), 10, false), Err(Refused::Taken));
        calls.end(&id(1));
        assert_eq!(calls.begin(&id(1), 10, false), Ok(()));
    }

    #[test]
    fn a_cancelled_call_is_open_until_it_has_ended() {
        let calls = Calls::default();
        assert_eq!(calls.begin(&id(1), 10, true), Ok(()));
        calls.cancel(&id(1));
        assert_eq!(calls.begin(&id(1), 10, true), Err(Refused::Taken));
        calls.ended(&id(1));
        assert_eq!(calls.begin(&id(1), 10, false), Ok(()));
        calls.cancel(&id(1));
        assert_eq!(calls.begin(&id(1), 10, true), Ok(()));
        calls.ended(&id(1));
        assert_eq!(
            calls.begin(&id(1), 10, true),
            Err(Refused::Taken),
            "its answer is still to be sent"
        );
    }

    #[test]
    fn what_open_requests_hold_is_bounded() {
        let calls = Calls::default();
        assert_eq!(calls.begin(&id(1), MOST_BYTES / 2, false), Ok(()));
        assert_eq!(
            calls.begin(&id(2), MOST_BYTES / 2 + 1, false),
            Err(Refused::Busy)
        );
        for n in 2..=MOST as i64 {
            assert_eq!(calls.begin(&id(n), 1, false), Ok(()), "{n}");
        }
        assert_eq!(calls.begin(&id(1000), 1, false), Err(Refused::Busy));
    }

    #[test]
    fn a_run_that_begins_after_the_end_is_stopped_at_once() {
        let calls = Arc::new(Calls::default());
        let early = calls.run();
        calls.stop(Signal::Interrupt);
        assert_eq!(early.stop.signal(), Some(Signal::Interrupt));
        assert_eq!(calls.run().stop.signal(), Some(Signal::Interrupt));
    }
}
