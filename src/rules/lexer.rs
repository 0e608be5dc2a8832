//! The lexical position of each byte of a file: code, a string or a comment.
//!
//! One table for each language defines how comments and strings open and close. The code below
//! handles constructs that a table cannot express. It reads a text once, and only as far as needed.
//! All unknown text is code.

mod here;
mod javascript;
mod outline;
mod place;
mod readings;
mod syntax;
mod within;

use super::{MARK, visits};
pub(crate) use outline::{has_one_syntax, languages_of, outline};
pub(crate) use place::Place;
use std::collections::VecDeque;
use syntax::{Escape, Habit, Quote, SYNTAXES, Syntax, quote};
use within::Inner;
pub(super) use {outline::comment, outline::not_code, readings::Readings};

/// A range of text with one lexical position.
#[derive(Clone, Copy, Debug)]
struct PlacedRange {
    start: usize,
    end: usize,
    place: Place,
}

/// The state of the lexer, which suffices to continue from it.
#[derive(Clone, Debug, Default)]
struct LexerState {
    at: usize,
    /// JavaScript: for each open template literal, how many braces are open in its code.
    templates: Vec<u32>,
    /// PHP: true before a `<?`. The text there is sent unchanged, so it has no comments or strings.
    outside: bool,
    /// Here documents that start on the next line: bytes of their end words, and true if the end
    /// may be indented.
    here: Vec<(usize, usize, bool)>,
}

/// Determines lexical positions in one text with one syntax.
#[derive(Debug)]
struct Lexer<'t> {
    text: &'t [u8],
    syntax: Option<&'static Syntax>,
    /// Bytes that can open a string, a comment or another construct.
    special: [bool; 256],
    state: LexerState,
    token: PlacedRange,
    /// True if the token is a string with code in it, whose parts are among the recent tokens.
    is_split: bool,
    /// States from which the lexer can resume.
    checkpoints: Vec<LexerState>,
    /// The last tokens, in order and without a gap, because several rules need positions of one
    /// line.
    recent: VecDeque<PlacedRange>,
    /// Here documents without an end.
    endless: u32,
}

/// Here documents without an end whose end is searched for, at most. Each search reaches the end of
/// the text.
const ENDLESS_MAX: u32 = 16;
/// Bytes between two stored states.
const STRIDE: usize = 8 * 1024;
/// Bytes of stored tokens: more than a line that rules search as a whole.
const RECENT: usize = 4 * STRIDE;

impl<'t> Lexer<'t> {
    /// Creates a lexer at the start of a text, in code.
    fn new(text: &'t [u8], syntax: Option<&'static Syntax>, outside: bool) -> Self {
        let mut special = [false; 256];
        if let Some(s) = syntax {
            let openers = s
                .line
                .iter()
                .chain(s.line_start)
                .chain(s.block.iter().map(|(open, _)| open));
            for o in openers.copied().chain(s.quotes.iter().map(|q| q.open)) {
                special[usize::from(o.as_bytes()[0])] = true;
            }
            let habits: &[u8] = match s.habit {
                Habit::JavaScript => b"`{}/",
                Habit::Rust => b"'",
                Habit::Shell => b"<\n",
                Habit::Ruby | Habit::Perl => b"<=\n",
                Habit::Php => b"<?\n",
                _ => b"",
            };
            habits.iter().for_each(|b| special[usize::from(*b)] = true);
        }
        let token = PlacedRange {
            start: 0,
            end: 0,
            place: Place::Code,
        };
        let state = LexerState {
            outside,
            ..LexerState::default()
        };
        Self {
            text,
            syntax,
            special,
            state: state.clone(),
            token,
            is_split: false,
            checkpoints: vec![state],
            recent: VecDeque::new(),
            endless: 0,
        }
    }

    /// Returns true if the language's comments are known.
    fn knows_comments(&self) -> bool {
        self.syntax
            .is_some_and(|s| !(s.line.is_empty() && s.line_start.is_empty() && s.block.is_empty()))
    }

    /// Returns the lexical position of a byte: code, string or comment.
    fn place_at(&mut self, at: usize) -> Place {
        let Some(syntax) = self.syntax else {
            return Place::Code;
        };
        if at < self.token.start {
            if let Some(token) = self.kept(at) {
                return token.place;
            }
            let back = self.checkpoints.partition_point(|c| c.at <= at);
            self.state = self.checkpoints[back.saturating_sub(1)].clone();
            self.token = PlacedRange {
                start: self.state.at,
                end: self.state.at,
                place: Place::Code,
            };
            self.is_split = false;
            self.recent.clear();
        }
        while self.token.end <= at && self.token.end < self.text.len() {
            // A deep state is stored less often, so that all states take no more memory than the
            // text.
            let distance = STRIDE + 4 * self.state.templates.len() + 24 * self.state.here.len();
            if self
                .checkpoints
                .last()
                .is_none_or(|c| c.at + distance <= self.state.at)
            {
                self.checkpoints.push(self.state.clone());
            }
            self.token = self.next(syntax);
            self.keep(syntax.inner);
            while self
                .recent
                .front()
                .is_some_and(|t| t.end + RECENT < self.token.start)
            {
                self.recent.pop_front();
            }
        }
        let part = if self.is_split { self.kept(at) } else { None };
        part.unwrap_or(self.token).place
    }

    /// Adds the token to the recent ones. A string with code in it is added in parts.
    fn keep(&mut self, inner: Inner) {
        let is_string = self.token.place == Place::String;
        let parts = if is_string {
            within::parts(self.text, self.token, inner)
        } else {
            None
        };
        self.is_split = parts.is_some();
        match parts {
            Some(parts) => self.recent.extend(parts),
            None => self.recent.push_back(self.token),
        }
    }

    /// Returns the token that contains a byte, if it is still stored.
    fn kept(&self, at: usize) -> Option<PlacedRange> {
        let i = self.recent.partition_point(|t| t.end <= at);
        self.recent.get(i).copied().filter(|t| t.start <= at)
    }

    /// Reads the token that starts at the state's offset.
    fn next(&mut self, syntax: &Syntax) -> PlacedRange {
        let start = self.state.at;
        if self.state.outside {
            let end = php_opener(&self.text[start..]).map_or(self.text.len(), |i| start + i + 2);
            self.state = LexerState {
                at: end,
                ..LexerState::default()
            };
            return PlacedRange {
                start,
                end,
                place: Place::Code,
            };
        }
        let mut at = start;
        loop {
            let rest = &self.text[at..];
            match rest.iter().position(|b| self.special[usize::from(*b)]) {
                Some(i) => {
                    visits::add(i + 1);
                    at += i;
                }
                None => {
                    visits::add(rest.len());
                    self.state.at = self.text.len();
                    return PlacedRange {
                        start,
                        end: self.text.len(),
                        place: Place::Code,
                    };
                }
            }
            // Checkpoints require tokens of bounded size.
            if at > start && at - start >= STRIDE {
                self.state.at = at;
                return PlacedRange {
                    start,
                    end: at,
                    place: Place::Code,
                };
            }
            // The opening of a string or comment ends the code before it, and is then read as a
            // separate token.
            let opened = self.opens(syntax, at);
            visits::add(opened.map_or(0, |(end, _)| end - at));
            match opened {
                Some((end, place)) if at == start => {
                    self.state.at = end;
                    return PlacedRange { start, end, place };
                }
                Some(_) => {
                    self.state.at = at;
                    return PlacedRange {
                        start,
                        end: at,
                        place: Place::Code,
                    };
                }
                None => {
                    self.notice(syntax, at);
                    at += 1;
                }
            }
        }
    }

    /// Returns the position and the end of the construct that opens at a byte. Changes the state
    /// only if a template or a here document opens at the very start of a token.
    fn opens(&mut self, syntax: &Syntax, at: usize) -> Option<(usize, Place)> {
        let text = self.text;
        let rest = &text[at..];
        let before = (at > start_of(text)).then(|| text[at - 1]);
        for (open, close) in syntax.block {
            if rest.starts_with(open.as_bytes()) {
                return Some((
                    block_end(text, at + open.len(), open, close, syntax.nested),
                    Place::Comment,
                ));
            }
        }
        if syntax.habit == Habit::Php && rest.starts_with(b"?>") {
            if self.state.at == at {
                self.state = LexerState {
                    at,
                    outside: true,
                    ..LexerState::default()
                };
            }
            return Some((at + 2, Place::Code));
        }
        if syntax
            .line_start
            .iter()
            .any(|o| rest.starts_with(o.as_bytes()))
            && blank_before(text, at)
        {
            return Some((at + comment_length(rest, syntax), Place::Comment));
        }
        if let Some(open) = syntax.line.iter().find(|o| rest.starts_with(o.as_bytes())) {
            let word_start = before.is_none_or(|b| {
                b.is_ascii_whitespace() || matches!(b, b';' | b'(' | b'|' | b'&' | b')')
            });
            let counts = match (syntax.habit, *open) {
                (Habit::Shell | Habit::Yaml, "#") => word_start,
                // `$#array`, `s#a#b#`, `qw#…#`.
                (Habit::Perl, "#") => word_start,
                (Habit::Php, "#") => rest.get(1) != Some(&b'['),
                (Habit::Php, "//") => before != Some(b':'),
                _ => true,
            };
            if counts {
                return Some((at + comment_length(rest, syntax), Place::Comment));
            }
            return None;
        }
        if let Some(found) = self.habit(syntax.habit, at, before) {
            return found;
        }
        let quote = syntax
            .quotes
            .iter()
            .find(|q| rest.starts_with(q.open.as_bytes()))?;
        let end = string_end(text, at + quote.open.len(), quote);
        // A quote without a closing quote on its line is not a string, but an apostrophe in the
        // text of a page or of a comment.
        let is_closed =
            quote.lines || text[at + quote.open.len()..end].ends_with(quote.close.as_bytes());
        if !is_closed {
            visits::add(end - at);
            return None;
        }
        Some((end, Place::String))
    }

    /// Handles the habits. `None`: no habit applies. `Some(None)`: the byte is certainly code.
    fn habit(
        &mut self,
        habit: Habit,
        at: usize,
        before: Option<u8>,
    ) -> Option<Option<(usize, Place)>> {
        let text = self.text;
        let rest = &text[at..];
        let word_before = before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
        match (habit, rest[0]) {
            (Habit::JavaScript, b'`') => {
                return Some(Some((self.template_end(at + 1, at), Place::String)));
            }
            (Habit::JavaScript, b'}') if self.state.templates.last() == Some(&1) => {
                return Some(Some((self.template_end(at + 1, at), Place::String)));
            }
            (Habit::JavaScript, b'/') => {
                return Some(javascript::regex_end(text, at).map(|end| (end, Place::String)));
            }
            // `don't` in JSX. A string cannot follow a name unless the name is a keyword.
            (Habit::JavaScript, b'\'' | b'"')
                if word_before && !javascript::follows_keyword(&text[..at]) =>
            {
                return Some(None);
            }
            (Habit::Rust, b'\'') => return Some(char_end(rest).map(|n| (at + n, Place::String))),
            (Habit::Rust, b'"') => {
                let hashes = text[..at].iter().rev().take_while(|b| **b == b'#').count();
                if at > hashes && text[at - hashes - 1] == b'r' {
                    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
                    let end = memchr::memmem::find(&rest[1..], &close)
                        .map_or(text.len(), |i| at + 1 + i + close.len());
                    return Some(Some((end, Place::String)));
                }
            }
            (Habit::Cpp, b'"') if before == Some(b'R') => {
                let open = memchr::memchr(b'(', &rest[..rest.len().min(18)])?;
                let close = [&b")"[..], &rest[1..open], b"\""].concat();
                let end =
                    memchr::memmem::find(rest, &close).map_or(text.len(), |i| at + i + close.len());
                return Some(Some((end, Place::String)));
            }
            // `1'000'000`.
            (Habit::Cpp, b'\'') if word_before => return Some(None),
            (Habit::CSharp, b'"') if before == Some(b'@') || text[..at].ends_with(b"@$") => {
                let verbatim = quote("\"", Escape::Doubled, true);
                return Some(Some((string_end(text, at + 1, &verbatim), Place::String)));
            }
            (Habit::Yaml, b'"' | b'\'') => {
                let value = before.is_none_or(|b| {
                    b.is_ascii_whitespace() || matches!(b, b'[' | b'{' | b',' | b'(' | b'=')
                });
                if !value {
                    return Some(None);
                }
            }
            // `\"` and `\'` outside strings.
            (Habit::Shell, b'"' | b'\'') if before == Some(b'\\') => return Some(None),
            // `don't` near a here document, `$'`, `s/'//`.
            (Habit::Perl | Habit::Ruby, b'\'' | b'"' | b'`')
                if matches!(before, Some(b'$' | b'?' | b'\\')) =>
            {
                return Some(None);
            }
            (Habit::Perl, b'\'') if word_before => return Some(None),
            (Habit::Ruby | Habit::Perl, b'=') if before.is_none_or(|b| b == b'\n') => {
                let close: &[u8] = if habit == Habit::Ruby {
                    b"\n=end"
                } else {
                    b"\n=cut"
                };
                let opens = if habit == Habit::Ruby {
                    rest.starts_with(b"=begin")
                } else {
                    rest[1..].first().is_some_and(u8::is_ascii_lowercase)
                };
                if opens {
                    let end = memchr::memmem::find(rest, close)
                        .map_or(text.len(), |i| at + i + close.len());
                    return Some(Some((end, Place::Comment)));
                }
                return Some(None);
            }
            (Habit::Shell | Habit::Ruby | Habit::Php | Habit::Perl, b'\n') => {
                if self.state.here.is_empty() || self.state.at != at {
                    return Some((!self.state.here.is_empty()).then_some((at, Place::Code)));
                }
                let mut end = at + 1;
                for (start, length, indented) in std::mem::take(&mut self.state.here) {
                    end = self.here_end(end, &text[start..start + length], indented);
                }
                return Some(Some((end.max(at + 1), Place::String)));
            }
            _ => {}
        }
        None
    }

    /// Records facts about a byte of code for later bytes: braces in template code, here documents.
    fn notice(&mut self, syntax: &Syntax, at: usize) {
        let rest = &self.text[at..];
        match (syntax.habit, rest[0]) {
            (Habit::JavaScript, b'{') => {
                if let Some(open) = self.state.templates.last_mut() {
                    *open += 1;
                }
            }
            (Habit::JavaScript, b'}') => {
                if let Some(open) = self.state.templates.last_mut() {
                    *open = open.saturating_sub(1);
                }
            }
            (Habit::Shell | Habit::Ruby | Habit::Php | Habit::Perl, b'<') => {
                let before = at.checked_sub(1).map(|i| self.text[i]);
                if before != Some(b'<')
                    && !here::is_arithmetic(syntax.habit, &self.text[..at])
                    && let Some((start, length, indented)) = here::word(rest, syntax.habit)
                {
                    self.state.here.push((at + start, length, indented));
                }
            }
            _ => {}
        }
    }

    /// Returns the end of a here document. A text without an end is a shift, or the last input of
    /// the program. It counts as code, so that it cannot hide anything.
    fn here_end(&mut self, from: usize, word: &[u8], indented: bool) -> usize {
        if self.endless == ENDLESS_MAX {
            return from;
        }
        here::end(self.text, from, word, indented).unwrap_or_else(|| {
            visits::add(self.text.len() - from);
            self.endless += 1;
            from
        })
    }

    /// Returns the end of the text of a template literal: after its closing tick, or before the
    /// brace of a `${`.
    fn template_end(&mut self, from: usize, open: usize) -> usize {
        // A lookahead call must not change the state.
        let real = self.state.at == open;
        let mut at = from;
        while let Some(i) = memchr::memchr3(b'`', b'$', b'\\', &self.text[at..]) {
            at += i;
            match self.text[at] {
                b'\\' => at += 2,
                b'`' => {
                    if real && self.text[open] == b'}' {
                        self.state.templates.pop();
                    }
                    return at + 1;
                }
                _ if self.text.get(at + 1) == Some(&b'{') => {
                    // The brace is code, and is counted with the code.
                    match self.state.templates.last_mut() {
                        Some(braces) if real && self.text[open] == b'}' => *braces = 0,
                        _ if real => self.state.templates.push(0),
                        _ => {}
                    }
                    return at + 1;
                }
                _ => at += 1,
            }
            if at >= self.text.len() {
                break;
            }
        }
        self.text.len()
    }
}

/// Returns the number of bytes before the end of the first line. A single carriage return ends a
/// line in every language. In a language in which it does not, the text is a comment but counts as
/// code, which hides nothing.
fn line_length(text: &[u8], syntax: &Syntax) -> usize {
    let end = memchr::memchr2(b'\n', b'\r', text).unwrap_or(text.len());
    if syntax.separators {
        separator(&text[..end]).unwrap_or(end)
    } else {
        end
    }
}

/// Returns the offset of the first U+2028 or U+2029, which end a line in JavaScript and C#.
fn separator(line: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(line, b"\xe2\x80")
        .find(|at| matches!(line.get(at + 2), Some(0xa8 | 0xa9)))
}

/// Returns the offset at which PHP starts: `<?php`, `<?=`, or `<?` and white space. `<?xml` is
/// text.
fn php_opener(text: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(text, b"<?").find(|at| match text[at + 2..] {
        [] | [b'=', ..] => true,
        [b, ..] if b.is_ascii_whitespace() => true,
        [a, b, c, ..] => [a, b, c].eq_ignore_ascii_case(b"php"),
        _ => false,
    })
}

/// Returns true if only blanks precede `at` on its line.
fn blank_before(text: &[u8], at: usize) -> bool {
    let blanks = text[..at]
        .iter()
        .rev()
        .take(256)
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count();
    at - blanks <= start_of(text) || matches!(text[at - blanks - 1], b'\n' | b'\r')
}

/// Returns the start of the first line.
fn start_of(text: &[u8]) -> usize {
    if text.starts_with(MARK) {
        MARK.len()
    } else {
        0
    }
}

/// Returns the length of a line comment. The end of PHP also ends it.
fn comment_length(rest: &[u8], syntax: &Syntax) -> usize {
    let line = &rest[..line_length(rest, syntax)];
    let close = (syntax.habit == Habit::Php)
        .then(|| memchr::memmem::find(line, b"?>"))
        .flatten();
    close.unwrap_or(line.len())
}

fn block_end(text: &[u8], from: usize, open: &str, close: &str, nested: bool) -> usize {
    if !nested {
        let found = memchr::memmem::find(&text[from..], close.as_bytes());
        return found.map_or(text.len(), |i| from + i + close.len());
    }
    let (mut depth, mut at) = (1u32, from);
    while let Some(i) = memchr::memchr2(open.as_bytes()[0], close.as_bytes()[0], &text[at..]) {
        at += i;
        if text[at..].starts_with(close.as_bytes()) {
            at += close.len();
            depth -= 1;
            if depth == 0 {
                return at;
            }
        } else if text[at..].starts_with(open.as_bytes()) {
            at += open.len();
            depth += 1;
        } else {
            at += 1;
        }
    }
    text.len()
}

fn string_end(text: &[u8], from: usize, q: &Quote) -> usize {
    let (close, mut at) = (q.close.as_bytes(), from);
    while at < text.len() {
        let Some(i) = memchr::memchr3(
            close[0],
            b'\n',
            if q.escape == Escape::Backtick {
                b'`'
            } else {
                b'\\'
            },
            &text[at..],
        ) else {
            break;
        };
        at += i;
        match text[at] {
            b'\n' if q.lines => at += 1,
            b'\n' => return at,
            b'\\' if q.escape == Escape::Backslash => at += 2,
            b'`' if q.escape == Escape::Backtick => at += 2,
            _ if text[at..].starts_with(close) => {
                if q.escape == Escape::Doubled && text[at + close.len()..].starts_with(close) {
                    at += 2 * close.len();
                } else {
                    return at + close.len();
                }
            }
            _ => at += 1,
        }
    }
    text.len()
}

/// Returns the length of a character literal of Rust. `None`: it is a lifetime.
fn char_end(rest: &[u8]) -> Option<usize> {
    match rest.get(1)? {
        b'\\' => memchr::memchr(b'\'', rest.get(3..rest.len().min(14))?).map(|i| i + 4),
        b if b.is_ascii() => (rest.get(2) == Some(&b'\'')).then_some(3),
        _ => memchr::memchr(b'\'', &rest[1..rest.len().min(6)]).map(|i| i + 2),
    }
}

#[cfg(test)]
mod tests;
