//! Anthropic's Messages API, streamed (<https://platform.claude.com/docs/en/api/messages>).
//!
//! The start of a prompt is marked for caching: the instructions and the context, which all
//! requests of a run share, and the part of the change if several lenses review it. Writing to the
//! cache costs a quarter more than uncached input, so a part that is sent only once is not marked.

mod batch;

use super::dialect::{
    Complaint, Dialect, ModelMessage, Talk, TalkTurn, ToolCall, ToolOutcome, Tools, count,
};
use super::schema;
use crate::ai::ask::{Cause, Failure, Spent};
use crate::ai::tools::specs;
use crate::http;
use serde_json::{Value, json};

pub(super) static DIALECT: Dialect = Dialect {
    home: "https://api.anthropic.com",
    version: "v1",
    path_is_whole: false,
    key: ("x-api-key", ""),
    headers: &[("anthropic-version", "2023-06-01")],
    // 200,000 tokens of at least 2.5 bytes, minus room for the answer and for results of tools.
    capacity: 400_000,
    schema_beside_tools: true,
    path: |_| vec!["messages".to_owned()],
    query: "",
    body,
    bound: |body, tokens, _| body["max_tokens"] = tokens.into(),
    // <https://platform.claude.com/docs/en/build-with-claude/effort>
    effort: |body, effort, _| body["output_config"]["effort"] = effort.name().into(),
    read,
    stream,
    is_over: is_done,
    is_whole: is_done,
    unstream: |_| false,
    idle: http::IDLE,
    complaint,
    batch: Some(&batch::API),
    models_query: "limit=1000",
    models: |list| names(list, "data"),
    drops: false,
    newest_first: true,
};

/// Returns the IDs in a list.
pub(super) fn names(list: &Value, key: &str) -> Vec<String> {
    let models = list[key].as_array().into_iter().flatten();
    models
        .filter_map(|m| m["id"].as_str())
        .map(str::to_owned)
        .collect()
}

fn body(talk: &Talk<'_>) -> Value {
    let prompt = talk.prompt;
    let mut front = Vec::new();
    if !prompt.context.is_empty() {
        front.push(cached_text(&prompt.context));
    }
    if !prompt.manifest.text.is_empty() {
        front.push(plain_text(&prompt.manifest.text));
    }
    match talk.tools {
        _ if prompt.chunk.is_empty() => {}
        Tools::Absent => front.push(plain_text(&prompt.chunk)),
        Tools::Open | Tools::Closed => front.push(cached_text(&prompt.chunk)),
    }
    front.push(plain_text(&prompt.task));
    let mut messages = vec![json!({ "role": "user", "content": front })];
    let last = talk.turns.len().saturating_sub(1);
    for (i, turn) in talk.turns.iter().enumerate() {
        messages.push(match turn {
            TalkTurn::Said(content) => json!({ "role": "assistant", "content": content }),
            TalkTurn::Replied(text) => json!({ "role": "assistant", "content": text }),
            TalkTurn::Asked(text) => json!({ "role": "user", "content": text }),
            TalkTurn::Told(outcomes) => {
                json!({ "role": "user", "content": told(outcomes, i == last) })
            }
        });
    }
    let mut body = json!({
        "model": talk.model,
        "stream": true,
        "system": [cached_text(talk.instructions)],
        "messages": messages,
    });
    if let Some(form) = talk.schema {
        body["output_config"] = json!({ "format": { "type": "json_schema", "schema": schema::anthropic(&form.value) } });
    }
    if talk.tools != Tools::Absent {
        let tools = specs(talk.is_editable).map(
            |s| json!({ "name": s.name, "description": s.description, "input_schema": s.schema() }),
        );
        body["tools"] = tools.collect();
        body["tool_choice"] =
            json!({ "type": if talk.tools == Tools::Open { "auto" } else { "none" } });
    }
    body
}

/// Builds a text block.
fn plain_text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Builds a text at whose end the provider caches the prompt.
fn cached_text(text: &str) -> Value {
    json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral" } })
}

/// Returns the results of tools. The last result is marked for caching, so that the next round
/// reads the conversation from the cache.
fn told(outcomes: &[ToolOutcome], is_last: bool) -> Vec<Value> {
    let mut blocks: Vec<_> = outcomes
        .iter()
        .map(|o| json!({ "type": "tool_result", "tool_use_id": o.id, "content": o.text }))
        .collect();
    if let (Some(block), true) = (blocks.last_mut(), is_last) {
        block["cache_control"] = json!({ "type": "ephemeral" });
    }
    blocks
}

fn read(message: &Value) -> Result<ModelMessage, Failure> {
    let Some(content) = message["content"].as_array() else {
        return Err(Failure::new(Cause::Malformed, "the answer has no content"));
    };
    let text = content
        .iter()
        .filter(|b| b["type"] == "text")
        .filter_map(|b| b["text"].as_str())
        .collect();
    let calls = content
        .iter()
        .filter(|b| b["type"] == "tool_use")
        .map(|b| ToolCall {
            id: b["id"].as_str().unwrap_or_default().to_owned(),
            name: b["name"].as_str().unwrap_or_default().to_owned(),
            arguments: b["input"].clone(),
        })
        .collect();
    let stopped = match message["stop_reason"].as_str() {
        Some("end_turn" | "stop_sequence" | "tool_use") => None,
        Some("max_tokens") => Some((
            Cause::CutOff,
            "the answer reached the limit of its length".to_owned(),
        )),
        Some("refusal") => Some((Cause::Declined, "the model refused to answer".to_owned())),
        Some("model_context_window_exceeded") => Some((
            Cause::TooLarge,
            "prompt and answer do not fit the model's context".to_owned(),
        )),
        Some(other) => Some((
            Cause::Malformed,
            format!("the answer stopped with {other:.40}"),
        )),
        None => Some((
            Cause::Malformed,
            "the answer does not say why it stopped".to_owned(),
        )),
    };
    let usage = &message["usage"];
    let (cached, written) = (
        count(&usage["cache_read_input_tokens"]),
        count(&usage["cache_creation_input_tokens"]),
    );
    Ok(ModelMessage {
        text,
        calls,
        stopped,
        usage: Spent {
            // The provider's count of input tokens excludes those that were read from or written to
            // the cache.
            input_tokens: count(&usage["input_tokens"])
                .saturating_add(written)
                .saturating_add(cached),
            cached_tokens: cached,
            written_tokens: written,
            output_tokens: count(&usage["output_tokens"]),
            ..Spent::default()
        },
        model: message["model"].as_str().map(str::to_owned),
        // The provider sends empty texts but rejects them in a request.
        message: content
            .iter()
            .filter(|b| b["text"] != "")
            .cloned()
            .collect(),
    })
}

fn stream(message: &mut Value, event: &Value) {
    let index = usize::try_from(event["index"].as_u64().unwrap_or(0)).unwrap_or(0);
    match event["type"].as_str() {
        Some("message_start") => {
            *message = event["message"].clone();
            *field(message, "content") = json!([]);
        }
        Some("content_block_start") => {
            if let Some(content) = message.get_mut("content").and_then(Value::as_array_mut)
                && content.len() == index
            {
                content.push(event["content_block"].clone());
            }
        }
        Some("content_block_delta") => {
            let Some(block) = block(message, index) else {
                return;
            };
            let delta = &event["delta"];
            for (kind, from, to) in [
                ("text_delta", "text", "text"),
                ("input_json_delta", "partial_json", "partial_json"),
                ("thinking_delta", "thinking", "thinking"),
                ("signature_delta", "signature", "signature"),
            ] {
                if delta["type"] == kind {
                    append(field(block, to), delta[from].as_str().unwrap_or_default());
                }
            }
        }
        Some("content_block_stop") => {
            if let Some(block) = block(message, index).and_then(Value::as_object_mut)
                && let Some(json) = block.remove("partial_json")
            {
                let json = json.as_str().unwrap_or_default();
                block.insert(
                    "input".to_owned(),
                    serde_json::from_str(json).unwrap_or_else(|_| json!({})),
                );
            }
        }
        Some("message_delta") => {
            *field(message, "stop_reason") = event["delta"]["stop_reason"].clone();
            for (name, count) in event["usage"].as_object().into_iter().flatten() {
                if !count.is_null() {
                    *field(field(message, "usage"), name) = count.clone();
                }
            }
        }
        Some("message_stop") => *field(message, "done") = true.into(),
        _ => {}
    }
}

fn is_done(message: &Value) -> bool {
    message["done"] == true
}

fn block(message: &mut Value, index: usize) -> Option<&mut Value> {
    message.get_mut("content")?.get_mut(index)
}

/// Returns a mutable reference to a field. Replaces any value other than an object, because events
/// are untrusted.
pub(super) fn field<'v>(value: &'v mut Value, name: &str) -> &'v mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[name]
}

/// Appends text to a value. Replaces any value other than a string.
pub(super) fn append(target: &mut Value, text: &str) {
    match target {
        Value::String(s) => s.push_str(text),
        other => *other = Value::String(text.to_owned()),
    }
}

fn complaint(body: &Value) -> Complaint {
    let error = &body["error"];
    let kind = error["type"].as_str().unwrap_or_default().to_owned();
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    Complaint {
        status: match kind.as_str() {
            "overloaded_error" => Some(529),
            "api_error" => Some(500),
            "timeout_error" => Some(504),
            "rate_limit_error" => Some(429),
            "invalid_request_error" => Some(400),
            "authentication_error" => Some(401),
            "billing_error" => Some(402),
            "permission_error" => Some(403),
            "not_found_error" => Some(404),
            "request_too_large" => Some(413),
            _ => None,
        },
        spent: kind == "billing_error" || message.contains("credit balance"),
        too_large: message.contains("prompt is too long")
            || message.contains("exceed context limit"),
        retry_after: None,
        kind,
        message,
    }
}
