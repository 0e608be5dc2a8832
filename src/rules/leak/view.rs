//! A text in the form that its reader sees: joined string literals are one literal, full-width
//! letters are plain, and zero-width characters and NUL bytes are removed. Positions map back to
//! the text.

use std::ops::Range;

/// Bytes between two joined literals, at most, including comments.
const GAP: usize = 400;
/// Bytes of a line that a view includes on each side of a joint, at most.
const BESIDE: usize = 4096;
/// Lines above and below a joint that a view includes.
const LINES: usize = 4;

/// A text that consists of pieces of another.
#[derive(Debug, Default)]
pub(in crate::rules) struct View {
    pub(in crate::rules) text: Vec<u8>,
    pieces: Vec<ViewPiece>,
}

/// A continuous part of a view.
#[derive(Clone, Copy, Debug)]
struct ViewPiece {
    /// Its start in the view, and in the original.
    start: usize,
    at: usize,
    /// Bytes of the original character that one byte replaces. 0: the piece is unchanged.
    folded: usize,
}

impl View {
    fn push(&mut self, piece: &[u8], at: usize) {
        self.pieces.push(ViewPiece {
            start: self.text.len(),
            at,
            folded: 0,
        });
        self.text.extend_from_slice(piece);
    }

    fn push_folded(&mut self, plain: u8, at: usize, folded: usize) {
        self.pieces.push(ViewPiece {
            start: self.text.len(),
            at,
            folded,
        });
        self.text.push(plain);
    }

    /// Returns the parts of the original from which a range of this text was made, in order.
    pub(in crate::rules) fn back(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        let mut out: Vec<Range<usize>> = Vec::new();
        let first = self
            .pieces
            .partition_point(|p| p.start <= range.start)
            .saturating_sub(1);
        for (i, piece) in self.pieces.iter().enumerate().skip(first) {
            if piece.start >= range.end {
                break;
            }
            let end = self
                .pieces
                .get(i + 1)
                .map_or(self.text.len(), |next| next.start);
            let (from, to) = (range.start.max(piece.start), range.end.min(end));
            if from < to && piece.folded > 0 {
                out.push(piece.at..piece.at + piece.folded);
            } else if from < to {
                out.push(piece.at + from - piece.start..piece.at + to - piece.start);
            }
        }
        out
    }
}

/// Returns a text with full-width and mathematical letters as plain ones and without zero-width
/// characters. `None`: it has none. A piece of the view is a replaced character, or an unchanged
/// part.
pub(super) fn folded(text: &[u8]) -> Option<View> {
    let mut view = View::default();
    let (mut kept, mut at, mut any) = (0, 0, false);
    while let Some(i) = text[at..].iter().position(|b| *b == 0 || *b >= 0xc2) {
        at += i;
        let Some((c, length)) = char_at(&text[at..]) else {
            at += 1;
            continue;
        };
        match fold(c) {
            Fold::Same => {}
            folded => {
                any |= folded != Fold::Sign(0);
                view.push(&text[kept..at], kept);
                if let Fold::Letter(plain) | Fold::Sign(plain) = folded {
                    view.push_folded(plain, at, length);
                }
                kept = at + length;
            }
        }
        at += length;
    }
    if kept == 0 || !any {
        return None;
    }
    view.push(&text[kept..], kept);
    Some(view)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Same,
    Gone,
    Letter(u8),
    Sign(u8),
}

/// Returns the letter at an index in an alphabet of both cases, the upper case first.
fn letter_at(i: u32) -> Fold {
    let i = i as u8;
    Fold::Letter(if i < 26 { b'A' + i } else { b'a' + i - 26 })
}

fn fold(c: char) -> Fold {
    let n = u32::from(c);
    match n {
        0xff01..=0xff5e => {
            let plain = (n - 0xff01) as u8 + b'!';
            if plain.is_ascii_alphanumeric() {
                Fold::Letter(plain)
            } else {
                Fold::Sign(plain)
            }
        }
        // Mathematical letters are thirteen alphabets of both cases, then five sets of digits.
        0x1d400..=0x1d6a3 => letter_at((n - 0x1d400) % 52),
        0x1d7ce..=0x1d7ff => Fold::Letter(b'0' + ((n - 0x1d7ce) % 10) as u8),
        0x24b6..=0x24e9 => letter_at(n - 0x24b6),
        0
        | 0x00ad
        | 0x034f
        | 0x061c
        | 0x180e
        | 0x200b..=0x200f
        | 0x202a..=0x202e
        | 0x2060..=0x206f => Fold::Gone,
        0xfe00..=0xfe0f | 0xfeff | 0xe0000..=0xe01ef => Fold::Gone,
        _ => Fold::Same,
    }
}

fn char_at(text: &[u8]) -> Option<(char, usize)> {
    let length = match text.first()? {
        0 => 1,
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let c = std::str::from_utf8(text.get(..length)?)
        .ok()?
        .chars()
        .next()?;
    Some((c, length))
}

/// The kind of connection between two literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    /// An operator, nothing, or a line continuation.
    Joined,
    /// A comma, so they may be items of a list.
    Listed,
}

/// Returns the parts of a text with joined literals, each as one text. `lists`: items of a list
/// count as joined. `None`: the text has no joined literals.
pub(in crate::rules) fn joined(text: &[u8], lists: bool) -> Option<View> {
    let joints = joints(text, lists);
    let first = joints.first()?;
    let mut view = View::default();
    let mut at = above(text, first.start);
    let mut last = first.start;
    for joint in &joints {
        // Only the ends of a row of literals have context, so a long row takes linear time.
        if joint.start > literal_end(text, last) {
            let (end, start) = (below(text, last), above(text, joint.start));
            if start > end && end > at {
                view.push(&text[at..end], at);
                view.push(b"\n\n\n\n\n\n\n\n", end);
                at = start;
            }
        }
        view.push(&text[at..joint.start], at);
        at = joint.end;
        last = joint.end;
    }
    view.push(&text[at..below(text, last).max(at)], at);
    Some(view)
}

/// Returns the end of the literal that contains an offset, or the end of the search range.
fn literal_end(text: &[u8], at: usize) -> usize {
    let most = text.len().min(at + 2 * BESIDE);
    memchr::memchr3(b'"', b'\'', b'`', &text[at..most]).map_or(most, |i| at + i + 1)
}

/// Returns the end of the context of an offset: some lines after the end of its literal.
fn below(text: &[u8], at: usize) -> usize {
    let literal = literal_end(text, at);
    let most = text.len().min(literal + BESIDE);
    let mut ends = memchr::memchr_iter(b'\n', &text[literal..most]);
    ends.nth(LINES - 1).map_or(most, |i| literal + i + 1)
}

fn above(text: &[u8], at: usize) -> usize {
    let most = at.saturating_sub(BESIDE);
    let mut ends = memchr::memrchr_iter(b'\n', &text[most..at]);
    ends.nth(LINES - 1).map_or(most, |i| most + i + 1)
}

/// Returns the ranges between joined literals, from the quote that ends one to the quote that opens
/// the next.
fn joints(text: &[u8], lists: bool) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut listed = false;
    let mut from = 0;
    while let Some(i) = memchr::memchr3(b'"', b'\'', b'`', &text[from..]) {
        let quote = from + i;
        from = quote + 1;
        if let Some((end, joint)) = joint(&text[..text.len().min(from + GAP)], from)
            && (lists || joint == Joint::Joined)
        {
            listed |= joint == Joint::Listed;
            out.push(quote..end);
            from = end;
        }
    }
    // A line of a shell script that continues.
    if !lists {
        let before = out.len();
        out.extend(continued(text));
        if out.len() > before && before > 0 {
            out.sort_unstable_by_key(|r| r.start);
            out.dedup_by(|next, last| next.start < last.end);
        }
    } else if !listed {
        out.clear();
    }
    out
}

/// Returns words that a backslash at the end of a line splits, for any kind of line end.
fn continued(text: &[u8]) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    for newline in memchr::memchr_iter(b'\n', text) {
        let at = newline - usize::from(text[..newline].ends_with(b"\r"));
        let Some(at) = at.checked_sub(1).filter(|at| text[*at] == b'\\') else {
            continue;
        };
        let rest = &text[newline + 1..];
        let end = newline
            + 1
            + rest
                .iter()
                .take_while(|b| matches!(b, b' ' | b'\t'))
                .count();
        if at > 0
            && text[at - 1].is_ascii_graphic()
            && text.get(end).is_some_and(u8::is_ascii_graphic)
        {
            out.push(at..end);
        }
    }
    out
}

/// Reads from the byte after a quote to the quote that opens the next literal. Returns the offset
/// after that quote.
fn joint(text: &[u8], from: usize) -> Option<(usize, Joint)> {
    let mut at = from;
    let mut joint = Joint::Joined;
    let mut line_ended = false;
    loop {
        let rest = &text[at..];
        match *rest.first()? {
            b'"' | b'\'' | b'`' => return Some((at + 1, joint)),
            b'\n' | b';' => {
                line_ended = true;
                at += 1;
            }
            b' ' | b'\t' | b'\r' | b'\\' | b')' | b']' | b'(' | b'[' => at += 1,
            b',' => {
                joint = Joint::Listed;
                at += 1;
            }
            b'/' if rest.starts_with(b"//") && line_ended_by(rest).is_some() => {
                at += line_ended_by(rest)?;
            }
            b'/' if rest.starts_with(b"/*") => at += memchr::memmem::find(rest, b"*/")? + 2,
            b'#' => at += line_ended_by(rest)?,
            b'+' | b'.' | b'<' | b'>' | b'&' | b'|' | b'~' | b'^' | b'*' | b'_' | b'@' | b'%'
            | b'$' | b'/' => at += 1,
            b if b.is_ascii_alphabetic() => at = behind_name(text, at, line_ended)?,
            _ => return None,
        }
    }
}

fn is_quote(b: u8) -> bool {
    matches!(b, b'"' | b'\'' | b'`')
}

/// Returns the length of a line comment, if it has no quote.
fn line_ended_by(rest: &[u8]) -> Option<usize> {
    let end = memchr::memchr(b'\n', rest)?;
    memchr::memchr3(b'"', b'\'', b'`', &rest[..end])
        .is_none()
        .then_some(end)
}

/// Reads a name between two literals: the prefix of the second (`b"…"`), a call (`.append(`), or
/// the variable that the next statement adds to (`key += "…"`).
fn behind_name(text: &[u8], at: usize, line_ended: bool) -> Option<usize> {
    let near = text[at..].iter().take(48);
    let end = at
        + near
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(**b, b'_' | b'.' | b'$'))
            .count();
    let blanks = text[end..]
        .iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let next = &text[end + blanks..];
    const PREFIXES: &[&[u8]] = &[
        b"b", b"B", b"r", b"R", b"u", b"U", b"f", b"F", b"L", b"N", b"n", b"s", b"c", b"br", b"rb",
        b"Rb", b"fr", b"rf", b"u8", b"q",
    ];
    // Text directly after a quote is content of the literal.
    let is_prefix = at > 0 && !is_quote(text[at - 1]) && PREFIXES.contains(&&text[at..end]);
    if blanks == 0 && is_prefix && next.first().is_some_and(|b| is_quote(*b)) {
        return Some(end);
    }
    if at > 0 && text[at - 1] == b'.' && next.first() == Some(&b'(') {
        return Some(end + blanks + 1);
    }
    const ADDS: &[&[u8]] = &[b"+=", b".=", b"<<", b"..=", b"||=", b"&=", b"~=", b"^="];
    let adds = ADDS
        .iter()
        .find(|op| next.starts_with(op))
        .filter(|_| line_ended)?;
    Some(end + blanks + adds.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, lists: bool) -> String {
        let view = joined(text.as_bytes(), lists);
        view.map_or_else(String::new, |v| String::from_utf8(v.text).unwrap())
    }

    #[test]
    fn lek_02_joined_literals_are_one() {
        for text in [
            "k = \"AB\" + \"CD\"",
            "k = 'AB' . 'CD'",
            "k = \"AB\" .. \"CD\"",
            "k = \"AB\" <> \"CD\"",
            "k = \"AB\" & \"CD\"",
            "k = (\"AB\"\n    \"CD\")",
            "k = \"AB\" +\n  // more\n  \"CD\"",
            "k = \"AB\" \\\n \"CD\"",
            "k = \"AB\" & _\n \"CD\"",
            "k = 'AB' || 'CD'",
            "k = \"AB\" ++ \"CD\"",
            "k = f\"AB\" f\"CD\"",
            "k = \"AB\"\nk += \"CD\"",
            "k = new B(\"AB\").append(\"CD\")",
            "k = \"AB\";\nk .= 'CD'",
            "k=AB\\\nCD",
            "k=AB\\\r\n  CD",
            "k=!ABCD\\\r\n#",
            "k='AB'\"CD\"",
            "k = \"AB\"/* x */+\"CD\"",
        ] {
            assert!(
                seen(text, false).contains("ABCD"),
                "{text} {}",
                seen(text, false)
            );
        }
        assert!(seen("k=9$!\\\n#zL", false).contains("9$!#zL"));
        for text in [
            "[\"AB\", \"CD\"].join(\"\")",
            "concat!(\"AB\", \"CD\")",
            "paste0('AB','CD')",
        ] {
            assert!(seen(text, true).contains("ABCD"), "{text}");
            assert!(!seen(text, false).contains("ABCD"), "{text}");
        }
        for text in [
            "{\"AB\": \"CD\"}",
            "x = \"AB\"; y = \"CD\"",
            "a = \"AB\"\nb = \"CD\"",
            "\"AB\" == \"CD\"",
        ] {
            assert!(!seen(text, true).contains("ABCD"), "{text}");
        }
    }

    #[test]
    fn lek_02_plain_letters_stand_for_wide_and_hidden_ones() {
        let view = folded("x ＡＫ\u{200b}𝐈\u{ad}Ａ y".as_bytes()).unwrap();
        assert_eq!(view.text, b"x AKIA y");
        let back = view.back(&(2..6));
        assert_eq!((back[0].start, back.last().unwrap().end), (2, 20));
        assert_eq!(folded(b"A\0K\0I\0A\0").unwrap().text, b"AKIA");
        assert!(folded("日本語、です。é".as_bytes()).is_none());
    }
}
