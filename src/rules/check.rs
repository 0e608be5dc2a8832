//! Named checks of the text that a rule's pattern captured: is it random, is it invented, is it a
//! reference?

use super::flow;
use super::secret::{self, SecretCandidate};
use super::verbs;

/// Returns true if a check of that name applies to matches of patterns. Structural rules of the
/// catalogue can also name those of [`super::around`].
pub(crate) fn is_for_patterns(name: &str) -> bool {
    name == "not-reference"
        || name == SAME_SIDES
        || name == OTHER_COUNT
        || name == NOT_MARK
        || name == NOT_OF_EMULATOR
        || name
            .strip_prefix("entropy:")
            .is_some_and(|b| b.parse::<f32>().is_ok())
        || secret::check(
            name,
            &SecretCandidate {
                secret: b"",
                line: b"",
                at: 0,
                after: b"",
                path: b"",
            },
        )
        .is_some()
}

/// Returns true if the captured text passes the check with a name. No text passes an unknown check.
pub(super) fn passes(name: &str, candidate: &SecretCandidate<'_>) -> bool {
    match name.strip_prefix("entropy:") {
        Some(bits) => bits
            .parse()
            .is_ok_and(|bits: f32| entropy(candidate.secret) >= bits),
        None if name == "not-reference" => !is_reference(candidate.secret),
        None if name == SAME_SIDES => has_same_sides(candidate.line),
        None if name == OTHER_COUNT => verbs::can_differ(candidate.line),
        None if name == NOT_MARK => !is_assigned_mark(candidate),
        None if name == NOT_OF_EMULATOR => !is_of_emulator(candidate),
        None => secret::check(name, candidate) == Some(true),
    }
}

/// The check that an operator of the line has the same text on both sides: `a == a`, `x.y = x.y`,
/// `a.equals(a)`.
///
/// A regular expression cannot compare two parts of a text, and one that compares their first
/// letters takes a millisecond to compile.
const SAME_SIDES: &str = "same-sides";
/// The check that a call on the line can have a number of arguments that differs from the verbs of
/// its format string.
const OTHER_COUNT: &str = "other-count";

/// The check that the assigned variable has more uses than to recognise the newest request of a
/// component.
const NOT_MARK: &str = "not-request-mark";

/// Returns true if the match assigns the mark of a request to a variable, of which the file shows
/// the rest.
fn is_assigned_mark(candidate: &SecretCandidate<'_>) -> bool {
    let end = candidate
        .secret
        .iter()
        .position(|b| !is_word(*b))
        .unwrap_or(candidate.secret.len());
    end > 0 && flow::is_request_mark(&candidate.secret[..end], candidate.after)
}

/// The check that a network configuration of Android is about more than the developer's machine.
const NOT_OF_EMULATOR: &str = "not-of-emulator";

/// Returns true if a line opens a `domain-config` element and all domains in it are names of the
/// developer's machine: loopback, or the address by which the emulator calls it. An element with a
/// comment is not read, because the comment can contain the end of an element.
fn is_of_emulator(candidate: &SecretCandidate<'_>) -> bool {
    const LOCAL: &[&[u8]] = &[b"10.0.2.2", b"10.0.3.2", b"localhost", b"127.0.0.1"];
    const DOMAIN: &[u8] = b"<domain";
    let after = candidate.after;
    let Some(end) = memchr::memmem::find(after, b"</domain-config>") else {
        return false;
    };
    let inner = &after[..end];
    let mut domains = memchr::memmem::find_iter(inner, DOMAIN).peekable();
    let line = candidate.line.trim_ascii_start();
    let is_alone = line.starts_with(b"<domain-config") && !line[1..].contains(&b'<');
    let has_comment = [b"<!".as_slice(), b"<?"]
        .iter()
        .any(|open| memchr::memmem::find(inner, open).is_some());
    is_alone
        && !has_comment
        && domains.peek().is_some()
        && domains.all(|at| {
            let rest = &inner[at + DOMAIN.len()..];
            let name = memchr::memchr(b'>', rest).map(|open| &rest[open + 1..]);
            let name = name.and_then(|name| Some(&name[..memchr::memchr(b'<', name)?]));
            name.is_some_and(|name| LOCAL.contains(&name.trim_ascii()))
        })
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$')
}

/// Operators and calls that compare or assign.
const OPERATORS: [&[u8]; 15] = [
    b" == ",
    b" < ",
    b" > ",
    b" != ",
    b" === ",
    b" !== ",
    b" && ",
    b" || ",
    b" <= ",
    b" >= ",
    b" = ",
    b".Equals(",
    b".equals(",
    b".compareTo(",
    b".eql?(",
];

/// Returns true if an operator of a line has the same operand before and after it.
fn has_same_sides(line: &[u8]) -> bool {
    OPERATORS.iter().any(|operator| {
        memchr::memmem::find_iter(line, operator)
            .any(|at| are_same_sides(&line[..at], &line[at + operator.len()..]))
    })
}

/// Returns true if the operand at the end of a text is the one at the start of another text.
fn are_same_sides(before: &[u8], after: &[u8]) -> bool {
    let start = before
        .iter()
        .rposition(|b| !is_part_of_operand(*b))
        .map_or(0, |i| i + 1);
    let end = after
        .iter()
        .position(|b| !is_part_of_operand(*b))
        .unwrap_or(after.len());
    let after = after[..end].strip_suffix(b":").unwrap_or(&after[..end]);
    !after.is_empty() && &before[start..] == after
}

/// Returns true for a byte of a name, of a path to a member, or of an index.
fn is_part_of_operand(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || b >= 0x80
        || matches!(
            b,
            b'_' | b'$' | b'@' | b'.' | b'>' | b'?' | b'[' | b']' | b'-' | b':'
        )
}

/// Returns the Shannon entropy of a text in bits a byte: 0 for one repeated byte, at most 8.
pub(crate) fn entropy(text: &[u8]) -> f32 {
    if text.is_empty() {
        return 0.0;
    }
    let mut counts = [0u32; 256];
    for b in text {
        counts[usize::from(*b)] += 1;
    }
    let total = text.len() as f32;
    counts
        .iter()
        .filter(|c| **c > 0)
        .map(|c| *c as f32 / total)
        .map(|p| -p * p.log2())
        .sum()
}

/// Returns true if the text refers to a value that is defined elsewhere: a variable, a template, a
/// call.
fn is_reference(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    const OPEN: &[&[u8]] = &[
        b"${", b"$(", b"{{", b"#{", b"<%", b"%{", b"@{", b"[[", b"((", b"env:", b"vault:",
        b"file:", b"ref+",
    ];
    const INSIDE: &[&[u8]] = &[
        b"process.env",
        b"os.environ",
        b"getenv(",
        b"ENV[",
        b"System.getenv",
        b"secrets.",
        b"var.",
        b"local.",
    ];
    // `$NAME`, `%NAME%`.
    let bare = match text {
        [b'$', name @ ..] | [b'%', name @ .., b'%'] => {
            name.first().is_some_and(|b| !b.is_ascii_digit())
                && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        }
        _ => false,
    };
    bare || OPEN.iter().any(|o| text.starts_with(o))
        || INSIDE
            .iter()
            .any(|i| memchr::memmem::find(text, i).is_some())
        || (text.ends_with(b")")
            && memchr::memchr(b'(', text).is_some_and(|i| i > 0 && variable_path(&text[..i])))
}

/// Returns true if the text is a dotted or `::` path of names.
fn variable_path(text: &[u8]) -> bool {
    text.iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn checks_of_the_text_around_a_literal_are_not_for_patterns() {
        assert!(super::is_for_patterns("entropy:3.5") && super::is_for_patterns("same-sides"));
        assert!(!super::is_for_patterns("in-loop") && !super::is_for_patterns("key-repeated"));
    }

    #[test]
    fn the_sides_of_an_operator_are_compared_as_text() {
        for line in [
            "if (a.b == a.b) {",
            "  self.x = self.x",
            "return n.equals(n);",
            "x->y = x->y;",
            "$a && $a",
        ] {
            assert!(super::has_same_sides(line.as_bytes()), "{line}");
        }
        for line in [
            "if (a.b == a.c) {",
            "x = xx",
            "a == b && c == d",
            "n.equals(m)",
            "a ==",
            " = ",
        ] {
            assert!(!super::has_same_sides(line.as_bytes()), "{line}");
        }
    }

    use super::*;

    #[test]
    fn entropy_of_known_texts() {
        assert_eq!(entropy(b""), 0.0);
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abab"), 1.0);
        assert_eq!(entropy(b"abcdefgh"), 3.0);
    }

    #[test]
    fn tells_references_from_values() {
        for text in [
            "${TOKEN}",
            "$TOKEN",
            "%TOKEN%",
            "process.env.TOKEN",
            "os.Getenv(\"TOKEN\")",
            "{{ token }}",
            "get_token()",
        ] {
            assert!(is_reference(text.as_bytes()), "{text}");
        }
        for text in ["hunter2", "$2a$10$abc", "a(b", "p@ss(w)ord!", "100%"] {
            assert!(!is_reference(text.as_bytes()), "{text}");
        }
    }
}
