//! Versioned JSON types of reports, history and MCP, separate from the domain types.
//!
//! Fields may be added. Renaming, removing or retyping a field needs a new [`SCHEMA_VERSION`].
//! `schemas/report.schema.json` is generated from these types.

pub mod answer;
pub mod background;
pub mod cache;
mod calm;
pub mod counsel;
pub mod fixing;
pub mod fleet;
pub mod judge;
pub mod mapping;
pub mod merging;
pub mod pulls;
pub mod receipt;
pub mod replay;
pub mod stored;
pub mod stream;

pub use self::calm::{line, write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Version of the types in this file.
pub const SCHEMA_VERSION: u32 = 1;

/// Report of a review, as printed by `--format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer report")]
pub struct Report {
    /// Version of the report format: 1. Fields may be added without a new version.
    pub schema_version: u32,
    /// The program that wrote the report.
    pub tool: Tool,
    /// ID of the stored review; null if the review is not stored.
    pub review_id: Option<String>,
    /// Number of the round, from 1.
    pub round: u32,
    /// How the review ended.
    pub outcome: Outcome,
    /// Start of the review, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The reviewed change.
    pub source: ReviewedSource,
    /// The part of the files that was reviewed; absent if all were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Result of the gate.
    pub verdict: Verdict,
    /// Exit code of the process: 0 pass, 1 blocked, 2 usage error, 3 incomplete.
    pub exit_code: u8,
    /// The verdict as a reviewer states it; null if incomplete or nothing to review.
    pub assessment: Option<Assessment>,
    /// A sentence and the totals.
    pub summary: Summary,
    /// Findings by path, line and rule. Findings about the whole change come first.
    pub findings: Vec<Finding>,
    /// Remarks that are not findings.
    pub notes: Vec<ReportNote>,
    /// Compliance with the design documents; null if none was given.
    pub design_compliance: Option<DesignCompliance>,
    /// Requirements of the documents that the change does not meet.
    pub missing_requirements: Vec<MissingRequirement>,
    /// Tickets, issues and pages that models were given beside the change. Their text is not part
    /// of the report.
    #[serde(default)]
    pub context: Vec<ContextItem>,
    /// Remarks of models about parts of the change. They do not affect the verdict.
    #[serde(default)]
    pub opinions: Vec<Opinion>,
    /// Results of the project's tests; null if they were not run.
    pub test_results: Option<TestResults>,
    /// Reviewed and unreviewed files, with reasons.
    pub coverage: Coverage,
    /// Requests and cost by backend; empty if only the rules reviewed.
    pub usage: Vec<BackendUsage>,
    /// The policy that applied.
    pub policy: Policy,
    /// Duration of the review in milliseconds.
    pub duration_ms: u64,
    /// Values of a shard that `report merge` needs in addition to the report. Other programs must not read it: it
    /// can change with every version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Box<merging::MergeFacts>>,
}

/// A ticket, issue or page that models were given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextItem {
    /// The short name by which it is cited: PROJ-12, #12, page 123.
    pub reference: String,
    /// Its title.
    pub title: String,
    /// jira, confluence, the name of a forge such as github, or the name of a context server.
    pub source: String,
    /// Its version or the time of its last change, as the source writes it; empty if the source
    /// does not say.
    pub version: String,
    /// SHA-256 of the title and the text that models were shown.
    pub digest: String,
}

/// The program that wrote the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Hash of all active rules.
    pub rules_hash: String,
}

/// How the review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Reviewed,
    Incomplete,
    NothingToReview,
    Cancelled,
}

/// Result of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Pass,
    Warn,
    Block,
    Incomplete,
}

/// The verdict as a reviewer states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Assessment {
    Lgtm,
    LgtmWithSuggestions,
    NeedsChanges,
}

/// The reviewed change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Source")]
pub struct ReviewedSource {
    /// Kind of the source.
    pub kind: SourceKind,
    /// Full object ID of the old side; null if there is none.
    pub base: Option<String>,
    /// Full object ID of the new side; null if it is not a commit.
    pub head: Option<String>,
    /// Object ID of the reviewed tree; null if it has none.
    pub tree: Option<String>,
    /// Full object ID of the commit that is checked out, if files of the worktree or the index are
    /// reviewed, and not a change to them; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_out: Option<String>,
    /// True if the versions of files in a history are reviewed, so that the coverage counts blobs;
    /// absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub history: bool,
    /// The source in words for people. Untrusted text: it can contain names of branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// One of the parts into which the files of a review are divided. Each file is in one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shard {
    /// Number of this part, counted from 1.
    #[schemars(range(min = 1))]
    pub index: u32,
    /// Number of parts.
    #[schemars(range(min = 1))]
    pub of: u32,
}

/// Kind of the source.
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
    Tree,
}

/// Totals. The severity counts exclude suppressed, waived, rejected and deferred findings.
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
    /// Suppressed findings.
    pub suppressed: usize,
    /// Findings that a person rejected or deferred.
    #[serde(default)]
    pub dispositioned: usize,
    /// Claims of models that could not be anchored to a line of the change.
    pub dropped: usize,
    /// Findings that are counted above and not listed; absent if all are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlisted: Option<UnlistedCounts>,
}

/// Number of findings that are counted and not listed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unlisted")]
pub struct UnlistedCounts {
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

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Critical,
    Major,
    Minor,
    Suggestion,
}

/// Category of a finding.
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

/// Confidence in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    High,
    Medium,
    Low,
}

/// A person's decision about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    Pending,
    Accepted,
    Rejected,
    Fixed,
    Deferred,
}

/// A problem in the change, with proof.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// ID in this report: `F1`, `F2`, …
    pub id: String,
    /// Identity across rounds. Moving or re-indenting lines does not change it.
    pub fingerprint: String,
    /// ID of the rule, or `ai-` and the category for a finding of a model.
    pub rule_id: String,
    /// `rules`, or the name of the backend.
    pub origin: String,
    /// Path from the repository root; null for the whole change. Names that are not UTF-8 are
    /// C-quoted as in git.
    pub file: Option<String>,
    /// First line on the new side, from 1; null for the whole file.
    pub line: Option<u32>,
    /// Last line, inclusive.
    pub end_line: Option<u32>,
    /// Column in the first line at which the match starts, from 1, in characters; absent if it is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Other lines that the finding involves, such as unchanged code that the change breaks.
    #[serde(default)]
    pub also: Vec<Also>,
    /// The path of a value from its source to the dangerous call, in the file of the finding; empty
    /// where no data flow was followed.
    #[serde(default)]
    pub flow: Vec<FlowStep>,
    /// Commit of the range that contains the finding.
    pub commit: Option<String>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Category of the finding.
    pub category: Category,
    /// Confidence in the finding.
    pub confidence: Confidence,
    /// Title of a few words.
    pub title: String,
    /// Description of the problem. Untrusted text if a model wrote it.
    pub message: String,
    /// How the code fails: the input and the wrong result.
    pub failure: Option<String>,
    /// How to fix it; null if not stated.
    pub suggestion: Option<String>,
    /// Replacement text for the lines.
    pub replacement: Option<String>,
    /// The matched text, secrets masked.
    pub quote: String,
    /// CWE number of the weakness.
    pub cwe: Option<u32>,
    /// Cited heading of the team's conventions.
    pub convention: Option<String>,
    /// Evidence: `rule:ID`, `quote`, `read:FILE:FIRST-LAST`, `backend:NAME`, `reproduced`, or
    /// `carried:round-N` for a finding that is open since that round.
    pub evidence: Vec<String>,
    /// True if the finding blocks under the policy.
    pub blocking: bool,
    /// Reason why a backend disputes the finding. The finding still counts.
    pub disputed: Option<String>,
    /// The test that shows the defect; null if none ran.
    #[serde(default)]
    pub reproduction: Option<ReproductionTest>,
    /// The waiver; null if the finding counts.
    pub waived: Option<Waiver>,
    /// The decision of a person; `fixed` only in lists of earlier findings.
    pub disposition: Disposition,
    /// The reason that was given for the decision; null if the finding is pending.
    #[serde(default)]
    pub decided: Option<Decided>,
    /// The suppression; null if the finding counts.
    pub suppressed: Option<Suppression>,
    /// URLs with more information.
    pub references: Vec<String>,
}

/// A test that fails on the change and passes with a fix. A model wrote it; it ran in a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reproduction")]
pub struct ReproductionTest {
    /// Shell command that runs the test in the top folder of the repository. Untrusted text.
    pub command: String,
    /// Files of the test.
    pub files: Vec<TestFile>,
}

/// A file that a test needs and the repository does not have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestFile {
    /// Path from the repository root.
    pub path: String,
    /// Untrusted text, secrets masked.
    pub text: String,
}

/// The findings of a stored review, as `findings --format json` lists them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Version of the format.
    pub schema_version: u32,
    /// The stored review.
    pub review_id: String,
    /// Those of the last round with the decisions that hold now, then earlier ones that are fixed.
    pub findings: Vec<Finding>,
    /// Decisions that agents propose on them. They hold after a person confirmed them.
    pub proposals: Vec<Proposal>,
}

/// A decision on a finding that an agent proposes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proposal {
    /// ID of the finding.
    pub id: String,
    /// Fingerprint of the finding.
    pub fingerprint: String,
    /// Proposed decision: `accepted`, `rejected` or `deferred`.
    pub disposition: Disposition,
    #[serde(flatten)]
    pub decided: Decided,
}

/// A decision of a person on a finding. It holds until the lines change or it expires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    /// Reason; empty if none was given.
    pub reason: String,
    /// Who decided.
    pub owner: String,
    /// First day on which the decision no longer holds, as `2026-01-31`.
    pub expires: Option<String>,
}

impl Finding {
    /// Returns true if a person must decide on the finding: it has no decision, and is neither
    /// suppressed nor waived.
    pub fn is_pending(&self) -> bool {
        self.disposition == Disposition::Pending
            && self.suppressed.is_none()
            && self.waived.is_none()
    }

    /// Returns true if the finding counts: not suppressed, waived, rejected or deferred.
    pub fn counts(&self) -> bool {
        let is_aside = matches!(
            self.disposition,
            Disposition::Rejected | Disposition::Deferred
        );
        self.suppressed.is_none() && self.waived.is_none() && !is_aside
    }
}

/// Another line that a finding involves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Also {
    /// Path from the repository root.
    pub file: String,
    /// Line on the new side, from 1.
    pub line: u32,
    /// The line without white space around it, secrets masked.
    pub quote: String,
}

/// A step of the path that a value takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FlowStep {
    /// The role of the step.
    pub role: FlowRole,
    /// Line on the new side, from 1.
    pub line: u32,
    /// The code of the step on one line, secrets masked.
    pub quote: String,
}

/// The role of a step in a path of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowRole {
    Source,
    Through,
    Sink,
}

/// A person's waiver of a finding, for one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waiver {
    /// Reason for the waiver.
    pub reason: String,
    /// The person who waived the finding.
    pub actor: String,
    /// Address of the reply on the forge that waives it; null for a waiver of the operator.
    #[serde(default)]
    pub link: Option<String>,
}

/// Suppression of a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suppression {
    /// Where it is suppressed: `inline` or `policy`.
    pub by: String,
    /// Reason given for the suppression.
    pub reason: String,
}

/// A remark that is not a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Note")]
pub struct ReportNote {
    /// Path from the repository root; null for the whole change.
    pub file: Option<String>,
    /// Line on the new side, from 1; null if the remark is not about a line.
    pub line: Option<u32>,
    /// Text of the remark.
    pub text: String,
    /// `rules`, `policy`, `git`, or the name of a backend.
    pub origin: String,
}

/// Compliance with the given design documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DesignCompliance {
    /// True if no violation is severe enough.
    pub follows_architecture: bool,
    /// Violations of the design.
    pub violations: Vec<DesignViolation>,
}

/// A violation of the design.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Violation")]
pub struct DesignViolation {
    /// Title of a few words.
    pub issue: String,
    /// Description of the violation.
    pub description: String,
    /// Severity of the violation.
    pub impact: Severity,
    /// Reference to the document: `document#heading`.
    pub reference: Option<String>,
    /// How to fix it; null if not stated.
    pub recommendation: Option<String>,
}

/// A requirement of the documents that the change does not meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingRequirement {
    /// The requirement.
    pub requirement: String,
    /// Reference to the document: `document#heading`.
    pub reference: Option<String>,
    /// Severity of the gap.
    pub severity: Severity,
}

/// A model's remark about a part of the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Opinion {
    /// Name of the backend.
    pub backend: String,
    /// Text of the remark, secrets masked.
    pub text: String,
}

/// Result of the project's tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TestResults {
    /// True if the test command succeeded.
    pub passed: bool,
    /// How the test run ended; null in older reports.
    #[serde(default)]
    pub outcome: Option<TestOutcome>,
    /// True if the failed tests block.
    #[serde(default)]
    pub blocking: bool,
    /// Totals, and how the command ended.
    pub summary: String,
    /// Names of failed tests, 200 at most.
    pub failing_tests: Vec<String>,
    /// Test coverage as printed by the tests: `92%`.
    pub coverage: Option<String>,
}

/// Result of the project's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    Passed,
    Failed,
    NotStarted,
    TimedOut,
    Stopped,
}

/// Coverage of one reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReviewerCoverage {
    /// Files that the reviewer finished.
    pub files_reviewed: usize,
    /// Files that the reviewer had to review.
    pub files_total: usize,
}

/// Reviewed and unreviewed files, with reasons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Files in the change.
    pub files_total: usize,
    /// Files that every reviewer finished.
    pub files_reviewed: usize,
    /// Coverage by reviewer: `rules`, and the name of each backend.
    #[serde(default)]
    pub by_reviewer: BTreeMap<String, ReviewerCoverage>,
    /// Hunks in the change.
    pub hunks_total: usize,
    /// Hunks in the reviewed files.
    pub hunks_reviewed: usize,
    /// Hunks whose result came from the cache.
    pub cached: usize,
    /// Stored reviews in the change (`history.commit`). They are only searched for secrets.
    #[serde(default, skip_serializing_if = "is_none")]
    pub records: usize,
    /// Files that the policy allows to skip.
    pub skipped: Vec<Skipped>,
    /// Unreviewed parts. Each makes the review incomplete.
    pub failed: Vec<Failed>,
}

/// A skipped file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// Path from the repository root.
    pub file: String,
    /// Reason: `ignored`, `binary`, `submodule`. Later versions may add reasons.
    pub reason: String,
}

/// A part of the change that could not be reviewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Path from the repository root; null for the whole change.
    pub file: Option<String>,
    /// Reason why it was not reviewed.
    pub reason: String,
}

/// Requests to a backend and their cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Usage")]
pub struct BackendUsage {
    /// Name of the backend in the policy.
    pub backend: String,
    /// The model; empty if unknown.
    pub model: String,
    /// Requests sent, including retries.
    pub requests: u64,
    /// Replies from the cache.
    #[serde(default)]
    pub from_cache: u64,
    /// Questions without a reply.
    #[serde(default)]
    pub failed: u64,
    /// Input tokens, including cached tokens.
    pub input_tokens: u64,
    /// Input tokens from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Cost in US dollars; null if neither the backend nor the policy states a price.
    pub cost_usd: Option<f64>,
    /// True if the requests were sent in batches, at the lower price of these. Absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub batch: bool,
    /// The part of `cost_usd` that earlier runs of a resumed audit had. Absent without such runs; the
    /// other numbers are of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier_usd: Option<f64>,
    /// Duration in milliseconds.
    pub duration_ms: u64,
}

/// The policy that applied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// Origin: `worktree`, `head`, `base@ID`, `user`, `flag` or `default`.
    pub origin: String,
    /// Hash of the effective policy.
    pub hash: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(count: &usize) -> bool {
    *count == 0
}

/// Returns a duration in milliseconds, rounded up: a step that ran never took 0 ms.
pub fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000))
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Converts a document to a JSON value; null if it cannot be represented.
pub fn value(document: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(document).unwrap_or_default()
}

/// Returns the serialized name of an enum value (`needs_changes`); empty if it is not a string.
pub fn name(of: &impl Serialize) -> String {
    value(of).as_str().unwrap_or_default().to_owned()
}

/// Returns the published JSON schema of [`Report`], indented and with a final newline.
pub fn schema() -> String {
    published::<Report>()
}

/// Returns the JSON schema of a type as it is published, indented and with a final newline.
///
/// The lines of a doc comment become one line, so that the width of the source is no part of a
/// schema.
fn published<T: JsonSchema>() -> String {
    let mut schema = value(&schemars::schema_for!(T));
    join_descriptions(&mut schema);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Joins the lines of every description in a schema.
fn join_descriptions(schema: &mut serde_json::Value) {
    match schema {
        serde_json::Value::Object(members) => {
            for (name, member) in members {
                match member {
                    serde_json::Value::String(text) if name == "description" => {
                        *text = text.replace('\n', " ");
                    }
                    // A member of this name in a list of properties is a schema.
                    other => join_descriptions(other),
                }
            }
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(join_descriptions),
        _ => {}
    }
}
