//! Hexadecimal digits of bytes. Pure.

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
