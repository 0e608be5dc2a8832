//! The known lines of a file in two rounds, with white space normalized.

use super::map::{self, Kinship, Window, WindowText};
use super::read::{Hunk, RecordedFile};
use super::{FilePair, Map};
use std::collections::BTreeMap;

/// A line that is not blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedLine {
    /// From 1.
    pub number: u32,
    /// Bytes of leading white space; a tab counts as eight.
    pub indent: usize,
    /// Its words, separated by single spaces.
    pub folded: Vec<u8>,
    /// Whether only blank lines are between it and the previous line of the list. For the first
    /// line: whether only blank lines are above it in the file.
    pub joined: bool,
}

/// A file in two rounds. Lines are ordered, without blank ones.
#[derive(Clone, Debug, Default)]
pub struct FileText {
    /// Path in this round, as in reports; `None` if the change lacks it or deletes it.
    pub path: Option<String>,
    pub commit: Option<String>,
    pub before: Vec<FoldedLine>,
    pub now: Vec<FoldedLine>,
    /// By line of `now`: whether it is new since the earlier round.
    pub fresh: Vec<bool>,
    /// Whether both sides show the same parts, so that a line missing there does not exist.
    pub exact: bool,
}

type LinesByNumber = BTreeMap<u32, Vec<u8>>;

impl FileText {
    pub(super) fn of(
        pair: &FilePair,
        before: Option<&RecordedFile>,
        now: Option<&RecordedFile>,
    ) -> Self {
        let base = before
            .or(now)
            .filter(|_| pair.same_base)
            .map(RecordedFile::as_base);
        let windows = match (before, now) {
            (Some(b), Some(n)) if map::kinship(b, n, pair.same_base) == Kinship::Siblings => {
                map::windows(b, n)
            }
            (Some(b), None) => base.as_ref().and_then(|base| map::windows(b, base)),
            (None, Some(n)) => base.as_ref().and_then(|base| map::windows(base, n)),
            _ => None,
        };
        let name = pair.now.as_ref().filter(|n| n.is_there);
        let exact = windows.is_some();
        let (old, new) = match windows {
            Some(windows) => {
                let (mut old, mut new) = (LinesByNumber::new(), LinesByNumber::new());
                for Window { before, now } in windows {
                    number(&before, &mut old);
                    number(&now, &mut new);
                }
                (old, new)
            }
            None => apart(before, now, pair.same_base),
        };
        let now_lines = fold(&new);
        let added: BTreeMap<u32, bool> = now
            .iter()
            .flat_map(|n| hunks(n))
            .flat_map(Hunk::numbered)
            .map(|(n, _, added)| (n, added))
            .collect();
        let fresh = now_lines.iter().map(|l| match &pair.map {
            Map::Whole(_) => pair.map.run_now(l.number).is_none(),
            // The earlier content is unknown: only lines that the change itself adds are known to
            // be new.
            Map::Shown { .. } => {
                pair.map.run_now(l.number).is_none() && added.get(&l.number) == Some(&true)
            }
            Map::Unknown => before.is_none() && added.get(&l.number) == Some(&true),
        });
        Self {
            path: name.map(|n| n.path.clone()),
            commit: name.and_then(|n| n.commit.clone()),
            fresh: fresh.collect(),
            before: fold(&old),
            now: now_lines,
            exact,
        }
    }
}

/// Returns the lines of a whole text.
pub(in crate::rounds) fn lines(text: &[u8]) -> Vec<FoldedLine> {
    let all = (1..).zip(text.split_inclusive(|b| *b == b'\n'));
    fold_all(all)
}

fn hunks(s: &RecordedFile) -> &[Hunk] {
    s.hunks.as_deref().unwrap_or_default()
}

/// Returns the lines of each side from its own change, with the lines that the other change has of
/// it.
fn apart(
    before: Option<&RecordedFile>,
    now: Option<&RecordedFile>,
    same_base: bool,
) -> (LinesByNumber, LinesByNumber) {
    let (mut old, mut new) = (own_lines(before), own_lines(now));
    match before
        .zip(now)
        .map(|(b, n)| (map::kinship(b, n, same_base), n))
    {
        Some((Kinship::Same, _)) => {
            new.extend(old.clone());
            old.clone_from(&new);
        }
        Some((Kinship::Follows, n)) => {
            old.extend(
                hunks(n)
                    .iter()
                    .flat_map(Hunk::old_numbered)
                    .map(|(n, text)| (n, text.to_vec())),
            );
        }
        _ => {}
    }
    (old, new)
}

/// Returns the lines of the new side that the change of a file shows.
fn own_lines(file: Option<&RecordedFile>) -> LinesByNumber {
    file.into_iter()
        .flat_map(hunks)
        .flat_map(Hunk::numbered)
        .map(|(n, text, _)| (n, text.to_vec()))
        .collect()
}

fn number(part: &WindowText, out: &mut LinesByNumber) {
    let lines = part
        .text
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec);
    out.extend((part.first..).zip(lines));
}

fn fold(lines: &LinesByNumber) -> Vec<FoldedLine> {
    fold_all(lines.iter().map(|(n, text)| (*n, &text[..])))
}

fn fold_all<'t>(lines: impl Iterator<Item = (u32, &'t [u8])>) -> Vec<FoldedLine> {
    let (mut out, mut next, mut joined) = (Vec::new(), 1, true);
    for (number, text) in lines {
        joined &= number == next;
        next = number.saturating_add(1);
        let folded = folded(text);
        if !folded.is_empty() {
            let white = text.iter().take_while(|b| b.is_ascii_whitespace());
            let indent = white.map(|b| if *b == b'\t' { 8 } else { 1 }).sum();
            out.push(FoldedLine {
                number,
                indent,
                folded,
                joined,
            });
            joined = true;
        }
    }
    out
}

/// Returns the words of a line, separated by single spaces.
pub(in crate::rounds) fn folded(line: &[u8]) -> Vec<u8> {
    let words = line
        .split(u8::is_ascii_whitespace)
        .filter(|w| !w.is_empty());
    words.collect::<Vec<_>>().join(&b' ')
}
