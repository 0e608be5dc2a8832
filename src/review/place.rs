//! The location of a repository's stored reviews.

use super::waiving::actor;
use crate::env::Env;
use crate::git::Repo;
use crate::policy::{HistoryPolicy, Policy};
use crate::request::ReviewRequest;
use std::path::PathBuf;

/// The location of a store, which need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocation {
    /// The reviewed worktree, or the folder that the request names instead.
    pub top: PathBuf,
    pub history: HistoryPolicy,
    /// Rounds that a session may have, at most.
    pub max_rounds: u32,
    /// The user who runs the program, from the environment.
    pub actor: String,
    /// The checked-out commit; `None` before the first commit.
    pub head: Option<String>,
    /// The checked-out branch, such as `main`; `None` if HEAD is detached.
    pub branch: Option<String>,
    pub remotes: Vec<Remote>,
}

/// The name of a remote and its addresses.
pub type Remote = (String, Vec<String>);

/// Returns the remotes of a repository.
pub fn remotes(repo: &Repo) -> Vec<Remote> {
    repo.remotes()
        .into_iter()
        .map(|name| (name.clone(), repo.remote_urls(&name)))
        .collect()
}

impl StoreLocation {
    /// Returns the location of a repository's store; `None` if it has no worktree.
    pub(super) fn of(
        repo: &Repo,
        policy: &Policy,
        request: &ReviewRequest,
        env: &Env,
    ) -> Option<Self> {
        Some(Self {
            top: request.store_of.as_deref().or(repo.worktree())?.to_owned(),
            history: policy.history.clone(),
            max_rounds: policy.review.max_rounds,
            actor: actor(env, Some(repo)),
            head: repo.head().ok().flatten().map(|id| id.to_string()),
            branch: repo.checked_out_branch().ok().flatten(),
            remotes: remotes(repo),
        })
    }

    /// Returns the folder of the store.
    pub fn folder(&self) -> PathBuf {
        self.top.join(&self.history.path)
    }
}
