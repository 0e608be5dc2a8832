//! Findings on code that another file of the same change had before.

use super::super::layout::before;
use super::{
    AddedLines, CodeInPlace, CodeSide, can_be_lowered, code_of, have_same_path, is_guard, lines,
    old_path, without_layout,
};
use crate::diff::{ChangeKind, FileChange};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;
use crate::rules::suppress::Counting;
use std::collections::HashMap;

/// Reason why such a finding is a suggestion.
const MOVED: &str = "another file of this change had this before";

/// Code of the removed lines of a file, by rule and code, with the severity that it had.
type RemovedCode = HashMap<(Option<u16>, Vec<u8>), Vec<(Finding, CodeInPlace)>>;

impl RuleSet {
    /// Returns true if [`Self::lower_moved`] can lower a finding.
    pub(crate) fn may_be_moved(&self, finding: &Finding) -> bool {
        can_be_lowered(self, finding)
    }

    /// Lowers each finding on code that the change moved from another file to a suggestion.
    /// `files`: the files of the findings, and those with removed lines.
    pub(crate) fn lower_moved(&self, files: &[FileChange], findings: &mut [&mut Finding]) {
        lower_moved(self, files, findings);
    }
}

/// Lowers each of these findings of a change to a suggestion if its rule reported the same code in
/// the removed lines of another file, in a function of the same name and between the same lines.
///
/// What [`super::lower`] asks of code within a file holds here too: a finding that was at least as
/// severe by the old path, the same steps of data, no critical finding, no secret. A file that lost
/// a line which can guard code below it does not count, unless the change adds that line somewhere.
/// Code that is now in two files covers both, so that the shards of a review agree.
fn lower_moved(rules: &RuleSet, files: &[FileChange], findings: &mut [&mut Finding]) {
    let mut added = added_lines(files);
    let removed: Vec<RemovedCode> = files
        .iter()
        .map(|file| match is_source(file, &mut added) {
            true => removed_code(rules, file).unwrap_or_default(),
            false => RemovedCode::new(),
        })
        .collect();
    for finding in findings.iter_mut() {
        let Some(own) = files.iter().position(|f| finding.file() == Some(f.path())) else {
            continue;
        };
        let others = removed.iter().enumerate().filter(|(at, _)| *at != own);
        let others: Vec<&RemovedCode> = others.map(|(_, code)| code).collect();
        if others.iter().any(|code| !code.is_empty())
            && is_moved(rules, &files[own], finding, &others)
        {
            finding.doubt(Severity::Suggestion, MOVED);
        }
    }
}

/// Returns true if other files had the code of a finding.
fn is_moved(
    rules: &RuleSet,
    file: &FileChange,
    finding: &Finding,
    others: &[&RemovedCode],
) -> bool {
    let side = file
        .text()
        .and_then(|text| CodeSide::new(file.path().as_bytes(), text, false));
    let Some(code) = side.and_then(|side| code_of(rules, &side, finding)) else {
        return false;
    };
    let code = code.without_edit();
    let key = (rules.index_of(finding.rule_id()), code.code.clone());
    let mut same = others.iter().filter_map(|other| other.get(&key)).flatten();
    same.any(|(old, old_code)| {
        old.severity() >= finding.severity()
            && old_code.covers(&code, false)
            && have_same_path(old, finding)
    })
}

/// Returns the added lines of all files.
fn added_lines(files: &[FileChange]) -> AddedLines {
    let mut out = AddedLines::default();
    for text in files.iter().filter_map(FileChange::text) {
        out.add(text);
    }
    out
}

/// Returns true if code of a file can have moved away: it has removed lines, and those of them that
/// can be guards were added somewhere. The original of a copy is still there.
fn is_source(file: &FileChange, added: &mut AddedLines) -> bool {
    let is_copy = matches!(file.entry.kind, ChangeKind::Copied { .. });
    let Some(text) = file.text().filter(|_| !is_copy) else {
        return false;
    };
    let mut has_removed = false;
    let mut removed = text.removed().flat_map(|block| lines(block.text));
    let keeps_guards = removed.all(|line| {
        has_removed = true;
        !is_guard(line) || added.take(&without_layout(line))
    });
    has_removed && keeps_guards
}

/// Returns the code in the removed lines of a file on which a rule has a finding that a move keeps.
fn removed_code(rules: &RuleSet, file: &FileChange) -> Option<RemovedCode> {
    let text = file.text()?;
    let side = CodeSide::new(old_path(file).as_bytes(), text, true)?;
    let mut out = RemovedCode::new();
    for finding in before(rules, file, text, Counting::All, &Floor::default()) {
        if finding.suppressed.is_some() || !can_be_lowered(rules, &finding) {
            continue;
        }
        if let Some(code) = code_of(rules, &side, &finding) {
            let key = (rules.index_of(finding.rule_id()), code.code.clone());
            out.entry(key)
                .or_default()
                .push((finding, code.without_edit()));
        }
    }
    Some(out)
}
