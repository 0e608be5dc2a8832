//! Counts, checks and removes the entries of the user's cache.

use super::{Cache, ReplyKey, local_reply, read_own};
use crate::ai::ask::Nonce;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use std::fs::File;
use std::sync::atomic::Ordering;

/// The action on the entries of the user's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalUpkeep {
    /// Count entries and their bytes.
    Count,
    /// Read every entry.
    Verify,
    /// Read every entry, and remove damaged ones and what is above the size limit.
    Prune,
    /// Remove every entry.
    Clear,
}

/// The entries of the user's cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalSurvey {
    pub entries: usize,
    pub bytes: u64,
    /// Entries that are readable; 0 if none was read.
    pub valid: usize,
    /// Entries that are damaged, or of an older version of the program.
    pub damaged: usize,
    pub removed: usize,
}

impl Cache {
    /// Visits every entry.
    pub fn survey(&self, action: LocalUpkeep) -> LocalSurvey {
        let mut survey = LocalSurvey::default();
        if action == LocalUpkeep::Prune {
            let before = self.keys().len();
            self.shrink();
            survey.removed = before.saturating_sub(self.keys().len());
        }
        for key in self.keys() {
            self.look_at(&key, action, &mut survey);
        }
        survey
    }

    /// Counts or removes one entry.
    fn look_at(&self, key: &ReplyKey, action: LocalUpkeep, survey: &mut LocalSurvey) {
        let name = key.to_hex();
        let Ok(stat) = rustix::fs::statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        survey.entries += 1;
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        survey.bytes = survey.bytes.saturating_add(size);
        let is_damaged = match action {
            LocalUpkeep::Count => return,
            LocalUpkeep::Clear => true,
            LocalUpkeep::Verify | LocalUpkeep::Prune => !self.is_valid(&name, key),
        };
        match (is_damaged, action) {
            (false, _) => survey.valid += 1,
            (true, LocalUpkeep::Clear) => {}
            (true, _) => survey.damaged += 1,
        }
        if is_damaged && matches!(action, LocalUpkeep::Prune | LocalUpkeep::Clear) {
            self.remove::<()>(&name);
            survey.removed += 1;
        }
    }

    /// Returns true if an entry can be read.
    fn is_valid(&self, name: &str, key: &ReplyKey) -> bool {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.folder, name, flags, Mode::empty())
            .ok()
            .and_then(|fd| read_own(File::from(fd)))
            .is_some_and(|bytes| local_reply(&bytes, key, &Nonce::random()).is_some())
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
        let Ok(dir) = Dir::read_from(&self.folder) else {
            return Vec::new();
        };
        dir.flatten()
            .filter_map(|entry| ReplyKey::from_hex(entry.file_name().to_str().ok()?))
            .collect()
    }
}
