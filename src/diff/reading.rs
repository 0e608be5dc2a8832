//! Further readings of a text: what a program sees that decodes the same bytes in another way.
//!
//! Shells and compilers drop NUL bytes, so `sys\0tem` is `system` to them. UTF-7 writes any character in letters
//! and digits. A file can be UTF-16 in one part and ASCII in another. A backslash at the end of a line continues it in
//! shells, C and Python. The rules read the text as it is, and then each further reading.

use super::{Hunk, Lines, Run, Text, TextChange, utf7};
use std::borrow::Cow;
use std::ops::Range;

/// The most lines, and bytes, of a continued line.
const JOINED_LINES: usize = 64;
const JOINED_BYTES: usize = 16 << 10;

/// Byte offsets at which continued lines were joined, in order.
#[derive(Clone, Debug)]
pub(in crate::diff) struct Joints(Vec<usize>);

impl TextChange {
    /// Returns the change as other programs may read it; lines keep their numbers, except where the bytes of a
    /// wide encoding were taken for lines.
    pub fn further_readings(&self) -> Vec<Cow<'_, Self>> {
        let own = [self.decoded(), self.joined()].into_iter().flatten().map(Cow::Owned);
        let stored = self
            .readings
            .iter()
            .flat_map(|reading| std::iter::once(Cow::Borrowed(reading)).chain(reading.further_readings()));
        own.chain(stored).collect()
    }

    /// Returns the change without NUL bytes and with UTF-7 decoded; `None` where that adds nothing.
    fn decoded(&self) -> Option<Self> {
        let changes = |text: &[u8]| memchr::memchr(0, text).is_some() || utf7::is_used(text);
        let with_lines = || self.with(Moved::of(&self.old, decode_line), Moved::of(&self.new, decode_line));
        self.added().any(|block| changes(block.text)).then(with_lines)
    }

    /// Returns the change with the lines of the new side joined that a backslash or a pipe continues, each in place of
    /// its first added line; the others are empty. `None` where no added line is part of one.
    fn joined(&self) -> Option<Self> {
        let edits = self.hunks.iter().flat_map(|h| &h.edits);
        let added: Vec<Range<usize>> = edits.map(|e| e.new.bytes.clone()).filter(|r| !r.is_empty()).collect();
        // The line above can go on in an added one.
        let above = |start: usize| start.saturating_sub(3);
        if self.new.is_joined() || !added.iter().any(|r| may_continue(&self.new.bytes[above(r.start)..r.end])) {
            return None;
        }
        let new = Moved::joining(&self.new, &added);
        (!new.joints.is_empty()).then(|| self.with(Moved::of(&self.old, <[u8]>::to_vec), new))
    }

    /// Returns the change with other lines, as many as before.
    fn with(&self, old: Moved, new: Moved) -> Self {
        let hunk = |h: &Hunk| Hunk {
            old: old.lines(&h.old),
            new: new.lines(&h.new),
            edits: h.edits.iter().map(|e| super::Edit { old: old.lines(&e.old), new: new.lines(&e.new) }).collect(),
            section: h.section.clone(),
        };
        Self {
            hunks: self.hunks.iter().map(hunk).collect(),
            old: old.into_text(&self.old),
            new: new.into_text(&self.new),
            encoding: self.encoding,
            hidden: None,
            undecoded: None,
            readings: Vec::new(),
        }
    }
}

impl Text {
    /// Returns true for a reading in which continued lines stand in one.
    pub fn is_joined(&self) -> bool {
        self.joints.is_some()
    }

    /// Returns true if a slice of this text goes over a place where lines were joined.
    pub fn spans_joint(&self, part: &[u8]) -> bool {
        let (Some(range), Some(joints)) = (self.range_of(part), &self.joints) else { return false };
        let next = joints.0.partition_point(|j| *j <= range.start);
        joints.0.get(next).is_some_and(|j| *j < range.end)
    }
}

/// Returns false for a text without a line that the next one continues.
fn may_continue(text: &[u8]) -> bool {
    [&b"\\\n"[..], b"\\\r\n", b"|\n", b"|\r\n"].iter().any(|end| memchr::memmem::find(text, end).is_some())
}

/// Returns what a line adds to the next one that continues it, without its line end; `None`: nothing continues it.
fn continued(line: &[u8]) -> Option<&[u8]> {
    let body = line.strip_suffix(b"\n")?;
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    let backslashes = body.iter().rev().take_while(|b| **b == b'\\').count();
    if backslashes % 2 == 1 {
        return Some(&body[..body.len() - 1]);
    }
    let before = body.strip_suffix(b"|")?.trim_ascii();
    // A block of YAML (`run: |`, `- |`) and a row of a table continue nothing.
    let is_pipe = !before.starts_with(b"|") && !matches!(before.last(), None | Some(b':' | b'-' | b'|' | b'\\'));
    is_pipe.then_some(body)
}

/// Decodes a line: no NUL bytes, no UTF-7.
fn decode_line(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    line.retain(|b| *b != 0);
    utf7::decode(&line).unwrap_or(line)
}

/// The bytes of a text after its lines were replaced, and where each line went.
struct Moved {
    bytes: Vec<u8>,
    /// Offsets of line starts before and after, in order; the last pair is the end.
    starts: Vec<(usize, usize)>,
    /// Where lines were joined, in `bytes`.
    joints: Vec<usize>,
}

impl Moved {
    fn of(text: &Text, decode: fn(&[u8]) -> Vec<u8>) -> Self {
        let (mut bytes, mut starts, mut at) = (Vec::with_capacity(text.bytes.len()), Vec::new(), 0);
        for line in text.bytes.split_inclusive(|b| *b == b'\n') {
            starts.push((at, bytes.len()));
            let (body, end) = match line.strip_suffix(b"\n") {
                Some(body) => (body, &b"\n"[..]),
                None => (line, &b""[..]),
            };
            bytes.extend(decode(body));
            bytes.extend(end);
            at += line.len();
        }
        starts.push((at, bytes.len()));
        Self { bytes, starts, joints: Vec::new() }
    }

    /// Joins the continued lines of which one is in `added`: ranges of the text's bytes, in order.
    fn joining(text: &Text, added: &[Range<usize>]) -> Self {
        let mut moved = Self { bytes: Vec::with_capacity(text.bytes.len()), starts: Vec::new(), joints: Vec::new() };
        for run in &text.runs {
            let mut at = run.bytes.start;
            while at < run.bytes.end {
                let lines = continued_lines(&text.bytes[at..run.bytes.end]);
                moved.push_joined(&lines, at, added);
                at += lines.iter().map(|l| l.len()).sum::<usize>();
            }
        }
        moved.starts.push((text.bytes.len(), moved.bytes.len()));
        moved
    }

    /// Adds lines of which each continues the one before; the first starts at a byte of the original.
    fn push_joined(&mut self, lines: &[&[u8]], start: usize, added: &[Range<usize>]) {
        let starts: Vec<usize> = lines.iter().scan(start, |at, l| Some(std::mem::replace(at, *at + l.len()))).collect();
        let is_added = |at: &usize| added.get(added.partition_point(|r| r.end <= *at)).is_some_and(|r| r.start <= *at);
        let host = starts.iter().position(is_added).filter(|_| lines.len() > 1);
        for (i, line) in lines.iter().enumerate() {
            self.starts.push((starts[i], self.bytes.len()));
            match host {
                None => self.bytes.extend_from_slice(line),
                Some(host) => {
                    if i == host {
                        self.join(lines);
                    }
                    self.bytes.extend(line.strip_suffix(b"\n").map(|_| b'\n'));
                }
            }
        }
    }

    fn join(&mut self, lines: &[&[u8]]) {
        for (i, line) in lines.iter().enumerate() {
            if i > 0 {
                self.joints.push(self.bytes.len());
            }
            let is_last = i + 1 == lines.len();
            let body = if is_last { None } else { continued(line) };
            self.bytes.extend_from_slice(body.unwrap_or_else(|| line.trim_ascii_end()));
        }
    }

    /// Returns where a line start is now.
    fn offset(&self, at: usize) -> usize {
        let index = self.starts.partition_point(|(before, _)| *before < at).min(self.starts.len() - 1);
        self.starts[index].1
    }

    fn range(&self, range: &Range<usize>) -> Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn lines(&self, lines: &Lines) -> Lines {
        Lines { start: lines.start, count: lines.count, bytes: self.range(&lines.bytes) }
    }

    fn into_text(self, text: &Text) -> Text {
        let run = |run: &Run| Run { first: run.first, bytes: self.range(&run.bytes) };
        let runs = text.runs.iter().map(run).collect();
        let joints = Some(self.joints).filter(|j| !j.is_empty()).map(|j| Box::new(Joints(j)));
        Text { bytes: self.bytes, runs, complete: text.complete, joints, ..Text::default() }
    }
}

/// Returns the first line of a text and those that continue it, up to a bound.
fn continued_lines(text: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    let mut size = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        out.push(line);
        size += line.len();
        if out.len() == JOINED_LINES || size > JOINED_BYTES || continued(line).is_none() {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::diff::{Attribute, Body, code};

    #[test]
    fn a_further_reading_keeps_the_lines() {
        let change = code::added("a.sh".into(), b"one\0\nt\0wo\nx +AD0- 1\nfour".to_vec());
        let readings = change.text().unwrap().further_readings();
        let lines: Vec<_> = readings[0].added().map(|b| (b.first.get(), b.text.to_vec())).collect();
        assert_eq!(lines, [(1, b"one\ntwo\nx = 1\nfour".to_vec())]);
        let plain = code::added("a.sh".into(), b"a + b\nc+d-e\n".to_vec());
        assert!(plain.text().unwrap().further_readings().is_empty());
    }

    /// Returns the lines of the reading with joined lines.
    fn joined(text: &str) -> Option<String> {
        let change = code::added("a.sh".into(), text.as_bytes().to_vec());
        let readings = change.text().unwrap().further_readings();
        let reading = readings.iter().find(|r| r.new.is_joined())?;
        Some(reading.added().map(|b| String::from_utf8_lossy(b.text).into_owned()).collect())
    }

    #[test]
    fn hid_01_continued_lines_are_read_as_one() {
        for (text, expected) in [
            ("x\ncurl a \\\n  | sh\nz\n", "x\ncurl a   | sh\n\nz\n"),
            ("a \\\r\nb \\\r\nc\r\n", "a b c\n\n\n"),
            ("ge\\\nts(b);", "gets(b);\n"),
            ("curl a |\n  sh\n", "curl a |  sh\n\n"),
        ] {
            assert_eq!(joined(text).as_deref(), Some(expected), "{text}");
        }
        for text in ["a \\\\\nb\n", "run: |\n  x\n", "- |\n  x\n", "| a | b |\n| c | d |\n", "a ||\nb\n", "a\nb\n"] {
            assert_eq!(joined(text), None, "{text}");
        }
    }

    #[test]
    fn hid_01_a_continued_line_stands_where_the_change_adds_to_it() {
        let (old, new) = (b"a\ncurl x \\\n  -o y\nz\n".to_vec(), b"a\ncurl x \\\n  | sh\nz\n".to_vec());
        let body = Body::of_file(&"a.sh".into(), Some(old), Some(new), Attribute::Unset);
        let Body::Text(change) = body else { panic!("{body:?}") };
        let readings = change.further_readings();
        let blocks: Vec<_> = readings[0].added().map(|b| (b.first.get(), b.text.to_vec())).collect();
        assert_eq!(blocks, [(3, b"curl x   | sh\n".to_vec())]);
        let text = &readings[0].new;
        let added = readings[0].added().next().unwrap().text;
        assert!(text.spans_joint(added) && !text.spans_joint(&added[8..]) && !text.spans_joint(&added[..7]));
    }
}
