//! Answers to questions that are not reviews: proposal checks, disagreements, health.

use super::Severity;
pub use super::judge::{ErrorKind, QuestionOutcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the types in this file.
pub const COUNSEL_VERSION: u32 = 1;

/// How a question was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conduct {
    /// How the question ended.
    pub outcome: QuestionOutcome,
    /// The same as `outcome`.
    pub status: QuestionOutcome,
    /// True if the same call can succeed later.
    pub retryable: bool,
    /// Seconds to wait before a retry; null if unknown.
    pub retry_after_s: Option<u64>,
    /// Why there is no answer; null if there is one.
    pub error: Option<String>,
    /// Kind of `error`; null if there is an answer.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// True if the time limit passed before there was an answer.
    pub timed_out: bool,
    /// The backend that answered; null if none did.
    pub backend: Option<String>,
    /// The model that answered; null if unknown.
    pub model: Option<String>,
    /// Input and output tokens of all requests.
    pub tokens_used: u64,
    /// Cost in US dollars; null if neither the backend nor the policy states a price.
    pub cost_usd: Option<f64>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// Remarks, such as a backend that failed before another one answered.
    pub notes: Vec<String>,
}

/// Check of a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer proposal check")]
pub struct ProposalCheck {
    /// Version of the format.
    pub schema_version: u32,
    /// True if `valid` is known.
    pub success: bool,
    /// True if the proposal is complete and actionable; null if no model checked it and the checks
    /// without a model passed.
    pub valid: Option<bool>,
    /// Problems. Problems found without a model come first.
    pub issues: Vec<ProposalIssue>,
    /// One or two sentences.
    pub summary: String,
    #[serde(flatten)]
    pub conduct: Conduct,
}

/// A problem in a proposal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProposalIssue {
    /// Severity of the problem.
    pub severity: Severity,
    /// Description of the problem.
    pub issue: String,
    /// How to fix it; null if not stated.
    pub suggestion: Option<String>,
    /// Quote from the proposal, secrets masked.
    pub quote: Option<String>,
    /// Line in the proposal, from 1.
    pub line: Option<u32>,
    /// True if the program found the problem itself, or found the quote in the proposal. Omissions
    /// cannot be quoted.
    pub verified: bool,
    /// `rules`, or the name of the backend.
    pub origin: String,
}

/// The party that is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Side")]
pub enum RightParty {
    FloorManager,
    Judge,
}

/// Answer to a disagreement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer resolution")]
pub struct Resolution {
    /// Version of the format.
    pub schema_version: u32,
    /// True if `side` is known.
    pub success: bool,
    /// The party that is right; null if no backend answered or the answer has no verified quote.
    pub side: Option<RightParty>,
    /// Reasons; empty if `side` is null.
    pub reasoning: String,
    /// Quotes that support the answer.
    pub quotes: Vec<Quotation>,
    /// One or two sentences.
    pub summary: String,
    #[serde(flatten)]
    pub conduct: Conduct,
}

/// A quote that supports an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quotation {
    /// Quoted document: `contract`, `rebuttal` or `judge_report`.
    pub document: String,
    /// Quoted text, secrets masked.
    pub quote: String,
    /// True if the document contains the quote.
    pub verified: bool,
}

/// State of the backends and tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer health")]
pub struct Health {
    /// Version of the format.
    pub schema_version: u32,
    /// True if the Claude Code program runs.
    pub available: bool,
    /// Version of the Claude Code program.
    pub version: Option<String>,
    /// Why the Claude Code program is not available; null if it is.
    pub error: Option<String>,
    /// Version of this server.
    pub server_version: String,
    /// Backends in the order of the policy; empty if only the rules review.
    pub backends: Vec<BackendHealth>,
    /// Checks of git, the policy and the repository.
    pub tools: Vec<ToolCheck>,
    /// One or two sentences.
    pub summary: String,
}

/// State of a backend. Nothing was sent to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BackendHealth {
    /// Name of the backend in the policy.
    pub name: String,
    /// Kind of the backend, as in the policy.
    pub kind: Option<String>,
    /// True if no check found a problem.
    pub available: bool,
    /// Checks of the backend.
    pub checks: Vec<ToolCheck>,
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Check")]
pub struct ToolCheck {
    /// Name of the check.
    pub name: String,
    /// Result: `ok`, `note`, `doubt` or `problem`.
    pub state: String,
    /// Details of the result.
    pub text: String,
    /// How to fix it; null if not stated.
    pub hint: Option<String>,
}
