//! Tokens with a checksum from their issuer.

use crate::hex;
use sha2::{Digest as _, Sha256};

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE58: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BECH32: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";

/// Returns the six base-62 digits of a CRC-32, zero padded.
///
/// <https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/>
pub(super) fn crc32_digits(body: &[u8]) -> [u8; 6] {
    let mut n = crc32fast::hash(body) as usize;
    let mut out = [b'0'; 6];
    for digit in out.iter_mut().rev() {
        *digit = BASE62[n % 62];
        n /= 62;
    }
    out
}

/// Returns true if the last six characters are the CRC-32 of the 30 before them: GitHub's and npm's
/// tokens.
pub(super) fn crc32_base62(token: &[u8]) -> bool {
    let Some(start) = token.len().checked_sub(36) else {
        return false;
    };
    let (body, sum) = token[start..].split_at(30);
    crc32_digits(body) == sum
}

/// Returns the eight hexadecimal digits that end a Grafana token: the CRC-32 of the text before
/// them, little-endian.
pub(super) fn grafana_digits(body: &[u8]) -> String {
    hex::encode(&crc32fast::hash(body).to_le_bytes())
}

/// Returns true if a Grafana service account token (`glsa_…_xxxxxxxx`) ends in its checksum.
pub(super) fn grafana(token: &[u8]) -> bool {
    let Some(at) = token.iter().rposition(|b| *b == b'_') else {
        return false;
    };
    grafana_digits(&token[..at]).as_bytes() == &token[at + 1..]
}

/// Returns true if an AWS access key ID contains a possible account number, which has twelve
/// decimal digits.
///
/// The ten characters after the prefix contain the account number, shifted by one bit. Keys issued
/// before 2019 (fifth character below `Q`) do not.
/// <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html>
pub(crate) fn aws_account(id: &[u8]) -> bool {
    let Some(digits) = id.get(4..14) else {
        return false;
    };
    let mut n: u64 = 0;
    for d in digits {
        let Some(v) = position(BASE32, *d) else {
            return false;
        };
        n = n << 5 | v as u64;
    }
    // 50 bits; the first 48 are six bytes, of which 41 bits from the second on are the account.
    let account = (n >> 2 & 0x7fff_ffff_ff80) >> 7;
    n >> 49 == 0 || account <= 999_999_999_999
}

/// Returns true if a Bech32 string, in upper or lower case, has a valid checksum: age's and nostr's
/// secret keys.
///
/// <https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki>
pub(super) fn bech32(text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let Some(at) = text.iter().rposition(|b| *b == b'1') else {
        return false;
    };
    let (prefix, data) = (&text[..at], &text[at + 1..]);
    let Some(data) = data
        .iter()
        .map(|b| position(BECH32, *b))
        .collect::<Option<Vec<_>>>()
    else {
        return false;
    };
    data.len() > 6 && bech32_polymod(prefix, data.iter().map(|v| *v as u32)) == 1
}

/// Returns the Bech32 string of a prefix and of values below 32, checksum included.
pub(super) fn bech32_encode(prefix: &str, data: &[u8]) -> String {
    let padded = data.iter().map(|v| u32::from(*v)).chain([0; 6]);
    let sum = bech32_polymod(prefix.as_bytes(), padded) ^ 1;
    let sum = (0..6).map(|i| (sum >> (5 * (5 - i)) & 31) as u8);
    let digits = data
        .iter()
        .copied()
        .chain(sum)
        .map(|v| char::from(BECH32[usize::from(v & 31)]));
    format!("{prefix}1{}", digits.collect::<String>())
}

fn bech32_polymod(prefix: &[u8], data: impl Iterator<Item = u32>) -> u32 {
    const GENERATOR: [u32; 5] = [
        0x3b6a_57b2,
        0x2650_8e6d,
        0x1ea1_19fa,
        0x3d42_33dd,
        0x2a14_62b3,
    ];
    let high = prefix.iter().map(|b| u32::from(b >> 5));
    let low = prefix.iter().map(|b| u32::from(b & 31));
    let mut sum = 1u32;
    for v in high.chain([0]).chain(low).chain(data) {
        let top = sum >> 25;
        sum = (sum & 0x01ff_ffff) << 5 ^ v;
        for (i, g) in GENERATOR.iter().enumerate() {
            if top >> i & 1 == 1 {
                sum ^= g;
            }
        }
    }
    sum
}

/// Returns true if a Base58Check string ends in its double SHA-256: extended private keys of
/// wallets.
///
/// <https://en.bitcoin.it/wiki/Base58Check_encoding>
pub(super) fn base58check(text: &[u8]) -> bool {
    if text.len() > 128 {
        return false;
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(text.len());
    for c in text {
        let Some(mut carry) = position(BASE58, *c) else {
            return false;
        };
        for b in bytes.iter_mut().rev() {
            carry += usize::from(*b) * 58;
            *b = (carry & 0xff) as u8;
            carry >>= 8;
        }
        while carry > 0 {
            bytes.insert(0, (carry & 0xff) as u8);
            carry >>= 8;
        }
    }
    let Some(at) = bytes.len().checked_sub(4) else {
        return false;
    };
    let (body, sum) = bytes.split_at(at);
    base58_sum(body) == sum
}

/// Returns the Base58Check string of some bytes; the first must not be zero.
pub(super) fn base58check_encode(body: &[u8]) -> String {
    let mut bytes = body.to_vec();
    bytes.extend(base58_sum(body));
    let mut digits: Vec<usize> = Vec::new();
    for b in bytes {
        let mut carry = usize::from(b);
        for d in digits.iter_mut().rev() {
            carry += *d << 8;
            *d = carry % 58;
            carry /= 58;
        }
        while carry > 0 {
            digits.insert(0, carry % 58);
            carry /= 58;
        }
    }
    digits.into_iter().map(|d| char::from(BASE58[d])).collect()
}

fn base58_sum(body: &[u8]) -> [u8; 4] {
    let hash = Sha256::digest(Sha256::digest(body));
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Returns true if a Stellar secret seed ends in its CRC-16.
///
/// <https://github.com/stellar/stellar-protocol/blob/master/ecosystem/sep-0023.md>
pub(super) fn stellar(seed: &[u8]) -> bool {
    let Some(bytes) = base32_decode(seed) else {
        return false;
    };
    bytes.len() == 35 && bytes[0] == 18 << 3 && crc16(&bytes[..33]).to_le_bytes() == bytes[33..]
}

/// Returns the Stellar secret seed of 32 bytes.
pub(super) fn stellar_encode(key: &[u8; 32]) -> String {
    let mut bytes = vec![18 << 3];
    bytes.extend(key);
    bytes.extend(crc16(&bytes).to_le_bytes());
    let (mut out, mut acc, mut bits) = (String::new(), 0u32, 0);
    for b in bytes {
        acc = acc << 8 | u32::from(b);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            out.push(char::from(BASE32[(acc >> bits & 31) as usize]));
        }
        acc &= (1 << bits) - 1;
    }
    out
}

fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0u16;
    for b in bytes {
        crc ^= u16::from(*b) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            };
        }
    }
    crc
}

fn base32_decode(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut acc, mut bits) = (Vec::with_capacity(text.len() * 5 / 8), 0u32, 0);
    for c in text {
        acc = acc << 5 | position(BASE32, *c)? as u32;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            out.push((acc >> bits & 0xff) as u8);
        }
        acc &= (1 << bits) - 1;
    }
    Some(out)
}

/// Returns true if 32 Base64 bytes are clamped as Curve25519 private keys are. One in 32 random
/// values is.
///
/// <https://www.wireguard.com/papers/wireguard.pdf>
pub(super) fn wireguard(key: &[u8]) -> bool {
    use base64::Engine as _;
    let Ok(bytes) = base64::engine::general_purpose::STANDARD.decode(key) else {
        return false;
    };
    bytes.len() == 32 && bytes[0] & 7 == 0 && bytes[31] & 0xc0 == 0x40
}

fn position(alphabet: &[u8], c: u8) -> Option<usize> {
    alphabet.iter().position(|a| *a == c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_githubs_checksum() {
        // A token that its owner published with the explanation of the format, revoked long ago. It
        // is split here.
        let token = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ", "0mLq17"].concat();
        assert!(crc32_base62(token.as_bytes()));
        let wrong = ["ghp_", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkK", "0mLq17"].concat();
        assert!(!crc32_base62(wrong.as_bytes()));
        assert!(!crc32_base62(b"ghp_short"));
    }

    #[test]
    fn knows_grafanas_checksum() {
        let token = ["glsa_", "yscW25imSKJIuav8zF37RZmnbiDvB05G", "_fcaaf58a"].concat();
        assert!(grafana(token.as_bytes()));
        assert!(!grafana(token.replace("fcaa", "fcab").as_bytes()));
    }

    #[test]
    fn reads_the_account_in_an_aws_key_id() {
        // The example key of the documentation is of the old kind.
        assert!(aws_account(
            [&b"AKIA"[..], b"IOSFODNN7EXAMPLE"].concat().as_slice()
        ));
        // All ones: 2^40 - 1 has thirteen digits.
        assert!(!aws_account(
            [&b"AKIA"[..], &[b'7'; 16]].concat().as_slice()
        ));
        assert!(!aws_account(
            [&b"AKIA"[..], &[b'0'; 16]].concat().as_slice()
        ));
        assert!(!aws_account(b"AKIA"));
    }

    #[test]
    fn knows_bech32() {
        // From BIP 173.
        assert!(bech32(b"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxw"));
        assert!(!bech32(b"abcdef1qpzry9x8gf2tvdw0s3jn54khce6mua7lmqqqxq"));
        assert!(bech32(
            bech32_encode("age-secret-key-", &[7; 52]).as_bytes()
        ));
    }

    #[test]
    fn knows_base58check() {
        // The address of the first block.
        assert!(!base58check(b"1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb"));
        let text = base58check_encode(&[4, 1, 2, 3, 4, 5, 250, 9]);
        assert!(base58check(text.as_bytes()));
        assert!(!base58check(text.replace(&text[3..4], "z").as_bytes()) || &text[3..4] == "z");
    }

    #[test]
    fn knows_stellar_seeds() {
        // From SEP 23.
        let seed = stellar_encode(&[0x69; 32]);
        assert!(seed.starts_with('S') && seed.len() == 56);
        assert!(stellar(seed.as_bytes()));
        let mut wrong = seed.into_bytes();
        wrong[9] = if wrong[9] == b'A' { b'B' } else { b'A' };
        assert!(!stellar(&wrong));
    }

    #[test]
    fn tells_private_from_public_curve_keys() {
        use base64::Engine as _;
        fn encode(b: [u8; 32]) -> String {
            base64::engine::general_purpose::STANDARD.encode(b)
        }
        let mut key = [0x5a; 32];
        assert!(!wireguard(encode(key).as_bytes()));
        key[0] = 0x58;
        assert!(wireguard(encode(key).as_bytes()));
    }
}
