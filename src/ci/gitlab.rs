//! Pipelines of GitLab, by their predefined variables.
//!
//! Source: docs.gitlab.com, "Predefined CI/CD variables reference", "Merge request pipelines",
//! "Merged results pipelines".

use super::{
    Event, EventChange, EventKind, MAX_DESCRIPTION, MAX_TITLE, System, at, branch, capped, id,
};
use crate::env::Env;
use crate::error::Result;
use crate::request::{Credential, End};
use secrecy::SecretString;

/// Reads the variables of a pipeline.
pub(super) fn event(env: &Env) -> Result<Event> {
    let commit = env
        .var("CI_COMMIT_SHA")
        .and_then(id)
        .ok_or_else(|| super::unnamed("CI_COMMIT_SHA is not a commit ID"))?;
    let mut event = match env.var("CI_MERGE_REQUEST_IID") {
        Some(number) => request(env, number, commit)?,
        None if env.var("CI_PIPELINE_SOURCE") == Some("external_pull_request_event") => {
            external(env, commit)?
        }
        None => branch_or_tag(env, commit),
    };
    event.credential = credential(env);
    Ok(event)
}

/// A merge request, in any of its three kinds of pipeline. Its source is reviewed, because in
/// merged results and merge trains GitLab creates the commit of the pipeline.
///
/// The base is the current target branch, not `CI_MERGE_REQUEST_DIFF_BASE_SHA`: after a change of
/// the target, that can be the base of the old target, and the commits between the two would not be
/// reviewed. It is the substitute if the target branch is gone.
fn request(env: &Env, number: &str, commit: String) -> Result<Event> {
    let head = env
        .var("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
        .and_then(id)
        .unwrap_or(commit);
    let target = env
        .var("CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
        .and_then(branch);
    let diff_base = env
        .var("CI_MERGE_REQUEST_DIFF_BASE_SHA")
        .and_then(id)
        .map(|id| at(id, None));
    let base = match (
        env.var("CI_MERGE_REQUEST_TARGET_BRANCH_SHA").and_then(id),
        target.clone(),
    ) {
        (Some(id), target) => at(id, target.map(|t| format!("refs/heads/{t}"))),
        (None, Some(target)) => End::Branch(target),
        (None, None) => diff_base
            .clone()
            .ok_or_else(|| super::unnamed("CI_MERGE_REQUEST_TARGET_BRANCH_NAME names no branch"))?,
    };
    let under = env
        .var("CI_MERGE_REQUEST_REF_PATH")
        .filter(|r| r.starts_with("refs/"))
        .map(str::to_owned);
    let change = EventChange::Between {
        head: at(head, under),
        base,
        instead: diff_base,
        may_be_empty: Some("the merge request has no commit that its target lacks".to_owned()),
    };
    // In the fork, `origin` is the fork: its branch with the target's name, and the policy on it,
    // belong to the author.
    let change = match (env.var("CI_PROJECT_ID"), env.var("CI_MERGE_REQUEST_PROJECT_ID")) {
        (Some(here), Some(target)) if here != target => EventChange::Unknown(
            "this pipeline runs in the fork, whose branches say nothing of the target project; run it in the parent \
             project, or fetch the target's branch and pass both"
                .to_owned(),
        ),
        _ => change,
    };
    let number = number.parse().ok();
    let label = number.map_or_else(
        || "merge request".to_owned(),
        |n: u64| format!("merge request {n}"),
    );
    let kind = match env.var("CI_MERGE_REQUEST_EVENT_TYPE") {
        Some("merge_train") => EventKind::Queue,
        _ => EventKind::Request,
    };
    let own = env.var("CI_MERGE_REQUEST_PROJECT_ID");
    Ok(Event {
        number,
        title: env
            .var("CI_MERGE_REQUEST_TITLE")
            .and_then(|t| capped(t, MAX_TITLE)),
        description: env
            .var("CI_MERGE_REQUEST_DESCRIPTION")
            .and_then(|t| capped(t, MAX_DESCRIPTION)),
        target,
        branch: env
            .var("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME")
            .and_then(branch),
        is_fork: own.map(|own| env.var("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != Some(own)),
        ..Event::new(System::GitLab, kind, label, change)
    })
}

/// A pull request on GitHub whose repository is mirrored here. Its number is valid only on GitHub.
fn external(env: &Env, commit: String) -> Result<Event> {
    let head = env
        .var("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA")
        .and_then(id)
        .unwrap_or(commit);
    let source = env
        .var("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME")
        .and_then(branch);
    let target = env
        .var("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME")
        .and_then(branch);
    let target = target.ok_or_else(|| {
        super::unnamed("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_NAME names no branch")
    })?;
    let change = EventChange::Between {
        head: at(head, source.map(|b| format!("refs/heads/{b}"))),
        base: match env
            .var("CI_EXTERNAL_PULL_REQUEST_TARGET_BRANCH_SHA")
            .and_then(id)
        {
            Some(id) => at(id, Some(format!("refs/heads/{target}"))),
            None => End::Branch(target.clone()),
        },
        instead: None,
        may_be_empty: Some("the pull request has no commit that its target lacks".to_owned()),
    };
    let number: Option<u64> = env
        .var("CI_EXTERNAL_PULL_REQUEST_IID")
        .and_then(|n| n.parse().ok());
    let label = number.map_or_else(
        || "external pull request".to_owned(),
        |n| format!("external pull request {n}"),
    );
    let own = env.var("CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY");
    Ok(Event {
        target: Some(target),
        is_fork: own.map(|own| env.var("CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY") != Some(own)),
        ..Event::new(System::GitLab, EventKind::Request, label, change)
    })
}

/// A pipeline for a branch or tag. The commit before a push counts as the base only on the default
/// branch: on other branches, the pusher could have put it there by an earlier push, with a policy
/// that helps the next one.
fn branch_or_tag(env: &Env, commit: String) -> Event {
    let own = env.var("CI_COMMIT_BRANCH").and_then(branch);
    let tag = env.var("CI_COMMIT_TAG");
    let is_push = env.var("CI_PIPELINE_SOURCE") == Some("push");
    let name = own.as_deref().or(tag).unwrap_or("a commit");
    let (kind, label) = match env.var("CI_PIPELINE_SOURCE") {
        _ if tag.is_some() => (EventKind::Tag, format!("the tag {name}")),
        Some("push") => (EventKind::Push, format!("the push to {name}")),
        Some("schedule") => (EventKind::Schedule, "a schedule".to_owned()),
        _ => (EventKind::Manual, format!("a pipeline on {name}")),
    };
    let under = match (&own, tag) {
        (Some(own), _) => Some(format!("refs/heads/{own}")),
        (None, tag) => tag.map(|t| format!("refs/tags/{t}")),
    };
    let head = at(commit, under);
    let before = env.var("CI_COMMIT_BEFORE_SHA").unwrap_or("");
    let change = match env.var("CI_DEFAULT_BRANCH").and_then(branch) {
        None => EventChange::Unknown(format!(
            "{label} does not say which branch is the default one"
        )),
        Some(trunk) if own.as_ref() != Some(&trunk) => EventChange::topic(head, trunk, is_push),
        // All zeros if a person or a schedule started the pipeline; for a push, if it is the first
        // one.
        Some(_) => match id(before)
            .map(|id| at(id, None))
            .or_else(|| is_zeros(before).then_some(End::Nothing))
        {
            Some(base) if is_push => EventChange::Between {
                head,
                base,
                instead: None,
                may_be_empty: None,
            },
            _ => EventChange::Unknown(format!("{label} comes with no commit that went before")),
        },
    };
    Event {
        target: own,
        ..Event::new(System::GitLab, kind, label, change)
    }
}

fn is_zeros(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b == b'0')
}

/// Returns the job token as the credential for the project, only for the job's own server.
fn credential(env: &Env) -> Option<Credential> {
    let (url, token) = (env.var("CI_SERVER_URL")?, env.var("CI_JOB_TOKEN")?);
    let url = url.trim_end_matches('/');
    let fits = url.starts_with("https://") || url.starts_with("http://");
    let token = SecretString::from(token.to_owned());
    fits.then(|| Credential::basic(&format!("{url}/"), "gitlab-ci-token", &token))
}
