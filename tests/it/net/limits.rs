//! Tests of limits and settings of one backend: length of an answer, effort, time, pauses.

use super::question;
use crate::loopback::{Reply, Says, Server};
use crate::support::Repo;
use claude_reviewer::ai::ask::Cause;
use claude_reviewer::policy::{self, BackendKind, Effort};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Returns the output limit and the effort of the only question.
fn sent(kind: BackendKind, change: impl FnOnce(&mut policy::Backend)) -> (Value, Value) {
    let server = Server::start(|r| {
        r.answer(&Says {
            text: "{}".to_owned(),
            ..Says::default()
        })
    });
    question(kind, &server.url()).with(change).ask().unwrap();
    let body = server.questions()[0].json();
    match kind {
        BackendKind::Anthropic => (
            body["max_tokens"].clone(),
            body["output_config"]["effort"].clone(),
        ),
        BackendKind::Google => {
            let config = &body["generationConfig"];
            (
                config["maxOutputTokens"].clone(),
                config["thinkingConfig"].clone(),
            )
        }
        _ => (body["max_tokens"].clone(), body["reasoning_effort"].clone()),
    }
}

#[test]
fn every_server_gets_a_limit_for_the_answer() {
    for (kind, context, limit) in [
        (BackendKind::Anthropic, None, 16_000),
        (BackendKind::Google, None, 16_000),
        (BackendKind::OpenAi, Some(200_000), 16_000),
    ] {
        assert_eq!(
            sent(kind, |b| b.context_tokens = context),
            (json!(limit), Value::Null),
            "{kind:?}"
        );
    }
}

#[test]
fn a_request_and_its_answer_fit_in_the_context() {
    for (kind, configured, context) in [
        // A compatible server on this machine.
        (BackendKind::OpenAi, None, 8_000),
        (BackendKind::OpenAi, Some(6_000), 6_000),
        (BackendKind::OpenAi, Some(12_000), 12_000),
        (BackendKind::Anthropic, Some(8_000), 8_000),
        (BackendKind::Google, Some(8_000), 8_000),
    ] {
        for lines in [1, 100, 500] {
            let server = Server::start(|r| r.review(&[]));
            let name = kind.name();
            let tokens = configured
                .map_or_else(String::new, |tokens| format!("context_tokens = {tokens}\n"));
            let repo = Repo::new();
            let policy = server
                .policy(name)
                .replace("[review]\n", "[review]\nmax_requests = 200\n");
            repo.stage(".claude-reviewer.toml", policy + &tokens);
            repo.stage(
                "src/a.py",
                (0..lines)
                    .map(|i| format!("value_{i} = compute({i})\n"))
                    .collect::<String>(),
            );
            repo.reviewer(&["review", "staged", "--no-save"]).run(0);
            for question in server.questions() {
                let body = question.json();
                let limit = match kind {
                    BackendKind::Google => body["generationConfig"]["maxOutputTokens"].as_u64(),
                    _ => body["max_tokens"].as_u64(),
                };
                let (limit, prompt) = (limit.unwrap(), question.prompt().len() as u64);
                // A token has 3.6 bytes of code or more.
                assert!(
                    limit >= context / 4 && limit + prompt * 10 / 36 <= context,
                    "{name} {limit} {prompt}"
                );
            }
        }
    }
}

#[test]
fn effort_is_sent_in_the_words_of_the_provider_and_allows_longer_answers() {
    let with = |kind, effort, model: &str| {
        let model = Some(model.to_owned());
        sent(kind, |b| {
            *b = policy::Backend {
                effort: Some(effort),
                model,
                context_tokens: Some(900_000),
                ..b.clone()
            }
        })
    };
    let [low, medium, high] = [Effort::Low, Effort::Medium, Effort::High];
    assert_eq!(
        with(BackendKind::Anthropic, low, "m"),
        (json!(16_000), json!("low"))
    );
    assert_eq!(
        with(BackendKind::Anthropic, high, "m"),
        (json!(64_000), json!("high"))
    );
    assert_eq!(
        with(BackendKind::OpenAi, medium, "m"),
        (json!(32_000), json!("medium"))
    );
    assert_eq!(
        with(BackendKind::Google, low, "gemini-2.5-pro"),
        (json!(16_000), json!({ "thinkingBudget": 1_024 }))
    );
    assert_eq!(
        with(BackendKind::Google, high, "gemini-3-pro"),
        (json!(64_000), json!({ "thinkingLevel": "high" }))
    );
}

#[test]
fn a_question_ends_at_the_time_limit_of_its_backend() {
    let server = Server::start(|r| r.review(&[]).after(Duration::from_secs(60)));
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        server.policy("openai") + "timeout = \"1s\"\n",
    );
    repo.stage("src/a.py", "A = 1\n");
    let started = Instant::now();
    let run = repo
        .reviewer(&["review", "staged", "--format", "json", "--timeout", "50s"])
        .run(3);
    // The claim: it is not the time limit of the run, nor the 60 seconds of the server.
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(
        run.stdout.contains("no answer within 1 s"),
        "{}",
        run.stdout
    );
}

#[test]
fn net_05_the_first_pause_before_a_retry_is_the_configured_one() {
    let time = |delay: u64| {
        let server = Server::start(|_| Reply::error(503, "api_error", "sorry"));
        let started = Instant::now();
        let change = |b: &mut policy::Backend| {
            (b.max_retries, b.retry_delay) = (8, Duration::from_millis(delay));
        };
        question(BackendKind::OpenAi, &server.url())
            .with(change)
            .fails(Cause::Unreachable);
        assert_eq!(server.requests().len(), 9);
        started.elapsed()
    };
    // Without the setting, the pauses would be up to 0.5, 1, 2, 4, 8, 16 and 20 seconds.
    assert!(time(0) < Duration::from_secs(8));
}
