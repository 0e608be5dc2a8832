//! Determines the event that started a CI run, and the two commits of the change to review.
//!
//! All of this comes from environment variables, and on GitHub from the event file; the repository
//! is not read. Names and texts are the author's: they are untrusted data of bounded size, and get
//! into a prompt only inside fences.

mod github;
mod gitlab;
mod others;

use crate::bounded;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::request::{Checkout, Credential, End, Ends, Fetching};
use crate::untrusted;
use std::path::Path;

/// Bytes of an event file, at most.
const MAX_EVENT: u64 = 16 << 20;
/// Bytes of a title that are kept, at most.
const MAX_TITLE: usize = 1 << 10;
/// Bytes of a description that are kept, at most.
const MAX_DESCRIPTION: usize = 16 << 10;
/// Bytes of a branch name, at most.
const MAX_NAME: usize = 1 << 10;

/// Digits of an abbreviated object ID, at least, as git writes it.
const SHORTEST: usize = 7;

/// The command with the options that replace the information of an event.
const FLAGS: &str = "claude-reviewer review branch HEAD --base REV";

/// A CI system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    GitHub,
    GitLab,
    Bitbucket,
    Azure,
    Jenkins,
}

impl System {
    /// Returns the display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Bitbucket => "Bitbucket",
            Self::Azure => "Azure Pipelines",
            Self::Jenkins => "Jenkins",
        }
    }
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A pull or merge request.
    Request,
    /// A merge queue.
    Queue,
    Push,
    Tag,
    /// A branch or tag was deleted.
    Deleted,
    Schedule,
    /// A person or another program started the job.
    Manual,
    /// Another workflow ended and triggered this one.
    Follow,
}

/// An event, with its change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub system: System,
    pub kind: EventKind,
    /// Display name: `pull request 12`.
    pub label: String,
    pub change: EventChange,
    /// Number of the pull request.
    pub number: Option<u64>,
    /// Untrusted, at most 1 KiB.
    pub title: Option<String>,
    /// Untrusted, at most 16 KiB.
    pub description: Option<String>,
    /// Target branch of the change.
    pub target: Option<String>,
    /// Source branch of a pull request.
    pub branch: Option<String>,
    /// Owner and branch of a fork, in the form for a search of pull requests on GitHub:
    /// `octocat:topic`. Only if the event has no number.
    pub fork_head: Option<String>,
    /// True if the change comes from another repository; `None` if that is unknown.
    pub is_fork: Option<bool>,
    pub checkout: Checkout,
    /// Credential for the forge, if the job has one.
    pub credential: Option<Credential>,
}

/// The two ends of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventChange {
    Between {
        head: End,
        base: End,
        /// Substitute for a `base` that is gone.
        instead: Option<End>,
        /// Reason why there may be no commits between the ends, if the event implies it.
        may_be_empty: Option<String>,
    },
    /// No change: a branch of this name was deleted.
    Deleted(String),
    /// The event names no change, for this reason.
    Unknown(String),
}

impl EventChange {
    /// Returns the change of a branch or tag against the default branch.
    fn topic(head: End, trunk: String, is_push: bool) -> Self {
        let may_be_empty =
            is_push.then(|| "the pushed commits are on the default branch already".to_owned());
        Self::Between {
            head,
            base: End::Branch(trunk),
            instead: None,
            may_be_empty,
        }
    }
}

/// Detects the event that started the run; `None` outside of known CI systems.
///
/// # Errors
/// Usage: the event file cannot be read or is invalid.
pub fn detect(env: &Env) -> Result<Option<Event>> {
    if env.var("GITHUB_ACTIONS").is_some() {
        let Some(path) = env.os("GITHUB_EVENT_PATH") else {
            return Err(unnamed(
                "GITHUB_ACTIONS is set and GITHUB_EVENT_PATH is not",
            ));
        };
        let path = env.dir.join(path);
        return github_event(env, &read(&path)?, &path).map(Some);
    }
    if env.var("GITLAB_CI").is_some() {
        return gitlab::event(env).map(Some);
    }
    if env.var("BITBUCKET_BUILD_NUMBER").is_some() {
        return others::bitbucket(env).map(Some);
    }
    if env.var("TF_BUILD").is_some() {
        return others::azure(env).map(Some);
    }
    if env.var("JENKINS_URL").is_some() {
        return others::jenkins(env).map(Some);
    }
    Ok(None)
}

/// Parses the payload of a GitHub event. `path` is the name of the file in messages.
///
/// # Errors
/// Usage: the payload is not JSON, or lacks a field that `GITHUB_EVENT_NAME` implies.
pub fn github_event(env: &Env, payload: &[u8], path: &Path) -> Result<Event> {
    github::event(env, payload, path)
}

/// Returns the error that the change is unknown, with the command that names it.
pub fn unnamed(why: &str) -> Error {
    Error::usage(format!("cannot determine the change to review: {why}")).hint(FLAGS)
}

impl Event {
    fn new(system: System, kind: EventKind, label: impl Into<String>, change: EventChange) -> Self {
        Self {
            system,
            kind,
            label: label.into(),
            change,
            number: None,
            title: None,
            description: None,
            target: None,
            branch: None,
            fork_head: None,
            is_fork: None,
            checkout: Checkout::Own,
            credential: None,
        }
    }

    /// Returns the ends of the change. The ends that the caller names take precedence.
    ///
    /// # Errors
    /// Usage: neither the event nor the caller names them.
    pub fn ends(&self, head: Option<&str>, base: Option<&str>, fetching: Fetching) -> Result<Ends> {
        let label = format!("{} ({})", self.label, self.system.name());
        let (head, base, instead, may_be_empty) = match (&self.change, head, base) {
            (_, Some(head), Some(base)) => (rev(head), rev(base), None, None),
            (EventChange::Between { base, instead, .. }, Some(head), None) => {
                (rev(head), base.clone(), instead.clone(), None)
            }
            (EventChange::Between { head, .. }, None, Some(base)) => {
                (head.clone(), rev(base), None, None)
            }
            (
                EventChange::Between {
                    head,
                    base,
                    instead,
                    may_be_empty,
                },
                None,
                None,
            ) => (
                head.clone(),
                base.clone(),
                instead.clone(),
                may_be_empty.clone(),
            ),
            // Such a job has only the checked-out commit.
            (_, None, Some(base)) => (rev("HEAD"), rev(base), None, None),
            (EventChange::Unknown(why), _, None) => return Err(unnamed(why)),
            (EventChange::Deleted(name), _, None) => {
                return Err(unnamed(&format!("{name} is deleted")));
            }
        };
        Ok(Ends {
            is_pull: self.kind == EventKind::Request,
            label,
            head,
            base,
            instead,
            may_be_empty,
            remote: "origin".to_owned(),
            fetching,
            credential: self.credential.clone(),
            checkout: self.checkout,
        })
    }

    /// Returns title and description as one untrusted text.
    pub fn summary(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.title, &self.description]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// Returns the end of a change that the caller names.
fn rev(text: &str) -> End {
    End::Rev(text.to_owned())
}

/// Reads an event file.
fn read(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let meta = std::fs::metadata(path).map_err(|e| unreadable(path, &e))?;
    if !meta.is_file() {
        return Err(Error::usage(format!("the event {shown} is not a file")).hint(FLAGS));
    }
    let read = std::fs::File::open(path).and_then(|file| bounded::whole(file, MAX_EVENT));
    read.map_err(|e| unreadable(path, &e))?.ok_or_else(|| {
        Error::usage(format!(
            "the event {shown} is larger than {} MiB",
            MAX_EVENT >> 20
        ))
        .hint(FLAGS)
    })
}

/// Returns the error for an event file that cannot be read.
fn unreadable(path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("the event {} cannot be read", path.display()))
        .caused_by(e)
        .hint(FLAGS)
}

/// Returns a full object ID that is not all zeros.
fn id(text: &str) -> Option<String> {
    let is_hex = matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit());
    (is_hex && text.bytes().any(|b| b != b'0')).then(|| text.to_ascii_lowercase())
}

/// Returns an abbreviated object ID that is long enough to be unique.
fn short_id(text: &str) -> Option<String> {
    let is_short =
        (SHORTEST..64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    (is_short && text.bytes().any(|b| b != b'0')).then(|| text.to_ascii_lowercase())
}

/// Returns an end by its ID, and the reference that contains it.
fn at(id: String, under: Option<String>) -> End {
    End::Id { id, under }
}

/// Returns the short name of a branch, from its full or short name.
fn branch(text: &str) -> Option<String> {
    let name = text.strip_prefix("refs/heads/").unwrap_or(text);
    let fits = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('-')
        && !name.starts_with("refs/")
        && !name.contains("..")
        && !name
            .chars()
            .any(|c| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c));
    fits.then(|| name.to_owned())
}

/// Returns the start of a text; `None` if the text is blank.
fn capped(text: &str, most: usize) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| untrusted::clipped(text, most).into_owned())
}

#[cfg(test)]
mod tests;
