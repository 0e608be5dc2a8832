//! Measures how fast reports are written: `cargo bench --bench report`.
//!
//! Reviews a generated file with some thousand findings, and prints milliseconds for every report
//! format, best of several rounds, and the size of the report.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a benchmark prints, and stops when it cannot go on"
)]

use claude_reviewer::env::Env;
use claude_reviewer::progress::Silent;
use claude_reviewer::report::{ReportFormat, Style, render};
use claude_reviewer::request::{Input, ReviewRequest, Source};
use claude_reviewer::review::{World, run};
use claude_reviewer::stop::Stop;
use std::time::Instant;

const ROUNDS: u32 = 9;
/// Files, each with fewer findings of a rule than the limit for one file.
const FILES: usize = 8;
const FINDINGS: usize = 600;

fn main() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let text = "def f(name):\n    return requests.get(url, verify=False)\n".repeat(FINDINGS);
    let names: Vec<_> = (0..FILES).map(|i| format!("sample{i}.py").into()).collect();
    for name in &names {
        let name: &std::path::PathBuf = name;
        std::fs::write(dir.path().join(name), &text).expect("a file");
    }
    let env = Env::from_pairs(dir.path().to_owned(), Vec::<(String, String)>::new());
    let source = Source::Code(names.into_iter().map(Input::File).collect());
    let request = ReviewRequest {
        offline: true,
        ..ReviewRequest::new(source, dir.path().to_owned())
    };
    let stop = Stop::default();
    let world = World {
        env: &env,
        progress: &Silent,
        now: jiff::Timestamp::UNIX_EPOCH,
        stop: &stop,
        script: None,
        agent: None,
        findings: None,
        trackers: None,
    };
    let review = run(&request, &world).expect("a review");
    println!("{} findings", review.findings.len());
    for format in ReportFormat::ALL {
        let mut out = Vec::new();
        let best = (0..ROUNDS)
            .map(|_| {
                out.clear();
                let started = Instant::now();
                render(&review, format, &Style::default(), &mut out).expect("memory takes it");
                started.elapsed().as_secs_f64()
            })
            .fold(f64::INFINITY, f64::min);
        println!(
            "  {:6} {:8.2} ms {:9} bytes",
            format.name(),
            best * 1e3,
            out.len()
        );
    }
}
