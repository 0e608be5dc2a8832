//! The project files that this user trusts: `policy trust`.
//!
//! Each pin is a small file under `~/.config/claude-reviewer/trusted/` (mode 0600 in folders of
//! mode 0700). Its name has two hashes: of the worktree's path and of the file's content. Trust
//! therefore ends with the first changed byte and does not apply to another repository. Two
//! processes that pin at the same time cannot lose a pin.

use crate::env::Env;
use crate::error::{Error, Result};
use crate::hex;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The pins of a user.
#[derive(Clone, Debug)]
pub struct Pins {
    dir: PathBuf,
}

/// A trusted file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pin {
    /// The path of the worktree, for display.
    pub worktree: String,
    /// SHA-256 of the content, hexadecimal.
    pub content: String,
}

impl Pins {
    /// Returns the user's pins; `None` without a home folder.
    pub fn of(env: &Env) -> Option<Self> {
        env.config_home().map(|c| Self {
            dir: c.join("claude-reviewer").join("trusted"),
        })
    }

    /// Returns true if exactly this content is trusted in a worktree.
    pub fn holds(&self, top: &Path, content: &[u8]) -> bool {
        // Most users never trust a file, and hashing takes longer than the rest of reading a
        // policy.
        if !self.dir.is_dir() {
            return false;
        }
        // Do not follow symbolic links: this program writes pins as regular files.
        std::fs::symlink_metadata(self.path(top, content)).is_ok_and(|m| m.is_file())
    }

    /// Trusts a content in a worktree.
    ///
    /// # Errors
    ///
    /// Usage: the folder cannot be written.
    pub fn add(&self, top: &Path, content: &[u8]) -> Result<()> {
        self.write(top, content).map_err(|e| {
            Error::usage(format!("cannot store trust in {}", self.dir.display())).caused_by(&e)
        })
    }

    /// Writes a pin. The temporary file has mode 0600 from the start, and is complete before it is
    /// renamed.
    fn write(&self, top: &Path, content: &[u8]) -> std::io::Result<()> {
        private_dir(&self.dir)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.dir)?;
        file.write_all(canonical(top).display().to_string().as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(self.path(top, content)).map_err(|e| e.error)?;
        Ok(())
    }

    /// Removes all pins of a worktree and returns their number.
    ///
    /// # Errors
    ///
    /// Usage: a pin cannot be removed.
    pub fn remove(&self, top: &Path) -> Result<usize> {
        let prefix = format!("{}-", place(top));
        let mut removed = 0;
        for name in self.names()? {
            if name.starts_with(&prefix) {
                std::fs::remove_file(self.dir.join(&name)).map_err(|e| {
                    Error::usage(format!("cannot remove trust from {}", self.dir.display()))
                        .caused_by(&e)
                })?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Lists all pins, sorted by worktree.
    ///
    /// # Errors
    ///
    /// Usage: the folder cannot be read.
    pub fn list(&self) -> Result<Vec<Pin>> {
        let mut pins = Vec::new();
        for name in self.names()? {
            let Some((_, content)) = name.split_once('-') else {
                continue;
            };
            let worktree = super::read::read(&self.dir.join(&name))?.unwrap_or_default();
            let worktree = String::from_utf8_lossy(&worktree).into_owned();
            pins.push(Pin {
                worktree,
                content: content.to_owned(),
            });
        }
        pins.sort();
        Ok(pins)
    }

    fn names(&self) -> Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.unread(&e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            if let Some(name) = entry.map_err(|e| self.unread(&e))?.file_name().to_str() {
                let pin = name.len() == 64 + 1 + 64 && name.as_bytes()[64] == b'-';
                if pin && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
                    names.push(name.to_owned());
                }
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the error for pins that cannot be read.
    fn unread(&self, cause: &std::io::Error) -> Error {
        Error::usage(format!("cannot read trust from {}", self.dir.display())).caused_by(cause)
    }

    fn path(&self, top: &Path, content: &[u8]) -> PathBuf {
        self.dir.join(format!("{}-{}", place(top), sha256(content)))
    }
}

/// Returns the hash of the path of a worktree.
fn place(top: &Path) -> String {
    sha256(canonical(top).as_os_str().as_encoded_bytes())
}

fn canonical(top: &Path) -> PathBuf {
    std::fs::canonicalize(top).unwrap_or_else(|_| top.to_owned())
}

/// Returns the SHA-256 of bytes, hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

#[cfg(unix)]
fn private_dir(dir: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
}

#[cfg(not(unix))]
fn private_dir(dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)
}
