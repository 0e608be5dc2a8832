//! Which lines of one round are which lines of another: two stored changes, put side by side. Pure.
//!
//! Where both changes start from the same file, nothing is guessed: what a hunk of either shows is compared line by
//! line, and what no hunk shows is the same base code, moved by what stands above it. Where they start from
//! different files, only lines that both show can be told to be the same.

mod read;

use crate::diff;
use read::Shown;
pub(in crate::rounds) use read::changes;
use std::collections::HashMap;
use std::ops::Range;

/// Lines around a place that belong to it: a change there may well be the answer to what was said of it.
const NEAR: u32 = 3;
/// The share of lines that a new file has in common with one that is gone, in percent, from which on it is that file.
const LIKE: usize = 50;
/// Files without a counterpart that are compared with each other, at most.
const STRAYS: usize = 64;

/// A round's change, as it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Side<'a> {
    /// A unified diff, secrets masked.
    pub text: &'a [u8],
    /// Files whose lines are not in it.
    pub left_out: &'a [String],
}

/// Two changes side by side.
#[derive(Debug, Default)]
pub struct Alignment {
    files: Vec<Pair>,
    /// Positions by path: of the earlier round, of this one.
    index: [HashMap<String, Vec<usize>>; 2],
    /// Both start from the same state: what is in one of them only is base code in the other.
    same_base: bool,
    /// One of them cannot be read.
    unreadable: bool,
}

/// A file of the earlier round, of this one, or of both.
#[derive(Debug)]
struct Pair {
    before: Option<Name>,
    now: Option<Name>,
    map: Map,
}

/// A file of a change: in a range of commits, each has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    commit: Option<String>,
    path: String,
    /// The file is there: it is not deleted.
    is_there: bool,
    /// The change has no line of it: an empty file, or another mode or name alone.
    is_bare: bool,
}

/// Where lines went.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Map {
    /// Nothing can be told.
    Unknown,
    /// Every line is in a run, or changed.
    Whole(Vec<Run>),
    /// The same, of the lines that are shown; ranges of lines of both sides, from 1.
    Shown { runs: Vec<Run>, before: Vec<Range<u32>>, now: Vec<Range<u32>> },
}

/// Consecutive lines that are the same in both, from 1. The last run of a file has no end: `u32::MAX` lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    before: u32,
    now: u32,
    count: u32,
}

/// Where lines of the earlier round are now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// What stands there now.
    At(Spot),
    /// The file is no part of the change any more.
    Gone,
    Unknown,
}

/// What became of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The path now, as reports write it.
    pub file: String,
    pub commit: Option<String>,
    /// The lines now, from 1, the end excluded; empty: nothing is left.
    pub lines: Range<u32>,
    pub kept: Kept,
}

/// How much of a place is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The lines and what stands around them.
    Whole,
    /// The lines, but something beside them changed.
    Lines,
    /// Some of the lines changed.
    Not,
}

impl Alignment {
    /// Puts two changes side by side. `same_base`: both are known to start from the same state.
    pub fn between(before: Side<'_>, now: Side<'_>, same_base: bool) -> Self {
        let (Some(before), Some(now)) = (read::files(before), read::files(now)) else {
            return Self { unreadable: true, ..Self::default() };
        };
        let mut out = Self { same_base, ..Self::default() };
        let mut taken = vec![false; now.len()];
        let mut alone = Vec::new();
        let names = Names::of(&now);
        for b in &before {
            match names.counterpart(b, &now, &taken) {
                Some(i) => {
                    taken[i] = true;
                    out.push(Some(b), Some(&now[i]));
                }
                None => alone.push(b),
            }
        }
        // A new file under another new name.
        let is_new = |i: &usize| !taken[*i] && now[*i].old.is_none();
        let mut strays: Vec<usize> = (0..now.len()).filter(is_new).take(STRAYS).collect();
        for (nth, b) in alone.into_iter().enumerate() {
            let tried = if nth < STRAYS { &strays[..] } else { &[] };
            let like = tried.iter().map(|i| (b.likeness(&now[*i]), *i)).filter(|(share, _)| *share >= LIKE);
            let found = like.max_by_key(|(share, i)| (*share, std::cmp::Reverse(*i))).map(|(_, i)| i);
            if let Some(i) = found {
                taken[i] = true;
                strays.retain(|s| *s != i);
            }
            out.push(Some(b), found.map(|i| &now[i]));
        }
        for (n, _) in now.iter().zip(&taken).filter(|(_, taken)| !**taken) {
            out.push(None, Some(n));
        }
        for (i, pair) in out.files.iter().enumerate() {
            for (side, name) in [(0, &pair.before), (1, &pair.now)] {
                if let Some(name) = name {
                    out.index[side].entry(name.path.clone()).or_default().push(i);
                }
            }
        }
        out
    }

    fn push(&mut self, before: Option<&Shown>, now: Option<&Shown>) {
        let name = |s: &Shown| Name {
            commit: s.commit.clone(),
            path: s.path.clone(),
            is_there: s.is_there,
            is_bare: s.hunks.as_ref().is_some_and(Vec::is_empty),
        };
        // The commits of a range start from each other.
        let same_base = self.same_base && [before, now].into_iter().flatten().all(|s| s.commit.is_none());
        let map = map(before, now, same_base);
        // What the earlier change does not touch was there as the base has it.
        let base = now.filter(|_| same_base).and_then(|n| n.old.as_ref());
        let base = base.map(|(path, _)| Name { commit: None, path: path.clone(), is_there: true, is_bare: true });
        self.files.push(Pair { before: before.map(name).or(base), now: now.map(name), map });
    }

    fn before(&self, commit: Option<&str>, path: &str) -> Option<&Pair> {
        self.find(0, |p| p.before.as_ref(), commit, path)
    }

    fn now(&self, commit: Option<&str>, path: &str) -> Option<&Pair> {
        self.find(1, |p| p.now.as_ref(), commit, path)
    }

    fn find(
        &self,
        side: usize,
        name: impl Fn(&Pair) -> Option<&Name>,
        commit: Option<&str>,
        path: &str,
    ) -> Option<&Pair> {
        // Without a commit the newest state is meant: the last one of a range.
        let fits = |n: &Name| commit.is_none() || n.commit.as_deref() == commit;
        let all = self.index[side].get(path)?.iter().rev().map(|i| &self.files[*i]);
        all.into_iter().find(|p| name(p).is_some_and(fits))
    }

    /// Tells whether anything differs between the rounds; `None` where that cannot be told.
    pub fn differs(&self) -> Option<bool> {
        if self.unreadable {
            return None;
        }
        let all: Vec<_> = self.files.iter().map(Pair::differs).collect();
        match all.contains(&Some(true)) {
            true => Some(true),
            false => all.iter().all(Option::is_some).then_some(false),
        }
    }

    /// Tells whether a file of this round differs from what it was; `None` where that cannot be told.
    pub fn file_differs(&self, commit: Option<&str>, path: &str) -> Option<bool> {
        if self.unreadable {
            return None;
        }
        match self.now(commit, path).or_else(|| self.before(commit, path)) {
            Some(pair) => pair.differs(),
            // In neither change: base code in both.
            None => self.same_base.then_some(false),
        }
    }

    /// Tells whether a file is part of this round's change; `None` where that cannot be told.
    pub fn shows(&self, path: &str) -> Option<bool> {
        (!self.unreadable).then(|| self.now(None, path).is_some())
    }

    /// Tells whether this round's change deletes a file.
    pub fn is_deleted(&self, path: &str) -> bool {
        self.now(None, path).and_then(|p| p.now.as_ref()).is_some_and(|n| !n.is_there)
    }

    /// Tells whether this round's change has a file without a single line of it: there is nothing to ask about.
    pub fn is_bare(&self, path: &str) -> bool {
        self.now(None, path).and_then(|p| p.now.as_ref()).is_some_and(|n| n.is_bare)
    }

    /// Returns the path that a file of the earlier round has now; `None`: it is no part of the change any more, or
    /// that cannot be told.
    pub fn path(&self, commit: Option<&str>, path: &str) -> Option<&str> {
        Some(&self.before(commit, path)?.now.as_ref()?.path)
    }

    /// Tells where lines of the earlier round are now; `last` is included.
    pub fn place(&self, commit: Option<&str>, path: &str, first: u32, last: u32) -> Place {
        let Some(pair) = self.before(commit, path) else { return Place::Unknown };
        let Some(now) = &pair.now else {
            return if matches!(pair.map, Map::Unknown) { Place::Unknown } else { Place::Gone };
        };
        let at = |(lines, kept)| Place::At(Spot { file: now.path.clone(), commit: now.commit.clone(), lines, kept });
        pair.map.place(first.max(1), last.max(first).max(1)).map_or(Place::Unknown, at)
    }

    /// Tells whether some of these lines of this round are new since the earlier one, or lines before them went away;
    /// `None` where that cannot be told. `last` is included.
    pub fn is_new(&self, commit: Option<&str>, path: &str, first: u32, last: u32) -> Option<bool> {
        if self.unreadable {
            return None;
        }
        let pair = self.now(commit, path)?;
        match (&pair.before, &pair.map) {
            (None, Map::Unknown) => Some(true),
            _ => pair.map.is_new(first.max(1), last.max(first).max(1)),
        }
    }
}

impl Pair {
    fn differs(&self) -> Option<bool> {
        match &self.map {
            Map::Unknown => None,
            Map::Whole(runs) => {
                let same = matches!(runs[..], [Run { before: 1, now: 1, count: u32::MAX }]);
                let renamed = self.before.as_ref().zip(self.now.as_ref()).is_some_and(|(b, n)| b.path != n.path);
                Some(!same || renamed)
            }
            Map::Shown { runs, before, now } => {
                let shown = |ranges: &[Range<u32>]| ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
                let kept: usize = runs.iter().map(|r| r.count as usize).sum();
                Some(kept != shown(before) || kept != shown(now))
            }
        }
    }
}

/// The files of this round by their names.
struct Names<'n> {
    new: HashMap<&'n str, Vec<usize>>,
    old: HashMap<&'n str, Vec<usize>>,
}

impl<'n> Names<'n> {
    fn of(now: &'n [Shown]) -> Self {
        let mut out = Self { new: HashMap::new(), old: HashMap::new() };
        for (i, n) in now.iter().enumerate() {
            out.new.entry(&n.path).or_default().push(i);
            if let Some((old, _)) = &n.old {
                out.old.entry(old).or_default().push(i);
            }
        }
        out
    }

    /// Finds the file of this round that has the name of an earlier one, or the same name in the base.
    fn counterpart(&self, file: &Shown, now: &[Shown], taken: &[bool]) -> Option<usize> {
        let first = |all: Option<&Vec<usize>>, fits: &dyn Fn(&Shown) -> bool| {
            all?.iter().copied().find(|i| !taken[*i] && fits(&now[*i]))
        };
        let new = self.new.get(file.path.as_str());
        let by_old = |path: &str| first(self.old.get(path), &|n| n.is_there);
        first(new, &|n| n.commit == file.commit && n.is_there == file.is_there)
            .or_else(|| first(new, &|n| n.commit == file.commit))
            .or_else(|| first(new, &|_| true))
            .or_else(|| file.old.as_ref().and_then(|(path, _)| by_old(path)))
            .or_else(|| by_old(&file.path))
    }
}

/// Maps the lines of a file.
fn map(before: Option<&Shown>, now: Option<&Shown>, same_base: bool) -> Map {
    let same = || Map::Whole(vec![Run { before: 1, now: 1, count: u32::MAX }]);
    let (b, n) = match (before, now) {
        (Some(b), Some(n)) => (b, n),
        // In one change only: in the other it is as in the base.
        (Some(one), None) | (None, Some(one)) if same_base => {
            let base = one.as_base();
            let (b, n) = if before.is_some() { (one, &base) } else { (&base, one) };
            return whole(b, n).unwrap_or(Map::Unknown);
        }
        _ => return Map::Unknown,
    };
    if b.new_id.is_some() && b.new_id == n.new_id {
        return same();
    }
    // The change of before is the base of now.
    let follows = b.new_id.is_some() && n.old.as_ref().is_some_and(|(_, id)| *id == b.new_id);
    if follows && let Some(lines) = &n.hunks {
        return Map::Whole(runs_of(lines.iter().flat_map(|h| h.edits()), None));
    }
    let same_file = match (&b.old, &n.old) {
        (None, None) => true,
        (Some((_, Some(one))), Some((_, Some(other)))) => one == other,
        (Some((one, _)), Some((other, _))) => same_base && one == other,
        _ => false,
    };
    if same_file {
        return whole(b, n).unwrap_or(Map::Unknown);
    }
    shown(b, n).unwrap_or(Map::Unknown)
}

/// Maps two versions of one base file.
fn whole(before: &Shown, now: &Shown) -> Option<Map> {
    let (b, n) = (before.hunks.as_deref()?, now.hunks.as_deref()?);
    let mut edits = Vec::new();
    for window in windows(b.iter().chain(n).map(|h| h.old.clone())) {
        let (old_first, old) = version(b, n, &window)?;
        let (new_first, new) = version(n, b, &window)?;
        let replaced = diff::replaced(&old, &new);
        let from = |first: u32, r: Range<u32>| first + r.start..first + r.end;
        edits.extend(replaced.into_iter().map(|(o, n)| (from(old_first, o), from(new_first, n))));
    }
    Some(Map::Whole(runs_of(edits.into_iter(), None)))
}

/// Returns the ranges as few as they can be: those that touch are one.
fn windows(ranges: impl Iterator<Item = Range<u32>>) -> Vec<Range<u32>> {
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

/// Writes what a version has in place of a range of the base, and the number of its first line. `other` shows the
/// base where the version has no hunk.
fn version(hunks: &[read::Hunk], other: &[read::Hunk], window: &Range<u32>) -> Option<(u32, Vec<u8>)> {
    let mut text = Vec::new();
    let before = hunks.iter().take_while(|h| h.old.end <= window.start && h.old.start < window.start);
    let shift: i64 = before.map(|h| i64::from(h.added()) - i64::from(h.removed())).sum();
    let first = u32::try_from(i64::from(window.start) + shift).ok()?;
    let mut at = window.start;
    let mut own = hunks.iter().filter(|h| h.old.start >= window.start && h.old.end <= window.end).peekable();
    loop {
        if let Some(h) = own.next_if(|h| h.old.start == at) {
            h.new_lines().for_each(|l| push(l, &mut text));
            at = h.old.end;
            continue;
        }
        if at == window.end {
            return Some((first, text));
        }
        let stop = own.peek().map_or(window.end, |h| h.old.start);
        for h in other.iter().filter(|h| h.old.start < stop) {
            if h.old.end <= at {
                continue;
            }
            // Base lines that neither shows lie in no window.
            let to = stop.min(h.old.end);
            h.old_lines(at..to)?.for_each(|l| push(l, &mut text));
            at = to;
        }
        if at != stop {
            return None;
        }
    }
}

fn push(line: &[u8], text: &mut Vec<u8>) {
    text.extend_from_slice(diff::trim_line_end(line));
    text.push(b'\n');
}

/// Maps what is shown of two versions of different base files.
fn shown(before: &Shown, now: &Shown) -> Option<Map> {
    let side = |s: &Shown| {
        let (mut text, mut numbers, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        for h in s.hunks.as_deref()? {
            ranges.push(h.new.clone());
            numbers.extend(h.new.clone());
            h.new_lines().for_each(|l| push(l, &mut text));
        }
        Some((text, numbers, ranges))
    };
    let (old, old_numbers, before) = side(before)?;
    let (new, new_numbers, now) = side(now)?;
    let (mut runs, mut at): (Vec<Run>, (usize, usize)) = (Vec::new(), (0, 0));
    let ends = (old_numbers.len() as u32, new_numbers.len() as u32);
    let edits = diff::replaced(&old, &new).into_iter().chain([(ends.0..ends.0, ends.1..ends.1)]);
    for (o, n) in edits {
        for (b, n) in old_numbers.get(at.0..o.start as usize)?.iter().zip(new_numbers.get(at.1..n.start as usize)?) {
            match runs.last_mut() {
                Some(r) if r.before + r.count == *b && r.now + r.count == *n => r.count += 1,
                _ => runs.push(Run { before: *b, now: *n, count: 1 }),
            }
        }
        at = (o.end as usize, n.end as usize);
    }
    Some(Map::Shown { runs, before, now })
}

/// Returns the runs between edits: ranges of lines from 1, in order.
fn runs_of(edits: impl Iterator<Item = (Range<u32>, Range<u32>)>, end: Option<u32>) -> Vec<Run> {
    let (mut runs, mut at) = (Vec::new(), (1, 1));
    for (b, n) in edits {
        let count = b.start.saturating_sub(at.0);
        if count > 0 {
            runs.push(Run { before: at.0, now: at.1, count });
        }
        at = (b.end, n.end);
    }
    let count = end.map_or(u32::MAX, |end| end.saturating_sub(at.0));
    if count > 0 {
        runs.push(Run { before: at.0, now: at.1, count });
    }
    runs
}

impl Run {
    fn end(&self) -> u32 {
        self.before.saturating_add(self.count)
    }

    fn now_end(&self) -> u32 {
        self.now.saturating_add(self.count)
    }
}

impl Map {
    fn runs(&self) -> &[Run] {
        match self {
            Self::Unknown => &[],
            Self::Whole(runs) | Self::Shown { runs, .. } => runs,
        }
    }

    /// Tells what stands in place of lines of before, `last` included; `None`: that cannot be told.
    fn place(&self, first: u32, last: u32) -> Option<(Range<u32>, Kept)> {
        if matches!(self, Self::Unknown) {
            return None;
        }
        let holds = |r: &&Run, n: u32| r.before <= n && n < r.end();
        let runs = self.runs();
        if let Some(r) = runs.iter().find(|r| holds(r, first) && holds(r, last)) {
            let start = first - r.before + r.now;
            let whole = self.is_whole_around(r, first, last);
            let kept = if whole { Kept::Whole } else { Kept::Lines };
            return Some((start..start + (last - first) + 1, kept));
        }
        // What lies between the neighbours that are still there.
        let above = runs.iter().rev().find(|r| r.before < first);
        let below = runs.iter().find(|r| r.end() > last);
        let start = above.map(|r| if first < r.end() { r.now + (first - r.before) } else { r.now_end() });
        let end = below.map(|r| if last >= r.before { r.now + (last - r.before) + 1 } else { r.now });
        match self {
            Self::Shown { now, .. } => {
                // Only between two that are shown next to each other is known what is not there.
                let (start, end) = (start?, end?);
                let together = now.iter().any(|r| r.start <= start && end <= r.end);
                (together && start <= end).then_some((start..end, Kept::Not))
            }
            _ => {
                let start = start.unwrap_or(1);
                Some((start..end.unwrap_or(u32::MAX).max(start), Kept::Not))
            }
        }
    }

    /// Tells whether the lines around a place are in the same run, or were shown in neither.
    fn is_whole_around(&self, run: &Run, first: u32, last: u32) -> bool {
        let (above, below) = (first.saturating_sub(NEAR).max(1), last.saturating_add(NEAR));
        let shown = |n: u32| match self {
            Self::Shown { before, .. } => before.iter().any(|r| r.contains(&n)),
            _ => true,
        };
        let missing = |n: &u32| !(run.before <= *n && *n < run.end()) && shown(*n);
        !(above..first).chain(last + 1..=below).any(|n| missing(&n))
    }

    fn is_new(&self, first: u32, last: u32) -> Option<bool> {
        let holds = |r: &&Run, n: u32| r.now <= n && n < r.now_end();
        let (runs, from) = (self.runs(), first.saturating_sub(1).max(1));
        match self {
            Self::Unknown => None,
            Self::Whole(_) => {
                let one = runs.iter().any(|r| holds(&r, from) && holds(&r, last));
                // At the start of a file nothing can have gone above it unless the first run says so.
                let at_top = first == 1 && runs.iter().any(|r| r.before == 1 && r.now == 1 && holds(&r, last));
                Some(!(if first == 1 { at_top } else { one }))
            }
            Self::Shown { now, .. } => {
                let shown = |n: u32| now.iter().any(|r| r.contains(&n));
                let kept = |n: u32| runs.iter().any(|r| holds(&r, n));
                Some((first..=last).any(|n| shown(n) && !kept(n)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
