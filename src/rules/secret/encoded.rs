//! Secrets with readable content: key files, web tokens, encoded user names.

use super::jwt::URL_SAFE;
use super::{SecretCandidate, credential, key, shape, words};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use std::ops::Range;

/// Lines from a header on that are searched for the first line of its body, at most.
const BODY_LINES: usize = 9;
/// Bytes of them on each side of a line's end, at most.
const BODY_MAX: usize = 4 << 10;

/// Returns true if the header of a private key has a body: Base64 on the same line or on the next
/// lines.
///
/// Code and documents mention the header far more often than they contain a key.
pub(super) fn private_key_body(c: &SecretCandidate<'_>) -> bool {
    // `const TEST_FAKE_KEY: &str = "-----BEGIN …`
    let name = String::from_utf8_lossy(c.head()).to_ascii_lowercase();
    if ["test", "fake", "mock", "dummy", "example", "sample"]
        .iter()
        .any(|w| name.contains(w))
    {
        return false;
    }
    let text = key::following(c, BODY_MAX);
    for (i, line) in text.split(|b| *b == b'\n').take(BODY_LINES).enumerate() {
        if let Some(run) = longest_base64(line)
            && run.len() >= if i == 0 { 40 } else { 44 }
        {
            let text = std::str::from_utf8(run).unwrap_or_default();
            return shape::longest_run(run) < 12
                && shape::entropy(&run[..run.len().min(64)]) >= 3.4
                && !cut(line)
                && !text.to_ascii_lowercase().contains("example");
        }
    }
    false
}

/// Returns true for a body that is cut off with dots, which is only an illustration of a key.
fn cut(line: &[u8]) -> bool {
    line.windows(3).any(|w| w == b"...") || line.windows(3).any(|w| w == "…".as_bytes())
}

fn longest_base64(line: &[u8]) -> Option<&[u8]> {
    line.split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')))
        .max_by_key(|run| run.len())
}

/// Digits of a run before a secret, from which on the secret is a part of encoded data.
const RUN: usize = 400;

/// Returns true if a secret is behind `+` or `/` and at least [`RUN`] Base64 digits in all: data
/// such as an image or an index contains every prefix by chance.
pub(crate) fn is_inside(line: &[u8], secret: &Range<usize>) -> bool {
    let before = &line[..secret.start];
    let is_digit = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    before.last().is_some_and(|b| matches!(b, b'+' | b'/'))
        && before.iter().rev().take(RUN).take_while(is_digit).count() == RUN
}

/// Returns true if Base64 text decodes to `user:password` with a plausible password.
pub(super) fn basic_auth(text: &[u8]) -> bool {
    let text = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    let Ok(bytes) = STANDARD_NO_PAD.decode(text) else {
        return false;
    };
    let Some((user, password)) = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|t| t.split_once(':'))
    else {
        return false;
    };
    user.bytes().all(|b| b.is_ascii_graphic())
        && !user.eq_ignore_ascii_case(password)
        && !user.to_ascii_lowercase().contains("example")
        && credential::is_password(password, credential::Bar::Normal)
}

/// Returns true if the first part of a Discord token is a user's number.
///
/// <https://discord.com/developers/docs/reference#snowflakes>
pub(crate) fn discord_id(token: &[u8]) -> bool {
    let id = token.split(|b| *b == b'.').next().unwrap_or_default();
    let Ok(bytes) = URL_SAFE.decode(id) else {
        return false;
    };
    (17..=20).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_digit)
}

/// Returns true if the part after the first `-` is Base64 that starts with these bytes.
pub(super) fn decodes_to(token: &[u8], start: &[u8]) -> bool {
    let Some(at) = token.iter().position(|b| *b == b'-') else {
        return false;
    };
    let body = &token[at + 1..];
    let whole = body.len() - body.len() % 4;
    URL_SAFE
        .decode(&body[..whole])
        .is_ok_and(|bytes| bytes.starts_with(start))
}

/// Returns true if the token contains Base64 of a JSON object, after its last `_` or from its
/// start.
pub(super) fn base64_json(token: &[u8]) -> bool {
    let Some(at) = token.windows(3).position(|w| w == b"eyJ") else {
        return false;
    };
    let body: Vec<u8> = token[at..]
        .iter()
        .map(|b| {
            if *b == b'+' {
                b'-'
            } else if *b == b'/' {
                b'_'
            } else {
                *b
            }
        })
        .collect();
    let end = body
        .iter()
        .position(|b| matches!(b, b'=' | b'.'))
        .unwrap_or(body.len());
    let end = body[..end]
        .iter()
        .rposition(|b| *b == b'_')
        .filter(|i| token[at + i] == b'_')
        .unwrap_or(end);
    URL_SAFE
        .decode(&body[..end - end % 4])
        .is_ok_and(|b| b.starts_with(b"{\"") && b.len() >= 12)
}

/// Returns true if Base64 text in a manifest of secrets decodes to a password or a key.
pub(super) fn base64_secret_text(c: &SecretCandidate<'_>) -> bool {
    let text = c.secret;
    let bare = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    let Ok(bytes) = STANDARD_NO_PAD.decode(bare) else {
        return false;
    };
    let Ok(value) = std::str::from_utf8(&bytes) else {
        // A key as bytes.
        return bytes.len() >= 16
            && std::str::from_utf8(text).is_ok_and(shape::is_random)
            && !bytes.starts_with(b"\x30\x82");
    };
    let value = value.trim();
    if value.contains("-----BEGIN") {
        return value.contains("PRIVATE KEY-----");
    }
    !words::is_reference(value) && credential::is_password(value, credential::Bar::Normal)
}

/// Returns true if a value of a Kubernetes Secret under any key seems generated, literally or
/// decoded. Names of users and hosts are as frequent there as passwords.
pub(super) fn kubernetes_value(c: &SecretCandidate<'_>) -> bool {
    let text = c.secret;
    let bare = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    let decoded = STANDARD_NO_PAD
        .decode(bare)
        .ok()
        .filter(|_| text.len().is_multiple_of(4));
    match decoded.as_deref().map(std::str::from_utf8) {
        Some(Ok(value)) if value.contains("-----BEGIN") => value.contains("PRIVATE KEY-----"),
        Some(Ok(value)) => credential::is_generated(value.trim()),
        Some(Err(_)) if base64_secret_text(c) => true,
        _ => c.text().is_some_and(credential::is_generated),
    }
}

/// Returns true if Google's key management encrypted a value, which cannot be read without the key
/// in that service: a message with a field of 36 bytes that names the key, and a field with the
/// ciphertext.
///
/// <https://cloud.google.com/build/docs/securing-builds/use-encrypted-credentials>
pub(super) fn is_encrypted(value: &str) -> bool {
    let Ok(bytes) = STANDARD_NO_PAD.decode(value.trim_end_matches('=')) else {
        return false;
    };
    let named = bytes
        .strip_prefix(b"\x0a\x24\x00")
        .and_then(|rest| rest.get(35..));
    let (length, held) = match named {
        Some([0x12, n @ ..0x80, held @ ..]) => (usize::from(*n), held),
        Some([0x12, low, high @ ..0x80, held @ ..]) => {
            (usize::from(low & 0x7f) | usize::from(*high) << 7, held)
        }
        _ => return false,
    };
    // At least an initial value and a tag.
    (28..=held.len()).contains(&length)
}

/// Returns true if Base64 text decodes to readable text that is not a password: `changeme`, a name,
/// a sentence.
pub(super) fn hides_stand_in(text: &str) -> bool {
    let text = text.as_bytes();
    if text.len() < 8 || !text.len().is_multiple_of(4) {
        return false;
    }
    let bare = text
        .strip_suffix(b"==")
        .or_else(|| text.strip_suffix(b"="))
        .unwrap_or(text);
    let Ok(bytes) = STANDARD_NO_PAD.decode(bare) else {
        return false;
    };
    bytes
        .iter()
        .all(|b| b.is_ascii_graphic() || matches!(b, b' ' | b'\n'))
        && std::str::from_utf8(&bytes)
            .is_ok_and(|t| !credential::is_password(t.trim(), credential::Bar::Normal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    fn has_body(line: &str, after: &str) -> bool {
        let secret = "-----BEGIN RSA PRIVATE KEY-----";
        let at = line.find(secret).expect("the header");
        let after = format!("\n{after}");
        let (line, after) = (line.as_bytes(), after.as_bytes());
        private_key_body(&SecretCandidate {
            secret: secret.as_bytes(),
            line,
            at,
            after,
            path: b"a",
        })
    }

    fn body() -> String {
        let mut state = 9u32;
        super::super::generate::generate("pem-body", &mut |n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % n
        })
        .expect("a body")
    }

    #[test]
    fn a_secret_within_a_long_run_of_base64_is_a_part_of_encoded_data() {
        let secret = "EAAB".repeat(30);
        let inside = |before: &str, after: &str| {
            let line = format!("{before}{secret}{after}");
            let span = before.len()..before.len() + secret.len();
            is_inside(line.as_bytes(), &span)
        };
        let run = "AAA+B/CC".repeat(60);
        assert!(inside(&format!("x = \"{run}/"), "\""));
        assert!(!inside("/", &run), "the start of a text");
        assert!(!inside("", &format!("/{run}")), "the start of a text");
        assert!(
            !inside(&format!("\"{run}\", \""), "\""),
            "a value of its own"
        );
        assert!(
            !inside("https://example.com/", "/more"),
            "a part of an address"
        );
        assert!(!inside("token=", ""));
    }

    #[test]
    fn wants_a_body_behind_the_header_of_a_key() {
        let plain = "-----BEGIN RSA PRIVATE KEY-----";
        let body = body();
        assert!(has_body(plain, &body));
        assert!(has_body(
            plain,
            &format!("Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n{body}\n")
        ));
        assert!(has_body(&format!("{plain}\\n{body}\\n"), ""));
        assert!(has_body(
            &format!("key = \"{plain}\\n\" +"),
            &format!("  \"{body}\\n\" +")
        ));
        for (line, after) in [
            (plain, ""),
            (
                "if text.contains(\"-----BEGIN RSA PRIVATE KEY-----\") {",
                "    return parse(text);\n}\n",
            ),
            (
                plain,
                "MIIEpAIBAAKCAQEA0Z3VS5JJcds3...\n-----END RSA PRIVATE KEY-----\n",
            ),
            (plain, "...\n-----END RSA PRIVATE KEY-----\n"),
            (
                plain,
                "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n",
            ),
        ] {
            assert!(!has_body(line, after), "{line} {after}");
        }
    }

    fn noise(n: usize, seed: u32) -> impl Iterator<Item = u8> {
        (0..n).scan(seed, |s, _| {
            *s = s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            Some((*s >> 16) as u8)
        })
    }

    #[test]
    fn tells_what_a_key_service_encrypted() {
        fn made(head: &[u8], length: &[u8], n: usize) -> String {
            let bytes: Vec<u8> = head
                .iter()
                .copied()
                .chain(noise(35, 1))
                .chain([0x12])
                .collect();
            STANDARD.encode([bytes, length.to_vec(), noise(n, 2).collect()].concat())
        }
        assert!(is_encrypted(&made(b"\x0a\x24\x00", &[52], 52)));
        assert!(is_encrypted(&made(b"\x0a\x24\x00", &[0x80 | 44, 1], 172)));
        for other in [
            made(b"\x0a\x24\x01", &[52], 52),
            made(b"\x0a\x23\x00", &[52], 52),
            made(b"\x0a\x24\x00", &[60], 52),
            made(b"\x0a\x24\x00", &[8], 8),
            STANDARD.encode(noise(90, 3).collect::<Vec<_>>()),
            "CiQA".to_owned(),
            String::new(),
        ] {
            assert!(!is_encrypted(&other), "{other}");
        }
    }

    #[test]
    fn reads_user_and_password() {
        assert!(basic_auth(STANDARD.encode("deploy:kR8mm2pQx").as_bytes()));
        assert!(!basic_auth(STANDARD.encode("user:password").as_bytes()));
        assert!(!basic_auth(
            STANDARD.encode("no colon here at all").as_bytes()
        ));
    }

    #[test]
    fn reads_what_tokens_carry() {
        let id = URL_SAFE_NO_PAD.encode("123456789012345678");
        assert!(discord_id(format!("{id}.abc.def").as_bytes()));
        assert!(!discord_id(b"abcdefghijklmnopqrstuvwx.abc.def"));
        let pypi = format!(
            "pypi-{}",
            URL_SAFE_NO_PAD.encode(b"\x02\x01\x08pypi.org\x02\x24abcdef")
        );
        assert!(decodes_to(pypi.as_bytes(), b"\x02\x01\x08pypi.org"));
        let json = format!(
            "sntrys_{}_kR8mm2pQ",
            STANDARD_NO_PAD.encode(r#"{"iat":1700000000.0,"url":null}"#)
        );
        assert!(base64_json(json.as_bytes()));
        assert!(!base64_json(b"sntrys_kR8mm2pQ"));
    }
}
