//! Checks refutations: each needs a reason and a quote from code that the model received or read.
//! Pure.

use super::lines::{bare, fold};
use super::quote::Quote;
use super::text::{identifiers, is_nothing};
use crate::ai::claim::Rebuttal;

/// Letters and digits that a quote must have in all.
const LETTERS: usize = 4;
/// Words that a reason must have.
const REASON_WORDS: usize = 2;
/// Characters of a partial line, without white space, that counts as a quote, at least.
const PART: usize = 10;
/// Words that are frequent in code of many languages, and insufficient as a quote.
const COMMON: [&str; 24] = [
    "begin", "break", "catch", "continue", "do", "done", "else", "end", "endif", "esac", "fi",
    "finally", "if", "loop", "nil", "none", "null", "ok", "pass", "return", "self", "then", "this",
    "try",
];
/// Prefixes of lines that are only a comment. A comment is a statement of the author, not code.
const COMMENTS: [&str; 8] = ["//", "/*", "*/", "* ", "# ", "-- ", "<!--", ";; "];

/// Why a refutation does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfounded {
    NoReason,
    NoQuote,
    TrivialQuote,
    UnknownQuote,
}

impl Unfounded {
    /// Returns a lowercase fragment for people.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NoReason => "it gives no reason",
            Self::NoQuote => "it quotes no code",
            Self::TrivialQuote => "its quote fits any code",
            Self::UnknownQuote => "its quote is not in the code that was shown or read",
        }
    }
}

/// Checks that a refutation has a reason and quotes code. `code` holds the lines that the model
/// received or read through tools.
///
/// # Errors
///
/// Returns the missing part of the refutation.
pub fn check_refutation<'c>(
    rebuttal: &Rebuttal,
    code: impl IntoIterator<Item = &'c str>,
) -> Result<(), Unfounded> {
    let reason = rebuttal.reason.trim();
    if is_nothing(reason) || identifiers(reason).count() < REASON_WORDS {
        return Err(Unfounded::NoReason);
    }
    let quote = Quote::new(&rebuttal.quote).ok_or(Unfounded::NoQuote)?;
    if is_trivial(&quote) {
        return Err(Unfounded::TrivialQuote);
    }
    let code: Vec<String> = code
        .into_iter()
        .map(bare)
        .filter(|l| !is_comment(l))
        .map(fold)
        .collect();
    let is_in_code = quote
        .readings()
        .iter()
        .all(|readings| readings.iter().any(|r| is_line_of(&code, r)));
    if is_in_code {
        Ok(())
    } else {
        Err(Unfounded::UnknownQuote)
    }
}

/// Returns true if a line of the code equals the text, or contains it if the text is long enough.
fn is_line_of(code: &[String], text: &str) -> bool {
    let text = fold(text.trim_end_matches(['…', '.']));
    let is_long = text.chars().count() >= PART;
    !text.is_empty()
        && code
            .iter()
            .any(|line| *line == text || is_long && line.contains(&text))
}

/// Returns true if the quote could be in any file: brackets, one keyword, a letter.
fn is_trivial(quote: &Quote) -> bool {
    let text = quote
        .readings()
        .iter()
        .filter_map(|r| r.last())
        .fold(String::new(), |all, line| all + " " + line);
    let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let is_long_enough = letters >= LETTERS || identifiers(&text).count() >= REASON_WORDS;
    !is_long_enough || identifiers(&text).all(|word| COMMON.contains(&word.to_lowercase().as_str()))
}

fn is_comment(line: &str) -> bool {
    COMMENTS.iter().any(|mark| line.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: [&str; 7] = [
        "fn half(n: u32) -> u32 {",
        "    // n is never zero here",
        "    if n == 0 { return 0; }",
        "    n / 2",
        "}",
        "    return",
        "    let x = 1;\\u{d}",
    ];

    fn check(reason: &str, quote: &str) -> Result<(), Unfounded> {
        let rebuttal = Rebuttal {
            refuted: true,
            reason: reason.to_owned(),
            quote: quote.to_owned(),
            ..Rebuttal::default()
        };
        check_refutation(&rebuttal, CODE)
    }

    #[test]
    fn mod_02_a_refutation_needs_a_reason_and_a_quote_of_code() {
        let reason = "Zero is checked before.";
        for quote in [
            "    if n == 0 { return 0; }",
            "if n == 0 { return 0; }",
            "3     if n == 0 { return 0; }",
            "3+    if n == 0 { return 0; }",
            "`if n == 0 { return 0; }`",
            "if n == 0 { return 0; }\n    n / 2",
            "n == 0 { return 0",
            "n / 2",
            "let x = 1;",
        ] {
            assert_eq!(check(reason, quote), Ok(()), "{quote}");
        }
        for (quote, why) in [
            ("", Unfounded::NoQuote),
            (" \n\t", Unfounded::NoQuote),
            ("```\n```", Unfounded::NoQuote),
            ("}", Unfounded::TrivialQuote),
            ("return", Unfounded::TrivialQuote),
            ("    return\n}", Unfounded::TrivialQuote),
            ("n", Unfounded::TrivialQuote),
            ("...", Unfounded::NoQuote),
            ("if n == 1 { return 0; }", Unfounded::UnknownQuote),
            ("if n == 0 { return 0; }\nn / 3", Unfounded::UnknownQuote),
            ("n is never zero here", Unfounded::UnknownQuote),
            ("// n is never zero here", Unfounded::UnknownQuote),
            ("return 0", Unfounded::UnknownQuote),
        ] {
            let got = check(reason, quote);
            assert!(
                got == Err(why) || why == Unfounded::NoQuote && got.is_err(),
                "{quote}: {got:?}"
            );
        }
        for reason in ["", " ", "-", "n/a", " N/A\n", "no.", "\n"] {
            let got = check(reason, "n / 2");
            assert_eq!(got, Err(Unfounded::NoReason), "{reason}");
        }
    }
}
