//! The unified diff text, equal to the output of `git diff --full-index` with git's default
//! settings.
//!
//! Text that git would not show (see [`super::Hidden`]) is written as a binary file, as git does.

use super::{
    Body, ChangeKind, FileChange, FileMode, Hunk, LineRange, ObjectId, Side, Text, TextChange,
};

/// Bytes of the function line that git keeps (`struct func_line` of its `xdiff/xemit.c`).
const SECTION_LIMIT: usize = 80;

const NO_NEWLINE: &[u8] = b"\n\\ No newline at end of file\n";

/// Appends the patch of one changed path.
///
/// An index line needs both IDs; it is omitted if the source does not have them.
pub fn write(change: &FileChange, out: &mut Vec<u8>) {
    let entry = &change.entry;
    let old_path = &entry.old.as_ref().unwrap_or_else(|| side_of(entry)).path;
    let new_path = &entry.new.as_ref().unwrap_or_else(|| side_of(entry)).path;
    let old_label = quote(b"a/", old_path.as_bytes());
    let new_label = quote(b"b/", new_path.as_bytes());
    extend(out, &[b"diff --git ", &old_label, b" ", &new_label, b"\n"]);
    write_modes(entry, out);
    write_similarity(entry.kind, old_path.as_bytes(), new_path.as_bytes(), out);
    write_index(entry, out);
    let old_label = if entry.old.is_some() {
        &old_label[..]
    } else {
        b"/dev/null"
    };
    let new_label = if entry.new.is_some() {
        &new_label[..]
    } else {
        b"/dev/null"
    };
    match &change.body {
        Body::Same => {}
        Body::Text(TextChange {
            hidden: Some(_), ..
        })
        | Body::Binary(_) => {
            extend(
                out,
                &[
                    b"Binary files ",
                    old_label,
                    b" and ",
                    new_label,
                    b" differ\n",
                ],
            );
        }
        Body::Text(text) if text.hunks.is_empty() => {}
        Body::Text(text) => {
            write_names(old_label, new_label, out);
            write_hunks(text, out);
        }
        Body::Submodule { dirty } => {
            write_names(old_label, new_label, out);
            write_submodule(entry, *dirty, out);
        }
    }
}

/// Appends the header lines of a path's patch.
pub fn write_head(change: &FileChange, out: &mut Vec<u8>) {
    write(
        &FileChange {
            entry: change.entry.clone(),
            body: Body::Same,
        },
        out,
    );
}

/// Appends only the hunks, from the first `@@` on.
pub fn write_hunks(text: &TextChange, out: &mut Vec<u8>) {
    let mut section = Vec::new();
    let mut searched = 0;
    for hunk in &text.hunks {
        if text.old.complete {
            // The function line of the previous hunk applies until a newer one is found.
            if let Some(found) = function_line(&text.old.bytes, searched..hunk.old.bytes.start) {
                section = found.to_vec();
            }
            searched = searched.max(hunk.old.bytes.start);
        } else {
            section.clone_from(&hunk.section);
        }
        write_hunk(text, hunk, &section, out);
    }
}

fn write_hunk(text: &TextChange, hunk: &Hunk, section: &[u8], out: &mut Vec<u8>) {
    write_hunk_header(&hunk.old, &hunk.new, section, out);
    let mut at = hunk.old.bytes.start;
    for edit in &hunk.edits {
        write_lines(b' ', &text.old, at..edit.old.bytes.start, out);
        write_lines(b'-', &text.old, edit.old.bytes.clone(), out);
        write_lines(b'+', &text.new, edit.new.bytes.clone(), out);
        at = edit.old.bytes.end;
    }
    write_lines(b' ', &text.old, at..hunk.old.bytes.end, out);
}

fn write_lines(mark: u8, text: &Text, range: std::ops::Range<usize>, out: &mut Vec<u8>) {
    let bytes = &text.bytes[range];
    let mut at = 0;
    while at < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[at..]).map(|i| at + i + 1);
        out.push(mark);
        out.extend_from_slice(&bytes[at..end.unwrap_or(bytes.len())]);
        if end.is_none() {
            out.extend_from_slice(NO_NEWLINE);
        }
        at = end.unwrap_or(bytes.len());
    }
}

fn write_hunk_header(old: &LineRange, new: &LineRange, section: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"@@ -");
    write_range(old, out);
    out.extend_from_slice(b" +");
    write_range(new, out);
    out.extend_from_slice(b" @@");
    if !section.is_empty() {
        extend(out, &[b" ", section]);
    }
    out.push(b'\n');
}

/// An empty range has the number of the line before it, and a count of one is omitted.
fn write_range(lines: &LineRange, out: &mut Vec<u8>) {
    let text = match lines.count {
        0 => format!("{},0", lines.start - 1),
        1 => lines.start.to_string(),
        n => format!("{},{n}", lines.start),
    };
    out.extend_from_slice(text.as_bytes());
}

/// Finds the last line in `range` that starts like a function: a letter, `_` or `$` in the first
/// column.
///
/// Both ends of the range are line starts.
fn function_line(text: &[u8], range: std::ops::Range<usize>) -> Option<&[u8]> {
    let mut end = range.end;
    while end > range.start {
        let start = memchr::memrchr(b'\n', &text[range.start..end - 1])
            .map_or(range.start, |i| range.start + i + 1);
        if text[start].is_ascii_alphabetic() || matches!(text[start], b'_' | b'$') {
            let line = &text[start..end.min(start + SECTION_LIMIT)];
            let kept = line
                .iter()
                .rposition(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
                .map_or(0, |i| i + 1);
            return Some(&line[..kept]);
        }
        end = start;
    }
    None
}

impl TextChange {
    /// Returns the text after the second `@@` of a hunk: from the source, or as git would print it.
    pub fn section<'a>(&'a self, hunk: &'a Hunk) -> &'a [u8] {
        if self.old.complete {
            return function_line(&self.old.bytes, 0..hunk.old.bytes.start).unwrap_or_default();
        }
        &hunk.section
    }
}

fn side_of(entry: &super::Entry) -> &Side {
    match (&entry.new, &entry.old) {
        (Some(s), _) | (None, Some(s)) => s,
        (None, None) => unreachable!("an entry has a side"),
    }
}

fn write_modes(entry: &super::Entry, out: &mut Vec<u8>) {
    match (
        entry.old.as_ref().map(|side| side.mode),
        entry.new.as_ref().map(|side| side.mode),
    ) {
        (None, Some(new)) => extend(out, &[b"new file mode ", new.octal().as_bytes(), b"\n"]),
        (Some(old), None) => extend(out, &[b"deleted file mode ", old.octal().as_bytes(), b"\n"]),
        (Some(old), Some(new)) if old != new => {
            extend(
                out,
                &[
                    b"old mode ",
                    old.octal().as_bytes(),
                    b"\nnew mode ",
                    new.octal().as_bytes(),
                    b"\n",
                ],
            );
        }
        _ => {}
    }
}

fn write_similarity(kind: ChangeKind, old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let (verb, similarity): (&[u8], u8) = match kind {
        ChangeKind::Renamed { similarity } => (b"rename", similarity),
        ChangeKind::Copied { similarity } => (b"copy", similarity),
        ChangeKind::Added | ChangeKind::Deleted | ChangeKind::Modified => return,
    };
    extend(
        out,
        &[
            b"similarity index ",
            similarity.to_string().as_bytes(),
            b"%\n",
        ],
    );
    extend(
        out,
        &[
            verb,
            b" from ",
            &quote(b"", old),
            b"\n",
            verb,
            b" to ",
            &quote(b"", new),
            b"\n",
        ],
    );
}

fn write_index(entry: &super::Entry, out: &mut Vec<u8>) {
    let (old, new) = (
        entry.old.as_ref().and_then(|s| s.id),
        entry.new.as_ref().and_then(|s| s.id),
    );
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (Some(old), None) if entry.new.is_none() => (old, ObjectId::null_like(old)),
        (None, Some(new)) if entry.old.is_none() => (ObjectId::null_like(new), new),
        _ => return,
    };
    if old == new {
        return;
    }
    extend(
        out,
        &[
            b"index ",
            old.to_string().as_bytes(),
            b"..",
            new.to_string().as_bytes(),
        ],
    );
    match (&entry.old, &entry.new) {
        (Some(old), Some(new)) if old.mode == new.mode => {
            extend(out, &[b" ", new.mode.octal().as_bytes(), b"\n"]);
        }
        _ => out.push(b'\n'),
    }
}

/// Git ends a name that contains a space with a tab, for compatibility with GNU patch.
fn write_names(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    extend(
        out,
        &[
            b"--- ",
            old,
            tab_after(old),
            b"\n+++ ",
            new,
            tab_after(new),
            b"\n",
        ],
    );
}

/// Returns the tab that git writes after a label with a space.
fn tab_after(label: &[u8]) -> &'static [u8] {
    if label.contains(&b' ') { b"\t" } else { b"" }
}

fn write_submodule(entry: &super::Entry, dirty: bool, out: &mut Vec<u8>) {
    let (old, new) = (commit_of(entry.old.as_ref()), commit_of(entry.new.as_ref()));
    let old_range: &[u8] = if old.is_some() { b"1" } else { b"0,0" };
    let new_range: &[u8] = if new.is_some() { b"1" } else { b"0,0" };
    extend(out, &[b"@@ -", old_range, b" +", new_range, b" @@\n"]);
    if let Some(old) = old {
        extend(out, &[b"-Subproject commit ", old.as_bytes(), b"\n"]);
    }
    if let Some(new) = new {
        let dirty = if dirty { &b"-dirty"[..] } else { b"" };
        extend(out, &[b"+Subproject commit ", new.as_bytes(), dirty, b"\n"]);
    }
}

/// Returns the commit of a submodule; `None` for a side that is not a submodule.
fn commit_of(side: Option<&Side>) -> Option<String> {
    side.filter(|s| s.mode == FileMode::Submodule)
        .and_then(|s| s.id)
        .map(|id| id.to_string())
}

fn extend(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Quotes a path as git does with `core.quotePath=true`; a path without special characters stays as
/// it is.
pub fn quote(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    if prefix.iter().chain(path).all(is_plain) {
        return [prefix, path].concat();
    }
    let mut out = vec![b'"'];
    for &b in prefix.iter().chain(path) {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            _ if is_plain(&b) => out.push(b),
            _ => match ESCAPES.iter().find(|(_, raw)| *raw == b) {
                Some((letter, _)) => out.extend_from_slice(&[b'\\', *letter]),
                None => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
            },
        }
    }
    out.push(b'"');
    out
}

/// Returns true if a byte is part of a quoted path as it is.
fn is_plain(b: &u8) -> bool {
    matches!(b, b' '..=b'~') && !matches!(b, b'"' | b'\\')
}

/// The letters for control bytes in a quoted path.
const ESCAPES: [(u8, u8); 7] = [
    (b'a', 7),
    (b'b', 8),
    (b't', 9),
    (b'n', 10),
    (b'v', 11),
    (b'f', 12),
    (b'r', 13),
];

/// Parses a quoted path at the start of `text`; returns it and its length in bytes.
///
/// `None` if there is no opening or closing quote, or an escape that git does not write.
pub fn unquote(text: &[u8]) -> Option<(Vec<u8>, usize)> {
    let mut out = Vec::new();
    let mut at = 1;
    if text.first() != Some(&b'"') {
        return None;
    }
    loop {
        match *text.get(at)? {
            b'"' => return Some((out, at + 1)),
            b'\\' => {
                let c = *text.get(at + 1)?;
                at += 2;
                match c {
                    b'"' | b'\\' => out.push(c),
                    b'0'..=b'3' => {
                        let digits = text.get(at - 1..at + 2)?;
                        if !digits.iter().all(|d| matches!(d, b'0'..=b'7')) {
                            return None;
                        }
                        out.push(digits.iter().fold(0, |n, d| n << 3 | (d - b'0')));
                        at += 2;
                    }
                    _ => out.push(ESCAPES.iter().find(|(letter, _)| *letter == c)?.1),
                }
            }
            b'\n' => return None,
            b => {
                out.push(b);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_git_quotes_and_reads_it_back() {
        for (path, quoted) in [
            (&b"a b.txt"[..], &b"a/a b.txt"[..]),
            (b"tab\there", b"\"a/tab\\there\""),
            (b"new\nline", b"\"a/new\\nline\""),
            (b"quo\"te", b"\"a/quo\\\"te\""),
            (b"back\\slash", b"\"a/back\\\\slash\""),
            (b"\x1b\x7f\x01", b"\"a/\\033\\177\\001\""),
            (b"caf\xc3\xa9", b"\"a/caf\\303\\251\""),
            (b"\xff1", b"\"a/\\3771\""),
        ] {
            let written = quote(b"a/", path);
            assert_eq!(written, quoted, "{}", String::from_utf8_lossy(&written));
            if written[0] == b'"' {
                assert_eq!(
                    unquote(&written),
                    Some(([b"a/", path].concat(), written.len()))
                );
            }
        }
    }

    #[test]
    fn refuses_quotes_that_git_does_not_write() {
        for bad in [
            &b"\"open"[..],
            b"plain",
            b"\"\\x\"",
            b"\"\\400\"",
            b"\"\\08\"",
            b"\"\\",
            b"\"a\nb\"",
            b"",
        ] {
            assert_eq!(unquote(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }

    #[test]
    fn the_function_line_is_cut_at_80_bytes_and_trimmed() {
        let long = [&b"  no\n"[..], &[b'x'; 100], b"\n  in\n"].concat();
        assert_eq!(function_line(&long, 0..long.len()), Some(&[b'x'; 80][..]));
        let text = b"fn a() { \r\n\tb\n";
        assert_eq!(function_line(text, 0..text.len()), Some(&b"fn a() {"[..]));
        assert_eq!(function_line(b"1\n-\n", 0..4), None);
    }
}
