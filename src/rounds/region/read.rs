//! Parses a stored change into files with their hunks.

use super::RoundChange;
use crate::diff::{self, Body, FileChange, LineKind, ObjectId};
use crate::review::Record;
use std::collections::HashMap;
use std::ops::Range;

/// A file of a change.
#[derive(Clone, Debug)]
pub(super) struct RecordedFile {
    pub(super) commit: Option<String>,
    /// Path on the new side, or the old one for a deletion, as in reports.
    pub(super) path: String,
    /// Whether there is a new side.
    pub(super) is_there: bool,
    /// Path and content of the old side.
    pub(super) old: Option<(String, Option<ObjectId>)>,
    pub(super) new_id: Option<ObjectId>,
    /// `None` if the lines are unknown.
    pub(super) hunks: Option<Vec<Hunk>>,
}

/// A hunk; ranges of lines from 1.
#[derive(Clone, Debug)]
pub(super) struct Hunk {
    pub(super) old: Range<u32>,
    pub(super) new: Range<u32>,
    lines: Vec<(LineKind, Vec<u8>)>,
    /// Indices of the old side's lines among them.
    olds: Vec<usize>,
}

/// Parses a change, or returns `None` if it is invalid.
pub(super) fn files(side: RoundChange<'_>) -> Option<Vec<RecordedFile>> {
    let read = Record::read(side.text)?.into_iter();
    Some(
        read.map(|(commit, change)| {
            RecordedFile::of(&change, commit.map(|c| c.to_string()), side.left_out)
        })
        .collect(),
    )
}

/// Returns the files of a change with their commits, or `None` if it is invalid.
pub(in crate::rounds) fn changes(text: &[u8]) -> Option<Vec<(Option<String>, FileChange)>> {
    let read = Record::read(text)?.into_iter();
    Some(
        read.map(|(commit, change)| (commit.map(|c| c.to_string()), change))
            .collect(),
    )
}

impl RecordedFile {
    fn of(change: &FileChange, commit: Option<String>, left_out: &[String]) -> Self {
        let entry = &change.entry;
        let path = change.path().to_wire();
        let hunks = match &change.body {
            _ if left_out.contains(&path) => None,
            Body::Text(text) => Some(text.hunks.iter().map(|h| Hunk::of(h, text)).collect()),
            Body::Same => Some(Vec::new()),
            Body::Binary(_) | Body::Submodule { .. } => None,
        };
        Self {
            commit,
            path,
            is_there: entry.new.is_some(),
            old: entry.old.as_ref().map(|s| (s.path.to_wire(), s.id)),
            new_id: entry.new.as_ref().and_then(|s| s.id),
            hunks,
        }
    }

    /// Returns the file without the change.
    pub(super) fn as_base(&self) -> Self {
        let new_id = self.old.as_ref().and_then(|(_, id)| *id);
        Self {
            new_id,
            hunks: Some(Vec::new()),
            ..self.clone()
        }
    }

    /// Returns the lines that two new files have in common, as a percentage of the larger one.
    pub(super) fn likeness(&self, other: &Self) -> usize {
        if self.old.is_some() || other.old.is_some() || !other.is_there {
            return 0;
        }
        if self.new_id.is_some() && self.new_id == other.new_id {
            return 100;
        }
        let (size, other_size) = (self.size(), other.size());
        if size / 3 > other_size || other_size / 3 > size {
            return 0;
        }
        let (ours, theirs) = (self.trimmed_lines(), other.trimmed_lines());
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for line in &ours {
            *counts.entry(line).or_default() += 1;
        }
        let mut common = 0;
        for line in &theirs {
            if let Some(n) = counts.get_mut(line.as_slice()).filter(|n| **n > 0) {
                *n -= 1;
                common += 1;
            }
        }
        common * 100 / ours.len().max(theirs.len()).max(1)
    }

    /// Returns the number of lines that the change shows on the new side.
    fn size(&self) -> u32 {
        self.hunks.iter().flatten().map(Hunk::added).sum()
    }

    /// Returns the lines of the new side that are not blank, without white space around them.
    fn trimmed_lines(&self) -> Vec<Vec<u8>> {
        let all = self.hunks.iter().flatten().flat_map(Hunk::new_lines);
        all.map(<[u8]>::trim_ascii)
            .filter(|l| !l.is_empty())
            .map(<[u8]>::to_vec)
            .collect()
    }
}

impl Hunk {
    /// Copies a hunk of a parsed change.
    fn of(h: &diff::Hunk, change: &diff::TextChange) -> Self {
        let lines: Vec<_> = change.lines(h).map(|l| (l.kind, l.text.to_vec())).collect();
        let olds = lines
            .iter()
            .enumerate()
            .filter(|(_, (kind, _))| *kind != LineKind::Added);
        Self {
            old: h.old.start..h.old.start.saturating_add(h.old.count),
            new: h.new.start..h.new.start.saturating_add(h.new.count),
            olds: olds.map(|(i, _)| i).collect(),
            lines,
        }
    }

    /// Returns the lines of the new side.
    pub(super) fn new_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(|(kind, _)| *kind != LineKind::Removed)
            .map(|(_, text)| &text[..])
    }

    /// Returns the lines of the new side, each with its number and whether it is added.
    pub(super) fn numbered(&self) -> impl Iterator<Item = (u32, &[u8], bool)> {
        let new = self
            .lines
            .iter()
            .filter(|(kind, _)| *kind != LineKind::Removed);
        new.zip(self.new.start..)
            .map(|((kind, text), n)| (n, &text[..], *kind == LineKind::Added))
    }

    /// Returns the lines of the old side, each with its number.
    pub(super) fn old_numbered(&self) -> impl Iterator<Item = (u32, &[u8])> {
        self.olds
            .iter()
            .zip(self.old.start..)
            .map(|(i, n)| (n, &self.lines[*i].1[..]))
    }

    /// Returns the lines of the old side with these numbers.
    pub(super) fn old_lines(&self, numbers: Range<u32>) -> Option<impl Iterator<Item = &[u8]>> {
        let skip = numbers.start.checked_sub(self.old.start)? as usize;
        let some = self
            .olds
            .get(skip..skip.saturating_add(numbers.len()).min(self.olds.len()))?;
        Some(some.iter().map(|i| &self.lines[*i].1[..]))
    }

    pub(super) fn added(&self) -> u32 {
        self.new.end - self.new.start
    }

    pub(super) fn removed(&self) -> u32 {
        self.old.end - self.old.start
    }

    /// Returns the replaced ranges of lines, old and new.
    pub(super) fn edits(&self) -> Vec<(Range<u32>, Range<u32>)> {
        let mut out: Vec<(Range<u32>, Range<u32>)> = Vec::new();
        let (mut old, mut new) = (self.old.start, self.new.start);
        for (kind, _) in &self.lines {
            let is_open = out
                .last()
                .is_some_and(|(o, n)| o.end == old && n.end == new);
            if *kind != LineKind::Context && !is_open {
                out.push((old..old, new..new));
            }
            old += u32::from(*kind != LineKind::Added);
            new += u32::from(*kind != LineKind::Removed);
            if *kind != LineKind::Context
                && let Some(last) = out.last_mut()
            {
                (last.0.end, last.1.end) = (old, new);
            }
        }
        out
    }
}
