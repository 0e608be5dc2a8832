//! The path that every review takes, as a sequence of stages.
//!
//! There is exactly one [`run`]. The command line, the hooks and MCP build a
//! [`ReviewRequest`](crate::request::ReviewRequest) and call it. Each stage takes the result of the
//! stages before it:
//!
//! | stage | file | result |
//! |---|---|---|
//! | open | `open.rs` | [`Opened`]: the repository |
//! | resolve | `source.rs`, `ends.rs` | `Resolved`: the parts of the change, its base and its head |
//! | govern | `governing.rs` | `Governing`: the policy that applies, and the rules of the team |
//! | prepare | `prepare.rs` | `Prepared`: the compiled rules, and the decisions of people |
//! | scan | `rule_results.rs`, `scan.rs` | `RuleResults`: what the rules find |
//! | ask | `models.rs` | `ModelResults`: what the models and the project's tests report |
//! | merge | `merge.rs` | `MergedResults`: all findings, and what each reviewer completed |
//! | judge | `conclude.rs` | [`Review`]: the verdict, and everything that reports show |
//!
//! `models::scan_and_ask` runs the stages scan and ask. It runs them at the same time, if backends
//! are asked or tests run; otherwise it only scans.

mod audit;
mod blobs;
mod conclude;
mod consult;
pub(crate) mod decided;
mod ends;
mod files;
mod frame;
mod governing;
mod interrupt;
mod merge;
mod models;
mod moves;
mod open;
mod pins;
mod place;
mod prepare;
mod record;
pub(crate) mod remembered;
mod resolved;
mod result;
mod rule_results;
mod scan;
mod shard;
mod source;
mod stream;
mod testing;
mod waiving;
mod weakened;

use crate::ai::Script;
use crate::ai::agent::Agent;
use crate::context::Trackers;
use crate::env::Env;
use crate::error::Result;
use crate::git::Repo;
use crate::log::Phases;
use crate::policy::{self, Waive};
use crate::progress::Progress;
use crate::request::{Fetching, ReviewRequest, Source};
use crate::stop::Stop;
pub use consult::Consultation;
pub use decided::Decisions;
pub(crate) use files::Files;
pub(crate) use governing::team::team_rules;
pub(crate) use interrupt::with_signal_handler;
pub use open::{Opened, store_location};
pub use place::{Remote, StoreLocation, remotes};
use prepare::Prepared;
pub use record::{Numbers, Record, Run};
pub use result::{
    MergeInputs, Note, PolicyInfo, Review, SessionRef, SourceInfo, SourceKind, Stat, TestResults,
};
pub(crate) use scan::SCAN_STACK;
pub use shard::ShardDigests;
use std::path::Path;
use std::time::Instant;
pub use stream::{FindingSink, ReviewStart};
pub(crate) use waiving::unused_waiver;

/// The environment of a review, which is not part of the request.
#[derive(Clone, Copy)]
pub struct World<'a> {
    pub env: &'a Env,
    pub progress: &'a dyn Progress,
    pub now: jiff::Timestamp,
    /// Ends the review early. While models are asked, tests run, or commits may be fetched, signals
    /// to the process also end it.
    pub stop: &'a Stop,
    /// Replies that replace those of all backends, for the program's self-test.
    pub script: Option<&'a Script>,
    /// The author's own agent, which is asked in place of the backends.
    pub agent: Option<&'a Agent>,
    /// Receives findings before the review is finished, where they are final by then.
    pub findings: Option<&'a dyn FindingSink>,
    /// Reads issues of forges for models. `None`: no forge is contacted.
    pub trackers: Option<&'a dyn Trackers>,
}

impl std::fmt::Debug for World<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

/// Reviews the requested change.
///
/// # Errors
///
/// `Usage` for invalid input of the caller (no repository, an unknown reference, a malformed
/// policy); `Incomplete` if the change cannot be read at all. If only a part of the change cannot
/// be read, the coverage states that instead.
pub fn run(request: &ReviewRequest, world: &World<'_>) -> Result<Review> {
    let waivers = policy::waivers(&request.waivers, world.env)?;
    let opened = Opened::new(request, world.env)?;
    review(opened, waivers, request, world)
}

/// Reviews the requested change in a repository that is open. Except for its source, files and
/// brief, the request must be the one that opened it: the policy of the checkout is not loaded
/// again.
///
/// # Errors
///
/// As [`run`].
pub fn run_opened(opened: Opened, request: &ReviewRequest, world: &World<'_>) -> Result<Review> {
    let waivers = policy::waivers(&request.waivers, world.env)?;
    review(opened, waivers, request, world)
}

/// Runs the stages, with a handler for signals if they end the review early and not the process.
fn review(
    opened: Opened,
    waivers: Vec<Waive>,
    request: &ReviewRequest,
    world: &World<'_>,
) -> Result<Review> {
    let has_handler = match &request.source {
        // A program that fetches has its own process group, so Ctrl-C reaches it only through this
        // process.
        Source::Ends(ends) => ends.fetching == Fetching::Missing,
        // After a signal, the findings so far are reported.
        Source::History { .. } | Source::Tree(_) => true,
        _ => false,
    };
    let work = || stages(opened, waivers, request, world);
    if has_handler {
        with_signal_handler(world.stop, work)
    } else {
        work()
    }
}

/// Runs the stages after `open`.
fn stages(
    opened: Opened,
    waivers: Vec<Waive>,
    request: &ReviewRequest,
    world: &World<'_>,
) -> Result<Review> {
    let started = Instant::now();
    let mut phases = Phases::start();
    let Opened { repo, checkout } = opened;
    let resolved = source::resolve(repo, request, world)?;
    phases.end("resolve the change");
    let governing = governing::govern(checkout, request, world.env, &resolved)?;
    phases.end("load the policy");
    let mut prepared = Prepared::new((request, world), resolved, governing, waivers)?;
    phases.end("compile the rules");
    let (found, asked) = models::scan_and_ask(&prepared)?;
    phases.end(match asked {
        Some(_) => "scan and ask",
        None => "scan",
    });
    let merged = merge::merge(&mut prepared, found, asked);
    let review = conclude::conclude(prepared, merged, started);
    phases.end("judge");
    Ok(review)
}

/// Returns true if the index equals HEAD.
///
/// # Errors
///
/// Fails if the repository cannot be opened or its index cannot be read.
pub fn is_nothing_staged(dir: &Path, env: &Env) -> Result<bool> {
    Ok(Repo::open(dir, env)?.staged()?.entries.is_empty())
}

/// Returns the day of a time, in UTC.
pub(crate) fn today(now: jiff::Timestamp) -> jiff::civil::Date {
    now.to_zoned(jiff::tz::TimeZone::UTC).date()
}
