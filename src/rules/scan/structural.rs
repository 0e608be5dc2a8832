//! Selects the structural rules that check a changed file, and the matches that become findings.
//!
//! A rule of a team checks every file of its language. A rule of the catalogue checks a file only
//! if one of its literals is in the added lines or near them: a file is parsed for it only then.
//!
//! A match is a finding if the change adds its first line. A match around another added line is one
//! only if the old file has fewer matches of the rule, because an edit inside of an old match does
//! not add it.

use super::flow::line_around;
use super::{FileScan, RuleFit, address, catalog};
use crate::diff::{LineNo, Text, TextChange};
use crate::finding::{LineSpan, Severity};
use crate::rules::MARK;
use crate::rules::around::{self, LineSurroundings};
use crate::rules::catalog::{FILTER, Matcher};
use crate::rules::report::Sighting;
use crate::rules::rewrite;
use crate::rules::secret::SecretCandidate;
use crate::rules::structural::{
    self, NodeKinds, ParsedText, StructuralMatch, StructuralRule, TreeLanguage, Work,
};
use crate::rules::walk::Visitor as _;
use crate::rules::{check, elide};
use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

/// Texts around a literal that are checked for a file, at most. A check can search 32 kB for each
/// of a dozen names; after so many checks, parsing the file costs less, and the checks pass.
const MOST_TEXTS: u32 = 500;
/// Unchanged bytes before and after added lines that are searched for the literals of the
/// catalogue: the first line of a call or of a function is often unchanged where a later line
/// completes a match.
const NEAR: usize = 4 << 10;

/// Lines of a match that a finding marks. Of a longer one, it marks the first added line.
const MAX_LINES: u32 = 20;

/// An unbroken part of a file: all of it, or lines that a patch shows.
#[derive(Clone, Copy, Debug)]
struct FilePart<'a> {
    text: &'a str,
    /// Number of its first line, counted from 1.
    first: u32,
}

/// Parts of one side of a change, and their trees, once they are needed.
struct ParsedSide<'a> {
    parts: Vec<FilePart<'a>>,
    language: TreeLanguage,
    is_whole: bool,
    /// Parts of a whole file that are parsed. Empty: all of it.
    kept: Vec<Range<usize>>,
    trees: Option<Vec<Option<ParsedText>>>,
}

/// A structural rule that checks the file, with its index.
#[derive(Clone, Copy)]
struct CandidateRule<'a> {
    index: u16,
    rule: &'a StructuralRule,
}

impl CandidateRule<'_> {
    /// Returns a rule of the catalogue, which is compiled on first use.
    fn of_catalogue(index: u16, language: TreeLanguage) -> Option<Self> {
        structural::of_catalogue(index, language).map(|rule| Self { index, rule })
    }
}

/// A match to report.
struct Reported<'a> {
    lines: LineSpan,
    quote: &'a str,
    replacement: Option<String>,
}

impl<'a> ParsedSide<'a> {
    /// Takes the parts of a text that contain one of the lines. Parts that are not UTF-8 are left
    /// out.
    fn new(text: &'a Text, language: TreeLanguage, lines: &[RangeInclusive<u32>]) -> Self {
        let whole = text.whole();
        let parts = match whole {
            Some(bytes) => std::str::from_utf8(bytes)
                .ok()
                .map(|text| FilePart { text, first: 1 })
                .into_iter()
                .collect(),
            None => shown(text, lines),
        };
        Self {
            parts,
            language,
            is_whole: whole.is_some(),
            kept: Vec::new(),
            trees: None,
        }
    }

    /// Parses only parts of a whole file.
    fn with_parts(self, kept: Option<Vec<Range<usize>>>) -> Self {
        Self {
            kept: kept.filter(|_| self.is_whole).unwrap_or_default(),
            ..self
        }
    }

    /// Returns the parts that have a tree.
    fn parsed(&mut self) -> impl Iterator<Item = (FilePart<'a>, &ParsedText)> {
        let (language, is_whole, kept) = (self.language, self.is_whole, &self.kept);
        let trees = self.trees.get_or_insert_with(|| {
            self.parts
                .iter()
                .map(|part| ParsedText::of_parts(part.text, kept, language, is_whole))
                .collect()
        });
        self.parts
            .iter()
            .zip(trees)
            .filter_map(|(part, tree)| Some((*part, tree.as_ref()?)))
    }

    /// Returns the parts that were parsed so far.
    fn known(&self) -> impl Iterator<Item = (FilePart<'a>, &ParsedText)> {
        let trees = self.trees.iter().flatten();
        self.parts
            .iter()
            .zip(trees)
            .filter_map(|(part, tree)| Some((*part, tree.as_ref()?)))
    }

    /// Returns true if a part was not parsed because of a limit.
    fn is_partial(&self) -> bool {
        self.trees.iter().flatten().any(Option::is_none)
    }

    /// Returns the matches of each rule that touch added bytes, with the parts that contain them.
    fn find(
        &mut self,
        rules: &[&StructuralRule],
        added: &[Range<usize>],
        work: &mut Work,
    ) -> Vec<Vec<(FilePart<'a>, StructuralMatch)>> {
        let mut out = vec![Vec::new(); rules.len()];
        for (part, tree) in self.parsed() {
            let found = tree.find(rules, Some(&part.own(added)), work);
            for (all, found) in out.iter_mut().zip(found) {
                all.extend(found.into_iter().map(|found| (part, found)));
            }
        }
        out
    }

    /// Returns the kinds of the nodes that touch added bytes.
    fn kinds_near(&mut self, added: &[Range<usize>]) -> NodeKinds {
        let mut kinds = NodeKinds::default();
        for (part, tree) in self.parsed() {
            tree.add_kinds_near(&part.own(added), &mut kinds);
        }
        kinds
    }

    /// Returns the number of matches of a rule.
    fn count(&mut self, rule: &StructuralRule, work: &mut Work) -> usize {
        self.parsed()
            .map(|(_, tree)| {
                tree.find(&[rule], None, work)
                    .iter()
                    .map(Vec::len)
                    .sum::<usize>()
            })
            .sum()
    }
}

/// Returns the parts of a patch that contain one of the lines.
fn shown<'a>(text: &'a Text, lines: &[RangeInclusive<u32>]) -> Vec<FilePart<'a>> {
    let mut parts: Vec<FilePart<'a>> = Vec::new();
    for range in lines {
        let inner = LineNo::new(*range.start()).and_then(|n| text.line(n));
        let Some((run, at)) = inner.and_then(|line| text.around(line)) else {
            continue;
        };
        let above = memchr::memchr_iter(b'\n', &run[..at]).count();
        let first = range
            .start()
            .saturating_sub(u32::try_from(above).unwrap_or(u32::MAX));
        let is_known = parts.last().is_some_and(|part| part.first == first);
        if let (false, Ok(text)) = (is_known, std::str::from_utf8(run)) {
            parts.push(FilePart { text, first });
        }
    }
    parts
}

impl<'a> FilePart<'a> {
    /// Returns the ranges of memory that are in the part, in bytes of the part.
    fn own(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let all = address(self.text.as_bytes().as_ptr_range());
        let inner = ranges
            .iter()
            .filter(|r| r.start < all.end && all.start < r.end);
        inner
            .map(|r| r.start.max(all.start) - all.start..r.end.min(all.end) - all.start)
            .collect()
    }

    /// Returns true if a rule matches the part after `new` replaces some of its lines.
    fn would_match(&self, rule: &StructuralRule, lines: LineSpan, new: &str) -> bool {
        let mut all: Vec<&str> = self.text.split('\n').collect();
        let (first, end) = (
            self.index_of(lines.first).min(all.len()),
            (self.index_of(lines.last) + 1).min(all.len()),
        );
        let start = all[..first].iter().map(|line| line.len() + 1).sum();
        all.splice(first..end, [new]);
        let near = start..start + new.len();
        let tree = ParsedText::new(&all.join("\n"), rule.language(), true);
        tree.is_none_or(|tree| {
            tree.find(&[rule], Some(&[near]), &mut Work::new())
                .iter()
                .any(|found| !found.is_empty())
        })
    }

    /// Returns the index of a line within the part.
    fn index_of(&self, line: LineNo) -> usize {
        line.get().saturating_sub(self.first) as usize
    }

    /// Returns the number of the line that contains a byte.
    fn line_of(&self, at: usize) -> u32 {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        self.first.saturating_add(
            u32::try_from(memchr::memchr_iter(b'\n', before).count()).unwrap_or(u32::MAX),
        )
    }

    /// Returns the first and the last line of a range of bytes.
    fn lines_of(&self, range: &Range<usize>) -> RangeInclusive<u32> {
        self.line_of(range.start)..=self.line_of(range.end.saturating_sub(1).max(range.start))
    }

    /// Returns the lines that contain a range of bytes, in bytes, without the last line end.
    fn whole_lines(&self, range: &Range<usize>) -> Range<usize> {
        let text = self.text.as_bytes();
        let start = memchr::memrchr(b'\n', text.get(..range.start).unwrap_or_default())
            .map_or(0, |at| at + 1);
        let rest = text.get(range.end..).unwrap_or_default();
        start..range.end + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the lines that replace the lines of a fix, with the lines that they replace.
    fn replacement(&self, range: &Range<usize>, new: &str) -> (RangeInclusive<u32>, String) {
        let whole = self.whole_lines(range);
        let (before, after) = (
            self.slice(whole.start..range.start),
            self.slice(range.end..whole.end),
        );
        (
            self.lines_of(range),
            format!("{before}{new}{}", after.trim_end_matches('\r')),
        )
    }

    /// Returns the finding's view of a match. `first_added`: the first line of the match that the
    /// change adds.
    fn reported(&self, found: &StructuralMatch, first_added: u32) -> Option<Reported<'a>> {
        let lines = self.lines_of(&found.range);
        let fix = found
            .fix
            .as_ref()
            .map(|(range, new)| self.replacement(range, new));
        if let Some((of, new)) =
            fix.filter(|(of, _)| of.end() - of.start() <= MAX_LINES && of.contains(&first_added))
        {
            let quote = self.slice(found.range.clone());
            return Some(Reported {
                lines: span(&of, None)?,
                quote,
                replacement: Some(new),
            });
        }
        if lines.end() - lines.start() > MAX_LINES || first_added != *lines.start() {
            let line = self
                .text
                .split('\n')
                .nth(first_added.checked_sub(self.first)? as usize)?;
            return Some(Reported {
                lines: span(&(first_added..=first_added), None)?,
                quote: line.trim(),
                replacement: None,
            });
        }
        let start = self.whole_lines(&found.range).start;
        let columns = if lines.start() == lines.end() {
            let (from, to) = (
                u32::try_from(found.range.start - start),
                u32::try_from(found.range.end - start),
            );
            from.ok().zip(to.ok())
        } else {
            None
        };
        let quote = self.slice(found.range.clone());
        Some(Reported {
            lines: span(&lines, columns)?,
            quote,
            replacement: None,
        })
    }
}

fn span(lines: &RangeInclusive<u32>, columns: Option<(u32, u32)>) -> Option<LineSpan> {
    Some(LineSpan {
        first: LineNo::new(*lines.start())?,
        last: LineNo::new(*lines.end())?,
        columns,
    })
}

/// Returns the lines that a change adds, as ranges in order.
fn added(text: &TextChange) -> Vec<RangeInclusive<u32>> {
    let edits = text
        .hunks
        .iter()
        .flat_map(|hunk| &hunk.edits)
        .map(|edit| &edit.new);
    edits
        .filter(|new| new.count > 0)
        .map(|new| new.start..=new.start + (new.count - 1))
        .collect()
}

/// Returns the first of the added lines that is in a range.
fn first_added(added: &[RangeInclusive<u32>], lines: &RangeInclusive<u32>) -> Option<u32> {
    let at = added.partition_point(|range| range.end() < lines.start());
    let first = *added.get(at)?.start().max(lines.start());
    (first <= *lines.end()).then_some(first)
}

/// Returns the unchanged parts of a text before and after its added lines, [`NEAR`] bytes at most
/// each.
fn near(text: &TextChange) -> Vec<&[u8]> {
    let mut out = Vec::new();
    // The run of the last block, and where the block ends in it.
    let mut last: Option<(&[u8], usize)> = None;
    for block in text.added() {
        let Some((run, start)) = text.new.around(block.text) else {
            continue;
        };
        let (after, before) = match last.filter(|(of, _)| std::ptr::eq(*of, run)) {
            Some((_, end)) if start - end <= 2 * NEAR => (end..end, end..start),
            Some((_, end)) => (end..end + NEAR, start - NEAR..start),
            None => {
                out.extend(last.map(rest));
                (0..0, start.saturating_sub(NEAR)..start)
            }
        };
        out.extend([&run[after], &run[before]]);
        last = Some((run, start + block.text.len()));
    }
    out.extend(last.map(rest));
    out
}

/// Returns the bytes near the end of the last block of a run.
fn rest((run, end): (&[u8], usize)) -> &[u8] {
    &run[end..run.len().min(end + NEAR)]
}

impl<'a> FileScan<'a> {
    /// Reports the matches of structural rules that the change adds. Returns false if a limit ended
    /// the search.
    pub(super) fn structural(&mut self, text: &'a TextChange) -> bool {
        let Some(language) = TreeLanguage::of(self.file.path()) else {
            return true;
        };
        let wanted = self.wanted(language, text);
        let of_team = self.rules_of_team(language);
        if wanted.is_empty() && of_team.is_empty() {
            return true;
        }
        let lines = added(text);
        let bytes: Vec<_> = text
            .added()
            .map(|block| address(block.text.as_ptr_range()))
            .collect();
        let mut new = ParsedSide::new(&text.new, language, &lines);
        let need_file = !of_team.is_empty()
            || wanted
                .iter()
                .any(|index| structural::needs_file(*index, language));
        if !(need_file || self.is_followed(text) && self.reaching(text).is_none()) {
            let kept = new.parts.first().and_then(|part| self.kept(part, &bytes));
            new = new.with_parts(kept);
        }
        let kinds = new.kinds_near(&bytes);
        let candidates: Vec<_> = wanted
            .into_iter()
            .filter(|index| structural::may_match(*index, language, &kinds))
            .filter_map(|index| CandidateRule::of_catalogue(index, language))
            .chain(of_team)
            .collect();
        let mut work = Work::new();
        let rules: Vec<_> = candidates.iter().map(|candidate| candidate.rule).collect();
        let found = new.find(&rules, &bytes, &mut work);
        let is_partial = new.is_partial();
        // Matches are counted in whole files.
        let mut all = if new.kept.is_empty() {
            new
        } else {
            ParsedSide::new(&text.new, language, &lines)
        };
        let mut old = ParsedSide::new(&text.old, language, &[]);
        self.parse = all
            .known()
            .next()
            .map(|(part, parsed)| parsed.share(part.text));
        for (candidate, found) in candidates.iter().zip(found) {
            let mut is_more = None;
            for (part, found) in found {
                let of = part.lines_of(&found.range);
                let Some(first) = first_added(&lines, &of) else {
                    continue;
                };
                let is_known = first != *of.start()
                    && !*is_more.get_or_insert_with(|| {
                        text.old.whole().is_some()
                            && old.count(candidate.rule, &mut work)
                                < all.count(candidate.rule, &mut work)
                    });
                if is_known {
                    continue;
                }
                if let Some(reported) = part.reported(&found, first) {
                    self.report_structural(*candidate, part, &found.message, reported);
                }
            }
        }
        !(work.is_exceeded() || is_partial || all.is_partial() || old.is_partial())
    }

    /// Returns the parts of a file that matches with added bytes can depend on.
    fn kept(&mut self, part: &FilePart<'a>, added: &[Range<usize>]) -> Option<Vec<Range<usize>>> {
        elide::kept(
            self.reporter.languages(),
            part.text.as_bytes(),
            &part.own(added),
        )
    }

    /// Returns the rules of the catalogue that have a literal in or near the added lines, and whose
    /// conditions on the file hold.
    fn wanted(&mut self, language: TreeLanguage, text: &'a TextChange) -> Vec<u16> {
        let rules = self.reporter.rules;
        near(text)
            .into_iter()
            .for_each(|part| self.search_literals(part));
        let fits = self.fits.iter().enumerate();
        let wanted = fits.filter_map(|(index, fit)| {
            (*fit == RuleFit::Structural).then(|| u16::try_from(index).ok())?
        });
        wanted
            .filter(|index| structural::is_for(*index, language))
            .filter(|index| {
                rules
                    .compiled(*index)
                    .is_some_and(|compiled| compiled.file_fits(text.new.whole()))
            })
            .collect()
    }

    /// Returns the rules of the team that check the file.
    fn rules_of_team(&mut self, language: TreeLanguage) -> Vec<CandidateRule<'a>> {
        let rules = self.reporter.rules.team.structural.iter();
        let mut out = Vec::new();
        for (position, rule) in rules.filter(|(_, rule)| rule.language() == language) {
            let index = u16::try_from(catalog::RULES.len() + position).unwrap_or(u16::MAX);
            if self.accepts(index) {
                out.push(CandidateRule { index, rule });
            }
        }
        out
    }

    /// Marks each structural rule that has a literal in a text as wanted, if the rule applies to
    /// the file.
    fn search_literals(&mut self, text: &[u8]) {
        FILTER.prefilter.scan(text, |literal, at| {
            for rule in FILTER
                .users
                .get(usize::from(literal))
                .copied()
                .unwrap_or_default()
            {
                let is_structural = self.reporter.rules.rule(*rule).matcher == Matcher::Structural;
                if is_structural && self.accepts(*rule) {
                    self.want(*rule, text, line_around(text, at));
                }
            }
        });
    }

    /// Marks a structural rule as wanted, unless its pattern does not match the line of its
    /// literal, or a check fails.
    pub(super) fn want(&mut self, rule: u16, text: &[u8], range: Range<usize>) {
        let rules = self.reporter.rules;
        let line = &text[range.clone()];
        let line = line.strip_prefix(MARK).unwrap_or(line);
        let is_match = rules.rule(rule).pattern.is_empty()
            || rules.rule(rule).needs.are_met_by(line)
                && rules
                    .compiled(rule)
                    .is_some_and(|compiled| compiled.pattern.is_match(line));
        if is_match && self.passes(&rules.rule(rule).checks, text, range) {
            self.fits[usize::from(rule)] = RuleFit::Structural;
        }
    }

    /// Returns true if a line and the text around it pass checks.
    fn passes(&mut self, checks: &[Cow<'static, str>], text: &[u8], range: Range<usize>) -> bool {
        if checks.is_empty() {
            return true;
        }
        let line = &text[range.clone()];
        // `text` can be a part of the file.
        let known = self.file.text().and_then(|text| text.new.around(line));
        let (text, at) = known.unwrap_or((text, range.start));
        let (before, after) = (&text[..at], &text[at + line.len()..]);
        let line = line.strip_prefix(MARK).unwrap_or(line);
        let around = LineSurroundings {
            before,
            line,
            after,
        };
        let caught = SecretCandidate {
            secret: b"",
            line,
            at: 0,
            after: b"",
            path: b"",
        };
        for name in checks {
            if self.texts_read >= MOST_TEXTS {
                return true;
            }
            self.texts_read += 1;
            if !around::passes(name, &around).unwrap_or_else(|| check::passes(name, &caught)) {
                return false;
            }
        }
        true
    }

    fn report_structural(
        &mut self,
        candidate: CandidateRule<'_>,
        part: FilePart<'a>,
        message: &str,
        reported: Reported<'a>,
    ) {
        let fix = reported
            .replacement
            .or_else(|| self.structural_fix(candidate, part, reported.lines));
        let rule = self.reporter.rules.rule(candidate.index);
        let line = self
            .file
            .text()
            .and_then(|text| text.new.line(reported.lines.first));
        let is_weak = self.is_of_library(rule)
            || self.is_of_minified_line(rule, line.map_or(0, <[u8]>::len))
            || self.is_in_inline_tests(rule, reported.lines.first);
        let sighting = Sighting {
            file: Some(self.file.path()),
            lines: Some(reported.lines),
            quote: reported.quote.as_bytes(),
            title: Some(message.trim()).filter(|message| !message.is_empty()),
            in_doubt: self.in_doubt(candidate.index),
            severity_max: is_weak.then_some(Severity::Suggestion),
            replacement: fix.as_deref(),
            ..Sighting::default()
        };
        self.reporter.report_index(candidate.index, sighting);
    }

    /// Returns the replacement of lines by the fixes of a rule of the catalogue.
    fn structural_fix(
        &mut self,
        candidate: CandidateRule<'_>,
        part: FilePart<'a>,
        lines: LineSpan,
    ) -> Option<String> {
        let rules = self.reporter.rules;
        let compiled = rules
            .compiled(candidate.index)
            .filter(|_| !rules.rule(candidate.index).fixes.is_empty())?;
        let (text, languages) = (&self.file.text()?.new, self.reporter.languages());
        rewrite::replacement(rules, compiled, (text, languages), lines, &|new| {
            part.would_match(candidate.rule, lines, new)
        })
    }
}
