//! Where a text holds secrets, and of what kind: for taking them out of what leaves the machine.
//!
//! Broader than what is reported: rules that are disabled, or spare tests and documentation, look too, and the body
//! of a private key is known line by line, with its header or its footer in sight.

use super::catalog::{FILTER, Matcher};
use super::language::Languages;
use super::mask::{is_body, key_bodies};
use super::walk::{self, Match, Scratch, Visitor};
use super::{RuleSet, decode, glob, secret};
use crate::diff::RepoPath;
use std::ops::Range;

/// The kind of a key's body, where no rule names it.
const KEY: &str = "private-key";
/// Bytes at the start of a file that may name its interpreter.
const START: usize = 256;
/// The most lines that are looked at above a footer whose header is out of sight.
const KEY_LINES: usize = 400;

/// A secret, or the part of one that stands in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret<'r> {
    /// Bytes of the text; holds no line end.
    pub span: Range<usize>,
    /// The id of the rule that knows most about it.
    pub kind: &'r str,
}

/// Finds the secrets of a text: in order, not overlapping, each within one line. Linear.
///
/// Rules that know a secret by the file it stands in look at such files only; without a path, at all.
pub(super) fn secrets<'r>(rules: &'r RuleSet, path: Option<&RepoPath>, text: &[u8]) -> Vec<Secret<'r>> {
    let file = path.map(|p| (p.as_bytes(), Languages::of(p.as_bytes(), &text[..text.len().min(START)])));
    let mut finder = Finder { rules, file, text, fits: Vec::new(), found: Vec::new() };
    let mut scratch = Scratch::default();
    walk::walk(rules, &FILTER, text, b"", &mut scratch, &mut finder);
    rules.team.with_filter(|f| walk::walk(rules, f, text, b"", &mut scratch, &mut finder));
    let mut found = finder.found;
    // What an encoding hides is in no file's format.
    decode::views(text, |run, plain| {
        let mut inner = Finder { rules, file: None, text: plain, fits: Vec::new(), found: Vec::new() };
        walk::walk(rules, &FILTER, plain, b"", &mut scratch, &mut inner);
        rules.team.with_filter(|f| walk::walk(rules, f, plain, b"", &mut scratch, &mut inner));
        // A key that is encoded as a whole has no lines to look at.
        let whole_key = || key_bodies(plain).into_iter().next().map(|_| (KEY, 0));
        let best = inner.found.into_iter().map(|(_, kind, rank)| (kind, rank)).max_by_key(|(_, rank)| *rank);
        if let Some((kind, rank)) = best.or_else(whole_key) {
            // What a rule knows as it stands, it knows better.
            found.push((run, kind, rank / 2));
        }
    });
    for body in bodies(text) {
        found.push((body, KEY, u32::MAX));
    }
    by_line(text, joined(found))
}

/// A place, the rule that knows it, and how much that one knows.
type Sighting<'r> = (Range<usize>, &'r str, u32);

struct Finder<'r, 't> {
    rules: &'r RuleSet,
    /// The path and its languages, where they are known.
    file: Option<(&'t [u8], Languages)>,
    text: &'t [u8],
    /// Which rules look; empty until the first literal.
    fits: Vec<Option<bool>>,
    found: Vec<Sighting<'r>>,
}

impl Finder<'_, '_> {
    fn looks(&self, rule: u16) -> bool {
        let rule = self.rules.rule(rule);
        let fits = |(path, languages): (&[u8], Languages)| {
            (rule.languages.is_empty() || rule.languages.overlaps(languages))
                && (rule.paths.is_empty() || rule.paths.iter().any(|g| glob::matches(g, path)))
        };
        rule.secret && rule.matcher == Matcher::Pattern && self.file.is_none_or(fits)
    }
}

impl Visitor for Finder<'_, '_> {
    fn accepts(&mut self, rule: u16) -> bool {
        if self.fits.is_empty() {
            self.fits = vec![None; self.rules.len()];
        }
        let at = usize::from(rule);
        let looks = self.fits[at].unwrap_or_else(|| self.looks(rule));
        self.fits[at] = Some(looks);
        looks
    }

    fn found(&mut self, found: &Match) -> bool {
        let span = found.secret.clone();
        // The header of a key is public, and says what the placeholders below it stand for.
        let is_header = self.text.get(span.clone()).is_some_and(|s| s.starts_with(b"----") && s.ends_with(b"--"));
        if !is_header && !span.is_empty() {
            let rule = self.rules.rule(found.rule);
            let limited = !rule.paths.is_empty() || !rule.languages.is_empty();
            let rank = match self.file {
                None if limited => 0,
                _ => 2 * secret::overlap::knowledge(&rule.id) + u32::from(rule.confidence as u8) * 100,
            };
            self.found.push((span, &rule.id, rank));
        }
        true
    }
}

/// Makes one of what overlaps; the rule that knows most names it.
fn joined(mut found: Vec<Sighting<'_>>) -> Vec<Sighting<'_>> {
    found.sort_by_key(|(span, _, _)| (span.start, span.end));
    let mut out: Vec<Sighting<'_>> = Vec::with_capacity(found.len());
    for (span, kind, rank) in found {
        match out.last_mut() {
            Some(last) if span.start < last.0.end => {
                last.0.end = last.0.end.max(span.end);
                if rank > last.2 {
                    (last.1, last.2) = (kind, rank);
                }
            }
            _ => out.push((span, kind, rank)),
        }
    }
    out
}

/// Cuts what goes over several lines at their ends, without the white space there.
fn by_line<'r>(text: &[u8], found: Vec<Sighting<'r>>) -> Vec<Secret<'r>> {
    let mut out = Vec::with_capacity(found.len());
    for (span, kind, _) in found {
        let mut at = span.start;
        for line in text[span].split_inclusive(|b| *b == b'\n') {
            let start = at + line.len() - line.trim_ascii_start().len();
            let end = at + line.trim_ascii_end().len();
            at += line.len();
            if start < end {
                out.push(Secret { span: start..end, kind });
            }
        }
    }
    out
}

/// Finds what keys are made of, line by line, without the signs around it that programs quote it with.
fn bodies(text: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = key_bodies(text);
    ranges.extend(above_footers(text, &ranges));
    ranges.extend(putty(text));
    let mut out = Vec::new();
    for range in ranges {
        let mut at = range.start;
        for line in text[range].split_inclusive(|b| *b == b'\n') {
            let sign = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
            // A sign that stands alone joins two strings.
            let joins = |i: &usize| {
                line[*i] == b'+'
                    && ![i.checked_sub(1), Some(i + 1)].iter().flatten().any(|n| line.get(*n).is_some_and(sign))
            };
            let mut signs = (0..line.len()).filter(|i| sign(&line[*i]) && !joins(i));
            if let Some(first) = signs.next() {
                out.push(at + first..at + signs.next_back().unwrap_or(first) + 1);
            }
            at += line.len();
        }
    }
    out
}

/// Finds bodies whose header is not in sight: the lines above a footer.
fn above_footers(text: &[u8], known: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY") {
        let line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |i| i + 1);
        let head = &text[line.max(at.saturating_sub(40))..at];
        let is_footer = memchr::memmem::find(head, b"-----END").is_some();
        // The footer of a body that is known ends it, or stands in the line in which it ends.
        let before = known.partition_point(|k| k.start <= at).checked_sub(1);
        if !is_footer || before.is_some_and(|k| known[k].end >= line) {
            continue;
        }
        let mut start = line;
        for _ in 0..KEY_LINES {
            let Some(end) = start.checked_sub(1) else { break };
            let above = memchr::memrchr(b'\n', &text[..end]).map_or(0, |i| i + 1);
            if !is_body(&text[above..end]) {
                break;
            }
            start = above;
        }
        if start < line {
            out.push(start..line);
        }
    }
    out
}

/// Finds the private lines of PuTTY's key files.
fn putty(text: &[u8]) -> Vec<Range<usize>> {
    const HEAD: &[u8] = b"Private-Lines:";
    let mut out = Vec::new();
    for at in memchr::memmem::find_iter(text, HEAD) {
        let rest = &text[at..];
        let length = |lines: usize| rest.split_inclusive(|b| *b == b'\n').take(lines).map(<[u8]>::len).sum::<usize>();
        let count = rest[HEAD.len()..length(1)].trim_ascii();
        let count = std::str::from_utf8(count).ok().and_then(|n| n.parse::<usize>().ok());
        if let Some(count) = count {
            out.push(at + length(1)..at + length(1 + count.min(KEY_LINES)));
        }
    }
    out
}
