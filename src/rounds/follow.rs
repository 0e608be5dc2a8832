//! A follow-up round: adds the state of the session to the request, and compares the new findings
//! with it.

use super::compare::{Again, Comparison, Current, Earlier};
use super::cover::{Cover, Here, cover};
use super::recall;
use super::region::RoundChange;
use super::replaced;
use super::reviewed::reviewed_files;
use super::sight::ReviewedState;
use super::worktree::{self, has_commit};
use super::{Ask, Save, stored, words};
use crate::ai::BackendUsage;
use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::finding::Origin;
use crate::git::{Change, Repo};
use crate::history::{SessionId, Store};
use crate::request::{ReviewRequest, Source};
use crate::review::{Note, Opened, Record, Review, World};
use crate::rules::RuleSet;
use crate::shell;
use crate::wire;
use crate::wire::SourceKind;
use crate::wire::stored::{PullName, Response, Session, Since, State, Status, StoredRound};
use std::path::PathBuf;
use std::sync::Arc;

/// Factor by which incomplete rounds can increase the policy's number of rounds, at most.
const FREE: u32 = 4;

/// The session of a follow-up.
#[derive(Debug)]
pub(super) struct Follow {
    pub(super) id: SessionId,
    pub(super) store: Store,
    pub(super) max_rounds: u32,
    session: Session,
    /// Stored change of each round.
    changes: Vec<Vec<u8>>,
    /// Last stored round at the start of this one.
    last: StoredRound,
    /// Commit that is checked out.
    head: Option<String>,
    repo: Arc<Repo>,
    /// Pull request of the new round, with secrets masked.
    pub(super) pull_of_round: Option<PullName>,
}

/// The location of the reviewed change, if it is not checked out. Its missing lines would count as
/// fixed.
enum Elsewhere {
    Branch(String),
    /// The session began without a branch.
    Commit(ObjectId),
}

/// Returns the location of the reviewed change if a follow-up would review other code that is
/// checked out.
fn elsewhere(
    session: &Session,
    request: &ReviewRequest,
    repo: &Repo,
    checked_out: Option<&str>,
) -> Option<Elsewhere> {
    let begun = &session.request;
    let branch = worktree::branch_of(session, repo);
    if !takes_checkout(&request.source) || branch.is_some() && branch == checked_out {
        return None;
    }
    let head = repo.head().ok().flatten()?;
    let missing = match begun.source.kind {
        SourceKind::Branch | SourceKind::Commit => {
            worktree::last_commit(session).filter(|commit| !has_commit(repo, *commit, head))?
        }
        SourceKind::Staged | SourceKind::Unstaged | SourceKind::Changes => {
            let base = begun.source.base.as_deref().and_then(ObjectId::from_hex);
            let tip = branch
                .and_then(|branch| repo.resolve(&format!("refs/heads/{branch}")).ok())
                .or(base)?;
            // On a switch of branches, git keeps staged and unstaged changes, but not commits.
            let is_left =
                !has_commit(repo, tip, head) || tip == head && branch.is_some() && is_clean(repo);
            Some(tip).filter(|_| is_left)?
        }
        SourceKind::Patch | SourceKind::Code | SourceKind::Pr | SourceKind::Tree => return None,
    };
    Some(branch.map_or(Elsewhere::Commit(missing), |branch| {
        Elsewhere::Branch(branch.to_owned())
    }))
}

/// Returns true if a source is the checked-out state: the worktree, or the commits up to HEAD.
fn takes_checkout(source: &Source) -> bool {
    match source {
        Source::Branch { head, .. } => head.as_deref().is_none_or(is_head),
        Source::Commit { rev, .. } => is_head(rev),
        _ => takes_worktree(source),
    }
}

/// Returns true if a revision is the checked-out commit.
fn is_head(rev: &str) -> bool {
    matches!(rev, "HEAD" | "@")
}

/// Returns true if a source includes the files of the worktree.
fn takes_worktree(source: &Source) -> bool {
    matches!(
        source,
        Source::Auto | Source::Staged | Source::Unstaged { .. } | Source::Changes { .. }
    )
}

/// Returns true if the index and the worktree equal the checked-out commit.
fn is_clean(repo: &Repo) -> bool {
    repo.changes(Some("HEAD"))
        .is_ok_and(|(change, _)| change.entries.is_empty())
}

/// Returns the error for a session whose branch is not checked out.
fn on_branch(session: &Session, branch: &str) -> Error {
    let (id, quoted) = (&session.review_id, shell::quoted(branch));
    let error = Error::usage(format!(
        "the review {id} is of branch {branch}, which is not checked out"
    ));
    let error = error.hint_person(format!("git switch {quoted}"));
    if session.request.source.kind != SourceKind::Branch {
        return error.hint_agent(format!(
            "check out {branch}, and request the follow-up again"
        ));
    }
    error
        .hint_person(format!(
            "claude-reviewer review branch {quoted} --follow-up {id}"
        ))
        .hint_agent(format!(
            "check out {branch}, or name it in source, and request the follow-up again"
        ))
}

impl Follow {
    /// Opens the session, and the repository for its next round.
    ///
    /// # Errors
    ///
    /// Usage: it does not exist, is closed, or has no rounds left.
    pub(super) fn open(
        id: &SessionId,
        request: &ReviewRequest,
        env: &Env,
    ) -> Result<(Self, Opened)> {
        let (opened, repo, place) = Opened::with_store(request, env)?;
        let store = Store::find(&place)?.ok_or_else(|| {
            let error = Error::usage(format!("review {id} not found: no review is stored here"));
            error
                .hint_person("leave out --follow-up to begin a session")
                .hint_agent("leave out previous_review_id to begin a session")
        })?;
        let session = store.session(id)?;
        if let Some(edited) = store.edited(id)? {
            let error = Error::usage(format!("the review {id} cannot be followed: {edited}"));
            return Err(error
                .hint_person(format!("claude-reviewer history verify {id}"))
                .hint_agent("report this to the user; to continue, call request_review without previous_review_id"));
        }
        if matches!(
            session.status,
            Status::Approved | Status::Abandoned | Status::Merged
        ) {
            let error = Error::usage(format!("the review {id} is closed"));
            return Err(error
                .hint_person("begin another one: leave out --follow-up")
                .hint_agent("begin another one: call request_review without previous_review_id"));
        }
        let Some(last) = session.rounds.last().cloned() else {
            return Err(Error::usage(format!(
                "the review {id} has no round to follow"
            )));
        };
        match elsewhere(&session, request, &repo, place.branch.as_deref()) {
            Some(Elsewhere::Branch(branch)) => return Err(on_branch(&session, &branch)),
            Some(Elsewhere::Commit(commit)) => {
                return Err(worktree::not_checked_out(&session, commit));
            }
            None => {}
        }
        if takes_worktree(&request.source)
            && let Some(stash) =
                worktree::stashed(&session, &repo, &reviewed_files(&store, &session))
        {
            return Err(worktree::is_in_stash(&session, &stash));
        }
        // Interrupted and incomplete rounds do not count, up to a limit.
        let free = session
            .rounds
            .iter()
            .filter(|r| {
                !matches!(
                    r.review.outcome,
                    wire::Outcome::Reviewed | wire::Outcome::NothingToReview
                )
            })
            .count();
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        let max_rounds = place
            .max_rounds
            .saturating_add(free)
            .min(place.max_rounds.saturating_mul(FREE));
        if last.review.round >= max_rounds {
            let n = place.max_rounds;
            let error = Error::usage(format!(
                "the review {id} has had all of its {n} rounds (review.max_rounds)"
            ));
            return Err(error
                .hint_person(format!("let a person look: claude-reviewer history {id}"))
                .hint_person(format!("or close it: claude-reviewer complete {id} --status abandoned"))
                .hint_agent(format!(
                    "stop and ask the user to read {id}; do not start another review of the same change"
                ))
                .hint_agent("mark_review_complete with final_status abandoned closes it, where the user wants that"));
        }
        let changes = session
            .rounds
            .iter()
            .map(|r| store.change(id, r.review.round))
            .collect::<Result<_>>()?;
        let follow = Self {
            id: *id,
            store,
            max_rounds,
            session,
            changes,
            last,
            head: place.head,
            repo,
            pull_of_round: None,
        };
        Ok((follow, opened))
    }

    /// Rejects a round that reviews the worktree in place of the session's pull request: it could
    /// not be posted, and the next round would be compared with it. A round that is not stored may
    /// review the worktree, to verify an edit.
    ///
    /// # Errors
    /// Usage: the request names another source than the pull request of the session.
    pub(super) fn refuse_worktree_of_pull(&self, ask: &Ask) -> Result<()> {
        let Some(pull) = &self.session.request.pull else {
            return Ok(());
        };
        let is_pull = matches!(&ask.request.source, Source::Ends(ends) if ends.is_pull);
        let is_verification = ask.save == Save::No && !matches!(ask.request.source, Source::Auto);
        if is_pull || is_verification {
            return Ok(());
        }
        let (id, number) = (self.id, pull.number);
        let command = super::pull_command(&self.repo, pull);
        let error = Error::usage(format!(
            "the review {id} is of pull request #{number}; a round of other changes could not be posted there"
        ));
        Err(error.hint_person(format!("push the fix, and review the pull request again: {command}")).hint_agent(
            format!("call verify_fix for edits of the worktree; after a push, ask the user to run: {command}"),
        ))
    }

    /// Returns the pull request of the session, if it has one.
    pub(super) fn pull(&self) -> Option<&PullName> {
        self.session.request.pull.as_ref()
    }

    /// Returns the previous round.
    pub(super) fn last(&self) -> &wire::stored::Review {
        &self.last.review
    }

    /// Adds the state of the session to the request.
    ///
    /// The author's first summary is part of every round, so that unchanged code is not sent again;
    /// later summaries belong to their rounds.
    pub(super) fn prepare(
        &self,
        request: &mut ReviewRequest,
        answer: Option<&Response>,
        said: Option<&str>,
    ) {
        let begun = &self.session.request;
        self.source(request);
        if request.files.is_empty() {
            request.files.clone_from(&begun.asked.files);
        }
        if request.brief.documents.is_empty() {
            request.brief.documents = begun.relevant_docs.iter().map(PathBuf::from).collect();
        }
        request.brief.summary.clone_from(&begun.summary);
        let rounds = &self.session.rounds;
        let later = rounds
            .iter()
            .skip(1)
            .map(|r| r.review.author_summary.as_deref())
            .chain([said]);
        request.brief.previous = rounds
            .iter()
            .zip(later)
            .map(|(round, said)| {
                let own = round.review.round == self.last.review.round;
                let response = if own && answer.is_some() {
                    answer
                } else {
                    round.response.as_ref()
                };
                words::round(&round.review, response, said)
            })
            .collect();
    }

    /// Uses the session's source if the request names none, and its base if the request has the
    /// same kind without a base.
    fn source(&self, request: &mut ReviewRequest) {
        let begun = &self.session.request;
        let base = begun.source.base.clone();
        match &mut request.source {
            Source::Auto => {
                request.source = match begun.source.kind {
                    // Staged changes may have been committed since.
                    SourceKind::Staged if base == self.head => Source::Staged,
                    // Unstaged changes may have been staged since.
                    SourceKind::Unstaged if base == self.head && !self.is_staged() => {
                        Source::Unstaged {
                            untracked: begun.asked.untracked,
                        }
                    }
                    SourceKind::Branch if base.is_some() => Source::Branch {
                        head: begun.asked.rev.clone(),
                        base,
                    },
                    _ => Source::Changes {
                        base: worktree::base(begun, &self.repo),
                    },
                };
            }
            Source::Changes { base: named @ None } => *named = worktree::base(begun, &self.repo),
            Source::Branch {
                base: named @ None, ..
            } => *named = base,
            _ => {}
        }
    }

    /// Returns the earlier rounds, oldest first. Their `cover` is not set yet.
    pub(super) fn earlier(&self) -> Vec<Earlier<'_>> {
        let rounds = self.session.rounds.iter().zip(&self.changes);
        rounds
            .map(|(r, change)| Earlier {
                review: &r.review,
                response: r.response.as_ref(),
                change,
                cover: Cover::Nothing,
            })
            .collect()
    }

    /// Returns true if the index differs from the checked-out commit, or if that is unknown.
    fn is_staged(&self) -> bool {
        self.repo.staged().map_or(true, |c| !c.entries.is_empty())
    }

    /// Returns how much this round shows of an earlier one.
    fn cover(
        &self,
        before: &wire::stored::Review,
        now: &wire::ReviewedSource,
        request: &ReviewRequest,
    ) -> Cover {
        let source = &before.report.source;
        let begun = self
            .session
            .request
            .asked
            .rev
            .as_deref()
            .filter(|rev| !is_head(rev));
        let asked = match &request.source {
            Source::Branch { head, .. } => head.as_deref(),
            Source::Commit { rev, .. } => Some(rev.as_str()),
            _ => None,
        };
        let asked = asked.filter(|rev| !is_head(rev));
        let hides_untracked = match request.source {
            Source::Unstaged { untracked: false } => {
                self.repo.unstaged(true).map_or(true, |change| {
                    has_new_file_of(&before.report.findings, &change)
                })
            }
            _ => false,
        };
        let (was_of_commits, is_now_of_commits) = (is_of_commits(source), is_of_commits(now));
        let here = Here {
            head: self.head.clone(),
            staged: (is_now_of_commits || now.kind == SourceKind::Unstaged) && self.is_staged(),
            changed: is_now_of_commits
                && self
                    .repo
                    .changes(Some("HEAD"))
                    .map_or(true, |(c, _)| !c.entries.is_empty()),
            follows_head: begun.is_none(),
            same_rev: asked.is_some() && asked == begun,
            same_pull: self.pull_of_round.is_some()
                && self.pull_of_round == self.session.request.pull,
            descends: was_of_commits && is_now_of_commits && self.descends(now, source),
            has_earlier_head: source.kind == SourceKind::Pr && self.has_checked_out(source),
            hides_untracked,
        };
        cover(source, now, &here)
    }

    /// Returns true if the head of a source is the checked-out commit or an ancestor of it.
    fn has_checked_out(&self, source: &wire::ReviewedSource) -> bool {
        let here = self.head.as_deref().and_then(ObjectId::from_hex);
        head_of(source)
            .zip(here)
            .is_some_and(|(head, here)| has_commit(&self.repo, head, here))
    }

    /// Returns true if the head of a source is that of an earlier one, or descends from it.
    fn descends(&self, now: &wire::ReviewedSource, before: &wire::ReviewedSource) -> bool {
        let heads = head_of(before).zip(head_of(now));
        heads.is_some_and(|(one, other)| {
            self.repo
                .merge_base(one, other)
                .is_ok_and(|base| base == Some(one))
        })
    }

    /// Compares with the earlier rounds. Unresolved findings of backends remain findings of the
    /// review.
    pub(super) fn compare(
        &self,
        review: &mut Review,
        record: &Record,
        answer: Option<&Response>,
        request: &ReviewRequest,
        rules: &RuleSet,
        world: &World<'_>,
    ) -> Result<RoundComparison> {
        let report = stored::report(review, rules);
        let sight = ReviewedState::new(&self.repo, request, &report.source, rules)?;
        let now = Current {
            change: RoundChange {
                text: &record.text,
                left_out: &record.left_out,
            },
            source: &report.source,
            look: &sight,
        };
        let mut earlier = self.earlier();
        let mut is_replaced = false;
        for e in &mut earlier {
            e.cover = self.cover(e.review, &report.source, request);
            if replaced::is_uncommitted(report.source.kind) && e.is_replaced(&record.text, &sight) {
                e.cover = Cover::Nothing;
                is_replaced = true;
            }
        }
        let comparison = Comparison::new(&earlier, &now);
        let carried = comparison.carried(&report, answer.or(self.last.response.as_ref()));
        if !carried.is_empty() {
            review.add(
                recall::findings(&carried, &record.text),
                Some(&self.repo),
                request,
                world,
            )?;
        }
        let report = stored::report(review, rules);
        let mut since = comparison.since(&report);
        let off = &review.judged_by.rules.disable;
        self.unmend(&mut since, |rule, hash| {
            let is_team = rules.describe(rule).is_none();
            off.iter().any(|id| id == rule) || is_team && *hash != report.tool.rules_hash
        });
        let again = comparison.again(&report, &since);
        since.is_replaced = is_replaced && since.unchecked > 0;
        if since.is_replaced {
            review.notes.push(Note::general("review", replaced::NOTE));
        }
        let notes = review
            .models
            .usage
            .iter()
            .filter_map(|usage| self.other_model(usage))
            .collect::<Vec<_>>();
        review.notes.extend(notes);
        Ok(RoundComparison { since, again })
    }

    /// Returns a note if a backend uses another model than in its last round.
    fn other_model(&self, usage: &BackendUsage) -> Option<Note> {
        let (round, model) = self.session.rounds.iter().rev().find_map(|round| {
            let mut all = round.review.report.usage.iter();
            let known = all.find(|u| u.backend == usage.backend && !u.model.is_empty())?;
            Some((round.review.round, known.model.clone()))
        })?;
        if usage.model.is_empty() || model == usage.model {
            return None;
        }
        let text = format!(
            "answered by {}, and by {model} in round {round}: findings can differ",
            usage.model
        );
        Some(Note::general(&usage.backend, text))
    }

    /// Changes the state from fixed to unchecked if the rule of a finding is inactive now.
    /// `is_silent` returns true for such a rule, given the rules that were active at the time: a
    /// changed line is not fixed if no rule checks it.
    fn unmend(&self, since: &mut Since, is_silent: impl Fn(&str, &str) -> bool) {
        for e in since.entries.iter_mut().filter(|e| e.state == State::Fixed) {
            let mut reports = self.session.rounds.iter().rev().map(|r| &r.review.report);
            let known = reports.find(|r| {
                r.findings.iter().any(|f| {
                    f.fingerprint == e.fingerprint
                        && f.title == e.title
                        && f.origin == Origin::Rules.name()
                })
            });
            if known.is_some_and(|r| is_silent(&e.rule_id, &r.tool.rules_hash)) {
                e.state = State::Unchecked;
                since.fixed = since.fixed.saturating_sub(1);
                since.unchecked += 1;
            }
        }
    }
}

/// Returns true if a source is a commit or a branch, so that the worktree is not part of it.
fn is_of_commits(source: &wire::ReviewedSource) -> bool {
    matches!(source.kind, SourceKind::Commit | SourceKind::Branch)
}

/// Returns the last commit of a source.
fn head_of(source: &wire::ReviewedSource) -> Option<ObjectId> {
    source.head.as_deref().and_then(ObjectId::from_hex)
}

/// Returns true if a change adds a file that one of the findings is about.
fn has_new_file_of(findings: &[wire::Finding], change: &Change) -> bool {
    let mut added = change
        .entries
        .iter()
        .filter(|e| e.old.is_none())
        .filter_map(|e| e.new.as_ref());
    added.any(|side| {
        let path = side.path.to_wire();
        findings.iter().any(|f| f.file.as_deref() == Some(&*path))
    })
}

/// The result of the comparison with earlier findings.
#[derive(Debug)]
pub(super) struct RoundComparison {
    pub(super) since: Since,
    /// Findings at positions where others were fixed.
    pub(super) again: Vec<Again>,
}
