//! Quotes that equal no line of the named file: the file name, the quote or the number is wrong.

use super::{ClaimPosition, Locator, NEAR, UNKNOWN};
use crate::ai::anchor::PositionCertainty;
use crate::ai::anchor::lines::EntryRange;
use crate::ai::anchor::quote::{Quote, QuoteFit, QuoteMatch};
use crate::diff::{LineKind, LineNo};

/// Distance in lines from the claimed one within which a paraphrased quote is searched for.
const AKIN: u32 = 5;

/// A quote that equals no line of the named file that the model received, and is not part of the
/// line with the claimed number.
struct Misplaced<'s, 'l, 'c, 'q> {
    /// The claim as stated.
    named: Locator<'l, 'c, 'q>,
    /// The same claim without the file name.
    anywhere: Locator<'l, 'c, 'q>,
    quote: &'s Quote,
    /// Position of the named file.
    file: usize,
    /// Lines of the named file that contain the quote as an identifying part.
    part: Option<&'s QuoteMatch>,
    /// Lines of other files that equal the quote: those on the new side, or all if there are none.
    equal: Option<QuoteMatch>,
}

impl Locator<'_, '_, '_> {
    /// Finds the position of a quote that equals no line of the named file, and is not part of the
    /// line with the claimed number. `part` holds the lines of the file that contain the quote.
    ///
    /// The first step that has a position decides. The order is from the strictest comparison to
    /// the loosest.
    pub(super) fn by_quote_elsewhere(
        self,
        quote: &Quote,
        file: usize,
        part: Option<&QuoteMatch>,
    ) -> ClaimPosition {
        let equal = quote.find_equal(self.lines, None);
        let search = Misplaced {
            named: self,
            anywhere: self.in_any_file(),
            quote,
            file,
            part,
            equal: equal.map(|found| QuoteMatch {
                all: self.lines.newest(&found.all),
                ..found
            }),
        };
        search
            .unsent_line()
            .or_else(|| search.unsent_line_with_number())
            .or_else(|| search.equal_line_of_other_file())
            .or_else(|| search.part_of_named_file())
            .or_else(|| search.paraphrase_with_number())
            .or_else(|| search.part_of_other_file())
            .or_else(|| search.similar_line_of_named_file())
            .or_else(|| search.equal_line_of_other_file_near_number())
            .or_else(|| search.start_of_line_near_number())
            .or_else(|| search.similar_line_of_other_file())
            .or_else(|| search.paraphrase_near_number())
            .or_else(|| search.changed_line_with_number())
            .or_else(|| search.only_equal_added_line())
            .or_else(|| search.any_line_with_number())
            .unwrap_or(ClaimPosition::Nowhere(UNKNOWN))
    }

    /// Returns the line with the claimed number if it matches the quote and the model did not
    /// receive it. The claim is about this line even if another line that the model received is
    /// equal.
    pub(super) fn unsent_line_with_number(
        self,
        quote: &Quote,
        file: usize,
    ) -> Option<ClaimPosition> {
        let line = self
            .stated
            .line
            .filter(|n| self.lines.numbered(file, *n).is_none())
            .and_then(LineNo::new)?;
        let text = self.lines.file(file).change.text()?.new.line(line)?;
        let fits = quote.identifies_a_line() && quote.fits(&String::from_utf8_lossy(text));
        fits.then_some(ClaimPosition::Unchanged {
            file,
            line: Some(line),
        })
    }
}

impl Misplaced<'_, '_, '_, '_> {
    /// Finds the quote on the new side of the named file, including the lines that the model did
    /// not receive.
    ///
    /// The model can have received some lines of a quote of several lines: the quote begins or ends
    /// outside the hunk, or spans two hunks. Then the claim is about these lines.
    ///
    /// If the claimed number is not near these lines, a line of another file near the number is
    /// preferred: the model received that one.
    fn unsent_line(&self) -> Option<ClaimPosition> {
        let lines = self.named.lines;
        let numbers = self.quote.find_in_text(&lines.new_text(self.file)?)?;
        let first = *numbers.first()?;
        if self
            .named
            .stated
            .line
            .is_some_and(|n| first.abs_diff(n) > NEAR)
            && let Some(equal) = self.only_equal_near_number()
        {
            return Some(self.anywhere.choose(&equal.doubted()));
        }
        let mut sent = numbers.iter().filter_map(|n| lines.numbered(self.file, *n));
        let Some(first_sent) = sent.next() else {
            return Some(ClaimPosition::Unchanged {
                file: self.file,
                line: LineNo::new(first),
            });
        };
        let found = EntryRange {
            first: first_sent,
            last: sent.last().unwrap_or(first_sent),
        };
        let is_identified = self.named.is_identified(found);
        let certainty = PositionCertainty::Certain.doubtful_unless(is_identified);
        Some(self.named.at(found, certainty))
    }

    /// Returns the line of the named file with the claimed number, if the model did not receive it.
    fn unsent_line_with_number(&self) -> Option<ClaimPosition> {
        match self.part {
            Some(_) => None,
            None => self.named.unsent_line_with_number(self.quote, self.file),
        }
    }

    /// Chooses a line of another file that equals the quote: either the file name or the quote is
    /// wrong.
    fn equal_line_of_other_file(&self) -> Option<ClaimPosition> {
        let found = self.equal.as_ref()?;
        if !self.quote.identifies_a_line() {
            return None;
        }
        Some(if self.is_sure_elsewhere(found) {
            self.anywhere.choose(found)
        } else {
            self.anywhere.choose(&found.doubted())
        })
    }

    /// Returns true if a quote that equals lines of other files cannot refer to a line of the named
    /// file, and the quote or the number identifies one of those lines.
    fn is_sure_elsewhere(&self, found: &QuoteMatch) -> bool {
        // The named file may contain the quote in lines that the model did not receive.
        let in_whole = self.fit_in_whole();
        if in_whole == Some(QuoteFit::Equal) {
            return false;
        }
        if found.all.iter().any(|o| self.named.has_number(*o)) {
            return true;
        }
        // If the file name is wrong, a line of any file that contains the quote can be meant.
        let any_line = self.anywhere.at_any_line();
        self.part.is_none()
            && in_whole.is_none()
            && found.all.iter().all(|o| !any_line.may_mean_longer(*o))
    }

    /// Returns how well the quote matches the whole named file, including the lines that the model
    /// did not receive.
    fn fit_in_whole(&self) -> Option<QuoteFit> {
        self.quote.fit_in_whole(self.named.lines.whole(self.file))
    }

    /// Chooses a line of the named file that contains the quote.
    fn part_of_named_file(&self) -> Option<ClaimPosition> {
        let part = self.part.filter(|part| !part.all.is_empty())?;
        if self.equal.is_none()
            && let Some(position) = self.only_added_part(part)
        {
            return Some(position);
        }
        Some(self.named.choose(part))
    }

    /// Returns the only changed line of the named file that contains the quote. Returns `None` if
    /// there is not exactly one.
    fn only_added_part(&self, part: &QuoteMatch) -> Option<ClaimPosition> {
        let (lines, stated) = (self.named.lines, self.named.stated);
        let mut added = part
            .of_any_reading()
            .filter(|o| lines.entries[o.first].is_added());
        let (Some(only), None) = (added.next(), added.next()) else {
            return None;
        };
        // An unchanged line that contains the quote can be meant if it is as near to the number.
        let mut unchanged = part
            .of_any_reading()
            .filter(|o| lines.entries[o.first].shown.kind == LineKind::Context);
        let may_be_unchanged = stated.line.is_some_and(|n| {
            let nearest = lines.distance(*only, n);
            unchanged.any(|o| lines.distance(*o, n) <= nearest)
        });
        let is_only_meaning = !may_be_unchanged
            && !self.has_part_with_number_elsewhere()
            && self.quote.is_more_than_punctuation();
        let certainty = PositionCertainty::Likely.doubtful_unless(is_only_meaning);
        Some(self.named.at(*only, certainty))
    }

    /// Returns true if the line of another file with the claimed number contains the quote. Then
    /// either the file name or the number is wrong.
    fn has_part_with_number_elsewhere(&self) -> bool {
        let lines = self.named.lines;
        let found = self
            .quote
            .find_part(lines, None)
            .filter(|_| self.named.stated.line.is_some());
        found.is_some_and(|found| {
            let mut all = found.of_any_reading();
            all.any(|o| lines.file_of(*o) != self.file && self.named.has_number(*o))
        })
    }

    /// Returns the line of the named file with the claimed number, if it shares half of its words
    /// with the quote.
    fn paraphrase_with_number(&self) -> Option<ClaimPosition> {
        let lines = self.named.lines;
        let entry = lines.numbered(self.file, self.named.stated.line?)?;
        self.quote
            .is_akin_to(lines.entries[entry].text)
            .then(|| self.loosely_at(entry))
    }

    /// Returns the line of another file that contains the quote: the only one with the claimed
    /// number, or the only added one.
    fn part_of_other_file(&self) -> Option<ClaimPosition> {
        let lines = self.named.lines;
        let found = self.quote.find_part(lines, None)?;
        let all = lines.newest(&[found.all, found.further].concat());
        let mut numbered = all.iter().filter(|o| self.named.has_number(**o));
        if let (Some(o), None) = (numbered.next(), numbered.next()) {
            let is_in_named_file = self.part.is_some() || self.fit_in_whole().is_some();
            let certainty = PositionCertainty::Likely.doubtful_unless(!is_in_named_file);
            return Some(self.anywhere.at(*o, certainty));
        }
        let only = lines.only_added(&all)?;
        Some(self.anywhere.at(only, PositionCertainty::Doubtful))
    }

    /// Chooses a similar line of the named file.
    fn similar_line_of_named_file(&self) -> Option<ClaimPosition> {
        let found = self.quote.find_similar(self.named.lines, Some(self.file))?;
        Some(self.named.choose(&found))
    }

    /// Returns the line of another file that equals a quote that is too short to identify a line in
    /// another file without the number.
    fn equal_line_of_other_file_near_number(&self) -> Option<ClaimPosition> {
        let found = self.only_equal_near_number()?;
        Some(self.anywhere.choose(&found.doubted()))
    }

    /// Returns the equal lines of other files if there is only one, and the claimed number is near
    /// it.
    fn only_equal_near_number(&self) -> Option<&QuoteMatch> {
        let found = self.equal.as_ref()?;
        matches!(found.all[..], [only] if self.named.is_near(only)).then_some(found)
    }

    /// Returns the only line of the named file near the claimed number that starts like the quote.
    fn start_of_line_near_number(&self) -> Option<ClaimPosition> {
        let n = self.named.stated.line?;
        let found = self
            .quote
            .find_start(self.named.lines, self.file, n, NEAR)?;
        Some(self.named.choose(&found))
    }

    /// Chooses a similar line of any file.
    fn similar_line_of_other_file(&self) -> Option<ClaimPosition> {
        let found = self.quote.find_similar(self.named.lines, None)?;
        Some(self.anywhere.choose(&found))
    }

    /// Returns the line of the named file near the claimed number that shares the most words with
    /// the quote.
    fn paraphrase_near_number(&self) -> Option<ClaimPosition> {
        let n = self.named.stated.line?;
        let entry = self.quote.find_akin(self.named.lines, self.file, n, AKIN)?;
        Some(self.loosely_at(entry))
    }

    /// Returns the changed lines at the claimed number. The change contains the file and the line,
    /// so a person can judge the claim although its quote does not match.
    fn changed_line_with_number(&self) -> Option<ClaimPosition> {
        self.any_line_with_number().filter(|position| {
            matches!(
                position,
                ClaimPosition::Changed { .. } | ClaimPosition::Removed { .. }
            )
        })
    }

    /// Returns the position of the claimed number, without the quote, if the model received the
    /// line.
    fn any_line_with_number(&self) -> Option<ClaimPosition> {
        let n = self.named.stated.line?;
        self.named.lines.numbered(self.file, n)?;
        Some(self.named.by_number(self.file, n))
    }

    /// Returns the only added line of another file that equals the quote.
    fn only_equal_added_line(&self) -> Option<ClaimPosition> {
        let found = self.equal.as_ref()?;
        if !self.quote.is_more_than_punctuation() {
            return None;
        }
        let only = self.named.lines.only_added(&found.all)?;
        Some(self.anywhere.at(only, PositionCertainty::Doubtful))
    }

    /// Returns the position of a line that only its words or its number connect with the claim.
    fn loosely_at(&self, entry: usize) -> ClaimPosition {
        self.named
            .at(EntryRange::of_entry(entry), PositionCertainty::Doubtful)
    }
}
