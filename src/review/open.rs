//! The first stage of a review: opens the repository, once for all later stages.

use super::StoreLocation;
use super::governing::CheckoutPolicy;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::Policy;
use crate::request::{Authority, ReviewRequest, Source};
use std::sync::Arc;

/// The repository of a request, opened once for a run.
#[derive(Debug)]
pub struct Opened {
    /// `None` only for patches and files outside a repository.
    pub(super) repo: Option<Arc<Repo>>,
    /// The policy of the checkout, if it was loaded to find the store before the review.
    pub(super) checkout: Option<CheckoutPolicy>,
}

impl Opened {
    /// Opens the repository around the folder of a request.
    ///
    /// # Errors
    ///
    /// Usage: no repository, unless the source is a patch or files.
    pub fn new(request: &ReviewRequest, env: &Env) -> Result<Self> {
        let repo = match &request.source {
            Source::Patch(_) | Source::Code(_) => Repo::find(&request.dir, env)?,
            _ => Some(Repo::open(&request.dir, env)?),
        };
        Ok(Self {
            repo: repo.map(Arc::new),
            checkout: None,
        })
    }

    /// Opens the repository, and finds its stored reviews with the policy that applies there.
    ///
    /// In gate mode, the base is not known before the source is resolved, so the policy of HEAD
    /// names the folder of stored reviews.
    ///
    /// # Errors
    ///
    /// Usage: no repository, no worktree, a malformed policy.
    pub fn with_store(
        request: &ReviewRequest,
        env: &Env,
    ) -> Result<(Self, Arc<Repo>, StoreLocation)> {
        let (repo, checkout, place) = located(request, env)?;
        let repo = Arc::new(repo);
        let opened = Self {
            repo: Some(Arc::clone(&repo)),
            checkout: Some(checkout),
        };
        Ok((opened, repo, place))
    }
}

/// Finds the location of stored reviews, with the policy that applies there.
///
/// # Errors
///
/// As [`Opened::with_store`].
pub fn store_location(request: &ReviewRequest, env: &Env) -> Result<(StoreLocation, Policy)> {
    let (_, checkout, place) = located(request, env)?;
    Ok((place, checkout.into_policy()))
}

/// Opens the repository, and finds its stored reviews with the policy of the checkout.
fn located(request: &ReviewRequest, env: &Env) -> Result<(Repo, CheckoutPolicy, StoreLocation)> {
    let repo = Repo::open(&request.dir, env)?;
    let authority = match request.authority {
        Authority::Worktree => Authority::Worktree,
        Authority::Head | Authority::Base => Authority::Head,
    };
    let at_checkout = ReviewRequest {
        authority,
        source: Source::Auto,
        ..request.clone()
    };
    let checkout = CheckoutPolicy::load(&at_checkout, env, Some(&repo))?;
    let place = StoreLocation::of(&repo, checkout.policy(), &at_checkout, env);
    let place = place.ok_or_else(|| {
        let error = Error::usage(format!("{} has no worktree", request.dir.display()));
        error.hint("reviews are stored in a worktree; run this in a clone that has one")
    })?;
    Ok((repo, checkout, place))
}
