//! The reviewed change as text, for the store, with its secrets masked.

use super::resolved::ChangePart;
use crate::ai::redact::is_sensitive;
use crate::diff::{
    BinaryChange, Body, Entry, FileChange, Hunk, LineKind, LineNo, ObjectId, RepoPath, Side,
    TextChange, patch, unified,
};
use crate::error::Result;
use crate::hex;
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};
use sha2::{Digest as _, Sha256};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one file's patch, and of all patches together, at most. Files past the limit are only
/// listed.
const MOST_OF_A_FILE: usize = 4 << 20;
const MOST: usize = 16 << 20;

/// A change as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// A unified diff. The positions of lines do not change; a masked secret, in a line or in a
    /// file name, keeps its length.
    pub text: Vec<u8>,
    /// Files whose lines are not in the text.
    pub left_out: Vec<String>,
}

impl Record {
    /// Returns the SHA-256 of the text in hexadecimal.
    pub fn hash(&self) -> String {
        hex::encode(&Sha256::digest(&self.text))
    }

    /// Parses the text of a record: the files, each with its commit if there are several. `None` if
    /// the text is invalid.
    pub fn read(text: &[u8]) -> Option<Vec<(Option<ObjectId>, FileChange)>> {
        let mut out = Vec::new();
        for (commit, text) in parts(text) {
            out.extend(
                patch::parse_kept(text)
                    .ok()?
                    .into_iter()
                    .map(|change| (commit, change)),
            );
        }
        Some(out)
    }

    /// Returns the text of each file, in order.
    pub fn files(&self) -> impl Iterator<Item = &[u8]> {
        // No line of a hunk starts like that.
        const START: &[u8] = b"diff --git ";
        let is_line_start = |at: usize| at == 0 || self.text.get(at - 1) == Some(&b'\n');
        let starts: Vec<usize> = memchr::memmem::find_iter(&self.text, START)
            .filter(|at| is_line_start(*at))
            .collect();
        let ends: Vec<usize> = starts
            .iter()
            .skip(1)
            .copied()
            .chain([self.text.len()])
            .collect();
        starts
            .into_iter()
            .zip(ends)
            .filter_map(|(start, end)| self.text.get(start..end))
    }

    /// Sorts the pieces of all threads in the order of the change.
    pub(super) fn of(mut pieces: Vec<RecordPiece>) -> Self {
        pieces.sort_by_key(|p| p.order);
        let mut out = Self::default();
        let mut commit = None;
        for p in pieces {
            if p.commit.is_some() && p.commit != commit {
                commit = p.commit.clone();
                out.text.extend_from_slice(
                    format!("commit {}\n", p.commit.as_deref().unwrap_or_default()).as_bytes(),
                );
            }
            out.text.extend(p.text);
            out.left_out.extend(p.left_out);
        }
        out
    }
}

/// Splits the text at its `commit` lines. No line of a hunk starts like that.
fn parts(text: &[u8]) -> Vec<(Option<ObjectId>, &[u8])> {
    let mut out: Vec<(Option<ObjectId>, Range<usize>)> = vec![(None, 0..0)];
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        let end = at + line.len();
        match commit_of(line.strip_suffix(b"\n").unwrap_or(line)) {
            Some(id) => out.push((Some(id), end..end)),
            None => {
                if let Some(last) = out.last_mut() {
                    last.1.end = end;
                }
            }
        }
        at = end;
    }
    out.into_iter()
        .filter(|(_, r)| !r.is_empty())
        .map(|(c, r)| (c, &text[r]))
        .collect()
}

/// Returns the commit that a line starts the changes of.
fn commit_of(line: &[u8]) -> Option<ObjectId> {
    ObjectId::from_hex(std::str::from_utf8(line.strip_prefix(b"commit ")?).ok()?)
}

/// The line numbers of a changed file whose text is not in the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// `None`: the file is new.
    pub old: Option<RepoPath>,
    pub new: RepoPath,
    pub hunks: Vec<Vec<Run>>,
}

/// Consecutive lines of the new side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Number of the first line, 1-based.
    pub new: u32,
    pub count: u32,
    /// Number of the first line on the old side. For added lines, the old line that precedes them.
    pub old: u32,
    pub is_added: bool,
}

impl Numbers {
    fn of(entry: &Entry, text: &TextChange) -> Option<Self> {
        let new = entry.new.as_ref()?.path.clone();
        let hunks = text.hunks.iter().map(|hunk| runs(text, hunk)).collect();
        Some(Self {
            old: entry.old.as_ref().map(|s| s.path.clone()),
            new,
            hunks,
        })
    }
}

/// Returns the lines of the new side of a hunk as runs.
fn runs(text: &TextChange, hunk: &Hunk) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut behind = hunk.old.start.saturating_sub(1);
    for line in text.lines(hunk) {
        if let Some(old) = line.old {
            behind = old.get();
        }
        let Some(new) = line.new.map(LineNo::get) else {
            continue;
        };
        let is_added = line.kind == LineKind::Added;
        match runs.last_mut() {
            Some(run)
                if run.is_added == is_added
                    && run.new + run.count == new
                    && run.follows(behind) =>
            {
                run.count += 1;
            }
            _ => runs.push(Run {
                new,
                count: 1,
                old: behind,
                is_added,
            }),
        }
    }
    runs
}

impl Run {
    /// Returns true if a line at `old` on the old side continues the run.
    fn follows(&self, old: u32) -> bool {
        old == if self.is_added {
            self.old
        } else {
            self.old + self.count
        }
    }
}

/// The part of a record for one file.
#[derive(Debug)]
pub(super) struct RecordPiece {
    /// Index of the part of the change and of the entry in it.
    order: (usize, usize),
    commit: Option<String>,
    text: Vec<u8>,
    left_out: Option<String>,
    /// Present if the text of the file is left out.
    pub(super) numbers: Option<Numbers>,
}

impl RecordPiece {
    /// Returns the positions of pieces in the change, sorted.
    pub(super) fn order(pieces: &[Self]) -> Vec<(usize, usize)> {
        let mut order: Vec<_> = pieces.iter().map(|p| p.order).collect();
        order.sort_unstable();
        order
    }
}

/// Limits the size of the record across all threads.
#[derive(Debug)]
pub(super) struct Recorder {
    bytes: AtomicUsize,
    /// Rules for masking names, independent of the policy: rounds are compared by name, and the
    /// policy can change between two rounds.
    names: RuleSet,
}

impl Recorder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            bytes: AtomicUsize::new(0),
            names: RuleSet::new(&RulesPolicy::default(), &[])?,
        })
    }

    /// Returns an entry with masked paths.
    fn entry(&self, entry: &Entry) -> Entry {
        let [old, new] =
            [&entry.old, &entry.new].map(|side| side.as_ref().map(|side| self.side(side)));
        Entry {
            kind: entry.kind,
            old,
            new,
        }
    }

    fn side(&self, side: &Side) -> Side {
        Side {
            path: self.name(&side.path),
            ..side.clone()
        }
    }

    fn name(&self, path: &RepoPath) -> RepoPath {
        RepoPath::new(self.names.mask(path.as_bytes()).into_owned())
    }

    /// Writes the record of a file's change; `None` if it does not belong to the net change.
    pub(super) fn piece(
        &self,
        part: &ChangePart,
        order: (usize, usize),
        file: &FileChange,
        rules: &RuleSet,
    ) -> Option<RecordPiece> {
        if part.scope != Scope::All {
            return None;
        }
        let commit = part.commit.map(|id| id.to_string());
        let Body::Text(lines) = &file.body else {
            let mut text = Vec::new();
            let body = match &file.body {
                // A patch names a binary file without its content, so the content need not be
                // copied.
                Body::Binary(_) => Body::Binary(BinaryChange::default()),
                other => other.clone(),
            };
            unified::write(&self.kept(file, body), &mut text);
            return Some(RecordPiece {
                order,
                commit,
                text,
                left_out: None,
                numbers: None,
            });
        };
        if file.entry.sides().any(|side| is_sensitive(&side.path)) {
            return Some(self.without_lines(order, commit, file));
        }
        let size: usize = lines
            .hunks
            .iter()
            .map(|h| h.old.size() + h.new.size())
            .sum();
        if size > MOST_OF_A_FILE || self.bytes.fetch_add(size, Ordering::Relaxed) + size > MOST {
            return Some(self.without_lines(order, commit, file));
        }
        let masked = lines.masked(&|text| rules.hidden(text));
        let mut text = Vec::new();
        unified::write(&self.kept(file, Body::Text(masked)), &mut text);
        Some(RecordPiece {
            order,
            commit,
            text,
            left_out: None,
            numbers: None,
        })
    }

    /// Returns a file's change with masked paths and this content.
    fn kept(&self, file: &FileChange, body: Body) -> FileChange {
        FileChange {
            entry: self.entry(&file.entry),
            body,
        }
    }

    /// Writes the record of a file's change without its lines.
    fn without_lines(
        &self,
        order: (usize, usize),
        commit: Option<String>,
        file: &FileChange,
    ) -> RecordPiece {
        let mut text = Vec::new();
        unified::write_head(&self.kept(file, Body::Same), &mut text);
        let numbers = file
            .text()
            .filter(|_| commit.is_none())
            .and_then(|t| Numbers::of(&file.entry, t));
        let left_out = Some(self.name(file.path()).to_wire());
        RecordPiece {
            order,
            commit,
            text,
            left_out,
            numbers,
        }
    }
}
