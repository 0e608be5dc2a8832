//! Reports: a finished review in the formats that people and programs read.
//!
//! Each format is a function over the review, in its own file. Formats make no decisions: the exit
//! code is the same for all of them.

pub mod dotenv;
mod facts;
mod finding_text;
pub mod fleet;
mod forge;
pub mod github;
pub mod gitlab;
pub mod html;
pub mod human;
pub mod json;
pub mod jsonl;
pub mod junit;
pub mod markdown;
pub(crate) mod names;
pub mod paint;
pub mod rdjson;
mod remedy;
pub mod sarif;
mod source_words;
pub mod summary;
pub mod terminal;
mod words;

pub use forge::{for_forge, reason_for_forge, unknown_tickets};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use crate::finding::{Finding, Origin, Severity};
use crate::review::Review;
use crate::text::plural;
use crate::untrusted::Inert;
use crate::wire::stored::Since;
use std::io::{self, Write};

/// A format of the report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportFormat {
    #[default]
    Human,
    Json,
    Jsonl,
    Sarif,
    Github,
    Summary,
    Markdown,
    Gitlab,
    Rdjson,
    Junit,
    Dotenv,
    Html,
}

/// A format's name on the command line, its description in the help, and the function that writes
/// it.
type FormatEntry = (
    &'static str,
    &'static str,
    fn(&Review, &Style, &mut dyn Write) -> io::Result<()>,
);

impl ReportFormat {
    /// All formats, in the order of the help.
    pub const ALL: [Self; 12] = [
        Self::Human,
        Self::Json,
        Self::Jsonl,
        Self::Sarif,
        Self::Github,
        Self::Summary,
        Self::Markdown,
        Self::Gitlab,
        Self::Rdjson,
        Self::Junit,
        Self::Dotenv,
        Self::Html,
    ];

    fn form(self) -> FormatEntry {
        match self {
            Self::Human => (
                "human",
                "text with code frames, totals and the verdict",
                human::render,
            ),
            Self::Json => (
                "json",
                "versioned JSON, described by schemas/report.schema.json",
                |r, _, o| json::render(r, o),
            ),
            Self::Jsonl => (
                "jsonl",
                "one JSON object a line: the review, each finding as it comes, the verdict",
                |r, _, o| jsonl::render(r, o),
            ),
            Self::Sarif => ("sarif", "SARIF 2.1.0, for code scanning", |r, _, o| {
                sarif::render(r, o)
            }),
            Self::Github => (
                "github",
                "log of a GitHub Actions step, with annotations",
                github::render,
            ),
            Self::Summary => (
                "summary",
                "Markdown page for $GITHUB_STEP_SUMMARY",
                |r, _, o| summary::render(r, o),
            ),
            Self::Markdown => (
                "markdown",
                "Markdown comment for a pull request, within GitHub's size limit",
                |r, _, o| markdown::render(r, o),
            ),
            Self::Gitlab => ("gitlab", "GitLab Code Quality report", |r, _, o| {
                gitlab::render(r, o)
            }),
            Self::Rdjson => ("rdjson", "Reviewdog Diagnostic Format", |r, _, o| {
                rdjson::render(r, o)
            }),
            Self::Junit => (
                "junit",
                "JUnit XML, for Jenkins, GitLab and Azure",
                |r, _, o| junit::render(r, o),
            ),
            Self::Dotenv => (
                "dotenv",
                "key=value lines with verdict and counts, for $GITHUB_OUTPUT and GitLab dotenv reports",
                |r, _, o| dotenv::render(r, o),
            ),
            Self::Html => (
                "html",
                "one HTML page: the change with its findings",
                |r, _, o| html::render(r, o),
            ),
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.form().0
    }

    /// Returns the description in the help.
    pub fn help(self) -> &'static str {
        self.form().1
    }

    /// Parses a name. The error lists the known names.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                let names: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
                format!(
                    "unknown format {name:?}, expected one of {}",
                    names.join(", ")
                )
            })
    }
}

/// The look of the report for people. The caller decides; renderers never read the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// OSC 8 hyperlinks; `None` if the output does not support them.
    pub links: Option<Links>,
    /// Use Unicode bars and signs, not only ASCII.
    pub unicode: bool,
    /// Columns, at least 20. Text is wrapped and code is truncated to fit.
    pub width: usize,
    /// Print only findings.
    pub quiet: bool,
    /// Print all findings in full, suppressed ones, references and fingerprints.
    pub verbose: bool,
    /// List rejected and deferred findings.
    pub dispositioned: bool,
    /// A CI system or a gate prints the report, where suppression comments in the change do not
    /// count.
    pub in_ci: bool,
}

/// Parts of a file link in addition to the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The name of this machine: a terminal that shows a remote session must not open a local file
    /// of that path.
    pub host: String,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            color: false,
            links: None,
            unicode: false,
            width: 80,
            quiet: false,
            verbose: false,
            dispositioned: false,
            in_ci: false,
        }
    }
}

/// Writes a report. Secrets in file names are masked. `style` applies to the reports that a
/// terminal or a log shows.
pub fn render(
    review: &Review,
    format: ReportFormat,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (_, _, write) = format.form();
    let screened = match format {
        ReportFormat::Human | ReportFormat::Json | ReportFormat::Jsonl | ReportFormat::Html => {
            std::borrow::Cow::Borrowed(review)
        }
        _ => for_forge(review),
    };
    let review = screened.as_ref();
    let names = names::SecretNames::of(review);
    if names.is_empty() {
        return write(review, style, out);
    }
    let mut report = Vec::new();
    write(review, style, &mut report)?;
    names.write(&report, out)
}

/// Returns the line that ends every run on standard error, without a line end.
pub fn summary_line(review: &Review) -> String {
    let c = &review.coverage;
    let state = if c.is_complete() && !c.is_truncated() {
        "complete"
    } else {
        "incomplete"
    };
    let findings: usize = totals(review).iter().map(|(_, n)| n).sum();
    let (reviewed, total, exit) = (c.files_reviewed, c.files_total, review.exit.code());
    let backend = Inert::new(backends(review).join(","));
    format!(
        "review: {state} files={reviewed}/{total} backend={backend} findings={findings} exit={exit}"
    )
}

/// Returns the verdict and its basis, on one line for people:
/// `claude-reviewer: PASS, 2 files reviewed, 3 ms`.
pub fn verdict_line(review: &Review) -> String {
    let (word, _) = words::verdict(review);
    let basis = if review.outcome == crate::verdict::Outcome::NothingToReview {
        words::left_out(review)
    } else {
        words::basis(review)
    };
    Inert::new(format!("claude-reviewer: {word}: {basis}")).to_string()
}

/// Returns what happened to the findings of the previous round: `2 fixed, 1 still present`.
pub fn changes(since: &Since) -> String {
    let all = [
        (since.fixed, "fixed"),
        (since.still_there, "still present"),
        (since.moved, "moved"),
        (since.reopened, "reopened"),
        (since.introduced_by_fix, "introduced by a fix"),
        (since.new, "new"),
        (since.unchecked, "not checked"),
    ];
    let parts: Vec<_> = all
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    if parts.is_empty() {
        "no findings in either round".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Returns the names of the reviewers, `rules` first.
fn backends(review: &Review) -> Vec<&str> {
    let mut names = vec![Origin::Rules.name()];
    names.extend(review.models.asked.iter().map(String::as_str));
    for f in &review.findings {
        let name = f.origin().name();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Returns the number of findings that count, by severity, worst first. Includes findings that are
/// not listed.
fn totals(review: &Review) -> [(Severity, usize); 4] {
    let listed = counts(review, Finding::counts);
    std::array::from_fn(|i| {
        let (severity, n) = listed[i];
        (severity, n.saturating_add(review.unlisted.counting[i]))
    })
}

/// Returns the number of blocking findings by severity, worst first.
fn blocking(review: &Review) -> [(Severity, usize); 4] {
    let listed = counts(review, |f| f.blocking);
    std::array::from_fn(|i| {
        let (severity, n) = listed[i];
        (severity, n.saturating_add(review.unlisted.blocking[i]))
    })
}

/// Returns the number of findings that a person rejected or deferred.
fn dispositioned(review: &Review) -> usize {
    review.findings.iter().filter(|f| f.is_set_aside()).count()
}

/// Returns the number of suppressed findings.
fn suppressed(review: &Review) -> usize {
    review
        .findings
        .iter()
        .filter(|f| f.suppressed.is_some())
        .count()
        .saturating_add(review.unlisted.suppressed)
}

/// Returns the number of listed findings that a predicate selects by severity, worst first.
fn counts(review: &Review, which: impl Fn(&Finding) -> bool) -> [(Severity, usize); 4] {
    Severity::ALL.map(|s| {
        (
            s,
            review
                .findings
                .iter()
                .filter(|f| f.severity() == s && which(f))
                .count(),
        )
    })
}

/// Joins counts to `1 critical, 2 suggestions`; empty if all are zero.
fn counted(totals: &[(Severity, usize)]) -> String {
    let parts = totals
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(severity, n)| match severity {
            Severity::Suggestion => plural(*n, severity.name()),
            _ => format!("{n} {severity}"),
        });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the summary line of a run that failed before the review.
pub fn summary_of_error(status: crate::error::ExitStatus) -> String {
    format!(
        "review: incomplete files=0/0 backend=none findings=0 exit={}",
        status.code()
    )
}
