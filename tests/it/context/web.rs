//! Context servers over streamable HTTP.

use super::desk::{Desk, calm, notes};
use crate::loopback::{Reply, Request, Server, closed_port, head};
use serde_json::{Value, json};

const TICKET: &str = "Calls to the bank are retried at most three times.";

fn tools() -> Value {
    json!({ "tools": [{ "name": "jira_get_issue", "inputSchema": { "type": "object" } }] })
}

fn ticket() -> Value {
    let ticket = json!({ "key": "PROJ-12", "summary": "Limit", "description": TICKET });
    json!({ "content": [{ "type": "text", "text": ticket.to_string() }] })
}

/// Answers an MCP message; the answer is a stream if `is_stream` is true.
fn answer(request: &Request, is_stream: bool) -> Reply {
    let message = request.json();
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "fake", "version": "1" } }),
        "tools/list" => tools(),
        "tools/call" => ticket(),
        _ => return Reply::with(202, &[], b""),
    };
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
    if is_stream {
        let body = format!(": hello\n\nevent: message\ndata: {body}\n\n");
        return Reply::with(
            200,
            &[
                ("content-type", "text/event-stream"),
                ("mcp-session-id", "s-1"),
            ],
            body.as_bytes(),
        );
    }
    Reply::with(
        200,
        &[
            ("content-type", "application/json"),
            ("mcp-session-id", "s-1"),
        ],
        body.as_bytes(),
    )
}

fn desk(url: &str) -> Desk {
    let desk = Desk::new("PROJ-12", calm);
    desk.policy_with(&format!(
        "[context.servers.web]\nurl = \"{url}/mcp\"\ntoken_env = \"TICKET_TOKEN\"\n"
    ));
    desk
}

#[test]
fn a_server_over_http_answers_with_documents_or_streams() {
    for is_stream in [false, true] {
        let server = Server::start(move |r| answer(r, is_stream));
        let desk = desk(&server.url());
        let report = desk
            .reviewer(&["--format", "json"])
            .env("TICKET_TOKEN", "token-0123456789")
            .run(0)
            .json();
        assert_eq!(report["context"][0]["reference"], "PROJ-12", "{report:#}");
        assert!(desk.prompts().contains(TICKET));
        let requests = server.requests();
        assert!(
            requests
                .iter()
                .all(|r| r.header("authorization") == Some("Bearer token-0123456789"))
        );
        assert!(
            requests
                .iter()
                .all(|r| r.header("accept").unwrap().contains("text/event-stream"))
        );
        assert_eq!(requests[0].header("mcp-session-id"), None);
        assert!(
            requests[1..]
                .iter()
                .all(|r| r.header("mcp-session-id") == Some("s-1")),
            "{requests:?}"
        );
        assert!(
            requests[1..]
                .iter()
                .all(|r| r.header("mcp-protocol-version") == Some("2025-06-18"))
        );
    }
}

#[test]
fn ctx_01_a_server_over_http_that_fails_is_a_note() {
    let closed = format!("http://127.0.0.1:{}", closed_port());
    let desk = desk(&closed);
    let run = desk
        .reviewer(&["--format", "json"])
        .env("TICKET_TOKEN", "token-0123456789")
        .run(0);
    assert!(
        notes(&run.json()).contains("(3 restarts)"),
        "{}",
        run.stdout
    );

    for (reply, says) in [
        (
            Reply::error(401, "unauthorized", "who are you, token-0123456789?"),
            "401 Unauthorized",
        ),
        (
            Reply::with(200, &[("content-type", "application/json")], b"<html>"),
            "the answer is not JSON",
        ),
        (
            Reply::with(302, &[("location", "https://evil.example/")], b""),
            "redirects are not followed",
        ),
        (
            Reply::raw(
                [
                    head(200, &[("content-type", "application/json")]),
                    vec![b'a'; 5 << 20],
                ]
                .concat(),
            ),
            "larger than 4 MiB",
        ),
    ] {
        let server = Server::script(vec![reply]);
        let desk = super::web::desk(&server.url());
        let run = desk
            .reviewer(&["--format", "json"])
            .env("TICKET_TOKEN", "token-0123456789")
            .run(0);
        assert!(notes(&run.json()).contains(says), "{says}: {}", run.stdout);
        assert!(!run.stdout.contains("token-0123456789"), "{}", run.stdout);
    }
}

#[test]
fn a_missing_token_is_a_note_and_nothing_is_sent() {
    let server = Server::start(|r| answer(r, false));
    let desk = desk(&server.url());
    let report = desk.report(0);
    assert!(
        notes(&report).contains("TICKET_TOKEN is not set"),
        "{report:#}"
    );
    assert!(server.requests().is_empty());
}
