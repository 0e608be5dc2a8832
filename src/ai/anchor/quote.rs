//! The quote of a claim, and the lines that match it.
//!
//! A model copies code from the text that it received, but not always exactly: it keeps the diff
//! marker or the line number, omits the end of a line, or writes other white space. A [`Quote`]
//! therefore has several readings of each line, and the searches compare less strictly from one to
//! the next:
//!
//! | search | a line matches if |
//! |---|---|
//! | [`Quote::find_equal`] | it equals a reading of the quote, except for white space and typographic characters. Several lines match if they are consecutive |
//! | [`Quote::find_part`] | it contains the quote, and the quote is long enough to identify a line by a part |
//! | [`Quote::find_similar`] | it contains the quote or its pieces, is a large part of it, or has the same letters |
//! | [`Quote::find_start`] | it is the only line near the claimed number that starts like the quote |
//! | [`Quote::find_akin`] | it shares the most words with the quote, among the lines near the claimed number |
//!
//! A search only returns which lines match. `position` chooses one of them, and decides how certain
//! the choice is.

mod part;
mod readings;
mod search;
mod texts;

use super::lines::{EntryRange, bare, fold};
use super::text::fence_body;
use readings::readings;
use std::collections::HashSet;

/// Letters and digits of a quote that is more than punctuation, at least.
const MIN_LETTERS: usize = 3;
/// Letters and digits of a quote that identifies a line, at least.
const MIN_IDENTIFYING_LETTERS: usize = 4;
/// Lines of a quote that are compared, at most.
const MAX_LINES: usize = 40;

/// A parsed quote.
#[derive(Debug)]
pub(super) struct Quote {
    /// The readings of each line that is not blank; at least one line, and at least one reading of
    /// each. The first reading is the line as the model wrote it; the others lack diff markers,
    /// line numbers or backticks.
    lines: Vec<Vec<String>>,
    /// True if the quote omits lines at the end or in the middle.
    elided: bool,
}

/// How well a quote matches a line. Ordered from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QuoteFit {
    /// Some words are equal, or the quote omits something.
    Similar,
    /// Equal except for white space, typographic characters, diff markers and line numbers.
    Equal,
}

/// The lines that match a quote.
#[derive(Clone, Debug)]
pub(super) struct QuoteMatch {
    /// Lines that match the first reading with a match. Empty only if all
    /// lines count as another reading; see `Locator::part_of_lines`.
    pub(super) all: Vec<EntryRange>,
    /// Lines that match only another reading: an apparent diff marker can be part of the line.
    pub(super) further: Vec<EntryRange>,
    pub(super) fit: QuoteFit,
}

impl Quote {
    /// Parses a quote. Returns `None` if it is blank, or consists of ellipses only.
    pub(super) fn new(text: &str) -> Option<Self> {
        let mut elided = false;
        let mut lines = Vec::new();
        for line in fence_body(text)
            .unwrap_or(text)
            .lines()
            .map(bare)
            .filter(|line| !line.is_empty())
        {
            if is_ellipsis(line) {
                elided = true;
                continue;
            }
            if lines.len() == MAX_LINES {
                elided = true;
                break;
            }
            lines.push(readings(line));
        }
        (!lines.is_empty()).then_some(Self { lines, elided })
    }

    /// Returns the readings of each line that is not blank; see [`Quote`].
    pub(super) fn readings(&self) -> &[Vec<String>] {
        &self.lines
    }

    /// Returns true if the quote is long enough to identify a line in any file.
    pub(super) fn identifies_a_line(&self) -> bool {
        self.count_letters() >= MIN_IDENTIFYING_LETTERS
    }

    /// Returns true if the quote is not only punctuation that every file contains, such as `}` or
    /// `);`.
    pub(super) fn is_more_than_punctuation(&self) -> bool {
        self.count_letters() >= MIN_LETTERS
    }

    /// Counts the letters and digits of the quote without diff markers and line numbers.
    fn count_letters(&self) -> usize {
        let last_readings = self.lines.iter().filter_map(|readings| readings.last());
        last_readings
            .map(|reading| reading.chars().filter(|c| c.is_alphanumeric()).count())
            .sum()
    }

    /// Returns the first line of the quote without diff markers and line numbers.
    pub(super) fn first_line(&self) -> &str {
        self.lines
            .first()
            .and_then(|readings| readings.last())
            .map_or("", String::as_str)
    }

    /// Returns the line of a quote of one line.
    pub(super) fn only_line(&self) -> Option<&str> {
        match &self.lines[..] {
            [_] => Some(self.first_line()),
            _ => None,
        }
    }

    /// Returns the folded readings of the lines.
    fn folded(&self) -> Vec<Vec<String>> {
        let lines = self.lines.iter();
        lines
            .map(|readings| readings.iter().map(|reading| fold(reading)).collect())
            .collect()
    }
}

/// Returns true for a line that stands for omitted ones, such as `…` or `// ...`.
fn is_ellipsis(line: &str) -> bool {
    line.chars()
        .all(|c| matches!(c, '.' | '…' | '/' | '#' | '*' | ' '))
        && line.contains(['…', '.'])
}

impl QuoteMatch {
    /// Collects the entries that match the readings of a line, given in the order of the readings.
    /// Returns `None` if no reading matches.
    fn of_readings(hits: impl Iterator<Item = Vec<usize>>, fit: QuoteFit) -> Option<Self> {
        let mut hits = hits.skip_while(Vec::is_empty);
        let all = hits.next()?;
        let mut seen: HashSet<usize> = all.iter().copied().collect();
        let further = hits.flatten().filter(|entry| seen.insert(*entry));
        let further = further.map(EntryRange::of_entry).collect();
        Some(Self {
            all: all.into_iter().map(EntryRange::of_entry).collect(),
            further,
            fit,
        })
    }

    /// Returns the lines as the result of a search. Returns `None` if there are none.
    fn of(all: Vec<EntryRange>, fit: QuoteFit) -> Option<Self> {
        (!all.is_empty()).then_some(Self {
            all,
            further: Vec::new(),
            fit,
        })
    }

    /// Returns the lines that match any reading.
    pub(super) fn of_any_reading(&self) -> impl Iterator<Item = &EntryRange> {
        self.all.iter().chain(&self.further)
    }

    /// Returns the same lines, marked as not certain.
    pub(super) fn doubted(&self) -> Self {
        Self {
            fit: QuoteFit::Similar,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::readings::without_columns;
    use super::*;

    #[test]
    fn what_a_display_puts_around_a_line_is_taken_off() {
        for (quote, line) in [
            ("let a = 1;", "let a = 1;"),
            ("+ let a = 1;", "let a = 1;"),
            ("-\tlet a = 1;", "let a = 1;"),
            ("`let a = 1;`", "let a = 1;"),
            ("12 + let a = 1;", "let a = 1;"),
            ("12+    let a = 1;", "let a = 1;"),
            ("12     let a = 1;", "let a = 1;"),
            ("-    let a = 1;", "let a = 1;"),
            ("12 | let a = 1;", "let a = 1;"),
            ("  12: let a = 1;", "let a = 1;"),
            ("L12: let a = 1;", "let a = 1;"),
            ("12 13 + let a = 1;", "let a = 1;"),
            ("12\tlet a = 1;", "let a = 1;"),
            ("+12 let a = 1;", "let a = 1;"),
            ("`+ let a = 1;`", "let a = 1;"),
            ("- 1", "- 1"),
            ("12 apples", "12 apples"),
            ("3: \"three\",", "3: \"three\","),
        ] {
            let readings = readings(quote);
            assert!(readings.iter().any(|r| r == line), "{quote}: {readings:?}");
            assert_eq!(readings[0], quote.trim(), "as it is comes first");
        }
        assert_eq!(without_columns("12"), None);
        assert_eq!(without_columns("12px solid"), None);
    }

    #[test]
    fn a_quote_of_several_lines_keeps_those_that_say_something() {
        let quote = Quote::new("```rust\nfn a() {\n\n    // ...\n}\n```").unwrap();
        assert_eq!(quote.lines.len(), 2);
        assert!(quote.elided);
        assert!(Quote::new(" \n ").is_none());
        assert!(Quote::new("...").is_none());
    }
}
