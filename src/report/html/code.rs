//! A line of code as markup: marks, syntax colours, escapes of hidden characters, and a window onto
//! long lines.

use super::markup::{Markup, cut};
use crate::report::paint::{Painted, SyntaxKind};
use crate::report::words::grouped;
use crate::untrusted::{Inert, pieces};
use std::ops::Range;

/// Bytes that a truncated line shows before a mark.
const LEAD: usize = 120;

/// A line with its highlighted parts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HighlightedLine<'a> {
    pub(super) text: &'a [u8],
    /// Bytes that were removed from the start of the line.
    pub(super) skipped: usize,
    /// Position of the finding, in bytes of `text`.
    pub(super) mark: Option<(usize, usize)>,
    /// Changed words of the line, in order.
    pub(super) words: &'a [Range<usize>],
    /// The syntax of its parts, in order.
    pub(super) paint: &'a [Painted],
    /// Bytes to show, at most.
    pub(super) most: usize,
}

impl HighlightedLine<'_> {
    /// Appends the line.
    pub(super) fn write(&self, out: &mut Markup) {
        let shown = self.window();
        let left = self.skipped + shown.start;
        if left > 0 {
            self.left_out(left, "before", out);
        }
        let text = &self.text[shown.clone()];
        let is_plain = |t: &[u8]| {
            t.iter().all(|b| matches!(b, b' '..=b'~')) && memchr::memmem::find(t, b"##").is_none()
        };
        if is_plain(text) {
            self.plain(shown.clone(), out);
        } else {
            self.pieces(shown.clone(), out);
        }
        let right = self.text.len() - shown.end;
        if right > 0 {
            self.left_out(right, "more", out);
        }
    }

    fn left_out(&self, bytes: usize, which: &'static str, out: &mut Markup) {
        out.raw("<i class=x>")
            .inert(&format!("… {} bytes {which} …", grouped(bytes as u64)))
            .raw("</i>");
    }

    /// Returns the shown part: the start of the line, or the part around the mark.
    fn window(&self) -> Range<usize> {
        if self.text.len() <= self.most {
            return 0..self.text.len();
        }
        let start = match self.mark {
            Some((start, end)) if end.min(start + self.most / 2) > self.most => cut(
                self.text,
                start.saturating_sub(LEAD).min(self.text.len() - self.most),
            ),
            _ => 0,
        };
        start..start + cut(&self.text[start..], self.most)
    }

    /// Returns the style of a byte: marked, part of a changed word, a comment, …
    fn look(&self, at: usize) -> CodeStyle {
        let word = self.words.partition_point(|w| w.end <= at);
        let is_word = self.words.get(word).is_some_and(|w| w.start <= at);
        let part = self.paint.partition_point(|p| p.range.end <= at);
        let kind = self
            .paint
            .get(part)
            .filter(|p| p.range.start <= at)
            .map(|p| p.kind);
        let mark = self
            .mark
            .is_some_and(|(start, end)| start <= at && at < end);
        CodeStyle {
            mark,
            word: is_word,
            kind,
            escaped: false,
        }
    }

    /// Writes text without bytes that need an escape.
    fn plain(&self, shown: Range<usize>, out: &mut Markup) {
        let mark = self
            .mark
            .map(|(start, end)| [start, end])
            .into_iter()
            .flatten();
        let words = self.words.iter().flat_map(|w| [w.start, w.end]);
        let parts = self.paint.iter().flat_map(|p| [p.range.start, p.range.end]);
        let mut cuts: Vec<usize> = mark
            .chain(words)
            .chain(parts)
            .filter(|c| shown.contains(c) && *c > shown.start)
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts.push(shown.end);
        let mut at = shown.start;
        for end in cuts {
            let part = String::from_utf8_lossy(&self.text[at..end]);
            run(&part, self.look(at), out);
            at = end;
        }
    }

    /// Writes any text, character by character.
    fn pieces(&self, shown: Range<usize>, out: &mut Markup) {
        let mut at = shown.start;
        let mut open: Option<(CodeStyle, Vec<_>)> = None;
        for piece in pieces(&self.text[shown]) {
            let look = CodeStyle {
                escaped: piece.is_escaped(),
                ..self.look(at)
            };
            at += piece.bytes();
            match &mut open {
                Some((before, run)) if *before == look => run.push(piece),
                _ => {
                    if let Some((look, pieces)) = open.replace((look, vec![piece])) {
                        run(pieces.iter().collect::<Inert>().as_str(), look, out);
                    }
                }
            }
        }
        if let Some((look, pieces)) = open {
            run(pieces.iter().collect::<Inert>().as_str(), look, out);
        }
    }
}

/// The style of a part of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CodeStyle {
    mark: bool,
    word: bool,
    kind: Option<SyntaxKind>,
    /// The text is the name of a hidden character, not source code.
    escaped: bool,
}

/// Returns the opening tag of a part.
fn tag(kind: SyntaxKind) -> &'static str {
    match kind {
        SyntaxKind::Comment => "<span class=c>",
        SyntaxKind::String => "<span class=s>",
        SyntaxKind::Keyword => "<span class=k>",
        SyntaxKind::Number => "<span class=v>",
    }
}

/// Writes a run of characters of one style.
fn run(text: &str, look: CodeStyle, out: &mut Markup) {
    let kind = look.kind.filter(|_| !look.escaped);
    let tags = [
        (look.mark, "<mark>", "</mark>"),
        (look.word, "<b>", "</b>"),
        (look.escaped, "<i>", "</i>"),
        (kind.is_some(), kind.map_or("", tag), "</span>"),
    ];
    for (_, open, _) in tags.iter().filter(|t| t.0) {
        out.raw(open);
    }
    out.inert(text);
    for (_, _, close) in tags.iter().rev().filter(|t| t.0) {
        out.raw(close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(code: HighlightedLine<'_>) -> String {
        let mut out = Markup::default();
        code.write(&mut out);
        out.as_str().to_owned()
    }

    #[test]
    fn marks_and_changed_words_are_elements_and_the_rest_is_text() {
        let code = HighlightedLine {
            text: b"a <b> && \"c\"",
            most: 100,
            ..HighlightedLine::default()
        };
        assert_eq!(shown(code), "a &lt;b&gt; &amp;&amp; &quot;c&quot;");
        assert_eq!(
            shown(HighlightedLine {
                mark: Some((2, 5)),
                words: &[0..1, 3..4],
                ..code
            }),
            "<b>a</b> <mark>&lt;</mark><mark><b>b</b></mark><mark>&gt;</mark> &amp;&amp; &quot;c&quot;"
        );
    }

    #[test]
    fn syntax_is_coloured_within_marks_and_not_in_escapes() {
        let paint = [
            Painted {
                range: 0..2,
                kind: SyntaxKind::Keyword,
            },
            Painted {
                range: 5..8,
                kind: SyntaxKind::Comment,
            },
        ];
        let code = HighlightedLine {
            text: b"if x # a",
            most: 100,
            paint: &paint,
            ..HighlightedLine::default()
        };
        assert_eq!(
            shown(code),
            "<span class=k>if</span> x <span class=c># a</span>"
        );
        let marked = HighlightedLine {
            mark: Some((3, 6)),
            ..code
        };
        assert_eq!(
            shown(marked),
            "<span class=k>if</span> <mark>x </mark><mark><span class=c>#</span></mark><span class=c> a</span>"
        );
        let hidden = HighlightedLine {
            text: "if x #\u{202e}".as_bytes(),
            ..code
        };
        assert_eq!(
            shown(hidden),
            "<span class=k>if</span> x <span class=c>#</span><i>\\u{202e}</i>"
        );
    }

    #[test]
    fn inj_10_what_hides_is_shown_and_told_apart() {
        let code = HighlightedLine {
            text: "a\u{202e}<\x1b[2Ké".as_bytes(),
            most: 100,
            ..HighlightedLine::default()
        };
        assert_eq!(shown(code), "a<i>\\u{202e}</i>&lt;<i>\\x1b</i>[2Ké");
        let mark = HighlightedLine {
            mark: Some((1, 4)),
            ..code
        };
        assert_eq!(
            shown(mark),
            "a<mark><i>\\u{202e}</i></mark>&lt;<i>\\x1b</i>[2Ké"
        );
        assert_eq!(
            shown(HighlightedLine {
                text: b"\tx\xff",
                ..code
            }),
            "    x<i>\\xff</i>"
        );
    }

    #[test]
    fn a_long_line_is_shown_where_its_mark_is() {
        let text = [&[b'x'; 5_000][..], b"eval(y)", &[b'x'; 5_000]].concat();
        let code = HighlightedLine {
            text: &text,
            most: 400,
            ..HighlightedLine::default()
        };
        let out = shown(code);
        assert!(
            out.starts_with("xxx") && out.ends_with("<i class=x>… 9,607 bytes more …</i>"),
            "{out}"
        );
        let out = shown(HighlightedLine {
            mark: Some((5_000, 5_007)),
            skipped: 7,
            ..code
        });
        assert!(
            out.starts_with("<i class=x>… 4,887 bytes before …</i>xxx"),
            "{out}"
        );
        assert!(out.contains("<mark>eval(y)</mark>"), "{out}");
    }
}
