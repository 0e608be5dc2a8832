//! Access for one thread: the content of a change's paths, and files of any state.

use super::attributes::{Attributes, Marks};
use super::checkout::{Blobs, CheckoutConversions};
use super::files::{Bytes, PathKind};
use super::worktree::{self, WorktreeContent};
use super::{Change, FileCommit, Repo, State, gix_id, graph, own, revision, tree};
use crate::diff::{Body, ChangeKind, Entry, FileChange, FileMode, ObjectId, RepoPath, Side};
use crate::error::{Error, Result};

/// Bytes of an attribute file in the worktree, at most.
const MAX_ATTRIBUTES: usize = 1 << 20;

/// The type of a path in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNode {
    Absent,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
    Folder,
    /// A pipe, a socket, a device, or a submodule.
    Special,
}

/// Access for one thread to a repository's objects, with its caches.
pub struct Reader<'r> {
    owner: &'r Repo,
    repo: gix::Repository,
    /// Handle for file contents, which are read once: a cache would only copy them.
    blobs: gix::Repository,
    attributes: Attributes,
    work: Option<WorktreeContent>,
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("repo", self.owner)
            .finish_non_exhaustive()
    }
}

impl<'r> Reader<'r> {
    pub(super) fn new(owner: &'r Repo, repo: gix::Repository) -> Self {
        let mut blobs = repo.clone();
        blobs.object_cache_size(None);
        Self {
            owner,
            repo,
            blobs,
            attributes: Attributes::default(),
            work: None,
        }
    }

    /// Compares a commit with its parent, as [`Repo::commit`], through this reader's caches.
    pub fn commit(&mut self, id: ObjectId, parent: Option<u32>) -> Result<Change> {
        revision::commit(&self.repo, id, parent)
    }

    /// Compares a commit with its parent; for a merge, only the paths that differ from every
    /// parent. The other changes of a merge are in commits of their own.
    ///
    /// # Errors
    /// Incomplete, if a shallow clone lacks a parent.
    pub fn alone(&mut self, id: ObjectId) -> Result<Change> {
        revision::alone(&self.repo, id)
    }

    /// Returns the states before and after a commit if it alone (see [`Reader::alone`]) introduces
    /// another version of a path, or `None`. Compares no other paths.
    pub fn touched(&mut self, id: ObjectId, path: &RepoPath) -> Result<Option<(State, State)>> {
        revision::touched(&self.repo, id, path.as_bytes())
    }

    /// Reads and compares one entry of a change.
    ///
    /// # Errors
    /// Incomplete: an object is missing or corrupt, or a worktree file can no longer be read.
    pub fn load(&mut self, change: &Change, index: usize) -> Result<FileChange> {
        let Some(entry) = change.entries.get(index) else {
            return Err(Error::incomplete(format!(
                "the change has no entry {index}"
            )));
        };
        self.compare(change, entry.clone())
    }

    /// Reads one entry as an added file: for a rename whose new path matters.
    ///
    /// # Errors
    /// As [`Reader::load`].
    pub fn load_as_added(&mut self, change: &Change, index: usize) -> Result<FileChange> {
        let Some(entry) = change.entries.get(index) else {
            return Err(Error::incomplete(format!(
                "the change has no entry {index}"
            )));
        };
        self.compare(
            change,
            Entry {
                kind: ChangeKind::Added,
                old: None,
                new: entry.new.clone(),
            },
        )
    }

    /// Returns the size in bytes of the new side of an entry, without reading its content. A
    /// deleted file, a submodule, and a worktree file that no longer exists have the size 0.
    ///
    /// # Errors
    /// Incomplete: the object is missing, or the worktree file has no readable metadata.
    pub fn size(&mut self, change: &Change, entry: &Entry) -> Result<u64> {
        let Some(side) = entry
            .new
            .as_ref()
            .filter(|side| side.mode != FileMode::Submodule)
        else {
            return Ok(0);
        };
        if let (Some(id), false) = (&side.id, change.work.contains_key(&side.path)) {
            let id = gix_id(id);
            let header = self.blobs.find_header(id);
            return header
                .map(|header| header.size())
                .map_err(|_| super::unreadable(&self.repo, &id, None));
        }
        let stat = self.content()?.files().stat(side.path.as_bytes());
        let stat = stat.map_err(|e| not_read(&side.path, &e))?;
        Ok(stat.map_or(0, |s| s.size))
    }

    fn compare(&mut self, change: &Change, mut entry: Entry) -> Result<FileChange> {
        if entry.sides().any(|side| side.mode == FileMode::Submodule) {
            let dirty = change.dirty.contains(entry.path());
            return Ok(FileChange {
                entry,
                body: Body::Submodule { dirty },
            });
        }
        if let (Some(old), Some(new)) = (&entry.old, &entry.new)
            && old.id.is_some()
            && old.id == new.id
        {
            return Ok(FileChange {
                entry,
                body: Body::Same,
            });
        }
        let old = entry.old.as_ref().map(|s| self.object(s)).transpose()?;
        let new = match &mut entry.new {
            None => None,
            Some(side) if change.work.contains_key(&side.path) => {
                Some(self.worktree(change, side)?)
            }
            Some(side) => Some(self.object(side)?),
        };
        let head = self.marks(&change.head, entry.path())?;
        let base = self.marks(
            &change.base,
            entry.old.as_ref().map_or(entry.path(), |s| &s.path),
        )?;
        let mut checkout = CheckoutConversions::default();
        [&base, &head]
            .iter()
            .for_each(|marks| checkout.add(marks.encoding.as_deref(), marks.ident));
        let written = if checkout.is_plain() {
            None
        } else {
            let ids = (id_text(entry.old.as_ref()), id_text(entry.new.as_ref()));
            Some(checkout.of(&Blobs {
                old: old.as_deref(),
                new: new.as_deref(),
                ids,
            }))
        };
        let mut body = Body::of_file(entry.path(), old, new, head.diff);
        if let Some((written, unknown)) = written {
            body.add_checkouts(entry.path(), written, unknown);
        }
        Ok(FileChange { entry, body })
    }

    /// Returns true if a state has an entry at a path: a file, a link or a submodule. The index is
    /// used for the worktree.
    ///
    /// # Errors
    /// Incomplete, if the tree or the index cannot be read.
    pub fn has_entry(&mut self, state: &State, path: &RepoPath) -> Result<bool> {
        let state = if *state == State::Worktree {
            &State::Index
        } else {
            state
        };
        Ok(self.stored(state, path.as_bytes())?.is_some())
    }

    /// Reads a file of a state, or returns `None` if there is no regular file.
    ///
    /// Never follows a link, and never opens a pipe or a device.
    ///
    /// # Errors
    /// Usage, if the file is larger than `max` bytes; incomplete, if it cannot be read.
    pub fn read(&mut self, state: &State, path: &RepoPath, max: usize) -> Result<Option<Vec<u8>>> {
        let name = path.as_bytes();
        if *state == State::Worktree {
            let bytes = self
                .content()?
                .files()
                .read(name, max)
                .map_err(|e| not_read(path, &e))?;
            return match bytes {
                Some(Bytes::TooMany) => Err(too_large(path, max)),
                Some(Bytes::All(bytes)) => Ok(Some(bytes)),
                None => Ok(None),
            };
        }
        let found = self.stored(state, name)?;
        let Some((Some(FileMode::Regular | FileMode::Executable), id)) = found else {
            return Ok(None);
        };
        // Check the size first: the object may be of any type.
        if let Ok(header) = self.repo.find_header(id)
            && header.size() > max as u64
        {
            return Err(too_large(path, max));
        }
        let mut bytes = Vec::new();
        tree::load(&self.repo, &id, gix::objs::Kind::Blob, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Returns the ID of the blob that a state has at a path; for a worktree file, the ID that git
    /// would give it. Returns `None` if there is no regular file.
    ///
    /// # Errors
    /// Incomplete, if it cannot be read.
    pub fn blob(&mut self, state: &State, path: &RepoPath) -> Result<Option<ObjectId>> {
        let Some(mode @ (FileMode::Regular | FileMode::Executable)) = self.mode(state, path)?
        else {
            return Ok(None);
        };
        if *state != State::Worktree {
            return Ok(self.stored(state, path.as_bytes())?.map(|(_, id)| own(&id)));
        }
        self.content()?;
        let index = self.owner.index()?;
        let Some(work) = &mut self.work else {
            return Ok(None);
        };
        let Some((bytes, _)) = work.read(&self.repo, index, path.as_bytes(), mode)? else {
            return Ok(None);
        };
        Ok(Some(own(&worktree::hash(&self.repo, &bytes)?)))
    }

    /// Returns true if two states have the same entry at a path, or both have none. Reads no
    /// content. The worktree counts as having none.
    ///
    /// # Errors
    /// Incomplete, if a tree is missing or corrupt.
    pub fn is_same(&self, one: &State, other: &State, path: &RepoPath) -> Result<bool> {
        Ok(self.stored(one, path.as_bytes())? == self.stored(other, path.as_bytes())?)
    }

    /// Returns the mode of a path in a state, or `None` if nothing is there.
    pub fn mode(&mut self, state: &State, path: &RepoPath) -> Result<Option<FileMode>> {
        let name = path.as_bytes();
        if *state == State::Worktree {
            let stat = self
                .content()?
                .files()
                .stat(name)
                .map_err(|e| not_read(path, &e))?;
            return Ok(stat.and_then(|s| match s.kind {
                PathKind::File { executable: true } => Some(FileMode::Executable),
                PathKind::File { executable: false } => Some(FileMode::Regular),
                PathKind::Symlink => Some(FileMode::Symlink),
                PathKind::Folder | PathKind::Special => None,
            }));
        }
        Ok(self.stored(state, name)?.and_then(|(mode, _)| mode))
    }

    /// Returns the type of a path in a state. Does not follow links.
    ///
    /// # Errors
    /// Incomplete: the tree, the index or the folder cannot be read.
    pub fn node(&mut self, state: &State, path: &RepoPath) -> Result<PathNode> {
        let name = path.as_bytes();
        if *state == State::Worktree {
            let stat = self
                .content()?
                .files()
                .stat(name)
                .map_err(|e| not_read(path, &e))?;
            return Ok(stat.map_or(PathNode::Absent, |s| match s.kind {
                PathKind::File { .. } => PathNode::File,
                PathKind::Symlink => PathNode::Link,
                PathKind::Folder => PathNode::Folder,
                PathKind::Special => PathNode::Special,
            }));
        }
        Ok(match self.stored(state, name)? {
            Some((Some(FileMode::Regular | FileMode::Executable), _)) => PathNode::File,
            Some((Some(FileMode::Symlink), _)) => PathNode::Link,
            Some((Some(FileMode::Submodule), _)) => PathNode::Special,
            Some((None, _)) => PathNode::Folder,
            // The index has no entries for folders.
            None if *state == State::Index && self.has_entries_below(name)? => PathNode::Folder,
            None => PathNode::Absent,
        })
    }

    fn has_entries_below(&self, name: &[u8]) -> Result<bool> {
        let prefix = [name, b"/"].concat();
        Ok(self
            .owner
            .index()?
            .prefixed_entries(prefix.as_slice().into())
            .is_some_and(|all| !all.is_empty()))
    }

    /// Returns the target of the link at a path of a state, unresolved, or `None` if there is no
    /// link.
    ///
    /// # Errors
    /// Incomplete, if it cannot be read.
    pub fn target(&mut self, state: &State, path: &RepoPath) -> Result<Option<Vec<u8>>> {
        let name = path.as_bytes();
        if *state == State::Worktree {
            return self
                .content()?
                .files()
                .link(name)
                .map_err(|e| not_read(path, &e));
        }
        let Some((Some(FileMode::Symlink), id)) = self.stored(state, name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        tree::load(&self.repo, &id, gix::objs::Kind::Blob, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Lists the regular files below a folder of a state, at most `max`; an empty path means the
    /// whole state. The flag is true if there are more.
    ///
    /// # Errors
    /// Incomplete, if a tree is missing or corrupt.
    pub fn below(
        &mut self,
        state: &State,
        folder: &RepoPath,
        max: usize,
    ) -> Result<(Vec<RepoPath>, bool)> {
        let name = folder.as_bytes();
        if let State::Commit { tree, .. } = state
            && !name.is_empty()
        {
            let Some((None, id)) = tree::find(&self.repo, gix_id(tree), name)? else {
                return Ok((Vec::new(), false));
            };
            let mut out = Vec::new();
            tree::files(&self.repo, id, [name, b"/"].concat(), max, &mut out)?;
            let more = out.len() > max;
            return Ok((out.into_iter().map(RepoPath::new).collect(), more));
        }
        let (mut files, more) = self.files(state, max)?;
        files.retain(|f| {
            name.is_empty()
                || f.as_bytes()
                    .strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with(b"/"))
        });
        Ok((files, more))
    }

    /// Returns `linguist-generated` of a path by the attribute files of a state, or `None` if it is
    /// not set.
    ///
    /// # Errors
    /// Incomplete, if an attribute file cannot be read.
    pub fn generated(&mut self, state: &State, path: &RepoPath) -> Result<Option<bool>> {
        Ok(self.marks(state, path)?.generated)
    }

    /// Returns the commit that introduced the version of a path at `from`. Returns `None` if `from`
    /// has no such file, or after `most` commits. A merge whose version equals that of a parent did
    /// not introduce it.
    ///
    /// # Errors
    /// Incomplete, if a shallow clone lacks a parent, or an object cannot be read.
    pub fn last_edit(
        &mut self,
        from: ObjectId,
        path: &RepoPath,
        most: &mut u32,
    ) -> Result<Option<FileCommit>> {
        revision::last_edit(&self.repo, from, path.as_bytes(), most)
    }

    /// Returns the message of a commit, at most `max` bytes of it.
    ///
    /// # Errors
    /// Incomplete, if the commit cannot be read.
    pub fn message(&mut self, commit: ObjectId, max: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        tree::load(
            &self.repo,
            &gix_id(&commit),
            gix::objs::Kind::Commit,
            &mut bytes,
        )?;
        // The headers end at the first empty line (git's commit.c, `find_commit_subject`).
        let start = memchr::memmem::find(&bytes, b"\n\n").map_or(bytes.len(), |i| i + 2);
        let end = bytes.len().min(start.saturating_add(max));
        Ok(bytes[start..end].to_vec())
    }

    /// Returns the commits between two states, oldest first; none if one of them is not a commit.
    ///
    /// # Errors
    /// Incomplete, if the history cannot be read.
    pub fn between(&mut self, base: &State, head: &State) -> Result<Vec<ObjectId>> {
        let Some(tip) = head.commit() else {
            return Ok(Vec::new());
        };
        let hidden = match base {
            State::Commit { commit, .. } => vec![*commit],
            // A root commit, or the first push of a history: the commit itself is sufficient.
            State::Empty => return Ok(vec![tip]),
            State::Index | State::Worktree => return Ok(Vec::new()),
        };
        graph::walk(&self.repo, tip, &hidden)
    }

    /// Returns a commit and its ancestors, newest first, at most `most`. Stops where the history
    /// cannot be read.
    pub fn history(&mut self, tip: ObjectId, most: usize) -> Vec<ObjectId> {
        graph::newest(&self.repo, tip, most)
    }

    /// Lists the entries directly in a folder of a state by name, including links; none if there is
    /// no such folder.
    ///
    /// # Errors
    /// Incomplete, if the folder cannot be read.
    pub fn list(&mut self, state: &State, folder: &RepoPath) -> Result<Vec<RepoPath>> {
        let name = folder.as_bytes();
        let mut found: Vec<Vec<u8>> = Vec::new();
        match state {
            State::Empty => {}
            State::Commit { tree, .. } => {
                let Some((None, id)) = tree::find(&self.repo, gix_id(tree), name)? else {
                    return Ok(Vec::new());
                };
                let mut buf = Vec::new();
                tree::load(&self.repo, &id, gix::objs::Kind::Tree, &mut buf)?;
                let mut entries = tree::TreeEntries::new(&self.repo, &buf);
                while let Some(e) = entries.next()? {
                    if e.mode.is_some_and(|m| m != FileMode::Submodule) {
                        found.push(join(name, e.name));
                    }
                }
            }
            State::Index => {
                let prefix = join(name, b"");
                let index = self.owner.index()?;
                let names = index
                    .prefixed_entries(prefix.as_slice().into())
                    .unwrap_or_default();
                let names = names
                    .iter()
                    .map(|e| e.path(index))
                    .filter(|p| !p[prefix.len()..].contains(&b'/'));
                found.extend(names.map(|p| p.to_vec()));
            }
            State::Worktree => {
                let names = self
                    .content()?
                    .files()
                    .names(name)
                    .map_err(|e| not_read(folder, &e))?;
                found.extend(names.iter().map(|n| join(name, n)));
            }
        }
        found.sort();
        Ok(found.into_iter().map(RepoPath::new).collect())
    }

    /// Lists the regular files of a whole state in git's order, without links and submodules, at
    /// most `max`. For the worktree, these are the tracked files that still exist. The flag is true
    /// if there are more.
    ///
    /// # Errors
    /// Incomplete, if a tree is missing or corrupt.
    pub fn files(&mut self, state: &State, max: usize) -> Result<(Vec<RepoPath>, bool)> {
        let mut out = Vec::new();
        match state {
            State::Empty => {}
            State::Commit { tree, .. } => {
                tree::files(&self.repo, gix_id(tree), Vec::new(), max, &mut out)?;
            }
            State::Index | State::Worktree => {
                self.indexed(*state == State::Worktree, max, &mut out)?;
            }
        }
        let more = out.len() > max;
        out.truncate(max);
        Ok((out.into_iter().map(RepoPath::new).collect(), more))
    }

    /// Lists the regular files of the index; for the worktree, only those that still are regular
    /// files.
    fn indexed(&mut self, in_worktree: bool, max: usize, out: &mut Vec<Vec<u8>>) -> Result<()> {
        use gix::index::entry::Flags;
        let index = self.owner.index()?;
        let backing = index.path_backing();
        for e in index.entries() {
            if out.len() > max {
                return Ok(());
            }
            let path = e.path_in(backing);
            if e.stage_raw() != 0 || !in_worktree && e.flags.contains(Flags::INTENT_TO_ADD) {
                continue;
            }
            let Some(mode) = super::staged::mode_of(e.mode) else {
                // A sparse index has whole folders as trees. They are not in the worktree.
                if !in_worktree {
                    tree::files(&self.repo, e.id, path.to_vec(), max, out)?;
                }
                continue;
            };
            let is_file = match in_worktree {
                false => matches!(mode, FileMode::Regular | FileMode::Executable),
                // A path without readable metadata cannot be read either.
                true => {
                    matches!(self.content()?.files().stat(path), Ok(Some(s)) if matches!(s.kind, PathKind::File { .. }))
                }
            };
            if is_file {
                out.push(path.to_vec());
            }
        }
        Ok(())
    }

    /// Lists the tracked regular files that a sparse checkout omits from the worktree, at most
    /// `max`. The worktree has them as the index does.
    ///
    /// # Errors
    /// Incomplete: the index or a tree is missing or corrupt.
    pub fn files_left_out(&mut self, max: usize) -> Result<Vec<RepoPath>> {
        use gix::index::entry::Flags;
        let index = self.owner.index()?;
        let backing = index.path_backing();
        let mut out = Vec::new();
        for e in index
            .entries()
            .iter()
            .filter(|e| e.stage_raw() == 0 && e.flags.contains(Flags::SKIP_WORKTREE))
        {
            let path = e.path_in(backing);
            match super::staged::mode_of(e.mode) {
                None => tree::files(&self.repo, e.id, path.to_vec(), max, &mut out)?,
                Some(FileMode::Regular | FileMode::Executable) => {
                    // A file can come back, for example during a merge.
                    if matches!(self.content()?.files().stat(path), Ok(None)) {
                        out.push(path.to_vec());
                    }
                }
                Some(_) => {}
            }
            if out.len() >= max {
                break;
            }
        }
        out.truncate(max);
        Ok(out.into_iter().map(RepoPath::new).collect())
    }

    /// Returns true if git tracks a path, that is, the index has it.
    pub fn is_tracked(&mut self, path: &RepoPath) -> Result<bool> {
        Ok(self.in_index(path.as_bytes())?.is_some())
    }

    /// Returns true if a tracked `.gitignore` (not flagged `assume-unchanged` or `skip-worktree`)
    /// ignores a path that is not in the index. Files of this machine alone, such as
    /// `info/exclude`, do not count.
    ///
    /// # Errors
    /// Usage: a `.gitignore` is not a regular file, or is too large. Incomplete: one cannot be
    /// read.
    pub fn is_ignored_for_all(&mut self, path: &RepoPath) -> Result<bool> {
        use gix::index::entry::Flags;
        let name = path.as_bytes();
        for end in std::iter::once(0).chain(memchr::memchr_iter(b'/', name).map(|i| i + 1)) {
            self.content()?
                .files()
                .refuse_endless(&[&name[..end], b".gitignore"].concat())?;
        }
        let index = self.owner.index()?;
        let source = gix::worktree::stack::state::ignore::Source::default();
        let mut stack = self
            .repo
            .excludes(index, None, source)
            .map_err(|e| unreadable_rules(path, &e))?;
        let name: &gix::bstr::BStr = name.into();
        let entry = stack
            .at_entry(name, Some(gix::index::entry::Mode::FILE))
            .map_err(|e| unreadable_rules(path, &e))?;
        let found = entry
            .matching_exclude_pattern()
            .filter(|m| !m.pattern.is_negative());
        let Some(file) = found.and_then(|m| m.source) else {
            return Ok(false);
        };
        let file = self
            .owner
            .worktree()
            .and_then(|top| file.strip_prefix(top).ok())
            .unwrap_or(file);
        if file.is_absolute() || file.file_name().is_none_or(|n| n != ".gitignore") {
            return Ok(false);
        }
        let tracked = index.entry_by_path(file.as_os_str().as_encoded_bytes().into());
        Ok(tracked.is_some_and(|e| {
            !e.flags
                .intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE)
        }))
    }

    /// Finds the entry that git has stored at a path of a state; none for the worktree. A folder
    /// has no mode.
    fn stored(
        &self,
        state: &State,
        name: &[u8],
    ) -> Result<Option<(Option<FileMode>, gix::ObjectId)>> {
        match state {
            State::Empty | State::Worktree => Ok(None),
            State::Commit { tree, .. } => tree::find(&self.repo, gix_id(tree), name),
            State::Index => self.in_index(name),
        }
    }

    fn in_index(&self, name: &[u8]) -> Result<Option<(Option<FileMode>, gix::ObjectId)>> {
        let index = self.owner.index()?;
        if let Some(e) = index.entry_by_path(name.into()) {
            return Ok(Some((super::staged::mode_of(e.mode), e.id)));
        }
        // A sparse index has whole folders as trees.
        for end in memchr::memrchr_iter(b'/', name) {
            if let Some(e) = index.entry_by_path(name[..=end].into()) {
                return tree::find(&self.repo, e.id, &name[end + 1..]);
            }
        }
        Ok(None)
    }

    fn object(&self, side: &Side) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(id) = &side.id {
            tree::load(&self.blobs, &gix_id(id), gix::objs::Kind::Blob, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// Reads a worktree file, or uses the content from the comparison, and sets its ID.
    fn worktree(&mut self, change: &Change, side: &mut Side) -> Result<Vec<u8>> {
        let kept = change.work.get(&side.path).and_then(|slot| {
            slot.lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .take()
        });
        if let Some(bytes) = kept {
            return Ok(bytes);
        }
        self.content()?;
        let index = self.owner.index()?;
        let Some(work) = &mut self.work else {
            return Err(deleted_meanwhile(&side.path));
        };
        let found = work.read(&self.repo, index, side.path.as_bytes(), side.mode)?;
        // The listing has added a note if the file was not converted.
        let (bytes, _) = found.ok_or_else(|| deleted_meanwhile(&side.path))?;
        let id = own(&worktree::hash(&self.repo, &bytes)?);
        if side.id.is_some_and(|known| known != id) {
            return Err(
                Error::incomplete(format!("{:?} changed during the review", side.path))
                    .hint("run the review again"),
            );
        }
        side.id = Some(id);
        Ok(bytes)
    }

    /// Returns the ID of the new side of an entry. It is computed for a worktree file that has not
    /// been read yet. `None`: the entry has no new side, or it cannot be read.
    pub fn content_id(&mut self, change: &Change, entry: &Entry) -> Option<ObjectId> {
        let mut side = entry.new.clone()?;
        if side.id.is_some() {
            return side.id;
        }
        let bytes = self.worktree(change, &mut side).ok()?;
        side.id
            .or_else(|| Some(own(&worktree::hash(&self.repo, &bytes).ok()?)))
    }

    pub(super) fn owner(&self) -> &'r Repo {
        self.owner
    }

    /// Returns the files of the worktree, as they are on disk.
    pub(super) fn worktree_files(&mut self) -> Result<&mut super::files::WorktreeFiles> {
        Ok(self.content()?.files())
    }

    fn content(&mut self) -> Result<&mut WorktreeContent> {
        let Some(top) = self.owner.worktree() else {
            return Err(Error::usage("a bare repository has no worktree"));
        };
        Ok(match &mut self.work {
            Some(content) => content,
            slot => slot.insert(WorktreeContent::new(top)?),
        })
    }

    fn marks(&mut self, state: &State, path: &RepoPath) -> Result<Marks> {
        if *state == State::Worktree {
            self.content()?;
        }
        let work = &mut self.work;
        self.attributes
            .of(self.owner, &self.repo, state, path, |file| {
                let Some(work) = work else { return Ok(None) };
                let found = work.files().read(file, MAX_ATTRIBUTES).map_err(|e| {
                    Error::incomplete(format!("cannot read {}", String::from_utf8_lossy(file)))
                        .caused_by(&e)
                })?;
                Ok(match found {
                    Some(Bytes::All(bytes)) => Some(bytes),
                    Some(Bytes::TooMany) | None => None,
                })
            })
    }
}

/// Returns the error for rules that exclude files from git and cannot be read.
fn unreadable_rules(path: &RepoPath, e: &dyn std::fmt::Display) -> Error {
    Error::incomplete(format!("cannot read the ignore rules for {path:?}: {e}"))
}

/// Returns the ID of a side as text; empty if it has none.
fn id_text(side: Option<&Side>) -> String {
    side.and_then(|s| s.id)
        .map_or(String::new(), |id| id.to_string())
}

/// Returns the path of a file in a folder.
fn join(folder: &[u8], file: &[u8]) -> Vec<u8> {
    [folder, b"/", file].concat()
}

/// Returns the error for a file of the comparison that does not exist any more.
fn deleted_meanwhile(path: &RepoPath) -> Error {
    Error::incomplete(format!("{path:?} was deleted during the review"))
}

fn not_read(path: &RepoPath, e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot read {path:?}")).caused_by(e)
}

fn too_large(path: &RepoPath, max: usize) -> Error {
    Error::usage(format!("{path:?} is larger than {max} bytes"))
}
