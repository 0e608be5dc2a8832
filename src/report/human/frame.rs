//! Code frames: the lines around a finding, with numbers, carets, and a window onto long lines.

use super::page::{ADDED, BOLD, DIM, ESCAPED, HumanPage, PLAIN, StyledLine};
use crate::finding::{Finding, FrameLine, line_of};
use crate::untrusted::{self, Inert, Piece};
use anstyle::Style;
use std::io;

/// Columns before the caret in a truncated line.
const LEAD: usize = 12;

/// A line as cells: the shown text, and the bytes that each part represents.
struct Cells {
    pieces: Vec<Piece>,
    /// Bytes that were removed from the start of the line.
    skipped: usize,
}

impl Cells {
    fn of(line: &FrameLine) -> Self {
        Self {
            pieces: untrusted::pieces(&line.text).collect(),
            skipped: line.skipped as usize,
        }
    }

    fn width(&self) -> usize {
        self.pieces.iter().map(Piece::width).sum()
    }

    /// Returns the column at which a byte of the whole line is shown.
    fn column(&self, byte: usize) -> usize {
        let mut at = self.skipped;
        let mut column = 0;
        for p in &self.pieces {
            if at + p.bytes() > byte {
                break;
            }
            at += p.bytes();
            column += p.width();
        }
        column
    }

    /// Returns the columns from the first to the last character between two columns that is not
    /// white space; `None` if there are only blanks.
    fn ink(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let mut column = 0;
        let mut ink = None;
        for p in &self.pieces {
            if !p.is_blank() && (from..to).contains(&column) {
                let (start, _) = ink.unwrap_or((column, 0));
                ink = Some((start, column + p.width()));
            }
            column += p.width();
        }
        ink
    }

    /// Returns the columns that carets mark for these bytes of the line, without white space at
    /// either end.
    fn marked(&self, columns: Option<(u32, u32)>) -> (usize, usize) {
        let Some((start, end)) = columns else {
            return self.ink(0, usize::MAX).unwrap_or((0, 0));
        };
        let start = self.column(start as usize);
        let end = self.column(end as usize).max(start + 1);
        self.ink(start, end).unwrap_or((start, end))
    }
}

/// Writes the frame of a finding, if it has one.
pub(super) fn write(page: &mut HumanPage<'_>, f: &Finding, accent: Style) -> io::Result<()> {
    let (Some(frame), Some(span)) = (&f.frame, f.lines()) else {
        return Ok(());
    };
    let last = frame.first.get() as usize + frame.lines.len().saturating_sub(1);
    let digits = last.to_string().len().max(3);
    // `> 123 | code`
    let margin = 2 + digits + 3;
    let room = page.style.width.saturating_sub(margin).max(8);
    let focus = line_of(frame, span.first.get()).map(Cells::of);
    let caret = focus.as_ref().map(|cells| cells.marked(span.columns));
    let offset = match (&focus, caret) {
        (Some(cells), Some((start, end))) => window(cells.width(), start, end, room),
        _ => 0,
    };
    let focus_skipped = focus.as_ref().map_or(0, |c| c.skipped);
    for (i, line) in frame.lines.iter().enumerate() {
        let number = frame.first.get().saturating_add(i as u32);
        let marked = (span.first.get()..=span.last.get()).contains(&number);
        let cells = Cells::of(line);
        let offset = if cells.skipped == focus_skipped {
            offset
        } else {
            0
        };
        // In a tree, each line is as new as the others.
        let is_added = line.added && page.words.marks_added;
        let bar = if is_added { "+" } else { page.glyphs.bar };
        let row = StyledLine::new()
            .put(accent, if marked { "> " } else { "  " })
            .put(
                if marked { accent } else { DIM },
                Inert::new(format!("{number:>digits$} ")),
            )
            .put(if is_added { ADDED } else { DIM }, bar)
            .put(PLAIN, " ");
        let code = if marked || is_added { PLAIN } else { DIM };
        page.line(&cut(row, &cells, offset, room, code, page.glyphs.ellipsis))?;
        if number == span.first.get()
            && (span.columns.is_some() || span.first == span.last)
            && let Some((start, end)) = caret
        {
            let from = start.saturating_sub(offset).min(room - 1);
            let to = end.saturating_sub(offset).clamp(from + 1, room);
            let row = StyledLine::new()
                .space(2 + digits + 1)
                .put(DIM, page.glyphs.bar)
                .space(1 + from)
                .put(accent, Inert::new(page.glyphs.caret.repeat(to - from)));
            page.line(&row)?;
        }
    }
    if last < span.last.get() as usize {
        page.line(&StyledLine::new().put(accent, "> ").put(
            DIM,
            Inert::new(format!("{:>digits$}", page.glyphs.ellipsis)),
        ))?;
    }
    Ok(())
}

/// Returns the first column to show so that the marked ones are visible.
fn window(width: usize, start: usize, end: usize, room: usize) -> usize {
    // The start of the line matters more than the end of the marked part.
    let enough = (end - start).min(room / 2);
    if width <= room || start + enough + 3 <= room {
        return 0;
    }
    // Keep room for the ellipsis on both sides.
    let lead = LEAD.min(room / 4);
    let wanted = start.saturating_sub(lead);
    wanted.min(width.saturating_sub(room.saturating_sub(3)))
}

/// Appends the cells of a line from column `offset` on, at most `room` columns.
fn cut(
    mut row: StyledLine,
    cells: &Cells,
    offset: usize,
    room: usize,
    style: Style,
    ellipsis: &'static str,
) -> StyledLine {
    let sign = untrusted::width(ellipsis);
    let total = cells.width();
    let left = offset > 0 && total > 0 || cells.skipped > 0;
    let right = total.saturating_sub(offset) > room;
    let from = if left { offset + sign } else { offset };
    let to = if right {
        offset + room - sign
    } else {
        offset + room
    };
    if left {
        row = row.put(DIM, ellipsis);
    }
    let mut column = 0;
    let mut seen = Vec::new();
    for p in &cells.pieces {
        let (start, end) = (column, column + p.width());
        column = end;
        let width = end.min(to).saturating_sub(start.max(from));
        // A combining mark belongs to the character before it.
        let mark = p.width() == 0 && start > from && start <= to;
        match width == p.width() {
            true if width > 0 || mark => seen.push(p.clone()),
            // Half of a wide character, or part of an escape, becomes blanks of the same width.
            _ => seen.push(Piece::blank(width)),
        }
    }
    for alike in seen.chunk_by(|a, b| a.is_escaped() == b.is_escaped()) {
        let style = if alike.first().is_some_and(Piece::is_escaped) {
            ESCAPED
        } else {
            style
        };
        row = row.put(style, alike.iter().collect::<Inert>());
    }
    if right { row.put(DIM, ellipsis) } else { row }
}

/// Writes the quote of a finding without a frame.
pub(super) fn quote(page: &mut HumanPage<'_>, f: &Finding) -> io::Result<()> {
    for line in Inert::lines(f.quote()).take(4) {
        let room = page.style.width.saturating_sub(4);
        let row = StyledLine::new()
            .space(2)
            .put(DIM, page.glyphs.bar)
            .put(PLAIN, " ")
            .put(BOLD, super::page::elide(&line, room, page.glyphs.ellipsis));
        page.line(&row)?;
    }
    Ok(())
}
