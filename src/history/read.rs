//! Reads sessions, and moves damaged ones to `.corrupt`.

use super::disk::StoreFolder;
use super::document::{
    CHANGE, COMPLETE, REQUEST, RESPONSE, REVIEW, SEAL, document, most, optional, required,
    round_name, round_number, stored_fixes,
};
use super::fixes;
use super::trouble::{Result, Trouble};
use super::{CORRUPT, LATEST, SESSIONS, SessionId, Store};
use crate::error::{self, Error};
use crate::wire::fixing::Fixes;
use crate::wire::stored::{
    self, Completion, Damaged, Latest, Response, Review, Seal, Session, StoredRequest, StoredRound,
};
use std::time::Duration;

/// Rounds of a session, at most; policies allow far fewer.
pub(super) const MOST_ROUNDS: u32 = 10_000;
/// Time that a reader waits for a writer before it leaves a damaged session in place.
const AWHILE: Duration = Duration::from_millis(200);

/// Counts the rounds of a session, which are numbered from 1 without a gap.
pub(super) fn rounds(session: &StoreFolder) -> Result<u32> {
    let mut numbers: Vec<u32> = session
        .names()?
        .iter()
        .filter_map(|n| round_number(n))
        .collect();
    numbers.sort_unstable();
    let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    match numbers.iter().zip(1..).find(|(have, want)| **have != *want) {
        Some((_, missing)) => Err(Trouble::Damaged(
            session.shown(&round_name(missing)),
            "it is missing".to_owned(),
        )),
        None if numbers.is_empty() => Err(Trouble::Damaged(
            session.shown(&round_name(1)),
            "it is missing".to_owned(),
        )),
        None if count > MOST_ROUNDS => Err(Trouble::Damaged(
            session.shown(&round_name(count)),
            "too many rounds for a session".to_owned(),
        )),
        None => Ok(count),
    }
}

/// Reads the review of a round and checks that it belongs to this session and round.
pub(super) fn review(folder: &StoreFolder, id: SessionId, round: u32) -> Result<Review> {
    let review: Review = required(document(folder, REVIEW), folder, REVIEW)?;
    if review.round != round {
        let why = format!("its round number is {}", review.round);
        return Err(Trouble::Damaged(folder.shown(REVIEW), why));
    }
    speaks_of(&review.review_id, id, folder, REVIEW)?;
    Ok(review)
}

/// Reads the request of a session.
pub(super) fn request(folder: &StoreFolder, id: SessionId) -> Result<StoredRequest> {
    let request: StoredRequest = required(document(folder, REQUEST), folder, REQUEST)?;
    speaks_of(&request.review_id, id, folder, REQUEST)?;
    Ok(request)
}

/// Reads the closings of a session; `None` if it is open.
pub(super) fn completion(folder: &StoreFolder, id: SessionId) -> Result<Option<Completion>> {
    let completion: Option<Completion> = optional(document(folder, COMPLETE))?;
    if let Some(completion) = &completion {
        speaks_of(&completion.review_id, id, folder, COMPLETE)?;
        if completion.entries.is_empty() {
            return Err(Trouble::Damaged(
                folder.shown(COMPLETE),
                "it says nothing".to_owned(),
            ));
        }
    }
    Ok(completion)
}

/// Checks that a document names its own session.
fn speaks_of(said: &str, id: SessionId, folder: &StoreFolder, name: &str) -> Result<()> {
    if SessionId::parse(said) == Some(id) {
        return Ok(());
    }
    Err(Trouble::Damaged(
        folder.shown(name),
        "it speaks of another review".to_owned(),
    ))
}

/// Returns the status of a session: of its closing, or else of its last round.
pub(super) fn status(completion: Option<&Completion>, last: &Review) -> stored::Status {
    completion
        .and_then(|c| c.entries.last())
        .map_or(last.status, |closing| closing.status)
}

/// Returns the end of the hash chain.
pub(super) fn chain_end(
    completion: Option<&Completion>,
    last: &Seal,
    fixes: Option<&Fixes>,
) -> String {
    let closing = completion.and_then(|c| c.entries.last());
    fixes::end(
        closing.map_or_else(|| last.head.clone(), |closing| closing.seal.clone()),
        fixes,
    )
}

impl Store {
    /// Reads a session.
    ///
    /// # Errors
    ///
    /// Usage if it does not exist, a newer version wrote it, or it is damaged: then it is moved to
    /// `.corrupt`, and the error says so.
    pub fn session(&self, id: &SessionId) -> error::Result<Session> {
        self.load(*id).map_err(|t| self.unreadable(*id, t))
    }

    /// Returns the stored change of a round.
    ///
    /// # Errors
    ///
    /// As [`Store::session`]; usage if there is no such round.
    pub fn change(&self, id: &SessionId, round: u32) -> error::Result<Vec<u8>> {
        match self.read_change(*id, round) {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(no_round(id, round)),
            Err(t) => Err(self.unreadable(*id, t)),
        }
    }

    /// Reads the stored change of a round. Returns `None` if there is no such round.
    fn read_change(&self, id: SessionId, round: u32) -> Result<Option<Vec<u8>>> {
        let session = self.sessions()?.folder(&id.to_string())?;
        if round == 0 || round > rounds(&session)? {
            self.still_this(id, &session)?;
            return Ok(None);
        }
        let folder = if round == 1 {
            session
        } else {
            session.folder(&round_name(round))?
        };
        required(folder.read(CHANGE, most(CHANGE)), &folder, CHANGE).map(Some)
    }

    /// Returns the newest session, or `None` if there is none. A damaged one is an error: `latest`
    /// must not silently mean the previous one.
    ///
    /// # Errors
    ///
    /// Usage if the newest one is damaged, until it is removed or a newer one begins; incomplete if
    /// the store cannot be read.
    pub fn latest(&self) -> error::Result<Option<SessionId>> {
        let newest = self.newest().map_err(not_listed)?;
        let aside = self.aside().map_err(not_listed)?;
        let damaged = aside.newest_damaged().filter(|id| Some(*id) > newest);
        let error =
            damaged.and_then(|id| self.lies_aside(id, &format!("the latest review, {id},")));
        match (error, newest) {
            (None, newest) => Ok(newest),
            (Some(error), None) => Err(error),
            (Some(error), Some(newest)) => Err(error.hint(format!(
                "name the one that you mean; the newest that can be read is {newest}"
            ))),
        }
    }

    /// Reads a session that was not removed meanwhile.
    pub(super) fn load(&self, id: SessionId) -> Result<Session> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        let session = load_from(&folder, id)?;
        self.still_this(id, &folder)?;
        Ok(session)
    }

    /// Checks that a folder that was read is still the session's. If not, it may have been removed
    /// in part during the read, and the result is invalid.
    pub(super) fn still_this(&self, id: SessionId, folder: &StoreFolder) -> Result<()> {
        let now = self.sessions()?.look(&id.to_string())?;
        if now.which == folder.look_at_self()?.which {
            Ok(())
        } else {
            Err(Trouble::Absent)
        }
    }

    /// Returns the error about a session, or `Absent` if it was removed during the read.
    pub(super) fn damage_or_absence(&self, id: SessionId, trouble: Trouble) -> Trouble {
        let now = self.sessions().and_then(|s| s.look(&id.to_string()));
        match (&trouble, now) {
            (Trouble::Damaged(..), Err(Trouble::Absent)) => Trouble::Absent,
            _ => trouble,
        }
    }

    /// Lists the names of sessions, unordered.
    pub(super) fn ids(&self) -> Result<Vec<SessionId>> {
        match self.sessions() {
            Ok(sessions) => sessions.names_as(SessionId::parse),
            Err(Trouble::Absent) => Ok(Vec::new()),
            Err(t) => Err(t),
        }
    }

    /// Returns the newest session: the one in `latest.json` if the file is not older than the
    /// folder of sessions and the session exists, or else the one with the highest name.
    pub(super) fn newest(&self) -> Result<Option<SessionId>> {
        if let Some(id) = self.pointed_at()? {
            return Ok(Some(id));
        }
        Ok(self.ids()?.into_iter().max())
    }

    /// Returns the session in `latest.json`, if it exists and the file is current.
    fn pointed_at(&self) -> Result<Option<SessionId>> {
        let Some(id) = self.pointer() else {
            return Ok(None);
        };
        let sessions = match self.sessions() {
            Ok(sessions) => sessions,
            Err(Trouble::Absent) => return Ok(None),
            Err(t) => return Err(t),
        };
        let newer = self.root.look(LATEST)?.modified >= sessions.look_at_self()?.modified;
        let there = newer && sessions.look(&id.to_string()).is_ok_and(|l| l.is_folder);
        Ok(there.then_some(id))
    }

    /// Returns the session in `latest.json`, which may not exist. The file can be rebuilt, so
    /// errors are ignored.
    pub(super) fn pointer(&self) -> Option<SessionId> {
        SessionId::parse(&self.latest_document()?.review_id)
    }

    /// Returns `latest.json`, if it can be read.
    pub(super) fn latest_document(&self) -> Option<Latest> {
        document(&self.root, LATEST).ok()
    }

    /// Returns the head of a session.
    pub(super) fn head_of(&self, id: SessionId) -> Result<String> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        let completion = completion(&folder, id)?;
        let round = folder.folder(&round_name(rounds(&folder)?))?;
        let seal = required(document(&round, SEAL), &round, SEAL)?;
        Ok(chain_end(
            completion.as_ref(),
            &seal,
            stored_fixes(&folder).as_ref(),
        ))
    }

    /// Returns the error about a session that cannot be read, after moving a damaged one to
    /// `.corrupt`.
    pub(super) fn unreadable(&self, id: SessionId, trouble: Trouble) -> Error {
        let what = format!("review {id} cannot be read");
        match self.damage_or_absence(id, trouble) {
            Trouble::Absent => self
                .lies_aside(id, &format!("review {id}"))
                .unwrap_or_else(|| self.not_found(id)),
            damaged @ Trouble::Damaged(..) => {
                let aside = self.put_aside(id);
                let error = damaged.error(what);
                match aside {
                    Some(place) => self.way_out(error, &place),
                    None => error,
                }
            }
            t => t.error(what),
        }
    }

    /// Returns the error about a session that does not exist, with the reason of its removal if it
    /// was damaged.
    fn not_found(&self, id: SessionId) -> Error {
        let error = Error::usage(format!("review {id} not found"));
        let removed = self.aside().map(|a| self.removed(&a)).unwrap_or_default();
        match removed
            .into_iter()
            .find(|r| SessionId::parse(&r.review_id) == Some(id))
        {
            Some(r) => error.hint(format!(
                "it was damaged ({}), and removed on {}",
                r.why, r.timestamp
            )),
            None => error
                .hint_person("list stored reviews: claude-reviewer history")
                .hint_agent("call get_review_history for a list"),
        }
    }

    /// Describes an unreadable session. Moves it to `.corrupt` if it is damaged and `movable`.
    pub(super) fn damaged(&self, id: SessionId, trouble: &Trouble, movable: bool) -> Damaged {
        let moved_to = match trouble {
            Trouble::Damaged(..) if movable => self.put_aside(id),
            _ => None,
        };
        Damaged {
            review_id: id.to_string(),
            why: trouble.line(),
            moved_to,
        }
    }

    /// Moves a damaged session to `.corrupt`. Returns its new path relative to the store, or `None`
    /// on an error.
    fn put_aside(&self, id: SessionId) -> Option<String> {
        let _lock = super::lock::Lock::take(&self.root, AWHILE).ok()?;
        // Another process may have repaired or moved it.
        if !matches!(self.load(id), Err(Trouble::Damaged(..))) {
            return None;
        }
        let (sessions, corrupt) = (self.sessions().ok()?, self.root.make(CORRUPT).ok()?);
        let name = id.to_string();
        let mut names =
            std::iter::once(name.clone()).chain((2..100).map(|n| format!("{name}.{n}")));
        let aside = names.find(|n| matches!(corrupt.look(n), Err(Trouble::Absent)))?;
        sessions.rename(&name, &corrupt, &aside).ok()?;
        let _ = corrupt
            .sync()
            .and_then(|()| self.root.folder(SESSIONS)?.sync());
        Some(format!("{CORRUPT}/{aside}"))
    }
}

/// Reads a session from its folder.
///
/// The closing is read first: no round follows one, so the rounds that are listed later are those
/// that it covers.
pub(super) fn load_from(folder: &StoreFolder, id: SessionId) -> Result<Session> {
    let completion = completion(folder, id)?;
    let request = request(folder, id)?;
    let count = rounds(folder)?;
    let mut all: Vec<StoredRound> = Vec::new();
    for n in 1..=count {
        let name = round_name(n);
        let round = required(folder.folder(&name), folder, &name)?;
        // A response counts only if the following round exists: both are stored together.
        let response: Option<Response> = if n < count {
            optional(document(&round, RESPONSE))?
        } else {
            None
        };
        let seal = required(document(&round, SEAL), &round, SEAL)?;
        all.push(StoredRound {
            review: review(&round, id, n)?,
            response,
            seal,
        });
    }
    let Some(last) = all.last() else {
        return Err(Trouble::Absent);
    };
    let fixes = stored_fixes(folder);
    let head = chain_end(completion.as_ref(), &last.seal, fixes.as_ref());
    let status = status(completion.as_ref(), &last.review);
    let review_id = id.to_string();
    let fixes = fixes.map(|f| f.fixes).unwrap_or_default();
    Ok(Session {
        schema_version: stored::STORED_VERSION,
        review_id,
        status,
        request,
        rounds: all,
        completion,
        head,
        fixes,
    })
}

/// Returns the error for sessions that cannot be listed.
pub(super) fn not_listed(trouble: Trouble) -> Error {
    trouble.error("the stored reviews cannot be listed")
}

/// Returns the error for a round that a session does not have.
pub(super) fn no_round(id: &SessionId, round: u32) -> Error {
    Error::usage(format!("review {id} has no round {round}"))
        .hint_person(format!("`claude-reviewer history {id}` lists its rounds"))
        .hint_agent(format!(
            "get_review_history with review_id {id} lists its rounds"
        ))
}
