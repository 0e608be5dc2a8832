//! Answers to questions that are no review of a change: is this proposal complete, who is right, who can be asked.

use super::Severity;
pub use super::judge::{ErrorKind, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of everything in this file.
pub const COUNSEL_VERSION: u32 = 1;

/// How a question went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conduct {
    /// What became of the question.
    pub outcome: Outcome,
    /// The same as `outcome`.
    pub status: Outcome,
    /// Asking again may give another outcome without anything being changed.
    pub retryable: bool,
    /// When it makes sense to ask again, where somebody said so.
    pub retry_after_s: Option<u64>,
    /// Why there is no answer; null where there is one.
    pub error: Option<String>,
    /// The same for programs.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// The time was over before there was an answer.
    pub timed_out: bool,
    /// Who answered; null: nobody.
    pub backend: Option<String>,
    /// The model that answered; null where nobody knows.
    pub model: Option<String>,
    /// In and out, of all requests to models.
    pub tokens_used: u64,
    /// Null where neither the backend nor the policy names a price.
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// What has to be said besides: a backend that failed before another answered.
    pub notes: Vec<String>,
}

/// Whether a proposal can be worked from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer proposal check")]
pub struct ProposalCheck {
    /// The version of this document.
    pub schema_version: u32,
    /// `valid` is known.
    pub success: bool,
    /// Null: no model looked, and nothing that can be seen without one is wrong.
    pub valid: Option<bool>,
    /// Those that can be seen without a model come first.
    pub issues: Vec<ProposalIssue>,
    /// One or two sentences for whoever reads this.
    pub summary: String,
    #[serde(flatten)]
    pub conduct: Conduct,
}

/// What is wrong with a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalIssue {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub issue: String,
    /// What to do about it; null where nobody says.
    pub suggestion: Option<String>,
    /// The proposal's words, secrets masked.
    pub quote: Option<String>,
    /// The line of the proposal, from 1.
    pub line: Option<u32>,
    /// Code saw it, or the quote stands in the proposal. What is missing cannot be quoted.
    pub verified: bool,
    /// `rules`, or the backend that said so.
    pub origin: String,
}

/// Who is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    FloorManager,
    Judge,
}

/// An answer to a disagreement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer resolution")]
pub struct Resolution {
    /// The version of this document.
    pub schema_version: u32,
    /// There is a side.
    pub success: bool,
    /// Null: nobody answered, or the answer rests on no words of the documents.
    pub side: Option<Side>,
    /// Why; empty where nobody was found to be right.
    pub reasoning: String,
    /// The words that it rests on.
    pub quotes: Vec<Quotation>,
    /// One or two sentences for whoever reads this.
    pub summary: String,
    #[serde(flatten)]
    pub conduct: Conduct,
}

/// Words that an answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotation {
    /// `contract`, `rebuttal`, `judge_report`.
    pub document: String,
    /// Secrets masked.
    pub quote: String,
    /// The words stand in that document.
    pub verified: bool,
}

/// Whether models can be asked here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer health")]
pub struct Health {
    /// The version of this document.
    pub schema_version: u32,
    /// The Claude Code program is there and answers.
    pub available: bool,
    /// Its version.
    pub version: Option<String>,
    /// Why it is not available.
    pub error: Option<String>,
    /// This server's own version.
    pub server_version: String,
    /// The backends that policy names, in its order; empty: reviews are done by the rules alone.
    pub backends: Vec<BackendHealth>,
    /// What else a review needs: git, the policy, a repository.
    pub tools: Vec<Check>,
    /// One or two sentences for whoever reads this.
    pub summary: String,
}

/// How a backend is, without anything having been sent to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendHealth {
    /// As the policy has it.
    pub name: String,
    /// `claude`, `anthropic`, `openai`, `google`.
    pub kind: Option<String>,
    /// Nothing that can be seen from here keeps it from being asked.
    pub available: bool,
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// What was looked at, in a word.
    pub name: String,
    /// `ok`, `note`, `doubt`, `problem`.
    pub state: String,
    /// What was seen.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}
