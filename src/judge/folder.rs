//! The folder of the reports of a judgement: inside the root, with no link that leads out.
//!
//! Each folder of the path is opened from its parent, without following links, so that a folder or
//! link that is swapped meanwhile cannot redirect the path. A report replaces the earlier one
//! atomically.

use super::{PAGE, RECORD};
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, Mode, OFlags, fsync, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

/// Names of the path, at most.
const DEEPEST: usize = 32;

/// An open folder.
#[derive(Debug)]
pub(super) struct ReportFolder {
    fd: OwnedFd,
    /// Path relative to the root; empty for the root itself.
    path: String,
}

/// The folder names from the root to the reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way(Vec<String>);

impl Way {
    /// Parses the path of the report folder: relative to the root, or absolute and below it.
    ///
    /// # Errors
    /// Usage: it leads out of the root, into the folders of git or of the store, or is not UTF-8.
    pub(super) fn parse(named: &Path, root: &Path) -> Result<Self> {
        let real = root.canonicalize();
        let inside = match named.is_absolute() {
            true => named
                .strip_prefix(root)
                .ok()
                .or_else(|| named.strip_prefix(real.as_deref().ok()?).ok()),
            false => Some(named),
        };
        let Some(inside) = inside else {
            return Err(refused(named, "outside of the root"));
        };
        let mut names = Vec::new();
        for component in inside.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => match name.to_str() {
                    Some(name) if name.chars().any(char::is_control) => {
                        return Err(refused(named, "its name is not valid UTF-8"));
                    }
                    Some(name) => names.push(name.to_owned()),
                    None => return Err(refused(named, "its name is not valid UTF-8")),
                },
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(refused(named, "it may lead out of the root"));
                }
            }
        }
        if names
            .iter()
            .any(|n| n.eq_ignore_ascii_case(".git") || n.eq_ignore_ascii_case(".reviews"))
        {
            return Err(refused(named, "it belongs to git or to the store"));
        }
        match names.len() > DEEPEST {
            true => Err(refused(named, "it is too deep")),
            false => Ok(Self(names)),
        }
    }

    /// Returns the path of a file in the folder, relative to the root.
    pub(super) fn file(&self, name: &str) -> String {
        self.0
            .iter()
            .map(String::as_str)
            .chain([name])
            .collect::<Vec<_>>()
            .join("/")
    }

    /// Opens the folder, and creates missing parts. A folder that is created here gets a
    /// `.gitignore`, so that git ignores the reports. An existing folder is left as it is.
    ///
    /// # Errors
    /// Usage: a part of the path is a link or not a folder. Incomplete: it cannot be created.
    pub(super) fn make(&self, root: &Path) -> Result<ReportFolder> {
        let made = self.open(root, true);
        let (folder, is_new) = made.map_err(|(name, e)| {
            let error = match e {
                Errno::LOOP | Errno::NOTDIR => Error::usage(format!(
                    "report_dir: {name} is a link or no folder; reports are not written through it"
                )),
                e => Error::incomplete(format!("report_dir: {name} cannot be made: {e}")),
            };
            error.hint("name another folder inside the root")
        })?;
        if is_new {
            folder.put(".gitignore", &ignored())?;
        }
        Ok(folder)
    }

    /// Opens the folder if it exists.
    pub(super) fn find(&self, root: &Path) -> Option<ReportFolder> {
        Some(self.open(root, false).ok()?.0)
    }

    /// Opens the folder; the flag is true if it was created.
    fn open(
        &self,
        root: &Path,
        make: bool,
    ) -> std::result::Result<(ReportFolder, bool), (String, Errno)> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut fd = rustix::fs::open(root, flags, Mode::empty())
            .map_err(|e| (root.display().to_string(), e))?;
        let mut is_new = false;
        for (i, name) in self.0.iter().enumerate() {
            if make {
                match mkdirat(&fd, name.as_str(), Mode::from_raw_mode(0o777)) {
                    Ok(()) => is_new = true,
                    Err(Errno::EXIST) => is_new = false,
                    Err(e) => return Err((self.start(i), e)),
                }
            }
            fd = openat(&fd, name.as_str(), flags | OFlags::NOFOLLOW, Mode::empty())
                .map_err(|e| (self.start(i), e))?;
        }
        Ok((
            ReportFolder {
                fd,
                path: self.0.join("/"),
            },
            is_new,
        ))
    }

    /// Returns the path up to a name of it.
    fn start(&self, last: usize) -> String {
        self.0[..=last].join("/")
    }
}

/// Returns the error about a path that cannot be the report folder.
fn refused(named: &Path, why: &str) -> Error {
    Error::usage(format!("report_dir {}: {why}", named.display()))
        .hint("name a folder inside the root: _handoff")
}

/// Returns the `.gitignore` of a folder that was created for the reports. It ignores only the
/// reports: other files in the folder count as part of the change.
fn ignored() -> String {
    let why = "Reports quote defects of a change, which a review would find again.";
    format!("# {why}\n/.gitignore\n/{PAGE}\n/.{PAGE}.*\n/{RECORD}\n/.{RECORD}.*\n")
}

impl ReportFolder {
    /// Returns true if an entry of this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Replaces a file atomically: a reader sees the complete old or new one.
    ///
    /// # Errors
    /// Incomplete: it cannot be written; nothing has changed then.
    pub(super) fn put(&self, name: &str, text: &str) -> Result<()> {
        let shown = if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.path)
        };
        let random: String = std::iter::repeat_with(fastrand::alphanumeric)
            .take(12)
            .collect();
        let temporary = format!(".{name}.{random}.tmp");
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(
            &self.fd,
            temporary.as_str(),
            flags,
            Mode::from_raw_mode(0o666),
        )
        .map_err(|e| unwritten(&shown, &e))?;
        let mut file = File::from(fd);
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        let placed = written.map_err(|e| unwritten(&shown, &e)).and_then(|()| {
            renameat(&self.fd, temporary.as_str(), &self.fd, name)
                .map_err(|e| unwritten(&shown, &e))
        });
        if placed.is_err() {
            // A temporary file that cannot be removed is harmless: no program reads it.
            let _ = unlinkat(&self.fd, temporary.as_str(), AtFlags::empty());
        }
        placed?;
        fsync(&self.fd).map_err(|e| unwritten(&shown, &e))
    }
}

/// Returns the error about a file that cannot be written.
fn unwritten(shown: &str, e: &dyn std::error::Error) -> Error {
    Error::incomplete(format!("{shown} cannot be written: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_way_stays_inside_of_the_root() {
        let root = Path::new("/no/such/root");
        for (named, way) in [
            ("_handoff", Some("_handoff/x")),
            ("./a//b/", Some("a/b/x")),
            (".", Some("x")),
            ("", Some("x")),
            ("/no/such/root/a", Some("a/x")),
            ("..", None),
            ("a/../../b", None),
            ("../../x", None),
            ("/etc", None),
            ("/no/such/root/../x", None),
            (".git", None),
            ("a/.GIT/hooks", None),
            (".reviews/sessions", None),
            ("a\nb", None),
        ] {
            let found = Way::parse(Path::new(named), root).ok().map(|w| w.file("x"));
            assert_eq!(found.as_deref(), way, "{named}");
        }
    }

    #[test]
    fn a_link_on_the_way_is_refused_and_a_link_in_the_place_of_a_report_is_replaced() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(other.path(), root.path().join("out")).unwrap();
        for named in ["out", "out/deeper"] {
            let way = Way::parse(Path::new(named), root.path()).unwrap();
            assert!(way.make(root.path()).is_err(), "{named}");
        }
        let victim = other.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let way = Way::parse(Path::new("a/b"), root.path()).unwrap();
        let folder = way.make(root.path()).unwrap();
        symlink(&victim, root.path().join("a/b/R.json")).unwrap();
        folder.put("R.json", "new").unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(
            std::fs::read_to_string(root.path().join("a/b/R.json")).unwrap(),
            "new"
        );
        let mut left: Vec<_> = std::fs::read_dir(root.path().join("a/b"))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".gitignore", "R.json"], "no temporary file is left");
        assert!(std::fs::read_dir(other.path()).unwrap().count() == 1);
    }
}
