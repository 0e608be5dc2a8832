//! Which characters hide text, and which are part of a script, of an emoji or of data.

use super::*;

struct LineOfCode<'t>(bool, &'t str);
impl LineContext for LineOfCode<'_> {
    fn purpose(&mut self) -> Purpose {
        if self.0 {
            Purpose::Data
        } else {
            Purpose::Prose
        }
    }
    fn is_test(&mut self) -> bool {
        false
    }
    fn is_test_data(&mut self) -> bool {
        false
    }
    fn place(&mut self, at: usize) -> Place {
        let open = self
            .1
            .as_bytes()
            .get(..at)
            .unwrap_or_default()
            .iter()
            .filter(|b| **b == b'\'')
            .count();
        if open % 2 == 1 {
            Place::String
        } else {
            Place::Code
        }
    }
    fn is_first(&self) -> bool {
        true
    }
}

fn seen(line: &str, program: bool) -> Vec<(Matcher, String)> {
    let mut out = Vec::new();
    suspicious_lines(line.as_bytes(), |range| {
        out.extend(
            look(&line.as_bytes()[range], &mut LineOfCode(program, line))
                .into_iter()
                .map(|s| (s.matcher, s.detail)),
        );
    });
    out
}

#[test]
fn dif_15_hidden_text_is_seen_and_shown() {
    for (line, matcher, detail) in [
        (
            "/*\u{202e} } \u{2066}if (admin)\u{2069} \u{2066} begin */",
            Matcher::UnicodeBidi,
            "\\u{202e} \\u{2066} \\u{2069} \\u{2066}",
        ),
        ("x = 'a\u{2067}' ;return", Matcher::UnicodeBidi, "\\u{2067}"),
        (
            "s = '\u{2068}name\u{2069} joined'",
            Matcher::UnicodeBidi,
            "\\u{2068} \\u{2069}",
        ),
        (
            "hi\u{e0068}\u{e0069}",
            Matcher::UnicodeTags,
            "\\u{e0068} \\u{e0069}, which spells \"hi\"",
        ),
        (
            "a\u{e0100}\u{e0101}",
            Matcher::UnicodeVariation,
            "\\u{e0100} \\u{e0101}",
        ),
        ("a\u{e0100}", Matcher::UnicodeVariation, "\\u{e0100}"),
        (
            "a\u{fe00}\u{fe01}\u{fe02}",
            Matcher::UnicodeVariation,
            "\\u{fe00} \\u{fe01} \\u{fe02}",
        ),
        (
            "a\u{200b}\u{200c}\u{200b}\u{200d}b",
            Matcher::UnicodeZeroWidth,
            "\\u{200b} \\u{200c} \\u{200b} \\u{200d}",
        ),
        (
            "ad\u{200b}min = 1",
            Matcher::UnicodeZeroWidth,
            "\\u{200b} inside a name",
        ),
        (
            "const { t, \u{3164} } = q",
            Matcher::UnicodeZeroWidth,
            "\\u{3164}, a letter without a shape",
        ),
        (
            "if \u{441}heck(user)",
            Matcher::UnicodeMixedScript,
            "\\u{441} (Cyrillic)",
        ),
    ] {
        assert_eq!(seen(line, true), [(matcher, detail.to_owned())], "{line:?}");
    }
    assert_eq!(seen("price \u{202e}123", false).len(), 1);
}

#[test]
fn dif_15_what_scripts_and_emoji_need_is_no_finding() {
    for line in [
        "\u{feff}import os",
        "family 👨\u{200d}👩\u{200d}👧\u{200d}👦 and ❤\u{fe0f} and ❤\u{fe0f}\u{fe0f}",
        "flag 🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
        "s = 'שלום עולם'",
        "s = 'مرحبا بالعالم'",
        "s = 'می\u{200c}خواهم'",
        "葛\u{e0100}城市",
        "x = Δt * μ + α_1 + σ2 + λx",
        "s = 'привет мир', USB-кабель",
        "한국어 日本語 中文",
        "word\u{200b} word",
        "naïve café Ünïcode",
    ] {
        assert_eq!(seen(line, true), [], "{line:?}");
    }
    assert_eq!(seen("\u{202b}טקסט\u{202c} text", false), []);
}

fn reorders(line: &str) -> bool {
    super::reorders(&chars(line.as_bytes()).collect::<Vec<_>>())
}

#[test]
fn only_isolates_that_reorder_count_in_tests() {
    assert!(!reorders("hello \u{2068}name\u{2069}, \u{2068}5\u{2069}"));
    for line in [
        "\u{2067}name\u{2069}",
        "\u{2066}name\u{2069}",
        "\u{2068}name",
        "name\u{2069}",
        "\u{2068}\u{2068}name\u{2069}\u{2069}",
        "\u{2068}שם\u{2069}",
        "\u{2068}name\u{2069} ש",
        "\u{2068}\u{202e}name\u{2069}",
    ] {
        assert!(reorders(line), "{line:?}");
    }
}

fn noise(random: &mut u32, n: usize) -> Vec<u8> {
    std::iter::repeat_with(|| {
        *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (*random >> 24) as u8
    })
    .take(n)
    .collect()
}

fn is_mark_among(before: &[u8], after: &[u8]) -> bool {
    let mark = "\u{202e}".as_bytes();
    let text = [before, mark, after].concat();
    is_among_bytes(&text, &(before.len()..before.len() + mark.len()))
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    let mut random = 7u32;
    assert!(is_mark_among(
        &noise(&mut random, 500),
        &noise(&mut random, 500)
    ));
    assert!(is_mark_among(&noise(&mut random, 40), b""));
    assert!(is_mark_among(
        b"# Sphinx inventory version 2\n",
        &noise(&mut random, 100)
    ));
    // Text remains text with a NUL, in another encoding, and with inserted bytes that resemble
    // noise.
    assert!(!is_mark_among(b"", b""));
    assert!(!is_mark_among(b"<?php\0 system($_GET", b"['x']);\0"));
    assert!(!is_mark_among(
        "s = 'שלום עולם שלום עולם שלום עולם שלום".as_bytes(),
        "'; // привет мир привет мир привет мир пр".as_bytes()
    ));
    assert!(!is_mark_among(
        b"/* Stra\xdfe, gr\xfc\xdfe, a comment that goes on for a while",
        b" and ends */ if (admin) {"
    ));
    assert!(!is_mark_among(
        b"\xff\xff\xff if (user.isAdmin(request, session)) { return",
        b" allowed; }"
    ));
}

#[test]
fn malformed_text_is_walked_over() {
    let text = [
        &[0xe2, 0x80, 0xff, b'\n', 0xf3, b'\n', 0xc3][..],
        "a\u{e0041}".as_bytes(),
    ]
    .concat();
    let mut lines = Vec::new();
    suspicious_lines(&text, |l| lines.push(l));
    assert_eq!(lines.len(), 1);
    assert_eq!(
        look(&text[lines[0].clone()], &mut LineOfCode(true, "")).len(),
        1
    );
    for stray in [0x80, 0xc3, 0xe0, 0xf0, 0xff] {
        let text = [&[stray], "\u{202e}".as_bytes()].concat();
        assert_eq!(next_suspect(&text, 0), Some(1), "{stray:x}");
    }
}
