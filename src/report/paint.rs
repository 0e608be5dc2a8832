//! Syntax colours of code: comments and strings by the lexer of the rules, keywords and numbers by
//! their form.
//!
//! Reports and triage show parts of a file, so the text before a hunk is unknown: a hunk that
//! starts inside of a comment or a string is coloured as if it started in code.

use crate::rules::{self, Place};
use std::ops::Range;

/// Bytes of one hunk that are coloured, at most.
const LONGEST: usize = 256 << 10;

/// The syntax of a part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyntaxKind {
    Comment,
    String,
    Keyword,
    Number,
}

/// A part of a line with a colour, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Painted {
    pub range: Range<usize>,
    pub kind: SyntaxKind,
}

const C_LIKE: &str = "abstract as async await break case catch class const continue default defer delete do else enum \
    export extends extern false final finally fn for foreach from fun func function go goto if impl implements import \
    in instanceof interface let loop match mod move mut namespace new nil null nullptr override package private \
    protected pub public range return select self sizeof static struct super switch template this throw throws trait \
    true try type typedef typeof undefined union unsafe use using val var virtual void volatile when where while with \
    yield";
const PYTHON: &str = "False None True and as assert async await break class continue def del elif else except finally \
    for from global if import in is lambda nonlocal not or pass raise return try while with yield";
const RUBY: &str = "alias and begin break case class def do else elsif end ensure false fn for function if in local \
    module next nil not or redo require rescue retry return self super then true undef unless until when while yield";
const SHELL: &str = "case do done elif else esac exit export fi for function if in local return set then until while";
const SQL: &str = "all alter and as asc begin between by case commit create delete desc distinct drop else end exists \
    from grant group having in index inner insert into is join left like limit not null on or order outer primary \
    references right select set table then union unique update values view when where with";
const DATA: &str = "false null true";

/// The keywords of a language.
struct Keywords {
    words: Vec<&'static str>,
    ignores_case: bool,
}

impl Keywords {
    fn of(language: &str) -> Self {
        let words = match language {
            "python" => PYTHON,
            "ruby" | "elixir" | "lua" => RUBY,
            "shell" | "make" => SHELL,
            "sql" => SQL,
            "json" | "yaml" | "toml" | "terraform" => DATA,
            "html" | "xml" | "markdown" | "text" | "css" | "ini" | "env" | "properties"
            | "dockerfile" | "nginx" => "",
            _ => C_LIKE,
        };
        Self {
            words: words.split_ascii_whitespace().collect(),
            ignores_case: language == "sql",
        }
    }

    fn has(&self, word: &[u8]) -> bool {
        let mut words = self.words.iter().map(|k| k.as_bytes());
        words.any(|k| k == word || self.ignores_case && k.eq_ignore_ascii_case(word))
    }
}

/// Returns the colours of consecutive lines of a file.
pub fn lines<'l>(path: &[u8], lines: impl Iterator<Item = &'l [u8]>) -> Vec<Vec<Painted>> {
    let mut text = Vec::new();
    let mut starts = Vec::new();
    for line in lines {
        starts.push(text.len());
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let mut out = vec![Vec::new(); starts.len()];
    let Some(language) = rules::languages_of(path)
        .next()
        .filter(|_| text.len() <= LONGEST)
    else {
        return out;
    };
    for part in parts(path, &text, &Keywords::of(language)) {
        spread(&part, &starts, &text, &mut out);
    }
    out
}

/// Returns the coloured parts of a text, in order.
fn parts(path: &[u8], text: &[u8], keywords: &Keywords) -> Vec<Painted> {
    let mut out = Vec::new();
    let mut at = 0;
    for (range, place) in rules::outline(path, text) {
        words(text, at..range.start, keywords, &mut out);
        at = range.end;
        let kind = if place == Place::Comment {
            SyntaxKind::Comment
        } else {
            SyntaxKind::String
        };
        out.push(Painted { range, kind });
    }
    words(text, at..text.len(), keywords, &mut out);
    out
}

/// Finds the keywords and numbers of code.
fn words(text: &[u8], code: Range<usize>, keywords: &Keywords, out: &mut Vec<Painted>) {
    let mut at = code.start;
    while at < code.end {
        let length = text[at..code.end]
            .iter()
            .take_while(|b| is_of_word(**b))
            .count();
        let word = &text[at..at + length];
        let kind = match word.first() {
            None => None,
            Some(first) if first.is_ascii_digit() => Some(SyntaxKind::Number),
            Some(_) => keywords.has(word).then_some(SyntaxKind::Keyword),
        };
        out.extend(kind.map(|kind| Painted {
            range: at..at + length,
            kind,
        }));
        at += length.max(1);
    }
}

/// Returns true if a byte can be part of a word or number.
fn is_of_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || !b.is_ascii()
}

/// Splits a part at line ends.
fn spread(part: &Painted, starts: &[usize], text: &[u8], out: &mut [Vec<Painted>]) {
    let first = starts
        .partition_point(|s| *s <= part.range.start)
        .saturating_sub(1);
    for (line, start) in starts.iter().enumerate().skip(first) {
        if *start >= part.range.end {
            break;
        }
        let end = starts.get(line + 1).copied().unwrap_or(text.len()) - 1;
        let range =
            part.range.start.max(*start) - start..part.range.end.min(end).saturating_sub(*start);
        if range.start < range.end {
            out[line].push(Painted {
                range,
                kind: part.kind,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> Vec<Vec<(String, SyntaxKind)>> {
        let painted = lines(path.as_bytes(), text.split('\n').map(str::as_bytes));
        let lines = text.split('\n').zip(painted);
        lines
            .map(|(line, parts)| {
                parts
                    .into_iter()
                    .map(|p| (line[p.range].to_owned(), p.kind))
                    .collect()
            })
            .collect()
    }

    fn part(text: &str, kind: SyntaxKind) -> (String, SyntaxKind) {
        (text.to_owned(), kind)
    }

    #[test]
    fn comments_strings_keywords_and_numbers_have_colours() {
        assert_eq!(
            shown("a.py", "def f(x1, forty):\n    return 'a' # if 1\ny = 0x1F"),
            [
                vec![part("def", SyntaxKind::Keyword)],
                vec![
                    part("return", SyntaxKind::Keyword),
                    part("'a'", SyntaxKind::String),
                    part("# if 1", SyntaxKind::Comment)
                ],
                vec![part("0x1F", SyntaxKind::Number)],
            ]
        );
        assert_eq!(
            shown("a.c", "/* one\n\ntwo */ if"),
            [
                vec![part("/* one", SyntaxKind::Comment)],
                vec![],
                vec![
                    part("two */", SyntaxKind::Comment),
                    part("if", SyntaxKind::Keyword)
                ]
            ]
        );
        assert_eq!(
            shown("a.sql", "Select 1")[0],
            [
                part("Select", SyntaxKind::Keyword),
                part("1", SyntaxKind::Number)
            ]
        );
        assert_eq!(shown("a.unknown", "if 'a' # 1"), [vec![]]);
    }

    #[test]
    fn no_part_reaches_beyond_its_line_and_none_overlaps_another() {
        let texts = [
            "\"\"\"a\nb",
            "'''\n\n'''x",
            "`${a}\n",
            "<<EOF\nif\nEOF\n",
            "/*\n",
            "ä 'ö' 1ü\n\n\"",
            "",
        ];
        for path in [
            "a.py", "a.rs", "a.js", "a.php", "a.sh", "a.yml", "a.h", "a.html",
        ] {
            for text in texts {
                for (line, parts) in text
                    .split('\n')
                    .zip(lines(path.as_bytes(), text.split('\n').map(str::as_bytes)))
                {
                    assert!(
                        parts.is_sorted_by(|a, b| a.range.end <= b.range.start),
                        "{path}: {text:?} {parts:?}"
                    );
                    assert!(
                        parts.iter().all(|p| p.range.end <= line.len()),
                        "{path}: {text:?} {parts:?}"
                    );
                }
            }
        }
    }
}
