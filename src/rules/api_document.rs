//! Examples in documents of the OpenAPI format, whose values are not those of a running system.

/// Bytes before a value that are searched for the keys above it, at most.
const REACH: usize = 256 << 10;
/// Lines at the start of a document among which its version is.
const HEAD_LINES: usize = 40;

/// Returns true if a byte of an OpenAPI document is in the value of `example` or `examples`
/// (<https://spec.openapis.org/oas/v3.1.0#example-object>).
///
/// The document must have its version at the top level, in YAML or in JSON with one key a line. A
/// key is above a value if it is the nearest preceding line with less indentation.
pub(super) fn is_example(text: &[u8], at: usize) -> bool {
    if !is_document(text) {
        return false;
    }
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

/// Returns true if a text has the version of the OpenAPI format at its top level.
fn is_document(text: &[u8]) -> bool {
    const YAML: &[&[u8]] = &[b"openapi:", b"swagger:"];
    const JSON: &[&[u8]] = &[b"\"openapi\":", b"\"swagger\":"];
    let is_object = text.trim_ascii_start().starts_with(b"{");
    text.split(|b| *b == b'\n').take(HEAD_LINES).any(|line| {
        if is_object {
            let key = line.trim_ascii_start();
            JSON.iter().any(|name| key.starts_with(name))
        } else {
            YAML.iter().any(|name| line.starts_with(name))
        }
    })
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
    use super::is_example;

    fn at_value(text: &str) -> bool {
        is_example(text.as_bytes(), text.find("VALUE").unwrap())
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
        ] {
            assert!(!at_value(text), "{text}");
        }
    }
}
