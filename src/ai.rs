//! The model reviewer: the change in, claims that were checked against it out.
//!
//! Models make claims; this module asks them well, and believes nothing. `material` is what may be shown,
//! `plan` cuts it into chunks, `prompt` puts a chunk into words, `backend` asks, `reply` reads the answer,
//! `anchor` finds each claim again in the change. Nothing of a provider is known outside of `backend`.

pub mod agent;
pub mod anchor;
pub mod ask;
pub mod backend;
pub mod budget;
pub mod cache;
pub mod claim;
pub mod context;
pub mod debug;
pub(crate) mod desk;
pub mod kept;
pub mod material;
pub mod plan;
pub mod price;
pub mod prompt;
pub mod quota;
pub mod redact;
pub mod related;
pub mod reply;
pub mod restore;
pub mod run;
mod section;
pub(crate) mod snapshot;
pub mod tools;
pub mod tree;

use crate::diff::{LineNo, RepoPath};
use crate::finding::Severity;
use ask::{Cause, Spent};
use std::time::Duration;

/// What models did for a review, besides their findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models {
    /// The backends that were to look, by name, in the order of the policy.
    pub asked: Vec<String>,
    /// Something of the change was for a model to see, whether or not one was asked; known only where policy or the
    /// request names one.
    pub owed: bool,
    pub usage: Vec<Usage>,
    pub dropped: Vec<Dropped>,
    /// `None` unless design documents were given and a model spoke of them.
    pub compliance: Option<Compliance>,
    pub missing: Vec<Missing>,
    /// What models say of the change as a whole: their opinion, which decides nothing.
    pub opinions: Vec<Opinion>,
    /// Why questions have no answer, for whoever thinks of asking again.
    pub setbacks: Vec<Setback>,
    /// Which documents of conventions were looked for, where there is none of them; `None` where a model had some, or
    /// none was asked.
    pub no_conventions: Option<String>,
    /// How each criterion of the contract stands, in its order; empty unless one was given and somebody was asked.
    pub criteria: Vec<Judged>,
}

/// How a criterion of a contract stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    pub id: String,
    /// `None`: it could not be decided.
    pub met: Option<bool>,
    /// A model's words, or ours where nobody's are good enough. Secrets masked.
    pub reason: String,
    /// Lines of the change that were found again; there are some whenever `met` is `Some(true)`.
    pub evidence: Option<Spot>,
    /// Whose word it is.
    pub backend: Option<String>,
}

/// Lines of the change, as they were shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub file: RepoPath,
    /// The first line, on the new side; `None`: it was removed.
    pub line: Option<LineNo>,
    pub quote: String,
}

/// A question that has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    pub backend: String,
    pub cause: ask::Cause,
    /// When the provider says that it makes sense to ask again.
    pub retry_after: Option<Duration>,
}

impl Setback {
    pub(crate) fn of(backend: &str, failure: &ask::Failure) -> Self {
        Self { backend: backend.to_owned(), cause: failure.cause, retry_after: failure.retry_after }
    }
}

/// Whether asking again later can help, told by the reasons why questions have no answer; never by anybody's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub retryable: bool,
    /// Seconds, where a provider says how long.
    pub after: Option<u64>,
}

impl Retry {
    /// Finds out from what keeps questions from an answer.
    pub fn of(setbacks: &[Setback]) -> Self {
        let passes = |s: &&Setback| match s.cause {
            Cause::Unreachable | Cause::TimedOut | Cause::Malformed | Cause::CutOff => true,
            // A limit passes by itself; a bad key does not.
            Cause::Refused => s.retry_after.is_some(),
            Cause::Setup | Cause::TooLarge | Cause::Declined | Cause::Stopped | Cause::Limit => false,
        };
        let after = setbacks.iter().filter(passes).filter_map(|s| s.retry_after).max();
        let after = after.map(|d| d.as_secs() + u64::from(d.subsec_nanos() > 0));
        Self { retryable: setbacks.iter().any(|s| passes(&s)), after }
    }

    /// Says to whoever asked what these two fields mean: a sentence or two, and nothing that one of them denies.
    pub fn words(self) -> String {
        match self {
            Self { retryable: true, after: Some(s) } => {
                format!(
                    "A retry may succeed after {s} s, not earlier. Do not retry in a loop: retry once, then report to the user."
                )
            }
            Self { retryable: true, after: None } => {
                "A later retry may succeed. Do not retry in a loop: retry once, then report to the user.".to_owned()
            }
            Self { retryable: false, .. } => {
                "A retry will not succeed. Do not retry in a loop: fix the named cause, or report to the user."
                    .to_owned()
            }
        }
    }
}

impl Models {
    /// Puts everything in an order that does not depend on who answered first, and drops repeats.
    fn tidy(&mut self) {
        let asked = &self.asked;
        self.usage.sort_by_key(|u| asked.iter().position(|name| *name == u.backend));
        self.dropped.sort();
        self.opinions.sort();
        self.opinions.dedup();
        self.missing.sort();
        self.missing.dedup();
        if let Some(c) = &mut self.compliance {
            c.violations.sort();
            c.violations.dedup();
        }
    }
}

/// What a model says of a part of the change as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opinion {
    pub backend: String,
    /// Foreign text, secrets masked.
    pub text: String,
}

/// What one backend was asked, and what it cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub backend: String,
    /// In the provider's words; empty where none answered.
    pub model: String,
    /// Cost from the provider, else from the policy's prices; `None` where neither names one.
    pub spent: Spent,
    /// Questions that were answered from the cache.
    pub from_cache: u64,
    /// Questions without an answer that counts.
    pub failed: u64,
    /// From the first question to the last answer.
    pub duration: Duration,
}

/// A claim that could not be tied to the change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    pub backend: String,
    pub claim: String,
    pub why: &'static str,
}

/// What models say of the change against the documents that were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compliance {
    pub follows: bool,
    pub violations: Vec<Violation>,
}

/// Where the change leaves the design, in a model's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    pub issue: String,
    pub description: String,
    pub impact: Severity,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    pub recommendation: Option<String>,
}

/// What a document asks for and the change lacks, in a model's words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    pub requirement: String,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    pub severity: Severity,
}

/// Answers in place of a backend's: for the program's test of itself. `NONCE` in them stands for the nonce of the run.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// What is said where a review is asked for, and where a verdict on a claim is.
    pub review: String,
    pub verdict: String,
    /// What was read, as a tool log would show it.
    pub read: Vec<ask::Read>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setback(cause: Cause, after: Option<u64>) -> Setback {
        Setback { backend: "b".to_owned(), cause, retry_after: after.map(Duration::from_secs) }
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_another_call() {
        for (setbacks, retryable, after) in [
            (vec![], false, None),
            (vec![setback(Cause::Setup, None)], false, None),
            (vec![setback(Cause::Refused, None)], false, None),
            (vec![setback(Cause::Refused, Some(30))], true, Some(30)),
            (vec![setback(Cause::Unreachable, None)], true, None),
            (vec![setback(Cause::TimedOut, Some(5)), setback(Cause::Refused, Some(60))], true, Some(60)),
        ] {
            assert_eq!(Retry::of(&setbacks), Retry { retryable, after }, "{setbacks:?}");
        }
    }
}
