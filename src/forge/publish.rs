//! What is to be written to a pull request, from a review and what is there already. Pure.
//!
//! The same review published twice changes nothing the second time: comments are known again by their marks, and
//! what they say by a digest. A mark counts only in a comment of the token's own account.

#[cfg(test)]
mod tests;

use super::Account;
use super::lines::{Lines, Spot};
use super::mark::{About, By, Form, Mark};
use crate::finding::{Finding, Origin};
use crate::report::markdown::{self, Flavor};
use crate::review::Review;
use crate::verdict::{Outcome, Verdict};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};

/// Comments on lines at most; the worst findings get one, all are in the summary.
pub const MOST_INLINE: usize = 50;
/// Bytes that are left for the mark of a comment.
const MARK: usize = 512;
/// Characters of a branch's name that a status is known by: Bitbucket takes forty in all.
const MOST_OF_A_BASE: usize = 24;

/// Returns the name of the status of a head that is to go to a branch: `claude-reviewer-main`. Each base has a policy and
/// a change of its own, so what one of them says of a commit is nothing about the others.
pub fn context(base: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if base.len() <= MOST_OF_A_BASE && base.chars().all(is_plain) {
        return format!("claude-reviewer-{base}");
    }
    let start: String = base.chars().map(|c| if is_plain(c) { c } else { '-' }).take(MOST_OF_A_BASE - 9).collect();
    let hash: String = Sha256::digest(base).iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("claude-reviewer-{start}~{hash}")
}

/// What of a review is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Comments on lines of the change.
    pub comments: bool,
    /// One comment about all of it.
    pub summary: bool,
    /// The light beside the head commit.
    pub status: bool,
}

/// A comment of a pull request, whoever wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comment {
    /// The forge's key.
    pub id: String,
    pub author: Account,
    /// Markdown, as the forge returns it.
    pub body: String,
    /// It is about lines, and not below the pull request as a whole.
    pub is_inline: bool,
    /// The forge's key of the conversation that it begins; empty where that is the same or has none.
    pub thread: String,
    /// Somebody marked the conversation as done.
    pub resolved: bool,
    /// Where the forge wants to be told which state is replaced.
    pub version: u64,
}

/// A new comment on lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    pub spot: Spot,
    /// Markdown, with its mark.
    pub body: String,
}

/// Another text for a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    pub comment: Comment,
    /// Markdown, with its mark.
    pub body: String,
    /// The text says that the finding is gone.
    pub ends: bool,
    /// What becomes of its conversation; `None`: it stays as it is.
    pub resolve: Option<bool>,
}

/// The light beside a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub light: Light,
    /// One line.
    pub description: String,
}

/// Whether a commit may be merged, as far as this review goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Light {
    Success,
    Failure,
    /// Nobody knows: the review is incomplete.
    Error,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    pub inline: Vec<Inline>,
    pub edits: Vec<Edit>,
    /// The summary where it is new.
    pub summary: Option<String>,
    /// Findings that get no comment on a line, because there are too many.
    pub beyond: usize,
}

/// What a plan is made of.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    pub review: &'a Review,
    pub lines: &'a Lines,
    pub parts: Parts,
    /// The whole change was reviewed, and not some files of it: what was not found is gone.
    pub whole: bool,
    pub me: &'a Account,
    /// All comments of the pull request that were read.
    pub there: &'a [Comment],
    /// There are no others.
    pub all_there: bool,
    pub form: Form,
    /// How findings are written for this forge.
    pub flavor: Flavor,
}

impl Account {
    /// Tells whether two are the same: by the forge's number where both have one, else by name.
    pub fn is(&self, other: &Self) -> bool {
        match (self.id.as_str(), other.id.as_str()) {
            ("", _) | (_, "") => !self.name.is_empty() && self.name == other.name,
            (a, b) => a == b,
        }
    }
}

/// Plans what to write.
pub fn plan(now: &Situation<'_>) -> Plan {
    let mut plan = Plan::default();
    let own = now.there.iter().filter(|c| c.author.is(now.me));
    let own: Vec<(&Comment, Mark)> = own.filter_map(|c| Some((c, Mark::read(&c.body)?))).collect();
    if now.parts.comments {
        comments(now, &own, &mut plan);
    }
    if now.parts.summary {
        summary(now, &own, &mut plan);
    }
    plan
}

/// Plans comments on lines: what is new gets one, what is gone loses it.
fn comments(now: &Situation<'_>, own: &[(&Comment, Mark)], plan: &mut Plan) {
    let mut found: Vec<&Finding> = now.review.findings.iter().filter(|f| f.counts()).collect();
    // The worst first; those alike stay in the order of the report.
    found.sort_by_key(|f| (!f.blocking, std::cmp::Reverse(f.severity())));
    let mut there: HashMap<&str, (&Comment, &Mark)> = HashMap::new();
    let mut repeated = Vec::new();
    for (comment, mark) in own.iter().filter(|(c, _)| c.is_inline) {
        let About::Finding { fingerprint, .. } = &mark.about else { continue };
        // Two runs at the same time can both write what is new.
        if there.contains_key(fingerprint.as_str()) {
            repeated.push((*comment, mark));
        } else {
            there.insert(fingerprint, (comment, mark));
        }
    }
    let mut current = HashSet::new();
    let mut count = found.iter().filter(|f| there.contains_key(f.fingerprint().as_str())).count();
    for finding in found {
        let fingerprint = finding.fingerprint().as_str();
        if !current.insert(fingerprint) {
            continue;
        }
        let spot = spot(finding, now.lines);
        let about = About::Finding { fingerprint: fingerprint.to_owned(), by: by(finding), ended: false };
        if let Some((comment, mark)) = there.get(fingerprint) {
            // A person who marked the conversation as done has the last word.
            let was_ended = matches!(mark.about, About::Finding { ended: true, .. });
            let text = markdown::finding(finding, now.flavor);
            let new = Mark::of(about, &text);
            if new != **mark && (was_ended || !comment.resolved) {
                let resolve = was_ended.then_some(false);
                plan.edits.push(Edit {
                    comment: (*comment).clone(),
                    body: new.sign(&text, now.form),
                    ends: false,
                    resolve,
                });
            }
            continue;
        }
        // Where not all comments were read, one about it may be among the others.
        if !now.all_there {
            continue;
        }
        let Some(spot) = spot else {
            plan.beyond += 1;
            continue;
        };
        if count >= MOST_INLINE {
            plan.beyond += 1;
            continue;
        }
        count += 1;
        let text = markdown::finding(finding, now.flavor);
        plan.inline.push(Inline { body: Mark::of(about, &text).sign(&text, now.form), spot });
    }
    if now.whole && now.review.outcome != Outcome::Incomplete && now.review.outcome != Outcome::Cancelled {
        let models = !now.review.models.asked.is_empty();
        let mut gone: Vec<_> = there.into_iter().filter(|(f, _)| !current.contains(f)).map(|(_, c)| c).collect();
        gone.sort_by(|a, b| a.0.id.cmp(&b.0.id));
        let at = now.review.source.head.as_deref().map_or("", |id| &id[..id.len().min(12)]);
        let text = format!("**Resolved:** not found any more at {at}.");
        for (comment, mark) in gone {
            let About::Finding { by, .. } = mark.about else { continue };
            // What a model found, another look of the rules alone does not answer.
            if by == By::Rules || models {
                plan.edits.extend(ended(now, comment, mark, &text));
            }
        }
    }
    for (comment, mark) in repeated {
        plan.edits.extend(ended(now, comment, mark, "**Resolved:** another comment says the same."));
    }
}

/// Says that a comment is of no use any more; `None`: it says so already.
fn ended(now: &Situation<'_>, comment: &Comment, mark: &Mark, text: &str) -> Option<Edit> {
    let About::Finding { fingerprint, by, ended: false } = &mark.about else { return None };
    let about = About::Finding { fingerprint: fingerprint.clone(), by: *by, ended: true };
    let body = Mark::of(about, text).sign(text, now.form);
    Some(Edit { comment: comment.clone(), body, ends: true, resolve: Some(true).filter(|_| !comment.resolved) })
}

/// Plans the comment about all of it: the oldest one is written over.
fn summary(now: &Situation<'_>, own: &[(&Comment, Mark)], plan: &mut Plan) {
    let text = markdown::comment_for(now.review, now.flavor, now.flavor.bound() - MARK);
    // How long it took is no reason to write it all again.
    let essence = markdown::lasting(now.review, &text);
    let head = now.review.source.head.as_deref().unwrap_or_default();
    let mark = Mark::of(About::Summary, &format!("{head}\n{essence}"));
    let there = own.iter().find(|(c, m)| !c.is_inline && m.about == About::Summary);
    let body = mark.sign(&text, now.form);
    match there {
        Some((_, old)) if *old == mark => {}
        Some((comment, _)) => plan.edits.push(Edit { comment: (*comment).clone(), body, ends: false, resolve: None }),
        None if now.all_there => plan.summary = Some(body),
        None => {}
    }
}

/// Finds where a finding is commented on: on lines of the net change, where the page shows them.
fn spot(finding: &Finding, lines: &Lines) -> Option<Spot> {
    if finding.commit.is_some() {
        return None;
    }
    let file = std::str::from_utf8(finding.file()?.as_bytes()).ok()?;
    let spot = lines.spot(file, finding.lines()?)?;
    // What is meant for all of its lines must not be applied to some of them.
    Some(spot).filter(|s| s.whole || finding.replacement().is_none())
}

fn by(finding: &Finding) -> By {
    if *finding.origin() == Origin::Rules { By::Rules } else { By::Model }
}

/// Returns the light of a review, and what is said beside it.
pub fn status(review: &Review) -> Status {
    let count = review.findings.iter().filter(|f| f.counts()).count();
    let blocking = review.findings.iter().filter(|f| f.counts() && f.blocking).count();
    let findings = |n: usize| if n == 1 { "1 finding".to_owned() } else { format!("{n} findings") };
    let (light, description) = match review.verdict {
        Verdict::Pass | Verdict::Warn if count == 0 => (Light::Success, "nothing found".to_owned()),
        Verdict::Pass | Verdict::Warn => (Light::Success, format!("{}, none blocks", findings(count))),
        Verdict::Block => (Light::Failure, format!("{} of {} block", blocking, findings(count))),
        Verdict::Incomplete => {
            let c = &review.coverage;
            let files = format!("{} of {} files reviewed", c.files_reviewed, c.files_total);
            (Light::Error, format!("incomplete: {files}; {}", findings(count)))
        }
    };
    Status { light, description }
}
