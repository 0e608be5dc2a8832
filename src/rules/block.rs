//! The part of a text that belongs to a value: the innermost brackets around it, or its paragraph.

use std::ops::Range;

/// Bytes before and after a value that are searched for the ends of its block, at most.
const REACH: usize = 4096;

/// Returns the block around a value: from the line that opens the innermost brackets to their end.
/// If there are no brackets within reach, the block is the surrounding lines up to an empty line or
/// a document marker of YAML. It extends at most [`REACH`] bytes beyond the value, for lines of any
/// length.
pub(super) fn around(text: &[u8], value: &Range<usize>) -> Range<usize> {
    brackets(text, value).unwrap_or_else(|| paragraph(text, value))
}

/// Returns a block with the value replaced by the byte 1.
pub(super) fn without(text: &[u8], value: &Range<usize>) -> Vec<u8> {
    let block = around(text, value);
    [
        &text[block.start..value.start],
        b"\x01",
        &text[value.end..block.end],
    ]
    .concat()
}

fn brackets(text: &[u8], value: &Range<usize>) -> Option<Range<usize>> {
    let low = value.start.saturating_sub(REACH);
    let mut depth = 0u32;
    let open = (low..value.start).rev().find(|i| match text[*i] {
        b'}' | b')' | b']' => {
            depth += 1;
            false
        }
        b'{' | b'(' | b'[' if depth > 0 => {
            depth -= 1;
            false
        }
        b'{' | b'(' | b'[' => true,
        _ => false,
    })?;
    let high = (value.end + REACH).min(text.len());
    let mut depth = 0u32;
    let close = (value.end..high).find(|i| match text[*i] {
        b'{' | b'(' | b'[' => {
            depth += 1;
            false
        }
        b'}' | b')' | b']' if depth > 0 => {
            depth -= 1;
            false
        }
        b'}' | b')' | b']' => true,
        _ => false,
    });
    let close = close.unwrap_or(high);
    let from = open.saturating_sub(REACH);
    let start = memchr::memrchr2(b'\n', b'\r', &text[from..open]).map_or(from, |i| from + i + 1);
    Some(start..close)
}

fn paragraph(text: &[u8], value: &Range<usize>) -> Range<usize> {
    let low = value.start.saturating_sub(REACH);
    let mut start = line_start(text, low, value.start);
    while start > low {
        let above = line_start(text, low, start - 1);
        if ends_paragraph(&text[above..start - 1]) {
            break;
        }
        start = above;
    }
    let high = (value.end + REACH).min(text.len());
    let mut end = line_end(text, value.end, high);
    while end < high {
        let next = line_end(text, end + 1, high);
        if ends_paragraph(&text[end + 1..next]) {
            break;
        }
        end = next;
    }
    start..end
}

fn ends_paragraph(line: &[u8]) -> bool {
    line.trim_ascii().is_empty() || line.starts_with(b"---")
}

/// Returns the start of the line that contains an offset, at least `low`.
fn line_start(text: &[u8], low: usize, at: usize) -> usize {
    memchr::memrchr(b'\n', &text[low..at]).map_or(low, |i| low + i + 1)
}

/// Returns the end of the line that contains an offset, at most `high`.
fn line_end(text: &[u8], at: usize, high: usize) -> usize {
    memchr::memchr(b'\n', &text[at..high]).map_or(high, |i| at + i)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str) -> String {
        let at = text.find("KEY").unwrap();
        String::from_utf8(without(text.as_bytes(), &(at..at + 3))).unwrap()
    }

    #[test]
    fn the_innermost_brackets_are_the_block() {
        assert_eq!(
            block("const a = { x: 1 };\nconst b = {\n  k: \"KEY\",\n  y: f(2),\n};\nz"),
            "const b = {\n  k: \"\u{1}\",\n  y: f(2),\n"
        );
        assert_eq!(block("f(g(1), \"KEY\")"), "f(g(1), \"\u{1}\"");
    }

    #[test]
    fn without_brackets_the_paragraph_is_the_block() {
        assert_eq!(block("A=1\n\nB=2\nC=KEY\nD=3\n\nE=4"), "B=2\nC=\u{1}\nD=3");
        assert_eq!(block("a: 1\n---\nk: KEY\n---\nb: 2"), "k: \u{1}");
        assert_eq!(block("KEY"), "\u{1}");
    }
}
