//! The answer of a judgement, and `JUDGE_REPORT.json`.
//!
//! `schemas/judge-report.schema.json` is generated from these types.

use super::{Report, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the types in this file.
pub const JUDGE_VERSION: u32 = 1;

/// Verdict on a change under a task contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JudgeVerdict {
    /// No warnings, and every criterion is met.
    Pass,
    /// Warnings, or an undecided criterion.
    Conditional,
    /// A blocking finding, or a criterion that is not met.
    Fail,
    /// A critical finding. A person must decide before work continues.
    CriticalHalt,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Outcome")]
pub enum QuestionOutcome {
    /// The answer covers everything requested.
    Reviewed,
    /// A requested part was not reviewed.
    Incomplete,
    NothingToReview,
    Cancelled,
    /// The input cannot be used. `error` states why.
    Error,
}

/// Kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The contract or the reply of a model cannot be parsed.
    ParseError,
    /// A document is missing, refused or too large, or an argument is invalid.
    Unusable,
    /// The policy or the repository has an error, or no backend is configured.
    Setup,
    TimedOut,
    /// No backend answered.
    Backend,
    /// The quotes of the model were not found in the documents.
    Unproven,
    /// A requested part could not be reviewed.
    NotReviewed,
    NothingToReview,
    Cancelled,
}

/// Answer of a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer judgement")]
pub struct Judgement {
    /// True if there is a verdict.
    pub success: bool,
    /// The verdict; null unless `success`.
    pub verdict: Option<JudgeVerdict>,
    /// Number of blocking findings and unmet criteria.
    pub blocking_issues_count: u64,
    /// Path of the Markdown report from the root; null if it could not be written.
    pub report_md_path: Option<String>,
    /// Path of the JSON report from the root; null if it could not be written.
    pub report_json_path: Option<String>,
    /// Why there is no verdict; null if there is one.
    pub error: Option<String>,
    /// Kind of `error`; null if there is a verdict.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// True if the time limit passed before everything was reviewed.
    pub timed_out: bool,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// The same as `outcome`.
    pub status: QuestionOutcome,
    /// How the judgement ended.
    pub outcome: QuestionOutcome,
    /// True if the same call can succeed later.
    pub retryable: bool,
    /// Seconds to wait before a retry; null if unknown.
    pub retry_after_s: Option<u64>,
    /// One or two sentences.
    pub summary: String,
}

/// `JUDGE_REPORT.json`. Contains untrusted text; secrets are masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer judge report")]
pub struct JudgeReport {
    /// Version of the format.
    pub schema_version: u32,
    /// Task ID of the contract; null if it has none.
    pub task_id: Option<String>,
    /// True if there is a verdict.
    pub success: bool,
    /// The verdict; null unless `success`.
    pub verdict: Option<JudgeVerdict>,
    /// How the judgement ended.
    pub outcome: QuestionOutcome,
    /// Why there is no verdict; null if there is one.
    pub error: Option<String>,
    /// Kind of `error`; null if there is a verdict.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// True if the time limit passed before everything was reviewed.
    pub timed_out: bool,
    /// Blocking findings and unmet criteria.
    pub blocking_issues: Vec<Issue>,
    /// The other findings that count.
    pub suggestions: Vec<Issue>,
    /// Criteria in the order of the contract.
    pub criteria: Vec<Criterion>,
    /// Input and output tokens of all requests.
    pub tokens_used: u64,
    /// Start of the judgement, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Duration in milliseconds.
    pub duration_ms: u64,
    /// The contract; null if it could not be read.
    pub contract: Option<ContractFile>,
    /// Remarks.
    pub notes: Vec<String>,
    /// Report of the review; null if nothing was reviewed.
    pub report: Option<Report>,
}

/// The file of the task contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractFile {
    /// Path from the root.
    pub path: String,
    /// SHA-256 of the file, hexadecimal.
    pub sha256: String,
}

/// A problem to fix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// ID of the finding in `report` (`F3`), ID of the criterion (`AC1`), or `tests`.
    pub id: String,
    /// `finding`, `criterion`, or `tests` for failed tests of the project.
    pub kind: String,
    /// Severity of the finding; null for a criterion and for tests.
    pub severity: Option<Severity>,
    /// Path from the repository root; null for the whole change.
    pub file: Option<String>,
    /// Line on the new side, from 1; null for the whole file.
    pub line: Option<u32>,
    /// Title of a few words.
    pub title: String,
    /// Description of the problem.
    pub message: String,
    /// How to fix it; null if not stated.
    pub suggestion: Option<String>,
}

/// Result of a criterion of the contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// ID in the contract, or a number: `AC1`, `R1`.
    pub id: String,
    /// Text of the criterion.
    pub text: String,
    /// True if the change meets the criterion; null if undecided.
    pub met: Option<bool>,
    /// Reason for the result.
    pub reason: String,
    /// Lines that meet the criterion. Always present if `met` is true.
    pub evidence: Option<Evidence>,
    /// The backend that answered; null if none did.
    pub backend: Option<String>,
}

/// Verified quote of the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Path from the repository root.
    pub file: String,
    /// Line on the new side, from 1; null for removed lines.
    pub line: Option<u32>,
    /// Quoted text, secrets masked.
    pub quote: String,
}

/// Returns the published JSON schema of [`JudgeReport`], indented and with a final newline.
pub fn schema() -> String {
    super::published::<JudgeReport>()
}
