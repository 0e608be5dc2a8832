//! Undoes a decision: restores the entries of some findings in the person's own file, in the
//! proposals, and in the shared file if the decision was shared.

use super::decide::{Here, changed_file, rewrite, shown};
use crate::disposition::{self, DecisionEntry, SHARED};
use crate::error::{Error, Result};
use crate::git::State;
use crate::review::decided;
use std::io::ErrorKind;

/// The decisions and proposals on some findings at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    fingerprints: Vec<String>,
    own: Vec<DecisionEntry>,
    proposed: Vec<DecisionEntry>,
    /// `None` if the decision is not shared: the shared file is not changed.
    shared: Option<Shared>,
}

/// The entries of the shared file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shared {
    entries: Vec<DecisionEntry>,
    /// Whether the file exists.
    has_file: bool,
}

/// Reads the current decisions and proposals on findings. `is_shared` is true if a shared decision
/// follows.
///
/// # Errors
/// Usage: a file of decisions is invalid.
pub fn held(here: &Here<'_>, fingerprints: Vec<String>, is_shared: bool) -> Result<Held> {
    let mut reader = here.repo.reader();
    let mut own = decided::own(&mut reader, here.place, &mut Vec::new())?;
    let mut proposed = decided::proposed(&mut reader, here.place)?;
    own.retain(|e| fingerprints.contains(&e.fingerprint));
    proposed.retain(|e| fingerprints.contains(&e.fingerprint));
    let shared = if is_shared {
        let mut entries = decided::shared(&mut reader, &State::Worktree)?;
        entries.retain(|e| fingerprints.contains(&e.fingerprint));
        Some(Shared {
            entries,
            has_file: here.place.top.join(SHARED).symlink_metadata().is_ok(),
        })
    } else {
        None
    };
    Ok(Held {
        fingerprints,
        own,
        proposed,
        shared,
    })
}

/// Restores the decisions and proposals on the findings. Other findings keep their decisions.
///
/// # Errors
/// As [`super::decide::decide`].
pub fn restore(here: &Here<'_>, held: &Held) -> Result<()> {
    // The shared file first: if it is invalid, nothing is undone.
    if let Some(shared) = &held.shared {
        held.restore_shared(here, shared)?;
    }
    here.store
        .decide(|before| held.put(&shown(here, decided::OWN), before, &held.own))?;
    let has_file = here.place.folder().join(decided::PROPOSED).exists();
    if has_file || !held.proposed.is_empty() {
        here.store
            .propose(|before| held.put(&shown(here, decided::PROPOSED), before, &held.proposed))?;
    }
    Ok(())
}

impl Held {
    /// Returns true if the decision after these entries is shared.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Restores the entries of the shared file. Removes a file that the undone decision created, if
    /// it has no other entry.
    fn restore_shared(&self, here: &Here<'_>, shared: &Shared) -> Result<()> {
        let mut is_empty = false;
        rewrite(here.repo, &here.place.top, |name, before| {
            let after = self.put(name, before, &shared.entries)?;
            is_empty = after == disposition::render(&[]).into_bytes();
            Ok(after)
        })?;
        if shared.has_file || !is_empty {
            return Ok(());
        }
        let path = here.place.top.join(SHARED);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                Err(Error::incomplete(format!("{SHARED} cannot be removed")).caused_by(&e))
            }
            _ => {
                // The folder stays if it has other files.
                let _ = path.parent().map(std::fs::remove_dir);
                Ok(())
            }
        }
    }

    /// Returns a file with these entries in place of the entries on the findings.
    fn put(
        &self,
        name: &str,
        before: Option<Vec<u8>>,
        entries: &[DecisionEntry],
    ) -> Result<Vec<u8>> {
        let mut all = changed_file(name, before, std::iter::empty())?;
        all.entries
            .retain(|e| !self.fingerprints.contains(&e.fingerprint));
        all.entries.extend(entries.iter().cloned());
        Ok(all.render().into_bytes())
    }
}
