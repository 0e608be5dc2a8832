//! The position of a finding as text and as numbers.

use super::{Finding, Frame, FrameLine, Location};
use crate::untrusted::{self, Inert};

/// Returns a position as text: the first line of a location, `src/a.py:3`.
pub fn place(location: Option<&Location>) -> String {
    match location {
        Some(Location {
            file,
            lines: Some(lines),
        }) => format!("{}:{}", Inert::new(file.as_bytes()), lines.first),
        Some(Location { file, lines: None }) => Inert::new(file.as_bytes()).to_string(),
        None => "the change as a whole".to_owned(),
    }
}

/// Returns the line of a frame by its number.
pub fn line_of(frame: &Frame, number: u32) -> Option<&FrameLine> {
    frame
        .lines
        .get(number.checked_sub(frame.first.get())? as usize)
}

/// Returns the 1-based column at which the match of a finding starts, without white space before
/// it: in characters, as editors count it. `None` without columns, and if the start of the line is
/// not known.
pub fn column(f: &Finding) -> Option<u32> {
    match &f.frame {
        Some(_) => column_in_frame(f),
        None => f.stated_column,
    }
}

/// Returns the column of [`column`] by the code around the finding.
fn column_in_frame(f: &Finding) -> Option<u32> {
    let span = f.lines()?;
    let (start, end) = span.columns?;
    let line = line_of(f.frame.as_ref()?, span.first.get())?;
    if line.skipped > 0 {
        return None;
    }
    let (mut at, mut first, mut ink) = (0, None, None);
    for (number, piece) in (1..).zip(untrusted::pieces(&line.text)) {
        at += piece.bytes();
        if at <= start as usize {
            continue;
        }
        first.get_or_insert(number);
        if !piece.is_blank() || at > end as usize {
            ink = Some(number).filter(|_| at <= end as usize);
            break;
        }
    }
    ink.or(first)
}
