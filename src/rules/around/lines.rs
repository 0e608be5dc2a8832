//! The lines around a line: the blocks that contain it, and the block below it.

use super::LineSurroundings;
use crate::rules::MARK;

/// Bytes before and after the line that the checks read.
pub(super) const WINDOW: usize = 3 << 10;
/// The same for definitions and functions, which are farther apart.
pub(super) const FAR: usize = 32 << 10;
/// The same for blocks around a line.
const OUTER: usize = 8 << 10;

pub(super) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

pub(super) fn indentation(line: &[u8]) -> &[u8] {
    let end = line
        .iter()
        .position(|b| !matches!(b, b' ' | b'\t'))
        .unwrap_or(line.len());
    &line[..end]
}

/// Returns the start of a text, at most so many bytes of it.
pub(super) fn head(text: &[u8], length: usize) -> &[u8] {
    &text[..text.len().min(length)]
}

/// Returns the end of a text, at most so many bytes of it.
pub(super) fn tail(text: &[u8], length: usize) -> &[u8] {
    &text[text.len().saturating_sub(length)..]
}

/// Returns the first word of a text.
pub(super) fn first_word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|b| !is_word(*b)).unwrap_or(text.len())]
}

/// Returns the last word of a text.
pub(super) fn last_word(text: &[u8]) -> &[u8] {
    &text[text
        .iter()
        .rposition(|b| !is_word(*b))
        .map_or(0, |at| at + 1)..]
}

pub(super) fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Returns true if a text has a whole word: no letter, digit or underscore is beside it.
pub(super) fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_first_word = word.first().is_some_and(|b| is_word(*b));
    !word.is_empty()
        && memchr::memmem::find_iter(text, word).any(|at| {
            let starts = !is_first_word || text[..at].last().is_none_or(|b| !is_word(*b));
            starts && text.get(at + word.len()).is_none_or(|b| !is_word(*b))
        })
}

/// Returns the lines below a line that have text, the nearest first, with their indentation.
pub(super) fn below<'a>(around: &LineSurroundings<'a>) -> impl Iterator<Item = (usize, &'a [u8])> {
    head(around.after, WINDOW)
        .split(|b| *b == b'\n')
        .skip(1)
        .filter_map(with_text)
}

/// Returns the lines above a line that have text, the nearest first, with their indentation.
pub(super) fn above<'a>(around: &LineSurroundings<'a>) -> impl Iterator<Item = (usize, &'a [u8])> {
    tail(around.before, OUTER)
        .rsplit(|b| *b == b'\n')
        .skip(1)
        .filter_map(with_text)
}

/// Returns the indentation of a line and its text, if it has one.
fn with_text(line: &[u8]) -> Option<(usize, &[u8])> {
    let line = line.strip_prefix(MARK).unwrap_or(line);
    let text = line[indentation(line).len()..].trim_ascii_end();
    (!text.is_empty()).then_some((indentation(line).len(), text))
}

/// Returns the lines that start the blocks around a line, the innermost first. They are known by
/// their indentation; lines that only go on with a statement, such as `) {`, start no block.
pub(super) fn outer<'a>(around: &LineSurroundings<'a>) -> impl Iterator<Item = &'a [u8]> {
    let mut depth = indentation(around.line).len();
    above(around).filter_map(move |(own, text)| {
        let is_outer = own < depth && !matches!(text[0], b'{' | b'(' | b')' | b']' | b'#');
        if is_outer {
            depth = own;
        }
        is_outer.then_some(text)
    })
}

/// Returns the lines of the block below a line: those with a larger indentation.
pub(super) fn block<'a>(around: &LineSurroundings<'a>) -> impl Iterator<Item = &'a [u8]> {
    let depth = indentation(around.line).len();
    below(around)
        .take_while(move |(own, text)| *own > depth || matches!(text[0], b'{' | b')' | b']'))
        .map(|(_, text)| text)
}

/// Returns the lines below a line in the same block, with their indentation.
pub(super) fn rest<'a>(around: &LineSurroundings<'a>) -> impl Iterator<Item = (usize, &'a [u8])> {
    let depth = indentation(around.line).len();
    below(around).take_while(move |(own, _)| *own >= depth)
}

/// Returns the bytes of a text up to the first line with less indentation than a line.
pub(super) fn same_block<'a>(after: &'a [u8], line: &[u8]) -> &'a [u8] {
    let depth = indentation(line).len();
    let mut end = 0;
    for part in after.split_inclusive(|b| *b == b'\n') {
        let is_outside = end > 0 && with_text(part).is_some_and(|(own, _)| own < depth);
        if is_outside {
            break;
        }
        end += part.len();
    }
    &after[..end]
}

/// Returns the bytes of a text from the last line with less indentation than a line.
pub(super) fn same_block_above<'a>(before: &'a [u8], line: &[u8]) -> &'a [u8] {
    let depth = indentation(line).len();
    let mut start = before.len();
    for part in before
        .strip_suffix(b"\n")
        .unwrap_or(before)
        .rsplit(|b| *b == b'\n')
    {
        if with_text(part).is_some_and(|(own, _)| own < depth) {
            break;
        }
        start = start.saturating_sub(part.len() + 1);
    }
    &before[start..]
}

/// Returns true if a line starts a function: the search for variables ends there.
fn starts_function(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let control: [&[u8]; 8] = [
        b"if", b"for", b"while", b"switch", b"catch", b"else", b"do", b"try",
    ];
    let is_control = text.starts_with(b"}") || control.contains(&first_word(text));
    let is_method = text.ends_with(b"{") && has(text, b"(") && !is_control;
    has(text, b"function") || has(text, b"=> {") || has(text, b"def ") || is_method
}

/// Returns the lines above a line, up to and including the line that starts the function around it.
pub(super) fn function_above<'a>(around: &LineSurroundings<'a>) -> &'a [u8] {
    let before = tail(around.before, WINDOW);
    let depth = indentation(around.line).len();
    let mut end = before.len().saturating_sub(1);
    while end > 0 {
        let start = memchr::memrchr(b'\n', &before[..end]).map_or(0, |at| at + 1);
        let line = &before[start..end];
        if indentation(line).len() < depth && !line.trim_ascii().is_empty() && starts_function(line)
        {
            return &before[start..];
        }
        end = start.saturating_sub(1);
    }
    b""
}
