//! Takes secrets out of text that is shown or stored, column for column.

use super::catalog::{FILTER, Matcher, Rule};
use super::walk::{self, Match, Scratch, Visitor};
use super::{RuleSet, decode, secret};
use std::borrow::Cow;
use std::ops::Range;

/// The most bytes of a secret that stay: the prefix that tells its kind.
const KEPT: usize = 4;
/// Secrets shorter than this are hidden whole.
const KEPT_FROM: usize = 16;
/// The most lines of a private key's body.
const KEY_LINES: usize = 400;
/// The most bytes of one.
const KEY_BYTES: usize = 64 << 10;

/// Masks the secrets of a text, those with NUL bytes inside too. Language and path of a rule do not matter here.
pub(super) fn mask<'t>(rules: &RuleSet, text: &'t [u8]) -> Cow<'t, [u8]> {
    let mut masked = mask_plain(rules, text);
    if memchr::memchr(0, text).is_some() {
        let kept: Vec<usize> = (0..text.len()).filter(|i| text[*i] != 0).collect();
        let plain: Vec<u8> = kept.iter().map(|i| text[*i]).collect();
        let hidden = mask_plain(rules, &plain);
        let changed = kept.iter().zip(plain.iter().zip(&*hidden)).filter(|(_, (before, after))| before != after);
        for (at, (_, after)) in changed {
            masked.to_mut()[*at] = *after;
        }
    }
    masked
}

fn mask_plain<'t>(rules: &RuleSet, text: &'t [u8]) -> Cow<'t, [u8]> {
    let mut masker = Masker { rules, spans: Vec::new() };
    let mut scratch = Scratch::default();
    walk::walk(rules, &FILTER, text, b"", &mut scratch, &mut masker);
    rules.team.with_filter(|f| walk::walk(rules, f, text, b"", &mut scratch, &mut masker));
    decode::views(text, |run, plain| {
        let mut inner = Masker { rules, spans: Vec::new() };
        walk::walk(rules, &FILTER, plain, b"", &mut scratch, &mut inner);
        if !inner.spans.is_empty() {
            masker.spans.push((run, 0));
        }
    });
    let mut masked = Cow::Borrowed(text);
    for (span, kept) in masker.spans {
        hide(masked.to_mut(), span, kept);
    }
    for body in key_bodies(text) {
        hide_body(&mut masked.to_mut()[body]);
    }
    masked
}

/// Returns how many first bytes of a rule's secrets are public: the prefix that an issuer gives to all of them.
/// A password has none.
pub(super) fn kept(rule: &Rule) -> usize {
    if rule.checks.iter().any(|c| secret::is_for_passwords(c)) { 0 } else { KEPT }
}

/// Overwrites a secret, its first `kept` bytes apart; a short one is hidden whole.
pub(super) fn hide(text: &mut [u8], span: Range<usize>, kept: usize) {
    let span = span.start.min(text.len())..span.end.min(text.len());
    let keep = if span.len() >= KEPT_FROM { kept } else { 0 };
    if let Some(rest) = text.get_mut(span.start + keep..span.end) {
        for b in rest {
            // A secret may hold line ends where a rule takes several lines.
            if *b != b'\n' && *b != b'\r' {
                *b = b'*';
            }
        }
    }
}

struct Masker<'a> {
    rules: &'a RuleSet,
    /// What is hidden, and how much of its start is not.
    spans: Vec<(Range<usize>, usize)>,
}

impl Visitor for Masker<'_> {
    fn accepts(&mut self, rule: u16) -> bool {
        let rule = self.rules.rule(rule);
        rule.secret && rule.matcher == Matcher::Pattern
    }

    fn found(&mut self, found: &Match) -> bool {
        self.spans.push((found.secret.clone(), kept(self.rules.rule(found.rule))));
        true
    }
}

/// Finds the bodies of private keys in PEM (RFC 7468): what stands between header and footer, on one line or on
/// many. Without a footer, the lines that still look like a body.
pub(super) fn key_bodies(text: &[u8]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY") {
        let Some(dashes) = text[at..].iter().take(24).position(|b| *b == b'-').map(|i| at + i) else { continue };
        let near = &text[at.saturating_sub(40)..at];
        let head = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
        // RFC 4716 writes four dashes and a space.
        let begins = [&b"-----BEGIN"[..], b"---- BEGIN"].iter().any(|b| memchr::memmem::find(head, b).is_some());
        if !begins || out.last().is_some_and(|last| last.end > at) {
            continue;
        }
        let start = dashes + text[dashes..].iter().take_while(|b| **b == b'-').count();
        let mut end = start;
        let limit = text.len().min(start + KEY_BYTES);
        for i in 0..KEY_LINES {
            let line = memchr::memchr(b'\n', &text[end..limit]).map_or(&text[end..limit], |n| &text[end..=end + n]);
            let footer = memchr::memmem::find(line, b"-----END").or_else(|| memchr::memmem::find(line, b"---- END"));
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

/// Tells of consecutive lines which belong to the body of a private key: those after a header, and, where the
/// header is out of sight, those before a footer.
pub(crate) fn key_lines(lines: &[&[u8]]) -> Vec<bool> {
    let is_edge = |line: &[u8], edge: &[u8]| {
        memchr::memmem::find(line, edge).is_some_and(|at| memchr::memmem::find(&line[at..], b"PRIVATE KEY").is_some())
    };
    let mut out = vec![false; lines.len()];
    let mut inside = false;
    for (i, line) in lines.iter().enumerate() {
        inside = inside && !is_edge(line, b"-----END") && is_body(line);
        out[i] = inside;
        inside = inside || (is_edge(line, b"-----BEGIN") && !is_edge(line, b"-----END"));
    }
    for (i, _) in lines.iter().enumerate().filter(|(_, line)| is_edge(line, b"-----END")) {
        for at in (0..i).rev().take_while(|at| is_body(lines[*at])) {
            out[at] = true;
        }
    }
    out
}

/// Overwrites what a key's body is made of.
pub(crate) fn hide_body(text: &mut [u8]) {
    for b in text.iter_mut().filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')) {
        *b = b'*';
    }
}

/// Tells whether a line can belong to a key's body, quoted as programs quote it, or to its headers.
pub(super) fn is_body(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let quoting = |b: &u8| {
        b.is_ascii_whitespace()
            || matches!(b, b'"' | b'\'' | b',' | b'\\' | b'>' | b'|' | b'-' | b'.' | b'`' | b'#' | b'(' | b')')
    };
    let signs = line.iter().filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')).count();
    let longest = line
        .split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let header = line.starts_with(b"Proc-Type:") || line.starts_with(b"DEK-Info:") || line.starts_with(b"Comment:");
    header
        || line.is_empty()
        || line.iter().all(quoting)
        || (longest * 10 >= signs * 8 && signs + line.iter().filter(|b| quoting(b)).count() == line.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;

    #[test]
    fn the_lines_of_a_key_are_known_with_either_edge_in_sight() {
        let text = |edge: &str| format!("-----{edge} {}-----", "PRIVATE KEY");
        let (begin, end) = (text("BEGIN"), text("END"));
        let body = "MIIEow".repeat(10);
        let lines = |all: &[&str]| key_lines(&all.iter().map(|l| l.as_bytes()).collect::<Vec<_>>());
        assert_eq!(lines(&["a = 1", &begin, &body, &body]), [false, false, true, true]);
        assert_eq!(lines(&[&body, &body, &end, "b = 2"]), [true, true, false, false]);
        assert_eq!(lines(&[&begin, &body, &end, &body]), [false, true, false, false]);
        assert_eq!(lines(&["if x.starts_with(b) {", "return 1", "}"]), [false, false, false]);
    }

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
        assert!(!masked.contains("MIIE") && !masked.contains("abc"), "{masked}");
        let cut = format!("{head}\n{body}next line of code\n");
        let masked = String::from_utf8(mask(&rules, cut.as_bytes()).into_owned()).unwrap();
        assert!(masked.ends_with("next line of code\n") && !masked.contains("MIIE"), "{masked}");
    }

    #[test]
    fn hides_all_but_a_public_prefix() {
        let mut text = b"key=abcdefghijklmnopqrstuvwxyz;pw=short".to_vec();
        hide(&mut text, 4..30, KEPT);
        hide(&mut text, 34..39, KEPT);
        assert_eq!(text, b"key=abcd**********************;pw=*****");
    }
}
