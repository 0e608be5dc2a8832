//! Answers of each API as the events of a stream.

use serde_json::{Value, json};

/// Splits an answer of the Messages API into the events of a stream.
pub fn events(message: &Value) -> Vec<Value> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut out = vec![
        json!({ "type": "message_start", "message": start }),
        json!({ "type": "ping" }),
    ];
    for (index, block) in message["content"].as_array().unwrap().iter().enumerate() {
        let (mut empty, kind, field, text) = match block["type"].as_str() {
            Some("text") => (
                block.clone(),
                "text_delta",
                "text",
                block["text"].as_str().unwrap().to_owned(),
            ),
            _ => (
                block.clone(),
                "input_json_delta",
                "partial_json",
                block["input"].to_string(),
            ),
        };
        match kind {
            "text_delta" => empty["text"] = json!(""),
            _ => empty["input"] = json!({}),
        }
        out.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        for piece in pieces_of(&text) {
            out.push(json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, field: piece } }));
        }
        out.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let output = message["usage"]["output_tokens"].clone();
    let stop = message["stop_reason"].clone();
    out.push(
        json!({ "type": "message_delta", "delta": { "stop_reason": stop }, "usage": { "output_tokens": output } }),
    );
    out.push(json!({ "type": "message_stop" }));
    out
}

/// Splits an answer of Chat Completions into the events of a stream.
pub fn chat_events(body: &Value) -> Vec<Value> {
    let event = |choices: Value| json!({ "id": body["id"], "object": "chat.completion.chunk", "model": body["model"], "choices": choices });
    let delta = |delta: Value, end: &Value| {
        event(json!([{ "index": 0, "delta": delta, "finish_reason": end }]))
    };
    let message = &body["choices"][0]["message"];
    let mut out = vec![delta(
        json!({ "role": "assistant", "content": "", "refusal": null }),
        &Value::Null,
    )];
    let pieces = |text: &Value| pieces_of(text.as_str().unwrap_or_default());
    out.extend(
        pieces(&message["content"]).map(|piece| delta(json!({ "content": piece }), &Value::Null)),
    );
    for (i, call) in message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let name = json!({ "name": call["function"]["name"], "arguments": "" });
        let first = json!({ "index": i, "id": call["id"], "type": "function", "function": name });
        out.push(delta(json!({ "tool_calls": [first] }), &Value::Null));
        out.extend(pieces(&call["function"]["arguments"]).map(|piece| {
            delta(
                json!({ "tool_calls": [{ "index": i, "function": { "arguments": piece } }] }),
                &Value::Null,
            )
        }));
    }
    out.push(delta(json!({}), &body["choices"][0]["finish_reason"]));
    let mut last = event(json!([]));
    last["usage"] = body["usage"].clone();
    out.extend([last, json!("[DONE]")]);
    out
}

/// Splits an answer of Responses into the events of a stream.
pub fn responses_events(body: &Value) -> Vec<Value> {
    let start = json!({ "type": "response.created", "response": { "status": "in_progress", "output": [], "error": null } });
    let mut out = vec![start];
    for (i, item) in body["output"].as_array().unwrap().iter().enumerate() {
        out.push(json!({ "type": "response.output_text.delta", "output_index": i, "delta": "…" }));
        out.push(json!({ "type": "response.output_item.done", "output_index": i, "item": item }));
    }
    out.push(json!({ "type": format!("response.{}", body["status"].as_str().unwrap()), "response": body }));
    out
}

/// Splits an answer of `generateContent` into the events of a stream.
pub fn google_events(body: &Value) -> Vec<Value> {
    let candidate = &body["candidates"][0];
    let mut parts = Vec::new();
    for part in candidate["content"]["parts"].as_array().unwrap() {
        match part["text"].as_str() {
            Some(text) => parts.extend(pieces_of(text).map(|piece| {
                let mut cut = part.clone();
                cut["text"] = piece.into();
                cut
            })),
            None => parts.push(part.clone()),
        }
    }
    let event = |part: Value| json!({ "candidates": [{ "content": { "role": "model", "parts": [part] }, "index": 0 }], "modelVersion": body["modelVersion"], "usageMetadata": { "promptTokenCount": body["usageMetadata"]["promptTokenCount"] } });
    let mut out: Vec<Value> = parts.into_iter().map(event).collect();
    let mut last = event(json!({ "text": "" }));
    last["candidates"][0]["finishReason"] = candidate["finishReason"].clone();
    last["usageMetadata"] = body["usageMetadata"].clone();
    out.push(last);
    out
}

/// Splits a text into pieces of 40 characters.
fn pieces_of(text: &str) -> impl Iterator<Item = String> + use<> {
    let characters: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = characters
        .chunks(40)
        .map(|piece| piece.iter().collect())
        .collect();
    pieces.into_iter()
}
