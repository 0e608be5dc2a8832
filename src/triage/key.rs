//! Keys from the bytes of a terminal: the sequences of xterm and its descendants, and bracketed
//! paste.
//!
//! Unknown sequences are discarded completely, so that no part of one acts as a key. Source: "XTerm
//! Control Sequences" (invisible-island.net/xterm/ctlseqs), PC-style function keys.

/// Bytes of a paste that are kept, at most.
const MOST_PASTED: usize = 64 << 10;
/// Bytes of a sequence, at most; a longer one is discarded.
const MOST_SEQUENCE: usize = 64;
const PASTE_END: &[u8] = b"\x1b[201~";
const ESCAPE: u8 = 0x1b;

/// A key that the user pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPress {
    Char(char),
    /// A lower-case letter with Ctrl.
    Ctrl(char),
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
}

/// Input from a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    Key(KeyPress),
    /// Pasted text.
    Paste(String),
}

/// Decodes bytes into keys. A sequence may arrive in several reads.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Text of an unfinished paste.
    paste: Option<Vec<u8>>,
}

/// The result of decoding the start of the bytes.
enum DecodeStep {
    /// A key of this number of bytes; `None` for an unknown sequence.
    Key(Option<KeyPress>, usize),
    /// A paste starts after this number of bytes.
    Paste(usize),
    /// More bytes are needed.
    Wait,
}

impl Decoder {
    /// Decodes bytes, and returns the complete keys.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Typed> {
        self.bytes.extend_from_slice(bytes);
        let mut out = Vec::new();
        loop {
            if self.paste.is_some() {
                match self.pasted() {
                    Some(text) => out.push(Typed::Paste(text)),
                    None => return out,
                }
            }
            match step(&self.bytes) {
                DecodeStep::Key(key, length) => {
                    self.bytes.drain(..length);
                    out.extend(key.map(Typed::Key));
                }
                DecodeStep::Paste(length) => {
                    self.bytes.drain(..length);
                    self.paste = Some(Vec::new());
                }
                DecodeStep::Wait => return out,
            }
        }
    }

    /// Returns true if an Escape may be a key or the start of a sequence.
    pub fn is_waiting(&self) -> bool {
        self.paste.is_none() && !self.bytes.is_empty()
    }

    /// Ends a wait: a lone Escape is a key, and an incomplete sequence is dropped.
    pub fn end(&mut self) -> Option<Typed> {
        let is_escape = self.bytes == [ESCAPE];
        self.bytes.clear();
        is_escape.then_some(Typed::Key(KeyPress::Esc))
    }

    /// Moves bytes to the paste, and returns its text if it has ended.
    fn pasted(&mut self) -> Option<String> {
        let paste = self.paste.as_mut()?;
        let end = memchr::memmem::find(&self.bytes, PASTE_END);
        // The end marker may be split between two reads.
        let most = end.unwrap_or(self.bytes.len().saturating_sub(PASTE_END.len() - 1));
        let room = MOST_PASTED.saturating_sub(paste.len()).min(most);
        paste.extend_from_slice(&self.bytes[..room]);
        self.bytes.drain(..most);
        end?;
        self.bytes.drain(..PASTE_END.len());
        self.paste
            .take()
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Decodes the first key of the bytes.
fn step(bytes: &[u8]) -> DecodeStep {
    match bytes {
        [] => DecodeStep::Wait,
        [ESCAPE, rest @ ..] => escape(rest),
        [b'\r' | b'\n', ..] => DecodeStep::Key(Some(KeyPress::Enter), 1),
        [b'\t', ..] => DecodeStep::Key(Some(KeyPress::Tab), 1),
        [0x7f | 0x08, ..] => DecodeStep::Key(Some(KeyPress::Backspace), 1),
        [b @ 1..=26, ..] => DecodeStep::Key(Some(KeyPress::Ctrl(char::from(b'a' + b - 1))), 1),
        [0..=0x1f, ..] => DecodeStep::Key(None, 1),
        [b @ b' '..=b'~', ..] => DecodeStep::Key(Some(KeyPress::Char(char::from(*b))), 1),
        [first, ..] => character(*first, bytes),
    }
}

/// Decodes a character of several bytes.
fn character(first: u8, bytes: &[u8]) -> DecodeStep {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return DecodeStep::Key(None, 1),
    };
    match bytes.get(..length).map(std::str::from_utf8) {
        Some(Ok(text)) => DecodeStep::Key(text.chars().next().map(KeyPress::Char), length),
        Some(Err(_)) => DecodeStep::Key(None, 1),
        None if bytes[1..].iter().all(|b| (0x80..0xc0).contains(b)) => DecodeStep::Wait,
        None => DecodeStep::Key(None, 1),
    }
}

/// Decodes the bytes after an Escape.
fn escape(rest: &[u8]) -> DecodeStep {
    match rest {
        [] => DecodeStep::Wait,
        [b'[', rest @ ..] => control(rest),
        [b'O', key, ..] => DecodeStep::Key(letter(*key), 3),
        [b'O'] => DecodeStep::Wait,
        // For two Escapes, or one before a sequence, the first is the key.
        [ESCAPE, ..] => DecodeStep::Key(Some(KeyPress::Esc), 1),
        // Combinations with Alt are not used.
        _ => DecodeStep::Key(None, 2),
    }
}

/// Decodes a control sequence: parameters, then a final byte.
fn control(rest: &[u8]) -> DecodeStep {
    let Some(end) = rest.iter().position(|b| (0x40..=0x7e).contains(b)) else {
        return if rest.len() > MOST_SEQUENCE {
            DecodeStep::Key(None, rest.len() + 2)
        } else {
            DecodeStep::Wait
        };
    };
    let length = end + 3;
    let first = rest[..end].split(|b| *b == b';').next().unwrap_or_default();
    match (rest[end], first) {
        (b'~', b"200") => DecodeStep::Paste(length),
        (b'~', b"1" | b"7") => DecodeStep::Key(Some(KeyPress::Home), length),
        (b'~', b"3") => DecodeStep::Key(Some(KeyPress::Delete), length),
        (b'~', b"4" | b"8") => DecodeStep::Key(Some(KeyPress::End), length),
        (b'~', b"5") => DecodeStep::Key(Some(KeyPress::PageUp), length),
        (b'~', b"6") => DecodeStep::Key(Some(KeyPress::PageDown), length),
        (b'~', _) => DecodeStep::Key(None, length),
        (last, _) => DecodeStep::Key(letter(last), length),
    }
}

/// Returns the key of an escape sequence by its last byte.
fn letter(last: u8) -> Option<KeyPress> {
    Some(match last {
        b'A' => KeyPress::Up,
        b'B' => KeyPress::Down,
        b'C' => KeyPress::Right,
        b'D' => KeyPress::Left,
        b'F' => KeyPress::End,
        b'H' => KeyPress::Home,
        b'Z' => KeyPress::BackTab,
        b'M' => KeyPress::Enter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<Typed> {
        Decoder::default().take(bytes)
    }

    #[test]
    fn bytes_are_keys() {
        for (bytes, expected) in [
            (&b"a"[..], KeyPress::Char('a')),
            ("ä".as_bytes(), KeyPress::Char('ä')),
            ("日".as_bytes(), KeyPress::Char('日')),
            ("🦀".as_bytes(), KeyPress::Char('🦀')),
            (b"\r", KeyPress::Enter),
            (b"\n", KeyPress::Enter),
            (b"\t", KeyPress::Tab),
            (b"\x7f", KeyPress::Backspace),
            (b"\x08", KeyPress::Backspace),
            (b"\x03", KeyPress::Ctrl('c')),
            (b"\x1a", KeyPress::Ctrl('z')),
            (b"\x1b[A", KeyPress::Up),
            (b"\x1bOB", KeyPress::Down),
            (b"\x1b[1;5C", KeyPress::Right),
            (b"\x1b[Z", KeyPress::BackTab),
            (b"\x1b[3~", KeyPress::Delete),
            (b"\x1b[5~", KeyPress::PageUp),
            (b"\x1b[6;2~", KeyPress::PageDown),
            (b"\x1b[H", KeyPress::Home),
            (b"\x1b[4~", KeyPress::End),
        ] {
            assert_eq!(keys(bytes), [Typed::Key(expected)], "{bytes:?}");
        }
    }

    #[test]
    fn no_part_of_an_unknown_sequence_is_a_key() {
        for bytes in [
            &b"\x1b[?1;2c"[..],
            b"\x1b[<0;10;10M"[..].strip_suffix(b"M").unwrap(),
            b"\x1b[99~",
            b"\x1bOP",
            b"\x1ba",
            b"\xff\xfe",
            b"\x00",
        ] {
            assert_eq!(keys(bytes), [], "{bytes:?}");
        }
    }

    #[test]
    fn a_sequence_may_arrive_in_pieces_and_a_lone_escape_is_a_key() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.take(b"\x1b"), []);
        assert!(decoder.is_waiting());
        assert_eq!(decoder.take(b"[A"), [Typed::Key(KeyPress::Up)]);
        assert!(!decoder.is_waiting());
        assert_eq!(decoder.take("é".as_bytes().get(..1).unwrap()), []);
        assert_eq!(
            decoder.take("é".as_bytes().get(1..).unwrap()),
            [Typed::Key(KeyPress::Char('é'))]
        );
        decoder.take(b"\x1b");
        assert_eq!(decoder.end(), Some(Typed::Key(KeyPress::Esc)));
        decoder.take(b"\x1b[1;");
        assert_eq!(decoder.end(), None);
        assert_eq!(decoder.take(b"q"), [Typed::Key(KeyPress::Char('q'))]);
        assert_eq!(
            decoder.take(b"\x1b\x1b[B"),
            [Typed::Key(KeyPress::Esc), Typed::Key(KeyPress::Down)]
        );
    }

    #[test]
    fn pasted_text_is_no_keys() {
        let whole = [
            Typed::Paste("a\rq\x1b[A".to_owned()),
            Typed::Key(KeyPress::Char('x')),
        ];
        let bytes = b"\x1b[200~a\rq\x1b[A\x1b[201~x";
        assert_eq!(keys(bytes), whole);
        let mut decoder = Decoder::default();
        let piecewise: Vec<Typed> = bytes.iter().flat_map(|b| decoder.take(&[*b])).collect();
        assert_eq!(piecewise, whole);
        let long = [
            b"\x1b[200~".to_vec(),
            vec![b'x'; 200_000],
            PASTE_END.to_vec(),
        ]
        .concat();
        assert!(matches!(&keys(&long)[..], [Typed::Paste(text)] if text.len() == MOST_PASTED));
    }

    #[test]
    fn any_bytes_leave_the_decoder_usable() {
        let mut seed = 7_u32;
        for _ in 0..2_000 {
            let mut bytes = Vec::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                bytes.push(
                    [0x1b, b'[', b'O', b'1', b'~', b';', 0xe2, 0xff, b'a', 0x80]
                        [(seed >> 16) as usize % 10],
                );
            }
            let mut decoder = Decoder::default();
            decoder.take(&bytes);
            decoder.end();
            assert_eq!(
                decoder.take(b"q"),
                [Typed::Key(KeyPress::Char('q'))],
                "{bytes:?}"
            );
        }
    }
}
