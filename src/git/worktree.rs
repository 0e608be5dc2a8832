//! Compares the worktree with the index.
//!
//! A file whose metadata (size, times, inode) equals that in the index is unmodified, unless it was
//! written in the same tick as the index: then it is read. Every other file is read, converted as
//! git would convert it, and compared by its ID.

use super::convert::Convert;
use super::files::{self, Bytes, PathKind, WorktreeFiles};
use super::{ContentLocation, Half, Pair, Repo, open, own, staged};
use crate::diff::{FileMode, RepoPath};
use crate::error::{self, Error, Result};
use gix::dir::EntryRef;
use gix::dir::walk::{Action, ForDeletionMode};
use gix::index::entry::{Flags, Mode};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// From this number of files, two threads compare them.
const TWO_THREADS: usize = 3000;
/// Bytes of content that are kept from the comparison for the review.
const KEEP: usize = 32 << 20;
/// Bytes of a file, at most; larger ones are reported and not reviewed.
const MAX_FILE: usize = 1 << 30;

const IGNORE: &[u8] = b".gitignore";

/// A worktree during a comparison.
pub(super) struct Worktree<'r> {
    repo: &'r gix::Repository,
    index: &'r gix::index::File,
    top: PathBuf,
    content: WorktreeContent,
    pub(super) notes: Vec<String>,
    /// Positions of index entries that are missing in the worktree.
    gone: Vec<usize>,
    /// Content that had to be read, up to [`KEEP`] bytes.
    read: HashMap<RepoPath, Vec<u8>>,
    kept: usize,
}

/// Reads worktree files as git would store them.
pub(super) struct WorktreeContent {
    files: WorktreeFiles,
    convert: Option<Convert>,
    /// Folders whose attributes can be read: their names within the worktree, `""` or ending in
    /// `/`.
    attributes: HashSet<Vec<u8>>,
}

/// The state of an index entry in the worktree.
enum EntryState {
    Removed,
    /// Its current mode; the content may have changed.
    Look(FileMode),
    /// An entry of `git add -N` whose file exists.
    Added(FileMode),
    Submodule,
    Unmerged,
}

impl WorktreeContent {
    pub(super) fn new(top: &Path) -> Result<Self> {
        let files = WorktreeFiles::open(top).map_err(|e| {
            Error::incomplete(format!("cannot read the worktree {}", top.display())).caused_by(&e)
        })?;
        Ok(Self {
            files,
            convert: None,
            attributes: HashSet::new(),
        })
    }

    /// Returns the files below the top.
    pub(super) fn files(&mut self) -> &mut WorktreeFiles {
        &mut self.files
    }

    /// Reads a file or link; `None` if neither exists. The second part is the reason why a file was
    /// not converted: an error, or a filter program that is not run.
    pub(super) fn read(
        &mut self,
        repo: &gix::Repository,
        index: &gix::index::State,
        path: &[u8],
        mode: FileMode,
    ) -> Result<Option<(Vec<u8>, Option<String>)>> {
        if mode == FileMode::Symlink
            && let Some(target) = self
                .files
                .link(path)
                .map_err(|e| unreadable_file(path, &e))?
        {
            return Ok(Some((target, None)));
        }
        // Without symbolic links on disk (`core.symlinks=false`), a link is a file that contains
        // its target.
        let bytes = match self
            .files
            .read(path, MAX_FILE)
            .map_err(|e| unreadable_file(path, &e))?
        {
            None => return Ok(None),
            Some(Bytes::All(bytes)) => bytes,
            Some(Bytes::TooMany) => {
                let name = String::from_utf8_lossy(path);
                return Err(Error::incomplete(format!(
                    "{name} is larger than {} MiB",
                    MAX_FILE >> 20
                )));
            }
        };
        if mode == FileMode::Symlink {
            return Ok(Some((bytes, None)));
        }
        let convert = self.convert(repo, index, path)?;
        if let Some(driver) = convert.driver(repo, path) {
            return Ok(Some((bytes, Some(not_run(&driver)))));
        }
        Ok(Some(match convert.clean(repo, index, path, bytes) {
            Ok(bytes) => (bytes, None),
            Err((bytes, why)) => (bytes, Some(format!("read without conversion: {why}"))),
        }))
    }

    /// Returns the converter for a path, after a check of every attribute file that will be opened
    /// for it.
    fn convert(
        &mut self,
        repo: &gix::Repository,
        index: &gix::index::State,
        path: &[u8],
    ) -> Result<&mut Convert> {
        if self.convert.is_none() {
            files::refuse_endless(&repo.common_dir().join("info/attributes"))?;
            refuse_configured(repo, "core.attributesFile")?;
        }
        for end in std::iter::once(0).chain(memchr::memchr_iter(b'/', path).map(|i| i + 1)) {
            let folder = &path[..end];
            if !self.attributes.contains(folder) {
                self.files
                    .refuse_endless(&[folder, b".gitattributes"].concat())?;
                self.attributes.insert(folder.to_vec());
            }
        }
        Ok(match &mut self.convert {
            Some(c) => c,
            slot => slot.insert(Convert::new(repo, index)?),
        })
    }
}

/// Returns the error for a file or link that cannot be read.
fn unreadable_file(path: &[u8], e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot read {}", String::from_utf8_lossy(path))).caused_by(e)
}

impl<'r> Worktree<'r> {
    pub(super) fn new(owner: &'r Repo, repo: &'r gix::Repository) -> Result<Self> {
        let Some(top) = owner.worktree() else {
            return Err(Error::usage("a bare repository has no worktree to review"));
        };
        Ok(Self {
            repo,
            index: owner.index()?,
            top: top.to_owned(),
            content: WorktreeContent::new(top)?,
            notes: Vec::new(),
            gone: Vec::new(),
            read: HashMap::new(),
            kept: 0,
        })
    }

    /// Returns the differences between the index and the worktree, without new files.
    ///
    /// # Errors
    /// Usage, if paths are unmerged.
    pub(super) fn changed(&mut self) -> Result<Vec<Pair>> {
        let index = self.index;
        let backing = index.path_backing();
        let (mut out, mut unmerged) = (Vec::new(), Vec::<Vec<u8>>::new());
        for (i, found) in self.scan()? {
            let e = &index.entries()[i];
            let path = e.path_in(backing).to_vec();
            let Some(mode) = staged::mode_of(e.mode) else {
                continue;
            };
            let old = Half {
                path: path.clone(),
                mode,
                id: e.id,
                at: ContentLocation::Objects,
            };
            match found {
                EntryState::Unmerged => {
                    if unmerged.last() != Some(&path) {
                        unmerged.push(path);
                    }
                }
                EntryState::Removed => {
                    self.gone.push(i);
                    out.push(Pair::new(Some(old), None));
                }
                EntryState::Added(mode) => out.push(Pair::new(None, Some(self.unread(path, mode)))),
                EntryState::Look(now) => {
                    let mut new = self.unread(path, now);
                    // A file that cannot be read counts as changed. Loading it reports the error.
                    let there = match self.identify(&mut new) {
                        Err(e) if e.kind == error::Kind::Usage => return Err(e),
                        other => other.unwrap_or(true),
                    };
                    match there {
                        false => out.push(Pair::new(Some(old), None)),
                        true if new.id == old.id && new.mode == old.mode => {
                            self.forget(&new.path);
                        }
                        true => out.push(Pair::new(Some(old), Some(new))),
                    }
                }
                EntryState::Submodule => out.extend(self.submodule(old)?),
            }
        }
        match unmerged.is_empty() {
            true => Ok(out),
            false => Err(staged::unmerged(&unmerged)),
        }
    }

    /// Returns the files that are neither in the index nor ignored. Uses the result of
    /// [`Self::changed`].
    pub(super) fn untracked(&mut self) -> Result<Vec<Pair>> {
        use gix::dir::entry::{Kind as DirKind, Status};
        use gix::dir::walk::delegate::Collect;
        // The walk considers an entry tracked only if it is marked as up to date.
        let mut index = gix::index::State::clone(self.index);
        for e in index.entries_mut() {
            e.flags.insert(Flags::UPTODATE);
        }
        // A folder with new files may have replaced a file.
        for i in std::mem::take(&mut self.gone) {
            index.entries_mut()[i].flags.remove(Flags::UPTODATE);
        }
        let options = self
            .repo
            .dirwalk_options()
            .map_err(|e| unsearchable(&e))?
            .emit_untracked(gix::dir::walk::EmissionMode::Matching)
            .emit_ignored(None)
            .emit_tracked(false);
        for dir in [self.repo.common_dir(), self.repo.git_dir()] {
            files::refuse_endless(&dir.join("info/exclude"))?;
        }
        refuse_configured(self.repo, "core.excludesFile")?;
        self.content.files().refuse_endless(IGNORE)?;
        let mut walk = UntrackedWalk {
            files: self.content.files(),
            seen: Collect::default(),
            refused: None,
        };
        let none: [&gix::bstr::BStr; 0] = [];
        let stop = AtomicBool::new(false);
        self.repo
            .dirwalk(&index, none, &stop, options, &mut walk)
            .map_err(|e| unsearchable(&e))?;
        let UntrackedWalk { seen, refused, .. } = walk;
        if let Some(e) = refused {
            return Err(e);
        }
        let mut out = Vec::new();
        for (entry, _) in seen.into_entries_by_path() {
            if entry.status != Status::Untracked {
                continue;
            }
            let path = entry.rela_path.to_vec();
            match entry.disk_kind {
                Some(DirKind::Repository) => {
                    self.notes.push(format!(
                        "skipped {}: separate repository",
                        String::from_utf8_lossy(&path)
                    ));
                }
                Some(DirKind::File | DirKind::Symlink) => {
                    if let Some(mode) = self.mode_now(&path, None)? {
                        let half = self.unread(path, mode);
                        out.push(Pair::new(None, Some(half)));
                    }
                }
                _ => {}
            }
        }
        Ok(out)
    }

    /// Applies the changes in the worktree to the changes in the index.
    pub(super) fn overlay(&mut self, staged: Vec<Pair>, changed: Vec<Pair>) -> Result<Vec<Pair>> {
        let mut all: BTreeMap<Vec<u8>, Pair> =
            staged.into_iter().map(|p| (p.path().to_vec(), p)).collect();
        for change in changed {
            let path = change.path().to_vec();
            let Some(pair) = all.get_mut(&path) else {
                // A file with intent to add that is deleted is on neither side.
                let entry = self.index.entry_by_path(path.as_slice().into());
                if change.new.is_some()
                    || !entry.is_some_and(|e| e.flags.contains(Flags::INTENT_TO_ADD))
                {
                    all.insert(path, change);
                }
                continue;
            };
            pair.new = change.new;
            if let (Some(_), Some(new)) = (&pair.old, &mut pair.new) {
                // A file that cannot be read counts as changed. Loading it reports the error.
                let _ = self.identify(new);
            }
            let same = match (&pair.old, &pair.new) {
                (None, None) => true,
                (Some(old), Some(new)) => {
                    old.id == new.id && old.mode == new.mode && new.at != ContentLocation::Dirty
                }
                _ => false,
            };
            if same {
                all.remove(&path);
            }
        }
        Ok(all.into_values().collect())
    }

    /// Reads a worktree file to compute its ID. Returns false if the file does not exist.
    pub(super) fn identify(&mut self, half: &mut Half) -> Result<bool> {
        if half.at != ContentLocation::Work || !half.id.is_null() {
            return Ok(true);
        }
        let Some((bytes, why)) = self
            .content
            .read(self.repo, self.index, &half.path, half.mode)?
        else {
            return Ok(false);
        };
        if let Some(why) = why {
            self.notes
                .push(format!("{}: {why}", String::from_utf8_lossy(&half.path)));
        }
        half.id = hash(self.repo, &bytes)?;
        if self.kept + bytes.len() <= KEEP {
            self.kept += bytes.len();
            self.read.insert(RepoPath::new(half.path.clone()), bytes);
        }
        Ok(true)
    }

    /// Adds a note if a file is not converted as git would store it. Files that were read have
    /// their notes already.
    pub(super) fn remark(&mut self, half: &mut Half) -> Result<()> {
        if half.at != ContentLocation::Work || !half.id.is_null() || half.mode == FileMode::Symlink
        {
            return Ok(());
        }
        let asked = self
            .content
            .convert(self.repo, self.index, &half.path)?
            .asked_of(self.repo, &half.path);
        if let Some(driver) = asked.driver {
            self.notes.push(format!(
                "{}: {}",
                String::from_utf8_lossy(&half.path),
                not_run(&driver)
            ));
        } else if asked.encoding {
            // Only a read shows whether the conversion works. Loading the file reports an error of
            // the read.
            let _ = self.identify(half);
        }
        Ok(())
    }

    /// Returns the content of a worktree file.
    pub(super) fn content(&mut self, half: &Half) -> Result<Vec<u8>> {
        if let Some(bytes) = self.read.get(&RepoPath::new(half.path.clone())) {
            return Ok(bytes.clone());
        }
        let found = self
            .content
            .read(self.repo, self.index, &half.path, half.mode)?;
        Ok(found.map(|(bytes, _)| bytes).unwrap_or_default())
    }

    /// Takes the content that was read.
    pub(super) fn take_read(&mut self) -> HashMap<RepoPath, Vec<u8>> {
        std::mem::take(&mut self.read)
    }

    fn forget(&mut self, path: &[u8]) {
        if let Some(bytes) = self.read.remove(&RepoPath::new(path)) {
            self.kept -= bytes.len();
        }
    }

    fn unread(&self, path: Vec<u8>, mode: FileMode) -> Half {
        Half {
            path,
            mode,
            id: self.repo.object_hash().null(),
            at: ContentLocation::Work,
        }
    }

    fn mode_now(&mut self, path: &[u8], index: Option<Mode>) -> Result<Option<FileMode>> {
        let caps = self.capabilities()?;
        let stat = self
            .content
            .files()
            .stat(path)
            .map_err(|e| cannot_look(path, &e))?;
        Ok(stat.and_then(|s| mode_of(s.kind, index, caps)))
    }

    fn capabilities(&self) -> Result<gix::fs::Capabilities> {
        self.repo
            .filesystem_options()
            .map_err(|e| Error::usage("invalid git configuration").caused_by(&e))
    }

    /// Compares the metadata of every file with the index.
    fn scan(&self) -> Result<Vec<(usize, EntryState)>> {
        let n = self.index.entries().len();
        let options = self.repo.stat_options();
        let look = IndexCheck {
            index: self.index,
            top: &self.top,
            options: options
                .map_err(|e| Error::usage("invalid git configuration").caused_by(&e))?,
            caps: self.capabilities()?,
        };
        if n < TWO_THREADS {
            return look.part(0, n);
        }
        let half = n / 2;
        std::thread::scope(|s| {
            let second = s.spawn(|| look.part(half, n));
            let mut out = look.part(0, half)?;
            match second.join() {
                Ok(rest) => out.extend(rest?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
            Ok(out)
        })
    }

    /// Compares a submodule's checked-out commit with the index, and checks whether its worktree is
    /// clean.
    fn submodule(&mut self, old: Half) -> Result<Option<Pair>> {
        let name = String::from_utf8_lossy(&old.path).into_owned();
        match self
            .content
            .files()
            .stat(&old.path)
            .map_err(|e| cannot_look(&old.path, &e))?
        {
            None => return Ok(Some(Pair::new(Some(old), None))),
            Some(stat) if stat.kind != PathKind::Folder => {
                let mode = mode_of(stat.kind, None, self.capabilities()?);
                let new = mode.map(|m| self.unread(old.path.clone(), m));
                return Ok(Some(Pair::new(Some(old), new)));
            }
            Some(_) => {}
        }
        let Ok(path) = gix::path::from_bstr(gix::bstr::BStr::new(&old.path)) else {
            return Ok(None);
        };
        let inner = match open::nested(&self.top.join(path)) {
            Ok(Some(inner)) => inner,
            // Not checked out.
            Ok(None) => return Ok(None),
            Err(e) => {
                self.notes
                    .push(format!("skipped submodule {name}: {}", e.message));
                return Ok(None);
            }
        };
        let Some(head) = inner.head()? else {
            return Ok(None);
        };
        let dirty = match (inner.staged(), inner.unstaged(false)) {
            (Ok(a), Ok(b)) => !a.entries.is_empty() || !b.entries.is_empty(),
            _ => true,
        };
        if head == own(&old.id) && !dirty {
            return Ok(None);
        }
        let at = if dirty {
            ContentLocation::Dirty
        } else {
            ContentLocation::Objects
        };
        let new = Half {
            path: old.path.clone(),
            mode: FileMode::Submodule,
            id: super::gix_id(&head),
            at,
        };
        Ok(Some(Pair::new(Some(old), Some(new))))
    }
}

/// Returns the error for a worktree that cannot be searched for new files.
fn unsearchable(e: &gix::Error) -> Error {
    Error::incomplete("cannot search the worktree for new files").caused_by(e)
}

/// A search for new files that checks a folder's ignore file before gix enters the folder and opens
/// it.
struct UntrackedWalk<'f> {
    files: &'f mut WorktreeFiles,
    seen: gix::dir::walk::delegate::Collect,
    refused: Option<Error>,
}

impl gix::dir::walk::Delegate for UntrackedWalk<'_> {
    fn emit(&mut self, entry: EntryRef<'_>, folder: Option<gix::dir::entry::Status>) -> Action {
        match self.refused {
            Some(_) => Action::Break(()),
            None => self.seen.emit(entry, folder),
        }
    }

    fn can_recurse(
        &mut self,
        entry: EntryRef<'_>,
        deletion: Option<ForDeletionMode>,
        nested: bool,
    ) -> bool {
        let folder: &[u8] = entry.rela_path.as_ref();
        let file = if folder.is_empty() {
            IGNORE.to_vec()
        } else {
            [folder, b"/", IGNORE].concat()
        };
        let (status, kind, matched) = (entry.status, entry.disk_kind, entry.pathspec_match);
        if self.refused.is_some() || !status.can_recurse(kind, matched, deletion, nested) {
            return false;
        }
        self.refused = self.files.refuse_endless(&file).err();
        self.refused.is_none()
    }
}

/// The arguments for comparing files with the index, for each thread.
struct IndexCheck<'a> {
    index: &'a gix::index::State,
    top: &'a Path,
    options: gix::index::entry::stat::Options,
    caps: gix::fs::Capabilities,
}

impl IndexCheck<'_> {
    fn part(&self, lo: usize, hi: usize) -> Result<Vec<(usize, EntryState)>> {
        let mut files = WorktreeFiles::open(self.top).map_err(|e| {
            Error::incomplete(format!("cannot read the worktree {}", self.top.display()))
                .caused_by(&e)
        })?;
        let backing = self.index.path_backing();
        let written = self.index.timestamp();
        let mut out = Vec::new();
        for i in lo..hi {
            let e = &self.index.entries()[i];
            if e.stage_raw() != 0 {
                out.push((i, EntryState::Unmerged));
                continue;
            }
            // The fsmonitor flags are ignored: they come from a program.
            if e.flags
                .intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE)
                || e.mode == Mode::DIR
            {
                continue;
            }
            if e.mode == Mode::COMMIT {
                out.push((i, EntryState::Submodule));
                continue;
            }
            let path = e.path_in(backing);
            let stat = files
                .stat(path)
                .map_err(|error| cannot_look(path, &error))?;
            let now = stat.and_then(|s| Some((s, mode_of(s.kind, Some(e.mode), self.caps)?)));
            let Some((stat, mode)) = now else {
                out.push((i, EntryState::Removed));
                continue;
            };
            if e.flags.contains(Flags::INTENT_TO_ADD) {
                out.push((i, EntryState::Added(mode)));
            } else if Some(mode) != staged::mode_of(e.mode)
                || !e.stat.matches(&stat.index, self.options)
                || e.stat.is_racy(written, self.options)
            {
                out.push((i, EntryState::Look(mode)));
            }
        }
        Ok(out)
    }
}

/// Returns the mode that git gives to a file on disk, or `None` if git does not store this type.
fn mode_of(kind: PathKind, index: Option<Mode>, caps: gix::fs::Capabilities) -> Option<FileMode> {
    match kind {
        PathKind::Symlink => Some(FileMode::Symlink),
        PathKind::Folder | PathKind::Special => None,
        PathKind::File { executable } => Some(match index {
            Some(Mode::SYMLINK) if !caps.symlink => FileMode::Symlink,
            Some(Mode::FILE_EXECUTABLE) if !caps.executable_bit => FileMode::Executable,
            _ if executable && caps.executable_bit => FileMode::Executable,
            _ => FileMode::Regular,
        }),
    }
}

/// Returns the blob ID of a content.
pub(super) fn hash(repo: &gix::Repository, bytes: &[u8]) -> Result<gix::ObjectId> {
    gix::objs::compute_hash(repo.object_hash(), gix::objs::Kind::Blob, bytes)
        .map_err(|e| Error::incomplete("cannot hash the content").caused_by(&e))
}

/// Rejects the file that a configuration key names if reading it could block or never end.
fn refuse_configured(repo: &gix::Repository, key: &'static str) -> Result<()> {
    let config = repo.config_snapshot();
    let path = config.trusted_path(key).ok().flatten();
    // The code that uses the path reports an invalid one.
    path.map_or(Ok(()), |p| files::refuse_endless(&p))
        .map_err(|e| {
            e.hint(format!(
                "{key} names this file; find its origin: git config --show-origin {key}"
            ))
        })
}

fn not_run(driver: &str) -> String {
    format!("read without the filter {driver}, which is a program")
}

fn cannot_look(path: &[u8], e: &std::io::Error) -> Error {
    Error::incomplete(format!(
        "cannot read metadata of {}",
        String::from_utf8_lossy(path)
    ))
    .caused_by(e)
}
