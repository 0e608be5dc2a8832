//! What a file's bytes are: text, UTF-16 text, or no text at all.
//!
//! Git calls a file binary when a NUL stands in its first 8000 bytes, so one NUL is enough to keep a
//! change from a reader's eyes. This module looks at the whole file instead:
//!
//! 1. A file that starts like a known binary format, and goes on like one, is binary.
//! 2. UTF-16 is text. With a byte order mark: when it has a NUL (line ends and blanks bring one) and at
//!    most 5 % of its units are malformed or controls, or half of them are printable ASCII. Without a
//!    mark: when half of its units are printable ASCII and at most 2 % malformed or controls.
//! 3. What is left is text when at most 5 % of its bytes (and two) are control bytes that text does not
//!    use, NUL among them, and at least two thirds are printable ASCII or well-formed UTF-8.
//!
//! Compressed and random data has about 10 % such control bytes and 50 % malformed UTF-8, machine code
//! and tables far more; a source file that hides behind a NUL has few of either.

use super::Encoding;

/// How many bytes git looks at (`FIRST_FEW_BYTES` of its `buffer_is_binary`).
const GIT_LOOKS_AT: usize = 8000;

/// What a file's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::diff) enum Content {
    Text,
    Utf16(Encoding),
    Binary,
}

/// Tells whether git calls the bytes binary when no attribute says otherwise.
pub(in crate::diff) fn has_early_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(GIT_LOOKS_AT)]).is_some()
}

/// Tells what the bytes are, whatever git calls them.
pub(in crate::diff) fn judge(bytes: &[u8]) -> Content {
    if bytes.is_empty() {
        return Content::Text;
    }
    if let Some(encoding) = utf16(bytes) {
        return Content::Utf16(encoding);
    }
    if is_known_format(bytes) || !looks_like_text(bytes) { Content::Binary } else { Content::Text }
}

/// Recognizes UTF-16 by its byte order mark alone; [`judge`] looks at the rest.
pub(in crate::diff) fn marked_utf16(bytes: &[u8]) -> Option<Encoding> {
    match bytes {
        // UTF-32LE starts with the same two bytes.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some(Encoding::Utf16Le),
        [0xfe, 0xff, ..] => Some(Encoding::Utf16Be),
        _ => None,
    }
}

/// Tells whether, and how, the bytes are UTF-16.
fn utf16(bytes: &[u8]) -> Option<Encoding> {
    if let Some(encoding) = marked_utf16(bytes) {
        // Two bytes that happen to be there do not make UTF-16: line ends and blanks bring a NUL.
        memchr::memchr(0, bytes)?;
        let seen = Units::count(&bytes[2..], encoding);
        return (seen.odd * 20 <= seen.all || seen.ascii * 2 >= seen.all).then_some(encoding);
    }
    if bytes.len() < 8 {
        return None;
    }
    [Encoding::Utf16Le, Encoding::Utf16Be].into_iter().find(|encoding| {
        let seen = Units::count(bytes, *encoding);
        seen.ascii * 2 >= seen.all && seen.odd * 50 <= seen.all
    })
}

/// What the 16-bit units of a file are.
struct Units {
    all: usize,
    /// Printable ASCII, tabs and line ends.
    ascii: usize,
    /// Controls, NUL, lone surrogates and U+FFFE, U+FFFF.
    odd: usize,
}

impl Units {
    fn count(bytes: &[u8], encoding: Encoding) -> Self {
        let mut seen = Self { all: 0, ascii: 0, odd: 0 };
        for unit in char::decode_utf16(units(bytes, encoding)) {
            seen.all += 1;
            match unit {
                Ok('\t' | '\n' | '\r' | ' '..='~') => seen.ascii += 1,
                Ok('\0'..='\u{1f}' | '\u{7f}' | '\u{fffe}' | '\u{ffff}') | Err(_) => seen.odd += 1,
                Ok(_) => {}
            }
        }
        seen
    }
}

fn units(bytes: &[u8], encoding: Encoding) -> impl Iterator<Item = u16> + '_ {
    bytes.chunks_exact(2).map(move |pair| {
        let pair = [pair[0], pair[1]];
        if encoding == Encoding::Utf16Be { u16::from_be_bytes(pair) } else { u16::from_le_bytes(pair) }
    })
}

/// Decodes UTF-16 to UTF-8, without its byte order mark. What is malformed becomes U+FFFD.
pub(in crate::diff) fn decode_utf16(bytes: &[u8], encoding: Encoding) -> Vec<u8> {
    let rest = if marked_utf16(bytes).is_some() { &bytes[2..] } else { bytes };
    let mut out = Vec::with_capacity(rest.len() / 2 + rest.len() / 16);
    let mut buffer = [0; 4];
    for unit in char::decode_utf16(units(rest, encoding)) {
        let c = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
    }
    if rest.len() % 2 == 1 {
        out.extend_from_slice(char::REPLACEMENT_CHARACTER.encode_utf8(&mut buffer).as_bytes());
    }
    out
}

/// Weighs the bytes of the whole file; see the rule at the top.
fn looks_like_text(bytes: &[u8]) -> bool {
    let (mut controls, mut printable) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        for b in chunk.valid().bytes() {
            match b {
                // Tab, line feed, vertical tab, form feed, carriage return; ESC colours logs.
                b'\t'..=b'\r' | 0x1b | b' '..=b'~' | 0x80.. => printable += 1,
                _ => controls += 1,
            }
        }
    }
    controls <= bytes.len() / 20 + 2 && printable >= bytes.len() / 3 * 2 && printable > 0
}

/// Recognizes formats by their signature and, where the signature could be typed, by what follows it.
fn is_known_format(b: &[u8]) -> bool {
    /// Signatures with a byte that no text has there.
    const PLAIN: &[&[u8]] = &[
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff",
        b"\x7fELF",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"\x1f\x8b\x08",
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"7z\xbc\xaf\x27\x1c",
        b"Rar!\x1a\x07",
        b"\xca\xfe\xba\xbe",
        b"\xfe\xed\xfa\xce",
        b"\xfe\xed\xfa\xcf",
        b"\xce\xfa\xed\xfe",
        b"\xcf\xfa\xed\xfe",
        b"\0asm",
        b"SQLite format 3\0",
        b"wOFF\0",
        b"wOF2\0",
        b"\0\x01\0\0",
        b"OTTO\0",
        b"\0\0\x01\0",
        b"\0\0\x02\0",
        b"II*\0",
        b"MM\0*",
        b"OggS\0",
        b"ID3\x02",
        b"ID3\x03",
        b"ID3\x04",
        b"8BPS\0",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        b"!<arch>\n",
        b"\xde\x12\x04\x95",
        b"\x95\x04\x12\xde",
        b"\xed\xab\xee\xdb",
        b"PACK\0\0\0",
        b"\xfftOc",
        b"DIRC\0\0\0",
        b"\0\0\0\x01Bud1",
        b"bplist00",
        b"BC\xc0\xde",
        b"\x93NUMPY",
        b"\x89HDF\r\n\x1a\n",
        b"\x1bLua",
        b"glTF\x01\0",
        b"glTF\x02\0",
    ];
    let at = |offset: usize, want: &[u8]| b.get(offset..).is_some_and(|rest| rest.starts_with(want));
    let binary_within =
        |range: std::ops::Range<usize>| b.get(range).is_some_and(|part| part.iter().any(|c| *c < b'\t' || *c >= 0x7f));
    let u32_at = |offset: usize| Some(u32::from_le_bytes(b.get(offset..offset + 4)?.try_into().ok()?));
    PLAIN.iter().any(|s| b.starts_with(s))
        // The logical screen: width, height, flags.
        || ((at(0, b"GIF87a") || at(0, b"GIF89a")) && binary_within(6..13))
        || (at(0, b"MZ") && u32_at(0x3c).is_some_and(|pe| at(pe as usize, b"PE\0\0")))
        || (at(0, b"RIFF") && binary_within(4..8))
        || (at(0, b"BM") && at(6, b"\0\0\0\0"))
        || (at(0, b"BZh") && at(4, b"1AY&SY"))
        || (at(4, b"ftyp") && binary_within(0..4))
        || (at(257, b"ustar") && at(156 + 101, b"ustar") && binary_within(136..157))
        // A second line of high bytes, as the standard asks of files with binary parts.
        || (at(0, b"%PDF-") && b.iter().take(32).filter(|c| **c >= 0x80).count() >= 4)
}
