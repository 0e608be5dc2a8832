//! Asks the Claude Code command line.

use crate::ai::ask::{Answer, Ask, Cause, Failure};
use crate::ai::tree::Tree;
use crate::env::Env;
use crate::policy;
use crate::stop::Stop;
use std::path::Path;
use std::time::Instant;

/// The program, found and ready.
#[derive(Debug)]
pub(super) struct Claude {
    model: Option<String>,
}

impl Claude {
    pub(super) fn open(policy: &policy::Backend, _env: &Env, _repo_top: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self { model: policy.model.clone() })
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    pub(super) fn endpoint(&self) -> String {
        "claude".to_owned()
    }

    pub(super) fn capacity(&self) -> usize {
        400_000
    }

    pub(super) async fn ready(&self, _deadline: Instant, _stop: &Stop) -> Result<&str, Failure> {
        Ok(self.model().unwrap_or_default())
    }

    pub(super) async fn ask(&self, _ask: &Ask<'_>, _around: Option<&Tree<'_>>) -> Result<Answer, Failure> {
        Err(Failure::new(Cause::Setup, "the command line cannot be asked yet"))
    }

    pub(super) async fn models(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}
