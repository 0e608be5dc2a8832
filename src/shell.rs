//! Quotes words for a POSIX shell, for commands that users paste.

/// Quotes a word if a shell needs that.
pub fn quoted(word: &str) -> String {
    let is_plain = word
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_./=:,@%+^~".contains(c));
    // A shell expands a tilde at the start.
    if !word.is_empty() && !word.starts_with('~') && is_plain {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("", "''"),
            ("$(x)", "'$(x)'"),
            ("~x", "'~x'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
        assert_eq!(quoted("HEAD~2"), "HEAD~2");
    }
}
