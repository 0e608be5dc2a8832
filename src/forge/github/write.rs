//! Writes to GitHub: review comments, the summary, a commit status.

use super::graphql::{graphql, pull_pages};
use super::{Github, PAGE, listed, path};
use crate::forge::added::Added;
use crate::forge::api::ReviewWriter;
use crate::forge::publish::{
    Comment, CommentPlace, CommitStatus, ExistingStatus, InlineComment, StatusState,
};
use crate::forge::session::ForgeSession;
use crate::forge::{Account, PullRequest, Reads, lacks, speaks_of};
use crate::http::{Cause, Failure, Method};
use serde_json::{Value, json};

/// Comments of a pull request that are read, at most.
const MOST: usize = 3000;
/// Characters of a status description, at most.
const MOST_OF_A_STATUS: usize = 140;

impl ReviewWriter for Github {
    /// Returns the account of the token.
    ///
    /// GraphQL reports it for all tokens, including those of workflows; REST does not.
    fn token_account(&self, session: &ForgeSession<'_>) -> Result<Account, Failure> {
        let asked = graphql(session, "query { viewer { login databaseId } }", &json!({}));
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
            Err(failure)
                if matches!(failure.status, Some(401)) || failure.cause == Cause::Stopped =>
            {
                return Err(failure);
            }
            Err(failure) => failure,
        };
        let user: Vec<String> = super::version(session)
            .iter()
            .copied()
            .chain(["user"])
            .map(str::to_owned)
            .collect();
        match session.get(&user, &[]) {
            Ok(user) => Ok(Account {
                id: user.number_at("/id")?.to_string(),
                name: user.name_at("/login"),
            }),
            Err(_) => Err(failure),
        }
    }

    /// Lists the comments of a pull request, on lines and below it. The flag is false if there are
    /// more.
    fn comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<Comment>, bool), Failure> {
        let number = pull.number.to_string();
        let mut out = Vec::new();
        let mut all = true;
        for (kind, is_inline) in [("pulls", true), ("issues", false)] {
            let path = path(session, &[kind, &number, "comments"]);
            let pages = listed(session, &path, &[PAGE], MOST)?;
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
            let threads = threads(session, pull).unwrap_or_default();
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

    /// Writes new comments on lines, as one review.
    fn add_comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        inline: &[InlineComment],
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
        let reviews = path(session, &["pulls", &number, "reviews"]);
        match session.make(&reviews, &review) {
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
        let single = path(session, &["pulls", &number, "comments"]);
        let mut added = Added::default();
        for (i, inline) in inline.iter().enumerate() {
            let mut body = comment(inline);
            body["commit_id"] = json!(head);
            match session.make(&single, &body) {
                Ok(_) => added.placed += 1,
                Err(failure) if has_no_place(&failure) => added.unplaced.push(i),
                Err(failure) => return added.ends(failure),
            }
        }
        added
    }

    /// Replaces the text of a comment.
    fn edit_comment(
        &self,
        session: &ForgeSession<'_>,
        _pull: &PullRequest,
        comment: &Comment,
        body: &str,
    ) -> Result<(), Failure> {
        let kind = if comment.is_inline { "pulls" } else { "issues" };
        let path = path(session, &[kind, "comments", &comment.id]);
        session
            .change(Method::PATCH, &path, &json!({ "body": body }))
            .map(drop)
    }

    /// Resolves the thread of a comment, or reopens it. GitHub requires more than the right to comment
    /// (`contents: write`).
    fn resolve_conversation(
        &self,
        session: &ForgeSession<'_>,
        _pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
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
        graphql(session, &query, &json!({ "id": comment.thread })).map(drop)
    }

    /// Writes the summary below the pull request.
    fn write_summary(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        body: &str,
    ) -> Result<(), Failure> {
        let path = path(session, &["issues", &pull.number.to_string(), "comments"]);
        session.make(&path, &json!({ "body": body })).map(drop)
    }

    /// Returns the newest status of a commit under a name, with its author.
    fn newest_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
    ) -> Result<Option<ExistingStatus>, Failure> {
        let path = path(session, &["commits", &pull.head.id.to_string(), "statuses"]);
        let pages = listed(session, &path, &[PAGE], MOST)?;
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
                Some("success") => StatusState::Success,
                Some("failure") => StatusState::Failure,
                _ => StatusState::Incomplete,
            };
            ExistingStatus {
                by: Some(account),
                status: CommitStatus {
                    state,
                    description: s.name_at("/description"),
                },
            }
        }))
    }

    /// Sets the status of a commit under a name.
    fn set_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
        status: &CommitStatus,
    ) -> Result<(), Failure> {
        let state = match status.state {
            StatusState::Success => "success",
            StatusState::Failure => "failure",
            StatusState::Incomplete => "error",
        };
        let description: String = status.description.chars().take(MOST_OF_A_STATUS).collect();
        let path = path(session, &["statuses", &pull.head.id.to_string()]);
        let body = json!({ "state": state, "context": context, "description": description });
        // Setting it twice updates the same status.
        session.change(Method::POST, &path, &body).map(drop)
    }
}

/// Reads the position of a comment in the newest diff: GitHub tracks its lines across pushes, and
/// omits them once they are gone.
fn place(comment: &Value) -> CommentPlace {
    let Some(last) = comment.get("line") else {
        return CommentPlace::Unknown;
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

/// Returns true if GitHub does not know the lines of a comment: `Line could not be resolved`,
/// `pull_request_review_thread.path …`. It answers many other errors with 422 too.
fn has_no_place(failure: &Failure) -> bool {
    failure.status == Some(422)
        && speaks_of(
            &failure.message,
            &["line", "path", "position", "diff", "hunk", "side"],
        )
}

/// Returns the document of a comment on lines.
fn comment(inline: &InlineComment) -> Value {
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

/// Lists the conversations of the pull request, [`MOST`] or a few more.
fn threads(session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Vec<Thread>, Failure> {
    const QUERY: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
        repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
        reviewThreads(first: 100, after: $after) { pageInfo { hasNextPage endCursor } \
        nodes { id isResolved isOutdated comments(first: 1) { nodes { databaseId } } } } } } }";
    let mut out = Vec::new();
    pull_pages(session, pull, QUERY, |answer| {
        let page = &answer["reviewThreads"];
        let nodes = page["nodes"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        out.extend(nodes.iter().map(thread));
        let is_over = nodes.is_empty() || out.len() >= MOST;
        (!is_over).then(|| page["pageInfo"].clone())
    })?;
    Ok(out)
}

/// Reads a conversation.
fn thread(node: &Value) -> Thread {
    Thread {
        id: node.name_at("/id"),
        comment: node
            .number_at("/comments/nodes/0/databaseId")
            .map(|id| id.to_string())
            .unwrap_or_default(),
        resolved: node["isResolved"] == true,
        is_outdated: node["isOutdated"] == true,
    }
}
