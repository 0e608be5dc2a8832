//! UTF-7 (RFC 2152): characters as runs of base 64 between `+` and `-`, in a text that looks like
//! ASCII.

/// Returns true if a text has a run of UTF-7 that contains an ASCII character.
pub(in crate::diff) fn is_used(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(plus) = memchr::memchr(b'+', &text[at..]).map(|i| at + i) {
        let digits = digits(&text[plus + 1..]);
        if run(digits).is_some() {
            return true;
        }
        // A `+` among the digits does not start another run.
        at = plus + 1 + digits.len();
    }
    false
}

/// Decodes the runs of a line that contain an ASCII character; `None` if there are none. A line end
/// in a run becomes a blank, so that the result is still one line.
pub(in crate::diff) fn decode(line: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut done, mut at) = (Vec::with_capacity(line.len()), 0, 0);
    while let Some(plus) = memchr::memchr(b'+', &line[at..]).map(|i| at + i) {
        let digits = digits(&line[plus + 1..]);
        at = plus + 1 + digits.len();
        let Some(text) = run(digits) else { continue };
        out.extend_from_slice(&line[done..plus]);
        out.extend(
            text.bytes()
                .map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }),
        );
        at += usize::from(line.get(at) == Some(&b'-'));
        done = at;
    }
    out.extend_from_slice(&line[done..]);
    (done > 0).then_some(out)
}

/// Returns the base-64 digits at the start of a text.
fn digits(rest: &[u8]) -> &[u8] {
    let length = rest
        .iter()
        .position(|b| digit(*b).is_none())
        .unwrap_or(rest.len());
    &rest[..length]
}

/// Bytes of a run that is decoded, at most: base 64 from other sources may be megabytes on one
/// line.
const RUN_MAX: usize = 64 << 10;

/// Decodes the digits of a run.
fn run(digits: &[u8]) -> Option<String> {
    if !(3..=RUN_MAX).contains(&digits.len()) {
        return None;
    }
    let (mut bits, mut count, mut units) = (0u32, 0, Vec::with_capacity(digits.len() * 6 / 16));
    for value in digits.iter().filter_map(|b| digit(*b)) {
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 16 {
            count -= 16;
            units.push((bits >> count) as u16);
            bits &= (1 << count) - 1;
        }
    }
    // The remaining bits must be zero, and fewer than a digit has.
    if bits != 0 || count >= 6 {
        return None;
    }
    let text = String::from_utf16(&units).ok()?;
    let is_text = text
        .chars()
        .all(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r'));
    let has_ascii = text.bytes().any(|b| b.is_ascii_graphic());
    (is_text && has_ascii).then_some(text)
}

fn digit(b: u8) -> Option<u8> {
    Some(match b {
        b'A'..=b'Z' => b - b'A',
        b'a'..=b'z' => b - b'a' + 26,
        b'0'..=b'9' => b - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_with_ascii_are_decoded() {
        for (line, want) in [
            ("a +AD0- +ACI-b+ACI-", "a = \"b\""),
            ("+AGUAdgBhAGw-(x)", "eval(x)"),
            ("+AGUAdgBhAGw(x)", "eval(x)"),
            ("+bUuL1WUHAGUAdgBhAGw-", "\u{6d4b}\u{8bd5}\u{6507}eval"),
        ] {
            assert_eq!(
                decode(line.as_bytes()).as_deref(),
                Some(want.as_bytes()),
                "{line}"
            );
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for line in [
            "a+b",
            "x += +y",
            "i+ABC-1",
            "+-",
            "C++",
            "'+12345678'",
            "+AAA-",
            "tel:+49301234567",
            "sha1+abcd",
        ] {
            assert_eq!(decode(line.as_bytes()), None, "{line}");
        }
    }
}
