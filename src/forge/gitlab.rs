//! GitLab's REST API, version 4, on gitlab.com and on self-managed servers.
//!
//! <https://docs.gitlab.com/api/rest/>. A project's path, including sub-groups, is one segment of
//! the address.

mod numbered;
mod replies;
mod write;

use self::numbered::NumberedPages;
use super::address::{ForgeProject, number_of};
use super::api::ForgeApi;
use super::host::{ForgeService, Host, JobToken, before, with_path};
use super::mark::MarkForm;
use super::pager::{self, Pages};
use super::session::ForgeSession;
use super::ticket::ticket;
use super::{
    Commit, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT, MOST_PULLS, PullRequest,
    PullState, PullTip, Reads,
};
use crate::context::Ticket;
use crate::http::{Cause, Failure, Url};
use crate::report::markdown::Flavor;
use crate::request::Credential;
use secrecy::SecretString;
use serde_json::Value;

/// gitlab.com and self-managed instances.
pub(super) static SERVICE: ForgeService = ForgeService {
    name: "gitlab",
    setting: "[forge] gitlab_api",
    address: |policy| policy.gitlab_api.as_deref(),
    job_variables: Some(("GITLAB_CI", "CI_API_V4_URL")),
    public: "https://gitlab.com/api/v4",
    host,
    token_variables: |_, origin| match origin.is_home {
        true => vec!["GITLAB_TOKEN"],
        false => Vec::new(),
    },
    token_header: ("private-token", ""),
    job_token: Some(JobToken {
        variable: JOB_VARIABLE,
        header: ("job-token", ""),
    }),
    takes_pairs: false,
    headers: &[("accept", "application/json")],
    flavor: Flavor::Gitlab,
    mark_form: MarkForm::Html,
};

/// Variable with the token of a job.
const JOB_VARIABLE: &str = "CI_JOB_TOKEN";

/// Accepts `https://HOST/api/v4`, with a path prefix if GitLab is installed below one.
fn host(api: &Url) -> Host {
    let prefix = before(api, "/api/v4").to_owned();
    let web = with_path(api, &format!("{prefix}/"));
    let aliases: &[&str] = if web.host_str() == Some("gitlab.com") {
        &["altssh.gitlab.com"]
    } else {
        &[]
    };
    let api = with_path(api, &format!("{prefix}/api/v4/"));
    Host {
        service: &SERVICE,
        forge: &Gitlab,
        api,
        web,
        aliases,
    }
}

/// GitLab's API.
#[derive(Debug)]
pub(super) struct Gitlab;

/// Returns the path of a resource of the project, relative to the API address.
fn path(session: &ForgeSession<'_>, rest: &[&str]) -> Vec<String> {
    path_of(&session.project.to_string(), rest)
}

/// Returns the path of a resource of a project with this path or number.
fn path_of(project: &str, rest: &[&str]) -> Vec<String> {
    ["projects", project]
        .iter()
        .chain(rest)
        .map(|part| (*part).to_owned())
        .collect()
}

/// Returns true if the token is that of a CI job, which has fewer rights.
fn is_of_job(session: &ForgeSession<'_>) -> bool {
    session.token_name() == JOB_VARIABLE
}

/// Reads a list, `most` items at most.
fn pages(
    session: &ForgeSession<'_>,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
) -> Result<Pages, Failure> {
    pager::pages(session, NumberedPages::new(path, query), most)
}

impl ForgeApi for Gitlab {
    /// A project is in one group or in nested groups.
    fn project(&self, parts: Vec<String>) -> Option<ForgeProject> {
        ForgeProject::nested(parts)
    }

    fn pull_of_page(&self, parts: &[&str]) -> Option<(ForgeProject, u64)> {
        let at = parts.iter().position(|p| *p == "merge_requests")?;
        let mut project = &parts[..at];
        if let [before @ .., "-"] = project {
            project = before;
        }
        let project = project.iter().map(|p| (*p).to_owned()).collect();
        Some((self.project(project)?, number_of(parts.get(at + 1)?)?))
    }

    fn credential(&self, web: &str, token: &SecretString, token_name: &str) -> Credential {
        let user = match token_name {
            JOB_VARIABLE => "gitlab-ci-token",
            _ => "oauth2",
        };
        Credential::basic(web, user, token)
    }

    fn list(&self, session: &ForgeSession<'_>) -> Result<(Vec<ListedPull>, bool), Failure> {
        let query = [
            ("state", "opened"),
            ("order_by", "created_at"),
            ("sort", "desc"),
        ];
        let pages = pages(
            session,
            &path(session, &["merge_requests"]),
            &query,
            MOST_PULLS,
        )?;
        let listed = pages.items.iter().map(|pull| {
            Ok(ListedPull {
                number: pull.number_at("/iid")?,
                title: pull.name_at("/title"),
                url: pull.name_at("/web_url"),
                author: author(pull),
                is_draft: is_draft(pull),
                base: pull.name_at("/target_branch"),
                head: pull.name_at("/source_branch"),
                updated: pull.name_at("/updated_at"),
            })
        });
        Ok((listed.collect::<Result<_, Failure>>()?, pages.more))
    }

    fn read(&self, session: &ForgeSession<'_>, number: u64) -> Result<PullRequest, Failure> {
        let number = number.to_string();
        let pull = session.get(&path(session, &["merge_requests", &number]), &[])?;
        if pull["diff_refs"]["head_sha"].is_null() {
            let failure = Failure::new(
                Cause::Malformed,
                "it has no commits, or GitLab has not compared its branches yet",
            );
            return Err(failure.hint("try again in a moment"));
        }
        let (commits, more_commits) = commits(session, &number)?;
        let (source, target) = (
            pull["source_project_id"].as_u64(),
            pull["target_project_id"].as_u64(),
        );
        let is_fork = source != target;
        let own = Some(session.project.clone());
        let head_project = match source {
            Some(id) if is_fork => project(session, id)?,
            Some(_) => own.clone(),
            None => None,
        };
        let number = pull.number_at("/iid")?;
        Ok(PullRequest {
            number,
            title: pull.name_at("/title"),
            description: pull.text_at("/description", MOST_OF_A_TEXT),
            url: pull.name_at("/web_url"),
            author: author(&pull),
            state: match pull["state"].as_str() {
                // A locked merge request is being merged.
                Some("opened" | "locked") => PullState::Open,
                Some("merged") => PullState::Merged,
                _ => PullState::Closed,
            },
            is_draft: is_draft(&pull),
            is_fork,
            // Tip of the target branch when GitLab computed the diff; `base_sha` is the merge base.
            base: PullTip {
                name: pull.name_at("/target_branch"),
                id: pull.id_at("/diff_refs/start_sha")?,
                project: own,
            },
            head: PullTip {
                name: pull.name_at("/source_branch"),
                id: pull.id_at("/sha")?,
                project: head_project,
            },
            head_refs: vec![format!("refs/merge-requests/{number}/head")],
            commits,
            more_commits,
        })
    }

    /// Reads an issue. A confidential one is rejected: readers of the review may not be allowed to see
    /// it.
    fn issue(&self, session: &ForgeSession<'_>, number: u64) -> Result<Option<Ticket>, Failure> {
        let number = number.to_string();
        let issue = session.get(&path(session, &["issues", &number]), &[])?;
        if issue["confidential"] == true {
            return Err(Failure::new(Cause::Refused, "the issue is confidential"));
        }
        issue.number_at("/iid")?;
        ticket(&issue, "/description", "/updated_at").map(Some)
    }
}

/// Lists the commits, oldest first. The flag is true if there are more.
fn commits(session: &ForgeSession<'_>, number: &str) -> Result<(Vec<Commit>, bool), Failure> {
    let path = path(session, &["merge_requests", number, "commits"]);
    let pages = match pages(session, &path, &[], MOST_COMMITS) {
        Ok(pages) => pages,
        // A job's token can read the merge request but not its commits.
        Err(failure) if is_of_job(session) && matches!(failure.status, Some(401 | 403 | 404)) => {
            return Ok((Vec::new(), true));
        }
        Err(failure) => return Err(failure),
    };
    let listed = pages.items.iter().rev().map(|commit| {
        let message = commit.text_at("/message", MOST_OF_A_MESSAGE);
        Ok(Commit {
            id: commit.id_at("/id")?,
            message,
        })
    });
    Ok((listed.collect::<Result<_, Failure>>()?, pages.more))
}

/// Returns the project with this number, or `None` if it is not visible.
fn project(session: &ForgeSession<'_>, id: u64) -> Result<Option<ForgeProject>, Failure> {
    match session.get(&["projects", &id.to_string()], &[]) {
        Ok(project) => Ok(ForgeProject::nested_of(
            &project.name_at("/path_with_namespace"),
        )),
        Err(failure) if failure.status.is_some() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Returns the user name of the author of a merge request.
fn author(pull: &Value) -> String {
    // GitLab shows this account in place of a deleted one.
    Some(pull.name_at("/author/username"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "ghost".to_owned())
}

/// Returns true if a merge request is a draft: by its field, or by its title if the server is too
/// old to have the field.
fn is_draft(pull: &Value) -> bool {
    const SIGNS: [&str; 5] = ["draft:", "[draft]", "(draft)", "wip:", "[wip]"];
    let title = pull.name_at("/title").to_ascii_lowercase();
    match pull
        .get("draft")
        .or_else(|| pull.get("work_in_progress"))
        .and_then(Value::as_bool)
    {
        Some(is_draft) => is_draft,
        None => SIGNS.iter().any(|sign| title.starts_with(sign)),
    }
}

#[cfg(test)]
mod tests {
    use super::is_draft;
    use serde_json::json;

    #[test]
    fn drafts_are_known_by_field_and_by_title() {
        for (pull, draft) in [
            (json!({ "draft": true, "title": "a" }), true),
            (json!({ "draft": false, "title": "Draft: a" }), false),
            (json!({ "work_in_progress": true, "title": "a" }), true),
            (json!({ "title": "Draft: a" }), true),
            (json!({ "title": "[DRAFT] a" }), true),
            (json!({ "title": "WIP: a" }), true),
            (json!({ "title": "Drafts of a" }), false),
        ] {
            assert_eq!(is_draft(&pull), draft, "{pull}");
        }
    }
}
