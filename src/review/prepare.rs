//! Prepares a review: compiles the rules, and reads the decisions of people, once the change and
//! the policy are known. All later stages share the result.

use super::decided;
use super::files::Files;
use super::governing::{self, Governing};
use super::pins;
use super::record::Recorder;
use super::remembered;
use super::resolved::{Resolved, further_bases};
use super::scan::RuleScan;
use super::shard::{self, ShardDigests};
use super::waiving::{actor, waive};
use super::{Decisions, Note, SourceKind, StoreLocation, World};
use crate::ai::agent;
use crate::ai::backend::takes_batches;
use crate::error::{Error, Result};
use crate::finding::Finding;
use crate::git::Repo;
use crate::hooks::Hook;
use crate::policy::{HookMode, Layer, Policy, Waive};
use crate::request::{Authority, Checkout, ReviewRequest, Source};
use crate::rules::{RuleSet, Suppressions};
use crate::verdict::FailureCause;
use std::path::Path;

/// A review that is ready to run: the change, the policy, and what is derived from both.
pub(super) struct Prepared<'a> {
    pub(super) request: &'a ReviewRequest,
    pub(super) world: &'a World<'a>,
    /// The change. It has no parts if the policy disables the hook.
    pub(super) resolved: Resolved,
    pub(super) governing: Governing,
    pub(super) waivers: Vec<Waive>,
    pub(super) rules: RuleSet,
    files: Files,
    pub(super) recorder: Option<Recorder>,
    pub(super) place: Option<StoreLocation>,
    pub(super) decisions: Decisions,
    /// Mode of the hook that runs the review.
    mode: Option<HookMode>,
    /// Why the project's tests do not run although the policy enables them.
    pub(super) untested: Vec<FailureCause>,
    pub(super) notes: Vec<Note>,
}

impl<'a> Prepared<'a> {
    /// Combines the change and its policy.
    ///
    /// # Errors
    ///
    /// Usage: an unknown backend, an invalid rule of the team, a pattern of files that matches no
    /// file, a flag for models without a backend, `--batch` with a backend that has no batches, a
    /// malformed file of decisions. Incomplete: a shard, if the size of a file is not known.
    pub(super) fn new(
        (request, world): (&'a ReviewRequest, &'a World<'a>),
        mut resolved: Resolved,
        mut governing: Governing,
        waivers: Vec<Waive>,
    ) -> Result<Self> {
        let mut notes = std::mem::take(&mut resolved.notes);
        notes.append(&mut governing.notes);
        let untested = settle_tests(request, &mut governing.policy, &mut notes);
        let policy = &governing.policy;
        governing::refuse_unknown_backends(request, policy)?;
        let mode = request.hook.map(|hook| mode_of(hook, policy));
        if mode == Some(HookMode::Off) {
            notes.push(Note::general(
                "policy",
                "hook disabled by the policy: nothing was reviewed",
            ));
            resolved.parts.clear();
        }
        let rules = compiled_rules(request, &resolved, &governing)?;
        let files = file_filter(request, &resolved, &rules)?;
        if let Some(shard) = request.shard {
            resolved.divide(shard, &|path| files.select(path) && !policy.ignores(path))?;
        }
        let repo = resolved.repo.as_deref();
        let has_backends = !required_backends(request, policy).is_empty();
        if let (false, Some(flag)) = (has_backends, request.model_flags.first()) {
            return Err(without_backend(flag));
        }
        if request.is_batch {
            refuse_without_batches(required_backends(request, policy), policy)?;
        }
        let recorder = request.record.then(Recorder::new).transpose()?;
        let place = repo.and_then(|repo| StoreLocation::of(repo, policy, request, world.env));
        let own = place.as_ref();
        let decisions = decisions(request.authority, &resolved, &governing, own, &mut notes)?;
        let prepared = Self {
            request,
            world,
            resolved,
            governing,
            waivers,
            rules,
            files,
            recorder,
            place,
            decisions,
            mode,
            untested,
            notes,
        };
        prepared.recall_digests();
        Ok(prepared)
    }

    /// Returns the repository; `None` outside of one.
    pub(super) fn repo(&self) -> Option<&Repo> {
        self.resolved.repo.as_deref()
    }

    /// Returns the policy that governs the review.
    pub(super) fn policy(&self) -> &Policy {
        &self.governing.policy
    }

    /// Returns the day of the review, in UTC.
    pub(super) fn today(&self) -> jiff::civil::Date {
        super::today(self.world.now)
    }

    /// Returns the names of the backends that the request or the policy requires.
    pub(super) fn required_backends(&self) -> &[String] {
        required_backends(self.request, self.policy())
    }

    /// Returns the names of the backends that are asked: the required ones, or the author's own
    /// agent in their place; none if only the rules run.
    pub(super) fn asked_backends(&self) -> Vec<String> {
        match self.world.agent {
            _ if self.request.offline || self.is_without_models() => Vec::new(),
            Some(_) => vec![agent::NAME.to_owned()],
            None => self.required_backends().to_vec(),
        }
    }

    /// Returns true if the policy lets the hook run only the rules.
    pub(super) fn is_without_models(&self) -> bool {
        self.mode == Some(HookMode::Rules)
    }

    /// Returns the inputs of the scan.
    pub(super) fn rule_scan(&self) -> RuleScan<'_> {
        RuleScan {
            repo: self.repo(),
            rules: &self.rules,
            authority: self.request.authority,
            policy: self.policy(),
            files: &self.files,
            progress: self.world.progress,
            jobs: self.request.overrides.jobs,
            stop: self.world.stop,
            recorder: self.recorder.as_ref(),
            is_tree: self.is_tree(),
            stream: None,
            shard: self.resolved.shard.as_ref(),
        }
    }

    /// Returns the patterns that select files, relative to the top of the worktree.
    pub(super) fn selected_patterns(&self) -> &[String] {
        self.files.rooted_patterns()
    }

    /// Returns what the shards of this review share.
    pub(super) fn shard_digests(&self) -> ShardDigests {
        let Some(shards) = &self.resolved.shard else {
            return ShardDigests::default();
        };
        ShardDigests {
            state: shards.state().to_owned(),
            selection: shard::digest_of_patterns(self.files.rooted_patterns()),
            options: shard::digest_of_options(
                self.request,
                &self.asked_backends(),
                &self.decisions.entries,
            ),
        }
    }

    /// Returns true if all files of a state are reviewed, and not a change.
    pub(super) fn is_tree(&self) -> bool {
        is_tree(&self.resolved)
    }

    /// Marks the findings that a waiver or a decision dismisses.
    pub(super) fn dismiss(&self, mut findings: Vec<Finding>) -> Vec<Finding> {
        if !self.waivers.is_empty() {
            let actor = actor(self.world.env, self.repo());
            waive(&mut findings, &self.waivers, &actor);
        }
        decided::mark(&self.decisions, &mut findings, self.repo(), self.today());
        findings
    }

    /// Loads the digests of decisions that earlier commands computed. In gate mode, forgets those
    /// of this process: a cache must not decide what passes.
    fn recall_digests(&self) {
        if self.request.authority == Authority::Base {
            remembered::forget();
        } else if !self.decisions.entries.is_empty() {
            remembered::recall(self.world.env, self.top(), self.world.now);
        }
    }

    /// Stores the digests of decisions for the next command.
    pub(super) fn save_digests(&self) {
        if self.request.authority != Authority::Base && !self.decisions.entries.is_empty() {
            remembered::save(self.world.env, self.top());
        }
    }

    /// Returns the top of the worktree.
    fn top(&self) -> Option<&Path> {
        self.repo().and_then(Repo::worktree)
    }
}

/// Compiles the rules of the catalogue and of the team.
fn compiled_rules(
    request: &ReviewRequest,
    resolved: &Resolved,
    governing: &Governing,
) -> Result<RuleSet> {
    let repo = resolved.repo.as_deref();
    let rules = RuleSet::new(&governing.policy.rules, &governing.team_rules)?;
    let is_tree = is_tree(resolved);
    // The comments of a tree are not new: they are part of the state that governs the review.
    let suppressions = Suppressions {
        honour_added: request.authority == Authority::Worktree || is_tree,
    };
    let rules = if is_tree { rules.of_a_tree() } else { rules };
    Ok(rules.with_suppressions(suppressions).with_pins(pins::known(
        repo,
        &resolved.base,
        &resolved.parts,
    )))
}

/// Returns true if all files of a state are reviewed, and not a change.
fn is_tree(resolved: &Resolved) -> bool {
    resolved.info.kind == SourceKind::Tree
}

/// Compiles the patterns of `--files`.
fn file_filter(request: &ReviewRequest, resolved: &Resolved, rules: &RuleSet) -> Result<Files> {
    let repo = resolved.repo.as_deref();
    let top = repo.and_then(Repo::worktree);
    let patterns = (request.files_name, &request.files[..]);
    let files = if is_tree(resolved) {
        Files::of_paths(patterns, &request.dir, top, rules)?
    } else {
        Files::new(patterns, &request.dir, top, rules)?
    };
    // The first round of a session checked these files, and some of them may no longer exist. The
    // files of a history are not known yet.
    if request.brief.previous.is_empty() && resolved.history.is_none() {
        files.refuse_unknown(rules, repo, &resolved.parts)?;
    }
    Ok(files)
}

/// Reads the decisions of people that apply. `place` has the decisions of the user.
fn decisions(
    authority: Authority,
    resolved: &Resolved,
    governing: &Governing,
    place: Option<&StoreLocation>,
    notes: &mut Vec<Note>,
) -> Result<Decisions> {
    let repo = resolved.repo.as_deref();
    let bases = decided::Bases {
        base: &resolved.base,
        others: &resolved.other_bases,
        further: further_bases(&resolved.parts),
        tip: resolved.tip.as_ref(),
        parts: &resolved.parts,
    };
    let state = governing.state.as_ref();
    Ok(Decisions {
        entries: decided::load((repo, authority), &bases, state, place, notes)?,
        states: decided::states(repo, &resolved.parts),
    })
}

/// Returns the names of the backends of a request, or else of the policy.
fn required_backends<'a>(request: &'a ReviewRequest, policy: &'a Policy) -> &'a [String] {
    if matches!(request.source, Source::History { .. }) {
        // Models do not see a history.
        &[]
    } else if request.backends.is_empty() {
        &policy.review.backends
    } else {
        &request.backends
    }
}

/// Rejects backends without a batch interface.
///
/// # Errors
/// Usage: names the backend, and the kinds that have one.
fn refuse_without_batches(backends: &[String], policy: &Policy) -> Result<()> {
    let lacks = |name: &&String| !policy.backend(name).is_some_and(takes_batches);
    let Some(name) = backends.iter().find(lacks) else {
        return Ok(());
    };
    let error = Error::usage(format!(
        "--batch: backend {name} has no batch interface; Anthropic's and OpenAI's own have one (kinds anthropic and \
         openai)"
    ));
    Err(error
        .hint_person("name one of these: --backend anthropic")
        .hint_person("or leave --batch out"))
}

/// Returns the mode in which the policy lets a hook run.
fn mode_of(hook: Hook, policy: &Policy) -> HookMode {
    match hook {
        Hook::PreCommit => policy.hooks.pre_commit,
        Hook::PrePush => policy.hooks.pre_push,
        // The starter of this hook has already checked the policy.
        Hook::PostCommit => HookMode::Full,
    }
}

/// Decides whether the project's tests run, and disables them in the policy if they do not. Returns
/// why the review is incomplete without them.
fn settle_tests(
    request: &ReviewRequest,
    policy: &mut Policy,
    notes: &mut Vec<Note>,
) -> Vec<FailureCause> {
    if request.hook == Some(Hook::PostCommit) {
        // The worktree may differ from the commit.
        policy.tests.run = false;
    }
    let without_command = tests_without_command(policy, notes);
    let untested = leave_untested(request, policy);
    let causes = untested.into_iter().chain(without_command);
    causes.map(FailureCause::Other).collect()
}

/// Disables the tests in a private copy, in a job that has rights which the author of the change
/// lacks, and in a user's review of a pull request. Returns the reason if the policy requests tests
/// in such a job or review.
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
