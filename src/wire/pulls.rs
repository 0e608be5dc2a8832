//! Output of `pr list --format json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the types in this file.
pub const PULLS_VERSION: u32 = 1;

/// Open pull requests of a project. All text comes from the forge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pulls {
    pub schema_version: u32,
    /// Host of the forge: `github.com`.
    pub forge: String,
    /// Project path: `owner/name`.
    pub project: String,
    /// Pull requests, newest first.
    pub pulls: Vec<Pull>,
    /// True if there are more pull requests than listed.
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
    /// Name of the target branch.
    pub base: String,
    /// Name of the source branch.
    pub head: String,
    /// Time of the last update, as the forge writes it.
    pub updated: String,
}
