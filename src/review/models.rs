//! Asks models, and runs the project's tests, while the rules scan the change.

mod audit;
mod brief;
mod material;
mod order;
mod tickets;

use super::audit::Audit;
use super::frame::Frames;
use super::interrupt::with_signal_handler;
use super::prepare::Prepared;
use super::resolved::PartContent;
use super::rule_results::{self, RuleResults};
use super::scan::RuleScan;
use super::{Note, TestResults, testing};
use crate::ai::Models;
use crate::ai::anchor::MergedClaims;
use crate::ai::debug::Prompts;
use crate::ai::material::Group;
use crate::ai::related::{self, Related};
use crate::ai::risk::FileRisk;
use crate::ai::run::{self, AuditRun, ReviewJob, RunOutcome};
use crate::ai::tree::Tree;
use crate::context::{Gathered, GatheredItem};
use crate::diff::{ObjectId, RepoPath};
use crate::error::Result;
use crate::finding::{self, Finding};
use crate::git::{Repo, State, YearOfChanges};
use crate::policy::Policy;
use crate::request::{Authority, OnIncomplete};
use crate::rules::Seen;
use crate::symbols;
use crate::untrusted::Inert;
use crate::verdict::{Coverage, CoverageFailure, FailureCause, Lost, Share, Skip};
use material::Material;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Bytes of the files that models see, at most. Files past the limit are listed as not sent.
const MOST: usize = 256 << 20;
/// Time limit for the project's own tests.
const TESTS: Duration = Duration::from_secs(30 * 60);
/// Findings of the rules that are printed while a model still works, at most.
const SO_FAR: usize = 20;

/// A model review.
pub(super) struct Asking<'a> {
    prepared: &'a Prepared<'a>,
    /// The scan of the rules, which decides the files that are reviewed.
    scan: RuleScan<'a>,
    /// Names of the backends; may be empty.
    backends: Vec<String>,
    /// The symbols of the files that were parsed in this run.
    symbols: Arc<symbols::Cache>,
}

/// The results of a model review.
#[derive(Default)]
pub(super) struct ModelResults {
    pub(super) claims: MergedClaims,
    /// Findings about instructions to the reviewer in texts other than the change.
    pub(super) beside: Vec<Finding>,
    pub(super) coverage: Coverage,
    pub(super) notes: Vec<Note>,
    pub(super) models: Models,
    pub(super) tests: Option<TestResults>,
    /// The part of the change that the rules reviewed and no model did, although it should have.
    pub(super) lost: Lost,
    /// Worktree files that models saw.
    pub(super) shown: HashMap<RepoPath, ObjectId>,
    /// Tickets and pages that models saw.
    pub(super) context: Vec<GatheredItem>,
}

impl ModelResults {
    /// Returns the results of a model review that failed as a whole.
    fn lost(why: String) -> Self {
        let mut asked = Self {
            lost: Lost::Everything,
            ..Self::default()
        };
        asked.coverage.fail(FailureCause::Other(why));
        asked
    }
}

/// Runs the rules on this thread, and asks the models on another one, if there is anything to ask
/// or to run in addition to the rules.
///
/// # Errors
///
/// Usage: the file for prompts cannot be written; an audit cannot be resumed.
pub(super) fn scan_and_ask(prepared: &Prepared<'_>) -> Result<(RuleResults, Option<ModelResults>)> {
    let asking = Asking::new(prepared, prepared.asked_backends());
    let audit = Audit::open(prepared, &asking.backends)?;
    if asking.is_needed() {
        asking.beside_the_rules(audit.as_ref())
    } else {
        Ok((rule_results::scan(prepared), None))
    }
}

/// Returns true if a model would see any part of the change. Asks no backend, and stops reading at
/// the first file that would be shown.
pub(super) fn is_owed(prepared: &Prepared<'_>) -> bool {
    Asking::new(prepared, Vec::new()).is_owed()
}

impl<'a> Asking<'a> {
    fn new(prepared: &'a Prepared<'a>, backends: Vec<String>) -> Self {
        Self {
            prepared,
            scan: prepared.rule_scan(),
            backends,
            symbols: Arc::default(),
        }
    }
}

impl Asking<'_> {
    /// Returns true if there is work in addition to the rules.
    fn is_needed(&self) -> bool {
        let parts = &self.prepared.resolved.parts;
        !parts.is_empty() && (!self.backends.is_empty() || self.test_command().is_some())
    }

    fn is_owed(&self) -> bool {
        self.gather(Instant::now() + self.policy().review.timeout, 0, None)
            .is_owed()
    }

    /// Runs the rules and asks the models at the same time. A signal ends both early.
    fn beside_the_rules(
        &self,
        audit: Option<&Audit>,
    ) -> Result<(RuleResults, Option<ModelResults>)> {
        let prompts = self
            .prepared
            .request
            .debug_prompts
            .as_deref()
            .map(Prompts::open)
            .transpose()?;
        // Signals have their own thread, because the asking thread has long stretches without an
        // await.
        let work = || self.on_two_threads(prompts.as_ref(), audit);
        let (found, asked) = with_signal_handler(self.scan.stop, work);
        Ok((found, Some(asked)))
    }

    /// Runs the rules on this thread, and asks the models on another one.
    fn on_two_threads(
        &self,
        prompts: Option<&Prompts>,
        audit: Option<&Audit>,
    ) -> (RuleResults, ModelResults) {
        let (tell, told) = oneshot::channel();
        std::thread::scope(|s| {
            let asking = s.spawn(|| self.ask(prompts, audit, told));
            let found = rule_results::scan(self.prepared);
            self.prepared
                .world
                .progress
                .so_far(&so_far(&found.findings));
            // The receiver is dropped only if the other thread failed, which it reports itself.
            let _ = tell.send(found.findings.clone());
            let asked = asking.join().unwrap_or_else(|_| {
                ModelResults::lost("an internal error ended the model review".to_owned())
            });
            (found, asked)
        })
    }

    /// Reads the tickets of the change if a backend will be asked.
    fn tickets(&self) -> Gathered {
        let is_asked =
            !self.backends.is_empty() && self.prepared.world.script.is_none() && self.has_entries();
        if is_asked && self.is_owed() {
            tickets::gather(self)
        } else {
            Gathered::default()
        }
    }

    /// Returns true if there are changes; does not read commits for that.
    fn has_entries(&self) -> bool {
        self.prepared
            .resolved
            .parts
            .iter()
            .any(|part| match &part.content {
                PartContent::Change(change) => !change.entries.is_empty(),
                PartContent::Given(files) => !files.is_empty(),
                PartContent::Commit(_) => true,
            })
    }

    fn policy(&self) -> &Policy {
        self.prepared.policy()
    }

    fn test_command(&self) -> Option<&str> {
        self.policy()
            .tests
            .command
            .as_deref()
            .filter(|_| self.policy().tests.run && self.scan.is_for_the_whole())
    }

    /// Returns true if the operator allows tests that a model writes to run. Never in gate mode.
    fn may_run_tests(&self) -> bool {
        let is_gate = self.prepared.request.authority == Authority::Base;
        self.policy().tests.reproduce && !is_gate && !self.prepared.world.env.is_ci()
    }

    /// Asks the backends, and runs the tests, in a runtime of this thread. `told` delivers the
    /// findings of the rules.
    fn ask(
        &self,
        prompts: Option<&Prompts>,
        audit: Option<&Audit>,
        told: oneshot::Receiver<Vec<Finding>>,
    ) -> ModelResults {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(e) => {
                let mut asked = ModelResults::lost(format!("no model was asked: {e}"));
                asked.models.asked = self.backends.clone();
                asked.models.owed = true;
                return asked;
            }
        };
        // Blocking: the clients of forges and servers start their own runtimes.
        let given = self.tickets();
        let asked = runtime.block_on(self.work((prompts, audit), told, given));
        // A name lookup cannot be cancelled. Dropping the runtime would wait for it, past the
        // deadline and Ctrl-C.
        runtime.shutdown_background();
        asked
    }

    /// Runs the tests, and asks the backends.
    async fn work(
        &self,
        (prompts, audit): (Option<&Prompts>, Option<&Audit>),
        told: oneshot::Receiver<Vec<Finding>>,
        given: Gathered,
    ) -> ModelResults {
        let mut asked = ModelResults::default();
        self.take_tickets(given, &mut asked);
        if let Some(command) = self.test_command().filter(|_| self.has_entries()) {
            asked.tests = Some(self.test(command).await);
        }
        if self.backends.is_empty() {
            return asked;
        }
        let deadline = Instant::now() + self.policy().review.timeout;
        let year = audit.map(|_| Arc::new(self.year(&mut asked)));
        let mut material = self.gather(deadline, MOST, year.clone());
        asked.models.owed = material.is_owed();
        material
            .groups
            .iter_mut()
            .for_each(|group| self.relate(group));
        asked.notes.extend(unsearched(&material.groups));
        let brief = self.brief(&material, &mut asked);
        asked.shown = worktree_files(&material.groups);
        let (risks, told, deadline) = match &year {
            Some(year) => {
                self.after_the_rules(&material.groups, year, told, deadline)
                    .await
            }
            None => (Vec::new(), told, deadline),
        };
        let job = ReviewJob {
            audit: audit.map(|audit| AuditRun {
                risks: &risks,
                journal: audit.journal(),
            }),
            ..self.job(prompts, deadline)
        };
        let outcome = run::review(&job, &material.groups, brief, told).await;
        self.end_audit(audit, (&material, &outcome), &mut asked);
        self.take_answers(outcome, material, &mut asked);
        asked
    }

    /// Waits for the findings of the rules, which the order of an audit depends on. Returns the risk
    /// of each file, another receiver of the findings, and the deadline without the time that the
    /// rules took.
    async fn after_the_rules(
        &self,
        groups: &[Group],
        year: &YearOfChanges,
        told: oneshot::Receiver<Vec<Finding>>,
        deadline: Instant,
    ) -> (Vec<Vec<FileRisk>>, oneshot::Receiver<Vec<Finding>>, Instant) {
        let waiting = Instant::now();
        let found = told.await.unwrap_or_default();
        let deadline = deadline + waiting.elapsed();
        let risks = self.risks(groups, year, &found);
        let (tell, told) = oneshot::channel();
        // The receiver is returned, so this cannot fail.
        let _ = tell.send(found);
        (risks, told, deadline)
    }

    /// Adds the tickets to the results, with what could not be read.
    fn take_tickets(&self, given: Gathered, asked: &mut ModelResults) {
        let Gathered {
            items,
            notes,
            failed,
            ..
        } = given;
        asked.context = items;
        let mut texts = notes;
        if self.policy().context.required {
            let causes = failed.into_iter().map(FailureCause::Other);
            asked
                .coverage
                .failed
                .extend(causes.map(CoverageFailure::whole));
        } else {
            texts.extend(failed);
        }
        let notes = texts.into_iter().map(|text| Note::general("context", text));
        asked.notes.extend(notes);
    }

    /// Returns the inputs of the run, except the change.
    fn job<'b>(&'b self, prompts: Option<&'b Prompts>, deadline: Instant) -> ReviewJob<'b> {
        let Prepared { request, world, .. } = self.prepared;
        ReviewJob {
            repo: self.scan.repo,
            policy: self.policy(),
            rules: self.scan.rules,
            env: world.env,
            progress: world.progress,
            stop: self.scan.stop,
            backends: &self.backends,
            cache: request.cache,
            is_audit: request.is_audit,
            max_tokens: request.overrides.max_tokens,
            deadline,
            script: world.script,
            may_run_tests: self.may_run_tests() && !request.is_batch,
            agent: world.agent,
            prompts,
            symbols: &self.symbols,
            is_batch: request.is_batch,
            audit: None,
        }
    }

    /// Adds the answers of the models to the results, and accounts for what was not answered.
    fn take_answers(&self, outcome: RunOutcome, material: Material, asked: &mut ModelResults) {
        let Material {
            groups,
            skipped,
            failed,
            cut,
            unread,
            ..
        } = material;
        asked.coverage.skipped.extend(skipped);
        asked.coverage.failed.extend(failed);
        self.account(&groups, &unread, &outcome, asked);
        for (path, limit) in cut.into_iter().chain(outcome.cut) {
            match self.policy().on_truncated {
                OnIncomplete::Warn => asked.coverage.skipped.push((path, Skip::Limit)),
                OnIncomplete::Fail => asked
                    .coverage
                    .fail_file(path, FailureCause::CutOff { limit }),
            }
        }
        asked.coverage.failed.extend(outcome.failed);
        asked.coverage.cached = outcome.cached;
        asked
            .notes
            .extend(outcome.remarks.into_iter().map(|r| Note {
                file: r.file,
                line: r.line,
                text: r.text,
                origin: r.backend,
            }));
        asked.models = Models {
            owed: asked.models.owed,
            no_conventions: asked.models.no_conventions.take(),
            ..outcome.models
        };
        asked.claims = outcome.claims;
        self.frame_claims(&groups, &mut asked.claims);
    }

    /// Adds to each claim the lines around it, and a suppression that covers it.
    fn frame_claims(&self, groups: &[Group], claims: &mut MergedClaims) {
        let rules = self.scan.rules;
        for (f, group) in claims.findings.iter_mut().zip(&claims.groups) {
            let group = groups.get(*group);
            let file = group.and_then(|g| g.files.iter().find(|s| Some(s.path()) == f.file()));
            let (Some(file), Some(span)) = (file, f.lines()) else {
                continue;
            };
            if let Some(text) = file.change.text() {
                f.frame = Frames::of(text, rules).around(span);
            }
            let is_part = f.commit.is_some() || group.is_none_or(|g| g.tree.is_none());
            let seen = if is_part { Seen::Part } else { Seen::Net };
            f.suppressed = rules.suppression_of_claim(&file.change, f.rule_id(), span, seen);
        }
    }

    /// Runs the project's tests. Their output is untrusted, and may contain secrets from their
    /// environment.
    async fn test(&self, command: &str) -> TestResults {
        let scan = &self.scan;
        let Some(top) = scan.repo.and_then(Repo::worktree) else {
            return TestResults::not_started("no worktree to run them in".to_owned());
        };
        let deadline = Instant::now() + TESTS;
        let (env, stop) = (self.prepared.world.env, scan.stop);
        let tests = testing::tests(command, top, env, deadline, stop).await;
        TestResults {
            outcome: tests.outcome,
            summary: scan.rules.masked(&tests.summary),
            failing: tests
                .failing
                .iter()
                .map(|name| scan.rules.masked(name))
                .collect(),
            coverage: tests.coverage,
        }
    }

    /// Counts how much of the shown files each backend finished.
    fn account(
        &self,
        groups: &[Group],
        unread: &[RepoPath],
        outcome: &RunOutcome,
        asked: &mut ModelResults,
    ) {
        let mut lost: Vec<(RepoPath, usize)> =
            unread.iter().map(|path| (path.clone(), 0)).collect();
        let (mut files_total, mut long) = (unread.len(), HashSet::new());
        for (g, group) in groups.iter().enumerate() {
            for (f, file) in group.files.iter().enumerate() {
                files_total += 1;
                let is_too_long = !file.cut.is_empty();
                if is_too_long {
                    long.insert((g, f));
                }
                if outcome.unasked || is_too_long || outcome.missed.contains(&(g, f)) {
                    lost.push((file.path().clone(), file.hunks.len()));
                }
            }
        }
        for name in &outcome.models.asked {
            let finished = outcome
                .finished
                .get(name)
                .map_or(0, |all| all.difference(&long).count());
            let share = Share {
                files_reviewed: finished,
                files_total,
            };
            asked.coverage.by_reviewer.insert(name.clone(), share);
        }
        asked.lost = Lost::Files(lost);
    }

    /// Finds the code that is related to a change of the repository.
    fn relate(&self, group: &mut Group) {
        let (Some(repo), Some(state)) = (self.scan.repo, group.tree.clone()) else {
            return;
        };
        let paths = group
            .files
            .iter()
            .filter(|f| f.change.entry.new.is_some())
            .map(|f| f.path().clone());
        let tree = Tree::new(repo, state, self.scan.rules)
            .without_records_of(self.policy())
            .with_new(paths);
        let bare = std::mem::take(&mut group.related.bare);
        let tree = tree.with_symbols(&self.symbols);
        group.related = Related {
            bare,
            ..related::find(group, &tree)
        };
    }
}

/// Returns the worktree files that models see, with the IDs of their content.
fn worktree_files(groups: &[Group]) -> HashMap<RepoPath, ObjectId> {
    let in_worktree = groups
        .iter()
        .filter(|g| g.tree == Some(State::Worktree))
        .flat_map(|g| &g.files);
    in_worktree
        .filter_map(|shown| {
            let new = shown.change.entry.new.as_ref()?;
            Some((new.path.clone(), new.id?))
        })
        .collect()
}

/// Lists the files that could not be searched for related code.
fn unsearched(groups: &[Group]) -> Option<Note> {
    let unread = groups
        .iter()
        .map(|g| &g.related.unread)
        .max_by_key(|unread| unread.count)?;
    let (files, count) = (unread.list()?, unread.count);
    let what = if count == 1 {
        "1 file was".to_owned()
    } else {
        format!("{count} files were")
    };
    let text = format!(
        "{what} not searched for definitions and uses: {files} ({})",
        unread.reason
    );
    Some(Note::general("review", text))
}

/// Returns lines about the findings of the rules, to print while models work.
fn so_far(findings: &[Finding]) -> Vec<Inert> {
    let counting: Vec<&Finding> = findings.iter().filter(|f| f.counts()).collect();
    let mut lines: Vec<Inert> = counting
        .iter()
        .take(SO_FAR)
        .map(|f| {
            let place = finding::place(f.location());
            Inert::new(format!(
                "{place}: {} {} ({})",
                f.severity(),
                f.title(),
                f.rule_id()
            ))
        })
        .collect();
    if counting.len() > SO_FAR {
        lines.push(Inert::new(format!(
            "and {} more by the rules",
            counting.len() - SO_FAR
        )));
    }
    lines
}
