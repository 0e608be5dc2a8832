//! Hashes of earlier commands on this machine, so that a command does not compute those of the one before again. Pure.
//!
//! The inputs are named by an HMAC with a random key, since a name without a key would be a fast hash of lines that can hold a
//! secret. The key stands beside the hashes: who reads the memory can guess lines as fast as with that hash. So it is for the
//! user's private folder only, where the repository itself is as readable, and it ends after [`DAYS`].

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Days after which the key and all hashes are forgotten.
const DAYS: i64 = 30;
/// Hashes that are kept: an entry of the user's cache has 1 MiB.
const MOST: usize = 8_000;
/// The block size of SHA-256.
const BLOCK: usize = 64;
/// Bytes of a name and of a hash.
const BYTES: usize = 16;
/// The first line.
const MAGIC: &str = "decisions 1";

/// Hashes by the names of their inputs.
#[derive(Clone, PartialEq, Eq)]
pub struct Memory {
    key: [u8; 32],
    /// Days since 1970.
    began: i64,
    hashes: BTreeMap<[u8; BYTES], [u8; BYTES]>,
    is_changed: bool,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("hashes", &self.hashes.len()).finish_non_exhaustive()
    }
}

impl Memory {
    /// Begins a memory. `key`: random bytes. `today`: days since 1970.
    pub fn new(key: [u8; 32], today: i64) -> Self {
        Self { key, began: today, hashes: BTreeMap::new(), is_changed: false }
    }

    /// Reads what [`Self::text`] writes; `None`: it is damaged, or too old.
    pub fn parse(text: &str, today: i64) -> Option<Self> {
        let mut lines = text.lines();
        let mut head = lines.next()?.strip_prefix(MAGIC)?.split_whitespace();
        let (began, key) = (head.next()?.parse().ok()?, bytes(head.next()?)?);
        if !(0..DAYS).contains(&(today - began)) {
            return None;
        }
        let pair = |line: &str| line.split_once(' ').and_then(|(name, hash)| Some((bytes(name)?, bytes(hash)?)));
        let hashes = lines.take(MOST).map(pair).collect::<Option<_>>()?;
        Some(Self { key, began, hashes, is_changed: false })
    }

    /// Returns the memory as text if it has changed since it was read or written.
    pub fn text(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.is_changed) {
            return None;
        }
        let mut text = format!("{MAGIC} {} {}\n", self.began, hex(&self.key));
        for (name, hash) in &self.hashes {
            let _ = writeln!(text, "{} {}", hex(name), hex(hash));
        }
        Some(text)
    }

    /// Returns the hash of an input.
    pub(super) fn get(&self, input: &[u8]) -> Option<[u8; BYTES]> {
        self.hashes.get(&self.name(input)).copied()
    }

    /// Keeps the hash of an input, as long as there is room.
    pub(super) fn put(&mut self, input: &[u8], hash: [u8; BYTES]) {
        if self.hashes.len() < MOST {
            self.hashes.insert(self.name(input), hash);
            self.is_changed = true;
        }
    }

    /// Returns the first bytes of the HMAC-SHA256 of an input (RFC 2104).
    fn name(&self, input: &[u8]) -> [u8; BYTES] {
        let pad = |with: u8| {
            let mut block = [with; BLOCK];
            block.iter_mut().zip(self.key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(pad(0x36)).chain_update(input).finalize();
        let outer = Sha256::new().chain_update(pad(0x5c)).chain_update(inner).finalize();
        let mut name = [0; BYTES];
        name.copy_from_slice(&outer[..BYTES]);
        name
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut out = [0; N];
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
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
        for damaged in
            ["", "decisions 1 100 07\n", &text[..text.len() - 2], &text.replace("decisions 1", "decisions 2")]
        {
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
        let name = Memory::new(key, 0).name(b"what do ya want for nothing?");
        assert_eq!(hex(&name), "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn the_number_of_hashes_is_bounded() {
        let mut memory = Memory::new([7; 32], 0);
        (0..MOST + 10).for_each(|n| memory.put(&n.to_le_bytes(), [0; BYTES]));
        assert_eq!(memory.hashes.len(), MOST);
        assert!(memory.text().unwrap().len() < 1 << 20);
    }
}
