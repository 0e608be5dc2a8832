//! The only file operations of the store.
//!
//! Every name is opened relative to an open folder, links are never followed, files of other users
//! are rejected, and modes are 0700 and 0600 whatever the umask. A test can make any operation
//! fail.

use super::trouble::{Result, Trouble};
use crate::hex;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path};
use std::sync::Arc;

/// Depth of nested folders that are removed, at most.
const DEEPEST: u32 = 8;

/// A file operation that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct FileOperation<'a> {
    pub act: Act,
    /// Name of its object as in messages, such as `.reviews/latest.json`.
    pub name: &'a str,
}

/// A kind of file operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Open,
    Look,
    List,
    Read,
    MakeFolder,
    Create,
    /// One half of a write.
    Write,
    SetMode,
    Sync,
    Rename,
    Remove,
    Lock,
}

/// A hook with which tests make file operations fail. Only tests set it.
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Before>>);

/// Called before a file operation; an error becomes the operation's result.
type Before = dyn Fn(&FileOperation<'_>) -> io::Result<()> + Send + Sync;

impl Faults {
    /// Calls `before` for every operation; an error becomes the operation's result. Then content is
    /// written in two halves, each an operation of its own.
    pub fn new(
        before: impl Fn(&FileOperation<'_>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(before)))
    }

    /// Asks a test whether an operation may run.
    fn ask(&self, act: Act, name: &str) -> io::Result<()> {
        self.0
            .as_ref()
            .map_or(Ok(()), |ask| ask(&FileOperation { act, name }))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "Faults(some)"
        } else {
            "Faults(none)"
        })
    }
}

/// An open folder of the store.
#[derive(Debug)]
pub(super) struct StoreFolder {
    file: File,
    /// Name for messages.
    shown: String,
    faults: Faults,
}

/// Whether a missing folder is created.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenMissing {
    Make,
    Absent,
}

/// The metadata of a file that is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryMetadata {
    pub(super) is_folder: bool,
    /// Seconds and nanoseconds of the last modification.
    pub(super) modified: (i64, i64),
    /// Identity of the file: device and inode.
    pub(super) which: (i128, u64),
}

impl StoreFolder {
    /// Opens the folder at `path` below `top`, without following a link below `top`.
    ///
    /// A path that is absolute or contains `..` was set by the operator: its parent may be
    /// anywhere.
    pub(super) fn root(
        top: &Path,
        path: &Path,
        missing: WhenMissing,
        faults: &Faults,
    ) -> Result<Self> {
        let plain = path
            .components()
            .all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        let (start, names): (_, Vec<_>) = match (plain, path.parent(), path.file_name()) {
            (false, Some(parent), Some(name)) => (top.join(parent), vec![name.to_owned()]),
            _ => {
                let names = path
                    .components()
                    .filter(|c| matches!(c, Component::Normal(_)));
                (
                    top.to_owned(),
                    names.map(|c| c.as_os_str().to_owned()).collect(),
                )
            }
        };
        let shown = start.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = attempt(faults, Act::Open, &shown, || {
            rustix::fs::open(&start, flags, Mode::empty())
        });
        let file = opened.map_err(|e| failed("cannot open", &shown, e))?;
        let mut folder = Self {
            file: file.into(),
            shown: String::new(),
            faults: faults.clone(),
        };
        let last = names.len().saturating_sub(1);
        for (i, name) in names.iter().enumerate() {
            let Some(name) = name.to_str() else {
                return Err(Trouble::Refused(
                    path.display().to_string(),
                    "is not UTF-8".to_owned(),
                ));
            };
            folder = match (folder.enter(name, i == last), missing) {
                (Err(Trouble::Absent), WhenMissing::Make) => folder.make_any(name, i == last)?,
                (found, _) => found?,
            };
        }
        Ok(folder)
    }

    /// Returns the display name of an entry of this folder.
    pub(super) fn shown(&self, name: &str) -> String {
        if self.shown.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.shown)
        }
    }

    /// Opens a folder in this one.
    pub(super) fn folder(&self, name: &str) -> Result<Self> {
        self.enter(name, true)
    }

    /// Opens or creates a folder in this one.
    pub(super) fn make(&self, name: &str) -> Result<Self> {
        match self.folder(name) {
            Err(Trouble::Absent) => self.make_any(name, true),
            found => found,
        }
    }

    /// Creates a folder that must not exist.
    pub(super) fn make_new(&self, name: &str) -> Result<Self> {
        self.try_act(Act::MakeFolder, name, || {
            rustix::fs::mkdirat(&self.file, name, Mode::RWXU)
        })
        .map_err(|e| failed("cannot make", &self.shown(name), e))?;
        self.made(name)
    }

    /// Creates a folder that another process may create at the same time.
    fn make_any(&self, name: &str, own: bool) -> Result<Self> {
        match self.try_act(Act::MakeFolder, name, || {
            rustix::fs::mkdirat(&self.file, name, Mode::RWXU)
        }) {
            Ok(()) => self.made(name),
            Err(e) if is(&e, &[Errno::EXIST]) => self.enter(name, own),
            Err(e) => Err(failed("cannot make", &self.shown(name), e)),
        }
    }

    /// Opens a new folder, and sets its mode.
    fn made(&self, name: &str) -> Result<Self> {
        let folder = match self.enter(name, true) {
            // The umask removed the owner's own rights.
            Err(Trouble::Failed(_, e)) if is(&e, &[Errno::ACCESS]) => {
                self.try_act(Act::SetMode, name, || {
                    rustix::fs::chmodat(&self.file, name, Mode::RWXU, AtFlags::empty())
                })
                .map_err(|e| failed("cannot set the mode of", &self.shown(name), e))?;
                self.enter(name, true)?
            }
            folder => folder?,
        };
        folder.tighten()?;
        Ok(folder)
    }

    /// Opens a folder below this one without following a link. With `own`, its owner must be the
    /// current user.
    fn enter(&self, name: &str, own: bool) -> Result<Self> {
        let shown = self.shown(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match self.try_act(Act::Open, name, || {
            rustix::fs::openat(&self.file, name, flags, Mode::empty())
        }) {
            Ok(file) => File::from(file),
            Err(e) if is(&e, &[Errno::NOENT]) => return Err(Trouble::Absent),
            Err(e) if is(&e, &[Errno::NOTDIR, Errno::LOOP]) => {
                let stat = self.stat(name)?;
                return Err(Trouble::Refused(
                    shown,
                    format!("is {}, not a folder", kind(&stat)),
                ));
            }
            Err(e) => return Err(failed("cannot open", &shown, e)),
        };
        let folder = Self {
            file,
            shown,
            faults: self.faults.clone(),
        };
        if own {
            owned(&folder.stat_of(&folder.file, &folder.shown)?, &folder.shown)?;
        }
        Ok(folder)
    }

    /// Removes the rights of other users to the folder.
    pub(super) fn tighten(&self) -> Result<()> {
        let stat = self.stat_of(&self.file, &self.shown)?;
        if Mode::from_raw_mode(stat.st_mode as _).bits() & 0o777 == Mode::RWXU.bits() {
            return Ok(());
        }
        attempt(&self.faults, Act::SetMode, &self.shown, || {
            rustix::fs::fchmod(&self.file, Mode::RWXU)
        })
        .map_err(|e| failed("cannot set the mode of", &self.shown, e))
    }

    /// Lists the names in it, except those that are not UTF-8.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        self.names_as(|name| Some(name.to_owned()))
    }

    /// Lists the values that `read` returns for the names in it. Names that are not UTF-8 are
    /// skipped.
    ///
    /// `Absent` if the folder was removed since it was opened.
    pub(super) fn names_as<T>(&self, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>> {
        match attempt(&self.faults, Act::List, &self.shown, || self.list(&read)) {
            Err(e) if is(&e, &[Errno::NOENT]) => Err(Trouble::Absent),
            listed => listed.map_err(|e| failed("cannot list", &self.shown, e)),
        }
    }

    /// Lists once, for [`Self::names_as`].
    fn list<T>(&self, read: &impl Fn(&str) -> Option<T>) -> rustix::io::Result<Vec<T>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut all = Vec::new();
        // An open folder has a read position, so it is opened again.
        each_name(
            rustix::fs::openat(&self.file, ".", flags, Mode::empty())?,
            |name| match name.to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => all.extend(read(name)),
            },
        )?;
        Ok(all)
    }

    /// Returns the metadata of an entry without opening it.
    pub(super) fn look(&self, name: &str) -> Result<EntryMetadata> {
        self.stat(name).map(|stat| looked(&stat))
    }

    /// Returns the metadata of the folder itself.
    pub(super) fn look_at_self(&self) -> Result<EntryMetadata> {
        self.stat_of(&self.file, &self.shown)
            .map(|stat| looked(&stat))
    }

    /// Reads the metadata of an entry without following a link.
    fn stat(&self, name: &str) -> Result<Stat> {
        match self.try_act(Act::Look, name, || {
            rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)
        }) {
            Ok(stat) => Ok(stat),
            Err(e) if is(&e, &[Errno::NOENT]) => Err(Trouble::Absent),
            Err(e) => Err(failed("cannot read the metadata of", &self.shown(name), e)),
        }
    }

    /// Reads the metadata of an open file.
    fn stat_of(&self, file: &File, shown: &str) -> Result<Stat> {
        attempt(&self.faults, Act::Look, shown, || rustix::fs::fstat(file))
            .map_err(|e| failed("cannot read the metadata of", shown, e))
    }

    /// Reads a file of at most `most` bytes.
    pub(super) fn read(&self, name: &str, most: u64) -> Result<Vec<u8>> {
        let shown = self.shown(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = self.open(name, flags)?;
        let size =
            u64::try_from(regular(&self.stat_of(&file, &shown)?, &shown)?.st_size).unwrap_or(0);
        if size > most {
            return Err(too_large(shown, most));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        let read = retry(|| {
            self.faults
                .ask(Act::Read, &shown)
                .and_then(|()| (&file).take(most + 1).read_to_end(&mut bytes))
        });
        read.map_err(|e| failed("cannot read", &shown, e))?;
        if bytes.len() as u64 > most {
            Err(too_large(shown, most))
        } else {
            Ok(bytes)
        }
    }

    /// Opens a file without following a link.
    fn open(&self, name: &str, flags: OFlags) -> Result<File> {
        let shown = self.shown(name);
        match self.try_act(Act::Open, name, || {
            rustix::fs::openat(&self.file, name, flags, Mode::RUSR | Mode::WUSR)
        }) {
            Ok(file) => Ok(file.into()),
            Err(e) if is(&e, &[Errno::NOENT]) => Err(Trouble::Absent),
            Err(e) if is(&e, &[Errno::LOOP, Errno::NXIO, Errno::ISDIR]) => {
                let stat = self.stat(name)?;
                Err(Trouble::Refused(
                    shown,
                    format!("is {}, not a file", kind(&stat)),
                ))
            }
            Err(e) => Err(failed("cannot open", &shown, e)),
        }
    }

    /// Writes a file that must not exist. The result can wait until it is on the disk.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> Result<Unsynced> {
        let shown = self.shown(name);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file: File = self
            .try_act(Act::Create, name, || {
                rustix::fs::openat(&self.file, name, flags, mode)
            })
            .map_err(|e| failed("cannot create", &shown, e))?
            .into();
        attempt(&self.faults, Act::SetMode, &shown, || {
            rustix::fs::fchmod(&file, mode)
        })
        .map_err(|e| failed("cannot set the mode of", &shown, e))?;
        let halves = match &self.faults.0 {
            None => bytes.split_at(bytes.len()),
            Some(_) => bytes.split_at(bytes.len() / 2),
        };
        for half in [halves.0, halves.1] {
            retry(|| {
                self.faults
                    .ask(Act::Write, &shown)
                    .and_then(|()| (&file).write_all(half))
            })
            .map_err(|e| failed("cannot write", &shown, e))?;
        }
        Ok(Unsynced {
            file,
            is_folder: false,
            shown,
            faults: self.faults.clone(),
        })
    }

    /// Returns a handle to sync the names in this folder.
    pub(super) fn unsynced(&self) -> Result<Unsynced> {
        let file = self
            .file
            .try_clone()
            .map_err(|e| failed("cannot open", &self.shown, e))?;
        Ok(Unsynced {
            file,
            is_folder: true,
            shown: self.shown.clone(),
            faults: self.faults.clone(),
        })
    }

    /// Syncs the names in this folder to the disk.
    pub(super) fn sync(&self) -> Result<()> {
        synced(&self.faults, &self.file, &self.shown, true)
    }

    /// Moves a file or folder atomically.
    pub(super) fn rename(&self, name: &str, to: &Self, new: &str) -> Result<()> {
        self.try_act(Act::Rename, name, || {
            rustix::fs::renameat(&self.file, name, &to.file, new)
        })
        .map_err(|e| {
            Trouble::Failed(
                format!("cannot put {} to {}", self.shown(name), to.shown(new)),
                e,
            )
        })
    }

    /// Removes a file or a link. A missing one is not an error.
    pub(super) fn remove(&self, name: &str) -> Result<()> {
        match self.try_act(Act::Remove, name, || {
            rustix::fs::unlinkat(&self.file, name, AtFlags::empty())
        }) {
            Err(e) if is(&e, &[Errno::NOENT]) => Ok(()),
            removed => removed.map_err(|e| failed("cannot remove", &self.shown(name), e)),
        }
    }

    /// Removes a file, or a folder with its contents. Does not follow links.
    pub(super) fn remove_all(&self, name: &str) -> Result<()> {
        self.remove_below(name, 0)
    }

    /// Removes a file, or a folder with everything in it. `depth` is the number of folders above it
    /// that are removed too.
    fn remove_below(&self, name: &str, depth: u32) -> Result<()> {
        let is_folder = match self.look(name) {
            Err(Trouble::Absent) => return Ok(()),
            looked => looked?.is_folder,
        };
        if !is_folder {
            return self.remove(name);
        }
        if depth > DEEPEST {
            return Err(Trouble::Refused(
                self.shown(name),
                "lies too deep".to_owned(),
            ));
        }
        // Another process may remove it at the same time.
        let folder = match self.enter(name, true) {
            Err(Trouble::Absent) => return Ok(()),
            folder => folder?,
        };
        let names = match folder.names() {
            Err(Trouble::Absent) => return Ok(()),
            names => names?,
        };
        for inner in names {
            folder.remove_below(&inner, depth + 1)?;
        }
        match self.try_act(Act::Remove, name, || {
            rustix::fs::unlinkat(&self.file, name, AtFlags::REMOVEDIR)
        }) {
            Err(e) if is(&e, &[Errno::NOENT]) => Ok(()),
            removed => removed.map_err(|e| failed("cannot remove", &self.shown(name), e)),
        }
    }

    /// Opens the lock file of the store.
    pub(super) fn open_lock(&self, name: &str) -> Result<LockFile> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = self.open(name, flags)?;
        regular(&self.stat_of(&file, &self.shown(name))?, &self.shown(name))?;
        Ok(LockFile {
            file,
            shown: self.shown(name),
            faults: self.faults.clone(),
        })
    }

    /// Runs an operation on an entry. Only a test needs the path of the entry.
    fn try_act<T>(
        &self,
        act: Act,
        name: &str,
        f: impl FnMut() -> rustix::io::Result<T>,
    ) -> io::Result<T> {
        match self.faults.0 {
            None => attempt(&self.faults, act, "", f),
            Some(_) => attempt(&self.faults, act, &self.shown(name), f),
        }
    }
}

/// Lists a folder without an allocation for each name: there may be tens of thousands.
#[cfg(target_os = "linux")]
fn each_name(folder: OwnedFd, mut f: impl FnMut(&CStr)) -> rustix::io::Result<()> {
    let mut buffer = Vec::with_capacity(256 << 10);
    let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        f(entry?.file_name());
    }
    Ok(())
}

/// Lists a folder.
#[cfg(not(target_os = "linux"))]
fn each_name(folder: OwnedFd, mut f: impl FnMut(&CStr)) -> rustix::io::Result<()> {
    for entry in rustix::fs::Dir::new(folder)? {
        f(entry?.file_name());
    }
    Ok(())
}

/// A written file or folder that may not be on the disk yet.
#[derive(Debug)]
#[must_use = "a crash may lose unsynced data"]
pub(super) struct Unsynced {
    file: File,
    is_folder: bool,
    shown: String,
    faults: Faults,
}

impl Unsynced {
    /// Waits until the file or folder is on the disk.
    fn wait(&self) -> Result<()> {
        synced(&self.faults, &self.file, &self.shown, self.is_folder)
    }
}

/// Syncs all files to the disk, in parallel: a disk that waits for one waits for all.
pub(super) fn settle(all: &[Unsynced]) -> Result<()> {
    let Some((first, others)) = all.split_first() else {
        return Ok(());
    };
    if first.faults.0.is_some() {
        // Tests depend on the order.
        return all.iter().try_for_each(Unsynced::wait);
    }
    std::thread::scope(|s| {
        let waits: Vec<_> = others
            .iter()
            .map(|u| (u, std::thread::Builder::new().spawn_scoped(s, || u.wait())))
            .collect();
        let mut result = first.wait();
        for (unsynced, thread) in waits {
            let waited = match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| unsynced.wait()),
                Err(_) => unsynced.wait(),
            };
            result = result.and(waited);
        }
        result
    })
}

/// Syncs a file or folder to the disk.
fn synced(faults: &Faults, file: &File, shown: &str, is_folder: bool) -> Result<()> {
    match retry(|| faults.ask(Act::Sync, shown).and_then(|()| file.sync_all())) {
        // The file system does not support the sync of a folder.
        Err(e) if is_folder && is(&e, &[Errno::INVAL]) => Ok(()),
        synced => synced.map_err(|e| failed("cannot write to the disk", shown, e)),
    }
}

/// The open lock file of the store. The kernel releases the lock when the file is closed.
#[derive(Debug)]
pub(super) struct LockFile {
    file: File,
    shown: String,
    faults: Faults,
}

impl LockFile {
    /// Takes the lock. Returns false if another process has it.
    pub(super) fn try_lock(&self) -> Result<bool> {
        let how = FlockOperation::NonBlockingLockExclusive;
        match attempt(&self.faults, Act::Lock, &self.shown, || {
            rustix::fs::flock(&self.file, how)
        }) {
            Ok(()) => Ok(true),
            Err(e) if is(&e, &[Errno::WOULDBLOCK]) => Ok(false),
            Err(e) => Err(failed("cannot lock", &self.shown, e)),
        }
    }

    /// Writes a note for processes that wait for the lock. Ignores errors.
    pub(super) fn note(&self, text: &str) {
        let _ = self
            .file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(text.as_bytes(), 0));
    }

    /// Returns the note of the lock's holder.
    pub(super) fn noted(&self) -> String {
        let mut text = [0; 16];
        let read = self.file.read_at(&mut text, 0).unwrap_or(0);
        String::from_utf8_lossy(&text[..read]).into_owned()
    }
}

/// Runs an operation, unless a test makes it fail. Repeats it after an interruption by a signal.
fn attempt<T>(
    faults: &Faults,
    act: Act,
    name: &str,
    mut f: impl FnMut() -> rustix::io::Result<T>,
) -> io::Result<T> {
    retry(|| {
        faults
            .ask(act, name)
            .and_then(|()| f().map_err(io::Error::from))
    })
}

/// Repeats a system call after an interruption by a signal.
fn retry<T>(mut f: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match f() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Returns the error of a failed system call.
fn failed(what: &str, name: &str, e: io::Error) -> Trouble {
    Trouble::Failed(format!("{what} {name}"), e)
}

/// Returns the error for a file that is larger than permitted.
fn too_large(shown: String, most: u64) -> Trouble {
    Trouble::Damaged(shown, format!("it is larger than {most} bytes"))
}

/// Returns true if an error is one of these.
fn is(e: &io::Error, which: &[Errno]) -> bool {
    Errno::from_io_error(e).is_some_and(|e| which.contains(&e))
}

/// Converts metadata.
fn looked(stat: &Stat) -> EntryMetadata {
    EntryMetadata {
        is_folder: FileType::from_raw_mode(stat.st_mode as _) == FileType::Directory,
        modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
        // Device numbers are signed on some systems.
        which: (i128::from(stat.st_dev), stat.st_ino),
    }
}

/// Returns the name of a file's type.
fn kind(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode as _) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a device",
    }
}

/// Refuses everything but a regular file of the current user.
fn regular<'a>(stat: &'a Stat, shown: &str) -> Result<&'a Stat> {
    if FileType::from_raw_mode(stat.st_mode as _) != FileType::RegularFile {
        return Err(Trouble::Refused(
            shown.to_owned(),
            format!("is {}, not a file", kind(stat)),
        ));
    }
    owned(stat, shown)?;
    Ok(stat)
}

/// Refuses a file of another user.
fn owned(stat: &Stat, shown: &str) -> Result<()> {
    let (owner, own) = (stat.st_uid, rustix::process::geteuid().as_raw());
    if owner == own {
        return Ok(());
    }
    Err(Trouble::Refused(
        shown.to_owned(),
        format!("is owned by user {owner}, but the current user is {own}"),
    ))
}

/// Returns a unique name for a file in `tmp/`.
pub(super) fn unique(what: &str) -> String {
    let mut bytes = [0; 8];
    if getrandom::fill(&mut bytes).is_err() {
        bytes = fastrand::u64(..).to_le_bytes();
    }
    format!("{what}-{}-{}", std::process::id(), hex::encode(&bytes))
}
