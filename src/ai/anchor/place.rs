//! Finds the position of a claim: the quote determines the line, and the claimed number distinguishes equal lines.

use super::Quoted;
use super::lines::{Lines, SEARCHED};
use super::quote::{Fit, Found, Occurrence, Quote};
use crate::diff::{LineKind, LineNo};

/// Distance in lines at which a claimed number can still refer to a line.
const NEAR: u32 = 30;
/// Distance in lines between a claim without a quote and the changed line that it is moved to, at most.
const BESIDE: u32 = 3;
/// Distance in lines from the claimed one within which a paraphrased quote is searched for.
const AKIN: u32 = 5;

/// Reason why a claim has no position.
const UNKNOWN: &str = "its quote is not in the text sent to the model";

/// The position that a claim states.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said<'q> {
    /// Position of the named file.
    pub(super) file: Option<usize>,
    pub(super) line: Option<u32>,
    /// Number of additional lines that the claim covers.
    pub(super) further: u32,
    pub(super) quote: Option<&'q Quote>,
    /// True if the model read the line with a tool.
    pub(super) was_read: bool,
}

/// The position of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Changed lines: positions of the first and the last entry.
    Changed { first: usize, last: usize, quoted: Quoted },
    /// A removed line, with the entry on the new side that represents it, if any.
    Removed { entry: usize, at: Option<usize>, quoted: Quoted },
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

/// Returns the position, or if the quote has none, the added line with the claimed number, where a person can judge the
/// claim.
pub(super) fn or_numbered(lines: &Lines<'_>, said: Said<'_>, place: Place) -> Place {
    let numbered = said.file.zip(said.line).and_then(|(file, n)| Some((file, n, lines.numbered(file, n)?)));
    match (&place, numbered) {
        (Place::Nowhere(_) | Place::Unchanged { .. }, Some((file, n, entry)))
            if lines.entries[entry].shown.kind == LineKind::Added =>
        {
            by_number(lines, file, n, said.further)
        }
        _ => place,
    }
}

fn by_quote(lines: &Lines<'_>, said: Said<'_>, quote: &Quote) -> Place {
    let Some(file) = said.file else {
        let similar = || quote.find_part(lines, None).or_else(|| quote.find_similar(lines, None));
        return match quote.find_equal(lines, None).or_else(similar) {
            Some(found) => chosen(lines, said, &found),
            None => Place::Nowhere(UNKNOWN),
        };
    };
    if said.was_read
        && let Some(place) = unseen_numbered(lines, said, file, quote)
    {
        return place;
    }
    if let Some(found) = quote.find_equal(lines, Some(file)) {
        return in_named_file(lines, said, file, quote, &found);
    }
    let Some(part) = quote.find_part(lines, Some(file)) else {
        return by_quote_elsewhere(lines, said, file, quote, None);
    };
    // The named file may contain the quote only without an apparent diff marker, while another file contains it
    // unchanged.
    let is_as_given = quote.find_part(lines, None).is_none_or(|f| f.all.iter().any(|o| is_in(lines, o, file)));
    let part = if is_as_given { part } else { Found { all: Vec::new(), further: part.all, ..part } };
    if let Some(place) = numbered_part(lines, said, &part) {
        return place;
    }
    by_quote_elsewhere(lines, said, file, quote, Some(&part))
}

/// Finds the position of a quote that equals lines of the named file. Another file is preferred if the named file
/// contains the quote only as a removed line, or only without an apparent diff marker.
fn in_named_file(lines: &Lines<'_>, said: Said<'_>, file: usize, quote: &Quote, found: &Found) -> Place {
    let elsewhere = quote.find_equal(lines, None).filter(|_| quote.is_telling());
    let (own, mut others): (Vec<Occurrence>, Vec<Occurrence>) =
        elsewhere.map(|e| e.all).unwrap_or_default().into_iter().partition(|o| is_in(lines, o, file));
    others.retain(|o| is_of_new_side(lines, o));
    let is_removed = !found.all.iter().any(|o| is_of_new_side(lines, o));
    let longer = said.line.filter(|_| is_removed).and_then(|n| numbered_longer(lines, file, n, found));
    if let Some(entry) = longer {
        return at(lines, Occurrence { first: entry, last: entry }, said, Quoted::Loosely);
    }
    let is_numbered = found.all.iter().any(|o| has_number(lines, *o, said));
    match (others.is_empty(), is_removed) {
        (false, true) if !is_numbered => moved(lines, said, found, others),
        (false, false) if own.is_empty() && is_numbered => chosen(lines, said, &found.doubted()),
        (false, false) if own.is_empty() => elsewhere_or_here(lines, said, found, others),
        _ => chosen(lines, said, found),
    }
}

/// Returns the added line that has the claimed number and contains a removed line that equals the quote. Returns `None`
/// if this line already represents the removed line.
fn numbered_longer(lines: &Lines<'_>, file: usize, n: u32, removed: &Found) -> Option<usize> {
    let entry = lines.numbered(file, n).filter(|i| lines.entries[*i].shown.kind == LineKind::Added)?;
    let folded = lines.folded();
    let is_part = |o: &Occurrence| o.first == o.last && folded[entry].contains(folded[o.first].as_str());
    let is_shown_there = removed.all.iter().any(|o| lines.stand_in(o.first) == Some(entry));
    (!is_shown_there && removed.all.iter().any(is_part)).then_some(entry)
}

/// Finds the position of a claim whose quote equals removed lines of the named file and also lines on the new side of
/// other files (`others`). Only the number can distinguish them.
fn moved(lines: &Lines<'_>, said: Said<'_>, found: &Found, others: Vec<Occurrence>) -> Place {
    let mut numbered = others.iter().filter(|o| has_number(lines, **o, said));
    if let (Some(o), None) = (numbered.next(), numbered.next()) {
        let quoted = of_numbered(lines, *o, Said { file: None, ..said }, &others);
        return at(lines, *o, said, quoted.min(Quoted::AsNumbered));
    }
    let may_be_meant = |o: &Occurrence| {
        said.line.is_none_or(|n| distance(lines, *o, n) <= NEAR || lines.entries[o.first].is_seen_as(n))
    };
    if found.all.iter().any(may_be_meant) {
        return chosen(lines, said, &found.doubted());
    }
    elsewhere_or_here(lines, said, found, others)
}

/// Chooses one of the lines of other files, or a line of the named file if nothing distinguishes those. The result is
/// never certain.
fn elsewhere_or_here(lines: &Lines<'_>, said: Said<'_>, found: &Found, others: Vec<Occurrence>) -> Place {
    let of_any_file = Said { file: None, ..said };
    match chosen(lines, of_any_file, &Found { all: others, ..found.doubted() }) {
        place @ Place::Changed { .. } => place,
        _ => chosen(lines, said, &found.doubted()),
    }
}

/// Finds the position of a quote that equals no line of the named file and is not part of the line with the claimed
/// number. `part` holds the lines of the file that contain the quote.
fn by_quote_elsewhere(lines: &Lines<'_>, said: Said<'_>, file: usize, quote: &Quote, part: Option<&Found>) -> Place {
    let of_any_file = Said { file: None, ..said };
    let equal = quote.find_equal(lines, None).map(|found| Found { all: newest(lines, &found.all), ..found });
    let is_near = |o: &Occurrence| said.line.is_some_and(|n| distance(lines, *o, n) <= NEAR);
    let near = || equal.as_ref().filter(|found| found.all.len() == 1 && found.all.iter().all(is_near));
    if let Some((line, place)) = unseen(lines, said, file, quote) {
        // The model did not receive this line, and it is not near the number. A line of another file that the model
        // received is.
        return match (said.line, near()) {
            (Some(n), Some(found)) if line.abs_diff(n) > NEAR => chosen(lines, of_any_file, &found.doubted()),
            _ => place,
        };
    }
    if let (None, Some(place)) = (part, unseen_numbered(lines, said, file, quote)) {
        return place;
    }
    // Another file contains the quote: either the file name or the quote is wrong.
    if let Some(found) = equal.as_ref().filter(|_| quote.is_telling()) {
        let is_sure = is_sure_elsewhere(lines, said, file, quote, part.is_some(), found);
        return chosen(lines, of_any_file, &if is_sure { found.clone() } else { found.doubted() });
    }
    if let Some(found) = part.filter(|found| !found.all.is_empty()) {
        let only = if equal.is_none() { only_part(lines, said, file, found) } else { None };
        return only.unwrap_or_else(|| chosen(lines, said, found));
    }
    let numbered = said.line.and_then(|n| lines.numbered(file, n));
    if let Some(entry) = numbered.filter(|i| quote.is_akin_to(lines.entries[*i].text)) {
        return at(lines, Occurrence { first: entry, last: entry }, said, Quoted::Loosely);
    }
    if let Some(place) = part_elsewhere(lines, said, file, quote, part.is_some()) {
        return place;
    }
    if let Some(found) = quote.find_similar(lines, Some(file)) {
        return chosen(lines, said, &found);
    }
    // The quote is too short to identify a line in another file without the number.
    if let Some(found) = near() {
        return chosen(lines, of_any_file, &found.doubted());
    }
    if let Some(found) = said.line.and_then(|n| quote.find_start(lines, file, n, NEAR)) {
        return chosen(lines, said, &found);
    }
    if let Some(found) = quote.find_similar(lines, None) {
        return chosen(lines, of_any_file, &found);
    }
    if let Some(entry) = said.line.and_then(|n| quote.find_akin(lines, file, n, AKIN)) {
        return at(lines, Occurrence { first: entry, last: entry }, said, Quoted::Loosely);
    }
    // The change contains the file and the line, so a person can judge the claim although its quote does not match.
    let shown = said.line.filter(|n| lines.numbered(file, *n).is_some());
    match shown.map(|n| by_number(lines, file, n, said.further)) {
        Some(place @ (Place::Changed { .. } | Place::Removed { .. })) => place,
        other => {
            let only = equal.filter(|_| quote.says_something()).and_then(|found| only_added(lines, found.all));
            let only = only.map(|o| at(lines, o, of_any_file, Quoted::Loosely));
            only.or(other).unwrap_or(Place::Nowhere(UNKNOWN))
        }
    }
}

/// Returns true if a quote that equals lines of other files cannot refer to a line of the named file, and the quote or
/// the number identifies one of those lines.
fn is_sure_elsewhere(
    lines: &Lines<'_>,
    said: Said<'_>,
    file: usize,
    quote: &Quote,
    is_part: bool,
    found: &Found,
) -> bool {
    // The named file may contain the quote in lines that the model did not receive.
    let in_whole = quote.fit_in_whole(lines.whole(file));
    let is_numbered = || found.all.iter().any(|o| has_number(lines, *o, said));
    // If the file name is wrong, a line of any file that contains the quote can be meant.
    let of_any_line = Said { file: None, line: None, ..said };
    let is_only = || found.all.iter().all(|o| !may_be_part(lines, *o, of_any_line));
    in_whole != Some(Fit::Equal) && (is_numbered() || !is_part && in_whole.is_none() && is_only())
}

/// Returns the line of another file that contains the quote: the only one with the claimed number, or the only added
/// one. `is_part` is true if lines of the named file also contain the quote.
fn part_elsewhere(lines: &Lines<'_>, said: Said<'_>, file: usize, quote: &Quote, is_part: bool) -> Option<Place> {
    let of_any_file = Said { file: None, ..said };
    let found = quote.find_part(lines, None)?;
    let all = newest(lines, &[found.all, found.further].concat());
    let mut numbered = all.iter().filter(|o| has_number(lines, **o, said));
    if let (Some(o), None) = (numbered.next(), numbered.next()) {
        let is_in_named = is_part || quote.fit_in_whole(lines.whole(file)).is_some();
        let quoted = if is_in_named { Quoted::Loosely } else { Quoted::AsNumbered };
        return Some(at(lines, *o, of_any_file, quoted));
    }
    only_added(lines, all).map(|o| at(lines, o, of_any_file, Quoted::Loosely))
}

/// Returns the only occurrence that contains an added line.
fn only_added(lines: &Lines<'_>, all: Vec<Occurrence>) -> Option<Occurrence> {
    let mut added = all.into_iter().filter(|o| is_added(lines, o));
    added.next().filter(|_| added.next().is_none())
}

/// Returns the line with the claimed number if it matches the quote and the model did not receive it. The claim is
/// about this line even if another line that the model received is equal.
fn unseen_numbered(lines: &Lines<'_>, said: Said<'_>, file: usize, quote: &Quote) -> Option<Place> {
    let line = said.line.filter(|n| lines.numbered(file, *n).is_none()).and_then(LineNo::new)?;
    let text = lines.file(file).change.text()?.new.line(line)?;
    let fits = quote.is_telling() && quote.fits(&String::from_utf8_lossy(text));
    fits.then_some(Place::Unchanged { file, line: Some(line) })
}

/// Finds a quote on the new side of a file if the model did not receive all of its lines. Also returns the first line
/// number.
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

/// Returns the occurrences on the new side, or all if there are none there. A moved or re-indented line is on both
/// sides, and the claim is about the new one.
fn newest(lines: &Lines<'_>, all: &[Occurrence]) -> Vec<Occurrence> {
    let new: Vec<Occurrence> = all.iter().filter(|o| is_of_new_side(lines, o)).copied().collect();
    if new.is_empty() { all.to_vec() } else { new }
}

fn is_in(lines: &Lines<'_>, o: &Occurrence, file: usize) -> bool {
    lines.entries[o.first].file == file
}

fn is_of_new_side(lines: &Lines<'_>, o: &Occurrence) -> bool {
    (o.first..=o.last).any(|i| lines.entries[i].number().is_some())
}

fn is_added(lines: &Lines<'_>, o: &Occurrence) -> bool {
    (o.first..=o.last).any(|i| lines.entries[i].shown.kind == LineKind::Added)
}

/// Chooses one of the matching lines, and determines how certain the match is.
fn chosen(lines: &Lines<'_>, said: Said<'_>, found: &Found) -> Place {
    let cap = |quoted: Quoted| if found.fit == Fit::Equal { quoted } else { Quoted::Loosely };
    let all = newest(lines, &found.all);
    let is_numbered = |o: &Occurrence| has_number(lines, *o, said);
    let (mut numbered, mut further) = (all.iter().filter(|o| is_numbered(o)), found.further.iter());
    match (numbered.next(), numbered.next(), further.find(|o| is_numbered(o))) {
        (Some(o), None, _) => at(lines, *o, said, cap(of_numbered(lines, *o, said, &all))),
        // The number matches another reading of the quote.
        (None, _, Some(o)) => at(lines, *o, said, Quoted::Loosely),
        _ => match all[..] {
            [only] if found.further.is_empty() => at(lines, only, said, cap(of_only(lines, only, said))),
            [only] => at(lines, only, said, Quoted::Loosely),
            _ => nearest(lines, said, &all),
        },
    }
}

/// Determines how certain the match is for the equal line that has the claimed number.
fn of_numbered(lines: &Lines<'_>, o: Occurrence, said: Said<'_>, equal: &[Occurrence]) -> Quoted {
    // Other lines that the claim may be about, in whichever view the model read the number.
    let is_meant = |other: &Occurrence| {
        let by_number = |n| distance(lines, *other, n) <= NEAR || lines.entries[other.first].is_seen_as(n);
        *other != o && said.line.is_none_or(by_number)
    };
    let is_certain = is_tied(lines, o, said) && !equal.iter().any(is_meant) && !may_be_part(lines, o, said);
    if is_certain { Quoted::Exactly } else { Quoted::AsNumbered }
}

/// Determines how certain the match is for the only equal line, if it does not have the claimed number.
fn of_only(lines: &Lines<'_>, o: Occurrence, said: Said<'_>) -> Quoted {
    if !is_tied(lines, o, said) || may_be_part(lines, o, said) {
        return Quoted::Loosely;
    }
    if o.first != o.last {
        return Quoted::Exactly;
    }
    let own = lines.entries[o.first].file;
    let equal = lines.equal_to(&lines.folded()[o.first]).iter().map(|i| &lines.entries[*i]);
    let numbers: Vec<Option<u32>> = equal.filter(|e| e.file != own).map(|e| e.number()).collect();
    match said.line {
        _ if numbers.is_empty() => Quoted::Exactly,
        // Either the file name or the number is wrong.
        Some(n) if numbers.contains(&Some(n)) => Quoted::Loosely,
        _ => Quoted::AsNumbered,
    }
}

/// Chooses the equal line nearest to the claimed number. Only an exact number would distinguish the lines, so the
/// result is never certain.
fn nearest(lines: &Lines<'_>, said: Said<'_>, all: &[Occurrence]) -> Place {
    let is_here = |o: &&Occurrence| said.file.is_none_or(|f| lines.entries[o.first].file == f);
    let mut here: Vec<Occurrence> = all.iter().filter(is_here).copied().collect();
    // Prefer added lines: an unchanged line would only produce a remark.
    if here.iter().any(|o| is_added(lines, o)) {
        here.retain(|o| is_added(lines, o));
    }
    let Some(n) = said.line else { return of_several(lines, said, &here) };
    let distance = |o: &Occurrence| distance(lines, *o, n);
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

/// Returns the line of the named file that has the claimed number and contains the quote.
fn numbered_part(lines: &Lines<'_>, said: Said<'_>, found: &Found) -> Option<Place> {
    let is_numbered = |o: &&Occurrence| said.line.is_some() && lines.entries[o.first].number() == said.line;
    if let Some(o) = found.all.iter().find(is_numbered) {
        return Some(at(lines, *o, said, Quoted::AsNumbered));
    }
    found.further.iter().find(is_numbered).map(|o| at(lines, *o, said, Quoted::Loosely))
}

/// Returns the only changed line of the named file that contains the quote. Returns `None` if there is not exactly one.
fn only_part(lines: &Lines<'_>, said: Said<'_>, file: usize, found: &Found) -> Option<Place> {
    let kind = |o: &&Occurrence| lines.entries[o.first].shown.kind;
    let all = || found.all.iter().chain(&found.further);
    let mut added = all().filter(|o| kind(o) == LineKind::Added);
    let (Some(only), None) = (added.next(), added.next()) else { return None };
    // An unchanged line that contains the quote can be meant if it is as near to the number.
    let away = |o: &Occurrence| said.line.map(|n| distance(lines, *o, n));
    let mut unchanged = all().filter(|o| kind(o) == LineKind::Context);
    let may_be_unchanged = said.line.is_some() && unchanged.any(|o| away(o) <= away(only));
    // Either the file name or the number is wrong.
    let is_numbered = |o: &Occurrence| !is_in(lines, o, file) && has_number(lines, *o, said);
    let elsewhere = said.quote.filter(|_| said.line.is_some()).and_then(|quote| quote.find_part(lines, None));
    let may_be_elsewhere = elsewhere.is_some_and(|found| found.all.iter().chain(&found.further).any(is_numbered));
    let is_certain = !may_be_unchanged && !may_be_elsewhere && said.quote.is_none_or(Quote::says_something);
    Some(at(lines, *only, said, if is_certain { Quoted::AsNumbered } else { Quoted::Loosely }))
}

/// Returns true if the quote and the number identify the lines. A quote that is in every file (`}`) does so only near
/// the number, and only if no other line of the file is equal.
fn is_tied(lines: &Lines<'_>, o: Occurrence, said: Said<'_>) -> bool {
    let Some(quote) = said.quote.filter(|q| !q.says_something()) else { return true };
    let file = lines.file(lines.entries[o.first].file);
    let whole = || file.change.text()?.new.whole().filter(|whole| whole.len() <= SEARCHED);
    let is_only = || whole().and_then(|whole| quote.find_in_text(&String::from_utf8_lossy(whole))).is_some();
    said.line.is_some_and(|n| distance(lines, o, n) <= NEAR) && is_only()
}

/// Returns true if a quote that equals one line can also be a part of another line that the claim is about: one near
/// the number, or any line of the file if there is no number.
fn may_be_part(lines: &Lines<'_>, o: Occurrence, said: Said<'_>) -> bool {
    if o.first != o.last {
        return false;
    }
    let (own, folded) = (&lines.entries[o.first], lines.folded());
    let is_meant = |i: usize| {
        let at = Occurrence { first: i, last: i };
        said.line.is_none_or(|n| distance(lines, at, n) <= NEAR || lines.entries[i].is_seen_as(n))
    };
    let holds = |i: &usize| {
        let other = &lines.entries[*i];
        said.file.is_none_or(|_| other.file == own.file)
            && other.number().is_some() == own.number().is_some()
            && folded[*i].len() > folded[o.first].len()
            && folded[*i].contains(folded[o.first].as_str())
            && is_meant(*i)
    };
    (0..lines.entries.len()).any(|i| holds(&i))
}

/// Chooses among lines that no number distinguishes.
fn of_several(lines: &Lines<'_>, said: Said<'_>, here: &[Occurrence]) -> Place {
    let is_added = |o: &&Occurrence| is_added(lines, o);
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

/// Returns true if the first line of the occurrence has the claimed number.
fn has_number(lines: &Lines<'_>, o: Occurrence, said: Said<'_>) -> bool {
    said.line.is_some_and(|n| distance(lines, Occurrence { first: o.first, last: o.first }, n) == 0)
}

/// Returns the distance of a number from the lines. Removed lines are compared by their old number and by the line that
/// represents them.
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

/// Returns the position of a claim whose lines are known.
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
    // The quote is the code before the changed lines that the claim is about.
    let last = reach(lines, o.first, said.further);
    if let Some(first) = (o.first..=last).find(|i| kind(*i) == LineKind::Added) {
        return Place::Changed { first, last, quoted: Quoted::Loosely };
    }
    Place::Unchanged { file: lines.entries[o.first].file, line: lines.entries[o.first].shown.new }
}

/// Returns the last line on the new side of the same hunk that is at most `further` lines below the first.
fn reach(lines: &Lines<'_>, first: usize, further: u32) -> usize {
    let start = lines.entries[first];
    let Some(from) = start.number() else { return first };
    let same = |i: &usize| lines.entries[*i].file == start.file && lines.entries[*i].hunk == start.hunk;
    let within = |i: &usize| lines.entries[*i].number().is_some_and(|n| n - from.min(n) <= further);
    (first..lines.entries.len()).take_while(same).filter(within).last().unwrap_or(first)
}

/// Finds the position of a claim without a quote.
fn by_number(lines: &Lines<'_>, file: usize, n: u32, further: u32) -> Place {
    let quoted = Quoted::Loosely;
    let entry = lines.numbered(file, n);
    let is_added = |i: usize| lines.entries[i].shown.kind == LineKind::Added;
    if let Some(first) = entry.filter(|i| is_added(*i)) {
        return Place::Changed { first, last: reach(lines, first, further), quoted };
    }
    // The line is unchanged, but the claim may be about the lines that follow it, or about an adjacent line.
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
