//! The keys of `[backend.NAME]`.

use super::{PolicyKey, ReceiptBinding, Trust, Weaker};
use crate::policy::kind::ValueKind;
use crate::policy::value::PolicyValue;
use crate::policy::{Api, Backend, BackendKind, Effort, KeyHeader, Price};

const APIS: &[&str] = &["chat", "responses"];
const KEY_HEADERS: &[&str] = &["authorization", "api-key", "x-api-key"];
const EFFORTS: &[&str] = &["low", "medium", "high"];

/// `[backend.NAME]`.
pub(in crate::policy) static BACKEND: &[PolicyKey<Backend>] = &[
    PolicyKey {
        name: "kind",
        about: "Protocol of the backend: that of the built-in backend of the same name. A compatible server of another provider has the kind openai (Chat Completions). Required unless the name of the backend is built in.",
        kind: ValueKind::Choice(&BackendKind::NAMES),
        trust: Trust::Open,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Bound,
        get: |b| {
            b.kind.map_or(PolicyValue::Unset, |k| {
                PolicyValue::Text(k.name().to_owned())
            })
        },
        set: |b, v| b.kind = BackendKind::parse(v.text()),
    },
    PolicyKey {
        name: "model",
        about: "Model to ask.",
        kind: ValueKind::Line(256),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |b| PolicyValue::optional(b.model.as_ref()),
        set: |b, v| b.model = v.to_optional(),
    },
    PolicyKey {
        name: "path",
        about: "Program of a claude backend: a name on PATH, or an absolute path.",
        kind: ValueKind::Program,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |b| PolicyValue::optional(b.path.as_ref()),
        set: |b, v| b.path = v.to_optional(),
    },
    PolicyKey {
        name: "base_url",
        about: "URL of the server with the API version, such as https://api.example.com/v1. Without trust, an address of this machine is asked without a key.",
        kind: ValueKind::Url,
        trust: Trust::OperatorUnlessLoopback,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |b| PolicyValue::optional(b.base_url.as_ref()),
        set: |b, v| b.base_url = v.to_optional(),
    },
    PolicyKey {
        name: "api_key_env",
        about: "Environment variable that contains the key. Unset: the provider's usual variable.",
        kind: ValueKind::Variable,
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |b| PolicyValue::optional(b.api_key_env.as_ref()),
        set: |b, v| b.api_key_env = v.to_optional(),
    },
    PolicyKey {
        name: "api_key_command",
        about: "Command that prints the key.",
        kind: ValueKind::Line(4096),
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |b| PolicyValue::optional(b.api_key_command.as_ref()),
        set: |b, v| b.api_key_command = v.to_optional(),
    },
    PolicyKey {
        name: "key_header",
        about: "HTTP header that carries the key: authorization (as a bearer token), api-key (Azure), or x-api-key. Unset: the header of the kind; api-key for a host of azure.com, unless api_key_command prints a token.",
        kind: ValueKind::Choice(KEY_HEADERS),
        trust: Trust::Operator,
        weaker: Weaker::Different,
        receipt: ReceiptBinding::Unbound,
        get: |b| {
            b.key_header.map_or(PolicyValue::Unset, |h| {
                PolicyValue::Text(h.name().to_owned())
            })
        },
        set: |b, v| b.key_header = KeyHeader::parse(v.text()),
    },
    PolicyKey {
        name: "api",
        about: "API of a backend of kind openai: chat (Chat Completions, the default) or responses (Responses).",
        kind: ValueKind::Choice(APIS),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |b| {
            b.api.map_or(PolicyValue::Unset, |a| {
                PolicyValue::Text(a.name().to_owned())
            })
        },
        set: |b, v| b.api = Api::parse(v.text()),
    },
    PolicyKey {
        name: "api_version",
        about: "Value of the query parameter api-version in every request, as Azure requires.",
        kind: ValueKind::Line(64),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |b| PolicyValue::optional(b.api_version.as_ref()),
        set: |b, v| b.api_version = v.to_optional(),
    },
    PolicyKey {
        name: "max_retries",
        about: "Most retries of a request.",
        kind: ValueKind::Count(0, 20),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |b| PolicyValue::Count(b.max_retries),
        set: |b, v| b.max_retries = v.count(),
    },
    PolicyKey {
        name: "retry_delay",
        about: "Longest pause before the first retry of a request; it doubles with every retry. A server that names a waiting time gets at least that time.",
        kind: ValueKind::Span(0, 60),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |b| PolicyValue::Span(b.retry_delay),
        set: |b, v| b.retry_delay = v.span(),
    },
    PolicyKey {
        name: "timeout",
        about: "Time limit of one question to the backend, with its retries and tool calls. Unset: only review.timeout.",
        kind: ValueKind::Span(1, 86_400),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |b| b.timeout.map_or(PolicyValue::Unset, PolicyValue::Span),
        set: |b, v| b.timeout = Some(v.span()),
    },
    PolicyKey {
        name: "effort",
        about: "How much the model reasons before it answers. Unset: the default of the model. More effort allows longer answers.",
        kind: ValueKind::Choice(EFFORTS),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Bound,
        get: |b| {
            b.effort.map_or(PolicyValue::Unset, |e| {
                PolicyValue::Text(e.name().to_owned())
            })
        },
        set: |b, v| b.effort = Effort::parse(v.text()),
    },
    PolicyKey {
        name: "context_tokens",
        about: "Context size of the model in tokens, prompt and answer together. Unset: the smallest of its kind; 8000 for a server on this machine.",
        kind: ValueKind::Count(2_000, 4_000_000),
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |b| {
            b.context_tokens
                .map_or(PolicyValue::Unset, PolicyValue::Count)
        },
        set: |b, v| b.context_tokens = Some(v.count()),
    },
    PolicyKey {
        name: "price",
        about: "US dollars per million tokens, used if the provider reports no cost.",
        kind: ValueKind::Price,
        trust: Trust::Open,
        weaker: Weaker::Never,
        receipt: ReceiptBinding::Limit,
        get: |b| b.price.map_or(PolicyValue::Unset, table_of_price),
        set: |b, v| b.price = Some(price_of(v)),
    },
];

/// Returns true if a key of `[backend.NAME]` is valid for a kind of backend.
pub(in crate::policy) fn is_valid_for(key: &str, kind: BackendKind) -> bool {
    match key {
        "path" => kind == BackendKind::Claude,
        "base_url" | "api_key_env" | "api_key_command" | "key_header" => {
            kind != BackendKind::Claude
        }
        "api" | "api_version" => kind == BackendKind::OpenAi,
        _ => true,
    }
}

/// Returns a price as a table.
fn table_of_price(price: Price) -> PolicyValue {
    let rows = [
        ("input", price.input),
        ("cached", price.cached),
        ("output", price.output),
    ];
    PolicyValue::Table(
        rows.map(|(name, usd)| (name.to_owned(), PolicyValue::Number(usd)))
            .into(),
    )
}

/// Returns the price of a table, in which missing rows are 0.
fn price_of(table: &PolicyValue) -> Price {
    let [input, cached, output] =
        ["input", "cached", "output"].map(|name| table.row(name).map_or(0.0, PolicyValue::number));
    Price {
        input,
        cached,
        output,
    }
}
