//! Shortens, joins and counts text for messages. Pure.
//!
//! [`crate::untrusted`] escapes text and [`crate::hex`] writes digits; neither is done here.

use std::borrow::Cow;

/// Returns the words of a text on one line, separated by single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a text of at most `most` characters unchanged, and of a longer one the first `most`
/// characters with an ellipsis.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Returns the first `most` characters of a text, without a mark if there are more.
pub fn first_chars(text: &str, most: usize) -> &str {
    let end = text.char_indices().nth(most).map_or(text.len(), |(i, _)| i);
    &text[..end]
}

/// Returns the start of a text: at most `most` bytes, and no part of a character.
pub fn first_bytes(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// Joins the names that are shown with commas, and adds how many of `total` are not:
/// `a, b and 3 more`.
pub fn listed(shown: &[impl AsRef<str>], total: usize) -> String {
    let names: Vec<&str> = shown.iter().map(AsRef::as_ref).collect();
    let names = names.join(", ");
    match total.saturating_sub(shown.len()) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

/// Joins names as in a sentence: `a`, `a and b`, `a, b and c`. Of more than `most` names, lists the
/// first ones as [`listed`] does.
pub fn series(names: &[impl AsRef<str>], most: usize) -> String {
    match names {
        _ if names.len() > most => listed(&names[..most], names.len()),
        [first @ .., last] if !first.is_empty() => {
            format!("{} and {}", listed(first, first.len()), last.as_ref())
        }
        _ => listed(names, names.len()),
    }
}

/// Returns a number with its noun: `1 file`, `2 files`.
pub fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_joined_by_single_spaces() {
        assert_eq!(one_line(" a\n\tb\u{a0}c "), "a b c");
        assert_eq!(one_line(" \n"), "");
    }

    #[test]
    fn text_is_shortened_between_characters() {
        assert_eq!(shortened("日本語", 3), "日本語");
        assert_eq!(shortened("日本語", 2), "日本…");
        assert_eq!(first_chars("日本語", 2), "日本");
        assert_eq!(first_chars("日本語", 9), "日本語");
        assert_eq!(first_bytes("日本語", 4), "日");
        assert_eq!(first_bytes("日本語", 9), "日本語");
    }

    #[test]
    fn a_list_counts_what_it_does_not_show() {
        assert_eq!(listed(&["a", "b"], 2), "a, b");
        assert_eq!(listed(&["a", "b"], 5), "a, b and 3 more");
        assert_eq!(listed(&[""; 0], 0), "");
    }

    #[test]
    fn names_are_joined_as_in_a_sentence() {
        assert_eq!(series(&["a"], 3), "a");
        assert_eq!(series(&["a", "b"], 3), "a and b");
        assert_eq!(series(&["a", "b", "c"], 3), "a, b and c");
        assert_eq!(series(&["a", "b", "c", "d"], 3), "a, b, c and 1 more");
    }

    #[test]
    fn one_of_something_has_no_s() {
        assert_eq!(
            [plural(0, "file"), plural(1, "file"), plural(2, "file")],
            ["0 files", "1 file", "2 files"]
        );
    }
}
