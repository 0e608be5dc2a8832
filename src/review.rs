//! The path that every review takes: the change, policy, rules, verdict.

use crate::diff::{LineNo, RepoPath};
use crate::error::{ExitStatus, Result};
use crate::finding::Finding;
use crate::request::ReviewRequest;
use crate::verdict::{Coverage, Outcome, Verdict};
use std::time::Duration;

/// A finished review: what reports, history and MCP show.
#[derive(Debug)]
pub struct Review {
    pub source: SourceInfo,
    pub outcome: Outcome,
    pub verdict: Verdict,
    pub exit: ExitStatus,
    /// In the order of [`crate::finding::arrange`], suppressed and waived ones included.
    pub findings: Vec<Finding>,
    pub notes: Vec<Note>,
    pub coverage: Coverage,
    pub policy: PolicyInfo,
    pub rules_hash: String,
    /// No backend was configured: the rules alone reviewed.
    pub rules_only: bool,
    pub timestamp: jiff::Timestamp,
    pub duration: Duration,
}

/// What was reviewed, in the words of reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// `staged`, `unstaged`, `changes`, `commit`, `branch`, `patch`, `code`.
    pub kind: &'static str,
    /// Full object ids, where there are some.
    pub base: Option<String>,
    pub head: Option<String>,
    pub tree: Option<String>,
    /// For people: `commit 1a2b3c4d5e6f`, `branch HEAD against origin/main`, `3 commits of a..b`.
    pub label: String,
}

/// Where the governing policy came from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyInfo {
    /// `worktree`, `head`, `base@<id>`, `user`, `flag`, `default`.
    pub origin: String,
    /// Over the effective policy: 16 hexadecimal digits.
    pub hash: String,
}

/// Something worth saying that is no finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub file: Option<RepoPath>,
    pub line: Option<LineNo>,
    pub text: String,
    /// `rules`, `policy`, `git`, or a backend's name.
    pub origin: String,
}

/// Reviews what is asked for.
pub fn run(_request: &ReviewRequest) -> Result<Review> {
    todo!()
}
