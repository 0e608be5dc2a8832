//! The change as text, for the store: what was reviewed, with its secrets masked.

use super::source::Part;
use crate::ai::redact::is_sensitive;
use crate::diff::{
    BinaryChange, Body, Entry, FileChange, Hunk, LineKind, LineNo, ObjectId, RepoPath, Side, TextChange, patch, unified,
};
use crate::error::Result;
use crate::hex;
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};
use sha2::{Digest as _, Sha256};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one file's patch, and of all of them. What is beyond is named instead.
const MOST_OF_A_FILE: usize = 4 << 20;
const MOST: usize = 16 << 20;

/// A change as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// A unified diff. Lines stay where they are; a masked secret, of a line or of a file's name, is as long as it
    /// was.
    pub text: Vec<u8>,
    /// Files whose lines are not in it.
    pub left_out: Vec<String>,
}

impl Record {
    /// Returns the SHA-256 of the text, hexadecimal.
    pub fn hash(&self) -> String {
        hex::encode(&Sha256::digest(&self.text))
    }

    /// Reads a record's text back: the files, each with the commit that it belongs to where there are several; `None`:
    /// it cannot be read.
    pub fn read(text: &[u8]) -> Option<Vec<(Option<ObjectId>, FileChange)>> {
        let mut out = Vec::new();
        for (commit, text) in parts(text) {
            out.extend(patch::parse_kept(text).ok()?.into_iter().map(|change| (commit, change)));
        }
        Some(out)
    }

    /// Puts the pieces of all threads in the order of the change.
    pub(super) fn of(mut pieces: Vec<Piece>) -> Self {
        pieces.sort_by_key(|p| p.order);
        let mut out = Self::default();
        let mut commit = None;
        for p in pieces {
            if p.commit.is_some() && p.commit != commit {
                commit = p.commit.clone();
                out.text.extend_from_slice(format!("commit {}\n", p.commit.as_deref().unwrap_or_default()).as_bytes());
            }
            out.text.extend(p.text);
            out.left_out.extend(p.left_out);
        }
        out
    }
}

/// Cuts the text where a commit is named. No line of a hunk begins like that.
fn parts(text: &[u8]) -> Vec<(Option<ObjectId>, &[u8])> {
    let commit = |line: &[u8]| ObjectId::from_hex(std::str::from_utf8(line.strip_prefix(b"commit ")?).ok()?);
    let mut out: Vec<(Option<ObjectId>, Range<usize>)> = vec![(None, 0..0)];
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        let end = at + line.len();
        match commit(line.strip_suffix(b"\n").unwrap_or(line)) {
            Some(id) => out.push((Some(id), end..end)),
            None => {
                if let Some(last) = out.last_mut() {
                    last.1.end = end;
                }
            }
        }
        at = end;
    }
    out.into_iter().filter(|(_, r)| !r.is_empty()).map(|(c, r)| (c, &text[r])).collect()
}

/// Which lines of a file a change shows whose text is kept from its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// `None`: the file is new.
    pub old: Option<RepoPath>,
    pub new: RepoPath,
    pub hunks: Vec<Vec<Run>>,
}

/// Lines of the new side that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one, from 1, and how many.
    pub new: u32,
    pub count: u32,
    /// The first one on the old side; of lines that were added, the one that they stand behind.
    pub old: u32,
    pub is_added: bool,
}

impl Numbers {
    fn of(entry: &Entry, text: &TextChange) -> Option<Self> {
        let new = entry.new.as_ref()?.path.clone();
        let hunk = |hunk: &Hunk| {
            let mut runs: Vec<Run> = Vec::new();
            let mut behind = hunk.old.start.saturating_sub(1);
            for line in text.lines(hunk) {
                if let Some(old) = line.old {
                    behind = old.get();
                }
                let Some(new) = line.new.map(LineNo::get) else { continue };
                let is_added = line.kind == LineKind::Added;
                match runs.last_mut() {
                    Some(run) if run.is_added == is_added && run.new + run.count == new && run.follows(behind) => {
                        run.count += 1;
                    }
                    _ => runs.push(Run { new, count: 1, old: behind, is_added }),
                }
            }
            runs
        };
        let hunks = text.hunks.iter().map(hunk).collect();
        Some(Self { old: entry.old.as_ref().map(|s| s.path.clone()), new, hunks })
    }
}

impl Run {
    /// Returns true if the next line goes on with it, by where that stands on the old side.
    fn follows(&self, old: u32) -> bool {
        old == if self.is_added { self.old } else { self.old + self.count }
    }
}

/// One file's part of a record.
#[derive(Debug)]
pub(super) struct Piece {
    /// The part and the entry that it is.
    order: (usize, usize),
    commit: Option<String>,
    text: Vec<u8>,
    left_out: Option<String>,
    /// Where its text is left out.
    pub(super) numbers: Option<Numbers>,
}

/// Counts what is kept, over all threads.
#[derive(Debug)]
pub(super) struct Recorder {
    bytes: AtomicUsize,
    /// For names, whatever the policy: rounds are compared by them, and a policy may change between two.
    names: RuleSet,
}

impl Recorder {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { bytes: AtomicUsize::new(0), names: RuleSet::new(&RulesPolicy::default(), &[])? })
    }

    /// Returns a changed path as it is kept.
    fn entry(&self, entry: &Entry) -> Entry {
        let side = |side: &Side| Side { path: self.name(&side.path), ..side.clone() };
        Entry { kind: entry.kind, old: entry.old.as_ref().map(side), new: entry.new.as_ref().map(side) }
    }

    fn name(&self, path: &RepoPath) -> RepoPath {
        RepoPath::new(self.names.mask(path.as_bytes()).into_owned())
    }

    /// Writes a file's change down; `None` where it is none of the change as a whole.
    pub(super) fn piece(
        &self,
        part: &Part,
        order: (usize, usize),
        file: &FileChange,
        rules: &RuleSet,
    ) -> Option<Piece> {
        if part.scope != Scope::All {
            return None;
        }
        let commit = part.commit.map(|id| id.to_string());
        let kept = |body: Body| FileChange { entry: self.entry(&file.entry), body };
        let name = || Some(self.name(file.path()).to_wire());
        let without_lines = |left_out| {
            let mut text = Vec::new();
            unified::write_head(&kept(Body::Same), &mut text);
            let numbers = file.text().filter(|_| commit.is_none()).and_then(|t| Numbers::of(&file.entry, t));
            Piece { order, commit: commit.clone(), text, left_out, numbers }
        };
        let Body::Text(lines) = &file.body else {
            let mut text = Vec::new();
            let body = match &file.body {
                // A patch names a binary file and shows nothing of it, so its content need not be copied.
                Body::Binary(_) => Body::Binary(BinaryChange::default()),
                other => other.clone(),
            };
            unified::write(&kept(body), &mut text);
            return Some(Piece { order, commit, text, left_out: None, numbers: None });
        };
        let paths = [&file.entry.old, &file.entry.new];
        if paths.into_iter().flatten().any(|side| is_sensitive(&side.path)) {
            return Some(without_lines(name()));
        }
        let size: usize = lines.hunks.iter().map(|h| h.old.size() + h.new.size()).sum();
        if size > MOST_OF_A_FILE || self.bytes.fetch_add(size, Ordering::Relaxed) + size > MOST {
            return Some(without_lines(name()));
        }
        let masked = lines.masked(&|text| rules.hidden(text));
        let mut text = Vec::new();
        unified::write(&kept(Body::Text(masked)), &mut text);
        Some(Piece { order, commit, text, left_out: None, numbers: None })
    }
}
