//! Parses quotes of models and finds them among the lines, first exactly and then with weaker
//! comparisons.

use super::lines::{ChunkLines, bare, fold, is_of_word};
use crate::diff::LineKind;
use std::collections::HashSet;

/// Letters and digits of a quote that is not only punctuation, at least.
const SAYING: usize = 3;
/// Letters and digits of a quote that can identify a line, at least.
const TELLING: usize = 4;
/// Characters of a partial line, at least.
const PART: usize = 6;
/// Characters of a partial line that identifies the line, at least.
const PIECE: usize = 8;
/// Characters of a quote that is searched for in another file, or compared by its letters alone, at
/// least.
const LONG: usize = 12;

/// Share of words that a paraphrase and its line must have in common, and the same for the line
/// with the claimed number.
const AKIN: f64 = 0.6;
const NUMBERED: f64 = 0.5;

/// Lines of a quote that are compared, at most.
const MAX_LINES: usize = 40;

/// A range of lines that match a quote: the first and the last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Occurrence {
    /// Returns an occurrence of one line.
    pub(super) fn of_entry(entry: usize) -> Self {
        Self {
            first: entry,
            last: entry,
        }
    }
}

/// A parsed quote.
#[derive(Debug)]
pub(super) struct Quote {
    /// Possible readings of each line that is not blank: unchanged first, and then without diff
    /// markers and line numbers.
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
    /// Lines that match the first reading with a match. At least one.
    pub(super) all: Vec<Occurrence>,
    /// Lines that match only another reading: an apparent diff marker can be part of the line.
    pub(super) further: Vec<Occurrence>,
    pub(super) fit: QuoteFit,
}

impl Quote {
    /// Parses a quote. Returns `None` if it is blank.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = unfenced(text);
        let mut elided = false;
        let mut lines = Vec::new();
        for line in text.lines().map(bare).filter(|l| !l.is_empty()) {
            if line
                .chars()
                .all(|c| matches!(c, '.' | '…' | '/' | '#' | '*' | ' '))
                && line.contains(['…', '.'])
            {
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

    /// Returns the possible readings of each line that is not blank; see [`Quote`].
    pub(super) fn readings(&self) -> &[Vec<String>] {
        &self.lines
    }

    /// Returns true if the quote is long enough to identify a line in any file.
    pub(super) fn is_telling(&self) -> bool {
        self.letters() >= TELLING
    }

    /// Returns true if the quote is not only punctuation that every file contains, such as `}` or
    /// `);`.
    pub(super) fn says_something(&self) -> bool {
        self.letters() >= SAYING
    }

    fn letters(&self) -> usize {
        let last_readings = self.lines.iter().filter_map(|readings| readings.last());
        last_readings
            .map(|reading| reading.chars().filter(|c| c.is_alphanumeric()).count())
            .sum()
    }

    /// Returns the first line of the quote without diff markers and line numbers.
    pub(super) fn first_line(&self) -> &str {
        self.lines
            .first()
            .and_then(|l| l.last())
            .map_or("", String::as_str)
    }

    /// Returns the line of a quote of one line.
    pub(super) fn only_line(&self) -> Option<&str> {
        match &self.lines[..] {
            [_] => Some(self.first_line()),
            _ => None,
        }
    }

    /// Finds equal lines, in one file or in all.
    pub(super) fn find_equal(
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
            [one] => QuoteMatch::of_readings(
                one.iter()
                    .map(|reading| equal_entries(reading, lines, file)),
                fit,
            ),
            several => {
                let all = sequences(&folded(several), lines, file);
                (!all.is_empty()).then_some(QuoteMatch {
                    all,
                    further: Vec::new(),
                    fit,
                })
            }
        }
    }

    /// Finds lines that contain the quote as an identifying part; see [`is_telling_part`].
    pub(super) fn find_part(
        &self,
        lines: &ChunkLines<'_>,
        file: Option<usize>,
    ) -> Option<QuoteMatch> {
        let [readings] = &self.lines[..] else {
            return None;
        };
        QuoteMatch::of_readings(
            readings
                .iter()
                .map(|reading| entries_with_part(reading, lines, file)),
            QuoteFit::Similar,
        )
    }

    /// Returns true if the quote, or its first line, equals a line of a text or is an identifying
    /// part of it.
    pub(super) fn fits(&self, line: &str) -> bool {
        let line = fold(line);
        let mut readings = self.lines.first().into_iter().flatten();
        readings
            .any(|r| fold(r) == line || TellingPart::of(r).is_some_and(|part| part.is_in(&line)))
    }

    /// Returns how well the quote matches the folded lines of a whole text without blank lines.
    /// They contain all lines of the quote, or one of them contains its only line as an identifying
    /// part.
    pub(super) fn fit_in_whole(&self, whole: &[String]) -> Option<QuoteFit> {
        let quote = folded(&self.lines);
        let mut windows = whole.windows(quote.len());
        if windows.any(|window| {
            quote
                .iter()
                .zip(window)
                .all(|(readings, line)| readings.contains(line))
        }) {
            return Some(QuoteFit::Equal);
        }
        let [readings] = &self.lines[..] else {
            return None;
        };
        let parts: Vec<TellingPart> = readings.iter().filter_map(|r| TellingPart::of(r)).collect();
        whole
            .iter()
            .any(|line| parts.iter().any(|part| part.is_in(line)))
            .then_some(QuoteFit::Similar)
    }

    /// Finds similar lines: those that contain a part of the quote, or have the same letters.
    /// Without `file`, all files are searched, but only if the quote is long enough.
    pub(super) fn find_similar(
        &self,
        lines: &ChunkLines<'_>,
        file: Option<usize>,
    ) -> Option<QuoteMatch> {
        if let several @ [_, _, ..] = &self.lines[..] {
            let all = sequences(&folded(several), lines, file);
            return QuoteMatch::similar(all).or_else(|| self.find_best_line(lines, file));
        }
        let shortest = if file.is_some() { PART } else { LONG };
        let all = lines.entries.iter().zip(lines.folded()).enumerate();
        let entries: Vec<(usize, &str)> = all
            .filter(|(_, (e, _))| file.is_none_or(|f| e.file == f) && !e.text.is_empty())
            .map(|(i, (_, folded))| (i, folded.as_str()))
            .collect();
        for reading in self.lines.first()? {
            let bare = without_ellipsis(reading);
            let (part, is_part) = (fold(bare), bare.len() < reading.len());
            if part.is_empty() || (file.is_none() && part.chars().count() < LONG) {
                continue;
            }
            let equal = if is_part {
                matching(&entries, |text| text == part)
            } else {
                None
            };
            let found = equal.or_else(|| matching_part(&entries, bare, shortest));
            if found.is_some() {
                return found;
            }
        }
        let own = letters(self.first_line());
        if own.chars().count() < LONG {
            return None;
        }
        matching(&entries, |text| letters(text) == own)
            .or_else(|| matching(&entries, |text| letters(text).contains(&own)))
    }

    /// Finds the longest line of a quote whose lines are not adjacent in the change.
    fn find_best_line(&self, lines: &ChunkLines<'_>, file: Option<usize>) -> Option<QuoteMatch> {
        let mut own: Vec<&Vec<String>> = self.lines.iter().collect();
        own.sort_by_key(|readings| {
            std::cmp::Reverse(readings.last().map_or(0, |r| letters(r).len()))
        });
        for readings in own {
            let hits = readings
                .iter()
                .map(|r| equal_entries(r, lines, file))
                .find(|hits| !hits.is_empty());
            let is_telling = readings
                .last()
                .is_some_and(|r| letters(r).chars().count() >= PART);
            if let Some(hits) = hits.filter(|_| is_telling) {
                return QuoteMatch::similar(hits.into_iter().map(Occurrence::of_entry).collect());
            }
        }
        None
    }

    /// Finds the only line near a number that starts like the quote, however short the quote is.
    pub(super) fn find_start(
        &self,
        lines: &ChunkLines<'_>,
        file: usize,
        near: u32,
        within: u32,
    ) -> Option<QuoteMatch> {
        let starts: Vec<String> = self
            .lines
            .first()?
            .iter()
            .map(|r| fold(without_ellipsis(r)))
            .collect();
        let folded = lines.folded();
        let mut hits = lines.of_file(file).filter(|(i, e)| {
            let is_near = e.number().is_some_and(|n| n.abs_diff(near) <= within);
            is_near
                && starts
                    .iter()
                    .any(|s| s.chars().count() >= 2 && folded[*i].starts_with(s))
        });
        let (only, _) = hits.next()?;
        if hits.next().is_some() {
            return None;
        }
        QuoteMatch::similar(vec![Occurrence::of_entry(only)])
    }

    /// Finds the line near a number that shares the most words with the quote.
    pub(super) fn find_akin(
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
            .filter(|(_, share, _)| *share >= AKIN)
            .max_by(|a, b| a.1.total_cmp(&b.1).then(b.2.cmp(&a.2)))
            .map(|(i, ..)| i)
    }

    /// Returns true if a line shares half of its words with the quote.
    pub(super) fn is_akin_to(&self, line: &str) -> bool {
        shared(&words(self.first_line()), line) >= NUMBERED
    }

    /// Returns the line numbers of the quote in a whole text. Returns `None` unless it occurs
    /// exactly once.
    pub(super) fn find_in_text(&self, text: &str) -> Option<Vec<u32>> {
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
    pub(super) fn find_line<'t>(
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
            .filter_map(|r| TellingPart::of(r))
            .find_map(|part| {
                let hits = lines
                    .iter()
                    .zip(&texts)
                    .filter(|(_, text)| part.is_in(text));
                nearest(hits.map(|(line, _)| *line).collect(), number, within)
            })
    }
}

/// Returns the lines that equal a reading of a quote, in one file or in all.
fn equal_entries(reading: &str, lines: &ChunkLines<'_>, file: Option<usize>) -> Vec<usize> {
    let all = lines.equal_to(&fold(reading)).iter().copied();
    all.filter(|i| file.is_none_or(|f| lines.entries[*i].file == f))
        .collect()
}

/// Returns the lines that contain a reading of a quote as an identifying part, in one file or in
/// all.
fn entries_with_part(reading: &str, lines: &ChunkLines<'_>, file: Option<usize>) -> Vec<usize> {
    let Some(part) = TellingPart::of(reading) else {
        return Vec::new();
    };
    let all = lines.entries.iter().zip(lines.folded()).enumerate();
    let in_file = all.filter(|(_, (e, _))| file.is_none_or(|f| e.file == f));
    in_file
        .filter(|(_, (_, text))| part.is_in(text))
        .map(|(i, _)| i)
        .collect()
}

/// Returns the lines that match a condition, of lines with their folded texts.
fn matching(entries: &[(usize, &str)], fits: impl Fn(&str) -> bool) -> Option<QuoteMatch> {
    let hits = entries.iter().filter(|(_, text)| fits(text));
    QuoteMatch::similar(hits.map(|(i, _)| Occurrence::of_entry(*i)).collect())
}

/// Returns the lines that match a part of a line of a quote: they start with it, contain it or its
/// pieces, or are a large part of it because the line was truncated or the quote continues after
/// it.
///
/// Only a part of at least `shortest` characters is searched for in longer lines.
fn matching_part(entries: &[(usize, &str)], bare: &str, shortest: usize) -> Option<QuoteMatch> {
    let (part, pieces) = (fold(bare), pieces(bare));
    let count = part.chars().count();
    let is_long = count >= shortest;
    if is_long && let Some(found) = matching(entries, |text| text.starts_with(&part)) {
        return Some(found);
    }
    if is_long && let Some(found) = matching(entries, |text| text.contains(&part)) {
        return Some(found);
    }
    if is_long
        && pieces.len() >= 2
        && let Some(found) = matching(entries, |text| in_order(text, &pieces))
    {
        return Some(found);
    }
    matching(entries, |text| {
        let length = text.chars().count();
        length >= LONG && length * 10 >= count * 6 && part.contains(text)
    })
}

/// A line of a text that matches a quote.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedLine<'t> {
    pub(super) number: u32,
    pub(super) text: &'t str,
    /// True if no other line matches, or this line has the claimed number.
    pub(super) is_certain: bool,
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

impl QuoteMatch {
    /// Collects the entries that match the readings of a quote.
    fn of_readings(hits: impl Iterator<Item = Vec<usize>>, fit: QuoteFit) -> Option<Self> {
        let mut hits = hits.skip_while(Vec::is_empty);
        let all = hits.next()?;
        let mut seen: HashSet<usize> = all.iter().copied().collect();
        let further = hits.flatten().filter(|i| seen.insert(*i));
        let further = further.map(Occurrence::of_entry).collect();
        Some(Self {
            all: all.into_iter().map(Occurrence::of_entry).collect(),
            further,
            fit,
        })
    }

    /// Returns the lines that match any reading.
    pub(super) fn of_any_reading(&self) -> impl Iterator<Item = &Occurrence> {
        self.all.iter().chain(&self.further)
    }

    /// Returns the same lines, marked as not certain.
    pub(super) fn doubted(&self) -> Self {
        Self {
            fit: QuoteFit::Similar,
            ..self.clone()
        }
    }

    /// Returns similar lines as the result of a search. Returns `None` if there are none.
    fn similar(all: Vec<Occurrence>) -> Option<Self> {
        (!all.is_empty()).then_some(Self {
            all,
            further: Vec::new(),
            fit: QuoteFit::Similar,
        })
    }
}

/// A folded part of a line that identifies the line.
#[derive(Debug)]
struct TellingPart {
    whole: String,
    /// Pieces between ellipses, in order; empty if nothing is omitted in the middle.
    pieces: Vec<String>,
}

impl TellingPart {
    /// Parses a reading of a quote. Returns `None` if it is too short to identify a line.
    fn of(reading: &str) -> Option<Self> {
        let bare = without_ellipsis(reading);
        if !is_telling_part(bare) {
            return None;
        }
        let pieces = pieces(bare);
        let is_telling = pieces.len() > 1 && split(bare).any(is_telling_part);
        Some(Self {
            whole: fold(bare),
            pieces: if is_telling { pieces } else { Vec::new() },
        })
    }

    fn is_in(&self, text: &str) -> bool {
        text.contains(&self.whole) || !self.pieces.is_empty() && in_order(text, &self.pieces)
    }
}

/// Returns true if a part of a line is longer than [`PIECE`] and has two tokens, including a word.
/// Brackets and dashed rules are in many lines.
fn is_telling_part(text: &str) -> bool {
    let spaced = text
        .split_whitespace()
        .map(|word| word.chars().count() + 1)
        .sum::<usize>();
    spaced > PIECE && text.chars().any(is_of_word) && tokens(text) >= 2
}

/// Counts the tokens of a text: words, and runs of one punctuation character.
fn tokens(text: &str) -> usize {
    let mut previous = None;
    let mut count = 0;
    for c in text.chars() {
        let kind = if is_of_word(c) { 'a' } else { c };
        count += usize::from(!c.is_whitespace() && previous != Some(kind));
        previous = Some(kind);
    }
    count
}

/// Returns the folded readings of the lines of a quote.
fn folded(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    lines
        .iter()
        .map(|readings| readings.iter().map(|r| fold(r)).collect())
        .collect()
}

/// Returns the pieces between ellipses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split("...").flat_map(|p| p.split('…'))
}

fn pieces(text: &str) -> Vec<String> {
    split(text).map(fold).collect()
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

/// Finds consecutive lines that match the lines of a quote, ignoring blank lines: on the new side,
/// in the diff, or on the old side. With `file`, searches only that file.
fn sequences(
    quote: &[Vec<String>],
    lines: &ChunkLines<'_>,
    file: Option<usize>,
) -> Vec<Occurrence> {
    let sides: [fn(LineKind) -> bool; 3] = [
        |k| k != LineKind::Removed,
        |_| true,
        |k| k != LineKind::Added,
    ];
    let folded = lines.folded();
    for side in sides {
        let view: Vec<usize> = (0..lines.entries.len())
            .filter(|i| file.is_none_or(|f| lines.entries[*i].file == f))
            .filter(|i| side(lines.entries[*i].shown.kind) && !lines.entries[*i].text.is_empty())
            .collect();
        let found: Vec<Occurrence> = view
            .windows(quote.len())
            .filter(|window| {
                let (first, last) = (
                    lines.entries[window[0]],
                    lines.entries[window[window.len() - 1]],
                );
                (first.file, first.hunk) == (last.file, last.hunk)
                    && quote
                        .iter()
                        .zip(*window)
                        .all(|(readings, i)| readings.contains(&folded[*i]))
            })
            .map(|window| Occurrence {
                first: window[0],
                last: window[window.len() - 1],
            })
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// Removes a code fence.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|t| t.strip_suffix("```"));
    match inner.and_then(|t| t.split_once('\n')) {
        Some((_, body)) => body,
        None => text,
    }
}

/// Returns the possible readings of a quoted line: unchanged, without a diff marker, without line
/// numbers, or without backticks.
fn readings(line: &str) -> Vec<String> {
    let mut forms = vec![line.trim()];
    if let Some(inner) = line
        .trim()
        .strip_prefix('`')
        .and_then(|l| l.strip_suffix('`'))
    {
        // The line itself may contain backticks.
        forms.push(inner.trim());
        forms.push(inner.trim_matches('`'));
    }
    let mut out: Vec<String> = Vec::new();
    for form in forms {
        let (unmarked, unnumbered) = (without_marker(form), without_columns(form));
        let both = [
            unnumbered.and_then(without_marker),
            unmarked.and_then(without_columns),
        ];
        for text in [Some(form), unmarked, unnumbered]
            .into_iter()
            .chain(both)
            .flatten()
            .map(str::trim)
        {
            if !text.is_empty() && !out.iter().any(|o| o == text) {
                out.push(text.to_owned());
            }
        }
    }
    out
}

/// Removes a diff marker. Returns `None` if the line has none.
fn without_marker(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix(['+', '-'])
}

/// Removes one or two columns of line numbers, and the bar after them.
fn without_columns(line: &str) -> Option<&str> {
    fn number(s: &str) -> Option<&str> {
        let s = s.trim_start();
        let s = s.strip_prefix('L').unwrap_or(s);
        let digits = s.bytes().take_while(u8::is_ascii_digit).count();
        (1..=7).contains(&digits).then(|| &s[digits..])
    }
    let rest = number(line)?;
    let rest = match number(rest) {
        Some(second)
            if rest.starts_with([' ', '\t']) && second.starts_with([' ', '\t', '|', ':', '│']) =>
        {
            second
        }
        _ => rest,
    };
    let trimmed = rest.trim_start();
    let bar = trimmed.strip_prefix(['|', ':', '│', '>', '+', '-']);
    (bar.is_some() || trimmed.len() < rest.len()).then(|| bar.unwrap_or(trimmed))
}

fn without_ellipsis(text: &str) -> &str {
    text.trim()
        .trim_start_matches(['…', ' '])
        .trim_start_matches("...")
        .trim_end_matches(['…', ' '])
        .trim_end_matches("...")
        .trim()
}

fn letters(text: &str) -> String {
    text.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

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

/// Returns true if a text contains the pieces in order, and they are long enough to identify it.
fn in_order(text: &str, pieces: &[String]) -> bool {
    let mut rest = text;
    for piece in pieces {
        match rest.find(piece.as_str()) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    pieces.iter().map(|p| p.chars().count()).sum::<usize>() >= LONG
}

#[cfg(test)]
mod tests {
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
