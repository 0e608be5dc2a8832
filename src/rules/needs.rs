//! Words that a line must have for a pattern to match it. Searching for them costs much less than
//! compiling the pattern.

#[cfg(test)]
mod derive;
mod token;

use std::ops::Range;
use token::is_token;

/// Bytes of a line that are copied in lowercase, at most.
const MOST_LINE: usize = 1 << 20;

/// Requirements on a line for a pattern to match it. The build script derives them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Groups of lowercase texts. A line needs one text of each group, in any case, in order and
    /// without overlaps.
    pub(crate) words: &'static [&'static [&'static [u8]]],
    /// Consecutive bytes of tokens. 0: the search is not worth its cost.
    pub(crate) run: u16,
}

impl Needs {
    /// The needs of a pattern that is always evaluated.
    pub(crate) const NONE: Self = Self { words: &[], run: 0 };

    /// Returns true if a line has what the pattern needs, or is too long to be copied for the
    /// answer.
    pub(super) fn are_met_by(self, line: &[u8]) -> bool {
        line.len() > MOST_LINE || Lowered::default().meets(self, line, &(0..line.len()))
    }

    /// Returns true if a text in lowercase has a text of each group, in order. The earliest end of
    /// each text leaves the most for the rest.
    fn are_in(self, text: &[u8]) -> bool {
        let mut from = 0;
        self.words.iter().all(|group| {
            let rest = text.get(from..).unwrap_or_default();
            let end = group
                .iter()
                .filter_map(|word| Some(memchr::memmem::find(rest, word)? + word.len()))
                .min();
            from += end.unwrap_or(0);
            end.is_some()
        })
    }
}

/// The part of a text that was searched most recently, in lowercase.
#[derive(Debug, Default)]
pub(super) struct Lowered {
    window: Range<usize>,
    text: Vec<u8>,
    /// The longest run of bytes of tokens.
    run: usize,
}

impl Lowered {
    /// Returns true if a part of a text meets the needs of a pattern. All calls must use the same
    /// text.
    pub(super) fn meets(&mut self, needs: Needs, text: &[u8], window: &Range<usize>) -> bool {
        if needs == Needs::NONE {
            return true;
        }
        if self.window != *window {
            self.text.clear();
            self.text
                .extend(text[window.clone()].iter().map(u8::to_ascii_lowercase));
            self.window = window.clone();
            self.run = self
                .text
                .split(|b| !is_token(*b))
                .map(<[u8]>::len)
                .max()
                .unwrap_or(0);
        }
        if self.run < usize::from(needs.run) {
            return false;
        }
        needs.are_in(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::catalog::{Matcher, RULES};
    use crate::rules::expression::compile;

    /// The test compares the words with the compiled expression itself.
    #[test]
    fn a_line_that_matches_has_what_its_pattern_needs() {
        let (mut lines, mut filtered) = (0, 0);
        for owner in RULES.iter() {
            let pattern = (owner.matcher == Matcher::Pattern)
                .then(|| compile(&owner.pattern, false).unwrap());
            let samples = [owner.bad.as_deref(), owner.good.as_deref()];
            for line in samples.into_iter().flatten().flat_map(str::lines) {
                let text = line.as_bytes();
                let is_match = pattern.as_ref().is_some_and(|p| p.is_match(text));
                let mut lowered = Lowered::default();
                for rule in RULES.iter().filter(|r| r.matcher == Matcher::Pattern) {
                    let meets = lowered.meets(rule.needs, text, &(0..text.len()));
                    assert!(
                        meets || !is_match || !std::ptr::eq(rule, owner),
                        "{} needs {:?}, and matches {line}",
                        rule.id,
                        rule.needs
                    );
                    lines += 1;
                    filtered += usize::from(!meets);
                }
            }
        }
        assert!(
            filtered * 10 > lines * 9,
            "{filtered} of {lines} lines need no pattern"
        );
    }

    #[test]
    fn the_case_of_letters_does_not_count_and_each_window_is_read_anew() {
        let text = b"aB = EVAL(x)\n";
        let mut lowered = Lowered::default();
        fn words(words: &'static [&'static [&'static [u8]]]) -> Needs {
            Needs { words, run: 0 }
        }
        assert!(lowered.meets(
            words(&[&[b"ab", b"zz"], &[b"eval("]]),
            text,
            &(0..text.len())
        ));
        assert!(!lowered.meets(words(&[&[b"ab"]]), text, &(3..text.len())));
        assert!(
            !lowered.meets(words(&[&[b"eval"], &[b"ab"]]), text, &(0..text.len())),
            "in the other order"
        );
        assert!(
            !lowered.meets(words(&[&[b"("], &[b"("]]), text, &(0..text.len())),
            "once"
        );
        assert!(
            lowered.meets(
                words(&[&[b"eval(x", b"ev"], &[b"("]]),
                text,
                &(0..text.len())
            ),
            "the shorter one"
        );
        assert!(lowered.meets(Needs::NONE, text, &(0..0)));
    }

    #[test]
    fn a_token_of_the_needed_length_is_on_the_line() {
        let text = b"key = 'abcdefgh01234567.x'";
        let mut lowered = Lowered::default();
        assert!(lowered.meets(
            Needs {
                words: &[],
                run: 16
            },
            text,
            &(0..text.len())
        ));
        assert!(!lowered.meets(
            Needs {
                words: &[],
                run: 17
            },
            text,
            &(0..text.len())
        ));
    }
}
