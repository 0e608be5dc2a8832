//! Secrets that a file had before the change: an edit beside one, a new layout or a move within the
//! file exposes nothing new.

use super::{KNOWN, before};
use crate::diff::{ChangeKind, FileChange, Text};
use crate::finding::listing::Floor;
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;
use crate::rules::suppress::Counting;

/// Bytes of a secret that is compared, at least.
const LEAST: usize = 8;
/// Secrets of each side of a file that are compared, at most. Each reads the lines above it.
const COMPARED_MAX: usize = 64;

/// Lowers each finding of `out`, from the index `from` on, to a suggestion if it is about a secret
/// of one line that a rule reported in the removed lines of the file, at least as severe and not
/// suppressed.
///
/// The bytes must be equal. Each removed finding covers one added finding, so that a second copy
/// keeps its severity, as a copy in another file does.
pub(super) fn lower(
    rules: &RuleSet,
    file: &FileChange,
    floor: &Floor,
    out: &mut [Finding],
    from: usize,
) {
    let is_copy = matches!(file.entry.kind, ChangeKind::Copied { .. });
    let Some(text) = file.text().filter(|_| !is_copy) else {
        return;
    };
    let has_secrets = out[from..].iter().any(|f| is_of_secret(rules, f));
    if !has_secrets || text.removed().next().is_none() {
        return;
    }
    let old = before(rules, file, text, Counting::All, floor);
    let mut removed: Vec<(&[u8], Severity)> = Vec::new();
    for finding in old.iter().filter(|f| is_of_secret(rules, f)) {
        if removed.len() == COMPARED_MAX {
            break;
        }
        removed.extend(value_of(&text.old, finding).map(|value| (value, finding.severity())));
    }
    let added = out[from..].iter_mut().filter(|f| is_of_secret(rules, f));
    for finding in added.take(COMPARED_MAX) {
        let Some(value) = value_of(&text.new, finding) else {
            continue;
        };
        let severity = finding.severity();
        let known = removed
            .iter()
            .position(|(old, was)| *old == value && *was >= severity);
        if let Some(at) = known {
            removed.swap_remove(at);
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
fn value_of<'t>(text: &'t Text, finding: &Finding) -> Option<&'t [u8]> {
    let span = finding.lines()?;
    let (from, to) = span.columns.filter(|_| span.first == span.last)?;
    let above = span.first.get().checked_sub(1)? as usize;
    let line = text.whole()?.split(|b| *b == b'\n').nth(above)?;
    let value = line.get(from as usize..to as usize)?;
    let is_one = value.len() >= LEAST && !value.iter().any(u8::is_ascii_whitespace);
    is_one.then_some(value)
}
