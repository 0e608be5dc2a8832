//! Receipts: a complete review, signed, so that a pipeline need not pay for the models again.
//!
//! A receipt binds a verdict to the two trees that were compared, to the change as text, to what decides in the policy,
//! to the rules and to the backends that looked. It is signed with an SSH key and kept as a note of the head's tree
//! (`refs/notes/claude-reviewer`), which git pushes and fetches like any reference.
//!
//! Whoever takes one runs the rules again, over everything, and asks nobody: what the models said is believed from the
//! receipt, if its terms are those found here, the policy of the base names its signer, and every backend that this
//! policy wants has looked. Text of a note is hostile: all of that is checked before a word of it counts.

mod line;
mod ssh;

use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::{Fetched, Repo};
use crate::request::{Authority, Ends, Fetch, Fetching, ReviewRequest, Source};
use crate::review::{self, Note, Review, SourceInfo, World};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::verdict::{Outcome, Verdict};
use crate::wire;
use crate::wire::receipt::{RECEIPT_VERSION, Receipt, Reviewer, Signed, Terms};
use line::{Line, parse, weigh};
use std::path::PathBuf;

/// Where receipts are.
pub const NOTES: &str = "refs/notes/claude-reviewer";
/// Why no receipt is needed where models are shown nothing.
const UNSEEN: &str = "the change has nothing for models to review";

/// What receipts say of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No model is asked, or none has anything to see: the rules are all there is, and they ran.
    NotNeeded,
    /// A receipt stands for the models.
    Accepted,
    /// None does; why, one for each that was looked at.
    Refused(Vec<String>),
}

/// Refuses a request that no receipt can be given for, before anybody is asked.
///
/// # Errors
/// Usage: not the base's policy decides, or only some files are reviewed, or no key is named where that can be told
/// before the policy is read.
pub fn possible(request: &ReviewRequest, env: &Env) -> Result<()> {
    if request.authority != Authority::Base {
        let error = Error::usage("--receipt needs the policy of the base");
        return Err(error.hint("review with --gate"));
    }
    if !request.files.is_empty() {
        let error = Error::usage("--receipt needs the whole change and cannot be used with --files");
        return Err(error.hint("review without --files"));
    }
    ssh::named(env).map(|_| ())
}

/// What came of signing.
#[derive(Debug)]
pub enum Issued {
    Signed {
        key: PathBuf,
        /// Why the receipts of the remote are not among ours, where they were to be.
        apart: Option<String>,
    },
    /// No receipt is needed; why.
    NotNeeded(&'static str),
}

/// Signs a finished review and puts the receipt beside the tree that was reviewed.
///
/// Where the request fetches, what others signed is brought and merged first, so that the notes can be pushed.
///
/// # Errors
/// Usage: the review is none that a receipt can be given for or would be taken for, there is no key, or the key cannot
/// sign.
pub fn issue(review: &Review, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<Issued> {
    let refused = |why: &str| Error::usage(format!("cannot sign a receipt for this review: {why}"));
    possible(request, env)?;
    trees(review).map_err(refused)?;
    if review.outcome == Outcome::NothingToReview {
        return Ok(Issued::NotNeeded("nothing changed"));
    }
    if review.outcome != Outcome::Reviewed || !matches!(review.verdict, Verdict::Pass | Verdict::Warn) {
        let state = format!("it ended as {}, {}", review.outcome.name(), review.verdict.name());
        return Err(refused(&state));
    }
    if review.coverage.is_truncated() {
        return Err(refused("a limit was reached, and models did not see the whole change"));
    }
    if review.findings.iter().any(|f| f.waived.is_some()) {
        return Err(refused("a finding was waived, and waivers apply to one run only"));
    }
    if review.models.asked.is_empty() {
        return Err(refused("no model was asked").hint("rules need no receipt: verify-receipt runs them again"));
    }
    if !review.models.owed {
        return Ok(Issued::NotNeeded(UNSEEN));
    }
    let terms = terms(review).map_err(refused)?;
    let tree = ObjectId::from_hex(&terms.head_tree).ok_or_else(|| Error::incomplete("the tree has no name"))?;
    let report = crate::report::json::report(review);
    let receipt = Receipt {
        schema_version: RECEIPT_VERSION,
        tool: concat!("claude-reviewer ", env!("CARGO_PKG_VERSION")).to_owned(),
        timestamp: review.timestamp.to_string(),
        terms,
        verdict: report.verdict,
        summary: report.summary,
        backends: reviewers(review),
    };
    let judged_by = &review.judged_by;
    weigh(&receipt, &receipt.terms, &judged_by.review.backends, judged_by.review.mode)
        .map_err(|why| refused(&format!("verification would reject it: {why}")))?;
    let repo = Repo::open(&request.dir, env)?;
    let key = ssh::key(judged_by.receipt.key.as_deref(), env)?;
    let unreadable = |e: serde_json::Error| Error::incomplete("the receipt cannot be written").caused_by(&e);
    let text = serde_json::to_string(&receipt).map_err(unreadable)?;
    let signature = ssh::sign(&key, text.as_bytes(), env, repo.worktree(), stop)?;
    let text = serde_json::to_vec(&Signed { receipt: text, signature }).map_err(unreadable)?;
    let read = parse(&text).map_err(|why| refused(&format!("verification would reject it: {why}")))?;
    let apart = merge(&repo, request, env, stop).err().map(|e| e.on_one_line());
    let note = repo.note(NOTES, tree).map_err(|e| {
        e.hint(format!("git notes --ref claude-reviewer show {tree} brings what a partial clone was made without"))
    })?;
    let line = Line { text, read: Ok(read) };
    repo.set_note(NOTES, tree, &line::add(line, line::read(note.as_deref(), review.timestamp)), env)?;
    Ok(Issued::Signed { key, apart })
}

/// Returns how receipts get to the others: a command, and what to do where that is refused because others were first.
pub fn recipe(request: &ReviewRequest) -> [String; 2] {
    // An address has no references of its own here, and a shell reads what is printed.
    let is_name = |name: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain)
    };
    let remote = match &request.source {
        Source::Ends(ends) if is_name(&ends.remote) => ends.remote.as_str(),
        _ => "origin",
    };
    let theirs = format!("refs/notes/{remote}/claude-reviewer");
    let push = format!("git push {remote} {NOTES}");
    let merge = format!("git notes --ref claude-reviewer merge -s cat_sort_uniq {theirs}");
    [push.clone(), format!("git fetch {remote} +{NOTES}:{theirs} && {merge} && {push}")]
}

/// Merges what the remote has into our notes, where the request fetches.
fn merge(repo: &Repo, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<()> {
    let Some(mut fetched) = fetched(repo, request, env, stop)? else { return Ok(()) };
    let Some(notes) = fetched.also(NOTES)? else { return Ok(()) };
    // A reference into a history that is cut off only for the one who fetched it would be a broken one.
    if repo.is_shallow() || fetched.open()?.is_shallow() {
        return Err(Error::incomplete("the clone is shallow"));
    }
    repo.merge_notes(NOTES, notes, env)
}

/// Reviews with the rules, and takes the word of a receipt for the models.
///
/// The review is incomplete where the policy wants a model and no receipt stands for it; its notes say why.
///
/// # Errors
/// As [`review::run`].
pub fn verify(request: &ReviewRequest, world: &World<'_>) -> Result<(Review, Standing)> {
    let request = ReviewRequest { offline: true, record: true, authority: Authority::Base, ..request.clone() };
    let mut review = review::run(&request, world)?;
    let wanted: Vec<String> = match request.backends.is_empty() {
        true => review.judged_by.review.backends.clone(),
        false => request.backends.clone(),
    };
    if wanted.is_empty() || review.outcome == Outcome::NothingToReview {
        return Ok((review, Standing::NotNeeded));
    }
    if !review.models.owed {
        review.notes.push(Note::general("receipt", format!("not needed: {UNSEEN}")));
        return Ok((review, Standing::NotNeeded));
    }
    let standing = match review::heard(world.stop, || check(&review, &request, &wanted, world)) {
        Ok((receipt, signer)) => {
            let by: Vec<_> = receipt.backends.iter().map(|b| format!("{} ({})", b.name, b.model)).collect();
            let text = format!(
                "results of {} come from a receipt signed by {signer} at {}: {}, {} findings in total",
                by.join(", "),
                receipt.timestamp,
                if receipt.verdict == wire::Verdict::Pass { "pass" } else { "warn" },
                receipt.summary.critical + receipt.summary.major + receipt.summary.minor + receipt.summary.suggestion,
            );
            review.notes.push(Note::general("receipt", Inert::new(text).to_string()));
            review.vouch(&wanted, request.on_block);
            Standing::Accepted
        }
        Err(reasons) => {
            for why in &reasons {
                review.notes.push(Note::general("receipt", Inert::new(why).to_string()));
            }
            review.vouched_by_nobody(&wanted);
            Standing::Refused(reasons)
        }
    };
    Ok((review, standing))
}

/// Finds a receipt that stands for the models of a review, and who signed it.
fn check(
    review: &Review,
    request: &ReviewRequest,
    wanted: &[String],
    world: &World<'_>,
) -> std::result::Result<(Receipt, String), Vec<String>> {
    let one = |why: String| vec![why];
    if !request.files.is_empty() {
        return Err(one("a receipt covers a whole change; this review is limited by --files".to_owned()));
    }
    let terms = terms(review).map_err(|why| one(format!("no receipt can be accepted: {why}")))?;
    let signers = &review.judged_by.receipt.signers;
    if signers.is_empty() {
        return Err(one("the policy lists no trusted signer ([receipt] signers)".to_owned()));
    }
    let repo = Repo::open(&request.dir, world.env)
        .map_err(|e| one(format!("cannot read the receipts: {}", e.on_one_line())))?;
    let tree = ObjectId::from_hex(&terms.head_tree).ok_or_else(|| one("the tree has no name".to_owned()))?;
    let is_fetching = fetches(request).is_some();
    let (mut reasons, mut notes) = (Vec::new(), Vec::new());
    // First, since it may bring what the others lack.
    match remote(&repo, request, tree, world) {
        Ok(note) => notes.extend(note),
        Err(e) => reasons.push(format!("cannot read the receipts of the remote: {}", e.on_one_line())),
    }
    match repo.note(NOTES, tree) {
        Ok(note) => notes.extend(note),
        Err(e) => {
            let hint = if is_fetching { "" } else { "; --fetch reads them from the remote" };
            reasons.push(format!("cannot read the receipts: {}{hint}", e.on_one_line()));
        }
    }
    let mut left = line::MOST;
    for line in line::read(notes.iter().map(Vec::as_slice), world.now) {
        let (receipt, signed) = match line.read {
            Ok(both) => both,
            Err(why) => {
                reasons.push(why);
                continue;
            }
        };
        let mut weighed = weigh(&receipt, &terms, wanted, review.judged_by.review.mode).map(|()| String::new());
        if weighed.is_ok() && left == 0 {
            weighed = Err(format!("there are {} newer ones", line::MOST));
        } else if weighed.is_ok() {
            left -= 1;
            weighed = ssh::verify(&signed, signers, world.env, repo.worktree(), world.stop);
        }
        match weighed {
            Ok(signer) => return Ok((receipt, signer)),
            Err(why) => reasons.push(format!("a receipt of {}: {why}", receipt.timestamp)),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!(
            "no receipt found for the tree {} in {NOTES}{}",
            terms.head_tree,
            if is_fetching { ", here or at the remote" } else { "; --fetch reads those of the remote" }
        ));
    }
    if reasons.len() > line::MOST {
        let more = reasons.len() - line::MOST;
        reasons.truncate(line::MOST);
        reasons.push(format!("and {more} more receipts that were not accepted"));
    }
    Err(reasons)
}

/// Returns the ends of a change that is fetched.
fn fetches(request: &ReviewRequest) -> Option<&Ends> {
    match &request.source {
        Source::Ends(ends) if ends.fetching == Fetching::Missing => Some(ends),
        _ => None,
    }
}

/// Prepares to fetch from the remote, where the request fetches.
fn fetched(repo: &Repo, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<Option<Fetched>> {
    let Some(ends) = fetches(request) else { return Ok(None) };
    let fetch = Fetch { remote: ends.remote.clone(), tips: Vec::new(), credential: ends.credential.clone() };
    repo.fetch(&request.dir, env, &fetch, stop).map(Some)
}

/// Returns what the remote's notes say of a tree, where the request fetches.
fn remote(repo: &Repo, request: &ReviewRequest, tree: ObjectId, world: &World<'_>) -> Result<Option<Vec<u8>>> {
    let Some(mut fetched) = fetched(repo, request, world.env, world.stop)? else { return Ok(None) };
    let Some(notes) = fetched.also(NOTES)? else { return Ok(None) };
    let found = fetched.open()?.note_id(notes, tree)?;
    let Some(note) = found else { return Ok(None) };
    let read = fetched.open()?.note_text(note);
    if read.is_ok() {
        return read.map(Some);
    }
    // Git takes a commit that is here for whole, though a partial clone may lack what lies below it.
    fetched.objects(&[note])?;
    fetched.open()?.note_text(note).map(Some)
}

/// Says what a review is about, as far as that has a name.
fn terms(review: &Review) -> std::result::Result<Terms, &'static str> {
    let (base_tree, head_tree) = trees(review)?;
    let Some(record) = &review.record else { return Err("the change was not kept as text") };
    if !record.left_out.is_empty() {
        return Err("a file of the change is not stored as text (too large, or its name indicates secrets)");
    }
    Ok(Terms {
        base_tree,
        head_tree,
        change: record.hash(),
        policy: review.judged_by.judging(),
        rules: review.rules_hash.clone(),
    })
}

fn trees(review: &Review) -> std::result::Result<(String, String), &'static str> {
    let SourceInfo { base_tree, tree, .. } = &review.source;
    base_tree.clone().zip(tree.clone()).ok_or("the review does not compare two commits")
}

fn reviewers(review: &Review) -> Vec<Reviewer> {
    let model = |name: &str| {
        let mut usage = review.models.usage.iter().filter(|u| u.backend == name);
        usage.find(|u| !u.model.is_empty()).map(|u| u.model.clone()).unwrap_or_default()
    };
    // Whoever answered: of several, one may be asked only where another did not.
    let answered = review.models.asked.iter().filter(|name| !model(name).is_empty());
    answered.map(|name| Reviewer { name: name.clone(), model: model(name) }).collect()
}

#[cfg(test)]
mod tests;
