//! What this program asks of a forge. Each forge has one implementation, in a file of its own.
//!
//! The three traits are one interface, split by the part of the program that uses it:
//! [`ForgeApi`] names and reads pull requests, [`ReviewWriter`] publishes reviews
//! ([`super::post`]), and [`ReplyReader`] reads what is needed to judge replies
//! ([`super::heed`]). All requests go through a [`ForgeSession`], which waits for the answer.

use super::added::Added;
use super::address::{ForgeProject, Scheme};
use super::commands::{Authors, CommentReply, Rights};
use super::publish::{Comment, CommitStatus, ExistingStatus, InlineComment};
use super::session::ForgeSession;
use super::{Account, ListedPull, PullRequest};
use crate::context::Ticket;
use crate::diff::ObjectId;
use crate::http::Failure;
use crate::request::Credential;
use jiff::Timestamp;
use secrecy::SecretString;

/// Names the projects and pull requests of a forge, and reads them.
pub(super) trait ForgeApi: ReviewWriter + ReplyReader + std::fmt::Debug + Sync {
    /// Returns the project with these path parts, or `None` if the forge has no such projects.
    fn project(&self, parts: Vec<String>) -> Option<ForgeProject> {
        ForgeProject::pair(parts)
    }

    /// Returns the project of a remote. `parts` is the path below the host, without `.git`.
    fn project_of_remote(&self, _scheme: Scheme, parts: Vec<String>) -> Option<ForgeProject> {
        self.project(parts)
    }

    /// Returns project and number of a pull request's page. `parts` is the path below the host.
    fn pull_of_page(&self, parts: &[&str]) -> Option<(ForgeProject, u64)>;

    /// Returns the path of a project's repository below the host, for `git clone`.
    fn repository_path(&self, project: &ForgeProject) -> String {
        format!("{project}.git")
    }

    /// Returns the credential with which git fetches from the forge. `web` is the address of its
    /// pages. `token_name` is the setting that the token comes from.
    fn credential(&self, web: &str, token: &SecretString, token_name: &str) -> Credential;

    /// Lists the open pull requests, newest first, [`super::MOST_PULLS`] at most. The flag is true
    /// if there are more.
    fn list(&self, session: &ForgeSession<'_>) -> Result<(Vec<ListedPull>, bool), Failure>;

    /// Reads a pull request with its commits.
    fn read(&self, session: &ForgeSession<'_>, number: u64) -> Result<PullRequest, Failure>;

    /// Returns the numbers of the open pull requests whose head is commit `id`, on branch `head`
    /// (`OWNER:BRANCH`) of a fork. A forge whose CI events name the number returns none.
    fn numbers_of_head(
        &self,
        _session: &ForgeSession<'_>,
        _head: &str,
        _id: ObjectId,
    ) -> Result<Vec<u64>, Failure> {
        Ok(Vec::new())
    }

    /// Returns true if projects of the forge have issues.
    fn has_issues(&self) -> bool {
        true
    }

    /// Reads an issue. Returns `None` if the number is that of a pull request.
    fn issue(&self, session: &ForgeSession<'_>, number: u64) -> Result<Option<Ticket>, Failure>;
}

/// Publishes a review: comments, a summary, and the status of a commit.
pub(super) trait ReviewWriter {
    /// Rejects a token that has no write access, if that is known without a request.
    fn check_may_write(&self, _session: &ForgeSession<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Returns the account of the token, by which own comments are recognized.
    fn token_account(&self, session: &ForgeSession<'_>) -> Result<Account, Failure>;

    /// Lists the first comments of conversations, on lines and about the pull request as a whole.
    /// The flag is false if there are more.
    fn comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<Comment>, bool), Failure>;

    /// Writes new comments on lines, until a failure that is not about the position of a comment.
    fn add_comments(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        inline: &[InlineComment],
    ) -> Added;

    /// Replaces the text of a comment.
    fn edit_comment(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        body: &str,
    ) -> Result<(), Failure>;

    /// Resolves the conversation that a comment begins, or reopens it if `resolved` is false. Does
    /// nothing if the forge has no conversation for the comment.
    fn resolve_conversation(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
    ) -> Result<(), Failure>;

    /// Writes a comment about the pull request as a whole.
    fn write_summary(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        body: &str,
    ) -> Result<(), Failure>;

    /// Returns the newest status of the head commit under a name, with the account that set it.
    fn newest_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
    ) -> Result<Option<ExistingStatus>, Failure>;

    /// Sets the status of the head commit under a name. Setting it twice updates the same status.
    fn set_status(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
        context: &str,
        status: &CommitStatus,
    ) -> Result<(), Failure>;
}

/// Reads replies to comments on lines, and what decides whether a reply may waive a finding.
pub(super) trait ReplyReader {
    /// Lists the replies in conversations about lines. The flag is false if there are more.
    fn replies(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<(Vec<CommentReply>, bool), Failure>;

    /// Returns the time when the head was pushed, or `None` if the forge does not report it.
    fn push_time(
        &self,
        session: &ForgeSession<'_>,
        pull: &PullRequest,
    ) -> Result<Option<Timestamp>, Failure>;

    /// Returns the accounts that wrote the change, or the reason why they are unknown.
    fn authors(&self, session: &ForgeSession<'_>, pull: &PullRequest) -> Result<Authors, Failure>;

    /// Returns whether an account maintains the project.
    fn rights(&self, session: &ForgeSession<'_>, account: &Account) -> Result<Rights, Failure>;
}
