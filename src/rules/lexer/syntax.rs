//! Comments and strings of the languages.

use super::within::Inner;

/// The way in which a string escapes its closing quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escape {
    None,
    Backslash,
    /// The closing quote twice.
    Doubled,
    Backtick,
}

/// A kind of string.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) escape: Escape,
    /// True if the string may span several lines.
    pub(super) lines: bool,
}

/// Constructs of a language that a table cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    None,
    /// Template literals with code inside, regular expressions.
    JavaScript,
    /// Raw strings with hashes, lifetimes.
    Rust,
    /// `R"x(…)x"`, digit separators.
    Cpp,
    /// `@"…"`.
    CSharp,
    /// Here documents, `#` only at the start of a word.
    Shell,
    Ruby,
    /// Code between `<?php` and `?>`, here documents.
    Php,
    /// Quotes only at the start of a value.
    Yaml,
    /// POD, here documents.
    Perl,
}

#[derive(Debug)]
pub(super) struct Syntax {
    pub(super) languages: &'static [&'static str],
    /// Other languages that files of this syntax also have, and that this syntax covers.
    pub(super) within: &'static [&'static str],
    /// Openers of comments that end with the line.
    pub(super) line: &'static [&'static str],
    /// Openers of such comments that count only at the start of a line.
    pub(super) line_start: &'static [&'static str],
    pub(super) block: &'static [(&'static str, &'static str)],
    pub(super) nested: bool,
    pub(super) quotes: &'static [Quote],
    pub(super) habit: Habit,
    /// True if U+2028 and U+2029 end a line.
    pub(super) separators: bool,
    /// The notation of code in strings.
    pub(super) inner: Inner,
}

pub(super) const fn quote(open: &'static str, escape: Escape, lines: bool) -> Quote {
    Quote {
        open,
        close: open,
        escape,
        lines,
    }
}

const DOUBLE: Quote = quote("\"", Escape::Backslash, false);
const SINGLE: Quote = quote("'", Escape::Backslash, false);
const DOUBLE_LINES: Quote = quote("\"", Escape::Backslash, true);
const SINGLE_LINES: Quote = quote("'", Escape::Backslash, true);
const TRIPLE: Quote = quote("\"\"\"", Escape::Backslash, true);
const TRIPLE_SINGLE: Quote = quote("'''", Escape::Backslash, true);
const TRIPLE_RAW: Quote = quote("\"\"\"", Escape::None, true);
pub(super) const TICKS: Quote = quote("`", Escape::None, true);
const SLASHES: &[&str] = &["//"];
const HASH: &[&str] = &["#"];
const STARS: &[(&str, &str)] = &[("/*", "*/")];

const BASE: Syntax = Syntax {
    languages: &[],
    within: &[],
    line: &[],
    line_start: &[],
    block: &[],
    nested: false,
    quotes: &[],
    habit: Habit::None,
    separators: false,
    inner: Inner::None,
};

/// In the order of priority for the languages of a file.
pub(super) static SYNTAXES: &[Syntax] = &[
    Syntax {
        languages: &["notebook"],
        within: &["json"],
        ..BASE
    },
    Syntax {
        languages: &["vue"],
        within: &["javascript", "typescript", "html"],
        block: &[("<!--", "-->"), ("/*", "*/")],
        line: SLASHES,
        quotes: &[DOUBLE, SINGLE],
        habit: Habit::JavaScript,
        separators: true,
        ..BASE
    },
    Syntax {
        languages: &["python"],
        line: HASH,
        quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        inner: Inner::Python,
        ..BASE
    },
    Syntax {
        languages: &["javascript", "typescript"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE, SINGLE],
        habit: Habit::JavaScript,
        separators: true,
        ..BASE
    },
    Syntax {
        languages: &["go"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE, SINGLE, TICKS],
        ..BASE
    },
    Syntax {
        languages: &["java"],
        line: SLASHES,
        block: STARS,
        quotes: &[TRIPLE, DOUBLE, SINGLE],
        ..BASE
    },
    Syntax {
        languages: &["kotlin", "scala"],
        line: SLASHES,
        block: STARS,
        nested: true,
        quotes: &[TRIPLE_RAW, DOUBLE, SINGLE],
        inner: Inner::Dollar,
        ..BASE
    },
    Syntax {
        languages: &["swift"],
        line: SLASHES,
        block: STARS,
        nested: true,
        quotes: &[TRIPLE, DOUBLE],
        inner: Inner::Swift,
        ..BASE
    },
    Syntax {
        languages: &["solidity"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE, SINGLE],
        ..BASE
    },
    Syntax {
        languages: &["dart", "groovy"],
        line: SLASHES,
        block: STARS,
        quotes: &[TRIPLE, TRIPLE_SINGLE, DOUBLE, SINGLE],
        inner: Inner::Dollar,
        ..BASE
    },
    Syntax {
        languages: &["rust"],
        line: SLASHES,
        block: STARS,
        nested: true,
        quotes: &[DOUBLE_LINES],
        habit: Habit::Rust,
        ..BASE
    },
    Syntax {
        languages: &["c", "cpp", "objective-c"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE, SINGLE],
        habit: Habit::Cpp,
        ..BASE
    },
    Syntax {
        languages: &["csharp"],
        line: SLASHES,
        block: STARS,
        quotes: &[TRIPLE_RAW, DOUBLE, SINGLE],
        habit: Habit::CSharp,
        separators: true,
        inner: Inner::CSharp,
        ..BASE
    },
    Syntax {
        languages: &["ruby"],
        line: HASH,
        quotes: &[
            DOUBLE_LINES,
            SINGLE_LINES,
            quote("`", Escape::Backslash, true),
        ],
        habit: Habit::Ruby,
        inner: Inner::Ruby,
        ..BASE
    },
    Syntax {
        languages: &["php"],
        line: &["//", "#"],
        block: STARS,
        quotes: &[DOUBLE_LINES, SINGLE_LINES],
        habit: Habit::Php,
        inner: Inner::Php,
        ..BASE
    },
    Syntax {
        languages: &["shell"],
        line: HASH,
        quotes: &[DOUBLE_LINES, quote("'", Escape::None, true)],
        habit: Habit::Shell,
        inner: Inner::Shell,
        ..BASE
    },
    Syntax {
        languages: &["dockerfile"],
        line_start: HASH,
        ..BASE
    },
    Syntax {
        languages: &["yaml"],
        within: &["github-workflow"],
        line: HASH,
        quotes: &[DOUBLE, quote("'", Escape::Doubled, false)],
        habit: Habit::Yaml,
        ..BASE
    },
    Syntax {
        languages: &["toml"],
        line: HASH,
        quotes: &[
            TRIPLE,
            quote("'''", Escape::None, true),
            DOUBLE,
            quote("'", Escape::None, false),
        ],
        ..BASE
    },
    Syntax {
        languages: &["json"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE],
        ..BASE
    },
    Syntax {
        languages: &["html", "xml", "markdown"],
        block: &[("<!--", "-->")],
        ..BASE
    },
    Syntax {
        languages: &["sql"],
        line: &["--"],
        block: STARS,
        quotes: &[
            quote("'", Escape::Doubled, true),
            quote("\"", Escape::Doubled, false),
        ],
        ..BASE
    },
    Syntax {
        languages: &["terraform"],
        line: &["#", "//"],
        block: STARS,
        quotes: &[DOUBLE],
        habit: Habit::Shell,
        ..BASE
    },
    Syntax {
        languages: &["properties"],
        line_start: &["#", "!"],
        ..BASE
    },
    Syntax {
        languages: &["ini", "env"],
        line_start: &["#", ";"],
        ..BASE
    },
    Syntax {
        languages: &["make", "nginx"],
        line: HASH,
        habit: Habit::Shell,
        ..BASE
    },
    Syntax {
        languages: &["powershell"],
        line: HASH,
        block: &[("<#", "#>")],
        quotes: &[
            Quote {
                open: "@\"",
                close: "\"@",
                escape: Escape::None,
                lines: true,
            },
            Quote {
                open: "@'",
                close: "'@",
                escape: Escape::None,
                lines: true,
            },
            quote("\"", Escape::Backtick, true),
            quote("'", Escape::Doubled, true),
        ],
        inner: Inner::PowerShell,
        ..BASE
    },
    Syntax {
        languages: &["perl"],
        line: HASH,
        quotes: &[DOUBLE, SINGLE],
        habit: Habit::Perl,
        inner: Inner::Perl,
        ..BASE
    },
    Syntax {
        languages: &["lua"],
        line: &["--"],
        block: &[("--[[", "]]")],
        quotes: &[
            Quote {
                open: "[[",
                close: "]]",
                escape: Escape::None,
                lines: true,
            },
            DOUBLE,
            SINGLE,
        ],
        ..BASE
    },
    Syntax {
        languages: &["elixir"],
        line: HASH,
        quotes: &[TRIPLE, DOUBLE_LINES, SINGLE],
        inner: Inner::Ruby,
        ..BASE
    },
    Syntax {
        languages: &["r"],
        line: HASH,
        quotes: &[DOUBLE_LINES, SINGLE_LINES],
        ..BASE
    },
    Syntax {
        languages: &["haskell"],
        line: &["--"],
        block: &[("{-", "-}")],
        nested: true,
        quotes: &[DOUBLE],
        ..BASE
    },
    Syntax {
        languages: &["clojure"],
        line: &[";"],
        quotes: &[DOUBLE_LINES],
        ..BASE
    },
    Syntax {
        languages: &["css"],
        block: STARS,
        quotes: &[DOUBLE, SINGLE],
        ..BASE
    },
    Syntax {
        languages: &["batch"],
        line_start: &["rem ", "REM ", "::"],
        ..BASE
    },
    Syntax {
        languages: &["graphql"],
        line: HASH,
        quotes: &[TRIPLE, DOUBLE],
        ..BASE
    },
    Syntax {
        languages: &["protobuf"],
        line: SLASHES,
        block: STARS,
        quotes: &[DOUBLE, SINGLE],
        ..BASE
    },
];
