//! `[cache]`: a cache of answers that several machines share.

use std::net::IpAddr;
use std::time::Duration;

/// KiB of an entry by default.
const MAX_ENTRY_KIB: u32 = 256;
/// Seconds that an entry is valid by default: 14 days.
pub(super) const MAX_AGE_SECONDS: u64 = 14 * 24 * 3600;
/// Start of a public key of Ed25519 in OpenSSH's encoding: its type and the length of the key, 32
/// bytes, which follow (RFC 8709, section 4).
const PUBLIC_KEY_START: &[u8] = b"\0\0\0\x0bssh-ed25519\0\0\0\x20";

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
    /// Time that a store without an accepted answer costs a run, at most.
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
            max_age: Duration::from_secs(MAX_AGE_SECONDS),
            max_entry_kib: MAX_ENTRY_KIB,
        }
    }
}

/// The address of a Redis server: `HOST[:PORT][/DATABASE]`. An IPv6 address is in brackets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress {
    /// Name or IP address, without brackets.
    pub host: String,
    /// `None`: the port of Redis.
    pub port: Option<u16>,
    /// Number of the database; 0 by default.
    pub database: u16,
}

impl RedisAddress {
    /// Parses the part of a URL behind its scheme.
    ///
    /// # Errors
    ///
    /// The part that is invalid, as a phrase that follows `this URL`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (authority, path) = text.split_once('/').unwrap_or((text, ""));
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or("has an invalid host")?,
            None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
        };
        let is_host = match authority.starts_with('[') {
            true => host.parse::<IpAddr>().is_ok(),
            false => !host.is_empty(),
        };
        if !is_host {
            return Err("has an invalid host");
        }
        let port = match (port, port.strip_prefix(':')) {
            ("" | ":", _) => None,
            (_, digits) => {
                let number = digits.and_then(|d| d.parse().ok()).filter(|n| *n > 0);
                Some(number.ok_or("has an invalid host or port")?)
            }
        };
        let database = match path {
            "" => 0,
            path => path
                .parse()
                .map_err(|_| "has a path that is not the number of a database")?,
        };
        Ok(Self {
            host: host.to_owned(),
            port,
            database,
        })
    }

    /// Returns true for an address of this machine.
    pub fn is_local(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        self.host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|a| a.is_loopback())
    }
}

/// Returns the key in OpenSSH's encoding of a public key of Ed25519, which has exactly 51 bytes.
pub fn ed25519_public_key(blob: &[u8]) -> Option<[u8; 32]> {
    blob.strip_prefix(PUBLIC_KEY_START)?.try_into().ok()
}
