//! Looks whether the gate works here: what it needs is there, every backend that policy names can be asked, and a
//! change with a known bug is stopped while a clean one passes.
//!
//! Says what it finds; the exit code follows from that. Keys are told to be there or not, never shown.

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

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Patient<'a> {
    pub env: &'a Env,
    /// The folder to look from.
    pub dir: &'a Path,
    /// `None`: there is no repository around.
    pub repo: Option<&'a Repo>,
    pub policy: &'a Policy,
    /// Which files the policy was made of, for people.
    pub policy_files: &'a str,
    /// What was refused while the policy was made.
    pub policy_notes: &'a [String],
    /// A policy file named on the command line.
    pub config: Option<&'a PathBuf>,
    /// Backends named for this look; empty: as policy says.
    pub backends: &'a [String],
    /// No socket is opened.
    pub offline: bool,
    /// Every backend is asked to review a small change.
    pub probe: bool,
}

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Good,
    /// Neither good nor bad.
    Told,
    /// Likely a mistake; the gate works all the same.
    Doubtful,
    /// The gate does not work as it was meant to.
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `key`, `model`.
    pub name: &'static str,
    pub state: State,
    /// May hold foreign text.
    pub text: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Things that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// `policy`, `backend claude`.
    pub title: String,
    pub checks: Vec<Check>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    pub sections: Vec<Section>,
}

impl State {
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

impl Check {
    fn new(name: &'static str, state: State, text: impl fmt::Display) -> Self {
        Self { name, state, text: text.to_string(), hint: None }
    }

    fn good(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, State::Good, text)
    }

    fn told(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, State::Told, text)
    }

    fn bad(name: &'static str, text: impl fmt::Display) -> Self {
        Self::new(name, State::Bad, text)
    }

    fn failed(name: &'static str, failure: &Failure) -> Self {
        Self { hint: failure.hint.clone(), ..Self::bad(name, &failure.message) }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Section {
    fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), checks: Vec::new() }
    }
}

impl Diagnosis {
    /// Counts what keeps the gate from working.
    pub fn problems(&self) -> usize {
        self.sections.iter().flat_map(|s| &s.checks).filter(|c| c.state == State::Bad).count()
    }

    /// Returns how the program ends.
    pub fn exit(&self) -> ExitStatus {
        if self.problems() == 0 { ExitStatus::Pass } else { ExitStatus::Incomplete }
    }
}

/// Looks at everything.
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
