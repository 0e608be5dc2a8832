//! A store in a Redis server. Entries expire there by themselves.

use super::{BlobRead, LEASES, StoreFailure, StoreListing, in_time};
use crate::env::Env;
use crate::http::resp::{RespConnection, RespReply, RespServer};
use crate::policy::RedisAddress;
use secrecy::SecretString;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::sync::Mutex;

/// Start of the names of all keys.
const PREFIX: &str = "claude-reviewer:";
/// Port of a server by default.
const PORT: u16 = 6379;
/// Seconds after which the server removes a lease.
const LEASE_SECONDS: u64 = 60;
/// Bytes of the answer to a command that returns no entry, at most.
const SHORT: usize = 4 << 10;
/// Keys that one step of a listing asks for, and whose sizes are asked for at once.
const STEP: usize = 1000;
/// Bytes of one step of a listing, at most. A server may return more keys than it was asked for.
const MAX_STEP: usize = 32 << 20;
/// Bytes of the position of a listing, at most: the digits of a 64-bit number.
const MAX_CURSOR: usize = 20;

/// A store in a Redis server, with at most one open connection.
#[derive(Debug)]
pub(in crate::ai::shared) struct RedisStore {
    server: RespServer,
    link: Mutex<RedisLink>,
    /// True if the run has given the server up: commands that wait for their turn must not connect.
    is_given_up: Cell<bool>,
    entry_seconds: u64,
}

/// The state of the connection.
#[derive(Debug)]
enum RedisLink {
    Closed,
    Open(RespConnection),
    /// The server failed. Commands that waited for their turn must not try it again.
    Broken,
}

impl RedisStore {
    /// Names a server: `HOST[:PORT][/DATABASE]`. The password is that of `redis-cli`
    /// (`REDISCLI_AUTH`), with the user in `REDIS_USERNAME`.
    pub(super) fn new(
        is_secure: bool,
        rest: &str,
        env: &Env,
        max_age: Duration,
    ) -> Result<Self, StoreFailure> {
        let address = RedisAddress::parse(rest);
        let RedisAddress {
            host,
            port,
            database,
        } = address.map_err(|why| format!("the URL of the store {why}"))?;
        Ok(Self {
            server: RespServer {
                host,
                port: port.unwrap_or(PORT),
                is_secure,
                database,
                user: env.var("REDIS_USERNAME").map(str::to_owned),
                password: env
                    .var("REDISCLI_AUTH")
                    .map(|text| SecretString::from(text.to_owned())),
            },
            link: Mutex::new(RedisLink::Closed),
            is_given_up: Cell::new(false),
            entry_seconds: max_age.as_secs().max(1),
        })
    }

    /// Lets no further command connect.
    pub(super) fn give_up(&self) {
        self.is_given_up.set(true);
    }

    /// Runs a command with one value as its reply, and connects if needed. A value of another type
    /// is a reply: it is about one key, and the connection works. After any other error of the
    /// server, it is not asked again.
    async fn command(&self, args: &[&[u8]], most: usize) -> Result<RespReply, StoreFailure> {
        self.connected(
            async |connection| match connection.command(args, most).await? {
                RespReply::WrongType => Ok(RespReply::WrongType),
                reply => reply.accepted(),
            },
        )
        .await
    }

    /// Runs a command on the connection, and connects if needed.
    async fn connected<T>(
        &self,
        command: impl AsyncFnOnce(&mut RespConnection) -> Result<T, StoreFailure>,
    ) -> Result<T, StoreFailure> {
        let mut link = self.link.lock().await;
        if self.is_given_up.get() {
            return Err("the server was given up".to_owned());
        }
        // The connection is put back only after a whole reply: the command may end early, by a
        // deadline or because its caller was cancelled.
        let ready = match std::mem::replace(&mut *link, RedisLink::Closed) {
            RedisLink::Open(connection) => Ok(connection),
            RedisLink::Closed => self.server.connect().await,
            RedisLink::Broken => Err("the connection was lost".to_owned()),
        };
        let done = match ready {
            Ok(mut connection) => {
                let reply = command(&mut connection).await;
                reply.map(|reply| (reply, connection))
            }
            Err(why) => Err(why),
        };
        match done {
            Ok((reply, connection)) => {
                *link = RedisLink::Open(connection);
                Ok(reply)
            }
            Err(why) => {
                *link = RedisLink::Broken;
                Err(why)
            }
        }
    }

    /// Reads a blob. One byte more than the bound is requested, so that a larger value is noticed
    /// without reading it.
    pub(super) async fn get(&self, name: &str, most: usize) -> Result<BlobRead, StoreFailure> {
        let (key, last) = (key_of(name), most.to_string());
        let args: [&[u8]; 4] = [b"GETRANGE", key.as_bytes(), b"0", last.as_bytes()];
        match self.command(&args, most + 1).await? {
            RespReply::Bytes(Some(bytes)) if bytes.len() > most => Ok(BlobRead::TooLarge),
            RespReply::Bytes(Some(bytes)) if !bytes.is_empty() => Ok(BlobRead::Content(bytes)),
            RespReply::Bytes(_) => Ok(BlobRead::Missing),
            RespReply::WrongType => Ok(BlobRead::Unreadable),
            _ => Err(unexpected()),
        }
    }

    /// Writes a blob with its lifetime.
    pub(super) async fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFailure> {
        let (key, seconds) = (key_of(name), self.seconds_of(name));
        let args: [&[u8]; 5] = [b"SET", key.as_bytes(), bytes, b"EX", seconds.as_bytes()];
        match self.command(&args, SHORT).await? {
            RespReply::Status(_) => Ok(()),
            _ => Err(unexpected()),
        }
    }

    /// Writes a blob, unless one of this name exists.
    pub(super) async fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, StoreFailure> {
        let (key, seconds) = (key_of(name), self.seconds_of(name));
        let args: [&[u8]; 6] = [
            b"SET",
            key.as_bytes(),
            bytes,
            b"NX",
            b"EX",
            seconds.as_bytes(),
        ];
        match self.command(&args, SHORT).await? {
            RespReply::Status(_) => Ok(true),
            RespReply::Bytes(None) => Ok(false),
            _ => Err(unexpected()),
        }
    }

    /// Removes a blob.
    pub(super) async fn remove(&self, name: &str) -> Result<(), StoreFailure> {
        let key = key_of(name);
        self.command(&[b"DEL", key.as_bytes()], SHORT)
            .await
            .map(drop)
    }

    /// Lists at most `most` blobs of a folder.
    pub(super) async fn list(
        &self,
        folder: &str,
        most: usize,
    ) -> Result<StoreListing, StoreFailure> {
        let start = key_of(&format!("{folder}/"));
        let mut listing = StoreListing::default();
        // A server can return a key several times.
        let mut seen = BTreeSet::new();
        let mut cursor = b"0".to_vec();
        loop {
            let (next, names) = in_time(self.scanned(&cursor, &start)).await?;
            let mut new = Vec::new();
            for name in names {
                if !seen.contains(&name) && listing.admits(&name, most - new.len().min(most)) {
                    seen.insert(name.clone());
                    new.push(name);
                }
            }
            for names in new.chunks(STEP) {
                let sizes = in_time(self.sizes(names, &start)).await?;
                for (name, size) in names.iter().zip(sizes) {
                    listing.add(name.clone(), size);
                }
            }
            cursor = next;
            if cursor == b"0" || listing.is_truncated {
                return Ok(listing);
            }
        }
    }

    /// Runs one step of a listing. Returns the position of the next one, and the names of the keys
    /// that start like this.
    async fn scanned(
        &self,
        cursor: &[u8],
        start: &str,
    ) -> Result<(Vec<u8>, Vec<String>), StoreFailure> {
        let (pattern, count) = (format!("{start}*"), STEP.to_string());
        let args: [&[u8]; 6] = [
            b"SCAN",
            cursor,
            b"MATCH",
            pattern.as_bytes(),
            b"COUNT",
            count.as_bytes(),
        ];
        let parts = self
            .connected(async |connection| connection.list(&args, MAX_STEP).await)
            .await?;
        let [RespReply::Bytes(Some(next)), RespReply::List(keys)] = parts.as_slice() else {
            return Err(unexpected());
        };
        if next.len() > MAX_CURSOR {
            return Err(unexpected());
        }
        let names = keys.iter().filter_map(|key| name_of(key, start)).collect();
        Ok((next.clone(), names))
    }

    /// Returns the sizes of at most [`STEP`] blobs, which the server is asked for at once. A value
    /// of another type has no size.
    async fn sizes(&self, names: &[String], start: &str) -> Result<Vec<u64>, StoreFailure> {
        let keys: Vec<String> = names.iter().map(|name| format!("{start}{name}")).collect();
        let commands: Vec<Vec<&[u8]>> = keys
            .iter()
            .map(|key| vec![b"STRLEN".as_slice(), key.as_bytes()])
            .collect();
        let replies = self
            .connected(async |connection| connection.commands(&commands, SHORT).await)
            .await?;
        replies
            .into_iter()
            .map(|reply| match reply {
                RespReply::Number(size) => Ok(u64::try_from(size).unwrap_or_default()),
                RespReply::WrongType => Ok(0),
                reply => reply.accepted().and(Err(unexpected())),
            })
            .collect()
    }

    /// Returns the lifetime of a blob in seconds.
    fn seconds_of(&self, name: &str) -> String {
        match name.starts_with(LEASES) {
            true => LEASE_SECONDS.to_string(),
            false => self.entry_seconds.to_string(),
        }
    }
}

/// Returns the key of a blob.
fn key_of(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the name of a blob from its key.
fn name_of(key: &RespReply, start: &str) -> Option<String> {
    let RespReply::Bytes(Some(key)) = key else {
        return None;
    };
    let name = std::str::from_utf8(key).ok()?.strip_prefix(start)?;
    Some(name.to_owned())
}

/// Returns the failure of a reply of an unexpected type.
fn unexpected() -> StoreFailure {
    "the answer is not from a Redis server".to_owned()
}
