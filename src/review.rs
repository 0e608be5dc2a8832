//! The path that every review takes: the change, policy, rules, verdict.
//!
//! There is exactly one [`run`]. The command line, the hooks and MCP build a
//! [`ReviewRequest`](crate::request::ReviewRequest) and call it.

mod consult;
pub(crate) mod decided;
mod ends;
mod files;
mod frame;
mod governing;
mod models;
mod pins;
mod place;
mod record;
pub(crate) mod remembered;
mod scan;
mod source;
mod testing;
mod tickets;

use crate::ai::agent::{self, Agent};
use crate::ai::{Models, Script};
use crate::context::{GatheredItem, Trackers};
use crate::diff::{FileChange, LineNo, ObjectId, RepoPath};
use crate::disposition::DecisionEntries;
use crate::env::Env;
use crate::error::{Error, ExitStatus, Result};
use crate::finding::listing::{Counted, Floor as Listing, Unlisted, text_of};
use crate::finding::{Finding, Location, Origin, Waiver, arrange};
use crate::git::{Repo, State};
use crate::hooks::Hook;
use crate::log::Phases;
use crate::policy::{self, AgentReview, HookMode, Layer, Policy, Waive};
use crate::progress::Progress;
use crate::request::{Authority, Checkout, Fetching, OnBlock, ReviewRequest, Source};
use crate::rules::{RuleSet, Scope, Suppressions};
use crate::stop::{Signal, Stop};
use crate::verdict::{Coverage, Lost, Outcome, Share, TestOutcome, Verdict, exit_status, judge};
pub use consult::Consultation;
pub(crate) use files::Files;
pub(crate) use governing::team::team_rules;
use models::ModelResults;
pub(crate) use models::heard;
pub use place::{Remote, StoreLocation, place, remotes};
pub use record::{Numbers, Record, Run};
use record::{RecordPiece, Recorder};
use scan::{RuleScan, Scanned};

pub(crate) use scan::SCAN_STACK;
use source::ChangePart;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A finished review, as reports, history and MCP show it.
#[derive(Clone, Debug)]
pub struct Review {
    pub source: SourceInfo,
    pub outcome: Outcome,
    pub verdict: Verdict,
    pub exit: ExitStatus,
    /// In the order of [`crate::finding::arrange`], including suppressed and waived findings.
    pub findings: Vec<Finding>,
    /// Number of findings that are not listed. The verdict counts them.
    pub unlisted: Unlisted,
    pub notes: Vec<Note>,
    pub coverage: Coverage,
    pub stat: Stat,
    /// First changed line, for formats that require a location for every finding.
    pub first_change: Option<Location>,
    pub policy: PolicyInfo,
    /// Decisions of people, which also apply to findings that are added later.
    pub decisions: Decisions,
    /// Effective policy, for judging again.
    pub judged_by: Box<Policy>,
    pub rules_hash: String,
    /// True if no backend was configured, so that only the rules reviewed.
    pub rules_only: bool,
    pub models: Models,
    /// Tickets and pages that the models received.
    pub context: Vec<GatheredItem>,
    /// `None` if no tests were run.
    pub tests: Option<TestResults>,
    pub timestamp: jiff::Timestamp,
    pub duration: Duration,
    /// Location in which this review may be stored. `None`: there is no worktree.
    pub place: Option<StoreLocation>,
    /// True if a commit other than the reviewed one is checked out, and the worktree lacks lines of
    /// findings that have replacements.
    pub is_elsewhere: bool,
    /// The change as text, if the request asks for it.
    pub record: Option<Record>,
    /// Numbers of the shown lines of files whose text is not recorded because their names mark them
    /// as secret.
    pub unrecorded: Vec<Numbers>,
    /// Session in which this review is stored. `None`: the review is not stored.
    pub session: Option<SessionRef>,
}

/// The decisions of people that a review applies.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    entries: DecisionEntries,
    /// Reviewed states, by the commit of the findings.
    states: Vec<(Option<ObjectId>, State)>,
}

/// Line counts of a change. They include all scanned files, also files whose text is not shown to
/// models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    pub added: usize,
    pub removed: usize,
    /// Shown lines on the new side, including context lines.
    pub shown: usize,
}

impl Stat {
    pub(crate) fn of<'f>(files: impl IntoIterator<Item = &'f FileChange>) -> Self {
        let mut out = Self::default();
        files.into_iter().for_each(|f| out.count(f));
        out
    }

    fn count(&mut self, file: &FileChange) {
        for hunk in file.text().iter().flat_map(|t| &t.hunks) {
            self.shown += hunk.new.count as usize;
            self.added += hunk
                .edits
                .iter()
                .map(|e| e.new.count as usize)
                .sum::<usize>();
            self.removed += hunk
                .edits
                .iter()
                .map(|e| e.old.count as usize)
                .sum::<usize>();
        }
    }

    fn add(&mut self, other: Self) {
        self.added += other.added;
        self.removed += other.removed;
        self.shown += other.shown;
    }
}

/// A round of a stored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRef {
    pub id: String,
    /// Counted from 1.
    pub round: u32,
}

/// The origin of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    Staged,
    Unstaged,
    #[default]
    Changes,
    Commit,
    Branch,
    Patch,
    Code,
    /// A proposal to merge, on a forge.
    Pr,
}

impl SourceKind {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Staged => "staged",
            Self::Unstaged => "unstaged",
            Self::Changes => "changes",
            Self::Commit => "commit",
            Self::Branch => "branch",
            Self::Patch => "patch",
            Self::Code => "code",
            Self::Pr => "pr",
        }
    }
}

/// The reviewed change, in the words of reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceInfo {
    pub kind: SourceKind,
    /// Full object ID, if there is one.
    pub base: Option<String>,
    pub head: Option<String>,
    pub tree: Option<String>,
    /// The tree with which the change is compared.
    pub base_tree: Option<String>,
    /// For people: `commit 1a2b3c4d5e6f`, `branch HEAD against origin/main`, `3 commits of a..b`.
    pub label: String,
}

/// The origin of the effective policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyInfo {
    /// `worktree`, `head`, `base@<id>`, `user`, `flag`, `default`.
    pub origin: String,
    /// Hash of the effective policy: 16 hexadecimal digits.
    pub hash: String,
}

/// The outcome of the project's own tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestResults {
    pub outcome: TestOutcome,
    /// One line: the totals that the tests print, and the outcome of the command unless it
    /// succeeded.
    pub summary: String,
    pub failing: Vec<String>,
    /// Coverage in the format of the tests: `92%`.
    pub coverage: Option<String>,
}

/// A message to the reader of a report that is not a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub file: Option<RepoPath>,
    pub line: Option<LineNo>,
    pub text: String,
    /// `rules`, `policy`, `git`, or a backend's name.
    pub origin: String,
}

impl Note {
    /// Makes a note about the review as a whole.
    pub fn general(origin: &str, text: impl Into<String>) -> Self {
        Self {
            file: None,
            line: None,
            text: text.into(),
            origin: origin.to_owned(),
        }
    }
}

/// The environment of a review, which is not part of the request.
#[derive(Clone, Copy)]
pub struct World<'a> {
    pub env: &'a Env,
    pub progress: &'a dyn Progress,
    pub now: jiff::Timestamp,
    /// Ends the review early. While models are asked, signals to the process also end it.
    pub stop: &'a Stop,
    /// Replies that replace those of all backends, for the program's self-test.
    pub script: Option<&'a Script>,
    /// The author's own agent, which is asked in place of the backends.
    pub agent: Option<&'a Agent>,
    /// Reads issues of forges for models. `None`: no forge is contacted.
    pub trackers: Option<&'a dyn Trackers>,
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Reviews the requested change.
///
/// # Errors
///
/// `Usage` for invalid input of the caller (no repository, an unknown reference, a malformed
/// policy); `Incomplete` if the change cannot be read at all. If only a part of the change cannot
/// be read, the coverage states that instead.
pub fn run(request: &ReviewRequest, world: &World<'_>) -> Result<Review> {
    match &request.source {
        // A program that fetches has its own process group, so Ctrl-C reaches it only through this
        // process.
        Source::Ends(ends) if ends.fetching == Fetching::Missing => {
            models::heard(world.stop, || review(request, world))
        }
        _ => review(request, world),
    }
}

fn review(request: &ReviewRequest, world: &World<'_>) -> Result<Review> {
    let started = Instant::now();
    let mut phases = Phases::start();
    let waivers = policy::waivers(&request.waivers, world.env)?;
    let resolved = source::resolve(request, world)?;
    phases.end("resolve the change");
    let mut notes = Vec::new();
    let mut governing = governing::load(request, world.env, &resolved, &mut notes)?;
    if request.hook == Some(Hook::PostCommit) {
        // The worktree may differ from the commit.
        governing.policy.tests.run = false;
    }
    let without_command = tests_without_command(&governing.policy, &mut notes);
    let untested = leave_untested(request, &mut governing.policy);
    notes.splice(0..0, resolved.notes);
    let policy = &governing.policy;
    if let Some(name) = request
        .backends
        .iter()
        .find(|b| policy.backend(b).is_none())
    {
        let known: Vec<_> = policy.backends.iter().map(|b| b.name.as_str()).collect();
        let error = Error::usage(format!("unknown backend {name}"));
        return Err(error.hint(format!("policy knows {}", known.join(", "))));
    }

    let mode = request.hook.map(|h| match h {
        Hook::PreCommit => policy.hooks.pre_commit,
        Hook::PrePush => policy.hooks.pre_push,
        // The starter of this hook has already checked the policy.
        Hook::PostCommit => HookMode::Full,
    });
    phases.end("load the policy");
    let mut parts = resolved.parts;
    if mode == Some(HookMode::Off) {
        notes.push(Note::general(
            "policy",
            "hook disabled by the policy: nothing was reviewed",
        ));
        parts.clear();
    }

    let rules = RuleSet::new(&policy.rules, &governing.team_rules)?
        .with_suppressions(Suppressions {
            honour_added: request.authority == Authority::Worktree,
        })
        .with_pins(pins::known(resolved.repo.as_ref(), &resolved.base, &parts));
    let files = Files::new(
        (request.files_name, &request.files),
        &request.dir,
        resolved.repo.as_ref().and_then(Repo::worktree),
        &rules,
    )?;
    // The first round of a session checked these files, and some of them may no longer exist.
    if request.brief.previous.is_empty() {
        files.refuse_unknown(&rules, resolved.repo.as_ref(), &parts)?;
    }
    let backends = if request.backends.is_empty() {
        &policy.review.backends
    } else {
        &request.backends
    };
    if let (true, Some(flag)) = (backends.is_empty(), request.model_flags.first()) {
        return Err(without_backend(flag));
    }
    let stop = world.stop;
    let recorder = request.record.then(Recorder::new).transpose()?;
    let place = resolved
        .repo
        .as_ref()
        .and_then(|repo| StoreLocation::of(repo, policy, request, world.env));
    let decisions = decided::load(
        (resolved.repo.as_ref(), request.authority),
        &decided::Bases {
            base: &resolved.base,
            others: &resolved.other_bases,
            further: source::further_bases(&parts),
            tip: resolved.tip.as_ref(),
            parts: &parts,
        },
        governing.state.as_ref(),
        place.as_ref(),
        &mut notes,
    )?;
    let top = resolved.repo.as_ref().and_then(Repo::worktree);
    let may_remember = request.authority != Authority::Base && !decisions.is_empty();
    if may_remember {
        remembered::recall(world.env, top, world.now);
    } else if request.authority == Authority::Base {
        remembered::forget();
    }
    let states = decided::states(resolved.repo.as_ref(), &parts);
    let floor = Floor {
        scan: scan::RuleScan {
            repo: resolved.repo.as_ref(),
            rules: &rules,
            authority: request.authority,
            policy,
            files: &files,
            progress: world.progress,
            jobs: request.overrides.jobs,
            stop,
            recorder: recorder.as_ref(),
        },
        parts: &parts,
        waivers: &waivers,
        decisions: &decisions,
        today: today(world.now),
        env: world.env,
    };
    let author = [agent::NAME.to_owned()];
    let ask = match world.agent {
        _ if request.offline || mode == Some(HookMode::Rules) => &[][..],
        Some(_) => &author,
        None => backends,
    };
    let asking = models::Asking {
        request,
        world,
        governing: &governing,
        floor: &floor,
        backends: ask,
        base: &resolved.base,
        symbols: Arc::default(),
    };
    phases.end("compile the rules");
    let (found, asked) = if asking.is_needed() {
        asking.beside_the_rules()?
    } else {
        (floor.review(), None)
    };
    phases.end(if asked.is_some() {
        "scan and ask"
    } else {
        "scan"
    });
    let RuleResults {
        mut findings,
        unlisted,
        mut coverage,
        stat,
        first_change,
        notes: said,
        seen,
        mut pieces,
    } = found;
    notes.extend(said);
    // Ignored and binary files are counted, but none of their content was read.
    let nothing = coverage.files_reviewed == 0 && findings.is_empty() && coverage.is_complete();
    let of_rules = Share {
        files_reviewed: coverage.files_reviewed,
        files_total: coverage.files_total,
    };
    coverage
        .by_reviewer
        .insert(Origin::Rules.name().to_owned(), of_rules);
    coverage.hunks_by_rules = coverage.hunks_reviewed;
    let (mut models, mut tests, mut context) = (Models::default(), None, Vec::new());
    if request.offline && !nothing && !backends.is_empty() && mode != Some(HookMode::Rules) {
        // Names, modes, binary files and generated files are not shown to models, so a backend owes
        // no reply for them.
        models.owed = models::Asking { backends, ..asking }.is_owed();
        for name in backends.iter().filter(|_| models.owed) {
            coverage.failed.push((None, not_asked(name)));
            coverage.by_reviewer.insert(
                name.clone(),
                Share {
                    files_reviewed: 0,
                    ..of_rules
                },
            );
        }
        if models.owed {
            coverage.lose(Lost::Everything);
        }
    }
    if let Some(asked) = asked {
        let ModelResults {
            claims,
            coverage: c,
            notes: said,
            models: did,
            tests: results,
            beside,
            lost,
            shown,
            context: given,
        } = asked;
        context = given;
        claims.tell(&mut findings);
        // The worktree is read twice: first for the rules, then for the models.
        coverage.lose(lost);
        let changed = seen
            .into_iter()
            .filter(|(path, id)| shown.get(path).is_some_and(|theirs| theirs != id));
        for (path, _) in changed {
            coverage.failed.push((
                Some(path),
                "it changed while it was reviewed; run the review again".to_owned(),
            ));
        }
        findings.extend(claims.findings);
        findings.extend(beside);
        findings = arrange(findings);
        waive(
            &mut findings,
            &waivers,
            &actor(world.env, resolved.repo.as_ref()),
        );
        decided::mark(
            &decisions,
            &mut findings,
            resolved.repo.as_ref(),
            &states,
            today(world.now),
        );
        coverage.add(c);
        notes.extend(said);
        models = Models {
            owed: models.owed || did.owed,
            ..did
        };
        tests = results;
    }
    if may_remember {
        remembered::save(world.env, top);
    }
    if world.agent.is_some() && models.owed {
        notes.push(Note::general(
            agent::NAME,
            "the author's own agent reviewed this change",
        ));
        let required = if policy.mcp.agent_review == AgentReview::Counts {
            &[][..]
        } else {
            backends
        };
        for name in required {
            coverage.failed.push((
                None,
                format!("backend {name} was not asked: the author's own agent reviewed"),
            ));
            coverage.by_reviewer.insert(
                name.clone(),
                Share {
                    files_reviewed: 0,
                    ..of_rules
                },
            );
            coverage.lose(Lost::Everything);
        }
    }
    notes.extend(unused_waivers(&findings, &waivers));
    if !nothing {
        coverage.failed.extend(
            untested
                .into_iter()
                .chain(without_command)
                .map(|why| (None, why)),
        );
    }
    coverage.failed.extend(
        tests
            .iter()
            .filter_map(TestResults::missing)
            .map(|why| (None, why)),
    );
    coverage.tidy();

    let tested = tests.as_ref().map(|t| t.outcome);
    let nothing = nothing && tested.is_none_or(|t| t == TestOutcome::Passed);
    let verdict = judge(&mut findings, &unlisted, &coverage, tested, policy);
    let outcome = match (nothing, coverage.is_complete()) {
        _ if stop.signal().is_some() => Outcome::Cancelled,
        (true, true) => Outcome::NothingToReview,
        (_, true) => Outcome::Reviewed,
        (_, false) => Outcome::Incomplete,
    };
    let exit = match stop.signal() {
        None => exit_status(verdict, policy.on_incomplete, request.on_block),
        Some(Signal::Interrupt) => ExitStatus::Interrupted,
        Some(Signal::Terminate) => ExitStatus::Terminated,
    };
    phases.end("judge");
    let reviewed = (place.as_ref(), resolved.info.head.as_deref());
    let is_elsewhere = decided::is_elsewhere(resolved.repo.as_ref(), reviewed, &findings);
    Ok(Review {
        source: resolved.info,
        outcome,
        verdict,
        exit,
        findings,
        unlisted,
        notes,
        coverage,
        stat,
        first_change,
        policy: governing.info,
        rules_hash: rules.hash().to_owned(),
        rules_only: backends.is_empty(),
        models,
        context,
        tests,
        timestamp: world.now,
        duration: started.elapsed(),
        place,
        is_elsewhere,
        decisions: Decisions {
            entries: decisions,
            states,
        },
        judged_by: Box::new(governing.policy),
        unrecorded: pieces.iter_mut().filter_map(|p| p.numbers.take()).collect(),
        record: recorder.map(|_| Record::of(pieces)),
        session: None,
    })
}

/// Returns true if the index equals HEAD.
///
/// # Errors Fails if the repository cannot be opened or its index cannot be read.
pub fn is_nothing_staged(dir: &Path, env: &Env) -> Result<bool> {
    Ok(Repo::open(dir, env)?.staged()?.entries.is_empty())
}

/// Disables the tests in a private copy, and in a job that has rights which the author of the
/// change lacks. Returns the reason if policy requests tests in such a job.
fn leave_untested(request: &ReviewRequest, policy: &mut Policy) -> Option<String> {
    if request.store_of.is_some() {
        // A model wrote the code of a private copy: the fix runs the tests itself, in the sandbox.
        policy.tests.run = false;
        return None;
    }
    let Source::Ends(ends) = &request.source else {
        return None;
    };
    let place = match ends.checkout {
        Checkout::Own => return None,
        Checkout::Foreign => "a job that has rights which the author of the change lacks",
        Checkout::Reviewer => "a review of a pull request",
    };
    let asked = policy.tests.run && policy.tests.command.is_some();
    asked.then(|| {
        policy.tests.run = false;
        format!("the project's tests are not run in {place}")
    })
}

/// Returns why the review is incomplete if tests are enabled but no command is set. If only the
/// environment enables them (`AUTO_RUN_TESTS`, which may apply to all projects of a user), adds a
/// note instead.
fn tests_without_command(policy: &Policy, notes: &mut Vec<Note>) -> Option<String> {
    if !policy.tests.run || policy.tests.command.is_some() {
        return None;
    }
    let why = "[tests] run is true, and no command is set: the project's tests were not run";
    if policy.origin_of("tests.run").layer == Layer::Environment {
        notes.push(Note::general("policy", why));
        return None;
    }
    Some(why.to_owned())
}

/// Returns the error for a flag that only affects models, when no backend is configured.
fn without_backend(flag: &str) -> Error {
    Error::usage(format!("{flag} is for models, and no backend is named"))
        .hint_person("name one: --backend NAME, or [review] backends in the policy")
        .hint_person(format!("or leave {flag} out: the rules do not heed it"))
}

impl Review {
    /// Adds unresolved findings of an earlier round, and judges again.
    ///
    /// # Errors
    ///
    /// `Usage` if a waiver is invalid.
    pub fn add(
        &mut self,
        earlier: Vec<Finding>,
        request: &ReviewRequest,
        world: &World<'_>,
    ) -> Result<()> {
        let waivers = policy::waivers(&request.waivers, world.env)?;
        self.findings.extend(earlier);
        self.findings = arrange(std::mem::take(&mut self.findings));
        let actor = self
            .place
            .as_ref()
            .map_or_else(|| actor(world.env, None), |p| p.actor.clone());
        waive(&mut self.findings, &waivers, &actor);
        if !self.decisions.entries.is_empty() {
            let repo = Repo::open(&request.dir, world.env).ok();
            let Decisions { entries, states } = &self.decisions;
            decided::mark(
                entries,
                &mut self.findings,
                repo.as_ref(),
                states,
                today(world.now),
            );
        }
        self.judge_again(request.on_block);
        Ok(())
    }

    /// Accepts a receipt in place of asking backends that `--offline` skipped, and judges again.
    pub fn vouch(&mut self, backends: &[String], on_block: OnBlock) {
        let told: Vec<String> = backends.iter().map(|b| not_asked(b)).collect();
        let failed = self.coverage.failed.len();
        self.coverage
            .failed
            .retain(|(file, why)| file.is_some() || !told.contains(why));
        if self.coverage.failed.len() < failed {
            self.coverage.regain(backends);
        }
        if self.outcome == Outcome::Incomplete && self.coverage.is_complete() {
            self.outcome = Outcome::Reviewed;
        }
        self.judge_again(on_block);
    }

    /// Adds to the coverage that no receipt replaces the backends that `--offline` skipped.
    pub fn vouched_by_nobody(&mut self, backends: &[String]) {
        for (_, why) in self
            .coverage
            .failed
            .iter_mut()
            .filter(|(file, _)| file.is_none())
        {
            if let Some(name) = backends.iter().find(|b| not_asked(b) == *why) {
                *why = format!("backend {name} was not asked, and no receipt covers it");
            }
        }
        self.coverage.tidy();
    }

    /// Marks the review incomplete because a requested side effect failed, and judges again.
    pub fn lacks(&mut self, why: String, on_block: OnBlock) {
        self.coverage.failed.push((None, why));
        if self.outcome != Outcome::Cancelled {
            self.outcome = Outcome::Incomplete;
        }
        self.judge_again(on_block);
    }

    /// Computes the verdict and the exit status from the current state. A review that a signal
    /// ended stays cancelled.
    pub fn judge_again(&mut self, on_block: OnBlock) {
        let tests = self.tests.as_ref().map(|t| t.outcome);
        self.verdict = judge(
            &mut self.findings,
            &self.unlisted,
            &self.coverage,
            tests,
            &self.judged_by,
        );
        if self.outcome == Outcome::NothingToReview && !self.findings.is_empty() {
            self.outcome = Outcome::Reviewed;
        }
        if self.outcome != Outcome::Cancelled {
            self.exit = exit_status(self.verdict, self.judged_by.on_incomplete, on_block);
        }
    }
}

/// The part of a review that always runs: the rules over the whole change, without network access.
struct Floor<'a> {
    scan: scan::RuleScan<'a>,
    parts: &'a [ChangePart],
    waivers: &'a [Waive],
    decisions: &'a DecisionEntries,
    today: jiff::civil::Date,
    env: &'a Env,
}

/// Results of the rules.
struct RuleResults {
    /// Arranged findings, with waived ones marked.
    findings: Vec<Finding>,
    unlisted: Unlisted,
    coverage: Coverage,
    stat: Stat,
    first_change: Option<Location>,
    notes: Vec<Note>,
    /// Files read from the worktree, with the IDs of their content.
    seen: Vec<(RepoPath, ObjectId)>,
    /// The change as text, if a record is requested.
    pieces: Vec<RecordPiece>,
}

impl Floor<'_> {
    fn review(&self) -> RuleResults {
        let RuleScan {
            repo,
            rules,
            files,
            policy,
            ..
        } = self.scan;
        let mut scanned = self.scan.run(self.parts);
        let unmatched: Vec<_> = files.unmatched().collect();
        if !unmatched.is_empty() {
            let text = format!("--files: not part of the change: {}", unmatched.join(", "));
            let text = rules.masked(&text);
            scanned.notes.push(Note::general("git", text));
        }
        if let Some(repo) = repo {
            governing::weakened(repo, self.parts, (rules, self.scan.authority), &mut scanned);
        }
        let mut counted = std::mem::take(&mut scanned.counted);
        let mut findings = without_repeats(
            std::mem::take(&mut scanned.findings),
            &mut counted,
            self.parts,
        );
        // Findings of files with stricter thresholds than the change as a whole are not gathered.
        let of_all = policy.thresholds(None);
        rules.gather(&|f| policy.thresholds(f.file()) == of_all, &mut findings);
        Listing::default().cut(&mut findings, 0, |f| {
            counted.push(self.scan.count(f, self.parts))
        });
        let mut findings = arrange(findings);
        if !self.waivers.is_empty() {
            waive(&mut findings, self.waivers, &actor(self.env, repo));
        }
        decided::mark(
            self.decisions,
            &mut findings,
            repo,
            &decided::states(repo, self.parts),
            self.today,
        );
        let unlisted = Unlisted::of(&counted, &findings);
        let Scanned {
            coverage,
            first,
            notes,
            seen,
            pieces,
            stat,
            ..
        } = scanned;
        RuleResults {
            findings,
            unlisted,
            coverage,
            stat,
            first_change: first,
            notes,
            seen,
            pieces,
        }
    }
}

/// Drops findings that the commits inside a branch repeat: one finding is enough for a secret that
/// the net change shows, or that an earlier commit has. Findings are compared by their unmasked
/// text, so another secret with the same masked text is a separate finding.
fn without_repeats(
    findings: Vec<Finding>,
    counted: &mut Vec<Counted>,
    parts: &[ChangePart],
) -> Vec<Finding> {
    let findings = without_net_repeats(findings, parts);
    let inside: Vec<ObjectId> = parts
        .iter()
        .filter(|p| p.scope == Scope::Secrets)
        .filter_map(|p| p.commit)
        .collect();
    if inside.is_empty() {
        return findings;
    }
    let (mut commits, mut kept): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|f| index_in(&inside, f).is_some());
    commits.sort_by_cached_key(|f| (index_in(&inside, f), f.suppressed.is_some()));
    let mut shown: HashSet<u64> = kept.iter().map(text_of).collect();
    shown.extend(counted.iter().filter(|c| !c.is_inside).map(Counted::text));
    kept.extend(commits.into_iter().filter(|f| shown.insert(text_of(f))));
    counted.retain(|c| !c.is_inside || shown.insert(c.text()));
    kept
}

/// Returns the index of the commit that has a finding.
fn index_in(commits: &[ObjectId], f: &Finding) -> Option<usize> {
    f.commit
        .and_then(|commit| commits.iter().position(|c| *c == commit))
}

/// Drops findings that the net change of a range repeats: each of its commits reports the same
/// findings for the lines that it adds.
fn without_net_repeats(mut findings: Vec<Finding>, parts: &[ChangePart]) -> Vec<Finding> {
    let is_range = parts.iter().any(|p| p.is_repeat)
        && parts.iter().all(|p| p.is_repeat || p.commit.is_some());
    if is_range {
        let shown: HashSet<_> = findings
            .iter()
            .filter(|f| f.commit.is_some())
            .map(text_key)
            .collect();
        findings.retain(|f| f.commit.is_some() || !shown.contains(&text_key(f)));
    }
    findings
}

/// Returns the rule, the file and the text of a finding: two commits that add the same line have
/// equal keys.
fn text_key(f: &Finding) -> (String, Option<RepoPath>, u64) {
    (f.rule_id().to_owned(), f.file().cloned(), f.identity)
}

fn not_asked(backend: &str) -> String {
    format!("backend {backend} was not asked: --offline")
}

/// Marks the findings that waivers cover.
fn waive(findings: &mut [Finding], waivers: &[Waive], actor: &str) {
    for w in waivers {
        for f in findings
            .iter_mut()
            .filter(|f| w.covers(f.fingerprint().as_str()))
        {
            f.waived = Some(Waiver {
                reason: w.reason.clone(),
                actor: actor.to_owned(),
                link: None,
            });
        }
    }
}

/// Returns a note for each waiver that covers no finding.
fn unused_waivers(findings: &[Finding], waivers: &[Waive]) -> Vec<Note> {
    let unused = waivers
        .iter()
        .filter(|w| !findings.iter().any(|f| w.covers(f.fingerprint().as_str())));
    unused
        .map(|w| {
            Note::general(
                "policy",
                format!("the waiver of {} matches no finding", w.fingerprint),
            )
        })
        .collect()
}

/// Returns the day of a time, in UTC.
pub(crate) fn today(now: jiff::Timestamp) -> jiff::civil::Date {
    now.to_zoned(jiff::tz::TimeZone::UTC).date()
}

/// Returns the name of the person or job that runs the review, from the environment or the git
/// identity.
fn actor(env: &Env, repo: Option<&Repo>) -> String {
    [
        "GITHUB_ACTOR",
        "GITLAB_USER_LOGIN",
        "BITBUCKET_STEP_TRIGGERER_UUID",
        "BUILD_REQUESTEDFOR",
    ]
    .iter()
    .find_map(|v| env.var(v).map(str::to_owned))
    .or_else(|| env.var("GIT_AUTHOR_NAME").map(str::to_owned))
    .or_else(|| match repo?.identity() {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email),
    })
    .or_else(|| env.var("USER").map(str::to_owned))
    .unwrap_or_else(|| "unknown".to_owned())
}
