//! The tools of the judge: a change against its contract, a proposal, files, a disagreement, and
//! the health of the backends.
//!
//! Clients can only name files. The questions to models are fixed.

use super::answers::{kind, schema};
use super::{McpTool, ToolCall, ToolEffect, stateless};
use crate::counsel::{self, CounselAsk, Dispute, MAX_AUDITED};
use crate::doctor;
use crate::error::{Error, Result};
use crate::judge::{self, JudgeAsk, MAX_TIMEOUT, REPORT_DIR, TIMEOUT};
use crate::mcp::answer::{ToolAnswer, object};
use crate::mcp::args::{Arg, ArgType};
use crate::wire;
use crate::wire::counsel::{Conduct, Health, ProposalCheck, Resolution};
use crate::wire::judge::{Judgement, QuestionOutcome};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATH: ArgType = ArgType::Text(4096);

pub(super) const TOOLS: &[McpTool] = &[
    McpTool {
        name: "claude_judge_review",
        title: "Judge a task",
        about: "Reviews the change against a task contract (specification, requirements, acceptance criteria, changed \
            files) and answers PASS, CONDITIONAL, FAIL or CRITICAL_HALT. Writes JUDGE_REPORT.md and JUDGE_REPORT.json \
            into report_dir.",
        args: &[
            Arg {
                name: "contract_path",
                about: "Path to TASK_CONTRACT.json.",
                kind: PATH,
                required: true,
            },
            Arg {
                name: "report_dir",
                about: "Folder for both reports. Default: _handoff.",
                kind: PATH,
                required: false,
            },
            Arg {
                name: "timeout_seconds",
                about: "Time limit in seconds.",
                kind: ArgType::Number {
                    from: 1,
                    to: MAX_TIMEOUT.as_secs() as i64,
                    default: TIMEOUT.as_secs() as i64,
                },
                required: false,
            },
        ],
        answers: || schema(&[kind::<Judgement>]),
        effect: ToolEffect::Adds,
        asks: true,
        run: judge,
        refused: Some(refused),
    },
    McpTool {
        name: "claude_validate_proposal",
        title: "Check a proposal",
        about: "Checks whether a proposal (PROPOSAL_FINAL.md) is complete and ready for work. Reads only the proposal.",
        args: &[Arg {
            name: "proposal_path",
            about: "Path to the proposal.",
            kind: PATH,
            required: true,
        }],
        answers: || schema(&[kind::<ProposalCheck>]),
        effect: ToolEffect::Reads,
        asks: true,
        run: proposal,
        refused: None,
    },
    McpTool {
        name: "claude_security_audit",
        title: "Audit files for weaknesses",
        about: "Reviews whole files for security weaknesses at depth thorough. Returns the same result as review_code.",
        args: &[
            Arg {
                name: "files",
                about: "Paths of the files, relative to working_directory.",
                kind: ArgType::Texts {
                    most: MAX_AUDITED,
                    bytes: 4096,
                },
                required: true,
            },
            Arg {
                name: "working_directory",
                about: "Folder at or below the served folder. Default: the served folder.",
                kind: PATH,
                required: false,
            },
        ],
        answers: stateless::answers,
        effect: ToolEffect::Reads,
        asks: true,
        run: audit,
        refused: None,
    },
    McpTool {
        name: "claude_resolve_conflict",
        title: "Settle a disagreement",
        about: "Decides whether the judge or the floor manager, who disputes the judge's report, is right. Uses only the three documents.",
        args: &[
            Arg {
                name: "contract_path",
                about: "Path to TASK_CONTRACT.json.",
                kind: PATH,
                required: true,
            },
            Arg {
                name: "rebuttal_path",
                about: "Path to the rebuttal.",
                kind: PATH,
                required: true,
            },
            Arg {
                name: "judge_report_path",
                about: "Path to the judge's report.",
                kind: PATH,
                required: true,
            },
        ],
        answers: || schema(&[kind::<Resolution>]),
        effect: ToolEffect::Reads,
        asks: true,
        run: conflict,
        refused: None,
    },
    McpTool {
        name: "claude_health",
        title: "Check backends",
        about: "Checks whether the Claude program and the backends of the policy are available, without sending a request to a model.",
        args: &[],
        answers: || schema(&[kind::<Health>]),
        effect: ToolEffect::Reads,
        asks: false,
        run: health,
        refused: None,
    },
];

/// Builds the request from the arguments, without the contract.
fn asked(call: &ToolCall<'_>) -> Result<JudgeAsk> {
    let root = call.fence.home(call.env)?.dir().to_owned();
    let folder = call.given.text("report_dir").unwrap_or(REPORT_DIR);
    if folder.is_empty() || folder.chars().any(char::is_control) || folder.starts_with('~') {
        return Err(Error::usage("report_dir is not a path")
            .hint("name a folder inside the root: _handoff"));
    }
    let mut ask = JudgeAsk::new(root, PathBuf::new());
    ask.report_dir = PathBuf::from(folder);
    ask.config = call.config.map(ToOwned::to_owned);
    ask.via = "mcp";
    if let Some(seconds) = call.given.number("timeout_seconds") {
        ask.timeout = Duration::from_secs(u64::try_from(seconds).unwrap_or(TIMEOUT.as_secs()));
    }
    Ok(ask)
}

/// Handles a call that was rejected for its arguments: replaces an earlier report, so that it is
/// not taken for this call's.
fn refused(call: &ToolCall<'_>, why: &Error) -> Result<()> {
    // The report folder is unknown.
    if call.given.is_spoilt("report_dir") {
        return Ok(());
    }
    judge::refuse(&asked(call)?, why, &call.world()).map(|_| ())
}

fn judge(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let mut ask = asked(call)?;
    let judged = match call.fence.document(
        call.given.text("contract_path").unwrap_or_default(),
        &ask.root,
    ) {
        Ok(contract) => {
            ask.contract = contract;
            judge::judge(&ask, &call.world())?
        }
        Err(why) => {
            let why = Error {
                message: format!("contract_path: {}", why.message),
                ..why
            };
            judge::refuse(&ask, &why, &call.world())?
        }
    };
    let mut text = format!("{}\n", judged.summary);
    if let Some(error) = &judged.error {
        text.push_str(&format!("error: {error}\n"));
    }
    if let Some(path) = &judged.report_md_path {
        text.push_str(&format!("report: {path}\n"));
    }
    Ok(ended(object(wire::value(&judged)), text, judged.outcome))
}

impl ToolCall<'_> {
    fn counsel(&self) -> Result<CounselAsk> {
        let mut ask = CounselAsk::new(self.fence.home(self.env)?.dir().to_owned());
        ask.config = self.config.map(Path::to_owned);
        Ok(ask)
    }

    /// Returns the path of the document in an argument.
    fn named(&self, argument: &str, root: &Path) -> Result<PathBuf> {
        let named = self.given.text(argument).unwrap_or_default();
        self.fence.document(named, root).map_err(|e| Error {
            message: format!("{argument}: {}", e.message),
            ..e
        })
    }
}

fn proposal(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let ask = call.counsel()?;
    let file = call.named("proposal_path", &ask.root)?;
    let checked = counsel::validate_proposal(&ask, &file, &call.world())?;
    let mut text = format!("{}\n", checked.summary);
    for issue in &checked.issues {
        let line = issue
            .line
            .map(|l| format!("line {l}: "))
            .unwrap_or_default();
        text.push_str(&format!(
            "{} {line}{}\n",
            wire::name(&issue.severity),
            issue.issue.replace('\n', " ")
        ));
    }
    Ok(conducted(
        object(wire::value(&checked)),
        text,
        &checked.conduct,
    ))
}

fn conflict(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let ask = call.counsel()?;
    let dispute = Dispute {
        contract: call.named("contract_path", &ask.root)?,
        rebuttal: call.named("rebuttal_path", &ask.root)?,
        judge_report: call.named("judge_report_path", &ask.root)?,
    };
    let resolved = counsel::resolve_conflict(&ask, &dispute, &call.world())?;
    let text = format!("{}\n{}\n", resolved.summary, resolved.reasoning);
    Ok(conducted(
        object(wire::value(&resolved)),
        text,
        &resolved.conduct,
    ))
}

fn audit(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let ask = call.counsel()?;
    let dir = match call.given.text("working_directory") {
        Some(dir) => call.fence.path(dir, &ask.root)?,
        None => ask.root.clone(),
    };
    let named = call.given.texts("files");
    let files = named
        .into_iter()
        .map(|f| call.fence.path(f, &dir))
        .collect::<Result<Vec<_>>>()?;
    let review = counsel::security_audit(&ask, &files, Some(&dir), &call.world())?;
    Ok(stateless::told(&review))
}

fn health(call: &ToolCall<'_>) -> Result<ToolAnswer> {
    let health = doctor::health(&call.counsel()?, &call.world())?;
    let mut text = format!("{}\n", health.summary);
    for backend in &health.backends {
        let can = if backend.available {
            "can be asked"
        } else {
            "cannot be asked"
        };
        text.push_str(&format!("{} {can}\n", backend.name));
        for check in backend.checks.iter().filter(|c| c.state != "ok") {
            text.push_str(&format!(
                "- {}: {}\n",
                check.name,
                check.text.replace('\n', " ")
            ));
        }
    }
    Ok(ToolAnswer::new(object(wire::value(&health)), text))
}

/// Creates the answer of a run, with its outcome and error.
fn conducted(content: Map<String, Value>, mut text: String, conduct: &Conduct) -> ToolAnswer {
    if let Some(error) = &conduct.error {
        text.push_str(&format!("error: {error}\n"));
    }
    ended(content, text, conduct.outcome)
}

/// Creates the answer for an outcome.
fn ended(content: Map<String, Value>, mut text: String, outcome: QuestionOutcome) -> ToolAnswer {
    if outcome == QuestionOutcome::Error {
        text.push_str("Do not call this tool again with the same arguments.\n");
    }
    if outcome == QuestionOutcome::Incomplete {
        // The summary says whether a retry can help.
        text = format!(
            "INCOMPLETE: this is not an approval. Do not call this tool in a loop.\n{text}"
        );
    }
    let is_error = outcome == QuestionOutcome::Error;
    ToolAnswer {
        is_error,
        ..ToolAnswer::new(
            content,
            format!("outcome: {}\n{text}", wire::name(&outcome)),
        )
    }
}
