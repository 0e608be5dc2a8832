//! Properties over generated inputs. `fuzz/` runs the same functions under libFuzzer.
//!
//! The inputs are the same in every run. `PROPERTY_CASES=N` sets their number for each property,
//! `PROPERTY_SEED=N` selects others; a failure prints the seed and the smallest failing input that
//! was found.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on fails; helpers count as code for these lints"
)]

mod check;
mod corpus;
mod metamorphic;
mod random;

use random::{Random, shrink};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Cases of each property without `PROPERTY_CASES`.
const CASES: usize = 500;
/// Runs of a property to reduce a failing input, at most.
const SHRINK_TRIES: usize = 4_000;

/// Properties that are violated, with the reason. The goal is an empty list; all other properties
/// are required.
const KNOWN_GAPS: &[(&str, &str)] = &[];

/// Reads a number from the environment.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |v| {
        v.parse()
            .unwrap_or_else(|_| panic!("{name}={v} is not a number"))
    })
}

fn seed() -> u64 {
    setting("PROPERTY_SEED", 1) as u64
}

/// Runs a property, and catches a panic of the code under test.
fn outcome(property: check::Property, data: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| property(data))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!(
            "panic: {}",
            text.or(panic.downcast_ref::<&str>().copied())
                .unwrap_or("no message")
        ))
    })
}

/// Runs the property of that name over generated inputs.
#[track_caller]
fn holds(name: &str, share: usize) {
    let (_, property) = check::PROPERTIES
        .iter()
        .find(|(n, _)| *n == name)
        .expect("the name of a property");
    let (cases, seed) = (setting("PROPERTY_CASES", CASES) / share, seed());
    for case in 0..cases {
        let data = corpus::input(name, &mut Random::of_case(seed, case));
        let Err(first) = outcome(*property, &data) else {
            continue;
        };
        if let Some((_, why)) = KNOWN_GAPS.iter().find(|(n, _)| *n == name) {
            println!("property {name}: known gap, at case {case} of seed {seed}: {why}");
            return;
        }
        let smallest = shrink(&data, SHRINK_TRIES, |d| outcome(*property, d).is_err());
        let why = outcome(*property, &smallest)
            .err()
            .unwrap_or_else(|| first.clone());
        panic!(
            "{name}, seed {seed}, case {case}: {why}\n  smallest input: b\"{}\"\n  first: {first}",
            smallest.escape_ascii()
        );
    }
    println!("property {name}: {cases} cases, seed {seed}");
}

#[test]
fn a_patch_is_rejected_or_every_line_of_it_is_read() {
    holds("patch", 1);
}

#[test]
fn a_policy_file_is_rejected_by_line_or_reads_the_same_again() {
    holds("policy", 1);
}

#[test]
fn an_event_names_full_commits_or_is_rejected() {
    holds("event", 1);
}

#[test]
fn no_beginning_of_a_reply_passes_for_a_reply() {
    holds("reply", 1);
}

#[test]
fn a_suppression_excuses_only_its_rule_on_its_line() {
    holds("suppression", 1);
}

#[test]
fn hid_01_bytes_around_a_blocking_line_never_let_it_pass() {
    holds("content", 2);
}

#[test]
fn flt_02_a_store_returns_a_signed_entry_or_nothing() {
    check::shared_sample_counts().unwrap();
    holds("shared", 1);
}
