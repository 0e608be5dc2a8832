//! The change as text, for the store: what was reviewed, with its secrets masked.

use super::source::Part;
use crate::ai::redact::is_sensitive;
use crate::diff::{Body, Entry, FileChange, ObjectId, RepoPath, Side, patch, unified};
use crate::error::Result;
use crate::policy::RulesPolicy;
use crate::rules::{RuleSet, Scope};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
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
        let mut hex = String::with_capacity(64);
        for b in Sha256::digest(&self.text) {
            let _ = write!(hex, "{b:02x}");
        }
        hex
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

/// One file's part of a record.
#[derive(Debug)]
pub(super) struct Piece {
    /// The part and the entry that it is.
    order: (usize, usize),
    commit: Option<String>,
    text: Vec<u8>,
    left_out: Option<String>,
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
            Piece { order, commit: commit.clone(), text, left_out }
        };
        let Body::Text(lines) = &file.body else {
            let mut text = Vec::new();
            unified::write(&kept(file.body.clone()), &mut text);
            return Some(Piece { order, commit, text, left_out: None });
        };
        let paths = [&file.entry.old, &file.entry.new];
        if paths.into_iter().flatten().any(|side| is_sensitive(&side.path)) {
            return Some(without_lines(name()));
        }
        let size: usize = lines.hunks.iter().map(|h| h.old.size() + h.new.size()).sum();
        if size > MOST_OF_A_FILE || self.bytes.fetch_add(size, Ordering::Relaxed) + size > MOST {
            return Some(without_lines(name()));
        }
        let masked = lines.masked(|text| rules.mask(text).into_owned());
        let mut text = Vec::new();
        unified::write(&kept(Body::Text(masked)), &mut text);
        Some(Piece { order, commit, text, left_out: None })
    }
}
