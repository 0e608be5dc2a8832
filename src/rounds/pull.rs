//! Finds the stored review of a pull request.

use super::stored;
use crate::env::Env;
use crate::error::Result;
use crate::git::Repo;
use crate::history::{SessionId, Store};
use crate::policy::RulesPolicy;
use crate::request::{Authority, ReviewRequest};
use crate::rules::RuleSet;
use crate::shell;
use crate::wire::stored::PullName;

/// Sessions that are searched, newest first.
const MOST: usize = 300;

/// Returns the name of a pull request as it is stored.
pub(super) fn masked(pull: &PullName, rules: &RuleSet) -> PullName {
    let text = |text: &str| stored::masked(text, rules).unwrap_or_else(|| text.to_owned());
    PullName { forge: text(&pull.forge), project: text(&pull.project), number: pull.number, base: text(&pull.base) }
}

/// Returns the command that reviews a pull request again. It names the remote if several are configured and the one of the
/// project is not the default.
pub fn command(repo: &Repo, pull: &PullName) -> String {
    let remotes: Vec<Remote> = repo.remotes().into_iter().map(|name| (name.clone(), repo.remote_urls(&name))).collect();
    let of = remote_of(pull, &remotes).map(|name| format!(" --remote {}", shell::quoted(name))).unwrap_or_default();
    format!("{} review pr {}{of}", crate::NAME, pull.number)
}

/// Returns the remote to name; `None`: the default one is meant, or no remote has the project in its address.
fn remote_of<'r>(pull: &PullName, remotes: &'r [Remote]) -> Option<&'r str> {
    if remotes.len() < 2 {
        return None;
    }
    // An alias in the configuration of SSH hides the host.
    let named = remote_at(&pull.forge, &pull.project, remotes).or_else(|| remote_at("", &pull.project, remotes))?;
    (named != DEFAULT).then_some(named)
}

/// The name of a remote and its addresses.
type Remote = (String, Vec<String>);

/// Returns the remote of a project at a host: the default one, or else the first.
fn remote_at<'r>(host: &str, project: &str, remotes: &'r [Remote]) -> Option<&'r str> {
    let is_of = |(_, urls): &&Remote| urls.iter().any(|url| is_address_of(url, host, project));
    let mut all = remotes.iter().filter(is_of).map(|(name, _)| name.as_str());
    let first = all.next()?;
    Some(if all.any(|name| name == DEFAULT) { DEFAULT } else { first })
}

/// Returns true if an address is of a project at a host. Case does not count.
fn is_address_of(url: &str, host: &str, project: &str) -> bool {
    let url = url.trim_end_matches('/').to_ascii_lowercase();
    let path = url.strip_suffix(".git").unwrap_or(&url);
    let rest = path.strip_suffix(&project.to_ascii_lowercase());
    rest.is_some_and(|rest| rest.ends_with(['/', ':']) && rest.contains(&host.to_ascii_lowercase()))
}

/// The remote that `review pr` takes if none is named.
const DEFAULT: &str = "origin";

/// Returns the newest session whose pull request fits.
///
/// # Errors
/// Incomplete: the store cannot be read.
pub fn newest(store: &Store, fits: impl Fn(&PullName) -> bool) -> Result<Option<SessionId>> {
    let sessions = store.list(MOST)?.sessions;
    let newest = sessions.iter().find(|s| s.pull.as_ref().is_some_and(&fits));
    Ok(newest.and_then(|s| SessionId::parse(&s.review_id)))
}

/// The stored review before a new review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Predecessor {
    /// No review of the same files and mode is stored.
    None,
    /// The new review is its next round.
    Continued(SessionId),
    /// It cannot be continued, for this reason.
    Ended(String),
}

/// Finds the session that a review of a pull request continues: the newest one of this pull request and base, if it is
/// about the same files and made in the same mode.
///
/// # Errors
/// Usage: no repository, a malformed policy, a store of another user. Incomplete: the store cannot be read.
pub fn earlier(pull: &PullName, request: &ReviewRequest, env: &Env) -> Result<Predecessor> {
    let (_, Some(store)) = super::open(request, env)? else { return Ok(Predecessor::None) };
    let pull = masked(pull, &RuleSet::new(&RulesPolicy::default(), &[])?);
    let Some(id) = newest(&store, |p| *p == pull)? else { return Ok(Predecessor::None) };
    let asked = store.session(&id)?.request.asked;
    if asked.files != request.files || asked.gate != (request.authority == Authority::Base) {
        return Ok(Predecessor::None);
    }
    Ok(match super::follow::Follow::open(&id, request, env) {
        Ok(_) => Predecessor::Continued(id),
        Err(e) => Predecessor::Ended(e.on_one_line()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remote_of_a_pull_request_is_named_where_it_is_not_the_default() {
        let pull = PullName {
            forge: "github.com".to_owned(),
            project: "acme/tool".to_owned(),
            number: 7,
            base: "main".to_owned(),
        };
        let remote = |all: &[(&str, &str)]| {
            let all: Vec<_> = all.iter().map(|(name, url)| ((*name).to_owned(), vec![(*url).to_owned()])).collect();
            remote_of(&pull, &all).map(str::to_owned)
        };
        let fork = ("origin", "git@github.com:me/tool.git");
        for (all, expected) in [
            (vec![fork], None),
            (vec![("upstream", "https://github.com/acme/tool")], None),
            (vec![fork, ("upstream", "https://github.com/Acme/Tool.git")], Some("upstream")),
            (vec![fork, ("up", "ssh://git@work/acme/tool/")], Some("up")),
            (vec![("origin", "https://github.com/acme/tool"), ("a", "https://github.com/acme/tool")], None),
            (vec![("a", "https://gitlab.com/acme/tool"), ("b", "https://github.com/acme/tool")], Some("b")),
            (vec![fork, ("a", "https://github.com/acme/other-tool")], None),
            (vec![fork, ("a", "https://github.com/notacme/tool")], None),
        ] {
            assert_eq!(remote(&all), expected.map(str::to_owned), "{all:?}");
        }
    }
}
