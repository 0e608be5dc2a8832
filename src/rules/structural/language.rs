//! The languages of structural rules: their names in rule files, their files and their grammars.

use crate::diff::RepoPath;
use crate::symbols;
use ast_grep_core::matcher::PatternBuilder;
use ast_grep_core::tree_sitter::{LanguageExt, StrDoc, TSLanguage};
use ast_grep_core::{Language, Pattern, PatternError};
use serde::{Deserialize, Deserializer, de::Error as _};
use std::borrow::Cow;

/// A language of structural rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rules) struct TreeLanguage(&'static LanguageNames);

/// The names of a language.
#[derive(Debug, PartialEq, Eq)]
struct LanguageNames {
    /// The names in rule files, in lower case. They are the names of ast-grep
    /// (<https://ast-grep.github.io/reference/languages.html>).
    aliases: &'static [&'static str],
    /// Extensions of files; the grammar is that of the first one.
    extensions: &'static [&'static str],
    /// The name in the rules of this program: one of `format::LANGUAGES`.
    own: &'static str,
    /// A letter that the grammar accepts in an identifier. It replaces the `$` of variables where
    /// the grammar does not accept that.
    variable: char,
}

const fn names(
    aliases: &'static [&'static str],
    extensions: &'static [&'static str],
    own: &'static str,
    variable: char,
) -> LanguageNames {
    LanguageNames {
        aliases,
        extensions,
        own,
        variable,
    }
}

const ALL: &[LanguageNames] = &[
    names(
        &["python", "py"],
        &["py", "py3", "pyi", "bzl"],
        "python",
        'µ',
    ),
    names(
        &["javascript", "js", "jsx"],
        &["js", "cjs", "jsx", "mjs"],
        "javascript",
        '$',
    ),
    names(
        &["typescript", "ts"],
        &["ts", "cts", "mts"],
        "typescript",
        '$',
    ),
    names(&["tsx"], &["tsx"], "typescript", '$'),
    names(&["go", "golang"], &["go"], "go", 'µ'),
    names(&["java"], &["java"], "java", '$'),
    names(&["kotlin", "kt"], &["kt", "kts", "ktm"], "kotlin", 'µ'),
    names(&["ruby", "rb"], &["rb", "rbw", "gemspec"], "ruby", 'µ'),
    names(&["php"], &["php"], "php", 'µ'),
    names(&["rust", "rs"], &["rs"], "rust", 'µ'),
    names(&["c"], &["c", "h"], "c", '𐀀'),
    names(
        &["cpp", "c++", "cc", "cxx"],
        &["cpp", "cc", "cxx", "hpp", "hh", "hxx", "cu", "ino"],
        "cpp",
        '𐀀',
    ),
    names(&["csharp", "cs"], &["cs"], "csharp", 'µ'),
    names(&["bash", "sh"], &["sh", "bash", "zsh", "ksh"], "shell", '$'),
];

impl TreeLanguage {
    fn named(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        ALL.iter()
            .find(|names| names.aliases.contains(&name.as_str()))
            .map(Self)
    }

    /// Returns the language of a file, by its extension.
    pub(in crate::rules) fn of(path: &RepoPath) -> Option<Self> {
        let name = path.file_name();
        let at = memchr::memrchr(b'.', name)?;
        let extension = &name[at + 1..];
        let found = ALL.iter().find(|l| {
            l.extensions
                .iter()
                .any(|e| extension.eq_ignore_ascii_case(e.as_bytes()))
        });
        found.map(Self)
    }

    /// Returns the languages that a built-in rule names. `typescript` includes TypeScript with JSX.
    pub(in crate::rules) fn of_rule(names: &[Cow<'static, str>]) -> impl Iterator<Item = Self> {
        let named = ALL.iter().filter(|l| {
            names
                .iter()
                .any(|n| *n == l.own || Some(&&**n) == l.aliases.first())
        });
        named.map(Self)
    }

    /// Returns the name in rule files of ast-grep.
    pub(in crate::rules) fn name(self) -> &'static str {
        self.0.aliases.first().copied().unwrap_or_default()
    }

    /// Returns the name in the rules of this program.
    pub(in crate::rules) fn own_name(self) -> &'static str {
        self.0.own
    }

    /// Returns the usual extension of its files.
    pub(in crate::rules) fn extension(self) -> &'static str {
        self.0.extensions.first().copied().unwrap_or_default()
    }

    pub(super) fn grammar(self) -> TSLanguage {
        if self.0.own == "php" {
            // A pattern is a part of a program, without `<?php`.
            return tree_sitter_php::LANGUAGE_PHP_ONLY.into();
        }
        let path = RepoPath::from(format!("a.{}", self.extension()).as_str());
        // Each language of this list has a grammar there, which a test checks.
        symbols::language(&path).unwrap_or_else(|| tree_sitter_python::LANGUAGE.into())
    }
}

impl Language for TreeLanguage {
    fn pre_process_pattern<'q>(&self, query: &'q str) -> Cow<'q, str> {
        if self.0.variable == '$' {
            Cow::Borrowed(query)
        } else {
            Cow::Owned(with_variables(query, self.0.variable))
        }
    }

    fn expando_char(&self) -> char {
        self.0.variable
    }

    fn kind_to_id(&self, kind: &str) -> u16 {
        self.grammar().id_for_node_kind(kind, true)
    }

    fn field_to_id(&self, field: &str) -> Option<u16> {
        self.grammar()
            .field_id_for_name(field)
            .map(std::num::NonZeroU16::get)
    }

    fn build_pattern(&self, builder: &PatternBuilder<'_>) -> Result<Pattern, PatternError> {
        builder.build(|text| StrDoc::try_new(text, *self))
    }
}

impl LanguageExt for TreeLanguage {
    fn get_ts_language(&self) -> TSLanguage {
        self.grammar()
    }
}

/// Replaces the `$` of variables (`$NAME`, `$_`, `$$$ARGS`, `$$$`) in a pattern by a letter. Other
/// `$` stay.
fn with_variables(pattern: &str, letter: char) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut dollars = 0;
    while let Some(c) = chars.next() {
        if c == '$' {
            dollars += 1;
            if chars.peek() == Some(&'$') {
                continue;
            }
            let is_variable = dollars == 3
                || chars
                    .peek()
                    .is_some_and(|c| c.is_ascii_uppercase() || *c == '_');
            out.extend(std::iter::repeat_n(
                if is_variable { letter } else { '$' },
                dollars,
            ));
            dollars = 0;
        } else {
            out.push(c);
        }
    }
    out
}

impl<'de> Deserialize<'de> for TreeLanguage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let known: Vec<&str> = ALL
                .iter()
                .filter_map(|names| names.aliases.first().copied())
                .collect();
            D::Error::custom(format!(
                "unknown language {name:?}, expected one of {}",
                known.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_the_grammar_of_its_files() {
        for names in ALL {
            let language = TreeLanguage(names);
            let path = RepoPath::from(format!("a.{}", language.extension()).as_str());
            assert!(
                TreeLanguage::of(&path) == Some(language) && symbols::language(&path).is_some(),
                "{names:?}"
            );
            assert!(
                crate::rules::languages().contains(&language.own_name()),
                "{names:?}"
            );
        }
    }

    #[test]
    fn variables_of_a_pattern_get_the_letter_and_other_dollars_stay() {
        assert_eq!(
            with_variables("f($A, $$$ARGS, $_, $$$)", 'µ'),
            "f(µA, µµµARGS, µ_, µµµ)"
        );
        assert_eq!(
            with_variables("echo $name $$ $1 $", 'µ'),
            "echo $name $$ $1 $"
        );
    }
}
