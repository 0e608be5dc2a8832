//! Secrets that a file had before the change: an edit around one, a new layout or a move within the
//! file exposes nothing new.

use super::KNOWN;
use crate::diff::{Text, TextChange};
use crate::finding::{Finding, Severity};
use crate::rules::RuleSet;

/// Bytes of a secret that is compared, at least.
const LEAST: usize = 8;
/// Secrets of each side of a file that are compared, at most.
const SECRETS_MAX: usize = 64;

/// Lowers each finding of `added` to a suggestion if it is about a secret of one line that a finding
/// of `removed` is about, too, which is at least as severe.
///
/// The bytes must be equal. Each removed finding covers one added finding, so that a second copy
/// keeps its severity, as a copy in another file does.
pub(super) fn lower(
    rules: &RuleSet,
    text: &TextChange,
    removed: &[Finding],
    added: &mut [Finding],
) {
    let removed = removed.iter().filter(|f| is_compared(rules, f));
    let mut known: Vec<(&[u8], Severity)> = removed
        .filter_map(|f| Some((value_of(&text.old, f)?, f.severity())))
        .take(SECRETS_MAX)
        .collect();
    let added = added.iter_mut().filter(|f| is_compared(rules, f));
    for finding in added.take(SECRETS_MAX) {
        let Some(value) = value_of(&text.new, finding) else {
            continue;
        };
        let severity = finding.severity();
        let covering = known
            .iter()
            .position(|(old, was)| *old == value && *was >= severity);
        if let Some(at) = covering {
            known.swap_remove(at);
            finding.doubt(Severity::Suggestion, KNOWN);
        }
    }
}

/// Returns true for a finding of a built-in rule about secrets that is at least minor, that no
/// comment suppresses, and whose severity no policy sets.
pub(super) fn is_compared(rules: &RuleSet, finding: &Finding) -> bool {
    finding.severity() >= Severity::Minor
        && finding.suppressed.is_none()
        && super::rule_of_finding(rules, finding).is_some_and(|rule| rule.secret)
}

/// Returns the bytes of the secret of a finding. `None`: it has several lines or words, or is short.
fn value_of<'t>(text: &'t Text, finding: &Finding) -> Option<&'t [u8]> {
    let span = finding.lines()?;
    let (from, to) = span.columns.filter(|_| span.first == span.last)?;
    let value = text.line(span.first)?.get(from as usize..to as usize)?;
    let is_one = value.len() >= LEAST && !value.iter().any(u8::is_ascii_whitespace);
    is_one.then_some(value)
}
