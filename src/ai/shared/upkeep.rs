//! Counts, checks and removes the entries of both caches, for the operator.

use super::entry::{self, EntryDefect, EntryTerms};
use super::store::{BlobRead, LEASES, MAX_LISTED, REPLIES, Store, StoreFailure, StoredBlob};
use super::store::{StoreListing, in_time};
use super::{now, terms_of};
use crate::ai::cache::{Cache, CacheFiles, LocalReply, ReplyKey};
use crate::env::Env;
use crate::policy::CachePolicy;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of a listing. Each of its steps has a limit of its own.
const LISTING: Duration = Duration::from_secs(600);

/// The action of a command on the entries of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpkeepAction {
    /// Count entries and their bytes, by the listing.
    Count,
    /// Read every entry. In a shared cache, verify its signature, its name and its age too.
    Verify,
    /// Read every entry, and remove those that no review uses. In a shared cache, remove leases and
    /// stale temporary files as well.
    Prune,
    /// Remove every entry, lease and temporary file.
    Clear,
}

impl UpkeepAction {
    /// Returns true if entries are read.
    pub fn reads(self) -> bool {
        matches!(self, Self::Verify | Self::Prune)
    }

    /// Returns true if entries are removed.
    pub fn removes(self) -> bool {
        matches!(self, Self::Prune | Self::Clear)
    }
}

/// The entries of a cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSurvey {
    pub entries: usize,
    pub bytes: u64,
    /// Entries that count; 0 if none was read.
    pub valid: usize,
    /// Entries that do not count, by defect.
    pub defects: BTreeMap<EntryDefect, usize>,
    /// Entries of a shared cache that count, by the name of their signer.
    pub signers: BTreeMap<String, SignerEntries>,
    /// Leases that are not given back.
    pub leases: usize,
    /// Temporary files; in a shared folder only stale ones.
    pub temporary: usize,
    /// Files or keys with names that the program does not write. A Redis server can list a key
    /// twice, which then counts twice.
    pub foreign: usize,
    /// True if the store has more entries than are listed.
    pub is_truncated: bool,
    /// Entries, leases and temporary files that were removed.
    pub removed: usize,
    /// Entries, leases and temporary files that could not be removed.
    pub unremoved: usize,
}

/// The valid entries of a signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignerEntries {
    pub count: usize,
    /// Time of the oldest one, in seconds since 1970.
    pub oldest: i64,
}

impl CacheSurvey {
    /// Counts an entry.
    fn add(&mut self, bytes: u64) {
        self.entries += 1;
        // A store can report any size.
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Counts an entry that does not count.
    fn add_defect(&mut self, defect: EntryDefect) {
        *self.defects.entry(defect).or_default() += 1;
    }

    /// Counts a valid entry of a signer.
    fn add_signed(&mut self, signer: String, time: i64) {
        self.valid += 1;
        let first = SignerEntries {
            count: 0,
            oldest: time,
        };
        let entries = self.signers.entry(signer).or_insert(first);
        entries.count += 1;
        entries.oldest = entries.oldest.min(time);
    }

    /// Counts an attempt to remove something.
    fn add_removal(&mut self, is_gone: bool) {
        match is_gone {
            true => self.removed += 1,
            false => self.unremoved += 1,
        }
    }
}

/// Surveys the user's cache. A copy of a shared entry counts as long as it is undamaged; `Prune`
/// also removes copies that no reader with this policy accepts.
pub fn survey_local(cache: &Cache, policy: &CachePolicy, action: UpkeepAction) -> CacheSurvey {
    let mut survey = CacheSurvey::default();
    if action == UpkeepAction::Prune {
        let before = cache.files();
        cache.trim();
        let after = cache.files();
        let count = |files: &CacheFiles| files.entries.len() + files.temporary.len();
        survey.removed = count(&before).saturating_sub(count(&after));
    }
    let terms = terms_of(policy);
    let files = cache.files();
    survey.temporary = files.temporary.len();
    survey.foreign = files.foreign;
    for (key, bytes) in files.entries {
        survey.add(bytes);
        let defect = match action.reads() {
            true => local_defect(cache, &key, &terms, action),
            false => None,
        };
        match defect {
            Some(defect) => survey.add_defect(defect),
            None if action.reads() => survey.valid += 1,
            None => {}
        }
        if action == UpkeepAction::Clear || action.removes() && defect.is_some() {
            survey.add_removal(cache.discard(&key.to_hex()));
        }
    }
    if action == UpkeepAction::Clear {
        for name in files.temporary {
            survey.add_removal(cache.discard(&name));
        }
    }
    survey
}

/// Returns the defect for which an entry of the user's cache is not used.
fn local_defect(
    cache: &Cache,
    key: &ReplyKey,
    terms: &EntryTerms,
    action: UpkeepAction,
) -> Option<EntryDefect> {
    match cache.peek(key) {
        None => Some(EntryDefect::Malformed),
        Some(LocalReply::Copy(sealed)) if action == UpkeepAction::Prune => {
            let defect = entry::open(&sealed, key, terms, now()).err();
            defect.filter(|defect| is_waste(*defect))
        }
        Some(LocalReply::Own(_) | LocalReply::Copy(_)) => None,
    }
}

/// Surveys the store of a policy. Returns `None` if the policy has no shared cache.
///
/// # Errors
///
/// Why the store cannot be used.
pub async fn survey(
    policy: &CachePolicy,
    env: &Env,
    action: UpkeepAction,
) -> Option<Result<CacheSurvey, String>> {
    let url = policy.url.as_deref()?;
    let terms = terms_of(policy);
    let store = match Store::open(url, env, policy.max_age) {
        Ok(store) => store,
        Err(why) => return Some(Err(why)),
    };
    let mut caretaker = Caretaker {
        store,
        terms,
        action,
        survey: CacheSurvey::default(),
    };
    Some(
        caretaker
            .replies_and_leases()
            .await
            .map(|()| caretaker.survey),
    )
}

/// One pass over a store.
struct Caretaker {
    store: Store,
    terms: EntryTerms,
    action: UpkeepAction,
    survey: CacheSurvey,
}

impl Caretaker {
    /// Visits every entry and every lease.
    async fn replies_and_leases(&mut self) -> Result<(), StoreFailure> {
        for blob in self.listed(REPLIES).await? {
            match blob.is_temporary {
                true => self.temporary(REPLIES, &blob.name).await?,
                false => self.reply(&blob).await?,
            }
        }
        for blob in self.listed(LEASES).await? {
            if blob.is_temporary {
                self.temporary(LEASES, &blob.name).await?;
                continue;
            }
            self.survey.leases += 1;
            // A lease lives for seconds. One that is in use is taken again by its holder.
            if self.action.removes() {
                self.remove(LEASES, &blob.name).await?;
            }
        }
        Ok(())
    }

    /// Lists a folder of the store.
    async fn listed(&mut self, folder: &str) -> Result<Vec<StoredBlob>, StoreFailure> {
        let listing = timeout(LISTING, self.store.list(folder, MAX_LISTED)).await;
        let StoreListing {
            blobs,
            foreign,
            is_truncated,
        } = listing
            .unwrap_or_else(|_| Err(format!("no listing within {} s", LISTING.as_secs())))?;
        self.survey.foreign += foreign;
        self.survey.is_truncated |= is_truncated;
        Ok(blobs)
    }

    /// Counts a temporary file that a dead process left, and removes it if the action removes
    /// something.
    async fn temporary(&mut self, folder: &str, name: &str) -> Result<(), StoreFailure> {
        self.survey.temporary += 1;
        match self.action.removes() {
            true => self.remove(folder, name).await,
            false => Ok(()),
        }
    }

    /// Counts or removes one entry.
    async fn reply(&mut self, blob: &StoredBlob) -> Result<(), StoreFailure> {
        match self.action {
            UpkeepAction::Count => {
                self.survey.add(blob.bytes);
                return Ok(());
            }
            UpkeepAction::Clear => {
                self.survey.add(blob.bytes);
                return self.remove(REPLIES, &blob.name).await;
            }
            UpkeepAction::Verify | UpkeepAction::Prune => {}
        }
        let name = format!("{REPLIES}/{}", blob.name);
        let opened = match in_time(self.store.get(&name, self.terms.max_bytes)).await? {
            // It was removed since it was listed.
            BlobRead::Missing => return Ok(()),
            BlobRead::TooLarge => Err(EntryDefect::TooLarge),
            BlobRead::Unreadable => Err(EntryDefect::Unreadable),
            BlobRead::Content(bytes) => entry::inspect(&bytes, &blob.name, &self.terms, now()),
        };
        self.survey.add(blob.bytes);
        match opened {
            Ok(entry) => self.survey.add_signed(entry.signer, entry.time),
            Err(defect) => {
                self.survey.add_defect(defect);
                if self.action == UpkeepAction::Prune && is_waste(defect) {
                    self.remove(REPLIES, &blob.name).await?;
                }
            }
        }
        Ok(())
    }

    /// Removes a blob and counts it.
    async fn remove(&mut self, folder: &str, name: &str) -> Result<(), StoreFailure> {
        let is_gone = in_time(self.store.remove(&format!("{folder}/{name}"))).await?;
        self.survey.add_removal(is_gone);
        Ok(())
    }
}

/// Returns true if no reader of the store can accept an entry with this defect. Another policy can
/// list other signers, and a newer program knows other versions.
fn is_waste(defect: EntryDefect) -> bool {
    !matches!(
        defect,
        EntryDefect::UnknownSigner | EntryDefect::OtherVersion
    )
}
