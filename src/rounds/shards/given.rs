//! Parses a JSON report that another job wrote. All of it is untrusted: the types are checked, and a
//! report that contradicts itself is rejected.

use crate::error::{Error, Result};
use crate::request::Shard;
use crate::wire::merging::ReportHeader;
use crate::wire::{self, Disposition, Outcome, SCHEMA_VERSION, Severity, Verdict};

/// A report, and the name of the file that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenReport {
    /// The name as the user gave it.
    pub file: String,
    pub report: wire::Report,
}

impl GivenReport {
    /// Parses the report in a file.
    ///
    /// # Errors
    ///
    /// Usage: the text is empty, truncated, not JSON, another document, of another version of the
    /// format, or contradicts itself.
    pub fn parse(file: &str, text: &[u8]) -> Result<Self> {
        let header: ReportHeader =
            serde_json::from_slice(text).map_err(|e| not_json(file, text, &e))?;
        refuse_other_version(file, &header)?;
        let report: wire::Report = serde_json::from_slice(text).map_err(|e| {
            invalid(file, "not a report as `--format json` writes it").caused_by(&e)
        })?;
        if let Some(why) = contradiction(&report) {
            return Err(invalid(file, &format!("it contradicts itself: {why}"))
                .hint("write the report again; a report must not be edited"));
        }
        Ok(Self {
            file: file.to_owned(),
            report,
        })
    }

    /// Returns the shard; `None` for a report of a whole review.
    pub fn shard(&self) -> Option<Shard> {
        let shard = self.report.shard?;
        Shard::new(shard.index, shard.of)
    }
}

/// Returns the error about a report that cannot be used.
fn invalid(file: &str, why: &str) -> Error {
    Error::usage(format!("cannot read the report {file}: {why}"))
}

/// Returns the error about a text that is not JSON.
fn not_json(file: &str, text: &[u8], e: &serde_json::Error) -> Error {
    let again = "write the report again: claude-reviewer review … --format json --output FILE";
    if text.trim_ascii().is_empty() {
        return invalid(file, "it is empty").hint_person(again);
    }
    let why = match e.classify() {
        serde_json::error::Category::Eof => {
            format!("it is truncated after {} bytes", text.len())
        }
        _ => format!("not JSON: {e}"),
    };
    invalid(file, &why).hint_person(again)
}

/// Rejects documents of other programs, and of other versions of the format.
fn refuse_other_version(file: &str, header: &ReportHeader) -> Result<()> {
    let name = header.tool.as_ref().and_then(|t| t.get("name"));
    if name.and_then(|n| n.as_str()) != Some(crate::NAME) {
        return Err(
            invalid(file, "not a report of claude-reviewer in the format json")
                .hint_person("claude-reviewer review … --format json --output FILE"),
        );
    }
    let version = header.schema_version.as_ref();
    if version.and_then(serde_json::Value::as_u64) == Some(SCHEMA_VERSION.into()) {
        return Ok(());
    }
    let stated = version.map_or("none".to_owned(), ToString::to_string);
    Err(invalid(
        file,
        &format!("its schema_version is {stated}, and this version reads {SCHEMA_VERSION}"),
    )
    .hint_person("use one version of claude-reviewer for the reviews and for the merge"))
}

/// Returns how a report contradicts itself; `None` if it does not. A report whose verdict is better
/// than its content must not open a gate.
fn contradiction(report: &wire::Report) -> Option<String> {
    let blocks = report.findings.iter().any(|f| f.blocking);
    let failed = !report.coverage.failed.is_empty();
    let verdict = report.verdict;
    if let Some(shard) = report.shard
        && Shard::new(shard.index, shard.of).is_none()
    {
        return Some(format!("there is no shard {}/{}", shard.index, shard.of));
    }
    if blocks && verdict != Verdict::Block {
        return Some("a finding blocks, and the verdict is not block".to_owned());
    }
    if failed && !matches!(verdict, Verdict::Block | Verdict::Incomplete) {
        return Some("a part was not reviewed, and the verdict does not say so".to_owned());
    }
    if verdict == Verdict::Incomplete && !failed {
        return Some("the verdict is incomplete, and no part is named".to_owned());
    }
    if report.outcome == Outcome::NothingToReview && !report.findings.is_empty() {
        return Some("nothing was reviewed, and there are findings".to_owned());
    }
    wrong_exit(report)
        .or_else(|| wrong_totals(report))
        .or_else(|| wrong_facts(report))
}

/// Returns why the exit code is not one of the verdict.
fn wrong_exit(report: &wire::Report) -> Option<String> {
    let ended = report.outcome == Outcome::Cancelled && matches!(report.exit_code, 130 | 143);
    let fits = match report.verdict {
        Verdict::Pass | Verdict::Warn => report.exit_code == 0,
        Verdict::Block => report.exit_code <= 1,
        Verdict::Incomplete => matches!(report.exit_code, 0 | 3),
    };
    let why = || {
        let verdict = wire::name(&report.verdict);
        format!(
            "the exit code is {}, and the verdict {verdict}",
            report.exit_code
        )
    };
    (!fits && !ended).then(why)
}

/// Returns why the totals are not those of the listed and unlisted findings.
fn wrong_totals(report: &wire::Report) -> Option<String> {
    let s = &report.summary;
    let unlisted = s.unlisted.clone().unwrap_or_default();
    let severities = [
        (Severity::Critical, s.critical, unlisted.critical),
        (Severity::Major, s.major, unlisted.major),
        (Severity::Minor, s.minor, unlisted.minor),
        (Severity::Suggestion, s.suggestion, unlisted.suggestion),
    ];
    for (severity, stated, unlisted) in severities {
        let counting = report.findings.iter().filter(|f| f.counts());
        let listed = counting.filter(|f| f.severity == severity).count();
        if listed.checked_add(unlisted) != Some(stated) {
            let name = wire::name(&severity);
            return Some(format!("the summary counts {stated} {name} findings"));
        }
    }
    let is_undecided =
        |f: &&wire::Finding| f.disposition != Disposition::Pending && f.decided.is_none();
    let undecided = report.findings.iter().find(is_undecided);
    undecided.map(|f| format!("the decision on {} is missing", f.id))
}

/// Returns why the facts for the merge do not belong to the report.
fn wrong_facts(report: &wire::Report) -> Option<String> {
    match (&report.merge, report.shard) {
        (None, None) => None,
        (None, Some(_)) => Some("the report of a shard lacks `merge`".to_owned()),
        (Some(_), None) => Some("it has `merge`, and is not of a shard".to_owned()),
        (Some(facts), Some(_)) => (facts.findings.len() != report.findings.len())
            .then(|| "`merge` has another number of findings".to_owned()),
    }
}
