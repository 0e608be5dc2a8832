//! What `policy test --format json` prints: stored reviews under another policy.

use super::stored::Damaged;
use super::{Outcome, Policy, Severity, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of everything in this file.
pub const REPLAY_VERSION: u32 = 1;

/// Stored reviews under a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    pub schema_version: u32,
    /// The policy that judged anew.
    pub policy: Policy,
    /// Newest sessions first, their rounds in order.
    pub rounds: Vec<Replayed>,
    /// Rounds whose verdict is another one.
    pub flips: usize,
    pub damaged: Vec<Damaged>,
}

/// A round under a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    pub review_id: String,
    pub round: u32,
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    pub outcome: Outcome,
    /// As it was stored.
    pub was: Ending,
    pub would_be: Ending,
    pub flips: bool,
    /// What the policy treats otherwise.
    pub because: Vec<Because>,
    /// What cannot be told without a new review.
    pub unknown: Vec<String>,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    pub verdict: Verdict,
    pub exit_code: u8,
}

/// Something that the policy treats otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Because {
    /// The finding of the stored report; null: the coverage.
    pub id: Option<String>,
    pub fingerprint: Option<String>,
    pub rule_id: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// As it was stored.
    pub severity: Option<Severity>,
    /// A lowercase fragment: `blocks now: severity minor is in block_on`.
    pub what: String,
}
