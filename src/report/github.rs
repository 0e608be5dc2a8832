//! The log of a GitHub Actions step: findings in groups that unfold, and annotations of the change.
//!
//! GitHub keeps ten annotations of each kind from a step and silently drops the rest, so the worst
//! come first and the others are counted. No line with untrusted text can be read as a workflow
//! command.

use super::finding_text::{self, Level, columns, paragraphs, placed};
use super::words;
use super::{Style, human};
use crate::finding::Finding;
use crate::review::Review;
use crate::untrusted::{clipped, data, property};
use crate::verdict::Verdict;
use std::io::{self, Write};

/// Annotations of one kind that GitHub keeps for a step.
const MAX_ANNOTATIONS: usize = 10;
/// Bytes of an annotation's text, at most; GitHub accepts 64 KB.
const MAX_TEXT: usize = 8_000;
/// Bytes of an annotation's title, at most; GitHub accepts 255 characters.
const MAX_TITLE: usize = 200;
/// Names in the list of files that were not reviewed, at most.
const NAMES: usize = 20;

/// Writes the log.
pub fn render(review: &Review, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut out = io::BufWriter::new(out);
    human::groups(review, style, &mut out)?;
    annotations(review, &mut out)?;
    human::rest(review, style, &mut out)?;
    out.flush()
}

/// Writes the annotations, worst first. GitHub shows a limited number of each level.
fn annotations(review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let all = finding_text::worst_first(review);
    let incomplete = !review.coverage.is_complete();
    if incomplete {
        // If the policy allows incomplete reviews, the step is green, and an error would contradict
        // it.
        let passes = review.verdict == Verdict::Incomplete && words::let_through(review).is_some();
        let kind = if passes { Level::Warning } else { Level::Error };
        let text = unreviewed(review);
        writeln!(
            out,
            "::{} title={}::{}",
            name(kind),
            property("Incomplete review"),
            data(&clipped(&text, MAX_TEXT))
        )?;
    }
    let whole = of_the_whole(review);
    for (kind, title, text) in &whole {
        let text = clipped(text, MAX_TEXT);
        writeln!(
            out,
            "::{} title={}::{}",
            name(*kind),
            property(title),
            data(&text)
        )?;
    }
    // Annotations on the whole review take the place of findings, and one notice counts the omitted
    // findings.
    let taken = usize::from(incomplete) + whole.len();
    let of_levels =
        Level::ALL.map(|level| (level, all.iter().filter(move |f| Level::of(f) == level)));
    let fits = of_levels
        .iter()
        .all(|(level, of)| of.clone().count() <= room(*level, taken, false));
    let mut shown = 0;
    for (level, of) in of_levels {
        for f in of.take(room(level, taken, !fits)) {
            annotation(f, review, out)?;
            shown += 1;
        }
    }
    if shown < all.len() {
        let left = all.len() - shown;
        let text = format!(
            "The worst {shown} of {} findings are annotated. GitHub would drop the other {left}. The log and the job \
             summary have more.",
            all.len()
        );
        writeln!(out, "::notice title=More findings::{}", data(&text))?;
    }
    Ok(())
}

/// Returns remarks on the whole review: failed tests, and a limit that truncated it.
fn of_the_whole(review: &Review) -> Vec<(Level, &'static str, String)> {
    let kind = if words::tests_block(review) {
        Level::Error
    } else {
        Level::Warning
    };
    let tests = words::failed_tests(review, NAMES).map(|text| (kind, "Tests failed", text));
    let cut = words::truncated(review).map(|text| (Level::Warning, "Review truncated", text));
    tests.into_iter().chain(cut).collect()
}

/// Returns how many findings of a kind can be annotated.
fn room(level: Level, taken: usize, is_counted: bool) -> usize {
    match level {
        Level::Error | Level::Warning => MAX_ANNOTATIONS - taken,
        Level::Notice => MAX_ANNOTATIONS - usize::from(is_counted),
    }
}

/// Returns the text of the annotation about an incomplete review.
fn unreviewed(review: &Review) -> String {
    let lines = words::unreviewed(review, NAMES);
    format!("{}\n{}", words::missing(review), lines.join("\n"))
}

/// Writes the annotation of a finding.
fn annotation(f: &Finding, review: &Review, out: &mut dyn Write) -> io::Result<()> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(at) = placed(f, review) {
        facts.push(("file", property(at.file.as_bytes())));
        if let Some(lines) = at.lines {
            facts.push(("line", lines.first.to_string()));
            facts.push(("endLine", lines.last.to_string()));
            // Columns are meaningful only on a single line.
            if let Some((start, end, _)) = columns(f).filter(|_| lines.first == lines.last) {
                facts.push(("col", start.to_string()));
                facts.push(("endColumn", (end - 1).to_string()));
            }
        }
    }
    let rule = f.rule_id();
    let title = format!(
        "{}: {}",
        f.severity(),
        clipped(f.title(), MAX_TITLE - rule.len().min(100))
    );
    facts.push((
        "title",
        property(format!("{title} [{}]", clipped(rule, 100))),
    ));
    let facts: Vec<_> = facts
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let paragraphs = paragraphs(f, review);
    // The first paragraph is the title.
    let text = paragraphs
        .get(1..)
        .filter(|p| !p.is_empty())
        .unwrap_or(&paragraphs)
        .join("\n");
    writeln!(
        out,
        "::{} {}::{}",
        name(Level::of(f)),
        facts.join(","),
        data(&clipped(&text, MAX_TEXT))
    )
}

/// Returns the workflow command of a level.
fn name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    }
}
