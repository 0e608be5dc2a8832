//! `rules list`, `rules explain ID`, `rules new ID`, `rules test DIR`, `rules eval DIR`.

mod eval;
mod new;

use super::Context;
use super::format::{FileFormat, Format};
use super::policy::PolicyFiles;
use crate::error::{Error, ExitStatus, Result};
use crate::finding::{Category, Severity};
use crate::git::Repo;
use crate::policy::RulesPolicy;
use crate::review;
use crate::rules::{self, Description, RuleOrigin, RuleSet};
use crate::text::plural;
use crate::untrusted::{self, Inert};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Arguments of `rules`.
#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    command: RulesCommand,
}

#[derive(Debug, clap::Subcommand)]
enum RulesCommand {
    /// List built-in rules and team rules
    List(ListArgs),
    /// Explain a rule, with examples of bad and good code
    Explain {
        /// Rule ID, as in findings
        id: String,
        /// Output format
        #[arg(
            long,
            default_value = "human",
            value_parser = FileFormat::parser(
                "Text",
                "Versioned JSON",
                "Rule file, to copy and change",
            )
        )]
        format: FileFormat,
    },
    /// Write a template for a team rule
    New {
        /// ID of the new rule: lower-case words joined by `-`
        id: String,
        /// Folder for the rule file [default: the first folder of rules.paths in the policy]
        #[arg(long = "dir", value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Write a structural rule: a pattern of code in the YAML of ast-grep
        #[arg(long)]
        structural: bool,
    },
    /// Run the samples of team rules
    Test {
        /// Folder with rule files, or one file
        #[arg(value_name = "DIR")]
        path: PathBuf,
    },
    /// Measure the built-in rules on labelled cases
    Eval(eval::EvalArgs),
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Output format
    #[arg(long, default_value = "human", value_parser = Format::parser("Table", "Versioned JSON"))]
    format: Format,
    /// Only rules for this language
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<String>,
    /// Only rules of this category
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
}

pub(super) fn run(context: &Context, args: &RulesArgs) -> Result<ExitStatus> {
    match &args.command {
        RulesCommand::List(list) => print(&listed(context, list)?).map(|()| ExitStatus::Pass),
        RulesCommand::Explain { id, format } => {
            print(&explain(context, id, *format)?).map(|()| ExitStatus::Pass)
        }
        RulesCommand::New {
            id,
            folder,
            structural,
        } => {
            let template = if *structural {
                new::Template::Structural
            } else {
                new::Template::Pattern
            };
            print(&new::write(context, id, folder.as_deref(), template)?).map(|()| ExitStatus::Pass)
        }
        RulesCommand::Eval(args) => eval::run(&context.dir, args),
        RulesCommand::Test { path } => test(&context.dir.join(path), path),
    }
}

/// Reads the rules that a review of the worktree uses: the built-in ones and the team's, with the
/// policy's severities.
///
/// Outside a repository, only the built-in rules.
///
/// # Errors
///
/// Usage: the policy or a rule file is invalid.
fn active(context: &Context) -> Result<RuleSet> {
    let Ok(repo) = Repo::open(&context.dir, &context.env) else {
        return built_in();
    };
    let policy = PolicyFiles::find(context, None)?.load(context)?.policy;
    let files = review::team_rules(&policy, &repo)?;
    RuleSet::new(&policy.rules, &files)
}

fn built_in() -> Result<RuleSet> {
    RuleSet::new(&RulesPolicy::default(), &[])
}

fn listed(context: &Context, list: &ListArgs) -> Result<String> {
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
            Error::usage(format!("unknown category {c:?}"))
                .hint(format!("categories: {}", known.join(", ")))
        })?),
    };
    let rules = active(context)?;
    let found = rules
        .descriptions()
        .filter(|d| category.is_none_or(|c| c == d.category));
    let found: Vec<_> = found
        .filter(|d| list.language.as_deref().is_none_or(|l| applies_to(d, l)))
        .collect();
    Ok(match list.format {
        Format::Json => {
            let rules: Vec<_> = found.iter().map(as_json).collect();
            document(&json!({ "schema_version": 1, "rules": rules }))
        }
        Format::Human => table(&found),
    })
}

/// Returns true if a rule checks files of a language.
fn applies_to(d: &Description<'_>, language: &str) -> bool {
    d.languages.is_empty() || d.languages.contains(&language)
}

/// Returns a JSON document in which control and invisible characters are escapes.
fn document(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for c in format!("{value:#}\n").chars() {
        if c == '\n' || !untrusted::is_active(c) {
            out.push(c);
            continue;
        }
        // Outside of strings, a document has no such character.
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

fn as_json(d: &Description<'_>) -> serde_json::Value {
    json!({
        "id": d.id, "title": d.title, "category": d.category.name(), "severity": d.severity.name(),
        "confidence": d.confidence.name(), "origin": origin(d), "languages": d.languages, "paths": d.paths,
        "not_paths": d.not_paths, "weak_paths": d.weak_paths, "file_has": d.file_has, "file_lacks": d.file_lacks,
        "in_tests": d.in_tests, "in_bundles": d.in_bundles, "secret": d.secret, "judges_origin": d.judges_origin,
        "profile": d.profile, "audit_severity": d.audit_severity.map(Severity::name),
        "message": d.message, "why": d.why, "suggestion": d.suggestion, "cwe": d.cwe, "references": d.references,
        "url": url(d),
    })
}

/// Returns the file and line of a team rule; `None` for a built-in rule.
fn origin(d: &Description<'_>) -> Option<String> {
    match d.defined {
        RuleOrigin::BuiltIn => None,
        RuleOrigin::Team { file, line } => Some(format!("{file}:{line}")),
    }
}

/// Returns the address of the documentation of a built-in rule, if the build has one.
fn url(d: &Description<'_>) -> Option<String> {
    (d.defined == RuleOrigin::BuiltIn)
        .then(|| rules::doc_url(d.id))
        .flatten()
}

fn table(rules: &[Description<'_>]) -> String {
    let width = rules.iter().map(|d| d.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for d in rules {
        let title = Inert::new(d.title);
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{:width$}  {:10}  {:16}  {title}",
            d.id, d.severity, d.category
        );
        if d.profile != "default" {
            let _ = write!(out, "  (profile {})", d.profile);
        }
        if let Some(origin) = origin(d) {
            let _ = write!(out, "  ({})", Inert::new(origin));
        }
        out.push('\n');
    }
    let team = rules
        .iter()
        .filter(|d| d.defined != RuleOrigin::BuiltIn)
        .count();
    let own = if team > 0 {
        format!(" ({})", plural(team, "team rule"))
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "{}{own}; for details: claude-reviewer rules explain ID",
        plural(rules.len(), "rule")
    );
    out
}

fn explain(context: &Context, id: &str, format: FileFormat) -> Result<String> {
    // A malformed policy or rule file must not hide the explanation of a built-in rule.
    let built_in = built_in()?;
    let rules = if built_in.describe(id).is_some() {
        built_in
    } else {
        active(context)?
    };
    let d = rules.describe(id).ok_or_else(|| rules.not_found(id))?;
    match format {
        FileFormat::Human => Ok(explained(&d)),
        FileFormat::Json => Ok(document(
            &json!({ "schema_version": 1, "rules": [as_json(&d)] }),
        )),
        FileFormat::Toml => rules.to_toml(id),
    }
}

fn explained(d: &Description<'_>) -> String {
    let cwe = d.cwe.map_or(String::new(), |n| format!(", CWE-{n}"));
    let title = Inert::new(d.title);
    let mut out = format!(
        "{} ({}, {}{cwe})\n{title}\n\n",
        d.id, d.severity, d.category
    );
    indented(
        &mut out,
        &format!("{}.", d.message.trim_end_matches('.')),
        "",
    );
    if let Some(why) = d.why {
        indented(&mut out, why.trim(), "");
    }
    let code = [("Bad:", &d.bad), ("Good:", &d.good)];
    for (head, text) in code {
        if let Some(text) = text {
            paragraph(&mut out, head, text);
        }
    }
    if let Some(suggestion) = d.suggestion {
        paragraph(&mut out, "Fix:", suggestion);
    }
    paragraph(&mut out, "Scope:", &scope(d));
    if let Some(origin) = origin(d) {
        paragraph(&mut out, "Defined at:", &origin);
    }
    let links: Vec<String> = url(d)
        .into_iter()
        .chain(d.references.iter().map(|r| (*r).to_owned()))
        .collect();
    if !links.is_empty() {
        paragraph(&mut out, "References:", &links.join("\n"));
    }
    let id = d.id;
    let disable = format!("everywhere, in .claude-reviewer.toml:  [rules] disable = [\"{id}\"]");
    let ways = match d.secret {
        // A comment does not suppress a secret.
        true => disable,
        false => {
            format!(
                "in a comment on the line or above it:  claude-reviewer: ignore[{id}] reason\n{disable}"
            )
        }
    };
    paragraph(&mut out, "To suppress:", &ways);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Writes a paragraph with a heading.
fn paragraph(out: &mut String, head: &str, text: &str) {
    let _ = writeln!(out, "{head}");
    indented(out, text, "    ");
}

/// Writes the lines of a text, and an empty line.
fn indented(out: &mut String, text: &str, indent: &str) {
    for line in text.trim_end().lines() {
        let _ = writeln!(
            out,
            "{}",
            format!("{indent}{}", Inert::new(line)).trim_end()
        );
    }
    out.push('\n');
}

/// Describes the files and lines that the rule checks, one condition a line.
fn scope(d: &Description<'_>) -> String {
    let languages = if d.languages.is_empty() {
        "all files".to_owned()
    } else {
        d.languages.join(", ")
    };
    let mut lines = vec![format!("added lines of {languages}")];
    let lists = [
        ("only these paths:", &d.paths),
        ("not in these paths:", &d.not_paths),
        ("lower severity in these paths:", &d.weak_paths),
        ("only in files that match all of:", &d.file_has),
        ("not in files that match one of:", &d.file_lacks),
    ];
    for (head, list) in lists {
        if !list.is_empty() {
            lines.push(format!("{head} {}", list.join(", ")));
        }
    }
    if d.judges_origin {
        lines.push(
            "a suggestion with low confidence if the origin of the value is unknown".to_owned(),
        );
    }
    if d.profile != "default" {
        lines.push(format!("only with [rules] profile = \"{}\"", d.profile));
    }
    if let Some(severity) = d.audit_severity {
        lines.push(format!("{severity} with [rules] profile = \"audit\""));
    }
    if !d.in_tests {
        lines.push(
            "not in tests, fixtures and examples; lower severity in paths that may be one"
                .to_owned(),
        );
    }
    if !d.in_bundles {
        lines.push("not in bundles: minified files and copies of libraries".to_owned());
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
    let failed = report.failures.len();
    let result = if failed == 0 {
        "ok".to_owned()
    } else {
        plural(failed, "error")
    };
    let _ = writeln!(
        out,
        "{}, {}: {result}",
        plural(report.rules, "rule"),
        plural(report.samples, "sample")
    );
    print(&out)?;
    Ok(if failed == 0 {
        ExitStatus::Pass
    } else {
        ExitStatus::Block
    })
}

/// Reads the rule files of a folder in the order of their names, or one file.
fn read(path: &Path, given: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(|e| unreadable(given, &e))? {
            let file = entry.map_err(|e| unreadable(given, &e))?.path();
            if file
                .extension()
                .is_some_and(|e| e == "toml" || e == "yml" || e == "yaml")
                && file.is_file()
            {
                files.push(file);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(Error::usage(format!(
                "no rule file (*.toml, *.yml) in {}",
                given.display()
            )));
        }
    } else {
        files.push(path.to_owned());
    }
    let read = files.iter().map(|f| {
        let name = f
            .strip_prefix(path)
            .ok()
            .filter(|n| !n.as_os_str().is_empty())
            .unwrap_or(given);
        let text = std::fs::read_to_string(f).map_err(|e| unreadable(f, &e))?;
        Ok((name.display().to_string(), text))
    });
    read.collect()
}

/// Returns the error about a file or folder that cannot be read.
fn unreadable(path: &Path, e: &std::io::Error) -> Error {
    Error::usage(format!("cannot read {}", path.display())).caused_by(e)
}

/// Writes to stdout. A closed pipe is not an error.
fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Error::usage("cannot write standard output").caused_by(&e))
        }
        _ => Ok(()),
    }
}
