//! Writes the shared file of decisions in a worktree, one process at a time.

use super::changed_file;
use crate::disposition::{DecisionEntry, SHARED};
use crate::error::{Error, Result};
use crate::git::Repo;
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Lock file for replacing the shared file; in the git folder.
const LOCK: &str = "claude-reviewer.lock";

/// Time to wait for another process that replaces the file.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pause between two attempts to take the lock.
const PAUSE: Duration = Duration::from_millis(5);

/// Adds entries to the shared file of a worktree, and creates the file if it is missing.
pub(super) fn share(
    repo: &Repo,
    top: &Path,
    entries: impl Iterator<Item = DecisionEntry>,
) -> Result<()> {
    rewrite(repo, top, |name, before| {
        Ok(changed_file(name, before, entries)?.render().into_bytes())
    })
}

/// Replaces the shared file of a worktree. `change` gets its name and content, and returns the new
/// content. A lock serializes processes: otherwise the second writer would remove the entries of
/// the first.
pub(in crate::rounds) fn rewrite(
    repo: &Repo,
    top: &Path,
    change: impl FnOnce(&str, Option<Vec<u8>>) -> Result<Vec<u8>>,
) -> Result<()> {
    let _lock = lock(repo)?;
    let path = top.join(SHARED);
    let folder = path.parent().unwrap_or(top);
    for (place, name) in [
        (
            folder,
            SHARED.rsplit_once('/').map_or(SHARED, |(folder, _)| folder),
        ),
        (&*path, SHARED),
    ] {
        let why = match std::fs::symlink_metadata(place) {
            Ok(meta) if meta.is_symlink() => "is a symbolic link, or in one",
            // Opening a named pipe would block.
            Ok(meta) if place == path && !meta.is_file() => "is not a regular file",
            _ => continue,
        };
        return Err(Error::usage(format!("{SHARED} {why}"))
            .hint(format!("move it away: mv {name} {name}.old")));
    }
    let before = match std::fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(not_written(&e)),
    };
    let after = change(SHARED, before)?;
    replace(&path, folder, &after).map_err(|e| not_written(&e))
}

/// Returns the error for a shared file that cannot be read or written.
fn not_written(e: &std::io::Error) -> Error {
    Error::incomplete(format!("{SHARED} cannot be written")).caused_by(e)
}

/// Replaces a file atomically, and creates its folder if it is missing.
fn replace(path: &Path, folder: &Path, content: &[u8]) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new();
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = file.tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Takes the lock of the shared file. The system releases it when the file is closed or the process
/// ends.
fn lock(repo: &Repo) -> Result<File> {
    let path = repo.git_dir().join(LOCK);
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(|e| not_locked(&path, &e))?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if started.elapsed() < PATIENCE => {
                std::thread::sleep(PAUSE);
            }
            Err(TryLockError::WouldBlock) => {
                return Err(Error::incomplete(format!(
                    "{SHARED} is being written by another process"
                ))
                .hint("run the command again when the other process has ended"));
            }
            Err(TryLockError::Error(e)) => return Err(not_locked(&path, &e)),
        }
    }
}

/// Returns the error for a lock file that cannot be opened or locked.
fn not_locked(path: &Path, e: &std::io::Error) -> Error {
    Error::incomplete(format!("cannot lock {}", path.display())).caused_by(e)
}
