//! Tests of the whole program with a model server: findings block, faults never pass a change, keys
//! stay secret.

use super::{KINDS, canary};
use crate::certificate::Certificate;
use crate::loopback::{
    Dialect, Reply, Request, Says, Server, Step, closed_port, event, events, finding, head,
};
use crate::support::{Repo, Run, line_with_key};
use claude_reviewer::policy::BackendKind;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const LINE: &str = "let ratio = total / count;";

/// Creates a repository with a line for a finding of a model, and none for the rules.
fn repo(policy: &str) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# A project\n");
    repo.write(".claude-reviewer.toml", policy);
    repo.git(&["add", "-A"]);
    repo.commit("seed");
    repo.stage(
        "src/ratio.rs",
        format!("pub fn ratio(total: u32, count: u32) -> u32 {{\n    {LINE}\n    ratio\n}}\n"),
    );
    repo
}

fn bug() -> Value {
    finding("src/ratio.rs", 2, LINE)
}

/// Reviews the staged change with a server of a kind.
fn review(kind: BackendKind, server: &Server, code: i32) -> Value {
    repo(&server.policy(kind.name())).review_json(&["staged"], code)
}

#[test]
fn a_finding_of_each_provider_is_verified_and_blocks() {
    for kind in KINDS {
        let server = Server::start(|r| r.review(&[bug()]));
        let report = review(kind, &server, 1);
        let found = &report["findings"][0];
        assert_eq!(
            (&found["origin"], &found["file"], &found["line"]),
            (&json!(kind.name()), &json!("src/ratio.rs"), &json!(2))
        );
        assert_eq!(
            (&found["blocking"], &report["outcome"]),
            (&json!(true), &json!("reviewed")),
            "{report}"
        );
        let usage = &report["usage"][0];
        assert_eq!(
            (
                &usage["backend"],
                &usage["requests"],
                &usage["input_tokens"]
            ),
            (&json!(kind.name()), &json!(2), &json!(2000)),
            "the review, and a second look at the claim"
        );
        assert_eq!(server.questions().len(), 2);
    }
}

#[test]
fn a_change_that_nobody_objects_to_passes() {
    for kind in KINDS {
        let server = Server::start(|r| r.review(&[]));
        let report = review(kind, &server, 0);
        assert_eq!(
            (&report["verdict"], &report["coverage"]["files_reviewed"]),
            (&json!("pass"), &json!(1)),
            "{report}"
        );
    }
}

/// A fault of a server.
type Fault = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// Returns every fault of a server, for a kind; `None` for a port without a server.
fn faults(kind: BackendKind) -> Vec<(&'static str, Option<Fault>)> {
    let fault = |f: fn(&Request) -> Reply| -> Option<Fault> { Some(Box::new(f)) };
    let mut all = vec![
        ("NET-01", None),
        (
            "NET-03",
            fault(|_| Reply::error_with(429, ("retry-after", "3600"), "rate_limit_error", "x")),
        ),
        (
            "NET-04",
            fault(|_| Reply::error(429, "rate_limit_error", "x")),
        ),
        ("NET-05", fault(|_| Reply::error(503, "x", "x"))),
        ("NET-06", fault(|_| Reply::error(401, "x", "x"))),
        ("NET-06", fault(|_| Reply::error(413, "x", "x"))),
        (
            "NET-07",
            fault(|r| Reply::raw(&r.review(&[]).bytes()[..120]).then(Step::Reset)),
        ),
        (
            "NET-08",
            fault(|r| Reply::raw(&r.review(&[]).bytes()[..120]).then(Step::Close)),
        ),
        (
            "NET-10",
            fault(|_| {
                Reply::raw([b"HTTP/1.1 200 OK\r\n".to_vec(), b"x: y\r\n".repeat(10_000)].concat())
                    .then(Step::Close)
            }),
        ),
        (
            "NET-12",
            fault(|_| Reply::with(200, &[("content-type", "application/json")], b"\xff\x00")),
        ),
        (
            "NET-13",
            fault(|_| {
                Reply::with(
                    200,
                    &[("content-type", "text/html")],
                    b"<html>log in</html>",
                )
            }),
        ),
        (
            "NET-17",
            fault(|_| Reply::with(302, &[("location", "http://127.0.0.1:1/")], b"")),
        ),
        ("NET-20", fault(|r| r.calls(&[("run", json!({}))]))),
        ("OUT-01", fault(|r| r.text("Looks good to me."))),
        (
            "OUT-09",
            fault(|r| {
                let mut document = r.document(&[]);
                document["files_reviewed"] = json!([]);
                r.text(&document.to_string())
            }),
        ),
        (
            "OUT-11",
            fault(|r| r.text(&format!("{}{}", r.document(&[]), r.document(&[])))),
        ),
        (
            "OUT-12",
            fault(|r| r.text(&r.document(&[]).to_string().replace(&r.nonce(), "0"))),
        ),
        (
            "empty",
            fault(|_| Reply::with(200, &[("content-type", "application/json")], b"{}")),
        ),
    ];
    let stops = match kind {
        BackendKind::Anthropic => ["max_tokens", "refusal"],
        BackendKind::OpenAi => ["length", "content_filter"],
        _ => ["MAX_TOKENS", "SAFETY"],
    };
    for stop in stops {
        all.push((
            "NET-15",
            Some(Box::new(move |r: &Request| {
                let text = r.document(&[]).to_string();
                r.answer(&Says {
                    text,
                    stop: Some(stop.to_owned()),
                    ..Says::default()
                })
            })),
        ));
    }
    if kind == BackendKind::Anthropic {
        all.push((
            "NET-14",
            fault(|r| {
                let mut cut = events(&r.body_of(&Says { text: r.document(&[]).to_string(), ..Says::default() }));
                cut.truncate(3);
                cut.push(json!({ "type": "error", "error": { "type": "overloaded_error", "message": "x" } }));
                Reply::events(&cut)
            }),
        ));
    }
    all
}

#[test]
fn no_fault_makes_the_exit_code_smaller_than_the_rules_alone_would() {
    for kind in KINDS {
        for (name, fault) in faults(kind) {
            let (server, url) = match fault {
                Some(fault) => {
                    let server = Server::start(fault);
                    let url = server.url();
                    (Some(server), url)
                }
                None => (None, format!("http://127.0.0.1:{}", closed_port())),
            };
            let kind = kind.name();
            let policy = format!(
                "version = 1\n[review]\nbackends = [\"{kind}\"]\n[backend.{kind}]\nbase_url = \"{url}\"\nmodel = \"stub\"\nmax_retries = 0\n"
            );
            let repo = repo(&policy);
            let report = repo.review_json(&["staged"], 3);
            assert_eq!(
                (&report["verdict"], &report["outcome"]),
                (&json!("incomplete"), &json!("incomplete")),
                "{kind} {name}"
            );
            assert_ne!(report["coverage"]["failed"], json!([]), "{kind} {name}");
            // Findings of the rules are kept and reported.
            repo.stage("config.ini", line_with_key());
            let run = repo.review(&["staged"], 1);
            assert!(
                run.stdout.contains("config.ini"),
                "{kind} {name}: {}",
                run.stdout
            );
            let last = run.stderr.lines().last().unwrap_or_default().to_owned();
            assert!(
                last.starts_with("review: incomplete") && last.ends_with("exit=1"),
                "{kind} {name}: {last}"
            );
            drop(server);
        }
    }
}

#[test]
fn net_01_what_the_rules_found_is_printed_when_nobody_answers() {
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"openai\"]\n[backend.openai]\nbase_url = \"http://127.0.0.1:{}\"\nmodel = \"stub\"\n",
        closed_port()
    );
    let repo = repo(&policy);
    repo.stage("config.ini", line_with_key());
    let started = Instant::now();
    let run = repo.review(&["staged"], 1);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert!(
        run.stdout.contains("config.ini") && run.stdout.contains("refused"),
        "{}",
        run.stdout
    );
}

#[test]
fn net_21_a_part_that_fails_is_named_and_the_others_are_shown() {
    for kind in KINDS {
        let server = Server::start(|r| match r.files().iter().any(|f| f == "src/other.rs") {
            true => Reply::error(400, "invalid_request_error", "not this one"),
            false => r.review(&[bug()]),
        });
        let policy = server
            .policy(kind.name())
            .replace("[review]\n", "[review]\nmax_files = 1\n");
        let repo = repo(&policy);
        repo.stage("src/other.rs", "pub fn other() -> u32 {\n    7\n}\n");
        let report = repo.review_json(&["staged"], 1);
        assert_eq!(report["findings"][0]["file"], "src/ratio.rs");
        let failed = report["coverage"]["failed"].to_string();
        assert!(
            failed.contains("src/other.rs") && !failed.contains("src/ratio.rs"),
            "{failed}"
        );
        assert_eq!(report["outcome"], "incomplete");
    }
}

#[test]
fn net_09_a_deadline_of_the_run_is_kept() {
    for kind in KINDS {
        let server = Server::start(|r| match r.dialect() {
            Dialect::Anthropic => Reply::raw(Reply::stream_head()).then(Step::Repeat(
                crate::loopback::chunk(&event(&json!({ "type": "ping" }))),
                400,
                Duration::from_millis(100),
            )),
            _ => Reply::raw(head(200, &[("content-length", "400")])).then(Step::Repeat(
                b" ".to_vec(),
                400,
                Duration::from_millis(100),
            )),
        });
        let repo = repo(&server.policy(kind.name()));
        let started = Instant::now();
        repo.review(&["staged", "--timeout", "2s"], 3);
        // The claim: the deadline is kept. The server sends for 40 seconds.
        assert!(
            started.elapsed() < Duration::from_secs(4),
            "{:?}",
            started.elapsed()
        );
    }
}

#[test]
fn net_19_plain_http_to_another_machine_is_a_mistake_of_the_policy() {
    let policy = "version = 1\n[review]\nbackends = [\"openai\"]\n[backend.openai]\nbase_url = \"http://192.0.2.1/v1\"\nmodel = \"m\"\n";
    let run = repo(policy).review(&["staged"], 2);
    assert!(
        run.stderr.contains("plain http") && run.stderr.contains("hint:"),
        "{}",
        run.stderr
    );
}

#[test]
fn sec_09_offline_opens_no_connection() {
    let server = Server::start(|r| r.review(&[]));
    for kind in KINDS {
        let repo = repo(&server.policy(kind.name()));
        repo.review(&["staged", "--offline"], 3);
        repo.reviewer(&["policy", "check"]).run(0);
    }
    assert_eq!(server.connections(), 0);
}

/// Writes a policy to the user's configuration, where endpoints and keys are trusted.
fn as_operator(repo: &Repo, policy: &str) {
    let folder = repo.home().join(".config/claude-reviewer");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), policy).unwrap();
}

#[track_caller]
fn shows_nothing(run: &Run, secret: &str) {
    assert!(
        !run.stdout.contains(secret) && !run.stderr.contains(secret),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn sec_02_sec_03_sec_04_no_output_shows_a_key() {
    for kind in KINDS {
        let variable = kind.key_variable().unwrap();
        let header = match kind {
            BackendKind::Anthropic => "x-api-key",
            BackendKind::OpenAi => "authorization",
            _ => "x-goog-api-key",
        };
        let server = Server::start(move |r| {
            let key = r.header(header).unwrap_or("no key").to_owned();
            match r.number % 2 {
                0 => Reply::error(
                    401,
                    "authentication_error",
                    &format!("{}: {key}", "x".repeat(180)),
                ),
                _ => r.review(&[finding("src/ratio.rs", 2, &key)]),
            }
        });
        let repo = repo("version = 1\n");
        as_operator(&repo, &server.policy(kind.name()));
        for (format, code) in [("human", 3), ("json", 0), ("sarif", 3), ("human", 0)] {
            let run = repo
                .reviewer(&["review", "staged", "-v", "--no-cache", "--format", format])
                .env(variable, canary())
                .run(code);
            shows_nothing(&run, &canary());
        }
        assert!(
            server
                .requests()
                .iter()
                .all(|r| r.header(header).is_some_and(|v| v.ends_with(&canary())))
        );
        assert!(server.requests().iter().all(|r| !r.path.contains(&canary())
            && !String::from_utf8_lossy(&r.body).contains(&canary())));
    }
}

#[test]
fn sec_10_nothing_of_the_environment_reaches_a_server() {
    const NAMES: [&str; 24] = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GITLAB_TOKEN",
        "CI_JOB_TOKEN",
        "BITBUCKET_TOKEN",
        "NPM_TOKEN",
        "CARGO_REGISTRY_TOKEN",
        "PYPI_TOKEN",
        "DOCKER_PASSWORD",
        "SLACK_BOT_TOKEN",
        "SSH_AUTH_SOCK",
        "DATABASE_URL",
        "PGPASSWORD",
        "VAULT_TOKEN",
        "KUBECONFIG",
        "SENTRY_DSN",
        "STRIPE_SECRET_KEY",
    ];
    for kind in KINDS {
        let server = Server::start(|r| r.review(&[]));
        let repo = repo(&server.policy(kind.name()));
        let reviewer = repo.reviewer(&["review", "staged", "--depth", "thorough"]);
        let run = NAMES
            .iter()
            .fold(reviewer, |r, name| r.env(name, canary()))
            .run(0);
        shows_nothing(&run, &canary());
        assert!(!server.questions().is_empty() && !server.saw(&canary()));
    }
}

#[test]
fn net_16_a_certificate_is_believed_where_the_operator_says_so() {
    let made = Certificate {
        host: "127.0.0.1",
        until: "20990101000000Z",
    }
    .make();
    let server = Server::tls(made.config, |r| r.review(&[]));
    let repo = repo("version = 1\n");
    as_operator(&repo, &server.policy("openai"));
    let roots = repo.home().join("roots.pem");
    std::fs::write(&roots, made.pem).unwrap();
    let run = |roots: &std::path::Path, code| {
        let run = repo
            .reviewer(&["review", "staged", "--no-cache"])
            .env("OPENAI_API_KEY", canary())
            .env("SSL_CERT_FILE", roots)
            .run(code);
        shows_nothing(&run, &canary());
    };
    run(&roots, 0);
    let asked = server.questions().len();
    assert_eq!(asked, 1);
    let others = Certificate {
        host: "127.0.0.1",
        until: "20990101000000Z",
    }
    .make();
    std::fs::write(&roots, others.pem).unwrap();
    run(&roots, 3);
    assert_eq!(
        server.questions().len(),
        asked,
        "whoever has another certificate gets nothing"
    );
}

#[test]
fn net_11_a_body_without_an_end_takes_bounded_memory() {
    let server = Server::start(|_| {
        Reply::raw(head(
            200,
            &[
                ("content-type", "application/json"),
                ("content-length", "10737418240"),
            ],
        ))
        .then(Step::Repeat(vec![b' '; 1 << 20], 10 << 10, Duration::ZERO))
    });
    let repo = repo(&server.policy("openai"));
    // 800 MB of address space: more than the program reserves, and much less than the server sends.
    let script = "ulimit -v 800000 && exec \"$0\" review staged";
    let output = std::process::Command::new("sh")
        .args(["-c", script, crate::support::binary()])
        .current_dir(repo.path())
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", repo.home())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(3),
        "{shown}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(shown.contains("16 MiB"), "{shown}");
}

#[test]
fn net_06_net_15_what_is_too_large_is_asked_about_in_parts() {
    for kind in KINDS {
        let server = Server::start(|r| match r.files().len() {
            0 | 1 => r.review(&[bug()]),
            _ => Reply::error(413, "request_too_large", "too large"),
        });
        let repo = repo(&server.policy(kind.name()));
        repo.stage("docs/other.txt", "A text of some length.\n".repeat(60));
        let report = repo.review_json(&["staged"], 1);
        assert_eq!(
            (&report["outcome"], &report["usage"][0]["requests"]),
            (&json!("reviewed"), &json!(4)),
            "{report}"
        );
    }
}

#[test]
fn net_15_a_model_that_rambles_about_little_is_asked_once() {
    let stop = Says {
        text: "{".into(),
        stop: Some("length".into()),
        ..Says::default()
    };
    let server = Server::start(move |r| r.answer(&stop));
    let repo = repo(&server.policy("openai"));
    repo.review(&["staged"], 3);
    assert_eq!(server.questions().len(), 1);
    repo.stage("docs/other.txt", "A text of some length.\n".repeat(150));
    repo.review(&["staged"], 3);
    assert!(
        (3..=10).contains(&server.questions().len()),
        "{}",
        server.questions().len()
    );
}

#[test]
fn requests_run_side_by_side_over_few_connections_and_never_more_than_jobs() {
    let server = Server::start(|r| r.review(&[]).after(Duration::from_millis(300)));
    let policy = server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_files = 1\njobs = 3\n");
    let repo = repo(&policy);
    for i in 0..8 {
        repo.stage(
            &format!("src/part{i}/code.rs"),
            format!("pub fn part{i}() -> u32 {{\n    {i}\n}}\n"),
        );
    }
    repo.review(&["staged"], 0);
    assert_eq!((server.questions().len(), server.most_in_flight()), (9, 3));
    assert!(
        server.connections() <= 3,
        "{} connections",
        server.connections()
    );
}
