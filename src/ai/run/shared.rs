//! Uses the caches in a run: the user's own first, then the one that machines share.

use super::ReviewSession;
use super::answer::{Admission, AnswerToKeep, NoAnswer, ParsedAnswer, Query, ReplyParser};
use crate::ai::ask::{LookupSubject, Nonce};
use crate::ai::cache::{KeptReply, ReplyKey};
use crate::ai::shared::{HeldLease, SharedCache, Turn};
use crate::ai::tree::Tree;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Share of the remaining time of a run that it waits for the answer of another run.
const SHARE: u32 = 4;
/// Time that a run waits for one answer of another run, at most.
const LONGEST: Duration = Duration::from_secs(300);

impl<'a> ReviewSession<'a> {
    /// Returns the answer to a question from a cache. The keys are in order of preference.
    pub(super) async fn cached_answer<T>(
        &self,
        keys: &[ReplyKey],
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let nonce = &query.prompt.nonce;
        if let Some(cache) = &self.cache {
            for key in keys {
                if let Some(kept) = cache.get(key, nonce)
                    && let Some(answer) = self.accepted(kept, nonce, query.around, parse).await
                {
                    return Some(answer);
                }
            }
        }
        for key in keys {
            if let Some(answer) = self.shared_answer(key, query, parse).await {
                return Some(answer);
            }
        }
        None
    }

    /// Returns the answer to a question from the shared cache, and keeps it in the user's own.
    async fn shared_answer<T>(
        &self,
        key: &ReplyKey,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let kept = self.shared.as_ref()?.get(key, &query.prompt.nonce).await?;
        self.taken_over(key, kept, query, parse).await
    }

    /// Accepts an answer of the shared cache, and keeps it in the user's own.
    async fn taken_over<T>(
        &self,
        key: &ReplyKey,
        kept: KeptReply,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let nonce = &query.prompt.nonce;
        let answer = self
            .accepted(kept.clone(), nonce, query.around, parse)
            .await?;
        if let Some(cache) = &self.cache {
            cache.put(key, nonce, &kept);
        }
        Some(answer)
    }

    /// Parses a cached answer. Returns `None` if it is invalid, or rests on another state of the
    /// tree.
    async fn accepted<T>(
        &self,
        kept: KeptReply,
        nonce: &Nonce,
        around: Option<&Tree<'a>>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let value = parse(&kept.text, nonce).ok()?;
        self.still_holds(&kept, around)
            .await
            .then_some(ParsedAnswer {
                value,
                model: kept.model,
                read: kept.read,
                cached: true,
                keep: None,
            })
    }

    /// Waits until this run may send a request, and takes the lease of the question. While another
    /// run asks, its answer is awaited without a place among the requests of this run.
    pub(super) async fn admitted<'s, T>(
        &self,
        permits: &'s Semaphore,
        key: Option<ReplyKey>,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Admission<'s, T> {
        let mut may_wait = true;
        loop {
            // `acquire` cannot fail, because the semaphore is never closed.
            let permit = permits.acquire().await.ok();
            let (Some(shared), Some(key)) = (&self.shared, key) else {
                return Admission::Ask(permit, None);
            };
            match shared.turn(&key, may_wait).await {
                Turn::Ours(None) => return Admission::Ask(permit, None),
                Turn::Ours(Some(lease)) => {
                    // The last holder may have stored its answer after the first look.
                    let Some(answer) = self.shared_answer(&key, query, parse).await else {
                        return Admission::Ask(permit, Some(lease));
                    };
                    shared.release(lease).await;
                    return Admission::Answered(answer);
                }
                Turn::Theirs => drop(permit),
            }
            let kept = shared.wait(&key, &query.prompt.nonce, self.latest()).await;
            if let Some(kept) = kept
                && let Some(answer) = self.taken_over(&key, kept, query, parse).await
            {
                return Admission::Answered(answer);
            }
            may_wait = false;
        }
    }

    /// Returns the time up to which this run waits for the answer of another.
    fn latest(&self) -> Instant {
        let left = self.job.deadline.saturating_duration_since(Instant::now());
        Instant::now() + (left / SHARE).min(LONGEST)
    }

    /// Runs a request, and renews the lease of its question meanwhile.
    pub(super) async fn with_lease<T>(
        &self,
        lease: Option<HeldLease>,
        request: impl Future<Output = Result<T, NoAnswer>>,
    ) -> Result<T, NoAnswer> {
        let (Some(shared), Some(lease)) = (&self.shared, lease) else {
            return request.await;
        };
        tokio::select! {
            answer = request => answer,
            never = shared.renew(lease) => match never {},
        }
    }

    /// Gives the lease of a question back that has no answer to store.
    pub(super) async fn release(&self, lease: Option<HeldLease>) {
        if let (Some(shared), Some(lease)) = (&self.shared, lease) {
            shared.release(lease).await;
        }
    }

    /// Stores an answer: in the user's own cache, and in the shared one if the policy says so.
    pub(super) async fn store(&self, keep: Option<AnswerToKeep>) {
        let Some(AnswerToKeep { key, kept, lease }) = keep else {
            return;
        };
        if let Some(cache) = &self.cache {
            cache.put(&key, &self.nonce, &kept);
        }
        if let Some(shared) = &self.shared
            && !self.has_secret(&kept)
        {
            shared.put(&key, &self.nonce, &kept).await;
        }
        self.release(lease).await;
    }

    /// Returns true if a text of an answer has something that the search for secrets masks. Models
    /// see redacted text only, so that is a model's own invention, or a secret that only its reply
    /// makes recognizable. Other machines must not get it.
    fn has_secret(&self, kept: &KeptReply) -> bool {
        let rules = self.job.rules;
        let arguments = kept.lookups.iter().filter_map(|l| match &l.subject {
            LookupSubject::Call { arguments, .. } => Some(arguments.to_string()),
            LookupSubject::File(_) | LookupSubject::Tree => None,
        });
        std::iter::once(kept.text.clone())
            .chain(arguments)
            .any(|text| rules.masked(&text) != text)
    }

    /// Opens the shared cache, if the policy has one and answers may come from caches. Returns it,
    /// or the note that says why it cannot be used.
    pub(super) fn open_shared(&self) -> Result<Option<SharedCache<'a>>, String> {
        let job = self.job;
        if !job.may_use_caches() {
            return Ok(None);
        }
        let top = job.repo.and_then(crate::git::Repo::worktree);
        SharedCache::open(&job.policy.cache, job.env, top, job.stop).transpose()
    }
}
