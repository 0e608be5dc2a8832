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
/// The least signs in a row of a body that stands in the line of its header.
const BESIDE_HEADER: usize = 20;
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
    let mut finder = Finder { rules, file, fits: Vec::new(), found: Vec::new() };
    let mut scratch = Scratch::default();
    walk::walk(rules, &FILTER, text, b"", &mut scratch, &mut finder);
    rules.team.with_filter(|f| walk::walk(rules, f, text, b"", &mut scratch, &mut finder));
    let mut found = finder.found;
    // What an encoding hides is in no file's format.
    decode::views(text, |run, plain| {
        let mut inner = Finder { rules, file: None, fits: Vec::new(), found: Vec::new() };
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
        // The header of a key is public, and says what the placeholders below it stand for.
        let by_header = rule.checks.iter().any(|c| c.starts_with("private-key-"));
        rule.secret && rule.matcher == Matcher::Pattern && !by_header && self.file.is_none_or(fits)
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
        if !span.is_empty() {
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
    // Who knows nothing comes last, and says nothing where another has spoken.
    found.sort_by_key(|(span, _, rank)| (*rank == 0, span.start, span.end));
    let weak = found.split_off(found.partition_point(|(_, _, rank)| *rank > 0));
    let mut out: Vec<Sighting<'_>> = Vec::with_capacity(found.len() + weak.len());
    let join = |out: &mut Vec<Sighting<'_>>| {
        let mut joined: Vec<Sighting<'_>> = Vec::with_capacity(out.len());
        for (span, kind, rank) in out.drain(..) {
            match joined.last_mut() {
                Some(last) if span.start < last.0.end => {
                    last.0.end = last.0.end.max(span.end);
                    if rank > last.2 {
                        (last.1, last.2) = (kind, rank);
                    }
                }
                _ => joined.push((span, kind, rank)),
            }
        }
        *out = joined;
    };
    out.append(&mut found);
    join(&mut out);
    if !weak.is_empty() {
        let overlaps = |span: &Range<usize>| {
            let after = out.partition_point(|(known, _, _)| known.end <= span.start);
            out.get(after).is_some_and(|(known, _, _)| known.start < span.end)
        };
        let fresh: Vec<_> = weak.into_iter().filter(|(span, _, _)| !overlaps(span)).collect();
        out.extend(fresh);
        out.sort_by_key(|(span, _, _)| (span.start, span.end));
        join(&mut out);
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
    let sign = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let mut ranges = key_bodies(text);
    ranges.extend(above_footers(text, &ranges));
    ranges.extend(putty(text));
    let mut out = Vec::new();
    for range in ranges {
        let start = range.start;
        let mut at = start;
        // What follows a header in its line is code more often than a body.
        let beside = start.checked_sub(1).is_some_and(|b| text[b] != b'\n');
        let is_code = |line: &[u8]| !line.split(|b| !sign(b)).any(|run| run.len() >= BESIDE_HEADER);
        for line in text[range].split_inclusive(|b| *b == b'\n') {
            // A sign that stands alone joins two strings.
            let joins = |i: &usize| {
                line[*i] == b'+'
                    && ![i.checked_sub(1), Some(i + 1)].iter().flatten().any(|n| line.get(*n).is_some_and(sign))
            };
            if beside && at == start && is_code(line) {
                at += line.len();
                continue;
            }
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
    let mut seen = 0;
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY").filter(|at| is_footer(text, *at)) {
        // Of the footers in one line, the first ends a body.
        if at < seen {
            continue;
        }
        let line = memchr::memrchr(b'\n', &text[seen..at]).map_or(seen, |i| seen + i + 1);
        seen = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i + 1);
        // The footer of a body that is known ends it, or stands in the line in which it ends.
        let before = known.partition_point(|k| k.start <= at).checked_sub(1);
        if before.is_some_and(|k| known[k].end >= line) {
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

/// Tells whether the words at a place are those of a footer.
fn is_footer(text: &[u8], at: usize) -> bool {
    let near = &text[at.saturating_sub(40)..at];
    let head = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
    memchr::memmem::find(head, b"-----END").is_some()
}

/// Finds the private lines of PuTTY's key files.
fn putty(text: &[u8]) -> Vec<Range<usize>> {
    const HEAD: &[u8] = b"Private-Lines:";
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, HEAD) {
        let number = &text[at + HEAD.len()..text.len().min(at + HEAD.len() + 16)];
        let Some(end) = memchr::memchr(b'\n', number) else { continue };
        let count = std::str::from_utf8(number[..end].trim_ascii()).ok().and_then(|n| n.parse::<usize>().ok());
        let Some(count) = count.filter(|_| out.last().is_none_or(|last| last.end <= at)) else { continue };
        let start = at + HEAD.len() + end + 1;
        let lines = text[start..].split_inclusive(|b| *b == b'\n').take(count.min(KEY_LINES));
        out.push(start..start + lines.map(<[u8]>::len).sum::<usize>());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;
    use std::time::{Duration, Instant};

    /// Whatever is worse than linear takes minutes here.
    #[test]
    fn dif_16_the_search_for_secrets_is_linear_whatever_the_text_holds() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let words = ["PRIVATE", " KEY"].concat();
        for unit in [
            format!("-----BEGIN {words}-----"),
            format!("-----END {words}-----"),
            format!("-----BEGIN {words}-----\n"),
            format!("-----END {words}-----\n"),
            format!("-----BEGIN {words}-----abcd-----END {words}-----"),
            format!("abcd\n-----END {words}----- -----END {words}-----\n"),
            format!("---- END {words} "),
            "Private-Lines: 400\n".to_owned(),
            "Private-Lines: 400 ".to_owned(),
            "password = \"hunter2hunter2\" ".to_owned(),
        ] {
            let text = unit.repeat(250_000 / unit.len());
            let started = Instant::now();
            let found = rules.secrets(None, text.as_bytes());
            assert!(started.elapsed() < Duration::from_secs(20), "{unit:?} took {:?}", started.elapsed());
            assert!(found.windows(2).all(|w| w[0].span.end <= w[1].span.start));
        }
    }

    #[test]
    fn secrets_are_in_order_within_their_lines_and_named_by_who_knows_most() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let key = format!("AKIAY{}", "Q3EGRNDLK5V2TW7");
        let text = format!("a = 1\npassword = \"{key}\"\nb = \"{key}\"; c = \"{key}\"\n");
        let found = rules.secrets(None, text.as_bytes());
        assert_eq!(found.len(), 3, "{found:?}");
        for s in &found {
            assert_eq!((&text[s.span.clone()], s.kind), (key.as_str(), "aws-access-key-id"));
        }
    }
}
