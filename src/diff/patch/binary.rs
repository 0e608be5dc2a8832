//! `GIT binary patch`: contents in base 85, compressed, whole or as a delta.
//!
//! Decoded so that text which git treats as binary is reviewed too. See `diff.c` and
//! `Documentation/gitformat-pack.adoc` of git for the formats.

use super::{PatchReader, trim};
use crate::diff::content::has_early_nul;
use crate::diff::{Attribute, BinaryChange, Body, Entry};
use crate::error::{Error, Result};

/// Bytes that are decoded from one patch, at most, for all files together.
pub(super) const BUDGET: usize = 256 << 20;

/// The contents of both sides, if the patch has them.
#[derive(Debug, Default)]
pub(super) struct Contents {
    old: Option<Vec<u8>>,
    new: Option<Vec<u8>>,
    old_size: Option<u64>,
    new_size: Option<u64>,
}

impl Contents {
    /// Converts the contents to the body of a change.
    pub(super) fn into_body(self, entry: &Entry) -> Body {
        let gone = entry.new.is_none() && self.old.is_some();
        let Some(new) = self.new.or_else(|| gone.then(Vec::new)) else {
            return Body::Binary(BinaryChange {
                old_size: self.old_size.filter(|_| entry.old.is_some()),
                new_size: self.new_size.filter(|_| entry.new.is_some()),
                ..BinaryChange::default()
            });
        };
        let old = self.old.unwrap_or_default();
        // Git had a reason to treat it as binary: a NUL, or else the attribute.
        let seen = has_early_nul(&old) || has_early_nul(&new);
        let attribute = if seen {
            Attribute::Unset
        } else {
            Attribute::Binary
        };
        let (old, new) = (
            entry.old.is_some().then_some(old),
            entry.new.is_some().then_some(new),
        );
        Body::of_file(entry.path(), old, new, attribute)
    }
}

/// Parses a binary patch, from its first line on: the forward part, and often the reverse part.
pub(super) fn read(reader: &mut PatchReader<'_>) -> Result<Contents> {
    let number = reader.number;
    reader.next();
    let forward =
        BinaryBlock::read(reader)?.ok_or_else(|| reader.wrong("binary patch without data"))?;
    let backward = BinaryBlock::read(reader)?;
    let mut contents = Contents {
        new_size: forward.literal.then_some(forward.size as u64),
        old_size: backward
            .as_ref()
            .filter(|b| b.literal)
            .map(|b| b.size as u64),
        ..Contents::default()
    };
    let needed = forward
        .size
        .saturating_add(backward.as_ref().map_or(0, |b| b.size));
    if needed > reader.budget {
        return Ok(contents);
    }
    reader.budget -= needed;
    let forward_data = forward.inflate().ok_or_else(|| undecodable(number))?;
    let backward = backward
        .map(|b| {
            b.inflate()
                .map(|data| (b.literal, data))
                .ok_or_else(|| undecodable(number))
        })
        .transpose()?;
    match (forward.literal, backward) {
        (true, Some((true, old))) => (contents.new, contents.old) = (Some(forward_data), Some(old)),
        (true, Some((false, delta))) => {
            contents.old = Some(
                apply(&delta, &forward_data, &mut reader.budget)
                    .ok_or_else(|| undecodable(number))?,
            );
            contents.new = Some(forward_data);
        }
        (true, None) => contents.new = Some(forward_data),
        (false, Some((true, old))) => {
            contents.new = Some(
                apply(&forward_data, &old, &mut reader.budget)
                    .ok_or_else(|| undecodable(number))?,
            );
            contents.old = Some(old);
        }
        // Two deltas are useless without the file.
        (false, _) => {}
    }
    Ok(contents)
}

/// Returns the error for a binary patch with invalid data.
fn undecodable(number: usize) -> Error {
    super::wrong(number, "cannot decode the data of the binary patch")
}

/// `literal SIZE` or `delta SIZE`, and the compressed bytes.
struct BinaryBlock {
    literal: bool,
    size: usize,
    data: Vec<u8>,
}

impl BinaryBlock {
    fn read(reader: &mut PatchReader<'_>) -> Result<Option<Self>> {
        let head = trim(reader.peek().unwrap_or_default());
        let (literal, digits) = match (head.strip_prefix(b"literal "), head.strip_prefix(b"delta "))
        {
            (Some(digits), _) => (true, digits),
            (_, Some(digits)) => (false, digits),
            _ => return Ok(None),
        };
        let size = std::str::from_utf8(digits)
            .ok()
            .and_then(|d| d.parse().ok());
        let size = size.ok_or_else(|| reader.wrong("binary patch without a size"))?;
        reader.next();
        let mut data = Vec::new();
        while let Some(line) = reader.peek() {
            let line = trim(line);
            if line.is_empty() {
                reader.next();
                break;
            }
            decode_line(line, &mut data)
                .ok_or_else(|| reader.wrong("invalid data line of a binary patch"))?;
            reader.next();
        }
        Ok(Some(Self {
            literal,
            size,
            data,
        }))
    }

    fn inflate(&self) -> Option<Vec<u8>> {
        let mut out = vec![0; self.size];
        let config = zlib_rs::InflateConfig::default();
        let (written, code) = zlib_rs::decompress_slice(&mut out, &self.data, config);
        (code == zlib_rs::ReturnCode::Ok && written.len() == self.size).then_some(out)
    }
}

/// Decodes a line: its length as a letter, then five characters for every four bytes.
fn decode_line(line: &[u8], out: &mut Vec<u8>) -> Option<()> {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let (letter, text) = line.split_first()?;
    let mut left = match letter {
        b'A'..=b'Z' => usize::from(letter - b'A') + 1,
        b'a'..=b'z' => usize::from(letter - b'a') + 27,
        _ => return None,
    };
    if text.len() != left.div_ceil(4) * 5 {
        return None;
    }
    for group in text.chunks_exact(5) {
        let number = group.iter().try_fold(0u32, |n, c| {
            let digit = DIGITS.iter().position(|d| d == c)? as u32;
            n.checked_mul(85)?.checked_add(digit)
        })?;
        let bytes = number.to_be_bytes();
        let taken = left.min(4);
        out.extend_from_slice(&bytes[..taken]);
        left -= taken;
    }
    Some(())
}

/// Applies a delta to one side, which gives the other.
fn apply(delta: &[u8], base: &[u8], budget: &mut usize) -> Option<Vec<u8>> {
    let mut delta = delta.iter().copied();
    if size(&mut delta)? != base.len() {
        return None;
    }
    let wanted = size(&mut delta)?;
    *budget = budget.checked_sub(wanted)?;
    let mut out = Vec::with_capacity(wanted);
    while let Some(op) = delta.next() {
        if op & 0x80 == 0 {
            // Zero is reserved.
            let from = out.len();
            out.extend(delta.by_ref().take(usize::from(op)));
            if op == 0 || out.len() - from != usize::from(op) {
                return None;
            }
            continue;
        }
        let start = number(op, 0..4, &mut delta)?;
        let len = Some(number(op, 4..7, &mut delta)?)
            .filter(|n| *n > 0)
            .unwrap_or(0x10000);
        out.extend_from_slice(base.get(start..start.checked_add(len)?)?);
        if out.len() > wanted {
            return None;
        }
    }
    (out.len() == wanted).then_some(out)
}

/// Reads a number from the operands of a copy: each of these bits of the operation adds one byte,
/// the lowest first.
fn number(
    op: u8,
    bits: std::ops::Range<u32>,
    operands: &mut impl Iterator<Item = u8>,
) -> Option<usize> {
    bits.clone()
        .filter(|bit| op >> bit & 1 == 1)
        .try_fold(0usize, |n, bit| {
            Some(n | usize::from(operands.next()?) << (8 * (bit - bits.start)))
        })
}

/// Reads a number, seven bits a byte, the lowest first.
fn size(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let mut n = 0usize;
    for shift in (0..usize::BITS - 7).step_by(7) {
        let b = bytes.next()?;
        n |= usize::from(b & 0x7f) << shift;
        if b & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delta_copies_and_inserts() {
        // From 6 bytes to 9: two of the base from 1 on, three new ones, the first four of the base.
        let delta = [6, 9, 0x91, 1, 2, 3, b'x', b'y', b'z', 0x90, 4];
        assert_eq!(
            apply(&delta, b"abcdef", &mut 100).as_deref(),
            Some(&b"bcxyzabcd"[..])
        );
        for (bad, base, budget, what) in [
            (&delta[..], &b"abcde"[..], 100, "another base"),
            (&delta, b"abcdef", 8, "no room"),
            (&delta[..10], b"abcdef", 100, "cut short"),
            (&[6, 2, 0x91, 5, 2], b"abcdef", 100, "beyond the base"),
            (&[6, 9, 0], b"abcdef", 100, "the reserved instruction"),
            (&[6, 1, 0x90, 2], b"abcdef", 100, "more than promised"),
            (&[0xff; 12], b"abcdef", 100, "a size without end"),
            (&[], b"", 100, "nothing"),
        ] {
            assert_eq!(apply(bad, base, &mut { budget }), None, "{what}");
        }
    }
}
