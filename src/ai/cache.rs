//! Caches complete and valid replies, so that unchanged parts of a change need no request.
//!
//! The cache is content-addressed: the key covers the whole request, the backend and the model. The
//! lookups of the model are part of the entry, and the entry is only valid if the same lookups have
//! the same results (`run/repeat`). The folder must belong to the user alone. It is not used if it
//! is a symlink, belongs to another user, is accessible to others, or is inside the tree under
//! review, where the change could have added it. A corrupt entry is a miss. A failure of the cache
//! is never an error.

mod upkeep;
pub(in crate::ai) mod written;

pub use upkeep::CacheFiles;

use self::written::{FileReaders, WrittenFile, is_stale};

use crate::ai::ask::{Lookup, LookupSubject, Nonce, Prompt, Read, Schema};
use crate::ai::tools;
use crate::bounded;
use crate::diff::{LineNo, RepoPath};
use crate::env::Env;
use crate::hex;
use crate::request::Depth;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The bounds of the user's cache.
const BOUNDS: CacheBounds = CacheBounds {
    most: 64 << 20,
    kept: 48 << 20,
};
/// Bytes of one entry, at most.
const MAX_ENTRY: u64 = 1 << 20;
/// Bytes that an entry occupies, at least: one block.
const BLOCK: u64 = 4096;
/// Number of writes between two checks of the total size.
const PUTS_BETWEEN: u32 = 64;
/// Start of the names of temporary files.
const TEMPORARY: &str = "tmp-";

/// Folders below the user's cache folder.
const FOLDERS: [&str; 2] = ["claude-reviewer", "replies-1"];
/// First line of an entry, with the version of its format.
const MAGIC: &str = "claude-reviewer reply 2";
/// First line of a copy of an entry of the shared cache.
const COPY: &str = "claude-reviewer shared reply 1";

/// Bytes of the entries of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CacheBounds {
    /// Bytes of all entries together, at most.
    pub(super) most: u64,
    /// Bytes of the entries that are left after the oldest were removed, at most.
    pub(super) kept: u64,
}

/// A cache of replies in a folder: that of the user, or the journal of an audit
/// ([`super::journal`]).
#[derive(Debug)]
pub struct Cache {
    folder: OwnedFd,
    bounds: CacheBounds,
    puts: AtomicU32,
    /// Number of damaged entries that were removed.
    damaged: AtomicU32,
}

/// A hash of everything that a reply depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyKey([u8; 32]);

/// Everything that a reply depends on.
#[derive(Clone, Copy, Debug)]
pub struct CachedQuestion<'a> {
    pub prompt: &'a Prompt,
    pub schema: &'a Schema,
    /// Kind of the backend, such as `anthropic`.
    pub kind: &'a str,
    /// Address of the backend, or the name of a program.
    pub endpoint: &'a str,
    /// Model name from the policy or the backend's default.
    pub model: &'a str,
    /// Reasoning effort, such as `high`; empty for the model's default.
    pub effort: &'a str,
    pub depth: Depth,
    /// True if the model can read a tree with tools.
    pub has_tools: bool,
}

/// A complete and valid reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptReply {
    /// Text of the reply, with the nonce of the run that reads it.
    pub text: String,
    pub read: Vec<Read>,
    /// Lookups of the model, in order.
    pub lookups: Vec<Lookup>,
    /// ID of the tree of the lookups. `None` if there are no lookups, or the tree has no ID.
    pub tree: Option<String>,
    /// Model name from the provider.
    pub model: String,
}

/// An entry of the user's cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalReply {
    /// An answer that a model gave to this user.
    Own(KeptReply),
    /// A copy of a signed entry of the shared cache. It counts only as long as a policy accepts its
    /// signer and its age, so it is verified whenever it is read.
    Copy(Vec<u8>),
}

/// Hashes texts without the nonce of the run.
struct TextHash<'n> {
    hash: Sha256,
    nonce: &'n str,
}

impl TextHash<'_> {
    /// Adds one text.
    fn add(&mut self, text: &str) {
        // Split the text at the nonce and hash the lengths, so that no text can imitate the gap of
        // another.
        let parts: Vec<_> = text.split(self.nonce).collect();
        self.hash.update((parts.len() as u64).to_le_bytes());
        for part in parts {
            self.hash.update((part.len() as u64).to_le_bytes());
            self.hash.update(part.as_bytes());
        }
    }
}

impl ReplyKey {
    /// Returns the key of a question. The nonce of the run is not part of it.
    pub fn of(question: &CachedQuestion<'_>) -> Self {
        let CachedQuestion {
            prompt,
            schema,
            kind,
            endpoint,
            model,
            effort,
            depth,
            has_tools,
        } = question;
        let mut hash = TextHash {
            hash: Sha256::new(),
            nonce: prompt.nonce.as_str(),
        };
        hash.add(env!("CARGO_PKG_VERSION"));
        for part in [
            prompt.system,
            &prompt.context,
            &prompt.manifest.key,
            &prompt.chunk,
            &prompt.task,
        ] {
            hash.add(part);
        }
        hash.add(schema.name);
        hash.add(&schema.value.to_string());
        for part in [kind, endpoint, model, effort] {
            hash.add(part);
        }
        hash.add(match depth {
            Depth::Quick => "quick",
            Depth::Thorough => "thorough",
        });
        hash.add(if *has_tools { "with tools" } else { "no tools" });
        for spec in tools::SPECS.iter().filter(|_| *has_tools) {
            hash.add(spec.name);
            hash.add(spec.description);
            hash.add(&spec.schema().to_string());
        }
        Self(hash.hash.finalize().into())
    }

    /// Returns the key of a cached value that is not a reply, from everything that it depends on.
    pub fn of_parts(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// Returns the key as 64 hexadecimal digits: its name in a cache.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// Parses what [`Self::to_hex`] writes.
    pub fn from_hex(text: &str) -> Option<Self> {
        hex::decode_array(text).map(Self)
    }

    /// Parses the name of a file in a cache: exactly what [`Self::to_hex`] writes, in lower case.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::from_hex(name).filter(|key| key.to_hex() == name)
    }

    /// Returns the bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Cache {
    /// Opens the user's cache, or creates it. `top` is the root of the tree under review: a cache
    /// inside it is not trusted.
    ///
    /// Returns `None` if no cache is possible: no home folder, a read-only file system, a symlink,
    /// or a folder that others can access.
    pub fn open(env: &Env, top: Option<&Path>) -> Option<Self> {
        Self::open_below(&env.cache_home()?, &FOLDERS, top, BOUNDS)
    }

    /// Same as [`Self::open`], but creates nothing: returns `None` if there is no cache yet.
    pub fn open_existing(env: &Env, top: Option<&Path>) -> Option<Self> {
        Self::open_folders(&env.cache_home()?, (&FOLDERS, false), top, BOUNDS)
    }

    /// Opens a cache in a folder below one of the user's folders, or creates it. See
    /// [`Cache::open`].
    pub(super) fn open_below(
        home: &Path,
        names: &[&str],
        top: Option<&Path>,
        bounds: CacheBounds,
    ) -> Option<Self> {
        std::fs::create_dir_all(home).ok()?;
        Self::open_folders(home, (names, true), top, bounds)
    }

    /// Opens the folders of a cache below `home`, and creates those that do not exist if `creates`
    /// is true.
    fn open_folders(
        home: &Path,
        (names, creates): (&[&str], bool),
        top: Option<&Path>,
        bounds: CacheBounds,
    ) -> Option<Self> {
        // Symlinks on the path to the cache folder belong to the user and are followed.
        let home = home.canonicalize().ok()?;
        if let Some(top) = top
            && home.starts_with(top.canonicalize().ok()?)
        {
            return None;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(&home, flags, Mode::empty()).ok()?;
        for name in names {
            if creates {
                // Ignore the error if the folder exists; its owner and mode are checked below.
                let _ = rustix::fs::mkdirat(&folder, *name, Mode::RWXU);
            }
            folder =
                rustix::fs::openat(&folder, *name, flags | OFlags::NOFOLLOW, Mode::empty()).ok()?;
            let stat = rustix::fs::fstat(&folder).ok()?;
            if !is_own(&stat) {
                return None;
            }
        }
        Some(Self {
            folder,
            bounds,
            puts: AtomicU32::new(0),
            damaged: AtomicU32::new(0),
        })
    }

    /// Returns the user's own reply to a question, with the nonce of this run. Removes a corrupt
    /// entry.
    pub fn get(&self, key: &ReplyKey, nonce: &Nonce) -> Option<KeptReply> {
        match self.find(key, nonce)? {
            LocalReply::Own(kept) => Some(kept),
            LocalReply::Copy(_) => None,
        }
    }

    /// Returns the entry for a question. Removes a corrupt entry.
    pub fn find(&self, key: &ReplyKey, nonce: &Nonce) -> Option<LocalReply> {
        let name = key.to_hex();
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.folder, &name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(rustix::io::Errno::NOENT) => return None,
            Err(_) => return self.remove_damaged(&name),
        };
        let Some(bytes) = read_own(file) else {
            return self.remove_damaged(&name);
        };
        let Some(found) = local_reply(&bytes, key, nonce) else {
            return self.remove_damaged(&name);
        };
        // Update the time, so that the least recently used entries are removed first. A failure is
        // ignored.
        let now = rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        };
        let times = rustix::fs::Timestamps {
            last_access: now,
            last_modification: now,
        };
        let _ = rustix::fs::utimensat(&self.folder, &name, &times, AtFlags::SYMLINK_NOFOLLOW);
        Some(found)
    }

    /// Stores a reply, if possible. The write is atomic for readers.
    pub fn put(&self, key: &ReplyKey, nonce: &Nonce, kept: &KeptReply) {
        self.write(key, encode(key, nonce, kept).as_bytes());
    }

    /// Stores a copy of a signed entry of the shared cache, if possible.
    pub fn put_copy(&self, key: &ReplyKey, sealed: &[u8]) {
        let head = format!("{COPY} {}\n", hex::encode(&Sha256::digest(sealed)));
        self.write(key, &[head.as_bytes(), sealed].concat());
    }

    /// Writes an entry, if possible.
    fn write(&self, key: &ReplyKey, bytes: &[u8]) {
        if bytes.len() as u64 > MAX_ENTRY {
            return;
        }
        let puts = self.puts.fetch_add(1, Ordering::Relaxed);
        if puts.is_multiple_of(PUTS_BETWEEN) {
            self.shrink();
        }
        // A failure means that the entry is not stored.
        let written = WrittenFile::new(&self.folder, TEMPORARY, bytes, FileReaders::Owner);
        let _ = written.map(|written| written.rename(&key.to_hex()));
    }

    /// Removes an entry that cannot be read.
    fn remove_damaged<T>(&self, name: &str) -> Option<T> {
        self.damaged.fetch_add(1, Ordering::Relaxed);
        self.remove(name)
    }

    fn remove<T>(&self, name: &str) -> Option<T> {
        // If the entry cannot be removed, it remains a miss.
        let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
        None
    }

    /// Removes the oldest entries above the size limit, and stale temporary files.
    fn shrink(&self) {
        let Ok(dir) = Dir::read_from(&self.folder) else {
            return;
        };
        let mut entries: Vec<(i64, u64, String)> = Vec::new();
        let (mut temporary, mut newest) = (Vec::new(), 0);
        for entry in dir.flatten() {
            let Ok(name) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let Ok(stat) = rustix::fs::statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW)
            else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode as _) == FileType::RegularFile {
                let size = u64::try_from(stat.st_size).unwrap_or(0).max(BLOCK);
                newest = newest.max(stat.st_mtime);
                if name.starts_with(TEMPORARY) {
                    temporary.push((stat, name.clone()));
                }
                entries.push((stat.st_mtime, size, name));
            }
        }
        for (_, name) in temporary.iter().filter(|(stat, _)| is_stale(stat, newest)) {
            self.remove::<()>(name);
        }
        let mut total: u64 = entries.iter().map(|(_, size, _)| size).sum();
        if total <= self.bounds.most {
            return;
        }
        entries.sort();
        for (_, size, name) in entries {
            if total <= self.bounds.kept {
                return;
            }
            self.remove::<()>(&name);
            total -= size;
        }
    }
}

/// Returns true if a file or folder belongs to this user and others have no access.
fn is_own(stat: &rustix::fs::Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw()
        && Mode::from_raw_mode(stat.st_mode as _).bits() & 0o077 == 0
}

/// Reads an entry. Returns `None` if the file does not belong to this user, is too large, or is not
/// a regular file.
fn read_own(file: File) -> Option<Vec<u8>> {
    let stat = rustix::fs::fstat(&file).ok()?;
    let size = u64::try_from(stat.st_size).ok()?;
    if FileType::from_raw_mode(stat.st_mode as _) != FileType::RegularFile
        || !is_own(&stat)
        || size > MAX_ENTRY
    {
        return None;
    }
    bounded::start(file, MAX_ENTRY).ok()
}

/// Reads an entry of a key. Returns `None` if it is damaged, or belongs to another key. The
/// signature of a copy is not verified, which needs a policy.
fn local_reply(bytes: &[u8], key: &ReplyKey, nonce: &Nonce) -> Option<LocalReply> {
    match copy_of(bytes) {
        Some(sealed) => Some(LocalReply::Copy(sealed.to_vec())),
        None => decode(bytes, key, nonce).map(LocalReply::Own),
    }
}

/// Returns the signed entry in an undamaged copy.
fn copy_of(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|b| *b == b'\n')?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?;
    let sum = head.strip_prefix(COPY)?.strip_prefix(' ')?;
    let sealed = &bytes[end + 1..];
    (sum == hex::encode(&Sha256::digest(sealed))).then_some(sealed)
}

/// Encodes an entry: a line with the checksum of the rest, and one JSON document.
pub(super) fn encode(key: &ReplyKey, nonce: &Nonce, kept: &KeptReply) -> String {
    let read = kept
        .read
        .iter()
        .map(|r| json!([hex::encode(r.path.as_bytes()), r.first.get(), r.last.get()]));
    let body = json!({
        "key": key.to_hex(),
        // Pieces of the text, between which the nonce of the reading run is inserted.
        "text": kept.text.split(nonce.as_str()).collect::<Vec<_>>(),
        "read": read.collect::<Vec<_>>(),
        "lookups": kept.lookups.iter().map(lookup_to_json).collect::<Vec<_>>(),
        "tree": kept.tree,
        "model": kept.model,
    });
    let body = body.to_string();
    format!("{MAGIC} {}\n{body}", hex::encode(&Sha256::digest(&body)))
}

/// Decodes an entry of a key. Returns `None` if it is damaged, or belongs to another key.
pub(super) fn decode(bytes: &[u8], key: &ReplyKey, nonce: &Nonce) -> Option<KeptReply> {
    let (head, body) = std::str::from_utf8(bytes).ok()?.split_once('\n')?;
    let sum = head.strip_prefix(MAGIC)?.strip_prefix(' ')?;
    if sum != hex::encode(&Sha256::digest(body)) {
        return None;
    }
    let body: Value = serde_json::from_str(body).ok()?;
    if body["key"] != key.to_hex().as_str() {
        return None;
    }
    let text: Option<Vec<_>> = body["text"].as_array()?.iter().map(Value::as_str).collect();
    let read: Option<Vec<_>> = body["read"].as_array()?.iter().map(read_of).collect();
    let lookups: Option<Vec<_>> = body["lookups"].as_array()?.iter().map(lookup_of).collect();
    Some(KeptReply {
        text: text?.join(nonce.as_str()),
        read: read?,
        lookups: lookups?,
        tree: body["tree"].as_str().map(str::to_owned),
        model: body["model"].as_str()?.to_owned(),
    })
}

fn lookup_to_json(lookup: &Lookup) -> Value {
    let digest = hex::encode(&lookup.digest);
    match &lookup.subject {
        LookupSubject::Call { name, arguments } => {
            json!({"call": name, "arguments": arguments, "digest": digest})
        }
        LookupSubject::File(path) => {
            json!({"file": hex::encode(path.as_bytes()), "digest": digest})
        }
        LookupSubject::Tree => json!({"digest": digest}),
    }
}

fn lookup_of(value: &Value) -> Option<Lookup> {
    let digest = hex::decode(value["digest"].as_str()?)?.try_into().ok()?;
    let subject = match (value.get("call"), value.get("file")) {
        (Some(name), None) => LookupSubject::Call {
            name: name.as_str()?.to_owned(),
            arguments: value.get("arguments")?.clone(),
        },
        (None, Some(path)) => LookupSubject::File(RepoPath::new(hex::decode(path.as_str()?)?)),
        (None, None) => LookupSubject::Tree,
        (Some(_), Some(_)) => return None,
    };
    Some(Lookup { subject, digest })
}

fn read_of(value: &Value) -> Option<Read> {
    let path = RepoPath::new(hex::decode(value[0].as_str()?)?);
    Some(Read {
        path,
        first: line_of(&value[1])?,
        last: line_of(&value[2])?,
    })
}

/// Parses a line number.
fn line_of(value: &Value) -> Option<LineNo> {
    LineNo::new(u32::try_from(value.as_u64()?).ok()?)
}
