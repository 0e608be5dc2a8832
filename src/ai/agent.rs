//! The agent of the author in place of a backend: it receives the questions of a review, and its
//! answers are treated like those from a model.
//!
//! The run does not wait for the agent. A first run collects the questions, and every answer is
//! missing. A later run over the same change asks the same questions, and finds the submitted
//! answers by the IDs of their questions.

use super::ask::{Ask, Cause, Failure, ModelAnswer, Nonce, Prompt, Schema};
use crate::hex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Name of the reviewer. No backend of a policy can have it.
pub const NAME: &str = "agent:author";
/// Bytes of the prompt of one question, at most: the amount that an MCP tool can return at once.
pub(super) const CAPACITY: usize = 60_000;

/// The questions for the agent, and its submitted answers.
#[derive(Debug)]
pub struct Agent {
    nonce: Nonce,
    answers: BTreeMap<String, String>,
    asked: Mutex<Vec<AgentQuestion>>,
}

/// A question of a review.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentQuestion {
    /// The same in every run over the same change: 16 hexadecimal digits.
    pub id: String,
    /// True if it asks whether a claim is correct; false if it asks for a review of a part.
    pub is_about_a_claim: bool,
    pub instructions: &'static str,
    /// JSON schema of the answer.
    pub schema: Value,
    /// The change and the task.
    pub text: String,
    pub is_answered: bool,
}

impl Agent {
    /// Creates an agent with its submitted answers, by the IDs of their questions. `nonce` is the
    /// nonce that each answer must repeat.
    pub fn new(nonce: Nonce, answers: BTreeMap<String, String>) -> Self {
        Self {
            nonce,
            answers,
            asked: Mutex::default(),
        }
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns the questions of the run, in order.
    pub fn questions(&self) -> Vec<AgentQuestion> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Records a question, and returns the submitted answer.
    pub(super) fn answer(&self, ask: &Ask<'_>) -> Result<ModelAnswer, Failure> {
        let id = id(ask.prompt, ask.schema);
        let answer = self.answers.get(&id);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.iter().all(|q| q.id != id) {
            asked.push(AgentQuestion {
                is_about_a_claim: ask.schema.name != "review",
                instructions: ask.prompt.system,
                schema: ask.schema.value.clone(),
                text: text(ask.prompt),
                is_answered: answer.is_some(),
                id: id.clone(),
            });
        }
        match answer {
            Some(text) => Ok(ModelAnswer {
                text: text.clone(),
                ..ModelAnswer::default()
            }),
            None => Err(Failure::new(
                Cause::Setup,
                format!("no answer to question {id} was submitted"),
            )),
        }
    }
}

fn text(prompt: &Prompt) -> String {
    let parts = [
        &prompt.context,
        &prompt.manifest.text,
        &prompt.chunk,
        &prompt.task,
    ];
    let parts: Vec<&str> = parts
        .into_iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n\n")
}

/// Returns the ID of a question, which depends on every byte of the prompt.
fn id(prompt: &Prompt, schema: &Schema) -> String {
    let all = format!("{}\0{}\0{}", schema.name, prompt.system, text(prompt));
    hex::encode(&Sha256::digest(all.as_bytes())[..8])
}
