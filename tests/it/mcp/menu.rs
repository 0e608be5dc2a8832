//! Tests of the tools: their names and arguments, and the tools of the judge with only the rules.

use super::client::{Client, text};
use crate::loopback::{Request, Server};
use crate::support::{Repo, line_with_key};
use serde_json::{Value, json};

/// Every tool with its arguments; a star marks required ones.
const MENU: &[(&str, &[&str])] = &[
    (
        "request_review",
        &[
            "summary*",
            "relevant_docs",
            "focus_areas",
            "previous_review_id",
            "response",
            "source",
        ],
    ),
    ("get_review_history", &["limit", "review_id"]),
    (
        "mark_review_complete",
        &["review_id*", "final_status*", "notes"],
    ),
    (
        "review_code",
        &[
            "code*",
            "language",
            "provider",
            "review_depth",
            "focus_areas",
        ],
    ),
    (
        "review_staged",
        &["repository_path", "provider", "review_depth", "focus_areas"],
    ),
    (
        "review_unstaged",
        &["repository_path", "provider", "review_depth", "focus_areas"],
    ),
    (
        "review_commit",
        &[
            "commit_sha*",
            "repository_path",
            "provider",
            "review_depth",
            "focus_areas",
        ],
    ),
    (
        "review_branch",
        &[
            "branch",
            "base_branch",
            "file_list",
            "repository_path",
            "provider",
            "review_depth",
            "focus_areas",
        ],
    ),
    (
        "claude_judge_review",
        &["contract_path*", "report_dir", "timeout_seconds"],
    ),
    ("claude_validate_proposal", &["proposal_path*"]),
    ("claude_security_audit", &["files*", "working_directory"]),
    (
        "claude_resolve_conflict",
        &["contract_path*", "rebuttal_path*", "judge_report_path*"],
    ),
    ("claude_health", &[]),
    ("review_plan", &["source", "summary", "question", "plan_id"]),
    (
        "submit_findings",
        &["plan_id*", "answers*", "source", "summary"],
    ),
    (
        "propose_disposition",
        &["findings*", "decision*", "reason*", "until", "review_id"],
    ),
    ("apply_finding", &["findings*", "review_id"]),
    ("verify_fix", &["findings*", "review_id"]),
    ("plan_fix", &["findings*", "review_id"]),
];

#[test]
fn the_menu_is_the_one_that_agents_know() {
    let repo = Repo::new();
    let mut client = Client::ready(&repo, &[]);
    let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
    let mut seen = Vec::new();
    for tool in tools.as_array().unwrap() {
        let input = &tool["inputSchema"];
        let required = input["required"].as_array().cloned().unwrap_or_default();
        let star = |name: &String| {
            if required.contains(&json!(name)) {
                "*"
            } else {
                ""
            }
        };
        let names = input["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(|n| format!("{n}{}", star(n)));
        seen.push((
            tool["name"].as_str().unwrap().to_owned(),
            names.collect::<Vec<_>>(),
        ));
    }
    let own = |(name, args): &(&str, &[&str])| {
        (
            (*name).to_owned(),
            args.iter().map(|a| (*a).to_owned()).collect(),
        )
    };
    assert_eq!(seen, MENU.iter().map(own).collect::<Vec<_>>());
    let of = |name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .find(|t| t["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        of("get_review_history")["inputSchema"]["properties"]["limit"]["default"],
        5
    );
    assert_eq!(
        of("claude_judge_review")["inputSchema"]["properties"]["timeout_seconds"]["default"],
        900
    );
    for (name, reads, open) in [
        ("review_staged", true, true),
        ("request_review", false, true),
        ("get_review_history", false, false),
        ("mark_review_complete", false, false),
        ("claude_judge_review", false, true),
        ("claude_health", true, false),
    ] {
        let hints = of(name)["annotations"].clone();
        assert_eq!(
            (&hints["readOnlyHint"], &hints["openWorldHint"]),
            (&json!(reads), &json!(open)),
            "{name}"
        );
    }
}

/// Forbids unnamed members in every object of a schema.
fn strict(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(strict),
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type") == Some(&json!("object"))
            {
                members.insert("additionalProperties".to_owned(), false.into());
            }
            members.values_mut().for_each(strict);
        }
        _ => {}
    }
}

/// The output schemas of all tools: as published, and without additional members.
struct Schemas(Vec<(String, jsonschema::Validator, jsonschema::Validator)>);

impl Schemas {
    fn of(client: &mut Client) -> Self {
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        let one = |tool: &Value| {
            let schema = &tool["outputSchema"];
            assert!(
                jsonschema::draft202012::meta::is_valid(schema),
                "{}",
                tool["name"]
            );
            let mut narrow = schema.clone();
            strict(&mut narrow);
            let made = |schema: &Value| jsonschema::draft202012::new(schema).unwrap();
            (
                tool["name"].as_str().unwrap().to_owned(),
                made(schema),
                made(&narrow),
            )
        };
        Self(tools.as_array().unwrap().iter().map(one).collect())
    }

    /// Calls a tool; its answer must match the schema, without additional members.
    #[track_caller]
    fn call(&self, client: &mut Client, tool: &str, arguments: Value, fails: bool) -> Value {
        let result = client.call(tool, arguments);
        assert_eq!(result["isError"] == true, fails, "{tool}: {result:#}");
        let (_, schema, narrow) = self.0.iter().find(|(name, ..)| name == tool).unwrap();
        let content = &result["structuredContent"];
        for schema in [schema, narrow] {
            let wrong: Vec<_> = schema
                .iter_errors(content)
                .map(|e| format!("{}: {e}", e.instance_path()))
                .collect();
            assert!(wrong.is_empty(), "{tool}: {wrong:#?} in {content:#}");
        }
        // A schema that accepts any value would be useless.
        for (name, value) in [
            ("outcome", json!(5)),
            ("retryable", json!("no")),
            ("status", json!([])),
            ("review_id", json!({})),
        ] {
            if content.get(name).is_some() {
                let mut other = content.clone();
                other[name] = value;
                assert!(!schema.is_valid(&other), "{tool}: {name}");
            }
        }
        assert!(
            !schema.is_valid(&json!({})) && !schema.is_valid(&json!([])),
            "{tool}"
        );
        content.clone()
    }
}

#[test]
fn every_answer_is_what_its_tool_says_that_it_answers() {
    let repo = judged(&line_with_key());
    repo.write("PROPOSAL_FINAL.md", "# Proposal\n\nTODO\n")
        .write("rebuttal.md", "The judge is wrong.\n");
    repo.write("report.json", "{\"verdict\": \"FAIL\"}\n");
    repo.stage(
        "lib/b.py",
        format!("{}os.system('rm ' + name)\n", line_with_key()),
    );
    let mut client = Client::ready(&repo, &[]);
    let client = &mut client;
    let schemas = Schemas::of(client);
    assert_eq!(schemas.0.len(), MENU.len());
    let fine = "_handoff/TASK_CONTRACT.json";
    schemas.call(client, "get_review_history", json!({}), false);
    let asked =
        json!({"summary": "x", "relevant_docs": ["no.md"], "focus_areas": ["security", "words"]});
    let first = schemas.call(client, "request_review", asked, false);
    let id = first["review_id"].clone();
    let again = json!({"summary": "y", "previous_review_id": id,
        "response": {"addressed": ["F1"], "explanations": [{"finding": "F2", "text": "t"}], "questions": ["q"]}});
    schemas.call(client, "request_review", again, false);
    schemas.call(
        client,
        "request_review",
        json!({"summary": "z", "source": "unstaged"}),
        false,
    );
    schemas.call(client, "get_review_history", json!({}), false);
    schemas.call(
        client,
        "get_review_history",
        json!({"review_id": id}),
        false,
    );
    let all =
        json!({"findings": ["F1"], "decision": "defer", "reason": "later", "until": "2999-01-01"});
    schemas.call(client, "propose_disposition", all, false);
    schemas.call(client, "verify_fix", json!({"findings": ["F1"]}), false);
    schemas.call(client, "plan_fix", json!({"findings": ["F1"]}), false);
    schemas.call(client, "apply_finding", json!({"findings": ["F1"]}), true);
    schemas.call(
        client,
        "mark_review_complete",
        json!({"review_id": id, "final_status": "approved"}),
        true,
    );
    schemas.call(
        client,
        "mark_review_complete",
        json!({"review_id": id, "final_status": "abandoned", "notes": "n"}),
        false,
    );
    schemas.call(
        client,
        "get_review_history",
        json!({"review_id": id}),
        false,
    );
    schemas.call(client, "review_staged", json!({}), false);
    schemas.call(client, "review_unstaged", json!({}), false);
    schemas.call(
        client,
        "review_code",
        json!({"code": line_with_key(), "language": "python"}),
        false,
    );
    let plan = schemas.call(
        client,
        "review_plan",
        json!({"source": "staged", "summary": "s"}),
        false,
    );
    let question = plan["questions"][0]["id"].as_str().unwrap();
    let answers = json!({question: {"nonce": plan["plan_id"]}});
    let submission =
        json!({"source": "staged", "summary": "s", "plan_id": plan["plan_id"], "answers": answers});
    schemas.call(client, "submit_findings", submission, false);
    schemas.call(
        client,
        "submit_findings",
        json!({"plan_id": "x", "answers": {}}),
        true,
    );
    repo.commit("second");
    schemas.call(client, "review_staged", json!({}), false);
    schemas.call(client, "review_plan", json!({"source": "staged"}), false);
    schemas.call(
        client,
        "review_commit",
        json!({"commit_sha": "HEAD"}),
        false,
    );
    schemas.call(
        client,
        "review_branch",
        json!({"branch": "HEAD", "base_branch": "HEAD~1"}),
        false,
    );
    let empty = schemas.call(
        client,
        "request_review",
        json!({"summary": "x", "source": "staged"}),
        false,
    );
    assert_eq!(empty["review_id"], Value::Null);
    schemas.call(
        client,
        "claude_judge_review",
        json!({"contract_path": fine}),
        false,
    );
    schemas.call(
        client,
        "claude_judge_review",
        json!({"contract_path": "../x"}),
        true,
    );
    schemas.call(
        client,
        "claude_validate_proposal",
        json!({"proposal_path": "PROPOSAL_FINAL.md"}),
        false,
    );
    schemas.call(
        client,
        "claude_security_audit",
        json!({"files": ["lib/b.py"]}),
        false,
    );
    let dispute = json!({"contract_path": fine, "rebuttal_path": "rebuttal.md", "judge_report_path": "report.json"});
    schemas.call(client, "claude_resolve_conflict", dispute, false);
    schemas.call(client, "claude_health", json!({}), false);
    for (name, args) in MENU {
        schemas.call(client, name, json!({"no-such-argument": 1}), true);
        assert!(!args.is_empty() || *name == "claude_health");
    }
    // An unreachable backend makes reviews incomplete.
    let server = Server::start(|r: &Request| r.review(&[]));
    let down = server
        .policy("openai")
        .replace(&server.url(), "http://127.0.0.1:9");
    drop(server);
    repo.stage(
        ".claude-reviewer.toml",
        down.replace("[review]\n", "[review]\ntimeout = \"5s\"\n"),
    )
    .commit("third");
    repo.write("src/c.py", "x = 1\n");
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    let client = &mut client;
    for (tool, arguments) in [
        ("request_review", json!({"summary": "x"})),
        ("review_code", json!({"code": "x = 1\n"})),
        ("claude_judge_review", json!({"contract_path": fine})),
        (
            "claude_validate_proposal",
            json!({"proposal_path": "README.md"}),
        ),
        ("claude_security_audit", json!({"files": ["lib/b.py"]})),
    ] {
        schemas.call(client, tool, arguments, false);
    }
    schemas.call(client, "claude_health", json!({}), false);
    schemas.call(
        client,
        "get_review_history",
        json!({"review_id": "latest"}),
        false,
    );
}

fn judged(extra: &str) -> Repo {
    let repo = Repo::new();
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.write("src/a.py", format!("x = 1\n{extra}"));
    let contract = json!({"task_id": "T-1", "specification": {"requirements": ["sets x"]},
        "acceptance_criteria": ["x is set"], "changed_files": ["src/a.py"]});
    repo.write("_handoff/TASK_CONTRACT.json", contract.to_string());
    repo
}

#[test]
fn a_task_is_judged_and_the_reports_lie_where_they_were_asked_for() {
    let repo = judged(&line_with_key());
    let mut client = Client::ready(&repo, &[]);
    let contract = json!({"contract_path": "_handoff/TASK_CONTRACT.json"});
    let told = client.content("claude_judge_review", contract);
    assert_eq!(
        (&told["success"], &told["verdict"]),
        (&json!(true), &json!("CRITICAL_HALT")),
        "{told:#}"
    );
    assert_eq!(told["report_json_path"], "_handoff/JUDGE_REPORT.json");
    let report = std::fs::read_to_string(repo.path().join("_handoff/JUDGE_REPORT.json")).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["task_id"], &report["verdict"]),
        (&json!("T-1"), &json!("CRITICAL_HALT"))
    );
    let elsewhere = json!({"contract_path": "_handoff/TASK_CONTRACT.json", "report_dir": "out/judge", "timeout_seconds": 60});
    client.content("claude_judge_review", elsewhere);
    assert!(repo.path().join("out/judge/JUDGE_REPORT.md").exists());
    let outside = repo.outside().to_str().unwrap().to_owned();
    for dir in ["../x", "~/x", "", ".git/x", "a\nb", &outside] {
        client.refused(
            "claude_judge_review",
            json!({"contract_path": "_handoff/TASK_CONTRACT.json", "report_dir": dir}),
        );
    }
    assert!(!repo.outside().exists() && !repo.path().join(".git/x").exists());
    for timeout in [json!(0), json!(-1), json!("60"), json!(10_000_000)] {
        let arguments =
            json!({"contract_path": "_handoff/TASK_CONTRACT.json", "timeout_seconds": timeout});
        client.refused("claude_judge_review", arguments);
    }
}

#[test]
fn no_tool_reads_what_lies_outside() {
    let repo = judged("");
    std::fs::create_dir_all(repo.outside()).unwrap();
    let canary = "words-that-only-stand-outside";
    std::fs::write(repo.outside().join("x.md"), canary).unwrap();
    std::os::unix::fs::symlink(repo.outside().join("x.md"), repo.path().join("way.md")).unwrap();
    repo.write(".env", format!("X={canary}\n"));
    let fine = "_handoff/TASK_CONTRACT.json";
    let outside = repo.outside().join("x.md").to_str().unwrap().to_owned();
    let mut client = Client::ready(&repo, &["--root", "."]);
    for path in [
        "../outside/x.md",
        "way.md",
        ".env",
        ".git/config",
        "~/x",
        "/proc/self/environ",
        "",
        outside.as_str(),
    ] {
        for (tool, arguments) in [
            ("claude_judge_review", json!({"contract_path": path})),
            ("claude_validate_proposal", json!({"proposal_path": path})),
            ("claude_security_audit", json!({"files": [path]})),
            (
                "claude_security_audit",
                json!({"files": ["README.md"], "working_directory": path}),
            ),
            (
                "claude_resolve_conflict",
                json!({"contract_path": path, "rebuttal_path": fine, "judge_report_path": fine}),
            ),
            (
                "claude_resolve_conflict",
                json!({"contract_path": fine, "rebuttal_path": path, "judge_report_path": fine}),
            ),
            (
                "claude_resolve_conflict",
                json!({"contract_path": fine, "rebuttal_path": fine, "judge_report_path": path}),
            ),
        ] {
            let result = client.refused(tool, arguments);
            assert!(
                !result.to_string().contains(canary),
                "{tool} {path}: {result}"
            );
        }
    }
}

/// Writes the reports of an older judgement to a folder.
fn passed(repo: &Repo, dir: &str) {
    repo.write(
        &format!("{dir}/JUDGE_REPORT.json"),
        r#"{"verdict": "PASS", "success": true}"#,
    );
    repo.write(&format!("{dir}/JUDGE_REPORT.md"), "- Verdict: **PASS**\n");
}

fn stands(repo: &Repo, dir: &str) -> (bool, bool) {
    let read = |name: &str| std::fs::read_to_string(repo.path().join(dir).join(name)).unwrap();
    (
        read("JUDGE_REPORT.json").contains("\"PASS\""),
        read("JUDGE_REPORT.md").contains("**PASS**"),
    )
}

#[test]
fn no_older_verdict_survives_a_call_that_is_refused() {
    let repo = judged("");
    repo.write(".env", "X=1\n")
        .write("_handoff/broken.json", "{\"task_id\": ")
        .write("_handoff/list.json", "[]");
    let fine = "_handoff/TASK_CONTRACT.json";
    let mut client = Client::ready(&repo, &["--root", "."]);
    for (arguments, kind) in [
        (json!({"contract_path": "../x.json"}), Some("unusable")),
        (json!({"contract_path": "no/such.json"}), Some("unusable")),
        (json!({"contract_path": ".env"}), Some("unusable")),
        (json!({"contract_path": "_handoff"}), Some("unusable")),
        (
            json!({"contract_path": "_handoff/broken.json"}),
            Some("parse_error"),
        ),
        (
            json!({"contract_path": "_handoff/list.json"}),
            Some("parse_error"),
        ),
        // Rejected for its arguments: the tool did not run.
        (json!({}), None),
        (json!({"contract_path": 5}), None),
        (json!({"contract_path": fine, "timeout_seconds": 0}), None),
        (json!({"contract_path": fine, "timeout": 60}), None),
        (json!({"contract_path": "x".repeat(5000)}), None),
    ] {
        for dir in ["_handoff", "out/judge"] {
            passed(&repo, dir);
            let mut arguments = arguments.clone();
            if dir != "_handoff" {
                arguments["report_dir"] = dir.into();
            }
            let told =
                client.refused("claude_judge_review", arguments.clone())["structuredContent"]
                    .clone();
            assert_eq!(stands(&repo, dir), (false, false), "{arguments}: {told:#}");
            let report: Value = serde_json::from_slice(
                &std::fs::read(repo.path().join(dir).join("JUDGE_REPORT.json")).unwrap(),
            )
            .unwrap();
            assert_eq!(
                (&report["success"], &report["verdict"], &report["outcome"]),
                (&json!(false), &Value::Null, &json!("error"))
            );
            assert!(
                report["error"].is_string() && report["error_kind"].is_string(),
                "{report:#}"
            );
            if let Some(kind) = kind {
                assert_eq!(
                    (&told["error_kind"], &report["error_kind"]),
                    (&json!(kind), &json!(kind)),
                    "{arguments}"
                );
                assert_eq!(told["report_json_path"], format!("{dir}/JUDGE_REPORT.json"));
            }
        }
    }
    // If the folder is unknown or not writable, nothing is written.
    for dir in [json!(7), json!("../x"), json!(""), json!("x".repeat(5000))] {
        passed(&repo, "_handoff");
        client.refused(
            "claude_judge_review",
            json!({"contract_path": "../x.json", "report_dir": dir}),
        );
        assert_eq!(stands(&repo, "_handoff"), (true, true), "{dir}");
    }
    // If there was no report, none is created.
    client.refused(
        "claude_judge_review",
        json!({"contract_path": "../x.json", "report_dir": "empty"}),
    );
    assert!(!repo.path().join("empty").exists());
}

#[test]
fn questions_that_only_a_model_can_answer_say_so() {
    let repo = judged("");
    repo.write("PROPOSAL_FINAL.md", "# Proposal\n\nTODO\n")
        .write("rebuttal.md", "The judge is wrong.\n");
    repo.write("report.json", "{\"verdict\": \"FAIL\"}\n");
    let mut client = Client::ready(&repo, &[]);
    let proposal = client.content(
        "claude_validate_proposal",
        json!({"proposal_path": "PROPOSAL_FINAL.md"}),
    );
    assert_ne!(proposal["valid"], true, "{proposal:#}");
    let dispute = json!({"contract_path": "_handoff/TASK_CONTRACT.json", "rebuttal_path": "rebuttal.md",
        "judge_report_path": "report.json"});
    let result = client.call("claude_resolve_conflict", dispute);
    assert_eq!(result["structuredContent"]["success"], false, "{result:#}");
    assert_eq!(result["structuredContent"]["side"], Value::Null);
    assert!(
        text(&result).to_lowercase().contains("do not"),
        "{}",
        text(&result)
    );
    let health = client.content("claude_health", json!({}));
    assert!(
        health["available"].is_boolean() && health["server_version"].is_string(),
        "{health:#}"
    );
}

#[test]
fn whole_files_are_audited() {
    let repo = judged("");
    repo.stage("lib/b.py", line_with_key()).commit("second");
    let mut client = Client::ready(&repo, &[]);
    let told = client.content(
        "claude_security_audit",
        json!({"files": ["b.py"], "working_directory": "lib"}),
    );
    assert_eq!(
        (&told["verdict"], &told["findings"][0]["file"]),
        (&json!("block"), &json!("lib/b.py")),
        "{told:#}"
    );
    client.refused("claude_security_audit", json!({"files": []}));
}

#[test]
fn a_provider_is_one_that_the_policy_enables() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("first");
    repo.stage("src/a.rs", "fn a() {}\n");
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    let told = client.content(
        "review_staged",
        json!({"provider": "openai", "focus_areas": ["bugs", "best-practices"]}),
    );
    assert_eq!(
        (&told["provider"], &told["metadata"]["model"]),
        (&json!("openai"), &json!("stub-1")),
        "{told:#}"
    );
    for name in ["anthropic", "claude", "rules", "", "http://example.com"] {
        let result = client.refused("review_staged", json!({"provider": name}));
        assert!(
            text(&result).contains("enables openai"),
            "{}",
            text(&result)
        );
    }
    // A client cannot name an endpoint or a model.
    client.refused("review_staged", json!({"model": "other"}));
}
