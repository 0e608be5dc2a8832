//! Output of `policy test --format json`: stored reviews under another policy.

use super::stored::Damaged;
use super::{Outcome, Policy, Severity, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the types in this file.
pub const REPLAY_VERSION: u32 = 1;

/// Stored reviews, judged again under a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    pub schema_version: u32,
    /// The policy used for the new verdicts.
    pub policy: Policy,
    /// Rounds in order, newest session first.
    pub rounds: Vec<Replayed>,
    /// Number of rounds whose verdict changes.
    pub flips: usize,
    pub damaged: Vec<Damaged>,
}

/// A round, judged again under a policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    pub review_id: String,
    pub round: u32,
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    pub outcome: Outcome,
    /// Stored result.
    pub was: RoundResult,
    pub would_be: RoundResult,
    pub flips: bool,
    /// Differences that the policy makes.
    pub because: Vec<Because>,
    /// Questions that only a new review can answer.
    pub unknown: Vec<String>,
}

/// Result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Ending")]
pub struct RoundResult {
    pub verdict: Verdict,
    pub exit_code: u8,
}

/// A difference that the policy makes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Because {
    /// ID of the finding in the stored report; null for the coverage.
    pub id: Option<String>,
    pub fingerprint: Option<String>,
    pub rule_id: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Stored severity.
    pub severity: Option<Severity>,
    /// The difference as a lowercase fragment: `blocks now: severity minor is in block_on`.
    pub what: String,
}
