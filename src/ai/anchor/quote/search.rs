//! Searches the lines of a chunk for a quote. In all searches, `file` is the position of the file
//! that is searched; `None` means all files.

use super::part::{IdentifyingPart, folded_pieces, has_in_order};
use super::readings::without_ellipsis;
use super::{Quote, QuoteFit, QuoteMatch};
use crate::ai::anchor::lines::{ChunkLines, EntryRange, fold};
use crate::diff::LineKind;
use std::cmp::Reverse;

/// Characters of a partial line that is searched for in the named file, at least.
const MIN_PART: usize = 6;
/// Characters of a quote that is searched for in all files, or compared by its letters alone, at
/// least. Also the length of a line that counts as a large part of a quote.
const MIN_LONG: usize = 12;
/// Characters of the start of a line that is compared near the claimed number, at least.
const MIN_START: usize = 2;
/// Share of words that a paraphrase and its line have in common, at least.
const MIN_SHARED: f64 = 0.6;
/// The same for the line with the claimed number.
const MIN_SHARED_AT_NUMBER: f64 = 0.5;

/// A line in which a search looks: its position, and its folded text, which is not blank.
type FoldedEntry<'l> = (usize, &'l str);

impl Quote {
    /// Finds lines that equal the quote.
    pub(in crate::ai::anchor) fn find_equal(
        &self,
        lines: &ChunkLines<'_>,
        file: Option<usize>,
    ) -> Option<QuoteMatch> {
        let fit = if self.elided {
            QuoteFit::Similar
        } else {
            QuoteFit::Equal
        };
        match &self.lines[..] {
            [readings] => {
                let hits = readings.iter().map(|r| equal_entries(r, lines, file));
                QuoteMatch::of_readings(hits, fit)
            }
            _ => QuoteMatch::of(sequences(&self.folded(), lines, file), fit),
        }
    }

    /// Finds lines that contain the only line of the quote as an identifying part; see
    /// [`IdentifyingPart`].
    pub(in crate::ai::anchor) fn find_part(
        &self,
        lines: &ChunkLines<'_>,
        file: Option<usize>,
    ) -> Option<QuoteMatch> {
        let [readings] = &self.lines[..] else {
            return None;
        };
        let hits = readings.iter().map(|r| entries_with_part(r, lines, file));
        QuoteMatch::of_readings(hits, QuoteFit::Similar)
    }

    /// Finds similar lines: those that contain a part of the quote, or have the same letters.
    /// Without `file`, all files are searched, but only if the quote is long enough.
    pub(in crate::ai::anchor) fn find_similar(
        &self,
        lines: &ChunkLines<'_>,
        file: Option<usize>,
    ) -> Option<QuoteMatch> {
        if self.lines.len() > 1 {
            let all = sequences(&self.folded(), lines, file);
            return QuoteMatch::of(all, QuoteFit::Similar)
                .or_else(|| self.find_longest_line(lines, file));
        }
        let entries: Vec<FoldedEntry<'_>> = lines
            .entries
            .iter()
            .zip(lines.folded())
            .enumerate()
            .filter(|(_, (e, _))| file.is_none_or(|f| e.file == f) && !e.text.is_empty())
            .map(|(i, (_, folded))| (i, folded.as_str()))
            .collect();
        let min_length = if file.is_some() { MIN_PART } else { MIN_LONG };
        let readings = self.lines.first()?;
        readings
            .iter()
            .map(|reading| (reading, fold(without_ellipsis(reading)).chars().count()))
            .filter(|(_, length)| *length > 0 && (file.is_some() || *length >= MIN_LONG))
            .find_map(|(reading, _)| similar_entries(reading, &entries, min_length))
            .or_else(|| same_letters(self.first_line(), &entries))
    }

    /// Finds the longest line of a quote whose lines are not adjacent in the change.
    fn find_longest_line(&self, lines: &ChunkLines<'_>, file: Option<usize>) -> Option<QuoteMatch> {
        let mut own: Vec<&Vec<String>> = self.lines.iter().collect();
        own.sort_by_key(|readings| Reverse(readings.last().map_or(0, |r| letters(r).len())));
        own.into_iter().find_map(|readings| {
            let is_long = letters(readings.last()?).chars().count() >= MIN_PART;
            let mut hits = readings.iter().map(|r| equal_entries(r, lines, file));
            let hits = hits.find(|hits| !hits.is_empty() && is_long)?;
            let all = hits.into_iter().map(EntryRange::of_entry).collect();
            QuoteMatch::of(all, QuoteFit::Similar)
        })
    }

    /// Finds the only line at most `within` lines away from a number that starts like the quote,
    /// however short the quote is.
    pub(in crate::ai::anchor) fn find_start(
        &self,
        lines: &ChunkLines<'_>,
        file: usize,
        near: u32,
        within: u32,
    ) -> Option<QuoteMatch> {
        let readings = self.lines.first()?.iter();
        let starts: Vec<String> = readings
            .map(|r| fold(without_ellipsis(r)))
            .filter(|start| start.chars().count() >= MIN_START)
            .collect();
        let folded = lines.folded();
        let mut hits = lines.of_file(file).filter(|(i, e)| {
            e.number().is_some_and(|n| n.abs_diff(near) <= within)
                && starts.iter().any(|start| folded[*i].starts_with(start))
        });
        let (only, _) = hits.next()?;
        if hits.next().is_some() {
            return None;
        }
        QuoteMatch::of(vec![EntryRange::of_entry(only)], QuoteFit::Similar)
    }

    /// Finds the line at most `within` lines away from a number that shares the most words with the
    /// quote.
    pub(in crate::ai::anchor) fn find_akin(
        &self,
        lines: &ChunkLines<'_>,
        file: usize,
        near: u32,
        within: u32,
    ) -> Option<usize> {
        let own = words(self.first_line());
        if own.len() < 2 {
            return None;
        }
        lines
            .of_file(file)
            .filter(|(_, e)| e.number().is_some_and(|n| n.abs_diff(near) <= within))
            .filter_map(|(i, e)| Some((i, shared(&own, e.text), e.number()?.abs_diff(near))))
            .filter(|(_, share, _)| *share >= MIN_SHARED)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.2.cmp(&a.2)))
            .map(|(i, ..)| i)
    }

    /// Returns true if a line shares half of its words with the quote.
    pub(in crate::ai::anchor) fn is_akin_to(&self, line: &str) -> bool {
        shared(&words(self.first_line()), line) >= MIN_SHARED_AT_NUMBER
    }
}

/// Returns the lines that equal a reading of a quote.
fn equal_entries(reading: &str, lines: &ChunkLines<'_>, file: Option<usize>) -> Vec<usize> {
    let all = lines.equal_to(&fold(reading)).iter().copied();
    all.filter(|i| file.is_none_or(|f| lines.entries[*i].file == f))
        .collect()
}

/// Returns the lines that contain a reading of a quote as an identifying part.
fn entries_with_part(reading: &str, lines: &ChunkLines<'_>, file: Option<usize>) -> Vec<usize> {
    let Some(part) = IdentifyingPart::of(reading) else {
        return Vec::new();
    };
    let all = lines.entries.iter().zip(lines.folded()).enumerate();
    let in_file = all.filter(|(_, (e, _))| file.is_none_or(|f| e.file == f));
    in_file
        .filter(|(_, (_, text))| part.is_in(text))
        .map(|(i, _)| i)
        .collect()
}

/// Returns the lines that are similar to a reading of a quote. The first condition that any line
/// meets decides: the line equals the reading without its ellipses, starts with it, contains it,
/// contains its pieces in order, or is a large part of it, because the line was truncated or the
/// quote continues after it.
///
/// Only a reading of at least `min_length` characters is searched for in longer lines.
fn similar_entries(
    reading: &str,
    entries: &[FoldedEntry<'_>],
    min_length: usize,
) -> Option<QuoteMatch> {
    let bare = without_ellipsis(reading);
    let (part, pieces) = (fold(bare), folded_pieces(bare));
    let length = part.chars().count();
    if bare.len() < reading.len()
        && let Some(found) = matching(entries, |text| text == part)
    {
        return Some(found);
    }
    if length >= min_length {
        let in_longer = matching(entries, |text| text.starts_with(&part))
            .or_else(|| matching(entries, |text| text.contains(&part)))
            .or_else(|| {
                matching(entries, |text| {
                    pieces.len() >= 2 && has_in_order(text, &pieces)
                })
            });
        if in_longer.is_some() {
            return in_longer;
        }
    }
    matching(entries, |text| {
        let own = text.chars().count();
        own >= MIN_LONG && own * 10 >= length * 6 && part.contains(text)
    })
}

/// Returns the lines that have the same letters and digits as a line of a quote, or else those that
/// contain them.
fn same_letters(line: &str, entries: &[FoldedEntry<'_>]) -> Option<QuoteMatch> {
    let own = letters(line);
    if own.chars().count() < MIN_LONG {
        return None;
    }
    matching(entries, |text| letters(text) == own)
        .or_else(|| matching(entries, |text| letters(text).contains(&own)))
}

/// Returns the lines that meet a condition, as similar ones.
fn matching(entries: &[FoldedEntry<'_>], fits: impl Fn(&str) -> bool) -> Option<QuoteMatch> {
    let hits = entries.iter().filter(|(_, text)| fits(text));
    let all = hits.map(|(i, _)| EntryRange::of_entry(*i)).collect();
    QuoteMatch::of(all, QuoteFit::Similar)
}

/// Finds consecutive lines that match the folded lines of a quote, ignoring blank lines. Searches
/// the new side first, then the diff as it is, then the old side; the first one with a match
/// decides.
fn sequences(
    quote: &[Vec<String>],
    lines: &ChunkLines<'_>,
    file: Option<usize>,
) -> Vec<EntryRange> {
    let sides: [fn(LineKind) -> bool; 3] = [
        |kind| kind != LineKind::Removed,
        |_| true,
        |kind| kind != LineKind::Added,
    ];
    sides
        .into_iter()
        .map(|is_of_side| sequences_on_side(quote, lines, file, is_of_side))
        .find(|found| !found.is_empty())
        .unwrap_or_default()
}

/// Finds consecutive lines of one side, within a hunk, that match the folded lines of a quote.
fn sequences_on_side(
    quote: &[Vec<String>],
    lines: &ChunkLines<'_>,
    file: Option<usize>,
    is_of_side: fn(LineKind) -> bool,
) -> Vec<EntryRange> {
    let folded = lines.folded();
    let side: Vec<usize> = (0..lines.entries.len())
        .filter(|i| {
            let entry = &lines.entries[*i];
            file.is_none_or(|f| entry.file == f)
                && is_of_side(entry.shown.kind)
                && !entry.text.is_empty()
        })
        .collect();
    let windows = side.windows(quote.len()).filter(|window| {
        let (first, last) = (window[0], window[window.len() - 1]);
        let mut pairs = quote.iter().zip(*window);
        lines.entries[first].is_in_hunk_of(&lines.entries[last])
            && pairs.all(|(readings, i)| readings.contains(&folded[*i]))
    });
    windows
        .map(|window| EntryRange {
            first: window[0],
            last: window[window.len() - 1],
        })
        .collect()
}

/// Returns the share of words that a text has in common with `own`, or 0 for a text of one word.
/// Both lists are sorted, so that the cost for long lines does not grow with their product.
fn shared(own: &[String], text: &str) -> f64 {
    let theirs = words(text);
    let common = own
        .iter()
        .filter(|w| theirs.binary_search(w).is_ok())
        .count();
    if theirs.len() < 2 {
        0.0
    } else {
        common as f64 * 2.0 / (own.len() + theirs.len()) as f64
    }
}

/// Returns the letters and digits of a text, in lower case.
fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// Returns the words of a text in lower case, sorted and without duplicates.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}
