//! GitHub's REST API, and GraphQL for what REST lacks: the account of a token, and threads.
//!
//! <https://docs.github.com/rest>, version 2022-11-28, which GitHub Enterprise Server supports too.

mod graphql;
mod replies;
mod write;

use super::address::{ForgeProject, number_of};
use super::api::ForgeApi;
use super::host::{ForgeService, Host, HostOrigin, before, with_host, with_path};
use super::mark::MarkForm;
use super::pager::{LinkedPages, PageLink, Pages, pages};
use super::session::ForgeSession;
use super::ticket::ticket;
use super::{
    Commit, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT, MOST_PULLS, PullRequest,
    PullState, PullTip, Reads,
};
use crate::context::Ticket;
use crate::diff::ObjectId;
use crate::http::{Failure, Url};
use crate::report::markdown::Flavor;
use crate::request::Credential;
use secrecy::SecretString;
use serde_json::Value;

/// github.com, GitHub Enterprise Server and Cloud.
pub(super) static SERVICE: ForgeService = ForgeService {
    name: "github",
    setting: "[forge] github_api",
    address: |policy| policy.github_api.as_deref(),
    job_variables: Some(("GITHUB_ACTIONS", "GITHUB_API_URL")),
    public: "https://api.github.com",
    host,
    token_variables,
    token_header: ("authorization", "Bearer "),
    job_token: None,
    takes_pairs: false,
    headers: &[
        ("accept", "application/vnd.github+json"),
        ("x-github-api-version", "2022-11-28"),
    ],
    flavor: Flavor::Github,
    mark_form: MarkForm::Html,
};

/// Accepts `https://api.github.com`, `https://HOST/api/v3` and `https://api.NAME.ghe.com`. On
/// GitHub Enterprise Server, REST and GraphQL are both below `/api`.
fn host(api: &Url) -> Host {
    let host = api.host_str().unwrap_or_default();
    let (api, web) = match host.strip_prefix("api.") {
        Some(bare) if api.path() == "/" => {
            let api = with_path(api, "/");
            let web = with_host(&api, bare);
            (api, web)
        }
        _ => {
            let prefix = before(api, "/api").to_owned();
            (
                with_path(api, &format!("{prefix}/api/")),
                with_path(api, &format!("{prefix}/")),
            )
        }
    };
    let aliases: &[&str] = if web.host_str() == Some("github.com") {
        &["ssh.github.com", "www.github.com"]
    } else {
        &[]
    };
    Host {
        service: &SERVICE,
        forge: &Github,
        api,
        web,
        aliases,
    }
}

/// As the program `gh`: two variables for github.com and its subdomains, two for other hosts. In a
/// workflow the first two are for the server that runs it.
fn token_variables(host: &Host, origin: HostOrigin) -> Vec<&'static str> {
    let is_public = host
        .web
        .host_str()
        .is_some_and(|h| h == "github.com" || h.ends_with(".ghe.com"));
    let mut names = Vec::new();
    if origin.runs_job.unwrap_or(is_public) {
        names.extend(["GITHUB_TOKEN", "GH_TOKEN"]);
    }
    if origin.by_policy {
        names.extend(["GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN"]);
    }
    names
}

/// GitHub's API.
#[derive(Debug)]
pub(super) struct Github;

/// Items of a page.
const PAGE: (&str, &str) = ("per_page", "100");

/// Returns the path of a resource of the project, relative to the API address.
fn path(session: &ForgeSession<'_>, rest: &[&str]) -> Vec<String> {
    path_in(session, session.project, rest)
}

/// Returns the path of a resource of a project, relative to the API address.
fn path_in(session: &ForgeSession<'_>, project: &ForgeProject, rest: &[&str]) -> Vec<String> {
    let mut path: Vec<String> = version(session).iter().map(|v| (*v).to_owned()).collect();
    path.extend([
        "repos".to_owned(),
        project.owner(),
        project.name().to_owned(),
    ]);
    path.extend(rest.iter().map(|r| (*r).to_owned()));
    path
}

/// Returns the prefix of REST paths: `v3` on GitHub Enterprise Server, nothing on github.com.
fn version(session: &ForgeSession<'_>) -> &'static [&'static str] {
    if session.api_path().ends_with("/api/") {
        &["v3"]
    } else {
        &[]
    }
}

/// Reads a list, `most` items at most.
fn listed(
    session: &ForgeSession<'_>,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
) -> Result<Pages, Failure> {
    pages(
        session,
        LinkedPages::new(PageLink::Header, path, query),
        most,
    )
}

impl ForgeApi for Github {
    fn pull_of_page(&self, parts: &[&str]) -> Option<(ForgeProject, u64)> {
        match parts {
            [owner, name, "pull", number, ..] => Some((
                ForgeProject::pair([*owner, *name].map(str::to_owned).to_vec())?,
                number_of(number)?,
            )),
            _ => None,
        }
    }

    fn credential(&self, web: &str, token: &SecretString, _token_name: &str) -> Credential {
        Credential::basic(web, "x-access-token", token)
    }

    fn list(&self, session: &ForgeSession<'_>) -> Result<(Vec<ListedPull>, bool), Failure> {
        let query = [
            ("state", "open"),
            ("sort", "created"),
            ("direction", "desc"),
            PAGE,
        ];
        let path = path(session, &["pulls"]);
        let pages = listed(session, &path, &query, MOST_PULLS)?;
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
    fn numbers_of_head(
        &self,
        session: &ForgeSession<'_>,
        head: &str,
        id: ObjectId,
    ) -> Result<Vec<u64>, Failure> {
        let path = path(session, &["pulls"]);
        let query = [("state", "open"), ("head", head), PAGE];
        let pages = listed(session, &path, &query, MOST_PULLS)?;
        let mut numbers = Vec::new();
        for pull in &pages.items {
            if pull.id_at("/head/sha")? == id {
                numbers.push(pull.number_at("/number")?);
            }
        }
        Ok(numbers)
    }

    fn read(&self, session: &ForgeSession<'_>, number: u64) -> Result<PullRequest, Failure> {
        let number = number.to_string();
        let pull = session.get(&path(session, &["pulls", &number]), &[])?;
        let commits = path(session, &["pulls", &number, "commits"]);
        let commits = listed(session, &commits, &[PAGE], MOST_COMMITS)?;
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
    fn issue(&self, session: &ForgeSession<'_>, number: u64) -> Result<Option<Ticket>, Failure> {
        let number = number.to_string();
        let issue = session.get(&path(session, &["issues", &number]), &[])?;
        if issue.get("pull_request").is_some_and(|p| !p.is_null()) {
            return Ok(None);
        }
        issue.number_at("/number")?;
        ticket(&issue, "/body", "/updated_at").map(Some)
    }
}

/// Returns the user name of the author of a pull request.
fn author(pull: &Value) -> String {
    // GitHub shows this account in place of a deleted one.
    Some(pull.name_at("/user/login"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "ghost".to_owned())
}

/// Reads one end of a pull request.
fn tip(end: &Value) -> Result<PullTip, Failure> {
    let project = ForgeProject::pair_of(&end.name_at("/repo/full_name"));
    Ok(PullTip {
        name: end.name_at("/ref"),
        id: end.id_at("/sha")?,
        project,
    })
}
