//! JSON output whose strings contain no active characters for terminals and CI systems.

use crate::untrusted::is_active;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter, Serializer};
use std::io::{self, Write};

/// Writes a document, indented and with a final newline.
///
/// Characters that a terminal or a CI log would interpret are escaped as `\u….` in strings. JSON
/// parsers decode them.
pub fn write(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut buffer = io::BufWriter::new(out);
    document.serialize(&mut Serializer::with_formatter(
        &mut buffer,
        Calm(PrettyFormatter::new()),
    ))?;
    buffer.write_all(b"\n")?;
    buffer.flush()
}

/// Returns a document on one line without a final newline, escaped like [`write`].
///
/// # Errors
///
/// The document cannot be represented as JSON.
pub fn line(document: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    document.serialize(&mut Serializer::with_formatter(
        &mut line,
        Calm(CompactFormatter),
    ))?;
    Ok(line)
}

/// Formatter that escapes active characters in strings.
struct Calm<F>(F);

impl<F: Formatter> Formatter for Calm<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let plain = fragment.bytes().all(|b| matches!(b, b' '..=b'~'));
        if plain && memchr::memmem::find(fragment.as_bytes(), b"##").is_none() {
            return out.write_all(fragment.as_bytes());
        }
        let mut from = 0;
        let mut hashes = false;
        let mut previous = ' ';
        for (i, c) in fragment.char_indices() {
            // CI systems execute `##[error]` and `##vso[…]` anywhere in a line.
            let command = hashes && c == '[';
            hashes = (c == '#' && previous == '#')
                || (hashes && (c == '#' || c.is_ascii_alphanumeric()));
            previous = c;
            if command || is_active(c) {
                out.write_all(&fragment.as_bytes()[from..i])?;
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(out, "\\u{unit:04x}")?;
                }
                from = i + c.len_utf8();
            }
        }
        out.write_all(&fragment.as_bytes()[from..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}
