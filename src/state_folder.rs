//! A private folder for the state of repositories: its files and locks, independent of their
//! content.
//!
//! It is below the user's state folder, so that a repository cannot supply one. No link is followed
//! in it.

use crate::bounded;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::hex;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use sha2::{Digest as _, Sha256};
use std::fs::{File, TryLockError};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Name of the program's folder in the user's state folder.
const PROGRAM: &str = "claude-reviewer";
/// Bytes of a log at which it is cut, and the bytes that remain.
const MAX_LOG: u64 = 256 << 10;
const KEPT_LOG: u64 = 128 << 10;
/// Time that a process waits for another one that changes a file. Each holds the lock for some
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);

/// An open folder that only this user can access.
#[derive(Debug)]
pub(crate) struct StateFolder {
    fd: OwnedFd,
    path: PathBuf,
}

/// The purpose of a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatePurpose {
    /// Name of the folder.
    pub(crate) folder: &'static str,
    /// Its content in errors, such as `background reviews`.
    pub(crate) content: &'static str,
    /// What to do if the environment names no state folder.
    pub(crate) hint: &'static str,
}

/// Decides whether a missing folder is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingFolder {
    Create,
    Absent,
}

impl StateFolder {
    /// Opens the folder of all repositories for a purpose; `None` if it does not exist and must not be created.
    ///
    /// # Errors
    ///
    /// Usage: the state folder does not exist, is inside of `top`, or other users can access it.
    pub(crate) fn home(
        env: &Env,
        top: Option<&Path>,
        purpose: &StatePurpose,
        missing: MissingFolder,
    ) -> Result<Option<Self>> {
        let content = purpose.content;
        let Some(home) = env.state_home() else {
            return Err(Error::usage(format!(
                "cannot keep {content}: neither XDG_STATE_HOME nor HOME is an absolute path"
            ))
            .hint(purpose.hint));
        };
        if missing == MissingFolder::Create {
            std::fs::create_dir_all(&home).map_err(|e| failed("create", &home, &e))?;
        }
        // Links on the path to the state folder are the user's own.
        let Ok(home) = home.canonicalize() else {
            return Ok(None);
        };
        let top = top.and_then(|t| t.canonicalize().ok());
        if top.is_some_and(|top| home.starts_with(top)) {
            let error = format!(
                "cannot keep {content} in {}: it is inside of the worktree",
                home.display()
            );
            return Err(Error::usage(error)
                .hint("set XDG_STATE_HOME to a folder outside of the repository"));
        }
        let fd = rustix::fs::open(
            &home,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        );
        let fd = fd.map_err(|e| failed("open", &home, &e.into()))?;
        let mut folder = Self { fd, path: home };
        for name in [PROGRAM, purpose.folder] {
            match folder.below(name, missing)? {
                Some(next) => folder = next,
                None => return Ok(None),
            }
        }
        Ok(Some(folder))
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    ///
    /// Usage: it cannot be created or opened, is a link, or others can write to it.
    pub(crate) fn below(&self, name: &str, missing: MissingFolder) -> Result<Option<Self>> {
        let path = self.path.join(name);
        if missing == MissingFolder::Create {
            match rustix::fs::mkdirat(&self.fd, name, Mode::RWXU) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(e) => return Err(failed("create", &path, &e.into())),
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) if missing == MissingFolder::Absent => return Ok(None),
            Err(e) => return Err(failed("open", &path, &e.into())),
        };
        let stat = rustix::fs::fstat(&fd).map_err(|e| failed("open", &path, &e.into()))?;
        if !is_own(&stat) {
            let error = format!("cannot use {}: other users can access it", path.display());
            return Err(Error::usage(error).hint(format!("chmod 700 {}", path.display())));
        }
        Ok(Some(Self { fd, path }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of a file of at most `most` bytes; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// It cannot be read, is not a regular file of this user, or is too large.
    pub(crate) fn read(&self, name: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let path = self.path.join(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(e) => return Err(failed("read", &path, &e.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| failed("read", &path, &e.into()))?;
        let is_file = FileType::from_raw_mode(stat.st_mode as _) == FileType::RegularFile;
        if !is_file || !is_own(&stat) || u64::try_from(stat.st_size).is_ok_and(|size| size > most) {
            return Err(Error::usage(format!(
                "cannot read {}: not a private file of this user",
                path.display()
            ))
            .hint(format!("rm {}", path.display())));
        }
        let bytes = bounded::start(file, most).map_err(|e| failed("read", &path, &e))?;
        Ok(Some(bytes))
    }

    /// Replaces the content of a file. A reader sees the old content or the new one, also after a
    /// crash.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        // Written under a lock, so that one file name is enough and a stale file is replaced.
        let temporary = format!("{name}.tmp");
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, &temporary, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(fd.map_err(|e| self.unwritten(name, &e.into()))?);
        let written = file.write_all(bytes).and_then(|()| file.sync_data());
        let moved =
            written.and_then(|()| Ok(rustix::fs::renameat(&self.fd, &temporary, &self.fd, name)?));
        moved.map_err(|e| {
            // Report the first error.
            let _ = rustix::fs::unlinkat(&self.fd, &temporary, AtFlags::empty());
            self.unwritten(name, &e)
        })
    }

    /// Returns the error about a file that cannot be written.
    fn unwritten(&self, name: &str, e: &std::io::Error) -> Error {
        failed("write", &self.path.join(name), e)
    }

    /// Takes a lock that other processes hold for milliseconds. The kernel releases it if this
    /// process ends.
    ///
    /// # Errors
    ///
    /// Another process holds it for too long; the file system has no locks.
    pub(crate) fn lock(&self, name: &str) -> Result<File> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.try_lock(name)? {
                Some(file) => return Ok(file),
                None if Instant::now() < until => std::thread::sleep(PAUSE),
                None => {
                    let path = self.path.join(name);
                    return Err(Error::incomplete(format!(
                        "another process holds {}",
                        path.display()
                    )));
                }
            }
        }
    }

    /// Takes a lock; `None` if another process holds it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened; the file system has no locks.
    pub(crate) fn try_lock(&self, name: &str) -> Result<Option<File>> {
        let file = self.open(name, OFlags::WRONLY)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(failed("lock", &self.path.join(name), &e)),
        }
    }

    /// Opens a log for writing at its end.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    pub(crate) fn log(&self, name: &str) -> Result<File> {
        self.open(name, OFlags::RDWR | OFlags::APPEND)
    }

    /// Removes the beginning of a log that is too long.
    ///
    /// # Errors
    ///
    /// It cannot be read or written.
    pub(crate) fn trim(&self, name: &str) -> Result<()> {
        let cut = self.log(name).map(|mut file| cut(&mut file))?;
        cut.map_err(|e| failed("write", &self.path.join(name), &e))
    }

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(e) => Err(failed("remove", &self.path.join(name), &e.into())),
        }
    }

    /// Returns the names of the files, sorted. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let unread = |e: rustix::io::Errno| failed("read", &self.path, &e.into());
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            names.extend(entry.file_name().to_str().ok().map(str::to_owned));
        }
        names.retain(|name| name != "." && name != "..");
        names.sort();
        Ok(names)
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<File> {
        let flags = flags
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR);
        fd.map(File::from)
            .map_err(|e| failed("open", &self.path.join(name), &e.into()))
    }
}

/// Removes the beginning of a log that is too long, up to a line end. Its writers append, so their
/// next line follows the rest.
fn cut(file: &mut File) -> std::io::Result<()> {
    let length = file.metadata()?.len();
    if length <= MAX_LOG {
        return Ok(());
    }
    file.seek(SeekFrom::Start(length - KEPT_LOG))?;
    let rest = bounded::start(&mut *file, KEPT_LOG)?;
    file.set_len(0)?;
    let start = rest.iter().position(|b| *b == b'\n').map_or(0, |i| i + 1);
    file.write_all(&rest[start..])
}

/// Returns true if a file or folder belongs to this user, and other users have no access.
fn is_own(stat: &rustix::fs::Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
        && Mode::from_raw_mode(stat.st_mode as _).bits() & 0o077 == 0
}

fn failed(verb: &str, path: &Path, e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot {verb} {}", path.display())).caused_by(e)
}

/// Returns the name of a repository's folder. All worktrees of a repository share it.
pub(crate) fn name_of(repo: &Repo) -> String {
    let common = absolute(&repo.common_dir());
    let hash = Sha256::digest(common.as_os_str().as_encoded_bytes());
    hex::encode(&hash[..12])
}

/// Returns the path without links if it exists, else unchanged.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
