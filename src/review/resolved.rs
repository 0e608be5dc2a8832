//! The resolved change: its parts, its base and its head.

use super::shard::ShardMap;
use super::{Note, SourceInfo, SourceKind};
use crate::diff::{FileChange, ObjectId, RepoPath};
use crate::error::Result;
use crate::git::{Branch, Change, Fetched, HistoryScope, Repo, State};
use crate::request::Shard;
use crate::rules::Scope;
use std::sync::Arc;

/// A resolved source. Only names have been read so far.
#[derive(Debug)]
pub(super) struct Resolved {
    /// `None` only for patches and files outside a repository.
    pub(super) repo: Option<Arc<Repo>>,
    pub(super) parts: Vec<ChangePart>,
    pub(super) info: SourceInfo,
    pub(super) notes: Vec<Note>,
    /// The base of the change. In gate mode, its policy applies.
    pub(super) base: State,
    /// The target branch, which may have moved on since the merge base.
    pub(super) tip: Option<BranchTip>,
    /// Further bases, if several references are pushed at once.
    pub(super) other_bases: Vec<State>,
    /// Keeps the fetched objects accessible.
    pub(super) fetched: Option<Fetched>,
    /// The part of the files that is reviewed; `None` for all.
    pub(super) shard: Option<ShardMap>,
    /// The history whose blobs are searched for secrets, in addition to the parts.
    pub(super) history: Option<HistoryScope>,
    /// Why HEAD cannot be read, if a history is searched all the same.
    pub(super) broken_head: Option<String>,
}

/// The tip of a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BranchTip {
    pub(super) id: ObjectId,
    /// Display name of the branch.
    pub(super) name: String,
}

/// A unit of the review: a comparison, and the scope of its rules.
#[derive(Debug)]
pub(super) struct ChangePart {
    pub(super) content: PartContent,
    pub(super) scope: Scope,
    /// The commit that findings belong to.
    pub(super) commit: Option<ObjectId>,
    /// The part repeats files of other parts against another base. The rules scan it, but its files
    /// are counted, stored and shown to models only with the other parts.
    pub(super) is_repeat: bool,
}

/// Returns the bases of the parts that repeat the change.
pub(super) fn further_bases(parts: &[ChangePart]) -> Vec<State> {
    let repeats = parts.iter().filter(|part| part.is_repeat);
    repeats
        .filter_map(ChangePart::change)
        .map(|change| change.base.clone())
        .collect()
}

/// The comparison of a part.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a review has a handful, and most are the large one"
)]
pub(super) enum PartContent {
    /// Two states whose differing paths are known.
    Change(Change),
    /// A commit by itself (see `Reader::alone`), compared when the part is scanned.
    Commit(ObjectId),
    /// A change that contains its lines.
    Given(Vec<FileChange>),
}

impl ChangePart {
    fn net(change: Change) -> Self {
        Self::of(PartContent::Change(change))
    }

    /// Creates the part for files with all their lines.
    pub(super) fn given(files: Vec<FileChange>) -> Self {
        Self::of(PartContent::Given(files))
    }

    /// Creates the part for a commit by itself.
    pub(super) fn commit(id: ObjectId, scope: Scope) -> Self {
        Self {
            scope,
            commit: Some(id),
            ..Self::of(PartContent::Commit(id))
        }
    }

    fn of(content: PartContent) -> Self {
        Self {
            content,
            scope: Scope::All,
            commit: None,
            is_repeat: false,
        }
    }

    pub(super) fn repeat(change: Change) -> Self {
        Self {
            is_repeat: true,
            ..Self::net(change)
        }
    }

    /// Returns the change, if its paths are known before the scan.
    pub(super) fn change(&self) -> Option<&Change> {
        match &self.content {
            PartContent::Change(change) => Some(change),
            PartContent::Commit(_) | PartContent::Given(_) => None,
        }
    }
}

impl Resolved {
    /// Creates a source without parts. Only patches and files can be without a repository.
    pub(super) fn empty(
        repo: impl Into<Option<Arc<Repo>>>,
        kind: SourceKind,
        label: String,
    ) -> Self {
        Self {
            repo: repo.into(),
            parts: Vec::new(),
            info: SourceInfo {
                kind,
                label,
                ..SourceInfo::default()
            },
            notes: Vec::new(),
            base: State::Empty,
            tip: None,
            other_bases: Vec::new(),
            fetched: None,
            shard: None,
            history: None,
            broken_head: None,
        }
    }

    /// Creates the source for a single branch.
    pub(super) fn of_branch(repo: Arc<Repo>, label: String, b: Branch) -> Self {
        let mut all = Self::empty(repo, SourceKind::Branch, label);
        all.add_branch(b);
        all
    }

    pub(super) fn one(
        repo: Arc<Repo>,
        kind: SourceKind,
        change: Change,
        label: String,
    ) -> Result<Self> {
        // The policy in the index belongs to the change, so the base is HEAD.
        let base = match &change.base {
            State::Index => head_state(&repo)?,
            other => other.clone(),
        };
        let mut all = Self::empty(repo, kind, label);
        all.set_ends(base, &change.head);
        all.parts.push(ChangePart::net(change));
        Ok(all)
    }

    /// Creates the source for all files of a state. `governed` is the state whose policy and
    /// decisions apply in gate mode, because a tree has no base.
    pub(super) fn of_tree(repo: Arc<Repo>, change: Change, governed: State, label: String) -> Self {
        let mut all = Self::empty(repo, SourceKind::Tree, label);
        all.set_ends(State::Empty, &change.head);
        if all.info.head.is_none() {
            all.info.checked_out = governed.commit().map(|id| id.to_string());
        }
        all.base = governed;
        all.parts.push(ChangePart::net(change));
        all
    }

    /// Limits the review to one shard. `is_read` returns true for the path of a file that is selected
    /// and that the policy does not ignore: the other files have no weight.
    ///
    /// # Errors
    /// Incomplete: the size of a file is not known.
    pub(super) fn divide(
        &mut self,
        shard: Shard,
        is_read: &dyn Fn(&RepoPath) -> bool,
    ) -> Result<()> {
        let Some(repo) = self.repo.as_deref() else {
            return Ok(());
        };
        // Parts that repeat files and the commits inside of a branch have no weight: the net
        // change has their paths.
        let weighed = self.parts.iter().filter(|part| !part.is_repeat);
        let changes = weighed.filter_map(ChangePart::change);
        self.shard = Some(ShardMap::of(shard, repo, (changes, is_read))?);
        self.info.shard = Some(shard);
        Ok(())
    }

    /// Sets the base and head in the report.
    pub(super) fn set_ends(&mut self, base: State, head: &State) {
        self.info.base = base.commit().map(|id| id.to_string());
        self.info.head = head.commit().map(|id| id.to_string());
        self.info.tree = head.tree().map(|id| id.to_string());
        self.info.base_tree = base.tree().map(|id| id.to_string());
        self.base = base;
    }

    /// Adds a branch: its net change, and every commit for the secret rules.
    pub(super) fn add_branch(&mut self, b: Branch) {
        if self.parts.is_empty() {
            self.set_ends(b.change.base.clone(), &b.change.head);
            self.tip = b.tip.map(|id| BranchTip {
                id,
                name: b.base_name.clone(),
            });
        } else {
            // The report has fields for only one pair of ends, which would be misleading here.
            self.other_bases.push(b.change.base.clone());
            (self.info.base, self.info.head) = (None, None);
            (self.info.tree, self.info.base_tree) = (None, None);
        }
        // A single commit equals the net change.
        let commits = if b.commits.len() > 1 {
            b.commits
        } else {
            Vec::new()
        };
        self.parts.push(ChangePart::net(b.change));
        self.parts
            .extend(b.further.into_iter().map(ChangePart::repeat));
        let commits = commits.into_iter();
        self.parts
            .extend(commits.map(|id| ChangePart::commit(id, Scope::Secrets)));
    }
}

/// Returns the state at HEAD; the empty state if there is no commit yet.
pub(super) fn head_state(repo: &Repo) -> Result<State> {
    repo.head()?
        .map_or(Ok(State::Empty), |id| repo.state_of(id))
}
