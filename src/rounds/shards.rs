//! Merges the reports of the shards of one review into the review that a single run would have.
//! Pure.
//!
//! Each reviewed file is in exactly one shard, so findings, coverage and counts are joined, not
//! compared. What a shard reports about the change as a whole is in the report of each of them, and
//! stays once. A shard that is missing, given twice, or of another review makes the merged review
//! incomplete.

mod contradiction;
mod given;
mod key;
mod parts;
mod plausible;
mod rebuilt;
#[cfg(test)]
mod tests;

pub use given::GivenReport;

use crate::error::{Error, Result};
use crate::request::{OnBlock, OnIncomplete};
use crate::review::{MergeInputs, Review};
use crate::rounds::recall;
use crate::verdict::{FailureCause, Outcome, Verdict, exit_status};
use crate::wire;
use key::ReviewKey;
use std::collections::BTreeMap;

/// Returns the review of a report of a whole review.
pub fn whole(report: &wire::Report) -> Review {
    recall::review(report, &[])
}

/// Merges the reports of the shards of one review.
///
/// Most of the reports decide which review that is; of two with as many, the first one given. A
/// shard without a report, a second report of a shard, and a report of another review are failures
/// of the coverage. The policy cannot accept them.
///
/// # Errors
///
/// Usage: no report is of a shard, or another version of the program wrote them.
pub fn merge(given: Vec<GivenReport>) -> Result<Review> {
    let key = ReviewKey::of_most(&given).ok_or_else(without_shards)?;
    if key.version != env!("CARGO_PKG_VERSION") {
        return Err(other_version(&given, &key));
    }
    let sorted = SortedShards::of(given, &key);
    let first = sorted.reports.first().ok_or_else(without_shards)?;
    let mut merged = join(&sorted.reports, rebuilt::review(&first.first));
    let is_lacking = !sorted.failures.is_empty();
    for cause in sorted.failures {
        merged.coverage.fail(cause);
    }
    merged.coverage.tidy();
    conclude(&mut merged, &sorted.reports, is_lacking);
    Ok(merged)
}

fn without_shards() -> Error {
    Error::usage("cannot merge: no report of a shard is given")
}

/// Returns the error about reports of another version: what they state for a merge is not known.
fn other_version(given: &[GivenReport], key: &ReviewKey) -> Error {
    let file = given.iter().find(|g| key.is_of(g)).map(|g| g.file.as_str());
    Error::usage(format!(
        "cannot merge the report {}: version {} wrote it, and this is version {}",
        file.unwrap_or_default(),
        key.version,
        env!("CARGO_PKG_VERSION")
    ))
    .hint_person("use one version of claude-reviewer for the shards and for the merge")
}

/// The reports of one review, and what is wrong with the others.
struct SortedShards {
    /// By the number of the shard. The further reports of a shard are beside the first: what blocks
    /// in one of them blocks.
    reports: Vec<ShardReports>,
    failures: Vec<FailureCause>,
}

/// The reports of one shard.
struct ShardReports {
    first: wire::Report,
    further: Vec<wire::Report>,
}

impl SortedShards {
    /// Sorts the given reports by shard.
    fn of(given: Vec<GivenReport>, key: &ReviewKey) -> Self {
        let mut failures = Vec::new();
        let mut shards: BTreeMap<u32, ShardReports> = BTreeMap::new();
        for g in given {
            let Some(shard) = g.shard().filter(|_| key.is_of(&g)) else {
                failures.push(FailureCause::ForeignShard {
                    what: key.difference(&g),
                    file: g.file,
                });
                continue;
            };
            match shards.get_mut(&shard.index()) {
                Some(known) => {
                    failures.push(FailureCause::DuplicateShard {
                        index: shard.index(),
                        of: shard.of(),
                        file: g.file,
                    });
                    known.further.push(g.report);
                }
                None => {
                    let (first, further) = (g.report, Vec::new());
                    shards.insert(shard.index(), ShardReports { first, further });
                }
            }
        }
        failures.extend(missing(&shards, key.of));
        Self {
            reports: shards.into_values().collect(),
            failures,
        }
    }
}

/// Returns the failures of the shards that have no report. Shards that follow each other are one
/// failure.
fn missing(shards: &BTreeMap<u32, ShardReports>, of: u32) -> Vec<FailureCause> {
    let ends = shards.keys().copied().chain([of.saturating_add(1)]);
    let mut next = 1;
    let mut out = Vec::new();
    for known in ends {
        let last = known.saturating_sub(1);
        match last.saturating_add(1).saturating_sub(next) {
            0 => {}
            1 => out.push(FailureCause::MissingShard { index: next, of }),
            _ => out.push(FailureCause::MissingShards {
                first: next,
                last,
                of,
            }),
        }
        next = known.saturating_add(1);
    }
    out
}

/// Joins the reviews of all shards, without a verdict. `first` has what is the same in all of them.
fn join(shards: &[ShardReports], first: Review) -> Review {
    let reviews: Vec<Review> = shards.iter().map(|s| rebuilt::review(&s.first)).collect();
    let further: Vec<Review> = shards
        .iter()
        .flat_map(|s| &s.further)
        .map(rebuilt::review)
        .collect();
    let mut out = first;
    out.coverage = parts::coverage(&reviews);
    out.notes = parts::notes(&reviews);
    out.models = parts::models(&reviews);
    out.context = parts::context(&reviews);
    out.tests = parts::tests(&reviews);
    out.stat = parts::stat(&reviews);
    out.first_change = parts::first_change(&reviews);
    out.record = parts::record(&reviews);
    out.rules_only = reviews.iter().all(|r| r.rules_only);
    out.timestamp = reviews
        .iter()
        .map(|r| r.timestamp)
        .min()
        .unwrap_or_default();
    out.duration = reviews.iter().map(|r| r.duration).max().unwrap_or_default();
    out.source.shard = None;
    out.session = None;
    out.merge_inputs = MergeInputs {
        is_gate: reviews.iter().all(|r| r.merge_inputs.is_gate),
        ..MergeInputs::default()
    };
    let effects = effects(shards);
    let lists = reviews.iter().chain(&further).map(|r| r.findings.clone());
    let unlisted = reviews.iter().map(|r| r.unlisted);
    (out.findings, out.unlisted) = parts::findings(lists.collect(), unlisted, &effects);
    out
}

/// Returns what the policy makes of each finding.
fn effects(shards: &[ShardReports]) -> parts::EffectsOfFindings {
    let reports = shards
        .iter()
        .flat_map(|s| std::iter::once(&s.first).chain(&s.further));
    let all = reports.flat_map(|report| {
        let facts = report.merge.iter().flat_map(|m| &m.findings);
        report.findings.iter().zip(facts)
    });
    all.map(|(f, facts)| ((f.commit.clone(), f.fingerprint.clone()), facts.effect))
        .collect()
}

/// Computes the verdict, the outcome and the exit code. `is_lacking` is true if shards are missing,
/// given twice, or foreign: the merged review is then never complete, and the policy of the review
/// does not let that through.
fn conclude(merged: &mut Review, shards: &[ShardReports], is_lacking: bool) {
    let all = || {
        shards
            .iter()
            .flat_map(|s| std::iter::once(&s.first).chain(&s.further))
    };
    let is = |verdict| all().any(|r| r.verdict == verdict);
    let is_cancelled = all().any(|r| r.outcome == wire::Outcome::Cancelled);
    if (is_cancelled || is(wire::Verdict::Incomplete)) && merged.coverage.is_complete() {
        // A second report of a shard is incomplete, and its parts are not in the coverage. Of a
        // cancelled review it is not known what it would have found.
        merged.coverage.fail(FailureCause::Stopped);
    }
    let blocks = is(wire::Verdict::Block)
        || merged.unlisted.total_blocking() > 0
        || merged.findings.iter().any(|f| f.blocking);
    let warns = is(wire::Verdict::Warn) || merged.coverage.is_truncated();
    let is_complete = merged.coverage.is_complete();
    merged.verdict = match (blocks, is_complete, warns) {
        (true, _, _) => Verdict::Block,
        (false, false, _) => Verdict::Incomplete,
        (false, true, true) => Verdict::Warn,
        (false, true, false) => Verdict::Pass,
    };
    let is_nothing = all().all(|r| r.outcome == wire::Outcome::NothingToReview);
    merged.outcome = match (is_complete, is_nothing) {
        (false, _) => Outcome::Incomplete,
        (true, true) => Outcome::NothingToReview,
        (true, false) => Outcome::Reviewed,
    };
    let facts = || all().filter_map(|r| r.merge.as_deref());
    let on_block = match facts().all(|f| f.exit_zero) {
        true => OnBlock::ExitZero,
        false => OnBlock::Fail,
    };
    let on_incomplete = match !is_lacking && facts().all(|f| f.incomplete_passes) {
        true => OnIncomplete::Warn,
        false => OnIncomplete::Fail,
    };
    merged.judged_by.on_incomplete = on_incomplete;
    merged.exit = exit_status(merged.verdict, on_incomplete, on_block);
}
