//! Counts, checks and removes the entries of a shared cache, for the operator.

use super::entry::{self, EntryDefect, EntryTerms};
use super::store::{BlobRead, LEASES, REPLIES, Store, StoreFailure, StoredBlob};
use super::{now, terms_of};
use crate::env::Env;
use crate::policy::CachePolicy;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit of one operation. It is the operator who waits, and not a review.
const OPERATION: Duration = Duration::from_secs(30);

/// The action of a command on the entries of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpkeepAction {
    /// Count entries and their bytes, by the listing.
    Count,
    /// Read and verify every entry.
    Verify,
    /// Verify, and remove entries that no reader accepts.
    Prune,
    /// Remove every entry.
    Clear,
}

/// The entries of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheSurvey {
    pub entries: usize,
    pub bytes: u64,
    /// Entries that count; 0 if none was read.
    pub valid: usize,
    /// Entries that do not count, by defect.
    pub defects: BTreeMap<EntryDefect, usize>,
    /// Leases that are not given back.
    pub leases: usize,
    /// Entries and leases that were removed.
    pub removed: usize,
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
        for blob in in_time(self.store.list(REPLIES)).await? {
            self.reply(&blob).await?;
        }
        for blob in in_time(self.store.list(LEASES)).await? {
            self.survey.leases += 1;
            // A lease lives for seconds. One that is in use is taken again by its holder.
            if matches!(self.action, UpkeepAction::Prune | UpkeepAction::Clear) {
                self.remove(LEASES, &blob.name).await?;
            }
        }
        Ok(())
    }

    /// Counts or removes one entry.
    async fn reply(&mut self, blob: &StoredBlob) -> Result<(), StoreFailure> {
        self.survey.entries += 1;
        // A store can report any size.
        self.survey.bytes = self.survey.bytes.saturating_add(blob.bytes);
        match self.action {
            UpkeepAction::Count => return Ok(()),
            UpkeepAction::Clear => return self.remove(REPLIES, &blob.name).await,
            UpkeepAction::Verify | UpkeepAction::Prune => {}
        }
        let name = format!("{REPLIES}/{}", blob.name);
        let read = in_time(self.store.get(&name, self.terms.max_bytes)).await?;
        let defect = match read {
            BlobRead::Missing => return Ok(()),
            BlobRead::TooLarge => Some(EntryDefect::TooLarge),
            BlobRead::Content(bytes) => {
                entry::inspect(&bytes, &blob.name, &self.terms, now()).err()
            }
        };
        let Some(defect) = defect else {
            self.survey.valid += 1;
            return Ok(());
        };
        *self.survey.defects.entry(defect).or_default() += 1;
        if self.action == UpkeepAction::Prune && is_waste(defect) {
            self.remove(REPLIES, &blob.name).await?;
        }
        Ok(())
    }

    /// Removes a blob and counts it.
    async fn remove(&mut self, folder: &str, name: &str) -> Result<(), StoreFailure> {
        in_time(self.store.remove(&format!("{folder}/{name}"))).await?;
        self.survey.removed += 1;
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

/// Waits for an operation within its time limit.
async fn in_time<T>(
    work: impl Future<Output = Result<T, StoreFailure>>,
) -> Result<T, StoreFailure> {
    match timeout(OPERATION, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} s", OPERATION.as_secs())),
    }
}
