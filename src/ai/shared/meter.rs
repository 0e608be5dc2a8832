//! The time that a shared store may cost a run. Pure.
//!
//! Operations overlap, because several questions are asked at the same time. What counts is the
//! time in which at least one of them delays the run. Only an answer that the run accepted adds to
//! the allowance: it saved a request to a model, which costs more time than the answer can have
//! cost. A store without such an answer costs a run at most the limit, however it behaves.

use std::time::{Duration, Instant};

/// Time that an accepted answer adds to the allowance: a model takes longer.
const SAVED: Duration = Duration::from_secs(1);

/// Time in which at least one of several overlapping activities is in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overlap {
    active: u32,
    since: Option<Instant>,
    total: Duration,
}

impl Overlap {
    /// Records that an activity starts.
    pub(super) fn enter(&mut self, now: Instant) {
        if self.active == 0 {
            self.since = Some(now);
        }
        self.active += 1;
    }

    /// Records that an activity ends.
    pub(super) fn leave(&mut self, now: Instant) {
        self.active = self.active.saturating_sub(1);
        if self.active == 0 {
            self.total = self.at(now);
            self.since = None;
        }
    }

    /// Returns the time up to now.
    pub(super) fn at(&self, now: Instant) -> Duration {
        let open = self.since.map(|since| now.saturating_duration_since(since));
        self.total + open.unwrap_or_default()
    }
}

/// The budget of waiting for a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    limit: Duration,
    waited: Overlap,
    free: Duration,
}

impl Meter {
    /// Creates a budget.
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            waited: Overlap::default(),
            free: Duration::ZERO,
        }
    }

    /// Returns the time limit that the budget started with.
    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the time that the next operation may take; zero if the budget is used up.
    pub(super) fn left(&self, now: Instant) -> Duration {
        (self.limit + self.free).saturating_sub(self.waited.at(now))
    }

    /// Records that an operation starts.
    pub(super) fn start(&mut self, now: Instant) {
        self.waited.enter(now);
    }

    /// Records that an operation ends.
    pub(super) fn end(&mut self, now: Instant) {
        self.waited.leave(now);
    }

    /// Records that the run accepted an answer of the store.
    pub(super) fn accept(&mut self, now: Instant) {
        // Unused allowance is not saved up: a store that was fast for an hour may still cost no
        // more than the limit when it hangs.
        self.free = (self.free + SAVED).min(self.waited.at(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn flt_03_overlapping_waits_count_once_and_in_total_at_most_the_limit() {
        let start = Instant::now();
        let mut meter = Meter::new(ms(2000));
        meter.start(start);
        meter.start(start + ms(100));
        assert_eq!(meter.left(start + ms(500)), ms(1500));
        meter.end(start + ms(600));
        meter.end(start + ms(1000));
        assert_eq!(meter.left(start + ms(60_000)), ms(1000));
        meter.start(start + ms(60_000));
        assert_eq!(meter.left(start + ms(61_500)), Duration::ZERO);
    }

    #[test]
    fn flt_03_a_store_without_an_accepted_answer_costs_the_limit_however_fast_it_is() {
        for (each, together) in [(40, 1), (300, 1), (49, 16), (5, 100)] {
            let start = Instant::now();
            let (mut meter, mut at) = (Meter::new(ms(2000)), start);
            let mut lost = Duration::ZERO;
            while meter.left(at) > Duration::ZERO {
                let took = ms(each).min(meter.left(at));
                (0..together).for_each(|_| meter.start(at));
                at += took;
                (0..together).for_each(|_| meter.end(at));
                lost += took;
                at += ms(100);
            }
            assert_eq!(lost, ms(2000), "{each} ms, {together} at once");
        }
    }

    #[test]
    fn flt_03_accepted_answers_are_not_charged_and_save_up_nothing() {
        let start = Instant::now();
        let mut meter = Meter::new(ms(2000));
        let mut at = start;
        for _ in 0..100 {
            meter.start(at);
            at += ms(300);
            meter.end(at);
            meter.accept(at);
        }
        assert_eq!(meter.left(at), ms(2000));
        meter.start(at);
        assert_eq!(meter.left(at + ms(2000)), Duration::ZERO);
    }
}
