//! Events of GitHub Actions and compatible systems (Gitea, Forgejo, act): the name is in a
//! variable, the payload of the webhook in a file.
//!
//! Sources: docs.github.com, "Events that trigger workflows", "Webhook events and payloads",
//! "Variables reference".

use super::{
    Event, EventChange, EventKind, MAX_DESCRIPTION, MAX_TITLE, System, at, branch, capped, id,
};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::request::{Checkout, Credential, End};
use secrecy::SecretString;
use serde_json::Value;
use std::path::Path;

/// Parses an event. `path` is for messages.
pub(super) fn event(env: &Env, bytes: &[u8], path: &Path) -> Result<Event> {
    Ok(Event {
        credential: credential(env),
        ..named(env, bytes, path)?
    })
}

/// Returns the token of a step as the credential for the repository, only for the job's own server.
fn credential(env: &Env) -> Option<Credential> {
    let (url, token) = (env.var("GITHUB_SERVER_URL")?, env.var("GITHUB_TOKEN")?);
    let token = SecretString::from(token.to_owned());
    let url = url.trim_end_matches('/');
    url.starts_with("https://")
        .then(|| Credential::basic(&format!("{url}/"), "x-access-token", &token))
}

fn named(env: &Env, bytes: &[u8], path: &Path) -> Result<Event> {
    let shown = path.display();
    let payload: Value = serde_json::from_slice(bytes).map_err(|e| {
        Error::usage(format!("the event {shown} is not valid JSON"))
            .caused_by(&e)
            .hint(super::FLAGS)
    })?;
    let name = env.var("GITHUB_EVENT_NAME").unwrap_or("");
    match name {
        "pull_request" | "pull_request_review" | "pull_request_review_comment" => {
            request(&payload, Checkout::Own).ok_or_else(|| lacking(path, name, "pull request"))
        }
        "pull_request_target" => {
            request(&payload, Checkout::Foreign).ok_or_else(|| lacking(path, name, "pull request"))
        }
        "push" => push(&payload).ok_or_else(|| lacking(path, name, "push")),
        "merge_group" => queue(&payload).ok_or_else(|| lacking(path, name, "merge group")),
        "workflow_run" => follow(&payload).ok_or_else(|| lacking(path, name, "workflow run")),
        "schedule" => Ok(manual(env, &payload, EventKind::Schedule, "a schedule")),
        "workflow_dispatch" | "repository_dispatch" | "workflow_call" | "release" | "create" => Ok(
            manual(env, &payload, EventKind::Manual, "a job started by hand"),
        ),
        "delete" => {
            let what = text(&payload, "/ref").unwrap_or("a branch").to_owned();
            Ok(Event::new(
                System::GitHub,
                EventKind::Deleted,
                format!("the deletion of {what}"),
                EventChange::Deleted(what),
            ))
        }
        _ => {
            let shown: String = name.chars().take(60).collect();
            let why = format!("event {shown:?} has no change to review");
            // Comments and similar events start jobs with all rights for any author.
            let event = Event::new(
                System::GitHub,
                EventKind::Manual,
                "an event",
                EventChange::Unknown(why),
            );
            Ok(Event {
                checkout: Checkout::Foreign,
                ..event
            })
        }
    }
}

/// Returns the error for an event whose payload does not have the change that its name promises.
fn lacking(path: &Path, event: &str, what: &str) -> Error {
    let shown: String = event.chars().take(60).collect();
    Error::usage(format!(
        "the event {} names no {what} (GITHUB_EVENT_NAME is {shown:?})",
        path.display()
    ))
    .hint(super::FLAGS)
}

/// A pull request. Its own head is reviewed, not the merge commit that GitHub creates and checks
/// out: that one has no author, changes whenever the base does, and cannot get a comment or a
/// status.
fn request(payload: &Value, checkout: Checkout) -> Option<Event> {
    let head = id(text(payload, "/pull_request/head/sha")?)?;
    let base = id(text(payload, "/pull_request/base/sha")?)?;
    let target = text(payload, "/pull_request/base/ref").and_then(branch);
    let number = number(payload, "/pull_request/number").or_else(|| number(payload, "/number"));
    let change = EventChange::Between {
        head: at(head, number.map(|n| format!("refs/pull/{n}/head"))),
        base: at(base, target.as_ref().map(|t| format!("refs/heads/{t}"))),
        instead: None,
        may_be_empty: Some("the pull request has no commit that its base lacks".to_owned()),
    };
    let label = number.map_or_else(
        || "pull request".to_owned(),
        |n| format!("pull request {n}"),
    );
    let own = text(payload, "/pull_request/base/repo/full_name");
    Some(Event {
        number,
        title: text(payload, "/pull_request/title").and_then(|t| capped(t, MAX_TITLE)),
        description: text(payload, "/pull_request/body").and_then(|t| capped(t, MAX_DESCRIPTION)),
        target,
        branch: text(payload, "/pull_request/head/ref").and_then(branch),
        // The repository of a deleted fork is null.
        is_fork: own.map(|own| text(payload, "/pull_request/head/repo/full_name") != Some(own)),
        checkout,
        ..Event::new(System::GitHub, EventKind::Request, label, change)
    })
}

/// A push. The previous commit counts as the base only on the default branch: on other branches,
/// the pusher could have put it there by an earlier push, with a policy that helps the next one.
fn push(payload: &Value) -> Option<Event> {
    let name = text(payload, "/ref")?;
    let short: String = name
        .strip_prefix("refs/heads/")
        .unwrap_or(name)
        .chars()
        .take(200)
        .collect();
    let (before, after) = (text(payload, "/before")?, text(payload, "/after")?);
    let is_tag = name.starts_with("refs/tags/");
    let label = format!("the push to {short}");
    let Some(head) = id(after) else {
        let change = EventChange::Deleted(short);
        let is_deletion = payload.pointer("/deleted") == Some(&Value::Bool(true))
            || after.bytes().all(|b| b == b'0');
        return is_deletion.then(|| Event::new(System::GitHub, EventKind::Deleted, label, change));
    };
    let head = at(
        head,
        Some(name.to_owned()).filter(|n| n.starts_with("refs/")),
    );
    let before = id(before).map(|id| at(id, None));
    let change = match text(payload, "/repository/default_branch").and_then(branch) {
        None => EventChange::Unknown(format!(
            "{label} does not say which branch is the default one"
        )),
        // The very first push has no base. A forced push back to an older commit has no new
        // commits, and that commit may have been blocked before.
        Some(trunk) if name.strip_prefix("refs/heads/") == Some(&trunk) => EventChange::Between {
            head,
            base: before.unwrap_or(End::Nothing),
            instead: None,
            may_be_empty: None,
        },
        Some(trunk) => EventChange::topic(head, trunk, true),
    };
    let kind = if is_tag {
        EventKind::Tag
    } else {
        EventKind::Push
    };
    let target = branch(name).filter(|_| !is_tag);
    Some(Event {
        target,
        ..Event::new(System::GitHub, kind, label, change)
    })
}

fn queue(payload: &Value) -> Option<Event> {
    let head = id(text(payload, "/merge_group/head_sha")?)?;
    let base = id(text(payload, "/merge_group/base_sha")?)?;
    let target = text(payload, "/merge_group/base_ref").and_then(branch);
    let change = EventChange::Between {
        head: at(head, reference(payload, "/merge_group/head_ref")),
        base: at(base, reference(payload, "/merge_group/base_ref")),
        instead: None,
        may_be_empty: None,
    };
    Some(Event {
        target,
        ..Event::new(System::GitHub, EventKind::Queue, "the merge group", change)
    })
}

/// Returns the full name of a reference in a payload.
fn reference(payload: &Value, pointer: &str) -> Option<String> {
    text(payload, pointer)
        .filter(|n| n.starts_with("refs/"))
        .map(str::to_owned)
}

/// A workflow that runs after another one, on the default branch and with its rights, although the
/// other one may have run for the pull request of a stranger.
fn follow(payload: &Value) -> Option<Event> {
    let run = payload.pointer("/workflow_run")?;
    let head = id(text(run, "/head_sha")?)?;
    let trunk = text(payload, "/repository/default_branch").and_then(branch);
    let number = number(run, "/pull_requests/0/number");
    // Pull requests from forks are not listed, so a listed one need not be the right one.
    let listed = text(run, "/pull_requests/0/head/sha").and_then(id).as_ref() == Some(&head);
    let target = text(run, "/pull_requests/0/base/ref")
        .and_then(branch)
        .filter(|_| listed);
    let base = match text(run, "/pull_requests/0/base/sha")
        .and_then(id)
        .filter(|_| listed)
    {
        Some(base) => at(base, target.as_ref().map(|t| format!("refs/heads/{t}"))),
        None => End::Branch(trunk.clone()?),
    };
    let number = number.filter(|_| listed);
    let label = match number {
        Some(n) => format!("pull request {n}, after another workflow"),
        None => format!("commit {}, after another workflow", &head[..12]),
    };
    let under = number.map(|n| format!("refs/pull/{n}/head"));
    let change = EventChange::Between {
        head: at(head, under),
        base,
        instead: None,
        may_be_empty: None,
    };
    let own = text(payload, "/repository/full_name");
    let owner = text(run, "/head_repository/owner/login").filter(|o| {
        !o.is_empty()
            && o.len() <= 100
            && o.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    });
    let from = text(run, "/head_branch")
        .and_then(branch)
        .filter(|_| text(run, "/event") == Some("pull_request"));
    let fork_head = owner
        .zip(from)
        .filter(|_| number.is_none())
        .map(|(owner, from)| format!("{owner}:{from}"));
    Some(Event {
        number,
        fork_head,
        target: target.or(trunk),
        is_fork: own
            .map(|own| text(payload, "/workflow_run/head_repository/full_name") != Some(own)),
        checkout: Checkout::Foreign,
        ..Event::new(System::GitHub, EventKind::Follow, label, change)
    })
}

/// An event that does not belong to a change: the current branch is compared with the default
/// branch.
fn manual(env: &Env, payload: &Value, kind: EventKind, label: &str) -> Event {
    let trunk = text(payload, "/repository/default_branch").and_then(branch);
    let on = env.var("GITHUB_REF").map(str::to_owned);
    let change = match (env.var("GITHUB_SHA").and_then(id), on, trunk) {
        (_, Some(on), Some(trunk)) if on == format!("refs/heads/{trunk}") => EventChange::Unknown(
            format!("{label} on the default branch comes with no change"),
        ),
        (Some(head), on, Some(trunk)) => EventChange::Between {
            head: at(head, on.filter(|n| n.starts_with("refs/"))),
            base: End::Branch(trunk),
            instead: None,
            may_be_empty: None,
        },
        _ => EventChange::Unknown(format!("{label} comes with no change")),
    };
    Event::new(System::GitHub, kind, label, change)
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

fn number(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer)?.as_u64()
}
