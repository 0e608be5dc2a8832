//! Checks citations: whether a heading exists in a document, and whether quoted words are in its
//! section.

use crate::ai::material::Document;
use crate::text::one_line;

/// Words and characters that a quoted passage must have, at least.
const PASSAGE_WORDS: usize = 2;
const PASSAGE_LENGTH: usize = 10;
/// Passages that are looked up, at most.
const MOST_PASSAGES: usize = 64;

/// A heading or passage of a document that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Citation {
    /// `FILE#Heading` with the spelling of the document, or `FILE` if the quoted words are before
    /// the first heading.
    pub(super) label: String,
    /// True if the claim also quotes words of the section.
    pub(super) quoted: bool,
}

/// Resolves the citation of a claim. `said` holds the other texts of the claim, which may quote the
/// document.
pub(super) fn find<'d>(
    cited: &str,
    said: &[&str],
    documents: impl Iterator<Item = &'d Document> + Clone,
) -> Option<Citation> {
    let cited = cited.trim();
    let named = documents
        .clone()
        .filter_map(|d| Some((d, after_name(cited, &d.name)?)));
    // Take the longest name, so that `docs/a.md` does not match as `a.md`.
    let named = named.max_by_key(|(_, rest)| std::cmp::Reverse(rest.len()));
    match named {
        Some((document, rest)) => within(document, rest, cited, said),
        None => {
            let mut found = documents.filter_map(|d| within(d, cited, cited, said));
            let first = found.next()?;
            // Without a document name, only one document may match.
            found.next().is_none().then_some(first)
        }
    }
}

/// Returns true if a citation begins with the name of a document.
pub(super) fn names(cited: &str, document: &Document) -> bool {
    after_name(cited.trim(), &document.name).is_some()
}

/// Returns true if a citation starts with a ticket key, such as `PROJ-12:`, `#12` or `page 12`.
pub(super) fn names_a_ticket(cited: &str) -> bool {
    let cited = cited.trim_start_matches(['`', '"', '\'', '[', '(', ' ']);
    let end = cited
        .find(|c: char| c == ':' || c == '`' || c == '"' || c.is_whitespace())
        .unwrap_or(cited.len());
    let key = cited[..end].trim_end_matches([']', ')', ',']);
    let is_key = key.rsplit_once(['-', '#']).is_some_and(|(name, number)| {
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        is_number
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '/' | '-' | '.'))
    });
    is_key
        || cited
            .strip_prefix("page ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the section of a cited heading. `label` has the format of [`Citation`].
pub(in crate::ai) fn section_of<'d>(label: &str, document: &'d Document) -> Option<&'d str> {
    match label.strip_prefix(document.name.as_str())? {
        "" => Some(&document.text),
        rest => {
            let title = rest.strip_prefix('#')?;
            let heading = headings(&document.text)
                .into_iter()
                .find(|h| h.title == title)?;
            document.text.get(heading.start..heading.end)
        }
    }
}

/// Returns how well the heading `own` matches a citation: as a whole, as its last part, or as its
/// beginning. A longer heading is better.
fn score(own: &str, wanted: &str, last: Option<&str>) -> Option<(u8, usize)> {
    let begins = wanted
        .strip_prefix(own)
        .is_some_and(|more| more.is_empty() || more.starts_with('-'));
    match own.is_empty() {
        false if own == wanted => Some((2, own.len())),
        false if last == Some(own) => Some((1, own.len())),
        false if begins => Some((0, own.len())),
        _ => None,
    }
}

/// Returns the rest of a citation after the name of a document.
fn after_name<'c>(cited: &'c str, name: &str) -> Option<&'c str> {
    let cited = cited.trim_start_matches(['`', '"', '\'', '[', '(', ' ']);
    let cited = cited.strip_prefix("./").unwrap_or(cited);
    let file_name = name.rsplit('/').next().unwrap_or(name);
    let rest = cited
        .strip_prefix(name)
        .or_else(|| cited.strip_prefix(file_name))?;
    let ends = rest
        .chars()
        .next()
        .is_none_or(|c| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '-')));
    ends.then_some(rest)
}

fn within(document: &Document, rest: &str, cited: &str, said: &[&str]) -> Option<Citation> {
    let separators = [
        '#', ':', '>', '§', ',', '`', '"', '\'', ')', ']', '/', ' ', '–', '—', '-',
    ];
    let rest = rest.trim_start_matches(separators).trim();
    let rest = rest
        .strip_prefix("section ")
        .unwrap_or(rest)
        .trim_start_matches(separators);
    let headings = headings(&document.text);
    let wanted = slug(rest);
    // Handles `Part > Heading`. Without a document name in front, `Part` may be the name of another
    // document.
    let last = if rest.len() < cited.len() {
        rest.rsplit(['>', '/']).next().map(slug)
    } else {
        None
    };
    let scored = headings
        .iter()
        .filter_map(|h| Some((score(&slug(h.title), &wanted, last.as_deref())?, h)));
    let heading = scored.max_by_key(|(score, _)| *score).map(|(_, h)| h);
    if let Some(heading) = heading {
        let section = plain(&document.text[heading.start..heading.end]);
        // The text after the heading in a citation counts as quoted words, with or without
        // quotation marks.
        let mut passages: Vec<&str> = rest
            .split_once([':', '\n'])
            .map(|(_, words)| words)
            .into_iter()
            .collect();
        passages.extend(
            std::iter::once(cited)
                .chain(said.iter().copied())
                .flat_map(self::passages),
        );
        let quoted = passages
            .iter()
            .take(MOST_PASSAGES)
            .any(|p| stands_in(p, &section, PASSAGE_WORDS));
        return Some(Citation {
            label: format!("{}#{}", document.name, heading.title),
            quoted,
        });
    }
    // No heading matches. A literal quote from the document is also a citation.
    let passages: Vec<&str> = std::iter::once(rest).chain(passages(cited)).collect();
    let whole = plain(&document.text);
    let words = passages
        .iter()
        .take(MOST_PASSAGES)
        .find(|p| stands_in(p, &whole, PASSAGE_WORDS + 1))?;
    let wanted = plain(words);
    let over = headings
        .iter()
        .rfind(|h| plain(&document.text[h.start..h.end]).contains(&wanted));
    let label = match over {
        Some(heading) => format!("{}#{}", document.name, heading.title),
        None => document.name.clone(),
    };
    Some(Citation {
        label,
        quoted: true,
    })
}

fn stands_in(passage: &str, section: &str, least: usize) -> bool {
    let passage = plain(passage);
    passage.chars().count() >= PASSAGE_LENGTH
        && passage
            .split(' ')
            .filter(|w| w.chars().any(char::is_alphanumeric))
            .count()
            >= least
        && section.contains(&passage)
}

/// Returns the headings of a text with their sections. A section includes its subsections.
pub(super) fn outline(text: &str) -> Vec<(&str, &str)> {
    headings(text)
        .into_iter()
        .map(|h| (h.title, text.get(h.start..h.end).unwrap_or_default()))
        .collect()
}

/// Returns true if a text contains the words, at least two with ten characters in total. Ignores
/// markup, white space and case.
pub(super) fn holds(text: &str, words: &str) -> bool {
    stands_in(words, &plain(text), PASSAGE_WORDS)
}

/// Returns the passages in quotation marks or code spans.
fn passages(text: &str) -> impl Iterator<Item = &str> {
    const QUOTES: [(char, char); 5] = [('"', '"'), ('“', '”'), ('`', '`'), ('‘', '’'), ('«', '»')];
    QUOTES.into_iter().flat_map(move |(open, close)| {
        let mut rest = text;
        std::iter::from_fn(move || {
            let start = rest.find(open)? + open.len_utf8();
            let end = start + rest[start..].find(close)?;
            let passage = &rest[start..end];
            // If the opening and the closing mark are the same, each mark may open a passage. The
            // text between two passages does no harm, because it must also occur in the document.
            rest = if open == close {
                &rest[end..]
            } else {
                &rest[end + close.len_utf8()..]
            };
            Some(passage)
        })
    })
}

/// Returns a text in lower case, without emphasis and list markers, with runs of white space as one
/// space.
fn plain(text: &str) -> String {
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '#' | '>' | '"' | '“' | '”'))
        .collect();
    let text = text.to_lowercase();
    let text = one_line(&text);
    text.trim_end_matches(['.', '…', ' ']).to_owned()
}

/// Returns the anchor of a heading as used in links: `error-handling`.
fn slug(text: &str) -> String {
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_lowercase);
    words.collect::<Vec<_>>().join("-")
}

/// A heading, with the byte range of its section.
#[derive(Debug)]
struct Heading<'t> {
    title: &'t str,
    level: usize,
    start: usize,
    end: usize,
}

/// Finds the headings of Markdown, AsciiDoc and reStructuredText.
fn headings(text: &str) -> Vec<Heading<'_>> {
    let mut found: Vec<Heading<'_>> = Vec::new();
    let mut in_code = false;
    let mut previous: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let line = line.trim();
        if line.starts_with("```")
            || line.starts_with("~~~") && line.len() < 12 && !line.ends_with("~~~~")
        {
            in_code = !in_code;
            previous = None;
            continue;
        }
        if in_code {
            continue;
        }
        let hashes = line.bytes().take_while(|b| *b == b'#').count();
        let equals = line.bytes().take_while(|b| *b == b'=').count();
        let heading = if (1..=6).contains(&hashes) && line[hashes..].starts_with([' ', '\t']) {
            Some((
                line[hashes..].trim().trim_end_matches('#').trim(),
                hashes,
                at,
            ))
        } else if (1..=6).contains(&equals) && line[equals..].starts_with(' ') {
            Some((line[equals..].trim(), equals, at))
        } else if is_underline(line)
            && previous.is_some_and(|p| line.chars().count() + 2 >= p.chars().count())
        {
            previous.map(|p| (p, underline_level(line), at))
        } else {
            None
        };
        let is_heading = heading.is_some_and(|(title, ..)| !title.is_empty());
        if let Some((title, level, from)) = heading.filter(|_| is_heading) {
            for open in found
                .iter_mut()
                .filter(|h| h.end == usize::MAX && h.level >= level)
            {
                open.end = start;
            }
            found.push(Heading {
                title,
                level,
                start: from,
                end: usize::MAX,
            });
        }
        previous =
            (!is_heading && !line.is_empty() && !line.starts_with(['-', '|', '>'])).then_some(line);
    }
    for open in found.iter_mut().filter(|h| h.end == usize::MAX) {
        open.end = text.len();
    }
    found
}

fn is_underline(line: &str) -> bool {
    let first = line.chars().next();
    line.len() >= 3
        && first.is_some_and(|f| matches!(f, '=' | '-' | '~' | '^') && line.chars().all(|c| c == f))
}

fn underline_level(line: &str) -> usize {
    match line.as_bytes().first() {
        Some(b'=') => 1,
        Some(b'-') => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
Team rules
==========

Be kind.

## Error handling

Library code never calls `unwrap`; it returns
an error that names the object.

### Messages

- Errors are **lowercase fragments**.

## Style

```md
# Not a heading
```

Use four spaces.
";

    fn documents() -> Vec<Document> {
        let document = |name: &str, text: &str| Document {
            name: name.to_owned(),
            text: text.to_owned(),
            folder: Vec::new(),
        };
        vec![
            document("CLAUDE.md", TEXT),
            document(
                "docs/design.md",
                "# Pools\nPools are independent of exercises.\n# Style\nNone.\n",
            ),
            document("notes.txt", "Every migration must be reversible.\n"),
        ]
    }

    fn label(cited: &str, said: &str) -> Option<(String, bool)> {
        let documents = documents();
        find(cited, &[said], documents.iter()).map(|c| (c.label, c.quoted))
    }

    #[test]
    fn a_heading_and_words_that_exist_are_a_citation() {
        let whole = Some(("CLAUDE.md#Error handling".to_owned(), true));
        for cited in [
            "CLAUDE.md#Error handling: \"Library code never calls `unwrap`\"",
            "CLAUDE.md#error-handling: library code never calls unwrap",
            "`CLAUDE.md` > Error handling: “it returns an error that names the object”",
            "CLAUDE.md, section Error handling: \"never calls `unwrap`; it returns an error\"",
            "CLAUDE.md: \"Library code never calls `unwrap`\"",
            "./CLAUDE.md#Error handling\n\"errors are lowercase fragments\"",
        ] {
            let found = label(cited, "");
            assert!(
                found == whole || cited.contains("lowercase") && found.is_some(),
                "{cited}: {found:?}"
            );
        }
        assert_eq!(
            label(
                "CLAUDE.md#Error handling",
                "The rule says \"never calls `unwrap`\"."
            ),
            whole
        );
        let inner = Some(("CLAUDE.md#Messages".to_owned(), true));
        assert_eq!(
            label(
                "CLAUDE.md#Error handling > Messages",
                "\"lowercase fragments\""
            ),
            inner
        );
        assert_eq!(
            label("design.md#Pools", "x").unwrap().0,
            "docs/design.md#Pools"
        );
        assert_eq!(
            label("docs/design.md#pools", "x").unwrap().0,
            "docs/design.md#Pools"
        );
        assert_eq!(
            label("notes.txt: \"Every migration must be reversible\"", "")
                .unwrap()
                .0,
            "notes.txt"
        );
    }

    #[test]
    fn what_stands_under_a_cited_heading_is_found_by_its_label() {
        let all = documents();
        assert_eq!(
            section(&all, "CLAUDE.md#Messages"),
            Some("- Errors are **lowercase fragments**.")
        );
        assert_eq!(
            section(&all, "notes.txt"),
            Some("Every migration must be reversible.")
        );
        assert_eq!(section(&all, "CLAUDE.md#None"), None);
        assert_eq!(section(&all, "OTHER.md#Messages"), None);
    }

    /// Returns the section of a cited heading, from any of the documents.
    fn section<'d>(all: &'d [Document], label: &str) -> Option<&'d str> {
        all.iter().find_map(|d| section_of(label, d)).map(str::trim)
    }

    #[test]
    fn a_heading_alone_is_found_but_quotes_nothing() {
        assert_eq!(
            label("CLAUDE.md#Error handling", ""),
            Some(("CLAUDE.md#Error handling".to_owned(), false))
        );
        assert!(
            !label("CLAUDE.md#Team rules", "\"Four words not there\"")
                .unwrap()
                .1
        );
        // Words from another section do not count.
        assert!(
            !label("CLAUDE.md#Style: \"Library code never calls unwrap\"", "")
                .unwrap()
                .1
        );
        assert!(
            !label("CLAUDE.md#Error handling: \"unwrap\"", "").unwrap().1,
            "one word is not a quote"
        );
    }

    #[test]
    fn what_is_made_up_is_no_citation() {
        for cited in [
            "CLAUDE.md#Logging",
            "CLAUDE.md#Logging: \"Log everything twice\"",
            "CLAUDE.md#Not in it",
            "CLAUDE.md",
            "OTHER.md#Error handling",
            "OTHER.md > Error handling",
            "docs/CLAUDE.mdx#Error handling",
            "Style",
            "",
            "#",
        ] {
            assert_eq!(label(cited, ""), None, "{cited}");
        }
    }
}
