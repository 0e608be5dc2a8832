//! Secrets with readable content: key files, web tokens, encoded user names.

use super::{SecretCandidate, assignment, key, shape, words};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, STANDARD_NO_PAD};

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

/// A JSON Web Token with a readable header and payload.
#[derive(Debug)]
pub(super) struct Jwt {
    header: serde_json::Value,
    payload: serde_json::Value,
}

/// Parses `header.payload.signature`.
pub(super) fn jwt(token: &[u8]) -> Option<Jwt> {
    let text = std::str::from_utf8(token).ok()?;
    let mut parts = text.split('.');
    let (header, payload, signature) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || signature.len() < 27 || !shape::is_random(signature) {
        return None;
    }
    let jwt = Jwt {
        header: decoded_json(header)?,
        payload: decoded_json(payload)?,
    };
    jwt.header
        .get("alg")
        .and_then(serde_json::Value::as_str)
        .is_some()
        .then_some(jwt)
}

/// Returns the JSON value that a part of a token encodes.
fn decoded_json(part: &str) -> Option<serde_json::Value> {
    let bytes = URL_SAFE.decode(part.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// Returns a text of a JSON object in lower case, empty if the object lacks it.
fn lower_text(object: &serde_json::Value, name: &str) -> String {
    object
        .get(name)
        .and_then(serde_json::Value::as_str)
        .map(str::to_ascii_lowercase)
        .unwrap_or_default()
}

/// URL-safe Base64 without padding. Some writers do not clear the unused bits of the last
/// character.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    NO_PAD.with_decode_allow_trailing_bits(true),
);

impl Jwt {
    /// Returns true if a claim has a value.
    pub(super) fn claims(&self, name: &str, value: &str) -> bool {
        self.payload.get(name).and_then(serde_json::Value::as_str) == Some(value)
    }

    /// Returns true if the token grants access to a Supabase project without row-level rules. The
    /// token of the local demonstration project is public and does not count.
    pub(super) fn is_service_role(&self) -> bool {
        self.claims("role", "service_role") && !self.claims("iss", "supabase-demo")
    }

    /// Returns true if the token could grant access: it is signed, is not an example of the
    /// specification, and is not public.
    pub(super) fn is_credential(&self) -> bool {
        let signed = lower_text(&self.header, "alg") != "none";
        let example = [
            "1234567890",
            "test",
            "user",
            "foo",
            "admin",
            "john",
            "johndoe",
        ]
        .contains(&lower_text(&self.payload, "sub").as_str())
            || lower_text(&self.payload, "name").contains("john doe")
            || lower_text(&self.payload, "iss").contains("example")
            || (lower_text(&self.payload, "iss") == "joe"
                && self.payload.get("http://example.com/is_root").is_some());
        // Supabase's key for browsers is public.
        let public = self.claims("role", "anon");
        signed && !example && !public && self.is_meant() && !self.claims("role", "service_role")
    }

    /// Returns true if a claim states a subject, an audience, an expiry or another fact that
    /// exercises lack.
    fn is_meant(&self) -> bool {
        #[rustfmt::skip]
        const ISSUED: &[&str] = &[
            "iss", "aud", "exp", "jti", "scope", "scopes", "azp", "client_id", "tenant", "uid", "user_id", "userId",
        ];
        // Claims of manuals, and the times that every library adds.
        #[rustfmt::skip]
        const EXERCISES: &[&str] = &[
            "iat", "nbf", "foo", "bar", "baz", "hello", "some", "test", "testing", "key", "data", "value", "message",
            "msg", "payload", "example", "admin", "name", "loggedInAs",
        ];
        const VALUES: &[&str] = &[
            "", "foo", "bar", "baz", "test", "world", "value", "payload", "example", "string",
        ];
        let Some(claims) = self.payload.as_object() else {
            return false;
        };
        claims.iter().any(|(name, value)| {
            let is_filler = value.is_null() || value.as_str().is_some_and(|v| VALUES.contains(&v));
            ISSUED.contains(&name.as_str())
                || name.len() > 1 && !EXERCISES.contains(&name.as_str()) && !is_filler
        })
    }
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
        && assignment::is_password(password, assignment::Bar::Normal)
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
    !words::is_reference(value) && assignment::is_password(value, assignment::Bar::Normal)
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
        Some(Ok(value)) => assignment::is_generated(value.trim()),
        Some(Err(_)) if base64_secret_text(c) => true,
        _ => c.text().is_some_and(assignment::is_generated),
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
            .is_ok_and(|t| !assignment::is_password(t.trim(), assignment::Bar::Normal))
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

    #[test]
    fn reads_web_tokens() {
        fn credential(payload: &str) -> bool {
            let head = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","typ":"JWT"}"#);
            let signature = "dBjftJeZ4CVPmB92K27uhbUJU1p1rwW1gFWFOEjXk9q";
            let token = format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(payload));
            jwt(token.as_bytes()).is_some_and(|j| j.is_credential())
        }
        assert!(credential(
            r#"{"iss":"https://id.corp.net","sub":"8c1f","exp":1900000000}"#
        ));
        assert!(!credential(
            r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#
        ));
        assert!(!credential(
            r#"{"iss":"supabase","role":"anon","exp":1900000000}"#
        ));
        assert!(!credential(r#"{"a":1}"#));
        // Without an expiry.
        assert!(credential(r#"{"sub":"8c1f","iat":1700000000}"#));
        assert!(credential(r#"{"user":"kowalski","admin":true}"#));
        assert!(credential(r#"{"customer":"acme-7"}"#));
        assert!(!credential(r#"{"loggedInAs":"admin","iat":1422779638}"#));
        assert!(!credential(r#"{"foo":"bar","iat":1437018582}"#));
        assert!(!credential(r#"{"some":"payload"}"#));
        assert!(!credential(
            r#"{"sub":"1234567890","name":"John Doe","admin":true}"#
        ));
        assert!(jwt(b"eyJhbGciOiJIUzI1NiJ9.eyJ.x").is_none());
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
