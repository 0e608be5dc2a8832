//! Openers of strings and regular expressions in JavaScript.

/// Returns true if a text ends with a keyword that an expression can follow.
pub(super) fn follows_keyword(text: &[u8]) -> bool {
    const KEYWORDS: &[&[u8]] = &[
        b"return",
        b"typeof",
        b"case",
        b"in",
        b"of",
        b"do",
        b"else",
        b"void",
        b"delete",
        b"throw",
        b"await",
        b"yield",
        b"from",
        b"import",
        b"export",
        b"default",
        b"as",
        b"instanceof",
        b"new",
        b"extends",
    ];
    let word = text
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$'))
        .count();
    KEYWORDS.contains(&&text[text.len() - word..])
}

/// Returns the end of a regular expression if a slash starts one.
pub(super) fn regex_end(text: &[u8], at: usize) -> Option<usize> {
    let blanks = text[..at]
        .iter()
        .rev()
        .take(64)
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    let head = &text[..at - blanks];
    let operand = match head.last() {
        None => false,
        Some(b) if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$') => !follows_keyword(head),
        Some(b) => matches!(b, b')' | b']' | b'}' | b'"' | b'\'' | b'`'),
    };
    // `</div>` and `/>` of JSX.
    if operand || head.last() == Some(&b'<') || text.get(at + 1) == Some(&b'>') {
        return None;
    }
    let (mut class, mut i) = (false, at + 1);
    while i < text.len().min(at + 400) {
        match text[i] {
            b'\n' => return None,
            b'\\' => i += 1,
            b'[' => class = true,
            b']' => class = false,
            b'/' if !class => return Some(i + 1),
            _ => {}
        }
        i += 1;
    }
    None
}
