//! Reports: a finished review in the forms that people and programs read.
//!
//! Each format is a function over the review, in a file of its own. Nothing here decides anything: the
//! exit code is the same for every format.

pub mod dotenv;
pub mod github;
pub mod gitlab;
pub mod html;
pub mod human;
pub mod json;
pub mod junit;
pub mod markdown;
pub(crate) mod names;
pub mod rdjson;
pub mod sarif;
pub mod summary;
mod words;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use crate::finding::{Finding, Origin, Severity};
use crate::review::Review;
use crate::untrusted::Inert;
use crate::wire::stored::Since;
use std::io::{self, Write};

/// A form of report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Human,
    Json,
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

/// What there is to know of a form: its name on the command line, what the help says, and what writes it.
type Form = (&'static str, &'static str, fn(&Review, &Style, &mut dyn Write) -> io::Result<()>);

impl Format {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 11] = [
        Self::Human,
        Self::Json,
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

    fn form(self) -> Form {
        match self {
            Self::Human => ("human", "for people: code frames, totals, verdict", human::render),
            Self::Json => {
                ("json", "for programs: versioned, see schemas/report.schema.json", |r, _, o| json::render(r, o))
            }
            Self::Sarif => ("sarif", "SARIF 2.1.0, for code scanning", |r, _, o| sarif::render(r, o)),
            Self::Github => ("github", "the log of a GitHub Actions step, with annotations", github::render),
            Self::Summary => {
                ("summary", "a page in Markdown, for $GITHUB_STEP_SUMMARY", |r, _, o| summary::render(r, o))
            }
            Self::Markdown => {
                ("markdown", "a comment for a pull request, within GitHub's limit", |r, _, o| markdown::render(r, o))
            }
            Self::Gitlab => ("gitlab", "GitLab's Code Quality report", |r, _, o| gitlab::render(r, o)),
            Self::Rdjson => ("rdjson", "Reviewdog's Diagnostic Format", |r, _, o| rdjson::render(r, o)),
            Self::Junit => ("junit", "JUnit XML, for Jenkins, GitLab and Azure", |r, _, o| junit::render(r, o)),
            Self::Dotenv => {
                ("dotenv", "key=value lines: verdict and counts, for $GITHUB_OUTPUT and GitLab's dotenv", |r, _, o| {
                    dotenv::render(r, o)
                })
            }
            Self::Html => {
                ("html", "one page for a browser: the change with the findings in it", |r, _, o| html::render(r, o))
            }
        }
    }

    /// Returns the name on the command line.
    pub fn name(self) -> &'static str {
        self.form().0
    }

    /// Returns what the help says about it.
    pub fn help(self) -> &'static str {
        self.form().1
    }

    /// Parses a name; the error lists the names there are.
    pub fn parse(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|f| f.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
            format!("unknown format {name:?}; there are {}", names.join(", "))
        })
    }
}

/// How the report for people looks. The caller decides; renderers never look at the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// Glyphs beyond ASCII for bars and carets.
    pub unicode: bool,
    /// Columns; text is wrapped and code is cut to fit, from 20 up.
    pub width: usize,
    /// Nothing but findings.
    pub quiet: bool,
    /// Every finding in full, suppressed ones, references and fingerprints.
    pub verbose: bool,
    /// A CI system shows the report, or it is a gate's: fingerprints of what blocks are at hand for `--waive`.
    pub in_ci: bool,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, unicode: false, width: 80, quiet: false, verbose: false, in_ci: false }
    }
}

/// Writes a report, without the secrets that names of files hold. `style` matters to the reports that people read as
/// they are, in a terminal or a log.
pub fn render(review: &Review, format: Format, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let (_, _, write) = format.form();
    let names = names::Names::of(review);
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
    let state = if c.is_complete() && !c.is_truncated() { "complete" } else { "incomplete" };
    let findings: usize = totals(review).iter().map(|(_, n)| n).sum();
    let (reviewed, total, exit) = (c.files_reviewed, c.files_total, review.exit.code());
    let backend = Inert::new(backends(review).join(","));
    format!("review: {state} files={reviewed}/{total} backend={backend} findings={findings} exit={exit}")
}

/// Returns the verdict and what it rests on, on one line for people: `claude-reviewer: PASS, 2 files reviewed, 3 ms`.
pub fn verdict_line(review: &Review) -> String {
    let (word, _) = words::verdict(review);
    let basis = if review.outcome == crate::verdict::Outcome::NothingToReview {
        words::left_out(review)
    } else {
        words::basis(review)
    };
    Inert::new(format!("claude-reviewer: {word}: {basis}")).to_string()
}

/// Returns what became of the findings of the round before: `2 fixed, 1 still there`.
pub fn changes(since: &Since) -> String {
    let all = [
        (since.fixed, "fixed"),
        (since.still_there, "still there"),
        (since.moved, "moved"),
        (since.reopened, "reopened"),
        (since.introduced_by_fix, "introduced by a fix"),
        (since.new, "new"),
        (since.unchecked, "not looked at again"),
    ];
    let parts: Vec<_> = all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if parts.is_empty() { "no findings, then or now".to_owned() } else { parts.join(", ") }
}

/// Returns who looked, `rules` first.
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

/// Returns how many findings that count there are of each severity, worst first, also those that are not listed.
fn totals(review: &Review) -> [(Severity, usize); 4] {
    let listed = counts(review, Finding::counts);
    std::array::from_fn(|i| (listed[i].0, listed[i].1 + review.unlisted.counting[i]))
}

/// Returns how many findings block of each severity, worst first.
fn blocking(review: &Review) -> [(Severity, usize); 4] {
    let listed = counts(review, |f| f.blocking);
    std::array::from_fn(|i| (listed[i].0, listed[i].1 + review.unlisted.blocking[i]))
}

/// Returns how many findings a comment suppresses.
fn suppressed(review: &Review) -> usize {
    review.findings.iter().filter(|f| f.suppressed.is_some()).count() + review.unlisted.suppressed
}

/// Returns how many of some findings there are of each severity, worst first.
fn counts(review: &Review, which: impl Fn(&Finding) -> bool) -> [(Severity, usize); 4] {
    Severity::ALL.map(|s| (s, review.findings.iter().filter(|f| f.severity() == s && which(f)).count()))
}

/// Joins counts as people say them: `1 critical, 2 suggestions`; empty when there is nothing.
fn counted(totals: &[(Severity, usize)]) -> String {
    let said = |(severity, n): &(Severity, usize)| match severity {
        Severity::Suggestion => plural(*n, severity.name()),
        _ => format!("{n} {severity}"),
    };
    let parts: Vec<_> = totals.iter().filter(|(_, n)| *n > 0).map(said).collect();
    parts.join(", ")
}

/// Returns `1 file`, `2 files`.
fn plural(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// Returns the same line for a run that ended with an error before anything was reviewed.
pub fn summary_of_error(status: crate::error::ExitStatus) -> String {
    format!("review: incomplete files=0/0 backend=none findings=0 exit={}", status.code())
}
