//! Tests that verdicts state what was done, and no more: rows VER-01 to VER-03 of the behaviour
//! contract.

mod runs;

use crate::judge::with_world;
use crate::loopback::{Reply, Request, Server};
use crate::mcp::client::Client;
use crate::support::Repo;
use claude_reviewer::counsel::{CounselAsk, security_audit};
use claude_reviewer::stop::Stop;
use serde_json::{Value, json};
use std::path::Path;

const CARGO: &str = "echo 'test pool::closes ... FAILED'; \
    echo 'test result: FAILED. 41 passed; 1 failed; 0 ignored'; exit 101";

/// Creates a repository with a harmless staged change whose operator runs `command` as its tests.
fn tested(command: &str, more: &str) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.stage("a.py", "x = 1\n");
    let tests = format!("[tests]\nrun = true\ncommand = {}\n{more}", json!(command));
    repo.write("../home/.config/claude-reviewer/config.toml", tests);
    repo
}

fn last_line(stderr: &str) -> &str {
    stderr.trim_end().lines().last().unwrap_or_default()
}

#[test]
fn ver_01_failed_tests_block_and_are_in_every_format() {
    let repo = tested(CARGO, "");
    let formats = [
        "human", "json", "jsonl", "sarif", "github", "summary", "markdown", "gitlab", "rdjson",
        "junit", "dotenv", "html",
    ];
    for format in formats {
        let run = repo.review(&["staged", "--no-save", "--format", format], 1);
        let says = if format == "dotenv" {
            "tests=failed"
        } else {
            "tests failed: 41 passed, 1 failed"
        };
        let plain = run.stdout.to_lowercase();
        assert!(plain.contains(says), "{format}: {}", run.stdout);
        let named = format == "dotenv"
            || plain.contains("pool::closes")
            || plain.contains("pool:\u{200b}:closes");
        assert!(named, "{format}: {}", run.stdout);
        assert!(last_line(&run.stderr).ends_with("exit=1"), "{}", run.stderr);
    }
    let report = repo.review_json(&["staged", "--no-save"], 1);
    assert_eq!(
        (&report["verdict"], &report["assessment"]),
        (&json!("block"), &json!("needs_changes"))
    );
    let expected = json!({
        "passed": false, "outcome": "failed", "blocking": true, "coverage": null,
        "summary": "41 passed, 1 failed, 0 skipped (exit code 101)", "failing_tests": ["pool::closes"],
    });
    assert_eq!(report["test_results"], expected);
    let text = report["summary"]["text"].as_str().unwrap();
    assert!(
        text.contains("the project's tests failed: 41 passed, 1 failed"),
        "{text}"
    );
    let human = repo.review(&["staged", "--no-save"], 1).stdout;
    assert!(
        human.contains("BLOCK  the project's tests failed"),
        "{human}"
    );
}

#[test]
fn ver_01_on_failure_makes_failed_tests_a_warning_that_is_never_a_pass() {
    let repo = tested("exit 1", "on_failure = \"warn\"\n");
    let report = repo.review_json(&["staged", "--no-save"], 0);
    assert_eq!(
        (&report["verdict"], &report["assessment"]),
        (&json!("warn"), &json!("lgtm_with_suggestions"))
    );
    assert_eq!(report["test_results"]["blocking"], false);
    let human = repo.review(&["staged", "--no-save"], 0).stdout;
    assert!(
        human.contains("WARN  no findings; the project's tests failed: exit code 1"),
        "{human}"
    );
    assert!(!human.contains("PASS"), "{human}");
}

#[test]
fn ver_01_passing_tests_pass_and_show_their_coverage() {
    let repo = tested(
        "echo 'All files |  92.1 | 80 |'; echo 'Tests:  3 passed, 3 total'",
        "",
    );
    let report = repo.review_json(&["staged", "--no-save"], 0);
    assert_eq!(
        (&report["verdict"], &report["assessment"]),
        (&json!("pass"), &json!("lgtm"))
    );
    let tests = &report["test_results"];
    assert_eq!(
        (&tests["outcome"], &tests["coverage"]),
        (&json!("passed"), &json!("92.1%"))
    );
    let human = repo.review(&["staged", "--no-save"], 0).stdout;
    assert!(
        human.contains("tests passed: 3 passed, 0 failed, 0 skipped  coverage 92.1%"),
        "{human}"
    );
}

#[test]
fn ver_01_tests_that_cannot_start_are_incomplete() {
    for on_failure in ["", "on_failure = \"warn\"\n"] {
        for command in ["no-such-program-anywhere", "./README.md"] {
            let repo = tested(command, on_failure);
            let report = repo.review_json(&["staged", "--no-save"], 3);
            assert_eq!(
                (&report["verdict"], &report["test_results"]["outcome"]),
                (&json!("incomplete"), &json!("not_started"))
            );
            let why = report["coverage"]["failed"].to_string();
            assert!(
                why.contains("tests could not be started"),
                "{command}: {why}"
            );
        }
    }
    // Requested, but there is no command.
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n");
    repo.write(
        "../home/.config/claude-reviewer/config.toml",
        "[tests]\nrun = true\n",
    );
    let why = repo.review_json(&["staged", "--no-save"], 3)["coverage"]["failed"].to_string();
    assert!(why.contains("no command is set"), "{why}");
    // A user's variable for all projects does not require tests in this one.
    let repo = Repo::new();
    repo.stage("a.py", "x = 1\n");
    repo.reviewer(&["review", "staged", "--no-save"])
        .env("AUTO_RUN_TESTS", "true")
        .run(0);
}

#[test]
fn ver_01_an_approval_after_failed_tests_takes_force() {
    for on_failure in ["", "on_failure = \"warn\"\n"] {
        let repo = tested(CARGO, on_failure);
        repo.review(&["staged"], i32::from(on_failure.is_empty()));
        let approve = |args: &[&str], code| {
            repo.reviewer(&[&["complete", "latest", "--status", "approved"], args].concat())
                .run(code)
                .stderr
        };
        let refused = approve(&[], 2);
        assert!(
            refused.contains("the project's tests failed in round 1"),
            "{refused}"
        );
        assert!(refused.contains("--force"), "{refused}");
        // A round without tests resolves nothing.
        repo.write("../home/.config/claude-reviewer/config.toml", "");
        repo.review(&["--follow-up", "latest"], 0);
        approve(&[], 2);
        approve(&["--force"], 0);
        let session = repo
            .reviewer(&["history", "latest", "--format", "json"])
            .run(0)
            .stdout;
        let session: Value = serde_json::from_str(&session).unwrap();
        assert_eq!(
            session["completion"]["entries"][0]["forced"], true,
            "{session:#}"
        );
        let told = session["rounds"][0]["review"]["advice"]["text"]
            .as_str()
            .unwrap();
        assert!(told.contains("project's tests failed"), "{told}");
    }
}

#[test]
fn ver_01_an_agent_cannot_close_a_review_whose_tests_failed() {
    let repo = tested(CARGO, "");
    let mut client = Client::ready(&repo, &[]);
    let content = client.content("request_review", json!({"summary": "a change"}));
    assert_eq!(
        (&content["verdict"], &content["status"]),
        (&json!("block"), &json!("needs_changes")),
        "{content:#}"
    );
    assert_eq!(content["advice"]["action"], "fix");
    let id = content["review_id"].clone();
    client.refused(
        "mark_review_complete",
        json!({"review_id": id, "final_status": "approved"}),
    );
}

#[test]
fn ver_01_loosening_on_failure_is_a_finding_of_the_gate() {
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", "version = 1\n")
        .commit("base");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\n[tests]\non_failure = \"warn\"\n",
    )
    .commit("loosen");
    let report = repo.review_json(&["branch", "--base", "main", "--gate", "--no-save"], 1);
    let weak = &report["findings"][0];
    assert_eq!(
        (&weak["rule_id"], &weak["blocking"]),
        (&json!("policy-weakened"), &json!(true)),
        "{report:#}"
    );
    assert!(
        weak.to_string()
            .contains("tests.on_failure changes from block to warn"),
        "{weak:#}"
    );
}

#[test]
fn ver_01_a_judge_fails_a_change_whose_tests_fail_and_its_page_names_them() {
    let repo = tested(CARGO, "");
    repo.commit("second");
    repo.write("a.py", "x = 2\n");
    let contract = json!({
        "task_id": "T-1", "specification": {"description": "x is 2.", "requirements": ["x is 2"]},
        "acceptance_criteria": [{"id": "AC1", "text": "x is 2"}], "changed_files": ["a.py"],
    });
    repo.write("_handoff/TASK_CONTRACT.json", contract.to_string());
    let mut client = Client::ready(&repo, &[]);
    let judged = client.content(
        "claude_judge_review",
        json!({"contract_path": "_handoff/TASK_CONTRACT.json"}),
    );
    assert_eq!(
        (&judged["verdict"], &judged["blocking_issues_count"]),
        (&json!("FAIL"), &json!(1)),
        "{judged:#}"
    );
    let page = std::fs::read_to_string(repo.path().join("_handoff/JUDGE_REPORT.md")).unwrap();
    assert!(
        page.contains("## Tests") && page.contains("41 passed, 1 failed"),
        "{page}"
    );
    assert!(page.contains("closes"), "{page}");
}

/// Creates a repository with `files` staged files, of which a model that answers at once gets
/// `requests`.
fn cut(server: &Server, files: usize, requests: usize) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n").commit("first");
    let policy = server
        .policy("openai")
        .replace("version = 1", "version = 1\non_truncated = \"warn\"");
    let limits = format!("[review]\nmax_files = 1\nmax_requests = {requests}\n");
    repo.write(
        ".claude-reviewer.toml",
        policy.replace("[review]\n", &limits),
    );
    for i in 0..files {
        repo.stage(&format!("src/f{i}/a{i}.py"), format!("x = {i}\n"));
    }
    repo
}

fn with_key(repo: &Repo, args: &[&str], code: i32) -> crate::support::Run {
    let key = format!("sk-{}", "0".repeat(20));
    repo.reviewer(&[&["review"], args].concat())
        .env("OPENAI_API_KEY", key)
        .run(code)
}

fn json_of(run: &crate::support::Run) -> Value {
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
}

#[test]
fn ver_02_a_review_that_a_limit_cut_short_warns_with_the_true_numbers() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = cut(&server, 12, 5);
    let run = with_key(
        &repo,
        &["staged", "--no-save", "--no-cache", "--format", "json"],
        0,
    );
    let report = json_of(&run);
    assert_eq!(server.questions().len(), 5);
    assert_eq!(
        (&report["verdict"], &report["assessment"]),
        (&json!("warn"), &json!("lgtm_with_suggestions"))
    );
    let c = &report["coverage"];
    assert_eq!(
        (&c["files_reviewed"], &c["files_total"]),
        (&json!(5), &json!(12)),
        "{c:#}"
    );
    assert_eq!(c["hunks_reviewed"], 5);
    let shares = json!({
        "openai": {"files_reviewed": 5, "files_total": 12}, "rules": {"files_reviewed": 12, "files_total": 12},
    });
    assert_eq!(c["by_reviewer"], shares);
    let text = report["summary"]["text"].as_str().unwrap();
    assert!(
        text.contains("5 of 12 files reviewed") && text.contains("openai 5 of 12"),
        "{text}"
    );
    let line = last_line(&run.stderr);
    assert_eq!(
        line,
        "review: incomplete files=5/12 backend=rules,openai findings=0 exit=0"
    );
    let formats = [
        "human", "sarif", "github", "summary", "markdown", "gitlab", "rdjson", "junit", "dotenv",
        "html",
    ];
    for format in formats {
        let run = with_key(
            &repo,
            &["staged", "--no-save", "--no-cache", "--format", format],
            0,
        );
        let says = if format == "dotenv" {
            "files_reviewed=5\nfiles_total=12"
        } else {
            "5 of 12"
        };
        assert!(run.stdout.contains(says), "{format}: {}", run.stdout);
        assert_eq!(last_line(&run.stderr), line, "{format}");
    }
    let human = with_key(&repo, &["staged", "--no-save", "--no-cache"], 0).stdout;
    assert!(
        human.contains("WARN  no findings; a limit truncated the review: 5 of 12 files reviewed"),
        "{human}"
    );
}

#[test]
fn ver_02_files_count_when_every_named_backend_finished_them() {
    let good = Server::start(|r: &Request| r.review(&[]));
    let bad = Server::start(|_| Reply::json(500, &json!({})));
    for (mode, reviewed, code) in [("all", 0, 3), ("first", 2, 0)] {
        let repo = Repo::new();
        repo.stage("README.md", "# Sample\n").commit("first");
        let policy = format!(
            "version = 1\n[review]\nbackends = [\"one\", \"two\"]\nmode = \"{mode}\"\n\
             [backend.one]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\n\
             [backend.two]\nkind = \"openai\"\nbase_url = \"{}\"\nmodel = \"m\"\nmax_retries = 0\n",
            good.url(),
            bad.url()
        );
        repo.write(".claude-reviewer.toml", policy);
        repo.stage("a.py", "x = 1\n").stage("b/b.py", "y = 1\n");
        let run = repo
            .reviewer(&[
                "review",
                "staged",
                "--no-save",
                "--no-cache",
                "--format",
                "json",
            ])
            .run(code);
        let report = json_of(&run);
        let c = &report["coverage"];
        assert_eq!(
            (
                &c["files_reviewed"],
                &c["by_reviewer"]["one"]["files_reviewed"]
            ),
            (&json!(reviewed), &json!(2)),
            "{mode}: {c:#}"
        );
        assert!(
            last_line(&run.stderr).contains(&format!("files={reviewed}/2")),
            "{}",
            run.stderr
        );
        let asked_two = report["usage"]
            .as_array()
            .unwrap()
            .iter()
            .any(|u| u["backend"] == "two");
        assert_eq!(asked_two, mode == "all", "{report:#}");
        assert_eq!(
            last_line(&run.stderr).contains("two"),
            mode == "all",
            "{}",
            run.stderr
        );
    }
}

#[test]
fn ver_02_a_backend_that_fails_is_not_shown_as_answered_from_the_cache() {
    let server = Server::start(|_| Reply::json(400, &json!({"error": {"message": "no"}})));
    let repo = cut(&server, 1, 5);
    let human = with_key(&repo, &["staged", "--no-save"], 3).stdout;
    assert!(!human.contains("from the cache"), "{human}");
    assert!(human.contains("1 question failed"), "{human}");
    let report = json_of(&with_key(
        &repo,
        &["staged", "--no-save", "--format", "json"],
        3,
    ));
    assert_eq!(
        (
            &report["usage"][0]["failed"],
            &report["usage"][0]["from_cache"]
        ),
        (&json!(1), &json!(0))
    );
    assert_eq!(report["coverage"]["files_reviewed"], 0);
    assert_ne!(report["duration_ms"], 0);
    assert_ne!(report["usage"][0]["duration_ms"], 0);
}

#[test]
fn ver_02_offline_where_a_backend_is_named_counts_no_file_as_reviewed() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = cut(&server, 2, 5);
    let run = with_key(&repo, &["staged", "--no-save", "--offline"], 3);
    assert!(
        last_line(&run.stderr).starts_with("review: incomplete files=0/2 "),
        "{}",
        run.stderr
    );
}

#[test]
fn a_provider_that_was_not_asked_is_not_named() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"one\", \"two\"]\nmode = \"first\"\n\
         [backend.one]\nkind = \"openai\"\nbase_url = \"{0}\"\nmodel = \"m\"\n\
         [backend.two]\nkind = \"openai\"\nbase_url = \"{0}\"\nmodel = \"m\"\n",
        server.url()
    );
    repo.write("../home/.config/claude-reviewer/config.toml", policy);
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.stage("a.py", "x = 1\n");
    let mut client = Client::ready(&repo, &[]);
    let content = client.content("review_staged", json!({"repository_path": repo.path()}));
    assert_eq!(content["provider"], "one", "{content:#}");
}

#[test]
fn an_audit_of_files_asks_one_lens() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .stage("a.py", "x = 1\n")
        .commit("first");
    let ask = CounselAsk::new(repo.path());
    let review = with_world(&repo, &Stop::default(), |world| {
        security_audit(&ask, &["a.py".into()], None::<&Path>, world)
    });
    assert_eq!(review.unwrap().coverage.files_reviewed, 1);
    assert_eq!(server.questions().len(), 1);
}

#[test]
fn ver_03_a_change_of_ignored_and_binary_files_is_nothing_to_review() {
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"vendor/**\"]\n",
    )
    .commit("first");
    repo.stage("vendor/a.js", "let x = 1;\n");
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend((0..4_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8));
    repo.stage("logo.png", png);
    let run = repo.review(&["staged", "--no-save", "--format", "json"], 0);
    let report = json_of(&run);
    assert_eq!(
        (&report["verdict"], &report["outcome"]),
        (&json!("pass"), &json!("nothing_to_review"))
    );
    assert_eq!(report["assessment"], Value::Null);
    assert_eq!(
        (
            &report["coverage"]["files_reviewed"],
            &report["coverage"]["files_total"]
        ),
        (&json!(0), &json!(2))
    );
    let text = report["summary"]["text"].as_str().unwrap();
    assert_eq!(
        text,
        "Nothing to review: 0 of 2 files reviewed: 1 binary, 1 ignored"
    );
    assert_eq!(
        last_line(&run.stderr),
        "review: complete files=0/2 backend=rules findings=0 exit=0"
    );
    let human = repo
        .reviewer(&["--color", "always", "review", "staged", "--no-save"])
        .run(0)
        .stdout;
    assert!(human.contains("Nothing to review"), "{human}");
    assert!(
        !human.contains("\u{1b}[1m\u{1b}[32m") && !human.contains("\u{1b}[32m"),
        "green: {human:?}"
    );
    // Also each on its own.
    repo.git(&["rm", "-q", "--cached", "logo.png"]);
    assert_eq!(
        repo.review_json(&["staged", "--no-save"], 0)["outcome"],
        "nothing_to_review"
    );
}

#[test]
fn ver_03_a_model_is_told_and_the_summary_says_that_there_are_no_conventions() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = cut(&server, 1, 5);
    let report = json_of(&with_key(
        &repo,
        &["staged", "--no-save", "--format", "json"],
        0,
    ));
    let text = report["summary"]["text"].as_str().unwrap();
    assert!(
        text.contains("no conventions file (CLAUDE.md, AGENTS.md)"),
        "{text}"
    );
    repo.stage("CLAUDE.md", "# Rules\n\nBe kind.\n")
        .commit("conventions");
    repo.stage("z.py", "z = 1\n");
    let report = json_of(&with_key(
        &repo,
        &["staged", "--no-save", "--format", "json"],
        0,
    ));
    assert!(
        !report["summary"]["text"]
            .as_str()
            .unwrap()
            .contains("no conventions"),
        "{report:#}"
    );
}
