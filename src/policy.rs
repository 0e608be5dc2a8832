//! `.claude-reviewer.toml`: typed values, each with its origin.

use crate::diff::RepoPath;
use crate::finding::{Confidence, Severity};
use crate::request::{Depth, OnIncomplete};
use std::time::Duration;

/// The effective policy of one run.
#[derive(Clone, Debug)]
pub struct Policy {
    pub ignore: Vec<String>,
    pub block_on: Vec<Severity>,
    pub warn_on: Vec<Severity>,
    pub min_confidence: Confidence,
    pub on_incomplete: OnIncomplete,
    pub on_truncated: OnIncomplete,
    pub review: ReviewPolicy,
    pub rules: RulesPolicy,
    pub hooks: HooksPolicy,
    // … `policy` completes this with every table of the file, and origins
}

/// `[review]`.
#[derive(Clone, Debug)]
pub struct ReviewPolicy {
    pub backends: Vec<String>,
    pub depth: Depth,
    pub timeout: Duration,
    pub jobs: u32,
}

/// `[rules]`.
#[derive(Clone, Debug, Default)]
pub struct RulesPolicy {
    pub disable: Vec<String>,
    pub severity: Vec<(String, Severity)>,
    pub paths: Vec<String>,
}

/// `[hooks]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HooksPolicy {
    pub pre_commit: HookMode,
    pub pre_push: HookMode,
}

/// What a hook does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMode {
    Rules,
    Full,
    Off,
}

/// What decides about a finding in one path: the policy's thresholds after every `[[path]]` that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thresholds {
    pub block_on: Vec<Severity>,
    pub warn_on: Vec<Severity>,
    pub min_confidence: Confidence,
}

impl Policy {
    /// Tells whether a path is left out of the review.
    pub fn ignores(&self, _path: &RepoPath) -> bool {
        todo!()
    }
    /// Returns the thresholds for a path; for a whole-change finding (`None`) the top level's.
    pub fn thresholds(&self, _path: Option<&RepoPath>) -> Thresholds {
        Thresholds {
            block_on: self.block_on.clone(),
            warn_on: self.warn_on.clone(),
            min_confidence: self.min_confidence,
        }
    }
}
