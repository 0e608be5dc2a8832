//! Texts about one finding that several formats share: its position, parts, state and commands, and
//! the order of findings.

use crate::diff::ObjectId;
use crate::finding::{Finding, FlowStep, Location, Severity, line_of};
use crate::review::Review;
use crate::text::plural;
use crate::untrusted;
use std::borrow::Cow;
use std::cmp::Reverse;

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
pub(super) const LINE: usize = 200;

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
pub(super) fn is_same_sentence(a: &str, b: &str) -> bool {
    a.trim().trim_end_matches('.') == b.trim().trim_end_matches('.')
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

/// Returns the number of characters; an invalid sequence of bytes counts as one.
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
