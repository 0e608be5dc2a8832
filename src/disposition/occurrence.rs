//! The occurrence of a decision's text among equal texts of its file.

use std::fmt;

/// The content that a decision is bound to, in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidedContent {
    /// The unmasked lines of the finding, or its whole file.
    pub text: Vec<u8>,
    pub occurrence: Occurrence,
}

/// The position of a text among the equal ones of its file. White space at the ends of lines is
/// ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Occurrence {
    /// Number of the occurrence, 1-based, in the order of the file.
    pub number: u32,
    /// Number of occurrences in the file.
    pub total: u32,
}

impl Occurrence {
    /// The only occurrence.
    pub const ONLY: Self = Self {
        number: 1,
        total: 1,
    };

    /// Finds the position of `count` lines from index `first` among the equal ones of all lines.
    /// Equal texts may overlap.
    pub fn of(all: &[&[u8]], first: usize, count: usize) -> Self {
        let Some(wanted) = all.get(first..first + count) else {
            return Self::ONLY;
        };
        let mut out = Self {
            number: 0,
            total: 0,
        };
        for (at, lines) in all.windows(count.max(1)).enumerate() {
            if lines
                .iter()
                .zip(wanted)
                .all(|(a, b)| a.trim_ascii() == b.trim_ascii())
            {
                out.total += 1;
                out.number += u32::from(at <= first);
            }
        }
        if out.number == 0 { Self::ONLY } else { out }
    }

    /// Parses the output of [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let (number, total) = text.split_once(" of ")?;
        let out = Self {
            number: number.parse().ok()?,
            total: total.parse().ok()?,
        };
        ((1..=out.total).contains(&out.number) && out.to_string() == text).then_some(out)
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the occurrence of some lines of a small file.
    fn of(first: usize, count: usize) -> String {
        let text = b"a\n b\na\n\tb\r\na\nc\nb";
        let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
        Occurrence::of(&lines, first, count).to_string()
    }

    #[test]
    fn equal_lines_are_numbered_in_the_order_of_the_file() {
        assert_eq!(
            [of(0, 1), of(2, 1), of(4, 1)],
            ["1 of 3", "2 of 3", "3 of 3"]
        );
        assert_eq!(
            [of(1, 1), of(3, 1), of(6, 1)],
            ["1 of 3", "2 of 3", "3 of 3"]
        );
        assert_eq!(
            [of(0, 2), of(2, 2), of(4, 2), of(5, 1)],
            ["1 of 2", "2 of 2", "1 of 1", "1 of 1"]
        );
        assert_eq!(of(6, 3), "1 of 1", "outside of the file");
    }

    #[test]
    fn an_occurrence_is_read_as_it_is_written() {
        for text in ["1 of 1", "2 of 3", "3 of 3"] {
            assert_eq!(Occurrence::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "0 of 1",
            "2 of 1",
            "1",
            "1 of",
            "+1 of 2",
            "01 of 2",
            "1 of 2 ",
            "1 of 5000000000",
        ] {
            assert_eq!(Occurrence::parse(text), None, "{text}");
        }
    }
}
