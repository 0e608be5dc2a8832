//! Finds the commit and path that introduced each blob of a history.
//!
//! Only the entries of a commit's trees that no parent has are visited, so the work grows with the
//! changes and not with the size of the trees. Commits are compared from the newest to the oldest,
//! because packs store old trees as deltas of new ones. Which commit is the first is decided by
//! rank: parents come before children, and of unrelated commits the earlier date counts.

mod budget;

use super::entries::{Cursor, EntryKind, RawEntry};
use super::packs::{Number, ObjectSet, Objects};
use super::refs::NamedObject;
use super::{own, unreadable};
use crate::diff::ObjectId;
use crate::error::Error;
use budget::{COMPARED_EACH, COMPARED_STEP, VisitBudget};
use gix::objs::Kind;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering as Memory};

pub(super) use budget::{VISITS_MAX, VISITS_STEP};

/// Depth of nested folders, at most; git's own limit (`core.maxTreeDepth`).
pub(super) const MAX_DEPTH: usize = 2048;
/// Stack size in bytes of a thread, for trees of [`MAX_DEPTH`] levels.
const STACK: usize = 16 << 20;
/// Commits that a thread takes at once.
const BATCH: usize = 128;
/// Visits that a new path counts as, and bytes of it that count as one more. Paths are kept in memory.
const PATH_VISITS: u64 = 8;
const PATH_UNIT: usize = 16;
/// Mark of a parent that is not part of the history.
const OUTSIDE: u32 = u32::MAX;

/// The commits of a history.
pub(super) struct Commits {
    all: Vec<HistoryCommit>,
    /// For each parent, its index in `all`, or [`OUTSIDE`], and its tree.
    parents: Vec<(u32, Number)>,
    /// Indexes in `all` from the oldest to the newest. The place in this order is the rank.
    by_rank: Vec<u32>,
    /// Number of entries of `all` that are not commits, but objects that a reference names.
    named: usize,
}

/// A commit of a history.
struct HistoryCommit {
    number: Number,
    tree: Number,
    /// Time of the committer, in seconds since 1970.
    seconds: i64,
    /// Range in [`Commits::parents`].
    parents: (u32, u32),
    /// Set if this is not a commit, but a blob or tree that a reference names.
    named: Option<Box<NamedEntry>>,
}

/// A blob or tree of a history that a reference names, directly or by a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEntry {
    /// Full name of the reference, or the ID of the object if the name is not known. It stands for
    /// the path of a blob.
    pub name: String,
    pub id: ObjectId,
    /// False for a tree.
    pub is_blob: bool,
}

/// An object that a history needs and the repository lacks, or cannot read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostObject {
    pub id: ObjectId,
    /// Path of a folder or file; empty for a commit and for the tree of one.
    pub path: Vec<u8>,
    /// The cause, on one line.
    pub why: String,
}

/// The fields of a commit object that a walk needs.
struct ParsedCommit {
    tree: gix::ObjectId,
    parents: Vec<gix::ObjectId>,
    seconds: i64,
}

impl ParsedCommit {
    fn parse(data: &[u8], hash: gix::hash::Kind) -> Option<Self> {
        let iter = || gix::objs::CommitRefIter::from_bytes(data, hash);
        let parents: Vec<gix::ObjectId> = iter().parent_ids().collect();
        // An invalid parent ends the iterator as if the commit had no more of them, and hides the
        // history below it.
        let lines = data.split(|b| *b == b'\n').skip(1);
        if parents.len() != lines.take_while(|l| l.starts_with(b"parent ")).count() {
            return None;
        }
        let seconds = iter()
            .committer()
            .ok()
            .and_then(|c| c.time().ok())
            .map_or(0, |time| time.seconds);
        Some(Self {
            tree: iter().tree_id().ok()?,
            parents,
            seconds,
        })
    }
}

/// Reads a commit. The error is `None` if it is missing.
fn read_commit(
    repo: &gix::Repository,
    set: &ObjectSet,
    objects: &mut Objects<'_>,
    id: &gix::oid,
) -> std::result::Result<(Number, ParsedCommit), Option<Error>> {
    let number = set.find(id).ok_or(None)?;
    let data = objects.read(repo, number, Kind::Commit).map_err(Some)?;
    let commit = ParsedCommit::parse(&data, repo.object_hash());
    let malformed = || Error::incomplete(format!("commit {id} is malformed"));
    Ok((number, commit.ok_or_else(|| Some(malformed()))?))
}

impl Commits {
    /// Reads all commits that are reachable from `tips`, until `is_over` returns true. A commit of
    /// `shallow` counts as a root.
    pub(super) fn reachable(
        repo: &gix::Repository,
        set: &ObjectSet,
        tips: &[gix::ObjectId],
        shallow: &HashSet<gix::ObjectId>,
        is_over: &dyn Fn() -> bool,
        lost: &mut Vec<LostObject>,
    ) -> Self {
        let mut objects = Objects::new(set);
        let mut index: HashMap<Number, u32, foldhash::fast::FixedState> = HashMap::default();
        let mut found: Vec<(Number, ParsedCommit)> = Vec::new();
        let mut open: Vec<gix::ObjectId> = tips.to_vec();
        open.reverse();
        while let Some(id) = open.pop() {
            if found.len().is_multiple_of(BATCH) && is_over() {
                break;
            }
            if set.find(&id).is_some_and(|n| index.contains_key(&n)) {
                continue;
            }
            match read_commit(repo, set, &mut objects, &id) {
                Ok((number, mut commit)) => {
                    if shallow.contains(&id) {
                        commit.parents.clear();
                    }
                    index.insert(number, found.len() as u32);
                    open.extend(commit.parents.iter().rev());
                    found.push((number, commit));
                }
                Err(e) => lost.push(LostObject::commit(repo, id, e.as_ref())),
            }
        }
        Self::link(repo, set, &mut objects, &index, &found, lost)
    }

    /// Reads these commits, until `is_over` returns true. Parents that are not among them are not
    /// part of the history.
    pub(super) fn listed(
        repo: &gix::Repository,
        set: &ObjectSet,
        ids: &[gix::ObjectId],
        is_over: &dyn Fn() -> bool,
        lost: &mut Vec<LostObject>,
    ) -> Self {
        let mut objects = Objects::new(set);
        let mut index: HashMap<Number, u32, foldhash::fast::FixedState> = HashMap::default();
        let mut found = Vec::new();
        for id in ids {
            if found.len().is_multiple_of(BATCH) && is_over() {
                break;
            }
            match read_commit(repo, set, &mut objects, id) {
                Ok((number, commit)) => {
                    index.insert(number, found.len() as u32);
                    found.push((number, commit));
                }
                Err(e) => lost.push(LostObject::commit(repo, *id, e.as_ref())),
            }
        }
        Self::link(repo, set, &mut objects, &index, &found, lost)
    }

    /// Connects commits with their parents and trees, and ranks them.
    fn link(
        repo: &gix::Repository,
        set: &ObjectSet,
        objects: &mut Objects<'_>,
        index: &HashMap<Number, u32, foldhash::fast::FixedState>,
        found: &[(Number, ParsedCommit)],
        lost: &mut Vec<LostObject>,
    ) -> Self {
        let mut out = Self {
            all: Vec::with_capacity(found.len()),
            parents: Vec::new(),
            by_rank: Vec::new(),
            named: 0,
        };
        let trees: Vec<Option<Number>> = found.iter().map(|(_, c)| set.find(&c.tree)).collect();
        for (at, (number, commit)) in found.iter().enumerate() {
            let first = out.parents.len() as u32;
            for parent in &commit.parents {
                let known = set.find(parent);
                match known.and_then(|n| index.get(&n)) {
                    Some(i) => {
                        let tree = trees[*i as usize].unwrap_or(NO_OBJECT);
                        out.parents.push((*i, tree));
                    }
                    None => {
                        let data = known.and_then(|n| objects.read(repo, n, Kind::Commit).ok());
                        let tree = data
                            .and_then(|d| ParsedCommit::parse(&d, repo.object_hash()))
                            .and_then(|c| set.find(&c.tree));
                        out.parents.push((OUTSIDE, tree.unwrap_or(NO_OBJECT)));
                    }
                }
            }
            // The empty tree need not exist.
            if trees[at].is_none() && !commit.tree.is_empty_tree() {
                lost.push(LostObject::tree(repo, commit.tree, b""));
            }
            out.all.push(HistoryCommit {
                number: *number,
                tree: trees[at].unwrap_or(NO_OBJECT),
                seconds: commit.seconds,
                parents: (first, out.parents.len() as u32),
                named: None,
            });
        }
        out.rank(set);
        out
    }

    /// Adds the trees and blobs that references name directly or by tags, as the newest entries: a
    /// commit that has one of their blobs counts as the one that introduced it. The ID of such an
    /// entry is that of the object itself.
    pub(super) fn add_named(
        &mut self,
        repo: &gix::Repository,
        set: &ObjectSet,
        named: &[NamedObject],
        lost: &mut Vec<LostObject>,
    ) {
        for object in named {
            let Some(number) = set.find(&object.id) else {
                lost.push(LostObject::tree(repo, object.id, object.name.as_bytes()));
                continue;
            };
            let end = self.parents.len() as u32;
            let entry = NamedEntry {
                name: object.name.clone(),
                id: own(&object.id),
                is_blob: object.is_blob,
            };
            self.all.push(HistoryCommit {
                number,
                tree: if object.is_blob { NO_OBJECT } else { number },
                seconds: i64::MAX,
                parents: (end, end),
                named: Some(Box::new(entry)),
            });
            self.by_rank.push(self.all.len() as u32 - 1);
            self.named += 1;
        }
    }

    /// Orders the commits: parents first, then by date, then by ID.
    fn rank(&mut self, set: &ObjectSet) {
        let count = self.all.len();
        let mut waiting = vec![0u32; count];
        let mut first_child = vec![OUTSIDE; count];
        let mut next_child = vec![OUTSIDE; self.parents.len()];
        let mut child_of = vec![0u32; self.parents.len()];
        for (child, commit) in self.all.iter().enumerate() {
            for at in commit.parents.0..commit.parents.1 {
                let (parent, _) = self.parents[at as usize];
                if parent == OUTSIDE {
                    continue;
                }
                waiting[child] += 1;
                child_of[at as usize] = child as u32;
                next_child[at as usize] = first_child[parent as usize];
                first_child[parent as usize] = at;
            }
        }
        let key = |i: u32| {
            let commit = &self.all[i as usize];
            Reverse((commit.seconds, set.id(commit.number), i))
        };
        let mut ready: BinaryHeap<_> = (0..count as u32)
            .filter(|i| waiting[*i as usize] == 0)
            .map(key)
            .collect();
        let mut order = Vec::with_capacity(count);
        while let Some(Reverse((_, _, i))) = ready.pop() {
            order.push(i);
            let mut at = first_child[i as usize];
            while at != OUTSIDE {
                let child = child_of[at as usize];
                waiting[child as usize] -= 1;
                if waiting[child as usize] == 0 {
                    ready.push(key(child));
                }
                at = next_child[at as usize];
            }
        }
        self.by_rank = order;
    }

    /// Returns the number of commits.
    pub(super) fn count(&self) -> usize {
        self.all.len() - self.named
    }

    /// Returns the number of commits and of objects that references name.
    fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the IDs of all commits.
    pub(super) fn ids<'a>(
        &'a self,
        set: &'a ObjectSet,
    ) -> impl Iterator<Item = gix::ObjectId> + 'a {
        self.all.iter().map(|c| set.id(c.number))
    }

    /// Returns the commit with a rank; `None` if there is none, or if a reference names the object.
    pub(super) fn id(&self, set: &ObjectSet, rank: u32) -> Option<ObjectId> {
        let commit = self.at(rank).filter(|commit| commit.named.is_none())?;
        Some(own(&set.id(commit.number)))
    }

    /// Returns the object with a rank that a reference names; `None` if it is a commit.
    pub(super) fn named(&self, rank: u32) -> Option<&NamedEntry> {
        self.at(rank)?.named.as_deref()
    }

    /// Returns the entry with a rank, which counts from 1.
    fn at(&self, rank: u32) -> Option<&HistoryCommit> {
        let index = self.by_rank.get(rank.checked_sub(1)? as usize)?;
        self.all.get(*index as usize)
    }
}

/// Stands for an object that the repository lacks.
const NO_OBJECT: Number = Number::MAX;

impl LostObject {
    fn commit(repo: &gix::Repository, id: gix::ObjectId, e: Option<&Error>) -> Self {
        let missing = || missing(repo, &id);
        let why = e.map_or_else(missing, Error::on_one_line);
        Self {
            id: own(&id),
            path: Vec::new(),
            why,
        }
    }

    fn tree(repo: &gix::Repository, id: gix::ObjectId, path: &[u8]) -> Self {
        Self {
            id: own(&id),
            path: path.to_owned(),
            why: missing(repo, &id),
        }
    }
}

/// Returns why an object is missing, with the command that gets it.
fn missing(repo: &gix::Repository, id: &gix::oid) -> String {
    let error = unreadable(repo, id, None);
    std::iter::once(error.on_one_line())
        .chain(error.hints.iter().cloned())
        .collect::<Vec<_>>()
        .join("; ")
}

/// The origin of a blob: the rank of the commit that introduced it, counted from 1, and the index
/// of its path. Rank 0: a commit before the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlobOrigin {
    pub(super) rank: u32,
    pub(super) path: u32,
}

impl BlobOrigin {
    /// The object is not a blob of the history.
    pub(super) const NONE: Self = Self {
        rank: u32::MAX,
        path: u32::MAX,
    };

    /// Returns true if the object is a blob of the history.
    pub(super) fn is_some(self) -> bool {
        self != Self::NONE
    }
}

/// The blobs of a history.
pub(super) struct Lineage {
    /// By number of the object.
    pub(super) origins: Vec<BlobOrigin>,
    pub(super) paths: Vec<Box<[u8]>>,
    pub(super) lost: Vec<LostObject>,
}

/// How well a path suits to judge a blob by it. The least one is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathPriority {
    /// The path is reviewed. The number is smaller where the review is stricter.
    Read(u8),
    /// The path is not reviewed.
    Ignored,
}

/// Input of a search for blobs, and its callbacks.
#[derive(Clone, Copy)]
pub struct HistorySearch<'a> {
    /// Returns the priority of a path. A blob with several paths has the oldest one of the least
    /// priority.
    pub priority: &'a (dyn Fn(&[u8]) -> PathPriority + Sync),
    /// Returns true if the search should end. Its result is incomplete then.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
    /// Threads, at least 1.
    pub threads: usize,
}

impl std::fmt::Debug for HistorySearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistorySearch")
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Lineage {
    /// Finds the origin of each blob.
    pub(super) fn find(
        repo: &gix::ThreadSafeRepository,
        set: &ObjectSet,
        commits: &Commits,
        search: HistorySearch<'_>,
    ) -> Self {
        let next = AtomicUsize::new(0);
        let budget = VisitBudget::new(set);
        let work = || {
            let walk = LineageWalk::new(repo.to_thread_local(), set, search, &budget);
            walk.run(commits, &next)
        };
        std::thread::scope(|s| {
            // If the system cannot start more threads, the existing threads do the work.
            let others = (1..search.threads).map_while(|_| {
                let thread = std::thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(s, work).ok()
            });
            let others: Vec<_> = others.collect();
            let mut all = work();
            for other in others {
                match other.join() {
                    Ok(part) => all.merge(part, search.priority),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }

    /// Adds the results of another thread.
    fn merge(&mut self, other: Self, priority: &dyn Fn(&[u8]) -> PathPriority) {
        let known: HashMap<Box<[u8]>, u32> = self
            .paths
            .iter()
            .enumerate()
            .map(|(i, p)| (p.clone(), i as u32))
            .collect();
        let mut moved = Vec::with_capacity(other.paths.len());
        for path in other.paths {
            moved.push(known.get(&path).copied().unwrap_or_else(|| {
                self.paths.push(path);
                self.paths.len() as u32 - 1
            }));
        }
        let priorities: Vec<PathPriority> = self.paths.iter().map(|p| priority(p)).collect();
        for (mine, theirs) in self.origins.iter_mut().zip(other.origins) {
            if theirs.is_some() {
                let path = moved[theirs.path as usize];
                let theirs = BlobOrigin {
                    rank: theirs.rank,
                    path,
                };
                let key = |o: BlobOrigin| (priorities[o.path as usize], o.rank);
                if !mine.is_some() || key(theirs) < key(*mine) {
                    *mine = theirs;
                }
            }
        }
        self.lost.extend(other.lost);
    }
}

/// A walk of one thread.
struct LineageWalk<'a> {
    repo: gix::Repository,
    set: &'a ObjectSet,
    objects: Objects<'a>,
    search: HistorySearch<'a>,
    origins: Vec<BlobOrigin>,
    paths: Vec<Box<[u8]>>,
    known: HashMap<Box<[u8]>, u32, foldhash::fast::FixedState>,
    priorities: Vec<PathPriority>,
    prefix: Vec<u8>,
    lost: Vec<LostObject>,
    rank: u32,
    hash_bytes: usize,
    budget: &'a VisitBudget,
    /// Compared entries that the budget does not count yet; a visit counts as [`COMPARED_EACH`].
    compared: u64,
    is_ended: bool,
}

/// A tree that an entry is compared with.
#[derive(Clone, Copy)]
struct OtherTree {
    number: Number,
    /// It belongs to a commit that is not part of the history.
    is_outside: bool,
}

impl<'a> LineageWalk<'a> {
    fn new(
        repo: gix::Repository,
        set: &'a ObjectSet,
        search: HistorySearch<'a>,
        budget: &'a VisitBudget,
    ) -> Self {
        let hash_bytes = repo.object_hash().len_in_bytes();
        Self {
            repo,
            set,
            objects: Objects::new(set),
            search,
            origins: vec![BlobOrigin::NONE; set.len()],
            paths: Vec::new(),
            known: HashMap::default(),
            priorities: Vec::new(),
            prefix: Vec::new(),
            lost: Vec::new(),
            rank: 0,
            hash_bytes,
            budget,
            compared: 0,
            is_ended: false,
        }
    }

    /// Takes batches of commits until none is left. `next`: the number of commits that threads have
    /// taken, from the newest.
    fn run(mut self, commits: &Commits, next: &AtomicUsize) -> Lineage {
        loop {
            let from = next.fetch_add(BATCH, Memory::Relaxed);
            if from >= commits.len() || self.is_ended || (self.search.is_over)() {
                return self.done();
            }
            for newer in from..(from + BATCH).min(commits.len()) {
                self.commit(commits, (commits.len() - newer) as u32);
            }
        }
    }

    /// Counts compared entries. Returns true if the walk has to end: the search is over, or the
    /// budget of all threads is exceeded.
    fn is_ended_after(&mut self, compared: u64) -> bool {
        self.compared += compared;
        if self.compared < COMPARED_STEP || self.is_ended {
            return self.is_ended;
        }
        let more = std::mem::take(&mut self.compared);
        let used = self.budget.used.fetch_add(more, Memory::Relaxed) + more;
        if used / COMPARED_EACH > self.budget.max {
            self.is_ended = true;
            if !self.budget.is_exceeded.swap(true, Memory::Relaxed) {
                let max = self.budget.max;
                self.lost.push(LostObject {
                    id: own(&self.repo.object_hash().null()),
                    path: Vec::new(),
                    why: format!(
                        "the search of the trees took more than {max} steps; the rest was not searched"
                    ),
                });
            }
        }
        self.is_ended |= (self.search.is_over)();
        self.is_ended
    }

    fn done(self) -> Lineage {
        Lineage {
            origins: self.origins,
            paths: self.paths,
            lost: self.lost,
        }
    }

    /// Visits the entries of a commit that none of its parents has.
    fn commit(&mut self, commits: &Commits, rank: u32) {
        self.rank = rank;
        let commit = &commits.all[commits.by_rank[rank as usize - 1] as usize];
        let parents = &commits.parents[commit.parents.0 as usize..commit.parents.1 as usize];
        let others: Vec<OtherTree> = parents
            .iter()
            .filter(|(_, tree)| *tree != NO_OBJECT)
            .map(|(index, tree)| OtherTree {
                number: *tree,
                is_outside: *index == OUTSIDE,
            })
            .collect();
        self.prefix.clear();
        if let Some(named) = commit.named.as_ref().filter(|named| named.is_blob) {
            self.prefix.extend_from_slice(named.name.as_bytes());
            self.found(commit.number, rank);
        } else if commit.tree != NO_OBJECT {
            self.tree(commit.tree, &others, 0);
        }
    }

    fn tree(&mut self, new: Number, others: &[OtherTree], depth: usize) {
        if others.iter().any(|o| o.number == new) || self.is_ended_after(COMPARED_EACH) {
            return;
        }
        let Some(data) = self.read(new, depth) else {
            return;
        };
        let others: Vec<(OtherTree, Rc<Vec<u8>>)> = others
            .iter()
            .filter_map(|o| Some((*o, self.read(o.number, depth)?)))
            .collect();
        let mut cursors: Vec<Cursor<'_>> = others
            .iter()
            .map(|(o, data)| Cursor::new(data, o.is_outside, self.hash_bytes))
            .collect();
        let mut entries = Cursor::new(&data, false, self.hash_bytes);
        while let Some(entry) = entries.entry.filter(|_| !self.is_ended_after(1)) {
            entries.advance();
            let mut below = Vec::new();
            let mut is_known = false;
            for cursor in &mut cursors {
                let Some(other) = cursor.at(&entry) else {
                    continue;
                };
                if other.id == entry.id && other.kind == entry.kind {
                    is_known = true;
                    break;
                }
                match (entry.kind, other.kind) {
                    (EntryKind::Tree, EntryKind::Tree) => below.push((other.id, cursor.is_outside)),
                    (EntryKind::Blob, EntryKind::Blob) if cursor.is_outside => {
                        self.blob(other, 0);
                    }
                    _ => {}
                }
            }
            if !is_known {
                self.entry(entry, &below, depth);
            }
        }
        if entries.is_malformed {
            self.lose(new, "the tree is malformed");
        }
    }

    /// Visits an entry that no parent has. `below`: trees of its path in the parents.
    fn entry(&mut self, entry: RawEntry<'_>, below: &[(&[u8], bool)], depth: usize) {
        self.compared += COMPARED_EACH;
        match entry.kind {
            EntryKind::Submodule => {}
            EntryKind::Blob => self.blob(entry, self.rank),
            EntryKind::Tree => {
                let keep = self.prefix.len();
                self.prefix.extend_from_slice(entry.name);
                let id = gix::oid::from_bytes_unchecked(entry.id);
                match self.set.find(id) {
                    None if id.is_empty_tree() => {}
                    None => {
                        self.lost
                            .push(LostObject::tree(&self.repo, id.to_owned(), &self.prefix));
                    }
                    Some(number) => {
                        self.prefix.push(b'/');
                        let others: Vec<OtherTree> = below
                            .iter()
                            .filter_map(|(id, is_outside)| {
                                let number = self.set.find(gix::oid::from_bytes_unchecked(id))?;
                                Some(OtherTree {
                                    number,
                                    is_outside: *is_outside,
                                })
                            })
                            .collect();
                        self.tree(number, &others, depth + 1);
                    }
                }
                self.prefix.truncate(keep);
            }
        }
    }

    /// Records that a commit introduced a blob. `rank` is 0 for a commit before the range.
    fn blob(&mut self, entry: RawEntry<'_>, rank: u32) {
        let keep = self.prefix.len();
        self.prefix.extend_from_slice(entry.name);
        let id = gix::oid::from_bytes_unchecked(entry.id);
        match self.set.find(id) {
            None => self
                .lost
                .push(LostObject::tree(&self.repo, id.to_owned(), &self.prefix)),
            Some(number) => self.found(number, rank),
        }
        self.prefix.truncate(keep);
    }

    /// Records a blob at the current path.
    fn found(&mut self, number: Number, rank: u32) {
        let path = self.path();
        let origin = self.origins[number as usize];
        let key = |o: BlobOrigin| (self.priorities[o.path as usize], o.rank);
        let new = BlobOrigin { rank, path };
        if !origin.is_some() || key(new) < key(origin) {
            self.origins[number as usize] = new;
        }
    }

    /// Returns the index of the current path.
    fn path(&mut self) -> u32 {
        if let Some(index) = self.known.get(&self.prefix[..]) {
            return *index;
        }
        let index = self.paths.len() as u32;
        let path: Box<[u8]> = self.prefix.as_slice().into();
        self.known.insert(path.clone(), index);
        self.compared += COMPARED_EACH * (PATH_VISITS + (path.len() / PATH_UNIT) as u64);
        self.priorities.push((self.search.priority)(&path));
        self.paths.push(path);
        index
    }

    fn read(&mut self, number: Number, depth: usize) -> Option<Rc<Vec<u8>>> {
        if depth > MAX_DEPTH {
            self.lose(number, "it has too many levels of folders");
            return None;
        }
        match self.objects.read(&self.repo, number, Kind::Tree) {
            Ok(data) => Some(data),
            Err(e) => {
                self.lose(number, &e.on_one_line());
                None
            }
        }
    }

    fn lose(&mut self, number: Number, why: &str) {
        self.lost.push(LostObject {
            id: own(&self.set.id(number)),
            path: self.prefix.clone(),
            why: why.to_owned(),
        });
    }
}
