//! The only module that imports gix. It reads repositories and returns [`crate::diff`] values.
//!
//! Repositories are read in process. No program that a repository configures is ever started: no
//! hook, no filter, no textconv, no external diff, no fsmonitor. Nothing is written, and only
//! [`Repo::fetch`] fetches. Git's configuration of diffs (`diff.*`, `color.*`, …) is ignored, so
//! that a change is the same in every clone.

mod activity;
mod attributes;
mod blobs;
mod blobtree;
mod checkout;
mod convert;
mod digest;
mod entries;
mod fetch;
mod files;
mod forest;
mod graph;
mod guard;
mod hooks;
mod lineage;
mod load;
pub mod names;
mod notes;
mod open;
mod packs;
mod program;
mod reach;
mod refs;
mod rename;
mod revision;
mod staged;
mod tree;
mod underway;
mod worktree;

use crate::diff::{ChangeKind, Entry, FileMode, ObjectId, RepoPath, Side};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

pub use activity::{WalkGap, WalkLimits, YearOfChanges};
pub use blobs::{BlobNumber, HistoryBlobs, HistoryScope};
pub use blobtree::{TreeBlobs, TreeSearch};
pub use digest::sha1_hex;
pub use fetch::Fetched;
pub use forest::{BlobVisitor, CopiedPart, DecodedBase};
pub use hooks::{ConfigScope, HooksDir};
pub use lineage::{HistorySearch, LostObject, NamedEntry, PathPriority};
pub use load::{PathNode, Reader};
pub use packs::Undecodable;
pub use underway::PushTarget;

/// An opened repository. Cheap to share between threads; see [`Repo::reader`].
pub struct Repo {
    sync: gix::ThreadSafeRepository,
    /// Absolute path of the worktree's top.
    worktree: Option<PathBuf>,
    /// Path of the index in use: `GIT_INDEX_FILE` of a hook, or the repository's own.
    index_path: PathBuf,
    index: OnceLock<gix::index::File>,
    /// Commit and tree of HEAD when first read: one review uses one HEAD.
    head: OnceLock<Option<(gix::ObjectId, gix::ObjectId)>>,
    refs: refs::Refs,
}

/// The paths that differ between two states, without their content.
#[derive(Debug)]
pub struct Change {
    /// In git's order: by path of the new side.
    pub entries: Vec<Entry>,
    /// State of the old side.
    pub base: State,
    /// State of the new side.
    pub head: State,
    /// Notes for the report about how the change was read.
    pub notes: Vec<String>,
    /// New sides in the worktree, with their content if it was already read.
    work: HashMap<RepoPath, Mutex<Option<Vec<u8>>>>,
    /// Submodules whose worktree has changes of its own.
    dirty: HashSet<RepoPath>,
}

/// One side of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// No commit: the old side of a root commit.
    Empty,
    /// A commit's tree.
    Commit {
        commit: ObjectId,
        tree: ObjectId,
    },
    Index,
    Worktree,
}

impl State {
    /// Returns the commit of this state, if it is one.
    pub fn commit(&self) -> Option<ObjectId> {
        match self {
            Self::Commit { commit, .. } => Some(*commit),
            _ => None,
        }
    }

    /// Returns the tree of this state, if it is a commit.
    pub fn tree(&self) -> Option<ObjectId> {
        match self {
            Self::Commit { tree, .. } => Some(*tree),
            _ => None,
        }
    }
}

/// A commit that introduced a version of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCommit {
    pub commit: ObjectId,
    /// Commit time in seconds since 1970.
    pub seconds: i64,
    /// Its first parent; [`State::Empty`] for a root commit.
    pub before: State,
    pub after: State,
}

/// A branch compared with its merge base.
#[derive(Debug)]
pub struct Branch {
    pub change: Change,
    /// Net changes since the other merge bases, if histories cross: code that is in none of them
    /// may be new to the target branch. Excludes the paths that are identical on the target branch
    /// and the head.
    pub further: Vec<Change>,
    /// All zeros if there is none (the first push of a history): `change.base` is [`State::Empty`].
    pub merge_base: ObjectId,
    /// Commit of the base, of which the merge base is an ancestor; `None` if the base is not one
    /// commit.
    pub tip: Option<ObjectId>,
    pub head: ObjectId,
    /// Name of the base for the report: as given, or `upstream …`.
    pub base_name: String,
    /// The commits of `merge_base..head` (reachable from head and not from the base), oldest first.
    pub commits: Vec<ObjectId>,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo")
            .field("git_dir", &self.git_dir())
            .field("worktree", &self.worktree)
            .finish()
    }
}

impl Repo {
    /// Opens the repository that contains `dir`. Uses `GIT_DIR`, `GIT_INDEX_FILE` and
    /// `GIT_WORK_TREE` of `env` as git does in hooks.
    ///
    /// # Errors
    /// Usage: there is no repository, it belongs to another user (git's `safe.directory` can allow
    /// it), or it is a bare repository found only by discovery (git's
    /// `safe.bareRepository=explicit`).
    pub fn open(dir: &Path, env: &crate::env::Env) -> Result<Self> {
        open::open(dir, env)
    }

    /// Opens the repository that contains `dir`, or returns `None` if there is none.
    ///
    /// # Errors
    /// The repository cannot be opened.
    pub fn find(dir: &Path, env: &crate::env::Env) -> Result<Option<Self>> {
        open::find(dir, env)
    }

    /// Returns the top of the worktree; `None` for a bare repository.
    pub fn worktree(&self) -> Option<&Path> {
        self.worktree.as_deref()
    }

    /// Returns the folder with this worktree's own data (`.git`, or `.git/worktrees/NAME`).
    pub fn git_dir(&self) -> &Path {
        self.sync.git_dir()
    }

    /// Returns the folder that all worktrees share: objects, references, configuration, hooks.
    pub fn common_dir(&self) -> PathBuf {
        self.local().common_dir().to_owned()
    }

    /// Returns the commit of HEAD, or `None` before the first commit.
    pub fn head(&self) -> Result<Option<ObjectId>> {
        Ok(self
            .head_and_tree(&self.local())?
            .map(|(commit, _)| own(&commit)))
    }

    /// Returns the short name of the current branch, or `None` if HEAD is detached.
    pub fn checked_out_branch(&self) -> Result<Option<String>> {
        let name = self.refs.branch(&self.local())?;
        Ok(name.map(|n| {
            n.strip_prefix("refs/heads/")
                .map_or_else(|| n.clone(), str::to_owned)
        }))
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: ObjectId) -> Result<ObjectId> {
        if let Some(Some((head, tree))) = self.head.get()
            && *head == gix_id(&commit)
        {
            return Ok(own(tree));
        }
        tree::of_commit(&self.local(), gix_id(&commit)).map(|id| own(&id))
    }

    /// Returns a commit as a state.
    pub fn state_of(&self, commit: ObjectId) -> Result<State> {
        Ok(State::Commit {
            commit,
            tree: self.tree_of(commit)?,
        })
    }

    /// Returns the ID of the empty tree, which [`Self::changes`] accepts as a base.
    pub fn empty_tree(&self) -> ObjectId {
        own(&gix::ObjectId::empty_tree(self.local().object_hash()))
    }

    /// Returns `user.name` and `user.email` of the configuration, if set.
    pub fn identity(&self) -> (Option<String>, Option<String>) {
        let repo = self.local();
        let config = repo.config_snapshot();
        (
            text_of(&config, "user.name"),
            text_of(&config, "user.email"),
        )
    }

    /// Returns the names of the configured remotes, sorted.
    pub fn remotes(&self) -> Vec<String> {
        self.local()
            .remote_names()
            .iter()
            .map(|n| n.to_string())
            .collect()
    }

    /// Returns the addresses of a remote: as configured, and as git rewrites it
    /// (`url.….insteadOf`).
    pub fn remote_urls(&self, name: &str) -> Vec<String> {
        let repo = self.local();
        let configured = repo
            .config_snapshot()
            .string(format!("remote.{name}.url").as_str())
            .map(|v| v.to_string());
        let remote = repo.try_find_remote(name).and_then(|r| r.ok());
        let rewritten =
            remote.and_then(|r| Some(r.url(gix::remote::Direction::Fetch)?.to_string()));
        configured.into_iter().chain(rewritten).collect()
    }

    /// Opens a submodule. Returns `None` if it is not checked out, or cannot be opened.
    pub fn submodule(&self, path: &RepoPath) -> Option<Self> {
        let relative = std::str::from_utf8(path.as_bytes()).ok().map(Path::new)?;
        let is_inside = relative
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_)));
        let top = self.worktree().filter(|_| is_inside)?.join(relative);
        open::nested(&top).ok().flatten()
    }

    /// Returns the folder of this repository's hooks, and the configuration that sets it.
    pub fn hooks(&self) -> Result<HooksDir> {
        hooks::find(self)
    }

    /// Compares HEAD (or the empty tree) with the index.
    ///
    /// # Errors
    /// Usage, if paths are unmerged.
    pub fn staged(&self) -> Result<Change> {
        let repo = self.local();
        let (state, tree) = self.head_state(&repo)?;
        let pairs = staged::compare(&repo, tree, self.index()?)?;
        Change::of_pairs(&repo, pairs, state, State::Index, None)
    }

    /// Compares the index with the worktree; with `untracked`, includes new files that are not
    /// ignored.
    ///
    /// # Errors
    /// Usage, if paths are unmerged or there is no worktree.
    pub fn unstaged(&self, untracked: bool) -> Result<Change> {
        let repo = self.local();
        let mut work = worktree::Worktree::new(self, &repo)?;
        let mut pairs = work.changed()?;
        if untracked {
            pairs.extend(work.untracked()?);
        }
        Change::of_pairs(&repo, pairs, State::Index, State::Worktree, Some(&mut work))
    }

    /// Returns every file of the index as new.
    ///
    /// # Errors
    /// Usage, if paths are unmerged.
    pub fn whole_index(&self) -> Result<Change> {
        let repo = self.local();
        let pairs = staged::compare(&repo, None, self.index()?)?;
        Change::of_pairs(&repo, pairs, State::Empty, State::Index, None)
    }

    /// Returns every tracked file of the worktree as new; with `untracked`, also new files that are
    /// not ignored. A file that a sparse checkout leaves out is as in the index.
    ///
    /// # Errors
    /// Usage, if paths are unmerged or there is no worktree.
    pub fn whole_worktree(&self, untracked: bool) -> Result<Change> {
        self.since(State::Empty, None, untracked)
    }

    /// Compares a commit (or the empty state) with the worktree, including new files.
    pub fn against_worktree(&self, base: State) -> Result<Change> {
        let tree = match &base {
            State::Empty => None,
            State::Commit { tree, .. } => Some(gix_id(tree)),
            State::Index | State::Worktree => return self.unstaged(true),
        };
        self.since(base, tree, true)
    }

    /// Compares a state, which has this tree, with the worktree.
    fn since(&self, base: State, tree: Option<gix::ObjectId>, untracked: bool) -> Result<Change> {
        let repo = self.local();
        let staged = staged::compare(&repo, tree, self.index()?)?;
        let mut work = worktree::Worktree::new(self, &repo)?;
        let mut changed = work.changed()?;
        if untracked {
            changed.extend(work.untracked()?);
        }
        let pairs = work.overlay(staged, changed)?;
        Change::of_pairs(&repo, pairs, base, State::Worktree, Some(&mut work))
    }

    /// Compares a base with the worktree, including new files. Also returns the name of the base,
    /// to display.
    ///
    /// Without `base`, this is the merge base of HEAD and its upstream or the default branch; on
    /// that branch itself, HEAD; and if nothing differs there, the newest commit is compared with
    /// its parent.
    pub fn changes(&self, base: Option<&str>) -> Result<(Change, String)> {
        revision::changes(self, base)
    }

    /// Compares a commit with its parent (1-based; `None` is the first parent, or the empty tree
    /// for a root commit).
    ///
    /// # Errors
    /// Usage, if there is no such parent; incomplete, if a shallow clone lacks it.
    pub fn commit(&self, id: ObjectId, parent: Option<u32>) -> Result<Change> {
        revision::commit(&self.local(), id, parent)
    }

    /// Compares two commits (or empty states) with each other.
    pub fn between(&self, base: State, head: State) -> Result<Change> {
        let repo = self.local();
        tree::change(&repo, base, head)
    }

    /// Resolves a revision to a commit. Follows tags.
    ///
    /// # Errors
    /// Usage, if the text is not a revision of one commit, or a name is ambiguous.
    pub fn resolve(&self, rev: &str) -> Result<ObjectId> {
        revision::resolve(self, rev, "")
    }

    /// Resolves a base as [`Repo::resolve`] does, with hints that contain the flag.
    ///
    /// # Errors
    /// As [`Repo::resolve`].
    pub fn resolve_base(&self, rev: &str) -> Result<ObjectId> {
        revision::resolve(self, rev, revision::AS_BASE)
    }

    /// Returns the meanings of the name in a revision by git's rules. See [`names::is_ambiguous`].
    ///
    /// # Errors
    /// Incomplete: a reference cannot be read.
    pub fn places(&self, rev: &str) -> Result<Vec<names::NameMeaning>> {
        names::places(self, &self.local(), rev)
    }

    /// Returns the commits of `A..B`, oldest first.
    ///
    /// # Errors
    /// Incomplete: the history between the two is truncated.
    pub fn range(&self, from: &str, to: &str) -> Result<Vec<ObjectId>> {
        let (from, to) = (self.resolve(from)?, self.resolve(to)?);
        revision::whole_walk(&self.local(), to, &[from])
    }

    /// Returns the net changes of the commits of `from..to`: since each merge base of the two, or
    /// since `from` if they have no common commit.
    ///
    /// # Errors
    /// Incomplete: the history is truncated before the merge base is certain.
    pub fn net(&self, from: ObjectId, to: ObjectId) -> Result<Vec<Change>> {
        revision::net(self, from, to)
    }

    /// Returns the best common ancestor of two commits, or `None` if they have none.
    pub fn merge_base(&self, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>> {
        graph::merge_base(&self.local(), one, &[other])
    }

    /// Compares a head (default HEAD) with its merge base with `base` (default: upstream,
    /// `origin/HEAD`).
    pub fn branch(&self, head: Option<&str>, base: Option<&str>) -> Result<Branch> {
        revision::branch(self, head, base)
    }

    /// Compares the commits that a pre-push range sends with what the remote has. Returns `None`
    /// for a deletion.
    pub fn push(&self, range: &crate::request::PushRange) -> Result<Option<Branch>> {
        revision::push(self, range)
    }

    /// Returns access for one thread. Create one per thread and reuse it: it has the caches.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(self, self.local())
    }

    /// Returns a handle for the current thread.
    fn local(&self) -> gix::Repository {
        let mut repo = self.sync.to_thread_local();
        repo.object_cache_size_if_unset(8 << 20);
        repo
    }

    /// Returns HEAD as a state, and its tree.
    fn head_state(&self, repo: &gix::Repository) -> Result<(State, Option<gix::ObjectId>)> {
        Ok(match self.head_and_tree(repo)? {
            None => (State::Empty, None),
            Some((commit, tree)) => (
                State::Commit {
                    commit: own(&commit),
                    tree: own(&tree),
                },
                Some(tree),
            ),
        })
    }

    fn head_and_tree(
        &self,
        repo: &gix::Repository,
    ) -> Result<Option<(gix::ObjectId, gix::ObjectId)>> {
        if let Some(head) = self.head.get() {
            return Ok(*head);
        }
        let head = match self.refs.head(repo)? {
            None => None,
            Some(commit) => Some((commit, tree::of_commit(repo, commit)?)),
        };
        Ok(*self.head.get_or_init(|| head))
    }

    /// Returns the index, read once. A missing file is an empty index.
    fn index(&self) -> Result<&gix::index::File> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let found = std::fs::metadata(&self.index_path);
        // Opening a named pipe blocks until a writer opens it.
        if found.as_ref().is_ok_and(|m| !m.is_file()) {
            let error = Error::incomplete(format!(
                "the index {} is not a regular file",
                self.index_path.display()
            ));
            return Err(error.hint("move it away, then rebuild the index from HEAD: git reset"));
        }
        // Counting the processors costs more than reading a small index.
        let small = found.is_ok_and(|m| m.len() < 1 << 20);
        let options = gix::index::decode::Options {
            thread_limit: small.then_some(1),
            ..Default::default()
        };
        // Git does not verify the checksum on reads either; it would double the time.
        let index = gix::index::File::at_or_default(
            &self.index_path,
            self.sync.to_thread_local().object_hash(),
            true,
            options,
        )
        .map_err(|e| {
            Error::incomplete(format!(
                "cannot read the index {}",
                self.index_path.display()
            ))
            .caused_by(&e)
        })?;
        Ok(self.index.get_or_init(|| index))
    }
}

/// Returns the value of a key in the configuration, unless it is empty.
fn text_of(config: &gix::config::Snapshot<'_>, key: &str) -> Option<String> {
    config
        .string(key)
        .map(|v| v.to_string())
        .filter(|v| !v.is_empty())
}

impl Change {
    /// Creates a change from differing pairs: detects renames, splits type changes, sorts.
    fn of_pairs(
        repo: &gix::Repository,
        mut pairs: Vec<Pair>,
        base: State,
        head: State,
        mut work: Option<&mut worktree::Worktree<'_>>,
    ) -> Result<Self> {
        rename::detect(repo, &mut pairs, work.as_deref_mut())?;
        pairs.sort_by(|a, b| a.path().cmp(b.path()));
        if let Some(work) = work.as_deref_mut() {
            for half in pairs.iter_mut().filter_map(|p| p.new.as_mut()) {
                work.remark(half)?;
            }
        }
        let mut change = Self {
            entries: Vec::with_capacity(pairs.len()),
            base,
            head,
            notes: Vec::new(),
            work: HashMap::new(),
            dirty: HashSet::new(),
        };
        for pair in pairs {
            change.push(pair);
        }
        if let Some(work) = work {
            change.notes = std::mem::take(&mut work.notes);
            for (path, content) in work.take_read() {
                if let Some(slot) = change.work.get(&path) {
                    *slot
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(content);
                }
            }
        }
        Ok(change)
    }

    fn push(&mut self, pair: Pair) {
        let Pair {
            old,
            new,
            similarity,
        } = pair;
        if let Some(n) = &new {
            match n.at {
                ContentLocation::Work => drop(
                    self.work
                        .insert(RepoPath::new(n.path.clone()), Mutex::new(None)),
                ),
                ContentLocation::Dirty => drop(self.dirty.insert(RepoPath::new(n.path.clone()))),
                ContentLocation::Objects => {}
            }
        }
        let (old, new) = (old.map(Half::into_side), new.map(Half::into_side));
        match (old, new) {
            (Some(old), Some(new)) if kind_of(old.mode) != kind_of(new.mode) => {
                self.entries.push(Entry {
                    kind: ChangeKind::Deleted,
                    old: Some(old),
                    new: None,
                });
                self.entries.push(Entry {
                    kind: ChangeKind::Added,
                    old: None,
                    new: Some(new),
                });
            }
            (Some(old), Some(new)) => {
                let kind = match similarity {
                    Some(score) => ChangeKind::Renamed {
                        similarity: rename::percent(score),
                    },
                    None => ChangeKind::Modified,
                };
                self.entries.push(Entry {
                    kind,
                    old: Some(old),
                    new: Some(new),
                });
            }
            (Some(old), None) => self.entries.push(Entry {
                kind: ChangeKind::Deleted,
                old: Some(old),
                new: None,
            }),
            (None, Some(new)) => self.entries.push(Entry {
                kind: ChangeKind::Added,
                old: None,
                new: Some(new),
            }),
            (None, None) => {}
        }
    }
}

/// The location of a new side's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ContentLocation {
    Objects,
    Work,
    /// A submodule whose worktree has changes of its own.
    Dirty,
}

/// One side of a difference under construction.
#[derive(Clone, Debug)]
struct Half {
    path: Vec<u8>,
    mode: FileMode,
    /// All zeros if the content was not read yet (only for [`ContentLocation::Work`]).
    id: gix::ObjectId,
    at: ContentLocation,
}

impl Half {
    fn into_side(self) -> Side {
        let id = (!self.id.is_null()).then(|| own(&self.id));
        Side {
            path: RepoPath::new(self.path),
            mode: self.mode,
            id,
        }
    }
}

/// A difference under construction.
#[derive(Clone, Debug)]
struct Pair {
    old: Option<Half>,
    new: Option<Half>,
    /// Git's score of a rename, 30,000 to 60,000.
    similarity: Option<u32>,
}

impl Pair {
    fn new(old: Option<Half>, new: Option<Half>) -> Self {
        Self {
            old,
            new,
            similarity: None,
        }
    }

    fn path(&self) -> &[u8] {
        self.new
            .as_ref()
            .or(self.old.as_ref())
            .map_or(&[], |h| &h.path)
    }
}

/// Groups modes as git does: a change between groups is a deletion and an addition.
fn kind_of(mode: FileMode) -> FileMode {
    match mode {
        FileMode::Executable => FileMode::Regular,
        m => m,
    }
}

fn own(id: &gix::oid) -> ObjectId {
    // gix has two kinds of hash, and `ObjectId` accepts the lengths of both.
    ObjectId::from_raw(id.as_bytes()).unwrap_or_else(|| unreachable!("a hash of 20 or 32 bytes"))
}

fn gix_id(id: &ObjectId) -> gix::ObjectId {
    gix::ObjectId::from_bytes_or_panic(id.as_bytes())
}

/// Returns the error for an object that cannot be read, with hints.
fn unreadable(
    repo: &gix::Repository,
    id: &gix::oid,
    cause: Option<&(dyn std::error::Error + 'static)>,
) -> Error {
    let is_shallow = repo.is_shallow().unwrap_or(false);
    match cause {
        Some(cause) => Error::incomplete(format!("cannot read object {id}"))
            .caused_by(cause)
            .hint("git fsck --full"),
        None if reach::is_partial(repo) => {
            Error::incomplete(format!("object {id} is missing from this partial clone"))
                .hint("fetch all objects: git fetch --refetch --no-filter")
        }
        None if is_shallow => {
            Error::incomplete(format!("object {id} is missing from this shallow clone"))
                .hint("git fetch --unshallow")
        }
        None if !repo.remote_names().is_empty() => {
            Error::incomplete(format!("object {id} is missing")).hint("git fetch --refetch")
        }
        None => Error::incomplete(format!("object {id} is missing")).hint("git fsck --full"),
    }
}

/// Returns a path with its links resolved; the path itself if it does not exist.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
