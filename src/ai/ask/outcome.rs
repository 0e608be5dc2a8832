//! What a question costs, and how it fails.

use crate::http;
use std::time::Duration;

/// The end of a question: at its deadline or with the run.
pub use http::Limits as Until;

/// The usage and cost of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Requests that were sent, including retries.
    pub requests: u64,
    /// Input tokens, including those from the provider's cache.
    pub input_tokens: u64,
    /// Input tokens from the provider's cache.
    pub cached_tokens: u64,
    /// Input tokens that the provider wrote to its cache.
    pub written_tokens: u64,
    pub output_tokens: u64,
    /// Cost that the provider reports; `None` if it reports none.
    pub cost_usd: Option<f64>,
}

impl Spent {
    /// Adds the usage of another request.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.written_tokens += other.written_tokens;
        self.output_tokens += other.output_tokens;
        self.cost_usd = match (self.cost_usd, other.cost_usd) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// The failure of a question. Its message is one line without keys, and contains at most a short
/// excerpt from a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub cause: Cause,
    /// A lowercase fragment without the backend's name, such as
    /// `429 Too Many Requests; retry after 3600 s`.
    pub message: String,
    /// A suggestion for the user, if there is one.
    pub hint: Option<String>,
    /// Delay after which the provider accepts another request.
    pub retry_after: Option<Duration>,
    /// Usage despite the failure.
    pub usage: Box<Spent>,
}

/// The kinds of failure that callers handle differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The backend cannot be used: a missing program, key or model, or an unsupported option.
    Setup,
    /// The backend could not be reached, or the connection was lost.
    Unreachable,
    /// The backend rejected the request: an invalid key, no credit, a rate limit.
    Refused,
    /// The request is too large for the model. Smaller chunks may help.
    TooLarge,
    /// The answer was truncated at the output limit. Smaller chunks may help.
    CutOff,
    /// The model declined to answer (a refusal, a content filter).
    Declined,
    /// The response is malformed.
    Malformed,
    /// The deadline passed.
    TimedOut,
    /// The run was stopped.
    Stopped,
    /// A limit of the run would be exceeded. The message names it.
    Limit,
}

impl Failure {
    /// Builds a failure without usage.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self {
            cause,
            message: message.into(),
            hint: None,
            retry_after: None,
            usage: Box::default(),
        }
    }

    /// Adds a suggestion for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<http::Failure> for Failure {
    fn from(failure: http::Failure) -> Self {
        let cause = match failure.cause {
            http::Cause::Setup => Cause::Setup,
            http::Cause::Unreachable => Cause::Unreachable,
            http::Cause::Refused => Cause::Refused,
            http::Cause::TooLarge => Cause::TooLarge,
            http::Cause::Malformed => Cause::Malformed,
            http::Cause::TimedOut => Cause::TimedOut,
            http::Cause::Stopped => Cause::Stopped,
            http::Cause::Limit => Cause::Limit,
        };
        let http::Failure {
            message,
            hint,
            retry_after,
            ..
        } = failure;
        Self {
            cause,
            message,
            hint,
            retry_after,
            usage: Box::default(),
        }
    }
}
