//! Where reviews of a repository are stored, and what policy says of that.

use super::governing;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::{HistoryPolicy, Policy};
use crate::request::{Authority, ReviewRequest, Source};
use std::path::PathBuf;

/// The place of a store. Nothing of it need exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The worktree that is reviewed, or the one that the request names for it.
    pub top: PathBuf,
    pub history: HistoryPolicy,
    /// Rounds that a session may have.
    pub max_rounds: u32,
    /// Who runs the program, as far as the environment tells.
    pub actor: String,
    /// The commit that is checked out; `None` before the first.
    pub head: Option<String>,
    /// The branch that is checked out, such as `main`; `None` if HEAD is detached.
    pub branch: Option<String>,
    pub remotes: Vec<Remote>,
}

/// The name of a remote and its addresses.
pub type Remote = (String, Vec<String>);

/// Returns the remotes of a repository.
pub fn remotes(repo: &Repo) -> Vec<Remote> {
    repo.remotes().into_iter().map(|name| (name.clone(), repo.remote_urls(&name))).collect()
}

impl Place {
    /// Names the place of a repository's store; `None` where there is no worktree.
    pub(super) fn of(repo: &Repo, policy: &Policy, request: &ReviewRequest, env: &Env) -> Option<Self> {
        Some(Self {
            top: request.store_of.as_deref().or(repo.worktree())?.to_owned(),
            history: policy.history.clone(),
            max_rounds: policy.review.max_rounds,
            actor: super::actor(env, Some(repo)),
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

/// Finds the place before anything is reviewed, with the policy that rules there.
///
/// In gate mode, where the base is not known before the source is, HEAD's policy says where stored reviews are.
///
/// # Errors
///
/// Usage: no repository, no worktree, a malformed policy.
pub fn place(request: &ReviewRequest, env: &Env) -> Result<(Place, Policy)> {
    let repo = Repo::open(&request.dir, env)?;
    let authority = match request.authority {
        Authority::Worktree => Authority::Worktree,
        Authority::Head | Authority::Base => Authority::Head,
    };
    let request = ReviewRequest { authority, source: Source::Auto, ..request.clone() };
    let policy = governing::policy_alone(&request, env, &repo)?;
    let place = Place::of(&repo, &policy, &request, env).ok_or_else(|| {
        let error = Error::usage(format!("{} has no worktree", request.dir.display()));
        error.hint("reviews are stored in a worktree; run this in a clone that has one")
    })?;
    Ok((place, policy))
}
