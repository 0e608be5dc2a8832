//! Masks secrets in text that is shown or stored, and keeps all columns.

use super::{RuleSet, leak};
use crate::diff::blank_all;
use std::borrow::Cow;
use std::ops::Range;

/// Secrets shorter than this are hidden completely.
const KEPT_FROM: usize = 16;

/// Masks the secrets that [`leak::secrets`] finds in a text, and keeps all columns.
pub(super) fn mask<'t>(rules: &RuleSet, text: &'t [u8]) -> Cow<'t, [u8]> {
    let hidden = hidden(rules, text);
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = text.to_vec();
    blank_all(&mut masked, &hidden);
    Cow::Owned(masked)
}

/// Returns the bytes of a text that are overwritten: its secrets without their public prefixes.
pub(super) fn hidden(rules: &RuleSet, text: &[u8]) -> Vec<Range<usize>> {
    leak::secrets(rules, text)
        .into_iter()
        .map(|secret| without_prefix(secret.span, secret.kept))
        .collect()
}

/// Returns a secret without its first `kept` bytes. A short secret is hidden completely.
pub(super) fn without_prefix(span: Range<usize>, kept: usize) -> Range<usize> {
    let kept = if span.len() >= KEPT_FROM { kept } else { 0 };
    span.start + kept..span.end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::RulesPolicy;

    #[test]
    fn the_body_of_a_key_is_hidden_on_every_line() {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let head = ["-----BEGIN RSA PRIV", "ATE KEY-----"].concat();
        let foot = ["-----END RSA PRIV", "ATE KEY-----"].concat();
        let body = "MIIEowIBAAKCAQEAx1\n  \"abc+/d==\\n\" +\n";
        let text = format!("a = 1\n{head}\nProc-Type: 4,ENCRYPTED\n\n{body}{foot}\nb = 2\n");
        let masked = mask(&rules, text.as_bytes()).into_owned();
        let masked = String::from_utf8(masked).unwrap();
        assert_eq!(masked.len(), text.len());
        assert!(masked.starts_with(&format!("a = 1\n{head}\n")), "{masked}");
        assert!(masked.ends_with(&format!("{foot}\nb = 2\n")), "{masked}");
        assert!(
            !masked.contains("MIIE") && !masked.contains("abc"),
            "{masked}"
        );
        let cut = format!("{head}\n{body}next line of code\n");
        let masked = String::from_utf8(mask(&rules, cut.as_bytes()).into_owned()).unwrap();
        assert!(
            masked.ends_with("next line of code\n") && !masked.contains("MIIE"),
            "{masked}"
        );
    }

    #[test]
    fn hides_all_but_a_public_prefix() {
        assert_eq!(without_prefix(4..30, 4), 8..30);
        assert_eq!(without_prefix(34..39, 4), 34..39);
    }
}
