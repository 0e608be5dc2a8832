//! Comments that let a finding through: `claude-reviewer: ignore[rule-id] reason`, on the line or the one above.

use super::language::Languages;
use super::lexer::Readings;
use super::{Remark, RuleSet};
use crate::diff::{Block, FileChange, LineNo, TextChange};
use crate::finding::{Category, Finding, LineSpan, Suppression};
use std::collections::HashSet;

const OPEN: &[u8] = b"claude-reviewer: ignore[";
/// The most bytes of ids and reason.
const LENGTH_MAX: usize = 600;

/// A comment as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Directive {
    line: LineNo,
    ids: Vec<String>,
    reason: String,
    /// The change adds it.
    added: bool,
}

/// A finding that a comment may suppress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sought<'a> {
    pub(super) rule: &'a str,
    pub(super) lines: LineSpan,
    /// Of an exposed secret. A comment that counts since the change does not add it was written for another text:
    /// it lets this one through only where that text was there.
    pub(super) secret: bool,
}

/// Which of the comments count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    All,
    /// Those that the change does not add.
    Unadded,
    None,
}

/// The comments of a file, read when the first finding needs them.
#[derive(Debug, Default)]
pub(super) struct Directives {
    all: Option<Vec<Directive>>,
    /// The lines of the old text, folded.
    before: Option<HashSet<Vec<u8>>>,
}

impl Directives {
    /// Returns what suppresses a finding.
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
        let all = self.all.get_or_insert_with(|| read(text, languages));
        let counts = |d: &Directive| counting == Counting::All || !d.added;
        let found = all.iter().find(|d| d.speaks_of(sought.rule, sought.lines) && counts(d))?;
        if counting == Counting::Unadded && sought.secret {
            let old = || text.old.whole().unwrap_or_default().split(|b| *b == b'\n').map(folded).collect();
            let before = self.before.get_or_insert_with(old);
            let mut numbers = sought.lines.first.get()..=sought.lines.last.get();
            let line = |n: u32| text.new.line(LineNo::new(n)?);
            if !numbers.all(|n| line(n).is_some_and(|line| before.contains(&folded(line)))) {
                return None;
            }
        }
        Some(Suppression { by: "inline", reason: found.reason.clone() })
    }
}

impl Directive {
    /// Tells whether this lets findings of a rule on these lines through, if it counts.
    fn speaks_of(&self, rule: &str, lines: LineSpan) -> bool {
        let reaches = self.line.plus(1) >= lines.first && self.line <= lines.last;
        reaches && !self.reason.is_empty() && self.ids.iter().any(|id| id == rule)
    }
}

/// Returns the words of a line, one blank between two.
fn folded(line: &[u8]) -> Vec<u8> {
    let words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}

/// Says which comments of before excuse none of the secrets that were found in a file.
pub(super) fn passed_by(rules: &RuleSet, file: &FileChange, findings: &[Finding], out: &mut Vec<Remark>) {
    let is_secret = |f: &&Finding| rules.index_of(f.rule_id()).is_some_and(|i| rules.rule(i).secret);
    let mut standing = findings.iter().filter(|f| f.suppressed.is_none()).filter(is_secret).peekable();
    let Some(text) = file.text().filter(|_| standing.peek().is_some()) else { return };
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    let all = read(text, Languages::of(file.path().as_bytes(), start));
    for f in standing {
        let Some(lines) = f.lines() else { continue };
        let Some(d) = all.iter().find(|d| !d.added && d.speaks_of(f.rule_id(), lines)) else { continue };
        let text = format!(
            "the suppression of {} was not written for line {}, which the change brings, so it does not count for it",
            f.rule_id(),
            lines.first
        );
        out.push(Remark { line: d.line, text });
    }
}

/// Says what is wrong with the suppressions that a change adds.
pub(super) fn remarks(rules: &RuleSet, file: &FileChange, out: &mut Vec<Remark>) {
    let Some(text) = file.text() else { return };
    if !text.added().any(|b| memchr::memmem::find(b.text, OPEN).is_some()) {
        return;
    }
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    for d in read(text, Languages::of(file.path().as_bytes(), start)).iter().filter(|d| d.added) {
        let mut note = |text: String| out.push(Remark { line: d.line, text });
        if d.ids.is_empty() {
            note("a suppression names no rule: write `ignore[rule-id] reason`".to_owned());
        }
        for id in &d.ids {
            if rules.index_of(id).is_none() && !is_claim(id) {
                let near = rules.nearest(id).map_or(String::new(), |n| format!("; did you mean {n:?}?"));
                note(format!("a suppression names the unknown rule {id:?}{near}"));
            }
        }
        let ids = d.ids.join(", ");
        if d.reason.is_empty() {
            note(format!(
                "the suppression of {ids} gives no reason, so it does not count: write one behind the bracket"
            ));
        } else if !rules.suppressions.honour_added {
            note(format!("the suppression of {ids} is added by the change under review, so it does not count here"));
        }
    }
}

/// Tells whether an id is that of a model's findings.
fn is_claim(id: &str) -> bool {
    id.strip_prefix("ai-").is_some_and(|c| Category::parse(c).is_some())
}

/// Returns what suppresses a model's finding of that id on these lines.
pub(super) fn of_claim(file: &FileChange, id: &str, lines: LineSpan, counting: Counting) -> Option<Suppression> {
    let text = file.text()?;
    let start = text.new.line(LineNo::FIRST).unwrap_or_default();
    let languages = Languages::of(file.path().as_bytes(), start);
    Directives::default().find(text, languages, Sought { rule: id, lines, secret: false }, counting)
}

/// Reads every directive of the new side that stands in a comment.
fn read(text: &TextChange, languages: Languages) -> Vec<Directive> {
    let mut out: Vec<Directive> = Vec::new();
    let mut done: Option<*const u8> = None;
    let blocks: Vec<_> = text.added().collect();
    for block in &blocks {
        // A run holds one block or several: a whole file is one run.
        let Some((run, offset)) = text.new.around(block.text) else { continue };
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
            let Some(line) = LineNo::new(number) else { continue };
            let added = is_added(&blocks, line);
            out.push(parse(&run[at + OPEN.len()..], line, added));
        }
    }
    out
}

/// Tells whether a line stands in one of the blocks.
pub(super) fn is_added(blocks: &[Block<'_>], line: LineNo) -> bool {
    let block = blocks.partition_point(|b| b.first <= line).checked_sub(1).map(|i| blocks[i]);
    block.is_some_and(|b| {
        let count = newlines(b.text) + u32::from(!b.text.ends_with(b"\n"));
        line.get() - b.first.get() < count
    })
}

fn newlines(text: &[u8]) -> u32 {
    memchr::memchr_iter(b'\n', text).count() as u32
}

/// Parses what follows the opening bracket.
fn parse(rest: &[u8], line: LineNo, added: bool) -> Directive {
    let rest = rest.split(|b| *b == b'\n').next().unwrap_or_default();
    let rest = String::from_utf8_lossy(&rest[..rest.len().min(LENGTH_MAX)]);
    let (ids, reason) = rest.split_once(']').unwrap_or((&rest, ""));
    let ids = ids.split(',').map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).collect();
    let mut reason = reason.trim();
    for close in ["*/", "-->", "#>", "-}", "*)", "%>", "}}"] {
        reason = reason.strip_suffix(close).unwrap_or(reason).trim();
    }
    let reason = reason.trim_start_matches([':', '-', ' ']).to_owned();
    Directive { line, ids, reason, added }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive(path: &str, text: &str) -> Vec<(u32, String, String)> {
        let change = crate::diff::code::added(crate::diff::RepoPath::from(path), text.as_bytes().to_vec());
        let all = read(change.text().unwrap(), Languages::of(path.as_bytes(), b""));
        all.into_iter().map(|d| (d.line.get(), d.ids.join("+"), d.reason)).collect()
    }

    #[test]
    fn reads_directives_in_comments_only() {
        let marker = "claude-reviewer: ignore";
        for (path, text, expected) in [
            ("a.py", format!("x\ny # {marker}[a-b] known\n"), Some((2, "a-b", "known"))),
            ("a.py", format!("x = '{marker}[a-b] known'\n"), None),
            ("a.c", format!("/* {marker}[a, b-c]: two of them */"), Some((1, "a+b-c", "two of them"))),
            ("a.html", format!("<!-- {marker}[a] why -->"), Some((1, "a", "why"))),
            ("a.md", format!("write `{marker}[a] why`"), None),
            ("a.unknown", format!("; {marker}[a] why"), Some((1, "a", "why"))),
            ("a.py", format!("# {marker}[a]\n"), Some((1, "a", ""))),
            ("a.py", format!("# {marker}[] x\n"), Some((1, "", "x"))),
        ] {
            let found = directive(path, &text);
            let found: Vec<_> = found.iter().map(|(n, i, r)| (*n, i.as_str(), r.as_str())).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
