//! The judge's menu: a change against its contract, a proposal, files, a disagreement, and who can be asked.
//!
//! Clients name files and nothing else: what a model is asked is fixed.

use super::review_words as words;
use super::{Call, Effect, Tool, schema};
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::judge::{self, JudgeAsk, MAX_TIMEOUT, REPORT_DIR, TIMEOUT};
use crate::mcp::answer::{Answer, document};
use crate::mcp::args::{Arg, Kind};
use crate::wire::judge::Outcome;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;

const PATH: Kind = Kind::Text(4096);

pub(super) const TOOLS: &[Tool] = &[Tool {
    name: "claude_judge_review",
    title: "Judge a task",
    about: "Reviews the change against a task contract (specification, requirements, acceptance criteria, changed \
            files) and answers PASS, CONDITIONAL, FAIL or CRITICAL_HALT. Writes JUDGE_REPORT.md and JUDGE_REPORT.json \
            into report_dir.",
    args: &[
        Arg { name: "contract_path", about: "Path to TASK_CONTRACT.json.", kind: PATH, required: true },
        Arg {
            name: "report_dir",
            about: "The folder of the two reports. Default: _handoff.",
            kind: PATH,
            required: false,
        },
        Arg {
            name: "timeout_seconds",
            about: "How long it may take.",
            kind: Kind::Number { from: 1, to: MAX_TIMEOUT.as_secs() as i64, default: TIMEOUT.as_secs() as i64 },
            required: false,
        },
    ],
    answers: judgement,
    effect: Effect::Adds,
    asks: true,
    run: judge,
}];

impl Call<'_> {
    /// Returns the folder that is worked in: the repository that is served, or, where there is none, the folder.
    pub(super) fn home(&self) -> Result<PathBuf> {
        let root = self.fence.root();
        match Repo::find(root, self.env)? {
            Some(_) => self.fence.repository(None, self.env),
            None => Ok(root.to_owned()),
        }
    }
}

fn judge(call: &Call<'_>) -> Result<Answer> {
    let root = call.home()?;
    let contract = call.fence.document(call.given.text("contract_path").unwrap_or_default(), &root)?;
    let mut ask = JudgeAsk::new(root, contract);
    let folder = call.given.text("report_dir").unwrap_or(REPORT_DIR);
    if folder.is_empty() || folder.chars().any(char::is_control) || folder.starts_with('~') {
        return Err(Error::usage("report_dir is no path").hint("name a folder inside the root: _handoff"));
    }
    ask.report_dir = PathBuf::from(folder);
    ask.config = call.config.map(ToOwned::to_owned);
    if let Some(seconds) = call.given.number("timeout_seconds") {
        ask.timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or(TIMEOUT.as_secs()));
    }
    let judged = judge::judge(&ask, &call.world())?;
    let mut text = format!("{}\n", judged.summary);
    if let Some(error) = &judged.error {
        text.push_str(&format!("error: {error}\n"));
    }
    if let Some(path) = &judged.report_md_path {
        text.push_str(&format!("report: {path}\n"));
    }
    Ok(ended(document(&judged), text, judged.outcome))
}

/// Makes an answer of what says itself how it went.
fn ended(content: serde_json::Map<String, Value>, mut text: String, outcome: Outcome) -> Answer {
    if outcome == Outcome::Error {
        text.push_str("Do not call this tool again with the same arguments.\n");
    }
    if outcome == Outcome::Incomplete {
        text = format!("INCOMPLETE: this is no approval. Do not call this tool in a loop.\n{text}");
    }
    let is_error = outcome == Outcome::Error;
    Answer { is_error, ..Answer::new(content, format!("outcome: {}\n{text}", words::name(&outcome))) }
}

fn judgement() -> Value {
    schema(json!({
        "success": {"type": "boolean", "description": "There is a verdict"},
        "verdict": {"type": ["string", "null"], "enum": ["PASS", "CONDITIONAL", "FAIL", "CRITICAL_HALT", null]},
        "blocking_issues_count": {"type": "integer"},
        "report_md_path": {"type": ["string", "null"]},
        "report_json_path": {"type": ["string", "null"]},
        "error": {"type": ["string", "null"]},
        "timed_out": {"type": "boolean"},
        "duration_ms": {"type": "integer"},
        "summary": {"type": "string"},
    }))
}
