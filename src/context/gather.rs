//! Reads the references of a change in order, within the limits of the policy.

use super::keep::Keep;
use super::server::{ServerEnvironment, ToolFailure, ToolServer};
use super::{Allowed, GatheredItem, Reference, Ticket, Tracker, WantedIssue};
use crate::ai::cache::Cache;
use crate::ai::redact;
use crate::env::Env;
use crate::hex;
use crate::policy::{ContextPolicy, Reads};
use crate::request::CacheUse;
use crate::rules::RuleSet;
use crate::stop::Stop;
use crate::untrusted::Inert;
use sha2::{Digest as _, Sha256};
use std::cell::Cell;
use std::path::Path;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// Bytes of the text of one item, and of all items, at most.
const MAX_ITEM: usize = 16 << 10;
const MAX_ALL: usize = 48 << 10;
/// Bytes of a title, at most.
const MAX_TITLE: usize = 200;

/// The references to read, and the rules for it.
#[derive(Debug)]
pub struct GatherJob<'a> {
    pub policy: &'a ContextPolicy,
    /// Rules that find secrets in the texts.
    pub rules: &'a RuleSet,
    pub env: &'a Env,
    /// The top of the repository under review.
    pub top: Option<&'a Path>,
    pub stop: &'a Stop,
    pub cache: CacheUse,
    /// Time of the run in seconds since 1970.
    pub now: i64,
    /// References, best first.
    pub references: &'a [Reference],
    pub allowed: &'a Allowed,
    /// Tracker of the repository's forge, if its issues may be read.
    pub tracker: Option<&'a dyn Tracker>,
}

/// The tickets that were read, and notes about the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    pub items: Vec<GatheredItem>,
    /// References that may be read, but could not be. Escaped.
    pub failed: Vec<String>,
    /// References that were not read on purpose: not allowed, or past the limit. Escaped.
    pub notes: Vec<String>,
}

/// Reads the references of a change. Blocking; must not be called from a runtime.
pub fn gather(job: &GatherJob<'_>) -> Gathered {
    let deadline = Instant::now() + job.policy.timeout;
    let around = ServerEnvironment {
        env: job.env,
        top: job.top,
        deadline,
        stop: job.stop,
    };
    let may_cache = job.cache == CacheUse::Allowed && !job.references.is_empty();
    let cache = may_cache.then(|| Cache::open(job.env, job.top)).flatten();
    let mut reading = Reading {
        job,
        deadline,
        keep: Keep {
            cache,
            now: job.now,
        },
        calls: Cell::new(job.policy.max_calls),
        servers: job
            .policy
            .servers
            .iter()
            .map(|s| ToolServer::new(s, around))
            .collect(),
        runtime: None,
        room: MAX_ALL,
        out: Gathered::default(),
    };
    for reference in job.references {
        reading.read(reference);
    }
    reading.end()
}

/// Restores the texts of a stored review's tickets from the user's cache, if they are still there.
/// `top` is the top of the reviewed repository.
pub fn recall(items: &mut [GatheredItem], env: &Env, top: Option<&Path>) {
    if items.is_empty() {
        return;
    }
    if let Some(cache) = Cache::open(env, top) {
        super::keep::recall(&cache, items, digest);
    }
}

/// The state of [`gather`].
struct Reading<'a> {
    job: &'a GatherJob<'a>,
    deadline: Instant,
    keep: Keep,
    /// Number of calls that are left.
    calls: Cell<u32>,
    servers: Vec<ToolServer<'a>>,
    /// Created for the first server that starts.
    runtime: Option<(Runtime, LocalSet)>,
    /// Bytes that further items may take.
    room: usize,
    out: Gathered,
}

/// The result of reading one reference.
enum ReadOutcome {
    Read {
        ticket: Ticket,
        source: String,
    },
    /// Not reported: no server can read it, or it is not a ticket.
    Nothing,
    Failed(String),
    /// The limit of calls was reached.
    Beyond,
}

impl Reading<'_> {
    fn read(&mut self, reference: &Reference) {
        let name = reference.to_string();
        let Some(from) = self.source_of(reference) else {
            if self.job.policy.required
                && matches!(reference, Reference::Ticket(_))
                && self.is_allowed(reference)
            {
                self.out.failed.push(format!(
                    "{} was not read: no context server is configured",
                    Inert::new(&name)
                ));
            }
            return;
        };
        if let Some(why) = self.job.allowed.refuses(reference) {
            return self.out.notes.push(format!(
                "{} was not read: {}",
                Inert::new(&name),
                Inert::new(why)
            ));
        }
        let kept = self.keep.get(&from, &name);
        if let Some(entry) = kept.clone().filter(|e| self.keep.is_fresh(e)) {
            return match self
                .job
                .allowed
                .refuses_answer(reference, &entry.key, &entry.space)
            {
                Some(why) => self.fail(&name, &why),
                None => self.add(entry.item),
            };
        }
        match self.ask(reference) {
            ReadOutcome::Read { ticket, source } => {
                if let Some(why) =
                    self.job
                        .allowed
                        .refuses_answer(reference, &ticket.key, &ticket.space)
                {
                    return self.fail(&name, &why);
                }
                let mut item = self.item(&name, &ticket, source);
                if let Some(old) =
                    kept.filter(|e| !item.version.is_empty() && e.item.version == item.version)
                {
                    item = old.item;
                }
                self.keep.put(&from, &item, (&ticket.key, &ticket.space));
                self.add(item);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::Failed(why) => self.fail(&name, &why),
            ReadOutcome::Beyond => {
                let text = format!(
                    "{} was not read: max_calls = {}",
                    Inert::new(&name),
                    self.job.policy.max_calls
                );
                self.out.notes.push(text);
            }
        }
    }

    fn is_allowed(&self, reference: &Reference) -> bool {
        self.job.allowed.refuses(reference).is_none()
    }

    /// Returns the name of the server for the cache; `None` if no server can read the reference.
    fn source_of(&self, reference: &Reference) -> Option<String> {
        match reads(reference) {
            Some(reads) => {
                let able = self
                    .servers
                    .iter()
                    .filter(|s| s.may_read(reads))
                    .map(|s| format!("{:?}", s.config));
                let able: Vec<String> = able.collect();
                (!able.is_empty()).then(|| able.join("\n"))
            }
            None => self
                .job
                .tracker
                .map(|t| format!("{} {}", t.home().web, t.home().project)),
        }
    }

    fn ask(&mut self, reference: &Reference) -> ReadOutcome {
        if self.job.stop.signal().is_some() {
            return ReadOutcome::Failed("the run was stopped".to_owned());
        }
        if self.calls.get() == 0 {
            return ReadOutcome::Beyond;
        }
        match reference {
            Reference::Issue { project, number } => self.ask_forge(project.as_deref(), *number),
            Reference::Ticket(key) => self.ask_server(Reads::Tickets, key),
            Reference::Page { id, .. } => self.ask_server(Reads::Pages, id),
        }
    }

    fn ask_forge(&mut self, project: Option<&str>, number: u64) -> ReadOutcome {
        let Some(tracker) = self.job.tracker else {
            return ReadOutcome::Nothing;
        };
        self.calls.set(self.calls.get() - 1);
        let wanted = WantedIssue {
            project,
            number,
            deadline: self.deadline,
            stop: self.job.stop,
        };
        match tracker.read(&wanted) {
            Ok(Some(ticket)) => ReadOutcome::Read {
                ticket,
                source: tracker.home().forge.to_owned(),
            },
            Ok(None) => ReadOutcome::Nothing,
            Err(why) => ReadOutcome::Failed(why),
        }
    }

    fn ask_server(&mut self, reads: Reads, value: &str) -> ReadOutcome {
        if self.runtime.is_none() {
            match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => self.runtime = Some((runtime, LocalSet::new())),
                Err(e) => return ReadOutcome::Failed(format!("no server can be asked: {e}")),
            }
        }
        let Some((runtime, local)) = &self.runtime else {
            return ReadOutcome::Nothing;
        };
        let (servers, calls) = (&mut self.servers, &self.calls);
        local.block_on(runtime, first_answer(servers, reads, value, calls))
    }

    /// Creates an item from a ticket: redacted and truncated.
    fn item(&self, name: &str, ticket: &Ticket, source: String) -> GatheredItem {
        let rules = self.job.rules;
        let mut text = redact::text(rules, ticket.text.as_bytes()).text;
        if text.len() > MAX_ITEM {
            let end = text.floor_char_boundary(MAX_ITEM);
            let rest = text.len() - end;
            text.truncate(end);
            text.push_str(&format!("\n[{rest} more bytes]"));
        }
        let mut title = redact::name(rules, ticket.title.as_bytes());
        title.truncate(title.floor_char_boundary(MAX_TITLE));
        let mut version = redact::name(rules, ticket.version.as_bytes());
        version.truncate(version.floor_char_boundary(64));
        let digest = digest(&title, &text);
        GatheredItem {
            reference: redact::name(rules, name.as_bytes()),
            title,
            source,
            version,
            digest,
            text,
        }
    }

    fn add(&mut self, mut item: GatheredItem) {
        if item.text.len() > self.room {
            let end = item.text.floor_char_boundary(self.room);
            let rest = item.text.len() - end;
            item.text.truncate(end);
            if end == 0 {
                // An empty text would mean that the text is unknown.
                item.text.push_str("[not given]");
            }
            self.out.notes.push(format!(
                "of {}, the last {rest} bytes were not given to a model",
                Inert::new(&item.reference)
            ));
        }
        self.room = self.room.saturating_sub(item.text.len());
        self.out.items.push(item);
    }

    fn fail(&mut self, name: &str, why: &str) {
        let why = self.job.rules.masked(why);
        self.out.failed.push(format!(
            "{} was not read: {}",
            Inert::new(name),
            Inert::new(why)
        ));
    }

    /// Ends the servers, and returns the results.
    fn end(mut self) -> Gathered {
        if let Some((runtime, local)) = self.runtime.take() {
            local.block_on(&runtime, async {
                for server in &mut self.servers {
                    server.end().await;
                }
            });
            drop(local);
            runtime.shutdown_background();
        }
        self.out
    }
}

/// Asks the first server that has the tool.
async fn first_answer(
    servers: &mut [ToolServer<'_>],
    reads: Reads,
    value: &str,
    calls: &Cell<u32>,
) -> ReadOutcome {
    let mut why: Option<String> = None;
    for server in servers.iter_mut().filter(|s| s.may_read(reads)) {
        let call = match server.call_for(reads).await {
            Ok(call) => call,
            Err(failed) => {
                why.get_or_insert(reason_with_name(server, &failed));
                continue;
            }
        };
        return match server.call(&call, value, &mut || take_call(calls)).await {
            Ok(text) => ReadOutcome::Read {
                ticket: Ticket::of_answer(&text),
                source: call.source,
            },
            Err(failed) => ReadOutcome::Failed(reason_with_name(server, &failed)),
        };
    }
    why.map_or(ReadOutcome::Nothing, ReadOutcome::Failed)
}

/// Returns why a server failed, with its name.
fn reason_with_name(server: &ToolServer<'_>, failed: &ToolFailure) -> String {
    format!("server {}: {}", server.config.name, failed.reason)
}

/// Counts a call. Returns false if none is left.
fn take_call(calls: &Cell<u32>) -> bool {
    let left = calls.get();
    calls.set(left.saturating_sub(1));
    left > 0
}

/// Returns the kind of content that a server must read for a reference; `None` if a forge reads it.
fn reads(reference: &Reference) -> Option<Reads> {
    match reference {
        Reference::Ticket(_) => Some(Reads::Tickets),
        Reference::Page { .. } => Some(Reads::Pages),
        Reference::Issue { .. } => None,
    }
}

/// Returns the digest of a title and a text, in hexadecimal digits.
pub(super) fn digest(title: &str, text: &str) -> String {
    let digest = Sha256::new()
        .chain_update(title)
        .chain_update([0])
        .chain_update(text)
        .finalize();
    hex::encode(&digest)
}
