//! Finds the position of a claim among the lines that the model received.
//!
//! A claim states a file, a line number and a quote, and each of them can be missing or wrong. The
//! quote determines the line, because models copy code more reliably than they count lines. The
//! number distinguishes equal lines. The file name is the weakest: a quote that only another file
//! contains moves the claim there.
//!
//! 1. [`find`] looks for the quote in the named file, and then in all files (`elsewhere`), with the
//!    searches of [`Quote`], the strictest first. Without a quote, the number decides (`numbered`).
//! 2. If several lines match, the number chooses one (`choice`).
//! 3. The result is a [`ClaimPosition`]. Its [`PositionCertainty`] says how much the model's
//!    statements agree about it, and is all that the confidence of the finding depends on, besides
//!    evidence from elsewhere.
//!
//! Prefer a lower certainty to a wrong line: a claim is [`PositionCertainty::Certain`] only if no
//! other line can be meant.

mod choice;
mod elsewhere;
mod numbered;

use super::PositionCertainty;
use super::lines::{ChunkLines, EntryRange};
use super::quote::{Quote, QuoteMatch};
use crate::diff::LineNo;

/// Distance in lines at which a claimed number can still refer to a line.
const NEAR: u32 = 30;

/// Reason why a claim has no position.
const UNKNOWN: &str = "its quote is not in the text sent to the model";

/// The position that a claim states.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedPosition<'q> {
    /// Position of the named file.
    pub(super) file: Option<usize>,
    pub(super) line: Option<u32>,
    /// Number of additional lines that the claim covers.
    pub(super) further: u32,
    pub(super) quote: Option<&'q Quote>,
    /// True if the model read the line with a tool.
    pub(super) was_read: bool,
}

impl StatedPosition<'_> {
    /// Returns the statement of a file without a line.
    pub(super) fn of_file(file: usize) -> Self {
        Self {
            file: Some(file),
            line: None,
            further: 0,
            quote: None,
            was_read: false,
        }
    }
}

/// The position of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimPosition {
    /// Changed lines: positions of the first and the last entry.
    Changed {
        first: usize,
        last: usize,
        certainty: PositionCertainty,
    },
    /// A removed line, with the entry on the new side that represents it, if any.
    Removed {
        entry: usize,
        at: Option<usize>,
        certainty: PositionCertainty,
    },
    /// One of several equal lines of a file: positions of the entries, at least two.
    OneOf(Vec<usize>),
    /// Code that the change does not touch.
    Unchanged { file: usize, line: Option<LineNo> },
    /// A file as a whole.
    File(usize),
    /// The change as a whole.
    Change,
    /// No position, with the reason.
    Nowhere(&'static str),
}

/// Finds the position of a claim.
pub(super) fn find(lines: &ChunkLines<'_>, stated: StatedPosition<'_>) -> ClaimPosition {
    let locator = Locator { lines, stated };
    match (stated.quote, stated.file, stated.line) {
        (Some(quote), Some(file), _) => locator.by_quote(quote, file),
        (Some(quote), None, _) => locator.by_quote_in_any_file(quote),
        (None, Some(file), Some(line)) => locator.by_number(file, line),
        (None, Some(file), None) => ClaimPosition::File(file),
        (None, None, _) => ClaimPosition::Change,
    }
}

/// Returns the position, or if the quote has none, the added line with the claimed number, where a
/// person can judge the claim.
pub(super) fn or_numbered(
    lines: &ChunkLines<'_>,
    stated: StatedPosition<'_>,
    position: ClaimPosition,
) -> ClaimPosition {
    let is_unplaced = matches!(
        position,
        ClaimPosition::Nowhere(_) | ClaimPosition::Unchanged { .. }
    );
    let (Some(file), Some(line), true) = (stated.file, stated.line, is_unplaced) else {
        return position;
    };
    let is_added = lines
        .numbered(file, line)
        .is_some_and(|entry| lines.entries[entry].is_added());
    if is_added {
        Locator { lines, stated }.by_number(file, line)
    } else {
        position
    }
}

/// The lines of the chunk, and the position that a claim states about them.
#[derive(Clone, Copy)]
struct Locator<'l, 'c, 'q> {
    lines: &'l ChunkLines<'c>,
    stated: StatedPosition<'q>,
}

impl Locator<'_, '_, '_> {
    /// Returns the same statement without the file name, which turned out to be wrong or is not
    /// needed.
    fn in_any_file(self) -> Self {
        Self {
            stated: StatedPosition {
                file: None,
                ..self.stated
            },
            ..self
        }
    }

    /// Finds the position of a quote if the claim names no file.
    fn by_quote_in_any_file(self, quote: &Quote) -> ClaimPosition {
        let found = quote
            .find_equal(self.lines, None)
            .or_else(|| quote.find_part(self.lines, None))
            .or_else(|| quote.find_similar(self.lines, None));
        match found {
            Some(found) => self.choose(&found),
            None => ClaimPosition::Nowhere(UNKNOWN),
        }
    }

    /// Finds the position of a quote: at a line of the named file that equals it, or at the line
    /// with the claimed number that contains it, or [elsewhere](Self::by_quote_elsewhere).
    fn by_quote(self, quote: &Quote, file: usize) -> ClaimPosition {
        if self.stated.was_read
            && let Some(position) = self.unsent_line_with_number(quote, file)
        {
            return position;
        }
        if let Some(found) = quote.find_equal(self.lines, Some(file)) {
            return self.at_equal_line(quote, file, &found);
        }
        let part = self.part_of_lines(quote, file);
        if let Some(part) = &part
            && let Some(position) = self.part_with_number(part)
        {
            return position;
        }
        self.by_quote_elsewhere(quote, file, part.as_ref())
    }

    /// Finds the lines of the named file that contain the quote as an identifying part.
    ///
    /// The named file may contain the quote only without an apparent diff marker, while another
    /// file contains it unchanged. All lines of the named file count as another reading then.
    fn part_of_lines(self, quote: &Quote, file: usize) -> Option<QuoteMatch> {
        let part = quote.find_part(self.lines, Some(file))?;
        let is_as_given = quote.find_part(self.lines, None).is_none_or(|found| {
            let mut all = found.all.iter();
            all.any(|o| self.lines.file_of(*o) == file)
        });
        Some(if is_as_given {
            part
        } else {
            QuoteMatch {
                all: Vec::new(),
                further: part.all,
                ..part
            }
        })
    }

    /// Finds the position of a quote that equals lines of the named file. Another file is preferred
    /// if the named file contains the quote only as a removed line, or only without an apparent
    /// diff marker.
    fn at_equal_line(self, quote: &Quote, file: usize, found: &QuoteMatch) -> ClaimPosition {
        let everywhere = quote
            .find_equal(self.lines, None)
            .filter(|_| quote.identifies_a_line())
            .map_or(Vec::new(), |found| found.all);
        let (own, others): (Vec<EntryRange>, Vec<EntryRange>) = everywhere
            .into_iter()
            .partition(|o| self.lines.file_of(*o) == file);
        let others: Vec<EntryRange> = others
            .into_iter()
            .filter(|o| self.lines.is_on_new_side(*o))
            .collect();
        let is_removed = !found.all.iter().any(|o| self.lines.is_on_new_side(*o));
        if is_removed && let Some(entry) = self.longer_line_with_number(file, found) {
            return self.at(EntryRange::of_entry(entry), PositionCertainty::Doubtful);
        }
        let has_number = found.all.iter().any(|o| self.has_number(*o));
        if others.is_empty() {
            self.choose(found)
        } else if is_removed && !has_number {
            self.at_removed_or_moved_line(found, others)
        } else if !is_removed && own.is_empty() {
            // The named file contains only another reading of the quote.
            if has_number {
                self.choose(&found.doubted())
            } else {
                self.choose_elsewhere_or_here(found, others)
            }
        } else {
            self.choose(found)
        }
    }

    /// Returns the added line that has the claimed number and contains a removed line that equals
    /// the quote. Returns `None` if this line already represents the removed line.
    fn longer_line_with_number(self, file: usize, removed: &QuoteMatch) -> Option<usize> {
        let entry = self
            .lines
            .numbered(file, self.stated.line?)
            .filter(|i| self.lines.entries[*i].is_added())?;
        let mut removed_lines = removed.all.iter();
        if removed_lines.any(|o| self.lines.stand_in(o.first) == Some(entry)) {
            return None;
        }
        let folded = self.lines.folded();
        let mut of_one_line = removed.all.iter().filter(|o| o.is_one_line());
        of_one_line
            .any(|o| folded[entry].contains(folded[o.first].as_str()))
            .then_some(entry)
    }

    /// Finds the position of a claim whose quote equals removed lines of the named file and also
    /// lines on the new side of other files (`others`). Only the number can distinguish them.
    fn at_removed_or_moved_line(
        self,
        found: &QuoteMatch,
        others: Vec<EntryRange>,
    ) -> ClaimPosition {
        let mut numbered = others.iter().filter(|o| self.has_number(**o));
        if let (Some(o), None) = (numbered.next(), numbered.next()) {
            let certainty = self.in_any_file().certainty_with_number(*o, &others);
            return self.at(*o, certainty.min(PositionCertainty::Likely));
        }
        if found.all.iter().any(|o| self.may_mean(*o)) {
            return self.choose(&found.doubted());
        }
        self.choose_elsewhere_or_here(found, others)
    }

    /// Chooses one of the lines of other files, or a line of the named file if nothing
    /// distinguishes those. The result is never certain.
    fn choose_elsewhere_or_here(
        self,
        found: &QuoteMatch,
        others: Vec<EntryRange>,
    ) -> ClaimPosition {
        let here = found.doubted();
        let elsewhere = QuoteMatch {
            all: others,
            ..here.clone()
        };
        match self.in_any_file().choose(&elsewhere) {
            position @ ClaimPosition::Changed { .. } => position,
            _ => self.choose(&here),
        }
    }

    /// Returns the line of the named file that has the claimed number and contains the quote.
    fn part_with_number(self, part: &QuoteMatch) -> Option<ClaimPosition> {
        let n = self.stated.line?;
        if let Some(o) = self.first_with_number(&part.all, n) {
            return Some(self.at(o, PositionCertainty::Likely));
        }
        self.first_with_number(&part.further, n)
            .map(|o| self.at(o, PositionCertainty::Doubtful))
    }

    /// Returns the first range whose first line has a number on the new side.
    fn first_with_number(self, all: &[EntryRange], n: u32) -> Option<EntryRange> {
        let mut all = all.iter().copied();
        all.find(|o| self.lines.entries[o.first].number() == Some(n))
    }

    /// Returns true if the first line of the range has the claimed number.
    fn has_number(self, o: EntryRange) -> bool {
        let first = EntryRange::of_entry(o.first);
        self.stated
            .line
            .is_some_and(|n| self.lines.distance(first, n) == 0)
    }

    /// Returns true if the claimed number is near the lines.
    fn is_near(self, o: EntryRange) -> bool {
        self.stated
            .line
            .is_some_and(|n| self.lines.distance(o, n) <= NEAR)
    }

    /// Returns true if the claim can be about the lines: the claimed number is near them or is a
    /// position of the first one in another view, or there is no number.
    fn may_mean(self, o: EntryRange) -> bool {
        self.stated.line.is_none_or(|n| {
            self.lines.distance(o, n) <= NEAR || self.lines.entries[o.first].is_seen_as(n)
        })
    }
}
