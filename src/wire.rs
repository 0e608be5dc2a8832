//! The JSON types that reports, history and MCP share: versioned, and apart from the types the program
//! thinks in.
//!
//! Fields may be added; renaming, removing or retyping one needs a new [`SCHEMA_VERSION`].
//! `schemas/report.schema.json` is generated from here.

pub mod answer;
mod calm;
pub mod counsel;
pub mod judge;
pub mod pulls;
pub mod receipt;
pub mod replay;
pub mod stored;

pub use self::calm::{line, write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The version of everything in this file.
pub const SCHEMA_VERSION: u32 = 1;

/// A review, as `--format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer report")]
pub struct Report {
    /// 1. Fields may be added without a new version; nothing else changes without one.
    pub schema_version: u32,
    /// What made this report.
    pub tool: Tool,
    /// The stored review; null where nothing was stored.
    pub review_id: Option<String>,
    /// 1 for a first review, one more for each follow-up.
    pub round: u32,
    /// What became of the review.
    pub outcome: Outcome,
    /// When the review began, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// What was reviewed.
    pub source: Source,
    /// What the gate says.
    pub verdict: Verdict,
    /// How the process ends: 0 pass, 1 blocked, 2 usage, 3 incomplete.
    pub exit_code: u8,
    /// Null: incomplete, or nothing to review.
    pub assessment: Option<Assessment>,
    /// A sentence and totals.
    pub summary: Summary,
    /// By path, line and rule; those of the change as a whole come first.
    pub findings: Vec<Finding>,
    /// What is worth saying and no finding.
    pub notes: Vec<Note>,
    /// Null where no design document was given.
    pub design_compliance: Option<DesignCompliance>,
    /// What the documents ask for and the change lacks.
    pub missing_requirements: Vec<MissingRequirement>,
    /// Remarks of models on parts of the change. They decide nothing.
    #[serde(default)]
    pub opinions: Vec<Opinion>,
    /// Null where no tests were run.
    pub test_results: Option<TestResults>,
    /// What was reviewed, and what was not, and why.
    pub coverage: Coverage,
    /// Requests and cost by backend; empty: rules only.
    pub usage: Vec<Usage>,
    /// The policy that governed.
    pub policy: Policy,
    /// How long the review took, in milliseconds.
    pub duration_ms: u64,
}

/// What made the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// The name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Over every rule that was active.
    pub rules_hash: String,
}

/// What became of the review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Reviewed,
    Incomplete,
    NothingToReview,
    Cancelled,
}

/// What the gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Warn,
    Block,
    Incomplete,
}

/// The verdict in the words of a reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    Lgtm,
    LgtmWithSuggestions,
    NeedsChanges,
}

/// What was reviewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// Where the change came from.
    pub kind: SourceKind,
    /// Full object id of the old side; null where there is none.
    pub base: Option<String>,
    /// Full object id of the new side; null where it is no commit.
    pub head: Option<String>,
    /// The tree that was reviewed, where it has a name.
    pub tree: Option<String>,
}

/// Where the change came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Staged,
    Unstaged,
    Changes,
    Commit,
    Branch,
    Patch,
    Code,
    Pr,
}

/// Totals. Suppressed and waived findings are not in the severities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The review in one sentence.
    pub text: String,
    /// Critical.
    pub critical: usize,
    /// Major.
    pub major: usize,
    /// Minor.
    pub minor: usize,
    /// Suggestions.
    pub suggestion: usize,
    /// Findings that a comment or the policy set aside.
    pub suppressed: usize,
    /// Claims of a model that could not be tied to the change.
    pub dropped: usize,
    /// Counted above, beyond what a report lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<Unlisted>,
}

/// Findings that are counted, not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unlisted {
    /// Critical.
    pub critical: usize,
    /// Major.
    pub major: usize,
    /// Minor.
    pub minor: usize,
    /// Suggestions.
    pub suggestion: usize,
    /// Blocking.
    pub blocking: usize,
    /// Warning.
    pub warning: usize,
    /// Suppressed.
    pub suppressed: usize,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    Major,
    Minor,
    Suggestion,
}

/// What kind of trouble a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    Bug,
    Security,
    Performance,
    Style,
    Architecture,
    Design,
    MissingRequirement,
    BestPractice,
    Test,
}

/// How well a finding is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

/// What a person decided about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    Pending,
    Accepted,
    Rejected,
    Fixed,
    Deferred,
}

/// A proven claim about the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// `F1`, `F2`, …: the place in this report.
    pub id: String,
    /// The identity over time: survives line moves and re-indentation.
    pub fingerprint: String,
    /// The rule, or `ai-` and the category for what a model found.
    pub rule_id: String,
    /// `rules`, or the backend that said so.
    pub origin: String,
    /// Relative to the repository root; null: the whole change. Not UTF-8: C-quoted as in git.
    pub file: Option<String>,
    /// 1-based, on the new side; null: the file as a whole.
    pub line: Option<u32>,
    /// The last line, included.
    pub end_line: Option<u32>,
    /// The commit of a range that it belongs to.
    pub commit: Option<String>,
    /// How bad it is.
    pub severity: Severity,
    /// What kind of trouble it is.
    pub category: Category,
    /// How well it is supported.
    pub confidence: Confidence,
    /// A few words.
    pub title: String,
    /// What is wrong. Foreign text where a model says so.
    pub message: String,
    /// What goes wrong: input, and the wrong outcome.
    pub failure: Option<String>,
    /// What to do about it; null where nobody says.
    pub suggestion: Option<String>,
    /// Text that can take the place of the lines.
    pub replacement: Option<String>,
    /// The offending text, secrets masked.
    pub quote: String,
    /// The number of the weakness in the Common Weakness Enumeration.
    pub cwe: Option<u32>,
    /// The cited heading of the team's conventions.
    pub convention: Option<String>,
    /// `rule:ID`, `quote`, `read:FILE:FIRST-LAST`, `backend:NAME`; `carried:round-N` for an open finding of that round.
    pub evidence: Vec<String>,
    /// This finding blocks under the governing policy.
    pub blocking: bool,
    /// Why a backend calls it a false alarm. It still counts.
    pub disputed: Option<String>,
    /// Whose word lets it through; null: it counts.
    pub waived: Option<Waiver>,
    /// What a person decided.
    pub disposition: Disposition,
    /// What sets it aside; null: it counts.
    pub suppressed: Option<Suppression>,
    /// Addresses to read on.
    pub references: Vec<String>,
}

/// A person's word that lets a finding through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiver {
    /// Why it may pass.
    pub reason: String,
    /// Who said so.
    pub actor: String,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    /// `inline` or `policy`.
    pub by: String,
    /// Why it does not count, in the words of whoever set it aside.
    pub reason: String,
}

/// Something worth saying that is no finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Relative to the repository root; null: the whole change.
    pub file: Option<String>,
    /// 1-based, on the new side; null: no line in particular.
    pub line: Option<u32>,
    /// What there is to say.
    pub text: String,
    /// `rules`, `policy`, `git`, or a backend's name.
    pub origin: String,
}

/// Whether the change follows the design documents that were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignCompliance {
    /// No violation weighs enough to say otherwise.
    pub follows_architecture: bool,
    /// Where the change leaves the design.
    pub violations: Vec<Violation>,
}

/// Where the change leaves the design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    /// A few words.
    pub issue: String,
    /// What is wrong.
    pub description: String,
    /// How bad it is.
    pub impact: Severity,
    /// `document#heading`.
    pub reference: Option<String>,
    /// What to do about it.
    pub recommendation: Option<String>,
}

/// What the documents ask for and the change lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRequirement {
    /// What is asked for.
    pub requirement: String,
    /// `document#heading`.
    pub reference: Option<String>,
    /// How much it is missed.
    pub severity: Severity,
}

/// What a model says of a part of the change as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opinion {
    /// Who says so.
    pub backend: String,
    /// Its words, secrets masked.
    pub text: String,
}

/// How the project's tests ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    /// The command succeeded.
    pub passed: bool,
    /// Null in older reports.
    #[serde(default)]
    pub outcome: Option<TestOutcome>,
    /// They block.
    #[serde(default)]
    pub blocking: bool,
    /// Totals, and how the command ended.
    pub summary: String,
    /// Names; at most 200.
    pub failing_tests: Vec<String>,
    /// As the tests report it: `92%`.
    pub coverage: Option<String>,
}

/// How the project's tests ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Passed,
    Failed,
    NotStarted,
    TimedOut,
    Stopped,
}

/// What one reviewer finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewerCoverage {
    /// Finished, every part.
    pub files_reviewed: usize,
    /// To be reviewed by it.
    pub files_total: usize,
}

/// What was reviewed, and what was not, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Files of the change.
    pub files_total: usize,
    /// Finished by every reviewer.
    pub files_reviewed: usize,
    /// By name: `rules`, and each backend.
    #[serde(default)]
    pub by_reviewer: BTreeMap<String, ReviewerCoverage>,
    /// Hunks of the change.
    pub hunks_total: usize,
    /// Hunks of the files that were reviewed.
    pub hunks_reviewed: usize,
    /// Hunks whose result came from the cache.
    pub cached: usize,
    /// Stored reviews in the change (`history.commit`): only searched for secrets.
    #[serde(default, skip_serializing_if = "is_none")]
    pub records: usize,
    /// Left out with the policy's consent.
    pub skipped: Vec<Skipped>,
    /// Not reviewed. Each makes the review incomplete.
    pub failed: Vec<Failed>,
}

/// A file that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Relative to the top of the repository.
    pub file: String,
    /// `ignored`, `binary`, `submodule`; more may come.
    pub reason: String,
}

/// Something that could not be reviewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Null: the change as a whole.
    pub file: Option<String>,
    /// Why it was not reviewed.
    pub reason: String,
}

/// What a backend was asked and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// The name of the backend in the policy.
    pub backend: String,
    /// The model that was asked; empty where nobody knows.
    pub model: String,
    /// Requests that were sent, retries included.
    pub requests: u64,
    /// Answers from the cache.
    #[serde(default)]
    pub from_cache: u64,
    /// Questions without an answer.
    #[serde(default)]
    pub failed: u64,
    /// Tokens in, those from the provider's cache included.
    pub input_tokens: u64,
    /// Of these, from the provider's cache.
    pub cached_tokens: u64,
    /// Tokens out.
    pub output_tokens: u64,
    /// Null where neither the backend nor the policy names a price.
    pub cost_usd: Option<f64>,
    /// How long it took, in milliseconds.
    pub duration_ms: u64,
}

/// The policy that governed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// `worktree`, `head`, `base@ID`, `user`, `flag`, `default`.
    pub origin: String,
    /// Over the effective policy.
    pub hash: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Returns a duration in milliseconds, rounded up: what was done took time, so 0 would be wrong.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

/// Returns a document as a value; null where it is none that JSON can hold.
pub fn value(document: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(document).unwrap_or_default()
}

/// Returns the name by which documents call something (`needs_changes`); empty for what has none.
pub fn name(of: &impl Serialize) -> String {
    value(of).as_str().unwrap_or_default().to_owned()
}

/// Returns the JSON schema of [`Report`] as it is published: indented, with a line end.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
