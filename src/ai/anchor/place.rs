//! Finds the position of a claim: the quote determines the line, and the claimed number
//! distinguishes equal lines.

use super::Quoted;
use super::lines::ChunkLines;
use super::quote::{Occurrence, Quote, QuoteFit, QuoteMatch};
use crate::diff::{LineKind, LineNo};

/// Distance in lines at which a claimed number can still refer to a line.
const NEAR: u32 = 30;
/// Distance in lines between a claim without a quote and the changed line that it is moved to, at
/// most.
const BESIDE: u32 = 3;
/// Distance in lines from the claimed one within which a paraphrased quote is searched for.
const AKIN: u32 = 5;

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

/// The position of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ClaimPosition {
    /// Changed lines: positions of the first and the last entry.
    Changed {
        first: usize,
        last: usize,
        quoted: Quoted,
    },
    /// A removed line, with the entry on the new side that represents it, if any.
    Removed {
        entry: usize,
        at: Option<usize>,
        quoted: Quoted,
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
pub(super) fn find(lines: &ChunkLines<'_>, said: StatedPosition<'_>) -> ClaimPosition {
    match (said.quote, said.file) {
        (Some(quote), _) => by_quote(lines, said, quote),
        (None, Some(file)) => match said.line {
            Some(n) => by_number(lines, file, n, said.further),
            None => ClaimPosition::File(file),
        },
        (None, None) => ClaimPosition::Change,
    }
}

/// Returns the position, or if the quote has none, the added line with the claimed number, where a
/// person can judge the claim.
pub(super) fn or_numbered(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    place: ClaimPosition,
) -> ClaimPosition {
    let numbered = said
        .file
        .zip(said.line)
        .and_then(|(file, n)| Some((file, n, lines.numbered(file, n)?)));
    match (&place, numbered) {
        (ClaimPosition::Nowhere(_) | ClaimPosition::Unchanged { .. }, Some((file, n, entry)))
            if lines.entries[entry].is_added() =>
        {
            by_number(lines, file, n, said.further)
        }
        _ => place,
    }
}

fn by_quote(lines: &ChunkLines<'_>, said: StatedPosition<'_>, quote: &Quote) -> ClaimPosition {
    let Some(file) = said.file else {
        let equal = quote
            .find_equal(lines, None)
            .or_else(|| quote.find_part(lines, None));
        return match equal.or_else(|| quote.find_similar(lines, None)) {
            Some(found) => chosen(lines, said, &found),
            None => ClaimPosition::Nowhere(UNKNOWN),
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
    // The named file may contain the quote only without an apparent diff marker, while another file
    // contains it unchanged.
    let is_as_given = quote
        .find_part(lines, None)
        .is_none_or(|f| f.all.iter().any(|o| is_in(lines, o, file)));
    let part = if is_as_given {
        part
    } else {
        QuoteMatch {
            all: Vec::new(),
            further: part.all,
            ..part
        }
    };
    if let Some(place) = numbered_part(lines, said, &part) {
        return place;
    }
    by_quote_elsewhere(lines, said, file, quote, Some(&part))
}

/// Finds the position of a quote that equals lines of the named file. Another file is preferred if
/// the named file contains the quote only as a removed line, or only without an apparent diff
/// marker.
fn in_named_file(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
    found: &QuoteMatch,
) -> ClaimPosition {
    let elsewhere = quote.find_equal(lines, None).filter(|_| quote.is_telling());
    let (own, mut others): (Vec<Occurrence>, Vec<Occurrence>) = elsewhere
        .map(|e| e.all)
        .unwrap_or_default()
        .into_iter()
        .partition(|o| is_in(lines, o, file));
    others.retain(|o| is_of_new_side(lines, o));
    let is_removed = !found.all.iter().any(|o| is_of_new_side(lines, o));
    let longer = said
        .line
        .filter(|_| is_removed)
        .and_then(|n| numbered_longer(lines, file, n, found));
    if let Some(entry) = longer {
        return at(lines, Occurrence::of_entry(entry), said, Quoted::Loosely);
    }
    let is_numbered = found.all.iter().any(|o| has_number(lines, *o, said));
    match (others.is_empty(), is_removed) {
        (false, true) if !is_numbered => moved(lines, said, found, others),
        (false, false) if own.is_empty() && is_numbered => chosen(lines, said, &found.doubted()),
        (false, false) if own.is_empty() => elsewhere_or_here(lines, said, found, others),
        _ => chosen(lines, said, found),
    }
}

/// Returns the added line that has the claimed number and contains a removed line that equals the
/// quote. Returns `None` if this line already represents the removed line.
fn numbered_longer(
    lines: &ChunkLines<'_>,
    file: usize,
    n: u32,
    removed: &QuoteMatch,
) -> Option<usize> {
    let entry = lines
        .numbered(file, n)
        .filter(|i| lines.entries[*i].is_added())?;
    let folded = lines.folded();
    if removed
        .all
        .iter()
        .any(|o| lines.stand_in(o.first) == Some(entry))
    {
        return None;
    }
    let mut of_one_line = removed.all.iter().filter(|o| o.first == o.last);
    of_one_line
        .any(|o| folded[entry].contains(folded[o.first].as_str()))
        .then_some(entry)
}

/// Finds the position of a claim whose quote equals removed lines of the named file and also lines
/// on the new side of other files (`others`). Only the number can distinguish them.
fn moved(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    found: &QuoteMatch,
    others: Vec<Occurrence>,
) -> ClaimPosition {
    let mut numbered = others.iter().filter(|o| has_number(lines, **o, said));
    if let (Some(o), None) = (numbered.next(), numbered.next()) {
        let quoted = of_numbered(lines, *o, StatedPosition { file: None, ..said }, &others);
        return at(lines, *o, said, quoted.min(Quoted::AsNumbered));
    }
    if found.all.iter().any(|o| may_be_meant(lines, *o, said)) {
        return chosen(lines, said, &found.doubted());
    }
    elsewhere_or_here(lines, said, found, others)
}

/// Returns true if the claim can be about the lines: the claimed number is near them or is a
/// position of the first one in another view, or there is no number.
fn may_be_meant(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> bool {
    said.line
        .is_none_or(|n| distance(lines, o, n) <= NEAR || lines.entries[o.first].is_seen_as(n))
}

/// Chooses one of the lines of other files, or a line of the named file if nothing distinguishes
/// those. The result is never certain.
fn elsewhere_or_here(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    found: &QuoteMatch,
    others: Vec<Occurrence>,
) -> ClaimPosition {
    let of_any_file = StatedPosition { file: None, ..said };
    match chosen(
        lines,
        of_any_file,
        &QuoteMatch {
            all: others,
            ..found.doubted()
        },
    ) {
        place @ ClaimPosition::Changed { .. } => place,
        _ => chosen(lines, said, &found.doubted()),
    }
}

/// Finds the position of a quote that equals no line of the named file and is not part of the line
/// with the claimed number. `part` holds the lines of the file that contain the quote.
fn by_quote_elsewhere(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
    part: Option<&QuoteMatch>,
) -> ClaimPosition {
    let of_any_file = StatedPosition { file: None, ..said };
    let equal = quote.find_equal(lines, None).map(|found| QuoteMatch {
        all: newest(lines, &found.all),
        ..found
    });
    if let Some((line, place)) = unseen(lines, said, file, quote) {
        // The model did not receive this line, and it is not near the number. A line of another
        // file that the model received is.
        return match (said.line, only_near(lines, said, equal.as_ref())) {
            (Some(n), Some(found)) if line.abs_diff(n) > NEAR => {
                chosen(lines, of_any_file, &found.doubted())
            }
            _ => place,
        };
    }
    if let (None, Some(place)) = (part, unseen_numbered(lines, said, file, quote)) {
        return place;
    }
    // Another file contains the quote: either the file name or the quote is wrong.
    if let Some(found) = equal.as_ref().filter(|_| quote.is_telling()) {
        let is_sure = is_sure_elsewhere(lines, said, file, quote, part.is_some(), found);
        return chosen(
            lines,
            of_any_file,
            &if is_sure {
                found.clone()
            } else {
                found.doubted()
            },
        );
    }
    if let Some(found) = part.filter(|found| !found.all.is_empty()) {
        let only = if equal.is_none() {
            only_part(lines, said, file, found)
        } else {
            None
        };
        return only.unwrap_or_else(|| chosen(lines, said, found));
    }
    let numbered = said.line.and_then(|n| lines.numbered(file, n));
    if let Some(entry) = numbered.filter(|i| quote.is_akin_to(lines.entries[*i].text)) {
        return at(lines, Occurrence::of_entry(entry), said, Quoted::Loosely);
    }
    if let Some(place) = part_elsewhere(lines, said, file, quote, part.is_some()) {
        return place;
    }
    if let Some(found) = quote.find_similar(lines, Some(file)) {
        return chosen(lines, said, &found);
    }
    // The quote is too short to identify a line in another file without the number.
    if let Some(found) = only_near(lines, said, equal.as_ref()) {
        return chosen(lines, of_any_file, &found.doubted());
    }
    if let Some(found) = said
        .line
        .and_then(|n| quote.find_start(lines, file, n, NEAR))
    {
        return chosen(lines, said, &found);
    }
    if let Some(found) = quote.find_similar(lines, None) {
        return chosen(lines, of_any_file, &found);
    }
    if let Some(entry) = said
        .line
        .and_then(|n| quote.find_akin(lines, file, n, AKIN))
    {
        return at(lines, Occurrence::of_entry(entry), said, Quoted::Loosely);
    }
    // The change contains the file and the line, so a person can judge the claim although its quote
    // does not match.
    let shown = said.line.filter(|n| lines.numbered(file, *n).is_some());
    match shown.map(|n| by_number(lines, file, n, said.further)) {
        Some(place @ (ClaimPosition::Changed { .. } | ClaimPosition::Removed { .. })) => place,
        other => {
            let only = equal
                .filter(|_| quote.says_something())
                .and_then(|found| only_added(lines, found.all));
            let only = only.map(|o| at(lines, o, of_any_file, Quoted::Loosely));
            only.or(other).unwrap_or(ClaimPosition::Nowhere(UNKNOWN))
        }
    }
}

/// Returns the match if it has only one occurrence, and the claimed number is near it.
fn only_near<'f>(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    equal: Option<&'f QuoteMatch>,
) -> Option<&'f QuoteMatch> {
    equal.filter(|found| matches!(found.all[..], [only] if is_near(lines, only, said)))
}

/// Returns true if the claimed number is near the lines.
fn is_near(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> bool {
    said.line.is_some_and(|n| distance(lines, o, n) <= NEAR)
}

/// Returns true if a quote that equals lines of other files cannot refer to a line of the named
/// file, and the quote or the number identifies one of those lines.
fn is_sure_elsewhere(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
    is_part: bool,
    found: &QuoteMatch,
) -> bool {
    // The named file may contain the quote in lines that the model did not receive.
    let in_whole = quote.fit_in_whole(lines.whole(file));
    if in_whole == Some(QuoteFit::Equal) {
        return false;
    }
    if found.all.iter().any(|o| has_number(lines, *o, said)) {
        return true;
    }
    // If the file name is wrong, a line of any file that contains the quote can be meant.
    let of_any_line = StatedPosition {
        file: None,
        line: None,
        ..said
    };
    !is_part
        && in_whole.is_none()
        && found
            .all
            .iter()
            .all(|o| !may_be_part(lines, *o, of_any_line))
}

/// Returns the line of another file that contains the quote: the only one with the claimed number,
/// or the only added one. `is_part` is true if lines of the named file also contain the quote.
fn part_elsewhere(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
    is_part: bool,
) -> Option<ClaimPosition> {
    let of_any_file = StatedPosition { file: None, ..said };
    let found = quote.find_part(lines, None)?;
    let all = newest(lines, &[found.all, found.further].concat());
    let mut numbered = all.iter().filter(|o| has_number(lines, **o, said));
    if let (Some(o), None) = (numbered.next(), numbered.next()) {
        let is_in_named = is_part || quote.fit_in_whole(lines.whole(file)).is_some();
        let quoted = if is_in_named {
            Quoted::Loosely
        } else {
            Quoted::AsNumbered
        };
        return Some(at(lines, *o, of_any_file, quoted));
    }
    only_added(lines, all).map(|o| at(lines, o, of_any_file, Quoted::Loosely))
}

/// Returns the only occurrence that contains an added line.
fn only_added(lines: &ChunkLines<'_>, all: Vec<Occurrence>) -> Option<Occurrence> {
    let mut added = all.into_iter().filter(|o| is_added(lines, o));
    added.next().filter(|_| added.next().is_none())
}

/// Returns the line with the claimed number if it matches the quote and the model did not receive
/// it. The claim is about this line even if another line that the model received is equal.
fn unseen_numbered(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
) -> Option<ClaimPosition> {
    let line = said
        .line
        .filter(|n| lines.numbered(file, *n).is_none())
        .and_then(LineNo::new)?;
    let text = lines.file(file).change.text()?.new.line(line)?;
    let fits = quote.is_telling() && quote.fits(&String::from_utf8_lossy(text));
    fits.then_some(ClaimPosition::Unchanged {
        file,
        line: Some(line),
    })
}

/// Finds a quote on the new side of a file if the model did not receive all of its lines. Also
/// returns the first line number.
fn unseen(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    quote: &Quote,
) -> Option<(u32, ClaimPosition)> {
    let numbers = quote.find_in_text(&lines.new_text(file)?)?;
    let first = *numbers.first()?;
    let shown: Vec<usize> = numbers
        .iter()
        .filter_map(|n| lines.numbered(file, *n))
        .collect();
    let place = match (shown.first(), shown.last()) {
        (Some(first), Some(last)) => {
            let o = Occurrence {
                first: *first,
                last: *last,
            };
            let quoted = if is_tied(lines, o, said) {
                Quoted::Exactly
            } else {
                Quoted::Loosely
            };
            at(lines, o, said, quoted)
        }
        _ => ClaimPosition::Unchanged {
            file,
            line: LineNo::new(first),
        },
    };
    Some((first, place))
}

/// Returns the occurrences on the new side, or all if there are none there. A moved or re-indented
/// line is on both sides, and the claim is about the new one.
fn newest(lines: &ChunkLines<'_>, all: &[Occurrence]) -> Vec<Occurrence> {
    let new: Vec<Occurrence> = all
        .iter()
        .filter(|o| is_of_new_side(lines, o))
        .copied()
        .collect();
    if new.is_empty() { all.to_vec() } else { new }
}

fn is_in(lines: &ChunkLines<'_>, o: &Occurrence, file: usize) -> bool {
    lines.entries[o.first].file == file
}

fn is_of_new_side(lines: &ChunkLines<'_>, o: &Occurrence) -> bool {
    (o.first..=o.last).any(|i| lines.entries[i].number().is_some())
}

fn is_added(lines: &ChunkLines<'_>, o: &Occurrence) -> bool {
    (o.first..=o.last).any(|i| lines.entries[i].is_added())
}

/// Chooses one of the matching lines, and determines how certain the match is.
fn chosen(lines: &ChunkLines<'_>, said: StatedPosition<'_>, found: &QuoteMatch) -> ClaimPosition {
    let all = newest(lines, &found.all);
    let mut numbered = all.iter().filter(|o| has_number(lines, **o, said));
    let mut further = found
        .further
        .iter()
        .filter(|o| has_number(lines, **o, said));
    match (numbered.next(), numbered.next(), further.next()) {
        (Some(o), None, _) => at(
            lines,
            *o,
            said,
            capped(of_numbered(lines, *o, said, &all), found.fit),
        ),
        // The number matches another reading of the quote.
        (None, _, Some(o)) => at(lines, *o, said, Quoted::Loosely),
        _ => match all[..] {
            [only] if found.further.is_empty() => at(
                lines,
                only,
                said,
                capped(of_only(lines, only, said), found.fit),
            ),
            [only] => at(lines, only, said, Quoted::Loosely),
            _ => nearest(lines, said, &all),
        },
    }
}

/// Returns how certain a match is, which is never certain if the quote is only similar.
fn capped(quoted: Quoted, fit: QuoteFit) -> Quoted {
    if fit == QuoteFit::Equal {
        quoted
    } else {
        Quoted::Loosely
    }
}

/// Determines how certain the match is for the equal line that has the claimed number.
fn of_numbered(
    lines: &ChunkLines<'_>,
    o: Occurrence,
    said: StatedPosition<'_>,
    equal: &[Occurrence],
) -> Quoted {
    // Other lines that the claim may be about, in whichever view the model read the number.
    let mut others = equal.iter().filter(|other| **other != o);
    let is_certain = is_tied(lines, o, said)
        && !others.any(|other| may_be_meant(lines, *other, said))
        && !may_be_part(lines, o, said);
    if is_certain {
        Quoted::Exactly
    } else {
        Quoted::AsNumbered
    }
}

/// Determines how certain the match is for the only equal line, if it does not have the claimed
/// number.
fn of_only(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> Quoted {
    if !is_tied(lines, o, said) || may_be_part(lines, o, said) {
        return Quoted::Loosely;
    }
    if o.first != o.last {
        return Quoted::Exactly;
    }
    let own = lines.entries[o.first].file;
    let equal = lines
        .equal_to(&lines.folded()[o.first])
        .iter()
        .map(|i| &lines.entries[*i]);
    let numbers: Vec<Option<u32>> = equal
        .filter(|e| e.file != own)
        .map(|e| e.number())
        .collect();
    match said.line {
        _ if numbers.is_empty() => Quoted::Exactly,
        // Either the file name or the number is wrong.
        Some(n) if numbers.contains(&Some(n)) => Quoted::Loosely,
        _ => Quoted::AsNumbered,
    }
}

/// Chooses the equal line nearest to the claimed number. Only an exact number would distinguish the
/// lines, so the result is never certain.
fn nearest(lines: &ChunkLines<'_>, said: StatedPosition<'_>, all: &[Occurrence]) -> ClaimPosition {
    let mut here = all.to_vec();
    here.retain(|o| said.file.is_none_or(|f| is_in(lines, o, f)));
    // Prefer added lines: an unchanged line would only produce a remark.
    if here.iter().any(|o| is_added(lines, o)) {
        here.retain(|o| is_added(lines, o));
    }
    let Some(n) = said.line else {
        return of_several(lines, said, &here);
    };
    let mut near: Vec<(u32, Occurrence)> =
        here.iter().map(|o| (distance(lines, *o, n), *o)).collect();
    near.retain(|(distance, _)| *distance <= NEAR);
    near.sort_by_key(|(distance, _)| *distance);
    match near[..] {
        [(_, o)] => return at(lines, o, said, Quoted::Loosely),
        [(first, o), (second, _), ..] if first < second => {
            return at(lines, o, said, Quoted::Loosely);
        }
        _ => {}
    }
    let mut seen = here.iter().filter(|o| lines.entries[o.first].is_seen_as(n));
    if let (Some(o), None) = (seen.next(), seen.next()) {
        return at(lines, *o, said, Quoted::Loosely);
    }
    of_several(lines, said, &here)
}

/// Returns the line of the named file that has the claimed number and contains the quote.
fn numbered_part(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    found: &QuoteMatch,
) -> Option<ClaimPosition> {
    let n = said.line?;
    if let Some(o) = first_numbered(lines, &found.all, n) {
        return Some(at(lines, o, said, Quoted::AsNumbered));
    }
    first_numbered(lines, &found.further, n).map(|o| at(lines, o, said, Quoted::Loosely))
}

/// Returns the first occurrence whose first line has a number on the new side.
fn first_numbered(lines: &ChunkLines<'_>, all: &[Occurrence], n: u32) -> Option<Occurrence> {
    all.iter()
        .find(|o| lines.entries[o.first].number() == Some(n))
        .copied()
}

/// Returns the only changed line of the named file that contains the quote. Returns `None` if there
/// is not exactly one.
fn only_part(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    file: usize,
    found: &QuoteMatch,
) -> Option<ClaimPosition> {
    let mut added = found
        .of_any_reading()
        .filter(|o| lines.entries[o.first].is_added());
    let (Some(only), None) = (added.next(), added.next()) else {
        return None;
    };
    // An unchanged line that contains the quote can be meant if it is as near to the number.
    let mut unchanged = found
        .of_any_reading()
        .filter(|o| lines.entries[o.first].shown.kind == LineKind::Context);
    let may_be_unchanged = said.line.is_some_and(|n| {
        let nearest = distance(lines, *only, n);
        unchanged.any(|o| distance(lines, *o, n) <= nearest)
    });
    // Either the file name or the number is wrong.
    let elsewhere = said
        .quote
        .filter(|_| said.line.is_some())
        .and_then(|quote| quote.find_part(lines, None));
    let may_be_elsewhere = elsewhere.is_some_and(|found| {
        found
            .of_any_reading()
            .any(|o| !is_in(lines, o, file) && has_number(lines, *o, said))
    });
    let is_certain =
        !may_be_unchanged && !may_be_elsewhere && said.quote.is_none_or(Quote::says_something);
    Some(at(
        lines,
        *only,
        said,
        if is_certain {
            Quoted::AsNumbered
        } else {
            Quoted::Loosely
        },
    ))
}

/// Returns true if the quote and the number identify the lines. A quote that is in every file (`}`)
/// does so only near the number, and only if no other line of the file is equal.
fn is_tied(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> bool {
    let Some(quote) = said.quote.filter(|q| !q.says_something()) else {
        return true;
    };
    let file = lines.entries[o.first].file;
    is_near(lines, o, said)
        && lines
            .new_text(file)
            .is_some_and(|text| quote.find_in_text(&text).is_some())
}

/// Returns true if a quote that equals one line can also be a part of another line that the claim
/// is about: one near the number, or any line of the file if there is no number.
fn may_be_part(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> bool {
    if o.first != o.last {
        return false;
    }
    let (own, folded) = (&lines.entries[o.first], lines.folded());
    lines.entries.iter().enumerate().any(|(i, other)| {
        said.file.is_none_or(|_| other.file == own.file)
            && other.number().is_some() == own.number().is_some()
            && folded[i].len() > folded[o.first].len()
            && folded[i].contains(folded[o.first].as_str())
            && may_be_meant(lines, Occurrence::of_entry(i), said)
    })
}

/// Chooses among lines that no number distinguishes.
fn of_several(
    lines: &ChunkLines<'_>,
    said: StatedPosition<'_>,
    here: &[Occurrence],
) -> ClaimPosition {
    let mut added = here.iter().filter(|o| is_added(lines, o));
    match (here, added.next(), added.next()) {
        ([], ..) => {
            ClaimPosition::Nowhere("its quote occurs in several files, but not in the named one")
        }
        ([o], ..) | (_, Some(o), None) => at(lines, *o, said, Quoted::Loosely),
        ([first, ..], None, _) => ClaimPosition::Unchanged {
            file: lines.entries[first.first].file,
            line: None,
        },
        ([first, ..], Some(_), Some(_)) => {
            let file = lines.entries[first.first].file;
            if here.iter().any(|o| lines.entries[o.first].file != file) {
                return ClaimPosition::Nowhere(
                    "its quote occurs in several files, and it names no file",
                );
            }
            ClaimPosition::OneOf(
                here.iter()
                    .filter(|o| is_added(lines, o))
                    .map(|o| o.first)
                    .collect(),
            )
        }
    }
}

/// Returns true if the first line of the occurrence has the claimed number.
fn has_number(lines: &ChunkLines<'_>, o: Occurrence, said: StatedPosition<'_>) -> bool {
    said.line
        .is_some_and(|n| distance(lines, Occurrence::of_entry(o.first), n) == 0)
}

/// Returns the distance of a number from the lines. Removed lines are compared by their old number
/// and by the line that represents them.
fn distance(lines: &ChunkLines<'_>, o: Occurrence, n: u32) -> u32 {
    let numbers = (o.first..=o.last).flat_map(|i| {
        let entry = &lines.entries[i];
        match entry.number() {
            Some(new) => [Some(new), None],
            None => [
                entry.old(),
                lines.stand_in(i).and_then(|s| lines.entries[s].number()),
            ],
        }
    });
    numbers
        .flatten()
        .map(|m| m.abs_diff(n))
        .min()
        .unwrap_or(u32::MAX)
}

/// Returns the position of a claim whose lines are known.
fn at(
    lines: &ChunkLines<'_>,
    o: Occurrence,
    said: StatedPosition<'_>,
    quoted: Quoted,
) -> ClaimPosition {
    let mut added = (o.first..=o.last).filter(|i| lines.entries[*i].is_added());
    if let Some(first) = added.next() {
        let last = added.next_back().unwrap_or(first);
        let last = reach(lines, first, said.further).max(last);
        return ClaimPosition::Changed {
            first,
            last,
            quoted,
        };
    }
    if lines.entries[o.first].shown.kind == LineKind::Removed {
        return ClaimPosition::Removed {
            entry: o.first,
            at: lines.stand_in(o.first),
            quoted,
        };
    }
    // The quote is the code before the changed lines that the claim is about.
    let last = reach(lines, o.first, said.further);
    if let Some(first) = (o.first..=last).find(|i| lines.entries[*i].is_added()) {
        return ClaimPosition::Changed {
            first,
            last,
            quoted: Quoted::Loosely,
        };
    }
    ClaimPosition::Unchanged {
        file: lines.entries[o.first].file,
        line: lines.entries[o.first].shown.new,
    }
}

/// Returns the last line on the new side of the same hunk that is at most `further` lines below the
/// first.
fn reach(lines: &ChunkLines<'_>, first: usize, further: u32) -> usize {
    let start = lines.entries[first];
    let Some(from) = start.number() else {
        return first;
    };
    (first..lines.entries.len())
        .take_while(|i| lines.entries[*i].is_in_hunk_of(&start))
        .filter(|i| {
            lines.entries[*i]
                .number()
                .is_some_and(|n| n - from.min(n) <= further)
        })
        .last()
        .unwrap_or(first)
}

/// Finds the position of a claim without a quote.
fn by_number(lines: &ChunkLines<'_>, file: usize, n: u32, further: u32) -> ClaimPosition {
    let quoted = Quoted::Loosely;
    let entry = lines.numbered(file, n);
    if let Some(first) = entry.filter(|i| lines.entries[*i].is_added()) {
        return ClaimPosition::Changed {
            first,
            last: reach(lines, first, further),
            quoted,
        };
    }
    // The line is unchanged, but the claim may be about the lines that follow it, or about an
    // adjacent line.
    if let Some(entry) = entry {
        let last = reach(lines, entry, further);
        if let Some(first) = (entry..=last).find(|i| lines.entries[*i].is_added()) {
            return ClaimPosition::Changed {
                first,
                last,
                quoted,
            };
        }
    }
    let beside = lines
        .of_file(file)
        .filter(|(_, e)| e.is_added() && e.distance(n) <= BESIDE);
    if let Some((entry, _)) = beside.min_by_key(|(_, e)| e.distance(n)) {
        return ClaimPosition::Changed {
            first: entry,
            last: entry,
            quoted,
        };
    }
    let known = lines
        .file(file)
        .change
        .text()
        .and_then(|t| t.new.line(LineNo::new(n)?))
        .is_some();
    let mut removed = lines
        .of_file(file)
        .filter(|(_, e)| e.shown.kind == LineKind::Removed);
    if !known && let Some((entry, _)) = removed.find(|(_, e)| e.old() == Some(n)) {
        return ClaimPosition::Removed {
            entry,
            at: lines.stand_in(entry),
            quoted,
        };
    }
    ClaimPosition::Unchanged {
        file,
        line: LineNo::new(n).filter(|_| known),
    }
}
