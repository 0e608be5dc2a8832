//! The three panes: findings, code, details.

use super::super::code::{CodeLine, CodeRow, FindingCode, code, replacement};
use super::super::filter::{self, WHOLE};
use super::super::paper::{Ink, StyledRow, Theme, wrapped};
use super::super::state::{Pane, TriageState};
use super::super::{Size, TriageItem, confidence, severity, status};
use super::{highlight, ink, short};
use crate::diff::LineKind;
use crate::disposition::DecisionEntry;
use crate::report::paint::SyntaxKind;
use crate::untrusted::pieces;
use crate::wire::Finding;
use crate::wire::{Disposition, FlowRole};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Minimum columns of a pane with full names of severities.
const WIDE: usize = 50;
/// Columns before the quote of a finding on a long line.
const LEAD: usize = 12;

/// Returns the title of a pane, and the note at its right end.
pub(super) fn title(state: &TriageState, pane: Pane, theme: Theme) -> (StyledRow, StyledRow) {
    let dim = theme.style(Ink::Dim);
    match pane {
        Pane::Findings => {
            let listed = state
                .rows()
                .iter()
                .filter(|r| matches!(r, filter::ListRow::Item(_)))
                .count();
            let all = state.subject.items.len();
            let count = if listed == all {
                format!("{all}")
            } else {
                format!("{listed} of {all}")
            };
            let marked = if state.marked.is_empty() {
                String::new()
            } else {
                format!(", {} marked", state.marked.len())
            };
            let title = numbered("1", "Findings", theme).put(dim, format!(" {count}{marked}"));
            (
                title,
                StyledRow::of(theme.style(Ink::Accent), state.filter.label()),
            )
        }
        Pane::Code => {
            let place = state.item().map(place).unwrap_or_default();
            (
                numbered("2", "Code", theme)
                    .put(dim, " ")
                    .put(theme.style(Ink::Plain), place),
                StyledRow::of(dim, below(state)),
            )
        }
        Pane::Details => {
            let id = state
                .item()
                .map(|i| i.finding.id.clone())
                .unwrap_or_default();
            (
                numbered("3", "Details", theme)
                    .put(dim, " ")
                    .put(theme.style(Ink::Plain), id),
                StyledRow::of(dim, below(state)),
            )
        }
    }
}

/// Returns the name of a pane after the key that selects it.
fn numbered(key: &str, name: &str, theme: Theme) -> StyledRow {
    StyledRow::of(theme.style(Ink::Dim), format!("{key} ")).put(theme.style(Ink::Bold), name)
}

/// Names the pane that does not fit on a small terminal.
fn below(state: &TriageState) -> &'static str {
    let is_shown = super::layout(state).panes.iter().all(Option::is_some);
    match state.lower {
        _ if is_shown || state.is_zoomed => "",
        Pane::Code => "Tab: details",
        _ => "Tab: code",
    }
}

/// Returns the position of a finding.
fn place(item: &TriageItem) -> String {
    let f = &item.finding;
    let file = f.file.as_deref().unwrap_or(WHOLE);
    let line = f.line.map(|n| format!(":{n}")).unwrap_or_default();
    let end = f
        .end_line
        .filter(|end| Some(*end) != f.line)
        .map(|n| format!("-{n}"))
        .unwrap_or_default();
    let commit = f
        .commit
        .as_ref()
        .map(|c| format!(" at {}", c.get(..10).unwrap_or(c)))
        .unwrap_or_default();
    format!("{file}{line}{end}{commit}")
}

/// Draws the content of a pane.
pub(super) fn draw(state: &TriageState, pane: Pane, theme: Theme, area: Rect, buffer: &mut Buffer) {
    if pane == Pane::Findings {
        return findings(state, theme, area, buffer);
    }
    let size = Size {
        width: area.width,
        height: area.height,
    };
    let (top, _) = extent(state, pane, size);
    let rows = match pane {
        Pane::Code => code_rows(state, theme, usize::from(area.width)).rows,
        _ => details(state, theme, usize::from(area.width)),
    };
    for (row, y) in rows.iter().skip(top).zip(area.y..area.bottom()) {
        row.draw(
            Rect {
                y,
                height: 1,
                ..area
            },
            buffer,
        );
    }
}

/// Returns the first visible row, and the last possible one.
pub(super) fn extent(state: &TriageState, pane: Pane, inner: Size) -> (usize, usize) {
    // The theme does not affect the number of rows.
    let theme = Theme {
        color: false,
        unicode: true,
    };
    let (width, height) = (usize::from(inner.width), usize::from(inner.height));
    match pane {
        Pane::Findings => (0, 0),
        Pane::Code => {
            let code = code_rows(state, theme, width);
            let most = code.rows.len().saturating_sub(height);
            // The finding is at a third of the height; its replacement is visible if it fits.
            let auto = code.focus.saturating_sub(height / 3).min(most);
            (state.code_top.unwrap_or(auto).min(most), most)
        }
        Pane::Details => {
            let most = details(state, theme, width).len().saturating_sub(height);
            (state.details_top.min(most), most)
        }
    }
}

/// Draws the list of findings.
fn findings(state: &TriageState, theme: Theme, area: Rect, buffer: &mut Buffer) {
    let rows = state.rows();
    if rows.is_empty() {
        let text = match state.subject.items.is_empty() {
            true => "This review has no findings.",
            false => "No finding matches the filter. Esc ends it.",
        };
        let rows = wrapped(theme.style(Ink::Dim), text, usize::from(area.width));
        for (row, y) in rows.iter().zip(area.y..area.bottom()) {
            row.draw(
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                buffer,
            );
        }
        return;
    }
    let height = usize::from(area.height);
    let at = rows
        .iter()
        .position(|r| matches!(r, filter::ListRow::Item(i) if Some(*i) == state.current))
        .unwrap_or(0);
    let top = if at < height {
        0
    } else {
        at.saturating_sub(height / 2)
            .min(rows.len().saturating_sub(height))
    };
    let ids = state
        .subject
        .items
        .iter()
        .map(|i| i.finding.id.len())
        .max()
        .unwrap_or(0);
    for (row, y) in rows.iter().skip(top).zip(area.y..area.bottom()) {
        let line = Rect {
            y,
            height: 1,
            ..area
        };
        match row {
            filter::ListRow::File { name, all, pending } => {
                file(name.as_deref(), (*all, *pending), theme, line, buffer);
            }
            filter::ListRow::Item(i) => {
                finding(state, *i, ids, theme, usize::from(area.width)).draw(line, buffer);
                if Some(*i) == state.current {
                    highlight(line, buffer);
                }
            }
        }
    }
}

/// Returns the row of a file.
fn file(
    name: Option<&str>,
    (all, pending): (usize, usize),
    theme: Theme,
    line: Rect,
    buffer: &mut Buffer,
) {
    let count = if pending == 0 {
        format!("{all} decided")
    } else {
        format!("{pending}/{all} pending")
    };
    let count = StyledRow::of(theme.style(Ink::Dim), count);
    let room = usize::from(line.width).saturating_sub(count.width() + 1);
    // The end of a path is more informative than its start.
    let name = StyledRow::of(theme.style(Ink::Bold), name.unwrap_or(WHOLE));
    let excess = name.width().saturating_sub(room);
    name.shifted(excess, theme.ellipsis())
        .cut(room, theme.ellipsis())
        .pad(room + 1)
        .and(count)
        .draw(line, buffer);
}

/// Returns the row of a finding.
fn finding(state: &TriageState, i: usize, ids: usize, theme: Theme, width: usize) -> StyledRow {
    let item = &state.subject.items[i];
    let f = &item.finding;
    let is_narrow = width < WIDE;
    let mark = if state.marked.contains(&i) {
        theme.sign("◆", "*")
    } else {
        " "
    };
    let (sign, style) = sign(item, theme);
    let line = f.line.map(|n| n.to_string()).unwrap_or_default();
    let column = if is_narrow { 6 } else { 11 };
    let is_done = !item.is_pending();
    let start = 3 + ids + 1;
    StyledRow::of(theme.style(Ink::Accent), mark)
        .put(style, sign)
        .pad(3)
        .put(
            theme.style(Ink::Dim),
            if item.is_fixed() { "-" } else { &f.id },
        )
        .pad(start)
        .put(
            theme.style(if is_done { Ink::Dim } else { ink(f.severity) }),
            short(f.severity, is_narrow),
        )
        .pad(start + column)
        .put(theme.style(Ink::Dim), format!("{line:>4} "))
        .put(
            theme.style(if is_done { Ink::Dim } else { Ink::Plain }),
            &f.title,
        )
        .cut(width, theme.ellipsis())
}

/// Returns the sign for the decision on a finding.
fn sign(item: &TriageItem, theme: Theme) -> (&'static str, Style) {
    if item.proposal.is_some() {
        return ("?", theme.style(Ink::Proposed));
    }
    decision_sign(item, theme)
}

/// Returns the sign without a proposal.
fn decision_sign(item: &TriageItem, theme: Theme) -> (&'static str, Style) {
    let (sign, ink) = match item.finding.disposition {
        Disposition::Pending if !item.is_pending() => (theme.sign("–", "-"), Ink::Dim),
        Disposition::Pending if item.is_applied => (theme.sign("✎", "w"), Ink::Good),
        Disposition::Pending => (theme.sign("○", "o"), Ink::Plain),
        Disposition::Accepted => (theme.sign("✓", "+"), Ink::Good),
        Disposition::Rejected => (theme.sign("✗", "x"), Ink::Bad),
        Disposition::Deferred => (theme.sign("»", ">"), Ink::Minor),
        Disposition::Fixed => (theme.sign("●", "="), Ink::Good),
    };
    (sign, theme.style(ink))
}

/// The rows of the code pane, and the index of the first row of the finding.
struct CodeRows {
    rows: Vec<StyledRow>,
    focus: usize,
}

/// Returns the rows of the code around the finding under the cursor.
fn code_rows(state: &TriageState, theme: Theme, width: usize) -> CodeRows {
    let Some(item) = state.item() else {
        return CodeRows {
            rows: Vec::new(),
            focus: 0,
        };
    };
    let code = code(&item.finding, &state.subject.files);
    let dim = theme.style(Ink::Dim);
    let mut rows: Vec<StyledRow> = code
        .note
        .iter()
        .map(|note| StyledRow::of(dim, note))
        .collect();
    let before = rows.len();
    let digits = digits(&code);
    let left = state.code_left + window(&code, width.saturating_sub(digits + 5));
    for row in &code.rows {
        rows.push(match row {
            CodeRow::Gap => StyledRow::of(dim, theme.sign("⋯", "...")),
            CodeRow::Line(line) => code_line(line, digits, left, width, theme),
        });
    }
    let diff = replacement(&item.finding, &code);
    if !diff.is_empty() {
        // Directly below the lines of the finding, so that both are visible together.
        let last = code
            .rows
            .iter()
            .rposition(|r| matches!(r, CodeRow::Line(l) if l.is_marked))
            .unwrap_or(0);
        let mut own = vec![StyledRow::of(dim, "    replace with").put(
            dim,
            if item.is_applied {
                " (applied)"
            } else {
                " (p applies)"
            },
        )];
        own.extend(
            diff.iter()
                .filter(|l| l.kind == LineKind::Added)
                .map(|l| proposed(l, digits, left, width, theme)),
        );
        if diff.iter().all(|l| l.kind == LineKind::Removed) {
            own = vec![StyledRow::of(
                dim,
                "    replacement: remove the lines (p applies)",
            )];
        }
        let at = (before + last + 1).min(rows.len());
        rows.splice(at..at, own);
    }
    CodeRows {
        rows,
        focus: before + code.focus,
    }
}

/// Returns the columns of the largest line number.
fn digits(code: &FindingCode) -> usize {
    let numbers = code.rows.iter().filter_map(|r| match r {
        CodeRow::Line(l) => l.number,
        CodeRow::Gap => None,
    });
    numbers.max().unwrap_or(0).to_string().len().max(3)
}

/// Returns the first column to show so that the quote of the finding is visible.
fn window(code: &FindingCode, room: usize) -> usize {
    let Some(CodeRow::Line(line)) = code.rows.get(code.focus) else {
        return 0;
    };
    let Some(quoted) = &line.quoted else { return 0 };
    if columns(&line.text[..quoted.end]) <= room {
        0
    } else {
        columns(&line.text[..quoted.start]).saturating_sub(LEAD)
    }
}

/// Returns the number of columns that a text takes.
fn columns(text: &[u8]) -> usize {
    pieces(text).map(|p| p.width()).sum()
}

/// Returns the row of a line of code.
fn code_line(line: &CodeLine, digits: usize, left: usize, width: usize, theme: Theme) -> StyledRow {
    let (sign, ink) = match line.kind {
        LineKind::Added => ("+", Ink::Added),
        LineKind::Removed => ("-", Ink::Removed),
        LineKind::Context => (theme.sign("│", "|"), Ink::Dim),
    };
    let number = line.number.map(|n| n.to_string()).unwrap_or_default();
    let gutter = theme.style(if line.is_marked {
        Ink::Accent
    } else {
        Ink::Dim
    });
    StyledRow::of(
        gutter,
        if line.is_marked {
            theme.sign("▶", ">")
        } else {
            " "
        },
    )
    .put(gutter, format!(" {number:>digits$} "))
    .put(theme.style(ink), sign)
    .put(Style::new(), " ")
    .and(painted(line, theme).shifted(left, theme.ellipsis()))
    .cut(width, theme.ellipsis())
}

/// Returns a line that a replacement adds.
fn proposed(line: &CodeLine, digits: usize, left: usize, width: usize, theme: Theme) -> StyledRow {
    StyledRow::default()
        .pad(digits + 3)
        .put(theme.style(Ink::Added).add_modifier(Modifier::BOLD), "+ ")
        .and(painted(line, theme).shifted(left, theme.ellipsis()))
        .cut(width, theme.ellipsis())
}

/// Returns the text of a line with its syntax.
fn painted(line: &CodeLine, theme: Theme) -> StyledRow {
    let base = match line.kind {
        LineKind::Removed => theme.style(Ink::Removed),
        LineKind::Added => theme.style(Ink::Plain),
        LineKind::Context if line.is_marked => theme.style(Ink::Plain),
        LineKind::Context => theme.style(Ink::Dim),
    };
    let mut row = StyledRow::default();
    let mut at = 0;
    for piece in pieces(&line.text) {
        let part = line.paint.iter().find(|p| p.range.contains(&at));
        let own = part.filter(|_| line.kind != LineKind::Removed).map(|p| {
            theme.style(match p.kind {
                SyntaxKind::Comment => Ink::Comment,
                SyntaxKind::String => Ink::Text,
                SyntaxKind::Keyword => Ink::Keyword,
                SyntaxKind::Number => Ink::Number,
            })
        });
        let mut style = own.map_or(base, |own| base.patch(own));
        if line.quoted.as_ref().is_some_and(|q| q.contains(&at)) {
            style = style.add_modifier(Modifier::UNDERLINED);
        }
        at += piece.bytes();
        row.push(style, &piece);
    }
    row
}

/// Returns the rows of the details of the finding under the cursor.
fn details(state: &TriageState, theme: Theme, width: usize) -> Vec<StyledRow> {
    let Some(item) = state.item() else {
        return Vec::new();
    };
    let f = &item.finding;
    let (dim, plain) = (theme.style(Ink::Dim), theme.style(Ink::Plain));
    let dot = theme.sign(" · ", " - ");
    let mut rows = wrapped(theme.style(Ink::Bold), &f.title, width);
    let blocking = if f.blocking { " (blocks)" } else { "" };
    let line = StyledRow::of(theme.style(ink(f.severity)), severity(f.severity))
        .put(dim, format!("{blocking}{dot}confidence "))
        .put(plain, confidence(f.confidence))
        .put(dim, format!("{dot}from "))
        .put(plain, &f.origin);
    rows.extend(line.wrapped(width));
    let cwe = f.cwe.map(|n| format!("{dot}CWE-{n}")).unwrap_or_default();
    let convention = f
        .convention
        .as_ref()
        .map(|c| format!("{dot}{c}"))
        .unwrap_or_default();
    rows.extend(StyledRow::of(dim, format!("{}{cwe}{convention}", f.rule_id)).wrapped(width));
    rows.extend(decisions(item, theme, width));
    rows.push(StyledRow::default());
    rows.extend(wrapped(plain, &f.message, width));
    for (name, text) in fields(f) {
        let row = StyledRow::of(dim, format!("{name}: ")).put(plain, text.replace('\n', " "));
        rows.extend(row.wrapped(width));
    }
    rows
}

/// Returns the further fields of a finding, with their names.
fn fields(f: &Finding) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    for (name, text) in [
        ("fails when", &f.failure),
        ("help", &f.suggestion),
        ("disputed", &f.disputed),
    ] {
        if let Some(text) = text {
            fields.push((name, text.clone()));
        }
    }
    if let Some(r) = &f.reproduction {
        fields.push(("shown by a test", r.command.clone()));
    }
    if !f.evidence.is_empty() {
        fields.push(("evidence", f.evidence.join(", ")));
    }
    for step in &f.flow {
        fields.push((
            flow_role(step.role),
            format!("{}  {}", step.line, step.quote),
        ));
    }
    for also in &f.also {
        fields.push((
            "also",
            format!("{}:{}  {}", also.file, also.line, also.quote),
        ));
    }
    for url in &f.references {
        fields.push(("see", url.clone()));
    }
    fields.push(("fingerprint", f.fingerprint.clone()));
    fields
}

/// Returns the label of a step of a path.
fn flow_role(role: FlowRole) -> &'static str {
    match role {
        FlowRole::Source => "data from line",
        FlowRole::Through => "through line",
        FlowRole::Sink => "to line",
    }
}

/// Returns the decision on a finding, and the proposal.
fn decisions(item: &TriageItem, theme: Theme, width: usize) -> Vec<StyledRow> {
    let f = &item.finding;
    let (sign, style) = decision_sign(item, theme);
    let dim = theme.style(Ink::Dim);
    let mut row = StyledRow::of(style, format!("{sign} {}", status(f.disposition)));
    if let Some(entry) = &item.entry {
        row = row.put(dim, explained(entry));
    }
    if item.is_applied {
        row = row.put(theme.style(Ink::Good), ", replacement applied");
    }
    let mut rows = row.wrapped(width);
    if let Some(entry) = &item.proposal {
        let until = entry
            .expires
            .map(|date| format!(" until {date}"))
            .unwrap_or_default();
        let what = format!("? an agent proposes: {}{until}", entry.decision.name());
        let row =
            StyledRow::of(theme.style(Ink::Proposed), what).put(dim, format!(": {}", entry.reason));
        let row = row
            .put(theme.style(Ink::Accent), "  c")
            .put(dim, " confirms");
        rows.extend(row.wrapped(width));
    }
    if let Some(waiver) = &f.waived {
        rows.extend(
            StyledRow::of(
                dim,
                format!("waived by {}: {}", waiver.actor, waiver.reason),
            )
            .wrapped(width),
        );
    }
    if let Some(s) = &f.suppressed {
        rows.extend(
            StyledRow::of(dim, format!("suppressed ({}): {}", s.by, s.reason)).wrapped(width),
        );
    }
    rows
}

/// Returns the author, end date and reason of a decision.
fn explained(entry: &DecisionEntry) -> String {
    let until = entry
        .expires
        .map(|date| format!(" until {date}"))
        .unwrap_or_default();
    let reason = if entry.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", entry.reason)
    };
    format!(" by {}{until}{reason}", entry.owner)
}
