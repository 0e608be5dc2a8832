//! What a judgement is: the answer to whoever asked for it, and `JUDGE_REPORT.json`.
//!
//! `schemas/judge-report.schema.json` is generated from here.

use super::{Report, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of everything in this file.
pub const JUDGE_VERSION: u32 = 1;

/// What a change is worth, measured by a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum JudgeVerdict {
    /// Nothing that warns, and every criterion is met.
    Pass,
    /// Warnings, or a criterion that could not be decided.
    Conditional,
    /// A finding that blocks, or a criterion that is not met.
    Fail,
    /// A critical finding: nothing goes on before a person has looked.
    CriticalHalt,
}

/// What became of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is an answer, and it rests on everything that was asked for.
    Reviewed,
    /// Some part that was asked for was not looked at.
    Incomplete,
    NothingToReview,
    Cancelled,
    /// What was given cannot be used: `error` says why.
    Error,
}

/// What kept a question from its answer, for programs; `error` says it in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The contract is none that can be read, or what a model answered.
    ParseError,
    /// What was given cannot be used: a document that is missing, refused or too large, an argument.
    Unusable,
    /// The policy or the repository has to be mended, or no backend is named.
    Setup,
    TimedOut,
    /// No backend answered.
    Backend,
    /// What a model answered rests on no words that stand where it says.
    Unproven,
    /// Part of what was asked for could not be looked at.
    NotReviewed,
    NothingToReview,
    Cancelled,
}

/// The answer to a judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer judgement")]
pub struct Judgement {
    /// There is a verdict.
    pub success: bool,
    /// Null unless `success`.
    pub verdict: Option<JudgeVerdict>,
    /// Findings that block or halt, and criteria that are not met.
    pub blocking_issues_count: u64,
    /// From the root; null where no report could be written.
    pub report_md_path: Option<String>,
    /// From the root; null where no report could be written.
    pub report_json_path: Option<String>,
    /// Why there is no verdict; null where there is one.
    pub error: Option<String>,
    /// The same for programs.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// The time was over before everything was reviewed.
    pub timed_out: bool,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// The same as `outcome`.
    pub status: Outcome,
    /// What became of the question.
    pub outcome: Outcome,
    /// Asking again may give another outcome without anything being changed.
    pub retryable: bool,
    /// When it makes sense to ask again, where somebody said so.
    pub retry_after_s: Option<u64>,
    /// One or two sentences for whoever reads this.
    pub summary: String,
}

/// `JUDGE_REPORT.json`. Foreign text, secrets masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer judge report")]
pub struct JudgeReport {
    /// The version of this document.
    pub schema_version: u32,
    /// As the contract has it; null where it has none.
    pub task_id: Option<String>,
    /// There is a verdict.
    pub success: bool,
    /// Null unless `success`.
    pub verdict: Option<JudgeVerdict>,
    /// What became of the question.
    pub outcome: Outcome,
    /// Why there is no verdict; null where there is one.
    pub error: Option<String>,
    /// Why there is no verdict, for programs; null where there is one.
    #[serde(default)]
    pub error_kind: Option<ErrorKind>,
    /// The time was over before everything was reviewed.
    pub timed_out: bool,
    /// Findings that block or halt, and criteria that are not met.
    pub blocking_issues: Vec<Issue>,
    /// Every other finding that counts.
    pub suggestions: Vec<Issue>,
    /// Each criterion of the contract, in its order.
    pub criteria: Vec<Criterion>,
    /// In and out, of all requests to models.
    pub tokens_used: u64,
    /// When the judgement began, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
    /// Null where the contract could not be read.
    pub contract: Option<ContractFile>,
    /// What has to be said besides.
    pub notes: Vec<String>,
    /// Null where nothing was reviewed.
    pub report: Option<Report>,
}

/// The file that holds the task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContractFile {
    /// From the root.
    pub path: String,
    /// SHA-256 of its bytes, hexadecimal.
    pub sha256: String,
}

/// Something to mend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    /// The finding's id in `report` (`F3`), the criterion's (`AC1`), or `tests`.
    pub id: String,
    /// `finding`, `criterion`, or `tests`: the project's tests failed.
    pub kind: String,
    /// Null for a criterion and for tests.
    pub severity: Option<Severity>,
    /// Relative to the repository root; null: the whole change.
    pub file: Option<String>,
    /// 1-based, on the new side; null: the file as a whole.
    pub line: Option<u32>,
    /// A few words.
    pub title: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it; null where nobody says.
    pub suggestion: Option<String>,
}

/// How a criterion of the contract stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Criterion {
    /// As the contract has it, or counted: `AC1`, `R1`.
    pub id: String,
    /// The words of the contract.
    pub text: String,
    /// Null: it could not be decided.
    pub met: Option<bool>,
    /// Why it stands so.
    pub reason: String,
    /// Where the change meets it; there is one whenever `met` is true.
    pub evidence: Option<Evidence>,
    /// Whose word decided, or was not enough; null: nobody's.
    pub backend: Option<String>,
}

/// Lines of the change that were found again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Relative to the top of the repository.
    pub file: String,
    /// On the new side; null: removed lines.
    pub line: Option<u32>,
    /// The words of the change, secrets masked.
    pub quote: String,
}

/// Returns the JSON schema of [`JudgeReport`] as it is published: indented, with a line end.
pub fn schema() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(JudgeReport)).unwrap_or_default();
    text.push('\n');
    text
}
