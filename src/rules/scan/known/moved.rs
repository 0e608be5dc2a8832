//! Findings on code that another file of the same change had before.

use super::super::layout::before;
use super::{COMPARED_MAX, can_be_lowered, have_same_path, old_path};
use crate::diff::{ChangeKind, FileChange, LineBlock, Text};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;
use crate::rules::suppress::Counting;
use std::collections::HashMap;

/// Reason why such a finding is a suggestion.
const MOVED: &str = "another file of this change had this before";
/// Bytes from the start of a function or class to a finding, at most. A longer one is new code.
const MOST_BYTES: usize = 64 << 10;

/// Findings in removed lines, by rule and by the code from the start of their function or class on.
type RemovedFindings<'f> = HashMap<(Option<u16>, Vec<u8>), Vec<&'f Finding>>;

impl RuleSet {
    /// Returns true if [`Self::lower_moved`] can lower a finding.
    pub(crate) fn may_be_moved(&self, finding: &Finding) -> bool {
        can_be_lowered(self, finding)
    }

    /// Lowers each finding of a change to a suggestion if its rule reported the same code in the
    /// removed lines of another file. `files`: the files of the findings, and those with removed
    /// lines.
    ///
    /// The code is that of the function or class around the finding, with the decorators and
    /// comments above it, up to the finding: all of these lines are removed there, added here, and
    /// the same. So a guard that the old code had is still in front of the finding. The old finding
    /// was at least as severe by the old path, and its path of data had the same steps. It covers
    /// one new finding, and of more than [`COMPARED_MAX`] findings the others keep their severity.
    /// Critical findings, secrets and statements outside of functions are kept.
    pub(crate) fn lower_moved(&self, files: &[FileChange], findings: &mut [&mut Finding]) {
        let places: HashMap<_, _> = files
            .iter()
            .enumerate()
            .map(|(at, file)| (file.path(), at))
            .collect();
        let mut moved = Vec::new();
        for finding in findings.iter_mut() {
            let own = finding.file().and_then(|path| places.get(path).copied());
            let text = own.and_then(|own| files[own].text());
            let code = text.and_then(|text| unit(&text.new, text.added(), finding));
            if let (Some(own), Some(code)) = (own, code) {
                moved.push((finding, own, code));
            }
        }
        // Each code is searched in all files.
        moved.truncate(COMPARED_MAX);
        let codes: Vec<&[u8]> = moved.iter().map(|(_, _, code)| code.as_slice()).collect();
        let old: Vec<Vec<Finding>> = files
            .iter()
            .map(|file| removed(self, file, &codes))
            .collect();
        let mut of_files: Vec<RemovedFindings<'_>> = files
            .iter()
            .zip(&old)
            .map(|(file, found)| by_code(self, file, found))
            .collect();
        for (finding, own, code) in moved {
            let key = (self.index_of(finding.rule_id()), code);
            let mut others = of_files.iter_mut().enumerate().filter(|(at, _)| *at != own);
            if others.any(|(_, others)| covers(others, &key, finding)) {
                finding.doubt(Severity::Suggestion, MOVED);
            }
        }
    }
}

/// Returns true if a finding in the removed lines of a file covers a new one, and takes it out.
fn covers(
    removed: &mut RemovedFindings<'_>,
    key: &(Option<u16>, Vec<u8>),
    finding: &Finding,
) -> bool {
    let Some(same) = removed.get_mut(key) else {
        return false;
    };
    let covering = same
        .iter()
        .position(|old| old.severity() >= finding.severity() && have_same_path(old, finding));
    covering.map(|at| same.swap_remove(at)).is_some()
}

/// Returns the findings in the removed lines of a file that a move keeps, if the old file has one of
/// the codes. The original of a copy is still there.
fn removed(rules: &RuleSet, file: &FileChange, codes: &[&[u8]]) -> Vec<Finding> {
    let is_copy = matches!(file.entry.kind, ChangeKind::Copied { .. });
    let Some(text) = file.text().filter(|_| !is_copy) else {
        return Vec::new();
    };
    let old = without_returns(text.old.known());
    let has_code = text.removed().next().is_some()
        && codes
            .iter()
            .any(|code| memchr::memmem::find(&old, code).is_some());
    if !has_code {
        return Vec::new();
    }
    let mut found = before(rules, file, text, Counting::All, &Floor::default());
    found.retain(|finding| finding.suppressed.is_none() && can_be_lowered(rules, finding));
    found
}

/// Returns a text without carriage returns.
fn without_returns(text: &[u8]) -> Vec<u8> {
    text.iter().copied().filter(|b| *b != b'\r').collect()
}

/// Returns these findings in the removed lines of a file by their code, without those whose code
/// the file has in its added lines, in any layout.
fn by_code<'f>(rules: &RuleSet, file: &FileChange, found: &'f [Finding]) -> RemovedFindings<'f> {
    let mut out = RemovedFindings::new();
    let Some(text) = file.text().filter(|_| !found.is_empty()) else {
        return out;
    };
    let added: Vec<u8> = text.added().flat_map(|block| bare(block.text)).collect();
    let found = found.iter().filter(|f| f.file() == Some(old_path(file)));
    for finding in found.take(COMPARED_MAX) {
        let Some(code) = unit(&text.old, text.removed(), finding) else {
            continue;
        };
        let own: Vec<u8> = bare(&code).collect();
        if memchr::memmem::find(&added, &own).is_none() {
            let key = (rules.index_of(finding.rule_id()), code);
            out.entry(key).or_default().push(finding);
        }
    }
    out
}

/// Returns the bytes of a text without white space.
fn bare(text: &[u8]) -> impl Iterator<Item = u8> {
    text.iter().copied().filter(|b| !b.is_ascii_whitespace())
}

/// Returns the code of a side from the start of the function or class around a finding to the end of
/// the finding, without carriage returns. `None`: the finding is outside of one, the side is not
/// known as a whole, or one of the lines is not in `changed`.
fn unit<'t>(
    side: &'t Text,
    changed: impl Iterator<Item = LineBlock<'t>>,
    finding: &Finding,
) -> Option<Vec<u8>> {
    let whole = side.whole()?;
    let lines = finding.lines()?;
    let first = side.line(lines.first)?;
    let at = first.as_ptr() as usize - whole.as_ptr() as usize;
    let start = start_of_unit(whole, at)?;
    let last = side.line(lines.last)?;
    let end = last.as_ptr() as usize - whole.as_ptr() as usize + last.len();
    let code = whole
        .get(start..end)
        .filter(|code| code.len() <= MOST_BYTES)?;
    let range = code.as_ptr_range();
    let mut changed = changed.map(|block| block.text.as_ptr_range());
    changed
        .any(|block| block.start <= range.start && range.end <= block.end)
        .then(|| without_returns(code))
}

/// Returns the start of the unindented statement around a line that starts at a byte, with the lines
/// directly above it. `None`: the line is not indented, or the statement starts too far above.
fn start_of_unit(whole: &[u8], at: usize) -> Option<usize> {
    let is_indented = |line: &[u8]| line.first().is_none_or(u8::is_ascii_whitespace);
    if !is_indented(whole.get(at..)?) {
        return None;
    }
    let mut start = at;
    let mut is_found = false;
    while start > 0 && at - start <= MOST_BYTES {
        let above = memchr::memrchr(b'\n', &whole[..start - 1]).map_or(0, |end| end + 1);
        let line = &whole[above..start];
        if is_found && line.trim_ascii().is_empty() {
            break;
        }
        // A head starts with a word. Comments, conditions of a preprocessor and the last line of a
        // divided head (`) error {`) do not.
        is_found |= line
            .first()
            .is_some_and(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'@'));
        start = above;
    }
    is_found.then_some(start)
}
