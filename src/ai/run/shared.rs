//! Uses the caches in a run: the user's own first, then the one that machines share.

use super::ReviewSession;
use super::answer::{Admission, AnswerToKeep, NoAnswer, ParsedAnswer, Query, ReplyParser};
use crate::ai::ask::{LookupSubject, Nonce};
use crate::ai::cache::{Cache, KeptReply, LocalReply, ReplyKey};
use crate::ai::reply;
use crate::ai::shared::{HeldLease, SharedCache, SharedReply, Turn, WaitLimits};
use crate::ai::tree::Tree;
use crate::diff::RepoPath;
use crate::rules::RuleSet;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Share of its remaining time that a run waits for one answer of another run, and share of its
/// whole time that it waits for all of them.
const SHARE: u32 = 4;
/// Time that a run waits for answers of other runs, at most.
const LONGEST: Duration = Duration::from_secs(300);

impl<'a> ReviewSession<'a> {
    /// Returns the answer to a question from the journal of the audit or a cache. The keys are in
    /// order of preference.
    pub(super) async fn cached_answer<T>(
        &self,
        keys: &[ReplyKey],
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let nonce = &query.prompt.nonce;
        if let Some(journal) = self.job.journal() {
            for key in keys {
                if let Some(kept) = journal.get(key, nonce)
                    && let Some(answer) = self.accepted(kept, nonce, query.around, parse).await
                {
                    return Some(answer);
                }
            }
        }
        if let Some(cache) = &self.cache {
            for key in keys {
                if let Some(kept) = self.local_answer(cache, key, nonce)
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

    /// Returns the answer in the user's cache. A copy of a shared answer counts by the policy of
    /// this run only, and not at all without a shared cache.
    fn local_answer(&self, cache: &Cache, key: &ReplyKey, nonce: &Nonce) -> Option<KeptReply> {
        match cache.find(key, nonce)? {
            LocalReply::Own(kept) => Some(kept),
            LocalReply::Copy(sealed) => self.shared.as_ref()?.open_copy(&sealed, key, nonce),
        }
    }

    /// Returns the answer to a question from the shared cache, and keeps it in the user's own.
    async fn shared_answer<T>(
        &self,
        key: &ReplyKey,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let shared = self.shared.as_ref()?;
        let reply = shared.get(key, &query.prompt.nonce).await?;
        self.taken_over(shared, key, reply, query, parse).await
    }

    /// Accepts an answer of the shared cache, and keeps its signed entry in the user's own.
    async fn taken_over<T>(
        &self,
        shared: &SharedCache<'a>,
        key: &ReplyKey,
        SharedReply { kept, sealed }: SharedReply,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Option<ParsedAnswer<T>> {
        let nonce = &query.prompt.nonce;
        let answer = self.accepted(kept, nonce, query.around, parse).await?;
        shared.accept();
        if let Some(cache) = &self.cache {
            cache.put_copy(key, &sealed);
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
        let mut has_waited = false;
        loop {
            // `acquire` cannot fail, because the semaphore is never closed.
            let permit = permits.acquire().await.ok();
            let (Some(shared), Some(key)) = (&self.shared, key) else {
                return Admission::Ask(permit, None);
            };
            let limits = self.wait_limits();
            let turn = shared.turn(&key, (!has_waited).then_some(limits));
            match turn.await {
                Turn::Ours(None) => return Admission::Ask(permit, None),
                Turn::Ours(Some(lease)) => {
                    // The last holder may have stored its answer after the first look.
                    let Some(answer) = self.shared_answer(&key, query, parse).await else {
                        return Admission::Ask(permit, Some(lease));
                    };
                    shared.release(lease);
                    return Admission::Answered(answer);
                }
                Turn::Theirs => drop(permit),
            }
            let reply = shared.wait(&key, &query.prompt.nonce, limits).await;
            if let Some(reply) = reply
                && let Some(answer) = self.taken_over(shared, &key, reply, query, parse).await
            {
                return Admission::Answered(answer);
            }
            has_waited = true;
        }
    }

    /// Returns how long this run may wait for the answers of others.
    fn wait_limits(&self) -> WaitLimits {
        let (now, deadline) = (Instant::now(), self.job.deadline);
        let left = deadline.saturating_duration_since(now);
        let whole = deadline.saturating_duration_since(self.began);
        WaitLimits {
            until: now + (left / SHARE).min(LONGEST),
            total: (whole / SHARE).min(LONGEST),
        }
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
    pub(super) fn release(&self, lease: Option<HeldLease>) {
        if let (Some(shared), Some(lease)) = (&self.shared, lease) {
            shared.release(lease);
        }
    }

    /// Stores an answer if it is complete. Otherwise gives the lease of its question back, so that
    /// other runs do not wait for an answer that does not come.
    pub(super) async fn store_if(&self, is_complete: bool, keep: Option<AnswerToKeep>) {
        match is_complete {
            true => self.store(keep).await,
            false => self.release(keep.and_then(|keep| keep.lease)),
        }
    }

    /// Stores an answer: in the journal of the audit, in the user's own cache, and in the shared
    /// one if the policy says so.
    pub(super) async fn store(&self, keep: Option<AnswerToKeep>) {
        let Some(AnswerToKeep {
            key,
            kept,
            lease,
            is_for_this_audit,
        }) = keep
        else {
            return;
        };
        if let Some(journal) = self.job.journal() {
            journal.put(&key, &self.nonce, &kept);
        }
        if let Some(cache) = self.cache.as_ref().filter(|_| !is_for_this_audit) {
            cache.put(&key, &self.nonce, &kept);
        }
        // The search for secrets takes time, which a run that only reads must not spend.
        if let Some(shared) = &self.shared
            && !is_for_this_audit
            && shared.stores_answers()
            && !has_secret(self.job.rules, &kept)
        {
            shared.put(&key, &self.nonce, &kept).await;
        }
        self.release(lease);
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

/// Returns true if a text of an answer has something that the search for secrets masks. Models see
/// redacted text only, so that is a model's own invention, or a secret that only its reply makes
/// recognizable. Other machines must not get it.
fn has_secret(rules: &RuleSet, kept: &KeptReply) -> bool {
    texts_of(kept)
        .iter()
        .any(|text| rules.masked(text) != *text)
}

/// Returns all texts of an answer: the reply as it is written and each of its strings without
/// escapes, the arguments of lookups in both forms, and the names of files.
fn texts_of(kept: &KeptReply) -> Vec<String> {
    let mut texts = vec![kept.text.clone(), kept.model.clone()];
    texts.extend(reply::texts(&kept.text));
    for lookup in &kept.lookups {
        match &lookup.subject {
            LookupSubject::Call { name, arguments } => {
                texts.extend([name.clone(), arguments.to_string()]);
                reply::add_strings(arguments, &mut texts);
            }
            LookupSubject::File(path) => texts.push(path_text(path)),
            LookupSubject::Tree => {}
        }
    }
    texts.extend(kept.read.iter().map(|read| path_text(&read.path)));
    texts
}

/// Returns the text of a path. Bytes that are not UTF-8 cannot be part of a secret.
fn path_text(path: &RepoPath) -> String {
    String::from_utf8_lossy(path.as_bytes()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::ask::{Lookup, Read};
    use crate::diff::LineNo;
    use crate::policy::RulesPolicy;
    use serde_json::json;

    /// Returns an answer with these lookups, which read the file.
    fn answer(subjects: Vec<LookupSubject>, file: &str) -> KeptReply {
        let line = LineNo::new(1).unwrap();
        let digest = [0; 32];
        KeptReply {
            text: "{}".to_owned(),
            read: vec![Read {
                path: file.into(),
                first: line,
                last: line,
            }],
            lookups: subjects
                .into_iter()
                .map(|subject| Lookup { subject, digest })
                .collect(),
            tree: None,
            model: "m-1".to_owned(),
        }
    }

    #[test]
    fn an_answer_that_names_a_file_with_a_secret_in_its_name_is_not_shared() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let secret = format!("keys/{}{}.txt", "AKIA", "Q3EGRNDLK5V2TW7A");
        let call = |path: &str| LookupSubject::Call {
            name: "read_file".to_owned(),
            arguments: json!({ "path": path }),
        };
        let plain = "src/main.rs";
        for (subject, file, expected) in [
            (call(plain), plain, false),
            (LookupSubject::File(plain.into()), plain, false),
            (LookupSubject::Tree, plain, false),
            (call(&secret), plain, true),
            (LookupSubject::File(secret.as_str().into()), plain, true),
            (LookupSubject::Tree, &secret, true),
        ] {
            let shown = format!("{subject:?}, {file}");
            let kept = answer(vec![subject], file);
            assert_eq!(has_secret(&rules, &kept), expected, "{shown}");
        }
    }
}
