//! Tests of what the server tells an agent to do next: tools to call, waiting times, the prompt.

use super::client::{Client, text};
use super::sessions::committed;
use crate::loopback::{Request, Server};
use crate::support::{Repo, line_with_key};
use serde_json::{Value, json};

#[test]
fn mcp_15_a_backend_that_is_down_is_told_and_not_looped_on() {
    let server = Server::start(|r: &Request| r.review(&[]));
    let repo = Repo::new();
    let policy = server
        .policy("openai")
        .replace(&server.url(), "http://127.0.0.1:9");
    drop(server);
    repo.stage(
        ".claude-reviewer.toml",
        policy.replace("[review]\n", "[review]\ntimeout = \"5s\"\n"),
    )
    .commit("first");
    repo.write("src/a.rs", "fn a() {}\n");
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    for (tool, arguments) in [
        ("request_review", json!({"summary": "x"})),
        (
            "review_code",
            json!({"code": "x = 1\n", "provider": "openai"}),
        ),
    ] {
        let result = client.call(tool, arguments);
        let content = &result["structuredContent"];
        assert_eq!(
            (&content["status"], &content["outcome"]),
            (&json!("incomplete"), &json!("incomplete")),
            "{content:#}"
        );
        assert_eq!(content["retryable"], true);
        assert!(content.get("retry_after_s").is_some());
        assert!(
            text(&result).contains("Do not call this tool in a loop"),
            "{}",
            text(&result)
        );
    }
    let id = client.content("get_review_history", json!({}))["sessions"][0]["review_id"].clone();
    let refused = client.refused(
        "mark_review_complete",
        json!({"review_id": id, "final_status": "approved"}),
    );
    assert!(
        text(&refused).contains("incomplete"),
        "MCP-10: {}",
        text(&refused)
    );
    client.content(
        "mark_review_complete",
        json!({"review_id": id, "final_status": "abandoned"}),
    );
}

#[test]
fn mcp_15_a_limit_of_a_provider_is_told_in_seconds() {
    let limited =
        "HTTP/1.1 429 Too Many Requests\r\nretry-after: 3600\r\ncontent-length: 2\r\n\r\n{}";
    let server = Server::start(move |_: &Request| {
        crate::loopback::Reply(vec![crate::loopback::Step::Send(
            limited.as_bytes().to_vec(),
        )])
    });
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("first");
    repo.stage("src/a.rs", "fn a() {}\n");
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(&repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    let result = client.call("review_staged", json!({}));
    let content = &result["structuredContent"];
    assert_eq!(
        (&content["retryable"], &content["retry_after_s"]),
        (&json!(true), &json!(3600)),
        "{content:#}"
    );
    assert!(text(&result).contains("3600 s"), "{}", text(&result));
}

/// Checks that the hints of an error for an agent name tools, and no command or flag of this
/// program.
#[track_caller]
fn told_to_call(result: &Value, what: &[&str]) {
    let hint = result["structuredContent"]["hint"]
        .as_str()
        .unwrap_or_else(|| panic!("no hint: {result:#}"));
    for words in ["claude-reviewer ", "--", "`claude"] {
        assert!(
            !hint.contains(words) && !text(result).contains(words),
            "{result:#}"
        );
    }
    assert!(what.iter().all(|w| hint.contains(w)), "{what:?}: {hint}");
}

#[test]
fn an_agent_is_told_which_tool_to_call_and_never_which_command_to_run() {
    let repo = Repo::new();
    let policy = "version = 1\n[review]\nmax_rounds = 1\n";
    repo.stage("README.md", "# Sample\n")
        .stage(".claude-reviewer.toml", policy)
        .commit("first");
    let mut client = Client::ready(&repo, &[]);
    for id in ["latest", "2026-01-31-001"] {
        told_to_call(
            &client.refused("get_review_history", json!({"review_id": id})),
            &["get_review_history"],
        );
    }
    let follow = |id: &Value| json!({"summary": "x", "previous_review_id": id});
    told_to_call(
        &client.refused("request_review", follow(&json!("2026-01-31-001"))),
        &["get_review_history"],
    );
    repo.write("src/a.py", line_with_key());
    let id = client.content("request_review", json!({"summary": "x"}))["review_id"].clone();
    // An ID that is not stored.
    told_to_call(
        &client.refused("get_review_history", json!({"review_id": "2026-01-31-001"})),
        &["get_review_history"],
    );
    told_to_call(
        &client.refused("request_review", follow(&json!("2026-01-31-001"))),
        &["get_review_history"],
    );
    let close = |status: &str| json!({"review_id": id, "final_status": status});
    told_to_call(
        &client.refused("mark_review_complete", close("approved")),
        &["request_review"],
    );
    // The limit of rounds is reached.
    let used = client.refused("request_review", follow(&id));
    assert!(
        text(&used).contains("all of its 1 rounds"),
        "{}",
        text(&used)
    );
    told_to_call(&used, &["mark_review_complete", "user"]);
    // The review is closed.
    client.content("mark_review_complete", close("abandoned"));
    told_to_call(
        &client.refused("request_review", follow(&id)),
        &["request_review", "without previous_review_id"],
    );
    told_to_call(
        &client.refused("request_review", json!({"summary": "x", "response": "F1"})),
        &["previous_review_id"],
    );
    // The review was edited.
    let other = client.content("request_review", json!({"summary": "x"}))["review_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let file = repo
        .path()
        .join(".reviews/sessions")
        .join(&other)
        .join("changes.diff");
    std::fs::write(
        &file,
        [std::fs::read(&file).unwrap(), b" \n".to_vec()].concat(),
    )
    .unwrap();
    told_to_call(
        &client.refused("request_review", follow(&json!(other))),
        &["user"],
    );
    // A glob that contains a secret, and would be stored; a branch without a base to compare with.
    let secret = line_with_key()
        .trim_end()
        .rsplit(' ')
        .next()
        .unwrap()
        .trim_matches(['"', '\''])
        .to_owned();
    let narrow = json!({"summary": "x", "source": {"kind": "changes", "files": [secret]}});
    told_to_call(
        &client.refused("request_review", narrow),
        &["review_commit"],
    );
    repo.git(&["branch", "-m", "topic"]);
    told_to_call(
        &client.refused("review_branch", json!({})),
        &["base_branch"],
    );
    // A policy with errors.
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nfoo = 1\nbar = 2\nbaz = 3\n",
    )
    .commit("second");
    told_to_call(
        &client.refused("review_staged", json!({})),
        &["ask the user"],
    );
    // Without any commit.
    let empty = Repo::new();
    let mut client = Client::ready(&empty, &[]);
    told_to_call(
        &client.refused("review_commit", json!({"commit_sha": "HEAD"})),
        &["review_staged"],
    );
}

#[test]
fn resources_that_cannot_be_listed_are_an_error_and_the_server_goes_on() {
    let repo = committed();
    repo.stage(".claude-reviewer.toml", "version = 1\nfoo = 1\n")
        .commit("second");
    let mut client = Client::ready(&repo, &[]);
    for method in ["resources/list", "resources/templates/list"] {
        let answer = client.request(method, json!({}));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("foo"),
            "{answer}"
        );
    }
    let read = client.request("resources/read", json!({"uri": "review://latest"}));
    assert_eq!(read["error"]["code"], -32603, "{read}");
    repo.stage(".claude-reviewer.toml", "version = 1\n")
        .commit("third");
    assert_eq!(
        client.request("resources/list", json!({}))["result"]["resources"],
        json!([])
    );
    // An unreadable store.
    repo.write("src/a.py", "x = 1\n");
    client.content("request_review", json!({"summary": "x"}));
    assert_eq!(
        client.request("resources/list", json!({}))["result"]["resources"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    std::fs::rename(repo.path().join(".reviews"), repo.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink(repo.path().join("elsewhere"), repo.path().join(".reviews"))
        .unwrap();
    let answer = client.request("resources/list", json!({}));
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn the_prompt_tells_how_to_go_about_a_review() {
    let repo = committed();
    let mut client = Client::ready(&repo, &[]);
    let prompts = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(prompts[0]["name"], "review");
    let got = client.request(
        "prompts/get",
        json!({"name": "review", "arguments": {"summary": "half"}}),
    );
    let words = got["result"]["messages"][0]["content"]["text"]
        .as_str()
        .unwrap();
    assert!(
        words.contains("request_review") && words.contains("> half"),
        "{words}"
    );
    assert_eq!(
        client.request("prompts/get", json!({"name": "x"}))["error"]["code"],
        -32602
    );
}
