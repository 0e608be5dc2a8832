//! What the tools of the MCP server answer, where that is more than a document of the other files: what is sent is
//! written from these types, and the schemas that clients are shown are made of them.

use super::Report;
use super::stored::{Completion, Review, Status};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

/// What went wrong: nothing was done.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "The error")]
pub struct Failure {
    /// That nothing was done.
    pub status: Failed,
    /// The same.
    pub outcome: Failed,
    /// True if the same request can succeed later.
    pub retryable: bool,
    /// Seconds to wait before a retry; null: unknown.
    pub retry_after_s: Option<u64>,
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// That nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Failed {
    Error,
}

/// A review that nothing is kept of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "A review")]
pub struct Reported {
    #[serde(flatten)]
    pub report: Report,
    /// The backends that were asked; `rules` where none was.
    pub provider: String,
    /// What was reviewed, in numbers.
    pub metadata: Metadata,
    /// Only where the review is not whole: what that means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Partly>,
    /// Only where the review is not whole: whether asking again later can help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Only where the review is not whole: seconds to wait before asking again; null where nobody says how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

/// What a review that is not whole means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Partly {
    /// It is no approval.
    Incomplete,
    /// Something blocks, whatever else is missing.
    NeedsChanges,
}

/// What was reviewed, in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metadata {
    /// `staged`, `unstaged`, `commit`, `branch`; `arbitrary` for code that was handed over.
    pub source_type: String,
    /// Files of the change.
    pub file_count: usize,
    /// Lines that were shown: added, removed and around them.
    pub line_count: usize,
    /// Lines that the change adds.
    pub lines_added: usize,
    /// Lines that the change takes away.
    pub lines_removed: usize,
    /// The models that looked; null: none.
    pub model: Option<String>,
}

/// A round that was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "A round of a review", transform = may_lack_an_id)]
pub struct Reviewed {
    #[serde(flatten)]
    pub review: Review,
    /// Documents that were named and not given to a reviewer.
    pub refused_docs: Vec<RefusedDocument>,
    /// Why the round is not stored, though it was to be; null: it is, or there was nothing to store.
    pub unsaved: Option<String>,
    /// Only where the review is not whole: whether asking again later can help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// Only where the review is not whole: seconds to wait before asking again; null where nobody says how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
}

/// A document that was not given to a reviewer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RefusedDocument {
    /// As it was named.
    pub path: String,
    /// Why not.
    pub reason: String,
}

/// Where nothing is stored, there is no id: null stands for the empty one.
fn may_lack_an_id(schema: &mut Schema) {
    if let Some(id) = schema.get_mut("properties").and_then(|p| p.get_mut("review_id")).and_then(Value::as_object_mut) {
        id.insert("type".to_owned(), json!(["string", "null"]));
        id.insert("description".to_owned(), "The session: `2026-01-31-001`; null where nothing is stored.".into());
    }
}

/// A session that was closed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "A review that is closed")]
pub struct Completed {
    /// The session.
    pub review_id: String,
    /// How it stands.
    pub status: Status,
    /// How many rounds it has.
    pub rounds: usize,
    /// How it was closed.
    pub completion: Option<Completion>,
    /// The head of the hash chain; note it to prove later what was stored.
    pub head: String,
}
