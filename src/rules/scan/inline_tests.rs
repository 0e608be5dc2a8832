//! Modules of tests within a file of Rust.
//!
//! The path of such a file is that of the program, so the rules that skip tests read it.

use super::FileScan;
use crate::diff::LineNo;
use crate::rules::elide::complement;
use crate::rules::{catalog, lexer};
use std::ops::{Range, RangeInclusive};

/// The attribute of such a module.
const ATTRIBUTE: &[u8] = b"#[cfg(test)]";

/// Returns the modules of tests in a text of Rust, in order: from the attribute to the brace that
/// closes the module. An unclosed module does not count.
pub(super) fn of(path: &[u8], text: &[u8]) -> Vec<Range<usize>> {
    let other: Vec<_> = lexer::outline(path, text)
        .into_iter()
        .map(|(range, _)| range)
        .collect();
    let is_code = |at: usize| {
        let next = other.partition_point(|range| range.end <= at);
        other.get(next).is_none_or(|range| at < range.start)
    };
    let mut out: Vec<Range<usize>> = Vec::new();
    for at in memchr::memmem::find_iter(text, ATTRIBUTE) {
        let is_inside = out.last().is_some_and(|last| at < last.end);
        if is_inside || !is_code(at) {
            continue;
        }
        let head = at + ATTRIBUTE.len();
        if let Some(open) = module_brace(&text[head..]).map(|open| head + open)
            && let Some(end) = closing(text, &other, open)
        {
            out.push(at..end);
        }
    }
    out
}

impl FileScan<'_> {
    /// Returns true if a rule that skips tests reads a line of a module of tests.
    pub(super) fn is_in_inline_tests(&mut self, rule: &catalog::Rule, line: LineNo) -> bool {
        if rule.in_tests || !self.reporter.languages().any_of(&["rust"]) {
            return false;
        }
        let (path, text) = (self.file.path().as_bytes(), self.file.text());
        let modules = self.inline_tests.get_or_insert_with(|| {
            let text = text.and_then(|text| text.new.whole());
            text.map_or_else(Vec::new, |text| lines_of(&of(path, text), text))
        });
        modules.iter().any(|lines| lines.contains(&line.get()))
    }
}

/// Returns the lines of some parts of a text, which are in order.
fn lines_of(parts: &[Range<usize>], text: &[u8]) -> Vec<RangeInclusive<u32>> {
    let (mut line, mut from) = (1, 0);
    let mut out = Vec::new();
    for part in parts {
        let first = line + line_ends(&text[from..part.start]);
        line = first + line_ends(&text[part.clone()]);
        out.push(first..=line);
        from = part.end;
    }
    out
}

fn line_ends(text: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(u32::MAX)
}

/// Returns the place of the brace that opens the module which a text begins with: `mod tests {`,
/// with attributes of one line and `pub` before it.
fn module_brace(text: &[u8]) -> Option<usize> {
    let mut rest = text.trim_ascii_start();
    while rest.starts_with(b"#[") {
        let end = memchr::memchr(b'\n', rest)?;
        rest = rest[end..].trim_ascii_start();
    }
    for word in [b"pub(crate) ".as_slice(), b"pub "] {
        rest = rest.strip_prefix(word).unwrap_or(rest);
    }
    let name = rest.strip_prefix(b"mod ")?.trim_ascii_start();
    let length = name
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'_')
        .count();
    let brace = name[length..].trim_ascii_start();
    brace.starts_with(b"{").then_some(text.len() - brace.len())
}

/// Returns the end of the block whose brace opens at a byte. `other`: comments and strings.
fn closing(text: &[u8], other: &[Range<usize>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let code = complement(other, text.len());
    let first = code.partition_point(|part| part.end <= open);
    for part in &code[first..] {
        let part = part.start.max(open)..part.end;
        for at in memchr::memchr2_iter(b'{', b'}', &text[part.clone()]) {
            if text[part.start + at] == b'{' {
                depth += 1;
                continue;
            }
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(part.start + at + 1);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{Finding, Severity};
    use crate::policy::RuleProfile;
    use crate::rules::scan::layout::tests::changed;

    /// Returns the texts of the modules.
    fn modules(text: &str) -> Vec<&str> {
        of(b"src/a.rs", text.as_bytes())
            .into_iter()
            .map(|range| &text[range])
            .collect()
    }

    #[test]
    fn a_module_of_tests_ends_with_its_brace() {
        let tests = "#[cfg(test)]\n#[allow(clippy::unwrap_used)]\npub mod tests {\n    fn a() { b(\"}\"); } // }\n}";
        let text = format!("fn f() {{}}\n{tests}\nfn g() {{}}\n");
        assert_eq!(modules(&text), [tests]);
    }

    #[test]
    fn only_code_is_a_module_of_tests() {
        for text in [
            "// #[cfg(test)] mod a {\nfn f() {}\n// }\n",
            "const A: &str = \"#[cfg(test)] mod a {\";\nfn f() {}\nconst B: &str = \"}\";\n",
            "#[cfg(test)]\nuse a::b;\nfn f() {}\n",
            "#[cfg(test)]\nmod tests;\nmod b { fn f() {} }\n",
            "#[cfg(not(test))]\nmod a { fn f() {} }\n",
            "#[cfg(test)]\nmod a { fn f() {}\n",
        ] {
            assert_eq!(modules(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn a_finding_in_a_module_of_tests_is_a_suggestion() {
        let line = "    async fn f() {\n        std::thread::sleep(d);\n    }\n";
        let severity = |head: &str| {
            let text = format!("{head}\n{line}}}\n");
            let found = changed(RuleProfile::Default, "src/a.rs", "", &text);
            let found = found.iter().map(Finding::severity).max();
            found.expect("the call blocks")
        };
        assert_eq!(severity("#[cfg(test)]\nmod tests {"), Severity::Suggestion);
        assert_eq!(severity("mod tests {"), Severity::Minor);
    }
}
