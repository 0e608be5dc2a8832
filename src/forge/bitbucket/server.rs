//! Bitbucket Data Center's REST API, formerly Server.
//!
//! <https://developer.atlassian.com/server/bitbucket/rest/>. Paths begin with `api/1.0`, which all
//! releases have.

mod replies;

pub(super) use replies::{authors, pushed, replies, rights};

use super::{MOST, is_absent, key, parts};
use crate::forge::address::{self, ForgeProject};
use crate::forge::client::{Pages, is_too_large};
use crate::forge::lines::NewSideLine;
use crate::forge::publish::{Comment, CommentPlace, Inline};
use crate::forge::{
    Account, Commit, Forge, ForgeKind, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT,
    MOST_PULLS, PullRequest, PullState, PullTip, Reads, lacks,
};
use crate::http::{Cause, Failure, Limits, Method};
use serde_json::{Value, json};

/// Pages of a list, at most: a page can be almost empty and still announce another.
const MOST_PAGES: usize = 200;

/// Returns the path of a resource of the project.
fn path(forge: &Forge, rest: &[&str]) -> Vec<String> {
    let project = &forge.site.project;
    let (key, slug) = (project.owner(), project.name().to_owned());
    let own = ["api", "1.0", "projects", &key, "repos", &slug];
    own.iter()
        .chain(rest)
        .map(|part| (*part).to_owned())
        .collect()
}

/// Reads a list whose pages are numbered by the index of their first item, `most` items at most.
async fn pages(
    forge: &Forge,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
    limits: &Limits<'_>,
) -> Result<Pages, Failure> {
    let mut out = Pages::default();
    let (mut start, mut size) = (0, "100");
    for _ in 0..MOST_PAGES {
        let from = start.to_string();
        let query: Vec<_> = query
            .iter()
            .copied()
            .chain([("limit", size), ("start", from.as_str())])
            .collect();
        let page = match forge.client.get(&parts(path), &query, limits).await {
            Err(failure) if is_too_large(&failure) && size != "1" => {
                size = if size == "100" { "10" } else { "1" };
                continue;
            }
            page => page?,
        };
        size = "100";
        out.items.extend(
            page["values"]
                .as_array()
                .ok_or_else(|| lacks("/values"))?
                .iter()
                .cloned(),
        );
        let is_last = page["isLastPage"] != false;
        if is_last || out.items.len() >= most {
            out.more = out.items.len() > most || !is_last;
            out.items.truncate(most);
            return Ok(out);
        }
        let next = page["nextPageStart"].as_u64().filter(|next| *next > start);
        start = next.ok_or_else(|| lacks("/nextPageStart"))?;
    }
    out.more = true;
    Ok(out)
}

/// Converts a time in milliseconds since 1970 to RFC 3339; empty if the value is not a time.
fn moment(value: &Value) -> String {
    let time = value
        .as_i64()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |t| t.to_string())
}

pub(super) async fn list(
    forge: &Forge,
    limits: &Limits<'_>,
) -> Result<(Vec<ListedPull>, bool), Failure> {
    let query = [("state", "OPEN"), ("order", "NEWEST")];
    let pages = pages(
        forge,
        &path(forge, &["pull-requests"]),
        &query,
        MOST_PULLS,
        limits,
    )
    .await?;
    let listed = pages.items.iter().map(|pull| {
        Ok(ListedPull {
            number: pull.number_at("/id")?,
            title: pull.name_at("/title"),
            url: pull.name_at("/links/self/0/href"),
            author: pull.name_at("/author/user/name"),
            is_draft: pull["draft"] == true,
            base: branch(&pull["toRef"]),
            head: branch(&pull["fromRef"]),
            updated: moment(&pull["updatedDate"]),
        })
    });
    Ok((listed.collect::<Result<_, Failure>>()?, pages.more))
}

pub(super) async fn read(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<PullRequest, Failure> {
    let asked = number.to_string();
    let pull = forge
        .client
        .get(
            &parts(&path(forge, &["pull-requests", &asked])),
            &[],
            limits,
        )
        .await?;
    let commits = path(forge, &["pull-requests", &asked, "commits"]);
    let commits = pages(forge, &commits, &[], MOST_COMMITS, limits).await?;
    // The newest commit comes first.
    let listed = commits.items.iter().rev().map(|commit| {
        Ok(Commit {
            id: commit.id_at("/id")?,
            message: commit.text_at("/message", MOST_OF_A_MESSAGE),
        })
    });
    let number = pull.number_at("/id")?;
    Ok(PullRequest {
        number,
        title: pull.name_at("/title"),
        description: pull.text_at("/description", MOST_OF_A_TEXT),
        url: pull.name_at("/links/self/0/href"),
        author: pull.name_at("/author/user/name"),
        state: match pull["state"].as_str() {
            Some("OPEN") => PullState::Open,
            Some("MERGED") => PullState::Merged,
            _ => PullState::Closed,
        },
        is_draft: pull["draft"] == true,
        is_fork: pull["fromRef"]["repository"]["id"] != pull["toRef"]["repository"]["id"],
        base: tip(&pull["toRef"])?,
        head: tip(&pull["fromRef"])?,
        head_refs: vec![format!("refs/pull-requests/{number}/from")],
        commits: listed.collect::<Result<_, Failure>>()?,
        more_commits: commits.more,
    })
}

fn branch(end: &Value) -> String {
    let name = end.name_at("/id");
    name.strip_prefix("refs/heads/")
        .map_or_else(|| end.name_at("/displayId"), str::to_owned)
}

fn tip(end: &Value) -> Result<PullTip, Failure> {
    let project = format!(
        "{}/{}",
        end.name_at("/repository/project/key"),
        end.name_at("/repository/slug")
    );
    let project = ForgeProject::parse(ForgeKind::BitbucketServer, &project);
    Ok(PullTip {
        name: branch(end),
        id: end.id_at("/latestCommit")?,
        project,
    })
}

/// Returns the account of the token: only the headers of answers name it.
pub(super) async fn me(forge: &Forge, limits: &Limits<'_>) -> Result<Account, Failure> {
    let url = forge
        .client
        .url(&["api", "1.0", "application-properties"], &[])?;
    let headers = forge.client.fetch(url, limits).await?.headers;
    let name = headers
        .get("x-ausername")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let name = address::decoded(&name.replace('+', " ")).unwrap_or_default();
    if name.is_empty() || name == "anonymous" {
        let failure = Failure::new(
            Cause::Refused,
            "the server does not name the owner of the token (X-AUSERNAME)",
        );
        return Err(failure.hint(format!("check the token in {}", forge.client.token_name())));
    }
    let id = headers
        .get("x-auserid")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_number = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
    Ok(Account {
        id: if is_number {
            id.to_owned()
        } else {
            String::new()
        },
        name,
    })
}

/// Lists the comments among the activities of the pull request.
pub(super) async fn comments(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<(Vec<Comment>, bool), Failure> {
    let path = path(
        forge,
        &["pull-requests", &pull.number.to_string(), "activities"],
    );
    let pages = pages(forge, &path, &[], MOST, limits).await?;
    let mut gone = Vec::new();
    let mut out: Vec<Comment> = Vec::new();
    // The newest activity comes first, and has the current state of a comment.
    for activity in pages
        .items
        .iter()
        .filter(|a| a["action"] == "COMMENTED" && a["commentAction"] != "REPLIED")
    {
        let comment = &activity["comment"];
        let id = comment.number_at("/id")?.to_string();
        let anchor = [&activity["commentAnchor"], &comment["anchor"]]
            .into_iter()
            .find(|a| a.is_object());
        let (is_inline, place) = (anchor.is_some(), anchor.map(place).unwrap_or_default());
        if activity["commentAction"] == "DELETED" {
            gone.push(id);
        } else if let Some(known) = out.iter_mut().find(|c| c.id == id) {
            known.is_inline |= is_inline;
            if known.place == CommentPlace::Untold {
                known.place = place;
            }
        } else if !gone.contains(&id) {
            out.push(Comment {
                author: Account {
                    id: key(&comment["author"]["id"]),
                    name: comment.name_at("/author/name"),
                },
                body: comment["text"].as_str().unwrap_or_default().to_owned(),
                is_inline,
                place,
                // A server without resolved conversations does not have this field.
                thread: if comment["threadResolved"].is_boolean() {
                    id.clone()
                } else {
                    String::new()
                },
                resolved: comment["threadResolved"] == true || comment["state"] == "RESOLVED",
                version: comment["version"].as_u64().unwrap_or_default(),
                id,
            });
        }
    }
    out.reverse();
    Ok((out, !pages.more))
}

/// Reads the position of a comment: the server tracks its lines across pushes, and reports when it
/// has lost them.
fn place(anchor: &Value) -> CommentPlace {
    let Some(last) = anchor.get("line") else {
        return CommentPlace::Untold;
    };
    if anchor["orphaned"] == true || anchor["fileType"] == "FROM" {
        return CommentPlace::Gone;
    }
    let first = anchor
        .pointer("/multilineMarker/startLine")
        .and_then(Value::as_u64)
        .or(last.as_u64());
    CommentPlace::of(
        anchor["path"].as_str().unwrap_or_default().to_owned(),
        first,
        last.as_u64(),
    )
}

/// Writes a comment on all lines of a spot, or on its last line.
pub(super) async fn comment_on(
    forge: &Forge,
    pull: &PullRequest,
    inline: &Inline,
    on_all: bool,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let spot = &inline.spot;
    let mut anchor = json!({
        "path": spot.path, "line": spot.last.new, "lineType": line_type(spot.last), "fileType": "TO",
        "diffType": "EFFECTIVE",
    });
    if let Some(old) = spot.old_path.as_ref().filter(|old| **old != spot.path) {
        anchor["srcPath"] = json!(old);
    }
    if on_all && spot.first.new < spot.last.new {
        anchor["multilineMarker"] =
            json!({ "startLine": spot.first.new, "startLineType": line_type(spot.first) });
    }
    let path = path(
        forge,
        &["pull-requests", &pull.number.to_string(), "comments"],
    );
    forge
        .client
        .make(
            &parts(&path),
            &json!({ "text": inline.body, "anchor": anchor }),
            limits,
        )
        .await
        .map(drop)
}

/// Returns the API's name for the type of a line.
fn line_type(line: NewSideLine) -> &'static str {
    if line.old.is_none() {
        "ADDED"
    } else {
        "CONTEXT"
    }
}

pub(super) async fn summarize(
    forge: &Forge,
    pull: &PullRequest,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let path = path(
        forge,
        &["pull-requests", &pull.number.to_string(), "comments"],
    );
    forge
        .client
        .make(&parts(&path), &json!({ "text": body }), limits)
        .await
        .map(drop)
}

pub(super) async fn edit(
    forge: &Forge,
    pull: &PullRequest,
    comment: &Comment,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let path = path(
        forge,
        &[
            "pull-requests",
            &pull.number.to_string(),
            "comments",
            &comment.id,
        ],
    );
    change(
        forge,
        &path,
        comment.version,
        json!({ "text": body }),
        limits,
    )
    .await
}

pub(super) async fn resolve(
    forge: &Forge,
    pull: &PullRequest,
    comment: &Comment,
    resolved: bool,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    if comment.thread.is_empty() {
        return Ok(());
    }
    let path = path(
        forge,
        &[
            "pull-requests",
            &pull.number.to_string(),
            "comments",
            &comment.id,
        ],
    );
    // The text, and with it the version, may have changed since the list was read.
    let now = forge.client.get(&parts(&path), &[], limits).await?;
    if now["threadResolved"] == resolved {
        return Ok(());
    }
    let version = now["version"].as_u64().ok_or_else(|| lacks("/version"))?;
    change(
        forge,
        &path,
        version,
        json!({ "threadResolved": resolved }),
        limits,
    )
    .await
}

/// Changes a comment. The request names the version to replace; if the server has another version,
/// it is read once.
async fn change(
    forge: &Forge,
    path: &[String],
    version: u64,
    mut what: Value,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    what["version"] = json!(version);
    match forge
        .client
        .change(Method::PUT, &parts(path), &what, limits)
        .await
    {
        Err(failure) if failure.status == Some(409) => {}
        done => return done.map(drop),
    }
    let now = forge.client.get(&parts(path), &[], limits).await?;
    what["version"] = json!(now["version"].as_u64().ok_or_else(|| lacks("/version"))?);
    forge
        .client
        .change(Method::PUT, &parts(path), &what, limits)
        .await
        .map(drop)
}

/// Returns the paths of the head's builds: since 7.14 they belong to the project, before that to
/// the commit alone.
fn builds(forge: &Forge, pull: &PullRequest) -> (Vec<String>, Vec<String>) {
    let id = pull.head.id.to_string();
    let old = ["build-status", "1.0", "commits", &id]
        .map(str::to_owned)
        .to_vec();
    (path(forge, &["commits", &id, "builds"]), old)
}

pub(super) async fn build(
    forge: &Forge,
    pull: &PullRequest,
    context: &str,
    limits: &Limits<'_>,
) -> Result<Option<Value>, Failure> {
    let (new, old) = builds(forge, pull);
    match forge
        .client
        .get(&parts(&new), &[("key", context)], limits)
        .await
    {
        Err(failure) if is_absent(&failure) => {}
        found => return found.map(Some),
    }
    match pages(forge, &old, &[], MOST, limits).await {
        Ok(builds) => Ok(builds
            .items
            .into_iter()
            .find(|build| build["key"] == context)),
        Err(failure) if is_absent(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

pub(super) async fn set_build(
    forge: &Forge,
    pull: &PullRequest,
    body: Value,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let (new, old) = builds(forge, pull);
    // Setting it twice updates the same build.
    match forge
        .client
        .change(Method::POST, &parts(&new), &body, limits)
        .await
    {
        Err(failure) if is_absent(&failure) => forge
            .client
            .change(Method::POST, &parts(&old), &body, limits)
            .await
            .map(drop),
        done => done.map(drop),
    }
}
