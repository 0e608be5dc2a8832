//! The worktree that replacements are written into, and the files that must stay unmodified: links,
//! files with a conflict, files with unsaved changes in an editor.

use super::super::reviewed::text_lines;
use crate::diff::RepoPath;
use crate::error::Result;
use crate::git::Repo;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a file that is changed, at most.
const MAX_FILE: u64 = 64 << 20;

/// Number of `<` or `>` in a conflict marker, at least: git's default. `conflict-marker-size` can
/// set a larger number.
const MARKER: usize = 7;

/// Offset and value of the flag for unsaved changes in a Vim swap file: `b0_dirty` in Vim's
/// memline.c.
const VIM_DIRTY: (usize, u8) = (1007, 0x55);

/// The worktree that replacements are written into.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) top: PathBuf,
    /// Paths that git lists as unmerged.
    unmerged: BTreeSet<RepoPath>,
}

impl Target {
    /// Reads the state of the worktree at `top`.
    ///
    /// # Errors
    /// Incomplete: the index cannot be read.
    pub fn of(repo: &Repo, top: &Path) -> Result<Self> {
        Ok(Self {
            top: top.to_owned(),
            unmerged: repo.unmerged()?,
        })
    }

    /// Rejects a file with a conflict, or with unsaved changes in an editor.
    pub(super) fn refuse_busy(
        &self,
        path: &RepoPath,
        place: &Path,
        bytes: &[u8],
    ) -> std::result::Result<(), String> {
        if self.unmerged.contains(path) || has_conflict(bytes) {
            return Err(format!("{} has an unresolved conflict", path.to_wire()));
        }
        match is_unsaved(place) {
            true => Err(format!(
                "an editor has unsaved changes of {}",
                path.to_wire()
            )),
            false => Ok(()),
        }
    }
}

/// Returns the path for a new file: nothing exists there, and no parent folder is a link.
pub(super) fn free_place(top: &Path, path: &RepoPath) -> std::result::Result<PathBuf, String> {
    let shown = path.to_wire();
    let relative =
        std::str::from_utf8(path.as_bytes()).map_err(|_| format!("{shown} is not UTF-8"))?;
    let mut place = top.to_owned();
    let mut parts = Path::new(relative).components().peekable();
    while let Some(part) = parts.next() {
        let std::path::Component::Normal(name) = part else {
            return Err(format!("{shown} is not a path of the worktree"));
        };
        place.push(name);
        match std::fs::symlink_metadata(&place) {
            Ok(meta) if parts.peek().is_some() && meta.is_dir() => {}
            Ok(_) => return Err(format!("something is in the place of the new file {shown}")),
            Err(_) => {}
        }
    }
    Ok(place)
}

/// Returns the file of a path: a regular file in the worktree, with no link among its parent
/// folders.
pub(super) fn place(top: &Path, path: &RepoPath) -> std::result::Result<PathBuf, String> {
    let shown = path.to_wire();
    let relative =
        std::str::from_utf8(path.as_bytes()).map_err(|_| format!("{shown} is not UTF-8"))?;
    let mut place = top.to_owned();
    for part in Path::new(relative).components() {
        let std::path::Component::Normal(name) = part else {
            return Err(format!("{shown} is not a path of the worktree"));
        };
        place.push(name);
        let meta = std::fs::symlink_metadata(&place)
            .map_err(|_| format!("{shown} is not in the worktree"))?;
        if meta.file_type().is_symlink() {
            return Err(format!("{shown} is a symbolic link, or behind one"));
        }
    }
    let meta =
        std::fs::symlink_metadata(&place).map_err(|_| format!("{shown} is not in the worktree"))?;
    if meta.is_file() && meta.len() <= MAX_FILE {
        Ok(place)
    } else {
        Err(format!("{shown} is not a regular file"))
    }
}

/// Reads a file. The error is the reason for people.
pub(super) fn read(place: &Path) -> std::result::Result<Vec<u8>, String> {
    std::fs::read(place).map_err(|e| format!("{} cannot be read: {e}", place.display()))
}

/// Returns true if a text has the markers of an unresolved conflict.
fn has_conflict(text: &[u8]) -> bool {
    text_lines(text).any(is_marker)
}

/// Returns true for the first or last line that git writes around a conflict.
fn is_marker(line: &[u8]) -> bool {
    let Some(first @ (b'<' | b'>')) = line.first() else {
        return false;
    };
    let size = line.iter().take_while(|b| *b == first).count();
    size >= MARKER && line.get(size).is_none_or(|b| *b == b' ')
}

/// Returns true if an editor has unsaved changes of a file: Emacs has a lock file then, Vim a flag
/// in its swap file.
fn is_unsaved(place: &Path) -> bool {
    let (Some(folder), Some(name)) = (place.parent(), place.file_name()) else {
        return false;
    };
    let lock = folder.join(affixed(".#", name, ""));
    let is_locked = std::fs::symlink_metadata(lock).is_ok_and(|m| m.file_type().is_symlink());
    let mut head = [0; VIM_DIRTY.0 + 1];
    let swap = std::fs::File::open(folder.join(affixed(".", name, ".swp")));
    let is_swap =
        swap.is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head.starts_with(b"b0");
    is_locked || is_swap && head[VIM_DIRTY.0] == VIM_DIRTY.1
}

/// Returns the name of a file with a prefix and a suffix.
fn affixed(prefix: &str, name: &OsStr, suffix: &str) -> OsString {
    let mut out = OsString::from(prefix);
    out.push(name);
    out.push(suffix);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_of_every_size_are_a_conflict() {
        for line in [
            "<<<<<<< HEAD",
            ">>>>>>> topic",
            "<<<<<<<<<<<<< HEAD",
            ">>>>>>>>",
            "<<<<<<<",
        ] {
            assert!(
                has_conflict(format!("a\n{line}\r\nb\n").as_bytes()),
                "{line}"
            );
        }
        for line in [
            "=======",
            "<<<<<< a",
            ">>> x",
            " <<<<<<< a",
            "<<<<<<<a",
            "<<<<<>>> a",
            "",
        ] {
            assert!(
                !has_conflict(format!("a\n{line}\nb\n").as_bytes()),
                "{line}"
            );
        }
    }
}
