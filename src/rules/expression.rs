//! Regular expressions that cost little to create, and become fast after frequent use.
//!
//! A small change contains a handful of literals, and creating a fast matcher for each took most of
//! its review time. So an expression starts as a plain simulation, and the fast matcher is created
//! for long texts and after a number of uses.

mod decode;
#[cfg(test)]
mod encode;

use super::catalog;
use regex::bytes::{Regex, RegexBuilder};
use regex_automata::{Input, meta, util::syntax};
use regex_syntax::hir::{Hir, HirKind};
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

/// A parsed expression with its matchers, which are created when they are needed.
#[derive(Debug)]
pub(super) struct Expression {
    hir: Hir,
    /// `None`: the expression is too large.
    simple: OnceLock<Option<meta::Regex>>,
    fast: OnceLock<Option<meta::Regex>>,
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

/// Parses a pattern: see [`compile`]. The build script has parsed the patterns of the catalogue.
fn parse(pattern: &str, lines: bool) -> Option<Hir> {
    if let Some(hir) = catalog::parsed_pattern(pattern, lines).and_then(decode::decode) {
        return Some(hir);
    }
    let syntax = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .multi_line(lines)
        .crlf(lines);
    syntax::parse_with(pattern, &syntax).ok()
}

/// The matcher that is created with little work.
fn simple(hir: &Hir) -> Option<meta::Regex> {
    let plain = meta::Config::new()
        .auto_prefilter(false)
        .hybrid(false)
        .dfa(false)
        .onepass(false)
        .utf8_empty(false)
        .nfa_size_limit(Some(SIZE_MAX));
    meta::Builder::new()
        .configure(plain)
        .build_from_hir(hir)
        .ok()
}

/// The matcher that takes little time for each byte, with the engines that [`compile`] uses.
fn fast(hir: &Hir) -> Option<meta::Regex> {
    let all = meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(SIZE_MAX))
        .hybrid_cache_capacity(DFA_MAX);
    meta::Builder::new().configure(all).build_from_hir(hir).ok()
}

/// Returns the number of a named group.
fn group_in(hir: &Hir, name: &str) -> Option<usize> {
    match hir.kind() {
        HirKind::Capture(capture) if capture.name.as_deref() == Some(name) => {
            Some(capture.index as usize)
        }
        HirKind::Capture(capture) => group_in(&capture.sub, name),
        HirKind::Repetition(repetition) => group_in(&repetition.sub, name),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().find_map(|part| group_in(part, name))
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => None,
    }
}

impl Expression {
    /// Creates an expression. `None`: it is invalid (see [`compile`]).
    pub(super) fn new(pattern: &str, lines: bool) -> Option<Self> {
        Some(Self {
            hir: parse(pattern, lines)?,
            simple: OnceLock::new(),
            fast: OnceLock::new(),
            uses: AtomicU32::new(0),
        })
    }

    /// Returns the number of a named group.
    pub(super) fn group(&self, name: &str) -> Option<usize> {
        group_in(&self.hir, name)
    }

    /// Returns the first match that starts at or after a byte. The text before that byte counts as
    /// context.
    pub(super) fn find_at(&self, text: &[u8], from: usize) -> Option<Range<usize>> {
        self.matcher(text)?
            .search(&Input::new(text).range(from..))
            .map(|m| m.range())
    }

    /// Returns the range of a group of the match that starts at a byte.
    pub(super) fn group_at(&self, text: &[u8], start: usize, group: usize) -> Option<Range<usize>> {
        let matcher = self.matcher(text)?;
        let mut groups = matcher.create_captures();
        matcher.search_captures(&Input::new(text).range(start..), &mut groups);
        groups.get_group(group).map(|g| g.range())
    }

    /// Returns true if it matches anywhere.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.matcher(text).is_some_and(|m| m.is_match(text))
    }

    /// Returns the matcher for a text. `None`: the expression is too large, which
    /// `RulePatterns::check` reports for the rules of teams.
    fn matcher(&self, text: &[u8]) -> Option<&meta::Regex> {
        let is_simple = text.len() <= SHORT && self.uses.fetch_add(1, Ordering::Relaxed) < OFTEN;
        if is_simple {
            self.simple.get_or_init(|| simple(&self.hir)).as_ref()
        } else {
            self.fast.get_or_init(|| fast(&self.hir)).as_ref()
        }
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

    /// Returns all patterns of a rule, and whether `^` and `$` are about lines in them.
    fn patterns(rule: &catalog::Rule) -> impl Iterator<Item = (&str, bool)> {
        let single = [
            &rule.not_pattern,
            &rule.harmless,
            &rule.guarded_by,
            &rule.weak_if,
        ];
        let lines = [
            &rule.file_has,
            &rule.file_lacks,
            &rule.near_has,
            &rule.near_lacks,
        ];
        let single = single.into_iter().flat_map(|list| list.iter());
        let lines = lines.into_iter().flat_map(|list| list.iter());
        std::iter::once((rule.pattern.as_ref(), false))
            .chain(single.map(|p| (p.as_ref(), false)))
            .chain(lines.map(|p| (p.as_ref(), true)))
    }

    #[test]
    fn every_pattern_of_the_catalogue_is_parsed_by_the_build_script() {
        for rule in &catalog::RULES {
            for (pattern, lines) in patterns(rule) {
                let bytes = catalog::parsed_pattern(pattern, lines);
                let parsed = bytes.and_then(decode::decode);
                assert_eq!(
                    parsed,
                    encode::parse(pattern, lines),
                    "{}: {pattern}",
                    rule.id
                );
                assert!(parsed.is_some(), "{}: {pattern}", rule.id);
            }
        }
    }

    #[test]
    fn an_expression_survives_its_encoding() {
        for pattern in [
            "",
            "a|b",
            "a|",
            "(?:a{2,}?|b{0,3}|c{4}|d*+)",
            r"(?P<x>(\w)+)(?-u:\xff)\b\B\A\z",
            r"(?i)straße|[^a-z\n]",
            "a{0}|(?:)",
        ] {
            for lines in [false, true] {
                let bytes = encode::encode(pattern, lines).expect(pattern);
                assert_eq!(
                    decode::decode(&bytes),
                    encode::parse(pattern, lines),
                    "{pattern}"
                );
            }
        }
    }

    #[test]
    fn damaged_bytes_are_no_expression() {
        let bytes = encode::encode(r"(?P<x>[ab]{2,3})|cd$", true).unwrap();
        for end in 0..bytes.len() {
            assert_eq!(decode::decode(&bytes[..end]), None, "{end}");
        }
        assert_eq!(decode::decode(&[0xff]), None);
        assert_eq!(decode::decode(&[&bytes[..], &[0]].concat()), None);
    }
}
