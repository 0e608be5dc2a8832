//! Decides when a request is sent again, and after which pause. Pure.
//!
//! Retried are failed or broken connections, 408, 409, 500, 502, 503, 504, 529 (and an overload
//! that is reported inside of a stream), and 429 if the server names a time. All other requests are
//! sent exactly once.

use reqwest::header::{HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// Default of the longest first pause.
pub const DELAY: Duration = Duration::from_millis(500);
/// Longest pause, unless the server asks for more.
const MAX_PAUSE: Duration = Duration::from_secs(20);
/// Longer than any deadline.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Returns true if an answer with this status is worth a retry.
pub fn is_passing(status: u16, retry_after: Option<Duration>) -> bool {
    match status {
        408 | 409 | 500 | 502 | 503 | 504 | 529 => true,
        429 => retry_after.is_some(),
        _ => false,
    }
}

/// Returns the pause before try `tries` + 1: full jitter over a window that starts with `delay` and
/// doubles, in addition to the pause that the server asks for. `random` is in 0..1.
///
/// The jitter is added to the server's pause: requests that were rejected together must not return
/// together.
pub fn pause(delay: Duration, tries: u32, floor: Option<Duration>, random: f64) -> Duration {
    let window = delay
        .saturating_mul(1 << tries.saturating_sub(1).min(16))
        .min(MAX_PAUSE.max(delay));
    floor
        .unwrap_or_default()
        .saturating_add(window.mul_f64(random.clamp(0.0, 1.0)))
}

/// Returns how long a server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a
/// date (RFC 9110, section 10.2.3).
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    if let Some(ms) = text_of(headers, "retry-after-ms").and_then(|v| seconds(v, 1000.0)) {
        return Some(ms);
    }
    let value = text_of(headers, RETRY_AFTER.as_str())?;
    seconds(value, 1.0).or_else(|| {
        let date = jiff::fmt::rfc2822::DateTimeParser::new()
            .parse_timestamp(value)
            .ok()?;
        // A past time asks for a retry without a pause.
        Some(
            SystemTime::from(date)
                .duration_since(now)
                .unwrap_or_default()
                .min(FOREVER),
        )
    })
}

/// Returns the value of a header without spaces around it; `None` if it is missing or not text.
fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::trim)
}

/// Parses a number such as `3` or `1.5`; `unit` is the number of units in a second.
pub fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let n: f64 = text.parse().ok().filter(|_| is_number)?;
    Some(
        Duration::try_from_secs_f64(n / unit)
            .unwrap_or(FOREVER)
            .min(FOREVER),
    )
}

#[cfg(test)]
mod tests {
    use super::{DELAY, is_passing, pause, retry_after};
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
    use std::time::{Duration, SystemTime};

    #[test]
    fn net_04_net_06_only_what_passes_is_tried_again() {
        let second = Some(Duration::from_secs(1));
        for status in [408, 409, 500, 502, 503, 504, 529] {
            assert!(is_passing(status, None), "{status}");
        }
        for status in [
            300, 301, 302, 307, 400, 401, 402, 403, 404, 407, 413, 422, 501,
        ] {
            assert!(!is_passing(status, second), "{status}");
        }
        assert!(is_passing(429, second) && !is_passing(429, None));
    }

    #[test]
    fn net_05_pauses_grow_and_are_spread() {
        let most: Vec<_> = (1..=8)
            .map(|n| pause(DELAY, n, None, 1.0).as_millis())
            .collect();
        assert_eq!(most, [500, 1000, 2000, 4000, 8000, 16000, 20000, 20000]);
        let minute = Duration::from_secs(60);
        assert_eq!(pause(minute, 1, None, 1.0), minute);
        assert_eq!(pause(DELAY, 3, None, 0.0), Duration::ZERO);
        assert_eq!(pause(DELAY, 3, None, 0.5), Duration::from_secs(1));
        assert_eq!(pause(DELAY, u32::MAX, None, 1.0), Duration::from_secs(20));
    }

    #[test]
    fn net_02_what_the_server_asks_for_is_the_least() {
        let floor = Duration::from_secs(7);
        assert_eq!(pause(DELAY, 1, Some(floor), 0.0), floor);
        assert!(pause(DELAY, 1, Some(floor), 0.9) > floor);
        assert_eq!(pause(DELAY, 1, Some(Duration::MAX), 0.9), Duration::MAX);
    }

    #[test]
    fn every_form_of_retry_after_is_read() {
        // 1994-11-06T08:49:37Z, the example of RFC 9110.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (name, value, expected) in [
            ("retry-after", "120", Some(120_000)),
            ("retry-after", " 1.5 ", Some(1_500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT", Some(60_000)),
            ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            (
                "retry-after",
                "99999999999999999999999",
                Some(365 * 24 * 3_600_000),
            ),
            ("retry-after", "-1", None),
            ("retry-after", "NaN", None),
            ("retry-after", "inf", None),
            ("retry-after", "soon", None),
            ("retry-after", "", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
            assert_eq!(
                retry_after(&headers, now).map(|d| d.as_millis()),
                expected,
                "{value}"
            );
        }
    }
}
