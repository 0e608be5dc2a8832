//! Names of sessions: `2026-01-31-007`.

use jiff::civil::Date;
use std::fmt;

/// The name of a stored session: the day it began (UTC) and its number on that day, from 1.
///
/// Ordered by day, then number. Only the canonical form is accepted, so a name is safe in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    date: Date,
    number: u32,
}

/// Highest number of a day: nine digits.
const LAST: u32 = 999_999_999;

impl SessionId {
    /// Parses a name in its canonical form: `YYYY-MM-DD-NNN`, with a valid date, and three digits
    /// or more if the number needs them.
    pub fn parse(name: &str) -> Option<Self> {
        let bytes = name.as_bytes();
        if !(14..=20).contains(&bytes.len())
            || bytes[4] != b'-'
            || bytes[7] != b'-'
            || bytes[10] != b'-'
        {
            return None;
        }
        let (year, month, day) = (
            number_of(&bytes[0..4])?,
            number_of(&bytes[5..7])?,
            number_of(&bytes[8..10])?,
        );
        let number = number_of(&bytes[11..])?;
        let padded = bytes.len() > 14 && bytes[11] == b'0';
        if number == 0 || padded {
            return None;
        }
        let date = Date::new(
            i16::try_from(year).ok()?,
            i8::try_from(month).ok()?,
            i8::try_from(day).ok()?,
        )
        .ok()?;
        Some(Self { date, number })
    }

    /// Returns the first name of a day.
    pub(super) fn first(date: Date) -> Self {
        Self { date, number: 1 }
    }

    /// Returns the next name of the same day, or `None` after the last one.
    pub(super) fn next(self) -> Option<Self> {
        (self.number < LAST).then_some(Self {
            number: self.number + 1,
            ..self
        })
    }

    /// Returns the day.
    pub fn date(self) -> Date {
        self.date
    }
}

/// Returns the number that at most nine digits stand for.
fn number_of(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |n, b| {
        Some(n * 10 + b.is_ascii_digit().then(|| u32::from(b - b'0'))?)
    })
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = (self.date.year(), self.date.month(), self.date.day());
        write!(f, "{year:04}-{month:02}-{day:02}-{:03}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_a_name() {
        for name in [
            "2026-01-31-001",
            "2038-01-19-999",
            "2026-02-28-1000",
            "0001-01-01-999999999",
            "9999-12-31-010",
        ] {
            assert_eq!(
                SessionId::parse(name).map(|id| id.to_string()).as_deref(),
                Some(name)
            );
        }
        for name in [
            "",
            "latest",
            "2026-01-31",
            "2026-01-31-",
            "2026-01-31-1",
            "2026-01-31-000",
            "2026-01-31-0001",
            "2026-02-30-001",
            "2026-13-01-001",
            "2026-1-31-0011",
            "2026-01-31-001/",
            "2026-01-31-+01",
            "../../2026-01-31-001",
            "2026-01-31-001\0",
            "2026-01-31-9999999999",
            "２０２６-01-31-001",
            " 2026-01-31-001",
            "2026-01-31-00a",
        ] {
            assert_eq!(SessionId::parse(name), None, "{name:?}");
        }
    }

    #[test]
    fn names_are_ordered_by_day_and_number() {
        let names = [
            "2025-12-31-1000",
            "2026-01-01-001",
            "2026-01-01-999",
            "2026-01-01-1000",
            "2026-01-02-001",
        ];
        assert!(
            names
                .windows(2)
                .all(|w| SessionId::parse(w[0]) < SessionId::parse(w[1]))
        );
        assert_eq!(
            SessionId::parse(names[2]).and_then(SessionId::next),
            SessionId::parse(names[3])
        );
        assert_eq!(
            SessionId::parse("2026-01-01-999999999").and_then(SessionId::next),
            None
        );
    }
}
