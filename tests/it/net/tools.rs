//! Tests of depth thorough over HTTP: the same tools, limits and log in every dialect.

use super::{KINDS, NONCE, block_on, question};
use crate::loopback::{Dialect, Reply, Request, Says, Server};
use crate::support::Repo;
use claude_reviewer::ai::ask::{Cause, Failure, ModelAnswer};
use claude_reviewer::ai::tree::Tree;
use claude_reviewer::env::Env;
use claude_reviewer::git::{self, State};
use claude_reviewer::policy::{Api, BackendKind, RulesPolicy};
use claude_reviewer::rules::RuleSet;
use serde_json::{Value, json};

/// Asks a server that uses tools in a small repository.
pub(super) fn look_around(
    kind: BackendKind,
    api: Option<Api>,
    server: &Server,
) -> Result<ModelAnswer, Failure> {
    let repo = Repo::new();
    repo.stage("src/a.rs", "fn helper() {}\nfn main() { helper(); }\n");
    repo.stage(".env", "PASSWORD=canary-in-a-file\n");
    let env = Env::from_pairs(repo.path(), [("HOME", repo.home())]);
    let opened = git::Repo::open(&repo.path(), &env).unwrap();
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let tree = Tree::new(&opened, State::Index, &rules);
    let question = question(kind, &server.url()).with(|b| b.api = api);
    let (prompt, schema) = (super::prompt(), super::schema());
    let ask = question.as_ask(&prompt, &schema);
    block_on(async { question.backend()?.ask(&ask, Some(&tree)).await })
}

/// Returns the names of the tools in a request.
fn offered(request: &Request) -> Vec<String> {
    let body = request.json();
    let list = match request.dialect() {
        Dialect::Google => body["tools"][0]["functionDeclarations"].clone(),
        _ => body["tools"].clone(),
    };
    let name = |t: &Value| {
        t["name"]
            .as_str()
            .or_else(|| t["function"]["name"].as_str())
            .unwrap()
            .to_owned()
    };
    list.as_array().into_iter().flatten().map(name).collect()
}

/// Returns true if a request may be answered with calls.
fn may_call(request: &Request) -> bool {
    let body = request.json();
    !offered(request).is_empty()
        && body["tool_choice"] != "none"
        && body["tool_choice"]["type"] != "none"
}

#[test]
fn every_dialect_looks_around_with_the_same_tools_and_the_same_log() {
    for kind in KINDS {
        let server = Server::start(|r| match r.number {
            0 => r.calls(&[
                (
                    "read_lines",
                    json!({ "path": "src/a.rs", "first": 1, "last": 1 }),
                ),
                ("search", json!({ "pattern": "helper\\(\\);", "glob": "" })),
            ]),
            1 => r.calls(&[(
                "read_lines",
                json!({ "path": ".env", "first": 1, "last": 9 }),
            )]),
            _ => r.text("{\"done\":true}"),
        });
        let answer = look_around(kind, None, &server).unwrap();
        assert_eq!(answer.text, "{\"done\":true}", "{kind:?}");
        let read: Vec<_> = answer
            .read
            .iter()
            .map(|r| (r.path.to_wire(), r.first.get(), r.last.get()))
            .collect();
        assert_eq!(
            read,
            [("src/a.rs".into(), 1, 1), ("src/a.rs".into(), 2, 2)],
            "{kind:?}"
        );
        assert_eq!(
            (
                answer.usage.requests,
                answer.usage.input_tokens,
                answer.usage.output_tokens
            ),
            (3, 3000, 300)
        );

        let asked = server.questions();
        let all = [
            "read_lines",
            "search",
            "list_files",
            "outline",
            "definition",
            "references",
            "callers",
            "diff_of",
            "history",
        ];
        assert_eq!(offered(&asked[0]), all, "{kind:?}");
        let second = String::from_utf8_lossy(&asked[1].body).into_owned();
        assert!(
            second.contains("fn helper() {}") && second.contains("helper(); }"),
            "{second}"
        );
        assert!(!server.saw("canary-in-a-file"));
        assert_eq!(server.connections(), 1);
        // The model's message is sent back unmodified, including the provider's own fields.
        let body = asked[1].json();
        match kind {
            BackendKind::Anthropic => {
                let call = &body["messages"][1]["content"][0];
                assert_eq!(
                    (&call["type"], &call["id"]),
                    (&json!("tool_use"), &json!("toolu_0_0"))
                );
                assert_eq!(call["input"]["path"], "src/a.rs");
                let results = &body["messages"][2]["content"];
                assert_eq!(results[1]["tool_use_id"], "toolu_0_1");
                assert_eq!(
                    (
                        results[0].get("cache_control"),
                        results[1]["cache_control"]["type"].as_str()
                    ),
                    (None, Some("ephemeral"))
                );
                assert_eq!(
                    body["messages"][0]["content"][1]["cache_control"]["type"],
                    "ephemeral"
                );
            }
            BackendKind::OpenAi => {
                assert_eq!(body["messages"][2]["tool_calls"][1]["id"], "call_0_1");
                assert_eq!(body["messages"][4]["tool_call_id"], "call_0_1");
            }
            _ => {
                let parts = &body["contents"][1]["parts"];
                assert_eq!(
                    (&parts[0]["thought"], &parts[1]["thoughtSignature"]),
                    (&json!(true), &json!("c2ln"))
                );
                assert_eq!(
                    body["contents"][2]["parts"][1]["functionResponse"]["name"],
                    "search"
                );
            }
        }
    }
}

#[test]
fn a_model_that_never_stops_calling_is_made_to_answer() {
    for kind in KINDS {
        let call = |r: &Request| r.calls(&[("list_files", json!({ "glob": "" }))]);
        let server = Server::start(move |r| if may_call(r) { call(r) } else { r.text("{}") });
        let answer = look_around(kind, None, &server).unwrap();
        assert_eq!(answer.text, "{}");
        assert!(
            (3..=30).contains(&answer.usage.requests),
            "{}",
            answer.usage.requests
        );
        let stubborn = Server::start(call);
        let failure = look_around(kind, None, &stubborn).unwrap_err();
        assert_eq!(failure.cause, Cause::Malformed, "{}", failure.message);
        assert_eq!(failure.usage.requests, answer.usage.requests);
        // Many calls at once reach the limit too.
        let flood = Server::start(move |r| match may_call(r) {
            true => r.calls(&vec![("list_files", json!({ "glob": "" })); 500]),
            false => r.text("{}"),
        });
        assert_eq!(look_around(kind, None, &flood).unwrap().usage.requests, 2);
    }
}

#[test]
fn prose_where_the_form_could_not_be_prescribed_is_asked_about_once_more() {
    for kind in [BackendKind::Google, BackendKind::OpenAi] {
        let server = Server::start(|r| match r.number {
            0 => r.text("I have looked at it and would say that"),
            _ => r.text("{\"done\":true}"),
        });
        let answer = look_around(kind, None, &server).unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.usage.requests),
            ("{\"done\":true}", 2)
        );
        let asked = server.questions();
        let prescribed = |r: &Request| {
            let body = r.json();
            !body["response_format"].is_null()
                || !body["generationConfig"]["responseJsonSchema"].is_null()
        };
        assert_eq!(
            (prescribed(&asked[0]), prescribed(&asked[1])),
            (false, true)
        );
        assert!(!may_call(&asked[1]));
        assert!(asked[1].prompt().ends_with(&format!("nonce: {NONCE}")));
    }
}

#[test]
fn calls_may_be_anything() {
    for kind in KINDS {
        let server = Server::start(move |r| {
            if r.number > 0 {
                return r.text("{}");
            }
            let odd = [
                json!(null),
                json!("text"),
                json!([1]),
                json!({ "path": 7 }),
                json!({ "path": "../../etc/passwd", "first": -1, "last": 1e300 }),
            ];
            let calls = odd
                .into_iter()
                .map(|a| ("read_lines".to_owned(), a))
                .chain([
                    ("run_shell".to_owned(), json!({ "command": "id" })),
                    (String::new(), json!({})),
                ]);
            let mut body = r.body_of(&Says {
                calls: calls.collect(),
                ..Says::default()
            });
            if let Some(list) = body["choices"][0]["message"]["tool_calls"].as_array_mut() {
                list[0]["function"]["arguments"] = json!("{not json");
                list[1]["id"] = Value::Null;
            }
            Reply::json(200, &body)
        });
        let answer = look_around(kind, None, &server).unwrap();
        assert_eq!((answer.text.as_str(), answer.read.len()), ("{}", 0));
        if kind == BackendKind::OpenAi {
            let messages = server.questions()[1].json()["messages"].clone();
            assert_eq!(
                messages[2]["tool_calls"][1]["id"],
                messages[4]["tool_call_id"]
            );
        }
    }
}
