//! Checks the seals of one session.
//!
//! The heads of a session form a chain ([`chain`]): one for each round, then one for each closing.
//! Each state of a fix adds a link after the head that was the last one at that time. The check
//! follows the chain:
//!
//! 1. Read `complete.json` (closings) and `fixes.json`. Compare the fixes with their links, and keep
//!    the links for step 2 and 3.
//! 2. For each round, compute the head from the files and the previous head, and compare it with
//!    the stored seal. Append the stored head, and the links that continue it.
//! 3. For each closing, do the same. No link may be left.
//!
//! The check continues after a difference with the stored head, so that one modified file does not
//! make all later rounds differ. It ends at a file that a newer version wrote. The rounds end at a
//! folder that cannot be read.
//!
//! If the folder of a round is missing between others, no round is checked. The chain then has no
//! head of a round, so all closings, and the links that continue a round, are reported as modified
//! too.

use super::super::chain::{self, Covered};
use super::super::disk::StoreFolder;
use super::super::document::{
    CHANGE, COMPLETE, FIXES, REQUEST, RESPONSE, REVIEW, SEAL, most, round_name, round_number,
    understand,
};
use super::super::fixes;
use super::super::trouble::{Result, Trouble};
use super::seal::{differences, is_as_written};
use super::{Checked, CheckedSession, Modification};
use crate::history::SessionId;
use crate::wire::fixing::{FixLink, Fixes};
use crate::wire::stored::{
    Completion, Head, Response, Review, Seal, StoredDocument, StoredRequest,
};
use serde_json::Value;
use std::collections::VecDeque;

/// Reads of a session, at most, while its fixes or its closing change.
const MOST_READS: u32 = 5;

/// The state of checking a session.
pub(super) struct SessionCheck {
    id: SessionId,
    /// Number of its rounds.
    rounds: u32,
    chain: StoredChain,
    edits: Vec<Modification>,
    unsealed: Vec<String>,
    newer: Option<String>,
    /// Records of other sessions in its request.
    earlier_heads: Vec<Head>,
}

/// The chain as the seals give it.
#[derive(Default)]
struct StoredChain {
    /// Heads of rounds, links and closings, oldest first.
    heads: Vec<String>,
    /// The head of the last round.
    last_round: Option<String>,
    /// Links of fixes whose place in the chain was not reached yet.
    links: VecDeque<FixLink>,
}

impl StoredChain {
    /// Appends a head, and the links of fixes that continue it. Returns the numbers of fixes whose
    /// links do not match their seals.
    fn push(&mut self, head: String) -> Vec<u32> {
        let mut modified = Vec::new();
        self.heads.push(head);
        while let Some(link) = self
            .links
            .pop_front_if(|l| self.heads.last() == Some(&l.previous))
        {
            if chain::link(&link) != link.seal {
                modified.push(link.number);
            }
            self.heads.push(link.seal);
        }
        modified
    }
}

/// The files of a session that change while it is open. Both are replaced atomically.
#[derive(PartialEq, Eq)]
struct ChangingFiles {
    complete: Option<Vec<u8>>,
    fixes: Option<Vec<u8>>,
}

/// The folders of a round.
#[derive(Clone, Copy)]
struct RoundFolders<'f> {
    session: &'f StoreFolder,
    /// The previous round.
    before: Option<&'f StoreFolder>,
    round: &'f StoreFolder,
    /// Number of the round, from 1.
    number: u32,
}

/// A file that a seal covers: its path relative to the session, and its content.
type SealedFile = (String, Vec<u8>);

/// A file that a newer version wrote: its path, and the reason why it cannot be checked.
type NewerFile = (String, String);

impl SessionCheck {
    /// Starts a check: no part of the session is read yet.
    fn new(id: SessionId) -> Self {
        Self {
            id,
            rounds: 0,
            chain: StoredChain::default(),
            edits: Vec::new(),
            unsealed: Vec::new(),
            newer: None,
            earlier_heads: Vec::new(),
        }
    }

    /// Describes a session whose folder cannot be read.
    pub(super) fn unreadable(id: SessionId, why: String) -> Self {
        let mut check = Self::new(id);
        check.edit(None, "", why);
        check
    }

    /// Reads and checks all parts of a session.
    ///
    /// Rounds, links of fixes and closings continue each other, and a running `fix` adds links. So
    /// the parts are read between two equal reads of the fixes and the closing.
    pub(super) fn of_folder(id: SessionId, folder: &StoreFolder) -> Result<Self> {
        let mut reads = 1;
        loop {
            let mut check = Self::new(id);
            let files = check.changing_files(folder)?;
            if let Some(fixes) = &files.fixes {
                check.fixes(fixes);
            }
            check.rounds(folder)?;
            let is_same = Self::new(id).changing_files(folder)? == files;
            if is_same || reads == MOST_READS {
                check.end_of_chain(files.complete.as_deref());
                return Ok(check);
            }
            reads += 1;
        }
    }

    /// Returns the result. `noted` is a head that the session must have had.
    pub(super) fn finished(mut self, noted: Option<&str>) -> CheckedSession {
        if let Some(noted) = noted
            && self.newer.is_none()
            && !self
                .chain
                .heads
                .iter()
                .any(|h| h.eq_ignore_ascii_case(noted))
        {
            self.edit(None, "", format!("it never had the head {noted}"));
        }
        let heads = self.chain.heads;
        let checked = Checked {
            id: self.id.to_string(),
            rounds: self.rounds,
            head: heads.last().cloned(),
            edits: self.edits,
            unsealed: self.unsealed,
            newer: self.newer,
            removed: None,
        };
        CheckedSession {
            id: self.id,
            checked,
            heads,
            earlier_heads: self.earlier_heads,
        }
    }

    /// Records a modification.
    fn edit(&mut self, round: Option<u32>, file: &str, why: impl Into<String>) {
        self.edits.push(Modification {
            round,
            file: file.to_owned(),
            why: why.into(),
        });
    }

    /// Records names of files that do not belong in a folder, in order.
    fn foreign_names(&mut self, round: Option<u32>, mut paths: Vec<String>, why: &str) {
        paths.sort_unstable();
        for path in paths {
            self.edit(round, &path, why);
        }
    }

    /// Appends a head to the chain.
    fn push_head(&mut self, head: String) {
        for number in self.chain.push(head) {
            let why = format!("the link of fix {number} was modified");
            self.edit(None, FIXES, why);
        }
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

    /// Parses a document that names the session in a field.
    fn parsed<T: StoredDocument>(&self, bytes: &[u8], id: impl Fn(&T) -> &str) -> Result<T> {
        match understand::<T>(bytes, String::new) {
            Ok(document) if id(&document) == self.id.to_string() => Ok(document),
            Ok(_) => Err(Trouble::Damaged(
                String::new(),
                "it speaks of another review".to_owned(),
            )),
            Err(t) => Err(t),
        }
    }

    /// Parses a document whose own seals cover it. Returns `None` after recording why it cannot be
    /// parsed: a newer version wrote it, or it was modified.
    fn own_document<T: StoredDocument>(&mut self, bytes: &[u8], name: &str) -> Option<T> {
        match understand(bytes, String::new) {
            Ok(document) => Some(document),
            Err(t @ Trouble::Future(..)) => {
                self.newer = Some(format!("{name}: {}", why(t)));
                None
            }
            Err(t) => {
                self.edit(None, name, why(t));
                None
            }
        }
    }

    // Step 1: files that change while the session is open.

    /// Reads the files that change while the session is open.
    fn changing_files(&mut self, folder: &StoreFolder) -> Result<ChangingFiles> {
        Ok(ChangingFiles {
            complete: self.bytes(folder, COMPLETE, None, COMPLETE)?,
            fixes: self.bytes(folder, FIXES, None, FIXES)?,
        })
    }

    /// Compares the fixes with their links, and keeps the links for the heads that they continue.
    fn fixes(&mut self, bytes: &[u8]) {
        let Some(fixes) = self.own_document::<Fixes>(bytes, FIXES) else {
            return;
        };
        let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let edits = self.edits.len();
        if fixes.review_id != self.id.to_string() {
            self.edit(None, FIXES, "it speaks of another review");
        }
        let known = ["schema_version", "review_id", "fixes", "links"];
        let mut keys = document.as_object().into_iter().flat_map(|o| o.keys());
        // An added field needs a new version: otherwise the links could be hidden by renaming their
        // field.
        if keys.any(|key| !known.contains(&key.as_str())) {
            self.edit(None, FIXES, "it was modified");
        }
        let compared = fixes::compare(&fixes, list(&document, "fixes"));
        for why in &compared.edits {
            self.edit(None, FIXES, why);
        }
        // Older versions wrote fixes without links, and costs whose digits change when they are
        // parsed and written again. Such a file need not equal what this version writes.
        let is_linked = compared.unlinked.is_empty();
        if self.edits.len() == edits && is_linked && !is_as_written(&document, bytes) {
            self.edit(None, FIXES, "it was modified");
        }
        match fixes.links.is_empty() {
            true if !fixes.fixes.is_empty() => self.unsealed.push(FIXES.to_owned()),
            _ => {
                let unlinked = compared.unlinked.iter();
                self.unsealed
                    .extend(unlinked.map(|n| format!("{FIXES}, fix {n}")));
            }
        }
        self.chain.links = fixes.links.into();
    }

    // Step 2: rounds.

    /// Checks every round.
    fn rounds(&mut self, session: &StoreFolder) -> Result<()> {
        let names = session.names()?;
        let strange = names.iter().filter(|n| !is_of_session(n)).cloned();
        self.foreign_names(None, strange.collect(), "not a part of a session");
        let numbers = names.iter().filter_map(|n| round_number(n));
        let count = numbers.max().unwrap_or(0);
        if count == 0 {
            self.edit(None, "", "it has no round");
        }
        // A name like `round-4000000000` is one gap, not four billion.
        if let Some(missing) = (1..=count).find(|n| !names.contains(&round_name(*n))) {
            self.rounds = missing - 1;
            self.edit(Some(missing), &round_name(missing), "it is missing");
            return Ok(());
        }
        self.rounds = count;
        let mut before: Option<StoreFolder> = None;
        for number in 1..=count {
            let Some(round) = self.round_folder(session, number)? else {
                return Ok(());
            };
            let folders = RoundFolders {
                session,
                before: before.as_ref(),
                round: &round,
                number,
            };
            self.round(folders)?;
            if self.newer.is_some() || !self.is_only_a_round(folders)? {
                return Ok(());
            }
            if number == count && round.look(RESPONSE).is_ok() {
                // Its seal would be in the following round, which does not exist.
                self.unsealed
                    .push(format!("{}/{RESPONSE}", round_name(number)));
            }
            before = Some(round);
        }
        Ok(())
    }

    /// Opens the folder of a round. Returns `None` if it is missing, or cannot be read, which is a
    /// modification.
    fn round_folder(&mut self, session: &StoreFolder, number: u32) -> Result<Option<StoreFolder>> {
        let name = round_name(number);
        match session.folder(&name) {
            Ok(round) => return Ok(Some(round)),
            Err(Trouble::Refused(_, why) | Trouble::Damaged(_, why)) => {
                self.edit(Some(number), &name, why);
            }
            Err(Trouble::Absent) => self.edit(Some(number), &name, "it is missing"),
            Err(t) => return Err(t),
        }
        Ok(None)
    }

    /// Records files that are not a part of a round. Returns false if the folder was removed
    /// meanwhile, which is a modification.
    fn is_only_a_round(&mut self, folders: RoundFolders<'_>) -> Result<bool> {
        let number = folders.number;
        let name = round_name(number);
        let names = match folders.round.names() {
            Err(Trouble::Absent) => {
                self.edit(Some(number), &name, "it is missing");
                return Ok(false);
            }
            names => names?,
        };
        let strange = names.iter().filter(|f| !is_of_round(f, number));
        let paths = strange.map(|f| format!("{name}/{f}")).collect();
        self.foreign_names(Some(number), paths, "not a part of a round");
        Ok(true)
    }

    /// Checks a round: whether its documents can be parsed, and its seal.
    fn round(&mut self, folders: RoundFolders<'_>) -> Result<()> {
        let number = folders.number;
        let files = self.sealed_files(folders)?;
        let newer = self.documents(number, &files);
        self.seal(folders, &files, newer.first())?;
        // Without a valid seal, the version of a file may be a modification.
        if self.newer.is_none() {
            for (path, why) in newer {
                self.edit(Some(number), &path, why);
            }
        }
        Ok(())
    }

    /// Reads the files that the seal of a round covers, in the order of the seal.
    fn sealed_files(&mut self, folders: RoundFolders<'_>) -> Result<Vec<SealedFile>> {
        let RoundFolders {
            session,
            before,
            round,
            number,
        } = folders;
        let name = round_name(number);
        let [first, change] = match before {
            // The response to the previous round, whose seal is in this round.
            Some(before) => [
                (before, format!("{}/{RESPONSE}", round_name(number - 1))),
                (round, format!("{name}/{CHANGE}")),
            ],
            None => [(session, REQUEST.to_owned()), (session, CHANGE.to_owned())],
        };
        let mut files = Vec::new();
        for (folder, path) in [first, change, (round, format!("{name}/{REVIEW}"))] {
            // Each difference is reported for the round whose seal covers the file.
            if let Some(bytes) = self.bytes(folder, file_name(&path), Some(number), &path)? {
                files.push((path, bytes));
            }
        }
        Ok(files)
    }

    /// Parses the documents of a round. Returns the files that a newer version wrote.
    fn documents(&mut self, number: u32, files: &[SealedFile]) -> Vec<NewerFile> {
        let mut newer = Vec::new();
        for (path, bytes) in files {
            let parsed = match file_name(path) {
                REQUEST => self
                    .parsed::<StoredRequest>(bytes, |r| &r.review_id)
                    .map(|r| self.earlier_heads = r.before),
                REVIEW => self.parsed::<Review>(bytes, |r| &r.review_id).map(drop),
                RESPONSE => self.parsed::<Response>(bytes, |r| &r.review_id).map(drop),
                _ => Ok(()),
            };
            match parsed {
                Ok(()) => {}
                Err(trouble @ Trouble::Future(..)) => newer.push((path.clone(), why(trouble))),
                Err(trouble) => self.edit(Some(number), path, why(trouble)),
            }
        }
        newer
    }

    /// Compares the files of a round with its seal, and continues the chain with the stored head.
    /// `newer` is a file that a newer version wrote.
    fn seal(
        &mut self,
        folders: RoundFolders<'_>,
        files: &[SealedFile],
        newer: Option<&NewerFile>,
    ) -> Result<()> {
        let number = folders.number;
        let path = format!("{}/{SEAL}", round_name(number));
        let Some(bytes) = self.bytes(folders.round, SEAL, Some(number), &path)? else {
            // An unreadable seal is a modification already.
            if !self.edits.iter().any(|e| e.file == path) {
                self.edit(Some(number), &path, "it is missing");
            }
            return Ok(());
        };
        let stored: Seal = match (understand(&bytes, String::new), newer) {
            (Ok(seal), _) => seal,
            // A newer version writes both the seal and the sealed files. If only the seal is newer,
            // it was modified.
            (Err(Trouble::Future(..)), Some((file, why))) => {
                self.newer = Some(format!("{file}: {why}"));
                return Ok(());
            }
            (Err(t), _) => {
                self.edit(Some(number), &path, why(t));
                return Ok(());
            }
        };
        let covered: Vec<_> = files
            .iter()
            .map(|(name, bytes)| Covered { name, bytes })
            .collect();
        let now = chain::seal(self.chain.heads.last().map(String::as_str), &covered);
        let differences = differences(&path, &stored, &now);
        let is_same = differences.is_empty();
        for (file, why) in differences {
            self.edit(Some(number), &file, why);
        }
        if is_same && !is_as_written(&stored, &bytes) {
            self.edit(Some(number), &path, "it was modified");
        } else if let (true, Some((file, why))) = (is_same, newer) {
            // The seal matches, so the file was not modified.
            self.newer = Some(format!("{file}: {why}"));
        }
        self.chain.last_round = Some(stored.head.clone());
        self.push_head(stored.head);
        Ok(())
    }

    // Step 3: closings.

    /// Checks the closings, and that the chain has every link of a fix.
    fn end_of_chain(&mut self, complete: Option<&[u8]>) {
        if let Some(complete) = complete.filter(|_| self.newer.is_none()) {
            self.closings(complete);
        }
        if self.newer.is_none() && !self.chain.links.is_empty() {
            self.edit(None, FIXES, "its links do not continue the chain");
        }
    }

    /// Compares each closing with its seal.
    fn closings(&mut self, bytes: &[u8]) {
        let Some(completion) = self.own_document::<Completion>(bytes, COMPLETE) else {
            return;
        };
        let document: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let edits = self.edits.len();
        for (entry, value) in completion.entries.iter().zip(list(&document, "entries")) {
            let previous = self.chain.heads.last().cloned().unwrap_or_default();
            let is_of_last_round = self.chain.last_round.as_ref() == Some(&entry.head);
            if chain::closing(&previous, value) != entry.seal || !is_of_last_round {
                let why = format!("the entry of {} is not what was stored", entry.timestamp);
                self.edit(None, COMPLETE, why);
            }
            self.push_head(entry.seal.clone());
        }
        let is_same = self.edits.len() == edits;
        if completion.review_id != self.id.to_string() {
            self.edit(None, COMPLETE, "it speaks of another review");
        } else if completion.entries.is_empty() || is_same && !is_as_written(&document, bytes) {
            self.edit(None, COMPLETE, "it was modified");
        }
    }
}

/// Returns a list of a document as JSON values, which have fields that this version does not know.
fn list<'d>(document: &'d Value, field: &str) -> &'d [Value] {
    document
        .get(field)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns the name of a file from its path relative to the session.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
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
