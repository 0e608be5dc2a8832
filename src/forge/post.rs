//! Publishes a review: reads the existing comments, and carries out the plan.
//!
//! Failed writes are reported and do not change the review itself.

use super::added::Added;
use super::lines::ShownLines;
use super::mark::MarkForm;
use super::publish::{self, Comment, CommitStatus, Inline, Parts, PublishPlan, Set, Situation};
use super::{Account, Forge, ForgeKind, PullRequest, PullState, bitbucket, github, gitlab};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use crate::http::{Cause, Failure, Limits};
use crate::report::markdown::Flavor;
use crate::review::Review;
use crate::rounds::selection::Selection;
use crate::stop::Stop;

/// A review to publish.
#[derive(Clone, Copy, Debug)]
pub struct PublishRequest<'a> {
    pub review: &'a Review,
    /// Branch that it was reviewed against, and whose policy applied.
    pub base: &'a str,
    /// The lines that the pull request's page shows.
    pub lines: &'a ShownLines,
    pub parts: Parts,
    /// Whether the whole change was reviewed, and not only some files of it.
    pub whole: bool,
    /// Findings that are published.
    pub selection: &'a Selection,
    /// Command that reviews the pull request again; `None` for the default remote's.
    pub again: Option<&'a str>,
}

/// The result of publishing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// Numbers of comments on lines that are new, have a new text, or say that their finding is
    /// gone.
    pub new: usize,
    pub changed: usize,
    pub ended: usize,
    /// Number of findings without a comment on a line, because the forge rejected it or there are
    /// too many.
    pub elsewhere: usize,
    /// Whether the summary and the status were written.
    pub summary: bool,
    pub status: bool,
    /// Notes, such as conversations that could not be resolved.
    pub notes: Vec<String>,
    /// Writes that failed.
    pub failed: Vec<String>,
}

impl Posted {
    /// Returns true if nothing was written, because everything was up to date.
    pub fn is_nothing(&self) -> bool {
        self.new + self.changed + self.ended == 0 && !self.summary && !self.status
    }
}

impl Forge {
    /// Reads the pull request, and checks that its current head and base are those of the review.
    ///
    /// # Errors
    ///
    /// As [`Forge::publish`].
    fn reviewed(
        &self,
        number: u64,
        order: &PublishRequest<'_>,
        what: &str,
        stop: &Stop,
    ) -> Result<PullRequest> {
        let command = order.again.map_or_else(
            || format!("claude-reviewer review pr {number}"),
            str::to_owned,
        );
        let again = format!("review it again: {command}");
        let reviewed = order
            .review
            .source
            .head
            .as_deref()
            .and_then(ObjectId::from_hex);
        let Some(reviewed) = reviewed else {
            let message = format!(
                "{what}: the last round of the review is not of a commit of the pull request"
            );
            return Err(Error::incomplete(message).hint(again));
        };
        let pull = self.wait(stop, what, async |limits| {
            self.client.ready(&limits).await?;
            if self.client.is_keyless() {
                let failure = Failure::new(Cause::Setup, "no token");
                return Err(failure.hint(format!("set {}", self.client.token_name())));
            }
            if self.site.host.kind == ForgeKind::Gitlab {
                gitlab::may_write(self)?;
            }
            self.read_one(number, &limits).await
        })?;
        if pull.head.id != reviewed {
            let message = format!(
                "{what}: its head is {} now, and {} was reviewed",
                pull.head.id.short(),
                reviewed.short()
            );
            return Err(Error::incomplete(message).hint(again));
        }
        // Each base has its own policy: the result for one base would be published under the status
        // name of another.
        if pull.base.name != order.base {
            let message = format!(
                "{what}: it now targets {}, but was reviewed against {}",
                pull.base.name, order.base
            );
            return Err(Error::incomplete(message).hint(again));
        }
        if pull.state != PullState::Open {
            return Err(Error::incomplete(format!(
                "{what}: it is {}",
                pull.state.name()
            )));
        }
        Ok(pull)
    }

    /// Publishes a review of a pull request.
    ///
    /// # Errors
    ///
    /// Nothing was written: the forge is not reachable, the token has no write access, or the pull
    /// request has another head or base than the review. Later failures are in [`Posted::failed`].
    pub fn publish(&self, number: u64, order: &PublishRequest<'_>, stop: &Stop) -> Result<Posted> {
        // Readers of the page may not be allowed to read the tickets.
        let screened = crate::report::for_forge(order.review);
        let selection = screened_selection(order);
        let order = &PublishRequest {
            review: &screened,
            selection: &selection,
            ..*order
        };
        let what = format!("the review of pull request #{number} cannot be published");
        let pull = self.reviewed(number, order, &what, stop)?;
        let mut posted = Posted::default();
        // The status comes first and with its own time limit: no number of comments on a pull
        // request can delay it.
        if order.parts.status {
            posted = self.wait(stop, &what, async |limits| {
                let mut posting = Posting {
                    forge: self,
                    pull: &pull,
                    order,
                    limits,
                    posted,
                };
                posting.light().await;
                Ok(posting.posted)
            })?;
        }
        if order.parts.comments || order.parts.summary {
            posted = self.wait(stop, &what, async |limits| {
                let mut posting = Posting {
                    forge: self,
                    pull: &pull,
                    order,
                    limits,
                    posted,
                };
                posting.talk().await;
                Ok(posting.posted)
            })?;
        }
        Ok(posted)
    }

    /// Returns what [`Forge::publish`] would write, one line each, and what it could not write.
    /// Writes nothing.
    ///
    /// # Errors
    ///
    /// As [`Forge::publish`]; also if the comments cannot be read.
    pub fn preview(
        &self,
        number: u64,
        order: &PublishRequest<'_>,
        stop: &Stop,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let what = format!("the review of pull request #{number} cannot be published");
        let pull = self.reviewed(number, order, &what, stop)?;
        self.wait(stop, &what, async |limits| {
            let mut posting = Posting {
                forge: self,
                pull: &pull,
                order,
                limits,
                posted: Posted::default(),
            };
            let mut lines = Vec::new();
            if order.parts.comments || order.parts.summary {
                let plan = posting.plan().await?;
                posting.posted.elsewhere = plan.beyond;
                lines.extend(plan.lines());
            }
            if let Some(status) = posting.new_status().await {
                lines.push(format!(
                    "status   {}: {}",
                    publish::context(&pull.base.name),
                    status.description
                ));
            }
            Ok((lines, posting.posted.failed))
        })
    }

    fn form(&self) -> MarkForm {
        match self.site.host.kind {
            ForgeKind::Github | ForgeKind::Gitlab => MarkForm::Html,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => MarkForm::Link,
        }
    }

    pub(super) fn flavor(&self) -> Flavor {
        match self.site.host.kind {
            ForgeKind::Github => Flavor::Github,
            ForgeKind::Gitlab => Flavor::Gitlab,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => Flavor::Bitbucket,
        }
    }

    pub(super) async fn me(&self, limits: &Limits<'_>) -> std::result::Result<Account, Failure> {
        match self.site.host.kind {
            ForgeKind::Github => github::me(self, limits).await,
            ForgeKind::Gitlab => gitlab::me(self, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::me(self, limits).await
            }
        }
    }

    /// Lists the comments. The flag is true if these are all.
    async fn comments(
        &self,
        pull: &PullRequest,
        limits: &Limits<'_>,
    ) -> std::result::Result<(Vec<Comment>, bool), Failure> {
        match self.site.host.kind {
            ForgeKind::Github => github::comments(self, pull, limits).await,
            ForgeKind::Gitlab => gitlab::comments(self, pull, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::comments(self, pull, limits).await
            }
        }
    }

    /// Writes new comments on lines.
    async fn add(&self, pull: &PullRequest, inline: &[Inline], limits: &Limits<'_>) -> Added {
        match self.site.host.kind {
            ForgeKind::Github => github::add(self, pull, inline, limits).await,
            ForgeKind::Gitlab => gitlab::add(self, pull, inline, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::add(self, pull, inline, limits).await
            }
        }
    }

    /// Replaces the text of a comment.
    async fn edit(
        &self,
        pull: &PullRequest,
        comment: &Comment,
        body: &str,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            ForgeKind::Github => github::edit(self, comment, body, limits).await,
            ForgeKind::Gitlab => gitlab::edit(self, pull, comment, body, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::edit(self, pull, comment, body, limits).await
            }
        }
    }

    /// Resolves the conversation that a comment begins, or reopens it.
    async fn resolve(
        &self,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            ForgeKind::Github => github::resolve(self, comment, resolved, limits).await,
            ForgeKind::Gitlab => gitlab::resolve(self, pull, comment, resolved, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::resolve(self, pull, comment, resolved, limits).await
            }
        }
    }

    /// Writes a comment about the pull request as a whole.
    async fn summarize(
        &self,
        pull: &PullRequest,
        body: &str,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            ForgeKind::Github => github::summarize(self, pull, body, limits).await,
            ForgeKind::Gitlab => gitlab::summarize(self, pull, body, limits).await,
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::summarize(self, pull, body, limits).await
            }
        }
    }

    /// Returns the newest status of the head under this program's name.
    async fn newest_status(
        &self,
        pull: &PullRequest,
        limits: &Limits<'_>,
    ) -> std::result::Result<Option<Set>, Failure> {
        match self.site.host.kind {
            ForgeKind::Github => {
                github::newest_status(
                    self,
                    pull.head.id,
                    &publish::context(&pull.base.name),
                    limits,
                )
                .await
            }
            ForgeKind::Gitlab => {
                gitlab::newest_status(self, pull, &publish::context(&pull.base.name), limits).await
            }
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::newest_status(self, pull, &publish::context(&pull.base.name), limits)
                    .await
            }
        }
    }

    async fn set_status(
        &self,
        pull: &PullRequest,
        status: &CommitStatus,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            ForgeKind::Github => {
                github::set_status(
                    self,
                    pull.head.id,
                    &publish::context(&pull.base.name),
                    status,
                    limits,
                )
                .await
            }
            ForgeKind::Gitlab => {
                gitlab::set_status(
                    self,
                    pull,
                    &publish::context(&pull.base.name),
                    status,
                    limits,
                )
                .await
            }
            ForgeKind::BitbucketServer | ForgeKind::BitbucketCloud => {
                bitbucket::set_status(
                    self,
                    pull,
                    &publish::context(&pull.base.name),
                    status,
                    limits,
                )
                .await
            }
        }
    }
}

/// A publication in progress.
struct Posting<'a> {
    forge: &'a Forge,
    pull: &'a PullRequest,
    order: &'a PublishRequest<'a>,
    limits: Limits<'a>,
    posted: Posted,
}

impl Posting<'_> {
    /// Writes comments and summary.
    async fn talk(&mut self) {
        let order = self.order;
        let what = match (order.parts.comments, order.parts.summary) {
            (true, true) => "comments and summary",
            (true, false) => "comments on lines",
            (false, _) => "the summary",
        };
        match self.plan().await {
            Ok(plan) => self.write(plan).await,
            Err(failure) => self.fails(what, failure),
        }
    }

    /// Reads the existing comments, and plans the writes.
    async fn plan(&mut self) -> std::result::Result<PublishPlan, Failure> {
        let (forge, pull, order) = (self.forge, self.pull, self.order);
        let me = forge.me(&self.limits).await?;
        let (there, all_there) = forge.comments(pull, &self.limits).await?;
        let plan = publish::plan(&Situation {
            review: order.review,
            lines: order.lines,
            parts: order.parts,
            whole: order.whole,
            selection: order.selection,
            me: &me,
            there: &there,
            all_there,
            form: forge.form(),
            flavor: forge.flavor(),
        });
        if !all_there {
            let text = "too many comments to read them all: no new comment was posted";
            self.posted.failed.push(text.to_owned());
        }
        if order.parts.summary && !order.whole {
            self.is_partial("summary");
        }
        Ok(plan)
    }

    /// Carries out the plan, and records what failed.
    async fn write(&mut self, plan: PublishPlan) {
        let (forge, pull) = (self.forge, self.pull);
        self.posted.elsewhere = plan.beyond;
        let mut nowhere = plan.blocking_beyond;
        if !plan.inline.is_empty() {
            let added = forge.add(pull, &plan.inline, &self.limits).await;
            self.posted.new = added.placed;
            self.posted.elsewhere += added.unplaced.len();
            nowhere += added
                .unplaced
                .iter()
                .filter(|i| plan.inline.get(**i).is_some_and(|c| c.blocks))
                .count();
            if let Some(failure) = added.failure {
                let missing = plan.inline.len() - added.placed - added.unplaced.len();
                self.fails(
                    &format!("{missing} of {} comments on lines", plan.inline.len()),
                    failure,
                );
            }
        }
        for (i, edit) in plan.edits.iter().enumerate() {
            if let Err(over) = self.limits.check() {
                self.fails(
                    &format!(
                        "{} of {} changes of comments",
                        plan.edits.len() - i,
                        plan.edits.len()
                    ),
                    over,
                );
                break;
            }
            // Resolve before changing the text: if this fails, the next run tries again.
            if let Some(resolved) = edit.resolve
                && let Err(failure) = forge
                    .resolve(pull, &edit.comment, resolved, &self.limits)
                    .await
            {
                let is_denied = matches!(failure.cause, Cause::Refused | Cause::Setup);
                if !is_denied || failure.retry_after.is_some() {
                    self.fails("a conversation that is to be closed or opened", failure);
                    continue;
                }
                let note = format!(
                    "conversations are not closed by this token: {}",
                    failure.message
                );
                if !self.posted.notes.contains(&note) {
                    self.posted.notes.push(note);
                }
            }
            if let Err(failure) = forge
                .edit(pull, &edit.comment, &edit.body, &self.limits)
                .await
            {
                self.fails("a comment", failure);
                continue;
            }
            match (edit.comment.is_inline, edit.ends) {
                (false, _) => self.posted.summary = true,
                (true, true) => self.posted.ended += 1,
                (true, false) => self.posted.changed += 1,
            }
        }
        if let Some(body) = plan.summary {
            match forge.summarize(pull, &body, &self.limits).await {
                Ok(()) => self.posted.summary = true,
                Err(failure) => self.fails("the summary", failure),
            }
        }
        if nowhere > 0 && !self.order.parts.summary {
            let one = if nowhere == 1 {
                "1 finding that blocks has"
            } else {
                "findings that block have"
            };
            let count = if nowhere == 1 {
                String::new()
            } else {
                format!("{nowhere} ")
            };
            self.posted.failed.push(format!(
                "comments on lines: {count}{one} no place on the page: post the summary too, which names all"
            ));
        }
    }

    /// Sets the status unless the same one exists.
    async fn light(&mut self) {
        let Some(status) = self.new_status().await else {
            return;
        };
        match self
            .forge
            .set_status(self.pull, &status, &self.limits)
            .await
        {
            Ok(()) => self.posted.status = true,
            Err(failure) => self.fails("the status", failure),
        }
    }

    /// Returns the status to set, or `None` if it exists, is not requested, or the review is of a
    /// part of the change.
    async fn new_status(&mut self) -> Option<CommitStatus> {
        if !self.order.parts.status {
            return None;
        }
        if !self.order.whole {
            self.is_partial("status");
            return None;
        }
        let status = publish::status(self.order.review);
        // If the existing status is unknown, the same one may be set again.
        let there = self
            .forge
            .newest_status(self.pull, &self.limits)
            .await
            .ok()
            .flatten();
        if let Some(there) = there.filter(|there| there.status == status) {
            let is_ours = match &there.by {
                // Its author is unknown, so it counts as this program's: only its content is
                // compared.
                None => true,
                Some(by) => self.forge.me(&self.limits).await.is_ok_and(|me| by.is(&me)),
            };
            if is_ours {
                return None;
            }
        }
        Some(status)
    }

    fn is_partial(&mut self, name: &str) {
        let text = format!(
            "the {name}: only a part of the change was reviewed, and a {name} is about all of it"
        );
        self.posted.failed.push(text);
    }

    fn fails(&mut self, what: &str, failure: Failure) {
        let mut text = format!("{what}: {}", failure.message);
        let reads_only =
            self.pull.is_fork && failure.status == Some(403) && failure.retry_after.is_none();
        let of_forks = "for a pull request from a fork, CI gives out a token that may only read: publish from a job \
            that runs afterwards, without the fork's code";
        if let Some(hint) = failure
            .hint
            .filter(|_| !reads_only)
            .or_else(|| reads_only.then(|| of_forks.to_owned()))
        {
            text.push_str(&format!(" ({hint})"));
        }
        self.posted.failed.push(text);
    }
}

/// Returns the decisions of an order with reasons that are safe for a forge.
fn screened_selection(order: &PublishRequest<'_>) -> Selection {
    let mut selection = order.selection.clone();
    for disposition in selection.decided.values_mut() {
        disposition.reason = crate::report::reason_for_forge(&disposition.reason, order.review);
    }
    selection
}
