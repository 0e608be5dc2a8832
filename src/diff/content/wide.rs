//! Recognizes, decodes and encodes UTF-16 and UTF-32: text in units of two or four bytes.

use super::START;
use crate::diff::Encoding;

/// Recognizes UTF-16 and UTF-32 by the byte order mark alone; [`super::judge`] checks the rest.
pub(in crate::diff) fn marked(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] => Some(Encoding::Utf32Le),
        [0, 0, 0xfe, 0xff, ..] => Some(Encoding::Utf32Be),
        [0xff, 0xfe, ..] => Some(Encoding::Utf16Le),
        [0xfe, 0xff, ..] => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// Returns the number of bytes of a unit.
fn width(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Bytes => 1,
        Encoding::Utf16Le | Encoding::Utf16Be => 2,
        Encoding::Utf32Le | Encoding::Utf32Be => 4,
    }
}

/// Returns the encoding if the bytes are UTF-16 or UTF-32.
pub(super) fn wide(bytes: &[u8]) -> Option<Encoding> {
    // ASCII in UTF-16, including line ends and blanks, has a NUL. Without one, a byte order mark
    // may be an accident.
    memchr::memchr(0, bytes)?;
    // Check the whole, or else the start: a tail of junk must not hide the lines before it.
    let parts = [bytes, &bytes[..bytes.len().min(START)]];
    if let Some(encoding) = marked(bytes) {
        return parts
            .into_iter()
            .any(|part| may_be_marked(part, encoding))
            .then_some(encoding);
    }
    let encodings = [
        Encoding::Utf32Le,
        Encoding::Utf32Be,
        Encoding::Utf16Le,
        Encoding::Utf16Be,
    ];
    encodings
        .into_iter()
        .filter(|e| bytes.len() >= 4 * width(*e))
        .find(|encoding| {
            parts.into_iter().any(|part| {
                let seen = Units::count(part, *encoding);
                // Line ends with NULs between them are not text. Blanks and empty lines do not
                // count against a text.
                if seen.visible == 0 || seen.visible * 8 < seen.all - seen.blank {
                    return false;
                }
                // A few malformed units do not change the classification of mostly ASCII text.
                let is_ascii = seen.ascii * 4 >= seen.all * 3 && seen.odd * 8 <= seen.all;
                is_ascii || (seen.ascii * 2 >= seen.all && seen.odd * 50 <= seen.all)
            })
        })
}

/// Returns true if a text that begins with the byte order mark of an encoding may be in that
/// encoding.
fn may_be_marked(text: &[u8], encoding: Encoding) -> bool {
    let seen = Units::count(&text[width(encoding)..], encoding);
    let plausible = seen.odd * 50 <= seen.all && seen.ascii * 256 >= seen.all;
    plausible || seen.ascii * 2 >= seen.all
}

/// Counts of the units of a file by kind.
struct Units {
    all: usize,
    /// Printable ASCII, tabs and line ends.
    ascii: usize,
    /// Printable ASCII that is not a blank.
    visible: usize,
    /// Spaces, tabs, and the ends of empty lines.
    blank: usize,
    /// Controls, NUL, U+FFFE, U+FFFF, and invalid units.
    odd: usize,
    /// Whether the last unit is a blank or a line end.
    is_after_end: bool,
}

impl Units {
    fn count(bytes: &[u8], encoding: Encoding) -> Self {
        let mut seen = Self {
            all: 0,
            ascii: 0,
            visible: 0,
            blank: 0,
            odd: 0,
            is_after_end: false,
        };
        if width(encoding) == 4 {
            bytes
                .chunks_exact(4)
                .for_each(|unit| seen.add(utf32(unit, encoding)));
        } else {
            char::decode_utf16(units(bytes, encoding)).for_each(|unit| seen.add(unit.ok()));
        }
        seen
    }

    /// Counts the next unit; `None` is an invalid one.
    fn add(&mut self, c: Option<char>) {
        self.all += 1;
        match c {
            Some('!'..='~') => (self.ascii, self.visible) = (self.ascii + 1, self.visible + 1),
            Some('\t' | ' ') => (self.ascii, self.blank) = (self.ascii + 1, self.blank + 1),
            Some('\n' | '\r') => {
                (self.ascii, self.blank) =
                    (self.ascii + 1, self.blank + usize::from(self.is_after_end));
            }
            Some('\0'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}') | None => self.odd += 1,
            Some(_) => {}
        }
        self.is_after_end = matches!(c, Some('\n' | '\r' | ' ' | '\t'));
    }
}

fn units(bytes: &[u8], encoding: Encoding) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks_exact(2).map(move |pair| {
        let pair = [pair[0], pair[1]];
        if encoding == Encoding::Utf16Be {
            u16::from_be_bytes(pair)
        } else {
            u16::from_le_bytes(pair)
        }
    })
}

/// Reads one unit of UTF-32.
fn utf32(unit: &[u8], encoding: Encoding) -> Option<char> {
    let unit = unit.try_into().ok()?;
    char::from_u32(if encoding == Encoding::Utf32Be {
        u32::from_be_bytes(unit)
    } else {
        u32::from_le_bytes(unit)
    })
}

/// Decodes UTF-16 or UTF-32 to UTF-8, without its byte order mark. Malformed units become U+FFFD.
///
/// Works in place while the text does not grow, which saves a copy for all but East Asian files.
pub(in crate::diff) fn decode(mut bytes: Vec<u8>, encoding: Encoding) -> Vec<u8> {
    let mut read = if marked(&bytes) == Some(encoding) {
        width(encoding)
    } else {
        0
    };
    let mut written = 0;
    let mut utf8 = [0; 4];
    while read < bytes.len() {
        let (c, taken) = first_char(&bytes[read..], encoding);
        let c = c.encode_utf8(&mut utf8).as_bytes();
        if written + c.len() > read + taken {
            let mut out = Vec::with_capacity(written + (bytes.len() - read) / 2 * 3);
            out.extend_from_slice(&bytes[..written]);
            while read < bytes.len() {
                let (c, taken) = first_char(&bytes[read..], encoding);
                out.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
                read += taken;
            }
            return out;
        }
        bytes[written..written + c.len()].copy_from_slice(c);
        written += c.len();
        read += taken;
    }
    bytes.truncate(written);
    bytes
}

/// Encodes a text in UTF-16 or UTF-32, with a byte order mark if `mark` is set; leaves it unchanged
/// for other encodings.
pub fn encode_wide(text: &str, encoding: Encoding, mark: bool) -> Vec<u8> {
    let chars = mark.then_some('\u{feff}').into_iter().chain(text.chars());
    let mut out = Vec::with_capacity(text.len() * width(encoding));
    for c in chars {
        match encoding {
            Encoding::Bytes => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Encoding::Utf16Le => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|u| out.extend(u.to_le_bytes())),
            Encoding::Utf16Be => c
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|u| out.extend(u.to_be_bytes())),
            Encoding::Utf32Le => out.extend(u32::from(c).to_le_bytes()),
            Encoding::Utf32Be => out.extend(u32::from(c).to_be_bytes()),
        }
    }
    out
}

/// Returns the first character and its length in bytes; `bytes` is not empty.
fn first_char(bytes: &[u8], encoding: Encoding) -> (char, usize) {
    let unit = &bytes[..bytes.len().min(4)];
    if width(encoding) == 4 {
        return (
            utf32(unit, encoding).unwrap_or(char::REPLACEMENT_CHARACTER),
            unit.len(),
        );
    }
    match char::decode_utf16(units(unit, encoding)).next() {
        Some(Ok(c)) => (c, c.len_utf16() * 2),
        Some(Err(_)) => (char::REPLACEMENT_CHARACTER, 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}
