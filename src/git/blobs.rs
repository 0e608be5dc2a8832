//! The blobs of a history: every version of every file that a set of commits introduced.

use super::blobtree::{TreeBlobs, TreeSearch};
use super::forest::{self, BlobVisitor};
use super::lineage::{BlobOrigin, Commits, HistorySearch, Lineage, LostObject, NamedEntry};
use super::packs::{Number, ObjectSet, Objects};
use super::{Repo, gix_id, own};
use crate::diff::ObjectId;
use crate::error::Result;
use gix::objs::Kind;
use std::collections::HashSet;

/// The commits of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryScope {
    /// All commits that a reference or HEAD reaches.
    Everything,
    /// These commits. The blobs of other commits are not part of the history.
    Commits(Vec<ObjectId>),
}

/// The number of a blob in [`HistoryBlobs`].
pub type BlobNumber = u32;

/// The blobs that the commits of a history introduced, each once.
///
/// The objects are read as they are stored: replace references and grafts hide nothing, and
/// nothing is fetched.
pub struct HistoryBlobs {
    repo: gix::ThreadSafeRepository,
    set: ObjectSet,
    commits: Commits,
    lineage: Lineage,
    is_cut_off: bool,
    /// Why references were not followed, one text each.
    broken: Vec<String>,
}

impl std::fmt::Debug for HistoryBlobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HistoryBlobs")
            .field("commits", &self.commits.count())
            .finish_non_exhaustive()
    }
}

impl Repo {
    /// Finds the blobs of a history, with the commit and the path that introduced each.
    ///
    /// The first commit is the oldest one in the order in which parents come before children, and
    /// unrelated commits are sorted by date.
    ///
    /// # Errors
    /// Incomplete: packs or folders of objects cannot be read. Objects that are missing are not an
    /// error, but listed in [`HistoryBlobs::lost`], and broken references in
    /// [`HistoryBlobs::broken`].
    pub fn history(&self, scope: &HistoryScope, search: HistorySearch<'_>) -> Result<HistoryBlobs> {
        let repo = self.local();
        let set = ObjectSet::open(&repo)?;
        let shallow: HashSet<gix::ObjectId> = super::reach::cut_off(&repo)?
            .unwrap_or_default()
            .into_iter()
            .collect();
        let mut lost = Vec::new();
        let mut broken = Vec::new();
        let commits = match scope {
            HistoryScope::Everything => {
                let ends = self.refs.ends(&repo);
                broken = ends.broken;
                let mut all = Commits::reachable(
                    &repo,
                    &set,
                    &ends.commits,
                    &shallow,
                    search.is_over,
                    &mut lost,
                );
                all.add_named(&repo, &set, &ends.others, &mut lost);
                all
            }
            HistoryScope::Commits(ids) => {
                let ids: Vec<gix::ObjectId> = ids.iter().map(gix_id).collect();
                Commits::listed(&repo, &set, &ids, search.is_over, &mut lost)
            }
        };
        let is_cut_off = commits.ids(&set).any(|id| shallow.contains(&id));
        let mut lineage = Lineage::find(&self.sync, &set, &commits, search);
        lost.append(&mut lineage.lost);
        lost.sort_by(|a, b| (&a.path, a.id).cmp(&(&b.path, b.id)));
        lost.dedup_by_key(|l| l.id);
        lineage.lost = lost;
        Ok(HistoryBlobs {
            repo: self.sync.clone(),
            set,
            commits,
            lineage,
            is_cut_off,
            broken,
        })
    }
}

impl HistoryBlobs {
    /// Returns the number of commits.
    pub fn commits(&self) -> usize {
        self.commits.count()
    }

    /// Returns why references were not followed, one text for each broken one, which it names.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// Returns the number of blobs.
    pub fn count(&self) -> usize {
        self.lineage.origins.iter().filter(|o| o.is_some()).count()
    }

    /// Returns the objects that are missing or cannot be read, by path.
    pub fn lost(&self) -> &[LostObject] {
        &self.lineage.lost
    }

    /// Returns true if a shallow clone omits older commits.
    pub fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Returns true if a number is that of a blob of the history.
    pub fn has(&self, number: BlobNumber) -> bool {
        self.origin(number).is_some()
    }

    /// Returns the path that introduced a blob.
    pub fn path(&self, number: BlobNumber) -> &[u8] {
        let paths = &self.lineage.paths;
        paths
            .get(self.path_index(number) as usize)
            .map_or(&[][..], |p| p)
    }

    /// Returns the number of the path that introduced a blob. Equal paths have equal numbers.
    pub fn path_index(&self, number: BlobNumber) -> u32 {
        self.origin(number).path
    }

    /// Returns the place of the introducing commit in the order of the history, from 1. The place
    /// is 0 for a blob that a commit before the history had at this path.
    pub fn rank(&self, number: BlobNumber) -> u32 {
        self.origin(number).rank
    }

    /// Returns the commit that introduced a blob; `None` if it was there before the history, or only
    /// a reference names it.
    pub fn commit(&self, number: BlobNumber) -> Option<ObjectId> {
        self.commits.id(&self.set, self.rank(number))
    }

    /// Returns the blob or tree by which a reference names a blob that no commit has at its path.
    pub fn named(&self, number: BlobNumber) -> Option<&NamedEntry> {
        self.commits.named(self.rank(number))
    }

    fn origin(&self, number: BlobNumber) -> BlobOrigin {
        let known = self.lineage.origins.get(number as usize);
        known.copied().unwrap_or(BlobOrigin::NONE)
    }

    /// Passes each blob once to one of the visitors, which run in parallel. Returns the visitors.
    pub fn visit<V: BlobVisitor + Send>(&self, visitors: Vec<V>) -> Vec<V> {
        let wants = |number: Number| self.origin(number).is_some();
        forest::visit(&self.set, &wants, visitors)
    }

    /// Reads one blob.
    ///
    /// # Errors
    /// Incomplete: it is missing or corrupt.
    pub fn read(&self, number: BlobNumber) -> Result<Vec<u8>> {
        let repo = self.repo.to_thread_local();
        let data = Objects::new(&self.set).read(&repo, number, Kind::Blob)?;
        Ok(data.to_vec())
    }

    /// Returns the paths that some blobs have in a tree.
    ///
    /// # Errors
    /// Incomplete: the tree, or one below it, is missing or corrupt, or it has too many paths.
    pub fn in_tree(&self, tree: ObjectId, search: TreeSearch<'_>) -> Result<TreeBlobs> {
        let repo = self.repo.to_thread_local();
        super::blobtree::in_tree(&repo, &self.set, &gix_id(&tree), search)
    }

    /// Returns the ID of a blob.
    pub fn id(&self, number: BlobNumber) -> ObjectId {
        own(&self.set.id(number))
    }
}
