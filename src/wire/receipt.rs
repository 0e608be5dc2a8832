//! Receipts: signed statements about a review, its reviewers and its verdict. A line of a git note
//! is a [`Signed`].

use super::{Summary, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the types in this file.
pub const RECEIPT_VERSION: u32 = 1;

/// A receipt and its signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signed {
    /// The signed text: a [`Receipt`] as JSON.
    pub receipt: String,
    /// Signature of `ssh-keygen -Y sign` over these bytes.
    pub signature: String,
}

/// The signed statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    pub schema_version: u32,
    /// Name and version of the program.
    pub tool: String,
    /// Start of the review, RFC 3339, UTC.
    pub timestamp: String,
    pub terms: Terms,
    pub verdict: Verdict,
    pub summary: Summary,
    /// Backends that reviewed the whole change, by name.
    pub backends: Vec<Reviewer>,
}

/// Inputs of a verdict. The receipt applies only if all of them are equal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Object ID of the old tree, hexadecimal.
    pub base_tree: String,
    /// Object ID of the new tree, hexadecimal.
    pub head_tree: String,
    /// SHA-256 of the change as text with masked secrets, hexadecimal.
    pub change: String,
    /// Policy values that affect the verdict: key (`[review] depth`) to a hash of 16 hexadecimal
    /// digits.
    pub policy: BTreeMap<String, String>,
    /// Hash of all active rules.
    pub rules: String,
}

/// A backend and its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reviewer {
    pub name: String,
    pub model: String,
}
