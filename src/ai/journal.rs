//! The answers of an unfinished audit, so that `review tree --resume` repeats no request.
//!
//! A journal is a folder in the user's state folder with an entry for each answer, in the format of
//! the cache ([`super::cache`]): the key covers the whole request, so that a wrong journal can never
//! give an answer to another question. A second kind of entry, the head, says which audit the
//! journal belongs to. It is written before the first request, and each answer when it arrives, by
//! renaming. So a process that is killed loses the requests in flight. A journal is removed when its
//! audit is complete.

use super::ask::Nonce;
use super::cache::{Cache, CacheBounds, KeptReply, ReplyKey};
use crate::env::Env;
use serde_json::{Value, json};
use std::path::Path;

/// The bounds of the heads of all journals, and of the answers of one. An answer is some kilobytes.
const HEADS: CacheBounds = CacheBounds {
    most: 4 << 20,
    kept: 3 << 20,
};
const ANSWERS: CacheBounds = CacheBounds {
    most: 512 << 20,
    kept: 448 << 20,
};
/// Folders below the user's state folder.
const FOLDERS: [&str; 2] = ["claude-reviewer", "audits-1"];
/// Journals that are kept, at most. The oldest are removed first.
const MOST_JOURNALS: usize = 32;
/// Seconds after which an unfinished audit is forgotten.
const MAX_AGE: i64 = 30 * 24 * 3600;

/// What an audit is about. Answers are used again only for an equal state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditState {
    /// The repository.
    pub repository: String,
    /// The shard, such as `1/4`; empty without shards. Each shard has its own journal.
    pub shard: String,
    /// Name and digest of each part of the state, such as `the policy`. The names are shown.
    pub parts: Vec<(&'static str, String)>,
}

impl AuditState {
    /// Returns the key of the head.
    fn key(&self) -> ReplyKey {
        let mut fields = vec!["audit", &self.repository, &self.shard];
        for (name, digest) in &self.parts {
            fields.extend([name, digest.as_str()]);
        }
        ReplyKey::of_parts(&fields)
    }

    /// Returns the names of the parts that another state of the same repository has otherwise.
    fn differences(&self, other: &JournalHead) -> Vec<&'static str> {
        let parts = self.parts.iter();
        let differing = parts.filter(|(name, digest)| other.parts[*name] != digest.as_str());
        differing.map(|(name, _)| *name).collect()
    }
}

/// The stored head of a journal.
struct JournalHead {
    key: ReplyKey,
    repository: String,
    shard: String,
    /// Seconds since 1970.
    begun: i64,
    /// The digests of the parts of the state, by name.
    parts: Value,
}

/// The reason why an audit cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotResumable {
    /// The repository has no unfinished audit.
    Nothing,
    /// The newest unfinished audit, which began at this time in seconds since 1970, is about another
    /// state. The names are those of the parts that differ.
    Differs {
        begun: i64,
        parts: Vec<&'static str>,
    },
}

/// The journal of an audit.
#[derive(Debug)]
pub struct Journal {
    heads: Cache,
    answers: Cache,
    key: ReplyKey,
    /// True if the answers of an earlier run are used.
    is_resumed: bool,
    /// Answers that were in the journal when it was opened.
    earlier: usize,
}

impl Journal {
    /// Opens the journal of a state, or creates it. `None`: the state folder cannot be used, for
    /// example because it is inside of `top`, the worktree.
    pub fn begin(env: &Env, top: Option<&Path>, state: &AuditState, now: i64) -> Option<Self> {
        Self::open(env, top, state, now, false)
    }

    /// Opens the journal of a state, to use its answers.
    ///
    /// # Errors
    ///
    /// The reason why there is none.
    pub fn resume(
        env: &Env,
        top: Option<&Path>,
        state: &AuditState,
        now: i64,
    ) -> Result<Self, NotResumable> {
        let heads = heads(env, top).ok_or(NotResumable::Nothing)?;
        let key = state.key();
        let all = all_heads(&heads);
        if !all.iter().any(|head| head.key == key) {
            let own = all
                .iter()
                .filter(|h| h.repository == state.repository && h.shard == state.shard);
            let newest = own.max_by_key(|h| h.begun).ok_or(NotResumable::Nothing)?;
            return Err(NotResumable::Differs {
                begun: newest.begun,
                parts: state.differences(newest),
            });
        }
        Self::open(env, top, state, now, true).ok_or(NotResumable::Nothing)
    }

    fn open(
        env: &Env,
        top: Option<&Path>,
        state: &AuditState,
        now: i64,
        is_resumed: bool,
    ) -> Option<Self> {
        let heads = heads(env, top)?;
        let key = state.key();
        let home = env.state_home()?;
        let answers = answers_folder(&key);
        let names = [FOLDERS[0], FOLDERS[1], &answers];
        let answers = Cache::open_below(&home, &names, top, ANSWERS)?;
        let journal = Self {
            earlier: answers.keys().len(),
            heads,
            answers,
            key,
            is_resumed,
        };
        if !journal.heads.has(&key) {
            journal.write_head(state, now);
        }
        journal.remove_old(now);
        journal.heads.has(&key).then_some(journal)
    }

    /// Writes the head.
    fn write_head(&self, state: &AuditState, now: i64) {
        let parts = state
            .parts
            .iter()
            .map(|(name, digest)| json!([name, digest]));
        let head = json!({
            "repository": state.repository,
            "shard": state.shard,
            "begun": now,
            "parts": parts.collect::<Vec<_>>(),
        });
        let kept = KeptReply {
            text: head.to_string(),
            read: Vec::new(),
            lookups: Vec::new(),
            tree: None,
            model: String::new(),
        };
        self.heads.put(&self.key, &Nonce::random(), &kept);
    }

    /// Removes the journals that are too old, and the oldest if there are too many.
    fn remove_old(&self, now: i64) {
        let mut others = all_heads(&self.heads);
        others.retain(|head| head.key != self.key);
        others.sort_by_key(|head| std::cmp::Reverse((head.begun, head.key.to_hex())));
        let fresh = others
            .iter()
            .take(MOST_JOURNALS - 1)
            .take_while(|head| now.saturating_sub(head.begun) < MAX_AGE)
            .count();
        for head in &others[fresh..] {
            remove(&self.heads, &head.key);
        }
    }

    /// Returns the answer of an earlier run of the same audit, with the nonce of this run; none if
    /// this run does not resume it.
    pub fn get(&self, key: &ReplyKey, nonce: &Nonce) -> Option<KeptReply> {
        match self.is_resumed {
            true => self.answers.get(key, nonce),
            false => None,
        }
    }

    /// Returns true if [`Self::get`] has an answer, unless that is damaged.
    pub fn has(&self, key: &ReplyKey) -> bool {
        self.is_resumed && self.answers.has(key)
    }

    /// Stores an answer.
    pub fn put(&self, key: &ReplyKey, nonce: &Nonce, kept: &KeptReply) {
        self.answers.put(key, nonce, kept);
    }

    /// Returns the number of answers of earlier runs that this run does not use.
    pub fn unused(&self) -> usize {
        if self.is_resumed { 0 } else { self.earlier }
    }

    /// Returns the number of answers that were damaged.
    pub fn damaged(&self) -> u32 {
        self.answers.damaged()
    }

    /// Removes the journal, because its audit is complete.
    pub fn finish(&self) {
        remove(&self.heads, &self.key);
    }
}

/// Opens the folder of all journals.
fn heads(env: &Env, top: Option<&Path>) -> Option<Cache> {
    Cache::open_below(&env.state_home()?, &FOLDERS, top, HEADS)
}

/// Returns the name of the folder with the answers of a journal.
fn answers_folder(key: &ReplyKey) -> String {
    format!("answers-{}", key.to_hex())
}

/// Removes a journal: first its head, so that it is never read in part.
fn remove(heads: &Cache, key: &ReplyKey) {
    heads.forget(key);
    heads.remove_folder(&answers_folder(key));
}

/// Reads all heads. A damaged one is removed, and its answers are not used.
fn all_heads(heads: &Cache) -> Vec<JournalHead> {
    let nonce = Nonce::random();
    let keys = heads.keys().into_iter();
    let heads = keys.filter_map(|key| {
        let text = heads.get(&key, &nonce)?.text;
        let head: Value = serde_json::from_str(&text).ok()?;
        let parts = head["parts"].as_array()?.iter().filter_map(|part| {
            let name = part[0].as_str()?.to_owned();
            Some((name, part[1].clone()))
        });
        Some(JournalHead {
            key,
            repository: head["repository"].as_str()?.to_owned(),
            shard: head["shard"].as_str()?.to_owned(),
            begun: head["begun"].as_i64()?,
            parts: Value::Object(parts.collect()),
        })
    });
    heads.collect()
}
