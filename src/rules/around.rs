//! Checks of the text around the line with the literal of a structural rule: most files need no parser then.

use std::collections::HashSet;

/// Bytes before and after the line that the checks read.
const WINDOW: usize = 3 << 10;
/// The same for definitions, which stand farther apart.
const FAR: usize = 32 << 10;

/// A line, and the text before and after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around<'a> {
    pub(super) before: &'a [u8],
    pub(super) line: &'a [u8],
    /// Starts with the line end.
    pub(super) after: &'a [u8],
}

/// Returns true if the text around a literal can have a match.
type Check = fn(&Around<'_>) -> bool;

/// The checks by their names.
const CHECKS: &[(&str, Check)] = &[
    // A key of the line is a key of a later line at the same depth, or once more on the line.
    ("key-repeated", key_is_repeated),
    // The line ends the block, and there is code of the block below.
    ("code-after", has_code_after),
    // What the line defines is defined once more.
    ("definition-repeated", definition_is_repeated),
    // A string of the line has a placeholder with the name of a variable.
    ("placeholder-known", has_known_placeholder),
    // The line passes a function by the name of a local definition.
    ("passes-local-function", passes_local_function),
    // The line declares a constant, and a later line starts with its name and an assignment.
    ("constant-assigned", constant_is_assigned),
];

/// Returns true if a check has that name.
pub(super) fn is_known(name: &str) -> bool {
    CHECKS.iter().any(|(known, _)| *known == name)
}

/// Runs the check of that name; `None`: it has another kind.
pub(super) fn passes(name: &str, around: &Around<'_>) -> Option<bool> {
    CHECKS.iter().find(|(known, _)| *known == name).map(|(_, check)| check(around))
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

fn indentation(line: &[u8]) -> &[u8] {
    let end = line.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(line.len());
    &line[..end]
}

/// Returns the start of a text, at most so many bytes of it.
fn head(text: &[u8], length: usize) -> &[u8] {
    &text[..text.len().min(length)]
}

/// Returns the end of a text, at most so many bytes of it.
fn tail(text: &[u8], length: usize) -> &[u8] {
    &text[text.len().saturating_sub(length)..]
}

/// Returns the length of the key at the start of a text, if the text starts with a key and what follows a key.
fn key(text: &[u8]) -> Option<usize> {
    let (open, rest) = match text.first()? {
        b'"' | b'\'' => (1, &text[1..]),
        b':' => (1, &text[1..]),
        _ => (0, text),
    };
    let is_quoted = open == 1 && text[0] != b':';
    let is_part = |b: &u8| is_word(*b) || is_quoted && matches!(b, b'-' | b'.' | b'/' | b' ' | b':');
    let length = rest.iter().position(|b| !is_part(b)).filter(|length| *length > 0)?;
    let end = open + length + usize::from(is_quoted);
    if is_quoted && rest.get(length) != text.first() {
        return None;
    }
    let after = text.get(end..)?.trim_ascii_start();
    let is_key = after.starts_with(b"=>") || after.starts_with(b":") && !after.starts_with(b"::");
    is_key.then_some(end)
}

fn key_is_repeated(around: &Around<'_>) -> bool {
    let line = around.line;
    let indent = indentation(line).len();
    let starts =
        (indent..line.len()).filter(|at| *at == indent || matches!(line[at - 1], b' ' | b'{' | b'[' | b',' | b'('));
    let mut seen: HashSet<&[u8]> = HashSet::new();
    for at in starts {
        let Some(length) = key(&line[at..]) else { continue };
        if !seen.insert(&line[at..at + length]) {
            return true;
        }
    }
    let Some(length) = key(&line[indent..]) else { return false };
    let needle = [b"\n", &line[..indent + length]].concat();
    let after = head(around.after, WINDOW);
    let ends_key = |rest: &[u8]| rest.starts_with(b"=>") || rest.starts_with(b":");
    memchr::memmem::find_iter(after, &needle).any(|at| ends_key(after[at + needle.len()..].trim_ascii_start()))
}

/// Words that start a branch of the statement that has the block.
const BRANCHES: [&[u8]; 14] = [
    b"case", b"default", b"else", b"elif", b"elsif", b"elseif", b"except", b"finally", b"when", b"rescue", b"ensure",
    b"end", b"in", b"catch",
];

fn has_code_after(around: &Around<'_>) -> bool {
    let indent = indentation(around.line);
    for line in head(around.after, WINDOW).split(|b| *b == b'\n').skip(1) {
        let own = indentation(line);
        let text = line[own.len()..].trim_ascii_end();
        let is_comment = text.starts_with(b"//") || text.starts_with(b"#") && !text.starts_with(b"#[");
        if text.is_empty() || is_comment || own.len() > indent.len() || own == indent && b")]}\"'".contains(&text[0]) {
            // The end of the statement, unless it ends the block.
            if text.first() == Some(&b'}') && own == indent && !text.starts_with(b"});") && !text.starts_with(b"};") {
                return false;
            }
            continue;
        }
        let word = &text[..text.iter().position(|b| !is_word(*b)).unwrap_or(text.len())];
        return own == indent && !BRANCHES.contains(&word);
    }
    false
}

fn definition_is_repeated(around: &Around<'_>) -> bool {
    let line = around.line.trim_ascii_end();
    let start = &line[..memchr::memchr(b'(', line).unwrap_or(line.len())];
    if indentation(start).len() == start.len() {
        return false;
    }
    let needle = [b"\n", start].concat();
    let is_same =
        |text: &[u8], at: usize| matches!(text.get(at + needle.len()), None | Some(b'(' | b'\n' | b'\r' | b' '));
    let has = |text: &[u8]| memchr::memmem::find_iter(text, &needle).any(|at| is_same(text, at));
    has(head(around.after, FAR)) || has(tail(around.before, FAR))
}

/// Returns true if a line starts a function: the search for variables ends there.
fn starts_function(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    let has = |word: &[u8]| memchr::memmem::find(text, word).is_some();
    let is_control = [&b"if"[..], b"for", b"while", b"switch", b"}", b"catch", b"else", b"do", b"try"];
    let is_method = text.ends_with(b"{") && has(b"(") && !is_control.iter().any(|word| text.starts_with(word));
    has(b"function") || has(b"=> {") || has(b"def ") || is_method
}

/// Returns the lines above a line, up to and including the line that starts the function around it.
fn function_above<'a>(around: &Around<'a>) -> &'a [u8] {
    let before = tail(around.before, WINDOW);
    let depth = indentation(around.line).len();
    let mut end = before.len().saturating_sub(1);
    while end > 0 {
        let start = memchr::memrchr(b'\n', &before[..end]).map_or(0, |at| at + 1);
        let line = &before[start..end];
        if indentation(line).len() < depth && !line.trim_ascii().is_empty() && starts_function(line) {
            return &before[start..];
        }
        end = start.saturating_sub(1);
    }
    b""
}

/// Returns true if a text declares a variable or a parameter of that name.
fn declares(text: &[u8], name: &[u8]) -> bool {
    memchr::memmem::find_iter(text, name).any(|at| is_declaration(text, at, name.len()))
}

/// Returns true if the name at a place of a text is a variable or a parameter that the text declares there.
fn is_declaration(text: &[u8], at: usize, length: usize) -> bool {
    let before = text[..at].last().copied().unwrap_or(b' ');
    let after = &text[at + length..];
    let next = after.trim_ascii_start();
    if is_word(before) || b".\"'{$#".contains(&before) || after.first().is_some_and(|b| is_word(*b)) {
        return false;
    }
    match next.first() {
        Some(b'=') => next.get(1) != Some(&b'='),
        Some(b',' | b')' | b':' | b'|' | b'?') => matches!(before, b'(' | b' ' | b'|' | b','),
        _ => next.starts_with(b"in ") || next.starts_with(b"of "),
    }
}

/// Returns the name in the braces that open before a text.
fn placeholder(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii_start();
    let name = &text[..text.iter().position(|b| !is_word(*b)).unwrap_or(text.len())];
    let is_closed = text.get(name.len()).is_some_and(|b| b"}.[(".contains(b));
    (is_closed && name.first().is_some_and(|b| !b.is_ascii_digit())).then_some(name)
}

fn has_known_placeholder(around: &Around<'_>) -> bool {
    let names: Vec<_> =
        memchr::memchr_iter(b'{', around.line).filter_map(|at| placeholder(&around.line[at + 1..])).collect();
    let function: &[u8] = if names.is_empty() { b"" } else { function_above(around) };
    names.iter().any(|name| declares(function, name))
}

fn passes_local_function(around: &Around<'_>) -> bool {
    let line = around.line.trim_ascii_end();
    let Some(line) = line.strip_suffix(b")") else { return false };
    let start = line.iter().rposition(|b| !is_word(*b)).map_or(0, |at| at + 1);
    let needle = [b"def ", &line[start..], b"("].concat();
    start < line.len() && memchr::memmem::find(tail(around.before, WINDOW), &needle).is_some()
}

fn constant_is_assigned(around: &Around<'_>) -> bool {
    let Some(rest) = around.line.trim_ascii_start().strip_prefix(b"const ") else { return false };
    let name = &rest[..rest.iter().position(|b| !is_word(*b)).unwrap_or(rest.len())];
    !name.is_empty() && head(around.after, WINDOW).split(|b| *b == b'\n').any(|line| assigns(line, name))
}

/// Returns true if a line starts with a name and an assignment to it.
fn assigns(line: &[u8], name: &[u8]) -> bool {
    let Some(rest) = line.trim_ascii_start().strip_prefix(name) else { return false };
    let rest = rest.trim_ascii_start();
    let is_plain = rest.starts_with(b"=") && !rest.starts_with(b"==") && !rest.starts_with(b"=>");
    let is_compound = rest.get(1) == Some(&b'=') && b"+-*/%|&^".contains(&rest[0]);
    is_plain || is_compound || rest.starts_with(b"++") || rest.starts_with(b"--")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str) -> bool {
        let at = text.find('>').unwrap();
        let (before, rest) = (&text.as_bytes()[..at], &text.as_bytes()[at + 1..]);
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        passes(name, &Around { before, line: &rest[..end], after: &rest[end..] }).unwrap()
    }

    #[test]
    fn keys_are_repeated_at_the_same_depth() {
        assert!(check("key-repeated", ">  'a': 1,\n  'b': 2,\n  'a': 3,"));
        assert!(check("key-repeated", ">  a: 1,\n  b: 2,\n  a: 3,"));
        assert!(check("key-repeated", ">x = { a: 1, b: 2, a: 3 }"));
        assert!(!check("key-repeated", ">  a: 1,\n    a: 2,\n  b: 3,"));
        assert!(!check("key-repeated", ">x = { a: 1, b: { c: 2 } }"));
        assert!(!check("key-repeated", ">  url: 'a:b',\n  urls: 1"));
    }

    #[test]
    fn code_follows_at_the_same_depth() {
        assert!(check("code-after", ">    return a\n    b()"));
        assert!(check("code-after", ">    return f(\n      a\n    );\n    b();\n  }"));
        assert!(!check("code-after", ">    return a\n  b()"));
        assert!(!check("code-after", ">    return a;\n  }\n  b();"));
        assert!(!check("code-after", ">    return a;\n    case 1:"));
    }

    #[test]
    fn definitions_are_repeated() {
        assert!(check("definition-repeated", ">def f(a):\n    pass\n\ndef f(b):\n    pass"));
        assert!(check("definition-repeated", "\n  def f\n  end\n>  def f\n  end"));
        assert!(!check("definition-repeated", ">def f(a):\n    pass\n\ndef fg(b):\n    pass"));
    }

    #[test]
    fn placeholders_are_known_in_their_function() {
        assert!(check("placeholder-known", "function f(user) {\n>  return 'a ${user}';"));
        assert!(check("placeholder-known", "def f(self, user):\n    if a:\n>        raise E('no {user.name}')"));
        assert!(!check("placeholder-known", "function f(user) {\n  a();\n}\nfunction g() {\n>  return 'a ${user}';"));
        assert!(!check("placeholder-known", "function f(user) {\n>  return 'a ${name}';"));
    }

    #[test]
    fn local_functions_are_passed() {
        assert!(check("passes-local-function", "def f(x):\n    pass\n>a.append(f)"));
        assert!(!check("passes-local-function", "def f(x):\n    pass\n>a.append(g)"));
    }
}
