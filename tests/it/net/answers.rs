//! Tests of unusual answers: stop reasons, formats, counts, lists of models.

use super::{KINDS, NONCE, Question, each_kind, question};
use crate::loopback::{Reply, Says, Server};
use claude_reviewer::ai::ask::{Cause, Repair};
use claude_reviewer::policy::BackendKind::{self, Anthropic, Google, OpenAi};
use serde_json::{Value, json};

fn answered(kind: BackendKind, body: &Value) -> Question {
    let body = body.clone();
    let server = Server::start(move |_| Reply::json(200, &body));
    let question = question(kind, &server.url());
    // The server lives as long as the test program, because a question outlives this function.
    std::mem::forget(server);
    question
}

#[test]
fn net_15_every_other_end_than_the_normal_one_is_a_failure() {
    for (kind, stop, cause) in [
        (Anthropic, "max_tokens", Cause::CutOff),
        (Anthropic, "refusal", Cause::Declined),
        (Anthropic, "model_context_window_exceeded", Cause::TooLarge),
        (Anthropic, "pause_turn", Cause::Malformed),
        (Anthropic, "something_new", Cause::Malformed),
        (OpenAi, "length", Cause::CutOff),
        (OpenAi, "content_filter", Cause::Declined),
        (OpenAi, "something_new", Cause::Malformed),
        (Google, "MAX_TOKENS", Cause::CutOff),
        (Google, "SAFETY", Cause::Declined),
        (Google, "RECITATION", Cause::Declined),
        (Google, "PROHIBITED_CONTENT", Cause::Declined),
        (Google, "MALFORMED_FUNCTION_CALL", Cause::Malformed),
        (Google, "OTHER", Cause::Malformed),
    ] {
        let says = Says {
            text: "{}".into(),
            stop: Some(stop.to_owned()),
            ..Says::default()
        };
        let server = Server::start(move |r| r.answer(&says));
        let failure = question(kind, &server.url()).fails(cause);
        assert_eq!(server.requests().len(), 1, "{stop}");
        assert_eq!(
            (failure.usage.input_tokens, failure.usage.output_tokens),
            (1000, 100),
            "{stop}: it was paid for"
        );
    }
}

#[test]
fn net_15_a_refusal_is_one_however_it_is_said() {
    let refusal = json!({ "choices": [{ "message": { "content": "{}", "refusal": "I cannot help" }, "finish_reason": "stop" }] });
    answered(OpenAi, &refusal).fails(Cause::Declined);
    let blocked = json!({ "promptFeedback": { "blockReason": "PROHIBITED_CONTENT" }, "usageMetadata": { "promptTokenCount": 7 } });
    let failure = answered(Google, &blocked).fails(Cause::Declined);
    assert!(
        failure.message.contains("PROHIBITED_CONTENT"),
        "{}",
        failure.message
    );
    assert_eq!(failure.usage.input_tokens, 7);
}

#[test]
fn an_answer_without_a_text_is_none() {
    each_kind(
        |r| r.text(" \n"),
        |question, _| drop(question.fails(Cause::Malformed)),
    );
    for kind in KINDS {
        for body in [
            json!({}),
            json!([]),
            json!("text"),
            json!({ "choices": [], "content": "x", "candidates": 7 }),
            json!({ "choices": [{}], "content": [7, null, { "type": "text" }], "candidates": [{}] }),
            json!({ "choices": [{ "message": 7 }], "content": [], "candidates": [7] }),
        ] {
            answered(kind, &body).fails(Cause::Malformed);
        }
    }
}

#[test]
fn a_stream_may_hold_anything_without_doing_harm() {
    let odd = [
        json!({ "type": "message_start", "message": "text" }),
        json!({ "type": "message_start", "message": { "content": "x", "usage": 7 } }),
        json!({ "type": "message_start" }),
        json!({ "type": "content_block_start", "index": 0, "content_block": "x" }),
        json!({ "type": "content_block_start", "index": 1u64 << 60, "content_block": {} }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": 7 } }),
        json!({ "type": "content_block_delta", "index": -1, "delta": 7 }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "usage": { "output_tokens": "many" } }),
        json!({ "type": "message_delta", "usage": 7, "delta": [] }),
        json!({ "type": 7 }),
        json!([1, 2]),
        json!("text"),
        json!(null),
    ];
    for i in 0..odd.len() {
        for j in 0..odd.len() {
            let events = [
                odd[i].clone(),
                odd[j].clone(),
                odd[(i + j) % odd.len()].clone(),
                json!({ "type": "message_stop" }),
            ];
            let server = Server::start(move |_| Reply::events(&events));
            let question = question(Anthropic, &server.url()).with(|b| b.max_retries = 0);
            assert!(question.ask().is_err(), "{i} {j}");
        }
    }
}

#[test]
fn net_20_a_compatible_server_may_leave_out_and_add() {
    let message = |content: Value| json!({ "choices": [{ "message": { "content": content }, "finish_reason": "stop" }], "timings": { "x": 1 } });
    let answer = answered(OpenAi, &message(json!("{\"a\":1}")))
        .ask()
        .unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.model.as_str()),
        ("{\"a\":1}", "stub")
    );
    assert_eq!((answer.usage.requests, answer.usage.input_tokens), (1, 0));
    let parts = json!([{ "type": "reasoning", "text": "hm" }, { "type": "text", "text": "{\"a\"" }, { "type": "text", "text": ":1}" }]);
    assert_eq!(
        answered(OpenAi, &message(parts)).ask().unwrap().text,
        "{\"a\":1}"
    );
    let no_reason = json!({ "choices": [{ "message": { "content": "{}" } }], "usage": null });
    assert_eq!(answered(OpenAi, &no_reason).ask().unwrap().text, "{}");
    let calls = json!({ "choices": [{ "message": { "content": null, "tool_calls": [
        { "function": { "name": "review", "arguments": "{}" } },
    ] }, "finish_reason": "tool_calls" }] });
    let failure = answered(OpenAi, &calls).fails(Cause::Malformed);
    assert!(failure.message.contains("tool"), "{}", failure.message);
    let paid = json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": "stop" }], "usage": { "cost": 0.25 } });
    assert_eq!(
        answered(OpenAi, &paid).ask().unwrap().usage.cost_usd,
        Some(0.25)
    );
    let as_text = json!({ "error": "model \"stub\" not found, try pulling it first" });
    let server = Server::start(move |_| Reply::json(404, &as_text));
    let failure = question(OpenAi, &server.url()).fails(Cause::Setup);
    assert!(
        failure.message.contains("try pulling it first"),
        "{}",
        failure.message
    );
}

#[test]
fn net_20_a_server_that_drops_a_part_of_the_prompt_is_noticed() {
    let server = Server::start(|r| {
        r.answer(&Says {
            text: "{}".into(),
            tokens: (4096, 0, 10),
            ..Says::default()
        })
    });
    let question = question(OpenAi, &server.url());
    question
        .ask()
        .expect("4,096 tokens are plausible for a short prompt");
    let failure = question
        .with_chunk(&"let x = 1;\n".repeat(2000))
        .fails(Cause::TooLarge);
    assert!(failure.hint.unwrap().contains("context"));
}

#[test]
fn anthropic_is_asked_with_marks_for_its_cache() {
    let server = Server::start(|r| r.text("{}"));
    question(Anthropic, &server.url()).ask().unwrap();
    let body = server.questions()[0].json();
    assert_eq!(body["stream"], true);
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    let content = body["messages"][0]["content"].as_array().unwrap();
    let marked: Vec<_> = content
        .iter()
        .map(|b| b.get("cache_control").is_some())
        .collect();
    assert_eq!(
        marked,
        [true, false, false],
        "the context, which all requests share"
    );
    assert!(server.questions()[0].header("anthropic-version").is_some());
}

#[test]
fn a_repair_shows_the_reply_and_what_is_wrong_with_it() {
    let repair = Repair {
        reply: "Looks good to me!".into(),
        problem: "it is no JSON document".into(),
    };
    for kind in KINDS {
        let server = Server::start(|r| r.text("{}"));
        let mut question = question(kind, &server.url());
        question.repair = Some(repair.clone());
        question.ask().unwrap();
        let request = &server.questions()[0];
        let body = request.json();
        let (list, role) = match kind {
            Google => (&body["contents"], "model"),
            _ => (&body["messages"], "assistant"),
        };
        let roles: Vec<_> = list
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|m| m["role"].as_str())
            .collect();
        assert_eq!(
            roles.iter().filter(|r| **r != "system").collect::<Vec<_>>(),
            [&"user", &role, &"user"]
        );
        let prompt = request.prompt();
        assert!(
            prompt.contains("Looks good to me!") && prompt.contains("it is no JSON document"),
            "{prompt}"
        );
        assert!(prompt.ends_with(&format!("nonce: {NONCE}")), "{prompt}");
    }
}

/// Starts a server that lists these models, and answers.
fn with_models(models: &'static [&'static str]) -> Server {
    Server::start(move |r| {
        if r.method == "POST" {
            return r.text("{}");
        }
        let data: Vec<_> = models.iter().map(|m| json!({ "id": m })).collect();
        let google: Vec<_> = models
            .iter()
            .map(|m| json!({ "name": format!("models/{m}"), "supportedGenerationMethods": ["generateContent"] }))
            .chain([json!({ "name": "models/embedding", "supportedGenerationMethods": ["embedContent"] })])
            .collect();
        Reply::json(200, &json!({ "data": data, "models": google }))
    })
}

#[test]
fn without_a_model_the_only_one_is_asked_or_the_newest_of_an_ordered_list() {
    for (kind, models, expected) in [
        (
            Anthropic,
            &["claude-newest", "claude-older"][..],
            Some("claude-newest"),
        ),
        (OpenAi, &["local"], Some("local")),
        (Google, &["gemini"], Some("gemini")),
        (OpenAi, &["a", "b"], None),
        (Google, &["a", "b"], None),
        (Anthropic, &[], None),
    ] {
        let server = with_models(models);
        let question = question(kind, &server.url()).with(|b| b.model = None);
        match expected {
            Some(model) => {
                assert_eq!(question.ask().unwrap().usage.requests, 1);
                let asked = &server.questions()[0];
                let named = asked.json()["model"].as_str().map(str::to_owned);
                let named = named.unwrap_or_else(|| asked.path.clone());
                assert!(named.contains(model), "{named}");
            }
            None => {
                let failure = question.fails(Cause::Setup);
                assert!(
                    failure
                        .hint
                        .unwrap()
                        .contains(&format!("model in [backend.{}]", kind.name()))
                );
                assert!(
                    models.iter().all(|m| failure.message.contains(m)),
                    "{}",
                    failure.message
                );
                assert_eq!(server.questions().len(), 0);
            }
        }
    }
}

#[test]
fn the_list_of_models_is_asked_for_once() {
    let server = with_models(&["only"]);
    let question = question(OpenAi, &server.url()).with(|b| b.model = None);
    let (prompt, schema) = (super::prompt(), super::schema());
    let ask = question.as_ask(&prompt, &schema);
    super::block_on(async {
        let backend = question.backend().unwrap();
        assert_eq!(backend.model(), None);
        let both =
            futures_util::future::join(backend.ask(&ask, None), backend.ask(&ask, None)).await;
        assert!(both.0.is_ok() && both.1.is_ok());
        assert_eq!(
            (backend.model(), backend.models().await.unwrap()),
            (Some("only"), vec!["only".to_owned()])
        );
    });
    let lists = server
        .requests()
        .iter()
        .filter(|r| r.method == "GET")
        .count();
    assert_eq!(lists, 2, "one to choose, one that was asked for");
}
