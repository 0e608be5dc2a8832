//! Formats of background reviews: the queue of a repository, the ledger of costs, and the answer of `status`.

use super::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the stored formats and of the answer.
pub const VERSION: u32 = 1;

/// The queue of one repository, in `queue.json`. At most one review runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    pub version: u32,
    /// The commit that was made first, of those that wait.
    pub waiting: Option<Waiting>,
    /// The others: of other branches and worktrees.
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

/// A commit to review, with all that the review needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Full object ID.
    pub commit: String,
    /// The top of the worktree that made the commit; it has the policy, and gets the stored review.
    pub worktree: String,
    /// The git folder of that worktree.
    pub git_dir: String,
    /// Destination of a push of the commit; null if there is none.
    pub push: Option<Push>,
    /// When it was committed, RFC 3339, UTC.
    pub since: String,
    /// How many reviews of it ended before they were complete, without a reason.
    #[serde(default)]
    pub attempts: u32,
    /// Short name of the branch that was checked out; null if HEAD was detached.
    #[serde(default)]
    pub branch: Option<String>,
    /// The commit before the change, if there is nowhere to push and the change has several commits.
    #[serde(default)]
    pub from: Option<String>,
    /// Earlier commits of the queue that its review covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covers: Vec<Covered>,
}

/// An earlier commit of the queue that the review of a later one covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Covered {
    /// Full object ID.
    pub commit: String,
    /// Where the review of the later commit has to begin, if there is nowhere to push.
    pub from: Option<String>,
}

/// Arguments of a pre-push hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Push {
    /// Name of the remote.
    pub remote: String,
    /// Full name of the reference there.
    pub reference: String,
    /// Object ID that the remote had when it was last asked; zeros if it has no such reference.
    pub known: String,
}

/// A commit that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    pub order: Order,
    /// Why it does not run; null if it is about to.
    #[serde(default)]
    pub held: Option<String>,
}

/// A commit under review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Running {
    pub order: Order,
    pub pid: u32,
    /// Start time of the process, in clock ticks since boot; null on systems without `/proc`.
    pub birth: Option<u64>,
    /// RFC 3339, UTC.
    pub since: String,
    /// A person asked it to stop.
    #[serde(default)]
    pub is_stopping: bool,
}

/// The result of the latest review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Last {
    /// Full object ID.
    pub commit: String,
    pub worktree: String,
    /// When it ended, RFC 3339, UTC.
    pub at: String,
    pub ending: Ending,
    /// Null unless the review ended by itself.
    pub verdict: Option<Verdict>,
    /// ID of the stored review; null if it is not stored.
    pub review_id: Option<String>,
    /// USD; null if unknown.
    pub cost_usd: Option<f64>,
    /// Why it is not complete or not stored.
    pub note: Option<String>,
}

/// How a background review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With a verdict.
    Reviewed,
    /// With an error.
    Failed,
    /// A person stopped it.
    Stopped,
    /// It ran out of its total time.
    TimedOut,
    /// Its process ended several times before the review did.
    Abandoned,
}

impl Ending {
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
    /// By day: `2026-01-31`, UTC.
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
    /// Reserved by reviews that have not reported their cost, by name. A review that was killed never does.
    pub reserved: BTreeMap<String, f64>,
}

/// Answer of `status --format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    pub schema_version: u32,
    /// Value of `[hooks] post_commit`.
    pub post_commit: String,
    pub is_hook_installed: bool,
    pub running: Option<Running>,
    pub pending: Option<Waiting>,
    /// Commits that wait after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_later: Vec<Waiting>,
    pub last: Option<Last>,
    pub cost: Cost,
    pub log: String,
}

impl Status {
    /// Returns the JSON document.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}

/// Cost of all background reviews of the user today.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// `2026-01-31`, UTC.
    pub day: String,
    pub spent_usd: f64,
    /// Of reviews that run or were killed.
    pub reserved_usd: f64,
    pub max_usd: f64,
}
