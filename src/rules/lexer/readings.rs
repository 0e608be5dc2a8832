//! One text in several syntaxes: a file whose name has two languages is read in both.

use super::{Habit, Lexer, Place, SYNTAXES, Syntax, php_opener, start_of};
use crate::rules::language::Languages;

/// A text as read by each of its possible syntaxes.
///
/// A comment in one language can be code in another: `"""` opens a string of Python and has no
/// meaning in a Dockerfile. A rule uses only the syntaxes of its own languages.
#[derive(Debug)]
pub(in crate::rules) struct Readings<'t> {
    /// At least one, each with the languages that it reads.
    lexers: Vec<(Languages, Lexer<'t>)>,
    /// True for pages with code in them, such as ERB and JSP. `#` and quotes of the page do not
    /// open anything in the code.
    is_page: bool,
}

impl<'t> Readings<'t> {
    /// Starts at the start of a text, in code. `is_whole`: the text is a whole file, not a part
    /// that a patch shows.
    pub(in crate::rules) fn new(text: &'t [u8], languages: Languages, is_whole: bool) -> Self {
        let mut left = languages;
        let mut lexers = Vec::with_capacity(1);
        for syntax in SYNTAXES {
            if !left.is_empty() && left.any_of(syntax.languages) {
                let read =
                    Languages::of_names(syntax.languages).with(Languages::of_names(syntax.within));
                left = left.without(read);
                let starts = starts(syntax, text, is_whole).iter();
                lexers
                    .extend(starts.map(|outside| (read, Lexer::new(text, Some(syntax), *outside))));
            }
        }
        // Languages without a known syntax, or none at all: everything is code.
        if !left.is_empty() || lexers.is_empty() {
            lexers.push((left, Lexer::new(text, None, false)));
        }
        let is_page = languages.any_of(&["html"]) && lexers.len() > 1;
        Self { lexers, is_page }
    }

    /// Returns the lexical position of a byte in the first of the syntaxes: code, string or
    /// comment.
    pub(in crate::rules) fn place_at(&mut self, at: usize) -> Place {
        self.lexers
            .first_mut()
            .map_or(Place::Code, |(_, lexer)| lexer.place_at(at))
    }

    /// Returns true if a byte is in a position that a rule for these languages admits, in one of
    /// their syntaxes. Without languages, in any syntax.
    pub(in crate::rules) fn admits(
        &mut self,
        place: Place,
        languages: Languages,
        at: usize,
    ) -> bool {
        let mut lexers = self
            .lexers
            .iter_mut()
            .filter(|(read, _)| languages.is_empty() || read.overlaps(languages));
        let is_in_code = self.is_page && place.admits(Place::Code);
        place == Place::Any
            || is_in_code
            || lexers.any(|(_, lexer)| place.admits(lexer.place_at(at)))
    }

    /// Returns true if a byte is in a comment in every syntax of these languages. Without
    /// languages, in every syntax.
    pub(in crate::rules) fn is_comment(&mut self, languages: Languages, at: usize) -> bool {
        let mut lexers = self
            .lexers
            .iter_mut()
            .filter(|(read, _)| is_read_as(*read, languages))
            .peekable();
        lexers.peek().is_some() && lexers.all(|(_, lexer)| lexer.place_at(at) == Place::Comment)
    }

    /// Returns true if a byte is code in one of the syntaxes of these languages. Without languages,
    /// in any syntax.
    pub(in crate::rules) fn is_code(&mut self, languages: Languages, at: usize) -> bool {
        self.lexers
            .iter_mut()
            .any(|(read, lexer)| is_read_as(*read, languages) && lexer.place_at(at) == Place::Code)
    }

    /// Returns true if a byte is in a comment in one of the syntaxes that are known.
    pub(in crate::rules) fn is_known_comment(&mut self, at: usize) -> bool {
        self.lexers
            .iter_mut()
            .any(|(_, lexer)| lexer.place_at(at) == Place::Comment)
    }

    /// Returns true if a byte is in a comment in one of the syntaxes, or if the comments of one of
    /// them are unknown.
    pub(in crate::rules) fn may_be_comment(&mut self, at: usize) -> bool {
        self.lexers
            .iter_mut()
            .any(|(_, lexer)| !lexer.knows_comments() || lexer.place_at(at) == Place::Comment)
    }
}

/// Returns true if a lexer reads the text as one of the languages, or none is given.
fn is_read_as(read: Languages, languages: Languages) -> bool {
    languages.is_empty() || read.overlaps(languages)
}

/// Returns the possible start states of a text: PHP before a `<?`, or after one.
fn starts(syntax: &Syntax, text: &[u8], is_whole: bool) -> &'static [bool] {
    if syntax.habit != Habit::Php {
        return &[false];
    }
    let text = &text[start_of(text)..];
    match php_opener(text) {
        // A file without `<?` is read as if it were included as code.
        None => &[false],
        Some(at) if is_whole || text[..at].trim_ascii().is_empty() => &[true],
        Some(_) => &[true, false],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hid_06_a_comment_of_one_language_hides_no_code_of_the_other() {
        fn of<'t>(path: &[u8], text: &'t str) -> Readings<'t> {
            Readings::new(text.as_bytes(), Languages::of(path, b""), true)
        }
        let python = Languages::of(b"a.py", b"");
        let docker = Languages::of(b"Dockerfile", b"");
        // A string of Python, and instructions of a Dockerfile.
        let text = "\"\"\"\nADD x /\n\"\"\"\n# ARG\n";
        let mut both = of(b"Dockerfile.py", text);
        assert!(both.admits(Place::Code, docker, 4));
        assert!(!both.admits(Place::Code, python, 4));
        assert!(both.admits(Place::Code, Languages::NONE, 4));
        assert!(both.may_be_comment(text.len() - 2));
        assert!(!both.may_be_comment(4));
        // A comment of a shell, and code of JavaScript.
        let mut both = of(b"Makefile.js", "x = {} # eval(y)\n");
        assert!(both.admits(Place::Code, Languages::of(b"a.js", b""), 9));
        assert!(!both.admits(Place::Code, Languages::of(b"Makefile", b""), 9));
    }

    #[test]
    fn one_syntax_reads_the_languages_that_its_files_hold() {
        for path in [
            "a.vue",
            "a.ipynb",
            ".github/workflows/a.yml",
            "a.h",
            "a.unknown",
            "a.txt",
            "a.rs",
        ] {
            assert_eq!(
                Readings::new(b"", Languages::of(path.as_bytes(), b""), true)
                    .lexers
                    .len(),
                1,
                "{path}"
            );
        }
    }

    #[test]
    fn hid_06_what_surrounds_code_in_a_page_hides_none_of_it() {
        let call = "system($_GET['c'])";
        for (path, before, after) in [
            ("a.php", "<p># <?php ", " ?></p>"),
            ("a.php", "// <?= ", " ?>"),
            ("a.php", "<!-- <?php ", " ?> -->"),
            ("a.php", "<p>don't</p> <?php ", ";"),
            ("a.php", "<?php // x ?>' <?php ", ";"),
            ("a.php", "don't ?> <?PHP ", ";"),
            ("a.php", "/* <?php ", " ?> */"),
            ("a.php", "<?php # x ?><p>it's</p><?php ", ";"),
            ("a.erb", "<p>color: #fff; <%= ", " %>"),
            ("a.html.erb", "<p>don't <%= ", " %>"),
            ("a.jsp", "<!-- \" --> // <%= ", " %>"),
        ] {
            let text = [before, call, after].concat();
            let languages = Languages::of(path.as_bytes(), b"");
            for is_whole in [true, false] {
                let mut readings = Readings::new(text.as_bytes(), languages, is_whole);
                assert!(
                    readings.admits(Place::Code, Languages::NONE, before.len()),
                    "{path}: {text}"
                );
            }
        }
        for text in [
            "<?php // system(1)",
            "<?php /* ?> system(1) */",
            "<?php\n# system(1)",
            "<?php 'system(1)'",
            "// system(1)",
        ] {
            let mut readings = Readings::new(text.as_bytes(), Languages::of(b"a.php", b""), true);
            assert!(
                !readings.admits(Place::Code, Languages::NONE, text.find("system").unwrap()),
                "{text}"
            );
        }
    }
}
