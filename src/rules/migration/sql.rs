//! Splits SQL into statements and words for the rules of migrations.

use std::ops::Range;

/// Bytes of a name in brackets, at most. SQL Server allows 128 characters.
const MOST_NAME: usize = 512;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Quoted,
    /// A text or a body in dollar quotes.
    Text,
    Other,
}

/// A token with its offset in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct SqlToken<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl SqlToken<'_> {
    /// Returns true if the token is that keyword, which is in lower case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        match self.kind {
            TokenKind::Word => self.text.eq_ignore_ascii_case(keyword),
            TokenKind::Other => self.text == keyword,
            TokenKind::Quoted | TokenKind::Text => false,
        }
    }

    /// Returns the name that the token is, without quotes and in lower case.
    pub(super) fn name(&self) -> Option<String> {
        match self.kind {
            TokenKind::Word => Some(self.text.to_ascii_lowercase()),
            TokenKind::Quoted => Some(
                self.text
                    .trim_matches(['"', '`', '[', ']', '\\'])
                    .to_ascii_lowercase(),
            ),
            TokenKind::Text | TokenKind::Other => None,
        }
    }
}

/// A comment or a statement of SQL.
#[derive(Debug)]
pub(super) enum SqlPart<'a> {
    Comment(&'a str),
    Statement(Vec<SqlToken<'a>>),
}

/// Splits a text into its statements and line comments, in order. A comment within a statement
/// comes before it.
pub(super) fn parts(text: &str) -> Vec<SqlPart<'_>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        if let Some(end) = comment(bytes, at) {
            out.push(SqlPart::Comment(&text[at..end]));
            at = end;
        } else if bytes[at] == b';' {
            if !tokens.is_empty() {
                out.push(SqlPart::Statement(std::mem::take(&mut tokens)));
            }
            at += 1;
        } else if bytes[at].is_ascii_whitespace() {
            at += 1;
        } else if rest.starts_with('\u{feff}') {
            at += '\u{feff}'.len_utf8();
        } else {
            let (kind, len) = token(rest);
            tokens.push(SqlToken {
                kind,
                text: &rest[..len],
                at,
            });
            at += len;
        }
    }
    if !tokens.is_empty() {
        out.push(SqlPart::Statement(tokens));
    }
    out
}

/// Returns the end of the comment that starts at an offset.
fn comment(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest.starts_with(b"--") || (rest.starts_with(b"#") && starts_line(bytes, at)) {
        return Some(memchr::memchr(b'\n', rest).map_or(bytes.len(), |n| at + n));
    }
    // MySQL runs the text of `/*! … */`.
    if rest.starts_with(b"/*") {
        return Some(memchr::memmem::find(rest, b"*/").map_or(bytes.len(), |n| at + n + 2));
    }
    None
}

/// Returns true if only blanks are between the start of a line and an offset.
fn starts_line(bytes: &[u8], at: usize) -> bool {
    bytes[..at]
        .iter()
        .rev()
        .find(|b| !matches!(b, b' ' | b'\t'))
        .is_none_or(|b| *b == b'\n')
}

/// Returns the kind and the length of the token at the start of a text that is not empty.
fn token(rest: &str) -> (TokenKind, usize) {
    let bytes = rest.as_bytes();
    match bytes[0] {
        b'\'' => (TokenKind::Text, quoted(bytes, b'\'')),
        b'"' => (TokenKind::Quoted, quoted(bytes, b'"')),
        b'`' => (TokenKind::Quoted, quoted(bytes, b'`')),
        b'\\' if bytes.get(1) == Some(&b'"') => escaped(rest),
        b'[' => bracketed(rest),
        b'$' => dollar(rest),
        b if is_word(b) => (
            TokenKind::Word,
            bytes
                .iter()
                .position(|b| !is_word(*b))
                .unwrap_or(bytes.len()),
        ),
        _ => (TokenKind::Other, 1),
    }
}

/// Returns the length of a text in quotes; two quotes are one of the text.
fn quoted(bytes: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b if b == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Reads a name in escaped quotes, as it is in a string of a program: `\"orders\"`.
fn escaped(rest: &str) -> (TokenKind, usize) {
    let end = rest
        .get(2..)
        .and_then(|inner| inner.find("\\\""))
        .map(|n| n + 4);
    end.map_or((TokenKind::Other, 1), |end| (TokenKind::Quoted, end))
}

/// Reads a name in brackets. `[]` is the type of an array.
fn bracketed(rest: &str) -> (TokenKind, usize) {
    let near = &rest.as_bytes()[..rest.len().min(MOST_NAME)];
    let is_name = near.get(1).is_some_and(u8::is_ascii_alphabetic);
    let end = if is_name {
        memchr::memchr(b']', near)
    } else {
        None
    };
    end.map_or((TokenKind::Other, 1), |end| (TokenKind::Quoted, end + 1))
}

/// Reads a text in dollar quotes.
fn dollar(rest: &str) -> (TokenKind, usize) {
    let Some(len) = rest.get(1..).and_then(|tail| tail.find('$')) else {
        return (TokenKind::Other, 1);
    };
    let tag = &rest[..len + 2];
    if !tag[1..=len].bytes().all(is_word) {
        return (TokenKind::Other, 1);
    }
    let end = rest[tag.len()..]
        .find(tag)
        .map_or(rest.len(), |n| n + 2 * tag.len());
    (TokenKind::Text, end)
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'@') || b >= 0x80
}

/// Splits tokens at the commas outside of parentheses.
pub(super) fn split<'t, 'a>(tokens: &'t [SqlToken<'a>]) -> Vec<&'t [SqlToken<'a>]> {
    let mut out = Vec::new();
    let (mut start, mut depth) = (0, 0usize);
    for (i, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            "," if depth == 0 && token.kind == TokenKind::Other => {
                out.push(&tokens[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    out.push(&tokens[start..]);
    out
}

/// Returns true if the tokens have the keywords one after the other.
pub(super) fn has(tokens: &[SqlToken<'_>], keywords: &[&str]) -> bool {
    find(tokens, keywords).is_some()
}

/// Returns where the tokens have the keywords one after the other.
pub(super) fn find(tokens: &[SqlToken<'_>], keywords: &[&str]) -> Option<Range<usize>> {
    let at = tokens
        .windows(keywords.len())
        .position(|w| starts(w, keywords))?;
    Some(at..at + keywords.len())
}

/// Returns true if the tokens start with the keywords.
pub(super) fn starts(tokens: &[SqlToken<'_>], keywords: &[&str]) -> bool {
    tokens.len() >= keywords.len() && tokens.iter().zip(keywords).all(|(t, k)| t.is(k))
}

/// Returns the tokens behind the keywords, each of which may be missing.
pub(super) fn skip<'t, 'a>(
    mut tokens: &'t [SqlToken<'a>],
    keywords: &[&str],
) -> &'t [SqlToken<'a>] {
    for keyword in keywords {
        if tokens.first().is_some_and(|t| t.is(keyword)) {
            tokens = &tokens[1..];
        }
    }
    tokens
}

/// Reads a name that may have a schema before it. Returns its last part, and the tokens behind it.
pub(super) fn name<'t, 'a>(tokens: &'t [SqlToken<'a>]) -> Option<(String, &'t [SqlToken<'a>])> {
    let mut last = tokens.first()?.name()?;
    let mut rest = &tokens[1..];
    while let [dot, part, ..] = rest
        && dot.is(".")
    {
        last = part.name()?;
        rest = &rest[2..];
    }
    Some((last, rest))
}
