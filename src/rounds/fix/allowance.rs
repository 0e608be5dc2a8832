//! The limits of a fix: requests, tokens, cost and time of planning, all attempts and their
//! verification.

use crate::ai::ask::Spent;
use crate::policy::{Layer, Policy};
use crate::request::Overrides;
use std::time::{Duration, Instant};

/// The limits of a fix, and its usage so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    requests: u32,
    tokens: Option<u64>,
    usd: f64,
    /// Whether a person set the limit of cost.
    is_usd_set: bool,
    /// `None` if no flag limits the whole fix.
    end: Option<Instant>,
    /// Time limit of one question or review.
    timeout: Duration,
    pub(super) spent: Total,
}

/// A sum of costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Total {
    pub(super) requests: u64,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) usd: Option<f64>,
}

impl Total {
    /// Returns the input and output tokens.
    pub(super) fn tokens(&self) -> u64 {
        self.input + self.output
    }

    /// Returns the cost since an earlier total, or `None` if no cost is known.
    pub(super) fn cost_since(&self, before: &Self) -> Option<f64> {
        self.usd.map(|usd| usd - before.usd.unwrap_or(0.0))
    }
}

impl Allowance {
    /// Starts with the limits of the policy and of the command line.
    pub(super) fn new(policy: &Policy, flags: &Overrides) -> Self {
        Self {
            requests: policy.review.max_requests,
            tokens: flags.max_tokens,
            usd: policy.review.max_cost_usd,
            is_usd_set: policy.origin_of("review.max_cost_usd").layer != Layer::Default,
            end: flags.timeout.map(|t| Instant::now() + t),
            timeout: policy.review.timeout,
            spent: Total::default(),
        }
    }

    /// Adds the cost of questions.
    pub(super) fn spend(&mut self, all: impl IntoIterator<Item = Spent>) {
        for spent in all {
            self.spent.requests += spent.requests;
            self.spent.input += spent.input_tokens;
            self.spent.output += spent.output_tokens;
            self.spent.usd = match (self.spent.usd, spent.cost_usd) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
    }

    /// Returns the limit that is reached, if any.
    pub(super) fn used_up(&self) -> Option<String> {
        if self.spent.requests >= u64::from(self.requests) {
            return Some(format!("max_requests = {}", self.requests));
        }
        if let Some(most) = self.tokens.filter(|most| self.spent.tokens() >= *most) {
            return Some(format!("--max-tokens {most}"));
        }
        if self
            .spent
            .usd
            .is_some_and(|usd| usd >= self.usd && usd > 0.0)
        {
            return Some(format!("max_cost_usd = {}", self.usd));
        }
        self.end
            .is_some_and(|end| Instant::now() >= end)
            .then(|| "--timeout".to_owned())
    }

    /// Sets the flags of the next question or review to the remaining limits.
    pub(super) fn bound(&self, flags: &mut Overrides) {
        let left = u64::from(self.requests)
            .saturating_sub(self.spent.requests)
            .max(1);
        flags.max_requests = Some(u32::try_from(left).unwrap_or(self.requests));
        flags.max_tokens = self
            .tokens
            .map(|most| most.saturating_sub(self.spent.tokens()).max(1));
        if self.is_usd_set || self.spent.usd.is_some() {
            flags.max_cost_usd = Some((self.usd - self.spent.usd.unwrap_or(0.0)).max(0.0));
        }
        if let Some(end) = self.end {
            let left = end
                .saturating_duration_since(Instant::now())
                .max(Duration::from_millis(1));
            flags.timeout = Some(left.min(self.timeout));
        }
    }

    /// Returns the deadline of a program with this time limit.
    pub(super) fn deadline(&self, most: Duration) -> Instant {
        let own = Instant::now() + most;
        self.end.map_or(own, |end| own.min(end))
    }
}
