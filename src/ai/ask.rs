//! A question to a backend, and the possible results. Data only.

pub(super) mod outcome;

use super::batch::queue::BatchQueue;
use super::quota::Quota;
use crate::diff::{LineNo, RepoPath};
use crate::hex;
use crate::stop::Stop;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::sync::Notify;

pub use outcome::{Cause, Failure, Spent, Until};

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
    /// The queue of the batch that the request becomes a part of; `None` to send it at once.
    pub batch: Option<&'a BatchQueue>,
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
