//! Rows of cells: all text on the screen goes through them. They escape untrusted text.
//!
//! The terminal gets only characters whose width is the same in all terminals: joiners and
//! variation selectors, whose effect differs, are shown as escapes here, even where
//! [`crate::untrusted`] allows them.

use crate::untrusted::{Piece, pieces};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

/// Features of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Use the 16 colours of the terminal; otherwise only attributes.
    pub color: bool,
    /// Use Unicode signs and borders.
    pub unicode: bool,
}

/// The meaning of a part of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    Plain,
    Dim,
    Bold,
    /// A key, a command, the focus.
    Accent,
    Critical,
    Major,
    Minor,
    Suggestion,
    Added,
    Removed,
    Comment,
    Text,
    Keyword,
    Number,
    Good,
    Bad,
    Proposed,
}

impl Theme {
    /// Returns the style of an ink. No style assumes a background: the colours are from the
    /// terminal's own palette, and legible on light and dark backgrounds.
    pub fn style(self, ink: Ink) -> Style {
        let (color, modifier) = match ink {
            Ink::Plain => (None, Modifier::empty()),
            Ink::Dim => (None, Modifier::DIM),
            Ink::Bold => (None, Modifier::BOLD),
            Ink::Accent => (Some(Color::Cyan), Modifier::BOLD),
            Ink::Critical => (Some(Color::Red), Modifier::BOLD),
            Ink::Major => (Some(Color::Red), Modifier::empty()),
            Ink::Minor => (Some(Color::Yellow), Modifier::empty()),
            Ink::Suggestion => (Some(Color::Blue), Modifier::empty()),
            Ink::Added | Ink::Good => (Some(Color::Green), Modifier::empty()),
            Ink::Removed => (Some(Color::Red), Modifier::empty()),
            Ink::Bad => (Some(Color::Red), Modifier::BOLD),
            Ink::Comment => (None, Modifier::DIM),
            Ink::Text => (Some(Color::Green), Modifier::empty()),
            Ink::Keyword => (Some(Color::Magenta), Modifier::empty()),
            Ink::Number => (Some(Color::Cyan), Modifier::empty()),
            Ink::Proposed => (Some(Color::Magenta), Modifier::BOLD),
        };
        let style = Style::new().add_modifier(modifier);
        color.filter(|_| self.color).map_or(style, |c| style.fg(c))
    }

    /// Returns a sign, or its ASCII replacement.
    pub fn sign(self, unicode: &'static str, ascii: &'static str) -> &'static str {
        if self.unicode { unicode } else { ascii }
    }

    /// Returns the sign for omitted text.
    pub fn ellipsis(self) -> &'static str {
        self.sign("…", "~")
    }
}

/// A character of one or two cells.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Glyph {
    text: String,
    width: u16,
    style: Style,
}

/// A line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledRow {
    glyphs: Vec<Glyph>,
}

impl StyledRow {
    /// Creates a row of text.
    pub fn of(style: Style, text: impl AsRef<[u8]>) -> Self {
        Self::default().put(style, text)
    }

    /// Appends text. Control characters and characters that hide or reorder text become escapes.
    #[must_use]
    pub fn put(mut self, style: Style, text: impl AsRef<[u8]>) -> Self {
        pieces(text.as_ref()).for_each(|piece| self.push(style, &piece));
        self
    }

    /// Appends another row.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        self.glyphs.append(&mut other.glyphs);
        self
    }

    /// Appends spaces up to a column.
    #[must_use]
    pub fn pad(mut self, column: usize) -> Self {
        let missing = column.saturating_sub(self.width());
        self.glyphs
            .extend(std::iter::repeat_n(Glyph::new(' ', Style::new()), missing));
        self
    }

    /// Appends a piece of text.
    pub fn push(&mut self, style: Style, piece: &Piece) {
        let shown = piece.as_str();
        if piece.is_escaped() {
            self.glyphs.extend(
                shown
                    .chars()
                    .map(|c| Glyph::new(c, style.add_modifier(Modifier::DIM))),
            );
            return;
        }
        for c in shown.chars() {
            match c {
                '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' => {
                    let escape = format!("\\u{{{:x}}}", u32::from(c));
                    self.glyphs.extend(
                        escape
                            .chars()
                            .map(|c| Glyph::new(c, style.add_modifier(Modifier::DIM))),
                    );
                }
                c => self.character(c, piece.width(), style),
            }
        }
    }

    /// Appends a character; a zero-width one goes into the cell before it.
    fn character(&mut self, c: char, width: usize, style: Style) {
        match self.glyphs.last_mut() {
            Some(last) if width == 0 => last.text.push(c),
            None if width == 0 => self.glyphs.push(Glyph {
                text: format!(" {c}"),
                width: 1,
                style,
            }),
            _ if width == 2 => self.glyphs.push(Glyph {
                text: c.to_string(),
                width: 2,
                style,
            }),
            _ => self.glyphs.push(Glyph::new(c, style)),
        }
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.glyphs.iter().map(|g| usize::from(g.width)).sum()
    }

    /// Returns true if the row has no cell.
    pub fn is_empty(&self) -> bool {
        self.glyphs.is_empty()
    }

    /// Changes the style of all cells.
    #[must_use]
    pub fn patched(mut self, style: Style) -> Self {
        self.glyphs
            .iter_mut()
            .for_each(|g| g.style = g.style.patch(style));
        self
    }

    /// Truncates the row to a width; the sign marks the truncation.
    #[must_use]
    pub fn cut(mut self, width: usize, sign: &'static str) -> Self {
        if self.width() <= width {
            return self;
        }
        let room = width.saturating_sub(1);
        let count = self.count(room);
        self.glyphs.truncate(count);
        if width > 0 {
            self = self
                .pad(room)
                .put(Style::new().add_modifier(Modifier::DIM), sign);
        }
        self
    }

    /// Removes the first columns; the sign marks the removal.
    #[must_use]
    pub fn shifted(mut self, columns: usize, sign: &'static str) -> Self {
        if columns == 0 || self.glyphs.is_empty() {
            return self;
        }
        let count = self.count(columns + 1);
        self.glyphs.drain(..count);
        Self::of(Style::new().add_modifier(Modifier::DIM), sign).and(self)
    }

    /// Returns the number of glyphs that fit into a width.
    fn count(&self, width: usize) -> usize {
        let ends = self.glyphs.iter().scan(0, |end, g| {
            *end += usize::from(g.width);
            Some(*end)
        });
        ends.take_while(|end| *end <= width).count()
    }

    /// Wraps the row to a width, at spaces if possible.
    pub fn wrapped(self, width: usize) -> Vec<Self> {
        let width = width.max(2);
        let mut out = Vec::new();
        let mut line: Vec<Glyph> = Vec::new();
        let mut used = 0;
        for glyph in self.glyphs {
            let own = usize::from(glyph.width);
            if used + own > width {
                let space = line
                    .iter()
                    .rposition(|g| g.text == " ")
                    .filter(|at| *at > 0);
                let rest = match space {
                    _ if glyph.text == " " => Vec::new(),
                    Some(at) => line.split_off(at + 1),
                    None => Vec::new(),
                };
                out.push(Self {
                    glyphs: std::mem::replace(&mut line, rest),
                });
                used = line.iter().map(|g| usize::from(g.width)).sum();
                if glyph.text == " " {
                    continue;
                }
            }
            used += own;
            line.push(glyph);
        }
        if !line.is_empty() || out.is_empty() {
            out.push(Self { glyphs: line });
        }
        out
    }

    /// Draws the row at the top of an area.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) {
        let area = area.intersection(buffer.area);
        if area.height == 0 {
            return;
        }
        let mut x = area.x;
        for glyph in &self.glyphs {
            if x + glyph.width > area.right() {
                break;
            }
            buffer[(x, area.y)]
                .set_symbol(&glyph.text)
                .set_style(glyph.style);
            if glyph.width == 2 {
                // The wide character covers this cell.
                buffer[(x + 1, area.y)].reset();
                buffer[(x + 1, area.y)].set_style(glyph.style);
            }
            x += glyph.width;
        }
    }
}

impl Glyph {
    /// Creates a cell of a character.
    fn new(c: char, style: Style) -> Self {
        Self {
            text: c.to_string(),
            width: 1,
            style,
        }
    }
}

/// Wraps text of several lines to a width.
pub fn wrapped(style: Style, text: &str, width: usize) -> Vec<StyledRow> {
    text.lines()
        .flat_map(|line| StyledRow::of(style, line).wrapped(width))
        .collect()
}

/// A frame around a part of the screen.
#[derive(Clone, Debug, Default)]
pub struct PaneFrame {
    pub title: StyledRow,
    /// Note at the right end of the upper border.
    pub note: StyledRow,
    pub is_focused: bool,
}

impl PaneFrame {
    /// Draws the frame, clears the area behind it, and returns the inner area.
    pub fn draw(&self, area: Rect, theme: Theme, buffer: &mut Buffer) -> Rect {
        let area = area.intersection(buffer.area);
        let inner = Rect {
            x: area.x + 2,
            y: area.y + 1,
            ..area
        };
        let inner = Rect {
            width: area.width.saturating_sub(4),
            height: area.height.saturating_sub(2),
            ..inner
        };
        if area.width < 4 || area.height < 2 {
            return Rect {
                width: 0,
                height: 0,
                ..area
            };
        }
        let style = theme.style(if self.is_focused {
            Ink::Accent
        } else {
            Ink::Dim
        });
        let [across, down] = [theme.sign("─", "-"), theme.sign("│", "|")];
        let corners = [
            theme.sign("┌", "+"),
            theme.sign("┐", "+"),
            theme.sign("└", "+"),
            theme.sign("┘", "+"),
        ];
        let line = across.repeat(usize::from(area.width) - 2);
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                buffer[(x, y)].reset();
            }
            let (left, middle, right) = match y {
                _ if y == area.y => (corners[0], line.as_str(), corners[1]),
                _ if y + 1 == area.bottom() => (corners[2], line.as_str(), corners[3]),
                _ => (down, "", down),
            };
            let row = StyledRow::of(style, left)
                .put(style, middle)
                .pad(usize::from(area.width) - 1)
                .put(style, right);
            row.draw(
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                buffer,
            );
        }
        self.heading(area, theme, buffer);
        inner
    }

    /// Draws the title and the note on the upper border.
    fn heading(&self, area: Rect, theme: Theme, buffer: &mut Buffer) {
        let room = usize::from(area.width).saturating_sub(6);
        let note = self.note.width();
        let has_note = note > 0 && self.title.width() + note + 4 <= room;
        if !self.title.is_empty() {
            let title = spaced(
                &self.title,
                if has_note { room - note - 3 } else { room },
                theme,
            );
            title.draw(
                Rect {
                    x: area.x + 2,
                    width: area.width.saturating_sub(3),
                    height: 1,
                    ..area
                },
                buffer,
            );
        }
        if has_note {
            let width = u16::try_from(note + 2).unwrap_or(u16::MAX);
            let x = area.right().saturating_sub(width + 2);
            spaced(&self.note, note, theme).draw(
                Rect {
                    x,
                    width,
                    height: 1,
                    ..area
                },
                buffer,
            );
        }
    }
}

/// Returns a row that is cut to a width, with a space on each side.
fn spaced(row: &StyledRow, room: usize, theme: Theme) -> StyledRow {
    StyledRow::of(Style::new(), " ")
        .and(row.clone().cut(room, theme.ellipsis()))
        .put(Style::new(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(row: &StyledRow, width: u16) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        row.draw(buffer.area, &mut buffer);
        super::super::view::text(&buffer)
    }

    #[test]
    fn dsp_06_foreign_text_is_inert_in_cells() {
        for (text, shown) in [
            ("\x1b]0;owned\x07x", "\\x1b]0;owned\\x07x"),
            ("\x1b[2J\x1b[1;1H", "\\x1b[2J\\x1b[1;1H"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b", "a\\u{200b}b"),
            ("a\tb", "a   b"),
            ("a\rb\n", "a\\rb\\n"),
            ("e\u{301}x", "e\u{301}x"),
            ("日本", "日本"),
            ("❤\u{fe0f}", "❤\\u{fe0f}"),
            ("👩\u{200d}👧", "👩\\u{200d}👧"),
        ] {
            assert_eq!(
                drawn(&StyledRow::of(Style::new(), text), 40).trim_end(),
                shown,
                "{text:?}"
            );
        }
        // A combining mark without a letter gets its own cell.
        let row = StyledRow::of(Style::new(), "\u{301}a");
        assert_eq!(row.width(), 2);
    }

    #[test]
    fn every_row_has_the_width_that_it_is_cut_to() {
        let row = StyledRow::of(Style::new(), "日本語 text\u{1b}");
        for width in 0..20 {
            assert!(row.clone().cut(width, "~").width() <= width, "{width}");
            assert!(
                row.clone()
                    .wrapped(width)
                    .iter()
                    .all(|r| r.width() <= width.max(2)),
                "{width}"
            );
        }
        assert_eq!(drawn(&row.clone().cut(6, "~"), 8).trim_end(), "日本 ~");
        assert_eq!(drawn(&row, 3).trim_end(), "日");
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        let rows: Vec<String> = wrapped(Style::new(), "one two three\n\nabcdefghij", 7)
            .iter()
            .map(|r| drawn(r, 8).trim_end().to_owned())
            .collect();
        assert_eq!(rows, ["one two", "three", "", "abcdefg", "hij"]);
    }

    #[test]
    fn colours_need_permission_and_are_of_the_terminals_palette() {
        let bare = Theme {
            color: false,
            unicode: true,
        };
        let full = Theme {
            color: true,
            unicode: true,
        };
        for ink in [
            Ink::Critical,
            Ink::Major,
            Ink::Added,
            Ink::Keyword,
            Ink::Accent,
            Ink::Proposed,
        ] {
            assert_eq!(bare.style(ink).fg, None, "{ink:?}");
            assert!(full.style(ink).bg.is_none(), "{ink:?}");
            assert!(!matches!(
                full.style(ink).fg,
                Some(Color::Rgb(..) | Color::Indexed(_) | Color::White | Color::Black)
            ));
        }
    }
}
