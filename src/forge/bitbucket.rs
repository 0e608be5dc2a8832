//! Bitbucket: one service with two APIs, which share a token variable and little else.
//!
//! [`server`] is the client for Data Center, once called Server, and [`cloud`] the one for
//! bitbucket.org.

mod cloud;
mod server;

#[cfg(test)]
pub(super) use self::cloud::BitbucketCloud;
#[cfg(test)]
pub(super) use self::server::BitbucketServer;

use super::added::Added;
use super::commands::{Authors, co_authors};
use super::host::{ForgeService, Host, before, with_host, with_path};
use super::mark::MarkForm;
use super::pager::Pages;
use super::publish::{CommitStatus, ExistingStatus, InlineComment, StatusState};
use super::{Account, MOST_OF_A_TEXT, PullRequest, Reads, speaks_of};
use crate::http::{Failure, Url};
use crate::report::markdown::Flavor;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Bitbucket Cloud and Bitbucket Data Center.
pub(super) static SERVICE: ForgeService = ForgeService {
    name: "bitbucket",
    setting: "[forge] bitbucket_api",
    address: |policy| policy.bitbucket_api.as_deref(),
    job_variables: None,
    public: "https://api.bitbucket.org/2.0",
    host,
    token_variables: |_, origin| match origin.is_home {
        true => vec!["BB_TOKEN"],
        false => Vec::new(),
    },
    token_header: ("authorization", "Bearer "),
    job_token: None,
    // A user name and an app password, or a token that belongs to a user name.
    takes_pairs: true,
    headers: &[("accept", "application/json")],
    flavor: Flavor::Bitbucket,
    mark_form: MarkForm::Link,
};

/// Comments of a pull request that are read, at most; on a server, activities of any kind.
const MOST: usize = 3000;
/// Characters of a status description, at most.
const MOST_OF_A_STATUS: usize = 255;
/// Prefix of the description of an incomplete review's status ([`super::publish::status`]).
const INCOMPLETE: &str = "incomplete";

/// Accepts `https://HOST/rest/api/1.0`, and `https://api.bitbucket.org/2.0` for Bitbucket Cloud. An
/// address of another host that ends with `/2.0` is a proxy for Bitbucket Cloud.
fn host(api: &Url) -> Host {
    if matches!(api.host_str(), Some("api.bitbucket.org" | "bitbucket.org")) {
        return Host {
            service: &SERVICE,
            forge: &cloud::BitbucketCloud,
            api: with_host(&with_path(api, "/2.0/"), "api.bitbucket.org"),
            web: with_host(&with_path(api, "/"), "bitbucket.org"),
            aliases: &["altssh.bitbucket.org", "www.bitbucket.org"],
        };
    }
    if let Some(prefix) = api.path().trim_end_matches('/').strip_suffix("/2.0") {
        return Host {
            service: &SERVICE,
            forge: &cloud::BitbucketCloud,
            api: with_path(api, &format!("{prefix}/2.0/")),
            web: with_path(api, &format!("{prefix}/")),
            aliases: &[],
        };
    }
    let prefix = before(api, "/rest");
    Host {
        service: &SERVICE,
        forge: &server::BitbucketServer,
        // Not all of its APIs are below the same version.
        api: with_path(api, &format!("{prefix}/rest/")),
        web: with_path(api, &format!("{prefix}/")),
        aliases: &[],
    }
}

/// Writes new comments on lines. `write` writes one, on all of its lines or, if its flag is false,
/// on the last of them.
fn add_each(
    inline: &[InlineComment],
    write: impl Fn(&InlineComment, bool) -> Result<(), Failure>,
) -> Added {
    let mut added = Added::default();
    for (i, inline) in inline.iter().enumerate() {
        let mut done = write(inline, true);
        // If the forge rejects a comment on several lines, it may accept one on the last of them.
        if done.as_ref().is_err_and(has_no_place) && inline.spot.first.new < inline.spot.last.new {
            done = write(inline, false);
        }
        match done {
            Ok(()) => added.placed += 1,
            Err(failure) if has_no_place(&failure) => added.unplaced.push(i),
            Err(failure) => return added.ends(failure),
        }
    }
    added
}

/// Returns true if a comment was rejected because of its position: other errors have the same
/// status codes.
fn has_no_place(failure: &Failure) -> bool {
    const WORDS: [&str; 8] = [
        "line",
        "lines",
        "path",
        "position",
        "diff",
        "anchor",
        "inline",
        "multiline",
    ];
    matches!(failure.status, Some(400 | 409 | 422)) && speaks_of(&failure.message, &WORDS)
}

/// Reads a build status. Neither API reports who set it.
fn status_of_build(build: &Value) -> Option<ExistingStatus> {
    let description = build.name_at("/description");
    let state = match build["state"].as_str() {
        Some("SUCCESSFUL") => StatusState::Success,
        Some("FAILED") if !description.starts_with(INCOMPLETE) => StatusState::Failure,
        Some("FAILED") => StatusState::Incomplete,
        // This program never sets a state such as in progress or stopped.
        _ => return None,
    };
    Some(ExistingStatus {
        by: None,
        status: CommitStatus { state, description },
    })
}

/// Returns the build status to set.
fn build_of_status(pull: &PullRequest, context: &str, status: &CommitStatus) -> Value {
    let description: String = status.description.chars().take(MOST_OF_A_STATUS).collect();
    // An incomplete review must prevent the merge. Not all other states do that, and not all
    // servers know them.
    let state = match status.state {
        StatusState::Success => "SUCCESSFUL",
        StatusState::Failure | StatusState::Incomplete => "FAILED",
    };
    json!({
        "key": context, "name": context, "state": state, "description": description, "url": pull.url,
    })
}

/// An email address and its account, if known.
type Person = (Option<String>, Option<Account>);

/// Adds the authors and committers of a pull request's commits. A co-author is identified by an
/// email address that another commit links to an account: neither API finds accounts by address.
/// `id` is the path of a commit's ID; `person` reads an author or committer.
fn add_authors(
    out: &mut Authors,
    pull: &PullRequest,
    commits: &Pages,
    (id, person): (&str, &dyn Fn(&Value) -> Person),
) {
    let has_head = commits
        .items
        .iter()
        .any(|c| c.id_at(id).is_ok_and(|id| id == pull.head.id));
    if commits.more || !has_head {
        out.unknown
            .get_or_insert_with(|| "Bitbucket does not list all commits".to_owned());
    }
    let people = commits
        .items
        .iter()
        .flat_map(|commit| people_of(commit, person));
    let known: HashMap<String, Account> = people
        .filter_map(|(address, account)| Some((address?, account?)))
        .collect();
    for commit in &commits.items {
        let message = commit["message"].as_str().unwrap_or_default();
        let id: String = commit.name_at(id).chars().take(12).collect();
        for (_, account) in people_of(commit, person) {
            out.add(account, || {
                format!("author or committer of commit {id} has no account")
            });
        }
        match co_authors(message) {
            Some(addresses) if message.len() < MOST_OF_A_TEXT => {
                for address in addresses {
                    out.add(known.get(&address).cloned(), || {
                        format!("a co-author of commit {id} has no known account")
                    });
                }
            }
            _ => out.add(None, || {
                format!("the co-authors of commit {id} cannot be read")
            }),
        }
    }
}

/// Returns the author and the committer of a commit.
fn people_of(commit: &Value, person: &dyn Fn(&Value) -> Person) -> [Person; 2] {
    [person(&commit["author"]), person(&commit["committer"])]
}

/// Returns true if a failure means that the object does not exist.
fn is_absent(failure: &Failure) -> bool {
    matches!(failure.status, Some(404 | 405))
}

/// Returns a number as text; empty if the value is not a number.
fn key(value: &Value) -> String {
    value.as_u64().map(|n| n.to_string()).unwrap_or_default()
}
