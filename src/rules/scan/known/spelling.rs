//! Code in one spelling, so that two texts of the same code are equal bytes.

use crate::rules::language::Languages;
use crate::rules::lexer::{Place, outline};
use std::ops::Range;

/// Languages in which white space around a bracket or an operator has no meaning.
const FREE: &[&str] = &[
    "python",
    "javascript",
    "typescript",
    "go",
    "java",
    "kotlin",
    "php",
    "rust",
    "c",
    "cpp",
    "csharp",
    "swift",
    "scala",
    "dart",
    "groovy",
    "objective-c",
];
/// Bytes of a number with separators of digits, at most.
const NUMBER_MAX: usize = 32;
/// Words that declare a variable, at the start of a statement.
const DECLARATIONS: &[&[u8]] = &[b"var ", b"let ", b"const ", b"val "];
/// Words before a condition in brackets that guards the rest of its line.
const GUARDS: &[&[u8]] = &[b"if(", b"for(", b"while(", b"foreach("];

/// A text and its comments and strings.
pub(super) struct Spelling<'t> {
    text: &'t [u8],
    /// Comments and strings, in order.
    outside: Vec<(Range<usize>, Place)>,
    is_free: bool,
}

/// A statement, divided from a condition at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DividedStatement {
    /// The conditions and loops before the statement, the outermost one first.
    pub(super) guards: Vec<Vec<u8>>,
    pub(super) code: Vec<u8>,
}

impl<'t> Spelling<'t> {
    /// Reads the comments and strings of a text. The path decides the language.
    pub(super) fn new(path: &[u8], text: &'t [u8]) -> Self {
        Self {
            text,
            outside: outline(path, text),
            is_free: Languages::of(path, b"").any_of(FREE),
        }
    }

    /// Returns true if white space around brackets and operators has no meaning.
    pub(super) fn is_free(&self) -> bool {
        self.is_free
    }

    /// Returns the comment or string that contains a byte.
    pub(super) fn outside_at(&self, at: usize) -> Option<&(Range<usize>, Place)> {
        let next = self.outside.partition_point(|(range, _)| range.end <= at);
        self.outside
            .get(next)
            .filter(|(range, _)| range.start <= at)
    }

    /// Returns the bytes of a part of the text that are neither in comments nor in strings.
    fn code_bytes(&self, part: Range<usize>) -> impl Iterator<Item = u8> {
        let mut at = part.start;
        std::iter::from_fn(move || {
            while let Some((range, _)) = self.outside_at(at) {
                at = range.end;
            }
            let byte = self.text.get(at).filter(|_| at < part.end);
            at += 1;
            byte.copied()
        })
    }

    /// Returns the brackets `(` and `[` of a part of the text that stay open, after the number that
    /// it closes for a text before it.
    pub(super) fn brackets(&self, part: Range<usize>) -> (usize, usize) {
        let (mut closed, mut open) = (0, 0);
        for byte in self.code_bytes(part) {
            match byte {
                b'(' | b'[' => open += 1,
                b')' | b']' if open > 0 => open -= 1,
                b')' | b']' => closed += 1,
                _ => {}
            }
        }
        (closed, open)
    }

    /// Returns the number of braces of a part of the text that stay open. `None`: it has no brace.
    pub(super) fn open_braces(&self, part: Range<usize>) -> Option<usize> {
        let mut braces = self
            .code_bytes(part)
            .filter(|b| matches!(b, b'{' | b'}'))
            .peekable();
        braces.peek()?;
        Some(braces.fold(0usize, |open, brace| match brace {
            b'{' => open + 1,
            _ => open.saturating_sub(1),
        }))
    }

    /// Returns a part of the text without comments, layout, separators that end a line, and the
    /// kind of quotes of strings in which both kinds mean the same.
    pub(super) fn of(&self, part: Range<usize>) -> Vec<u8> {
        let mut out = Vec::with_capacity(part.len());
        let mut at = part.start;
        let mut is_spaced = false;
        while at < part.end {
            match self.outside_at(at) {
                Some((range, Place::Comment)) => {
                    is_spaced = true;
                    at = range.end;
                }
                Some((range, _)) => {
                    let string = self.text.get(at..range.end.min(part.end));
                    self.append(&mut out, is_spaced, string.unwrap_or_default());
                    is_spaced = false;
                    at = range.end;
                }
                None => {
                    let byte = self.text.get(at..=at).unwrap_or_default();
                    if byte.is_empty() || byte[0].is_ascii_whitespace() {
                        is_spaced = true;
                    } else if byte == b"_" && self.is_in_number(at) {
                        // A separator of digits.
                    } else {
                        self.append(&mut out, is_spaced, byte);
                        is_spaced = false;
                    }
                    at += 1;
                }
            }
        }
        while matches!(out.last(), Some(b';' | b',')) {
            out.pop();
        }
        if self.is_free
            && let Some(rest) = DECLARATIONS.iter().find_map(|word| out.strip_prefix(*word))
        {
            return rest.to_vec();
        }
        out
    }

    /// Returns true if a byte is between the digits of a number.
    fn is_in_number(&self, at: usize) -> bool {
        let digit = |at: usize| self.text.get(at).is_some_and(u8::is_ascii_digit);
        let before = self.text[at.saturating_sub(NUMBER_MAX)..at].iter().rev();
        let len = before.take_while(|b| is_of_word(**b)).count();
        // The start of a longer word is not known.
        len > 0 && len < NUMBER_MAX && digit(at - len) && digit(at - 1) && digit(at + 1)
    }

    /// Appends a byte of code or a string.
    fn append(&self, out: &mut Vec<u8>, is_spaced: bool, token: &[u8]) {
        let (Some(first), last) = (token.first(), out.last().copied()) else {
            return;
        };
        if is_spaced
            && let Some(last) = last
            && (!self.is_free || is_of_word(last) && is_of_word(*first))
        {
            out.push(b' ');
        }
        let is_end = match first {
            b')' | b']' => out.last() == Some(&b','),
            b'}' => matches!(out.last(), Some(b',' | b';')),
            _ => false,
        };
        if is_end {
            out.pop();
        }
        // A variable or an escape can mean something in one kind of quotes only.
        let is_plain = !token
            .iter()
            .any(|b| matches!(b, b'$' | b'#' | b'`' | b'{' | b'\\'));
        if self.is_free && token == b">" && !is_spaced {
            unwrap_parameter(out);
        }
        let quotes = token.iter();
        out.extend(quotes.map(|b| if is_plain && *b == b'\'' { b'"' } else { *b }));
    }

    /// Divides a statement in the spelling of [`Spelling::of`] from conditions and loops at its
    /// start: `for (…) a();`, `for (…) { a(); }` and a loop whose body is on lines of its own are
    /// the same. Several statements without a block are not divided, because only the first of
    /// them depends on the condition.
    pub(super) fn divide(&self, statement: Vec<u8>) -> DividedStatement {
        let mut divided = DividedStatement {
            guards: Vec::new(),
            code: statement,
        };
        while self.is_free
            && let Some((guard, code)) = guard_and_rest(&divided.code)
        {
            divided.guards.push(guard);
            divided.code = code;
        }
        divided
    }
}

/// Removes the brackets of the only parameter of a function, if a text ends with `(name)=`.
fn unwrap_parameter(out: &mut Vec<u8>) {
    let Some(head) = out.strip_suffix(b")=") else {
        return;
    };
    let name = head.iter().rev().take_while(|b| is_of_word(**b)).count();
    let open = head.len() - name;
    let is_alone = name > 0
        && head[..open].ends_with(b"(")
        && !open
            .checked_sub(2)
            .is_some_and(|before| is_of_word(head[before]) || b")]".contains(&head[before]));
    if is_alone {
        out.remove(open - 1);
        out.remove(out.len() - 2);
    }
}

/// Returns the condition at the start of a statement, and the one statement or block behind it.
fn guard_and_rest(statement: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let word = GUARDS.iter().find(|word| statement.starts_with(word))?;
    let end = closing(statement, word.len() - 1)? + 1;
    let (guard, rest) = statement.split_at(end);
    let block = rest
        .first()
        .filter(|first| **first == b'{')
        .and_then(|_| closing(rest, 0));
    let code = match block {
        Some(end) if end + 1 == rest.len() => &rest[1..end],
        Some(_) => return None,
        // Python has its statement behind a colon.
        None if rest.is_empty() || matches!(rest[0], b'{' | b':') => return None,
        None if rest.iter().any(|b| matches!(b, b';' | b'{')) => return None,
        None => rest,
    };
    let code = code.strip_suffix(b";").unwrap_or(code);
    (!code.is_empty()).then(|| (guard.to_vec(), code.to_vec()))
}

/// Returns the position of the bracket that closes the one at `open`, outside of quotes.
pub(super) fn closing(code: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut at = open;
    while let Some(byte) = code.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(of), _) if of == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'' | b'`') => quote = Some(*byte),
            (None, b'(' | b'[' | b'{') => depth += 1,
            (None, b')' | b']' | b'}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns true for the bytes of names, numbers and words of other alphabets.
pub(super) fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::Spelling;

    /// Returns the one spelling of a file.
    fn spelled(path: &str, text: &str) -> String {
        let spelling = Spelling::new(path.as_bytes(), text.as_bytes());
        String::from_utf8(spelling.of(0..text.len())).unwrap()
    }

    #[test]
    fn layout_comments_and_separators_at_an_end_do_not_matter() {
        let wrapped = "f(\n    a, // first\n    'b' ,\n) ;\n";
        assert_eq!(spelled("a.js", wrapped), "f(a,\"b\")");
        assert_eq!(spelled("a.js", "const x = f( a,\"b\" )"), "x=f(a,\"b\")");
        assert_eq!(
            spelled("a.py", "return  x if y else 'a  b'"),
            "return x if y else\"a  b\""
        );
    }

    #[test]
    fn white_space_between_the_words_of_a_command_matters() {
        assert_eq!(spelled("a.sh", "rm  -rf $A /b # all"), "rm -rf $A /b");
        assert_ne!(
            spelled("a.sh", "rm -rf $A /b"),
            spelled("a.sh", "rm -rf $A/ b")
        );
    }

    #[test]
    fn quotes_that_decide_what_a_string_means_stay() {
        assert_ne!(spelled("a.php", "f('$a')"), spelled("a.php", "f(\"$a\")"));
        assert_eq!(spelled("a.php", "f('a')"), spelled("a.php", "f(\"a\")"));
    }

    #[test]
    fn a_condition_divides_from_one_statement_or_one_block_only() {
        let divided = |text: &str| {
            let spelling = Spelling::new(b"a.js", text.as_bytes());
            let divided = spelling.divide(spelling.of(0..text.len()));
            let code = String::from_utf8(divided.code).unwrap();
            (divided.guards.len(), code)
        };
        assert_eq!(divided("for (;;) a(b);"), (1, "a(b)".to_owned()));
        assert_eq!(divided("if (a(')')) { b(); }"), (1, "b()".to_owned()));
        assert_eq!(divided("if (a) { if (b) c() }"), (2, "c()".to_owned()));
        for whole in [
            "if (a) b(); c();",
            "if (a) { b(); } c();",
            "if (a) {",
            "if (a)",
        ] {
            assert_eq!(divided(whole).0, 0, "{whole}");
        }
    }
}
