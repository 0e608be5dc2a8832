//! Schema of answers about the criteria of a contract.

use super::strict_schema_of;
use crate::ai::ask;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::sync::LazyLock;

/// A reply: one JSON document.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Criteria {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// One for each criterion, in their order.
    pub criteria: Vec<Stand>,
}

/// How a criterion stands.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Stand {
    /// The id of the criterion, as it was given.
    pub id: String,
    #[schemars(schema_with = "standings")]
    pub standing: String,
    /// For met: the path as shown of the file that shows it; else null.
    pub file: Option<String>,
    /// For met: a changed line that shows it, verbatim and whole; else null.
    pub quote: Option<String>,
    /// One or two sentences: what in the change shows it.
    pub reason: String,
}

/// Returns the schema of [`Criteria`]. It never changes during a run.
pub fn schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "criteria",
        value: strict_schema_of::<Criteria>(),
    });
    &SCHEMA
}

fn standings(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "enum": ["met", "unmet", "unknown"] })
}
