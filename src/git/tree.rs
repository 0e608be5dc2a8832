//! Compares two trees.

use super::{Change, ContentLocation, Half, Pair, State, gix_id, own, unreadable};
use crate::diff::FileMode;
use crate::error::{Error, Result};
use gix::objs::Find as _;
use gix::objs::tree::EntryKind;
use std::cmp::Ordering;

/// Depth of nested folders, at most; git's own limit (`core.maxTreeDepth`).
const MAX_DEPTH: usize = 2048;

/// Returns the tree of a commit.
pub(super) fn of_commit(repo: &gix::Repository, commit: gix::ObjectId) -> Result<gix::ObjectId> {
    let mut buf = Vec::new();
    load(repo, &commit, gix::objs::Kind::Commit, &mut buf)?;
    gix::objs::CommitRefIter::from_bytes(&buf, repo.object_hash())
        .tree_id()
        .map_err(|e| unreadable(repo, &commit, Some(&e)))
}

/// Compares two states, each a commit or empty.
pub(super) fn change(repo: &gix::Repository, base: State, head: State) -> Result<Change> {
    let (old, new) = (
        base.tree().map(|t| gix_id(&t)),
        head.tree().map(|t| gix_id(&t)),
    );
    let mut pairs = Vec::new();
    compare(repo, old, new, &mut Vec::new(), &mut pairs)?;
    Change::of_pairs(repo, pairs, base, head, None)
}

/// Adds the differences between two trees below `prefix` (empty, or ending in `/`). `None` means no
/// tree.
pub(super) fn compare(
    repo: &gix::Repository,
    old: Option<gix::ObjectId>,
    new: Option<gix::ObjectId>,
    prefix: &mut Vec<u8>,
    out: &mut Vec<Pair>,
) -> Result<()> {
    let mut walk = TreeWalk {
        repo,
        prefix,
        out,
        spare: Vec::new(),
        depth: 0,
    };
    walk.trees(old, new)
}

/// An entry of a tree, by reference to the tree's bytes.
#[derive(Clone, Copy)]
pub(super) struct TreeEntry<'a> {
    pub(super) name: &'a [u8],
    /// `None` for a folder.
    pub(super) mode: Option<FileMode>,
    pub(super) id: &'a gix::oid,
}

impl TreeEntry<'_> {
    /// Returns the entry as a file with the given path; `None` for a folder.
    pub(super) fn file(self, path: &[u8]) -> Option<Half> {
        Some(Half {
            path: path.to_owned(),
            mode: self.mode?,
            id: self.id.to_owned(),
            at: ContentLocation::Objects,
        })
    }

    /// Returns the tree of a folder; `None` for a file.
    fn folder(self) -> Option<gix::ObjectId> {
        self.mode.is_none().then(|| self.id.to_owned())
    }
}

/// Reads the entries of a tree one by one.
pub(super) struct TreeEntries<'a> {
    iter: gix::objs::TreeRefIter<'a>,
}

impl<'a> TreeEntries<'a> {
    pub(super) fn new(repo: &gix::Repository, data: &'a [u8]) -> Self {
        Self {
            iter: gix::objs::TreeRefIter::from_bytes(data, repo.object_hash()),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<TreeEntry<'a>>> {
        match self.iter.next() {
            None => Ok(None),
            Some(Ok(e)) => Ok(Some(TreeEntry {
                name: e.filename,
                mode: mode_of(e.mode.kind()),
                id: e.oid,
            })),
            Some(Err(e)) => Err(Error::incomplete("corrupt tree")
                .caused_by(&e)
                .hint("git fsck --full")),
        }
    }
}

fn mode_of(kind: EntryKind) -> Option<FileMode> {
    match kind {
        EntryKind::Tree => None,
        EntryKind::Blob => Some(FileMode::Regular),
        EntryKind::BlobExecutable => Some(FileMode::Executable),
        EntryKind::Link => Some(FileMode::Symlink),
        EntryKind::Commit => Some(FileMode::Submodule),
    }
}

/// Reads an object of a kind. The empty tree and the empty blob need not exist.
pub(super) fn load(
    repo: &gix::Repository,
    id: &gix::oid,
    kind: gix::objs::Kind,
    buf: &mut Vec<u8>,
) -> Result<()> {
    match repo.objects.try_find(id, buf) {
        Ok(Some(data)) if data.kind == kind => Ok(()),
        Ok(Some(data)) => {
            let is = data.kind;
            Err(
                Error::incomplete(format!("object {id} is a {is}, not a {kind}"))
                    .hint("git fsck --full"),
            )
        }
        Ok(None) => {
            buf.clear();
            match kind {
                gix::objs::Kind::Tree if id == gix::ObjectId::empty_tree(id.kind()) => Ok(()),
                gix::objs::Kind::Blob if id == gix::ObjectId::empty_blob(id.kind()) => Ok(()),
                _ => Err(unreadable(repo, id, None)),
            }
        }
        Err(e) => Err(unreadable(repo, id, Some(&e))),
    }
}

/// Compares names as git sorts a tree: a folder as if it ended in `/`.
pub(super) fn order(a: &[u8], a_is_tree: bool, b: &[u8], b_is_tree: bool) -> Ordering {
    let n = a.len().min(b.len());
    a[..n].cmp(&b[..n]).then_with(|| {
        let a_next = a.get(n).copied().or(a_is_tree.then_some(b'/'));
        let b_next = b.get(n).copied().or(b_is_tree.then_some(b'/'));
        a_next.cmp(&b_next)
    })
}

struct TreeWalk<'a> {
    repo: &'a gix::Repository,
    prefix: &'a mut Vec<u8>,
    out: &'a mut Vec<Pair>,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
    depth: usize,
}

impl TreeWalk<'_> {
    fn trees(&mut self, old: Option<gix::ObjectId>, new: Option<gix::ObjectId>) -> Result<()> {
        if old == new {
            return Ok(());
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::incomplete(format!(
                "a tree has more than {MAX_DEPTH} levels of folders"
            )));
        }
        let (old_data, new_data) = (self.read(old)?, self.read(new)?);
        let result = self.entries(&old_data, &new_data);
        self.spare.push(old_data);
        self.spare.push(new_data);
        self.depth -= 1;
        result
    }

    fn read(&mut self, id: Option<gix::ObjectId>) -> Result<Vec<u8>> {
        let mut buf = self.spare.pop().unwrap_or_default();
        buf.clear();
        if let Some(id) = id {
            load(self.repo, &id, gix::objs::Kind::Tree, &mut buf)?;
        }
        Ok(buf)
    }

    fn entries(&mut self, old: &[u8], new: &[u8]) -> Result<()> {
        let (mut olds, mut news) = (
            TreeEntries::new(self.repo, old),
            TreeEntries::new(self.repo, new),
        );
        let (mut a, mut b) = (olds.next()?, news.next()?);
        loop {
            let which = match (&a, &b) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(x), Some(y)) => order(x.name, x.mode.is_none(), y.name, y.mode.is_none()),
            };
            let (x, y) = match which {
                Ordering::Less => (a.take(), None),
                Ordering::Greater => (None, b.take()),
                Ordering::Equal => (a.take(), b.take()),
            };
            self.pair(x, y)?;
            if which != Ordering::Greater {
                a = olds.next()?;
            }
            if which != Ordering::Less {
                b = news.next()?;
            }
        }
    }

    fn pair(&mut self, old: Option<TreeEntry<'_>>, new: Option<TreeEntry<'_>>) -> Result<()> {
        if let (Some(x), Some(y)) = (&old, &new)
            && x.id == y.id
            && x.mode == y.mode
        {
            return Ok(());
        }
        let Some(name) = old.or(new).map(|e| e.name) else {
            return Ok(());
        };
        let keep = self.prefix.len();
        self.prefix.extend_from_slice(name);
        let old_file = old.and_then(|e| e.file(self.prefix));
        let new_file = new.and_then(|e| e.file(self.prefix));
        if old_file.is_some() || new_file.is_some() {
            self.out.push(Pair::new(old_file, new_file));
        }
        let (old_tree, new_tree) = (
            old.and_then(TreeEntry::folder),
            new.and_then(TreeEntry::folder),
        );
        if old_tree.is_some() || new_tree.is_some() {
            self.prefix.push(b'/');
            self.trees(old_tree, new_tree)?;
        }
        self.prefix.truncate(keep);
        Ok(())
    }
}

/// Adds the regular files of a tree and of its nested folders, below `prefix` (empty, or ending in
/// `/`), in git's order. Stops soon after there are more than `max`.
pub(super) fn files(
    repo: &gix::Repository,
    tree: gix::ObjectId,
    prefix: Vec<u8>,
    max: usize,
    out: &mut Vec<Vec<u8>>,
) -> Result<()> {
    // A stack instead of a recursion. Entries are pushed in reverse, so they are popped in order.
    let mut open = vec![(prefix, TreeNode::Folder(tree, 0))];
    let mut buf = Vec::new();
    while let Some((path, node)) = open.pop() {
        let (id, depth) = match node {
            TreeNode::File => {
                out.push(path);
                continue;
            }
            TreeNode::Folder(id, depth) => (id, depth),
        };
        if out.len() > max {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(Error::incomplete(format!(
                "a tree has more than {MAX_DEPTH} levels of folders"
            )));
        }
        load(repo, &id, gix::objs::Kind::Tree, &mut buf)?;
        let mut entries = TreeEntries::new(repo, &buf);
        let first = open.len();
        while let Some(e) = entries.next()? {
            match e.mode {
                None => open.push((
                    [&path, e.name, b"/"].concat(),
                    TreeNode::Folder(e.id.to_owned(), depth + 1),
                )),
                Some(FileMode::Regular | FileMode::Executable) => {
                    open.push(([&path, e.name].concat(), TreeNode::File));
                }
                Some(FileMode::Symlink | FileMode::Submodule) => {}
            }
        }
        open[first..].reverse();
    }
    Ok(())
}

/// An entry on the stack of [`files`].
enum TreeNode {
    File,
    Folder(gix::ObjectId, usize),
}

/// Finds the entry at a path of a tree, or returns `None`.
pub(super) fn find(
    repo: &gix::Repository,
    tree: gix::ObjectId,
    path: &[u8],
) -> Result<Option<(Option<FileMode>, gix::ObjectId)>> {
    let mut buf = Vec::new();
    let mut at = tree;
    let mut parts = path.split(|b| *b == b'/').peekable();
    while let Some(part) = parts.next() {
        load(repo, &at, gix::objs::Kind::Tree, &mut buf)?;
        let mut entries = TreeEntries::new(repo, &buf);
        let found = loop {
            match entries.next()? {
                None => return Ok(None),
                Some(e) if e.name == part => break e,
                Some(_) => {}
            }
        };
        let (mode, id) = (found.mode, found.id.to_owned());
        match (parts.peek().is_some(), mode) {
            (false, _) => return Ok(Some((mode, id))),
            (true, None) => at = id,
            (true, Some(_)) => return Ok(None),
        }
    }
    Ok(None)
}

/// Returns a commit as a state.
pub(super) fn state(repo: &gix::Repository, commit: gix::ObjectId) -> Result<State> {
    Ok(State::Commit {
        commit: own(&commit),
        tree: own(&of_commit(repo, commit)?),
    })
}
