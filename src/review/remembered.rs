//! The digests of decisions that earlier commands computed, in the user's cache folder.
//!
//! Not used in gate mode or in CI: a cache that a job restores would decide what passes the gate.

use crate::ai::ask::Nonce;
use crate::ai::cache::{Cache, KeptReply, ReplyKey};
use crate::disposition::{self, Memory};
use crate::env::Env;
use jiff::Timestamp;
use std::path::Path;

/// Seconds of a day.
const DAY: i64 = 24 * 60 * 60;

/// Loads the digests for the rest of this process. A cache inside `top`, the worktree, is ignored.
pub(crate) fn recall(env: &Env, top: Option<&Path>, now: Timestamp) {
    if env.is_ci() {
        return;
    }
    let today = now.as_second().div_euclid(DAY);
    let kept = Cache::open(env, top).and_then(|cache| cache.get(&key(), &nonce()));
    let memory = kept.and_then(|kept| Memory::parse(&kept.text, today));
    if let Some(memory) = memory.or_else(|| begin(today)) {
        disposition::remember(memory);
    }
}

/// Returns an empty memory with a random key; `None` if the system has no random numbers.
fn begin(today: i64) -> Option<Memory> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .is_ok()
        .then(|| Memory::new(random, today))
}

/// Forgets the digests that this process has, before a review in gate mode: a server of agents can
/// have recalled them.
pub(crate) fn forget() {
    disposition::forget();
}

/// Stores new digests. A failure to write the cache only costs time.
pub(crate) fn save(env: &Env, top: Option<&Path>) {
    let Some(text) = disposition::memory_text() else {
        return;
    };
    if let Some(cache) = Cache::open(env, top) {
        let kept = KeptReply {
            text,
            read: Vec::new(),
            lookups: Vec::new(),
            tree: None,
            model: String::new(),
        };
        cache.put(&key(), &nonce(), &kept);
    }
}

fn key() -> ReplyKey {
    ReplyKey::of_parts(&["hashes of decisions 1"])
}

/// Returns the nonce that the cache format requires; the entry itself needs none.
fn nonce() -> Nonce {
    Nonce::new([0; 16])
}
