//! Opens policy files: only regular files of a bounded size, and never blocking.

use super::{FILE_NAME, MAX_BYTES, Pins, PolicyFile, ProjectFile, ProjectOrigin};
use crate::bounded;
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

impl PolicyFile {
    /// Returns the path of the user's file, whether it exists or not; `None` without a home folder.
    pub fn user_path(env: &Env) -> Option<PathBuf> {
        env.config_home()
            .map(|c| c.join("claude-reviewer").join("config.toml"))
    }

    /// Reads the user's file, if it exists. A symbolic link is allowed, because the user owns the
    /// file.
    ///
    /// # Errors
    ///
    /// Usage: it cannot be read, is not a regular file, or is too large.
    pub fn user(env: &Env) -> Result<Option<Self>> {
        let Some(path) = Self::user_path(env) else {
            return Ok(None);
        };
        Ok(read(&path)?.map(|bytes| Self {
            name: shown(&path, env),
            bytes,
        }))
    }
}

impl ProjectFile {
    /// Reads the project's file at the top of a worktree, if it exists.
    ///
    /// A symbolic link is an error, even inside the repository. A change to the link's target would
    /// change the policy but not the file, and a commit's tree contains only the link.
    ///
    /// # Errors
    ///
    /// Usage: it cannot be read, is not a regular file, or is too large. `trusted_at`: the worktree
    /// for which trust is looked up; another one if `top` is a private copy.
    pub fn in_worktree(top: &Path, trusted_at: &Path, env: &Env) -> Result<Option<Self>> {
        let path = top.join(FILE_NAME);
        match std::fs::symlink_metadata(&path) {
            Ok(m) if m.file_type().is_symlink() => return Err(Self::linked(FILE_NAME)),
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(unreadable(&path, &e)),
        }
        let Some(bytes) = read(&path)? else {
            return Ok(None);
        };
        Ok(Some(Self::of(
            ProjectOrigin::Worktree,
            bytes,
            trusted_at,
            env,
        )))
    }

    /// Returns the error for a project's file that is a symbolic link.
    pub fn linked(place: &str) -> Error {
        Error::usage(format!("policy file {place} is a symbolic link"))
            .hint_person("replace the link with a regular file, or name the target: --config FILE")
            .hint_agent("ask the user to replace the link with a regular file")
    }

    /// Returns the project's file at HEAD. `top` is the worktree for which trust is looked up.
    pub fn at_head(bytes: Vec<u8>, top: &Path, env: &Env) -> Self {
        Self::of(ProjectOrigin::Head, bytes, top, env)
    }

    /// Returns the project's file at a base commit. It is trusted, because it was merged.
    pub fn at_base(base: ObjectId, bytes: Vec<u8>) -> Self {
        let name = format!("{FILE_NAME} at {}", base.short());
        Self {
            from: ProjectOrigin::Base(base),
            file: PolicyFile { name, bytes },
            trusted: true,
        }
    }

    /// Reads the file that `--config` names, relative to the folder `dir`. It is trusted.
    ///
    /// # Errors
    ///
    /// Usage: it does not exist, cannot be read, is not a regular file, or is too large.
    pub fn from_flag(path: &Path, dir: &Path) -> Result<Self> {
        let full = dir.join(path);
        let name = path.display().to_string();
        match read(&full)? {
            Some(bytes) => Ok(Self {
                from: ProjectOrigin::Flag,
                file: PolicyFile { name, bytes },
                trusted: true,
            }),
            None => Err(Error::usage(format!("policy file {name} not found"))),
        }
    }

    fn of(from: ProjectOrigin, bytes: Vec<u8>, top: &Path, env: &Env) -> Self {
        let trusted = Pins::of(env).is_some_and(|pins| pins.holds(top, &bytes));
        Self {
            from,
            file: PolicyFile {
                name: FILE_NAME.to_owned(),
                bytes,
            },
            trusted,
        }
    }
}

/// Reads a policy file; `None` if it does not exist.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    // Opening a FIFO blocks until its other end is opened, and opening a device can have any side
    // effect.
    match std::fs::metadata(path) {
        Ok(m) if !m.is_file() => return Err(irregular(path)),
        Ok(m) if m.len() > MAX_BYTES as u64 => return Err(too_large(path)),
        Ok(_) => {}
        // A dangling link is an error, not a missing file.
        Err(e) if e.kind() == ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => {
            return Ok(None);
        }
        Err(e) if e.kind() == ErrorKind::NotADirectory => return Ok(None),
        Err(e) => return Err(unreadable(path, &e)),
    }
    let file = open(path).map_err(|e| unreadable(path, &e))?;
    // Check the open file again: the path may point to another file since the first check.
    if !file.metadata().map_err(|e| unreadable(path, &e))?.is_file() {
        return Err(irregular(path));
    }
    let bytes = bounded::whole(file, MAX_BYTES as u64).map_err(|e| unreadable(path, &e))?;
    bytes.map(Some).ok_or_else(|| too_large(path))
}

#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    std::fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.cast_signed())
        .open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::File::open(path)
}

/// Returns a path for messages, with `~` for the home folder.
fn shown(path: &Path, env: &Env) -> String {
    let home = env
        .os("HOME")
        .map(PathBuf::from)
        .filter(|h| h.is_absolute());
    match home.and_then(|h| path.strip_prefix(h).ok().map(Path::to_owned)) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

fn irregular(path: &Path) -> Error {
    Error::usage(format!(
        "policy file {} is not a regular file",
        path.display()
    ))
}
fn too_large(path: &Path) -> Error {
    Error::usage(format!(
        "policy file {} is larger than 1 MiB",
        path.display()
    ))
}
fn unreadable(path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("cannot read policy file {}", path.display())).caused_by(e)
}
