//! A question outside a review: documents, a schema, and the answer of the first backend that has
//! one.

use super::answer::{NoAnswer, ParsedAnswer, Query};
use super::{ReviewJob, ReviewSession, RunOutcome, described, open};
use crate::ai::ask::{Cause, Nonce, Schema};
use crate::ai::prompt::{self, Brief, Exhibit};
use crate::ai::reply::ReplyProblem;
use crate::ai::tree::Tree;
use crate::ai::{BackendUsage, Setback};
use crate::diff::RepoPath;
use crate::git::State;
use crate::verdict::CoverageFailure;
use std::collections::BTreeMap;
use std::time::Instant;

/// A question about documents.
#[derive(Debug)]
pub struct Question<T> {
    /// Instructions; a constant template.
    pub system: &'static str,
    /// Task; a constant template. The nonce is appended.
    pub task: &'static str,
    /// Redacted documents.
    pub exhibits: Vec<Exhibit>,
    pub schema: &'static Schema,
    pub parse: fn(&str, &Nonce) -> Result<T, ReplyProblem>,
}

/// The access of a model to the worktree.
#[derive(Clone, Debug, Default)]
pub struct WorktreeAccess {
    /// Files that git does not track yet.
    pub new: Vec<RepoPath>,
    /// True if it may edit and create files, in memory or in a private copy.
    pub is_editable: bool,
}

/// The result of a question.
#[derive(Debug)]
pub struct Consulted<T> {
    /// Name of the backend and its answer.
    pub answer: Option<(String, T)>,
    /// Reasons why the other backends have no answer, one per backend that was tried.
    pub failed: Vec<String>,
    /// The same as typed failures, for the advice on a retry.
    pub setbacks: Vec<Setback>,
    pub usage: Vec<BackendUsage>,
    /// Edited and created files, with secrets replaced.
    pub drafts: BTreeMap<RepoPath, String>,
    /// Rejected edits of the model, with reasons. Untrusted text.
    pub refused_edits: Vec<String>,
    /// True if the deadline passed or a limit was reached.
    pub timed_out: bool,
    /// True if the run was stopped.
    pub stopped: bool,
}

/// Asks the backends in the order of the policy until one answers. `around` is the part of the
/// worktree that a model may read. With `None` it sees only the documents.
pub async fn consult<T>(
    job: &ReviewJob<'_>,
    question: &Question<T>,
    around: Option<&WorktreeAccess>,
) -> Consulted<T> {
    let mut opened = RunOutcome::default();
    let teams = open(job, &mut opened);
    let setbacks = std::mem::take(&mut opened.models.setbacks);
    let failures: Vec<String> = opened.failed.iter().map(CoverageFailure::reason).collect();
    let mut out = Consulted {
        answer: None,
        failed: failures
            .into_iter()
            .chain(opened.remarks.into_iter().map(|r| r.text))
            .collect(),
        setbacks,
        usage: Vec::new(),
        drafts: BTreeMap::new(),
        refused_edits: Vec::new(),
        timed_out: false,
        stopped: false,
    };
    let brief = Brief::default();
    let tree = around.zip(job.repo).map(|(around, repo)| {
        let tree = Tree::new(repo, State::Worktree, job.rules).without_records_of(job.policy);
        let tree = tree
            .with_new(around.new.iter().cloned())
            .with_symbols(job.symbols);
        if around.is_editable {
            tree.with_drafts()
        } else {
            tree
        }
    });
    let session = ReviewSession::new(job, &[], &brief);
    session.expect(1);
    session.tell();
    let prompt = prompt::consult(
        question.system,
        question.task,
        &question.exhibits,
        &session.nonce,
    );
    let bytes = prompt.system.len() + prompt.chunk.len() + prompt.task.len();
    for member in teams.iter().flatten() {
        let name = member.name();
        if bytes > member.capacity() {
            out.failed.push(format!("{name}: the documents do not fit"));
            continue;
        }
        match session
            .question(
                member,
                &Query::new(&prompt, question.schema, tree.as_ref()),
                question.parse,
            )
            .await
        {
            Ok(ParsedAnswer { value, keep, .. }) => {
                session.store(keep).await;
                out.answer = Some((name.to_owned(), value));
                break;
            }
            Err(NoAnswer::Limit(limit)) => {
                out.failed.push(format!("{name}: {limit}"));
                out.timed_out |= Instant::now() >= job.deadline;
            }
            Err(NoAnswer::Failed(f)) => {
                out.failed.push(format!("{name}: {}", described(&f)));
                out.setbacks.push(Setback::of(name, &f));
                out.timed_out |= f.cause == Cause::TimedOut;
                out.stopped |= f.cause == Cause::Stopped;
            }
        }
        if out.stopped {
            break;
        }
    }
    session.step();
    out.usage = session.usage.take();
    out.refused_edits = tree.as_ref().map(Tree::refused_edits).unwrap_or_default();
    out.drafts = tree.map(|t| t.drafts()).unwrap_or_default();
    out
}
