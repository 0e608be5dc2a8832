//! The quota of one question: every round trip is reserved here before it starts.

use super::ask::{Cause, Failure, Spent, Until};
use super::budget::{Budget, LONGEST, Limits, Reservation, Ticket, Want, cost};
use crate::policy::Price;
use std::cell::{Cell, RefCell};
use tokio::sync::Notify;

/// The budget of a run, shared by its questions.
#[derive(Debug)]
pub struct Ledger {
    budget: RefCell<Budget>,
    /// Wakes what waits for a reservation.
    freed: Notify,
}

impl Ledger {
    /// Starts with nothing spent.
    pub fn new(limits: Limits) -> Self {
        Self { budget: RefCell::new(Budget::new(limits)), freed: Notify::new() }
    }

    /// Opens a question to a backend, which may have up to `most` requests.
    ///
    /// # Errors
    ///
    /// The limit, where no request is left.
    pub fn open<'a>(&'a self, backend: &'a str, price: Option<&'a Price>, most: u32) -> Result<Quota<'a>, String> {
        let share = self.budget.borrow_mut().open(most)?;
        Ok(Quota { ledger: Some(self), backend, price, share: Cell::new(share) })
    }

    /// Announces questions.
    pub fn plan(&self, questions: usize) {
        self.budget.borrow_mut().plan(questions);
    }

    /// Takes a planned question back.
    pub fn skip(&self) {
        self.budget.borrow_mut().skip();
    }

    /// Keeps requests for questions that are not planned yet.
    pub fn keep(&self, requests: u32) {
        self.budget.borrow_mut().keep(requests);
    }

    /// Returns the dollars spent so far; `None` while no cost is known.
    pub fn usd(&self) -> Option<f64> {
        self.budget.borrow().usd()
    }

    /// Returns the dollars that are not spent; a part of them can be reserved.
    pub fn usd_left(&self) -> f64 {
        self.budget.borrow().usd_left()
    }
}

/// The requests, tokens and cost that one question can still use.
#[derive(Debug)]
pub struct Quota<'a> {
    /// `None`: without limit.
    ledger: Option<&'a Ledger>,
    backend: &'a str,
    price: Option<&'a Price>,
    /// Requests that are promised to it and not sent.
    share: Cell<u32>,
}

impl Quota<'static> {
    /// Returns a quota without limit.
    pub const fn unlimited() -> Self {
        Self { ledger: None, backend: "", price: None, share: Cell::new(u32::MAX) }
    }
}

impl<'a> Quota<'a> {
    fn want(&self, bytes: usize, longest: u64) -> Want<'a> {
        Want { backend: self.backend, price: self.price, bytes, longest }
    }

    /// Reserves a round trip that sends so many bytes, for an answer of up to `longest` tokens. Waits while only requests
    /// in flight prevent it.
    ///
    /// # Errors
    ///
    /// `Limit`, with the limit that would be passed; the deadline and the end of the run.
    pub async fn reserve(&self, bytes: usize, longest: u64, limits: &Until<'_>) -> Result<Grant<'_>, Failure> {
        let Some(ledger) = self.ledger else {
            return Ok(Grant { quota: self, ticket: Cell::new(None), bytes, longest });
        };
        loop {
            let reservation = ledger.budget.borrow_mut().reserve(&self.want(bytes, longest));
            match reservation {
                Reservation::Granted(ticket) => {
                    let grant = Grant { quota: self, ticket: Cell::new(Some(ticket)), bytes, longest };
                    self.take()?;
                    return Ok(grant);
                }
                Reservation::Later => limits.hold(ledger.freed.notified()).await?,
                Reservation::Refused(limit) => return Err(Failure::new(Cause::Limit, limit)),
            }
        }
    }

    /// Takes one request of the question's share, or beyond it one that is promised to no question.
    ///
    /// # Errors
    ///
    /// `Limit`.
    fn take(&self) -> Result<(), Failure> {
        let Some(ledger) = self.ledger else { return Ok(()) };
        let mut share = self.share.get();
        let taken = ledger.budget.borrow_mut().take(&mut share);
        self.share.set(share);
        taken.map_err(|limit| Failure::new(Cause::Limit, limit))
    }

    /// Reserves a retry. The question's share is for its rounds, so what is promised to no question goes
    /// first.
    ///
    /// # Errors
    ///
    /// `Limit`.
    pub fn take_retry(&self) -> Result<(), Failure> {
        self.take_spare().or_else(|_| self.take())
    }

    fn take_spare(&self) -> Result<(), Failure> {
        let share = self.share.replace(0);
        let taken = self.take();
        self.share.set(share);
        taken
    }

    /// Returns true if tools can be offered in a round trip of so many bytes: their answers and the model's
    /// fit what is left of the question's share.
    pub fn affords_tools(&self, bytes: usize) -> bool {
        let Some(ledger) = self.ledger else { return true };
        self.share.get() >= 2 && ledger.budget.borrow().affords_tools(&self.want(bytes, LONGEST))
    }

    /// Returns how many requests the question was promised and has not sent.
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

/// A round trip that is reserved. Gives back what it holds when it is dropped unsettled.
#[derive(Debug)]
pub struct Grant<'q> {
    quota: &'q Quota<'q>,
    ticket: Cell<Option<Ticket>>,
    bytes: usize,
    longest: u64,
}

impl Grant<'_> {
    /// Returns the tokens that the answer may have; `None`: no limit applies.
    pub fn output(&self) -> Option<u64> {
        self.ticket.get().and_then(|t| t.output)
    }

    /// Replaces the reservation by what the round trip took.
    pub fn settle(self, spent: &Spent) {
        if let (Some(ticket), Some(ledger)) = (self.ticket.take(), self.quota.ledger) {
            let spent = Spent { cost_usd: cost(spent, self.quota.price), ..*spent };
            ledger.budget.borrow_mut().settle(ticket, &self.quota.want(self.bytes, self.longest), &spent);
            ledger.freed.notify_waiters();
        }
    }

    /// Counts one more request of a program that asks by itself, out of the question's share.
    ///
    /// # Errors
    ///
    /// `Limit`.
    pub fn take(&self) -> Result<(), Failure> {
        self.quota.take()
    }

    /// Counts a retry of a program that asks by itself. Its share is for its turns, so the retry takes a
    /// request that is not reserved.
    ///
    /// # Errors
    ///
    /// `Limit`.
    pub fn take_spare(&self) -> Result<(), Failure> {
        self.quota.take_spare()
    }

    /// Returns the limit that was passed, given what the round trip has spent so far.
    pub fn passed(&self, spent: &Spent) -> Option<Failure> {
        let (ticket, ledger) = (self.ticket.get()?, self.quota.ledger?);
        let spent = Spent { cost_usd: cost(spent, self.quota.price), ..*spent };
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
