//! Bitbucket Cloud's REST API.
//!
//! <https://developer.atlassian.com/cloud/bitbucket/rest/>, version 2.0.

mod replies;

pub(super) use replies::{authors, pushed, replies, rights};

use super::{MOST, is_absent, parts};
use crate::context::Ticket;
use crate::diff::ObjectId;
use crate::forge::address::ForgeProject;
use crate::forge::client::{Pages, is_too_large, smaller};
use crate::forge::publish::{Comment, CommentPlace, Inline};
use crate::forge::ticket::ticket;
use crate::forge::{
    Account, Commit, Forge, ForgeKind, ListedPull, MOST_COMMITS, MOST_OF_A_MESSAGE, MOST_OF_A_TEXT,
    MOST_PULLS, PullRequest, PullState, PullTip, Reads, lacks,
};
use crate::http::{Failure, Limits, Method};
use serde_json::{Value, json};

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
fn below(forge: &Forge, pull: &PullRequest, rest: &[&str]) -> Vec<String> {
    let number = pull.number.to_string();
    let rest: Vec<&str> = ["pullrequests", &number]
        .iter()
        .chain(rest)
        .copied()
        .collect();
    path(&forge.site.project, &rest)
}

/// Reads a list whose pages link to the next one, `most` items at most.
async fn pages(
    forge: &Forge,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
    limits: &Limits<'_>,
) -> Result<Pages, Failure> {
    match pages_by(forge, path, query, most, limits).await {
        Err(failure) if is_too_large(&failure) => {
            pages_by(forge, path, &smaller(query), most, limits).await
        }
        done => done,
    }
}

async fn pages_by(
    forge: &Forge,
    path: &[String],
    query: &[(&str, &str)],
    most: usize,
    limits: &Limits<'_>,
) -> Result<Pages, Failure> {
    let mut out = Pages::default();
    let mut url = forge.client.url(&parts(path), query)?;
    loop {
        let page = forge.client.fetch(url, limits).await?.value;
        let items = page["values"].as_array().ok_or_else(|| lacks("/values"))?;
        out.items.extend(items.iter().cloned());
        let next = page["next"].as_str();
        if out.items.len() >= most {
            out.more = out.items.len() > most || next.is_some();
            out.items.truncate(most);
            return Ok(out);
        }
        // Empty pages that link to a next one could go on forever.
        match next.filter(|_| !items.is_empty()) {
            Some(next) => url = forge.client.page(next)?,
            None => return Ok(out),
        }
    }
}

pub(super) async fn list(
    forge: &Forge,
    limits: &Limits<'_>,
) -> Result<(Vec<ListedPull>, bool), Failure> {
    let query = [
        ("state", "OPEN"),
        ("sort", "-created_on"),
        ("pagelen", "50"),
    ];
    let pages = pages(
        forge,
        &path(&forge.site.project, &["pullrequests"]),
        &query,
        MOST_PULLS,
        limits,
    )
    .await?;
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

pub(super) async fn read(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<PullRequest, Failure> {
    let own = &forge.site.project;
    let asked = number.to_string();
    let pull = forge
        .client
        .get(&parts(&path(own, &["pullrequests", &asked])), &[], limits)
        .await?;
    let commits = path(own, &["pullrequests", &asked, "commits"]);
    let commits = pages(forge, &commits, &[("pagelen", "100")], MOST_COMMITS, limits).await?;
    // The newest commit comes first.
    let listed = commits.items.iter().rev().map(|commit| {
        Ok(Commit {
            id: commit.id_at("/hash")?,
            message: commit.text_at("/message", MOST_OF_A_MESSAGE),
        })
    });
    let listed = listed.collect::<Result<Vec<_>, Failure>>()?;
    let from = ForgeProject::parse(
        ForgeKind::BitbucketCloud,
        &pull.name_at("/source/repository/full_name"),
    );
    let to = ForgeProject::parse(
        ForgeKind::BitbucketCloud,
        &pull.name_at("/destination/repository/full_name"),
    );
    let head = pull.name_at("/source/commit/hash");
    let head = match listed.iter().find(|c| is_short_for(&head, c.id)) {
        Some(commit) => commit.id,
        None => {
            full(
                forge,
                from.as_ref().unwrap_or(own),
                &head,
                "/source/commit/hash",
                limits,
            )
            .await?
        }
    };
    let base = pull.name_at("/destination/commit/hash");
    let base = full(forge, own, &base, "/destination/commit/hash", limits).await?;
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

pub(super) async fn issue(
    forge: &Forge,
    number: u64,
    limits: &Limits<'_>,
) -> Result<Ticket, Failure> {
    let number = number.to_string();
    let path = path(&forge.site.project, &["issues", &number]);
    let issue = forge.client.get(&parts(&path), &[], limits).await?;
    issue.number_at("/id")?;
    ticket(&issue, "/content/raw", "/updated_on")
}

/// Returns true if a pull request can abbreviate the ID to `short`.
fn is_short_for(short: &str, id: ObjectId) -> bool {
    const LEAST: usize = 12;
    short.len() >= LEAST && id.to_string().starts_with(short)
}

/// Resolves the full ID of a commit: pull requests contain twelve digits.
async fn full(
    forge: &Forge,
    project: &ForgeProject,
    short: &str,
    pointer: &str,
    limits: &Limits<'_>,
) -> Result<ObjectId, Failure> {
    if let Some(id) = ObjectId::from_hex(short) {
        return Ok(id);
    }
    if short.is_empty() || !short.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(lacks(pointer));
    }
    let commit = forge
        .client
        .get(&parts(&path(project, &["commit", short])), &[], limits)
        .await?;
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

/// Returns the account of the token.
pub(super) async fn me(forge: &Forge, limits: &Limits<'_>) -> Result<Account, Failure> {
    let found = forge.client.get(&["user"], &[], limits).await;
    let me = found.map_err(|failure| match failure.status {
        // An access token of a repository, project or workspace has no account that it can read.
        Some(401 | 403) => failure.hint(format!(
            "own comments are known by their author, and the token in {} cannot read its account (no access token of a \
             repository, project or workspace can, which may set the status alone): use ADDRESS:API_TOKEN with the \
             scope read:user:bitbucket",
            forge.client.token_name()
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

pub(super) async fn comments(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<(Vec<Comment>, bool), Failure> {
    let query = [("sort", "created_on"), ("pagelen", "100")];
    let pages = pages(
        forge,
        &below(forge, pull, &["comments"]),
        &query,
        MOST,
        limits,
    )
    .await?;
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
        CommentPlace::Untold
    }
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
    let mut place = json!({ "path": spot.path, "to": spot.last.new });
    if on_all && spot.first.new < spot.last.new {
        place["start_to"] = json!(spot.first.new);
    }
    let body = json!({ "content": { "raw": inline.body }, "inline": place });
    forge
        .client
        .make(&parts(&below(forge, pull, &["comments"])), &body, limits)
        .await
        .map(drop)
}

pub(super) async fn summarize(
    forge: &Forge,
    pull: &PullRequest,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let body = json!({ "content": { "raw": body } });
    forge
        .client
        .make(&parts(&below(forge, pull, &["comments"])), &body, limits)
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
    let body = json!({ "content": { "raw": body } });
    let path = below(forge, pull, &["comments", &comment.id]);
    forge
        .client
        .change(Method::PUT, &parts(&path), &body, limits)
        .await
        .map(drop)
}

pub(super) async fn resolve(
    forge: &Forge,
    pull: &PullRequest,
    comment: &Comment,
    resolved: bool,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let path = below(forge, pull, &["comments", &comment.id, "resolve"]);
    let method = if resolved {
        Method::POST
    } else {
        Method::DELETE
    };
    match forge.client.order(method, &parts(&path), limits).await {
        // The conversation is in that state already.
        Err(failure) if failure.status == Some(409) => Ok(()),
        done => done,
    }
}

/// Returns the projects that may have the head: the base's project need not have a fork's commits.
fn homes<'a>(forge: &'a Forge, pull: &'a PullRequest) -> impl Iterator<Item = &'a ForgeProject> {
    let own = &forge.site.project;
    [own].into_iter().chain(
        pull.head
            .project
            .as_ref()
            .filter(move |project| *project != own),
    )
}

pub(super) async fn build(
    forge: &Forge,
    pull: &PullRequest,
    context: &str,
    limits: &Limits<'_>,
) -> Result<Option<Value>, Failure> {
    let id = pull.head.id.to_string();
    for project in homes(forge, pull) {
        let path = path(project, &["commit", &id, "statuses", "build", context]);
        match forge.client.get(&parts(&path), &[], limits).await {
            Err(failure) if is_absent(&failure) => {}
            found => return found.map(Some),
        }
    }
    Ok(None)
}

pub(super) async fn set_build(
    forge: &Forge,
    pull: &PullRequest,
    mut body: Value,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let id = pull.head.id.to_string();
    // With this field, the pull request shows the status as well as the commit.
    body["refname"] = json!(pull.head.name);
    let mut absent = None;
    for project in homes(forge, pull) {
        let path = path(project, &["commit", &id, "statuses", "build"]);
        // Setting it twice updates the same build.
        match forge
            .client
            .change(Method::POST, &parts(&path), &body, limits)
            .await
        {
            Err(failure) if is_absent(&failure) => absent = absent.or(Some(failure)),
            done => return done.map(drop),
        }
    }
    absent.map_or(Ok(()), Err)
}
