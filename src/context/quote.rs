//! Removes the words of tickets from a text for a forge. Pure.
//!
//! Scripts without spaces between words have one word for each character, so that all scripts are
//! matched in the same way. Words have different weights: see [`QuoteWord::weight`].

use super::GatheredItem;
use std::collections::HashSet;
use std::ops::Range;

/// Weight of consecutive words that reveal a ticket: six words, or nine characters of a script
/// without spaces.
const RUN: usize = 18;
/// Weight of a word.
const WORD: usize = 3;
/// Weight of a character of a script without spaces.
const CHARACTER: usize = 2;
/// Letters and digits of the shortest single-word title, and of the shortest sentence, that is
/// searched for.
const LETTERS: usize = 6;
/// Weight of consecutive words that a replacement of code must not share with a ticket. Shorter
/// runs are names.
const IN_CODE: usize = 9;
/// Opening and closing quotation marks. Backticks are excluded: they enclose names of code.
const QUOTATIONS: &[(char, char)] = &[
    ('"', '"'),
    ('\u{201c}', '\u{201d}'),
    ('\u{201e}', '\u{201c}'),
    ('\u{2018}', '\u{2019}'),
    ('\u{201a}', '\u{2018}'),
    ('\u{ab}', '\u{bb}'),
    ('\u{300c}', '\u{300d}'),
    ('\u{300e}', '\u{300f}'),
];
/// Ranges of scripts without spaces between words, and of scripts with long, inflected words: Thai,
/// Lao, Tibetan, Myanmar, Khmer, Hangul, kana, bopomofo, Yi, ideographs.
const UNSPACED: &[(char, char)] = &[
    ('\u{e00}', '\u{fff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1100}', '\u{11ff}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{1950}', '\u{1aaf}'),
    ('\u{2e80}', '\u{2fdf}'),
    ('\u{3005}', '\u{3007}'),
    ('\u{3040}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{aa60}', '\u{aa7f}'),
    ('\u{ac00}', '\u{d7ff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff66}', '\u{ffdc}'),
    ('\u{1aff0}', '\u{1b16f}'),
    ('\u{20000}', '\u{3ffff}'),
];

/// The words of tickets.
#[derive(Debug, Default)]
pub struct Quotes<'a> {
    items: Vec<(&'a GatheredItem, Phrases)>,
}

/// The word sequences that reveal one ticket.
#[derive(Debug, Default)]
struct Phrases {
    /// Runs with the weight [`RUN`]: no shorter run has it.
    runs: HashSet<String>,
    /// The title, and whole sentences that are shorter than a run.
    whole: HashSet<String>,
    /// The numbers of words of the entries of `whole`.
    lengths: HashSet<usize>,
    /// All words, to check quotations: their words must occur here in sequence.
    all: Vec<String>,
}

/// A word of a text, in lower case.
#[derive(Clone, Debug)]
struct QuoteWord {
    at: Range<usize>,
    text: String,
    is_character: bool,
}

impl<'a> Quotes<'a> {
    /// Collects the words of tickets whose text is known.
    pub fn of(items: &'a [GatheredItem]) -> Self {
        Self {
            items: items.iter().map(|item| (item, Phrases::of(item))).collect(),
        }
    }

    /// Returns the text with the words of tickets replaced: `[words of PROJ-12]`. This covers runs
    /// of six words, whole sentences, titles, and quotations.
    pub fn remove(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for (item, phrases) in &self.items {
            let hidden = phrases.found(&out, 0);
            out = replaced(&out, hidden, &format!("[words of {}]", item.reference));
        }
        out
    }

    /// Returns true if code has words of a ticket, for example in a comment. Names of one or two
    /// words do not count.
    pub fn is_in_code(&self, code: &str) -> bool {
        self.items
            .iter()
            .any(|(_, phrases)| !phrases.found(code, IN_CODE).is_empty())
    }
}

impl Phrases {
    fn of(item: &GatheredItem) -> Self {
        let (title, text) = (words(&item.title), words(&item.text));
        let runs = [&title, &text]
            .into_iter()
            .flat_map(|words| runs(words))
            .map(joined)
            .collect();
        let mut whole: Vec<Vec<QuoteWord>> = sentences(&item.text).map(words).collect();
        whole.retain(|sentence| sentence.len() > 1);
        whole.push(title.clone());
        whole.retain(|phrase| is_distinctive(phrase));
        Self {
            runs,
            lengths: whole.iter().map(Vec::len).collect(),
            whole: whole.iter().map(|phrase| joined(phrase)).collect(),
            all: [title, text].map(|words| joined(&words)).into(),
        }
    }

    /// Returns the positions of a ticket's words in a text, from a minimum weight on.
    fn found(&self, text: &str, least: usize) -> Vec<Range<usize>> {
        let words = words(text);
        let whole = self.lengths.iter().flat_map(|n| words.windows((*n).max(1)));
        let runs = runs(&words).filter(|run| self.runs.contains(&joined(run)));
        let whole = whole.filter(|phrase| self.whole.contains(&joined(phrase)));
        let found = runs.chain(whole).filter(|run| weight_of(run) >= least);
        let quoted = quotations(text, &words)
            .filter(|run| weight_of(run) >= least)
            .filter(|q| self.has(q));
        found.chain(quoted).filter_map(place_of).collect()
    }

    /// Returns true if the ticket contains a quotation of at least two words.
    fn has(&self, quotation: &[QuoteWord]) -> bool {
        let is_long = quotation.len() > 1 && is_distinctive(quotation);
        is_long && self.all.iter().any(|all| all.contains(&joined(quotation)))
    }
}

impl QuoteWord {
    fn weight(&self) -> usize {
        if self.is_character { CHARACTER } else { WORD }
    }
}

/// Returns the weight of consecutive words.
fn weight_of(run: &[QuoteWord]) -> usize {
    run.iter().map(QuoteWord::weight).sum()
}

/// Returns the position of consecutive words; `None` if there are none.
fn place_of(run: &[QuoteWord]) -> Option<Range<usize>> {
    Some(run.first()?.at.start..run.last()?.at.end)
}

/// Returns true if the words are distinctive: several words, or a long one.
fn is_distinctive(words: &[QuoteWord]) -> bool {
    let letters: usize = words
        .iter()
        .map(|w| w.text.chars().count() * if w.is_character { LETTERS / 2 } else { 1 })
        .sum();
    letters >= LETTERS
}

/// Returns the shortest runs of words with the weight of a run, one starting at each word.
fn runs(words: &[QuoteWord]) -> impl Iterator<Item = &[QuoteWord]> {
    (0..words.len()).filter_map(|from| {
        let mut weight = 0;
        let length = words[from..].iter().position(|word| {
            weight += word.weight();
            weight >= RUN
        })?;
        Some(&words[from..=from + length])
    })
}

/// Returns the sentences of a text. A line end also ends a sentence.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    const ENDS: [char; 11] = [
        '\n', '\r', '!', '?', ';', '|', '\u{3002}', '\u{ff01}', '\u{ff1f}', '\u{ff1b}', '\u{ff61}',
    ];
    // A full stop inside a number or a name does not end a sentence.
    text.split(ENDS)
        .flat_map(|part| part.split(". "))
        .map(|s| s.trim_end_matches('.'))
}

/// Returns the words between each pair of quotation marks.
fn quotations<'w>(text: &str, words: &'w [QuoteWord]) -> impl Iterator<Item = &'w [QuoteWord]> {
    let mut out = Vec::new();
    for (open, close) in QUOTATIONS {
        let mut from = None;
        for (at, c) in text.char_indices().filter(|(_, c)| c == open || c == close) {
            // A closing mark can also open the next quotation: the marks of a text need not be
            // balanced.
            if let Some(from) = from.filter(|_| c == *close) {
                let first = words.partition_point(|w| w.at.start < from);
                let end = words.partition_point(|w| w.at.end <= at);
                out.extend(words.get(first..end));
            }
            if c == *open {
                from = Some(at);
            }
        }
    }
    out.into_iter()
}

/// Returns words as one text, with separators that no word contains.
fn joined(words: &[QuoteWord]) -> String {
    let mut out = String::from(" ");
    for word in words {
        out.push_str(&word.text);
        out.push(' ');
    }
    out
}

/// Returns the words of a text in lower case, with their positions.
fn words(text: &str) -> Vec<QuoteWord> {
    let mut out = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_character = is_unspaced(c) && c.is_alphanumeric();
        let is_of_word = c.is_alphanumeric() && !is_character;
        match (start, is_of_word) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                out.push(QuoteWord {
                    at: from..at,
                    text: text[from..at].to_lowercase(),
                    is_character: false,
                });
                start = None;
            }
            _ => {}
        }
        if is_character {
            let at = at..at + c.len_utf8();
            out.push(QuoteWord {
                text: text[at.clone()].to_owned(),
                at,
                is_character,
            });
        }
    }
    out
}

fn is_unspaced(c: char) -> bool {
    UNSPACED
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&c))
}

fn replaced(text: &str, mut spans: Vec<Range<usize>>, with: &str) -> String {
    spans.sort_by_key(|s| (s.start, s.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => merged.push(span),
        }
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for span in merged {
        out.push_str(&text[at..span.start]);
        out.push_str(with);
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str, text: &str) -> GatheredItem {
        GatheredItem {
            reference: "PROJ-1".to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            ..GatheredItem::default()
        }
    }

    #[test]
    fn words_of_a_ticket_are_replaced_and_others_stay() {
        let items = [item(
            "Limit the retries",
            "Calls to the bank must be retried at most three times, then fail.",
        )];
        let quotes = Quotes::of(&items);
        let text = "The ticket says \"Calls to the  BANK must be retried\" and this loops.";
        assert_eq!(
            quotes.remove(text),
            "The ticket says \"[words of PROJ-1]\" and this loops."
        );
        assert_eq!(quotes.remove("limit the retries!"), "[words of PROJ-1]!");
        for other in [
            "must be retried at most",
            "Calls the bank",
            "",
            "ünïcode – calls",
        ] {
            assert_eq!(quotes.remove(other), other);
        }
    }

    #[test]
    fn a_ticket_without_text_replaces_nothing_but_its_title() {
        let items = [item("Crash", ""), item("", "")];
        assert_eq!(
            Quotes::of(&items).remove("one two, a crash, four five"),
            "one two, a crash, four five"
        );
        let items = [item("One two", ""), item("", "")];
        assert_eq!(
            Quotes::of(&items).remove("one two three four five six"),
            "[words of PROJ-1] three four five six"
        );
    }

    #[test]
    fn words_in_scripts_without_spaces_are_replaced() {
        for (title, text, part) in [
            (
                "決済の再試行",
                "銀行への呼び出しは三回まで再試行し、その後は失敗とする。",
                "呼び出しは三回まで再試行",
            ),
            (
                "重试限制",
                "对银行的调用最多重试三次，然后失败。",
                "最多重试三次，然后失败",
            ),
            (
                "จำกัดการลองใหม่",
                "การเรียกธนาคารต้องลองใหม่ไม่เกินสามครั้ง",
                "ต้องลองใหม่ไม่เกินสามครั้ง",
            ),
            ("ຈຳກັດ", "ການໂທຫາທະນາຄານລອງໃໝ່ບໍ່ເກີນສາມຄັ້ງ", "ລອງໃໝ່ບໍ່ເກີນສາມຄັ້ງ"),
            ("កំណត់", "ការហៅទៅធនាគារត្រូវព្យាយាមម្តងទៀត", "ត្រូវព្យាយាមម្តងទៀត"),
            (
                "재시도 제한",
                "은행 호출은 최대 세 번까지 다시 시도한다",
                "최대 세 번까지 다시 시도한다",
            ),
        ] {
            let items = [item(title, text)];
            let quotes = Quotes::of(&items);
            for phrase in [title, part, text] {
                let out = quotes.remove(&format!("The ticket says {phrase}, but seven."));
                assert!(
                    out.contains("The ticket says [words of PROJ-1]"),
                    "{phrase}: {out}"
                );
                assert!(out.ends_with(" but seven."), "{out}");
                assert!(!out.contains(phrase), "{out}");
            }
            assert_eq!(
                quotes.remove("別の文。再試"),
                "別の文。再試",
                "other words, and fewer of them"
            );
        }
    }

    #[test]
    fn short_titles_sentences_and_quotations_are_replaced() {
        let text = "Never log PINs. Refunds go to treasury v1.2 only!\n- ship it Friday\nThe limit is at most three per call and day.";
        let items = [item("Kill switch", text)];
        let quotes = Quotes::of(&items);
        for (given, expected) in [
            (
                "a kill  switch is missing",
                "a [words of PROJ-1] is missing",
            ),
            ("It says: never log PINs", "It says: [words of PROJ-1]"),
            ("refunds go to Treasury v1.2 only.", "[words of PROJ-1]."),
            ("We should *ship it* Friday", "We should *[words of PROJ-1]"),
            (
                "it wants \"at most three\" here",
                "it wants \"[words of PROJ-1]\" here",
            ),
            (
                "it wants “at most three” here",
                "it wants “[words of PROJ-1]” here",
            ),
            (
                "it wants «At most three» here",
                "it wants «[words of PROJ-1]» here",
            ),
            (
                "a \" stray mark, and \"at most three\"",
                "a \" stray mark, and \"[words of PROJ-1]\"",
            ),
        ] {
            assert_eq!(quotes.remove(given), expected);
        }
        for other in [
            "at most three",
            "`log`",
            "the \"limit\"",
            "it logs a PIN",
            "kills a switch",
            "\"at\" \"most\"",
        ] {
            assert_eq!(quotes.remove(other), other);
        }
        let items = [item("Reauthentication", "")];
        assert_eq!(
            Quotes::of(&items).remove("no reauthentication"),
            "no [words of PROJ-1]",
            "a long word"
        );
    }

    #[test]
    fn code_has_words_of_a_ticket_from_three_words_on() {
        let items = [item("Kill switch", "Never log PINs.\nmaximum retries\n")];
        let quotes = Quotes::of(&items);
        assert!(quotes.is_in_code("    # never log PINs\n    return None"));
        for code in ["let kill_switch = 3;", "maximum_retries = 3", ""] {
            assert!(!quotes.is_in_code(code), "{code}");
        }
    }

    #[test]
    fn a_long_ticket_is_matched_by_its_own_words_only() {
        let text: String = (0..20_000).map(|n| format!("w{n} ")).collect();
        let items = [item("", &text)];
        let quotes = Quotes::of(&items);
        assert_eq!(quotes.remove("w7 w8 w9 w10 w11 w12"), "[words of PROJ-1]");
        assert_eq!(
            quotes.remove("w7 w8 w9 w11 w12 w13"),
            "w7 w8 w9 w11 w12 w13"
        );
    }
}
