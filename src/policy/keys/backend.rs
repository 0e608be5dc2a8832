//! The keys of `[backend.NAME]`.

use super::{APIS, EFFORTS, KEY_HEADERS, KINDS, Key, Trust, Weaker};
use crate::policy::kind::Kind;
use crate::policy::value::Value;
use crate::policy::{Api, Backend, BackendKind, Effort, KeyHeader, Price};

/// `[backend.NAME]`.
pub(in crate::policy) static BACKEND: &[Key<Backend>] = &[
    Key {
        name: "kind",
        about: "Protocol of the backend: claude (the Claude Code command line), anthropic, google, or openai (Chat Completions of any compatible server). Required unless the name of the backend is built in.",
        kind: Kind::Choice(KINDS),
        trust: Trust::Open,
        weaker: Weaker::Changes,
        get: |b| b.kind.map_or(Value::Unset, |k| Value::Text(k.name().to_owned())),
        set: |b, v| b.kind = BackendKind::parse(v.text()),
    },
    Key {
        name: "model",
        about: "Model to ask.",
        kind: Kind::Line(256),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::optional(b.model.as_ref()),
        set: |b, v| b.model = v.to_optional(),
    },
    Key {
        name: "path",
        about: "Program of a claude backend: a name on PATH, or an absolute path.",
        kind: Kind::Program,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.path.as_ref()),
        set: |b, v| b.path = v.to_optional(),
    },
    Key {
        name: "base_url",
        about: "URL of the server with the API version, such as https://api.example.com/v1. Without trust, an address of this machine is asked without a key.",
        kind: Kind::Url,
        trust: Trust::OperatorUnlessLoopback,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.base_url.as_ref()),
        set: |b, v| b.base_url = v.to_optional(),
    },
    Key {
        name: "api_key_env",
        about: "Environment variable that contains the key. Unset: the provider's usual variable.",
        kind: Kind::Variable,
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.api_key_env.as_ref()),
        set: |b, v| b.api_key_env = v.to_optional(),
    },
    Key {
        name: "api_key_command",
        about: "Command that prints the key.",
        kind: Kind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| Value::optional(b.api_key_command.as_ref()),
        set: |b, v| b.api_key_command = v.to_optional(),
    },
    Key {
        name: "key_header",
        about: "HTTP header that carries the key: authorization (as a bearer token), api-key (Azure), or x-api-key. Unset: the header of the kind; api-key for a host of azure.com, unless api_key_command prints a token.",
        kind: Kind::Choice(KEY_HEADERS),
        trust: Trust::Operator,
        weaker: Weaker::Changes,
        get: |b| b.key_header.map_or(Value::Unset, |h| Value::Text(h.name().to_owned())),
        set: |b, v| b.key_header = KeyHeader::parse(v.text()),
    },
    Key {
        name: "api",
        about: "API of a backend of kind openai: chat (Chat Completions, the default) or responses (Responses).",
        kind: Kind::Choice(APIS),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| b.api.map_or(Value::Unset, |a| Value::Text(a.name().to_owned())),
        set: |b, v| b.api = Api::parse(v.text()),
    },
    Key {
        name: "api_version",
        about: "Value of the query parameter api-version in every request, as Azure requires.",
        kind: Kind::Line(64),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::optional(b.api_version.as_ref()),
        set: |b, v| b.api_version = v.to_optional(),
    },
    Key {
        name: "max_retries",
        about: "Most retries of a request.",
        kind: Kind::Count(0, 20),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::Count(b.max_retries),
        set: |b, v| b.max_retries = v.count(),
    },
    Key {
        name: "retry_delay",
        about: "Longest pause before the first retry of a request; it doubles with every retry. A server that names a waiting time gets at least that time.",
        kind: Kind::Span(0, 60),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| Value::Span(b.retry_delay),
        set: |b, v| b.retry_delay = v.span(),
    },
    Key {
        name: "timeout",
        about: "Time limit of one question to the backend, with its retries and tool calls. Unset: only review.timeout.",
        kind: Kind::Span(1, 86_400),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| b.timeout.map_or(Value::Unset, Value::Span),
        set: |b, v| b.timeout = Some(v.span()),
    },
    Key {
        name: "effort",
        about: "How much the model reasons before it answers. Unset: the default of the model. More effort allows longer answers.",
        kind: Kind::Choice(EFFORTS),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| b.effort.map_or(Value::Unset, |e| Value::Text(e.name().to_owned())),
        set: |b, v| b.effort = Effort::parse(v.text()),
    },
    Key {
        name: "context_tokens",
        about: "Context size of the model in tokens, prompt and answer together. Unset: the smallest of its kind; 8000 for a server on this machine.",
        kind: Kind::Count(2_000, 4_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| b.context_tokens.map_or(Value::Unset, Value::Count),
        set: |b, v| b.context_tokens = Some(v.count()),
    },
    Key {
        name: "price",
        about: "US dollars per million tokens, used if the provider reports no cost.",
        kind: Kind::Price,
        trust: Trust::Open,
        weaker: Weaker::Never,
        get: |b| {
            b.price.map_or(Value::Unset, |p| {
                let row = |name: &str, n| (name.to_owned(), Value::Number(n));
                Value::Table(vec![row("input", p.input), row("cached", p.cached), row("output", p.output)])
            })
        },
        set: |b, v| {
            let of = |name| v.table().iter().find(|(n, _)| n == name).map_or(0.0, |(_, v)| v.number());
            b.price = Some(Price { input: of("input"), cached: of("cached"), output: of("output") });
        },
    },
];
