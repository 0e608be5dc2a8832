//! Constructs that are findings without data. Each becomes a call whose name is not an identifier,
//! such as `slow regex`, so that an entry of the table can match it.

use super::super::super::is_request_mark;
use super::super::{Lower, field};
use super::ExprId;
use tree_sitter::Node;

/// Returns the call `compare secret` for a comparison of a secret with a value from a client.
pub(super) fn comparison(
    l: &mut Lower<'_>,
    node: Node<'_>,
    sides: [Node<'_>; 2],
) -> Option<ExprId> {
    if sides.iter().any(|n| is_harmless(*n)) {
        return None;
    }
    let [left, right] = sides.map(|n| l.text(n));
    let has_mac = mentions(l, "createHmac");
    let compares_secret = [(left, right), (right, left)].into_iter().any(|(a, b)| {
        (is_request(a) && (is_secret(a) || is_secret(b)))
            || (has_mac && (is_request(a) || is_mac(a)) && is_mac(b))
            || (is_secret_setting(a) && (is_request(b) || is_given_secret(b)))
    });
    if !compares_secret {
        return None;
    }
    Some(l.call(node, "compare secret", Vec::new()))
}

/// Returns true for the name of a message authentication code, or for the call that computes it: ``
/// `sha256=${sign(body)}` ``.
fn is_mac(text: &str) -> bool {
    const WORDS: [&str; 7] = [
        "signature",
        "sig",
        "digest",
        "hmac",
        "expected",
        "hash",
        "mac",
    ];
    let inner = text.trim_start_matches('`').trim_end_matches('`');
    let text = inner
        .split_once("${")
        .map_or(text, |(_, rest)| rest.trim_end_matches('}'));
    let word = last_word(text).to_ascii_lowercase();
    let called = text
        .split_once('(')
        .map_or("", |(name, _)| name)
        .to_ascii_lowercase();
    WORDS
        .iter()
        .any(|w| word.ends_with(w) || called.ends_with(w))
        || ["sign", "computesignature", "getsignature", "createhmac"]
            .iter()
            .any(|w| called.ends_with(w))
        || text.contains("createHmac(") && text.contains(".digest(")
}

/// Returns true for a secret of the environment: `process.env.API_TOKEN`.
fn is_secret_setting(text: &str) -> bool {
    let Some(name) = ["process.env.", "process.env[", "Deno.env.get(", "env."]
        .iter()
        .find_map(|p| text.strip_prefix(p))
    else {
        return false;
    };
    let word: String = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_ascii_lowercase();
    [
        "token",
        "secret",
        "apikey",
        "password",
        "passwd",
        "accesskey",
        "authkey",
        "adminkey",
        "internalkey",
        "signature",
    ]
    .iter()
    .any(|w| word.ends_with(w))
        && !word.starts_with("public")
}

/// Returns true for the name of a secret that a client sends.
fn is_given_secret(text: &str) -> bool {
    let word = last_word(text).to_ascii_lowercase();
    [
        "token",
        "secret",
        "key",
        "password",
        "passwd",
        "signature",
        "auth",
        "authorization",
        "bearer",
        "credential",
    ]
    .iter()
    .any(|w| word.ends_with(w))
}

fn is_secret(text: &str) -> bool {
    const WORDS: [&str; 9] = [
        "apikey",
        "secret",
        "signature",
        "digest",
        "hmac",
        "csrftoken",
        "resettoken",
        "authtoken",
        "apitoken",
    ];
    let word = last_word(text).to_ascii_lowercase();
    WORDS.iter().any(|w| word.ends_with(w))
}

fn is_request(text: &str) -> bool {
    ["req.", "request.", "ctx.", "event."]
        .iter()
        .any(|p| text.starts_with(p))
        && ["headers", "query", "body", "header(", "get("]
            .iter()
            .any(|p| text.contains(p))
}

fn is_harmless(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "string" | "number" | "null" | "undefined" | "true" | "false" | "unary_expression"
    ) || node.kind() == "template_string" && node.named_child_count() == 0
}

/// Returns the last word of a path, without the punctuation in names of headers: `apikey` of
/// `req.headers['x-api-key']`.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches([')', ']', '"', '\'', '`', '!']);
    let start = text.rfind(['.', '[', '(', '"', '\'']).map_or(0, |i| i + 1);
    text.get(start..)
        .unwrap_or_default()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect()
}

/// Parts of names of secrets that programs create.
const SECRETS: [&str; 17] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passcode",
    "nonce",
    "salt",
    "sessionid",
    "sessid",
    "csrf",
    "apikey",
    "resetcode",
    "verificationcode",
    "verifycode",
    "authcode",
    "invitecode",
    "recoverycode",
];

/// Returns the call `random secret` for a secret that is created with `Math.random()`.
pub(super) fn secret(
    l: &mut Lower<'_>,
    node: Node<'_>,
    name: &str,
    value: Node<'_>,
) -> Option<ExprId> {
    let text = l.text(value);
    if !text.contains("Math.random()")
        || text.len() > 400
        || text.contains("=>")
        || text.contains("function")
    {
        return None;
    }
    let plain: String = name
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect::<String>()
        .to_ascii_lowercase();
    let is_named = plain.ends_with("otp") || SECRETS.iter().any(|w| plain.contains(w));
    let is_secret = is_named && !is_request_mark(name.as_bytes(), l.text);
    is_secret.then(|| l.call(node, "random secret", Vec::new()))
}

/// Returns true for a call that ends the program: `process.exit(1)`.
pub(super) fn is_end(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "call_expression"
        && field(node, "function").is_some_and(|f| {
            matches!(
                l.text(f),
                "process.exit" | "process.abort" | "ctx.throw" | "this.ctx.throw" | "notFound"
            )
        })
}

/// Returns true if the file has a word.
pub(super) fn mentions(l: &Lower<'_>, word: &str) -> bool {
    std::str::from_utf8(l.text).is_ok_and(|t| t.contains(word))
}
