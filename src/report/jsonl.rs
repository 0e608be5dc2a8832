//! JSON Lines: a line about the review, one for each finding, and one with the verdict.
//!
//! A finding is printed when it is final. For a tree that only the rules review, that is when its
//! file has been scanned: each file is judged by itself, and nothing that is found later changes
//! the finding. For other reviews, it is when the review is finished.

use super::json;
use super::names::SecretNames;
use crate::finding::Finding;
use crate::review::{FindingSink, Review, ReviewStart};
use crate::wire::stream::{ReportLine, ReportStart};
use crate::wire::{self, mapping};
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Writes all lines of a finished review.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = JsonLines::new(&mut *out);
    lines.finish(review)?;
    out.flush()
}

/// Writes lines, and knows which findings it has written.
struct JsonLines<W> {
    out: W,
    has_start: bool,
    /// Fingerprints of the written findings, with their commits.
    written: HashSet<String>,
    /// The first error. Nothing is written after it.
    failed: Option<io::Error>,
}

impl<W: Write> JsonLines<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            has_start: false,
            written: HashSet::new(),
            failed: None,
        }
    }

    /// Writes one line with a line end.
    fn line(&mut self, line: &ReportLine, names: &SecretNames) {
        if self.failed.is_some() {
            return;
        }
        let written = wire::line(line).and_then(|mut bytes| {
            bytes.push(b'\n');
            names.write(&bytes, &mut self.out)
        });
        self.failed = written.err();
    }

    /// Writes the first line, unless it is written.
    fn start(&mut self, start: &ReviewStart<'_>) {
        if std::mem::replace(&mut self.has_start, true) {
            return;
        }
        self.line(&ReportLine::Start(first(start)), &SecretNames::default());
    }

    /// Writes the findings that are not written yet.
    fn findings(&mut self, findings: &[Finding]) {
        let names = SecretNames::of_findings(findings);
        for finding in findings {
            if self.written.insert(key(finding)) {
                let finding = mapping::finding(self.written.len() - 1, finding);
                self.line(&ReportLine::Finding { finding }, &names);
            }
        }
    }

    /// Writes the lines that are left, and the last one.
    fn finish(&mut self, review: &Review) -> io::Result<()> {
        self.start(&ReviewStart {
            source: &review.source,
            policy: &review.policy,
            rules_hash: &review.rules_hash,
            timestamp: review.timestamp,
        });
        self.findings(&review.findings);
        let mut report = json::report(review);
        report.findings.clear();
        self.line(&ReportLine::End { report }, &SecretNames::of(review));
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// Prints lines to standard output while the review runs.
#[derive(Default)]
pub struct JsonLinesPrinter {
    lines: Mutex<Option<JsonLines<io::Stdout>>>,
}

impl std::fmt::Debug for JsonLinesPrinter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonLinesPrinter").finish_non_exhaustive()
    }
}

impl JsonLinesPrinter {
    /// Does work with the lines, and flushes what it wrote: a reader gets whole lines at once.
    fn with(&self, work: impl FnOnce(&mut JsonLines<io::Stdout>)) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines.get_or_insert_with(|| JsonLines::new(io::stdout()));
        work(lines);
        if let (None, Err(e)) = (&lines.failed, lines.out.flush()) {
            lines.failed = Some(e);
        }
    }

    /// Prints what is left of a finished review.
    ///
    /// # Errors
    /// A line could not be written.
    pub fn finish(&self, review: &Review) -> io::Result<()> {
        let mut result = Ok(());
        self.with(|lines| result = lines.finish(review));
        result
    }
}

impl FindingSink for JsonLinesPrinter {
    fn start(&self, start: &ReviewStart<'_>) {
        self.with(|lines| lines.start(start));
    }

    fn found(&self, findings: &[Finding]) {
        self.with(|lines| lines.findings(findings));
    }
}

/// Returns what identifies a finding in a review.
fn key(finding: &Finding) -> String {
    let commit = finding.commit.map(|id| id.to_string()).unwrap_or_default();
    format!("{}{commit}", finding.fingerprint())
}

/// Returns the first line.
fn first(start: &ReviewStart<'_>) -> ReportStart {
    ReportStart {
        schema_version: wire::SCHEMA_VERSION,
        tool: json::tool(start.rules_hash),
        timestamp: start.timestamp.to_string(),
        source: start.source.into(),
        shard: start.source.shard.map(Into::into),
        policy: start.policy.into(),
    }
}
