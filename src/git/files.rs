//! Files in a worktree, opened so that no link leads out of it and no open blocks.

use super::guard;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

#[cfg(unix)]
use rustix::{
    fd::{AsFd as _, BorrowedFd, OwnedFd},
    fs::{AtFlags, FileType, Mode, OFlags},
};

/// Reads files of a worktree. Keeps the folders of the last path open.
#[derive(Debug)]
pub(super) struct WorktreeFiles {
    root: OwnedFd,
    /// Path of the open folder: empty, or ending in `/`.
    path: Vec<u8>,
    /// The folders of `path`: the length of their name in it, and `None` from the first that cannot
    /// be opened as a folder (a link, a file, or missing).
    open: Vec<(usize, Option<OwnedFd>)>,
}

/// The type of a path on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    File {
        executable: bool,
    },
    Symlink,
    Folder,
    /// A pipe, a socket, a device.
    Special,
}

/// The content of a file.
#[derive(Debug)]
pub(super) enum Bytes {
    All(Vec<u8>),
    /// The file is larger than the limit.
    TooMany,
}

/// The type of a path on disk, and its stat data as in the index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stat {
    pub(super) kind: PathKind,
    /// Bytes.
    pub(super) size: u64,
    pub(super) index: gix::index::entry::Stat,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const FOLDER: OFlags = OFlags::PATH;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
const FOLDER: OFlags = OFlags::RDONLY;

impl WorktreeFiles {
    /// Opens the top of a worktree.
    pub(super) fn open(top: &Path) -> io::Result<Self> {
        let flags = FOLDER | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(top, flags, Mode::empty())?;
        Ok(Self {
            root,
            path: Vec::new(),
            open: Vec::new(),
        })
    }

    /// Returns the metadata of a path, or `None` if nothing is there or a link is on the way.
    pub(super) fn stat(&mut self, path: &[u8]) -> io::Result<Option<Stat>> {
        let Some((folder, name)) = self.enter(path) else {
            return Ok(None);
        };
        match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(st) => Ok(Some(convert(&st))),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Lists the entries of a folder except folders. Returns none if there is no such folder, or a
    /// link is on the way.
    pub(super) fn names(&mut self, folder: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let probe = [folder, b"/x"].concat();
        let Some((open, _)) = self.enter(&probe) else {
            return Ok(Vec::new());
        };
        let mut names = Vec::new();
        // Opened again: a folder that was opened with `O_PATH` cannot be listed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for entry in rustix::fs::Dir::new(rustix::fs::openat(open, ".", flags, Mode::empty())?)? {
            names.push(entry?.file_name().to_bytes().to_vec());
        }
        names.retain(|n| n != b"." && n != b"..");
        let mut files = Vec::new();
        for name in names {
            let path = [folder, b"/", &name].concat();
            if self
                .stat(&path)?
                .is_some_and(|s| !matches!(s.kind, PathKind::Folder))
            {
                files.push(name);
            }
        }
        Ok(files)
    }

    /// Reads a regular file, or returns `None` if there is none (a link or a pipe does not count).
    pub(super) fn read(&mut self, path: &[u8], max: usize) -> io::Result<Option<Bytes>> {
        let Some((folder, name)) = self.enter(path) else {
            return Ok(None);
        };
        // Non-blocking: the file may be replaced by a pipe after its metadata was read.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(folder, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            // A link; a socket or a device without a driver.
            Err(
                rustix::io::Errno::NOENT
                | rustix::io::Errno::NOTDIR
                | rustix::io::Errno::LOOP
                | rustix::io::Errno::NXIO
                | rustix::io::Errno::ISDIR,
            ) => return Ok(None),
            Err(e) => return Err(e.into()),
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Ok(None);
        }
        let size = usize::try_from(meta.len()).unwrap_or(usize::MAX);
        if size > max {
            return Ok(Some(Bytes::TooMany));
        }
        let mut bytes = Vec::with_capacity(size.saturating_add(1));
        // The file may grow meanwhile.
        file.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(Some(if bytes.len() > max {
            Bytes::TooMany
        } else {
            Bytes::All(bytes)
        }))
    }

    /// Rejects an attribute or ignore file as [`refuse_endless`] does. Links are not followed,
    /// since the code that reads the file does not follow them either.
    pub(super) fn refuse_endless(&mut self, path: &[u8]) -> Result<()> {
        let Ok(Some(stat)) = self.stat(path) else {
            return Ok(());
        };
        let size = if let PathKind::File { .. } = stat.kind {
            stat.size
        } else {
            0
        };
        refuse(
            &String::from_utf8_lossy(path),
            stat.kind != PathKind::Special,
            size,
        )
    }

    /// Reads the target of a link, or returns `None` if there is no link.
    pub(super) fn link(&mut self, path: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let Some((folder, name)) = self.enter(path) else {
            return Ok(None);
        };
        match rustix::fs::readlinkat(folder, name, Vec::new()) {
            Ok(target) => Ok(Some(target.into_bytes())),
            Err(
                rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::INVAL,
            ) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Opens the folder of a path and returns it with the last name. Returns `None` if there is no
    /// such folder, or git would not store the path.
    fn enter<'p>(&mut self, path: &'p [u8]) -> Option<(BorrowedFd<'_>, &'p [u8])> {
        let cut = memchr::memrchr(b'/', path).map_or(0, |i| i + 1);
        let (folder, name) = path.split_at(cut);
        if !is_name(name) {
            return None;
        }
        if folder != self.path {
            self.walk(folder);
        }
        let fd = match self.open.last() {
            None => self.root.as_fd(),
            Some((_, fd)) => fd.as_ref()?.as_fd(),
        };
        Some((fd, name))
    }

    fn walk(&mut self, folder: &[u8]) {
        while let Some((len, _)) = self.open.last() {
            if folder.len() >= *len && folder[..*len] == self.path[..*len] {
                break;
            }
            self.open.pop();
        }
        let mut at = self.open.last().map_or(0, |(len, _)| *len);
        self.path.truncate(at);
        while let Some(len) = memchr::memchr(b'/', &folder[at..]) {
            let name = &folder[at..at + len];
            let parent = match self.open.last() {
                None => Some(self.root.as_fd()),
                Some((_, fd)) => fd.as_ref().map(|f| f.as_fd()),
            };
            let flags = FOLDER | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let fd = parent
                .filter(|_| is_name(name))
                .and_then(|p| rustix::fs::openat(p, name, flags, Mode::empty()).ok());
            at += len + 1;
            self.path.extend_from_slice(&folder[self.path.len()..at]);
            self.open.push((at, fd));
        }
    }
}

/// The most bytes of an attribute or ignore file. Git reads more, but real files are much smaller.
const MAX_RULES: u64 = 16 << 20;

/// Rejects an attribute or ignore file that would block the reader or never end: a pipe, a device,
/// a huge file. Follows links. Accepts missing files, and files without metadata: reading them
/// reports the error.
pub(super) fn refuse_endless(path: &Path) -> Result<()> {
    let Ok(meta) = std::fs::metadata(path) else {
        return Ok(());
    };
    refuse(
        &path.display(),
        guard::is_harmless(&meta),
        meta.len() * u64::from(meta.is_file()),
    )
}

fn refuse(name: &dyn std::fmt::Display, readable: bool, size: u64) -> Result<()> {
    let what = match (readable, size > MAX_RULES) {
        (false, _) => "is not a regular file".to_owned(),
        (true, true) => format!("is larger than {} MiB", MAX_RULES >> 20),
        (true, false) => return Ok(()),
    };
    Err(Error::usage(format!(
        "cannot read attributes or ignore rules: {name} {what}"
    )))
}

/// Returns true if a name cannot lead out of its folder.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&0)
}

#[cfg(unix)]
fn convert(st: &rustix::fs::Stat) -> Stat {
    use gix::index::entry::stat::Time;
    let kind = match FileType::from_raw_mode(st.st_mode as _) {
        FileType::RegularFile => PathKind::File {
            executable: st.st_mode & 0o100 != 0,
        },
        FileType::Symlink => PathKind::Symlink,
        FileType::Directory => PathKind::Folder,
        _ => PathKind::Special,
    };
    // Truncated to 32 bits, as in the index.
    let index = gix::index::entry::Stat {
        mtime: Time {
            secs: st.st_mtime as u32,
            nsecs: st.st_mtime_nsec as u32,
        },
        ctime: Time {
            secs: st.st_ctime as u32,
            nsecs: st.st_ctime_nsec as u32,
        },
        dev: st.st_dev as u32,
        ino: st.st_ino as u32,
        uid: st.st_uid,
        gid: st.st_gid,
        size: st.st_size as u32,
    };
    Stat {
        kind,
        size: u64::try_from(st.st_size).unwrap_or(0),
        index,
    }
}
