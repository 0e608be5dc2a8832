//! Reads replies on Bitbucket Data Center, the rights of their authors, and the time of the head's
//! push.

use super::{BitbucketServer, pages, path};
use crate::forge::api::ReplyReader;
use crate::forge::bitbucket::{MOST, Person, add_authors, key};
use crate::forge::commands::{
    Authors, CommentReply, FirstComment, Rights, address_in, changed_since,
};
use crate::forge::pager::Pages;
use crate::forge::session::ForgeSession;
use crate::forge::{Account, MOST_COMMITS, PullRequest, Reads};
use crate::http::Failure;
use jiff::Timestamp;
use serde_json::Value;

/// Grants for a user name that are read, at most.
const MOST_GRANTS: usize = 100;
/// Depth of nested replies that are read, at most.
const MOST_DEPTH: usize = 20;

/// Reads the activities of the pull request, newest first.
fn activities(session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Pages, Failure> {
    let path = path(
        session,
        &["pull-requests", &pull.number.to_string(), "activities"],
    );
    pages(session, &path, &[], MOST)
}

impl ReplyReader for BitbucketServer {
    fn replies(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<CommentReply>, bool), Failure> {
        let activities = activities(session, pull)?;
        let mut out: Vec<CommentReply> = Vec::new();
        let mut seen = Vec::new();
        for activity in activities
            .items
            .iter()
            .filter(|a| a["action"] == "COMMENTED" && a["commentAction"] == "ADDED")
        {
            let root = &activity["comment"];
            let is_inline = activity["commentAnchor"].is_object() || root["anchor"].is_object();
            if is_inline && !seen.contains(&&root["id"]) {
                seen.push(&root["id"]);
                gather(pull, &root["comments"], root, 0, &mut out);
            }
        }
        Ok((out, !activities.more))
    }

    /// Returns the time when the head was pushed: the newest activity that moved the source branch, or
    /// else the opening.
    fn push_time(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<Option<Timestamp>, Failure> {
        let activities = activities(session, pull)?;
        let mut all = activities.items.iter();
        let newest = match all
            .find(|a| a["action"] == "RESCOPED" && a["fromHash"] != a["previousFromHash"])
        {
            Some(moved) if moved.id_at("/fromHash").is_ok_and(|id| id == pull.head.id) => {
                Some(moved)
            }
            Some(_) => None,
            None if activities.more => None,
            None => activities.items.iter().find(|a| a["action"] == "OPENED"),
        };
        Ok(newest.and_then(|a| moment(&a["createdDate"])))
    }

    fn authors(&self, session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Authors, Failure> {
        let mut out = Authors::default();
        let number = pull.number.to_string();
        let opened = session.get(&path(session, &["pull-requests", &number]), &[])?;
        out.add(Some(account(&opened["author"]["user"])), || {
            "Bitbucket does not name who opened it".to_owned()
        });
        let commits = pages(
            session,
            &path(session, &["pull-requests", &number, "commits"]),
            &[],
            MOST_COMMITS,
        )?;
        add_authors(&mut out, pull, &commits, ("/id", &person));
        Ok(out)
    }

    /// Returns the rights of an account: a permission granted to it directly, for the repository or its
    /// project. No API reports the permissions that it has through groups.
    fn rights(&self, session: &ForgeSession<'_>, account: &Account) -> Result<Rights, Failure> {
        let project = [
            "api",
            "1.0",
            "projects",
            &session.project.owner(),
            "permissions",
            "users",
        ]
        .map(str::to_owned);
        let places = [
            (path(session, &["permissions", "users"]), "REPO_ADMIN"),
            (project.to_vec(), "PROJECT_ADMIN"),
        ];
        for (path, wanted) in places {
            let grants = pages(session, &path, &[("filter", &account.name)], MOST_GRANTS)?;
            if grants
                .items
                .iter()
                .any(|g| key(&g["user"]["id"]) == account.id && g["permission"] == wanted)
            {
                return Ok(Rights::Maintains);
            }
        }
        Ok(Rights::Lacks(
            "its author was not given the right to administer the repository or the project"
                .to_owned(),
        ))
    }
}

/// Collects replies and the replies to them: all belong to the same first comment.
fn gather(
    pull: &PullRequest,
    comments: &Value,
    root: &Value,
    depth: usize,
    out: &mut Vec<CommentReply>,
) {
    for comment in comments
        .as_array()
        .into_iter()
        .flatten()
        .filter(|_| depth < MOST_DEPTH)
    {
        out.push(reply(pull, comment, root));
        gather(pull, &comment["comments"], root, depth + 1, out);
    }
}

/// Reads a reply and the first comment of its conversation.
fn reply(pull: &PullRequest, comment: &Value, root: &Value) -> CommentReply {
    let written = moment(&comment["createdDate"]);
    let (begun, changed) = (moment(&root["createdDate"]), moment(&root["updatedDate"]));
    let address = pull.url.trim_end_matches("/overview");
    CommentReply {
        author: account(&comment["author"]),
        is_person: comment["author"]["type"] == "NORMAL" && comment["author"]["active"] == true,
        body: comment["text"].as_str().unwrap_or_default().to_owned(),
        link: format!("{address}/overview?commentId={}", key(&comment["id"])),
        is_edited: written.is_none()
            || written != moment(&comment["updatedDate"])
            || comment["version"] != 0,
        written,
        root: FirstComment {
            author: account(&root["author"]),
            body: root["text"].as_str().unwrap_or_default().to_owned(),
            changed: changed_since(begun, changed),
        },
    }
}

/// Reads the author or committer of a commit. It has an ID only if the address belongs to an
/// account.
fn person(value: &Value) -> Person {
    let address = address_in(&format!("<{}>", value.name_at("/emailAddress")));
    (address, Some(account(value)).filter(|a| !a.id.is_empty()))
}

/// Reads an account; its number is empty if there is none.
fn account(value: &Value) -> Account {
    Account {
        id: key(&value["id"]),
        name: value.name_at("/name"),
    }
}

/// Reads a time in milliseconds since 1970.
fn moment(value: &Value) -> Option<Timestamp> {
    value
        .as_i64()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
}
