//! Comparisons of secrets with `==`, whose time depends on the secret.

use super::super::Lower;
use tree_sitter::Node;

/// Returns true if one side is a secret or a message authentication code, and the other side is
/// from a client.
pub(super) fn secret(l: &Lower<'_>, sides: [Node<'_>; 2]) -> bool {
    if sides
        .iter()
        .any(|n| !matches!(n.kind(), "identifier" | "attribute" | "call" | "subscript"))
    {
        return false;
    }
    let [left, right] = sides.map(|n| l.text(n));
    let has_mac = memchr::memmem::find(l.text, b"hmac").is_some();
    [(left, right), (right, left)].into_iter().any(|(a, b)| {
        has_mac && (names_mac(a) || is_sent(a)) && computes_mac(b)
            || has_mac && is_sent(a) && names_mac(a) && (names_mac(b) || last_word(b) == "expected")
            || is_secret_constant(b) && (is_sent(a) || is_given_secret(a))
    })
}

/// Returns true for a call that computes a message authentication code: `hmac.new(…).hexdigest()`,
/// `self.digest()`. `hash.hexdigest()` may be a checksum.
fn computes_mac(text: &str) -> bool {
    if !text.ends_with(')') {
        return false;
    }
    if text.starts_with("hmac.") {
        return true;
    }
    let name = text.split_once('(').map_or("", |(name, _)| name);
    let name = name
        .strip_prefix("self.")
        .unwrap_or(name)
        .to_ascii_lowercase();
    !name.contains('.')
        && ["digest", "signature", "sign", "hmac", "mac"]
            .iter()
            .any(|w| name.ends_with(w))
}

fn names_mac(text: &str) -> bool {
    let word = last_word(text);
    [
        "signature",
        "digest",
        "hmac",
        "mac",
        "sig",
        "signature256",
        "sha256",
    ]
    .iter()
    .any(|w| word.ends_with(w))
        || word == "expected"
        || word == "given"
}

/// Returns true for a part of a request: `request.headers["X-Token"]`.
fn is_sent(text: &str) -> bool {
    ["request.", "self.request.", "req.", "flask.request."]
        .iter()
        .any(|p| text.starts_with(p))
        && [
            "headers",
            "args",
            "form",
            "GET",
            "POST",
            "META",
            "cookies",
            "COOKIES",
            "query_params",
            "json",
            "values",
        ]
        .iter()
        .any(|p| text.contains(p))
}

/// Returns true for the name of a secret that a client sends: `x_api_key`, `token`.
fn is_given_secret(text: &str) -> bool {
    let word = last_word(text);
    !text.contains('(')
        && [
            "apikey",
            "token",
            "secret",
            "signature",
            "password",
            "authorization",
            "accesskey",
        ]
        .iter()
        .any(|w| word.ends_with(w))
}

/// Returns true for a constant that holds a secret: `API_KEY`, `settings.WEBHOOK_SECRET`,
/// `os.environ["API_TOKEN"]`.
fn is_secret_constant(text: &str) -> bool {
    let name = text.trim_end_matches([')', ']', '"', '\'']);
    let start = name.rfind(['.', '[', '(', '"', '\'']).map_or(0, |i| i + 1);
    let name = name.get(start..).unwrap_or_default();
    let is_constant = name.len() > 3
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_constant = is_constant && !text.ends_with("()");
    is_constant
        && [
            "API_KEY",
            "APIKEY",
            "TOKEN",
            "SECRET",
            "PASSWORD",
            "ACCESS_KEY",
            "AUTH_KEY",
            "ADMIN_KEY",
        ]
        .iter()
        .any(|w| name.ends_with(w))
}

/// Returns the last word of a path without signs, in lower case: `xapikey` of
/// `request.headers["X-Api-Key"]`.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches([')', ']', '"', '\'']);
    let text = text
        .strip_suffix("\", \"")
        .or(text.strip_suffix("\", "))
        .unwrap_or(text);
    let start = text.rfind(['.', '[', '(', '"', '\'']).map_or(0, |i| i + 1);
    let word = text.get(start..).unwrap_or_default();
    word.chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_ascii_lowercase()
}
