//! Faults of context servers: missing, slow, dead, or with malformed answers.

use super::TICKET;
use super::desk::{Desk, REGULAR, calm, notes};
use crate::support::line_with_key;
use serde_json::json;

#[test]
fn ctx_01_a_dead_server_is_a_note_and_incomplete_only_if_required() {
    for (on_list, on_call, says, starts) in [
        ("exit 3", REGULAR, "it exited with code 3", 4),
        (
            "tools",
            "echo broken >&2; exit 4",
            "it exited with code 4: broken (3 restarts)",
            4,
        ),
        ("kill -9 $$", REGULAR, "signal 9", 4),
    ] {
        let desk = Desk::new("PROJ-12", calm);
        let path = desk.script(on_list, on_call);
        let policy = format!("[context.servers.a]\ncommand = [{path:?}]\n");
        desk.policy_with(&policy);
        let report = desk.report(0);
        assert!(
            notes(&report).contains("PROJ-12 was not read: server a: "),
            "{report:#}"
        );
        assert!(notes(&report).contains(says), "{report:#}");
        assert_eq!(
            desk.log("starts").len(),
            starts,
            "started, and started again three times"
        );
        assert_eq!(report["context"], json!([]));
        desk.policy_with(&format!("[context]\nrequired = true\n{policy}"));
        let report = desk.report(3);
        assert!(
            report["coverage"]["failed"]
                .to_string()
                .contains("PROJ-12 was not read"),
            "{report:#}"
        );
        assert!(
            !desk.model.questions().is_empty(),
            "the model reviews all the same"
        );
    }
}

#[test]
fn ctx_01_a_server_that_cannot_be_started_is_a_note() {
    for (command, says) in [
        ("[\"no-such-program\"]", "no-such-program not found on PATH"),
        ("[\"/no/such/program\"]", "/no/such/program not found"),
        ("[\"cat\", \"/dev/null\"]", "it exited with code 0"),
    ] {
        let desk = Desk::new("PROJ-12", calm);
        desk.policy_with(&format!("[context.servers.a]\ncommand = {command}\n"));
        assert!(notes(&desk.report(0)).contains(says), "{command}");
    }
}

#[test]
fn ctx_01_a_program_of_the_repository_is_no_server() {
    let desk = Desk::new("PROJ-12", calm);
    let path = desk.script("tools", REGULAR);
    let inside = desk.repo.path().join("server");
    std::fs::copy(path, &inside).unwrap();
    desk.policy_with(&format!("[context.servers.a]\ncommand = [{inside:?}]\n"));
    let report = desk.report(0);
    assert!(
        notes(&report).contains("inside the repository under review"),
        "{report:#}"
    );
    assert!(desk.log("starts").is_empty());
}

#[test]
fn ctx_01_a_slow_server_ends_with_the_timeout() {
    for (on_list, on_call) in [("sleep 600", REGULAR), ("tools", "sleep 600")] {
        let desk = Desk::new("PROJ-12 PROJ-13", calm);
        let path = desk.script(on_list, on_call);
        desk.policy_with(&format!(
            "[context]\ntimeout = \"2s\"\n[context.servers.a]\ncommand = [{path:?}]\n"
        ));
        let report = desk.report(0);
        let notes = notes(&report);
        assert!(
            notes.contains("PROJ-12 was not read: server a: no answer within [context] timeout"),
            "{notes}"
        );
        assert!(notes.contains("PROJ-13 was not read"), "{notes}");
        assert_eq!(desk.log("starts").len(), 1);
    }
}

#[test]
fn ctx_01_a_server_that_exits_at_once_is_reported_with_its_code_and_its_last_words() {
    let line = line_with_key();
    let key = line.trim().rsplit(' ').next().unwrap();
    for (timeout, restarts) in [("2s", ""), ("20s", " (3 restarts)")] {
        let desk = Desk::new("PROJ-12", calm);
        let words = format!(
            "printf 'first\\nno token \\033[31m {}\\n\\n' >&2; exit 7",
            line.trim()
        );
        let path = desk.script(&words, REGULAR);
        desk.policy_with(&format!(
            "[context]\ntimeout = \"{timeout}\"\n[context.servers.a]\ncommand = [{path:?}]\n"
        ));
        let report = desk.report(0);
        let notes = notes(&report);
        assert!(
            notes.contains("PROJ-12 was not read: server a: it exited with code 7: no token "),
            "{notes}"
        );
        assert!(notes.contains(restarts), "{notes}");
        assert_eq!(
            notes.contains("no answer within"),
            notes.contains("; then no answer within"),
            "{notes}"
        );
        assert!(!notes.contains(key) && !notes.contains('\u{1b}'), "{notes}");
    }
}

#[test]
fn ctx_01_a_huge_answer_is_refused_and_a_long_ticket_is_cut() {
    let desk = Desk::new("PROJ-12", calm);
    let flood = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 9000000 /dev/zero | tr '\0' a; printf '"}]}}\n'"#;
    let path = desk.script("tools", flood);
    desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
    let report = desk.report(0);
    assert!(
        notes(&report).contains("it sent more than 4 MiB at once"),
        "{report:#}"
    );

    let desk = Desk::new("PROJ-12", calm);
    let long = format!("{}END-OF-TICKET", "Some words. ".repeat(4_000));
    desk.ticket("PROJ-12", &"title ".repeat(200), &long)
        .policy("");
    let report = desk.report(0);
    assert!(report["context"][0]["title"].as_str().unwrap().len() <= 200);
    let prompts = desk.prompts();
    assert!(prompts.contains("more bytes]") && !prompts.contains("END-OF-TICKET"));
}

#[test]
fn ctx_01_malformed_answers_are_notes() {
    for (on_list, on_call, says) in [
        ("tools", "reply '{}'", "the answer is not one to the call"),
        (
            "tools",
            "reply '{\"content\":[]}'",
            "the answer has no text",
        ),
        (
            "tools",
            "reply '{\"content\":[{\"type\":\"image\",\"data\":\"aaaa\",\"mimeType\":\"image/png\"}]}'",
            "the answer has no text",
        ),
        (
            "tools",
            "refuse 'Unknown tool: jira_get_issue'",
            "refused: Unknown tool: jira_get_issue (-32602)",
        ),
        ("tools", "answer", "refused: no such ticket"),
        (
            "reply '{\"tools\":[]}'",
            REGULAR,
            "it has no tool jira_get_issue",
        ),
        (
            "while :; do echo junk; done",
            REGULAR,
            "it does not speak MCP",
        ),
    ] {
        let desk = Desk::new("PROJ-12", calm);
        let path = desk.script(on_list, on_call);
        desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
        let report = desk.report(0);
        assert!(notes(&report).contains(says), "{says}: {report:#}");
    }
}

#[test]
fn ctx_01_banners_on_standard_output_are_skipped() {
    let desk = Desk::new("PROJ-12", calm);
    desk.ticket("PROJ-12", "t", TICKET);
    let path = desk.script("echo starting up; echo; tools", REGULAR);
    desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
    assert_eq!(desk.report(0)["context"][0]["reference"], "PROJ-12");
}

#[test]
fn ctx_01_a_tool_that_is_renamed_after_it_was_listed_is_a_note() {
    let desk = Desk::new("PROJ-12 PROJ-13", calm);
    let renamed = r#"printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; refuse 'Unknown tool'"#;
    let path = desk.script("tools", renamed);
    desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
    let report = desk.report(0);
    assert!(
        notes(&report).contains("PROJ-12 was not read: server a: refused: Unknown tool"),
        "{report:#}"
    );
    assert!(
        desk.log("calls")
            .iter()
            .all(|c| c.contains(r#""name":"jira_get_issue""#)),
        "no other tool is called"
    );
    assert_eq!(desk.log("starts").len(), 1);
}

#[test]
fn ctx_01_every_fault_of_a_server_makes_the_review_incomplete_if_tickets_are_required() {
    let flood = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 9000000 /dev/zero | tr '\0' a; printf '"}]}}\n'"#;
    for (fault, on_list, on_call) in [
        ("slow", "tools", "sleep 600"),
        ("slow to begin", "sleep 600", REGULAR),
        ("huge", "tools", flood),
        ("malformed", "tools", "reply '{}'"),
        ("not MCP", "while :; do echo junk; done", REGULAR),
        ("without the tool", "reply '{\"tools\":[]}'", REGULAR),
        ("renaming", "tools", "refuse 'Unknown tool'"),
        ("refusing", "tools", "answer"),
    ] {
        let desk = Desk::new("PROJ-12", calm);
        let path = desk.script(on_list, on_call);
        desk.policy_with(&format!(
            "[context]\nrequired = true\ntimeout = \"2s\"\n[context.servers.a]\ncommand = [{path:?}]\n"
        ));
        let report = desk.report(3);
        assert_eq!(report["verdict"], "incomplete", "{fault}: {report:#}");
        let failed = report["coverage"]["failed"].to_string();
        assert!(
            failed.contains("PROJ-12 was not read: server a: "),
            "{fault}: {failed}"
        );
        assert_eq!(report["context"], json!([]), "{fault}");
        let calls = desk.log("calls");
        assert!(
            calls.len() <= 5
                && calls
                    .iter()
                    .all(|c| c.contains(r#""name":"jira_get_issue""#)),
            "{fault}: {calls:?}"
        );
    }
}

#[test]
fn ctx_01_a_server_that_fails_and_starts_again_gets_no_more_than_five_calls() {
    let desk = Desk::new(
        "PROJ-1 PROJ-2 PROJ-3 PROJ-4 PROJ-5 PROJ-6 PROJ-7 PROJ-8",
        calm,
    );
    let path = desk.script("tools", "exit 4");
    desk.policy_with(&format!("[context.servers.a]\ncommand = [{path:?}]\n"));
    desk.report(0);
    let calls = desk.log("calls").len();
    assert!((1..=5).contains(&calls), "{calls}");
}
