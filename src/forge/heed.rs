//! Waives findings by replies on the forge: reads the replies, and requests the data needed to
//! judge them.
//!
//! [`super::commands`] decides which replies count. The number of requests is bounded, and none is
//! sent twice.

use super::api::ForgeApi;
use super::commands::{
    self, Authors, Commanded, CommentReply, Directive, ReplyCommand, ReplyContext, Rights,
};
use super::session::ForgeSession;
use super::{Account, Forge, PullRequest};
use crate::finding::Waiver;
use crate::http::Failure;
use crate::report::markdown::Flavor;
use crate::request::OnBlock;
use crate::review::{Note, Review, today};
use crate::rules::RuleSet;
use crate::stop::Stop;
use jiff::Timestamp;
use jiff::civil::Date;

/// Replies with commands that are judged, newest first, at most.
const MOST_REPLIES: usize = 200;
/// Accounts whose rights are requested, at most.
const MOST_ACCOUNTS: usize = 10;
/// Notes about replies that do not count, at most.
const MOST_NOTES: usize = 20;
/// The origin of notes.
const ORIGIN: &str = "forge";

/// The effect of replies on a review.
#[derive(Clone, Debug, Default)]
struct Heeded {
    /// Waivers by fingerprint; the newest reply about a finding decides.
    waivers: Vec<(String, Option<Waiver>)>,
    notes: Vec<String>,
}

impl Forge {
    /// Waives the findings that replies on the forge waive, and judges the review again. Adds notes
    /// for replies that do not count.
    pub fn heed(
        &self,
        pull: &PullRequest,
        review: &mut Review,
        on_block: OnBlock,
        rules: &RuleSet,
        stop: &Stop,
    ) {
        if review.source.head.as_deref() != Some(pull.head.id.to_string().as_str()) {
            let text =
                "replies were not read: the head of the pull request is not what was reviewed";
            return review.notes.push(Note::general(ORIGIN, text));
        }
        if !review.findings.iter().any(|f| f.counts()) {
            return;
        }
        let read = self.with_session(stop, "the replies cannot be read", |session| {
            let flavor = self.site.host.service.flavor;
            Judging::new(self.api(), session, pull).run(review, rules, flavor)
        });
        let outcome = match read {
            Ok(outcome) => outcome,
            Err(e) => return review.notes.push(Note::general(ORIGIN, e.on_one_line())),
        };
        for (fingerprint, waiver) in outcome.waivers {
            for finding in review
                .findings
                .iter_mut()
                .filter(|f| f.fingerprint().as_str() == fingerprint)
            {
                finding.waived = waiver.clone().or(finding.waived.take());
            }
        }
        let more = outcome.notes.len().saturating_sub(MOST_NOTES);
        review.notes.extend(
            outcome
                .notes
                .into_iter()
                .take(MOST_NOTES)
                .map(|text| Note::general(ORIGIN, text)),
        );
        if more > 0 {
            review.notes.push(Note::general(
                ORIGIN,
                format!("{more} more replies do not count"),
            ));
        }
        review.judge_again(on_block);
    }
}

/// The state of judging a pull request's replies. Answers of the forge are cached, including
/// failures.
struct Judging<'a> {
    api: &'static dyn ForgeApi,
    session: &'a ForgeSession<'a>,
    pull: &'a PullRequest,
    pushed: Option<Result<Option<Timestamp>, String>>,
    authors: Option<Result<Authors, String>>,
    rights: Vec<(Account, Result<(), String>)>,
}

impl<'a> Judging<'a> {
    fn new(
        api: &'static dyn ForgeApi,
        session: &'a ForgeSession<'a>,
        pull: &'a PullRequest,
    ) -> Self {
        Self {
            api,
            session,
            pull,
            pushed: None,
            authors: None,
            rights: Vec::new(),
        }
    }

    /// Reads all replies, and judges those with a command.
    fn run(&mut self, review: &Review, rules: &RuleSet, flavor: Flavor) -> Result<Heeded, Failure> {
        let day = today(Timestamp::now());
        let me = self.api.token_account(self.session)?;
        let (mut replies, is_all) = self.api.replies(self.session, self.pull)?;
        replies.sort_by_key(|r| std::cmp::Reverse(r.written));
        let known = ReplyContext {
            pull: self.pull,
            me: &me,
            flavor,
            findings: &review.findings,
        };
        let mut out = Heeded::default();
        if !is_all {
            out.notes
                .push("not all replies were read: there are too many".to_owned());
        }
        let mut judged = 0;
        for reply in &replies {
            let command = match commands::find(&reply.body, day) {
                Commanded::None => continue,
                Commanded::One(command) => Ok(command),
                Commanded::Bad(why) => Err(why),
            };
            judged += 1;
            if judged > MOST_REPLIES {
                out.notes.push(format!(
                    "older replies than the newest {MOST_REPLIES} with commands do not count"
                ));
                break;
            }
            let verdict = match command {
                Ok(command) => self
                    .judge(reply, &command, &known)
                    .map(|finding| (finding, command)),
                // Conversations of other accounts do not concern this program.
                Err(_) if !reply.root.author.is(&me) => continue,
                Err(why) => Err(why),
            };
            match verdict {
                Ok((fingerprint, command)) => out.count(reply, &command, fingerprint, rules),
                Err(why) => {
                    out.notes.push(format!(
                        "a reply by {} does not count: {why} ({})",
                        shown(reply),
                        reply.link
                    ));
                }
            }
        }
        Ok(out)
    }

    /// Returns the fingerprint of a reply's finding. Checks that need no request come first.
    fn judge(
        &mut self,
        reply: &CommentReply,
        command: &ReplyCommand,
        known: &ReplyContext<'_>,
    ) -> Result<String, String> {
        let finding = commands::finding_of(reply, known)?;
        commands::may_waive(command, finding)?;
        let head = self.pull.head.id.to_string();
        let pushed = match &command.head {
            Some(_) => None,
            None => self.pushed()?,
        };
        commands::of_head(reply, command, &head, pushed)?;
        commands::by_another(reply, self.authors()?)?;
        self.rights(&reply.author)?;
        Ok(finding.fingerprint().as_str().to_owned())
    }

    fn pushed(&mut self) -> Result<Option<Timestamp>, String> {
        if self.pushed.is_none() {
            let asked = self.api.push_time(self.session, self.pull);
            self.pushed = Some(
                asked.map_err(|f| format!("the push of the head cannot be read: {}", f.message)),
            );
        }
        self.pushed.clone().unwrap_or(Ok(None))
    }

    fn authors(&mut self) -> Result<&Authors, String> {
        if self.authors.is_none() {
            let asked = self.api.authors(self.session, self.pull);
            self.authors =
                Some(asked.map_err(|f| {
                    format!("the authors of the change cannot be read: {}", f.message)
                }));
        }
        match &self.authors {
            Some(Ok(authors)) => Ok(authors),
            Some(Err(why)) => Err(why.clone()),
            None => Err("the authors of the change are not known".to_owned()),
        }
    }

    fn rights(&mut self, account: &Account) -> Result<(), String> {
        if let Some((_, known)) = self.rights.iter().find(|(a, _)| a.is(account)) {
            return known.clone();
        }
        if self.rights.len() >= MOST_ACCOUNTS {
            return Err(format!(
                "the rights of more than {MOST_ACCOUNTS} accounts are not asked for"
            ));
        }
        let answer = match self.api.rights(self.session, account) {
            Ok(Rights::Maintains) => Ok(()),
            Ok(Rights::Lacks(why)) => Err(why),
            Err(failure) => Err(format!(
                "the rights of its author cannot be read: {}",
                failure.message
            )),
        };
        self.rights.push((account.clone(), answer.clone()));
        answer
    }
}

impl Heeded {
    /// Counts a reply. Replies come newest first, and the newest about a finding decides.
    fn count(
        &mut self,
        reply: &CommentReply,
        command: &ReplyCommand,
        fingerprint: String,
        rules: &RuleSet,
    ) {
        if self.waivers.iter().any(|(known, _)| *known == fingerprint) {
            return;
        }
        let reason = match &command.order {
            Directive::Accept => {
                self.notes.push(format!(
                    "{} accepted the finding {fingerprint} ({})",
                    shown(reply),
                    reply.link
                ));
                return self.waivers.push((fingerprint, None));
            }
            Directive::Reject(reason) => reason.clone(),
            Directive::Defer(date, reason) => deferred(*date, reason),
        };
        let link = Some(reply.link.clone()).filter(|link| !link.is_empty());
        let waiver = Waiver {
            reason: rules.masked(&reason),
            actor: shown(reply),
            link,
        };
        self.waivers.push((fingerprint, Some(waiver)));
    }
}

/// Returns the reason of a waiver that ends at a date.
fn deferred(date: Date, reason: &str) -> String {
    if reason.is_empty() {
        format!("deferred until {date}")
    } else {
        format!("deferred until {date}: {reason}")
    }
}

/// Returns the name of a reply's author for display.
fn shown(reply: &CommentReply) -> String {
    format!("@{}", reply.author.name)
}
