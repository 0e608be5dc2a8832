//! One question until there is an answer that can be read, within every limit.

use super::Session;
use super::member::Member;
use crate::ai::Usage;
use crate::ai::ask::{Answer, Ask, Begun, Cause, Failure, Lookups, Nonce, Prompt, Read, Repair, Schema, Spent};
use crate::ai::budget::cost;
use crate::ai::cache::{Kept, Key};
use crate::ai::quota::Quota;
use crate::ai::reply::Problem;
use crate::ai::tree::Tree;
use std::time::Instant;

/// Bytes of an unreadable reply that are sent back to be repaired.
const REPAIR: usize = 64 << 10;

/// A question to a backend.
#[derive(Clone, Copy)]
pub(super) struct Query<'q, 'a> {
    pub(super) prompt: &'q Prompt,
    /// Prompts of which a cached answer will do.
    pub(super) earlier: &'q [Prompt],
    pub(super) schema: &'static Schema,
    /// The tree that the model may look around in.
    pub(super) around: Option<&'q Tree<'a>>,
    /// Set when the answer begins.
    pub(super) begun: Option<&'q Begun>,
}

impl<'q, 'a> Query<'q, 'a> {
    /// Makes a question whose answer stands by itself.
    pub(super) fn new(prompt: &'q Prompt, schema: &'static Schema, around: Option<&'q Tree<'a>>) -> Self {
        Self { prompt, earlier: &[], schema, around, begun: None }
    }
}

/// Why a question has no answer that counts.
pub(super) enum Why {
    Failed(Failure),
    /// The limit that it would have passed.
    Limit(String),
}

/// An answer that could be read.
pub(super) struct Asked<T> {
    pub(super) value: T,
    pub(super) read: Vec<Read>,
    pub(super) cached: bool,
    /// What the cache is given if it turns out to be complete.
    pub(super) keep: Option<(Key, Kept)>,
}

impl<'a> Session<'a> {
    /// Asks a question until there is an answer that can be read: from the cache, from the backend, or after one
    /// request to repair it.
    pub(super) async fn question<T>(
        &self,
        member: &Member<'a>,
        query: &Query<'_, 'a>,
        parse: fn(&str, &Nonce) -> Result<T, Problem>,
    ) -> Result<Asked<T>, Why> {
        let Query { prompt, earlier, schema, around, .. } = *query;
        // A reply from the cache would lack the files that the model edits.
        let cache = self.cache.as_ref().filter(|_| !around.is_some_and(Tree::is_editable));
        let depth = self.job.policy.review.depth;
        let key_of = |p| cache.and_then(|_| member.key(p, schema, depth, around.is_some()));
        let key = key_of(prompt);
        if let Some(cache) = cache {
            // What was answered first is looked for first: a chunk that is as it was is told no other story.
            for key in earlier.iter().filter_map(key_of).chain(key) {
                if let Some(kept) = cache.get(&key, &prompt.nonce)
                    && let Ok(value) = parse(&kept.text, &prompt.nonce)
                    && self.still_holds(&kept, around).await
                {
                    self.ledger.skip();
                    self.used(member.name(), &kept.model, None);
                    return Ok(Asked { value, read: kept.read, cached: true, keep: None });
                }
            }
        }
        let permits = self.permits(member.name());
        // Without an error: nothing closes the semaphore.
        let _permit = permits.acquire().await;
        let price = member.price(self.job.policy);
        let quota = self.ledger.open(member.name(), price, member.most_requests(around.is_some()));
        let quota = quota.map_err(Why::Limit)?;
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
            match parse(&answer.text, &prompt.nonce) {
                Ok(value) => {
                    // A model may have followed text that is aimed at it: the next run asks again.
                    let key = key.filter(|_| !lookups.is_unfit && !self.is_aimed_at_the_model(prompt));
                    let tree = around.filter(|_| key.is_some() && !lookups.all.is_empty()).and_then(Tree::id);
                    let tree = tree.map(str::to_owned);
                    let (text, model) = (answer.text, answer.model);
                    let kept = Kept { text, read: read.clone(), lookups: lookups.all, tree, model };
                    let keep = key.map(|key| (key, kept));
                    return Ok(Asked { value, read, cached: false, keep });
                }
                Err(problem) if problem.repairable && repair.is_none() => {
                    let reply = head(&answer.text, REPAIR).to_owned();
                    repair = Some(Repair { reply, problem: problem.message });
                }
                Err(problem) => {
                    let why = Why::Failed(Failure::new(Cause::Malformed, problem.message));
                    self.unanswered(member.name(), &why);
                    return Err(why);
                }
            }
        }
    }

    /// Returns true if data of a prompt matches a rule about prompt injection.
    fn is_aimed_at_the_model(&self, prompt: &Prompt) -> bool {
        let mut found = Vec::new();
        for data in [&prompt.context, &prompt.manifest.text, &prompt.chunk, &prompt.task] {
            self.job.rules.scan_beside("a prompt", None, data.as_bytes(), &mut found);
        }
        !found.is_empty()
    }

    /// Sends one request, within every limit.
    async fn ask(
        &self,
        member: &Member<'a>,
        query: &Query<'_, 'a>,
        repair: Option<&Repair>,
        quota: &Quota<'_>,
    ) -> Result<Answer, Why> {
        let Query { prompt, schema, around, begun, .. } = *query;
        let job = self.job;
        if let Some(signal) = job.stop.signal() {
            return Err(Why::Failed(Failure::new(Cause::Stopped, format!("stopped ({signal:?})").to_lowercase())));
        }
        if Instant::now() >= job.deadline {
            return Err(Why::Limit(format!("timeout = {:?}", job.policy.review.timeout)));
        }
        let backend = job.policy.backend(member.name());
        let own = backend.and_then(|b| Instant::now().checked_add(b.timeout?));
        let deadline = own.map_or(job.deadline, |own| own.min(job.deadline));
        // Several requests are open at once, and none knows of the others: together they may spend what is left.
        let open = self.planned.get().saturating_sub(self.answered.get());
        let most = job.policy.review.jobs.max(1) as usize * self.permits.borrow().len().max(1);
        let together = open.clamp(1, most);
        let budget_usd = Some(self.ledger.usd_left() / together as f64);
        let patience = member.patience(deadline);
        let ask = Ask { prompt, schema, repair, deadline, patience, budget_usd, quota, stop: job.stop, begun };
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
        self.tell();
        answer.map_err(|failure| match failure.cause {
            Cause::Limit => Why::Limit(failure.message),
            _ => Why::Failed(failure),
        })
    }

    pub(super) fn store(&self, keep: Option<(Key, Kept)>) {
        if let (Some(cache), Some((key, kept))) = (&self.cache, keep) {
            cache.put(&key, &self.nonce, &kept);
        }
    }

    /// Notes that a question to a backend has no answer that counts. A limit ends it before the backend is asked.
    fn unanswered(&self, backend: &str, why: &Why) {
        let mut all = self.usage.borrow_mut();
        if let (Why::Failed(_), Some(usage)) = (why, all.iter_mut().find(|u| u.backend == backend)) {
            usage.failed += 1;
        }
    }

    /// Notes what a request cost; `None`: nothing, the answer was known.
    fn used(&self, backend: &str, model: &str, spent: Option<&Spent>) {
        let mut all = self.usage.borrow_mut();
        let place = all.iter().position(|u| u.backend == backend);
        let usage = match place {
            Some(i) => &mut all[i],
            None => {
                all.push(Usage { backend: backend.to_owned(), ..Usage::default() });
                let last = all.len() - 1;
                &mut all[last]
            }
        };
        // A provider can change its newest model while older answers are still in the cache: all of them are named.
        let is_known = usage.model.split(", ").any(|known| known == model);
        if usage.model.is_empty() {
            model.clone_into(&mut usage.model);
        } else if !model.is_empty() && !is_known && usage.model.len() < MODELS {
            usage.model.push_str(", ");
            usage.model.push_str(model);
        }
        match spent {
            Some(spent) => usage.spent.add(spent),
            None => usage.from_cache += 1,
        }
        usage.duration = self.began.elapsed();
    }
}

/// Bytes of the names of models that answered, at most: one more name is taken below.
const MODELS: usize = 200;

/// Returns the first `most` bytes of a text, cut between characters.
fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}
