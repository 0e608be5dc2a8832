//! The blocks around a line and below it.

use super::LineSurroundings;
use super::lines::{
    WINDOW, above, below, block, first_word, has, has_word, head, indentation, is_word, outer,
};

/// Words that start a branch of the statement that has the block.
const BRANCHES: [&[u8]; 14] = [
    b"case", b"default", b"else", b"elif", b"elsif", b"elseif", b"except", b"finally", b"when",
    b"rescue", b"ensure", b"end", b"in", b"catch",
];

/// Returns true if the line ends the block, and there is code of the block below.
pub(super) fn has_code_after(around: &LineSurroundings<'_>) -> bool {
    let indent = indentation(around.line);
    for line in head(around.after, WINDOW).split(|b| *b == b'\n').skip(1) {
        let own = indentation(line);
        let text = line[own.len()..].trim_ascii_end();
        let is_comment =
            text.starts_with(b"//") || text.starts_with(b"#") && !text.starts_with(b"#[");
        if text.is_empty()
            || is_comment
            || own.len() > indent.len()
            || own == indent && b")]}\"'<|&?:.+".contains(&text[0])
        {
            // The end of the statement, unless it ends the block.
            if text.first() == Some(&b'}')
                && own == indent
                && !text.starts_with(b"});")
                && !text.starts_with(b"};")
            {
                return false;
            }
            continue;
        }
        let word = &text[..text.iter().position(|b| !is_word(*b)).unwrap_or(text.len())];
        return own == indent && !BRANCHES.contains(&word);
    }
    false
}

/// Returns true if the line opens a block with `{`, and the next text that is not white space is
/// its end.
pub(super) fn is_block_empty(around: &LineSurroundings<'_>) -> bool {
    let Some(open) = around.line.iter().rposition(|b| *b == b'{') else {
        return false;
    };
    let rest = around.line[open + 1..].iter().chain(around.after);
    rest.take(WINDOW).find(|b| !b.is_ascii_whitespace()) == Some(&b'}')
}

/// Returns true if the line does not make its own statement conditional.
pub(super) fn is_unconditional(around: &LineSurroundings<'_>) -> bool {
    !has(around.line, b" if ") && !has(around.line, b" unless ")
}

/// Returns true if the same statement has another `except` above or below.
pub(super) fn has_handler_beside(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    meets_handler(above(around), depth) || meets_handler(below(around), depth)
}

/// Returns true if the first of several lines that is not deeper and not a comment starts an
/// `except` block.
fn meets_handler<'a>(mut lines: impl Iterator<Item = (usize, &'a [u8])>, depth: usize) -> bool {
    lines
        .find(|(own, text)| *own < depth || *own == depth && !text.starts_with(b"#"))
        .is_some_and(|(own, text)| own == depth && text.starts_with(b"except"))
}

/// Returns true if a line starts a loop.
fn starts_loop(text: &[u8]) -> bool {
    let loops: [&[u8]; 4] = [b"for", b"foreach", b"while", b"loop"];
    let text = text
        .strip_prefix(b"async ")
        .or_else(|| text.strip_prefix(b"await "))
        .unwrap_or(text);
    loops.contains(&first_word(text)) || text.starts_with(b"\'") || has(text, b".forEach(")
}

/// Returns true if the statement is the first one in a loop.
pub(super) fn is_first_in_loop(around: &LineSurroundings<'_>) -> bool {
    let first = above(around).find(|(_, text)| !text.starts_with(b"//"));
    first.is_some_and(|(own, text)| {
        own < indentation(around.line).len() && starts_loop(text) || text == b"{"
    })
}

pub(super) fn is_in_loop(around: &LineSurroundings<'_>) -> bool {
    outer(around).any(starts_loop)
}

/// Returns true if the innermost block is that of an `if` whose line does not name `err`.
pub(super) fn is_if_without_error(around: &LineSurroundings<'_>) -> bool {
    outer(around).next().is_some_and(|text| {
        let code = memchr::memmem::find(text, b"//").map_or(text, |at| &text[..at]);
        code.starts_with(b"if ") && !has_word(code, b"err")
    })
}

pub(super) fn is_in_goroutine(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"go func") || outer(around).any(|text| has(text, b"go func"))
}

pub(super) fn is_in_coroutine(around: &LineSurroundings<'_>) -> bool {
    outer(around)
        .find(|text| has_word(text, b"def"))
        .is_some_and(|text| text.starts_with(b"async "))
}

pub(super) fn is_in_static_method(around: &LineSurroundings<'_>) -> bool {
    let line = if has_word(around.line, b"function") {
        Some(around.line)
    } else {
        outer(around).find(|text| has_word(text, b"function"))
    };
    line.is_some_and(|text| has_word(text, b"static"))
}

pub(super) fn is_in_optional_method(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"Optional") || outer(around).any(|text| has(text, b"Optional"))
}

/// Returns true if a line starts a block that is not always run.
fn starts_branch(text: &[u8]) -> bool {
    let branches: [&[u8]; 8] = [
        b"if", b"else", b"for", b"while", b"switch", b"case", b"try", b"default",
    ];
    let text = text.strip_prefix(b"}").unwrap_or(text).trim_ascii_start();
    branches.contains(&first_word(text))
}

/// Returns true if a block around the line, or the start of the line, is not always run.
pub(super) fn is_in_branch(around: &LineSurroundings<'_>) -> bool {
    starts_branch(around.line.trim_ascii_start()) || outer(around).any(starts_branch)
}

/// Returns true if the line is in the value of an attribute of markup.
pub(super) fn is_in_attribute(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"={") || outer(around).any(|text| has(text, b"={"))
}

/// Returns true if an earlier statement of the block can return.
pub(super) fn is_after_return(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    let mut returns = false;
    for (own, text) in above(around).take_while(|(own, _)| *own >= depth) {
        returns |= has_word(text, b"return");
        if own == depth && first_word(text) == b"if" && returns {
            return true;
        }
        returns &= own > depth || text.starts_with(b"}") || text.starts_with(b")");
    }
    false
}

/// Returns true if the block below returns a value.
pub(super) fn block_returns(around: &LineSurroundings<'_>) -> bool {
    block(around).any(|text| text.starts_with(b"return ")) || has(around.line, b": return ")
}

/// Returns true if the block below leaves the function or the loop.
pub(super) fn block_leaves(around: &LineSurroundings<'_>) -> bool {
    leaves(around.line) || block(around).any(leaves)
}

fn leaves(text: &[u8]) -> bool {
    has_word(text, b"return") || has_word(text, b"break")
}

/// Returns true if the function below has no statement that gives a value or fails.
pub(super) fn function_lacks_return(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    let ends: [&[u8]; 5] = [b"return", b"yield", b"raise", b"pass", b"..."];
    let mut is_body = false;
    for (own, text) in below(around) {
        if own == depth && is_body && !text.starts_with(b")") {
            break;
        }
        is_body |= has_word(text, b"def");
        if is_body && ends.iter().any(|end| has(text, end)) {
            return false;
        }
    }
    true
}

/// Returns true if the constructor of a subclass does not call the one of its parent.
pub(super) fn lacks_super(around: &LineSurroundings<'_>) -> bool {
    let class = outer(around).find(|text| has_word(text, b"class") || has_word(text, b"extends"));
    let is_subclass = class.is_some_and(|text| has_word(text, b"extends"));
    is_subclass && !has(around.line, b"super") && !block(around).any(|text| has(text, b"super"))
}

/// Returns true if the branch of a `switch` has no statement that ends it: nested blocks do not
/// count.
pub(super) fn falls_through(around: &LineSurroundings<'_>) -> bool {
    let depth = indentation(around.line).len();
    let lines: Vec<_> = below(around).take_while(|(own, _)| *own > depth).collect();
    let first = lines.iter().map(|(own, _)| *own).min();
    !ends_branch(around.line)
        && !lines
            .iter()
            .any(|(own, text)| Some(*own) == first && ends_branch(text))
}

/// Returns true if a line has a statement that ends a branch of a `switch`.
fn ends_branch(text: &[u8]) -> bool {
    let ends: [&[u8]; 4] = [b"break", b"return", b"throw", b"continue"];
    ends.iter().any(|end| has_word(text, end))
}

/// Returns true if the next line opens a block.
pub(super) fn is_block_next(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"; {")
        || below(around)
            .next()
            .is_some_and(|(_, text)| text.starts_with(b"{"))
}

/// Returns true if the body of the loop is empty, or is a `select` with an empty default.
pub(super) fn is_busy(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"{}")
        || below(around)
            .next()
            .is_some_and(|(_, text)| text.starts_with(b"}") || text.starts_with(b"select"))
}

/// Returns true if the line does not go on with the statement of the line above.
pub(super) fn starts_statement(around: &LineSurroundings<'_>) -> bool {
    above(around)
        .find(|(_, text)| !text.starts_with(b"#") && !text.starts_with(b"//"))
        .is_none_or(|(_, text)| !goes_on(text))
}

/// Returns true if a statement goes on below a line. A line that ends in a colon or brace starts a
/// block.
fn goes_on(text: &[u8]) -> bool {
    let words: [&[u8]; 4] = [b" and", b" or", b" not", b" return"];
    b"([,\\|&+-=?<>".contains(&text[text.len() - 1])
        || words.iter().any(|word| text.ends_with(word))
}

/// Returns true if the block below formats a text.
pub(super) fn block_formats(around: &LineSurroundings<'_>) -> bool {
    has(around.line, b"Sprint") || block(around).any(|text| has(text, b"Sprint"))
}
