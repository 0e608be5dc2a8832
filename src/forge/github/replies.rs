//! Reads replies on GitHub, the rights of their authors, and the time of the head's push.

use super::graphql::pull_pages;
use super::{Github, path, path_in};
use crate::forge::api::ReplyReader;
use crate::forge::commands::{Authors, CommentReply, FirstComment, Rights};
use crate::forge::session::ForgeSession;
use crate::forge::{Account, MOST_COMMITS, PullRequest, Reads};
use crate::http::Failure;
use jiff::Timestamp;
use serde_json::Value;

/// Conversations that are read, at most.
const MOST: usize = 1000;
/// Committer of edits on GitHub's web pages. The person who edits is the author.
const WEB: &str = "noreply@github.com";

const THREADS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    reviewThreads(first: 50, after: $after) { pageInfo { hasNextPage endCursor } \
    nodes { comments(first: 50) { pageInfo { hasNextPage } nodes { body url createdAt lastEditedAt \
    author { __typename login ... on User { databaseId } ... on Bot { databaseId } } } } } } } } }";

const COMMITS: &str = "query($owner: String!, $name: String!, $number: Int!, $after: String) { \
    repository(owner: $owner, name: $name) { pullRequest(number: $number) { \
    author { login ... on User { databaseId } ... on Bot { databaseId } } \
    commits(first: 50, after: $after) { totalCount pageInfo { hasNextPage endCursor } \
    nodes { commit { oid authors(first: 50) { pageInfo { hasNextPage } nodes { user { login databaseId } } } \
    committer { email user { login databaseId } } } } } } } }";

impl ReplyReader for Github {
    /// Lists the replies in conversations about lines. The flag is false if there are more.
    fn replies(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<CommentReply>, bool), Failure> {
        let (mut out, mut count, mut is_all) = (Vec::new(), 0, true);
        pull_pages(session, pull, THREADS, |pull| {
            let threads = &pull["reviewThreads"];
            for thread in list(&threads["nodes"]) {
                count += 1;
                is_all &= thread["comments"]["pageInfo"]["hasNextPage"] != true;
                let mut comments = list(&thread["comments"]["nodes"]).iter();
                if let Some(root) = comments.next() {
                    out.extend(comments.map(|comment| reply(comment, root)));
                }
            }
            let is_over = count >= MOST || list(&threads["nodes"]).is_empty();
            is_all &= !is_over || threads["pageInfo"]["hasNextPage"] != true;
            (!is_over).then(|| threads["pageInfo"].clone())
        })?;
        Ok((out, is_all))
    }

    /// Returns the time when the head was pushed to its branch: that of the branch's newest activity,
    /// if its result is the head.
    fn push_time(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<Option<Timestamp>, Failure> {
        let Some(project) = &pull.head.project else {
            return Ok(None);
        };
        let name = format!("refs/heads/{}", pull.head.name);
        let query = [
            ("ref", name.as_str()),
            ("per_page", "1"),
            ("direction", "desc"),
        ];
        let path = path_in(session, project, &["activity"]);
        let newest = match session.get(&path, &query) {
            // A server without activities, or a token that cannot read them.
            Err(failure) if matches!(failure.status, Some(403 | 404)) => return Ok(None),
            newest => newest?,
        };
        let newest = &newest[0];
        let is_head = newest["ref"] == *name && newest["after"] == *pull.head.id.to_string();
        Ok(moment(&newest["timestamp"]).filter(|_| is_head))
    }

    /// Returns the authors of the change, as GitHub maps them to accounts.
    fn authors(&self, session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Authors, Failure> {
        let mut out = Authors::default();
        let (mut count, mut total, mut has_head) = (0, None, false);
        pull_pages(session, pull, COMMITS, |pulled| {
            if count == 0 {
                out.add(account(&pulled["author"]), || {
                    "GitHub does not name who opened it".to_owned()
                });
            }
            let commits = &pulled["commits"];
            total = commits["totalCount"].as_u64();
            for node in list(&commits["nodes"]) {
                count += 1;
                has_head |= node["commit"]["oid"] == *pull.head.id.to_string();
                add(&mut out, &node["commit"]);
            }
            let is_over = count >= MOST_COMMITS || list(&commits["nodes"]).is_empty();
            (!is_over).then(|| commits["pageInfo"].clone())
        })?;
        if total != Some(count as u64) || !has_head {
            out.unknown
                .get_or_insert_with(|| "GitHub does not list all commits".to_owned());
        }
        Ok(out)
    }

    /// Returns the rights of an account: the role that GitHub computes from teams, the organization and
    /// the repository.
    fn rights(&self, session: &ForgeSession<'_>, account: &Account) -> Result<Rights, Failure> {
        let path = path(session, &["collaborators", &account.name, "permission"]);
        let answer = match session.get(&path, &[]) {
            Err(failure) if failure.status == Some(404) => {
                return Ok(Rights::Lacks(
                    "GitHub does not name the rights of its author".to_owned(),
                ));
            }
            answer => answer?,
        };
        let is_it = answer
            .number_at("/user/id")
            .is_ok_and(|id| id.to_string() == account.id);
        let role = answer.name_at("/role_name");
        Ok(match role.as_str() {
            "maintain" | "admin" if is_it => Rights::Maintains,
            _ if !is_it => Rights::Lacks("GitHub names the rights of another account".to_owned()),
            _ => Rights::Lacks("its author has neither the role maintain nor admin".to_owned()),
        })
    }
}

/// Reads a reply and the first comment of its conversation.
fn reply(comment: &Value, root: &Value) -> CommentReply {
    CommentReply {
        author: account(&comment["author"]).unwrap_or_default(),
        is_person: comment["author"]["__typename"] == "User"
            && !comment.name_at("/author/login").ends_with("[bot]"),
        body: comment["body"].as_str().unwrap_or_default().to_owned(),
        link: comment.name_at("/url"),
        written: moment(&comment["createdAt"]),
        is_edited: comment.get("lastEditedAt").is_none_or(|at| !at.is_null()),
        root: FirstComment {
            author: account(&root["author"]).unwrap_or_default(),
            body: root["body"].as_str().unwrap_or_default().to_owned(),
            changed: moment(&root["lastEditedAt"]),
        },
    }
}

/// Adds the authors and the committer of a commit.
fn add(out: &mut Authors, commit: &Value) {
    let id: String = commit.name_at("/oid").chars().take(12).collect();
    let authors = list(&commit["authors"]["nodes"]);
    for author in authors {
        out.add(account(&author["user"]), || {
            format!("an author of commit {id} has no account")
        });
    }
    if authors.is_empty() || commit["authors"]["pageInfo"]["hasNextPage"] != false {
        out.unknown
            .get_or_insert_with(|| format!("GitHub does not list all authors of commit {id}"));
    }
    if commit["committer"]["email"] != WEB {
        out.add(account(&commit["committer"]["user"]), || {
            format!("the committer of commit {id} has no account")
        });
    }
}

/// Reads the account of an actor, or `None` if it has no number.
fn account(actor: &Value) -> Option<Account> {
    let id = actor.number_at("/databaseId").ok()?.to_string();
    Some(Account {
        id,
        name: actor.name_at("/login"),
    })
}

/// Reads a time in the format of RFC 3339.
fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Returns the items of a list; none if the value is not a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
