//! A receipt: that a change was reviewed, by whom, and with what verdict. A line of a note is a [`Signed`].

use super::{Summary, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of everything in this file.
pub const RECEIPT_VERSION: u32 = 1;

/// A receipt and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The text that is signed: a [`Receipt`] as JSON.
    pub receipt: String,
    /// `ssh-keygen -Y sign` over exactly that text.
    pub signature: String,
}

/// What is signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema_version: u32,
    /// The program that reviewed, and its version.
    pub tool: String,
    /// When the review began, RFC 3339, UTC.
    pub timestamp: String,
    pub terms: Terms,
    pub verdict: Verdict,
    pub summary: Summary,
    /// Those that looked at all of it, by name.
    pub backends: Vec<Reviewer>,
}

/// What a verdict is about: with another of these it is another verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Object ids of the trees that were compared, hexadecimal.
    pub base_tree: String,
    pub head_tree: String,
    /// SHA-256 of the change as text, secrets masked; hexadecimal.
    pub change: String,
    /// What decides in the policy: by name (`[review] depth`) a hash of the value, 16 hexadecimal digits.
    pub policy: BTreeMap<String, String>,
    /// Over every rule that was active.
    pub rules: String,
}

/// A backend, and the model that answered for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    pub name: String,
    pub model: String,
}
