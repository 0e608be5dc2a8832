//! Secrets that are identified by their form alone: keys in DER, tokens of bots, and text that
//! seems to be generated.

use super::{SecretSpan, rank};
use crate::rules::decode;
use crate::rules::secret::{encoded, shape, words};
use std::ops::Range;

/// Characters of a run that is checked, at least.
const LEAST: usize = 27;
/// Characters of a token that only its form identifies.
const BARE: Range<usize> = 32..201;
/// Bytes before a run that can contain its name.
const NAMED_WITHIN: usize = 160;
/// Lines of a key, at most.
const KEY_LINES: usize = 400;

/// Finds secrets among the runs of letters, digits, `+`, `/`, `-` and `_`. Linear.
pub(super) fn find(text: &[u8], out: &mut Vec<SecretSpan<'_>>) {
    let public = public_blocks(text);
    let mut done = 0;
    decode::runs(text, LEAST, |run| {
        if run.start < done {
            return;
        }
        if let Some(key) = der_key(text, &run) {
            done = key.last().map_or(run.end, |line| line.end);
            out.extend(
                key.into_iter()
                    .map(|line| SecretSpan::new(line, super::KEY, rank::KNOWN)),
            );
        } else if let Some(bot) = bot_token(text, &run) {
            out.push(bot);
        } else if is_uuid_key(text, &run) {
            out.push(SecretSpan::new(run, "hardcoded-credential", rank::NAMED));
        } else if is_bare(text, &run) && !within(&public, run.start) {
            out.push(SecretSpan::new(run, "high-entropy-token", rank::FORM));
        }
    });
}

/// Returns public texts that only seem random: certificates, public keys, signatures.
fn public_blocks(text: &[u8]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"-----BEGIN ") {
        let label = &text[at..text.len().min(at + 48)];
        if out.last().is_some_and(|r| at < r.end)
            || memchr::memmem::find(label, b"PRIVATE").is_some()
        {
            continue;
        }
        let end = memchr::memmem::find(&text[at..], b"-----END").map_or(text.len(), |i| at + i);
        out.push(at..end);
    }
    out
}

fn within(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|r| r.end <= at);
    ranges.get(next).is_some_and(|r| r.start <= at)
}

/// Returns the lines of a private key that starts with a run: Base64 of DER whose first field is a
/// version (PKCS#1, PKCS#8, SEC 1), or of OpenSSH's own format.
fn der_key(text: &[u8], run: &Range<usize>) -> Option<Vec<Range<usize>>> {
    let start = &text[run.clone()];
    if !start.starts_with(b"b3BlbnNzaC1rZXktdjE") && !starts_der(start) {
        return None;
    }
    let mut lines = vec![run.clone()];
    let mut at = run.end;
    for _ in 0..KEY_LINES {
        let gap = key_gap(&text[at..]);
        let rest = text.get(at + gap..)?;
        let length = rest.iter().take_while(|b| is_key_sign(**b)).count();
        if gap == 0 || length < 4 {
            break;
        }
        lines.push(at + gap..at + gap + length);
        at += gap + length;
        // The last line of a key is shorter.
        if length < 40 {
            break;
        }
    }
    Some(lines)
}

fn is_key_sign(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

/// Returns the length of the text between two lines of a quoted key: `\n" +` and the next quote.
fn key_gap(text: &[u8]) -> usize {
    let mut at = 0;
    let mut ended = false;
    while at < text.len().min(96) {
        match text[at] {
            b'\\' if matches!(text.get(at + 1), Some(b'n' | b'r')) => {
                ended = true;
                at += 2;
            }
            b'\n' => {
                ended = true;
                at += 1;
            }
            b'=' | b' ' | b'\t' | b'\r' | b'"' | b'\'' | b'`' | b',' | b'\\' | b'>' | b'|'
            | b'.' | b'#' | b'&' => {
                at += 1;
            }
            b'+' if !text.get(at + 1).is_some_and(|b| b.is_ascii_alphanumeric()) => at += 1,
            _ => break,
        }
    }
    if ended { at } else { 0 }
}

/// Returns true if Base64 has the start of a private key in DER: a sequence whose first element is
/// a version 0, 1 or 3.
fn starts_der(run: &[u8]) -> bool {
    if run.first() != Some(&b'M') || run.len() < 40 {
        return false;
    }
    let Some(bytes) = decode::decode(&run[..32]) else {
        return false;
    };
    let Some(rest) = inside(&bytes) else {
        return false;
    };
    match rest {
        // PKCS#1 and SEC 1: an integer or an octet string follows; PKCS#8: the sequence that names
        // an algorithm.
        [2, 1, 0 | 1 | 3, 2 | 4 | 0x30, ..] => true,
        // Encrypted PKCS#8: the sequence of PBES1, PBES2 or PKCS#12.
        [0x30, _, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 5, ..] => true,
        [
            0x30,
            _,
            6,
            10,
            0x2a,
            0x86,
            0x48,
            0x86,
            0xf7,
            0x0d,
            1,
            12,
            ..,
        ] => true,
        _ => false,
    }
}

/// Returns the content of a sequence.
fn inside(der: &[u8]) -> Option<&[u8]> {
    match der {
        [0x30, length, rest @ ..] if *length < 0x80 => Some(rest),
        [0x30, 0x81, _, rest @ ..] | [0x30, 0x82, _, _, rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Returns a token of Telegram (`123456789:…`), Discord (`id.time.signature`) or SendGrid
/// (`SG.id.key`).
fn bot_token(text: &[u8], run: &Range<usize>) -> Option<SecretSpan<'static>> {
    let length = run.len();
    let before = &text[run.start.saturating_sub(48)..run.start];
    if (30..=50).contains(&length) && before.ends_with(b":") {
        let digits = before[..before.len() - 1]
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        let token = &text[run.clone()];
        let mixed =
            token.iter().any(u8::is_ascii_uppercase) && token.iter().any(u8::is_ascii_lowercase);
        if (6..=12).contains(&digits) && mixed {
            return Some(SecretSpan::new(
                run.start - 1 - digits..run.end,
                "telegram-bot-token",
                rank::KNOWN,
            ));
        }
    }
    let mut parts = before.rsplit(|b| *b == b'.');
    let (none, time, id) = (parts.next()?, parts.next()?, parts.next()?);
    let word = id
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'-'));
    let id = &id[id.len() - word.count()..];
    let whole = id.len() + time.len() + 2;
    if none.is_empty() && id == b"SG" && time.len() >= 16 {
        return Some(SecretSpan::new(
            run.start - whole..run.end,
            "sendgrid-key",
            rank::KNOWN,
        ));
    }
    let is_discord = none.is_empty() && (5..=7).contains(&time.len()) && encoded::discord_id(id);
    is_discord
        .then(|| SecretSpan::new(run.start - whole..run.end, "discord-bot-token", rank::KNOWN))
}

/// Returns true for a UUID near the name of a vendor or a word for a secret, and not near a word
/// for an identifier.
fn is_uuid_key(text: &[u8], run: &Range<usize>) -> bool {
    if !std::str::from_utf8(&text[run.clone()]).is_ok_and(shape::is_uuid) {
        return false;
    }
    #[rustfmt::skip]
    const VENDORS: &[&str] = &[
        "heroku", "snyk", "codecov", "postmark", "splunk", "scaleway", "scw_", "pagerduty", "sendinblue", "newrelic",
        "new_relic", "mailjet", "opsgenie", "twitch", "coveralls", "loggly", "logentries", "papertrail", "bugsnag",
        "rollbar", "honeybadger", "sumologic", "zapier", "confluent", "contentful", "branch.io", "airbrake", "vonage",
        "messagebird", "cloudsmith", "appcenter", "app_center", "testrail", "zoom", "freshdesk", "statuspage",
        "x-api-key", "ably", "elastic", "kibana", "ngrok", "harvest", "fal.", "fal_", "tempo", "unleash", "ghost",
    ];
    const WORDS: &[&str] = &[
        "secret",
        "token",
        "passw",
        "pwd",
        "apikey",
        "api_key",
        "api-key",
        "api key",
        "access_key",
        "access-key",
        "accesskey",
        "bearer",
        "authorization",
        "credential",
        "license_key",
        "licensekey",
        "auth_key",
        "authkey",
        "private_key",
        "privatekey",
        "_key",
        "clientkey",
    ];
    let from = run.start.saturating_sub(NAMED_WITHIN);
    let before = String::from_utf8_lossy(&text[from..run.start]).to_ascii_lowercase();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let name = line.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.ends_with("id") || name.ends_with("uuid") || name.ends_with("guid") {
        return false;
    }
    let above: String = before.rsplit('\n').take(4).collect::<Vec<_>>().join("\n");
    let keyed = name.ends_with("key")
        || name.ends_with("auth")
        || name.ends_with("value")
        || name.ends_with("pass");
    WORDS.iter().any(|w| line.contains(w))
        || VENDORS.iter().any(|v| line.contains(v))
        || keyed && VENDORS.iter().chain(WORDS).any(|v| above.contains(v))
}

/// Returns true if a run seems to be generated and no text identifies it as a digest or a public
/// key.
fn is_bare(text: &[u8], run: &Range<usize>) -> bool {
    let token = &text[run.clone()];
    if !BARE.contains(&token.len()) || token.iter().all(u8::is_ascii_hexdigit) {
        return false;
    }
    let lower = token.iter().filter(|b| b.is_ascii_lowercase()).count();
    let upper = token.iter().filter(|b| b.is_ascii_uppercase()).count();
    let digits = token.iter().filter(|b| b.is_ascii_digit()).count();
    if lower < 3 || upper < 3 || digits < 2 || shape::entropy(token) < 3.8 {
        return false;
    }
    let Ok(word) = std::str::from_utf8(token) else {
        return false;
    };
    // Names joined by punctuation are paths and identifiers.
    let joiners = token
        .iter()
        .filter(|b| matches!(b, b'-' | b'_' | b'/'))
        .count();
    let wordy = shape::wordiness(word);
    wordy < if joiners > 3 { 0.25 } else { 0.4 }
        && shape::longest_run(token) < 6
        && shape::longest_sequence(token) < 8
        && !words::is_filler(word)
        && !is_digest(text, run)
}

/// Returns true if the text before a run identifies it as a digest, a public key or an image.
fn is_digest(text: &[u8], run: &Range<usize>) -> bool {
    #[rustfmt::skip]
    const STARTS: &[&[u8]] = &[
        b"sha1-", b"sha224-", b"sha256-", b"sha384-", b"sha512-", b"md5-", b"AAAAB3Nza", b"AAAAC3Nza", b"AAAAE2Vj",
        b"AAAAG", b"MFkwEwYH", b"MIIBIjAN", b"MIICIjAN", b"MCowBQYD",
    ];
    #[rustfmt::skip]
    const NAMES: &[&str] = &[
        "sha1", "sha224", "sha256", "sha384", "sha512", "sha-", "h1:", "md5", "hash", "digest", "checksum",
        "integrity", "etag", "fingerprint", "base64,", "mappings", "blake", "crc", "signature\"", "narhash",
        "thumbprint", "public", "commit", "revision",
    ];
    let token = &text[run.clone()];
    let line = memchr::memrchr(b'\n', &text[run.start.saturating_sub(48)..run.start]);
    let from = line.map_or(run.start.saturating_sub(48), |i| {
        run.start.saturating_sub(48) + i + 1
    });
    let before = String::from_utf8_lossy(&text[from..run.start]).to_ascii_lowercase();
    STARTS.iter().any(|s| token.starts_with(s)) || NAMES.iter().any(|n| before.contains(n))
}
