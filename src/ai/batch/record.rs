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
use std::fs::File;

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
    /// start of its digest and its position: at most 64 letters, digits and hyphens, which all
    /// providers accept.
    pub(crate) fn new(endpoint: &str, nonce: &str, digests: &[&str]) -> Self {
        let requests = digests.iter().enumerate().map(|(i, digest)| {
            let start: String = digest.chars().take(40).collect();
            RecordedRequest {
                custom_id: format!("{start}-{i}"),
                digest: (*digest).to_owned(),
            }
        });
        Self {
            version: VERSION,
            token: Nonce::random().as_str().to_owned(),
            created: jiff::Timestamp::now().as_second(),
            endpoint: endpoint.to_owned(),
            nonce: nonce.to_owned(),
            file_id: None,
            batch_id: None,
            requests: requests.collect(),
        }
    }

    /// Returns true if the fields have the form that this program writes.
    fn is_valid(&self) -> bool {
        let mut ids = self.batch_id.iter().chain(&self.file_id);
        self.version == VERSION
            && Nonce::parse(&self.token).is_some()
            && Nonce::parse(&self.nonce).is_some()
            && ids.all(|id| is_provider_id(id))
    }

    fn file_name(&self) -> String {
        format!("{}{SUFFIX}", self.token)
    }
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

    /// Returns the records. Removes those that are too old or unreadable.
    ///
    /// # Errors
    ///
    /// The folder cannot be read.
    pub(crate) fn records(&self) -> Result<Vec<BatchRecord>> {
        let now = jiff::Timestamp::now().as_second();
        let mut records = Vec::new();
        for name in self.folder.names()? {
            let Some(token) = name.strip_suffix(SUFFIX) else {
                continue;
            };
            let bytes = self.folder.read(&name, MAX_RECORD).ok().flatten();
            let record = bytes.and_then(|b| serde_json::from_slice::<BatchRecord>(&b).ok());
            let record = record.filter(|r| r.is_valid() && r.token == token);
            match record {
                Some(r) if now.saturating_sub(r.created) < LIFETIME => records.push(r),
                _ => self.folder.remove(&name)?,
            }
            if records.len() >= MAX_RECORDS {
                break;
            }
        }
        records.sort_by(|a, b| (a.created, &a.token).cmp(&(b.created, &b.token)));
        Ok(records)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_requests_are_unique_and_have_a_form_that_every_provider_accepts() {
        let digest = "ab".repeat(32);
        let same = [digest.as_str(); 3];
        let record = BatchRecord::new("https://api.example/v1/messages", &"0".repeat(32), &same);
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
