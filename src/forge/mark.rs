//! Marks, by which this program recognizes its own comments. Pure.
//!
//! A mark is the last line of a comment and is not shown. It counts only in comments of the token's
//! own account (see [`super::publish`]), because any account can write one.

use crate::hex;
use sha2::{Digest as _, Sha256};

/// Prefix of every mark; the number is the version of the format.
const HEAD: &str = "claude-reviewer:1";

/// The subject of a comment, and a digest of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentMark {
    pub about: MarkSubject,
    /// Digest of the text above the mark. The text itself is not compared, since forges may
    /// normalize it.
    pub digest: String,
}

/// The subject of a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkSubject {
    /// The review as a whole.
    Summary,
    Finding {
        /// 32 hexadecimal digits.
        fingerprint: String,
        by: By,
        /// Whether the comment says that the finding is gone.
        ended: bool,
    },
}

/// The source of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Rules,
    Model,
}

/// A notation that a forge does not display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkForm {
    /// `<!-- … -->`.
    Html,
    /// `[//]: # (…)`: an unused link definition, for Markdown that shows HTML as text.
    Link,
}

impl CommentMark {
    /// Returns the mark for a text, or for the part of it that counts.
    pub fn of(about: MarkSubject, text: &str) -> Self {
        let hash = Sha256::digest(text.trim().as_bytes());
        Self {
            about,
            digest: hex::encode(&hash[..8]),
        }
    }

    /// Appends the mark to its text.
    pub fn sign(&self, text: &str, form: MarkForm) -> String {
        let (open, close) = form.brackets();
        let about = match &self.about {
            MarkSubject::Summary => "summary".to_owned(),
            MarkSubject::Finding {
                fingerprint,
                by,
                ended,
            } => {
                let by = if *by == By::Rules { "rules" } else { "model" };
                let ended = if *ended { " ended" } else { "" };
                format!("finding={fingerprint} by={by}{ended}")
            }
        };
        format!(
            "{}\n\n{open}{HEAD} {about} digest={}{close}",
            text.trim(),
            self.digest
        )
    }

    /// Returns the text above the mark of a comment, or `None` if it has no mark.
    pub fn text(comment: &str) -> Option<&str> {
        Self::read(comment)?;
        comment.trim_end().rsplit_once('\n').map(|(text, _)| text)
    }

    /// Reads the mark of a comment, or `None` if it has none, or one of another version.
    pub fn read(comment: &str) -> Option<Self> {
        let line = comment.trim_end().lines().next_back()?.trim();
        let inside = [MarkForm::Html, MarkForm::Link]
            .into_iter()
            .find_map(|form| {
                let (open, close) = form.brackets();
                line.strip_prefix(open)?.strip_suffix(close)
            })?;
        let mut words = inside.strip_prefix(HEAD)?.strip_prefix(' ')?.split(' ');
        let about = words.next()?;
        let about = match about.strip_prefix("finding=") {
            None if about == "summary" => MarkSubject::Summary,
            None => return None,
            Some(fingerprint) => {
                let by = match words.next()? {
                    "by=rules" => By::Rules,
                    "by=model" => By::Model,
                    _ => return None,
                };
                let mut rest = words.clone();
                let ended = rest.next() == Some("ended");
                if ended {
                    words = rest;
                }
                MarkSubject::Finding {
                    fingerprint: digits(fingerprint, 32)?,
                    by,
                    ended,
                }
            }
        };
        let digest = digits(words.next()?.strip_prefix("digest=")?, 16)?;
        words.next().is_none().then_some(Self { about, digest })
    }
}

fn digits(text: &str, count: usize) -> Option<String> {
    let fits = text.len() == count
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    fits.then(|| text.to_owned())
}

impl MarkForm {
    fn brackets(self) -> (&'static str, &'static str) {
        match self {
            Self::Html => ("<!-- ", " -->"),
            Self::Link => ("[//]: # (", ")"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{By, CommentMark, MarkForm, MarkSubject};

    fn finding(ended: bool) -> MarkSubject {
        MarkSubject::Finding {
            fingerprint: "0123456789abcdef".repeat(2),
            by: By::Model,
            ended,
        }
    }

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for about in [MarkSubject::Summary, finding(false), finding(true)] {
            for form in [MarkForm::Html, MarkForm::Link] {
                let mark = CommentMark::of(about.clone(), "  Some *text*.\n");
                let comment = mark.sign("  Some *text*.\n", form);
                assert!(comment.starts_with("Some *text*.\n\n"), "{comment}");
                assert_eq!(CommentMark::read(&comment), Some(mark.clone()), "{comment}");
                assert_eq!(
                    CommentMark::read(&format!("{}\r\n", comment.replace('\n', "\r\n"))),
                    Some(mark),
                    "{comment}"
                );
            }
        }
    }

    #[test]
    fn what_merely_looks_like_a_mark_is_none() {
        let good = CommentMark::of(finding(false), "x").sign("x", MarkForm::Html);
        for bad in [
            String::new(),
            "x".to_owned(),
            // Quoted, or in the middle of a text.
            format!("{good}\nmore"),
            format!("> {}", good.lines().next_back().unwrap()),
            good.replace(":1 ", ":2 "),
            good.replace(":1 ", ":10 "),
            good.replace("digest=", "digest=0"),
            good.replace("by=model", "by=me"),
            good.replace(" -->", " more -->"),
            good.replace("finding=0", "finding=G"),
            good.replace(" -->", ""),
        ] {
            assert_eq!(CommentMark::read(&bad), None, "{bad}");
        }
    }
}
