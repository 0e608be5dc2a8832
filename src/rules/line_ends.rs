//! Line ends of other systems.

use std::borrow::Cow;

/// Replaces carriage returns without a line feed by line feeds, byte for byte. Interpreters end
/// lines at them, and grammars do not.
pub(super) fn with_line_feeds(text: &[u8]) -> Cow<'_, [u8]> {
    let alone: Vec<usize> = memchr::memchr_iter(b'\r', text)
        .filter(|at| text.get(at + 1) != Some(&b'\n'))
        .collect();
    if alone.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_vec();
    for at in alone {
        text[at] = b'\n';
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carriage_return_alone_becomes_a_line_feed() {
        assert_eq!(&*with_line_feeds(b"a\rb\r\nc\r"), b"a\nb\r\nc\n");
        assert!(matches!(with_line_feeds(b"a\r\nb\n"), Cow::Borrowed(_)));
    }
}
