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
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

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
/// Start of the name of the folder with the answers of a journal.
const ANSWERS_OF: &str = "answers-";
/// Journals that are kept, at most. The oldest are removed first.
const MOST_JOURNALS: usize = 32;
/// Seconds after which an unfinished audit is forgotten.
const MAX_AGE: i64 = 30 * 24 * 3600;

/// The state that an audit is about. Answers are used again only for an equal state.
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
    /// state. `parts` names the parts that differ.
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
    /// Costs by backend.
    costs: Mutex<JournalCosts>,
}

/// The costs of an audit in USD, by backend.
#[derive(Debug, Default)]
struct JournalCosts {
    /// Of the runs before this one.
    earlier: BTreeMap<String, f64>,
    /// Of all runs, as stored.
    all: BTreeMap<String, f64>,
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
    /// Returns the reason if there is no such journal.
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
        if !heads.has(&key) {
            write_head(&heads, (&key, state), now);
        }
        if !heads.has(&key) {
            return None;
        }
        let home = env.state_home()?;
        let folder = answers_folder(&key);
        let names = [FOLDERS[0], FOLDERS[1], &folder];
        let answers = Cache::open_below(&home, &names, top, ANSWERS)?;
        remove_old(&heads, &key, now);
        let costs_key = costs_key();
        let earlier = answers.keys().into_iter().filter(|k| *k != costs_key);
        let costs = stored_costs(&answers);
        Some(Self {
            earlier: earlier.count(),
            costs: Mutex::new(JournalCosts {
                earlier: costs.clone(),
                all: costs,
            }),
            heads,
            answers,
            key,
            is_resumed,
        })
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

    /// Adds the cost of a request, and stores the sum of all runs. Two runs of one audit at the same
    /// time overwrite each other's sum.
    pub fn add_cost(&self, backend: &str, usd: f64) {
        let mut costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        *costs.all.entry(backend.to_owned()).or_default() += usd;
        let text = json!(costs.all).to_string();
        self.answers
            .put(&costs_key(), &Nonce::random(), &plain(text));
    }

    /// Returns the cost of the runs that this one continues, by backend. Empty if this run does not
    /// resume them, or an earlier version wrote the journal.
    pub fn earlier_costs(&self) -> BTreeMap<String, f64> {
        let costs = self.costs.lock().unwrap_or_else(PoisonError::into_inner);
        match self.is_resumed {
            true => costs.earlier.clone(),
            false => BTreeMap::new(),
        }
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

/// Writes the head of a journal.
fn write_head(heads: &Cache, (key, state): (&ReplyKey, &AuditState), now: i64) {
    let parts = state.parts.iter();
    let parts: Vec<Value> = parts.map(|(name, digest)| json!([name, digest])).collect();
    let head = json!({
        "repository": state.repository,
        "shard": state.shard,
        "begun": now,
        "parts": parts,
    });
    heads.put(key, &Nonce::random(), &plain(head.to_string()));
}

/// Returns an entry that is not an answer.
fn plain(text: String) -> KeptReply {
    KeptReply {
        text,
        read: Vec::new(),
        lookups: Vec::new(),
        tree: None,
        model: String::new(),
    }
}

/// Returns the key of the costs among the answers.
fn costs_key() -> ReplyKey {
    ReplyKey::of_parts(&["costs of an audit"])
}

/// Returns the stored costs of an audit; empty if there are none.
fn stored_costs(answers: &Cache) -> BTreeMap<String, f64> {
    let stored = answers.get(&costs_key(), &Nonce::random());
    let costs = stored.and_then(|kept| serde_json::from_str(&kept.text).ok());
    let mut costs: BTreeMap<String, f64> = costs.unwrap_or_default();
    costs.retain(|_, usd| usd.is_finite() && *usd >= 0.0);
    costs
}

/// Removes the journals that are too old, the oldest if there are too many, and answers without a
/// head. Keeps the journal `own`.
fn remove_old(heads: &Cache, own: &ReplyKey, now: i64) {
    let mut others = all_heads(heads);
    others.retain(|head| head.key != *own);
    others.sort_by_key(|head| std::cmp::Reverse((head.begun, head.key.to_hex())));
    let fresh = others
        .iter()
        .take(MOST_JOURNALS - 1)
        .take_while(|head| now.saturating_sub(head.begun) < MAX_AGE)
        .count();
    for head in &others[fresh..] {
        remove(heads, &head.key);
    }
    // A process that was killed while it removed a journal leaves its answers.
    for folder in heads.folders() {
        let key = folder.strip_prefix(ANSWERS_OF).and_then(ReplyKey::from_hex);
        if key.is_none_or(|key| !heads.has(&key)) {
            heads.remove_folder(&folder);
        }
    }
}

/// Opens the folder of all journals.
fn heads(env: &Env, top: Option<&Path>) -> Option<Cache> {
    Cache::open_below(&env.state_home()?, &FOLDERS, top, HEADS)
}

/// Returns the name of the folder with the answers of a journal.
fn answers_folder(key: &ReplyKey) -> String {
    format!("{ANSWERS_OF}{}", key.to_hex())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use std::path::PathBuf;

    /// A home folder, and the environment of a user with it.
    fn home() -> (tempfile::TempDir, Env) {
        let home = tempfile::tempdir().unwrap();
        let env = Env::from_pairs(PathBuf::from("/"), [("HOME", home.path())]);
        (home, env)
    }

    fn state(files: &str, policy: &str) -> AuditState {
        AuditState {
            repository: "/repo/.git".to_owned(),
            shard: String::new(),
            parts: vec![
                ("the files", files.to_owned()),
                ("the policy", policy.to_owned()),
            ],
        }
    }

    fn answer(text: &str) -> KeptReply {
        KeptReply {
            text: text.to_owned(),
            read: Vec::new(),
            lookups: Vec::new(),
            tree: None,
            model: "stub".to_owned(),
        }
    }

    #[test]
    fn answers_are_read_only_by_the_audit_that_resumes_theirs() {
        let (_home, env) = home();
        let (key, nonce) = (ReplyKey::of_parts(&["question"]), Nonce::new([7; 16]));
        let first = Journal::begin(&env, None, &state("a", "p"), 100).unwrap();
        assert_eq!(first.unused(), 0);
        first.put(&key, &nonce, &answer("fine"));
        let anew = Journal::begin(&env, None, &state("a", "p"), 200).unwrap();
        assert_eq!((anew.get(&key, &nonce), anew.has(&key)), (None, false));
        assert_eq!(anew.unused(), 1);
        let again = Journal::resume(&env, None, &state("a", "p"), 300).unwrap();
        assert_eq!(again.get(&key, &nonce), Some(answer("fine")));
        assert!(again.has(&key) && again.unused() == 0);
        again.finish();
        assert_eq!(
            Journal::resume(&env, None, &state("a", "p"), 400).err(),
            Some(NotResumable::Nothing)
        );
    }

    #[test]
    fn a_resumed_audit_knows_the_costs_of_all_its_runs_and_others_do_not() {
        let (_home, env) = home();
        let cost = |journal: &Journal| journal.earlier_costs().get("m").copied();
        let first = Journal::begin(&env, None, &state("a", "p"), 100).unwrap();
        first.add_cost("m", 1.0);
        first.add_cost("m", 0.5);
        assert_eq!(cost(&first), None);
        let second = Journal::resume(&env, None, &state("a", "p"), 200).unwrap();
        assert_eq!(cost(&second), Some(1.5));
        // The sum is not an answer.
        assert_eq!(second.earlier, 0);
        second.add_cost("m", 0.25);
        let third = Journal::resume(&env, None, &state("a", "p"), 300).unwrap();
        assert_eq!(cost(&third), Some(1.75));
        let other = Journal::begin(&env, None, &state("b", "p"), 300).unwrap();
        assert_eq!(cost(&other), None);
        third.finish();
        Journal::begin(&env, None, &state("a", "p"), 400).unwrap();
        let anew = Journal::resume(&env, None, &state("a", "p"), 500).unwrap();
        assert_eq!(cost(&anew), None);
    }

    #[test]
    fn another_state_is_an_error_that_names_the_differences_from_the_newest_audit() {
        let (_home, env) = home();
        Journal::begin(&env, None, &state("a", "p"), 100).unwrap();
        Journal::begin(&env, None, &state("b", "p"), 200).unwrap();
        let resume = |state: &AuditState| Journal::resume(&env, None, state, 300).err();
        assert_eq!(
            resume(&state("c", "q")),
            Some(NotResumable::Differs {
                begun: 200,
                parts: vec!["the files", "the policy"],
            })
        );
        assert_eq!(resume(&state("a", "p")), None);
        for other in [
            AuditState {
                repository: "/other/.git".to_owned(),
                ..state("a", "p")
            },
            AuditState {
                shard: "1/2".to_owned(),
                ..state("a", "p")
            },
        ] {
            assert_eq!(resume(&other), Some(NotResumable::Nothing));
        }
    }

    #[test]
    fn old_journals_are_removed_with_their_answers() {
        let (home, env) = home();
        let folder: PathBuf = home.path().join(".local/state/claude-reviewer/audits-1");
        let count = || std::fs::read_dir(&folder).unwrap().count();
        for n in 0..MOST_JOURNALS as i64 + 5 {
            let state = state(&n.to_string(), "p");
            let journal = Journal::begin(&env, None, &state, n).unwrap();
            journal.put(&journal.key, &Nonce::random(), &answer("x"));
        }
        assert_eq!(count(), 2 * MOST_JOURNALS);
        let oldest = Journal::resume(&env, None, &state("0", "p"), 1000);
        assert!(matches!(oldest, Err(NotResumable::Differs { .. })));
        Journal::begin(&env, None, &state("new", "p"), MAX_AGE + 1000).unwrap();
        assert_eq!(count(), 2);
        // Answers without a head.
        std::fs::create_dir(folder.join("answers-00")).unwrap();
        Journal::begin(&env, None, &state("new", "p"), MAX_AGE + 1000).unwrap();
        assert_eq!(count(), 2);
    }

    #[test]
    fn a_journal_inside_of_the_worktree_is_not_used() {
        let (home, env) = home();
        let journal = Journal::begin(&env, Some(home.path()), &state("a", "p"), 1);
        assert!(journal.is_none());
    }
}
