//! GitLab's REST API, version 4, on gitlab.com and on self-managed servers.
//!
//! <https://docs.gitlab.com/api/rest/>. A project's path, including sub-groups, is one segment of
//! the address.

mod replies;
mod write;

pub(super) use replies::{authors, pushed, replies, rights};
pub(super) use write::{
    add, comments, edit, may_write, me, newest_status, resolve, set_status, summarize,
};

use super::address::ForgeProject;
use super::client::{ApiDocument, Pages, is_too_large};
use super::ticket::ticket;
use super::{
    Commit, Forge, ForgeKind, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT,
    MOST_PULLS, PullRequest, PullState, PullTip, Reads,
};
use crate::context::Ticket;
use crate::http::{Cause, Failure, HeaderMap, Limits};
use serde_json::Value;

pub(super) const TOKEN: (&str, &str) = ("private-token", "");
/// Header for the token of a GitLab CI job.
pub(super) const JOB_TOKEN: (&str, &str) = ("job-token", "");
/// Variable with the token of a job.
pub(super) const JOB_VARIABLE: &str = "CI_JOB_TOKEN";
pub(super) const HEADERS: &[(&str, &str)] = &[("accept", "application/json")];

/// Items of a page, and smaller numbers for pages that exceed the size limit: a note has up to a
/// megabyte. Each number divides the previous one.
const SIZES: [usize; 3] = [100, 10, 1];
/// Pages of a list, at most, even if they are almost empty.
const MOST_PAGES: usize = 300;

/// Returns the path of a resource of the project, relative to the API address.
fn path(forge: &Forge, rest: &[&str]) -> Vec<String> {
    path_of(&forge.site.project.to_string(), rest)
}

/// Returns the path of a resource of a project with this path or number.
fn path_of(project: &str, rest: &[&str]) -> Vec<String> {
    ["projects", project]
        .iter()
        .chain(rest)
        .map(|part| (*part).to_owned())
        .collect()
}

/// Converts a path to the form that the client takes.
fn parts(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Returns true if the token is that of a CI job, which has fewer rights.
fn is_of_job(forge: &Forge) -> bool {
    forge.client.token_name() == JOB_VARIABLE
}

/// Reads a list, `most` items at most.
///
/// The number of the next page takes precedence over its address: a server behind a proxy may not
/// know its own name. An address is followed only below the API's.
async fn pages(
    forge: &Forge,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
    limits: &Limits<'_>,
) -> Result<Pages, Failure> {
    let numbered = |page: u64, size: usize| {
        let (page, size) = (page.to_string(), size.to_string());
        let own = [("per_page", size.as_str()), ("page", page.as_str())];
        let query: Vec<_> = query.iter().copied().chain(own).collect();
        forge.client.url(&parts(path), &query)
    };
    let (mut out, mut number, mut level) = (Pages::default(), 1, 0);
    // While all pages so far are full, the number of a page determines the items that were read,
    // whatever the size of the next page.
    let mut is_even = true;
    let mut url = numbered(number, SIZES[level])?;
    for _ in 0..MOST_PAGES {
        let page = match forge.client.fetch(url, limits).await {
            Err(failure) if is_too_large(&failure) && level + 1 < SIZES.len() => {
                level += 1;
                if !is_even {
                    out.items.clear();
                    is_even = true;
                }
                number = out.items.len() as u64 / SIZES[level] as u64 + 1;
                url = numbered(number, SIZES[level])?;
                continue;
            }
            // A single item exceeds the size limit. A null takes its place.
            Err(failure) if is_too_large(&failure) && is_even => {
                out.more = true;
                ApiDocument {
                    value: Value::Array(vec![Value::Null]),
                    headers: HeaderMap::new(),
                }
            }
            page => page?,
        };
        let is_unread = page.headers.is_empty();
        let Value::Array(items) = page.value else {
            return Err(Failure::new(Cause::Malformed, "the answer is not a list"));
        };
        is_even &= items.len() == SIZES[level];
        out.items.extend(items);
        let next = match next_number(&page.headers, number)? {
            Some(Some(next)) => Some((next, None)),
            Some(None) => None,
            None if is_unread => Some((number + 1, None)),
            None => forge
                .client
                .next(&page.headers)?
                .map(|url| (number + 1, Some(url))),
        };
        if out.items.len() >= most {
            out.more |= out.items.len() > most || next.is_some();
            out.items.truncate(most);
            return Ok(out);
        }
        let Some((next, address)) = next else {
            return Ok(out);
        };
        // After the large items, the page size grows again.
        if level > 0 && is_even && out.items.len().is_multiple_of(SIZES[level - 1]) {
            level -= 1;
            number = (out.items.len() / SIZES[level]) as u64 + 1;
            url = numbered(number, SIZES[level])?;
            continue;
        }
        number = next;
        url = match address {
            Some(address) => address,
            None => numbered(next, SIZES[level])?,
        };
    }
    out.more = true;
    Ok(out)
}

/// Reads the number of the next page. `Some(None)` means that this is the last page; `None`, that
/// the answer has no number.
fn next_number(headers: &HeaderMap, number: u64) -> Result<Option<Option<u64>>, Failure> {
    let Some(value) = headers.get("x-next-page") else {
        return Ok(None);
    };
    match value.to_str().map(str::trim) {
        Ok("") => Ok(Some(None)),
        // Never go back: that could go on forever.
        Ok(text) if let Some(next) = text.parse().ok().filter(|next| *next > number) => {
            Ok(Some(Some(next)))
        }
        _ => Err(Failure::new(
            Cause::Malformed,
            "the next page of a list has no number that comes next",
        )),
    }
}

pub(super) async fn list(
    forge: &Forge,
    limits: &Limits<'_>,
) -> Result<(Vec<ListedPull>, bool), Failure> {
    let query = [
        ("state", "opened"),
        ("order_by", "created_at"),
        ("sort", "desc"),
    ];
    let pages = pages(
        forge,
        &path(forge, &["merge_requests"]),
        &query,
        MOST_PULLS,
        limits,
    )
    .await?;
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

pub(super) async fn read(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<PullRequest, Failure> {
    let number = number.to_string();
    let pull = forge
        .client
        .get(
            &parts(&path(forge, &["merge_requests", &number])),
            &[],
            limits,
        )
        .await?;
    if pull["diff_refs"]["head_sha"].is_null() {
        let failure = Failure::new(
            Cause::Malformed,
            "it has no commits, or GitLab has not compared its branches yet",
        );
        return Err(failure.hint("try again in a moment"));
    }
    let (commits, more_commits) = commits(forge, &number, limits).await?;
    let (source, target) = (
        pull["source_project_id"].as_u64(),
        pull["target_project_id"].as_u64(),
    );
    let is_fork = source != target;
    let own = Some(forge.site.project.clone());
    let head_project = match source {
        Some(id) if is_fork => project(forge, id, limits).await?,
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
    if issue["confidential"] == true {
        return Err(Failure::new(Cause::Refused, "the issue is confidential"));
    }
    issue.number_at("/iid")?;
    ticket(&issue, "/description", "/updated_at").map(Some)
}

/// Lists the commits, oldest first. The flag is true if there are more.
async fn commits(
    forge: &Forge,
    number: &str,
    limits: &Limits<'_>,
) -> Result<(Vec<Commit>, bool), Failure> {
    let path = path(forge, &["merge_requests", number, "commits"]);
    let pages = match pages(forge, &path, &[], MOST_COMMITS, limits).await {
        Ok(pages) => pages,
        // A job's token can read the merge request but not its commits.
        Err(failure) if is_of_job(forge) && matches!(failure.status, Some(401 | 403 | 404)) => {
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
async fn project(
    forge: &Forge,
    id: u64,
    limits: &Limits<'_>,
) -> Result<Option<ForgeProject>, Failure> {
    match forge
        .client
        .get(&["projects", &id.to_string()], &[], limits)
        .await
    {
        Ok(project) => Ok(ForgeProject::parse(
            ForgeKind::Gitlab,
            &project.name_at("/path_with_namespace"),
        )),
        Err(failure) if failure.status.is_some() => Ok(None),
        Err(failure) => Err(failure),
    }
}

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
    use super::{is_draft, next_number};
    use crate::http::HeaderMap;
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

    #[test]
    fn pages_only_go_on() {
        fn next(value: Option<&str>) -> Option<Option<Option<u64>>> {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("x-next-page", value.parse().unwrap());
            }
            next_number(&headers, 3).ok()
        }
        assert_eq!(next(None), Some(None));
        assert_eq!(next(Some("")), Some(Some(None)));
        assert_eq!(next(Some(" 4 ")), Some(Some(Some(4))));
        for bad in ["3", "1", "-1", "x", "4x"] {
            assert_eq!(next(Some(bad)), None, "{bad}");
        }
    }
}
