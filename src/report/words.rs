//! Texts that several formats share: the verdict, a finding's position and parts, cost, and the
//! order of findings.

use super::{counted, dispositioned, plural, suppressed, totals};
use crate::ai::{BackendUsage, UnmetRequirement};
use crate::diff::ObjectId;
use crate::error::ExitStatus;
use crate::finding::{Category, Finding, FlowStep, Frame, FrameLine, Location, Severity};
use crate::request::OnTestFailure;
use crate::review::Review;
use crate::untrusted;
use crate::verdict::{Outcome, TestOutcome, Verdict};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Bytes of a message, help or failure of a finding, at most, in formats whose readers set limits.
pub(super) const PROSE: usize = 4_000;

/// Bytes of a step of a path, at most.
const STEP: usize = 80;
/// Steps of a path that are shown, at most, and how many of them precede the omitted ones.
const STEPS: usize = 6;
const STEPS_BEFORE: usize = 3;
/// The separator between two steps of a path.
pub(super) const ARROW: &str = " → ";

/// Bytes of a related line of a finding, at most.
const LINE: usize = 200;

/// The level of a finding in formats with three levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Error,
    Warning,
    Notice,
}

impl Level {
    pub(super) const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Notice];

    /// Returns an error for a blocking finding, a notice for a suggestion, and a warning for the
    /// rest.
    pub(super) fn of(f: &Finding) -> Self {
        match (f.blocking, f.severity()) {
            (true, _) => Self::Error,
            (false, Severity::Suggestion) => Self::Notice,
            (false, _) => Self::Warning,
        }
    }
}

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
            return ("NOTHING TO REVIEW", "no changes".to_owned());
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
    let one_kind = blocking
        .iter()
        .find(|(_, count)| *count == n)
        .filter(|_| n == all);
    match one_kind {
        _ if all == 0 => "no findings".to_owned(),
        _ if n == 0 => format!("{}, none blocking", plural(all, "finding")),
        Some((severity, _)) => format!(
            "{} {verb} this change",
            plural(n, &format!("{severity} finding"))
        ),
        None if n == all => format!(
            "{} {verb} this change: {}",
            plural(n, "finding"),
            counted(&blocking)
        ),
        None => format!(
            "{n} of {all} findings {verb} this change: {}",
            counted(&blocking)
        ),
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
        plural(c.files_total, "file")
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
        0 => "a part of the change was not reviewed".to_owned(),
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
        parts.push(review.source.label.clone());
    }
    parts.push(if c.files_reviewed == c.files_total {
        format!("{} reviewed", plural(c.files_total, "file"))
    } else {
        format!(
            "{} of {} reviewed",
            c.files_reviewed,
            plural(c.files_total, "file")
        )
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
pub(super) fn dropped_claims(n: usize) -> String {
    let verb = if n == 1 { "does" } else { "do" };
    format!(
        "{} could not be anchored to a line of the change and {verb} not count",
        plural(n, "claim")
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
    if s.input_tokens + s.output_tokens > 0 {
        text.push_str(&format!(", {} tokens in", grouped(s.input_tokens)));
        if s.cached_tokens > 0 {
            text.push_str(&format!(" ({} cached)", grouped(s.cached_tokens)));
        }
        text.push_str(&format!(", {} out", grouped(s.output_tokens)));
    }
    if let Some(usd) = s.cost_usd {
        text.push_str(&if usd < 0.01 && usd > 0.0 {
            format!(", ${usd:.4}")
        } else {
            format!(", ${usd:.2}")
        });
    }
    text.push_str(&format!(", {}", elapsed(u.duration)));
    text
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

/// Returns a sort key that puts the worst findings first. Equal ones keep their order in a stable
/// sort.
pub(super) fn badness(f: &Finding) -> impl Ord + use<> {
    (
        Reverse(f.blocking),
        Reverse(f.counts()),
        Reverse(f.severity()),
    )
}

/// Returns the findings that count, worst first.
pub(super) fn worst_first(review: &Review) -> Vec<&Finding> {
    let mut all: Vec<&Finding> = review.findings.iter().filter(|f| f.counts()).collect();
    all.sort_by_key(|f| badness(f));
    all
}

/// Returns the `most` worst findings, in their original order.
pub(super) fn worst<'f>(
    findings: impl IntoIterator<Item = &'f Finding>,
    most: usize,
) -> Vec<&'f Finding> {
    let mut all: Vec<(usize, &Finding)> = findings.into_iter().enumerate().collect();
    if all.len() > most {
        all.sort_by_key(|(i, f)| (badness(f), *i));
        all.truncate(most);
        all.sort_unstable_by_key(|(i, _)| *i);
    }
    all.into_iter().map(|(_, f)| f).collect()
}

/// A part of a finding's text. Everything but the label is untrusted text, which the format
/// escapes.
#[derive(Debug)]
pub(super) enum TextPart<'f> {
    /// Prose after a label, which may be empty.
    Text(&'static str, Cow<'f, str>),
    /// Code that replaces the finding's lines.
    Code(Cow<'f, str>),
}

impl<'f> TextPart<'f> {
    /// Returns prose, truncated to the length that a format shows.
    fn text(label: &'static str, text: &'f str) -> Self {
        Self::Text(label, untrusted::clipped(text.trim(), PROSE))
    }
}

/// Returns the other lines that a finding involves, one text each: `src/a.rs:12: CODE`. They are
/// untrusted text, which the format escapes.
pub(super) fn also(f: &Finding) -> impl Iterator<Item = String> {
    f.also().iter().map(|a| {
        format!(
            "{}:{}: {}",
            a.file.to_wire(),
            a.line,
            untrusted::clipped(&a.quote, LINE)
        )
    })
}

/// Returns the path of a value on one line: `line 4 SOURCE → line 7 NAME → line 9 SINK`; `None` if
/// the finding has none. It is untrusted text, which the format escapes.
pub(super) fn flow(f: &Finding, arrow: &str) -> Option<String> {
    let steps = f.flow();
    let left_out = steps.len().saturating_sub(STEPS);
    let mut all: Vec<String> = steps.iter().take(STEPS_BEFORE).map(step).collect();
    if left_out > 0 {
        all.push(plural(left_out, "more step"));
    }
    all.extend(steps.iter().skip(STEPS_BEFORE + left_out).map(step));
    (!all.is_empty()).then(|| all.join(arrow))
}

/// Returns a step of the path of a value: `line 4 CODE`.
fn step(s: &FlowStep) -> String {
    format!("line {} {}", s.line, untrusted::clipped(&s.quote, STEP))
}

/// The reason why a finding does not count.
pub(super) struct AsideReason<'f> {
    /// Such as `waived by ada` or `deferred by ada until 2026-01-31`. Untrusted text.
    pub(super) label: String,
    pub(super) reason: &'f str,
}

/// Returns why a finding does not count; `None` if it does.
pub(super) fn aside(f: &Finding) -> Option<AsideReason<'_>> {
    match (&f.waived, &f.suppressed, &f.disposition) {
        (Some(w), ..) => Some(AsideReason {
            label: format!("waived by {}", w.by()),
            reason: &w.reason,
        }),
        (None, Some(s), _) => Some(AsideReason {
            label: format!("suppressed ({})", s.by),
            reason: &s.reason,
        }),
        (None, None, Some(d)) if f.is_set_aside() => {
            let until = d
                .expires
                .map(|date| format!(" until {date}"))
                .unwrap_or_default();
            let reason = if d.reason.is_empty() {
                "no reason was given"
            } else {
                &d.reason
            };
            Some(AsideReason {
                label: format!("{} by {}{until}", d.decision.name(), d.owner),
                reason,
            })
        }
        (None, None, _) => None,
    }
}

/// Returns the person who accepted a finding, and the reason.
pub(super) fn accepted(f: &Finding) -> Option<String> {
    let d = f
        .disposition
        .as_ref()
        .filter(|d| !d.decision.sets_aside())?;
    let reason = if d.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", d.reason)
    };
    Some(format!("accepted by {}{reason}", d.owner))
}

/// Returns how the defect was shown by a test, if one ran.
pub(super) fn reproduction(f: &Finding) -> Option<String> {
    let r = f.reproduction.as_ref()?;
    let files: Vec<&str> = r.files.iter().map(|(path, _)| path.as_str()).collect();
    let (command, files) = (untrusted::clipped(&r.command, LINE), files.join(", "));
    Some(format!(
        "a test in {files} fails, and passes with a fix; run: {command}"
    ))
}

/// Returns the ID of a finding in a stored review, for commands; `None` if the review is not
/// stored.
pub(super) fn id(f: &Finding, review: &Review) -> Option<String> {
    review.session.as_ref()?;
    review
        .findings
        .iter()
        .position(|other| std::ptr::eq(other, f))
        .map(|index| format!("F{}", index + 1))
}

/// Returns the command that writes the replacement of a finding. If the worktree has another
/// commit, it checks out the reviewed one first.
pub(super) fn apply(f: &Finding, id: &str, review: &Review) -> String {
    let commit = f
        .commit
        .or_else(|| ObjectId::from_hex(review.source.head.as_deref()?));
    let checkout = commit
        .filter(|_| review.is_elsewhere)
        .map(|c| format!("git checkout {} && ", c.short()));
    // A review that was just made is the latest one.
    let session = review
        .session
        .as_ref()
        .filter(|_| review.place.is_none())
        .map(|s| format!(" --session {}", s.id));
    format!(
        "{}claude-reviewer apply {id}{}",
        checkout.unwrap_or_default(),
        session.unwrap_or_default()
    )
}

/// Returns the message of a finding, or nothing if it repeats the title.
pub(super) fn body(f: &Finding) -> &str {
    if is_same_sentence(f.message(), f.title()) {
        ""
    } else {
        f.message()
    }
}

/// Returns true if two texts differ at most in the full stop at their end.
fn is_same_sentence(a: &str, b: &str) -> bool {
    a.trim().trim_end_matches('.') == b.trim().trim_end_matches('.')
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

/// Returns the parts of a finding's text in order: title, message, the commit unless it is the
/// head, the path of the data, the other lines, failure, convention, dispute, help, and the
/// replacement.
pub(super) fn parts<'f>(f: &'f Finding, review: &Review) -> Vec<TextPart<'f>> {
    let mut out = vec![TextPart::text("", f.title())];
    if !body(f).trim().is_empty() {
        out.push(TextPart::text("", body(f)));
    }
    out.extend(inside(f.commit, review).map(|text| TextPart::Text("", text.into())));
    out.extend(flow(f, ARROW).map(|path| TextPart::Text("Data flow: ", path.into())));
    out.extend(also(f).map(|place| TextPart::Text("Also: ", place.into())));
    out.extend(reproduction(f).map(|text| TextPart::Text("Reproduced: ", text.into())));
    let labelled = [
        ("Fails when: ", f.failure()),
        ("Convention: ", f.convention()),
        ("Disputed: ", f.disputed.as_deref()),
        ("Help: ", f.suggestion()),
    ];
    out.extend(
        labelled
            .into_iter()
            .filter_map(|(label, text)| Some(TextPart::text(label, text?))),
    );
    if let (None, Some(code)) = (applicable(f), f.replacement()) {
        out.push(TextPart::Code(untrusted::clipped(code.trim(), PROSE)));
    }
    out
}

/// Returns the parts of a finding's text as plain paragraphs. They are untrusted text, which the
/// format escapes.
pub(super) fn paragraphs(f: &Finding, review: &Review) -> Vec<String> {
    let paragraphs = parts(f, review).into_iter().map(|part| match part {
        TextPart::Text(label, text) => format!("{label}{text}"),
        TextPart::Code(code) if code.is_empty() => "Delete these lines.".to_owned(),
        TextPart::Code(code) => format!("Replace with:\n{code}"),
    });
    paragraphs.collect()
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

/// Returns true if a commit of the reviewed range is not its head, whose lines the reader sees.
pub(super) fn is_inside(commit: Option<ObjectId>, review: &Review) -> bool {
    commit.is_some_and(|c| {
        review
            .source
            .head
            .as_ref()
            .is_none_or(|head| *head != c.to_string())
    })
}

/// Returns the sentence about a commit that is not the head. A push of several branches has no
/// single head.
pub(super) fn inside(commit: Option<ObjectId>, review: &Review) -> Option<String> {
    let commit = commit.filter(|c| is_inside(Some(*c), review))?.short();
    Some(match review.source.head {
        Some(_) => format!("In commit {commit}, not in the head."),
        None => format!("In commit {commit}."),
    })
}

/// Returns the position of a finding in the reviewed state. Line numbers of earlier commits do not
/// apply to the head, so they are omitted.
pub(super) fn placed(f: &Finding, review: &Review) -> Option<Location> {
    let at = f.location()?;
    Some(if is_inside(f.commit, review) {
        Location {
            file: at.file.clone(),
            lines: None,
        }
    } else {
        at.clone()
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

/// Returns the line of a frame by its number.
pub(super) fn line_of(frame: &Frame, number: u32) -> Option<&FrameLine> {
    frame
        .lines
        .get(number.checked_sub(frame.first.get())? as usize)
}

/// Returns the columns of a finding on one line and the text there. Columns are 1-based code
/// points, the end excluded. `None` if the start of the line is unknown.
pub(super) fn columns(f: &Finding) -> Option<(i64, i64, String)> {
    let span = f.lines()?;
    let (start, end) = span.columns?;
    let line = line_of(f.frame.as_ref()?, span.first.get())?;
    let (before, rest) = line.text.split_at_checked(start as usize)?;
    let marked = rest.get(..(end.checked_sub(start)?) as usize)?;
    if line.skipped > 0 || marked.is_empty() {
        return None;
    }
    let start = code_points(before) + 1;
    Some((
        start,
        start + code_points(marked),
        String::from_utf8_lossy(marked).into_owned(),
    ))
}

fn code_points(bytes: &[u8]) -> i64 {
    i64::try_from(String::from_utf8_lossy(bytes).chars().count()).unwrap_or(i64::MAX)
}

/// Returns the replacement for a finding's lines if a program may offer to apply it: the change
/// adds every replaced line, and the code has no hidden characters and is not in the form of a
/// patch.
pub(super) fn applicable(f: &Finding) -> Option<&str> {
    let code = f.replacement()?;
    let span = f.lines()?;
    let frame = f.frame.as_ref()?;
    let ours =
        (span.first.get()..=span.last.get()).all(|n| line_of(frame, n).is_some_and(|l| l.added));
    // Line numbers of an earlier commit do not apply to the head.
    let here = f.commit.is_none() && ours;
    let shown = !untrusted::has_active(code);
    let patch = code.lines().any(|l| {
        ["diff --git ", "--- a/", "+++ b/", "@@ -"]
            .iter()
            .any(|p| l.starts_with(p))
    });
    (here && shown && !patch).then_some(code)
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
                ..BackendUsage::default()
            };
            assert_eq!(self::spent(&u), text);
        }
    }
}
