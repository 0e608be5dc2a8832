//! The tree under review, as a model may look at it: regular files only, without secrets, within bounds.
//!
//! What is served is exactly what was reviewed: a commit's tree, the index, or of the worktree what git tracks and
//! what the change adds. No link is followed, nothing ignored is listed, and no file that is there to hold
//! credentials, or is a stored review, is ever read.

use crate::ai::material::Shown;
use crate::ai::redact;
use crate::diff::{self, ObjectId, RepoPath};
use crate::error::{Error, Result};
use crate::git::{Edit, Reader, Repo, State};
use crate::policy::Policy;
use crate::rules::RuleSet;
use crate::symbols::{Cache, Symbols};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Files that are listed.
const MAX_PATHS: usize = 200_000;
/// Bytes that a file may have to be read.
pub const MAX_FILE: usize = 4 << 20;
/// Bytes that are read in all, the same file twice counted twice.
const MAX_READ: usize = 1 << 30;
/// Bytes of a commit message that are read for its first line.
const MAX_SUBJECT: usize = 1_000;
/// Bytes of redacted text that are kept.
const MAX_KEPT: usize = 32 << 20;

/// The tree under review. Of one thread; a listing and texts are kept once they were asked for.
pub struct Tree<'r> {
    repo: &'r Repo,
    state: State,
    rules: &'r RuleSet,
    /// Says which files are stored reviews: what those tell of earlier rounds steers a model.
    policy: Option<&'r Policy>,
    reader: RefCell<Reader<'r>>,
    /// Files that the change brings and git does not track yet.
    new: Vec<RepoPath>,
    listing: OnceCell<Listing>,
    texts: RefCell<HashMap<RepoPath, Rc<str>>>,
    kept: Cell<usize>,
    symbols: Arc<Cache>,
    read: Cell<usize>,
    id: OnceCell<Option<String>>,
    /// The changed files, as a model sees them.
    change: &'r [Shown],
    /// Files that a model edits, in memory; `None`: it may only read.
    drafts: Option<RefCell<Drafts>>,
}

/// Files as a model edited or created them: the text that it sees, secrets replaced.
#[derive(Debug, Default)]
struct Drafts {
    texts: BTreeMap<RepoPath, Rc<str>>,
    /// Bytes that the model wrote in all.
    bytes: usize,
    /// Edits that were refused: the path as the model wrote it, and why.
    refused: Vec<(String, String)>,
}

/// Refused edits that are kept.
const MOST_REFUSED: usize = 20;

/// Files that a model may edit or create.
const MOST_DRAFTS: usize = 20;
/// Bytes that a model may write in all.
const MOST_WRITTEN: usize = 512 << 10;
/// Bytes of an edited file.
const MOST_DRAFT: usize = 1 << 20;
#[derive(Debug)]
struct Listing {
    /// In byte order.
    paths: Vec<RepoPath>,
    /// Of the worktree, the files of `paths` that a sparse checkout left out.
    left_out: HashSet<RepoPath>,
    /// Not all files are in it.
    cut: bool,
}

/// Why a file's text is not to be had.
#[derive(Debug)]
pub enum Unread {
    /// There is no such regular file in the tree.
    Absent,
    /// It is there to hold credentials.
    Sensitive,
    /// It is no text.
    Binary,
    /// It has more than [`MAX_FILE`] bytes.
    TooLarge,
    /// So much has been read that nothing more is.
    Exhausted,
    /// It could not be read.
    Failed(Error),
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("file not found in the tree under review"),
            Self::Sensitive => f.write_str("it may contain credentials, so its content is not shown"),
            Self::Binary => f.write_str("not a text file"),
            Self::TooLarge => write!(f, "it is larger than {} MiB", MAX_FILE >> 20),
            Self::Exhausted => f.write_str("the limit for reading files is reached"),
            Self::Failed(e) => write!(f, "it could not be read: {e}"),
        }
    }
}

impl fmt::Debug for Tree<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<'r> Tree<'r> {
    /// Looks at a state of a repository. Nothing is read yet.
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

    /// Lets a model edit and create files, in memory.
    #[must_use]
    pub fn with_drafts(self) -> Self {
        Self { drafts: Some(RefCell::default()), ..self }
    }

    /// Returns true if a model may edit and create files.
    pub fn is_editable(&self) -> bool {
        self.drafts.is_some()
    }

    /// Returns the edited and created files as the model sees them.
    pub fn drafts(&self) -> BTreeMap<RepoPath, String> {
        let drafts = self.drafts.iter().flat_map(|d| d.borrow().texts.clone());
        drafts.map(|(path, text)| (path, text.to_string())).collect()
    }

    /// Returns the text of a file that a model edited or created.
    pub(super) fn drafted(&self, path: &RepoPath) -> Option<Rc<str>> {
        self.drafts.as_ref()?.borrow().texts.get(path).cloned()
    }

    /// Keeps the new text of a file. `written`: the bytes that the model wrote for it.
    ///
    /// # Errors
    /// A limit would be passed.
    pub(super) fn draft(&self, path: &RepoPath, text: &str, written: usize) -> std::result::Result<(), String> {
        let mut drafts = self.drafts.as_ref().ok_or("files can only be read")?.borrow_mut();
        if !drafts.texts.contains_key(path) && drafts.texts.len() >= MOST_DRAFTS {
            return Err(format!("a fix can change {MOST_DRAFTS} files at most"));
        }
        if text.len() > MOST_DRAFT || drafts.bytes.saturating_add(written) > MOST_WRITTEN {
            return Err(format!("a fix can write {} KiB at most", MOST_WRITTEN >> 10));
        }
        drafts.bytes += written;
        drafts.texts.insert(path.clone(), text.into());
        let name = path.to_wire();
        drafts.refused.retain(|(refused, _)| *refused != name);
        Ok(())
    }

    /// Keeps that an edit of a file was refused, until a later edit of the file succeeds. `path`: as the model wrote it.
    pub(in crate::ai) fn refuse(&self, path: &str, why: &str) {
        let Some(drafts) = &self.drafts else { return };
        let mut drafts = drafts.borrow_mut();
        let path = path.strip_prefix("./").unwrap_or(path);
        drafts.refused.retain(|(refused, _)| refused != path);
        if drafts.refused.len() < MOST_REFUSED {
            drafts.refused.push((path.to_owned(), why.to_owned()));
        }
    }

    /// Returns the refused edits, each with its reason. Foreign text.
    pub(in crate::ai) fn refused_edits(&self) -> Vec<String> {
        self.drafts.iter().flat_map(|d| d.borrow().refused.clone()).map(|(_, why)| why).collect()
    }

    /// Returns true if a file can be created: nothing is at the path or above it, and no program takes it for more than a
    /// file of the tree.
    ///
    /// # Errors
    /// Incomplete, when a tree is missing or corrupt.
    pub(super) fn has_room_for(&self, path: &RepoPath) -> Result<bool> {
        let paths = self.paths()?;
        let starts = path.as_bytes().iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
        let is_file = |end: usize| paths.binary_search(&RepoPath::new(&path.as_bytes()[..end])).is_ok();
        let folder = [path.as_bytes(), b"/"].concat();
        let is_folder = paths.iter().any(|p| p.as_bytes().starts_with(&folder));
        let is_shown = path.as_bytes().iter().all(|b| !b.is_ascii_control()) && self.name(path) == path.to_wire();
        let is_taken = is_folder || starts.chain([path.as_bytes().len()]).any(is_file) || self.drafted(path).is_some();
        Ok(is_plain(path) && is_shown && !is_taken && !redact::is_sensitive(path))
    }

    /// Adds the symbols that other trees of the run know.
    #[must_use]
    pub fn with_symbols(self, symbols: &Arc<Cache>) -> Self {
        Self { symbols: Arc::clone(symbols), ..self }
    }

    /// Adds the changed files, as a model sees them.
    #[must_use]
    pub fn with_change(self, change: &'r [Shown]) -> Self {
        Self { change, ..self }
    }

    /// Returns the changed files; empty if they are not known.
    pub(super) fn change(&self) -> &'r [Shown] {
        self.change
    }

    /// Adds the files that the change brings to the worktree and that git does not track yet; those that it does
    /// are known anyway.
    #[must_use]
    pub fn with_new(mut self, paths: impl IntoIterator<Item = RepoPath>) -> Self {
        if self.state == State::Worktree {
            self.new.extend(paths);
        }
        self
    }

    /// Leaves out the stored reviews that a policy has committed.
    #[must_use]
    pub fn without_records_of(self, policy: &'r Policy) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Returns the state that is looked at.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Lists the files that may be read, in byte order; none that is there to hold credentials.
    ///
    /// # Errors
    /// Incomplete, when a tree is missing or corrupt.
    pub fn paths(&self) -> Result<&[RepoPath]> {
        Ok(&self.listing()?.paths)
    }

    /// Returns true if there are so many files that [`Tree::paths`] lacks some.
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
            if reader.mode(&self.state, path)?.is_some_and(|m| m != diff::FileMode::Symlink) {
                paths.push(path.clone());
            }
        }
        paths.retain(|p| is_plain(p) && !redact::is_sensitive(p) && !self.policy.is_some_and(|y| y.is_record(p)));
        paths.sort_unstable();
        paths.dedup();
        let left_out = left_out.into_iter().collect();
        Ok(self.listing.get_or_init(|| Listing { paths, left_out, cut }))
    }

    /// Returns a file's text: every secret replaced, every hidden character visible, line for line.
    ///
    /// # Errors
    /// Why not: see [`Unread`].
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

    /// Returns a file's lines as they are: to look whether a text is worth the work, never to show.
    pub(super) fn bytes(&self, path: &RepoPath) -> std::result::Result<Vec<u8>, Unread> {
        if redact::is_sensitive(path) {
            return Err(Unread::Sensitive);
        }
        let listing = self.listing().map_err(Unread::Failed)?;
        if listing.paths.binary_search(path).is_err() {
            return Err(Unread::Absent);
        }
        let state = if listing.left_out.contains(path) { &State::Index } else { &self.state };
        if self.read.get() >= MAX_READ {
            return Err(Unread::Exhausted);
        }
        let bytes = self.reader.borrow_mut().read(state, path, MAX_FILE).map_err(|e| match e.kind {
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
        self.rules.scan_beside("the result of a tool", None, text.as_bytes(), &mut found);
        !found.is_empty()
    }

    /// Does something whose reads do not count for the limit of this tree, but for one of their own.
    pub(super) fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.read.replace(0);
        let done = work();
        self.read.set(before);
        done
    }

    /// Makes a file's lines fit to be shown, and keeps them while there is room.
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

    /// Returns the commit whose history is that of the tree: the tree's own commit, or HEAD.
    pub(super) fn tip(&self) -> Option<State> {
        match &self.state {
            State::Commit { .. } => Some(self.state.clone()),
            _ => self.repo.head().ok().flatten().and_then(|head| self.repo.state_of(head).ok()),
        }
    }

    /// Returns the commit that brought a version of a file. See [`Reader::last_edit`].
    ///
    /// # Errors
    /// Incomplete, when the history is not all here.
    pub(super) fn last_edit(&self, from: ObjectId, path: &RepoPath, most: &mut u32) -> Result<Option<Edit>> {
        self.reader.borrow_mut().last_edit(from, path, most)
    }

    /// Returns the text of a file in another state: every secret replaced, every hidden character visible. `None` if there
    /// is no such text file, or if the limit for reading files is reached.
    ///
    /// # Errors
    /// Usage, when the file is too large; incomplete, when it cannot be read.
    pub(super) fn version(&self, state: &State, path: &RepoPath) -> Result<Option<String>> {
        if redact::is_sensitive(path) || self.read.get() >= MAX_READ {
            return Ok(None);
        }
        let Some(bytes) = self.reader.borrow_mut().read(state, path, MAX_FILE)? else { return Ok(None) };
        self.read.set(self.read.get() + bytes.len());
        Ok(diff::code::text_of(path, bytes).map(|bytes| redact::text(self.rules, &bytes).text))
    }

    /// Returns the first line of a commit's message, as it may be shown.
    pub(super) fn subject(&self, commit: ObjectId) -> String {
        let message = self.reader.borrow_mut().message(commit, MAX_SUBJECT).unwrap_or_default();
        redact::text(self.rules, &message).text.lines().next().unwrap_or_default().to_owned()
    }

    /// Returns a path as it is shown: without a secret, and nothing hidden in it.
    pub(super) fn name(&self, path: &RepoPath) -> String {
        redact::name(self.rules, path.to_wire().as_bytes())
    }

    /// Returns the name of a symbol as it is shown: without a secret, and nothing hidden in it.
    pub(super) fn label(&self, name: &str) -> String {
        redact::name(self.rules, name.as_bytes())
    }

    /// Names the content of the whole tree: two trees of the same id hold the same files. `None` where it cannot
    /// be told.
    pub fn id(&self) -> Option<&str> {
        let id = || match &self.state {
            State::Empty => Some("empty".to_owned()),
            State::Commit { tree, .. } => Some(tree.to_string()),
            State::Index | State::Worktree => self.reader.borrow_mut().digest(&self.state, &self.new).ok(),
        };
        self.id.get_or_init(id).as_deref()
    }
}

/// Returns true if a path stays in the tree and out of git's own folder, whoever takes it for the name of a file.
fn is_plain(path: &RepoPath) -> bool {
    path.as_bytes()
        .split(|b| *b == b'/')
        .all(|part| !matches!(part, b"" | b"." | b"..") && !part.eq_ignore_ascii_case(b".git") && !part.contains(&0))
}
