//! Writes files of caches: a temporary file, which gets its name when it is complete.
//!
//! A reader sees all of a file or nothing. Both caches of answers write in this way: the user's own
//! and a folder that machines share.

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;

/// Age in seconds at which a temporary file is stale: a dead process left it.
const STALE: i64 = 3600;
/// Digits of the random part of the name of a temporary file.
const RANDOM_DIGITS: usize = 16;

/// Who can read a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::ai) enum FileReaders {
    /// Its owner only.
    Owner,
    /// The group of the folder as well, if the folder is open to it, whatever the umask is.
    Group,
}

/// A complete file with a temporary name, which is removed at the end.
pub(in crate::ai) struct WrittenFile<'f> {
    folder: &'f OwnedFd,
    name: String,
}

impl<'f> WrittenFile<'f> {
    /// Writes a temporary file in a folder. Its name is `start`, random digits and the process ID.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(in crate::ai) fn new(
        folder: &'f OwnedFd,
        start: &str,
        bytes: &[u8],
        readers: FileReaders,
    ) -> std::io::Result<Self> {
        let random = fastrand::u64(..);
        let written = Self {
            folder,
            name: format!("{start}{random:016x}-{:x}", std::process::id()),
        };
        // No fsync: a reader detects an entry that a crash truncated.
        write_new(folder, &written.name, bytes, readers)?;
        Ok(written)
    }

    /// Gives the file its name, in place of a file that has it.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub(in crate::ai) fn rename(self, name: &str) -> Result<(), Errno> {
        rustix::fs::renameat(self.folder, &self.name, self.folder, name)
    }

    /// Gives the file a name that must be new.
    ///
    /// # Errors
    ///
    /// The error of the system call: `EXIST` if another file has the name.
    pub(in crate::ai) fn link(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::linkat(self.folder, &self.name, self.folder, name, AtFlags::empty())
    }
}

impl Drop for WrittenFile<'_> {
    /// Removes the temporary name. After a rename it does not exist.
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(self.folder, &self.name, AtFlags::empty());
    }
}

/// Writes a new file.
///
/// # Errors
///
/// It exists, or cannot be written.
pub(in crate::ai) fn write_new(
    folder: &OwnedFd,
    file: &str,
    bytes: &[u8],
    readers: FileReaders,
) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(folder, file, flags, Mode::RUSR | Mode::WUSR)?;
    if readers == FileReaders::Group && is_open_to_group(folder)? {
        match rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR | Mode::RGRP) {
            // A file system without permissions of its own: its mount decides who can read.
            Ok(()) | Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(e) => return Err(e.into()),
        }
    }
    File::from(fd).write_all(bytes)
}

/// Returns true if the group of a folder can open files in it.
fn is_open_to_group(folder: &OwnedFd) -> std::io::Result<bool> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode as _);
    Ok(mode.contains(Mode::XGRP))
}

/// Returns true if a name is that of a temporary file with this start.
pub(in crate::ai) fn is_temporary(name: &str, start: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    name.strip_prefix(start)
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(random, process)| {
            random.len() == RANDOM_DIGITS && is_hex(random) && is_hex(process)
        })
}

/// Returns true if a temporary file is not in use any more. `newest` is the time of the newest file
/// of its folder: the clock of this machine may differ from that of the file system.
pub(in crate::ai) fn is_stale(stat: &Stat, newest: i64) -> bool {
    newest.saturating_sub(stat.st_mtime) > STALE
}
