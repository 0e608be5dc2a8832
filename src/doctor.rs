//! Checks that the gate works here: its requirements are met, every backend of the policy can be
//! asked, and a change with a known bug is blocked while a clean one passes.
//!
//! The exit code follows from the results. Keys are reported as present or missing, and never
//! printed.

mod backends;
mod canary;
mod context;
mod health;
mod place;

use crate::ai::ask::Failure;
use crate::env::Env;
use crate::error::ExitStatus;
use crate::git::Repo;
use crate::policy::Policy;
pub use health::health;
use std::fmt;
use std::path::{Path, PathBuf};

/// The setup to check.
#[derive(Clone, Copy, Debug)]
pub struct Patient<'a> {
    pub env: &'a Env,
    /// Folder from which the checks start.
    pub dir: &'a Path,
    /// `None` outside a repository.
    pub repo: Option<&'a Repo>,
    pub policy: &'a Policy,
    /// Names of the policy files, for display.
    pub policy_files: &'a str,
    /// Settings that were rejected when the policy was loaded.
    pub policy_notes: &'a [String],
    /// Policy file from the command line.
    pub config: Option<&'a PathBuf>,
    /// Backends for this run; empty to use those of the policy.
    pub backends: &'a [String],
    /// Open no socket.
    pub offline: bool,
    /// Ask every backend to review a small change.
    pub probe: bool,
}

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckState {
    Good,
    /// Information only.
    Told,
    /// Probably a mistake, but the gate works.
    Doubtful,
    /// The gate does not work as intended.
    Bad,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorCheck {
    /// Name such as `key` or `model`.
    pub name: &'static str,
    pub state: CheckState,
    /// May contain untrusted text.
    pub text: String,
    /// How to fix the problem.
    pub hint: Option<String>,
}

/// Related checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckSection {
    /// Title such as `policy` or `backend claude`.
    pub title: String,
    pub checks: Vec<DoctorCheck>,
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub sections: Vec<CheckSection>,
}

impl CheckState {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Told => "note",
            Self::Doubtful => "warning",
            Self::Bad => "problem",
        }
    }
}

impl DoctorCheck {
    fn new(name: &'static str, state: CheckState, text: impl fmt::Display) -> Self {
        Self {
            name,
            state,
            text: text.to_string(),
            hint: None,
        }
    }

    fn good(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, CheckState::Good, text)
    }

    fn told(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, CheckState::Told, text)
    }

    fn bad(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, CheckState::Bad, text)
    }

    fn failed(name: &'static str, failure: &Failure) -> Self {
        Self {
            hint: failure.hint.clone(),
            ..Self::bad(name, &failure.message)
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl CheckSection {
    fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            checks: Vec::new(),
        }
    }
}

impl Diagnosis {
    /// Returns the number of problems that keep the gate from working.
    pub fn problems(&self) -> usize {
        self.sections
            .iter()
            .flat_map(|s| &s.checks)
            .filter(|c| c.state == CheckState::Bad)
            .count()
    }

    /// Returns the exit code.
    pub fn exit(&self) -> ExitStatus {
        if self.problems() == 0 {
            ExitStatus::Pass
        } else {
            ExitStatus::Incomplete
        }
    }
}

/// Runs all checks.
pub fn examine(patient: &Patient<'_>) -> Diagnosis {
    let mut sections = vec![place::tools(patient), place::policy(patient)];
    sections.extend(backends::examine(patient));
    sections.extend(context::examine(patient));
    sections.push(canary::examine(patient));
    if patient.probe && !patient.offline {
        sections.extend(canary::probe(patient));
    }
    Diagnosis { sections }
}
