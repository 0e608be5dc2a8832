//! Schema of the test that a model writes to prove a claim.

use super::strict_schema_of;
use crate::ai::ask;
use schemars::JsonSchema;
use std::sync::LazyLock;

/// A reply: one JSON document.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct TestProposal {
    /// The value of the prompt's last line.
    pub nonce: String,
    /// What the test shows, in one or two sentences.
    pub reason: String,
    /// The files of the test; empty if the claim cannot be tested.
    pub files: Vec<NewFile>,
    /// The shell command that runs the test from the top folder; exit code 0 means that it passes.
    pub command: String,
    /// The smallest correction with which the test passes.
    pub fix: Vec<FixEdit>,
}

/// A file that the repository does not have.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct NewFile {
    /// The path from the top folder.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// An exact replacement in a file.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct FixEdit {
    /// The path from the top folder.
    pub path: String,
    /// Text that occurs once in the file, verbatim.
    pub old: String,
    /// The text in its place.
    pub new: String,
}

/// Returns the schema of a [`TestProposal`]. It never changes during a run.
pub fn schema() -> &'static ask::Schema {
    static SCHEMA: LazyLock<ask::Schema> = LazyLock::new(|| ask::Schema {
        name: "reproduction",
        value: strict_schema_of::<TestProposal>(),
    });
    &SCHEMA
}
