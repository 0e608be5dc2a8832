//! Draws the menu. Pure.

use super::super::paper::{Ink, StyledRow, Theme, wrapped};
use super::super::view::{hints, shown, too_small};
use super::{MenuEntry, MenuState};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

/// Columns of an entry, at most.
const WIDEST: usize = 96;

/// Draws the state.
pub fn draw(state: &MenuState, theme: Theme) -> Buffer {
    let area = Rect::new(0, 0, state.size.width, state.size.height);
    let mut buffer = Buffer::empty(area);
    if state.size.is_too_small() {
        too_small(state.size, theme, &mut buffer);
        return buffer;
    }
    let width = usize::from(area.width);
    head(state, theme)
        .cut(width, theme.ellipsis())
        .draw(area, &mut buffer);
    let Some(list) = state.list() else {
        return buffer;
    };
    let top = 2 + advice(state, theme, area, &mut buffer);
    let title = Rect {
        y: top,
        height: 1,
        ..area
    };
    StyledRow::of(theme.style(Ink::Bold), format!(" {}", list.title))
        .cut(width, theme.ellipsis())
        .draw(title, &mut buffer);
    // Each entry has its title, its command, and an empty line if there is room.
    let body = Rect {
        x: 1,
        y: top + 2,
        width: area.width - 2,
        height: area.height.saturating_sub(top + 4),
    };
    let rows = if usize::from(body.height) >= list.entries.len() * 3 {
        3
    } else {
        2
    };
    let room = (usize::from(body.height) / rows).max(1);
    let top = list
        .current
        .saturating_sub(room / 2)
        .min(list.entries.len().saturating_sub(room));
    for ((i, entry), line) in list.entries.iter().enumerate().skip(top).zip(0..room) {
        let y = body.y + u16::try_from(line * rows).unwrap_or(0);
        let is_current = i == list.current;
        for (row, y) in draw_entry(entry, i, is_current, usize::from(body.width), theme)
            .iter()
            .zip(y..body.bottom())
        {
            row.draw(
                Rect {
                    y,
                    height: 1,
                    ..body
                },
                &mut buffer,
            );
        }
    }
    foot(state, theme).draw(
        Rect {
            y: area.height - 1,
            height: 1,
            ..area
        },
        &mut buffer,
    );
    buffer
}

/// Draws the suggestion if there is nothing to review. Returns its number of rows, with an empty
/// one.
fn advice(state: &MenuState, theme: Theme, area: Rect, buffer: &mut Buffer) -> u16 {
    if state.surroundings.repo.is_some() {
        return 0;
    }
    let inner = Rect {
        x: 1,
        y: 2,
        width: area.width.saturating_sub(2),
        height: area.height,
    };
    let text = state.surroundings.outside.advice();
    let rows = wrapped(
        theme.style(Ink::Plain),
        &text,
        usize::from(inner.width).min(WIDEST),
    );
    // The remaining rows are for the entries.
    let most = area.height.saturating_sub(8);
    let mut taken = 0;
    for (row, y) in rows.iter().zip(inner.y..inner.y + most) {
        row.draw(
            Rect {
                y,
                height: 1,
                ..inner
            },
            buffer,
        );
        taken = y + 1 - inner.y;
    }
    if taken == 0 { 0 } else { taken + 1 }
}

/// Returns the first line: the folder, and the state of the repository.
fn head(state: &MenuState, theme: Theme) -> StyledRow {
    let (dim, plain) = (theme.style(Ink::Dim), theme.style(Ink::Plain));
    let dot = theme.sign(" · ", " - ");
    let row = StyledRow::of(theme.style(Ink::Bold), format!(" {}", crate::NAME));
    let row = row.put(dim, dot).put(plain, &state.surroundings.folder);
    match &state.surroundings.repo {
        None => row
            .put(dim, dot)
            .put(theme.style(Ink::Minor), state.surroundings.outside.name()),
        Some(repo) => {
            let branch = repo.branch.as_deref().unwrap_or("detached HEAD");
            row.put(dim, dot).put(theme.style(Ink::Accent), branch)
        }
    }
}

/// Draws an entry: its title, and its command below.
fn draw_entry(
    entry: &MenuEntry,
    i: usize,
    is_current: bool,
    width: usize,
    theme: Theme,
) -> [StyledRow; 2] {
    let (dim, plain) = (theme.style(Ink::Dim), theme.style(Ink::Plain));
    let width = width.min(WIDEST);
    let arrow = if is_current {
        theme.sign("▶ ", "> ")
    } else {
        "  "
    };
    let number = if i < 9 {
        format!("{} ", i + 1)
    } else {
        "  ".to_owned()
    };
    let title = if is_current {
        plain.add_modifier(Modifier::BOLD | Modifier::REVERSED)
    } else {
        plain
    };
    let first = StyledRow::of(theme.style(Ink::Accent), arrow)
        .put(dim, number)
        .put(title, &entry.title)
        .put(dim, "  ")
        .put(dim, &entry.about)
        .cut(width, theme.ellipsis());
    let command = if is_current {
        theme.style(Ink::Accent)
    } else {
        dim
    };
    let second = StyledRow::of(dim, "    $ ")
        .put(command, shown(&entry.command))
        .cut(width, theme.ellipsis());
    [first, second]
}

/// Returns the last line: a message, or the keys.
fn foot(state: &MenuState, theme: Theme) -> StyledRow {
    let width = usize::from(state.size.width);
    if let Some(problem) = state
        .problem
        .as_ref()
        .or(state.surroundings.problem.as_ref())
    {
        return StyledRow::of(theme.style(Ink::Bad), format!(" {problem}"))
            .cut(width, theme.ellipsis());
    }
    let back = if state.is_nested() {
        ("Esc", "back")
    } else {
        ("?", "help")
    };
    hints(
        &[
            ("j k", "move"),
            ("Enter", "run"),
            ("1-9", "select"),
            ("R", "refresh"),
            back,
            ("q", "quit"),
        ],
        width,
        theme,
    )
}
