//! From candidates to findings: what several looks found is merged, and what supports it decides how far it is
//! believed.

use super::Candidate;
use crate::finding::{Evidence, Finding};
use crate::rules::RuleSet;

/// Findings, and what has to be said about them.
#[derive(Debug, Default)]
pub struct Sealed {
    pub findings: Vec<Finding>,
    /// Claims that say what a rule found already.
    pub echoes: Vec<Echo>,
    /// Foreign text; the file that it is about.
    pub notes: Vec<(Option<crate::finding::Location>, String)>,
}

/// A claim that repeats a rule's finding, and is not reported on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Position of the rule's finding.
    pub rule: usize,
    /// [`Evidence::Backend`].
    pub evidence: Evidence,
    /// What the model called it. Foreign text.
    pub title: String,
}

/// Makes findings of candidates. `found` is what the rules found in the same change.
pub fn seal(candidates: Vec<Candidate>, found: &[Finding], rules: &RuleSet) -> Sealed {
    let _ = (candidates, found, rules);
    Sealed::default()
}
