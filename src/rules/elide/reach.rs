//! Which definitions of a file the data of a change can come from or go to, by their names and by the names that they assign.
//!
//! A definition is reached if it has the name of a changed one or of one that reaches that, such as a caller; if its own name is
//! in what is reached; or if it assigns a field or variable that what is reached has.

use super::{Definition, Languages, Parts};
use foldhash::fast::RandomState;
use std::collections::HashSet;
use std::ops::Range;

/// Steps from a definition to the next one by name. Each reads all definitions that are left, so a longer chain is parsed as a
/// whole.
const ROUNDS: usize = 16;
/// The most bytes of a list of names before `:=`.
const NAMES: usize = 200;

type Words<'t> = HashSet<&'t [u8], RandomState>;

/// Words that start the header of a statement.
const CONTROL: &[&[u8]] = &[
    b"if",
    b"for",
    b"while",
    b"switch",
    b"catch",
    b"match",
    b"when",
    b"with",
    b"do",
    b"else",
    b"try",
    b"finally",
    b"return",
    b"select",
    b"using",
    b"lock",
    b"foreach",
    b"synchronized",
    b"elif",
    b"except",
];
/// Words before a parenthesis that name nothing.
const KEYWORDS: &[&[u8]] = &[
    b"if",
    b"for",
    b"while",
    b"switch",
    b"catch",
    b"return",
    b"match",
    b"when",
    b"with",
    b"function",
    b"func",
    b"fun",
    b"fn",
    b"do",
    b"else",
    b"new",
    b"await",
    b"async",
    b"lambda",
    b"sizeof",
    b"defined",
];
/// Words that name the next one.
const NAMING: &[&[u8]] = &[
    b"class",
    b"interface",
    b"struct",
    b"enum",
    b"trait",
    b"impl",
    b"object",
    b"record",
    b"def",
    b"function",
    b"func",
    b"fun",
    b"fn",
    b"module",
    b"namespace",
    b"type",
    b"union",
    b"protocol",
    b"extension",
];
/// Languages in which a name alone, without `self.`, can be a field or a variable of the file.
const BARE: &[&str] = &["java", "kotlin", "csharp", "cpp", "c", "go", "javascript", "typescript", "rust"];

/// Returns the insides of the definitions that are not reached, in order.
pub(super) fn unreached(languages: Languages, text: &[u8], parts: Parts) -> Vec<Range<usize>> {
    let is_bare = languages.any_of(BARE);
    let mut left: Vec<Definition> = parts.left_out;
    // What reaches the change: it has the name of a changed definition, or of a field that one assigns.
    let mut named = Words::default();
    for changed in &parts.changed {
        named.extend(names(&text[changed.header.clone()]));
        if is_function(&text[changed.header.clone()]) {
            named.extend(assigned(text, changed, is_bare));
        }
    }
    let mut rounds = 0..ROUNDS;
    loop {
        let uses = |d: &Definition| words(&text[d.inside.clone()]).any(|w| named.contains(w.text));
        let (new, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(uses);
        left = rest;
        if new.is_empty() {
            break;
        }
        if rounds.next().is_none() {
            return Vec::new();
        }
        new.iter().for_each(|d| named.extend(names(&text[d.header.clone()])));
    }
    // What the change reaches. The text of a definition that is left out does not count, not even its name.
    let mut known = Words::default();
    let out: Vec<Range<usize>> = left.iter().map(|d| d.header.start..d.inside.end).collect();
    for part in super::complement(&out, text.len()) {
        known.extend(words(&text[part]).map(|w| w.text));
    }
    loop {
        let is_needed = |d: &Definition| {
            names(&text[d.header.clone()]).into_iter().any(|w| known.contains(w))
                || assigned(text, d, is_bare).any(|w| known.contains(w))
        };
        let (new, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_needed);
        left = rest;
        if new.is_empty() {
            return left.into_iter().map(|d| d.inside).collect();
        }
        if rounds.next().is_none() {
            return Vec::new();
        }
        new.iter().for_each(|d| known.extend(words(&text[d.header.start..d.inside.end]).map(|w| w.text)));
    }
}

/// Returns true if the text before a brace is that of a function: it has parameters.
fn is_function(header: &[u8]) -> bool {
    let is_control = words(header).next().is_some_and(|w| CONTROL.contains(&w.text));
    !is_control && words(header).any(|w| w.after == Some(b'('))
}

/// Returns the names that the text before a brace gives: behind a word such as `class`, before an assignment or a colon, or before
/// the first parenthesis, if that is not of a call with a function as its argument. Conditions and loops give none.
fn names(header: &[u8]) -> Vec<&[u8]> {
    let is_argument = header.trim_ascii_end().ends_with(b"=>") || memchr::memmem::find(header, b"function").is_some();
    let mut out = Vec::new();
    let mut is_named = false;
    for (i, word) in words(header).enumerate() {
        if i == 0 && CONTROL.contains(&word.text) {
            break;
        }
        let is_called = word.after == Some(b'(');
        let is_first = is_called && !is_argument && !KEYWORDS.contains(&word.text);
        if is_named || is_first || matches!(word.after, Some(b'=' | b':')) {
            out.push(word.text);
        }
        if is_first || (is_called && is_argument) {
            break;
        }
        is_named = NAMING.contains(&word.text) && !is_called;
    }
    out
}

/// Returns the fields and variables that a definition assigns. `is_bare`: a name that it does not declare can be one of them.
fn assigned<'t>(text: &'t [u8], of: &Definition, is_bare: bool) -> impl Iterator<Item = &'t [u8]> {
    let (header, code) = (&text[of.header.clone()], &text[of.inside.clone()]);
    let mut own = Words::default();
    if is_bare {
        own.extend(words(header).map(|w| w.text));
        own.extend(words(code).filter(|w| w.is_declared).map(|w| w.text));
    }
    let is_outer = move |w: &Word<'_>| w.is_field || (is_bare && w.is_first && !own.contains(w.text));
    words(code).filter(move |w| w.is_assigned && is_outer(w)).map(|w| w.text)
}

/// A name in code.
struct Word<'t> {
    text: &'t [u8],
    /// The next byte that is not a blank.
    after: Option<u8>,
    /// `=`, `+=` and the like follow.
    is_assigned: bool,
    /// A dot or an arrow stands before it, or the mark of a field in Ruby.
    is_field: bool,
    /// It is the first word of its statement.
    is_first: bool,
    /// A type or a word such as `var` stands before it, or `:=` follows it or the names behind it.
    is_declared: bool,
}

/// Words of statements, before a name that they do not declare.
const STATEMENTS: &[&[u8]] = &[
    b"return", b"throw", b"await", b"yield", b"typeof", b"case", b"in", b"of", b"delete", b"else", b"do", b"go",
    b"defer", b"goto", b"new", b"and", b"or", b"not", b"is",
];

/// Returns true if `:=` follows, or a comma and names with `:=` behind them.
fn is_before_declaration(rest: &[u8]) -> bool {
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b' ' | b'\t');
    let rest = &rest[..rest.len().min(NAMES)];
    let names = if rest.first() == Some(&b',') { rest.iter().take_while(|b| is_name(b)).count() } else { 0 };
    rest[names..].starts_with(b":=")
}

/// Returns the names of a text that start with a letter.
fn words(text: &[u8]) -> impl Iterator<Item = Word<'_>> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80;
    let mut at = 0;
    let mut last: Range<usize> = 0..0;
    std::iter::from_fn(move || {
        loop {
            at += text.get(at..)?.iter().position(is_word)?;
            let end = text[at..].iter().position(|b| !is_word(b)).map_or(text.len(), |i| at + i);
            let start = std::mem::replace(&mut at, end);
            if text[start].is_ascii_digit() {
                continue;
            }
            let rest = text[end..].trim_ascii_start();
            let before = text[..start].iter().rposition(|b| !matches!(b, b' ' | b'\t')).map(|i| text[i]);
            let operator = rest.iter().take_while(|b| b"+-*/|&^%.?:<>=~!".contains(b)).count();
            let is_compared =
                matches!(&rest[..operator], b"==" | b"===" | b"=>" | b"=~" | b":=" | b"<=" | b">=" | b"!=" | b"!==");
            let (before_it, previous) = (&text[last.end..start], &text[last.clone()]);
            let is_behind = !last.is_empty()
                && before_it.contains(&b' ')
                && before_it.iter().all(|b| matches!(b, b' ' | b'\t' | b'*' | b'&' | b'>' | b']' | b'?'));
            let is_typed = is_behind && !STATEMENTS.contains(&previous);
            last = start..end;
            return Some(Word {
                text: &text[start..end],
                is_declared: is_typed || is_before_declaration(rest),
                after: rest.first().copied(),
                is_assigned: !is_compared && rest[..operator].ends_with(b"="),
                is_field: matches!(before, Some(b'.' | b'@')) || text[..start].ends_with(b"->"),
                is_first: matches!(before, None | Some(b'\n' | b'\r' | b';' | b'{' | b'}' | b'(')),
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::kept_for_data;
    use super::*;

    /// Returns what is parsed of a file whose line with `HERE` is changed.
    fn parsed(path: &str, text: &str) -> String {
        let at = text.find("HERE").unwrap();
        let changed = at..at + 4;
        let languages = Languages::of(path.as_bytes(), b"");
        let ranges = kept_for_data(languages, text.as_bytes(), std::slice::from_ref(&changed)).unwrap();
        ranges.into_iter().map(|r| &text[r]).collect()
    }

    #[test]
    fn callers_callees_and_writers_of_fields_are_kept() {
        let rest = "x(1); ".repeat(100);
        let unrelated = format!("  unrelated() {{ {rest} }}\n").repeat(5);
        let text = format!(
            "class A {{\n  constructor(r) {{ this.path = r.query.p; {rest} }}\n{unrelated}  changed(v) {{\n    HERE(this.path);\n    \
             this.other = helper(v);\n  }}\n  reader() {{ exec(this.other); {rest} }}\n  caller(q) {{ this.changed(q); {rest} }}\n}}\n\
             function helper(v) {{ return inner(v); {rest} }}\nfunction inner(v) {{ return v; {rest} }}\n\
             function outer(q) {{ new A().caller(q); {rest} }}\nfunction apart(z) {{ {rest} }}\n"
        );
        let expected = text.replace(&unrelated, &"  unrelated() {}\n".repeat(5));
        let expected = expected.replace(&format!("apart(z) {{ {rest} }}"), "apart(z) {}");
        assert_eq!(parsed("a.js", &text), expected);
    }

    #[test]
    fn definitions_of_python_are_kept_by_name() {
        let rest = "    x(1)\n".repeat(60);
        let text = format!(
            "def helper(v):\n    a()\n{rest}\n\ndef apart(v):\n    a()\n{rest}\n\ndef other(v):\n    a()\n{rest}\n\n\
             def changed(v):\n    HERE(helper(v))\n\n\ndef caller(q):\n    a()\n    changed(q)\n{rest}"
        );
        let expected =
            text.replace(&format!("def apart(v):\n    a()\n{rest}\n\ndef other(v):\n    a()\n{rest}\n\n"), "");
        let found = parsed("a.py", &text);
        assert_eq!(
            found,
            expected.replace("def changed", "def apart(v):\n    a()\ndef other(v):\n    a()\ndef changed")
        );
    }

    #[test]
    fn a_header_gives_the_name_of_its_definition() {
        for (header, expected) in [
            ("func (c *Context) PDF(code int, data []byte) ", "PDF"),
            ("public static <T> List<T> of(T... items) throws IOException ", "of"),
            ("res.send = function send(body) ", "send send"),
            ("app.get('/x', (req, res) => ", ""),
            ("const run = async (a, b) => ", "run"),
            ("  load: function (a) ", "load"),
            ("class Box<T> extends Base ", "Box"),
            ("def save(self, name: str = None):\n", "save"),
            ("if (isValid(x)) ", ""),
            ("} else if (a(b)) ", ""),
        ] {
            let found: Vec<_> = names(header.as_bytes()).into_iter().map(String::from_utf8_lossy).collect();
            assert_eq!(found.join(" "), expected, "{header}");
        }
    }

    #[test]
    fn an_assignment_is_not_a_comparison_or_a_declaration() {
        let of = |code: &'static str, is_bare| {
            let whole = Definition { header: 0..0, inside: 0..code.len() };
            assigned(code.as_bytes(), &whole, is_bare)
                .map(|w| String::from_utf8_lossy(w).into_owned())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let code = "a = 1; b == 2; c := 3; int d = 4; e.f = 5; g += 6; h => 7; i <= 8; p->q .= 9";
        assert_eq!(of(code, true), "a f g q");
        assert_eq!(of(code, false), "f q");
        let code = "var a; List<A> b = c(); a = 1; b = 2; d = 3; e, err := f(); err = g(); return h; h = 4";
        assert_eq!(of(code, true), "d h");
    }
}
