//! The time that a shared store may cost a run. Pure.
//!
//! Operations overlap, because several questions are asked at the same time. What counts is the
//! time in which at least one of them waits for the store. A healthy store is not charged for its
//! usual answers: each answer adds a little to the allowance, and an answer that saved a request to
//! a model adds more than it can have cost.

use std::time::{Duration, Instant};

/// Time of an answer that is not charged: a round trip to a store in the same region.
const USUAL: Duration = Duration::from_millis(50);
/// Time of an answer with a valid reply that is not charged: a model takes longer.
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

/// How an operation on a store ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreAnswer {
    /// The store answered in time, for example that it has no such entry.
    Usual,
    /// The store had a valid reply.
    Reply,
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

    /// Returns the time that the next operation may take; zero if the budget is used up.
    pub(super) fn left(&self, now: Instant) -> Duration {
        (self.limit + self.free).saturating_sub(self.waited.at(now))
    }

    /// Records that an operation starts.
    pub(super) fn start(&mut self, now: Instant) {
        self.waited.enter(now);
    }

    /// Records that an operation ends; `None` if it failed.
    pub(super) fn end(&mut self, now: Instant, answer: Option<StoreAnswer>) {
        let before = self.waited.at(now);
        self.waited.leave(now);
        self.free += match answer {
            Some(StoreAnswer::Usual) => USUAL,
            Some(StoreAnswer::Reply) => SAVED,
            None => Duration::ZERO,
        };
        // Unused allowance is not saved up: a store that was fast for an hour may still cost no
        // more than the limit when it hangs.
        self.free = self.free.min(before);
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
        meter.end(start + ms(600), None);
        meter.end(start + ms(1000), None);
        assert_eq!(meter.left(start + ms(60_000)), ms(1000));
        meter.start(start + ms(60_000));
        assert_eq!(meter.left(start + ms(61_500)), Duration::ZERO);
    }

    #[test]
    fn flt_03_a_healthy_store_is_not_charged_and_saves_up_nothing() {
        let start = Instant::now();
        let mut meter = Meter::new(ms(2000));
        for n in 0..1000 {
            let at = start + ms(n * 100);
            meter.start(at);
            meter.end(at + ms(40), Some(StoreAnswer::Usual));
        }
        assert_eq!(meter.left(start + ms(200_000)), ms(2000));
        // Answers of 300 ms without a reply use the limit up.
        let mut at = start + ms(300_000);
        let mut answers = 0;
        while meter.left(at) > Duration::ZERO {
            meter.start(at);
            at += ms(300);
            meter.end(at, Some(StoreAnswer::Usual));
            answers += 1;
        }
        assert_eq!(answers, 8);
    }

    #[test]
    fn a_store_with_replies_may_be_slower_than_one_without() {
        let start = Instant::now();
        let mut meter = Meter::new(ms(2000));
        let mut at = start;
        for _ in 0..100 {
            meter.start(at);
            at += ms(300);
            meter.end(at, Some(StoreAnswer::Reply));
        }
        assert_eq!(meter.left(at), ms(2000));
    }
}
