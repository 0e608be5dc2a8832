//! Examples in documents of the OpenAPI format, whose values are not those of a running system.

/// Bytes before a value that are searched for the keys above it, at most.
const REACH: usize = 256 << 10;
/// Lines at the start of a document among which its version is.
const HEAD_LINES: usize = 40;

/// Returns true if a file is an OpenAPI document: a file of YAML or JSON with a published version of
/// the format at its top level.
pub(super) fn is_one(path: &[u8], text: &[u8]) -> bool {
    const FILES: &[&[u8]] = &[b".yaml", b".yml", b".json"];
    FILES.iter().any(|end| path.ends_with(end)) && is_document(text)
}

/// Returns true if a byte of an OpenAPI document is in the value of `example` or `examples`
/// (<https://spec.openapis.org/oas/v3.1.0#example-object>).
///
/// The text must be such a document (see [`is_one`]), with one key a line. A key is above a value if
/// it is the nearest preceding line with less indentation.
pub(super) fn is_example(text: &[u8], at: usize) -> bool {
    let from = at.saturating_sub(REACH).min(text.len());
    let start = memchr::memrchr(b'\n', &text[..at.min(text.len())]).map_or(0, |n| n + 1);
    let own = &text[start..];
    let mut limit = indentation(own);
    if is_item(own) {
        // The key of a sequence may have the indentation of its items.
        limit += 1;
    }
    for line in text[from..start.max(from)].rsplit(|b| *b == b'\n') {
        let code = line.trim_ascii();
        // Comments, and statements of templates, which have any indentation.
        if code.is_empty() || code.starts_with(b"#") || code.starts_with(b"{{") {
            continue;
        }
        let level = indentation(line);
        if level >= limit {
            continue;
        }
        if is_example_key(code) {
            return true;
        }
        limit = if is_item(line) { level + 1 } else { level };
        if level == 0 && !is_item(line) {
            return false;
        }
    }
    false
}

/// Returns true if a text has a version of the OpenAPI format at its top level: `openapi: 3.1.0`, or
/// `swagger: "2.0"`. In JSON, the top level has the indentation of the first key.
fn is_document(text: &[u8]) -> bool {
    let is_object = text.trim_ascii_start().starts_with(b"{");
    let mut lines = text.split(|b| *b == b'\n').take(HEAD_LINES);
    let first = lines
        .clone()
        .find(|line| line.trim_ascii_start().starts_with(b"\""));
    let level = first.filter(|_| is_object).map_or(0, indentation);
    lines.any(|line| indentation(line) == level && has_version(&line[level..], is_object))
}

/// Returns true if a line consists of the key and the value of a version. `is_object`: the key has
/// quotes.
fn has_version(line: &[u8], is_object: bool) -> bool {
    let Some(at) = memchr::memchr(b':', line) else {
        return false;
    };
    let (key, value) = (&line[..at], line[at + 1..].trim_ascii());
    let is_quote = |b: &u8| matches!(b, b'"' | b'\'' | b',');
    let version: Vec<u8> = value.iter().copied().filter(|b| !is_quote(b)).collect();
    let parts: Vec<&[u8]> = version.split(|b| *b == b'.').collect();
    let is_number = |part: &&[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_three = parts.first() == Some(&b"3".as_slice())
        && matches!(parts.len(), 2 | 3)
        && parts.iter().all(is_number);
    match key {
        b"openapi" => !is_object && is_three,
        b"swagger" => !is_object && version == b"2.0",
        b"\"openapi\"" => is_three,
        b"\"swagger\"" => version == b"2.0",
        _ => false,
    }
}

/// Returns true if a line has the key of an example.
fn is_example_key(code: &[u8]) -> bool {
    let code = code.strip_prefix(b"-").unwrap_or(code).trim_ascii_start();
    let Some(end) = memchr::memchr(b':', code) else {
        return false;
    };
    let key = code[..end].trim_ascii();
    let key = key.strip_prefix(b"\"").unwrap_or(key);
    let key = key.strip_suffix(b"\"").unwrap_or(key);
    key == b"example" || key == b"examples"
}

fn indentation(line: &[u8]) -> usize {
    line.iter()
        .take_while(|b| matches!(b, b' ' | b'\t'))
        .count()
}

fn is_item(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"- ")
}

#[cfg(test)]
mod tests {
    fn is_example(path: &[u8], text: &[u8], at: usize) -> bool {
        super::is_one(path, text) && super::is_example(text, at)
    }

    fn at_value(text: &str) -> bool {
        is_example(b"api.yaml", text.as_bytes(), text.find("VALUE").unwrap())
    }

    #[test]
    fn only_files_of_a_document_have_examples() {
        let text = "openapi: 3.1.0\na:\n  example:\n    token: VALUE\n";
        for (path, expected) in [
            ("a/api.yml", true),
            ("a.json", true),
            ("a.py", false),
            ("a.env", false),
        ] {
            let found = is_example(
                path.as_bytes(),
                text.as_bytes(),
                text.find("VALUE").unwrap(),
            );
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn values_below_an_example_of_a_document_are_examples() {
        for text in [
            "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      example:\n        user:\n          token: VALUE\n",
            "---\nopenapi: '3.1.1'\ncomponents:\n  a:\n    examples:\n      - VALUE\n",
            "openapi: 3.1.0\ncomponents:\n  a:\n    examples:\n    - token: VALUE\n",
            "openapi: 3.1.0\na:\n  examples:\n  {{- if .Duo }}\n    one:\n      value:\n        token: VALUE\n",
            "{\n  \"openapi\": \"3.0.0\",\n  \"a\": {\n    \"example\": {\n      \"token\": \"VALUE\"\n    }\n  }\n}\n",
        ] {
            assert!(at_value(text), "{text}");
        }
    }

    #[test]
    fn other_values_are_none() {
        for text in [
            "openapi: 3.1.0\na:\n  example:\n    token: x\n  default: VALUE\n",
            "openapi: 3.1.0\na:\n  example: x\nb:\n  token: VALUE\n",
            "config:\n  openapi: 3.1.0\n  example:\n    token: VALUE\n",
            "example:\n  token: VALUE\n",
            "openapi: 3.1.0\ntoken: VALUE\n",
            "openapi: 3.1.0\na:\n  # example:\n    token: VALUE\n",
            "openapi: str\nexample:\n  token: VALUE\n",
            "openapi: 1\nexample:\n  token: VALUE\n",
            "swagger: true\nexample:\n  token: VALUE\n",
            "{\n  \"a\": {\n    \"openapi\": \"3.0.0\"\n  },\n  \"example\": {\n    \"token\": \"VALUE\"\n  }\n}\n",
        ] {
            assert!(!at_value(text), "{text}");
        }
    }
}
