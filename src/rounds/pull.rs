//! Finds the stored review of a pull request.

use super::stored;
use crate::env::Env;
use crate::error::Result;
use crate::git::Repo;
use crate::history::{SessionId, Store, pull_command};
use crate::policy::RulesPolicy;
use crate::request::{Authority, ReviewRequest};
use crate::review;
use crate::rules::RuleSet;
use crate::wire::stored::PullName;

/// Sessions that are searched, newest first, at most.
const MOST: usize = 300;

/// Returns the name of a pull request with secrets masked, as it is stored.
pub(super) fn masked(pull: &PullName, rules: &RuleSet) -> PullName {
    let [forge, project, base] = [&pull.forge, &pull.project, &pull.base]
        .map(|text| stored::masked(text, rules).unwrap_or_else(|| text.clone()));
    PullName {
        forge,
        project,
        number: pull.number,
        base,
    }
}

/// Returns the command that reviews a pull request again. It contains the remote if several are
/// configured and the project's is not the default.
pub fn command(repo: &Repo, pull: &PullName) -> String {
    pull_command(&review::remotes(repo), pull)
}

/// Returns the newest session whose pull request matches.
///
/// # Errors
/// Incomplete: the store cannot be read.
pub fn newest(store: &Store, fits: impl Fn(&PullName) -> bool) -> Result<Option<SessionId>> {
    let sessions = store.list(MOST)?.sessions;
    let newest = sessions.iter().find(|s| s.pull.as_ref().is_some_and(&fits));
    Ok(newest.and_then(|s| SessionId::parse(&s.review_id)))
}

/// The stored review that precedes a new review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessor {
    /// There is no stored review of the same files and mode.
    None,
    /// The new review becomes its next round.
    Continued(SessionId),
    /// It cannot be continued, for this reason.
    Ended(String),
}

/// Finds the session that a review of a pull request continues: the newest one of this pull request
/// and base, if its files and mode are the same.
///
/// # Errors
/// Usage: no repository, an invalid policy, a store of another user. Incomplete: the store cannot
/// be read.
pub fn earlier(pull: &PullName, request: &ReviewRequest, env: &Env) -> Result<Predecessor> {
    let (_, Some(store)) = super::open(request, env)? else {
        return Ok(Predecessor::None);
    };
    let pull = masked(pull, &RuleSet::new(&RulesPolicy::default(), &[])?);
    let Some(id) = newest(&store, |p| *p == pull)? else {
        return Ok(Predecessor::None);
    };
    let asked = store.session(&id)?.request.asked;
    if asked.files != request.files || asked.gate != (request.authority == Authority::Base) {
        return Ok(Predecessor::None);
    }
    Ok(match super::follow::Follow::open(&id, request, env) {
        Ok(_) => Predecessor::Continued(id),
        Err(e) => Predecessor::Ended(e.on_one_line()),
    })
}
