//! Prepares the text of a claim for storage and display: masks secrets and limits the length.
//! Nothing else is removed.

use crate::rules::RuleSet;
use crate::text::one_line;

/// Characters of a title, at most.
pub(super) const TITLE: usize = 200;
/// Characters of a message, a suggestion or a failure description, at most.
pub(super) const BODY: usize = 8_000;
/// Characters of a remark, at most.
pub(super) const REMARK: usize = 2_000;

/// Masks, trims and truncates a text.
pub(super) fn clean(rules: &RuleSet, text: &str, most: usize) -> String {
    let masked = rules.mask(text.as_bytes());
    cut(String::from_utf8_lossy(&masked).trim(), most)
}

/// Cleans a text. Returns `None` if nothing remains.
pub(super) fn some(rules: &RuleSet, text: Option<&str>, most: usize) -> Option<String> {
    text.map(|t| clean(rules, t, most))
        .filter(|t| !t.is_empty())
}

/// Returns the title on one line. A missing title is taken from the start of the message.
pub(super) fn title(rules: &RuleSet, title: &str, message: &str) -> String {
    let own = one_line(&clean(rules, title, TITLE));
    if !own.is_empty() {
        return own;
    }
    let message = one_line(&clean(rules, message, BODY));
    let sentence = message
        .split_inclusive(['.', '!', '?'])
        .next()
        .unwrap_or_default();
    cut(sentence.trim_end_matches('.'), 100)
}

/// Truncates a text, and marks the truncation with an ellipsis.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}

/// Returns the text inside of a code fence. Returns `None` if the text is not fenced.
pub(super) fn fence_body(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("```")?.strip_suffix("```")?;
    inner.split_once('\n').map(|(_, body)| body)
}

/// Returns true if a text is a placeholder for an empty value.
pub(super) fn is_nothing(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "null" | "none" | "n/a" | "-"
    )
}

/// Returns the identifiers, numbers and words of a text, in order.
pub(super) fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
}
