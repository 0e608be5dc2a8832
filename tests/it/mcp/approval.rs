//! Tests of `mark_review_complete`: what is not approved over MCP.

use super::client::{Client, text};
use super::sessions::committed;
use crate::loopback::{Request, Server};
use crate::support::{Repo, line_with_key};
use serde_json::json;

#[test]
fn mcp_10_what_is_open_is_not_approved_over_mcp_and_force_is_recorded_with_its_actor() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    let down = server
        .policy("openai")
        .replace(&server.url(), "http://127.0.0.1:9");
    drop(server);
    repo.stage(
        ".claude-reviewer.toml",
        down.replace("[review]\n", "[review]\ntimeout = \"5s\"\n"),
    )
    .commit("first");
    repo.git(&["config", "user.name", "Ada"]);
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    repo.write("src/a.py", "x = 1\n");
    let incomplete = client.content("request_review", json!({"summary": "x"}));
    repo.write("src/a.py", format!("x = 1\n{}", line_with_key()));
    let open = client.content("request_review", json!({"summary": "y"}));
    assert_eq!(
        (&incomplete["verdict"], &open["verdict"]),
        (&json!("incomplete"), &json!("block"))
    );
    // A failed part does not hide a blocking finding.
    assert_eq!(
        (&incomplete["status"], &open["status"]),
        (&json!("incomplete"), &json!("needs_changes"))
    );
    assert_eq!(
        (&open["outcome"], &open["retryable"]),
        (&json!("incomplete"), &json!(true))
    );
    let code = json!({"code": line_with_key(), "language": "python"});
    let told = client.call("review_code", code);
    assert_eq!(
        told["structuredContent"]["status"], "needs_changes",
        "{told:#}"
    );
    assert!(
        text(&told).starts_with("BLOCKED") && text(&told).contains("INCOMPLETE, too"),
        "{}",
        text(&told)
    );
    for (review, why) in [(&incomplete, "incomplete"), (&open, "1 finding blocks")] {
        let id = review["review_id"].as_str().unwrap();
        let refused = client.refused(
            "mark_review_complete",
            json!({"review_id": id, "final_status": "approved"}),
        );
        assert!(text(&refused).contains(why), "{}", text(&refused));
        let argument = json!({"review_id": id, "final_status": "approved", "force": true});
        let answer = client.request(
            "tools/call",
            json!({"name": "mark_review_complete", "arguments": argument}),
        );
        let refused = answer["error"].is_object() || answer["result"]["isError"] == true;
        assert!(refused, "there is no way to force it here: {answer:#}");

        let complete = ["complete", id, "--status", "approved"];
        let run = repo.reviewer(&complete).run(2);
        assert!(
            run.stderr.contains(why) && run.stderr.contains("--force"),
            "{}",
            run.stderr
        );
        repo.reviewer(&[&complete[..], &["--force"]].concat())
            .run(0);
        let session = client.content("get_review_history", json!({"review_id": id}));
        let closing = &session["completion"]["entries"][0];
        assert_eq!(
            (&closing["forced"], &closing["via"]),
            (&json!(true), &json!("cli")),
            "{closing:#}"
        );
        assert!(
            closing["actor"].as_str().unwrap().contains("Ada"),
            "{closing:#}"
        );
    }
    let open = open["review_id"].as_str().unwrap();
    let session = client.content("get_review_history", json!({"review_id": open}));
    assert_eq!(
        session["completion"]["entries"][0]["open"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn what_blocked_is_not_approved_because_head_has_another_policy() {
    let repo = committed();
    repo.write("src/a.py", format!("x = 1\n{}", line_with_key()));
    let mut client = Client::ready(&repo, &[]);
    let first = client.content("request_review", json!({"summary": "Read the settings"}));
    let id = first["review_id"].as_str().unwrap().to_owned();
    assert_eq!(first["verdict"], "block");
    repo.stage(".claude-reviewer.toml", "version = 1\nblock_on = []\n")
        .commit("more lenient");
    let again = json!({"summary": "As it was", "previous_review_id": id});
    let second = client.content("request_review", again);
    assert_ne!(
        second["verdict"], "block",
        "{:#}",
        second["report"]["findings"]
    );
    assert_eq!(second["advice"]["action"], "fix", "{:#}", second["advice"]);
    let refused = client.refused(
        "mark_review_complete",
        json!({"review_id": id, "final_status": "approved"}),
    );
    let told = text(&refused);
    assert!(
        told.contains("passes only because the policy changed") && told.contains("src/a.py:2"),
        "{told}"
    );
    assert!(
        told.contains("ask a person") && !told.contains("--force"),
        "{told}"
    );
}
