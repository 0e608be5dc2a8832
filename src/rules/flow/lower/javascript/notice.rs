//! Constructs that are findings without data. Each becomes a call whose name is not an identifier, such as
//! `slow regex`, so that an entry of the table can match it.

use super::super::{Lower, field};
use super::ExprId;
use tree_sitter::Node;

/// Shows a comparison of a secret with what a client sent: `compare secret`.
pub(super) fn comparison(l: &mut Lower<'_>, node: Node<'_>, sides: [Node<'_>; 2]) -> Option<ExprId> {
    let [left, right] = sides.map(|n| l.text(n));
    if sides.iter().any(|n| is_harmless(*n)) {
        return None;
    }
    let is_one = |a: &str, b: &str| {
        (is_request(a) && (is_secret(a) || is_secret(b))) || (is_request(a) && is_mac(b) && mentions(l, "createHmac"))
    };
    let is_both = is_mac(left) && is_mac(right) && mentions(l, "createHmac");
    if !is_one(left, right) && !is_one(right, left) && !is_both {
        return None;
    }
    Some(l.call(node, "compare secret", Vec::new()))
}

fn is_mac(text: &str) -> bool {
    let word = last_word(text).to_ascii_lowercase();
    ["signature", "digest", "hmac", "expected", "hash"].iter().any(|w| word.ends_with(w))
}

fn is_secret(text: &str) -> bool {
    const WORDS: [&str; 9] =
        ["apikey", "secret", "signature", "digest", "hmac", "csrftoken", "resettoken", "authtoken", "apitoken"];
    let word = last_word(text).to_ascii_lowercase();
    WORDS.iter().any(|w| word.ends_with(w))
}

fn is_request(text: &str) -> bool {
    ["req.", "request.", "ctx.", "event."].iter().any(|p| text.starts_with(p))
        && ["headers", "query", "body", "header(", "get("].iter().any(|p| text.contains(p))
}

fn is_harmless(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "string" | "number" | "null" | "undefined" | "true" | "false" | "template_string" | "unary_expression"
    )
}

/// Returns the last word of a path, without the signs in names of headers: `apikey` of `req.headers['x-api-key']`.
fn last_word(text: &str) -> String {
    let text = text.trim_end_matches([')', ']', '"', '\'', '`', '!']);
    let start = text.rfind(['.', '[', '(', '"', '\'']).map_or(0, |i| i + 1);
    text.get(start..).unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Returns true if a regular expression can take exponential time: `(a+)+$`.
pub(super) fn is_slow(pattern: &str) -> bool {
    let bytes = pattern.as_bytes();
    let mut open = Vec::new();
    let mut i = 0;
    let mut in_class = false;
    while let Some(b) = bytes.get(i) {
        match b {
            b'\\' => i += 1,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'(' if !in_class => open.push(i),
            b')' if !in_class => {
                let Some(start) = open.pop() else { return false };
                let body = pattern.get(start + 1..i).unwrap_or_default();
                let rest = pattern.get(i + 1..).unwrap_or_default();
                if rest.starts_with(['+', '*']) && rest.len() > 1 && is_ambiguous(body) {
                    return true;
                }
            }
            _ => {}
        }
        i += 1;
    }
    false
}

/// Returns true if the body of a repeated group is one repeated atom and atoms that may be missing.
fn is_ambiguous(body: &str) -> bool {
    let body = body.strip_prefix("?:").unwrap_or(body);
    if body.starts_with('?') {
        return false;
    }
    let chars: Vec<char> = body.chars().collect();
    let (mut i, mut is_repeated) = (0, false);
    while let Some(c) = chars.get(i) {
        match c {
            '\\' => i += 2,
            '[' => i = class_end(&chars, i),
            '(' | '|' | ')' | '^' | '$' | '{' => return false,
            _ => i += 1,
        }
        match chars.get(i) {
            Some('+') => {
                // Two atoms that must match separate the repetitions.
                if is_repeated {
                    return false;
                }
                is_repeated = true;
                i += 1;
            }
            Some('*' | '?') => i += 1,
            _ => return false,
        }
    }
    is_repeated
}

fn class_end(chars: &[char], start: usize) -> usize {
    let mut i = start + 1;
    while let Some(c) = chars.get(i) {
        match c {
            '\\' => i += 1,
            ']' => return i + 1,
            _ => {}
        }
        i += 1;
    }
    i
}

/// Parts of names of secrets that programs make.
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

/// Shows a secret that is made with `Math.random()`: `random secret`.
pub(super) fn secret(l: &mut Lower<'_>, node: Node<'_>, name: &str, value: Node<'_>) -> Option<ExprId> {
    let text = l.text(value);
    if !text.contains("Math.random()") || text.len() > 400 || text.contains("=>") || text.contains("function") {
        return None;
    }
    let name: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_ascii_lowercase();
    let is_secret = name.ends_with("otp") || SECRETS.iter().any(|w| name.contains(w));
    is_secret.then(|| l.call(node, "random secret", Vec::new()))
}

/// Returns true for a call that ends the program: `process.exit(1)`.
pub(super) fn is_end(l: &Lower<'_>, node: Node<'_>) -> bool {
    node.kind() == "call_expression"
        && field(node, "function").is_some_and(|f| {
            matches!(l.text(f), "process.exit" | "process.abort" | "ctx.throw" | "this.ctx.throw" | "notFound")
        })
}

/// Returns true if the file has a word.
pub(super) fn mentions(l: &Lower<'_>, word: &str) -> bool {
    std::str::from_utf8(l.text).is_ok_and(|t| t.contains(word))
}
