//! Salted digests of lines. A line can contain a secret, and the digest is committed, so scrypt
//! makes guessing expensive.

use super::memory::Memory;
use crate::hex;
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// Cost of new digests: 2 to this power blocks of 1 KiB, which needs 8 MiB of memory and about 15
/// ms.
const COST: u8 = 13;
/// Costs that a file may have. A higher cost would keep the reader busy.
const COSTS: std::ops::RangeInclusive<u8> = 10..=16;
/// The block size of scrypt, in units of 128 bytes.
const BLOCK: u32 = 8;
/// Bytes of the salt and of the hash.
const BYTES: usize = 16;

/// Threads that compute digests, at most. Each needs 8 MiB.
const MOST_THREADS: usize = 16;
/// Hashes that are cached in a run, at most.
const MOST_KNOWN: usize = 100_000;

/// A digest of lines: `scrypt:COST:SALT:HASH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Digest {
    cost: u8,
    salt: [u8; BYTES],
    hash: [u8; BYTES],
}

impl Digest {
    /// Computes the digest of lines. White space at the ends of a line is ignored. `salt` consists
    /// of random bytes.
    pub fn of(lines: &[u8], salt: [u8; BYTES]) -> Self {
        Self {
            cost: COST,
            salt,
            hash: HashInput::new(lines, &salt, COST).hash(),
        }
    }

    /// Returns true if the digest is that of these lines.
    pub fn is_of(&self, lines: &[u8]) -> bool {
        HashInput::new(lines, &self.salt, self.cost).hash() == self.hash
    }

    /// Parses the output of [`std::fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("scrypt:")?.split(':');
        let cost = parts
            .next()?
            .parse()
            .ok()
            .filter(|cost| COSTS.contains(cost))?;
        let (salt, hash) = (
            hex::decode_array(parts.next()?)?,
            hex::decode_array(parts.next()?)?,
        );
        parts.next().is_none().then_some(Self { cost, salt, hash })
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "scrypt:{}:{}:{}",
            self.cost,
            hex::encode(&self.salt),
            hex::encode(&self.hash)
        )
    }
}

/// All inputs of a hash. The lines are trimmed and represented by their SHA-256, which bounds the
/// input of scrypt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HashInput {
    text: [u8; 32],
    salt: [u8; BYTES],
    cost: u8,
}

/// The hashes of this run. A review compares the same lines with the same entry several times: for
/// each version of the file that must agree, and again when it lists findings.
static KNOWN: LazyLock<Mutex<HashMap<HashInput, [u8; BYTES]>>> = LazyLock::new(Mutex::default);

impl HashInput {
    /// Returns the input for lines. White space at both ends of a line does not count.
    fn new(lines: &[u8], salt: &[u8; BYTES], cost: u8) -> Self {
        let mut text = Sha256::new();
        for line in lines.split(|b| *b == b'\n') {
            text.update(line.trim_ascii());
            text.update(b"\n");
        }
        Self {
            text: text.finalize().into(),
            salt: *salt,
            cost,
        }
    }

    /// Returns the hash, computed once in a run.
    fn hash(&self) -> [u8; BYTES] {
        if let Some(hash) = known().get(self) {
            return *hash;
        }
        // Computed without the lock, because other threads wait for it.
        let hash = self.computed();
        let mut known = known();
        if known.len() < MOST_KNOWN {
            known.insert(*self, hash);
        }
        hash
    }

    /// Returns all inputs as bytes, for use as a key.
    fn bytes(&self) -> Vec<u8> {
        [&self.text[..], &self.salt, &[self.cost]].concat()
    }

    /// Computes the hash, which takes long on purpose.
    fn computed(&self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        // The parameters are within the limits of scrypt, so neither call fails.
        if let Ok(params) = scrypt::Params::new(self.cost, BLOCK, 1) {
            let _ = scrypt::scrypt(&self.text, &self.salt, &params, &mut out);
        }
        out
    }
}

/// The hashes of earlier commands, if they are used.
static MEMORY: Mutex<Option<Memory>> = Mutex::new(None);

/// Uses the hashes of earlier commands from now on, and records new ones.
pub fn remember(memory: Memory) {
    *memorized() = Some(memory);
}

/// Forgets all hashes, so that none of an earlier command decides what a gate lets through.
pub fn forget() {
    *memorized() = None;
    known().clear();
}

/// Returns the hashes as text, to be stored, if there are new ones.
pub fn memory_text() -> Option<String> {
    memorized().as_mut().and_then(Memory::text)
}

/// Locks the hashes of earlier commands.
fn memorized() -> MutexGuard<'static, Option<Memory>> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the hashes of this run.
fn known() -> MutexGuard<'static, HashMap<HashInput, [u8; BYTES]>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Computes the hashes for comparing these digests and lines on all cores, each of them once.
/// Returns their number.
pub(super) fn prepare<'d>(wanted: impl IntoIterator<Item = (&'d Digest, &'d [u8])>) -> usize {
    let inputs: HashSet<HashInput> = wanted
        .into_iter()
        .map(|(d, lines)| HashInput::new(lines, &d.salt, d.cost))
        .collect();
    compute(inputs)
}

/// Computes the digests of lines with their salts on all cores.
pub fn of_all(lines: &[(&[u8], [u8; BYTES])]) -> Vec<Digest> {
    compute(
        lines
            .iter()
            .map(|(lines, salt)| HashInput::new(lines, salt, COST))
            .collect(),
    );
    lines
        .iter()
        .map(|(lines, salt)| Digest::of(lines, *salt))
        .collect()
}

/// Computes the hashes that are not cached. Returns their number.
fn compute(mut inputs: HashSet<HashInput>) -> usize {
    inputs.retain(|input| !known().contains_key(input) && !is_recalled(input));
    let inputs: Vec<HashInput> = inputs.into_iter().take(MOST_KNOWN).collect();
    let cores = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(MOST_THREADS)
        .min(inputs.len());
    if cores < 2 {
        for input in &inputs {
            input.hash();
        }
        keep(&inputs);
        return inputs.len();
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        (1..cores).for_each(|_| drop(scope.spawn(|| work(&inputs, &next))));
        work(&inputs, &next);
    });
    keep(&inputs);
    inputs.len()
}

/// Copies a hash from the memory to the cache; returns false if the memory does not have it.
fn is_recalled(input: &HashInput) -> bool {
    let hash = memorized()
        .as_ref()
        .and_then(|memory| memory.get(&input.bytes()));
    if let Some(hash) = hash {
        known().insert(*input, hash);
    }
    hash.is_some()
}

/// Records computed hashes in the memory.
fn keep(inputs: &[HashInput]) {
    if let Some(memory) = memorized().as_mut() {
        inputs
            .iter()
            .for_each(|input| memory.put(&input.bytes(), input.hash()));
    }
}

/// Computes hashes until none is left. `next` is the index of the first one that no thread has
/// taken.
fn work(inputs: &[HashInput], next: &AtomicUsize) {
    while let Some(input) = inputs.get(next.fetch_add(1, Ordering::Relaxed)) {
        input.hash();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hashes belong to the process, and each of these tests counts or replaces them.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn a_hash_of_an_earlier_command_holds_until_it_is_forgotten() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let salt = *b"forged or right.";
        let input = HashInput::new(b"token", &salt, COST);
        let mut memory = Memory::new([7; 32], 0);
        memory.put(&input.bytes(), [0; BYTES]);
        remember(memory);
        let forged = Digest {
            hash: [0; BYTES],
            salt,
            cost: COST,
        };
        assert_eq!(
            (prepare([(&forged, &b"token"[..])]), forged.is_of(b"token")),
            (0, true)
        );
        forget();
        assert_eq!(
            (prepare([(&forged, &b"token"[..])]), forged.is_of(b"token")),
            (1, false)
        );
        assert_eq!(memory_text(), None);
    }

    #[test]
    fn each_hash_is_computed_once_in_a_run() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let salt = *b"each hash once..";
        let all = of_all(&[(b"a", salt), (b" a ", salt), (b"b", salt)]);
        assert!(all[0] == all[1] && all[0] != all[2]);
        assert!(all[0].is_of(b"a") && !all[0].is_of(b"c"));
        let other = Digest {
            salt: *b"another salt....",
            ..all[0].clone()
        };
        let wanted: [(&Digest, &[u8]); 4] = [
            (&all[0], b"a"),
            (&all[2], b"a"),
            (&other, b"a"),
            (&other, b"a\n"),
        ];
        assert_eq!(
            prepare(wanted),
            2,
            "one salt, the other salt with one line, and with two"
        );
        assert_eq!(prepare(wanted), 0);
    }
}
