//! The lines of `--format jsonl`: a report whose findings are lines of their own.
//!
//! `schemas/report-line.schema.json` is generated from these types.

use super::{Finding, Policy, Report, ReviewedSource, Shard, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of a report in JSON Lines: the start, then each finding, then the end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(title = "claude-reviewer report line")]
pub enum ReportLine {
    /// The first line: what is reviewed, and by which rules.
    Start(ReportStart),
    /// A finding as it is in the finished review.
    Finding {
        /// The finding. Its ID is its number in this output.
        finding: Finding,
    },
    /// The last line. Without it, the review did not finish.
    End {
        /// The report of the finished review, with an empty list of findings. Its totals include
        /// the findings of the lines before; `summary.unlisted` has those without a line.
        report: Report,
    },
}

/// The facts before the first file is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportStart {
    /// Version of the report format: 1. Fields may be added without a new version.
    pub schema_version: u32,
    /// The program that writes the report.
    pub tool: Tool,
    /// Start of the review, RFC 3339, UTC.
    #[schemars(extend("format" = "date-time"))]
    pub timestamp: String,
    /// The reviewed change.
    pub source: ReviewedSource,
    /// The part of the files that is reviewed; absent if all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// The policy that applies.
    pub policy: Policy,
}

/// Returns the published JSON schema of a line, indented and with a final newline.
pub fn schema() -> String {
    super::published::<ReportLine>()
}
