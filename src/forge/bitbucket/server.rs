//! Bitbucket Data Center's REST API, formerly Server.
//!
//! <https://developer.atlassian.com/server/bitbucket/rest/>. Paths begin with `api/1.0`, which all
//! releases have.

mod replies;

use super::{MOST, add_each, build_of_status, is_absent, key, status_of_build};
use crate::context::Ticket;
use crate::forge::added::Added;
use crate::forge::address::{self, ForgeProject, Scheme, number_of};
use crate::forge::api::{ForgeApi, ReviewWriter};
use crate::forge::client::{ApiDocument, Query};
use crate::forge::lines::NewSideLine;
use crate::forge::pager::{self, PageCursor, Pages, TooLarge};
use crate::forge::publish::{Comment, CommentPlace, CommitStatus, ExistingStatus, InlineComment};
use crate::forge::session::ForgeSession;
use crate::forge::{
    Account, Commit, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT, MOST_PULLS,
    PullRequest, PullState, PullTip, Reads, lacks,
};
use crate::http::{Cause, Failure, Method, Url};
use crate::request::Credential;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// The API of Bitbucket Data Center.
#[derive(Debug)]
pub(in crate::forge) struct BitbucketServer;

/// Pages of a list, at most: a page can be almost empty and still announce another.
const MOST_PAGES: usize = 200;

/// Returns the path of a resource of the project.
fn path(session: &ForgeSession<'_>, rest: &[&str]) -> Vec<String> {
    let project = session.project;
    let (key, slug) = (project.owner(), project.name().to_owned());
    let own = ["api", "1.0", "projects", &key, "repos", &slug];
    own.iter()
        .chain(rest)
        .map(|part| (*part).to_owned())
        .collect()
}

/// Items of a page, and smaller numbers for pages that exceed the size limit.
const SIZES: [&str; 3] = ["100", "10", "1"];

/// A position in a list whose pages are named by the index of their first item.
struct IndexedPages<'a> {
    path: &'a [String],
    query: Query<'a>,
    /// Index of the first item of the current page.
    start: u64,
    /// Index of the size of the current page in [`SIZES`].
    level: usize,
    /// Index of the first item of the next page, as the server names it.
    next: Option<u64>,
}

impl PageCursor for IndexedPages<'_> {
    fn most_pages(&self) -> usize {
        MOST_PAGES
    }

    fn url(&self, session: &ForgeSession<'_>) -> Result<Url, Failure> {
        let from = self.start.to_string();
        let own = [("limit", SIZES[self.level]), ("start", from.as_str())];
        let query: Vec<_> = self.query.iter().copied().chain(own).collect();
        session.url(self.path, &query)
    }

    fn read(
        &mut self,
        _session: &ForgeSession<'_>,
        page: ApiDocument,
    ) -> Result<(Vec<Value>, bool), Failure> {
        let mut page = page.value;
        let values = page.get_mut("values").map(Value::take);
        let Some(Value::Array(items)) = values else {
            return Err(lacks("/values"));
        };
        self.level = 0;
        self.next = page["nextPageStart"].as_u64();
        Ok((items, page["isLastPage"] == false))
    }

    fn advance(&mut self, _session: &ForgeSession<'_>, _count: usize) -> Result<(), Failure> {
        // Never go back: that could go on forever.
        let next = self.next.filter(|next| *next > self.start);
        self.start = next.ok_or_else(|| lacks("/nextPageStart"))?;
        Ok(())
    }

    fn too_large(&mut self, _items: &mut Vec<Value>) -> TooLarge {
        if self.level + 1 == SIZES.len() {
            return TooLarge::Fail;
        }
        self.level += 1;
        TooLarge::Retry
    }
}

/// Reads a list, `most` items at most.
fn pages(
    session: &ForgeSession<'_>,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
) -> Result<Pages, Failure> {
    let start = IndexedPages {
        path,
        query,
        start: 0,
        level: 0,
        next: None,
    };
    pager::pages(session, start, most)
}

/// Converts a time in milliseconds since 1970 to RFC 3339; empty if the value is not a time.
fn moment(value: &Value) -> String {
    let time = value
        .as_i64()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    time.map_or_else(String::new, |t| t.to_string())
}

impl ForgeApi for BitbucketServer {
    fn project_of_remote(&self, scheme: Scheme, parts: Vec<String>) -> Option<ForgeProject> {
        if scheme == Scheme::Ssh {
            return self.project(parts);
        }
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts[..] {
            ["scm", key, slug] => ForgeProject::pair(vec![key.to_owned(), slug.to_owned()]),
            ["projects", key, "repos", slug] => {
                ForgeProject::pair(vec![key.to_owned(), slug.to_owned()])
            }
            ["users", name, "repos", slug] => {
                ForgeProject::pair(vec![format!("~{name}"), slug.to_owned()])
            }
            _ => None,
        }
    }

    fn pull_of_page(&self, parts: &[&str]) -> Option<(ForgeProject, u64)> {
        let (owner, slug, number) = match parts {
            ["projects", key, "repos", slug, "pull-requests", number, ..] => {
                ((*key).to_owned(), slug, number)
            }
            ["users", name, "repos", slug, "pull-requests", number, ..] => {
                (format!("~{name}"), slug, number)
            }
            _ => return None,
        };
        let project = ForgeProject::pair(vec![owner, (*slug).to_owned()])?;
        Some((project, number_of(number)?))
    }

    fn repository_path(&self, project: &ForgeProject) -> String {
        format!("scm/{project}.git")
    }

    fn credential(&self, web: &str, token: &SecretString, _token_name: &str) -> Credential {
        let token = token.expose_secret();
        match token.split_once(':') {
            Some((user, password)) => Credential::basic(web, user, &password.into()),
            None => Credential {
                url: web.to_owned(),
                header: format!("Authorization: Bearer {token}").into(),
            },
        }
    }

    fn has_issues(&self) -> bool {
        false
    }

    fn issue(&self, _session: &ForgeSession<'_>, _number: u64) -> Result<Option<Ticket>, Failure> {
        Ok(None)
    }

    fn list(&self, session: &ForgeSession<'_>) -> Result<(Vec<ListedPull>, bool), Failure> {
        let query = [("state", "OPEN"), ("order", "NEWEST")];
        let pages = pages(
            session,
            &path(session, &["pull-requests"]),
            &query,
            MOST_PULLS,
        )?;
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

    fn read(&self, session: &ForgeSession<'_>, number: u64) -> Result<PullRequest, Failure> {
        let asked = number.to_string();
        let pull = session.get(&path(session, &["pull-requests", &asked]), &[])?;
        let commits = path(session, &["pull-requests", &asked, "commits"]);
        let commits = pages(session, &commits, &[], MOST_COMMITS)?;
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
}

/// Returns the name of the branch at one end of a pull request.
fn branch(end: &Value) -> String {
    let name = end.name_at("/id");
    name.strip_prefix("refs/heads/")
        .map_or_else(|| end.name_at("/displayId"), str::to_owned)
}

/// Reads one end of a pull request.
fn tip(end: &Value) -> Result<PullTip, Failure> {
    let project = format!(
        "{}/{}",
        end.name_at("/repository/project/key"),
        end.name_at("/repository/slug")
    );
    let project = ForgeProject::pair_of(&project);
    Ok(PullTip {
        name: branch(end),
        id: end.id_at("/latestCommit")?,
        project,
    })
}

impl ReviewWriter for BitbucketServer {
    /// Returns the account of the token: only the headers of answers name it.
    fn token_account(&self, session: &ForgeSession<'_>) -> Result<Account, Failure> {
        let url = session.url(&["api", "1.0", "application-properties"], &[])?;
        let headers = session.fetch(url)?.headers;
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
            return Err(failure.hint(format!("check the token in {}", session.token_name())));
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
    fn comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<Comment>, bool), Failure> {
        let path = path(
            session,
            &["pull-requests", &pull.number.to_string(), "activities"],
        );
        let pages = pages(session, &path, &[], MOST)?;
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
                if known.place == CommentPlace::Unknown {
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

    fn add_comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        inline: &[InlineComment],
    ) -> Added {
        add_each(inline, |inline, on_all| {
            comment_on(session, pull, inline, on_all)
        })
    }

    fn write_summary(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        body: &str,
    ) -> Result<(), Failure> {
        let path = path(
            session,
            &["pull-requests", &pull.number.to_string(), "comments"],
        );
        session.make(&path, &json!({ "text": body })).map(drop)
    }

    fn edit_comment(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        body: &str,
    ) -> Result<(), Failure> {
        let path = path(
            session,
            &[
                "pull-requests",
                &pull.number.to_string(),
                "comments",
                &comment.id,
            ],
        );
        change(session, &path, comment.version, json!({ "text": body }))
    }

    fn resolve_conversation(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
    ) -> Result<(), Failure> {
        if comment.thread.is_empty() {
            return Ok(());
        }
        let path = path(
            session,
            &[
                "pull-requests",
                &pull.number.to_string(),
                "comments",
                &comment.id,
            ],
        );
        // The text, and with it the version, may have changed since the list was read.
        let now = session.get(&path, &[])?;
        if now["threadResolved"] == resolved {
            return Ok(());
        }
        let version = now["version"].as_u64().ok_or_else(|| lacks("/version"))?;
        change(
            session,
            &path,
            version,
            json!({ "threadResolved": resolved }),
        )
    }

    fn newest_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
    ) -> Result<Option<ExistingStatus>, Failure> {
        let build = build(session, pull, context)?;
        Ok(build.as_ref().and_then(status_of_build))
    }

    fn set_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
        status: &CommitStatus,
    ) -> Result<(), Failure> {
        set_build(session, pull, &build_of_status(pull, context, status))
    }
}

/// Reads the position of a comment: the server tracks its lines across pushes, and reports when it
/// has lost them.
fn place(anchor: &Value) -> CommentPlace {
    let Some(last) = anchor.get("line") else {
        return CommentPlace::Unknown;
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
fn comment_on(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    inline: &InlineComment,
    on_all: bool,
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
        session,
        &["pull-requests", &pull.number.to_string(), "comments"],
    );
    session
        .make(&path, &json!({ "text": inline.body, "anchor": anchor }))
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

/// Changes a comment. The request names the version to replace; if the server has another version,
/// it is read once.
fn change(
    session: &ForgeSession<'_>,
    path: &[String],
    version: u64,
    mut what: Value,
) -> Result<(), Failure> {
    what["version"] = json!(version);
    match session.change(Method::PUT, path, &what) {
        Err(failure) if failure.status == Some(409) => {}
        done => return done.map(drop),
    }
    let now = session.get(path, &[])?;
    what["version"] = json!(now["version"].as_u64().ok_or_else(|| lacks("/version"))?);
    session.change(Method::PUT, path, &what).map(drop)
}

/// Returns the paths of the head's builds: since 7.14 they belong to the project, before that to
/// the commit alone.
fn builds(session: &ForgeSession<'_>, pull: &PullRequest) -> (Vec<String>, Vec<String>) {
    let id = pull.head.id.to_string();
    let old = ["build-status", "1.0", "commits", &id]
        .map(str::to_owned)
        .to_vec();
    (path(session, &["commits", &id, "builds"]), old)
}

/// Returns the build of the head under a name.
fn build(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    context: &str,
) -> Result<Option<Value>, Failure> {
    let (new, old) = builds(session, pull);
    match session.get(&new, &[("key", context)]) {
        Err(failure) if is_absent(&failure) => {}
        found => return found.map(Some),
    }
    match pages(session, &old, &[], MOST) {
        Ok(builds) => Ok(builds
            .items
            .into_iter()
            .find(|build| build["key"] == context)),
        Err(failure) if is_absent(&failure) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Sets a build of the head.
fn set_build(session: &ForgeSession<'_>, pull: &PullRequest, body: &Value) -> Result<(), Failure> {
    let (new, old) = builds(session, pull);
    // Setting it twice updates the same build.
    match session.change(Method::POST, &new, body) {
        Err(failure) if is_absent(&failure) => session.change(Method::POST, &old, body).map(drop),
        done => done.map(drop),
    }
}
