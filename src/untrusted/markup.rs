//! Text and attributes of XML and HTML.

use super::Inert;

/// Escapes text for XML 1.0 and HTML, between tags or in quoted attributes. Lines stay lines;
/// characters that XML forbids are shown as `\x1b` or `\u{fffe}`.
pub fn markup(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (i, line) in text.lines().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let line = Inert::new(line);
        let line = line.as_str();
        // In the log of GitHub Actions, colons at the start of a line are a command.
        let command = line
            .trim_start()
            .starts_with("::")
            .then(|| line.len() - line.trim_start().len());
        for (at, c) in line.char_indices() {
            match c {
                ':' if command == Some(at) => out.push_str("&#58;"),
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                // Also escapes `]]>`.
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                // The two characters that XML forbids and that are not control characters.
                '\u{fffe}' | '\u{ffff}' => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
                c => out.push(c),
            }
        }
    }
    out
}

/// Escapes text for a JUnit report like [`markup`]. Also breaks `[[`: Jenkins and GitLab interpret
/// `[[ATTACHMENT|path]]` in a test's output as a file to publish.
pub fn junit(text: &str) -> String {
    markup(text).replace("[[", "[\\x5b")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inj_16_no_text_of_a_test_names_a_file_to_attach() {
        for (text, escaped) in [
            (
                "a\n[[ATTACHMENT|/etc/passwd]]",
                "a\n[\\x5bATTACHMENT|/etc/passwd]]",
            ),
            ("[[[[[x", "[\\x5b[\\x5b[x"),
            ("a[0] < [ [b] ]", "a[0] &lt; [ [b] ]"),
            ("##[[x", "##\\x5b[x"),
        ] {
            assert_eq!(junit(text), escaped);
        }
    }

    #[test]
    fn inj_16_markup_shows_instead_of_acting() {
        for (text, escaped) in [
            (
                "a < b && \"c\" > 'd'",
                "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;",
            ),
            (
                "]]><script>alert(1)</script>",
                "]]&gt;&lt;script&gt;alert(1)&lt;/script&gt;",
            ),
            ("=cmd()|' /C calc'!A0", "=cmd()|&#39; /C calc&#39;!A0"),
            ("one\ntwo", "one\ntwo"),
            ("a::b\n ::error::c", "a::b\n &#58;:error::c"),
            (
                "\0\x08\x1b\u{fffe}\u{ffff}\u{85}",
                "\\x00\\x08\\x1b\\u{fffe}\\u{ffff}\\u{85}",
            ),
        ] {
            assert_eq!(markup(text), escaped);
        }
    }
}
