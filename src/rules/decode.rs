//! Decoded views: text that an encoding hides, for the rules for secrets. One level of Base64 (RFC
//! 4648, both alphabets), percent signs (RFC 3986), `\x41` and `\u0041` is decoded.
//!
//! The search is cheap if there is nothing to decode: it finds long runs in steps of their minimum
//! length, and skips a run that does not decode to text within its first bytes.

use super::visits;
use std::ops::Range;

/// Base64 digits of a run, at least: they decode to 18 bytes, which is shorter than any token.
const BASE64_MIN: usize = 24;
/// Bytes of a run that are decoded at once. A longer run is decoded in pieces, to limit memory use.
const PIECE: usize = 1 << 20;
/// Bytes that two pieces share, so that no secret is split. A multiple of four, because digits are
/// decoded in fours.
const SHARED: usize = 16 << 10;
/// Escapes of a word, at least.
const ESCAPES_MIN: usize = 3;

/// Calls `found` with every encoded run and its decoded text.
pub(super) fn views(text: &[u8], mut found: impl FnMut(Range<usize>, &[u8])) {
    base64_runs(text, &mut found);
    escaped_words(text, &mut found);
}

/// Calls `found` with every run of at least `least` Base64 digits, of both alphabets. Linear.
pub(super) fn runs(text: &[u8], least: usize, mut found: impl FnMut(Range<usize>)) {
    // All bytes before `at` are processed, and the byte before it is not a digit.
    let mut at = 0;
    while let Some(window) = text.get(at..at + least) {
        visits::add(least);
        if let Some(i) = window.iter().rposition(|b| !digit(*b)) {
            at += i + 1;
            continue;
        }
        let length = least + text[at + least..].iter().take_while(|b| digit(**b)).count();
        visits::add(length - least);
        found(at..at + length);
        at += length;
    }
}

/// The value of each Base64 digit. 64: not a digit.
const VALUES: [u8; 256] = {
    let mut table = [64u8; 256];
    let mut i = 0;
    while i < 26 {
        table[b'A' as usize + i] = i as u8;
        table[b'a' as usize + i] = 26 + i as u8;
        i += 1;
    }
    i = 0;
    while i < 10 {
        table[b'0' as usize + i] = 52 + i as u8;
        i += 1;
    }
    table[b'+' as usize] = 62;
    table[b'/' as usize] = 63;
    table[b'-' as usize] = 62;
    table[b'_' as usize] = 63;
    table
};

fn digit(b: u8) -> bool {
    VALUES[usize::from(b)] < 64
}

fn base64_runs(text: &[u8], found: &mut impl FnMut(Range<usize>, &[u8])) {
    runs(text, BASE64_MIN, |run| {
        let digits = &text[run.clone()];
        if decode(&digits[..16]).is_some_and(|b| b.len() == 12 && is_text(&b)) {
            for piece in pieces(run) {
                if let Some(plain) = decode(&text[piece.clone()]) {
                    found(piece, &plain);
                }
            }
        }
    });
}

/// Splits a run into pieces that share some bytes. A short run is one piece.
fn pieces(run: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut next = Some(run.start);
    std::iter::from_fn(move || {
        let start = next?;
        let end = run.end.min(start + PIECE);
        next = (end < run.end).then(|| end - SHARED);
        Some(start..end)
    })
}

/// Decodes digits, and drops an incomplete rest at the end.
pub(super) fn decode(digits: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for (i, d) in group.iter().enumerate() {
            bits |= u32::from(VALUES[usize::from(*d)]) << (18 - 6 * i);
        }
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[1..1 + (group.len() * 6 / 8).min(3)]);
    }
    (!out.is_empty()).then_some(out)
}

fn is_text(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}

/// Decodes words with escapes, from the start of the word to its end.
fn escaped_words(text: &[u8], found: &mut impl FnMut(Range<usize>, &[u8])) {
    let mut at = 0;
    let mut done = 0;
    while let Some(i) = memchr::memchr2(b'%', b'\\', &text[at..]) {
        visits::add(i + 1);
        at += i;
        if escape(&text[at..]).is_none() {
            at += 1;
            continue;
        }
        // A line of code has an occasional escape, and hidden text consists of consecutive escapes.
        let end = text[at..]
            .iter()
            .position(ends_literal)
            .map_or(text.len(), |i| at + i);
        visits::add(end - at);
        if count_escapes(&text[at..end]) < ESCAPES_MIN {
            at = end;
            continue;
        }
        let start = text[done..at]
            .iter()
            .rposition(ends_literal)
            .map_or(done, |i| done + i + 1);
        visits::add(at - start);
        for piece in pieces(start..end) {
            visits::add(piece.len());
            found(piece.clone(), &unescape(&text[piece]));
        }
        done = end;
        at = end;
    }
}

fn count_escapes(word: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(i) = memchr::memchr2(b'%', b'\\', &word[at..]) {
        visits::add(i + 1);
        at += i;
        match escape(&word[at..]) {
            Some((_, length)) => {
                at += length;
                count += 1;
            }
            None => at += 1,
        }
        if count >= ESCAPES_MIN {
            return count;
        }
    }
    visits::add(word.len() - at);
    count
}

fn unescape(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        match escape(&word[at..]) {
            Some((byte, length)) => {
                out.push(byte);
                at += length;
            }
            None => {
                out.push(word[at]);
                at += 1;
            }
        }
    }
    out
}

/// Returns true for a byte that ends a literal or a word.
fn ends_literal(b: &u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>')
}

/// Returns the ASCII character that hexadecimal digits stand for.
fn ascii_of(digits: &[u8]) -> Option<u8> {
    let value = digits
        .iter()
        .try_fold(0u32, |v, d| Some(v << 4 | (*d as char).to_digit(16)?))?;
    u8::try_from(value).ok().filter(u8::is_ascii)
}

/// Reads `%41`, `\x41`, `\u0041` or `\u{41}` at the start: the byte and the length. Only ASCII is
/// of interest.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    match text {
        [b'%', a, b, ..] => Some((ascii_of(&[*a, *b])?, 3)),
        [b'\\', b'x', a, b, ..] => Some((ascii_of(&[*a, *b])?, 4)),
        [b'\\', b'u', b'{', rest @ ..] => {
            let close = rest
                .iter()
                .take(7)
                .position(|b| *b == b'}')
                .filter(|n| *n > 0)?;
            Some((ascii_of(&rest[..close])?, close + 4))
        }
        [b'\\', b'u', digits @ ..] => Some((ascii_of(digits.get(..4)?)?, 6)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    fn decoded(text: &str) -> Vec<(String, String)> {
        let mut out = Vec::new();
        views(text.as_bytes(), |range, bytes| {
            out.push((
                text[range].to_owned(),
                String::from_utf8_lossy(bytes).into_owned(),
            ));
        });
        out
    }

    #[test]
    fn decodes_what_says_something() {
        let plain = "password = correct horse battery";
        for code in [STANDARD.encode(plain), URL_SAFE_NO_PAD.encode(plain)] {
            let found = decoded(&format!("data: \"{code}\"\n"));
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].1, plain);
        }
        assert_eq!(
            decoded("a '%41%42%43x' b"),
            [("%41%42%43x".to_owned(), "ABCx".to_owned())]
        );
        assert_eq!(
            decoded("\"k=\\x41\\u0042\\u{43}\""),
            [("k=\\x41\\u0042\\u{43}".to_owned(), "k=ABC".to_owned())]
        );
    }

    #[test]
    fn leaves_the_rest_alone() {
        for text in [
            "src/main/java/com/example/project/Application",
            "some-very-long-kebab-case-name-of-a-thing",
            "integrity sha512-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
            "printf(\"%d%% of %s\\n\", a, b)",
            "\"\\u00e9\\u00e8\"",
            "%20",
            "",
        ] {
            assert_eq!(decoded(text), [], "{text}");
        }
    }

    #[test]
    fn long_runs_without_end_are_linear() {
        // The decoded texts: how many, and their bytes in all. The word of 1.5 MB has two pieces.
        for (text, expected) in [
            ("%4".repeat(500_000), (0, 0)),
            ("\\x4".repeat(400_000), (0, 0)),
            ("%41 ".repeat(300_000), (0, 0)),
            ("%41x\\".repeat(300_000), (2, 909_832)),
            ("a".repeat(2_000_000), (0, 0)),
        ] {
            let (mut views_found, mut bytes) = (0, 0);
            let visited = visits::during(|| {
                views(text.as_bytes(), |_, plain| {
                    views_found += 1;
                    bytes += plain.len();
                });
            });
            let sample = &text[..8];
            assert_eq!((views_found, bytes), expected, "{sample}");
            // Each byte is visited by a few searches. With a second pass over the rest of the text
            // for each escape, it would be some 100,000 times.
            assert!(
                visited >= text.len() && visited <= 5 * text.len(),
                "{sample}: {visited}"
            );
        }
    }
}
