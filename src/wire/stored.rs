//! What a session is on disk: `request.json`, `round-N/{review.json, response.json, seal.json}`, `complete.json`,
//! `latest.json`.
//!
//! The first fields of a stored review are those of the review format that coding agents know (`review_id`,
//! `status`, `design_compliance`, `comments`, …); the whole report stands beside them.

use super::{Outcome, Report, SCHEMA_VERSION, Severity, Source, TestResults, Tool, Verdict};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of everything in this file.
pub const STORED_VERSION: u32 = 1;

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    InProgress,
    NeedsChanges,
    /// In answers only: what was asked for was not all reviewed.
    Incomplete,
    /// The last round was broken off.
    Cancelled,
    Approved,
    Abandoned,
    Merged,
}

impl Status {
    /// Returns the word that documents and the command line use.
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

/// `request.json`: what was asked for when the session began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Request {
    /// The version of this document.
    pub schema_version: u32,
    /// The session: `2026-01-31-001`.
    pub review_id: String,
    /// RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// What the author says was asked for and done. Foreign text, secrets masked.
    pub summary: Option<String>,
    /// The design documents that were named.
    pub relevant_docs: Vec<String>,
    /// What the author asked to look at.
    pub focus_areas: Vec<String>,
    /// What was reviewed in the first round.
    pub source: Source,
    /// What was asked for, in the words that a follow-up starts from.
    pub asked: Asked,
    /// For people: `the staged change`.
    pub label: String,
    /// Who asked, as far as the environment tells.
    pub author: String,
    /// `cli`, `pre-commit`, `pre-push`, `mcp`.
    pub via: String,
    /// What stored this.
    pub tool: Tool,
    /// The change of the first round.
    pub change: Change,
    /// The heads of the sessions before: of the newest one there was, and of each that was continued or closed since
    /// that one began. Later versions may know more of them.
    #[serde(default)]
    pub before: Vec<Head>,
}

/// The head of a session's hash chain, as it was at some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Head {
    /// The session.
    pub review_id: String,
    /// SHA-256, hexadecimal; null: it could not be read.
    pub head: Option<String>,
}

/// A source, as it was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// The revision, range or branch that was named.
    pub rev: Option<String>,
    /// New files were included, where that was asked.
    pub untracked: bool,
    /// The globs that narrowed the review.
    pub files: Vec<String>,
}

/// What is kept of a change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// SHA-256 of `changes.diff`, hexadecimal.
    pub hash: String,
    /// Its size.
    pub bytes: u64,
    /// Files whose lines are not in it: too large, or holding secrets by their name.
    pub left_out: Vec<String>,
}

/// `round-N/review.json`, and what `request_review` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer stored review")]
pub struct Review {
    /// The version of this document.
    pub schema_version: u32,
    /// The session: `2026-01-31-001`.
    pub review_id: String,
    /// When the round began, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// How the session stands after this round.
    pub status: Status,
    /// 1 for the first, one more for each follow-up.
    pub round: u32,
    /// What became of the review.
    pub outcome: Outcome,
    /// What the gate says.
    pub verdict: Verdict,
    /// Null where no design document was given.
    pub design_compliance: Option<Compliance>,
    /// The findings, in the words of a reviewer.
    pub comments: Vec<Comment>,
    /// What the documents ask for and the change lacks.
    pub missing_requirements: Vec<Requirement>,
    /// Totals.
    pub summary: Counts,
    /// Null where no tests were run.
    pub test_results: Option<TestResults>,
    /// `needs_changes`, `lgtm_with_suggestions`, `lgtm`; null where nothing was assessed.
    pub overall_assessment: Option<super::Assessment>,
    /// What the author says of this round. Foreign text, secrets masked.
    #[serde(default)]
    pub author_summary: Option<String>,
    /// What became of the findings of the round before; null in the first round.
    pub since: Option<Since>,
    /// What to do next.
    pub advice: Advice,
    /// The change of this round.
    pub change: Change,
    /// The whole report.
    pub report: Report,
}

/// Whether the change follows the design documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compliance {
    /// No violation weighs enough to say otherwise.
    pub follows_architecture: bool,
    /// Where the change leaves the design.
    pub major_violations: Vec<super::Violation>,
}

/// A finding, in the words of a reviewer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    /// The finding of `report` that it is: `F1`.
    pub id: String,
    /// The identity of the finding over time.
    pub fingerprint: String,
    /// `specific`: about a line; `general`: about a file or the whole change.
    pub r#type: CommentType,
    /// Relative to the repository root; null: the whole change.
    pub file: Option<String>,
    /// 1-based, on the new side; null: the file as a whole.
    pub line: Option<u32>,
    /// How bad it is.
    pub severity: Severity,
    /// `architecture`, `design`, `bug`, `performance`, `style`, `security`, `missing_feature`, `best-practice`,
    /// `test`.
    pub category: String,
    /// What is wrong.
    pub comment: String,
    /// What to do about it; null where nobody says.
    pub suggested_fix: Option<String>,
    /// It blocks under the policy that governs.
    pub blocking: bool,
}

/// What a comment is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommentType {
    Specific,
    General,
}

/// What the documents ask for and the change lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// What is asked for.
    pub requirement: String,
    /// `document#heading`.
    pub design_doc_reference: Option<String>,
    /// How much it is missed.
    pub severity: Severity,
}

/// Totals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Places where the change leaves the design.
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

/// The state of the findings of earlier rounds, by code regions and fingerprints.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Since {
    /// The round that this one is compared with.
    pub round: u32,
    /// One finding each.
    pub entries: Vec<Entry>,
    /// How many are `fixed`.
    pub fixed: usize,
    /// How many are `still_there`.
    pub still_there: usize,
    /// How many are `moved`.
    pub moved: usize,
    /// How many are `reopened`.
    pub reopened: usize,
    /// How many are `new`.
    pub new: usize,
    /// How many are `introduced_by_fix`.
    pub introduced_by_fix: usize,
    /// Could not be told: this round did not look there.
    pub unchecked: usize,
}

/// One finding over two rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// What became of it.
    pub state: State,
    /// The identity of the finding over time.
    pub fingerprint: String,
    /// In this round's report; null where it is gone.
    pub id: Option<String>,
    /// In the earlier round's report; null where it is new.
    pub previous_id: Option<String>,
    /// The rule, or `ai-` and the category for what a model found.
    pub rule_id: String,
    /// How bad it is.
    pub severity: Severity,
    /// A few words.
    pub title: String,
    /// Where it is, or was; null: the change as a whole.
    pub file: Option<String>,
    /// In this round; null where it is gone.
    pub line: Option<u32>,
    /// In the earlier round; null where it is new.
    pub previous_line: Option<u32>,
}

impl Entry {
    /// Tells whether the finding blocked when it was last found. `earlier`: the rounds before, oldest first.
    pub fn blocked<'r>(&self, earlier: impl DoubleEndedIterator<Item = &'r Review>) -> bool {
        let is_it = |f: &&super::Finding| f.fingerprint == self.fingerprint && f.title == self.title;
        let known = earlier.rev().find_map(|r| r.report.findings.iter().find(is_it));
        // Of one that nobody knows any more only the weight is left.
        known.map_or(matches!(self.severity, Severity::Critical | Severity::Major), |f| f.blocking)
    }
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its code changed, and it is not found any more.
    Fixed,
    /// The same code, or code that has the same trouble.
    StillThere,
    /// The same text at another place.
    Moved,
    /// It was gone in the round before.
    Reopened,
    /// In code that was there in the round before.
    New,
    /// In code that changed since the round before.
    IntroducedByFix,
    /// This round did not look there.
    Unchecked,
}

/// What to do next, for whoever asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What to do, for programs.
    pub action: Action,
    /// One or two sentences.
    pub text: String,
    /// Why another round would not help, where that is so.
    pub circling: Vec<String>,
}

/// What can be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing blocks: close the session.
    Complete,
    /// Mend what blocks, then ask for another round.
    Fix,
    /// Rounds do not converge, or are used up: a person decides.
    AskAPerson,
    /// A backend could not answer: try later, not at once.
    RetryLater,
    /// Nothing differs: there is nothing to review.
    Nothing,
}

/// `round-N/response.json`: what the coder says to the findings of a round. Foreign text, secrets masked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The version of this document.
    pub schema_version: u32,
    /// The session.
    pub review_id: String,
    /// The round that it answers.
    pub round: u32,
    /// When it was said, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Ids (`F1`) or fingerprints of findings.
    pub addressed: Vec<String>,
    /// Why findings were not addressed.
    pub explanations: Vec<Explanation>,
    /// Files that were changed for it.
    pub modified_files: Vec<String>,
    /// What the coder asks.
    pub questions: Vec<String>,
    /// What was said in free text.
    pub text: Option<String>,
}

/// Why a finding was not addressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explanation {
    /// Id (`F1`) or fingerprint; null: about several, or none in particular.
    pub finding: Option<String>,
    /// The coder's words.
    pub text: String,
}

/// `round-N/seal.json`: the hash chain over everything that stands before it.
///
/// Every byte of it is checked: a further field needs a new version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    /// The version of this document.
    pub schema_version: u32,
    /// The head before this round; null in the first.
    pub previous: Option<String>,
    /// What the head covers, in order: tells which file was edited.
    pub files: Vec<Sealed>,
    /// SHA-256, hexadecimal.
    pub head: String,
}

/// A file that a head covers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sealed {
    /// Relative to the session: `round-1/review.json`.
    pub name: String,
    /// SHA-256 of its content, hexadecimal.
    pub sha256: String,
}

/// `complete.json`: how the session was closed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Completion {
    /// The version of this document.
    pub schema_version: u32,
    /// The session.
    pub review_id: String,
    /// Oldest first; the last one counts.
    pub entries: Vec<Closing>,
}

/// One word that closed a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// `approved`, `abandoned` or `merged`.
    pub status: Status,
    /// What should be remembered. Foreign text, secrets masked.
    pub notes: Option<String>,
    /// Who closed it, as far as the environment tells.
    pub actor: String,
    /// `cli` or `mcp`.
    pub via: String,
    /// When, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// It was closed though findings were open or the last round was incomplete.
    pub forced: bool,
    /// Fingerprints of the findings that blocked then, and of those that had blocked and were answered by nothing.
    pub open: Vec<String>,
    /// The head of the rounds that it speaks of.
    pub head: String,
    /// The head of the hash chain with this entry; empty before it is stored.
    pub seal: String,
}

/// `latest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latest {
    /// The version of this document.
    pub schema_version: u32,
    /// The newest session.
    pub review_id: String,
    /// When it was stored, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Relative to the store: `sessions/2026-01-31-001`.
    pub path: String,
    /// The sessions that were continued or closed since that one began, with their heads: the next one that begins
    /// takes them over. Empty where git keeps the store.
    #[serde(default)]
    pub since: Vec<Head>,
}

/// `.corrupt/ID.removed`: a damaged session that was removed on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub schema_version: u32,
    pub review_id: String,
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// What was wrong with it.
    pub why: String,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    /// The session: `2026-01-31-001`.
    pub review_id: String,
    /// When it began, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// How it stands.
    pub status: Status,
    /// How many rounds it has.
    pub rounds: u32,
    /// What became of the last round.
    pub outcome: Outcome,
    /// What the gate said in the last round.
    pub verdict: Verdict,
    /// Totals of the last round.
    pub summary: Counts,
    /// Who asked, as far as the environment tells.
    pub author: String,
    /// `cli`, `pre-commit`, `pre-push`, `mcp`.
    pub via: String,
    /// What was reviewed.
    pub source: Source,
    /// For people: `the staged change`.
    pub label: String,
    /// The head of the hash chain.
    pub head: String,
}

/// What cannot be read of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Damaged {
    /// The session.
    pub review_id: String,
    /// What is wrong with it.
    pub why: String,
    /// Where it was put, relative to the store; null: it stays where it is.
    pub moved_to: Option<String>,
}

/// What `history --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The version of this document.
    pub schema_version: u32,
    /// Newest first.
    pub sessions: Vec<Overview>,
    /// What cannot be read.
    pub damaged: Vec<Damaged>,
}

/// A whole session, as `history ID --format json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// The version of this document.
    pub schema_version: u32,
    /// The session: `2026-01-31-001`.
    pub review_id: String,
    /// How it stands.
    pub status: Status,
    /// What was asked for when it began.
    pub request: Request,
    /// Oldest first.
    pub rounds: Vec<Round>,
    /// How it was closed; null while it is open.
    pub completion: Option<Completion>,
    /// The head of the hash chain.
    pub head: String,
}

/// One round of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Round {
    /// What was found.
    pub review: Review,
    /// What the coder said to it; null while nothing was.
    pub response: Option<Response>,
    /// The hash chain up to here.
    pub seal: Seal,
}

/// What is written into a store, and read from one.
pub trait Document: Serialize + DeserializeOwned {}

impl<T: Serialize + DeserializeOwned> Document for T {}

/// Why a stored document is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// A newer program wrote it: its version.
    Future(u64),
    /// It is no such document: why.
    Malformed(String),
}

/// The versions in a document: its own, and that of the report in it.
#[derive(Deserialize)]
struct Versions {
    schema_version: Value,
    #[serde(default)]
    report: Option<ReportVersion>,
}

#[derive(Deserialize)]
struct ReportVersion {
    schema_version: Value,
}

/// Reads a stored document. Its version is looked at before anything else of it is.
pub fn read<T: Document>(bytes: &[u8]) -> Result<T, Unread> {
    let malformed = |e: serde_json::Error| {
        // What the document says is cited there, at any length.
        let why = e.to_string();
        Unread::Malformed(why.chars().take(200).collect())
    };
    let versions: Versions = serde_json::from_slice(bytes).map_err(malformed)?;
    check(&versions.schema_version, STORED_VERSION)?;
    if let Some(report) = versions.report {
        check(&report.schema_version, SCHEMA_VERSION)?;
    }
    serde_json::from_slice(bytes).map_err(malformed)
}

fn check(version: &Value, newest: u32) -> Result<(), Unread> {
    match version.as_u64() {
        Some(v) if (1..=u64::from(newest)).contains(&v) => Ok(()),
        Some(v) if v > 0 => Err(Unread::Future(v)),
        _ => Err(Unread::Malformed("its schema_version is not a version".to_owned())),
    }
}
