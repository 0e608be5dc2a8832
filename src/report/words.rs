//! Texts about a whole review that several formats share: the verdict and its reasons, coverage,
//! tests, and the cost of models.

use super::finding_text::is_same_sentence;
use super::source_words::SourceWords;
use super::{counted, dispositioned, suppressed, totals};
use crate::ai::{BackendUsage, UnmetRequirement};
use crate::error::ExitStatus;
use crate::finding::{Category, Finding, Location};
use crate::request::OnTestFailure;
use crate::review::Review;
use crate::text::plural;
use crate::untrusted;
use crate::verdict::{Outcome, TestOutcome, Verdict};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Returns the tickets and pages that models saw in addition to the change:
/// `PROJ-12 "title" (jira)`.
pub(super) fn context(review: &Review) -> Vec<String> {
    let lines = review
        .context
        .iter()
        .map(|item| match item.title.is_empty() {
            true => format!("{} ({})", item.reference, item.source),
            false => format!("{} \"{}\" ({})", item.reference, item.title, item.source),
        });
    lines.collect()
}

/// Returns the verdict as a word, and its reason: `BLOCK`,
/// `2 of 3 findings block this change: 2 major`.
pub(super) fn verdict(review: &Review) -> (&'static str, String) {
    let found = counted(&totals(review));
    let (word, first) = match (review.outcome, review.verdict) {
        (Outcome::NothingToReview, _) if review.coverage.files_total == 0 => {
            let none = SourceWords::of(&review.source).nothing;
            return ("NOTHING TO REVIEW", none.to_owned());
        }
        (Outcome::NothingToReview, _) => return ("NOTHING TO REVIEW", left_out(review)),
        (Outcome::Cancelled, _) => {
            return (
                "CANCELLED",
                "the review was stopped before it finished".to_owned(),
            );
        }
        (_, Verdict::Pass) if found.is_empty() => ("PASS", "no findings".to_owned()),
        (_, Verdict::Pass) => ("PASS", format!("{found}; none blocking")),
        (_, Verdict::Warn) if found.is_empty() => ("WARN", "no findings".to_owned()),
        (_, Verdict::Warn) => ("WARN", format!("{found}; none blocking")),
        (_, Verdict::Incomplete) if found.is_empty() => ("INCOMPLETE", missing(review)),
        (_, Verdict::Incomplete) => (
            "INCOMPLETE",
            format!("{}; so far: {found}", missing(review)),
        ),
        (_, Verdict::Block) => ("BLOCK", blocking(review)),
    };
    // The reason for the verdict comes first.
    let tests = tests(review);
    let parts = match tests_block(review) {
        true => [tests, Some(first), truncated(review), unlisted(review)],
        false => [Some(first), tests, truncated(review), unlisted(review)],
    };
    (
        word,
        parts.into_iter().flatten().collect::<Vec<_>>().join("; "),
    )
}

/// Returns the number of blocking findings and their severities.
fn blocking(review: &Review) -> String {
    let totals = totals(review);
    let all: usize = totals.iter().map(|(_, n)| n).sum();
    let blocking = super::blocking(review);
    let n: usize = blocking.iter().map(|(_, n)| n).sum();
    let verb = if n == 1 { "blocks" } else { "block" };
    let verb = format!("{verb}{}", SourceWords::of(&review.source).blocked);
    let one_kind = blocking
        .iter()
        .find(|(_, count)| *count == n)
        .filter(|_| n == all);
    match one_kind {
        _ if all == 0 => "no findings".to_owned(),
        _ if n == 0 => format!("{}, none blocking", plural(all, "finding")),
        Some((severity, _)) => format!("{} {verb}", plural(n, &format!("{severity} finding"))),
        None if n == all => format!("{} {verb}: {}", plural(n, "finding"), counted(&blocking)),
        None => format!("{n} of {all} findings {verb}: {}", counted(&blocking)),
    }
}

/// Returns true if the project's tests failed and the policy makes that block.
pub(super) fn tests_block(review: &Review) -> bool {
    let failed = review
        .tests
        .as_ref()
        .is_some_and(|t| t.outcome == TestOutcome::Failed);
    failed && review.judged_by.tests.on_failure == OnTestFailure::Block
}

/// Returns the summary of failed tests of the project; `None` if they passed or did not finish.
pub(super) fn tests(review: &Review) -> Option<String> {
    let t = review
        .tests
        .as_ref()
        .filter(|t| t.outcome == TestOutcome::Failed)?;
    Some(format!("the project's tests failed: {}", t.summary))
}

/// Returns the result of the project's tests as a heading.
pub(super) fn tests_word(outcome: TestOutcome) -> &'static str {
    match outcome {
        TestOutcome::Passed => "Tests passed",
        TestOutcome::Failed => "Tests failed",
        TestOutcome::NotStarted => "Tests not started",
        TestOutcome::TimedOut => "Tests timed out",
        TestOutcome::Stopped => "Tests stopped",
    }
}

/// Returns the summary of failed tests and at most `most` of their names, each on a line.
pub(super) fn failed_tests(review: &Review, most: usize) -> Option<String> {
    let text = tests(review)?;
    let names = &review.tests.as_ref()?.failing;
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    let more = names.len().saturating_sub(most);
    Some(match (shown.is_empty(), more) {
        (true, _) => text,
        (false, 0) => format!("{text}\n{}", shown.join("\n")),
        (false, more) => format!("{text}\n{}\nand {more} more", shown.join("\n")),
    })
}

/// Returns the number of reviewed files: `47 of 120 files reviewed`.
pub(super) fn reviewed(review: &Review) -> String {
    let c = &review.coverage;
    format!(
        "{} of {} reviewed",
        c.files_reviewed,
        plural(c.files_total, SourceWords::of(&review.source).unit)
    )
}

/// Returns how much was reviewed before a limit truncated the review; `None` if it is not
/// truncated.
pub(super) fn truncated(review: &Review) -> Option<String> {
    let c = &review.coverage;
    let shares: Vec<_> = c
        .by_reviewer
        .iter()
        .map(|(name, share)| format!("{name} {} of {}", share.files_reviewed, share.files_total))
        .collect();
    let numbers = if shares.is_empty() {
        String::new()
    } else {
        format!(" ({})", shares.join(", "))
    };
    c.is_truncated().then(|| {
        format!(
            "a limit truncated the review: {}{numbers}",
            reviewed(review)
        )
    })
}

/// Returns the words about a review without files.
pub(super) fn nothing(review: &Review) -> &'static str {
    SourceWords::of(&review.source).nothing_at_start
}

/// Returns why no file of a change was reviewed: `0 of 2 files reviewed: 1 binary, 1 ignored`.
pub(super) fn left_out(review: &Review) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, skip) in &review.coverage.skipped {
        *reasons.entry(skip.name()).or_default() += 1;
    }
    let reasons: Vec<_> = reasons
        .iter()
        .map(|(why, n)| format!("{n} {why}"))
        .collect();
    let why = if reasons.is_empty() {
        String::new()
    } else {
        format!(": {}", reasons.join(", "))
    };
    format!("{}{why}", reviewed(review))
}

/// Returns a note if models were asked and the project has no conventions to read.
pub(super) fn conventions(review: &Review) -> Option<String> {
    review.models.no_conventions.clone()
}

/// Returns the flag or policy key that makes the exit code 0 in spite of the verdict.
pub(super) fn zero_because(review: &Review) -> Option<&'static str> {
    match review.verdict {
        _ if review.exit != ExitStatus::Pass => None,
        Verdict::Block => Some("--exit-zero"),
        Verdict::Incomplete => Some("on_incomplete = \"warn\""),
        _ => None,
    }
}

/// Returns why the exit code is better than the verdict; `None` if it is not.
pub(super) fn let_through(review: &Review) -> Option<String> {
    zero_because(review).map(|cause| format!("exit code 0 because of {cause}"))
}

/// Returns the number of files that were not reviewed.
pub(super) fn missing(review: &Review) -> String {
    // Several backends may have failed on one file.
    let files: HashSet<_> = review
        .coverage
        .failed
        .iter()
        .filter_map(|f| f.file.as_ref())
        .collect();
    match files.len() {
        0 => format!("{} was not reviewed", SourceWords::of(&review.source).part),
        1 => "1 file was not reviewed".to_owned(),
        n => format!("{n} files were not reviewed"),
    }
}

/// Returns how many findings are listed if some are not. Every format that lists findings writes
/// it.
pub(super) fn unlisted(review: &Review) -> Option<String> {
    let u = &review.unlisted;
    let listed = review.findings.iter().filter(|f| f.counts()).count();
    let mut parts = Vec::new();
    if u.total() > 0 {
        let (listed, all) = (grouped(listed as u64), grouped((listed + u.total()) as u64));
        parts.push(format!(
            "the worst {listed} of {all} findings are listed; the verdict counts all"
        ));
    }
    if u.suppressed > 0 {
        parts.push(format!(
            "{} suppressed findings are not listed",
            grouped(u.suppressed as u64)
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the basis of the verdict: the change, how much was reviewed, and how long it took.
pub(super) fn basis(review: &Review) -> String {
    let c = &review.coverage;
    let mut parts = Vec::new();
    if !review.source.label.is_empty() {
        parts.push(review.source.title().into_owned());
    }
    parts.push(if c.files_reviewed == c.files_total {
        let unit = SourceWords::of(&review.source).unit;
        format!("{} reviewed", plural(c.files_total, unit))
    } else {
        reviewed(review)
    });
    let set_aside = [
        (suppressed(review), "suppressed"),
        (
            review
                .findings
                .iter()
                .filter(|f| f.waived.is_some())
                .count(),
            "waived",
        ),
        (dispositioned(review), "dispositioned"),
    ];
    parts.extend(
        set_aside
            .into_iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}")),
    );
    parts.push(elapsed(review.duration));
    parts.extend(review.session.as_ref().map(|s| match s.round {
        1 => format!("stored as {}", s.id),
        n => format!("round {n} of {}", s.id),
    }));
    parts.join(", ")
}

/// Returns how many claims were dropped, and why.
pub(super) fn dropped_claims(review: &Review) -> String {
    let n = review.models.dropped.len();
    let verb = if n == 1 { "does" } else { "do" };
    format!(
        "{} could not be anchored to {} and {verb} not count",
        plural(n, "claim"),
        SourceWords::of(&review.source).line
    )
}

/// Formats a duration: `<1 ms`, `12 ms`, `3.4 s`, `2 min 5 s`.
pub(super) fn elapsed(d: Duration) -> String {
    match d.as_millis() {
        0 => "<1 ms".to_owned(),
        ms @ 1..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", d.as_secs_f64()),
        _ => format!("{} min {} s", d.as_secs() / 60, d.as_secs() % 60),
    }
}

/// Returns `claude (sonnet): 3 requests, 12,034 tokens in (8,000 cached), 540 out, $0.03, 8.2 s`.
pub(super) fn spent(u: &BackendUsage) -> String {
    let s = &u.spent;
    let mut text = u.backend.clone();
    if !u.model.is_empty() {
        text.push_str(&format!(" ({})", u.model));
    }
    text.push_str(&match (s.requests, u.from_cache, u.failed) {
        (0, 0, 0) if u.earlier_usd.is_some() => ": not asked in this run".to_owned(),
        (0, 0, _) => ": no reply".to_owned(),
        (0, _, 0) => ": all replies from the cache".to_owned(),
        (0, cached, failed) => {
            let replies = if cached == 1 {
                "1 reply".to_owned()
            } else {
                format!("{cached} replies")
            };
            format!(
                ": {replies} from the cache, {} failed",
                count(failed, "question")
            )
        }
        (n, _, 0) => format!(": {}", count(n, "request")),
        (n, _, failed) => format!(
            ": {}, {} failed",
            count(n, "request"),
            count(failed, "question")
        ),
    });
    if s.input_tokens > 0 || s.output_tokens > 0 {
        text.push_str(&format!(", {} tokens in", grouped(s.input_tokens)));
        if s.cached_tokens > 0 {
            text.push_str(&format!(" ({} cached)", grouped(s.cached_tokens)));
        }
        text.push_str(&format!(", {} out", grouped(s.output_tokens)));
    }
    if let Some(usd) = s.cost_usd {
        text.push_str(&format!(", {}", dollars(usd)));
    }
    if u.batch {
        text.push_str(" (batch)");
    }
    if let Some(usd) = u.earlier_usd {
        text.push_str(&format!(", {} of it in earlier runs", dollars(usd)));
    }
    text.push_str(&format!(", {}", elapsed(u.duration)));
    text
}

/// Returns an amount of US dollars, with more digits if it is below a cent.
pub(super) fn dollars(usd: f64) -> String {
    match usd < 0.01 && usd > 0.0 {
        true => format!("${usd:.4}"),
        false => format!("${usd:.2}"),
    }
}

/// Returns `1 request`, `2 requests`.
fn count(n: u64, noun: &str) -> String {
    plural(usize::try_from(n).unwrap_or(usize::MAX), noun)
}

/// Writes a number with a comma before every three digits.
pub(super) fn grouped(n: u64) -> String {
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

/// Returns the missing requirements that are not findings, as those without a citation. The state
/// of a finding, such as a rejection, decides whether and where a report shows it.
pub(super) fn other_missing(review: &Review) -> Vec<&UnmetRequirement> {
    let findings: Vec<&Finding> = review
        .findings
        .iter()
        .filter(|f| f.category() == Category::MissingRequirement)
        .collect();
    let others = review.models.missing.iter().filter(|m| {
        !findings
            .iter()
            .any(|f| is_same_sentence(f.message(), &m.requirement))
    });
    others.collect()
}

/// Returns a position for messages without one: the first changed line, or a file in the coverage.
pub(super) fn somewhere(review: &Review) -> Option<Location> {
    if let Some(first) = &review.first_change {
        return Some(first.clone());
    }
    let c = &review.coverage;
    let named = c
        .failed
        .iter()
        .find_map(|f| f.file.as_ref())
        .or_else(|| c.skipped.first().map(|(p, _)| p));
    Some(Location {
        file: named?.clone(),
        lines: None,
    })
}

/// Returns one line for each part that was not reviewed, at most `most`:
/// `data/dump.sql: the object is damaged`. The lines are untrusted text, which the format escapes.
pub(super) fn unreviewed(review: &Review, most: usize) -> Vec<String> {
    let failed = &review.coverage.failed;
    let mut lines: Vec<String> = failed
        .iter()
        .take(most)
        .map(|f| match &f.file {
            Some(path) => format!("{}: {}", untrusted::Inert::new(path.as_bytes()), f.cause),
            None => f.reason(),
        })
        .collect();
    if failed.len() > most {
        lines.push(format!("and {} more", failed.len() - most));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ai::ask::Spent;

    #[test]
    fn usage_is_one_line_that_names_only_what_is_known() {
        let spent = Spent {
            requests: 3,
            input_tokens: 12_034,
            cached_tokens: 8_000,
            output_tokens: 540,
            ..Spent::default()
        };
        let mut u = BackendUsage {
            backend: "local".to_owned(),
            model: "small".to_owned(),
            spent,
            duration: Duration::from_millis(8_200),
            ..BackendUsage::default()
        };
        assert_eq!(
            self::spent(&u),
            "local (small): 3 requests, 12,034 tokens in (8,000 cached), 540 out, 8.2 s"
        );
        u.spent = Spent {
            requests: 1,
            cost_usd: Some(0.0004),
            ..Spent::default()
        };
        assert_eq!(self::spent(&u), "local (small): 1 request, $0.0004, 8.2 s");
        (u.spent.cost_usd, u.earlier_usd) = (Some(1.5), Some(0.25));
        assert_eq!(
            self::spent(&u),
            "local (small): 1 request, $1.50, $0.25 of it in earlier runs, 8.2 s"
        );
        u.model.clear();
        (u.spent.requests, u.duration) = (0, Duration::ZERO);
        assert_eq!(
            self::spent(&u),
            "local: not asked in this run, $1.50, $0.25 of it in earlier runs, <1 ms"
        );
    }

    #[test]
    fn a_backend_that_failed_is_not_shown_as_answered_from_the_cache() {
        for (requests, from_cache, failed, text) in [
            (0, 3, 0, "b: all replies from the cache, <1 ms"),
            (0, 0, 2, "b: no reply, <1 ms"),
            (0, 0, 0, "b: no reply, <1 ms"),
            (
                0,
                3,
                2,
                "b: 3 replies from the cache, 2 questions failed, <1 ms",
            ),
            (4, 0, 1, "b: 4 requests, 1 question failed, <1 ms"),
        ] {
            let spent = Spent {
                requests,
                ..Spent::default()
            };
            let u = BackendUsage {
                backend: "b".to_owned(),
                spent,
                from_cache,
                failed,
                batch: false,
                ..BackendUsage::default()
            };
            assert_eq!(self::spent(&u), text);
        }
    }
}
