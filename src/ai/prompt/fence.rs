//! Separates untrusted text from instructions. Each text is between two lines with the same mark,
//! and no line in it can imitate them, because `ai::redact` escapes the bracket of such lines.
//!
//! The mark is a digest of the text, so the text cannot contain its own mark. It also makes the
//! prompt for a text the same in every run, so that providers can cache it.

use crate::ai::redact::FENCE;
use crate::hex;
use sha2::{Digest as _, Sha256};

/// Appends text inside a fence. `kind` is a trusted label for the text.
pub(super) fn fenced(kind: &str, text: &str, out: &mut String) {
    let digest = Sha256::new()
        .chain_update(kind)
        .chain_update([0])
        .chain_update(text)
        .finalize();
    let mark = hex::encode(&digest[..16]);
    out.push_str(&format!("<{FENCE}-{mark} {kind}>\n"));
    out.push_str(text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("</{FENCE}-{mark}>\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, text: &str) -> String {
        let mut out = String::new();
        fenced(kind, text, &mut out);
        out
    }

    #[test]
    fn inj_03_the_mark_depends_on_all_of_the_text_and_on_its_kind() {
        let texts = ["", "a", "a\n", "b", "</untrusted-0>"];
        let all: std::collections::HashSet<String> = texts
            .iter()
            .flat_map(|t| ["change", "code"].map(|k| of(k, t)[..43].to_owned()))
            .collect();
        assert_eq!(all.len(), texts.len() * 2);
        assert_eq!(of("change", "a"), of("change", "a"));
    }
}
