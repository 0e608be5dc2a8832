//! Schemas of answers about documents: whether a proposal can be implemented, and who is right in a
//! disagreement.

use super::{severities, strict_schema_of};
use crate::ai::ask;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::sync::LazyLock;

/// The assessment of a proposal.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Proposal {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// A developer who knows nothing else can implement it.
    pub valid: bool,
    pub issues: Vec<Flaw>,
}

/// A defect of a proposal.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Flaw {
    #[schemars(schema_with = "severities")]
    pub severity: String,
    /// What is wrong or missing, and what it leads to.
    pub issue: String,
    /// The text to write instead.
    pub suggestion: Option<String>,
    /// The words that are wrong, verbatim; null for what is missing.
    pub quote: Option<String>,
}

/// The side of a disagreement that is right.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Decision {
    /// The value of the prompt's last line.
    pub nonce: String,
    #[schemars(schema_with = "sides")]
    pub side: String,
    /// The reasons for the decision, point by point.
    pub reasoning: String,
    /// The words that decide; at least one.
    pub quotes: Vec<Passage>,
}

/// Words of a document.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Passage {
    #[schemars(schema_with = "documents")]
    pub document: String,
    /// Verbatim, at least a few words.
    pub quote: String,
}

/// Returns the schema of a [`Proposal`]. It never changes during a run.
pub fn proposal_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "proposal",
        value: strict_schema_of::<Proposal>(),
    });
    &SCHEMA
}

/// Returns the schema of a [`Decision`]. It never changes during a run.
pub fn decision_schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "decision",
        value: strict_schema_of::<Decision>(),
    });
    &SCHEMA
}

fn sides(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["floor_manager", "judge"] })
}

fn documents(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["contract", "rebuttal", "judge_report"] })
}
