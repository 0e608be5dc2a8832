//! Progress notifications for a client that sent a token: strictly growing numbers, a limited rate,
//! and a keep-alive while a model works.

use crate::progress::Progress;
use crate::untrusted::Inert;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::Peer;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Time between two notifications, at least and at most.
const PACE: Duration = Duration::from_millis(100);
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Collects the progress of a review.
#[derive(Debug, Default)]
pub(super) struct Bridge {
    counts: Mutex<ProgressCounts>,
    /// Findings that are not reported yet.
    findings: Mutex<Vec<Inert>>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct ProgressCounts {
    files: (usize, usize),
    requests: (usize, usize),
    usd: Option<f64>,
}

impl ProgressCounts {
    fn done(self) -> usize {
        self.files.0 + self.requests.0
    }

    fn total(self) -> usize {
        self.files.1 + self.requests.1
    }

    fn words(self) -> String {
        let (files, requests) = (self.files, self.requests);
        let cost = self
            .usd
            .filter(|u| *u > 0.0)
            .map(|u| format!(", ${u:.2}"))
            .unwrap_or_default();
        match requests {
            (_, 0) if files.1 == 0 => "looking at the change".to_owned(),
            (_, 0) => format!("rules: {} of {} files", files.0, files.1),
            (done, total) => format!("models: {done} of {total} requests{cost}"),
        }
    }
}

impl Bridge {
    fn update(&self, change: impl FnOnce(&mut ProgressCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    fn counts(&self) -> ProgressCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_findings(&self) -> Vec<Inert> {
        std::mem::take(&mut *self.findings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notifies the client of progress while this future is polled.
    pub(super) async fn tell(&self, peer: &Peer<RoleServer>, token: ProgressToken) {
        let mut climb = Climb::default();
        let began = Instant::now();
        loop {
            let counts = self.counts();
            let (progress, total) = climb.next(counts.done(), counts.total());
            let mut words = counts.words();
            if began.elapsed() >= SIGN_OF_LIFE {
                words.push_str(&format!(" ({} s)", began.elapsed().as_secs()));
            }
            for finding in self.take_findings() {
                words.push_str(&format!("\nfound {finding}"));
            }
            let mut param =
                ProgressNotificationParam::new(token.clone(), progress).with_message(words);
            param.total = total;
            if peer.notify_progress(param).await.is_err() {
                return std::future::pending().await;
            }
            tokio::time::sleep(PACE).await;
            // Wait for the next event, or send a keep-alive.
            let _ = tokio::time::timeout(SIGN_OF_LIFE, self.changed.notified()).await;
        }
    }
}

impl Progress for Bridge {
    fn files(&self, done: usize, total: usize) {
        // Threads may report out of order.
        self.update(|c| c.files = (c.files.0.max(done), c.files.1.max(total)));
    }

    fn requests(&self, done: usize, total: usize, usd: Option<f64>) {
        self.update(|c| {
            (c.requests, c.usd) = ((c.requests.0.max(done), c.requests.1.max(total)), usd);
        });
    }

    fn so_far(&self, lines: &[Inert]) {
        self.findings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(lines);
        self.changed.notify_one();
    }
}

/// Progress numbers that only grow, as the protocol requires, also while no file was finished.
#[derive(Debug, Default)]
struct Climb {
    last: Option<f64>,
    idle: u32,
    done: usize,
}

impl Climb {
    /// Returns the next number and, if known, the total.
    fn next(&mut self, done: usize, total: usize) -> (f64, Option<f64>) {
        self.idle = if done > self.done { 0 } else { self.idle + 1 };
        self.done = self.done.max(done);
        // A keep-alive lies between the finished count and the next one, and approaches it without
        // reaching it.
        let between = 1.0 - 1.0 / (1.0 + f64::from(self.idle) / 8.0);
        let mut progress = self.done as f64 + between;
        if let Some(last) = self.last.filter(|l| *l >= progress) {
            progress = last.next_up();
        }
        self.last = Some(progress);
        (
            progress,
            (total > 0)
                .then_some((total as f64).max(self.done as f64))
                .filter(|t| *t > progress),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_only_grows_and_stays_below_its_total() {
        let mut climb = Climb::default();
        let mut last = -1.0;
        let steps = [
            (0, 0),
            (0, 0),
            (1, 4),
            (1, 4),
            (3, 4),
            (2, 4),
            (4, 9),
            (4, 9),
            (9, 9),
            (9, 9),
        ];
        for (done, total) in steps.into_iter().chain(std::iter::repeat_n((9, 10), 500)) {
            let (progress, total) = climb.next(done, total);
            assert!(progress > last, "{progress} after {last}");
            assert!(total.is_none_or(|t| t > progress));
            last = progress;
        }
        assert!(last < 10.0);
    }

    #[test]
    fn what_threads_tell_late_takes_nothing_back() {
        let bridge = Bridge::default();
        bridge.files(5, 9);
        bridge.files(4, 9);
        assert_eq!(bridge.counts().files, (5, 9));
        bridge.requests(1, 3, Some(0.5));
        assert_eq!(bridge.counts().words(), "models: 1 of 3 requests, $0.50");
    }
}
