//! Positions of claims whose line is known: by its number, or by the chosen occurrence of the
//! quote.

use super::{ClaimPosition, Locator};
use crate::ai::anchor::PositionCertainty;
use crate::ai::anchor::lines::EntryRange;
use crate::diff::{LineKind, LineNo};

/// Distance in lines between a claim without a quote and the changed line that it is moved to, at
/// most.
const BESIDE: u32 = 3;

impl Locator<'_, '_, '_> {
    /// Returns the position of a claim about these lines. It covers the additional lines that the
    /// claim states, within the hunk.
    pub(super) fn at(self, o: EntryRange, certainty: PositionCertainty) -> ClaimPosition {
        let lines = self.lines;
        let further = self.stated.further;
        let mut added = (o.first..=o.last).filter(|i| lines.entries[*i].is_added());
        if let Some(first) = added.next() {
            let last = added.next_back().unwrap_or(first);
            return ClaimPosition::Changed {
                first,
                last: lines.reach(first, further).max(last),
                certainty,
            };
        }
        let entry = &lines.entries[o.first];
        if entry.shown.kind == LineKind::Removed {
            return ClaimPosition::Removed {
                entry: o.first,
                at: lines.stand_in(o.first),
                certainty,
            };
        }
        // The quote may be the code before the changed lines that the claim is about.
        self.changed_after(o.first)
            .unwrap_or(ClaimPosition::Unchanged {
                file: entry.file,
                line: entry.shown.new,
            })
    }

    /// Finds the position of a claim by its number alone: the added line with the number, the added
    /// lines that the claim also covers, an added line beside it, or the removed line with the
    /// number on the old side.
    pub(super) fn by_number(self, file: usize, n: u32) -> ClaimPosition {
        let lines = self.lines;
        if let Some(entry) = lines.numbered(file, n)
            && let Some(position) = self.changed_after(entry)
        {
            return position;
        }
        let beside = lines
            .of_file(file)
            .filter(|(_, e)| e.is_added() && e.distance(n) <= BESIDE);
        if let Some((entry, _)) = beside.min_by_key(|(_, e)| e.distance(n)) {
            return ClaimPosition::Changed {
                first: entry,
                last: entry,
                certainty: PositionCertainty::Doubtful,
            };
        }
        let line = LineNo::new(n).filter(|line| {
            let text = lines.file(file).change.text();
            text.is_some_and(|text| text.new.line(*line).is_some())
        });
        let mut removed = lines
            .of_file(file)
            .filter(|(_, e)| e.shown.kind == LineKind::Removed);
        if line.is_none()
            && let Some((entry, _)) = removed.find(|(_, e)| e.old() == Some(n))
        {
            return ClaimPosition::Removed {
                entry,
                at: lines.stand_in(entry),
                certainty: PositionCertainty::Doubtful,
            };
        }
        ClaimPosition::Unchanged { file, line }
    }

    /// Returns the added lines among a line and the additional lines that the claim covers.
    fn changed_after(self, entry: usize) -> Option<ClaimPosition> {
        let last = self.lines.reach(entry, self.stated.further);
        let first = (entry..=last).find(|i| self.lines.entries[*i].is_added())?;
        Some(ClaimPosition::Changed {
            first,
            last,
            certainty: PositionCertainty::Doubtful,
        })
    }
}
