//! The patterns of the rules for secrets over a whole text, without the thresholds with which the
//! rules avoid false positives: no limit on a line's length or on matches, no path, no language, no
//! disabled rule.

use super::named::Seeker;
use super::value::{self, Tier};
use super::{SecretSpan, rank};
use crate::rules::catalog::{FILTER, Filter, Matcher, Rule};
use crate::rules::needs::Lowered;
use crate::rules::secret::{self, SecretCandidate, overlap, words};
use crate::rules::{RuleSet, check};
use std::ops::Range;

/// Bytes of a line that is searched as a whole, at most.
const LONG: usize = 16 << 10;
/// Bytes before and after a literal that are searched in a longer line.
const BEFORE: usize = 1024;
const AFTER: usize = LONG - BEFORE;
/// A literal at this distance before the end of a window needs no window of its own.
const COVERED: usize = 4096;
/// Bytes before a match that its checks read, at most.
const HEAD: usize = LONG;
/// The rule whose literals are words for a secret.
const BY_NAME: &str = "hardcoded-credential";
/// The rule whose literals name headers.
const BY_HEADER: &str = "authorization-header";

/// Finds secrets of the rules, and values with names of secrets. Linear.
pub(super) fn find<'r>(rules: &'r RuleSet, text: &[u8], out: &mut Vec<SecretSpan<'r>>) {
    let mut sweep = Sweep {
        rules,
        text,
        seen: Vec::new(),
        line: 0..0,
        line_end: 0,
        lowered: Lowered::default(),
        started: false,
        seeker: Seeker::new(text),
        values: Vec::new(),
        out,
    };
    sweep.filter(&FILTER);
    rules.team.with_filter(|f| sweep.filter(f));
    let values = std::mem::take(&mut sweep.values);
    out.extend(
        values
            .into_iter()
            .map(|v| SecretSpan::new(v, BY_NAME, rank::NAMED)),
    );
}

/// The searched part of a line for a rule: the line, the end of the part, and the earliest start of
/// the next match.
#[derive(Clone, Copy, Debug)]
struct SweptWindow {
    line: usize,
    until: usize,
    matched: usize,
}

struct Sweep<'a, 'r> {
    rules: &'r RuleSet,
    text: &'a [u8],
    /// By rule. Empty until the first literal.
    seen: Vec<SweptWindow>,
    line: Range<usize>,
    line_end: usize,
    lowered: Lowered,
    started: bool,
    seeker: Seeker<'a>,
    values: Vec<Range<usize>>,
    out: &'a mut Vec<SecretSpan<'r>>,
}

impl<'r> Sweep<'_, 'r> {
    fn filter(&mut self, filter: &Filter<'_>) {
        (self.line, self.line_end, self.started) = (0..0, 0, false);
        filter.prefilter.scan(self.text, |literal, at| {
            for index in filter.users[usize::from(literal)] {
                let rule = self.rules.rule(*index);
                // The header of a key is public, and describes the placeholders below it.
                let is_header = rule.checks.iter().any(|c| secret::is_for_key_headers(c));
                if !rule.secret || rule.matcher != Matcher::Pattern || is_header {
                    continue;
                }
                if rule.id == BY_NAME || rule.id == BY_HEADER {
                    self.seeker.look(at, &mut self.values);
                }
                let length = filter.prefilter.literals[usize::from(literal)].len();
                self.hit(*index, rule, at..at + length);
            }
        });
    }

    fn hit(&mut self, index: u16, rule: &'r Rule, at: Range<usize>) {
        self.go_to_line(at.start);
        if self.seen.is_empty() {
            self.seen = vec![
                SweptWindow {
                    line: usize::MAX,
                    until: 0,
                    matched: 0
                };
                self.rules.len()
            ];
        }
        let line = self.line.clone();
        let seen = &mut self.seen[usize::from(index)];
        if seen.line != line.start {
            *seen = SweptWindow {
                line: line.start,
                until: line.start,
                matched: line.start,
            };
        } else if at.end + COVERED <= seen.until || seen.until >= line.end {
            return;
        }
        let window = if line.len() <= LONG {
            line
        } else {
            at.start.saturating_sub(BEFORE).max(line.start)..(at.start + AFTER).min(line.end)
        };
        seen.until = window.end;
        let near = &self.text[window.clone()];
        let has_sign = rule.line_has.is_empty()
            || rule
                .line_has
                .iter()
                .any(|s| memchr::memmem::find(near, s.as_bytes()).is_some());
        if has_sign && self.lowered.meets(rule.needs, self.text, &window) {
            self.search(index, rule, window);
        }
    }

    /// Makes the line that contains an offset the current one.
    fn go_to_line(&mut self, at: usize) {
        if self.started && at < self.line_end {
            return;
        }
        let from = self.line_end;
        let start = memchr::memrchr(b'\n', &self.text[from..at]).map_or(from, |i| from + i + 1);
        let end = memchr::memchr(b'\n', &self.text[at..]).map_or(self.text.len(), |i| at + i);
        self.line_end = (end + 1).min(self.text.len());
        let end = if end > start && self.text[end - 1] == b'\r' {
            end - 1
        } else {
            end
        };
        self.started = true;
        self.line = start..end;
    }

    fn search(&mut self, index: u16, rule: &'r Rule, window: Range<usize>) {
        let Some(compiled) = self.rules.compiled(index) else {
            return;
        };
        // One byte before the window gives `^` and `\b` their context.
        let base = window.start.saturating_sub(1).max(self.line.start);
        let hay = &self.text[base..window.end];
        let known = self.seen[usize::from(index)].matched;
        let mut from = window.start.max(known).saturating_sub(base);
        while from <= hay.len() {
            let Some(found) = compiled.pattern.find_at(hay, from) else {
                return;
            };
            let span = base + found.start..base + found.end;
            from = found.end.max(found.start + 1);
            let group = compiled
                .secret
                .and_then(|g| compiled.pattern.group_at(hay, found.start, g));
            let mut secret = group.map_or(span.clone(), |g| base + g.start..base + g.end);
            // At the end of the window, the secret may continue.
            if secret.end == window.end {
                secret.end += self.text[secret.end..self.line.end]
                    .iter()
                    .take_while(|b| goes_on(**b))
                    .count();
                from = hay.len() + 1;
            }
            // A pattern for bare values includes quotes in its match.
            secret = unquoted(self.text, secret);
            if self.counts(rule, &window, &secret) {
                self.seen[usize::from(index)].matched = span.end;
                self.out.push(SecretSpan::of(rule, secret, self.text));
            }
        }
    }

    /// Returns true if a match is hidden: the rule's own checks pass, or only checks that avoid
    /// false positives fail.
    fn counts(&self, rule: &Rule, window: &Range<usize>, secret: &Range<usize>) -> bool {
        if secret.is_empty() {
            return false;
        }
        let bytes = &self.text[secret.clone()];
        let start = window.start.max(secret.start.saturating_sub(HEAD));
        let candidate = SecretCandidate {
            secret: bytes,
            line: &self.text[start..window.end.max(secret.end)],
            at: secret.start - start,
            after: &self.text[window.end.max(secret.end)..],
            path: b"",
        };
        let passes = rule.checks.iter().all(|c| check::passes(c, &candidate));
        passes || is_worth_it(rule, bytes)
    }
}

/// Removes the quotes around a value.
fn unquoted(text: &[u8], span: Range<usize>) -> Range<usize> {
    let (start, end) = (span.start, span.end);
    if end - start > 2 && matches!(text[start], b'"' | b'\'' | b'`') && text[start] == text[end - 1]
    {
        return start + 1..end - 1;
    }
    span
}

/// Returns true for a byte that a token can contain.
fn goes_on(b: u8) -> bool {
    b.is_ascii_graphic()
        && !matches!(
            b,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b',' | b';' | b')' | b'}' | b']'
        )
}

/// Returns true if a match is hidden although its rule would not report it.
fn is_worth_it(rule: &Rule, secret: &[u8]) -> bool {
    // Names, headers and addresses are judged elsewhere.
    if overlap::knowledge(&rule.id) == 0
        || matches!(&*rule.id, "password-in-url" | "credential-in-xml")
    {
        return false;
    }
    if rule.checks.iter().any(|c| secret::is_for_passwords(c)) {
        return value::is_hidden(secret, Tier::Password, true);
    }
    let text = String::from_utf8_lossy(&secret[..secret.len().min(512)]);
    !words::is_filler(&text) && !value::is_reference(&text)
}
