//! Files of a stored session: `request.json`, `round-N/{review.json, response.json, seal.json}`,
//! `complete.json`, `latest.json`.
//!
//! The first fields of a stored review are the fields that coding agents use (`review_id`,
//! `status`, `design_compliance`, `comments`, …). `report` contains the complete report.

use super::{
    Outcome, Report, ReviewedSource, SCHEMA_VERSION, Severity, TestResults, Tool, Verdict,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the types in this file.
pub const STORED_VERSION: u32 = 1;

/// Status of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InProgress,
    NeedsChanges,
    /// Only in answers: a part was not reviewed.
    Incomplete,
    /// The last round was cancelled.
    Cancelled,
    Approved,
    Abandoned,
    Merged,
}

impl Status {
    /// Returns the name in documents and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::NeedsChanges => "needs_changes",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Approved => "approved",
            Self::Abandoned => "abandoned",
            Self::Merged => "merged",
        }
    }
}

/// `request.json`: the request that began the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Request")]
pub struct StoredRequest {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session: `2026-01-31-001`.
    pub review_id: String,
    /// Time of the request, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The author's summary of the task and the work. Untrusted text, secrets masked.
    pub summary: Option<String>,
    /// Design documents.
    pub relevant_docs: Vec<String>,
    /// Requested focus areas.
    pub focus_areas: Vec<String>,
    /// The source of the first round.
    pub source: ReviewedSource,
    /// The requested source, for follow-ups.
    pub asked: RequestedSource,
    /// The pull request that was reviewed; null if none was named.
    #[serde(default)]
    pub pull: Option<PullName>,
    /// Label for people: `the staged change`.
    pub label: String,
    /// The author according to the environment.
    pub author: String,
    /// Entry point: `cli`, `pre-commit`, `pre-push` or `mcp`.
    pub via: String,
    /// The program that stored the session.
    pub tool: Tool,
    /// The change of the first round.
    pub change: StoredChange,
    /// Heads of earlier sessions: of the newest session, and of each session that was continued or
    /// closed after the newest one began. Later versions may add heads.
    #[serde(default)]
    pub before: Vec<Head>,
}

/// A pull request of a forge and the branch that it goes to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PullName {
    /// Host of the forge: `github.com`.
    pub forge: String,
    /// Path of the project: `owner/name`.
    pub project: String,
    /// Number of the pull request.
    pub number: u64,
    /// Branch that it goes to. Each branch has its own policy.
    pub base: String,
}

/// Head of a session's hash chain at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// ID of the session.
    pub review_id: String,
    /// SHA-256, hexadecimal; null if it could not be read.
    pub head: Option<String>,
}

/// A source as requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Asked")]
pub struct RequestedSource {
    /// The revision, range or branch.
    pub rev: Option<String>,
    /// The branch that was checked out; null if HEAD was detached.
    #[serde(default)]
    pub branch: Option<String>,
    /// True if untracked files were requested.
    pub untracked: bool,
    /// Globs that limit the review.
    pub files: Vec<String>,
    /// True in gate mode.
    #[serde(default)]
    pub gate: bool,
}

/// Stored facts about a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Change")]
pub struct StoredChange {
    /// SHA-256 of `changes.diff`, hexadecimal.
    pub hash: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Files whose lines are not stored: too large, or named like a secret file.
    pub left_out: Vec<String>,
}

/// `round-N/review.json`, and the answer of `request_review`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer stored review")]
pub struct Review {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session: `2026-01-31-001`.
    pub review_id: String,
    /// Start of the round, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Status of the session after this round.
    pub status: Status,
    /// Number of the round, from 1.
    pub round: u32,
    /// How the review ended.
    pub outcome: Outcome,
    /// Result of the gate.
    pub verdict: Verdict,
    /// Compliance with the design documents; null if none was given.
    pub design_compliance: Option<StoredCompliance>,
    /// Findings as review comments.
    pub comments: Vec<Comment>,
    /// Requirements of the documents that the change does not meet.
    pub missing_requirements: Vec<Requirement>,
    /// Totals.
    pub summary: RoundTotals,
    /// Results of the project's tests; null if they were not run.
    pub test_results: Option<TestResults>,
    /// `needs_changes`, `lgtm_with_suggestions` or `lgtm`; null if incomplete or nothing to review.
    pub overall_assessment: Option<super::Assessment>,
    /// The author's summary of this round. Untrusted text, secrets masked.
    #[serde(default)]
    pub author_summary: Option<String>,
    /// State of earlier findings; null in the first round.
    pub since: Option<Since>,
    /// Next step.
    pub advice: Advice,
    /// The change of this round.
    pub change: StoredChange,
    /// The complete report.
    pub report: Report,
}

/// Compliance with the design documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Compliance")]
pub struct StoredCompliance {
    /// True if no violation is severe enough.
    pub follows_architecture: bool,
    /// Violations of the design.
    pub major_violations: Vec<super::DesignViolation>,
}

/// A finding as a review comment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// ID of the finding in `report`: `F1`.
    pub id: String,
    /// Identity of the finding across rounds.
    pub fingerprint: String,
    /// `specific` for a line, `general` for a file or the whole change.
    pub r#type: CommentType,
    /// Path from the repository root; null for the whole change.
    pub file: Option<String>,
    /// Line on the new side, from 1; null for the whole file.
    pub line: Option<u32>,
    /// Severity of the finding.
    pub severity: Severity,
    /// Category: `architecture`, `design`, `bug`, `performance`, `style`, `security`,
    /// `missing_feature`, `best-practice` or `test`.
    pub category: String,
    /// Description of the problem.
    pub comment: String,
    /// How to fix it; null if not stated.
    pub suggested_fix: Option<String>,
    /// True if the finding blocks under the policy.
    pub blocking: bool,
}

/// Scope of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommentType {
    Specific,
    General,
}

/// A requirement of the documents that the change does not meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// The requirement.
    pub requirement: String,
    /// Reference to the document: `document#heading`.
    pub design_doc_reference: Option<String>,
    /// Severity of the gap.
    pub severity: Severity,
}

/// Totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Counts")]
pub struct RoundTotals {
    /// Violations of the design.
    pub design_violations: usize,
    /// Critical findings that count.
    pub critical_issues: usize,
    /// Major findings that count.
    pub major_issues: usize,
    /// Minor findings that count.
    pub minor_issues: usize,
    /// Suggestions that count.
    pub suggestions: usize,
}

/// State of the findings of earlier rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Since {
    /// The earlier round.
    pub round: u32,
    /// One entry for each finding.
    pub entries: Vec<ComparedFinding>,
    /// Number of entries with state `fixed`.
    pub fixed: usize,
    /// Number of entries with state `still_there`.
    pub still_there: usize,
    /// Number of entries with state `moved`.
    pub moved: usize,
    /// Number of entries with state `reopened`.
    pub reopened: usize,
    /// Number of entries with state `new`.
    pub new: usize,
    /// Number of entries with state `introduced_by_fix`.
    pub introduced_by_fix: usize,
    /// Number of entries with state `unchecked`.
    pub unchecked: usize,
    /// True if the change of an earlier round is not in the worktree, and this round reviewed
    /// another one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
}

/// A finding in two rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub struct ComparedFinding {
    /// State of the finding.
    pub state: State,
    /// Identity of the finding across rounds.
    pub fingerprint: String,
    /// ID in this round; null if the finding is gone.
    pub id: Option<String>,
    /// ID in the earlier round; null if the finding is new.
    pub previous_id: Option<String>,
    /// ID of the rule, or `ai-` and the category for a finding of a model.
    pub rule_id: String,
    /// Severity of the finding.
    pub severity: Severity,
    /// Title of a few words.
    pub title: String,
    /// Path of the file; null for the whole change.
    pub file: Option<String>,
    /// Line in this round; null if the finding is gone.
    pub line: Option<u32>,
    /// Line in the earlier round; null if the finding is new.
    pub previous_line: Option<u32>,
}

impl ComparedFinding {
    /// Returns true if the finding blocked when it was last reported. `earlier` has the earlier
    /// rounds, oldest first.
    pub fn blocked<'r>(&self, earlier: impl DoubleEndedIterator<Item = &'r Review>) -> bool {
        let known = earlier.rev().find_map(|r| {
            r.report
                .findings
                .iter()
                .find(|f| f.fingerprint == self.fingerprint && f.title == self.title)
        });
        // No earlier round has the finding, so only its severity is known.
        known.map_or(
            matches!(self.severity, Severity::Critical | Severity::Major),
            |f| f.blocking,
        )
    }
}

/// State of a finding of an earlier round.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The code changed and no longer has the problem.
    Fixed,
    /// The same code, or changed code with the same problem.
    StillThere,
    /// The same text at another position.
    Moved,
    /// The finding was fixed in an earlier round and is back.
    Reopened,
    /// New finding in unchanged code.
    New,
    /// New finding in code that changed since the earlier round.
    IntroducedByFix,
    /// This round did not check the code.
    Unchecked,
}

/// Next step for the author.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// The next step.
    pub action: Action,
    /// One or two sentences.
    pub text: String,
    /// Reasons why another round would not help.
    pub circling: Vec<String>,
}

/// Next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing blocks. Close the session.
    Complete,
    /// Fix the blocking findings, then request another round.
    Fix,
    /// A person must decide: the rounds do not converge or the limit is reached.
    AskAPerson,
    /// A backend failed. Retry later.
    RetryLater,
    /// There is nothing to review.
    Nothing,
}

/// `round-N/response.json`: the author's response to the findings of a round. Untrusted text,
/// secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session.
    pub review_id: String,
    /// The round that the response refers to.
    pub round: u32,
    /// Time of the response, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// IDs (`F1`) or fingerprints of the fixed findings.
    pub addressed: Vec<String>,
    /// Reasons for findings that were not fixed.
    pub explanations: Vec<Explanation>,
    /// Changed files.
    pub modified_files: Vec<String>,
    /// Questions of the author.
    pub questions: Vec<String>,
    /// Free text.
    pub text: Option<String>,
}

/// Reason why a finding was not fixed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// ID (`F1`) or fingerprint; null if the reason is not about one finding.
    pub finding: Option<String>,
    /// The author's text.
    pub text: String,
}

/// `round-N/seal.json`: the hash chain over all earlier files.
///
/// Every byte is verified, so an added field needs a new version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    /// Version of the format.
    pub schema_version: u32,
    /// Head before this round; null in the first.
    pub previous: Option<String>,
    /// Files that the head covers, in order. They show which file was modified.
    pub files: Vec<Sealed>,
    /// SHA-256, hexadecimal.
    pub head: String,
}

/// A file that a head covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sealed {
    /// Path from the session: `round-1/review.json`.
    pub name: String,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
}

/// `complete.json`: the entries that closed the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session.
    pub review_id: String,
    /// Entries, oldest first. The last one applies.
    pub entries: Vec<Closing>,
}

/// An entry that closed a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// `approved`, `abandoned` or `merged`.
    pub status: Status,
    /// Notes. Untrusted text, secrets masked.
    pub notes: Option<String>,
    /// The person who closed it, according to the environment.
    pub actor: String,
    /// Entry point: `cli` or `mcp`.
    pub via: String,
    /// Time of the entry, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// True if findings were open or the last round was incomplete.
    pub forced: bool,
    /// Fingerprints of the blocking findings, and of earlier blocking findings without a response.
    pub open: Vec<String>,
    /// Head of the hash chain over the rounds.
    pub head: String,
    /// Head of the hash chain with this entry; empty before it is stored.
    pub seal: String,
}

/// `latest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latest {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the newest session.
    pub review_id: String,
    /// Time of storage, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Path from the store: `sessions/2026-01-31-001`.
    pub path: String,
    /// Heads of the sessions that were continued or closed after the newest one began. The next
    /// session copies them. Empty if the store is committed to git.
    #[serde(default)]
    pub since: Vec<Head>,
}

/// `.corrupt/ID.removed`: a damaged session that a person removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub schema_version: u32,
    pub review_id: String,
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Cause of the damage.
    pub why: String,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// ID of the session: `2026-01-31-001`.
    pub review_id: String,
    /// Start of the session, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Status of the session.
    pub status: Status,
    /// Number of rounds.
    pub rounds: u32,
    /// How the last round ended.
    pub outcome: Outcome,
    /// Result of the gate in the last round.
    pub verdict: Verdict,
    /// Totals of the last round.
    pub summary: RoundTotals,
    /// The author according to the environment.
    pub author: String,
    /// Entry point: `cli`, `pre-commit`, `pre-push` or `mcp`.
    pub via: String,
    /// The reviewed change.
    pub source: ReviewedSource,
    /// The pull request that was reviewed; null if none was named.
    #[serde(default)]
    pub pull: Option<PullName>,
    /// Label for people: `the staged change`.
    pub label: String,
    /// Head of the hash chain.
    pub head: String,
}

/// A damaged session of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Damaged {
    /// ID of the session.
    pub review_id: String,
    /// Cause of the damage.
    pub why: String,
    /// New path from the store; null if it was not moved.
    pub moved_to: Option<String>,
}

/// Output of `history --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Version of the format.
    pub schema_version: u32,
    /// Sessions, newest first.
    pub sessions: Vec<Overview>,
    /// Damaged sessions.
    pub damaged: Vec<Damaged>,
}

/// A complete session, as printed by `history ID --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session: `2026-01-31-001`.
    pub review_id: String,
    /// Status of the session.
    pub status: Status,
    /// The request that began the session.
    pub request: StoredRequest,
    /// Rounds, oldest first.
    pub rounds: Vec<StoredRound>,
    /// Entries that closed the session; null while it is open.
    pub completion: Option<Completion>,
    /// Head of the hash chain.
    pub head: String,
    /// What models planned and did to fix findings, oldest first.
    #[serde(default)]
    pub fixes: Vec<super::fixing::StoredFix>,
}

/// One round of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Round")]
pub struct StoredRound {
    /// The review.
    pub review: Review,
    /// The author's response; null if there is none.
    pub response: Option<Response>,
    /// The hash chain up to this round.
    pub seal: Seal,
}

/// A document of the store.
pub trait StoredDocument: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> StoredDocument for T {}

/// Why a stored document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadDocument {
    /// A newer program wrote the document, with this version.
    Future(u64),
    /// The document is malformed: cause.
    Malformed(String),
}

/// Version of a document and of the report in it.
#[derive(Deserialize)]
struct Versions {
    schema_version: Value,
    #[serde(default)]
    report: Option<ReportVersion>,
}

/// Version of the report in a stored review.
#[derive(Deserialize)]
struct ReportVersion {
    schema_version: Value,
}

/// Parses a stored document. The version is checked first.
pub fn read<T: StoredDocument>(bytes: &[u8]) -> Result<T, UnreadDocument> {
    let versions: Versions = serde_json::from_slice(bytes).map_err(|e| malformed(&e))?;
    check(&versions.schema_version, STORED_VERSION)?;
    if let Some(report) = versions.report {
        check(&report.schema_version, SCHEMA_VERSION)?;
    }
    serde_json::from_slice(bytes).map_err(|e| malformed(&e))
}

/// Returns the cause of a document that is not valid JSON of its type.
fn malformed(e: &serde_json::Error) -> UnreadDocument {
    // The message quotes the document without a length limit.
    UnreadDocument::Malformed(e.to_string().chars().take(200).collect())
}

/// Checks a version against the newest one that this program reads.
fn check(version: &Value, newest: u32) -> Result<(), UnreadDocument> {
    match version.as_u64() {
        Some(v) if (1..=u64::from(newest)).contains(&v) => Ok(()),
        Some(v) if v > 0 => Err(UnreadDocument::Future(v)),
        _ => Err(UnreadDocument::Malformed(
            "invalid schema_version".to_owned(),
        )),
    }
}
