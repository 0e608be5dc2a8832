//! The model reviewer: takes a change and returns the claims of models that were checked against
//! it.
//!
//! Models make claims, and no claim is trusted unchecked. `material` holds the content that models
//! may receive, `plan` cuts it into chunks, `prompt` renders a chunk as a prompt, `backend` sends
//! it, `reply` parses the answer, and `anchor` places each claim on a line of the change. Only
//! `backend` depends on a provider.

pub mod agent;
pub mod anchor;
pub mod ask;
pub mod backend;
pub mod batch;
pub mod budget;
pub mod cache;
pub mod claim;
pub mod context;
pub mod debug;
pub(crate) mod desk;
pub mod journal;
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
pub mod risk;
pub mod run;
mod section;
pub mod shared;
pub(crate) mod snapshot;
pub mod tools;
pub mod tree;

use crate::diff::{LineNo, RepoPath};
use crate::finding::Severity;
use ask::{Cause, Spent};
use std::borrow::Cow;
use std::time::Duration;

/// Results of the models in a review, except their findings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Models {
    /// Names of the backends that were selected for the review, in the order of the policy.
    pub asked: Vec<String>,
    /// True if the change has content for a model, even if no backend was asked. Set only if the
    /// policy or the request names a backend.
    pub owed: bool,
    pub usage: Vec<BackendUsage>,
    pub dropped: Vec<Dropped>,
    /// `None` unless design documents were given and a model commented on them.
    pub compliance: Option<Compliance>,
    pub missing: Vec<UnmetRequirement>,
    /// Opinions of models about the change as a whole. They do not affect the verdict.
    pub opinions: Vec<Opinion>,
    /// Failures of requests, from which [`Retry`] is derived.
    pub setbacks: Vec<Setback>,
    /// Names of the convention documents that were searched for, if none exists. `None` if a model
    /// received conventions or no model was asked.
    pub no_conventions: Option<String>,
    /// State of each criterion of the contract, in its order. Empty unless a contract was given and
    /// a backend was asked.
    pub criteria: Vec<JudgedCriterion>,
}

/// The state of one criterion of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedCriterion {
    pub id: String,
    /// `None` if it could not be decided.
    pub met: Option<bool>,
    /// Reason from a model, or a generated one if no model gave a usable reason. Secrets are
    /// masked.
    pub reason: String,
    /// Lines of the change that support the decision. Always present if `met` is `Some(true)`.
    pub evidence: Option<EvidenceSpot>,
    /// Name of the backend that decided.
    pub backend: Option<String>,
}

/// Lines of the change, in the form that the model received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceSpot {
    pub file: RepoPath,
    /// First line on the new side; `None` for a removed line.
    pub line: Option<LineNo>,
    pub quote: String,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    pub backend: String,
    pub cause: ask::Cause,
    /// Delay after which the provider accepts another request.
    pub retry_after: Option<Duration>,
}

impl Setback {
    pub(crate) fn of(backend: &str, failure: &ask::Failure) -> Self {
        Self {
            backend: backend.to_owned(),
            cause: failure.cause,
            retry_after: failure.retry_after,
        }
    }

    /// Returns true if a retry of the request can succeed.
    fn is_temporary(&self) -> bool {
        match self.cause {
            Cause::Unreachable | Cause::TimedOut | Cause::Malformed | Cause::CutOff => true,
            // A rate limit ends by itself; an invalid key does not.
            Cause::Refused => self.retry_after.is_some(),
            Cause::Setup | Cause::TooLarge | Cause::Declined | Cause::Stopped | Cause::Limit => {
                false
            }
        }
    }
}

/// Whether a retry can succeed. Derived from the typed causes of the failures, never from the text
/// of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    pub retryable: bool,
    /// Seconds until a retry, if a provider gave a delay.
    pub after: Option<u64>,
}

impl Retry {
    /// Derives the advice from the failures.
    pub fn of(setbacks: &[Setback]) -> Self {
        let after = setbacks
            .iter()
            .filter(|s| s.is_temporary())
            .filter_map(|s| s.retry_after)
            .max();
        let after = after.map(|d| d.as_secs() + u64::from(d.subsec_nanos() > 0));
        Self {
            retryable: setbacks.iter().any(Setback::is_temporary),
            after,
        }
    }

    /// Returns one or two sentences that explain the two fields to the caller.
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
    /// Sorts all lists, so that the order of the answers does not matter, and removes duplicates.
    fn tidy(&mut self) {
        let asked = &self.asked;
        // A backend that only an earlier run asked comes last.
        self.usage.sort_by_key(|u| {
            let place = asked.iter().position(|name| *name == u.backend);
            place.unwrap_or(usize::MAX)
        });
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

/// A model's opinion of a part of the change as a whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Opinion {
    pub backend: String,
    /// Untrusted text with secrets masked.
    pub text: String,
}

/// Requests to one backend, and their cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackendUsage {
    pub backend: String,
    /// Model name from the provider; empty if no request was answered.
    pub model: String,
    /// The cost is from the provider, or else from the prices in the policy; `None` if neither has
    /// it.
    pub spent: Spent,
    /// Requests that were answered from the cache.
    pub from_cache: u64,
    /// Requests without a usable answer.
    pub failed: u64,
    /// True if the requests were sent in batches, at the lower price of these.
    pub batch: bool,
    /// The part of the cost that earlier runs of a resumed audit had; `None` without such runs, or
    /// if no price was known.
    pub earlier_usd: Option<f64>,
    /// Time from the first request to the last answer.
    pub duration: Duration,
}

/// A claim that could not be anchored to the change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dropped {
    pub backend: String,
    pub claim: String,
    pub why: Cow<'static, str>,
}

/// Compliance of the change with the given documents, as models judge it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compliance {
    pub follows: bool,
    pub violations: Vec<DesignViolation>,
}

/// A violation of the design, as a model describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DesignViolation {
    pub issue: String,
    pub description: String,
    pub impact: Severity,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    pub recommendation: Option<String>,
}

/// A requirement of a document that the change does not meet, as a model describes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnmetRequirement {
    pub requirement: String,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    pub severity: Severity,
}

/// Fixed answers that replace those of a backend in the self-test of the program. `NONCE` in them
/// is replaced by the nonce of the run.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Answers to the review prompt and to the prompt that verifies a claim.
    pub review: String,
    pub verdict: String,
    /// Entries of the tool log.
    pub read: Vec<ask::Read>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setback(cause: Cause, after: Option<u64>) -> Setback {
        Setback {
            backend: "b".to_owned(),
            cause,
            retry_after: after.map(Duration::from_secs),
        }
    }

    #[test]
    fn only_what_passes_by_itself_is_worth_another_call() {
        for (setbacks, retryable, after) in [
            (vec![], false, None),
            (vec![setback(Cause::Setup, None)], false, None),
            (vec![setback(Cause::Refused, None)], false, None),
            (vec![setback(Cause::Refused, Some(30))], true, Some(30)),
            (vec![setback(Cause::Unreachable, None)], true, None),
            (
                vec![
                    setback(Cause::TimedOut, Some(5)),
                    setback(Cause::Refused, Some(60)),
                ],
                true,
                Some(60),
            ),
        ] {
            assert_eq!(
                Retry::of(&setbacks),
                Retry { retryable, after },
                "{setbacks:?}"
            );
        }
    }
}
