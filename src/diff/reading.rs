//! Further readings of a text: what a program sees that decodes the same bytes in another way.
//!
//! Shells and compilers drop NUL bytes, so `sys\0tem` is `system` to them. UTF-7 writes any character in letters
//! and digits. A file can be UTF-16 in one part and ASCII in another. The rules read the text as it is, and then
//! each further reading.

use super::{Hunk, Lines, Run, Text, TextChange, utf7};
use std::borrow::Cow;

impl TextChange {
    /// Returns the change as other programs may read it; lines keep their numbers, except where the bytes of a
    /// wide encoding were taken for lines.
    pub fn further_readings(&self) -> Vec<Cow<'_, Self>> {
        let own = self.decoded().map(Cow::Owned).into_iter();
        let stored = self
            .readings
            .iter()
            .flat_map(|reading| std::iter::once(Cow::Borrowed(reading)).chain(reading.further_readings()));
        own.chain(stored).collect()
    }

    /// Returns the change without NUL bytes and with UTF-7 decoded; `None` where that adds nothing.
    fn decoded(&self) -> Option<Self> {
        let changes = |text: &[u8]| memchr::memchr(0, text).is_some() || utf7::is_used(text);
        self.added().any(|block| changes(block.text)).then(|| self.with_lines(decode_line))
    }

    /// Returns the change with every line replaced. `decode` gets and returns a line without its line end.
    fn with_lines(&self, decode: fn(&[u8]) -> Vec<u8>) -> Self {
        let (old, new) = (Moved::of(&self.old, decode), Moved::of(&self.new, decode));
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
        Self { bytes, starts }
    }

    /// Returns where a line start is now.
    fn offset(&self, at: usize) -> usize {
        let index = self.starts.partition_point(|(before, _)| *before < at).min(self.starts.len() - 1);
        self.starts[index].1
    }

    fn range(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn lines(&self, lines: &Lines) -> Lines {
        Lines { start: lines.start, count: lines.count, bytes: self.range(&lines.bytes) }
    }

    fn into_text(self, text: &Text) -> Text {
        let run = |run: &Run| Run { first: run.first, bytes: self.range(&run.bytes) };
        let runs = text.runs.iter().map(run).collect();
        Text { bytes: self.bytes, runs, complete: text.complete, ..Text::default() }
    }
}

#[cfg(test)]
mod tests {
    use crate::diff::code;

    #[test]
    fn a_further_reading_keeps_the_lines() {
        let change = code::added("a.sh".into(), b"one\0\nt\0wo\nx +AD0- 1\nfour".to_vec());
        let readings = change.text().unwrap().further_readings();
        let lines: Vec<_> = readings[0].added().map(|b| (b.first.get(), b.text.to_vec())).collect();
        assert_eq!(lines, [(1, b"one\ntwo\nx = 1\nfour".to_vec())]);
        let plain = code::added("a.sh".into(), b"a + b\nc+d-e\n".to_vec());
        assert!(plain.text().unwrap().further_readings().is_empty());
    }
}
