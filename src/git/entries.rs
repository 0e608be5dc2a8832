//! Reads the entries of tree objects from their bytes, in order, and the fields of commits.

use super::tree::order;
use std::cmp::Ordering;

/// The kind of an entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Tree,
    /// A file or a symbolic link.
    Blob,
    Submodule,
}

/// An entry of a tree, by reference to the tree's bytes.
#[derive(Clone, Copy)]
pub(super) struct RawEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) kind: EntryKind,
    pub(super) id: &'a [u8],
}

/// Reads the entries of a tree in order.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    pub(super) entry: Option<RawEntry<'a>>,
    /// The tree belongs to a commit that is not part of the history.
    pub(super) is_outside: bool,
    pub(super) is_malformed: bool,
    hash_bytes: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(data: &'a [u8], is_outside: bool, hash_bytes: usize) -> Self {
        let mut cursor = Self {
            rest: data,
            entry: None,
            is_outside,
            is_malformed: false,
            hash_bytes,
        };
        cursor.advance();
        cursor
    }

    /// Moves to the next entry.
    pub(super) fn advance(&mut self) {
        self.entry = None;
        if self.rest.is_empty() {
            return;
        }
        match self.parse() {
            Some((entry, rest)) => {
                self.entry = Some(entry);
                self.rest = rest;
            }
            None => {
                self.is_malformed = true;
                self.rest = &[];
            }
        }
    }

    fn parse(&self) -> Option<(RawEntry<'a>, &'a [u8])> {
        let blank = self.rest.iter().take(8).position(|b| *b == b' ')?;
        let kind = match self.rest.get(..blank)? {
            b"40000" | b"040000" => EntryKind::Tree,
            b"160000" => EntryKind::Submodule,
            _ => EntryKind::Blob,
        };
        let after = &self.rest[blank + 1..];
        let end = memchr::memchr(0, after)?;
        let id = after.get(end + 1..end + 1 + self.hash_bytes)?;
        let entry = RawEntry {
            name: &after[..end],
            kind,
            id,
        };
        Some((entry, &after[end + 1 + self.hash_bytes..]))
    }

    /// Moves to the entry with the name of another one, and returns it; `None` if it does not exist.
    pub(super) fn at(&mut self, wanted: &RawEntry<'_>) -> Option<RawEntry<'a>> {
        while let Some(entry) = self.entry {
            if entry.name == wanted.name {
                return Some(entry);
            }
            let is_tree = |e: &RawEntry<'_>| e.kind == EntryKind::Tree;
            match order(entry.name, is_tree(&entry), wanted.name, is_tree(wanted)) {
                Ordering::Less => self.advance(),
                _ => return None,
            }
        }
        None
    }
}

/// The fields of a commit object that a walk needs.
pub(super) struct ParsedCommit {
    pub(super) tree: gix::ObjectId,
    pub(super) parents: Vec<gix::ObjectId>,
    pub(super) seconds: i64,
}

impl ParsedCommit {
    /// Parses a commit object; `None` if it is malformed.
    pub(super) fn parse(data: &[u8], hash: gix::hash::Kind) -> Option<Self> {
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
