//! Where a claim belongs: the quote finds the line, the claimed number tells equal lines apart.

use super::Quoted;
use super::lines::Lines;
use super::quote::{Fit, Found, Occurrence, Quote};
use crate::diff::{LineKind, LineNo};

/// Lines by which a model may be wrong and still mean the line.
const NEAR: u32 = 30;
/// Lines by which a number may be wrong and still decide between equal lines that are more than [`NEAR`] apart.
const CLOSE: u32 = 5;
/// Lines by which a claim without a quote may miss a changed line.
const BESIDE: u32 = 3;
/// Lines around the claimed one among which a paraphrased quote is looked for.
const AKIN: u32 = 5;

/// Bytes of a file that is searched for code that was not shown.
const SEARCHED: usize = 2 << 20;

/// What a claim says of its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'q> {
    /// Position of the named file.
    pub(super) file: Option<usize>,
    pub(super) line: Option<u32>,
    /// How many more lines it speaks of.
    pub(super) further: u32,
    pub(super) quote: Option<&'q Quote>,
}

/// Where a claim belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At changed lines: positions of the first and the last entry.
    Changed { first: usize, last: usize, quoted: Quoted },
    /// At a removed line, shown at one of the new side where there is one.
    Removed { entry: usize, at: Option<usize>, quoted: Quoted },
    /// At one of several lines of a file that are all alike: positions of entries, at least two.
    OneOf(Vec<usize>),
    /// In code that the change does not touch.
    Unchanged { file: usize, line: Option<LineNo> },
    /// To the file as a whole.
    File(usize),
    /// To the change as a whole.
    Change,
    /// To nothing.
    Nowhere(&'static str),
}

/// Finds the place of a claim.
pub(super) fn find(lines: &Lines<'_>, said: Said<'_>) -> Place {
    match (said.quote, said.file) {
        (Some(quote), _) => by_quote(lines, said, quote),
        (None, Some(file)) => match said.line {
            Some(n) => by_number(lines, file, n, said.further),
            None => Place::File(file),
        },
        (None, None) => Place::Change,
    }
}

fn by_quote(lines: &Lines<'_>, said: Said<'_>, quote: &Quote) -> Place {
    let named = said.file;
    let in_named = |found: &Found| named.is_none_or(|f| found.all.iter().any(|o| lines.entries[o.first].file == f));
    let exact = quote.find_exactly(lines).or_else(|| quote.find_equal(lines));
    if let Some(found) = exact.as_ref().filter(|found| in_named(found)) {
        return chosen(lines, said, found);
    }
    if let Some(file) = named {
        let is_near = |o: &Occurrence| said.line.is_some_and(|n| distance(lines, *o, n) <= NEAR);
        let near = || exact.as_ref().filter(|found| found.all.len() == 1 && found.all.iter().all(is_near));
        if let Some((line, place)) = unseen(lines, said, file, quote) {
            // Not seen, and nowhere near the number, while what was seen of another file is.
            return match (said.line, near()) {
                (Some(n), Some(found)) if line.abs_diff(n) > NEAR => {
                    chosen(lines, Said { file: None, ..said }, &Found { fit: Fit::Similar, ..found.clone() })
                }
                _ => place,
            };
        }
        // In another file: the name is wrong, or the quote.
        if let Some(found) = exact.as_ref().filter(|_| quote.is_telling()) {
            return chosen(lines, Said { file: None, ..said }, found);
        }
        if let Some(found) = quote.find_similar(lines, Some(file)) {
            return chosen(lines, said, &found);
        }
        // Too short to say which line it is, if the number did not.
        if let Some(found) = near() {
            return chosen(lines, Said { file: None, ..said }, &Found { fit: Fit::Similar, ..found.clone() });
        }
        if let Some(found) = said.line.and_then(|n| quote.find_start(lines, file, n, NEAR)) {
            return chosen(lines, said, &found);
        }
    }
    if let Some(found) = quote.find_similar(lines, None) {
        return chosen(lines, Said { file: None, ..said }, &found);
    }
    if let (Some(file), Some(n)) = (named, said.line)
        && let Some(entry) = quote.find_akin(lines, file, n, AKIN)
    {
        let found = Found { all: vec![Occurrence { first: entry, last: entry }], fit: Fit::Similar };
        return chosen(lines, said, &found);
    }
    // File and line are part of the change: a person can judge the claim, though its quote has other words.
    if let (Some(file), Some(n)) = (named, said.line)
        && lines.numbered(file, n).is_some()
    {
        return by_number(lines, file, n, said.further);
    }
    Place::Nowhere("its quote is not in the text sent to the model")
}

/// Finds the quote in the file's new side where it was not shown, or not all of it; returns its first line, too.
fn unseen(lines: &Lines<'_>, said: Said<'_>, file: usize, quote: &Quote) -> Option<(u32, Place)> {
    let whole = lines.file(file).change.text()?.new.whole().filter(|whole| whole.len() <= SEARCHED)?;
    let numbers = quote.find_in_text(&String::from_utf8_lossy(whole))?;
    let first = *numbers.first()?;
    let shown: Vec<usize> = numbers.iter().filter_map(|n| lines.numbered(file, *n)).collect();
    let place = match (shown.first(), shown.last()) {
        (Some(first), Some(last)) => {
            let o = Occurrence { first: *first, last: *last };
            let quoted = if is_tied(lines, o, said) { Quoted::Exactly } else { Quoted::Loosely };
            at(lines, o, said, quoted)
        }
        _ => Place::Unchanged { file, line: LineNo::new(first) },
    };
    Some((first, place))
}

/// Decides which of the lines that fit is meant, and how sure that is.
fn chosen(lines: &Lines<'_>, said: Said<'_>, found: &Found) -> Place {
    if found.fit == Fit::Piece
        && let Some(place) = by_piece(lines, said, found)
    {
        return place;
    }
    let cap = |quoted: Quoted| if found.fit == Fit::Equal { quoted } else { Quoted::Loosely };
    let exactly = |o: Occurrence| match said.line {
        _ if !is_tied(lines, o, said) => Quoted::Loosely,
        _ if !may_be_part(lines, o, said.line) => cap(Quoted::Exactly),
        Some(n) if lines.entries[o.first].number() == Some(n) => cap(Quoted::AsNumbered),
        _ => Quoted::Loosely,
    };
    let is_new = |o: &&Occurrence| (o.first..=o.last).any(|i| lines.entries[i].number().is_some());
    // A line that was moved or indented anew stands on both sides: the new one is meant.
    let mut all: Vec<Occurrence> = found.all.iter().filter(is_new).copied().collect();
    if all.is_empty() {
        all.clone_from(&found.all);
    }
    if let [only] = all[..] {
        return at(lines, only, said, exactly(only));
    }
    let is_here = |o: &Occurrence| said.file.is_none_or(|f| lines.entries[o.first].file == f);
    let here: Vec<Occurrence> = all.iter().filter(|o| is_here(o)).copied().collect();
    let Some(n) = said.line else { return of_several(lines, said, &here) };
    let distance = |o: &Occurrence| distance(lines, *o, n);
    // Whatever the number was read off, and whichever file was meant, the line is among these.
    let meant = |o: &&Occurrence| distance(o) <= NEAR || lines.entries[o.first].is_seen_as(n);
    let mut candidates = all.iter().filter(meant);
    if let (Some(only), None) = (candidates.next(), candidates.next())
        && is_here(only)
    {
        // An equal line further away may be meant just as well, unless the number is almost that of this one.
        let is_close = distance(only) <= CLOSE;
        return at(lines, *only, said, if is_close { exactly(*only) } else { Quoted::Loosely });
    }
    if let Some(o) = here.iter().find(|o| lines.entries[o.first].number() == Some(n)) {
        return at(lines, *o, said, cap(Quoted::AsNumbered));
    }
    let mut near: Vec<Occurrence> = here.iter().filter(|o| distance(o) <= NEAR).copied().collect();
    near.sort_by_key(&distance);
    match near[..] {
        [o] => return at(lines, o, said, Quoted::Loosely),
        [a, b, ..] if distance(&a) < distance(&b) => return at(lines, a, said, Quoted::Loosely),
        _ => {}
    }
    let mut seen = here.iter().filter(|o| lines.entries[o.first].is_seen_as(n));
    if let (Some(o), None) = (seen.next(), seen.next()) {
        return at(lines, *o, said, Quoted::Loosely);
    }
    of_several(lines, said, &here)
}

/// Finds the changed line of the named file that a part of a line means: the one with the claimed number, or the only one
/// that has the part. `None`: there is no such line, or several.
fn by_piece(lines: &Lines<'_>, said: Said<'_>, found: &Found) -> Option<Place> {
    let is_here = |o: &&Occurrence| said.file.is_none_or(|f| lines.entries[o.first].file == f);
    let is_added = |o: &&Occurrence| lines.entries[o.first].shown.kind == LineKind::Added;
    let is_numbered = |o: &&Occurrence| said.line.is_some() && lines.entries[o.first].number() == said.line;
    let added: Vec<Occurrence> = found.all.iter().filter(is_here).filter(is_added).copied().collect();
    if let Some(o) = added.iter().find(is_numbered) {
        return Some(at(lines, *o, said, Quoted::AsNumbered));
    }
    match (&added[..], said.file) {
        ([only], Some(_)) => Some(at(lines, *only, said, Quoted::AsNumbered)),
        _ => None,
    }
}

/// Tells whether quote and number tie a claim to lines: a quote that every file has (`}`) does only near the number.
fn is_tied(lines: &Lines<'_>, o: Occurrence, said: Said<'_>) -> bool {
    said.quote.is_none_or(Quote::says_something) || said.line.is_some_and(|n| distance(lines, o, n) <= NEAR)
}

/// Tells whether a quote that equals one line may as well be a part of another that is meant: one near the number,
/// or any where there is none.
fn may_be_part(lines: &Lines<'_>, o: Occurrence, line: Option<u32>) -> bool {
    if o.first != o.last {
        return false;
    }
    let (own, folded) = (&lines.entries[o.first], lines.folded());
    let is_meant = |i: usize| {
        let at = Occurrence { first: i, last: i };
        line.is_none_or(|n| distance(lines, at, n) <= NEAR || lines.entries[i].is_seen_as(n))
    };
    let holds = |i: &usize| {
        let other = &lines.entries[*i];
        other.number().is_some() == own.number().is_some()
            && folded[*i].len() > folded[o.first].len()
            && folded[*i].contains(folded[o.first].as_str())
            && is_meant(*i)
    };
    (0..lines.entries.len()).any(|i| holds(&i))
}

/// Decides among lines that no number tells apart.
fn of_several(lines: &Lines<'_>, said: Said<'_>, here: &[Occurrence]) -> Place {
    let is_added = |o: &&Occurrence| (o.first..=o.last).any(|i| lines.entries[i].shown.kind == LineKind::Added);
    let mut added = here.iter().filter(is_added);
    match (here, added.next(), added.next()) {
        ([], ..) => Place::Nowhere("its quote occurs in several files, but not in the named one"),
        ([o], ..) | (_, Some(o), None) => at(lines, *o, said, Quoted::Loosely),
        ([first, ..], None, _) => Place::Unchanged { file: lines.entries[first.first].file, line: None },
        ([first, ..], Some(_), Some(_)) => {
            let file = lines.entries[first.first].file;
            if here.iter().any(|o| lines.entries[o.first].file != file) {
                return Place::Nowhere("its quote occurs in several files, and it names no file");
            }
            Place::OneOf(here.iter().filter(is_added).map(|o| o.first).collect())
        }
    }
}

/// Returns how far a number is from the lines: on the new side, or of removed lines on either.
fn distance(lines: &Lines<'_>, o: Occurrence, n: u32) -> u32 {
    let numbers = (o.first..=o.last).flat_map(|i| {
        let entry = &lines.entries[i];
        let stand_in = || lines.stand_in(i).and_then(|s| lines.entries[s].number());
        match entry.number() {
            Some(new) => [Some(new), None],
            None => [entry.old(), stand_in()],
        }
    });
    numbers.flatten().map(|m| m.abs_diff(n)).min().unwrap_or(u32::MAX)
}

/// Returns the place of a claim whose lines are known.
fn at(lines: &Lines<'_>, o: Occurrence, said: Said<'_>, quoted: Quoted) -> Place {
    let kind = |i: usize| lines.entries[i].shown.kind;
    let mut added = (o.first..=o.last).filter(|i| kind(*i) == LineKind::Added);
    if let Some(first) = added.next() {
        let last = added.next_back().unwrap_or(first);
        let last = reach(lines, first, said.further).max(last);
        return Place::Changed { first, last, quoted };
    }
    if kind(o.first) == LineKind::Removed {
        return Place::Removed { entry: o.first, at: lines.stand_in(o.first), quoted };
    }
    // The quote is what stands before the changed lines that the claim speaks of.
    let last = reach(lines, o.first, said.further);
    if let Some(first) = (o.first..=last).find(|i| kind(*i) == LineKind::Added) {
        return Place::Changed { first, last, quoted: Quoted::Loosely };
    }
    Place::Unchanged { file: lines.entries[o.first].file, line: lines.entries[o.first].shown.new }
}

/// Returns the last line of the same hunk's new side that is at most so many lines further down.
fn reach(lines: &Lines<'_>, first: usize, further: u32) -> usize {
    let start = lines.entries[first];
    let Some(from) = start.number() else { return first };
    let same = |i: &usize| lines.entries[*i].file == start.file && lines.entries[*i].hunk == start.hunk;
    let within = |i: &usize| lines.entries[*i].number().is_some_and(|n| n - from.min(n) <= further);
    (first..lines.entries.len()).take_while(same).filter(within).last().unwrap_or(first)
}

/// Finds the place of a claim that quotes nothing.
fn by_number(lines: &Lines<'_>, file: usize, n: u32, further: u32) -> Place {
    let quoted = Quoted::Loosely;
    let entry = lines.numbered(file, n);
    let is_added = |i: usize| lines.entries[i].shown.kind == LineKind::Added;
    if let Some(first) = entry.filter(|i| is_added(*i)) {
        return Place::Changed { first, last: reach(lines, first, further), quoted };
    }
    // Unchanged, but what is meant may be in the lines that it goes on to, or right beside.
    if let Some(entry) = entry {
        let last = reach(lines, entry, further);
        if let Some(first) = (entry..=last).find(|i| is_added(*i)) {
            return Place::Changed { first, last, quoted };
        }
    }
    let off = |i: usize| lines.entries[i].number().map_or(u32::MAX, |m| m.abs_diff(n));
    let mut beside: Vec<usize> =
        lines.of_file(file).map(|(i, _)| i).filter(|i| is_added(*i) && off(*i) <= BESIDE).collect();
    beside.sort_by_key(|i| off(*i));
    if let Some(first) = beside.first() {
        return Place::Changed { first: *first, last: *first, quoted };
    }
    let removed = |i: &usize| {
        let e = &lines.entries[*i];
        e.shown.kind == LineKind::Removed && e.old() == Some(n)
    };
    let known = lines.file(file).change.text().and_then(|t| t.new.line(LineNo::new(n)?)).is_some();
    if !known && let Some(entry) = lines.of_file(file).map(|(i, _)| i).find(removed) {
        return Place::Removed { entry, at: lines.stand_in(entry), quoted };
    }
    Place::Unchanged { file, line: LineNo::new(n).filter(|_| known) }
}
