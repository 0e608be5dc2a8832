//! Writes that are sent while a run asks its questions: answers, and leases that are given back.
//!
//! A write helps other runs only, so this one does not wait for it. Writes are queued and sent in
//! their order while the run asks models. At its end, the run waits for the rest within the time
//! that the store may still cost.

use super::{OpenOperation, OperationCost, SharedCache};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Bytes of queued answers, at most. A store that is so slow gets no further answers meanwhile.
const MAX_QUEUED: usize = 16 << 20;

/// A write to the store.
#[derive(Debug)]
pub(super) enum QueuedWrite {
    /// Store an answer under a name.
    Put { name: String, sealed: Vec<u8> },
    /// Remove a lease.
    Remove { name: String },
}

/// The writes that are not sent yet.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    waiting: RefCell<VecDeque<QueuedWrite>>,
    /// Bytes of the write that is being sent.
    sending: Cell<Option<usize>>,
    /// Bytes of the queued answers.
    bytes: Cell<usize>,
    /// Number of answers that were left out, because the queue was full.
    left_out: Cell<usize>,
    /// Wakes the sender.
    added: Notify,
    /// Wakes the end of the run.
    emptied: Notify,
}

impl QueuedWrite {
    /// Returns the bytes of its answer.
    fn size(&self) -> usize {
        match self {
            Self::Put { sealed, .. } => sealed.len(),
            Self::Remove { .. } => 0,
        }
    }
}

impl WriteQueue {
    /// Queues a write. Leaves an answer out if the queue is full.
    pub(super) fn add(&self, write: QueuedWrite) {
        let bytes = self.bytes.get() + write.size();
        if write.size() > 0 && bytes > MAX_QUEUED {
            self.left_out.set(self.left_out.get() + 1);
            return;
        }
        self.bytes.set(bytes);
        self.waiting.borrow_mut().push_back(write);
        self.added.notify_one();
    }

    /// Takes the next write, and marks it as being sent.
    fn next(&self) -> Option<QueuedWrite> {
        let next = self.waiting.borrow_mut().pop_front();
        self.sending.set(next.as_ref().map(QueuedWrite::size));
        let Some(next) = next else {
            self.emptied.notify_one();
            return None;
        };
        self.bytes.set(self.bytes.get().saturating_sub(next.size()));
        Some(next)
    }

    /// Returns true if every write was sent.
    fn is_idle(&self) -> bool {
        self.sending.get().is_none() && self.waiting.borrow().is_empty()
    }

    /// Waits until every write was sent.
    async fn idle(&self) {
        while !self.is_idle() {
            self.emptied.notified().await;
        }
    }

    /// Returns the number of answers that were not stored: they are queued, being sent, or were left
    /// out.
    pub(super) fn unstored(&self) -> usize {
        let waiting = self.waiting.borrow();
        let queued = waiting.iter().filter(|write| write.size() > 0).count();
        let sending = usize::from(self.sending.get().is_some_and(|bytes| bytes > 0));
        queued + sending + self.left_out.get()
    }
}

impl SharedCache<'_> {
    /// Runs a review, and sends its queued writes meanwhile.
    pub async fn beside<T>(&self, run: impl Future<Output = T>) -> T {
        tokio::select! {
            biased;
            value = run => value,
            never = self.send_writes() => match never {},
        }
    }

    /// Sends queued writes until the future is dropped.
    async fn send_writes(&self) -> Infallible {
        loop {
            let Some(write) = self.writes.next() else {
                self.writes.added.notified().await;
                continue;
            };
            let cost = OperationCost::Beside;
            match write {
                QueuedWrite::Put { name, sealed } => {
                    let stored = self.write_store.put(&name, &sealed);
                    self.limited(cost, stored).await;
                }
                QueuedWrite::Remove { name } => {
                    self.limited(cost, self.write_store.remove(&name)).await;
                }
            }
        }
    }

    /// Waits for the queued writes at the end of a run, within the time that the store may still
    /// cost. A run that a signal ends does not wait.
    pub async fn finish(&self) {
        if !self.writes.is_idle() && self.stop.signal().is_none() {
            let left = self.state.borrow().meter.left(Instant::now());
            let _open = OpenOperation::start(&self.state);
            // The note of the run counts the answers that are still queued then.
            let _ = timeout(left, self.writes.idle()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flt_03_queued_answers_are_bounded_and_leases_are_given_back_nevertheless() {
        let queue = WriteQueue::default();
        let name = || "a".to_owned();
        for _ in 0..5 {
            let sealed = vec![0; MAX_QUEUED / 4];
            queue.add(QueuedWrite::Put {
                name: name(),
                sealed,
            });
        }
        queue.add(QueuedWrite::Remove { name: name() });
        assert_eq!((queue.waiting.borrow().len(), queue.unstored()), (5, 5));
        while queue.next().is_some() {
            assert!(!queue.is_idle());
        }
        assert!(queue.is_idle());
        // Answers that were sent make room for others. The one that was left out is not stored.
        assert_eq!((queue.bytes.get(), queue.unstored()), (0, 1));
    }
}
