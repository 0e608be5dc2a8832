//! Boxes above the panes: prompts, the filter, help, questions and notices.

use super::super::Size;
use super::super::filter;
use super::super::paper::{Ink, PaneFrame, StyledRow, Theme, wrapped};
use super::super::prompt::Prompt;
use super::super::state::{Mode, Notice, TriageState};
use super::highlight;
use crate::NAME;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

/// Columns of a box, at most.
const WIDEST: u16 = 78;

/// The keys, grouped by purpose.
const HELP: &[KeyGroup] = &[
    (
        "Decide",
        &[
            ("a", "accept: the finding is right"),
            ("r", "reject: asks a reason"),
            ("d", "defer: asks a date"),
            ("c", "confirm what an agent proposes"),
            ("u", "undo the last decision"),
            ("S", "start or stop sharing decisions"),
            ("Space", "mark; keys act on all marked ones"),
        ],
    ),
    (
        "Act",
        &[
            ("p", "apply the replacement"),
            ("x", "let a model fix it"),
            ("e o", "open the line in $VISUAL or $EDITOR"),
            ("P", "post the review on its pull request"),
            ("R", "read the review again"),
        ],
    ),
    (
        "Move",
        &[
            ("j k", "down, up, also with arrows"),
            ("n N", "next, previous pending finding"),
            ("g G", "first, last"),
            ("Tab 1 2 3", "next pane, or by number"),
            ("J K", "scroll the code from any pane"),
            ("h l", "scroll the code sideways"),
            ("z", "enlarge the pane"),
        ],
    ),
    (
        "List",
        &[
            ("/", "search"),
            ("f", "filter"),
            ("t", "show pending findings only"),
            ("s", "sort: place, severity, confidence, status"),
            ("Esc", "end zoom, marks, search, filter in turn"),
        ],
    ),
    (
        "Leave",
        &[
            ("q", "quit; decisions are stored already"),
            ("Ctrl-Z", "suspend"),
            ("?", "this help"),
        ],
    ),
];

/// Draws the open dialog, if there is one, above the panes.
pub(super) fn draw(state: &TriageState, theme: Theme, buffer: &mut Buffer) {
    match &state.mode {
        Mode::Browse => {}
        Mode::Prompt(prompt) => draw_prompt(prompt, theme, buffer),
        Mode::Filter(at) => draw_filter(state, *at, theme, buffer),
        Mode::Help(top) => draw_help(state.size, *top, theme, buffer),
        Mode::Ask { title, command, .. } => draw_ask(title, command, theme, buffer),
        Mode::Notice(notice) => draw_notice(notice, theme, buffer),
    }
}

/// Returns an area in the middle of the screen.
fn middle(buffer: &Buffer, width: u16, height: usize) -> Rect {
    let all = buffer.area;
    let width = width.min(all.width);
    let height = u16::try_from(height)
        .unwrap_or(u16::MAX)
        .min(all.height.saturating_sub(1));
    Rect {
        x: (all.width - width) / 2,
        y: (all.height - 1 - height) / 2,
        width,
        height,
    }
}

/// Draws a box with rows in the middle of the screen.
pub(in crate::triage) fn draw_box(
    title: StyledRow,
    rows: &[StyledRow],
    theme: Theme,
    buffer: &mut Buffer,
) {
    let wanted = rows
        .iter()
        .map(StyledRow::width)
        .max()
        .unwrap_or(0)
        .max(title.width() + 4)
        + 4;
    let width = u16::try_from(wanted)
        .unwrap_or(u16::MAX)
        .min(buffer.area.width);
    let area = middle(buffer, width, rows.len() + 2);
    let inner = PaneFrame {
        title,
        note: StyledRow::default(),
        is_focused: true,
    }
    .draw(area, theme, buffer);
    for (row, y) in rows.iter().zip(inner.y..inner.bottom()) {
        row.draw(
            Rect {
                y,
                height: 1,
                ..inner
            },
            buffer,
        );
    }
}

/// Returns the columns inside of a box.
pub(in crate::triage) fn room(buffer: &Buffer) -> usize {
    usize::from(buffer.area.width.min(WIDEST)).saturating_sub(4)
}

/// Draws an input.
fn draw_prompt(prompt: &Prompt, theme: Theme, buffer: &mut Buffer) {
    let all = buffer.area;
    let area = Rect {
        x: 0,
        y: all.height.saturating_sub(5),
        width: all.width,
        height: 4,
    };
    let title = StyledRow::of(theme.style(Ink::Bold), prompt.title());
    let inner = PaneFrame {
        title,
        note: StyledRow::default(),
        is_focused: true,
    }
    .draw(area, theme, buffer);
    let (before, after) = prompt.line.parts();
    let plain = theme.style(Ink::Plain);
    let cursor = plain.add_modifier(Modifier::REVERSED);
    let mut rest = after.chars();
    let under = rest.next().unwrap_or(' ').to_string();
    let left = StyledRow::of(plain, &before);
    let room = usize::from(inner.width).saturating_sub(2);
    let excess = left.width().saturating_sub(room);
    let row = left
        .shifted(excess, theme.ellipsis())
        .put(cursor, under)
        .put(plain, rest.as_str());
    row.cut(usize::from(inner.width), theme.ellipsis())
        .draw(inner, buffer);
    let (ink, text) = match &prompt.problem {
        Some(problem) => (Ink::Bad, format!("error: {problem}")),
        None => (Ink::Dim, prompt.hint().to_owned()),
    };
    let line = Rect {
        y: inner.y + 1,
        ..inner
    };
    StyledRow::of(theme.style(ink), text)
        .cut(usize::from(inner.width), theme.ellipsis())
        .draw(line, buffer);
}

/// Draws the values of the filter. `at` is the one under the cursor.
fn draw_filter(state: &TriageState, at: usize, theme: Theme, buffer: &mut Buffer) {
    let mut rows = Vec::new();
    let mut cursor = 0;
    let mut group = "";
    for (i, (choice, count)) in filter::choices(&state.subject).iter().enumerate() {
        if choice.group() != group {
            group = choice.group();
            rows.push(StyledRow::of(theme.style(Ink::Bold), group));
        }
        if i == at {
            cursor = rows.len();
        }
        let is_on = state.filter.chosen.contains(choice);
        let row = StyledRow::of(
            theme.style(Ink::Accent),
            if is_on { " [x] " } else { " [ ] " },
        );
        rows.push(
            row.put(theme.style(Ink::Plain), choice.name())
                .put(theme.style(Ink::Dim), format!("  {count}")),
        );
    }
    let title = StyledRow::of(theme.style(Ink::Bold), "Filter");
    let widest = rows.iter().map(StyledRow::width).max().unwrap_or(0).max(30) + 4;
    let area = middle(
        buffer,
        u16::try_from(widest).unwrap_or(u16::MAX),
        rows.len() + 2,
    );
    let inner = PaneFrame {
        title,
        note: StyledRow::default(),
        is_focused: true,
    }
    .draw(area, theme, buffer);
    let height = usize::from(inner.height);
    let top = cursor
        .saturating_sub(height / 2)
        .min(rows.len().saturating_sub(height));
    for ((i, row), y) in rows
        .iter()
        .enumerate()
        .skip(top)
        .zip(inner.y..inner.bottom())
    {
        let line = Rect {
            y,
            height: 1,
            ..inner
        };
        row.clone()
            .cut(usize::from(inner.width), theme.ellipsis())
            .draw(line, buffer);
        if i == cursor {
            highlight(line, buffer);
        }
    }
}

/// Keys of one purpose, with their effects.
type KeyGroup = (&'static str, &'static [(&'static str, &'static str)]);

/// Returns the rows of groups of keys.
fn help_column(groups: &[KeyGroup], theme: Theme) -> Vec<StyledRow> {
    let mut rows = Vec::new();
    for (group, keys) in groups {
        if !rows.is_empty() {
            rows.push(StyledRow::default());
        }
        rows.push(StyledRow::of(theme.style(Ink::Bold), group));
        for (key, what) in *keys {
            let row = StyledRow::of(theme.style(Ink::Accent), format!("  {key}")).pad(12);
            rows.push(row.put(theme.style(Ink::Plain), what));
        }
    }
    rows
}

/// Returns the rows of the help, in one or two columns.
fn help(size: Size, theme: Theme) -> Vec<StyledRow> {
    if size.width < 110 {
        return help_column(HELP, theme);
    }
    let (left, right) = HELP.split_at(2);
    let (left, mut right) = (
        help_column(left, theme),
        help_column(right, theme).into_iter(),
    );
    let mut rows: Vec<StyledRow> = left
        .into_iter()
        .map(|row| row.pad(54).and(right.next().unwrap_or_default()))
        .collect();
    rows.extend(right.map(|row| StyledRow::default().pad(54).and(row)));
    rows
}

/// Returns the number of rows of the help.
pub fn help_rows(size: Size) -> usize {
    help(
        size,
        Theme {
            color: false,
            unicode: true,
        },
    )
    .len()
}

/// Returns the number of rows of the help that are visible at once.
pub fn help_room(size: Size) -> usize {
    usize::from(size.height).saturating_sub(3)
}

/// Draws the help from a row on.
fn draw_help(size: Size, top: usize, theme: Theme, buffer: &mut Buffer) {
    let rows = help(size, theme);
    let room = help_room(size);
    let is_cut = rows.len() > room;
    let shown: Vec<StyledRow> = rows.into_iter().skip(top).take(room).collect();
    let title = StyledRow::of(theme.style(Ink::Bold), "Keys");
    let title = if is_cut {
        title.put(theme.style(Ink::Dim), " (j, k scroll)")
    } else {
        title
    };
    draw_box(title, &shown, theme, buffer);
}

/// Draws a question with the command that it is about.
fn draw_ask(title: &str, command: &[String], theme: Theme, buffer: &mut Buffer) {
    let room = room(buffer);
    let mut rows = wrapped(theme.style(Ink::Plain), title, room);
    rows.push(StyledRow::default());
    rows.extend(StyledRow::of(theme.style(Ink::Accent), shown(command)).wrapped(room));
    rows.push(StyledRow::default());
    let keys =
        StyledRow::of(theme.style(Ink::Accent), "Enter").put(theme.style(Ink::Dim), " run   ");
    rows.push(
        keys.put(theme.style(Ink::Accent), "Esc")
            .put(theme.style(Ink::Dim), " cancel"),
    );
    draw_box(
        StyledRow::of(theme.style(Ink::Bold), "Run"),
        &rows,
        theme,
        buffer,
    );
}

/// Returns a command of this program in the form that a user types.
pub(in crate::triage) fn shown(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|w| crate::shell::quoted(w)).collect();
    format!("{NAME} {}", words.join(" "))
}

/// Draws a text that the user closes.
fn draw_notice(notice: &Notice, theme: Theme, buffer: &mut Buffer) {
    let room = room(buffer);
    let mut rows: Vec<StyledRow> = notice
        .lines
        .iter()
        .flat_map(|line| wrapped(theme.style(Ink::Plain), line, room))
        .collect();
    for hint in &notice.hints {
        let row =
            StyledRow::of(theme.style(Ink::Accent), "hint: ").put(theme.style(Ink::Plain), hint);
        rows.extend(row.wrapped(room));
    }
    draw_box(
        StyledRow::of(theme.style(Ink::Bold), &notice.title),
        &rows,
        theme,
        buffer,
    );
}
