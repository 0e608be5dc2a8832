//! Markup under construction: constant markup is appended unchanged, all other text escaped.

use crate::report::words::grouped;
use crate::untrusted::Inert;

/// Bytes of a text that is not code, at most. The remaining bytes are counted.
const MOST_OF_A_TEXT: usize = 20_000;

/// A page, or a part of one.
#[derive(Debug, Default)]
pub(super) struct Markup(String);

impl Markup {
    /// Appends constant markup from the source of this program.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Appends untrusted text on one line, for an element or a quoted attribute.
    pub(super) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        let most = cut(text, MOST_OF_A_TEXT);
        escape(Inert::new(&text[..most]).as_str(), &mut self.0);
        if most < text.len() {
            self.0
                .push_str(&format!(" … and {} more bytes", text.len() - most));
        }
        self
    }

    /// Appends untrusted text that may have several lines, as the content of a paragraph. Text
    /// between backticks becomes code.
    pub(super) fn lines(&mut self, text: &str) -> &mut Self {
        let most = cut(text.as_bytes(), MOST_OF_A_TEXT);
        for (i, line) in text[..most].trim_end().lines().enumerate() {
            if i > 0 {
                self.0.push_str("<br>");
            }
            self.line(Inert::new(line).as_str());
        }
        if most < text.len() {
            self.0
                .push_str(&format!("<br>… and {} more bytes", text.len() - most));
        }
        self
    }

    fn line(&mut self, line: &str) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once('`') {
            let Some((code, after)) = after
                .split_once('`')
                .filter(|(code, _)| !code.trim().is_empty())
            else {
                break;
            };
            escape(before, &mut self.0);
            self.0.push_str("<code>");
            escape(code, &mut self.0);
            self.0.push_str("</code>");
            rest = after;
        }
        escape(rest, &mut self.0);
    }

    /// Appends text whose control characters are already escaped.
    pub(super) fn inert(&mut self, text: &str) -> &mut Self {
        escape(text, &mut self.0);
        self
    }

    /// Appends a number with a comma before every three digits.
    pub(super) fn number(&mut self, n: usize) -> &mut Self {
        self.0.push_str(&grouped(n as u64));
        self
    }

    /// Appends a number without commas: of a line, or in the name of an element.
    pub(super) fn digits(&mut self, n: impl Into<u64>) -> &mut Self {
        self.0.push_str(&n.into().to_string());
        self
    }

    /// Appends a button that copies a text. It is hidden until the script of the page enables it.
    pub(super) fn copy(&mut self, label: &'static str, text: &str) -> &mut Self {
        self.raw(" <button type=button class=copy hidden aria-label=\"")
            .raw(label)
            .raw("\" data-copy=\"");
        let mut escaped = String::with_capacity(text.len());
        escape(text, &mut escaped);
        // HTML parsers keep line ends and tabs of attributes; tools that reformat a page may not.
        // Two number signs start a command in logs of Azure Pipelines and TeamCity.
        self.0.push_str(
            &escaped
                .replace('\n', "&#10;")
                .replace('\t', "&#9;")
                .replace("##", "#&#35;"),
        );
        self.raw("\">Copy</button>")
    }

    /// Returns the bytes written so far.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the position at which to truncate a text to at most `most` bytes without splitting a
/// character.
pub(super) fn cut(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    // The continuation bytes of a character begin with the bits 10.
    let mut at = most;
    while at > 0 && most - at < 4 && text[at] & 0xC0 == 0x80 {
        at -= 1;
    }
    at
}

/// Escapes what HTML reads as markup, in text and in quoted attributes.
pub(super) fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        out.push_str(match after.as_bytes()[0] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        });
        rest = &after[1..];
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Markup) -> &mut Markup) -> String {
        let mut out = Markup::default();
        write(&mut out);
        out.as_str().to_owned()
    }

    #[test]
    fn inj_16_foreign_text_is_text_and_nothing_else() {
        for (text, shown) in [
            (
                "<script>alert(1)</script>",
                "&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            ("\" onload=\"x", "&quot; onload=&quot;x"),
            ("' x='", "&#39; x=&#39;"),
            ("&lt;", "&amp;lt;"),
            ("=cmd()", "=cmd()"),
            ("]]>", "]]&gt;"),
            ("<!--", "&lt;!--"),
        ] {
            assert_eq!(written(|m| m.text(text)), shown);
        }
    }

    #[test]
    fn inj_10_control_characters_are_shown() {
        assert_eq!(
            written(|m| m.text("a\x1b[2J\u{202e}b\nc")),
            "a\\x1b[2J\\u{202e}b\\nc"
        );
        assert_eq!(
            written(|m| m.lines("a\u{7}\n<b>\n\n")),
            "a\\x07<br>&lt;b&gt;"
        );
        for (text, shown) in [
            (
                "use `<b>`, not `c`",
                "use <code>&lt;b&gt;</code>, not <code>c</code>",
            ),
            ("a ` b", "a ` b"),
            ("``` <x>", "``` &lt;x&gt;"),
        ] {
            assert_eq!(written(|m| m.lines(text)), shown);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters_and_counted() {
        let text = "ä".repeat(MOST_OF_A_TEXT);
        let out = written(|m| m.text(&text));
        assert!(
            out.ends_with("ä … and 20000 more bytes"),
            "{}",
            &out[out.len() - 40..]
        );
        assert_eq!(cut("日本".as_bytes(), 4), 3);
        assert_eq!(cut("日本".as_bytes(), 6), 6);
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(
            written(|m| m.number(1_234_567).raw(" ").digits(1_234_u32)),
            "1,234,567 1234"
        );
    }
}
