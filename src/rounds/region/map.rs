//! Maps the lines of one file. Every lookup is a binary search: a file may have as many hunks as
//! lines.

use super::read::{Hunk, RecordedFile};
use super::{NEAR, Preserved};
use crate::diff;
use std::ops::Range;

/// The mapping of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Map {
    /// The mapping is unknown.
    Unknown,
    /// Every line is in a run, or changed.
    Whole(Vec<EqualRun>),
    /// The same for the shown lines only; ranges of lines of both sides, from 1.
    Shown {
        runs: Vec<EqualRun>,
        before: Vec<Range<u32>>,
        now: Vec<Range<u32>>,
    },
}

/// Consecutive equal lines in both versions, from 1. The last run of a file has no end: `u32::MAX`
/// lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EqualRun {
    pub(super) before: u32,
    pub(super) now: u32,
    pub(super) count: u32,
}

/// The relation of two versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinship {
    /// They are the same.
    Same,
    /// The second change starts from the result of the first.
    Follows,
    /// Both start from the same file.
    Siblings,
    Strangers,
}

/// Returns the relation of two versions.
pub(super) fn kinship(b: &RecordedFile, n: &RecordedFile, same_base: bool) -> Kinship {
    if b.new_id.is_some() && b.new_id == n.new_id {
        return Kinship::Same;
    }
    if b.new_id.is_some()
        && n.hunks.is_some()
        && n.old.as_ref().is_some_and(|(_, id)| *id == b.new_id)
    {
        return Kinship::Follows;
    }
    let is_same_file = match (&b.old, &n.old) {
        (None, None) => true,
        (Some((_, Some(one))), Some((_, Some(other)))) => one == other,
        (Some((one, _)), Some((other, _))) => same_base && one == other,
        _ => false,
    };
    if is_same_file {
        Kinship::Siblings
    } else {
        Kinship::Strangers
    }
}

/// Maps the lines of a file.
pub(super) fn map(
    before: Option<&RecordedFile>,
    now: Option<&RecordedFile>,
    same_base: bool,
) -> Map {
    let (b, n) = match (before, now) {
        (Some(b), Some(n)) => (b, n),
        // In one change only: the other version is the base.
        (Some(one), None) | (None, Some(one)) if same_base => {
            let base = one.as_base();
            let (b, n) = if before.is_some() {
                (one, &base)
            } else {
                (&base, one)
            };
            return whole(b, n).unwrap_or(Map::Unknown);
        }
        _ => return Map::Unknown,
    };
    match kinship(b, n, same_base) {
        Kinship::Same => Map::Whole(vec![EqualRun {
            before: 1,
            now: 1,
            count: u32::MAX,
        }]),
        Kinship::Follows => Map::Whole(runs_of(n.hunks.iter().flatten().flat_map(Hunk::edits))),
        Kinship::Siblings => whole(b, n).unwrap_or(Map::Unknown),
        Kinship::Strangers => shown(b, n).unwrap_or(Map::Unknown),
    }
}

/// A range of a base file that at least one of two versions replaces, with the content of each.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) before: WindowText,
    pub(super) now: WindowText,
}

/// Some lines of a version.
#[derive(Debug)]
pub(super) struct WindowText {
    /// Number of the first line.
    pub(super) first: u32,
    /// Lines that each end with `\n`.
    pub(super) text: Vec<u8>,
}

impl WindowText {
    /// Returns the numbers of lines, given their indices in this part.
    fn numbers(&self, lines: &Range<u32>) -> Range<u32> {
        self.first + lines.start..self.first + lines.end
    }
}

/// Returns the parts of two versions of one base file that may differ; other parts equal the base.
pub(super) fn windows(before: &RecordedFile, now: &RecordedFile) -> Option<Vec<Window>> {
    let (b, n) = (before.hunks.as_deref()?, now.hunks.as_deref()?);
    let (before, now) = (FileVersion::of(b)?, FileVersion::of(n)?);
    let windows = joined(b.iter().chain(n).map(|h| h.old.clone()));
    let both = windows.into_iter().map(|w| {
        Some(Window {
            before: before.part(&now, &w)?,
            now: now.part(&before, &w)?,
        })
    });
    both.collect()
}

/// Maps two versions of one base file.
fn whole(before: &RecordedFile, now: &RecordedFile) -> Option<Map> {
    let mut edits = Vec::new();
    for Window { before, now } in windows(before, now)? {
        let replaced = diff::replaced(&before.text, &now.text);
        edits.extend(
            replaced
                .into_iter()
                .map(|(o, n)| (before.numbers(&o), now.numbers(&n))),
        );
    }
    Some(Map::Whole(runs_of(edits.into_iter())))
}

/// Merges ranges that overlap or touch.
fn joined(ranges: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
    let mut all: Vec<_> = ranges.collect();
    all.sort_by_key(|r| (r.start, r.end));
    let mut out: Vec<Range<u32>> = Vec::new();
    for r in all {
        match out.last_mut() {
            Some(last) if r.start <= last.end => last.end = last.end.max(r.end),
            _ => out.push(r),
        }
    }
    out
}

/// A version of a base file: its hunks, in order.
struct FileVersion<'h> {
    hunks: &'h [Hunk],
    /// By hunk: number of lines above it, compared with the base.
    shifts: Vec<i64>,
}

impl<'h> FileVersion<'h> {
    /// Returns `None` if the hunks are not in order.
    fn of(hunks: &'h [Hunk]) -> Option<Self> {
        if !hunks.is_sorted_by(|a, b| a.old.start <= b.old.start && a.old.end <= b.old.start) {
            return None;
        }
        let mut shift = 0;
        let mut shifts = vec![shift];
        for h in hunks {
            shift += i64::from(h.added()) - i64::from(h.removed());
            shifts.push(shift);
        }
        Some(Self { hunks, shifts })
    }

    /// Returns the content of this version for a range of the base. `other` has the base lines that
    /// this version has no hunk for.
    fn part(&self, other: &Self, window: &Range<u32>) -> Option<WindowText> {
        let from = self.hunks.partition_point(|h| h.old.start < window.start);
        let first = u32::try_from(i64::from(window.start) + self.shifts.get(from)?).ok()?;
        let (mut text, mut at) = (Vec::new(), window.start);
        let mut own = self.hunks[from..]
            .iter()
            .take_while(|h| h.old.start <= window.end)
            .peekable();
        let mut theirs = other.hunks.partition_point(|h| h.old.end <= at);
        loop {
            if let Some(h) = own.next_if(|h| h.old.start == at) {
                h.new_lines().for_each(|l| push(l, &mut text));
                at = h.old.end;
                continue;
            }
            if at == window.end {
                return Some(WindowText { first, text });
            }
            let stop = own.peek().map_or(window.end, |h| h.old.start);
            while at < stop {
                let h = other.hunks.get(theirs).filter(|h| h.old.start < stop)?;
                if h.old.end <= at {
                    theirs += 1;
                    continue;
                }
                // Base lines that neither version shows are in no window.
                let to = stop.min(h.old.end);
                h.old_lines(at..to)?.for_each(|l| push(l, &mut text));
                at = to;
            }
        }
    }
}

/// Appends a line with a plain line ending.
fn push(line: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(diff::trim_line_end(line));
    text.push(b'\n');
}

/// Maps the shown lines of two versions of different base files.
fn shown(before: &RecordedFile, now: &RecordedFile) -> Option<Map> {
    let NewSide {
        text: old,
        numbers: old_numbers,
        ranges: before,
    } = NewSide::of(before)?;
    let NewSide {
        text: new,
        numbers: new_numbers,
        ranges: now,
    } = NewSide::of(now)?;
    let (mut runs, mut at): (Vec<EqualRun>, (usize, usize)) = (Vec::new(), (0, 0));
    let ends = (old_numbers.len() as u32, new_numbers.len() as u32);
    let edits = diff::replaced(&old, &new)
        .into_iter()
        .chain([(ends.0..ends.0, ends.1..ends.1)]);
    for (o, n) in edits {
        for (b, n) in old_numbers
            .get(at.0..o.start as usize)?
            .iter()
            .zip(new_numbers.get(at.1..n.start as usize)?)
        {
            match runs.last_mut() {
                Some(r) if r.before + r.count == *b && r.now + r.count == *n => r.count += 1,
                _ => runs.push(EqualRun {
                    before: *b,
                    now: *n,
                    count: 1,
                }),
            }
        }
        at = (o.end as usize, n.end as usize);
    }
    Some(Map::Shown { runs, before, now })
}

/// The shown lines of the new side of a file.
#[derive(Default)]
struct NewSide {
    text: Vec<u8>,
    /// Numbers of the lines, and the ranges of these.
    numbers: Vec<u32>,
    ranges: Vec<Range<u32>>,
}

impl NewSide {
    /// Collects the lines, or returns `None` if they are unknown.
    fn of(file: &RecordedFile) -> Option<Self> {
        let mut out = Self::default();
        for h in file.hunks.as_deref()? {
            out.ranges.push(h.new.clone());
            out.numbers.extend(h.new.clone());
            h.new_lines().for_each(|l| push(l, &mut out.text));
        }
        Some(out)
    }
}

/// Returns the runs between edits: ranges of lines from 1, in order.
fn runs_of(edits: impl Iterator<Item = (Range<u32>, Range<u32>)>) -> Vec<EqualRun> {
    let (mut runs, mut at) = (Vec::new(), (1, 1));
    for (b, n) in edits {
        let count = b.start.saturating_sub(at.0);
        if count > 0 {
            runs.push(EqualRun {
                before: at.0,
                now: at.1,
                count,
            });
        }
        at = (b.end, n.end);
    }
    runs.push(EqualRun {
        before: at.0,
        now: at.1,
        count: u32::MAX,
    });
    runs
}

impl EqualRun {
    /// Returns the end of the run in the earlier text.
    fn end(&self) -> u32 {
        self.before.saturating_add(self.count)
    }

    /// Returns the end of the run in the current text.
    fn now_end(&self) -> u32 {
        self.now.saturating_add(self.count)
    }
}

/// Returns true if one of the ordered ranges contains a number.
fn holds(ranges: &[Range<u32>], n: u32) -> bool {
    let at = ranges.partition_point(|r| r.start <= n);
    ranges[..at].last().is_some_and(|r| n < r.end)
}

impl Map {
    /// Returns the equal runs of lines.
    pub(super) fn runs(&self) -> &[EqualRun] {
        match self {
            Self::Unknown => &[],
            Self::Whole(runs) | Self::Shown { runs, .. } => runs,
        }
    }

    /// Returns the run with a line of the earlier version.
    fn run(&self, n: u32) -> Option<&EqualRun> {
        let runs = self.runs();
        runs[..runs.partition_point(|r| r.before <= n)]
            .last()
            .filter(|r| n < r.end())
    }

    /// Returns the run with a line of the current version.
    pub(super) fn run_now(&self, n: u32) -> Option<&EqualRun> {
        let runs = self.runs();
        runs[..runs.partition_point(|r| r.now <= n)]
            .last()
            .filter(|r| n < r.now_end())
    }

    /// Returns the current position of earlier lines, `last` included, or `None` if it is unknown.
    pub(super) fn place(&self, first: u32, last: u32) -> Option<(Range<u32>, Preserved)> {
        if matches!(self, Self::Unknown) {
            return None;
        }
        if let Some(r) = self.run(first).filter(|r| last < r.end()) {
            let start = first - r.before + r.now;
            let whole = self.is_whole_around(r, first, last);
            let kept = if whole {
                Preserved::Whole
            } else {
                Preserved::Lines
            };
            return Some((
                start..start.saturating_add(last - first).saturating_add(1),
                kept,
            ));
        }
        // The lines between the remaining neighbors.
        let runs = self.runs();
        let above = runs[..runs.partition_point(|r| r.before < first)].last();
        let below = runs.get(runs.partition_point(|r| r.end() <= last));
        let start = above.map(|r| {
            if first < r.end() {
                r.now + (first - r.before)
            } else {
                r.now_end()
            }
        });
        let end = below.map(|r| {
            if last >= r.before {
                r.now + (last - r.before) + 1
            } else {
                r.now
            }
        });
        match self {
            Self::Shown { now, .. } => {
                // Lines are known to be missing only between two that are shown next to each other.
                let (start, end) = (start?, end?);
                let shown = now[..now.partition_point(|r| r.start <= start)].last();
                let together = shown.is_some_and(|r| end <= r.end);
                (together && start <= end).then_some((start..end, Preserved::Not))
            }
            _ => {
                let start = start.unwrap_or(1);
                Some((start..end.unwrap_or(u32::MAX).max(start), Preserved::Not))
            }
        }
    }

    /// Returns true if the lines around a position are in the same run, or not shown.
    fn is_whole_around(&self, run: &EqualRun, first: u32, last: u32) -> bool {
        let (above, below) = (first.saturating_sub(NEAR).max(1), last.saturating_add(NEAR));
        let mut around = (above..first).chain(last.saturating_add(1)..=below);
        around.all(|n| run.before <= n && n < run.end() || !self.shows_before(n))
    }

    /// Returns true if a line of the earlier version is shown.
    fn shows_before(&self, n: u32) -> bool {
        match self {
            Self::Shown { before, .. } => holds(before, n),
            Self::Unknown | Self::Whole(_) => true,
        }
    }

    /// Returns true if some of these lines are new, or lines above them were removed; `None` if
    /// that is unknown.
    pub(super) fn is_new(&self, first: u32, last: u32) -> Option<bool> {
        let from = first.saturating_sub(1).max(1);
        match self {
            Self::Unknown => None,
            Self::Whole(_) => {
                let run = self.run_now(from).filter(|r| last < r.now_end());
                // At the start of a file, lines above are missing only if the first run says so.
                Some(!run.is_some_and(|r| first > 1 || r.before == 1 && r.now == 1))
            }
            Self::Shown { now, .. } => {
                Some((first..=last).any(|n| holds(now, n) && self.run_now(n).is_none()))
            }
        }
    }
}
