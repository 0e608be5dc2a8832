//! Salted digests of lines. A line can hold a secret, and the digest is committed: scrypt makes guessing expensive.

use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The cost of new digests: 2 to this power, with blocks of 1 KiB, so 8 MiB of memory and about 15 ms.
const COST: u8 = 13;
/// The costs that a file may ask for. A higher one would keep the reader busy.
const COSTS: std::ops::RangeInclusive<u8> = 10..=16;
/// The block size of scrypt, in units of 128 bytes.
const BLOCK: u32 = 8;
/// Bytes of the salt and of the hash.
const BYTES: usize = 16;

/// A digest of lines: `scrypt:COST:SALT:HASH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    cost: u8,
    salt: [u8; BYTES],
    hash: [u8; BYTES],
}

impl Digest {
    /// Digests lines. White space around each of them makes no difference. `salt`: random bytes.
    pub fn of(lines: &[u8], salt: [u8; BYTES]) -> Self {
        Self { cost: COST, salt, hash: hash(lines, &salt, COST) }
    }

    /// Returns true if the digest is that of these lines.
    pub fn is_of(&self, lines: &[u8]) -> bool {
        hash(lines, &self.salt, self.cost) == self.hash
    }

    /// Reads what [`std::fmt::Display`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("scrypt:")?.split(':');
        let cost = parts.next()?.parse().ok().filter(|cost| COSTS.contains(cost))?;
        let (salt, hash) = (bytes(parts.next()?)?, bytes(parts.next()?)?);
        parts.next().is_none().then_some(Self { cost, salt, hash })
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "scrypt:{}:{}:{}", self.cost, hex(&self.salt), hex(&self.hash))
    }
}

/// Hashes the lines, trimmed. A SHA-256 in front bounds what scrypt reads.
fn hash(lines: &[u8], salt: &[u8; BYTES], cost: u8) -> [u8; BYTES] {
    let mut text = Sha256::new();
    for line in lines.split(|b| *b == b'\n') {
        text.update(line.trim_ascii());
        text.update(b"\n");
    }
    let mut out = [0; BYTES];
    // The parameters are within the limits of scrypt, so neither call fails.
    if let Ok(params) = scrypt::Params::new(cost, BLOCK, 1) {
        let _ = scrypt::scrypt(&text.finalize(), salt, &params, &mut out);
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

fn bytes(text: &str) -> Option<[u8; BYTES]> {
    if text.len() != 2 * BYTES || !text.is_ascii() {
        return None;
    }
    let mut out = [0; BYTES];
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(out)
}
