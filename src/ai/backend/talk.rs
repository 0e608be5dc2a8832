//! One conversation with a model: the prompt, the tool calls, the answer.
//!
//! The tools, their limits and their log are the same for all dialects.

use super::dialect::{Talk, TalkTurn, ToolCall, ToolOutcome, Tools};
use super::http::Http;
use crate::ai::ask::{Ask, Cause, Failure, ModelAnswer, Prompt, Repair, Spent};
use crate::ai::tools::Session;
use crate::ai::tree::Tree;
use crate::http::Limits;
use crate::text::first_bytes;
use serde_json::Value;
use std::borrow::Cow;

/// Rounds of tool calls, at most. The [`Session`] limits the number of calls and their bytes.
const MAX_ROUNDS: usize = 12;
/// Requests of one conversation, at most: its tool rounds, one more request after a prose answer,
/// and the answer.
pub(super) const MOST_REQUESTS: u32 = MAX_ROUNDS as u32 + 2;
/// Bytes of prompt per token, at most. English and code have 3 to 5.
const MOST_BYTES: u64 = 12;
/// Bytes of a reply that are sent back to the model, at most.
const MAX_TEXT: usize = 16 << 20;

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

/// Holds the conversation. Adds the usage of each request to `spent`, also if a later one fails.
async fn converse(
    http: &Http,
    ask: &Ask<'_>,
    around: Option<&Tree<'_>>,
    spent: &mut Spent,
) -> Result<ModelAnswer, Failure> {
    let limits = Limits::new(ask.deadline, ask.stop).patient_until(ask.patience);
    let model = http.ready(ask.deadline, ask.stop).await?;
    let mut conversation = Conversation::new(http, ask, around);
    loop {
        let tools = conversation.tools();
        let constrained = tools != Tools::Open || http.schema_beside_tools();
        let talk = Talk {
            model,
            prompt: ask.prompt,
            instructions: &conversation.instructions,
            schema: constrained.then_some(ask.schema),
            tools,
            is_editable: conversation.is_editable,
            turns: &conversation.turns,
            own: http.is_own(),
            begun: ask.begun,
            batch: ask.batch,
        };
        let said = http.say(&talk, ask.quota, &limits, spent).await?;
        spent.add(&said.usage);
        if let Some((cause, message)) = said.stopped {
            return Err(Failure::new(cause, message));
        }
        conversation.check_prompt_was_read(said.usage.input_tokens)?;
        if !said.calls.is_empty() {
            conversation.run_tools(said.message, said.calls, tools, &limits)?;
            continue;
        }
        if said.text.trim().is_empty() {
            return Err(Failure::new(Cause::Malformed, "the answer is empty"));
        }
        if !constrained && !is_answer(&said.text) {
            conversation.request_answer(said.message);
            continue;
        }
        let session = conversation.session;
        let (read, lookups) = session.map(Session::finish).unwrap_or_default();
        return Ok(ModelAnswer {
            text: said.text,
            usage: *spent,
            read,
            lookups,
            model: said.model.unwrap_or_else(|| model.to_owned()),
        });
    }
}

/// The state of one conversation.
struct Conversation<'c, 'r> {
    http: &'c Http,
    ask: &'c Ask<'c>,
    /// The same in every round, so that the prefix of the conversation stays in the provider's
    /// cache.
    instructions: Cow<'static, str>,
    /// The tools of the model; `None` if it gets none.
    session: Option<Session<'c, 'r>>,
    /// True if the tools can edit files.
    is_editable: bool,
    turns: Vec<TalkTurn>,
    /// Rounds of tool calls so far.
    rounds: usize,
    /// Highest token count of a prompt so far.
    most_tokens: u64,
    /// True if the model was asked for the answer, so that it gets no more tools.
    must_answer: bool,
}

impl<'c, 'r> Conversation<'c, 'r> {
    /// Starts a conversation. A request that repairs a reply needs no tools: the earlier reply is in
    /// the conversation.
    fn new(http: &'c Http, ask: &'c Ask<'c>, around: Option<&'c Tree<'r>>) -> Self {
        let tree = around.filter(|_| ask.repair.is_none());
        let needs_form = tree.is_some() && !http.schema_beside_tools();
        let repair = ask.repair.map(|repair| repaired(repair, ask.prompt));
        Self {
            http,
            ask,
            instructions: if needs_form {
                Cow::Owned(with_form(ask))
            } else {
                Cow::Borrowed(ask.prompt.system)
            },
            session: tree.map(Session::new),
            is_editable: tree.is_some_and(Tree::is_editable),
            turns: repair.unwrap_or_default(),
            rounds: 0,
            most_tokens: 0,
            must_answer: false,
        }
    }

    /// Returns whether the next request offers tools. They close at their limits, and when the
    /// remaining quota is needed for the answer.
    fn tools(&self) -> Tools {
        let Some(session) = &self.session else {
            return Tools::Absent;
        };
        let is_over = self.must_answer || self.rounds >= MAX_ROUNDS || session.is_over();
        if is_over || !self.ask.quota.affords_tools(self.size()) {
            Tools::Closed
        } else {
            Tools::Open
        }
    }

    /// Returns the bytes of text in the next request.
    fn size(&self) -> usize {
        self.instructions.len()
            + self.ask.prompt.parts().map(str::len).sum::<usize>()
            + self.turns.iter().map(TalkTurn::size).sum::<usize>()
    }

    /// Fails if the server did not read the whole prompt, according to its token count.
    fn check_prompt_was_read(&mut self, tokens: u64) -> Result<(), Failure> {
        let (prompt, may_drop) = (self.ask.prompt, self.http.may_drop());
        if may_drop && is_cut(prompt, tokens, &mut self.most_tokens) {
            let failure = Failure::new(
                Cause::TooLarge,
                "the server cut the prompt to fit its context",
            );
            return Err(
                failure.hint("raise the server's context length (Ollama: OLLAMA_CONTEXT_LENGTH)")
            );
        }
        check_tokens(may_drop, prompt, self.size(), tokens)
    }

    /// Adds the tool calls of the model and their results.
    fn run_tools(
        &mut self,
        message: Value,
        calls: Vec<ToolCall>,
        tools: Tools,
        limits: &Limits<'_>,
    ) -> Result<(), Failure> {
        let (Some(session), Tools::Open) = (&mut self.session, tools) else {
            return Err(Failure::new(
                Cause::Malformed,
                "a tool was called where none is offered, instead of an answer",
            ));
        };
        self.turns.push(TalkTurn::Said(message));
        let mut outcomes = Vec::with_capacity(calls.len());
        for call in calls {
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
        self.turns.push(TalkTurn::Told(outcomes));
        self.rounds += 1;
        Ok(())
    }

    /// Asks for the answer once more, with the schema: without a response schema, the model wrote
    /// prose.
    fn request_answer(&mut self, message: Value) {
        self.must_answer = true;
        self.turns.push(TalkTurn::Said(message));
        self.turns.push(TalkTurn::Asked(last_line(
            "Answer now, in the form that was asked for.",
            self.ask.prompt,
        )));
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
    use super::super::{anthropic, google, openai, responses};
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
        for dialect in [
            &anthropic::DIALECT,
            &google::DIALECT,
            &openai::DIALECT,
            &responses::DIALECT,
        ] {
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
