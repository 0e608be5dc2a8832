//! The integration tests: the real binary on real repositories, in one test program.

mod architecture;
mod cli;
mod diff;
mod git;
mod hooks;
mod policy;
mod report;
mod review;
mod rules;
mod support;
