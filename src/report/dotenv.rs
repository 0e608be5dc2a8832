//! `key=value` lines for pipelines: GitHub's `$GITHUB_OUTPUT`, GitLab's `artifacts:reports:dotenv`.
//!
//! Only fixed words and numbers, no untrusted text: a pipeline may use the values in a command.

use super::totals;
use crate::review::Review;
use std::io::{self, Write};

/// Writes the lines.
pub fn render(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let [(_, critical), (_, major), (_, minor), (_, suggestion)] = totals(review);
    let tests = review
        .tests
        .as_ref()
        .map_or("not_run", |t| t.outcome.name());
    let blocking = super::blocking(review)
        .iter()
        .map(|(_, n)| n)
        .sum::<usize>();
    writeln!(out, "verdict={}", review.verdict.name())?;
    writeln!(out, "outcome={}", review.outcome.name())?;
    for (key, number) in [
        ("findings", critical + major + minor + suggestion),
        ("blocking", blocking),
        ("critical", critical),
        ("major", major),
        ("minor", minor),
        ("suggestion", suggestion),
        ("dispositioned", super::dispositioned(review)),
        ("files_reviewed", review.coverage.files_reviewed),
        ("files_total", review.coverage.files_total),
        ("exit_code", usize::from(review.exit.code())),
    ] {
        writeln!(out, "{key}={number}")?;
    }
    if !review.context.is_empty() {
        writeln!(out, "context={}", review.context.len())?;
    }
    writeln!(out, "tests={tests}")
}
