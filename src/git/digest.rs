//! Computes a digest of the index or the worktree, to detect changes between two reads.

use super::files::Bytes;
use super::load::Reader;
use super::{State, staged};
use crate::diff::RepoPath;
use crate::error::{Error, Result};
use crate::hex;
use sha2::Digest as _;

/// Bytes of files that are read for a digest, at most.
const MAX: usize = 64 << 20;

impl Reader<'_> {
    /// Returns a digest that changes whenever the content of the index or the worktree does. For
    /// the worktree it covers the tracked files and the given new files.
    ///
    /// # Errors
    /// Unmerged paths, a file that cannot be read, or too many bytes.
    pub fn digest(&mut self, state: &State, new: &[RepoPath]) -> Result<String> {
        let mut hash = sha2::Sha256::new();
        let index = self.owner().index()?;
        let backing = index.path_backing();
        for e in index.entries() {
            if e.stage_raw() != 0 {
                return Err(staged::unmerged(&[e.path_in(backing).to_vec()]));
            }
            add_field(&mut hash, e.path_in(backing));
            add_field(&mut hash, e.id.as_bytes());
            add_field(&mut hash, &e.mode.bits().to_le_bytes());
        }
        if *state == State::Worktree {
            let changed = self.owner().unstaged(false)?;
            let mut paths: Vec<_> = changed
                .entries
                .iter()
                .map(|e| e.path().clone())
                .chain(new.iter().cloned())
                .collect();
            paths.sort_unstable();
            paths.dedup();
            let mut left = MAX;
            for path in paths {
                add_field(&mut hash, path.as_bytes());
                let content = self.worktree_files()?.read(path.as_bytes(), left);
                match content
                    .map_err(|e| Error::incomplete(format!("cannot read {path:?}")).caused_by(&e))?
                {
                    Some(Bytes::All(bytes)) => {
                        left -= bytes.len();
                        add_field(&mut hash, &bytes);
                    }
                    Some(Bytes::TooMany) => {
                        return Err(Error::incomplete(
                            "the worktree has too many changes to hash",
                        ));
                    }
                    None => add_field(&mut hash, b"no file"),
                }
            }
        }
        Ok(hex::encode(&hash.finalize()[..20]))
    }
}

/// Adds a field to a digest, after its length: the concatenation of two fields has one meaning.
fn add_field(hash: &mut sha2::Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// Returns the SHA-1 of bytes in hexadecimal digits, for identifiers of other systems. It must not
/// be used to compare contents. Returns `None` if a collision attack is detected.
pub fn sha1_hex(bytes: &[u8]) -> Option<String> {
    let mut hash = gix::hash::hasher(gix::hash::Kind::Sha1);
    hash.update(bytes);
    Some(hash.try_finalize().ok()?.to_string())
}
