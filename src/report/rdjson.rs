//! Reviewdog's Diagnostic Format, as JSON (`rdjson`): for its reporters.
//!
//! It follows `proto/rdf/reviewdog.proto` of reviewdog: lines and columns from 1, columns in bytes,
//! the end excluded. A range without columns includes its last line. A message is Markdown, which
//! reviewdog posts unchanged.

use super::finding_text::{Level, TextPart, applicable, parts, placed};
use super::markdown::{added, item};
use super::words::{self, somewhere};
use crate::finding::{Finding, LineSpan, Location};
use crate::review::Review;
use crate::text::one_line;
use crate::untrusted::{self, Inert, clipped, code, markdown, prose};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Files named in the diagnostic about an incomplete review.
const NAMES: usize = 20;
/// Bytes of a path in that diagnostic, at most.
const PATH: usize = 300;

/// Writes the result, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    crate::wire::write(&result(review), out)
}

/// Returns the document: the severity of the review, its source and the diagnostics.
fn result(review: &Review) -> Value {
    let fallback = somewhere(review);
    let counting = review.findings.iter().filter(|f| f.counts());
    let whole = of_the_whole(review);
    let worst = counting
        .clone()
        .map(Level::of)
        .chain(whole.iter().map(|(level, ..)| *level))
        .min();
    let mut diagnostics = Vec::new();
    if !review.coverage.is_complete() {
        let failed = review.coverage.failed.iter().find_map(|f| f.file.clone());
        let at = failed
            .map(|file| Location { file, lines: None })
            .or_else(|| fallback.clone());
        diagnostics.push(diagnostic(
            &unreviewed(review),
            at.as_ref(),
            Level::Error,
            "incomplete-review",
        ));
    }
    let at = fallback.as_ref();
    diagnostics.extend(
        whole
            .iter()
            .map(|(level, code, text)| diagnostic(&item(text), at, *level, code)),
    );
    let unlisted = words::unlisted(review).map(|text| prose(&text));
    diagnostics
        .extend(unlisted.map(|text| diagnostic(&text, at, Level::Notice, "findings-not-listed")));
    diagnostics.extend(counting.map(|f| finding(f, review, at)));
    let incomplete = (!review.coverage.is_complete()).then_some(Level::Error);
    let home = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")]
        .into_iter()
        .find(|u| !u.is_empty());
    let mut source = Map::from_iter([("name".to_owned(), json!(crate::NAME))]);
    source.extend(home.map(|url| ("url".to_owned(), json!(url))));
    json!({
        "source": source,
        "severity": severity(incomplete.or(worst).unwrap_or(Level::Notice)),
        "diagnostics": diagnostics.into_iter().map(Value::Object).collect::<Vec<_>>(),
    })
}

/// Returns remarks on the whole review: failed tests, and a limit that truncated it.
fn of_the_whole(review: &Review) -> Vec<(Level, &'static str, String)> {
    let level = if words::tests_block(review) {
        Level::Error
    } else {
        Level::Warning
    };
    let tests = words::failed_tests(review, NAMES).map(|text| (level, "tests-failed", text));
    let cut = words::truncated(review).map(|text| (Level::Warning, "review-cut-short", text));
    tests.into_iter().chain(cut).collect()
}

/// Returns the list of files that were not reviewed, in Markdown.
fn unreviewed(review: &Review) -> String {
    let failed = &review.coverage.failed;
    let mut out = "The review is incomplete.\n".to_owned();
    for f in failed.iter().take(NAMES) {
        let path = f
            .file
            .as_ref()
            .map(|p| code(clipped(Inert::new(p.as_bytes()).as_str(), PATH).as_bytes()) + ": ");
        let reason = Some(item(&f.reason()))
            .filter(|r| !r.is_empty())
            .unwrap_or_else(|| "unknown reason".to_owned());
        out.push_str(&format!("\n- {}{reason}", path.unwrap_or_default()));
    }
    if failed.len() > NAMES {
        out.push_str(&format!("\n- and {} more", failed.len() - NAMES));
    }
    out
}

/// Returns the text of a finding in Markdown.
fn said(f: &Finding, review: &Review) -> String {
    let paragraphs = parts(f, review).into_iter().map(|part| match part {
        TextPart::Text("", text) => prose(&text),
        TextPart::Text(label, text) => format!("**{}** {}", label.trim_end(), prose(&text)),
        TextPart::Code(code) if code.is_empty() => "Delete these lines.".to_owned(),
        TextPart::Code(code) => format!("Replace with:\n\n{}", added(&code).trim_end()),
    });
    let all: Vec<_> = paragraphs.filter(|p| !p.trim().is_empty()).collect();
    if all.is_empty() {
        rule(f.rule_id())
    } else {
        all.join("\n\n")
    }
}

/// Returns a rule's name, escaped for the text of a link: reviewdog writes it in front of the
/// message.
fn rule(id: &str) -> String {
    let is_name = id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if is_name {
        id.to_owned()
    } else {
        markdown(&one_line(id))
    }
}

/// Returns a diagnostic with a Markdown message, which must be escaped.
fn diagnostic(
    markdown: &str,
    at: Option<&Location>,
    level: Level,
    code: &str,
) -> Map<String, Value> {
    let mut d = Map::from_iter([("message".to_owned(), json!(markdown))]);
    d.extend(at.map(|at| ("location".to_owned(), location(at))));
    d.extend([
        ("severity".to_owned(), json!(severity(level))),
        ("code".to_owned(), json!({ "value": rule(code) })),
    ]);
    d
}

/// Returns the diagnostic of a finding. `fallback` is the position of findings without one.
fn finding(f: &Finding, review: &Review, fallback: Option<&Location>) -> Map<String, Value> {
    let own = placed(f, review);
    let at = own.as_ref().or(fallback);
    let mut d = diagnostic(&said(f, review), at, Level::of(f), f.rule_id());
    // Reviewdog puts the address between the parentheses of a Markdown link.
    let mut addresses = f.references().iter().filter(|r| r.starts_with("https://"));
    let url = addresses.find(|r| {
        r.bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~:/?#&+,;=%".contains(&b))
    });
    if let Some(url) = url {
        d.insert(
            "code".to_owned(),
            json!({ "value": rule(f.rule_id()), "url": url }),
        );
    }
    if let (Some(code), Some(lines)) = (applicable(f), own.as_ref().and_then(|l| l.lines)) {
        let whole = LineSpan {
            columns: None,
            ..lines
        };
        d.insert(
            "suggestions".to_owned(),
            json!([{ "range": range(whole), "text": code }]),
        );
    }
    let place = at.map(|at| {
        let line = at
            .lines
            .map(|l| format!(":{}", l.first))
            .unwrap_or_default();
        format!("{}{line}: ", Inert::new(at.file.as_bytes()))
    });
    let title = untrusted::plain(&untrusted::clipped(f.title(), 400)).replace('\n', " ");
    let line = format!(
        "{}{}: {title} [{}]",
        place.unwrap_or_default(),
        f.severity(),
        Inert::new(f.rule_id())
    );
    d.insert("original_output".to_owned(), json!(line));
    d
}

/// Returns a location: the path, and the range if lines are known.
fn location(at: &Location) -> Value {
    let path = untrusted::relative(&at.file.to_wire());
    match at.lines {
        Some(lines) => json!({ "path": path, "range": range(lines) }),
        None => json!({ "path": path }),
    }
}

/// Returns a range. Lines and columns are 1-based; columns count bytes, and the end is excluded.
fn range(lines: LineSpan) -> Value {
    let (first, last) = (lines.first.get(), lines.last.get());
    match lines
        .columns
        .filter(|(start, end)| first == last && start < end)
    {
        Some((start, end)) => {
            json!({ "start": { "line": first, "column": u64::from(start) + 1 }, "end": { "line": last, "column": u64::from(end) + 1 } })
        }
        None => json!({ "start": { "line": first }, "end": { "line": last } }),
    }
}

/// Returns the severity of a level in the terms of the format.
fn severity(level: Level) -> &'static str {
    match level {
        Level::Error => "ERROR",
        Level::Warning => "WARNING",
        Level::Notice => "INFO",
    }
}
