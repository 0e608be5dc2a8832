//! Secrets that a file had before the change: an edit beside one, a new layout or a move within the
//! file exposes nothing new.

use super::KNOWN;
use crate::diff::{ChangeKind, FileChange, TextChange};
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;

/// Bytes of a secret that is compared, at least: a shorter one is a part of other words.
const LEAST: usize = 8;
/// Secrets of a file that are compared, at most. Each reads all changed lines.
const COMPARED_MAX: usize = 64;

/// Lowers each finding of `out`, from the index `from` on, to a suggestion if it is about a secret
/// of one line that the removed lines of the file have at least as often as the added ones.
///
/// The bytes must be equal, and no longer secret may start or end with them. The key of another
/// rotation, a second copy and a copy in another file keep their severity.
pub(super) fn lower(rules: &RuleSet, file: &FileChange, out: &mut [Finding], from: usize) {
    let is_copy = matches!(file.entry.kind, ChangeKind::Copied { .. });
    let Some(text) = file.text().filter(|_| !is_copy) else {
        return;
    };
    if text.removed().next().is_none() {
        return;
    }
    let secrets = out[from..]
        .iter_mut()
        .filter(|finding| is_of_secret(rules, finding));
    for finding in secrets.take(COMPARED_MAX) {
        let is_known = value_of(text, finding).is_some_and(|value| {
            let removed: usize = text.removed().map(|block| count(block.text, value)).sum();
            let added: usize = text.added().map(|block| count(block.text, value)).sum();
            added > 0 && removed >= added
        });
        if is_known {
            finding.doubt(Severity::Suggestion, KNOWN);
        }
    }
}

/// Returns true for a finding of a built-in rule about secrets whose severity no policy sets.
fn is_of_secret(rules: &RuleSet, finding: &Finding) -> bool {
    finding.severity() >= Severity::Minor
        && finding.suppressed.is_none()
        && super::rule_of(rules, finding).is_some_and(|rule| rule.secret)
}

/// Returns the bytes of the secret of a finding. `None`: it has several lines or words, or is short.
fn value_of<'t>(text: &'t TextChange, finding: &Finding) -> Option<&'t [u8]> {
    let span = finding.lines()?;
    let (from, to) = span.columns.filter(|_| span.first == span.last)?;
    let whole = text.new.whole()?;
    let line = whole
        .split(|b| *b == b'\n')
        .nth(span.first.get().checked_sub(1)? as usize)?;
    let value = line.get(from as usize..to as usize)?;
    let is_one = value.len() >= LEAST && !value.iter().any(u8::is_ascii_whitespace);
    is_one.then_some(value)
}

/// Counts the places at which a text has a value that is not a part of a longer one.
fn count(text: &[u8], value: &[u8]) -> usize {
    let is_of_value = |at: Option<&u8>| at.is_some_and(|b| b.is_ascii_alphanumeric());
    memchr::memmem::find_iter(text, value)
        .filter(|at| {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            !is_of_value(before) && !is_of_value(text.get(at + value.len()))
        })
        .count()
}
