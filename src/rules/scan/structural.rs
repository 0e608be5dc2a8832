//! Which matches of a team's structural rules are findings of the change.
//!
//! A match is one if the change adds its first line. A match around an added line is one only if the old file has fewer
//! matches of the rule, because an edit inside of an old match does not add it.

use super::{Scan, catalog};
use crate::diff::{LineNo, Text, TextChange};
use crate::finding::LineSpan;
use crate::rules::report::Sighting;
use crate::rules::structural::{Parsed, StructuralMatch, StructuralRule, TreeLanguage};
use crate::rules::walk::Visitor as _;
use std::ops::{Range, RangeInclusive};

/// Lines of a match that a finding marks. Of a longer one, it marks the first added line.
const MAX_LINES: u32 = 20;

/// An unbroken part of a file: all of it, or lines that a patch shows.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    text: &'a str,
    /// Number of its first line, counted from 1.
    first: u32,
}

/// Parts of one side of a change, with the trees of those that were needed.
struct Side<'a> {
    parts: Vec<Part<'a>>,
    parsed: Vec<(TreeLanguage, Vec<Option<Parsed>>)>,
}

/// A match to report.
struct Reported<'a> {
    lines: LineSpan,
    quote: &'a str,
    replacement: Option<String>,
}

impl<'a> Side<'a> {
    /// Takes the parts of a text that contain one of the lines. Parts that are not UTF-8 are left out.
    fn new(text: &'a Text, lines: &[RangeInclusive<u32>]) -> Self {
        let parts = match text.whole() {
            Some(bytes) => std::str::from_utf8(bytes).ok().map(|text| Part { text, first: 1 }).into_iter().collect(),
            None => shown(text, lines),
        };
        Self { parts, parsed: Vec::new() }
    }

    /// Returns the matches of a rule with the parts that have them.
    fn find(&mut self, rule: &StructuralRule) -> Vec<(Part<'a>, StructuralMatch)> {
        let language = rule.language();
        let known = self.parsed.iter().position(|(of, _)| *of == language);
        let at = known.unwrap_or(self.parsed.len());
        if known.is_none() {
            let trees = self.parts.iter().map(|part| Parsed::new(part.text, language)).collect();
            self.parsed.push((language, trees));
        }
        let Some((_, trees)) = self.parsed.get(at) else { return Vec::new() };
        let with_trees = self.parts.iter().zip(trees).filter_map(|(part, tree)| Some((*part, tree.as_ref()?)));
        with_trees.flat_map(|(part, tree)| rule.find(tree).into_iter().map(move |found| (part, found))).collect()
    }
}

/// Returns the parts of a patch that contain one of the lines.
fn shown<'a>(text: &'a Text, lines: &[RangeInclusive<u32>]) -> Vec<Part<'a>> {
    let mut parts: Vec<Part<'a>> = Vec::new();
    for range in lines {
        let inner = LineNo::new(*range.start()).and_then(|n| text.line(n));
        let Some((run, at)) = inner.and_then(|line| text.around(line)) else { continue };
        let above = memchr::memchr_iter(b'\n', &run[..at]).count();
        let first = range.start().saturating_sub(u32::try_from(above).unwrap_or(u32::MAX));
        let is_known = parts.last().is_some_and(|part| part.first == first);
        if let (false, Ok(text)) = (is_known, std::str::from_utf8(run)) {
            parts.push(Part { text, first });
        }
    }
    parts
}

impl<'a> Part<'a> {
    /// Returns the number of the line that has a byte.
    fn line_of(&self, at: usize) -> u32 {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        self.first.saturating_add(u32::try_from(memchr::memchr_iter(b'\n', before).count()).unwrap_or(u32::MAX))
    }

    /// Returns the first and the last line of a range of bytes.
    fn lines_of(&self, range: &Range<usize>) -> RangeInclusive<u32> {
        self.line_of(range.start)..=self.line_of(range.end.saturating_sub(1).max(range.start))
    }

    /// Returns the lines that have a range of bytes, in bytes, without the last line end.
    fn whole_lines(&self, range: &Range<usize>) -> Range<usize> {
        let text = self.text.as_bytes();
        let start = memchr::memrchr(b'\n', text.get(..range.start).unwrap_or_default()).map_or(0, |at| at + 1);
        let rest = text.get(range.end..).unwrap_or_default();
        start..range.end + memchr::memchr(b'\n', rest).unwrap_or(rest.len())
    }

    fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// Returns the lines that replace the lines of a fix, with the lines that they replace.
    fn replacement(&self, range: &Range<usize>, new: &str) -> (RangeInclusive<u32>, String) {
        let whole = self.whole_lines(range);
        let (before, after) = (self.slice(whole.start..range.start), self.slice(range.end..whole.end));
        (self.lines_of(range), format!("{before}{new}{}", after.trim_end_matches('\r')))
    }

    /// Returns what a finding shows of a match. `first_added`: the first line of the match that the change adds.
    fn reported(&self, found: &StructuralMatch, first_added: u32) -> Option<Reported<'a>> {
        let lines = self.lines_of(&found.range);
        let fix = found.fix.as_ref().map(|(range, new)| self.replacement(range, new));
        if let Some((of, new)) = fix.filter(|(of, _)| of.end() - of.start() <= MAX_LINES && of.contains(&first_added)) {
            let quote = self.slice(found.range.clone());
            return Some(Reported { lines: span(&of, None)?, quote, replacement: Some(new) });
        }
        if lines.end() - lines.start() > MAX_LINES || first_added != *lines.start() {
            let line = self.text.split('\n').nth(first_added.checked_sub(self.first)? as usize)?;
            return Some(Reported {
                lines: span(&(first_added..=first_added), None)?,
                quote: line.trim(),
                replacement: None,
            });
        }
        let start = self.whole_lines(&found.range).start;
        let column = |at: usize| u32::try_from(at - start).ok();
        let is_one = lines.start() == lines.end();
        let columns = is_one.then(|| Some((column(found.range.start)?, column(found.range.end)?))).flatten();
        let quote = self.slice(found.range.clone());
        Some(Reported { lines: span(&lines, columns)?, quote, replacement: None })
    }
}

fn span(lines: &RangeInclusive<u32>, columns: Option<(u32, u32)>) -> Option<LineSpan> {
    Some(LineSpan { first: LineNo::new(*lines.start())?, last: LineNo::new(*lines.end())?, columns })
}

/// Returns the lines that a change adds, as ranges in order.
fn added(text: &TextChange) -> Vec<RangeInclusive<u32>> {
    let edits = text.hunks.iter().flat_map(|hunk| &hunk.edits).map(|edit| &edit.new);
    edits.filter(|new| new.count > 0).map(|new| new.start..=new.start + (new.count - 1)).collect()
}

/// Returns the first of the added lines that is in a range.
fn first_added(added: &[RangeInclusive<u32>], lines: &RangeInclusive<u32>) -> Option<u32> {
    let at = added.partition_point(|range| range.end() < lines.start());
    let first = *added.get(at)?.start().max(lines.start());
    (first <= *lines.end()).then_some(first)
}

impl<'a> Scan<'a> {
    /// Reports the matches of a team's structural rules that the change adds.
    pub(super) fn structural(&mut self, text: &'a TextChange) {
        let rules = self.reporter.rules;
        let path = self.file.path();
        if !rules.team.structural.iter().any(|(_, rule)| rule.language().has(path)) {
            return;
        }
        let added = added(text);
        let mut new = Side::new(&text.new, &added);
        let mut old = Side::new(&text.old, &[]);
        for (position, rule) in rules.team.structural.iter().filter(|(_, rule)| rule.language().has(path)) {
            let index = u16::try_from(catalog::RULES.len() + position).unwrap_or(u16::MAX);
            if !self.accepts(index) {
                continue;
            }
            let matches = new.find(rule);
            let count = matches.len();
            for (part, found) in matches {
                let lines = part.lines_of(&found.range);
                let Some(first) = first_added(&added, &lines) else { continue };
                if first != *lines.start() && (text.old.whole().is_none() || old.find(rule).len() >= count) {
                    continue;
                }
                if let Some(reported) = part.reported(&found, first) {
                    self.report_structural(index, &found.message, &reported);
                }
            }
        }
    }

    fn report_structural(&mut self, index: u16, message: &str, reported: &Reported<'_>) {
        let sighting = Sighting {
            file: Some(self.file.path()),
            lines: Some(reported.lines),
            quote: reported.quote.as_bytes(),
            title: Some(message.trim()).filter(|message| !message.is_empty()),
            in_doubt: self.in_doubt(index),
            replacement: reported.replacement.as_deref(),
            ..Sighting::default()
        };
        self.reporter.report_index(index, sighting);
    }
}
