//! Formats of background reviews: the queue of a repository, the ledger of costs, and the answer of
//! `status`.

use super::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the stored formats and of the answer.
pub const VERSION: u32 = 1;

/// The queue of one repository, in `queue.json`. At most one review runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub version: u32,
    /// The oldest waiting commit.
    pub waiting: Option<Waiting>,
    /// Other waiting commits, of other branches and worktrees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<Waiting>,
    pub running: Option<Running>,
    pub last: Option<Last>,
}

impl Queue {
    /// Returns the content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", serde_json::json!(self)).into_bytes()
    }
}

/// A commit to review, with all inputs of the review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReviewOrder {
    /// Full object ID.
    pub commit: String,
    /// Top of the worktree that made the commit. It has the policy, and gets the stored review.
    pub worktree: String,
    /// The git folder of that worktree.
    pub git_dir: String,
    /// Destination of a push of the commit; null if the branch has none.
    pub push: Option<Push>,
    /// Time of the commit, RFC 3339, UTC.
    pub since: String,
    /// Number of its reviews that ended early for no known reason.
    #[serde(default)]
    pub attempts: u32,
    /// Short name of the branch that was checked out; null if HEAD was detached.
    #[serde(default)]
    pub branch: Option<String>,
    /// Commit before the change, if there is no push destination and the change has several
    /// commits.
    #[serde(default)]
    pub from: Option<String>,
    /// Earlier queued commits that its review covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<Covered>,
}

/// An earlier queued commit that the review of a later one covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// Full object ID.
    pub commit: String,
    /// Start of the later commit's review, if there is no push destination.
    pub from: Option<String>,
}

/// Arguments of a pre-push hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Name of the remote.
    pub remote: String,
    /// Full name of the reference there.
    pub reference: String,
    /// Last known object ID of the reference at the remote; zeros if the remote has no such
    /// reference.
    pub known: String,
}

/// A waiting commit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    pub order: ReviewOrder,
    /// Reason why it does not start; null if it will start.
    #[serde(default)]
    pub held: Option<String>,
}

/// A commit under review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    pub order: ReviewOrder,
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot; null on systems without `/proc`.
    pub birth: Option<u64>,
    /// RFC 3339, UTC.
    pub since: String,
    /// True if a person asked it to stop.
    #[serde(default)]
    pub is_stopping: bool,
}

/// The result of the latest review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    /// Full object ID.
    pub commit: String,
    pub worktree: String,
    /// End of the review, RFC 3339, UTC.
    pub at: String,
    pub ending: BackgroundEnd,
    /// Verdict; null unless the review ended by itself.
    pub verdict: Option<Verdict>,
    /// ID of the stored review; null if it is not stored.
    pub review_id: Option<String>,
    /// USD; null if unknown.
    pub cost_usd: Option<f64>,
    /// Reason why it is incomplete or not stored.
    pub note: Option<String>,
}

/// The end of a background review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackgroundEnd {
    /// Ended with a verdict.
    Reviewed,
    /// Ended with an error.
    Failed,
    /// A person stopped it.
    Stopped,
    /// Exceeded its total time.
    TimedOut,
    /// Its process ended several times before the review did.
    Abandoned,
}

impl BackgroundEnd {
    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reviewed => "reviewed",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::TimedOut => "timed out",
            Self::Abandoned => "abandoned",
        }
    }
}

/// Costs of the background reviews of a user, in `spending.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spending {
    pub version: u32,
    /// Costs by day: `2026-01-31`, UTC.
    pub days: BTreeMap<String, Day>,
}

impl Spending {
    /// Returns the content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        format!("{:#}\n", serde_json::json!(self)).into_bytes()
    }
}

/// Costs of a day in USD.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Day {
    pub spent: f64,
    /// Reservations of reviews that have not reported their cost, by name. A killed review never
    /// does.
    pub reserved: BTreeMap<String, f64>,
}

/// Answer of `status --format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackgroundStatus {
    pub schema_version: u32,
    /// Value of `[hooks] post_commit`.
    pub post_commit: String,
    pub is_hook_installed: bool,
    pub running: Option<Running>,
    pub pending: Option<Waiting>,
    /// Commits that wait after the first one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_later: Vec<Waiting>,
    pub last: Option<Last>,
    /// Batches of `--batch` whose results are not used yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub batches: Vec<RecordedBatch>,
    pub cost: Cost,
    pub log: String,
}

impl BackgroundStatus {
    /// Returns the JSON document.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}

/// A batch at a provider that this repository has a record of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordedBatch {
    /// ID of the provider; null if the run that submitted it ended before it got one.
    pub id: Option<String>,
    /// Name of the record, which `--cancel-batch` takes in place of the ID.
    pub record: String,
    /// Name of the backend in the policy; null in records of earlier versions.
    pub backend: Option<String>,
    /// True if the ID was found in a list of batches and only its time and its number of requests
    /// match: it may be a batch of another run.
    pub is_unproven: bool,
    pub requests: usize,
    /// RFC 3339, UTC.
    pub submitted: String,
}

/// Cost of all background reviews of the user today.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// `2026-01-31`, UTC.
    pub day: String,
    pub spent_usd: f64,
    /// USD reserved by reviews that run or were killed.
    pub reserved_usd: f64,
    pub max_usd: f64,
}
