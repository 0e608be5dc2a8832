//! The only importer of gix: repositories in, [`crate::diff`] values out.

use crate::diff::{Entry, FileChange, ObjectId, RepoPath};
use crate::error::Result;
use std::path::{Path, PathBuf};

/// An opened repository. Cheap to share between threads; see [`Repo::reader`].
#[derive(Debug)]
pub struct Repo {}

/// A thread's own access to a repository's objects, with its caches.
#[derive(Debug)]
pub struct Reader<'r> {
    repo: &'r Repo,
}

/// The paths that differ between two states, without content.
#[derive(Debug)]
pub struct Change {
    /// In git's order: by path of the new side.
    pub entries: Vec<Entry>,
    /// What the old side is.
    pub base: State,
    /// What the new side is.
    pub head: State,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No commit at all: the old side of a root commit.
    Empty,
    /// A commit's tree.
    Commit {
        commit: ObjectId,
        tree: ObjectId,
    },
    Index,
    Worktree,
}

/// A branch compared with its merge base.
#[derive(Debug)]
pub struct Branch {
    pub change: Change,
    pub merge_base: ObjectId,
    pub head: ObjectId,
    /// How the base was found, for the report: the name that was given or `upstream …`.
    pub base_name: String,
    /// The commits of `merge_base..head` (all that head reaches and the base does not), oldest first.
    pub commits: Vec<ObjectId>,
}

impl Repo {
    /// Opens the repository that `dir` lies in, honouring `GIT_DIR`, `GIT_INDEX_FILE` and
    /// `GIT_WORK_TREE` of `env` as git does in hooks.
    pub fn open(_dir: &Path, _env: &crate::env::Env) -> Result<Self> {
        todo!()
    }
    /// Returns the top of the worktree; `None` for a bare repository.
    pub fn worktree(&self) -> Option<&Path> {
        todo!()
    }
    /// Returns the folder that the hooks of this repository live in.
    pub fn hooks_dir(&self) -> Result<PathBuf> {
        todo!()
    }
    /// HEAD (or the empty tree) against the index.
    pub fn staged(&self) -> Result<Change> {
        todo!()
    }
    /// The index against the worktree.
    pub fn unstaged(&self, _untracked: bool) -> Result<Change> {
        todo!()
    }
    /// A base against the worktree, new files included. See `design.md` for how the base is found.
    pub fn changes(&self, _base: Option<&str>) -> Result<(Change, String)> {
        todo!()
    }
    /// A commit against its parent (1-based; `None`: the first, or the empty tree for a root).
    pub fn commit(&self, _id: ObjectId, _parent: Option<u32>) -> Result<Change> {
        todo!()
    }
    /// Resolves a revision to a commit.
    pub fn resolve(&self, _rev: &str) -> Result<ObjectId> {
        todo!()
    }
    /// The commits of `A..B`, oldest first.
    pub fn range(&self, _from: &str, _to: &str) -> Result<Vec<ObjectId>> {
        todo!()
    }
    /// A head (default HEAD) against the merge base with `base` (default: upstream, `origin/HEAD`).
    pub fn branch(&self, _head: Option<&str>, _base: Option<&str>) -> Result<Branch> {
        todo!()
    }
    /// What a pre-push range pushes that the remote does not have; `None` for a deletion.
    pub fn push(&self, _range: &crate::request::PushRange) -> Result<Option<Branch>> {
        todo!()
    }
    /// Opens a thread's own access.
    pub fn reader(&self) -> Reader<'_> {
        Reader { repo: self }
    }
}

impl Reader<'_> {
    /// Reads and compares one entry of a change.
    pub fn load(&mut self, _change: &Change, _index: usize) -> Result<FileChange> {
        let _ = self.repo;
        todo!()
    }
    /// Reads a file of a state; `None` when there is none. At most `max` bytes.
    pub fn read(&mut self, _state: &State, _path: &RepoPath, _max: usize) -> Result<Option<Vec<u8>>> {
        todo!()
    }
}
