//! OpenAI's Responses API (<https://platform.openai.com/docs/api-reference/responses>), without
//! stored state.
//!
//! Every request contains the whole conversation. Items are sent back without their IDs, because
//! the provider stores nothing that the IDs could refer to. Reasoning is sent back in encrypted
//! form, if the provider returned it.

use super::anthropic::field;
use super::dialect::{Dialect, ModelMessage, QUIET, Talk, TalkTurn, ToolCall, Tools, count};
use super::openai::unstream;
use super::schema;
use crate::ai::ask::{Cause, Failure, Spent};
use crate::ai::tools::{Spec, specs};
use crate::policy::Effort;
use serde_json::{Value, json};

pub(super) static DIALECT: Dialect = Dialect {
    path: |_| vec!["responses".to_owned()],
    body,
    bound: |body, tokens, _| body["max_output_tokens"] = tokens.into(),
    effort,
    read,
    stream,
    is_over,
    is_whole: is_over,
    unstream,
    idle: QUIET,
    ..super::openai::DIALECT
};

/// Sets the effort, and requests the encrypted reasoning. Only reasoning models accept either.
fn effort(body: &mut Value, effort: Effort, _: &str) {
    body["reasoning"] = json!({ "effort": effort.name() });
    body["include"] = json!(["reasoning.encrypted_content"]);
}

fn body(talk: &Talk<'_>) -> Value {
    let question = talk.prompt.parts().collect::<Vec<_>>().join("\n\n");
    let mut input = vec![of_user(&question)];
    for turn in talk.turns {
        match turn {
            TalkTurn::Said(items) => input.extend(items.as_array().into_iter().flatten().cloned()),
            TalkTurn::Replied(text) => input.push(of_model(text)),
            TalkTurn::Asked(text) => input.push(of_user(text)),
            TalkTurn::Told(outcomes) => input.extend(outcomes.iter().map(
                |o| json!({ "type": "function_call_output", "call_id": o.id, "output": o.text }),
            )),
        }
    }
    let mut body = json!({
        "model": talk.model,
        "instructions": talk.instructions,
        "input": input,
        "store": false,
        "stream": true,
    });
    if let Some(form) = talk.schema {
        body["text"] = json!({
            "format": { "type": "json_schema", "name": form.name, "strict": true, "schema": schema::openai(&form.value) },
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
    let Spec {
        name, description, ..
    } = spec;
    json!({ "type": "function", "name": name, "description": description, "parameters": spec.schema(), "strict": false })
}

/// Builds a message of the user.
fn of_user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

fn of_model(text: &str) -> Value {
    json!({ "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn read(body: &Value) -> Result<ModelMessage, Failure> {
    let Some(output) = body["output"].as_array() else {
        return Err(Failure::new(Cause::Malformed, "the answer has no output"));
    };
    let mut said = ModelMessage {
        model: body["model"]
            .as_str()
            .filter(|m| !m.is_empty())
            .map(str::to_owned),
        ..ModelMessage::default()
    };
    let (mut kept, mut is_refused) = (Vec::new(), false);
    for item in output {
        match item["type"].as_str() {
            Some("message") => {
                let parts = item["content"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                is_refused |= parts.iter().any(|p| p["type"] == "refusal");
                let text: String = parts.iter().filter_map(|p| p["text"].as_str()).collect();
                kept.push(of_model(&text));
                said.text.push_str(&text);
            }
            Some("function_call") => {
                let (id, name) = (word(item, "call_id"), word(item, "name"));
                kept.push(
                    json!({ "type": "function_call", "call_id": id, "name": name, "arguments": item["arguments"] }),
                );
                said.calls.push(ToolCall {
                    id,
                    name,
                    arguments: item["arguments"].clone(),
                });
            }
            Some("reasoning") if item["encrypted_content"].is_string() => kept.push(item.clone()),
            _ => {}
        }
    }
    said.message = kept.into();
    said.stopped = match body["status"].as_str() {
        _ if is_refused => Some((Cause::Declined, "the model refused to answer".to_owned())),
        Some("completed") | None => None,
        Some("incomplete") => Some(match body["incomplete_details"]["reason"].as_str() {
            Some("content_filter") => (
                Cause::Declined,
                "a content filter of the provider stopped it".to_owned(),
            ),
            Some("max_output_tokens") => (
                Cause::CutOff,
                "the answer reached the limit of its length".to_owned(),
            ),
            other => (
                Cause::Malformed,
                format!(
                    "the answer is incomplete: {:.40}",
                    other.unwrap_or("no reason")
                ),
            ),
        }),
        Some(other) => Some((
            Cause::Malformed,
            format!("the answer stopped with {other:.40}"),
        )),
    };
    let usage = &body["usage"];
    said.usage = Spent {
        input_tokens: count(&usage["input_tokens"]),
        cached_tokens: count(&usage["input_tokens_details"]["cached_tokens"]),
        written_tokens: count(&usage["input_tokens_details"]["cache_write_tokens"]),
        output_tokens: count(&usage["output_tokens"]),
        ..Spent::default()
    };
    Ok(said)
}

/// Returns a string member of an item, or an empty string.
fn word(item: &Value, name: &str) -> String {
    item[name].as_str().unwrap_or_default().to_owned()
}

/// Merges an event (<https://platform.openai.com/docs/api-reference/responses-streaming>). The last
/// one contains the whole answer. A server that omits the items from it has sent each item before.
fn stream(answer: &mut Value, event: &Value) {
    match event["type"].as_str() {
        Some("response.output_item.done") => {
            let items = field(answer, "output");
            match items.as_array_mut() {
                Some(items) => items.push(event["item"].clone()),
                None => *items = json!([event["item"]]),
            }
        }
        Some("response.completed" | "response.incomplete" | "response.failed") => {
            let items = field(answer, "output").take();
            *answer = event["response"].clone();
            if answer["output"].as_array().is_none_or(Vec::is_empty) && items.is_array() {
                *field(answer, "output") = items;
            }
        }
        Some("error") => *field(answer, "error") = event.clone(),
        _ => {}
    }
}

fn is_over(answer: &Value) -> bool {
    matches!(
        answer["status"].as_str(),
        Some("completed" | "incomplete" | "failed" | "cancelled")
    )
}
