//! The tree under review, as models can read it: regular files only, without secrets, within
//! limits.
//!
//! The tree contains exactly the reviewed state: the tree of a commit, the index, or the tracked
//! files of the worktree and the files that the change adds. Symlinks are not followed, and ignored
//! files are not listed. Files for credentials and stored reviews are never read.

use crate::ai::material::Shown;
use crate::ai::redact;
use crate::diff::{self, ObjectId, RepoPath};
use crate::error::{Error, Result};
use crate::git::{FileCommit, Reader, Repo, State};
use crate::policy::Policy;
use crate::rules::RuleSet;
use crate::symbols::{Cache, Symbols};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Files that are listed, at most.
const MAX_PATHS: usize = 200_000;
/// Bytes of a file that is read, at most.
pub const MAX_FILE: usize = 4 << 20;
/// Bytes that are read in total, at most; a file that is read twice counts twice.
const MAX_READ: usize = 1 << 30;
/// Bytes of a commit message that are read for its first line, at most.
const MAX_SUBJECT: usize = 1_000;
/// Bytes of redacted text that are cached, at most.
const MAX_KEPT: usize = 32 << 20;

/// The tree under review, for one thread. The listing and texts are cached after their first use.
pub struct Tree<'r> {
    repo: &'r Repo,
    state: State,
    rules: &'r RuleSet,
    /// Policy that identifies stored reviews. Their content about earlier rounds would influence a
    /// model.
    policy: Option<&'r Policy>,
    reader: RefCell<Reader<'r>>,
    /// Files that the change adds and git does not track yet.
    new: Vec<RepoPath>,
    listing: OnceCell<Listing>,
    texts: RefCell<HashMap<RepoPath, Rc<str>>>,
    kept: Cell<usize>,
    symbols: Arc<Cache>,
    read: Cell<usize>,
    id: OnceCell<Option<String>>,
    /// The changed files in the form that models receive.
    change: &'r [Shown],
    /// Files that a model edits, in memory; `None` if the tree is read-only.
    drafts: Option<RefCell<Drafts>>,
}

/// Files that a model edited or created, as the redacted text that it sees.
#[derive(Debug, Default)]
struct Drafts {
    texts: BTreeMap<RepoPath, Rc<str>>,
    /// Bytes that the model wrote in total.
    bytes: usize,
    /// Rejected edits: the path from the model, and the reason.
    refused: Vec<(String, String)>,
}

/// Rejected edits that are recorded, at most.
const MOST_REFUSED: usize = 20;

/// Files that a model may edit or create, at most.
const MOST_DRAFTS: usize = 20;
/// Bytes that a model may write in total, at most.
const MOST_WRITTEN: usize = 512 << 10;
/// Bytes of an edited file, at most.
const MOST_DRAFT: usize = 1 << 20;
#[derive(Debug)]
struct Listing {
    /// Paths in byte order.
    paths: Vec<RepoPath>,
    /// For the worktree, the files in `paths` that a sparse checkout excludes.
    left_out: HashSet<RepoPath>,
    /// True if the list is incomplete.
    cut: bool,
}

/// The reason why the text of a file is not available.
#[derive(Debug)]
pub enum Unread {
    /// The tree has no such regular file.
    Absent,
    /// The file may contain credentials.
    Sensitive,
    /// The file is not text.
    Binary,
    /// The file has more than [`MAX_FILE`] bytes.
    TooLarge,
    /// The limit for reading files is reached.
    Exhausted,
    /// The file could not be read.
    Failed(Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("file not found in the tree under review"),
            Self::Sensitive => {
                f.write_str("it may contain credentials, so its content is not shown")
            }
            Self::Binary => f.write_str("not a text file"),
            Self::TooLarge => write!(f, "it is larger than {} MiB", MAX_FILE >> 20),
            Self::Exhausted => f.write_str("the limit for reading files is reached"),
            Self::Failed(e) => write!(f, "it could not be read: {e}"),
        }
    }
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl<'r> Tree<'r> {
    /// Creates the tree for a state of a repository. Reads nothing yet.
    pub fn new(repo: &'r Repo, state: State, rules: &'r RuleSet) -> Self {
        Self {
            repo,
            state,
            rules,
            policy: None,
            reader: RefCell::new(repo.reader()),
            new: Vec::new(),
            listing: OnceCell::new(),
            texts: RefCell::default(),
            kept: Cell::new(0),
            symbols: Arc::default(),
            read: Cell::new(0),
            id: OnceCell::new(),
            change: &[],
            drafts: None,
        }
    }

    /// Allows a model to edit and create files in memory.
    #[must_use]
    pub fn with_drafts(self) -> Self {
        Self {
            drafts: Some(RefCell::default()),
            ..self
        }
    }

    /// Returns true if a model may edit and create files.
    pub fn is_editable(&self) -> bool {
        self.drafts.is_some()
    }

    /// Returns the edited and created files as the model sees them.
    pub fn drafts(&self) -> BTreeMap<RepoPath, String> {
        let drafts = self.drafts.iter().flat_map(|d| d.borrow().texts.clone());
        drafts
            .map(|(path, text)| (path, text.to_string()))
            .collect()
    }

    /// Returns the text of a file that a model edited or created.
    pub(super) fn drafted(&self, path: &RepoPath) -> Option<Rc<str>> {
        self.drafts.as_ref()?.borrow().texts.get(path).cloned()
    }

    /// Stores the new text of a file. `written` is the number of bytes that the model wrote for it.
    ///
    /// # Errors
    ///
    /// Returns a message if a limit would be exceeded.
    pub(super) fn draft(
        &self,
        path: &RepoPath,
        text: &str,
        written: usize,
    ) -> std::result::Result<(), String> {
        let mut drafts = self
            .drafts
            .as_ref()
            .ok_or("files can only be read")?
            .borrow_mut();
        if !drafts.texts.contains_key(path) && drafts.texts.len() >= MOST_DRAFTS {
            return Err(format!("a fix can change {MOST_DRAFTS} files at most"));
        }
        if text.len() > MOST_DRAFT || drafts.bytes.saturating_add(written) > MOST_WRITTEN {
            return Err(format!(
                "a fix can write {} KiB at most",
                MOST_WRITTEN >> 10
            ));
        }
        drafts.bytes += written;
        drafts.texts.insert(path.clone(), text.into());
        let name = path.to_wire();
        drafts.refused.retain(|(refused, _)| *refused != name);
        Ok(())
    }

    /// Records a rejected edit of a file, until a later edit of the file succeeds. `path` is the
    /// path from the model.
    pub(in crate::ai) fn refuse(&self, path: &str, why: &str) {
        let Some(drafts) = &self.drafts else { return };
        let mut drafts = drafts.borrow_mut();
        let path = path.strip_prefix("./").unwrap_or(path);
        drafts.refused.retain(|(refused, _)| refused != path);
        if drafts.refused.len() < MOST_REFUSED {
            drafts.refused.push((path.to_owned(), why.to_owned()));
        }
    }

    /// Returns the rejected edits with their reasons. Untrusted text.
    pub(in crate::ai) fn refused_edits(&self) -> Vec<String> {
        self.drafts
            .iter()
            .flat_map(|d| d.borrow().refused.clone())
            .map(|(_, why)| why)
            .collect()
    }

    /// Returns true if a file can be created: no file or folder exists at the path, no parent of it
    /// is a file, and the path cannot refer to anything outside the tree.
    ///
    /// # Errors
    ///
    /// Returns an incomplete error if a tree object is missing or corrupt.
    pub(super) fn has_room_for(&self, path: &RepoPath) -> Result<bool> {
        let paths = self.paths()?;
        let starts = path
            .as_bytes()
            .iter()
            .enumerate()
            .filter(|(_, b)| **b == b'/')
            .map(|(at, _)| at);
        let mut parts = starts
            .chain([path.as_bytes().len()])
            .map(|end| RepoPath::new(&path.as_bytes()[..end]));
        let folder = [path.as_bytes(), b"/"].concat();
        let is_folder = paths.iter().any(|p| p.as_bytes().starts_with(&folder));
        let is_shown = path.as_bytes().iter().all(|b| !b.is_ascii_control())
            && self.name(path) == path.to_wire();
        let is_taken = is_folder
            || parts.any(|part| paths.binary_search(&part).is_ok())
            || self.drafted(path).is_some();
        Ok(is_plain(path) && is_shown && !is_taken && !redact::is_sensitive(path))
    }

    /// Sets the symbol cache that the trees of the run share.
    #[must_use]
    pub fn with_symbols(self, symbols: &Arc<Cache>) -> Self {
        Self {
            symbols: Arc::clone(symbols),
            ..self
        }
    }

    /// Sets the changed files, in the form that models receive.
    #[must_use]
    pub fn with_change(self, change: &'r [Shown]) -> Self {
        Self { change, ..self }
    }

    /// Returns the changed files; empty if they are not known.
    pub(super) fn change(&self) -> &'r [Shown] {
        self.change
    }

    /// Adds the untracked files that the change adds to the worktree. Tracked files are already
    /// listed.
    #[must_use]
    pub fn with_new(mut self, paths: impl IntoIterator<Item = RepoPath>) -> Self {
        if self.state == State::Worktree {
            self.new.extend(paths);
        }
        self
    }

    /// Excludes the stored reviews that a policy has committed.
    #[must_use]
    pub fn without_records_of(self, policy: &'r Policy) -> Self {
        Self {
            policy: Some(policy),
            ..self
        }
    }

    /// Returns the state under review.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Lists the files that may be read, in byte order, without files for credentials.
    ///
    /// # Errors
    ///
    /// Returns an incomplete error if a tree object is missing or corrupt.
    pub fn paths(&self) -> Result<&[RepoPath]> {
        Ok(&self.listing()?.paths)
    }

    /// Returns true if [`Tree::paths`] omits files because of the limit.
    pub fn is_cut(&self) -> bool {
        self.listing.get().is_some_and(|l| l.cut)
    }

    fn listing(&self) -> Result<&Listing> {
        if let Some(known) = self.listing.get() {
            return Ok(known);
        }
        let mut reader = self.reader.borrow_mut();
        let (mut paths, cut) = reader.files(&self.state, MAX_PATHS)?;
        let left_out = match self.state {
            State::Worktree => reader.files_left_out(MAX_PATHS.saturating_sub(paths.len()))?,
            _ => Vec::new(),
        };
        paths.extend(left_out.iter().cloned());
        for path in &self.new {
            if reader
                .mode(&self.state, path)?
                .is_some_and(|m| m != diff::FileMode::Symlink)
            {
                paths.push(path.clone());
            }
        }
        paths.retain(|p| {
            is_plain(p) && !redact::is_sensitive(p) && !self.policy.is_some_and(|y| y.is_record(p))
        });
        paths.sort_unstable();
        paths.dedup();
        let left_out = left_out.into_iter().collect();
        Ok(self.listing.get_or_init(|| Listing {
            paths,
            left_out,
            cut,
        }))
    }

    /// Returns the text of a file, line for line, with secrets replaced and hidden characters
    /// visible.
    ///
    /// # Errors
    ///
    /// Returns the reason; see [`Unread`].
    pub fn text(&self, path: &RepoPath) -> std::result::Result<Rc<str>, Unread> {
        if let Some(text) = self.drafted(path) {
            return Ok(text);
        }
        if let Some(text) = self.texts.borrow().get(path) {
            return Ok(text.clone());
        }
        let bytes = self.bytes(path)?;
        Ok(self.show(path, &bytes))
    }

    /// Returns the raw lines of a file, to decide whether it is worth redacting. They must never be
    /// sent to a model.
    pub(super) fn bytes(&self, path: &RepoPath) -> std::result::Result<Vec<u8>, Unread> {
        if redact::is_sensitive(path) {
            return Err(Unread::Sensitive);
        }
        let listing = self.listing().map_err(Unread::Failed)?;
        if listing.paths.binary_search(path).is_err() {
            return Err(Unread::Absent);
        }
        let state = if listing.left_out.contains(path) {
            &State::Index
        } else {
            &self.state
        };
        if self.read.get() >= MAX_READ {
            return Err(Unread::Exhausted);
        }
        let bytes = self
            .reader
            .borrow_mut()
            .read(state, path, MAX_FILE)
            .map_err(|e| match e.kind {
                crate::error::Kind::Usage => Unread::TooLarge,
                crate::error::Kind::Incomplete => Unread::Failed(e),
            })?;
        let bytes = bytes.ok_or(Unread::Absent)?;
        self.read.set(self.read.get() + bytes.len());
        diff::code::text_of(path, bytes).ok_or(Unread::Binary)
    }

    /// Returns true if a text matches the rules about prompt injection.
    pub(super) fn has_orders(&self, text: &str) -> bool {
        let mut found = Vec::new();
        self.rules
            .scan_beside("the result of a tool", None, text.as_bytes(), &mut found);
        !found.is_empty()
    }

    /// Runs some work whose reads count for a separate limit.
    pub(super) fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.read.replace(0);
        let done = work();
        self.read.set(before);
        done
    }

    /// Redacts the lines of a file, and caches them while there is room.
    pub(super) fn show(&self, path: &RepoPath, bytes: &[u8]) -> Rc<str> {
        let text: Rc<str> = redact::text(self.rules, bytes).text.into();
        if self.kept.get() + text.len() <= MAX_KEPT {
            self.kept.set(self.kept.get() + text.len());
            self.texts.borrow_mut().insert(path.clone(), text.clone());
        }
        text
    }

    /// Returns the symbols of a text of a file.
    pub(super) fn symbols(&self, path: &RepoPath, text: &[u8]) -> Option<Arc<Symbols>> {
        self.symbols.read(path, text)
    }

    /// Returns the commit whose history is searched: the commit of the tree, or HEAD.
    pub(super) fn tip(&self) -> Option<State> {
        match &self.state {
            State::Commit { .. } => Some(self.state.clone()),
            _ => self
                .repo
                .head()
                .ok()
                .flatten()
                .and_then(|head| self.repo.state_of(head).ok()),
        }
    }

    /// Returns the commit that introduced a version of a file. See [`Reader::last_edit`].
    ///
    /// # Errors
    ///
    /// Returns an incomplete error if the history is not completely available.
    pub(super) fn last_edit(
        &self,
        from: ObjectId,
        path: &RepoPath,
        most: &mut u32,
    ) -> Result<Option<FileCommit>> {
        self.reader.borrow_mut().last_edit(from, path, most)
    }

    /// Returns the text of a file in another state, with secrets replaced and hidden characters
    /// visible. Returns `None` if the state has no such text file, or the limit for reading files
    /// is reached.
    ///
    /// # Errors
    ///
    /// Returns a usage error if the file is too large, or an incomplete error if it cannot be read.
    pub(super) fn version(&self, state: &State, path: &RepoPath) -> Result<Option<String>> {
        if redact::is_sensitive(path) || self.read.get() >= MAX_READ {
            return Ok(None);
        }
        let Some(bytes) = self.reader.borrow_mut().read(state, path, MAX_FILE)? else {
            return Ok(None);
        };
        self.read.set(self.read.get() + bytes.len());
        Ok(diff::code::text_of(path, bytes).map(|bytes| redact::text(self.rules, &bytes).text))
    }

    /// Returns the first line of a commit message, redacted.
    pub(super) fn subject(&self, commit: ObjectId) -> String {
        let message = self
            .reader
            .borrow_mut()
            .message(commit, MAX_SUBJECT)
            .unwrap_or_default();
        redact::text(self.rules, &message)
            .text
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    }

    /// Returns a redacted path.
    pub(super) fn name(&self, path: &RepoPath) -> String {
        redact::name(self.rules, path.to_wire().as_bytes())
    }

    /// Returns the redacted name of a symbol.
    pub(super) fn label(&self, name: &str) -> String {
        redact::name(self.rules, name.as_bytes())
    }

    /// Returns an ID for the content of the whole tree. Trees with the same ID contain the same
    /// files. Returns `None` if it cannot be determined.
    pub fn id(&self) -> Option<&str> {
        let id = self.id.get_or_init(|| match &self.state {
            State::Empty => Some("empty".to_owned()),
            State::Commit { tree, .. } => Some(tree.to_string()),
            State::Index | State::Worktree => {
                self.reader.borrow_mut().digest(&self.state, &self.new).ok()
            }
        });
        id.as_deref()
    }
}

/// Returns true if every system treats the path as one inside the tree and outside `.git`.
fn is_plain(path: &RepoPath) -> bool {
    path.as_bytes().split(|b| *b == b'/').all(|part| {
        !matches!(part, b"" | b"." | b"..")
            && !part.eq_ignore_ascii_case(b".git")
            && !part.contains(&0)
    })
}
