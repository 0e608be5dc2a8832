//! Receipts: a complete review, signed, so that a pipeline need not pay for the models again.
//!
//! A receipt binds a verdict to the two trees that were compared, to the change as text, to what decides in the policy,
//! to the rules and to the backends that looked. It is signed with an SSH key and kept as a note of the head's tree
//! (`refs/notes/claude-reviewer`), which git pushes and fetches like any reference.
//!
//! Whoever takes one runs the rules again, over everything, and asks nobody: what the models said is believed from the
//! receipt, if its terms are those found here, the policy of the base names its signer, and every backend that this
//! policy wants has looked. Text of a note is hostile: all of that is checked before a word of it counts.

mod ssh;

use crate::diff::ObjectId;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::git::Repo;
use crate::policy::Mode;
use crate::request::{Authority, Ends, Fetch, Fetching, ReviewRequest, Source};
use crate::review::{self, Note, Review, World};
use crate::stop::Stop;
use crate::untrusted::Inert;
use crate::verdict::{Outcome, Verdict};
use crate::wire;
use crate::wire::receipt::{RECEIPT_VERSION, Receipt, Reviewer, Signed, Terms};
use std::collections::HashSet;
use std::path::PathBuf;

/// Where receipts are.
pub const NOTES: &str = "refs/notes/claude-reviewer";
/// Receipts of one tree that are looked at, the newest ones.
const MOST: usize = 32;
/// Bytes of one receipt with its signature.
const MAX_LINE: usize = 64 << 10;

/// What receipts say of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The policy asks no model: the rules are all there is, and they ran.
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
        let error = Error::usage("a receipt is given for a review under the policy of the base");
        return Err(error.hint("review with --gate"));
    }
    if !request.files.is_empty() {
        let error = Error::usage("a receipt is given for a whole change, and --files narrows this one");
        return Err(error.hint("review without --files"));
    }
    ssh::named(env).map(|_| ())
}

/// Signs a finished review and puts the receipt beside the tree that was reviewed. Returns the signer's key file.
///
/// # Errors
/// Usage: the review is none that a receipt can be given for, there is no key, or the key cannot sign.
pub fn issue(review: &Review, request: &ReviewRequest, env: &Env, stop: &Stop) -> Result<PathBuf> {
    let refused = |why: &str| Error::usage(format!("there is no receipt for this review: {why}"));
    let terms = terms(review).map_err(refused)?;
    possible(request, env)?;
    if review.outcome != Outcome::Reviewed || !matches!(review.verdict, Verdict::Pass | Verdict::Warn) {
        let state = format!("it ended as {}, {}", review.outcome.name(), review.verdict.name());
        return Err(refused(&state));
    }
    if review.findings.iter().any(|f| f.waived.is_some()) {
        return Err(refused("a waiver let a finding through, which is nobody else's word"));
    }
    if review.models.asked.is_empty() {
        return Err(
            refused("no model was asked").hint("the rules need no receipt: they run again wherever it is taken")
        );
    }
    let repo = Repo::open(&request.dir, env)?;
    let key = ssh::key(review.judged_by.receipt.key.as_deref(), env)?;
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
    let unreadable = |e: serde_json::Error| Error::incomplete("the receipt cannot be written").caused_by(&e);
    let text = serde_json::to_string(&receipt).map_err(unreadable)?;
    let signature = ssh::sign(&key, text.as_bytes(), env, repo.worktree(), stop)?;
    let line = serde_json::to_string(&Signed { receipt: text, signature }).map_err(unreadable)?;
    let tree = ObjectId::from_hex(&receipt.terms.head_tree).ok_or_else(|| Error::incomplete("the tree has no name"))?;
    let mut lines = lines(&repo.note(NOTES, tree)?.unwrap_or_default());
    // Of the same terms the newest is enough.
    lines.retain(|l| parse(l).map_or(true, |(r, _)| r.terms != receipt.terms || r.backends != receipt.backends));
    lines.push(line.into_bytes());
    let first = lines.len().saturating_sub(MOST);
    repo.set_note(NOTES, tree, &lines[first..].join(&b'\n'), env)?;
    Ok(key)
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
    let standing = match check(&review, &request, &wanted, world) {
        Ok((receipt, signer)) => {
            let by: Vec<_> = receipt.backends.iter().map(|b| format!("{} ({})", b.name, b.model)).collect();
            let text = format!(
                "what {} said is taken from a receipt that {signer} signed, of {}: {}, {} findings in all",
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
        return Err(one("a receipt is about a whole change, and --files narrows this one".to_owned()));
    }
    let terms = terms(review).map_err(|why| one(format!("no receipt can be taken: {why}")))?;
    let signers = &review.judged_by.receipt.signers;
    if signers.is_empty() {
        return Err(one("the policy names nobody whose receipts are taken ([receipt] signers)".to_owned()));
    }
    let said = |e: &Error| one(format!("the receipts cannot be read: {}", e.on_one_line()));
    let repo = Repo::open(&request.dir, world.env).map_err(|e| said(&e))?;
    let tree = ObjectId::from_hex(&terms.head_tree).ok_or_else(|| one("the tree has no name".to_owned()))?;
    let mut reasons = Vec::new();
    let mut newest = newest(&repo.note(NOTES, tree).map_err(|e| said(&e))?.unwrap_or_default());
    match fetched(&repo, request, tree, world) {
        Ok(note) => newest.extend(self::newest(&note.unwrap_or_default())),
        Err(e) => reasons.push(format!("the receipts of the remote cannot be fetched: {}", e.on_one_line())),
    }
    let mut seen = HashSet::new();
    newest.retain(|line| seen.insert(line.clone()));
    for line in &newest {
        let (receipt, signed) = match parse(line) {
            Ok(both) => both,
            Err(why) => {
                reasons.push(why);
                continue;
            }
        };
        match weigh(&receipt, &terms, wanted, review.judged_by.review.mode)
            .and_then(|()| ssh::verify(&signed, signers, world.env, repo.worktree(), world.stop))
        {
            Ok(signer) => return Ok((receipt, signer)),
            Err(why) => reasons.push(format!("a receipt of {}: {why}", receipt.timestamp)),
        }
    }
    if reasons.is_empty() {
        reasons.push(format!(
            "there is no receipt for the tree {} below {NOTES}{}",
            terms.head_tree,
            if fetches(request).is_some() { ", here or at the remote" } else { "; --fetch brings what others signed" }
        ));
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

/// Returns what the remote's notes say of a tree, where the request fetches.
fn fetched(repo: &Repo, request: &ReviewRequest, tree: ObjectId, world: &World<'_>) -> Result<Option<Vec<u8>>> {
    let Some(ends) = fetches(request) else { return Ok(None) };
    let fetch = Fetch { remote: ends.remote.clone(), tips: Vec::new(), credential: ends.credential.clone() };
    let mut fetched = repo.fetch(&request.dir, world.env, &fetch, world.stop)?;
    match fetched.also(NOTES)? {
        Some(notes) => fetched.open()?.note_in(notes, tree),
        None => Ok(None),
    }
}

/// Says what a review is about, as far as that has a name.
fn terms(review: &Review) -> std::result::Result<Terms, &'static str> {
    let (Some(base_tree), Some(head_tree)) = (&review.source.base_tree, &review.source.tree) else {
        return Err("it is not about two commits");
    };
    let Some(record) = &review.record else { return Err("the change was not kept as text") };
    if !record.left_out.is_empty() {
        return Err("a file of the change is not kept as text (it is too large, or holds secrets by its name)");
    }
    Ok(Terms {
        base_tree: base_tree.clone(),
        head_tree: head_tree.clone(),
        change: record.hash(),
        policy: review.judged_by.judging_hash(),
        rules: review.rules_hash.clone(),
    })
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

fn lines(note: &[u8]) -> Vec<Vec<u8>> {
    note.split(|b| *b == b'\n').filter(|l| !l.trim_ascii().is_empty()).map(<[u8]>::to_vec).collect()
}

/// Returns the newest lines of a note, the newest first.
fn newest(note: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = lines(note);
    lines.reverse();
    lines.truncate(MOST);
    lines
}

/// Reads a line of a note. The error says what is wrong with it.
fn parse(line: &[u8]) -> std::result::Result<(Receipt, Signed), String> {
    if line.len() > MAX_LINE {
        return Err(format!("a receipt has more than {} KiB", MAX_LINE >> 10));
    }
    let damaged = |_| "a line of the note is no receipt".to_owned();
    let signed: Signed = serde_json::from_slice(line).map_err(damaged)?;
    let value: serde_json::Value = serde_json::from_str(&signed.receipt).map_err(damaged)?;
    match value["schema_version"].as_u64() {
        Some(v) if v > u64::from(RECEIPT_VERSION) => {
            return Err(format!("a receipt has version {v}; this claude-reviewer knows {RECEIPT_VERSION}"));
        }
        _ => {}
    }
    let receipt: Receipt = serde_json::from_value(value).map_err(damaged)?;
    if receipt.timestamp.parse::<jiff::Timestamp>().is_err() {
        return Err("a receipt says no time".to_owned());
    }
    if receipt.schema_version != RECEIPT_VERSION {
        return Err(format!("a receipt has version {}", receipt.schema_version));
    }
    Ok((receipt, signed))
}

/// Tells whether what a receipt says would be enough, were it true.
fn weigh(receipt: &Receipt, terms: &Terms, wanted: &[String], mode: Mode) -> std::result::Result<(), String> {
    let theirs = &receipt.terms;
    let pairs = [
        (&theirs.base_tree, &terms.base_tree, "the change starts from another tree"),
        (&theirs.head_tree, &terms.head_tree, "it ends in another tree"),
        (&theirs.policy, &terms.policy, "the policy decides otherwise"),
        (&theirs.rules, &terms.rules, "the rules are others"),
        (&theirs.change, &terms.change, "the change reads otherwise"),
    ];
    if let Some((_, _, why)) = pairs.iter().find(|(a, b, _)| a != b) {
        return Err((*why).to_owned());
    }
    if !matches!(receipt.verdict, wire::Verdict::Pass | wire::Verdict::Warn) {
        return Err("its verdict lets nothing through".to_owned());
    }
    let has_looked = |name: &String| receipt.backends.iter().any(|b| b.name == *name);
    match wanted.iter().find(|w| !has_looked(w)) {
        Some(_) if mode == Mode::First && wanted.iter().any(has_looked) => Ok(()),
        Some(name) => Err(format!("{name} has not looked")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
