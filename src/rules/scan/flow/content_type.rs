//! Output of PHP that browsers do not show as a page, because the program has set another content
//! type.

use crate::finding::Severity;
use crate::rules::flow::{Flow, FlowSubject, SinkKind};
use crate::rules::language::Languages;
use crate::rules::scan::condition::{ConditionReader, ReadText};

/// Bytes above an output that are searched, at most.
const REACH: usize = 16 << 10;
/// Types that browsers show as text or data, whatever the content is. Others can be guessed from
/// the content: <https://mimesniff.spec.whatwg.org/#mime-type-sniffing-algorithm>.
const INERT: &[&str] = &[
    "text/plain",
    "text/csv",
    "text/css",
    "text/calendar",
    "text/event-stream",
    "text/javascript",
    "application/javascript",
    "application/json",
    "application/ld+json",
    "application/activity+json",
    "application/problem+json",
    "application/octet-stream",
    "application/pdf",
    "application/zip",
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
];
/// Words that print. A header has no effect below them.
const PRINTS: &[&str] = &[
    "echo", "print", "printf", "vprintf", "print_r", "var_dump", "readfile", "passthru",
];
/// Words that end a block without braces. Which lines above are in it is not known.
const ENDS: &[&str] = &["endif", "endfor", "endforeach", "endwhile", "endswitch"];

/// Words that can replace a header, by themselves or by the code that they run.
const REPLACES: &[&str] = &[
    "header_remove",
    "goto",
    "include",
    "include_once",
    "require",
    "require_once",
    "call_user_func",
    "call_user_func_array",
];

/// The effect of a call of `header()` on the content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeaderEffect {
    /// Sets a type of [`INERT`].
    InertType,
    /// Sets a header other than the type.
    Other,
    /// Sets another type, or a header that is not written out.
    Unknown,
}

/// Returns the highest severity of a flow into the output of PHP if a statement above gives the
/// response a type that browsers do not show as a page; `None`: that of its rule.
///
/// The statement is in the block of the output or in a block around it, in the same function, and
/// no `header()`, include or call by name is between the two. No `header()` of the file can set a
/// type of pages, and the file buffers no output, which a header below could still concern. The
/// finding stays as a suggestion, because output
/// of a caller can come first, which makes the header void.
pub(super) fn severity(
    f: &Flow,
    languages: Languages,
    reader: &mut ConditionReader,
    (path, text): (&[u8], &[u8]),
) -> Option<Severity> {
    if f.subject != FlowSubject::Flow(SinkKind::Html) || !languages.any_of(&["php"]) {
        return None;
    }
    let sink = f.sink().filter(|sink| sink.start <= text.len())?;
    let read = reader.read(path, text)?;
    has_inert_type(read, sink.start).then_some(Severity::Suggestion)
}

/// Returns true if a statement above a byte of the code gives the response an inert type.
pub(in crate::rules::scan) fn has_inert_type(read: &ReadText, sink: usize) -> bool {
    let code = read.code();
    let mut depth = 0u32;
    // A label or a block without braces is below the lines that are read now.
    let mut is_cut = false;
    for at in (sink.saturating_sub(REACH)..sink).rev() {
        match code[at] {
            b'}' => depth += 1,
            b'{' if depth > 0 => depth -= 1,
            b'{' if is_function(code, at) => return false,
            b'{' => is_cut = false,
            _ => {}
        }
        let Some(word) = word_at(code, at) else {
            continue;
        };
        let is_outside = depth == 0;
        match word.as_str() {
            "header" => match effect(read, at + word.len()) {
                HeaderEffect::Unknown => return false,
                HeaderEffect::InertType if is_outside && !is_cut && is_statement(code, at) => {
                    return !prints(code, at) && !can_have_other_type(read);
                }
                _ => {}
            },
            word if REPLACES.contains(&word) => return false,
            "case" | "default" => is_cut |= is_outside,
            "else" | "elseif" if last(&code[..at]) != Some(b'}') => is_cut |= is_outside,
            word if ENDS.contains(&word) => is_cut |= is_outside,
            _ => {}
        }
    }
    false
}

/// Returns true if a file has a header that can be another type, or holds back its output, so that
/// headers below count too.
fn can_have_other_type(read: &ReadText) -> bool {
    let code = read.code().to_ascii_lowercase();
    let mut headers = memchr::memmem::find_iter(&code, b"header");
    memchr::memmem::find(&code, b"ob_start").is_some()
        || headers.any(|at| {
            word_at(&code, at).as_deref() == Some("header")
                && effect(read, at + "header".len()) == HeaderEffect::Unknown
        })
}

/// Returns true if the code above a byte prints something, up to the start of its function.
fn prints(code: &[u8], end: usize) -> bool {
    let mut depth = 0u32;
    for at in (end.saturating_sub(REACH)..end).rev() {
        match code[at] {
            b'}' => depth += 1,
            b'{' if depth > 0 => depth -= 1,
            b'{' if is_function(code, at) => return false,
            _ => {}
        }
        if word_at(code, at).is_some_and(|word| PRINTS.contains(&word.as_str())) {
            return true;
        }
    }
    end > REACH
}

/// Returns the word that starts at a byte, in lower case. Names of variables, methods and other
/// namespaces do not count.
fn word_at(code: &[u8], at: usize) -> Option<String> {
    let is_of_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let before = at.checked_sub(1).and_then(|at| code.get(at));
    if before.is_some_and(|b| is_of_word(b) || matches!(b, b'$' | b'>' | b':')) {
        return None;
    }
    let rest = code.get(at..)?;
    let length = rest.iter().take_while(|b| is_of_word(b)).take(20).count();
    let word = String::from_utf8_lossy(&rest[..length]).to_ascii_lowercase();
    (!word.is_empty()).then_some(word)
}

/// Returns true if a statement starts at a byte that no condition leaves out.
fn is_statement(code: &[u8], at: usize) -> bool {
    let before = code[..at].trim_ascii_end();
    let before = before.strip_suffix(b"@").unwrap_or(before);
    let before = before
        .strip_suffix(b"\\")
        .unwrap_or(before)
        .trim_ascii_end();
    matches!(before.last(), Some(b';' | b'{' | b'}')) || before == b"<?php"
}

/// Returns true if the brace at a byte opens the body of a function.
fn is_function(code: &[u8], brace: usize) -> bool {
    let start = code[..brace]
        .iter()
        .rposition(|b| matches!(b, b';' | b'{' | b'}'))
        .map_or(0, |at| at + 1);
    let head = code[start..brace].to_ascii_lowercase();
    let mut words = head.split(|b| !b.is_ascii_alphanumeric() && *b != b'_');
    words.any(|word| word == b"function")
}

fn last(code: &[u8]) -> Option<u8> {
    code.trim_ascii_end().last().copied()
}

/// Returns what a call of `header` does whose name ends at a byte.
fn effect(read: &ReadText, end: usize) -> HeaderEffect {
    let arguments = read.shown().get(end..).unwrap_or_default();
    let Some(arguments) = arguments.trim_ascii_start().strip_prefix(b"(") else {
        // The name is not called, as in `use function header;`.
        return HeaderEffect::Other;
    };
    let arguments = arguments.trim_ascii_start();
    let Some((quote, rest)) = arguments
        .split_first()
        .filter(|(b, _)| matches!(b, b'"' | b'\''))
    else {
        return HeaderEffect::Unknown;
    };
    let Some(close) = memchr::memchr(*quote, rest) else {
        return HeaderEffect::Unknown;
    };
    let after = rest[close + 1..].trim_ascii_start();
    let literal = String::from_utf8_lossy(&rest[..close]).to_ascii_lowercase();
    let Some((name, value)) = literal.split_once(':') else {
        return if literal.starts_with("http/") {
            HeaderEffect::Other
        } else {
            HeaderEffect::Unknown
        };
    };
    if name.contains(['$', '{', '\\']) {
        return HeaderEffect::Unknown;
    }
    if name.trim() != "content-type" {
        return HeaderEffect::Other;
    }
    let (essence, parameters) = match value.split_once(';') {
        Some((essence, parameters)) => (essence, Some(parameters)),
        None => (value, None),
    };
    let is_whole = parameters.is_some() || matches!(after.first(), Some(b')' | b','));
    // With `false`, the header is one of several.
    let replaces = !after.strip_prefix(b",").is_some_and(|rest| {
        rest.trim_ascii_start()
            .to_ascii_lowercase()
            .starts_with(b"false")
    });
    if is_whole && replaces && INERT.contains(&essence.trim()) {
        HeaderEffect::InertType
    } else {
        HeaderEffect::Unknown
    }
}

#[cfg(test)]
mod tests {
    use crate::finding::Severity;
    use crate::policy::RuleProfile;
    use crate::rules::scan::layout::tests::changed;

    /// Returns the severities of the pages that a script prints.
    fn severities(script: &str) -> Vec<Severity> {
        changed(RuleProfile::Default, "web/a.php", "", script)
            .into_iter()
            .filter(|finding| finding.cwe() == Some(79))
            .map(|finding| finding.severity())
            .collect()
    }

    const TEXT: &str = "header('Content-Type: text/plain; charset=UTF-8');\n";
    /// An output that a rule of single lines and one of data flow report.
    const OUTPUT: &str = "echo $_GET['a'];\n";

    #[test]
    fn a_type_that_other_code_can_replace_does_not_count() {
        for script in [
            format!("<?php\nob_start();\n{TEXT}{OUTPUT}"),
            format!("<?php\n{TEXT}{OUTPUT}Header('Content-Type: text/html');\n"),
            format!(
                "<?php\n{TEXT}page();\n{OUTPUT}function page() {{\n  header('Content-Type: text/html');\n}}\n"
            ),
            format!("<?php\n{TEXT}require 'views/head.php';\n{OUTPUT}"),
            format!("<?php\n{TEXT}call_user_func('header', 'Content-Type: text/html');\n{OUTPUT}"),
        ] {
            let found = severities(&script);
            assert!(
                found.iter().any(|s| *s > Severity::Minor),
                "{script}{found:?}"
            );
        }
    }

    #[test]
    fn the_output_below_an_inert_type_is_a_suggestion() {
        for script in [
            format!("<?php\n{TEXT}{OUTPUT}"),
            "<?php\n@header(\"Content-type: application/json\", true, 200);\nif ($b) {\n  header('Connection: close');\n  exit($_GET['a'] ?? '');\n}\n".to_owned(),
            format!(
                "<?php\nif (!$b) {{\n  header('HTTP/1.1 410 Gone');\n  die('no');\n}}\n{TEXT}if ($b) {{\n  x();\n}} else {{\n  print($_GET['a']);\n}}\n"
            ),
            format!("<?php\nclass A {{\n  function b() {{\n    \\{TEXT}    {OUTPUT}  }}\n}}\n"),
        ] {
            let found = severities(&script);
            assert!(found.iter().all(|s| *s == Severity::Suggestion), "{script}");
            assert!(!found.is_empty(), "{script}");
        }
    }

    #[test]
    fn an_output_that_is_or_may_be_a_page_keeps_its_severity() {
        let html = TEXT.replace("plain", "html");
        for script in [
            format!("<?php\n{OUTPUT}"),
            format!("<?php\n{html}{OUTPUT}"),
            format!("<?php\n{OUTPUT}{TEXT}"),
            format!("<?php\n// {TEXT}{OUTPUT}"),
            format!("<?php\n$x = \"{}\";\n{OUTPUT}", TEXT.trim()),
            format!("<?php\nif ($b) {TEXT}{OUTPUT}"),
            format!("<?php\nif ($b) {{\n{TEXT}}}\n{OUTPUT}"),
            format!("<?php\nif ($b) {{\n{TEXT}}} else {{\n{OUTPUT}}}\n"),
            format!("<?php\nif ($b):\n{TEXT}endif;\n{OUTPUT}"),
            format!("<?php\nif ($b):\nx();\n{TEXT}else:\n{OUTPUT}endif;\n"),
            format!("<?php\nswitch ($b) {{\ncase 1:\nx();\n{TEXT}break;\ncase 2:\n{OUTPUT}}}\n"),
            format!("<?php\n{TEXT}if ($b) {{\n{html}}}\n{OUTPUT}"),
            format!("<?php\n{TEXT}header($type);\n{OUTPUT}"),
            format!("<?php\n{TEXT}header_remove();\n{OUTPUT}"),
            format!("<?php\n{TEXT}function b() {{\n{OUTPUT}}}\n"),
            format!("<?php\nfunction b() {{\n{TEXT}}}\n{OUTPUT}"),
            format!("<?php\necho 'x';\n{TEXT}{OUTPUT}"),
            format!("<p>\n<?php\n{TEXT}{OUTPUT}"),
            format!(
                "<?php\n{}{OUTPUT}",
                TEXT.replace("text/plain", "image/svg+xml")
            ),
            format!(
                "<?php\n{}{OUTPUT}",
                TEXT.replace("text/plain; charset=UTF-8'", "' . $type")
            ),
            format!("<?php\n{}{OUTPUT}", TEXT.replace("')", "', false)")),
        ] {
            for output in [OUTPUT, "exit($_GET['a'] ?? '');\n"] {
                let script = script.replace(OUTPUT, output);
                let found = severities(&script);
                assert!(found.contains(&Severity::Critical), "{script}");
            }
        }
    }
}
