//! A review by the agent that calls: it gets the questions that a backend would get, and submits
//! its answers.
//!
//! No state is stored between the calls. The ID of a plan is the nonce of its questions, and the ID
//! of a question is a digest of its text, so an answer about another state of the change matches no
//! question.

use super::answers::{kind, schema};
use super::session::source;
use super::stateless::told;
use super::{McpTool, ToolCall, ToolEffect};
use crate::ai::agent::{Agent, AgentQuestion};
use crate::ai::ask::Nonce;
use crate::error::{Error, Result};
use crate::mcp::answer::{ToolAnswer, object};
use crate::mcp::args::{Arg, ArgType, TEXT};
use crate::report;
use crate::report::names::SecretNames;
use crate::request::{CacheUse, Depth, Source};
use crate::review::{self, Review};
use crate::wire;
use crate::wire::answer::{PlannedQuestion, QuestionPlan, Submitted};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bytes of questions in one answer of `review_plan`, at most.
const SHOWN: usize = 100_000;
/// Bytes of one submitted answer, at most.
const MAX_ANSWER: usize = 1 << 20;

const SOURCE: Arg = Arg {
    name: "source",
    about: "The change to review, as in request_review: changes (the default), staged, unstaged, or an object.",
    kind: ArgType::TextOrObject(|| json!({"type": ["string", "object"]})),
    required: false,
};
const SUMMARY: Arg = Arg {
    name: "summary",
    about: "The task, the work done, and the decisions made. The same in both calls.",
    kind: ArgType::Text(TEXT),
    required: false,
};

pub(super) const TOOLS: &[McpTool] = &[
    McpTool {
        name: "review_plan",
        title: "Plan a review by yourself",
        about: "Returns the questions that a reviewer would get about your changes, for you to answer: each by its \
                instructions and answer_schema. Then call submit_findings. Stores nothing.",
        args: &[
            SOURCE,
            SUMMARY,
            Arg {
                name: "question",
                about: "Show only this question: an ID of a plan. Default: all that fit.",
                kind: ArgType::Text(64),
                required: false,
            },
            Arg {
                name: "plan_id",
                about: "The plan of question. Default: a new plan.",
                kind: ArgType::Text(64),
                required: false,
            },
        ],
        answers: || schema(&[kind::<QuestionPlan>]),
        effect: ToolEffect::Reads,
        asks: false,
        run: plan,
        refused: None,
    },
    McpTool {
        name: "submit_findings",
        title: "Submit your findings",
        about: "Checks your answers to review_plan and returns the review. A question without an answer leaves its files \
                unreviewed. open_questions ask you to check claims that block: call again with all answers. Stores nothing.",
        args: &[
            Arg {
                name: "plan_id",
                about: "plan_id of review_plan. Every answer repeats it as nonce.",
                kind: ArgType::Text(64),
                required: true,
            },
            Arg {
                name: "answers",
                about: "An object: for the ID of each question your answer, a JSON object by its answer_schema.",
                kind: ArgType::TextOrObject(answers_schema),
                required: true,
            },
            SOURCE,
            SUMMARY,
        ],
        answers: || schema(&[kind::<Submitted>]),
        effect: ToolEffect::Reads,
        asks: false,
        run: submit,
        refused: None,
    },
];

fn answers_schema() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "object"}})
}

/// Runs the review with the agent as the backend.
fn reviewed(call: &ToolCall<'_>, agent: &Agent) -> Result<Review> {
    let mut request = call.stored()?;
    request.source = Source::Changes { base: None };
    if let Some(value) = call.given.value("source") {
        (request.source, request.files) = source(value)?;
    }
    let summary = call
        .given
        .text("summary")
        .map(str::trim)
        .filter(|summary| !summary.is_empty());
    request.brief.summary = summary.map(str::to_owned);
    // The agent reads other files with its own tools.
    request.overrides.depth = Some(Depth::Quick);
    request.cache = CacheUse::Refused;
    let world = review::World {
        agent: Some(agent),
        ..call.world()
    };
    review::run(&request, &world)
}

fn plan_id(text: &str) -> Result<Nonce> {
    Nonce::parse(text.trim()).ok_or_else(|| {
        let error = Error::usage(format!(
            "plan_id {} is not the ID of a plan",
            super::args::shown(text)
        ));
        error.hint("call review_plan and pass its plan_id")
    })
}

fn plan(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let nonce = call
        .given
        .text("plan_id")
        .map_or_else(|| Ok(Nonce::random()), plan_id)?;
    let agent = Agent::new(nonce.clone(), BTreeMap::new());
    let review = reviewed(call, &agent)?;
    let questions = agent.questions();
    let wanted = call.given.text("question").map(str::trim);
    if let Some(id) = wanted.filter(|id| questions.iter().all(|q| q.id != *id)) {
        let error = Error::usage(format!(
            "question {} is not part of the plan",
            super::args::shown(id)
        ));
        return Err(
            error.hint("the change, the summary or the plan_id is another one: call review_plan without question")
        );
    }
    let mut left = SHOWN;
    let mut all = Vec::with_capacity(questions.len());
    for question in &questions {
        let is_wanted = wanted.is_none_or(|id| id == question.id);
        let fits = is_wanted && question.text.len() <= left;
        left -= if fits { question.text.len() } else { 0 };
        all.push(listed(
            question,
            fits || wanted == Some(question.id.as_str()),
        ));
    }
    let shown = all.iter().filter(|q| q.text.is_some()).count();
    let mut text = format!(
        "plan {}: {} questions, {shown} of them shown\n",
        nonce.as_str(),
        all.len()
    );
    if all.is_empty() {
        text.push_str("The change has nothing for a reviewer: the rules have read all of it.\n");
    }
    for question in all.iter().filter(|q| q.text.is_some()) {
        text.push_str(&format!(
            "question {}\n{}\n{}\n",
            question.id,
            question.instructions,
            question.text.as_deref().unwrap_or_default()
        ));
    }
    let source = SecretNames::of(&review).masked(&review.source.label);
    let plan = QuestionPlan {
        plan_id: nonce.as_str().to_owned(),
        source,
        questions: all,
    };
    Ok(ToolAnswer::new(object(wire::value(&plan)), text))
}

/// Returns a question as an answer lists it.
fn listed(question: &AgentQuestion, is_shown: bool) -> PlannedQuestion {
    PlannedQuestion {
        id: question.id.clone(),
        is_about_a_claim: question.is_about_a_claim,
        bytes: question.text.len(),
        instructions: question.instructions.to_owned(),
        answer_schema: question.schema.clone(),
        text: is_shown.then(|| question.text.clone()),
    }
}

/// Reads the submitted answers, by the IDs of their questions.
fn answers(value: &Value) -> Result<BTreeMap<String, String>> {
    let parsed = match value {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|_| bad_answers("is not JSON"))?
        }
        other => other.clone(),
    };
    let Value::Object(all) = parsed else {
        return Err(bad_answers("is not an object"));
    };
    if all.is_empty() {
        return Err(bad_answers("is empty: nothing would be reviewed"));
    }
    let texts = all.into_iter().map(|(id, answer)| match answer {
        Value::String(text) => (id, text),
        other => (id, other.to_string()),
    });
    let all: BTreeMap<String, String> = texts.collect();
    match all.iter().find(|(_, answer)| answer.len() > MAX_ANSWER) {
        Some((id, _)) => Err(bad_answers(&format!(
            "has more than {MAX_ANSWER} bytes for {}",
            super::args::shown(id)
        ))),
        None => Ok(all),
    }
}

/// Returns the error for invalid answers.
fn bad_answers(what: &str) -> Error {
    Error::usage(format!("answers {what}"))
        .hint("pass an object: for the ID of each question a JSON object")
}

fn submit(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let nonce = plan_id(call.given.text("plan_id").unwrap_or_default())?;
    let answers = answers(call.given.value("answers").unwrap_or(&Value::Null))?;
    let plan_id = nonce.as_str().to_owned();
    let agent = Agent::new(nonce, answers.clone());
    let review = reviewed(call, &agent)?;
    let questions = agent.questions();
    if let Some(unknown) = answers
        .keys()
        .find(|id| questions.iter().all(|q| q.id != **id))
    {
        let error = Error::usage(format!(
            "answers: {} is no question of this plan",
            super::args::shown(unknown)
        ));
        return Err(error.hint(
            "the change, the source or the summary differs from the plan's: call review_plan again",
        ));
    }
    let open: Vec<PlannedQuestion> = questions
        .iter()
        .filter(|q| !q.is_answered)
        .map(|q| listed(q, true))
        .collect();
    let ToolAnswer {
        content: report,
        mut text,
        is_error,
    } = told(&review);
    if !open.is_empty() {
        let count = open.len();
        text.push_str(&format!(
            "open questions: {count}. Answer them and call submit_findings again with all answers.\n"
        ));
    }
    let verdict = report::json::report(&review).verdict;
    let submitted = Submitted {
        plan_id,
        verdict,
        report,
        open_questions: open,
    };
    Ok(ToolAnswer {
        content: object(wire::value(&submitted)),
        text,
        is_error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_an_object_in_any_form() {
        let expected = BTreeMap::from([("a".to_owned(), "{\"x\":1}".to_owned())]);
        for value in [
            json!({"a": {"x": 1}}),
            json!({"a": "{\"x\":1}"}),
            json!("{\"a\": {\"x\": 1}}"),
        ] {
            assert_eq!(answers(&value).unwrap(), expected, "{value}");
        }
        for bad in [
            json!({}),
            json!("{}"),
            json!("x"),
            json!([1]),
            json!({"a": "x".repeat(MAX_ANSWER + 1)}),
        ] {
            assert!(answers(&bad).is_err());
        }
    }
}
