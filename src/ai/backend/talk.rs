//! One conversation with a model: the prompt, the tool calls, the answer.
//!
//! A [`Dialect`] only translates to and from the wire format of a provider. The tools, their limits
//! and their log are the same for all dialects.

use super::http::Http;
use crate::ai::ask::{Ask, Begun, Cause, Failure, ModelAnswer, Prompt, Repair, Schema, Spent};
use crate::ai::tools::Session;
use crate::ai::tree::Tree;
use crate::http::Limits;
use crate::policy::Effort;
use crate::text::first_bytes;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// Rounds of tool calls, at most. The [`Session`] limits the number of calls and their bytes.
const MAX_ROUNDS: usize = 12;
/// Requests of one conversation, at most: its tool rounds, one more request after a prose answer,
/// and the answer.
pub(super) const MOST_REQUESTS: u32 = MAX_ROUNDS as u32 + 2;
/// Bytes of prompt per token, at most. English and code have 3 to 5.
const MOST_BYTES: u64 = 12;
/// Longest silence in a stream without pings: the model thinks, or a slow server processes its
/// prompt.
pub(super) const QUIET: Duration = Duration::from_secs(600);
/// Bytes of a reply that are sent back to the model, at most.
const MAX_TEXT: usize = 16 << 20;

/// The wire format of a provider.
#[derive(Debug)]
pub(super) struct Dialect {
    /// Base address of the provider.
    pub(super) home: &'static str,
    /// Last path segment of a base address: `v1`.
    pub(super) version: &'static str,
    /// If true, the version is added only to an address without any path.
    pub(super) path_is_whole: bool,
    /// Header for the key, and the prefix of its value.
    pub(super) key: (&'static str, &'static str),
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Bytes of prompt that every model of the provider accepts.
    pub(super) capacity: usize,
    /// True if the provider accepts a response schema together with tools. Never assumed for
    /// compatible servers.
    pub(super) schema_beside_tools: bool,
    /// Path of requests below the version, for a model.
    pub(super) path: fn(&str) -> Vec<String>,
    /// Query of the URL; may be empty.
    pub(super) query: &'static str,
    /// Builds the body of a request.
    pub(super) body: fn(&Talk<'_>) -> Value,
    /// Sets the token limit of the answer in the body of a request. The flag is true if the
    /// provider itself receives it.
    pub(super) bound: fn(&mut Value, u64, bool),
    /// Sets the effort of a model in the body of a request.
    pub(super) effort: fn(&mut Value, Effort, &str),
    /// Parses the body of an answer.
    pub(super) read: fn(&Value) -> Result<ModelMessage, Failure>,
    /// Merges an event into a streamed answer. The result equals an answer in one piece.
    pub(super) stream: fn(&mut Value, &Value),
    /// Returns true if no event follows.
    pub(super) is_over: fn(&Value) -> bool,
    /// Returns true if a streamed answer is complete.
    pub(super) is_whole: fn(&Value) -> bool,
    /// Removes the streaming fields from the body of a request. Returns false if the dialect only
    /// streams.
    pub(super) unstream: fn(&mut Value) -> bool,
    /// Longest silence within a stream. Only Anthropic sends pings while a model thinks.
    pub(super) idle: Duration,
    /// Parses the body of an error.
    pub(super) complaint: fn(&Value) -> Complaint,
    /// Query of the URL of the model list.
    pub(super) models_query: &'static str,
    /// Returns the usable models of a list.
    pub(super) models: fn(&Value) -> Vec<String>,
    /// True if compatible servers of this kind are known to silently drop input that exceeds their
    /// context.
    pub(super) drops: bool,
    /// True if the first model of the list is the default.
    pub(super) newest_first: bool,
}

/// The current state of a conversation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    /// Instructions of the prompt. They include the response schema if it cannot be set together
    /// with tools.
    pub(super) instructions: &'a str,
    /// Response schema; `None` if this request does not set it.
    pub(super) schema: Option<&'a Schema>,
    pub(super) tools: Tools,
    /// True if the tools include tools that change files.
    pub(super) is_editable: bool,
    /// Turns after the prompt.
    pub(super) turns: &'a [TalkTurn],
    /// True if requests go to the provider itself, not to a compatible server.
    pub(super) own: bool,
    pub(super) begun: Option<&'a Begun>,
}

/// Tools that a model may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tools {
    Absent,
    Open,
    /// Tools were available, but now the model must answer.
    Closed,
}

/// One turn after the prompt.
#[derive(Clone, Debug)]
pub(super) enum TalkTurn {
    /// The model's message in the wire format, sent back unchanged.
    Said(Value),
    /// The model's message, of which only the text is known.
    Replied(String),
    /// The results of tools.
    Told(Vec<ToolOutcome>),
    /// A further instruction to the model.
    Asked(String),
}

impl TalkTurn {
    /// Returns the bytes of its text.
    fn size(&self) -> usize {
        match self {
            Self::Said(_) => 0,
            Self::Replied(text) | Self::Asked(text) => text.len(),
            Self::Told(outcomes) => outcomes.iter().map(|o| o.text.len()).sum(),
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug)]
pub(super) struct ToolOutcome {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
}

/// A message of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelMessage {
    pub(super) text: String,
    pub(super) calls: Vec<ToolCall>,
    /// The message in the wire format, for [`TalkTurn::Said`].
    pub(super) message: Value,
    /// Reason why it stopped early, if it did.
    pub(super) stopped: Option<(Cause, String)>,
    /// Usage without the number of requests.
    pub(super) usage: Spent,
    pub(super) model: Option<String>,
}

/// A tool call of a model.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    /// An object, or its JSON text.
    pub(super) arguments: Value,
}

/// An error that a server reports.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint {
    /// Error type of the provider, such as `rate_limit_error`.
    pub(super) kind: String,
    pub(super) message: String,
    /// Status code of an error in the body of an answer with a success status.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// True if no credit is left, so that waiting does not help.
    pub(super) spent: bool,
    /// True if the request exceeds the limits of the model.
    pub(super) too_large: bool,
}

impl Prompt {
    /// Returns the parts after the instructions that are not empty.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        [&self.context, &self.manifest.text, &self.chunk, &self.task]
            .into_iter()
            .map(String::as_str)
            .filter(|p| !p.is_empty())
    }
}

/// Sends a question, runs the tool calls of the model, and returns its answer.
pub(super) async fn hold(
    http: &Http,
    ask: &Ask<'_>,
    around: Option<&Tree<'_>>,
) -> Result<ModelAnswer, Failure> {
    let mut spent = Spent::default();
    let result = converse(http, ask, around, &mut spent).await;
    result.map_err(|mut failure| {
        failure.usage = Box::new(spent);
        failure
    })
}

async fn converse(
    http: &Http,
    ask: &Ask<'_>,
    around: Option<&Tree<'_>>,
    spent: &mut Spent,
) -> Result<ModelAnswer, Failure> {
    let limits = Limits::new(ask.deadline, ask.stop).patient_until(ask.patience);
    let model = http.ready(ask.deadline, ask.stop).await?;
    // A request that repairs a reply needs no tools: the earlier reply is in the conversation.
    let mut session = around.filter(|_| ask.repair.is_none()).map(Session::new);
    let mut turns = ask
        .repair
        .map(|repair| repaired(repair, ask.prompt))
        .unwrap_or_default();
    let mut rounds = 0;
    let mut most = 0;
    let mut now_answer = false;
    // The instructions are the same in every round, so that the prefix of the conversation stays in
    // the provider's cache.
    let is_told = session.is_some() && !http.schema_beside_tools();
    let instructions = if is_told {
        Cow::Owned(with_form(ask))
    } else {
        Cow::Borrowed(ask.prompt.system)
    };
    loop {
        let tools = match &session {
            None => Tools::Absent,
            Some(s) if now_answer || rounds >= MAX_ROUNDS || s.is_over() => Tools::Closed,
            // Keep the remaining quota for the answer.
            Some(_)
                if !ask
                    .quota
                    .affords_tools(size(&instructions, ask.prompt, &turns)) =>
            {
                Tools::Closed
            }
            Some(_) => Tools::Open,
        };
        let constrained = tools != Tools::Open || http.schema_beside_tools();
        let schema = constrained.then_some(ask.schema);
        let talk = Talk {
            model,
            prompt: ask.prompt,
            instructions: &instructions,
            schema,
            tools,
            is_editable: session.is_some() && around.is_some_and(Tree::is_editable),
            turns: &turns,
            own: http.is_own(),
            begun: ask.begun,
        };
        let said = http.say(&talk, ask.quota, &limits, spent).await?;
        spent.add(&said.usage);
        if let Some((cause, message)) = said.stopped {
            return Err(Failure::new(cause, message));
        }
        if http.may_drop() && is_cut(ask.prompt, said.usage.input_tokens, &mut most) {
            let failure = Failure::new(
                Cause::TooLarge,
                "the server cut the prompt to fit its context",
            );
            return Err(
                failure.hint("raise the server's context length (Ollama: OLLAMA_CONTEXT_LENGTH)")
            );
        }
        check_tokens(
            http.may_drop(),
            ask.prompt,
            size(&instructions, ask.prompt, &turns),
            said.usage.input_tokens,
        )?;
        if said.calls.is_empty() {
            if said.text.trim().is_empty() {
                return Err(Failure::new(Cause::Malformed, "the answer is empty"));
            }
            if !constrained && !is_answer(&said.text) {
                // Without a response schema the model wrote prose: ask once more, with the schema.
                now_answer = true;
                turns.push(TalkTurn::Said(said.message));
                turns.push(TalkTurn::Asked(last_line(
                    "Answer now, in the form that was asked for.",
                    ask.prompt,
                )));
                continue;
            }
            let (read, lookups) = session.map(Session::finish).unwrap_or_default();
            return Ok(ModelAnswer {
                text: said.text,
                usage: *spent,
                read,
                lookups,
                model: said.model.unwrap_or_else(|| model.to_owned()),
            });
        }
        let (Some(session), Tools::Open) = (&mut session, tools) else {
            return Err(Failure::new(
                Cause::Malformed,
                "a tool was called where none is offered, instead of an answer",
            ));
        };
        turns.push(TalkTurn::Said(said.message));
        let mut outcomes = Vec::with_capacity(said.calls.len());
        for call in said.calls {
            // A tool may read many files. Check for each call that the run was not stopped and is
            // not past its deadline.
            limits.check()?;
            let text = session.call(&call.name, &call.arguments);
            outcomes.push(ToolOutcome {
                id: call.id,
                name: call.name,
                text,
            });
        }
        turns.push(TalkTurn::Told(outcomes));
        rounds += 1;
    }
}

/// Returns the instructions with the response schema, for servers that do not accept it together
/// with tools.
fn with_form(ask: &Ask<'_>) -> String {
    let (system, form) = (ask.prompt.system.trim_end(), &ask.schema.value);
    format!(
        "{system}\n\nThe schema that your answer follows, every member of it present:\n{form}\n"
    )
}

/// Returns the turns that request a corrected reply.
fn repaired(repair: &Repair, prompt: &Prompt) -> Vec<TalkTurn> {
    let reply = match repair.reply.trim() {
        "" => "(nothing)",
        reply => first_bytes(reply, MAX_TEXT),
    };
    let problem = format!(
        "Your reply cannot be used: {}\nReply once more with the complete answer: one JSON document in the form that \
         was asked for, and nothing else.",
        repair.problem
    );
    vec![
        TalkTurn::Replied(reply.to_owned()),
        TalkTurn::Asked(last_line(&problem, prompt)),
    ]
}

fn last_line(text: &str, prompt: &Prompt) -> String {
    format!("{text}\nnonce: {}", prompt.nonce.as_str())
}

/// Returns true if a server truncated the prompt. Then its token count equals a common context size
/// and is too small for the prompt, or it is smaller than before in the same conversation. Ollama
/// does both silently, and the dropped text would pass as reviewed.
fn is_cut(prompt: &Prompt, tokens: u64, most: &mut u64) -> bool {
    let bytes = prompt.system.len() + prompt.parts().map(str::len).sum::<usize>();
    let full =
        tokens >= 2048 && tokens.is_multiple_of(1024) && tokens.saturating_mul(3) < bytes as u64;
    let shrunk = tokens > 0 && tokens < *most;
    *most = tokens.max(*most);
    full || shrunk
}

/// Returns a number of tokens, or 0 if the provider did not count them.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// Returns the bytes of text in a request.
fn size(instructions: &str, prompt: &Prompt, turns: &[TalkTurn]) -> usize {
    instructions.len()
        + prompt.parts().map(str::len).sum::<usize>()
        + turns.iter().map(TalkTurn::size).sum::<usize>()
}

/// Fails if the provider's token count, including cached tokens, is too small for the bytes of the
/// prompt: then the model did not receive all of it. A count of 0 is ignored.
pub(super) fn check_tokens(
    may_drop: bool,
    prompt: &Prompt,
    bytes: usize,
    tokens: u64,
) -> Result<(), Failure> {
    if tokens == 0 || bytes as u64 <= tokens.saturating_mul(MOST_BYTES) {
        return Ok(());
    }
    let message = format!(
        "the provider counted {tokens} tokens for a prompt of {bytes} bytes: it did not read all of it"
    );
    // Smaller chunks help only if the rest of the prompt fits.
    let fixed = bytes.saturating_sub(prompt.chunk.len()) as u64;
    let is_smaller_enough = may_drop && fixed <= tokens.saturating_mul(MOST_BYTES);
    Err(Failure::new(
        if is_smaller_enough {
            Cause::TooLarge
        } else {
            Cause::Malformed
        },
        message,
    ))
}

/// Returns true if a text can be the answer, and not a message before it.
fn is_answer(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with('{') || text.starts_with("```")
}

#[cfg(test)]
mod tests {
    use super::super::DIALECTS;
    use super::is_cut;
    use crate::ai::ask::{Nonce, Prompt};
    use serde_json::{Value, json};

    /// Calls `then` once for each value of a document, with this value replaced.
    fn each_place(document: &Value, with: &Value, then: &mut dyn FnMut(&Value)) {
        fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
            out.push(at.to_owned());
            match value {
                Value::Object(o) => o
                    .iter()
                    .for_each(|(k, v)| paths(v, &format!("{at}/{k}"), out)),
                Value::Array(l) => l
                    .iter()
                    .enumerate()
                    .for_each(|(i, v)| paths(v, &format!("{at}/{i}"), out)),
                _ => {}
            }
        }
        let mut all = Vec::new();
        paths(document, "", &mut all);
        for path in all {
            let mut changed = document.clone();
            *changed.pointer_mut(&path).unwrap() = with.clone();
            then(&changed);
        }
    }

    #[test]
    fn net_12_no_answer_of_a_server_does_harm_whatever_stands_where() {
        let documents = [
            json!({ "content": [{ "type": "text", "text": "x" }, { "type": "tool_use", "id": "1", "name": "n", "input": {} }],
                "stop_reason": "end_turn", "model": "m", "usage": { "input_tokens": 1, "output_tokens": 1 } }),
            json!({ "choices": [{ "message": { "content": "x", "refusal": null, "tool_calls": [
                { "id": "1", "function": { "name": "n", "arguments": "{}" } }] }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 1, "prompt_tokens_details": { "cached_tokens": 1 } }, "model": "m" }),
            json!({ "candidates": [{ "content": { "parts": [{ "text": "x" }, { "functionCall": { "name": "n" } }] },
                "finishReason": "STOP" }], "usageMetadata": { "promptTokenCount": 1 }, "promptFeedback": {} }),
            json!({ "error": { "code": 429, "type": "t", "status": "s", "message": "m", "details": [
                { "@type": "google.rpc.RetryInfo", "retryDelay": "1s" },
                { "@type": "google.rpc.QuotaFailure", "violations": [{ "quotaId": "PerDay" }] }] } }),
            json!({ "output": [{ "type": "message", "content": [{ "type": "output_text", "text": "x" }] },
                { "type": "function_call", "call_id": "1", "name": "n", "arguments": "{}" },
                { "type": "reasoning", "encrypted_content": "x" }], "status": "completed", "model": "m",
                "usage": { "input_tokens": 1, "input_tokens_details": { "cached_tokens": 1 } } }),
            json!({ "type": "response.output_item.done", "item": { "type": "message" } }),
            json!({ "type": "response.completed", "response": { "output": [], "status": "completed" } }),
            json!({ "choices": [{ "index": 0, "delta": { "content": "x", "reasoning_details": [{ "type": "t" }],
                "tool_calls": [{ "index": 0, "id": "1", "function": { "name": "n", "arguments": "{" } }] } }] }),
            json!({ "data": [{ "id": "m" }], "models": [{ "name": "m", "supportedGenerationMethods": ["x"] }] }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "x" } }),
            json!({ "type": "message_start", "message": { "content": [], "usage": {} } }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 1 } }),
        ];
        let odd = [
            json!(null),
            json!(true),
            json!(-1),
            json!(u64::MAX),
            json!(1e300),
            json!("\u{0}\u{e9}"),
            json!([]),
            json!({}),
            json!([[], 7]),
            json!({ "": null }),
        ];
        let mut tried = 0;
        let responses = &super::super::responses::DIALECT;
        for dialect in DIALECTS
            .iter()
            .map(|(_, dialect)| *dialect)
            .chain([responses])
        {
            let mut message = Value::Null;
            for (document, odd) in documents
                .iter()
                .flat_map(|d| odd.iter().map(move |o| (d, o)))
            {
                each_place(document, odd, &mut |changed| {
                    let _ = (dialect.read)(changed);
                    (dialect.complaint)(changed);
                    (dialect.models)(changed);
                    (dialect.stream)(&mut message, changed);
                    (dialect.is_whole)(&message);
                    (dialect.is_over)(&message);
                    tried += 1;
                });
            }
        }
        assert!(tried > 2000, "{tried}");
    }

    fn prompt(bytes: usize) -> Prompt {
        Prompt {
            system: "",
            context: String::new(),
            manifest: crate::ai::ask::Manifest::default(),
            chunk: "x".repeat(bytes),
            task: String::new(),
            nonce: Nonce::new([0; 16]),
        }
    }

    #[test]
    fn a_prompt_that_a_server_cut_to_its_context_is_noticed() {
        for (bytes, tokens, cut) in [
            (16_000, 4096, true),
            (16_000, 4097, false),
            (12_000, 4096, false),
            (30_000, 8192, true),
            (30_000, 0, false),
            (30_000, 10, false),
            (30_000, 1024, false),
            (30_000, 9_000, false),
        ] {
            assert_eq!(
                is_cut(&prompt(bytes), tokens, &mut 0),
                cut,
                "{bytes} {tokens}"
            );
        }
        let mut most = 0;
        assert!(
            !is_cut(&prompt(9_000), 3_000, &mut most) && !is_cut(&prompt(9_000), 3_500, &mut most)
        );
        assert!(is_cut(&prompt(9_000), 3_499, &mut most));
    }
}
