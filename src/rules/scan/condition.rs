//! Finds the conditions of the blocks around a match.
//!
//! Comments and text in strings open no block, and a block that has ended before the match does not
//! count.

use crate::rules::lexer::{self, Place};
use crate::rules::walk::RulePatterns;
use std::ops::Range;

/// Bytes before a match that are searched for the blocks around it, at most.
const REACH: usize = 4096;
/// Blocks around a match that are read, at most.
const BLOCKS: usize = 16;
/// Matches of a file whose conditions are read, at most. The others keep their severity.
const MATCHES: u32 = 1000;
/// Bytes of a text whose conditions are read, at most: it is kept twice.
const SIZE: usize = 1 << 20;
/// Words that start a condition in the languages with braces, and in Python.
const WORDS: &[&str] = &[
    "if", "elseif", "elsif", "elif", "unless", "case", "switch", "when", "while",
];

/// Reads the conditions of a file. The last text is kept, because a file can have many matches.
#[derive(Debug, Default)]
pub(super) struct ConditionReader {
    /// Address and size of the text that was read last.
    of: (usize, usize),
    read: Option<ReadText>,
    used: u32,
}

/// A text with its comments blanked, and once more with its strings blanked too.
#[derive(Debug)]
pub(super) struct ReadText {
    /// Without comments.
    shown: Vec<u8>,
    /// Without comments and strings.
    code: Vec<u8>,
}

impl ConditionReader {
    /// Returns true if a condition around a byte of a text matches the key `weak_if` of a rule.
    pub(super) fn is_chosen(
        &mut self,
        rule: &RulePatterns,
        path: &[u8],
        text: &[u8],
        at: usize,
    ) -> bool {
        if !rule.judges_conditions() {
            return false;
        }
        let conditions = self
            .read(path, text)
            .map(|read| read.around(path, at.min(text.len())))
            .unwrap_or_default();
        conditions
            .iter()
            .any(|condition| rule.is_weak_if(condition))
    }

    /// Returns the code of a text. `None`: the text is large, has many matches, or the lexer does
    /// not know its comments and strings well enough.
    pub(super) fn read(&mut self, path: &[u8], text: &[u8]) -> Option<&ReadText> {
        if text.len() > SIZE || self.used >= MATCHES {
            return None;
        }
        self.used += 1;
        let of = (text.as_ptr() as usize, text.len());
        if self.of != of {
            (self.of, self.read) = (of, None);
        }
        if self.read.is_none() && !has_conditions(path, text) {
            return None;
        }
        Some(self.read.get_or_insert_with(|| ReadText::new(path, text)))
    }
}

impl ReadText {
    fn new(path: &[u8], text: &[u8]) -> Self {
        let (mut shown, mut code) = (text.to_vec(), text.to_vec());
        for (range, place) in lexer::outline(path, text) {
            blank(&mut code[range.clone()]);
            if place == Place::Comment {
                blank(&mut shown[range]);
            }
        }
        Self { shown, code }
    }

    /// Returns the text without comments.
    pub(super) fn shown(&self) -> &[u8] {
        &self.shown
    }

    /// Returns the text without comments and strings.
    pub(super) fn code(&self) -> &[u8] {
        &self.code
    }

    /// Returns the conditions of the blocks and statements around a byte, the innermost first.
    fn around(&self, path: &[u8], at: usize) -> Vec<Vec<u8>> {
        if lexer::languages_of(path).any(|language| language == "python") {
            self.by_indentation(at)
        } else {
            self.by_braces(at)
        }
    }

    /// Returns the conditions before the open braces around a byte, and the labels of `switch`.
    fn by_braces(&self, at: usize) -> Vec<Vec<u8>> {
        let low = at.saturating_sub(REACH);
        let mut out: Vec<Vec<u8>> = self.condition(low, at).into_iter().collect();
        let (mut depth, mut has_label, mut blocks) = (0u32, false, 0);
        for i in (low..at).rev() {
            if blocks >= BLOCKS {
                break;
            }
            match self.code[i] {
                b'}' | b')' | b']' => depth += 1,
                b'{' | b'(' | b'[' if depth > 0 => depth -= 1,
                b'{' => {
                    out.extend(self.condition(low, i));
                    (has_label, blocks) = (false, blocks + 1);
                }
                b'c' if depth == 0 && !has_label => {
                    let label = self.label(i);
                    has_label = label.is_some();
                    out.extend(label.map(|label| self.shown[label].trim_ascii().to_vec()));
                }
                _ => {}
            }
        }
        // The label of the statement itself is found twice.
        out.dedup();
        out
    }

    /// Returns the condition between the start of a statement and its block, which starts at a
    /// byte. `None`: the statement has none.
    fn condition(&self, low: usize, end: usize) -> Option<Vec<u8>> {
        let (mut start, mut depth) = (low, 0u32);
        for i in (low..end).rev() {
            let is_end = match self.code[i] {
                b')' => {
                    depth += 1;
                    false
                }
                b'(' if depth > 0 => {
                    depth -= 1;
                    false
                }
                b';' | b'{' | b'}' => depth == 0,
                // The brace of a block can be on a line of its own, and so can a `?`.
                b'\n' => {
                    let after = self.code[i + 1..end].trim_ascii();
                    // The statement of an `if` without braces is below its condition.
                    let from =
                        memchr::memrchr(b'\n', &self.code[low..i]).map_or(low, |at| low + at);
                    let above = self.code[from..i].trim_ascii_end();
                    let is_head = is_head(above);
                    depth == 0 && !is_head && after != b"?"
                }
                _ => false,
            };
            if is_end {
                start = i + 1;
                break;
            }
        }
        let is_ternary = self.code[start..end].trim_ascii_end().ends_with(b"?");
        let is_condition = is_ternary || is_conditional(&self.code[start..end]);
        is_condition.then(|| self.shown[start..end].trim_ascii().to_vec())
    }

    /// Returns the label of a `switch` whose word `case` starts at a byte and is the first of its
    /// line.
    fn label(&self, at: usize) -> Option<Range<usize>> {
        let rest = self.code[at..].strip_prefix(b"case")?;
        let start = memchr::memrchr(b'\n', &self.code[..at]).map_or(0, |i| i + 1);
        let is_first = self.code[start..at].trim_ascii().is_empty();
        let is_word = rest.first().is_some_and(u8::is_ascii_whitespace);
        let end = memchr::memchr(b'\n', &self.code[at..]).map_or(self.code.len(), |i| at + i);
        (is_first && is_word).then_some(at..end)
    }

    /// Returns the conditions of the lines above a byte that have less indentation than the lines
    /// of their block.
    fn by_indentation(&self, at: usize) -> Vec<Vec<u8>> {
        let low = at.saturating_sub(REACH);
        let start = memchr::memrchr(b'\n', &self.code[..at]).map_or(0, |i| i + 1);
        // The statement of the match is the last one of its line.
        let own = memchr::memrchr(b';', &self.code[start..at]).map_or(start, |i| start + i + 1);
        let mut out: Vec<Vec<u8>> = is_conditional(&self.code[own..at])
            .then(|| self.shown[own..at].to_vec())
            .into_iter()
            .collect();
        let mut level = indentation(&self.code[start..]);
        // The level of an `else`, whose condition is further above.
        let mut other = None;
        let mut end = start;
        while end > low && (level > 0 || other.is_some()) {
            let above = end - 1;
            let start = memchr::memrchr(b'\n', &self.code[..above]).map_or(0, |i| i + 1);
            let line = start..above;
            end = start;
            let code = &self.code[line.clone()];
            let own = indentation(code);
            let is_header = own < level || other == Some(own);
            if code.trim_ascii().is_empty() || !is_header {
                continue;
            }
            let is_else = code.trim_ascii().starts_with(b"else");
            if is_conditional(code) {
                out.push(self.shown[line].to_vec());
            }
            other = is_else.then_some(own);
            level = level.min(own);
        }
        out
    }
}

/// Returns the number of blanks at the start of a line.
fn indentation(line: &[u8]) -> usize {
    line.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

/// Returns true if the lexer knows the comments and strings of a text so well that no text in them
/// can look like a condition.
fn has_conditions(path: &[u8], text: &[u8]) -> bool {
    // What is a comment in one language of the file can be a condition in another.
    if !lexer::has_one_syntax(path) {
        return false;
    }
    let is_in = |names: &[&str]| lexer::languages_of(path).any(|name| names.contains(&name));
    // Literals such as `%q(…)` and `/…/` are code for the lexer.
    if is_in(&["ruby", "perl", "groovy"]) {
        return false;
    }
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    // Markup around the code, and heredocs.
    !is_in(&["php"]) || text.starts_with(b"<?php") && !has(b"?>") && !has(b"<<<")
}

/// Returns the text after the word of a statement that starts with one of [`WORDS`], such as
/// `if (a)` and `} else if a`; `None` if it starts with something else. A name, as in `if: a` and
/// `case = a`, is not such a word.
fn after_word(statement: &[u8]) -> Option<&[u8]> {
    let mut rest = statement.trim_ascii_start();
    while let [b'}', after @ ..] = rest {
        rest = after.trim_ascii_start();
    }
    if let Some(after) = rest.strip_prefix(b"else")
        && after.first().is_some_and(u8::is_ascii_whitespace)
    {
        rest = after.trim_ascii_start();
    }
    let is_of_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let length = rest.iter().take_while(|b| is_of_word(b)).count();
    let (word, after) = rest.split_at(length);
    let is_known = WORDS.iter().any(|known| known.as_bytes() == word);
    let next = after.trim_ascii_start().first();
    (is_known && !next.is_some_and(|b| b":=.,;)".contains(b))).then_some(after)
}

/// Returns true if a statement starts with a condition.
fn is_conditional(statement: &[u8]) -> bool {
    after_word(statement).is_some()
}

/// Returns true if a line is the head of a conditional statement whose body is below it: `if (a)`,
/// and not `if (a) b()`.
fn is_head(line: &[u8]) -> bool {
    let Some(after) = after_word(line) else {
        return false;
    };
    let mut depth = 0u32;
    for (i, byte) in after.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && *byte == b')' {
            return after[i + 1..].trim_ascii().is_empty();
        }
    }
    false
}

/// Replaces all bytes but line ends by blanks.
fn blank(text: &mut [u8]) {
    for byte in text.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::{ReadText, has_conditions, lexer};

    #[test]
    fn a_text_whose_literals_the_lexer_does_not_know_has_no_conditions() {
        for (path, text) in [
            ("Jenkinsfile.ps1", ""),
            ("Jenkinsfile.py", ""),
            ("Dockerfile.js", ""),
            ("a.rb", "X = %q(if insecure {)"),
            ("a.pl", "m/if insecure {/"),
            ("a.groovy", "/if (insecure) {\"/"),
            ("a.php", "<p>if (insecure) {</p><?php\n"),
            ("a.php", "<?php\n?>if (insecure) {<?php\n"),
            ("a.php", "<?php\n$a = <<<E\nif (insecure) {\nE;\n"),
        ] {
            assert!(!has_conditions(path.as_bytes(), text.as_bytes()), "{path}");
        }
        assert!(has_conditions(b"a.php", b"<?php\nif ($a) {\n"));
        assert!(has_conditions(b"a.ts", b""));
    }

    #[test]
    fn names_and_statements_that_have_ended_are_not_conditions() {
        for (path, text) in [
            ("a.js", "const o = { if: insecure, HERE };"),
            ("a.js", "let when = \"insecure\", o = { HERE };"),
            ("a.js", "promise.case(\"tlsVerify\", () => { HERE })"),
            ("a.js", "function guard(verify) { HERE }"),
            ("a.kt", "class A(val switch: Insecure) { HERE }"),
            ("a.js", "if (user.verify) log()\nHERE"),
            ("a.py", "case = insecure; HERE"),
            ("a.py", "y = 1 if verify else 0; HERE"),
            ("a.py", "x = [v for v in y if verify] and HERE"),
        ] {
            assert_eq!(conditions(path, text), "", "{path}: {text}");
        }
        assert_eq!(
            conditions("a.js", "if (user.verify)\n  HERE"),
            "if (user.verify)"
        );
        assert_eq!(
            conditions("a.go", "if a {\n} else if skip {\n\tHERE\n}"),
            "else if skip"
        );
    }

    fn conditions(path: &str, text: &str) -> String {
        let at = text.find("HERE").unwrap();
        let all = ReadText::new(path.as_bytes(), text.as_bytes()).around(path.as_bytes(), at);
        let all: Vec<_> = all
            .iter()
            .map(|c| String::from_utf8_lossy(c).trim().to_owned())
            .collect();
        all.join(" | ")
    }

    #[test]
    fn conditions_of_open_blocks_count_and_those_of_ended_blocks_and_comments_do_not() {
        for (path, text, expected) in [
            (
                "a.go",
                "if c.Skip {\n\tf(func() {\n\t\tHERE\n\t})\n}",
                "if c.Skip",
            ),
            ("a.go", "if c.Skip {\n}\nHERE", ""),
            ("a.go", "// if skip {\nHERE", ""),
            ("a.go", "x := \"if skip {\"\nHERE", ""),
            (
                "a.go",
                "switch v {\ncase \"skip\":\n\tHERE\n}",
                "case \"skip\": | switch v",
            ),
            (
                "a.go",
                "switch v {\ncase 1:\n\tx()\ncase 2:\n\tHERE\n}",
                "case 2: | switch v",
            ),
            (
                "a.php",
                "<?php\nif (! $s->verify)\n{\n  HERE\n}",
                "if (! $s->verify)",
            ),
            ("a.php", "<?php\nif ($s->verify) HERE", "if ($s->verify)"),
            (
                "a.ts",
                "const t = a ===\n  'x'\n  ? { HERE } : {};",
                "const t = a ===\n  'x'\n  ?",
            ),
            ("a.py", "if skip:\n    a = 1\n    HERE", "if skip:"),
            ("a.py", "if skip:\n    pass\nHERE", ""),
            ("a.py", "if check:\n    pass\nelse:\n    HERE", "if check:"),
            ("a.py", "# if skip:\n    HERE", ""),
        ] {
            assert!(lexer::has_one_syntax(path.as_bytes()), "{path}");
            assert_eq!(conditions(path, text), expected, "{path}: {text}");
        }
    }
}
