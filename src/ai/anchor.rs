//! Finds claims again in the change. Pure.
//!
//! A claim becomes a [`Candidate`] only where its quote or its line stands in what was shown; what supports it
//! decides how far it is believed, and nothing that the model says of itself does.

use crate::diff::{LineNo, ObjectId, RepoPath};
use crate::finding::{Draft, Evidence};

/// What became of a claim.
#[derive(Clone, Debug)]
pub enum Anchored {
    Candidate(Box<Candidate>),
    /// True or not, it is not about the change: unchanged code, a file that is not part of it.
    Remark {
        file: Option<RepoPath>,
        line: Option<LineNo>,
        text: String,
    },
    /// Tied to nothing; said with `-v`, and counted.
    Dropped {
        claim: String,
        why: &'static str,
    },
}

/// A claim with a place in the change.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub draft: Draft,
    pub commit: Option<ObjectId>,
    /// The backend's configured name.
    pub backend: String,
    pub quoted: Quoted,
    /// Tool calls that read the lines.
    pub evidence: Vec<Evidence>,
    /// Why another look refuted it.
    pub disputed: Option<String>,
    /// What has to be said about how it was read (an unknown severity).
    pub notes: Vec<String>,
}

/// How well the quote of a claim fits the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quoted {
    /// There is none, it is ambiguous, or merely similar.
    Loosely,
    /// Equal up to surrounding white space and a diff marker, once in the change or once near the claimed line.
    Exactly,
}
