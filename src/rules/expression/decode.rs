//! Reads the bytes of a parsed pattern, which `expression/encode` writes.
//!
//! The parser of `regex-syntax` took 60 % of the time of compiling an expression, and compiling was
//! a third of the instructions of a small review. The build script parses the patterns of the
//! catalogue. The patterns of teams, of `origin` and of replacements are parsed at run time.

use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, Look,
    Repetition,
};

/// The first byte of a part of an expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tag {
    Empty,
    Literal,
    Bytes,
    Characters,
    Look,
    Repetition,
    Capture,
    Concat,
    Alternation,
}

const TAGS: [Tag; 9] = [
    Tag::Empty,
    Tag::Literal,
    Tag::Bytes,
    Tag::Characters,
    Tag::Look,
    Tag::Repetition,
    Tag::Capture,
    Tag::Concat,
    Tag::Alternation,
];

/// Returns the expression that bytes of the build script stand for. `None`: the bytes are not an
/// expression.
pub(super) fn decode(bytes: &[u8]) -> Option<Hir> {
    let mut reader = PatternReader { bytes };
    let hir = reader.expression()?;
    reader.bytes.is_empty().then_some(hir)
}

struct PatternReader<'a> {
    bytes: &'a [u8],
}

impl PatternReader<'_> {
    fn expression(&mut self) -> Option<Hir> {
        Some(match TAGS.get(usize::from(self.byte()?))? {
            Tag::Empty => Hir::empty(),
            Tag::Literal => Hir::literal(self.text()?),
            Tag::Bytes => {
                let ranges = self.several(Self::byte_range)?;
                Hir::class(Class::Bytes(ClassBytes::new(ranges)))
            }
            Tag::Characters => {
                let ranges = self.several(Self::character_range)?;
                Hir::class(Class::Unicode(ClassUnicode::new(ranges)))
            }
            Tag::Look => Hir::look(Look::from_repr(self.number()?)?),
            Tag::Repetition => Hir::repetition(Repetition {
                min: self.number()?,
                max: Some(self.number()?).filter(|max| *max > 0),
                greedy: self.byte()? != 0,
                sub: Box::new(self.expression()?),
            }),
            Tag::Capture => Hir::capture(Capture {
                index: self.number()?,
                name: self.name()?,
                sub: Box::new(self.expression()?),
            }),
            Tag::Concat => Hir::concat(self.several(Self::expression)?),
            Tag::Alternation => Hir::alternation(self.several(Self::expression)?),
        })
    }

    /// Reads a number and as many items.
    fn several<T>(&mut self, item: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()? as usize;
        // Each item has at least one byte.
        if count > self.bytes.len() {
            return None;
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Some(items)
    }

    fn byte_range(&mut self) -> Option<ClassBytesRange> {
        Some(ClassBytesRange::new(self.byte()?, self.byte()?))
    }

    fn character_range(&mut self) -> Option<ClassUnicodeRange> {
        let start = char::from_u32(self.number()?)?;
        Some(ClassUnicodeRange::new(
            start,
            char::from_u32(self.number()?)?,
        ))
    }

    /// Reads the name of a group. `Some(None)`: it has no name.
    fn name(&mut self) -> Option<Option<Box<str>>> {
        let name = std::str::from_utf8(self.text()?).ok()?;
        Some((!name.is_empty()).then(|| name.into()))
    }

    fn text(&mut self) -> Option<&[u8]> {
        let len = self.number()? as usize;
        let (text, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(text)
    }

    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u32> {
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}
