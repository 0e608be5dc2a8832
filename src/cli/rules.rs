//! `rules list`, `rules explain ID`, `rules test DIR`.

use super::Context;
use crate::error::{Error, ExitStatus, Result};
use crate::finding::Category;
use crate::policy::RulesPolicy;
use crate::rules::{self, Description, RuleSet};
use crate::untrusted;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Arguments of `rules`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the built-in rules
    List(List),
    /// Say what a rule looks for and why, with bad and good code
    Explain {
        /// The rule, as findings name it
        id: String,
    },
    /// Run the samples of a team's own rules
    Test {
        /// A folder of rule files, or one file
        #[arg(value_name = "DIR")]
        path: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    /// How to print
    #[arg(long, default_value = "human")]
    format: Format,
    /// Only rules that look at this language
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// Only rules of this category
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Human,
    Json,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<ExitStatus> {
    match &args.command {
        Command::List(list) => print(&listed(list)?).map(|()| ExitStatus::Pass),
        Command::Explain { id } => print(&explained(&find(id)?)).map(|()| ExitStatus::Pass),
        Command::Test { path } => test(&context.dir.join(path), path),
    }
}

fn listed(list: &List) -> Result<String> {
    if let Some(l) = &list.language
        && !rules::languages().contains(&l.as_str())
    {
        return Err(Error::usage(format!("unknown language {l:?}"))
            .hint(format!("languages: {}", rules::languages().join(", "))));
    }
    let category = match &list.category {
        None => None,
        Some(c) => Some(Category::parse(c).ok_or_else(|| {
            let known: Vec<_> = Category::ALL.iter().map(|c| c.name()).collect();
            Error::usage(format!("unknown category {c:?}")).hint(format!("categories: {}", known.join(", ")))
        })?),
    };
    let looks = |d: &Description<'_>| {
        let speaks = |l: &String| d.languages.is_empty() || d.languages.contains(&l.as_str());
        category.is_none_or(|c| c == d.category) && list.language.as_ref().is_none_or(speaks)
    };
    let found: Vec<_> = rules::describe_all().filter(looks).collect();
    Ok(match list.format {
        Format::Json => {
            let rules: Vec<_> = found.iter().map(as_json).collect();
            format!("{:#}\n", json!({ "schema_version": 1, "rules": rules }))
        }
        Format::Human => table(&found),
    })
}

fn as_json(d: &Description<'_>) -> serde_json::Value {
    json!({
        "id": d.id, "title": d.title, "category": d.category.name(), "severity": d.severity.name(),
        "confidence": d.confidence.name(), "languages": d.languages, "paths": d.paths, "not_paths": d.not_paths,
        "weak_paths": d.weak_paths, "file_has": d.file_has, "file_lacks": d.file_lacks, "in_tests": d.in_tests, "in_bundles": d.in_bundles, "secret": d.secret,
        "judges_origin": d.judges_origin, "message": d.message,
        "why": d.why, "suggestion": d.suggestion, "cwe": d.cwe, "references": d.references,
    })
}

fn table(rules: &[Description<'_>]) -> String {
    let width = rules.iter().map(|d| d.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for d in rules {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:width$}  {:10}  {:16}  {}", d.id, d.severity, d.category, d.title);
    }
    let _ = writeln!(out, "{} rules; `claude-reviewer rules explain ID` says more", rules.len());
    out
}

fn find(id: &str) -> Result<Description<'static>> {
    if let Some(d) = rules::describe_all().find(|d| d.id == id) {
        return Ok(d);
    }
    let all = RuleSet::new(&RulesPolicy::default(), &[])?;
    let e = Error::usage(format!("unknown rule {id:?}"));
    Err(match all.nearest(id) {
        Some(near) => e.hint(format!("did you mean {near:?}?")),
        None => e.hint("`claude-reviewer rules list` prints every rule"),
    })
}

fn explained(d: &Description<'_>) -> String {
    let cwe = d.cwe.map_or(String::new(), |n| format!(", CWE-{n}"));
    let mut out = format!("{} ({}, {}{cwe})\n{}\n\n", d.id, d.severity, d.category, d.title);
    let mut paragraph = |head: &str, text: &str, indent: &str| {
        if !head.is_empty() {
            let _ = writeln!(out, "{head}");
        }
        for line in text.trim_end().lines() {
            let _ = writeln!(out, "{}", format!("{indent}{line}").trim_end());
        }
        out.push('\n');
    };
    paragraph("", &format!("{}.", d.message.trim_end_matches('.')), "");
    if let Some(why) = d.why {
        paragraph("", why.trim(), "");
    }
    let code = [("Bad:", &d.bad), ("Good:", &d.good)];
    for (head, text) in code {
        if let Some(text) = text {
            paragraph(head, text, "    ");
        }
    }
    if let Some(suggestion) = d.suggestion {
        paragraph("What to do:", suggestion, "    ");
    }
    paragraph("Looks at:", &scope(d), "    ");
    if !d.references.is_empty() {
        paragraph("References:", &d.references.join("\n"), "    ");
    }
    let id = d.id;
    let ways = format!(
        "a comment on the line or the one above:  claude-reviewer: ignore[{id}] why it is fine\n\
         everywhere, in .claude-reviewer.toml:    [rules] disable = [\"{id}\"]"
    );
    paragraph("To let a finding through:", &ways, "    ");
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Says which files the rule looks at: a line for each thing that decides.
fn scope(d: &Description<'_>) -> String {
    let languages = if d.languages.is_empty() { "every file".to_owned() } else { d.languages.join(", ") };
    let mut lines = vec![format!("added lines of {languages}")];
    let mut more = |head: &str, list: &[&str]| {
        if !list.is_empty() {
            lines.push(format!("{head} {}", list.join(", ")));
        }
    };
    more("only these paths:", &d.paths);
    more("never these paths:", &d.not_paths);
    more("with less weight on these paths:", &d.weak_paths);
    more("only in files that match all of:", &d.file_has);
    more("never in files that match one of:", &d.file_lacks);
    if d.judges_origin {
        lines.push("a suggestion of low confidence where the origin of the value is unknown".to_owned());
    }
    if !d.in_tests {
        lines
            .push("not in tests, fixtures and examples; with less weight where the path may be that of one".to_owned());
    }
    if !d.in_bundles {
        lines.push("not in bundles: minified files, and libraries that were copied whole".to_owned());
    }
    lines.join("\n")
}

fn test(path: &Path, given: &Path) -> Result<ExitStatus> {
    let files = read(path, given)?;
    let report = rules::test(&files)?;
    let mut out = String::new();
    for f in &report.failures {
        let _ = writeln!(out, "{}", untrusted::plain(f));
    }
    let (rules, samples, failed) = (report.rules, report.samples, report.failures.len());
    let _ = writeln!(out, "{rules} rules, {samples} samples, {failed} wrong");
    print(&out)?;
    Ok(if failed == 0 { ExitStatus::Pass } else { ExitStatus::Block })
}

/// Reads the rule files of a folder in the order of their names, or one file.
fn read(path: &Path, given: &Path) -> Result<Vec<(String, String)>> {
    let fail = |p: &Path, e: &std::io::Error| Error::usage(format!("{} cannot be read", p.display())).caused_by(e);
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|e| fail(given, &e))? {
            let file = entry.map_err(|e| fail(given, &e))?.path();
            if file.extension().is_some_and(|e| e == "toml") && file.is_file() {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(Error::usage(format!("{} holds no rule file (*.toml)", given.display())));
        }
    } else {
        files.push(path.to_owned());
    }
    let name = |f: &Path| {
        f.strip_prefix(path).ok().filter(|n| !n.as_os_str().is_empty()).unwrap_or(given).display().to_string()
    };
    files.iter().map(|f| Ok((name(f), std::fs::read_to_string(f).map_err(|e| fail(f, &e))?))).collect()
}

/// Writes to stdout. A reader that has seen enough is no error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::usage("the output cannot be written").caused_by(&e)),
        _ => Ok(()),
    }
}
