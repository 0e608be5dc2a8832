//! The bodies of private keys: PEM (RFC 7468), PEM without its header, and PuTTY's key files.

use std::ops::Range;

/// Consecutive Base64 characters of a body on the line of its header, at least.
const BESIDE_HEADER: usize = 20;
/// Lines of a private key's body, at most, and lines above a footer that are searched for a body
/// without a known header.
const KEY_LINES: usize = 400;
/// Bytes of a private key's body, at most.
const KEY_BYTES: usize = 64 << 10;

/// Returns the lines of key bodies, without surrounding characters with which programs quote them.
pub(super) fn bodies(text: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = key_bodies(text);
    ranges.extend(above_footers(text, &ranges));
    ranges.extend(putty(text));
    let mut out = Vec::new();
    for range in ranges {
        let start = range.start;
        let mut at = start;
        // On the line of a header, code is more frequent than a body.
        let beside = start.checked_sub(1).is_some_and(|b| text[b] != b'\n');
        for line in text[range].split_inclusive(|b| *b == b'\n') {
            if beside && at == start && is_code(line) {
                at += line.len();
                continue;
            }
            let mut signs =
                (0..line.len()).filter(|i| is_base64(&line[*i]) && !joins_strings(line, *i));
            if let Some(first) = signs.next() {
                out.push(at + first..at + signs.next_back().unwrap_or(first) + 1);
            }
            at += line.len();
        }
    }
    out
}

fn is_base64(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')
}

/// Returns true if a line has no run of Base64 that is long enough for a body beside a header.
fn is_code(line: &[u8]) -> bool {
    !line
        .split(|b| !is_base64(b))
        .any(|run| run.len() >= BESIDE_HEADER)
}

/// Returns true for a single `+`, which joins two strings.
fn joins_strings(line: &[u8], at: usize) -> bool {
    line[at] == b'+'
        && ![at.checked_sub(1), Some(at + 1)]
            .iter()
            .flatten()
            .any(|n| line.get(*n).is_some_and(is_base64))
}

/// Returns bodies whose header is not in the text: the lines above a footer.
fn above_footers(text: &[u8], known: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut seen = 0;
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY").filter(|at| is_footer(text, *at)) {
        // The first footer on a line ends the body.
        if at < seen {
            continue;
        }
        let line = memchr::memrchr(b'\n', &text[seen..at]).map_or(seen, |i| seen + i + 1);
        seen = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i + 1);
        // The footer of a known body ends it, or is on its last line.
        let before = known.partition_point(|k| k.start <= at).checked_sub(1);
        if before.is_some_and(|k| known[k].end >= line) {
            continue;
        }
        let mut start = line;
        for _ in 0..KEY_LINES {
            let Some(end) = start.checked_sub(1) else {
                break;
            };
            let above = memchr::memrchr(b'\n', &text[..end]).map_or(0, |i| i + 1);
            if !is_body(&text[above..end]) {
                break;
            }
            start = above;
        }
        if start < line {
            out.push(start..line);
        }
    }
    out
}

/// Returns true if the words at an offset are those of a footer.
fn is_footer(text: &[u8], at: usize) -> bool {
    let near = &text[at.saturating_sub(40)..at];
    let head = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
    memchr::memmem::find(head, b"-----END").is_some()
}

/// Returns the private lines of PuTTY's key files.
fn putty(text: &[u8]) -> Vec<Range<usize>> {
    const HEAD: &[u8] = b"Private-Lines:";
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, HEAD) {
        let number = &text[at + HEAD.len()..text.len().min(at + HEAD.len() + 16)];
        let Some(end) = memchr::memchr(b'\n', number) else {
            continue;
        };
        let count = std::str::from_utf8(number[..end].trim_ascii())
            .ok()
            .and_then(|n| n.parse::<usize>().ok());
        let Some(count) = count.filter(|_| out.last().is_none_or(|last| last.end <= at)) else {
            continue;
        };
        let start = at + HEAD.len() + end + 1;
        let lines = text[start..]
            .split_inclusive(|b| *b == b'\n')
            .take(count.min(KEY_LINES));
        out.push(start..start + lines.map(<[u8]>::len).sum::<usize>());
    }
    out
}

/// Returns the bodies of private keys in PEM (RFC 7468): the text between header and footer, on one
/// line or on several. Without a footer, a body ends at the first line that does not have the form
/// of a body.
fn key_bodies(text: &[u8]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, b"PRIVATE KEY") {
        let Some(dashes) = text[at..]
            .iter()
            .take(24)
            .position(|b| *b == b'-')
            .map(|i| at + i)
        else {
            continue;
        };
        let near = &text[at.saturating_sub(40)..at];
        let head = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
        // RFC 4716 writes four dashes and a space.
        let begins = [&b"-----BEGIN"[..], b"---- BEGIN"]
            .iter()
            .any(|b| memchr::memmem::find(head, b).is_some());
        if !begins || out.last().is_some_and(|last| last.end > at) {
            continue;
        }
        let start = dashes + text[dashes..].iter().take_while(|b| **b == b'-').count();
        let mut end = start;
        let limit = text.len().min(start + KEY_BYTES);
        for i in 0..KEY_LINES {
            let line = memchr::memchr(b'\n', &text[end..limit])
                .map_or(&text[end..limit], |n| &text[end..=end + n]);
            let footer = memchr::memmem::find(line, b"-----END")
                .or_else(|| memchr::memmem::find(line, b"---- END"));
            if let Some(footer) = footer {
                end += footer;
                break;
            }
            if line.is_empty() || i > 0 && !is_body(line) {
                break;
            }
            end += line.len();
        }
        out.push(start..end);
    }
    out
}

/// Returns true if a line can belong to a key's body or to its headers, also if a program quotes
/// it.
fn is_body(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let signs = line
        .iter()
        .filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
        .count();
    let longest = line
        .split(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=')))
        .map(<[u8]>::len)
        .max()
        .unwrap_or(0);
    let header = line.starts_with(b"Proc-Type:")
        || line.starts_with(b"DEK-Info:")
        || line.starts_with(b"Comment:");
    header
        || line.is_empty()
        || line.iter().all(quotes_body)
        || (longest * 10 >= signs * 8
            && signs + line.iter().filter(|b| quotes_body(b)).count() == line.len())
}

/// Returns true for a byte with which a program quotes or comments the lines of a body.
fn quotes_body(b: &u8) -> bool {
    b.is_ascii_whitespace()
        || matches!(
            b,
            b'"' | b'\'' | b',' | b'\\' | b'>' | b'|' | b'-' | b'.' | b'`' | b'#' | b'(' | b')'
        )
}
