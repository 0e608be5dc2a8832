//! The wire format of a provider, and the parts of a conversation that it translates.
//!
//! A [`Dialect`] only translates. The tools, their limits and their log are the same for all
//! dialects: [`talk`](super::talk) has them.

use super::batch::BatchApi;
use crate::ai::ask::{Begun, Cause, Failure, Prompt, Schema, Spent};
use crate::ai::batch::queue::BatchQueue;
use crate::policy::Effort;
use serde_json::Value;
use std::time::Duration;

/// Longest silence in a stream without pings: the model thinks, or a slow server processes its
/// prompt.
pub(super) const QUIET: Duration = Duration::from_secs(600);

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
    /// The batch interface, if the provider has one.
    pub(super) batch: Option<&'static BatchApi>,
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
    /// The queue of the batch that the request becomes a part of; `None` to send it at once.
    pub(super) batch: Option<&'a BatchQueue>,
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
    pub(super) fn size(&self) -> usize {
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

/// Returns a number of tokens, or 0 if the provider did not count them.
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
