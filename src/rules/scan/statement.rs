//! The statement around a match, which can make the match harmless.

use super::super::lexer::Place;
use std::ops::Range;

/// The statement of the match that was judged last. Ranges are bytes of the current block.
///
/// A long statement with many matches is read once and not for each of them.
#[derive(Clone, Debug)]
pub(super) struct KnownStatement {
    /// The part of the line that was searched.
    line: Range<usize>,
    /// End of the match.
    end: usize,
    statement: Range<usize>,
}

impl KnownStatement {
    /// Returns the statement if it is also that of a later match in the same part of the line: no
    /// statement and no comment starts between the two.
    pub(super) fn of(&self, line: &Range<usize>, span: &Range<usize>) -> Option<Range<usize>> {
        let is_same =
            self.line == *line && self.end <= span.start && span.end <= self.statement.end;
        is_same.then(|| self.statement.clone())
    }

    /// Remembers the statement of a match. `None`: the match has the end of a statement, so the
    /// next one is in another.
    pub(super) fn new(
        text: &[u8],
        line: Range<usize>,
        span: &Range<usize>,
        statement: Range<usize>,
        place_at: impl FnMut(usize) -> Place,
    ) -> Option<Self> {
        last_end(text, span.clone(), place_at)
            .is_none()
            .then_some(Self {
                line,
                end: span.end,
                statement,
            })
    }
}

/// Returns the statement around a match without a comment behind it: the part of the line between
/// the semicolons in code. Reads only that part.
pub(super) fn around(
    text: &[u8],
    line: &Range<usize>,
    span: &Range<usize>,
    mut place_at: impl FnMut(usize) -> Place,
) -> Range<usize> {
    let start = last_end(text, line.start..span.start, &mut place_at);
    let end = (span.end..line.end).find(|at| match text[*at] {
        b';' => place_at(*at) != Place::String,
        b'/' | b'#' | b'-' | b'<' | b'*' | b'!' => place_at(*at) == Place::Comment,
        _ => false,
    });
    start.map_or(line.start, |at| at + 1)..end.unwrap_or(line.end)
}

/// Returns the last semicolon in code of a part of a text.
fn last_end(
    text: &[u8],
    part: Range<usize>,
    mut place_at: impl FnMut(usize) -> Place,
) -> Option<usize> {
    memchr::memrchr_iter(b';', text.get(part.clone())?)
        .map(|at| part.start + at)
        .find(|at| place_at(*at) == Place::Code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_between_the_semicolons_in_code() {
        let text = b"a; f(x); b // c";
        let place = |at: usize| if at < 11 { Place::Code } else { Place::Comment };
        assert_eq!(around(text, &(0..15), &(3..7), place), 2..7);
        assert_eq!(around(text, &(0..15), &(9..10), place), 8..11);
        let string = |_: usize| Place::String;
        assert_eq!(around(text, &(0..15), &(3..7), string), 0..15);
    }

    #[test]
    fn slo_01_a_statement_with_many_matches_is_read_once() {
        let text = "f(-1), ".repeat(10_000);
        let (line, mut asked) = (0..text.len(), 0);
        let mut known: Option<KnownStatement> = None;
        for n in 0..10_000 {
            let span = n * 7..n * 7 + 2;
            let statement = known.take().and_then(|k| k.of(&line, &span));
            let mut place = |_: usize| {
                asked += 1;
                Place::Code
            };
            let statement =
                statement.unwrap_or_else(|| around(text.as_bytes(), &line, &span, &mut place));
            assert_eq!(statement, line);
            known = KnownStatement::new(text.as_bytes(), line.clone(), &span, statement, place);
        }
        assert!(asked <= 10_000, "{asked}");
    }
}
