//! Reads the events of the program, one JSON document a line.
//!
//! Unknown events and keys are passed over. What is no JSON, a second result, and a beginning that says that the
//! program is not set up as it was told, end it.

use super::log::Log;
use super::{OLDEST, Version, failure, too_old};
use crate::ai::ask::{Cause, Failure, Read, Spent};
use crate::ai::snapshot::Snapshot;
use crate::ai::tree::Tree;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// The tool that an answer is given with.
const ANSWER_TOOL: &str = "StructuredOutput";

/// How the program has to be set up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected<'a> {
    /// It may have fewer.
    pub(super) tools: &'a [&'a str],
    pub(super) folder: &'a Path,
}

/// One run of the program.
#[derive(Debug)]
pub(super) struct Session<'a, 't> {
    expected: Expected<'a>,
    log: Option<Log<'a, 't>>,
    model: Option<String>,
    result: Option<Value>,
    fault: Option<Failure>,
    /// What each message of the model cost, by its id.
    messages: BTreeMap<String, Spent>,
    retries: u64,
}

/// What a run of the program came to.
#[derive(Debug)]
pub(super) struct Finished {
    /// `None`: it never said how it is set up.
    pub(super) model: Option<String>,
    pub(super) result: Option<Value>,
    pub(super) read: Vec<Read>,
}

impl<'a, 't> Session<'a, 't> {
    pub(super) fn new(expected: Expected<'a>, around: Option<(&'a Snapshot, &'a Tree<'t>)>) -> Self {
        Self {
            expected,
            log: around.map(|(snapshot, tree)| Log::new(snapshot, tree)),
            model: None,
            result: None,
            fault: None,
            messages: BTreeMap::new(),
            retries: 0,
        }
    }

    /// Takes a line; breaks where nothing that follows can be believed.
    pub(super) fn take(&mut self, line: &[u8]) -> ControlFlow<()> {
        if line.trim_ascii().is_empty() {
            return ControlFlow::Continue(());
        }
        let event = serde_json::from_slice::<Value>(line).ok().filter(Value::is_object);
        let Some(event) = event else {
            let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            let message = format!("it wrote something that is no event: {}", failure::shown(&start, &[]));
            return self.end(Failure::new(Cause::Malformed, message));
        };
        let word = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        match (word("type"), word("subtype")) {
            ("system", "init") => match self.check(&event) {
                Ok(model) => self.model = Some(model),
                Err(failure) => return self.end(failure),
            },
            ("system", "api_retry") => self.retries += 1,
            ("assistant" | "user", _) => self.message(&event),
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

    /// Compares what the program says of itself with what it was told, and returns its model.
    fn check(&self, event: &Value) -> Result<String, Failure> {
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        let version = word("claude_code_version").unwrap_or("of an unknown version");
        if Version::find(version).is_some_and(|v| v < OLDEST) {
            return Err(too_old(&format!("this is claude {}", failure::shown(version, &[]))));
        }
        let unsafe_ = |what: &str| {
            let what = failure::shown(what, &[]);
            Failure::new(Cause::Setup, format!("claude {} {what}", failure::shown(version, &[])))
                .hint(format!("claude {OLDEST} and 2.1.330 are known to do as they are told"))
        };
        let Some(tools) = event.get("tools").and_then(Value::as_array) else {
            return Err(unsafe_("does not say which tools it has"));
        };
        for tool in tools {
            let tool = tool.as_str().unwrap_or_default();
            if tool != ANSWER_TOOL && !self.expected.tools.contains(&tool) {
                return Err(unsafe_(&format!("has a tool that it was not given: {tool}")));
            }
        }
        if event.get("mcp_servers").and_then(Value::as_array).is_some_and(|servers| !servers.is_empty()) {
            return Err(unsafe_("starts servers that it was not given"));
        }
        if word("permissionMode") != Some("dontAsk") {
            return Err(unsafe_("does not keep to the permissions that it was given"));
        }
        if word("cwd").map(Path::new) != Some(self.expected.folder) {
            return Err(unsafe_("does not work in the folder that it was given"));
        }
        Ok(word("model").unwrap_or_default().to_owned())
    }

    fn message(&mut self, event: &Value) {
        let Some(message) = event.get("message") else { return };
        // The program itself speaks with this model when there is nothing to show for it.
        let real = message.get("model").and_then(Value::as_str) != Some("<synthetic>");
        if let (Some(id), Some(usage), true) = (message.get("id").and_then(Value::as_str), message.get("usage"), real) {
            self.messages.insert(id.to_owned(), spent(usage));
        }
        // What agents of the model's own do is not what it saw.
        if event.get("parent_tool_use_id").is_some_and(|id| !id.is_null()) {
            return;
        }
        let Some(log) = &mut self.log else { return };
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            match block.get("type").and_then(Value::as_str) {
                Some("tool_use") => log.called(block),
                Some("tool_result") => log.answered(block),
                _ => {}
            }
        }
    }

    /// Returns what it cost: as the result tells, else as the messages do.
    pub(super) fn usage(&self) -> Spent {
        let mut total = Spent::default();
        self.messages.values().for_each(|one| total.add(one));
        if let Some(result) = &self.result {
            // A run that was broken off counts none in the end.
            let told = result.get("usage").map(spent).filter(|told| told.input_tokens >= total.input_tokens);
            total = told.unwrap_or(total);
            total.cost_usd = result.get("total_cost_usd").and_then(Value::as_f64).filter(|usd| *usd >= 0.0);
        }
        let asked = u64::from(self.model.is_some() || self.result.is_some());
        total.requests = self.retries + (self.messages.len() as u64).max(asked);
        total
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// What made the program's word worthless.
    pub(super) fn finish(self) -> Result<Finished, Failure> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(Finished {
                model: self.model,
                result: self.result,
                read: self.log.map(Log::into_read).unwrap_or_default(),
            }),
        }
    }
}

/// Reads the tokens of a message or a run.
fn spent(usage: &Value) -> Spent {
    let count = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
    let (cached, made) = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    Spent {
        requests: 0,
        input_tokens: count("input_tokens").saturating_add(cached).saturating_add(made),
        cached_tokens: cached,
        output_tokens: count("output_tokens"),
        cost_usd: None,
    }
}
