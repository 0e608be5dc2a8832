//! Secrets in files that are not text: programs, archives, databases.
//!
//! The printable runs of such a file are searched in one pass, only by rules whose matches cannot
//! be accidental: those matches are long enough and contain the mark of their issuer (`AKIA`,
//! `ghp_`, `-----BEGIN`). A secret in the old side is not reported again.

use super::catalog::{FILTER, Matcher, RULES};
use super::report::{Reporter, Rest, Sighting};
use super::role::{self, FileRole};
use super::suppress::Counting;
use super::walk::{self, Hay, Match, Scratch, Visitor};
use super::{RuleSet, glob};
use crate::diff::{Body, FileChange};
use crate::finding::listing::Floor;
use crate::finding::{Confidence, Finding, Severity};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

/// Bytes of a searched run and of a counted match, at least.
const RUN_MIN: usize = 20;
/// Bytes of the mark of an issuer, at least.
const MARK_MIN: usize = 3;
/// Bytes of runs that are collected before they are searched, so that memory use does not grow with
/// the file.
const GATHERED: usize = 1 << 20;
/// Bytes of a quote on each side of a secret.
const QUOTE_SIDE: usize = 60;
/// Base 64 digits before or after a match, above which the match is part of a longer text in base
/// 64.
const STRETCH_MAX: usize = 16;

/// Reports the secrets that a binary file gained. Returns the findings that are counted but not
/// listed.
pub(super) fn scan(
    rules: &RuleSet,
    file: &FileChange,
    counting: Counting,
    floor: &Floor,
    out: &mut Vec<Finding>,
) -> Rest {
    let Body::Binary(binary) = &file.body else {
        return Rest::default();
    };
    let path = file.path().as_bytes();
    let found = search(rules, path, binary.new_bytes());
    if found.is_empty() {
        return Rest::default();
    }
    let before: HashSet<_> = search(rules, path, binary.old_bytes())
        .into_iter()
        .map(|s| s.text)
        .collect();
    let mut reporter = Reporter::new(rules, Some(file), out)
        .counting(counting)
        .above(floor);
    let mut seen = HashSet::new();
    for secret in found {
        if before.contains(&secret.text) || !seen.insert(secret.text.clone()) {
            continue;
        }
        let detail = format!(
            "it starts at byte {} of a file that is not text",
            secret.offset
        );
        let sighting = Sighting {
            file: Some(file.path()),
            quote: &secret.quote,
            detail: Some(&detail),
            hide: Some((secret.span.start, secret.span.end)),
            in_doubt: is_in_doubt(secret.rule, path),
            ..Sighting::default()
        };
        reporter.report_index(secret.rule, sighting);
    }
    reporter.rest()
}

/// Returns true if the path casts doubt on the result of the rule in this file.
fn is_in_doubt(rule: u16, path: &[u8]) -> bool {
    let rule = &RULES[usize::from(rule)];
    let may_be_test = !rule.in_tests && role::of(path) == FileRole::Doubt;
    may_be_test || rule.weak_paths.iter().any(|g| glob::matches(g, path))
}

/// A secret in a binary file.
struct BlobSecret {
    rule: u16,
    text: Vec<u8>,
    /// Offset of its start in the file, in bytes.
    offset: usize,
    /// Text around the secret, and the range of the secret in it.
    quote: Vec<u8>,
    span: Range<usize>,
}

/// Searches the printable runs of a file.
fn search(rules: &RuleSet, path: &[u8], bytes: &[u8]) -> Vec<BlobSecret> {
    let mut search = BlobSearch {
        rules,
        path,
        fits: vec![None; RULES.len()],
        runs: Vec::new(),
        text: Vec::new(),
        scratch: Scratch::default(),
        out: Vec::new(),
    };
    runs(bytes, |run| search.add(bytes, run));
    wide_runs(bytes, |run| search.add(bytes, run));
    search.flush();
    search.out
}

/// A run of printable characters: its start in the file, its number of characters, and the bytes of
/// a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PrintableRun {
    start: usize,
    length: usize,
    width: usize,
}

struct BlobSearch<'a> {
    rules: &'a RuleSet,
    path: &'a [u8],
    /// By rule: true if the rule checks this file.
    fits: Vec<Option<bool>>,
    /// Offsets of the runs in the collected text, with the runs.
    runs: Vec<(usize, PrintableRun)>,
    /// The collected runs, one on each line.
    text: Vec<u8>,
    scratch: Scratch,
    out: Vec<BlobSecret>,
}

impl BlobSearch<'_> {
    fn add(&mut self, bytes: &[u8], run: PrintableRun) {
        self.runs.push((self.text.len(), run));
        let all = &bytes[run.start..(run.start + run.length * run.width).min(bytes.len())];
        self.text
            .extend(all.iter().copied().filter(|b| is_printable(*b)));
        self.text.push(b'\n');
        if self.text.len() >= GATHERED {
            self.flush();
        }
    }

    /// Searches the collected text.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let mut hits = Hits {
            search: self,
            text: &text,
            found: Vec::new(),
        };
        let mut scratch = std::mem::take(&mut hits.search.scratch);
        let hay = Hay::whole(&text, hits.search.path);
        walk::walk(hits.search.rules, &FILTER, hay, &mut scratch, &mut hits);
        let found = hits.found;
        self.scratch = scratch;
        let sights: Vec<BlobSecret> = found.iter().filter_map(|m| self.sight(&text, m)).collect();
        self.out.extend(sights);
        self.runs.clear();
        self.text = text;
        self.text.clear();
    }

    fn sight(&self, text: &[u8], found: &Match) -> Option<BlobSecret> {
        let index = self
            .runs
            .partition_point(|(at, _)| *at <= found.secret.start)
            .checked_sub(1)?;
        let (at, run) = self.runs[index];
        let secret = &found.secret;
        let start = secret
            .start
            .saturating_sub(QUOTE_SIDE)
            .max(found.line.start);
        let end = (secret.end + QUOTE_SIDE).min(found.line.end);
        Some(BlobSecret {
            rule: found.rule,
            text: text[secret.clone()].to_vec(),
            offset: run.start + (secret.start - at) * run.width,
            quote: text[start..end].to_vec(),
            span: secret.start - start..secret.end - start,
        })
    }

    fn fits(&mut self, index: u16) -> bool {
        *self.fits[usize::from(index)].get_or_insert_with(|| searches(self.rules, index, self.path))
    }
}

/// Returns true if a rule is enabled for a path, and certain enough that its matches in any bytes
/// are secrets.
fn searches(rules: &RuleSet, index: u16, path: &[u8]) -> bool {
    let Some(rule) = RULES.get(usize::from(index)) else {
        return false;
    };
    let is_strong = rule.secret
        && rule.matcher == Matcher::Pattern
        && rule.severity >= Severity::Major
        && rule.confidence == Confidence::High
        && rule.languages.is_empty()
        && !marks()[usize::from(index)].is_empty();
    is_strong
        && rules.is_enabled(index)
        && (rule.in_tests || role::of(path) != FileRole::Test)
        && (rule.paths.is_empty() || rule.paths.iter().any(|g| glob::matches(g, path)))
        && !rule.not_paths.iter().any(|g| glob::matches(g, path))
}

/// Collects the matches in the collected text.
struct Hits<'s, 'a> {
    search: &'s mut BlobSearch<'a>,
    text: &'s [u8],
    found: Vec<Match>,
}

impl Visitor for Hits<'_, '_> {
    fn accepts(&mut self, rule: u16) -> bool {
        self.search.fits(rule)
    }

    fn found(&mut self, found: &Match) -> bool {
        if is_marked(found, self.text) && !is_in_base64(self.text, &found.secret) {
            self.found.push(found.clone());
        }
        true
    }
}

/// Returns the marks of issuers by rule: literals that can be part of a match.
fn marks() -> &'static [Vec<&'static [u8]>] {
    static MARKS: OnceLock<Vec<Vec<&'static [u8]>>> = OnceLock::new();
    MARKS.get_or_init(|| {
        let mut marks = vec![Vec::new(); RULES.len()];
        for (literal, users) in FILTER.prefilter.literals.iter().zip(FILTER.users) {
            for rule in users.iter().filter(|_| literal.len() >= MARK_MIN) {
                marks[usize::from(*rule)].push(*literal);
            }
        }
        marks
    })
}

/// Returns true if a match, including the name before the secret, is long and contains the mark of
/// the issuer: a literal of the rule, or a prefix that its pattern requires.
fn is_marked(found: &Match, text: &[u8]) -> bool {
    let (rule, matched) = (found.rule, &text[found.span.clone()]);
    let prefix = text[found.secret.clone()]
        .get(..MARK_MIN)
        .and_then(|p| std::str::from_utf8(p).ok());
    if matched.len() < RUN_MIN {
        return false;
    }
    if prefix.is_some_and(|p| {
        RULES[usize::from(rule)]
            .pattern
            .replace('\\', "")
            .contains(p)
    }) {
        return true;
    }
    let lower = matched.to_ascii_lowercase();
    marks()[usize::from(rule)]
        .iter()
        .any(|mark| memchr::memmem::find(&lower, mark).is_some())
}

/// Returns true if a possible secret is part of a longer text in base 64, which can contain any
/// text by chance.
fn is_in_base64(text: &[u8], span: &Range<usize>) -> bool {
    let before = text[..span.start]
        .iter()
        .rev()
        .take(STRETCH_MAX + 1)
        .take_while(|b| is_base64_digit(**b))
        .count();
    let after = text[span.end..]
        .iter()
        .take(STRETCH_MAX + 1)
        .take_while(|b| is_base64_digit(**b))
        .count();
    before > STRETCH_MAX || after > STRETCH_MAX
}

fn is_base64_digit(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_')
}

fn is_printable(b: u8) -> bool {
    matches!(b, b'\t' | b' '..=b'~')
}

/// Calls `each` with the runs of printable bytes, in order.
fn runs(bytes: &[u8], mut each: impl FnMut(PrintableRun)) {
    let mut start = 0;
    // Check the last byte of a possible run first, so that most runs that are too short are
    // skipped.
    while let Some(last) = bytes.get(start + RUN_MIN - 1) {
        let unfit = if is_printable(*last) {
            bytes[start..start + RUN_MIN - 1]
                .iter()
                .rposition(|b| !is_printable(*b))
        } else {
            Some(RUN_MIN - 1)
        };
        if let Some(unfit) = unfit {
            start += unfit + 1;
            continue;
        }
        let rest = &bytes[start + RUN_MIN..];
        let length = RUN_MIN
            + rest
                .iter()
                .position(|b| !is_printable(*b))
                .unwrap_or(rest.len());
        each(PrintableRun {
            start,
            length,
            width: 1,
        });
        start += length + 1;
    }
}

/// Returns true if a printable ASCII character of UTF-16 is at an offset.
fn is_wide(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..at + 2) {
        Some([0, b] | [b, 0]) => is_printable(*b),
        _ => false,
    }
}

/// Calls `each` with the runs of UTF-16 whose characters are printable ASCII, of both orders of
/// bytes.
fn wide_runs(bytes: &[u8], mut each: impl FnMut(PrintableRun)) {
    const LENGTH: usize = 2 * RUN_MIN;
    let mut start = 0;
    while start + LENGTH <= bytes.len() {
        // Two neighbours that are both NUL, or both not NUL, end every run.
        let unfit = (0..LENGTH - 1).rev().find(|i| !is_wide(bytes, start + i));
        if let Some(unfit) = unfit {
            start += unfit + 1;
            continue;
        }
        let length = LENGTH
            + (start + LENGTH - 1..bytes.len())
                .take_while(|at| is_wide(bytes, *at))
                .count();
        each(PrintableRun {
            start,
            length: length / 2,
            width: 2,
        });
        start += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::code;
    use crate::policy::RulesPolicy;
    use crate::rules::Scope;

    #[test]
    fn runs_are_found_where_they_stand() {
        let mut bytes = vec![1, 2, 0xff];
        bytes.extend(b"short\x01");
        bytes.extend(b"this is one that is long enough\x02");
        bytes.extend(
            "and so is this one, in UTF-16"
                .encode_utf16()
                .flat_map(u16::to_le_bytes),
        );
        bytes.extend([7, 7]);
        let (mut narrow, mut wide) = (Vec::new(), Vec::new());
        runs(&bytes, |r| narrow.push(r));
        wide_runs(&bytes, |r| wide.push(r));
        assert_eq!(
            narrow,
            [PrintableRun {
                start: 9,
                length: 31,
                width: 1
            }]
        );
        assert_eq!(
            wide,
            [PrintableRun {
                start: 41,
                length: 29,
                width: 2
            }]
        );
    }

    #[test]
    fn data_without_secrets_has_none() {
        use base64::Engine as _;
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let mut random = crate::diff::tests::Random(77);
        let noise: Vec<u8> = (0..1 << 20).map(|_| random.below(256) as u8).collect();
        let printable: Vec<u8> = noise.iter().map(|b| b % 95 + 32).collect();
        let encoded = base64::engine::general_purpose::STANDARD
            .encode(&noise)
            .into_bytes();
        let wrapped = encoded.chunks(76).collect::<Vec<_>>().join(&b'\n');
        for (data, what) in [
            (noise, "noise"),
            (printable, "printable"),
            (encoded, "base 64"),
            (wrapped, "lines"),
        ] {
            let bytes = [b"\x89PNG\r\n\x1a\n\0\0\0\x01\x02\x03", &data[..]].concat();
            let mut out = Vec::new();
            rules.scan(&code::added("a.png".into(), bytes), Scope::All, &mut out);
            assert!(out.is_empty(), "{what}: {:?}", out[0].rule_id());
        }
    }

    #[test]
    fn slo_02_secrets_of_a_binary_file_beyond_the_cap_are_counted() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x01\x02\x03".to_vec();
        for i in 0..2_500 {
            let key = crate::rules::expand("${aws-key-id:AKIA}", &format!("{i}"));
            bytes.extend([b"\x01\x02", key.as_bytes(), b"\x03"].concat());
        }
        let (mut out, floor) = (Vec::new(), Floor::default());
        let rest = scan(
            &rules,
            &code::added("a.png".into(), bytes),
            Counting::None,
            &floor,
            &mut out,
        );
        assert_eq!(out.len(), 1_000);
        assert!(rest.counted.len() > 1_400, "{}", rest.counted.len());
        assert_eq!(
            rest.by_rule.iter().map(|u| u.count as usize).sum::<usize>(),
            rest.counted.len()
        );
    }

    #[test]
    fn most_rules_of_issuers_search_binary_files() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let mut search = BlobSearch {
            rules: &rules,
            path: b"a.bin",
            fits: vec![None; RULES.len()],
            runs: Vec::new(),
            text: Vec::new(),
            scratch: Scratch::default(),
            out: Vec::new(),
        };
        let fitting = (0..RULES.len() as u16).filter(|i| search.fits(*i)).count();
        assert!(fitting > 100, "{fitting}");
    }
}
