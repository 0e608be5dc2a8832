//! Regular expressions that cost little to create, and become fast after frequent use.
//!
//! A small change contains a handful of literals, and creating a fast matcher for each took most of
//! its review time. So an expression starts as a plain simulation, and the fast matcher is created
//! for long texts and after a number of uses.

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::{Input, meta, util::syntax};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a text above which the fast matcher is created at once.
const SHORT: usize = 512;
/// Number of matches against short texts that cost about as much as creating the fast matcher.
const OFTEN: u32 = 150;
/// Bytes of a compiled expression, at most.
const SIZE_MAX: usize = 1 << 20;
/// Bytes of states that an expression caches while it runs, per thread, at most. Half of it makes
/// the widest expressions of the catalogue four times slower, because they discard their states
/// again and again.
const DFA_MAX: usize = 1 << 22;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    pattern: Box<str>,
    lines: bool,
    quick: meta::Regex,
    fast: OnceLock<Option<Regex>>,
    uses: AtomicU32,
}

/// Compiles a pattern in the notation of rules: bytes, ASCII classes, line anchors for `^` and `$`
/// only if `lines` is true. A single carriage return also ends a line there.
pub(super) fn compile(pattern: &str, lines: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .multi_line(lines)
        .crlf(lines)
        .size_limit(SIZE_MAX)
        .dfa_size_limit(DFA_MAX)
        .build()
}

impl Expression {
    /// Creates an expression. `None`: it is invalid (see [`compile`]).
    pub(super) fn new(pattern: &str, lines: bool) -> Option<Self> {
        let plain = meta::Config::new()
            .auto_prefilter(false)
            .hybrid(false)
            .dfa(false)
            .onepass(false)
            .utf8_empty(false)
            .nfa_size_limit(Some(SIZE_MAX));
        let syntax = syntax::Config::new()
            .unicode(false)
            .utf8(false)
            .multi_line(lines)
            .crlf(lines);
        let quick = meta::Builder::new()
            .configure(plain)
            .syntax(syntax)
            .build(pattern)
            .ok()?;
        Some(Self {
            pattern: pattern.into(),
            lines,
            quick,
            fast: OnceLock::new(),
            uses: AtomicU32::new(0),
        })
    }

    /// Returns the number of a named group.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        self.quick
            .group_info()
            .to_index(regex_automata::PatternID::ZERO, name)
    }

    /// Returns the first match that starts at or after a byte. The text before that byte counts as
    /// context.
    pub(super) fn find_at(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        match self.fast(text) {
            Some(fast) => fast.find_at(text, from).map(|m| m.range()),
            None => self
                .quick
                .search(&Input::new(text).range(from..))
                .map(|m| m.range()),
        }
    }

    /// Returns the range of a group of the match that starts at a byte.
    pub(super) fn group_at(&self, text: &[u8], start: usize, group: usize) -> Option<Range<usize>> {
        match self.fast(text) {
            Some(fast) => {
                let mut groups = fast.capture_locations();
                fast.captures_read_at(&mut groups, text, start)?;
                groups.get(group).map(|(start, end)| start..end)
            }
            None => {
                let mut groups = self.quick.create_captures();
                self.quick
                    .search_captures(&Input::new(text).range(start..), &mut groups);
                groups.get_group(group).map(|g| g.range())
            }
        }
    }

    /// Returns true if it matches anywhere.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.find_at(text, 0).is_some()
    }

    fn fast(&self, text: &[u8]) -> Option<&Regex> {
        if text.len() <= SHORT && self.uses.fetch_add(1, Ordering::Relaxed) < OFTEN {
            return None;
        }
        self.fast
            .get_or_init(|| compile(&self.pattern, self.lines).ok())
            .as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the first match from an offset, and its secret.
    fn search(
        e: &Expression,
        text: &str,
        from: usize,
    ) -> (Option<Range<usize>>, Option<Range<usize>>) {
        let group = e.group("secret").unwrap();
        let found = e.find_at(text.as_bytes(), from);
        (
            found.clone(),
            found.and_then(|f| e.group_at(text.as_bytes(), f.start, group)),
        )
    }

    #[test]
    fn both_matchers_see_the_same() {
        for (pattern, lines, text, from) in [
            (r"(?i)pass(?P<secret>\w+)", false, "my PASSword here", 0),
            (r"\bkey=(?P<secret>\S*)", false, "monkey=1 key=22", 0),
            (r"\bkey=(?P<secret>\S*)", false, "key=1 key=22", 5),
            (r"^a$(?P<secret>)", true, "b\na\n", 0),
            (r"[\x80-\xff]+(?P<secret>x)", false, "ääx", 0),
            (r"none(?P<secret>)", false, "of it", 0),
        ] {
            let e = Expression::new(pattern, lines).unwrap();
            let quick = search(&e, text, from);
            assert!(e.fast.get().is_none());
            e.uses.store(OFTEN, Ordering::Relaxed);
            assert_eq!(search(&e, text, from), quick, "{pattern}");
            assert!(e.fast.get().is_some());
        }
    }

    #[test]
    fn a_long_text_is_for_the_fast_matcher() {
        let e = Expression::new("b", false).unwrap();
        assert_eq!(e.find_at(&[b'a'; SHORT + 1], 0), None);
        assert!(e.fast.get().is_some());
    }
}
