//! Tests of two backends in one review. If one is slow or limits its rate, the other one does not
//! wait for it.

use crate::loopback::{Reply, Request, Server, Step};
use crate::support::Repo;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Files of the change, each a separate part.
const FILES: usize = 6;
/// Delay of the slower backend, or the pause that it asks for. Far more than the other one takes
/// for everything.
const PAUSE: Duration = Duration::from_secs(6);

/// Reviews a change of several parts with two servers; returns the report and the time of its end.
fn reviewed(one: &Server, other: &Server, code: i32) -> (Value, Instant) {
    let repo = Repo::new();
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"slower\", \"faster\"]\nmax_files = 1\n\
         [backend.slower]\nkind = \"openai\"\nmodel = \"a\"\nbase_url = \"{}\"\nmax_retries = 1\n\
         [backend.faster]\nkind = \"openai\"\nmodel = \"b\"\nbase_url = \"{}\"\nmax_retries = 1\n",
        one.url(),
        other.url()
    );
    repo.stage(".claude-reviewer.toml", policy).commit("seed");
    for i in 0..FILES {
        repo.stage(
            &format!("src/a{i}.py"),
            format!("value_{i} = compute({i})\n"),
        );
    }
    let report = repo
        .reviewer(&["review", "staged", "--no-save", "--format", "json"])
        .run(code)
        .json();
    (report, Instant::now())
}

/// Checks that the faster server had all its questions before the slower one answered anything.
fn is_not_held_up(slower: &Server, faster: &Server) {
    let first = slower.questions().iter().map(|r| r.at).min().unwrap();
    let questions = faster.questions();
    assert_eq!(questions.len(), FILES);
    for question in &questions {
        assert!(
            question.at < first + PAUSE,
            "it waited for {:?}",
            question.at - first
        );
    }
}

fn reviewed_by(report: &Value, name: &str) -> (Value, usize) {
    let usage = report["usage"].as_array().unwrap();
    let is_it = |u: &&Value| u["backend"] == name;
    (
        report["coverage"]["by_reviewer"][name]["files_reviewed"].clone(),
        usage.iter().filter(is_it).count(),
    )
}

#[test]
fn a_slow_backend_does_not_hold_up_the_one_beside_it() {
    let slower = Server::start(|r| Reply([vec![Step::Wait(PAUSE)], r.review(&[]).0].concat()));
    let faster = Server::start(|r| r.review(&[]));
    let (report, _) = reviewed(&slower, &faster, 0);
    is_not_held_up(&slower, &faster);
    for name in ["slower", "faster"] {
        assert_eq!(
            reviewed_by(&report, name),
            (json!(FILES), 1),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn a_rate_limit_of_one_backend_does_not_hold_up_the_one_beside_it() {
    let seconds = PAUSE.as_secs().to_string();
    let started = Instant::now();
    let slower = Server::start(move |r: &Request| match r.at < started + PAUSE {
        true => Reply::error_with(
            429,
            ("retry-after", &seconds),
            "rate_limit_error",
            "slow down",
        ),
        false => r.review(&[]),
    });
    let faster = Server::start(|r| r.review(&[]));
    let (report, _) = reviewed(&slower, &faster, 0);
    is_not_held_up(&slower, &faster);
    for name in ["slower", "faster"] {
        assert_eq!(
            reviewed_by(&report, name),
            (json!(FILES), 1),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn a_backend_whose_limit_outlasts_the_review_is_reported_beside_the_other_one() {
    let limited = |_: &Request| {
        Reply::error_with(
            429,
            ("retry-after", "3600"),
            "rate_limit_error",
            "slow down",
        )
    };
    let slower = Server::start(limited);
    let faster = Server::start(|r| r.review(&[]));
    let started = Instant::now();
    let (report, ended) = reviewed(&slower, &faster, 3);
    assert!(
        ended - started < Duration::from_secs(60),
        "{:?}",
        ended - started
    );
    assert_eq!(
        reviewed_by(&report, "faster"),
        (json!(FILES), 1),
        "{report:#}"
    );
    assert_eq!(
        report["coverage"]["by_reviewer"]["slower"]["files_reviewed"], 0,
        "{report:#}"
    );
    let failed = report["coverage"]["failed"].to_string();
    assert!(
        failed.contains("slower") && failed.contains("3600 s"),
        "{failed}"
    );
}
