//! Secrets that no pattern of one line matches: values whose position makes them secrets, and
//! literals that are joined.

use super::{FileScan, RuleFit, RuleHit};
use crate::finding::Confidence;
use crate::rules::catalog::{FILTER, Matcher};
use crate::rules::check;
use crate::rules::leak::{kube, pair, view};
use crate::rules::secret::{SecretCandidate, overlap, published};
use crate::rules::spans::{LineCursor, Spans};
use crate::rules::walk::{self, Hay, Match, Scratch, Visitor};
use std::ops::Range;

/// Detail in the report of a secret whose literals are joined.
const IN_PARTS: &str = "its literals are joined";
/// Bytes of a line before and after a value that checks read, at most.
const CHECKED: usize = 512;

/// A value that its position identifies as a secret.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    rule: u16,
    /// Bytes of the value in the run.
    span: Range<usize>,
}

/// Finds values by their position.
type Finder = fn(&[u8]) -> Vec<Range<usize>>;

/// Finds the values of Kubernetes Secrets.
fn kubernetes_values(text: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    kube::find(text, &mut out);
    out
}

impl FileScan<'_> {
    /// Reports values of the block that are secrets because of their position.
    pub(super) fn report_placed(&mut self) {
        let placed = match self.placed.take() {
            Some(placed) => placed,
            None => self.find_placed(),
        };
        let offset = if placed.is_empty() { 0 } else { self.run().1 };
        let text = self.block.text;
        let first = placed.partition_point(|p| p.span.start < offset);
        let mut lines = LineCursor::of(text);
        for Placed { rule, span } in placed[first..]
            .iter()
            .take_while(|p| p.span.end <= offset + text.len())
        {
            let span = span.start - offset..span.end - offset;
            let (line, line_index) = lines.around(&span);
            if self.checks_pass(*rule, &line, &span) {
                self.secrets.push(RuleHit {
                    rule: *rule,
                    line,
                    line_index,
                    span,
                    detail: None,
                });
            }
        }
        self.placed = Some(placed);
    }

    /// Returns the values of the current run whose position identifies them as secrets, in order.
    fn find_placed(&mut self) -> Vec<Placed> {
        const FINDERS: [(Matcher, Finder); 2] = [
            (Matcher::AwsSecretHalf, pair::live_halves),
            (Matcher::KubernetesData, kubernetes_values),
        ];
        let mut out = Vec::new();
        for (matcher, find) in FINDERS {
            let Some(rule) = self.rule_of_matcher(matcher) else {
                continue;
            };
            let found = find(self.run().0.text);
            out.extend(found.into_iter().map(|span| Placed { rule, span }));
        }
        out.sort_by_key(|p| p.span.start);
        out
    }

    /// Returns true if a value passes the checks of its rule and is not a published key.
    fn checks_pass(&self, rule: u16, line: &Range<usize>, span: &Range<usize>) -> bool {
        let text = self.block.text;
        let shown =
            span.start.saturating_sub(CHECKED).max(line.start)..(span.end + CHECKED).min(line.end);
        let candidate = SecretCandidate {
            secret: &text[span.clone()],
            at: span.start - shown.start,
            line: &text[shown],
            after: b"",
            path: self.file.path().as_bytes(),
        };
        let rule = self.reporter.rules.rule(rule);
        rule.checks.iter().all(|c| check::passes(c, &candidate))
            && !published::is_published(candidate.secret)
    }

    /// Searches joined literals for secrets with the prefix of their issuer. Tests are not
    /// searched, because they split values that only resemble secrets.
    pub(super) fn joined(&mut self, scratch: &mut Scratch) {
        let (rules, text, path) = (
            self.reporter.rules,
            self.block.text,
            self.file.path().as_bytes(),
        );
        if self.is_test() {
            return;
        }
        let Some(view) = view::joined(text, false) else {
            return;
        };
        let mut heard = Joined {
            scan: self,
            text: &view.text,
            found: Vec::new(),
        };
        walk::walk(
            rules,
            &FILTER,
            Hay::whole(&view.text, path),
            scratch,
            &mut heard,
        );
        let mut found = heard.found;
        found.sort_by_key(|(_, span)| span.start);
        let known = Spans::of(self.secrets.iter().map(|hit| hit.span.clone()));
        let mut lines = LineCursor::of(text);
        for (rule, span) in found {
            let parts = view.back(&span);
            // A secret within one literal was already found there.
            let [first, _, ..] = parts.as_slice() else {
                continue;
            };
            if !known.overlap(first) {
                let (line, line_index) = lines.around(first);
                let span = first.start..first.end.min(line.end);
                self.secrets.push(RuleHit {
                    rule,
                    line,
                    line_index,
                    span,
                    detail: Some(IN_PARTS),
                });
            }
        }
    }
}

/// Returns true if a secret contains one of the literals of its rule, which identify the issuer.
fn has_mark(rule: u16, secret: &[u8]) -> bool {
    let plain = secret.to_ascii_lowercase();
    let literals = FILTER
        .prefilter
        .literals
        .iter()
        .zip(FILTER.users)
        .filter(|(_, users)| users.contains(&rule));
    let mut marks = literals.map(|(literal, _)| literal.to_ascii_lowercase());
    marks.any(|mark| memchr::memmem::find(&plain, &mark).is_some())
}

/// Collects the secrets in joined literals.
struct Joined<'s, 'a, 't> {
    scan: &'s mut FileScan<'a>,
    text: &'t [u8],
    found: Vec<(u16, Range<usize>)>,
}

impl Visitor for Joined<'_, '_, '_> {
    fn accepts(&mut self, index: u16) -> bool {
        let rule = self.scan.reporter.rules.rule(index);
        let knows =
            rule.secret && rule.confidence == Confidence::High && overlap::knows_issuer(&rule.id);
        // The header of a key is public.
        knows
            && rule.matcher == Matcher::Pattern
            && !rule.checks.iter().any(|c| c.starts_with("private-key-"))
            && self.scan.accepts(index)
    }

    fn found(&mut self, found: &Match) -> bool {
        if has_mark(found.rule, &self.text[found.secret.clone()])
            && self.scan.fit_by_content(found.rule) == RuleFit::Reports
        {
            self.found.push((found.rule, found.secret.clone()));
        }
        true
    }
}
