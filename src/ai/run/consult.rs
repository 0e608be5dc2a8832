//! One question that is no review of a change: documents, a form, an answer from the first who has one.

use super::question::{Asked, Query, Why};
use super::{Job, Outcome, Session, described, open};
use crate::ai::ask::{Cause, Nonce, Schema};
use crate::ai::prompt::{self, Brief, Exhibit};
use crate::ai::reply::Problem;
use crate::ai::tree::Tree;
use crate::ai::{Setback, Usage};
use crate::diff::RepoPath;
use crate::git::State;
use std::collections::BTreeMap;
use std::time::Instant;

/// A question about documents.
#[derive(Debug)]
pub struct Question<T> {
    /// A template; nothing of the run.
    pub system: &'static str,
    /// A template, too; the nonce is put behind it.
    pub task: &'static str,
    /// Redacted.
    pub exhibits: Vec<Exhibit>,
    pub schema: &'static Schema,
    pub parse: fn(&str, &Nonce) -> Result<T, Problem>,
}

/// What a model may do in the worktree besides answering.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// Files that git does not track yet.
    pub new: Vec<RepoPath>,
    /// Whether it may edit and create files, in memory or in a private copy.
    pub is_editable: bool,
}

/// What came of a question.
#[derive(Debug)]
pub struct Consulted<T> {
    /// Who answered, and what.
    pub answer: Option<(String, T)>,
    /// Why the others did not, one for each that was tried.
    pub failed: Vec<String>,
    /// The same, where a backend was tried: for whoever thinks of asking again.
    pub setbacks: Vec<Setback>,
    pub usage: Vec<Usage>,
    /// Edited and created files as the model sees them, secrets replaced.
    pub drafts: BTreeMap<RepoPath, String>,
    /// Edits of the model that were refused, with the reasons. Foreign text.
    pub refused_edits: Vec<String>,
    /// The deadline passed, or a limit was reached.
    pub timed_out: bool,
    /// The run was ended.
    pub stopped: bool,
}

/// Asks one backend after another, in the order of the policy, until one answers. `around`: what of the
/// worktree a model may look at; `None`: it sees the documents alone.
pub async fn consult<T>(job: &Job<'_>, question: &Question<T>, around: Option<&Around>) -> Consulted<T> {
    let mut opened = Outcome::default();
    let teams = open(job, &mut opened);
    let setbacks = std::mem::take(&mut opened.models.setbacks);
    let failures = opened.failed.into_iter().map(|(_, why)| why);
    let mut out = Consulted {
        answer: None,
        failed: failures.chain(opened.remarks.into_iter().map(|r| r.text)).collect(),
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
        let tree = tree.with_new(around.new.iter().cloned()).with_symbols(job.symbols);
        if around.is_editable { tree.with_drafts() } else { tree }
    });
    let session = Session::new(job, &[], &brief);
    session.expect(1);
    session.tell();
    let prompt = prompt::consult(question.system, question.task, &question.exhibits, &session.nonce);
    let bytes = prompt.system.len() + prompt.chunk.len() + prompt.task.len();
    for member in teams.iter().flatten() {
        let name = member.name();
        if bytes > member.capacity() {
            out.failed.push(format!("{name}: the documents do not fit"));
            continue;
        }
        match session.question(member, &Query::new(&prompt, question.schema, tree.as_ref()), question.parse).await {
            Ok(Asked { value, keep, .. }) => {
                session.store(keep);
                out.answer = Some((name.to_owned(), value));
                break;
            }
            Err(Why::Limit(limit)) => {
                out.failed.push(format!("{name}: {limit}"));
                out.timed_out |= Instant::now() >= job.deadline;
            }
            Err(Why::Failed(f)) => {
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
