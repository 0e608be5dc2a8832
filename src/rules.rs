//! The built-in reviewer: the change in, proven findings out. No network, no other program.

pub mod format;
pub(crate) mod secret;

use crate::diff::FileChange;
use crate::error::Result;
use crate::finding::Finding;
use crate::policy::RulesPolicy;

/// The rules of one run: the built-in catalogue and the team's own, less what policy disables.
#[derive(Debug)]
pub struct RuleSet {}

/// Which rules look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Only those that find exposed secrets: for the commits inside a branch.
    Secrets,
}

impl RuleSet {
    /// Makes the rule set. `team` holds the team's own rule files: name and content.
    pub fn new(_policy: &RulesPolicy, _team: &[(String, String)]) -> Result<Self> {
        todo!()
    }
    /// Looks at one changed file. Linear in its added bytes.
    pub fn scan(&self, _file: &FileChange, _scope: Scope, _out: &mut Vec<Finding>) {
        todo!()
    }
    /// Looks at what only the whole change shows. `files` holds every entry, without content.
    pub fn scan_change(&self, _change: &crate::git::Change, _out: &mut Vec<Finding>) {
        todo!()
    }
    /// Returns the hash over every rule that is active: 16 hexadecimal digits.
    pub fn hash(&self) -> &str {
        todo!()
    }
}
