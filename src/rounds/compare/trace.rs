//! Searches for the text of a finding that is not reported again. Pure.
//!
//! Lines are compared with white space normalized, and blank lines are ignored. An equal text is
//! recognized in three ways:
//!
//! - *In its place.* The finding's lines are at their old position, and the lines within [`NEAR`]
//!   of them are unmodified: only indentation or blank lines changed. If a whole block was
//!   reindented with them, the block and the lines directly above and below it are compared too,
//!   because a guard around the block can be a fix. In languages with significant indentation
//!   (Python, YAML), lines that are reindented relative to their neighbors are other code.
//! - *Elsewhere.* The same lines are new at another position, in this file or in another one of the
//!   change. This counts if an adjacent line moved along, with nothing inserted or removed between;
//!   or if none did but the text is distinctive. An equal line that existed before is another line:
//!   of two equal lines, deleting one fixes that one.
//! - *Beside the change.* The file has content that the change does not show, and more copies of
//!   these lines now than at the base: see [`super::look`].

use crate::rounds::region::{FileText, FoldedLine, folded};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Lines around a finding that belong to it.
const NEAR: u32 = 3;
/// Lines of a reindented block that are compared up to its end, at most.
const BLOCK: usize = 400;
/// Adjacent lines of which one must have moved along, and distance within which it is searched.
const BESIDE: usize = 3;
const WITHIN: usize = 8;
/// Letters and digits, and different words, that make one line distinctive.
const LETTERS: usize = 14;
const WORDS: usize = 3;
/// A run of stars that masks a secret. Code has shorter ones.
const MASK: &[u8] = b"*****";
/// Positions of one text that are compared, at most. A text with more is not distinctive.
const MOST: usize = 256;

/// The text of a finding, with its surrounding lines.
#[derive(Clone, Debug)]
pub(super) struct Passage<'t> {
    lines: &'t [FoldedLine],
    core: Range<usize>,
}

/// A text that still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundText {
    /// Index of the file in the new change.
    pub(super) file: usize,
    /// Its lines, end excluded.
    pub(super) lines: Range<u32>,
}

/// The files of a comparison, and the positions of all new lines.
#[derive(Debug)]
pub(super) struct ComparedTexts {
    files: Vec<FileText>,
    /// File and position of each new line, by normalized text.
    fresh: HashMap<Vec<u8>, Vec<(usize, usize)>>,
}

/// How the lines on one side of a new position compare with those of the old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NeighborMatch {
    /// An adjacent line moved along.
    Same,
    /// None did: the end of the moved text.
    End,
    /// Lines were inserted or removed between.
    Other,
}

impl<'t> Passage<'t> {
    /// Returns the passage of these lines, `last` included. Returns `None` if they are unknown or
    /// blank.
    pub(super) fn of(lines: &'t [FoldedLine], first: u32, last: u32) -> Option<Self> {
        let from = lines.partition_point(|l| l.number < first);
        let to = lines.partition_point(|l| l.number <= last);
        let is_known = from < to && lines[from + 1..to].iter().all(|l| l.joined);
        is_known.then_some(Self {
            lines,
            core: from..to,
        })
    }

    /// Returns the passage of a finding's quote, used if its lines are unknown. A quote with a
    /// masked secret or a truncated line has no passage.
    pub(super) fn quoted(lines: &'t [FoldedLine]) -> Option<Self> {
        (!lines.is_empty()).then_some(Self {
            lines,
            core: 0..lines.len(),
        })
    }

    /// Returns the lines of the finding itself.
    fn core(&self) -> &'t [FoldedLine] {
        &self.lines[self.core.clone()]
    }

    /// Returns true if these lines are at a position of others.
    fn stands_at(&self, lines: &[FoldedLine], at: usize) -> bool {
        let core = self.core();
        let Some(there) = lines.get(at..at.saturating_add(core.len())) else {
            return false;
        };
        there[1..].iter().all(|l| l.joined)
            && core
                .iter()
                .zip(there)
                .all(|(a, b)| is_same(&a.folded, &b.folded))
    }

    /// Returns the positions of these lines in others.
    pub(super) fn places(&self, lines: &[FoldedLine]) -> Vec<usize> {
        (0..lines.len())
            .filter(|at| self.stands_at(lines, *at))
            .collect()
    }

    /// Returns the line numbers of this passage at a position of others, end excluded.
    pub(super) fn numbers(&self, lines: &[FoldedLine], at: usize) -> Range<u32> {
        lines[at].number..lines[at + self.core.len() - 1].number + 1
    }

    /// Returns true if the text is unlikely to be written twice by chance.
    fn is_distinctive(&self) -> bool {
        let core = self.core();
        if core.iter().filter(|l| has_words(&l.folded)).count() >= 3 {
            return true;
        }
        let text = core
            .iter()
            .map(|l| &l.folded[..])
            .collect::<Vec<_>>()
            .join(&b' ');
        // Every file begins with such lines.
        let imports: &[&[u8]] = &[
            b"import", b"from", b"use", b"using", b"include", b"require", b"package",
        ];
        if words(&text).next().is_none_or(|w| imports.contains(&w)) {
            return false;
        }
        let letters: usize = words(&text).map(<[u8]>::len).sum();
        letters >= LETTERS && words(&text).collect::<BTreeSet<_>>().len() >= WORDS
    }

    /// Returns true if only white space changed in and around these lines at their current
    /// position.
    fn is_untouched(&self, now: &FileText, at: usize, is_layout: bool) -> bool {
        let mut sides = self.sides(&now.now, at).into_iter();
        sides.all(|(old, new)| is_untouched_beside(now, old, new))
            && !(is_layout && self.is_laid_out_anew(&now.now, at))
    }

    /// Returns the lines above and below this passage, each with those at a position of others.
    fn sides<'l>(
        &self,
        now: &'l [FoldedLine],
        at: usize,
    ) -> [(AdjacentLines<'t>, AdjacentLines<'l>); 2] {
        let end = at + self.core.len();
        [
            (
                AdjacentLines::Above(self.lines, self.core.start),
                AdjacentLines::Above(now, at),
            ),
            (
                AdjacentLines::Below(self.lines, self.core.end),
                AdjacentLines::Below(now, end),
            ),
        ]
    }

    /// Returns true if these lines have another indentation relative to their neighbors.
    fn is_laid_out_anew(&self, now: &[FoldedLine], at: usize) -> bool {
        let around = self.core.start.saturating_sub(1)..(self.core.end + 1).min(self.lines.len());
        around.clone().zip(around.skip(1)).any(|(a, b)| {
            let (Some(x), Some(y)) = (self.moved(a, now, at), self.moved(b, now, at)) else {
                return false;
            };
            let (a, b) = (&self.lines[a], &self.lines[b]);
            x.folded == a.folded
                && y.folded == b.folded
                && a.indent.cmp(&b.indent) != x.indent.cmp(&y.indent)
        })
    }

    /// Returns the line that has the position of the `i`th line here if this passage is at a
    /// position of others.
    fn moved<'l>(&self, i: usize, now: &'l [FoldedLine], at: usize) -> Option<&'l FoldedLine> {
        now.get((at + i).checked_sub(self.core.start)?)
    }
}

/// The lines above the line at a position, or below the one before an end.
#[derive(Clone, Copy)]
enum AdjacentLines<'l> {
    Above(&'l [FoldedLine], usize),
    Below(&'l [FoldedLine], usize),
}

impl<'l> AdjacentLines<'l> {
    /// Returns the position of the line `step` lines away, or `None` if it is unknown.
    fn position(self, step: usize) -> Option<usize> {
        match self {
            Self::Above(lines, from) => {
                let at = from.checked_sub(step)?;
                lines[at + 1..=from].iter().all(|l| l.joined).then_some(at)
            }
            Self::Below(lines, end) => {
                let at = end + step - 1;
                lines.get(end..=at)?.iter().all(|l| l.joined).then_some(at)
            }
        }
    }

    /// Returns the line `step` lines away, or `None` if it is unknown.
    fn line(self, step: usize) -> Option<&'l FoldedLine> {
        let (Self::Above(lines, _) | Self::Below(lines, _)) = self;
        lines.get(self.position(step)?)
    }

    /// Returns the text of the line `step` lines away, or `None` if it is unknown.
    fn text(self, step: usize) -> Option<&'l [u8]> {
        self.line(step).map(|l| &l.folded[..])
    }

    /// Returns true if the line `step` lines away is known, and belongs to the surroundings of the
    /// line that these lines are next to.
    fn is_close(self, step: usize) -> bool {
        let own = match self {
            Self::Above(lines, from) => lines.get(from),
            Self::Below(lines, end) => end.checked_sub(1).and_then(|last| lines.get(last)),
        };
        let both = own.zip(self.line(step));
        both.is_some_and(|(own, line)| line.number.abs_diff(own.number) <= NEAR)
    }

    /// Returns true if the file begins fewer than `step` lines above. The known lines do not show
    /// where a file ends, so this is false for lines below.
    fn ends_within(self, step: usize) -> bool {
        match self {
            Self::Above(lines, from) => from < step && lines.first().is_some_and(|l| l.joined),
            Self::Below(..) => false,
        }
    }

    /// Returns true if the line `step` lines away is known, and new in its file.
    fn is_new_in(self, file: &FileText, step: usize) -> bool {
        self.position(step).is_some_and(|at| file.fresh[at])
    }
}

/// Returns true if only white space changed on one side of a passage, up to the end of a reindented
/// block. `old` and `new` are the lines on that side, before and now.
fn is_untouched_beside(file: &FileText, old: AdjacentLines<'_>, new: AdjacentLines<'_>) -> bool {
    for step in 1..=BLOCK {
        let is_near = old.is_close(step);
        // The block continues while its lines differ from the old ones.
        let is_block = step > 1 && new.is_new_in(file, step - 1);
        match (old.line(step), new.line(step)) {
            // The known lines of both sides end here, and all of them are equal.
            (None, None) => return true,
            // Only the old side has a known line here. The removal of a near line counts if it is
            // certain: both sides show the same parts, or the new file begins here. Otherwise the
            // new change may merely not show the line.
            (Some(_), None) => return !(is_near && (file.exact || new.ends_within(step))),
            // Only the new side has a known line here. Likewise, an insertion counts if it is
            // certain, and the line is near or belongs to the block.
            (None, Some(_)) => {
                let is_known = file.exact || old.ends_within(step);
                let is_insertion = is_known && new.is_new_in(file, step);
                return !(is_insertion && (new.is_close(step) || is_block));
            }
            // Both sides have a known line here. Beyond the near lines and the block, lines do not
            // belong to the surroundings.
            (Some(before), Some(now)) => {
                if !is_near && !is_block {
                    return true;
                }
                if before.folded != now.folded {
                    return false;
                }
            }
        }
    }
    true
}

/// Compares the lines on one side at a new position with those at the old one.
fn neighbor_match(old: AdjacentLines<'_>, new: AdjacentLines<'_>) -> NeighborMatch {
    for far in 1..=BESIDE {
        let Some(line) = old.text(far) else {
            return NeighborMatch::End;
        };
        if !has_words(line) {
            continue;
        }
        if let Some(found) = (1..=WITHIN).find(|step| new.text(*step) == Some(line)) {
            let is_same = found == far && (1..far).all(|step| old.text(step) == new.text(step));
            return if is_same {
                NeighborMatch::Same
            } else {
                NeighborMatch::Other
            };
        }
    }
    NeighborMatch::End
}

impl ComparedTexts {
    /// Indexes the new lines of files by their normalized text.
    pub(super) fn new(files: Vec<FileText>) -> Self {
        let mut fresh: HashMap<Vec<u8>, Vec<(usize, usize)>> = HashMap::new();
        for (f, file) in files
            .iter()
            .enumerate()
            .filter(|(_, file)| file.path.is_some())
        {
            for (i, line) in file.now.iter().enumerate().filter(|(i, _)| file.fresh[*i]) {
                fresh.entry(line.folded.clone()).or_default().push((f, i));
            }
        }
        Self { files, fresh }
    }

    /// Returns a file by its index.
    pub(super) fn file(&self, at: usize) -> Option<&FileText> {
        self.files.get(at)
    }

    /// Searches for a text at its current position: in `spot` of the file `own`. With `alone`,
    /// ignores surrounding lines.
    pub(super) fn in_place(
        &self,
        text: &Passage<'_>,
        own: usize,
        spot: &Range<u32>,
        alone: bool,
    ) -> Option<Range<u32>> {
        let file = self.files.get(own).filter(|f| f.path.is_some())?;
        let is_layout = file.path.as_deref().is_some_and(is_layout);
        let from = file.now.partition_point(|l| l.number < spot.start);
        let to = file.now.partition_point(|l| l.number < spot.end);
        let mut places =
            (from..to).filter(|at| at + text.core.len() <= to && text.stands_at(&file.now, *at));
        let at = places.find(|at| alone || text.is_untouched(file, *at, is_layout))?;
        Some(text.numbers(&file.now, at))
    }

    /// Searches for a text among all new lines except those in `spot` of the file `own`.
    pub(super) fn elsewhere(
        &self,
        text: &Passage<'_>,
        own: Option<usize>,
        spot: &Range<u32>,
    ) -> Option<FoundText> {
        let core = text.core();
        let anchor = core.iter().position(|l| has_words(&l.folded))?;
        let all = self.fresh.get(&core[anchor].folded)?;
        let places: Vec<(usize, usize)> = all
            .iter()
            .take(MOST)
            .filter_map(|(f, i)| Some((*f, i.checked_sub(anchor)?)))
            .filter(|(f, at)| {
                let now = &self.files[*f].now;
                text.stands_at(now, *at) && !(Some(*f) == own && spot.contains(&now[*at].number))
            })
            .collect();
        // Its own file first.
        let mut ordered = places
            .iter()
            .filter(|(f, _)| Some(*f) == own)
            .chain(&places);
        let found = ordered.find(|(f, at)| {
            let sides = text.sides(&self.files[*f].now, *at);
            match sides.map(|(old, new)| neighbor_match(old, new)) {
                [NeighborMatch::Other, _] | [_, NeighborMatch::Other] => false,
                [NeighborMatch::End, NeighborMatch::End] => {
                    places.len() == 1 && self.is_unique(text, own)
                }
                _ => true,
            }
        });
        found.map(|(f, at)| FoundText {
            file: *f,
            lines: text.numbers(&self.files[*f].now, *at),
        })
    }

    /// Returns true if a text is distinctive, and its own file had it only once.
    fn is_unique(&self, text: &Passage<'_>, own: Option<usize>) -> bool {
        let before = own
            .and_then(|own| self.files.get(own))
            .map_or(1, |f| text.places(&f.before).len());
        before <= 1 && text.is_distinctive()
    }
}

/// Returns the words of a text: letters, digits, underscores, and all bytes beyond ASCII.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| !b.is_ascii_alphanumeric() && *b != b'_' && b.is_ascii())
        .filter(|w| !w.is_empty())
}

/// Returns true if the lines that a change shows are in a whole file at the same numbers.
pub(super) fn stand_in(shown: &[FoldedLine], whole: &[FoldedLine]) -> bool {
    shown.iter().all(|l| {
        let at = whole.binary_search_by_key(&l.number, |w| w.number);
        at.is_ok_and(|at| is_same(&whole[at].folded, &l.folded))
    })
}

/// Returns true if a file has the same interpreter line (`#!`), if both are known.
pub(super) fn is_as_introduced(before: Option<&FileText>, now: &FileText) -> bool {
    fn first(lines: &[FoldedLine]) -> Option<&FoldedLine> {
        lines.first().filter(|l| l.number == 1)
    }
    let was = before
        .and_then(|b| first(&b.before))
        .filter(|l| l.folded.starts_with(b"#!"));
    was.is_none_or(|was| first(&now.now).is_none_or(|l| l.folded == was.folded))
}

/// Returns true if a line has a letter, a digit or a byte beyond ASCII.
fn has_words(line: &[u8]) -> bool {
    line.iter()
        .any(|b| b.is_ascii_alphanumeric() || !b.is_ascii())
}

/// Returns true if two lines are equal, ignoring parts that only one of them has masked: different
/// policies may detect different secrets.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let may_be = a.len() == b.len()
        && [a, b]
            .iter()
            .any(|l| l.windows(MASK.len()).any(|w| w == MASK));
    may_be
        && (0..a.len())
            .zip(masked(a).iter().zip(masked(b)))
            .all(|(i, (x, y))| *x || y || a[i] == b[i])
}

/// Returns, by byte of a line, whether it is masked.
fn masked(line: &[u8]) -> Vec<bool> {
    let mut out = vec![false; line.len()];
    for (at, _) in line
        .windows(MASK.len())
        .enumerate()
        .filter(|(_, w)| *w == MASK)
    {
        out[at..at + MASK.len()].fill(true);
    }
    out
}

/// Returns true if indentation is significant in files of this type.
fn is_layout(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let all = [
        "py", "pyi", "pyx", "yaml", "yml", "nim", "coffee", "sass", "haml", "pug", "hs", "fs",
        "elm",
    ];
    all.iter().any(|e| extension.eq_ignore_ascii_case(e))
}

/// Returns the normalized lines of a quote. Returns none if a secret in it was masked, or part of
/// it is missing.
pub(super) fn quote(text: &str) -> Vec<FoldedLine> {
    if text.contains("<secret:") || text.contains("\\u{") || text.ends_with('…') {
        return Vec::new();
    }
    (1..)
        .zip(text.lines())
        .map(|(number, line)| FoldedLine {
            number,
            indent: 0,
            folded: folded(line.as_bytes()),
            joined: true,
        })
        .filter(|l| has_words(&l.folded))
        .collect()
}

#[cfg(test)]
mod tests;
