//! Stored reviews for people. All text from files is untrusted, and printed with control characters
//! escaped.

use crate::history::Checked;
use crate::report::{Style, changes};
use crate::text::plural;
use crate::untrusted::{Inert, pieces, width};
use crate::wire;
use crate::wire::fixing::StoredFix;
use crate::wire::stored::{History, Overview, RoundTotals, Session, StoredRound};
use crate::wire::{Outcome, Verdict};
use anstyle::{AnsiColor, Effects};
use jiff::Timestamp;

/// Columns that the author and the label need, at least. With less room, a review takes several
/// lines of the list.
const ROOM: usize = 36;

/// Returns `1 review`, `2 reviews`.
pub(super) fn reviews(n: usize) -> String {
    plural(n, "review")
}

/// Lists sessions: as a table if the terminal is wide enough, else in a few lines each.
pub(super) fn list(history: &History, style: &Style, now: Timestamp) -> String {
    let sessions = &history.sessions;
    if sessions.is_empty() {
        return match history.damaged.is_empty() {
            _ if style.quiet => String::new(),
            true => "no review is stored here yet\n".to_owned(),
            false => "no review is stored here that can be read\n".to_owned(),
        };
    }
    let rows: Vec<_> = sessions.iter().map(|s| cells(s, now)).collect();
    let head = [
        "ID", "STATUS", "VERDICT", "FINDINGS", "AGE", "AUTHOR", "SOURCE",
    ];
    let mut widths: [usize; 6] = std::array::from_fn(|i| {
        rows.iter()
            .map(|r| width(&r[i]))
            .chain([head[i].len()])
            .max()
            .unwrap_or(0)
    });
    let fixed: usize = widths[..5].iter().map(|w| w + 2).sum();
    let mut text = String::new();
    if fixed + ROOM > style.width {
        for (row, s) in rows.iter().zip(sessions) {
            let [id, status, verdict, counts, age, author, label] = row;
            let verdict = paint(color(s.outcome, s.verdict), verdict, style);
            text.push_str(&line(&format!("{}  {status}, {verdict}", bold(id, style))));
            for words in [
                format!("{counts}, {age}"),
                format!("by {author}"),
                label.clone(),
            ] {
                text.push_str(&line(&format!(
                    "  {}",
                    cut(&words, style.width.saturating_sub(2), style)
                )));
            }
        }
        return text;
    }
    widths[5] = widths[5].min((style.width - fixed) / 2);
    let label = style.width - fixed - widths[5] - 2;
    let table = SessionTable {
        widths,
        label,
        style,
    };
    if !style.quiet {
        text.push_str(&table.row(head, None));
    }
    for (row, s) in rows.iter().zip(sessions) {
        text.push_str(&table.row(
            row.each_ref().map(String::as_str),
            color(s.outcome, s.verdict),
        ));
    }
    text
}

/// Returns the cells of a session.
fn cells(s: &Overview, now: Timestamp) -> [String; 7] {
    let rounds = if s.rounds > 1 {
        format!("{} ({} rounds)", s.label, s.rounds)
    } else {
        s.label.clone()
    };
    [
        s.review_id.clone(),
        s.status.word().replace('_', " "),
        said(s.outcome, s.verdict).to_owned(),
        counts(&s.summary),
        age(&s.timestamp, now),
        // The list shows only the name; the page of a session shows the address too.
        s.author.split(" <").next().unwrap_or_default().to_owned(),
        rounds,
    ]
    .map(|cell| Inert::new(cell).to_string())
}

/// The layout of the list as a table.
struct SessionTable<'a> {
    /// Widths of the columns before the last one.
    widths: [usize; 6],
    /// Width of the last column, the label.
    label: usize,
    style: &'a Style,
}

impl SessionTable<'_> {
    /// Returns a row, with its verdict in a color.
    fn row(&self, row: [&str; 7], ink: Option<AnsiColor>) -> String {
        let mut out = String::new();
        for (i, cell) in row.iter().enumerate().take(6) {
            let cell = if i == 5 {
                cut(cell, self.widths[5], self.style)
            } else {
                (*cell).to_owned()
            };
            let pad = " ".repeat(self.widths[i].saturating_sub(width(&cell)) + 2);
            let cell = match ink {
                Some(_) if i == 2 => paint(ink, &cell, self.style),
                _ => cell,
            };
            out.push_str(&format!("{cell}{pad}"));
        }
        line(format!("{out}{}", cut(row[6], self.label, self.style)).trim_end())
    }
}

/// Prints a session: the request, each round, and how it was closed.
pub(super) fn session(session: &Session, style: &Style, now: Timestamp) -> String {
    let request = &session.request;
    let mut page = SessionPage {
        text: String::new(),
        style,
    };
    let title = format!("review {}", session.review_id);
    page.line(&format!(
        "{}: {}",
        bold(&title, style),
        session.status.word().replace('_', " ")
    ));
    page.field("source", &request.label);
    page.field("author", &format!("{} ({})", request.author, request.via));
    page.field(
        "began",
        &format!("{}, {}", request.timestamp, age(&request.timestamp, now)),
    );
    if let Some(summary) = &request.summary {
        page.field("summary", summary);
    }
    if !request.focus_areas.is_empty() {
        page.field("focus", &request.focus_areas.join(", "));
    }
    if !request.relevant_docs.is_empty() {
        page.field("documents", &request.relevant_docs.join(", "));
    }
    for round in &session.rounds {
        page.round(round, now);
    }
    for fix in &session.fixes {
        page.fix(fix, now);
    }
    for closing in session.completion.iter().flat_map(|c| &c.entries) {
        page.text.push('\n');
        let word = closing.status.word().replace('_', " ");
        page.line(&bold(&format!("closed: {word}"), style));
        page.field(
            "by",
            &format!(
                "{} ({}), {}",
                closing.actor,
                closing.via,
                age(&closing.timestamp, now)
            ),
        );
        if !closing.open.is_empty() || closing.forced {
            let forced = if closing.forced { "forced" } else { "closed" };
            page.field(
                "open",
                &format!(
                    "{forced} with {} that blocked",
                    plural(closing.open.len(), "finding")
                ),
            );
        }
        if let Some(notes) = &closing.notes {
            page.field("notes", notes);
        }
    }
    page.text.push('\n');
    page.field("head", &session.head);
    page.text
}

/// Reports for each session whether it is unmodified.
pub(super) fn checked(checked: &[Checked], style: &Style) -> String {
    let mut text = String::new();
    for c in checked {
        let id = Inert::new(&c.id);
        let head = Inert::new(c.head.as_deref().unwrap_or("none"));
        if let (true, Some(removed)) = (c.edits.is_empty(), &c.removed) {
            if !style.quiet {
                text.push_str(&line(&format!("gone {id}  {}", Inert::new(removed))));
            }
            continue;
        }
        if let (true, Some(newer)) = (c.edits.is_empty(), &c.newer) {
            text.push_str(&format!(
                "{} {id}  head {head}\n",
                paint(Some(AnsiColor::Yellow), "NEWER", style)
            ));
            text.push_str(&line(&format!("  {}", Inert::new(newer))));
            continue;
        }
        if c.edits.is_empty() {
            if !style.quiet {
                text.push_str(&format!(
                    "{} {id}  head {head}\n",
                    paint(Some(AnsiColor::Green), "ok", style)
                ));
                c.unsealed.iter().for_each(|f| text.push_str(&unsealed(f)));
            }
            continue;
        }
        text.push_str(&format!(
            "{} {id}  head {head}\n",
            paint(Some(AnsiColor::Red), "EDITED", style)
        ));
        for edit in &c.edits {
            let round = edit
                .round
                .map(|n| format!("round {n}: "))
                .unwrap_or_default();
            let file = if edit.file.is_empty() {
                String::new()
            } else {
                format!("{}: ", edit.file)
            };
            text.push_str(&line(&format!(
                "  {}",
                Inert::new(format!("{round}{file}{}", edit.why))
            )));
        }
        c.unsealed.iter().for_each(|f| text.push_str(&unsealed(f)));
    }
    if !style.quiet {
        let edited = checked.iter().filter(|c| !c.edits.is_empty()).count();
        let newer = checked
            .iter()
            .filter(|c| c.edits.is_empty() && c.newer.is_some())
            .count();
        if checked.is_empty() {
            text.push_str("no review is stored here yet\n");
            return text;
        }
        let edits = if edited == 0 {
            "no modifications detected".to_owned()
        } else {
            format!("{edited} edited")
        };
        let newer = if newer == 0 {
            String::new()
        } else {
            format!(", {newer} of a newer version not checked")
        };
        let there = checked.iter().filter(|c| c.removed.is_none()).count();
        text.push_str(&format!("{} checked, {edits}{newer}\n", reviews(there)));
        if edited == 0 {
            text.push_str(
                "to detect reviews that were removed from the end, compare with a head noted elsewhere: --head\n",
            );
        }
    }
    text
}

/// Returns the line about a file of a session that no seal covers.
fn unsealed(file: &str) -> String {
    line(&format!(
        "  {file}: no seal covers it, and it does not count"
    ))
}

/// A page that is being written.
struct SessionPage<'a> {
    text: String,
    style: &'a Style,
}

impl SessionPage<'_> {
    /// Writes a line whose control characters are already escaped.
    fn line(&mut self, text: &str) {
        self.text.push_str(&line(text));
    }

    /// Writes a name and untrusted text, which may have several lines.
    fn field(&mut self, name: &str, text: &str) {
        const INDENT: usize = 13;
        let room = self.style.width.saturating_sub(INDENT);
        let lines: Vec<_> = Inert::lines(text)
            .flat_map(|l| super::super::doctor::wrap(l.as_str(), room))
            .collect();
        for (i, words) in lines.iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            self.line(format!("  {name:<11}{words}").trim_end());
        }
    }

    fn fix(&mut self, fix: &StoredFix, now: Timestamp) {
        self.text.push('\n');
        let outcome = wire::name(&fix.outcome);
        self.line(&format!(
            "{}: {outcome}",
            bold(
                &format!(
                    "fix {} of {}",
                    fix.number,
                    Inert::new(fix.findings.join(", "))
                ),
                self.style
            )
        ));
        self.field("when", &age(&fix.timestamp, now));
        if let Some(plan) = &fix.plan {
            let edited = if plan.edited { ", edited" } else { "" };
            self.field(
                "plan",
                &format!("{} ({}{edited})", plan.summary, plan.backend),
            );
            for (i, step) in plan.steps.iter().enumerate() {
                self.field("", &format!("{}. {}", i + 1, step.text));
            }
        }
        for attempt in &fix.attempts {
            let verdict = wire::name(&attempt.verdict).replace('_', " ");
            let files = if attempt.files.is_empty() {
                String::new()
            } else {
                format!(" {}", attempt.files.join(", "))
            };
            self.field(
                &format!("attempt {}", attempt.attempt_number),
                &format!("{verdict}{files}"),
            );
            if !attempt.execution_output.is_empty() {
                self.field("", &attempt.execution_output);
            }
            attempt.reasons.iter().for_each(|why| self.field("", why));
            let cost = attempt
                .cost
                .map(|usd| format!(", ${usd:.4}"))
                .unwrap_or_default();
            self.field(
                "",
                &format!(
                    "{}, {} tokens{cost}",
                    plural(count(attempt.requests), "request"),
                    attempt.tokens
                ),
            );
        }
    }

    fn round(&mut self, round: &StoredRound, now: Timestamp) {
        let review = &round.review;
        self.text.push('\n');
        let verdict = paint(
            color(review.outcome, review.verdict),
            said(review.outcome, review.verdict),
            self.style,
        );
        let title = bold(&format!("round {}", review.round), self.style);
        self.line(&format!("{title}: {verdict}, {}", counts(&review.summary)));
        self.field("when", &age(&review.timestamp, now));
        if let Some(said) = &review.author_summary
            && review.round > 1
        {
            self.field("summary", said);
        }
        if let Some(since) = &review.since {
            self.field(
                "since",
                &format!("round {}: {}", since.round, changes(since)),
            );
        }
        if !review.report.summary.text.is_empty() {
            self.field("result", &review.report.summary.text);
        }
        self.field("advice", &review.advice.text);
        if let Some(response) = &round.response {
            let mut words = vec![format!("{} addressed", response.addressed.len())];
            if !response.explanations.is_empty() {
                words.push(format!("{} explained", response.explanations.len()));
            }
            if !response.questions.is_empty() {
                words.push(plural(response.questions.len(), "question"));
            }
            self.field("answer", &words.join(", "));
            for explained in &response.explanations {
                let finding = explained
                    .finding
                    .as_deref()
                    .map(|f| format!("{f}: "))
                    .unwrap_or_default();
                self.field("", &format!("{finding}{}", explained.text));
            }
            for text in response.questions.iter().chain(&response.text) {
                self.field("", text);
            }
        }
    }
}

fn count(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns the number of findings by severity, worst first.
fn counts(counts: &RoundTotals) -> String {
    let all = [
        (counts.critical_issues, "critical"),
        (counts.major_issues, "major"),
        (counts.minor_issues, "minor"),
        (counts.suggestions, "suggestion"),
    ];
    let some: Vec<_> = all
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, what)| format!("{n} {what}"))
        .collect();
    if some.is_empty() {
        "no findings".to_owned()
    } else {
        some.join(", ")
    }
}

/// Returns the word for a verdict, or for the reason why there is none.
fn said(outcome: Outcome, verdict: Verdict) -> &'static str {
    match (outcome, verdict) {
        (Outcome::Cancelled, _) => "cancelled",
        (Outcome::NothingToReview, _) => "nothing to review",
        (_, Verdict::Pass) => "pass",
        (_, Verdict::Warn) => "warn",
        (_, Verdict::Block) => "block",
        (_, Verdict::Incomplete) => "incomplete",
    }
}

fn color(outcome: Outcome, verdict: Verdict) -> Option<AnsiColor> {
    match (outcome, verdict) {
        (Outcome::Cancelled | Outcome::NothingToReview, _) => None,
        (_, Verdict::Pass) => Some(AnsiColor::Green),
        (_, Verdict::Warn | Verdict::Incomplete) => Some(AnsiColor::Yellow),
        (_, Verdict::Block) => Some(AnsiColor::Red),
    }
}

/// Returns the age of a timestamp. An invalid timestamp, or one in the future, is returned
/// unchanged.
fn age(timestamp: &str, now: Timestamp) -> String {
    let Ok(then) = timestamp.parse::<Timestamp>() else {
        return timestamp.to_owned();
    };
    let seconds = now.as_second() - then.as_second();
    match seconds {
        ..=-60 => timestamp.to_owned(),
        -59..=59 => "just now".to_owned(),
        60..=3_599 => format!("{} min ago", seconds / 60),
        3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        86_400..=5_183_999 => format!(
            "{} ago",
            plural(usize::try_from(seconds / 86_400).unwrap_or(0), "day")
        ),
        _ => then.strftime("%Y-%m-%d").to_string(),
    }
}

/// Truncates escaped text to a number of columns.
fn cut(text: &str, columns: usize, style: &Style) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let sign = if style.unicode { "…" } else { ".." };
    let room = columns.saturating_sub(width(sign));
    let mut used = 0;
    let kept: Vec<_> = pieces(text.as_bytes())
        .take_while(|p| {
            used += p.width();
            used <= room
        })
        .collect();
    format!("{}{sign}", kept.iter().collect::<Inert>())
}

fn paint(color: Option<AnsiColor>, word: &str, style: &Style) -> String {
    match color {
        Some(color) if style.color => {
            format!(
                "{}{word}{}",
                color.on_default().bold().render(),
                anstyle::Reset.render()
            )
        }
        _ => word.to_owned(),
    }
}

fn bold(word: &str, style: &Style) -> String {
    match style.color {
        true => format!(
            "{}{word}{}",
            Effects::BOLD.render(),
            anstyle::Reset.render()
        ),
        false => word.to_owned(),
    }
}

/// Returns a line that a CI system does not read as a command.
fn line(text: &str) -> String {
    format!("{}\n", crate::untrusted::guard_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit_that_fits() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        for (then, told) in [
            ("2026-03-01T00:00:00Z", "just now"),
            ("2026-02-28T23:59:00Z", "1 min ago"),
            ("2026-02-28T22:00:00Z", "2 h ago"),
            ("2026-02-28T00:00:00Z", "1 day ago"),
            ("2026-01-31T00:00:00Z", "29 days ago"),
            ("2025-03-01T00:00:00Z", "2025-03-01"),
            ("2027-03-01T00:00:00Z", "2027-03-01T00:00:00Z"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(age(then, now), told, "{then}");
        }
    }

    #[test]
    fn text_is_cut_by_columns_and_not_by_bytes() {
        let style = Style {
            unicode: true,
            ..Style::default()
        };
        assert_eq!(cut("日本語の変更", 7, &style), "日本語…");
        assert_eq!(cut("short", 5, &style), "short");
        assert_eq!(cut("a long label", 6, &Style::default()), "a lo..");
    }
}
