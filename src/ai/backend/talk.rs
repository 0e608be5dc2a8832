//! One conversation with a model: the prompt, the tool calls it leads to, the answer.
//!
//! A [`Dialect`] translates between this and a provider's words, and decides nothing: the tools, their limits and
//! their log are the same for all of them.

use super::http::Http;
use crate::ai::ask::{Answer, Ask, Begun, Cause, Failure, Prompt, Repair, Schema, Spent};
use crate::ai::tools::Session;
use crate::ai::tree::Tree;
use crate::http::Limits;
use crate::policy::Effort;
use serde_json::Value;
use std::borrow::Cow;
use std::time::Duration;

/// How often a model may come back with tool calls; their number and bytes are bounded by the [`Session`].
const MAX_ROUNDS: usize = 12;
/// Requests of one conversation at most: its tool rounds, prose that is asked about once more, the answer.
pub(super) const MOST_REQUESTS: u32 = MAX_ROUNDS as u32 + 2;
/// Bytes of prompt that one token stands for at most. English and code have 3 to 5.
const MOST_BYTES: u64 = 12;
/// The longest silence within a stream without pings: a model that thinks, or a slow server that reads its prompt.
pub(super) const QUIET: Duration = Duration::from_secs(600);
/// Bytes of one argument of a call that are given back to the model at most.
const MAX_TEXT: usize = 16 << 20;

/// A provider's words.
#[derive(Debug)]
pub(super) struct Dialect {
    /// The address of the provider itself.
    pub(super) home: &'static str,
    /// The folder that an address ends with: `v1`.
    pub(super) version: &'static str,
    /// Whether only an address without any path lacks the version.
    pub(super) path_is_whole: bool,
    /// The header that carries the key, and what stands in front of it.
    pub(super) key: (&'static str, &'static str),
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// Bytes of prompt that every model of the provider takes.
    pub(super) capacity: usize,
    /// Whether the form of the answer can be prescribed while tools are offered; never assumed of servers that
    /// are merely compatible.
    pub(super) schema_beside_tools: bool,
    /// Where questions go, below the version, for a model.
    pub(super) path: fn(&str) -> Vec<String>,
    /// What follows the path; may be empty.
    pub(super) query: &'static str,
    /// The body of a question.
    pub(super) body: fn(&Talk<'_>) -> Value,
    /// Limits the tokens of the answer in the body of a question; the flag: the provider itself is asked.
    pub(super) bound: fn(&mut Value, u64, bool),
    /// Sets the effort of a model in the body of a question.
    pub(super) effort: fn(&mut Value, Effort, &str),
    /// Reads the body of an answer, or says why it is none.
    pub(super) read: fn(&Value) -> Result<Said, Failure>,
    /// Adds an event to a streamed answer: in the end it is what an answer in one piece would have been.
    pub(super) stream: fn(&mut Value, &Value),
    /// Returns true if nothing follows the last event.
    pub(super) is_over: fn(&Value) -> bool,
    /// Returns true if a streamed answer may end here.
    pub(super) is_whole: fn(&Value) -> bool,
    /// Removes what asks for a stream from the body of a question; false: the dialect only streams.
    pub(super) unstream: fn(&mut Value) -> bool,
    /// The longest silence within a stream. Only Anthropic sends pings while a model thinks.
    pub(super) idle: Duration,
    /// Reads the body of an error.
    pub(super) complaint: fn(&Value) -> Complaint,
    /// What follows `models` in the address of the list.
    pub(super) models_query: &'static str,
    /// Reads the list of models, as far as they can be asked.
    pub(super) models: fn(&Value) -> Vec<String>,
    /// Compatible servers of this kind are known to drop what does not fit their context, and to say nothing.
    pub(super) drops: bool,
    /// The first model of the list is the one to ask where none is configured.
    pub(super) newest_first: bool,
}

/// A question as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Talk<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a Prompt,
    /// The instructions of the prompt; with the form of the answer where it cannot be prescribed all the time.
    pub(super) instructions: &'a str,
    /// The form of the answer; `None`: not prescribed this time.
    pub(super) schema: Option<&'a Schema>,
    pub(super) tools: Tools,
    /// Whether tools that change files are among them.
    pub(super) is_editable: bool,
    /// What followed the prompt.
    pub(super) turns: &'a [Turn],
    /// The provider itself is asked, not a server that is compatible.
    pub(super) own: bool,
    pub(super) begun: Option<&'a Begun>,
}

/// What a model may do in addition to answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tools {
    Absent,
    Open,
    /// There were tools; now it has to answer.
    Closed,
}

/// What followed the prompt, in order.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    /// The model's message, in the provider's words: given back as it came.
    Said(Value),
    /// The model's message where only its text is known.
    Replied(String),
    /// What the tools answered.
    Told(Vec<Outcome>),
    /// Something more that the model is told.
    Asked(String),
}

/// The answer of a tool.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) text: String,
}

/// What a model said.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// The message, for [`Turn::Said`].
    pub(super) message: Value,
    /// Why it stopped, if not because it was done.
    pub(super) stopped: Option<(Cause, String)>,
    /// Without the number of requests.
    pub(super) usage: Spent,
    pub(super) model: Option<String>,
}

/// A tool that a model calls.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// An object, or its text.
    pub(super) arguments: Value,
}

/// What a server says is wrong.
#[derive(Clone, Debug, Default)]
pub(super) struct Complaint {
    /// The provider's name for it: `rate_limit_error`.
    pub(super) kind: String,
    pub(super) message: String,
    /// The status that the error stands for, where it came inside of a good answer.
    pub(super) status: Option<u16>,
    pub(super) retry_after: Option<Duration>,
    /// No credit is left: waiting does not help.
    pub(super) spent: bool,
    /// The request does not fit the model.
    pub(super) too_large: bool,
}

impl Prompt {
    /// Returns the parts behind the instructions that are not empty.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        [&self.context, &self.manifest.text, &self.chunk, &self.task]
            .into_iter()
            .map(String::as_str)
            .filter(|p| !p.is_empty())
    }
}

/// Asks, lets the model look around, and returns its answer.
pub(super) async fn hold(http: &Http, ask: &Ask<'_>, around: Option<&Tree<'_>>) -> Result<Answer, Failure> {
    let mut spent = Spent::default();
    let result = converse(http, ask, around, &mut spent).await;
    result.map_err(|mut failure| {
        failure.usage = Box::new(spent);
        failure
    })
}

async fn converse(http: &Http, ask: &Ask<'_>, around: Option<&Tree<'_>>, spent: &mut Spent) -> Result<Answer, Failure> {
    let limits = Limits::new(ask.deadline, ask.stop).patient_until(ask.patience);
    let model = http.ready(ask.deadline, ask.stop).await?;
    // A reply that could not be read is put right from memory.
    let mut session = around.filter(|_| ask.repair.is_none()).map(Session::new);
    let mut turns = ask.repair.map(|repair| repaired(repair, ask.prompt)).unwrap_or_default();
    let mut rounds = 0;
    let mut most = 0;
    let mut now_answer = false;
    // The same in every round, so that what stands in front of the conversation stays as it was.
    let is_told = session.is_some() && !http.schema_beside_tools();
    let instructions = if is_told { Cow::Owned(with_form(ask)) } else { Cow::Borrowed(ask.prompt.system) };
    loop {
        let tools = match &session {
            None => Tools::Absent,
            Some(s) if now_answer || rounds >= MAX_ROUNDS || s.is_over() => Tools::Closed,
            // What is left is for the answer.
            Some(_) if !ask.quota.affords_tools(size(&instructions, ask.prompt, &turns)) => Tools::Closed,
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
            let failure = Failure::new(Cause::TooLarge, "the server cut the prompt to fit its context");
            return Err(failure.hint("raise the server's context length (Ollama: OLLAMA_CONTEXT_LENGTH)"));
        }
        check_tokens(http.may_drop(), ask.prompt, size(&instructions, ask.prompt, &turns), said.usage.input_tokens)?;
        if said.calls.is_empty() {
            if said.text.trim().is_empty() {
                return Err(Failure::new(Cause::Malformed, "the answer is empty"));
            }
            if !constrained && !is_answer(&said.text) {
                // Without a prescribed form it wrote prose: once more, with it.
                now_answer = true;
                turns.push(Turn::Said(said.message));
                turns.push(Turn::Asked(last_line("Answer now, in the form that was asked for.", ask.prompt)));
                continue;
            }
            let (read, lookups) = session.map(Session::finish).unwrap_or_default();
            return Ok(Answer {
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
        turns.push(Turn::Said(said.message));
        let mut outcomes = Vec::with_capacity(said.calls.len());
        for call in said.calls {
            // A tool may read many files: a run that is stopped, or late, must not wait for the rest.
            limits.check()?;
            let text = session.call(&call.name, &call.arguments);
            outcomes.push(Outcome { id: call.id, name: call.name, text });
        }
        turns.push(Turn::Told(outcomes));
        rounds += 1;
    }
}

/// Returns the instructions with the form of the answer: for servers that do not take it beside tools.
fn with_form(ask: &Ask<'_>) -> String {
    let (system, form) = (ask.prompt.system.trim_end(), &ask.schema.value);
    format!("{system}\n\nThe schema that your answer follows, every member of it present:\n{form}\n")
}

/// The turns that ask for a reply once more.
fn repaired(repair: &Repair, prompt: &Prompt) -> Vec<Turn> {
    let reply = match repair.reply.trim() {
        "" => "(nothing)",
        reply => &reply[..reply.floor_char_boundary(MAX_TEXT)],
    };
    let problem = format!(
        "Your reply cannot be used: {}\nReply once more with the complete answer: one JSON document in the form that \
         was asked for, and nothing else.",
        repair.problem
    );
    vec![Turn::Replied(reply.to_owned()), Turn::Asked(last_line(&problem, prompt))]
}

fn last_line(text: &str, prompt: &Prompt) -> String {
    format!("{text}\nnonce: {}", prompt.nonce.as_str())
}

/// Returns true if a server read less than it was sent: its count of tokens is exactly a size that contexts have and
/// too small for the prompt, or smaller than it was before in the same conversation. Ollama does both without a
/// word, and what it dropped would pass as reviewed.
fn is_cut(prompt: &Prompt, tokens: u64, most: &mut u64) -> bool {
    let bytes = prompt.system.len() + prompt.parts().map(str::len).sum::<usize>();
    let full = tokens >= 2048 && tokens.is_multiple_of(1024) && tokens.saturating_mul(3) < bytes as u64;
    let shrunk = tokens > 0 && tokens < *most;
    *most = tokens.max(*most);
    full || shrunk
}

/// Returns how many bytes of text a round sends.
fn size(instructions: &str, prompt: &Prompt, turns: &[Turn]) -> usize {
    let turn = |turn: &Turn| match turn {
        Turn::Said(_) => 0,
        Turn::Replied(text) | Turn::Asked(text) => text.len(),
        Turn::Told(outcomes) => outcomes.iter().map(|o| o.text.len()).sum(),
    };
    instructions.len() + prompt.parts().map(str::len).sum::<usize>() + turns.iter().map(turn).sum::<usize>()
}

/// Fails if the provider counted fewer tokens than so many bytes of prompt can have, cached ones included:
/// then the model did not get all of it. A count of 0 says nothing.
pub(super) fn check_tokens(may_drop: bool, prompt: &Prompt, bytes: usize, tokens: u64) -> Result<(), Failure> {
    if tokens == 0 || bytes as u64 <= tokens.saturating_mul(MOST_BYTES) {
        return Ok(());
    }
    let message =
        format!("the provider counted {tokens} tokens for a prompt of {bytes} bytes: it did not read all of it");
    // Smaller parts help only where the part is what does not fit.
    let fixed = bytes.saturating_sub(prompt.chunk.len()) as u64;
    let is_smaller_enough = may_drop && fixed <= tokens.saturating_mul(MOST_BYTES);
    Err(Failure::new(if is_smaller_enough { Cause::TooLarge } else { Cause::Malformed }, message))
}

/// Returns true if a text may be the answer, and not what a model says on its way there.
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

    /// Calls `then` with a document once for each of its values, that value replaced.
    fn each_place(document: &Value, with: &Value, then: &mut dyn FnMut(&Value)) {
        fn paths(value: &Value, at: &str, out: &mut Vec<String>) {
            out.push(at.to_owned());
            match value {
                Value::Object(o) => o.iter().for_each(|(k, v)| paths(v, &format!("{at}/{k}"), out)),
                Value::Array(l) => l.iter().enumerate().for_each(|(i, v)| paths(v, &format!("{at}/{i}"), out)),
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
        for dialect in DIALECTS.iter().map(|(_, dialect)| *dialect).chain([responses]) {
            let mut message = Value::Null;
            for (document, odd) in documents.iter().flat_map(|d| odd.iter().map(move |o| (d, o))) {
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

    #[test]
    fn a_prompt_that_a_server_cut_to_its_context_is_noticed() {
        let prompt = |bytes: usize| Prompt {
            system: "",
            context: String::new(),
            manifest: crate::ai::ask::Manifest::default(),
            chunk: "x".repeat(bytes),
            task: String::new(),
            nonce: Nonce::new([0; 16]),
        };
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
            assert_eq!(is_cut(&prompt(bytes), tokens, &mut 0), cut, "{bytes} {tokens}");
        }
        let mut most = 0;
        assert!(!is_cut(&prompt(9_000), 3_000, &mut most) && !is_cut(&prompt(9_000), 3_500, &mut most));
        assert!(is_cut(&prompt(9_000), 3_499, &mut most));
    }
}
