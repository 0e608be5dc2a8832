//! The text of arguments: paths, revisions, and the URIs of a client's folders.

use super::{MOST, shown};
use crate::error::{Error, Result};
use std::path::{Component, Path, PathBuf};

/// Bytes of a revision, at most.
const MOST_OF_A_REVISION: usize = 256;

/// Validates the text of a path.
pub(super) fn plain(text: &str) -> Result<&Path> {
    let path = Path::new(text);
    let why = if text.is_empty() {
        "it is empty"
    } else if text.len() > MOST {
        "it is too long"
    } else if text.chars().any(char::is_control) {
        "it has control characters"
    } else if text.starts_with('~') {
        "~ is not expanded"
    } else if path.components().any(|c| c == Component::ParentDir) {
        "it goes up by .."
    } else {
        return Ok(path);
    };
    Err(Error::usage(format!(
        "{} is not an allowed path: {why}",
        shown(text)
    )))
}

/// Validates the text of a revision: not an option, a list, a range, or a path in a tree.
///
/// # Errors
///
/// The text is not a revision; the message has `name`, the name of the argument.
pub(in crate::mcp) fn revision<'t>(name: &str, text: &'t str) -> Result<&'t str> {
    let fine = !text.is_empty()
        && text.len() <= MOST_OF_A_REVISION
        && !text.starts_with('-')
        && !text.contains("..")
        && text
            .chars()
            .all(|c| c.is_alphanumeric() || "._/-@{}^~#+=".contains(c));
    if fine {
        return Ok(text);
    }
    Err(Error::usage(format!("{name} is not a revision: {}", shown(text)))
        .hint("give a commit id, a branch or a tag, as 1a2b3c4d, main or v1.2; to review a range, use review_branch"))
}

/// Returns the folder of a root's `file:` URI.
pub(super) fn folder_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let bytes = unescape(path.split(['?', '#']).next()?)?;
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute()
        .then(|| path.canonicalize().ok())
        .flatten()
        .filter(|p| p.is_dir())
}

/// Decodes the percent escapes of a URI.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'%' => out.push(hex_digit(bytes.next()?)? * 16 + hex_digit(bytes.next()?)?),
            _ => out.push(b),
        }
    }
    (!out.contains(&0)).then_some(out)
}

fn hex_digit(b: u8) -> Option<u8> {
    char::from(b)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_07_only_a_revision_is_one() {
        for fine in [
            "HEAD",
            "HEAD~2",
            "HEAD^",
            "main@{upstream}",
            "feature/x",
            "v1.2",
            "1a2b3c4d",
            "größe",
        ] {
            assert!(revision("commit_sha", fine).is_ok(), "{fine}");
        }
        let long = "a".repeat(MOST_OF_A_REVISION + 1);
        for bad in [
            "",
            "--output=/x",
            "-p",
            "HEAD;id",
            "HEAD id",
            "$(id)",
            "a..b",
            "HEAD:f",
            "a\nb",
            "`id`",
            "a\0",
            &long,
        ] {
            assert!(revision("commit_sha", bad).is_err(), "{bad}");
        }
    }
}
