//! Pipelines of GitLab, by their predefined variables.
//!
//! Source: docs.gitlab.com, "Predefined CI/CD variables reference", "Merge request pipelines", "Merged results
//! pipelines".

use super::{Change, Event, Kind, MAX_DESCRIPTION, MAX_TITLE, System, at, branch, capped, id};
use crate::env::Env;
use crate::error::Result;
use crate::request::{Credential, End};
use secrecy::SecretString;

/// Reads the variables of a pipeline.
pub(super) fn event(env: &Env) -> Result<Event> {
    let commit = env.var("CI_COMMIT_SHA").and_then(id).ok_or_else(|| super::unnamed("CI_COMMIT_SHA is no commit"))?;
    let mut event = match env.var("CI_MERGE_REQUEST_IID") {
        Some(number) => request(env, number, commit)?,
        None => branch_or_tag(env, commit),
    };
    event.credential = credential(env);
    Ok(event)
}

/// A merge request, in any of its three kinds of pipeline. Its source is reviewed: in merged results and in trains the
/// commit of the pipeline is one that GitLab made.
///
/// The base is the target branch as it is, not `CI_MERGE_REQUEST_DIFF_BASE_SHA`: after the target was changed that can
/// be the base of the old one, and what lies between the two would not be reviewed. It stands in where the target
/// branch is gone.
fn request(env: &Env, number: &str, commit: String) -> Result<Event> {
    let head = env.var("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA").and_then(id).unwrap_or(commit);
    let target = env.var("CI_MERGE_REQUEST_TARGET_BRANCH_NAME").and_then(branch);
    let diff_base = env.var("CI_MERGE_REQUEST_DIFF_BASE_SHA").and_then(id).map(|id| at(id, None));
    let base = match (env.var("CI_MERGE_REQUEST_TARGET_BRANCH_SHA").and_then(id), target.clone()) {
        (Some(id), target) => at(id, target.map(|t| format!("refs/heads/{t}"))),
        (None, Some(target)) => End::Branch(target),
        (None, None) => {
            diff_base.clone().ok_or_else(|| super::unnamed("CI_MERGE_REQUEST_TARGET_BRANCH_NAME names no branch"))?
        }
    };
    let under = env.var("CI_MERGE_REQUEST_REF_PATH").filter(|r| r.starts_with("refs/")).map(str::to_owned);
    let change = Change::Between {
        head: at(head, under),
        base,
        instead: diff_base,
        may_be_empty: Some("the merge request has no commit that its target lacks".to_owned()),
    };
    // There `origin` is the fork: its branch of the target's name, and the policy on it, are the author's.
    let change = match (env.var("CI_PROJECT_ID"), env.var("CI_MERGE_REQUEST_PROJECT_ID")) {
        (Some(here), Some(target)) if here != target => Change::Unknown(
            "this pipeline runs in the fork, whose branches say nothing of the target project; run it in the parent \
             project, or fetch the target's branch and pass both"
                .to_owned(),
        ),
        _ => change,
    };
    let number = number.parse().ok();
    let label = number.map_or_else(|| "merge request".to_owned(), |n: u64| format!("merge request {n}"));
    let kind = match env.var("CI_MERGE_REQUEST_EVENT_TYPE") {
        Some("merge_train") => Kind::Queue,
        _ => Kind::Request,
    };
    let project = |v: &str| env.var(v).map(str::to_owned);
    let own = project("CI_MERGE_REQUEST_PROJECT_ID");
    Ok(Event {
        number,
        title: env.var("CI_MERGE_REQUEST_TITLE").and_then(|t| capped(t, MAX_TITLE)),
        description: env.var("CI_MERGE_REQUEST_DESCRIPTION").and_then(|t| capped(t, MAX_DESCRIPTION)),
        target,
        is_fork: own.map(|own| project("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != Some(own)),
        ..Event::new(System::GitLab, kind, label, change)
    })
}

fn branch_or_tag(env: &Env, commit: String) -> Event {
    let trunk = env.var("CI_DEFAULT_BRANCH").and_then(branch);
    let own = env.var("CI_COMMIT_BRANCH").and_then(branch);
    let tag = env.var("CI_COMMIT_TAG");
    let is_push = env.var("CI_PIPELINE_SOURCE") == Some("push");
    let is_trunk = own.is_some() && own == trunk;
    let instead = trunk.filter(|_| !is_trunk).map(End::Branch);
    // All zeros where somebody started the pipeline, a clock did, or the branch is new.
    let before = env.var("CI_COMMIT_BEFORE_SHA").and_then(id).filter(|_| is_push && tag.is_none());
    let name = own.as_deref().or(tag).unwrap_or("a commit");
    let (kind, label) = match env.var("CI_PIPELINE_SOURCE") {
        _ if tag.is_some() => (Kind::Tag, format!("the tag {name}")),
        Some("push") => (Kind::Push, format!("the push to {name}")),
        Some("schedule") => (Kind::Schedule, "a schedule".to_owned()),
        _ => (Kind::Manual, format!("a pipeline on {name}")),
    };
    let under = match (&own, tag) {
        (Some(own), _) => Some(format!("refs/heads/{own}")),
        (None, tag) => tag.map(|t| format!("refs/tags/{t}")),
    };
    let head = at(commit, under);
    let change = match (before, &instead) {
        (Some(before), _) => Change::Between {
            head,
            base: at(before, None),
            instead,
            may_be_empty: Some("the push takes the branch to a commit that it had already".to_owned()),
        },
        (None, Some(trunk)) => Change::Between {
            head,
            base: trunk.clone(),
            instead: None,
            may_be_empty: is_push.then(|| "what is pushed is on the default branch already".to_owned()),
        },
        (None, None) => Change::Unknown(format!("{label} comes with no commit that went before")),
    };
    Event { target: own, ..Event::new(System::GitLab, kind, label, change) }
}

/// What lets a job read its project, for its own server alone.
fn credential(env: &Env) -> Option<Credential> {
    let (url, token) = (env.var("CI_SERVER_URL")?, env.var("CI_JOB_TOKEN")?);
    let url = url.trim_end_matches('/');
    let fits = url.starts_with("https://") || url.starts_with("http://");
    let token = SecretString::from(token.to_owned());
    fits.then(|| Credential::basic(&format!("{url}/"), "gitlab-ci-token", &token))
}
