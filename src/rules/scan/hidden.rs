//! Text that a reader of the change does not see: encoded, invisible, or in a form that git does not
//! display.

use super::super::catalog::{FILTER, Matcher};
use super::super::decode;
use super::super::lexer::Place;
use super::super::prose::{self, Purpose};
use super::super::spans::{self, LineCursor, Spans};
use super::super::unicode::{self, LineContext};
use super::super::walk::{self, Hay, Match, Scratch, Visitor};
use super::{ENCODED, FileScan, RuleFit, RuleHit};
use crate::diff::{Hidden, TextChange};
use crate::finding::Severity;
use std::ops::Range;

/// Bytes before a character in a line of a bundle from which on readers do not get to it.
pub(super) const UNREAD: usize = 1000;

impl<'a> FileScan<'a> {
    /// Searches the decoded runs of the block for secrets and planted text.
    pub(super) fn decoded(&mut self, scratch: &mut Scratch) {
        let (rules, text, path) = (
            self.reporter.rules,
            self.block.text,
            self.file.path().as_bytes(),
        );
        let mut lines = LineCursor::of(text);
        let known = Spans::of(self.secrets.iter().map(|hit| hit.span.clone()));
        decode::views(text, |run, plain| {
            let mut inner = Decoded {
                scan: self,
                rules: Vec::new(),
            };
            let hay = Hay::whole(plain, path);
            walk::walk(rules, &FILTER, hay, scratch, &mut inner);
            rules
                .team
                .with_filter(|f| walk::walk(rules, f, hay, scratch, &mut inner));
            let found = inner.rules;
            // A match in the original text needs no decoding.
            if found.is_empty() || known.overlap(&run) {
                return;
            }
            let (line, index) = lines.around(&run);
            for rule in found {
                self.report(RuleHit {
                    rule,
                    line: line.clone(),
                    line_index: index,
                    span: run.clone(),
                    detail: Some(ENCODED),
                });
            }
        });
    }

    /// Reports characters that hide text.
    pub(super) fn unicode(&mut self) {
        let text = self.block.text;
        let (mut counted, mut index) = (0, 0);
        let mut lines = Vec::new();
        unicode::suspicious_lines(text, |line| {
            index += memchr::memchr_iter(b'\n', &text[counted..line.start]).count() as u32;
            counted = line.start;
            lines.push((line, index));
        });
        // A file of a known language is read by a program that takes bytes literally. PHP stops at
        // the end of an archive's stub.
        let is_undecoded = self.file.text().is_some_and(|t| t.undecoded.is_some());
        let is_archive = self.file.path().as_bytes().ends_with(b".phar");
        let may_be_data = !lines.is_empty()
            && (is_undecoded || is_archive || self.reporter.languages().is_empty());
        for (line, index) in lines {
            // The matchers keep every character of the text that they read.
            for part in spans::pieces(text, &line) {
                let mut context = LineInBlock {
                    scan: self,
                    line: part.clone(),
                    index,
                };
                for sight in unicode::look(&text[part.clone()], &mut context) {
                    let Some(rule) = self.rule_of_matcher(sight.matcher) else {
                        continue;
                    };
                    let span = part.start + sight.span.start..part.start + sight.span.end;
                    if may_be_data && unicode::is_among_bytes(text, &span) {
                        continue;
                    }
                    // A test of text with such characters contains them on purpose.
                    // Tags spell a text for programs, also in a test.
                    let is_value = self.is_test()
                        && sight.matcher != Matcher::UnicodeTags
                        && self.place(span.start) == Place::String
                        && self.place(span.end.saturating_sub(1)) == Place::String;
                    // These characters deceive a reader, who does not read long lines of a bundle,
                    // nor any line of a file that the build names by its digest. The others can be
                    // a message to a program.
                    let deceives = matches!(
                        sight.matcher,
                        Matcher::UnicodeBidi | Matcher::UnicodeMixedScript
                    );
                    let is_behind = span.start - line.start >= UNREAD;
                    let is_unread = deceives
                        && line.len() >= UNREAD
                        && (self.is_served() || is_behind && self.was_minified());
                    let hit = RuleHit {
                        rule,
                        line: line.clone(),
                        line_index: index,
                        span,
                        detail: Some(&sight.detail),
                    };
                    let most = (is_value || is_unread).then_some(Severity::Suggestion);
                    self.report_up_to(most, &hit);
                }
            }
        }
    }

    /// Reports text that git would not display.
    pub(super) fn hidden(&mut self, text: &'a TextChange, hidden: Hidden) {
        let (matcher, needle) = match hidden {
            Hidden::Nul => (Matcher::HiddenNul, Some(0)),
            Hidden::Utf16 | Hidden::Attribute
                if text.added().any(|b| memchr::memchr(0, b.text).is_some()) =>
            {
                (Matcher::HiddenNul, Some(0))
            }
            Hidden::Utf16 => (Matcher::HiddenUtf16, None),
            _ => return,
        };
        let Some(rule) = self.rule_of_matcher(matcher) else {
            return;
        };
        let place = text.added().find_map(|b| match needle {
            Some(byte) => memchr::memchr(byte, b.text).map(|at| (b, at)),
            None => Some((b, 0)),
        });
        let Some((block, at)) = place else { return };
        self.enter(block);
        let start = memchr::memrchr(b'\n', &block.text[..at]).map_or(0, |n| n + 1);
        let end = memchr::memchr(b'\n', &block.text[at..]).map_or(block.text.len(), |n| at + n);
        let index = memchr::memchr_iter(b'\n', &block.text[..start]).count() as u32;
        let span = if needle.is_some() {
            at..at + 1
        } else {
            start..end
        };
        self.report(RuleHit {
            rule,
            line: start..end,
            line_index: index,
            span,
            detail: None,
        });
    }
}

/// Collects the matches in decoded text of the rules that search encodings.
struct Decoded<'s, 'a> {
    scan: &'s mut FileScan<'a>,
    rules: Vec<u16>,
}

impl Visitor for Decoded<'_, '_> {
    fn accepts(&mut self, rule: u16) -> bool {
        let looks = self.scan.reporter.rules.rule(rule);
        (looks.secret || looks.decoded)
            && self.scan.accepts(rule)
            && self.scan.fits[usize::from(rule)] != RuleFit::Spares
    }
    fn found(&mut self, found: &Match) -> bool {
        if !self.rules.contains(&found.rule) {
            self.rules.push(found.rule);
        }
        true
    }
}

/// A line of the current block, for the Unicode matchers.
struct LineInBlock<'s, 'a> {
    scan: &'s mut FileScan<'a>,
    line: Range<usize>,
    index: u32,
}

impl LineContext for LineInBlock<'_, '_> {
    fn purpose(&mut self) -> Purpose {
        self.scan.purpose()
    }
    fn is_test(&mut self) -> bool {
        self.scan.is_test()
    }
    fn is_test_data(&mut self) -> bool {
        prose::is_test_data(self.scan.file.path().as_bytes())
    }
    fn place(&mut self, at: usize) -> Place {
        self.scan.place(self.line.start + at)
    }
    fn is_first(&self) -> bool {
        self.scan.block.first.get() + self.index == 1
    }
}
