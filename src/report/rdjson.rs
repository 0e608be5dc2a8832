//! Reviewdog's Diagnostic Format, as JSON (`rdjson`): for its reporters.
//!
//! Shaped by `proto/rdf/reviewdog.proto` of reviewdog: lines and columns from 1, columns in bytes, the end excluded; a
//! range without columns takes in its last line.

use super::words::{Level, applicable, paragraphs, placed, somewhere, unreviewed};
use crate::finding::{Finding, LineSpan, Location};
use crate::review::Review;
use crate::untrusted::{self, Inert};
use serde_json::{Map, Value, json};
use std::io::{self, Write};

/// Names of what was not reviewed, in the one diagnostic that tells of it.
const NAMES: usize = 20;

/// Writes the result, indented, with a line end.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    crate::wire::write(&result(review), out)
}

fn result(review: &Review) -> Value {
    let fallback = somewhere(review);
    let counting = || review.findings.iter().filter(|f| f.counts());
    let worst = counting().map(Level::of).min();
    let mut diagnostics = Vec::new();
    if !review.coverage.is_complete() {
        let failed = review.coverage.failed.iter().find_map(|(p, _)| p.clone());
        let at = failed.map(|file| Location { file, lines: None }).or_else(|| fallback.clone());
        let text = format!("The review is incomplete.\n{}", unreviewed(review, NAMES).join("\n"));
        diagnostics.push(diagnostic(&text, at.as_ref(), Level::Error, "incomplete-review"));
    }
    diagnostics.extend(counting().map(|f| finding(f, review, fallback.as_ref())));
    let incomplete = (!review.coverage.is_complete()).then_some(Level::Error);
    let home = [env!("CARGO_PKG_HOMEPAGE"), env!("CARGO_PKG_REPOSITORY")].into_iter().find(|u| !u.is_empty());
    let mut source = Map::from_iter([("name".to_owned(), json!(env!("CARGO_PKG_NAME")))]);
    source.extend(home.map(|url| ("url".to_owned(), json!(url))));
    json!({
        "source": source,
        "severity": severity(incomplete.or(worst).unwrap_or(Level::Notice)),
        "diagnostics": diagnostics.into_iter().map(Value::Object).collect::<Vec<_>>(),
    })
}

fn diagnostic(text: &str, at: Option<&Location>, level: Level, code: &str) -> Map<String, Value> {
    let mut d = Map::from_iter([("message".to_owned(), json!(untrusted::plain(text)))]);
    d.extend(at.map(|at| ("location".to_owned(), location(at))));
    d.extend([
        ("severity".to_owned(), json!(severity(level))),
        ("code".to_owned(), json!({ "value": untrusted::plain(code) })),
    ]);
    d
}

fn finding(f: &Finding, review: &Review, fallback: Option<&Location>) -> Map<String, Value> {
    let own = placed(f, review);
    let at = own.as_ref().or(fallback);
    let mut d = diagnostic(&paragraphs(f, review).join("\n"), at, Level::of(f), f.rule_id());
    let address = |r: &&String| r.starts_with("https://") && r.bytes().all(|b| b.is_ascii_graphic());
    if let Some(url) = f.references().iter().find(address) {
        d.insert("code".to_owned(), json!({ "value": untrusted::plain(f.rule_id()), "url": url }));
    }
    if let (Some(code), Some(lines)) = (applicable(f), own.as_ref().and_then(|l| l.lines)) {
        let whole = LineSpan { columns: None, ..lines };
        d.insert("suggestions".to_owned(), json!([{ "range": range(whole), "text": code }]));
    }
    let place = at.map(|at| {
        let line = at.lines.map(|l| format!(":{}", l.first)).unwrap_or_default();
        format!("{}{line}: ", Inert::new(at.file.as_bytes()))
    });
    let title = untrusted::plain(&untrusted::clipped(f.title(), 400)).replace('\n', " ");
    let line = format!("{}{}: {title} [{}]", place.unwrap_or_default(), f.severity(), Inert::new(f.rule_id()));
    d.insert("original_output".to_owned(), json!(line));
    d
}

fn location(at: &Location) -> Value {
    let path = untrusted::relative(&at.file.to_wire());
    match at.lines {
        Some(lines) => json!({ "path": path, "range": range(lines) }),
        None => json!({ "path": path }),
    }
}

fn range(lines: LineSpan) -> Value {
    let (first, last) = (lines.first.get(), lines.last.get());
    match lines.columns.filter(|(start, end)| first == last && start < end) {
        Some((start, end)) => {
            json!({ "start": { "line": first, "column": start + 1 }, "end": { "line": last, "column": end + 1 } })
        }
        None => json!({ "start": { "line": first }, "end": { "line": last } }),
    }
}

fn severity(level: Level) -> &'static str {
    match level {
        Level::Error => "ERROR",
        Level::Warning => "WARNING",
        Level::Notice => "INFO",
    }
}
