//! Finds a quote in whole texts: files of the tree, documents, and lines that the model did not
//! receive.

use super::part::IdentifyingPart;
use super::{Quote, QuoteFit};
use crate::ai::anchor::lines::fold;

/// A line of a text that matches a quote.
#[derive(Clone, Copy, Debug)]
pub(in crate::ai::anchor) struct NumberedLine<'t> {
    pub(in crate::ai::anchor) number: u32,
    pub(in crate::ai::anchor) text: &'t str,
    /// True if no other line matches, or this line has the claimed number.
    pub(in crate::ai::anchor) is_certain: bool,
}

impl Quote {
    /// Returns true if the first line of the quote equals a line, or is an identifying part of it.
    pub(in crate::ai::anchor) fn fits(&self, line: &str) -> bool {
        let line = fold(line);
        let mut readings = self.lines.first().into_iter().flatten();
        readings.any(|r| {
            fold(r) == line || IdentifyingPart::of(r).is_some_and(|part| part.is_in(&line))
        })
    }

    /// Returns how well the quote matches the folded lines of a whole text without blank lines.
    /// They contain all lines of the quote, or one of them contains its only line as an identifying
    /// part.
    pub(in crate::ai::anchor) fn fit_in_whole(&self, whole: &[String]) -> Option<QuoteFit> {
        let quote = self.folded();
        let mut windows = whole.windows(quote.len());
        if windows.any(|window| {
            let mut lines = quote.iter().zip(window);
            lines.all(|(readings, line)| readings.contains(line))
        }) {
            return Some(QuoteFit::Equal);
        }
        let [readings] = &self.lines[..] else {
            return None;
        };
        let parts: Vec<IdentifyingPart> = readings
            .iter()
            .filter_map(|r| IdentifyingPart::of(r))
            .collect();
        whole
            .iter()
            .any(|line| parts.iter().any(|part| part.is_in(line)))
            .then_some(QuoteFit::Similar)
    }

    /// Returns the line numbers of the quote in a whole text. Returns `None` unless it occurs
    /// exactly once.
    pub(in crate::ai::anchor) fn find_in_text(&self, text: &str) -> Option<Vec<u32>> {
        let filled: Vec<(u32, &str)> = (1..)
            .zip(text.lines().map(str::trim))
            .filter(|(_, l)| !l.is_empty())
            .collect();
        let mut found = filled.windows(self.lines.len()).filter(|window| {
            self.lines
                .iter()
                .zip(*window)
                .all(|(readings, (_, line))| readings.iter().any(|r| r == line))
        });
        let first = found.next()?;
        found
            .next()
            .is_none()
            .then(|| first.iter().map(|(n, _)| *n).collect())
    }

    /// Finds the line of a text that equals the first line of the quote, or else one that contains
    /// it.
    ///
    /// If several match, takes the one nearest to `number`, at most `within` lines away. `lines`
    /// holds texts with their numbers.
    pub(in crate::ai::anchor) fn find_line<'t>(
        &self,
        lines: &[(u32, &'t str)],
        number: Option<u32>,
        within: u32,
    ) -> Option<NumberedLine<'t>> {
        let readings = self.lines.first()?;
        let texts: Vec<String> = lines.iter().map(|(_, text)| fold(text)).collect();
        for equal in readings.iter().map(|r| fold(r)) {
            let hits = lines.iter().zip(&texts).filter(|(_, text)| **text == equal);
            if let Some(found) = nearest(hits.map(|(line, _)| *line).collect(), number, within) {
                return Some(found);
            }
        }
        readings
            .iter()
            .filter_map(|r| IdentifyingPart::of(r))
            .find_map(|part| {
                let hits = lines
                    .iter()
                    .zip(&texts)
                    .filter(|(_, text)| part.is_in(text));
                nearest(hits.map(|(line, _)| *line).collect(), number, within)
            })
    }
}

/// Chooses the only line, or the one nearest to a number, at most `within` lines away.
fn nearest<'t>(
    mut hits: Vec<(u32, &'t str)>,
    number: Option<u32>,
    within: u32,
) -> Option<NumberedLine<'t>> {
    hits.sort_by_key(|(own, _)| distance(*own, number));
    let is_certain = match hits[..] {
        [_] => true,
        [(nearest, _), (second, _), ..]
            if distance(nearest, number) < distance(second, number)
                && distance(nearest, number) <= within =>
        {
            distance(nearest, number) == 0
        }
        _ => return None,
    };
    hits.first().map(|(number, text)| NumberedLine {
        number: *number,
        text,
        is_certain,
    })
}

/// Returns the distance of a line from a number. Without a number, all lines are equally near.
fn distance(line: u32, number: Option<u32>) -> u32 {
    number.map_or(0, |n| line.abs_diff(n))
}
