//! Hexadecimal digits of bytes, and percent escapes, which are made of them. Pure.

/// Returns two lower-case digits for each byte.
pub fn encode(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Reads what [`encode`] writes, in either case; `None`: the length is odd, or a character is not a
/// digit.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(value(*high)? << 4 | value(*low)?))
        .collect()
}

/// Reads exactly `N` bytes; `None`: there are more or fewer, or a character is not a digit.
pub fn decode_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    decode(text)?.try_into().ok()
}

/// Decodes percent escapes such as `%41` (RFC 3986); `None`: a percent sign has no two digits after
/// it.
pub fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let (bytes, is_well_formed) = unescape(text);
    is_well_formed.then_some(bytes)
}

/// Decodes percent escapes, and keeps each percent sign without two digits after it.
pub fn percent_decoded_leniently(text: &str) -> Vec<u8> {
    unescape(text).0
}

/// Decodes percent escapes; `false`: one is malformed, and is kept.
fn unescape(text: &str) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len());
    let mut is_well_formed = true;
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let escaped = match (first, tail) {
            (b'%', [high, low, after @ ..]) => value(*high)
                .zip(value(*low))
                .map(|(high, low)| (high << 4 | low, after)),
            _ => None,
        };
        match escaped {
            Some((byte, after)) => {
                out.push(byte);
                rest = after;
            }
            None => {
                is_well_formed &= *first != b'%';
                out.push(*first);
            }
        }
    }
    (out, is_well_formed)
}

/// Returns the digit of a value below 16.
fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap_or('0')
}

/// Returns the value of a digit.
fn value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_is_the_reverse_of_encoding() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(
            text.starts_with("000102") && text.ends_with("fdfeff"),
            "{text}"
        );
        assert_eq!(decode(&text), Some(all.clone()));
        assert_eq!(decode(&text.to_uppercase()), Some(all));
        assert_eq!(decode(""), Some(Vec::new()));
    }

    #[test]
    fn percent_escapes_are_decoded_and_malformed_ones_are_kept_or_refused() {
        for (text, bytes, is_well_formed) in [
            ("a%2Fb%2fc", &b"a/b/c"[..], true),
            ("%ff", b"\xff", true),
            ("100%", b"100%", false),
            ("%4", b"%4", false),
            ("%+f%41", b"%+fA", false),
            ("", b"", true),
        ] {
            assert_eq!(percent_decoded_leniently(text), bytes, "{text}");
            let strict = is_well_formed.then(|| bytes.to_vec());
            assert_eq!(percent_decoded(text), strict, "{text}");
        }
    }

    #[test]
    fn text_that_is_not_whole_bytes_is_refused() {
        for text in ["0", "0g", "+f", " 1", "1 ", "ä", "0x01"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert_eq!(decode_array::<2>("00ff"), Some([0, 255]));
        assert_eq!(
            (decode_array::<2>("00"), decode_array::<2>("00ff00")),
            (None, None)
        );
    }
}
