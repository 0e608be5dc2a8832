//! The words of a text, and the use of a word as the bytes around it show it.

use super::{FlowLanguage, is_word};
use std::borrow::Cow;

/// Words that are called without parentheses.
const STATEMENTS: [&str; 9] = [
    "die",
    "echo",
    "exit",
    "include",
    "include_once",
    "print",
    "require",
    "require_once",
    "return",
];

/// Bytes before a word that are searched, at most, because hostile lines can be long.
const MOST_BEFORE: usize = 1000;

/// A word of a text, and the bytes around it.
#[derive(Clone, Copy)]
pub(super) struct CodeWord<'t> {
    pub(super) text: &'t str,
    /// The text that contains the word, and the range of the word in it.
    pub(super) whole: &'t [u8],
    pub(super) start: usize,
    pub(super) end: usize,
}

impl<'t> CodeWord<'t> {
    pub(super) fn before(&self) -> Option<u8> {
        self.start.checked_sub(1).map(|i| self.whole[i])
    }

    /// Returns the next byte that is not a blank.
    pub(super) fn after(&self) -> Option<u8> {
        self.whole[self.end..]
            .iter()
            .copied()
            .find(|b| !matches!(b, b' ' | b'\t'))
    }

    /// Returns true if the word is the name of a member.
    pub(super) fn is_member(&self) -> bool {
        matches!(self.before(), Some(b'.' | b'>' | b':' | b'?'))
    }

    /// Returns the name before the dot of a member, if there is one: `b` of `a.b.word`. `Some("")`:
    /// the member of another expression.
    pub(super) fn receiver(&self) -> Option<&'t [u8]> {
        let before = self.whole[..self.start].strip_suffix(b".")?;
        let before = before.strip_suffix(b"?").unwrap_or(before).trim_ascii_end();
        let len = before.iter().rev().take_while(|b| is_word(**b)).count();
        Some(&before[before.len() - len..])
    }

    /// Returns true if a name is shortly before the word.
    pub(super) fn follows(&self, name: &[u8]) -> bool {
        let before = &self.whole[self.start.saturating_sub(MOST_BEFORE)..self.start];
        memchr::memmem::find(before, name).is_some()
    }

    /// Returns true if the line of the word is a comment.
    pub(super) fn is_in_comment(&self, language: FlowLanguage) -> bool {
        let mark: &[u8] = if matches!(language, FlowLanguage::Python | FlowLanguage::Ruby) {
            b"#"
        } else {
            b"//"
        };
        let before = &self.whole[self.start.saturating_sub(MOST_BEFORE)..self.start];
        let line = match memchr::memrchr2(b'\n', b'\r', before) {
            Some(at) => &before[at + 1..],
            None if self.start <= MOST_BEFORE => before,
            None => return false,
        };
        line.trim_ascii_start().starts_with(mark)
    }

    /// Returns true if the word may be called at this position.
    pub(super) fn is_called(&self, language: FlowLanguage) -> bool {
        let is_called = match language {
            FlowLanguage::Ruby | FlowLanguage::Cpp => true,
            FlowLanguage::Python => matches!(self.next(), None | Some(b'(' | b'\\' | b'"' | b'\'')),
            // The last word of an import is a call of the tables: `_ "net/http/pprof"`.
            FlowLanguage::Go => matches!(self.next(), None | Some(b'(' | b'{' | b'[' | b'"')),
            FlowLanguage::Java => matches!(self.next(), None | Some(b'(' | b'<')),
            FlowLanguage::JavaScript => matches!(self.next(), None | Some(b'(' | b'`' | b'?')),
            FlowLanguage::TypeScript | FlowLanguage::Tsx => {
                matches!(self.next(), None | Some(b'(' | b'`' | b'?' | b'<' | b'!'))
            }
            FlowLanguage::C => matches!(self.next(), None | Some(b'(' | b'\\')),
            FlowLanguage::Kotlin | FlowLanguage::Php | FlowLanguage::CSharp => {
                matches!(
                    self.next(),
                    None | Some(b'\\' | b'(' | b'<' | b'{' | b'[' | b'!' | b'?' | b'"' | b'\'')
                )
            }
        };
        is_called && !self.is_defined()
            || is_indirect(self.whole, self.start, self.end)
            || STATEMENTS.contains(&self.text)
    }

    /// Returns true if the word is the name in a function definition.
    fn is_defined(&self) -> bool {
        let before = self.whole[..self.start].trim_ascii_end();
        before.len() < self.start
            && ["def", "fun", "func", "function"].iter().any(|word| {
                let rest = before.strip_suffix(word.as_bytes());
                rest.is_some_and(|rest| rest.last().is_none_or(|b| !is_word(*b)))
            })
    }

    /// Returns true if this position may create an object of the class that the word names.
    pub(super) fn is_made(&self, language: FlowLanguage) -> bool {
        let path = self.whole[..self.start]
            .iter()
            .rev()
            .take_while(|b| is_word(**b) || matches!(b, b'.' | b'\\'))
            .count();
        self.is_called(language)
            || self.whole[..self.start - path]
                .trim_ascii_end()
                .ends_with(b"new")
    }

    /// Returns the next byte after blanks, line ends and comments. `None`: the text ends there, or
    /// the search limit is reached.
    fn next(&self) -> Option<u8> {
        /// Bytes that are searched.
        const MOST: usize = 4096;
        let mut at = self.end;
        let limit = self.whole.len().min(self.end + MOST);
        while at < limit {
            let rest = &self.whole[at..limit];
            at += match rest {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0c, ..] => 1,
                [b'/', b'*', ..] => memchr::memmem::find(rest, b"*/").map_or(rest.len(), |i| i + 2),
                [b'/', b'/', ..] | [b'#', ..] => {
                    memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len())
                }
                [byte, ..] => return Some(*byte),
                [] => return None,
            };
        }
        None
    }

    /// Returns the text after the opening parenthesis of the call of this word.
    pub(super) fn arguments(&self) -> Option<&'t [u8]> {
        let rest = self.whole[self.end..].trim_ascii_start();
        rest.strip_prefix(b"(").map(<[u8]>::trim_ascii_start)
    }

    /// Returns the first argument of the call of this word if the argument is a single literal:
    /// `settings.json` of `open("settings.json", mode)`.
    pub(super) fn literal(&self, language: FlowLanguage) -> Option<Cow<'t, str>> {
        let arguments = self.arguments()?;
        let (quoted, is_raw) = match arguments
            .strip_prefix(b"r")
            .filter(|_| language == FlowLanguage::Python)
        {
            Some(quoted) => (quoted, true),
            None => (arguments, false),
        };
        let (value, rest) = match quoted.first()? {
            quote @ (b'"' | b'\'') => quoted_literal(quoted, *quote, language, is_raw)?,
            b'0'..=b'9' if !is_raw => {
                let end = quoted.iter().take_while(|b| b.is_ascii_digit()).count();
                (String::from_utf8_lossy(&quoted[..end]), &quoted[end..])
            }
            _ => return None,
        };
        matches!(rest.trim_ascii_start().first(), Some(b',' | b')')).then_some(value)
    }
}

/// Returns the value of a quoted literal at the start of a text, and the text after it. `None`: the
/// literal spans lines, has an escape other than that of a backslash, or can contain a value.
fn quoted_literal(
    text: &[u8],
    quote: u8,
    language: FlowLanguage,
    is_raw: bool,
) -> Option<(Cow<'_, str>, &[u8])> {
    let has_values = match language {
        FlowLanguage::Kotlin => true,
        FlowLanguage::Php | FlowLanguage::Ruby => quote == b'"',
        _ => false,
    };
    let (mut at, mut has_escape) = (1, false);
    loop {
        match *text.get(at)? {
            b'\n' | b'\r' => return None,
            b'$' | b'#' | b'{' if has_values => return None,
            b'\\' if !is_raw && text.get(at + 1) == Some(&b'\\') => {
                has_escape = true;
                at += 1;
            }
            b'\\' if !is_raw || text.get(at + 1) == Some(&quote) => return None,
            byte if byte == quote => break,
            _ => {}
        }
        at += 1;
    }
    // `""` may start a literal of several lines.
    if at == 1 && text.get(2) == Some(&quote) {
        return None;
    }
    let value = String::from_utf8_lossy(&text[1..at]);
    let value = if has_escape {
        Cow::Owned(value.replace("\\\\", "\\"))
    } else {
        value
    };
    Some((value, &text[at + 1..]))
}

/// Returns the words of a text. A back-tick is also a word.
pub(super) fn words(text: &[u8]) -> impl Iterator<Item = CodeWord<'_>> {
    words_where(text, |_, _| true)
}

/// Returns the words of a text that pass a test of their bytes and of the text after them.
pub(super) fn words_where<'t>(
    text: &'t [u8],
    is_wanted: impl Fn(&[u8], &[u8]) -> bool,
) -> impl Iterator<Item = CodeWord<'t>> {
    let whole = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < whole.len() {
            let start = at;
            let len = whole[start..].iter().take_while(|b| is_word(**b)).count();
            at += len.max(1);
            let end = if len == 0 && whole[start] == b'`' {
                start + 1
            } else {
                start + len
            };
            let bytes = &whole[start..end];
            if !bytes.is_empty()
                && is_wanted(bytes, &whole[end..])
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                return Some(CodeWord {
                    text,
                    whole,
                    start,
                    end,
                });
            }
        }
        None
    })
}

/// Returns true if a word is called by another name, or through the function that receives it:
/// `system as run`, `run = os.system`, `{ exec: run }`, `exec.call(…)`, `partial(os.system, …)`,
/// `Reflect.apply(cp.exec, …)`, `@app.route`, `[Route]`.
pub(super) fn is_indirect(text: &[u8], start: usize, end: usize) -> bool {
    let near = &text[start.saturating_sub(MOST_BEFORE)..start];
    let path = near
        .iter()
        .rev()
        .take_while(|b| is_word(**b) || **b == b'.')
        .count();
    let before = text[..start - path].trim_ascii_end();
    if matches!(before.last(), Some(b'@' | b'[')) {
        return true;
    }
    let rest = text[end..].trim_ascii_start();
    match rest.first() {
        Some(b'a') if rest.starts_with(b"as ") => true,
        Some(b'.') => rest.starts_with(b".call(") || rest.starts_with(b".apply("),
        // `const { exec: run } = require("child_process")`.
        Some(b':') => matches!(before.last(), Some(b'{' | b',')),
        Some(b',' | b')') => before.ends_with(b"partial(") || before.ends_with(b"Reflect.apply("),
        Some(b'(') => false,
        _ => {
            before.ends_with(b"=")
                && ![b"==", b"!=", b"<=", b">="]
                    .iter()
                    .any(|end| before.ends_with(*end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the word of a text that a preceding bar marks.
    fn marked(text: &str) -> CodeWord<'static> {
        let start = text.find('|').unwrap();
        let whole: &'static str = text.replacen('|', "", 1).leak();
        words(whole.as_bytes())
            .find(|word| word.start == start)
            .unwrap()
    }

    #[test]
    fn a_word_is_called_where_an_argument_list_or_another_name_follows() {
        for (language, text) in [
            (FlowLanguage::Python, "os.|system(x)"),
            (FlowLanguage::Python, "os.|system \\\n (x)"),
            (FlowLanguage::Python, "(os.|system  # why\n (x))"),
            (FlowLanguage::Python, "from os import |system as run"),
            (FlowLanguage::Python, "run = os.|system\nrun(x)"),
            (FlowLanguage::Python, "@app.|route\ndef f(): pass"),
            (FlowLanguage::Python, "partial(os.|system, x)"),
            (FlowLanguage::Python, "os.|system"),
            (FlowLanguage::JavaScript, "cp.|exec.call(null, x)"),
            (FlowLanguage::JavaScript, "|html`<p>${x}`"),
            (FlowLanguage::JavaScript, "cp.|exec /* why */ (x)"),
            (FlowLanguage::Go, "http.|Cookie{Name: n}"),
            (FlowLanguage::Php, "|echo $x;"),
        ] {
            assert!(marked(text).is_called(language), "{text}");
        }
        for (language, text) in [
            (FlowLanguage::Python, "name of the |file\nand more"),
            (FlowLanguage::Python, "def |open(self): pass"),
            (FlowLanguage::Kotlin, "override fun |newQuery(q: Q): Call"),
            (FlowLanguage::Go, "c.|Cookie = f.Cookie"),
            (FlowLanguage::JavaScript, "if (a.|exec == b) {}"),
        ] {
            assert!(!marked(text).is_called(language), "{text}");
        }
        assert!(marked("new vm.|Script;").is_made(FlowLanguage::JavaScript));
        assert!(!marked("vm.|Script;").is_made(FlowLanguage::JavaScript));
    }

    #[test]
    fn the_first_argument_is_a_literal_where_nothing_else_can_be_in_it() {
        fn literal(language: FlowLanguage, text: &str) -> Option<String> {
            marked(text).literal(language).map(Cow::into_owned)
        }
        for (language, text, value) in [
            (FlowLanguage::Python, "|open('a.json', m)", "a.json"),
            (FlowLanguage::Python, r"re.|compile(r'^(\d+)$')", r"^(\d+)$"),
            (
                FlowLanguage::Java,
                r#"Pattern.|compile("(\\w+)")"#,
                r"(\w+)",
            ),
            (FlowLanguage::Go, "exec.|Command(\n\"ls\",\n)", "ls"),
            (FlowLanguage::JavaScript, "|setTimeout(100)", "100"),
            (FlowLanguage::Php, "|system('ls $x')", "ls $x"),
        ] {
            assert_eq!(literal(language, text).as_deref(), Some(value), "{text}");
        }
        for (language, text) in [
            (FlowLanguage::Python, "|open('a' + b)"),
            (FlowLanguage::Python, "|open('a' 'b' % c)"),
            (FlowLanguage::Python, "|open('%s' % b)"),
            (FlowLanguage::Python, "|open('{}'.format(b))"),
            (FlowLanguage::Python, "|open(f'{b}')"),
            (FlowLanguage::Python, "|execute('''a''')"),
            (FlowLanguage::Python, r"|open('a\'' + b)"),
            (FlowLanguage::Kotlin, "|exec(\"ls $x\")"),
            (FlowLanguage::Php, "|system(\"ls $x\")"),
            (FlowLanguage::Ruby, "|system(\"ls #{x}\")"),
            (FlowLanguage::JavaScript, "|exec(`ls`)"),
            (FlowLanguage::Go, "|Command("),
        ] {
            assert_eq!(literal(language, text), None, "{text}");
        }
    }
}
