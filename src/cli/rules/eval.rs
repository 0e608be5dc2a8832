//! `rules eval DIR`: measures the rules on labelled cases.

use super::{built_in, document, print, unreadable};
use crate::cli::format::Format;
use crate::error::{Error, ExitStatus, Result};
use crate::rules::eval::{self, Case, Evaluation, Label, Tally};
use crate::untrusted::Inert;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `rules eval`.
#[derive(Debug, clap::Args)]
pub(super) struct EvalArgs {
    /// Folder with case files (*.jsonl), or one file
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Table", "Versioned JSON"))]
    format: Format,
    /// List the expected lines that no rule finds
    #[arg(long)]
    misses: bool,
    /// List the safe lines that a rule flags
    #[arg(long)]
    false_alarms: bool,
}

/// Measures the built-in rules, and prints the results.
///
/// # Errors
///
/// Usage: the cases cannot be read, or one is invalid.
pub(super) fn run(dir: &Path, args: &EvalArgs) -> Result<ExitStatus> {
    let cases = read(&dir.join(&args.path), &args.path)?;
    let rules = built_in()?;
    let evaluation = eval::measure(&rules, &cases);
    let out = match args.format {
        Format::Json => document(&as_json(&cases, &evaluation)),
        Format::Human => human(&cases, &evaluation, args),
    };
    print(&out).map(|()| ExitStatus::Pass)
}

/// Reads the case files of a folder in the order of their names, or one file.
fn read(path: &Path, given: &Path) -> Result<Vec<Case>> {
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|e| unreadable(given, &e))? {
            let file = entry.map_err(|e| unreadable(given, &e))?.path();
            if file.extension().is_some_and(|e| e == "jsonl") && file.is_file() {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut cases = Vec::new();
    for file in files {
        let inner = file
            .strip_prefix(path)
            .ok()
            .filter(|n| !n.as_os_str().is_empty());
        let name = inner.map_or_else(|| given.to_owned(), |n| given.join(n));
        let text = std::fs::read_to_string(&file).map_err(|e| unreadable(&name, &e))?;
        cases.extend(eval::read(&name.display().to_string(), &text)?);
    }
    if cases.is_empty() {
        return Err(Error::usage(format!("no case in {}", given.display()))
            .hint("cases are lines of JSON in files with the extension .jsonl; docs/rules.md describes them"));
    }
    Ok(cases)
}

fn as_json(cases: &[Case], evaluation: &Evaluation) -> Value {
    let by_rule = evaluation.by_rule();
    let rules = by_rule.iter().map(|(id, (found, flagged))| {
        (
            (*id).to_owned(),
            json!({ "found": found, "flagged": flagged }),
        )
    });
    json!({
        "schema_version": 1,
        "cases": cases.iter().zip(&evaluation.hits).map(|(case, hits)| json!({
            "id": case.id, "place": case.place,
            "findings": hits.iter().map(finding).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "total": tally(&evaluation.total()),
        "by_category": tallies(&evaluation.by(cases, |c| &c.category)),
        "by_language": tallies(&evaluation.by(cases, |c| &c.language)),
        "by_framework": tallies(&evaluation.by(cases, |c| c.framework.as_deref().unwrap_or("none"))),
        "by_rule": rules.collect::<Value>(),
        "misses": labels(cases, misses(evaluation)),
        "false_alarms": labels(cases, false_alarms(evaluation)),
    })
}

/// Returns the tallies of groups as JSON, by the names of the groups.
fn tallies(groups: &BTreeMap<&str, Tally>) -> Value {
    groups
        .iter()
        .map(|(name, sum)| ((*name).to_owned(), tally(sum)))
        .collect()
}

fn tally(t: &Tally) -> Value {
    json!({ "expected": t.expected, "found": t.found, "certain": t.certain, "seen": t.seen, "safe": t.safe, "flagged": t.flagged })
}

fn finding(hit: &eval::EvalHit) -> Value {
    json!({
        "rule_id": hit.rule, "line": hit.first, "severity": hit.severity.name(),
        "confidence": hit.confidence.name(), "fits": hit.fits,
    })
}

fn labels<'e>(cases: &[Case], labels: impl Iterator<Item = &'e Label>) -> Value {
    let labels = labels.map(|l| {
        let case = &cases[l.case];
        json!({ "id": case.id, "place": case.place, "line": l.line, "rules": l.rules, "seen": l.is_seen })
    });
    labels.collect()
}

/// Returns the expected lines that no rule finds.
fn misses(evaluation: &Evaluation) -> impl Iterator<Item = &Label> {
    evaluation
        .labels
        .iter()
        .filter(|l| l.is_expected && l.rules.is_empty())
}

/// Returns the safe lines that a rule flags.
fn false_alarms(evaluation: &Evaluation) -> impl Iterator<Item = &Label> {
    evaluation
        .labels
        .iter()
        .filter(|l| !l.is_expected && !l.rules.is_empty())
}

fn human(cases: &[Case], evaluation: &Evaluation, args: &EvalArgs) -> String {
    let mut out = String::new();
    if args.misses {
        listing(&mut out, "Missed", cases, misses(evaluation));
    }
    if args.false_alarms {
        listing(&mut out, "False alarms", cases, false_alarms(evaluation));
    }
    table(&mut out, "category", &evaluation.by(cases, |c| &c.category));
    table(&mut out, "language", &evaluation.by(cases, |c| &c.language));
    rules(&mut out, evaluation);
    let all = evaluation.total();
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{} cases: {} of {} expected lines found ({}), {} with at least medium confidence ({}), {} with any severity ({}); {} of {} safe lines flagged ({})",
        cases.len(),
        all.found,
        all.expected,
        share(all.found, all.expected),
        all.certain,
        share(all.certain, all.expected),
        all.seen,
        share(all.seen, all.expected),
        all.flagged,
        all.safe,
        share(all.flagged, all.safe),
    );
    out
}

/// Writes one line for each label: its position, the case and the code.
fn listing<'e>(
    out: &mut String,
    title: &str,
    cases: &[Case],
    labels: impl Iterator<Item = &'e Label>,
) {
    let _ = writeln!(out, "{title}:");
    for label in labels {
        let case = &cases[label.case];
        let code = case
            .code
            .lines()
            .nth(label.line as usize - 1)
            .unwrap_or_default()
            .trim();
        let code: String = code.chars().take(120).collect();
        let why = match (label.is_expected, label.is_seen) {
            (true, true) => " (suggestion or low confidence)".to_owned(),
            (true, false) => String::new(),
            (false, _) => format!(" ({})", label.rules.join(", ")),
        };
        let text = format!(
            "  {} {} line {}{why}: {code}",
            case.place, case.id, label.line
        );
        let _ = writeln!(out, "{}", Inert::new(text));
    }
    out.push('\n');
}

fn table(out: &mut String, name: &str, sums: &BTreeMap<&str, Tally>) {
    let width = sums
        .keys()
        .map(|k| k.len())
        .chain([name.len()])
        .max()
        .unwrap_or(0);
    let _ = writeln!(
        out,
        "{name:width$}  {:>8}  {:>6} {:>6}  {:>7} {:>6}  {:>6} {:>6}  {:>6}  {:>7} {:>6}",
        "expected", "found", "", "certain", "", "any", "", "safe", "flagged", ""
    );
    for (key, t) in sums {
        let _ = writeln!(
            out,
            "{}{}  {:>8}  {:>6} {:>6}  {:>7} {:>6}  {:>6} {:>6}  {:>6}  {:>7} {:>6}",
            Inert::new(*key),
            " ".repeat(width.saturating_sub(key.len())),
            t.expected,
            t.found,
            share(t.found, t.expected),
            t.certain,
            share(t.certain, t.expected),
            t.seen,
            share(t.seen, t.expected),
            t.safe,
            t.flagged,
            share(t.flagged, t.safe),
        );
    }
    out.push('\n');
}

fn rules(out: &mut String, evaluation: &Evaluation) {
    let by_rule = evaluation.by_rule();
    let width = by_rule
        .keys()
        .map(|k| k.len())
        .max()
        .unwrap_or(0)
        .max("rule".len());
    let _ = writeln!(out, "{:width$}  {:>6}  {:>7}", "rule", "found", "flagged");
    for (id, (found, flagged)) in by_rule {
        let _ = writeln!(out, "{id:width$}  {found:>6}  {flagged:>7}");
    }
    out.push('\n');
}

/// Returns a share in percent with one decimal; `-` if the whole is 0.
fn share(part: usize, whole: usize) -> String {
    if whole == 0 {
        "-".to_owned()
    } else {
        format!("{:.1}%", part as f64 * 100.0 / whole as f64)
    }
}
