//! Checks for repeated keys, definitions, labels and conditions.

use super::LineSurroundings;
use super::lines::{
    FAR, WINDOW, above, first_word, has, head, indentation, is_word, last_word, same_block,
    same_block_above, tail,
};
use std::collections::HashSet;

/// Returns the length of the key at the start of a text, if the text starts with a key and the sign
/// after it.
fn key_length(text: &[u8]) -> Option<usize> {
    let (open, rest) = match text.first()? {
        b'"' | b'\'' => (1, &text[1..]),
        b':' => (1, &text[1..]),
        _ => (0, text),
    };
    let is_quoted = open == 1 && text[0] != b':';
    let length = rest
        .iter()
        .position(|b| !(is_word(*b) || is_quoted && matches!(b, b'-' | b'.' | b'/' | b' ' | b':')))
        .filter(|length| *length > 0)?;
    let end = open + length + usize::from(is_quoted);
    if is_quoted && rest.get(length) != text.first() {
        return None;
    }
    let after = text.get(end..)?.trim_ascii_start();
    let is_key = after.starts_with(b"=>") || after.starts_with(b":") && !after.starts_with(b"::");
    is_key.then_some(end)
}

/// Returns true if a key of the line is a key of a later line of the block, or once more on the
/// line.
pub(super) fn key(around: &LineSurroundings<'_>) -> bool {
    let line = around.line;
    let indent = indentation(line).len();
    let starts = (indent..line.len())
        .filter(|at| *at == indent || matches!(line[at - 1], b' ' | b'{' | b'[' | b',' | b'('));
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for at in starts {
        let Some(length) = key_length(&line[at..]) else {
            continue;
        };
        if !seen.insert(&line[at..at + length]) {
            return true;
        }
    }
    let Some(length) = key_length(&line[indent..]) else {
        return false;
    };
    let needle = [b"\n", &line[..indent + length]].concat();
    let after = same_block(head(around.after, WINDOW), line);
    memchr::memmem::find_iter(after, &needle).any(|at| {
        let rest = after[at + needle.len()..].trim_ascii_start();
        rest.starts_with(b"=>") || rest.starts_with(b":")
    })
}

/// Words before brackets that do not define a name.
const STATEMENTS: [&[u8]; 16] = [
    b"if",
    b"for",
    b"while",
    b"switch",
    b"catch",
    b"return",
    b"with",
    b"else",
    b"do",
    b"try",
    b"it",
    b"describe",
    b"test",
    b"context",
    b"function",
    b"use",
];

/// Returns true if the same block defines the name of the line once more.
pub(super) fn definition(around: &LineSurroundings<'_>) -> bool {
    let line = around.line.trim_ascii_end();
    let start = &line[..memchr::memchr(b'(', line).unwrap_or(line.len())];
    if indentation(start).len() == start.len()
        || STATEMENTS.contains(&last_word(start.trim_ascii_end()))
    {
        return false;
    }
    let needle = [b"\n", start].concat();
    let (after, before) = (head(around.after, FAR), tail(around.before, FAR));
    // The block is read only if the text has the definition at all.
    has_definition(after, &needle) && has_definition(same_block(after, line), &needle)
        || has_definition(before, &needle)
            && has_definition(same_block_above(before, line), &needle)
}

/// Returns true if a text has the start of a definition whose name is not longer.
fn has_definition(text: &[u8], start: &[u8]) -> bool {
    memchr::memmem::find_iter(text, start).any(|at| {
        matches!(
            text.get(at + start.len()),
            None | Some(b'(' | b'\n' | b'\r' | b' ')
        )
    })
}

/// Returns the values of a label such as `case 'a', 'b':`.
fn values(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.trim_ascii_start();
    let rest = &line[first_word(line).len()..];
    let rest = &rest[..memchr::memmem::find(rest, b" then").unwrap_or(rest.len())];
    rest.split(|b| matches!(b, b',' | b':' | b'{' | b';' | b'(' | b')'))
        .map(<[u8]>::trim_ascii)
        .filter(|value| !value.is_empty())
}

/// Returns true if a value of the label is a value of another label of the block.
pub(super) fn label(around: &LineSurroundings<'_>) -> bool {
    let text = around.line.trim_ascii_start();
    let word = first_word(text);
    let depth = indentation(around.line);
    let parts = [
        same_block_above(tail(around.before, WINDOW), around.line),
        same_block(head(around.after, WINDOW), around.line),
    ];
    let lines = parts.iter().flat_map(|part| part.split(|b| *b == b'\n'));
    let labels =
        lines.filter(|line| indentation(line) == depth && first_word(&line[depth.len()..]) == word);
    let known: HashSet<_> = labels.flat_map(values).collect();
    values(around.line).any(|value| known.contains(value))
}

/// Returns the condition of the branch on a line, without its brackets if it has some. `None`: it
/// ends on another line.
fn condition_of(line: &[u8]) -> Option<&[u8]> {
    let words: [&[u8]; 3] = [b"else if", b"elseif", b"elif"];
    let at = words
        .iter()
        .find_map(|word| Some(memchr::memmem::find(line, word)? + word.len()))?;
    let rest = line[at..].trim_ascii();
    if !rest.starts_with(b"(") {
        let end = rest
            .iter()
            .rposition(|b| !matches!(b, b':' | b'{' | b' '))
            .map_or(0, |at| at + 1);
        return Some(&rest[..end]);
    }
    let mut depth = 0_usize;
    for (at, b) in rest.iter().enumerate() {
        match b {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(&rest[1..at]),
            b')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns true if the condition of the branch is that of an earlier branch of the statement, or is
/// not on one line.
pub(super) fn condition(around: &LineSurroundings<'_>) -> bool {
    let condition = condition_of(around.line).or_else(|| {
        memchr::memmem::find(around.line, b" ->").map(|at| around.line[..at].trim_ascii())
    });
    let Some(condition) = condition else {
        return true;
    };
    let depth = indentation(around.line).len();
    let branches = above(around)
        .take_while(|(own, _)| *own >= depth)
        .filter(|(own, _)| *own == depth);
    for (_, text) in branches {
        if has(text, condition) {
            return !condition.is_empty();
        }
        if matches!(first_word(text), b"if" | b"when") {
            return false;
        }
    }
    false
}

/// Returns true if both sides of `||` or `&&` compare the same operand.
pub(super) fn operand(around: &LineSurroundings<'_>) -> bool {
    let line = around.line;
    let joins =
        memchr::memmem::find_iter(line, b" || ").chain(memchr::memmem::find_iter(line, b" && "));
    joins.take(16).any(|at| {
        let (left, right) = (
            compared(&line[..at], true),
            compared(&line[at + 4..], false),
        );
        left.is_some() && left == right
    })
}

/// Returns the operand before the last (or first) comparison of a text.
fn compared(text: &[u8], is_last: bool) -> Option<&[u8]> {
    let signs: [&[u8]; 6] = [b" == ", b" != ", b" < ", b" > ", b" <= ", b" >= "];
    let at = match is_last {
        true => signs
            .iter()
            .filter_map(|sign| memchr::memmem::rfind(text, sign))
            .max(),
        false => signs
            .iter()
            .filter_map(|sign| memchr::memmem::find(text, sign))
            .min(),
    }?;
    let start = text[..at]
        .iter()
        .rposition(|b| b" (!".contains(b))
        .map_or(0, |at| at + 1);
    Some(&text[start..at])
}

/// Returns true if the pointer that the line frees is freed once more near.
pub(super) fn free(around: &LineSurroundings<'_>) -> bool {
    let Some(at) = memchr::memmem::find(around.line, b"free(") else {
        return false;
    };
    let call = &around.line[at..];
    let call = &call[..memchr::memchr(b')', call).map_or(call.len(), |end| end + 1)];
    has(head(around.after, WINDOW), call) || has(tail(around.before, WINDOW), call)
}
