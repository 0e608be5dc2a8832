//! Publishes a review: reads the existing comments, plans the writes ([`super::publish`]), and
//! carries them out.
//!
//! Failed writes are reported in [`Posted::failed`] and do not change the review itself.

use super::api::ForgeApi;
use super::lines::ShownLines;
use super::mark::MarkForm;
use super::publish::{
    self, CommentEdit, CommitStatus, InlineComment, Parts, PublishPlan, Situation,
};
use super::session::ForgeSession;
use super::{Forge, PullRequest, PullState};
use crate::diff::ObjectId;
use crate::error::{Error, Result};
use crate::http::{Cause, Failure};
use crate::report::{self, markdown::Flavor};
use crate::review::Review;
use crate::rounds::selection::Selection;
use crate::stop::Stop;
use std::borrow::Cow;

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
    /// Number of findings without a comment on a line: the forge rejected it, there are too many,
    /// or the page shows none of their lines.
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
    /// Returns true if nothing was written: everything was up to date, or failed.
    pub fn is_nothing(&self) -> bool {
        self.new + self.changed + self.ended == 0 && !self.summary && !self.status
    }
}

impl Forge {
    /// Publishes a review of a pull request.
    ///
    /// # Errors
    ///
    /// The forge is not reachable, the token has no write access, or the pull request is not open
    /// or has another head or base than the review: nothing was written. If the network cannot be
    /// used for the comments, the status may have been written before. Other failures of writes are
    /// in [`Posted::failed`].
    pub fn publish(
        &self,
        number: u64,
        request: &PublishRequest<'_>,
        stop: &Stop,
    ) -> Result<Posted> {
        let screened = Screened::new(request);
        let request = &screened.applied_to(request);
        let what = format!("the review of pull request #{number} cannot be published");
        let pull = self.reviewed_pull(number, request, &what, stop)?;
        let mut posted = Posted::default();
        // The status comes first and with its own time limit: no number of comments on a pull
        // request can delay it.
        if request.parts.status {
            posted = self.with_session(stop, &what, |session| {
                let mut posting = self.posting(session, &pull, request, posted);
                posting.publish_status();
                Ok(posting.posted)
            })?;
        }
        if request.parts.comments || request.parts.summary {
            posted = self.with_session(stop, &what, |session| {
                let mut posting = self.posting(session, &pull, request, posted);
                posting.publish_comments();
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
        request: &PublishRequest<'_>,
        stop: &Stop,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let screened = Screened::new(request);
        let request = &screened.applied_to(request);
        let what = format!("the review of pull request #{number} cannot be published");
        let pull = self.reviewed_pull(number, request, &what, stop)?;
        self.with_session(stop, &what, |session| {
            let mut posting = self.posting(session, &pull, request, Posted::default());
            let mut lines = Vec::new();
            if request.parts.comments || request.parts.summary {
                let plan = posting.plan()?;
                lines.extend(plan.lines());
            }
            if let Some(status) = posting.new_status() {
                lines.push(format!(
                    "status   {}: {}",
                    posting.status_name(),
                    status.description
                ));
            }
            Ok((lines, posting.posted.failed))
        })
    }

    /// Reads the pull request, and checks that it is open and that its current head and base are
    /// those of the review.
    ///
    /// # Errors
    ///
    /// As [`Forge::publish`].
    fn reviewed_pull(
        &self,
        number: u64,
        request: &PublishRequest<'_>,
        what: &str,
        stop: &Stop,
    ) -> Result<PullRequest> {
        let command = request.again.map_or_else(
            || format!("claude-reviewer review pr {number}"),
            str::to_owned,
        );
        let again = format!("review it again: {command}");
        let reviewed = request.review.source.head.as_deref();
        let Some(reviewed) = reviewed.and_then(ObjectId::from_hex) else {
            let message = format!(
                "{what}: the last round of the review is not of a commit of the pull request"
            );
            return Err(Error::incomplete(message).hint(again));
        };
        let pull = self.with_session(stop, what, |session| {
            session.ready()?;
            if session.is_keyless() {
                let failure = Failure::new(Cause::Setup, "no token");
                return Err(failure.hint(format!("set {}", session.token_name())));
            }
            self.api().check_may_write(session)?;
            self.api().read(session, number)
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
        if pull.base.name != request.base {
            let message = format!(
                "{what}: it now targets {}, but was reviewed against {}",
                pull.base.name, request.base
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

    /// Returns the state of a publication that has `posted` so far.
    fn posting<'a>(
        &self,
        session: &'a ForgeSession<'a>,
        pull: &'a PullRequest,
        request: &'a PublishRequest<'a>,
        posted: Posted,
    ) -> Posting<'a> {
        Posting {
            api: self.api(),
            session,
            pull,
            request,
            flavor: self.site.host.service.flavor,
            form: self.site.host.service.mark_form,
            posted,
        }
    }
}

/// A publication in progress.
struct Posting<'a> {
    api: &'static dyn ForgeApi,
    session: &'a ForgeSession<'a>,
    pull: &'a PullRequest,
    request: &'a PublishRequest<'a>,
    /// Markdown flavor of the forge, and its notation for marks.
    flavor: Flavor,
    form: MarkForm,
    /// What was written so far, and what failed.
    posted: Posted,
}

impl Posting<'_> {
    /// Writes the comments and the summary that are requested.
    fn publish_comments(&mut self) {
        let parts = self.request.parts;
        let what = match (parts.comments, parts.summary) {
            (true, true) => "comments and summary",
            (true, false) => "comments on lines",
            (false, _) => "the summary",
        };
        match self.plan() {
            Ok(plan) => self.carry_out(plan),
            Err(failure) => self.record_failure(what, failure),
        }
    }

    /// Reads the existing comments, and plans the writes.
    fn plan(&mut self) -> std::result::Result<PublishPlan, Failure> {
        let request = self.request;
        let own_account = self.api.token_account(self.session)?;
        let (existing, has_all_comments) = self.api.comments(self.session, self.pull)?;
        let plan = publish::plan(&Situation {
            review: request.review,
            lines: request.lines,
            parts: request.parts,
            whole: request.whole,
            selection: request.selection,
            own_account: &own_account,
            existing: &existing,
            has_all_comments,
            form: self.form,
            flavor: self.flavor,
        });
        if !has_all_comments {
            let text = "too many comments to read them all: no new comment was posted";
            self.posted.failed.push(text.to_owned());
        }
        if request.parts.summary && !request.whole {
            self.record_partial("summary");
        }
        Ok(plan)
    }

    /// Carries out the plan, and records what failed.
    fn carry_out(&mut self, plan: PublishPlan) {
        self.posted.elsewhere = plan.beyond;
        let blocking_elsewhere = plan.blocking_beyond + self.add_comments(&plan.inline);
        for (i, edit) in plan.edits.iter().enumerate() {
            if let Err(over) = self.session.check() {
                let (left, all) = (plan.edits.len() - i, plan.edits.len());
                self.record_failure(&format!("{left} of {all} changes of comments"), over);
                break;
            }
            self.edit_comment(edit);
        }
        if let Some(body) = plan.summary {
            match self.api.write_summary(self.session, self.pull, &body) {
                Ok(()) => self.posted.summary = true,
                Err(failure) => self.record_failure("the summary", failure),
            }
        }
        if blocking_elsewhere > 0 && !self.request.parts.summary {
            self.record_unplaced(blocking_elsewhere);
        }
    }

    /// Writes new comments on lines. Returns the number of findings that block and whose comment
    /// the forge rejected for its position.
    fn add_comments(&mut self, comments: &[InlineComment]) -> usize {
        if comments.is_empty() {
            return 0;
        }
        let added = self.api.add_comments(self.session, self.pull, comments);
        self.posted.new = added.placed;
        self.posted.elsewhere += added.unplaced.len();
        if let Some(failure) = added.failure {
            let missing = comments.len() - added.placed - added.unplaced.len();
            let what = format!("{missing} of {} comments on lines", comments.len());
            self.record_failure(&what, failure);
        }
        let unplaced = added.unplaced.iter().filter_map(|i| comments.get(*i));
        unplaced.filter(|comment| comment.blocks).count()
    }

    /// Gives a comment another text, and resolves or reopens its conversation.
    fn edit_comment(&mut self, edit: &CommentEdit) {
        // Resolve before changing the text: if this fails, the next run tries again.
        if let Some(resolved) = edit.resolve
            && let Err(failure) =
                self.api
                    .resolve_conversation(self.session, self.pull, &edit.comment, resolved)
        {
            let is_denied = matches!(failure.cause, Cause::Refused | Cause::Setup);
            if !is_denied || failure.retry_after.is_some() {
                self.record_failure("a conversation that is to be closed or opened", failure);
                return;
            }
            let note = format!(
                "conversations are not closed by this token: {}",
                failure.message
            );
            if !self.posted.notes.contains(&note) {
                self.posted.notes.push(note);
            }
        }
        let edited = self
            .api
            .edit_comment(self.session, self.pull, &edit.comment, &edit.body);
        match edited {
            Err(failure) => self.record_failure("a comment", failure),
            Ok(()) if !edit.comment.is_inline => self.posted.summary = true,
            Ok(()) if edit.ends => self.posted.ended += 1,
            Ok(()) => self.posted.changed += 1,
        }
    }

    /// Sets the status unless the same one exists.
    fn publish_status(&mut self) {
        let Some(status) = self.new_status() else {
            return;
        };
        let name = self.status_name();
        match self.api.set_status(self.session, self.pull, &name, &status) {
            Ok(()) => self.posted.status = true,
            Err(failure) => self.record_failure("the status", failure),
        }
    }

    /// Returns the name of the status for the base of the pull request.
    fn status_name(&self) -> String {
        publish::context(&self.pull.base.name)
    }

    /// Returns the status to set, or `None` if it exists, is not requested, or the review is of a
    /// part of the change.
    fn new_status(&mut self) -> Option<CommitStatus> {
        if !self.request.parts.status {
            return None;
        }
        if !self.request.whole {
            self.record_partial("status");
            return None;
        }
        let status = publish::status(self.request.review);
        let existing = self
            .api
            .newest_status(self.session, self.pull, &self.status_name());
        // If the existing status is unknown, the same one may be set again.
        let Some(existing) = existing.ok().flatten().filter(|e| e.status == status) else {
            return Some(status);
        };
        let is_own = match &existing.by {
            // Its author is unknown, so it counts as this program's: only its content is compared.
            None => true,
            Some(by) => {
                let own_account = self.api.token_account(self.session);
                own_account.is_ok_and(|account| by.is(&account))
            }
        };
        (!is_own).then_some(status)
    }

    /// Records that a part about the whole change was not written, since only a part of the change
    /// was reviewed.
    fn record_partial(&mut self, name: &str) {
        let text = format!(
            "the {name}: only a part of the change was reviewed, and a {name} is about all of it"
        );
        self.posted.failed.push(text);
    }

    /// Records that findings that block are not on the page, neither on a line nor in a summary.
    fn record_unplaced(&mut self, count: usize) {
        let findings = match count {
            1 => "1 finding that blocks has".to_owned(),
            _ => format!("{count} findings that block have"),
        };
        self.posted.failed.push(format!(
            "comments on lines: {findings} no place on the page: post the summary too, which names all"
        ));
    }

    /// Records a write that failed.
    fn record_failure(&mut self, what: &str, failure: Failure) {
        let mut text = format!("{what}: {}", failure.message);
        let reads_only =
            self.pull.is_fork && failure.status == Some(403) && failure.retry_after.is_none();
        let hint = match reads_only {
            true => Some(
                "for a pull request from a fork, CI gives out a token that may only read: publish \
                 from a job that runs afterwards, without the fork's code"
                    .to_owned(),
            ),
            false => failure.hint,
        };
        if let Some(hint) = hint {
            text.push_str(&format!(" ({hint})"));
        }
        self.posted.failed.push(text);
    }
}

/// A review and its decisions without the words of tickets. Readers of the page may not be allowed
/// to read the tickets.
struct Screened<'r> {
    review: Cow<'r, Review>,
    selection: Selection,
}

impl<'r> Screened<'r> {
    fn new(request: &PublishRequest<'r>) -> Self {
        let mut selection = request.selection.clone();
        for disposition in selection.decided.values_mut() {
            disposition.reason = report::reason_for_forge(&disposition.reason, request.review);
        }
        Self {
            review: report::for_forge(request.review),
            selection,
        }
    }

    /// Returns the request with the screened texts.
    fn applied_to<'s>(&'s self, request: &PublishRequest<'s>) -> PublishRequest<'s> {
        PublishRequest {
            review: &self.review,
            selection: &self.selection,
            ..*request
        }
    }
}
