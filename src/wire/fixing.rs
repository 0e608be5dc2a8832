//! `fixes.json` of a stored session: what a model planned and did to fix findings. Every text is
//! masked.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `fixes.json`: fixes of one session, oldest first, and their links in its hash chain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fixes {
    /// Version of the format.
    pub schema_version: u32,
    /// ID of the session.
    pub review_id: String,
    /// Fixes, oldest first.
    pub fixes: Vec<StoredFix>,
    /// Links of the hash chain, oldest first: one for each time that a fix was stored. Older
    /// versions wrote none.
    #[serde(default)]
    pub links: Vec<FixLink>,
}

/// A link of the hash chain of a session: the state of a fix when it was stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FixLink {
    /// Number of the fix.
    pub number: u32,
    /// True if the fix had ended. Its record does not change any more.
    pub ended: bool,
    /// SHA-256 of the fix as compact JSON, hexadecimal.
    pub sha256: String,
    /// Head before this link.
    pub previous: String,
    /// Head after this link.
    pub seal: String,
}

/// A fix: its plan and the attempts to execute it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Fix")]
pub struct StoredFix {
    /// Number of the fix in its session, from 1.
    pub number: u32,
    /// Start, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// Entry point: `cli` or `mcp`.
    pub via: String,
    /// IDs of the findings in the last round.
    pub findings: Vec<String>,
    /// The plan; null if there is none.
    pub plan: Option<StoredPlan>,
    /// How it ended.
    pub outcome: FixOutcome,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
}

/// A plan that a model proposed, and a person may have edited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Plan")]
pub struct StoredPlan {
    /// The backend that planned.
    pub backend: String,
    /// The idea of the fix. Untrusted text, secrets masked.
    pub summary: String,
    /// The steps, in order.
    pub steps: Vec<StoredStep>,
    /// True if a person edited the plan.
    pub edited: bool,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Step")]
pub struct StoredStep {
    /// The change to make, and the reason. Untrusted text, secrets masked.
    pub text: String,
    /// Files that the step changes or creates.
    pub files: Vec<String>,
}

/// An attempt to execute a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub attempt_number: u32,
    /// Start, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The plan as the model was given it. Secrets masked.
    pub planning_output: String,
    /// The report of the model. Secrets masked.
    pub execution_output: String,
    /// Result of the verification.
    pub verdict: AttemptVerdict,
    /// Why the attempt failed; empty if it did not.
    pub reasons: Vec<String>,
    /// Changed and created files.
    pub files: Vec<String>,
    /// The change as a patch. Secrets masked.
    pub patch: String,
    /// Requests of execution and verification.
    pub requests: u64,
    /// Tokens in and out of execution and verification.
    pub tokens: u64,
    /// US dollars; null if no cost is known.
    pub cost: Option<f64>,
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptVerdict {
    /// The findings are gone, nothing new blocks, and the tests passed where they ran.
    Verified,
    /// The verification found a problem.
    Rejected,
    /// The model changed nothing.
    NoChange,
    /// It changes files or checks that a fix may not touch.
    Forbidden,
    /// The project's tests failed.
    TestsFailed,
    /// A part of the verification did not happen.
    Unverified,
    /// The model did not answer.
    #[default]
    Failed,
    /// The run was ended.
    Interrupted,
}

/// How a fix ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FixOutcome {
    /// There is a plan, or not even that.
    #[default]
    Planned,
    /// A person did not approve the plan or the change.
    Declined,
    /// No attempt was verified.
    Failed,
    /// The run was ended.
    Interrupted,
    /// The change was verified and not written.
    Verified,
    /// The change is in the worktree.
    Applied,
    /// The change was written as a patch.
    Patched,
    /// Later edits of the worktree conflict with the change.
    Conflict,
}

impl StoredFix {
    /// Begins a fix.
    pub fn new(via: &str, findings: Vec<String>, now: Timestamp) -> Self {
        Self {
            via: via.to_owned(),
            findings,
            timestamp: now.to_string(),
            ..Self::default()
        }
    }
}
