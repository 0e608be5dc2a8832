//! Runs one question until an answer can be parsed, within all limits.

use super::ReviewSession;
use super::answer::{Admission, AnswerToKeep, NoAnswer, ParsedAnswer, Query, ReplyParser};
use super::member::Member;
use crate::ai::BackendUsage;
use crate::ai::ask::{Ask, Cause, Failure, Lookups, ModelAnswer, Prompt, Repair, Spent};
use crate::ai::batch::drive::BatchDriver;
use crate::ai::budget::cost;
use crate::ai::cache::{KeptReply, ReplyKey};
use crate::ai::quota::Quota;
use crate::ai::tree::Tree;
use crate::text::first_bytes;
use std::time::Instant;

/// Bytes of an invalid reply that are sent back for repair, at most.
const REPAIR: usize = 64 << 10;

impl<'a> ReviewSession<'a> {
    /// Returns the parsed answer to a question: from the cache, from the backend, or after one
    /// repair request.
    pub(super) async fn question<T>(
        &self,
        member: &Member<'a>,
        query: &Query<'_, 'a>,
        parse: ReplyParser<T>,
    ) -> Result<ParsedAnswer<T>, NoAnswer> {
        let Query {
            prompt,
            earlier,
            schema,
            around,
            ..
        } = *query;
        // A cached reply does not include the files that the model edited.
        let may_keep = self.job.may_use_caches() || self.job.journal().is_some();
        let may_cache = may_keep && !around.is_some_and(Tree::is_editable);
        let depth = self.job.policy.review.depth;
        let key_of = |p| member.key(p, schema, depth, around.is_some());
        let key = may_cache.then(|| key_of(prompt)).flatten();
        if may_cache {
            // Try the earliest answer first, so that an unchanged chunk keeps its answer.
            let keys: Vec<ReplyKey> = earlier.iter().filter_map(key_of).chain(key).collect();
            if let Some(answer) = self.cached_answer(&keys, query, parse).await {
                return Ok(self.without_request(member, answer));
            }
        }
        let permits = self.permits(member.name());
        let admission = match &self.batch {
            // All requests of a batch wait together, for longer than a lease lasts.
            Some(_) => Admission::Ask(None, None),
            None => self.admitted(&permits, key, query, parse).await,
        };
        let (_permit, lease) = match admission {
            Admission::Ask(permit, lease) => (permit, lease),
            Admission::Answered(answer) => return Ok(self.without_request(member, answer)),
        };
        let answer = self.with_lease(lease, self.asked(member, query, key, parse));
        let mut answer = answer.await;
        match answer.as_mut().ok().and_then(|a| a.keep.as_mut()) {
            Some(keep) => keep.lease = lease,
            None => self.release(lease),
        }
        answer
    }

    /// Counts an answer that needed no request.
    fn without_request<T>(&self, member: &Member<'a>, answer: ParsedAnswer<T>) -> ParsedAnswer<T> {
        self.ledger.skip();
        self.used(member.name(), &answer.model, None);
        answer
    }

    /// Asks a question, with one repair request. `key` is the name of the answer in caches.
    async fn asked<T>(
        &self,
        member: &Member<'a>,
        query: &Query<'_, 'a>,
        key: Option<ReplyKey>,
        parse: ReplyParser<T>,
    ) -> Result<ParsedAnswer<T>, NoAnswer> {
        let price = member.price(self.job.policy);
        let most = member.most_requests(query.around.is_some());
        let quota = self.ledger.open(member.name(), price, most);
        let quota = quota.map_err(NoAnswer::Limit)?;
        let mut repair: Option<Repair> = None;
        let mut read = Vec::new();
        let mut lookups = Lookups::default();
        loop {
            let mut answer = match self.ask(member, query, repair.as_ref(), &quota).await {
                Ok(answer) => answer,
                Err(why) => {
                    self.unanswered(member.name(), &why);
                    return Err(why);
                }
            };
            read.append(&mut answer.read);
            lookups.append(answer.lookups);
            match parse(&answer.text, &query.prompt.nonce) {
                Ok(value) => {
                    let key = key.filter(|_| !lookups.is_unfit);
                    let kept = KeptReply {
                        text: answer.text,
                        read,
                        lookups: lookups.all,
                        tree: None,
                        model: answer.model,
                    };
                    return Ok(self.parsed(query, key, value, kept));
                }
                Err(problem) if problem.repairable && repair.is_none() => {
                    repair = Some(Repair {
                        reply: first_bytes(&answer.text, REPAIR).to_owned(),
                        problem: problem.message,
                    });
                }
                Err(problem) => {
                    let why = NoAnswer::Failed(Failure::new(Cause::Malformed, problem.message));
                    self.unanswered(member.name(), &why);
                    return Err(why);
                }
            }
        }
    }

    /// Builds an answer, and its cache entry if it has a key. An answer is not cached if the model
    /// may have followed instructions in untrusted text, so that the next run asks again. The journal
    /// keeps it for the audit that it was given to.
    fn parsed<T>(
        &self,
        query: &Query<'_, 'a>,
        key: Option<ReplyKey>,
        value: T,
        mut kept: KeptReply,
    ) -> ParsedAnswer<T> {
        let is_for_this_audit = key.is_some() && self.is_aimed_at_the_model(query.prompt);
        let key = key.filter(|_| !is_for_this_audit || self.job.journal().is_some());
        let tree = query
            .around
            .filter(|_| key.is_some() && !kept.lookups.is_empty())
            .and_then(Tree::id);
        kept.tree = tree.map(str::to_owned);
        ParsedAnswer {
            value,
            model: kept.model.clone(),
            read: kept.read.clone(),
            cached: false,
            keep: key.map(|key| AnswerToKeep {
                key,
                kept,
                lease: None,
                is_for_this_audit,
            }),
        }
    }

    /// Returns true if data in a prompt matches a rule about prompt injection.
    fn is_aimed_at_the_model(&self, prompt: &Prompt) -> bool {
        let mut found = Vec::new();
        for data in [
            &prompt.context,
            &prompt.manifest.text,
            &prompt.chunk,
            &prompt.task,
        ] {
            self.job
                .rules
                .scan_beside("a prompt", None, data.as_bytes(), &mut found);
        }
        !found.is_empty()
    }

    /// Sends one request, within all limits.
    async fn ask(
        &self,
        member: &Member<'a>,
        query: &Query<'_, 'a>,
        repair: Option<&Repair>,
        quota: &Quota<'_>,
    ) -> Result<ModelAnswer, NoAnswer> {
        let Query {
            prompt,
            schema,
            around,
            begun,
            ..
        } = *query;
        let job = self.job;
        if let Some(signal) = job.stop.signal() {
            return Err(NoAnswer::Failed(Failure::new(
                Cause::Stopped,
                format!("stopped ({signal:?})").to_lowercase(),
            )));
        }
        if Instant::now() >= job.deadline {
            return Err(NoAnswer::Limit(format!(
                "timeout = {:?}",
                job.policy.review.timeout
            )));
        }
        let backend = job.policy.backend(member.name());
        // The time limit of a backend is that of an ordinary request.
        let backend = backend.filter(|_| self.batch.is_none());
        let own = backend.and_then(|b| Instant::now().checked_add(b.timeout?));
        let deadline = own.map_or(job.deadline, |own| own.min(job.deadline));
        // Concurrent requests do not know of each other, so divide the remaining budget among them.
        let open = self.planned.get().saturating_sub(self.answered.get());
        let most = job.policy.review.jobs.max(1) as usize * self.permits.borrow().len().max(1);
        let together = open.clamp(1, most);
        let budget_usd = Some(self.ledger.usd_left() / together as f64);
        let patience = member.patience(deadline);
        let ask = Ask {
            prompt,
            schema,
            repair,
            deadline,
            patience,
            budget_usd,
            quota,
            stop: job.stop,
            begun,
            batch: self.batch.as_ref().map(BatchDriver::queue),
        };
        if let Some(prompts) = job.prompts {
            prompts.append(member.name(), &ask);
        }
        let answer = member.ask(&ask, around).await;
        let mut spent = match &answer {
            Ok(answer) => answer.usage,
            Err(failure) => *failure.usage,
        };
        spent.cost_usd = cost(&spent, member.price(job.policy));
        let model = answer.as_ref().map_or("", |a| &a.model);
        self.used(member.name(), model, Some(&spent));
        if let (Some(journal), Some(usd)) = (self.job.journal(), spent.cost_usd) {
            journal.add_cost(member.name(), usd);
        }
        self.tell();
        answer.map_err(|failure| match failure.cause {
            Cause::Limit => NoAnswer::Limit(failure.message),
            _ => NoAnswer::Failed(failure),
        })
    }

    /// Records that a question to a backend has no valid answer. A question that a limit prevents
    /// is not counted.
    fn unanswered(&self, backend: &str, why: &NoAnswer) {
        let mut all = self.usage.borrow_mut();
        if let (NoAnswer::Failed(_), Some(usage)) =
            (why, all.iter_mut().find(|u| u.backend == backend))
        {
            usage.failed += 1;
        }
    }

    /// Records the usage of a request. `None` means that the answer was cached.
    fn used(&self, backend: &str, model: &str, spent: Option<&Spent>) {
        let mut all = self.usage.borrow_mut();
        let place = all.iter().position(|u| u.backend == backend);
        let usage = match place {
            Some(i) => &mut all[i],
            None => {
                all.push(BackendUsage {
                    backend: backend.to_owned(),
                    ..BackendUsage::default()
                });
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        // A provider can change its newest model while older answers are still cached, so list all
        // of them.
        let is_known = usage.model.split(", ").any(|known| known == model);
        if usage.model.is_empty() {
            model.clone_into(&mut usage.model);
        } else if !model.is_empty() && !is_known && usage.model.len() < MODELS {
            usage.model.push_str(", ");
            usage.model.push_str(model);
        }
        match spent {
            Some(spent) => {
                usage.spent.add(spent);
                usage.batch = self.batch.is_some();
            }
            None => usage.from_cache += 1,
        }
        usage.duration = self.began.elapsed();
    }
}

/// Bytes of the list of model names above which no name is added.
const MODELS: usize = 200;
