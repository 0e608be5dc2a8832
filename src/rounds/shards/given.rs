//! Parses a JSON report that another job wrote. All of it is untrusted: the types are checked, and a
//! report that contradicts itself is rejected.

use super::{contradiction, plausible};
use crate::error::{Error, Result};
use crate::request::Shard;
use crate::wire::merging::ReportHeader;
use crate::wire::{self, SCHEMA_VERSION};

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
    /// format, has a number that no review has, or contradicts itself.
    pub fn parse(file: &str, text: &[u8]) -> Result<Self> {
        let header: ReportHeader =
            serde_json::from_slice(text).map_err(|e| not_json(file, text, &e))?;
        refuse_other_version(file, &header)?;
        let report: wire::Report =
            serde_json::from_slice(text).map_err(|e| not_a_report(file, &header).caused_by(&e))?;
        if let Some(name) = plausible::too_large(&report) {
            let why = format!("the number `{name}` is too large or negative");
            return Err(
                invalid(file, &why).hint("write the report again; a report must not be edited")
            );
        }
        if let Some(why) = contradiction::of(&report) {
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
    if text.starts_with(br#"{"type":"start""#) {
        return invalid(
            file,
            "it has the format jsonl, and the format json is needed",
        )
        .hint_person(again);
    }
    let why = match e.classify() {
        serde_json::error::Category::Eof => {
            format!("it is truncated after {} bytes", text.len())
        }
        _ => format!("not JSON: {e}"),
    };
    invalid(file, &why).hint_person(again)
}

/// Returns the error about a document that lacks parts of a report. Another version of the program
/// can have other parts.
fn not_a_report(file: &str, header: &ReportHeader) -> Error {
    let version = header.tool.as_ref().and_then(|t| t.get("version"));
    let version = version.and_then(serde_json::Value::as_str);
    match version.filter(|v| *v != env!("CARGO_PKG_VERSION")) {
        Some(version) => {
            let own = env!("CARGO_PKG_VERSION");
            let why = format!("version {version} wrote it, and this is version {own}");
            invalid(file, &why)
                .hint_person("use one version of claude-reviewer for the reviews and for the merge")
        }
        None => invalid(file, "not a report as `--format json` writes it"),
    }
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
