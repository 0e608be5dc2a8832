//! The integration tests: the real binary on real repositories, in one test program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on fails; helpers count as code for these lints"
)]

mod architecture;
mod cache;
mod certificate;
mod change;
mod ci;
mod claims;
mod claude;
mod cli;
mod counsel;
mod coverage;
mod diff;
mod doctor;
mod forge;
mod formats;
mod git;
mod governing;
mod history;
mod hooks;
mod judge;
mod leaks;
mod loopback;
mod mcp;
mod models;
mod net;
mod outbound;
mod policy;
mod prompt;
mod receipt;
mod records;
mod report;
mod review;
mod rounds;
mod rules;
mod secrets;
mod store;
mod support;
mod tools;
mod verdicts;
