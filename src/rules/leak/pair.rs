//! The secret half of an AWS key pair, identified by the access key ID near it.
//!
//! The half is 40 characters of Base64 without a prefix or a checksum, and its name differs by
//! program. So it is identified by its position: within three lines of an access key ID.

use crate::rules::secret::{checksum, shape};
use std::ops::Range;

/// Lines above and below an access key ID that can contain the secret half.
const LINES: usize = 3;
/// Characters of a secret half.
const SECRET: usize = 40;
/// Characters of a session token, at least.
const SESSION: usize = 100;
const PREFIXES: [&[u8]; 4] = [b"AKIA", b"ASIA", b"ABIA", b"ACCA"];
/// Characters of an access key ID.
const ID: usize = 20;

/// Returns access key IDs: a prefix and 16 characters that are valid in an ID.
fn ids(text: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    // All four prefixes end with one of these, which are rarer than an `A`.
    for at in memchr::memmem::find_iter(text, b"IA").chain(memchr::memmem::find_iter(text, b"CA")) {
        let Some(start) = at.checked_sub(2) else {
            continue;
        };
        let Some(id) = text.get(start..start + ID) else {
            continue;
        };
        if PREFIXES.iter().any(|p| id.starts_with(p))
            && id
                .iter()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
            && start
                .checked_sub(1)
                .is_none_or(|i| !text[i].is_ascii_alphanumeric())
            && text
                .get(start + ID)
                .is_none_or(|b| !b.is_ascii_alphanumeric())
        {
            out.push(start..start + ID);
        }
    }
    out.sort_unstable_by_key(|r| r.start);
    out
}

/// Returns the secret halves and session tokens near access key IDs, and the IDs themselves.
/// Linear.
pub(super) fn find(text: &[u8]) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let ids = ids(text);
    let secrets = beside(text, &ids);
    (ids, secrets)
}

/// Returns the secret halves near access key IDs that contain an account number and were not typed
/// as an example. Linear.
pub(in crate::rules) fn live_halves(text: &[u8]) -> Vec<Range<usize>> {
    let mut ids = ids(text);
    ids.retain(|id| {
        let id = &text[id.clone()];
        checksum::aws_account(id) && std::str::from_utf8(id).is_ok_and(shape::is_random)
    });
    let mut halves = beside(text, &ids);
    halves.retain(|half| half.len() < SESSION);
    halves
}

fn beside(text: &[u8], ids: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut secrets = Vec::new();
    let (mut done, mut line_end) = (0, 0);
    for id in ids {
        // The IDs of one line share a window.
        if id.start < line_end {
            continue;
        }
        line_end = memchr::memchr(b'\n', &text[id.end..]).map_or(text.len(), |i| id.end + i);
        let start = lines_above(text, id.start, done).max(done);
        let end = lines_below(text, line_end);
        if start < end {
            runs(text, start..end, ids, &mut secrets);
            done = end;
        }
    }
    secrets
}

fn lines_above(text: &[u8], at: usize, floor: usize) -> usize {
    let floor = floor.min(at);
    memchr::memrchr_iter(b'\n', &text[floor..at])
        .nth(LINES)
        .map_or(floor, |i| floor + i + 1)
}

fn lines_below(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[at..])
        .nth(LINES)
        .map_or(text.len(), |i| at + i)
}

/// Returns the number of bytes of one Base64 character at the start of a text, because `/` may be
/// escaped.
fn sign(text: &[u8]) -> usize {
    match text {
        [b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/', ..] => 1,
        [b'\\', b'/', ..] => 2,
        [b'%', b'2', b'f' | b'F' | b'b' | b'B', ..] => 3,
        [b'\\', b'u', b'0', b'0', b'2', b'f' | b'F' | b'b' | b'B', ..] => 6,
        _ => 0,
    }
}

fn runs(text: &[u8], window: Range<usize>, ids: &[Range<usize>], out: &mut Vec<Range<usize>>) {
    let mut at = window.start;
    let mut id = ids.partition_point(|i| i.end <= at);
    while at < window.end {
        while ids.get(id).is_some_and(|i| i.end <= at) {
            id += 1;
        }
        if let Some(known) = ids.get(id).filter(|i| i.start <= at) {
            at = known.end;
            continue;
        }
        let stop = ids.get(id).map_or(window.end, |i| i.start.min(window.end));
        let (start, mut count) = (at, 0);
        while at < stop {
            let length = sign(&text[at..window.end]);
            if length == 0 {
                break;
            }
            at += length;
            count += 1;
        }
        if count == 0 {
            at += 1;
            continue;
        }
        let run = trimmed(text, start..at, count);
        if is_half(&text[run.0.clone()], run.1) {
            out.push(run.0);
        }
    }
}

/// Removes a slash that separates the ID from its secret.
fn trimmed(text: &[u8], run: Range<usize>, count: usize) -> (Range<usize>, usize) {
    let (first, last) = (text[run.start], text[run.end - 1]);
    match count.checked_sub(SECRET) {
        Some(1) if matches!(first, b'/' | b'+') => (run.start + 1..run.end, SECRET),
        Some(1) if matches!(last, b'/' | b'+') => (run.start..run.end - 1, SECRET),
        _ => (run, count),
    }
}

fn is_half(run: &[u8], count: usize) -> bool {
    if count != SECRET && count < SESSION {
        return false;
    }
    let part = String::from_utf8_lossy(&run[..run.len().min(256)]);
    // A commit ID has 40 hexadecimal digits of one case.
    let is_mixed = part.bytes().any(|b| b.is_ascii_lowercase())
        && part.bytes().any(|b| b.is_ascii_uppercase());
    is_mixed && shape::wordiness(&part) < 0.6
}
