//! Stores sessions, rounds and closings, each atomically.

use super::again::next_round;
use super::approval::{doubt, not_approved};
use super::chain::{self, Covered};
use super::disk::{StoreFolder, Unsynced, settle, unique};
use super::document::{CHANGE, COMPLETE, REQUEST, RESPONSE, REVIEW, SEAL, most, round_name, text};
use super::lock::Lock;
use super::owed::{self, RoundRecord};
use super::read::MOST_ROUNDS;
use super::trouble::{Result, Trouble};
use super::{LATEST, SESSIONS, SessionId, Store, TMP, prune};
use crate::error::{self, Error};
use crate::review::{Record, Remote};
use crate::wire::Finding;
use crate::wire::stored::{
    self, Completion, Head, Latest, Response, Review, STORED_VERSION, Session, Status,
    StoredRequest,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Bytes of a change that is synced before the lock is taken.
const LARGE: usize = 256 << 10;

/// Heads of other sessions in `latest.json` and in the request of a session, at most; the oldest
/// are dropped.
const MOST_HEADS: usize = 200;

/// A stored round.
#[derive(Clone, Debug)]
pub struct Saved {
    pub id: SessionId,
    /// From 1.
    pub round: u32,
    /// Head of the hash chain, to be recorded elsewhere.
    pub head: String,
    pub review: Review,
}

/// The closing of a session.
#[derive(Clone, Debug)]
pub struct Closing {
    /// `Approved`, `Abandoned` or `Merged`.
    pub status: Status,
    pub notes: Option<String>,
    /// Person or agent that closes it.
    pub actor: String,
    /// `cli` or `mcp`.
    pub via: &'static str,
    pub now: Timestamp,
}

/// A folder in `tmp/` that is removed on drop unless it was moved to its final path.
struct Draft<'a> {
    tmp: &'a StoreFolder,
    name: String,
    folder: StoreFolder,
}

impl<'a> Draft<'a> {
    /// Creates a folder with a unique name.
    fn new(tmp: &'a StoreFolder) -> Result<Self> {
        let name = unique("new");
        Ok(Self {
            folder: tmp.make_new(&name)?,
            name,
            tmp,
        })
    }

    /// Creates a folder that contains a change, which is synced.
    fn with_change(tmp: &'a StoreFolder, change: &Record) -> Result<Self> {
        let draft = Self::new(tmp)?;
        settle(&[put(&draft.folder, CHANGE, &change.text)?])?;
        Ok(draft)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // A later run removes the remains once they are stale.
        let _ = self.tmp.remove_all(&self.name);
    }
}

impl Store {
    /// Stores a new session with its first round. `write` gets its name and returns the documents
    /// to store.
    ///
    /// # Errors
    ///
    /// Incomplete on a system error, usage if the store belongs to another user. Nothing is stored
    /// then.
    pub fn create(
        &self,
        now: Timestamp,
        change: &Record,
        write: &dyn Fn(&SessionId) -> (StoredRequest, Review),
    ) -> error::Result<Saved> {
        self.begin(now, change, write)
            .map_err(|t| t.error("the review was not stored"))
    }

    /// Writes a session in `tmp/`, and moves it to its place.
    fn begin(
        &self,
        now: Timestamp,
        change: &Record,
        write: &dyn Fn(&SessionId) -> (StoredRequest, Review),
    ) -> Result<Saved> {
        let tmp = self.root.make(TMP)?;
        let draft = Draft::new(&tmp)?;
        let mut written = vec![put(&draft.folder, CHANGE, &change.text)?];
        if change.text.len() > LARGE {
            settle(&written)?;
        }
        let lock = self.lock()?;
        let latest = self.latest_document();
        let newest = self.newest()?;
        let id = self.free_id(now, newest, latest.as_ref())?;
        let (mut request, review) = write(&id);
        request.before = self.earlier_heads(newest, latest);
        let request = text(&request)?;
        written.push(put(&draft.folder, REQUEST, &request)?);
        let round = draft.folder.make_new(&round_name(1))?;
        let covered = [
            (REQUEST.to_owned(), request.as_slice()),
            (CHANGE.to_owned(), &change.text),
        ];
        let head = put_round(&round, None, &covered, &review, &mut written)?;
        written.push(draft.folder.unsynced()?);
        settle(&written)?;
        let sessions = self.root.make(SESSIONS)?;
        place(&draft, &sessions, &id.to_string())?;
        let latest = Latest {
            schema_version: STORED_VERSION,
            review_id: id.to_string(),
            timestamp: review.timestamp.clone(),
            path: format!("{SESSIONS}/{id}"),
            since: Vec::new(),
        };
        // The session is stored. If this file is missing, outdated or truncated, readers list the
        // sessions instead, so it is not synced.
        let _ = text(&latest)
            .and_then(|text| self.exchange(&self.root, LATEST, &text, Wait::ForNothing));
        drop(lock);
        prune::sweep(&tmp, now);
        Ok(Saved {
            id,
            round: 1,
            head,
            review,
        })
    }

    /// Stores the round that follows round `after` of a session, with the response to that round.
    /// `write` gets the number of the new round and returns the review to store.
    ///
    /// # Errors
    ///
    /// Usage if the session does not exist, is closed, or cannot be read; incomplete if `after` is
    /// no longer its last round, or on a system error. Nothing is stored then.
    pub fn append(
        &self,
        id: &SessionId,
        now: Timestamp,
        after: u32,
        change: &Record,
        response: Option<Response>,
        write: &dyn Fn(u32) -> Review,
    ) -> error::Result<Saved> {
        let tmp = self.root.make(TMP).map_err(|t| self.not_appended(*id, t))?;
        let draft = Draft::with_change(&tmp, change).map_err(|t| self.not_appended(*id, t))?;
        let response = response
            .map(|r| text(&r))
            .transpose()
            .map_err(|t| self.not_appended(*id, t))?;
        let (lock, session) = self.locked(*id).map_err(|t| self.not_appended(*id, t))?;
        open_for_more(&session)?;
        last_is(after, &session, &self.remotes)?;
        let saved = self
            .add_round(*id, &session, &draft, change, response.as_deref(), write)
            .map_err(|t| self.not_appended(*id, t))?;
        self.note(*id, &saved.head);
        drop(lock);
        prune::sweep(&tmp, now);
        Ok(saved)
    }

    /// Returns the error for a round that was not stored.
    fn not_appended(&self, id: SessionId, trouble: Trouble) -> Error {
        let what = format!("the review was not stored as a round of {id}");
        self.not_changed(id, trouble, what)
    }

    /// Returns the error for a session that was not changed, because it cannot be read or because
    /// of `what`.
    fn not_changed(&self, id: SessionId, trouble: Trouble, what: String) -> Error {
        match trouble {
            Trouble::Absent | Trouble::Damaged(..) | Trouble::Future(..) => {
                self.unreadable(id, trouble)
            }
            trouble => trouble.error(what),
        }
    }

    /// Takes the lock and reads a session. Releases the lock if that fails, because moving a
    /// damaged session takes it again.
    fn locked(&self, id: SessionId) -> Result<(Lock, Session)> {
        let lock = self.lock()?;
        let session = self.load(id)?;
        Ok((lock, session))
    }

    /// Writes a round in `tmp/`, and moves it to its place after the response to the previous one.
    fn add_round(
        &self,
        id: SessionId,
        session: &Session,
        draft: &Draft<'_>,
        change: &Record,
        response: Option<&[u8]>,
        write: &dyn Fn(u32) -> Review,
    ) -> Result<Saved> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        let last = u32::try_from(session.rounds.len()).unwrap_or(MOST_ROUNDS);
        let before = folder.folder(&round_name(last))?;
        let (round, answer) = (last + 1, format!("{}/{RESPONSE}", round_name(last)));
        let mut covered = Vec::new();
        if let Some(response) = response {
            covered.push((answer, response));
        }
        covered.push((format!("{}/{CHANGE}", round_name(round)), &change.text));
        let review = write(round);
        let mut files = Vec::new();
        let head = put_round(
            &draft.folder,
            Some(&session.head),
            &covered,
            &review,
            &mut files,
        )?;
        // A response counts only if the following round exists. So the remains of an interrupted
        // run are replaced.
        match response {
            Some(response) => {
                let name = unique("answer");
                fits(&before, RESPONSE, response)?;
                let written = draft.tmp.write(&name, response).and_then(|file| {
                    files.push(file);
                    settle(&files)
                });
                let placed = written.and_then(|()| draft.tmp.rename(&name, &before, RESPONSE));
                if placed.is_err() {
                    let _ = draft.tmp.remove(&name);
                }
                placed?;
            }
            None => {
                settle(&files)?;
                before.remove(RESPONSE)?;
            }
        }
        let placed = before
            .sync()
            .and_then(|()| place(draft, &folder, &round_name(round)));
        if placed.is_err() {
            let _ = before.remove(RESPONSE);
        }
        placed?;
        Ok(Saved {
            id,
            round,
            head,
            review,
        })
    }

    /// Closes a session. The same closing twice changes nothing.
    ///
    /// # Errors
    ///
    /// Usage if there is no such session, or it is to be approved although findings block or its
    /// last round is incomplete, unless `force` is set: then the record says so.
    pub fn complete(
        &self,
        id: &SessionId,
        closing: Closing,
        force: bool,
    ) -> error::Result<Session> {
        // A modified session must not be approved. If it cannot be read, loading it reports the
        // error.
        let edited = match closing.status {
            Status::Approved => self.edited(id).ok().flatten(),
            _ => None,
        };
        let (lock, session) = self.locked(*id).map_err(|t| self.not_closed(*id, t))?;
        let Some(last) = session.rounds.last() else {
            return Ok(session);
        };
        let rounds = session.rounds.iter().map(|r| RoundRecord::of(&r.review));
        let rounds: Vec<RoundRecord<'_>> = rounds.collect();
        let owed = owed::owed(&rounds);
        let blocking: Vec<&Finding> = last
            .review
            .report
            .findings
            .iter()
            .filter(|f| f.blocking)
            .collect();
        let doubt =
            edited.or_else(|| doubt(&session, &last.review, blocking.len(), &rounds, &owed));
        if let (Status::Approved, false, Some(doubt)) = (closing.status, force, &doubt) {
            return Err(not_approved(&session, &self.remotes, doubt, &owed));
        }
        let open = blocking
            .into_iter()
            .chain(owed.iter().map(|o| o.finding))
            .map(|f| f.fingerprint.clone())
            .collect();
        let mut entries = session.completion.map(|c| c.entries).unwrap_or_default();
        if entries.last().is_some_and(|e| {
            e.status == closing.status && (closing.notes.is_none() || e.notes == closing.notes)
        }) {
            drop(lock);
            return self.load(*id).map_err(|t| self.not_closed(*id, t));
        }
        let mut entry = stored::Closing {
            status: closing.status,
            notes: closing.notes,
            actor: closing.actor,
            via: closing.via.to_owned(),
            timestamp: closing.now.to_string(),
            forced: closing.status == Status::Approved && doubt.is_some(),
            open,
            head: last.seal.head.clone(),
            seal: String::new(),
        };
        let value = serde_json::to_value(&entry).unwrap_or_default();
        entry.seal = chain::closing(&session.head, &value);
        let head = entry.seal.clone();
        entries.push(entry);
        let completion = Completion {
            schema_version: STORED_VERSION,
            review_id: id.to_string(),
            entries,
        };
        self.close(*id, &completion)
            .map_err(|t| self.not_closed(*id, t))?;
        self.note(*id, &head);
        drop(lock);
        self.load(*id).map_err(|t| self.not_closed(*id, t))
    }

    /// Returns the error for a session that was not closed.
    fn not_closed(&self, id: SessionId, trouble: Trouble) -> Error {
        self.not_changed(id, trouble, format!("review {id} was not closed"))
    }

    /// Replaces the closings of a session.
    fn close(&self, id: SessionId, completion: &Completion) -> Result<()> {
        let folder = self.sessions()?.folder(&id.to_string())?;
        self.replace_in(&folder, COMPLETE, &text(completion)?)
    }

    /// Returns the heads of earlier sessions for the request of a new one.
    fn earlier_heads(&self, newest: Option<SessionId>, latest: Option<Latest>) -> Vec<Head> {
        let Some(newest) = newest else {
            return Vec::new();
        };
        let newest = Head {
            review_id: newest.to_string(),
            head: self.head_of(newest).ok(),
        };
        let since = latest
            .filter(|_| !self.shared)
            .map(|l| l.since)
            .unwrap_or_default();
        let others = since
            .into_iter()
            .filter(|h| h.review_id != newest.review_id)
            .collect::<Vec<_>>();
        std::iter::once(newest)
            .chain(others)
            .take(MOST_HEADS)
            .collect()
    }

    /// Records in `latest.json` that a session has a new head, for the request of the next session.
    /// Ignores errors.
    pub(super) fn note(&self, id: SessionId, head: &str) {
        let _ = self.try_note(id, head);
    }

    /// Records a new head for [`Self::note`]. Returns `None` if it is not recorded.
    fn try_note(&self, id: SessionId, head: &str) -> Option<()> {
        let mut latest = self.latest_document()?;
        // In git, sessions come and go with branches. And a file that does not point to the newest
        // session must not appear current.
        if self.shared || self.newest().ok()? != SessionId::parse(&latest.review_id) {
            return None;
        }
        let review_id = id.to_string();
        latest.since.retain(|h| h.review_id != review_id);
        latest.since.insert(
            0,
            Head {
                review_id,
                head: Some(head.to_owned()),
            },
        );
        latest.since.truncate(MOST_HEADS);
        self.exchange(&self.root, LATEST, &text(&latest).ok()?, Wait::ForNothing)
            .ok()
    }

    /// Returns the name of the next session: of today, or of the newest session's day if the clock
    /// went back.
    fn free_id(
        &self,
        now: Timestamp,
        newest: Option<SessionId>,
        latest: Option<&Latest>,
    ) -> Result<SessionId> {
        let today = now.to_zoned(TimeZone::UTC).date();
        let pointer = latest.and_then(|l| SessionId::parse(&l.review_id));
        let mut newest = newest;
        if newest.is_none() || newest != pointer {
            // Names of damaged and removed sessions are not reused.
            let aside = self.aside().unwrap_or_default().ids().into_iter().max();
            newest = newest
                .max(aside)
                .max(pointer.filter(|id| id.date() <= today));
        }
        let mut id = match newest {
            Some(newest) if newest.date() >= today => newest.next(),
            _ => Some(SessionId::first(today)),
        };
        let sessions = self.root.make(SESSIONS)?;
        while let Some(free) = id {
            match sessions.look(&free.to_string()) {
                Err(Trouble::Absent) => return Ok(free),
                Err(t) => return Err(t),
                Ok(_) => id = free.next(),
            }
        }
        Err(Trouble::Refused(
            sessions.shown(""),
            "has no name left for another session".to_owned(),
        ))
    }

    /// Replaces a file in the store's folder.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.replace_in(&self.root, name, bytes)
    }

    /// Replaces a file in a folder atomically, and syncs both.
    pub(super) fn replace_in(&self, folder: &StoreFolder, name: &str, bytes: &[u8]) -> Result<()> {
        self.exchange(folder, name, bytes, Wait::ForTheDisk)?;
        folder.sync()
    }

    /// Writes a file in `tmp/`, and renames it to its place. Fails if it exceeds the size limit for
    /// reading.
    fn exchange(&self, folder: &StoreFolder, name: &str, bytes: &[u8], wait: Wait) -> Result<()> {
        // The name in `tmp/` has no limit of its own.
        fits(folder, name, bytes)?;
        let tmp = self.root.make(TMP)?;
        let new = unique("file");
        let put = tmp.write(&new, bytes);
        let put = put.and_then(|file| {
            if wait == Wait::ForTheDisk {
                settle(&[file])
            } else {
                Ok(())
            }
        });
        let put = put.and_then(|()| tmp.rename(&new, folder, name));
        if put.is_err() {
            let _ = tmp.remove(&new);
        }
        put
    }
}

/// Whether to wait for the disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    ForTheDisk,
    ForNothing,
}

/// Rejects another round of a session that is closed.
fn open_for_more(session: &Session) -> error::Result<()> {
    let closed = session.completion.as_ref().and_then(|c| c.entries.last());
    let Some(closing) = closed else { return Ok(()) };
    let word = closing.status.word();
    let error = Error::usage(format!(
        "review {} is closed: it was {word} on {}",
        session.review_id, closing.timestamp
    ));
    Err(error
        .hint_person("start a new one: `claude-reviewer review`")
        .hint_agent("start a new one: call request_review without previous_review_id"))
}

/// Rejects a round that was created without the session's last one: its response belongs to an
/// earlier round, and its comparison and number are outdated.
fn last_is(after: u32, session: &Session, remotes: &[Remote]) -> error::Result<()> {
    if session
        .rounds
        .last()
        .is_some_and(|r| r.review.round == after)
    {
        return Ok(());
    }
    let id = &session.review_id;
    let error = Error::incomplete(format!("another round of {id} was stored meanwhile"));
    Err(error
        .hint_person(next_round(session, remotes))
        .hint_agent(format!(
            "read it with get_review_history, then call request_review with previous_review_id {id}"
        )))
}

/// Writes the review and the seal of a round, and returns the head. `written` collects the files to
/// sync.
fn put_round(
    folder: &StoreFolder,
    previous: Option<&str>,
    covered: &[(String, &[u8])],
    review: &Review,
    written: &mut Vec<Unsynced>,
) -> Result<String> {
    let text_of_review = text(review)?;
    let name = format!("{}/{REVIEW}", round_name(review.round));
    let mut files: Vec<Covered<'_>> = covered
        .iter()
        .map(|(name, bytes)| Covered { name, bytes })
        .collect();
    files.push(Covered {
        name: &name,
        bytes: &text_of_review,
    });
    let seal = chain::seal(previous, &files);
    written.push(put(folder, REVIEW, &text_of_review)?);
    written.push(put(folder, SEAL, &text(&seal)?)?);
    written.push(folder.unsynced()?);
    Ok(seal.head)
}

/// Renames a draft to its final path. Reverts the rename if the sync fails.
fn place(draft: &Draft<'_>, to: &StoreFolder, name: &str) -> Result<()> {
    draft.tmp.rename(&draft.name, to, name)?;
    let synced = to.sync();
    if synced.is_err() {
        let _ = to.rename(name, draft.tmp, &draft.name);
    }
    synced
}

/// Writes a file of a draft. Fails if it exceeds the size limit for reading.
fn put(folder: &StoreFolder, name: &str, bytes: &[u8]) -> Result<Unsynced> {
    fits(folder, name, bytes)?;
    folder.write(name, bytes)
}

/// Rejects the content of a file that exceeds the size limit for reading. `name` is the final one.
fn fits(folder: &StoreFolder, name: &str, bytes: &[u8]) -> Result<()> {
    if bytes.len() as u64 > most(name) {
        let why = format!("would be larger than {} bytes", most(name));
        return Err(Trouble::Refused(folder.shown(name), why));
    }
    Ok(())
}
