//! Tests of `doctor`: it reports the state of the gate correctly, without revealing a key.

use crate::loopback::{Reply, Request, Server, closed_port, finding};
use crate::support::{Repo, Run};
use serde_json::{Value, json};

/// Answers like a provider with these models, whose model notices the seeded bug.
fn provider(request: &Request) -> Reply {
    if request.method == "GET" {
        return Reply::json(200, &json!({"data": [{"id": "large-2"}, {"id": "stub"}]}));
    }
    let bug = finding(
        "src/claude_reviewer_canary.py",
        3,
        "return items[len(items)]",
    );
    request.review(&[bug])
}

/// Writes the user's policy, which is trusted.
fn user(repo: &Repo, policy: &str) {
    let dir = repo.home().join(".config/claude-reviewer");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("config.toml"), policy).unwrap();
}

#[track_caller]
fn doctor(repo: &Repo, args: &[&str], code: i32) -> Run {
    repo.reviewer(&[&["doctor"], args].concat()).run(code)
}

/// Returns the checks of a section, as name, state and text with its hint.
#[track_caller]
fn section(report: &Value, title: &str) -> Vec<(String, String, String)> {
    let sections = report["sections"].as_array().unwrap();
    let found = sections
        .iter()
        .find(|s| s["title"] == title)
        .unwrap_or_else(|| panic!("no {title}: {report:#}"));
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let checks = found["checks"].as_array().unwrap().iter();
    checks
        .map(|c| {
            (
                text(&c["name"]),
                text(&c["state"]),
                format!("{} | {}", text(&c["text"]), text(&c["hint"])),
            )
        })
        .collect()
}

#[track_caller]
fn json_of(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|e| panic!("{e}: {}", run.stdout))
}

/// Returns the text and the state of a check.
#[track_caller]
fn check(checks: &[(String, String, String)], name: &str) -> (String, String) {
    let found = checks
        .iter()
        .find(|(n, _, _)| n == name)
        .unwrap_or_else(|| panic!("no {name}: {checks:?}"));
    (found.1.clone(), found.2.clone())
}

#[test]
fn a_place_without_backends_is_fit_for_the_rules() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n").commit("seed");
    let run = doctor(&repo, &[], 0);
    assert!(
        run.stdout.contains("the gate works: it can pass and block"),
        "{}",
        run.stdout
    );
    let report = json_of(&doctor(&repo, &["--format", "json"], 0));
    assert_eq!(
        (report["exit"].as_u64(), report["problems"].as_u64()),
        (Some(0), Some(0))
    );
    assert_eq!(check(&section(&report, "policy"), "models").0, "note");
    for (_, state, text) in section(&report, "self-test") {
        assert_eq!(state, "ok", "{text}");
    }
    // It leaves nothing behind, and needs no repository.
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    let outside = repo.home();
    let run = repo.reviewer(&["doctor"]).dir(&outside).run(0);
    assert!(
        run.stdout.contains("no git repository in "),
        "{}",
        run.stdout
    );
}

#[test]
fn a_backend_is_told_with_its_models_and_never_with_its_key() {
    let repo = Repo::new();
    let server = Server::start(provider);
    user(&repo, &server.policy("openai"));
    let key = format!("sk-{}", "canary0123456789abcdef");
    let run = repo
        .reviewer(&["doctor", "--format", "json", "-vv"])
        .env("OPENAI_API_KEY", &key)
        .run(0);
    let backend = section(&json_of(&run), "backend openai");
    assert_eq!(
        check(&backend, "key"),
        ("ok".to_owned(), "OPENAI_API_KEY is set | ".to_owned())
    );
    assert_eq!(check(&backend, "model").1, "stub | ");
    assert_eq!(check(&backend, "offers").1, "large-2, stub | ");
    assert!(
        check(&backend, "endpoint").1.contains(&server.url()),
        "{backend:?}"
    );
    assert!(!run.stdout.contains("canary0123") && !run.stderr.contains("canary0123"));
    assert!(
        server.questions().is_empty(),
        "nothing is asked without --probe"
    );
    assert!(server.saw(&key), "it went where it belongs");
}

#[test]
fn sec_09_offline_asks_nobody() {
    let repo = Repo::new();
    let server = Server::start(provider);
    user(&repo, &server.policy("openai"));
    let report = json_of(&doctor(&repo, &["--offline", "--format", "json"], 0));
    assert!(
        check(&section(&report, "backend openai"), "model")
            .1
            .contains("--offline")
    );
    assert_eq!(server.connections(), 0);
    // Without a configured backend, none is contacted either.
    user(
        &repo,
        &server
            .policy("openai")
            .replace("backends = [\"openai\"]", "backends = []"),
    );
    doctor(&repo, &[], 0);
    assert_eq!(server.connections(), 0);
    // A backend on the command line is contacted.
    let report = json_of(&doctor(
        &repo,
        &["--backend", "openai", "--format", "json"],
        0,
    ));
    assert_eq!(check(&section(&report, "backend openai"), "model").0, "ok");
    assert!(server.connections() > 0);
}

#[test]
fn a_model_that_the_account_lacks_is_doubted() {
    let repo = Repo::new();
    let server = Server::start(provider);
    user(
        &repo,
        &server.policy("openai").replace("\"stub\"", "\"large-3\""),
    );
    let report = json_of(&doctor(&repo, &["--format", "json"], 0));
    let (state, text) = check(&section(&report, "backend openai"), "model");
    assert_eq!(state, "warning");
    assert!(text.contains("did you mean large-2?"), "{text}");
}

#[test]
fn a_backend_that_cannot_be_asked_is_a_problem_with_a_way_out() {
    let repo = Repo::new();
    let refuses = Server::start(|_| {
        Reply::json(
            401,
            &json!({"error": {"message": "bad key", "type": "invalid_request_error"}}),
        )
    });
    let gone = format!("http://127.0.0.1:{}", closed_port());
    for (policy, name, part) in [
        (refuses.policy("openai"), "openai", "401"),
        (refuses.policy("openai").replace(&refuses.url(), &gone), "openai", "cannot reach"),
        ("version = 1\n[review]\nbackends = [\"anthropic\"]\n".to_owned(), "anthropic", "set ANTHROPIC_API_KEY"),
        (
            "version = 1\n[review]\nbackends = [\"claude\"]\n[backend.claude]\npath = \"/nothing/claude\"\n".to_owned(),
            "claude",
            "CLAUDE_CLI_PATH",
        ),
    ] {
        user(&repo, &policy);
        let report = json_of(&doctor(&repo, &["--format", "json"], 3));
        let checks = section(&report, &format!("backend {name}"));
        assert!(checks.iter().any(|(_, state, text)| state == "problem" && text.contains(part)), "{part}: {checks:?}");
        // The gate itself is unaffected.
        assert!(section(&report, "self-test").iter().all(|(_, state, _)| state == "ok"), "{report:#}");
    }
    let run = doctor(&repo, &["--backend", "nobody"], 2);
    assert!(
        run.stderr.contains("unknown backend nobody"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_server_without_a_list_is_no_problem_where_the_model_is_named() {
    let repo = Repo::new();
    let server = Server::start(|r| match r.method.as_str() {
        "GET" => Reply::json(404, &json!({"error": {"message": "no such path"}})),
        _ => r.review(&[]),
    });
    user(&repo, &server.policy("openai"));
    let report = json_of(&doctor(&repo, &["--format", "json"], 0));
    assert_eq!(
        check(&section(&report, "backend openai"), "models").0,
        "note"
    );
    user(
        &repo,
        &server.policy("openai").replace("model = \"stub\"\n", ""),
    );
    doctor(&repo, &[], 3);
}

#[test]
fn a_withheld_backend_is_told_and_not_asked() {
    let repo = Repo::new();
    let server = Server::start(provider);
    // The project's file is not trusted, so its key settings are ignored.
    repo.write(
        ".claude-reviewer.toml",
        server.policy("openai") + "api_key_env = \"AWS_SECRET\"\n",
    );
    let report = json_of(&doctor(&repo, &["--format", "json"], 3));
    let checks = section(&report, "backend openai");
    assert!(
        checks
            .iter()
            .any(|(_, s, t)| s == "problem" && t.contains("claude-reviewer policy trust")),
        "{checks:?}"
    );
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_gate_that_cannot_block_or_cannot_pass_is_a_problem() {
    let repo = Repo::new();
    for (policy, wrong) in [
        (
            "version = 1\nblock_on = []\n",
            ["model's finding", "rules' finding"].as_slice(),
        ),
        (
            "version = 1\nignore = [\"**\"]\n",
            ["model's finding", "rules' finding"].as_slice(),
        ),
    ] {
        repo.write(".claude-reviewer.toml", policy);
        let report = json_of(&doctor(&repo, &["--format", "json"], 3));
        let canary = section(&report, "self-test");
        for name in wrong {
            assert_eq!(check(&canary, name).0, "problem", "{policy}: {canary:?}");
        }
        assert_eq!(check(&canary, "clean change").0, "ok", "{canary:?}");
    }
    // A gate that passes incomplete reviews was configured that way.
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\non_incomplete = \"warn\"\n",
    );
    doctor(&repo, &[], 0);
    // The strictest gate can still do both.
    let strict = "version = 1\nblock_on = [\"suggestion\"]\nmin_confidence = \"high\"\n[review]\ndepth = \"thorough\"\n";
    repo.write(".claude-reviewer.toml", strict);
    doctor(&repo, &[], 0);
}

#[test]
fn a_policy_that_cannot_be_read_is_a_usage_error() {
    let repo = Repo::new();
    repo.write(".claude-reviewer.toml", "version = 1\nblock-on = []\n");
    let run = doctor(&repo, &[], 2);
    assert!(
        run.stderr.contains("did you mean \"block_on\"?"),
        "{}",
        run.stderr
    );
    assert_eq!(run.stdout, "");
}

#[test]
fn a_probe_asks_every_backend_and_judges_the_way_not_the_wit() {
    let repo = Repo::new();
    let (good, blind) = (
        Server::start(provider),
        Server::start(|r| match r.method.as_str() {
            "GET" => Reply::json(200, &json!({"data": [{"id": "stub"}]})),
            _ => r.review(&[]),
        }),
    );
    let vague = Server::start(|r| match r.method.as_str() {
        "GET" => Reply::json(200, &json!({"data": [{"id": "stub"}]})),
        _ => r.text("Looks good to me!"),
    });
    for (server, code, name, state) in [
        (&good, 0, "bug", "ok"),
        (&blind, 0, "bug", "warning"),
        (&vague, 3, "review", "problem"),
    ] {
        user(&repo, &server.policy("openai"));
        let report = json_of(&doctor(&repo, &["--probe", "--format", "json"], code));
        assert_eq!(
            check(&section(&report, "probe of openai"), name).0,
            state,
            "{report:#}"
        );
        assert!(!server.questions().is_empty());
    }
    let run = doctor(&repo, &["--probe", "--offline"], 2);
    assert!(run.stderr.contains("--offline"), "{}", run.stderr);
}

#[test]
fn inj_10_what_servers_say_is_shown_and_not_acted_on() {
    let repo = Repo::new();
    let server = Server::start(|_| {
        Reply::json(
            200,
            &json!({"data": [{"id": "evil\u{1b}[2Jmodel"}, {"id": "::error::x"}]}),
        )
    });
    user(&repo, &server.policy("openai"));
    let run = doctor(&repo, &[], 0);
    assert!(
        !run.stdout.contains('\u{1b}') && run.stdout.contains("\\x1b"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.lines().all(|l| !l.starts_with("::")),
        "{}",
        run.stdout
    );
}
