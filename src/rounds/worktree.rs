//! Compares the worktree with a stored review: whether the reviewed change is in it, and whether
//! its findings are fixed.

use super::named::select;
use super::reviewed::{ReviewedFiles, contains, has, lines};
use super::verify::{Verified, verified};
use super::{Ask, Save, pull_command, recall};
use crate::diff::{ObjectId, RepoPath};
use crate::error::{Error, Result};
use crate::git::{Repo, State};
use crate::history::{SessionId, Store};
use crate::request::{ReviewRequest, Source};
use crate::review::{self, World};
use crate::shell;
use crate::wire;
use crate::wire::SourceKind;
use crate::wire::stored::{Session, StoredRequest};

/// Bytes of a file that is searched for the lines of a finding, at most.
const MAX_FILE: usize = 64 << 20;

/// The findings of a stored review to verify.
#[derive(Clone, Debug)]
pub struct FindingsToVerify {
    /// Folder, policy and backends. Its source is ignored.
    pub request: ReviewRequest,
    pub session: SessionId,
    /// IDs or prefixes of fingerprints.
    pub findings: Vec<String>,
    /// `cli` or `mcp`.
    pub via: &'static str,
}

/// The state of findings in the worktree.
#[derive(Clone, Debug)]
pub struct WorktreeCheck {
    pub verified: Verified,
    /// Compared files and base, to display.
    pub reviewed: String,
    /// Instruction for an agent to store the next round.
    pub next: String,
}

/// Reviews the files of the worktree as a follow-up, and returns whether findings are fixed. Stores
/// nothing.
///
/// # Errors
/// Usage: an unknown session or finding; the reviewed commit is not checked out. Others as
/// [`super::review`].
pub fn look(wanted: FindingsToVerify, world: &World<'_>) -> Result<WorktreeCheck> {
    let FindingsToVerify {
        mut request,
        session: id,
        findings,
        via,
    } = wanted;
    let (place, _) = review::store_location(&request, world.env)?;
    let repo = Repo::open(&request.dir, world.env)?;
    let session = Store::find(&place)?
        .ok_or_else(|| not_found(&id))?
        .session(&id)?;
    let known = session
        .rounds
        .last()
        .map_or(&[][..], |r| &r.review.report.findings);
    let named: Result<Vec<&wire::Finding>> = findings
        .iter()
        .map(|name| select(known, name, &session.review_id))
        .collect();
    let named = named?;
    if let Some(commit) = elsewhere(&session, &repo, place.branch.as_deref()) {
        return Err(not_checked_out(&session, commit));
    }
    let base = base(&session.request, &repo);
    let reviewed = described(base.as_deref(), &repo);
    request.source = Source::Changes { base };
    request.files = files(&session);
    let ask = Ask {
        request,
        follow_up: Some(id),
        response: None,
        save: Save::No,
        pull: None,
        via,
    };
    let done = super::review(&ask, world)?;
    let next = next_round_of_agent(&session, &repo);
    Ok(WorktreeCheck {
        verified: verified(named, &done.stored),
        reviewed,
        next,
    })
}

/// Returns the error for a session that is not stored.
pub(super) fn not_found(id: &SessionId) -> Error {
    Error::usage(format!("review {id} not found"))
        .hint_person("list the stored reviews: claude-reviewer history")
        .hint_agent("call get_review_history for the stored reviews")
}

/// Returns the file patterns for the review of an edit, which may change files outside of the
/// session.
pub(super) fn files(session: &Session) -> Vec<String> {
    if session.request.asked.files.is_empty() {
        Vec::new()
    } else {
        vec!["**".to_owned()]
    }
}

/// Returns the base of a session. A session without a base, such as before the first commit, uses
/// the empty tree.
pub(super) fn base(begun: &StoredRequest, repo: &Repo) -> Option<String> {
    let is_from_nothing = match begun.source.kind {
        SourceKind::Staged | SourceKind::Unstaged | SourceKind::Changes | SourceKind::Commit => {
            true
        }
        _ => begun.source.head.is_some(),
    };
    begun
        .source
        .base
        .clone()
        .or_else(|| is_from_nothing.then(|| repo.empty_tree().to_string()))
}

/// Describes the compared files and their base.
fn described(base: Option<&str>, repo: &Repo) -> String {
    let id = base.and_then(ObjectId::from_hex);
    match id {
        Some(id) if id == repo.empty_tree() => {
            "the current files of the worktree, all of them as new".to_owned()
        }
        Some(id) => format!("the current files of the worktree against {}", id.short()),
        None => "the current files of the worktree against the default base".to_owned(),
    }
}

/// Returns the branch of a session: the one in its source, or the one that was checked out.
pub(super) fn branch_of<'s>(session: &'s Session, repo: &Repo) -> Option<&'s str> {
    let asked = &session.request.asked;
    let named = asked
        .rev
        .as_deref()
        .filter(|name| repo.resolve(&format!("refs/heads/{name}")).is_ok());
    named.or(asked.branch.as_deref())
}

/// Returns the newest commit that a round of a session reviewed. Rounds of the worktree have none.
pub(super) fn last_commit(session: &Session) -> Option<ObjectId> {
    let sources = session
        .rounds
        .iter()
        .rev()
        .map(|round| &round.review.report.source);
    sources
        .filter_map(|source| source.head.as_deref())
        .find_map(ObjectId::from_hex)
}

/// Returns the commit of the last round if the worktree does not contain it: HEAD does not descend
/// from it, and another branch is checked out. An amended commit stays on its branch.
pub(super) fn elsewhere(
    session: &Session,
    repo: &Repo,
    checked_out: Option<&str>,
) -> Option<ObjectId> {
    let reviewed = last_commit(session)?;
    let head = repo.head().ok().flatten();
    let has_it = head.is_some_and(|head| has_commit(repo, reviewed, head));
    let branch = branch_of(session, repo);
    let is_its_branch =
        session.request.source.kind != SourceKind::Pr && branch.is_some() && branch == checked_out;
    (!has_it && !is_its_branch).then_some(reviewed)
}

/// Returns the instruction for adding the edits of the worktree to a session as its next round.
pub fn next_round(session: &Session, repo: &Repo) -> String {
    match &session.request.pull {
        Some(pull) => format!(
            "to review the next round, commit and push, then: {}",
            pull_command(repo, pull)
        ),
        None => format!(
            "to store the next round: {} review changes --follow-up {}",
            crate::NAME,
            session.review_id
        ),
    }
}

/// Returns the same instruction for an agent.
pub fn next_round_of_agent(session: &Session, repo: &Repo) -> String {
    match &session.request.pull {
        Some(pull) => format!(
            "after a push, ask the user to run: {}",
            pull_command(repo, pull)
        ),
        None => format!(
            "to store the next round, call request_review with previous_review_id {} and source changes",
            session.review_id
        ),
    }
}

/// Returns true if a commit is `head` or an ancestor of it.
pub(super) fn has_commit(repo: &Repo, commit: ObjectId, head: ObjectId) -> bool {
    commit == head
        || repo
            .merge_base(commit, head)
            .is_ok_and(|base| base == Some(commit))
}

/// Returns the name of the stash with the reviewed change, if it is not in the worktree: none of
/// the lines of the findings exist there, and none of their files are edited. A change that was
/// moved away is not fixed.
pub(super) fn stashed(session: &Session, repo: &Repo, files: &ReviewedFiles) -> Option<String> {
    let last = session.rounds.last().map(|r| &r.review.report)?;
    if !matches!(
        last.source.kind,
        SourceKind::Staged | SourceKind::Unstaged | SourceKind::Changes
    ) {
        return None;
    }
    let findings: Vec<&wire::Finding> = last.findings.iter().filter(|f| f.file.is_some()).collect();
    let head = repo.head().ok().flatten();
    let base = head.map_or(Some(State::Empty), |head| repo.state_of(head).ok())?;
    let is_here = [State::Worktree, State::Index]
        .iter()
        .any(|state| has_lines_of_any(repo, state, files, &findings));
    if findings.is_empty() || is_here || findings.iter().any(|f| is_edited(repo, &base, f)) {
        return None;
    }
    (0..MOST_STASHES)
        .map(|n| format!("stash@{{{n}}}"))
        .find(|stash| {
            // The third parent has the untracked files.
            let states = [state_of(repo, stash), state_of(repo, &format!("{stash}^3"))];
            states
                .iter()
                .flatten()
                .any(|state| has_lines_of_any(repo, state, files, &findings))
        })
}

/// Returns the state of a revision, or `None` if it is unknown.
fn state_of(repo: &Repo, rev: &str) -> Option<State> {
    repo.resolve(rev)
        .and_then(|commit| repo.state_of(commit))
        .ok()
}

/// Stashes that are searched, newest first, at most.
const MOST_STASHES: usize = 10;

/// Returns true if the file of a finding differs from a base.
fn is_edited(repo: &Repo, base: &State, found: &wire::Finding) -> bool {
    let Some(path) = found.file.as_deref().map(RepoPath::from) else {
        return false;
    };
    let mut reader = repo.reader();
    reader.blob(base, &path).ok() != reader.blob(&State::Worktree, &path).ok()
}

/// Returns the error for a reviewed change that was moved to a stash.
pub(super) fn is_in_stash(session: &Session, stash: &str) -> Error {
    let id = &session.review_id;
    let text =
        format!("the change that review {id} is about is not in the worktree: {stash} has it");
    Error::usage(text)
        .hint(format!("bring it back: git stash pop '{stash}'"))
        .hint_person(format!(
            "or, if it is given up: git stash drop '{stash}' discards all that this stash holds"
        ))
}

/// Returns the error for a reviewed commit that is not checked out.
pub(super) fn not_checked_out(session: &Session, commit: ObjectId) -> Error {
    let id = &session.review_id;
    let short = commit.short();
    let named = session
        .request
        .asked
        .branch
        .as_deref()
        .filter(|_| session.request.source.kind == SourceKind::Branch);
    let command = match (&session.request.asked.rev, named) {
        (None, Some(branch)) => format!("git switch {}", shell::quoted(branch)),
        _ => format!("git checkout {short}"),
    };
    Error::usage(format!(
        "the commit {short}, which review {id} is about, is not checked out"
    ))
    .hint_person(command.clone())
    .hint_agent(format!(
        "check it out ({command}), or request a review of the current files"
    ))
}

/// Returns true if the worktree has the reviewed lines of a finding, or the finding has no file.
/// `files` is the stored change.
pub(super) fn has_lines(repo: &Repo, files: &ReviewedFiles, found: &wire::Finding) -> bool {
    has_lines_in(repo, &State::Worktree, files, found)
}

/// Returns true if a state has the lines of one of the findings.
fn has_lines_of_any(
    repo: &Repo,
    state: &State,
    files: &ReviewedFiles,
    findings: &[&wire::Finding],
) -> bool {
    findings.iter().any(|f| has_lines_in(repo, state, files, f))
}

/// Returns true if a state has the lines of a finding, as [`has_lines`] does.
fn has_lines_in(repo: &Repo, state: &State, files: &ReviewedFiles, found: &wire::Finding) -> bool {
    let Some(path) = found.file.as_deref().map(RepoPath::from) else {
        return true;
    };
    let text = repo.reader().read(state, &path, MAX_FILE).ok().flatten();
    let finding = recall::findings(std::slice::from_ref(found), b"").pop();
    let lines = finding.and_then(|finding| lines(files, found, &finding));
    text.is_some_and(|text| match &lines {
        Some(lines) => has(&text, lines),
        // Only the quote is known.
        None => contains(&text, &found.quote),
    })
}
