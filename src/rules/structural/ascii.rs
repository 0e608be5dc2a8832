//! Writes the expressions of structural rules with ASCII classes, as the other rules of the
//! catalogue have them.
//!
//! The classes `\w`, `\d` and `\s` of Unicode have hundreds of ranges. To compile them took more
//! than half of the time that rules with such expressions cost in the review of a small commit.
//! The build script, which includes this file, rewrites the rules of the catalogue. Rules of teams
//! keep the notation of ast-grep.

/// The key of an expression whose value is a scalar in single quotes.
const KEY: &str = "regex: '";

/// Returns the YAML of a rule in which the quoted expressions have ASCII classes and boundaries.
pub(crate) fn with_ascii_classes(yaml: &str) -> String {
    let mut out = String::with_capacity(yaml.len());
    let mut rest = yaml;
    while let Some(at) = rest.find(KEY) {
        let (before, after) = rest.split_at(at + KEY.len());
        let end = end_of_scalar(after);
        out.push_str(before);
        out.push_str(&expression(&after[..end]));
        rest = &after[end..];
    }
    out + rest
}

/// Returns the offset of the quote that ends a scalar. Two quotes are a quote in the scalar.
fn end_of_scalar(text: &str) -> usize {
    let mut quotes = text.match_indices('\'').map(|(at, _)| at).peekable();
    while let Some(at) = quotes.next() {
        if quotes.next_if_eq(&(at + 1)).is_none() {
            return at;
        }
    }
    text.len()
}

/// Returns an expression with ASCII classes and boundaries.
fn expression(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() * 2);
    let mut rest = pattern.chars().peekable();
    // Brackets that are open: a class can contain others.
    let mut depth = 0;
    while let Some(c) = rest.next() {
        match c {
            '\\' => {
                let class = rest.next().unwrap_or('\\');
                match ascii(class, depth > 0, rest.peek() == Some(&'{')) {
                    Some(text) => out.push_str(text),
                    None => out.extend(['\\', class]),
                }
                continue;
            }
            '[' => {
                depth += 1;
                out.push(c);
                // A bracket that is the first of a class does not close it.
                out.extend(rest.next_if_eq(&'^'));
                out.extend(rest.next_if_eq(&']'));
                continue;
            }
            ']' if depth > 0 => depth -= 1,
            _ => {}
        }
        out.push(c);
    }
    out
}

/// Returns the ASCII form of an escape. `None`: it has none, or means the same. `is_name`: a brace
/// follows, as in `\b{start}`.
fn ascii(class: char, is_in_class: bool, is_name: bool) -> Option<&'static str> {
    match (class, is_in_class) {
        ('w', false) => Some("[0-9A-Za-z_]"),
        ('w', true) => Some("0-9A-Za-z_"),
        ('W', false) => Some("[^0-9A-Za-z_]"),
        ('d', false) => Some("[0-9]"),
        ('d', true) => Some("0-9"),
        ('D', false) => Some("[^0-9]"),
        ('s', false) => Some(r"[\t\n\x0B\x0C\r ]"),
        ('s', true) => Some(r"\t\n\x0B\x0C\r "),
        ('S', false) => Some(r"[^\t\n\x0B\x0C\r ]"),
        ('b', false) if !is_name => Some(r"(?-u:\b)"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_expressions_have_ascii_classes() {
        for (yaml, expected) in [
            (r"regex: '^\w+$'", r"regex: '^[0-9A-Za-z_]+$'"),
            (r"regex: '[^\w.\d]\D'", r"regex: '[^0-9A-Za-z_.0-9][^0-9]'"),
            (
                r"regex: '[]\s]\s'",
                r"regex: '[]\t\n\x0B\x0C\r ][\t\n\x0B\x0C\r ]'",
            ),
            (
                r"regex: '[[:alpha:]\d]\w'",
                r"regex: '[[:alpha:]0-9][0-9A-Za-z_]'",
            ),
            (r"regex: '\bx\b{end}'", r"regex: '(?-u:\b)x\b{end}'"),
            (r"regex: '\\w\[\w'", r"regex: '\\w\[[0-9A-Za-z_]'"),
            (
                r"a: { regex: 'it''s \S' }, pattern: '\w'",
                r"a: { regex: 'it''s [^\t\n\x0B\x0C\r ]' }, pattern: '\w'",
            ),
            (r"regex: ^\w$", r"regex: ^\w$"),
            ("regex: 'open \\w", "regex: 'open [0-9A-Za-z_]"),
        ] {
            assert_eq!(with_ascii_classes(yaml), expected, "{yaml}");
        }
    }

    #[test]
    fn both_forms_match_the_same_ascii_texts() {
        let texts = [
            "a", "Z9", "_", " ", "\t\u{b}", "a-b", "it's x", "[w]", "9]", "\\w",
        ];
        for pattern in [
            r"^\w+$",
            r"\W",
            r"[\w-]+$",
            r"^[^\s]+$",
            r"\bx\b",
            r"\S\D",
            r"[\d\]]",
            r"\\w",
        ] {
            let unicode = regex::Regex::new(pattern).unwrap();
            let ascii = regex::Regex::new(&expression(pattern)).unwrap();
            for text in texts {
                assert_eq!(
                    unicode.is_match(text),
                    ascii.is_match(text),
                    "{pattern} in {text:?}"
                );
            }
        }
        assert!(
            !regex::Regex::new(&expression(r"^\w$"))
                .unwrap()
                .is_match("é")
        );
    }
}
