//! What is being answered: which requests are open, how much they hold, and what stops them.

use crate::stop::{Signal, Stop};
use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// Requests that may be open at a time, and the bytes that they may hold together.
const MOST: usize = 64;
const MOST_BYTES: usize = 32 << 20;
/// Reviews that run at the same time.
const AT_ONCE: usize = 4;

/// Every request that is not answered yet.
#[derive(Debug)]
pub(super) struct Calls {
    inner: Mutex<Inner>,
    changed: Notify,
    /// Who may work.
    pub(super) turns: Semaphore,
}

impl Default for Calls {
    fn default() -> Self {
        Self { inner: Mutex::default(), changed: Notify::new(), turns: Semaphore::new(AT_ONCE) }
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

/// A request that is not answered.
#[derive(Debug)]
struct Open {
    bytes: usize,
    /// It calls a tool, and is open until that ends.
    is_call: bool,
    cancelled: bool,
}

/// Why a request is not taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Its id belongs to a request that is open.
    Taken,
    /// Too many are open.
    Busy,
}

impl Calls {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request of so many bytes up.
    pub(super) fn begin(&self, id: &RequestId, bytes: usize, is_call: bool) -> Result<(), Refused> {
        let mut inner = self.inner();
        if inner.open.contains_key(id) {
            return Err(Refused::Taken);
        }
        if inner.open.len() >= MOST || inner.bytes + bytes > MOST_BYTES && !inner.open.is_empty() {
            return Err(Refused::Busy);
        }
        inner.bytes += bytes;
        inner.open.insert(id.clone(), Open { bytes, is_call, cancelled: false });
        Ok(())
    }

    /// Returns true if a request with this id is still to be answered.
    pub(super) fn is_open(&self, id: &RequestId) -> bool {
        self.inner().open.contains_key(id)
    }

    /// Closes a request: it is answered, or never will be.
    pub(super) fn end(&self, id: &RequestId) {
        let mut inner = self.inner();
        if let Some(open) = inner.open.remove(id) {
            inner.bytes -= open.bytes;
        }
        drop(inner);
        self.changed.notify_waiters();
    }

    /// Hears that nobody waits for an answer any more: none will be sent. A call stays open until it has ended.
    pub(super) fn cancel(&self, id: &RequestId) {
        let mut inner = self.inner();
        let Some(open) = inner.open.get_mut(id) else { return };
        open.cancelled = true;
        let is_call = open.is_call;
        drop(inner);
        if !is_call {
            self.end(id);
        }
    }

    /// Hears that a call has ended. Where nobody waits for its answer, it is closed.
    pub(super) fn ended(&self, id: &RequestId) {
        let cancelled = self.inner().open.get(id).is_some_and(|o| o.cancelled);
        if cancelled {
            self.end(id);
        }
    }

    /// Lets a run be stopped from here until the guard is dropped. Where everything has ended, it is stopped at once.
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
        Running { calls: Arc::clone(self), key, stop }
    }

    /// Stops every run, and every later one. Returns when that was first asked for.
    pub(super) fn stop(&self, signal: Signal) -> Instant {
        let mut inner = self.inner();
        let (_, began) = *inner.ended.get_or_insert_with(|| (signal, Instant::now()));
        inner.running.values().for_each(|s| s.now(signal));
        drop(inner);
        self.changed.notify_waiters();
        began
    }

    /// Waits until nothing is open and nothing runs.
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

    /// Waits until everything is to stop; returns since when.
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

    /// Waits until nothing runs.
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

/// A run that can be stopped.
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
        assert_eq!(calls.begin(&id(1), 10, true), Err(Refused::Taken), "its answer is still to be sent");
    }

    #[test]
    fn what_open_requests_hold_is_bounded() {
        let calls = Calls::default();
        assert_eq!(calls.begin(&id(1), MOST_BYTES / 2, false), Ok(()));
        assert_eq!(calls.begin(&id(2), MOST_BYTES / 2 + 1, false), Err(Refused::Busy));
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
