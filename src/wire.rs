//! The JSON types that reports, history and MCP share: versioned, and apart from the types the program
//! thinks in.
//!
//! Fields may be added; renaming, removing or retyping one needs a new [`SCHEMA_VERSION`].
//! `schemas/report.schema.json` is generated from here.

mod calm;
pub mod counsel;
pub mod judge;
pub mod replay;
pub mod stored;

pub use self::calm::{line, write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of everything in this file.
pub const SCHEMA_VERSION: u32 = 1;

/// A review, as `--format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer report")]
pub struct Report {
    /// 1. Fields may be added without a new version; nothing else changes without one.
    pub schema_version: u32,
    pub tool: Tool,
    /// The stored review; null where nothing was stored.
    pub review_id: Option<String>,
    /// 1 for a first review, one more for each follow-up.
    pub round: u32,
    pub outcome: Outcome,
    /// When the review began, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    pub source: Source,
    pub verdict: Verdict,
    /// How the process ends: 0 pass, 1 blocked, 2 usage, 3 incomplete.
    pub exit_code: u8,
    /// Null where nothing was assessed: incomplete, or nothing to review.
    pub assessment: Option<Assessment>,
    pub summary: Summary,
    /// By path, line and rule; those of the change as a whole come first.
    pub findings: Vec<Finding>,
    pub notes: Vec<Note>,
    /// Null where no design document was given.
    pub design_compliance: Option<DesignCompliance>,
    pub missing_requirements: Vec<MissingRequirement>,
    /// What models say of parts of the change as a whole. Decides nothing.
    #[serde(default)]
    pub opinions: Vec<Opinion>,
    /// Null where no tests were run.
    pub test_results: Option<TestResults>,
    pub coverage: Coverage,
    /// What each backend was asked and what it cost; empty for the rules alone.
    pub usage: Vec<Usage>,
    pub policy: Policy,
    pub duration_ms: u64,
}

/// What made the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    pub name: String,
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

/// Totals. Suppressed and waived findings are in none of the four severities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    pub text: String,
    pub critical: usize,
    pub major: usize,
    pub minor: usize,
    pub suggestion: usize,
    /// Findings that a comment or the policy set aside.
    pub suppressed: usize,
    /// Claims of a model that could not be tied to the change.
    pub dropped: usize,
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
    pub rule_id: String,
    /// `rules`, or the backend that said so.
    pub origin: String,
    /// Relative to the top of the repository; null: the change as a whole. A path that is not UTF-8 is
    /// C-quoted as git prints it.
    pub file: Option<String>,
    /// 1-based, on the new side; null: the file as a whole.
    pub line: Option<u32>,
    /// The last line, included.
    pub end_line: Option<u32>,
    /// The commit of a range that it belongs to.
    pub commit: Option<String>,
    pub severity: Severity,
    pub category: Category,
    pub confidence: Confidence,
    pub title: String,
    pub message: String,
    /// What goes wrong: input, and the wrong outcome.
    pub failure: Option<String>,
    pub suggestion: Option<String>,
    /// Text that can take the place of the lines.
    pub replacement: Option<String>,
    /// The offending text, secrets masked.
    pub quote: String,
    pub cwe: Option<u32>,
    /// The cited heading of the team's conventions.
    pub convention: Option<String>,
    /// What supports it: `rule:ID`, `quote`, `read:FILE:FIRST-LAST`, `backend:NAME`; `carried:round-N`: by nobody since that
    /// round, though its lines are the same.
    pub evidence: Vec<String>,
    /// This finding blocks under the governing policy.
    pub blocking: bool,
    /// Why a backend holds it for a false alarm. It counts nevertheless.
    pub disputed: Option<String>,
    pub waived: Option<Waiver>,
    pub disposition: Disposition,
    pub suppressed: Option<Suppression>,
    pub references: Vec<String>,
}

/// A person's word that lets a finding through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiver {
    pub reason: String,
    pub actor: String,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    /// `inline` or `policy`.
    pub by: String,
    pub reason: String,
}

/// Something worth saying that is no finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    pub file: Option<String>,
    pub line: Option<u32>,
    pub text: String,
    /// `rules`, `policy`, `git`, or a backend's name.
    pub origin: String,
}

/// Whether the change follows the design documents that were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignCompliance {
    pub follows_architecture: bool,
    pub violations: Vec<Violation>,
}

/// Where the change leaves the design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Violation {
    pub issue: String,
    pub description: String,
    pub impact: Severity,
    /// `document#heading`.
    pub reference: Option<String>,
    pub recommendation: Option<String>,
}

/// What the documents ask for and the change lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRequirement {
    pub requirement: String,
    /// `document#heading`.
    pub reference: Option<String>,
    pub severity: Severity,
}

/// What a model says of a part of the change as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opinion {
    pub backend: String,
    pub text: String,
}

/// How the team's tests ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    pub passed: bool,
    pub summary: String,
    pub failing_tests: Vec<String>,
    /// As the tests report it: `92%`.
    pub coverage: Option<String>,
}

/// What was reviewed, and what was not, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    pub files_total: usize,
    /// By the rules, and by every backend that was to look.
    pub files_reviewed: usize,
    pub hunks_total: usize,
    pub hunks_reviewed: usize,
    /// Hunks whose result came from the cache.
    pub cached: usize,
    /// Stored reviews in the change (`history.commit`): read by the rules for secrets, and counted nowhere else.
    #[serde(default, skip_serializing_if = "is_none")]
    pub records: usize,
    /// Left out with the policy's consent.
    pub skipped: Vec<Skipped>,
    /// Not reviewed though it should have been: each makes the review incomplete.
    pub failed: Vec<Failed>,
}

/// A file that was left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    pub file: String,
    /// `ignored`, `binary`, `submodule`; more may come.
    pub reason: String,
}

/// Something that could not be reviewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Null: the change as a whole.
    pub file: Option<String>,
    pub reason: String,
}

/// What a backend was asked and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub backend: String,
    pub model: String,
    pub requests: u64,
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Null where neither the backend nor the policy names a price.
    pub cost_usd: Option<f64>,
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
