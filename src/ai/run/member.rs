//! The participant that answers: a backend, a script or the agent of the author.

use super::{ReviewJob, Script};
use crate::ai::agent::{self, Agent};
use crate::ai::ask::{Ask, Cause, Failure, ModelAnswer, Prompt, Schema};
use crate::ai::backend::{Backend, Pool};
use crate::ai::cache::{CachedQuestion, ReplyKey};
use crate::ai::price;
use crate::ai::tree::Tree;
use crate::git::Repo;
use crate::policy::{Effort, Policy, Price};
use crate::request::Depth;
use std::cell::OnceCell;
use std::time::Instant;

/// A participant that answers questions.
pub(super) enum Member<'a> {
    Backend {
        backend: Box<Backend>,
        /// Configured model, known before the first request; empty for the backend's default.
        model: String,
        /// Configured effort; empty for the model's default.
        effort: &'static str,
        /// Listed price of the model, set when the model is known.
        listed: OnceCell<Option<Price>>,
        /// Price in batches as a share of the ordinary one; `None` if requests are sent at once.
        share: Option<f64>,
        /// Price in batches, set when the ordinary one is known.
        batched: OnceCell<Price>,
        /// Number of backends that are tried after this one.
        followers: usize,
    },
    Script {
        name: String,
        script: &'a Script,
    },
    /// The agent of the author.
    Agent(&'a Agent),
}

impl<'a> Member<'a> {
    /// Opens a backend of the policy.
    pub(super) fn open(name: &str, job: &ReviewJob<'a>, pool: &Pool) -> Result<Self, Failure> {
        if let Some(script) = job.script {
            return Ok(Self::Script {
                name: name.to_owned(),
                script,
            });
        }
        let Some(policy) = job.policy.backend(name) else {
            return Err(Failure::new(Cause::Setup, "no such backend"));
        };
        let top = job.repo.and_then(Repo::worktree);
        let backend = Box::new(Backend::open(policy, job.env, top, pool)?);
        let model = backend.model().unwrap_or_default().to_owned();
        let effort = policy.effort.map_or("", Effort::name);
        let kind = backend.kind();
        Ok(Self::Backend {
            backend,
            model,
            effort,
            listed: OnceCell::new(),
            share: job.is_batch.then(|| price::batch_share(kind)).flatten(),
            batched: OnceCell::new(),
            followers: 0,
        })
    }

    /// Sets the number of backends that are tried after this one.
    pub(super) fn precede(&mut self, count: usize) {
        if let Self::Backend { followers, .. } = self {
            *followers = count;
        }
    }

    /// Returns the time until which a rate-limited request is retried: the share of this backend in
    /// the remaining time.
    pub(super) fn patience(&self, deadline: Instant) -> Instant {
        let Self::Backend { followers, .. } = self else {
            return deadline;
        };
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now)
            / u32::try_from(followers + 1).unwrap_or(u32::MAX);
        now.checked_add(share).unwrap_or(deadline).min(deadline)
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Backend { backend, .. } => backend.name(),
            Self::Script { name, .. } => name,
            Self::Agent(_) => agent::NAME,
        }
    }

    /// Returns true for a backend of the policy, and false for the agent of the author or a script.
    pub(super) fn is_backend(&self) -> bool {
        matches!(self, Self::Backend { .. })
    }

    /// Returns true for the agent of the author: a question without an answer is open, not failed.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self, Self::Agent(_))
    }

    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Backend { backend, .. } => backend.capacity(),
            Self::Script { .. } => 100_000,
            Self::Agent(_) => agent::CAPACITY,
        }
    }

    /// Returns the maximum number of requests for one question. `looks_around` is true if it may
    /// use tools.
    pub(super) fn most_requests(&self, looks_around: bool) -> u32 {
        match self {
            Self::Backend { backend, .. } => backend.most_requests(looks_around),
            Self::Script { .. } | Self::Agent(_) => 1,
        }
    }

    /// Returns the price per token: the ordinary one, or that of batches if requests are sent in
    /// batches.
    pub(super) fn price<'m>(&'m self, policy: &'m Policy) -> Option<&'m Price> {
        let ordinary = self.ordinary_price(policy)?;
        let Self::Backend {
            share: Some(share),
            batched,
            ..
        } = self
        else {
            return Some(ordinary);
        };
        Some(batched.get_or_init(|| Price {
            input: ordinary.input * share,
            cached: ordinary.cached * share,
            output: ordinary.output * share,
        }))
    }

    /// Returns the ordinary price per token: from the policy, or from the list of known prices for
    /// the model.
    fn ordinary_price<'m>(&'m self, policy: &'m Policy) -> Option<&'m Price> {
        let Self::Backend {
            backend, listed, ..
        } = self
        else {
            return None;
        };
        if let Some(price) = policy
            .backend(backend.name())
            .and_then(|b| b.price.as_ref())
        {
            return Some(price);
        }
        let model = backend.model().filter(|_| backend.is_own())?;
        listed
            .get_or_init(|| price::listed(backend.kind(), model).map(|l| l.price))
            .as_ref()
    }

    /// Returns the cache key of an answer.
    pub(super) fn key(
        &self,
        prompt: &Prompt,
        schema: &Schema,
        depth: Depth,
        has_tools: bool,
    ) -> Option<ReplyKey> {
        let Self::Backend {
            backend,
            model,
            effort,
            ..
        } = self
        else {
            return None;
        };
        Some(ReplyKey::of(&CachedQuestion {
            prompt,
            schema,
            kind: backend.kind().name(),
            endpoint: &backend.endpoint(),
            model,
            effort,
            depth,
            has_tools,
        }))
    }

    pub(super) async fn ask(
        &self,
        ask: &Ask<'_>,
        around: Option<&Tree<'_>>,
    ) -> Result<ModelAnswer, Failure> {
        match self {
            Self::Backend { backend, .. } => backend.ask(ask, around).await,
            Self::Agent(agent) => agent.answer(ask),
            Self::Script { script, .. } => {
                let reply = if ask.schema.name == "review" {
                    &script.review
                } else {
                    &script.verdict
                };
                let text = reply.replace("NONCE", ask.prompt.nonce.as_str());
                Ok(ModelAnswer {
                    text,
                    read: script.read.clone(),
                    model: "script".to_owned(),
                    ..ModelAnswer::default()
                })
            }
        }
    }
}
