//! The part of a shard's report that only `report merge` reads: what the other formats show and the
//! report itself does not state.
//!
//! The program that merges must have the version of the program that wrote it, so these types may
//! change with every version.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The fields that identify the program that wrote a document. Any type is accepted, so that a
/// document of another program is named as such.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ReportHeader {
    pub schema_version: Option<serde_json::Value>,
    pub tool: Option<serde_json::Value>,
}

/// The facts of a shard's review that its report does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "ForMerge")]
pub struct MergeFacts {
    /// The change in words for people.
    pub label: String,
    /// Name of the folder with the worktree; null without a worktree.
    pub repository: Option<String>,
    /// True if blocking findings do not change the exit code (`--exit-zero`).
    pub exit_zero: bool,
    /// True if the base of the change governs the review, so that added suppressions do not count.
    pub gate: bool,
    /// True if an incomplete review does not change the exit code (`on_incomplete = "warn"`).
    pub incomplete_passes: bool,
    /// True if the policy names no backend.
    pub rules_only: bool,
    /// Why models read no conventions of the team; null if they did, or if none was asked.
    pub without_conventions: Option<String>,
    /// Added lines.
    pub added: usize,
    /// Removed lines.
    pub removed: usize,
    /// Lines of the new side that the change shows.
    pub shown: usize,
    /// The first changed line.
    pub first_change: Option<FirstLine>,
    /// Blocking findings that are not listed, by severity, worst first.
    pub unlisted_blocking: [usize; 4],
    /// The state of each finding, in the order of the report.
    pub findings: Vec<FindingFacts>,
    /// The claims of models that could not be anchored.
    pub dropped: Vec<DroppedClaim>,
    /// The change as text, secrets masked; null if it was not recorded.
    pub change: Option<Vec<ChangedFile>>,
    /// Fingerprints of waivers that match no finding of the shard.
    pub unused_waivers: Vec<String>,
    /// Backends that were asked, also without an answer.
    pub asked: Vec<String>,
    /// Files whose lines are not in `change`.
    pub left_out: Vec<String>,
    /// Digest of the files that are divided: their paths, modes, contents and sizes.
    pub state: String,
    /// Digest of the patterns that select files.
    pub selection: String,
    /// Digest of the options that change what is found or how it counts.
    pub options: String,
}

/// A position in the change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirstLine {
    /// Path from the repository root.
    pub file: String,
    /// Line on the new side, from 1; null if the file has no added line.
    pub line: Option<u32>,
}

/// Values of a finding that its report does not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FindingFacts {
    /// Byte columns of the match in its first line, from 0, the end excluded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<(u32, u32)>,
    /// The code around the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<CodeFrame>,
    /// Effect of the finding under the policy, if it counts.
    pub effect: PolicyEffect,
}

/// Effect of a finding that counts under the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PolicyEffect {
    #[default]
    Counts,
    Warns,
    Blocks,
}

/// The code around a finding, secrets masked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeFrame {
    /// Number of the first line, from 1.
    #[schemars(range(min = 1))]
    pub first: u32,
    /// The lines without line ends.
    pub lines: Vec<CodeLine>,
}

/// A line of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CodeLine {
    /// The text, or a part of a long one.
    pub text: RawText,
    /// Bytes before the text that the frame does not have.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// True if the change adds the line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
}

/// Text that need not be UTF-8: a string if it is, otherwise its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RawText {
    Text(String),
    Bytes(Vec<u8>),
}

impl RawText {
    /// Returns the text for these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(bytes.to_owned()),
        }
    }

    /// Returns the bytes of the text.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// A claim of a model that could not be anchored to a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedClaim {
    /// Name of the backend.
    pub backend: String,
    /// The claim, secrets masked.
    pub claim: String,
    /// Why it was dropped.
    pub why: String,
}

/// The change of one file as a unified diff.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Number of the part of the change, and of the file in the part. The merged change has the
    /// files in this order.
    pub order: (usize, usize),
    /// The diff of the file.
    pub text: RawText,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf_8_comes_back_as_it_was() {
        for bytes in [
            &b"x = 1"[..],
            b"\"\\351\"",
            b"caf\xe9",
            "日本".as_bytes(),
            b"",
            b"[1, 2]",
        ] {
            let json = serde_json::to_string(&RawText::new(bytes)).unwrap();
            let back: RawText = serde_json::from_str(&json).unwrap();
            assert_eq!(back.bytes(), bytes, "{json}");
        }
    }
}
