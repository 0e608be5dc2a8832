//! The answer of `cache stats`, `cache verify` and `cache prune`.

use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the answer.
pub const CACHE_VERSION: u32 = 1;

/// The entries of both caches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CacheStatus {
    pub schema_version: u32,
    /// The user's own cache; null if it was not asked for or does not exist.
    pub local: Option<CacheCounts>,
    /// The cache that machines share; null if it was not asked for, or the policy has none.
    pub shared: Option<SharedCounts>,
}

/// The entries of a cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CacheCounts {
    pub entries: usize,
    pub bytes: u64,
    /// Entries that count; null if the command read none.
    pub valid: Option<usize>,
    /// Entries that do not count, by reason.
    pub defects: BTreeMap<String, usize>,
    /// Temporary files; in a shared folder only those that dead processes left.
    pub temporary_files: usize,
    /// Files or keys with names that the program does not write. They are never removed.
    pub foreign_names: usize,
    /// True if there are more entries than the command looked at.
    pub is_truncated: bool,
    pub removed: usize,
    /// Number of files that could not be removed.
    pub not_removed: usize,
}

/// The valid entries of one signer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SignerCounts {
    pub valid: usize,
    /// Time of the oldest one, such as `2026-11-24T10:00:00Z`.
    pub oldest: String,
}

/// The entries of the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedCounts {
    pub url: String,
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// Leases of runs that are asking, or died.
    pub leases: usize,
    /// Valid entries by the name of their signer; empty if the command read none.
    pub signers: BTreeMap<String, SignerCounts>,
}

impl CacheStatus {
    /// Returns the answer as JSON text.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}
