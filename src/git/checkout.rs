//! Computes what a checkout writes for a blob: with `$Id$` expanded, and in another encoding.
//!
//! Attributes control both, so the author of a change can store a blob whose meaning appears only
//! in the worktree. Line endings are not changed here: the rules treat CRLF and LF alike. Filters
//! are programs of the user's own configuration; none is run.

use crate::diff::{Encoding, Sides, encode_wide};
use std::collections::BTreeSet;

/// The conversions of a path on checkout, by the attributes of the base and of the head.
#[derive(Debug, Default)]
pub(super) struct CheckoutConversions {
    encodings: BTreeSet<String>,
    ident: bool,
}

/// The contents of one side.
pub(super) struct Blobs<'a> {
    pub(super) old: Option<&'a [u8]>,
    pub(super) new: Option<&'a [u8]>,
    /// Object IDs of the blobs in hexadecimal.
    pub(super) ids: (String, String),
}

impl CheckoutConversions {
    /// Adds the conversions of one state's attributes.
    pub(super) fn add(&mut self, encoding: Option<&str>, ident: bool) {
        self.ident |= ident;
        self.encodings
            .extend(encoding.filter(|name| !is_utf8(name)).map(str::to_owned));
    }

    /// Returns true if a checkout writes the blob unmodified.
    pub(super) fn is_plain(&self) -> bool {
        self.encodings.is_empty() && !self.ident
    }

    /// Returns the contents that a checkout may write, and an encoding that is unsupported, if any.
    pub(super) fn of(&self, blobs: &Blobs<'_>) -> (Vec<Sides>, Option<String>) {
        let old = blobs.old.map(|bytes| self.with_ident(bytes, &blobs.ids.0));
        let new = blobs.new.map(|bytes| self.with_ident(bytes, &blobs.ids.1));
        let mut out = Vec::new();
        let mut unknown = None;
        for name in &self.encodings {
            match (side(name, old.as_deref()), side(name, new.as_deref())) {
                (Some(old), Some(new)) => out.extend(variants(&old, &new)),
                _ => unknown = unknown.or_else(|| Some(name.clone())),
            }
        }
        if self.ident && (old.as_deref(), new.as_deref()) != (blobs.old, blobs.new) {
            out.push((old, new));
        }
        (out, unknown)
    }

    /// Returns a content with its `$Id$` expanded, if the attributes ask for it.
    fn with_ident(&self, bytes: &[u8], id: &str) -> Vec<u8> {
        if self.ident {
            expand_ident(bytes, id)
        } else {
            bytes.to_vec()
        }
    }
}

/// Returns true if an encoding is UTF-8, by either of its names.
fn is_utf8(name: &str) -> bool {
    name.eq_ignore_ascii_case("UTF-8") || name.eq_ignore_ascii_case("UTF8")
}

/// Encodes a side, or returns `None` if the encoding is unsupported. A side that does not exist, or
/// is not UTF-8, has no variants: git leaves such a blob unmodified.
fn side(name: &str, bytes: Option<&[u8]>) -> Option<Vec<Vec<u8>>> {
    match bytes.map(std::str::from_utf8) {
        None | Some(Err(_)) => encode(name, "").map(|_| Vec::new()),
        Some(Ok(text)) => encode(name, text),
    }
}

/// Pairs the variants of both sides.
fn variants(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<Sides> {
    (0..old.len().max(new.len()))
        .map(|i| (old.get(i).cloned(), new.get(i).cloned()))
        .collect()
}

/// Encodes a text as git does. If the encoding does not specify the byte order, returns both
/// orders.
fn encode(name: &str, text: &str) -> Option<Vec<Vec<u8>>> {
    let upper = name.to_ascii_uppercase();
    let (upper, mark) = upper
        .strip_suffix("-BOM")
        .map_or((upper.as_str(), false), |bare| (bare, true));
    let plain: String = upper.chars().filter(char::is_ascii_alphanumeric).collect();
    use Encoding::{Utf16Be, Utf16Le, Utf32Be, Utf32Le};
    let wide: &[(Encoding, bool)] = match plain.as_str() {
        "UTF16LE" | "UCS2LE" | "UNICODELITTLE" => &[(Utf16Le, false)],
        "UTF16BE" | "UCS2BE" | "UNICODEBIG" => &[(Utf16Be, false)],
        "UTF16" | "UCS2" | "UNICODE" | "ISO10646UCS2" | "CSUNICODE" => {
            &[(Utf16Le, true), (Utf16Be, true)]
        }
        "UTF32LE" | "UCS4LE" => &[(Utf32Le, false)],
        "UTF32BE" | "UCS4BE" => &[(Utf32Be, false)],
        "UTF32" | "UCS4" | "ISO10646UCS4" | "CSUCS4" => &[(Utf32Le, true), (Utf32Be, true)],
        _ => {
            let encoding = encoding_rs::Encoding::for_label_no_replacement(name.as_bytes())?;
            let (bytes, used, is_lossy) = encoding.encode(text);
            return (used == encoding && !is_lossy).then(|| vec![bytes.into_owned()]);
        }
    };
    Some(
        wide.iter()
            .map(|(encoding, has_mark)| encode_wide(text, *encoding, mark || *has_mark))
            .collect(),
    )
}

/// Expands `$Id$`, and `$Id: …$` without an inner space, as `ident_to_worktree` of git's
/// `convert.c` does.
fn expand_ident(bytes: &[u8], id: &str) -> Vec<u8> {
    let (mut out, mut done) = (Vec::with_capacity(bytes.len()), 0);
    for at in memchr::memmem::find_iter(bytes, b"$Id") {
        let rest = &bytes[at + 3..];
        let length = match rest {
            _ if at < done => continue,
            [b'$', ..] => 1,
            [b':', after @ ..] => {
                let line = memchr::memchr(b'\n', after).map_or(after, |end| &after[..end]);
                let Some(end) = memchr::memchr(b'$', line) else {
                    continue;
                };
                // A space before the last character means that another version control system wrote
                // it.
                if line[..end]
                    .iter()
                    .skip(1)
                    .position(|b| *b == b' ')
                    .is_some_and(|blank| blank + 2 < end)
                {
                    continue;
                }
                end + 2
            }
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(format!("$Id: {id} $").as_bytes());
        done = at + 3 + length;
    }
    out.extend_from_slice(&bytes[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_produced_or_refused() {
        assert_eq!(encode("utf-16le", "ab"), Some(vec![b"a\0b\0".to_vec()]));
        assert_eq!(
            encode("UTF-16BE-BOM", "a"),
            Some(vec![b"\xfe\xff\0a".to_vec()])
        );
        assert_eq!(encode("UTF-16", "a").map(|v| v.len()), Some(2));
        assert_eq!(encode("UTF-32BE", "a"), Some(vec![b"\0\0\0a".to_vec()]));
        assert_eq!(
            encode("shift_jis", "\u{65e5}"),
            Some(vec![b"\x93\xfa".to_vec()])
        );
        assert_eq!(encode("latin1", "\u{e9}"), Some(vec![b"\xe9".to_vec()]));
        for name in [
            "IBM037",
            "UTF-7",
            "HZ",
            "ISO-2022-KR",
            "ASCII//TRANSLIT",
            "no-such",
        ] {
            assert_eq!(encode(name, "a"), None, "{name}");
        }
        assert_eq!(encode("latin1", "\u{65e5}"), None);
    }

    #[test]
    fn ident_is_expanded_as_git_does() {
        fn expand(text: &str) -> String {
            String::from_utf8(expand_ident(text.as_bytes(), "1f")).unwrap()
        }
        assert_eq!(expand("a $Id$ b $Id:x$ c"), "a $Id: 1f $ b $Id: 1f $ c");
        assert_eq!(expand("$Id: old $"), "$Id: 1f $");
        assert_eq!(
            expand("$Id: a.c 1.2 me $ $Id: x\n$ $Idx$"),
            "$Id: a.c 1.2 me $ $Id: x\n$ $Idx$"
        );
    }
}
