//! Results of models and tests that are not findings: the design, missing requirements, dropped
//! claims, cost.

use super::accent;
use super::page::{BOLD, CYAN, DIM, GREEN, HumanPage, PLAIN, RED, StyledLine, YELLOW};
use crate::ai::Models;
use crate::report::words::{dropped_claims, other_missing, spent, tests_word};
use crate::review::{Review, TestResults};
use crate::untrusted::Inert;
use crate::verdict::TestOutcome;
use std::io;

/// Dropped claims and failing tests listed without `-v`, at most.
const NAMES: usize = 10;

/// Writes the results of tests and models that are not findings.
pub(super) fn write(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    if let Some(tests) = &review.tests {
        self::tests(page, tests)?;
    }
    if page.style.verbose {
        opinions(page, &review.models)?;
    }
    compliance(page, review)?;
    dropped(page, review)
}

/// Writes the result of the project's tests and the names of failed ones.
fn tests(page: &mut HumanPage<'_>, t: &TestResults) -> io::Result<()> {
    page.gap()?;
    let style = match t.outcome {
        TestOutcome::Passed => GREEN,
        TestOutcome::Failed => RED,
        TestOutcome::NotStarted | TestOutcome::TimedOut | TestOutcome::Stopped => YELLOW,
    };
    let word = Inert::new(tests_word(t.outcome).to_ascii_lowercase());
    let mut line = StyledLine::new()
        .put(style, word)
        .put(PLAIN, ": ")
        .put(PLAIN, Inert::new(&t.summary));
    if let Some(coverage) = &t.coverage {
        line = line.put(DIM, Inert::new(format!("  coverage {coverage}")));
    }
    page.wrapped(&line, 4)?;
    let most = if page.style.verbose {
        usize::MAX
    } else {
        NAMES
    };
    for name in t.failing.iter().take(most) {
        page.wrapped(&StyledLine::new().space(4).put(PLAIN, Inert::new(name)), 6)?;
    }
    if t.failing.len() > most {
        let text = format!("and {} more (-v lists all)", t.failing.len() - most);
        page.wrapped(&StyledLine::new().space(4).put(DIM, Inert::new(text)), 6)?;
    }
    Ok(())
}

/// Writes the remarks of models about parts of the change.
fn opinions(page: &mut HumanPage<'_>, models: &Models) -> io::Result<()> {
    if !models.opinions.is_empty() {
        page.gap()?;
    }
    for o in &models.opinions {
        let label = Inert::new(format!("opinion of {}: ", o.backend));
        page.wrapped(
            &StyledLine::new()
                .put(CYAN, label)
                .put(PLAIN, Inert::new(&o.text)),
            4,
        )?;
    }
    Ok(())
}

/// Writes the violations of the design and the missing requirements.
fn compliance(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let violations = review.models.compliance.iter().flat_map(|c| &c.violations);
    let mut first = true;
    for v in violations {
        if std::mem::take(&mut first) {
            page.gap()?;
        }
        let line = StyledLine::new()
            .put(accent(v.impact), "design: ")
            .put(BOLD, Inert::new(&v.issue))
            .put(
                DIM,
                Inert::new(
                    v.reference
                        .as_ref()
                        .map(|r| format!("  {r}"))
                        .unwrap_or_default(),
                ),
            );
        page.wrapped(&line, 4)?;
    }
    for m in other_missing(review) {
        if std::mem::take(&mut first) {
            page.gap()?;
        }
        let line = StyledLine::new()
            .put(accent(m.severity), "missing: ")
            .put(BOLD, Inert::new(&m.requirement))
            .put(
                DIM,
                Inert::new(
                    m.reference
                        .as_ref()
                        .map(|r| format!("  {r}"))
                        .unwrap_or_default(),
                ),
            );
        page.wrapped(&line, 4)?;
    }
    Ok(())
}

/// Writes the claims that could not be anchored; only their number without `-v`.
fn dropped(page: &mut HumanPage<'_>, review: &Review) -> io::Result<()> {
    let models = &review.models;
    if models.dropped.is_empty() {
        return Ok(());
    }
    page.gap()?;
    if !page.style.verbose {
        let text = dropped_claims(review) + " (-v lists them)";
        return page.wrapped(&StyledLine::new().put(DIM, Inert::new(text)), 4);
    }
    for d in &models.dropped {
        let line = StyledLine::new()
            .put(CYAN, "dropped: ")
            .put(PLAIN, Inert::new(&d.claim))
            .put(DIM, Inert::new(format!("  {} ({})", d.why, d.backend)));
        page.wrapped(&line, 4)?;
    }
    Ok(())
}

/// Writes one line for each backend: requests, tokens, cost, time.
pub(super) fn usage(page: &mut HumanPage<'_>, models: &Models) -> io::Result<()> {
    for u in &models.usage {
        page.wrapped(
            &StyledLine::new().space(2).put(DIM, Inert::new(spent(u))),
            4,
        )?;
    }
    if models.usage.is_empty() && !models.asked.is_empty() {
        let text = format!("{}: not asked", models.asked.join(", "));
        page.wrapped(&StyledLine::new().space(2).put(YELLOW, Inert::new(text)), 4)?;
    }
    Ok(())
}
