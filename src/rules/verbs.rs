//! Counts the verbs of a format string and the arguments after it, on one line.
//!
//! Most calls of `fmt.Errorf` have equal numbers of both. The structural rule that compares them
//! parses a file and compiles large expressions, so it runs only for lines on which the numbers can
//! differ.

/// Functions of Go whose first argument is a format string have names that end with this.
const CALL: &[u8] = b"f(";
/// Bytes of a call that are read, at most. In a longer call, the numbers can differ.
const MOST: usize = 2000;

/// Returns true if a line has a call with a format string whose verbs and arguments can differ in
/// number. In a call that continues on the next line, they can.
pub(super) fn can_differ(line: &[u8]) -> bool {
    memchr::memmem::find_iter(line, CALL).any(|at| {
        let rest = &line[at + CALL.len()..];
        let arguments = rest[..rest.len().min(MOST)].trim_ascii_start();
        match arguments.first() {
            Some(quote @ (b'"' | b'`')) => differs(arguments, *quote).unwrap_or(true),
            Some(_) => false,
            None => true,
        }
    })
}

/// Returns true if the number of verbs of a format string at the start of a text differs from the
/// number of arguments after it. `None`: the text ends before the call does.
fn differs(text: &[u8], quote: u8) -> Option<bool> {
    let end = 1 + literal_end(&text[1..], quote)?;
    Some(verbs(&text[1..end]) != arguments(&text[end + 1..])?)
}

/// Returns the position of the quote that ends a literal.
fn literal_end(text: &[u8], quote: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        match *text.get(at)? {
            b'\\' if quote != b'`' => at += 1,
            byte if byte == quote => return Some(at),
            _ => {}
        }
        at += 1;
    }
}

/// Counts the verbs of a format string. `%%` is not a verb.
fn verbs(format: &[u8]) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'%', &format[at..]) {
        let is_escape = format.get(at + found + 1) == Some(&b'%');
        count += usize::from(!is_escape);
        at += found + if is_escape { 2 } else { 1 };
        at = at.min(format.len());
    }
    count
}

/// Counts the arguments from the comma after the first one to the closing parenthesis of the call.
/// A comma before the end does not start an argument.
fn arguments(text: &[u8]) -> Option<usize> {
    let (mut count, mut open, mut at, mut is_empty) = (0, 0_usize, 0, false);
    loop {
        match *text.get(at)? {
            b'(' | b'[' | b'{' => open += 1,
            b')' if open == 0 => return Some(count - usize::from(is_empty)),
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            b',' if open == 0 => (count, is_empty) = (count + 1, true),
            quote @ (b'"' | b'`' | b'\'') => {
                at += 1 + literal_end(&text[at + 1..], quote)?;
                is_empty = false;
            }
            byte if !byte.is_ascii_whitespace() => is_empty = false,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_and_arguments_of_a_line_are_counted() {
        for line in [
            r#"fmt.Errorf("clock %d: %w", 2130, err)"#,
            r#"fmt.Errorf("read %s: %w", f(a, b), err)"#,
            r#"t.Fatalf("100%% of %q", map[string]int{"a": 1, "b": 2})"#,
            r#"log.Printf("started")"#,
            r#"log.Printf("%s", ",",)"#,
            "log.Printf(format, a)",
            r#"t.Logf(`%s \`, a)"#,
        ] {
            assert!(!can_differ(line.as_bytes()), "{line}");
        }
        for line in [
            r#"fmt.Errorf("clock %d: %w", err)"#,
            r#"fmt.Errorf("clock: %w")"#,
            r#"fmt.Printf("100%%", a)"#,
            r#"fmt.Printf("%s %s", a,"#,
            r#"fmt.Printf("%[1]s-%[1]s", name)"#,
            "fmt.Printf(",
            r#"a(fmt.Sprintf("%d", 1), fmt.Sprintf("%d"))"#,
        ] {
            assert!(can_differ(line.as_bytes()), "{line}");
        }
    }
}
