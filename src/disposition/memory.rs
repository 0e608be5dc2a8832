//! Hashes that earlier commands on this machine computed, so that the next command does not compute
//! them again. Does no I/O.
//!
//! An HMAC with a random key names each input, because a name without a key would be a fast hash of
//! lines that can contain a secret. The key is stored with the hashes, so a reader of the memory
//! can guess lines at the speed of that fast hash. Therefore the memory belongs in the user's
//! private folder, where the repository is equally readable, and it expires after [`DAYS`].

use crate::hex;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Days after which the key and all hashes are forgotten.
const DAYS: i64 = 30;
/// Hashes in a memory, at most: an entry of the user's cache has 1 MiB.
const MOST: usize = 8_000;
/// Bytes of a name and of a hash.
const BYTES: usize = 16;
/// First line of the stored text.
const MAGIC: &str = "decisions 1";

/// Hashes by the names of their inputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Memory {
    key: [u8; 32],
    /// Creation time, in days since 1970.
    began: i64,
    hashes: BTreeMap<[u8; BYTES], [u8; BYTES]>,
    is_changed: bool,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory")
            .field("hashes", &self.hashes.len())
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Creates a memory. `key`: random bytes. `today`: days since 1970.
    pub fn new(key: [u8; 32], today: i64) -> Self {
        Self {
            key,
            began: today,
            hashes: BTreeMap::new(),
            is_changed: false,
        }
    }

    /// Parses the output of [`Self::text`]. `None`: it is damaged, or too old.
    pub fn parse(text: &str, today: i64) -> Option<Self> {
        let mut lines = text.lines();
        let mut head = lines.next()?.strip_prefix(MAGIC)?.split_whitespace();
        let (began, key) = (head.next()?.parse().ok()?, hex::decode_array(head.next()?)?);
        if !(0..DAYS).contains(&(today - began)) {
            return None;
        }
        let pairs = lines.take(MOST).map(|line| {
            let (name, hash) = line.split_once(' ')?;
            Some((hex::decode_array(name)?, hex::decode_array(hash)?))
        });
        let hashes = pairs.collect::<Option<_>>()?;
        Some(Self {
            key,
            began,
            hashes,
            is_changed: false,
        })
    }

    /// Returns the memory as text if it has changed since it was read or written.
    pub fn text(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let mut text = format!("{MAGIC} {} {}\n", self.began, hex::encode(&self.key));
        for (name, hash) in &self.hashes {
            let _ = writeln!(text, "{} {}", hex::encode(name), hex::encode(hash));
        }
        Some(text)
    }

    /// Returns the hash of an input.
    pub(super) fn get(&self, input: &[u8]) -> Option<[u8; BYTES]> {
        self.hashes.get(&self.name(input)?).copied()
    }

    /// Stores the hash of an input, unless the memory is full.
    pub(super) fn put(&mut self, input: &[u8], hash: [u8; BYTES]) {
        if let Some(name) = self.name(input).filter(|_| self.hashes.len() < MOST) {
            self.hashes.insert(name, hash);
            self.is_changed = true;
        }
    }

    /// Returns the first bytes of the HMAC-SHA256 of an input (RFC 2104), which accepts keys of
    /// every length.
    fn name(&self, input: &[u8]) -> Option<[u8; BYTES]> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        mac.chain_update(input)
            .finalize()
            .into_bytes()
            .first_chunk()
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_known_by_its_input_and_until_the_memory_is_old() {
        let mut memory = Memory::new([7; 32], 100);
        assert_eq!((memory.get(b"a"), memory.text()), (None, None));
        memory.put(b"a", [1; BYTES]);
        let text = memory.text().unwrap();
        assert_eq!(memory.text(), None, "written once");
        for (day, expected) in [(100, true), (129, true), (130, false), (99, false)] {
            let again = Memory::parse(&text, day);
            assert_eq!(
                again.is_some_and(|m| m.get(b"a") == Some([1; BYTES]) && m.get(b"b").is_none()),
                expected,
                "{day}"
            );
        }
        for damaged in [
            "",
            "decisions 1 100 07\n",
            &text[..text.len() - 2],
            &text.replace("decisions 1", "decisions 2"),
        ] {
            assert_eq!(Memory::parse(damaged, 100), None, "{damaged}");
        }
        // With another key, the same text names other inputs.
        assert_ne!(Memory::new([8; 32], 100).name(b"a"), memory.name(b"a"));
    }

    #[test]
    fn names_are_those_of_hmac_sha256() {
        // RFC 4231, test case 2, has a key of 4 bytes, which is padded with zeros.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let name = Memory::new(key, 0)
            .name(b"what do ya want for nothing?")
            .unwrap();
        assert_eq!(hex::encode(&name), "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn the_number_of_hashes_is_bounded() {
        let mut memory = Memory::new([7; 32], 0);
        (0..MOST + 10).for_each(|n| memory.put(&n.to_le_bytes(), [0; BYTES]));
        assert_eq!(memory.hashes.len(), MOST);
        assert!(memory.text().unwrap().len() < 1 << 20);
    }
}
