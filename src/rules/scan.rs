//! Looks at one file: which rules apply, where they match, what becomes of a match.

use super::catalog::{FILTER, Filter, Matcher};
use super::glob;
use super::language::{self, Languages};
use super::report::{Reporter, Sighting};
use super::walk::{self, Match, Visitor};
use super::{RuleSet, Scope, change};
use crate::diff::{Block, FileChange, LineNo, RepoPath, TextChange};
use crate::finding::{Finding, LineSpan};
use std::borrow::Cow;
use std::ops::Range;

/// The most findings of one rule that find something in one file; what is more is counted in the last.
const FINDINGS_MAX: u32 = 1000;
/// Bytes of a long line that a quote shows on each side of a match.
const QUOTE_SIDE: usize = 120;

/// Scans a changed file.
pub(super) fn file(rules: &RuleSet, file: &FileChange, scope: Scope, out: &mut Vec<Finding>) {
    let reporter = &mut Reporter { rules, out };
    if let Some(text) = file.text() {
        lines(file.path(), text, scope, reporter);
    }
    if scope == Scope::All {
        change::scan(file, reporter);
    }
}

fn lines(path: &RepoPath, text: &TextChange, scope: Scope, reporter: &mut Reporter<'_>) {
    let rules = reporter.rules;
    let mut scan = Scan {
        path,
        text,
        languages: None,
        is_test: None,
        scope,
        verdicts: Vec::new(),
        counts: Vec::new(),
        block: Block { first: LineNo::FIRST, text: b"" },
        reporter: Reporter { rules, out: reporter.out },
    };
    for block in text.added() {
        scan.block = block;
        walk::walk(rules, &FILTER, block.text, path.as_bytes(), &mut scan);
        rules.team.with_filter(|f| walk::walk(rules, f, block.text, path.as_bytes(), &mut scan));
    }
}

/// What is known of a rule in this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Unknown,
    /// Language, path and scope fit.
    Applies,
    /// The file as a whole fits too.
    Looks,
    Not,
}

struct Scan<'a> {
    path: &'a RepoPath,
    text: &'a TextChange,
    languages: Option<Languages>,
    is_test: Option<bool>,
    scope: Scope,
    /// By rule; empty until the first literal.
    verdicts: Vec<Fit>,
    /// Findings by rule; empty until the first.
    counts: Vec<u32>,
    block: Block<'a>,
    reporter: Reporter<'a>,
}

impl Visitor for Scan<'_> {
    fn accepts(&mut self, rule: u16) -> bool {
        if self.verdicts.is_empty() {
            self.verdicts = vec![Fit::Unknown; self.reporter.rules.len()];
        }
        let known = self.verdicts[usize::from(rule)];
        if known != Fit::Unknown {
            return known != Fit::Not;
        }
        let fits = self.applies(rule);
        self.verdicts[usize::from(rule)] = if fits { Fit::Applies } else { Fit::Not };
        fits
    }

    fn found(&mut self, found: &Match) -> bool {
        let rules = self.reporter.rules;
        let at = usize::from(found.rule);
        if self.verdicts[at] == Fit::Applies {
            let fits = rules.compiled(found.rule).is_some_and(|c| c.file_fits(self.text.new.whole()));
            self.verdicts[at] = if fits { Fit::Looks } else { Fit::Not };
        }
        if self.verdicts[at] == Fit::Not {
            return true;
        }
        self.report(found);
        true
    }
}

impl Scan<'_> {
    /// Tells whether a rule looks at files like this one.
    fn applies(&mut self, index: u16) -> bool {
        let rules = self.reporter.rules;
        let rule = rules.rule(index);
        if !rules.is_enabled(index) || (self.scope == Scope::Secrets && !rule.secret) {
            return false;
        }
        let path = self.path.as_bytes();
        let start = || self.text.new.line(LineNo::FIRST).unwrap_or_default();
        let languages = *self.languages.get_or_insert_with(|| Languages::of(path, start()));
        (rule.languages.is_empty() || rule.languages.overlaps(languages))
            && (rule.in_tests || !*self.is_test.get_or_insert_with(|| language::is_test_path(path)))
            && (rule.paths.is_empty() || rule.paths.iter().any(|g| glob::matches(g, path)))
            && !rule.not_paths.iter().any(|g| glob::matches(g, path))
    }

    fn report(&mut self, found: &Match) {
        if self.counts.is_empty() {
            self.counts = vec![0; self.reporter.rules.len()];
        }
        let count = &mut self.counts[usize::from(found.rule)];
        *count += 1;
        if *count > FINDINGS_MAX {
            return;
        }
        let detail = (*count == FINDINGS_MAX).then_some("more of the same follow in this file");
        let line = self.block.first.plus(found.line_index);
        let column = |at: usize| u32::try_from(at - found.line.start).unwrap_or(u32::MAX);
        let columns = (column(found.secret.start), column(found.secret.end));
        let quote = quoted(self.block.text, found);
        self.reporter.report_index(
            found.rule,
            Sighting {
                file: Some(self.path),
                lines: Some(LineSpan { first: line, last: line, columns: Some(columns) }),
                quote: &self.block.text[quote],
                detail,
            },
        );
    }
}

/// The line, or of a long one what stands around the match.
fn quoted(text: &[u8], found: &Match) -> Range<usize> {
    if found.line.len() <= 2 * QUOTE_SIDE + 100 {
        return found.line.clone();
    }
    let start = found.span.start.saturating_sub(QUOTE_SIDE).max(found.line.start);
    let end = (found.span.end + QUOTE_SIDE).min(found.line.end).min(start + 4 * QUOTE_SIDE);
    let _ = text;
    start..end
}

/// Masks the secrets of a text.
pub(super) fn mask<'t>(rules: &RuleSet, text: &'t [u8]) -> Cow<'t, [u8]> {
    let mut masker = Masker { rules, spans: Vec::new() };
    walk::walk(rules, &FILTER, text, b"", &mut masker);
    rules.team.with_filter(|f: &Filter<'_>| walk::walk(rules, f, text, b"", &mut masker));
    if masker.spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = text.to_vec();
    for span in masker.spans {
        let keep = if span.len() >= 12 { 4 } else { 0 };
        masked[span.start + keep..span.end].fill(b'*');
    }
    Cow::Owned(masked)
}

struct Masker<'a> {
    rules: &'a RuleSet,
    spans: Vec<Range<usize>>,
}

impl Visitor for Masker<'_> {
    fn accepts(&mut self, rule: u16) -> bool {
        let rule = self.rules.rule(rule);
        rule.secret && rule.matcher == Matcher::Pattern
    }
    fn found(&mut self, found: &Match) -> bool {
        self.spans.push(found.secret.clone());
        true
    }
}
