//! The recorded batches of a repository, for a person: lists them, and cancels them at the
//! provider.

use super::record::{BatchRecord, RecordShelf, records_of};
use crate::NAME;
use crate::ai::ask::outcome::Until;
use crate::ai::backend::{
    Backend, BatchService, BatchState, BatchView, LostBatch, Pool, takes_batches,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::Policy;
use crate::stop::Stop;
use crate::text::plural;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Selects every batch.
pub(crate) const ALL: &str = "all";
/// Time limit for the requests about one batch.
const TIME: Duration = Duration::from_secs(60);

/// A recorded batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KnownBatch {
    /// ID of the provider; `None` if the run that submitted it did not get one.
    pub(crate) id: Option<String>,
    /// Name of its record, which selects a batch without an ID.
    pub(crate) token: String,
    /// Name of the backend in the policy; empty in records of earlier versions.
    pub(crate) backend: String,
    /// True if only the time and the number of requests show that the ID is the one of this batch.
    pub(crate) is_unproven: bool,
    pub(crate) requests: usize,
    pub(crate) submitted: jiff::Timestamp,
}

/// The result of canceling.
#[derive(Debug, Default)]
pub(crate) struct Cancellation {
    /// One line for each batch except the one of `error`.
    pub(crate) lines: Vec<String>,
    /// The first error. Each further one is a line.
    pub(crate) error: Option<Error>,
}

/// Everything that canceling needs.
struct Canceling<'a> {
    repo: &'a Repo,
    env: &'a Env,
    policy: &'a Policy,
    pool: Pool,
    stop: Stop,
}

/// Returns the recorded batches of a repository, the oldest first.
///
/// # Errors
///
/// The state folder cannot be used.
pub(crate) fn known(repo: &Repo, env: &Env) -> Result<Vec<KnownBatch>> {
    let records = records_of(repo, env)?.into_iter();
    let batches = records.map(|record| KnownBatch {
        submitted: jiff::Timestamp::from_second(record.created).unwrap_or_default(),
        id: record.batch_id,
        token: record.token,
        backend: record.backend,
        is_unproven: record.is_unproven,
        requests: record.requests.len(),
    });
    Ok(batches.collect())
}

/// Cancels the batch with an ID, or all of a repository ([`ALL`]), at their providers. Their
/// records stay, so that the next run uses the results that exist.
///
/// # Errors
///
/// Usage: no recorded batch has the ID. Incomplete: the state folder cannot be used, or no request
/// can be sent. An error about one batch is in the result.
pub(crate) fn cancel(repo: &Repo, env: &Env, policy: &Policy, id: &str) -> Result<Cancellation> {
    let mut records = records_of(repo, env)?;
    records.retain(|r| id == ALL || r.batch_id.as_deref() == Some(id) || r.token == id);
    if records.is_empty() && id != ALL {
        let error = Error::usage(format!("this repository has no batch {id}"));
        return Err(error.hint_person(format!("{NAME} status")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build();
    let runtime = runtime.map_err(|e| Error::incomplete("cannot send requests").caused_by(&e))?;
    let canceling = Canceling {
        repo,
        env,
        policy,
        pool: Pool::default(),
        stop: Stop::default(),
    };
    let mut result = Cancellation::default();
    for record in records {
        match runtime.block_on(canceling.one(record, id)) {
            Ok(line) => result.lines.push(line),
            Err(error) if result.error.is_some() => result.lines.push(error.on_one_line()),
            Err(error) => result.error = Some(error),
        }
    }
    if result.lines.is_empty() && result.error.is_none() {
        result.lines.push("no batch to cancel".to_owned());
    }
    // Do not wait for a pending name lookup.
    runtime.shutdown_background();
    Ok(result)
}

impl Canceling<'_> {
    /// Cancels one batch. Returns the line about it. `wanted` is the selection of the user.
    ///
    /// # Errors
    ///
    /// Incomplete: no backend has its address, its provider cannot be asked or rejected the
    /// request, or it is not known which batch it is.
    async fn one(&self, mut record: BatchRecord, wanted: &str) -> Result<String> {
        let backend = self.backend(&record)?;
        let Some(service) = backend.batch() else {
            return Err(no_backend(&record));
        };
        let limits = Until::new(Instant::now() + TIME, &self.stop);
        if record.batch_id.is_none() {
            let found = self.find(record, &service, &limits).await?;
            record = match found {
                ControlFlow::Continue(found) => found,
                ControlFlow::Break(line) => return Ok(line),
            };
        }
        let id = record.batch_id.clone().unwrap_or_default();
        if record.is_unproven && wanted != id {
            return Err(unproven(&id, backend.name()));
        }
        let canceled = service.cancel(&id, &limits).await;
        let view = canceled.map_err(|failure| {
            let message = &failure.message;
            let error = format!("cannot cancel batch {id} of {}: {message}", backend.name());
            let error = Error::incomplete(error);
            match failure.hint {
                Some(hint) => error.hint(hint),
                None => error.hint_person(format!("{NAME} status --cancel-batch {id}")),
            }
        })?;
        line(&id, backend.name(), &view, record.requests.len())
    }

    /// Finds the ID of a batch that was submitted by a run which ended too early, and records it.
    /// Returns the record, or the line about a batch that was not found. Its record stays, because
    /// the provider may list it later.
    ///
    /// # Errors
    ///
    /// Incomplete: another run uses the records, or the provider does not show which batch it is.
    async fn find(
        &self,
        record: BatchRecord,
        service: &BatchService<'_>,
        limits: &Until<'_>,
    ) -> Result<ControlFlow<String, BatchRecord>> {
        let shelf = RecordShelf::open(self.repo, self.env)?;
        // A run that had the lock until now may have found the ID, or used the batch.
        let mut records = records_of(self.repo, self.env)?.into_iter();
        let Some(mut record) = records.find(|r| r.token == record.token) else {
            let line = format!("another run has used the batch of record {}", record.token);
            return Ok(ControlFlow::Break(line));
        };
        if record.batch_id.is_some() {
            return Ok(ControlFlow::Continue(record));
        }
        let taken = shelf.known_ids(self.repo, self.env)?;
        let found = service.find(&record, &taken, limits).await;
        let found = found.map_err(|failure| {
            let message = &failure.message;
            let error = format!(
                "cannot find the batch {} at its provider: {message}",
                record.token
            );
            Error::incomplete(error)
                .hint_person(format!("{NAME} status --cancel-batch {}", record.token))
        })?;
        let (id, is_unproven) = match found {
            LostBatch::Absent => return Ok(ControlFlow::Break(unlisted(&record))),
            LostBatch::Proven(id) => (id, false),
            LostBatch::Likely(id) => (id, true),
        };
        record.batch_id = Some(id);
        record.is_unproven = is_unproven;
        shelf.store(&record)?;
        Ok(ControlFlow::Continue(record))
    }

    /// Opens the backend of a batch: the one that submitted it, or another with the same address.
    ///
    /// # Errors
    ///
    /// Incomplete: there is none, or it cannot be opened.
    fn backend(&self, record: &BatchRecord) -> Result<Backend> {
        let named = self.policy.backend(&record.backend);
        let others = { self.policy.backends.iter() }.filter(|b| b.name != record.backend);
        let mut reason = None;
        for configured in named.into_iter().chain(others).filter(|b| takes_batches(b)) {
            let top = self.repo.worktree();
            match Backend::open(configured, self.env, top, &self.pool) {
                Ok(backend) => {
                    let endpoint = backend.batch().map(|service| service.endpoint());
                    if endpoint.as_deref() == Some(record.endpoint.as_str()) {
                        return Ok(backend);
                    }
                }
                Err(failure) if configured.name == record.backend => reason = Some(failure),
                Err(_) => {}
            }
        }
        let Some(failure) = reason else {
            return Err(no_backend(record));
        };
        let error = format!(
            "cannot open backend {}: {}",
            record.backend, failure.message
        );
        let error = Error::incomplete(error);
        Err(match failure.hint {
            Some(hint) => error.hint(hint),
            None => error.hint_person(format!("{NAME} doctor --backend {}", record.backend)),
        })
    }
}

/// Returns the line about a batch after its cancellation.
///
/// # Errors
///
/// Incomplete: the provider rejected the batch or does not know it, so nothing was canceled.
fn line(id: &str, backend: &str, view: &BatchView, requests: usize) -> Result<String> {
    let state = match &view.state {
        BatchState::Working { done } => {
            format!("is being canceled, {done} of {requests} requests have a result")
        }
        BatchState::Ended { .. } => "has ended".to_owned(),
        BatchState::Rejected { why } => {
            let error = format!("cannot cancel batch {id} of {backend}: {why}");
            let error = Error::incomplete(error);
            return Err(error.hint_person(format!("{NAME} doctor --backend {backend}")));
        }
    };
    Ok(format!(
        "batch {id} of {backend} {state} (run the same review with --batch again to use its results)"
    ))
}

/// Returns the line about a batch that its provider does not list.
fn unlisted(record: &BatchRecord) -> String {
    let requests = plural(record.requests.len(), "request");
    format!(
        "the provider does not list the batch of {requests}, record {}: nothing was canceled, and \
         the next run with --batch searches for it again",
        record.token
    )
}

/// Returns the error for a batch whose address no backend has.
fn no_backend(record: &BatchRecord) -> Error {
    let id = record.batch_id.as_deref().unwrap_or(&record.token);
    let error = format!(
        "no backend of the policy has the address of batch {id}: {}",
        record.endpoint
    );
    Error::incomplete(error).hint_person(format!("{NAME} policy show"))
}

/// Returns the error for a batch that may be one of another run.
fn unproven(id: &str, backend: &str) -> Error {
    let error = format!(
        "batch {id} of {backend} may be of another run: only its time and its number of requests match"
    );
    Error::incomplete(error).hint_person(format!(
        "cancel it anyway: {NAME} status --cancel-batch {id}"
    ))
}
