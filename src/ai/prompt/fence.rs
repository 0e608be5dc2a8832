//! Keeps foreign text apart from instructions: every piece of it stands between two lines that carry the run's
//! nonce, and nothing inside looks like such a line (`ai::redact` shows the bracket of what does).

use crate::ai::ask::Nonce;
use crate::ai::redact::FENCE;

/// Appends text inside a fence. `kind` is ours: it says what the text is.
pub(super) fn fenced(nonce: &Nonce, kind: &str, text: &str, out: &mut String) {
    let nonce = nonce.as_str();
    out.push_str(&format!("<{FENCE}-{nonce} {kind}>\n"));
    out.push_str(text);
    if !text.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&format!("</{FENCE}-{nonce}>\n"));
}
