//! The private folder of a fetch: a repository separate from the user's, removed after the fetch.

use crate::error::{Error, Result};
use crate::shell;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name of the folder in `.git` that contains the private ones.
const ROOT: &str = "claude-reviewer";
/// Random names that are tried, at most.
const TRIES: usize = 16;

/// A private folder. Removed on drop; if the process dies before, by the next fetch.
#[derive(Debug)]
pub(super) struct FetchFolder {
    root: PathBuf,
    dir: PathBuf,
    /// Path of a file that is locked while the process lives, however it ends.
    lock: PathBuf,
    _held: File,
}

impl FetchFolder {
    /// Creates a folder, and removes folders of processes that have ended.
    ///
    /// # Errors
    /// Incomplete: the folder cannot be written. Usage: another file has its path.
    pub(super) fn make(common_dir: &Path) -> Result<Self> {
        let root = common_dir.join(ROOT);
        match make_dir(&root) {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(not_writable(&root, &e));
            }
            _ => {}
        }
        // A link would let the repository choose where this program writes and removes files.
        if !fs::symlink_metadata(&root)
            .map_err(|e| not_writable(&root, &e))?
            .is_dir()
        {
            return Err(Error::usage(format!(
                "cannot fetch: {} is not a directory",
                root.display()
            ))
            .hint(format!(
                "remove it: rm {}",
                shell::quoted(&root.to_string_lossy())
            )));
        }
        sweep(&root);
        for _ in 0..TRIES {
            let name: String = (0..16)
                .map(|_| fastrand::alphanumeric().to_ascii_lowercase())
                .collect();
            let (dir, lock) = (root.join(&name), root.join(format!("{name}.lock")));
            let held = match File::options().write(true).create_new(true).open(&lock) {
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                // Another process removed the empty folder in between.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && make_dir(&root).is_ok() => {
                    continue;
                }
                held => held.map_err(|e| not_writable(&root, &e))?,
            };
            // Another process may have swept between the two calls and removed the file as stale.
            if held.try_lock().is_err() || !is_at(&held, &lock) {
                continue;
            }
            make_dir(&dir).map_err(|e| not_writable(&root, &e))?;
            return Ok(Self {
                root,
                dir,
                lock,
                _held: held,
            });
        }
        Err(Error::incomplete(format!(
            "cannot create a folder in {}",
            root.display()
        )))
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes a file.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let path = self.dir.join(name);
        write_with_folders(&path, content).map_err(|e| {
            Error::incomplete(format!("cannot write {}", path.display())).caused_by(&e)
        })
    }
}

/// Returns the error for a folder in which nothing can be written.
fn not_writable(root: &Path, e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot fetch: cannot write {}", root.display())).caused_by(e)
}

/// Writes a file, and creates the folders above it.
fn write_with_folders(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    File::create(path)?.write_all(content)
}

impl Drop for FetchFolder {
    fn drop(&mut self) {
        remove(&self.dir, &self.lock);
        // Fails if folders of other processes are in it.
        let _ = fs::remove_dir(&self.root);
    }
}

/// Removes the folders of dead processes.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for lock in entries
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == "lock"))
    {
        if !fs::symlink_metadata(&lock).is_ok_and(|m| m.is_file()) {
            continue;
        }
        let Ok(file) = File::options().write(true).open(&lock) else {
            continue;
        };
        if file.try_lock().is_ok() {
            remove(&lock.with_extension(""), &lock);
        }
    }
}

/// Removes the lock last: the next sweep finds a folder only by its lock.
fn remove(dir: &Path, lock: &Path) {
    let gone = fs::remove_dir_all(dir);
    if gone.is_ok() || !dir.exists() {
        let _ = fs::remove_file(lock);
    }
}

#[cfg(unix)]
fn make_dir(path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(path)
}

#[cfg(not(unix))]
fn make_dir(path: &Path) -> std::io::Result<()> {
    fs::create_dir(path)
}

/// Returns true if a path still leads to an open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    matches!(
        (file.metadata(), fs::symlink_metadata(path)),
        (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino())
    )
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(root: &Path) -> usize {
        fs::read_dir(root).map_or(0, Iterator::count)
    }

    #[test]
    fn a_place_is_gone_when_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let place = FetchFolder::make(dir.path()).unwrap();
        place.write("refs/a/b", b"x").unwrap();
        assert_eq!(names(&dir.path().join(ROOT)), 2);
        drop(place);
        assert!(!dir.path().join(ROOT).exists());
    }

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_a_living_one_has_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let living = FetchFolder::make(dir.path()).unwrap();
        let root = dir.path().join(ROOT);
        fs::create_dir_all(root.join("dead/refs")).unwrap();
        fs::write(root.join("dead.lock"), "").unwrap();
        let second = FetchFolder::make(dir.path()).unwrap();
        assert!(!root.join("dead").exists() && !root.join("dead.lock").exists());
        assert!(living.dir().exists() && second.dir().exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(other.path(), dir.path().join(ROOT)).unwrap();
        assert!(FetchFolder::make(dir.path()).is_err());
        assert_eq!(names(other.path()), 0);
    }
}
