//! Submits the waiting requests of a run as batches, polls them until they end, and hands out
//! their results.
//!
//! The driver runs beside the questions on the same thread. It submits when every open question
//! waits for a batch or for the budget: then nothing can be added any more. A request that a
//! recorded batch contains is not submitted again, whichever run submitted it.

mod lost;

use super::queue::{BatchQueue, BatchedAnswer, QueuedRequest};
use super::record::{BatchRecord, RecordShelf};
use crate::NAME;
use crate::ai::ask::outcome::{Cause, Failure, Until};
use crate::ai::backend::{BatchService, BatchState, LostBatch, is_ambiguous};
use crate::env::Env;
use crate::error::Error;
use crate::git::Repo;
use crate::progress::Progress;
use crate::stop::Stop;
use crate::untrusted::Inert;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::time::{sleep, sleep_until};

/// Interval at which the driver checks whether all questions wait.
const TICK: Duration = Duration::from_millis(20);
/// Time after which waiting requests are submitted although a question is not waiting: it may wait
/// for something that takes as long as the batch.
const GRACE: Duration = Duration::from_secs(30);
/// Time limit of one submission, with its file.
const SUBMISSION: Duration = Duration::from_secs(600);
/// Longest time between two checks of the queue.
const IDLE: Duration = Duration::from_secs(3600);

/// The inputs of a driver.
#[derive(Clone, Copy)]
pub(crate) struct BatchJob<'a> {
    pub(crate) repo: Option<&'a Repo>,
    pub(crate) env: &'a Env,
    pub(crate) progress: &'a dyn Progress,
    pub(crate) stop: &'a Stop,
    pub(crate) deadline: Instant,
}

/// The batches of a run.
pub(crate) struct BatchDriver<'a> {
    job: BatchJob<'a>,
    /// Nonce of the run.
    nonce: String,
    queue: BatchQueue,
    /// The records, once they were needed.
    shelf: RefCell<Option<RecordShelf>>,
    flights: RefCell<Vec<Rc<Flight>>>,
    /// Positions of recorded requests that no question has taken yet, by endpoint and digest.
    recorded: RefCell<RecordedRequests>,
    is_submitting: Cell<bool>,
    remarks: RefCell<Vec<String>>,
    /// Never set: a submission that has begun is finished, so that its ID can be recorded.
    unstopped: Stop,
}

/// Positions of recorded requests, by endpoint and digest: the batch, and the request in it.
type RecordedRequests = HashMap<(String, String), Vec<(usize, usize)>>;

/// The backends that can be asked in batches, by name.
pub(crate) type BatchServices<'a> = BTreeMap<&'a str, BatchService<'a>>;

/// How far a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FlightPhase {
    /// Recorded by an earlier run, and not needed yet.
    Recorded,
    /// The provider works on it.
    Working,
    /// Its results were read, or it has none.
    Over,
    /// Its state could not be read. A later run tries again.
    Lost,
}

/// A batch, and the questions that wait for it.
struct Flight {
    /// Name of the backend; empty until a question needs the batch.
    backend: RefCell<String>,
    record: RefCell<BatchRecord>,
    waiting: RefCell<HashMap<String, oneshot::Sender<BatchedAnswer>>>,
    /// Results that no question has taken yet.
    left: RefCell<HashMap<String, BatchedAnswer>>,
    /// Reason why it is not known whether the batch exists.
    unresolved: RefCell<Option<Failure>>,
    phase: Cell<FlightPhase>,
    polls: Cell<u32>,
    done: Cell<u64>,
    due: Cell<Instant>,
}

impl Flight {
    fn new(record: BatchRecord, phase: FlightPhase) -> Self {
        Self {
            backend: RefCell::default(),
            record: RefCell::new(record),
            waiting: RefCell::default(),
            left: RefCell::default(),
            unresolved: RefCell::default(),
            phase: Cell::new(phase),
            polls: Cell::new(0),
            done: Cell::new(0),
            due: Cell::new(Instant::now()),
        }
    }

    /// Returns `batch ID of BACKEND`.
    fn name(&self) -> String {
        let record = self.record.borrow();
        let id = record.batch_id.as_deref().unwrap_or("without an ID");
        format!("batch {id} of {}", self.backend.borrow())
    }

    /// Returns the number of questions that wait for the batch.
    fn waiting(&self) -> usize {
        match self.phase.get() {
            FlightPhase::Working => {
                let waiting = self.waiting.borrow();
                waiting.values().filter(|a| !a.is_closed()).count()
            }
            _ => 0,
        }
    }

    /// Ends all questions that wait for the batch.
    fn fail(&self, failure: &Failure, phase: FlightPhase) {
        self.phase.set(phase);
        for (_, answer) in self.waiting.borrow_mut().drain() {
            // A question that has ended does not need the answer.
            let _ = answer.send(Err(failure.clone()));
        }
    }

    /// Hands out the results. Questions without one fail.
    fn deliver(&self, mut answers: HashMap<String, BatchedAnswer>) {
        self.phase.set(FlightPhase::Over);
        for (id, question) in self.waiting.borrow_mut().drain() {
            let answer = answers.remove(&id).unwrap_or_else(|| {
                let message = "the batch has no result for the request";
                Err(Failure::new(Cause::Malformed, message))
            });
            let _ = question.send(answer);
        }
        *self.left.borrow_mut() = answers;
    }
}

impl<'a> BatchDriver<'a> {
    /// Creates the driver of a run. Reads and sends nothing before the first request.
    pub(crate) fn new(job: BatchJob<'a>, nonce: &str) -> Self {
        Self {
            job,
            nonce: nonce.to_owned(),
            queue: BatchQueue::default(),
            shelf: RefCell::default(),
            flights: RefCell::default(),
            recorded: RefCell::default(),
            is_submitting: Cell::new(false),
            remarks: RefCell::default(),
            unstopped: Stop::default(),
        }
    }

    /// Returns the queue of the requests.
    pub(crate) fn queue(&self) -> &BatchQueue {
        &self.queue
    }

    /// Returns true while a submission is not recorded yet.
    pub(crate) fn is_submitting(&self) -> bool {
        self.is_submitting.get()
    }

    /// Submits, polls and hands out until it is dropped. `open` returns the number of questions
    /// that are not answered and do not wait for the budget.
    pub(crate) async fn drive(
        &self,
        services: &BatchServices<'_>,
        open: &dyn Fn() -> usize,
    ) -> Infallible {
        let (mut adopted, mut changed) = (0, Instant::now());
        loop {
            let added = self.queue.added();
            if added != adopted {
                (adopted, changed) = (added, Instant::now());
                self.adopt(services).await;
            }
            let queued = self.queue.len();
            let is_settled = self.queue.added() == adopted && queued + self.in_flight() >= open();
            if queued > 0 && (is_settled || changed.elapsed() > GRACE) {
                self.submit_all(services).await;
            }
            self.poll(services).await;
            self.pause().await;
        }
    }

    /// Waits for the next poll of a batch, for a new request, or for the next check of the queue.
    async fn pause(&self) {
        let now = Instant::now();
        let flights = self.flights();
        let working = flights
            .iter()
            .filter(|f| f.phase.get() == FlightPhase::Working);
        let due = working.map(|f| f.due.get()).min().unwrap_or(now + IDLE);
        if self.queue.len() > 0 {
            sleep_until((now + TICK).min(due).into()).await;
        } else {
            tokio::select! {
                () = self.queue.changed() => {}
                () = sleep_until(due.into()) => {}
            }
        }
    }

    fn flights(&self) -> Vec<Rc<Flight>> {
        self.flights.borrow().clone()
    }

    /// Returns the number of questions that wait for submitted batches.
    fn in_flight(&self) -> usize {
        self.flights().iter().map(|f| f.waiting()).sum()
    }

    /// Connects the waiting requests that a recorded batch contains with that batch.
    async fn adopt(&self, services: &BatchServices<'_>) {
        if let Err(failure) = self.load() {
            for queued in self.queue.take() {
                let _ = queued.answer.send(Err(failure.clone()));
            }
            return;
        }
        let mut new = Vec::new();
        for queued in self.queue.take() {
            let Some(service) = services.get(queued.request.backend.as_str()) else {
                new.push(queued);
                continue;
            };
            match self.recorded(&queued, service).await {
                Ok(Some((flight, id))) => take_up(&flight, id, queued),
                Ok(None) => new.push(queued),
                Err(failure) => drop(queued.answer.send(Err(failure))),
            }
        }
        self.queue.put_back(new);
    }

    /// Reads the records, once.
    ///
    /// # Errors
    ///
    /// `Setup`: they cannot be used.
    fn load(&self) -> Result<(), Failure> {
        if self.shelf.borrow().is_some() {
            return Ok(());
        }
        let Some(repo) = self.job.repo else {
            let message = "a batch needs a repository, whose state folder records it";
            return Err(Failure::new(Cause::Setup, message));
        };
        let shelf = RecordShelf::open(repo, self.job.env).map_err(|e| unrecorded(&e))?;
        let records = shelf.records().map_err(|e| unrecorded(&e))?;
        let mut index = self.recorded.borrow_mut();
        for (i, record) in records.iter().enumerate() {
            for (n, request) in record.requests.iter().enumerate().rev() {
                let key = (record.endpoint.clone(), request.digest.clone());
                index.entry(key).or_default().push((i, n));
            }
        }
        let flights = records
            .into_iter()
            .map(|record| Rc::new(Flight::new(record, FlightPhase::Recorded)));
        self.flights.borrow_mut().extend(flights);
        *self.shelf.borrow_mut() = Some(shelf);
        Ok(())
    }

    /// Returns the recorded batch that contains a request, and the ID of the request in it.
    ///
    /// # Errors
    ///
    /// The provider could not be asked whether the batch was submitted.
    async fn recorded(
        &self,
        queued: &QueuedRequest,
        service: &BatchService<'_>,
    ) -> Result<Option<(Rc<Flight>, String)>, Failure> {
        let key = (service.endpoint(), queued.request.digest.clone());
        loop {
            let found = self.recorded.borrow_mut().get_mut(&key).and_then(Vec::pop);
            let Some((flight, request)) = found else {
                return Ok(None);
            };
            let Some(flight) = self.flights.borrow().get(flight).cloned() else {
                return Ok(None);
            };
            queued
                .request
                .backend
                .clone_into(&mut flight.backend.borrow_mut());
            if self.resolve(&flight, service).await? {
                let id = flight.record.borrow().requests[request].custom_id.clone();
                return Ok(Some((flight, id)));
            }
        }
    }

    /// Submits all waiting requests.
    async fn submit_all(&self, services: &BatchServices<'_>) {
        let mut by_backend: BTreeMap<String, Vec<QueuedRequest>> = BTreeMap::new();
        for queued in self.queue.take() {
            let backend = queued.request.backend.clone();
            by_backend.entry(backend).or_default().push(queued);
        }
        for (backend, mut requests) in by_backend {
            // Without an interface, dropping the requests ends their questions.
            let Some(service) = services.get(backend.as_str()) else {
                continue;
            };
            loop {
                // A run that has ended must not pay for further batches.
                requests.retain(|queued| !queued.answer.is_closed());
                if requests.is_empty() {
                    break;
                }
                let sizes: Vec<usize> = requests.iter().map(|q| q.request.body.len()).collect();
                let rest = requests.split_off(service.first_part(&sizes).min(requests.len()));
                self.submit(&backend, service, requests).await;
                requests = rest;
            }
        }
    }

    /// Submits one batch, and records it before and after.
    async fn submit(&self, backend: &str, service: &BatchService<'_>, part: Vec<QueuedRequest>) {
        let digests: Vec<&str> = part.iter().map(|q| q.request.digest.as_str()).collect();
        let record = BatchRecord::new((backend, &service.endpoint()), &self.nonce, &digests);
        let flight = Rc::new(Flight::new(record, FlightPhase::Working));
        backend.clone_into(&mut flight.backend.borrow_mut());
        let bodies: Vec<&str> = part.iter().map(|q| q.request.body.as_str()).collect();
        self.is_submitting.set(true);
        let sent = self.send(&flight, service, &bodies).await;
        self.is_submitting.set(false);
        let ids: Vec<String> = {
            let record = flight.record.borrow();
            record
                .requests
                .iter()
                .map(|r| r.custom_id.clone())
                .collect()
        };
        *flight.waiting.borrow_mut() = ids
            .into_iter()
            .zip(part.into_iter().map(|q| q.answer))
            .collect();
        match sent {
            Ok(()) => {
                let count = flight.waiting.borrow().len();
                self.show_event(&flight, &format!("submitted, {count} requests"));
                let pause = service.pause(0, None, fastrand::f64());
                flight.due.set(Instant::now() + pause);
                self.flights.borrow_mut().push(flight);
            }
            Err(failure) => flight.fail(&failure, FlightPhase::Over),
        }
    }

    /// Sends a batch. The record exists before the provider can know the batch.
    ///
    /// # Errors
    ///
    /// The record cannot be written; the provider rejected the batch or did not answer.
    async fn send(
        &self,
        flight: &Flight,
        service: &BatchService<'_>,
        bodies: &[&str],
    ) -> Result<(), Failure> {
        self.try_store(flight)?;
        let until = Instant::now() + SUBMISSION;
        let limits = Until::new(until.min(self.job.deadline), &self.unstopped);
        let record = flight.record.borrow().clone();
        let file = service.upload(&record, bodies, &limits).await;
        let file = file.inspect_err(|_| self.remove(flight))?;
        if file.is_some() {
            flight.record.borrow_mut().file_id = file;
            self.try_store(flight)?;
        }
        let record = flight.record.borrow().clone();
        match service.submit(&record, bodies, &limits).await {
            Ok(id) => self.take_id(flight, id, false),
            Err(failure) => self.found(flight, service, failure).await?,
        }
        Ok(())
    }

    /// Records the ID of a batch whose submission failed here and arrived nevertheless.
    ///
    /// # Errors
    ///
    /// The failure, if it did not arrive or that cannot be known. The record is kept in the latter
    /// case.
    async fn found(
        &self,
        flight: &Flight,
        service: &BatchService<'_>,
        failure: Failure,
    ) -> Result<(), Failure> {
        if !is_ambiguous(&failure) {
            self.remove(flight);
            return Err(failure);
        }
        match self.search(flight, service).await {
            Ok(LostBatch::Proven(id)) => self.take_id(flight, id, false),
            // After an answer that is not one, nothing is guessed in this run.
            Ok(LostBatch::Likely(id)) if failure.cause != Cause::Malformed => {
                self.take_id(flight, id, true);
            }
            // The provider may list the batch later: the record stays, and the next run asks again.
            Ok(LostBatch::Likely(_) | LostBatch::Absent) | Err(_) => return Err(failure),
        }
        Ok(())
    }

    /// Polls the batches that are due.
    async fn poll(&self, services: &BatchServices<'_>) {
        for flight in self.flights() {
            let is_due =
                flight.phase.get() == FlightPhase::Working && flight.due.get() <= Instant::now();
            let backend = flight.backend.borrow().clone();
            if let (true, Some(service)) = (is_due, services.get(backend.as_str())) {
                self.poll_one(&flight, service).await;
            }
        }
    }

    /// Polls one batch, and hands out its results if it has ended.
    async fn poll_one(&self, flight: &Flight, service: &BatchService<'_>) {
        let Some(id) = flight.record.borrow().batch_id.clone() else {
            return;
        };
        let limits = self.run_limits();
        let mut wait = None;
        match service.view(&id, &limits).await {
            Ok(view) => {
                wait = view.wait;
                match view.state {
                    BatchState::Working { done } => self.show_progress(flight, done),
                    BatchState::Rejected { .. } if flight.record.borrow().is_unproven => {
                        self.disprove(flight);
                    }
                    BatchState::Rejected { why } => {
                        let message = format!("the provider rejected the batch: {why}");
                        flight.fail(&Failure::new(Cause::Refused, message), FlightPhase::Over);
                    }
                    BatchState::Ended { results } => self.collect(flight, service, &results).await,
                }
            }
            Err(failure) if is_passing(&failure) => {}
            Err(failure) => flight.fail(&failure, FlightPhase::Lost),
        }
        let polls = flight.polls.get().saturating_add(1);
        flight.polls.set(polls);
        let pause = service.pause(polls, wait, fastrand::f64());
        let due = Instant::now().checked_add(pause);
        flight.due.set(due.unwrap_or(self.job.deadline));
    }

    /// Reads the results of a batch that has ended, and hands them out.
    async fn collect(&self, flight: &Flight, service: &BatchService<'_>, paths: &[Vec<String>]) {
        let limits = self.run_limits();
        let record = flight.record.borrow().clone();
        let results = service.results(&record, paths, &self.nonce, &limits).await;
        match results {
            Ok(results) if record.is_unproven && results.answers.is_empty() => {
                self.disprove(flight);
            }
            Ok(results) => {
                let (foreign, unreadable) = (results.foreign, results.unreadable);
                if foreign + unreadable > 0 {
                    self.remark(format!(
                        "{}: ignored {foreign} results of unknown requests and {unreadable} lines that are not results",
                        flight.name()
                    ));
                }
                self.show_event(flight, "ended");
                flight.deliver(results.answers);
            }
            Err(failure) if is_passing(&failure) => {}
            Err(failure) => {
                // A later run reads the results if the provider only rejected this request.
                let phase = match failure.cause {
                    Cause::Refused => FlightPhase::Lost,
                    _ => FlightPhase::Over,
                };
                flight.fail(&failure, phase);
            }
        }
    }

    /// Ends the run. Removes the records of batches whose results the run has used, unless a batch
    /// is unfinished or it is not known whether one exists: then a later run needs them all. Returns
    /// remarks.
    pub(crate) fn end(&self) -> Vec<String> {
        let flights = self.flights();
        let unfinished: Vec<_> = flights
            .iter()
            .filter(|f| matches!(f.phase.get(), FlightPhase::Working | FlightPhase::Lost))
            .collect();
        for flight in &unfinished {
            let selection = selection(&flight.record.borrow());
            let canceling =
                selection.map(|id| format!(", or {NAME} status --cancel-batch {id} to cancel it"));
            self.remark(format!(
                "{}{}: run the same command with --batch again to continue it{}",
                flight.name(),
                match flight.phase.get() {
                    FlightPhase::Lost => ": its results were not read",
                    _ => " is not finished, and goes on at the provider",
                },
                canceling.unwrap_or_default()
            ));
        }
        let is_known = flights.iter().all(|f| f.unresolved.borrow().is_none());
        if unfinished.is_empty() && is_known && self.job.stop.signal().is_none() {
            let over = flights
                .iter()
                .filter(|f| f.phase.get() == FlightPhase::Over);
            over.for_each(|flight| self.remove(flight));
        }
        std::mem::take(&mut *self.remarks.borrow_mut())
    }

    fn run_limits(&self) -> Until<'_> {
        Until::new(self.job.deadline, self.job.stop)
    }

    /// Stores the record of a batch.
    ///
    /// # Errors
    ///
    /// `Setup`: it cannot be written.
    fn try_store(&self, flight: &Flight) -> Result<(), Failure> {
        let shelf = self.shelf.borrow();
        let Some(shelf) = shelf.as_ref() else {
            return Ok(());
        };
        let stored = shelf.store(&flight.record.borrow());
        stored.map_err(|e| unrecorded(&e))
    }

    /// Stores the record of a batch that is submitted. A failure is a remark.
    fn store(&self, flight: &Flight) {
        if let Err(failure) = self.try_store(flight) {
            self.remark(format!("{}: {}", flight.name(), failure.message));
        }
    }

    /// Returns the IDs of all batches that the user's records have.
    ///
    /// # Errors
    ///
    /// `Setup`: the state folder cannot be used.
    fn known_ids(&self) -> Result<HashSet<String>, Failure> {
        let shelf = self.shelf.borrow();
        let (Some(shelf), Some(repo)) = (shelf.as_ref(), self.job.repo) else {
            return Ok(HashSet::new());
        };
        let known = shelf.known_ids(repo, self.job.env);
        known.map_err(|e| unrecorded(&e))
    }

    /// Returns the path of a record, for a hint.
    fn record_path(&self, flight: &Flight) -> String {
        let shelf = self.shelf.borrow();
        let path = shelf.as_ref().map(|s| s.path_of(&flight.record.borrow()));
        path.unwrap_or_default().display().to_string()
    }

    /// Removes a record. One that cannot be removed is ignored: it is removed when it is old.
    fn remove(&self, flight: &Flight) {
        if let Some(shelf) = self.shelf.borrow().as_ref() {
            let _ = shelf.remove(&flight.record.borrow());
        }
    }

    fn remark(&self, text: String) {
        self.remarks.borrow_mut().push(text);
    }

    /// Shows the number of requests that have a result, if it has changed.
    fn show_progress(&self, flight: &Flight, done: u64) {
        if flight.done.replace(done) != done {
            self.show_event(flight, &format!("{done} requests done"));
        }
    }

    /// Shows an event of a batch above the progress.
    fn show_event(&self, flight: &Flight, what: &str) {
        let line = Inert::new(format!("{}: {what}", flight.name()));
        self.job.progress.so_far(&[line]);
    }
}

/// Connects a question with a batch, or answers it from the results that the batch already has.
fn take_up(flight: &Flight, id: String, queued: QueuedRequest) {
    match flight.phase.get() {
        FlightPhase::Recorded | FlightPhase::Working => {
            flight.waiting.borrow_mut().insert(id, queued.answer);
        }
        FlightPhase::Over | FlightPhase::Lost => {
            let known = flight.left.borrow_mut().remove(&id);
            let message = "the batch has no result for the request";
            let answer = known.unwrap_or_else(|| Err(Failure::new(Cause::Malformed, message)));
            let _ = queued.answer.send(answer);
        }
    }
}

/// Returns what selects a batch to cancel it; `None` without an ID. An ID that is not proven may be
/// the one of another run: the name of the record does not cancel such a batch, and the answer to it
/// says why.
fn selection(record: &BatchRecord) -> Option<String> {
    let id = record.batch_id.as_ref()?;
    let selection = if record.is_unproven {
        &record.token
    } else {
        id
    };
    Some(selection.clone())
}

/// Returns true if a later poll of the batch can succeed.
fn is_passing(failure: &Failure) -> bool {
    match failure.cause {
        Cause::Unreachable | Cause::TimedOut | Cause::Stopped => true,
        Cause::Refused => failure.retry_after.is_some(),
        Cause::Setup
        | Cause::TooLarge
        | Cause::CutOff
        | Cause::Declined
        | Cause::Malformed
        | Cause::Limit => false,
    }
}

/// Returns the failure of requests whose batch cannot be recorded.
fn unrecorded(error: &Error) -> Failure {
    let error = error.on_one_line();
    Failure::new(Cause::Setup, format!("cannot record the batch: {error}"))
}

/// Waits until a submission that has begun is recorded, at most `most`. `driving` is the driver.
pub(crate) async fn finish_submission(
    driver: &BatchDriver<'_>,
    driving: std::pin::Pin<&mut impl Future<Output = Infallible>>,
    most: Duration,
) {
    let mut driving = driving;
    let submitted = async {
        while driver.is_submitting() {
            tokio::select! {
                never = driving.as_mut() => match never {},
                () = sleep(TICK) => {}
            }
        }
    };
    let _ = tokio::time::timeout(most, submitted).await;
}
