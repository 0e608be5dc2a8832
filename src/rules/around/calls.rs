//! The arguments of the call on a line.

use super::LineSurroundings;
use super::lines::{WINDOW, head};

/// Returns the arguments of the first call of a name, and the text after the call. `None`: the text
/// has no such call, or not its end.
fn arguments<'a>(text: &'a [u8], name: &[u8]) -> Option<(Vec<&'a [u8]>, &'a [u8])> {
    let start = memchr::memmem::find(text, name)? + name.len();
    let (mut out, mut from, mut depth, mut quote) = (Vec::new(), start, 0_usize, None);
    let mut at = start;
    while let Some(b) = text.get(at) {
        match (*b, quote) {
            (b'\\', Some(_)) => at += 1,
            (b, Some(open)) if b == open => quote = None,
            (_, Some(_)) => {}
            (b'"' | b'\'', None) => quote = Some(*b),
            (b'(' | b'[' | b'{', None) => depth += 1,
            (b')', None) if depth == 0 => {
                out.push(text[from..at].trim_ascii());
                return Some((out, &text[at + 1..]));
            }
            (b')' | b']' | b'}', None) => depth = depth.saturating_sub(1),
            (b',', None) if depth == 0 => {
                out.push(text[from..at].trim_ascii());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the line and the text after it.
fn with_rest(around: &LineSurroundings<'_>) -> Vec<u8> {
    [around.line, head(around.after, WINDOW)].concat()
}

/// Returns true if the second argument of an assertion is a constant, or if the call has no end
/// near the line.
pub(super) fn second_is_constant(around: &LineSurroundings<'_>) -> bool {
    let text = with_rest(around);
    let Some((arguments, _)) = arguments(&text, b"True(").or_else(|| arguments(&text, b"False("))
    else {
        return true;
    };
    let words: [&[u8]; 3] = [b"True", b"False", b"None"];
    arguments.get(1).is_some_and(|value| {
        words.contains(value)
            || value
                .first()
                .is_some_and(|b| b.is_ascii_digit() || b"-.[{".contains(b))
    })
}

/// Returns true if a format operation follows the call of `print`.
pub(super) fn is_formatted(around: &LineSurroundings<'_>) -> bool {
    let text = with_rest(around);
    let Some((_, rest)) = arguments(&text, b"print(") else {
        return true;
    };
    let rest = rest.trim_ascii_start();
    rest.starts_with(b"%") || rest.starts_with(b".format(")
}

/// Returns true if the mode of a call of `open` has a letter too many, or one that no mode has.
pub(super) fn has_invalid_mode(around: &LineSurroundings<'_>) -> bool {
    let text = with_rest(around);
    let Some((arguments, _)) = arguments(&text, b"open(") else {
        return true;
    };
    let Some(mode) = arguments.get(1) else {
        return false;
    };
    let mode = mode.strip_prefix(b"mode=").unwrap_or(mode);
    let Some(mode) = mode.strip_prefix(b"\"").or_else(|| mode.strip_prefix(b"'")) else {
        return false;
    };
    let mode = &mode[..mode.len().saturating_sub(1)];
    let is_valid = count_of(mode, b"rwax") == 1
        && count_of(mode, b"bt") < 2
        && count_of(mode, b"+") < 2
        && count_of(mode, b"rwaxbt+") == mode.len();
    !is_valid
}

/// Returns the number of bytes of a text that are in a set.
fn count_of(text: &[u8], set: &[u8]) -> usize {
    text.iter().filter(|b| set.contains(b)).count()
}

/// Returns true if the placeholders of a format string are not as many as the arguments of the
/// call, or if the string is not before the call on its line.
pub(super) fn count_differs(around: &LineSurroundings<'_>) -> bool {
    let text = with_rest(around);
    if let Some((arguments, _)) = arguments(&text, b"tring.Format(") {
        let is_text = arguments[0].starts_with(b"\"");
        let is_first_used = memchr::memmem::find(arguments[0], b"{0").is_some();
        return is_text && (count_of(arguments[0], b"{") + 1 != arguments.len() || !is_first_used);
    }
    let Some((arguments, _)) = arguments(&text, b".format(") else {
        return true;
    };
    let at = memchr::memmem::find(&text, b".format(").unwrap_or_default();
    let line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |end| end + 1);
    let count = arguments
        .iter()
        .filter(|argument| !argument.is_empty())
        .count();
    count_of(&text[line..at], b"{") != count
}
