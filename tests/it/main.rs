//! The integration tests: the real binary on real repositories, in one test program.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "a test that cannot go on fails; helpers count as code for these lints"
)]

mod apply;
mod architecture;
mod background;
mod batch;
mod bounds;
mod cache;
mod certificate;
mod change;
mod ci;
mod claims;
mod claude;
mod cli;
mod content;
mod context;
mod counsel;
mod coverage;
mod diff;
mod dispositions;
mod docs_examples;
mod doctor;
mod exempt;
mod fences;
mod fix;
mod forge;
mod formats;
mod git;
mod governing;
mod hidden;
mod history;
mod hooks;
mod init;
mod judge;
mod leaks;
mod loopback;
mod mcp;
mod model_answers;
mod models;
mod net;
mod outbound;
mod paths;
mod paying;
mod policy;
mod prompt;
mod receipt;
mod records;
mod reference;
mod related;
mod report;
mod reproduce;
mod review;
mod rounds;
mod rules;
mod secrets;
mod shards;
mod shared_cache;
mod store;
mod support;
mod team;
mod terminal;
mod tools;
mod tree;
mod tree_history;
mod triage;
mod verdicts;
