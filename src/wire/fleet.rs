//! Output of `report merge --format json` for several repositories.
//!
//! `schemas/fleet.schema.json` is generated from these types.

use super::{Report, Verdict, published};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the types in this file.
pub const FLEET_VERSION: u32 = 1;

/// The reports of several repositories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "claude-reviewer report of several repositories")]
pub struct FleetReport {
    /// Version of this format: 1. Fields may be added without a new version.
    pub schema_version: u32,
    /// The program that merged the reports.
    pub tool: MergeTool,
    /// The worst verdict of the repositories: block, incomplete, warn, pass.
    pub verdict: Verdict,
    /// Exit code of the process: that of the worst review.
    pub exit_code: u8,
    /// Totals over all repositories.
    pub summary: FleetSummary,
    /// The report of each repository, in the order in which they were given.
    pub reports: Vec<NamedReport>,
}

/// The program that merged the reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MergeTool {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// Totals over all repositories. The severity counts exclude suppressed, waived, rejected and
/// deferred findings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FleetSummary {
    /// The totals in one sentence.
    pub text: String,
    /// Repositories.
    pub repositories: usize,
    /// Repositories that are blocked.
    pub block: usize,
    /// Repositories whose review is incomplete.
    pub incomplete: usize,
    /// Repositories that passed with warnings.
    pub warn: usize,
    /// Repositories that passed.
    pub pass: usize,
    /// Critical findings.
    pub critical: usize,
    /// Major findings.
    pub major: usize,
    /// Minor findings.
    pub minor: usize,
    /// Suggestions.
    pub suggestion: usize,
    /// Files in the reviewed changes and trees.
    pub files_total: usize,
    /// Files that every reviewer finished.
    pub files_reviewed: usize,
}

/// The report of one repository.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamedReport {
    /// Name of the repository: the given one, or that of the file. Untrusted text.
    pub name: String,
    /// Its report.
    pub report: Report,
}

/// Returns the published JSON schema of [`FleetReport`], indented and with a final newline.
pub fn schema() -> String {
    published::<FleetReport>()
}
