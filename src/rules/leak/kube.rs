//! The data of Kubernetes Secrets, under any keys.

use super::value;
use crate::rules::MARK;
use std::ops::Range;

/// Lines of a document that are searched for its `kind`, at most.
const DOCUMENT_LINES: usize = 20_000;

/// Finds the values below `data` and `stringData` of Secrets in YAML and JSON, and of
/// `kubernetes_secret` in Terraform. Templates and references stay readable. Linear.
pub(in crate::rules) fn find(text: &[u8], out: &mut Vec<Range<usize>>) {
    if memchr::memmem::find(text, b"Secret").is_some()
        && memchr::memmem::find(text, b"kind").is_some()
    {
        yaml(text, out);
    }
    json(text, out);
    if let Some(at) = memchr::memmem::find(text, b"kubernetes_secret") {
        terraform(text, at, out);
    }
}

/// A line of YAML: its offset, its indentation (a list's dash counts), and its text without that.
#[derive(Clone, Copy, Debug)]
struct ManifestLine<'t> {
    at: usize,
    indent: usize,
    text: &'t [u8],
}

fn lines(text: &[u8]) -> Vec<ManifestLine<'_>> {
    let mut out = Vec::new();
    // The byte order mark at the start of a file does not belong to a line.
    let plain = text.strip_prefix(MARK).unwrap_or(text);
    let mut at = text.len() - plain.len();
    // A single carriage return also ends a line of YAML (YAML 1.2, 5.4).
    for line in plain.split_inclusive(|b| matches!(b, b'\n' | b'\r')) {
        let bare = line.trim_ascii_end();
        let indent = bare
            .iter()
            .take_while(|b| matches!(b, b' ' | b'\t' | b'-'))
            .count();
        // `---` separates documents, and a blank follows the dash of a list item.
        let is_list = bare[..indent].contains(&b'-') && bare[..indent].ends_with(b" ");
        let indent = if is_list || !bare[..indent].contains(&b'-') {
            indent
        } else {
            0
        };
        out.push(ManifestLine {
            at: at + indent,
            indent,
            text: &bare[indent..],
        });
        at += line.len();
    }
    out
}

/// Returns the value of a key on a line.
fn of_key<'t>(line: &'t [u8], key: &[u8]) -> Option<&'t [u8]> {
    let quote = line.first().filter(|b| matches!(b, b'"' | b'\''));
    let rest = match quote {
        Some(q) => line[1..].strip_prefix(key)?.strip_prefix(&[*q][..])?,
        None => line.strip_prefix(key)?,
    };
    Some(rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii())
}

fn is_secret(value: &[u8]) -> bool {
    let value = value
        .split(|b| matches!(b, b'#' | b','))
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let bare = value.trim_ascii();
    matches!(bare, b"Secret" | b"\"Secret\"" | b"'Secret'")
}

fn yaml(text: &[u8], out: &mut Vec<Range<usize>>) {
    let lines = lines(text);
    for document in lines.split(|l| l.text == b"---" || l.text == b"...") {
        let kinds = document
            .iter()
            .take(DOCUMENT_LINES)
            .filter(|l| of_key(l.text, b"kind").is_some_and(is_secret));
        let kinds: Vec<usize> = kinds.map(|l| l.indent).collect();
        if kinds.is_empty() {
            continue;
        }
        let mut i = 0;
        while i < document.len() {
            let line = document[i];
            let data = of_key(line.text, b"data").or_else(|| of_key(line.text, b"stringData"));
            i += 1;
            if let Some(rest) = data.filter(|_| kinds.contains(&line.indent)) {
                let before = line.text.len() - rest.len();
                in_flow(rest, line.at + before, out);
                i = mapping(document, i, line.indent, out);
            }
        }
    }
}

/// Hides the values of the mapping whose lines are indented further. Returns its end.
fn mapping(
    document: &[ManifestLine<'_>],
    from: usize,
    indent: usize,
    out: &mut Vec<Range<usize>>,
) -> usize {
    let mut i = from;
    while let Some(line) = document.get(i) {
        let is_content = !line.text.is_empty() && line.text[0] != b'#';
        if is_content && line.indent <= indent {
            break;
        }
        i += 1;
        if !is_content {
            continue;
        }
        match key_end(line.text) {
            Some(end) => {
                let rest = &line.text[end..];
                let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
                push(&line.text[end + blanks..], line.at + end + blanks, out);
            }
            // A line of a block scalar.
            None => push(line.text, line.at, out),
        }
    }
    i
}

/// Returns the offset of the value after `key:`.
fn key_end(line: &[u8]) -> Option<usize> {
    let quote = line.first().filter(|b| matches!(b, b'"' | b'\''));
    let end = match quote {
        Some(q) => 2 + memchr::memchr(*q, &line[1..])?,
        None => line
            .iter()
            .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')))?,
    };
    let rest = &line[end..];
    let colon = end + rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
    let blank = line.get(colon + 1).is_none_or(u8::is_ascii_whitespace);
    (end > 0 && line.get(colon) == Some(&b':') && blank).then_some(colon + 1)
}

/// Hides a scalar, without its quotes, its comment and the indicator of a block.
fn push(scalar: &[u8], at: usize, out: &mut Vec<Range<usize>>) {
    let (scalar, at) = match scalar.first() {
        Some(q @ (b'"' | b'\'')) => {
            let inner = &scalar[1..];
            (
                &inner[..memchr::memrchr(*q, inner).unwrap_or(inner.len())],
                at + 1,
            )
        }
        _ => (
            &scalar[..memchr::memmem::find(scalar, b" #").unwrap_or(scalar.len())],
            at,
        ),
    };
    let scalar = scalar.trim_ascii_end();
    let is_block = scalar.first().is_some_and(|b| matches!(b, b'|' | b'>')) && scalar.len() <= 3;
    let readable = std::str::from_utf8(scalar).is_ok_and(value::is_reference);
    if scalar.len() >= 2 && !is_block && !readable {
        out.push(at..at + scalar.len());
    }
}

/// Hides the values of `{key: value, …}`.
fn in_flow(flow: &[u8], at: usize, out: &mut Vec<Range<usize>>) {
    let Some(inner) = flow.strip_prefix(b"{") else {
        return;
    };
    let mut from = 0;
    for item in inner.split(|b| matches!(b, b',' | b'}')) {
        if let Some(colon) = memchr::memchr(b':', item) {
            let blanks = item[colon + 1..]
                .iter()
                .take_while(|b| b.is_ascii_whitespace())
                .count();
            let start = colon + 1 + blanks;
            push(&item[start..], at + 1 + from + start, out);
        }
        from += item.len() + 1;
    }
}

/// Finds objects under `"data"` in a text that names the kind, and under `stringData`, which only
/// Secrets have.
fn json(text: &[u8], out: &mut Vec<Range<usize>>) {
    objects(text, b"stringData", out);
    if memchr::memmem::find_iter(text, b"Secret").any(|at| is_json_kind(text, at)) {
        objects(text, b"\"data\"", out);
        objects(text, b"\"data\\\"", out);
    }
}

/// Finds the values of every object that starts after a key.
fn objects(text: &[u8], key: &[u8], out: &mut Vec<Range<usize>>) {
    let mut done = 0;
    for at in memchr::memmem::find_iter(text, key) {
        if at >= done {
            done = object(text, at + key.len(), out).unwrap_or(done);
        }
    }
}

/// Returns true if `"kind": "` precedes an offset, also with escaped quotes.
fn is_json_kind(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(24)..at];
    let plain: Vec<u8> = before
        .iter()
        .copied()
        .filter(|b| !b.is_ascii_whitespace() && *b != b'\\')
        .collect();
    plain.ends_with(b"\"kind\":\"") && matches!(text.get(at + 6), Some(b'"' | b'\\'))
}

/// Hides the strings that are values of an object which starts after a key. Returns its end.
fn object(text: &[u8], from: usize, out: &mut Vec<Range<usize>>) -> Option<usize> {
    let near = text[from..].iter().take(64);
    let filler = near.take_while(|b| {
        b.is_ascii_whitespace() || matches!(**b, b'"' | b'\\' | b':' | b'=' | b'\'')
    });
    let open = from + filler.count();
    if text.get(open) != Some(&b'{') {
        return None;
    }
    let mut at = open + 1;
    let mut is_value = false;
    while let Some(b) = text.get(at) {
        match b {
            b'}' => return Some(at),
            b':' | b'=' => is_value = true,
            b',' | b'\n' => is_value = false,
            b'"' | b'\'' | b'`' => {
                let escaped = at > 0 && text[at - 1] == b'\\';
                let end = string_end(text, at + 1, *b, escaped)?;
                // A colon follows a key.
                let rest = text[end + 1..]
                    .iter()
                    .take(8)
                    .find(|b| !b.is_ascii_whitespace());
                if is_value || !matches!(rest, Some(b':' | b'=')) {
                    let to = if escaped { end - 1 } else { end };
                    push(&text[at + 1..to], at + 1, out);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the quote that ends a string. In escaped JSON a backslash precedes it, in plain JSON
/// none does.
fn string_end(text: &[u8], from: usize, quote: u8, escaped: bool) -> Option<usize> {
    memchr::memchr_iter(quote, &text[from..])
        .map(|i| from + i)
        .find(|at| (text[at - 1] == b'\\') == escaped)
}

/// Hides the strings in `data = { … }` of resources.
fn terraform(text: &[u8], from: usize, out: &mut Vec<Range<usize>>) {
    let mut at = from;
    while let Some(i) = memchr::memmem::find(&text[at..], b"data") {
        at += i + 4;
        if let Some(end) = object(text, at, out) {
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> Vec<&str> {
        let mut out = Vec::new();
        find(text.as_bytes(), &mut out);
        out.sort_unstable_by_key(|r| r.start);
        out.dedup();
        out.into_iter().map(|r| &text[r]).collect()
    }

    #[test]
    fn lek_02_the_data_of_a_secret_is_hidden_under_any_key() {
        for (text, values) in [
            ("\u{feff}kind: Secret\ndata:\n  a: b2\n", &["b2"][..]),
            (
                "kind: Secret\ndata:\n  a: aGVsbG8=\n  b.c: \"eA==\"\nx: y\n",
                &["aGVsbG8=", "eA=="][..],
            ),
            (
                "apiVersion: v1\nstringData:\n  a: one two # x\n  b: |\n    l1\n    l2\nkind: \"Secret\" # k\n",
                &["one two", "l1", "l2"],
            ),
            (
                "kind: ConfigMap\ndata:\n  a: b2\n---\nkind: Secret\ndata:\n  a: c3\n",
                &["c3"],
            ),
            (
                "items:\n- kind: Secret\n  data:\n    a: c3\n- kind: X\n  data:\n      a: d4\n",
                &["c3", "d4"],
            ),
            ("kind: Secret\ndata: {a: b2, c: 'd4'}\n", &["b2", "d4"]),
            (
                "{\"kind\": \"Secret\", \"data\": {\"a\": \"b2\", \"c\":\"d4\"}, \"z\": \"q\"}",
                &["b2", "d4"],
            ),
            (
                "x: '{\\\"kind\\\":\\\"Secret\\\",\\\"data\\\":{\\\"a\\\":\\\"b2\\\"}}'",
                &["b2"],
            ),
            ("new Secret(\"n\", { stringData: { a: \"b2\" } })", &["b2"]),
            (
                "resource \"kubernetes_secret\" \"a\" {\n  data = {\n    k = \"v2\"\n  }\n}\n",
                &["v2"],
            ),
        ] {
            assert_eq!(hidden(text), values, "{text}");
        }
        for text in [
            "kind: ConfigMap\ndata:\n  a: b2\n",
            "kind: Secret\ndata:\n  a: {{ .Values.a }}\n  b: ${B}\n",
            "kind: SecretStore\ndata:\n  a: b2\n",
        ] {
            assert!(hidden(text).is_empty(), "{text} {:?}", hidden(text));
        }
    }
}
