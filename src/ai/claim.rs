//! What a model is asked to answer, and what it says: claims, trusted for nothing.
//!
//! The schema that providers get is generated from these types, and is constant.

use schemars::JsonSchema;
use serde::Deserialize;

/// A reply: one JSON document.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// Two or three sentences on the change.
    pub summary: String,
    /// Every file that was looked at, by its path as shown.
    pub files_reviewed: Vec<String>,
    pub findings: Vec<Claim>,
    /// Null unless design documents were given.
    pub design_compliance: Option<Compliance>,
    /// Empty unless documents were given that ask for something.
    pub missing_requirements: Vec<Missing>,
}

/// Something that a model says is wrong.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The path as shown; null: the change as a whole.
    pub file: Option<String>,
    /// The number in front of the line, on the new side.
    pub line: Option<i64>,
    pub end_line: Option<i64>,
    /// The offending line, verbatim.
    pub quote: Option<String>,
    /// critical, major, minor or suggestion.
    pub severity: String,
    /// bug, security, performance, style, architecture, design, missing-requirement, best-practice or test.
    pub category: String,
    /// The number of the weakness in the CWE list, where one fits.
    pub cwe: Option<i64>,
    pub title: String,
    pub message: String,
    /// A concrete way it goes wrong: input, and the wrong outcome.
    pub failure: Option<String>,
    pub suggestion: Option<String>,
    /// Code that can take the place of the lines `line` to `end_line`, or null.
    pub replacement: Option<String>,
    /// The heading of the convention that is broken, as `FILE#Heading`, or null.
    pub convention: Option<String>,
}

/// Whether the change follows the documents.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Compliance {
    pub follows_architecture: bool,
    pub violations: Vec<Violation>,
}

/// Where the change leaves the design.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Violation {
    pub issue: String,
    pub description: String,
    /// critical, major, minor or suggestion.
    pub impact: String,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    pub recommendation: Option<String>,
}

/// What a document asks for and the change lacks.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Missing {
    pub requirement: String,
    /// `FILE#Heading`.
    pub reference: Option<String>,
    /// critical, major, minor or suggestion.
    pub severity: String,
}

/// The last word on one claim.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rebuttal {
    pub nonce: String,
    /// The claim does not hold.
    pub refuted: bool,
    pub reason: String,
}
