//! Reports of several repositories together.
//!
//! Each repository has a finished review and a name, which the user gave or which is that of a
//! file. Names are untrusted.

pub(in crate::report) mod members;

pub use members::{Fleet, FleetMember};

use super::{ReportFormat, Style, for_forge, html, human, junit, sarif};
use crate::error::{Error, ExitStatus, Result};
use crate::review::Review;
use crate::untrusted::{self, Inert};
use crate::verdict::Verdict;
use crate::wire;
use crate::wire::fleet::{FleetReport, FleetSummary, NamedReport};
use members::{repositories, saturating_sum};
use std::borrow::Cow;
use std::io::{self, Write};

/// Formats that show several repositories. The others have one root for all paths, or one size
/// limit for the comment that they become.
pub const FORMATS: [ReportFormat; 7] = [
    ReportFormat::Human,
    ReportFormat::Json,
    ReportFormat::Sarif,
    ReportFormat::Summary,
    ReportFormat::Junit,
    ReportFormat::Dotenv,
    ReportFormat::Html,
];
/// Rows of the Markdown table, at most. GitHub accepts 1 MiB from a step.
const ROWS: usize = 2_000;
/// Bytes of a name in a table, at most.
const NAME: usize = 200;

/// Rejects a format that shows one repository only.
///
/// # Errors
///
/// Usage: the format, with the ones that work.
pub fn refuse_other_formats(format: ReportFormat) -> Result<()> {
    if FORMATS.contains(&format) {
        return Ok(());
    }
    let names = FORMATS.map(ReportFormat::name).join(", ");
    Err(Error::usage(format!(
        "the format {} shows one repository, and several are given",
        format.name()
    ))
    .hint(format!("formats for several repositories: {names}"))
    .hint("or merge the reports of each repository by itself"))
}

/// Writes the reviews in a format of [`FORMATS`]; other formats write nothing.
pub fn render(
    fleet: &Fleet,
    format: ReportFormat,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Human => text(fleet, style, out),
        ReportFormat::Json => wire::write(&report(fleet), out),
        ReportFormat::Sarif => sarif::render_all(&for_forges(fleet), out),
        ReportFormat::Summary => summary(fleet, out),
        ReportFormat::Junit => junit::render_all(&for_forges(fleet), out),
        ReportFormat::Dotenv => dotenv(fleet, out),
        ReportFormat::Html => html::render_fleet(fleet, out),
        ReportFormat::Jsonl
        | ReportFormat::Github
        | ReportFormat::Markdown
        | ReportFormat::Gitlab
        | ReportFormat::Rdjson => Ok(()),
    }
}

/// Returns the reviews by name, without the words of tickets.
fn for_forges(fleet: &Fleet) -> Vec<(&str, Cow<'_, Review>)> {
    let members = fleet.members.iter();
    members
        .map(|m| (m.name.as_str(), for_forge(&m.review)))
        .collect()
}

/// Returns the line that ends the run on standard error, without a line end. `exit` is that of the
/// process.
pub fn summary_line(fleet: &Fleet, exit: ExitStatus) -> String {
    let is_complete = |m: &FleetMember| {
        let c = &m.review.coverage;
        c.is_complete() && !c.is_truncated()
    };
    let state = match fleet.members.iter().all(is_complete) {
        true => "complete",
        false => "incomplete",
    };
    let findings = saturating_sum(fleet.members.iter().flat_map(FleetMember::totals));
    format!(
        "review: {state} repositories={} files={}/{} findings={findings} exit={}",
        fleet.members.len(),
        fleet.files_reviewed(),
        fleet.files_total(),
        exit.code()
    )
}

/// Writes the text: a section for each repository, then the table.
fn text(fleet: &Fleet, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for m in &fleet.members {
        if style.quiet && m.review.exit == ExitStatus::Pass {
            continue;
        }
        writeln!(out, "=== {} ===\n", Inert::new(&m.name))?;
        human::render(&m.review, style, out)?;
        writeln!(out)?;
    }
    let names = fleet.members.iter().map(|m| shown(&m.name).chars().count());
    let width = names.max().unwrap_or_default().max("repository".len());
    writeln!(
        out,
        "{:width$}  {:10}  {:>8}  {:>8}  files",
        "repository", "verdict", "findings", "blocking"
    )?;
    for m in fleet.by_verdict() {
        let c = &m.review.coverage;
        writeln!(
            out,
            "{:width$}  {:10}  {:>8}  {:>8}  {}/{}",
            shown(&m.name),
            m.review.verdict.name(),
            saturating_sum(m.totals().into_iter()),
            m.blocking(),
            c.files_reviewed,
            c.files_total
        )?;
    }
    writeln!(out, "\n{}", fleet.sentence())
}

/// Returns a name for a table: inert, and bounded.
fn shown(name: &str) -> String {
    Inert::new(&*untrusted::clipped(name, NAME)).to_string()
}

/// Returns the JSON document.
fn report(fleet: &Fleet) -> FleetReport {
    let totals = fleet.members.iter().map(FleetMember::totals);
    let [critical, major, minor, suggestion] = totals.fold([0; 4], |all: [usize; 4], own| {
        std::array::from_fn(|i| all[i].saturating_add(own[i]))
    });
    let reports = fleet.members.iter().map(|m| NamedReport {
        name: m.name.clone(),
        report: m.report.clone(),
    });
    FleetReport {
        schema_version: wire::fleet::FLEET_VERSION,
        tool: wire::fleet::MergeTool {
            name: crate::NAME.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
        verdict: fleet.verdict().into(),
        exit_code: fleet.exit().code(),
        summary: FleetSummary {
            text: fleet.sentence(),
            repositories: fleet.members.len(),
            block: fleet.number(Verdict::Block),
            incomplete: fleet.number(Verdict::Incomplete),
            warn: fleet.number(Verdict::Warn),
            pass: fleet.number(Verdict::Pass),
            critical,
            major,
            minor,
            suggestion,
            files_total: fleet.files_total(),
            files_reviewed: fleet.files_reviewed(),
        },
        reports: reports.collect(),
    }
}

/// Writes the Markdown table for `$GITHUB_STEP_SUMMARY`, the worst repositories first.
fn summary(fleet: &Fleet, out: &mut dyn Write) -> io::Result<()> {
    let (name, sentence) = (crate::NAME, fleet.sentence());
    writeln!(out, "## {name}: {}\n\n{sentence}\n", fleet.verdict().name())?;
    writeln!(
        out,
        "| repository | verdict | critical | major | minor | suggestions | files |"
    )?;
    writeln!(out, "|---|---|---:|---:|---:|---:|---:|")?;
    let all = fleet.by_verdict();
    for m in all.iter().take(ROWS) {
        let [critical, major, minor, suggestion] = m.totals();
        let c = &m.review.coverage;
        writeln!(
            out,
            "| {} | {} | {critical} | {major} | {minor} | {suggestion} | {} of {} |",
            untrusted::markdown(&shown(&m.name)),
            m.review.verdict.name(),
            c.files_reviewed,
            c.files_total
        )?;
    }
    if all.len() > ROWS {
        writeln!(out, "\nand {} more", repositories(all.len() - ROWS))?;
    }
    Ok(())
}

/// Writes `key=value` lines: fixed words and numbers only.
fn dotenv(fleet: &Fleet, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "verdict={}", fleet.verdict().name())?;
    let findings = saturating_sum(fleet.members.iter().flat_map(FleetMember::totals));
    let blocking = saturating_sum(fleet.members.iter().map(FleetMember::blocking));
    for (key, number) in [
        ("repositories", fleet.members.len()),
        ("repositories_block", fleet.number(Verdict::Block)),
        ("repositories_incomplete", fleet.number(Verdict::Incomplete)),
        ("repositories_warn", fleet.number(Verdict::Warn)),
        ("repositories_pass", fleet.number(Verdict::Pass)),
        ("findings", findings),
        ("blocking", blocking),
        ("files_reviewed", fleet.files_reviewed()),
        ("files_total", fleet.files_total()),
        ("exit_code", usize::from(fleet.exit().code())),
    ] {
        writeln!(out, "{key}={number}")?;
    }
    Ok(())
}
