//! Plans what to write to a pull request, from a review and the existing comments. Pure.
//!
//! Publishing the same review twice changes nothing the second time: comments are recognized by
//! their marks, and their content by a digest. A mark counts only in a comment of the token's own
//! account.

#[cfg(test)]
mod tests;

use super::Account;
use super::lines::{CommentSpot, ShownLines};
use super::mark::{By, CommentMark, MarkForm, MarkSubject};
use crate::finding::{Decision, Disposition, Finding, Origin};
use crate::hex;
use crate::report::markdown::{self, Flavor, Withheld};
use crate::review::Review;
use crate::rounds::selection::Selection;
use crate::text::one_line;
use crate::verdict::{Outcome, TestOutcome, Verdict};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};

/// Comments on lines, at most. The most severe findings get one; the summary lists all.
pub const MOST_INLINE: usize = 50;
/// Characters of the reason for a rejected or deferred finding, at most.
const MOST_OF_A_REASON: usize = 200;
/// Bytes reserved for the mark of a comment.
const MARK: usize = 512;
/// Characters of a branch name in a status name, at most: Bitbucket accepts forty in all.
const MOST_OF_A_BASE: usize = 24;

/// Returns the status name of a head for a base branch: `claude-reviewer-main`. Each base has its
/// own policy and its own change, so a status for one base does not apply to another.
pub fn context(base: &str) -> String {
    if base.len() <= MOST_OF_A_BASE && base.chars().all(is_plain) {
        return format!("claude-reviewer-{base}");
    }
    let start: String = base
        .chars()
        .map(|c| if is_plain(c) { c } else { '-' })
        .take(MOST_OF_A_BASE - 9)
        .collect();
    let hash = hex::encode(&Sha256::digest(base)[..4]);
    format!("claude-reviewer-{start}~{hash}")
}

/// Returns true if a character of a branch name is part of the status name as it is.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "._-".contains(c)
}

/// The parts of a review that are published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Comments on lines of the change.
    pub comments: bool,
    /// One comment about the whole review.
    pub summary: bool,
    /// Commit status on the head commit.
    pub status: bool,
}

/// A comment of a pull request, by any author.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comment {
    /// The forge's key.
    pub id: String,
    pub author: Account,
    /// Markdown, as the forge returns it.
    pub body: String,
    /// Whether it is about lines, and not about the pull request as a whole.
    pub is_inline: bool,
    /// Current position of a comment about lines.
    pub place: CommentPlace,
    /// Forge's key of the conversation that the comment begins; empty if the key equals that of the
    /// comment, or the comment begins no conversation.
    pub thread: String,
    /// Whether the conversation is resolved.
    pub resolved: bool,
    /// Version that an update replaces, for forges that require one.
    pub version: u64,
}

/// The position of a comment in the current change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommentPlace {
    /// The forge does not report it.
    #[default]
    Unknown,
    /// On no current line: its lines were changed, or are not shown.
    Gone,
    /// On lines of the new side.
    Lines {
        path: String,
        /// `None` if the forge applies a suggestion to the last line alone.
        first: Option<u32>,
        last: u32,
    },
}

/// How well the position of a comment matches its finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SpotFit {
    /// On the last line, or at an unknown position: readers find the text there, but a suggestion
    /// must not be applied.
    Near,
    /// On exactly these lines.
    Exact,
}

impl CommentPlace {
    /// Reads lines from a forge. An invalid line number means that the comment is on no line.
    pub(super) fn of(path: String, first: Option<u64>, last: Option<u64>) -> Self {
        match (last.and_then(line_number), first.map(line_number)) {
            _ if path.is_empty() => Self::Unknown,
            (Some(last), first) => Self::Lines {
                path,
                first: first.flatten(),
                last,
            },
            (None, _) => Self::Gone,
        }
    }

    /// Returns how well a comment at this position matches a spot, or `None` if it does not.
    fn fits(&self, spot: &CommentSpot) -> Option<SpotFit> {
        match self {
            Self::Unknown => Some(SpotFit::Near),
            Self::Gone => None,
            Self::Lines { path, first, last } if *path == spot.path && *last == spot.last.new => {
                let is_exact = first.is_none_or(|first| first == spot.first.new);
                Some(if is_exact {
                    SpotFit::Exact
                } else {
                    SpotFit::Near
                })
            }
            Self::Lines { .. } => None,
        }
    }
}

/// Returns a number from a forge if it is a valid line number.
fn line_number(n: u64) -> Option<u32> {
    u32::try_from(n).ok().filter(|n| *n > 0)
}

/// A new comment on lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineComment {
    pub spot: CommentSpot,
    /// Whether its finding blocks.
    pub blocks: bool,
    /// Severity and rule of the finding, to display. Untrusted text.
    pub label: String,
    /// Markdown with its mark.
    pub body: String,
}

/// A new text for an existing comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentEdit {
    pub comment: Comment,
    /// Markdown with its mark.
    pub body: String,
    /// Whether the text says that the finding is gone.
    pub ends: bool,
    /// Whether its conversation is to be resolved or reopened; `None` leaves it unchanged.
    pub resolve: Option<bool>,
}

impl PublishPlan {
    /// Returns the planned writes, one line each. Untrusted text.
    pub fn lines(&self) -> Vec<String> {
        let mut out: Vec<String> = self
            .inline
            .iter()
            .map(|c| format!("comment  {}:{}  {}", c.spot.path, c.spot.last.new, c.label))
            .collect();
        for edit in &self.edits {
            let text = edit.body.lines().next().unwrap_or_default();
            out.push(
                match (&edit.comment.place, edit.comment.is_inline, edit.ends) {
                    (_, false, _) => "summary  updated".to_owned(),
                    (CommentPlace::Lines { path, last, .. }, true, true) => {
                        format!("resolve  {path}:{last}  {text}")
                    }
                    (_, true, true) => format!("resolve  comment {}  {text}", edit.comment.id),
                    (CommentPlace::Lines { path, last, .. }, true, false) => {
                        format!("update   {path}:{last}  {text}")
                    }
                    (_, true, false) => format!("update   comment {}  {text}", edit.comment.id),
                },
            );
        }
        out.extend(self.summary.as_ref().map(|_| "summary  new".to_owned()));
        out
    }
}

/// A commit status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStatus {
    pub state: StatusState,
    /// One line.
    pub description: String,
}

/// A commit status that a forge has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingStatus {
    /// Account that set it; `None` if the forge does not report it.
    pub by: Option<Account>,
    pub status: CommitStatus,
}

/// Whether this review allows the merge of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusState {
    Success,
    Failure,
    /// Unknown, because the review is incomplete.
    Incomplete,
}

/// The planned writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishPlan {
    pub inline: Vec<InlineComment>,
    pub edits: Vec<CommentEdit>,
    /// Summary, if it is a new comment.
    pub summary: Option<String>,
    /// Number of findings without a comment on a line: there are too many, or the page shows none
    /// of their lines.
    pub beyond: usize,
    /// Number of these findings that block.
    pub blocking_beyond: usize,
}

/// The input of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub review: &'a Review,
    pub lines: &'a ShownLines,
    pub parts: Parts,
    /// Whether the whole change was reviewed, so that findings it lacks are gone.
    pub whole: bool,
    pub selection: &'a Selection,
    /// Account of the token: only its comments are changed.
    pub own_account: &'a Account,
    /// All comments of the pull request that were read.
    pub existing: &'a [Comment],
    /// Whether `existing` has all comments of the pull request.
    pub has_all_comments: bool,
    /// Notation for marks on this forge.
    pub form: MarkForm,
    /// Markdown flavor of this forge.
    pub flavor: Flavor,
}

impl Account {
    /// Returns true if both accounts are the same: by ID if both have one, else by name.
    pub fn is(&self, other: &Self) -> bool {
        match (self.id.as_str(), other.id.as_str()) {
            ("", _) | (_, "") => !self.name.is_empty() && self.name == other.name,
            (a, b) => a == b,
        }
    }
}

/// A comment of this program, with its mark.
#[derive(Clone, Copy, Debug)]
struct OwnComment<'a> {
    comment: &'a Comment,
    mark: &'a CommentMark,
}

/// Own comments on lines, by the fingerprint of the finding that they are about.
type CommentsByFinding<'a> = HashMap<&'a str, Vec<OwnComment<'a>>>;

/// A finding that has no comment at its position yet.
struct NewFinding<'a> {
    finding: &'a Finding,
    /// `None` if the page shows none of its lines.
    spot: Option<CommentSpot>,
}

/// Plans the writes.
pub fn plan(now: &Situation<'_>) -> PublishPlan {
    let mut plan = PublishPlan::default();
    // Any account can write a mark, so it counts only in comments of the own account.
    let own = now.existing.iter().filter(|c| c.author.is(now.own_account));
    let marked: Vec<(&Comment, CommentMark)> = own
        .filter_map(|comment| Some((comment, CommentMark::read(&comment.body)?)))
        .collect();
    let own: Vec<OwnComment<'_>> = marked
        .iter()
        .map(|(comment, mark)| OwnComment { comment, mark })
        .collect();
    if now.parts.comments {
        plan_comments(now, &own, &mut plan);
    }
    // The result for a part of the change must not replace the summary for all of it.
    if now.parts.summary && now.whole {
        plan_summary(now, &own, &mut plan);
    }
    plan
}

/// Plans comments on lines, in three steps:
///
/// 1. The comments of each published finding: the one at its position is kept, all others end. If
///    the position is unknown, all stay.
/// 2. New comments for findings without one, [`MOST_INLINE`] comments in all at most.
/// 3. The comments that are left are about findings that are gone or not published. They end with
///    the reason. Those of a pending finding stay, and those of a finding that a reply waived, and
///    those of a finding that is not proven gone.
fn plan_comments(now: &Situation<'_>, own: &[OwnComment<'_>], plan: &mut PublishPlan) {
    let mut by_finding = by_finding(own);
    let mut published: Vec<&Finding> = now
        .review
        .findings
        .iter()
        .filter(|f| now.selection.posts(f))
        .collect();
    // The most severe first; otherwise in the order of the report.
    published.sort_by_key(|f| (!f.blocking, std::cmp::Reverse(f.severity())));

    let (mut kept, mut new, mut seen) = (0, Vec::new(), HashSet::new());
    for finding in published {
        let fingerprint = finding.fingerprint().as_str();
        if !seen.insert(fingerprint) {
            continue;
        }
        let comments = by_finding.remove(fingerprint).unwrap_or_default();
        match plan_known(now, finding, comments, plan) {
            Known::Kept => kept += 1,
            Known::Unclear => {}
            Known::New(finding) => new.push(finding),
        }
    }
    // If not all comments were read, an unread one may be about a new finding.
    if now.has_all_comments {
        plan_new(now, new, kept, plan);
    }
    // These findings have no decision yet: their comments stay.
    let findings = now.review.findings.iter();
    for finding in findings.filter(|f| now.selection.is_pending(f)) {
        by_finding.remove(finding.fingerprint().as_str());
    }
    plan_gone(now, by_finding, plan);
}

/// Groups own comments on lines by their finding.
fn by_finding<'a>(own: &[OwnComment<'a>]) -> CommentsByFinding<'a> {
    let mut out = CommentsByFinding::new();
    for comment in own.iter().filter(|own| own.comment.is_inline) {
        if let MarkSubject::Finding { fingerprint, .. } = &comment.mark.about {
            out.entry(fingerprint).or_default().push(*comment);
        }
    }
    out
}

/// Whether an existing comment is at the position of a finding.
enum Known<'a> {
    /// A comment is at its position.
    Kept,
    /// Its position is unknown, so its comments stay as they are.
    Unclear,
    /// No comment is at its position.
    New(NewFinding<'a>),
}

/// Plans what becomes of the existing comments of a finding: the one at its position is updated,
/// and all others end.
fn plan_known<'a>(
    now: &Situation<'_>,
    finding: &'a Finding,
    mut comments: Vec<OwnComment<'_>>,
    plan: &mut PublishPlan,
) -> Known<'a> {
    let spot = spot(finding, now.lines);
    // A review of a part of the change knows only the lines of that part, so the position of the
    // finding is unknown.
    if !now.whole && spot.is_none() && !comments.is_empty() {
        return Known::Unclear;
    }
    let standing = spot
        .as_ref()
        .and_then(|spot| take_standing(&mut comments, spot));
    // Two concurrent runs can write the same comment twice. A comment that is not at its finding's
    // position misleads.
    let why = match (&standing, &spot) {
        (Some(_), _) => "**Resolved:** another comment says the same.",
        (None, None) if finding.commit.is_some() => {
            "**Not in the head any more:** still in an earlier commit."
        }
        (None, _) => "**Moved:** still found, on other lines.",
    };
    let ended = comments.into_iter().filter_map(|own| ended(now, own, why));
    plan.edits.extend(ended);
    let Some((own, fit)) = standing else {
        return Known::New(NewFinding { finding, spot });
    };
    let is_whole = spot.is_some_and(|s| s.whole) && fit == SpotFit::Exact;
    plan.edits.extend(updated(now, finding, own, is_whole));
    Known::Kept
}

/// Plans new comments. `count` is the number of comments that are kept.
fn plan_new(
    now: &Situation<'_>,
    findings: Vec<NewFinding<'_>>,
    mut count: usize,
    plan: &mut PublishPlan,
) {
    for NewFinding { finding, spot } in findings {
        let Some(spot) = spot.filter(|_| count < MOST_INLINE) else {
            plan.beyond += 1;
            plan.blocking_beyond += usize::from(finding.blocking);
            continue;
        };
        count += 1;
        let text = text(finding, now.flavor, spot.whole);
        plan.inline.push(InlineComment {
            body: CommentMark::of(about(finding), &text).sign(&text, now.form),
            label: format!("{} {}", finding.severity(), finding.rule_id()),
            spot,
            blocks: finding.blocking,
        });
    }
}

/// Plans the end of comments whose finding is not published any more.
fn plan_gone(now: &Situation<'_>, comments: CommentsByFinding<'_>, plan: &mut PublishPlan) {
    let mut gone: Vec<OwnComment<'_>> = comments.into_values().flatten().collect();
    gone.sort_by(|a, b| a.comment.id.cmp(&b.comment.id));
    for own in gone {
        if let Some(why) = why_gone(now, own.mark) {
            plan.edits.extend(ended(now, own, &why));
        }
    }
}

/// Returns the text that ends the comment of a finding that is not published any more, or `None` if
/// the comment stays.
fn why_gone(now: &Situation<'_>, mark: &CommentMark) -> Option<String> {
    let MarkSubject::Finding {
        fingerprint, by, ..
    } = &mark.about
    else {
        return None;
    };
    let review = now.review;
    let head = review.source.head.as_deref().unwrap_or_default();
    let at = &head[..head.len().min(12)];
    let mut findings = review.findings.iter();
    let Some(finding) = findings.find(|f| f.fingerprint().as_str() == fingerprint) else {
        let is_complete =
            now.whole && !matches!(review.outcome, Outcome::Incomplete | Outcome::Cancelled);
        // A run of the rules alone does not prove that a model's finding is gone.
        let is_proven = is_complete && (*by == By::Rules || !review.models.asked.is_empty());
        let is_gone = is_proven || now.selection.fixed.contains(fingerprint);
        return is_gone.then(|| format!("**Resolved:** not found any more at {at}."));
    };
    match &finding.waived {
        // The reply with the waiver belongs to this comment, and is valid only while the comment is
        // unmodified.
        Some(waiver) if waiver.link.is_some() => None,
        Some(_) => Some(format!(
            "**Waived:** still found at {at}; a person waived it with a reason."
        )),
        None => Some(match dismissal(now, finding) {
            Some(disposition) => set_aside(disposition, at),
            // `plan_comments` has handled published and pending findings, so this one does not
            // count. A waiver and a decision are handled above, so a comment in the code suppresses
            // it.
            None => {
                format!("**Suppressed:** still found at {at}; a comment in the code suppresses it.")
            }
        }),
    }
}

/// Returns the decision that dismisses a finding: that of the publishing person, or else that of
/// the review. In gate mode, a shared decision can dismiss a finding that the person has accepted.
fn dismissal<'a>(now: &Situation<'a>, finding: &'a Finding) -> Option<&'a Disposition> {
    let of_review = finding.disposition.as_ref();
    let is_open = finding.suppressed.is_none();
    now.selection
        .sets_aside(finding)
        .or(of_review.filter(|d| is_open && d.decision.sets_aside()))
}

/// Formats the decision and the reason of a rejected or deferred finding.
fn set_aside(disposition: &Disposition, at: &str) -> String {
    let why = match disposition.reason.trim() {
        "" => "no reason was given".to_owned(),
        reason => markdown::words(reason, MOST_OF_A_REASON),
    };
    match (disposition.decision, disposition.expires) {
        (Decision::Deferred, Some(date)) => {
            format!("**Deferred until {date}:** still found at {at}. Reason: {why}")
        }
        (Decision::Deferred, None) => format!("**Deferred:** still found at {at}. Reason: {why}"),
        (Decision::Rejected | Decision::Accepted, _) => {
            format!("**Rejected:** still found at {at}. Reason: {why}")
        }
    }
}

/// Removes from the comments about a finding the one at the finding's position, and returns it.
/// Prefers a comment that was not ended to one that was, then the best match, then the first one.
fn take_standing<'a>(
    comments: &mut Vec<OwnComment<'a>>,
    spot: &CommentSpot,
) -> Option<(OwnComment<'a>, SpotFit)> {
    let ranked = comments.iter().enumerate().filter_map(|(i, own)| {
        let is_ended = matches!(own.mark.about, MarkSubject::Finding { ended: true, .. });
        let fit = own.comment.place.fits(spot)?;
        Some(((!is_ended, fit), std::cmp::Reverse(i)))
    });
    let ((_, fit), std::cmp::Reverse(i)) = ranked.max()?;
    Some((comments.remove(i), fit))
}

/// Updates a comment that is at its finding's position. Returns `None` if it is up to date, or a
/// person resolved it.
fn updated(
    now: &Situation<'_>,
    finding: &Finding,
    own: OwnComment<'_>,
    is_whole: bool,
) -> Option<CommentEdit> {
    let OwnComment { comment, mark } = own;
    let was_ended = matches!(mark.about, MarkSubject::Finding { ended: true, .. });
    let text = text(finding, now.flavor, is_whole);
    let new = CommentMark::of(about(finding), &text);
    // A person who resolved the conversation overrides this program.
    if new == *mark || (comment.resolved && !was_ended) {
        return None;
    }
    let resolve = was_ended.then_some(false);
    Some(CommentEdit {
        comment: comment.clone(),
        body: new.sign(&text, now.form),
        ends: false,
        resolve,
    })
}

/// Returns the subject of the mark of a comment that is not ended.
fn about(finding: &Finding) -> MarkSubject {
    MarkSubject::Finding {
        fingerprint: finding.fingerprint().as_str().to_owned(),
        by: by(finding),
        ended: false,
    }
}

/// Formats a finding. A suggestion replaces all lines of the finding, so it must not be applied to
/// other lines: if the comment is not on exactly these lines, the code is shown without a
/// suggestion.
fn text(finding: &Finding, flavor: Flavor, is_whole: bool) -> String {
    if is_whole || finding.replacement().is_none() {
        return markdown::finding(finding, flavor);
    }
    // A finding without a frame has no suggestion that can be applied.
    let mut bare = finding.clone();
    bare.frame = None;
    markdown::finding(&bare, flavor)
}

/// Returns true if a comment shows a finding as it would be written now. White space is ignored:
/// forges may normalize it.
pub fn shows(finding: &Finding, flavor: Flavor, comment: &str) -> bool {
    let Some(shown) = CommentMark::text(comment).map(one_line) else {
        return false;
    };
    [true, false]
        .into_iter()
        .any(|is_whole| one_line(&text(finding, flavor, is_whole)) == shown)
}

/// Returns the edit that gives a comment its last text and resolves its conversation, or `None` if
/// it was ended already.
fn ended(now: &Situation<'_>, own: OwnComment<'_>, text: &str) -> Option<CommentEdit> {
    let OwnComment { comment, mark } = own;
    let MarkSubject::Finding {
        fingerprint,
        by,
        ended: false,
    } = &mark.about
    else {
        return None;
    };
    let about = MarkSubject::Finding {
        fingerprint: fingerprint.clone(),
        by: *by,
        ended: true,
    };
    let body = CommentMark::of(about, text).sign(text, now.form);
    Some(CommentEdit {
        comment: comment.clone(),
        body,
        ends: true,
        resolve: Some(true).filter(|_| !comment.resolved),
    })
}

/// Plans the summary comment: the oldest existing one is overwritten.
fn plan_summary(now: &Situation<'_>, own: &[OwnComment<'_>], plan: &mut PublishPlan) {
    let hidden = hidden(now);
    let text =
        markdown::comment_without(now.review, now.flavor, now.flavor.bound() - MARK, &hidden);
    // A change of the duration alone does not justify an update.
    let essence = markdown::lasting(now.review, &text);
    let head = now.review.source.head.as_deref().unwrap_or_default();
    let mark = CommentMark::of(MarkSubject::Summary, &format!("{head}\n{essence}"));
    let existing = own
        .iter()
        .find(|own| !own.comment.is_inline && own.mark.about == MarkSubject::Summary);
    let body = mark.sign(&text, now.form);
    match existing {
        Some(own) if *own.mark == mark => {}
        Some(own) => plan.edits.push(CommentEdit {
            comment: own.comment.clone(),
            body,
            ends: false,
            resolve: None,
        }),
        None if now.has_all_comments => plan.summary = Some(body),
        None => {}
    }
}

/// Returns the findings that the summary does not list: rejected and deferred ones, and, if only
/// accepted findings are published, those without a decision.
fn hidden(now: &Situation<'_>) -> Withheld {
    let findings = &now.review.findings;
    let pending: Vec<&Finding> = findings
        .iter()
        .filter(|f| now.selection.is_pending(f))
        .collect();
    let aside: Vec<&Finding> = findings
        .iter()
        .filter(|f| now.selection.sets_aside(f).is_some())
        .collect();
    let counts = [
        (pending.len(), "without a decision"),
        (aside.len(), "rejected or deferred"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    let note = if counts.is_empty() {
        String::new()
    } else {
        format!("Findings not listed: {}.", counts.join(", "))
    };
    let fingerprints = pending
        .iter()
        .chain(&aside)
        .map(|f| f.fingerprint().as_str().to_owned())
        .collect();
    Withheld { fingerprints, note }
}

/// Returns the position for a comment on a finding: lines of the net change that the page shows.
fn spot(finding: &Finding, lines: &ShownLines) -> Option<CommentSpot> {
    if finding.commit.is_some() {
        return None;
    }
    let file = std::str::from_utf8(finding.file()?.as_bytes()).ok()?;
    lines.spot(file, finding.lines()?)
}

/// Returns whether a rule or a model made a finding.
fn by(finding: &Finding) -> By {
    if *finding.origin() == Origin::Rules {
        By::Rules
    } else {
        By::Model
    }
}

/// Returns the commit status of a review.
pub fn status(review: &Review) -> CommitStatus {
    let count = review.findings.iter().filter(|f| f.counts()).count();
    let blocking = review
        .findings
        .iter()
        .filter(|f| f.counts() && f.blocking)
        .count();
    let findings = if count == 1 {
        "1 finding".to_owned()
    } else {
        format!("{count} findings")
    };
    let c = &review.coverage;
    let files = format!("{} of {} files reviewed", c.files_reviewed, c.files_total);
    let tests = review
        .tests
        .as_ref()
        .is_some_and(|t| t.outcome == TestOutcome::Failed);
    let (state, description) = match review.verdict {
        _ if review.outcome == Outcome::NothingToReview => {
            (StatusState::Success, "nothing to review".to_owned())
        }
        Verdict::Warn if tests => (
            StatusState::Success,
            format!("the project's tests failed; {findings}"),
        ),
        Verdict::Block if tests => (
            StatusState::Failure,
            format!("the project's tests failed; {blocking} of {findings} block"),
        ),
        Verdict::Warn if c.is_truncated() => (
            StatusState::Success,
            format!("cut short: {files}; {findings}"),
        ),
        Verdict::Pass | Verdict::Warn if count == 0 => {
            (StatusState::Success, "nothing found".to_owned())
        }
        Verdict::Pass | Verdict::Warn => (StatusState::Success, format!("{findings}, none blocks")),
        Verdict::Block => (
            StatusState::Failure,
            format!("{blocking} of {findings} block"),
        ),
        Verdict::Incomplete => (
            StatusState::Incomplete,
            format!("incomplete: {files}; {findings}"),
        ),
    };
    CommitStatus { state, description }
}
