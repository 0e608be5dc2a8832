//! Code inside of strings: `"#{…}"`, `f"{…}"`, `"${…}"`, `"$(…)"`. The lexer itself reads template
//! literals of JavaScript.

use super::{Place, PlacedRange};

/// The notation of code in strings of a language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inner {
    None,
    /// `#{…}` in double quotes and backticks.
    Ruby,
    /// `${…}` in every string.
    Dollar,
    /// `${…}` and `{$…}` in double quotes and here documents.
    Php,
    /// `$(…)` and backticks in double quotes and here documents.
    Shell,
    /// `$(…)` in double quotes.
    PowerShell,
    /// `{…}` in strings with the prefix `f` or `t`.
    Python,
    /// `{…}` in strings with the prefix `$`.
    CSharp,
    /// `\(…)`.
    Swift,
    /// `@{[…]}` and `${\…}` in double quotes and here documents.
    Perl,
}

/// Parts of a string, at most. The text after them counts as code.
const PARTS_MAX: usize = 4096;
/// Bytes of a string inside of the code.
const NESTED_MAX: usize = 256;

/// Splits a string into its text and the code in it. `None`: it has no code. Code that does not end
/// inside of the string, because a quote in it was read as the string's end, reaches the end of the
/// token.
pub(super) fn parts(text: &[u8], token: PlacedRange, inner: Inner) -> Option<Vec<PlacedRange>> {
    if !holds_code(text, token.start, inner) {
        return None;
    }
    let body = &text[..token.end];
    let mut parts = Vec::new();
    let (mut from, mut at) = (token.start, token.start + 1);
    while let Some((open, brackets)) = opener(body, at, inner) {
        let end = code_end(body, open, brackets)
            .filter(|_| parts.len() < PARTS_MAX)
            .unwrap_or(token.end);
        parts.push(PlacedRange {
            start: from,
            end: open,
            place: Place::String,
        });
        parts.push(PlacedRange {
            start: open,
            end,
            place: Place::Code,
        });
        (from, at) = (end, end);
    }
    if parts.is_empty() {
        return None;
    }
    if from < token.end {
        parts.push(PlacedRange {
            start: from,
            end: token.end,
            place: Place::String,
        });
    }
    Some(parts)
}

/// Returns true if the start of a string shows that it can contain code.
fn holds_code(text: &[u8], start: usize, inner: Inner) -> bool {
    let first = text.get(start).copied();
    let before = &text[..start];
    match inner {
        Inner::None => false,
        Inner::Dollar | Inner::Swift => true,
        Inner::Ruby | Inner::Php | Inner::Shell | Inner::PowerShell | Inner::Perl => match first {
            Some(b'\n') => !quotes_word(before, inner),
            first => first != Some(b'\'') && !text[start..].starts_with(b"@'"),
        },
        Inner::CSharp => [&b"$"[..], b"$@", b"@$"]
            .iter()
            .any(|prefix| before.ends_with(prefix)),
        Inner::Python => {
            let letters = before
                .iter()
                .rev()
                .take(3)
                .take_while(|b| b.is_ascii_alphabetic())
                .count();
            let (rest, prefix) = before.split_at(start - letters);
            let is_prefix = !rest
                .last()
                .is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
            let known = [&b"f"[..], b"fr", b"rf", b"t", b"tr", b"rt"];
            is_prefix && known.iter().any(|k| prefix.eq_ignore_ascii_case(k))
        }
    }
}

/// Returns true if a text ends with a line that opens a here document whose end word is quoted:
/// `<<'EOF'`.
fn quotes_word(text: &[u8], inner: Inner) -> bool {
    const LINE: usize = 512;
    let near = &text[text.len().saturating_sub(LINE)..];
    let line = memchr::memrchr(b'\n', near).map_or(near, |i| &near[i + 1..]);
    memchr::memmem::find_iter(line, b"<<").any(|at| {
        let word = line[at..]
            .iter()
            .find(|b| !matches!(b, b'<' | b'-' | b'~' | b' '));
        matches!(word, Some(b'\'' | b'\\')) || (word == Some(&b'"') && inner == Inner::Shell)
    })
}

/// Returns the next opening of code: its first bracket, and the pair of brackets that end it.
fn opener(text: &[u8], from: usize, inner: Inner) -> Option<(usize, (u8, u8))> {
    const BRACES: (u8, u8) = (b'{', b'}');
    const ROUND: (u8, u8) = (b'(', b')');
    const TICKS: (u8, u8) = (b'`', b'`');
    let mut at = from;
    loop {
        let rest = text.get(at..)?;
        at += match inner {
            Inner::Python | Inner::CSharp => memchr::memchr(b'{', rest)?,
            Inner::Ruby => memchr::memchr2(b'#', b'\\', rest)?,
            Inner::Dollar | Inner::PowerShell => memchr::memchr2(b'$', b'\\', rest)?,
            Inner::Php => memchr::memchr3(b'$', b'{', b'\\', rest)?,
            Inner::Shell => memchr::memchr3(b'$', b'`', b'\\', rest)?,
            Inner::Swift => memchr::memchr(b'\\', rest)?,
            Inner::Perl => memchr::memchr3(b'$', b'@', b'\\', rest)?,
            Inner::None => return None,
        };
        let next = text.get(at + 1).copied();
        match (inner, text[at], next) {
            (Inner::Swift, _, Some(b'(')) => return Some((at + 1, ROUND)),
            (_, b'\\', _) => at += 1,
            // A doubled brace is a literal brace.
            (Inner::Python | Inner::CSharp, _, Some(b'{')) => at += 1,
            (Inner::Python | Inner::CSharp, ..) => return Some((at, BRACES)),
            (Inner::Ruby | Inner::Dollar | Inner::Php, b'#' | b'$', Some(b'{')) => {
                return Some((at + 1, BRACES));
            }
            (Inner::Php, b'{', Some(b'$')) => return Some((at, BRACES)),
            (Inner::Shell, b'`', _) => return Some((at, TICKS)),
            (Inner::Shell | Inner::PowerShell, b'$', Some(b'(')) => return Some((at + 1, ROUND)),
            (Inner::Perl, _, Some(b'{')) if matches!(text.get(at + 2), Some(b'[' | b'\\')) => {
                return Some((at + 1, BRACES));
            }
            _ => {}
        }
        at += 1;
    }
}

/// Returns the end of code, after the bracket that closes the one at `open`. `None`: it does not
/// end.
fn code_end(text: &[u8], open: usize, (opening, closing): (u8, u8)) -> Option<usize> {
    let (mut depth, mut at) = (1u32, open + 1);
    while let Some(&b) = text.get(at) {
        match b {
            b if b == closing => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b if b == opening => depth += 1,
            b'\\' => at += 1,
            b'"' | b'\'' => {
                let near = &text[at + 1..text.len().min(at + 1 + NESTED_MAX)];
                at += memchr::memchr(b, near).map_or(0, |i| i + 1);
            }
            _ => {}
        }
        at += 1;
    }
    None
}
