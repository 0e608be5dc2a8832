//! Limits the concurrent requests to a server, and pauses them on request.
//!
//! A server that rejects a request with a time to come back gets no request until then. After that
//! it gets one request at a time; each answer allows one more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Longest time between two checks for a free slot.
const LOOK: Duration = Duration::from_millis(500);

/// The requests to one server.
#[derive(Debug, Default)]
pub(super) struct Pace {
    state: Mutex<PaceState>,
    /// Notified when a slot is free.
    freed: Notify,
}

#[derive(Debug, Default)]
struct PaceState {
    /// The server gets no request until this time.
    quiet: Option<Instant>,
    in_flight: usize,
    /// Limit on concurrent requests; `None` without a limit.
    most: Option<usize>,
}

/// A slot for a request. It is free again when it is dropped.
#[derive(Debug)]
pub(super) struct RequestSlot<'p>(&'p Pace);

/// The reason why a request must wait.
#[derive(Debug)]
pub(super) enum Wait {
    Until(Instant),
    ForOthers,
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot.
    ///
    /// # Errors
    ///
    /// The event to wait for before the next try.
    pub(super) fn take(&self) -> Result<RequestSlot<'_>, Wait> {
        let mut state = self.state();
        if let Some(until) = state.quiet.filter(|until| *until > Instant::now()) {
            return Err(Wait::Until(until));
        }
        if state.most.is_some_and(|most| state.in_flight >= most) {
            return Err(Wait::ForOthers);
        }
        state.in_flight += 1;
        Ok(RequestSlot(self))
    }

    /// Waits until a slot may be free, at most [`LOOK`]: a notified task may end without taking the
    /// slot.
    pub(super) async fn freed(&self) {
        let _ = tokio::time::timeout(LOOK, self.freed.notified()).await;
    }

    /// Stops requests to the server for a time.
    pub(super) fn pause(&self, time: Duration) {
        let mut state = self.state();
        state.most = Some(1);
        if let Some(until) = Instant::now().checked_add(time) {
            state.quiet = state.quiet.max(Some(until));
        }
    }

    /// Allows one more concurrent request.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.most = state.most.and_then(|most| most.checked_add(1));
        drop(state);
        self.freed.notify_one();
    }
}

impl Drop for RequestSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.in_flight = state.in_flight.saturating_sub(1);
        drop(state);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mod_06_a_server_that_turned_a_request_away_gets_one_at_a_time_and_each_answer_allows_one_more()
     {
        let pace = Pace::default();
        let many: Vec<_> = (0..9).map(|_| pace.take().unwrap()).collect();
        pace.pause(Duration::ZERO);
        assert!(matches!(pace.take(), Err(Wait::ForOthers)));
        drop(many);
        let one = pace.take().unwrap();
        assert!(matches!(pace.take(), Err(Wait::ForOthers)));
        pace.answered();
        drop(one);
        let _two = (pace.take().unwrap(), pace.take().unwrap());
        assert!(matches!(pace.take(), Err(Wait::ForOthers)));
    }

    #[test]
    fn mod_06_nothing_is_sent_until_the_longest_pause_is_over() {
        let pace = Pace::default();
        pace.pause(Duration::from_secs(3600));
        pace.pause(Duration::ZERO);
        let Err(Wait::Until(until)) = pace.take() else {
            panic!()
        };
        assert!(until > Instant::now() + Duration::from_secs(3000));
    }
}
