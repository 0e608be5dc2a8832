//! The commands that review the next round of a session, and a pull request again. Pure.

use crate::review::Remote;
use crate::shell;
use crate::wire::stored::{PullName, Session};

/// Returns the command that reviews the next round of a session. A pull request is read from the
/// forge again.
pub(super) fn next_round(session: &Session, remotes: &[Remote]) -> String {
    match &session.request.pull {
        Some(pull) => pull_command(remotes, pull),
        None => format!("claude-reviewer review --follow-up {}", session.review_id),
    }
}

/// Returns the command that reviews a pull request again. It contains the remote if several are
/// configured and the project's is not the default.
pub fn pull_command(remotes: &[Remote], pull: &PullName) -> String {
    let of = remote_of(pull, remotes)
        .map(|name| format!(" --remote {}", shell::quoted(name)))
        .unwrap_or_default();
    format!("{} review pr {}{of}", crate::NAME, pull.number)
}

/// Returns the remote to name, or `None` if it is the default one, or no remote's address has the
/// project.
fn remote_of<'r>(pull: &PullName, remotes: &'r [Remote]) -> Option<&'r str> {
    if remotes.len() < 2 {
        return None;
    }
    // An alias in the ssh configuration hides the host.
    let named = remote_at(&pull.forge, &pull.project, remotes)
        .or_else(|| remote_at("", &pull.project, remotes))?;
    (named != DEFAULT).then_some(named)
}

/// Returns the remote of a project at a host: the default one if it matches, or else the first.
fn remote_at<'r>(host: &str, project: &str, remotes: &'r [Remote]) -> Option<&'r str> {
    let matching = remotes
        .iter()
        .filter(|(_, urls)| urls.iter().any(|url| is_address_of(url, host, project)));
    let mut all = matching.map(|(name, _)| name.as_str());
    let first = all.next()?;
    Some(if all.any(|name| name == DEFAULT) {
        DEFAULT
    } else {
        first
    })
}

/// Returns true if an address is that of a project at a host. Ignores case.
fn is_address_of(url: &str, host: &str, project: &str) -> bool {
    let url = url.trim_end_matches('/').to_ascii_lowercase();
    let path = url.strip_suffix(".git").unwrap_or(&url);
    let rest = path.strip_suffix(&project.to_ascii_lowercase());
    rest.is_some_and(|rest| rest.ends_with(['/', ':']) && rest.contains(&host.to_ascii_lowercase()))
}

/// Remote of `review pr` if none is named.
const DEFAULT: &str = "origin";

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
        let fork = ("origin", "git@github.com:me/tool.git");
        for (all, expected) in [
            (vec![fork], None),
            (vec![("upstream", "https://github.com/acme/tool")], None),
            (
                vec![fork, ("upstream", "https://github.com/Acme/Tool.git")],
                Some("upstream"),
            ),
            (vec![fork, ("up", "ssh://git@work/acme/tool/")], Some("up")),
            (
                vec![
                    ("origin", "https://github.com/acme/tool"),
                    ("a", "https://github.com/acme/tool"),
                ],
                None,
            ),
            (
                vec![
                    ("a", "https://gitlab.com/acme/tool"),
                    ("b", "https://github.com/acme/tool"),
                ],
                Some("b"),
            ),
            (
                vec![fork, ("a", "https://github.com/acme/other-tool")],
                None,
            ),
            (vec![fork, ("a", "https://github.com/notacme/tool")], None),
        ] {
            let remotes: Vec<Remote> = all
                .iter()
                .map(|(name, url)| ((*name).to_owned(), vec![(*url).to_owned()]))
                .collect();
            assert_eq!(remote_of(&pull, &remotes), expected, "{all:?}");
        }
    }
}
