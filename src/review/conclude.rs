//! The last stage of a review: computes the verdict, and assembles the result.

use super::merge::MergedResults;
use super::prepare::Prepared;
use super::record::{Record, RecordPiece};
use super::result::MergeInputs;
use super::waiving::unused;
use super::{Review, decided};
use crate::request::Authority;
use crate::verdict::{Outcome, TestOutcome, exit_status, judge};
use std::time::Instant;

/// Judges the merged results. `started` is the time at which the stage resolve began: the duration
/// in the report does not include opening the repository.
pub(super) fn conclude(prepared: Prepared<'_>, merged: MergedResults, started: Instant) -> Review {
    let MergedResults {
        mut findings,
        unlisted,
        coverage,
        notes,
        models,
        tests,
        context,
        stat,
        first_change,
        mut pieces,
        is_nothing,
        ..
    } = merged;
    let policy = prepared.policy();
    let tested = tests.as_ref().map(|t| t.outcome);
    let is_nothing = is_nothing && tested.is_none_or(|t| t == TestOutcome::Passed);
    let verdict = judge(&mut findings, &unlisted, &coverage, tested, policy);
    let signal = prepared.world.stop.signal();
    let outcome = match (is_nothing, coverage.is_complete()) {
        _ if signal.is_some() => Outcome::Cancelled,
        (true, true) => Outcome::NothingToReview,
        (_, true) => Outcome::Reviewed,
        (_, false) => Outcome::Incomplete,
    };
    let exit = match signal {
        None => exit_status(verdict, policy.on_incomplete, prepared.request.on_block),
        Some(signal) => signal.into(),
    };
    let head = prepared.resolved.info.head.as_deref();
    let reviewed = (prepared.place.as_ref(), head);
    let is_elsewhere = decided::is_elsewhere(prepared.repo(), reviewed, &findings);
    let mut merge_inputs = MergeInputs {
        on_block: prepared.request.on_block,
        is_gate: prepared.request.authority == Authority::Base,
        ..MergeInputs::default()
    };
    if prepared.resolved.shard.is_some() {
        merge_inputs.order = RecordPiece::order(&pieces);
        merge_inputs.unused_waivers = unused(&findings, &prepared.waivers);
        merge_inputs.digests = prepared.shard_digests();
    }
    Review {
        outcome,
        verdict,
        exit,
        findings,
        unlisted,
        notes,
        coverage,
        stat,
        first_change,
        rules_hash: prepared.rules.hash().to_owned(),
        rules_only: prepared.required_backends().is_empty(),
        models,
        context,
        tests,
        timestamp: prepared.world.now,
        duration: started.elapsed(),
        is_elsewhere,
        unrecorded: pieces.iter_mut().filter_map(|p| p.numbers.take()).collect(),
        merge_inputs,
        record: prepared.recorder.as_ref().map(|_| Record::of(pieces)),
        session: None,
        source: prepared.resolved.info,
        policy: prepared.governing.info,
        place: prepared.place,
        decisions: prepared.decisions,
        judged_by: Box::new(prepared.governing.policy),
    }
}
