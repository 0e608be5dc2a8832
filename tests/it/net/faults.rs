//! Tests of servers that are unreachable, slow, broken or busy.

use super::{Question, block_on, canary, each_kind, question};
use crate::loopback::{Reply, Server, Step, chunk, closed_port, event, events, head};
use crate::support::until;
use claude_reviewer::ai::ask::{Cause, Failure};
use claude_reviewer::policy::BackendKind::{self, Anthropic, Google, OpenAi};
use claude_reviewer::stop::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts a server with a script and asks it.
fn scripted(kind: BackendKind, replies: Vec<Reply>) -> (Server, Question) {
    let server = Server::script(replies);
    let question = question(kind, &server.url());
    (server, question)
}

fn good(kind: BackendKind) -> Value {
    match kind {
        OpenAi => {
            json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": "stop" }] })
        }
        Google => {
            json!({ "candidates": [{ "content": { "parts": [{ "text": "{}" }] }, "finishReason": "STOP" }] })
        }
        _ => json!({
            "content": [{ "type": "text", "text": "{}" }], "stop_reason": "end_turn",
            "usage": { "input_tokens": 100, "output_tokens": 1 },
        }),
    }
}

fn good_reply(kind: BackendKind) -> Reply {
    Reply::json(200, &good(kind))
}

#[test]
fn net_01_a_refused_connection_is_tried_again_and_named() {
    let url = format!("http://127.0.0.1:{}", closed_port());
    let failure = question(OpenAi, &url).fails(Cause::Unreachable);
    assert_eq!(failure.usage.requests, 2);
    assert!(
        failure.message.contains("127.0.0.1") && failure.message.contains("refused"),
        "{}",
        failure.message
    );
}

#[test]
fn net_02_a_rate_limit_is_waited_for() {
    for kind in super::KINDS {
        let limited = Reply::error_with(429, ("retry-after", "1"), "rate_limit_error", "slow down");
        let (server, question) = scripted(kind, vec![limited, good_reply(kind)]);
        let answer = question.ask().unwrap();
        assert_eq!(answer.usage.requests, 2);
        let at: Vec<_> = server.questions().iter().map(|r| r.at).collect();
        assert!(
            at[1] - at[0] >= Duration::from_secs(1),
            "{:?}",
            at[1] - at[0]
        );
    }
}

#[test]
fn net_02_google_says_in_the_body_when_to_come_again() {
    let body = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s" },
    ] } });
    let (server, question) = scripted(Google, vec![Reply::json(429, &body), good_reply(Google)]);
    question.ask().unwrap();
    let at: Vec<_> = server.questions().iter().map(|r| r.at).collect();
    assert!(at[1] - at[0] >= Duration::from_secs(1));
}

#[test]
fn net_02_a_rate_limit_holds_for_every_request_of_the_backend() {
    let server = Server::start(|r| match r.number {
        0 => Reply::error_with(429, ("retry-after", "1"), "rate_limit_error", "slow down"),
        _ => r.text("{}"),
    });
    let question = question(OpenAi, &server.url());
    let (prompt, schema) = (super::prompt(), super::schema());
    let ask = question.as_ask(&prompt, &schema);
    block_on(async {
        let backend = question.backend().unwrap();
        let late = async {
            while server.questions().is_empty() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Nothing outside of the backend shows that it has read the answer, so this gives it
            // time: the server asks for a pause of a second, and the claim is that the second
            // request keeps it too.
            tokio::time::sleep(Duration::from_millis(300)).await;
            backend.ask(&ask, None).await
        };
        let (first, second) = futures_util::future::join(backend.ask(&ask, None), late).await;
        assert!(first.is_ok() && second.is_ok());
    });
    let at: Vec<_> = server.questions().iter().map(|r| r.at).collect();
    assert_eq!(
        at.len(),
        3,
        "the second request was not turned away: it waited"
    );
    assert!(at[1..].iter().all(|t| *t - at[0] >= Duration::from_secs(1)));
}

#[test]
fn net_03_a_limit_beyond_the_deadline_ends_it_at_once() {
    each_kind(
        |_| {
            Reply::error_with(
                429,
                ("retry-after", "3600"),
                "rate_limit_error",
                "slow down",
            )
        },
        |question, server| {
            let started = Instant::now();
            let failure = question.fails(Cause::Refused);
            // The claim: it does not wait for the deadline, nor for the hour.
            assert!(started.elapsed() < Duration::from_secs(5));
            assert_eq!(server.requests().len(), 1);
            assert!(
                failure.message.contains("retry after 3600 s"),
                "{}",
                failure.message
            );
            assert_eq!(failure.retry_after, Some(Duration::from_secs(3600)));
        },
    );
}

#[test]
fn net_04_a_limit_without_an_end_gets_one_request() {
    each_kind(
        |_| Reply::error(429, "rate_limit_error", "too much"),
        |question, server| {
            question.fails(Cause::Refused);
            assert_eq!(server.requests().len(), 1);
        },
    );
}

#[test]
fn net_04_spent_credit_gets_one_request_whatever_the_server_says_of_coming_again() {
    let daily = json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{ "quotaId": "RequestsPerDay" }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1s" },
    ] } });
    let quota =
        json!({ "error": { "message": "You exceeded your quota", "code": "insufficient_quota" } });
    let billing =
        json!({ "type": "error", "error": { "type": "billing_error", "message": "no credit" } });
    for (kind, body) in [(OpenAi, quota), (Anthropic, billing), (Google, daily)] {
        let headers = [("content-type", "application/json"), ("retry-after", "1")];
        let (server, question) = scripted(
            kind,
            vec![Reply::with(429, &headers, body.to_string().as_bytes())],
        );
        let failure = question.fails(Cause::Refused);
        assert_eq!(server.requests().len(), 1);
        assert!(failure.hint.unwrap().contains("credit"), "{kind:?}");
    }
}

#[test]
fn net_05_a_server_in_trouble_is_asked_a_bounded_number_of_times() {
    for (status, kind) in [
        (500, OpenAi),
        (502, Google),
        (503, Anthropic),
        (529, Anthropic),
        (408, OpenAi),
    ] {
        let (server, question) = scripted(kind, vec![Reply::error(status, "api_error", "sorry")]);
        let failure = question
            .with(|b| b.max_retries = 2)
            .fails(Cause::Unreachable);
        assert_eq!(
            (server.requests().len(), failure.usage.requests),
            (3, 3),
            "{status}"
        );
        assert!(
            failure.message.starts_with(&status.to_string()),
            "{}",
            failure.message
        );
        assert_eq!(server.connections(), 1, "the connection is used again");
    }
    let (server, question) = scripted(
        OpenAi,
        vec![Reply::error(503, "x", "Loading model"), good_reply(OpenAi)],
    );
    question.ask().unwrap();
    assert_eq!(server.requests().len(), 2);
    let told = Reply::error_with(
        500,
        ("x-should-retry", "false"),
        "api_error",
        "do not come again",
    );
    let (server, question) = scripted(Anthropic, vec![told]);
    question.fails(Cause::Unreachable);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn net_06_what_the_server_will_not_do_is_asked_once() {
    for kind in super::KINDS {
        for (status, cause) in [
            (400, Cause::Refused),
            (401, Cause::Refused),
            (403, Cause::Refused),
            (404, Cause::Setup),
            (413, Cause::TooLarge),
            (422, Cause::Refused),
        ] {
            let (server, question) = scripted(
                kind,
                vec![Reply::error(status, "some_error", "because of this")],
            );
            let failure = question
                .env(kind.key_variable().unwrap(), &canary())
                .fails(cause);
            assert_eq!(server.requests().len(), 1, "{status}");
            assert!(
                failure.message.starts_with(&status.to_string()),
                "{}",
                failure.message
            );
            assert!(
                failure.message.contains("because of this"),
                "{}",
                failure.message
            );
            assert!(
                failure.hint.is_some() || matches!(status, 400 | 413 | 422),
                "{status}"
            );
        }
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_told_apart_from_other_refusals() {
    let anthropic = json!({ "type": "error", "error": {
        "type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum" } });
    let openai =
        json!({ "error": { "message": "too many tokens", "code": "context_length_exceeded" } });
    let llama = json!({ "error": { "code": 400, "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 4096 } });
    let vllm = json!({ "object": "error", "message": "This model's maximum context length is 8192 tokens", "code": 400 });
    let google = json!({ "error": { "code": 400, "status": "INVALID_ARGUMENT",
        "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048575)." } });
    for (kind, body) in [
        (Anthropic, anthropic),
        (OpenAi, openai),
        (OpenAi, llama),
        (OpenAi, vllm),
        (Google, google),
    ] {
        let (server, question) = scripted(kind, vec![Reply::json(400, &body)]);
        question.fails(Cause::TooLarge);
        assert_eq!(server.requests().len(), 1);
    }
    let credit = json!({ "type": "error", "error": {
        "type": "invalid_request_error", "message": "Your credit balance is too low" } });
    let (_server, question) = scripted(Anthropic, vec![Reply::json(400, &credit)]);
    question.fails(Cause::Refused);
}

#[test]
fn net_07_a_connection_that_breaks_is_no_answer() {
    for kind in super::KINDS {
        let whole = good_reply(kind).bytes();
        let cut = Reply::raw(&whole[..whole.len() - 9]).then(Step::Reset);
        let (server, question) = scripted(kind, vec![cut.clone(), good_reply(kind)]);
        assert_eq!(question.ask().unwrap().usage.requests, 2, "{kind:?}");
        assert_eq!(server.requests().len(), 2);
        let (server, question) = scripted(kind, vec![cut]);
        question.fails(Cause::Unreachable);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn net_07_a_stream_that_breaks_is_no_answer_even_where_its_text_is_whole() {
    let all = events(&good(Anthropic));
    for kept in 0..all.len() {
        for end in [Step::Reset, Step::Close, Step::Send(b"0\r\n\r\n".to_vec())] {
            let mut reply = Reply::raw(Reply::stream_head());
            for e in &all[..kept] {
                reply = reply.then(Step::Send(chunk(&event(e))));
            }
            let (_server, question) = scripted(Anthropic, vec![reply.then(end)]);
            question
                .with(|b| b.max_retries = 0)
                .fails(Cause::Unreachable);
        }
    }
    let (_server, question) = scripted(Anthropic, vec![Reply::events(&all)]);
    assert_eq!(question.ask().unwrap().text, "{}");
}

#[test]
fn net_08_an_answer_that_lacks_its_end_is_no_answer() {
    for kind in super::KINDS {
        let body = good(kind).to_string();
        let short = &body.as_bytes()[..body.len() - 5];
        let typed = ("content-type", "application/json");
        let right_length = Reply::with(200, &[typed], short);
        let length = body.len().to_string();
        let short_of_length = Reply::raw(
            [
                head(200, &[typed, ("content-length", &length)]),
                short.to_vec(),
            ]
            .concat(),
        )
        .then(Step::Close);
        let chunked = [
            head(200, &[typed, ("transfer-encoding", "chunked")]),
            chunk(body.as_bytes()),
        ]
        .concat();
        let no_last_chunk = Reply::raw(chunked).then(Step::Close);
        for (reply, cause) in [
            (right_length, Cause::Malformed),
            (short_of_length, Cause::Unreachable),
            (no_last_chunk, Cause::Unreachable),
        ] {
            let (_server, question) = scripted(kind, vec![reply]);
            question.with(|b| b.max_retries = 0).fails(cause);
        }
    }
}

/// Asks with a short deadline, which must be met and reported as such.
#[track_caller]
fn is_late(kind: BackendKind, reply: Reply) -> Failure {
    let (server, question) = scripted(kind, vec![reply]);
    let started = Instant::now();
    let failure = question
        .within(Duration::from_secs(1))
        .fails(Cause::TimedOut);
    // The claim: the deadline of a second is kept, whatever the server does.
    assert!(
        started.elapsed() < Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(server.requests().len(), 1);
    failure
}

#[test]
fn net_09_the_deadline_ends_a_server_that_drips() {
    let second = Duration::from_secs(1);
    let body = head(
        200,
        &[
            ("content-type", "application/json"),
            ("content-length", "500"),
        ],
    );
    is_late(
        OpenAi,
        Reply::raw(body).then(Step::Repeat(b" ".to_vec(), 500, second)),
    );
    is_late(
        Google,
        Reply::raw("HTTP/1.1 200 OK\r\n").then(Step::Repeat(b"x".to_vec(), 500, second)),
    );
    let ping = chunk(&event(&json!({ "type": "ping" })));
    is_late(
        Anthropic,
        Reply::raw(Reply::stream_head()).then(Step::Repeat(ping, 500, second / 4)),
    );
    let failure = is_late(
        OpenAi,
        Reply::default().then(Step::Wait(Duration::from_secs(60))),
    );
    assert!(
        failure.message.contains("no answer within 1 s"),
        "{}",
        failure.message
    );
}

#[test]
fn net_10_headers_are_bounded() {
    let endless = Reply::raw("HTTP/1.1 200 OK\r\n").then(Step::Repeat(
        b"x-more: 0123456789\r\n".to_vec(),
        1 << 22,
        Duration::ZERO,
    ));
    let many = Reply::raw(
        [
            b"HTTP/1.1 200 OK\r\n".to_vec(),
            b"x: y\r\n".repeat(10_000),
            b"\r\n{}".to_vec(),
        ]
        .concat(),
    );
    let one = Reply::raw("HTTP/1.1 200 OK\r\nx: ").then(Step::Repeat(
        vec![b'x'; 1 << 16],
        1 << 12,
        Duration::ZERO,
    ));
    for reply in [endless, many, one] {
        let (_server, question) = scripted(OpenAi, vec![reply]);
        question
            .with(|b| b.max_retries = 0)
            .fails(Cause::Unreachable);
    }
}

#[test]
fn net_11_a_body_ends_at_its_bound() {
    let typed = ("content-type", "application/json");
    let huge = Reply::raw(head(200, &[typed, ("content-length", "10737418240")]))
        .then(Step::Repeat(vec![b' '; 1 << 20], 10 << 10, Duration::ZERO));
    // 1 GiB of spaces in a megabyte.
    let packed = gzip(&vec![b' '; 64 << 20]);
    let bomb: Vec<u8> = packed.repeat(16);
    let length = bomb.len().to_string();
    let bomb = Reply::raw(
        [
            head(
                200,
                &[
                    typed,
                    ("content-encoding", "gzip"),
                    ("content-length", &length),
                ],
            ),
            bomb,
        ]
        .concat(),
    );
    let stream = Reply::raw(Reply::stream_head()).then(Step::Repeat(
        chunk(&vec![b'x'; 1 << 20]),
        10 << 10,
        Duration::ZERO,
    ));
    for (kind, reply) in [(OpenAi, huge), (Google, bomb), (Anthropic, stream)] {
        let (server, question) = scripted(kind, vec![reply]);
        let failure = question.fails(Cause::Malformed);
        assert!(failure.message.contains("16 MiB"), "{}", failure.message);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn an_answer_may_be_packed() {
    let body = gzip(good(OpenAi).to_string().as_bytes());
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ];
    let (server, question) = scripted(OpenAi, vec![Reply::with(200, &headers, &body)]);
    assert_eq!(question.ask().unwrap().text, "{}");
    assert!(
        server.requests()[0]
            .header("accept-encoding")
            .unwrap()
            .contains("gzip")
    );
}

#[test]
fn net_12_bytes_that_are_no_text_are_no_answer() {
    let typed = [("content-type", "application/json; charset=utf-8")];
    let body = good(OpenAi).to_string();
    let bom = Reply::with(200, &typed, format!("\u{feff}{body}").as_bytes());
    let (_server, question) = scripted(OpenAi, vec![bom]);
    assert_eq!(question.ask().unwrap().text, "{}");
    for bad in [
        &b"\xff\xfe\x00"[..],
        b"{\"choices\": \"\xff\"}",
        b"\x00",
        b"{\"a\":\"\x00\"}",
        b"",
    ] {
        let (_server, question) = scripted(OpenAi, vec![Reply::with(200, &typed, bad)]);
        question.fails(Cause::Malformed);
    }
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    for kind in super::KINDS {
        let (_server, question) = scripted(kind, vec![Reply::with(200, &typed, &deep)]);
        question.fails(Cause::Malformed);
    }
}

#[test]
fn net_13_a_login_page_is_shown_as_what_it_is() {
    let page = format!(
        "<!doctype html>\x1b[2J<title>Log in</title>{}",
        "\u{202e}x".repeat(300)
    );
    for kind in super::KINDS {
        let (server, question) = scripted(
            kind,
            vec![Reply::with(
                200,
                &[("content-type", "text/html")],
                page.as_bytes(),
            )],
        );
        let failure = question.fails(Cause::Malformed);
        assert!(
            failure
                .message
                .contains("not JSON: <!doctype html>\\x1b[2J<title>"),
            "{}",
            failure.message
        );
        assert!(failure.message.chars().count() < 240, "{}", failure.message);
        assert_eq!(server.requests().len(), 1);
    }
}

#[test]
fn net_14_an_overload_inside_of_a_stream_is_tried_again() {
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let mut cut = events(&good(Anthropic));
    cut.truncate(4);
    cut.push(overloaded);
    let (server, question) = scripted(Anthropic, vec![Reply::events(&cut), good_reply(Anthropic)]);
    assert_eq!(question.ask().unwrap().usage.requests, 2);
    assert_eq!(server.requests().len(), 2);
    let (_server, question) = scripted(Anthropic, vec![Reply::events(&cut)]);
    assert!(
        question
            .fails(Cause::Unreachable)
            .message
            .starts_with("529"),
        "as if it had the status"
    );
    // OpenRouter reports an error of the provider behind it in an answer with status 200.
    let inside = json!({ "error": { "code": 502, "message": "provider is down" }, "choices": [] });
    let (server, question) = scripted(OpenAi, vec![Reply::json(200, &inside), good_reply(OpenAi)]);
    question.ask().unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn net_17_a_redirect_is_not_followed() {
    for kind in super::KINDS {
        let other = Server::start(|r| r.text("{}"));
        let location = format!("{}/v1/messages", other.url());
        let server = Server::start(move |_| Reply::with(302, &[("location", &location)], b""));
        let question = question(kind, &server.url()).env(kind.key_variable().unwrap(), &canary());
        question.fails(Cause::Refused);
        assert_eq!((server.requests().len(), other.connections()), (1, 0));
    }
}

#[test]
fn a_run_that_is_stopped_does_not_wait() {
    let hangs = Reply::default().then(Step::Wait(Duration::from_secs(60)));
    let limited = Reply::error_with(429, ("retry-after", "15"), "rate_limit_error", "slow down");
    for reply in [hangs, limited] {
        let (server, question) = scripted(OpenAi, vec![reply]);
        let stop = question.stop.clone();
        let stopped = std::thread::scope(|s| {
            let ctrl_c = s.spawn(|| {
                until("the model is asked", || !server.requests().is_empty());
                let now = Instant::now();
                stop.now(Signal::Interrupt);
                now
            });
            question.fails(Cause::Stopped);
            ctrl_c.join().unwrap()
        });
        // The claim: it ends at once, and not after the pause of 15 seconds.
        assert!(stopped.elapsed() < Duration::from_secs(2));
    }
}

/// Compresses bytes in the format of RFC 1952.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; bytes.len() / 100 + 1024];
    let config = zlib_rs::DeflateConfig {
        window_bits: 31,
        ..zlib_rs::DeflateConfig::default()
    };
    let (packed, code) = zlib_rs::compress_slice(&mut out, bytes, config);
    assert_eq!(code, zlib_rs::ReturnCode::Ok);
    packed.to_vec()
}
