//! A question to a backend, and what can come back. Data only.

use super::quota::Quota;
use crate::diff::{LineNo, RepoPath};
use crate::hex;
use crate::http;
use crate::stop::Stop;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// When a question ends: at its deadline or with the run.
pub use http::Limits as Until;

/// The mark of one run: fences carry it, and a reply must repeat it. 32 hexadecimal digits, not to be guessed
/// by who wrote the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// Makes one from 16 random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Self(hex::encode(&random))
    }

    /// Makes one that cannot be guessed.
    pub fn random() -> Self {
        let mut random = [0; 16];
        if getrandom::fill(&mut random).is_err() {
            // No entropy: the clock and addresses of memory are worse, but the author of the change does not know them.
            random.iter_mut().for_each(|b| *b = fastrand::u8(..));
        }
        Self::new(random)
    }

    /// Reads 32 lowercase hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 32 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// Returns the digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a backend is told, in the order in which it is sent. What changes least comes first, so that providers
/// can cache the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Instructions; a template without anything of the run.
    pub system: &'static str,
    /// The run's context (conventions, documents, the request): the same for all requests of a run. May be empty.
    pub context: String,
    /// The files of the whole change.
    pub manifest: Manifest,
    /// The part of the change: the same for all lenses.
    pub chunk: String,
    /// What to do with it; its last line is `nonce: VALUE`.
    pub task: String,
    pub nonce: Nonce,
}

/// The list of the files of the whole change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// As it is sent; may be empty.
    pub text: String,
    /// Its paths. A cached answer is valid for a manifest with the same paths: the counts of other files do not matter.
    pub key: String,
}

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// `review`, `verdict`.
    pub name: &'static str,
    /// JSON Schema of the strict kind: every property required, no others allowed, optional ones nullable.
    pub value: serde_json::Value,
}

/// A second try at an answer that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What came back, capped.
    pub reply: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A question.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub prompt: &'a Prompt,
    pub schema: &'a Schema,
    pub repair: Option<&'a Repair>,
    /// When an answer is too late.
    pub deadline: Instant,
    /// Until when a backend that limits its rate is asked again; not after the deadline.
    pub patience: Instant,
    /// What is left to spend, USD; for programs that can hold themselves to it.
    pub budget_usd: Option<f64>,
    /// What the question may spend; every round trip is reserved here.
    pub quota: &'a Quota<'a>,
    pub stop: &'a Stop,
    /// Set when the answer begins, where the backend streams it.
    pub begun: Option<&'a Begun>,
}

/// Set when an answer begins: from then on the provider's cache has the front of the prompt.
#[derive(Debug, Default)]
pub struct Begun {
    is_set: AtomicBool,
    notify: Notify,
}

impl Begun {
    /// Wakes all that wait.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Waits until it is set.
    pub async fn wait(&self) {
        let notified = self.notify.notified();
        if !self.is_set.load(Ordering::Acquire) {
            notified.await;
        }
    }
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The reply's text: one JSON document, if the backend did as it was told.
    pub text: String,
    pub usage: Spent,
    /// What the backend read with tools, as our own log or the program's events tell; never as the reply claims.
    pub read: Vec<Read>,
    pub lookups: Lookups,
    /// The model that answered, in its provider's words.
    pub model: String,
}

/// What a model looked up while it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookups {
    /// In order.
    pub all: Vec<Lookup>,
    /// The answer must not be kept: a result matches the rules about prompt injection, or a lookup cannot be repeated.
    pub is_unfit: bool,
}

impl Lookups {
    /// Adds those of a further request.
    pub fn append(&mut self, mut other: Self) {
        self.all.append(&mut other.all);
        self.is_unfit |= other.is_unfit;
    }
}

/// Something that a model looked up, and the digest of what it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    pub subject: Subject,
    pub digest: [u8; 32],
}

/// What is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A call of one of our tools, as the model sent it.
    Call { name: String, arguments: Value },
    /// The text of a file, by a program that reads a copy of the tree.
    File(RepoPath),
    /// Anything in the tree, by such a program.
    Tree,
}

/// Lines that a tool call showed to the model: of a file of the tree under review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    pub path: RepoPath,
    pub first: LineNo,
    pub last: LineNo,
}

/// What requests cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// Requests that were sent, retries included.
    pub requests: u64,
    /// Tokens in, those from the provider's cache included.
    pub input_tokens: u64,
    /// Of these, from the provider's cache.
    pub cached_tokens: u64,
    /// Of the tokens in, those that the provider wrote to its cache.
    pub written_tokens: u64,
    pub output_tokens: u64,
    /// As the provider reports it; `None`: it does not.
    pub cost_usd: Option<f64>,
}

impl Spent {
    /// Adds what another request cost.
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

/// Why there is no answer. Its text goes to people: one line, no key, no more than a little of what a server said.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub cause: Cause,
    /// A lowercase fragment without the backend's name: `429 Too Many Requests; retry after 3600 s`.
    pub message: String,
    /// What to do about it, where something can be done.
    pub hint: Option<String>,
    /// When the provider says that it makes sense to ask again.
    pub retry_after: Option<Duration>,
    /// What was spent all the same.
    pub usage: Box<Spent>,
}

/// The kinds of failure that callers handle differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It cannot be asked at all: no program, no key, no model, a flag it does not know.
    Setup,
    /// It could not be reached, or broke off.
    Unreachable,
    /// It said no: a bad key, no credit, a rate limit.
    Refused,
    /// The request is too large for the model: smaller parts may do.
    TooLarge,
    /// It stopped before it was done (its output limit): smaller parts may do.
    CutOff,
    /// It would not answer (a refusal, a content filter).
    Declined,
    /// The response is malformed.
    Malformed,
    /// The deadline passed.
    TimedOut,
    /// The run was ended.
    Stopped,
    /// A limit of the run would be passed; the message names it.
    Limit,
}

impl Failure {
    /// Makes a failure that cost nothing.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into(), hint: None, retry_after: None, usage: Box::default() }
    }

    /// Adds what to do about it.
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
        let http::Failure { message, hint, retry_after, .. } = failure;
        Self { cause, message, hint, retry_after, usage: Box::default() }
    }
}
