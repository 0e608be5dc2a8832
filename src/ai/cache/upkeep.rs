//! Lists and removes the entries of the user's cache, for the commands of the operator.

use super::{Cache, LocalReply, ReplyKey, TEMPORARY, local_reply, read_own};
use crate::ai::ask::Nonce;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use std::fs::File;

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

    /// Removes the least recently used entries above the size limit, and stale temporary files.
    pub fn trim(&self) {
        self.shrink();
    }

    /// Removes a file of the cache; returns false if that fails.
    pub fn discard(&self, name: &str) -> bool {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()).is_ok()
    }
}
