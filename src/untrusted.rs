//! Escapes untrusted text, with one function for each output format.
//!
//! File names, code, and messages of models and servers can contain any characters. Characters that
//! a terminal, a CI log or a SARIF viewer would act on are shown as escapes, such as `\x1b`,
//! `\u{202e}` or `\xff`. No character is dropped.

mod command;
mod markdown;
mod markup;

pub use self::command::{data, property};
pub use self::markdown::{code, fenced, markdown, prose};
pub use self::markup::{junit, markup};

use std::fmt;
use unicode_width::UnicodeWidthChar as _;

/// Columns between tab stops in code frames.
const TAB: usize = 4;

/// Combining marks on one letter, at most. More of them could cover the lines around it.
const MAX_MARKS: usize = 8;

/// Text that is safe for a terminal or a CI log: one line without control characters, without
/// characters that reorder or hide other text, and without legacy workflow commands (`##[error]`,
/// `##vso[task…]`).
///
/// A line of output must also not begin with `::`; the code that composes lines calls
/// [`guard_line`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inert(String);

impl Inert {
    /// Escapes untrusted text; line ends become `\n`, tabs become spaces.
    pub fn new(text: impl AsRef<[u8]>) -> Self {
        let text = text.as_ref();
        let plain = text.iter().all(|b| matches!(b, b' '..=b'~'))
            && memchr::memmem::find(text, b"##").is_none();
        match std::str::from_utf8(text) {
            // The common case.
            Ok(text) if plain => Self(text.to_owned()),
            _ => Self(pieces(text).map(|p| p.shown).collect()),
        }
    }

    /// Escapes untrusted text with several lines, each as one item.
    pub fn lines(text: &str) -> impl Iterator<Item = Self> {
        text.lines().map(Self::new)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a part of the text. The range must be on character boundaries; otherwise the part is
    /// empty.
    #[must_use]
    pub fn part(&self, range: impl std::slice::SliceIndex<str, Output = str>) -> Self {
        Self(self.0.get(range).unwrap_or_default().to_owned())
    }

    /// Returns the text before `from` and after `to` with a sign between, which must not be empty.
    #[must_use]
    pub fn without(&self, from: usize, to: usize, sign: &'static str) -> Self {
        Self(
            [
                self.part(..from).0.as_str(),
                sign,
                self.part(to..).0.as_str(),
            ]
            .concat(),
        )
    }

    /// Returns the text in a form that is safe at the start of a line.
    #[must_use]
    pub fn guarded(&self) -> Self {
        Self(guard_line(&self.0).into_owned())
    }
}

impl From<&'static str> for Inert {
    fn from(s: &'static str) -> Self {
        Self(s.to_owned())
    }
}

impl From<u32> for Inert {
    fn from(n: u32) -> Self {
        Self(n.to_string())
    }
}

impl From<usize> for Inert {
    fn from(n: usize) -> Self {
        Self(n.to_string())
    }
}

impl fmt::Display for Inert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Joins neighbouring pieces.
impl<'a> FromIterator<&'a Piece> for Inert {
    fn from_iter<T: IntoIterator<Item = &'a Piece>>(pieces: T) -> Self {
        Self(pieces.into_iter().map(|p| p.shown.as_str()).collect())
    }
}

/// A character, or an invalid byte, in the form that a terminal shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    shown: String,
    width: usize,
    bytes: usize,
    escaped: bool,
}

impl Piece {
    /// Creates a piece of spaces.
    pub fn blank(width: usize) -> Self {
        Self {
            shown: " ".repeat(width),
            width,
            bytes: 0,
            escaped: false,
        }
    }

    /// Returns the shown text.
    pub fn as_str(&self) -> &str {
        &self.shown
    }

    /// Returns true if nothing is visible.
    pub fn is_blank(&self) -> bool {
        self.shown.trim().is_empty()
    }

    /// Returns the number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Returns the number of bytes of the source.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if it is an escape and not the source text.
    pub fn is_escaped(&self) -> bool {
        self.escaped
    }
}

/// Splits text into the pieces that a terminal shows, one for each character.
pub fn pieces(text: &[u8]) -> impl Iterator<Item = Piece> {
    let mut state = PieceContext::default();
    text.utf8_chunks().flat_map(move |chunk| {
        let mut out = Vec::with_capacity(chunk.valid().len());
        let mut chars = chunk.valid().chars().peekable();
        while let Some(c) = chars.next() {
            out.push(state.char(c, chars.peek().copied()));
        }
        for b in chunk.invalid() {
            out.push(state.escape(format!("\\x{b:02x}"), 1));
        }
        out
    })
}

/// The state that the previous pieces leave for the next one.
#[derive(Default)]
struct PieceContext {
    column: usize,
    previous: Option<char>,
    marks: usize,
    command: LoggingCommand,
}

/// The part of `##`, letters, `[` that was read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LoggingCommand {
    #[default]
    No,
    Hash,
    Open,
}

impl PieceContext {
    fn escape(&mut self, shown: String, bytes: usize) -> Piece {
        let width = shown.len();
        self.column += width;
        self.previous = None;
        self.marks = 0;
        self.command = LoggingCommand::No;
        Piece {
            shown,
            width,
            bytes,
            escaped: true,
        }
    }

    fn char(&mut self, c: char, next: Option<char>) -> Piece {
        let bytes = c.len_utf8();
        if c == '\t' {
            let width = TAB - self.column % TAB;
            self.column += width;
            self.previous = None;
            self.command = LoggingCommand::No;
            return Piece {
                shown: " ".repeat(width),
                width,
                bytes,
                escaped: false,
            };
        }
        let command = match (self.command, c) {
            (LoggingCommand::No, '#') => LoggingCommand::Hash,
            (LoggingCommand::Hash | LoggingCommand::Open, '#') => LoggingCommand::Open,
            (LoggingCommand::Open, '[') => return self.escape("\\x5b".to_owned(), bytes),
            (LoggingCommand::Open, c) if c.is_ascii_alphanumeric() => LoggingCommand::Open,
            _ => LoggingCommand::No,
        };
        let width = c.width().unwrap_or(0);
        let mark = width == 0 && !c.is_ascii();
        if is_active(c) && !joins(self.previous, c, next) || mark && self.marks >= MAX_MARKS {
            return self.escape(escape_of(c), bytes);
        }
        self.marks = if mark { self.marks + 1 } else { 0 };
        self.command = command;
        self.previous = Some(c);
        self.column += width;
        Piece {
            shown: c.to_string(),
            width,
            bytes,
            escaped: false,
        }
    }
}

/// Returns the escape that is shown in place of a character.
fn escape_of(c: char) -> String {
    match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        c if c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    }
}

/// Returns true if code has a character that hides or reorders text; line ends and tabs do not
/// count.
pub fn has_active(code: &str) -> bool {
    code.chars()
        .any(|c| !matches!(c, '\n' | '\t') && is_active(c))
}

/// Returns true for control characters, characters that reorder or hide text, characters without
/// width (Unicode's default ignorable code points), and line separators.
pub fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F
            | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0x3164
            | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB
            | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF)
}

/// Returns true if a joiner or a variation selector has a legitimate use: inside an emoji, or
/// between letters of scripts that need it.
pub fn joins(previous: Option<char>, c: char, next: Option<char>) -> bool {
    match (previous, c, next) {
        (Some(p), '\u{fe0f}', _) => is_emoji(p),
        (Some(p), '\u{200d}', Some(n)) if is_emoji(n) => is_emoji(p) || p == '\u{fe0f}',
        (Some(p), '\u{200c}' | '\u{200d}', Some(n)) => {
            is_of_joining_script(p) && is_of_joining_script(n)
        }
        _ => false,
    }
}

/// Returns true for symbols and emoji, which variation selectors and joiners may follow.
fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0xA9 | 0xAE | 0x203C..=0x3299 | 0x1F000..=0x1FAFF)
}

/// Returns true for a letter of a script whose letters change their form with their neighbours.
fn is_of_joining_script(c: char) -> bool {
    matches!(u32::from(c), 0x600..=0x8FF | 0x900..=0xDFF | 0xFB50..=0xFDFF | 0xFE70..=0xFEFC)
}

/// Escapes a composed line of output that begins with `::`, as workflow commands do.
///
/// Spaces and colour codes before the colons do not hide them from the runner.
pub fn guard_line(line: &str) -> std::borrow::Cow<'_, str> {
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        match rest.strip_prefix("\x1b[").and_then(|r| r.split_once('m')) {
            Some((_, after)) => rest = after,
            None => break,
        }
    }
    if !rest.starts_with("::") {
        return line.into();
    }
    let at = line.len() - rest.len();
    format!("{}\\x3a{}", &line[..at], &rest[1..]).into()
}

/// Returns the number of columns of a text, whose control characters must be escaped.
pub fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Escapes text for SARIF's plain text messages: lines stay lines, and no text becomes a link.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (i, line) in text.lines().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let line = Inert::new(line);
        // `[text](target)` is a link in SARIF's plain text too.
        if line.0.contains("](") {
            out.push_str(&line.0.replace('[', "\\[").replace(']', "\\]"));
        } else {
            out.push_str(&line.0);
        }
    }
    out
}

/// Returns a path as a relative URI reference (RFC 3986): every byte outside the unreserved set is
/// percent-encoded, and no segment climbs, names a scheme or starts at a root.
///
/// `.` and `..`, which git never stores but a hand-made patch may contain, become `_.` and `_..`.
pub fn uri(path: &[u8]) -> String {
    let mut out = String::new();
    for segment in path.split(|b| *b == b'/').filter(|s| !s.is_empty()) {
        if !out.is_empty() {
            out.push('/');
        }
        if segment == b"." || segment == b".." {
            out.push('_');
        }
        for b in segment {
            match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                    out.push(char::from(*b));
                }
                _ => out.push_str(&format!("%{b:02X}")),
            }
        }
    }
    out
}

/// Returns a path without components that lead out of the repository: no root, no `.`, no `..`,
/// like [`uri`], but not percent-encoded.
pub fn relative(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for segment in path.split('/').filter(|s| !s.is_empty()) {
        if !out.is_empty() {
            out.push('/');
        }
        if segment == "." || segment == ".." {
            out.push('_');
        }
        out.push_str(segment);
    }
    out
}

/// Truncates a text to `most` bytes, with a mark of the truncation.
pub fn clipped(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    format!("{} […]", &text[..text.floor_char_boundary(most)]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inj_10_control_sequences_are_shown_instead_of_obeyed() {
        for (text, shown) in [
            ("plain", "plain"),
            ("\x1b[31mred", "\\x1b[31mred"),
            ("\x1b]52;c;aGk=\x07", "\\x1b]52;c;aGk=\\x07"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("safe\rEVIL", "safe\\rEVIL"),
            ("a\nb", "a\\nb"),
            ("\x7f\x08\0", "\\x7f\\x08\\x00"),
            ("a\u{202e}b\u{2066}c", "a\\u{202e}b\\u{2066}c"),
            (
                "a\u{200b}b\u{feff}c\u{ad}d",
                "a\\u{200b}b\\u{feff}c\\u{ad}d",
            ),
            ("\u{e0041}\u{fe01}", "\\u{e0041}\\u{fe01}"),
            ("a\u{2028}b\u{85}c", "a\\u{2028}b\\u{85}c"),
            ("a\tb", "a   b"),
        ] {
            assert_eq!(Inert::new(text).as_str(), shown, "{text:?}");
        }
        assert_eq!(
            Inert::new(b"caf\xe9 \xf0\x9f").as_str(),
            "caf\\xe9 \\xf0\\x9f"
        );
    }

    #[test]
    fn honest_joiners_stay() {
        for text in [
            "👩\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "می\u{200c}خواهم",
            "क\u{94d}\u{200d}ष",
            "e\u{301}",
            "日本語",
        ] {
            assert_eq!(Inert::new(text).as_str(), text);
        }
        assert_eq!(Inert::new("pass\u{200d}word").as_str(), "pass\\u{200d}word");
    }

    #[test]
    fn piles_of_marks_end() {
        let text = format!("a{}", "\u{301}".repeat(100));
        assert!(Inert::new(text).as_str().contains("\\u{301}"));
    }

    #[test]
    fn inj_11_no_legacy_workflow_command_survives() {
        for (text, shown) in [
            ("##[error]x", "##\\x5berror]x"),
            (
                "a ##vso[task.setvariable]x",
                "a ##vso\\x5btask.setvariable]x",
            ),
            ("###[x]", "###\\x5bx]"),
            ("# [x]", "# [x]"),
            ("#[test]", "#[test]"),
        ] {
            assert_eq!(Inert::new(text).as_str(), shown);
        }
    }

    #[test]
    fn inj_11_no_line_begins_with_colons() {
        for (line, guarded) in [
            ("::error::x", "\\x3a:error::x"),
            ("  ::error::x", "  \\x3a:error::x"),
            ("\x1b[1m ::error::x", "\x1b[1m \\x3a:error::x"),
            ("x ::error::x", "x ::error::x"),
            ("12 | ::std::move(x)", "12 | ::std::move(x)"),
        ] {
            assert_eq!(guard_line(line), guarded);
        }
    }

    #[test]
    fn inj_14_paths_become_relative_encoded_uris() {
        for (path, encoded) in [
            ("src/a.rs", "src/a.rs"),
            ("../../x", "_../_../x"),
            ("/etc/passwd", "etc/passwd"),
            ("file:///etc/passwd", "file%3A/etc/passwd"),
            ("a b/ä%?#.rs", "a%20b/%C3%A4%25%3F%23.rs"),
            ("a\\b", "a%5Cb"),
        ] {
            assert_eq!(uri(path.as_bytes()), encoded);
        }
        assert_eq!(uri(b"caf\xe9"), "caf%E9");
    }

    #[test]
    fn inj_14_relative_paths_stay_inside() {
        for (path, inside) in [
            ("src/a.rs", "src/a.rs"),
            ("./../x", "_./_../x"),
            ("/etc/passwd", "etc/passwd"),
            ("a//b", "a/b"),
        ] {
            assert_eq!(relative(path), inside);
        }
    }

    #[test]
    fn what_is_clipped_says_so() {
        assert_eq!(clipped("abc", 3), "abc");
        assert_eq!(clipped("日本語", 4), "日 […]");
    }

    #[test]
    fn inj_14_plain_text_holds_no_links() {
        assert_eq!(plain("a[0] is <b>\nnext"), "a[0] is <b>\nnext");
        assert_eq!(
            plain("[click](https://example.com)"),
            "\\[click\\](https://example.com)"
        );
    }
}
