//! Google's `generateContent` (<https://ai.google.dev/api/generate-content>).
//!
//! The key is sent in a header, never in the address, which logs would record.

use super::anthropic::{append, field};
use super::dialect::{
    Complaint, Dialect, ModelMessage, QUIET, Talk, TalkTurn, ToolCall, Tools, count,
};
use super::schema;
use crate::ai::ask::{Cause, Failure, Spent};
use crate::ai::tools::specs;
use crate::http::retry;
use crate::policy::Effort;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) static DIALECT: Dialect = Dialect {
    home: "https://generativelanguage.googleapis.com",
    version: "v1beta",
    path_is_whole: false,
    key: ("x-goog-api-key", ""),
    headers: &[],
    // Every current model takes a million tokens; larger prompts reduce the quality of answers.
    capacity: 600_000,
    // Not every model accepts `responseMimeType` together with functions.
    schema_beside_tools: false,
    path,
    query: "alt=sse",
    body,
    bound: |body, tokens, _| body["generationConfig"]["maxOutputTokens"] = tokens.into(),
    effort,
    read,
    stream,
    // The token counts can follow the finish reason.
    is_over: |_| false,
    is_whole,
    unstream: |_| false,
    idle: QUIET,
    complaint,
    batch: None,
    models_query: "pageSize=1000",
    models,
    drops: false,
    newest_first: false,
};

/// Sets the thinking budget in tokens for models before Gemini 3, and the thinking level for later
/// ones. Each accepts only its own field (<https://ai.google.dev/gemini-api/docs/thinking>).
fn effort(body: &mut Value, effort: Effort, model: &str) {
    let has_budget = model
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("gemini-2"));
    let budget = match effort {
        Effort::Low => 1_024,
        Effort::Medium => 8_192,
        Effort::High => 24_576,
    };
    body["generationConfig"]["thinkingConfig"] = if has_budget {
        json!({ "thinkingBudget": budget })
    } else {
        json!({ "thinkingLevel": effort.name() })
    };
}

/// Returns `models/NAME:streamGenerateContent`. A name can contain its own collection
/// (`tunedModels/NAME`).
fn path(model: &str) -> Vec<String> {
    let full = if model.contains('/') {
        model.to_owned()
    } else {
        format!("models/{model}")
    };
    let mut path: Vec<_> = full.split('/').map(str::to_owned).collect();
    if let Some(last) = path.last_mut() {
        last.push_str(":streamGenerateContent");
    }
    path
}

fn body(talk: &Talk<'_>) -> Value {
    let prompt = talk.prompt;
    let mut contents = vec![of_user(&prompt.parts().map(text_part).collect::<Vec<_>>())];
    for turn in talk.turns {
        contents.push(match turn {
            TalkTurn::Said(content) => content.clone(),
            TalkTurn::Replied(text) => json!({ "role": "model", "parts": [text_part(text)] }),
            TalkTurn::Asked(text) => of_user(&[text_part(text)]),
            TalkTurn::Told(outcomes) => {
                let answers = outcomes.iter().map(|o| {
                    let mut answer = json!({ "name": o.name, "response": { "output": o.text } });
                    if !o.id.is_empty() {
                        answer["id"] = o.id.clone().into();
                    }
                    json!({ "functionResponse": answer })
                });
                of_user(&answers.collect::<Vec<_>>())
            }
        });
    }
    let mut body = json!({ "systemInstruction": { "parts": [text_part(talk.instructions)] }, "contents": contents });
    if let Some(form) = talk.schema {
        body["generationConfig"] = json!({
            "responseMimeType": "application/json",
            "responseJsonSchema": schema::google(&form.value),
        });
    }
    // Omit the tools when the model must answer, because they conflict with the response format.
    if talk.tools == Tools::Open {
        let tools = specs(talk.is_editable)
            .map(|s| json!({ "name": s.name, "description": s.description, "parametersJsonSchema": s.schema() }));
        body["tools"] = json!([{ "functionDeclarations": tools.collect::<Vec<_>>() }]);
    }
    body
}

/// Builds a part of a message that contains only text.
fn text_part(text: &str) -> Value {
    json!({ "text": text })
}

/// Builds a message of the user.
fn of_user(parts: &[Value]) -> Value {
    json!({ "role": "user", "parts": parts })
}

fn read(body: &Value) -> Result<ModelMessage, Failure> {
    let counts = &body["usageMetadata"];
    let usage = Spent {
        input_tokens: count(&counts["promptTokenCount"])
            .saturating_add(count(&counts["toolUsePromptTokenCount"])),
        cached_tokens: count(&counts["cachedContentTokenCount"]),
        // Thinking tokens are billed as output.
        output_tokens: count(&counts["candidatesTokenCount"])
            .saturating_add(count(&counts["thoughtsTokenCount"])),
        ..Spent::default()
    };
    if body["candidates"]
        .as_array()
        .is_some_and(|candidates| candidates.len() > 1)
    {
        return Err(Failure::new(
            Cause::Malformed,
            "the answer has more than one candidate",
        ));
    }
    let candidate = &body["candidates"][0];
    if candidate.is_null() {
        let stopped = match body["promptFeedback"]["blockReason"].as_str() {
            Some(reason) => (
                Cause::Declined,
                format!("the provider blocked the prompt: {reason:.40}"),
            ),
            None => (Cause::Malformed, "the answer has no candidates".to_owned()),
        };
        return Ok(ModelMessage {
            stopped: Some(stopped),
            usage,
            ..ModelMessage::default()
        });
    }
    let parts = candidate["content"]["parts"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let said = parts.iter().filter(|p| p["thought"] != true);
    let calls = said
        .clone()
        .map(|p| &p["functionCall"])
        .filter(|c| c.is_object())
        .map(|c| ToolCall {
            id: c["id"].as_str().unwrap_or_default().to_owned(),
            name: c["name"].as_str().unwrap_or_default().to_owned(),
            arguments: c["args"].clone(),
        });
    let stopped = match candidate["finishReason"].as_str() {
        Some("STOP") => None,
        Some("MAX_TOKENS") => Some((
            Cause::CutOff,
            "the answer reached the limit of its length".to_owned(),
        )),
        Some(
            reason @ ("SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
            | "LANGUAGE"),
        ) => Some((
            Cause::Declined,
            format!("the provider stopped the answer: {reason}"),
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
    Ok(ModelMessage {
        text: said.filter_map(|p| p["text"].as_str()).collect(),
        calls: calls.collect(),
        message: json!({ "role": "model", "parts": parts }),
        stopped,
        usage,
        model: body["modelVersion"].as_str().map(str::to_owned),
    })
}

/// Merges an event into the answer. Each event is an answer with the next parts of the candidate
/// (<https://ai.google.dev/api/generate-content#method:-models.streamgeneratecontent>).
fn stream(answer: &mut Value, event: &Value) {
    for (name, value) in event
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "candidates")
    {
        *field(answer, name) = value.clone();
    }
    let Some(candidates) = event["candidates"].as_array() else {
        return;
    };
    let Some([candidate]) = candidates.first_chunk().filter(|_| candidates.len() == 1) else {
        // Keep the list, so that `read` rejects several candidates and reports an empty list.
        *field(answer, "candidates") = candidates.clone().into();
        return;
    };
    let kept = field(answer, "candidates");
    if kept.as_array().is_none_or(|list| list.len() != 1) {
        *kept = json!([{}]);
    }
    let kept = &mut kept[0];
    for (name, value) in candidate
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "content")
    {
        *field(kept, name) = value.clone();
    }
    let Some(parts) = candidate["content"]["parts"].as_array() else {
        return;
    };
    let all = field(field(kept, "content"), "parts");
    if !all.is_array() {
        *all = json!([]);
    }
    let Some(all) = all.as_array_mut() else {
        return;
    };
    for part in parts {
        match all.last_mut().filter(|last| continues(last, part)) {
            Some(last) => append(&mut last["text"], part["text"].as_str().unwrap_or_default()),
            None => all.push(part.clone()),
        }
    }
}

/// Returns true if a part continues the text of the last part: both contain only text, and both or
/// neither are thoughts.
fn continues(last: &Value, part: &Value) -> bool {
    is_only_text(last) && is_only_text(part) && last["thought"] == part["thought"]
}

/// Returns true if a part contains text, and nothing else except the mark of a thought.
fn is_only_text(part: &Value) -> bool {
    part["text"].is_string()
        && part
            .as_object()
            .is_some_and(|o| o.keys().all(|k| k == "text" || k == "thought"))
}

fn is_whole(answer: &Value) -> bool {
    !answer["candidates"][0]["finishReason"].is_null()
        || !answer["promptFeedback"]["blockReason"].is_null()
}

fn complaint(body: &Value) -> Complaint {
    // For a stream request, errors are in a list.
    let error = if body.is_array() {
        &body[0]["error"]
    } else {
        &body["error"]
    };
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    let details = error["details"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let mut delays = details
        .iter()
        .filter(|d| is_of_type(d, "google.rpc.RetryInfo"));
    let delay = delays
        .find_map(|d| d["retryDelay"].as_str())
        .and_then(duration);
    // A daily quota is still exhausted after the delay.
    let spent = details
        .iter()
        .filter(|d| is_of_type(d, "google.rpc.QuotaFailure"))
        .flat_map(|d| d["violations"].as_array().into_iter().flatten())
        .any(|v| {
            v["quotaId"]
                .as_str()
                .is_some_and(|id| id.contains("PerDay"))
        });
    Complaint {
        kind: error["status"].as_str().unwrap_or_default().to_owned(),
        status: error["code"].as_u64().and_then(|c| u16::try_from(c).ok()),
        spent,
        too_large: message.contains("exceeds the maximum number of tokens"),
        retry_after: delay,
        message,
    }
}

/// Returns true if a detail of an error has this type, which a URL precedes.
fn is_of_type(detail: &Value, name: &str) -> bool {
    detail["@type"].as_str().is_some_and(|t| t.ends_with(name))
}

/// Parses a duration in JSON format: `1.5s`.
fn duration(text: &str) -> Option<Duration> {
    retry::seconds(text.strip_suffix('s')?, 1.0)
}

fn models(list: &Value) -> Vec<String> {
    let models = list["models"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|model| {
            let methods = model["supportedGenerationMethods"].as_array();
            methods.is_none_or(|l| l.iter().any(|method| method == "generateContent"))
        });
    let names = models.filter_map(|m| m["name"].as_str());
    names
        .map(|n| n.strip_prefix("models/").unwrap_or(n).to_owned())
        .collect()
}
