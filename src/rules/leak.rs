//! Secrets that must not leave the machine or be stored. One search checks everything that goes to
//! a model, the history, a report or a log.
//!
//! It shares no threshold with the reports of the rules: a finding must be correct, but a redaction
//! only costs a reader one value. So it uses the patterns of the rules without their exemptions,
//! and adds secrets that no rule reports: the other half of a key pair, values under names of
//! secrets, tokens by their form. It reads the text literally, decoded, with joined literals as one
//! text, and with wide and hidden characters replaced.
//!
//! References, placeholders, names, digests and UUIDs stay readable (SEC-05).

mod address;
mod jwt;
mod key;
pub(super) mod kube;
mod named;
pub(super) mod pair;
mod runs;
mod sweep;
mod value;
pub(super) mod view;

#[cfg(test)]
mod tests;

use super::catalog::Rule;
use super::line_ends::with_line_feeds;
use super::{RuleSet, decode, secret};
use std::borrow::Cow;
use std::ops::Range;

/// The kind of a key's body if no rule names it.
const KEY: &str = "private-key";
/// Bytes of the prefix that an issuer puts before all of its secrets.
const PREFIX: usize = 4;

/// A secret, or its part within one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret<'r> {
    /// Bytes of the text, without a line end.
    pub span: Range<usize>,
    /// The rule that reports secrets of this kind.
    pub kind: &'r str,
    /// Number of first bytes that are public: the prefix that identifies the kind.
    pub(super) kept: usize,
}

impl Secret<'_> {
    /// Returns the number of first bytes that are public: the prefix that identifies the kind.
    pub fn kept(&self) -> usize {
        self.kept
    }
}

/// Knowledge of a search about its matches.
mod rank {
    /// The form of the match, which other texts also have.
    pub(super) const FORM: u32 = 1;
    /// The name of the match.
    pub(super) const NAMED: u32 = 2;
    /// The position of the match, or a form that only secrets have.
    pub(super) const KNOWN: u32 = 290;
}

/// A match of a search, which can span several lines.
#[derive(Clone, Debug)]
struct SecretSpan<'r> {
    span: Range<usize>,
    kind: &'r str,
    rank: u32,
    kept: usize,
}

impl<'r> SecretSpan<'r> {
    fn new(span: Range<usize>, kind: &'r str, rank: u32) -> Self {
        Self {
            span,
            kind,
            rank,
            kept: 0,
        }
    }

    /// Returns the match of a rule.
    fn of(rule: &'r Rule, span: Range<usize>, text: &[u8]) -> Self {
        let limited = !rule.paths.is_empty() || !rule.languages.is_empty();
        let rank =
            2 * secret::overlap::knowledge(&rule.id) + u32::from(rule.confidence as u8) * 100;
        let kept = public_prefix(rule, &text[span.clone()]);
        Self {
            span,
            kind: &rule.id,
            rank: if limited { 0 } else { rank },
            kept,
        }
    }
}

/// Returns the number of first bytes of a rule's secret that are public because its pattern
/// requires them.
pub(super) fn public_prefix(rule: &Rule, secret: &[u8]) -> usize {
    let for_passwords = rule
        .checks
        .iter()
        .any(|c| super::secret::is_for_passwords(c));
    let start = secret
        .get(..PREFIX)
        .and_then(|start| std::str::from_utf8(start).ok());
    if !for_passwords && start.is_some_and(|start| rule.pattern.contains(start)) {
        PREFIX
    } else {
        0
    }
}

/// Returns the secrets of a text, in order and without overlaps, each within one line. Linear in
/// the text.
pub(super) fn secrets<'r>(rules: &'r RuleSet, text: &[u8]) -> Vec<Secret<'r>> {
    let mut found = Vec::new();
    in_lines(rules, text, &mut found);
    match view::folded(text) {
        Some(plain) => {
            let mut inner = Vec::new();
            in_lines(rules, &plain.text, &mut inner);
            as_joined(rules, &plain.text, &mut inner);
            found.extend(inner.into_iter().map(|f| SecretSpan {
                span: covering(&plain.back(&f.span)),
                kept: 0,
                ..f
            }));
        }
        None => as_joined(rules, text, &mut found),
    }
    by_line(text, joined(found))
}

/// Returns the range from the first part to the last, because the hidden characters between them
/// belong to it.
fn covering(parts: &[Range<usize>]) -> Range<usize> {
    let start = parts.first().map_or(0, |p| p.start);
    start..parts.last().map_or(start, |p| p.end)
}

/// Searches a text, and again with line feeds for the carriage returns that end its lines: it would
/// otherwise be one long line, of which only parts are searched.
fn in_lines<'r>(rules: &'r RuleSet, text: &[u8], out: &mut Vec<SecretSpan<'r>>) {
    as_it_stands(rules, text, out);
    if let Cow::Owned(lines) = with_line_feeds(text) {
        as_it_stands(rules, &lines, out);
    }
}

/// Searches a text, and the decoded text of its encoded runs.
fn as_it_stands<'r>(rules: &'r RuleSet, text: &[u8], out: &mut Vec<SecretSpan<'r>>) {
    plainly(rules, text, out);
    decode::views(text, |run, plain| {
        let mut inner = Vec::new();
        plainly(rules, plain, &mut inner);
        let best = inner.into_iter().max_by_key(|f| f.rank);
        if let Some(best) = best.filter(|f| f.rank != rank::FORM) {
            // A match in the literal text has a higher rank than one in decoded text.
            out.push(SecretSpan::new(run, best.kind, best.rank / 2));
        }
    });
}

fn plainly<'r>(rules: &'r RuleSet, text: &[u8], out: &mut Vec<SecretSpan<'r>>) {
    sweep::find(rules, text, out);
    runs::find(text, out);
    let (ids, halves) = pair::find(text);
    let known = [
        ("aws-secret-access-key", halves),
        ("json-web-token", collected(text, jwt::find)),
        ("kubernetes-secret-value", collected(text, kube::find)),
        ("password-in-url", collected(text, address::find)),
    ];
    for (kind, ranges) in known {
        out.extend(
            ranges
                .into_iter()
                .map(|r| SecretSpan::new(r, kind, rank::KNOWN)),
        );
    }
    out.extend(ids.into_iter().map(|id| SecretSpan {
        kept: PREFIX,
        ..SecretSpan::new(id, "aws-access-key-id", rank::KNOWN)
    }));
    out.extend(
        key::bodies(text)
            .into_iter()
            .map(|body| SecretSpan::new(body, KEY, u32::MAX)),
    );
}

fn collected(text: &[u8], find: fn(&[u8], &mut Vec<Range<usize>>)) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    find(text, &mut out);
    out
}

/// Searches literals that are joined. The items of a list are joined too, but then only a form that
/// only secrets have counts: `["token", "Xk…"]` does not assign a name to a value.
fn as_joined<'r>(rules: &'r RuleSet, text: &[u8], out: &mut Vec<SecretSpan<'r>>) {
    for lists in [false, true] {
        let Some(view) = view::joined(text, lists) else {
            continue;
        };
        let mut inner = Vec::new();
        as_it_stands(rules, &view.text, &mut inner);
        for found in inner.into_iter().filter(|f| !lists || f.rank > 200) {
            let parts = view.back(&found.span).into_iter();
            out.extend(parts.map(|span| SecretSpan {
                span,
                kept: 0,
                ..found.clone()
            }));
        }
    }
}

/// Merges overlapping matches. The kind is that of the match with the highest rank.
fn joined(mut found: Vec<SecretSpan<'_>>) -> Vec<SecretSpan<'_>> {
    found.retain(|f| !f.span.is_empty());
    found.sort_by_key(|f| (f.span.start, f.span.end));
    let mut out: Vec<SecretSpan<'_>> = Vec::with_capacity(found.len());
    for f in found {
        match out.last_mut() {
            Some(last) if f.span.start < last.span.end => {
                if f.rank > last.rank {
                    let same_start = f.span.start == last.span.start;
                    (last.kind, last.rank) = (f.kind, f.rank);
                    last.kept = if same_start { f.kept } else { 0 };
                }
                last.span.end = last.span.end.max(f.span.end);
            }
            _ => out.push(f),
        }
    }
    out
}

/// Splits matches at line ends, and trims white space there.
fn by_line<'r>(text: &[u8], found: Vec<SecretSpan<'r>>) -> Vec<Secret<'r>> {
    let mut out = Vec::with_capacity(found.len());
    for SecretSpan {
        span, kind, kept, ..
    } in found
    {
        let mut at = span.start;
        for line in text[span].split_inclusive(|b| *b == b'\n') {
            let start = at + line.len() - line.trim_ascii_start().len();
            let end = at + line.trim_ascii_end().len();
            at += line.len();
            if start < end {
                out.push(Secret {
                    span: start..end,
                    kind,
                    kept,
                });
            }
        }
    }
    out
}
