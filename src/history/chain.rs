//! The hash chain of a session: each head covers all content before it. Pure.
//!
//! A head is the SHA-256, in lowercase hexadecimal, of the previous head with a newline (nothing in
//! the first round), then for each file its name, a newline, its length in decimal, a newline, and
//! its bytes. So it can be computed with `printf`, `cat` and `sha256sum`.
//!
//! Round 1 covers `request.json`, `changes.diff` and `round-1/review.json`. Round N covers the
//! response to the previous round (`round-M/response.json`), if there is one,
//! `round-N/changes.diff` and `round-N/review.json`. A closing covers its entry of `complete.json`
//! as compact JSON with an empty `seal`, under the name `complete.json`. A link of a fix covers,
//! under the name `fixes.json`, three lines: its number, `true` or `false` for `ended`, and
//! `sha256`.

use crate::hex;
use crate::wire::fixing::FixLink;
use crate::wire::stored::{STORED_VERSION, Seal, Sealed};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A file that a head covers: its name, relative to the session, and its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

/// Returns the head over these files and the previous head.
pub(super) fn head(previous: Option<&str>, files: &[Covered<'_>]) -> String {
    let mut hash = Sha256::new();
    if let Some(previous) = previous {
        hash.update(previous.as_bytes());
        hash.update(b"\n");
    }
    for file in files {
        hash.update(format!("{}\n{}\n", file.name, file.bytes.len()).as_bytes());
        hash.update(file.bytes);
    }
    hex::encode(&hash.finalize())
}

/// Seals the files of a round.
pub(super) fn seal(previous: Option<&str>, files: &[Covered<'_>]) -> Seal {
    Seal {
        schema_version: STORED_VERSION,
        previous: previous.map(str::to_owned),
        files: files.iter().map(sealed).collect(),
        head: head(previous, files),
    }
}

/// Returns the name and the hash of a file.
fn sealed(file: &Covered<'_>) -> Sealed {
    Sealed {
        name: file.name.to_owned(),
        sha256: hex::encode(&Sha256::digest(file.bytes)),
    }
}

/// Returns the head over an entry of `complete.json`, ignoring its own `seal`.
pub(super) fn closing(previous: &str, entry: &Value) -> String {
    let mut entry = entry.clone();
    if let Some(object) = entry.as_object_mut() {
        object.insert("seal".to_owned(), Value::String(String::new()));
    }
    let text = entry.to_string();
    head(
        Some(previous),
        &[Covered {
            name: "complete.json",
            bytes: text.as_bytes(),
        }],
    )
}

/// Returns the head over a link of a fix, ignoring its own `seal`.
pub(super) fn link(link: &FixLink) -> String {
    let text = format!("{}\n{}\n{}\n", link.number, link.ended, link.sha256);
    head(
        Some(&link.previous),
        &[Covered {
            name: "fixes.json",
            bytes: text.as_bytes(),
        }],
    )
}

/// Returns the SHA-256 of a fix as compact JSON.
pub(super) fn of_fix(fix: &Value) -> String {
    hex::encode(&Sha256::digest(fix.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [Covered<'static>; 2] = [
        Covered {
            name: "request.json",
            bytes: b"{}\n",
        },
        Covered {
            name: "changes.diff",
            bytes: b"",
        },
    ];

    /// Returns the hash of a text, as `sha256sum` prints it.
    fn by_hand(text: &str) -> String {
        hex::encode(&Sha256::digest(text.as_bytes()))
    }

    fn entry(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_head_is_what_sha256sum_makes_of_names_lengths_and_bytes() {
        assert_eq!(
            head(None, &FILES),
            by_hand("request.json\n3\n{}\nchanges.diff\n0\n")
        );
        assert_eq!(
            head(Some("ab"), &FILES),
            by_hand("ab\nrequest.json\n3\n{}\nchanges.diff\n0\n")
        );
    }

    #[test]
    fn what_moves_between_files_changes_the_head() {
        let moved = [
            Covered {
                name: "request.json",
                bytes: b"{}",
            },
            Covered {
                name: "changes.diff",
                bytes: b"\n",
            },
        ];
        assert_ne!(head(None, &FILES), head(None, &moved));
        assert_ne!(head(None, &FILES), head(Some(&head(None, &[])), &FILES));
    }

    #[test]
    fn the_seal_of_a_closing_covers_fields_that_this_version_does_not_know() {
        let sealed = closing(
            "ab",
            &entry(r#"{"status":"approved","later":1,"seal":"x"}"#),
        );
        assert_eq!(
            sealed,
            closing("ab", &entry(r#"{"status":"approved","later":1,"seal":""}"#))
        );
        assert_ne!(
            sealed,
            closing(
                "ab",
                &entry(r#"{"status":"approved","later":2,"seal":"x"}"#)
            )
        );
        assert_ne!(
            sealed,
            closing(
                "ac",
                &entry(r#"{"status":"approved","later":1,"seal":"x"}"#)
            )
        );
    }
}
