//! Stored reviews: `.reviews/` in the worktree that was reviewed.
//!
//! ```text
//! .reviews/.gitignore                  the folder ignores itself, unless `history.commit`
//! .reviews/latest.json                 the newest session, and the heads of sessions changed since it began
//! .reviews/sessions/2026-01-31-001/    request.json, changes.diff, complete.json once it is closed
//!                   …/fixes.json       plans and attempts to fix findings, with their links of the chain
//!                   …/round-1/         review.json, seal.json, response.json once it is answered
//!                   …/round-2/         as before, and the changes.diff of the round
//! .reviews/tmp/                        files that are being written
//! .reviews/.corrupt/                   sessions that could not be read; ID.removed after a person removed them
//! .reviews/dispositions.toml           the person's decisions on findings
//! .reviews/proposals.toml              decisions that agents propose, in the same format
//! .reviews/lock                        allows one writer at a time
//! ```
//!
//! A session and a round appear atomically: they are written in `tmp/`, synced to the disk, and
//! renamed to their final path. Readers take no lock. The seals of a session are chained
//! ([`chain`]), and so are the sessions ([`link`]). The formats are in [`crate::wire::stored`].
//! Data is stored as given: secrets were masked before.

mod again;
mod approval;
mod chain;
mod damage;
mod disk;
mod document;
mod fixes;
mod id;
mod link;
mod list;
mod lock;
pub mod owed;
mod prune;
mod read;
mod trouble;
mod verify;
mod write;

pub use again::pull_command;
pub use disk::{Act, Faults, FileOperation};
pub use fixes::Progress;
pub use id::SessionId;
pub use prune::Pruned;
pub use verify::{Checked, Modification};
pub use write::{Closing, Saved};

use crate::error::{Error, Result};
use crate::review::decided::{OWN, PROPOSED};
use crate::review::{Remote, StoreLocation};
use disk::{StoreFolder, WhenMissing};
use lock::Lock;
use std::path::Path;
use std::time::Duration;
use trouble::Trouble;

const SESSIONS: &str = "sessions";
const TMP: &str = "tmp";
const CORRUPT: &str = ".corrupt";
const LATEST: &str = "latest.json";
const GITIGNORE: &str = ".gitignore";
/// Content of the folder's `.gitignore`: everything, or the local files if reviews are committed.
const IGNORE_ALL: &[u8] = b"*\n";
const IGNORE_OWN: &[u8] =
    b"/.corrupt/\n/dispositions.toml\n/latest.json\n/lock\n/proposals.toml\n/tmp/\n";
/// Texts of earlier versions, which are replaced.
const IGNORE_OWN_BEFORE: [&[u8]; 2] = [
    b"/.corrupt/\n/latest.json\n/lock\n/tmp/\n",
    b"/.corrupt/\n/dispositions.toml\n/latest.json\n/lock\n/tmp/\n",
];
/// Time that a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open store.
#[derive(Debug)]
pub struct Store {
    root: StoreFolder,
    patience: Duration,
    /// Whether the store is committed to git, so that sessions come and go with branches.
    shared: bool,
    /// Remotes, for the command that reviews a pull request again.
    remotes: Vec<Remote>,
}

/// Options that tests change.
#[derive(Clone, Debug)]
pub struct Options {
    pub faults: Faults,
    /// Time to wait for another writer.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            faults: Faults::default(),
            patience: PATIENCE,
        }
    }
}

impl Store {
    /// Opens the store of a place for writing, and creates its missing files.
    ///
    /// # Errors
    ///
    /// Usage if the path is a link, is not a folder, or belongs to another user; incomplete if it
    /// is not writable.
    pub fn open(place: &StoreLocation) -> Result<Self> {
        Self::open_with(place, &Options::default())
    }

    /// Opens as [`Store::open`] does.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_with(place: &StoreLocation, options: &Options) -> Result<Self> {
        Self::prepared(place, options).map_err(|t| {
            t.error(format!(
                "reviews cannot be stored in {}",
                place.history.path
            ))
        })
    }

    /// Opens the store of a place, and creates its missing files.
    fn prepared(place: &StoreLocation, options: &Options) -> trouble::Result<Self> {
        let path = Path::new(&place.history.path);
        let root = StoreFolder::root(&place.top, path, WhenMissing::Make, &options.faults)?;
        let store = Self {
            root,
            patience: options.patience,
            shared: place.history.commit,
            remotes: place.remotes.clone(),
        };
        store.prepare(place.history.commit)?;
        Ok(store)
    }

    /// Opens the store of a place for reading. Returns `None` if nothing was stored yet.
    ///
    /// # Errors
    ///
    /// Usage if the path is a link, is not a folder, or belongs to another user.
    pub fn find(place: &StoreLocation) -> Result<Option<Self>> {
        Self::find_with(place, &Options::default())
    }

    /// Opens as [`Store::find`] does.
    ///
    /// # Errors
    ///
    /// As [`Store::find`].
    pub fn find_with(place: &StoreLocation, options: &Options) -> Result<Option<Self>> {
        let path = Path::new(&place.history.path);
        match StoreFolder::root(&place.top, path, WhenMissing::Absent, &options.faults) {
            Ok(root) => Ok(Some(Self {
                root,
                patience: options.patience,
                shared: place.history.commit,
                remotes: place.remotes.clone(),
            })),
            Err(Trouble::Absent) => Ok(None),
            Err(t) => Err(t.error(format!(
                "stored reviews cannot be read from {}",
                place.history.path
            ))),
        }
    }

    /// Creates the folders, and a `.gitignore` for the files that are not to be committed.
    fn prepare(&self, commit: bool) -> trouble::Result<()> {
        if !commit {
            self.root.tighten()?;
        }
        self.root.make(TMP)?;
        let wanted = if commit { IGNORE_OWN } else { IGNORE_ALL };
        match self.root.read(GITIGNORE, 4096) {
            Ok(text) if text == wanted => {}
            // A text that a person wrote is preserved.
            Ok(text)
                if !text.is_empty()
                    && ![IGNORE_ALL, IGNORE_OWN]
                        .iter()
                        .chain(&IGNORE_OWN_BEFORE)
                        .any(|t| text == *t) => {}
            Ok(_) | Err(Trouble::Absent) => self.replace(GITIGNORE, wanted)?,
            Err(t) => return Err(t),
        }
        self.root.make(SESSIONS)?;
        Ok(())
    }

    /// Replaces the file of the person's own decisions. `change` gets the content of an existing
    /// file, and returns the new one.
    ///
    /// # Errors
    ///
    /// The error of `change`, and then the file is unmodified; incomplete if the file cannot be
    /// read or written, or another process has the lock of the store.
    pub fn decide(&self, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        self.rewrite(OWN, change)
    }

    /// Replaces the file of proposed decisions, as [`Self::decide`] replaces the person's own.
    ///
    /// # Errors
    ///
    /// As [`Self::decide`].
    pub fn propose(&self, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        self.rewrite(PROPOSED, change)
    }

    /// Replaces a file of the store while holding the lock.
    fn rewrite(
        &self,
        name: &str,
        change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let _lock = self.lock().map_err(|t| self.not_written(name, t))?;
        let before = match self.root.read(name, document::most(name)) {
            Ok(bytes) => Some(bytes),
            Err(Trouble::Absent) => None,
            Err(t) => return Err(self.not_written(name, t)),
        };
        let after = change(before)?;
        self.replace(name, &after)
            .map_err(|t| self.not_written(name, t))
    }

    /// Returns the error for a file of the store that cannot be written.
    fn not_written(&self, name: &str, trouble: Trouble) -> Error {
        trouble.error(format!("{} cannot be written", self.root.shown(name)))
    }

    /// Takes the lock of the store, and waits for another writer.
    fn lock(&self) -> trouble::Result<Lock> {
        Lock::take(&self.root, self.patience)
    }

    /// Opens the folder of sessions.
    fn sessions(&self) -> trouble::Result<StoreFolder> {
        self.root.folder(SESSIONS)
    }
}
