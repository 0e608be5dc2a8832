//! Checks whether a session was modified since it was stored.
//!
//! A file that was modified, added or removed does not match the seal of its round: [`session`]
//! checks the seals of one session. An attacker who also forges a seal changes the heads: then the
//! session lacks a head that was recorded elsewhere, or by a later session ([`link`]). The same
//! holds if the last rounds or the closing were removed, which the session's own seals do not show.
//! This file compares the heads of sessions with such records.

mod seal;
mod session;

use super::damage::CorruptEntries;
use super::disk::StoreFolder;
use super::document::{REQUEST, document};
use super::link::{self, Break, KnownSession, SessionClaim};
use super::trouble::{Result, Trouble};
use super::{CORRUPT, LATEST, SessionId, Store};
use crate::error;
use crate::wire::stored::{Head, StoredRequest};
use session::SessionCheck;
use std::collections::{HashMap, HashSet};

/// The result of checking a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    pub id: String,
    pub rounds: u32,
    /// End of the hash chain, if there is one.
    pub head: Option<String>,
    /// Differences from the stored state; empty if the seals show none.
    pub edits: Vec<Modification>,
    /// Files that no seal covers: from an interrupted run, or added by hand. They do not count as
    /// modifications.
    pub unsealed: Vec<String>,
    /// File that a newer version wrote and this one cannot check, and the reason.
    pub newer: Option<String>,
    /// Reason and time of the removal of a damaged session, which is not a modification.
    pub removed: Option<String>,
}

impl Checked {
    /// Returns true if this version understands the whole session, and its seals show no
    /// modification.
    fn is_sound(&self) -> bool {
        self.edits.is_empty() && self.newer.is_none()
    }

    /// Describes a session that is missing, damaged or removed. `why` makes it a modification.
    /// `removed` describes the removal by a person, which is not a modification.
    fn gone(id: String, why: Option<String>, removed: Option<String>) -> Self {
        Self {
            id,
            rounds: 0,
            head: None,
            edits: why.into_iter().map(Modification::of_session).collect(),
            unsealed: Vec::new(),
            newer: None,
            removed,
        }
    }
}

/// A checked session, with what the comparison with other sessions needs.
struct CheckedSession {
    id: SessionId,
    checked: Checked,
    /// Heads in its seals, oldest first.
    heads: Vec<String>,
    /// Its records of other sessions.
    earlier_heads: Vec<Head>,
}

/// A difference from the stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modification {
    /// `None` for the session as a whole, or its closing.
    pub round: Option<u32>,
    /// Path relative to the session, such as `round-1/review.json`; empty for the session as a
    /// whole.
    pub file: String,
    pub why: String,
}

impl Modification {
    /// Describes a modification of a session as a whole.
    fn of_session(why: String) -> Self {
        Self {
            round: None,
            file: String::new(),
            why,
        }
    }
}

impl Store {
    /// Returns the first modification of a session that its own seals or later sessions show, if
    /// any.
    ///
    /// # Errors
    ///
    /// As [`Store::verify`].
    pub fn edited(&self, id: &SessionId) -> error::Result<Option<String>> {
        let checked = self.verify(Some(id), None)?;
        let edit = checked.into_iter().flat_map(|c| c.edits).next();
        Ok(edit.map(|e| match e.file.is_empty() {
            true => format!("it was modified: {}", e.why),
            false => format!("it was modified: {}: {}", e.file, e.why),
        }))
    }

    /// Checks one session or all of them, oldest first.
    ///
    /// `noted` is a head of the session `id` that was recorded elsewhere: the session must have had
    /// it. It has no effect on a check of all sessions.
    ///
    /// # Errors
    ///
    /// Usage if there is no such session; incomplete if the store cannot be read.
    pub fn verify(
        &self,
        id: Option<&SessionId>,
        noted: Option<&str>,
    ) -> error::Result<Vec<Checked>> {
        match id {
            Some(id) => {
                // Records are read before the session that they are about, because sessions only
                // grow.
                let claims = self.claims_about(*id).map_err(unchecked)?;
                match self.verify_one(*id, &claims, noted) {
                    Err(Trouble::Absent) => Err(self.unreadable(*id, Trouble::Absent)),
                    checked => Ok(vec![checked.map_err(unchecked)?]),
                }
            }
            None => self.verify_all().map_err(unchecked),
        }
    }

    /// Checks one session by its seals, and by the records about it.
    fn verify_one(
        &self,
        id: SessionId,
        claims: &[SessionClaim],
        noted: Option<&str>,
    ) -> Result<Checked> {
        let mut session = [self.check(id, noted)?];
        let breaks = link::breaks(claims, &known(&session), &[], None);
        mark_cuts(&mut session, &breaks);
        let [session] = session;
        Ok(session.checked)
    }

    /// Checks all sessions by their seals, and by the records of each other. Lists missing, damaged
    /// and removed sessions too.
    fn verify_all(&self) -> Result<Vec<Checked>> {
        // Read before the sessions, as for one session.
        let mut claims = self.claims_in_latest();
        let mut all = self.check_all()?;
        // Records of modified sessions are not trusted, nor those of sessions that this version
        // does not fully understand. The check of one session trusts the latter: see `claims_in`.
        for s in all.iter().filter(|s| s.checked.is_sound()) {
            claims.extend(SessionClaim::all(&s.checked.id, &s.earlier_heads));
        }
        let aside = self.aside()?;
        // Sessions that were created meanwhile are not gaps.
        let now = self.ids()?;
        let seen: HashSet<SessionId> = all.iter().map(|s| s.id).collect();
        let came: HashSet<&SessionId> = now.iter().filter(|id| !seen.contains(*id)).collect();
        claims.retain(|c| !came.contains(&c.id));
        let oldest = now.iter().min().copied();
        let breaks = link::breaks(&claims, &known(&all), &aside.ids(), oldest);
        mark_cuts(&mut all, &breaks);
        let mut out: Vec<Checked> = all.into_iter().map(|s| s.checked).collect();
        out.extend(holes(breaks));
        out.sort_by_key(|c| SessionId::parse(&c.id));
        out.extend(self.damaged_sessions(&aside));
        out.extend(self.removed(&aside).into_iter().map(|r| {
            let removed = format!("it was damaged, and removed on {}: {}", r.timestamp, r.why);
            Checked::gone(r.review_id, None, Some(removed))
        }));
        Ok(out)
    }

    /// Checks the seals of every session, oldest first.
    fn check_all(&self) -> Result<Vec<CheckedSession>> {
        let mut ids = self.ids()?;
        ids.sort_unstable();
        let mut all = Vec::new();
        for id in ids {
            match self.check(id, None) {
                // Removed since the names were listed.
                Err(Trouble::Absent) => {}
                checked => all.push(checked?),
            }
        }
        Ok(all)
    }

    /// Describes the damaged sessions in `.corrupt`, oldest first.
    fn damaged_sessions(&self, aside: &CorruptEntries) -> Vec<Checked> {
        let names = aside.names.iter().rev();
        let described = names.map(|name| {
            let why = format!(
                "it was damaged, and put into {}: {}",
                self.root.shown(CORRUPT),
                self.why_aside(name)
            );
            Checked::gone(name.clone(), Some(why), None)
        });
        described.collect()
    }

    /// Returns the records in `latest.json`, which the newest session wrote on this machine. In a
    /// committed store they do not count: its sessions come and go with branches, while this file,
    /// which git ignores, stays.
    fn claims_in_latest(&self) -> Vec<SessionClaim> {
        let Some(latest) = self.latest_document().filter(|_| !self.shared) else {
            return Vec::new();
        };
        let by = self.root.shown(LATEST);
        let newest = Head {
            review_id: latest.review_id,
            head: None,
        };
        SessionClaim::all(&by, latest.since.iter().chain([&newest]))
    }

    /// Returns the records about a session: in `latest.json`, and in later sessions.
    fn claims_about(&self, id: SessionId) -> Result<Vec<SessionClaim>> {
        let mut claims = self.claims_in_latest();
        claims.extend(self.claims_in_later_sessions(id)?);
        claims.retain(|c| c.id == id);
        Ok(claims)
    }

    /// Returns the records about a session in later ones whose seals show no modification, oldest
    /// first.
    fn claims_in_later_sessions(&self, id: SessionId) -> Result<Vec<SessionClaim>> {
        let mut later = self.ids()?;
        later.retain(|later| *later > id);
        later.sort_unstable();
        let Ok(sessions) = self.sessions() else {
            return Ok(Vec::new());
        };
        let claims = later
            .into_iter()
            .filter_map(|later| self.claims_in(later, &sessions, id));
        Ok(claims.flatten().collect())
    }

    /// Returns the records about a session in a later one; `None` if it has none, or its seals show
    /// a modification. Unlike in [`Store::verify_all`], the records count if a newer version wrote
    /// a part of the later session.
    fn claims_in(
        &self,
        later: SessionId,
        sessions: &StoreFolder,
        id: SessionId,
    ) -> Option<Vec<SessionClaim>> {
        let folder = sessions.folder(&later.to_string()).ok()?;
        let mut claims = SessionClaim::all(
            &later.to_string(),
            &document::<StoredRequest>(&folder, REQUEST).ok()?.before,
        );
        claims.retain(|c| c.id == id);
        // The seals are checked last, because that is expensive.
        let counts = !claims.is_empty()
            && self
                .check(later, None)
                .is_ok_and(|s| s.checked.edits.is_empty());
        counts.then_some(claims)
    }

    /// Checks the seals of one session. Unreadable parts are modifications; an error means that the
    /// session does not exist, or a system error.
    fn check(&self, id: SessionId, noted: Option<&str>) -> Result<CheckedSession> {
        let check = match self.sessions()?.folder(&id.to_string()) {
            Err(t @ (Trouble::Refused(..) | Trouble::Damaged(..))) => {
                SessionCheck::unreadable(id, t.line())
            }
            folder => {
                let folder = folder?;
                let check = SessionCheck::of_folder(id, &folder)?;
                self.still_this(id, &folder)?;
                check
            }
        };
        Ok(check.finished(noted))
    }
}

/// Returns the error of a check that could not be made.
fn unchecked(trouble: Trouble) -> error::Error {
    trouble.error("the stored reviews cannot be checked")
}

/// Returns the sessions in the form that is compared with records.
fn known(all: &[CheckedSession]) -> Vec<KnownSession<'_>> {
    all.iter()
        .map(|s| KnownSession {
            id: s.id,
            heads: &s.heads,
            sound: s.checked.is_sound(),
        })
        .collect()
}

/// Marks the sessions that lack a recorded head as modified.
fn mark_cuts(all: &mut [CheckedSession], breaks: &[Break]) {
    let index: HashMap<SessionId, usize> = all.iter().enumerate().map(|(i, s)| (s.id, i)).collect();
    for b in breaks {
        if let Break::Cut(id, why) = b
            && let Some(session) = index.get(id).and_then(|i| all.get_mut(*i))
        {
            let edit = Modification::of_session(why.clone());
            session.checked.edits.push(edit);
        }
    }
}

/// Describes the sessions that are missing between others.
fn holes(breaks: Vec<Break>) -> impl Iterator<Item = Checked> {
    breaks.into_iter().filter_map(|b| match b {
        Break::Hole(id, why) => Some(Checked::gone(id.to_string(), Some(why), None)),
        Break::Cut(..) => None,
    })
}
