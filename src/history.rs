//! Stored reviews: `.reviews/` in the worktree that was reviewed.
//!
//! ```text
//! .reviews/.gitignore                  the folder ignores itself, unless `history.commit`
//! .reviews/latest.json                 the newest session, and the heads of those that were touched since it began
//! .reviews/sessions/2026-01-31-001/    request.json, changes.diff, complete.json once it is closed
//!                   …/fixes.json       plans and attempts to fix findings, with their links of the chain
//!                   …/round-1/         review.json, seal.json, response.json once it is answered
//!                   …/round-2/         as before, and the changes.diff of the round
//! .reviews/tmp/                        what is being written
//! .reviews/.corrupt/                   sessions that could not be read; ID.removed once somebody removed them
//! .reviews/dispositions.toml           the person's decisions on findings
//! .reviews/proposals.toml              decisions that agents propose, in the same format
//! .reviews/lock                        one writer at a time
//! ```
//!
//! A session and a round appear as a whole: they are written in `tmp/`, reach the disk, and are renamed to their
//! place. Readers take no lock. The seals of a session are chained ([`chain`]), and so are the sessions ([`link`]). The formats are in [`crate::wire::stored`]. What is given is stored as it is: secrets
//! were masked before.

mod again;
mod chain;
mod damage;
mod disk;
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
pub use disk::{Act, Faults, Step};
pub use fixes::Progress;
pub use id::SessionId;
pub use prune::Pruned;
pub use verify::{Checked, Edit};
pub use write::{Closing, Saved};

use crate::disposition;
use crate::error::Result;
use crate::review::decided::{OWN, PROPOSED};
use crate::review::{Place, Remote};
use disk::{Folder, Missing};
use lock::Lock;
use std::path::Path;
use std::time::Duration;
use trouble::Trouble;

const SESSIONS: &str = "sessions";
const TMP: &str = "tmp";
const CORRUPT: &str = ".corrupt";
const LATEST: &str = "latest.json";
const GITIGNORE: &str = ".gitignore";
/// What the folder's `.gitignore` says: everything, or what is this machine's own where reviews are committed.
const IGNORE_ALL: &[u8] = b"*\n";
const IGNORE_OWN: &[u8] = b"/.corrupt/\n/dispositions.toml\n/latest.json\n/lock\n/proposals.toml\n/tmp/\n";
/// The texts of earlier versions, which are replaced.
const IGNORE_OWN_BEFORE: [&[u8]; 2] =
    [b"/.corrupt/\n/latest.json\n/lock\n/tmp/\n", b"/.corrupt/\n/dispositions.toml\n/latest.json\n/lock\n/tmp/\n"];
/// How long a writer waits for another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open store.
#[derive(Debug)]
pub struct Store {
    root: Folder,
    patience: Duration,
    /// Git keeps it: sessions come and go with branches.
    shared: bool,
    /// For the command that reviews a pull request again.
    remotes: Vec<Remote>,
}

/// What tests change about a store.
#[derive(Clone, Debug)]
pub struct Options {
    pub faults: Faults,
    /// How long to wait for another writer.
    pub patience: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { faults: Faults::default(), patience: PATIENCE }
    }
}

impl Store {
    /// Opens the store of a place to write to it, and makes what is missing of it.
    ///
    /// # Errors
    ///
    /// Usage where the folder is a link, no folder, or somebody else's; incomplete where it cannot be written.
    pub fn open(place: &Place) -> Result<Self> {
        Self::open_with(place, &Options::default())
    }

    /// Opens as [`Store::open`] does.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    pub fn open_with(place: &Place, options: &Options) -> Result<Self> {
        let open = || {
            let path = Path::new(&place.history.path);
            let root = Folder::root(&place.top, path, Missing::Make, &options.faults)?;
            let store =
                Self { root, patience: options.patience, shared: place.history.commit, remotes: place.remotes.clone() };
            store.prepare(place.history.commit)?;
            Ok(store)
        };
        open().map_err(|t: Trouble| t.error(format!("reviews cannot be stored in {}", place.history.path)))
    }

    /// Opens the store of a place to read it; `None` where nothing was stored yet.
    ///
    /// # Errors
    ///
    /// Usage where the folder is a link, no folder, or somebody else's.
    pub fn find(place: &Place) -> Result<Option<Self>> {
        Self::find_with(place, &Options::default())
    }

    /// Opens as [`Store::find`] does.
    ///
    /// # Errors
    ///
    /// As [`Store::find`].
    pub fn find_with(place: &Place, options: &Options) -> Result<Option<Self>> {
        let path = Path::new(&place.history.path);
        match Folder::root(&place.top, path, Missing::Absent, &options.faults) {
            Ok(root) => Ok(Some(Self {
                root,
                patience: options.patience,
                shared: place.history.commit,
                remotes: place.remotes.clone(),
            })),
            Err(Trouble::Absent) => Ok(None),
            Err(t) => Err(t.error(format!("stored reviews cannot be read from {}", place.history.path))),
        }
    }

    /// Makes the folders, and sees to it that git does not see what is not to be committed.
    fn prepare(&self, commit: bool) -> trouble::Result<()> {
        if !commit {
            self.root.tighten()?;
        }
        self.root.make(TMP)?;
        let wanted = if commit { IGNORE_OWN } else { IGNORE_ALL };
        match self.root.read(GITIGNORE, 4096) {
            Ok(text) if text == wanted => {}
            // A text that a person wrote stays.
            Ok(text)
                if !text.is_empty()
                    && ![IGNORE_ALL, IGNORE_OWN].iter().chain(&IGNORE_OWN_BEFORE).any(|t| text == *t) => {}
            Ok(_) | Err(Trouble::Absent) => self.replace(GITIGNORE, wanted)?,
            Err(t) => return Err(t),
        }
        self.root.make(SESSIONS)?;
        Ok(())
    }

    /// Replaces the file of the person's own decisions. `change` gets its content, if it exists, and returns the new one.
    ///
    /// # Errors
    ///
    /// What `change` returns, and then the file stays as it is; incomplete: the file cannot be read or written, or another
    /// process holds the store.
    pub fn decide(&self, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        self.rewrite(OWN, change)
    }

    /// Replaces the file of proposed decisions as [`Self::decide`] replaces that of the person's own.
    ///
    /// # Errors
    ///
    /// As [`Self::decide`].
    pub fn propose(&self, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        self.rewrite(PROPOSED, change)
    }

    fn rewrite(&self, name: &str, change: impl FnOnce(Option<Vec<u8>>) -> Result<Vec<u8>>) -> Result<()> {
        let fail = |t: Trouble| t.error(format!("{} cannot be written", self.root.shown(name)));
        let _lock = self.lock().map_err(fail)?;
        let before = match self.root.read(name, disposition::MAX_BYTES as u64) {
            Ok(bytes) => Some(bytes),
            Err(Trouble::Absent) => None,
            Err(t) => return Err(fail(t)),
        };
        let after = change(before)?;
        self.replace(name, &after).map_err(fail)
    }

    fn lock(&self) -> trouble::Result<Lock> {
        Lock::take(&self.root, self.patience)
    }

    fn sessions(&self) -> trouble::Result<Folder> {
        self.root.folder(SESSIONS)
    }
}
