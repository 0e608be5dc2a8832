//! JSON Web Tokens (RFC 7519), and what their claims grant.

use super::shape;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use base64::{Engine as _, alphabet};

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
pub(super) const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
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
        signed
            && !example
            && !public
            && !self.is_long_expired()
            && self.is_meant()
            && !self.claims("role", "service_role")
    }

    /// Returns true if the token expired before this program existed, so no review can find it
    /// while it grants anything. An earlier time than any issuer can have written does not count as an expiry: some
    /// write `0` for a token that stays valid.
    fn is_long_expired(&self) -> bool {
        /// 2025-01-01 in seconds since 1970.
        const LONG_AGO: f64 = 1_735_689_600.0;
        /// 2001-09-09, before there were such tokens.
        const EARLIEST: f64 = 1_000_000_000.0;
        let expiry = self.payload.get("exp").and_then(serde_json::Value::as_f64);
        expiry.is_some_and(|expiry| (EARLIEST..LONG_AGO).contains(&expiry))
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

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

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
        assert!(!credential(
            r#"{"iss":"https://id.corp.net","sub":"8c1f","exp":1607942559}"#
        ));
        for no_expiry in ["0", "-1", "3600", "999999999"] {
            let payload =
                format!(r#"{{"iss":"https://id.corp.net","sub":"8c1f","exp":{no_expiry}}}"#);
            assert!(credential(&payload), "{payload}");
        }
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
}
