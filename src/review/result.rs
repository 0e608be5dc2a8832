//! The finished review, as reports, history and MCP show it.

use super::record::{Numbers, Record};
use super::shard::ShardDigests;
use super::waiving::{actor, waive};
use super::{Decisions, StoreLocation, World, decided, today};
use crate::ai::Models;
use crate::context::GatheredItem;
use crate::diff::{FileChange, LineNo, RepoPath};
use crate::error::{ExitStatus, Result};
use crate::finding::listing::Unlisted;
use crate::finding::{Finding, Location, arrange};
use crate::git::Repo;
use crate::policy::{self, Policy};
use crate::request::{OnBlock, ReviewRequest, Shard};
use crate::verdict::{Coverage, FailureCause, Outcome, TestOutcome, Verdict, exit_status, judge};
use std::borrow::Cow;
use std::time::Duration;

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
    /// Numbers of the shown lines of files whose text is not recorded: their names mark them as
    /// secret, or they are too large for the record.
    pub unrecorded: Vec<Numbers>,
    /// Values that only a merge of shards needs.
    pub merge_inputs: MergeInputs,
    /// Session in which this review is stored. `None`: the review is not stored.
    pub session: Option<SessionRef>,
}

/// Values of a review that a merge of shards needs and no format shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeInputs {
    /// Effect of blocking findings on the exit code.
    pub on_block: OnBlock,
    /// The position in the whole change of each file in the record, in the order of the record: the
    /// number of the part, and of the file in it.
    pub order: Vec<(usize, usize)>,
    /// The base of the change governs: suppressions that the change adds do not count.
    pub is_gate: bool,
    /// Fingerprints of waivers that match no finding, each with a note.
    pub unused_waivers: Vec<String>,
    /// Digests of what the shards of the review share.
    pub digests: ShardDigests,
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

    pub(super) fn count(&mut self, file: &FileChange) {
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

    pub(super) fn add(&mut self, other: Self) {
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
    /// All files of a state, each as new.
    Tree,
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
            Self::Tree => "tree",
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
    /// The part of the files that this review is about; `None` for all.
    pub shard: Option<Shard>,
    /// The versions of files in a history are reviewed. The kind is [`SourceKind::Tree`].
    pub is_history: bool,
    /// Full object ID of the commit that is checked out, if the files of the worktree or the index
    /// are reviewed and not a change to them.
    pub checked_out: Option<String>,
    /// Name of the folder with the worktree, for a review of merged reports: that worktree is not
    /// here.
    pub repository: Option<String>,
}

impl SourceInfo {
    /// Returns the name of the source for people, with the shard. Empty if the source has no name.
    pub fn title(&self) -> Cow<'_, str> {
        match self.shard {
            Some(shard) if !self.label.is_empty() => {
                let (index, of) = (shard.index(), shard.of());
                Cow::Owned(format!("{}, shard {index} of {of}", self.label))
            }
            _ => Cow::Borrowed(&self.label),
        }
    }
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
    /// `rules`, `policy`, `git`, `review`, `context`, `forge`, `receipt`, or the name of a backend
    /// or of the author's agent.
    pub origin: String,
}

impl Note {
    /// Sorts notes about files by position, behind those about the review as a whole, whose order
    /// stays: threads find them in any order.
    pub(crate) fn arrange(notes: &mut [Self]) {
        notes.sort_by(|a, b| a.position().cmp(&b.position()));
    }

    /// Returns the key of a note about a file in [`Self::arrange`]; `None` for other notes.
    fn position(&self) -> Option<(&RepoPath, Option<LineNo>, &str, &str)> {
        let file = self.file.as_ref()?;
        Some((file, self.line, &self.text, &self.origin))
    }

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

impl Review {
    /// Adds unresolved findings of an earlier round, and judges again.
    ///
    /// # Errors
    ///
    /// `Usage` if a waiver is invalid.
    pub fn add(
        &mut self,
        earlier: Vec<Finding>,
        repo: Option<&Repo>,
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
        let today = today(world.now);
        decided::mark(&self.decisions, &mut self.findings, repo, today);
        self.judge_again(request.on_block);
        Ok(())
    }

    /// Accepts a receipt in place of asking backends that `--offline` skipped, and judges again.
    pub fn accept_receipt(&mut self, backends: &[String], on_block: OnBlock) {
        let failed = self.coverage.failed.len();
        self.coverage.failed.retain(|f| match &f.cause {
            FailureCause::NotAsked { backend } => !backends.contains(backend),
            _ => true,
        });
        if self.coverage.failed.len() < failed {
            self.coverage.regain(backends);
        }
        if self.outcome == Outcome::Incomplete && self.coverage.is_complete() {
            self.outcome = Outcome::Reviewed;
        }
        self.judge_again(on_block);
    }

    /// Adds to the coverage that no receipt replaces the backends that `--offline` skipped.
    pub fn note_missing_receipt(&mut self, backends: &[String]) {
        for failure in &mut self.coverage.failed {
            if let FailureCause::NotAsked { backend } = &failure.cause
                && backends.contains(backend)
            {
                let backend = backend.clone();
                failure.cause = FailureCause::NoReceipt { backend };
            }
        }
        self.coverage.tidy();
    }

    /// Marks the review incomplete because a requested side effect failed, and judges again.
    pub fn mark_incomplete(&mut self, why: String, on_block: OnBlock) {
        self.coverage.fail(FailureCause::Other(why));
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
