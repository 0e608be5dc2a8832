//! Formats an earlier round as text for a prompt. The prompt code adds the fences. Pure.
//!
//! A round has the same text in every later round, so that cached replies can be reused.

use crate::request::Previous;
use crate::text::one_line;
use crate::wire::Finding;
use crate::wire::stored::{Response, Review};
use std::fmt::Write as _;

/// Bytes of all findings, of the response, of the author's summary; of a message; of each item of
/// the coder, at most.
const FOUND: usize = 6 << 10;
const ANSWER: usize = 4 << 10;
const SUMMARY: usize = 3 << 10;
const MESSAGE: usize = 400;
const SAID: usize = 1_000;
/// Findings, and items of the coder, at most.
const FINDINGS: usize = 50;
const ITEMS: usize = 30;

/// Formats the input of a follow-up round: the findings of the previous round, the coder's
/// response, and the author's summary of this round. All texts are as stored, with secrets masked.
pub fn round(before: &Review, response: Option<&Response>, summary: Option<&str>) -> Previous {
    let mut out = format!("Findings of round {}:\n", before.round);
    let all: Vec<&Finding> = before
        .report
        .findings
        .iter()
        .filter(|f| f.counts())
        .collect();
    // The most severe first; otherwise in their order.
    let mut order = all.clone();
    order.sort_by_key(|f| (!f.blocking, f.severity as u8));
    for f in order.iter().take(FINDINGS) {
        finding(f, &mut out);
    }
    out = cut(out, FOUND);
    match all.len() {
        0 => out.push_str("none\n"),
        n if n > FINDINGS => out.push_str(&format!("and {} more\n", n - FINDINGS)),
        _ => {}
    }
    if let Some(r) = response {
        let mut answer = String::new();
        answered(r, &mut answer);
        out.push_str(&cut(answer, ANSWER));
    }
    if let Some(text) = summary.filter(|s| !s.trim().is_empty()) {
        let _ = writeln!(
            out,
            "Summary of round {} by the author: {}",
            before.round + 1,
            line(text, SUMMARY)
        );
    }
    let all = &before.report.findings;
    let explained = response
        .iter()
        .flat_map(|r| &r.explanations)
        .filter_map(|e| e.finding.as_deref());
    let explained: Vec<&Finding> = explained
        .flat_map(|name| all.iter().filter(move |f| names(name, f)))
        .collect();
    let mut files: Vec<String> = explained.iter().filter_map(|f| f.file.clone()).collect();
    files.sort();
    files.dedup();
    Previous {
        text: out,
        explained: files,
        all: explained.iter().any(|f| f.file.is_none()),
    }
}

/// Returns true if a coder's name of a finding matches: its ID, or a prefix of its fingerprint.
pub(super) fn names(name: &str, f: &Finding) -> bool {
    name.trim().eq_ignore_ascii_case(&f.id) || is_start(name, f)
}

/// Returns true if a coder's name of a finding is a prefix of its fingerprint.
pub(super) fn is_start(name: &str, f: &Finding) -> bool {
    let name = name.trim();
    name.len() >= 8
        && f.fingerprint
            .get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Writes a finding as a list item.
fn finding(f: &Finding, out: &mut String) {
    let place = match (&f.file, f.line) {
        (Some(file), Some(line)) => format!("{}:{line}", line_of(file)),
        (Some(file), None) => line_of(file),
        (None, _) => "the change as a whole".to_owned(),
    };
    let disputed = if f.disputed.is_some() {
        ", disputed"
    } else {
        ""
    };
    let severity = format!("{:?}", f.severity).to_lowercase();
    let _ = writeln!(
        out,
        "- {} {place} {severity}{disputed}: {}",
        f.id,
        line(&f.title, MESSAGE)
    );
    if !f.message.trim().is_empty() && f.message != f.title {
        let _ = writeln!(out, "  {}", line(&f.message, MESSAGE));
    }
}

/// Writes the response to a round.
fn answered(r: &Response, out: &mut String) {
    list(
        "Addressed according to the author",
        r.addressed.iter().map(|a| line(a, SAID)),
        out,
    );
    let explained = r.explanations.iter().map(|e| match &e.finding {
        Some(name) => format!("{}: {}", line(name, SAID), line(&e.text, SAID)),
        None => line(&e.text, SAID),
    });
    list("Explanations of the author", explained, out);
    list(
        "Files changed by the author",
        r.modified_files.iter().map(|f| line(f, SAID)),
        out,
    );
    list(
        "Questions of the author",
        r.questions.iter().map(|q| line(q, SAID)),
        out,
    );
    if let Some(text) = &r.text {
        list(
            "Comment of the author",
            std::iter::once(line(text, SAID * 2)),
            out,
        );
    }
}

/// Appends a heading and the items that are not empty.
fn list(head: &str, items: impl Iterator<Item = String>, out: &mut String) {
    let items: Vec<String> = items.take(ITEMS).filter(|i| !i.is_empty()).collect();
    if !items.is_empty() {
        let _ = writeln!(out, "{head}:");
        items.iter().for_each(|i| out.push_str(&format!("- {i}\n")));
    }
}

/// Formats an author's text on one line.
fn line_of(text: &str) -> String {
    line(text, SAID)
}

/// Formats a text on one line of at most `most` bytes.
fn line(text: &str, most: usize) -> String {
    cut(one_line(text), most)
}

/// Truncates a text; one that ended with a newline still does.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        let lines = text.ends_with('\n');
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
        if lines {
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests;
