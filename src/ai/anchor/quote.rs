//! Parses quotes of models and finds them among the lines, first exactly and then with weaker comparisons.

use super::lines::{Lines, bare, fold, is_of_word};
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
/// Characters of a quote that is searched for in another file, or compared by its letters alone, at least.
const LONG: usize = 12;

/// Share of words that a paraphrase and its line must have in common, and the same for the line with the claimed
/// number.
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

/// A parsed quote.
#[derive(Debug)]
pub(super) struct Quote {
    /// Possible readings of each line that is not blank: unchanged first, and then without diff markers and line
    /// numbers.
    lines: Vec<Vec<String>>,
    /// True if the quote omits lines at the end or in the middle.
    elided: bool,
}

/// How well a quote matches a line. Ordered from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// Some words are equal, or the quote omits something.
    Similar,
    /// Equal except for white space, typographic characters, diff markers and line numbers.
    Equal,
}

/// The lines that match a quote.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// Lines that match the first reading with a match. At least one.
    pub(super) all: Vec<Occurrence>,
    /// Lines that match only another reading: an apparent diff marker can be part of the line.
    pub(super) further: Vec<Occurrence>,
    pub(super) fit: Fit,
}

impl Quote {
    /// Parses a quote. Returns `None` if it is blank.
    pub(super) fn new(text: &str) -> Option<Self> {
        let text = unfenced(text);
        let mut elided = false;
        let mut lines = Vec::new();
        for line in text.lines().map(bare).filter(|l| !l.is_empty()) {
            if line.chars().all(|c| matches!(c, '.' | '…' | '/' | '#' | '*' | ' ')) && line.contains(['…', '.']) {
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

    /// Returns true if the quote is not only punctuation that every file contains, such as `}` or `);`.
    pub(super) fn says_something(&self) -> bool {
        self.letters() >= SAYING
    }

    fn letters(&self) -> usize {
        let letters = |l: &[String]| l.last().map_or(0, |s| s.chars().filter(|c| c.is_alphanumeric()).count());
        self.lines.iter().map(|l| letters(l)).sum()
    }

    /// Returns the first line of the quote without diff markers and line numbers.
    pub(super) fn first_line(&self) -> &str {
        self.lines.first().and_then(|l| l.last()).map_or("", String::as_str)
    }

    /// Returns the line of a quote of one line.
    pub(super) fn only_line(&self) -> Option<&str> {
        match &self.lines[..] {
            [_] => Some(self.first_line()),
            _ => None,
        }
    }

    /// Finds equal lines, in one file or in all.
    pub(super) fn find_equal(&self, lines: &Lines<'_>, file: Option<usize>) -> Option<Found> {
        let fit = if self.elided { Fit::Similar } else { Fit::Equal };
        let is_in_file = |i: &usize| file.is_none_or(|f| lines.entries[*i].file == f);
        match &self.lines[..] {
            [one] => {
                let hits =
                    |reading: &String| lines.equal_to(&fold(reading)).iter().copied().filter(is_in_file).collect();
                Found::of_readings(one.iter().map(hits), fit)
            }
            several => {
                let all = sequences(&folded(several), lines, file);
                (!all.is_empty()).then_some(Found { all, further: Vec::new(), fit })
            }
        }
    }

    /// Finds lines that contain the quote as an identifying part; see [`is_telling_part`].
    pub(super) fn find_part(&self, lines: &Lines<'_>, file: Option<usize>) -> Option<Found> {
        let [readings] = &self.lines[..] else { return None };
        let hits = |reading: &String| match Part::of(reading) {
            None => Vec::new(),
            Some(part) => {
                let all = lines.entries.iter().zip(lines.folded()).enumerate();
                let in_file = all.filter(|(_, (e, _))| file.is_none_or(|f| e.file == f));
                in_file.filter(|(_, (_, text))| part.is_in(text)).map(|(i, _)| i).collect()
            }
        };
        Found::of_readings(readings.iter().map(hits), Fit::Similar)
    }

    /// Returns true if the quote, or its first line, equals a line of a text or is an identifying part of it.
    pub(super) fn fits(&self, line: &str) -> bool {
        let line = fold(line);
        let fits = |r: &String| fold(r) == line || Part::of(r).is_some_and(|part| part.is_in(&line));
        self.lines.first().is_some_and(|readings| readings.iter().any(fits))
    }

    /// Returns how well the quote matches the folded lines of a whole text without blank lines. They contain all lines
    /// of the quote, or one of them contains its only line as an identifying part.
    pub(super) fn fit_in_whole(&self, whole: &[String]) -> Option<Fit> {
        let quote = folded(&self.lines);
        let is_it = |window: &&[String]| quote.iter().zip(*window).all(|(readings, line)| readings.contains(line));
        if whole.windows(quote.len()).any(|window| is_it(&window)) {
            return Some(Fit::Equal);
        }
        let [readings] = &self.lines[..] else { return None };
        let parts: Vec<Part> = readings.iter().filter_map(|r| Part::of(r)).collect();
        whole.iter().any(|line| parts.iter().any(|part| part.is_in(line))).then_some(Fit::Similar)
    }

    /// Finds similar lines: those that contain a part of the quote, or have the same letters. Without `file`, all files
    /// are searched, but only if the quote is long enough.
    pub(super) fn find_similar(&self, lines: &Lines<'_>, file: Option<usize>) -> Option<Found> {
        let found = |all: Vec<Occurrence>| (!all.is_empty()).then(|| Found::similar(all));
        if let several @ [_, _, ..] = &self.lines[..] {
            let all = sequences(&folded(several), lines, file);
            return found(all).or_else(|| self.find_best_line(lines, file));
        }
        let shortest = if file.is_some() { PART } else { LONG };
        let all = lines.entries.iter().zip(lines.folded()).enumerate();
        let entries: Vec<(usize, &str)> = all
            .filter(|(_, (e, _))| file.is_none_or(|f| e.file == f) && !e.text.is_empty())
            .map(|(i, (_, folded))| (i, folded.as_str()))
            .collect();
        let matching = |fits: &dyn Fn(&str) -> bool| {
            let hits = entries.iter().filter(|(_, text)| fits(text));
            found(hits.map(|(i, _)| Occurrence { first: *i, last: *i }).collect())
        };
        for reading in self.lines.first()? {
            let bare = without_ellipsis(reading);
            let (part, is_part) = (fold(bare), bare.len() < reading.len());
            if part.is_empty() || (file.is_none() && part.chars().count() < LONG) {
                continue;
            }
            let equal = if is_part { matching(&|text| text == part) } else { None };
            let count = part.chars().count();
            let long = count >= shortest;
            let starts = || if long { matching(&|text| text.starts_with(&part)) } else { None };
            let contains = || if long { matching(&|text| text.contains(&part)) } else { None };
            let pieces = pieces(bare);
            let in_pieces = || match pieces.len() {
                2.. if long => matching(&|text| in_order(text, &pieces)),
                _ => None,
            };
            // The line was truncated, or the quote continues after it.
            let goes_on = || {
                matching(&|text| {
                    let length = text.chars().count();
                    length >= LONG && length * 10 >= count * 6 && part.contains(text)
                })
            };
            let hit = equal.or_else(starts).or_else(contains).or_else(in_pieces).or_else(goes_on);
            if hit.is_some() {
                return hit;
            }
        }
        let own = letters(self.first_line());
        if own.chars().count() < LONG {
            return None;
        }
        matching(&|text| letters(text) == own).or_else(|| matching(&|text| letters(text).contains(&own)))
    }

    /// Finds the longest line of a quote whose lines are not adjacent in the change.
    fn find_best_line(&self, lines: &Lines<'_>, file: Option<usize>) -> Option<Found> {
        let mut own: Vec<&Vec<String>> = self.lines.iter().collect();
        own.sort_by_key(|readings| std::cmp::Reverse(readings.last().map_or(0, |r| letters(r).len())));
        let in_file = |i: &&usize| file.is_none_or(|f| lines.entries[**i].file == f);
        for readings in own {
            let hits: Vec<usize> = readings
                .iter()
                .map(|r| lines.equal_to(&fold(r)).iter().filter(in_file).copied().collect::<Vec<_>>())
                .find(|hits| !hits.is_empty())
                .unwrap_or_default();
            let telling = readings.last().is_some_and(|r| letters(r).chars().count() >= PART);
            if !hits.is_empty() && telling {
                let all = hits.into_iter().map(|i| Occurrence { first: i, last: i }).collect();
                return Some(Found::similar(all));
            }
        }
        None
    }

    /// Finds the only line near a number that starts like the quote, however short the quote is.
    pub(super) fn find_start(&self, lines: &Lines<'_>, file: usize, near: u32, within: u32) -> Option<Found> {
        let starts: Vec<String> = self.lines.first()?.iter().map(|r| fold(without_ellipsis(r))).collect();
        let folded = lines.folded();
        let mut hits = lines.of_file(file).filter(|(i, e)| {
            let is_near = e.number().is_some_and(|n| n.abs_diff(near) <= within);
            is_near && starts.iter().any(|s| s.chars().count() >= 2 && folded[*i].starts_with(s))
        });
        let (only, _) = hits.next()?;
        hits.next().is_none().then(|| Found::similar(vec![Occurrence { first: only, last: only }]))
    }

    /// Finds the line near a number that shares the most words with the quote.
    pub(super) fn find_akin(&self, lines: &Lines<'_>, file: usize, near: u32, within: u32) -> Option<usize> {
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

    /// Returns the line numbers of the quote in a whole text. Returns `None` unless it occurs exactly once.
    pub(super) fn find_in_text(&self, text: &str) -> Option<Vec<u32>> {
        let filled: Vec<(u32, &str)> = (1..).zip(text.lines().map(str::trim)).filter(|(_, l)| !l.is_empty()).collect();
        let is_it = |window: &&[(u32, &str)]| {
            self.lines.iter().zip(*window).all(|(readings, (_, line))| readings.iter().any(|r| r == line))
        };
        let mut found = filled.windows(self.lines.len()).filter(is_it);
        let first = found.next()?;
        found.next().is_none().then(|| first.iter().map(|(n, _)| *n).collect())
    }

    /// Finds the line of a text that equals the first line of the quote, or else one that contains it.
    ///
    /// If several match, takes the one nearest to `number`, at most `within` lines away. `lines` holds texts with their
    /// numbers.
    pub(super) fn find_line<'t>(
        &self,
        lines: &[(u32, &'t str)],
        number: Option<u32>,
        within: u32,
    ) -> Option<Numbered<'t>> {
        let readings = self.lines.first()?;
        let texts: Vec<String> = lines.iter().map(|(_, text)| fold(text)).collect();
        let choose = |fits: &dyn Fn(&str) -> bool| {
            let hits = lines.iter().zip(&texts).filter(|(_, text)| fits(text)).map(|(line, _)| *line);
            nearest(hits.collect(), number, within)
        };
        let equal = |r: &String| {
            let equal = fold(r);
            choose(&|text| text == equal)
        };
        let part = |r: &String| {
            let part = Part::of(r)?;
            choose(&|text| part.is_in(text))
        };
        readings.iter().find_map(equal).or_else(|| readings.iter().find_map(part))
    }
}

/// A line of a text that matches a quote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbered<'t> {
    pub(super) number: u32,
    pub(super) text: &'t str,
    /// True if no other line matches, or this line has the claimed number.
    pub(super) is_certain: bool,
}

/// Chooses the only line, or the one nearest to a number, at most `within` lines away.
fn nearest<'t>(mut hits: Vec<(u32, &'t str)>, number: Option<u32>, within: u32) -> Option<Numbered<'t>> {
    let away = |line: &(u32, &str)| number.map_or(0, |n| line.0.abs_diff(n));
    hits.sort_by_key(away);
    let is_certain = match hits[..] {
        [_] => true,
        [nearest, second, ..] if away(&nearest) < away(&second) && away(&nearest) <= within => away(&nearest) == 0,
        _ => return None,
    };
    hits.first().map(|(number, text)| Numbered { number: *number, text, is_certain })
}

impl Found {
    /// Collects the entries that match the readings of a quote.
    fn of_readings(hits: impl Iterator<Item = Vec<usize>>, fit: Fit) -> Option<Self> {
        let mut hits = hits.skip_while(Vec::is_empty);
        let all = hits.next()?;
        let mut seen: HashSet<usize> = all.iter().copied().collect();
        let further = hits.flatten().filter(|i| seen.insert(*i)).collect();
        let occurrences = |all: Vec<usize>| all.into_iter().map(|i| Occurrence { first: i, last: i }).collect();
        Some(Self { all: occurrences(all), further: occurrences(further), fit })
    }

    /// Returns the same lines, marked as not certain.
    pub(super) fn doubted(&self) -> Self {
        Self { fit: Fit::Similar, ..self.clone() }
    }

    fn similar(all: Vec<Occurrence>) -> Self {
        Self { all, further: Vec::new(), fit: Fit::Similar }
    }
}

/// A folded part of a line that identifies the line.
#[derive(Debug)]
struct Part {
    whole: String,
    /// Pieces between ellipses, in order; empty if nothing is omitted in the middle.
    pieces: Vec<String>,
}

impl Part {
    /// Parses a reading of a quote. Returns `None` if it is too short to identify a line.
    fn of(reading: &str) -> Option<Self> {
        let bare = without_ellipsis(reading);
        if !is_telling_part(bare) {
            return None;
        }
        let pieces = pieces(bare);
        let is_telling = pieces.len() > 1 && split(bare).any(is_telling_part);
        Some(Self { whole: fold(bare), pieces: if is_telling { pieces } else { Vec::new() } })
    }

    fn is_in(&self, text: &str) -> bool {
        text.contains(&self.whole) || !self.pieces.is_empty() && in_order(text, &self.pieces)
    }
}

/// Returns true if a part of a line is longer than [`PIECE`] and has two tokens, including a word. Brackets and dashed
/// rules are in many lines.
fn is_telling_part(text: &str) -> bool {
    let spaced = text.split_whitespace().map(|word| word.chars().count() + 1).sum::<usize>();
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
    lines.iter().map(|readings| readings.iter().map(|r| fold(r)).collect()).collect()
}

/// Returns the pieces between ellipses.
fn split(text: &str) -> impl Iterator<Item = &str> {
    text.split("...").flat_map(|p| p.split('…'))
}

fn pieces(text: &str) -> Vec<String> {
    split(text).map(fold).collect()
}

/// Returns the share of words that a text has in common with `own`, or 0 for a text of one word. Both lists are sorted,
/// so that the cost for long lines does not grow with their product.
fn shared(own: &[String], text: &str) -> f64 {
    let theirs = words(text);
    let common = own.iter().filter(|w| theirs.binary_search(w).is_ok()).count();
    if theirs.len() < 2 { 0.0 } else { common as f64 * 2.0 / (own.len() + theirs.len()) as f64 }
}

/// Finds consecutive lines that match the lines of a quote, ignoring blank lines: on the new side, in the diff, or on
/// the old side. With `file`, searches only that file.
fn sequences(quote: &[Vec<String>], lines: &Lines<'_>, file: Option<usize>) -> Vec<Occurrence> {
    let sides: [fn(LineKind) -> bool; 3] = [|k| k != LineKind::Removed, |_| true, |k| k != LineKind::Added];
    let folded = lines.folded();
    for side in sides {
        let view: Vec<usize> = (0..lines.entries.len())
            .filter(|i| file.is_none_or(|f| lines.entries[*i].file == f))
            .filter(|i| side(lines.entries[*i].shown.kind) && !lines.entries[*i].text.is_empty())
            .collect();
        let found: Vec<Occurrence> = view
            .windows(quote.len())
            .filter(|window| {
                let (first, last) = (lines.entries[window[0]], lines.entries[window[window.len() - 1]]);
                (first.file, first.hunk) == (last.file, last.hunk)
                    && quote.iter().zip(*window).all(|(readings, i)| readings.contains(&folded[*i]))
            })
            .map(|window| Occurrence { first: window[0], last: window[window.len() - 1] })
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

/// Returns the possible readings of a quoted line: unchanged, without a diff marker, without line numbers, or without
/// backticks.
fn readings(line: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut add = |text: &str| {
        let text = text.trim();
        if !text.is_empty() && !out.iter().any(|o| o == text) {
            out.push(text.to_owned());
        }
    };
    let unmarked = |s: &str| s.trim_start().strip_prefix(['+', '-']).map(str::to_owned);
    let mut forms = vec![line.trim().to_owned()];
    if let Some(inner) = line.trim().strip_prefix('`').and_then(|l| l.strip_suffix('`')) {
        // The line itself may contain backticks.
        forms.push(inner.trim().to_owned());
        forms.push(inner.trim_matches('`').to_owned());
    }
    for form in &forms {
        add(form);
        let numbered = without_columns(form).map(str::to_owned);
        let mut further = vec![unmarked(form)];
        further.push(numbered.as_deref().map(str::to_owned));
        further.push(numbered.as_deref().and_then(unmarked));
        further.push(unmarked(form).as_deref().and_then(without_columns).map(str::to_owned));
        further.iter().flatten().for_each(|f| add(f));
    }
    out
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
        Some(second) if rest.starts_with([' ', '\t']) && second.starts_with([' ', '\t', '|', ':', '│']) => second,
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
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
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
