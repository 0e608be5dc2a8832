//! Draws triage: three panes on a large terminal, two or one on a small one. Pure.

mod overlay;
mod panes;

pub(in crate::triage) use overlay::shown;
pub use overlay::{help_room, help_rows};

use super::paper::{Ink, PaneFrame, StyledRow, Theme};
use super::prompt::{Prompt, Purpose};
use super::state::{Mode, Pane, TriageState};
use super::{Size, severity, status};
use crate::wire::{Disposition, Severity, Verdict};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

/// Minimum columns for two panes side by side, and for three.
const TWO_COLUMNS: u16 = 100;
const THREE_COLUMNS: u16 = 150;
/// Minimum rows for three panes in a column.
const THREE_ROWS: u16 = 30;

/// The areas of the screen. A pane without room is `None`.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    head: Rect,
    panes: [Option<Rect>; 3],
    foot: Rect,
}

/// Draws the state.
pub fn draw(state: &TriageState, theme: Theme) -> Buffer {
    let area = Rect::new(0, 0, state.size.width, state.size.height);
    let mut buffer = Buffer::empty(area);
    if state.size.is_too_small() {
        too_small(state.size, theme, &mut buffer);
        return buffer;
    }
    let layout = layout(state);
    head(state, theme).draw(layout.head, &mut buffer);
    for pane in Pane::ALL {
        if let Some(area) = layout.panes[pane as usize] {
            let is_focused = state.focus == pane;
            let (title, note) = panes::title(state, pane, theme);
            let inner = PaneFrame {
                title,
                note,
                is_focused,
            }
            .draw(area, theme, &mut buffer);
            panes::draw(state, pane, theme, inner, &mut buffer);
        }
    }
    foot(state, theme).draw(layout.foot, &mut buffer);
    overlay::draw(state, theme, &mut buffer);
    buffer
}

/// Shows the required size of the terminal.
pub fn too_small(size: Size, theme: Theme, buffer: &mut Buffer) {
    let Size { width, height } = Size::LEAST;
    let text = format!(
        "This terminal has {}x{} cells; at least {width}x{height} are needed. Enlarge it, or press q to quit.",
        size.width, size.height
    );
    let rows = StyledRow::of(theme.style(Ink::Bold), text).wrapped(usize::from(size.width));
    for (row, y) in rows.iter().zip(0..size.height) {
        row.draw(Rect::new(0, y, size.width, 1), buffer);
    }
}

/// Divides the screen by its size.
fn layout(state: &TriageState) -> Layout {
    let Size { width, height } = state.size;
    let body = Rect::new(0, 1, width, height - 2);
    let mut panes = [None; 3];
    if state.is_zoomed {
        panes[state.focus as usize] = Some(body);
    } else if width >= THREE_COLUMNS {
        let [left, right] = [(width * 3 / 10).min(64), (width * 3 / 10).min(70)];
        panes[0] = Some(Rect {
            width: left,
            ..body
        });
        panes[1] = Some(Rect {
            x: left,
            width: width - left - right,
            ..body
        });
        panes[2] = Some(Rect {
            x: width - right,
            width: right,
            ..body
        });
    } else if width >= TWO_COLUMNS {
        let left = (width * 2 / 5).min(56);
        let upper = body.height * 11 / 20;
        let right = Rect {
            x: left,
            width: width - left,
            ..body
        };
        panes[0] = Some(Rect {
            width: left,
            ..body
        });
        panes[1] = Some(Rect {
            height: upper,
            ..right
        });
        panes[2] = Some(Rect {
            y: body.y + upper,
            height: body.height - upper,
            ..right
        });
    } else if height >= THREE_ROWS {
        let [upper, lower] = [body.height * 3 / 10, body.height * 3 / 10];
        panes[0] = Some(Rect {
            height: upper,
            ..body
        });
        panes[1] = Some(Rect {
            y: body.y + upper,
            height: body.height - upper - lower,
            ..body
        });
        panes[2] = Some(Rect {
            y: body.bottom() - lower,
            height: lower,
            ..body
        });
    } else if height >= 14 {
        let upper = (body.height * 2 / 5).max(5);
        panes[0] = Some(Rect {
            height: upper,
            ..body
        });
        panes[state.lower as usize] = Some(Rect {
            y: body.y + upper,
            height: body.height - upper,
            ..body
        });
    } else {
        panes[state.focus as usize] = Some(body);
    }
    Layout {
        head: Rect {
            height: 1,
            y: 0,
            ..body
        },
        panes,
        foot: Rect {
            y: height - 1,
            height: 1,
            ..body
        },
    }
}

/// Returns the first line: the review, and the progress of the decisions.
fn head(state: &TriageState, theme: Theme) -> StyledRow {
    let subject = &state.subject;
    let dim = theme.style(Ink::Dim);
    let (verdict, ink) = match subject.verdict {
        Verdict::Pass => ("PASS", Ink::Good),
        Verdict::Warn => ("WARN", Ink::Minor),
        Verdict::Block => ("BLOCK", Ink::Bad),
        Verdict::Incomplete => ("INCOMPLETE", Ink::Bad),
    };
    let mut right = StyledRow::default();
    if state.is_sharing {
        right = right.put(theme.style(Ink::Accent), "sharing");
    }
    for of in [
        Disposition::Pending,
        Disposition::Accepted,
        Disposition::Rejected,
        Disposition::Deferred,
        Disposition::Fixed,
    ] {
        let n = subject.items.iter().filter(|i| i.has_status(of)).count();
        if n > 0 || of == Disposition::Pending {
            let style = theme.style(if of == Disposition::Pending && n > 0 {
                Ink::Bold
            } else {
                Ink::Dim
            });
            let gap = if right.is_empty() { "" } else { "  " };
            right = right.put(style, format!("{gap}{n} {}", status(of)));
        }
    }
    let width = usize::from(state.size.width);
    let right = right.put(dim, " ").cut(width, theme.ellipsis());
    let dot = theme.sign(" · ", " - ");
    let left = StyledRow::of(theme.style(Ink::Bold), " triage ")
        .put(theme.style(Ink::Plain), &subject.id)
        .put(dim, dot)
        .put(theme.style(ink), verdict)
        .put(dim, dot)
        .put(theme.style(Ink::Plain), &subject.label);
    let room = width.saturating_sub(right.width());
    left.cut(room.saturating_sub(1), theme.ellipsis())
        .pad(room)
        .and(right)
}

/// Returns the last line: a message, or the keys.
fn foot(state: &TriageState, theme: Theme) -> StyledRow {
    let width = usize::from(state.size.width);
    if let Some(message) = &state.message {
        let ink = if message.is_error {
            Ink::Bad
        } else {
            Ink::Good
        };
        let text = if message.is_error {
            format!(" error: {}", message.text)
        } else {
            format!(" {}", message.text)
        };
        return StyledRow::of(theme.style(ink), text).cut(width, theme.ellipsis());
    }
    let keys: &[(&str, &str)] = match &state.mode {
        Mode::Prompt(Prompt {
            purpose: Purpose::Search { .. },
            ..
        }) => &[("Enter", "keep"), ("Esc", "cancel")],
        Mode::Prompt(_) => &[("Enter", "record"), ("Esc", "cancel")],
        Mode::Filter(_) => &[("Space", "choose"), ("c", "clear"), ("Esc", "close")],
        Mode::Help(_) => &[("j k", "scroll"), ("Esc", "close")],
        Mode::Ask { .. } => &[("Enter", "run"), ("Esc", "cancel")],
        Mode::Notice(_) => &[("Esc", "close")],
        Mode::Browse if state.item().is_some_and(|i| i.proposal.is_some()) => &PROPOSED,
        Mode::Browse => &KEYS,
    };
    hints(keys, width, theme)
}

/// The keys of the last line. They are omitted from the end if there is no room; the last two
/// always stay.
const KEYS: [(&str, &str); 14] = [
    ("a", "accept"),
    ("r", "reject"),
    ("d", "defer"),
    ("u", "undo"),
    ("p", "apply"),
    ("x", "fix"),
    ("e", "edit"),
    ("/", "search"),
    ("f", "filter"),
    ("s", "sort"),
    ("S", "share"),
    ("Tab", "pane"),
    ("?", "help"),
    ("q", "quit"),
];
const PROPOSED: [(&str, &str); 7] = [
    ("c", "confirm the proposal"),
    ("a", "accept"),
    ("r", "reject"),
    ("d", "defer"),
    ("u", "undo"),
    ("?", "help"),
    ("q", "quit"),
];

/// Returns the keys with their meanings that fit.
pub fn hints(keys: &[(&str, &str)], width: usize, theme: Theme) -> StyledRow {
    let (most, last) = keys.split_at(keys.len().saturating_sub(2));
    let last = last
        .iter()
        .map(|key| hint(key, theme))
        .fold(StyledRow::default(), StyledRow::and);
    let mut row = StyledRow::default();
    for key in most {
        let next = row.clone().and(hint(key, theme));
        if next.width() + last.width() > width {
            break;
        }
        row = next;
    }
    row.and(last).cut(width, theme.ellipsis())
}

/// Returns a key with its meaning.
fn hint((key, what): &(&str, &str), theme: Theme) -> StyledRow {
    StyledRow::of(theme.style(Ink::Accent), format!(" {key}"))
        .put(theme.style(Ink::Dim), format!(" {what} "))
}

/// Returns the ink of a severity.
fn ink(of: Severity) -> Ink {
    match of {
        Severity::Critical => Ink::Critical,
        Severity::Major => Ink::Major,
        Severity::Minor => Ink::Minor,
        Severity::Suggestion => Ink::Suggestion,
    }
}

/// Returns a severity in at most five columns if there is little room.
fn short(of: Severity, is_narrow: bool) -> &'static str {
    match of {
        Severity::Critical if is_narrow => "crit",
        Severity::Suggestion if is_narrow => "sugg",
        other => severity(other),
    }
}

/// Returns the number of rows that a page key moves by.
pub fn page(state: &TriageState) -> usize {
    let area = layout(state).panes[state.focus as usize];
    area.map_or(1, |a| usize::from(a.height).saturating_sub(3).max(1))
}

/// Returns the first visible row of a pane, and the last possible one.
pub fn extent(state: &TriageState, pane: Pane) -> (usize, usize) {
    let Some(area) = layout(state).panes[pane as usize] else {
        return (0, 0);
    };
    let inner = Size {
        width: area.width.saturating_sub(4),
        height: area.height.saturating_sub(2),
    };
    panes::extent(state, pane, inner)
}

/// Returns the content of a buffer as lines of text.
pub fn text(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.y..buffer.area.bottom() {
        let mut hidden = 0;
        for x in buffer.area.x..buffer.area.right() {
            if hidden > 0 {
                hidden -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            hidden = crate::untrusted::width(symbol).saturating_sub(1);
            out.push_str(symbol);
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    }
    out
}

/// Highlights the row under the cursor, without a colour that a background could hide.
fn highlight(area: Rect, buffer: &mut Buffer) {
    let area = Rect { height: 1, ..area }.intersection(buffer.area);
    for x in area.x..area.right() {
        let cell = &mut buffer[(x, area.y)];
        cell.modifier.remove(Modifier::DIM);
        cell.modifier.insert(Modifier::REVERSED);
    }
}

#[cfg(test)]
mod tests;
