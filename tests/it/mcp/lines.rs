//! Tests of the protocol and of invalid input: handshakes, garbage, sizes, the end.

use super::client::{Client, text};
use crate::support::Repo;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Returns the members that identify the client in a request of the newest protocol version.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn repo() -> Repo {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n").commit("first");
    repo
}

#[test]
fn the_server_says_who_it_is_and_what_to_call_when() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    let info = client.shake_hands(json!({}));
    assert_eq!(info["serverInfo"]["name"], "claude-reviewer");
    assert_eq!(info["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert!(info["serverInfo"]["title"].is_string());
    let words = info["instructions"].as_str().unwrap();
    for word in [
        "request_review",
        "previous_review_id",
        "mark_review_complete",
        "incomplete",
        "Stop",
    ] {
        assert!(words.contains(word), "{word}");
    }
    let listed = client.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        let name = &tool["name"];
        assert!(
            tool["title"].is_string() && tool["description"].is_string(),
            "{name}"
        );
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        assert_eq!(
            tool["annotations"]["destructiveHint"],
            name == "apply_finding",
            "{name}"
        );
        for (arg, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(schema["description"].is_string(), "{name}: {arg}");
        }
    }
    assert_eq!(tools.len(), 19);
    // Clients send the list to a model with every request.
    let reply = listed.to_string();
    assert!(
        !reply.contains("\"format\"") && reply.len() <= 40_000,
        "{} bytes",
        reply.len()
    );
    let end = client.close();
    assert_eq!((end.code, end.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_newest_generation_needs_no_handshake() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    let found = client.request("server/discover", json!({"_meta": meta()}));
    assert!(
        found["result"]["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!("2026-07-28")),
        "{found}"
    );
    let tools = client.request("tools/list", json!({"_meta": meta()}));
    assert!(
        tools["result"]["tools"]
            .as_array()
            .is_some_and(|t| t.len() > 4),
        "{tools}"
    );
    repo.stage("b.py", crate::support::line_with_key());
    let params = json!({"name": "review_staged", "arguments": {}, "_meta": meta()});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["verdict"], "block",
        "{answer}"
    );
    // This version forbids requests of the server, so declared roots are not requested.
    let mut meta = meta();
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({"roots": {}});
    let params = json!({"name": "review_staged", "arguments": {}, "_meta": meta});
    let answer = client.request("tools/call", params);
    assert_eq!(
        answer["result"]["structuredContent"]["verdict"], "block",
        "{answer}"
    );
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn mcp_01_standard_output_holds_messages_only_at_any_log_level() {
    let repo = repo();
    repo.stage("b.py", crate::support::line_with_key());
    for level in ["-q", "-v", "-vvv"] {
        // The client fails on any line that is not a message.
        let mut client = Client::ready(&repo, &[level]);
        assert_eq!(
            client.content("review_staged", json!({}))["verdict"],
            "block"
        );
        client.raw(b"\x1b]0;title\x07\n");
        client.refused("review_commit", json!({"commit_sha": "\u{1b}[2J"}));
        let end = client.close();
        assert_eq!(end.code, Some(0));
        assert_eq!(
            end.stderr.is_empty(),
            level == "-q",
            "{level}: {}",
            end.stderr
        );
        assert!(!end.stderr.contains('\u{1b}'), "{:?}", end.stderr);
    }
}

#[test]
fn mcp_02_garbage_starts_no_storm_and_hides_no_request() {
    let repo = repo();
    let mut client = Client::ready(&repo, &[]);
    let megabyte = vec![b'x'; 1 << 20];
    for garbage in [
        &b"garbage"[..],
        b"\xff\xfe\x00\x80",
        &megabyte,
        b"{",
        b"}{",
        b"null",
        b"7",
        b"\"x\"",
        b"[]",
        b"",
    ] {
        for _ in 0..20 {
            client.raw(garbage);
            client.raw(b"\n");
        }
    }
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\r\n");
    let answer = client.request("ping", json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    assert!(
        client.aside.len() <= 3,
        "{} answers to garbage",
        client.aside.len()
    );
    // Invalid JSON, and JSON that is not a message.
    let known = [json!(-32700), json!(-32600)];
    assert!(
        client
            .aside
            .iter()
            .all(|m| m["id"].is_null() && known.contains(&m["error"]["code"])),
        "{:?}",
        client.aside
    );
    // An error for a message with an ID has that ID.
    client.raw(b"{\"id\":\"a\",\"method\":\"ping\"}\n");
    assert_eq!(client.answer("a")["error"]["code"], -32600);
    assert_eq!(client.close().code, Some(0));
}

/// Sends a line without a readable ID, and returns the rejection.
#[track_caller]
fn refused(client: &mut Client, line: &[u8]) -> Value {
    client.raw(line);
    client.raw(b"\n");
    let answer = client
        .next_within(Duration::from_secs(60))
        .unwrap_or_else(|| {
            panic!(
                "no answer to {}",
                String::from_utf8_lossy(&line[..line.len().min(80)])
            )
        });
    assert_eq!(
        answer.as_object().unwrap().get("id"),
        Some(&Value::Null),
        "{answer}"
    );
    // A valid message resets the count: a client that only sends garbage does not get answers
    // forever.
    assert!(client.request("ping", json!({}))["result"].is_object());
    answer["error"].clone()
}

#[test]
fn mcp_02_what_cannot_be_read_as_json_is_refused_by_its_id() {
    let repo = repo();
    let mut client = Client::ready(&repo, &[]);
    let deep = "[".repeat(10_000);
    let call = r#"{"jsonrpc":"2.0","id":"ID","method":"tools/call","params":{"name":"get_review_history","arguments":{"limit":IT}}}"#;
    let closed = format!("{deep}{}", "]".repeat(10_000));
    for it in [
        "1e400",
        "-1e999",
        r#""\ud800""#,
        r#""\udc00 x""#,
        r#"{"a":[[1e400]]}"#,
        "01",
        "nul",
        &deep,
        &closed,
    ] {
        let id = format!(
            "call-{}",
            &it[..it.len().min(9)].replace(['"', '\\', '{', '['], ".")
        );
        client.raw(format!("{}\n", call.replace("ID", &id).replace("IT", it)).as_bytes());
        let answer = client.answer(id);
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
        assert!(answer.to_string().len() < 300, "{answer}");
    }
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    // The owner of the ID is unknown.
    let both = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{"x":1e400}}"#;
    let half = r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#;
    for line in [
        "garbage",
        "{",
        &deep,
        &closed,
        both,
        half,
        r#"{"id":1e400,"method":"ping"}"#,
        "\u{feff}\u{feff}{}",
    ] {
        assert_eq!(
            refused(&mut client, line.as_bytes())["code"],
            -32700,
            "{line:.80}"
        );
    }
    assert_eq!(
        refused(&mut client, b"{\"id\":\"\xff\",\"method\":\"ping\"}")["code"],
        -32700
    );
    // With two IDs there is none, and neither of the two gets an answer.
    let twice = r#"{"jsonrpc":"2.0","id":71,"id":72,"method":"ping"}"#;
    assert_eq!(refused(&mut client, twice.as_bytes())["code"], -32600);
    // Responses and notifications get no answer, even if they are invalid.
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"x":1e400}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1e400,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x","params":{"x":1e400}}"#,
    ] {
        client.raw(format!("{line}\n").as_bytes());
    }
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn mcp_02_a_refusal_is_not_taken_for_the_answer_to_another_request() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    client.shake_hands(json!({"roots": {}}));
    // Open: the server waits for the client's roots.
    let call = json!({"name": "review_staged", "arguments": {}});
    client.send(&json!({"jsonrpc": "2.0", "id": "open", "method": "tools/call", "params": call}));
    client.raw(
        b"{\"jsonrpc\":\"2.0\",\"id\":\"open\",\"method\":\"ping\",\"params\":{\"x\":1e400}}\n",
    );
    let mut seen = Vec::new();
    while !seen.iter().any(|m: &Value| m["id"] == "open") {
        seen.push(client.next_within(Duration::from_secs(60)).unwrap());
    }
    let of_open: Vec<_> = seen.iter().filter(|m| m["id"] == "open").collect();
    assert!(
        of_open.len() == 1 && of_open[0]["result"]["isError"] == true,
        "{seen:?}"
    );
    assert!(
        seen.iter()
            .any(|m| m["id"].is_null() && m["error"]["code"] == -32700),
        "{seen:?}"
    );
}

#[test]
fn a_list_of_messages_with_one_that_cannot_be_read_is_refused_as_a_whole_and_the_next_is_answered()
{
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    client.request("initialize", hello);
    let good = r#"{"jsonrpc":"2.0","id":"good","method":"ping"}"#;
    for bad in [
        r#"{"jsonrpc":"2.0","id":"bad","method":"ping","params":{"x":1e400}}"#,
        "{",
        r#""\ud800""#,
    ] {
        assert_eq!(
            refused(&mut client, format!("[{good},{bad}]").as_bytes())["code"],
            -32700,
            "{bad}"
        );
    }
    // JSON that is not a message is rejected on its own.
    for bad in [r#"{"id":"bad"}"#, r#"{"id":"bad","method":7}"#] {
        client.raw(format!("[{good},{bad}]\n").as_bytes());
        let all = client.next_within(Duration::from_secs(60)).unwrap();
        let of = |id: &str| {
            all.as_array()
                .unwrap()
                .iter()
                .find(|m| m["id"] == id)
                .unwrap()
                .clone()
        };
        assert!(
            of("good")["result"].is_object() && of("bad")["error"]["code"] == -32600,
            "{all}"
        );
    }
    assert!(client.aside.is_empty(), "{:?}", client.aside);
}

#[test]
fn mcp_03_a_notification_is_never_answered() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    // Before and during the session.
    for round in 0..2 {
        for method in [
            "notifications/initialized",
            "notifications/unknown",
            "nonsense",
            "tools/call",
            "$/cancelRequest",
        ] {
            client.notify(method, json!({"x": 1}));
        }
        client.notify("notifications/cancelled", json!({"requestId": 99}));
        client.send(&json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
        client.send(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}));
        if round == 0 {
            client.shake_hands(json!({}));
        }
    }
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn mcp_04_the_handshake_comes_first_and_once() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    let early = client.request("tools/list", json!({}));
    assert!(early["error"]["code"].is_i64(), "{early}");
    let malformed = client.request("initialize", json!({"protocolVersion": 5}));
    assert!(malformed["error"]["code"].is_i64(), "{malformed}");
    let unknown = json!({"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = client.request("initialize", unknown.clone());
    let version = answer["result"]["protocolVersion"].as_str().unwrap();
    assert!(
        ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].contains(&version),
        "{version}"
    );
    let again = client.request("initialize", unknown);
    assert_eq!(again["error"]["code"], -32600, "{again}");
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
    let mut meta = meta();
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2999-01-01");
    let later = client.request("tools/list", json!({"_meta": meta}));
    assert!(later["error"]["data"]["supported"].is_array(), "{later}");
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn mcp_05_what_does_not_fit_is_named() {
    let repo = repo();
    let mut client = Client::ready(&repo, &[]);
    assert_eq!(
        client.request("no/such", json!({}))["error"]["code"],
        -32601
    );
    let unknown = client.request(
        "tools/call",
        json!({"name": "review_moon", "arguments": {}}),
    );
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("review_moon"),
        "{unknown}"
    );
    for params in [
        json!({}),
        json!({"name": 5}),
        json!({"name": "review_staged", "arguments": [1]}),
        json!([1]),
    ] {
        let answer = client.request("tools/call", params.clone());
        assert!(
            [-32600, -32602]
                .map(Value::from)
                .contains(&answer["error"]["code"]),
            "{params}: {answer}"
        );
    }
    for (tool, arguments, says) in [
        ("review_commit", json!({}), "commit_sha is missing"),
        (
            "review_commit",
            json!({"commit_sha": 7}),
            "commit_sha must be a string",
        ),
        (
            "review_commit",
            json!({"commit_sha": "HEAD", "sha": "x"}),
            "unknown argument \"sha\"",
        ),
        (
            "review_code",
            json!({"code": "x", "review_depth": "deep"}),
            "review_depth must be one of quick, thorough",
        ),
        (
            "review_code",
            json!({"code": "x", "focus_areas": ["moon"]}),
            "focus_areas must be a list of bugs",
        ),
        (
            "review_code",
            json!({"code": "x", "provider": "openai"}),
            "provider \"openai\" is not enabled",
        ),
        ("review_code", json!({"code": " "}), "code is empty"),
        (
            "review_branch",
            json!({"file_list": "a"}),
            "file_list must be a list",
        ),
        ("review_branch", json!({"file_list": ["../x"]}), "file_list"),
    ] {
        let result = client.refused(tool, arguments.clone());
        let message = result["structuredContent"]["message"].as_str().unwrap();
        assert!(message.contains(says), "{tool} {arguments}: {message}");
        assert_eq!(result["structuredContent"]["retryable"], false);
        assert!(
            text(&result).contains("again with the same arguments"),
            "{}",
            text(&result)
        );
    }
    for id in [json!("text"), json!(-1), json!(0), json!("7")] {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"}));
        assert_eq!(client.answer(id.clone())["id"], id);
    }
    client.send(&json!({"jsonrpc": "2.0", "id": null, "method": "ping"}));
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
    for focus in ["bugs", "best-practices", "best_practice", "Security"] {
        client.content(
            "review_code",
            json!({"code": "x = 1\n", "language": "python", "focus_areas": [focus]}),
        );
    }
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn several_messages_on_a_line_are_answered_on_one_where_the_generation_has_that() {
    let repo = repo();
    let mut client = Client::start(&repo, &[]);
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(
        client.request("initialize", hello)["result"]["protocolVersion"],
        "2025-03-26"
    );
    let list = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.send(&json!([list("a"), note, list("b"), {"id": "c"}]));
    let all = client.next_within(Duration::from_secs(60)).unwrap();
    let mut ids: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    assert_eq!(ids, ["a", "b", "c"]);
    // A call that is cancelled on its own line does not block the other answers of that line.
    let call = json!({"jsonrpc": "2.0", "id": "d", "method": "tools/call",
        "params": {"name": "review_staged", "arguments": {}}});
    let give_up = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "d"}});
    client.send(&json!([call, give_up, list("e")]));
    let all = client.next_within(Duration::from_secs(60)).unwrap();
    let ids: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["e"]);
    // A line of only notifications gets no answer.
    client.send(&json!([note, note]));
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    let mut client = Client::ready(&repo, &[]);
    client.send(&json!([list("a")]));
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
}

#[test]
fn mcp_12_the_server_ends_with_its_client() {
    let repo = repo();
    // No input at all; a session; half a line.
    let ends = [
        Client::start(&repo, &[]).close(),
        Client::ready(&repo, &[]).close(),
        {
            let mut client = Client::ready(&repo, &[]);
            client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":1");
            client.close()
        },
    ];
    for end in ends {
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    }
}

#[test]
fn mcp_12_what_was_asked_before_the_end_is_answered() {
    let repo = repo();
    repo.stage("b.py", crate::support::line_with_key());
    let mut client = Client::ready(&repo, &[]);
    let id = client.ask(
        "tools/call",
        json!({"name": "review_staged", "arguments": {}}),
    );
    let end = client.close();
    assert_eq!(end.code, Some(0));
    let answer = end.rest.iter().find(|m| m["id"] == id).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["verdict"], "block");
}

#[test]
fn mcp_12_signals_end_the_server_cleanly() {
    let repo = repo();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut client = Client::ready(&repo, &[]);
        let began = Instant::now();
        let pid = rustix::process::Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        let end = client.end(began);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    }
}

#[test]
fn mcp_13_twenty_at_once_are_answered_by_their_ids() {
    let repo = repo();
    repo.stage("b.py", crate::support::line_with_key());
    let mut client = Client::ready(&repo, &[]);
    let ids: Vec<String> = (0..20).map(|n| format!("call-{n}")).collect();
    for id in &ids {
        let params = json!({"name": "review_staged", "arguments": {}});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    // The ID of an open request cannot be reused.
    for id in ids.iter().rev() {
        let answer = client.answer(id.as_str());
        assert_eq!(
            answer["result"]["structuredContent"]["verdict"], "block",
            "{answer}"
        );
    }
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    assert_eq!(client.close().code, Some(0));
}

/// Returns the peak memory of a process in bytes.
#[cfg(target_os = "linux")]
pub fn peak(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

#[test]
#[cfg(target_os = "linux")]
fn mcp_14_what_is_too_large_is_refused_in_bounded_memory() {
    let repo = repo();
    let mut client = Client::ready(&repo, &[]);
    let piece = vec![b'x'; 1 << 20];
    // An argument of 64 MB after the ID; a line of 100 MB before the ID.
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"front\",\"method\":\"tools/call\",\"params\":{\"name\":\"review_code\",\"arguments\":{\"code\":\"");
    (0..64).for_each(|_| client.raw(&piece));
    client.raw(b"\"}}}\n");
    assert_eq!(client.answer("front")["error"]["code"], -32600);
    client.raw(b"{\"params\":{\"x\":\"");
    (0..100).for_each(|_| client.raw(&piece));
    client.raw(b"\"},\"method\":\"tools/call\",\"jsonrpc\":\"2.0\",\"id\":\"behind\"}\n");
    assert_eq!(client.answer("behind")["error"]["code"], -32600);
    (0..100).for_each(|_| client.raw(&piece));
    client.raw(b"\n");
    assert_eq!(client.answer(Value::Null)["error"]["code"], -32600);
    // Small as text, huge as values.
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"many\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"arguments\":{\"a\":[0");
    let zeros = b",0".repeat(1 << 19);
    (0..12).for_each(|_| client.raw(&zeros));
    client.raw(b"]}}}\n");
    assert_eq!(client.answer("many")["error"]["code"], -32600);
    // Deeply nested.
    client.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"deep\",\"method\":\"ping\",\"params\":");
    client.raw(&b"[".repeat(90_000));
    client.raw(b"\n");
    assert!(client.request("ping", json!({}))["result"].is_object());
    let most = peak(client.pid());
    assert!(most < 160 << 20, "{} MiB", most >> 20);
    assert_eq!(client.close().code, Some(0));
}
