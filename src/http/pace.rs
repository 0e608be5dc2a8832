//! How many requests a server gets at once, and when it gets none.
//!
//! A server that turns a request away and says when to come back is left alone until then, by all requests. After that
//! it gets one request at a time; each answer allows one more.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The longest time between two looks for a free place.
const LOOK: Duration = Duration::from_millis(500);

/// The requests to one server.
#[derive(Debug, Default)]
pub(super) struct Pace {
    state: Mutex<State>,
    /// Wakes what waits for a place.
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Until then the server is left alone.
    quiet: Option<Instant>,
    in_flight: usize,
    /// Requests that it gets at once; `None`: any number.
    most: Option<usize>,
}

/// A request that may be sent. Its place is free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'p>(&'p Pace);

/// Why a request may not be sent now.
#[derive(Debug)]
pub(super) enum Wait {
    Until(Instant),
    ForOthers,
}

impl Pace {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place.
    ///
    /// # Errors
    ///
    /// What to wait for before the next try.
    pub(super) fn take(&self) -> Result<Place<'_>, Wait> {
        let mut state = self.state();
        if let Some(until) = state.quiet.filter(|until| *until > Instant::now()) {
            return Err(Wait::Until(until));
        }
        if state.most.is_some_and(|most| state.in_flight >= most) {
            return Err(Wait::ForOthers);
        }
        state.in_flight += 1;
        Ok(Place(self))
    }

    /// Waits until a place may be free, at most [`LOOK`]: who was woken may end without taking the place.
    pub(super) async fn freed(&self) {
        let _ = tokio::time::timeout(LOOK, self.freed.notified()).await;
    }

    /// Leaves the server alone for a time.
    pub(super) fn pause(&self, time: Duration) {
        let mut state = self.state();
        state.most = Some(1);
        if let Some(until) = Instant::now().checked_add(time) {
            state.quiet = state.quiet.max(Some(until));
        }
    }

    /// Allows one more request at once.
    pub(super) fn answered(&self) {
        let mut state = self.state();
        state.most = state.most.and_then(|most| most.checked_add(1));
        drop(state);
        self.freed.notify_one();
    }
}

impl Drop for Place<'_> {
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
    fn mod_06_a_server_that_turned_a_request_away_gets_one_at_a_time_and_each_answer_allows_one_more() {
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
        let Err(Wait::Until(until)) = pace.take() else { panic!() };
        assert!(until > Instant::now() + Duration::from_secs(3000));
    }
}
