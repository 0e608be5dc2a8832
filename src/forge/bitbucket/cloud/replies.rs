//! Reads replies on Bitbucket Cloud, the rights of their authors, and the time of the head's push.

use super::{BitbucketCloud, account, below, is_short_for, pages, text_of};
use crate::forge::api::ReplyReader;
use crate::forge::bitbucket::{MOST, Person, add_authors};
use crate::forge::commands::{
    Authors, CommentReply, FirstComment, Rights, address_in, changed_since,
};
use crate::forge::session::ForgeSession;
use crate::forge::{Account, MOST_COMMITS, PullRequest, Reads};
use crate::http::Failure;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::HashMap;

/// Activities of a pull request that are searched for the push of its head, at most.
const MOST_EVENTS: usize = 200;
/// Comments between a reply and the first one of its conversation, at most.
const MOST_PARENTS: usize = 50;

impl ReplyReader for BitbucketCloud {
    fn replies(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<CommentReply>, bool), Failure> {
        let query = [("sort", "created_on"), ("pagelen", "100")];
        let pages = pages(session, &below(session, pull, &["comments"]), &query, MOST)?;
        let by_id: HashMap<u64, &Value> = pages
            .items
            .iter()
            .filter_map(|c| Some((c["id"].as_u64()?, c)))
            .collect();
        let shown = pages
            .items
            .iter()
            .filter(|c| c["deleted"] != true && c["pending"] != true && c["parent"].is_object());
        let replies = shown.filter_map(|comment| {
            let root = root_of(comment, &by_id)?;
            (root["inline"].is_object() && root["deleted"] != true).then(|| reply(comment, root))
        });
        Ok((replies.collect(), !pages.more))
    }

    /// Returns the time when the head was pushed. Each update contains the head at that time, newest
    /// first. Updates of a title or a description contain it too, so the oldest in a row is the push.
    fn push_time(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<Option<Timestamp>, Failure> {
        let path = below(session, pull, &["activity"]);
        let events = pages(session, &path, &[("pagelen", "50")], MOST_EVENTS)?;
        let mut pushed = None;
        for update in events
            .items
            .iter()
            .filter_map(|e| e.get("update"))
            .filter(|u| u.is_object())
        {
            if !is_short_for(&update.name_at("/source/commit/hash"), pull.head.id) {
                return Ok(pushed);
            }
            pushed = moment(&update["date"]);
            if pushed.is_none() {
                return Ok(None);
            }
        }
        // Older updates that were not read may contain it too. Then the push is older than the time
        // returned, which is safe.
        Ok(pushed)
    }

    fn authors(&self, session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Authors, Failure> {
        let mut out = Authors::default();
        let opened = session.get(&below(session, pull, &[]), &[])?;
        out.add(Some(account(&opened["author"])), || {
            "Bitbucket does not name who opened it".to_owned()
        });
        let path = below(session, pull, &["commits"]);
        let commits = pages(session, &path, &[("pagelen", "100")], MOST_COMMITS)?;
        add_authors(&mut out, pull, &commits, ("/hash", &person));
        Ok(out)
    }

    /// Returns the rights of an account: its effective permission for the repository. There is no role
    /// between write and admin.
    fn rights(&self, session: &ForgeSession<'_>, account: &Account) -> Result<Rights, Failure> {
        let project = session.project;
        let (workspace, slug) = (project.owner(), project.name());
        let path = [
            "workspaces",
            &workspace,
            "permissions",
            "repositories",
            slug,
        ];
        let filter = format!("user.uuid=\"{}\"", account.id.replace(['"', '\\'], ""));
        let answer = session.get(&path, &[("q", &filter)])?;
        let is_admin = answer["values"].as_array().is_some_and(|all| {
            all.iter()
                .any(|p| p["user"]["uuid"] == *account.id && p["permission"] == "admin")
        });
        Ok(match is_admin {
            true => Rights::Maintains,
            false => Rights::Lacks("its author does not administer the repository".to_owned()),
        })
    }
}

/// Returns the first comment of a conversation, or `None` if it is not among the comments that were
/// read.
fn root_of<'a>(comment: &'a Value, by_id: &HashMap<u64, &'a Value>) -> Option<&'a Value> {
    let mut at = comment;
    for _ in 0..MOST_PARENTS {
        match at.pointer("/parent/id").and_then(Value::as_u64) {
            Some(parent) => at = by_id.get(&parent)?,
            None => return Some(at),
        }
    }
    None
}

/// Reads a reply and the first comment of its conversation.
fn reply(comment: &Value, root: &Value) -> CommentReply {
    let written = moment(&comment["created_on"]);
    let (begun, changed) = (moment(&root["created_on"]), moment(&root["updated_on"]));
    CommentReply {
        author: account(&comment["user"]),
        is_person: comment["user"]["type"] == "user",
        body: text_of(comment),
        link: comment.name_at("/links/html/href"),
        is_edited: written.is_none() || written != moment(&comment["updated_on"]),
        written,
        root: FirstComment {
            author: account(&root["user"]),
            body: text_of(root),
            changed: changed_since(begun, changed),
        },
    }
}

/// Reads the author or committer of a commit.
fn person(value: &Value) -> Person {
    (
        address_in(&value.name_at("/raw")),
        Some(account(&value["user"])).filter(|a| !a.id.is_empty()),
    )
}

/// Reads a time in the format of RFC 3339.
fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
