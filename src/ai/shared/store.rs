//! A store of shared entries: named blobs in a folder, a Redis server or an object store.
//!
//! A store is not trusted. Whatever it returns is bounded here, and verified in `entry`.

mod folder;
#[cfg(feature = "object-stores")]
mod objects;
mod redis;

use self::folder::FolderStore;
#[cfg(feature = "object-stores")]
use self::objects::ObjectStore;
use self::redis::RedisStore;
use crate::ai::cache::ReplyKey;
use crate::env::Env;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Folders of a store. The number is the version of their format.
pub(super) const REPLIES: &str = "replies-1";
pub(super) const LEASES: &str = "leases-1";
/// Entries that a listing returns, at most.
pub(super) const MAX_LISTED: usize = 100_000;
/// Time limit of one operation of the operator's commands. No review waits for it.
const OPERATION: Duration = Duration::from_secs(30);

/// A blob of a store, without its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StoredBlob {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// True for a temporary file that a dead process left in a folder.
    pub(super) is_temporary: bool,
}

/// The blobs of a folder of a store. Only names that this program writes are listed, so that
/// nothing else is read or removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StoreListing {
    pub(super) blobs: Vec<StoredBlob>,
    /// Number of names that this program does not write.
    pub(super) foreign: usize,
    /// True if further blobs were left out.
    pub(super) is_truncated: bool,
}

/// An opened store.
#[derive(Debug)]
pub(super) enum Store {
    Folder(Arc<FolderStore>),
    Redis(RedisStore),
    #[cfg(feature = "object-stores")]
    Objects(ObjectStore),
}

/// A reason why a store cannot be used: one line without a key.
pub(super) type StoreFailure = String;

/// The content of a blob that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlobRead {
    Missing,
    /// It is a link, a pipe, a folder or a value of another type, or this user may not read it.
    Unreadable,
    /// It has more bytes than the reader accepts.
    TooLarge,
    Content(Vec<u8>),
}

impl Store {
    /// Opens a store by its URL from the policy. Opens no connection.
    ///
    /// # Errors
    ///
    /// The store needs a part that this build does not have, or its settings are incomplete.
    pub(super) fn open(url: &str, env: &Env, max_age: Duration) -> Result<Self, StoreFailure> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        match scheme {
            "file" => Ok(Self::Folder(Arc::new(FolderStore::new(rest)))),
            "redis" | "rediss" => {
                RedisStore::new(scheme == "rediss", rest, env, max_age).map(Self::Redis)
            }
            #[cfg(feature = "object-stores")]
            "s3" | "gs" | "azblob" => ObjectStore::new(scheme, rest, env).map(Self::Objects),
            _ => Err(format!(
                "this build of the program does not support {scheme} stores (feature object-stores)"
            )),
        }
    }

    /// Ends what waits for the store: it failed.
    pub(super) fn give_up(&self) {
        if let Self::Redis(store) = self {
            store.give_up();
        }
    }

    /// Reads a blob of at most `most` bytes.
    pub(super) async fn get(&self, name: &str, most: usize) -> Result<BlobRead, StoreFailure> {
        match self {
            Self::Folder(store) => {
                let name = name.to_owned();
                apart(store, move |store| store.get(&name, most)).await
            }
            Self::Redis(store) => store.get(name, most).await,
            #[cfg(feature = "object-stores")]
            Self::Objects(store) => store.get(name, most).await,
        }
    }

    /// Writes a blob, atomically for readers.
    pub(super) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        match self {
            Self::Folder(store) => {
                let (name, bytes) = (name.to_owned(), bytes.to_vec());
                apart(store, move |store| store.put(&name, &bytes)).await
            }
            Self::Redis(store) => store.put(name, bytes).await,
            #[cfg(feature = "object-stores")]
            Self::Objects(store) => store.put(name, bytes).await,
        }
    }

    /// Writes a blob, unless one of this name exists; returns false in that case.
    pub(super) async fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        match self {
            Self::Folder(store) => {
                let (name, bytes) = (name.to_owned(), bytes.to_vec());
                apart(store, move |store| store.create(&name, &bytes)).await
            }
            Self::Redis(store) => store.create(name, bytes).await,
            #[cfg(feature = "object-stores")]
            Self::Objects(store) => store.create(name, bytes).await,
        }
    }

    /// Removes a blob, if it exists. Returns false if something is in its place that cannot be
    /// removed: a folder, or a file of another user in a folder that protects it.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, StoreFailure> {
        match self {
            Self::Folder(store) => {
                let name = name.to_owned();
                apart(store, move |store| store.remove(&name)).await
            }
            Self::Redis(store) => store.remove(name).await.map(|()| true),
            #[cfg(feature = "object-stores")]
            Self::Objects(store) => store.remove(name).await.map(|()| true),
        }
    }

    /// Lists the blobs below a folder of the store, sorted by name, at most `most`. Each step has
    /// the time limit of an operation; the caller limits the whole.
    pub(super) async fn list(
        &self,
        folder: &str,
        most: usize,
    ) -> Result<StoreListing, StoreFailure> {
        let mut listing = match self {
            Self::Folder(store) => {
                let folder = folder.to_owned();
                apart(store, move |store| store.list(&folder, most)).await
            }
            Self::Redis(store) => store.list(folder, most).await,
            #[cfg(feature = "object-stores")]
            Self::Objects(store) => store.list(folder, most).await,
        }?;
        listing.blobs.sort();
        Ok(listing)
    }
}

impl StoreListing {
    /// Returns true if a name is that of a question, with room for it in the list. Counts other
    /// names, and notes that something was left out.
    fn admits(&mut self, name: &str, most: usize) -> bool {
        if ReplyKey::of_name(name).is_none() {
            self.foreign += 1;
            return false;
        }
        self.has_room(most)
    }

    /// Returns true if there is room for a further blob. Otherwise it is left out.
    fn has_room(&mut self, most: usize) -> bool {
        self.is_truncated |= self.blobs.len() >= most;
        !self.is_truncated
    }

    /// Adds an entry or a lease.
    fn add(&mut self, name: String, bytes: u64) {
        self.blobs.push(StoredBlob {
            name,
            bytes,
            is_temporary: false,
        });
    }
}

/// Waits for an operation of the operator's commands within its time limit.
pub(super) async fn in_time<T>(
    work: impl Future<Output = Result<T, StoreFailure>>,
) -> Result<T, StoreFailure> {
    match timeout(OPERATION, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} s", OPERATION.as_secs())),
    }
}

/// Runs a call of a folder on a thread of its own: a network file system can hang for minutes, and
/// a thread that hangs holds nothing up.
async fn apart<T: Send + 'static>(
    store: &Arc<FolderStore>,
    call: impl FnOnce(&FolderStore) -> Result<T, StoreFailure> + Send + 'static,
) -> Result<T, StoreFailure> {
    let (send, receive) = oneshot::channel();
    let store = Arc::clone(store);
    std::thread::Builder::new()
        .name("shared-cache".to_owned())
        .spawn(move || {
            // The receiver is gone if the run has ended.
            let _ = send.send(call(&store));
        })
        .map_err(|e| format!("cannot start a thread: {e}"))?;
    receive
        .await
        .unwrap_or_else(|_| Err("the thread of the store ended".to_owned()))
}
