//! Checks whether a session was modified since it was stored.
//!
//! A file that was modified, added or removed does not match the seal of its round. An attacker who
//! also forges a seal changes the heads: then the session lacks a head that was recorded elsewhere,
//! or by a later session ([`link`]). The same holds if the last rounds or the closing were removed,
//! which the session's own seals do not show.

use super::chain::{self, Covered};
use super::damage::session_of;
use super::disk::StoreFolder;
use super::fixes::{self, FIXES};
use super::link::{self, Break, KnownSession, SessionClaim};
use super::read::{
    CHANGE, COMPLETE, REQUEST, RESPONSE, REVIEW, SEAL, document, most, round_name, round_number,
    understand,
};
use super::trouble::{Result, Trouble};
use super::{CORRUPT, LATEST, SessionId, Store};
use crate::error;
use crate::wire;
use crate::wire::fixing::{FixLink, Fixes};
use crate::wire::stored::{
    Completion, Head, Response, Review, Seal, StoredDocument, StoredRequest,
};
use serde_json::Value;
use std::collections::{HashMap, HashSet, VecDeque};

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

    /// Describes a missing session.
    fn gone(id: String, why: Option<String>, removed: Option<String>) -> Self {
        let edits = why
            .into_iter()
            .map(|why| Modification {
                round: None,
                file: String::new(),
                why,
            })
            .collect();
        Self {
            id,
            rounds: 0,
            head: None,
            edits,
            unsealed: Vec::new(),
            newer: None,
            removed,
        }
    }
}

/// A checked session, with its records of other sessions.
struct CheckedSession {
    id: SessionId,
    checked: Checked,
    heads: Vec<String>,
    before: Vec<Head>,
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
    /// `noted` is a head that was recorded elsewhere: the session must have had it.
    ///
    /// # Errors
    ///
    /// Usage if there is no such session; incomplete if the store cannot be read.
    pub fn verify(
        &self,
        id: Option<&SessionId>,
        noted: Option<&str>,
    ) -> error::Result<Vec<Checked>> {
        // Records are read before the sessions that they are about, because sessions only grow.
        let mut claims = self.claims_of_latest();
        let mut ids = self.ids().map_err(unchecked)?;
        ids.sort_unstable();
        let Some(id) = id else {
            return self.all(claims, &ids, noted).map_err(unchecked);
        };
        claims.extend(self.claims_of_later(*id, &ids));
        match self.check(*id, noted) {
            Err(Trouble::Absent) => Err(self.unreadable(*id, Trouble::Absent)),
            seen => {
                let mut seen = [seen.map_err(unchecked)?];
                claims.retain(|c| c.id == *id);
                let breaks = link::breaks(&claims, &known(&seen), &[], None);
                mark(&mut seen, breaks);
                Ok(seen.map(|s| s.checked).into())
            }
        }
    }

    fn all(
        &self,
        mut claims: Vec<SessionClaim>,
        ids: &[SessionId],
        noted: Option<&str>,
    ) -> Result<Vec<Checked>> {
        let mut all = Vec::new();
        for id in ids {
            match self.check(*id, noted) {
                // Removed since the names were listed.
                Err(Trouble::Absent) => {}
                seen => all.push(seen?),
            }
        }
        // Records of modified sessions are not trusted.
        for s in all.iter().filter(|s| s.checked.is_sound()) {
            claims.extend(SessionClaim::all(&s.checked.id, &s.before));
        }
        let aside = self.aside()?;
        // Sessions that were removed or created meanwhile are not gaps.
        let now = self.ids()?;
        let seen: HashSet<SessionId> = all.iter().map(|s| s.id).collect();
        let came: HashSet<SessionId> = now
            .iter()
            .copied()
            .filter(|id| !seen.contains(id))
            .collect();
        claims.retain(|c| !came.contains(&c.id));
        let breaks = link::breaks(
            &claims,
            &known(&all),
            &aside.ids(),
            now.iter().min().copied(),
        );
        let holes = mark(&mut all, breaks);
        let mut all: Vec<Checked> = all.into_iter().map(|s| s.checked).collect();
        all.extend(
            holes
                .into_iter()
                .map(|(id, why)| Checked::gone(id.to_string(), Some(why), None)),
        );
        all.sort_by_key(|c| SessionId::parse(&c.id));
        for name in aside.names.iter().rev() {
            let why = format!(
                "it was damaged, and put into {}: {}",
                self.root.shown(CORRUPT),
                self.why_aside(name)
            );
            let id = session_of(name).filter(|id| id.to_string() == *name);
            all.push(Checked::gone(
                id.map_or_else(|| name.clone(), |id| id.to_string()),
                Some(why),
                None,
            ));
        }
        for r in self.removed(&aside) {
            let told = format!("it was damaged, and removed on {}: {}", r.timestamp, r.why);
            all.push(Checked::gone(r.review_id, None, Some(told)));
        }
        Ok(all)
    }

    /// Returns the records in `latest.json`, which the newest session wrote on this machine.
    fn claims_of_latest(&self) -> Vec<SessionClaim> {
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

    /// Returns the records about this session in later ones whose seals are valid.
    fn claims_of_later(&self, id: SessionId, ids: &[SessionId]) -> Vec<SessionClaim> {
        let Ok(sessions) = self.sessions() else {
            return Vec::new();
        };
        let later = ids.iter().filter(|later| **later > id);
        later
            .filter_map(|later| self.claims_of(*later, &sessions, id))
            .flatten()
            .collect()
    }

    /// Returns the records about a session in a later one; `None` if it has none, or its seals are
    /// invalid.
    fn claims_of(
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

    /// Checks one session. Unreadable parts are modifications; an error means that the session does
    /// not exist, or a system error.
    fn check(&self, id: SessionId, noted: Option<&str>) -> Result<CheckedSession> {
        let mut look = SessionCheck::of(id);
        let mut rounds = 0;
        match self.sessions()?.folder(&id.to_string()) {
            Err(t @ (Trouble::Refused(..) | Trouble::Damaged(..))) => look.edit(None, "", t.line()),
            Err(t) => return Err(t),
            Ok(folder) => {
                (look, rounds) = SessionCheck::whole(id, &folder)?;
                self.still_this(id, &folder)?;
            }
        }
        let head = look.heads.last().cloned();
        if let Some(noted) = noted
            && look.newer.is_none()
            && !look.heads.iter().any(|h| h.eq_ignore_ascii_case(noted))
        {
            look.edit(None, "", format!("it never had the head {noted}"));
        }
        let (unsealed, newer) = (look.unsealed, look.newer);
        let checked = Checked {
            id: id.to_string(),
            rounds,
            head,
            edits: look.edits,
            unsealed,
            newer,
            removed: None,
        };
        Ok(CheckedSession {
            id,
            checked,
            heads: look.heads,
            before: look.before,
        })
    }
}

/// Returns the error of a check that could not be made.
fn unchecked(trouble: Trouble) -> error::Error {
    trouble.error("the stored reviews cannot be checked")
}

fn known(all: &[CheckedSession]) -> Vec<KnownSession<'_>> {
    all.iter()
        .map(|s| KnownSession {
            id: s.id,
            heads: &s.heads,
            sound: s.checked.is_sound(),
        })
        .collect()
}

/// Marks the sessions with missing heads; returns the missing sessions, and the records of them.
fn mark(all: &mut [CheckedSession], breaks: Vec<Break>) -> Vec<(SessionId, String)> {
    let mut holes = Vec::new();
    let places: HashMap<SessionId, usize> =
        all.iter().enumerate().map(|(i, s)| (s.id, i)).collect();
    for b in breaks {
        match b {
            Break::Hole(id, why) => holes.push((id, why)),
            Break::Cut(id, why) => {
                let edit = Modification {
                    round: None,
                    file: String::new(),
                    why,
                };
                let cut = places.get(&id).and_then(|i| all.get_mut(*i));
                cut.into_iter()
                    .for_each(|s| s.checked.edits.push(edit.clone()));
            }
        }
    }
    holes
}

/// The state of checking a session.
struct SessionCheck {
    id: SessionId,
    /// Heads in the seals.
    heads: Vec<String>,
    edits: Vec<Modification>,
    unsealed: Vec<String>,
    newer: Option<String>,
    /// Records of other sessions in its request.
    before: Vec<Head>,
    /// The head of the last round.
    last_round: Option<String>,
    /// Links of fixes whose place in the chain was not reached yet.
    links: VecDeque<FixLink>,
}

/// Reads of a session, at most, while its fixes or its closing change.
const MOST_READS: u32 = 5;

impl SessionCheck {
    fn of(id: SessionId) -> Self {
        let (heads, edits, unsealed, links) = (Vec::new(), Vec::new(), Vec::new(), VecDeque::new());
        Self {
            id,
            heads,
            edits,
            unsealed,
            newer: None,
            before: Vec::new(),
            last_round: None,
            links,
        }
    }

    /// Reads and checks all parts of a session. Returns the number of its rounds.
    ///
    /// Rounds, links of fixes and closings continue each other, and a running `fix` adds links. So
    /// the parts are read between two equal reads of the fixes and the closing.
    fn whole(id: SessionId, folder: &StoreFolder) -> Result<(Self, u32)> {
        let mut reads = 1;
        loop {
            let mut look = Self::of(id);
            let complete = look.bytes(folder, COMPLETE, None, COMPLETE)?;
            let fixes = look.bytes(folder, FIXES, None, FIXES)?;
            if let Some(fixes) = &fixes {
                look.fixes(fixes);
            }
            let rounds = look.rounds(folder)?;
            let mut again = Self::of(id);
            let is_same = again.bytes(folder, COMPLETE, None, COMPLETE)? == complete
                && again.bytes(folder, FIXES, None, FIXES)? == fixes;
            if !is_same && reads < MOST_READS {
                reads += 1;
                continue;
            }
            if let Some(complete) = complete.filter(|_| look.newer.is_none()) {
                look.closings(&complete);
            }
            if look.newer.is_none() && !look.links.is_empty() {
                look.edit(None, FIXES, "its links do not continue the chain");
            }
            return Ok((look, rounds));
        }
    }

    /// Checks the fixes, and keeps their links for the heads that they continue.
    fn fixes(&mut self, bytes: &[u8]) {
        let fixes: Fixes = match understand(bytes, String::new) {
            Ok(fixes) => fixes,
            Err(t @ Trouble::Future(..)) => {
                self.newer = Some(format!("{FIXES}: {}", why(t)));
                return;
            }
            Err(t) => return self.edit(None, FIXES, why(t)),
        };
        let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let values = document
            .get("fixes")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let edits = self.edits.len();
        if fixes.review_id != self.id.to_string() {
            self.edit(None, FIXES, "it speaks of another review");
        }
        let known = ["schema_version", "review_id", "fixes", "links"];
        let mut keys = document
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys());
        // An added field needs a new version: otherwise the links could be hidden by renaming their
        // field.
        if keys.any(|key| !known.contains(&key.as_str())) {
            self.edit(None, FIXES, "it was modified");
        }
        let compared = fixes::compare(&fixes, values);
        compared
            .edits
            .iter()
            .for_each(|why| self.edit(None, FIXES, why));
        // Fixes of older versions have no links, and costs with more digits than survive a round
        // trip.
        let is_linked = compared.unlinked.is_empty();
        if self.edits.len() == edits && is_linked && !is_as_written(&document, bytes) {
            self.edit(None, FIXES, "it was modified");
        }
        match fixes.links.is_empty() {
            true if !fixes.fixes.is_empty() => self.unsealed.push(FIXES.to_owned()),
            _ => self.unsealed.extend(
                compared
                    .unlinked
                    .iter()
                    .map(|n| format!("{FIXES}, fix {n}")),
            ),
        }
        self.links = fixes.links.into();
    }

    /// Appends a head, and the links of fixes that continue it.
    fn push_head(&mut self, head: String) {
        self.heads.push(head);
        while let Some(link) = self
            .links
            .pop_front_if(|l| self.heads.last() == Some(&l.previous))
        {
            if chain::link(&link) != link.seal {
                self.edit(
                    None,
                    FIXES,
                    format!("the link of fix {} was modified", link.number),
                );
            }
            self.heads.push(link.seal);
        }
    }

    fn edit(&mut self, round: Option<u32>, file: &str, why: impl Into<String>) {
        self.edits.push(Modification {
            round,
            file: file.to_owned(),
            why: why.into(),
        });
    }

    /// Reads a file. Returns `None` if it is missing, or cannot be read, which is a modification.
    fn bytes(
        &mut self,
        folder: &StoreFolder,
        name: &str,
        round: Option<u32>,
        path: &str,
    ) -> Result<Option<Vec<u8>>> {
        match folder.read(name, most(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Trouble::Absent) => Ok(None),
            Err(Trouble::Refused(_, why) | Trouble::Damaged(_, why)) => {
                self.edit(round, path, why);
                Ok(None)
            }
            Err(t) => Err(t),
        }
    }

    /// Checks every round; returns their number.
    fn rounds(&mut self, session: &StoreFolder) -> Result<u32> {
        let names = session.names()?;
        let count = names
            .iter()
            .filter_map(|n| round_number(n))
            .max()
            .unwrap_or(0);
        let mut strange: Vec<_> = names.iter().filter(|n| !is_of_session(n)).collect();
        strange.sort_unstable();
        strange
            .iter()
            .for_each(|n| self.edit(None, n, "not a part of a session"));
        if count == 0 {
            self.edit(None, "", "it has no round");
        }
        let mut before: Option<StoreFolder> = None;
        // A name like `round-4000000000` is one gap, not four billion.
        let mut missing = (1..=count).filter(|n| !names.contains(&round_name(*n)));
        if let Some(missing) = missing.next() {
            self.edit(Some(missing), &round_name(missing), "it is missing");
            return Ok(missing - 1);
        }
        for n in 1..=count {
            let name = round_name(n);
            let round = match session.folder(&name) {
                Ok(round) => round,
                Err(Trouble::Refused(_, why) | Trouble::Damaged(_, why)) => {
                    self.edit(Some(n), &name, why);
                    return Ok(count);
                }
                Err(Trouble::Absent) => {
                    self.edit(Some(n), &name, "it is missing");
                    return Ok(count);
                }
                Err(t) => return Err(t),
            };
            self.round(session, before.as_ref(), &round, n)?;
            if self.newer.is_some() {
                return Ok(count);
            }
            let names = match round.names() {
                Err(Trouble::Absent) => {
                    self.edit(Some(n), &name, "it is missing");
                    return Ok(count);
                }
                names => names?,
            };
            let mut strange: Vec<_> = names.into_iter().filter(|f| !is_of_round(f, n)).collect();
            strange.sort_unstable();
            strange
                .iter()
                .for_each(|f| self.edit(Some(n), &format!("{name}/{f}"), "not a part of a round"));
            if n == count && round.look(RESPONSE).is_ok() {
                // Its seal would be in the following round, which does not exist.
                self.unsealed.push(format!("{name}/{RESPONSE}"));
            }
            before = Some(round);
        }
        Ok(count)
    }

    fn round(
        &mut self,
        session: &StoreFolder,
        before: Option<&StoreFolder>,
        round: &StoreFolder,
        n: u32,
    ) -> Result<()> {
        let name = round_name(n);
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut required = Vec::new();
        if let Some(before) = before {
            let path = format!("{}/{RESPONSE}", round_name(n - 1));
            // The response to the previous round, whose seal is in this round.
            if let Some(bytes) = self.bytes(before, RESPONSE, Some(n - 1), &path)? {
                files.push((path, bytes));
            }
            required.push((round, CHANGE, format!("{name}/{CHANGE}")));
        } else {
            required.push((session, REQUEST, REQUEST.to_owned()));
            required.push((session, CHANGE, CHANGE.to_owned()));
        }
        required.push((round, REVIEW, format!("{name}/{REVIEW}")));
        for (folder, file, path) in required {
            if let Some(bytes) = self.bytes(folder, file, Some(n), &path)? {
                files.push((path, bytes));
            }
        }
        let mut newer = Vec::new();
        for (path, bytes) in &files {
            let understood = match path.rsplit('/').next() {
                Some(REQUEST) => self
                    .understands::<StoredRequest>(bytes, |r| &r.review_id)
                    .map(|r| self.before = r.before),
                Some(REVIEW) => self
                    .understands::<Review>(bytes, |r| &r.review_id)
                    .map(drop),
                Some(RESPONSE) => self
                    .understands::<Response>(bytes, |r| &r.review_id)
                    .map(drop),
                _ => Ok(()),
            };
            match understood {
                Ok(()) => {}
                Err(trouble @ Trouble::Future(..)) => newer.push((path.clone(), why(trouble))),
                Err(trouble) => self.edit(Some(n), path, why(trouble)),
            }
        }
        self.seal(round, n, &files, newer.first())?;
        if self.newer.is_none() {
            newer
                .into_iter()
                .for_each(|(path, why)| self.edit(Some(n), &path, why));
        }
        Ok(())
    }

    fn understands<T: StoredDocument>(&self, bytes: &[u8], id: impl Fn(&T) -> &str) -> Result<T> {
        match understand::<T>(bytes, String::new) {
            Ok(document) if id(&document) == self.id.to_string() => Ok(document),
            Ok(_) => Err(Trouble::Damaged(
                String::new(),
                "it speaks of another review".to_owned(),
            )),
            Err(t) => Err(t),
        }
    }

    fn seal(
        &mut self,
        round: &StoreFolder,
        n: u32,
        files: &[(String, Vec<u8>)],
        newer: Option<&(String, String)>,
    ) -> Result<()> {
        let path = format!("{}/{SEAL}", round_name(n));
        let Some(bytes) = self.bytes(round, SEAL, Some(n), &path)? else {
            if !self.edits.iter().any(|e| e.file == path) {
                self.edit(Some(n), &path, "it is missing");
            }
            return Ok(());
        };
        let seal: Seal = match understand(&bytes, String::new) {
            Ok(seal) => seal,
            Err(t) => {
                // A newer version writes both the seal and the sealed files, so only the seal was
                // modified.
                match (t, newer) {
                    (Trouble::Future(..), Some((file, why))) => {
                        self.newer = Some(format!("{file}: {why}"))
                    }
                    (t, _) => self.edit(Some(n), &path, why(t)),
                }
                return Ok(());
            }
        };
        let previous = self.heads.last().cloned();
        let covered: Vec<_> = files
            .iter()
            .map(|(name, bytes)| Covered { name, bytes })
            .collect();
        let now = chain::seal(previous.as_deref(), &covered);
        let edits = self.edits.len();
        if now.head != seal.head {
            for (i, file) in now.files.iter().enumerate() {
                match seal.files.iter().find(|f| f.name == file.name) {
                    Some(sealed) if sealed.sha256 == file.sha256 => {}
                    Some(_) => self.edit(Some(n), &file.name, "it was modified"),
                    None => self.edit(
                        Some(n),
                        &now.files[i].name,
                        "it was not there when the round was stored",
                    ),
                }
            }
            for file in seal
                .files
                .iter()
                .filter(|f| !now.files.iter().any(|g| g.name == f.name))
            {
                self.edit(
                    Some(n),
                    &file.name,
                    "it was there when the round was stored",
                );
            }
            if self.edits.len() == edits {
                self.edit(Some(n), &path, "its head is not that of the round");
            }
        } else if now.files != seal.files || now.previous != seal.previous {
            self.edit(Some(n), &path, "it was modified");
        }
        if now.head != seal.head && now.previous != seal.previous {
            self.edit(Some(n), &path, "it does not continue the chain");
        }
        if self.edits.len() == edits && !is_as_written(&seal, &bytes) {
            self.edit(Some(n), &path, "it was modified");
        }
        if let (true, Some((file, why))) = (self.edits.len() == edits, newer) {
            // The seal matches, so it was not modified.
            self.newer = Some(format!("{file}: {why}"));
        }
        self.last_round = Some(seal.head.clone());
        self.push_head(seal.head);
        Ok(())
    }

    /// Checks the closings of the session.
    fn closings(&mut self, bytes: &[u8]) {
        let completion = match understand::<Completion>(bytes, String::new) {
            Ok(completion) => completion,
            // Only its own seals cover it, which this version cannot check.
            Err(t @ Trouble::Future(..)) => {
                self.newer = Some(format!("{COMPLETE}: {}", why(t)));
                return;
            }
            Err(t) => return self.edit(None, COMPLETE, why(t)),
        };
        let rounds = self.last_round.clone();
        let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let values = document
            .get("entries")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let edits = self.edits.len();
        for (entry, value) in completion.entries.iter().zip(values) {
            let previous = self.heads.last().cloned().unwrap_or_default();
            if chain::closing(&previous, value) != entry.seal
                || rounds.as_ref() != Some(&entry.head)
            {
                self.edit(
                    None,
                    COMPLETE,
                    format!("the entry of {} is not what was stored", entry.timestamp),
                );
            }
            self.push_head(entry.seal.clone());
        }
        if completion.review_id != self.id.to_string() {
            self.edit(None, COMPLETE, "it speaks of another review");
        } else if completion.entries.is_empty()
            || self.edits.len() == edits && !is_as_written(&document, bytes)
        {
            self.edit(None, COMPLETE, "it was modified");
        }
    }
}

/// Returns true for the name of a part of a session.
fn is_of_session(name: &str) -> bool {
    [REQUEST, CHANGE, COMPLETE, FIXES].contains(&name) || round_number(name).is_some()
}

/// Returns true for the name of a file of a round. The change of the first round is a part of the
/// session.
fn is_of_round(file: &str, round: u32) -> bool {
    [REVIEW, SEAL, RESPONSE].contains(&file) || (file == CHANGE && round > 1)
}

/// Returns the reason of an error, without the name of the file.
fn why(trouble: Trouble) -> String {
    match trouble {
        Trouble::Damaged(_, why) | Trouble::Refused(_, why) => why,
        Trouble::Future(_, version) => {
            format!("its schema_version is {version}, which is newer than this program")
        }
        t => t.line(),
    }
}

/// Returns true if a document is formatted exactly as this program writes it, so that every byte is
/// significant.
fn is_as_written(document: &impl StoredDocument, bytes: &[u8]) -> bool {
    let mut again = Vec::with_capacity(bytes.len());
    wire::write(document, &mut again).is_ok() && again == bytes
}
