//! Text that a reader does not see, or reads differently: control characters that reorder a line,
//! hidden letters, names with similar letters of two scripts.
//!
//! Characters that scripts and emoji need are not reported: right-to-left letters, joiners inside
//! words, variation selectors after a base, the tag sequences of flags. Sources: Unicode UAX #9
//! (bidirectional controls), UTS #51 (emoji tag sequences), UTS #37 (ideographic variation), UTS
//! #39 (mixed scripts), CVE-2021-42574 and CVE-2021-42694.

use super::catalog::Matcher;
use super::lexer::Place;
use super::prose::Purpose;
use std::ops::Range;
use unicode_script::{Script, UnicodeScript as _};

/// A match of a matcher in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnicodeMatch {
    pub(super) matcher: Matcher,
    /// Bytes of the line.
    pub(super) span: Range<usize>,
    /// The matched text, in visible form.
    pub(super) detail: String,
}

/// Length of a run that counts in tests, at least.
const TEST_RUN: usize = 4;

/// The context of a line.
pub(super) trait LineContext {
    /// Returns the purpose of the file's text.
    fn purpose(&mut self) -> Purpose;
    /// Returns true if the file contains tests. Tests of a Unicode library have many single unusual
    /// characters.
    fn is_test(&mut self) -> bool;
    /// Returns true if the file is test data, which no program executes.
    fn is_test_data(&mut self) -> bool;
    /// Returns the lexical position of a byte of the line.
    fn place(&mut self, at: usize) -> Place;
    /// Returns true if the line is the file's first.
    fn is_first(&self) -> bool;
}

/// Calls `line` with the range of every line that has a character of interest to a matcher.
pub(super) fn suspicious_lines(text: &[u8], mut line: impl FnMut(Range<usize>)) {
    let mut at = 0;
    while let Some(i) = next_suspect(text, at) {
        let start = memchr::memrchr(b'\n', &text[..i]).map_or(0, |n| n + 1);
        let end = memchr::memchr(b'\n', &text[i..]).map_or(text.len(), |n| i + n);
        line(start..end);
        at = end;
    }
}

/// Returns the offset of the next character of interest to a matcher.
fn next_suspect(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += first_non_ascii(&text[at..])?;
        let suspect = match text[at] {
            0xe2 => match (text.get(at + 1), text.get(at + 2)) {
                (Some(0x80), Some(c)) => matches!(c, 0x8b..=0x8f | 0xaa..=0xae),
                (Some(0x81), Some(c)) => matches!(c, 0xa0..=0xa9),
                _ => false,
            },
            0xef => match (text.get(at + 1), text.get(at + 2)) {
                (Some(0xb8), Some(c)) => *c <= 0x8f,
                (Some(0xbb), Some(c)) => *c == 0xbf,
                (Some(0xbe), Some(c)) => *c == 0xa0,
                _ => false,
            },
            0xf3 => text.get(at + 1) == Some(&0xa0),
            0xe1 => matches!(
                (text.get(at + 1), text.get(at + 2)),
                (Some(0x85), Some(0x9f | 0xa0)) | (Some(0xa0), Some(0x8e))
            ),
            0xe3 => matches!(
                (text.get(at + 1), text.get(at + 2)),
                (Some(0x85), Some(0xa4))
            ),
            // The soft hyphen, the grapheme joiner and the mark of Arabic.
            0xc2 if text.get(at + 1) == Some(&0xad) => true,
            0xcd if text.get(at + 1) == Some(&0x8f) => true,
            0xd8 if text.get(at + 1) == Some(&0x9c) => true,
            // Greek, Cyrillic and Armenian letters adjacent to an ASCII one.
            0xcd..=0xd6 => {
                at.checked_sub(1)
                    .and_then(|i| text.get(i))
                    .is_some_and(is_word_byte)
                    || text.get(at + 2).is_some_and(is_word_byte)
            }
            _ => false,
        };
        if suspect {
            return Some(at);
        }
        // Skip the character. A stray byte counts as one character, and the bytes after it are
        // still checked.
        let follow = match text[at] {
            0xf0.. => 3,
            0xe0.. => 2,
            0xc0.. => 1,
            _ => 0,
        };
        at += 1;
        at += text[at..]
            .iter()
            .take(follow)
            .take_while(|b| **b & 0xc0 == 0x80)
            .count();
        if at >= text.len() {
            return None;
        }
    }
}

/// Returns true for an ASCII byte of a name.
fn is_word_byte(b: &u8) -> bool {
    b.is_ascii_alphanumeric() || *b == b'_'
}

fn first_non_ascii(text: &[u8]) -> Option<usize> {
    const STEP: usize = 64;
    let clean = text.chunks(STEP).take_while(|c| c.is_ascii()).count() * STEP;
    text.get(clean..)?
        .iter()
        .position(|b| !b.is_ascii())
        .map(|i| clean + i)
}

/// Returns true if the text around a span is binary data. Then the span contains the bytes of a
/// character only by chance, as one run of three bytes in some millions of compressed data does.
///
/// Call it only for files without a known language, which may be data: an interpreter runs a script
/// with any bytes in a comment, and twenty of them would switch these rules off.
///
/// A few bytes that are not UTF-8 (another encoding, or an attempt to resemble data) do not
/// suffice, and a NUL is text. If one byte in eight around the span is invalid, a reader cannot
/// read the line as text.
pub(super) fn is_among_bytes(text: &[u8], span: &Range<usize>) -> bool {
    const SIDE: usize = 64;
    const SHARE: usize = 8;
    let mut start = span.start.saturating_sub(SIDE);
    let mut end = (span.end + SIDE).min(text.len());
    // The window starts and ends at character boundaries.
    start += (0..3)
        .take_while(|i| start > 0 && start + i < span.start && is_inside_character(text, start + i))
        .count();
    end -= (0..3)
        .take_while(|i| {
            end < text.len() && end - i > span.end && is_inside_character(text, end - i)
        })
        .count();
    let (before, after) = (&text[start..span.start], &text[span.end..end]);
    let noise = invalid_bytes(before) + invalid_bytes(after);
    noise > 0 && noise * SHARE >= before.len() + after.len()
}

/// Returns true if the byte at an offset continues a UTF-8 sequence.
fn is_inside_character(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|b| b & 0xc0 == 0x80)
}

/// Returns the number of bytes that are not UTF-8.
fn invalid_bytes(part: &[u8]) -> usize {
    part.utf8_chunks().map(|c| c.invalid().len()).sum()
}

/// Checks one line with every matcher.
pub(super) fn look(line: &[u8], around: &mut impl LineContext) -> Vec<UnicodeMatch> {
    let chars: Vec<(usize, char)> = chars(line).collect();
    [
        bidi(&chars, around),
        tags(&chars, around),
        variation(&chars, around),
        zero_width(&chars, around),
        mixed(&chars, around),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the characters of a line with their byte offsets, without invalid UTF-8.
fn chars(line: &[u8]) -> impl Iterator<Item = (usize, char)> {
    let mut base = 0;
    line.utf8_chunks().flat_map(move |chunk| {
        let start = base;
        base += chunk.valid().len() + chunk.invalid().len();
        chunk
            .valid()
            .char_indices()
            .map(move |(i, c)| (start + i, c))
    })
}

fn sight(matcher: Matcher, chars: &[(usize, char)], what: &str) -> Option<UnicodeMatch> {
    const SHOWN: usize = 8;
    let (first, last) = (chars.first()?, chars.last()?);
    let mut detail: Vec<String> = chars.iter().take(SHOWN).map(|(_, c)| visible(*c)).collect();
    if chars.len() > SHOWN {
        detail.push(format!("… ({} in all)", chars.len()));
    }
    let detail = format!("{}{what}", detail.join(" "));
    Some(UnicodeMatch {
        matcher,
        span: first.0..last.0 + last.1.len_utf8(),
        detail,
    })
}

/// Returns a character in visible form.
fn visible(c: char) -> String {
    if c.is_ascii_graphic() {
        c.to_string()
    } else {
        format!("\\u{{{:x}}}", c as u32)
    }
}

fn opens_embedding(c: char) -> bool {
    matches!(c, '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}')
}

fn opens_isolate(c: char) -> bool {
    matches!(c, '\u{2066}'..='\u{2068}')
}

fn closes(c: char) -> bool {
    matches!(c, '\u{202c}' | '\u{2069}')
}

fn is_bidi_control(c: char) -> bool {
    opens_embedding(c) || opens_isolate(c) || closes(c)
}

/// Finds controls that reorder displayed text.
///
/// In program text and in data each of them counts, also in strings and comments. In prose and
/// translations only an override counts, because right-to-left languages need the others. Tests of
/// formatted messages contain the isolates that a formatter puts around a value; those count only
/// where they can reorder text.
fn bidi(chars: &[(usize, char)], around: &mut impl LineContext) -> Option<UnicodeMatch> {
    let first = chars.iter().find(|(_, c)| is_bidi_control(*c))?.0;
    let purpose = around.purpose();
    let lenient = !purpose.is_strict()
        || (purpose == Purpose::Messages && around.place(first) == Place::String);
    let is_guilty = match lenient || around.is_test_data() {
        true => {
            chars
                .iter()
                .any(|(_, c)| matches!(c, '\u{202d}' | '\u{202e}'))
                && !around.is_test()
        }
        false => !around.is_test() || reorders(chars),
    };
    let seen: Vec<(usize, char)> = chars
        .iter()
        .copied()
        .filter(|(_, c)| is_bidi_control(*c))
        .collect();
    is_guilty.then(|| sight(Matcher::UnicodeBidi, &seen, ""))?
}

/// Returns false if the only controls are pairs of FSI and PDI around text without right-to-left
/// characters, which do not change the order (UAX #9, rules X5c and P2).
fn reorders(chars: &[(usize, char)]) -> bool {
    let mut open = false;
    let is_plain = chars.iter().all(|(_, c)| match *c {
        '\u{2068}' => !std::mem::replace(&mut open, true),
        '\u{2069}' => std::mem::replace(&mut open, false),
        c => !is_bidi_control(c) && !is_right_to_left(c),
    });
    !is_plain || open
}

/// Returns true for the letters of Hebrew, Arabic, Syriac, Thaana, N'Ko, their presentation forms,
/// and right-to-left scripts and marks outside of these blocks.
fn is_right_to_left(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8ff}'
            | '\u{200f}'
            | '\u{fb1d}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}'
            | '\u{1e800}'..='\u{1efff}'
    )
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e007f}')
}

/// Finds tag characters outside the flags of emoji (a black flag, tags, the cancel tag).
fn tags(chars: &[(usize, char)], around: &mut impl LineContext) -> Option<UnicodeMatch> {
    let mut i = 0;
    while i < chars.len() {
        if !is_tag(chars[i].1) {
            i += 1;
            continue;
        }
        let run = chars[i..].iter().take_while(|(_, c)| is_tag(*c)).count();
        let tags = &chars[i..i + run];
        let flag =
            i > 0 && chars[i - 1].1 == '\u{1f3f4}' && tags[run - 1].1 == '\u{e007f}' && run <= 7;
        if !flag && (run >= TEST_RUN || !around.is_test()) {
            let hidden: String = tags
                .iter()
                .filter_map(|(_, c)| char::from_u32(*c as u32 - 0xe0000))
                .filter(|c| !c.is_control())
                .take(80)
                .collect();
            let what = if hidden.is_empty() {
                String::new()
            } else {
                format!(", which spells {hidden:?}")
            };
            return sight(Matcher::UnicodeTags, tags, &what);
        }
        i += run;
    }
    None
}

/// Returns true for a variation selector of the basic plane.
fn is_basic_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Returns true for a variation selector of any plane.
fn is_selector(c: char) -> bool {
    is_basic_selector(c) || matches!(c, '\u{e0100}'..='\u{e01ef}')
}

/// Finds variation selectors that select no variant: several in a row, or a supplementary one that
/// does not follow an ideograph.
fn variation(chars: &[(usize, char)], around: &mut impl LineContext) -> Option<UnicodeMatch> {
    let mut i = 0;
    while i < chars.len() {
        if !is_selector(chars[i].1) {
            i += 1;
            continue;
        }
        let run = chars[i..]
            .iter()
            .take_while(|(_, c)| is_selector(*c))
            .count();
        let selectors = &chars[i..i + run];
        let base = i.checked_sub(1).map(|b| chars[b].1);
        // An editor that doubles the emoji selector does no harm.
        let doubled = run <= 3 && selectors.iter().all(|(_, c)| *c == '\u{fe0f}');
        let ideograph = base.is_some_and(|b| b.script() == Script::Han);
        let legitimate = doubled || (run == 1 && (is_basic_selector(selectors[0].1) || ideograph));
        if !legitimate && (run >= TEST_RUN || !around.is_test()) {
            return sight(Matcher::UnicodeVariation, selectors, "");
        }
        i += run;
    }
    None
}

fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{180e}')
}

/// Returns true for letters without a shape.
fn is_filler(c: char) -> bool {
    matches!(c, '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}')
}

/// Returns true for a neighbour of a filler that shows that the filler is not part of a Korean
/// syllable.
fn isolates_filler((_, c): &(usize, char)) -> bool {
    c.is_ascii() || is_filler(*c)
}

/// Returns true for characters that are invisible and split a name as those of [`is_zero_width`]
/// do, but that are more common in text.
fn is_unseen(c: char) -> bool {
    is_zero_width(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{fe00}'..='\u{fe0f}'
        )
}

/// Finds zero-width characters in numbers that no script needs, inside of or adjacent to a name, or
/// as a separate name.
fn zero_width(chars: &[(usize, char)], around: &mut impl LineContext) -> Option<UnicodeMatch> {
    let mut i = 0;
    if around.is_first()
        && chars
            .first()
            .is_some_and(|(at, c)| *at == 0 && *c == '\u{feff}')
    {
        i = 1;
    }
    let strict = around.purpose().is_strict() && !around.is_test_data();
    while i < chars.len() {
        let (at, c) = chars[i];
        if is_filler(c) {
            let alone = i
                .checked_sub(1)
                .and_then(|b| chars.get(b))
                .is_some_and(isolates_filler)
                && chars.get(i + 1).is_some_and(isolates_filler);
            if strict && alone && around.place(at) == Place::Code {
                return sight(
                    Matcher::UnicodeZeroWidth,
                    &chars[i..=i],
                    ", a letter without a shape",
                );
            }
            i += 1;
            continue;
        }
        if !is_unseen(c) {
            i += 1;
            continue;
        }
        let run = chars[i..].iter().take_while(|(_, c)| is_unseen(*c)).count();
        let joiners = &chars[i..i + run];
        let wide = joiners.iter().filter(|(_, c)| is_zero_width(*c)).count();
        let varied = joiners.iter().any(|(_, c)| *c != joiners[0].1);
        if wide == run && (run >= 8 || (run >= 4 && varied)) {
            return sight(Matcher::UnicodeZeroWidth, joiners, "");
        }
        if strict && splits_a_name(chars, i..i + run, around) {
            return sight(Matcher::UnicodeZeroWidth, joiners, " inside a name");
        }
        i += run;
    }
    None
}

/// Returns true if invisible characters are part of a name: between two of its letters, between it
/// and the quote of a string, or between it and a punctuation character of code.
fn splits_a_name(
    chars: &[(usize, char)],
    run: Range<usize>,
    around: &mut impl LineContext,
) -> bool {
    let joiners = &chars[run.clone()];
    let (left, right) = (&chars[..run.start], &chars[run.end..]);
    let word_before = left.last().is_some_and(|(_, c)| is_ascii_word(*c));
    let word_after = right.first().is_some_and(|(_, c)| is_ascii_word(*c));
    // A digit with a selector starts a keycap. Characters that are common in text count only if
    // they split a word.
    let selects = joiners.iter().any(|(_, c)| is_basic_selector(*c));
    let letter_before = left.last().is_some_and(|(_, c)| c.is_ascii_alphabetic());
    let inside = word_before && word_after && (letter_before || !selects);
    let only_zero_width = joiners.iter().all(|(_, c)| is_zero_width(*c));
    let at_quote = (word_before && right.first().is_some_and(|(_, c)| ends_text(*c)))
        || (left.last().is_some_and(|(_, c)| ends_text(*c)) && word_after);
    let beside = (word_before
        && right
            .iter()
            .find(|(_, c)| *c != ' ')
            .is_some_and(|(_, c)| is_code_sign(*c)))
        || (word_after
            && left
                .iter()
                .rev()
                .find(|(_, c)| *c != ' ')
                .is_some_and(|(_, c)| is_code_sign(*c)));
    if !(inside || (only_zero_width && (at_quote || beside))) {
        return false;
    }
    let purpose = around.purpose();
    match joiners.first().map(|(at, _)| around.place(*at)) {
        Some(Place::Comment) | None => false,
        Some(Place::String) => purpose != Purpose::Messages && (inside || at_quote),
        Some(_) => inside || at_quote || (purpose == Purpose::Code && beside),
    }
}

/// Returns true for an ASCII character of a name.
fn is_ascii_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns true for a character that is common beside names in code and rare beside words of prose.
fn is_code_sign(c: char) -> bool {
    "=([]{}+*&|%;".contains(c)
}

/// Finds names that mix ASCII letters with similar letters of another script.
///
/// In strings and data, such a name near words of that script is a typing error of an author who
/// writes the language.
fn mixed(chars: &[(usize, char)], around: &mut impl LineContext) -> Option<UnicodeMatch> {
    let purpose = around.purpose();
    if !purpose.is_strict() || around.is_test_data() {
        return None;
    }
    let mut i = 0;
    while i < chars.len() {
        if !is_word(chars[i].1) {
            i += 1;
            continue;
        }
        let run = chars[i..].iter().take_while(|(_, c)| is_word(*c)).count();
        let end = i + run;
        let start = (i + escape_length(chars, i)).min(end);
        let name = &chars[start..end];
        let latin = name.iter().any(|(_, c)| c.is_ascii_alphabetic());
        if latin && foreign(name).next().is_some() && foreign(name).all(looks_latin) {
            let counts = match around.place(name[0].0) {
                Place::Comment => false,
                Place::String => {
                    let is_text = is_among_its_script(chars, start..end, ends_text)
                        || is_among_data(chars, start..end);
                    purpose != Purpose::Messages && !is_text
                }
                _ => purpose != Purpose::Data || !is_among_its_script(chars, start..end, |_| false),
            };
            if counts {
                let what: Vec<String> = foreign(name)
                    .take(4)
                    .map(|c| format!("{} ({})", visible(c), c.script().full_name()))
                    .collect();
                let span = name[0].0..name[name.len() - 1].0 + name[name.len() - 1].1.len_utf8();
                return Some(UnicodeMatch {
                    matcher: Matcher::UnicodeMixedScript,
                    span,
                    detail: what.join(", "),
                });
            }
        }
        i = end;
    }
    None
}

/// Returns true for a character of a name, in any script.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the characters of a name that are not ASCII.
fn foreign(name: &[(usize, char)]) -> impl Iterator<Item = char> {
    name.iter().map(|(_, c)| *c).filter(|c| !c.is_ascii())
}

/// Returns the number of characters at the start of a word that belong to an escape or a format:
/// `\n`, `\u0430`, `%s`.
fn escape_length(chars: &[(usize, char)], start: usize) -> usize {
    match (start.checked_sub(1).map(|b| chars[b].1), chars[start].1) {
        (Some('\\'), 'u') => 1 + hex_digits(&chars[start + 1..], 4),
        (Some('\\'), 'x') => 1 + hex_digits(&chars[start + 1..], 2),
        (Some('\\' | '%'), c) if c.is_ascii_alphabetic() => 1,
        _ => 0,
    }
}

/// Returns the number of hexadecimal digits at the start of a text, up to a limit.
fn hex_digits(chars: &[(usize, char)], limit: usize) -> usize {
    chars
        .iter()
        .take(limit)
        .take_while(|(_, c)| c.is_ascii_hexdigit())
        .count()
}

/// Characters on each side of a word that show the script of its text, at most.
const NEAR: usize = 40;

/// Returns the characters before and after a word, up to the nearest ones that end the text around
/// it.
fn beside(
    chars: &[(usize, char)],
    word: Range<usize>,
    ends: fn(char) -> bool,
) -> impl Iterator<Item = char> {
    let before = chars[..word.start]
        .iter()
        .rev()
        .map(|(_, c)| *c)
        .take(NEAR)
        .take_while(move |c| !ends(*c));
    let after = chars[word.end..]
        .iter()
        .map(|(_, c)| *c)
        .take(NEAR)
        .take_while(move |c| !ends(*c));
    before.chain(after)
}

/// Returns true for a quote: text outside of a string does not make a name in it harmless.
fn ends_text(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// Returns true if a word is near words of the same script with letters that do not resemble Latin
/// ones.
fn is_among_its_script(
    chars: &[(usize, char)],
    word: Range<usize>,
    ends: fn(char) -> bool,
) -> bool {
    let scripts: Vec<Script> = chars[word.clone()]
        .iter()
        .filter(|(_, c)| is_of_similar_script(*c))
        .map(|(_, c)| c.script())
        .collect();
    beside(chars, word, ends)
        .any(|c| is_of_similar_script(c) && !looks_latin(c) && scripts.contains(&c.script()))
}

/// Returns true for a letter of Greek, Cyrillic or Armenian, which have letters that resemble Latin
/// ones.
fn is_of_similar_script(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{58f}') && c.is_alphabetic()
}

/// Returns true if a word is among characters of so many scripts that they are data, such as a
/// table that a tool packed into a string. Blanks and slashes end the text around the word too.
fn is_among_data(chars: &[(usize, char)], word: Range<usize>) -> bool {
    const SCRIPTS: usize = 3;
    let scripts: Vec<Script> = beside(chars, word, |c| {
        ends_text(c) || c.is_whitespace() || c == '/'
    })
    .map(|c| c.script())
    .filter(|s| {
        !matches!(
            s,
            Script::Latin | Script::Common | Script::Inherited | Script::Unknown
        )
    })
    .collect();
    scripts
        .iter()
        .enumerate()
        .filter(|(i, s)| !scripts[..*i].contains(s))
        .count()
        >= SCRIPTS
}

/// Returns true for letters of other scripts that fonts draw like an ASCII letter, except those of
/// mathematics (α, μ, π, Δ).
fn looks_latin(c: char) -> bool {
    const ALIKE: &str = "аеорсухіјѕһԁԛԝѵһӏАВЕКМНОРСТУХІЈЅԌЗοϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧհոսցօքԱՏՍՕ";
    ALIKE.contains(c)
}

#[cfg(test)]
mod tests;
