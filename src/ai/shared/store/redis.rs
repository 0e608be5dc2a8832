//! A store in a Redis server. Entries expire there by themselves.

use super::{BlobRead, LEASES, MAX_LISTED, StoreFailure, StoredBlob};
use crate::env::Env;
use crate::http::resp::{RespConnection, RespReply, RespServer};
use secrecy::SecretString;
use std::cell::Cell;
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
/// Keys that one step of a listing asks for.
const STEP: &[u8] = b"1000";
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
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let port = port.trim_start_matches(':');
        Ok(Self {
            server: RespServer {
                host: host.to_owned(),
                port: number_or(port, PORT)?,
                is_secure,
                database: number_or(database, 0)?,
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

    /// Runs a command with one value as its reply, and connects if needed.
    async fn command(&self, args: &[&[u8]], most: usize) -> Result<RespReply, StoreFailure> {
        self.connected(async |connection| connection.command(args, most).await)
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

    /// Lists the blobs of a folder.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<StoredBlob>, StoreFailure> {
        let start = key_of(&format!("{folder}/"));
        let pattern = format!("{start}*");
        let mut cursor = b"0".to_vec();
        let mut names = std::collections::BTreeSet::new();
        loop {
            let args: [&[u8]; 6] = [
                b"SCAN",
                &cursor,
                b"MATCH",
                pattern.as_bytes(),
                b"COUNT",
                STEP,
            ];
            let parts = self
                .connected(async |connection| connection.list(&args, MAX_STEP).await)
                .await?;
            let [RespReply::Bytes(Some(next)), RespReply::List(keys)] = parts.as_slice() else {
                return Err(unexpected());
            };
            names.extend(keys.iter().filter_map(|key| name_of(key, &start)));
            if next.len() > MAX_CURSOR {
                return Err(unexpected());
            }
            cursor.clone_from(next);
            if cursor == b"0" || names.len() >= MAX_LISTED {
                break;
            }
        }
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let key = key_of(&format!("{folder}/{name}"));
            let size = self.command(&[b"STRLEN", key.as_bytes()], SHORT).await?;
            if let RespReply::Number(size) = size {
                let bytes = u64::try_from(size).unwrap_or_default();
                all.push(StoredBlob { name, bytes });
            }
        }
        Ok(all)
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

/// Parses a number; an empty text stands for the default.
///
/// # Errors
///
/// It is not a number of this type, which the policy rules out.
fn number_or(text: &str, default: u16) -> Result<u16, StoreFailure> {
    match text.is_empty() {
        true => Ok(default),
        false => text
            .parse()
            .map_err(|_| "the URL of the store is invalid".to_owned()),
    }
}

/// Returns the failure of a reply of an unexpected type.
fn unexpected() -> StoreFailure {
    "the answer is not from a Redis server".to_owned()
}
