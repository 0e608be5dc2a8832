//! `status`: reviews in the background and batches at providers, for people and for programs.

use super::Context;
use super::format::Format;
use super::policy::PolicyFiles;
use super::stdout::print;
use crate::NAME;
use crate::ai::batch::cancel::{self, KnownBatch};
use crate::background::{self, Station, Stopped, Today, View};
use crate::error::{ExitStatus, Result};
use crate::git::Repo;
use crate::hooks::{Hook, install};
use crate::policy::{Policy, PostCommit};
use crate::text::plural;
use crate::untrusted::Inert;
use crate::wire::background::{
    BackgroundEnd, BackgroundStatus, Cost, Last, RecordedBatch, Running, VERSION, Waiting,
};

/// Digits of a commit ID.
const SHORT: usize = 12;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Background reviews start after a commit if [hooks] post_commit = \"background\". Batches are \
    submitted by review --batch."
)]
pub(super) struct StatusArgs {
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Text", "Versioned JSON"))]
    format: Format,
    /// Stop the review that runs, and drop the commits that wait
    #[arg(long, conflicts_with = "start")]
    stop: bool,
    /// Start the review of the commits that wait
    #[arg(long)]
    start: bool,
    /// Cancel a batch of this repository at its provider; all for every one. Its results so far stay usable
    #[arg(long, value_name = "ID", conflicts_with_all = ["start", "stop"])]
    cancel_batch: Option<String>,
}

pub(super) fn run(context: &Context, args: &StatusArgs) -> Result<ExitStatus> {
    let repo = Repo::open(&context.dir, &context.env)?;
    let policy = PolicyFiles::find(context, None)?.load(context)?.policy;
    // Its folder is created, so that the path of the log is right.
    let station = Station::open(&repo, &context.env)?;
    let mut done = Vec::new();
    let mut started = None;
    if args.stop {
        done.push(stopped(&station.stop()?));
    }
    if args.start {
        started = station.resume(&context.env)?;
        done.push(match &started {
            Some(commit) => format!("started the review of {}", short(commit)),
            None => "no commit waits".to_owned(),
        });
    }
    let mut error = None;
    if let Some(id) = &args.cancel_batch {
        let canceled = cancel::cancel(&repo, &context.env, &policy, id)?;
        done.extend(canceled.lines);
        error = canceled.error;
    }
    let batches = cancel::known(&repo, &context.env)?;
    let view = station.view()?;
    let today = station.today(jiff::Timestamp::now())?;
    let status = status(&repo, &policy, (view, batches), today);
    let text = match args.format {
        Format::Human => human(&status, &policy, &done, started.as_deref()),
        Format::Json => status.to_text(),
    };
    let printed = print(&text)?;
    error.map_or(Ok(printed), Err)
}

/// Joins everything that the command reports.
fn status(
    repo: &Repo,
    policy: &Policy,
    (view, batches): (View, Vec<KnownBatch>),
    today: Today,
) -> BackgroundStatus {
    let View { queue, log } = view;
    BackgroundStatus {
        schema_version: VERSION,
        post_commit: policy.hooks.post_commit.name().to_owned(),
        is_hook_installed: repo
            .hooks()
            .is_ok_and(|hooks| install::is_installed(&hooks.path, Hook::PostCommit)),
        running: queue.running,
        pending: queue.waiting,
        pending_later: queue.later,
        last: queue.last,
        batches: batches.into_iter().map(recorded).collect(),
        cost: Cost {
            day: today.day,
            spent_usd: today.spent,
            reserved_usd: today.reserved,
            max_usd: policy.hooks.max_cost_per_day,
        },
        log: log.display().to_string(),
    }
}

/// Returns a batch as the answer names it.
fn recorded(batch: KnownBatch) -> RecordedBatch {
    RecordedBatch {
        id: batch.id,
        record: batch.token,
        backend: Some(batch.backend).filter(|name| !name.is_empty()),
        is_unproven: batch.is_unproven,
        requests: batch.requests,
        submitted: batch.submitted.to_string(),
    }
}

/// Returns one line for each fact. `started` is the commit whose review was just started, and may
/// not run yet.
fn human(
    status: &BackgroundStatus,
    policy: &Policy,
    done: &[String],
    started: Option<&str>,
) -> String {
    let mut lines: Vec<String> = done.to_vec();
    lines.push(format!("background reviews: {}", mode(status, policy)));
    let starting = status.pending.as_ref();
    let starting =
        starting.filter(|w| status.running.is_none() && started == Some(w.order.commit.as_str()));
    lines.push(match (&status.running, starting) {
        (Some(running), _) => self::running(running),
        (None, Some(w)) => format!("running: commit {}, starting", short(&w.order.commit)),
        (None, None) => "running: nothing".to_owned(),
    });
    let is_idle = status.running.is_none();
    let waiting = status.pending.as_ref().filter(|_| starting.is_none());
    lines.push(waiting.map_or_else(|| "pending: nothing".to_owned(), |w| pending(w, is_idle)));
    lines.extend(status.pending_later.iter().map(|w| pending(w, false)));
    lines.push(
        status
            .last
            .as_ref()
            .map_or_else(|| "last: no review yet".to_owned(), last),
    );
    lines.extend(status.batches.iter().map(batch));
    let Cost {
        day,
        spent_usd,
        reserved_usd,
        max_usd,
    } = &status.cost;
    let reserved = if *reserved_usd > 0.0 {
        format!(", and {reserved_usd:.2} USD reserved")
    } else {
        String::new()
    };
    lines.push(format!(
        "cost on {day} (UTC): {spent_usd:.2} of {max_usd:.2} USD{reserved}"
    ));
    lines.push(format!("log: {}", status.log));
    lines
        .iter()
        .map(|line| format!("{}\n", Inert::new(line)))
        .collect()
}

fn mode(status: &BackgroundStatus, policy: &Policy) -> String {
    match policy.hooks.post_commit {
        PostCommit::Off => {
            "off (hint: set [hooks] post_commit = \"background\" in your configuration)".to_owned()
        }
        // A hook manager may run the review; the state of earlier reviews shows that.
        PostCommit::Background if !status.is_hook_installed && is_unused(status) => {
            "on, but no post-commit hook is installed here (hint: claude-reviewer install-hooks)"
                .to_owned()
        }
        PostCommit::Background if policy.review.backends.is_empty() => {
            "on, but no backend is configured (hint: set [review] backends)".to_owned()
        }
        PostCommit::Background => format!("on, by {}", policy.review.backends.join(", ")),
    }
}

/// Returns true if no commit was ever queued.
fn is_unused(status: &BackgroundStatus) -> bool {
    status.running.is_none() && status.pending.is_none() && status.last.is_none()
}

fn running(running: &Running) -> String {
    let Running {
        order,
        pid,
        since,
        is_stopping,
        ..
    } = running;
    let stopping = if *is_stopping { ", stopping" } else { "" };
    format!(
        "running: commit {}, process {pid}, since {since}{stopping}",
        short(&order.commit)
    )
}

/// `is_idle` is true if no running review would take the commit next.
fn pending(waiting: &Waiting, is_idle: bool) -> String {
    let Waiting { order, held } = waiting;
    let why = match (held, order.attempts) {
        (Some(why), _) => format!("; {why}"),
        (None, 0) => format!(", since {}", order.since),
        (None, _) => "; its review ended before it was complete".to_owned(),
    };
    let hint = if is_idle {
        " (hint: claude-reviewer status --start)"
    } else {
        ""
    };
    format!("pending: commit {}{why}{hint}", short(&order.commit))
}

fn last(last: &Last) -> String {
    let commit = short(&last.commit);
    let result = last
        .verdict
        .map_or(last.ending.name(), background::verdict_name);
    let stored = last
        .review_id
        .as_ref()
        .map_or_else(String::new, |id| format!(", stored as {id}"));
    let cost = last
        .cost_usd
        .filter(|usd| *usd > 0.0)
        .map_or_else(String::new, |usd| format!(", {usd:.4} USD"));
    let note = last
        .note
        .as_ref()
        .map_or_else(String::new, |note| format!(": {note}"));
    let is_done = last.ending == BackgroundEnd::Reviewed && last.review_id.is_some();
    let hint = match &last.review_id {
        Some(id) if is_done => format!(" (claude-reviewer history {id})"),
        _ => String::new(),
    };
    format!("last: commit {commit}, {result}{cost}{stored}{note}{hint}")
}

/// Returns the line about a batch.
fn batch(batch: &RecordedBatch) -> String {
    let RecordedBatch {
        id,
        record,
        backend,
        is_unproven,
        requests,
        submitted,
    } = batch;
    let of = backend
        .as_ref()
        .map_or_else(String::new, |name| format!(" of {name}"));
    let named = match id {
        Some(id) if *is_unproven => format!("batch: {id}{of}, not confirmed"),
        Some(id) => format!("batch: {id}{of}"),
        None => format!("batch: without an ID{of}, record {record}"),
    };
    let requests = plural(*requests, "request");
    // The record does not cancel a batch that may be of another run.
    let id = id.as_ref().filter(|_| !is_unproven).unwrap_or(record);
    format!("{named}, {requests}, since {submitted} (to cancel: {NAME} status --cancel-batch {id})")
}

fn stopped(end: &Stopped) -> String {
    match end {
        Stopped::Nothing => "nothing was running or waiting".to_owned(),
        Stopped::Waiting(commit) => format!("dropped commit {}, which was waiting", short(commit)),
        Stopped::Running(commit) => format!("stopped the review of {}", short(commit)),
        Stopped::Killed(commit) => {
            format!("killed the review of {}, which did not stop", short(commit))
        }
    }
}

fn short(commit: &str) -> &str {
    commit.get(..SHORT).unwrap_or(commit)
}
