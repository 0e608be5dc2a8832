//! Reads replies on GitLab, the rights of their authors, and the time of the head's push.

use super::write::{MOST, account, below, discussions};
use super::{Gitlab, pages, path};
use crate::forge::api::ReplyReader;
use crate::forge::commands::{
    Authors, CommentReply, FirstComment, Rights, address_in, changed_since, co_authors,
};
use crate::forge::session::ForgeSession;
use crate::forge::{Account, MOST_COMMITS, MOST_OF_A_TEXT, PullRequest, Reads};
use crate::http::Failure;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

/// Lowest access level that may waive: Maintainer (<https://docs.gitlab.com/api/members/#roles>).
const MAINTAINER: u64 = 40;
/// Email addresses whose accounts are searched, at most.
const MOST_ADDRESSES: usize = 20;

impl ReplyReader for Gitlab {
    /// Lists the replies in discussions about lines. The flag is false if there are more.
    fn replies(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<CommentReply>, bool), Failure> {
        let pages = pages(session, &discussions(session, pull, &[]), &[], MOST)?;
        let mut out = Vec::new();
        for discussion in &pages.items {
            let Some([root, notes @ ..]) = discussion["notes"].as_array().map(Vec::as_slice) else {
                continue;
            };
            if root["type"] == "DiffNote" && root["system"] != true {
                out.extend(
                    notes
                        .iter()
                        .filter(|note| note["system"] != true)
                        .map(|note| reply(pull, note, root)),
                );
            }
        }
        Ok((out, !pages.more))
    }

    /// Returns the time when the head was pushed: GitLab has a version of the merge request for each
    /// push.
    fn push_time(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<Option<Timestamp>, Failure> {
        let versions = pages(session, &below(session, pull, "versions", &[]), &[], 1)?;
        let newest = versions.items.first();
        let newest = newest.filter(|v| {
            v.id_at("/head_commit_sha")
                .is_ok_and(|id| id == pull.head.id)
        });
        Ok(newest.and_then(|v| moment(&v["created_at"])))
    }

    /// Finds the authors of the change. GitLab's commits have email addresses and no accounts. An
    /// address is known if GitLab created it for an account, or if exactly one account has it as its
    /// public address.
    fn authors(&self, session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Authors, Failure> {
        let mut out = Authors::default();
        let opened = path(session, &["merge_requests", &pull.number.to_string()]);
        let opened = session.get(&opened, &[])?;
        out.add(Some(account(&opened, "/author")), || {
            "GitLab does not name who opened it".to_owned()
        });
        let commits = pages(
            session,
            &below(session, pull, "commits", &[]),
            &[],
            MOST_COMMITS,
        )?;
        let has_head = commits
            .items
            .iter()
            .any(|c| c.id_at("/id").is_ok_and(|id| id == pull.head.id));
        if commits.more || !has_head {
            out.unknown
                .get_or_insert_with(|| "GitLab does not list all commits".to_owned());
        }
        let mut addresses = BTreeSet::new();
        for commit in &commits.items {
            match written_by(commit) {
                Some(of_commit) => addresses.extend(of_commit),
                None => {
                    let id: String = commit.name_at("/id").chars().take(12).collect();
                    out.unknown.get_or_insert_with(|| {
                        format!("the addresses of commit {id} cannot be read")
                    });
                }
            }
        }
        for (i, address) in addresses.into_iter().enumerate() {
            if i >= MOST_ADDRESSES {
                out.unknown
                    .get_or_insert_with(|| "its commits have too many authors".to_owned());
                break;
            }
            let account = account_of(session, &address)?;
            out.add(account, || {
                "the address of an author or committer belongs to no public account".to_owned()
            });
        }
        Ok(out)
    }

    /// Returns the rights of an account: its effective access level in the project, including groups.
    fn rights(&self, session: &ForgeSession<'_>, account: &Account) -> Result<Rights, Failure> {
        let member = match session.get(&path(session, &["members", "all", &account.id]), &[]) {
            Err(failure) if failure.status == Some(404) => {
                return Ok(Rights::Lacks(
                    "its author is not a member of the project".to_owned(),
                ));
            }
            member => member?,
        };
        let is_it = member
            .number_at("/id")
            .is_ok_and(|id| id.to_string() == account.id);
        let is_active = is_it && member["state"] == "active";
        if !is_active
            || member["access_level"]
                .as_u64()
                .is_none_or(|level| level < MAINTAINER)
        {
            return Ok(Rights::Lacks(
                "its author does not have the role Maintainer or Owner".to_owned(),
            ));
        }
        let user = session.get(&["users", &account.id], &[])?;
        if user["bot"] != false {
            return Ok(Rights::Lacks(
                "it was not written by a person, or GitLab does not say so".to_owned(),
            ));
        }
        Ok(Rights::Maintains)
    }
}

/// Reads a reply and the first note of its discussion.
fn reply(pull: &PullRequest, note: &Value, root: &Value) -> CommentReply {
    let (written, changed) = (moment(&note["created_at"]), moment(&note["updated_at"]));
    let (begun, root_changed) = (moment(&root["created_at"]), moment(&root["updated_at"]));
    let id = note
        .number_at("/id")
        .map(|id| format!("#note_{id}"))
        .unwrap_or_default();
    CommentReply {
        author: account(note, "/author"),
        // Whether the account is a bot, only the account itself shows.
        is_person: note["author"]["state"] == "active",
        body: note["body"].as_str().unwrap_or_default().to_owned(),
        link: format!("{}{id}", pull.url),
        is_edited: written.is_none() || written != changed,
        written,
        root: FirstComment {
            author: account(root, "/author"),
            body: root["body"].as_str().unwrap_or_default().to_owned(),
            changed: changed_since(begun, root_changed),
        },
    }
}

/// Returns the addresses of author, committer and co-authors of a commit, or `None` if one of them
/// is invalid.
fn written_by(commit: &Value) -> Option<Vec<String>> {
    let message = commit["message"]
        .as_str()
        .filter(|m| m.len() < MOST_OF_A_TEXT)?;
    let mut out = co_authors(message)?;
    for pointer in ["/author_email", "/committer_email"] {
        // In angle brackets, as in a trailer.
        out.push(address_in(&format!("<{}>", commit.name_at(pointer)))?);
    }
    Some(out)
}

/// Finds the account of an address, or `None` if it is unknown.
fn account_of(session: &ForgeSession<'_>, address: &str) -> Result<Option<Account>, Failure> {
    let host = &session.host_name;
    let private = address.strip_suffix(&format!(
        "@users.noreply.{}",
        host.split(':').next().unwrap_or_default()
    ));
    if let Some((id, name)) = private.and_then(|local| local.split_once('-')) {
        let is_number = !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit());
        return Ok(is_number.then(|| Account {
            id: id.to_owned(),
            name: name.to_owned(),
        }));
    }
    let found = session.get(&["users"], &[("search", address), ("per_page", "5")])?;
    let [one] = found.as_array().map(Vec::as_slice).unwrap_or_default() else {
        return Ok(None);
    };
    let id = one.number_at("/id")?.to_string();
    let user = session.get(&["users", &id], &[])?;
    let is_its = user.name_at("/public_email").eq_ignore_ascii_case(address);
    Ok(is_its.then(|| Account {
        id,
        name: user.name_at("/username"),
    }))
}

/// Reads a time in the format of RFC 3339.
fn moment(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}
