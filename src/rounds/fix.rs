//! Fixes findings: plans, executes in a private copy, verifies, and merges into the worktree.
//!
//! A model proposes and writes; this module decides. Nothing is written to the worktree before
//! [`Fixing::write`], and every attempt is stored, including failed and interrupted ones.

mod allowance;
mod attempts;
mod choice;
mod copy;
pub mod guard;
mod questions;
mod refusals;
mod testing;
mod verdict;

pub use choice::Chosen;

use super::apply::{Edits, Rewrite, Target};
use super::decide::{self, list};
use super::reviewed::reviewed_files;
use super::worktree;
use crate::ai::redact;
use crate::ai::run::{Consulted, Question, WorktreeAccess};
use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::history::{Progress, SessionId, Store};
use crate::policy::glob::Globs;
use crate::policy::{Policy, RulesPolicy};
use crate::progress::WithoutFindings;
use crate::request::{CacheUse, ReviewRequest, Source};
use crate::review::{self, Consultation, StoreLocation, World};
use crate::rules::RuleSet;
use crate::shell;
use crate::wire;
use crate::wire::fixing::{AttemptVerdict, FixOutcome, StoredFix, StoredPlan, StoredStep};
use crate::wire::stored::Session;
use allowance::Allowance;
use choice::{chosen, why_done};
use copy::Copy;
use guard::{ChangedFile, GuardContext};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use verdict::Verification;

/// The findings to fix, and the limits.
#[derive(Clone, Debug)]
pub struct FixAsk {
    /// Folder, policy file, backends and limits. Its source is ignored.
    pub request: ReviewRequest,
    pub session: SessionId,
    /// IDs or prefixes of fingerprints; if empty, the accepted findings, or else the blocking ones.
    pub findings: Vec<String>,
    /// Path patterns of checks that a person allows to change.
    pub allowed: Vec<String>,
    /// Command-line flags, unquoted: commands in hints repeat them.
    pub flags: Vec<String>,
    /// `cli` or `mcp`.
    pub via: &'static str,
}

impl FixAsk {
    /// Returns the command that fixes findings of the session, with the user's flags. Without
    /// findings, the command chooses them.
    fn command(&self, findings: &[String]) -> String {
        let session = ["--session".to_owned(), self.session.to_string()];
        let words = findings.iter().chain(&session).chain(&self.flags);
        format!(
            "{} fix {}",
            crate::NAME,
            words
                .map(|w| shell::quoted(w))
                .collect::<Vec<_>>()
                .join(" ")
        )
    }
}

/// The result of the attempts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The change is verified. The notes list unchecked parts.
    Verified(Vec<String>),
    /// No attempt was verified; with the reasons of the last one.
    Failed(AttemptVerdict, Vec<String>),
    /// A signal ended the run.
    Interrupted,
}

/// A fix in progress.
#[derive(Debug)]
pub struct Fixing {
    ask: FixAsk,
    place: StoreLocation,
    store: Store,
    session: Session,
    policy: Policy,
    env: Env,
    rules: RuleSet,
    /// Copy of the worktree at the start of the fix.
    base: Copy,
    findings: Vec<wire::Finding>,
    /// Reasons why findings that were not named are left out.
    left_out: Vec<String>,
    chosen: Chosen,
    allowed: Globs,
    around: GuardContext,
    /// Command or step that adds the fix to the session as its next round.
    next_round: String,
    allowance: Allowance,
    fix: StoredFix,
    changes: Vec<ChangedFile>,
    /// Forbidden paths that the last attempt changed.
    refused: Vec<String>,
    /// Whether all backends refused the last attempt for a permanent reason.
    is_refused_for_good: bool,
    /// Fingerprints of findings in the worktree before the fix.
    known: BTreeSet<String>,
}

impl Fixing {
    /// Opens the session, chooses the findings and copies the worktree.
    ///
    /// # Errors
    /// Usage: an unknown session or finding, nothing to fix, a closed session, an invalid pattern.
    /// Incomplete: the worktree cannot be copied.
    pub fn open(ask: FixAsk, world: &World<'_>) -> Result<Self> {
        let (place, policy) = review::store_location(&ask.request, world.env)?;
        let id = ask.session;
        let store = Store::find(&place)?.ok_or_else(|| worktree::not_found(&id))?;
        let session = store.session(&id)?;
        let repo = Repo::open(&ask.request.dir, world.env)?;
        let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
        let here = decide::Here {
            repo: &repo,
            place: &place,
            store: &store,
            rules: &rules,
            env: world.env,
            now: world.now,
        };
        let (findings, chosen) = chosen(&list(&here, &session)?, &ask)?;
        let allowed =
            Globs::new(&ask.allowed).map_err(|e| Error::usage(format!("--allow: {e}")))?;
        let base = Copy::of_worktree(&repo, world.env, world.stop)?;
        let around = surroundings(&repo, &policy, &base);
        let next_round = worktree::next_round(&session, &repo);
        let allowance = Allowance::new(&policy, &ask.request.overrides);
        let fix = StoredFix::new(
            ask.via,
            findings.iter().map(|f| f.id.clone()).collect(),
            world.now,
        );
        let mut fixing = Self {
            env: world.env.clone(),
            known: BTreeSet::new(),
            changes: Vec::new(),
            refused: Vec::new(),
            is_refused_for_good: false,
            ask,
            place,
            store,
            session,
            policy,
            rules,
            base,
            findings,
            left_out: Vec::new(),
            chosen,
            allowed,
            around,
            next_round,
            allowance,
            fix,
        };
        // Without backends: findings already in the worktree do not count against the fix. Fails if
        // the session cannot be followed.
        let before = fixing.review(&fixing.base, true, world)?;
        fixing.known = before.findings().map(|f| f.fingerprint.clone()).collect();
        fixing.refuse_done(&before, &repo)?;
        Ok(fixing)
    }

    /// Rejects findings that the worktree no longer has, before any model request. Findings that
    /// were not named are left out instead.
    fn refuse_done(&mut self, before: &Verification, repo: &Repo) -> Result<()> {
        let files = reviewed_files(&self.store, &self.session);
        let has_lines: Vec<bool> = self
            .findings
            .iter()
            .map(|f| worktree::has_lines(repo, &files, f))
            .collect();
        if has_lines.contains(&false)
            && let Some(commit) =
                worktree::elsewhere(&self.session, repo, self.place.branch.as_deref())
        {
            return Err(worktree::not_checked_out(&self.session, commit));
        }
        let fixed = before.fixed(&self.findings);
        let (open, done): (Vec<_>, Vec<_>) = self
            .findings
            .iter()
            .zip(&has_lines)
            .partition(|(f, has_lines)| **has_lines && !fixed.contains(&f.id));
        let open: Vec<wire::Finding> = open.into_iter().map(|(f, _)| f.clone()).collect();
        if !done.is_empty() && (self.chosen == Chosen::Named || open.is_empty()) {
            let reasons: Vec<String> = done.iter().map(|(f, _)| why_done(f, &fixed)).collect();
            let error = Error::usage(reasons.join("; "));
            let error = match open.is_empty() {
                true => error,
                false => {
                    let ids = open.iter().map(|f| f.id.clone()).collect::<Vec<_>>();
                    let agent = format!("leave them out of findings: name only {}", ids.join(", "));
                    error
                        .hint_person(format!("to fix the others: {}", self.ask.command(&ids)))
                        .hint_agent(agent)
                }
            };
            return Err(error
                .hint_person(worktree::next_round(&self.session, repo))
                .hint_agent(worktree::next_round_of_agent(&self.session, repo)));
        }
        self.left_out = done.iter().map(|(f, _)| why_done(f, &fixed)).collect();
        self.findings = open;
        self.fix.findings = self.findings.iter().map(|f| f.id.clone()).collect();
        Ok(())
    }

    /// Returns the findings to fix, and the reason for their choice.
    pub fn findings(&self) -> (&[wire::Finding], Chosen) {
        (&self.findings, self.chosen)
    }

    /// Returns the reasons why findings that were not named are left out.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Returns the instruction that adds the fix to the session as its next round.
    pub fn next_round(&self) -> String {
        self.next_round.clone()
    }

    /// Returns the ID of the session.
    pub fn session(&self) -> SessionId {
        self.ask.session
    }

    /// Returns the stored fix.
    pub fn stored(&self) -> &StoredFix {
        &self.fix
    }

    /// Returns the plan as text.
    pub fn plan_text(&self) -> String {
        self.fix
            .plan
            .as_ref()
            .map(questions::plan_text)
            .unwrap_or_default()
    }

    /// Returns the forbidden paths that the last attempt changed.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }

    /// Returns true if a backend is configured.
    pub fn has_backend(&self) -> bool {
        !self.backends().is_empty()
    }

    /// Returns the current numbered lines around a finding with secrets masked; empty if there are
    /// none.
    pub fn code(&self, finding: &wire::Finding) -> String {
        let path = finding
            .file
            .as_deref()
            .map(RepoPath::from)
            .filter(|p| !redact::is_sensitive(p));
        let bytes = path.and_then(|p| self.base.read(&p).ok().flatten());
        let (Some(bytes), Some(line)) = (bytes, finding.line) else {
            return String::new();
        };
        let text = redact::text(&self.rules, &bytes).text;
        let first = (line as usize).saturating_sub(AROUND).max(1);
        let last = finding
            .end_line
            .unwrap_or(line)
            .min(line.saturating_add(40)) as usize
            + AROUND;
        let lines = text
            .lines()
            .enumerate()
            .skip(first - 1)
            .take(last + 1 - first);
        lines
            .map(|(i, line)| format!("{} {line}\n", i + 1))
            .collect()
    }

    /// Returns the paths that may not be changed without a person's consent, each with the reason.
    pub fn forbidden<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p str>,
    ) -> Vec<(String, &'static str)> {
        paths
            .into_iter()
            .filter_map(|path| self.forbidden_path(&RepoPath::from(path)))
            .collect()
    }

    /// Returns a path with the reason why it may not be changed, or `None` if it may.
    fn forbidden_path(&self, path: &RepoPath) -> Option<(String, &'static str)> {
        let class = guard::class_of(path, &self.around).filter(|_| !self.allowed.matches(path))?;
        Some((path.to_wire(), class))
    }

    /// Requests a plan, and stores it.
    ///
    /// # Errors
    /// Usage: no backend. Incomplete: no backend replied, or a limit was reached.
    pub fn plan(&mut self, world: &World<'_>) -> Result<()> {
        if !self.has_backend() {
            let error = Error::usage("no backend is configured to plan a fix");
            return Err(error
                .hint_person(format!(
                    "name one: {} --backend claude",
                    self.ask.command(&self.ask.findings)
                ))
                .hint_person(
                    "or write a replacement without a model: claude-reviewer apply --all-safe",
                )
                .hint_agent("fix the finding yourself, then call verify_fix"));
        }
        let question = questions::plan(&self.findings, &self.ask.allowed, &self.rules);
        let consulted = self.consult(&question, false, world)?;
        let Some((backend, plan)) = consulted.answer else {
            self.end(if consulted.stopped {
                FixOutcome::Interrupted
            } else {
                FixOutcome::Failed
            })?;
            return Err(self.unanswered("no plan was made", &consulted.failed));
        };
        let steps = plan.steps.iter().map(|s| StoredStep {
            text: self.rules.masked(&s.text),
            files: s.files.iter().map(|f| self.rules.masked(f)).collect(),
        });
        let (steps, summary) = (steps.collect(), self.rules.masked(&plan.summary));
        self.fix.plan = Some(StoredPlan {
            backend,
            summary,
            steps,
            edited: false,
        });
        self.keep(FixOutcome::Planned)
    }

    /// Replaces the plan with the one that a person edited.
    ///
    /// # Errors
    /// Incomplete: it cannot be stored.
    pub fn set_plan(&mut self, text: &str) -> Result<()> {
        if let Some(plan) = &mut self.fix.plan {
            plan.edited = true;
            plan.summary = self.rules.masked(text.trim());
            plan.steps.clear();
        }
        self.keep(FixOutcome::Planned)
    }

    /// Stores the outcome of the fix.
    ///
    /// # Errors
    /// Incomplete: it cannot be stored.
    pub fn end(&mut self, outcome: FixOutcome) -> Result<()> {
        self.store(outcome, Progress::Ended)
    }

    /// Stores the current state of the fix.
    fn keep(&mut self, outcome: FixOutcome) -> Result<()> {
        self.store(outcome, Progress::Open)
    }

    /// Stores the fix with an outcome.
    fn store(&mut self, outcome: FixOutcome, progress: Progress) -> Result<()> {
        self.fix.outcome = outcome;
        self.fix = self
            .store
            .record_fix(&self.ask.session, self.fix.clone(), progress)?;
        Ok(())
    }

    /// Returns the backends of the fix, which the request names, or else the policy.
    fn backends(&self) -> Vec<String> {
        match (&self.ask.request.backends, &self.policy.fix.backend) {
            (named, _) if !named.is_empty() => named.clone(),
            (_, Some(backend)) => vec![backend.clone()],
            (_, None) => self.policy.review.backends.clone(),
        }
    }

    /// Sends a question to a model, about the worktree at the start of the fix.
    fn consult<T: Send>(
        &mut self,
        question: &Question<T>,
        is_editable: bool,
        world: &World<'_>,
    ) -> Result<Consulted<T>> {
        let mut request = self.request(&self.base);
        (request.backends, request.cache) = (self.backends(), CacheUse::Refused);
        let world = World {
            env: self.base.env(),
            ..*world
        };
        let around = WorktreeAccess {
            new: self.base.new_files().to_vec(),
            is_editable,
        };
        let consulted =
            Consultation::open(&request, &world)?.ask_around(question, Some(&around), &world)?;
        let consulted =
            consulted.ok_or_else(|| Error::usage("no backend is configured to write a fix"))?;
        self.allowance
            .spend(consulted.usage.iter().map(|u| u.spent));
        Ok(consulted)
    }

    /// Reviews a copy as a follow-up of the session. Stores nothing.
    fn review(&self, copy: &Copy, is_offline: bool, world: &World<'_>) -> Result<Verification> {
        let mut request = self.request(copy);
        let repo = Repo::open(self.base.top(), self.base.env())?;
        request.source = Source::Changes {
            base: worktree::base(&self.session.request, &repo),
        };
        request.offline = is_offline;
        if self.policy.review.backends.is_empty() && !is_offline {
            request.backends.clone_from(&self.ask.request.backends);
        }
        request.files = worktree::files(&self.session);
        let progress = WithoutFindings(world.progress);
        let world = World {
            env: copy.env(),
            progress: &progress,
            ..*world
        };
        let ask = super::Ask {
            request,
            follow_up: Some(self.ask.session),
            response: None,
            save: super::Save::No,
            pull: None,
            via: self.ask.via,
        };
        Ok(Verification::new(super::review(&ask, &world)?))
    }

    /// Returns the request for a copy, with the remaining limits.
    fn request(&self, copy: &Copy) -> ReviewRequest {
        let asked = &self.ask.request;
        let mut request = ReviewRequest {
            dir: copy.top().to_owned(),
            store_of: Some(self.place.top.clone()),
            backends: Vec::new(),
            files: Vec::new(),
            source: Source::Auto,
            config: asked.config.as_ref().map(|c| asked.dir.join(c)),
            ..asked.clone()
        };
        self.allowance.bound(&mut request.overrides);
        request
    }

    /// Returns the verified change as a patch for the worktree at the start of the fix.
    pub fn patch(&self) -> Vec<u8> {
        edits_of(&self.changes).patch()
    }

    /// Returns the verified change for display: secrets are masked.
    pub fn shown_patch(&self) -> String {
        edits_of(&self.changes).masked_patch(&self.rules)
    }

    /// Returns the top of the worktree.
    pub fn top(&self) -> &Path {
        &self.place.top
    }

    /// Merges the verified change with the current worktree, and writes it. The index is not
    /// changed.
    ///
    /// # Errors
    /// Usage: a conflict; nothing is written. Incomplete: a file cannot be written.
    pub fn write(&mut self) -> Result<Vec<String>> {
        let repo = Repo::open(&self.place.top, self.base.env());
        let target = repo.and_then(|repo| Target::of(&repo, &self.place.top));
        let edits =
            target.and_then(|target| Edits::of_rewrites(&target, self.changes.iter().map(rewrite)));
        let written = edits.and_then(|edits| {
            edits.write()?;
            Ok(edits.paths().map(RepoPath::to_wire).collect())
        });
        let outcome = match &written {
            Ok(_) => FixOutcome::Applied,
            Err(_) => FixOutcome::Conflict,
        };
        self.end(outcome)?;
        written
    }

    /// Returns the error for a question that no backend answered.
    fn unanswered(&self, what: &str, failed: &[String]) -> Error {
        let why: Vec<String> = failed.iter().map(|f| self.rules.masked(f)).collect();
        Error::incomplete(format!("{what}: {}", why.join("; ")))
            .hint_person("check the backends: claude-reviewer doctor")
    }
}

/// Collects the facts about the repository that the guard needs.
fn surroundings(repo: &Repo, policy: &Policy, base: &Copy) -> GuardContext {
    let named = policy.rules.paths.iter().chain(&policy.review.conventions);
    let top = repo
        .worktree()
        .map(|top| top.canonicalize().unwrap_or_else(|_| top.to_owned()));
    let hooks = repo.hooks().ok().filter(|hooks| hooks.configured.is_some());
    let around = GuardContext {
        of_policy: named
            .cloned()
            .chain([policy.history.path.clone()])
            .collect(),
        of_hooks: hooks
            .and_then(|hooks| below(top.as_ref()?, &hooks.path))
            .into_iter()
            .collect(),
        tree: base.files().clone(),
        ..GuardContext::default()
    };
    around.with_scripts(
        &|path| base.read(path).ok().flatten(),
        policy.tests.command.as_deref(),
    )
}

/// Returns a path relative to a folder, or `None` if it is not below it.
fn below(top: &Path, path: &Path) -> Option<String> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Some(path.strip_prefix(top).ok()?.to_str()?.to_owned())
}

/// Lines around a finding.
const AROUND: usize = 4;

/// Returns a fix as edits of the worktree at its start, for a patch.
fn edits_of(changes: &[ChangedFile]) -> Edits {
    let place = PathBuf::new();
    Edits::unmerged(&place, changes.iter().map(rewrite))
}

/// Returns a change of the copy as a rewrite of the worktree.
fn rewrite(change: &ChangedFile) -> Rewrite {
    Rewrite {
        path: change.path.clone(),
        base: change.before.clone(),
        after: change.after.clone(),
    }
}
