//! Publishes a review: asks what is there, and does what is planned.
//!
//! What cannot be written is told and changes nothing of the review itself.

use super::lines::Lines;
use super::mark::Form;
use super::publish::{self, Comment, Inline, Parts, Plan, Situation, Status};
use super::{Account, Forge, Kind, PullRequest, State, bitbucket, github, gitlab};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use crate::http::{Cause, Failure, Limits};
use crate::report::markdown::Flavor;
use crate::review::Review;
use crate::stop::Stop;

/// A review to be published.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub review: &'a Review,
    /// The lines that the pull request's page shows.
    pub lines: &'a Lines,
    pub parts: Parts,
    /// The whole change was reviewed, and not some files of it.
    pub whole: bool,
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Posted {
    /// Comments on lines that are new, say something else now, or say that their finding is gone.
    pub new: usize,
    pub changed: usize,
    pub ended: usize,
    /// Findings that the forge could put on no line, and those that are too many.
    pub elsewhere: usize,
    /// The summary, or the status, is another one now.
    pub summary: bool,
    pub status: bool,
    /// What is worth telling: conversations that could not be closed.
    pub notes: Vec<String>,
    /// What could not be written.
    pub failed: Vec<String>,
}

impl Posted {
    /// Tells whether nothing was written, because all of it is there already.
    pub fn is_nothing(&self) -> bool {
        self.new + self.changed + self.ended == 0 && !self.summary && !self.status
    }
}

impl Forge {
    /// Publishes a review of a pull request.
    ///
    /// # Errors
    ///
    /// Nothing was written: the forge cannot be asked, the token cannot write at all, or the pull request's head is
    /// not what was reviewed. What fails later is in [`Posted::failed`].
    pub fn publish(&self, number: u64, order: &Order<'_>, stop: &Stop) -> Result<Posted> {
        let what = format!("the review of pull request #{number} cannot be published");
        let reviewed = order.review.source.head.as_deref().and_then(ObjectId::from_hex);
        let Some(reviewed) = reviewed else {
            return Err(Error::incomplete(format!("{what}: what was reviewed is no commit")));
        };
        let pull = self.wait(stop, &what, async |limits| {
            self.client.ready(&limits).await?;
            if self.client.is_keyless() {
                let failure = Failure::new(Cause::Setup, "there is no token");
                return Err(failure.hint(format!("set {}", self.client.token_name())));
            }
            self.read_one(number, &limits).await
        })?;
        if pull.head.id != reviewed {
            let message =
                format!("{what}: its head is {} now, and {} was reviewed", pull.head.id.short(), reviewed.short());
            return Err(Error::incomplete(message).hint("review it again"));
        }
        if pull.state != State::Open {
            return Err(Error::incomplete(format!("{what}: it is {}", pull.state.name())));
        }
        self.wait(stop, &what, async |limits| {
            let mut posting = Posting { forge: self, pull: &pull, order, limits, posted: Posted::default() };
            posting.run().await?;
            Ok(posting.posted)
        })
    }

    fn form(&self) -> Form {
        match self.site.host.kind {
            Kind::Github | Kind::Gitlab => Form::Html,
            Kind::BitbucketServer | Kind::BitbucketCloud => Form::Link,
        }
    }

    fn flavor(&self) -> Flavor {
        match self.site.host.kind {
            Kind::Github => Flavor::Github,
            Kind::Gitlab => Flavor::Gitlab,
            Kind::BitbucketServer | Kind::BitbucketCloud => Flavor::Bitbucket,
        }
    }

    async fn me(&self, limits: &Limits<'_>) -> std::result::Result<Account, Failure> {
        match self.site.host.kind {
            Kind::Github => github::me(self, limits).await,
            Kind::Gitlab => gitlab::me(self, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => bitbucket::me(self, limits).await,
        }
    }

    /// Lists the comments, and tells whether these are all.
    async fn comments(
        &self,
        pull: &PullRequest,
        limits: &Limits<'_>,
    ) -> std::result::Result<(Vec<Comment>, bool), Failure> {
        match self.site.host.kind {
            Kind::Github => github::comments(self, pull, limits).await,
            Kind::Gitlab => gitlab::comments(self, pull, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => bitbucket::comments(self, pull, limits).await,
        }
    }

    /// Writes new comments on lines; returns the places in `inline` of those that could not be put there.
    async fn add(
        &self,
        pull: &PullRequest,
        inline: &[Inline],
        limits: &Limits<'_>,
    ) -> std::result::Result<Vec<usize>, Failure> {
        match self.site.host.kind {
            Kind::Github => github::add(self, pull, inline, limits).await,
            Kind::Gitlab => gitlab::add(self, pull, inline, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => bitbucket::add(self, pull, inline, limits).await,
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
            Kind::Github => github::edit(self, comment, body, limits).await,
            Kind::Gitlab => gitlab::edit(self, pull, comment, body, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => bitbucket::edit(self, pull, comment, body, limits).await,
        }
    }

    /// Closes the conversation that a comment begins, or opens it again.
    async fn resolve(
        &self,
        pull: &PullRequest,
        comment: &Comment,
        resolved: bool,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            Kind::Github => github::resolve(self, comment, resolved, limits).await,
            Kind::Gitlab => gitlab::resolve(self, pull, comment, resolved, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => {
                bitbucket::resolve(self, pull, comment, resolved, limits).await
            }
        }
    }

    /// Writes a comment about the pull request as a whole.
    async fn summarize(&self, pull: &PullRequest, body: &str, limits: &Limits<'_>) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            Kind::Github => github::summarize(self, pull, body, limits).await,
            Kind::Gitlab => gitlab::summarize(self, pull, body, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => bitbucket::summarize(self, pull, body, limits).await,
        }
    }

    /// Returns the newest status of the head under our name, with who set it.
    async fn newest_status(
        &self,
        pull: &PullRequest,
        limits: &Limits<'_>,
    ) -> std::result::Result<Option<(Account, Status)>, Failure> {
        match self.site.host.kind {
            Kind::Github => github::newest_status(self, pull.head.id, &publish::context(&pull.base.name), limits).await,
            Kind::Gitlab => gitlab::newest_status(self, pull, &publish::context(&pull.base.name), limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => {
                bitbucket::newest_status(self, pull, &publish::context(&pull.base.name), limits).await
            }
        }
    }

    async fn set_status(
        &self,
        pull: &PullRequest,
        status: &Status,
        limits: &Limits<'_>,
    ) -> std::result::Result<(), Failure> {
        match self.site.host.kind {
            Kind::Github => {
                github::set_status(self, pull.head.id, &publish::context(&pull.base.name), status, limits).await
            }
            Kind::Gitlab => gitlab::set_status(self, pull, &publish::context(&pull.base.name), status, limits).await,
            Kind::BitbucketServer | Kind::BitbucketCloud => {
                bitbucket::set_status(self, pull, &publish::context(&pull.base.name), status, limits).await
            }
        }
    }
}

/// A publication that is under way.
struct Posting<'a> {
    forge: &'a Forge,
    pull: &'a PullRequest,
    order: &'a Order<'a>,
    limits: Limits<'a>,
    posted: Posted,
}

impl Posting<'_> {
    async fn run(&mut self) -> std::result::Result<(), Failure> {
        let (forge, pull, order) = (self.forge, self.pull, self.order);
        let me = forge.me(&self.limits).await?;
        if order.parts.comments || order.parts.summary {
            let (there, all_there) = forge.comments(pull, &self.limits).await?;
            let plan = publish::plan(&Situation {
                review: order.review,
                lines: order.lines,
                parts: order.parts,
                whole: order.whole,
                me: &me,
                there: &there,
                all_there,
                form: forge.form(),
                flavor: forge.flavor(),
            });
            if !all_there {
                self.posted
                    .failed
                    .push("there are too many comments to look through: nothing new is written".to_owned());
            }
            self.write(plan).await;
        }
        if order.parts.status && !self.is_over() {
            self.light(&me).await;
        }
        Ok(())
    }

    /// Does what is planned. A failure that all further requests would meet ends it.
    async fn write(&mut self, plan: Plan) {
        let (forge, pull) = (self.forge, self.pull);
        self.posted.elsewhere = plan.beyond;
        if !plan.inline.is_empty() {
            match forge.add(pull, &plan.inline, &self.limits).await {
                Ok(unplaced) => {
                    self.posted.new = plan.inline.len() - unplaced.len();
                    self.posted.elsewhere += unplaced.len();
                }
                Err(failure) => self.fails("comments on lines", failure),
            }
        }
        for edit in &plan.edits {
            if self.is_over() {
                return;
            }
            if let Err(failure) = forge.edit(pull, &edit.comment, &edit.body, &self.limits).await {
                self.fails("a comment", failure);
                continue;
            }
            match (edit.comment.is_inline, edit.ends) {
                (false, _) => self.posted.summary = true,
                (true, true) => self.posted.ended += 1,
                (true, false) => self.posted.changed += 1,
            }
            let Some(resolved) = edit.resolve else { continue };
            if let Err(failure) = forge.resolve(pull, &edit.comment, resolved, &self.limits).await {
                let note = format!("conversations are not closed by this token: {}", failure.message);
                if !self.posted.notes.contains(&note) {
                    self.posted.notes.push(note);
                }
            }
        }
        if let Some(body) = plan.summary.filter(|_| !self.is_over()) {
            match forge.summarize(pull, &body, &self.limits).await {
                Ok(()) => self.posted.summary = true,
                Err(failure) => self.fails("the summary", failure),
            }
        }
    }

    /// Sets the status where it is another one, or another's.
    async fn light(&mut self, me: &Account) {
        if !self.order.whole {
            let text = "the status: only a part of the change was reviewed, and a status is about all of it";
            self.posted.failed.push(text.to_owned());
            return;
        }
        let status = publish::status(self.order.review);
        // Not to know what is there costs a status that says the same again.
        let there = self.forge.newest_status(self.pull, &self.limits).await.ok().flatten();
        if there.is_some_and(|(by, there)| by.is(me) && there == status) {
            return;
        }
        match self.forge.set_status(self.pull, &status, &self.limits).await {
            Ok(()) => self.posted.status = true,
            Err(failure) => self.fails("the status", failure),
        }
    }

    fn fails(&mut self, what: &str, failure: Failure) {
        let mut text = format!("{what}: {}", failure.message);
        let reads_only = self.pull.is_fork && failure.status == Some(403) && failure.retry_after.is_none();
        let of_forks = "for a pull request from a fork, CI gives out a token that may only read: publish from a job \
            that runs afterwards, without the fork's code";
        if let Some(hint) = failure.hint.filter(|_| !reads_only).or_else(|| reads_only.then(|| of_forks.to_owned())) {
            text.push_str(&format!(" ({hint})"));
        }
        self.posted.failed.push(text);
    }

    /// Tells whether there is no time left, or the run was ended.
    fn is_over(&self) -> bool {
        self.limits.check().is_err()
    }
}
