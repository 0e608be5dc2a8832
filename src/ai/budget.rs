//! What a run may still spend: requests, tokens, dollars. Pure.
//!
//! A request is counted before it is sent, by an estimate, so that requests in flight at the same time cannot go
//! past a limit together; when its answer is there, what it really took replaces the estimate.

use super::ask::Spent;
use crate::policy::Price;

/// Tokens of an answer, for an estimate: most say less.
const ANSWER: u64 = 1_500;
/// Bytes of a token, for an estimate; on the safe side for code.
const BYTES: u64 = 3;

/// How much one run may spend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub requests: u32,
    pub usd: f64,
    /// In and out.
    pub tokens: Option<u64>,
}

/// What is spent and what is reserved.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    requests: u32,
    tokens: u64,
    usd: f64,
    /// Somebody named a price: the provider or the policy.
    priced: bool,
}

/// What one request is thought to take; given back when it is settled.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Ticket {
    tokens: u64,
    usd: f64,
}

impl Budget {
    /// Starts with nothing spent.
    pub fn new(limits: Limits) -> Self {
        Self { limits, requests: 0, tokens: 0, usd: 0.0, priced: false }
    }

    /// Takes leave to send a request of `bytes`.
    ///
    /// # Errors
    ///
    /// The limit that it would pass, in words: `max_requests = 40`.
    pub fn reserve(&mut self, bytes: usize, price: Option<&Price>) -> Result<Ticket, String> {
        let input = bytes as u64 / BYTES;
        let tokens = input + ANSWER;
        let usd = price.map_or(0.0, |p| (input as f64 * p.input + ANSWER as f64 * p.output) / 1e6);
        if self.requests >= self.limits.requests {
            return Err(format!("max_requests = {}", self.limits.requests));
        }
        // What is spent already counts exactly; the estimate only keeps requests from starting together.
        if self
            .limits
            .tokens
            .is_some_and(|most| self.tokens >= most || self.tokens + tokens > most && self.requests > 0)
        {
            return Err(format!("--max-tokens {}", self.limits.tokens.unwrap_or_default()));
        }
        let known = self.priced || price.is_some();
        if known && (self.usd >= self.limits.usd || self.usd + usd > self.limits.usd && self.requests > 0) {
            return Err(format!("max_cost_usd = {}", self.limits.usd));
        }
        self.requests += 1;
        self.tokens += tokens;
        self.usd += usd;
        Ok(Ticket { tokens, usd })
    }

    /// Replaces an estimate by what the request took, its cost included where somebody names one.
    pub fn settle(&mut self, ticket: Ticket, spent: &Spent) {
        self.tokens = self.tokens.saturating_sub(ticket.tokens) + spent.input_tokens + spent.output_tokens;
        self.usd = (self.usd - ticket.usd).max(0.0) + spent.cost_usd.unwrap_or(0.0);
        self.priced |= spent.cost_usd.is_some();
    }

    /// Returns the dollars spent so far; `None` while nobody has named a price.
    pub fn usd(&self) -> Option<f64> {
        self.priced.then_some(self.usd)
    }

    /// Returns the dollars that are left.
    pub fn left(&self) -> f64 {
        (self.limits.usd - self.usd).max(0.0)
    }
}

/// Returns what a request cost by the policy's prices, where the provider did not say.
pub fn cost(spent: &Spent, price: Option<&Price>) -> Option<f64> {
    let by_price = |p: &Price| {
        let fresh = spent.input_tokens.saturating_sub(spent.cached_tokens) as f64;
        (fresh * p.input + spent.cached_tokens as f64 * p.cached + spent.output_tokens as f64 * p.output) / 1e6
    };
    spent.cost_usd.or_else(|| price.map(by_price))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(requests: u32, usd: f64, tokens: Option<u64>) -> Limits {
        Limits { requests, usd, tokens }
    }

    #[test]
    fn requests_are_counted_before_they_are_sent() {
        let mut budget = Budget::new(limits(2, 1.0, None));
        let _ = budget.reserve(100, None).unwrap();
        let _ = budget.reserve(100, None).unwrap();
        assert_eq!(budget.reserve(100, None).unwrap_err(), "max_requests = 2");
    }

    #[test]
    fn requests_in_flight_together_do_not_pass_a_limit() {
        let price = Price { input: 1_000.0, cached: 100.0, output: 1_000.0 };
        let mut budget = Budget::new(limits(10, 4.0, None));
        // 1,000 tokens in and 1,500 out: about 2.50 each.
        let first = budget.reserve(3_000, Some(&price)).unwrap();
        assert_eq!(budget.reserve(3_000, Some(&price)).unwrap_err(), "max_cost_usd = 4");
        let spent = Spent { input_tokens: 1_000, output_tokens: 10, ..Spent::default() };
        let spent = Spent { cost_usd: cost(&spent, Some(&price)), ..spent };
        budget.settle(first, &spent);
        assert!((budget.usd().unwrap() - 1.01).abs() < 1e-9, "{:?}", budget.usd());
        let _ = budget.reserve(3_000, Some(&price)).unwrap();
    }

    #[test]
    fn one_request_is_always_sent_where_anything_is_left() {
        let mut budget = Budget::new(limits(10, 1.0, Some(10)));
        let ticket = budget.reserve(3_000, None).unwrap();
        budget.settle(ticket, &Spent { input_tokens: 9, ..Spent::default() });
        assert_eq!(budget.reserve(3_000, None).unwrap_err(), "--max-tokens 10");
        let price = Price { input: 1.0, cached: 1.0, output: 1.0 };
        assert!(Budget::new(limits(10, 0.0, None)).reserve(3, Some(&price)).is_err());
    }

    #[test]
    fn a_cost_that_the_provider_reports_stops_the_next_request() {
        let mut budget = Budget::new(limits(10, 0.5, None));
        let ticket = budget.reserve(30, None).unwrap();
        budget.settle(ticket, &Spent { cost_usd: Some(3.0), ..Spent::default() });
        assert_eq!(budget.reserve(30, None).unwrap_err(), "max_cost_usd = 0.5");
        assert_eq!(budget.left(), 0.0);
    }

    #[test]
    fn cached_tokens_have_their_own_price() {
        let price = Price { input: 3.0, cached: 0.3, output: 15.0 };
        let spent =
            Spent { input_tokens: 1_000_000, cached_tokens: 900_000, output_tokens: 100_000, ..Spent::default() };
        assert!((cost(&spent, Some(&price)).unwrap() - (0.3 + 0.27 + 1.5)).abs() < 1e-9);
        assert_eq!(cost(&Spent { cost_usd: Some(2.0), ..spent }, Some(&price)), Some(2.0));
        assert_eq!(cost(&spent, None), None);
    }
}
