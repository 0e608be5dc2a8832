//! What `pr list --format json` prints.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of everything in this file.
pub const PULLS_VERSION: u32 = 1;

/// The open pull requests of a project. All text is the forge's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pulls {
    pub schema_version: u32,
    /// The host: `github.com`.
    pub forge: String,
    /// `owner/name`.
    pub project: String,
    /// The newest first.
    pub pulls: Vec<Pull>,
    /// There are more than are listed.
    pub more: bool,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pull {
    pub number: u64,
    pub title: String,
    pub url: String,
    pub author: String,
    pub is_draft: bool,
    /// Names of branches.
    pub base: String,
    pub head: String,
    /// When something last happened to it, as the forge writes it.
    pub updated: String,
}
