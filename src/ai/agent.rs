//! The author's own agent in place of a backend: it is handed the questions of a review, and its answers are treated as
//! those of any model.
//!
//! Nothing waits for the agent. A first run collects the questions, and every answer is missing. A later run over the
//! same change asks the same questions, and finds the answers that were submitted by the IDs of their questions.

use super::ask::{Answer, Ask, Cause, Failure, Nonce, Prompt, Schema};
use crate::hex;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The name under which it reviews. No backend of a policy can have it.
pub const NAME: &str = "agent:author";
/// Bytes of prompt of one question: what a tool of MCP can hand over at once.
pub(super) const CAPACITY: usize = 60_000;

/// What the agent is asked, and what it submitted.
#[derive(Debug)]
pub struct Agent {
    nonce: Nonce,
    answers: BTreeMap<String, String>,
    asked: Mutex<Vec<Question>>,
}

/// A question of a review.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The same in every run over the same change: 16 hexadecimal digits.
    pub id: String,
    /// True if it asks whether a claim holds; false if it asks for a review of a part.
    pub is_about_a_claim: bool,
    pub instructions: &'static str,
    /// The JSON schema of the answer.
    pub schema: Value,
    /// The change and the task.
    pub text: String,
    pub is_answered: bool,
}

impl Agent {
    /// Takes the answers that were submitted, by the IDs of their questions. `nonce`: what each of them repeats.
    pub fn new(nonce: Nonce, answers: BTreeMap<String, String>) -> Self {
        Self { nonce, answers, asked: Mutex::default() }
    }

    pub(super) fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// Returns the questions of the run, in order.
    pub fn questions(&self) -> Vec<Question> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes a question, and returns the answer that was submitted to it.
    pub(super) fn answer(&self, ask: &Ask<'_>) -> Result<Answer, Failure> {
        let id = id(ask.prompt, ask.schema);
        let answer = self.answers.get(&id);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.iter().all(|q| q.id != id) {
            asked.push(Question {
                is_about_a_claim: ask.schema.name != "review",
                instructions: ask.prompt.system,
                schema: ask.schema.value.clone(),
                text: text(ask.prompt),
                is_answered: answer.is_some(),
                id: id.clone(),
            });
        }
        match answer {
            Some(text) => Ok(Answer { text: text.clone(), ..Answer::default() }),
            None => Err(Failure::new(Cause::Setup, format!("no answer to question {id} was submitted"))),
        }
    }
}

fn text(prompt: &Prompt) -> String {
    let parts = [&prompt.context, &prompt.manifest.text, &prompt.chunk, &prompt.task];
    let parts: Vec<&str> = parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Returns the ID of a question: it depends on every byte that is sent.
fn id(prompt: &Prompt, schema: &Schema) -> String {
    let all = format!("{}\0{}\0{}", schema.name, prompt.system, text(prompt));
    hex::encode(&Sha256::digest(all.as_bytes())[..8])
}
