//! JSON Lines: a line about the review, one for each finding, and one with the verdict.
//!
//! A finding is printed when it is final. For a tree that only the rules review, that is when its
//! file has been scanned: each file is judged by itself, and nothing that is found later changes
//! the finding. For other reviews, it is when the review is finished.

use super::json;
use super::names::SecretNames;
use crate::finding::listing::Effect;
use crate::finding::{Finding, Severity};
use crate::policy::Policy;
use crate::review::{FindingSink, Review, ReviewStart};
use crate::wire::stream::{ReportLine, ReportStart};
use crate::wire::{self, UnlistedCounts, mapping};
use std::collections::HashMap;
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
    /// Number of written findings.
    written: usize,
    /// The policy that judges the findings which are printed before the review is finished.
    judged_by: Option<Policy>,
    /// Findings that were printed before the review was finished, by what identifies them.
    early: HashMap<String, EarlyFinding>,
    /// The first error. Nothing is written after it.
    failed: Option<io::Error>,
}

/// Findings that were printed before the review was finished and have one key.
struct EarlyFinding {
    /// Number of findings that are not in the finished review, as far as it was compared.
    left: usize,
    severity: Severity,
    effect: Effect,
    counts: bool,
}

impl EarlyFinding {
    /// Subtracts the findings from the numbers of those that are not printed.
    fn subtract_from(&self, unlisted: &mut UnlistedCounts) {
        let less = |n: &mut usize| *n = n.saturating_sub(self.left);
        if self.effect == Effect::Suppressed {
            less(&mut unlisted.suppressed);
        }
        if !self.counts {
            return;
        }
        less(match self.severity {
            Severity::Critical => &mut unlisted.critical,
            Severity::Major => &mut unlisted.major,
            Severity::Minor => &mut unlisted.minor,
            Severity::Suggestion => &mut unlisted.suggestion,
        });
        match self.effect {
            Effect::Blocks => less(&mut unlisted.blocking),
            Effect::Warns => less(&mut unlisted.warning),
            Effect::Counts | Effect::Suppressed => {}
        }
    }
}

impl<W: Write> JsonLines<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            has_start: false,
            written: 0,
            judged_by: None,
            early: HashMap::new(),
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
        self.judged_by = Some(start.judged_by.clone());
        self.line(&ReportLine::Start(first(start)), &SecretNames::default());
    }

    /// Writes a finding.
    fn finding(&mut self, finding: &Finding, names: &SecretNames) {
        let finding = mapping::finding(self.written, finding);
        self.written += 1;
        self.line(&ReportLine::Finding { finding }, names);
    }

    /// Writes findings before the review is finished.
    fn findings(&mut self, findings: &[Finding]) {
        let names = SecretNames::of_findings(findings);
        for finding in findings {
            self.finding(finding, &names);
            let thresholds = self
                .judged_by
                .as_ref()
                .map(|p| p.thresholds(finding.file()));
            let effect = thresholds.map(|t| t.effect_of(finding.severity()));
            let early = self.early.entry(key(finding)).or_insert(EarlyFinding {
                left: 0,
                severity: finding.severity(),
                effect: match finding.suppressed.is_some() {
                    true => Effect::Suppressed,
                    false => effect.unwrap_or(Effect::Counts),
                },
                counts: finding.counts(),
            });
            early.left += 1;
        }
    }

    /// Writes those findings of a finished review that are not written yet.
    fn rest(&mut self, findings: &[Finding]) {
        let names = SecretNames::of_findings(findings);
        for finding in findings {
            match self.early.get_mut(&key(finding)) {
                Some(early) if early.left > 0 => early.left -= 1,
                _ => self.finding(finding, &names),
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
            judged_by: &review.judged_by,
        });
        self.rest(&review.findings);
        let mut report = json::report(review);
        report.findings.clear();
        if let Some(unlisted) = &mut report.summary.unlisted {
            // More findings can be printed as they come than a report lists.
            self.early.values().for_each(|e| e.subtract_from(unlisted));
            if *unlisted == UnlistedCounts::default() {
                report.summary.unlisted = None;
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::arrange;
    use crate::report::sample::{clean, full};

    /// Returns the lines of a review whose findings `early` were printed before its end.
    fn lines(review: &Review, early: &[Finding]) -> Vec<ReportLine> {
        let mut out = Vec::new();
        let mut lines = JsonLines::new(&mut out);
        lines.start(&ReviewStart {
            source: &review.source,
            policy: &review.policy,
            rules_hash: &review.rules_hash,
            timestamp: review.timestamp,
            judged_by: &review.judged_by,
        });
        lines.findings(early);
        lines.finish(review).unwrap();
        let text = String::from_utf8(out).unwrap();
        let all = text.lines().map(|l| serde_json::from_str(l).unwrap());
        all.collect()
    }

    /// Returns the number of findings in the lines.
    fn printed(lines: &[ReportLine]) -> usize {
        let is_finding = |l: &&ReportLine| matches!(l, ReportLine::Finding { .. });
        lines.iter().filter(is_finding).count()
    }

    fn end(lines: &[ReportLine]) -> &wire::Report {
        match lines.last() {
            Some(ReportLine::End { report }) => report,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_line_counts_as_unlisted_what_was_not_printed() {
        let whole = full();
        let expected = json::report(&whole);
        for listed in 0..=whole.findings.len() {
            let mut review = full();
            for f in review.findings.split_off(listed) {
                let at = Severity::ALL.iter().position(|s| *s == f.severity());
                let effect = review.judged_by.thresholds(f.file());
                let effect = effect.effect_of(f.severity());
                if f.suppressed.is_some() {
                    review.unlisted.suppressed += 1;
                } else if f.counts() {
                    review.unlisted.counting[at.unwrap()] += 1;
                    review.unlisted.blocking[at.unwrap()] += usize::from(effect == Effect::Blocks);
                    review.unlisted.warning += usize::from(effect == Effect::Warns);
                }
            }
            // All were printed as they came.
            let all = lines(&review, &whole.findings);
            assert_eq!(printed(&all), whole.findings.len());
            assert_eq!(end(&all).summary.unlisted, None);
            assert_eq!(end(&all).summary.critical, expected.summary.critical);
            // None was.
            let few = lines(&review, &[]);
            assert_eq!(printed(&few), listed);
            let unlisted = json::report(&review).summary.unlisted;
            assert_eq!(end(&few).summary.unlisted, unlisted);
        }
    }

    #[test]
    fn findings_with_one_fingerprint_are_all_printed() {
        let mut review = clean();
        let first = full().findings.remove(0);
        review.findings = vec![first.clone(), first.clone(), first.clone()];
        assert_eq!(printed(&lines(&review, &[])), 3);
        assert_eq!(printed(&lines(&review, std::slice::from_ref(&first))), 3);
        let arranged = arrange(vec![first]);
        review.findings.clone_from(&arranged);
        assert_eq!(printed(&lines(&review, &arranged)), 1);
    }
}
