//! Removes old sessions, and the temporary files of crashed runs.

use super::disk::{StoreFolder, unique};
use super::trouble::{Result, Trouble};
use super::{SessionId, Store, TMP};
use crate::error;
use jiff::Timestamp;

/// Seconds after which a temporary file is stale.
const STALE: i64 = 3600;

/// The result of pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Oldest first.
    pub removed: Vec<SessionId>,
    /// Number of remaining sessions.
    pub kept: usize,
    /// Number of stale temporary files that were removed.
    pub swept: usize,
}

impl Store {
    /// Removes all but the newest `keep` sessions, including open ones, and stale temporary files.
    ///
    /// # Errors
    ///
    /// Incomplete on a system error; files removed before the error stay removed.
    pub fn prune(&self, keep: usize, now: Timestamp) -> error::Result<Pruned> {
        self.shorten(keep, now)
            .map_err(|t| t.error("old reviews cannot be removed"))
    }

    /// Moves old sessions to `tmp/`, and deletes them without the lock.
    fn shorten(&self, keep: usize, now: Timestamp) -> Result<Pruned> {
        let tmp = self.root.make(TMP)?;
        let lock = self.lock()?;
        let mut ids = self.ids()?;
        ids.sort_unstable();
        let old = ids.len().saturating_sub(keep);
        let kept = ids.len() - old;
        ids.truncate(old);
        let mut aside = Vec::new();
        if !ids.is_empty() {
            let sessions = self.sessions()?;
            for id in &ids {
                let name = unique("old");
                match sessions.rename(&id.to_string(), &tmp, &name) {
                    Err(Trouble::Absent) => {}
                    renamed => renamed?,
                }
                aside.push(name);
            }
            sessions.sync()?;
        }
        if old > 0 {
            self.forget(self.ids()?.into_iter().min());
        }
        drop(lock);
        for name in aside {
            tmp.remove_all(&name)?;
        }
        Ok(Pruned {
            removed: ids,
            kept,
            swept: sweep(&tmp, now),
        })
    }
}

/// Removes stale temporary files, and returns their number. Errors are ignored: the next run tries
/// again.
pub(super) fn sweep(tmp: &StoreFolder, now: Timestamp) -> usize {
    let Ok(names) = tmp.names() else { return 0 };
    let oldest = now.as_second() - STALE;
    let stale = names
        .iter()
        .filter(|name| tmp.look(name).is_ok_and(|l| l.modified.0 < oldest));
    stale.filter(|name| tmp.remove_all(name).is_ok()).count()
}
