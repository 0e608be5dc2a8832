//! Compares a tree with the index, in one walk over both.
//!
//! The index contains the IDs of the trees it was written from (its cache tree). If an ID equals
//! the tree's, the whole folder is equal and is skipped: a small change in a large repository costs
//! little more than reading the index.

use super::tree::{self, TreeEntries, TreeEntry};
use super::{ContentLocation, Half, Pair, Repo};
use crate::diff::{FileMode, RepoPath};
use crate::error::{Error, Result};
use crate::text::listed;
use gix::index::entry::{Flags, Mode};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Returns the differences between a tree (`None` is the empty one) and the index.
///
/// # Errors
/// Usage, if paths are unmerged.
pub(super) fn compare(
    repo: &gix::Repository,
    tree: Option<gix::ObjectId>,
    index: &gix::index::State,
) -> Result<Vec<Pair>> {
    let mut walk = IndexWalk {
        repo,
        index,
        out: Vec::new(),
        unmerged: Vec::new(),
        prefix: Vec::new(),
    };
    walk.folder(tree, index.tree(), 0, index.entries().len())?;
    match walk.unmerged.is_empty() {
        true => Ok(walk.out),
        false => Err(unmerged(&walk.unmerged)),
    }
}

impl Repo {
    /// Returns the paths that git lists as unmerged: the index has conflict stages, whether or not
    /// the file has markers.
    ///
    /// # Errors
    /// Incomplete, if the index cannot be read.
    pub fn unmerged(&self) -> Result<BTreeSet<RepoPath>> {
        let index = self.index()?;
        let backing = index.path_backing();
        let open = index.entries().iter().filter(|e| e.stage_raw() != 0);
        Ok(open
            .map(|e| RepoPath::new(e.path_in(backing).to_vec()))
            .collect())
    }
}

/// Returns the error for unmerged paths.
pub(super) fn unmerged(paths: &[Vec<u8>]) -> Error {
    let shown: Vec<_> = paths
        .iter()
        .take(5)
        .map(|p| String::from_utf8_lossy(p).into_owned())
        .collect();
    Error::usage(format!("unmerged paths: {}", listed(&shown, paths.len())))
        .hint("resolve the conflicts, then stage the files: git add PATH")
}

/// Returns the mode of an index entry, or `None` for the folder of a sparse index.
pub(super) fn mode_of(mode: Mode) -> Option<FileMode> {
    match mode {
        Mode::FILE_EXECUTABLE => Some(FileMode::Executable),
        Mode::SYMLINK => Some(FileMode::Symlink),
        Mode::COMMIT => Some(FileMode::Submodule),
        Mode::DIR => None,
        _ => Some(FileMode::Regular),
    }
}

struct IndexWalk<'a> {
    repo: &'a gix::Repository,
    index: &'a gix::index::State,
    out: Vec<Pair>,
    unmerged: Vec<Vec<u8>>,
    /// Current folder: empty, or ending in `/`.
    prefix: Vec<u8>,
}

impl IndexWalk<'_> {
    /// Compares the entries `lo..hi` of the index, all below the prefix, with a tree.
    fn folder(
        &mut self,
        tree: Option<gix::ObjectId>,
        cache: Option<&gix::index::extension::Tree>,
        mut lo: usize,
        hi: usize,
    ) -> Result<()> {
        if let (Some(tree), Some(cache)) = (tree, cache)
            && cache.num_entries.is_some()
            && cache.id == tree
        {
            return Ok(());
        }
        let mut data = Vec::new();
        if let Some(tree) = tree {
            tree::load(self.repo, &tree, gix::objs::Kind::Tree, &mut data)?;
        }
        let mut entries = TreeEntries::new(self.repo, &data);
        let mut old = entries.next()?;
        let skip = self.prefix.len();
        let (index, backing) = (self.index, self.index.path_backing());
        loop {
            lo = self.skip_unreal(lo, hi);
            // The next name in the index: of a file, or of a folder with its content.
            let new = (lo < hi).then(|| {
                let rest = &index.entries()[lo].path_in(backing)[skip..];
                match memchr::memchr(b'/', rest) {
                    Some(i) => (&rest[..i], true),
                    None => (rest, false),
                }
            });
            let which = match (&old, new) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(t), Some((name, is_folder))) => {
                    tree::order(t.name, t.mode.is_none(), name, is_folder)
                }
            };
            let entry = if which == Ordering::Greater {
                None
            } else {
                old
            };
            match (which, new) {
                (Ordering::Less, _) | (_, None) => self.removed(entry)?,
                (_, Some((name, true))) => {
                    let end = lo
                        + index.entries()[lo..hi].partition_point(|e| {
                            let rest = &e.path_in(backing)[skip..];
                            rest.len() > name.len()
                                && rest.starts_with(name)
                                && rest[name.len()] == b'/'
                        });
                    self.prefix.extend_from_slice(name);
                    self.prefix.push(b'/');
                    let sub = entry.map(|e| e.id.to_owned());
                    let e = &index.entries()[lo];
                    if e.mode == Mode::DIR && e.path_in(backing).len() == self.prefix.len() {
                        // A sparse index has a whole folder as one entry.
                        tree::compare(self.repo, sub, Some(e.id), &mut self.prefix, &mut self.out)?;
                    } else {
                        let cache = cache
                            .and_then(|c| c.children.iter().find(|c| c.name.as_slice() == name));
                        self.folder(sub, cache, lo, end)?;
                    }
                    self.prefix.truncate(skip);
                    lo = end;
                }
                (_, Some((_, false))) => {
                    self.file(entry, lo);
                    lo += 1;
                }
            }
            if which != Ordering::Greater {
                old = entries.next()?;
            }
        }
    }

    /// Skips entries without staged content: unmerged ones (kept for the error) and `git add -N`.
    fn skip_unreal(&mut self, mut lo: usize, hi: usize) -> usize {
        while lo < hi {
            let e = &self.index.entries()[lo];
            if e.stage_raw() != 0 {
                let path = e.path_in(self.index.path_backing());
                if self.unmerged.last().is_none_or(|last| last != path) {
                    self.unmerged.push(path.to_vec());
                }
            } else if !e.flags.contains(Flags::INTENT_TO_ADD) {
                break;
            }
            lo += 1;
        }
        lo
    }

    fn file(&mut self, old: Option<TreeEntry<'_>>, at: usize) {
        let e = &self.index.entries()[at];
        let Some(mode) = mode_of(e.mode) else { return };
        if old.is_some_and(|t| t.id == e.id && t.mode == Some(mode)) {
            return;
        }
        let path = e.path_in(self.index.path_backing()).to_vec();
        let old = old.and_then(|t| t.file(&path));
        self.out.push(Pair::new(
            old,
            Some(Half {
                path,
                mode,
                id: e.id,
                at: ContentLocation::Objects,
            }),
        ));
    }

    fn removed(&mut self, old: Option<TreeEntry<'_>>) -> Result<()> {
        let Some(e) = old else { return Ok(()) };
        let keep = self.prefix.len();
        self.prefix.extend_from_slice(e.name);
        match e.mode {
            Some(mode) => {
                let half = Half {
                    path: self.prefix.clone(),
                    mode,
                    id: e.id.to_owned(),
                    at: ContentLocation::Objects,
                };
                self.out.push(Pair::new(Some(half), None));
            }
            None => {
                self.prefix.push(b'/');
                tree::compare(
                    self.repo,
                    Some(e.id.to_owned()),
                    None,
                    &mut self.prefix,
                    &mut self.out,
                )?;
            }
        }
        self.prefix.truncate(keep);
        Ok(())
    }
}
