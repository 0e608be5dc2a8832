//! Reviews in the background, as hooks start them and wait for them.

use super::{Context, signals};
use crate::background::{self, Station};
use crate::error::{ExitStatus, Result};
use crate::forge::Issues;
use crate::git::Repo;
use crate::hooks;
use crate::policy::{HookMode, PostCommit};
use crate::process::detached;
use crate::request::{Hook, ReviewRequest, Source};
use crate::review::{self, Review};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::verdict::Outcome;
use std::io::Write as _;
use std::time::Duration;

/// Digits of a commit ID in messages.
const SHORT: usize = 12;

/// Arguments of the process that reviews.
#[derive(Debug, clap::Args)]
pub(super) struct JobArgs {
    /// Name of the folder of its repository
    station: String,
}

/// Starts a review of the new commit, and does not wait for it. The commit exists already, so an
/// error is only a line on standard error.
pub(super) fn after_commit(context: &Context) -> ExitStatus {
    if let Err(e) = start(context) {
        let why = Inert::new(e.on_one_line());
        print(&format!(
            "note: the commit is not reviewed in the background: {why}\n"
        ));
    }
    ExitStatus::Pass
}

fn start(context: &Context) -> Result<()> {
    let env = &context.env;
    if hooks::skipped(env) || env.is_ci() {
        return Ok(());
    }
    let repo = Repo::open(&context.dir, env)?;
    if repo.worktree().is_none() || repo.underway().is_some() {
        return Ok(());
    }
    let (_, policy) =
        review::store_location(&ReviewRequest::new(Source::Auto, context.dir.clone()), env)?;
    if policy.hooks.post_commit == PostCommit::Off || policy.review.backends.is_empty() {
        return Ok(());
    }
    let Some(order) = background::order(&repo, jiff::Timestamp::now())? else {
        return Ok(());
    };
    Station::open(&repo, env)?.submit(&repo, order, env)
}

/// Reviews the queued commits. Runs detached; standard error is a log.
pub(super) fn job(context: &Context, args: &JobArgs) -> Result<ExitStatus> {
    detached::leave();
    let stop = Stop::default();
    let job = background::ReviewJob {
        env: &context.env,
        stop: &stop,
        leave: &|| signals::leave(&stop),
        trackers: Some(&Issues),
    };
    for line in signals::heard(&stop, || {
        background::work(&Station::named(&args.station, &context.env)?, &job)
    })? {
        print(&format!("{}\n", Inert::new(line)));
    }
    Ok(signals::ended(&stop).unwrap_or(ExitStatus::Pass))
}

/// A push that is reviewed while background reviews may run.
#[derive(Debug)]
pub(super) struct Push {
    station: Station,
    commits: Vec<String>,
}

/// Waits for a background review of a pushed commit, so that its paid answers are used. `None` if
/// there is nothing to wait for and nothing to record.
pub(super) fn before_push(context: &Context, request: &ReviewRequest) -> Option<Push> {
    let Source::Push(ranges) = &request.source else {
        return None;
    };
    if request.hook != Some(Hook::PrePush) || request.offline {
        return None;
    }
    let repo = Repo::open(&context.dir, &context.env).ok()?;
    // A push is reviewed whether or not the state of background reviews can be read.
    let station = Station::find(&repo, &context.env).ok().flatten()?;
    let commits: Vec<String> = ranges
        .iter()
        .filter_map(|r| repo.resolve(&r.local).ok())
        .map(|id| id.to_string())
        .collect();
    let running = station
        .view()
        .ok()?
        .queue
        .running
        .filter(|r| commits.contains(&r.order.commit));
    if let Some(running) = running {
        let (_, policy) = review::store_location(request, &context.env).ok()?;
        if policy.hooks.pre_push == HookMode::Full {
            wait(&station, &running.order.commit, policy.review.timeout);
        }
    }
    Some(Push { station, commits })
}

fn wait(station: &Station, commit: &str, most: Duration) {
    let short = &commit[..commit.len().min(SHORT)];
    print(&format!(
        "claude-reviewer: waiting up to {} s for the background review of {short} (claude-reviewer status)\n",
        most.as_secs()
    ));
    if !station.wait_for(commit, most).unwrap_or(true) {
        print("claude-reviewer: it still runs; reviewing now\n");
    }
}

/// Records that a push was reviewed, so that its commits are not reviewed again.
pub(super) fn after_push(push: Option<Push>, review: &Review) {
    let Some(Push { station, commits }) = push else {
        return;
    };
    if review.outcome == Outcome::Reviewed && !review.models.asked.is_empty() {
        // If this fails, the review of the commit finds the answers in the cache.
        let _ = station.pushed(&commits);
    }
}

/// Prints a line on standard error.
fn print(text: &str) {
    // Standard error may be closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
