//! A store in a folder that several processes or machines share.
//!
//! Entries are written to a temporary file and renamed, so that a reader sees all of an entry or
//! nothing. The folder of the policy is opened, and every call is relative to it and follows no
//! link: another user of the folder must not be able to redirect a read, a write or a removal.

use super::{BlobRead, StoreFailure, StoreListing, StoredBlob};
use crate::ai::cache::written::{FileReaders, WrittenFile, is_stale, is_temporary, write_new};
use crate::bounded;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::path::PathBuf;

/// Start of the names of temporary files.
const TEMPORARY: &str = ".tmp-";

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
        let (folder, file) = parts_of(name);
        let Some(folder) = self.folder(folder)? else {
            return Ok(BlobRead::Missing);
        };
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&folder, file, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT) => return Ok(BlobRead::Missing),
            Err(e) if is_of_one_file(e) => return Ok(BlobRead::Unreadable),
            Err(e) => return Err(self.failed("read", name, &e.into())),
        };
        let stat = rustix::fs::fstat(&file).map_err(|e| self.failed("read", name, &e.into()))?;
        if !is_file(&stat) {
            return Ok(BlobRead::Unreadable);
        }
        let bytes =
            bounded::start(file, most as u64 + 1).map_err(|e| self.failed("read", name, &e))?;
        Ok(match bytes.len() > most {
            true => BlobRead::TooLarge,
            false => BlobRead::Content(bytes),
        })
    }

    /// Writes a blob. A folder in its place is left there: a reader counts it as a defect.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        let folder = self.made_folder(name)?;
        let written = self.written(&folder, name, bytes)?;
        let (_, file) = parts_of(name);
        match written.rename(file) {
            Ok(()) | Err(Errno::ISDIR) => Ok(()),
            Err(e) => Err(self.failed("write", name, &e.into())),
        }
    }

    /// Writes a blob, unless one of this name exists.
    pub(super) fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        let folder = self.made_folder(name)?;
        let written = self.written(&folder, name, bytes)?;
        let (_, file) = parts_of(name);
        // A hard link is the portable way to give a whole file a name that must be new. On a file
        // system without hard links, a reader can see a part, which does not count.
        let made = match written.link(file) {
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => {
                write_new(&folder, file, bytes, FileReaders::Group)
            }
            linked => linked.map_err(Into::into),
        };
        match made {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) => Err(self.failed("write", name, &e)),
        }
    }

    /// Removes a blob; returns false if it is a folder, or the folder does not permit it.
    pub(super) fn remove(&self, name: &str) -> Result<bool, StoreFailure> {
        let (folder, file) = parts_of(name);
        let Some(folder) = self.folder(folder)? else {
            return Ok(true);
        };
        match rustix::fs::unlinkat(&folder, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            // With a sticky bit, only the owner of a file can remove it.
            Err(Errno::ISDIR | Errno::PERM) => Ok(false),
            Err(e) => Err(self.failed("remove", name, &e.into())),
        }
    }

    /// Lists at most `most` files of a folder, with temporary files that a dead process left.
    pub(super) fn list(&self, folder: &str, most: usize) -> Result<StoreListing, StoreFailure> {
        let mut listing = StoreListing::default();
        let Some(opened) = self.folder(folder)? else {
            return Ok(listing);
        };
        let dir = Dir::read_from(&opened).map_err(|e| self.failed("read", folder, &e.into()))?;
        let (mut temporary, mut newest) = (Vec::new(), 0);
        for entry in dir {
            let entry = entry.map_err(|e| self.failed("read", folder, &e.into()))?;
            let name = match entry.file_name().to_str() {
                Ok("." | "..") => continue,
                Ok(name) => name,
                Err(_) => {
                    listing.foreign += 1;
                    continue;
                }
            };
            let is_temporary = is_temporary(name, TEMPORARY);
            if !is_temporary && !listing.admits(name, most) {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            newest = newest.max(stat.st_mtime);
            match is_temporary {
                true => temporary.push((name.to_owned(), stat)),
                false => listing.add(name.to_owned(), bytes_of(&stat)),
            }
        }
        temporary.retain(|(_, stat)| is_file(stat) && is_stale(stat, newest));
        for (name, stat) in temporary {
            if listing.has_room(most) {
                listing.blobs.push(StoredBlob {
                    name,
                    bytes: bytes_of(&stat),
                    is_temporary: true,
                });
            }
        }
        Ok(listing)
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
        WrittenFile::new(folder, TEMPORARY, bytes, FileReaders::Group)
            .map_err(|e| self.failed("write", name, &e))
    }

    /// Formats the failure of a call on a file of the store.
    fn failed(&self, what: &str, name: &str, why: &std::io::Error) -> StoreFailure {
        format!("cannot {what} {}: {why}", self.top.join(name).display())
    }
}

/// Splits the name of a blob into its folder and its file.
fn parts_of(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or((".", name))
}

/// Returns true if a file is a regular one.
fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode as _) == FileType::RegularFile
}

/// Returns the size of a file.
fn bytes_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Returns true if the error of opening a file is about this file and not about the store: it is
/// a link or a socket, or another user wrote it for itself.
fn is_of_one_file(error: Errno) -> bool {
    matches!(
        error,
        Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NXIO
    )
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
            assert!(store.list(folder, 9).is_err(), "{folder}");
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
        assert_eq!(store.remove(&name), Ok(true));
        assert_eq!(store.remove(&name), Ok(true));
        assert_eq!(count(), 0);
    }

    #[test]
    fn flt_02_what_is_not_a_readable_file_is_a_defect_of_that_entry_only() {
        let dir = tempfile::tempdir().unwrap();
        let store = FolderStore::new(dir.path().to_str().unwrap());
        let folder = dir.path().join(REPLIES);
        let name = |letter: &str| letter.repeat(64);
        let blob = |letter| format!("{REPLIES}/{}", name(letter));
        store.put(&blob("a"), b"whole").unwrap();
        symlink(folder.join(name("a")), folder.join(name("b"))).unwrap();
        std::fs::create_dir(folder.join(name("c"))).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("s")).unwrap();
        std::fs::rename(folder.join("s"), folder.join(name("d"))).unwrap();
        for letter in ["b", "c", "d"] {
            let read = store.get(&blob(letter), 9);
            assert_eq!(read, Ok(BlobRead::Unreadable), "{letter}");
            assert_eq!(store.create(&blob(letter), b"new"), Ok(false), "{letter}");
        }
        for error in [Errno::ACCESS, Errno::PERM] {
            assert!(is_of_one_file(error), "a file of another user: {error}");
        }
        assert!(!is_of_one_file(Errno::IO), "the disk fails");
        assert_eq!(store.list(REPLIES, 9).unwrap().blobs.len(), 4);
        // A folder is not overwritten and not removed; the others are.
        for (letter, is_gone) in [("b", true), ("c", false), ("d", true)] {
            assert_eq!(store.put(&blob(letter), b"new"), Ok(()), "{letter}");
            assert_eq!(store.remove(&blob(letter)), Ok(is_gone), "{letter}");
        }
        let read = store.get(&blob("a"), 9);
        assert_eq!(read, Ok(BlobRead::Content(b"whole".to_vec())));
    }

    #[test]
    fn a_listing_is_bounded_by_its_own_names_and_counts_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let store = FolderStore::new(dir.path().to_str().unwrap());
        for letter in ["a", "b", "c"] {
            let name = format!("{REPLIES}/{}", letter.repeat(64));
            store.put(&name, letter.as_bytes()).unwrap();
        }
        let folder = dir.path().join(REPLIES);
        let upper = "A".repeat(64);
        for foreign in ["notes.txt", upper.as_str(), ".tmp-1", "z", "zz"] {
            std::fs::write(folder.join(foreign), "").unwrap();
        }
        // A temporary file of a live process, and one that is two hours older than the newest file.
        let temporary = |digit: &str| format!("{TEMPORARY}{}-1f", digit.repeat(16));
        for digit in ["1", "2"] {
            std::fs::write(folder.join(temporary(digit)), "half").unwrap();
        }
        let stale = File::options()
            .write(true)
            .open(folder.join(temporary("2")));
        let then = std::time::SystemTime::now() - std::time::Duration::from_secs(7200);
        stale.unwrap().set_modified(then).unwrap();
        let listing = store.list(REPLIES, 4).unwrap();
        let names: Vec<_> = listing
            .blobs
            .iter()
            .map(|blob| blob.name.as_str())
            .collect();
        assert_eq!((names.len(), listing.foreign), (4, 5), "{names:?}");
        assert!(!listing.is_truncated);
        let last = listing.blobs.last().unwrap();
        assert_eq!(
            (last.name.as_str(), last.is_temporary),
            (temporary("2").as_str(), true)
        );
        for (most, listed) in [(3, 3), (2, 2)] {
            let listing = store.list(REPLIES, most).unwrap();
            assert_eq!(listing.blobs.len(), listed, "{most}");
            assert!(listing.is_truncated && listing.foreign == 5, "{listing:?}");
        }
    }

    #[test]
    fn files_of_a_shared_folder_are_readable_for_its_group_and_others_are_not() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        for (mode, expected) in [(0o770, 0o640), (0o700, 0o600)] {
            let folder = dir.path().join(REPLIES);
            std::fs::create_dir(&folder).unwrap();
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&folder, permissions).unwrap();
            let store = FolderStore::new(dir.path().to_str().unwrap());
            for (letter, is_new) in [("a", false), ("b", true)] {
                let file = letter.repeat(64);
                let name = format!("{REPLIES}/{file}");
                match is_new {
                    true => assert_eq!(store.create(&name, b"one"), Ok(true)),
                    false => store.put(&name, b"one").unwrap(),
                }
                let stat = std::fs::metadata(folder.join(file)).unwrap();
                let shown = stat.permissions().mode() & 0o777;
                assert_eq!(shown, expected, "{mode:o}, {letter}");
            }
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
