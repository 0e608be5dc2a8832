//! Which tickets and pages may be read, and in which runs.

use super::TICKET;
use super::desk::{Desk, REGULAR, calm, notes};
use serde_json::json;

#[test]
fn ctx_01_only_tools_that_read_are_called_whatever_the_server_says() {
    let listed = |hints: &str| {
        format!(
            "reply '{{\"tools\":[{{\"name\":\"jira_get_issue\",\"inputSchema\":{{\"type\":\"object\"}},\"annotations\":{hints}}}]}}'"
        )
    };
    for hints in ["{\"readOnlyHint\":false}", "{\"destructiveHint\":true}"] {
        let desk = Desk::new("PROJ-12", calm);
        let path = desk.script(&listed(hints), REGULAR);
        desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
        let report = desk.report(0);
        assert!(
            notes(&report).contains("the tool jira_get_issue is not called"),
            "{report:#}"
        );
        assert!(desk.log("calls").is_empty());
    }
    // The policy rejects a tool whose name does not mean reading, independent of the server's
    // hints.
    let desk = Desk::new("PROJ-12", calm);
    desk.policy_with(
        "[context.servers.a]\ncommand = [\"x\"]\ntool = \"jira_update_issue\"\nargument = \"issue_key\"\n",
    );
    let run = desk.reviewer(&[]).run(2);
    assert!(
        run.stderr
            .contains("whose name does not say that it only reads"),
        "{}",
        run.stderr
    );
}

#[test]
fn projects_are_an_exact_list_and_without_one_the_base_names_them() {
    let keys = |report: &serde_json::Value| {
        report["context"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["reference"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let message = "PROJ-12, HR-7, UTF-8, SHA-256";
    let desk = Desk::new(message, calm);
    desk.ticket("PROJ-12", "t", TICKET)
        .ticket("HR-7", "Salaries", TICKET)
        .ticket("UTF-8", "t", TICKET)
        .policy("");
    let report = desk.report(0);
    assert_eq!(keys(&report), ["PROJ-12"]);
    assert!(
        notes(&report).contains("HR-7 was not read: no commit of the base names project HR"),
        "{report:#}"
    );
    assert_eq!(desk.log("calls").len(), 1);
    desk.policy("projects = [\"HR\"]");
    let report = desk.report(0);
    assert_eq!(keys(&report), ["HR-7"]);
    assert!(
        notes(&report).contains("PROJ-12 was not read: project PROJ is not in [context] projects"),
        "{report:#}"
    );
}

#[test]
fn a_ticket_that_was_moved_to_another_project_is_not_used() {
    let desk = Desk::new("PROJ-12", calm);
    let moved = json!({ "key": "HR-3", "summary": "Salaries", "description": TICKET });
    desk.answer(
        "PROJ-12",
        &json!([{ "type": "text", "text": moved.to_string() }]),
    )
    .policy("");
    for _ in 0..2 {
        let report = desk.report(0);
        assert!(
            notes(&report).contains("the answer is about HR-3"),
            "{report:#}"
        );
        assert!(!desk.prompts().contains(TICKET));
    }
}

#[test]
fn a_page_is_read_if_its_space_may_be_read() {
    let message = "see https://w.example/wiki/spaces/DEV/pages/123/Retries and https://w.example/wiki/spaces/DEV/pages/45/x";
    let desk = Desk::new(message, calm);
    let page = |id: &str, space: &str| {
        let value = json!({ "metadata": { "id": id, "title": "Retries", "space": { "key": space }, "version": 3,
            "content": { "value": TICKET } } });
        json!([{ "type": "text", "text": value.to_string() }])
    };
    desk.answer("123", &page("123", "DEV"))
        .answer("45", &page("45", "HR"))
        .policy("projects = [\"DEV\"]");
    let report = desk.report(0);
    assert_eq!(report["context"].as_array().unwrap().len(), 1, "{report:#}");
    let item = &report["context"][0];
    assert_eq!(
        (&item["reference"], &item["source"], &item["version"]),
        (&json!("page 123"), &json!("confluence"), &json!("3"))
    );
    assert!(
        notes(&report).contains("page 45 was not read: space HR"),
        "{report:#}"
    );
}

#[test]
fn a_pattern_replaces_the_form_of_keys() {
    let desk = Desk::new("PROJ-12 and story:77", calm);
    desk.ticket("77", "t", TICKET)
        .policy("pattern = 'story:(\\d+)'");
    let report = desk.report(0);
    assert_eq!(report["context"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["context"][0]["reference"], "77");
}

#[test]
fn the_branch_names_a_ticket_before_the_commits_do() {
    let desk = Desk::new("PROJ-13", calm);
    desk.ticket("PROJ-12", "t", TICKET)
        .ticket("PROJ-13", "t", TICKET)
        .policy("max_calls = 1");
    desk.repo.git(&["branch", "-m", "feature/proj-12-limit"]);
    assert_eq!(desk.report(0)["context"][0]["reference"], "PROJ-12");
}

#[test]
fn ctx_01_forks_and_jobs_with_more_rights_than_the_author_read_no_ticket() {
    let event = |head: &str, base: &str, of: &str| {
        json!({ "action": "opened", "number": 5, "pull_request": {
            "number": 5, "title": "PROJ-12", "body": "", "head": { "ref": "topic", "sha": head, "repo": { "full_name": of } },
            "base": { "ref": "main", "sha": base, "repo": { "full_name": "o/r" } } },
            "repository": { "full_name": "o/r", "default_branch": "main" } })
    };
    for (name, of, reads) in [
        ("pull_request", "o/r", true),
        ("pull_request", "stranger/r", false),
        ("pull_request_target", "o/r", false),
        ("pull_request_target", "stranger/r", false),
    ] {
        let desk = Desk::new("PROJ-12", calm);
        desk.ticket("PROJ-12", "t", TICKET).policy("");
        let id = |rev: &str| desk.repo.git(&["rev-parse", rev]).trim().to_owned();
        let file = desk.repo.outside().join("event.json");
        std::fs::write(&file, event(&id("topic"), &id("main"), of).to_string()).unwrap();
        let key = format!("sk-{}", "0".repeat(20));
        let run = desk
            .repo
            .reviewer(&["review", "--no-save", "--format", "json"]);
        let run = run
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", name);
        let report = run
            .env("GITHUB_EVENT_PATH", &file)
            .env("OPENAI_API_KEY", key)
            .run_any()
            .json();
        assert_eq!(
            report["context"].as_array().unwrap().len(),
            usize::from(reads),
            "{name} {of}: {report:#}"
        );
        assert_eq!(desk.log("starts").len(), usize::from(reads), "{name} {of}");
        assert_eq!(
            notes(&report).contains("tickets were not read: "),
            !reads,
            "{name} {of}: {report:#}"
        );
    }
}

#[test]
fn ctx_01_a_job_after_another_workflow_reads_no_ticket_whoever_the_change_is_from() {
    // The job has secrets and runs for a commit whose author may not have been allowed to push
    // here.
    let event = |head: &str, of: &str| {
        json!({ "action": "completed",
            "workflow_run": { "event": "pull_request", "head_branch": "topic", "head_sha": head,
                "head_repository": { "full_name": of },
                "pull_requests": [{ "number": 5, "base": { "ref": "main" }, "head": { "ref": "topic", "sha": head } }] },
            "repository": { "full_name": "o/r", "default_branch": "main" } })
    };
    for of in ["o/r", "stranger/r"] {
        let desk = Desk::new("PROJ-12", calm);
        desk.ticket("PROJ-12", "t", TICKET).policy("");
        let head = desk.repo.git(&["rev-parse", "topic"]).trim().to_owned();
        let file = desk.repo.outside().join("event.json");
        std::fs::write(&file, event(&head, of).to_string()).unwrap();
        let key = format!("sk-{}", "0".repeat(20));
        let run = desk.repo.reviewer(&[
            "review",
            "branch",
            "topic",
            "--base",
            "main",
            "--no-save",
            "--format",
            "json",
        ]);
        let run = run
            .env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_EVENT_NAME", "workflow_run");
        let report = run
            .env("GITHUB_EVENT_PATH", &file)
            .env("OPENAI_API_KEY", key)
            .run_any()
            .json();
        assert_eq!(report["context"], json!([]), "{of}: {report:#}");
        assert!(desk.log("starts").is_empty(), "{of}");
        assert!(
            notes(&report).contains("tickets were not read: "),
            "{of}: {report:#}"
        );
    }
}

#[test]
fn gate_mode_takes_the_servers_from_the_base_and_never_from_the_change() {
    let desk = Desk::new("PROJ-12", calm);
    desk.ticket("PROJ-12", "t", TICKET).policy_with("");
    let path = desk.script("tools", REGULAR);
    let servers = format!("version = 1\n[context.servers.a]\ncommand = [{path:?}]\n");
    desk.repo.stage(".claude-reviewer.toml", &servers);
    desk.repo.commit("add a server");
    for args in [&["--gate"][..], &[]] {
        desk.reviewer(args).run_any();
        assert!(desk.log("starts").is_empty(), "{args:?}");
    }
    desk.repo.git(&["checkout", "-q", "main"]);
    desk.repo.stage(".claude-reviewer.toml", &servers);
    desk.repo.commit("add a server");
    desk.repo.git(&["checkout", "-q", "-b", "next"]);
    desk.repo.stage("src/other.py", "x = 1\n");
    desk.repo.commit("PROJ-12");
    desk.reviewer(&["--gate"]).run_any();
    assert_eq!(desk.log("starts").len(), 1);
}
