//! Aligns the lines of two stored changes. Pure.
//!
//! If both changes start from the same file, the alignment is exact: the lines in hunks of either
//! change are compared, and lines outside of all hunks are the same base code, shifted by the
//! changes above. If they start from different files, only lines that both changes show can be
//! matched.

mod map;
mod read;
mod text;

use map::{EqualRun, Map, map};
use read::RecordedFile;
pub(in crate::rounds) use read::changes;
use std::collections::HashMap;
use std::ops::Range;
pub(in crate::rounds) use text::{FileText, FoldedLine, folded, lines};

/// Lines around a position that belong to it: a change there may be a fix for a finding.
const NEAR: u32 = 3;
/// Percentage of common lines from which a new file counts as a renamed one that is gone.
const LIKE: usize = 50;
/// Files without a counterpart that are compared with each other, at most.
const STRAYS: usize = 64;

/// The stored change of a round.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundChange<'a> {
    /// A unified diff with secrets masked.
    pub text: &'a [u8],
    /// Files whose lines are omitted from it.
    pub left_out: &'a [String],
}

/// The alignment of two changes.
#[derive(Debug, Default)]
pub struct Alignment {
    before: Vec<RecordedFile>,
    now: Vec<RecordedFile>,
    files: Vec<FilePair>,
    /// Indices of files by path, in the earlier round and in this one.
    index: [HashMap<String, Vec<usize>>; 2],
    /// Whether both start from the same state: a file in only one of them is base code in the
    /// other.
    same_base: bool,
    /// Whether one of them is unreadable.
    unreadable: bool,
}

/// A file of the earlier round, of this one, or of both.
#[derive(Debug)]
struct FilePair {
    before: Option<NamedFile>,
    now: Option<NamedFile>,
    map: Map,
    /// Index of the file in the earlier round's change and in this one's.
    shown: [Option<usize>; 2],
    /// Whether a file in only one of the two changes is base code in the other.
    same_base: bool,
}

/// A file of a change; in a range of commits, each commit has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedFile {
    commit: Option<String>,
    path: String,
    /// Whether the file exists, that is, is not deleted.
    is_there: bool,
    /// Whether the change has no line of it: an empty file, or only another mode or name.
    is_bare: bool,
}

impl NamedFile {
    /// Returns the name of a file that a change shows.
    fn of(file: &RecordedFile) -> Self {
        Self {
            commit: file.commit.clone(),
            path: file.path.clone(),
            is_there: file.is_there,
            is_bare: file.hunks.as_ref().is_some_and(Vec::is_empty),
        }
    }
}

/// The current position of lines of the earlier round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinePosition {
    /// The position of their current content.
    At(MovedLines),
    /// The change no longer includes the file.
    Gone,
    Unknown,
}

/// The current position of lines, and how much they changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedLines {
    /// Current path, as in reports.
    pub file: String,
    pub commit: Option<String>,
    /// Current lines from 1, end excluded; empty if none remain.
    pub lines: Range<u32>,
    pub kept: Preserved,
}

impl MovedLines {
    /// Returns the lines, or if none remain, the line that follows them: a finding there can be
    /// about the same code.
    pub(super) fn at_least_one(&self) -> Range<u32> {
        self.lines.start..self.lines.end.max(self.lines.start.saturating_add(1))
    }
}

/// How much of a position is unmodified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preserved {
    /// The lines and their surroundings.
    Whole,
    /// The lines, but not their surroundings.
    Lines,
    /// Some of the lines changed.
    Not,
}

impl Alignment {
    /// Aligns two changes. `same_base` is true if both are known to start from the same state.
    pub fn between(before: RoundChange<'_>, now: RoundChange<'_>, same_base: bool) -> Self {
        let (Some(before), Some(now)) = (read::files(before), read::files(now)) else {
            return Self {
                unreadable: true,
                ..Self::default()
            };
        };
        let mut out = Self {
            same_base,
            ..Self::default()
        };
        let mut taken = vec![false; now.len()];
        let mut alone = Vec::new();
        let names = FilesByName::of(&now);
        for (b, file) in before.iter().enumerate() {
            match names.counterpart(file, &now, &taken) {
                Some(i) => {
                    taken[i] = true;
                    out.push(&before, Some(b), &now, Some(i));
                }
                None => alone.push(b),
            }
        }
        // A new file that was renamed.
        let new = (0..now.len()).filter(|i| !taken[*i] && now[*i].old.is_none());
        let mut strays: Vec<usize> = new.take(STRAYS).collect();
        for (nth, b) in alone.into_iter().enumerate() {
            let tried = if nth < STRAYS { &strays[..] } else { &[] };
            let like = tried
                .iter()
                .map(|i| (before[b].likeness(&now[*i]), *i))
                .filter(|(share, _)| *share >= LIKE);
            let found = like
                .max_by_key(|(share, i)| (*share, std::cmp::Reverse(*i)))
                .map(|(_, i)| i);
            if let Some(i) = found {
                taken[i] = true;
                strays.retain(|s| *s != i);
            }
            out.push(&before, Some(b), &now, found);
        }
        for (n, _) in taken.iter().enumerate().filter(|(_, taken)| !**taken) {
            out.push(&before, None, &now, Some(n));
        }
        for (i, pair) in out.files.iter().enumerate() {
            for (side, name) in [(0, &pair.before), (1, &pair.now)] {
                if let Some(name) = name {
                    out.index[side]
                        .entry(name.path.clone())
                        .or_default()
                        .push(i);
                }
            }
        }
        (out.before, out.now) = (before, now);
        out
    }

    /// Adds the pair of a file before and now, by their indices.
    fn push(
        &mut self,
        before: &[RecordedFile],
        b: Option<usize>,
        now: &[RecordedFile],
        n: Option<usize>,
    ) {
        let shown = [b, n];
        let (before, now) = (b.map(|b| &before[b]), n.map(|n| &now[n]));
        // The commits of a range start from each other.
        let same_base = self.same_base
            && [before, now]
                .into_iter()
                .flatten()
                .all(|s| s.commit.is_none());
        let map = map(before, now, same_base);
        // A file that the earlier change does not include is as in the base.
        let base = now.filter(|_| same_base).and_then(|n| n.old.as_ref());
        let base = base.map(|(path, _)| NamedFile {
            commit: None,
            path: path.clone(),
            is_there: true,
            is_bare: true,
        });
        self.files.push(FilePair {
            before: before.map(NamedFile::of).or(base),
            now: now.map(NamedFile::of),
            map,
            shown,
            same_base,
        });
    }

    /// Returns the pair of a file of the earlier round.
    fn before(&self, commit: Option<&str>, path: &str) -> Option<&FilePair> {
        self.find(0, |p| p.before.as_ref(), commit, path)
            .map(|i| &self.files[i])
    }

    /// Returns the pair of a file of this round.
    fn now(&self, commit: Option<&str>, path: &str) -> Option<&FilePair> {
        self.find(1, |p| p.now.as_ref(), commit, path)
            .map(|i| &self.files[i])
    }

    /// Returns the index of a file on one side: 0 for the earlier round, 1 for this one.
    fn find(
        &self,
        side: usize,
        name: impl Fn(&FilePair) -> Option<&NamedFile>,
        commit: Option<&str>,
        path: &str,
    ) -> Option<usize> {
        // Without a commit, use the newest state: the last one of a range.
        let mut all = self.index[side].get(path)?.iter().rev().copied();
        all.find(|i| {
            name(&self.files[*i]).is_some_and(|n| commit.is_none() || n.commit.as_deref() == commit)
        })
    }

    /// Returns the known lines of every file, in the order of [`Alignment::text_of`].
    pub fn texts(&self) -> Vec<FileText> {
        let texts = self.files.iter().map(|p| {
            let [before, now] = p.shown;
            FileText::of(
                p,
                before.and_then(|i| self.before.get(i)),
                now.and_then(|i| self.now.get(i)),
            )
        });
        texts.collect()
    }

    /// Returns the index in [`Alignment::texts`] of a file of the earlier round.
    pub fn text_of(&self, commit: Option<&str>, path: &str) -> Option<usize> {
        self.find(0, |p| p.before.as_ref(), commit, path)
    }

    /// Returns true if this round's change has every file of the earlier round's for which
    /// `matters` is true.
    pub fn has_all(&self, matters: impl Fn(&str) -> bool) -> bool {
        let earlier = self
            .files
            .iter()
            .filter(|p| p.shown[0].is_some() && p.now.is_none());
        !earlier
            .filter_map(|p| p.before.as_ref())
            .any(|name| matters(&name.path))
    }

    /// Returns true if the earlier round's change has a file, and does not delete it.
    pub fn had(&self, commit: Option<&str>, path: &str) -> bool {
        let found = self.before(commit, path);
        found.is_some_and(|p| p.shown[0].is_some() && p.before.as_ref().is_some_and(|b| b.is_there))
    }

    /// Returns true if both rounds' changes have a file, and the lines of one of the two are
    /// unknown, so that the fate of its text is unknown too.
    pub fn lacks(&self, commit: Option<&str>, path: &str) -> bool {
        let Some(pair) = self.before(commit, path) else {
            return false;
        };
        let [before, now] = pair.shown;
        let before = before.and_then(|i| self.before.get(i));
        let now = now.and_then(|i| self.now.get(i)).filter(|n| n.is_there);
        now.is_some_and(|n| n.hunks.is_none() || before.is_some_and(|b| b.hunks.is_none()))
    }

    /// Returns the index in [`Alignment::texts`] of a file of this round.
    pub fn text_now(&self, path: &str) -> Option<usize> {
        self.find(1, |p| p.now.as_ref(), None, path)
    }

    /// Returns true if anything differs between the rounds, or `None` if that is unknown.
    pub fn differs(&self) -> Option<bool> {
        if self.unreadable {
            return None;
        }
        let all: Vec<_> = self.files.iter().map(FilePair::differs).collect();
        match all.contains(&Some(true)) {
            true => Some(true),
            false => all.iter().all(Option::is_some).then_some(false),
        }
    }

    /// Returns true if a file of this round differs from the earlier one, or `None` if that is
    /// unknown.
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

    /// Returns true if this round's change has a file, or `None` if that is unknown.
    pub fn shows(&self, path: &str) -> Option<bool> {
        (!self.unreadable).then(|| self.now(None, path).is_some())
    }

    /// Returns true if this round's change deletes a file.
    pub fn is_deleted(&self, path: &str) -> bool {
        self.now(None, path)
            .and_then(|p| p.now.as_ref())
            .is_some_and(|n| !n.is_there)
    }

    /// Returns true if this round's change has a file without any line of it, so that there is
    /// nothing to review.
    pub fn is_bare(&self, path: &str) -> bool {
        self.now(None, path)
            .and_then(|p| p.now.as_ref())
            .is_some_and(|n| n.is_bare)
    }

    /// Returns the current path of a file of the earlier round, or `None` if the change no longer
    /// has it, or that is unknown.
    pub fn path(&self, commit: Option<&str>, path: &str) -> Option<&str> {
        Some(&self.before(commit, path)?.now.as_ref()?.path)
    }

    /// Returns the current position of lines of the earlier round; `last` is included.
    pub fn place(&self, commit: Option<&str>, path: &str, first: u32, last: u32) -> LinePosition {
        let Some(pair) = self.before(commit, path) else {
            return LinePosition::Unknown;
        };
        let Some(now) = &pair.now else {
            return if matches!(pair.map, Map::Unknown) {
                LinePosition::Unknown
            } else {
                LinePosition::Gone
            };
        };
        match pair.map.place(first.max(1), last.max(first).max(1)) {
            Some((lines, kept)) => LinePosition::At(MovedLines {
                file: now.path.clone(),
                commit: now.commit.clone(),
                lines,
                kept,
            }),
            None => LinePosition::Unknown,
        }
    }

    /// Returns true if some of these lines of this round are new since the earlier one, or lines
    /// directly above them were removed. Returns `None` if that is unknown. `last` is included.
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

impl FilePair {
    /// Returns true if the file differs between the rounds, or `None` if that is unknown.
    fn differs(&self) -> Option<bool> {
        match &self.map {
            Map::Unknown => None,
            Map::Whole(runs) => {
                let same = matches!(
                    runs[..],
                    [EqualRun {
                        before: 1,
                        now: 1,
                        count: u32::MAX
                    }]
                );
                let renamed = self
                    .before
                    .as_ref()
                    .zip(self.now.as_ref())
                    .is_some_and(|(b, n)| b.path != n.path);
                Some(!same || renamed)
            }
            Map::Shown { runs, before, now } => {
                let kept: usize = runs.iter().map(|r| r.count as usize).sum();
                Some(
                    [before, now].iter().any(|ranges| {
                        kept != ranges.iter().map(ExactSizeIterator::len).sum::<usize>()
                    }),
                )
            }
        }
    }
}

/// The files of this round by name.
struct FilesByName<'n> {
    new: HashMap<&'n str, Vec<usize>>,
    old: HashMap<&'n str, Vec<usize>>,
}

impl<'n> FilesByName<'n> {
    /// Indexes the files of this round.
    fn of(now: &'n [RecordedFile]) -> Self {
        let mut out = Self {
            new: HashMap::new(),
            old: HashMap::new(),
        };
        for (i, n) in now.iter().enumerate() {
            out.new.entry(&n.path).or_default().push(i);
            if let Some((old, _)) = &n.old {
                out.old.entry(old).or_default().push(i);
            }
        }
        out
    }

    /// Finds the file of this round with the name of an earlier one, or with the same name in the
    /// base.
    fn counterpart(
        &self,
        file: &RecordedFile,
        now: &[RecordedFile],
        taken: &[bool],
    ) -> Option<usize> {
        let new = self.new.get(file.path.as_str());
        let old = [file.old.as_ref().map(|(path, _)| path), Some(&file.path)];
        free(new, taken)
            .find(|i| now[*i].commit == file.commit && now[*i].is_there == file.is_there)
            .or_else(|| free(new, taken).find(|i| now[*i].commit == file.commit))
            .or_else(|| free(new, taken).next())
            .or_else(|| {
                let mut paths = old.into_iter().flatten();
                paths.find_map(|path| {
                    free(self.old.get(path.as_str()), taken).find(|i| now[*i].is_there)
                })
            })
    }
}

/// Returns the indices of files that have no counterpart yet.
fn free(all: Option<&Vec<usize>>, taken: &[bool]) -> impl Iterator<Item = usize> {
    all.into_iter().flatten().copied().filter(|i| !taken[*i])
}

#[cfg(test)]
mod tests;
