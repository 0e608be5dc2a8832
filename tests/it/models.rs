//! End-to-end tests of models: the binary, a repository, and a server on this machine.

mod second_look;

use crate::loopback::{KINDS, Reply, Request, Says, Server};
use crate::support::{Repo, line_with_key};
use claude_reviewer::policy::BackendKind;
use serde_json::{Value, json};

const FLAW: &str = "fn half(n: u32) -> u32 {\n    n / (n - n)\n}\n";

/// Creates a repository with one staged file, and a policy that enables the server; `review` is
/// added to its `[review]`.
fn staged(server: &Server, kind: &str, review: &str) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    repo.commit("first");
    repo.write(
        ".claude-reviewer.toml",
        server
            .policy(kind)
            .replace("[review]\n", &format!("[review]\n{review}")),
    );
    repo.stage("src/half.rs", FLAW);
    repo
}

fn claim() -> Value {
    json!({
        "file": "src/half.rs", "line": 2, "end_line": null, "quote": "    n / (n - n)",
        "severity": "major", "category": "bug", "cwe": null, "title": "divides by zero",
        "message": "the divisor is always zero", "failure": "half(1) panics", "suggestion": "divide by two",
        "replacement": "    n / 2", "convention": null,
    })
}

fn with_key(repo: &Repo, args: &[&str]) -> crate::support::Reviewer {
    let key = format!("sk-{}", "0".repeat(20));
    let args = [&["review"], args].concat();
    repo.reviewer(&args)
        .env("ANTHROPIC_API_KEY", &key)
        .env("OPENAI_API_KEY", &key)
        .env("GEMINI_API_KEY", &key)
}

#[track_caller]
fn report(repo: &Repo, args: &[&str], code: i32) -> Value {
    let run = with_key(repo, &[args, &["--format", "json"]].concat()).run(code);
    serde_json::from_str(&run.stdout)
        .unwrap_or_else(|e| panic!("no JSON: {e}\n{}\n{}", run.stdout, run.stderr))
}

#[test]
fn a_claim_that_is_found_again_blocks_with_every_backend() {
    for kind in KINDS.map(BackendKind::name) {
        let server = Server::start(|r: &Request| r.review(&[claim()]));
        let repo = staged(&server, kind, "");
        let report = report(&repo, &["staged"], 1);
        assert_eq!(report["verdict"], "block", "{kind}: {report:#}");
        let f = &report["findings"][0];
        assert_eq!(
            (&f["file"], &f["line"]),
            (&json!("src/half.rs"), &json!(2)),
            "{f:#}"
        );
        assert_eq!(
            (&f["confidence"], &f["origin"]),
            (&json!("medium"), &json!(kind)),
            "{f:#}"
        );
        assert_eq!(f["replacement"], "    n / 2");
        // The review, and a second check of the claim.
        assert_eq!(report["usage"][0]["requests"], 2, "{report:#}");
        assert_eq!(server.questions().len(), 2);
    }
}

#[test]
fn nothing_found_by_a_model_that_answered_passes() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let report = report(&repo, &["staged"], 0);
    assert_eq!(
        (&report["verdict"], &report["outcome"]),
        (&json!("pass"), &json!("reviewed")),
        "{report:#}"
    );
}

#[test]
fn git_03_no_change_asks_nobody() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    repo.write(".git/info/exclude", ".claude-reviewer.toml\n");
    repo.commit("first");
    repo.write(".claude-reviewer.toml", server.policy("openai"));
    let report = report(&repo, &["staged"], 0);
    assert_eq!(report["outcome"], "nothing_to_review");
    assert_eq!(server.connections(), 0);
}

#[test]
fn what_was_reviewed_before_is_not_asked_again_and_an_edit_asks_only_for_what_it_touches() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "max_files = 1\n");
    repo.stage("lib/other.py", "def f(x):\n    return x\n");
    let first = report(&repo, &["staged"], 0);
    assert_eq!(server.questions().len(), 2, "{first:#}");
    let again = report(&repo, &["staged"], 0);
    assert_eq!(server.questions().len(), 2, "{again:#}");
    assert_eq!(again["coverage"]["cached"], 2, "{again:#}");
    repo.stage("lib/other.py", "def f(x):\n    return x + 1\n");
    let edited = report(&repo, &["staged"], 0);
    assert_eq!(server.questions().len(), 3, "{edited:#}");
    assert_eq!(edited["coverage"]["cached"], 1);
    report(&repo, &["staged", "--no-cache"], 0);
    assert_eq!(server.questions().len(), 5);
}

#[test]
fn what_a_limit_cuts_off_is_named_and_incomplete() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "max_files = 1\nmax_requests = 1\n");
    repo.stage("lib/other.py", "def f(x):\n    return x\n");
    let cut = report(&repo, &["staged"], 3);
    assert_eq!(server.questions().len(), 1);
    assert_eq!(
        cut["coverage"]["failed"].as_array().unwrap().len(),
        1,
        "{cut:#}"
    );
    let why = cut["coverage"]["failed"][0]["reason"].as_str().unwrap();
    assert!(why.contains("max_requests = 1"), "{why}");

    let repo = staged(&server, "openai", "max_files = 1\nmax_requests = 1\n");
    let policy = std::fs::read_to_string(repo.path().join(".claude-reviewer.toml")).unwrap();
    repo.write(
        ".claude-reviewer.toml",
        policy.replace("version = 1", "version = 1\non_truncated = \"warn\""),
    );
    repo.stage("lib/other.py", "def f(x):\n    return x\n");
    let let_through = report(&repo, &["staged"], 0);
    assert_eq!(
        let_through["coverage"]["skipped"][0]["reason"], "limit",
        "{let_through:#}"
    );
}

#[test]
fn the_rules_and_a_model_that_see_the_same_line_make_one_finding() {
    let line = line_with_key();
    let quote = line.trim_end().to_owned();
    let server = Server::start(move |r: &Request| {
        let shown = r.prompt();
        assert!(!shown.contains(&quote), "the key was sent");
        let seen = shown
            .lines()
            .find(|l| l.contains("<secret:aws"))
            .unwrap()
            .to_owned();
        let claim = json!({
            "file": "deploy.ini", "line": 1, "quote": seen, "severity": "critical", "category": "security",
            "cwe": 798, "title": "a key in the sources", "message": "a key", "end_line": null, "failure": null,
            "suggestion": null, "replacement": null, "convention": null,
        });
        r.review(&[claim])
    });
    let repo = staged(&server, "openai", "");
    repo.stage("deploy.ini", &line);
    let report = report(&repo, &["staged"], 1);
    let at_line: Vec<_> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["file"] == "deploy.ini")
        .collect();
    assert_eq!(at_line.len(), 1, "{report:#}");
    assert_eq!(at_line[0]["origin"], "rules");
    assert!(
        at_line[0]["evidence"]
            .as_array()
            .unwrap()
            .contains(&json!("backend:openai")),
        "{report:#}"
    );
    assert!(!server.saw(line.trim_end().rsplit(' ').next().unwrap()));
}

#[test]
fn two_backends_that_agree_are_believed_more() {
    let server = Server::start(|r: &Request| r.review(&[claim()]));
    let repo = staged(&server, "openai", "");
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"one\", \"two\"]\n[backend.one]\nkind = \"openai\"\nmodel = \"a\"\nbase_url = \"{0}/v1\"\n[backend.two]\nkind = \"anthropic\"\nmodel = \"b\"\nbase_url = \"{0}\"\n",
        server.url()
    );
    repo.write(".claude-reviewer.toml", policy);
    let report = report(&repo, &["staged"], 1);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{report:#}");
    assert_eq!(findings[0]["confidence"], "high", "{report:#}");
    assert_eq!(report["usage"].as_array().unwrap().len(), 2);
}

#[test]
fn in_mode_first_the_next_backend_answers_for_one_that_does_not() {
    let server = Server::start(|r: &Request| {
        if r.path.starts_with("/dead") {
            Reply::error(401, "authentication_error", "no")
        } else {
            r.review(&[claim()])
        }
    });
    let repo = staged(&server, "openai", "");
    let policy = |mode: &str| {
        format!(
            "version = 1\n[review]\nbackends = [\"dead\", \"alive\"]\nmode = \"{mode}\"\n[backend.dead]\nkind = \"openai\"\nmodel = \"a\"\nbase_url = \"{0}/dead\"\n[backend.alive]\nkind = \"openai\"\nmodel = \"b\"\nbase_url = \"{0}/v1\"\n",
            server.url()
        )
    };
    repo.write(".claude-reviewer.toml", policy("first"));
    let first = report(&repo, &["staged"], 1);
    assert_eq!(first["outcome"], "reviewed", "{first:#}");
    repo.write(".claude-reviewer.toml", policy("all"));
    let all = report(&repo, &["staged", "--no-cache"], 1);
    assert_eq!(all["outcome"], "incomplete", "{all:#}");
}

#[test]
fn beside_tools_a_form_that_cannot_be_prescribed_is_told_in_the_stable_front() {
    for kind in KINDS.map(BackendKind::name) {
        // Every question is answered after a tool call.
        let server =
            Server::start(
                |r: &Request| match r.json().to_string().contains("half.rs is") {
                    false => r.calls(&[("search", json!({"pattern": "half.rs is", "glob": ""}))]),
                    true => r.review(&[]),
                },
            );
        let repo = staged(&server, kind, "depth = \"thorough\"\n");
        report(&repo, &["staged"], 0);
        let front = |r: &Request| match kind {
            "openai" => r.json()["messages"][0]["content"].clone(),
            "anthropic" => r.json()["system"][0]["text"].clone(),
            _ => r.json()["systemInstruction"]["parts"][0]["text"].clone(),
        };
        let questions = server.questions();
        let fronts: Vec<_> = questions.iter().map(front).collect();
        assert!(
            fronts.len() > 1 && fronts.iter().all(|f| *f == fronts[0]),
            "{kind}: {fronts:#?}"
        );
        let front = fronts[0].as_str().unwrap();
        assert!(!questions[0].json()["tools"].is_null(), "{kind}");
        for field in [
            "nonce",
            "files_reviewed",
            "end_line",
            "quote",
            "missing_requirements",
            "follows_architecture",
        ] {
            assert!(
                front.contains(&format!("\"{field}\"")),
                "{kind}: {field}: {front}"
            );
        }
    }
    // Without tools, the schema prescribes the form, and the prompt does not repeat it.
    let server = Server::start(|r: &Request| r.review(&[]));
    report(&staged(&server, "openai", ""), &["staged"], 0);
    assert!(
        !server.questions()[0]
            .prompt()
            .contains("follows_architecture")
    );
}

#[test]
fn prompts_are_written_only_where_they_are_asked_for_and_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let file = repo.home().join("prompts.txt");
    let run = with_key(
        &repo,
        &["staged", "-vv", "--debug-prompts", file.to_str().unwrap()],
    )
    .run(0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("n / (n - n)"), "{text}");
    assert!(!text.contains(&"0".repeat(20)), "a key");
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert!(!(run.stdout + &run.stderr).contains("n / (n - n)"));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = with_key(
        &repo,
        &["staged", "--debug-prompts", file.to_str().unwrap()],
    )
    .run(2);
    assert!(run.stderr.contains("others may read it"), "{}", run.stderr);
}

#[test]
fn tests_run_for_the_operator_without_credentials_and_stand_in_the_report() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let script = "env > seen.txt; echo 'test result: FAILED. 41 passed; 1 failed; 2 ignored; 0 measured'; \
                  echo 'test a::b ... FAILED'; exit 1";
    repo.write(
        "../home/.config/claude-reviewer/config.toml",
        format!("[tests]\nrun = true\ncommand = \"{script}\"\n"),
    );
    let run = repo
        .reviewer(&["review", "staged", "--format", "json"])
        .env("AWS_SECRET_ACCESS_KEY", "canary-one")
        .env("GITHUB_TOKEN", "canary-two")
        .env("GIT_DIR", repo.path().join(".git"))
        .run(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let expected = json!({
        "passed": false, "outcome": "failed", "blocking": true, "coverage": null,
        "summary": "41 passed, 1 failed, 2 skipped (exit code 1)", "failing_tests": ["a::b"],
    });
    assert_eq!(report["test_results"], expected);
    let seen = std::fs::read_to_string(repo.path().join("seen.txt")).unwrap();
    assert!(
        !seen.contains("canary") && !seen.contains("GIT_DIR"),
        "{seen}"
    );
    assert!(seen.contains("PATH="), "{seen}");
}

#[test]
fn a_projects_own_file_does_not_make_tests_run() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[tests]\nrun = true\ncommand = \"touch ran\"\n",
    );
    let report = repo.review_json(&["staged"], 0);
    assert_eq!(report["test_results"], Value::Null);
    assert!(!repo.path().join("ran").exists());
}

#[test]
fn sec_09_offline_opens_no_socket_and_is_incomplete_where_a_backend_is_wanted() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let report = report(&repo, &["staged", "--offline"], 3);
    assert_eq!(server.connections(), 0);
    let why = report["coverage"]["failed"][0]["reason"].as_str().unwrap();
    assert!(why.contains("--offline"), "{why}");
}

#[test]
fn a_limit_of_tokens_stops_before_the_next_request() {
    let server = Server::start(|r: &Request| {
        r.answer(&Says {
            text: r.document(&[]).to_string(),
            tokens: (4_000, 0, 500),
            ..Says::default()
        })
    });
    let repo = staged(&server, "openai", "max_files = 1\njobs = 1\n");
    repo.stage("lib/other.py", "def f(x):\n    return x\n");
    let report = report(&repo, &["staged", "--max-tokens", "6000"], 3);
    assert_eq!(server.questions().len(), 1, "{report:#}");
    let why = report["coverage"]["failed"][0]["reason"].as_str().unwrap();
    assert!(why.contains("--max-tokens 6000"), "{why}");
}

#[test]
fn a_models_finding_stands_in_sarif_with_a_rule_of_its_own() {
    let server = Server::start(|r: &Request| r.review(&[claim()]));
    let repo = staged(&server, "openai", "");
    let run = with_key(&repo, &["staged", "--format", "sarif"]).run(1);
    let sarif: Value = serde_json::from_str(&run.stdout).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["ruleId"], "ai-bug", "{sarif:#}");
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap();
    let rule = rules.iter().find(|r| r["id"] == "ai-bug").unwrap();
    assert!(
        rule["fullDescription"]["text"].as_str().unwrap().len() > 20,
        "{rule:#}"
    );
    assert_eq!(
        result["locations"][0]["physicalLocation"]["region"]["startLine"],
        2
    );
}

#[test]
fn hok_09_with_the_model_down_and_on_incomplete_warn_the_rules_gate() {
    let down = {
        let server = Server::start(|r: &Request| r.review(&[]));
        format!(
            "{}[hooks]\npre_commit = \"full\"\n",
            server.policy("openai")
        )
    };
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n");
    repo.commit("first");
    repo.write(".claude-reviewer.toml", &down);
    repo.stage("half.rs", FLAW);
    let hook = ["--hook", "pre-commit"];
    let run = with_key(&repo, &hook).run(3);
    assert!(run.stdout.contains("INCOMPLETE"), "{}", run.stdout);

    let run = with_key(&repo, &[&hook[..], &["--on-incomplete", "warn"]].concat()).run(0);
    assert!(run.stdout.contains("INCOMPLETE"), "{}", run.stdout);
    assert!(
        run.stdout.contains("because of on_incomplete"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.trim_end().ends_with("exit=0"), "{}", run.stderr);

    repo.stage("deploy.ini", line_with_key());
    let run = with_key(&repo, &[&hook[..], &["--on-incomplete", "warn"]].concat()).run(1);
    assert!(run.stdout.contains("BLOCK"), "{}", run.stdout);
}

#[test]
fn dif_17_models_are_not_shown_generated_files_and_lockfiles_and_the_rules_read_them() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    repo.stage(
        "api.pb.go",
        format!(
            "// Code generated by protoc. DO NOT EDIT.\npackage api\n// {}",
            line_with_key()
        ),
    );
    repo.stage("package-lock.json", "{\n  \"lockfileVersion\": 3\n}\n");
    let report = report(&repo, &["staged"], 1);
    let skipped = report["coverage"]["skipped"].to_string();
    assert!(
        skipped.contains("generated") && skipped.contains("lockfile"),
        "{skipped}"
    );
    assert_eq!(report["findings"][0]["file"], "api.pb.go", "{report:#}");
    assert_eq!(report["coverage"]["files_reviewed"], 3);
    assert!(!server.saw("protoc") && !server.saw("lockfileVersion"));
    assert_eq!(report["outcome"], "reviewed");
}

#[test]
fn a_push_of_two_branches_puts_each_claim_back_with_the_code_of_its_own_branch() {
    let server = Server::start(|r: &Request| r.review(&[claim()]));
    let repo = staged(&server, "openai", "depth = \"thorough\"\n");
    let policy = repo.path().join(".claude-reviewer.toml");
    let policy = format!(
        "{}[hooks]\npre_push = \"full\"\n",
        std::fs::read_to_string(policy).unwrap()
    );
    repo.git(&["reset", "-q", "--hard"]);
    repo.write(".claude-reviewer.toml", policy);
    let base = repo.git(&["rev-parse", "HEAD"]).trim().to_owned();
    let mut input = String::new();
    for (branch, name) in [("one", "half"), ("two", "middle")] {
        repo.git(&["checkout", "-q", "-b", branch, &base]);
        repo.stage("src/half.rs", FLAW.replace("half", name))
            .commit(branch);
        let head = repo.git(&["rev-parse", "HEAD"]);
        input += &format!(
            "refs/heads/{branch} {} refs/heads/{branch} {base}\n",
            head.trim()
        );
    }
    let run = with_key(&repo, &["--hook", "pre-push", "--format", "json"])
        .stdin(input)
        .run(1);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    let asked = server.questions();
    let again = asked
        .iter()
        .filter(|r| r.is_refutation())
        .map(Request::prompt)
        .collect::<Vec<_>>();
    for name in ["fn half", "fn middle"] {
        assert!(
            again.iter().any(|p| p.contains(name)),
            "{name}: {again:#?}\n{report:#}"
        );
    }
}

#[test]
fn a_document_that_cannot_be_given_makes_the_review_incomplete() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let report = report(&repo, &["staged", "--doc", "nowhere.md"], 3);
    let failed = report["coverage"]["failed"].to_string();
    assert!(
        failed.contains("nowhere.md was not given to a model: file not found"),
        "{failed}"
    );
}

#[test]
fn a_change_does_not_take_itself_out_of_sight_by_calling_itself_generated() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    repo.stage(".gitattributes", "*.rs linguist-generated\n");
    report(&repo, &["staged"], 0);
    assert!(server.saw("n / (n - n)"));
}

#[test]
fn a_limit_of_time_holds_while_the_change_is_read() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let report = report(&repo, &["staged", "--timeout", "1ms"], 3);
    let failed = report["coverage"]["failed"].to_string();
    assert!(failed.contains("timeout = 1ms"), "{failed}");
    assert_eq!(server.questions().len(), 0);
}

#[test]
fn a_limit_of_cost_that_nobody_can_hold_is_told() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = staged(&server, "openai", "");
    let told = |args: &[&str]| {
        report(&repo, args, 0)["notes"]
            .to_string()
            .contains("max_cost_usd has no effect for")
    };
    assert!(!told(&["staged", "--no-cache"]));
    assert!(told(&["staged", "--no-cache", "--max-cost", "0.5"]));
}

#[test]
fn a_design_violation_blocks_where_the_heading_it_cites_is_in_the_document() {
    let cases = [
        (
            "docs/design.md#Pools: \"pools are independent of exercises\"",
            true,
        ),
        ("docs/design.md#Pools", true),
        ("docs/design.md#No such heading", false),
    ];
    for (cited, exists) in cases {
        let server = Server::start(move |r: &Request| {
            let mut answer = r.document(&[]);
            answer["design_compliance"] = json!({"follows_architecture": false, "violations": [{
                "issue": "pools refer to exercises", "description": "the schema has exercise_id",
                "impact": "critical", "reference": cited, "recommendation": "drop the field",
            }]});
            r.text(&answer.to_string())
        });
        let repo = staged(&server, "openai", "");
        repo.write(
            "docs/design.md",
            "# Design\n\n## Pools\n\nPools are independent of exercises.\n",
        );
        let report = report(
            &repo,
            &["staged", "--doc", "docs/design.md"],
            i32::from(exists),
        );
        let f = &report["findings"][0];
        if !exists {
            assert!(
                report["findings"].as_array().unwrap().is_empty() && f.is_null(),
                "{report:#}"
            );
            continue;
        }
        assert_eq!(
            (&f["severity"], &f["file"]),
            (&json!("critical"), &Value::Null),
            "{report:#}"
        );
        assert_eq!(
            report["design_compliance"]["violations"]
                .as_array()
                .unwrap()
                .len(),
            1,
            "{report:#}"
        );
    }
}

#[test]
fn a_preset_needs_no_table_and_no_key_and_a_table_overrides_single_keys() {
    // There is no server at its default port, and the error names the address.
    let repo = Repo::new();
    repo.stage("src/half.rs", FLAW);
    for (name, address) in [
        ("ollama", "127.0.0.1:11434"),
        ("lmstudio", "127.0.0.1:1234"),
        ("llamacpp", "127.0.0.1:8080"),
    ] {
        let shown = repo
            .reviewer(&["policy", "show", "--format", "toml"])
            .run(0)
            .stdout;
        assert!(!shown.contains(name), "{shown}");
        let run = repo
            .reviewer(&["doctor", "--backend", name, "--offline"])
            .run(0);
        assert!(
            run.stdout.contains(address) && run.stdout.contains("not needed"),
            "{}",
            run.stdout
        );
    }
    let server = Server::start(|r: &Request| r.review(&[claim()]));
    let table = format!(
        "version = 1\n[backend.ollama]\nbase_url = \"{}\"\nmodel = \"stub\"\n",
        server.url()
    );
    repo.write(".claude-reviewer.toml", table);
    let report = report(&repo, &["staged", "--backend", "ollama"], 1);
    assert_eq!(report["findings"][0]["origin"], "ollama", "{report:#}");
    assert_eq!(
        server.questions()[0].header("authorization"),
        None,
        "no key of another service is sent"
    );
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[backend.ollama]\nkind = \"google\"\n",
    );
    let run = repo.reviewer(&["policy", "check"]).run(2);
    let said = run.stdout + &run.stderr;
    assert!(
        said.contains("must be \"openai\" for the built-in backend of this name"),
        "{said}"
    );
}

#[test]
fn the_key_of_openrouter_is_required_there_and_goes_nowhere_else() {
    let repo = Repo::new();
    repo.stage("src/half.rs", FLAW);
    let run = with_key(&repo, &["staged", "--backend", "openrouter"]).run(3);
    assert!(
        run.stdout.contains("OPENROUTER_API_KEY is not set"),
        "{}",
        run.stdout
    );
    let server = Server::start(|r: &Request| r.review(&[]));
    let table = format!(
        "version = 1\n[backend.openrouter]\nbase_url = \"{}\"\nmodel = \"stub\"\n",
        server.url()
    );
    repo.write("../home/.config/claude-reviewer/config.toml", table);
    let run = with_key(&repo, &["staged", "--backend", "openrouter"])
        .env("OPENROUTER_API_KEY", "sk-or-test")
        .run(0);
    assert_eq!(server.questions().len(), 1, "{}", run.stderr);
    assert_eq!(server.questions()[0].header("authorization"), None);
}
