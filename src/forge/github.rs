//! GitHub's REST API, and GraphQL for what REST lacks: the account of a token, and threads.
//!
//! <https://docs.github.com/rest>, version 2022-11-28, which GitHub Enterprise Server supports too.

mod replies;
mod write;

pub(super) use replies::{authors, pushed, replies, rights};
pub(super) use write::{add, comments, edit, me, newest_status, resolve, set_status, summarize};

use super::address::ForgeProject;
use super::ticket::ticket;
use super::{
    Commit, Forge, ForgeKind, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT,
    MOST_PULLS, PullRequest, PullState, PullTip, Reads,
};
use crate::context::Ticket;
use crate::diff::ObjectId;
use crate::http::{Failure, Limits};
use serde_json::Value;

pub(super) const TOKEN: (&str, &str) = ("authorization", "Bearer ");
pub(super) const HEADERS: &[(&str, &str)] = &[
    ("accept", "application/vnd.github+json"),
    ("x-github-api-version", "2022-11-28"),
];

/// Items of a page.
const PAGE: (&str, &str) = ("per_page", "100");

/// Returns the path of a resource of the project, relative to the API address.
fn path(forge: &Forge, rest: &[&str]) -> Vec<String> {
    path_in(forge, &forge.site.project, rest)
}

/// Returns the path of a resource of a project, relative to the API address.
fn path_in(forge: &Forge, project: &ForgeProject, rest: &[&str]) -> Vec<String> {
    let mut path: Vec<String> = version(forge).iter().map(|v| (*v).to_owned()).collect();
    path.extend([
        "repos".to_owned(),
        project.owner(),
        project.name().to_owned(),
    ]);
    path.extend(rest.iter().map(|r| (*r).to_owned()));
    path
}

/// Returns the prefix of REST paths: `v3` on GitHub Enterprise Server, nothing on github.com.
fn version(forge: &Forge) -> &'static [&'static str] {
    if forge.site.host.api_path().ends_with("/api/") {
        &["v3"]
    } else {
        &[]
    }
}

/// Converts a path to the form that the client takes.
fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

pub(super) async fn list(
    forge: &Forge,
    limits: &Limits<'_>,
) -> Result<(Vec<ListedPull>, bool), Failure> {
    let query = [
        ("state", "open"),
        ("sort", "created"),
        ("direction", "desc"),
        PAGE,
    ];
    let path = path(forge, &["pulls"]);
    let pages = forge
        .client
        .linked(&parts(&path), &query, MOST_PULLS, limits)
        .await?;
    let listed = pages.items.iter().map(|pull| {
        Ok(ListedPull {
            number: pull.number_at("/number")?,
            title: pull.name_at("/title"),
            url: pull.name_at("/html_url"),
            author: author(pull),
            is_draft: pull["draft"] == true,
            base: pull.name_at("/base/ref"),
            head: pull.name_at("/head/ref"),
            updated: pull.name_at("/updated_at"),
        })
    });
    Ok((listed.collect::<Result<_, Failure>>()?, pages.more))
}

/// Returns the numbers of the open pull requests whose head is this commit of a fork's branch.
pub(super) async fn numbers_of_head(
    forge: &Forge,
    head: &str,
    id: ObjectId,
    limits: &Limits<'_>,
) -> Result<Vec<u64>, Failure> {
    let path = path(forge, &["pulls"]);
    let query = [("state", "open"), ("head", head), PAGE];
    let pages = forge
        .client
        .linked(&parts(&path), &query, MOST_PULLS, limits)
        .await?;
    let mut numbers = Vec::new();
    for pull in &pages.items {
        if pull.id_at("/head/sha")? == id {
            numbers.push(pull.number_at("/number")?);
        }
    }
    Ok(numbers)
}

pub(super) async fn read(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<PullRequest, Failure> {
    let number = number.to_string();
    let pull = forge
        .client
        .get(&parts(&path(forge, &["pulls", &number])), &[], limits)
        .await?;
    let commits = path(forge, &["pulls", &number, "commits"]);
    let commits = forge
        .client
        .linked(&parts(&commits), &[PAGE], MOST_COMMITS, limits)
        .await?;
    let listed = commits.items.iter().map(|commit| {
        let message = commit.text_at("/commit/message", MOST_OF_A_MESSAGE);
        Ok(Commit {
            id: commit.id_at("/sha")?,
            message,
        })
    });
    let listed = listed.collect::<Result<Vec<_>, Failure>>()?;
    let total = pull["commits"].as_u64().unwrap_or_default();
    let number = pull.number_at("/number")?;
    let state = match (pull["state"] == "open", pull["merged"] == true) {
        (true, _) => PullState::Open,
        (false, true) => PullState::Merged,
        (false, false) => PullState::Closed,
    };
    Ok(PullRequest {
        number,
        title: pull.name_at("/title"),
        description: pull.text_at("/body", MOST_OF_A_TEXT),
        url: pull.name_at("/html_url"),
        author: author(&pull),
        state,
        is_draft: pull["draft"] == true,
        is_fork: pull.pointer("/head/repo/id").and_then(Value::as_u64)
            != pull.pointer("/base/repo/id").and_then(Value::as_u64),
        base: tip(&pull["base"])?,
        head: tip(&pull["head"])?,
        head_refs: vec![format!("refs/pull/{number}/head")],
        more_commits: commits.more || total > listed.len() as u64,
        commits: listed,
    })
}

/// Reads an issue. Returns `None` if the number is that of a pull request, which GitHub lists among
/// the issues.
pub(super) async fn issue(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<Option<Ticket>, Failure> {
    let number = number.to_string();
    let issue = forge
        .client
        .get(&parts(&path(forge, &["issues", &number])), &[], limits)
        .await?;
    if issue.get("pull_request").is_some_and(|p| !p.is_null()) {
        return Ok(None);
    }
    issue.number_at("/number")?;
    ticket(&issue, "/body", "/updated_at").map(Some)
}

fn author(pull: &Value) -> String {
    // GitHub shows this account in place of a deleted one.
    Some(pull.name_at("/user/login"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "ghost".to_owned())
}

fn tip(end: &Value) -> Result<PullTip, Failure> {
    let project = ForgeProject::parse(ForgeKind::Github, &end.name_at("/repo/full_name"));
    Ok(PullTip {
        name: end.name_at("/ref"),
        id: end.id_at("/sha")?,
        project,
    })
}
