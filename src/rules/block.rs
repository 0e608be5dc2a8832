//! The part of a text that belongs to a value: the innermost brackets around it, or its paragraph.

use std::ops::Range;

/// Bytes before and after a value that are searched for the ends of its block, at most.
pub(super) const REACH: usize = 4096;
/// The same, after the blocks of a text with very many secrets have used up their share.
const SHORT_REACH: usize = 256;
/// Bytes of blocks that are read at full reach in a text of any length, and for each byte of a text.
const SHARE_MIN: usize = 512 << 10;
const SHARE: usize = 4;

/// Returns how far the block around the next value of a text reaches, given the bytes of the blocks
/// that were read before. Blocks of neighbouring values overlap, so that a text full of values
/// would be read hundreds of times.
pub(super) fn reach(read: usize, length: usize) -> usize {
    if read <= SHARE_MIN + SHARE * length {
        REACH
    } else {
        SHORT_REACH
    }
}

/// Returns the block around a value: from the line that opens the innermost brackets to their end.
/// If there are no brackets within reach, the block is the surrounding lines up to an empty line or
/// a document marker of YAML. It extends at most `reach` bytes beyond the value, for lines of any
/// length.
pub(super) fn around(text: &[u8], value: &Range<usize>, reach: usize) -> Range<usize> {
    brackets(text, value, reach).unwrap_or_else(|| paragraph(text, value, reach))
}

/// Returns a block with the value replaced by the byte 1.
pub(super) fn without(text: &[u8], value: &Range<usize>, reach: usize) -> Vec<u8> {
    let block = around(text, value, reach);
    [
        &text[block.start..value.start],
        b"\x01",
        &text[value.end..block.end],
    ]
    .concat()
}

fn brackets(text: &[u8], value: &Range<usize>, reach: usize) -> Option<Range<usize>> {
    let low = value.start.saturating_sub(reach);
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
    let high = (value.end + reach).min(text.len());
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
    let from = open.saturating_sub(reach);
    let start = memchr::memrchr2(b'\n', b'\r', &text[from..open]).map_or(from, |i| from + i + 1);
    Some(start..close)
}

fn paragraph(text: &[u8], value: &Range<usize>, reach: usize) -> Range<usize> {
    let low = value.start.saturating_sub(reach);
    let mut start = line_start(text, low, value.start);
    while start > low {
        let above = line_start(text, low, start - 1);
        if ends_paragraph(&text[above..start - 1]) {
            break;
        }
        start = above;
    }
    let high = (value.end + reach).min(text.len());
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
        String::from_utf8(without(text.as_bytes(), &(at..at + 3), REACH)).unwrap()
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

    #[test]
    fn slo_01_blocks_of_values_beside_each_other_are_read_a_few_times_and_not_hundreds() {
        let text = "apiKey: 'KEY', ".repeat(200_000);
        let starts = memchr::memmem::find_iter(text.as_bytes(), b"KEY");
        let read = starts.fold(0, |read, at| {
            let block = without(text.as_bytes(), &(at..at + 3), reach(read, text.len()));
            read + block.len()
        });
        let short = 200_000 * (2 * SHORT_REACH + 8);
        assert!(
            read <= SHARE_MIN + SHARE * text.len() + short + 3 * REACH,
            "{read}"
        );
        // Ordinary files have room for all their blocks.
        assert_eq!(reach(60 * 2 * REACH, 1000), REACH);
    }
}
