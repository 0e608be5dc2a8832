//! The budget of a run: spent and reserved requests, tokens and dollars. Pure.
//!
//! Every round trip is reserved before it starts: one request, a conservative estimate of the
//! tokens of its prompt, and the longest answer, to which the request then limits the model. After
//! the round trip, the actual usage replaces the reservation. So the limits also hold for
//! concurrent requests.

use super::ask::outcome::Spent;
use crate::policy::Price;
use std::collections::HashMap;

/// Bytes per token, to estimate a prompt; conservative for code.
const BYTES: u64 = 3;
/// Tokens of one answer, at most, unless a higher effort is configured. All current models can
/// write this many.
pub const LONGEST: u64 = 16_000;
/// Tokens of an answer that is not truncated. With a smaller remaining budget, a request waits
/// until others have ended.
const ENOUGH: u64 = 4_000;
/// Tokens of an answer below which a request is not sent.
const LEAST: u64 = 256;
/// Tokens of an answer if the provider does not report them.
const UNCOUNTED: u64 = 1_500;
/// Tokens that the results of tools add to a conversation in one round, for an estimate.
const TOOLS: u64 = 5_000;

/// Surcharge for input that the provider writes to its cache, as a fraction of the input price.
/// Applies to Anthropic's five-minute cache and to OpenAI's.
const WRITE: f64 = 0.25;

/// Spending limits of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetLimits {
    pub requests: u32,
    pub usd: f64,
    /// True if the user set `usd`, false if it is the default.
    pub usd_is_set: bool,
    /// Input and output tokens together.
    pub tokens: Option<u64>,
}

/// Counts of requests: sent, and promised to questions.
#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    sent: u32,
    /// Promised to open questions and not yet sent.
    promised: u32,
    /// Planned questions that are not open yet. One request is set aside for each.
    waiting: u32,
    open: u32,
    /// Set aside for the second review.
    kept: u32,
}

/// Spent and reserved amounts of a run.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: BudgetLimits,
    requests: Requests,
    tokens: u64,
    held_tokens: u64,
    usd: f64,
    held_usd: f64,
    in_flight: u32,
    /// Reported cost, by backend.
    costs: HashMap<String, Cost>,
}

/// Cost that the answers of a backend report.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cost {
    /// The answers contain no cost.
    Unnamed,
    /// Highest cost per token of a request so far, in USD.
    PerToken(f64),
}

/// A round trip to reserve: the backend, its price in the policy, and the sizes.
#[derive(Clone, Copy, Debug)]
pub struct Want<'w> {
    pub backend: &'w str,
    pub price: Option<&'w Price>,
    /// Bytes of the request.
    pub bytes: usize,
    /// Tokens of the answer, at most.
    pub longest: u64,
}

/// The reservation of one round trip, held until it is settled.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Ticket {
    input: u64,
    tokens: u64,
    usd: f64,
    /// Tokens that the answer may have; `None` if no limit applies.
    pub output: Option<u64>,
}

/// The result of a reservation.
#[derive(Debug)]
pub enum Reservation {
    Granted(Ticket),
    /// The round trip may fit when a request in flight has ended.
    Later,
    /// The limit that would be exceeded, such as `max_requests = 40`.
    Refused(String),
}

impl Budget {
    /// Creates a budget with nothing spent.
    pub fn new(limits: BudgetLimits) -> Self {
        Self {
            limits,
            requests: Requests::default(),
            tokens: 0,
            held_tokens: 0,
            usd: 0.0,
            held_usd: 0.0,
            in_flight: 0,
            costs: HashMap::new(),
        }
    }

    /// Announces questions, so that each of them gets at least one request.
    pub fn plan(&mut self, questions: usize) {
        let questions = u32::try_from(questions).unwrap_or(u32::MAX);
        self.requests.waiting = self.requests.waiting.saturating_add(questions);
    }

    /// Cancels a planned question, because its answer is cached.
    pub fn skip(&mut self) {
        self.requests.waiting = self.requests.waiting.saturating_sub(1);
    }

    /// Sets requests aside for later questions, at most as many as the planned questions leave.
    pub fn keep(&mut self, requests: u32) {
        let spare = self
            .left()
            .saturating_sub(self.requests.promised + self.requests.waiting);
        self.requests.kept = requests.min(spare);
    }

    /// Opens a planned question and returns its share of requests, at most `most`.
    ///
    /// # Errors
    ///
    /// Returns the limit if no request is left.
    pub fn open(&mut self, most: u32) -> Result<u32, String> {
        let available = self.left().saturating_sub(self.requests.promised);
        if available == 0 {
            return Err(self.requests_limit());
        }
        let r = &mut self.requests;
        r.waiting = r.waiting.saturating_sub(1);
        let free = available
            .saturating_sub(1)
            .saturating_sub(r.waiting)
            .saturating_sub(r.kept);
        let share = 1 + (free / (r.waiting + 1)).min(most.saturating_sub(1));
        r.promised += share;
        r.open += 1;
        Ok(share)
    }

    /// Closes a question and releases the rest of its share.
    pub fn close(&mut self, share: u32) {
        self.requests.promised = self.requests.promised.saturating_sub(share);
        self.requests.open = self.requests.open.saturating_sub(1);
    }

    /// Takes one request from the share of a question, or from the spare requests if the share is
    /// used up.
    ///
    /// # Errors
    ///
    /// Returns the limit.
    pub fn take(&mut self, share: &mut u32) -> Result<(), String> {
        if *share > 0 {
            *share -= 1;
            self.requests.promised = self.requests.promised.saturating_sub(1);
        } else if self.spare() == 0 {
            return Err(self.requests_limit());
        }
        self.requests.sent += 1;
        Ok(())
    }

    /// Returns the number of requests that are not promised to any question.
    pub fn spare(&self) -> u32 {
        let r = &self.requests;
        self.left()
            .saturating_sub(r.promised)
            .saturating_sub(r.waiting)
            .saturating_sub(r.kept)
    }

    fn left(&self) -> u32 {
        self.limits.requests.saturating_sub(self.requests.sent)
    }

    fn requests_limit(&self) -> String {
        format!("max_requests = {}", self.limits.requests)
    }

    /// Reserves tokens and cost of a round trip.
    pub fn reserve(&mut self, want: &Want<'_>) -> Reservation {
        let input = (want.bytes as u64).div_ceil(BYTES);
        let price = self.price_of(want);
        let is_unknown =
            self.limits.usd_is_set && price.is_none() && !self.costs.contains_key(want.backend);
        if is_unknown && self.in_flight > 0 {
            // The first answer may contain a cost. Until then, send one request at a time, to limit
            // the risk of exceeding the budget.
            return Reservation::Later;
        }
        let (room, limit) = self.room(input, price.as_ref());
        if room < LEAST || (room < ENOUGH && self.in_flight > 0) {
            return if self.in_flight > 0 {
                Reservation::Later
            } else {
                Reservation::Refused(limit)
            };
        }
        let output = (room < u64::MAX).then(|| room.min(want.longest));
        let tokens = input + output.unwrap_or(UNCOUNTED);
        let usd = price.map_or(0.0, |p| cost_of(&p, input, output.unwrap_or(UNCOUNTED)));
        self.held_tokens += tokens;
        self.held_usd += usd;
        self.in_flight += 1;
        Reservation::Granted(Ticket {
            input,
            tokens,
            usd,
            output,
        })
    }

    /// Returns the tokens that an answer can have within the limits, and the tightest limit.
    fn room(&self, input: u64, price: Option<&Price>) -> (u64, String) {
        let by_tokens = self.limits.tokens.map(|most| {
            let room = most
                .saturating_sub(self.tokens)
                .saturating_sub(self.held_tokens)
                .saturating_sub(input);
            (room, format!("--max-tokens {most}"))
        });
        let by_cost = price.map(|p| {
            let left = self.limits.usd - self.usd - self.held_usd - cost_of(p, input, 0);
            let room = if p.output > 0.0 {
                (left * 1e6 / p.output).max(0.0) as u64
            } else {
                u64::MAX
            };
            let room = if left > 0.0 || (left >= 0.0 && is_free(p)) {
                room
            } else {
                0
            };
            (room, format!("max_cost_usd = {}", self.limits.usd))
        });
        let spent = (self.usd > 0.0 && self.usd >= self.limits.usd)
            .then(|| (0, format!("max_cost_usd = {}", self.limits.usd)));
        let all = [by_tokens, by_cost, spent].into_iter().flatten();
        all.min_by_key(|(room, _)| *room)
            .unwrap_or((u64::MAX, String::new()))
    }

    /// Returns true if the budget allows two more round trips for a question, the second with
    /// results of tools. Tools are only offered then, so that enough is left for the answer.
    pub fn affords_tools(&self, want: &Want<'_>) -> bool {
        let input = 2 * (want.bytes as u64).div_ceil(BYTES) + TOOLS + UNCOUNTED;
        let open = u64::from((self.requests.open + self.requests.waiting).max(1));
        let by_tokens = self.limits.tokens.is_none_or(|most| {
            let left = most
                .saturating_sub(self.tokens)
                .saturating_sub(self.held_tokens);
            left / open >= input + UNCOUNTED
        });
        let by_cost = self.price_of(want).is_none_or(|p| {
            let left = self.limits.usd - self.usd - self.held_usd;
            left / open as f64 >= cost_of(&p, input, UNCOUNTED)
        });
        by_tokens && by_cost
    }

    fn price_of(&self, want: &Want<'_>) -> Option<Price> {
        match (want.price, self.costs.get(want.backend)) {
            (Some(price), _) => Some(*price),
            (None, Some(Cost::PerToken(usd))) => {
                let million = usd * 1e6;
                Some(Price {
                    input: million,
                    cached: million,
                    output: million,
                })
            }
            (None, _) => None,
        }
    }

    /// Replaces a reservation with the actual usage. If the provider reports none, the estimate is
    /// kept.
    pub fn settle(&mut self, ticket: Ticket, want: &Want<'_>, spent: &Spent) {
        self.release(ticket);
        let input = if spent.input_tokens > 0 {
            spent.input_tokens
        } else {
            ticket.input
        };
        let output = if spent.output_tokens > 0 || spent.input_tokens > 0 {
            spent.output_tokens
        } else {
            UNCOUNTED
        };
        self.tokens = self.tokens.saturating_add(input).saturating_add(output);
        self.usd += spent.cost_usd.unwrap_or(0.0);
        match (spent.cost_usd, want.price) {
            (Some(usd), None) => {
                let rate = usd / (input + output).max(1) as f64;
                let most = match self.costs.get(want.backend) {
                    Some(Cost::PerToken(known)) => known.max(rate),
                    _ => rate,
                };
                self.costs
                    .insert(want.backend.to_owned(), Cost::PerToken(most));
            }
            (Some(_), Some(_)) => {}
            (None, _) => drop(
                self.costs
                    .entry(want.backend.to_owned())
                    .or_insert(Cost::Unnamed),
            ),
        }
    }

    /// Releases a reservation without an answer.
    pub fn release(&mut self, ticket: Ticket) {
        self.held_tokens = self.held_tokens.saturating_sub(ticket.tokens);
        self.held_usd = (self.held_usd - ticket.usd).max(0.0);
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Returns the limit that a round trip in flight has exceeded, given its usage so far.
    pub fn passed(&self, ticket: &Ticket, spent: &Spent) -> Option<String> {
        let tokens = self.tokens + self.held_tokens.saturating_sub(ticket.tokens);
        let now = spent.input_tokens + spent.output_tokens;
        let by_tokens = self
            .limits
            .tokens
            .filter(|most| tokens + now > *most)
            .map(|m| format!("--max-tokens {m}"));
        let usd = self.usd + (self.held_usd - ticket.usd).max(0.0) + spent.cost_usd.unwrap_or(0.0);
        by_tokens.or_else(|| {
            (usd > self.limits.usd).then(|| format!("max_cost_usd = {}", self.limits.usd))
        })
    }

    /// Returns the dollars spent so far, or `None` if no cost is known.
    pub fn usd(&self) -> Option<f64> {
        let is_known = self.usd > 0.0 || self.costs.values().any(|c| *c != Cost::Unnamed);
        is_known.then_some(self.usd)
    }

    /// Returns the dollars that are not spent. Some of them can be reserved.
    pub fn usd_left(&self) -> f64 {
        (self.limits.usd - self.usd).max(0.0)
    }
}

fn is_free(price: &Price) -> bool {
    price.input <= 0.0 && price.output <= 0.0
}

fn cost_of(price: &Price, input: u64, output: u64) -> f64 {
    (input as f64 * price.input + output as f64 * price.output) / 1e6
}

/// Returns the cost from the provider, or else the cost by the prices of the policy.
pub fn cost(spent: &Spent, price: Option<&Price>) -> Option<f64> {
    spent
        .cost_usd
        .or_else(|| price.map(|p| cost_by_price(spent, p)))
}

/// Returns the cost of the counted tokens.
fn cost_by_price(spent: &Spent, p: &Price) -> f64 {
    let fresh = spent.input_tokens.saturating_sub(spent.cached_tokens) as f64;
    let fresh = fresh + spent.written_tokens as f64 * WRITE;
    (fresh * p.input
        + spent.cached_tokens as f64 * p.cached
        + spent.output_tokens as f64 * p.output)
        / 1e6
}

#[cfg(test)]
mod tests;
