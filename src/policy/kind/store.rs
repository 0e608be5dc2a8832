//! URLs of stores of shared answers, and the signers of their entries.

use super::signer::signer;
use super::{Complaint, ValueKind, complaint};
use crate::policy::cache::{RedisAddress, ed25519_public_key};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Schemes of stores.
const SCHEMES: [&str; 6] = ["s3", "gs", "azblob", "redis", "rediss", "file"];
/// Bytes of a URL, at most.
const MAX_URL: usize = 1024;

/// Validates the URL of a store; returns it without a trailing slash.
///
/// Plain Redis is only accepted for this machine: it would send answers, and the password of the
/// server, unencrypted to another one.
pub(super) fn store_url(s: &str) -> Result<String, Complaint> {
    let s = s.trim();
    let Some((scheme, rest)) = s.split_once("://") else {
        return Err(bad_store("has no scheme"));
    };
    let scheme = scheme.to_ascii_lowercase();
    if !SCHEMES.contains(&scheme.as_str()) {
        return Err(bad_store("has an unsupported scheme"));
    }
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || !c.is_ascii() || c == '\\';
    if s.len() > MAX_URL || s.chars().any(is_odd) {
        return Err(bad_store("has invalid characters"));
    }
    if rest.contains(['?', '#']) {
        return Err(bad_store("has a query or fragment"));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if host.contains('@') {
        return Err(complaint("must not contain a user or a password").hinted(
            match scheme.as_str() {
                "redis" | "rediss" => "set REDISCLI_AUTH and REDIS_USERNAME in the environment",
                _ => "set the variables of the store in the environment",
            },
        ));
    }
    if path.split('/').any(|part| part == ".." || part == ".") {
        return Err(bad_store("has a path with . or .."));
    }
    match scheme.as_str() {
        "file" if !host.is_empty() || path.trim_matches('/').is_empty() => {
            return Err(bad_store("does not name an absolute path"));
        }
        "file" => {}
        "redis" | "rediss" => check_redis(&scheme, rest)?,
        _ if !is_bucket(host) => return Err(bad_store("has an invalid bucket or container")),
        _ => {}
    }
    Ok(format!("{scheme}://{}", rest.trim_end_matches('/')))
}

/// Checks the address of a Redis server.
fn check_redis(scheme: &str, rest: &str) -> Result<(), Complaint> {
    let address = RedisAddress::parse(rest).map_err(bad_store)?;
    if scheme == "redis" && !address.is_local() {
        return Err(complaint(
            "must be a rediss URL: plain redis sends answers and the password unencrypted to another machine",
        )
        .hinted("write the URL with rediss://"));
    }
    Ok(())
}

/// Returns true for the name of a bucket or container: 3 to 63 letters, digits, dots, dashes and
/// underscores.
fn is_bucket(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    (3..=63).contains(&name.len()) && name.bytes().all(is_plain) && !name.contains("..")
}

/// Validates a line of `[cache] signers`: `NAME ssh-ed25519 KEY [COMMENT]`, without options.
///
/// The format is that of `[receipt] signers`, but only this program checks the signatures: it knows
/// no certificates, other types of keys, patterns or options.
pub(super) fn cache_signer(s: &str) -> Result<String, Complaint> {
    let line = signer(s)?;
    let mut words = line.split_whitespace().skip(1);
    let (kind, key) = (words.next(), words.next());
    let blob = key.and_then(|key| STANDARD.decode(key).ok());
    let why = match (
        kind,
        blob.is_some_and(|blob| ed25519_public_key(&blob).is_some()),
    ) {
        (Some("ssh-ed25519"), true) => return Ok(line),
        (Some("ssh-ed25519"), false) => "has a signer whose key is not an Ed25519 key of 32 bytes",
        _ => "has a signer without a key of type ssh-ed25519",
    };
    Err(complaint(why).hinted(
        "write \"ci ssh-ed25519 AAAA…\": a name, then the public key of ssh-keygen -t ed25519",
    ))
}

/// Builds the complaint about a URL of a store.
fn bad_store(why: &str) -> Complaint {
    ValueKind::StoreUrl.unmet(&format!("this URL {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_the_url_of_its_kind() {
        for (text, read) in [
            ("s3://bucket/some/prefix/", "s3://bucket/some/prefix"),
            ("S3://bucket", "s3://bucket"),
            ("gs://bucket/x", "gs://bucket/x"),
            ("azblob://container", "azblob://container"),
            (
                "rediss://cache.example.com:6380/2",
                "rediss://cache.example.com:6380/2",
            ),
            ("file:///var/cache/reviews", "file:///var/cache/reviews"),
        ] {
            assert_eq!(store_url(text).as_deref(), Ok(read), "{text}");
        }
        for bad in [
            "bucket/prefix",
            "https://bucket.s3.example.com",
            "s3://",
            "s3://b",
            "s3://bucket/../other",
            "s3://bucket/x?versionId=1",
            "s3://buck et",
            "file://host/folder",
            "file:///",
            "file:relative",
            "rediss://",
            "rediss://h:0",
            "rediss://h:99999",
            "rediss://h/zero",
            "rediss://[::1",
            "redis://[::1]6379",
            "redis://[::1]x:6379",
            "redis://[localhost]:6379",
            "redis://::1",
            "redis://localhost:x",
        ] {
            assert!(store_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn net_19_plain_redis_is_for_this_machine_only() {
        for here in ["127.0.0.1:6379", "localhost", "[::1]:6379/1"] {
            assert!(store_url(&format!("redis://{here}")).is_ok(), "{here}");
        }
        for there in [
            "10.0.0.1:6379",
            "cache.example.com",
            "localhost.example.com",
            "[2001:db8::1]",
            "0.0.0.0",
        ] {
            let why = store_url(&format!("redis://{there}")).unwrap_err();
            assert!(
                why.text.contains("must be a rediss URL"),
                "{there}: {why:?}"
            );
            assert!(store_url(&format!("rediss://{there}")).is_ok(), "{there}");
        }
    }

    #[test]
    fn no_password_belongs_into_the_url_of_a_store() {
        let why = store_url("rediss://user:hunter2-canary@cache.example.com").unwrap_err();
        assert!(!format!("{why:?}").contains("canary"), "{why:?}");
        assert!(why.hint.unwrap().contains("REDISCLI_AUTH"));
    }

    /// Returns the first bytes of an encoded key, encoded again.
    fn shortened_key(key: &str, length: usize) -> String {
        STANDARD.encode(&STANDARD.decode(key).unwrap()[..length])
    }

    #[test]
    fn a_signer_of_entries_has_an_ed25519_key() {
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
        assert!(cache_signer(&format!("ci ssh-ed25519 {key} a comment")).is_ok());
        for bad in [
            format!("ci cert-authority ssh-ed25519 {key}"),
            format!("ssh-ed25519 {key}"),
            "ci ssh-rsa AAAAB3NzaC1yc2E=".to_owned(),
            "ci".to_owned(),
            // The type alone, a key of 31 bytes, and a key with a byte behind it.
            "ci ssh-ed25519 AAAAC3NzaC1lZDI1NTE5".to_owned(),
            format!("ci ssh-ed25519 {}", shortened_key(key, 50)),
            format!(
                "ci ssh-ed25519 {}",
                shortened_key(&format!("{key}AAAA"), 52)
            ),
        ] {
            assert!(cache_signer(&bad).is_err(), "{bad}");
        }
    }
}
