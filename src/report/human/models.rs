//! What models and tests said besides findings: the design, missing requirements, dropped claims, cost.

use super::page::{BOLD, CYAN, DIM, GREEN, Line, PLAIN, Page, RED, YELLOW};
use super::{accent, plural};
use crate::ai::{Models, Usage};
use crate::review::{Review, TestResults};
use crate::untrusted::Inert;
use std::io;

/// Dropped claims and failing tests listed at most, without `-v`.
const NAMES: usize = 10;

/// Writes what the tests and the models said that is no finding.
pub(super) fn write(page: &mut Page<'_>, review: &Review) -> io::Result<()> {
    if let Some(tests) = &review.tests {
        self::tests(page, tests)?;
    }
    if page.style.verbose {
        opinions(page, &review.models)?;
    }
    compliance(page, &review.models)?;
    dropped(page, &review.models)
}

fn tests(page: &mut Page<'_>, t: &TestResults) -> io::Result<()> {
    page.gap()?;
    let (style, word) = if t.passed { (GREEN, "tests passed") } else { (RED, "tests failed") };
    let mut line = Line::new().put(style, word).put(PLAIN, ": ").put(PLAIN, Inert::new(&t.summary));
    if let Some(coverage) = &t.coverage {
        line = line.put(DIM, Inert::new(format!("  coverage {coverage}")));
    }
    page.wrapped(&line, 4)?;
    let most = if page.style.verbose { usize::MAX } else { NAMES };
    for name in t.failing.iter().take(most) {
        page.wrapped(&Line::new().space(4).put(PLAIN, Inert::new(name)), 6)?;
    }
    if t.failing.len() > most {
        let text = format!("and {} more (-v lists them all)", t.failing.len() - most);
        page.wrapped(&Line::new().space(4).put(DIM, Inert::new(text)), 6)?;
    }
    Ok(())
}

fn opinions(page: &mut Page<'_>, models: &Models) -> io::Result<()> {
    if !models.opinions.is_empty() {
        page.gap()?;
    }
    for o in &models.opinions {
        let label = Inert::new(format!("{} says: ", o.backend));
        page.wrapped(&Line::new().put(CYAN, label).put(PLAIN, Inert::new(&o.text)), 4)?;
    }
    Ok(())
}

fn compliance(page: &mut Page<'_>, models: &Models) -> io::Result<()> {
    let violations = models.compliance.iter().flat_map(|c| &c.violations);
    let mut first = true;
    for v in violations {
        if std::mem::take(&mut first) {
            page.gap()?;
        }
        let line = Line::new()
            .put(accent(v.impact), "design: ")
            .put(BOLD, Inert::new(&v.issue))
            .put(DIM, Inert::new(v.reference.as_ref().map(|r| format!("  {r}")).unwrap_or_default()));
        page.wrapped(&line, 4)?;
    }
    for m in &models.missing {
        if std::mem::take(&mut first) {
            page.gap()?;
        }
        let line = Line::new()
            .put(accent(m.severity), "missing: ")
            .put(BOLD, Inert::new(&m.requirement))
            .put(DIM, Inert::new(m.reference.as_ref().map(|r| format!("  {r}")).unwrap_or_default()));
        page.wrapped(&line, 4)?;
    }
    Ok(())
}

fn dropped(page: &mut Page<'_>, models: &Models) -> io::Result<()> {
    if models.dropped.is_empty() {
        return Ok(());
    }
    page.gap()?;
    if !page.style.verbose {
        let n = plural(models.dropped.len(), "claim");
        let text = format!("{n} could not be tied to the change and count for nothing (-v shows them)");
        return page.wrapped(&Line::new().put(DIM, Inert::new(text)), 4);
    }
    for d in &models.dropped {
        let line = Line::new()
            .put(CYAN, "dropped: ")
            .put(PLAIN, Inert::new(&d.claim))
            .put(DIM, Inert::new(format!("  {} ({})", d.why, d.backend)));
        page.wrapped(&line, 4)?;
    }
    Ok(())
}

/// Writes what each backend was asked and what it cost, a line each.
pub(super) fn usage(page: &mut Page<'_>, models: &Models) -> io::Result<()> {
    for u in &models.usage {
        page.wrapped(&Line::new().space(2).put(DIM, Inert::new(spent(u))), 4)?;
    }
    if models.usage.is_empty() && !models.asked.is_empty() {
        let text = format!("{}: not asked", models.asked.join(", "));
        page.wrapped(&Line::new().space(2).put(YELLOW, Inert::new(text)), 4)?;
    }
    Ok(())
}

/// Returns `claude (sonnet): 3 requests, 12,034 tokens in (8,000 cached), 540 out, $0.03, 8.2 s`.
fn spent(u: &Usage) -> String {
    let s = &u.spent;
    let mut text = u.backend.clone();
    if !u.model.is_empty() {
        text.push_str(&format!(" ({})", u.model));
    }
    match usize::try_from(s.requests).unwrap_or(usize::MAX) {
        0 => text.push_str(": all from the cache"),
        n => text.push_str(&format!(": {}", plural(n, "request"))),
    }
    if s.input_tokens + s.output_tokens > 0 {
        text.push_str(&format!(", {} tokens in", grouped(s.input_tokens)));
        if s.cached_tokens > 0 {
            text.push_str(&format!(" ({} cached)", grouped(s.cached_tokens)));
        }
        text.push_str(&format!(", {} out", grouped(s.output_tokens)));
    }
    if let Some(usd) = s.cost_usd {
        text.push_str(&if usd < 0.01 && usd > 0.0 { format!(", ${usd:.4}") } else { format!(", ${usd:.2}") });
    }
    text.push_str(&format!(", {}", super::elapsed(u.duration)));
    text
}

/// Writes a number with a comma before every three digits.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::ask::Spent;
    use std::time::Duration;

    #[test]
    fn usage_is_one_line_that_names_only_what_is_known() {
        let spent =
            Spent { requests: 3, input_tokens: 12_034, cached_tokens: 8_000, output_tokens: 540, cost_usd: None };
        let mut u = Usage {
            backend: "local".to_owned(),
            model: "small".to_owned(),
            spent,
            duration: Duration::from_millis(8_200),
        };
        assert_eq!(self::spent(&u), "local (small): 3 requests, 12,034 tokens in (8,000 cached), 540 out, 8.2 s");
        u.spent = Spent { requests: 1, cost_usd: Some(0.0004), ..Spent::default() };
        assert_eq!(self::spent(&u), "local (small): 1 request, $0.0004, 8.2 s");
    }
}
