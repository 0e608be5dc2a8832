//! A question to a backend, and the possible results. Data only.

use super::quota::Quota;
use crate::diff::{LineNo, RepoPath};
use crate::hex;
use crate::http;
use crate::stop::Stop;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The end of a question: at its deadline or with the run.
pub use http::Limits as Until;

/// A random mark of one run that a reply must repeat. It has 32 hexadecimal digits, so the author
/// of the change cannot guess it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// Builds a nonce from 16 random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(hex::encode(&random))
    }

    /// Generates a random nonce.
    pub fn random() -> Self {
        let mut random = [0; 16];
        if getrandom::fill(&mut random).is_err() {
            // Without entropy, fall back to a generator seeded from the clock and memory addresses,
            // which the author of the change does not know.
            random.iter_mut().for_each(|b| *b = fastrand::u8(..));
        }
        Self::new(random)
    }

    /// Parses 32 lowercase hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_valid = text.len() == 32
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_valid.then(|| Self(text.to_owned()))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The parts of a prompt, in the order in which they are sent. The least variable part comes first,
/// so that providers can cache the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Instructions; a constant template.
    pub system: &'static str,
    /// Context of the run (conventions, documents, the request), the same for all its requests. May
    /// be empty.
    pub context: String,
    /// The files of the whole change.
    pub manifest: Manifest,
    /// The part of the change, the same for all lenses.
    pub chunk: String,
    /// Task for this request; its last line is `nonce: VALUE`.
    pub task: String,
    pub nonce: Nonce,
}

/// The list of the files of the whole change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Rendered list; may be empty.
    pub text: String,
    /// Paths in the list. A cached answer is valid for any manifest with the same paths, because
    /// the line counts of other files do not matter.
    pub key: String,
}

/// The schema of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// `review`, `verdict` or similar.
    pub name: &'static str,
    /// Strict JSON Schema: every property required, no additional properties, optional ones
    /// nullable.
    pub value: serde_json::Value,
}

/// A request to repair an invalid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The invalid answer, truncated.
    pub reply: String,
    /// Problem with the answer.
    pub problem: String,
}

/// A question to a backend.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub prompt: &'a Prompt,
    pub schema: &'a Schema,
    pub repair: Option<&'a Repair>,
    /// Deadline of the answer.
    pub deadline: Instant,
    /// Time until which rate-limited requests are retried; at or before the deadline.
    pub patience: Instant,
    /// Remaining budget in USD, for programs that can enforce it.
    pub budget_usd: Option<f64>,
    /// Quota of the question, from which every round trip is reserved.
    pub quota: &'a Quota<'a>,
    pub stop: &'a Stop,
    /// Set when the answer begins, if the backend streams it.
    pub begun: Option<&'a Begun>,
}

/// A flag that is set when an answer begins. From then on the provider's cache contains the prefix
/// of the prompt.
#[derive(Debug, Default)]
pub struct Begun {
    is_set: AtomicBool,
    notify: Notify,
}

impl Begun {
    /// Sets the flag and wakes all waiting tasks.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Waits until the flag is set.
    pub async fn wait(&self) {
        let notified = self.notify.notified();
        if !self.is_set.load(Ordering::Acquire) {
            notified.await;
        }
    }
}

/// The answer of a backend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelAnswer {
    /// Text of the reply: one JSON document, if the backend followed the instructions.
    pub text: String,
    pub usage: Spent,
    /// Lines that the backend read with tools, from the log of this process or the events of the
    /// program. Never from the reply itself.
    pub read: Vec<Read>,
    pub lookups: Lookups,
    /// Model name from the provider.
    pub model: String,
}

/// The lookups of a model during an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// Lookups in order.
    pub all: Vec<Lookup>,
    /// True if the answer must not be cached: a result matches the rules about prompt injection, or
    /// a lookup cannot be repeated.
    pub is_unfit: bool,
}

impl Lookups {
    /// Adds the lookups of a further request.
    pub fn append(&mut self, mut other: Self) {
        self.all.append(&mut other.all);
        self.is_unfit |= other.is_unfit;
    }
}

/// A lookup of a model, with the digest of its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub subject: LookupSubject,
    pub digest: [u8; 32],
}

/// The subject of a lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupSubject {
    /// A call of a tool of this program, as the model sent it.
    Call { name: String, arguments: Value },
    /// The text of a file, read by a program from a copy of the tree.
    File(RepoPath),
    /// Any part of the tree, read by such a program.
    Tree,
}

/// Lines of a file of the tree under review that a tool call returned to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub path: RepoPath,
    pub first: LineNo,
    pub last: LineNo,
}

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
