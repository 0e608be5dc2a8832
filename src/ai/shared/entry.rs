//! Entries of a shared cache: a signed envelope around a reply. Pure.
//!
//! A shared answer that says "no findings" opens a gate, and an attacker who can write to the store
//! can write anything there. The signature covers everything that a reader relies on: the key of
//! the question, the name of the model, the time and the reply. A reader knows public keys only, so
//! it cannot be made to sign. Every defect of an entry is a miss with a typed reason.

use super::signing::{EntryKey, EntrySigner, VerifyingKey, is_signed_by};
use crate::ai::cache::ReplyKey;
use crate::hex;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;

/// Version of the envelope.
const VERSION: u64 = 1;
/// Separates these signatures from all others that the same key may make.
const DOMAIN: &[u8] = b"claude-reviewer shared reply 1\0";
/// Separates signatures of leases from signatures of replies.
const LEASE_DOMAIN: &[u8] = b"claude-reviewer shared lease 1\0";
/// Difference of two machines' clocks that is tolerated, in seconds.
const AHEAD: i64 = 300;
/// Age in seconds above which a lease does not count any more: with that delay, one can be repeated
/// unnoticed.
const FRESH: i64 = 5;
/// Time in seconds by which a lease may be in the future. More would prolong the time in which it
/// can be repeated.
const LEASE_AHEAD: i64 = 1;
/// Bytes of the name of a model, at most. A longer name is shortened.
const MAX_MODEL: usize = 256;
/// Bytes of a lease, at most.
pub(super) const MAX_LEASE: usize = 1 << 10;

/// Why an entry of the store does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryDefect {
    /// It has more bytes than the policy allows.
    TooLarge,
    /// It is a link, a pipe, a folder or a value of another type, or this user may not read it.
    Unreadable,
    /// It is truncated, or is not an entry.
    Malformed,
    /// It has a version that this program does not know.
    OtherVersion,
    /// The policy does not list its signer.
    UnknownSigner,
    /// The signature does not match: it was forged, or changed after it was signed.
    BadSignature,
    /// It is the signed answer to another question.
    OtherQuestion,
    /// It is older than the policy allows.
    Stale,
    /// Its time is in the future.
    FromTheFuture,
}

impl EntryDefect {
    /// Describes the defect, to follow `N shared answers were ignored: `.
    pub fn about(self) -> &'static str {
        match self {
            Self::TooLarge => "larger than max_entry_kib",
            Self::Unreadable => "unreadable",
            Self::Malformed => "truncated or malformed",
            Self::OtherVersion => "of an unknown version",
            Self::UnknownSigner => "by a signer that the policy does not list",
            Self::BadSignature => "with a wrong signature",
            Self::OtherQuestion => "copied from another question",
            Self::Stale => "older than max_age",
            Self::FromTheFuture => "from the future",
        }
    }

    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
            Self::Malformed => "malformed",
            Self::OtherVersion => "other_version",
            Self::UnknownSigner => "unknown_signer",
            Self::BadSignature => "bad_signature",
            Self::OtherQuestion => "other_question",
            Self::Stale => "stale",
            Self::FromTheFuture => "from_the_future",
        }
    }
}

/// Terms on which a reader accepts an entry.
#[derive(Clone, Debug)]
pub struct EntryTerms {
    pub signers: Vec<EntrySigner>,
    pub max_age: Duration,
    /// Bytes of an entry.
    pub max_bytes: usize,
}

/// A verified entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedEntry {
    /// Encoded reply, as in the local cache.
    pub reply: String,
    /// Name of the model that answered, at most 256 bytes of it.
    pub model: String,
    /// Name of the signer in the policy.
    pub signer: String,
    /// Seconds since 1970.
    pub time: i64,
}

impl SignedEntry {
    /// Returns true if the signature covers the name of this model.
    pub fn is_of_model(&self, name: &str) -> bool {
        self.model == crate::text::first_bytes(name, MAX_MODEL)
    }
}

/// Encodes and signs an entry. `reply` is the encoding of the local cache, and `now` is in seconds
/// since 1970.
pub fn seal(key: &ReplyKey, model: &str, reply: &str, now: i64, by: &EntryKey) -> Vec<u8> {
    let model = crate::text::first_bytes(model, MAX_MODEL);
    let signature = by.sign(&message(key, model, reply, now));
    json!({
        "version": VERSION,
        "key": key.to_hex(),
        "model": model,
        "time": now,
        "signer": STANDARD.encode(by.public()),
        "signature": STANDARD.encode(signature),
        "reply": reply,
    })
    .to_string()
    .into_bytes()
}

/// Parses and verifies an entry for a question.
///
/// # Errors
///
/// The defect for which it does not count. The signature is checked before the key of the question,
/// so that `OtherQuestion` always means a genuine answer in the wrong place.
pub fn open(
    bytes: &[u8],
    key: &ReplyKey,
    terms: &EntryTerms,
    now: i64,
) -> Result<SignedEntry, EntryDefect> {
    let envelope = Envelope::parse(bytes, terms)?;
    let signer = envelope.verify(terms)?;
    if envelope.key != *key {
        return Err(EntryDefect::OtherQuestion);
    }
    check_age(envelope.time, terms, now)?;
    Ok(SignedEntry {
        reply: envelope.reply,
        model: envelope.model,
        signer,
        time: envelope.time,
    })
}

/// Checks an entry without a question: by the name that it has in the store.
///
/// # Errors
///
/// Same as [`open`]; `OtherQuestion` if the entry has another name.
pub fn inspect(
    bytes: &[u8],
    name: &str,
    terms: &EntryTerms,
    now: i64,
) -> Result<SignedEntry, EntryDefect> {
    let key = ReplyKey::from_hex(name).ok_or(EntryDefect::OtherQuestion)?;
    open(bytes, &key, terms, now)
}

/// A parsed entry that is not verified.
struct Envelope {
    key: ReplyKey,
    model: String,
    reply: String,
    time: i64,
    signer: VerifyingKey,
    signature: Vec<u8>,
}

impl Envelope {
    /// Parses an entry within the bounds of the terms.
    fn parse(bytes: &[u8], terms: &EntryTerms) -> Result<Self, EntryDefect> {
        if bytes.len() > terms.max_bytes {
            return Err(EntryDefect::TooLarge);
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|_| EntryDefect::Malformed)?;
        if value["version"].as_u64().ok_or(EntryDefect::Malformed)? != VERSION {
            return Err(EntryDefect::OtherVersion);
        }
        Self::of(&value).ok_or(EntryDefect::Malformed)
    }

    /// Reads the fields of an entry.
    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            key: ReplyKey::from_hex(value["key"].as_str()?)?,
            model: value["model"]
                .as_str()
                .filter(|m| m.len() <= MAX_MODEL)?
                .to_owned(),
            reply: value["reply"].as_str()?.to_owned(),
            time: value["time"].as_i64()?,
            signer: STANDARD
                .decode(value["signer"].as_str()?)
                .ok()?
                .try_into()
                .ok()?,
            signature: STANDARD.decode(value["signature"].as_str()?).ok()?,
        })
    }

    /// Verifies the signature; returns the name of the signer in the policy.
    fn verify(&self, terms: &EntryTerms) -> Result<String, EntryDefect> {
        let known = terms.signers.iter().find(|s| s.key == self.signer);
        let signer = known.ok_or(EntryDefect::UnknownSigner)?;
        let message = message(&self.key, &self.model, &self.reply, self.time);
        if !is_signed_by(&signer.key, &message, &self.signature) {
            return Err(EntryDefect::BadSignature);
        }
        Ok(signer.name.clone())
    }
}

/// Returns the defect of a time.
fn check_age(time: i64, terms: &EntryTerms, now: i64) -> Result<(), EntryDefect> {
    let oldest = now.saturating_sub(i64::try_from(terms.max_age.as_secs()).unwrap_or(i64::MAX));
    if time < oldest {
        return Err(EntryDefect::Stale);
    }
    if time > now.saturating_add(AHEAD) {
        return Err(EntryDefect::FromTheFuture);
    }
    Ok(())
}

/// Returns the signed bytes of an entry: each part with its length, so that no part can imitate the
/// border between two others.
fn message(key: &ReplyKey, model: &str, reply: &str, time: i64) -> Vec<u8> {
    let time = time.to_le_bytes();
    let parts = [
        &key.as_bytes()[..],
        model.as_bytes(),
        &time,
        reply.as_bytes(),
    ];
    framed(DOMAIN, &parts)
}

/// Joins parts with their lengths behind the name of their domain.
fn framed(domain: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut out = domain.to_vec();
    for part in parts {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(*part);
    }
    out
}

/// A sign of life of a run that is asking a question: signed, so that only a run with a key of the
/// policy can make others wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Random name of the run.
    pub holder: String,
    /// Number of the sign of life of this run, which only grows.
    pub beat: u64,
}

/// A valid lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLease {
    pub lease: Lease,
    /// Time since it was signed, in whole seconds.
    pub age: Duration,
}

/// Encodes and signs a lease. It is valid for one question.
pub fn seal_lease(key: &ReplyKey, lease: &Lease, now: i64, by: &EntryKey) -> Vec<u8> {
    let signature = by.sign(&lease_message(key, lease, now));
    json!({
        "holder": lease.holder,
        "beat": lease.beat,
        "time": now,
        "signer": STANDARD.encode(by.public()),
        "signature": STANDARD.encode(signature),
    })
    .to_string()
    .into_bytes()
}

/// Parses and verifies a lease of a question. Returns `None` if it does not count: it is forged,
/// replayed from another question, older than a few seconds, or from the future.
pub fn open_lease(bytes: &[u8], key: &ReplyKey, terms: &EntryTerms, now: i64) -> Option<SeenLease> {
    if bytes.len() > MAX_LEASE {
        return None;
    }
    let value: Value = serde_json::from_slice(bytes).ok()?;
    let lease = Lease {
        holder: value["holder"].as_str()?.to_owned(),
        beat: value["beat"].as_u64()?,
    };
    let time = value["time"].as_i64()?;
    let signer: VerifyingKey = STANDARD
        .decode(value["signer"].as_str()?)
        .ok()?
        .try_into()
        .ok()?;
    let signature = STANDARD.decode(value["signature"].as_str()?).ok()?;
    let known = terms.signers.iter().find(|s| s.key == signer)?;
    let age = now.saturating_sub(time);
    let is_near = (-LEASE_AHEAD..=FRESH).contains(&age);
    let is_genuine = is_signed_by(&known.key, &lease_message(key, &lease, time), &signature);
    (is_near && is_genuine).then(|| SeenLease {
        lease,
        age: Duration::from_secs(u64::try_from(age).unwrap_or_default()),
    })
}

/// Returns the signed bytes of a lease.
fn lease_message(key: &ReplyKey, lease: &Lease, time: i64) -> Vec<u8> {
    let parts = [
        &key.as_bytes()[..],
        lease.holder.as_bytes(),
        &lease.beat.to_le_bytes(),
        &time.to_le_bytes(),
    ];
    framed(LEASE_DOMAIN, &parts)
}

/// Returns the name of a new run: 16 random bytes.
pub fn random_holder() -> String {
    let bytes: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
    hex::encode(&bytes)
}

#[cfg(test)]
mod tests {
    use super::super::signing::tests::key_file;
    use super::*;

    const NOW: i64 = 1_800_000_000;
    const DAY: i64 = 24 * 3600;

    fn key() -> EntryKey {
        EntryKey::parse(&key_file(7, b"none").0).unwrap()
    }

    fn question(text: &str) -> ReplyKey {
        ReplyKey::of_parts(&[text])
    }

    fn terms() -> EntryTerms {
        EntryTerms {
            signers: vec![EntrySigner::parse(&key_file(7, b"none").1).unwrap()],
            max_age: Duration::from_secs(14 * 24 * 3600),
            max_bytes: 4096,
        }
    }

    fn sealed() -> Vec<u8> {
        seal(&question("a"), "m-1", "no findings", NOW, &key())
    }

    fn opened(bytes: &[u8]) -> Result<SignedEntry, EntryDefect> {
        open(bytes, &question("a"), &terms(), NOW)
    }

    /// Returns an entry with one field replaced.
    fn with(name: &str, value: Value) -> Vec<u8> {
        let mut all: Value = serde_json::from_slice(&sealed()).unwrap();
        all[name] = value;
        all.to_string().into_bytes()
    }

    #[test]
    fn flt_02_a_signed_entry_is_read_for_its_question() {
        let entry = opened(&sealed()).unwrap();
        assert_eq!(entry.reply, "no findings");
        assert_eq!((entry.model.as_str(), entry.signer.as_str()), ("m-1", "ci"));
        let name = question("a").to_hex();
        assert!(inspect(&sealed(), &name, &terms(), NOW).is_ok());
        assert_eq!(
            inspect(&sealed(), "lease", &terms(), NOW),
            Err(EntryDefect::OtherQuestion)
        );
    }

    #[test]
    fn flt_02_every_signed_field_of_an_entry_is_covered_by_its_signature() {
        for (name, value) in [
            ("model", json!("m-2")),
            ("time", json!(NOW - 1)),
            ("reply", json!("no findings at all")),
            ("key", json!(question("b").to_hex())),
            ("signature", json!(STANDARD.encode([0; 64]))),
            ("signature", json!("")),
        ] {
            let bytes = with(name, value);
            assert_eq!(opened(&bytes), Err(EntryDefect::BadSignature), "{name}");
        }
    }

    #[test]
    fn flt_02_an_entry_counts_only_for_its_question_its_signer_and_its_lifetime() {
        let other = EntryKey::parse(&key_file(8, b"none").0).unwrap();
        let replayed = seal(&question("b"), "m-1", "no findings", NOW, &key());
        assert_eq!(opened(&replayed), Err(EntryDefect::OtherQuestion));
        let foreign = seal(&question("a"), "m-1", "no findings", NOW, &other);
        assert_eq!(opened(&foreign), Err(EntryDefect::UnknownSigner));
        // The name of a known signer on the signature of another key.
        let borrowed = {
            let mut all: Value = serde_json::from_slice(&foreign).unwrap();
            all["signer"] = json!(STANDARD.encode(key().public()));
            all.to_string().into_bytes()
        };
        assert_eq!(opened(&borrowed), Err(EntryDefect::BadSignature));
        for (at, expected) in [
            (NOW - 14 * DAY, None),
            (NOW - 14 * DAY - 1, Some(EntryDefect::Stale)),
            (i64::MIN, Some(EntryDefect::Stale)),
            (NOW + AHEAD, None),
            (NOW + AHEAD + 1, Some(EntryDefect::FromTheFuture)),
            (i64::MAX, Some(EntryDefect::FromTheFuture)),
        ] {
            let bytes = seal(&question("a"), "m-1", "no findings", at, &key());
            assert_eq!(opened(&bytes).err(), expected, "{at}");
        }
        assert_eq!(
            opened(&with("version", json!(2))),
            Err(EntryDefect::OtherVersion)
        );
    }

    #[test]
    fn flt_02_no_part_of_an_entry_and_no_changed_byte_of_it_counts() {
        let sealed = sealed();
        for end in 0..sealed.len() {
            assert_eq!(opened(&sealed[..end]), Err(EntryDefect::Malformed), "{end}");
        }
        let original = opened(&sealed);
        for at in 0..sealed.len() {
            for bit in [1, 4, 32, 128] {
                let mut changed = sealed.clone();
                changed[at] ^= bit;
                // Unused bits of base64 and other spellings of JSON may remain readable, but what
                // is read is what was signed.
                let read = opened(&changed);
                assert!(read.is_err() || read == original, "byte {at}, bit {bit}");
            }
        }
        let mut large = sealed;
        large.resize(4097, b' ');
        assert_eq!(opened(&large), Err(EntryDefect::TooLarge));
    }

    #[test]
    fn a_lease_counts_for_its_question_and_its_time_only() {
        let lease = Lease {
            holder: random_holder(),
            beat: 3,
        };
        let sealed = seal_lease(&question("a"), &lease, NOW, &key());
        assert!(sealed.len() < MAX_LEASE);
        let seen = |now| open_lease(&sealed, &question("a"), &terms(), now);
        for (age, counted) in [(-1, 0), (0, 0), (5, 5)] {
            let age_seen = Duration::from_secs(counted);
            let expected = SeenLease {
                lease: lease.clone(),
                age: age_seen,
            };
            assert_eq!(seen(NOW + age), Some(expected), "{age}");
        }
        // One that is further in the future could be repeated for longer.
        for age in [-2, -5, 6, i64::MAX - NOW] {
            assert_eq!(seen(NOW + age), None, "{age}");
        }
        assert_eq!(open_lease(&sealed, &question("b"), &terms(), NOW), None);
        assert_eq!(open_lease(&sealed, &question("a"), &terms(), NOW + 6), None);
        for end in 0..sealed.len() {
            assert_eq!(
                open_lease(&sealed[..end], &question("a"), &terms(), NOW),
                None
            );
        }
        let mut terms = terms();
        terms.signers.clear();
        assert_eq!(open_lease(&sealed, &question("a"), &terms, NOW), None);
    }
}
