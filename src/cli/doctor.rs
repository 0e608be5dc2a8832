//! `doctor`: checks the setup of the gate, for people and for programs.

use super::Context;
use super::format::Format;
use super::policy::PolicyFiles;
use super::stdout::print;
use super::style::style;
use crate::doctor::{CheckState, Diagnosis, DoctorCheck, Patient, examine};
use crate::error::{Error, ExitStatus, Result};
use crate::git::Repo;
use crate::policy::Loaded;
use crate::report::Style;
use crate::untrusted::{Inert, width};
use anstyle::AnsiColor;
use serde_json::json;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes:\n  0  the gate can pass and block, and all configured backends are usable\n  \
    2  cannot read the policy or the repository\n  3  problems found, each with a hint"
)]
pub(super) struct DoctorArgs {
    /// Let each backend review a small change with a known bug; sends one or two requests
    #[arg(long, conflicts_with = "offline")]
    probe: bool,
    /// Check without network access
    #[arg(long)]
    offline: bool,
    /// Check this backend instead of the policy's; repeat for more
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    backend: Vec<String>,
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Text", "Versioned JSON"))]
    format: Format,
}

pub(super) fn run(context: &Context, args: &DoctorArgs) -> Result<ExitStatus> {
    let repo = Repo::find(&context.dir, &context.env)?;
    let files = PolicyFiles::find(context, None)?;
    let Loaded { policy, notes } = files.load(context)?;
    if let Some(name) = args.backend.iter().find(|b| policy.backend(b).is_none()) {
        let known: Vec<_> = policy.backends.iter().map(|b| b.name.as_str()).collect();
        let error = Error::usage(format!("unknown backend {name}"));
        return Err(error.hint(format!("backends of the policy: {}", known.join(", "))));
    }
    let notes: Vec<String> = notes.into_iter().map(|n| n.text).collect();
    let diagnosis = examine(&Patient {
        env: &context.env,
        dir: &context.dir,
        repo: repo.as_ref(),
        policy: &policy,
        policy_files: &files.label(),
        policy_notes: &notes,
        config: context.global.config.as_ref(),
        backends: &args.backend,
        offline: args.offline,
        probe: args.probe,
    });
    let text = match args.format {
        Format::Human => human(&diagnosis, &style(context, &context.env)),
        Format::Json => json_text(&diagnosis),
    };
    print(&text).map(|_| diagnosis.exit())
}

/// Returns one line for each check, under the title of its section; with `--quiet` only the
/// problems.
fn human(diagnosis: &Diagnosis, style: &Style) -> String {
    let mut text = String::new();
    for section in &diagnosis.sections {
        let checks: Vec<_> = section
            .checks
            .iter()
            .filter(|c| !style.quiet || is_problem(c))
            .collect();
        if checks.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let names = checks
            .iter()
            .map(|c| width(c.name))
            .max()
            .unwrap_or_default();
        text.push_str(&format!("{}\n", Inert::new(&section.title).guarded()));
        for check in checks {
            text.push_str(&check_lines(check, names, style));
        }
    }
    if !text.is_empty() {
        text.push('\n');
    }
    let (conclusion, color) = conclusion(diagnosis.problems());
    text + &format!("{}\n", paint(&conclusion, color, style))
}

/// Returns the lines of a check: its state, its name in `names` columns, its text and its hint.
fn check_lines(check: &DoctorCheck, names: usize, style: &Style) -> String {
    let (color, word) = match check.state {
        CheckState::Good => (AnsiColor::Green, "ok"),
        CheckState::Told => (AnsiColor::Cyan, "note"),
        CheckState::Doubtful => (AnsiColor::Yellow, "warning"),
        CheckState::Bad => (AnsiColor::Red, "PROBLEM"),
    };
    // Two spaces, the state and the name, each followed by spaces.
    let indent = 2 + 9 + names + 2;
    let columns = style.width.saturating_sub(indent);
    let pad = " ".repeat(9 - word.len());
    let name = format!("{}{}", check.name, " ".repeat(names - width(check.name)));
    let mut lines = wrap(Inert::new(&check.text).as_str(), columns);
    if let Some(hint) = &check.hint {
        lines.extend(wrap(&format!("hint: {}", Inert::new(hint)), columns));
    }
    let head = format!(
        "  {}{pad}{name}  {}",
        paint(word, color, style),
        lines.remove(0)
    );
    let mut text = format!("{}\n", head.trim_end());
    for line in lines {
        text.push_str(&format!("{}{line}\n", " ".repeat(indent)));
    }
    text
}

/// Returns the last line, and its color.
fn conclusion(problems: usize) -> (String, AnsiColor) {
    match problems {
        0 => (
            "the gate works: it can pass and block".to_owned(),
            AnsiColor::Green,
        ),
        1 => (
            "1 problem: the gate does not work as configured".to_owned(),
            AnsiColor::Red,
        ),
        n => (
            format!("{n} problems: the gate does not work as configured"),
            AnsiColor::Red,
        ),
    }
}

/// Returns true if a check found that the gate does not work, or may not work.
fn is_problem(check: &DoctorCheck) -> bool {
    matches!(check.state, CheckState::Bad | CheckState::Doubtful)
}

/// Returns a text in bold and in a color, if the style has colors.
fn paint(text: &str, color: AnsiColor, style: &Style) -> String {
    match style.color {
        true => format!(
            "{}{text}{}",
            color.on_default().bold().render(),
            anstyle::Reset.render()
        ),
        false => text.to_owned(),
    }
}

/// Breaks a text between words into at least one line. A word that is too long is not broken.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if width(line) + 1 + width(word) <= columns.max(20) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn json_text(diagnosis: &Diagnosis) -> String {
    let sections = diagnosis
        .sections
        .iter()
        .map(|s| json!({"title": s.title, "checks": s.checks.iter().map(json_check).collect::<Vec<_>>()}));
    let value = json!({
        "schema_version": 1,
        "problems": diagnosis.problems(),
        "exit": diagnosis.exit().code(),
        "sections": sections.collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

/// Returns a check as JSON.
fn json_check(check: &DoctorCheck) -> serde_json::Value {
    json!({"name": check.name, "state": check.state.name(), "text": check.text, "hint": check.hint})
}
