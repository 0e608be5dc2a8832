//! Suppressing comments: `claude-reviewer: ignore[rule-id] reason`, on the line of a finding or on
//! the line above.
//!
//! A comment that exists at the base was written for the lines that it covered there. It covers
//! those lines while only their white space changes. A new or changed line below it is reported.

use super::catalog::{Matcher, RULES, index_of};
use super::language::Languages;
use super::lexer::Readings;
use super::{Remark, RuleSet};
use crate::diff::{self, FileChange, LineBlock, LineNo, RepoPath, TextChange};
use crate::finding::{Category, Finding, LineSpan, Suppression};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

const OPEN: &[u8] = b"claude-reviewer: ignore[";
/// Bytes of IDs and reason, at most. The text after them is not read: an ID there suppresses
/// nothing.
const LENGTH_MAX: usize = 600;
/// Remarks about the comments of one file that are listed, at most.
const REMARKS_MAX: usize = 50;

/// A comment as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Directive {
    line: LineNo,
    /// The IDs in the notation of the comment, joined by commas. A megabyte of comments can have
    /// hundreds of thousands.
    written_ids: String,
    reason: String,
    /// True if the change adds the comment.
    added: bool,
}

impl Directive {
    fn ids(&self) -> impl Iterator<Item = &str> {
        self.written_ids
            .split(',')
            .map(str::trim)
            .filter(|id| !id.is_empty())
    }

    /// Returns the IDs as a list for a message.
    fn listed_ids(&self) -> String {
        self.ids().collect::<Vec<_>>().join(", ")
    }
}

/// A finding that a comment may suppress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'a> {
    pub(super) rule: &'a str,
    pub(super) lines: LineSpan,
}

/// Which comments count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Every comment, for any line: one commit of several outside of gate mode.
    All,
    /// Comments that the change adds, for any line, and comments of the base, for the lines that
    /// they covered there.
    Net,
    /// Comments of the base, for the lines that they covered there.
    Base,
    None,
}

/// The comments of a file, read when the first finding needs them.
#[derive(Debug, Default)]
pub(super) struct Directives {
    all: Option<Index>,
    kept: Option<KeptLines>,
}

impl Directives {
    /// Returns the comment that suppresses a finding.
    pub(super) fn find(
        &mut self,
        text: &TextChange,
        languages: Languages,
        sought: Sought<'_>,
        counting: Counting,
    ) -> Option<Suppression> {
        if counting == Counting::None {
            return None;
        }
        let all = self
            .all
            .get_or_insert_with(|| Index::of(read(text, languages)));
        let mut near = all.about(sought.rule, sought.lines);
        let kept = &mut self.kept;
        let found = near.find(|d| {
            counting == Counting::All || {
                let kept = kept.get_or_insert_with(|| KeptLines::of(text));
                match kept.old_line(d.line) {
                    None => counting == Counting::Net,
                    Some(_) => kept.covers(d.line, sought.lines),
                }
            }
        })?;
        Some(Suppression {
            by: "inline",
            reason: found.reason.clone(),
        })
    }
}

/// The comments of a file by the rules that they name, so that a megabyte of comments is searched
/// once and not for each finding.
#[derive(Debug)]
struct Index {
    all: Vec<Directive>,
    /// By ID of a rule: the comments with a reason that name it, in the order of their lines. Of
    /// equal comments on one line, only the first.
    by_rule: HashMap<String, Vec<usize>>,
}

impl Index {
    /// Indexes the comments of a file, in the order of their lines.
    fn of(all: Vec<Directive>) -> Self {
        let mut by_rule: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, d) in all.iter().enumerate().filter(|(_, d)| !d.reason.is_empty()) {
            for id in d.ids() {
                let known = match by_rule.get_mut(id) {
                    Some(known) => known,
                    None => by_rule.entry(id.to_owned()).or_default(),
                };
                let last = known.last().map(|k: &usize| &all[*k]);
                if !last.is_some_and(|last| last.line == d.line && last.added == d.added) {
                    known.push(i);
                }
            }
        }
        Self { all, by_rule }
    }

    /// Returns the comments that suppress findings of a rule on these lines, if they count.
    fn about<'a>(&'a self, rule: &str, lines: LineSpan) -> impl Iterator<Item = &'a Directive> {
        let known = self.by_rule.get(rule).map_or(&[][..], Vec::as_slice);
        let from = known.partition_point(|i| self.all[*i].line.plus(1) < lines.first);
        known[from..]
            .iter()
            .map(|i| &self.all[*i])
            .take_while(move |d| d.line <= lines.last)
    }
}

/// Returns true if a comment on `line` is on or right above the lines from `first` to `last`.
fn reaches(line: u32, first: u32, last: u32) -> bool {
    line.saturating_add(1) >= first && line <= last
}

/// The lines of the new side that exist on the old side, or differ from a line there in white space
/// only.
#[derive(Debug, Default)]
struct KeptLines {
    /// Runs of kept lines by the number of their first new line: the number of their first old
    /// line, and the number of lines.
    runs: BTreeMap<u32, (u32, u32)>,
}

impl KeptLines {
    /// Compares both sides of a change without their white space.
    fn of(text: &TextChange) -> Self {
        let mut kept = Self::default();
        match (text.old.whole(), text.new.whole()) {
            (Some(old), Some(new)) => kept.compare(old, new, 1, 1),
            // In a patch, only the unchanged lines are known, and each edit is compared separately.
            _ => {
                for hunk in &text.hunks {
                    let (mut old, mut new) = (hunk.old.start, hunk.new.start);
                    for edit in &hunk.edits {
                        kept.insert(new, old, edit.new.start.saturating_sub(new));
                        let parts = (text.old.slice(&edit.old), text.new.slice(&edit.new));
                        kept.compare(parts.0, parts.1, edit.old.start, edit.new.start);
                        old = edit.old.start.saturating_add(edit.old.count);
                        new = edit.new.start.saturating_add(edit.new.count);
                    }
                    let end = hunk.new.start.saturating_add(hunk.new.count);
                    kept.insert(new, old, end.saturating_sub(new));
                }
            }
        }
        kept
    }

    /// Adds the common lines of two texts that start at these line numbers.
    fn compare(&mut self, old: &[u8], new: &[u8], old_first: u32, new_first: u32) {
        let (old, new) = (fold(old), fold(new));
        let (mut old_at, mut new_at) = (0, 0);
        for (removed, added) in diff::replaced(&old, &new) {
            self.insert(
                new_first + new_at,
                old_first + old_at,
                added.start.saturating_sub(new_at),
            );
            (old_at, new_at) = (removed.end, added.end);
        }
        self.insert(
            new_first + new_at,
            old_first + old_at,
            newlines(&new).saturating_sub(new_at),
        );
    }

    fn insert(&mut self, new: u32, old: u32, count: u32) {
        if count > 0 {
            self.runs.insert(new, (old, count));
        }
    }

    /// Returns the old number of a line of the new side.
    fn old_line(&self, line: LineNo) -> Option<u32> {
        let (first, (old, count)) = self.runs.range(..=line.get()).next_back()?;
        let ahead = line.get() - first;
        (ahead < *count).then_some(old.saturating_add(ahead))
    }

    /// Returns true if a comment also reaches these lines on the old side.
    fn covers(&self, comment: LineNo, lines: LineSpan) -> bool {
        let mut numbers = lines.first.get()..=lines.last.get();
        let all_kept = numbers.all(|n| LineNo::new(n).and_then(|n| self.old_line(n)).is_some());
        match (
            self.old_line(comment),
            self.old_line(lines.first),
            self.old_line(lines.last),
        ) {
            (Some(at), Some(first), Some(last)) => all_kept && reaches(at, first, last),
            _ => false,
        }
    }
}

/// Returns a text in which lines that differ only in white space are equal. Each line ends with
/// `\n`.
///
/// White space counts inside of quotes, and where it separates two words or the characters that a
/// shell reads as part of a word: `rm -rf / tmp` is not `rm -rf /tmp`.
fn fold(text: &[u8]) -> Vec<u8> {
    const JOINED: &[u8] = b",;=(){}[]+<>|&?:";
    let mut out = Vec::with_capacity(text.len() + 1);
    let mut lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    if lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    for line in lines {
        let start = out.len();
        let (mut quote, mut blank, mut escaped) = (None, false, false);
        for b in line.trim_ascii() {
            if quote.is_none() && b.is_ascii_whitespace() {
                blank = true;
                continue;
            }
            if blank
                && !JOINED.contains(b)
                && out[start..].last().is_some_and(|l| !JOINED.contains(l))
            {
                out.push(b' ');
            }
            blank = false;
            out.push(*b);
            match quote {
                Some(q) if *b == q && !escaped => quote = None,
                None if matches!(b, b'"' | b'\'' | b'`') => quote = Some(*b),
                _ => {}
            }
            escaped = *b == b'\\' && !escaped;
        }
        out.push(b'\n');
    }
    out
}

/// Adds a remark for each comment of the base that does not suppress a finding because its lines
/// are new or changed.
pub(super) fn passed_by(file: &FileChange, findings: &[Finding], out: &mut Vec<Remark>) {
    let mut standing = findings
        .iter()
        .filter(|f| f.suppressed.is_none())
        .peekable();
    let Some(text) = file.text().filter(|_| standing.peek().is_some()) else {
        return;
    };
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    let all = Index::of(read(text, Languages::of(file.path().as_bytes(), start)));
    if all.all.is_empty() {
        return;
    }
    let kept = KeptLines::of(text);
    let mut out = Remarks::new(out);
    for f in standing {
        let Some(lines) = f.lines() else { continue };
        let mut comments = all.about(f.rule_id(), lines);
        let Some(d) = comments.find(|d| kept.old_line(d.line).is_some()) else {
            continue;
        };
        let text = format!(
            "the suppression of {} does not cover line {}, which is new or changed since the base",
            f.rule_id(),
            lines.first
        );
        out.push(d.line, || text);
    }
}

/// Remarks about the comments of one file. The first are listed, and the others are counted.
struct Remarks<'o> {
    out: &'o mut Vec<Remark>,
    count: usize,
    last: LineNo,
}

impl<'o> Remarks<'o> {
    fn new(out: &'o mut Vec<Remark>) -> Self {
        Self {
            out,
            count: 0,
            last: LineNo::FIRST,
        }
    }

    fn push(&mut self, line: LineNo, text: impl FnOnce() -> String) {
        self.count += 1;
        self.last = line;
        if self.count <= REMARKS_MAX {
            self.out.push(Remark { line, text: text() });
        }
    }
}

impl Drop for Remarks<'_> {
    fn drop(&mut self) {
        if let Some(left) = self.count.checked_sub(REMARKS_MAX).filter(|n| *n > 0) {
            let text =
                format!("{left} more remarks about suppressions in this file are not listed");
            self.out.push(Remark {
                line: self.last,
                text,
            });
        }
    }
}

/// Adds remarks about the errors in suppressions that a change adds.
pub(super) fn remarks(rules: &RuleSet, file: &FileChange, out: &mut Vec<Remark>) {
    let Some(text) = file.text() else { return };
    if !text
        .added()
        .any(|b| memchr::memmem::find(b.text, OPEN).is_some())
    {
        return;
    }
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    let all = read(text, Languages::of(file.path().as_bytes(), start));
    let kept = KeptLines::of(text);
    let known: HashSet<&str> = rules.ids().collect();
    let mut out = Remarks::new(out);
    for d in all
        .iter()
        .filter(|d| d.added && kept.old_line(d.line).is_none())
    {
        if d.ids().next().is_none() {
            out.push(d.line, || {
                "a suppression names no rule: write `ignore[rule-id] reason`".to_owned()
            });
        }
        for id in d.ids().filter(|id| !known.contains(id) && !is_claim(id)) {
            // The search for a similar ID compares with every rule, so it runs only for listed
            // remarks.
            out.push(d.line, || {
                let near = rules
                    .nearest(id)
                    .map_or(String::new(), |n| format!("; did you mean {n:?}?"));
                format!("a suppression names the unknown rule {id:?}{near}")
            });
        }
        if d.reason.is_empty() {
            out.push(d.line, || {
                let ids = d.listed_ids();
                format!("the suppression of {ids} gives no reason, so it does not count: write one behind the bracket")
            });
        } else if !rules.suppressions.honour_added {
            out.push(d.line, || {
                let ids = d.listed_ids();
                format!("the suppression of {ids} is added by the change under review, so it does not count here")
            });
        }
    }
}

/// Returns the comment that suppresses findings of a rule, to be placed on its own line above the
/// finding. `None`: no comment can suppress them, because the rule finds secrets or judges the
/// change instead of a line, or the file has no known comment syntax.
pub(crate) fn comment(id: &str, path: &RepoPath) -> Option<String> {
    let rule = index_of(id).map(|i| &RULES[usize::from(i)]);
    let is_name = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !is_name || rule.is_some_and(|r| r.secret || r.matcher == Matcher::Change) {
        return None;
    }
    let (open, close) = super::lexer::comment(Languages::of(path.as_bytes(), b""))?;
    Some(
        format!("{open} claude-reviewer: ignore[{id}] reason {close}")
            .trim_end()
            .to_owned(),
    )
}

/// Returns true if an ID is that of a model's findings.
fn is_claim(id: &str) -> bool {
    id.strip_prefix("ai-")
        .is_some_and(|c| Category::parse(c).is_some())
}

/// Returns the comment that suppresses a model's finding with an ID on these lines.
pub(super) fn of_claim(
    file: &FileChange,
    id: &str,
    lines: LineSpan,
    counting: Counting,
) -> Option<Suppression> {
    let text = file.text()?;
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    let languages = Languages::of(file.path().as_bytes(), start);
    Directives::default().find(text, languages, Sought { rule: id, lines }, counting)
}

/// Reads every directive in a comment of the new side.
fn read(text: &TextChange, languages: Languages) -> Vec<Directive> {
    let mut out: Vec<Directive> = Vec::new();
    let mut done: Option<*const u8> = None;
    let blocks: Vec<_> = text.added().collect();
    let added: Vec<Range<u32>> = blocks.iter().map(numbers).collect();
    for block in &blocks {
        // A run contains one or more blocks. A whole file is one run.
        let Some((run, offset)) = text.new.around(block.text) else {
            continue;
        };
        if done == Some(run.as_ptr()) {
            continue;
        }
        done = Some(run.as_ptr());
        let mut readings = Readings::new(run, languages, text.new.whole().is_some());
        let (mut number, mut counted) = (block.first.get() - newlines(&run[..offset]), 0);
        for at in memchr::memmem::find_iter(run, OPEN) {
            if !readings.may_be_comment(at) {
                continue;
            }
            number += newlines(&run[counted..at]);
            counted = at;
            let Some(line) = LineNo::new(number) else {
                continue;
            };
            out.push(parse(&run[at + OPEN.len()..], line, is_added(&added, line)));
        }
    }
    out
}

/// Returns the numbers of a block's lines.
fn numbers(block: &LineBlock<'_>) -> Range<u32> {
    let count = newlines(block.text) + u32::from(!block.text.ends_with(b"\n"));
    block.first.get()..block.first.get().saturating_add(count)
}

/// Returns true if one of the ranges, which are in order, contains the number of a line.
fn is_added(added: &[Range<u32>], line: LineNo) -> bool {
    let range = added
        .partition_point(|r| r.start <= line.get())
        .checked_sub(1)
        .map(|i| &added[i]);
    range.is_some_and(|r| r.contains(&line.get()))
}

fn newlines(text: &[u8]) -> u32 {
    memchr::memchr_iter(b'\n', text).count() as u32
}

/// Parses the text after the opening bracket.
fn parse(rest: &[u8], line: LineNo, added: bool) -> Directive {
    let rest = rest.split(|b| *b == b'\n').next().unwrap_or_default();
    let rest = String::from_utf8_lossy(&rest[..rest.len().min(LENGTH_MAX)]);
    let (ids, reason) = rest.split_once(']').unwrap_or((&rest, ""));
    let mut reason = reason.trim();
    for close in ["*/", "-->", "#>", "-}", "*)", "%>", "}}"] {
        reason = reason.strip_suffix(close).unwrap_or(reason).trim();
    }
    let reason = reason.trim_start_matches([':', '-', ' ']).to_owned();
    Directive {
        line,
        written_ids: ids.to_owned(),
        reason,
        added,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(path: &str, text: &str) -> Vec<(u32, String, String)> {
        let change =
            crate::diff::code::added(crate::diff::RepoPath::from(path), text.as_bytes().to_vec());
        let all = read(change.text().unwrap(), Languages::of(path.as_bytes(), b""));
        all.into_iter()
            .map(|d| {
                (
                    d.line.get(),
                    d.ids().collect::<Vec<_>>().join("+"),
                    d.reason,
                )
            })
            .collect()
    }

    #[test]
    fn reads_directives_in_comments_only() {
        let marker = "claude-reviewer: ignore";
        for (path, text, expected) in [
            (
                "a.py",
                format!("x\ny # {marker}[a-b] known\n"),
                Some((2, "a-b", "known")),
            ),
            ("a.py", format!("x = '{marker}[a-b] known'\n"), None),
            (
                "a.c",
                format!("/* {marker}[a, b-c]: two of them */"),
                Some((1, "a+b-c", "two of them")),
            ),
            (
                "a.html",
                format!("<!-- {marker}[a] why -->"),
                Some((1, "a", "why")),
            ),
            ("a.md", format!("write `{marker}[a] why`"), None),
            (
                "a.unknown",
                format!("; {marker}[a] why"),
                Some((1, "a", "why")),
            ),
            ("a.py", format!("# {marker}[a]\n"), Some((1, "a", ""))),
            ("a.py", format!("# {marker}[] x\n"), Some((1, "", "x"))),
        ] {
            let found = directive(path, &text);
            let found: Vec<_> = found
                .iter()
                .map(|(n, i, r)| (*n, i.as_str(), r.as_str()))
                .collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
