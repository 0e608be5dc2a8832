//! Branches that an option of the operator selects: `if config.InsecureSkipVerify {`.

use super::line_around;
use crate::rules::flow::Flow;

/// Lines above a call in which the branch around it can start, at most.
const LINES: usize = 12;
/// Parts of names of options that switch the verification of certificates off, in lower case
/// without underscores.
const WORDS: &[&[u8]] = &[b"insecure", b"skipverify", b"skiptls", b"skipcert"];

/// Returns true if the innermost block with a condition around the sink of a flow has a field of an
/// object as its condition, and the name of the field says that certificates are not verified.
pub(super) fn selects(f: &Flow, text: &[u8]) -> bool {
    let Some(sink) = f.sink().filter(|sink| sink.start <= text.len()) else {
        return false;
    };
    let start = line_around(text, sink.start).start;
    let own = &text[start..sink.start];
    let above = text[..start].strip_suffix(b"\n").unwrap_or_default();
    let mut closed = 0usize;
    for line in [own]
        .into_iter()
        .chain(above.rsplit(|b| *b == b'\n').take(LINES))
    {
        let mut opens = false;
        for byte in line.iter().rev() {
            match byte {
                b'}' => closed += 1,
                b'{' if closed > 0 => closed -= 1,
                b'{' => opens = true,
                _ => {}
            }
        }
        if let Some(condition) = line.trim_ascii().strip_prefix(b"if").filter(|_| opens) {
            return names_option(condition);
        }
    }
    false
}

/// Returns true if a condition is nothing but the path of a field with a name of such an option:
/// ` config.TLS.InsecureSkipVerify {`, ` (options.insecure) {`.
fn names_option(condition: &[u8]) -> bool {
    let path = condition
        .trim_ascii()
        .strip_suffix(b"{")
        .unwrap_or_default()
        .trim_ascii();
    let path = path
        .strip_prefix(b"(")
        .and_then(|path| path.strip_suffix(b")"))
        .unwrap_or(path);
    let is_path = path
        .iter()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'-' | b'>'));
    let mut parts = path.rsplit(|b| matches!(b, b'.' | b'>'));
    let name: Vec<u8> = parts
        .next()
        .unwrap_or_default()
        .iter()
        .filter(|b| **b != b'_')
        .map(u8::to_ascii_lowercase)
        .collect();
    is_path
        && parts.next().is_some()
        && WORDS
            .iter()
            .any(|word| memchr::memmem::find(&name, word).is_some())
}

#[cfg(test)]
mod tests {
    use super::names_option;

    #[test]
    fn an_option_is_a_field_whose_name_says_so() {
        for condition in [
            " cfg.InsecureSkipVerify {",
            " (options.tls.insecure) {",
            " ($this->skip_tls_verify) {",
        ] {
            assert!(names_option(condition.as_bytes()), "{condition}");
        }
        for condition in [
            " insecure {",
            " !cfg.Insecure {",
            " cfg.Insecure == false {",
            " cfg.Insecure || true {",
            " cfg.Debug {",
        ] {
            assert!(!names_option(condition.as_bytes()), "{condition}");
        }
    }
}
