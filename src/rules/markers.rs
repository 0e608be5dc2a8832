//! Conflict markers of an unfinished merge.
//!
//! Only whole sets count: `<<<<<<<`, then `=======`, then `>>>>>>>`, each at the start of a line
//! and seven characters long. A heading underlined with `=======` is not a marker.

use std::ops::Range;

/// Returns the sets of a text, each from the start of its first line to the end of its last. Reads
/// the text once.
///
/// In prose, sets within a listing (a fence of Markdown, a block of AsciiDoc) are examples of a
/// conflict.
pub(super) fn sets(text: &[u8], is_prose: bool) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut open, mut parted) = (None, false);
    let mut fence = None;
    let mut at = 0;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i);
        let line = &text[at..end];
        match marker(line) {
            Some(b'<') => (open, parted) = (fence.is_none().then_some(at), false),
            Some(b'=') if open.is_some() => parted = true,
            Some(b'>') if parted => {
                out.extend(open.take().map(|start| start..end));
                parted = false;
            }
            _ if is_prose => fence = listing(line.trim_ascii(), fence),
            _ => {}
        }
        at = end + 1;
    }
    out
}

/// Returns the listing that is open after a line, by the text that opened it.
fn listing(line: &[u8], open: Option<&'static [u8]>) -> Option<&'static [u8]> {
    const FENCES: [&[u8]; 5] = [b"```", b"~~~", b"----", b"....", b"<pre"];
    match open {
        None => FENCES.into_iter().find(|f| {
            line.starts_with(f) && (!matches!(f[0], b'-' | b'.') || is_run_of(line, f[0]))
        }),
        Some(b"<pre") => memchr::memmem::find(line, b"</pre")
            .is_none()
            .then_some(b"<pre"),
        Some(f) => (!(line.starts_with(f) && is_run_of(line, f[0]))).then_some(f),
    }
}

/// Returns true if a line has only one character.
fn is_run_of(line: &[u8], sign: u8) -> bool {
    line.iter().all(|b| *b == sign)
}

/// Returns the marker of a line.
fn marker(line: &[u8]) -> Option<u8> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let sign = *line.first()?;
    let (signs, label) = (line.get(..7)?, &line[7..]);
    if !signs.iter().all(|b| *b == sign) {
        return None;
    }
    match sign {
        // Git writes a label. Other tools write `<<<<<<<` alone.
        b'<' | b'>' if label.is_empty() || label[0] == b' ' => Some(sign),
        b'=' if label.is_empty() => Some(sign),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one range is meant")]
    fn dif_14_only_whole_sets_are_conflicts() {
        let conflict = "a\n<<<<<<< HEAD\nx\n||||||| base\nz\n=======\ny\n>>>>>>> topic\nb\n";
        assert_eq!(sets(conflict.as_bytes(), false), [2..conflict.len() - 3]);
        assert_eq!(
            sets(conflict.replace('\n', "\r\n").as_bytes(), false).len(),
            1
        );
        for text in [
            "Title\n=======\n\nText\n",
            "=======\n>>>>>>> x\n",
            "<<<<<<< HEAD\n>>>>>>> x\n",
            "<<<<<<<< a\n=======\n>>>>>>>> b\n",
            " <<<<<<< a\n=======\n >>>>>>> b\n",
            "<<<<<<<a\n=======\n>>>>>>>b\n",
            "<<<<<<< a\n======= \n>>>>>>> b\n",
        ] {
            assert!(sets(text.as_bytes(), true).is_empty(), "{text}");
        }
    }

    #[test]
    fn dif_14_listings_of_documents_show_markers() {
        fn inside(text: &str) -> bool {
            let set = "<<<<<<< x\n=======\n>>>>>>> y\n";
            sets(format!("{text}{set}").as_bytes(), true).is_empty()
        }
        assert!(inside("a\n```\n"));
        assert!(inside("a\n------------\n"));
        assert!(!inside("a\n```\nb\n```\n"));
        assert!(!inside("Title\n=======\n"));
    }
}
