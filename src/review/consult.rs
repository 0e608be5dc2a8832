//! Asks a question about documents, under the policy of the folder that they are in, with the same
//! backends, limits, keys and cache as a review.

use super::interrupt::with_signal_handler;
use super::{Opened, World, governing, source};
use crate::ai::run::{Consulted, Question, ReviewJob, WorktreeAccess, consult};
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::Policy;
use crate::request::{ReviewRequest, Source};
use crate::rules::RuleSet;
use std::sync::Arc;
use std::time::Instant;

/// The policy for a question, with the rules that find secrets in its documents.
#[derive(Debug)]
pub struct Consultation {
    request: ReviewRequest,
    repo: Option<Arc<Repo>>,
    policy: Policy,
    rules: RuleSet,
}

impl Consultation {
    /// Loads the policy for a request; ignores its source.
    ///
    /// # Errors
    ///
    /// Usage: a malformed policy, an unknown backend, a repository that cannot be opened.
    pub fn open(request: &ReviewRequest, world: &World<'_>) -> Result<Self> {
        let request = ReviewRequest {
            source: Source::Code(Vec::new()),
            ..request.clone()
        };
        let opened = Opened::new(&request, world.env)?;
        let resolved = source::resolve(opened.repo, &request, world)?;
        let governing = governing::govern(None, &request, world.env, &resolved)?;
        let rules = RuleSet::new(&governing.policy.rules, &governing.team_rules)?;
        governing::refuse_unknown_backends(&request, &governing.policy)?;
        Ok(Self {
            request,
            repo: resolved.repo,
            policy: governing.policy,
            rules,
        })
    }

    /// Returns the rules that redact documents.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Returns the policy that applies.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the repository around the folder, if there is one.
    pub fn repo(&self) -> Option<&Repo> {
        self.repo.as_deref()
    }

    /// Returns the names of the backends that a question goes to, in order.
    pub fn backends(&self) -> &[String] {
        match (self.request.offline, self.request.backends.is_empty()) {
            (true, _) => &[],
            (false, true) => &self.policy.review.backends,
            (false, false) => &self.request.backends,
        }
    }

    /// Asks the backends; `None` if there is no backend.
    ///
    /// # Errors
    ///
    /// Incomplete: a thread or a runtime cannot be started.
    pub fn ask<T: Send>(
        &self,
        question: &Question<T>,
        world: &World<'_>,
    ) -> Result<Option<Consulted<T>>> {
        self.ask_around(question, None, world)
    }

    /// Asks like [`Self::ask`]. `around` is the code that the model may read in addition to the
    /// documents, and whether it may edit it.
    ///
    /// # Errors
    ///
    /// Same as [`Self::ask`].
    pub fn ask_around<T: Send>(
        &self,
        question: &Question<T>,
        around: Option<&WorktreeAccess>,
        world: &World<'_>,
    ) -> Result<Option<Consulted<T>>> {
        if self.backends().is_empty() {
            return Ok(None);
        }
        let deadline = Instant::now() + self.policy.review.timeout;
        let job = ReviewJob {
            repo: self.repo.as_deref(),
            policy: &self.policy,
            rules: &self.rules,
            env: world.env,
            progress: world.progress,
            stop: world.stop,
            backends: self.backends(),
            cache: self.request.cache,
            is_audit: false,
            max_tokens: self.request.overrides.max_tokens,
            deadline,
            script: None,
            may_run_tests: false,
            agent: None,
            prompts: None,
            symbols: &Arc::default(),
            is_batch: false,
            audit: None,
        };
        let work = || on_own_thread(&job, question, around);
        with_signal_handler(world.stop, work).map(Some)
    }
}

/// Asks the backends on another thread, because the caller's may belong to a runtime.
fn on_own_thread<T: Send>(
    job: &ReviewJob<'_>,
    question: &Question<T>,
    around: Option<&WorktreeAccess>,
) -> Result<Consulted<T>> {
    std::thread::scope(|s| {
        let asking = s.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|e| Error::incomplete("no model was asked").caused_by(&e))?;
            let consulted = runtime.block_on(consult(job, question, around));
            runtime.shutdown_background();
            Ok(consulted)
        });
        asking
            .join()
            .unwrap_or_else(|_| Err(Error::incomplete("an internal error ended the question")))
    })
}
