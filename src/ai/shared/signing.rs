//! Ed25519 keys of shared entries, in the formats of ssh-keygen: the lines of signers, and the
//! private key file. Pure.

use crate::policy::ed25519_public_key;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// Name of the type of key in OpenSSH's formats.
const TYPE: &[u8] = b"ssh-ed25519";
/// First and last line of a private key file.
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
/// First bytes of the content of a private key file (OpenSSH's PROTOCOL.key).
const MAGIC: &[u8] = b"openssh-key-v1\0";

/// The public key of a signer.
pub(super) type VerifyingKey = [u8; 32];

/// A signer whose entries count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySigner {
    /// Name in the policy.
    pub name: String,
    pub key: VerifyingKey,
}

/// The private key that signs new entries. Its debug output shows nothing of the key.
pub struct EntryKey(Ed25519KeyPair);

impl std::fmt::Debug for EntryKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EntryKey")
    }
}

impl EntrySigner {
    /// Parses a line of the policy: `NAME ssh-ed25519 KEY [COMMENT]`.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let key = STANDARD
            .decode(words.nth(1)?)
            .ok()
            .and_then(|blob| ed25519_public_key(&blob))?;
        Some(Self { name, key })
    }
}

impl EntryKey {
    /// Parses a private key file of `ssh-keygen -t ed25519` without a passphrase. Line breaks may
    /// be missing, because variables of CI systems can lose them.
    ///
    /// # Errors
    ///
    /// A phrase that says why the text is not such a key, without any of it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let body = text
            .trim()
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END))
            .ok_or("did not print a private key of ssh-keygen")?;
        let body: String = body.split_ascii_whitespace().collect();
        let bytes = STANDARD
            .decode(body)
            .map_err(|_| "printed a damaged private key")?;
        let mut rest = bytes
            .strip_prefix(MAGIC)
            .ok_or("printed a private key of an unknown format")?;
        let damaged = "printed a damaged private key";
        let cipher = field(&mut rest).ok_or(damaged)?;
        if cipher != b"none" {
            return Err("printed a private key with a passphrase");
        }
        let _kdf = field(&mut rest).ok_or(damaged)?;
        let _options = field(&mut rest).ok_or(damaged)?;
        if number(&mut rest) != Some(1) {
            return Err("printed a file without exactly one private key");
        }
        let _public = field(&mut rest).ok_or(damaged)?;
        let mut private = field(&mut rest).ok_or(damaged)?;
        let checks = (number(&mut private), number(&mut private));
        if checks.0.is_none() || checks.0 != checks.1 {
            return Err(damaged);
        }
        if field(&mut private) != Some(TYPE) {
            return Err("printed a private key that is not of type ed25519");
        }
        let public = field(&mut private).ok_or(damaged)?;
        let seed = field(&mut private)
            .and_then(|both| both.get(..32))
            .ok_or(damaged)?;
        Ed25519KeyPair::from_seed_and_public_key(seed, public)
            .map(Self)
            .map_err(|_| damaged)
    }

    /// Makes the key of a seed. `None` if the library refuses it.
    pub fn from_seed(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// Returns the signer that readers list for this key.
    pub fn signer(&self, name: &str) -> EntrySigner {
        EntrySigner {
            name: name.to_owned(),
            key: self.public(),
        }
    }

    /// Returns the public half.
    pub fn public(&self) -> VerifyingKey {
        let mut key = [0; 32];
        // A public key of Ed25519 always has 32 bytes.
        key.copy_from_slice(&self.0.public_key().as_ref()[..32]);
        key
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

/// Returns true if a signature of a message is by this key.
pub(super) fn is_signed_by(key: &VerifyingKey, message: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, key)
        .verify(message, signature)
        .is_ok()
}

/// Takes a field with a length of four bytes (RFC 4251, section 5, `string`).
fn field<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(number(rest)?).ok()?;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

/// Takes a number of four bytes, most significant first.
fn number(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, left) = rest.split_first_chunk::<4>()?;
    *rest = left;
    Some(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes a field as OpenSSH does.
    fn put(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
        out.extend(bytes);
    }

    /// Returns a private key file for a seed, and the line of its signer. `cipher` is `none` for a
    /// key without a passphrase.
    pub(in crate::ai::shared) fn key_file(seed: u8, cipher: &[u8]) -> (String, String) {
        let seed = [seed; 32];
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
        let public = pair.public_key().as_ref();
        let mut blob = Vec::new();
        put(&mut blob, TYPE);
        put(&mut blob, public);
        let mut private = vec![1, 2, 3, 4, 1, 2, 3, 4];
        put(&mut private, TYPE);
        put(&mut private, public);
        put(&mut private, &[&seed[..], public].concat());
        put(&mut private, b"comment");
        let mut all = MAGIC.to_vec();
        put(&mut all, cipher);
        put(&mut all, b"none");
        put(&mut all, b"");
        all.extend(1_u32.to_be_bytes());
        put(&mut all, &blob);
        put(&mut all, &private);
        let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(all));
        (
            text,
            format!("ci ssh-ed25519 {} made", STANDARD.encode(blob)),
        )
    }

    #[test]
    fn a_key_of_ssh_keygen_signs_and_its_line_verifies() {
        let (file, line) = key_file(7, b"none");
        let key = EntryKey::parse(&file).unwrap();
        let signer = EntrySigner::parse(&line).unwrap();
        assert_eq!((signer.name.as_str(), signer.key), ("ci", key.public()));
        let signature = key.sign(b"text");
        assert!(is_signed_by(&signer.key, b"text", &signature));
        assert!(!is_signed_by(&signer.key, b"texts", &signature));
        let other = EntrySigner::parse(&key_file(8, b"none").1).unwrap();
        assert!(!is_signed_by(&other.key, b"text", &signature));
        assert!(EntryKey::parse(&file.replace('\n', " ")).is_ok());
    }

    #[test]
    fn a_text_that_is_not_a_usable_key_is_refused_with_its_reason_and_without_its_text() {
        let (file, _) = key_file(7, b"none");
        let reason = |text: &str| EntryKey::parse(text).unwrap_err();
        assert!(reason(&key_file(7, b"aes256-ctr").0).contains("passphrase"));
        assert!(reason("secret").contains("did not print a private key"));
        for end in BEGIN.len()..file.len() - END.len() - 2 {
            let cut = format!("{}\n{END}\n", &file[..end]);
            assert!(EntryKey::parse(&cut).is_err(), "{end}");
        }
        for bad in [
            "",
            "ci",
            "ci ssh-ed25519",
            "ci ssh-ed25519 AAAA",
            "ci ssh-rsa AAAAB3NzaC1yc2E=",
        ] {
            assert_eq!(EntrySigner::parse(bad), None, "{bad}");
        }
        assert_eq!(format!("{:?}", EntryKey::parse(&file).unwrap()), "EntryKey");
    }
}
