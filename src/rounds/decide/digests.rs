//! Digests of decided contents, computed once for equal texts of a file.

use crate::disposition::{self, DecidedContent, Digest};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Digests that are computed together. Equal texts of a file share one, so that one comparison
/// matches all of them.
#[derive(Debug, Default)]
pub(in crate::rounds) struct Digests {
    known: HashMap<(Option<String>, Vec<u8>), Digest>,
}

impl Digests {
    /// Computes the digests of contents on all cores.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub(in crate::rounds) fn prepare(
        &mut self,
        contents: &[(Option<String>, &DecidedContent)],
    ) -> Result<()> {
        let keys: HashSet<(Option<String>, Vec<u8>)> = contents
            .iter()
            .map(|(path, content)| (path.clone(), content.text.clone()))
            .collect();
        let keys: Vec<_> = keys
            .into_iter()
            .filter(|key| !self.known.contains_key(key))
            .collect();
        let salts: Result<Vec<[u8; 16]>> = keys.iter().map(|_| salt()).collect();
        let texts: Vec<(&[u8], [u8; 16])> = keys
            .iter()
            .map(|(_, text)| text.as_slice())
            .zip(salts?)
            .collect();
        let digests = disposition::of_all(&texts);
        self.known.extend(keys.into_iter().zip(digests));
        Ok(())
    }

    /// Returns the digest of a content.
    ///
    /// # Errors
    /// Incomplete: the system has no random numbers.
    pub(in crate::rounds) fn of(
        &mut self,
        path: Option<String>,
        content: &DecidedContent,
    ) -> Result<Digest> {
        let key = (path, content.text.clone());
        if let Some(digest) = self.known.get(&key) {
            return Ok(digest.clone());
        }
        let digest = Digest::of(&content.text, salt()?);
        self.known.insert(key, digest.clone());
        Ok(digest)
    }
}

/// Returns random bytes for a digest, so that equal lines of two entries have different digests.
fn salt() -> Result<[u8; 16]> {
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).map_err(|e| Error::incomplete(format!("no random numbers: {e}")))?;
    Ok(salt)
}
