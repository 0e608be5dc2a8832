//! A private copy of the worktree, in which a fix is verified. The user's worktree is only read.
//!
//! The copy has the tracked files and the untracked files that are not ignored, with all bytes and
//! modes. It has no repository of its own: programs with [`Copy::env`] use it as the worktree of
//! the user's repository.

use crate::ai::desk::{PrivateFolder, temporary};
use crate::diff::RepoPath;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::{Repo, State};
use crate::stop::Stop;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Files of a copy, at most.
const MOST_FILES: usize = 100_000;
/// Bytes of a copy, at most.
const MOST_BYTES: u64 = 2 << 30;

/// A private copy of a worktree. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Copy {
    desk: PrivateFolder,
    files: BTreeSet<RepoPath>,
    /// Untracked files among them.
    new: Vec<RepoPath>,
    env: Env,
    parent: PathBuf,
}

impl Copy {
    /// Copies the worktree of a repository.
    ///
    /// # Errors
    /// Usage: no worktree, unmerged paths, too many files. Incomplete: a file cannot be copied, or
    /// the run was interrupted.
    pub(super) fn of_worktree(repo: &Repo, env: &Env, stop: &Stop) -> Result<Self> {
        let top = repo
            .worktree()
            .ok_or_else(|| Error::usage("the repository has no worktree"))?;
        let (tracked, is_cut) = repo.reader().files(&State::Worktree, MOST_FILES)?;
        let untracked = repo
            .unstaged(true)?
            .entries
            .into_iter()
            .filter(|e| e.old.is_none());
        let new: Vec<RepoPath> = untracked
            .filter_map(|e| e.new.map(|side| side.path))
            .collect();
        if is_cut || tracked.len() + new.len() > MOST_FILES {
            let error = Error::usage(format!(
                "the worktree has more than {MOST_FILES} files, too many for a fix"
            ));
            return Err(error
                .hint_person("fix the finding by hand: claude-reviewer findings")
                .hint_agent("edit the files, then call verify_fix"));
        }
        let parent = temporary(env, Some(top))
            .ok_or_else(|| Error::incomplete("no temporary directory outside of the repository"))?;
        let files: BTreeSet<RepoPath> = tracked.into_iter().chain(new.iter().cloned()).collect();
        let mut copy = Self::fill(top, &parent, &files, stop)?;
        copy.env = environment(env, repo, copy.desk.work(), top);
        copy.new = new;
        Ok(copy)
    }

    /// Creates another copy with the same files, to be modified.
    ///
    /// # Errors
    /// Incomplete: a file cannot be copied, or the run was interrupted.
    pub(super) fn again(&self, stop: &Stop) -> Result<Self> {
        let mut copy = Self::fill(self.top(), &self.parent, &self.files, stop)?;
        copy.env = self
            .env
            .with([("GIT_WORK_TREE", copy.top().as_os_str().to_owned())]);
        copy.new.clone_from(&self.new);
        Ok(copy)
    }

    /// Copies files to a new folder.
    fn fill(from: &Path, parent: &Path, files: &BTreeSet<RepoPath>, stop: &Stop) -> Result<Self> {
        let desk = PrivateFolder::new(parent).map_err(|e| not_copied(&e))?;
        let mut copied = BTreeSet::new();
        let mut folders = BTreeSet::from([PathBuf::new()]);
        let mut bytes = 0;
        for path in files {
            if stop.signal().is_some() {
                return Err(Error::incomplete("the run was ended"));
            }
            let Some(relative) = native(path) else {
                continue;
            };
            let (source, target) = (from.join(&relative), desk.work().join(&relative));
            // A file that was deleted meanwhile, or replaced by a link or a folder.
            let Some(meta) = plain(from, &relative) else {
                continue;
            };
            bytes += meta.len();
            if bytes > MOST_BYTES {
                return Err(Error::usage(format!(
                    "the worktree has more than {} GiB, too much for a fix",
                    MOST_BYTES >> 30
                )));
            }
            if let Some(folder) = target.parent() {
                std::fs::create_dir_all(folder).map_err(|e| not_copied(&e))?;
            }
            std::fs::copy(&source, &target).map_err(|e| not_copied(&e))?;
            copied.insert(path.clone());
            folders.extend(relative.ancestors().skip(1).map(Path::to_owned));
        }
        for folder in &folders {
            copy_links(&from.join(folder), &desk.work().join(folder))
                .map_err(|e| not_copied(&e))?;
        }
        Ok(Self {
            desk,
            files: copied,
            new: Vec::new(),
            env: Env::default(),
            parent: parent.to_owned(),
        })
    }

    /// Returns the top of the copy.
    pub(super) fn top(&self) -> &Path {
        self.desk.work()
    }

    /// Returns a folder for temporary files.
    pub(super) fn scratch(&self) -> &Path {
        self.desk.scratch()
    }

    /// Returns the environment in which the copy is the worktree of the repository.
    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Returns all files.
    pub(super) fn files(&self) -> &BTreeSet<RepoPath> {
        &self.files
    }

    /// Returns the untracked files.
    pub(super) fn new_files(&self) -> &[RepoPath] {
        &self.new
    }

    /// Reads a file, or returns `None` if the copy does not have it.
    ///
    /// # Errors
    /// Incomplete: it cannot be read.
    pub(super) fn read(&self, path: &RepoPath) -> Result<Option<Vec<u8>>> {
        let Some(relative) = native(path).filter(|_| self.files.contains(path)) else {
            return Ok(None);
        };
        let bytes = std::fs::read(self.top().join(relative)).map_err(|e| {
            Error::incomplete(format!("{} cannot be read", path.to_wire())).caused_by(&e)
        })?;
        Ok(Some(bytes))
    }

    /// Writes a file. It replaces a regular file or creates one; no parent folder is a link.
    ///
    /// # Errors
    /// Incomplete: the path is not valid, or the file cannot be written.
    pub(super) fn write(&mut self, path: &RepoPath, bytes: &[u8]) -> Result<()> {
        let relative = native(path).ok_or_else(|| not_of_copy(path))?;
        let target = self.top().join(&relative);
        if !self.files.contains(path) {
            let folder = relative.parent().unwrap_or(Path::new(""));
            if has_link(self.top(), folder) || target.symlink_metadata().is_ok() {
                return Err(not_of_copy(path));
            }
            std::fs::create_dir_all(self.top().join(folder)).map_err(|e| not_written(path, &e))?;
            self.new.push(path.clone());
            self.files.insert(path.clone());
        } else if plain(self.top(), &relative).is_none() {
            return Err(not_of_copy(path));
        }
        std::fs::write(target, bytes).map_err(|e| not_written(path, &e))
    }
}

/// Returns the error for a worktree that cannot be copied.
fn not_copied(e: &io::Error) -> Error {
    Error::incomplete("the worktree cannot be copied").caused_by(e)
}

/// Returns the error for a file that cannot be written.
fn not_written(path: &RepoPath, e: &io::Error) -> Error {
    Error::incomplete(format!("{} cannot be written", path.to_wire())).caused_by(e)
}

/// Returns the error for a path that a copy cannot have.
fn not_of_copy(path: &RepoPath) -> Error {
    Error::incomplete(format!("{} is not a path of the copy", path.to_wire()))
}

/// Returns the environment in which a folder is the worktree of a repository. Programs in the
/// user's worktree are removed from PATH.
fn environment(env: &Env, repo: &Repo, copy: &Path, top: &Path) -> Env {
    let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
    let path: Vec<PathBuf> = env
        .path()
        .into_iter()
        .filter(|dir| {
            !dir.canonicalize()
                .unwrap_or_else(|_| dir.clone())
                .starts_with(&top)
        })
        .collect();
    let git_dir = repo
        .git_dir()
        .canonicalize()
        .unwrap_or_else(|_| repo.git_dir().to_owned());
    let values: [(&'static str, OsString); 2] =
        [("GIT_DIR", git_dir.into()), ("GIT_WORK_TREE", copy.into())];
    env.with_path(&path).with(values)
}

/// Copies the links of a folder, and creates an empty folder for each submodule.
fn copy_links(from: &Path, to: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if target.symlink_metadata().is_ok() {
            continue;
        }
        if kind.is_dir()
            && entry.file_name() != ".git"
            && entry.path().join(".git").symlink_metadata().is_ok()
        {
            std::fs::create_dir(&target)?;
        }
        #[cfg(unix)]
        if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(entry.path())?, &target)?;
        }
    }
    Ok(())
}

/// Returns the metadata of a regular file without links in its path.
fn plain(top: &Path, relative: &Path) -> Option<std::fs::Metadata> {
    let meta = top.join(relative).symlink_metadata().ok()?;
    let folder = relative.parent().unwrap_or(Path::new(""));
    (meta.is_file() && !has_link(top, folder)).then_some(meta)
}

/// Returns true if a component of a path below a folder is not a folder.
fn has_link(top: &Path, relative: &Path) -> bool {
    let mut place = top.to_owned();
    relative.components().any(|part| {
        place.push(part);
        place.symlink_metadata().is_ok_and(|m| !m.is_dir())
    })
}

/// Converts a path of the repository to a path of this system, if it is valid below a folder.
pub(super) fn native(path: &RepoPath) -> Option<PathBuf> {
    let relative = PathBuf::from(std::str::from_utf8(path.as_bytes()).ok()?);
    let is_valid = !path.as_bytes().is_empty() && relative.components().all(is_plain);
    is_valid.then_some(relative)
}

/// Returns true for a file name that is not the name of a repository.
fn is_plain(part: std::path::Component<'_>) -> bool {
    match part {
        std::path::Component::Normal(name) => !name.eq_ignore_ascii_case(".git"),
        _ => false,
    }
}
