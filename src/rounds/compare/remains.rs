//! Searches for the text of an earlier finding before the finding is declared fixed: in the new
//! change, and then in the file that the change does not show.

use super::super::region::{FoldedLine, LinePosition, MovedLines, Preserved, lines};
use super::look::{UnshownFile, UnshownReason};
use super::silence::{has_same_rules, is_asked, is_checked};
use super::trace::{self, Passage};
use super::{Fate, Open, alike};
use crate::wire::Report;
use std::ops::Range;

/// The position of a text in the new change.
struct TextPosition<'c> {
    /// Current path of the file.
    file: &'c str,
    commit: Option<String>,
    /// Current lines, end excluded.
    lines: Range<u32>,
}

impl TextPosition<'_> {
    /// Returns the fate of a finding that remains open at this position.
    fn carried(self) -> Fate {
        Fate::Carried(Some(MovedLines {
            file: self.file.to_owned(),
            commit: self.commit,
            lines: self.lines,
            kept: Preserved::Whole,
        }))
    }
}

/// Returns the fate of a finding whose text remains somewhere, or `None` if its text is gone.
pub(super) fn remaining(open: &Open<'_>, now: &Report) -> Option<Fate> {
    let (f, round) = (open.finding, open.round);
    let path = f.file.as_deref()?;
    let own = round.alignment.text_of(f.commit.as_deref(), path);
    let text = own.and_then(|own| round.texts().file(own));
    let quote = trace::quote(&f.quote);
    let first = f.line.unwrap_or(0);
    let known = text.and_then(|t| Passage::of(&t.before, first, f.end_line.unwrap_or(first)));
    let passage = known.or_else(|| Passage::quoted(&quote).filter(|_| f.line.is_some()));
    let found = passage
        .as_ref()
        .and_then(|passage| shown_text(open, now, passage));
    if let Some(found) = found {
        let is_reviewed = is_asked(f, now) && is_checked(now, Some(found.file), false);
        if alike::is_rule(f) || !is_reviewed || !round.look.selects(found.file) {
            return Some(Fate::Unchecked);
        }
        return Some(found.carried());
    }
    let file = round
        .alignment
        .path(f.commit.as_deref(), path)
        .unwrap_or(path);
    beside_the_change(open, file, passage.as_ref())
}

/// Searches for the text of a finding in a file whose content the change does not show.
fn beside_the_change(open: &Open<'_>, file: &str, text: Option<&Passage<'_>>) -> Option<Fate> {
    let (f, round) = (open.finding, open.round);
    let shown = round
        .alignment
        .text_now(file)
        .and_then(|at| round.texts().file(at));
    let shown = shown.filter(|s| s.path.is_some());
    let (now, base, reason) = match round.look.file(file, shown.is_some()) {
        UnshownFile::Nothing => return None,
        UnshownFile::Unreadable => return Some(Fate::Unchecked),
        UnshownFile::Text { now, base, reason } => (lines(&now), lines(&base), reason),
    };
    let is_as_shown = match shown {
        // Without known lines, the change does not show whether the file has others.
        Some(shown) if shown.now.is_empty() => now.is_empty() || has_same_lines(&now, &base),
        Some(shown) => trace::stand_in(&shown.now, &now),
        None => has_same_lines(&now, &base),
    };
    if is_as_shown {
        return None;
    }
    // Moving a secret to a file that is visibly ignored and not published is a valid fix.
    if reason == UnshownReason::Ignored && round.look.is_secret(f) {
        return None;
    }
    let Some(text) = text else {
        return Some(Fate::Unchecked);
    };
    let places = text.places(&now);
    if places.len() <= text.places(&base).len() {
        return None;
    }
    let nearest = places
        .into_iter()
        .min_by_key(|at| now[*at].number.abs_diff(f.line.unwrap_or(0)))?;
    if alike::is_rule(f) || reason != UnshownReason::Hidden {
        return Some(Fate::Unchecked);
    }
    let found = TextPosition {
        file,
        commit: None,
        lines: text.numbers(&now, nearest),
    };
    Some(found.carried())
}

/// Searches for the text of a finding in the new change: at its current position, and then among
/// all new lines.
fn shown_text<'c>(
    open: &Open<'c>,
    now: &Report,
    passage: &Passage<'_>,
) -> Option<TextPosition<'c>> {
    let (f, round) = (open.finding, open.round);
    let path = f.file.as_deref()?;
    let texts = round.texts();
    let own = round.alignment.text_of(f.commit.as_deref(), path);
    let spot = match alike::current_position(f, &round.alignment) {
        Some(LinePosition::At(spot)) => spot.lines,
        _ => 0..0,
    };
    let is_rule = alike::is_rule(f);
    let in_place = own.and_then(|own| {
        let lines = texts.in_place(passage, own, &spot, is_rule)?;
        Some((texts.file(own)?, lines))
    });
    let (file, lines) = in_place.or_else(|| {
        let found = texts.elsewhere(passage, own, &spot)?;
        Some((texts.file(found.file)?, found.lines))
    })?;
    let name = file.path.as_deref()?;
    // A rule that read the same file again proves that the finding is gone. A rule that reads a
    // file of another name, or that changed, does not.
    let earlier = own.and_then(|own| texts.file(own));
    let is_disproved = is_rule
        && name == path
        && has_same_rules(open, now)
        && trace::is_as_introduced(earlier, file);
    (!is_disproved).then(|| TextPosition {
        file: name,
        commit: file.commit.clone(),
        lines,
    })
}

/// Returns true if two texts have the same lines, ignoring white space.
fn has_same_lines(a: &[FoldedLine], b: &[FoldedLine]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.folded == b.folded)
}
