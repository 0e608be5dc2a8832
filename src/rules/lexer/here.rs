//! Here documents of shells, Ruby, PHP and Perl.

use super::Habit;

/// Returns true if a shell text ends within `((…`, where `<<` is a shift.
pub(super) fn is_arithmetic(habit: Habit, text: &[u8]) -> bool {
    const LINE: usize = 512;
    let near = &text[text.len().saturating_sub(LINE)..];
    let line = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
    let opened = memchr::memmem::rfind(line, b"((");
    habit == Habit::Shell
        && opened.is_some_and(|i| memchr::memmem::find(&line[i..], b"))").is_none())
}

/// Parses `<<EOF`, `<<-'EOF'`, `<<~EOF`, `<<<EOF` (PHP): the range of the end word, and true if it
/// may be indented.
pub(super) fn word(rest: &[u8], habit: Habit) -> Option<(usize, usize, bool)> {
    let mut at = if habit == Habit::Php {
        rest.starts_with(b"<<<").then_some(3)?
    } else {
        rest.starts_with(b"<<").then_some(2)?
    };
    let mut indented = habit == Habit::Php;
    if habit != Habit::Php && matches!(rest.get(at), Some(b'-' | b'~')) {
        indented = true;
        at += 1;
    }
    while habit != Habit::Ruby && rest.get(at) == Some(&b' ') {
        at += 1;
    }
    if matches!(rest.get(at), Some(b'"' | b'\'' | b'\\')) {
        at += 1;
    }
    let length = rest[at..]
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    let first = *rest.get(at)?;
    // `a << b` and `1 <<2` are shifts. End words are in capitals, except in the shell.
    let named = if habit == Habit::Shell {
        first.is_ascii_alphabetic() || first == b'_'
    } else {
        first.is_ascii_uppercase()
    };
    let least = if habit == Habit::Shell { 1 } else { 2 };
    (named && (least..64).contains(&length)).then_some((at, length, indented))
}

/// Returns the end of the line with the end word. `None`: the text lacks the word.
pub(super) fn end(text: &[u8], from: usize, word: &[u8], indented: bool) -> Option<usize> {
    let mut at = from;
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i);
        let line = &text[at..end];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = if indented {
            line.trim_ascii_start()
        } else {
            line
        };
        if line.strip_prefix(word).is_some_and(|rest| {
            !rest
                .first()
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_')
        }) {
            return Some(end);
        }
        at = end + 1;
    }
    None
}
