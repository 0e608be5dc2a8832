//! Pipelines of Bitbucket, Azure and Jenkins, from their variables. Only Jenkins has the commit
//! before a push.
//!
//! Sources: support.atlassian.com, "Variables and secrets"; learn.microsoft.com, "Use predefined
//! variables"; the global variable reference of a Jenkins controller (`/pipeline-syntax/globals`)
//! and the git plugin's documentation.

use super::{Event, EventChange, EventKind, MAX_TITLE, System, at, branch, capped, id, short_id};
use crate::env::Env;
use crate::error::Result;
use crate::request::{Credential, End};

const NO_NEWS: &str = "has no commit that its target lacks";

/// A pull request pipeline checks out a merge with the target. The commit in the variable is the
/// author's, abbreviated to twelve digits.
pub(super) fn bitbucket(env: &Env) -> Result<Event> {
    let own = env.var("BITBUCKET_BRANCH").and_then(branch);
    let under = own.as_ref().map(|b| format!("refs/heads/{b}"));
    let head = env
        .var("BITBUCKET_COMMIT")
        .and_then(|text| commit(text, under));
    let head = head.ok_or_else(|| super::unnamed("BITBUCKET_COMMIT is not a commit ID"))?;
    let Some(target) = env.var("BITBUCKET_PR_DESTINATION_BRANCH").and_then(branch) else {
        let name = own
            .as_deref()
            .or(env.var("BITBUCKET_TAG"))
            .unwrap_or("a commit");
        let why = "Bitbucket names no commit that went before a push";
        let label = format!("a pipeline on {name}");
        return Ok(Event::new(
            System::Bitbucket,
            EventKind::Push,
            label,
            EventChange::Unknown(why.to_owned()),
        ));
    };
    let number: Option<u64> = env.var("BITBUCKET_PR_ID").and_then(|n| n.parse().ok());
    let label = number.map_or_else(
        || "pull request".to_owned(),
        |n| format!("pull request {n}"),
    );
    let under = Some(format!("refs/heads/{target}"));
    let (base, instead) = match env
        .var("BITBUCKET_PR_DESTINATION_COMMIT")
        .and_then(|text| commit(text, under))
    {
        Some(id @ End::Id { .. }) => (id, None),
        // The current tip of the branch is reliable; another commit can be made to match an
        // abbreviated ID.
        short => (End::Branch(target.clone()), short),
    };
    let may_be_empty = Some(format!("the pull request {NO_NEWS}"));
    let change = EventChange::Between {
        head,
        base,
        instead,
        may_be_empty,
    };
    Ok(Event {
        number,
        target: Some(target),
        branch: own,
        ..Event::new(System::Bitbucket, EventKind::Request, label, change)
    })
}

/// Parses a full or abbreviated ID, with the reference that contains it.
fn commit(text: &str, under: Option<String>) -> Option<End> {
    match id(text) {
        Some(id) => Some(at(id, under)),
        None => short_id(text).map(|id| End::Short { id, under }),
    }
}

/// In a pull request, `BUILD_SOURCEVERSION` is the merge commit of Azure or GitHub.
pub(super) fn azure(env: &Env) -> Result<Event> {
    let version = env.var("BUILD_SOURCEVERSION").and_then(id);
    let version =
        version.ok_or_else(|| super::unnamed("BUILD_SOURCEVERSION is not a commit ID"))?;
    let mut event = match env.var("SYSTEM_PULLREQUEST_TARGETBRANCH").and_then(branch) {
        Some(target) => {
            let source = env.var("SYSTEM_PULLREQUEST_SOURCEBRANCH").and_then(branch);
            let head = env
                .var("SYSTEM_PULLREQUEST_SOURCECOMMITID")
                .and_then(id)
                .unwrap_or(version);
            let numbers = [
                "SYSTEM_PULLREQUEST_PULLREQUESTNUMBER",
                "SYSTEM_PULLREQUEST_PULLREQUESTID",
            ];
            let number: Option<u64> = numbers.iter().find_map(|v| env.var(v)?.parse().ok());
            let change = EventChange::Between {
                head: at(head, source.as_ref().map(|s| format!("refs/heads/{s}"))),
                base: End::Branch(target.clone()),
                instead: None,
                may_be_empty: Some(format!("the pull request {NO_NEWS}")),
            };
            let label = number.map_or_else(
                || "pull request".to_owned(),
                |n| format!("pull request {n}"),
            );
            let is_fork = env
                .var("SYSTEM_PULLREQUEST_ISFORK")
                .map(|v| v.eq_ignore_ascii_case("true"));
            let event = Event::new(System::Azure, EventKind::Request, label, change);
            Event {
                number,
                target: Some(target),
                branch: source,
                is_fork,
                ..event
            }
        }
        None => {
            let kind = match env.var("BUILD_REASON") {
                Some("Schedule") => EventKind::Schedule,
                Some("Manual") => EventKind::Manual,
                _ => EventKind::Push,
            };
            let why = "Azure Pipelines names no commit that went before a push".to_owned();
            Event::new(System::Azure, kind, "a build", EventChange::Unknown(why))
        }
    };
    // Present only if the job maps System.AccessToken.
    event.credential = match (
        env.var("SYSTEM_ACCESSTOKEN"),
        env.var("SYSTEM_COLLECTIONURI"),
    ) {
        (Some(token), Some(url)) if url.starts_with("https://") => Some(Credential {
            url: format!("{}/", url.trim_end_matches('/')),
            header: format!("Authorization: Bearer {token}").into(),
        }),
        _ => None,
    };
    Ok(event)
}

/// A job for a change request may build a merge with the target, and no variable has the ID of the
/// request's own head. The merged commits of the target are in the target too, so the change is the
/// same.
pub(super) fn jenkins(env: &Env) -> Result<Event> {
    let head = match env.var("GIT_COMMIT").and_then(id) {
        Some(id) => at(id, None),
        None => End::Rev("HEAD".to_owned()),
    };
    if let Some(target) = env.var("CHANGE_TARGET").and_then(branch) {
        let number: Option<u64> = env.var("CHANGE_ID").and_then(|n| n.parse().ok());
        let label = number.map_or_else(
            || "change request".to_owned(),
            |n| format!("change request {n}"),
        );
        let change = EventChange::Between {
            head,
            base: End::Branch(target.clone()),
            instead: None,
            // HEAD may be any commit.
            may_be_empty: None,
        };
        return Ok(Event {
            number,
            title: env.var("CHANGE_TITLE").and_then(|t| capped(t, MAX_TITLE)),
            target: Some(target),
            branch: env.var("CHANGE_BRANCH").and_then(branch),
            is_fork: Some(env.var("CHANGE_FORK").is_some()),
            ..Event::new(System::Jenkins, EventKind::Request, label, change)
        });
    }
    let own = env
        .var("BRANCH_NAME")
        .or(env.var("GIT_BRANCH"))
        .unwrap_or("a commit");
    let label = format!("the build of {}", own.chars().take(200).collect::<String>());
    let is_primary = env.var("BRANCH_IS_PRIMARY") == Some("true");
    let change = match env.var("GIT_PREVIOUS_SUCCESSFUL_COMMIT").and_then(id) {
        Some(before) if is_primary => {
            // Another build of the same commit. A job for an older commit has no new commits
            // either, and that commit may have failed before.
            let again = matches!(&head, End::Id { id, .. } if *id == before);
            let may_be_empty =
                again.then(|| "this commit has a successful build already".to_owned());
            EventChange::Between {
                head,
                base: at(before, None),
                instead: None,
                may_be_empty,
            }
        }
        // A successful build only passed its own policy, which on another branch may be that of its
        // author.
        Some(_) => {
            EventChange::Unknown("Jenkins does not say that this is the primary branch".to_owned())
        }
        None => {
            EventChange::Unknown("Jenkins names no successful build that went before".to_owned())
        }
    };
    Ok(Event::new(System::Jenkins, EventKind::Push, label, change))
}
