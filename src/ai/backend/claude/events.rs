//! Parses the events of the program, one JSON document per line.
//!
//! Unknown events and keys are ignored. The run ends on invalid JSON, on a second result, and on an
//! initial event that reports another setup than requested.

use super::log::Log;
use super::{ClaudeVersion, OLDEST, failure, too_old, word};
use crate::ai::ask::{Cause, Failure, Lookups, Read, Spent};
use crate::ai::quota::Grant;
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

/// The tool that the model calls to answer.
const ANSWER_TOOL: &str = "StructuredOutput";

/// The setup that the program must confirm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    /// Names of the allowed tools; the program may report fewer.
    pub(super) tools: &'a [&'a str],
    pub(super) folder: &'a Path,
}

/// One run of the program.
#[derive(Debug)]
pub(super) struct ClaudeSession<'a, 't> {
    expected: Expected<'a>,
    /// Grant from which the requests are reserved.
    grant: Option<&'a Grant<'a>>,
    log: Option<Log<'a, 't>>,
    model: Option<String>,
    result: Option<Value>,
    fault: Option<Failure>,
    /// Usage per message of the model, by message ID.
    messages: BTreeMap<String, Spent>,
    retries: u64,
    answers: Answers,
}

/// Calls of the answer tool, in order.
#[derive(Debug, Default)]
struct Answers {
    /// Message ID and call ID of each.
    given: Vec<(String, String)>,
    /// Calls that the program rejected because of an invalid format.
    rejected: BTreeSet<String>,
}

impl Answers {
    fn give(&mut self, message: &str, id: &str) {
        if !self.given.iter().any(|(_, known)| known == id) {
            self.given.push((message.to_owned(), id.to_owned()));
        }
    }

    /// Returns true if there is more than one answer: two in one message, or two that were not
    /// rejected. The program would return the last of them.
    fn are_several(&self) -> bool {
        let mut messages = BTreeSet::new();
        let in_one_message = self
            .given
            .iter()
            .any(|(message, _)| !messages.insert(message));
        in_one_message
            || self
                .given
                .iter()
                .filter(|(_, id)| !self.rejected.contains(id))
                .count()
                > 1
    }
}

/// The result of a run of the program.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None` if the program never reported its setup.
    pub(super) model: Option<String>,
    pub(super) result: Option<Value>,
    pub(super) read: Vec<Read>,
    pub(super) lookups: Lookups,
}

impl<'a, 't> ClaudeSession<'a, 't> {
    pub(super) fn new(
        expected: Expected<'a>,
        grant: Option<&'a Grant<'a>>,
        around: Option<(&'a Snapshot, &'a Tree<'t>)>,
    ) -> Self {
        Self {
            expected,
            grant,
            log: around.map(|(snapshot, tree)| Log::new(snapshot, tree)),
            model: None,
            result: None,
            fault: None,
            messages: BTreeMap::new(),
            retries: 0,
            answers: Answers::default(),
        }
    }

    /// Parses a line. Breaks if the following lines cannot be trusted.
    pub(super) fn take(&mut self, line: &[u8]) -> ControlFlow<()> {
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        let event = serde_json::from_slice::<Value>(line)
            .ok()
            .filter(Value::is_object);
        let Some(event) = event else {
            let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            let message = format!(
                "unexpected output, not an event: {}",
                failure::shown(&start, &[])
            );
            return self.end(Failure::new(Cause::Malformed, message));
        };
        match (word(&event, "type"), word(&event, "subtype")) {
            ("system", "init") => match self.check(&event) {
                Ok(model) => self.model = Some(model),
                Err(failure) => return self.end(failure),
            },
            ("system", "api_retry") => {
                self.retries += 1;
                return self.count_request(true);
            }
            ("system", subtype) if is_compaction(subtype, &event) => {
                let message = "it compacted its context, so the model did not see all of the prompt at the end";
                return self.end(Failure::new(Cause::TooLarge, message));
            }
            ("assistant" | "user", _) => return self.message(&event),
            ("result", _) if self.result.is_some() => {
                return self.end(Failure::new(Cause::Malformed, "it gave two results"));
            }
            ("result", _) => self.result = Some(event),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn end(&mut self, failure: Failure) -> ControlFlow<()> {
        self.fault.get_or_insert(failure);
        ControlFlow::Break(())
    }

    /// Compares the reported setup with the requested one, and returns the model.
    fn check(&self, event: &Value) -> Result<String, Failure> {
        let version = event
            .get("claude_code_version")
            .and_then(Value::as_str)
            .unwrap_or("of an unknown version");
        if ClaudeVersion::find(version).is_some_and(|v| v < OLDEST) {
            return Err(too_old(&format!(
                "this is claude {}",
                failure::shown(version, &[])
            )));
        }
        let Some(tools) = event.get("tools").and_then(Value::as_array) else {
            return Err(unsafe_setup(version, "does not say which tools it has"));
        };
        for tool in tools {
            let tool = tool.as_str().unwrap_or_default();
            if tool != ANSWER_TOOL && !self.expected.tools.contains(&tool) {
                return Err(unsafe_setup(
                    version,
                    &format!("has a tool that it was not given: {tool}"),
                ));
            }
        }
        if event
            .get("mcp_servers")
            .and_then(Value::as_array)
            .is_some_and(|servers| !servers.is_empty())
        {
            return Err(unsafe_setup(
                version,
                "starts servers that it was not given",
            ));
        }
        if word(event, "permissionMode") != "dontAsk" {
            return Err(unsafe_setup(
                version,
                "does not keep to the permissions that it was given",
            ));
        }
        if event.get("cwd").and_then(Value::as_str).map(Path::new) != Some(self.expected.folder) {
            return Err(unsafe_setup(
                version,
                "does not work in the folder that it was given",
            ));
        }
        Ok(word(event, "model").to_owned())
    }

    /// Counts another request: a retry that the program is about to send, or a message of another
    /// turn, whose number `--max-turns` limits. Ends the program if a limit would be exceeded.
    fn count_request(&mut self, is_retry: bool) -> ControlFlow<()> {
        let Some(grant) = self.grant else {
            return ControlFlow::Continue(());
        };
        let taken = if is_retry {
            grant.take_spare()
        } else {
            grant.take()
        };
        match grant.passed(&self.usage()).map_or(taken, Err) {
            Ok(()) => ControlFlow::Continue(()),
            Err(limit) => self.end(limit),
        }
    }

    fn message(&mut self, event: &Value) -> ControlFlow<()> {
        let Some(message) = event.get("message") else {
            return ControlFlow::Continue(());
        };
        // The program uses this model name for messages that it generates itself.
        let real = message.get("model").and_then(Value::as_str) != Some("<synthetic>");
        if let (Some(id), Some(usage), true) = (
            message.get("id").and_then(Value::as_str),
            message.get("usage"),
            real,
        ) {
            let is_new = self.messages.insert(id.to_owned(), spent(usage)).is_none();
            // The grant covers the first request.
            if is_new && self.messages.len() > 1 && self.count_request(false).is_break() {
                return ControlFlow::Break(());
            }
        }
        if let (Some(stop), true) = (message.get("stop_reason").and_then(Value::as_str), real)
            && let Some(failure) = failure::of_stop(stop)
        {
            return self.end(failure);
        }
        if has_edits(message) {
            let message = "it dropped parts of its context, so the model did not see all of the prompt at the end";
            return self.end(Failure::new(Cause::TooLarge, message));
        }
        // The model did not see the results of its subagents.
        if event
            .get("parent_tool_use_id")
            .is_some_and(|id| !id.is_null())
        {
            return ControlFlow::Continue(());
        }
        let id = message
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        for block in message
            .get("content")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            match word(block, "type") {
                "tool_use" if word(block, "name") == ANSWER_TOOL => {
                    self.answers.give(id, word(block, "id"));
                }
                "tool_use" => self.log.iter_mut().for_each(|log| log.called(block)),
                "tool_result" => {
                    let answered = word(block, "tool_use_id");
                    let is_answer = self.answers.given.iter().any(|(_, id)| id == answered);
                    let is_error = block.get("is_error") == Some(&Value::Bool(true));
                    if is_answer && is_error {
                        self.answers.rejected.insert(answered.to_owned());
                    }
                    self.log.iter_mut().for_each(|log| log.answered(block));
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the tokens of the largest prompt according to the provider, or 0 if it counted none.
    pub(super) fn prompt_tokens(&self) -> u64 {
        let largest = self
            .messages
            .values()
            .map(|m| m.input_tokens)
            .max()
            .unwrap_or_default();
        if largest > 0 {
            largest
        } else {
            self.usage().input_tokens
        }
    }

    /// Returns the usage from the result event, or else the sum over the messages.
    pub(super) fn usage(&self) -> Spent {
        let mut total = Spent::default();
        self.messages.values().for_each(|one| total.add(one));
        if let Some(result) = &self.result {
            // The result of an interrupted run contains no usage.
            let told = result
                .get("usage")
                .map(spent)
                .filter(|told| told.input_tokens >= total.input_tokens);
            total = told.unwrap_or(total);
            total.cost_usd = result
                .get("total_cost_usd")
                .and_then(Value::as_f64)
                .filter(|usd| *usd >= 0.0);
        }
        let asked = u64::from(self.model.is_some() || self.result.is_some());
        total.requests = self.retries + (self.messages.len() as u64).max(asked);
        total
    }

    /// Ends the parsing.
    ///
    /// # Errors
    ///
    /// Returns the first fault of the run, or a failure if there are several answers.
    pub(super) fn finish(self) -> Result<Finished, Failure> {
        match self.fault {
            Some(fault) => Err(fault),
            None if self.answers.are_several() => {
                Err(Failure::new(Cause::Malformed, "it gave two answers"))
            }
            None => {
                let (read, lookups) = self.log.map(Log::finish).unwrap_or_default();
                Ok(Finished {
                    model: self.model,
                    result: self.result,
                    read,
                    lookups,
                })
            }
        }
    }
}

/// Returns true for an event that reports that the context is being compacted, or was compacted.
fn is_compaction(subtype: &str, event: &Value) -> bool {
    let is_compacting = event
        .get("status")
        .and_then(Value::as_str)
        .is_some_and(|s| s.contains("compact"));
    subtype.contains("compact") || event.get("compact_metadata").is_some() || is_compacting
}

/// Returns true if the provider dropped parts of the context before the model read it.
fn has_edits(message: &Value) -> bool {
    let edits = message
        .pointer("/context_management/applied_edits")
        .and_then(Value::as_array);
    edits.is_some_and(|edits| !edits.is_empty())
}

/// Builds the failure of a program whose reported setup is unsafe.
fn unsafe_setup(version: &str, what: &str) -> Failure {
    let what = failure::shown(what, &[]);
    Failure::new(
        Cause::Setup,
        format!("claude {} {what}", failure::shown(version, &[])),
    )
    .hint(format!("tested versions: claude {OLDEST} to 2.1.330"))
}

/// Parses the usage of a message or a run.
fn spent(usage: &Value) -> Spent {
    let (cached, made) = (
        count(usage, "cache_read_input_tokens"),
        count(usage, "cache_creation_input_tokens"),
    );
    Spent {
        requests: 0,
        input_tokens: count(usage, "input_tokens")
            .saturating_add(cached)
            .saturating_add(made),
        cached_tokens: cached,
        written_tokens: made,
        output_tokens: count(usage, "output_tokens"),
        cost_usd: None,
    }
}

/// Returns a number of tokens, or 0 if the event does not contain it.
fn count(usage: &Value, key: &str) -> u64 {
    usage.get(key).and_then(Value::as_u64).unwrap_or_default()
}
