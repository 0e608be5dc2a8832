//! Chat Completions of OpenAI (<https://platform.openai.com/docs/api-reference/chat>) and
//! compatible servers: llama.cpp, Ollama, vLLM, LM Studio, OpenRouter.
//!
//! Compatible servers omit and add different fields. An answer and its finish reason are required;
//! usage, IDs and names are optional.

mod batch;

use super::anthropic::{append, field, names};
use super::dialect::{
    Complaint, Dialect, ModelMessage, QUIET, Talk, TalkTurn, ToolCall, Tools, count,
};
use super::schema;
use crate::ai::ask::{Cause, Failure, Spent};
use crate::ai::tools::{Spec, specs};
use serde_json::{Value, json};

/// Choices of an answer, and tool calls of a message, that are distinguished, at most.
const MAX_ELEMENTS: usize = 256;

pub(super) static DIALECT: Dialect = Dialect {
    home: "https://api.openai.com",
    version: "v1",
    path_is_whole: true,
    key: ("authorization", "Bearer "),
    headers: &[],
    // 128,000 tokens of at least 2.5 bytes, minus room for the answer and for results of tools.
    capacity: 240_000,
    schema_beside_tools: true,
    path: |_| vec!["chat".to_owned(), "completions".to_owned()],
    query: "",
    body,
    // Compatible servers support the older name.
    bound: |body, tokens, own| {
        body[if own {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }] = tokens.into();
    },
    effort: |body, effort, _| body["reasoning_effort"] = effort.name().into(),
    read,
    stream,
    // The usage follows the finish reason, and `[DONE]` follows both.
    is_over: |_| false,
    is_whole: |answer| !answer["choices"][0]["finish_reason"].is_null(),
    unstream,
    idle: QUIET,
    complaint,
    batch: Some(&batch::API),
    models_query: "",
    models: |list| names(list, "data"),
    drops: true,
    newest_first: false,
};

fn body(talk: &Talk<'_>) -> Value {
    let prompt = talk.prompt;
    let question = prompt.parts().collect::<Vec<_>>().join("\n\n");
    let mut messages = vec![
        json!({ "role": "system", "content": talk.instructions }),
        json!({ "role": "user", "content": question }),
    ];
    for turn in talk.turns {
        match turn {
            TalkTurn::Said(message) => messages.push(message.clone()),
            TalkTurn::Replied(text) => {
                messages.push(json!({ "role": "assistant", "content": text }));
            }
            TalkTurn::Asked(text) => messages.push(json!({ "role": "user", "content": text })),
            TalkTurn::Told(outcomes) => messages.extend(
                outcomes
                    .iter()
                    .map(|o| json!({ "role": "tool", "tool_call_id": o.id, "content": o.text })),
            ),
        }
    }
    let mut body = json!({
        "model": talk.model,
        "messages": messages,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if talk.own {
        // Some compatible servers reject this field.
        body["store"] = false.into();
    }
    if let Some(form) = talk.schema {
        body["response_format"] = json!({
            "type": "json_schema",
            "json_schema": { "name": form.name, "strict": true, "schema": schema::openai(&form.value) },
        });
    }
    if talk.tools != Tools::Absent {
        body["tools"] = specs(talk.is_editable).map(tool).collect();
        body["tool_choice"] = json!(if talk.tools == Tools::Open {
            "auto"
        } else {
            "none"
        });
    }
    body
}

/// Builds the definition of a tool.
fn tool(spec: &Spec) -> Value {
    let function =
        json!({ "name": spec.name, "description": spec.description, "parameters": spec.schema() });
    json!({ "type": "function", "function": function })
}

fn read(body: &Value) -> Result<ModelMessage, Failure> {
    if body["choices"]
        .as_array()
        .is_some_and(|choices| choices.len() > 1)
    {
        return Err(Failure::new(
            Cause::Malformed,
            "the answer has more than one choice",
        ));
    }
    let choice = &body["choices"][0];
    let message = &choice["message"];
    if !message.is_object() {
        return Err(Failure::new(Cause::Malformed, "the answer has no choices"));
    }
    let mut calls = Vec::new();
    let mut kept = json!({ "role": "assistant", "content": &message["content"] });
    if let Some(list) = message["tool_calls"].as_array().filter(|l| !l.is_empty()) {
        let mut list = list.clone();
        for (i, call) in list.iter_mut().enumerate() {
            let Some(call) = call.as_object_mut() else {
                continue;
            };
            // Some servers omit the IDs of calls, but the results need an ID to refer to.
            call.remove("index");
            let id = call.entry("id").or_insert(Value::Null);
            if id.as_str().is_none_or(str::is_empty) {
                *id = format!("call_{i}").into();
            }
            let function = call.get("function").cloned().unwrap_or_default();
            calls.push(ToolCall {
                id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: function["name"].as_str().unwrap_or_default().to_owned(),
                arguments: function["arguments"].clone(),
            });
        }
        kept["tool_calls"] = Value::Array(list);
    }
    // OpenRouter requires this field back if a model thinks between its calls.
    if let Some(details) = message.get("reasoning_details") {
        kept["reasoning_details"] = details.clone();
    }
    let refusal = message["refusal"].as_str().filter(|r| !r.is_empty());
    let stopped = match choice["finish_reason"].as_str() {
        _ if refusal.is_some() => Some((Cause::Declined, "the model refused to answer".to_owned())),
        Some("stop" | "tool_calls" | "function_call" | "eos" | "") | None => None,
        Some("length") => Some((
            Cause::CutOff,
            "the answer reached the limit of its length".to_owned(),
        )),
        Some("content_filter") => Some((
            Cause::Declined,
            "a content filter of the provider stopped it".to_owned(),
        )),
        Some(other) => Some((
            Cause::Malformed,
            format!("the answer stopped with {other:.40}"),
        )),
    };
    let usage = &body["usage"];
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    let prompt = count(&usage["prompt_tokens"]);
    Ok(ModelMessage {
        text: text(&message["content"]),
        calls,
        message: kept,
        stopped,
        usage: Spent {
            // Cached tokens are normally a part of the prompt tokens. If there are more, the server
            // counts them separately.
            input_tokens: if cached > prompt {
                prompt.saturating_add(cached)
            } else {
                prompt
            },
            cached_tokens: cached,
            written_tokens: count(&usage["prompt_tokens_details"]["cache_write_tokens"]),
            output_tokens: count(&usage["completion_tokens"]),
            // Field of OpenRouter.
            cost_usd: usage["cost"]
                .as_f64()
                .filter(|c| c.is_finite() && *c >= 0.0),
            ..Spent::default()
        },
        model: body["model"]
            .as_str()
            .filter(|m| !m.is_empty())
            .map(str::to_owned),
    })
}

/// Removes the fields that request a stream.
pub(super) fn unstream(body: &mut Value) -> bool {
    let Some(body) = body.as_object_mut() else {
        return false;
    };
    let was_streamed = body.remove("stream").is_some();
    body.remove("stream_options");
    was_streamed
}

/// Merges an event (<https://platform.openai.com/docs/api-reference/chat-streaming>). Its choices
/// contain the next parts of the message; the last event contains the usage and no choices.
fn stream(answer: &mut Value, event: &Value) {
    for name in ["model", "usage"] {
        if !event[name].is_null() {
            *field(answer, name) = event[name].clone();
        }
    }
    for choice in event["choices"].as_array().into_iter().flatten() {
        let kept = element(field(answer, "choices"), choice);
        if !choice["finish_reason"].is_null() {
            *field(kept, "finish_reason") = choice["finish_reason"].clone();
        }
        let message = field(kept, "message");
        if !message.is_object() {
            *message = json!({ "role": "assistant", "content": null });
        }
        for (name, value) in choice["delta"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
        {
            extend(field(message, name), name, value);
        }
    }
}

/// Appends a part of a field of a message or tool call.
fn extend(kept: &mut Value, name: &str, value: &Value) {
    match (name, value) {
        ("role" | "id" | "type" | "name" | "index", _) => {
            if kept.as_str().is_none_or(str::is_empty) {
                *kept = value.clone();
            }
        }
        ("content", Value::Array(_)) => append(kept, &text(value)),
        (_, Value::String(text)) => append(kept, text),
        ("tool_calls", Value::Array(calls)) => {
            for call in calls {
                let kept = element(kept, call);
                for (name, value) in call
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(|(_, value)| !value.is_null())
                {
                    extend(field(kept, name), name, value);
                }
            }
        }
        ("function", Value::Object(parts)) => {
            for (name, value) in parts.iter().filter(|(_, value)| !value.is_null()) {
                extend(field(kept, name), name, value);
            }
        }
        // Field of OpenRouter: each part is sent back unchanged.
        ("reasoning_details", Value::Array(details)) => match kept.as_array_mut() {
            Some(kept) => kept.extend(details.iter().cloned()),
            None => *kept = value.clone(),
        },
        _ => *kept = value.clone(),
    }
}

/// Returns the list element that a part of an event belongs to: the element with the same index,
/// unless the IDs differ, since some servers give several calls the same index. At
/// [`MAX_ELEMENTS`], returns the last element.
fn element<'v>(list: &'v mut Value, part: &Value) -> &'v mut Value {
    if !list.is_array() {
        *list = json!([]);
    }
    let count = list.as_array().map_or(0, Vec::len);
    // A server that sends no index sends each call in one piece.
    let numbered = list.as_array().filter(|_| part["index"].is_u64());
    let known = numbered.and_then(|all| all.iter().rposition(|kept| is_continued_by(kept, part)));
    let at = known.unwrap_or(count.min(MAX_ELEMENTS - 1));
    if at == count
        && let Some(list) = list.as_array_mut()
    {
        list.push(json!({ "index": part["index"] }));
    }
    &mut list[at]
}

/// Returns true if an element and a part have the same index, and no different IDs.
fn is_continued_by(kept: &Value, part: &Value) -> bool {
    let (ours, theirs) = (
        kept["id"].as_str().unwrap_or_default(),
        part["id"].as_str().unwrap_or_default(),
    );
    kept["index"] == part["index"] && (ours.is_empty() || theirs.is_empty() || ours == theirs)
}

/// Returns the text of a message, given as a string or in parts.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter(|p| matches!(p["type"].as_str(), None | Some("text" | "output_text")))
            .filter_map(|p| p.as_str().or_else(|| p["text"].as_str()))
            .collect(),
        _ => String::new(),
    }
}

/// Parses an error. `code` is a string at OpenAI and a number elsewhere. Some servers put the
/// fields of the error at the top level, or send a string.
pub(super) fn complaint(body: &Value) -> Complaint {
    const SPENT: [&str; 3] = [
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
    ];
    const TOO_LARGE: [&str; 3] = [
        "context_length_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
    ];
    let error = if body["error"].is_object() {
        &body["error"]
    } else {
        body
    };
    let [code, kind] = ["code", "type"].map(|name| error[name].as_str().unwrap_or_default());
    let message = [
        error["message"].as_str(),
        body["error"].as_str(),
        body["detail"].as_str(),
    ];
    let message = message
        .into_iter()
        .flatten()
        .next()
        .unwrap_or_default()
        .to_owned();
    let lower = message.to_ascii_lowercase();
    Complaint {
        status: error["code"]
            .as_u64()
            .and_then(|c| u16::try_from(c).ok())
            .filter(|c| (400..600).contains(c)),
        spent: [code, kind].iter().any(|name| SPENT.contains(name))
            || lower.contains("insufficient credits"),
        too_large: [code, kind].iter().any(|name| TOO_LARGE.contains(name))
            || [
                "maximum context length",
                "context window",
                "exceeds the available context size",
                "prompt too long",
            ]
            .iter()
            .any(|words| lower.contains(words)),
        kind: if code.is_empty() { kind } else { code }.to_owned(),
        retry_after: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::DIALECT;
    use serde_json::json;

    #[test]
    fn the_provider_and_compatible_servers_get_the_limit_under_their_own_names() {
        let (mut own, mut other) = (json!({}), json!({}));
        (DIALECT.bound)(&mut own, 16_000, true);
        (DIALECT.bound)(&mut other, 4_000, false);
        assert_eq!(own, json!({ "max_completion_tokens": 16_000 }));
        assert_eq!(other, json!({ "max_tokens": 4_000 }));
    }
}
