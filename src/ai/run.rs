//! Runs all requests of a review: selects the backends, orders and limits the requests, and
//! collects the results.
//!
//! One thread waits for all answers. This module does not depend on a provider and does not decide
//! the verdict. It lists the parts without an answer and anchors the claims.

mod answer;
mod audit;
mod batch;
mod chunk;
mod consult;
mod criteria;
mod early;
mod ledger;
mod member;
mod question;
mod repeat;
mod reproduce;
mod second;
mod shared;
mod turns;
mod whole;

use self::early::Early;
use super::agent::Agent;
use super::anchor::{self, MergedClaims};
use super::ask::{Begun, Failure, Nonce};
use super::backend::Pool;
use super::batch::drive::BatchDriver;
use super::budget::BudgetLimits;
use super::cache::Cache;
use super::debug::Prompts;
use super::journal::Journal;
use super::material::Group;
use super::plan::{self, Chunk, ReviewPlan};
use super::prompt::{self, Brief, Lens};
use super::quota::Ledger;
use super::shared::SharedCache;
use super::tree::Tree;
use super::{BackendUsage, Models, Script, Setback};
use crate::diff::{LineNo, RepoPath};
use crate::env::Env;
use crate::finding::Finding;
use crate::git::Repo;
use crate::policy::{Backend, Layer, Mode, Policy};
use crate::progress::Progress;
use crate::request::{CacheUse, Depth};
use crate::rules::RuleSet;
use crate::stop::Stop;
use crate::symbols;
use crate::verdict::{CoverageFailure, FailureCause};
pub use audit::AuditRun;
use audit::ChunkTurn;
use chunk::ChunkReview;
pub use consult::{Consulted, Question, WorktreeAccess, consult};
use criteria::Votes;
use futures_util::future::join3;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use ledger::{FileKey, FileLedger};
use member::Member;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, oneshot};

/// The inputs of a model review, except the change.
#[derive(Clone, Copy)]
pub struct ReviewJob<'a> {
    pub repo: Option<&'a Repo>,
    pub policy: &'a Policy,
    pub rules: &'a RuleSet,
    pub env: &'a Env,
    pub progress: &'a dyn Progress,
    pub stop: &'a Stop,
    /// Names of the policy's backends, in order.
    pub backends: &'a [String],
    pub cache: CacheUse,
    /// True if only the security lens is used; see [`crate::request::ReviewRequest::is_audit`].
    pub is_audit: bool,
    /// Input and output tokens of all requests together, at most.
    pub max_tokens: Option<u64>,
    pub deadline: Instant,
    pub script: Option<&'a Script>,
    /// True if tests that a model writes may run in the sandbox.
    pub may_run_tests: bool,
    /// The agent that answers in place of the backends.
    pub agent: Option<&'a Agent>,
    pub prompts: Option<&'a Prompts>,
    pub symbols: &'a Arc<symbols::Cache>,
    /// True if requests are sent in batches, without tools.
    pub is_batch: bool,
    /// The order and the journal of a review of a tree; `None` for a change.
    pub audit: Option<AuditRun<'a>>,
}

impl std::fmt::Debug for ReviewJob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewJob")
            .field("backends", &self.backends)
            .finish_non_exhaustive()
    }
}

impl<'a> ReviewJob<'a> {
    /// Returns true if answers may come from caches: not those of a script or an agent.
    fn may_use_caches(&self) -> bool {
        self.cache == CacheUse::Allowed && self.script.is_none() && self.agent.is_none()
    }

    /// Returns the journal of the audit.
    fn journal(&self) -> Option<&'a Journal> {
        self.audit.and_then(|audit| audit.journal)
    }

    /// Returns the lenses of the review. Each part of the change gets one request per lens.
    fn lenses(&self) -> &'static [Lens] {
        match self.policy.review.depth {
            Depth::Quick => &[Lens::Whole],
            Depth::Thorough if self.is_audit => &[Lens::Security],
            Depth::Thorough => &Lens::THOROUGH,
        }
    }
}

/// The result of a model review.
#[derive(Debug, Default)]
pub struct RunOutcome {
    /// Findings, and comments of models on the rules' findings, by their positions in the list from
    /// `floor`.
    pub claims: MergedClaims,
    pub remarks: Vec<Remark>,
    /// True if a backend that should review everything could not be used at all.
    pub unasked: bool,
    /// Positions of the groups and files that at least one backend did not finish.
    pub missed: HashSet<(usize, usize)>,
    /// Files that each backend finished by itself.
    pub finished: BTreeMap<String, HashSet<(usize, usize)>>,
    /// Parts of the change that were not reviewed.
    pub failed: Vec<CoverageFailure>,
    /// Files that were not sent because of a limit, with that limit.
    pub cut: Vec<(RepoPath, String)>,
    /// Number of hunks with a cached answer.
    pub cached: usize,
    pub models: Models,
}

/// A message of a backend that is not a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    pub backend: String,
    pub file: Option<RepoPath>,
    pub line: Option<LineNo>,
    pub text: String,
}

/// Reviews `groups`. `floor` delivers the findings of the rules when they are complete.
pub async fn review(
    job: &ReviewJob<'_>,
    groups: &[Group],
    mut brief: Brief,
    floor: oneshot::Receiver<Vec<Finding>>,
) -> RunOutcome {
    let mut out = RunOutcome::default();
    out.models.asked = job.backends.to_vec();
    let nothing = groups.iter().all(|g| g.files.is_empty());
    let teams = if nothing {
        Vec::new()
    } else {
        open(job, &mut out)
    };
    if let Some(capacity) = teams.iter().flatten().map(Member::capacity).min() {
        let cut = brief.fit(capacity);
        out.remarks.extend(cut.into_iter().map(Remark::of_the_run));
    }
    let mut session = ReviewSession::new(job, groups, &brief);
    match session.open_shared() {
        Ok(shared) => session.shared = shared,
        Err(why) => out.remarks.push(Remark::of_the_run(why)),
    }
    let teams = session.plan(teams, &mut out);
    let run = session.run_or_batch(&teams, floor, out);
    match &session.shared {
        Some(shared) => shared.beside(run).await,
        None => run.await,
    }
}

/// Opens the backends. Depending on the review mode, each is a team of its own, or all form one
/// team in which the first answer suffices.
fn open<'a>(job: &ReviewJob<'a>, out: &mut RunOutcome) -> Vec<Vec<Member<'a>>> {
    let pool = Pool::default();
    let mut open: Vec<Member<'a>> = Vec::new();
    let mut failures: Vec<FailureCause> = Vec::new();
    if let Some(agent) = job.agent {
        return vec![vec![Member::Agent(agent)]];
    }
    for name in job.backends {
        match Member::open(name, job, &pool) {
            Ok(member) => open.push(member),
            Err(f) => {
                out.models.setbacks.push(Setback::of(name, &f));
                failures.push(FailureCause::Backend {
                    backend: name.clone(),
                    reason: described(&f),
                });
            }
        }
    }
    let first = job.policy.review.mode == Mode::First;
    if first && !open.is_empty() {
        out.models.setbacks.clear();
        let skipped = failures
            .drain(..)
            .map(|f| Remark::of_the_run(format!("the next backend is asked: {f}")));
        out.remarks.extend(skipped);
    }
    out.unasked = !failures.is_empty();
    out.failed
        .extend(failures.into_iter().map(CoverageFailure::whole));
    match (first, open.is_empty()) {
        (_, true) => Vec::new(),
        (true, false) => vec![open],
        (false, false) => open.into_iter().map(|m| vec![m]).collect(),
    }
}

impl Remark {
    /// Builds a remark about the run itself.
    fn of_the_run(text: String) -> Self {
        Self {
            backend: "review".to_owned(),
            file: None,
            line: None,
            text,
        }
    }
}

/// The state of one run.
struct ReviewSession<'a> {
    job: &'a ReviewJob<'a>,
    groups: &'a [Group],
    brief: &'a Brief,
    nonce: Nonce,
    cache: Option<Cache>,
    /// The cache that machines share, behind the user's own.
    shared: Option<SharedCache<'a>>,
    ledger: Ledger,
    /// Limits of concurrent requests, by backend name, so that a slow or rate-limited backend does
    /// not delay another.
    permits: RefCell<HashMap<String, Rc<Semaphore>>>,
    /// Trees of the groups, created when they are first needed.
    trees: Vec<OnceCell<Tree<'a>>>,
    usage: RefCell<Vec<BackendUsage>>,
    setbacks: RefCell<Vec<Setback>>,
    began: Instant,
    planned: Cell<usize>,
    answered: Cell<usize>,
    /// Time spent on repeated lookups.
    repeated: Cell<Duration>,
    /// The batches of the run; `None` if requests are sent at once.
    batch: Option<BatchDriver<'a>>,
}

/// The answers to all questions except those of the second review.
struct FirstAnswers {
    reviews: ChunkReview,
    votes: Votes,
    /// Which backend finished which file.
    ledger: FileLedger,
    /// Hunks with a cached answer for every lens and team.
    cached: usize,
}

/// Backends of which one answer suffices, with their chunks.
struct Team<'a> {
    members: Vec<Member<'a>>,
    chunks: Vec<Chunk>,
    /// Files that the chunks omit in whole or in part.
    left_out: Vec<FileKey>,
}

impl<'a> ReviewSession<'a> {
    fn new(job: &'a ReviewJob<'a>, groups: &'a [Group], brief: &'a Brief) -> Self {
        let review = &job.policy.review;
        let limits = BudgetLimits {
            requests: review.max_requests,
            usd: review.max_cost_usd,
            usd_is_set: job.policy.origin_of("review.max_cost_usd").layer != Layer::Default,
            tokens: job.max_tokens,
        };
        let cache = job
            .may_use_caches()
            .then(|| Cache::open(job.env, job.repo.and_then(Repo::worktree)))
            .flatten();
        let nonce = job
            .agent
            .map_or_else(Nonce::random, |agent| agent.nonce().clone());
        Self {
            job,
            groups,
            brief,
            batch: batch::driver(job, nonce.as_str()),
            nonce,
            cache,
            shared: None,
            ledger: Ledger::new(limits),
            permits: RefCell::default(),
            trees: groups.iter().map(|_| OnceCell::new()).collect(),
            usage: RefCell::default(),
            setbacks: RefCell::default(),
            began: Instant::now(),
            planned: Cell::new(0),
            answered: Cell::new(0),
            repeated: Cell::default(),
        }
    }

    /// Returns the semaphore that limits the concurrent requests to a backend.
    fn permits(&self, backend: &str) -> Rc<Semaphore> {
        let most = self.job.policy.review.jobs.max(1) as usize;
        let mut all = self.permits.borrow_mut();
        all.entry(backend.to_owned())
            .or_insert_with(|| Rc::new(Semaphore::new(most)))
            .clone()
    }

    /// Asks all questions, and collects the results. `floor` delivers the findings of the rules,
    /// which the second review needs.
    async fn run(
        &self,
        teams: &[Team<'a>],
        floor: oneshot::Receiver<Vec<Finding>>,
        mut out: RunOutcome,
    ) -> RunOutcome {
        let FirstAnswers {
            mut reviews,
            votes,
            ledger,
            cached,
        } = self.ask_about_the_change(teams).await;
        out.cached = cached;
        out.failed.extend(votes.failed.iter().cloned());
        out.cut.extend(votes.cut.iter().cloned());
        out.missed = ledger.missed();
        out.missed
            .extend(self.keys_of(votes.cut.iter().map(|(path, _)| path)));
        out.finished = ledger.finished();
        if !teams.is_empty() {
            out.models.criteria = votes.count(&self.brief.criteria, out.cut.is_empty());
        }
        // The sender is only dropped if the rules failed, which the review reports.
        let floor = floor.await.unwrap_or_default();
        self.ledger.keep(0);
        self.second_look(teams, &mut reviews, &floor, &mut out)
            .await;
        self.reproduce(teams, &mut reviews.candidates, &mut out)
            .await;
        self.add_reviews(reviews, &floor, &mut out);
        self.add_usage(&mut out);
        out.remarks
            .sort_by(|a, b| (&a.file, a.line, &a.text).cmp(&(&b.file, b.line, &b.text)));
        out.remarks.dedup();
        out.remarks.extend(self.unpriced(&out.models.usage));
        // The check above needs the costs of this run alone.
        let earlier = self.job.journal().map(Journal::earlier_costs);
        add_earlier_costs(&mut out.models.usage, earlier.unwrap_or_default());
        if let Some(shared) = &self.shared {
            shared.finish().await;
            out.remarks.extend(shared.remark().map(Remark::of_the_run));
        }
        out.models.tidy();
        out
    }

    /// Asks every question except those of the second review: each part of the change under each
    /// lens, the criteria, and each whole change. All of them run at the same time, within the
    /// limits.
    async fn ask_about_the_change(&self, teams: &[Team<'a>]) -> FirstAnswers {
        let views = self.views(teams);
        let begun: Vec<Vec<Begun>> = teams
            .iter()
            .map(|t| t.chunks.iter().map(|_| Begun::default()).collect())
            .collect();
        let turns: Vec<Vec<ChunkTurn>> = teams.iter().map(|t| self.turns_of(t)).collect();
        let mut looks = FuturesUnordered::new();
        for (view, (t, team, lens)) in views.iter().enumerate() {
            let chunks = team.chunks.iter().zip(&begun[*t]).zip(&turns[*t]);
            looks.extend(chunks.map(|((c, begun), turn)| async move {
                let review = self.review_after_first_lens(team, c, *lens, (begun, turn));
                (view, review.await)
            }));
        }
        let wholes: FuturesUnordered<_> = teams
            .iter()
            .flat_map(|team| {
                let groups = self.wholes(team).into_iter();
                groups.map(move |group| self.review_whole_change(team, group))
            })
            .collect();
        let judged = if self.brief.criteria.is_empty() {
            0
        } else {
            teams.iter().map(|t| t.chunks.len()).sum()
        };
        self.expect(looks.len() + judged + wholes.len());
        self.ledger
            .keep(u32::try_from(self.kept_requests()).unwrap_or(u32::MAX));
        self.tell();
        let mut reviews = ChunkReview::default();
        let mut ledger = FileLedger::new(teams);
        let mut cached = vec![0; views.len()];
        let mut early = Early::default();
        let reviewed = async {
            while let Some((view, mut review)) = looks.next().await {
                cached[view] += review.cached;
                let lines = early.lines(&review.candidates);
                if !lines.is_empty() {
                    self.job.progress.so_far(&lines);
                }
                ledger.add(views[view].0, std::mem::take(&mut review.entries));
                reviews.merge(review);
            }
        };
        let ((), votes, about_the_whole) = join3(
            reviewed,
            self.judged(teams),
            wholes.collect::<Vec<ChunkReview>>(),
        )
        .await;
        about_the_whole
            .into_iter()
            .for_each(|review| reviews.merge(review));
        FirstAnswers {
            reviews,
            votes,
            ledger,
            // An answer that is cached for every view needed no request.
            cached: cached.into_iter().min().unwrap_or_default(),
        }
    }

    /// Returns each team with each lens: the position of the team, the team, and the lens.
    fn views<'t>(&self, teams: &'t [Team<'a>]) -> Vec<(usize, &'t Team<'a>, Lens)> {
        let lenses = self.job.lenses();
        let teams = teams.iter().enumerate();
        teams
            .flat_map(|(i, team)| lenses.iter().map(move |lens| (i, team, *lens)))
            .collect()
    }

    /// Adds the results of all parts: the claims as findings, and what was not reviewed.
    fn add_reviews(&self, reviews: ChunkReview, floor: &[Finding], out: &mut RunOutcome) {
        let disputes = std::mem::take(&mut out.claims.disputes);
        out.claims = anchor::merge_claims(reviews.candidates, floor, self.job.rules);
        out.claims.disputes.extend(disputes);
        out.remarks.extend(reviews.remarks);
        let notes = std::mem::take(&mut out.claims.notes);
        out.remarks.extend(notes.into_iter().map(|n| Remark {
            backend: n.backend,
            line: n.location.as_ref().and_then(|l| l.lines).map(|l| l.first),
            file: n.location.map(|l| l.file),
            text: n.text,
        }));
        out.failed.extend(reviews.failed);
        out.cut.extend(reviews.cut);
        out.models.dropped = reviews.dropped;
        out.models.compliance = reviews.compliance;
        out.models.missing = reviews.missing;
        out.models.opinions = reviews.opinions;
    }

    /// Adds the usage of the backends, and the failures of their requests.
    fn add_usage(&self, out: &mut RunOutcome) {
        out.models.usage = self.usage.take();
        if self.job.policy.review.mode == Mode::First {
            // In this mode, the other backends are only asked if the first ones fail.
            let (asked, usage) = (&mut out.models.asked, &out.models.usage);
            if asked.iter().any(|name| is_used(usage, name)) {
                asked.retain(|name| is_used(usage, name));
            }
        }
        out.models.setbacks.extend(self.setbacks.take());
    }

    /// Returns the number of requests that are reserved for the second review. At depth quick it
    /// only gets the remaining requests: an unreviewed part is worse than an unverified claim.
    fn kept_requests(&self) -> usize {
        let review = &self.job.policy.review;
        if review.depth == Depth::Thorough {
            (review.max_requests as usize / 5).max(1)
        } else {
            0
        }
    }

    /// Announces further questions.
    fn expect(&self, questions: usize) {
        self.planned.set(self.planned.get() + questions);
        self.ledger.plan(questions);
    }

    /// Plans the chunks of each team.
    fn plan(&self, teams: Vec<Vec<Member<'a>>>, out: &mut RunOutcome) -> Vec<Team<'a>> {
        let review = &self.job.policy.review;
        let lenses = self.job.lenses().len();
        let looks = (review.max_requests as usize).saturating_sub(self.kept_requests());
        // The criteria are an additional question.
        let questions = lenses + usize::from(!self.brief.criteria.is_empty());
        let share = (looks / (teams.len() * questions).max(1)).max(1);
        teams
            .into_iter()
            .map(|mut members| {
                let count = members.len();
                members
                    .iter_mut()
                    .zip(1..)
                    .for_each(|(member, place)| member.precede(count - place));
                let capacity = members
                    .iter()
                    .map(Member::capacity)
                    .min()
                    .unwrap_or_default();
                let limits = plan::Limits {
                    bytes: capacity.saturating_sub(prompt::fixed_bytes(self.brief, capacity)),
                    files: review.max_files as usize,
                    lines: review.max_lines as usize,
                    requests: share,
                };
                let ReviewPlan { chunks, left_out } = match &self.job.audit {
                    Some(audit) => self.plan_by_risk(audit, &members, &limits),
                    None => plan::plan(self.groups, &limits),
                };
                let why = format!("max_requests = {}", review.max_requests);
                let left_out: Vec<FileKey> =
                    left_out.into_iter().map(|l| (l.group, l.file)).collect();
                out.cut.extend(
                    left_out
                        .iter()
                        .map(|(group, file)| (self.path(*group, *file), why.clone())),
                );
                Team {
                    members,
                    chunks,
                    left_out,
                }
            })
            .collect()
    }

    /// Returns a remark for each backend with unknown cost, for which the cost limit has no effect.
    /// A local server is free unless the user set a limit.
    fn unpriced(&self, usage: &[BackendUsage]) -> Vec<Remark> {
        let policy = self.job.policy;
        let is_default = policy.origin_of("review.max_cost_usd").layer == Layer::Default;
        let unknown = usage
            .iter()
            .filter(|u| u.spent.requests > 0 && u.spent.cost_usd.is_none());
        let charged = unknown.filter(|u| {
            !(is_default
                && policy
                    .backend(&u.backend)
                    .is_some_and(Backend::is_on_this_machine))
        });
        charged.map(without_price).collect()
    }

    fn path(&self, group: usize, file: usize) -> RepoPath {
        self.groups[group].files[file].path().clone()
    }

    /// Returns the tree that the reviewer of a group may read through tools, at depth thorough. In
    /// batches there are no tools: each round would take as long as a batch.
    fn around(&self, group: usize) -> Option<&Tree<'a>> {
        (self.job.policy.review.depth == Depth::Thorough && self.batch.is_none())
            .then(|| self.tree(group))
            .flatten()
    }

    /// Returns the tree under review of a group, or `None` for a patch or files outside a
    /// repository.
    fn tree(&self, group: usize) -> Option<&Tree<'a>> {
        let (repo, g) = (self.job.repo?, self.groups.get(group)?);
        let state = g.tree.clone()?;
        let present = g.files.iter().filter(|f| f.change.entry.new.is_some());
        Some(self.trees[group].get_or_init(|| {
            Tree::new(repo, state, self.job.rules)
                .without_records_of(self.job.policy)
                .with_new(present.map(|f| f.path().clone()))
                .with_change(&g.files)
                .with_symbols(self.job.symbols)
        }))
    }

    fn paths(&self, chunk: &Chunk) -> Vec<RepoPath> {
        chunk
            .pieces
            .iter()
            .map(|p| self.path(chunk.group, p.file))
            .collect()
    }

    fn step(&self) {
        self.answered.set(self.answered.get() + 1);
        self.tell();
    }

    fn tell(&self) {
        if self.planned.get() > 0 {
            self.job
                .progress
                .requests(self.answered.get(), self.planned.get(), self.ledger.usd());
        }
    }
}

/// Adds the costs of the runs that an audit continues, by backend.
fn add_earlier_costs(all: &mut Vec<BackendUsage>, earlier: BTreeMap<String, f64>) {
    for (backend, usd) in earlier {
        let place = all.iter().position(|u| u.backend == backend);
        let place = place.unwrap_or_else(|| {
            all.push(BackendUsage {
                backend,
                ..BackendUsage::default()
            });
            all.len() - 1
        });
        let usage = &mut all[place];
        usage.spent.cost_usd = Some(usage.spent.cost_usd.unwrap_or_default() + usd);
        usage.earlier_usd = Some(usd);
    }
}

/// Returns true if the usage has an entry for a backend.
fn is_used(usage: &[BackendUsage], backend: &str) -> bool {
    usage.iter().any(|u| u.backend == backend)
}

/// Builds the remark that the cost limit has no effect for a backend.
fn without_price(usage: &BackendUsage) -> Remark {
    let name = &usage.backend;
    let model = if usage.model.is_empty() {
        "its model"
    } else {
        &usage.model
    };
    Remark::of_the_run(format!(
        "max_cost_usd has no effect for {name}: no price of {model} is known; set price in [backend.{name}]"
    ))
}

/// Formats a failure and its hint on one line.
fn described(f: &Failure) -> String {
    match &f.hint {
        Some(hint) => format!("{} ({hint})", f.message),
        None => f.message.clone(),
    }
}

/// Masks the secrets in text from a model.
fn foreign(text: &str, rules: &RuleSet) -> String {
    rules.masked(text)
}
