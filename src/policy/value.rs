//! Values as files, variables and flags spell them.

use std::time::Duration;

/// Parses a duration: one or more numbers with a unit, largest first (`90s`, `2m`, `1h30m`, `500ms`).
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let (mut total, mut last) = (Duration::ZERO, u64::MAX);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let n: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let unit = match &rest[..letters] {
            "ms" => 1,
            "s" | "sec" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        if unit >= last {
            return None;
        }
        last = unit;
        total = total.checked_add(Duration::from_millis(n.checked_mul(unit)?))?;
        rest = rest[letters..].trim_start();
    }
    Some(total)
}

/// Writes a duration as [`parse_duration`] reads it.
pub fn show_duration(d: Duration) -> String {
    let mut left = d.as_millis();
    let mut text = String::new();
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            text.push_str(&format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written_alike() {
        for (text, ms) in [("2m", 120_000), ("90s", 90_000), ("1h30m", 5_400_000), ("500ms", 500), ("1m 5s", 65_000)] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(ms)), "{text}");
            assert_eq!(parse_duration(&show_duration(Duration::from_millis(ms))), Some(Duration::from_millis(ms)));
        }
        for text in ["", "2", "m", "2 fortnights", "30s1h", "1s1s", "-1s", "1.5h", "99999999999999999999s", "2µs"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }
}
