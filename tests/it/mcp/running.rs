//! Tests of long reviews: progress, cancellation, and cleanup after the client disconnects.

use super::client::Client;
use crate::loopback::{Reply, Request, Server, Step, finding};
use crate::support::{Repo, eventually, until};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Starts a server that answers after a delay.
fn slow(seconds: u64) -> Server {
    Server::start(move |r: &Request| {
        let Reply(steps) = r.review(&[]);
        Reply([vec![Step::Wait(Duration::from_secs(seconds))], steps].concat())
    })
}

fn repo(server: &Server) -> Repo {
    let repo = Repo::new();
    repo.stage(".claude-reviewer.toml", server.policy("openai"))
        .commit("first");
    repo.stage("src/a.rs", "fn a() {}\n");
    repo
}

fn client(repo: &Repo) -> Client {
    let key = format!("sk-{}", "0".repeat(20));
    let mut client = Client::start_in(repo, &repo.path(), &[], &[("OPENAI_API_KEY", &key)]);
    client.shake_hands(json!({}));
    client
}

#[test]
fn progress_is_told_to_who_asked_for_it_and_grows() {
    let server = slow(1);
    let repo = repo(&server);
    let mut client = client(&repo);
    let with =
        json!({"name": "review_staged", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let id = client.ask("tools/call", with);
    let answer = client.answer(id);
    assert_eq!(
        answer["result"]["structuredContent"]["verdict"], "pass",
        "{answer:#}"
    );
    let told: Vec<_> = client.aside.drain(..).collect();
    assert!(told.len() >= 2, "{told:?}");
    let mut last = -1.0;
    for message in &told {
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], "mine");
        let progress = message["params"]["progress"].as_f64().unwrap();
        assert!(progress > last, "{told:?}");
        assert!(
            message["params"]["total"]
                .as_f64()
                .is_none_or(|t| t >= progress)
        );
        last = progress;
    }
    assert!(told.iter().any(|m| {
        m["params"]["message"]
            .as_str()
            .is_some_and(|t| t.starts_with("models: 0 of 1"))
    }));
    // Without a token, there are no notifications. The answer is cached.
    client.content("review_staged", json!({}));
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn progress_carries_what_is_found_before_the_last_answer() {
    let server = Server::start(|r| {
        let slow = r.files().iter().any(|f| f == "src/b.py");
        let reply = r.review(&[finding("src/a.py", 2, "    return 1 / n")]);
        if slow {
            reply.after(Duration::from_secs(1))
        } else {
            reply
        }
    });
    let repo = Repo::new();
    let policy = server
        .policy("openai")
        .replace("[review]\n", "[review]\nmax_files = 1\n");
    repo.stage(".claude-reviewer.toml", policy).commit("seed");
    repo.stage("src/a.py", "def rate(n):\n    return 1 / n\n")
        .stage("src/b.py", "B = 1\n");
    let mut client = client(&repo);
    let with =
        json!({"name": "review_staged", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let id = client.ask("tools/call", with);
    let answer = client.answer(id);
    assert_eq!(
        answer["result"]["structuredContent"]["verdict"], "block",
        "{answer:#}"
    );
    let words: Vec<_> = client
        .aside
        .drain(..)
        .map(|m| m["params"]["message"].as_str().unwrap().to_owned())
        .collect();
    let found = "\nfound src/a.py:2: major Wrong result (openai, unconfirmed)";
    assert_eq!(
        words.iter().filter(|w| w.contains(found)).count(),
        1,
        "{words:?}"
    );
    assert_eq!(client.close().code, Some(0));
}

#[test]
fn mcp_11_cancelling_stops_the_review_and_sends_nothing() {
    let server = slow(60);
    let repo = repo(&server);
    let mut client = client(&repo);
    let id = client.ask(
        "tools/call",
        json!({"name": "request_review", "arguments": {"summary": "x"}}),
    );
    until("a request reaches the model", || {
        !server.requests().is_empty()
    });
    client.notify(
        "notifications/cancelled",
        json!({"requestId": id, "reason": "enough"}),
    );
    let cancelled = || {
        let latest = repo.path().join(".reviews/latest.json");
        latest.exists()
    };
    until("the round is stored", cancelled);
    let session = client.content("get_review_history", json!({"review_id": "latest"}));
    assert_eq!(session["status"], "cancelled", "{session:#}");
    assert_eq!(session["rounds"][0]["review"]["outcome"], "cancelled");
    let refused = json!({"review_id": session["review_id"], "final_status": "approved"});
    client.refused("mark_review_complete", refused);
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(
        client.aside.iter().all(|m| m["id"] != id),
        "{:?}",
        client.aside
    );
    // Cancelling a request that ended, or never existed, is not an error.
    client.notify("notifications/cancelled", json!({"requestId": id}));
    client.notify("notifications/cancelled", json!({"requestId": "never"}));
    let end = client.close();
    assert_eq!(end.code, Some(0));
    assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    assert!(end.rest.iter().all(|m| m["id"] != id), "{:?}", end.rest);
}

/// Writes a program in place of the Claude command line: it starts another one, records both, and
/// never ends.
fn endless(repo: &Repo) -> std::path::PathBuf {
    let program = repo.home().join("claude");
    let pids = repo.home().join("pids");
    let script = format!(
        "#!/bin/sh\ntrap '' TERM INT\ncase \"$*\" in *--version*) echo '9.9.9 (Claude Code)'; exit 0;; esac\n\
         sleep 300 &\necho $! >> {0}\necho $$ >> {0}\nwait\n",
        pids.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

fn pids(path: &Path) -> Vec<i32> {
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .lines()
        .filter_map(|l| l.parse().ok())
        .collect()
}

fn lives(pid: i32) -> bool {
    // A zombie is not a running program.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Creates a repository whose policy uses the endless program, and a client of it.
fn with_program() -> (Repo, Client, std::path::PathBuf) {
    let repo = Repo::new();
    let program = endless(&repo);
    let config = repo.home().join(".config/claude-reviewer");
    std::fs::create_dir_all(&config).unwrap();
    let policy = format!(
        "version = 1\n[review]\nbackends = [\"claude\"]\n[backend.claude]\npath = \"{}\"\n",
        program.display()
    );
    std::fs::write(config.join("config.toml"), policy).unwrap();
    repo.stage("README.md", "# Sample\n").commit("first");
    repo.stage("src/a.rs", "fn a() {}\n");
    let client = Client::ready(&repo, &[]);
    let pids = repo.home().join("pids");
    (repo, client, pids)
}

#[test]
#[cfg(target_os = "linux")]
fn mcp_11_cancelling_ends_the_program_and_what_it_started() {
    let (_repo, mut client, file) = with_program();
    let id = client.ask(
        "tools/call",
        json!({"name": "review_staged", "arguments": {}}),
    );
    until("the program runs", || pids(&file).len() >= 2);
    client.notify("notifications/cancelled", json!({"requestId": id}));
    until("the programs are gone", || {
        pids(&file).into_iter().all(|p| !lives(p))
    });
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(
        client.aside.iter().all(|m| m["id"] != id),
        "{:?}",
        client.aside
    );
}

#[test]
#[cfg(target_os = "linux")]
fn mcp_12_a_client_that_goes_away_leaves_no_program_behind() {
    let (_repo, mut client, file) = with_program();
    client.ask(
        "tools/call",
        json!({"name": "review_staged", "arguments": {}}),
    );
    until("the program runs", || pids(&file).len() >= 2);
    let end = client.close();
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    until("the programs are gone", || {
        pids(&file).into_iter().all(|p| !lives(p))
    });
}

#[test]
#[cfg(target_os = "linux")]
fn mcp_12_a_signal_leaves_no_program_behind() {
    let (_repo, mut client, file) = with_program();
    client.ask(
        "tools/call",
        json!({"name": "review_staged", "arguments": {}}),
    );
    until("the program runs", || pids(&file).len() >= 2);
    let began = Instant::now();
    let pid = rustix::process::Pid::from_raw(i32::try_from(client.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let end = client.end(began);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.took < Duration::from_secs(2), "{:?}", end.took);
    until("the programs are gone", || {
        pids(&file).into_iter().all(|p| !lives(p))
    });
}

#[test]
fn mcp_12_a_reader_that_is_gone_ends_the_server() {
    let server = slow(60);
    let repo = repo(&server);
    let mut child = std::process::Command::new(crate::support::binary())
        .arg("serve-mcp")
        .current_dir(repo.path())
        .env("HOME", repo.home())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let began = Instant::now();
    use std::io::Write as _;
    for id in 0..3 {
        let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
        // The server may have ended already.
        let _ = writeln!(stdin, "{ping}");
    }
    let status = eventually("the server ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn mcp_12_a_client_that_reads_nothing_can_go_away() {
    let server = slow(60);
    let repo = repo(&server);
    let mut child = std::process::Command::new(crate::support::binary())
        .arg("serve-mcp")
        .current_dir(repo.path())
        .env("HOME", repo.home())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    use std::io::Write as _;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    writeln!(
        stdin,
        "{}",
        json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": hello})
    )
    .unwrap();
    for id in 0..400 {
        writeln!(
            stdin,
            "{}",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"})
        )
        .unwrap();
    }
    let began = Instant::now();
    drop(stdin);
    let status = eventually("the server ends", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn mcp_13_while_reviews_wait_other_requests_are_answered() {
    let server = slow(10);
    let repo = repo(&server);
    let mut client = client(&repo);
    let ids: Vec<i64> = (0..5)
        .map(|n| {
            let code = format!("x = {n}\n");
            client.ask(
                "tools/call",
                json!({"name": "review_code", "arguments": {"code": code}}),
            )
        })
        .collect();
    let began = Instant::now();
    assert!(client.request("ping", json!({}))["result"].is_object());
    assert!(client.request("tools/list", json!({}))["result"]["tools"].is_array());
    // A tool that asks no model needs no permit.
    client.content("get_review_history", json!({}));
    client.content("claude_health", json!({}));
    client.refused(
        "mark_review_complete",
        json!({"review_id": "2026-01-01-001", "final_status": "merged"}),
    );
    // The first waiting call gets no answer before the model answered.
    assert!(client.aside.is_empty(), "{:?}", client.aside);
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
    for id in ids {
        let answer = client.answer(id);
        assert_eq!(
            answer["result"]["structuredContent"]["verdict"],
            Value::from("pass"),
            "{answer:#}"
        );
    }
    assert!(
        server.most_in_flight() <= 4,
        "{} at once",
        server.most_in_flight()
    );
}
