//! Finds blobs of a history in one tree.

use super::entries::{Cursor, EntryKind};
use super::lineage::{MAX_DEPTH, VISITS_MAX, VISITS_STEP};
use super::packs::{Number, ObjectSet, Objects};
use super::unreadable;
use crate::diff::RepoPath;
use crate::error::{Error, Result};
use gix::objs::Kind;
use std::collections::{HashMap, HashSet};

/// Result of a search of a tree for blobs.
#[derive(Debug, Default)]
pub struct TreeBlobs {
    /// Paths of the wanted blobs.
    pub paths: HashMap<Number, Vec<RepoPath>>,
    /// True if the tree has a blob that was not searched.
    pub has_unsearched: bool,
}

/// Target of a search of a tree.
#[derive(Clone, Copy)]
pub struct TreeSearch<'a> {
    /// Blobs whose paths are listed.
    pub wanted: &'a HashSet<Number>,
    /// Returns true if the history search has read a blob.
    pub is_searched: &'a dyn Fn(Number) -> bool,
    /// Returns true if the search should end.
    pub is_over: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for TreeSearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeSearch").finish_non_exhaustive()
    }
}

/// Returns the paths that some blobs have in a tree.
///
/// # Errors
/// Incomplete: the tree, or one below it, is missing or corrupt, or it has too many paths.
pub(super) fn in_tree(
    repo: &gix::Repository,
    set: &ObjectSet,
    tree: &gix::oid,
    search: TreeSearch<'_>,
) -> Result<TreeBlobs> {
    let mut objects = Objects::new(set);
    let mut found = TreeBlobs::default();
    let mut visits = 0;
    let mut open = vec![(Vec::new(), tree.to_owned(), 0)];
    while let Some((prefix, id, depth)) = open.pop() {
        // The empty tree need not exist.
        if id.is_empty_tree() {
            continue;
        }
        let number = set.find(&id).ok_or_else(|| unreadable(repo, &id, None))?;
        let data = objects.read(repo, number, Kind::Tree)?;
        let mut entries = Cursor::new(&data, false, repo.object_hash().len_in_bytes());
        while let Some(entry) = entries.entry {
            entries.advance();
            visits += 1;
            if visits > VISITS_MAX {
                let why = format!("the tree of HEAD has more than {VISITS_MAX} paths");
                return Err(Error::incomplete(why));
            }
            if visits % VISITS_STEP == 0 && (search.is_over)() {
                found.has_unsearched = true;
                return Ok(found);
            }
            let id = gix::oid::from_bytes_unchecked(entry.id);
            let path = [&prefix[..], entry.name].concat();
            match entry.kind {
                EntryKind::Submodule => {}
                EntryKind::Tree if depth < MAX_DEPTH => {
                    open.push(([&path[..], b"/"].concat(), id.to_owned(), depth + 1));
                }
                EntryKind::Tree => found.has_unsearched = true,
                EntryKind::Blob => {
                    let number = set.find(id);
                    found.has_unsearched |= !number.is_some_and(search.is_searched);
                    if let Some(number) = number.filter(|n| search.wanted.contains(n)) {
                        let paths = found.paths.entry(number).or_default();
                        paths.push(RepoPath::new(path));
                    }
                }
            }
        }
    }
    Ok(found)
}
