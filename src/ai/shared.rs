//! A cache of answers that several machines share, behind the user's own cache.
//!
//! A store is slow, hostile or gone without any effect on the verdict: an answer counts only if a
//! signer of the policy signed it for exactly this question (`entry`), and a store that fails once
//! is not asked again in the run (`meter`). A run with a signing key stores its answers (`writes`),
//! and shows by a lease that it is asking, so that another run waits instead of paying again
//! (`lease`).

pub mod entry;
mod lease;
mod meter;
mod signing;
mod store;
pub mod upkeep;
mod writes;

pub use lease::{HeldLease, Turn, WaitLimits};
pub use signing::{EntryKey, EntrySigner};

use self::entry::{EntryDefect, EntryTerms};
use self::lease::LeaseBudget;
use self::meter::Meter;
use self::store::{BlobRead, REPLIES, Store, StoreFailure};
use self::writes::{QueuedWrite, WriteQueue};
use super::ask::Nonce;
use super::cache::{self, KeptReply, ReplyKey};
use crate::env::Env;
use crate::http::key::print_secret;
use crate::policy::CachePolicy;
use crate::stop::Stop;
use crate::text::shortened;
use crate::untrusted::Inert;
use jiff::Timestamp;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// Time limit of the command that prints the signing key.
const KEY_TIME: Duration = Duration::from_secs(10);
/// Characters of the reason of a failure, at most.
const MAX_REASON: usize = 200;

/// The shared cache of a run.
#[derive(Debug)]
pub struct SharedCache<'a> {
    store: Store,
    terms: EntryTerms,
    writer: Option<Writer>,
    /// Random name of the run in leases.
    holder: String,
    stop: &'a Stop,
    state: RefCell<CacheState>,
    writes: WriteQueue,
    /// The same store, for the queued writes: with a connection of its own, no read waits for them.
    write_store: Store,
}

/// The part of a cache that stores answers.
#[derive(Debug)]
struct Writer {
    command: String,
    env: Env,
    top: Option<PathBuf>,
    /// The key, once it was needed; `None` if no key can be used.
    key: OnceCell<Option<EntryKey>>,
}

/// A verified answer of the store.
#[derive(Debug)]
pub struct SharedReply {
    pub kept: KeptReply,
    /// The signed entry, to be verified again whenever a copy of it is read.
    pub sealed: Vec<u8>,
}

/// Whether an operation on the store delays the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationCost {
    /// It does.
    Counted,
    /// The run waits anyway: for an answer of another run, which has a bound of its own, or for a
    /// request of its own.
    OfTheWait,
    /// The run does not wait for it. It has the whole time limit for itself.
    Beside,
}

/// State of the store in a run.
#[derive(Debug)]
struct CacheState {
    meter: Meter,
    leases: LeaseBudget,
    /// Why the store is not asked any more.
    off: Option<String>,
    /// Why nothing is stored.
    unwritten: Option<String>,
    /// Defects by the key of the question: an entry can be read several times.
    defects: BTreeMap<[u8; 32], EntryDefect>,
}

impl<'a> SharedCache<'a> {
    /// Opens the shared cache of a policy; connects to nothing. `top` is the root of the tree under
    /// review: no program of it is run. Returns `None` if the policy has no shared cache.
    ///
    /// # Errors
    ///
    /// A note that says why the cache cannot be used.
    pub fn open(
        policy: &CachePolicy,
        env: &Env,
        top: Option<&Path>,
        stop: &'a Stop,
    ) -> Option<Result<Self, String>> {
        let url = policy.url.as_deref()?;
        Some(Self::of(url, policy, env, top, stop).map_err(|why| note(&[why])))
    }

    /// Opens a store with the terms of a policy.
    fn of(
        url: &str,
        policy: &CachePolicy,
        env: &Env,
        top: Option<&Path>,
        stop: &'a Stop,
    ) -> Result<Self, String> {
        let terms = terms_of(policy);
        if terms.signers.is_empty() {
            return Err(
                "not used: [cache] signers is empty, so no stored answer counts".to_owned(),
            );
        }
        let store = Store::open(url, env, policy.max_age)?;
        let write_store = Store::open(url, env, policy.max_age)?;
        let (writer, unwritten) = match (policy.write, &policy.sign_key_command) {
            (true, Some(command)) => (Some(command.clone()), None),
            (true, None) => {
                let why = "nothing is stored: [cache] write needs sign_key_command";
                (None, Some(why.to_owned()))
            }
            (false, _) => (None, None),
        };
        Ok(Self {
            store,
            terms,
            writer: writer.map(|command| Writer {
                command,
                env: env.clone(),
                top: top.map(Path::to_owned),
                key: OnceCell::new(),
            }),
            holder: entry::random_holder(),
            stop,
            state: RefCell::new(CacheState {
                meter: Meter::new(policy.timeout),
                leases: LeaseBudget::default(),
                off: None,
                unwritten,
                defects: BTreeMap::new(),
            }),
            writes: WriteQueue::default(),
            write_store,
        })
    }

    /// Returns the verified answer to a question, with the nonce of this run. Every defect and
    /// every failure is a miss.
    pub async fn get(&self, key: &ReplyKey, nonce: &Nonce) -> Option<SharedReply> {
        self.get_at_cost(key, nonce, OperationCost::Counted).await
    }

    /// Same as [`Self::get`], with the way in which its time counts.
    async fn get_at_cost(
        &self,
        key: &ReplyKey,
        nonce: &Nonce,
        cost: OperationCost,
    ) -> Option<SharedReply> {
        let name = reply_name(key);
        let read = self.store.get(&name, self.terms.max_bytes);
        let bytes = match self.limited(cost, read).await? {
            BlobRead::Missing => return None,
            BlobRead::TooLarge => Err(EntryDefect::TooLarge),
            BlobRead::Unreadable => Err(EntryDefect::Unreadable),
            BlobRead::Content(bytes) => Ok(bytes),
        };
        let verified = bytes.and_then(|sealed| {
            let kept = self.verified(&sealed, key, nonce)?;
            Ok(SharedReply { kept, sealed })
        });
        verified
            .map_err(|defect| {
                let mut state = self.state.borrow_mut();
                state.defects.insert(*key.as_bytes(), defect);
            })
            .ok()
    }

    /// Returns the answer of a copy of an entry that this machine made earlier, by the terms of
    /// this run: its signer may have been removed, and it may be too old now. Asks no store.
    pub fn open_copy(&self, sealed: &[u8], key: &ReplyKey, nonce: &Nonce) -> Option<KeptReply> {
        self.verified(sealed, key, nonce).ok()
    }

    /// Records that the run accepted an answer of the store, which saved a request.
    pub fn accept(&self) {
        self.state.borrow_mut().meter.accept(Instant::now());
    }

    /// Verifies and decodes an entry.
    fn verified(
        &self,
        sealed: &[u8],
        key: &ReplyKey,
        nonce: &Nonce,
    ) -> Result<KeptReply, EntryDefect> {
        let entry = entry::open(sealed, key, &self.terms, now())?;
        cache::decode(entry.reply.as_bytes(), key, nonce)
            // The report names the model of the reply, which must be the one that was signed.
            .filter(|kept| entry.is_of_model(&kept.model))
            .ok_or(EntryDefect::Malformed)
    }

    /// Returns true if this run stores answers, as far as it is known without the signing key.
    pub fn stores_answers(&self) -> bool {
        self.writer.is_some() && self.is_on()
    }

    /// Signs an answer and queues it for the store, if this run stores answers. Failures become a
    /// note.
    pub async fn put(&self, key: &ReplyKey, nonce: &Nonce, kept: &KeptReply) {
        let Some(by) = self.signing_key().await else {
            return;
        };
        let reply = cache::encode(key, nonce, kept);
        let sealed = entry::seal(key, &kept.model, &reply, now(), by);
        if sealed.len() > self.terms.max_bytes {
            return;
        }
        self.writes.add(QueuedWrite::Put {
            name: reply_name(key),
            sealed,
        });
    }

    /// Returns the signing key, if this run stores answers. The first call runs its command.
    async fn signing_key(&self) -> Option<&EntryKey> {
        let writer = self.writer.as_ref().filter(|_| self.is_on())?;
        let key = writer.key.get_or_init(|| async {
            let key = writer.read_key(self.stop).await.and_then(|key| {
                let is_listed = self.terms.signers.iter().any(|s| s.key == key.public());
                match is_listed {
                    true => Ok(key),
                    false => Err(
                        "the key of sign_key_command is not that of a signer in [cache] signers"
                            .to_owned(),
                    ),
                }
            });
            key.map_err(|why| {
                self.state.borrow_mut().unwritten = Some(format!("nothing is stored: {why}"));
            })
            .ok()
        });
        key.await.as_ref()
    }

    /// Returns true while the store is asked.
    pub fn is_on(&self) -> bool {
        self.state.borrow().off.is_none()
    }

    /// Runs an operation on the store within the budget of the run. The first failure, and the end
    /// of the budget, turn the store off.
    async fn limited<T>(
        &self,
        cost: OperationCost,
        work: impl Future<Output = Result<T, StoreFailure>>,
    ) -> Option<T> {
        if !self.is_on() {
            return None;
        }
        let left = match cost {
            OperationCost::Counted | OperationCost::OfTheWait => {
                self.state.borrow().meter.left(Instant::now())
            }
            OperationCost::Beside => self.state.borrow().meter.limit(),
        };
        let _open = (cost == OperationCost::Counted).then(|| OpenOperation::start(&self.state));
        let why = match timeout(left, work).await {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(why)) => why,
            Err(_) => "it is too slow (timeout)".to_owned(),
        };
        self.store.give_up();
        self.write_store.give_up();
        let why = shortened(Inert::new(why).as_str(), MAX_REASON).into_owned();
        self.state
            .borrow_mut()
            .off
            .get_or_insert(format!("not asked any more in this review: {why}"));
        None
    }

    /// Returns the note of a run about its shared cache, if there is something to say.
    pub fn remark(&self) -> Option<String> {
        let state = self.state.borrow();
        let mut parts = Vec::new();
        parts.extend(state.off.clone());
        parts.extend(state.unwritten.clone());
        let unstored = self.writes.unstored();
        if unstored > 0 && state.off.is_none() && self.stop.signal().is_none() {
            parts.push(format!(
                "{unstored} answers are not stored: the store is too slow"
            ));
        }
        if !state.defects.is_empty() {
            parts.push(ignored(state.defects.values()));
        }
        (!parts.is_empty()).then(|| note(&parts))
    }
}

impl Writer {
    /// Runs the command that prints the key.
    async fn read_key(&self, stop: &Stop) -> Result<EntryKey, String> {
        let deadline = Instant::now() + KEY_TIME;
        let top = self.top.as_deref();
        let printed = print_secret(
            "sign_key_command",
            &self.command,
            &self.env,
            top,
            deadline,
            stop,
        )
        .await
        .map_err(|failure| failure.message)?;
        EntryKey::parse(&printed).map_err(|why| format!("sign_key_command {why}"))
    }
}

/// Ends an operation on the store, also if its caller was cancelled.
struct OpenOperation<'s>(&'s RefCell<CacheState>);

impl<'s> OpenOperation<'s> {
    /// Starts an operation.
    fn start(state: &'s RefCell<CacheState>) -> Self {
        state.borrow_mut().meter.start(Instant::now());
        Self(state)
    }
}

impl Drop for OpenOperation<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().meter.end(Instant::now());
    }
}

/// Returns what a policy accepts.
fn terms_of(policy: &CachePolicy) -> EntryTerms {
    EntryTerms {
        signers: policy
            .signers
            .iter()
            .filter_map(|line| EntrySigner::parse(line))
            .collect(),
        max_age: policy.max_age,
        max_bytes: policy.max_entry_kib as usize * 1024,
    }
}

/// Returns the name of an answer in a store.
fn reply_name(key: &ReplyKey) -> String {
    format!("{REPLIES}/{}", key.to_hex())
}

/// Describes the entries that do not count.
fn ignored<'d>(defects: impl Iterator<Item = &'d EntryDefect>) -> String {
    let mut counts: BTreeMap<EntryDefect, usize> = BTreeMap::new();
    for defect in defects {
        *counts.entry(*defect).or_default() += 1;
    }
    let total: usize = counts.values().sum();
    let kinds: Vec<_> = counts
        .iter()
        .map(|(defect, count)| format!("{count} {}", defect.about()))
        .collect();
    format!("ignored {total} stored answers: {}", kinds.join(", "))
}

/// Joins the parts of a note.
fn note(parts: &[String]) -> String {
    format!("shared cache: {}", parts.join("; "))
}

/// Returns the time in seconds since 1970.
fn now() -> i64 {
    Timestamp::now().as_second()
}
