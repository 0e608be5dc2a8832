//! A store in a folder that several processes or machines share.
//!
//! Entries are written to a temporary file and renamed, so that a reader sees all of an entry or
//! nothing. The folder of the policy is opened, and every call is relative to it and follows no
//! link: another user of the folder must not be able to redirect a read, a write or a removal.

use super::{BlobRead, MAX_LISTED, StoreFailure, StoredBlob};
use crate::bounded;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Age of a temporary file that a dead process left.
const STALE: Duration = Duration::from_secs(3600);
/// Start of the names of temporary files.
const TEMPORARY: &str = ".tmp-";

/// A store in a folder.
#[derive(Debug)]
pub(in crate::ai::shared) struct FolderStore {
    top: PathBuf,
}

/// A temporary file in a folder, with its whole content.
struct WrittenFile<'f> {
    folder: &'f OwnedFd,
    name: String,
}

impl FolderStore {
    /// Names a store; creates nothing.
    pub(super) fn new(path: &str) -> Self {
        Self {
            top: PathBuf::from(path),
        }
    }

    /// Reads a blob.
    pub(super) fn get(&self, name: &str, most: usize) -> Result<BlobRead, StoreFailure> {
        let (folder, file) = parts_of(name);
        let Some(folder) = self.folder(folder)? else {
            return Ok(BlobRead::Missing);
        };
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&folder, file, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(BlobRead::Missing),
            Err(e) => return Err(self.failed("read", name, &e.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| self.failed("read", name, &e.into()))?;
        if !is_file(&stat) {
            return Err(format!("{} is not a file", self.top.join(name).display()));
        }
        let bytes =
            bounded::start(file, most as u64 + 1).map_err(|e| self.failed("read", name, &e))?;
        Ok(match bytes.len() > most {
            true => BlobRead::TooLarge,
            false => BlobRead::Content(bytes),
        })
    }

    /// Writes a blob.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        let folder = self.made_folder(name)?;
        let written = self.written(&folder, name, bytes)?;
        let (_, file) = parts_of(name);
        rustix::fs::renameat(&folder, &written.name, &folder, file)
            .map_err(|e| self.failed("write", name, &e.into()))
    }

    /// Writes a blob, unless one of this name exists.
    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        let folder = self.made_folder(name)?;
        let written = self.written(&folder, name, bytes)?;
        let (_, file) = parts_of(name);
        // A hard link is the portable way to give a whole file a name that must be new. On a file
        // system without hard links, a reader can see a part, which does not count.
        let linked = rustix::fs::linkat(&folder, &written.name, &folder, file, AtFlags::empty());
        let made = match linked {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => write_new(&folder, file, bytes),
            linked => linked.map_err(Into::into),
        };
        match made {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(self.failed("write", name, &e)),
        }
    }

    /// Removes a blob.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreFailure> {
        let (folder, file) = parts_of(name);
        let Some(folder) = self.folder(folder)? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(&folder, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(self.failed("remove", name, &e.into())),
        }
    }

    /// Lists the files of a folder, with temporary files that a dead process left.
    pub(super) fn list(&self, folder: &str) -> Result<Vec<StoredBlob>, StoreFailure> {
        let Some(opened) = self.folder(folder)? else {
            return Ok(Vec::new());
        };
        let dir = Dir::read_from(&opened).map_err(|e| self.failed("read", folder, &e.into()))?;
        let mut all = Vec::new();
        for entry in dir.flatten().take(MAX_LISTED) {
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let Ok(stat) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if is_file(&stat) && (!is_temporary(name) || is_old(&stat)) {
                all.push(StoredBlob {
                    name: name.to_owned(),
                    bytes: u64::try_from(stat.st_size).unwrap_or_default(),
                });
            }
        }
        Ok(all)
    }

    /// Opens the folder of the policy. It must exist: a typing error, or a file system that is not
    /// mounted, must not become a store on the local disk. Links on its path are those of the
    /// operator and are followed.
    fn opened(&self) -> Result<OwnedFd, StoreFailure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(&self.top, flags, Mode::empty())
            .map_err(|e| format!("cannot open {}: {}", self.top.display(), errno(e)))
    }

    /// Opens a folder of the store; `None` if it does not exist. A link is an error.
    fn folder(&self, name: &str) -> Result<Option<OwnedFd>, StoreFailure> {
        let top = self.opened()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&top, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(folder)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(self.failed("open", name, &e.into())),
        }
    }

    /// Opens the folder of a blob, and creates it if it does not exist.
    fn made_folder(&self, name: &str) -> Result<OwnedFd, StoreFailure> {
        let (folder, _) = parts_of(name);
        if let Some(opened) = self.folder(folder)? {
            return Ok(opened);
        }
        let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
        match rustix::fs::mkdirat(self.opened()?, folder, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(self.failed("create", folder, &e.into())),
        }
        self.folder(folder)?
            .ok_or_else(|| self.failed("open", folder, &Errno::NOENT.into()))
    }

    /// Writes a temporary file in the folder of a blob.
    fn written<'f>(
        &self,
        folder: &'f OwnedFd,
        name: &str,
        bytes: &[u8],
    ) -> Result<WrittenFile<'f>, StoreFailure> {
        let written = WrittenFile {
            folder,
            name: format!(
                "{TEMPORARY}{:016x}-{:x}",
                fastrand::u64(..),
                std::process::id()
            ),
        };
        write_new(folder, &written.name, bytes).map_err(|e| self.failed("write", name, &e))?;
        Ok(written)
    }

    /// Formats the failure of a call on a file of the store.
    fn failed(&self, what: &str, name: &str, why: &std::io::Error) -> StoreFailure {
        format!("cannot {what} {}: {why}", self.top.join(name).display())
    }
}

impl Drop for WrittenFile<'_> {
    /// Removes the temporary name. After a rename it does not exist.
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

/// Writes a new file, which other users of the folder's group can read.
fn write_new(folder: &OwnedFd, file: &str, bytes: &[u8]) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP;
    let fd = rustix::fs::openat(folder, file, flags, mode)?;
    File::from(fd).write_all(bytes)
}

/// Splits the name of a blob into its folder and its file.
fn parts_of(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((".", name))
}

/// Returns true if a name is that of a temporary file of this store.
pub(super) fn is_temporary(name: &str) -> bool {
    let rest = name.strip_prefix(TEMPORARY);
    rest.and_then(|rest| rest.split_once('-'))
        .is_some_and(|(random, process)| {
            let is_hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
            random.len() == 16 && !process.is_empty() && is_hex(random) && is_hex(process)
        })
}

/// Returns true if a file is a regular one.
fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode as _) == FileType::RegularFile
}

/// Returns true if a temporary file is not in use any more.
fn is_old(stat: &Stat) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let modified = u64::try_from(stat.st_mtime).unwrap_or_default();
    now.is_ok_and(|now| now.as_secs().saturating_sub(modified) > STALE.as_secs())
}

/// Describes the error of a system call.
fn errno(error: Errno) -> std::io::Error {
    error.into()
}

#[cfg(test)]
mod tests {
    use super::super::{LEASES, REPLIES};
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn flt_02_a_link_in_place_of_a_folder_of_the_store_is_never_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (top, elsewhere) = (dir.path().join("store"), dir.path().join("elsewhere"));
        let name = "a".repeat(64);
        for folder in [REPLIES, LEASES] {
            for made in [&top, &elsewhere] {
                std::fs::create_dir_all(made).unwrap();
            }
            std::fs::write(elsewhere.join(&name), "theirs").unwrap();
            symlink(&elsewhere, top.join(folder)).unwrap();
            let store = FolderStore::new(top.to_str().unwrap());
            let blob = format!("{folder}/{name}");
            let other = format!("{folder}/{}", "b".repeat(64));
            assert!(store.get(&blob, 100).is_err(), "{folder}");
            assert!(store.list(folder).is_err(), "{folder}");
            assert!(store.put(&blob, b"ours").is_err(), "{folder}");
            assert!(store.create(&other, b"ours").is_err(), "{folder}");
            assert!(store.remove(&blob).is_err(), "{folder}");
            let left = std::fs::read(elsewhere.join(&name)).unwrap();
            assert_eq!(left, b"theirs", "{folder}");
            assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 1);
        }
    }

    #[test]
    fn a_blob_is_written_created_once_and_removed_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        let store = FolderStore::new(dir.path().to_str().unwrap());
        let name = format!("{LEASES}/{}", "c".repeat(64));
        assert_eq!(store.get(&name, 9), Ok(BlobRead::Missing));
        assert_eq!(store.create(&name, b"one"), Ok(true));
        assert_eq!(store.create(&name, b"two"), Ok(false));
        assert_eq!(store.get(&name, 9), Ok(BlobRead::Content(b"one".to_vec())));
        store.put(&name, b"three").unwrap();
        assert_eq!(store.get(&name, 4), Ok(BlobRead::TooLarge));
        let count = || std::fs::read_dir(dir.path().join(LEASES)).unwrap().count();
        assert_eq!(count(), 1);
        store.remove(&name).unwrap();
        store.remove(&name).unwrap();
        assert_eq!(count(), 0);
    }
}
