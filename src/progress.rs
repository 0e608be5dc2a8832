//! The progress of a review, for waiting users.

use crate::env::Env;
use crate::untrusted::Inert;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delay before progress is shown: most reviews end sooner.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval between two frames.
const FRAME: Duration = Duration::from_millis(100);

/// Receives the progress of a review. Called from several threads.
pub trait Progress: Sync {
    /// The rules have read `done` of `total` files.
    fn files(&self, done: usize, total: usize);

    /// Models have answered `done` of `total` requests, for `usd` so far if the price is known.
    fn requests(&self, done: usize, total: usize, usd: Option<f64>);

    /// Findings of the rules, and claims of models that other questions can still refute: one line
    /// each.
    fn so_far(&self, lines: &[Inert]);
}

/// Shows no progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn files(&self, _done: usize, _total: usize) {}
    fn requests(&self, _done: usize, _total: usize, _usd: Option<f64>) {}
    fn so_far(&self, _lines: &[Inert]) {}
}

/// Forwards progress without findings, for a review of a change that the user has not seen.
pub struct WithoutFindings<'a>(pub &'a dyn Progress);

impl std::fmt::Debug for WithoutFindings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WithoutFindings").finish_non_exhaustive()
    }
}

impl Progress for WithoutFindings<'_> {
    fn files(&self, done: usize, total: usize) {
        self.0.files(done, total);
    }

    fn requests(&self, done: usize, total: usize, usd: Option<f64>) {
        self.0.requests(done, total, usd);
    }

    fn so_far(&self, _lines: &[Inert]) {}
}

/// Returns a progress bar for a terminal, else a silent one.
///
/// There is no bar in CI, with `TERM=dumb`, or with `--quiet`.
pub fn of(env: &Env, quiet: bool) -> Box<dyn Progress> {
    let drawable = env.var("TERM").is_some_and(|t| t != "dumb");
    if quiet || !drawable || env.is_ci() || !std::io::stderr().is_terminal() {
        return Box::new(Silent);
    }
    Box::new(Terminal::start())
}

/// One line on standard error, shown after half a second and removed when this is dropped.
///
/// A separate thread draws it, so that an update costs two stores, and a slow file does not stop
/// the clock.
#[derive(Debug)]
pub struct Terminal {
    counts: Arc<ProgressCounts>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    painter: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ProgressCounts {
    done: AtomicUsize,
    total: AtomicUsize,
    answered: AtomicUsize,
    /// 0 if no model is asked.
    asked: AtomicUsize,
    /// Millionths of a dollar; [`u64::MAX`] if unknown.
    cost: AtomicU64,
    /// Lines to print above the bar.
    lines: Mutex<Vec<Inert>>,
}

impl Terminal {
    /// Starts the clock. The caller must check that standard error is a terminal.
    pub fn start() -> Self {
        let counts = Arc::new(ProgressCounts::default());
        let (stop, stopped) = channel();
        let shared = Arc::clone(&counts);
        let painter = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || paint(&shared, &stopped));
        // Without a thread there is no bar, which is harmless.
        Self {
            counts,
            stop: Some(stop),
            painter: painter.ok(),
        }
    }
}

impl Progress for Terminal {
    fn files(&self, done: usize, total: usize) {
        // Threads may report out of order; the bar never goes back.
        self.counts.done.fetch_max(done, Ordering::Relaxed);
        self.counts.total.store(total, Ordering::Relaxed);
    }

    fn requests(&self, done: usize, total: usize, usd: Option<f64>) {
        self.counts.answered.fetch_max(done, Ordering::Relaxed);
        self.counts.asked.store(total, Ordering::Relaxed);
        self.counts.cost.store(
            usd.map_or(u64::MAX, |d| (d * 1e6) as u64),
            Ordering::Relaxed,
        );
    }

    fn so_far(&self, lines: &[Inert]) {
        let mut queue = self
            .counts
            .lines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        queue.extend_from_slice(lines);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(painter) = self.painter.take() {
            // A panic of the painter does not matter here.
            let _ = painter.join();
        }
    }
}

/// The stage that the bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProgressStage {
    /// The files or versions to read are not known yet.
    Listing,
    /// The rules read files.
    Scanning,
    /// Models are asked.
    Asking,
}

impl ProgressStage {
    /// Returns the stage for a number of requests and of files; 0 if they are not known.
    fn of(requests: usize, files: usize) -> Self {
        match (requests, files) {
            (0, 0) => Self::Listing,
            (0, _) => Self::Scanning,
            _ => Self::Asking,
        }
    }

    /// Returns the template of the line, in the syntax of indicatif.
    fn template(self) -> &'static str {
        match self {
            Self::Listing => "listing files  {elapsed}",
            Self::Scanning => "reviewing [{bar:24}] {pos}/{len} files  {elapsed}{msg}",
            Self::Asking => "asking [{bar:24}] {pos}/{len} requests  {elapsed}{msg}",
        }
    }
}

/// Estimates the time that is left from the mean time of the files so far. `None` in the first two
/// seconds and for the first hundredth of the files, whose mean says little.
fn time_left(done: usize, total: usize, elapsed: Duration) -> Option<Duration> {
    if elapsed < Duration::from_secs(2) || done == 0 || done < total / 100 {
        return None;
    }
    let left = total.saturating_sub(done);
    Some(elapsed.mul_f64(left as f64 / done as f64))
}

fn paint(counts: &ProgressCounts, stopped: &Receiver<()>) {
    let started = Instant::now();
    if stopped.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let mut stage = None;
    loop {
        let asked = counts.asked.load(Ordering::Relaxed);
        let (done, total) = match asked {
            0 => (
                counts.done.load(Ordering::Relaxed),
                counts.total.load(Ordering::Relaxed),
            ),
            _ => (counts.answered.load(Ordering::Relaxed), asked),
        };
        let now = ProgressStage::of(asked, total);
        if stage != Some(now)
            && let Ok(style) = ProgressStyle::with_template(now.template())
        {
            bar.set_style(style.progress_chars("=> "));
            stage = Some(now);
        }
        bar.set_message(match now {
            ProgressStage::Listing => String::new(),
            ProgressStage::Scanning => time_left(done, total, started.elapsed())
                .map_or_else(String::new, |left| {
                    format!(", {:#} left", HumanDuration(left))
                }),
            ProgressStage::Asking => match counts.cost.load(Ordering::Relaxed) {
                u64::MAX => String::new(),
                cost => format!("  ${:.2}", cost as f64 / 1e6),
            },
        });
        let lines =
            std::mem::take(&mut *counts.lines.lock().unwrap_or_else(PoisonError::into_inner));
        for line in lines {
            bar.println(line.guarded().as_str());
        }
        bar.set_length(total as u64);
        bar.set_position(done as u64);
        bar.tick();
        if stopped.recv_timeout(FRAME) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_shown_once_it_can_be_estimated() {
        let seconds = Duration::from_secs;
        for (done, total, elapsed, left) in [
            (0, 0, 9, None),
            (0, 500, 9, None),
            (4, 500, 9, None),
            (250, 500, 1, None),
            (5, 500, 10, Some(990)),
            (250, 500, 10, Some(10)),
            (500, 500, 10, Some(0)),
        ] {
            let actual = time_left(done, total, seconds(elapsed));
            assert_eq!(
                actual,
                left.map(seconds),
                "{done} of {total} in {elapsed} s"
            );
        }
    }

    #[test]
    fn the_bar_names_the_stage() {
        for (requests, files, template) in [
            (0, 0, "listing files"),
            (0, 3, "reviewing ["),
            (2, 3, "asking ["),
        ] {
            let stage = ProgressStage::of(requests, files);
            assert!(stage.template().starts_with(template), "{stage:?}");
        }
    }

    #[test]
    fn a_short_review_does_not_wait_for_the_bar() {
        let start = Instant::now();
        let bar = Terminal::start();
        bar.files(1, 2);
        drop(bar);
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }

    #[test]
    fn the_bar_never_goes_back() {
        let bar = Terminal::start();
        bar.files(5, 9);
        bar.files(4, 9);
        assert_eq!(bar.counts.done.load(Ordering::Relaxed), 5);
    }
}
