//! Masks secrets in text that is shown or stored, and keeps all columns.

use super::{RuleSet, leak};
use crate::diff::blank_all;
use std::borrow::Cow;
use std::ops::Range;

/// Secrets shorter than this are hidden completely.
const KEPT_FROM: usize = 16;
/// Lines of a private key's body, at most.
const KEY_LINES: usize = 400;
/// Bytes of a private key's body, at most.
const KEY_BYTES: usize = 64 << 10;

/// Masks the secrets that [`leak::secrets`] finds in a text, and keeps all columns.
pub(super) fn mask<'t>(rules: &RuleSet, text: &'t [u8]) -> Cow<'t, [u8]> {
    let hidden = hidden(rules, text);
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = text.to_vec();
    blank_all(&mut masked, &hidden);
    Cow::Owned(masked)
}

/// Returns the bytes of a text that are overwritten: its secrets without their public prefixes.
pub(super) fn hidden(rules: &RuleSet, text: &[u8]) -> Vec<Range<usize>> {
    leak::secrets(rules, text)
        .into_iter()
        .map(|secret| without_prefix(secret.span, secret.kept))
        .collect()
}

/// Returns a secret without its first `kept` bytes. A short secret is hidden completely.
pub(super) fn without_prefix(span: Range<usize>, kept: usize) -> Range<usize> {
    let kept = if span.len() >= KEPT_FROM { kept } else { 0 };
    span.start + kept..span.end
}

/// Returns the bodies of private keys in PEM (RFC 7468): the text between header and footer, on one
/// line or on several. Without a footer, a body ends at the first line that does not have the form
/// of a body.
pub(super) fn key_bodies(text: &[u8]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY") {
        let Some(dashes) = text[at..]
            .iter()
            .take(24)
            .position(|b| *b == b'-')
            .map(|i| at + i)
        else {
            continue;
        };
        let near = &text[at.saturating_sub(40)..at];
        let head = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
        // RFC 4716 writes four dashes and a space.
        let begins = [&b"-----BEGIN"[..], b"---- BEGIN"]
            .iter()
            .any(|b| memchr::memmem::find(head, b).is_some());
        if !begins || out.last().is_some_and(|last| last.end > at) {
            continue;
        }
        let start = dashes + text[dashes..].iter().take_while(|b| **b == b'-').count();
        let mut end = start;
        let limit = text.len().min(start + KEY_BYTES);
        for i in 0..KEY_LINES {
            let line = memchr::memchr(b'\n', &text[end..limit])
                .map_or(&text[end..limit], |n| &text[end..=end + n]);
            let footer = memchr::memmem::find(line, b"-----END")
                .or_else(|| memchr::memmem::find(line, b"---- END"));
            if let Some(footer) = footer {
                end += footer;
                break;
            }
            if line.is_empty() || i > 0 && !is_body(line) {
                break;
            }
            end += line.len();
        }
        out.push(start..end);
    }
    out
}

/// Returns true if a line can belong to a key's body or to its headers, also if a program quotes
/// it.
pub(super) fn is_body(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let signs = line
        .iter()
        .filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        .count();
    let longest = line
        .split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let header = line.starts_with(b"Proc-Type:")
        || line.starts_with(b"DEK-Info:")
        || line.starts_with(b"Comment:");
    header
        || line.is_empty()
        || line.iter().all(quotes_body)
        || (longest * 10 >= signs * 8
            && signs + line.iter().filter(|b| quotes_body(b)).count() == line.len())
}

/// Returns true for a byte with which a program quotes or comments the lines of a body.
fn quotes_body(b: &u8) -> bool {
    b.is_ascii_whitespace()
        || matches!(
            b,
            b'"' | b'\'' | b',' | b'\\' | b'>' | b'|' | b'-' | b'.' | b'`' | b'#' | b'(' | b')'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;

    #[test]
    fn the_body_of_a_key_is_hidden_on_every_line() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let head = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
        let foot = ["-----END RSA PRIV", "ATE KEY-----"].concat();
        let body = "MIIEowIBAAKCAQEAx1\n  \"abc+/d==\\n\" +\n";
        let text = format!("a = 1\n{head}\nProc-Type: 4,ENCRYPTED\n\n{body}{foot}\nb = 2\n");
        let masked = mask(&rules, text.as_bytes()).into_owned();
        let masked = String::from_utf8(masked).unwrap();
        assert_eq!(masked.len(), text.len());
        assert!(masked.starts_with(&format!("a = 1\n{head}\n")), "{masked}");
        assert!(masked.ends_with(&format!("{foot}\nb = 2\n")), "{masked}");
        assert!(
            !masked.contains("MIIE") && !masked.contains("abc"),
            "{masked}"
        );
        let cut = format!("{head}\n{body}next line of code\n");
        let masked = String::from_utf8(mask(&rules, cut.as_bytes()).into_owned()).unwrap();
        assert!(
            masked.ends_with("next line of code\n") && !masked.contains("MIIE"),
            "{masked}"
        );
    }

    #[test]
    fn hides_all_but_a_public_prefix() {
        assert_eq!(without_prefix(4..30, 4), 8..30);
        assert_eq!(without_prefix(34..39, 4), 34..39);
    }
}
