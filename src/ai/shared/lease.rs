//! Leases: a run shows that it asks a question, and another run waits for its answer.
//!
//! Only a run that stores answers takes leases and waits for them. A lease is signed and renewed
//! every two seconds, so that only a live run with a key of the policy makes others wait. An
//! attacker who can write to the store can repeat a recent lease or remove an answer. Therefore the
//! time that a wait without an answer can have lost is charged to a budget of ten seconds, and a
//! run without budget does not wait any more. All waits of a run together have a bound as well,
//! because a live run can need longer than this run has.

use super::entry::{self, Lease, MAX_LEASE, SeenLease};
use super::meter::Overlap;
use super::store::{BlobRead, LEASES};
use super::writes::QueuedWrite;
use super::{CacheState, OperationCost, SharedCache, SharedReply, now};
use crate::ai::ask::Nonce;
use crate::ai::cache::ReplyKey;
use std::cell::RefCell;
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Time that dead and hostile holders of leases cost a run, at most.
const BUDGET: Duration = Duration::from_secs(10);
/// Time between two signs of life of a holder.
const BEAT: Duration = Duration::from_secs(2);
/// Time without a new sign of life after which a holder counts as dead.
const QUIET: Duration = Duration::from_secs(5);
/// Time between two reads of the store.
const POLL: Duration = Duration::from_millis(250);
/// Error of the age of a lease, at most: times are whole seconds, and a lease may be one second
/// in the future.
const ROUNDING: Duration = Duration::from_secs(2);

/// The remaining time for waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseBudget {
    /// Time for holders that bring no answer.
    left: Duration,
    /// Time in which this run waited for another one.
    waits: Overlap,
}

/// The last sign of life of a holder, as seen by a run that waits.
#[derive(Clone, Copy, Debug)]
struct LastBeat {
    /// When it was seen.
    at: Instant,
    /// Time between the start of the wait and `at` in which the holder can have been dead already:
    /// the sign of life can have been repeated with that delay.
    delay: Duration,
}

impl Default for LeaseBudget {
    fn default() -> Self {
        Self {
            left: BUDGET,
            waits: Overlap::default(),
        }
    }
}

impl LeaseBudget {
    /// Returns the time without a further sign of life that a wait may take; zero if no wait is
    /// possible.
    fn patience(self, delay: Duration) -> Duration {
        QUIET.min(self.left.saturating_sub(delay))
    }

    /// Returns true if a wait may start or go on.
    fn allows(self, limits: WaitLimits, now: Instant) -> bool {
        now < limits.until && self.waits.at(now) < limits.total && !self.left.is_zero()
    }

    /// Charges a wait without an answer with the time in which its holder can have been dead.
    fn charge(&mut self, last: LastBeat, now: Instant) {
        let lost = last.delay + now.saturating_duration_since(last.at);
        self.left = self.left.saturating_sub(lost);
    }
}

impl LastBeat {
    /// Starts a wait: no sign of life was seen.
    fn none(began: Instant) -> Self {
        Self {
            at: began,
            delay: Duration::ZERO,
        }
    }

    /// Records a sign of life of this age.
    fn seen(began: Instant, now: Instant, age: Duration) -> Self {
        Self {
            at: now,
            delay: now.saturating_duration_since(began).min(age + ROUNDING),
        }
    }
}

/// Ends a wait, also if its caller was cancelled.
struct OpenWait<'s>(&'s RefCell<CacheState>);

impl<'s> OpenWait<'s> {
    /// Starts a wait.
    fn start(state: &'s RefCell<CacheState>) -> Self {
        state.borrow_mut().leases.waits.enter(Instant::now());
        Self(state)
    }
}

impl Drop for OpenWait<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().leases.waits.leave(Instant::now());
    }
}

/// A lease that this run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLease(ReplyKey);

/// How long a run may wait for others.
#[derive(Clone, Copy, Debug)]
pub struct WaitLimits {
    /// End of this wait.
    pub until: Instant,
    /// Time of all waits of the run together.
    pub total: Duration,
}

/// Whose turn it is to ask a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// This run asks. It holds a lease if it stores answers and the store works.
    Ours(Option<HeldLease>),
    /// Another run is asking.
    Theirs,
}

impl SharedCache<'_> {
    /// Takes the lease of a question, unless another run holds it. Without limits, because this run
    /// waited already, or if their time is over, it takes the lease over.
    pub async fn turn(&self, key: &ReplyKey, limits: Option<WaitLimits>) -> Turn {
        if self.signing_key().await.is_none() {
            return Turn::Ours(None);
        }
        match self.created(key).await {
            None => Turn::Ours(None),
            Some(true) => Turn::Ours(Some(HeldLease(*key))),
            Some(false) => {
                let may_wait = limits.is_some_and(|limits| self.can_wait(limits));
                if may_wait && self.lease_of(key, OperationCost::Counted).await.is_some() {
                    return Turn::Theirs;
                }
                // No run holds it: its run died, or it is not a lease. Two runs may take it over at
                // the same time, which costs one request.
                self.write_lease(key, 0, OperationCost::Counted).await;
                Turn::Ours(self.is_on().then_some(HeldLease(*key)))
            }
        }
    }

    /// Waits for the answer of the run that holds a lease. Returns `None` if that run ended without
    /// one, or the time is over.
    pub async fn wait(
        &self,
        key: &ReplyKey,
        nonce: &Nonce,
        limits: WaitLimits,
    ) -> Option<SharedReply> {
        let _open = OpenWait::start(&self.state);
        let began = Instant::now();
        let mut beat = LastBeat::none(began);
        let mut last: Option<Lease> = None;
        loop {
            // Read the lease before the answer: its holder writes the answer first.
            let lease = self.lease_of(key, OperationCost::OfTheWait).await;
            let found = self.get_at_cost(key, nonce, OperationCost::OfTheWait);
            if let Some(reply) = found.await {
                return Some(reply);
            }
            let Some(SeenLease { lease, age }) = lease else {
                break;
            };
            if last.as_ref().is_none_or(|last| is_later(&lease, last)) {
                beat = LastBeat::seen(began, Instant::now(), age);
                last = Some(lease);
            }
            let patience = self.state.borrow().leases.patience(beat.delay);
            let is_over = beat.at.elapsed() >= patience || !self.can_wait(limits);
            if is_over || !self.is_on() || self.stop.signal().is_some() {
                break;
            }
            sleep(POLL).await;
        }
        let mut state = self.state.borrow_mut();
        state.leases.charge(beat, Instant::now());
        None
    }

    /// Returns true if this run may wait for another one.
    fn can_wait(&self, limits: WaitLimits) -> bool {
        self.state.borrow().leases.allows(limits, Instant::now())
    }

    /// Renews a lease until the future is dropped. That costs the run no time: it waits for the
    /// request meanwhile.
    pub async fn renew(&self, lease: HeldLease) -> Infallible {
        let mut beat = 1;
        loop {
            sleep(BEAT).await;
            let cost = OperationCost::OfTheWait;
            self.write_lease(&lease.0, beat, cost).await;
            beat += 1;
        }
    }

    /// Gives a lease back, after the answers that are queued.
    pub fn release(&self, lease: HeldLease) {
        let name = lease_name(&lease.0);
        self.writes.add(QueuedWrite::Remove { name });
    }

    /// Creates the lease of a question. Returns false if there is one, and `None` if the store
    /// fails.
    async fn created(&self, key: &ReplyKey) -> Option<bool> {
        let sealed = self.sealed(key, 0).await?;
        let name = lease_name(key);
        self.limited(OperationCost::Counted, self.store.create(&name, &sealed))
            .await
    }

    /// Writes the lease of a question over what is there.
    async fn write_lease(&self, key: &ReplyKey, beat: u64, cost: OperationCost) {
        let Some(sealed) = self.sealed(key, beat).await else {
            return;
        };
        let name = lease_name(key);
        self.limited(cost, self.store.put(&name, &sealed)).await;
    }

    /// Signs a lease of this run.
    async fn sealed(&self, key: &ReplyKey, beat: u64) -> Option<Vec<u8>> {
        let by = self.signing_key().await?;
        let lease = Lease {
            holder: self.holder.clone(),
            beat,
        };
        Some(entry::seal_lease(key, &lease, now(), by))
    }

    /// Returns the valid lease of another run.
    async fn lease_of(&self, key: &ReplyKey, cost: OperationCost) -> Option<SeenLease> {
        let name = lease_name(key);
        match self.limited(cost, self.store.get(&name, MAX_LEASE)).await? {
            BlobRead::Content(bytes) => entry::open_lease(&bytes, key, &self.terms, now())
                .filter(|seen| seen.lease.holder != self.holder),
            BlobRead::Missing | BlobRead::TooLarge | BlobRead::Unreadable => None,
        }
    }
}

/// Returns true if a lease is a new sign of life: of the same run with a higher number. The lease
/// of another holder is not a sign of life of this one.
fn is_later(lease: &Lease, last: &Lease) -> bool {
    lease.holder == last.holder && lease.beat > last.beat
}

/// Returns the name of a lease in a store.
fn lease_name(key: &ReplyKey) -> String {
    format!("{LEASES}/{}", key.to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Charges a wait in which the last sign of life came after `before` with this age, and the
    /// wait ended `after` it. Returns the time that it took.
    fn charged(budget: &mut LeaseBudget, before: Duration, age: u64, after: Duration) -> Duration {
        let began = Instant::now();
        let seen = began + before;
        let beat = LastBeat::seen(began, seen, Duration::from_secs(age));
        budget.charge(beat, seen + after);
        before + after
    }

    #[test]
    fn flt_03_dead_and_hostile_holders_cost_ten_seconds_in_all() {
        // Holders that fell silent, each at once, and with the last sign of life repeated late.
        for (before, age) in [(0, 0), (0, 5), (5, 5), (20, 5)] {
            let (mut budget, mut lost) = (LeaseBudget::default(), Duration::ZERO);
            let before = Duration::from_secs(before);
            let delay = before.min(Duration::from_secs(age));
            while !budget.left.is_zero() {
                let patience = budget.patience(delay);
                charged(&mut budget, before, age, patience);
                lost += delay + patience;
            }
            assert!(lost <= BUDGET, "{before:?}, {age}: {lost:?}");
        }
        // Leases that disappear without an answer, each after half a second.
        let (mut budget, mut lost) = (LeaseBudget::default(), Duration::ZERO);
        while !budget.patience(Duration::ZERO).is_zero() {
            let half = Duration::from_millis(500).min(budget.patience(Duration::ZERO));
            lost += charged(&mut budget, Duration::ZERO, 5, half);
        }
        assert!(lost <= BUDGET, "{lost:?}");
    }

    #[test]
    fn flt_03_live_holders_cost_a_bounded_time_however_many_waits_there_are() {
        let mut budget = LeaseBudget::default();
        let (start, total) = (Instant::now(), Duration::from_secs(60));
        let (mut now, mut lost) = (start, Duration::ZERO);
        // Each wave of questions waits for a live run until the end of its own wait.
        for _ in 0..100 {
            let limits = WaitLimits {
                until: now + Duration::from_secs(40),
                total,
            };
            budget.waits.enter(now);
            // Waits of the same wave overlap and count once.
            budget.waits.enter(now);
            let began = now;
            while budget.allows(limits, now) {
                now += POLL;
            }
            budget.waits.leave(now);
            budget.waits.leave(now);
            lost += now - began;
            now += Duration::from_secs(5);
        }
        assert_eq!(lost, total);
        // Each wait has an end of its own as well.
        let limits = WaitLimits {
            until: start,
            total,
        };
        assert!(!LeaseBudget::default().allows(limits, start));
    }

    #[test]
    fn a_lease_that_is_given_back_soon_costs_no_more_than_the_time_of_the_wait() {
        let mut budget = LeaseBudget::default();
        let took = charged(&mut budget, Duration::from_millis(250), 0, POLL);
        assert_eq!(budget.left, BUDGET.saturating_sub(took));
        // A live run that worked for a minute is charged with its last seconds only.
        let mut budget = LeaseBudget::default();
        charged(&mut budget, Duration::from_secs(60), 0, POLL);
        assert_eq!(budget.left, BUDGET.saturating_sub(ROUNDING + POLL));
    }

    #[test]
    fn only_the_same_run_with_a_higher_number_is_a_new_sign_of_life() {
        let lease = |holder: &str, beat| Lease {
            holder: holder.to_owned(),
            beat,
        };
        assert!(is_later(&lease("a", 2), &lease("a", 1)));
        assert!(!is_later(&lease("a", 1), &lease("a", 1)));
        assert!(!is_later(&lease("b", 9), &lease("a", 1)));
    }
}
