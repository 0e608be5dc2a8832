//! The quota of one question: every round trip is reserved here before it starts.

use super::ask::outcome::{Cause, Failure, Spent, Until};
use super::budget::{Budget, BudgetLimits, LONGEST, Reservation, Ticket, Want, cost};
use crate::policy::Price;
use std::cell::{Cell, RefCell};
use tokio::sync::Notify;

/// The budget of a run, shared by its questions.
#[derive(Debug)]
pub struct Ledger {
    budget: RefCell<Budget>,
    /// Wakes requests that wait for a reservation.
    freed: Notify,
    /// Requests that wait for a reservation.
    blocked: Cell<usize>,
}

/// A request that waits for a reservation.
struct BlockedRequest<'l>(&'l Cell<usize>);

impl<'l> BlockedRequest<'l> {
    fn new(count: &'l Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for BlockedRequest<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Ledger {
    /// Creates a ledger with nothing spent.
    pub fn new(limits: BudgetLimits) -> Self {
        Self {
            budget: RefCell::new(Budget::new(limits)),
            freed: Notify::new(),
            blocked: Cell::new(0),
        }
    }

    /// Opens a question to a backend, with at most `most` requests.
    ///
    /// # Errors
    ///
    /// Returns the limit if no request is left.
    pub fn open<'a>(
        &'a self,
        backend: &'a str,
        price: Option<&'a Price>,
        most: u32,
    ) -> Result<Quota<'a>, String> {
        let share = self.budget.borrow_mut().open(most)?;
        Ok(Quota {
            ledger: Some(self),
            backend,
            price,
            share: Cell::new(share),
        })
    }

    /// Announces questions.
    pub fn plan(&self, questions: usize) {
        self.budget.borrow_mut().plan(questions);
    }

    /// Cancels a planned question.
    pub fn skip(&self) {
        self.budget.borrow_mut().skip();
    }

    /// Sets requests aside for questions that are not planned yet.
    pub fn keep(&self, requests: u32) {
        self.budget.borrow_mut().keep(requests);
    }

    /// Returns the number of requests that wait until others have ended, because the budget does
    /// not allow more at the same time.
    pub fn blocked(&self) -> usize {
        self.blocked.get()
    }

    /// Returns the dollars spent so far, or `None` if no cost is known.
    pub fn usd(&self) -> Option<f64> {
        self.budget.borrow().usd()
    }

    /// Returns the dollars that are not spent. Some of them can be reserved.
    pub fn usd_left(&self) -> f64 {
        self.budget.borrow().usd_left()
    }
}

/// The requests, tokens and cost that one question can still use.
#[derive(Debug)]
pub struct Quota<'a> {
    /// `None` for an unlimited quota.
    ledger: Option<&'a Ledger>,
    backend: &'a str,
    price: Option<&'a Price>,
    /// Requests that are promised to the question and not sent.
    share: Cell<u32>,
}

impl Quota<'static> {
    /// Returns an unlimited quota.
    pub const fn unlimited() -> Self {
        Self {
            ledger: None,
            backend: "",
            price: None,
            share: Cell::new(u32::MAX),
        }
    }
}

impl<'a> Quota<'a> {
    fn want(&self, bytes: usize, longest: u64) -> Want<'a> {
        Want {
            backend: self.backend,
            price: self.price,
            bytes,
            longest,
        }
    }

    /// Reserves a round trip that sends this many bytes, for an answer of at most `longest` tokens.
    /// Waits while only requests in flight prevent it.
    ///
    /// # Errors
    ///
    /// Returns `Limit` with the limit that would be exceeded, `TimedOut` at the deadline, or
    /// `Stopped` at the end of the run.
    pub async fn reserve(
        &self,
        bytes: usize,
        longest: u64,
        limits: &Until<'_>,
    ) -> Result<Grant<'_>, Failure> {
        let Some(ledger) = self.ledger else {
            return Ok(Grant {
                quota: self,
                ticket: Cell::new(None),
                bytes,
                longest,
            });
        };
        loop {
            let reservation = ledger
                .budget
                .borrow_mut()
                .reserve(&self.want(bytes, longest));
            match reservation {
                Reservation::Granted(ticket) => {
                    let grant = Grant {
                        quota: self,
                        ticket: Cell::new(Some(ticket)),
                        bytes,
                        longest,
                    };
                    self.take()?;
                    return Ok(grant);
                }
                Reservation::Later => {
                    let _blocked = BlockedRequest::new(&ledger.blocked);
                    limits.hold(ledger.freed.notified()).await?;
                }
                Reservation::Refused(limit) => return Err(Failure::new(Cause::Limit, limit)),
            }
        }
    }

    /// Takes one request from the question's share, or a spare request if the share is used up.
    ///
    /// # Errors
    ///
    /// Returns `Limit`.
    fn take(&self) -> Result<(), Failure> {
        let Some(ledger) = self.ledger else {
            return Ok(());
        };
        let mut share = self.share.get();
        let taken = ledger.budget.borrow_mut().take(&mut share);
        self.share.set(share);
        taken.map_err(|limit| Failure::new(Cause::Limit, limit))
    }

    /// Reserves a retry. The question needs its share for its rounds, so spare requests are used
    /// first.
    ///
    /// # Errors
    ///
    /// Returns `Limit`.
    pub fn take_retry(&self) -> Result<(), Failure> {
        self.take_spare().or_else(|_| self.take())
    }

    fn take_spare(&self) -> Result<(), Failure> {
        let share = self.share.replace(0);
        let taken = self.take();
        self.share.set(share);
        taken
    }

    /// Returns true if tools can be offered in a round trip of this many bytes: their results and
    /// the answer fit in the remaining share of the question.
    pub fn affords_tools(&self, bytes: usize) -> bool {
        let Some(ledger) = self.ledger else {
            return true;
        };
        self.share.get() >= 2
            && ledger
                .budget
                .borrow()
                .affords_tools(&self.want(bytes, LONGEST))
    }

    /// Returns the number of requests that are promised to the question and not sent.
    pub fn share(&self) -> u32 {
        self.share.get()
    }
}

impl Drop for Quota<'_> {
    fn drop(&mut self) {
        if let Some(ledger) = self.ledger {
            ledger.budget.borrow_mut().close(self.share.get());
            ledger.freed.notify_waiters();
        }
    }
}

/// A reserved round trip. Dropping it without settling releases the reservation.
#[derive(Debug)]
pub struct Grant<'q> {
    quota: &'q Quota<'q>,
    ticket: Cell<Option<Ticket>>,
    bytes: usize,
    longest: u64,
}

impl Grant<'_> {
    /// Returns the maximum tokens of the answer, or `None` if no limit applies.
    pub fn output(&self) -> Option<u64> {
        self.ticket.get().and_then(|t| t.output)
    }

    /// Replaces the reservation with the actual usage.
    pub fn settle(self, spent: &Spent) {
        if let (Some(ticket), Some(ledger)) = (self.ticket.take(), self.quota.ledger) {
            let spent = Spent {
                cost_usd: cost(spent, self.quota.price),
                ..*spent
            };
            ledger.budget.borrow_mut().settle(
                ticket,
                &self.quota.want(self.bytes, self.longest),
                &spent,
            );
            ledger.freed.notify_waiters();
        }
    }

    /// Counts another request of a program that sends requests itself, from the share of the
    /// question.
    ///
    /// # Errors
    ///
    /// Returns `Limit`.
    pub fn take(&self) -> Result<(), Failure> {
        self.quota.take()
    }

    /// Counts a retry of a program that sends requests itself. The program needs its share for its
    /// turns, so the retry uses a spare request.
    ///
    /// # Errors
    ///
    /// Returns `Limit`.
    pub fn take_spare(&self) -> Result<(), Failure> {
        self.quota.take_spare()
    }

    /// Returns the limit that was exceeded, given the usage of the round trip so far.
    pub fn passed(&self, spent: &Spent) -> Option<Failure> {
        let (ticket, ledger) = (self.ticket.get()?, self.quota.ledger?);
        let spent = Spent {
            cost_usd: cost(spent, self.quota.price),
            ..*spent
        };
        let limit = ledger.budget.borrow().passed(&ticket, &spent)?;
        Some(Failure::new(Cause::Limit, limit))
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        if let (Some(ticket), Some(ledger)) = (self.ticket.take(), self.quota.ledger) {
            ledger.budget.borrow_mut().release(ticket);
            ledger.freed.notify_waiters();
        }
    }
}
