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
    pub removed: usize,
}

/// The entries of the shared cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedCounts {
    pub url: String,
    #[serde(flatten)]
    pub counts: CacheCounts,
    /// Leases of runs that are asking, or died.
    pub leases: usize,
}

impl CacheStatus {
    /// Returns the answer as JSON text.
    pub fn to_text(&self) -> String {
        format!("{:#}\n", serde_json::json!(self))
    }
}
