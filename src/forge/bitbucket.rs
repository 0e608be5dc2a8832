//! Bitbucket: two APIs that share a name and a token variable, and little else.
//!
//! [`server`] is the client for Data Center, [`cloud`] the one for bitbucket.org.

mod cloud;
mod server;

use super::added::Added;
use super::client::Pages;
use super::commands::{Authors, CommentReply, Rights, co_authors};
use super::publish::{Comment, CommitStatus, Inline, Light, Set};
use super::{Account, Forge, ForgeKind, ListedPull, MOST_OF_A_TEXT, PullRequest, Reads, speaks_of};
use crate::context::Ticket;
use crate::http::{Failure, Limits};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashMap;

pub(super) const TOKEN: (&str, &str) = ("authorization", "Bearer ");
pub(super) const HEADERS: &[(&str, &str)] = &[("accept", "application/json")];

/// Comments of a pull request that are read, at most; on a server, activities of any kind.
const MOST: usize = 3000;
/// Characters of a status description, at most.
const MOST_OF_A_STATUS: usize = 255;
/// Prefix of the description of an incomplete review's status ([`super::publish::status`]).
const INCOMPLETE: &str = "incomplete";

/// Calls the function of this name in the module of the forge's API.
macro_rules! spoken {
    ($forge:expr, $name:ident($($arg:expr),*)) => {
        match $forge.site.host.kind {
            ForgeKind::BitbucketCloud => cloud::$name($forge, $($arg),*).await,
            ForgeKind::BitbucketServer | ForgeKind::Github | ForgeKind::Gitlab => server::$name($forge, $($arg),*).await,
        }
    };
}

pub(super) async fn list(
    forge: &Forge,
    limits: &Limits<'_>,
) -> Result<(Vec<ListedPull>, bool), Failure> {
    spoken!(forge, list(limits))
}

pub(super) async fn read(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<PullRequest, Failure> {
    spoken!(forge, read(number, limits))
}

/// Reads an issue of Bitbucket Cloud; Data Center has none.
pub(super) async fn issue(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<Ticket, Failure> {
    cloud::issue(forge, number, limits).await
}

/// Returns the account of the token.
pub(super) async fn me(forge: &Forge, limits: &Limits<'_>) -> Result<Account, Failure> {
    spoken!(forge, me(limits))
}

/// Lists the first comments of conversations, oldest first. The flag is false if there are more.
pub(super) async fn comments(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<(Vec<Comment>, bool), Failure> {
    spoken!(forge, comments(pull, limits))
}

/// Writes new comments on lines.
pub(super) async fn add(
    forge: &Forge,
    pull: &PullRequest,
    inline: &[Inline],
    limits: &Limits<'_>,
) -> Added {
    let mut added = Added::default();
    for (i, inline) in inline.iter().enumerate() {
        let mut done = spoken!(forge, comment_on(pull, inline, true, limits));
        // If the forge rejects a comment on several lines, it may accept one on the last of them.
        if done.as_ref().is_err_and(has_no_place) && inline.spot.first.new < inline.spot.last.new {
            done = spoken!(forge, comment_on(pull, inline, false, limits));
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

/// Replaces the text of a comment.
pub(super) async fn edit(
    forge: &Forge,
    pull: &PullRequest,
    comment: &Comment,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    spoken!(forge, edit(pull, comment, body, limits))
}

/// Resolves the conversation that a comment begins, or opens it again.
pub(super) async fn resolve(
    forge: &Forge,
    pull: &PullRequest,
    comment: &Comment,
    resolved: bool,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    spoken!(forge, resolve(pull, comment, resolved, limits))
}

/// Writes a comment about the pull request as a whole.
pub(super) async fn summarize(
    forge: &Forge,
    pull: &PullRequest,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    spoken!(forge, summarize(pull, body, limits))
}

/// Returns the build status of the head under a name. Neither API reports who set it.
pub(super) async fn newest_status(
    forge: &Forge,
    pull: &PullRequest,
    context: &str,
    limits: &Limits<'_>,
) -> Result<Option<Set>, Failure> {
    let Some(build) = spoken!(forge, build(pull, context, limits))? else {
        return Ok(None);
    };
    let description = build.name_at("/description");
    let light = match build["state"].as_str() {
        Some("SUCCESSFUL") => Light::Success,
        Some("FAILED") if !description.starts_with(INCOMPLETE) => Light::Failure,
        Some("FAILED") => Light::Error,
        // This program never sets a state such as in progress or stopped.
        _ => return Ok(None),
    };
    Ok(Some(Set {
        by: None,
        status: CommitStatus { light, description },
    }))
}

/// Sets the build status of the head under a name.
pub(super) async fn set_status(
    forge: &Forge,
    pull: &PullRequest,
    context: &str,
    status: &CommitStatus,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let description: String = status.description.chars().take(MOST_OF_A_STATUS).collect();
    // An incomplete review must prevent the merge. Not all other states do that, and not all
    // servers know them.
    let state = match status.light {
        Light::Success => "SUCCESSFUL",
        Light::Failure | Light::Error => "FAILED",
    };
    let body = serde_json::json!({
        "key": context, "name": context, "state": state, "description": description, "url": pull.url,
    });
    spoken!(forge, set_build(pull, body, limits))
}

/// Lists the replies in conversations about lines. The flag is false if there are more.
pub(super) async fn replies(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<(Vec<CommentReply>, bool), Failure> {
    spoken!(forge, replies(pull, limits))
}

/// Returns the time when the head was pushed, or `None` if the API does not report it.
pub(super) async fn pushed(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<Option<Timestamp>, Failure> {
    spoken!(forge, pushed(pull, limits))
}

/// Finds the authors of the change.
pub(super) async fn authors(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<Authors, Failure> {
    spoken!(forge, authors(pull, limits))
}

/// Returns the rights of an account.
pub(super) async fn rights(
    forge: &Forge,
    account: &Account,
    limits: &Limits<'_>,
) -> Result<Rights, Failure> {
    spoken!(forge, rights(account, limits))
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

/// Converts a path to the form that the client takes.
fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Returns true if a failure means that the object does not exist.
fn is_absent(failure: &Failure) -> bool {
    matches!(failure.status, Some(404 | 405))
}

/// Returns a number as text; empty if the value is not a number.
fn key(value: &Value) -> String {
    value.as_u64().map(|n| n.to_string()).unwrap_or_default()
}
