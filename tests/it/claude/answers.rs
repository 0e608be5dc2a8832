//! Output of the program that must not count as an answer: rows MOD-01, MOD-03 and MOD-05.

use super::{AROUND, Fake, looking};
use crate::support::Repo;
use claude_reviewer::ai::ask::{Cause, Failure, ModelAnswer};
use claude_reviewer::git::State;

const GOOD: &str = "result \"{\\\"nonce\\\":\\\"$nonce\\\"}\"";

/// Returns a message of the model with an answer: `message` is its ID, `call` that of the call.
fn gives(message: &str, call: &str) -> String {
    let event = format!(
        "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{message}\",\"model\":\"m\",\"stop_reason\":null,\"content\":[{{\"type\":\"tool_use\",\"id\":\"{call}\",\"name\":\"StructuredOutput\",\"input\":{{}}}}]}},\"parent_tool_use_id\":null}}"
    );
    format!("echo '{event}'")
}

fn result_of(call: &str, is_error: bool) -> String {
    let event = format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{call}\",\"is_error\":{is_error},\"content\":\"x\"}}]}},\"parent_tool_use_id\":null}}"
    );
    format!("echo '{event}'")
}

fn ask(events: &[String]) -> Result<ModelAnswer, Failure> {
    Fake::new(&format!("heard\nready\n{}\n{GOOD}", events.join("\n"))).ask()
}

#[test]
fn mod_03_two_structured_answers_are_no_answer() {
    assert!(ask(&[gives("m1", "t1"), result_of("t1", false)]).is_ok());
    // An answer that the program rejected is replaced by the next one.
    assert!(
        ask(&[
            gives("m1", "t1"),
            result_of("t1", true),
            gives("m2", "t2"),
            result_of("t2", false)
        ])
        .is_ok()
    );
    // As 2.1.330 writes it: the blocks of one message in sequence, each answered at once.
    let in_one = [
        gives("m1", "t1"),
        result_of("t1", false),
        gives("m1", "t2"),
        result_of("t2", false),
    ];
    let in_two = [
        gives("m1", "t1"),
        result_of("t1", false),
        gives("m2", "t2"),
        result_of("t2", false),
    ];
    let one_refused = [
        gives("m1", "t1"),
        result_of("t1", true),
        gives("m1", "t2"),
        result_of("t2", false),
    ];
    for events in [in_one, in_two, one_refused] {
        let failure = ask(&events).unwrap_err();
        assert_eq!(
            (failure.cause, failure.message.as_str()),
            (Cause::Malformed, "it gave two answers")
        );
    }
}

#[test]
fn mod_03_a_compacted_context_is_no_review() {
    for event in [
        r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto","pre_tokens":155000}}"#,
        r#"{"type":"system","subtype":"microcompact_boundary"}"#,
        r#"{"type":"system","subtype":"status","status":"compacting"}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"m","content":[],"context_management":{"applied_edits":[{"type":"clear_tool_uses_20250919"}]}}}"#,
    ] {
        let failure = ask(&[format!("echo '{event}'")]).unwrap_err();
        assert_eq!(failure.cause, Cause::TooLarge, "{event}: {failure:?}");
    }
    for event in [
        r#"{"type":"system","subtype":"status","status":null}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"m","content":[],"context_management":null}}"#,
        r#"{"type":"assistant","message":{"id":"m","model":"m","content":[],"context_management":{"applied_edits":[]}}}"#,
    ] {
        assert!(ask(&[format!("echo '{event}'")]).is_ok(), "{event}");
    }
}

#[test]
fn mod_03_a_success_that_stopped_early_is_no_answer() {
    for (key, value, cause) in [
        ("stop_reason", "refusal", Cause::Declined),
        ("stop_reason", "max_tokens", Cause::CutOff),
        (
            "stop_reason",
            "model_context_window_exceeded",
            Cause::TooLarge,
        ),
        ("stop_reason", "pause_turn", Cause::Malformed),
        ("terminal_reason", "prompt_too_long", Cause::TooLarge),
        ("terminal_reason", "max_turns", Cause::CutOff),
        ("terminal_reason", "model_error", Cause::Unreachable),
    ] {
        let body = format!(
            "heard\nready\n{GOOD} | sed 's/\"is_error\"/\"{key}\":\"{value}\",\"is_error\"/'"
        );
        let failure = Fake::new(&body).ask().unwrap_err();
        assert_eq!(failure.cause, cause, "{key} {value}: {failure:?}");
        if key == "stop_reason" {
            let event = format!(
                "echo '{{\"type\":\"assistant\",\"message\":{{\"id\":\"m\",\"model\":\"m\",\"stop_reason\":\"{value}\",\"content\":[]}}}}'"
            );
            assert_eq!(
                ask(&[event]).unwrap_err().cause,
                cause,
                "{value} of a message"
            );
        }
    }
    for (key, value) in [
        ("stop_reason", "end_turn"),
        ("stop_reason", "tool_use"),
        ("terminal_reason", "completed"),
    ] {
        let body = format!(
            "heard\nready\n{GOOD} | sed 's/\"is_error\"/\"{key}\":\"{value}\",\"is_error\"/'"
        );
        assert!(Fake::new(&body).ask().is_ok(), "{key} {value}");
    }
}

#[test]
fn mod_03_fewer_tokens_than_the_prompt_needs_are_no_review() {
    let mut few = Fake::new(&format!(
        "heard\nready\n{GOOD} | sed 's/_tokens\":[0-9]*/_tokens\":3/g'"
    ));
    few.chunk = "+a line of the change\n".repeat(50);
    few.fails(Cause::Malformed, "did not read all of it");
    // Uncached, read and created tokens count together; without any, the count is unknown.
    for count in ["0", "40"] {
        let body = format!("heard\nready\n{GOOD} | sed 's/_tokens\":[0-9]*/_tokens\":{count}/g'");
        let mut fake = Fake::new(&body);
        fake.chunk = "+a line of the change\n".repeat(50);
        assert!(fake.ask().is_ok(), "{count}");
    }
    // Of several messages the largest count is used, not the sum.
    let message = |id: &str| {
        format!(
            "echo '{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"m\",\"content\":[],\"usage\":{{\"input_tokens\":60}}}}}}'"
        )
    };
    let body = format!("heard\nready\n{}\n{}\n{GOOD}", message("m1"), message("m2"));
    let mut fake = Fake::new(&body);
    fake.chunk = "+a line of the change\n".repeat(50);
    fake.fails(Cause::Malformed, "counted 60 tokens");
}

#[test]
fn mod_01_paths_of_the_private_folder_become_paths_of_the_change() {
    let repo = Repo::new();
    repo.stage("src/a.rs", "fn main() {}\n");
    let reply =
        r#"result "{\"nonce\":\"$nonce\",\"findings\":[{\"file\":\"$(pwd -P)/src/a.rs\"}]}""#;
    let fake = Fake::new(&format!("heard\nready '{AROUND}'\n{reply}"));
    let answer = looking(&fake, &repo, State::Index).unwrap();
    assert!(
        answer.text.contains(r#""file":"src/a.rs""#),
        "{}",
        answer.text
    );
}
