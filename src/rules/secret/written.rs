//! The form in which a quoted value and its name are written: assigned, requested, or one of many.

use super::SecretCandidate;
use super::name::split;

/// The form that the characters around a quoted value show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
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
pub(super) fn form(c: &SecretCandidate<'_>) -> ValueForm {
    let Some((before, quote)) = before_quote(c.head()) else {
        return ValueForm::Given;
    };
    if let Some(callee) = before.strip_suffix(b"(") {
        return if asks(callee) {
            ValueForm::Asked
        } else {
            ValueForm::Given
        };
    }
    let Some(first) = before.strip_suffix(b",").map(<[u8]>::trim_ascii_end) else {
        return ValueForm::Given;
    };
    let Some(opened) = before_string(first) else {
        return ValueForm::Given;
    };
    // More strings before or after it.
    let behind = c
        .tail()
        .strip_prefix(&[quote][..])
        .unwrap_or(c.tail())
        .trim_ascii_start();
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
    if listed {
        ValueForm::Listed
    } else {
        ValueForm::Pair
    }
}

/// Returns the text before the quote that opens the value, and the quote. A prefix (`b"…"`, `@"…"`)
/// and an escape (`\\"…\\"`) belong to the quote.
fn before_quote(head: &[u8]) -> Option<(&[u8], u8)> {
    let (quote, rest) = head.split_last()?;
    let rest = rest.strip_suffix(b"\\").unwrap_or(rest);
    let cut = rest.len()
        - rest
            .iter()
            .rev()
            .take(2)
            .take_while(|b| b.is_ascii_alphabetic() || **b == b'@')
            .count();
    Some((rest[..cut].trim_ascii_end(), *quote))
}

/// Returns the text before the string at the end of a text. `None`: the text does not end with a
/// string.
fn before_string(text: &[u8]) -> Option<&[u8]> {
    let (quote, rest) = text
        .split_last()
        .filter(|(q, _)| matches!(q, b'"' | b'\'' | b'`'))?;
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
            b'(' => {
                return i > 0
                    && (text[i - 1].is_ascii_alphanumeric()
                        || matches!(text[i - 1], b'_' | b'!' | b'>'));
            }
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
    let before = callee
        .iter()
        .rposition(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    let start = before.map_or(0, |i| i + 1);
    split(&callee[start..])
        .first()
        .is_some_and(|w| VERBS.contains(&w.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> ValueForm {
        let at = line.find("VALUE").expect("the line holds the value");
        form(&SecretCandidate {
            secret: b"VALUE",
            line: line.as_bytes(),
            at,
            after: b"",
            path: b"a.py",
        })
    }

    #[test]
    fn a_value_is_given_asked_for_or_one_of_many() {
        for (line, expected) in [
            ("password = \"VALUE\"", ValueForm::Given),
            ("password: 'VALUE',", ValueForm::Given),
            ("opts.SetPassword(\"VALUE\");", ValueForm::Given),
            ("password = b'VALUE'", ValueForm::Given),
            ("x.password(\\\"VALUE\\\")", ValueForm::Given),
            ("connect(user, 'VALUE')", ValueForm::Given),
            ("secret.get(\"VALUE\")", ValueForm::Asked),
            ("token := secrets.Get(\"VALUE\")", ValueForm::Asked),
            ("password = getEnv('VALUE')", ValueForm::Asked),
            ("define('DB_PASSWORD', 'VALUE');", ValueForm::Pair),
            (
                "config.set('database', 'password', 'VALUE')",
                ValueForm::Pair,
            ),
            ("put(\"password\", \"VALUE\", \"UTF-8\")", ValueForm::Pair),
            (
                "vec![(\"password\", \"VALUE\"), (\"a\", \"b\")]",
                ValueForm::Pair,
            ),
            ("  \"password\", \"VALUE\")", ValueForm::Pair),
            ("ignored = ('pass', 'VALUE', 'port')", ValueForm::Listed),
            ("ignored = ['a', 'pass', 'VALUE']", ValueForm::Listed),
            ("    'pass', 'VALUE',", ValueForm::Listed),
        ] {
            assert_eq!(of(line), expected, "{line}");
        }
    }
}
