//! Private keys that parse: the text below a PEM header is a key that a program would load.
//!
//! Text about keys shows headers, truncated bodies and invented ones. A body that decodes to a
//! complete structure (PKCS#1 and PKCS#8, RFC 8017 and 5958; SEC 1, RFC 5915; DSA as OpenSSL writes
//! it; `openssh-key-v1`) is a key in any context. An encrypted key grants no access by itself and
//! does not count.

use super::SecretCandidate;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};

/// Bytes below a header that are read, at most: four times an RSA key of 16,384 bits.
const BODY_MAX: usize = 64 << 10;
/// Bytes of an RSA modulus or a DSA prime, at least: 512 bits.
const PRIME_MIN: usize = 64;
/// Base64 without padding, which is removed before. Some writers do not clear the unused bits of
/// the last digit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::RequireNone)
        .with_decode_allow_trailing_bits(true),
);

/// Returns true if a complete private key without encryption follows the header.
pub(super) fn parses(c: &SecretCandidate<'_>) -> bool {
    let text = following(c, BODY_MAX);
    let lines = body(&text);
    // OpenSSL writes this header for an encrypted body.
    if lines.iter().any(|l| contains(l, b"ENCRYPTED")) {
        return false;
    }
    let every: Vec<u8> = lines
        .iter()
        .flat_map(|l| runs(l))
        .filter(|r| *r != b"+")
        .flatten()
        .copied()
        .collect();
    let longest: Vec<u8> = lines
        .iter()
        .filter_map(|l| runs(l).max_by_key(|r| r.len()))
        .flatten()
        .copied()
        .collect();
    is_key(&every) || is_key(&longest)
}

/// Returns the text between a header and the next header or footer, at most `most` bytes on each
/// side of the end of the candidate's line. This makes the work on a text full of headers linear.
pub(super) fn following(c: &SecretCandidate<'_>, most: usize) -> Vec<u8> {
    let (tail, is_whole) = before_edge(c.tail(), most);
    let after = if is_whole {
        before_edge(c.after, most).0
    } else {
        &[]
    };
    [tail, after].concat()
}

/// Returns a text up to the first header or footer, and true if it has none.
fn before_edge(text: &[u8], most: usize) -> (&[u8], bool) {
    let text = &text[..text.len().min(most)];
    let mut dashes = memchr::memmem::find_iter(text, b"-----");
    let edge = dashes.find(|at| {
        [&b"BEGIN "[..], b"END "]
            .iter()
            .any(|e| text[at + 5..].starts_with(e))
    });
    (&text[..edge.unwrap_or(text.len())], edge.is_none())
}

fn contains(text: &[u8], needle: &[u8]) -> bool {
    memchr::memmem::find(text, needle).is_some()
}

/// Returns the lines of a body: lines of the file, and lines that a string literal separates with
/// `\n`. PEM headers (`Proc-Type: …`) that do not concern encryption are left out.
fn body(text: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    for line in text.split(|b| *b == b'\n') {
        let mut rest = line;
        while let Some(at) = memchr::memmem::find(rest, b"\\n") {
            lines.push(&rest[..at]);
            rest = &rest[at + 2..];
        }
        lines.push(rest);
    }
    lines.retain(|l| !contains(l, b": ") || contains(l, b"ENCRYPTED"));
    for line in &mut lines {
        *line = line.strip_suffix(b"\\r").unwrap_or(line);
    }
    lines
}

/// Returns the runs of Base64 digits in a line.
fn runs(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'/'))
        .filter(|r| !r.is_empty())
}

fn is_key(digits: &[u8]) -> bool {
    let Ok(bytes) = BASE64.decode(digits) else {
        return false;
    };
    match bytes.strip_prefix(b"openssh-key-v1\0") {
        Some(rest) => is_openssh(rest),
        None => is_der(&bytes),
    }
}

/// Parses `openssh-key-v1`: names of cipher and key derivation, one public part, one private part.
/// The private part starts with the same number twice, which shows a correct passphrase.
fn is_openssh(mut rest: &[u8]) -> bool {
    let (cipher, _, _) = (string(&mut rest), string(&mut rest), string(&mut rest));
    if cipher != Some(b"none") || number(&mut rest) != Some(1) {
        return false;
    }
    let (public, private) = (string(&mut rest), string(&mut rest));
    let Some(mut private) = private.filter(|p| p.len() >= 64 && public.is_some()) else {
        return false;
    };
    number(&mut private).is_some_and(|n| number(&mut private) == Some(n))
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (head, tail) = rest.split_first_chunk::<4>()?;
    *rest = tail;
    Some(u32::from_be_bytes(*head))
}

fn string<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = number(rest)? as usize;
    let (head, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(head)
}

const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// `rsaEncryption`, whose key in PKCS#8 is one of PKCS#1.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// Returns true for PKCS#1, PKCS#8, SEC 1 and OpenSSL's form of DSA.
fn is_der(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    let Some((SEQUENCE, content)) = element(&mut rest) else {
        return false;
    };
    let Some(parts) = elements(content) else {
        return false;
    };
    match parts.as_slice() {
        [(INTEGER, _), (SEQUENCE, algorithm), (OCTETS, key), ..] => {
            let named = elements(algorithm).and_then(|parts| parts.first().copied());
            match named {
                Some((OBJECT, RSA)) => is_der(key),
                Some((OBJECT, _)) => key.len() >= 20,
                _ => false,
            }
        }
        [(INTEGER, [1]), (OCTETS, key), ..] => (16..=72).contains(&key.len()) && is_varied(key),
        [(INTEGER, _), (INTEGER, prime), rest @ ..] => {
            // Seven more numbers of RSA, four more of DSA.
            let all = rest
                .iter()
                .all(|(tag, n)| matches!(*tag, INTEGER | SEQUENCE) && !n.is_empty());
            all && rest.len() >= 4 && prime.len() >= PRIME_MIN && is_varied(prime)
        }
        _ => false,
    }
}

/// Returns true for bytes that a generator can return, as opposed to zeros.
fn is_varied(bytes: &[u8]) -> bool {
    let mut seen = [false; 256];
    bytes.iter().for_each(|b| seen[usize::from(*b)] = true);
    seen.iter().filter(|s| **s).count() >= 8
}

/// Reads all elements of a content. `None`: one of them is truncated.
fn elements(mut content: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut out = Vec::new();
    while !content.is_empty() && out.len() < 16 {
        out.push(element(&mut content)?);
    }
    Some(out)
}

/// Reads a tag, a definite length (X.690) and the content of that length.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (head, tail) = rest.split_first_chunk::<2>()?;
    let (length, tail) = match head[1] {
        short @ 0..0x80 => (usize::from(short), tail),
        long => {
            let count = usize::from(long & 0x7f);
            let (digits, tail) = tail.split_at_checked(count)?;
            if count == 0 || count > 4 {
                return None;
            }
            (digits.iter().fold(0, |n, b| n << 8 | usize::from(*b)), tail)
        }
    };
    let (content, tail) = tail.split_at_checked(length)?;
    *rest = tail;
    Some((head[0], content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::sample;

    fn key(kind: &str) -> String {
        sample::expand(&format!("${{pem-key:{kind}}}"), kind)
    }

    fn found(line: &str, after: &str) -> bool {
        let header = "-----BEGIN PRIVATE KEY-----";
        let at = line.find(header).unwrap();
        let after = format!("\n{after}");
        let (line, after) = (line.as_bytes(), after.as_bytes());
        parses(&SecretCandidate {
            secret: header.as_bytes(),
            line,
            at,
            after,
            path: b"",
        })
    }

    const HEADER: &str = "-----BEGIN PRIVATE KEY-----";
    const FOOTER: &str = "-----END PRIVATE KEY-----";

    #[test]
    fn hid_12_every_kind_of_private_key_parses_however_it_is_quoted() {
        for kind in ["rsa", "ec", "dsa", "pkcs8", "ed25519", "openssh"] {
            let body = key(kind);
            let lines: Vec<&str> = body.lines().collect();
            assert!(found(HEADER, &format!("{body}\n{FOOTER}\n")), "{kind}");
            assert!(
                found(HEADER, &format!("{}\r\n{FOOTER}\r\n", lines.join("\r\n"))),
                "{kind}"
            );
            assert!(
                found(
                    &format!("k = '{HEADER}\\n{}\\n{FOOTER}'", lines.join("\\n")),
                    ""
                ),
                "{kind}"
            );
            assert!(
                found(&format!("{HEADER} {} {FOOTER}", lines.join(" ")), ""),
                "{kind}"
            );
            assert!(found(
                &format!("k = \"{HEADER}\\n\" +"),
                &format!("  \"{}\\n\" +\n", lines.join("\\n\" +\n  \""))
            ));
            assert!(
                found(
                    &format!("> {HEADER}"),
                    &format!("> {}\n> {FOOTER}\n", lines.join("\n> "))
                ),
                "{kind}"
            );
            assert!(
                found(
                    &format!("// {HEADER}"),
                    &format!("// {}\n", lines.join("\n// "))
                ),
                "{kind}"
            );
        }
    }

    #[test]
    fn hid_12_a_cut_made_up_or_encrypted_key_does_not_parse() {
        for kind in ["rsa", "ec", "dsa", "pkcs8", "ed25519", "openssh"] {
            let body = key(kind);
            let half = &body[..body.len() / 2];
            assert!(
                !found(HEADER, &format!("{half}\n...\n{FOOTER}\n")),
                "{kind}"
            );
            let encrypted =
                format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n{body}\n{FOOTER}\n");
            assert!(!found(HEADER, &encrypted), "{kind}");
        }
        assert!(!found(
            HEADER,
            &format!("{}\n{FOOTER}\n", key("openssh-encrypted"))
        ));
        for text in [
            "",
            "...\n",
            "MIIEpAIBAAKCAQEA...\n",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
        ] {
            assert!(!found(HEADER, &format!("{text}{FOOTER}\n")), "{text}");
        }
        let noise = sample::expand("${pem-body}\n${pem-body}\n", "noise");
        assert!(!found(HEADER, &noise));
        assert!(!found(
            &format!("if text.starts_with(\"{HEADER}\") {{"),
            "    return parse(text);\n}\n"
        ));
    }
}
