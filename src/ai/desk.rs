//! Private folders for programs and for the copy of a fix, and removal of folders that terminated
//! processes left.
//!
//! A process that is killed, or terminated by a second Ctrl-C, cannot clean up. The kernel releases
//! the lock of each folder with its process, so the next process that creates a folder can detect
//! the stale ones.

use crate::env::Env;
use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// Prefix of the name of a folder. Random letters and digits follow.
const PREFIX: &str = "claude-reviewer-";
const RANDOM: usize = 6;
const LOCK: &str = "lock";
/// All possible entries of a folder. `lock.new` is the lock before it is acquired.
const PARTS: [&str; 4] = ["tree", "tmp", LOCK, "lock.new"];
/// Age at which a folder without a lock is stale: its process ended while it created or removed the
/// folder, or the file system does not support locks. No run takes that long.
const OLD: Duration = Duration::from_secs(24 * 60 * 60);

/// The folders of this process.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A private folder for one program, with a working folder and one for temporary files.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    /// Removes the folder when it is dropped, before the lock.
    root: TempDir,
    /// `None` if the file system does not support locks.
    _lock: Option<File>,
    work: PathBuf,
    scratch: PathBuf,
}

/// Returns the folder for temporary files: that of the system, unless it is inside the repository.
pub(crate) fn temporary(env: &Env, top: Option<&Path>) -> Option<PathBuf> {
    let top = top.and_then(|t| t.canonicalize().ok());
    let named = ["TMPDIR", "TEMP", "TMP"]
        .into_iter()
        .filter_map(|name| env.os(name).map(PathBuf::from));
    let usual = cfg!(unix).then(|| PathBuf::from("/tmp"));
    named
        .chain(usual)
        .filter(|dir| dir.is_absolute())
        .filter_map(|dir| dir.canonicalize().ok())
        .find(|dir| dir.is_dir() && top.as_ref().is_none_or(|top| !dir.starts_with(top)))
}

impl PrivateFolder {
    /// Creates a private folder in `parent`, and removes stale folders there.
    pub(crate) fn new(parent: &Path) -> io::Result<Self> {
        // Use the canonical path, because programs report paths in that form.
        let parent = parent.canonicalize()?;
        sweep(&parent);
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let root = builder
            .prefix(PREFIX)
            .rand_bytes(RANDOM)
            .tempdir_in(parent)?;
        let held = hold(root.path())?;
        let (work, scratch) = (root.path().join("tree"), root.path().join("tmp"));
        folder(&work)?;
        folder(&scratch)?;
        own().push(root.path().to_owned());
        Ok(Self {
            root,
            _lock: held,
            work,
            scratch,
        })
    }

    /// Returns the folder that a program works in.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the folder for its temporary files.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        own().retain(|path| path != self.root.path());
    }
}

/// Removes the folders of this process, which terminates immediately afterwards.
pub(crate) fn discard() {
    // Another thread may still write; the next process removes the rest.
    own()
        .drain(..)
        .for_each(|path| drop(std::fs::remove_dir_all(path)));
}

fn own() -> MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a folder and its parents, accessible only to the owner.
pub(super) fn folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates the lock of a folder. It is renamed after it is acquired, so that `lock` is never free
/// while its process runs.
fn hold(root: &Path) -> io::Result<Option<File>> {
    let new = root.join("lock.new");
    let file = File::create_new(&new)?;
    match file.try_lock() {
        Ok(()) => {
            std::fs::rename(new, root.join(LOCK))?;
            Ok(Some(file))
        }
        Err(_) => Ok(None),
    }
}

/// Removes stale folders. Ignores a folder that cannot be removed.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let is_named = entry.file_name().to_str().is_some_and(is_name);
        let path = entry.path();
        if is_named && is_left(&path) {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

fn is_name(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX).unwrap_or_default();
    random.len() == RANDOM && random.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns true if a folder belongs to this user and no process uses it.
fn is_left(path: &Path) -> bool {
    let Ok(meta) = path.symlink_metadata() else {
        return false;
    };
    if !meta.is_dir() || !is_private(&meta) || !has_known_parts(path) {
        return false;
    }
    match File::open(path.join(LOCK)) {
        Ok(file) => !matches!(
            file.try_lock(),
            Err(TryLockError::WouldBlock | TryLockError::Error(_))
        ),
        Err(e) if e.kind() == io::ErrorKind::NotFound => meta
            .modified()
            .is_ok_and(|time| time.elapsed().is_ok_and(|age| age > OLD)),
        Err(_) => false,
    }
}

fn has_known_parts(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| {
        entries.all(|entry| {
            entry.is_ok_and(|e| {
                e.file_name()
                    .to_str()
                    .is_some_and(|name| PARTS.contains(&name))
            })
        })
    })
}

#[cfg(unix)]
fn is_private(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::time::SystemTime;

    /// Creates the folder that a killed process leaves. Returns its path.
    fn left(parent: &Path, name: &str) -> PathBuf {
        let root = parent.join(format!("{PREFIX}{name}"));
        folder(&root.join("tree/src")).unwrap();
        folder(&root.join("tmp")).unwrap();
        write(root.join("tree/src/a.py"), "x\n").unwrap();
        write(root.join(LOCK), "").unwrap();
        root
    }

    fn set_age(path: &Path, age: Duration) {
        File::open(path)
            .unwrap()
            .set_modified(SystemTime::now() - age)
            .unwrap();
    }

    #[test]
    fn a_folder_is_private_and_goes_with_its_value() {
        let parent = tempfile::tempdir().unwrap();
        let desk = PrivateFolder::new(parent.path()).unwrap();
        let root = desk.work().parent().unwrap().to_owned();
        assert!(
            is_name(root.file_name().unwrap().to_str().unwrap()),
            "{}",
            root.display()
        );
        assert!(
            desk.work().is_dir()
                && desk.scratch().is_dir()
                && is_private(&root.metadata().unwrap())
        );
        assert!(has_known_parts(&root) && !is_left(&root));
        drop(desk);
        assert!(!root.exists());
    }

    #[test]
    fn what_dead_processes_left_is_removed_and_what_lives_stays() {
        let parent = tempfile::tempdir().unwrap();
        let alive = PrivateFolder::new(parent.path()).unwrap();
        let dead = left(parent.path(), "abc123");
        // The lock was never created, or was removed first.
        let broken = left(parent.path(), "abc124");
        std::fs::remove_file(broken.join(LOCK)).unwrap();
        set_age(&broken, OLD + Duration::from_secs(60));
        let fresh = left(parent.path(), "abc125");
        std::fs::remove_file(fresh.join(LOCK)).unwrap();
        let next = PrivateFolder::new(parent.path()).unwrap();
        assert!(!dead.exists() && !broken.exists());
        assert!(fresh.exists() && alive.work().is_dir() && next.work().is_dir());
    }

    #[test]
    fn folders_of_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let notes = left(parent.path(), "notes1");
        write(notes.join("diary.txt"), "").unwrap();
        let mut stay = vec![notes];
        for name in [
            "claude-reviewer-longer-name",
            "claude-reviewer-",
            "other-abc123",
        ] {
            let root = parent.path().join(name);
            folder(&root).unwrap();
            write(root.join(LOCK), "").unwrap();
            stay.push(root);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt as _, symlink};
            let open = left(parent.path(), "open01");
            std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).unwrap();
            let target = parent.path().join("target");
            create_dir_all(target.join("tree")).unwrap();
            write(target.join(LOCK), "").unwrap();
            let link = parent.path().join(format!("{PREFIX}link01"));
            symlink(&target, &link).unwrap();
            stay.extend([open, target.join("tree"), link]);
        }
        drop(PrivateFolder::new(parent.path()).unwrap());
        assert!(
            stay.iter().all(|path| path.symlink_metadata().is_ok()),
            "{stay:?}"
        );
    }
}
