//! The lines of a note: each is a receipt with its signature. Their order in the note is
//! meaningless, because a merge of notes sorts them; the timestamps decide.

use super::ssh;
use crate::policy::Mode;
use crate::text::{first_chars, listed};
use crate::untrusted::Inert;
use crate::wire;
use crate::wire::receipt::{RECEIPT_VERSION, Receipt, Signed, Terms};
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Receipts of one tree that are kept and checked, at most: the newest ones.
pub(super) const MOST: usize = 32;
/// Bytes of one receipt with its signature, at most.
pub(super) const MAX_LINE: usize = 64 << 10;
/// Bytes of all kept receipts, at most: a note of that size can be read.
const MAX_NOTE: usize = 1 << 20;
/// Clock difference that is tolerated. A later timestamp would otherwise be the newest forever.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);
/// Reason why a line is invalid.
const DAMAGED: &str = "the note has a line that is not a receipt";
/// Differences of two policies that are listed, and characters of each name, at most.
const NAMED: usize = 5;
const NAME: usize = 80;

/// A line, parsed or with the reason why it is invalid.
#[derive(Debug)]
pub(super) struct NoteLine {
    pub(super) text: Vec<u8>,
    pub(super) read: Result<(Receipt, Signed), String>,
}

/// Parses the lines of notes: the newest first, then those from the future, then invalid ones.
/// Duplicate lines count once.
pub(super) fn read<'n>(notes: impl IntoIterator<Item = &'n [u8]>, now: Timestamp) -> Vec<NoteLine> {
    let texts: BTreeSet<&[u8]> = notes
        .into_iter()
        .flat_map(|n| n.split(|b| *b == b'\n'))
        .map(<[u8]>::trim_ascii)
        .collect();
    let lines = texts.into_iter().filter(|t| !t.is_empty());
    let mut lines: Vec<NoteLine> = lines
        .map(|text| NoteLine {
            text: text.to_vec(),
            read: parse(text),
        })
        .collect();
    // Lines with equal times keep the order of their texts.
    lines.sort_by_key(|line| {
        match line
            .read
            .as_ref()
            .ok()
            .and_then(|(r, _)| r.timestamp.parse::<Timestamp>().ok())
        {
            Some(at) if at <= now + AHEAD => (0, Some(Reverse(at))),
            Some(at) => (1, Some(Reverse(at))),
            None => (2, None),
        }
    });
    lines
}

/// Adds a line to the others of its tree, and returns the note. Replaces the earlier receipt of the
/// same key and terms, and keeps only the newest of the others.
pub(super) fn add(line: NoteLine, to: Vec<NoteLine>) -> Vec<u8> {
    let others: Vec<Vec<u8>> = to
        .into_iter()
        .filter(|l| !replaces(&line, l))
        .map(|l| l.text)
        .collect();
    let mut size = 0;
    let mut kept: Vec<Vec<u8>> = std::iter::once(line.text)
        .chain(others)
        .take(MOST)
        .collect();
    kept.retain(|text| {
        size += text.len() + 1;
        size <= MAX_NOTE
    });
    // Sorted, as a merge of notes would leave them.
    kept.sort();
    kept.join(&b'\n')
}

/// Returns true if two lines are receipts of the same key for the same terms.
fn replaces(line: &NoteLine, other: &NoteLine) -> bool {
    match (&line.read, &other.read) {
        (Ok((ours, by)), Ok((theirs, other))) => {
            ours.terms == theirs.terms
                && ssh::signer(by).is_some()
                && ssh::signer(by) == ssh::signer(other)
        }
        _ => false,
    }
}

/// Parses a line of a note. The error states why it is invalid.
pub(super) fn parse(line: &[u8]) -> Result<(Receipt, Signed), String> {
    if line.len() > MAX_LINE {
        return Err(format!("a receipt has more than {} KiB", MAX_LINE >> 10));
    }
    let signed: Signed = serde_json::from_slice(line).map_err(|_| DAMAGED)?;
    let value: serde_json::Value = serde_json::from_str(&signed.receipt).map_err(|_| DAMAGED)?;
    match value["schema_version"].as_u64() {
        Some(v) if v > u64::from(RECEIPT_VERSION) => {
            return Err(format!(
                "a receipt has version {v}; this claude-reviewer knows {RECEIPT_VERSION}"
            ));
        }
        _ => {}
    }
    let receipt: Receipt = serde_json::from_value(value).map_err(|_| DAMAGED)?;
    if receipt.timestamp.parse::<Timestamp>().is_err() {
        return Err("a receipt has no time".to_owned());
    }
    if receipt.schema_version != RECEIPT_VERSION {
        return Err(format!("a receipt has version {}", receipt.schema_version));
    }
    Ok((receipt, signed))
}

/// Checks that the claims of a receipt, if true, are sufficient.
pub(super) fn weigh(
    receipt: &Receipt,
    terms: &Terms,
    wanted: &[String],
    mode: Mode,
) -> Result<(), String> {
    let theirs = &receipt.terms;
    if theirs.base_tree != terms.base_tree {
        return Err("the change starts at another tree".to_owned());
    }
    if theirs.head_tree != terms.head_tree {
        return Err("it ends in another tree".to_owned());
    }
    if theirs.policy != terms.policy {
        return Err(format!(
            "the policy differs in {}",
            differences(&theirs.policy, &terms.policy)
        ));
    }
    if theirs.rules != terms.rules {
        return Err("the rules differ".to_owned());
    }
    if theirs.change != terms.change {
        return Err("the change differs".to_owned());
    }
    if !matches!(receipt.verdict, wire::Verdict::Pass | wire::Verdict::Warn) {
        return Err("its verdict is not pass or warn".to_owned());
    }
    match wanted.iter().find(|w| !has_reviewed(receipt, w)) {
        Some(_) if mode == Mode::First && wanted.iter().any(|w| has_reviewed(receipt, w)) => Ok(()),
        Some(name) => Err(format!("{name} did not review")),
        None => Ok(()),
    }
}

/// Returns true if a receipt has the results of a backend.
fn has_reviewed(receipt: &Receipt, backend: &str) -> bool {
    receipt.backends.iter().any(|b| b.name == backend)
}

/// Lists the keys in which two policies differ. The names in a receipt are untrusted.
fn differences(theirs: &BTreeMap<String, String>, ours: &BTreeMap<String, String>) -> String {
    let names: BTreeSet<&String> = theirs
        .keys()
        .chain(ours.keys())
        .filter(|k| theirs.get(*k) != ours.get(*k))
        .collect();
    let shown = names.iter().take(NAMED);
    let shown = shown.map(|name| Inert::new(first_chars(name, NAME)).to_string());
    listed(&shown.collect::<Vec<_>>(), names.len())
}
