//! `[cache]`: a cache of answers that several machines share.

use std::time::Duration;

/// KiB of an entry by default.
const MAX_ENTRY_KIB: u32 = 256;
/// Days that an entry is valid by default.
const DAYS: u64 = 14;

/// `[cache]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachePolicy {
    /// The store: `s3://bucket/prefix`, `rediss://host`, `file:///folder`. `None`: no shared cache.
    pub url: Option<String>,
    /// True if answers of this run are stored.
    pub write: bool,
    /// Lines `NAME ssh-ed25519 KEY`, as in an OpenSSH allowed-signers file: whose entries count.
    pub signers: Vec<String>,
    /// A command line that prints the private key for new entries.
    pub sign_key_command: Option<String>,
    /// Time that a slow or broken store costs a run, at most.
    pub timeout: Duration,
    /// Age above which an entry is a miss.
    pub max_age: Duration,
    /// KiB of an entry, at most.
    pub max_entry_kib: u32,
}

impl Default for CachePolicy {
    fn default() -> Self {
        Self {
            url: None,
            write: false,
            signers: Vec::new(),
            sign_key_command: None,
            timeout: Duration::from_secs(2),
            max_age: Duration::from_secs(DAYS * 24 * 3600),
            max_entry_kib: MAX_ENTRY_KIB,
        }
    }
}
