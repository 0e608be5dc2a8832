//! Damaged sessions in `.corrupt`. Listings report them until a person removes them, which leaves a
//! record there.

use super::disk::{StoreFolder, unique};
use super::document::{document, text};
use super::read::load_from;
use super::trouble::{Result, Trouble};
use super::{CORRUPT, SessionId, Store, TMP};
use crate::error::{self, Error};
use crate::wire::stored::{Damaged, Removed, STORED_VERSION};
use jiff::Timestamp;

/// Suffix of the record of a damaged session that was removed.
const REMOVED: &str = ".removed";

/// Command that removes damaged sessions.
const PRUNE: &str = "claude-reviewer history prune --damaged";

/// The contents of `.corrupt`.
#[derive(Debug, Default)]
pub(super) struct CorruptEntries {
    /// Names of damaged sessions (`2026-01-31-001`, `2026-01-31-001.2`) and of any other files,
    /// newest first.
    pub(super) names: Vec<String>,
    /// Names of the records of removed sessions, newest first.
    removed: Vec<String>,
}

impl CorruptEntries {
    /// Returns the IDs of all of them, including removed ones.
    pub(super) fn ids(&self) -> Vec<SessionId> {
        self.names
            .iter()
            .chain(&self.removed)
            .filter_map(|n| session_of(n))
            .collect()
    }

    /// Returns the newest damaged session that was not removed.
    pub(super) fn newest_damaged(&self) -> Option<SessionId> {
        self.names.iter().filter_map(|n| session_of(n)).max()
    }
}

/// Returns the session whose remains have this name.
pub(super) fn session_of(name: &str) -> Option<SessionId> {
    SessionId::parse(name.split('.').next()?)
}

/// Reads the record of a session that was removed. An unreadable record still names the session.
fn record_of_removal(corrupt: &StoreFolder, name: &str) -> Option<Removed> {
    let id = session_of(name)?;
    Some(document(corrupt, name).unwrap_or_else(|_| Removed {
        schema_version: STORED_VERSION,
        review_id: id.to_string(),
        timestamp: String::new(),
        why: "its record cannot be read".to_owned(),
    }))
}

impl Store {
    /// Lists the contents of `.corrupt`.
    pub(super) fn aside(&self) -> Result<CorruptEntries> {
        let mut names = match self.root.folder(CORRUPT).and_then(|c| c.names()) {
            Err(Trouble::Absent) => return Ok(CorruptEntries::default()),
            names => names?,
        };
        names.sort_unstable_by(|a, b| (session_of(b), b).cmp(&(session_of(a), a)));
        let (removed, names) = names.into_iter().partition(|n| n.ends_with(REMOVED));
        Ok(CorruptEntries { names, removed })
    }

    /// Returns why an entry of `.corrupt` is damaged: the file and the reason. Reads it again for a
    /// current result.
    pub(super) fn why_aside(&self, name: &str) -> String {
        let Some(id) = session_of(name) else {
            return "not a session".to_owned();
        };
        match self
            .root
            .folder(CORRUPT)
            .and_then(|corrupt| load_from(&corrupt.folder(name)?, id))
        {
            Ok(_) => {
                let (from, to) = (self.root.shown(CORRUPT), self.root.shown(super::SESSIONS));
                format!("it can be read again: `mv {from}/{name} {to}/{id}` puts it back")
            }
            Err(t) => t.line(),
        }
    }

    /// Describes an entry of `.corrupt`.
    pub(super) fn damaged_aside(&self, name: &str) -> Damaged {
        let review_id = session_of(name).map_or_else(|| name.to_owned(), |id| id.to_string());
        Damaged {
            review_id,
            why: self.why_aside(name),
            moved_to: Some(format!("{CORRUPT}/{name}")),
        }
    }

    /// Returns the error for a session in `.corrupt`, or `None` if it is not there.
    pub(super) fn lies_aside(&self, id: SessionId, what: &str) -> Option<Error> {
        let aside = self.aside().ok()?;
        let name = aside.names.iter().find(|n| session_of(n) == Some(id))?;
        let mut error = Error::usage(format!("{what} is damaged"));
        error.causes.push(self.why_aside(name));
        Some(self.way_out(error, &format!("{CORRUPT}/{name}")))
    }

    /// Adds hints with the path of damaged remains and the command to remove them.
    pub(super) fn way_out(&self, error: Error, place: &str) -> Error {
        error
            .hint(format!("its remains are in {}", self.root.shown(place)))
            .hint_person(format!("`{PRUNE}` removes it, and records that"))
            .hint_agent("ask the user to remove the damaged files")
    }

    /// Returns the records of damaged sessions that were removed, oldest first.
    pub(super) fn removed(&self, aside: &CorruptEntries) -> Vec<Removed> {
        let Ok(corrupt) = self.root.folder(CORRUPT) else {
            return Vec::new();
        };
        aside
            .removed
            .iter()
            .rev()
            .filter_map(|name| record_of_removal(&corrupt, name))
            .collect()
    }

    /// Removes the contents of `.corrupt`, and leaves a record of each session. Returns the names,
    /// oldest first.
    ///
    /// # Errors
    ///
    /// Incomplete on a system error; files removed before the error stay removed.
    pub fn discard(&self, now: Timestamp) -> error::Result<Vec<String>> {
        self.empty_aside(now)
            .map_err(|t| t.error("damaged reviews cannot be removed"))
    }

    /// Moves the damaged sessions to `tmp/` with a record of each, and deletes them without the
    /// lock.
    fn empty_aside(&self, now: Timestamp) -> Result<Vec<String>> {
        let tmp = self.root.make(TMP)?;
        let lock = self.lock()?;
        let mut names = self.aside()?.names;
        names.reverse();
        let mut gone = Vec::new();
        if !names.is_empty() {
            let corrupt = self.root.folder(CORRUPT)?;
            for name in &names {
                if let Some(id) = session_of(name) {
                    let (review_id, why) = (id.to_string(), self.why_aside(name));
                    let timestamp = now.to_string();
                    let record = Removed {
                        schema_version: STORED_VERSION,
                        review_id,
                        timestamp,
                        why,
                    };
                    self.replace_in(&corrupt, &format!("{name}{REMOVED}"), &text(&record)?)?;
                }
                let old = unique("old");
                match corrupt.rename(name, &tmp, &old) {
                    Err(Trouble::Absent) => {}
                    renamed => renamed?,
                }
                gone.push(old);
            }
            corrupt.sync()?;
        }
        drop(lock);
        for name in gone {
            tmp.remove_all(&name)?;
        }
        Ok(names)
    }

    /// Removes the records that are older than every remaining session, since no session refers to
    /// them any longer. Ignores errors.
    pub(super) fn forget(&self, oldest: Option<SessionId>) {
        let (Ok(aside), Ok(corrupt)) = (self.aside(), self.root.folder(CORRUPT)) else {
            return;
        };
        for name in aside
            .removed
            .iter()
            .filter(|n| session_of(n).is_none_or(|id| oldest.is_none_or(|o| id < o)))
        {
            let _ = corrupt.remove(name);
        }
    }
}
