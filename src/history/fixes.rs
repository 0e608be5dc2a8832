//! `fixes.json` of a session.

use super::read::{document, optional};
use super::trouble::Trouble;
use super::{SessionId, Store, write};
use crate::error;
use crate::wire::fixing::{Fix, Fixes};
use crate::wire::stored::STORED_VERSION;

pub(super) const FIXES: &str = "fixes.json";
/// Fixes of a session that are kept, the newest.
const MOST: usize = 100;

impl Store {
    /// Stores a fix of a session, in place of what is stored of it. Gives it a number if it has none. Returns the fix.
    ///
    /// # Errors
    ///
    /// Usage: the session is missing. Incomplete: it cannot be written.
    pub fn record_fix(&self, id: &SessionId, mut fix: Fix) -> error::Result<Fix> {
        let fail = |t: Trouble| t.error(format!("the fix of review {id} was not stored"));
        let lock = self.lock().map_err(fail)?;
        let folder = self.sessions().and_then(|s| s.folder(&id.to_string())).map_err(fail)?;
        // A file that cannot be read is replaced, because it decides nothing.
        let known: Option<Fixes> = optional(document(&folder, FIXES)).unwrap_or_default();
        let mut fixes = known.map(|k| k.fixes).unwrap_or_default();
        if fix.number == 0 {
            fix.number = fixes.iter().map(|f| f.number).max().unwrap_or(0).saturating_add(1);
        }
        match fixes.iter_mut().find(|f| f.number == fix.number) {
            Some(place) => place.clone_from(&fix),
            None => fixes.push(fix.clone()),
        }
        let surplus = fixes.len().saturating_sub(MOST);
        fixes.drain(..surplus);
        let document = Fixes { schema_version: STORED_VERSION, review_id: id.to_string(), fixes };
        let written = write::text(&document).and_then(|text| self.replace_in(&folder, FIXES, &text));
        drop(lock);
        written.map(|()| fix).map_err(fail)
    }
}
