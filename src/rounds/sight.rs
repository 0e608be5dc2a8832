//! Reads files of the reviewed state outside of its change, only before a finding is declared
//! fixed.

use super::compare::look::{UnshownFile, UnshownFiles, UnshownReason};
use crate::diff::{ChangeKind, FileChange, ObjectId, RepoPath, code, unified};
use crate::error::{Kind, Result};
use crate::finding::Origin;
use crate::git::{Change, Reader, Repo, State};
use crate::request::ReviewRequest;
use crate::review::Files;
use crate::rules::{self, RuleSet};
use crate::wire::{Finding, ReviewedSource, SourceKind, mapping};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

/// Bytes of a file, and of all files on both sides, that are read.
const MOST_OF_A_FILE: usize = 16 << 20;
const MOST: usize = 128 << 20;
/// Bytes of files outside of the request that are searched.
const MOST_LEFT_OUT: usize = 16 << 20;

/// The reviewed state. Its text is masked like the stored change, and cached.
pub(super) struct ReviewedState<'r> {
    repo: &'r Repo,
    rules: &'r RuleSet,
    files: Files,
    source: &'r ReviewedSource,
    reader: RefCell<Reader<'r>>,
    known: RefCell<HashMap<(String, bool), UnshownFile>>,
    left_out: OnceCell<Vec<u8>>,
    /// Bytes that may still be read.
    left: Cell<usize>,
}

impl std::fmt::Debug for ReviewedState<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewedState")
            .field("source", self.source)
            .finish_non_exhaustive()
    }
}

impl<'r> ReviewedState<'r> {
    /// Prepares access to the state of a report. Reads nothing yet.
    ///
    /// # Errors
    ///
    /// Usage: an invalid pattern of `--files`.
    pub(super) fn new(
        repo: &'r Repo,
        request: &ReviewRequest,
        source: &'r ReviewedSource,
        rules: &'r RuleSet,
    ) -> Result<Self> {
        Ok(Self {
            repo,
            rules,
            files: Files::new(
                (request.files_name, &request.files),
                &request.dir,
                repo.worktree(),
                rules,
            )?,
            source,
            reader: RefCell::new(repo.reader()),
            known: RefCell::default(),
            left_out: OnceCell::new(),
            left: Cell::new(MOST),
        })
    }

    /// Returns the base of the change.
    fn base(&self) -> Result<State> {
        if self.source.kind == SourceKind::Unstaged {
            return Ok(State::Index);
        }
        let base = self.source.base.as_deref().and_then(ObjectId::from_hex);
        base.map_or(Ok(State::Empty), |id| self.repo.state_of(id))
    }

    /// Reads a file, or returns `None` if it is missing.
    fn read(&self, state: &State, path: &RepoPath) -> std::result::Result<Option<Vec<u8>>, Kind> {
        let most = MOST_OF_A_FILE.min(self.left.get());
        let Some(bytes) = self
            .reader
            .borrow_mut()
            .read(state, path, most)
            .map_err(|e| e.kind)?
        else {
            return Ok(None);
        };
        self.left
            .set(self.left.get() - bytes.len().min(self.left.get()));
        let text = code::text_of(path, bytes).ok_or(Kind::Usage)?;
        Ok(Some(self.rules.mask(&text).into_owned()))
    }

    /// Reads a file that may be in the worktree without being in the change.
    fn aside(&self, path: &RepoPath, is_shown: bool) -> std::result::Result<UnshownFile, Kind> {
        let is_staged = self.source.kind == SourceKind::Staged;
        match self.source.kind {
            SourceKind::Changes | SourceKind::Unstaged => {}
            SourceKind::Staged if !is_shown => {}
            // A commit's files are all in its tree, and a change that the caller passed has no
            // other files.
            _ => return Ok(UnshownFile::Nothing),
        }
        let Some(now) = self.read(&State::Worktree, path)? else {
            return Ok(UnshownFile::Nothing);
        };
        let base = self.base().map_err(|e| e.kind)?;
        let base = self.read(&base, path)?.unwrap_or_default();
        let mut reader = self.reader.borrow_mut();
        let is_free = !reader.is_tracked(path).map_err(|e| e.kind)?;
        let reason = match is_free && reader.is_ignored_for_all(path).map_err(|e| e.kind)? {
            true => UnshownReason::Ignored,
            false if is_staged => UnshownReason::Unstaged,
            false => UnshownReason::Hidden,
        };
        Ok(UnshownFile::Text { now, base, reason })
    }

    /// Returns the change for a request of all files.
    fn whole(&self) -> Result<Option<Change>> {
        Ok(Some(match self.source.kind {
            SourceKind::Changes => self.repo.against_worktree(self.base()?)?,
            SourceKind::Unstaged => self.repo.unstaged(true)?,
            SourceKind::Staged => self.repo.staged()?,
            SourceKind::Commit | SourceKind::Branch => {
                match self.source.head.as_deref().and_then(ObjectId::from_hex) {
                    Some(head) => self.repo.between(self.base()?, self.repo.state_of(head)?)?,
                    None => return Ok(None),
                }
            }
            SourceKind::Patch | SourceKind::Code | SourceKind::Pr | SourceKind::Tree => {
                return Ok(None);
            }
        }))
    }

    /// Formats the changed files outside of the request. Unreadable ones are skipped.
    fn others(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.files.is_everything() {
            return out;
        }
        let Ok(Some(change)) = self.whole() else {
            return out;
        };
        let mut reader = self.reader.borrow_mut();
        for (i, entry) in change.entries.iter().enumerate() {
            let Some(new) = entry.new.as_ref().filter(|n| !self.files.select(&n.path)) else {
                continue;
            };
            let file = match entry.kind {
                ChangeKind::Renamed { .. } => reader.load_as_added(&change, i),
                _ => reader.load(&change, i),
            };
            let Ok(FileChange {
                entry,
                body: crate::diff::Body::Text(text),
            }) = file
            else {
                continue;
            };
            let size: usize = text.hunks.iter().map(|h| h.old.size() + h.new.size()).sum();
            if out.len() + size > MOST_LEFT_OUT || crate::ai::redact::is_sensitive(&new.path) {
                continue;
            }
            let body = crate::diff::Body::Text(text.masked(&|text| self.rules.hidden(text)));
            unified::write(&FileChange { entry, body }, &mut out);
        }
        out
    }
}

impl UnshownFiles for ReviewedState<'_> {
    fn selects(&self, file: &str) -> bool {
        self.files.select(&mapping::path(file))
    }

    fn left_out(&self) -> &[u8] {
        self.left_out.get_or_init(|| self.others())
    }

    fn file(&self, file: &str, is_shown: bool) -> UnshownFile {
        let key = (file.to_owned(), is_shown);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let aside = match self.aside(&mapping::path(file), is_shown) {
            Ok(aside) => aside,
            // The change has the lines that were read.
            Err(_) if is_shown => UnshownFile::Nothing,
            Err(_) => UnshownFile::Unreadable,
        };
        self.known.borrow_mut().insert(key, aside.clone());
        aside
    }

    fn is_secret(&self, f: &Finding) -> bool {
        f.origin == Origin::Rules.name()
            && rules::describe_all().any(|d| d.secret && d.id == f.rule_id)
    }
}
