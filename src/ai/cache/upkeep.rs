//! Lists and removes the entries of the user's cache, for the commands of the operator.

use super::{Cache, LocalReply, ReplyKey, TEMPORARY, local_reply, read_own};
use crate::ai::ask::Nonce;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::sync::atomic::Ordering;

/// The files of the user's cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheFiles {
    /// Entries, with their bytes.
    pub entries: Vec<(ReplyKey, u64)>,
    /// Names of temporary files.
    pub temporary: Vec<String>,
    /// Number of files whose names the program does not write.
    pub foreign: usize,
}

impl Cache {
    /// Lists the files of the cache. A folder that cannot be read is empty.
    pub fn files(&self) -> CacheFiles {
        let mut files = CacheFiles::default();
        let Ok(dir) = Dir::read_from(&self.folder) else {
            return files;
        };
        for entry in dir.flatten() {
            match entry.file_name().to_str() {
                Ok("." | "..") => {}
                Ok(name) if name.starts_with(TEMPORARY) => {
                    files.temporary.push(name.to_owned());
                }
                Ok(name) => match ReplyKey::of_name(name) {
                    Some(key) => files
                        .entries
                        .extend(self.size(name).map(|size| (key, size))),
                    None => files.foreign += 1,
                },
                Err(_) => files.foreign += 1,
            }
        }
        files
    }

    /// Returns the bytes of a file; `None` if it is gone.
    fn size(&self, name: &str) -> Option<u64> {
        let stat = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(u64::try_from(stat.st_size).unwrap_or_default())
    }

    /// Reads an entry without marking it as used. Returns `None` if it is damaged, is not a file of
    /// this user alone, or is of an older version of the program.
    pub fn peek(&self, key: &ReplyKey) -> Option<LocalReply> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.folder, key.to_hex(), flags, Mode::empty()).ok()?;
        local_reply(&read_own(File::from(fd))?, key, &Nonce::random())
    }

    /// Returns true if there is an entry with a key. It is not read.
    pub(in crate::ai) fn has(&self, key: &ReplyKey) -> bool {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(&self.folder, key.to_hex(), flags).is_ok()
    }

    /// Returns the number of damaged entries that this process has removed.
    pub(in crate::ai) fn damaged(&self) -> u32 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Removes the entry with a key.
    pub(in crate::ai) fn forget(&self, key: &ReplyKey) {
        self.remove::<()>(&key.to_hex());
    }

    /// Returns the names of the folders in this one.
    pub(in crate::ai) fn folders(&self) -> Vec<String> {
        let entries = Dir::read_from(&self.folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type() == FileType::Directory);
        folders
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name != "." && name != "..")
            .collect()
    }

    /// Removes a cache in a folder of this one, with everything in it. A failure leaves files that
    /// are never read again.
    pub(in crate::ai) fn remove_folder(&self, name: &str) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(inner) = rustix::fs::openat(&self.folder, name, flags, Mode::empty()) else {
            return;
        };
        for entry in Dir::read_from(&inner).into_iter().flatten().flatten() {
            // `.` and `..` are folders, which this does not remove.
            let _ = rustix::fs::unlinkat(&inner, entry.file_name(), AtFlags::empty());
        }
        let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::REMOVEDIR);
    }

    /// Returns the keys of all entries.
    pub(in crate::ai) fn keys(&self) -> Vec<ReplyKey> {
        let entries = self.files().entries.into_iter();
        entries.map(|(key, _)| key).collect()
    }

    /// Removes the least recently used entries above the size limit, and stale temporary files.
    pub fn trim(&self) {
        self.shrink();
    }

    /// Removes a file of the cache; returns false if that fails.
    pub fn discard(&self, name: &str) -> bool {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()).is_ok()
    }
}
