//! Forges: reads pull requests, and publishes reviews to them.
//!
//! Each forge has one module (`github`, …) that implements [`api`]: it names and reads pull
//! requests, lists the comments of the token's account, and writes. Its service is listed in
//! [`SERVICES`], and no code outside of its file calls its API. The plan of what to write is common
//! to all forges ([`publish`]). The operator chooses the forge and the token ([`site`]). Text from a
//! forge is untrusted: it is read within bounds, and shown through [`crate::untrusted`].

mod added;
pub mod address;
mod api;
mod bitbucket;
mod client;
pub mod commands;
mod github;
mod gitlab;
mod heed;
mod host;
mod issue;
pub mod lines;
pub mod mark;
mod pager;
mod post;
pub mod publish;
mod session;
pub mod site;
mod ticket;

pub use issue::Issues;
pub use post::{Posted, PublishRequest};
pub use site::{Hosts, Operator, Site};

use crate::diff::ObjectId;
use crate::error::{Error, Result};
use crate::http::{Cause, Failure, Limits};
use crate::request::Credential;
use crate::stop::Stop;
use crate::text::{first_bytes, one_line};
use address::ForgeProject;
use api::ForgeApi;
use client::Client;
use host::ForgeService;
use serde_json::Value;
use session::ForgeSession;
use std::time::{Duration, Instant};

/// Time limit for all requests of one call.
const TIME: Duration = Duration::from_secs(120);
/// Bytes of a title, a user name or a branch name, at most.
const MOST_OF_A_NAME: usize = 1 << 10;
/// Bytes of a description and of a commit message, at most.
const MOST_OF_A_TEXT: usize = 64 << 10;
const MOST_OF_A_MESSAGE: usize = 4 << 10;
/// Commits of a pull request and pull requests of a list, at most.
pub(crate) const MOST_COMMITS: usize = 250;
pub(crate) const MOST_PULLS: usize = 500;

/// The known services, in the order in which hosts are searched. A new forge is added here.
const SERVICES: &[&ForgeService] = &[&github::SERVICE, &gitlab::SERVICE, &bitbucket::SERVICE];

/// A pull request, or a GitLab merge request. All text in it is untrusted and truncated to its
/// bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullRequest {
    pub number: u64,
    pub title: String,
    /// Markdown; empty if the pull request has none.
    pub description: String,
    /// Address of its page.
    pub url: String,
    /// Forge's user name of its author.
    pub author: String,
    pub state: PullState,
    pub is_draft: bool,
    /// Whether the head is in another project.
    pub is_fork: bool,
    pub base: PullTip,
    pub head: PullTip,
    /// References of the base's project that hold the head, best first.
    pub head_refs: Vec<String>,
    /// Oldest first.
    pub commits: Vec<Commit>,
    /// Whether the pull request has more commits than are listed.
    pub more_commits: bool,
}

/// One end of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullTip {
    /// The branch's name, without `refs/heads/`.
    pub name: String,
    pub id: ObjectId,
    /// `None` if the project was deleted or is not visible.
    pub project: Option<ForgeProject>,
}

/// A commit of a pull request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: ObjectId,
    pub message: String,
}

/// The state of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PullState {
    Open,
    Merged,
    /// Closed without being merged.
    Closed,
}

impl PullState {
    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Closed => "closed",
        }
    }
}

/// A pull request in a list. All text in it is untrusted and truncated to its bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedPull {
    pub number: u64,
    pub title: String,
    pub url: String,
    pub author: String,
    pub is_draft: bool,
    /// Names of branches.
    pub base: String,
    pub head: String,
    /// Time of its last update, in the forge's format.
    pub updated: String,
}

/// The account that owns a token or wrote a comment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Forge's number or key of the account; empty if it has none.
    pub id: String,
    /// Name that comments show.
    pub name: String,
}

/// A project of a forge, with a client for it.
#[derive(Debug)]
pub struct Forge {
    site: Site,
    client: Client,
}

impl Forge {
    /// Prepares the client of a project. Opens no connection and runs no program.
    ///
    /// # Errors
    ///
    /// A usage error with the setting to change.
    pub fn open(site: Site, hosts: &Hosts, operator: &Operator<'_>) -> Result<Self> {
        let client = site
            .client(hosts, operator)
            .map_err(|f| error(&site, "cannot be asked", f))?;
        Ok(Self { site, client })
    }

    /// Returns the project and its forge.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Lists the open pull requests, newest first, [`MOST_PULLS`] at most. The flag is true if
    /// there are more.
    ///
    /// # Errors
    ///
    /// A usage error if the forge rejects the request; an incomplete error if a retry may succeed.
    pub fn list(&self, stop: &Stop) -> Result<(Vec<ListedPull>, bool)> {
        self.with_session(stop, "the pull requests cannot be listed", |session| {
            self.api().list(session)
        })
    }

    /// Finds the number of the open pull request whose head is the commit `id` of a fork's branch
    /// (`octocat:topic`). Returns `None` if no pull request has it any longer, and for a forge
    /// whose CI events name the number.
    ///
    /// # Errors
    ///
    /// As [`Forge::list`]; a usage error if several pull requests have that head.
    pub fn number_of_head(&self, head: &str, id: ObjectId, stop: &Stop) -> Result<Option<u64>> {
        let what = "the pull requests cannot be listed";
        let mut numbers = self.with_session(stop, what, |session| {
            self.api().numbers_of_head(session, head, id)
        })?;
        let Some(number) = numbers.pop() else {
            return Ok(None);
        };
        match numbers.as_slice() {
            [] => Ok(Some(number)),
            _ => Err(Error::usage(format!(
                "several pull requests have the head {}",
                id.short()
            ))
            .hint_person("name one: claude-reviewer review pr NUMBER")),
        }
    }

    /// Reads a pull request with its commits.
    ///
    /// # Errors
    ///
    /// As [`Forge::list`].
    pub fn read(&self, number: u64, stop: &Stop) -> Result<PullRequest> {
        let what = format!("pull request #{number} cannot be read");
        self.with_session(stop, &what, |session| self.api().read(session, number))
    }

    /// Returns the credential for the forge's git repositories: the token that requests used so
    /// far.
    pub fn credential(&self) -> Option<Credential> {
        let (token, web) = (self.client.token()?, self.site.host.web.as_str());
        let name = self.client.token_name();
        Some(self.api().credential(web, token, name))
    }

    /// Returns the implementation of the host's API.
    fn api(&self) -> &'static dyn ForgeApi {
        self.site.host.forge
    }

    /// Sends the requests of one operation, within [`TIME`]. `what` begins the message of an error.
    fn with_session<T>(
        &self,
        stop: &Stop,
        what: &str,
        ask: impl FnOnce(&ForgeSession<'_>) -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        self.with_limits(Limits::new(Instant::now() + TIME, stop), what, ask)
    }

    /// As [`Forge::with_session`], within other limits.
    fn with_limits<T>(
        &self,
        limits: Limits<'_>,
        what: &str,
        ask: impl FnOnce(&ForgeSession<'_>) -> std::result::Result<T, Failure>,
    ) -> Result<T> {
        let (project, host_name) = (&self.site.project, self.site.host.name());
        let session = ForgeSession::new(&self.client, project, host_name, limits)
            .map_err(|e| Error::incomplete("the network cannot be used").caused_by(&e))?;
        let done = ask(&session);
        session.close();
        done.map_err(|f| error(&self.site, what, f))
    }
}

/// Converts a failure to an error.
fn error(site: &Site, what: &str, failure: Failure) -> Error {
    let message = format!(
        "{what}: {} at {}: {}",
        site.project,
        site.host.name(),
        failure.message
    );
    let error = match failure.cause {
        Cause::Setup | Cause::Refused if failure.retry_after.is_none() => Error::usage(message),
        _ => Error::incomplete(message),
    };
    match failure.hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Reads texts from a forge's JSON document: untrusted, and truncated to bounds.
pub(crate) trait Reads {
    /// Returns the text at a path such as `/user/login`; empty if it is absent.
    fn text_at(&self, pointer: &str, most: usize) -> String;

    /// Returns a short text on one line, such as a name or a title.
    fn name_at(&self, pointer: &str) -> String;

    /// Returns the full ID of an object.
    fn id_at(&self, pointer: &str) -> std::result::Result<ObjectId, Failure>;

    /// Returns a positive number.
    fn number_at(&self, pointer: &str) -> std::result::Result<u64, Failure>;
}

impl Reads for Value {
    fn text_at(&self, pointer: &str, most: usize) -> String {
        let text = self
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default();
        first_bytes(text, most).to_owned()
    }

    fn name_at(&self, pointer: &str) -> String {
        let text = self.text_at(pointer, MOST_OF_A_NAME);
        one_line(&text)
    }

    fn id_at(&self, pointer: &str) -> std::result::Result<ObjectId, Failure> {
        let id = self
            .pointer(pointer)
            .and_then(Value::as_str)
            .and_then(ObjectId::from_hex);
        id.filter(|id| !id.is_null()).ok_or_else(|| lacks(pointer))
    }

    fn number_at(&self, pointer: &str) -> std::result::Result<u64, Failure> {
        self.pointer(pointer)
            .and_then(Value::as_u64)
            .filter(|n| *n > 0)
            .ok_or_else(|| lacks(pointer))
    }
}

/// Returns the failure for an answer without the value at a path.
pub(crate) fn lacks(pointer: &str) -> Failure {
    let name = pointer.trim_start_matches('/').replace('/', ".");
    Failure::new(
        Cause::Malformed,
        format!("the answer lacks {name}, or has something else there"),
    )
}

/// Returns true if a text contains one of these words, in any case. A word is a run of letters and
/// digits.
pub(crate) fn speaks_of(text: &str, words: &[&str]) -> bool {
    let mut said = text.split(|c: char| !c.is_ascii_alphanumeric());
    said.any(|w| words.iter().any(|word| w.eq_ignore_ascii_case(word)))
}
