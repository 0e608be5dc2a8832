//! The hunks of one file: ranges, lines, and the checks of their consistency.

use super::{PatchReader, trim, wrong};
use crate::diff::{Encoding, Hunk, LineEdit, LineRange, Text, TextChange, TextRun};

/// No file has more lines. The bound prevents overflow of the sums below.
const MAX_LINE: u32 = i32::MAX as u32;

/// The two ranges of a hunk header, as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    old: (u32, u32),
    new: (u32, u32),
    section: &'a [u8],
}

impl<'a> Header<'a> {
    /// Parses `@@ -1,2 +3,4 @@ section`.
    pub(super) fn parse(line: &'a [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"@@ -")?;
        let (old, rest) = range(rest)?;
        let (new, rest) = range(rest.strip_prefix(b" +")?)?;
        let section = rest.strip_prefix(b" @@")?;
        let section = section.strip_prefix(b" ").unwrap_or(section);
        Some(Self {
            old,
            new,
            section: trim(section),
        })
    }
}

/// Parses `12,3` or `12` and returns the rest of the text.
fn range(text: &[u8]) -> Option<((u32, u32), &[u8])> {
    let (start, rest) = number(text)?;
    match rest.strip_prefix(b",") {
        Some(rest) => number(rest).map(|(count, rest)| ((start, count), rest)),
        None => Some(((start, 1), rest)),
    }
}

fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    let n = std::str::from_utf8(&text[..digits]).ok()?.parse().ok()?;
    Some((n, &text[digits..]))
}

/// All hunks of a file.
#[derive(Debug, Default)]
pub(super) struct Hunks {
    old: SideText,
    new: SideText,
    hunks: Vec<Hunk>,
}

/// The text of one side in the hunks.
#[derive(Debug, Default)]
struct SideText {
    bytes: Vec<u8>,
    runs: Vec<TextRun>,
    /// Number of the line after the last one.
    next: u32,
    /// The last line of the file was parsed.
    ended: bool,
}

impl SideText {
    /// Starts a hunk and returns its range, without bytes.
    fn open(&mut self, (start, count): (u32, u32)) -> Result<LineRange, &'static str> {
        if start > MAX_LINE || count > MAX_LINE - start {
            return Err("line number out of range");
        }
        if start == 0 && count > 0 {
            return Err("invalid line number 0: lines are numbered from 1");
        }
        // An empty range has the number of the line before it.
        let start = if count == 0 { start + 1 } else { start };
        if start < self.next {
            return Err("hunk overlaps the previous one or is out of order");
        }
        let at = self.bytes.len();
        if count > 0 {
            match self.runs.last_mut() {
                Some(run) if start == self.next => run.bytes.end = at,
                _ => self.runs.push(TextRun {
                    first: start,
                    bytes: at..at,
                }),
            }
        }
        self.next = start + count;
        Ok(LineRange {
            start,
            count,
            bytes: at..at,
        })
    }

    /// Returns true if the known lines begin with the first one of the file, or if there are none.
    fn is_from_first_line(&self) -> bool {
        self.runs.first().is_none_or(|run| run.first == 1)
    }

    /// Returns an empty range of lines at the end of the text.
    fn no_lines(&self, start: u32) -> LineRange {
        LineRange {
            start,
            count: 0,
            bytes: self.bytes.len()..self.bytes.len(),
        }
    }

    fn push(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if self.ended {
            return Err("line after the end of the file");
        }
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
        Ok(())
    }

    /// Removes the line end of the last line.
    fn end(&mut self) -> Result<(), &'static str> {
        self.bytes.pop();
        if std::mem::replace(&mut self.ended, true) {
            Err("second end of file")
        } else {
            Ok(())
        }
    }

    /// Ends a hunk; sets the bytes of its range `lines`.
    fn close(&mut self, lines: &mut LineRange) {
        lines.bytes.end = self.bytes.len();
        if let (Some(run), 1..) = (self.runs.last_mut(), lines.count) {
            run.bytes.end = self.bytes.len();
        }
    }

    fn into_text(self, complete: bool) -> Text {
        Text {
            bytes: self.bytes,
            runs: self.runs,
            complete,
            ..Text::default()
        }
    }
}

/// The kind of the previous line; `Start` before the first line, and after a line that ends a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineMark {
    Start,
    Context,
    Removed,
    Added,
}

impl Hunks {
    /// Parses all hunks that follow.
    ///
    /// `crlf` is true if a conversion of line ends added a carriage return before each line end of
    /// the patch. These are not part of the file.
    pub(super) fn read(reader: &mut PatchReader<'_>, crlf: bool) -> crate::error::Result<Self> {
        let mut hunks = Self::default();
        let first = reader.number;
        while let Some(line) = reader.peek().filter(|l| l.starts_with(b"@@ ")) {
            let header = Header::parse(line).ok_or_else(|| reader.wrong("invalid hunk header"))?;
            let number = reader.number;
            reader.next();
            hunks.read_hunk(reader, header, number, crlf)?;
        }
        if reader.number == first {
            return Err(reader.wrong("expected a hunk after the file names"));
        }
        Ok(hunks)
    }

    fn read_hunk(
        &mut self,
        reader: &mut PatchReader<'_>,
        header: Header<'_>,
        number: usize,
        crlf: bool,
    ) -> crate::error::Result<()> {
        let mut old = self.old.open(header.old).map_err(|e| wrong(number, e))?;
        let mut new = self.new.open(header.new).map_err(|e| wrong(number, e))?;
        let mut left = (old.count, new.count);
        let mut edits: Vec<LineEdit> = Vec::new();
        let mut last = LineMark::Start;
        loop {
            let line = reader.peek().unwrap_or_default();
            if line.first() == Some(&b'\\') {
                self.end_file(last).map_err(|e| reader.wrong(e))?;
                last = LineMark::Start;
            } else if left == (0, 0) {
                break;
            } else {
                let mark = mark_of(line, left).ok_or_else(|| {
                    let (old, new) = left;
                    reader
                        .wrong(format!("hunk of line {number} is too short: {old} old and {new} new lines are missing"))
                })?;
                if mark != LineMark::Context && (last == LineMark::Context || edits.is_empty()) {
                    edits.push(LineEdit {
                        old: self.old.no_lines(old.start + old.count - left.0),
                        new: self.new.no_lines(new.start + new.count - left.1),
                    });
                }
                let text = content(line, crlf);
                if mark != LineMark::Added {
                    self.old.push(text).map_err(|e| reader.wrong(e))?;
                    left.0 -= 1;
                }
                if mark != LineMark::Removed {
                    self.new.push(text).map_err(|e| reader.wrong(e))?;
                    left.1 -= 1;
                }
                if let (Some(edit), LineMark::Removed | LineMark::Added) = (edits.last_mut(), mark)
                {
                    edit.old.count += u32::from(mark == LineMark::Removed);
                    edit.new.count += u32::from(mark == LineMark::Added);
                    edit.old.bytes.end = self.old.bytes.len();
                    edit.new.bytes.end = self.new.bytes.len();
                }
                last = mark;
            }
            reader.next();
        }
        refuse_more(reader, number)?;
        self.old.close(&mut old);
        self.new.close(&mut new);
        // The text became shorter if a line turned out to have no line end.
        for edit in &mut edits {
            for (lines, text) in [(&mut edit.old, &self.old), (&mut edit.new, &self.new)] {
                lines.bytes.end = lines.bytes.end.min(text.bytes.len());
                lines.bytes.start = lines.bytes.start.min(lines.bytes.end);
            }
        }
        if !edits.is_empty() {
            self.hunks.push(Hunk {
                old,
                new,
                edits,
                section: header.section.to_vec(),
            });
        }
        Ok(())
    }

    fn end_file(&mut self, last: LineMark) -> Result<(), &'static str> {
        match last {
            LineMark::Start => Err("end of file without a line before it"),
            LineMark::Removed => self.old.end(),
            LineMark::Added => self.new.end(),
            LineMark::Context => self.old.end().and_then(|()| self.new.end()),
        }
    }

    /// Returns true if no hunk has a line of the old side.
    pub(super) fn new_side_only(&self) -> bool {
        self.old.bytes.is_empty()
    }

    /// Returns true if no hunk has a line of the new side.
    pub(super) fn old_side_only(&self) -> bool {
        self.new.bytes.is_empty()
    }

    pub(super) fn old_bytes(&self) -> &[u8] {
        &self.old.bytes
    }

    pub(super) fn new_bytes(&self) -> &[u8] {
        &self.new.bytes
    }

    /// Creates the change. If one side does not exist, the other one is completely known.
    pub(super) fn into_change(self, old_exists: bool, new_exists: bool) -> TextChange {
        let complete = !(old_exists && new_exists) && self.hunks.len() == 1;
        let complete = complete && self.old.is_from_first_line() && self.new.is_from_first_line();
        TextChange {
            old: self.old.into_text(complete),
            new: self.new.into_text(complete),
            hunks: self.hunks,
            encoding: Encoding::Bytes,
            hidden: None,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

/// Returns the kind of a line, given the numbers of old and new lines that are still expected.
fn mark_of(line: &[u8], (old, new): (u32, u32)) -> Option<LineMark> {
    match line.first()? {
        // Mailers remove the blank of an empty context line.
        b' ' | b'\n' | b'\r' => (old > 0 && new > 0).then_some(LineMark::Context),
        b'-' => (old > 0).then_some(LineMark::Removed),
        b'+' => (new > 0).then_some(LineMark::Added),
        _ => None,
    }
}

/// Removes the mark and the line end of a line.
fn content(line: &[u8], crlf: bool) -> &[u8] {
    let line = match line.first() {
        Some(b' ' | b'-' | b'+') => &line[1..],
        _ => line,
    };
    if crlf {
        trim(line)
    } else {
        line.strip_suffix(b"\n").unwrap_or(line)
    }
}

/// Rejects a line after the last one that looks like part of the hunk, because the counts are wrong
/// then.
fn refuse_more(reader: &PatchReader<'_>, number: usize) -> crate::error::Result<()> {
    let line = reader.peek().unwrap_or_default();
    let more = match line.first() {
        Some(b'+') => true,
        Some(b' ') => !line.trim_ascii().is_empty(),
        Some(b'-') => {
            let signature = matches!(trim(line), b"-- " | b"--");
            let next_file = line.starts_with(b"--- ")
                && reader.peek_at(1).is_some_and(|l| l.starts_with(b"+++ "));
            !signature && !next_file
        }
        _ => false,
    };
    if more {
        return Err(reader.wrong(format!(
            "hunk of line {number} has more lines than its header declares"
        )));
    }
    Ok(())
}
