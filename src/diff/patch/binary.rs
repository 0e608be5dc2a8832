//! `GIT binary patch`: its shape is checked, its sizes are taken.

use super::{Reader, trim};
use crate::error::Result;

/// How large the sides are, as far as the patch says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sizes {
    pub(super) old: Option<u64>,
    pub(super) new: Option<u64>,
}

/// Reads a binary patch, from its first line on: the way forward, and often the way back.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Sizes> {
    reader.next();
    let new = block(reader)?.ok_or_else(|| reader.wrong("a binary patch without data"))?;
    let old = block(reader)?.unwrap_or_default();
    Ok(Sizes { old, new })
}

/// Reads `literal SIZE` or `delta SIZE` and its lines. The size of a delta is not that of the file.
fn block(reader: &mut Reader<'_>) -> Result<Option<Option<u64>>> {
    let head = trim(reader.peek().unwrap_or_default());
    let (literal, digits) = match (head.strip_prefix(b"literal "), head.strip_prefix(b"delta ")) {
        (Some(digits), _) => (true, digits),
        (_, Some(digits)) => (false, digits),
        _ => return Ok(None),
    };
    let size = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
    let size: u64 = size.ok_or_else(|| reader.wrong("a binary patch without a size"))?;
    reader.next();
    while let Some(line) = reader.peek() {
        let data = trim(line);
        if data.is_empty() {
            reader.next();
            break;
        }
        let bytes = match data[0] {
            c @ b'A'..=b'Z' => usize::from(c - b'A') + 1,
            c @ b'a'..=b'z' => usize::from(c - b'a') + 27,
            _ => return Err(reader.wrong("a line that is no data of a binary patch")),
        };
        if data.len() - 1 != bytes.div_ceil(4) * 5 {
            return Err(reader.wrong("a line of a binary patch that is too short or too long"));
        }
        reader.next();
    }
    Ok(Some(literal.then_some(size)))
}
