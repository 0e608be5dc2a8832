//! Signers of receipts.

use super::{Complaint, complaint};
use base64::Engine as _;

/// Validates `PRINCIPALS [OPTIONS] KEYTYPE KEY [COMMENT]`, the format of ssh-keygen(1) under
/// ALLOWED SIGNERS.
pub(super) fn signer(s: &str) -> Result<String, Complaint> {
    const TYPES: [&str; 3] = ["ssh-", "ecdsa-sha2-", "sk-"];
    let s = s.trim();
    if s.len() > 16 << 10 || s.starts_with('#') || s.chars().any(char::is_control) {
        return Err(bad_signer("is not a line of an allowed-signers file"));
    }
    let words: Vec<&str> = s.split_whitespace().collect();
    let Some(at) = words
        .iter()
        .skip(1)
        .position(|w| TYPES.iter().any(|t| w.starts_with(t)))
    else {
        return Err(bad_signer("has no key"));
    };
    // The decoded key starts with its own type, which must be the same.
    let name = words[at + 1];
    let key = words
        .get(at + 2)
        .and_then(|w| base64::engine::general_purpose::STANDARD.decode(w).ok());
    let length = u32::try_from(name.len()).unwrap_or(0).to_be_bytes();
    match key {
        Some(key) if key.starts_with(&length) && key[4..].starts_with(name.as_bytes()) => {
            Ok(s.to_owned())
        }
        _ => Err(bad_signer("has an invalid key")),
    }
}

fn bad_signer(why: &str) -> Complaint {
    complaint(format!("has a signer that {why}"))
        .hinted("write \"alice@example.com ssh-ed25519 AAAA…\": the signer, then the public key")
}
