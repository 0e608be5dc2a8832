//! Leases: a run shows that it asks a question, and another run waits for its answer.
//!
//! Only a run that stores answers takes leases and waits for them. A lease is signed and renewed
//! every two seconds, so that only a live run with a key of the policy makes others wait. Whoever
//! can write to the store can repeat a recent lease or remove an answer; therefore each wait
//! without an answer is charged to a budget of ten seconds, and a run without budget waits no more.

use super::entry::{self, FRESH, Lease, MAX_LEASE};
use super::meter::StoreAnswer;
use super::store::{BlobRead, LEASES};
use super::{SharedCache, now};
use crate::ai::ask::Nonce;
use crate::ai::cache::{KeptReply, ReplyKey};
use std::convert::Infallible;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Time that dead and hostile holders of leases cost a run, at most.
const BUDGET: Duration = Duration::from_secs(10);
/// Time between two signs of life of a holder.
const BEAT: Duration = Duration::from_secs(2);
/// Time without a new sign of life after which a holder counts as dead.
const QUIET: Duration = Duration::from_secs(5);
/// Time between two looks at the store.
const POLL: Duration = Duration::from_millis(250);

/// The remaining time for holders that bring no answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeaseBudget(Duration);

impl Default for LeaseBudget {
    fn default() -> Self {
        Self(BUDGET)
    }
}

impl LeaseBudget {
    /// Returns the time without a sign of life that a wait may take; zero if no wait is possible.
    fn patience(self) -> Duration {
        QUIET.min(self.0.saturating_sub(FRESH))
    }

    /// Charges a wait without an answer: the time since the last sign of life, and the delay with
    /// which that one can have been repeated.
    fn charge(&mut self, since_beat: Duration) {
        self.0 = self.0.saturating_sub(since_beat + FRESH);
    }
}

/// A lease that this run holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLease(ReplyKey);

/// Whose turn it is to ask a question.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// This run asks. It holds a lease if it stores answers and the store works.
    Ours(Option<HeldLease>),
    /// Another run is asking.
    Theirs,
}

impl SharedCache<'_> {
    /// Takes the lease of a question, unless another run holds it. `may_wait` is false if this run
    /// waited already: then it takes the lease over.
    pub async fn turn(&self, key: &ReplyKey, may_wait: bool) -> Turn {
        if self.signing_key().await.is_none() {
            return Turn::Ours(None);
        }
        match self.created(key).await {
            None => Turn::Ours(None),
            Some(true) => Turn::Ours(Some(HeldLease(*key))),
            Some(false) => {
                let may_wait = may_wait && !self.patience().is_zero();
                if may_wait && self.lease_of(key).await.is_some() {
                    return Turn::Theirs;
                }
                // Nobody holds it: its run died, or it is not a lease. Two runs may take it over at
                // the same time, which costs one request.
                self.write_lease(key, 0).await;
                Turn::Ours(self.is_on().then_some(HeldLease(*key)))
            }
        }
    }

    /// Waits for the answer of the run that holds a lease. Returns `None` if that run ended without
    /// one, or the time is over.
    pub async fn wait(&self, key: &ReplyKey, nonce: &Nonce, until: Instant) -> Option<KeptReply> {
        let mut last: Option<Lease> = None;
        let mut beat = Instant::now();
        loop {
            // Read the lease before the answer: its holder writes the answer first.
            let lease = self.lease_of(key).await;
            if let Some(kept) = self.get(key, nonce).await {
                return Some(kept);
            }
            let Some(lease) = lease else { break };
            if last.as_ref().is_none_or(|last| is_later(&lease, last)) {
                beat = Instant::now();
                last = Some(lease);
            }
            if beat.elapsed() >= self.patience() || !self.is_on() {
                break;
            }
            if Instant::now() >= until || self.stop.signal().is_some() {
                return None;
            }
            sleep(POLL).await;
        }
        self.state.borrow_mut().leases.charge(beat.elapsed());
        None
    }

    /// Renews a lease until the future is dropped.
    pub async fn renew(&self, lease: HeldLease) -> Infallible {
        let mut beat = 1;
        loop {
            sleep(BEAT).await;
            self.write_lease(&lease.0, beat).await;
            beat += 1;
        }
    }

    /// Gives a lease back.
    pub async fn release(&self, lease: HeldLease) {
        let name = lease_name(&lease.0);
        let remove = async {
            self.store.remove(&name).await?;
            Ok(((), StoreAnswer::Usual))
        };
        self.limited(remove).await;
    }

    /// Returns the time without a sign of life that a wait may take.
    fn patience(&self) -> Duration {
        self.state.borrow().leases.patience()
    }

    /// Creates the lease of a question. Returns false if there is one, and `None` if the store
    /// fails.
    async fn created(&self, key: &ReplyKey) -> Option<bool> {
        let sealed = self.sealed(key, 0).await?;
        let name = lease_name(key);
        let create = async {
            let created = self.store.create(&name, &sealed).await?;
            Ok((created, StoreAnswer::Usual))
        };
        self.limited(create).await
    }

    /// Writes the lease of a question over what is there.
    async fn write_lease(&self, key: &ReplyKey, beat: u64) {
        let Some(sealed) = self.sealed(key, beat).await else {
            return;
        };
        let name = lease_name(key);
        let write = async {
            self.store.put(&name, &sealed).await?;
            Ok(((), StoreAnswer::Usual))
        };
        self.limited(write).await;
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
    async fn lease_of(&self, key: &ReplyKey) -> Option<Lease> {
        let name = lease_name(key);
        let read = async {
            let read = self.store.get(&name, MAX_LEASE).await?;
            Ok((read, StoreAnswer::Usual))
        };
        match self.limited(read).await? {
            BlobRead::Content(bytes) => entry::open_lease(&bytes, key, &self.terms, now())
                .filter(|lease| lease.holder != self.holder),
            BlobRead::Missing | BlobRead::TooLarge => None,
        }
    }
}

/// Returns true if a lease is a new sign of life: of the same run with a higher number. Another
/// holder is no sign of life of this one.
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

    #[test]
    fn flt_03_dead_and_hostile_holders_cost_ten_seconds_in_all() {
        // A holder that fell silent uses the whole budget.
        let mut budget = LeaseBudget::default();
        assert_eq!(budget.patience(), QUIET);
        budget.charge(QUIET);
        assert_eq!(budget.patience(), Duration::ZERO);
        // Each lease that disappears without an answer can have been repeated for that long.
        let mut budget = LeaseBudget::default();
        let mut delay = Duration::ZERO;
        while !budget.patience().is_zero() {
            let since_beat = budget.patience().min(Duration::from_millis(500));
            budget.charge(since_beat);
            delay += since_beat + FRESH;
        }
        assert!(delay <= BUDGET, "{delay:?}");
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
