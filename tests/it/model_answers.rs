//! Tests of answers of models that must not pass a change: rows MOD-01 to MOD-06, through the
//! binary.

use crate::loopback::{KINDS, Reply, Request, Says, Server};
use crate::support::{Repo, Reviewer};
use claude_reviewer::policy::BackendKind;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const FLAW: &str = "def half(n):\n    return n / (n - n)\n";

/// Creates a repository with one staged file, and a policy that enables the server; `review` is
/// added to its `[review]`, `backend` to its backend.
fn staged(server: &Server, kind: &str, review: &str, backend: &str) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    repo.commit("first");
    let policy = server
        .policy(kind)
        .replace("[review]\n", &format!("[review]\n{review}"))
        + backend;
    repo.write(".claude-reviewer.toml", policy);
    repo.stage("src/half.py", FLAW);
    repo
}

fn claim(file: &str) -> Value {
    json!({
        "file": file, "line": 2, "end_line": null, "quote": "    return n / (n - n)",
        "severity": "major", "category": "bug", "cwe": null, "title": "divides by zero",
        "message": "the divisor is always zero", "failure": "half(1) raises", "suggestion": "divide by two",
        "replacement": null, "convention": null,
    })
}

fn reviewer(repo: &Repo, args: &[&str]) -> Reviewer {
    let key = format!("sk-{}", "0".repeat(20));
    let args = [
        &["review", "staged", "--no-cache", "--format", "json"],
        args,
    ]
    .concat();
    repo.reviewer(&args)
        .env("ANTHROPIC_API_KEY", &key)
        .env("OPENAI_API_KEY", &key)
        .env("GEMINI_API_KEY", &key)
}

#[track_caller]
fn report(repo: &Repo, args: &[&str], code: i32) -> Value {
    let run = reviewer(repo, args).run(code);
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
}

fn reason(report: &Value) -> String {
    report["coverage"]["failed"].to_string()
}

/// Returns true if a request may be answered with calls of tools.
fn may_call(r: &Request) -> bool {
    let body = r.json();
    body["tools"].is_array()
        && body["tool_choice"] != "none"
        && body["tool_choice"]["type"] != "none"
}

#[test]
fn mod_01_a_claim_blocks_under_every_spelling_of_its_path() {
    let spellings = [
        "src/half.py",
        "/home/u/repo/src/half.py",
        "repo/src/half.py",
        "src\\half.py",
        "./src/half.py",
        "src%2Fhalf.py",
        "file:///w/src/half.py",
        "half.py",
    ];
    for named in spellings {
        let server = Server::start(move |r: &Request| {
            let mut answer = r.document(&[claim(named)]);
            answer["files_reviewed"] = json!([named]);
            r.text(&answer.to_string())
        });
        let report = report(&staged(&server, "openai", "", ""), &[], 1);
        assert_eq!(
            (
                &report["findings"][0]["file"],
                &report["findings"][0]["line"]
            ),
            (&json!("src/half.py"), &json!(2))
        );
    }
    for named in [
        "../src/half.py",
        "/r/src/../src/half.py",
        "src/other.py",
        "SRC/half.py",
    ] {
        let server =
            Server::start(move |r: &Request| r.text(&r.document(&[claim(named)]).to_string()));
        let report = report(&staged(&server, "openai", "", ""), &[], 0);
        assert!(
            report["findings"].as_array().unwrap().is_empty(),
            "{named}: {report:#}"
        );
        assert!(
            report["notes"]
                .to_string()
                .contains("not part of the change"),
            "{named}: {report:#}"
        );
    }
}

#[test]
fn mod_01_a_path_that_fits_two_changed_files_stays_a_note() {
    let server = Server::start(|r: &Request| r.text(&r.document(&[claim("half.py")]).to_string()));
    let repo = staged(&server, "openai", "", "");
    repo.stage("lib/half.py", FLAW);
    let report = report(&repo, &[], 0);
    assert!(
        report["findings"].as_array().unwrap().is_empty(),
        "{report:#}"
    );
}

#[test]
fn mod_02_a_refutation_without_proof_removes_no_block() {
    let answer = |members: &'static str| {
        move |r: &Request| {
            if r.is_refutation() {
                return r.text(&format!(
                    "{{\"nonce\": \"{}\", \"refuted\": true{members}}}",
                    r.nonce()
                ));
            }
            r.review(&[claim("src/half.py")])
        }
    };
    for members in [
        "",
        ", \"reason\": \"\", \"quote\": \"    return n / (n - n)\"",
        ", \"reason\": \"   \", \"quote\": \"    return n / (n - n)\"",
        ", \"reason\": \"It is guarded by the caller.\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"  \\n \"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": null",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"return\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \":\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"if n != 0: return n / 2\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"divides by zero\"",
        ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"the divisor is always zero\"",
    ] {
        let server = Server::start(answer(members));
        let report = report(
            &staged(&server, "openai", "depth = \"thorough\"\n", ""),
            &[],
            1,
        );
        assert_eq!(
            report["findings"][0]["blocking"], true,
            "{members}: {report:#}"
        );
        assert!(
            report["notes"].to_string().contains("does not count"),
            "{members}: {report:#}"
        );
    }
    let proven = ", \"reason\": \"It is guarded by the caller.\", \"quote\": \"def half(n):\"";
    let server = Server::start(answer(proven));
    let report = report(
        &staged(&server, "openai", "depth = \"thorough\"\n", ""),
        &[],
        0,
    );
    assert_eq!(report["findings"][0]["blocking"], false, "{report:#}");
}

#[test]
fn mod_02_a_refutation_may_quote_code_that_a_tool_showed() {
    for read in [true, false] {
        let server = Server::start(move |r: &Request| {
            if !r.is_refutation() {
                return r.review(&[claim("src/half.py")]);
            }
            if read && may_call(r) && !r.prompt().contains("LIMIT = 10") {
                return r.calls(&[(
                    "read_lines",
                    json!({ "path": "limit.py", "first": 1, "last": 9 }),
                )]);
            }
            let reason = "The limit decides.";
            r.text(&json!({"nonce": r.nonce(), "refuted": true, "reason": reason, "quote": "LIMIT = 10"}).to_string())
        });
        let repo = staged(&server, "openai", "depth = \"thorough\"\n", "");
        repo.stage("limit.py", "LIMIT = 10\n");
        repo.git(&["commit", "-q", "-m", "limit", "limit.py"]);
        let report = report(&repo, &[], if read { 0 } else { 1 });
        assert_eq!(report["findings"][0]["blocking"], !read, "{report:#}");
    }
}

#[test]
fn mod_03_a_prompt_of_which_too_few_tokens_were_counted_is_incomplete() {
    for (kind, tokens, cached, code) in [
        ("openai", 40, 0, 3),
        ("anthropic", 40, 0, 3),
        ("google", 40, 0, 3),
        // Cached tokens count, in any form in which the provider reports them.
        ("openai", 4_000, 3_990, 0),
        ("anthropic", 4_000, 3_990, 0),
        ("google", 4_000, 3_990, 0),
        // Without usage, the number is unknown.
        ("openai", 0, 0, 0),
        ("anthropic", 0, 0, 0),
        ("google", 0, 0, 0),
    ] {
        let server = Server::start(move |r: &Request| {
            let text = r.document(&[]).to_string();
            r.answer(&Says {
                text,
                tokens: (tokens, cached, 100),
                ..Says::default()
            })
        });
        let report = report(&staged(&server, kind, "", ""), &[], code);
        assert_eq!(
            reason(&report).contains("did not read all of it"),
            code == 3,
            "{kind} {tokens}: {report:#}"
        );
        assert_eq!(server.questions().len(), 1, "{kind} {tokens}");
    }
}

#[test]
fn mod_03_two_choices_are_no_answer() {
    for kind in ["openai", "google"] {
        let server = Server::start(|r: &Request| {
            let says = Says {
                text: r.document(&[]).to_string(),
                ..Says::default()
            };
            let mut body = r.body_of(&says);
            for key in ["choices", "candidates"] {
                if let Some(list) = body[key].as_array_mut() {
                    list.extend(list.clone());
                }
            }
            Reply::json(200, &body)
        });
        let report = report(&staged(&server, kind, "", ""), &[], 3);
        assert!(reason(&report).contains("more than one"), "{report:#}");
    }
}

#[test]
fn mod_04_an_empty_list_beside_a_key_that_denies_it_is_incomplete() {
    for (key, value) in [
        ("verdict", json!("fail")),
        ("approved", json!(false)),
        ("isApproved", json!("No")),
        ("passed", json!(false)),
        ("LGTM", json!(false)),
        ("truncated", json!(true)),
        ("error", json!("context exceeded")),
        ("num_findings", json!(4)),
        ("incomplete", json!(true)),
    ] {
        let answer = value.clone();
        let server = Server::start(move |r: &Request| {
            let mut document = r.document(&[]);
            document[key] = answer.clone();
            r.text(&document.to_string())
        });
        let report = report(&staged(&server, "openai", "", ""), &[], 3);
        assert!(
            reason(&report).contains("contradicts its list"),
            "{key}: {value}: {report:#}"
        );
        assert_eq!(server.questions().len(), 2, "it is asked once more");
    }
}

#[test]
fn mod_04_a_file_that_the_answer_names_as_not_reviewed_is_incomplete() {
    for (left, all) in [
        (json!([{"file": "src/half.py", "why": "too long"}]), false),
        (json!(["src/half.py"]), false),
        (json!([{"file": "./src\\half.py"}]), false),
        (json!([{"file": "the rest", "why": "no room"}]), true),
        (json!([{"why": "no room"}]), true),
    ] {
        let server = Server::start(move |r: &Request| {
            let mut document = r.document(&[]);
            document["not_reviewed"] = left.clone();
            r.text(&document.to_string())
        });
        let repo = staged(&server, "openai", "", "");
        repo.stage("src/good.py", "GOOD = 1\n");
        let report = report(&repo, &[], 3);
        let failed = report["coverage"]["failed"].as_array().unwrap().clone();
        assert_eq!(failed.len(), if all { 2 } else { 1 }, "{report:#}");
        assert!(
            failed.iter().any(|f| f["file"] == "src/half.py"),
            "{report:#}"
        );
        assert!(reason(&report).contains("not reviewed"), "{report:#}");
    }
}

#[test]
fn a_security_claim_without_a_cwe_is_at_least_major() {
    for (cwe, severity, code) in [
        (json!(null), "suggestion", 1),
        (json!("none"), "minor", 1),
        (json!(601), "suggestion", 0),
    ] {
        let server = Server::start(move |r: &Request| {
            let mut claim = claim("src/half.py");
            claim["category"] = json!("security");
            claim["severity"] = json!(severity);
            claim["cwe"] = cwe.clone();
            r.review(&[claim])
        });
        let report = report(&staged(&server, "openai", "", ""), &[], code);
        assert_eq!(
            report["findings"][0]["severity"],
            if code == 1 { "major" } else { severity },
            "{report:#}"
        );
        assert_eq!(
            report["notes"].to_string().contains("without a CWE number"),
            code == 1,
            "{report:#}"
        );
    }
}

#[test]
fn mod_05_no_conversation_passes_the_limit_of_requests() {
    for kind in KINDS.map(BackendKind::name) {
        for (most, code) in [(5, 0), (9, 0), (30, 0), (2, 3)] {
            let server = Server::start(|r: &Request| match may_call(r) {
                true => r.calls(&[("list_files", json!({ "glob": "" }))]),
                false => r.review(&[]),
            });
            let review = format!("depth = \"thorough\"\nmax_requests = {most}\n");
            let report = report(&staged(&server, kind, &review, ""), &[], code);
            let asked = server.questions().len();
            assert!(asked <= most, "{kind} {most}: {asked}");
            assert_eq!(
                report["usage"][0]["requests"], asked,
                "{kind} {most}: {report:#}"
            );
        }
    }
}

#[test]
fn mod_05_retries_and_repairs_count() {
    let failing = Server::start(|_: &Request| Reply::error(500, "api_error", "again"));
    let repo = staged(&failing, "openai", "max_requests = 3\n", "");
    repo.write(
        ".claude-reviewer.toml",
        failing
            .policy("openai")
            .replace("max_retries = 1", "max_retries = 8")
            .replace("[review]\n", "[review]\nmax_requests = 3\n"),
    );
    let limited = report(&repo, &[], 3);
    assert_eq!(failing.questions().len(), 3, "{limited:#}");
    assert!(reason(&limited).contains("max_requests = 3"), "{limited:#}");
    let prose = Server::start(|r: &Request| r.text("Looks good to me."));
    report(&staged(&prose, "openai", "max_requests = 1\n", ""), &[], 3);
    assert_eq!(prose.questions().len(), 1);
}

#[test]
fn mod_05_tokens_stay_under_their_limit() {
    // Each answer is counted as 3,000 tokens.
    for (most, thorough) in [
        (10_000u64, true),
        (10_000, false),
        (3_000, false),
        (100, true),
    ] {
        let server = Server::start(|r: &Request| {
            let says = Says {
                tokens: (2_500, 0, 500),
                ..Says::default()
            };
            match may_call(r) {
                true => r.answer(&Says {
                    calls: vec![("list_files".to_owned(), json!({ "glob": "" }))],
                    ..says
                }),
                false => r.answer(&Says {
                    text: r.document(&[]).to_string(),
                    ..says
                }),
            }
        });
        let review = if thorough {
            "depth = \"thorough\"\n"
        } else {
            ""
        };
        let repo = staged(&server, "openai", review, "");
        let run = reviewer(&repo, &["--max-tokens", &most.to_string()]).run_any();
        let asked = server.questions().len() as u64;
        assert!(asked * 3_000 <= most, "{most}: {asked}");
        // Four lenses need 12,000.
        assert_eq!(
            run.code,
            if thorough || asked == 0 { 3 } else { 0 },
            "{most}: {}",
            run.stderr
        );
        for request in server.questions() {
            let bound = request.json()["max_tokens"].as_u64().unwrap();
            assert!(bound < most, "{bound}");
        }
    }
}

#[test]
fn mod_05_a_cost_stays_under_its_limit() {
    let price = "price = { input = 1.0, cached = 0.1, output = 5.0 }\n";
    for kind in KINDS.map(BackendKind::name) {
        // 4,000 tokens in and 200 out are $0.005 a request.
        let server = Server::start(|r: &Request| {
            let says = Says {
                tokens: (4_000, 0, 200),
                ..Says::default()
            };
            match may_call(r) {
                true => r.answer(&Says {
                    calls: vec![("list_files".to_owned(), json!({ "glob": "" }))],
                    ..says
                }),
                false => r.answer(&Says {
                    text: r.document(&[]).to_string(),
                    ..says
                }),
            }
        });
        let repo = staged(&server, kind, "depth = \"thorough\"\n", price);
        let run = reviewer(&repo, &["--max-cost", "0.02"]);
        let run = run.run_any();
        let asked = server.questions().len();
        assert!(
            asked as f64 * 0.005 <= 0.02 + 1e-9,
            "{kind}: {asked}\n{}",
            run.stderr
        );
        assert!(asked > 0, "{kind}");
    }
}

#[test]
fn mod_05_a_cost_that_only_answers_name_stays_under_its_limit() {
    let server = Server::start(|r: &Request| {
        let mut body = r.body_of(&Says {
            text: r.document(&[]).to_string(),
            ..Says::default()
        });
        body["usage"]["cost"] = json!(0.015);
        Reply::json(200, &body)
    });
    let repo = staged(&server, "openai", "depth = \"thorough\"\n", "");
    let report = report(&repo, &["--max-cost", "0.02"], 3);
    assert_eq!(server.questions().len(), 1, "{report:#}");
    assert!(
        reason(&report).contains("max_cost_usd = 0.02"),
        "{report:#}"
    );
}

#[test]
fn mod_05_an_ordinary_thorough_review_stays_complete() {
    let server = Server::start(|r: &Request| match may_call(r) {
        true => r.calls(&[("list_files", json!({ "glob": "" }))]),
        false => r.review(&[]),
    });
    let report = report(
        &staged(&server, "openai", "depth = \"thorough\"\n", ""),
        &[],
        0,
    );
    let asked = server.questions().len();
    assert!(asked > 40, "{asked}");
    assert_eq!(report["outcome"], "reviewed");
}

#[test]
fn mod_06_a_rate_limit_with_time_left_is_waited_out_by_the_whole_backend() {
    for kind in KINDS.map(BackendKind::name) {
        let server = Server::start(|r: &Request| match r.number {
            // More often than `max_retries`.
            0..=4 => Reply::error_with(
                429,
                ("retry-after-ms", "20"),
                "rate_limit_error",
                "slow down",
            ),
            _ => r.review(&[]),
        });
        let repo = staged(&server, kind, "max_files = 1\n", "");
        repo.stage("src/one.py", "ONE = 1\n");
        repo.stage("src/two.py", "TWO = 2\n");
        let report = report(&repo, &[], 0);
        assert_eq!(report["outcome"], "reviewed", "{report:#}");
        // Waiting requests do not return together.
        assert_eq!(server.questions().len(), 5 + 3, "{kind}");
    }
}

#[test]
fn mod_06_many_parts_get_through_a_limit_of_one_request_at_a_time() {
    for (status, kind) in [(429, "openai"), (529, "anthropic"), (429, "google")] {
        let free_at = Mutex::new(Instant::now());
        let server = Server::start(move |r: &Request| {
            let mut free_at = free_at.lock().unwrap();
            let now = Instant::now();
            if now < *free_at {
                return Reply::error_with(
                    status,
                    ("retry-after-ms", "100"),
                    "rate_limit_error",
                    "slow down",
                );
            }
            *free_at = now + Duration::from_millis(100);
            r.review(&[])
        });
        let repo = staged(
            &server,
            kind,
            "max_files = 1\njobs = 8\nmax_requests = 20\n",
            "",
        );
        for i in 0..13 {
            repo.stage(&format!("src/file_{i}.py"), format!("VALUE = {i}\n"));
        }
        let report = report(&repo, &[], 0);
        assert_eq!(report["outcome"], "reviewed", "{kind}: {report:#}");
    }
}

#[test]
fn mod_06_at_the_deadline_the_review_is_incomplete() {
    let server = Server::start(|_: &Request| {
        Reply::error_with(
            429,
            ("retry-after-ms", "10"),
            "rate_limit_error",
            "slow down",
        )
        .after(Duration::from_millis(1))
    });
    let repo = staged(
        &server,
        "openai",
        "timeout = \"2s\"\n",
        "retry_delay = \"20ms\"\n",
    );
    let report = report(&repo, &[], 3);
    assert!(server.questions().len() > 2, "{report:#}");
    let far = Server::start(|_: &Request| {
        Reply::error_with(429, ("retry-after", "3600"), "rate_limit_error", "no")
    });
    let repo = staged(&far, "openai", "", "");
    assert!(reason(&self::report(&repo, &[], 3)).contains("retry after 3600 s"));
    assert_eq!(far.questions().len(), 1);
}
