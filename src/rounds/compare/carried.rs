//! Carries open findings over to the new round, at the current position of their lines.

use super::super::recall::carried_from;
use super::super::region::{LinePosition, MovedLines, Preserved};
use super::super::words::{is_start, names};
use super::{Open, alike};
use crate::finding::Evidence;
use crate::wire::mapping;
use crate::wire::stored::Response;
use crate::wire::{Disposition, Finding, Severity};

/// Moves a finding to the current position of its lines.
pub(super) fn carried(
    open: &Open<'_>,
    spot: Option<MovedLines>,
    response: Option<&Response>,
) -> Option<Finding> {
    let mut f = open.finding.clone();
    // A comment next to the lines suppresses a finding, so the suppression lasts only if the lines
    // and their neighbors are unchanged.
    let place = alike::current_position(&f, &open.round.alignment);
    if spot.is_some()
        || !matches!(&place, Some(LinePosition::At(spot)) if spot.kept == Preserved::Whole)
    {
        f.suppressed = None;
    }
    match spot.map(LinePosition::At).or(place) {
        Some(LinePosition::At(spot)) => {
            f.line = Some(spot.lines.start);
            f.end_line = f
                .end_line
                .map(|_| spot.lines.end.saturating_sub(1).max(spot.lines.start));
            f.file = Some(spot.file);
            f.commit = spot.commit.filter(|_| f.commit.is_some());
        }
        Some(LinePosition::Gone | LinePosition::Unknown) => return None,
        None => {
            let path = f
                .file
                .as_deref()
                .and_then(|p| open.round.alignment.path(f.commit.as_deref(), p));
            if let Some(path) = path {
                f.file = Some(path.to_owned());
            }
        }
    }
    // The evidence names the round that reported the finding. A finding that was carried before
    // keeps that round: the rounds that only carried it did not report it again.
    if carried_from(&f).is_none() {
        let round = open.round.earlier.review.round;
        f.evidence
            .push(mapping::evidence_text(&Evidence::Carried { round }));
    }
    // Waivers are not inherited; they are applied again in each round.
    f.waived = None;
    (f.disposition, f.decided) = (Disposition::Pending, None);
    // A critical finding needs a code change, or a person's waiver: an explanation is not
    // sufficient.
    if f.disputed.is_none() && f.severity != Severity::Critical {
        f.disputed = response.and_then(|r| explained(open, r));
    }
    Some(f)
}

/// Returns the response's explanation of a finding that was not repeated after it.
///
/// IDs are per round: a finding of a round before the answered one is identified by its fingerprint
/// alone.
fn explained(open: &Open<'_>, response: &Response) -> Option<String> {
    /// Characters of an explanation that are kept.
    const MOST: usize = 300;
    let said = response.explanations.iter().find(|e| {
        e.finding
            .as_deref()
            .is_some_and(|name| match open.is_of_last {
                true => names(name, open.finding),
                false => is_start(name, open.finding),
            })
    })?;
    let text = crate::text::one_line(&said.text);
    let text: String = text.chars().take(MOST).collect();
    Some(format!("not repeated after the explanation: {text}"))
}
