//! Bitbucket Cloud's REST API.
//!
//! <https://developer.atlassian.com/cloud/bitbucket/rest/>, version 2.0.

mod replies;

use super::{MOST, add_each, build_of_status, is_absent, status_of_build};
use crate::context::Ticket;
use crate::diff::ObjectId;
use crate::forge::added::Added;
use crate::forge::address::{ForgeProject, number_of};
use crate::forge::api::{ForgeApi, ReviewWriter};
use crate::forge::pager::{self, LinkedPages, PageLink, Pages};
use crate::forge::publish::{Comment, CommentPlace, CommitStatus, ExistingStatus, InlineComment};
use crate::forge::session::ForgeSession;
use crate::forge::ticket::ticket;
use crate::forge::{
    Account, Commit, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT, MOST_PULLS,
    PullRequest, PullState, PullTip, Reads, lacks,
};
use crate::http::{Failure, Method};
use crate::request::Credential;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// The API of bitbucket.org.
#[derive(Debug)]
pub(in crate::forge) struct BitbucketCloud;

/// Returns the path of a resource of a project.
fn path(project: &ForgeProject, rest: &[&str]) -> Vec<String> {
    let (workspace, slug) = (project.owner(), project.name().to_owned());
    ["repositories", &workspace, &slug]
        .iter()
        .chain(rest)
        .map(|part| (*part).to_owned())
        .collect()
}

/// Returns the path of a resource of a pull request.
fn below(session: &ForgeSession<'_>, pull: &PullRequest, rest: &[&str]) -> Vec<String> {
    let number = pull.number.to_string();
    let rest: Vec<&str> = ["pullrequests", &number]
        .iter()
        .chain(rest)
        .copied()
        .collect();
    path(session.project, &rest)
}

/// Reads a list whose pages link to the next one, `most` items at most.
fn pages(
    session: &ForgeSession<'_>,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
) -> Result<Pages, Failure> {
    pager::pages(
        session,
        LinkedPages::new(PageLink::Field, path, query),
        most,
    )
}

impl ForgeApi for BitbucketCloud {
    fn pull_of_page(&self, parts: &[&str]) -> Option<(ForgeProject, u64)> {
        match parts {
            [workspace, slug, "pull-requests", number, ..] => Some((
                ForgeProject::pair([*workspace, *slug].map(str::to_owned).to_vec())?,
                number_of(number)?,
            )),
            _ => None,
        }
    }

    fn credential(&self, web: &str, token: &SecretString, _token_name: &str) -> Credential {
        match token.expose_secret().split_once(':') {
            // Atlassian's API accepts an email address as the user name; its git server does not.
            Some((user, password)) if user.contains('@') => {
                Credential::basic(web, "x-bitbucket-api-token-auth", &password.into())
            }
            Some((user, password)) => Credential::basic(web, user, &password.into()),
            None => Credential::basic(web, "x-token-auth", token),
        }
    }

    fn list(&self, session: &ForgeSession<'_>) -> Result<(Vec<ListedPull>, bool), Failure> {
        let query = [
            ("state", "OPEN"),
            ("sort", "-created_on"),
            ("pagelen", "50"),
        ];
        let pages = pages(
            session,
            &path(session.project, &["pullrequests"]),
            &query,
            MOST_PULLS,
        )?;
        let listed = pages.items.iter().map(|pull| {
            Ok(ListedPull {
                number: pull.number_at("/id")?,
                title: pull.name_at("/title"),
                url: pull.name_at("/links/html/href"),
                author: name(&pull["author"]),
                is_draft: pull["draft"] == true,
                base: pull.name_at("/destination/branch/name"),
                head: pull.name_at("/source/branch/name"),
                updated: pull.name_at("/updated_on"),
            })
        });
        Ok((listed.collect::<Result<_, Failure>>()?, pages.more))
    }

    fn read(&self, session: &ForgeSession<'_>, number: u64) -> Result<PullRequest, Failure> {
        let own = session.project;
        let asked = number.to_string();
        let pull = session.get(&path(own, &["pullrequests", &asked]), &[])?;
        let commits = path(own, &["pullrequests", &asked, "commits"]);
        let commits = pages(session, &commits, &[("pagelen", "100")], MOST_COMMITS)?;
        // The newest commit comes first.
        let listed = commits.items.iter().rev().map(|commit| {
            Ok(Commit {
                id: commit.id_at("/hash")?,
                message: commit.text_at("/message", MOST_OF_A_MESSAGE),
            })
        });
        let listed = listed.collect::<Result<Vec<_>, Failure>>()?;
        let from = ForgeProject::pair_of(&pull.name_at("/source/repository/full_name"));
        let to = ForgeProject::pair_of(&pull.name_at("/destination/repository/full_name"));
        let head = pull.name_at("/source/commit/hash");
        let head = match listed.iter().find(|c| is_short_for(&head, c.id)) {
            Some(commit) => commit.id,
            None => full(
                session,
                from.as_ref().unwrap_or(own),
                &head,
                "/source/commit/hash",
            )?,
        };
        let base = pull.name_at("/destination/commit/hash");
        let base = full(session, own, &base, "/destination/commit/hash")?;
        Ok(PullRequest {
            number: pull.number_at("/id")?,
            title: pull.name_at("/title"),
            description: pull.text_at("/description", MOST_OF_A_TEXT),
            url: pull.name_at("/links/html/href"),
            author: name(&pull["author"]),
            state: match pull["state"].as_str() {
                Some("OPEN") => PullState::Open,
                Some("MERGED") => PullState::Merged,
                _ => PullState::Closed,
            },
            is_draft: pull["draft"] == true,
            // The project of a deleted fork is unknown, so it differs from the base's project.
            is_fork: from != to,
            base: PullTip {
                name: pull.name_at("/destination/branch/name"),
                id: base,
                project: to,
            },
            head: PullTip {
                name: pull.name_at("/source/branch/name"),
                id: head,
                project: from,
            },
            // Bitbucket Cloud has no such references: the head is fetched from its branch.
            head_refs: Vec::new(),
            commits: listed,
            more_commits: commits.more,
        })
    }

    fn issue(&self, session: &ForgeSession<'_>, number: u64) -> Result<Option<Ticket>, Failure> {
        let number = number.to_string();
        let path = path(session.project, &["issues", &number]);
        let issue = session.get(&path, &[])?;
        issue.number_at("/id")?;
        ticket(&issue, "/content/raw", "/updated_on").map(Some)
    }
}

/// Returns true if a pull request can abbreviate the ID to `short`.
fn is_short_for(short: &str, id: ObjectId) -> bool {
    const LEAST: usize = 12;
    short.len() >= LEAST && id.to_string().starts_with(short)
}

/// Resolves the full ID of a commit: pull requests contain twelve digits.
fn full(
    session: &ForgeSession<'_>,
    project: &ForgeProject,
    short: &str,
    pointer: &str,
) -> Result<ObjectId, Failure> {
    if let Some(id) = ObjectId::from_hex(short) {
        return Ok(id);
    }
    if short.is_empty() || !short.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(lacks(pointer));
    }
    let commit = session.get(&path(project, &["commit", short]), &[])?;
    let id = commit.id_at("/hash")?;
    if is_short_for(short, id) {
        Ok(id)
    } else {
        Err(lacks(pointer))
    }
}

/// Returns the display name of an account.
fn name(account: &Value) -> String {
    let nickname = account.name_at("/nickname");
    if nickname.is_empty() {
        account.name_at("/display_name")
    } else {
        nickname
    }
}

/// Reads an account. Users choose their names, so a name without a key does not identify an
/// account.
fn account(value: &Value) -> Account {
    let id = value.name_at("/uuid");
    let name = if id.is_empty() {
        String::new()
    } else {
        name(value)
    };
    Account { id, name }
}

impl ReviewWriter for BitbucketCloud {
    /// Returns the account of the token.
    fn token_account(&self, session: &ForgeSession<'_>) -> Result<Account, Failure> {
        let found = session.get(&["user"], &[]);
        let me = found.map_err(|failure| match failure.status {
            // An access token of a repository, project or workspace has no account that it can read.
            Some(401 | 403) => failure.hint(format!(
                "own comments are known by their author, and the token in {} cannot read its account (no access token of a \
                 repository, project or workspace can, which may set the status alone): use ADDRESS:API_TOKEN with the \
                 scope read:user:bitbucket",
                session.token_name()
            )),
            _ => failure,
        })?;
        let me = account(&me);
        if me.id.is_empty() {
            Err(lacks("/uuid"))
        } else {
            Ok(me)
        }
    }

    fn comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<Comment>, bool), Failure> {
        let query = [("sort", "created_on"), ("pagelen", "100")];
        let pages = pages(session, &below(session, pull, &["comments"]), &query, MOST)?;
        let shown = pages
            .items
            .iter()
            .filter(|c| c["deleted"] != true && c["pending"] != true && c["parent"].is_null());
        let comments = shown.map(|comment| {
            Ok(Comment {
                id: comment.number_at("/id")?.to_string(),
                author: account(&comment["user"]),
                body: text_of(comment),
                is_inline: comment["inline"].is_object(),
                place: place(&comment["inline"]),
                thread: String::new(),
                resolved: comment["resolution"].is_object(),
                version: 0,
            })
        });
        Ok((comments.collect::<Result<_, Failure>>()?, !pages.more))
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
        let body = json!({ "content": { "raw": body } });
        session
            .make(&below(session, pull, &["comments"]), &body)
            .map(drop)
    }

    fn edit_comment(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        body: &str,
    ) -> Result<(), Failure> {
        let body = json!({ "content": { "raw": body } });
        let path = below(session, pull, &["comments", &comment.id]);
        session.change(Method::PUT, &path, &body).map(drop)
    }

    fn resolve_conversation(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
    ) -> Result<(), Failure> {
        let path = below(session, pull, &["comments", &comment.id, "resolve"]);
        let method = if resolved {
            Method::POST
        } else {
            Method::DELETE
        };
        match session.order(method, &path) {
            // The conversation is in that state already.
            Err(failure) if failure.status == Some(409) => Ok(()),
            done => done,
        }
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
        set_build(session, pull, build_of_status(pull, context, status))
    }
}

/// Returns the text of a comment as its author wrote it.
fn text_of(comment: &Value) -> String {
    comment
        .pointer("/content/raw")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Reads whether a comment is outdated. The API does not say to which commit the line `to` belongs,
/// nor updates it when lines are added or removed above.
fn place(inline: &Value) -> CommentPlace {
    if inline["outdated"] == true {
        CommentPlace::Gone
    } else {
        CommentPlace::Unknown
    }
}

/// Writes a comment on all lines of a spot, or on its last line.
fn comment_on(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    inline: &InlineComment,
    on_all: bool,
) -> Result<(), Failure> {
    let spot = &inline.spot;
    let mut place = json!({ "path": spot.path, "to": spot.last.new });
    if on_all && spot.first.new < spot.last.new {
        place["start_to"] = json!(spot.first.new);
    }
    let body = json!({ "content": { "raw": inline.body }, "inline": place });
    session
        .make(&below(session, pull, &["comments"]), &body)
        .map(drop)
}

/// Returns the projects that may have the head: the base's project need not have a fork's commits.
fn homes<'a>(
    session: &'a ForgeSession<'a>,
    pull: &'a PullRequest,
) -> impl Iterator<Item = &'a ForgeProject> {
    let own = session.project;
    [own].into_iter().chain(
        pull.head
            .project
            .as_ref()
            .filter(move |project| *project != own),
    )
}

/// Returns the build of the head under a name.
fn build(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    context: &str,
) -> Result<Option<Value>, Failure> {
    let id = pull.head.id.to_string();
    for project in homes(session, pull) {
        let path = path(project, &["commit", &id, "statuses", "build", context]);
        match session.get(&path, &[]) {
            Err(failure) if is_absent(&failure) => {}
            found => return found.map(Some),
        }
    }
    Ok(None)
}

/// Sets a build of the head.
fn set_build(
    session: &ForgeSession<'_>,
    pull: &PullRequest,
    mut body: Value,
) -> Result<(), Failure> {
    let id = pull.head.id.to_string();
    // With this field, the pull request shows the status as well as the commit.
    body["refname"] = json!(pull.head.name);
    let mut absent = None;
    for project in homes(session, pull) {
        let path = path(project, &["commit", &id, "statuses", "build"]);
        // Setting it twice updates the same build.
        match session.change(Method::POST, &path, &body) {
            Err(failure) if is_absent(&failure) => absent = absent.or(Some(failure)),
            done => return done.map(drop),
        }
    }
    absent.map_or(Ok(()), Err)
}
