//! Chooses one of the lines that match a quote, and determines how certain the choice is.

use super::{ClaimPosition, Locator, NEAR, StatedPosition};
use crate::ai::anchor::PositionCertainty;
use crate::ai::anchor::lines::EntryRange;
use crate::ai::anchor::quote::{QuoteFit, QuoteMatch};

impl Locator<'_, '_, '_> {
    /// Chooses one of the matching lines: the one with the claimed number, or the only one, or the
    /// nearest.
    pub(super) fn choose(self, found: &QuoteMatch) -> ClaimPosition {
        let all = self.lines.newest(&found.all);
        let mut numbered = all.iter().filter(|o| self.has_number(**o));
        let mut further = found.further.iter().filter(|o| self.has_number(**o));
        match (numbered.next(), numbered.next(), further.next()) {
            (Some(o), None, _) => {
                let certainty = self.certainty_with_number(*o, &all);
                self.at(*o, certainty.doubtful_unless(found.fit == QuoteFit::Equal))
            }
            // The number matches another reading of the quote.
            (None, _, Some(o)) => self.at(*o, PositionCertainty::Doubtful),
            _ => match all[..] {
                [only] if found.further.is_empty() => {
                    let certainty = self.certainty_of_only(only);
                    self.at(
                        only,
                        certainty.doubtful_unless(found.fit == QuoteFit::Equal),
                    )
                }
                [only] => self.at(only, PositionCertainty::Doubtful),
                _ => self.choose_nearest(&all),
            },
        }
    }

    /// Determines the certainty for the line with the claimed number, one of several `equal` ones.
    pub(super) fn certainty_with_number(
        self,
        o: EntryRange,
        equal: &[EntryRange],
    ) -> PositionCertainty {
        // Other lines that the claim may be about, in whichever view the model read the number.
        let mut others = equal.iter().filter(|other| **other != o);
        let is_certain = self.is_identified(o)
            && !others.any(|other| self.may_mean(*other))
            && !self.may_mean_longer(o);
        if is_certain {
            PositionCertainty::Certain
        } else {
            PositionCertainty::Likely
        }
    }

    /// Determines the certainty for the only equal line, if it does not have the claimed number.
    fn certainty_of_only(self, o: EntryRange) -> PositionCertainty {
        if !self.is_identified(o) || self.may_mean_longer(o) {
            return PositionCertainty::Doubtful;
        }
        if !o.is_one_line() {
            return PositionCertainty::Certain;
        }
        let equal = self.lines.equal_to(&self.lines.folded()[o.first]).iter();
        let numbers: Vec<Option<u32>> = equal
            .map(|i| &self.lines.entries[*i])
            .filter(|e| e.file != self.lines.file_of(o))
            .map(|e| e.number())
            .collect();
        match self.stated.line {
            _ if numbers.is_empty() => PositionCertainty::Certain,
            // Either the file name or the number is wrong.
            Some(n) if numbers.contains(&Some(n)) => PositionCertainty::Doubtful,
            _ => PositionCertainty::Likely,
        }
    }

    /// Returns true if the quote and the number identify the lines. A quote that is in every file
    /// (`}`) does so only near the number, and only if no other line of the file is equal.
    pub(super) fn is_identified(self, o: EntryRange) -> bool {
        let punctuation = self.stated.quote.filter(|q| !q.is_more_than_punctuation());
        punctuation.is_none_or(|quote| {
            let text = self.lines.new_text(self.lines.file_of(o));
            self.is_near(o) && text.is_some_and(|text| quote.find_in_text(&text).is_some())
        })
    }

    /// Returns the same statement without a line number.
    pub(super) fn at_any_line(self) -> Self {
        Self {
            stated: StatedPosition {
                line: None,
                ..self.stated
            },
            ..self
        }
    }

    /// Returns true if a quote that equals one line can also be a part of a longer line that the
    /// claim is about: one near the number, or any line of the file if there is no number.
    pub(super) fn may_mean_longer(self, o: EntryRange) -> bool {
        if !o.is_one_line() {
            return false;
        }
        let (own, folded) = (&self.lines.entries[o.first], self.lines.folded());
        self.lines.entries.iter().enumerate().any(|(i, other)| {
            self.stated.file.is_none_or(|_| other.file == own.file)
                && other.number().is_some() == own.number().is_some()
                && folded[i].len() > folded[o.first].len()
                && folded[i].contains(folded[o.first].as_str())
                && self.may_mean(EntryRange::of_entry(i))
        })
    }

    /// Chooses the equal line nearest to the claimed number. Only an exact number would distinguish
    /// the lines, so the result is never certain.
    fn choose_nearest(self, all: &[EntryRange]) -> ClaimPosition {
        let mut here = all.to_vec();
        here.retain(|o| self.stated.file.is_none_or(|f| self.lines.file_of(*o) == f));
        // Prefer added lines: an unchanged line would only produce a remark.
        if here.iter().any(|o| self.lines.is_added(*o)) {
            here.retain(|o| self.lines.is_added(*o));
        }
        let Some(n) = self.stated.line else {
            return self.without_number(&here);
        };
        let distances = here.iter().map(|o| (self.lines.distance(*o, n), *o));
        let mut near: Vec<(u32, EntryRange)> = distances
            .filter(|(distance, _)| *distance <= NEAR)
            .collect();
        near.sort_by_key(|(distance, _)| *distance);
        match near[..] {
            [(_, o)] => return self.at(o, PositionCertainty::Doubtful),
            [(first, o), (second, _), ..] if first < second => {
                return self.at(o, PositionCertainty::Doubtful);
            }
            _ => {}
        }
        let mut seen = here
            .iter()
            .filter(|o| self.lines.entries[o.first].is_seen_as(n));
        if let (Some(o), None) = (seen.next(), seen.next()) {
            return self.at(*o, PositionCertainty::Doubtful);
        }
        self.without_number(&here)
    }

    /// Chooses among equal lines that no number distinguishes.
    fn without_number(self, here: &[EntryRange]) -> ClaimPosition {
        let lines = self.lines;
        let added: Vec<EntryRange> = here
            .iter()
            .copied()
            .filter(|o| lines.is_added(*o))
            .collect();
        match (here, &added[..]) {
            ([], _) => ClaimPosition::Nowhere(
                "its quote occurs in several files, but not in the named one",
            ),
            ([only], _) | (_, [only]) => self.at(*only, PositionCertainty::Doubtful),
            ([first, ..], []) => ClaimPosition::Unchanged {
                file: lines.file_of(*first),
                line: None,
            },
            ([first, ..], _) => {
                let file = lines.file_of(*first);
                if here.iter().any(|o| lines.file_of(*o) != file) {
                    return ClaimPosition::Nowhere(
                        "its quote occurs in several files, and it names no file",
                    );
                }
                ClaimPosition::OneOf(added.iter().map(|o| o.first).collect())
            }
        }
    }
}
