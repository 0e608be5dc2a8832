//! Writes a parsed pattern as bytes. The build script uses it; [`super::decode`] reads them.

use super::decode::{Tag, decode};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Parses a pattern in the notation of rules: see `expression::compile`. `None`: it is invalid.
pub(super) fn parse(pattern: &str, lines: bool) -> Option<Hir> {
    ParserBuilder::new()
        .unicode(false)
        .utf8(false)
        .multi_line(lines)
        .crlf(lines)
        .build()
        .parse(pattern)
        .ok()
}

/// Encodes a pattern. `None`: it is invalid, or the bytes would not give the same expression, so
/// that the program has to parse the text.
pub(super) fn encode(pattern: &str, lines: bool) -> Option<Vec<u8>> {
    let hir = parse(pattern, lines)?;
    let mut out = Vec::new();
    write(&mut out, &hir)?;
    (decode(&out).as_ref() == Some(&hir)).then_some(out)
}

fn write(out: &mut Vec<u8>, hir: &Hir) -> Option<()> {
    match hir.kind() {
        HirKind::Empty => out.push(Tag::Empty as u8),
        HirKind::Literal(literal) => {
            out.push(Tag::Literal as u8);
            bytes(out, &literal.0)?;
        }
        HirKind::Class(class) => classes(out, class)?,
        HirKind::Look(look) => {
            out.push(Tag::Look as u8);
            number(out, look.as_repr());
        }
        HirKind::Repetition(repetition) => {
            out.push(Tag::Repetition as u8);
            number(out, repetition.min);
            // 0 stands for no upper bound. A repetition of nothing (`a{0}`) is never left over.
            number(out, repetition.max.unwrap_or(0));
            out.push(u8::from(repetition.greedy));
            write(out, &repetition.sub)?;
        }
        HirKind::Capture(capture) => {
            out.push(Tag::Capture as u8);
            number(out, capture.index);
            bytes(out, capture.name.as_deref().unwrap_or_default().as_bytes())?;
            write(out, &capture.sub)?;
        }
        HirKind::Concat(parts) => several(out, Tag::Concat, parts)?,
        HirKind::Alternation(parts) => several(out, Tag::Alternation, parts)?,
    }
    Some(())
}

fn several(out: &mut Vec<u8>, tag: Tag, parts: &[Hir]) -> Option<()> {
    out.push(tag as u8);
    number(out, u32::try_from(parts.len()).ok()?);
    parts.iter().try_for_each(|part| write(out, part))
}

fn classes(out: &mut Vec<u8>, class: &Class) -> Option<()> {
    match class {
        Class::Bytes(class) => {
            out.push(Tag::Bytes as u8);
            number(out, u32::try_from(class.ranges().len()).ok()?);
            for range in class.ranges() {
                out.extend([range.start(), range.end()]);
            }
        }
        Class::Unicode(class) => {
            out.push(Tag::Characters as u8);
            number(out, u32::try_from(class.ranges().len()).ok()?);
            for range in class.ranges() {
                number(out, u32::from(range.start()));
                number(out, u32::from(range.end()));
            }
        }
    }
    Some(())
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    number(out, u32::try_from(bytes.len()).ok()?);
    out.extend(bytes);
    Some(())
}

/// Writes a number in groups of seven bits, the lowest first (LEB128).
fn number(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
