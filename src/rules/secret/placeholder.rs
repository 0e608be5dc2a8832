//! Placeholders in tokens: parts that only typed examples have.

use aho_corasick::AhoCorasick;
use std::sync::LazyLock;

/// Parts that only typed examples have, in lower case. Each has at least four characters, so that
/// one in some ten thousand random tokens of 40 characters contains one of them.
#[rustfmt::skip]
const MARKERS: &[&str] = &[
    "example", "sample", "dummy", "fake", "placehold", "changeme", "change_me", "change-me", "changethis",
    "change_this", "change-this", "replace", "your_", "your-", "yourkey", "yourtoken", "yoursecret", "yourapi",
    "yourpass", "your.", "xxxx", "redacted", "masked", "insert", "foobar", "notreal", "not-real", "not_real",
    "notasecret", "not-a-", "not_a_", "nonexist", "invalid", "deadbeef", "badc0ffee", "cafebabe", "qwerty", "asdf",
    "lorem", "ipsum", "mytoken", "mysecret", "my_secret", "my-secret", "my_token", "my-token", "my-api", "my_api",
    "myapikey", "somekey", "some_", "some-", "_here", "-here", "goeshere", "todo", "fixme", "...", "…", "***", "•••",
    "testtest", "abcabc", "123123", "abc123", "undefined", "unused", "default", "nosecret", "no-secret", "topsecret",
    "supersecret", "super_secret", "super-secret", "verysecret", "very-secret", "very_secret", "s3cr3t", "passw0rd",
    "letmein", "hunter2", "for-test", "for_test", "fortest", "unittest", "unit-test", "unit_test", "mock",
    "the-secret", "thesecret", "keyboardcat", "keyboard cat", "obfuscated", "encrypted", "generated", "randomstring",
    "random_string", "random-string", "somelong",
];

/// Returns true if a token contains a part that only a typed placeholder has. Not for passwords,
/// which people make of words: see [`is_sample`](super::words::is_sample).
pub(super) fn is_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    let markers = MARKER_SEARCH
        .iter()
        .flat_map(|search| search.find_overlapping_iter(bytes));
    markers.map(|found| &bytes[found.range()]).any(is_typed)
        || bytes.len() >= 4
            && bytes
                .iter()
                .all(|b| b.eq_ignore_ascii_case(&bytes[0]) || *b == b'-')
}

/// Finds all [`MARKERS`] at once, in any case. A line full of matches searches for each of them.
static MARKER_SEARCH: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(MARKERS)
        .ok()
});

/// Returns true if a person typed a marker. A short marker can occur by chance, but a typed one has
/// a single case.
fn is_typed(marker: &[u8]) -> bool {
    marker.len() > 5
        || !marker.iter().any(u8::is_ascii_uppercase)
        || !marker[1..].iter().any(u8::is_ascii_lowercase)
        || !marker[1..].iter().any(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_placeholders() {
        for text in [
            "AKIAIOSFODNN7EXAMPLE",
            "your_api_key",
            "xxxxxxxxxxxx",
            "changeme",
            "REPLACE_WITH_TOKEN",
            "-----",
            "ab...cd",
        ] {
            assert!(is_placeholder(text), "{text}");
        }
        for text in ["Xk7vQ2mWp9Lr4TzN", "tr0ub4dor&3"] {
            assert!(!is_placeholder(text), "{text}");
        }
    }
}
