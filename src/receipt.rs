//! Receipts: a signed record of a complete review, so that a pipeline need not pay for the models
//! again.
//!
//! A receipt binds a verdict to the two trees that were compared, to the text of the change, to the
//! policy values that decide, to the rules and to the backends that reviewed. It is signed with an
//! SSH key and stored as a git note on the head's tree (`refs/notes/claude-reviewer`), which git
//! pushes and fetches like any reference.
//!
//! A run that accepts a receipt applies the rules again to the whole change, and asks no model. The
//! results of the models come from the receipt if its terms match those of the run, the policy of
//! the base lists its signer, and every backend that this policy requires has reviewed. The text of
//! a note is untrusted: all of that is checked before any of it is used.

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
use line::{NoteLine, parse, weigh};
use std::path::PathBuf;

/// The reference of the receipts.
pub const NOTES: &str = "refs/notes/claude-reviewer";
/// Reason why no receipt is needed if models see no part of the change.
const UNSEEN: &str = "the change has nothing for models to review";

/// The result of searching for a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No model is configured, or none has anything to review: the rules alone decide, and they
    /// ran.
    NotNeeded,
    /// A receipt replaces the models.
    Accepted,
    /// No receipt is valid; one reason for each that was checked.
    Refused(Vec<String>),
}

/// Rejects a request for which no receipt can be issued, before a model is asked.
///
/// # Errors
/// Usage: the policy is not that of the base, only some files are reviewed, or there is no key, if
/// that is known before the policy is read.
pub fn possible(request: &ReviewRequest, env: &Env) -> Result<()> {
    if request.authority != Authority::Base {
        let error = Error::usage("--receipt needs the policy of the base");
        return Err(error.hint("review with --gate"));
    }
    if !request.files.is_empty() {
        let error =
            Error::usage("--receipt needs the whole change and cannot be used with --files");
        return Err(error.hint("review without --files"));
    }
    ssh::named(env).map(|_| ())
}

/// The result of signing.
#[derive(Debug)]
pub enum Issued {
    Signed {
        key: PathBuf,
        /// Reason why the receipts of the remote could not be merged, if that was requested.
        apart: Option<String>,
    },
    /// No receipt is needed, with the reason.
    NotNeeded(&'static str),
}

/// Signs a finished review and adds the receipt to the notes of the reviewed tree.
///
/// If the request fetches, the receipts of the remote are fetched and merged first, so that the
/// notes can be pushed.
///
/// # Errors
/// Usage: no receipt can be issued for the review, or none would be accepted; there is no key; or
/// the key cannot sign.
pub fn issue(review: &Review, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<Issued> {
    possible(request, env)?;
    if let Some(reason) = needs_no_receipt(review)? {
        return Ok(Issued::NotNeeded(reason));
    }
    let receipt = receipt_of(review)?;
    let tree = tree_of(&receipt.terms)?;
    let repo = Repo::open(&request.dir, env)?;
    let key = ssh::key(review.judged_by.receipt.key.as_deref(), env)?;
    let text = serde_json::to_string(&receipt).map_err(|e| not_written(&e))?;
    let signature = ssh::sign(&key, text.as_bytes(), env, repo.worktree(), stop)?;
    let text = serde_json::to_vec(&Signed {
        receipt: text,
        signature,
    })
    .map_err(|e| not_written(&e))?;
    let read = parse(&text).map_err(|why| not_accepted(&why))?;
    let apart = merge(&repo, request, env, stop)
        .err()
        .map(|e| e.on_one_line());
    let note = repo.note(NOTES, tree).map_err(|e| {
        e.hint(format!("git notes --ref claude-reviewer show {tree} brings what a partial clone was made without"))
    })?;
    let line = NoteLine {
        text,
        read: Ok(read),
    };
    repo.set_note(
        NOTES,
        tree,
        &line::add(line, line::read(note.as_deref(), review.timestamp)),
        env,
    )?;
    Ok(Issued::Signed { key, apart })
}

/// Returns the reason why a review needs no receipt; `None` if it can have one.
///
/// # Errors
/// Usage: the review cannot have a receipt. It is incomplete, blocks, depends on a waiver, or no
/// model took part.
fn needs_no_receipt(review: &Review) -> Result<Option<&'static str>> {
    trees(review).map_err(refused)?;
    if review.outcome == Outcome::NothingToReview {
        return Ok(Some("nothing changed"));
    }
    if review.outcome != Outcome::Reviewed
        || !matches!(review.verdict, Verdict::Pass | Verdict::Warn)
    {
        let state = format!(
            "it ended as {}, {}",
            review.outcome.name(),
            review.verdict.name()
        );
        return Err(refused(&state));
    }
    if review.coverage.is_truncated() {
        return Err(refused(
            "a limit was reached, and models did not see the whole change",
        ));
    }
    if review.findings.iter().any(|f| f.waived.is_some()) {
        return Err(refused(
            "a finding was waived, and waivers apply to one run only",
        ));
    }
    if review.models.asked.is_empty() {
        return Err(refused("no model was asked")
            .hint("rules need no receipt: verify-receipt runs them again"));
    }
    Ok((!review.models.owed).then_some(UNSEEN))
}

/// Creates the receipt of a review.
///
/// # Errors
/// Usage: the review has no terms, or a verification under the same policy would reject the receipt.
fn receipt_of(review: &Review) -> Result<Receipt> {
    let terms = terms(review).map_err(refused)?;
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
    let policy = &review.judged_by.review;
    weigh(&receipt, &receipt.terms, &policy.backends, policy.mode)
        .map_err(|why| not_accepted(&why))?;
    Ok(receipt)
}

/// Returns the reviewed tree.
///
/// # Errors
/// Incomplete: the tree has no name.
fn tree_of(terms: &Terms) -> Result<ObjectId> {
    ObjectId::from_hex(&terms.head_tree).ok_or_else(|| Error::incomplete("the tree has no name"))
}

/// Returns the error for a receipt that no verification would accept.
fn not_accepted(why: &str) -> Error {
    refused(&format!("verification would reject it: {why}"))
}

/// Returns the error for a review that cannot have a receipt.
fn refused(why: &str) -> Error {
    Error::usage(format!("cannot sign a receipt for this review: {why}"))
}

/// Returns the error for a receipt that cannot be written as JSON.
fn not_written(cause: &serde_json::Error) -> Error {
    Error::incomplete("the receipt cannot be written").caused_by(cause)
}

/// Returns how to share receipts: a push command, and the steps if the push is rejected because the
/// remote has newer notes.
pub fn recipe(request: &ReviewRequest) -> [String; 2] {
    let remote = match &request.source {
        Source::Ends(ends) if is_plain_name(&ends.remote) => ends.remote.as_str(),
        _ => "origin",
    };
    let theirs = format!("refs/notes/{remote}/claude-reviewer");
    let push = format!("git push {remote} {NOTES}");
    let merge = format!("git notes --ref claude-reviewer merge -s cat_sort_uniq {theirs}");
    [
        push.clone(),
        format!("git fetch {remote} +{NOTES}:{theirs} && {merge} && {push}"),
    ]
}

/// Returns true for the name of a remote that a shell does not change. An address is not a name: it
/// has no remote-tracking references.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// Merges the notes of the remote into ours, if the request fetches.
fn merge(repo: &Repo, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<()> {
    let Some(mut fetched) = fetched(repo, request, env, stop)? else {
        return Ok(());
    };
    let Some(notes) = fetched.also(NOTES)? else {
        return Ok(());
    };
    // A shallow history of the notes would make the reference broken.
    if repo.is_shallow() || fetched.open()?.is_shallow() {
        return Err(Error::incomplete("the clone is shallow"));
    }
    repo.merge_notes(NOTES, notes, env)
}

/// Reviews with the rules, and accepts a receipt in place of asking the models.
///
/// The review is incomplete if the policy requires a model and no receipt is valid; its notes have
/// the reasons.
///
/// # Errors
/// Same as [`review::run`].
pub fn verify(request: &ReviewRequest, world: &World<'_>) -> Result<(Review, Standing)> {
    let request = ReviewRequest {
        offline: true,
        record: true,
        authority: Authority::Base,
        ..request.clone()
    };
    let mut review = review::run(&request, world)?;
    let wanted: Vec<String> = match request.backends.is_empty() {
        true => review.judged_by.review.backends.clone(),
        false => request.backends.clone(),
    };
    if wanted.is_empty() || review.outcome == Outcome::NothingToReview {
        return Ok((review, Standing::NotNeeded));
    }
    if !review.models.owed {
        review
            .notes
            .push(Note::general("receipt", format!("not needed: {UNSEEN}")));
        return Ok((review, Standing::NotNeeded));
    }
    let standing = match review::with_signal_handler(world.stop, || {
        check(&review, &request, &wanted, world)
    }) {
        Ok((receipt, signer)) => {
            let by: Vec<_> = receipt
                .backends
                .iter()
                .map(|b| format!("{} ({})", b.name, b.model))
                .collect();
            let text = format!(
                "results of {} come from a receipt signed by {signer} at {}: {}, {} findings in total",
                by.join(", "),
                receipt.timestamp,
                if receipt.verdict == wire::Verdict::Pass {
                    "pass"
                } else {
                    "warn"
                },
                receipt.summary.critical
                    + receipt.summary.major
                    + receipt.summary.minor
                    + receipt.summary.suggestion,
            );
            review
                .notes
                .push(Note::general("receipt", Inert::new(text).to_string()));
            review.accept_receipt(&wanted, request.on_block);
            Standing::Accepted
        }
        Err(reasons) => {
            for why in &reasons {
                review
                    .notes
                    .push(Note::general("receipt", Inert::new(why).to_string()));
            }
            review.note_missing_receipt(&wanted);
            Standing::Refused(reasons)
        }
    };
    Ok((review, standing))
}

/// Finds a valid receipt for a review, and its signer.
///
/// # Errors
/// The reasons why no receipt is accepted, at least one.
fn check(
    review: &Review,
    request: &ReviewRequest,
    wanted: &[String],
    world: &World<'_>,
) -> std::result::Result<(Receipt, String), Vec<String>> {
    if !request.files.is_empty() {
        return Err(vec![
            "a receipt covers a whole change; this review is limited by --files".to_owned(),
        ]);
    }
    let terms = terms(review).map_err(|why| vec![format!("no receipt can be accepted: {why}")])?;
    let signers = &review.judged_by.receipt.signers;
    if signers.is_empty() {
        return Err(vec![
            "the policy lists no trusted signer ([receipt] signers)".to_owned(),
        ]);
    }
    let repo = Repo::open(&request.dir, world.env)
        .map_err(|e| vec![format!("cannot read the receipts: {}", e.on_one_line())])?;
    let tree = tree_of(&terms).map_err(|e| vec![e.on_one_line()])?;
    let (notes, mut reasons) = notes_of(&repo, request, tree, world);
    let mut left = line::MOST;
    for line in line::read(notes.iter().map(Vec::as_slice), world.now) {
        let (receipt, signed) = match line.read {
            Ok(both) => both,
            Err(why) => {
                reasons.push(why);
                continue;
            }
        };
        let mut weighed =
            weigh(&receipt, &terms, wanted, review.judged_by.review.mode).map(|()| String::new());
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
    Err(reasons_for_people(reasons, &terms, request))
}

/// Reads the notes of a tree, of the remote (if the request fetches) and of the repository. Returns
/// them with the reasons why some could not be read.
fn notes_of(
    repo: &Repo,
    request: &ReviewRequest,
    tree: ObjectId,
    world: &World<'_>,
) -> (Vec<Vec<u8>>, Vec<String>) {
    let (mut notes, mut reasons) = (Vec::new(), Vec::new());
    // First, because this may fetch objects that the other receipts need.
    match remote(repo, request, tree, world) {
        Ok(note) => notes.extend(note),
        Err(e) => reasons.push(format!(
            "cannot read the receipts of the remote: {}",
            e.on_one_line()
        )),
    }
    match repo.note(NOTES, tree) {
        Ok(note) => notes.extend(note),
        Err(e) => {
            let hint = match fetches(request) {
                Some(_) => "",
                None => "; --fetch reads them from the remote",
            };
            reasons.push(format!(
                "cannot read the receipts: {}{hint}",
                e.on_one_line()
            ));
        }
    }
    (notes, reasons)
}

/// Bounds the reasons why no receipt is accepted. Without any, there is no receipt.
fn reasons_for_people(
    mut reasons: Vec<String>,
    terms: &Terms,
    request: &ReviewRequest,
) -> Vec<String> {
    if reasons.is_empty() {
        let elsewhere = match fetches(request) {
            Some(_) => ", here or at the remote",
            None => "; --fetch reads those of the remote",
        };
        reasons.push(format!(
            "no receipt found for the tree {} in {NOTES}{elsewhere}",
            terms.head_tree
        ));
    }
    if reasons.len() > line::MOST {
        let more = reasons.len() - line::MOST;
        reasons.truncate(line::MOST);
        reasons.push(format!("and {more} more receipts that were not accepted"));
    }
    reasons
}

/// Returns the ends of a change if the request fetches.
fn fetches(request: &ReviewRequest) -> Option<&Ends> {
    match &request.source {
        Source::Ends(ends) if ends.fetching == Fetching::Missing => Some(ends),
        _ => None,
    }
}

/// Prepares to fetch from the remote, if the request fetches.
fn fetched(
    repo: &Repo,
    request: &ReviewRequest,
    env: &Env,
    stop: &Stop,
) -> Result<Option<Fetched>> {
    let Some(ends) = fetches(request) else {
        return Ok(None);
    };
    let fetch = Fetch {
        remote: ends.remote.clone(),
        tips: Vec::new(),
        credential: ends.credential.clone(),
    };
    repo.fetch(&request.dir, env, &fetch, stop).map(Some)
}

/// Returns the remote's note for a tree, if the request fetches.
fn remote(
    repo: &Repo,
    request: &ReviewRequest,
    tree: ObjectId,
    world: &World<'_>,
) -> Result<Option<Vec<u8>>> {
    let Some(mut fetched) = fetched(repo, request, world.env, world.stop)? else {
        return Ok(None);
    };
    let Some(notes) = fetched.also(NOTES)? else {
        return Ok(None);
    };
    let found = fetched.open()?.note_id(notes, tree)?;
    let Some(note) = found else { return Ok(None) };
    let read = fetched.open()?.note_text(note);
    if read.is_ok() {
        return read.map(Some);
    }
    // Git assumes that an existing commit is complete, although a partial clone may lack its
    // objects.
    fetched.objects(&[note])?;
    fetched.open()?.note_text(note).map(Some)
}

/// Returns the terms of a review, or the reason why it has none.
fn terms(review: &Review) -> std::result::Result<Terms, &'static str> {
    let (base_tree, head_tree) = trees(review)?;
    let Some(record) = &review.record else {
        return Err("the change was not kept as text");
    };
    if !record.left_out.is_empty() {
        return Err(
            "a file of the change is not stored as text (too large, or its name indicates secrets)",
        );
    }
    Ok(Terms {
        base_tree,
        head_tree,
        change: record.hash(),
        policy: review.judged_by.bound_by_receipts(),
        rules: review.rules_hash.clone(),
    })
}

fn trees(review: &Review) -> std::result::Result<(String, String), &'static str> {
    let SourceInfo {
        base_tree, tree, ..
    } = &review.source;
    base_tree
        .clone()
        .zip(tree.clone())
        .ok_or("the review does not compare two commits")
}

fn reviewers(review: &Review) -> Vec<Reviewer> {
    // Only the backends that answered: with several, a later one may be a fallback that was not
    // asked.
    let answered = review
        .models
        .asked
        .iter()
        .filter_map(|name| Some((name, model_of(review, name)?)));
    answered
        .map(|(name, model)| Reviewer {
            name: name.clone(),
            model: model.to_owned(),
        })
        .collect()
}

/// Returns the model of a backend; `None` if the backend did not answer.
fn model_of<'r>(review: &'r Review, backend: &str) -> Option<&'r str> {
    let mut usage = review.models.usage.iter().filter(|u| u.backend == backend);
    usage
        .find(|u| !u.model.is_empty())
        .map(|u| u.model.as_str())
}

#[cfg(test)]
mod tests;
