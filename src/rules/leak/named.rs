//! Values whose name suggests a secret: assignments in any language, headers, attributes, a value
//! on the next line, a column of a table.

use super::value::{self, Tier};
use crate::rules::secret::name::{self, SecretKind};
use crate::rules::secret::shape;
use std::ops::Range;

/// Bytes of a name on each side of its word for a secret, at most.
const NAME: usize = 64;
/// Bytes between a name and its value, at most.
const BETWEEN: usize = 160;
/// Bytes of a bare value that are hidden after its first punctuation character of code, at most.
const BARE: usize = 256;
/// Lines below the head of a table that are searched, at most.
const ROWS: usize = 10_000;

/// The state of a search. Offsets ascend.
#[derive(Debug)]
pub(super) struct Seeker<'t> {
    text: &'t [u8],
    /// End of the name that was checked last.
    named: usize,
    /// End of the value that was hidden last.
    hidden: usize,
    /// The next quote of each kind, and the next line end, each searched on first use.
    next: [Next; 4],
}

#[derive(Clone, Copy, Debug, Default)]
struct Next {
    from: usize,
    at: usize,
}

const SIGNS: [u8; 4] = [b'"', b'\'', b'`', b'\n'];

impl<'t> Seeker<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            named: 0,
            hidden: 0,
            next: [Next::default(); 4],
        }
    }

    /// Returns the next offset of a byte, or the end of the text. Linear over ascending offsets.
    fn next(&mut self, sign: u8, from: usize) -> usize {
        let slot = SIGNS.iter().position(|s| *s == sign).unwrap_or(3);
        let known = self.next[slot];
        if known.from <= from && from <= known.at {
            return known.at;
        }
        let found = memchr::memchr(sign, &self.text[from.min(self.text.len())..]);
        let at = found.map_or(self.text.len(), |i| from + i);
        self.next[slot] = Next { from, at };
        at
    }

    /// Searches for a secret after a word that starts at an offset.
    pub(super) fn look(&mut self, at: usize, out: &mut Vec<Range<usize>>) {
        let text = self.text;
        if at < self.hidden {
            return;
        }
        let end = at
            + text[at..]
                .iter()
                .take(NAME)
                .take_while(|b| in_name(**b))
                .count();
        if end <= self.named || end == at {
            return;
        }
        self.named = end;
        let start = at
            - text[..at]
                .iter()
                .rev()
                .take(NAME)
                .take_while(|b| in_name(**b))
                .count();
        let tier = tier(&text[start..end]);
        let found = self
            .value(start, end, tier)
            .or_else(|| self.beside(end, tier));
        if let Some(value) = found {
            self.hidden = value.end;
            out.push(value);
            return;
        }
        self.column(start, end, out);
    }

    /// Returns the value that a name is assigned.
    fn value(&mut self, start: usize, end: usize, tier: Tier) -> Option<Range<usize>> {
        let text = self.text;
        let limit = text.len().min(end + BETWEEN);
        let closed = end + closers(&text[end..limit]);
        let is_quoted = closed > end;
        let at = closed + blanks(&text[closed..limit]);
        let sep = separator(&text[at..limit], is_quoted, at > closed)?;
        let mut at = at + sep.length;
        if sep.kind == Sep::Colon {
            at += annotation(&text[at..limit]);
        }
        at += blanks(&text[at..limit.max(at)]);
        let mut on_next_line = false;
        // After a comma, the next line is the next item.
        let line = next_line(&text[at..text.len().min(at + BETWEEN)]).filter(|_| !sep.wants_quote);
        if let Some(line) = line {
            (at, on_next_line) = (at + line, true);
        }
        let scheme = is_authorization(&text[start..end]);
        if sep.kind == Sep::Element {
            let close = memchr::memchr2(b'<', b'\n', &text[at..text.len().min(at + 4096)])?;
            return self.checked(at..at + close, tier, true, scheme);
        }
        // The next quote may close a literal that contains all of this: `-H 'X-Secret: …'`.
        let open = opening(&text[at..text.len().min(at + BETWEEN)]);
        let literal = open.and_then(|open| self.quoted(at + open, tier, scheme));
        if literal.is_some() {
            return literal;
        }
        if sep.wants_quote || on_next_line && !is_scalar_line(text, at) {
            return None;
        }
        self.bare(at, tier, scheme)
    }

    /// Reads a string literal whose quote opens at an offset.
    fn quoted(&mut self, open: usize, tier: Tier, scheme: bool) -> Option<Range<usize>> {
        let text = self.text;
        let quote = text[open];
        let escaped = open > 0 && text[open - 1] == b'\\';
        let triple = text[open..].starts_with(&[quote; 3]);
        let start = open + if triple { 3 } else { 1 };
        let line_end = self.next(b'\n', start);
        let mut end = self.next(quote, start);
        // An escaped quote does not end the literal, unless the literal itself is inside of
        // another.
        while !escaped && end < line_end && text[end - 1] == b'\\' && end > start {
            end = self.next(quote, end + 1);
        }
        let end = end.min(line_end);
        let end = if escaped && end > start && text[end - 1] == b'\\' {
            end - 1
        } else {
            end
        };
        self.checked(start..end, tier, true, scheme)
    }

    /// Reads a bare value: to the next blank or quote.
    fn bare(&mut self, at: usize, tier: Tier, scheme: bool) -> Option<Range<usize>> {
        let text = self.text;
        let at = if scheme {
            at + scheme_length(&text[at..text.len().min(at + 64)], true)
        } else {
            at
        };
        let at = at + scheme_length(&text[at..text.len().min(at + 64)], false);
        let end = text[at..].iter().take(1 << 16).position(ends_bare_value);
        let length = end.unwrap_or_else(|| (text.len() - at).min(1 << 16));
        let value = &text[at..at + length];
        let head = value
            .iter()
            .position(is_punctuation_of_code)
            .unwrap_or(length);
        if matches!(
            value.first(),
            None | Some(b'*' | b'&' | b'|' | b'@' | b'#' | b'!')
        ) && head < 6
        {
            return None;
        }
        let is_whole = length <= BARE && value::is_hidden(value, tier, false);
        if is_whole && head > 0 && !is_code(&value[..head], value.get(head).copied()) {
            return Some(at..at + trimmed(value));
        }
        value::is_hidden(&value[..head], tier, false).then(|| at..at + trimmed(&value[..head]))
    }

    /// Returns a value that must be hidden, without the scheme before it.
    fn checked(
        &self,
        value: Range<usize>,
        tier: Tier,
        quoted: bool,
        scheme: bool,
    ) -> Option<Range<usize>> {
        let text = &self.text[value.clone()];
        let mut start = if scheme {
            scheme_length(&text[..text.len().min(64)], true)
        } else {
            0
        };
        start += scheme_length(&text[start..text.len().min(start + 64)], false);
        let value = value.start + start..value.end;
        value::is_hidden(&self.text[value.clone()], tier, quoted).then_some(value)
    }

    /// Reads `value="…"` after a name that is itself a value: attributes, variables of containers,
    /// Terraform.
    fn beside(&mut self, end: usize, tier: Tier) -> Option<Range<usize>> {
        #[rustfmt::skip]
        const KEYS: &[&[u8]] = &[
            b"value", b"Value", b"default", b"content", b"string", b"stringValue", b"string_value", b"secret",
            b"VALUE", b"val",
        ];
        let text = self.text;
        let near = &text[end..text.len().min(end + BETWEEN)];
        let closers = closers(near);
        let mut at = closers;
        // `type = string` or `</name>` may be between them.
        for _ in 0..4 {
            at += near[at..]
                .iter()
                .take_while(|b| is_between_attributes(**b))
                .count();
            let word = near[at..].iter().take_while(|b| in_name(**b)).count();
            let behind = at + word;
            let followed = near
                .get(behind)
                .is_some_and(|b| matches!(b, b'=' | b':' | b'>' | b'"' | b'\'' | b' '));
            if followed && KEYS.contains(&&near[at..behind]) {
                return self.value(end + at, end + behind, tier);
            }
            let line = memchr::memchr(b'\n', &near[at..]);
            let closes = near[at..].starts_with(b"name>") || near[at..].starts_with(b"key>");
            match (closes, line) {
                (true, _) => at += 4,
                (_, Some(line)) if closers <= 2 => at += line + 1,
                _ => return None,
            }
            if at >= near.len() {
                return None;
            }
        }
        None
    }

    /// Hides the column of a comma-separated table whose head is the name.
    fn column(&mut self, start: usize, end: usize, out: &mut Vec<Range<usize>>) {
        let text = self.text;
        let line_start = memchr::memrchr(b'\n', &text[start.saturating_sub(1024)..start])
            .map_or(start.saturating_sub(1024), |i| {
                start.saturating_sub(1024) + i + 1
            });
        let line_end = self.next(b'\n', end);
        let head = &text[line_start..line_end.min(line_start + 4096)];
        let from = head[..start - line_start]
            .iter()
            .rposition(|b| matches!(b, b',' | b';' | b'\t'));
        let field_start = line_start + from.map_or(0, |i| i + 1);
        let field = &text[field_start..end];
        let closed = end + usize::from(text.get(end) == Some(&b'"'));
        let is_field = text
            .get(closed)
            .is_none_or(|b| matches!(b, b',' | b'\n' | b'\r' | b'\t' | b';'));
        if !is_field || field.len() > NAME || !head.iter().all(is_part_of_table_head) {
            return;
        }
        let Some(comma) = head
            .iter()
            .copied()
            .find(|b| matches!(b, b',' | b';' | b'\t'))
        else {
            return;
        };
        if head.trim_ascii_end().last() == Some(&comma) {
            return;
        }
        let index = memchr::memchr_iter(comma, &text[line_start..field_start]).count();
        let commas = memchr::memchr_iter(comma, head).count();
        let mut at = (line_end + 1).min(text.len());
        for _ in 0..ROWS {
            let row_end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |i| at + i);
            let row = &text[at..row_end];
            if memchr::memchr_iter(comma, row).count() != commas {
                return;
            }
            let before: usize = row
                .split(|b| *b == comma)
                .take(index)
                .map(|f| f.len() + 1)
                .sum();
            let cell = row.split(|b| *b == comma).nth(index).unwrap_or_default();
            let inner = cell.trim_ascii();
            let inner = inner
                .strip_prefix(b"\"")
                .and_then(|c| c.strip_suffix(b"\""))
                .unwrap_or(inner);
            if value::is_hidden(inner, Tier::Password, true) {
                let lead = cell
                    .iter()
                    .take_while(|b| b.is_ascii_whitespace() || **b == b'"')
                    .count();
                out.push(at + before + lead..at + before + lead + inner.len());
            }
            at = (row_end + 1).min(text.len());
            if at == text.len() {
                return;
            }
        }
    }
}

/// Returns true for a letter or digit of a name, or a byte that joins its words.
fn in_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'$')
}

/// Returns true for a byte that ends a bare value: white space, a quote or a bracket of a tag.
fn ends_bare_value(b: &u8) -> bool {
    b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'`' | b'<' | b'>')
}

/// Returns true for a byte at which code after a bare value can start.
fn is_punctuation_of_code(b: &u8) -> bool {
    matches!(
        b,
        b',' | b';' | b'&' | b'(' | b')' | b'{' | b'}' | b'[' | b']' | b'|' | b'\\'
    )
}

/// Returns true for a byte that separates the name of one attribute or element from the next.
fn is_between_attributes(b: u8) -> bool {
    b.is_ascii_whitespace()
        || matches!(
            b,
            b',' | b'{' | b'}' | b'-' | b'/' | b'<' | b'>' | b'"' | b'\''
        )
}

/// Returns true for a byte of the names of columns, or one that separates them.
fn is_part_of_table_head(b: &u8) -> bool {
    b.is_ascii_alphabetic() || matches!(b, b',' | b';' | b'\t' | b' ' | b'_' | b'-' | b'"' | b'\r')
}

fn tier(name: &[u8]) -> Tier {
    match name::named(name) {
        Some(SecretKind::Password | SecretKind::Secret) => Tier::Password,
        Some(SecretKind::Token) => Tier::Token,
        None if is_authorization(name) => Tier::Token,
        None => {
            let words = name::split(name);
            // `ClearTextPassword`, `test_password`: the text before the word does not describe the
            // value.
            let last = words.last().map_or("", String::as_str);
            match last {
                "password" | "passwd" | "pwd" | "passphrase" | "secret" => Tier::Password,
                "token" => Tier::Token,
                _ => Tier::Weak,
            }
        }
    }
}

fn is_authorization(name: &[u8]) -> bool {
    name::split(name)
        .last()
        .is_some_and(|w| w == "authorization" || w == "auth")
}

/// Returns the length of the quotes and brackets that close a name.
fn closers(text: &[u8]) -> usize {
    text.iter()
        .take(5)
        .take_while(|b| matches!(b, b'"' | b'\'' | b'`' | b']' | b')' | b'}' | b'\\'))
        .count()
}

fn blanks(text: &[u8]) -> usize {
    text.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

/// The separator between a name and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sep {
    Assigned,
    Colon,
    /// `<password>…</password>`
    Element,
    /// `is`, `to`: prose.
    Word,
}

#[derive(Clone, Copy, Debug)]
struct Separator {
    kind: Sep,
    length: usize,
    /// True if the value must be a string literal.
    wants_quote: bool,
}

fn separator(text: &[u8], closed: bool, spaced: bool) -> Option<Separator> {
    #[rustfmt::skip]
    const LONG: &[&[u8]] = &[
        b"===", b"!==", b"<<<", b"||=", b"??=", b"=>", b":=", b"<-", b"->", b"==", b"!=", b"+=", b"?=", b"??", b"||",
        b"::",
    ];
    if let Some(sign) = LONG.iter().find(|s| text.starts_with(s)) {
        let wants_quote = [&b"??"[..], b"||", b"::", b"->"].contains(sign);
        return Some(Separator {
            kind: Sep::Assigned,
            length: sign.len(),
            wants_quote,
        });
    }
    let (kind, length, wants_quote) = match text.first()? {
        b'=' | b'|' => (Sep::Assigned, 1, false),
        b':' => (Sep::Colon, 1, false),
        b'>' => (Sep::Element, 1, false),
        b',' | b'(' => (Sep::Assigned, 1, true),
        b'"' | b'\'' if spaced => (Sep::Assigned, 0, true),
        _ if spaced && !closed => {
            let word = [&b"is "[..], b"to ", b"was ", b"as "]
                .into_iter()
                .find(|w| text.starts_with(w))?;
            (Sep::Word, word.len(), false)
        }
        _ => return None,
    };
    Some(Separator {
        kind,
        length,
        wants_quote,
    })
}

/// Returns the length of a type after a colon, with the operator that assigns: `: Option<String>
/// =`.
fn annotation(text: &[u8]) -> usize {
    let end = text
        .iter()
        .take(48)
        .take_while(|b| is_part_of_type(**b))
        .count();
    let typed = text[..end].iter().any(u8::is_ascii_alphabetic);
    let assigns = text.get(end) == Some(&b'=')
        && text
            .get(end + 1)
            .is_some_and(|b| matches!(b, b' ' | b'"' | b'\''));
    if typed && assigns { end + 1 } else { 0 }
}

fn is_part_of_type(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(
            b,
            b' ' | b'_' | b'.' | b'<' | b'>' | b'?' | b'&' | b'[' | b']' | b'|' | b'*'
        )
}

/// Returns the offset of the next line's text, if the rest of this line is empty.
fn next_line(text: &[u8]) -> Option<usize> {
    let mark = text
        .iter()
        .take_while(|b| {
            matches!(
                b,
                b' ' | b'\t' | b'\r' | b'\\' | b'|' | b'>' | b'-' | b'(' | b'+'
            )
        })
        .count();
    let rest = text[mark..].strip_prefix(b"\n")?;
    Some(mark + 1 + blanks(rest))
}

/// Returns true if an offset starts a line with only one word, such as a line of a block scalar.
fn is_scalar_line(text: &[u8], at: usize) -> bool {
    let line = &text[at..text.len().min(at + 4096)];
    let line = memchr::memchr(b'\n', line).map_or(line, |i| &line[..i]);
    let word = line.trim_ascii();
    !word.is_empty()
        && !word
            .iter()
            .any(|b| b.is_ascii_whitespace() || matches!(b, b':' | b'=' | b'('))
}

/// Returns the offset of the opening quote of a value that is a literal, after a prefix, a
/// constructor or a cast.
fn opening(text: &[u8]) -> Option<usize> {
    let line = memchr::memchr(b'\n', text).map_or(text, |i| &text[..i]);
    let quote = memchr::memchr3(b'"', b'\'', b'`', line)?;
    let before = line[..quote].strip_suffix(b"\\").unwrap_or(&line[..quote]);
    if before.len() > 64 || !before.iter().all(is_before_literal) {
        return None;
    }
    // A call that gets a value by its name is a reference.
    const ASKS: &[&str] = &[
        "env", "get", "read", "fetch", "load", "find", "lookup", "param", "secret", "config",
        "vault", "var", "setting", "resolve", "option", "args", "require", "import", "query",
        "select",
    ];
    let call = String::from_utf8_lossy(before).to_ascii_lowercase();
    let asks = call.contains(['(', '[']) && ASKS.iter().any(|a| call.contains(a));
    let words = before
        .split(|b| *b == b' ')
        .filter(|w| !w.is_empty())
        .count();
    (!asks && words <= 3).then_some(quote)
}

/// Returns true for a byte of a prefix, a constructor or a cast.
fn is_before_literal(b: &u8) -> bool {
    in_name(*b)
        || matches!(
            b,
            b'(' | b'[' | b'{' | b'&' | b'@' | b' ' | b':' | b'<' | b'>' | b'*'
        )
}

/// Returns the length of the scheme before a credential (`Bearer `). `any`: any word counts as a
/// scheme, as after the name of an authorization.
fn scheme_length(text: &[u8], any: bool) -> usize {
    #[rustfmt::skip]
    const SCHEMES: &[&[u8]] = &[
        b"bearer", b"basic", b"token", b"api-token", b"apitoken", b"apikey", b"api-key", b"key", b"bot", b"digest",
        b"ssws", b"genie", b"geniekey", b"splunk", b"zoho-oauthtoken", b"negotiate", b"oauth", b"pat", b"jwt",
    ];
    let word = text
        .iter()
        .take_while(|b| b.is_ascii_alphabetic() || **b == b'-')
        .count();
    let behind = &text[word..];
    let blank = behind
        .iter()
        .take_while(|b| matches!(b, b' ' | b':' | b'='))
        .count();
    if word < 2 || blank == 0 {
        return 0;
    }
    let spaced = behind.first() == Some(&b' ') || text[..word].eq_ignore_ascii_case(b"bearer");
    let known = SCHEMES
        .iter()
        .any(|s| s.eq_ignore_ascii_case(&text[..word]));
    if known || any && spaced && word <= 24 {
        word + blank
    } else {
        0
    }
}

/// Returns true if the start of a bare value is a name or a call in code.
fn is_code(head: &[u8], sign: Option<u8>) -> bool {
    let calls = matches!(sign, Some(b'(' | b'['))
        && head
            .iter()
            .all(|b| in_name(*b) || matches!(b, b':' | b'!' | b'>'));
    let name = std::str::from_utf8(head).unwrap_or_default();
    head.len() < 4 || value::is_reference(name) || calls && shape::wordiness(name) > 0.45
}

/// Returns the length of a bare value without the punctuation of its line.
fn trimmed(value: &[u8]) -> usize {
    value
        .iter()
        .rposition(|b| !matches!(b, b',' | b';' | b')' | b'}' | b']'))
        .map_or(0, |i| i + 1)
}
