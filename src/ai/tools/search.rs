//! `search`: lines that match a pattern.
//!
//! Matches are evaluated on the redacted text, so that a pattern cannot probe for a secret. The raw
//! bytes only determine whether a file is worth redacting. The `regex` crate guarantees linear time
//! for any pattern.

use super::page::{ResultPage, cut};
use super::{argument, list};
use crate::ai::tree::{Tree, Unread};
use crate::diff::LineNo;
use regex::{RegexBuilder, bytes};
use serde_json::Value;

/// Bytes of a pattern, at most.
const MAX_PATTERN: usize = 1_000;
/// Bytes of a compiled pattern, at most.
const MAX_COMPILED: usize = 1 << 20;
/// Bytes that one search reads, at most.
const MAX_BYTES: usize = 48 << 20;
/// Bytes that one search redacts, at most.
const MAX_SHOWN: usize = 8 << 20;
/// Lines in a result, at most.
const MAX_LINES: usize = 120;
/// Lines of one file in a result, at most.
const MAX_LINES_OF_FILE: usize = 25;
/// Bytes of a line in a result, at most.
const MAX_LINE: usize = 300;

/// A compiled pattern.
struct Pattern {
    line: regex::Regex,
    /// Pattern that matches a file if one of its lines may match; `None` if no such pattern can be
    /// derived.
    file: Option<bytes::Regex>,
    /// Reason why the pattern is searched for literally, if it is.
    literal: Option<String>,
}

impl Pattern {
    fn new(given: &str) -> Result<Self, String> {
        let (source, line, literal) = match compiled(given) {
            Ok(line) => (given.to_owned(), line, None),
            Err(e) => {
                let source = regex::escape(given);
                let line = compiled(&source).map_err(|_| "the pattern is too long".to_owned())?;
                (source, line, Some(reason(&e)))
            }
        };
        let file = bytes::RegexBuilder::new(&source)
            .multi_line(true)
            .crlf(true)
            .size_limit(4 * MAX_COMPILED)
            .dfa_size_limit(4 * MAX_COMPILED)
            .build()
            .ok()
            .filter(|_| is_same_in_a_file(&source));
        Ok(Self {
            line,
            file,
            literal,
        })
    }
}

/// Compiles a pattern within the size limits.
fn compiled(pattern: &str) -> Result<regex::Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build()
}

/// Returns true if a pattern that matches a redacted line also matches the raw file. This does not
/// hold for patterns that contain text anchors or flags, or that can match a placeholder or an
/// escape.
fn is_same_in_a_file(source: &str) -> bool {
    let flags = source.replace("(?i)", "").replace("(?:", "");
    !["\\A", "\\z", "(?", "<secret", "u{", "u\\{", "x{"]
        .iter()
        .any(|s| flags.contains(s))
}

/// Describes the error in a pattern in one line.
fn reason(e: &regex::Error) -> String {
    match e {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        other => other
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned(),
    }
}

/// The state of a search.
#[derive(Default)]
struct SearchTally {
    bytes: usize,
    redacted: usize,
    files: usize,
    lines: usize,
    /// Files of which not all matches are in the result.
    cut: usize,
    unread: usize,
    /// Files that could not be read.
    failed: usize,
    /// Files that were not read because of the limits of one search.
    late: usize,
}

pub(super) fn call(
    tree: &Tree<'_>,
    arguments: &Value,
    mut page: ResultPage,
) -> Result<ResultPage, String> {
    let given = argument::string(arguments, "pattern")?;
    if given.trim().is_empty() {
        return Err(
            "pattern is missing: give a regular expression that one line matches".to_owned(),
        );
    }
    if given.len() > MAX_PATTERN {
        return Err(format!(
            "the pattern is longer than {MAX_PATTERN} bytes: search for less"
        ));
    }
    let pattern = Pattern::new(given)?;
    let glob = argument::string(arguments, "glob")?.trim();
    let files = list::matching(tree, glob)?;
    if files.is_empty() {
        return Err(format!(
            "no file matches the glob {}; an empty one searches everywhere",
            argument::shown(tree, glob)
        ));
    }
    if let Some(why) = &pattern.literal {
        let _ = page.say(&format!(
            "(not a valid regular expression, {why}: searched as plain text)"
        ));
    }
    let mut seen = SearchTally::default();
    let mut room = true;
    for (at, path) in files.iter().enumerate() {
        if !room || seen.bytes > MAX_BYTES || seen.redacted > MAX_SHOWN || seen.lines >= MAX_LINES {
            seen.late = files.len() - at;
            break;
        }
        let bytes = match tree.bytes(path) {
            Ok(bytes) => bytes,
            Err(Unread::Exhausted) => {
                seen.late = files.len() - at;
                break;
            }
            Err(Unread::Failed(_)) => {
                seen.failed += 1;
                continue;
            }
            Err(_) => {
                seen.unread += 1;
                continue;
            }
        };
        seen.bytes += bytes.len();
        seen.files += 1;
        if pattern.file.as_ref().is_some_and(|p| !p.is_match(&bytes)) {
            continue;
        }
        seen.redacted += bytes.len();
        let text = tree.show(path, &bytes);
        let mut hits = (1u32..)
            .zip(text.lines())
            .filter(|(_, line)| pattern.line.is_match(line))
            .peekable();
        if hits.peek().is_none() {
            continue;
        }
        room = page.say(&format!("{}:", tree.name(path)));
        for (shown, (n, line)) in hits.enumerate() {
            let full = shown >= MAX_LINES_OF_FILE || seen.lines >= MAX_LINES;
            room = room
                && (full
                    || LineNo::new(n)
                        .is_some_and(|n| page.show(path, n, &around(&pattern.line, line))));
            if full || !room {
                seen.cut += 1;
                break;
            }
            seen.lines += 1;
        }
    }
    page.close(&summary(&seen));
    Ok(page)
}

/// Returns a line, or the part of a long line around its match.
fn around(pattern: &regex::Regex, line: &str) -> String {
    let at = match pattern.find(line) {
        Some(m) if line.len() > MAX_LINE && m.start() > MAX_LINE / 2 => {
            line.floor_char_boundary(m.start() - MAX_LINE / 4)
        }
        _ => 0,
    };
    let dots = if at > 0 { "… " } else { "" };
    format!("{dots}{}", cut(&line[at..], MAX_LINE))
}

fn summary(seen: &SearchTally) -> String {
    let mut out = match (seen.lines, seen.late) {
        (0, 0) => format!("no line matches in {} files that were searched", seen.files),
        (n, _) => format!(
            "({n} lines shown of {} files that were searched",
            seen.files
        ),
    };
    if seen.unread > 0 {
        out += &format!("; {} binary or too large files skipped", seen.unread);
    }
    if seen.failed > 0 {
        out += &format!("; {} files could not be read", seen.failed);
    }
    if seen.cut > 0 {
        out += &format!("; {} files have more matches: search for less", seen.cut);
    }
    if seen.late > 0 {
        out += &format!("; {} files were not searched: give a glob", seen.late);
    }
    if out.starts_with('(') { out + ")" } else { out }
}
