//! Records of batches in the user's state folder, so that a run that ends does not lose them.
//!
//! A record is written before its batch is submitted, and again with the ID that the provider gave
//! it. It has no key and no text of the change: digests, IDs, the address of the provider, and the
//! nonce that the answers repeat. Only the user can read it.

use crate::ai::ask::Nonce;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::state_folder::{MissingFolder, StateFolder, StatePurpose, name_of};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fs::File;
use std::path::PathBuf;

/// The folder of batches.
const PURPOSE: StatePurpose = StatePurpose {
    folder: "batches",
    content: "batches",
    hint: "set HOME, or leave out --batch",
};
/// Version of the format.
const VERSION: u32 = 1;
/// Bytes of a record that is read, at most: the largest batch has 100,000 requests.
const MAX_RECORD: u64 = 32 << 20;
/// Records that are read, at most.
const MAX_RECORDS: usize = 256;
/// Seconds after which a record is removed. Anthropic keeps results for 29 days
/// (<https://platform.claude.com/docs/en/build-with-claude/batch-processing>), OpenAI for 30.
const LIFETIME: i64 = 29 * 24 * 3600;
const LOCK: &str = "lock";
const SUFFIX: &str = ".json";

/// A batch that was submitted, or was about to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRecord {
    version: u32,
    /// Random name of the batch: 32 hexadecimal digits. Providers with metadata store it.
    pub(crate) token: String,
    /// Time of the record, in seconds since 1970.
    pub(crate) created: i64,
    /// Address of the interface that all requests of the batch use.
    pub(crate) endpoint: String,
    /// Nonce of the run that submitted it.
    pub(crate) nonce: String,
    /// ID of the file with the requests, at providers that take one.
    pub(crate) file_id: Option<String>,
    /// ID of the batch. `None` until the provider has answered the submission.
    pub(crate) batch_id: Option<String>,
    /// Name of the backend in the policy. Records of earlier versions have none.
    #[serde(default)]
    pub(crate) backend: String,
    /// True if the ID was taken from a list of batches and only its time and its number of requests
    /// match: the results will show whether it is right.
    #[serde(default)]
    pub(crate) is_unproven: bool,
    pub(crate) requests: Vec<RecordedRequest>,
}

/// A request in a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordedRequest {
    /// Its ID in the batch.
    pub(crate) custom_id: String,
    /// Digest of its body; see [`BatchBody::digest`](super::queue::BatchBody).
    pub(crate) digest: String,
}

impl BatchRecord {
    /// Creates the record of a batch that is not submitted yet. The ID of a request consists of the
    /// start of the token, so that results show to which batch they belong, the start of its digest
    /// and its position: at most 64 letters, digits and hyphens, which all providers accept.
    pub(crate) fn new((backend, endpoint): (&str, &str), nonce: &str, digests: &[&str]) -> Self {
        let token = Nonce::random().as_str().to_owned();
        let mark = mark_of(&token);
        let requests = digests.iter().enumerate().map(|(i, digest)| {
            let start: String = digest.chars().take(32).collect();
            RecordedRequest {
                custom_id: format!("{mark}-{start}-{i}"),
                digest: (*digest).to_owned(),
            }
        });
        Self {
            version: VERSION,
            created: jiff::Timestamp::now().as_second(),
            endpoint: endpoint.to_owned(),
            nonce: nonce.to_owned(),
            file_id: None,
            batch_id: None,
            backend: backend.to_owned(),
            is_unproven: false,
            requests: requests.collect(),
            token,
        }
    }

    /// Returns the text with which the IDs of its requests begin.
    pub(crate) fn mark(&self) -> String {
        mark_of(&self.token)
    }

    /// Returns true if the fields have the form that this program writes.
    fn is_valid(&self) -> bool {
        let mut ids = self.batch_id.iter().chain(&self.file_id);
        self.version == VERSION
            && Nonce::parse(&self.token).is_some()
            && Nonce::parse(&self.nonce).is_some()
            && ids.all(|id| is_provider_id(id))
    }

    /// Returns the name of its file, relative to the folder of the repository.
    pub(crate) fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.token)
    }
}

/// Returns the start of a token that marks the IDs of requests.
fn mark_of(token: &str) -> String {
    token.chars().take(16).collect()
}

/// Returns true if a text of a provider can be an ID: it becomes a part of addresses and is shown.
pub(crate) fn is_provider_id(id: &str) -> bool {
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=128).contains(&id.len()) && id.bytes().all(is_part)
}

/// The records of the batches of one repository, which only one run uses at a time.
#[derive(Debug)]
pub(crate) struct RecordShelf {
    folder: StateFolder,
    /// Held until the run ends, however it ends.
    _lock: File,
}

impl RecordShelf {
    /// Opens the records of a repository for this run alone.
    ///
    /// # Errors
    ///
    /// The state folder cannot be used, or another run uses the records.
    pub(crate) fn open(repo: &Repo, env: &Env) -> Result<Self> {
        let missing = || Error::incomplete("cannot create the folder of batches");
        let home = StateFolder::home(env, repo.worktree(), &PURPOSE, MissingFolder::Create)?;
        let home = home.ok_or_else(missing)?;
        let folder = home.below(&name_of(repo), MissingFolder::Create)?;
        let folder = folder.ok_or_else(missing)?;
        let lock = folder.try_lock(LOCK)?.ok_or_else(|| {
            let error = Error::incomplete("another run waits for batches of this repository");
            error.hint("wait for its end, or stop it; its batches are continued then")
        })?;
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Returns the records, the oldest first. Removes those that are too old or unreadable.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn records(&self) -> Result<Vec<BatchRecord>> {
        let (records, unusable) = records_in(&self.folder)?;
        for name in unusable {
            self.folder.remove(&name)?;
        }
        Ok(records)
    }

    /// Returns the IDs of the batches that any record of this user has, of all repositories, except
    /// those that are not proven: such a batch may be the one of another record.
    ///
    /// # Errors
    ///
    /// The state folder cannot be used.
    pub(crate) fn known_ids(&self, repo: &Repo, env: &Env) -> Result<HashSet<String>> {
        let mut ids = HashSet::new();
        let home = StateFolder::home(env, repo.worktree(), &PURPOSE, MissingFolder::Absent)?;
        for name in home.iter().flat_map(StateFolder::names).flatten() {
            // Another repository's folder that cannot be read hides no batch of this one.
            let folder = home
                .as_ref()
                .and_then(|h| h.below(&name, MissingFolder::Absent).ok()?);
            let records = folder.and_then(|folder| records_in(&folder).ok());
            let records = records.into_iter().flat_map(|(records, _)| records);
            let records = records.filter(|r| !r.is_unproven);
            ids.extend(records.filter_map(|r| r.batch_id));
        }
        Ok(ids)
    }

    /// Returns the path of a record.
    pub(crate) fn path_of(&self, record: &BatchRecord) -> PathBuf {
        self.folder.path().join(record.file_name())
    }

    /// Stores a record in place of its earlier version.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn store(&self, record: &BatchRecord) -> Result<()> {
        let bytes = serde_json::to_vec(record)
            .map_err(|e| Error::incomplete("cannot write the record of a batch").caused_by(&e))?;
        self.folder.replace(&record.file_name(), &bytes)
    }

    /// Removes a record.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub(crate) fn remove(&self, record: &BatchRecord) -> Result<()> {
        self.folder.remove(&record.file_name())
    }
}

/// Returns the records of a repository without taking its lock: files are replaced as a whole.
///
/// # Errors
///
/// The state folder cannot be used.
pub(crate) fn records_of(repo: &Repo, env: &Env) -> Result<Vec<BatchRecord>> {
    let home = StateFolder::home(env, repo.worktree(), &PURPOSE, MissingFolder::Absent)?;
    let folder = match home {
        Some(home) => home.below(&name_of(repo), MissingFolder::Absent)?,
        None => None,
    };
    let records = folder.map(|folder| records_in(&folder)).transpose()?;
    Ok(records.map(|(records, _)| records).unwrap_or_default())
}

/// Returns the records in a folder, the oldest first, and the names of the files that are too old
/// or unreadable.
///
/// # Errors
///
/// The folder cannot be read.
fn records_in(folder: &StateFolder) -> Result<(Vec<BatchRecord>, Vec<String>)> {
    let now = jiff::Timestamp::now().as_second();
    let (mut records, mut unusable) = (Vec::new(), Vec::new());
    for name in folder.names()? {
        let Some(token) = name.strip_suffix(SUFFIX) else {
            continue;
        };
        let bytes = folder.read(&name, MAX_RECORD).ok().flatten();
        let record = bytes.and_then(|b| serde_json::from_slice::<BatchRecord>(&b).ok());
        let record = record.filter(|r| r.is_valid() && r.token == token);
        match record {
            Some(r) if now.saturating_sub(r.created) < LIFETIME => records.push(r),
            _ => unusable.push(name),
        }
        if records.len() >= MAX_RECORDS {
            break;
        }
    }
    records.sort_by(|a, b| (a.created, &a.token).cmp(&(b.created, &b.token)));
    Ok((records, unusable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_requests_are_unique_and_have_a_form_that_every_provider_accepts() {
        let digest = "ab".repeat(32);
        let same = [digest.as_str(); 3];
        let endpoint = ("anthropic", "https://api.example/v1/messages");
        let record = BatchRecord::new(endpoint, &"0".repeat(32), &same);
        let mut ids: Vec<_> = record.requests.iter().map(|r| &r.custom_id).collect();
        assert!(ids.iter().all(|id| id.len() <= 64 && is_provider_id(id)));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3);
        assert!(record.is_valid());
    }

    #[test]
    fn an_id_that_could_change_an_address_is_invalid() {
        for id in ["", "a/b", "../x", "a?b", "a b", "a\n", &"x".repeat(129)] {
            assert!(!is_provider_id(id), "{id:?}");
        }
        assert!(is_provider_id("msgbatch_013Zva2CMHLNnXjNJJKqJ2EF"));
        assert!(is_provider_id("file-abc123"));
    }
}
