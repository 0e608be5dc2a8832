//! Issues of forges as context.

use super::desk::{Desk, calm, misses, notes};
use crate::loopback::{Reply, Request, Server};
use serde_json::{Value, json};

const BODY: &str = "Calls to the bank are retried at most three times.";

/// Answers like a forge with issue 12 and pull request 13, in any dialect.
fn forge(r: &Request) -> Reply {
    let path = r.path.split('?').next().unwrap();
    match path {
        "/api/v3/repos/o/r/issues/12" | "/api/v3/repos/o/other/issues/4" => Reply::json(
            200,
            &json!({ "number": 12, "title": "Limit the retries", "body": BODY, "state": "open", "updated_at": "2026-01-02T00:00:00Z", "labels": [{ "name": "bug" }] }),
        ),
        "/api/v3/repos/o/r/issues/13" => Reply::json(
            200,
            &json!({ "number": 13, "title": "x", "pull_request": {} }),
        ),
        "/api/v4/projects/o%2Fr/issues/12" => Reply::json(
            200,
            &json!({ "iid": 12, "title": "Limit the retries", "description": BODY, "state": "opened", "updated_at": "u", "labels": ["bug"] }),
        ),
        "/api/v4/projects/o%2Fr/issues/14" => Reply::json(
            200,
            &json!({ "iid": 14, "title": "x", "description": BODY, "confidential": true }),
        ),
        "/2.0/repositories/o/r/issues/12" => Reply::json(
            200,
            &json!({ "id": 12, "title": "Limit the retries", "content": { "raw": BODY }, "state": "new", "updated_on": "u" }),
        ),
        _ => Reply::json(404, &json!({ "message": "Not Found" })),
    }
}

/// Creates a repository of a forge whose API is this server.
fn desk(message: &str, key: &str, api: &str, server: &Server, more: &str) -> Desk {
    let desk = Desk::new(message, calm);
    adopt(&desk, key, api, server, more);
    desk
}

fn adopt(desk: &Desk, key: &str, api: &str, server: &Server, more: &str) {
    desk.policy_with(&format!(
        "[forge]\n{key} = \"{}{api}\"\n{more}",
        server.url()
    ));
    desk.repo.git(&[
        "remote",
        "add",
        "origin",
        &format!("{}/o/r.git", server.url()),
    ]);
}

fn with_tokens(desk: &Desk) -> Value {
    let token = format!("token-{}", "7".repeat(20));
    let run = desk.reviewer(&["--format", "json"]);
    let run = run
        .env("GH_ENTERPRISE_TOKEN", &token)
        .env("GITLAB_TOKEN", &token)
        .env("BB_TOKEN", &token);
    run.run_any().json()
}

#[test]
fn issues_of_each_forge_are_read_by_number() {
    for (key, api, source) in [
        ("github_api", "/api/v3", "github"),
        ("gitlab_api", "/api/v4", "gitlab"),
        ("bitbucket_api", "/2.0", "bitbucket"),
    ] {
        let server = Server::start(forge);
        let desk = desk("Limit retries\n\nFixes #12", key, api, &server, "");
        let report = with_tokens(&desk);
        let item = &report["context"][0];
        assert_eq!(
            (&item["reference"], &item["source"]),
            (&json!("#12"), &json!(source)),
            "{report:#}"
        );
        assert_eq!(item["title"], "Limit the retries");
        assert!(desk.prompts().contains(BODY));
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn without_a_token_or_with_issues_false_no_forge_is_asked() {
    let server = Server::start(forge);
    let keyless = desk("Fixes #12", "github_api", "/api/v3", &server, "");
    keyless.report(0);
    let off = desk(
        "Fixes #12",
        "github_api",
        "/api/v3",
        &server,
        "[context]\nissues = false\n",
    );
    with_tokens(&off);
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[test]
fn issues_of_other_projects_are_read_only_if_they_are_listed() {
    let server = Server::start(forge);
    let desk = desk(
        "see o/other#4 and o/secret#5",
        "github_api",
        "/api/v3",
        &server,
        "",
    );
    let report = with_tokens(&desk);
    assert!(
        notes(&report).contains("o/other#4 was not read: o/other is not in [context] projects"),
        "{report:#}"
    );
    assert!(server.requests().is_empty());
    let listed = super::forges::desk(
        "see o/other#4",
        "github_api",
        "/api/v3",
        &server,
        "[context]\nprojects = [\"o/other\"]\n",
    );
    assert_eq!(with_tokens(&listed)["context"][0]["reference"], "o/other#4");
}

#[test]
fn ctx_01_an_issue_that_cannot_be_read_is_a_note_and_a_pull_request_is_none() {
    let server = Server::start(forge);
    let desk = desk("#13 and #99", "github_api", "/api/v3", &server, "");
    let report = with_tokens(&desk);
    assert_eq!(report["context"], json!([]));
    let notes_of = notes(&report);
    assert!(
        notes_of.contains("#99 was not read: issue #99 cannot be read")
            && !notes_of.contains("#13"),
        "{notes_of}"
    );
    let gitlab = super::forges::desk(
        "#14",
        "gitlab_api",
        "/api/v4",
        &server,
        "[context]\nrequired = true\n",
    );
    let report = with_tokens(&gitlab);
    assert_eq!(report["verdict"], "incomplete");
    assert!(
        report["coverage"]["failed"]
            .to_string()
            .contains("the issue is confidential"),
        "{report:#}"
    );
    assert!(!gitlab.prompts().contains(BODY));
}

#[test]
fn a_requirement_of_an_issue_can_be_cited() {
    let server = Server::start(forge);
    let desk = Desk::new("Fixes #12", misses("#12: \"retried at most three times\""));
    adopt(&desk, "github_api", "/api/v3", &server, "");
    let report = with_tokens(&desk);
    assert_eq!(report["verdict"], "block", "{report:#}");
    assert_eq!(report["findings"][0]["category"], "missing-requirement");
}
