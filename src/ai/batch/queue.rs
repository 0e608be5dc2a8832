//! Requests that wait for their place in a batch, and for their answers. Independent of providers.

use crate::ai::ask::outcome::{Cause, Failure, Until};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use tokio::sync::{Notify, oneshot};

/// A result of a request in a batch: the body of the answer.
pub(crate) type BatchedAnswer = Result<Value, Failure>;

/// The parts of a request that a batch needs.
#[derive(Clone, Debug)]
pub(crate) struct BatchBody {
    /// Name of the backend in the policy.
    pub(crate) backend: String,
    /// Digest of the request without the nonce of the run and without the limit of its answer: 64
    /// hexadecimal digits. Equal requests of several runs have the same one.
    pub(crate) digest: String,
    /// JSON text of the body, as the ordinary interface takes it, without streaming.
    pub(crate) body: String,
}

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct QueuedRequest {
    pub(crate) request: BatchBody,
    /// Takes the answer. It is closed if the question has ended meanwhile.
    pub(crate) answer: oneshot::Sender<BatchedAnswer>,
}

/// The requests of a run that wait to be submitted, in order.
#[derive(Debug, Default)]
pub struct BatchQueue {
    waiting: RefCell<Vec<QueuedRequest>>,
    /// Requests that were added so far.
    added: Cell<u64>,
    changed: Notify,
}

impl BatchQueue {
    /// Queues a request and waits for its answer.
    ///
    /// # Errors
    ///
    /// The failure of the request or of its batch, a passed deadline, or the end of the run. The
    /// batch goes on at the provider in the last two cases.
    pub(crate) async fn ask(&self, request: BatchBody, limits: &Until<'_>) -> BatchedAnswer {
        limits.check()?;
        let (answer, receiver) = oneshot::channel();
        self.waiting
            .borrow_mut()
            .push(QueuedRequest { request, answer });
        self.added.set(self.added.get() + 1);
        self.changed.notify_one();
        let lost = || {
            let message = "the batch was given up before it was answered";
            Failure::new(Cause::Unreachable, message)
        };
        match limits.hold(receiver).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(lost())),
            Err(failure) => Err(Failure::from(failure)
                .hint("run the same command again, which continues the batch")),
        }
    }

    /// Takes all waiting requests whose questions have not ended.
    pub(crate) fn take(&self) -> Vec<QueuedRequest> {
        let mut all = std::mem::take(&mut *self.waiting.borrow_mut());
        all.retain(|queued| !queued.answer.is_closed());
        all
    }

    /// Puts requests back that were taken too early.
    pub(crate) fn put_back(&self, requests: Vec<QueuedRequest>) {
        let mut waiting = self.waiting.borrow_mut();
        let newer = std::mem::replace(&mut *waiting, requests);
        waiting.extend(newer);
    }

    /// Returns the number of waiting requests.
    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Returns the number of requests that were added so far.
    pub(crate) fn added(&self) -> u64 {
        self.added.get()
    }

    /// Waits until a request is added.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }
}
