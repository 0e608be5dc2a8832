//! Rounds of a review: recalls earlier findings, compares them with the new ones, and stores the
//! result.
//!
//! The only entry point for the command line, the hooks and MCP. [`review`] adds the known state of
//! a session to the request, calls [`crate::review`], compares the findings, and passes the result
//! to [`crate::history`]. A model's statements about earlier findings decide nothing: fingerprints
//! and code regions do.

pub mod advice;
pub mod apply;
pub mod baseline;
pub mod compare;
pub mod cover;
pub mod decide;
pub mod fix;
mod follow;
mod named;
mod past;
mod pull;
pub mod recall;
pub mod region;
mod replaced;
pub mod replay;
pub mod response;
mod reviewed;
#[cfg(test)]
mod sample;
pub mod selection;
pub mod shards;
mod sight;
mod stored;
pub mod undo;
pub mod verify;
pub mod words;
pub mod worktree;

use crate::ai::{Retry, context};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::history::{self, Saved, SessionId, Store};
use crate::log::Phases;
use crate::policy::RulesPolicy;
use crate::request::{Authority, End, ReviewRequest, Source};
use crate::review::{self, Opened, Record, Review, SessionRef, StoreLocation, World};
use crate::rules::RuleSet;
use crate::verdict::Outcome;
use crate::wire;
use crate::wire::stored::{PullName, RequestedSource, Response, STORED_VERSION};
use advice::Told;
use follow::{Follow, RoundComparison};
pub use pull::{Predecessor, command as pull_command, earlier, newest};
use response::GivenResponse;
use stored::RoundExtras;

/// A review that may be stored, and may continue an earlier one.
#[derive(Clone, Debug)]
pub struct Ask {
    pub request: ReviewRequest,
    /// Session to which this adds a round.
    pub follow_up: Option<SessionId>,
    /// Coder's response to the findings of the previous round.
    pub response: Option<GivenResponse>,
    pub save: Save,
    /// The pull request under review, if one is named.
    pub pull: Option<PullName>,
    /// Caller: `cli`, `pre-commit`, `pre-push`, `mcp`.
    pub via: &'static str,
}

/// Whether a review is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    No,
    Yes,
    /// Stored, and incomplete if that fails.
    Required,
}

/// A finished round.
#[derive(Debug)]
pub struct Done {
    /// The review, with its session if it was stored, and with the text of the change if the
    /// request asks for it.
    pub review: Review,
    /// The review as stored, or as it would be stored, then without an ID.
    pub stored: wire::stored::Review,
    /// Reason why it was not stored although requested.
    pub unsaved: Option<String>,
}

/// Returns the place of stored reviews, and the store if it exists. For code that reads stored
/// reviews.
///
/// # Errors
///
/// Usage: no repository, no worktree, an invalid policy; a store of another user.
pub fn open(request: &ReviewRequest, env: &Env) -> Result<(StoreLocation, Option<Store>)> {
    let (place, _) = review::store_location(request, env)?;
    let store = Store::find(&place)?;
    Ok((place, store))
}

/// Resolves the name of a stored review: its ID, or `latest`.
///
/// # Errors
///
/// Usage: not a valid ID; nothing is stored here. Whether a review with the ID exists is checked by
/// the caller.
pub fn named(name: &str, request: &ReviewRequest, env: &Env) -> Result<SessionId> {
    if name != "latest" {
        return SessionId::parse(name).ok_or_else(|| {
            let error = Error::usage(format!(
                "invalid review ID {name:?}: expected YYYY-MM-DD-NNN or latest"
            ));
            error
                .hint_person("list stored reviews: claude-reviewer history")
                .hint_agent("list stored reviews with get_review_history")
        });
    }
    let (_, store) = open(request, env)?;
    let latest = store.map(|s| s.latest()).transpose()?.flatten();
    latest.ok_or_else(|| {
        let error = Error::usage("no review is stored here yet");
        error
            .hint_person("claude-reviewer review")
            .hint_agent("request_review makes one")
    })
}

/// Runs the requested review, compares it with the previous round, and stores it.
///
/// An empty change is not stored, unless this is a follow-up.
///
/// # Errors
///
/// As [`review::run`]; usage for a follow-up of a session that is unknown, closed, or has no rounds
/// left, and for globs and revisions with a secret if they are to be stored. A failure to store the
/// review is not an error: it is part of the result.
pub fn review(ask: &Ask, world: &World<'_>) -> Result<Done> {
    review_with(ask, world, |_| Ok(()))
}

/// Reviews as [`review`] does, and calls `amend` on the finished review before it is stored.
///
/// # Errors
///
/// As [`review`]; the errors of `amend`.
pub fn review_with(
    ask: &Ask,
    world: &World<'_>,
    amend: impl FnOnce(&mut Review) -> Result<()>,
) -> Result<Done> {
    let NewRound {
        request,
        opened,
        follow,
        pull,
        said,
        answer,
        rules,
    } = NewRound::begin(ask, world)?;
    let mut review = match opened {
        Some(opened) => review::run_opened(opened, &request, world)?,
        None => review::run(&request, world)?,
    };
    let mut phases = Phases::start();
    let record = review.record.take().unwrap_or_default();
    let compared = match &follow {
        Some(f) => Some(f.compare(
            &mut review,
            &record,
            answer.as_ref(),
            &request,
            &rules,
            world,
        )?),
        None => None,
    };
    amend(&mut review)?;
    let named = follow.as_ref().and_then(Follow::pull).or(pull.as_ref());
    let round = FinishedRound {
        ask,
        pull_command: named.map(|named| command_of(named, &review, ask, world.env)),
        follow,
        pull,
        said,
        answer,
        compared,
        record,
        rules,
    };
    let mut done = round.end(review, world);
    phases.end("compare and store");
    let is_shown = ask.request.record || has_change_in_report(&ask.request);
    done.review.record = is_shown.then_some(round.record);
    Ok(done)
}

/// Returns true if the JSON report contains the change, for the formats of a merged review: that of
/// a shard. The text of a tree is not recorded, because its size has no bound.
fn has_change_in_report(request: &ReviewRequest) -> bool {
    request.shard.is_some() && !matches!(request.source, Source::Tree(_))
}

/// A round before its review.
struct NewRound {
    /// The request, with the state of the session if the round continues one.
    request: ReviewRequest,
    /// The repository, if it was opened to read the session.
    opened: Option<Opened>,
    follow: Option<Follow>,
    /// Pull request with secrets masked.
    pull: Option<PullName>,
    /// Author's summary of the round.
    said: Option<String>,
    /// Coder's response to the previous round.
    answer: Option<Response>,
    rules: RuleSet,
}

impl NewRound {
    /// Reads the session that the round continues, and adds its state to the request.
    fn begin(ask: &Ask, world: &World<'_>) -> Result<Self> {
        let mut request = ask.request.clone();
        // Text of the user is masked before it is stored, like text for models.
        let rules = RuleSet::new(&RulesPolicy::default(), &[])?;
        let pull = ask.pull.as_ref().map(|pull| pull::masked(pull, &rules));
        let (follow, opened) = match &ask.follow_up {
            Some(id) => {
                let (mut follow, opened) = Follow::open(id, &ask.request, world.env)?;
                follow.pull_of_round.clone_from(&pull);
                follow.refuse_worktree_of_pull(ask)?;
                (Some(follow), Some(opened))
            }
            None => (None, None),
        };
        request.record |=
            ask.save != Save::No || follow.is_some() || has_change_in_report(&request);
        if ask.save != Save::No && follow.is_none() {
            keepable(&request, &rules)?;
        }
        request.past_findings = past::findings(&request, world.env);
        let summary = ask.request.brief.summary.as_deref();
        let said = summary.map(|s| context::summary(s, &rules));
        let answer = match (&follow, &ask.response) {
            (Some(f), Some(given)) => Some(given.stored(
                &f.id.to_string(),
                f.last().round,
                &world.now.to_string(),
                &rules,
            )),
            (None, Some(_)) => {
                let error = Error::usage("a response answers a stored review, and none is named");
                return Err(error
                    .hint_person("name it: --follow-up latest")
                    .hint_agent("name it in previous_review_id, or leave response out"));
            }
            (_, None) => None,
        };
        if let Some(f) = &follow {
            f.prepare(&mut request, answer.as_ref(), said.as_deref());
        }
        Ok(Self {
            request,
            opened,
            follow,
            pull,
            said,
            answer,
            rules,
        })
    }
}

/// Returns the command that reviews a pull request again.
fn command_of(pull: &PullName, review: &Review, ask: &Ask, env: &Env) -> String {
    if let Some(place) = &review.place {
        return history::pull_command(&place.remotes, pull);
    }
    match Repo::open(&ask.request.dir, env) {
        Ok(repo) => pull::command(&repo, pull),
        Err(_) => format!("{} review pr {}", crate::NAME, pull.number),
    }
}

/// Rejects a request with a secret that a follow-up would need: masked it would not work.
fn keepable(request: &ReviewRequest, rules: &RuleSet) -> Result<()> {
    let what = if request
        .files
        .iter()
        .any(|f| stored::masked(f, rules).is_some())
    {
        "a pattern of files"
    } else if revision(&request.source).is_some_and(|rev| stored::masked(rev, rules).is_some()) {
        "the name of the revision"
    } else {
        return Ok(());
    };
    let error = Error::usage(format!("{what} looks like a secret, which is not stored"));
    Err(error
        .hint("name it in other words, such as `*` or the id of the commit")
        .hint_person("or store nothing: --no-save")
        .hint_agent("or call review_commit or review_branch, which store nothing"))
}

/// Returns the revision of a source.
fn revision(source: &Source) -> Option<&str> {
    match source {
        Source::Commit { rev, .. } => Some(rev),
        Source::Branch { head, .. } => head.as_deref(),
        Source::Ends(ends) => match &ends.head {
            End::Id { id: rev, .. } | End::Short { id: rev, .. } | End::Rev(rev) => Some(rev),
            End::Branch(_) | End::Nothing => None,
        },
        _ => None,
    }
}

/// A round whose review is finished.
struct FinishedRound<'a> {
    ask: &'a Ask,
    follow: Option<Follow>,
    /// Pull request with secrets masked.
    pull: Option<PullName>,
    /// Command that reviews the pull request again.
    pull_command: Option<String>,
    /// Author's summary of the round.
    said: Option<String>,
    answer: Option<Response>,
    compared: Option<RoundComparison>,
    record: Record,
    rules: RuleSet,
}

impl FinishedRound<'_> {
    /// Stores the round if requested.
    fn end(&self, mut review: Review, world: &World<'_>) -> Done {
        let number = self.follow.as_ref().map_or(1, |f| f.last().round + 1);
        // A change whose files were all skipped is recorded.
        let empty = review.outcome == Outcome::NothingToReview && review.coverage.files_total == 0;
        let nothing = empty && self.follow.is_none();
        let saved = match (self.ask.save, &review.place) {
            (Save::No, _) => None,
            (Save::Yes, _) if nothing => None,
            (Save::Yes, None) => None,
            (Save::Required, None) => Some(Err("no worktree to store it in".to_owned())),
            (Save::Yes | Save::Required, Some(place)) => Some(
                self.save(&review, place, world)
                    .map_err(|e| e.on_one_line()),
            ),
        };
        let unsaved = match saved {
            Some(Ok(saved)) => {
                review.session = Some(SessionRef {
                    id: saved.id.to_string(),
                    round: saved.round,
                });
                return Done {
                    review,
                    stored: saved.review,
                    unsaved: None,
                };
            }
            Some(Err(why)) => Some(why),
            None => None,
        };
        if let (Some(why), Save::Required) = (&unsaved, self.ask.save) {
            review.mark_incomplete(
                format!("the review could not be stored: {why}"),
                self.ask.request.on_block,
            );
        }
        let stored = self.stored(&review, "", number);
        Done {
            review,
            stored,
            unsaved,
        }
    }

    fn save(&self, review: &Review, place: &StoreLocation, world: &World<'_>) -> Result<Saved> {
        match &self.follow {
            Some(f) => {
                let id = f.id.to_string();
                f.store.append(
                    &f.id,
                    world.now,
                    f.last().round,
                    &self.record,
                    self.answer.clone(),
                    &|round| self.stored(review, &id, round),
                )
            }
            None => Store::open(place)?.create(world.now, &self.record, &|id| {
                let id = id.to_string();
                (
                    self.request(review, place, &id),
                    self.stored(review, &id, 1),
                )
            }),
        }
    }

    /// Returns the review in the format of the store.
    fn stored(&self, review: &Review, id: &str, round: u32) -> wire::stored::Review {
        let mut report = stored::report(review, &self.rules);
        report.review_id = Some(id.to_owned()).filter(|id| !id.is_empty());
        report.round = round;
        let advice = advice::advice(&Told {
            report: &report,
            since: self.compared.as_ref().map(|c| &c.since),
            again: self.compared.as_ref().map_or(&[], |c| &c.again),
            earlier: &self.follow.as_ref().map_or_else(Vec::new, Follow::earlier),
            max_rounds: match (&self.follow, &review.place) {
                (Some(f), _) => f.max_rounds,
                (None, place) => place.as_ref().map_or(u32::MAX, |p| p.max_rounds),
            },
            pull: self.pull_command.as_deref(),
            retry: Retry::of(&review.models.setbacks),
        });
        let beside = RoundExtras {
            author_summary: self.said.clone(),
            since: self.compared.as_ref().map(|c| c.since.clone()),
            advice,
            change: stored::change(&self.record),
        };
        stored::review(review, report, beside)
    }

    /// Returns a text for the stored request, with secrets masked.
    fn summary(&self, text: &str) -> String {
        context::summary(text, &self.rules)
    }

    /// Returns the request in the format of the store.
    fn request(
        &self,
        review: &Review,
        place: &StoreLocation,
        id: &str,
    ) -> wire::stored::StoredRequest {
        let asked = &self.ask.request;
        let report = stored::report(review, &self.rules);
        let untracked = matches!(asked.source, Source::Unstaged { untracked: true });
        let rev = revision(&asked.source).map(str::to_owned);
        let focus = review
            .judged_by
            .review
            .focus
            .iter()
            .map(|c| c.name().to_owned());
        wire::stored::StoredRequest {
            schema_version: STORED_VERSION,
            review_id: id.to_owned(),
            timestamp: review.timestamp.to_string(),
            summary: self.said.clone(),
            relevant_docs: asked
                .brief
                .documents
                .iter()
                .map(|d| self.summary(&d.to_string_lossy()))
                .collect(),
            focus_areas: focus
                .chain(asked.brief.focus.iter().map(|f| self.summary(f)))
                .collect(),
            source: report.source,
            asked: RequestedSource {
                rev,
                branch: place.branch.as_deref().map(|branch| self.summary(branch)),
                untracked,
                files: asked.files.clone(),
                gate: asked.authority == Authority::Base,
            },
            pull: self.pull.clone(),
            label: self.summary(&review.source.label),
            author: self.summary(&place.actor),
            via: self.ask.via.to_owned(),
            tool: report.tool,
            change: stored::change(&self.record),
            // Set under the lock of the store.
            before: Vec::new(),
        }
    }
}
