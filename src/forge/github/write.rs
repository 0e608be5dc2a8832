//! Writes to GitHub: review comments, the summary, a commit status.

use super::{PAGE, parts, path};
use crate::diff::ObjectId;
use crate::forge::added::Added;
use crate::forge::publish::{Comment, CommentPlace, CommitStatus, Inline, Light, Set};
use crate::forge::{Account, Forge, PullRequest, Reads, lacks, speaks_of};
use crate::http::{Cause, Failure, Limits, Method};
use serde_json::{Value, json};

/// Comments of a pull request that are read, at most.
const MOST: usize = 3000;
/// Characters of a status description, at most.
const MOST_OF_A_STATUS: usize = 140;

/// Returns the account of the token.
///
/// GraphQL reports it for all tokens, including those of workflows; REST does not.
pub(in crate::forge) async fn me(forge: &Forge, limits: &Limits<'_>) -> Result<Account, Failure> {
    let asked = graphql(
        forge,
        "query { viewer { login databaseId } }",
        &json!({}),
        limits,
    )
    .await;
    let failure = match asked {
        Ok(data) => {
            let (name, id) = (
                data.name_at("/viewer/login"),
                data.number_at("/viewer/databaseId"),
            );
            if !name.is_empty() {
                return Ok(Account {
                    id: id.map(|id| id.to_string()).unwrap_or_default(),
                    name,
                });
            }
            lacks("/viewer/login")
        }
        Err(failure) if matches!(failure.status, Some(401)) || failure.cause == Cause::Stopped => {
            return Err(failure);
        }
        Err(failure) => failure,
    };
    let user: Vec<String> = super::version(forge)
        .iter()
        .copied()
        .chain(["user"])
        .map(str::to_owned)
        .collect();
    match forge.client.get(&parts(&user), &[], limits).await {
        Ok(user) => Ok(Account {
            id: user.number_at("/id")?.to_string(),
            name: user.name_at("/login"),
        }),
        Err(_) => Err(failure),
    }
}

/// Lists the comments of a pull request, on lines and below it. The flag is false if there are
/// more.
pub(in crate::forge) async fn comments(
    forge: &Forge,
    pull: &PullRequest,
    limits: &Limits<'_>,
) -> Result<(Vec<Comment>, bool), Failure> {
    let number = pull.number.to_string();
    let mut out = Vec::new();
    let mut all = true;
    for (kind, is_inline) in [("pulls", true), ("issues", false)] {
        let path = path(forge, &[kind, &number, "comments"]);
        let pages = forge
            .client
            .linked(&parts(&path), &[PAGE], MOST, limits)
            .await?;
        all &= !pages.more;
        for comment in &pages.items {
            out.push(Comment {
                id: comment.number_at("/id")?.to_string(),
                author: Account {
                    id: comment
                        .number_at("/user/id")
                        .map(|id| id.to_string())
                        .unwrap_or_default(),
                    name: comment.name_at("/user/login"),
                },
                body: comment["body"].as_str().unwrap_or_default().to_owned(),
                is_inline,
                place: place(comment),
                thread: String::new(),
                resolved: false,
                version: 0,
            });
        }
    }
    if out.iter().any(|c| c.is_inline) {
        // A failure is not fatal: then only conversations that a person resolved are not recognized
        // as such.
        let threads = threads(forge, &number, limits).await.unwrap_or_default();
        for comment in out.iter_mut().filter(|c| c.is_inline) {
            if let Some(thread) = threads.iter().find(|t| t.comment == comment.id) {
                comment.thread.clone_from(&thread.id);
                comment.resolved = thread.resolved;
                if thread.is_outdated {
                    comment.place = CommentPlace::Gone;
                }
            }
        }
    }
    Ok((out, all))
}

/// Reads the position of a comment in the newest diff: GitHub tracks its lines across pushes, and
/// omits them once they are gone.
fn place(comment: &Value) -> CommentPlace {
    let Some(last) = comment.get("line") else {
        return CommentPlace::Untold;
    };
    if comment["side"].as_str().is_some_and(|side| side != "RIGHT") {
        return CommentPlace::Gone;
    }
    let first = comment["start_line"].as_u64().or(last.as_u64());
    CommentPlace::of(
        comment["path"].as_str().unwrap_or_default().to_owned(),
        first,
        last.as_u64(),
    )
}

/// Writes new comments on lines, as one review.
pub(in crate::forge) async fn add(
    forge: &Forge,
    pull: &PullRequest,
    inline: &[Inline],
    limits: &Limits<'_>,
) -> Added {
    let number = pull.number.to_string();
    let head = pull.head.id.to_string();
    let comments: Vec<Value> = inline.iter().map(comment).collect();
    let body = match inline.len() {
        1 => "1 finding on a line of this change.".to_owned(),
        n => format!("{n} findings on lines of this change."),
    };
    let review =
        json!({ "commit_id": head, "event": "COMMENT", "body": body, "comments": comments });
    let reviews = path(forge, &["pulls", &number, "reviews"]);
    match forge.client.make(&parts(&reviews), &review, limits).await {
        Ok(_) => {
            return Added {
                placed: inline.len(),
                ..Added::default()
            };
        }
        // One comment at an invalid position makes GitHub reject the whole review, without naming
        // the comment.
        Err(failure) if has_no_place(&failure) => {}
        Err(failure) => return Added::default().ends(failure),
    }
    let single = path(forge, &["pulls", &number, "comments"]);
    let mut added = Added::default();
    for (i, inline) in inline.iter().enumerate() {
        let mut body = comment(inline);
        body["commit_id"] = json!(head);
        match forge.client.make(&parts(&single), &body, limits).await {
            Ok(_) => added.placed += 1,
            Err(failure) if has_no_place(&failure) => added.unplaced.push(i),
            Err(failure) => return added.ends(failure),
        }
    }
    added
}

/// Returns true if GitHub does not know the lines of a comment: `Line could not be resolved`,
/// `pull_request_review_thread.path …`. It answers many other errors with 422 too.
fn has_no_place(failure: &Failure) -> bool {
    failure.status == Some(422)
        && speaks_of(
            &failure.message,
            &["line", "path", "position", "diff", "hunk", "side"],
        )
}

fn comment(inline: &Inline) -> Value {
    let spot = &inline.spot;
    let mut comment =
        json!({ "path": spot.path, "body": inline.body, "line": spot.last.new, "side": "RIGHT" });
    // GitHub rejects a range of one line.
    if spot.first.new < spot.last.new {
        comment["start_line"] = json!(spot.first.new);
        comment["start_side"] = json!("RIGHT");
    }
    comment
}

/// Replaces the text of a comment.
pub(in crate::forge) async fn edit(
    forge: &Forge,
    comment: &Comment,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let kind = if comment.is_inline { "pulls" } else { "issues" };
    let path = path(forge, &[kind, "comments", &comment.id]);
    forge
        .client
        .change(
            Method::PATCH,
            &parts(&path),
            &json!({ "body": body }),
            limits,
        )
        .await
        .map(drop)
}

/// Resolves the thread of a comment, or reopens it. GitHub requires more than the right to comment
/// (`contents: write`).
pub(in crate::forge) async fn resolve(
    forge: &Forge,
    comment: &Comment,
    resolved: bool,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    if comment.thread.is_empty() {
        return Ok(());
    }
    let mutation = if resolved {
        "resolveReviewThread"
    } else {
        "unresolveReviewThread"
    };
    let query = format!(
        "mutation($id: ID!) {{ {mutation}(input: {{ threadId: $id }}) {{ thread {{ id }} }} }}"
    );
    graphql(forge, &query, &json!({ "id": comment.thread }), limits)
        .await
        .map(drop)
}

/// A conversation about lines.
#[derive(Debug)]
struct Thread {
    id: String,
    /// ID of its first comment.
    comment: String,
    resolved: bool,
    /// Whether its lines were changed since.
    is_outdated: bool,
}

async fn threads(forge: &Forge, number: &str, limits: &Limits<'_>) -> Result<Vec<Thread>, Failure> {
    const QUERY: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
        repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
        reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } \
        nodes { id isResolved isOutdated comments(first: 1) { nodes { databaseId } } } } } } }";
    let project = &forge.site().project;
    let number: u64 = number.parse().unwrap_or_default();
    let mut after = Value::Null;
    let mut out = Vec::new();
    while out.len() < MOST {
        let variables = json!({ "owner": project.owner(), "name": project.name(), "number": number, "after": after });
        let data = graphql(forge, QUERY, &variables, limits).await?;
        let page = data
            .pointer("/repository/pullRequest/reviewThreads")
            .cloned()
            .unwrap_or_default();
        let nodes = page["nodes"].as_array().cloned().unwrap_or_default();
        for node in &nodes {
            out.push(Thread {
                id: node.name_at("/id"),
                comment: node
                    .number_at("/comments/nodes/0/databaseId")
                    .map(|id| id.to_string())
                    .unwrap_or_default(),
                resolved: node["isResolved"] == true,
                is_outdated: node["isOutdated"] == true,
            });
        }
        after = page["pageInfo"]["endCursor"].clone();
        if page["pageInfo"]["hasNextPage"] != true || nodes.is_empty() || !after.is_string() {
            break;
        }
    }
    Ok(out)
}

/// Sends a GraphQL request, whose errors have a successful HTTP status.
pub(super) async fn graphql(
    forge: &Forge,
    query: &str,
    variables: &Value,
    limits: &Limits<'_>,
) -> Result<Value, Failure> {
    let body = json!({ "query": query, "variables": variables });
    let answer = forge
        .client
        .change(Method::POST, &["graphql"], &body, limits)
        .await?;
    if let Some(error) = answer["errors"].as_array().and_then(|e| e.first()) {
        let said = error.text_at("/message", 1000);
        let mut failure = Failure::new(Cause::Refused, forge.client.shown(&said));
        failure.status = (error["type"] == "FORBIDDEN").then_some(403);
        return Err(failure);
    }
    Ok(answer["data"].clone())
}

/// Writes the summary below the pull request.
pub(in crate::forge) async fn summarize(
    forge: &Forge,
    pull: &PullRequest,
    body: &str,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let path = path(forge, &["issues", &pull.number.to_string(), "comments"]);
    forge
        .client
        .make(&parts(&path), &json!({ "body": body }), limits)
        .await
        .map(drop)
}

/// Returns the newest status of a commit under a name, with its author.
pub(in crate::forge) async fn newest_status(
    forge: &Forge,
    id: ObjectId,
    context: &str,
    limits: &Limits<'_>,
) -> Result<Option<Set>, Failure> {
    let path = path(forge, &["commits", &id.to_string(), "statuses"]);
    let pages = forge
        .client
        .linked(&parts(&path), &[PAGE], MOST, limits)
        .await?;
    let newest = pages.items.iter().find(|s| s["context"] == context);
    Ok(newest.map(|s| {
        let account = Account {
            id: s
                .number_at("/creator/id")
                .map(|id| id.to_string())
                .unwrap_or_default(),
            name: s.name_at("/creator/login"),
        };
        let state = match s["state"].as_str() {
            Some("success") => Light::Success,
            Some("failure") => Light::Failure,
            _ => Light::Error,
        };
        Set {
            by: Some(account),
            status: CommitStatus {
                light: state,
                description: s.name_at("/description"),
            },
        }
    }))
}

/// Sets the status of a commit under a name.
pub(in crate::forge) async fn set_status(
    forge: &Forge,
    id: ObjectId,
    context: &str,
    status: &CommitStatus,
    limits: &Limits<'_>,
) -> Result<(), Failure> {
    let state = match status.light {
        Light::Success => "success",
        Light::Failure => "failure",
        Light::Error => "error",
    };
    let description: String = status.description.chars().take(MOST_OF_A_STATUS).collect();
    let path = path(forge, &["statuses", &id.to_string()]);
    let body = json!({ "state": state, "context": context, "description": description });
    // Setting it twice updates the same status.
    forge
        .client
        .change(Method::POST, &parts(&path), &body, limits)
        .await
        .map(drop)
}
