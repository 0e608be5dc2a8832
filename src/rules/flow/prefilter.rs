//! Bytes that a lowering turns into calls with names of the tables.
//!
//! The tables name such calls `__double_free` or `java.html-body`. No file contains these words, so
//! a file needs other words that make the analysis worth its time.

use super::FlowLanguage;

/// Digests and options. Keys that are data, slow expressions, addresses of markup and comparisons
/// of secrets have their own functions.
const SCRIPT: &[&str] = &[
    "createHmac",
    "signature",
    "Math.random",
    "api-key",
    "secretOrKey",
    "ignoreExpiration",
];

/// Memory, sizes, permissions.
const C: &[&str] = &[
    "free(",
    "delete ",
    "malloc(",
    "realloc(",
    "alloca(",
    "memcpy(",
    "memmove(",
    "memset(",
    "memcmp(",
    "strncpy(",
    "strncat(",
    "snprintf(",
    "fgets(",
    "read(",
    "recv(",
    "access(",
    "rand()",
    "random()",
    "setuid(",
    "setgid(",
    "seteuid(",
    "setegid(",
    "return &",
    "cin >>",
];

/// Responses of handlers, numbers. Managers that trust everything are matched by rules of single
/// lines.
const JAVA: &[&str] = &[
    "RestController",
    "ResponseBody",
    "@Controller",
    "\"redirect:",
    "Random",
    ".random()",
    "JWT.decode(",
    "JWT.parse(",
    "JWTParser.parse(",
    "Hmac",
    "hmac",
];

/// Markup that a handler returns, digests. Slow expressions and comparisons of secrets have their
/// own functions.
const PYTHON: &[&str] = &[
    ".route(",
    "@app.",
    "@bp.",
    "return \"<",
    "return '<",
    "return f\"<",
    "return f'<",
    "hmac",
];

/// Ends of the names of constants that are secrets.
const SECRETS: &[&str] = &["_TOKEN", "_SECRET", "_KEY", "_PASSWORD"];

/// Parameters, expressions, numbers.
const RUBY: &[&str] = &["params", "validates", "permit", "rand", "=~"];

/// Pages for developers, forms, numbers.
const CSHARP: &[&str] = &[
    "DeveloperExceptionPage",
    "HttpPost",
    "Random",
    "ignature",
    "ComputeHash(",
    "HashData(",
    "ReadJwtToken(",
];

/// Comparisons of secrets.
const GO: &[&str] = &[
    "Header.Get(",
    "GetHeader(",
    "hmac.",
    "sha256.New()",
    "sha512.New()",
];

/// Returns true if a text has a construct that its lowering turns into a call of the tables.
pub(super) fn has_stand_in(language: FlowLanguage, text: &[u8]) -> bool {
    let words = match language {
        // `<?= … ?>` is an `echo`.
        FlowLanguage::Php => &["<?="][..],
        FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx => SCRIPT,
        FlowLanguage::C | FlowLanguage::Cpp => C,
        FlowLanguage::Java | FlowLanguage::Kotlin => JAVA,
        FlowLanguage::Python => PYTHON,
        FlowLanguage::Ruby => RUBY,
        FlowLanguage::CSharp => CSHARP,
        FlowLanguage::Go => GO,
    };
    let has_construct = match language {
        FlowLanguage::C | FlowLanguage::Cpp => writes_item(text),
        FlowLanguage::JavaScript | FlowLanguage::TypeScript | FlowLanguage::Tsx => {
            writes_item_of_item(text)
                || has_nested_quantifier(text)
                || sets_address(text)
                || compares_constant_secret(text)
        }
        FlowLanguage::Python => has_nested_quantifier(text) || compares_constant_secret(text),
        FlowLanguage::Ruby => has_nested_quantifier(text),
        FlowLanguage::CSharp => has_nested_quantifier(text) || has_member_text(text),
        FlowLanguage::Php => compares_digest(text),
        FlowLanguage::Java | FlowLanguage::Kotlin => compares_arrays_of_codes(text),
        _ => false,
    };
    has_construct
        || words
            .iter()
            .any(|w| memchr::memmem::find(text, w.as_bytes()).is_some())
}

/// Returns true for a text with the member `Text` of a form. `System.Text.Json` and `System.Text`
/// are names of packages.
fn has_member_text(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b".Text").any(|at| {
        let next = text.get(at + 5);
        !text[..at].ends_with(b"System")
            && next.is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_')
    })
}

/// Returns true if a text can compare a constant whose name is that of a secret.
fn compares_constant_secret(text: &[u8]) -> bool {
    (has(text, b"==") || has(text, b"!=")) && SECRETS.iter().any(|end| has(text, end.as_bytes()))
}

/// Returns true for a text that can compare two message authentication codes or signatures as
/// arrays.
fn compares_arrays_of_codes(text: &[u8]) -> bool {
    has(text, b"Arrays.equals(")
        && (has(text, b"Mac") || has(text, b"mac") || has(text, b"ignature"))
}

/// Returns true if a text contains a word.
fn has(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// Returns true for a text that can compare a digest with an operator.
fn compares_digest(text: &[u8]) -> bool {
    let digests = [&b"hash_hmac("[..], b"crypt(", b"md5(", b"sha1(", b"hash("];
    memchr::memmem::find(text, b"==").is_some()
        && digests
            .iter()
            .any(|word| memchr::memmem::find(text, word).is_some())
}

/// Returns true for a text of C that can use a variable as an index or as the size of an array.
pub(super) fn has_index(text: &[u8]) -> bool {
    memchr::memchr_iter(b'[', text).any(|at| {
        let first = text[at + 1..].trim_ascii_start().first();
        first.is_none_or(|b| {
            b.is_ascii_alphabetic() || matches!(b, b'_' | b'(' | b'*' | b'+' | b'-')
        })
    })
}

/// Returns true for a text that can have an expression such as `(a+)+`: a repeated group with a
/// repetition in it. A group that starts on another line counts.
fn has_nested_quantifier(text: &[u8]) -> bool {
    memchr::memchr_iter(b')', text).any(|end| {
        let is_repeated = matches!(text.get(end + 1), Some(b'+' | b'*'));
        is_repeated
            && group_before(text, end)
                .is_none_or(|group| group.iter().any(|b| matches!(b, b'+' | b'*' | b'{')))
    })
}

/// Bytes before or after a construct that are searched, at most.
const MOST_OF_GROUP: usize = 300;

/// Returns the text between a closing parenthesis and the matching opening one on the same line.
fn group_before(text: &[u8], end: usize) -> Option<&[u8]> {
    let mut open = 1;
    for start in (end.saturating_sub(MOST_OF_GROUP)..end).rev() {
        match text[start] {
            b')' => open += 1,
            b'(' => open -= 1,
            b'\n' | b'\r' => return None,
            _ => {}
        }
        if open == 0 {
            return text.get(start + 1..end);
        }
    }
    None
}

/// Returns true for a text with `x[k][n] = …`, or with the start of one.
fn writes_item_of_item(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"][").any(|at| {
        let near = &text[at + 2..text.len().min(at + 2 + MOST_OF_GROUP)];
        let line = near
            .split(|b| matches!(b, b'\n' | b'\r'))
            .next()
            .unwrap_or_default();
        let Some(end) = memchr::memrchr(b']', line) else {
            return true;
        };
        let rest = line[end + 1..].trim_ascii_start();
        rest.is_empty()
            || memchr::memchr(b'=', &line[..end]).is_some()
            || memchr::memchr(b'=', rest).is_some()
    })
}

/// Returns true for a text that sets `href` to a value other than a literal.
fn sets_address(text: &[u8]) -> bool {
    memchr::memmem::find_iter(text, b"href").any(|at| {
        let rest = text[at + 4..].trim_ascii_start();
        let Some((first, value)) = rest.split_first() else {
            return true;
        };
        match first {
            b'=' => !matches!(value.trim_ascii_start().first(), Some(b'"' | b'\'' | b'=')),
            b':' | b'"' | b'\'' | b'`' | b']' | b',' => true,
            _ => false,
        }
    })
}

/// Returns true for a text with `x[i] = …`. A table of data, `x[] = {`, is not one.
fn writes_item(text: &[u8]) -> bool {
    memchr::memchr_iter(b']', text).any(|at| {
        let rest = text.get(at + 1..).unwrap_or_default().trim_ascii_start();
        let value = rest.strip_prefix(b"=").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|v| !v.starts_with(b"{") && !v.starts_with(b"="))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructs_of_scripts_count_where_they_can_be_findings() {
        fn counts(text: &str) -> bool {
            has_stand_in(FlowLanguage::JavaScript, text.as_bytes())
        }
        for text in [
            "o[a][b] = c;",
            "o[a][b[c]] ||= d",
            "o[a][\n b] = c",
            "/^(a+)+$/",
            "new RegExp('(\\\\w+\\\\s?)*$')",
            "<a href={url}>",
            "link.href = url",
            "$(a).attr('href', u)",
            "{ href: url }",
        ] {
            assert!(counts(text), "{text}");
        }
        for text in [
            "f(o[a][b]);",
            "'a' + f(b)+c",
            "f(b)*2",
            "<a href=\"/x\">",
            "location.href.split('#')",
            "a.href === b",
        ] {
            assert!(!counts(text), "{text}");
        }
    }

    #[test]
    fn a_digest_that_is_compared_and_a_variable_index_count() {
        assert!(has_stand_in(
            FlowLanguage::Php,
            b"$ok = $given === hash_hmac('sha256', $body, $key);"
        ));
        assert!(!has_stand_in(FlowLanguage::Php, b"$id = md5($body);"));
        assert!(has_index(b"return names[index];") && has_index(b"char b[2 + n], c[n];"));
        assert!(!has_index(b"char b[16]; b[0]"));
    }

    #[test]
    fn a_write_to_an_item_is_not_a_table_of_data() {
        for text in ["b[8] = 0;", "b[i]=x;", "  a[n]\n    = 1;"] {
            assert!(has_stand_in(FlowLanguage::C, text.as_bytes()), "{text}");
        }
        for text in ["int t[] = { 1, 2 };", "if (a[1] == 2) {}", "f(a[1]);"] {
            assert!(!has_stand_in(FlowLanguage::C, text.as_bytes()), "{text}");
        }
    }
}
