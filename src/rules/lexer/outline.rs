//! Lexer results for reports: the comment syntax of a file, and the comments and strings of a text.

use super::{Lexer, Place, SYNTAXES, Syntax};
use crate::rules::language::Languages;
use std::ops::Range;

/// The text before and after a comment on a line of its own. The second part is empty for comments
/// that end with the line.
pub(in crate::rules) type Delimiters = (&'static str, &'static str);

/// Returns the syntax with the highest priority for a file. `None`: no language of the file has
/// one.
fn syntax_of(languages: Languages) -> Option<&'static Syntax> {
    SYNTAXES.iter().find(|s| languages.any_of(s.languages))
}

/// Returns the comment syntax of a file in these languages. `None`: the format has no comments or
/// is unknown.
pub(in crate::rules) fn comment(languages: Languages) -> Option<Delimiters> {
    // JSON has no comments, although the lexer accepts those that some tools allow. A comment in
    // the wrong position of a page with code, such as Vue or ERB, would be shown to the visitor.
    if languages.any_of(&["json", "notebook", "vue"]) || is_page_with_code(languages) {
        return None;
    }
    let syntax = syntax_of(languages)?;
    let line = syntax.line.first().or(syntax.line_start.first());
    line.map(|open| (open.trim_end(), ""))
        .or_else(|| syntax.block.first().copied())
}

fn is_page_with_code(languages: Languages) -> bool {
    languages.any_of(&["html"]) && languages.names().count() > 1
}

/// Returns the names of the languages of a path.
pub(crate) fn languages_of(path: &[u8]) -> impl Iterator<Item = &'static str> {
    Languages::of(path, b"").names()
}

/// Returns true if all languages of a path have the same comments and strings.
pub(crate) fn has_one_syntax(path: &[u8]) -> bool {
    let languages = Languages::of(path, b"");
    let Some(syntax) = syntax_of(languages) else {
        return false;
    };
    let read = Languages::of_names(syntax.languages).with(Languages::of_names(syntax.within));
    languages.without(read).is_empty()
}

/// Returns the comments and strings of a text that starts in code, in order and without overlap.
pub(crate) fn outline(path: &[u8], text: &[u8]) -> Vec<(Range<usize>, Place)> {
    outline_of(Languages::of(path, b""), text)
}

/// Returns the comments and strings of a text in these languages as ranges in order.
pub(in crate::rules) fn not_code(languages: Languages, text: &[u8]) -> Vec<Range<usize>> {
    outline_of(languages, text)
        .into_iter()
        .map(|(range, _)| range)
        .collect()
}

fn outline_of(languages: Languages, text: &[u8]) -> Vec<(Range<usize>, Place)> {
    let Some(syntax) = syntax_of(languages) else {
        return Vec::new();
    };
    let mut lexer = Lexer::new(text, Some(syntax), false);
    let mut out: Vec<(Range<usize>, Place)> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let place = lexer.place_at(at);
        let end = lexer.end_at(at).max(at + 1);
        match out.last_mut() {
            Some((range, known)) if range.end == at && *known == place => range.end = end,
            _ => out.push((at..end, place)),
        }
        at = end;
    }
    out.retain(|(_, place)| *place != Place::Code);
    out
}

impl Lexer<'_> {
    /// Returns the end of the token whose position [`Lexer::place_at`] returned for this byte.
    fn end_at(&self, at: usize) -> usize {
        let part = if self.is_split { self.kept(at) } else { None };
        part.unwrap_or(self.token).end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_written_as_the_language_of_the_file_wants_it() {
        for (path, expected) in [
            ("a.py", Some(("#", ""))),
            ("a.rs", Some(("//", ""))),
            ("Dockerfile", Some(("#", ""))),
            ("a.sql", Some(("--", ""))),
            ("a.css", Some(("/*", "*/"))),
            ("a.md", Some(("<!--", "-->"))),
            ("a.html", Some(("<!--", "-->"))),
            ("a.bat", Some(("rem", ""))),
            (".github/workflows/a.yml", Some(("#", ""))),
            ("a.json", None),
            ("a.vue", None),
            ("a.html.erb", None),
            ("a.unknown", None),
        ] {
            assert_eq!(
                comment(Languages::of(path.as_bytes(), b"")),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn comments_and_strings_are_found_and_code_in_strings_is_code() {
        fn places<'t>(path: &str, text: &'t str) -> Vec<(&'t str, Place)> {
            let all = outline(path.as_bytes(), text.as_bytes());
            all.into_iter()
                .map(|(range, place)| (&text[range], place))
                .collect()
        }
        assert_eq!(
            places("a.py", "x = f\"a{b}c\" # \"d\"\ny = 'e'\n"),
            [
                ("\"a", Place::String),
                ("c\"", Place::String),
                ("# \"d\"", Place::Comment),
                ("'e'", Place::String)
            ]
        );
        assert_eq!(
            places("a.c", "/* a\nb */ int c;"),
            [("/* a\nb */", Place::Comment)]
        );
        assert_eq!(places("a.unknown", "# \"a\""), []);
    }
}
