//! Asks models, and runs the project's tests, while the rules scan the change.

use super::frame::Frames;
use super::source::{ChangePart, PartContent};
use super::{Floor, Note, RuleResults, TestResults, World, governing, testing};
use crate::ai::anchor::Sealed;
use crate::ai::debug::Prompts;
use crate::ai::kept::ExcludedFile;
use crate::ai::material::{Group, Shown};
use crate::ai::prompt::{Brief, Rejection};
use crate::ai::related::{self, Bare, Related};
use crate::ai::run::{self, ReviewJob};
use crate::ai::tree::Tree;
use crate::ai::{Models, context};
use crate::context::{self as tickets, GatheredItem};
use crate::diff::{FileChange, ObjectId, RepoPath};
use crate::error::Result;
use crate::finding::{self, Finding};
use crate::git::{Change, Reader, Repo, State};
use crate::policy::Policy;
use crate::request::{Authority, OnIncomplete, Previous, ReviewRequest};
use crate::rules::{RuleSet, Scope, Seen};
use crate::stop::{Signal, Stop};
use crate::symbols;
use crate::untrusted::Inert;
use crate::verdict::{CUT_OFF, Coverage, Lost, Share, Skip, TestOutcome};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

/// Bytes of the files that models see, at most. Files past the limit are listed as not sent.
const MOST: usize = 256 << 20;
/// Bytes of a shown line in addition to its text.
const LINE: usize = 96;
/// Time limit for the project's own tests.
const TESTS: Duration = Duration::from_secs(30 * 60);
/// Findings of the rules that are printed while a model still works, at most.
const SO_FAR: usize = 20;

/// The inputs of a model review.
pub(super) struct Asking<'a> {
    pub(super) request: &'a ReviewRequest,
    pub(super) world: &'a World<'a>,
    pub(super) governing: &'a governing::Governing,
    pub(super) floor: &'a Floor<'a>,
    /// Names of the backends; may be empty.
    pub(super) backends: &'a [String],
    /// The base of the change.
    pub(super) base: &'a State,
    /// The symbols of the files that were parsed in this run.
    pub(super) symbols: Arc<symbols::Cache>,
}

/// The results of a model review.
pub(super) struct ModelResults {
    pub(super) claims: Sealed,
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

impl Default for ModelResults {
    fn default() -> Self {
        Self {
            claims: Sealed::default(),
            beside: Vec::new(),
            coverage: Coverage::default(),
            notes: Vec::new(),
            models: Models::default(),
            tests: None,
            lost: Lost::Files(Vec::new()),
            shown: HashMap::new(),
            context: Vec::new(),
        }
    }
}

/// The parts of the change that models may see.
#[derive(Default)]
struct Gathered {
    groups: Vec<Group>,
    skipped: Vec<(RepoPath, Skip)>,
    failed: Vec<(Option<RepoPath>, String)>,
    /// Files that are not shown, with the limit that was reached.
    cut: Vec<(RepoPath, String)>,
    /// Files of `cut` that are not in a group.
    unread: Vec<RepoPath>,
    bytes: usize,
    /// The limit of `bytes`.
    room: usize,
    deadline: Option<Instant>,
}

impl Asking<'_> {
    /// Returns true if there is work in addition to the rules.
    pub(super) fn is_needed(&self) -> bool {
        !self.floor.parts.is_empty() && (!self.backends.is_empty() || self.test_command().is_some())
    }

    /// Returns true if a model would see any part of the change. Asks no backend, and stops reading
    /// at the first file that would be shown.
    pub(super) fn is_owed(&self) -> bool {
        self.gather(Instant::now() + self.policy().review.timeout, 0)
            .is_owed()
    }

    /// Runs the rules on this thread and asks the models on another one.
    pub(super) fn beside_the_rules(&self) -> Result<(RuleResults, Option<ModelResults>)> {
        let prompts = self
            .request
            .debug_prompts
            .as_deref()
            .map(Prompts::open)
            .transpose()?;
        let (tell, told) = oneshot::channel();
        Ok(std::thread::scope(|s| {
            // Signals have their own thread, because the asking thread has long stretches without
            // an await.
            let (over, ended) = oneshot::channel::<()>();
            s.spawn(|| hear(self.stop(), ended));
            let asking = s.spawn(|| self.ask(prompts.as_ref(), told));
            let found = self.floor.review();
            self.world.progress.so_far(&so_far(&found.findings));
            // The receiver is dropped only if the other thread failed, which it reports itself.
            let _ = tell.send(found.findings.clone());
            let asked = asking.join().unwrap_or_else(|_| {
                let mut asked = ModelResults {
                    lost: Lost::Everything,
                    ..ModelResults::default()
                };
                asked
                    .coverage
                    .failed
                    .push((None, "an internal error ended the model review".to_owned()));
                asked
            });
            drop(over);
            (found, Some(asked))
        }))
    }

    /// Reads the tickets of the change if a backend will be asked.
    fn tickets(&self) -> tickets::Gathered {
        let is_asked =
            !self.backends.is_empty() && self.world.script.is_none() && self.has_entries();
        if is_asked && self.is_owed() {
            super::tickets::gather(self)
        } else {
            tickets::Gathered::default()
        }
    }

    /// Returns true if there are changes; does not read commits for that.
    fn has_entries(&self) -> bool {
        self.floor.parts.iter().any(|part| match &part.content {
            PartContent::Change(change) => !change.entries.is_empty(),
            PartContent::Given(files) => !files.is_empty(),
            PartContent::Commit(_) => true,
        })
    }

    fn policy(&self) -> &Policy {
        &self.governing.policy
    }

    fn stop(&self) -> &Stop {
        self.floor.scan.stop
    }

    fn test_command(&self) -> Option<&str> {
        self.policy()
            .tests
            .command
            .as_deref()
            .filter(|_| self.policy().tests.run)
    }

    /// Returns true if the operator allows tests that a model writes to run. Never in gate mode.
    fn may_run_tests(&self) -> bool {
        let is_gate = self.request.authority == Authority::Base;
        self.policy().tests.reproduce && !is_gate && !self.world.env.is_ci()
    }

    fn ask(
        &self,
        prompts: Option<&Prompts>,
        told: oneshot::Receiver<Vec<Finding>>,
    ) -> ModelResults {
        let runtime = match tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
        {
            Ok(runtime) => runtime,
            Err(e) => return self.failed(format!("no model was asked: {e}")),
        };
        // Blocking: the clients of forges and servers start their own runtimes.
        let given = self.tickets();
        let asked = runtime.block_on(self.work(prompts, told, given));
        // A name lookup cannot be cancelled. Dropping the runtime would wait for it, past the
        // deadline and Ctrl-C.
        runtime.shutdown_background();
        asked
    }

    /// Returns the result if no model can be asked.
    fn failed(&self, why: String) -> ModelResults {
        let mut asked = ModelResults {
            lost: Lost::Everything,
            ..ModelResults::default()
        };
        asked.models.asked = self.backends.to_vec();
        asked.models.owed = true;
        asked.coverage.failed.push((None, why));
        asked
    }

    async fn work(
        &self,
        prompts: Option<&Prompts>,
        told: oneshot::Receiver<Vec<Finding>>,
        given: tickets::Gathered,
    ) -> ModelResults {
        let mut asked = ModelResults {
            context: given.items,
            ..ModelResults::default()
        };
        asked.notes.extend(
            given
                .notes
                .into_iter()
                .map(|text| Note::general("context", text)),
        );
        match self.policy().context.required {
            true => asked
                .coverage
                .failed
                .extend(given.failed.into_iter().map(|text| (None, text))),
            false => asked.notes.extend(
                given
                    .failed
                    .into_iter()
                    .map(|text| Note::general("context", text)),
            ),
        }
        if let Some(command) = self.test_command().filter(|_| self.has_entries()) {
            asked.tests = Some(self.test(command).await);
        }
        if self.backends.is_empty() {
            return asked;
        }
        let deadline = Instant::now() + self.policy().review.timeout;
        let mut gathered = self.gather(deadline, MOST);
        let owed = gathered.is_owed();
        gathered
            .groups
            .iter_mut()
            .for_each(|group| self.relate(group));
        asked.notes.extend(unsearched(&gathered.groups));
        let brief = self.brief(&gathered, &mut asked);
        let Gathered {
            groups,
            skipped,
            failed,
            cut,
            unread,
            ..
        } = gathered;
        asked.coverage.skipped.extend(skipped);
        asked.coverage.failed.extend(failed);
        let scan = &self.floor.scan;
        let job = ReviewJob {
            repo: scan.repo,
            policy: self.policy(),
            rules: scan.rules,
            env: self.world.env,
            progress: self.world.progress,
            stop: self.stop(),
            backends: self.backends,
            cache: self.request.cache,
            is_audit: self.request.is_audit,
            max_tokens: self.request.overrides.max_tokens,
            deadline,
            script: self.world.script,
            may_run_tests: self.may_run_tests(),
            agent: self.world.agent,
            prompts,
            symbols: &self.symbols,
        };
        for side in groups
            .iter()
            .filter(|g| g.tree == Some(State::Worktree))
            .flat_map(|g| &g.files)
        {
            if let Some(new) = &side.change.entry.new
                && let Some(id) = new.id
            {
                asked.shown.insert(new.path.clone(), id);
            }
        }
        let outcome = run::review(&job, &groups, brief, told).await;
        self.account(&groups, &unread, &outcome, &mut asked);
        for (path, limit) in cut.into_iter().chain(outcome.cut) {
            match self.policy().on_truncated {
                OnIncomplete::Warn => asked.coverage.skipped.push((path, Skip::Limit)),
                OnIncomplete::Fail => {
                    asked
                        .coverage
                        .failed
                        .push((Some(path), format!("{CUT_OFF} {limit}")));
                }
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
        let no_conventions = asked.models.no_conventions.take();
        asked.models = Models {
            owed,
            no_conventions,
            ..outcome.models
        };
        asked.claims = outcome.claims;
        for (f, group) in asked.claims.findings.iter_mut().zip(&asked.claims.groups) {
            let group = groups.get(*group);
            let file = group.and_then(|g| g.files.iter().find(|s| Some(s.path()) == f.file()));
            let (Some(file), Some(span)) = (file, f.lines()) else {
                continue;
            };
            if let Some(text) = file.change.text() {
                f.frame = Frames::of(text, scan.rules).around(span);
            }
            let is_part = f.commit.is_some() || group.is_none_or(|g| g.tree.is_none());
            let seen = if is_part { Seen::Part } else { Seen::Net };
            f.suppressed = scan
                .rules
                .suppression_of_claim(&file.change, f.rule_id(), span, seen);
        }
        asked
    }

    /// Runs the project's tests. Their output is untrusted, and may contain secrets from their
    /// environment.
    async fn test(&self, command: &str) -> TestResults {
        let scan = &self.floor.scan;
        let Some(top) = scan.repo.and_then(Repo::worktree) else {
            return TestResults::not_started("no worktree to run them in".to_owned());
        };
        let deadline = Instant::now() + TESTS;
        let tests = testing::tests(command, top, self.world.env, deadline, self.stop()).await;
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
        outcome: &run::RunOutcome,
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

    /// Reads the parts of the change that models may see. Files that cannot be read are reported
    /// here again, after the rules, and deduplicated later.
    fn gather(&self, deadline: Instant, room: usize) -> Gathered {
        let mut out = Gathered {
            deadline: Some(deadline),
            room,
            ..Gathered::default()
        };
        let mut reader = self.floor.scan.repo.map(Repo::reader);
        for part in self
            .floor
            .parts
            .iter()
            .filter(|p| p.scope == Scope::All && !p.is_repeat)
        {
            match (&part.content, reader.as_mut()) {
                (PartContent::Change(change), Some(reader)) => {
                    self.change(part, change, reader, &mut out)
                }
                (PartContent::Commit(id), Some(reader)) => match reader.alone(*id) {
                    Ok(change) => self.change(part, &change, reader, &mut out),
                    Err(e) => out
                        .failed
                        .push((None, format!("commit {}: {e}", id.short()))),
                },
                (PartContent::Given(files), _) => {
                    let mut group = Group {
                        commit: part.commit,
                        tree: None,
                        messages: Vec::new(),
                        files: Vec::new(),
                        related: Related::default(),
                    };
                    for file in files.iter().filter(|f| self.floor.scan.is_wanted(&f.entry)) {
                        match self.is_enough(&out) {
                            Some(why) => out.leave_unread(file.path(), why),
                            None => self.show(file.clone(), None, &mut group, &mut out),
                        }
                    }
                    out.push(group);
                }
                (PartContent::Change(_) | PartContent::Commit(_), None) => {}
            }
        }
        out
    }

    fn change(
        &self,
        part: &ChangePart,
        change: &Change,
        reader: &mut Reader<'_>,
        out: &mut Gathered,
    ) {
        let mut group = Group {
            commit: part.commit,
            tree: Some(change.head.clone()),
            messages: context::messages(reader, change, part.commit, self.floor.scan.rules),
            files: Vec::new(),
            related: Related::default(),
        };
        for index in 0..change.entries.len() {
            let path = change.entries[index].path();
            if !self.floor.scan.is_wanted(&change.entries[index]) {
                continue;
            }
            if let Some(why) = self.is_enough(out) {
                out.leave_unread(path, why);
                continue;
            }
            match self.floor.scan.load(change, index, reader) {
                Ok(file) => {
                    // A given change has no attributes for generated files, and a state that cannot
                    // be read has none either.
                    let generated = reader.generated(&change.base, file.path()).ok().flatten();
                    self.show(file, generated, &mut group, out);
                }
                Err(e) => out.failed.push((Some(path.clone()), e.on_one_line())),
            }
        }
        out.push(group);
    }

    /// Finds the code that is related to a change of the repository.
    fn relate(&self, group: &mut Group) {
        let (Some(repo), Some(state)) = (self.floor.scan.repo, group.tree.clone()) else {
            return;
        };
        let paths = group
            .files
            .iter()
            .filter(|f| f.change.entry.new.is_some())
            .map(|f| f.path().clone());
        let tree = Tree::new(repo, state, self.floor.scan.rules)
            .without_records_of(self.policy())
            .with_new(paths);
        let bare = std::mem::take(&mut group.related.bare);
        let tree = tree.with_symbols(&self.symbols);
        group.related = Related {
            bare,
            ..related::find(group, &tree)
        };
    }

    /// Returns the reason to read nothing more, if there is one.
    fn is_enough(&self, out: &Gathered) -> Option<String> {
        if self.stop().signal().is_some() {
            return Some("the review was stopped".to_owned());
        }
        if out.deadline.is_some_and(|d| Instant::now() >= d) {
            return Some(format!("timeout = {:?}", self.policy().review.timeout));
        }
        (out.bytes > out.room).then(|| format!("more than {} MiB of changed files", out.room >> 20))
    }

    fn show(
        &self,
        file: FileChange,
        generated: Option<bool>,
        group: &mut Group,
        out: &mut Gathered,
    ) {
        let path = file.path().clone();
        if self
            .request
            .brief
            .contract
            .as_ref()
            .is_some_and(|c| c.apart.contains(&path))
        {
            return out.skipped.push((path, Skip::Contract));
        }
        let bare = Bare::of(&file, self.floor.scan.rules);
        match Shown::marked(
            file,
            generated,
            self.floor.scan.rules,
            self.policy(),
            &self.symbols,
        ) {
            Ok(Some(shown)) => {
                out.bytes += size(&shown);
                if let Some(line) = shown.cut.first() {
                    out.cut
                        .push((path, format!("line {line} is too long to be shown")));
                }
                group.files.push(shown);
            }
            Ok(None) => group.related.bare.push(bare),
            Err(why) => out.skipped.push((path, why)),
        }
    }

    /// Builds the context of the prompt, and scans all of it for instructions to the model.
    fn brief(&self, gathered: &Gathered, asked: &mut ModelResults) -> Brief {
        let (scan, request) = (&self.floor.scan, self.request);
        let rules = scan.rules;
        let review = &self.policy().review;
        let paths = gathered
            .groups
            .iter()
            .flat_map(|g| &g.files)
            .map(Shown::path);
        let mut brief = Brief {
            depth: review.depth,
            summary: request
                .brief
                .summary
                .as_deref()
                .map(|s| context::summary(s, rules)),
            focus: review.focus.clone(),
            areas: request
                .brief
                .focus
                .iter()
                .map(|t| context::summary(t, rules))
                .collect(),
            previous: request
                .brief
                .previous
                .iter()
                .map(|p| Previous {
                    text: context::summary(&p.text, rules),
                    ..p.clone()
                })
                .collect(),
            tests: asked.tests.as_ref().map(|t| told(t, rules)),
            kept: gathered
                .skipped
                .iter()
                .map(|(path, why)| ExcludedFile::new(path.clone(), *why, rules))
                .collect(),
            ..Brief::default()
        };
        if let (Some(repo), Some(state)) = (scan.repo, &self.governing.state)
            && !gathered.groups.is_empty()
        {
            let mut reader = repo.reader();
            let found = context::conventions(
                &mut reader,
                state,
                &review.conventions,
                paths.clone(),
                rules,
            );
            asked
                .notes
                .extend(found.notes.into_iter().map(|n| Note::general("review", n)));
            brief.conventions = found.documents;
            asked.models.no_conventions = found.missing;
        }
        let top = scan.repo.and_then(Repo::worktree);
        let found = context::documents(&request.brief.documents, &request.dir, top, rules);
        // The user asked for a review against these documents, so a missing one makes the review
        // incomplete.
        asked
            .coverage
            .failed
            .extend(found.notes.into_iter().map(|n| (None, n)));
        brief.documents = found.documents;

        let beside = &mut asked.beside;
        for entry in self.floor.decisions.rejected_claims(self.floor.today) {
            let Some(path) = entry.path.clone().filter(|_| !entry.line.is_empty()) else {
                continue;
            };
            let file = RepoPath::from(path.as_str());
            rules.scan_beside(
                "the reason of a rejected finding",
                Some(&file),
                entry.reason.as_bytes(),
                beside,
            );
            brief.rejections.push(Rejection {
                path,
                rule: context::summary(&entry.rule, rules),
                line: context::summary(&entry.line, rules),
                reason: context::summary(&entry.reason, rules),
            });
        }
        for d in brief.conventions.iter().chain(&brief.documents) {
            let file = RepoPath::from(d.name.as_str());
            rules.scan_beside(
                "a document that a model is given",
                Some(&file),
                d.text.as_bytes(),
                beside,
            );
        }
        brief.tickets = asked.context.iter().map(super::tickets::document).collect();
        for d in &brief.tickets {
            rules.scan_beside(
                "a ticket that a model is given",
                None,
                d.text.as_bytes(),
                beside,
            );
        }
        if let Some(contract) = &request.brief.contract {
            let document = context::contract(contract, rules);
            // Line numbers in the redacted text are not those of the file.
            rules.scan_beside(
                "the contract of the task",
                None,
                document.text.as_bytes(),
                beside,
            );
            brief.documents.push(document);
            brief.criteria = context::criteria(contract, rules);
        }
        if let Some(text) = &brief.summary {
            rules.scan_beside("the summary of the change", None, text.as_bytes(), beside);
        }
        for text in &brief.areas {
            rules.scan_beside("the review areas", None, text.as_bytes(), beside);
        }
        for message in gathered.groups.iter().flat_map(|g| &g.messages) {
            rules.scan_beside("a commit message", None, message.as_bytes(), beside);
        }
        for path in paths {
            rules.scan_beside("the name of a file", Some(path), path.as_bytes(), beside);
        }
        brief
    }
}

impl Gathered {
    /// Returns true if a model has to see a part of the change, or if that is unknown.
    fn is_owed(&self) -> bool {
        !(self.groups.is_empty() && self.cut.is_empty() && self.failed.is_empty())
    }

    /// Records a file that was not read because of a limit.
    fn leave_unread(&mut self, path: &RepoPath, why: String) {
        self.unread.push(path.clone());
        self.cut.push((path.clone(), why));
    }

    fn push(&mut self, group: Group) {
        if !group.files.is_empty() {
            self.groups.push(group);
        }
    }
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

/// Returns the summary of the tests for the prompt.
fn told(tests: &TestResults, rules: &RuleSet) -> String {
    let text = match tests.outcome {
        TestOutcome::Passed | TestOutcome::Failed => {
            format!("{}: {}", tests.outcome.name(), tests.summary)
        }
        _ => format!("not finished: {}", tests.summary),
    };
    context::summary(&text, rules)
}

/// Returns the approximate memory of a shown file: both of its sides, and its lines.
fn size(file: &Shown) -> usize {
    let sides = file
        .change
        .text()
        .map_or(0, |t| t.old.size() + t.new.size());
    sides
        + file
            .hunks
            .iter()
            .flat_map(|h| &h.lines)
            .map(|l| l.text.len() + LINE)
            .sum::<usize>()
}

/// Runs `work` with a thread that turns signals into a stop.
pub(crate) fn heard<T: Send>(stop: &Stop, work: impl FnOnce() -> T) -> T {
    std::thread::scope(|s| {
        let (over, ended) = oneshot::channel::<()>();
        s.spawn(|| hear(stop, ended));
        let done = work();
        drop(over);
        done
    })
}

/// Stops the run on a signal, until `over` is closed.
///
/// If the handlers cannot be installed, signals keep their default action and end the process.
pub(super) fn hear(stop: &Stop, over: oneshot::Receiver<()>) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
    runtime.block_on(async {
        let signals = [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .map(signal);
        let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals else {
            return;
        };
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = &mut over => return,
                _ = interrupt.recv() => stop.now(Signal::Interrupt),
                _ = terminate.recv() => stop.now(Signal::Terminate),
                _ = hangup.recv() => stop.now(Signal::Terminate),
            }
        }
    });
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
