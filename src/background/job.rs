//! The process that reviews one commit in the background.

use super::{LOG, Station, day_of, moment, queue, spending, unpriced};
use crate::context::Trackers;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::log::millis;
use crate::policy::{Policy, PostCommit};
use crate::progress::Silent;
use crate::request::{Hook, PushRange, ReviewRequest, Source};
use crate::review::{self, World};
use crate::rounds::{self, Ask, Done, Save};
use crate::stop::{Signal, Stop};
use crate::wire::Verdict;
use crate::wire::background::{BackgroundEnd, Last, ReviewOrder};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The times of a review.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Time for reading, rules and storing, in addition to the time that the policy allows for
    /// models.
    margin: Duration,
    /// Time that a review has to end after it ran out of time.
    grace: Duration,
    /// Interval at which the clock and the size of the log are checked.
    tick: Duration,
}

const TIMES: Times = Times {
    margin: Duration::from_secs(600),
    grace: Duration::from_secs(10),
    tick: Duration::from_secs(1),
};

/// The environment and the controls of a job.
pub struct ReviewJob<'a> {
    pub env: &'a Env,
    /// Ends the review: signals of the process, and its total time.
    pub stop: &'a Stop,
    /// Ends the process if a review does not end.
    pub leave: &'a (dyn Fn() + Sync),
    /// Finds the tickets that a push would show to models.
    pub trackers: Option<&'a dyn Trackers>,
}

impl std::fmt::Debug for ReviewJob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReviewJob")
            .field("stop", self.stop)
            .finish_non_exhaustive()
    }
}

/// The end of a turn.
enum JobTurn {
    /// The result of the review.
    Over(Box<Last>),
    /// The commit waits, for this reason.
    Held(String),
    /// The process received a signal that no `status --stop` sent. The next process takes the
    /// commit again.
    Interrupted,
}

/// Reviews the commit that waits, and starts a process for the next one. Returns lines for the log.
///
/// # Errors
///
/// The queue cannot be read or written; the next process cannot be started.
pub fn work(station: &Station, job: &ReviewJob<'_>) -> Result<Vec<String>> {
    let now = jiff::Timestamp::now();
    let Some((lock, order)) = station.claim(&moment(now))? else {
        return Ok(Vec::new());
    };
    let started = Instant::now();
    let turn = watched(station, job, &order, |limit| {
        reviewed(station, job, &order, limit, now)
    });
    let mut lines = vec![format!(
        "{} commit {} in {}",
        moment(now),
        order.commit,
        order.worktree
    )];
    lines.push(match &turn {
        JobTurn::Over(last) => {
            let verdict = last
                .verdict
                .map_or_else(String::new, |v| format!(" {}", verdict_name(v)));
            let note = last
                .note
                .as_ref()
                .map_or_else(String::new, |n| format!(": {n}"));
            let ms = millis(started, Instant::now());
            format!("{}{verdict} after {ms} ms{note}", last.ending.name())
        }
        JobTurn::Held(why) => format!("not reviewed: {why}"),
        JobTurn::Interrupted => "interrupted".to_owned(),
    });
    finish(station, job, lock, turn)?;
    Ok(lines)
}

/// Records the end of a turn, and starts the next job.
fn finish(station: &Station, job: &ReviewJob<'_>, lock: File, turn: JobTurn) -> Result<()> {
    let is_interrupted = matches!(turn, JobTurn::Interrupted);
    let is_due = station.release(lock, |queue| match turn {
        JobTurn::Over(last) => queue::finish(queue, *last),
        JobTurn::Held(why) => queue::hold(queue, &why),
        // The state is the same as after a killed process.
        JobTurn::Interrupted => {}
    })?;
    if is_due && !is_interrupted {
        station.launch(job.env)
    } else {
        Ok(())
    }
}

/// The total time of a review, which is known when its policy is.
#[derive(Debug)]
struct Limit {
    models: std::sync::Mutex<Duration>,
    is_over: AtomicBool,
}

/// Reviews under a time limit, and keeps the log short meanwhile.
fn watched(
    station: &Station,
    job: &ReviewJob<'_>,
    order: &ReviewOrder,
    work: impl FnOnce(&Limit) -> JobTurn,
) -> JobTurn {
    let limit = Limit {
        models: std::sync::Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    std::thread::scope(|s| {
        let (over, ended) = mpsc::channel::<()>();
        let clock = &limit;
        s.spawn(move || {
            watch(
                &|| drop(station.folder.trim(LOG)),
                job,
                (clock, TIMES),
                &ended,
            );
        });
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&limit)));
        drop(over);
        let note = "an internal error stopped the review".to_owned();
        caught.unwrap_or_else(|_| failed_turn(order, BackgroundEnd::Failed, note))
    })
}

/// Stops a review that runs out of time, and ends the process if the review does not stop.
fn watch(
    trim: &dyn Fn(),
    job: &ReviewJob<'_>,
    (limit, times): (&Limit, Times),
    ended: &mpsc::Receiver<()>,
) {
    let started = Instant::now();
    while ended.recv_timeout(times.tick) == Err(RecvTimeoutError::Timeout) {
        // A log that cannot be cut does not stop the review.
        trim();
        let models = *limit
            .models
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let most = models + times.margin;
        if started.elapsed() > most {
            limit.is_over.store(true, Ordering::SeqCst);
            job.stop.now(Signal::Terminate);
        }
        if started.elapsed() > most + times.grace {
            (job.leave)();
        }
    }
}

/// Reviews a commit within the cost limit of the day.
fn reviewed(
    station: &Station,
    job: &ReviewJob<'_>,
    order: &ReviewOrder,
    limit: &Limit,
    now: jiff::Timestamp,
) -> JobTurn {
    let env = env_of(order, job.env);
    let request = request(order);
    let policy = match prepared(order, &request, &env) {
        Ok(policy) => policy,
        Err(e) => return failed_turn(order, BackgroundEnd::Failed, e.on_one_line()),
    };
    *limit
        .models
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = policy.review.timeout;
    if let Some(why) = unpriced(&policy, &env, Path::new(&order.worktree)) {
        return JobTurn::Held(format!("its cost cannot be limited: {why}"));
    }
    let (day, name) = (
        day_of(now),
        format!("{}-{}", std::process::id(), now.as_nanosecond()),
    );
    let max = policy.hooks.max_cost_per_day;
    let amount = match station
        .spend(|ledger| spending::reserve(ledger, &day, &name, policy.review.max_cost_usd, max))
    {
        Ok(Some(amount)) => amount,
        Ok(None) => return JobTurn::Held(format!("max_cost_per_day = {max} is used up for {day}")),
        Err(e) => return JobTurn::Held(e.on_one_line()),
    };
    let result = review_within(amount, request, &env, job);
    if job.stop.signal().is_some() {
        // Requests in flight are lost, and their cost is unknown, so the reservation stays.
        return if limit.is_over.load(Ordering::SeqCst) {
            failed_turn(
                order,
                BackgroundEnd::TimedOut,
                "it ran out of time".to_owned(),
            )
        } else {
            JobTurn::Interrupted
        };
    }
    let cost = result.as_ref().map_or(Some(0.0), cost_of);
    let unsettled = match cost {
        Some(usd) => station
            .spend(|ledger| spending::settle(ledger, &day, &name, usd))
            .err(),
        None => None,
    };
    let mut last = match result {
        Ok(done) => result_of(order, &done, cost),
        Err(e) => queue::last(order, "", BackgroundEnd::Failed, Some(e.on_one_line())),
    };
    last.at = moment(jiff::Timestamp::now());
    last.note = last.note.or(unsettled.map(|e| e.on_one_line()));
    JobTurn::Over(Box::new(last))
}

/// Returns the end of a turn whose review failed now.
fn failed_turn(order: &ReviewOrder, ending: BackgroundEnd, note: String) -> JobTurn {
    JobTurn::Over(Box::new(queue::last(
        order,
        &moment(jiff::Timestamp::now()),
        ending,
        Some(note),
    )))
}

/// Loads the policy of the worktree, as for a push.
fn prepared(order: &ReviewOrder, request: &ReviewRequest, env: &Env) -> Result<Policy> {
    if !Path::new(&order.worktree).is_dir() {
        return Err(Error::usage(format!(
            "the worktree {} no longer exists",
            order.worktree
        )));
    }
    let (_, policy) = review::store_location(request, env)?;
    if policy.hooks.post_commit == PostCommit::Off {
        return Err(Error::usage("[hooks] post_commit is off"));
    }
    if policy.review.backends.is_empty() {
        return Err(Error::usage("no backend is configured").hint("set [review] backends"));
    }
    Ok(policy)
}

/// Returns the environment of a hook in the worktree of the order.
fn env_of(order: &ReviewOrder, env: &Env) -> Env {
    let own = [
        ("GIT_DIR", &order.git_dir),
        ("GIT_WORK_TREE", &order.worktree),
    ]
    .map(|(k, v)| (k.into(), v.into()));
    let vars = env.vars().map(|(k, v)| (k.to_owned(), v.to_owned()));
    Env::from_pairs(PathBuf::from(&order.worktree), vars.chain(own))
}

/// Returns a request whose answers a push can reuse: the change that the push would send. A commit
/// without a push target is compared with its parent, or with the parent of the first commit that
/// it covers.
fn request(order: &ReviewOrder) -> ReviewRequest {
    let source = match &order.push {
        Some(push) => Source::Push(vec![PushRange {
            local: order.commit.clone(),
            remote: push.known.clone(),
            name: push.reference.clone(),
            to: Some(push.remote.clone()),
        }]),
        None => match &order.from {
            Some(from) => Source::Branch {
                head: Some(order.commit.clone()),
                base: Some(from.clone()),
            },
            None => Source::Commit {
                rev: order.commit.clone(),
                parent: None,
            },
        },
    };
    let mut request = ReviewRequest::new(source, PathBuf::from(&order.worktree));
    request.hook = Some(Hook::PostCommit);
    request
}

fn review_within(
    usd: f64,
    mut request: ReviewRequest,
    env: &Env,
    job: &ReviewJob<'_>,
) -> Result<Done> {
    request.overrides.max_cost_usd = Some(usd);
    let ask = Ask {
        request,
        follow_up: None,
        response: None,
        save: Save::Yes,
        pull: None,
        via: Hook::PostCommit.name(),
    };
    let now = jiff::Timestamp::now();
    let (stop, trackers) = (job.stop, job.trackers);
    rounds::review(
        &ask,
        &World {
            env,
            progress: &Silent,
            now,
            stop,
            script: None,
            agent: None,
            findings: None,
            trackers,
        },
    )
}

/// Returns the cost of a review; `None` if a backend did not report its cost.
fn cost_of(done: &Done) -> Option<f64> {
    let mut total = 0.0;
    for usage in &done.review.models.usage {
        match usage.spent.cost_usd {
            Some(usd) => total += usd,
            // There was no answer.
            None if usage.spent.input_tokens == 0 && usage.spent.output_tokens == 0 => {}
            None => return None,
        }
    }
    Some(total)
}

/// Returns the name of a verdict in messages.
pub fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Warn => "warn",
        Verdict::Block => "block",
        Verdict::Incomplete => "incomplete",
    }
}

fn result_of(order: &ReviewOrder, done: &Done, cost_usd: Option<f64>) -> Last {
    let review = &done.review;
    let failed = done
        .stored
        .report
        .coverage
        .failed
        .first()
        .map(|f| match &f.file {
            Some(file) => format!("{file}: {}", f.reason),
            None => f.reason.clone(),
        });
    Last {
        verdict: Some(done.stored.report.verdict),
        review_id: review.session.as_ref().map(|s| s.id.clone()),
        cost_usd,
        note: done
            .unsaved
            .as_ref()
            .map(|why| format!("not stored: {why}"))
            .or(failed),
        ..queue::last(order, "", BackgroundEnd::Reviewed, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Watches a review that runs until the process would be ended.
    fn watched_to_the_end(models: Duration, margin: Duration) -> (bool, Option<Signal>) {
        let (env, stop) = (Env::default(), Stop::default());
        let (over, ended) = mpsc::channel::<()>();
        let over = Mutex::new(Some(over));
        let job = ReviewJob {
            env: &env,
            stop: &stop,
            leave: &|| drop(over.lock().unwrap().take()),
            trackers: None,
        };
        let limit = Limit {
            models: Mutex::new(models),
            is_over: AtomicBool::new(false),
        };
        let times = Times {
            margin,
            grace: Duration::ZERO,
            tick: Duration::from_millis(1),
        };
        watch(&|| {}, &job, (&limit, times), &ended);
        (limit.is_over.load(Ordering::SeqCst), stop.signal())
    }

    #[test]
    fn a_review_that_runs_out_of_time_is_stopped_and_then_left() {
        let times = watched_to_the_end(Duration::from_millis(1), Duration::from_millis(1));
        assert_eq!(times, (true, Some(Signal::Terminate)));
    }

    #[test]
    fn a_review_that_ends_in_time_is_not_stopped() {
        let (env, stop) = (Env::default(), Stop::default());
        let (over, ended) = mpsc::channel::<()>();
        drop(over);
        let job = ReviewJob {
            env: &env,
            stop: &stop,
            leave: &|| {},
            trackers: None,
        };
        let limit = Limit {
            models: Mutex::default(),
            is_over: AtomicBool::new(false),
        };
        watch(&|| {}, &job, (&limit, TIMES), &ended);
        assert_eq!(
            (limit.is_over.load(Ordering::SeqCst), stop.signal()),
            (false, None)
        );
    }

    #[test]
    fn a_request_asks_what_a_push_would_ask() {
        let push = crate::wire::background::Push {
            remote: "origin".to_owned(),
            reference: "refs/heads/main".to_owned(),
            known: "b".repeat(40),
        };
        let order = ReviewOrder {
            commit: "a".repeat(40),
            worktree: "/w".to_owned(),
            git_dir: "/w/.git".to_owned(),
            push: Some(push),
            since: String::new(),
            attempts: 0,
            branch: None,
            from: None,
            covers: Vec::new(),
        };
        let line = format!(
            "refs/heads/main {} refs/heads/main {}\n",
            "a".repeat(40),
            "b".repeat(40)
        );
        let ranges =
            crate::hooks::push_ranges(line.as_bytes(), &["origin".to_owned()], &Env::default())
                .unwrap();
        assert_eq!(request(&order).source, Source::Push(ranges));
        let alone = Source::Commit {
            rev: "a".repeat(40),
            parent: None,
        };
        let order = ReviewOrder {
            push: None,
            ..order
        };
        assert_eq!(request(&order).source, alone);
        let several = Source::Branch {
            head: Some("a".repeat(40)),
            base: Some("b".repeat(40)),
        };
        assert_eq!(
            request(&ReviewOrder {
                from: Some("b".repeat(40)),
                ..order
            })
            .source,
            several
        );
    }
}
