//! A store in a folder that several processes or machines share.
//!
//! Entries are written to a temporary file and renamed, so that a reader sees all of an entry or
//! nothing. Links are not followed: another user of the folder must not be able to redirect a write.

use super::{BlobRead, MAX_LISTED, StoreFailure, StoredBlob};
use crate::bounded;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A store in a folder.
#[derive(Debug)]
pub(in crate::ai::shared) struct FolderStore {
    top: PathBuf,
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
        let path = self.top.join(name);
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            // A missing store is reported, a missing entry is not.
            Err(rustix::io::Errno::NOENT) if self.top.is_dir() => return Ok(BlobRead::Missing),
            Err(e) => return Err(failed("read", &path, &e.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| failed("read", &path, &e.into()))?;
        if FileType::from_raw_mode(stat.st_mode as _) != FileType::RegularFile {
            return Err(format!("{} is not a file", path.display()));
        }
        let bytes = bounded::start(file, most as u64 + 1).map_err(|e| failed("read", &path, &e))?;
        Ok(match bytes.len() > most {
            true => BlobRead::TooLarge,
            false => BlobRead::Content(bytes),
        })
    }

    /// Writes a blob.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        let path = self.top.join(name);
        let file = self.written(&path, bytes)?;
        file.persist(&path)
            .map_err(|e| failed("write", &path, &e.error))?;
        Ok(())
    }

    /// Writes a blob if there is none.
    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        let path = self.top.join(name);
        match self.written(&path, bytes)?.persist_noclobber(&path) {
            Ok(_) => Ok(true),
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(failed("write", &path, &e.error)),
        }
    }

    /// Writes a temporary file beside a blob, which other users of the folder's group can read.
    fn written(&self, path: &Path, bytes: &[u8]) -> Result<tempfile::NamedTempFile, StoreFailure> {
        // The folder itself must exist: a typing error, or a file system that is not mounted, must
        // not become a store on the local disk.
        if !self.top.is_dir() {
            return Err(format!("{} is not a directory", self.top.display()));
        }
        let dir = path.parent().unwrap_or(&self.top);
        std::fs::create_dir_all(dir).map_err(|e| failed("create", dir, &e))?;
        let mut file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .tempfile_in(dir)
            .map_err(|e| failed("write", path, &e))?;
        file.write_all(bytes)
            .map_err(|e| failed("write", path, &e))?;
        Ok(file)
    }

    /// Removes a blob.
    pub(super) fn remove(&self, name: &str) -> Result<(), StoreFailure> {
        let path = self.top.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", &path, &e)),
            _ => Ok(()),
        }
    }

    /// Lists the blobs of a folder, with temporary files that a dead process left.
    pub(super) fn list(&self, folder: &str) -> Result<Vec<StoredBlob>, StoreFailure> {
        let dir = self.top.join(folder);
        let entries = match std::fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && self.top.is_dir() => {
                return Ok(Vec::new());
            }
            Err(e) => return Err(failed("read", &dir, &e)),
        };
        let mut all = Vec::new();
        for entry in entries.flatten().take(MAX_LISTED) {
            let Ok(meta) = entry.metadata() else { continue };
            let name = entry.file_name();
            let name = name
                .to_str()
                .filter(|n| !n.starts_with(TEMPORARY) || is_old(&meta));
            if let (true, Some(name)) = (meta.is_file(), name) {
                all.push(StoredBlob {
                    name: name.to_owned(),
                    bytes: meta.len(),
                });
            }
        }
        Ok(all)
    }
}

/// Returns true if a temporary file is not in use any more.
fn is_old(meta: &std::fs::Metadata) -> bool {
    let age = meta.modified().ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > STALE)
}

/// Age of a temporary file that a dead process left.
const STALE: std::time::Duration = std::time::Duration::from_secs(3600);
/// Start of the names of temporary files.
const TEMPORARY: &str = ".tmp-";

/// Formats the failure of a call.
fn failed(what: &str, path: &Path, why: &std::io::Error) -> StoreFailure {
    format!("cannot {what} {}: {why}", path.display())
}
