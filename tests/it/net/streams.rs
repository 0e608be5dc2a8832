//! Tests of streamed answers of every dialect, and of the APIs of OpenAI's models other than Chat
//! Completions.

use super::{Question, block_on, canary, question};
use crate::loopback::responses_events;
use crate::loopback::{
    Dialect, Reply, Request, Says, Server, Step, chat_events, chunk, event, events, google_events,
};
use claude_reviewer::ai::ask::{Cause, ModelAnswer};
use claude_reviewer::policy::BackendKind::{self, Anthropic, Google, OpenAi};
use claude_reviewer::policy::{Api, KeyHeader};
use serde_json::{Value, json};

/// The dialects, with a backend for each.
const DIALECTS: [(Dialect, BackendKind, Option<Api>); 4] = [
    (Dialect::Anthropic, Anthropic, None),
    (Dialect::OpenAi, OpenAi, None),
    (Dialect::Responses, OpenAi, Some(Api::Responses)),
    (Dialect::Google, Google, None),
];

/// Returns the events of an answer `{}`.
fn all_events(request: &Request) -> Vec<Value> {
    let body = request.body_of(&Says {
        text: "{}".into(),
        tokens: (900, 300, 70),
        ..Says::default()
    });
    match request.dialect() {
        Dialect::Anthropic => events(&body),
        Dialect::OpenAi => chat_events(&body),
        Dialect::Responses => responses_events(&body),
        Dialect::Google => google_events(&body),
    }
}

fn asked_by(kind: BackendKind, api: Option<Api>, server: &Server) -> Question {
    question(kind, &server.url()).with(|b| b.api = api)
}

/// Starts a server that answers Chat Completions with a stream of these events.
fn chat(events: &[Value]) -> Server {
    let events = events.to_vec();
    Server::start(move |_| Reply::events(&events))
}

fn ask_chat(events: &[Value]) -> ModelAnswer {
    let server = chat(events);
    question(OpenAi, &server.url()).ask().unwrap()
}

fn delta(delta: &Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": delta }] })
}

fn ended(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

#[test]
fn net_07_a_stream_of_any_dialect_that_breaks_is_no_answer() {
    for (dialect, kind, api) in DIALECTS {
        let count = {
            let server = Server::start(|r| Reply::events(&all_events(r)));
            let answer = asked_by(kind, api, &server).ask().unwrap();
            assert_eq!(
                (answer.text.as_str(), answer.model.as_str()),
                ("{}", "stub-1"),
                "{dialect:?}"
            );
            let usage = answer.usage;
            assert_eq!(
                (usage.input_tokens, usage.cached_tokens, usage.output_tokens),
                (900, 300, 70),
                "{dialect:?}"
            );
            all_events(&server.questions()[0]).len()
        };
        for kept in 0..count {
            let server = Server::start(move |r| {
                let all = all_events(r);
                let send = |reply: Reply, e: &Value| reply.then(Step::Send(chunk(&event(e))));
                all[..kept]
                    .iter()
                    .fold(Reply::raw(Reply::stream_head()), send)
                    .then(Step::Reset)
            });
            asked_by(kind, api, &server)
                .with(|b| b.max_retries = 0)
                .fails(Cause::Unreachable);
        }
    }
}

#[test]
fn net_07_a_stream_that_ends_early_is_no_answer() {
    // The usage follows the stop reason.
    let needed = |dialect| if dialect == Dialect::OpenAi { 2 } else { 1 };
    for (dialect, kind, api) in DIALECTS {
        let server = Server::start(move |r| {
            let all = all_events(r);
            Reply::events(&all[..all.len() - needed(dialect) - 1])
        });
        asked_by(kind, api, &server)
            .with(|b| b.max_retries = 0)
            .fails(Cause::Unreachable);
    }
}

#[test]
fn an_error_within_a_stream_is_tried_again_in_every_dialect() {
    for (dialect, kind, api) in DIALECTS {
        let server = Server::start(|r| match r.number {
            0 => {
                let mut events = all_events(r);
                events[1] = match r.dialect() {
                    Dialect::Responses => {
                        json!({ "type": "error", "code": "server_error", "message": "try again" })
                    }
                    _ => json!({ "error": { "type": "overloaded_error", "message": "try again" } }),
                };
                Reply::events(&events)
            }
            _ => r.text("{}"),
        });
        let question = asked_by(kind, api, &server);
        assert_eq!(question.ask().unwrap().usage.requests, 2, "{dialect:?}");
        let once = Server::start(|r| {
            let failed = json!({ "type": "response.failed", "response": { "status": "failed", "output": [],
                "error": { "code": "server_error", "message": "it broke" } } });
            if r.dialect() == Dialect::Responses {
                Reply::events(&[failed])
            } else {
                r.text("{}")
            }
        });
        let outcome = asked_by(kind, api, &once).with(|b| b.max_retries = 0).ask();
        assert_eq!(
            outcome.is_err(),
            dialect == Dialect::Responses,
            "{outcome:?}"
        );
    }
}

#[test]
fn net_20_compatible_servers_stream_in_their_own_ways() {
    let done = json!("[DONE]");
    // Without an end mark; with the usage in the last choice; with the usage so far in every event.
    assert_eq!(
        ask_chat(&[delta(&json!({ "content": "{}" })), ended("stop")]).text,
        "{}"
    );
    assert_eq!(
        ask_chat(&[delta(&json!({ "content": "{}" })), done.clone()]).text,
        "{}"
    );
    let mut last = ended("stop");
    last["usage"] = json!({ "prompt_tokens": 900, "completion_tokens": 7 });
    let answer = ask_chat(&[
        delta(&json!({ "content": "{}" })),
        last.clone(),
        done.clone(),
    ]);
    assert_eq!(
        (answer.usage.input_tokens, answer.usage.output_tokens),
        (900, 7)
    );
    let mut first = delta(&json!({ "content": "{" }));
    first["usage"] = json!({ "prompt_tokens": 900, "completion_tokens": 1 });
    let answer = ask_chat(&[first, delta(&json!({ "content": "}" })), last, done.clone()]);
    assert_eq!(
        (answer.text.as_str(), answer.usage.output_tokens),
        ("{}", 7)
    );
    // Content in parts; a field with reasoning, not output; an empty refusal.
    let parts = json!({ "content": [{ "type": "text", "text": "{}" }], "reasoning_content": "hm", "refusal": null });
    assert_eq!(
        ask_chat(&[delta(&parts), ended("stop"), done.clone()]).text,
        "{}"
    );
    let refused = chat(&[
        delta(&json!({ "refusal": "I can" })),
        delta(&json!({ "refusal": "not" })),
        ended("stop"),
        done,
    ]);
    question(OpenAi, &refused.url()).fails(Cause::Declined);
}

#[test]
fn net_20_a_server_that_refuses_to_stream_is_asked_without_it_from_then_on() {
    for (status, message) in [
        (400, "Unrecognized request argument: stream_options"),
        (422, "stream: extra fields not permitted"),
    ] {
        let server = Server::start(move |r| match r.json()["stream"] == true {
            true => Reply::error(status, "invalid_request_error", message),
            false => r.text("{}"),
        });
        for api in [None, Some(Api::Responses)] {
            let question = asked_by(OpenAi, api, &server).with(|b| b.max_retries = 0);
            let before = server.questions().len();
            let (prompt, schema) = (super::prompt(), super::schema());
            let ask = question.as_ask(&prompt, &schema);
            let backend = question.backend().unwrap();
            let requests = |_: usize| block_on(backend.ask(&ask, None)).unwrap().usage.requests;
            assert_eq!([0, 1].map(requests), [2, 1]);
            let bodies: Vec<Value> = server.questions()[before..]
                .iter()
                .map(Request::json)
                .collect();
            assert_eq!(bodies.iter().filter(|b| b["stream"] == true).count(), 1);
            assert!(
                bodies[1..]
                    .iter()
                    .all(|b| b.get("stream").is_none() && b.get("stream_options").is_none())
            );
        }
    }
    for message in ["model: field required", "upstream rejected the request"] {
        let server = Server::start(move |_| Reply::error(400, "invalid_request_error", message));
        question(OpenAi, &server.url()).fails(Cause::Refused);
        assert_eq!(server.questions().len(), 1, "{message}");
    }
}

#[test]
fn tool_calls_of_a_stream_are_put_together_however_they_are_numbered() {
    let call = |index: Value, id: Value, name: &str, arguments: &str| {
        let mut call = json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": arguments } });
        call.as_object_mut().unwrap().retain(|_, v| !v.is_null());
        delta(&json!({ "tool_calls": [call] }))
    };
    let rest = |index: u64, arguments: &str| {
        delta(
            &json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }),
        )
    };
    let null = || Value::Null;
    let streams = [
        vec![
            call(json!(0), json!("a"), "outline", "{\"pa"),
            rest(0, "th\":\"x\"}"),
            call(json!(1), json!("b"), "search", "{}"),
        ],
        // The same index for all calls, and no index; indexes from 1.
        vec![
            call(json!(0), json!("a"), "outline", "{\"path\":\"x\"}"),
            call(json!(0), json!("b"), "search", "{}"),
        ],
        vec![
            call(null(), json!("a"), "outline", "{\"path\":\"x\"}"),
            call(null(), json!("b"), "search", "{}"),
        ],
        vec![
            call(json!(1), json!("a"), "outline", ""),
            call(json!(2), json!("b"), "search", ""),
            rest(1, "{\"path\":\"x\"}"),
            rest(2, "{}"),
        ],
    ];
    for mut stream in streams {
        stream.push(ended("tool_calls"));
        let server = Server::start(move |r| {
            if r.number == 0 {
                Reply::events(&stream)
            } else {
                r.text("{\"done\":true}")
            }
        });
        super::tools::look_around(OpenAi, None, &server).unwrap();
        let body = server.questions()[1].json();
        let said = &body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .find(|m| m["role"] == "assistant")
            .unwrap();
        let calls: Vec<_> = said["tool_calls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| {
                (
                    c["id"].as_str().unwrap(),
                    c["function"]["name"].as_str().unwrap(),
                    c["function"]["arguments"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            calls,
            [("a", "outline", "{\"path\":\"x\"}"), ("b", "search", "{}")]
        );
        assert!(said["tool_calls"][0].get("index").is_none());
    }
}

#[test]
fn responses_gets_the_whole_conversation_and_no_ids() {
    let server = Server::start(|r| match r.number {
        0 => r.calls(&[(
            "read_lines",
            json!({ "path": "src/a.rs", "first": 1, "last": 1 }),
        )]),
        _ => r.text("{\"done\":true}"),
    });
    super::tools::look_around(OpenAi, Some(Api::Responses), &server).unwrap();
    let asked = server.questions();
    let (first, second) = (asked[0].json(), asked[1].json());
    assert!(asked.iter().all(|r| r.path.ends_with("/v1/responses")));
    assert_eq!(
        (&first["store"], &first["stream"], &first["tool_choice"]),
        (&json!(false), &json!(true), &json!("auto"))
    );
    assert!(first["max_output_tokens"].is_u64());
    let input = second["input"].as_array().unwrap();
    assert_eq!(input[0], first["input"][0]);
    assert_eq!(
        (&input[1]["type"], &input[1]["call_id"]),
        (&json!("function_call"), &json!("call_0_0"))
    );
    assert_eq!(
        (&input[2]["type"], &input[2]["call_id"]),
        (&json!("function_call_output"), &json!("call_0_0"))
    );
    assert!(
        input.iter().all(|item| item.get("id").is_none()),
        "{input:?}"
    );
    let plain = Server::start(|r| r.text("{}"));
    asked_by(OpenAi, Some(Api::Responses), &plain)
        .ask()
        .unwrap();
    let body = plain.questions()[0].json();
    assert_eq!(
        (
            &body["text"]["format"]["type"],
            &body["text"]["format"]["strict"]
        ),
        (&json!("json_schema"), &json!(true))
    );
    assert!(body.get("include").is_none() && body.get("reasoning").is_none());
}

#[test]
fn responses_keeps_what_a_model_thought_where_it_is_sent() {
    let thought = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b3BhcXVl" });
    let call = json!({ "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "outline", "arguments": "{\"path\":\"src/a.rs\"}" });
    let body = json!({ "status": "completed", "output": [thought, call] });
    let server = Server::start(move |r| {
        if r.number == 0 {
            Reply::events(&responses_events(&body))
        } else {
            r.text("{\"done\":true}")
        }
    });
    super::tools::look_around(OpenAi, Some(Api::Responses), &server).unwrap();
    let input = server.questions()[1].json()["input"].clone();
    assert_eq!(
        (&input[1]["encrypted_content"], &input[2]["call_id"]),
        (&json!("b3BhcXVl"), &json!("c1"))
    );
}

#[test]
fn net_15_an_answer_of_responses_that_is_not_complete_is_a_failure() {
    for (stop, cause) in [
        ("max_output_tokens", Cause::CutOff),
        ("content_filter", Cause::Declined),
        ("new", Cause::Malformed),
    ] {
        let says = Says {
            text: "{}".into(),
            stop: Some(stop.to_owned()),
            ..Says::default()
        };
        let server = Server::start(move |r| r.answer(&says));
        let failure = asked_by(OpenAi, Some(Api::Responses), &server).fails(cause);
        assert_eq!(
            (server.requests().len(), failure.usage.output_tokens),
            (1, 100),
            "{stop}: it was paid for"
        );
    }
    let refused = json!({ "status": "completed", "output": [
        { "type": "message", "content": [{ "type": "refusal", "refusal": "I cannot help" }] },
    ] });
    let server = Server::start(move |_| Reply::json(200, &refused));
    asked_by(OpenAi, Some(Api::Responses), &server).fails(Cause::Declined);
}

#[test]
fn a_key_goes_into_the_header_that_the_policy_names() {
    for (header, expected) in [
        (None, ("authorization", format!("Bearer {}", canary()))),
        (
            Some(KeyHeader::Authorization),
            ("authorization", format!("Bearer {}", canary())),
        ),
        (Some(KeyHeader::ApiKey), ("api-key", canary())),
        (Some(KeyHeader::XApiKey), ("x-api-key", canary())),
    ] {
        let server = Server::start(|r| r.text("{}"));
        let question = question(OpenAi, &server.url())
            .env("AZURE_KEY", &canary())
            .with(|b| {
                b.api_key_env = Some("AZURE_KEY".to_owned());
                b.key_header = header;
                b.api_version = Some("2024-10-21".to_owned());
            });
        question.ask().unwrap();
        let asked = &server.questions()[0];
        assert_eq!(
            asked.header(expected.0),
            Some(expected.1.as_str()),
            "{header:?}"
        );
        let others = ["authorization", "api-key", "x-api-key"]
            .into_iter()
            .filter(|h| *h != expected.0);
        assert!(
            others.clone().all(|h| asked.header(h).is_none()),
            "{header:?}"
        );
        assert!(
            asked
                .path
                .ends_with("/chat/completions?api-version=2024-10-21"),
            "{}",
            asked.path
        );
    }
}

#[test]
fn azure_deployments_are_asked_below_their_address() {
    let server = Server::start(|r| r.text("{}"));
    let url = format!("{}/openai/deployments/reviewer", server.url());
    let question =
        question(OpenAi, &url).with(|b| b.api_version = Some("2025-04-01-preview".to_owned()));
    question.ask().unwrap();
    let path = server.questions()[0].path.clone();
    assert_eq!(
        path,
        "/openai/deployments/reviewer/chat/completions?api-version=2025-04-01-preview"
    );
}
