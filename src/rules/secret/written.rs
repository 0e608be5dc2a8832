//! The form in which a quoted value and its name are written: assigned, requested, or one of many.

use super::Candidate;
use super::name::split;

/// The form that the characters around a quoted value show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `name = "value"`, `setName("value")`.
    Given,
    /// `("name", "value")`.
    Pair,
    /// `("name", "value", "other")`, outside of a call: either names or values.
    Listed,
    /// `names.get("value")`: the name of the requested object.
    Asked,
}

/// Returns the form that the characters around a quoted value show.
pub(super) fn form(c: &Candidate<'_>) -> Form {
    let Some((before, quote)) = before_quote(c.head()) else { return Form::Given };
    if let Some(callee) = before.strip_suffix(b"(") {
        return if asks(callee) { Form::Asked } else { Form::Given };
    }
    let Some(first) = before.strip_suffix(b",").map(<[u8]>::trim_ascii_end) else { return Form::Given };
    let Some(opened) = before_string(first) else { return Form::Given };
    // More strings before or after it.
    let behind = c.tail().strip_prefix(&[quote][..]).unwrap_or(c.tail()).trim_ascii_start();
    let goes_on = behind.strip_prefix(b",").map(<[u8]>::trim_ascii);
    let next_is_string = goes_on.is_some_and(|n| matches!(n.first(), Some(b'"' | b'\'' | b'`')));
    let listed = match opened.last() {
        // The line continues from another one: the string is one of many, unless the pair ends
        // there.
        None => goes_on.is_some(),
        Some(b',') => !in_call(opened),
        Some(b'[' | b'{' | b'(') => next_is_string && !in_call(opened),
        _ => false,
    };
    if listed { Form::Listed } else { Form::Pair }
}

/// Returns the text before the quote that opens the value, and the quote. A prefix (`b"…"`, `@"…"`)
/// and an escape (`\\"…\\"`) belong to the quote.
fn before_quote(head: &[u8]) -> Option<(&[u8], u8)> {
    let (quote, rest) = head.split_last()?;
    let rest = rest.strip_suffix(b"\\").unwrap_or(rest);
    let cut = rest.len() - rest.iter().rev().take(2).take_while(|b| b.is_ascii_alphabetic() || **b == b'@').count();
    Some((rest[..cut].trim_ascii_end(), *quote))
}

/// Returns the text before the string at the end of a text. `None`: the text does not end with a
/// string.
fn before_string(text: &[u8]) -> Option<&[u8]> {
    let (quote, rest) = text.split_last().filter(|(q, _)| matches!(q, b'"' | b'\'' | b'`'))?;
    let open = memchr::memrchr(*quote, rest)?;
    Some(rest[..open].trim_ascii_end())
}

/// Returns true if a text ends within the arguments of a call: a name precedes the innermost open
/// bracket.
fn in_call(text: &[u8]) -> bool {
    let mut depth = 0usize;
    for (i, b) in text.iter().enumerate().rev().take(160) {
        match b {
            b')' | b']' | b'}' => depth += 1,
            b'(' | b'[' | b'{' if depth > 0 => depth -= 1,
            b'(' => return i > 0 && (text[i - 1].is_ascii_alphanumeric() || matches!(text[i - 1], b'_' | b'!' | b'>')),
            b'[' | b'{' => return false,
            _ => {}
        }
    }
    false
}

/// Returns true if a function with this name takes the name of its result: `secrets.Get`, `getEnv`.
fn asks(callee: &[u8]) -> bool {
    #[rustfmt::skip]
    const VERBS: &[&str] = &[
        "get", "fetch", "read", "load", "find", "lookup", "retrieve", "resolve", "has", "exists", "delete", "remove",
        "describe", "env", "getenv", "getproperty", "getstring",
    ];
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let start = callee.iter().rposition(|b| !word(b)).map_or(0, |i| i + 1);
    split(&callee[start..]).first().is_some_and(|w| VERBS.contains(&w.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Form {
        let at = line.find("VALUE").expect("the line holds the value");
        form(&Candidate { secret: b"VALUE", line: line.as_bytes(), at, after: b"", path: b"a.py" })
    }

    #[test]
    fn a_value_is_given_asked_for_or_one_of_many() {
        for (line, expected) in [
            ("password = \"VALUE\"", Form::Given),
            ("password: 'VALUE',", Form::Given),
            ("opts.SetPassword(\"VALUE\");", Form::Given),
            ("password = b'VALUE'", Form::Given),
            ("x.password(\\\"VALUE\\\")", Form::Given),
            ("connect(user, 'VALUE')", Form::Given),
            ("secret.get(\"VALUE\")", Form::Asked),
            ("token := secrets.Get(\"VALUE\")", Form::Asked),
            ("password = getEnv('VALUE')", Form::Asked),
            ("define('DB_PASSWORD', 'VALUE');", Form::Pair),
            ("config.set('database', 'password', 'VALUE')", Form::Pair),
            ("put(\"password\", \"VALUE\", \"UTF-8\")", Form::Pair),
            ("vec![(\"password\", \"VALUE\"), (\"a\", \"b\")]", Form::Pair),
            ("  \"password\", \"VALUE\")", Form::Pair),
            ("ignored = ('pass', 'VALUE', 'port')", Form::Listed),
            ("ignored = ['a', 'pass', 'VALUE']", Form::Listed),
            ("    'pass', 'VALUE',", Form::Listed),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
