//! Further readings of a text: the text as programs see it that decode the same bytes differently.
//!
//! Shells and compilers drop NUL bytes, so they read `sys\0tem` as `system`. UTF-7 encodes any
//! character in letters and digits. A file can be UTF-16 in one part and ASCII in another. In
//! shells, C and Python, a backslash at the end of a line continues it. The rules read the text as
//! it is, and then each further reading.

use super::{Encoding, Hunk, LineNo, LineRange, Text, TextChange, TextRun, utf7};
use std::borrow::Cow;
use std::ops::Range;

/// Lines and bytes of a joined line, at most.
const JOINED_LINES: usize = 10_000;
const JOINED_BYTES: usize = 1 << 20;

/// The original lines of joined lines, in order.
#[derive(Clone, Debug)]
pub(in crate::diff) struct Joints(Vec<Segment>);

/// An original line within a joined one.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Byte offset in the joined text.
    start: usize,
    /// 1-based number of the original line.
    number: u32,
    /// The change adds the line.
    is_added: bool,
}

impl TextChange {
    /// Returns the change as other programs may read it. Lines keep their numbers, except where the
    /// bytes of a wide encoding are read as lines.
    pub fn further_readings(&self) -> Vec<Cow<'_, Self>> {
        let own = [self.decoded(), self.joined()]
            .into_iter()
            .flatten()
            .map(Cow::Owned);
        let stored = self.readings.iter().flat_map(|reading| {
            std::iter::once(Cow::Borrowed(reading)).chain(reading.further_readings())
        });
        own.chain(stored).collect()
    }

    /// Returns the change without NUL bytes and with UTF-7 decoded; `None` if nothing changes.
    fn decoded(&self) -> Option<Self> {
        self.added()
            .any(|block| memchr::memchr(0, block.text).is_some() || utf7::is_used(block.text))
            .then(|| {
                self.with(
                    Moved::of(&self.old, decode_line),
                    Moved::of(&self.new, decode_line),
                )
            })
    }

    /// Returns the change with joined lines on the new side, where a backslash or a pipe continues
    /// a line. A joined line replaces its first added line; its other lines become empty. `None` if
    /// no added line is part of one.
    fn joined(&self) -> Option<Self> {
        let edits = self.hunks.iter().flat_map(|h| &h.edits);
        let added: Vec<Range<usize>> = edits
            .map(|e| e.new.bytes.clone())
            .filter(|r| !r.is_empty())
            .collect();
        if self.new.is_joined() || !added.iter().any(|r| may_continue(&self.new.bytes, r)) {
            return None;
        }
        let new = Moved::joining(&self.new, &added);
        (!new.joints.is_empty()).then(|| self.with(Moved::of(&self.old, <[u8]>::to_vec), new))
    }

    /// Returns the change with other text and the same number of lines.
    fn with(&self, old: Moved, new: Moved) -> Self {
        let hunks = self.hunks.iter().map(|h| Hunk {
            old: old.lines(&h.old),
            new: new.lines(&h.new),
            edits: h
                .edits
                .iter()
                .map(|e| super::LineEdit {
                    old: old.lines(&e.old),
                    new: new.lines(&e.new),
                })
                .collect(),
            section: h.section.clone(),
        });
        Self {
            hunks: hunks.collect(),
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
    /// Returns true for a reading with joined lines.
    pub fn is_joined(&self) -> bool {
        self.joints.is_some()
    }

    /// Returns the original lines that a slice of a joined line covers: from the first added one to
    /// the last. `None` if the slice covers a single line, or no added one.
    pub fn joined_lines(&self, part: &[u8]) -> Option<(LineNo, LineNo)> {
        let covered = self.covered(part)?;
        let first = covered
            .iter()
            .find(|s| s.is_added)
            .filter(|_| covered.len() > 1)?;
        Some((
            LineNo::new(first.number)?,
            LineNo::new(covered.last()?.number)?,
        ))
    }

    /// Returns the number of the original line at the start of a slice of a joined line.
    pub fn original_line(&self, part: &[u8]) -> Option<LineNo> {
        LineNo::new(self.covered(part)?.first()?.number)
    }

    fn covered(&self, part: &[u8]) -> Option<&[Segment]> {
        let (range, Joints(segments)) = (self.range_of(part)?, self.joints.as_deref()?);
        let first = segments
            .partition_point(|s| s.start <= range.start)
            .saturating_sub(1);
        let end = segments.partition_point(|s| s.start < range.end);
        segments.get(first..end)
    }
}

/// How a line continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Continued {
    Backslash,
    Pipe,
}

/// A line, and the part of it that goes into the joined line.
#[derive(Clone, Copy, Debug)]
struct JoinedPiece<'a> {
    line: &'a [u8],
    text: &'a [u8],
}

/// Returns the further readings of whole lines that a file adds; see
/// [`TextChange::further_readings`]. Usually there are none, which is known without a copy.
pub fn readings_of(lines: &[u8]) -> Vec<Vec<u8>> {
    let is_other = memchr::memchr(0, lines).is_some()
        || utf7::is_used(lines)
        || may_continue(lines, &(0..lines.len()));
    if !is_other {
        return Vec::new();
    }
    let new = Text::of_file(lines.to_vec());
    let change = TextChange::between(Text::default(), new, Encoding::Bytes, None);
    let readings = change.further_readings();
    readings.iter().map(|r| r.new.bytes.clone()).collect()
}

/// Returns false if no line in a range of a text, and not the line before it, continues in the next
/// one. A quick check.
fn may_continue(text: &[u8], range: &Range<usize>) -> bool {
    let from = range.start.saturating_sub(1);
    let above = memchr::memrchr(b'\n', &text[..from]).map_or(0, |i| i + 1);
    let part = &text[above..range.end];
    memchr::memchr_iter(b'\n', part).any(|end| {
        let last = part[..end]
            .iter()
            .rev()
            .find(|b| !matches!(b, b' ' | b'\t' | b'\r'));
        matches!(last, Some(b'\\' | b'|' | b'&'))
    }) || memchr::memmem::find(part, b"| #").is_some()
}

/// Returns the part of a line that goes into the joined one, and how the line continues; `None` if
/// it ends.
fn continued(line: &[u8]) -> Option<(&[u8], Continued)> {
    let body = line.strip_suffix(b"\n")?.trim_ascii_end();
    if is_comment(body) {
        return None;
    }
    let code = without_comment(body);
    let backslashes = body.iter().rev().take_while(|b| **b == b'\\').count();
    if backslashes % 2 == 1 {
        return (code.len() == body.len()).then(|| (&body[..body.len() - 1], Continued::Backslash));
    }
    let code = code.trim_ascii_end();
    let before = code
        .strip_suffix(b"|&")
        .or_else(|| code.strip_suffix(b"|"))?
        .trim_ascii();
    // A block of YAML (`run: |`, `- |`) and a row of a table do not continue.
    let is_list = before.iter().all(|b| matches!(b, b'-' | b' '));
    let is_pipe = !is_list
        && !before.starts_with(b"|")
        && !matches!(before.last(), Some(b':' | b'|' | b'\\'));
    is_pipe.then_some((code, Continued::Pipe))
}

/// Returns true for a comment line in shells, Python, YAML and Dockerfiles. Directives of the C
/// preprocessor start with the same character.
fn is_comment(line: &[u8]) -> bool {
    const DIRECTIVES: &[&[u8]] = &[
        b"define", b"if", b"elif", b"else", b"include", b"pragma", b"error", b"warning",
    ];
    let Some(rest) = line.trim_ascii_start().strip_prefix(b"#") else {
        return false;
    };
    !DIRECTIVES
        .iter()
        .any(|d| rest.trim_ascii_start().starts_with(d))
}

/// Returns a line up to ` #`. In a line with a quote, `#` may be part of a string.
fn without_comment(line: &[u8]) -> &[u8] {
    if memchr::memchr3(b'"', b'\'', b'`', line).is_some() {
        return line;
    }
    let start = line.windows(2).position(|w| matches!(w, b" #" | b"\t#"));
    start.map_or(line, |i| &line[..i])
}

/// Removes NUL bytes and decodes UTF-7 in a line.
fn decode_line(line: &[u8]) -> Vec<u8> {
    let mut line = line.to_vec();
    line.retain(|b| *b != 0);
    utf7::decode(&line).unwrap_or(line)
}

/// A text with replaced lines, and the mapping of line starts.
struct Moved {
    bytes: Vec<u8>,
    /// Pairs of old and new offsets of line starts, in order; the last pair is the end.
    starts: Vec<(usize, usize)>,
    /// The original lines of joined lines.
    joints: Vec<Segment>,
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
        Self {
            bytes,
            starts,
            joints: Vec::new(),
        }
    }

    /// Joins continued lines if one of them is in `added`: byte ranges of the text, in order.
    fn joining(text: &Text, added: &[Range<usize>]) -> Self {
        let mut moved = Self {
            bytes: Vec::with_capacity(text.bytes.len()),
            starts: Vec::new(),
            joints: Vec::new(),
        };
        for run in &text.runs {
            let (mut at, mut number) = (run.bytes.start, run.first);
            while at < run.bytes.end {
                let pieces = continued_lines(&text.bytes[at..run.bytes.end]);
                moved.push_joined(&pieces, (at, number), added);
                at += pieces.iter().map(|p| p.line.len()).sum::<usize>();
                number = number.saturating_add(pieces.len() as u32);
            }
        }
        moved.starts.push((text.bytes.len(), moved.bytes.len()));
        moved
    }

    /// Adds continued lines as one joined line. The first of them starts at byte `start` of the
    /// original and has `number`.
    fn push_joined(
        &mut self,
        pieces: &[JoinedPiece<'_>],
        (start, number): (usize, u32),
        added: &[Range<usize>],
    ) {
        let mut at = start;
        let mut lines: Vec<(usize, bool)> = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let range = added.get(added.partition_point(|r| r.end <= at));
            lines.push((at, range.is_some_and(|r| r.start <= at)));
            at += piece.line.len();
        }
        let host = lines
            .iter()
            .position(|(_, is_added)| *is_added)
            .filter(|_| pieces.len() > 1);
        for (i, piece) in pieces.iter().enumerate() {
            self.starts.push((lines[i].0, self.bytes.len()));
            let Some(host) = host else {
                self.bytes.extend_from_slice(piece.line);
                continue;
            };
            if i == host {
                for ((piece, (_, is_added)), number) in pieces.iter().zip(&lines).zip(number..) {
                    self.joints.push(Segment {
                        start: self.bytes.len(),
                        number,
                        is_added: *is_added,
                    });
                    self.bytes.extend_from_slice(piece.text);
                }
            }
            self.bytes
                .extend(piece.line.strip_suffix(b"\n").map(|_| b'\n'));
        }
    }

    /// Returns the new offset of a line start.
    fn offset(&self, at: usize) -> usize {
        let index = self
            .starts
            .partition_point(|(before, _)| *before < at)
            .min(self.starts.len() - 1);
        self.starts[index].1
    }

    fn range(&self, range: &Range<usize>) -> Range<usize> {
        self.offset(range.start)..self.offset(range.end)
    }

    fn lines(&self, lines: &LineRange) -> LineRange {
        LineRange {
            start: lines.start,
            count: lines.count,
            bytes: self.range(&lines.bytes),
        }
    }

    fn into_text(self, text: &Text) -> Text {
        let runs = text
            .runs
            .iter()
            .map(|run| TextRun {
                first: run.first,
                bytes: self.range(&run.bytes),
            })
            .collect();
        let joints = Some(self.joints)
            .filter(|j| !j.is_empty())
            .map(|j| Box::new(Joints(j)));
        Text {
            bytes: self.bytes,
            runs,
            complete: text.complete,
            joints,
            ..Text::default()
        }
    }
}

/// Returns the first line of a text and the lines that continue it, within the bound. Skips
/// comments between them, and empty lines after a pipe, as shells and Docker do.
fn continued_lines(text: &[u8]) -> Vec<JoinedPiece<'_>> {
    let mut out: Vec<JoinedPiece<'_>> = Vec::new();
    let mut end = None;
    let mut size = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        size += line.len();
        let bare = line.trim_ascii();
        let is_skipped = match end {
            None => false,
            Some(Continued::Backslash) => is_comment(bare),
            Some(Continued::Pipe) => bare.is_empty() || is_comment(bare),
        };
        let next = continued(line);
        let text = match next {
            _ if is_skipped => &[],
            Some((text, _)) => text,
            None => line.trim_ascii_end(),
        };
        out.push(JoinedPiece { line, text });
        if !is_skipped {
            end = next.map(|(_, end)| end);
        }
        if end.is_none() || out.len() == JOINED_LINES || size > JOINED_BYTES {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::diff::{Attribute, Body, LineNo, code};

    #[test]
    fn a_further_reading_keeps_the_lines() {
        let change = code::added("a.sh".into(), b"one\0\nt\0wo\nx +AD0- 1\nfour".to_vec());
        let readings = change.text().unwrap().further_readings();
        let lines: Vec<_> = readings[0]
            .added()
            .map(|b| (b.first.get(), b.text.to_vec()))
            .collect();
        assert_eq!(lines, [(1, b"one\ntwo\nx = 1\nfour".to_vec())]);
        let plain = code::added("a.sh".into(), b"a + b\nc+d-e\n".to_vec());
        assert!(plain.text().unwrap().further_readings().is_empty());
    }

    /// Returns the lines of the reading with joined lines.
    fn joined(text: &str) -> Option<String> {
        let change = code::added("a.sh".into(), text.as_bytes().to_vec());
        let readings = change.text().unwrap().further_readings();
        let reading = readings.iter().find(|r| r.new.is_joined())?;
        Some(
            reading
                .added()
                .map(|b| String::from_utf8_lossy(b.text).into_owned())
                .collect(),
        )
    }

    #[test]
    fn hid_01_continued_lines_are_read_as_one() {
        for (text, expected) in [
            ("x\ncurl a \\\n  | sh\nz\n", "x\ncurl a   | sh\n\nz\n"),
            ("a \\\r\nb \\\r\nc\r\n", "a b c\n\n\n"),
            ("ge\\\nts(b);", "gets(b);\n"),
            ("curl a |\n  sh\n", "curl a |  sh\n\n"),
            ("wget -O - | \n\n# c\n  sh\n", "wget -O - |  sh\n\n\n\n"),
            ("curl a | # go\nsh\n", "curl a |sh\n\n"),
            ("# x \\\ncurl a \\\n | sh\n", "# x \\\ncurl a  | sh\n\n"),
            ("RUN a \\\n# c\n && b\n", "RUN a  && b\n\n\n"),
            ("#define A \\\n gets(x)\n", "#define A  gets(x)\n\n"),
        ] {
            assert_eq!(joined(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "a \\\\\nb\n",
            "# a \\\nb\n",
            "true # \\\nb\n",
            "run: |\n  x\n",
            "- |\n  x\n",
            "| a | b |\n| c | d |\n",
            "a ||\nb\n",
            "a\nb\n",
        ] {
            assert_eq!(joined(text), None, "{text}");
        }
    }

    #[test]
    fn hid_01_a_continued_line_stands_where_the_change_adds_to_it() {
        let (old, new) = (
            b"a\ncurl x \\\n  -o y\nz\n".to_vec(),
            b"a\ncurl x \\\n  | sh\nz\n".to_vec(),
        );
        let body = Body::of_file(&"a.sh".into(), Some(old), Some(new), Attribute::Unset);
        let Body::Text(change) = body else {
            panic!("{body:?}")
        };
        let readings = change.further_readings();
        let blocks: Vec<_> = readings[0]
            .added()
            .map(|b| (b.first.get(), b.text.to_vec()))
            .collect();
        assert_eq!(blocks, [(3, b"curl x   | sh\n".to_vec())]);
        let text = &readings[0].new;
        let added = readings[0].added().next().unwrap().text;
        assert_eq!(
            text.joined_lines(added)
                .map(|(first, last)| (first.get(), last.get())),
            Some((3, 3))
        );
        assert_eq!(
            (
                text.joined_lines(&added[8..]),
                text.joined_lines(&added[..7])
            ),
            (None, None)
        );
        assert_eq!(text.original_line(&added[..4]).map(LineNo::get), Some(2));
    }
}
