//! Tests of a backend over HTTP, with and without errors: rows NET-01 to NET-21.

mod answers;
mod beside;
mod faults;
mod limits;
mod run;
mod secure;
mod streams;
mod tools;

use crate::loopback::{KINDS, Reply, Request, Says, Server};
use claude_reviewer::ai::ask::{
    Ask, Cause, Failure, Manifest, ModelAnswer, Nonce, Prompt, Repair, Schema,
};
use claude_reviewer::ai::backend::{Backend, Pool};
use claude_reviewer::ai::quota::Quota;
use claude_reviewer::env::Env;
use claude_reviewer::policy::{self, BackendKind};
use claude_reviewer::stop::Stop;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NONCE: &str = "000102030405060708090a0b0c0d0e0f";
/// Assembled here, so that the sources contain no text in the form of a key.
fn canary() -> String {
    format!("{}-{}", "canary", "7f3d9a2b5c8e1f4a6b0d")
}

/// The settings of a question.
struct Question {
    policy: policy::Backend,
    env: Vec<(String, String)>,
    time: Duration,
    stop: Stop,
    repair: Option<Repair>,
    chunk: String,
    quota: Quota<'static>,
}

fn question(kind: BackendKind, url: &str) -> Question {
    Question {
        policy: policy::Backend {
            name: kind.name().to_owned(),
            kind: Some(kind),
            model: Some("stub".to_owned()),
            path: None,
            base_url: Some(url.to_owned()),
            api_key_env: None,
            api_key_command: None,
            key_header: None,
            api: None,
            api_version: None,
            max_retries: 1,
            retry_delay: Duration::from_millis(500),
            timeout: None,
            effort: None,
            context_tokens: None,
            price: None,
            keyless: false,
            withheld: None,
        },
        env: Vec::new(),
        time: Duration::from_secs(20),
        stop: Stop::default(),
        repair: None,
        quota: Quota::unlimited(),
        chunk: "file: a.rs\n1 +let x = 1;".to_owned(),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

fn prompt() -> Prompt {
    Prompt {
        system: "You review changes.",
        context: "# CLAUDE.md\nBe brief.".to_owned(),
        manifest: Manifest::default(),
        chunk: "file: a.rs\n1 +let x = 1;".to_owned(),
        task: format!("Review it.\nnonce: {NONCE}"),
        nonce: Nonce::new(std::array::from_fn(|i| u8::try_from(i).unwrap())),
    }
}

fn schema() -> Schema {
    let value = json!({
        "type": "object", "additionalProperties": false, "required": ["nonce", "line"],
        "properties": { "nonce": { "type": "string" }, "line": { "type": ["integer", "null"], "minimum": 1 } },
    });
    Schema {
        name: "review",
        value,
    }
}

impl Question {
    fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn with(mut self, change: impl FnOnce(&mut policy::Backend)) -> Self {
        change(&mut self.policy);
        self
    }

    fn with_chunk(mut self, chunk: &str) -> Self {
        self.chunk = chunk.to_owned();
        self
    }

    fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    fn backend(&self) -> Result<Backend, Failure> {
        let env = Env::from_pairs(PathBuf::from("/"), self.env.clone());
        Backend::open(&self.policy, &env, None, &Pool::default())
    }

    fn as_ask<'a>(&'a self, prompt: &'a Prompt, schema: &'a Schema) -> Ask<'a> {
        let deadline = Instant::now() + self.time;
        Ask {
            prompt,
            schema,
            repair: self.repair.as_ref(),
            deadline,
            patience: deadline,
            budget_usd: None,
            quota: &self.quota,
            stop: &self.stop,
            begun: None,
            batch: None,
        }
    }

    fn ask(&self) -> Result<ModelAnswer, Failure> {
        let (prompt, schema) = (
            Prompt {
                chunk: self.chunk.clone(),
                ..prompt()
            },
            schema(),
        );
        let ask = self.as_ask(&prompt, &schema);
        block_on(async { self.backend()?.ask(&ask, None).await })
    }

    /// Asks a server that must fail, and returns the reason.
    #[track_caller]
    fn fails(&self, cause: Cause) -> Failure {
        let failure = self.ask().unwrap_err();
        assert_eq!(failure.cause, cause, "{}", failure.message);
        let shown = format!(
            "{} {}",
            failure.message,
            failure.hint.as_deref().unwrap_or_default()
        );
        assert!(!shown.contains(&canary()), "{shown}");
        assert!(
            shown.chars().all(|c| !c.is_control()) && shown.chars().count() < 500,
            "{shown}"
        );
        failure
    }
}

/// Asks every kind of backend, each with its own server.
fn each_kind(
    reply: impl Fn(&Request) -> Reply + Copy + Send + Sync + 'static,
    check: impl Fn(&Question, &Server),
) {
    for kind in KINDS {
        let server = Server::start(reply);
        check(&question(kind, &server.url()), &server);
    }
}

#[test]
fn every_dialect_asks_and_is_answered() {
    let says = |r: &Request| {
        r.answer(&Says {
            text: "{\"a\":\"\u{e9}\"}".into(),
            tokens: (900, 300, 70),
            ..Says::default()
        })
    };
    each_kind(says, |question, server| {
        let answer = question.ask().unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.model.as_str()),
            ("{\"a\":\"\u{e9}\"}", "stub-1")
        );
        let u = answer.usage;
        assert_eq!(
            (u.requests, u.input_tokens, u.cached_tokens, u.output_tokens),
            (1, 900, 300, 70)
        );
        let request = &server.questions()[0];
        let asked = request.prompt();
        for part in [
            "You review changes.",
            "Be brief.",
            "let x = 1;",
            "Review it.",
        ] {
            assert!(asked.contains(part), "{asked}");
        }
        assert_eq!(request.nonce(), NONCE);
        assert!(asked.ends_with(NONCE), "the nonce is last: {asked}");
    });
}

#[test]
fn the_form_of_the_answer_is_prescribed_in_each_dialect() {
    each_kind(
        |r| r.text("{}"),
        |question, server| {
            question.ask().unwrap();
            let body = server.questions()[0].json();
            let (schema, line) = match question.policy.kind.unwrap() {
                BackendKind::Anthropic => (
                    body["output_config"]["format"]["schema"].clone(),
                    json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] }),
                ),
                BackendKind::OpenAi => {
                    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
                    assert_eq!(body["response_format"]["json_schema"]["name"], "review");
                    let line = json!({ "type": ["integer", "null"], "minimum": 1 });
                    (
                        body["response_format"]["json_schema"]["schema"].clone(),
                        line,
                    )
                }
                _ => {
                    assert_eq!(
                        body["generationConfig"]["responseMimeType"],
                        "application/json"
                    );
                    let line = json!({ "type": ["integer", "null"], "minimum": 1 });
                    (body["generationConfig"]["responseJsonSchema"].clone(), line)
                }
            };
            assert_eq!(
                (
                    &schema["additionalProperties"],
                    &schema["properties"]["line"]
                ),
                (&json!(false), &line)
            );
        },
    );
}
