//! Modules of tests within a file of Rust.
//!
//! The path of such a file is that of the program, so the rules that skip tests read it.

use super::FileScan;
use crate::diff::LineNo;
use crate::rules::elide::complement;
use crate::rules::{catalog, lexer};
use std::ops::Range;

/// The attribute of such a module.
const ATTRIBUTE: &[u8] = b"#[cfg(test)]";
/// Bytes and attributes between it and the module, at most.
const HEAD_MAX: usize = 1000;
const ATTRIBUTES_MAX: usize = 16;

/// Returns the insides of the modules of tests at the top of a text of Rust, in order. A module in
/// another block can be the argument of a macro, which does what it wants with it. An unclosed
/// module does not count.
fn of(path: &[u8], text: &[u8]) -> Vec<Range<usize>> {
    let other: Vec<_> = lexer::outline(path, text)
        .into_iter()
        .map(|(range, _)| range)
        .collect();
    let mut out = Vec::new();
    let (mut depth, mut expected, mut start) = (0usize, None, None);
    // The last byte of code: another attribute in front could remove this one.
    let mut last = b';';
    for part in complement(&other, text.len()) {
        for at in part {
            match text[at] {
                b'#' if depth == 0
                    && matches!(last, b';' | b'}')
                    && text[at..].starts_with(ATTRIBUTE) =>
                {
                    expected = module_brace(text, at + ATTRIBUTE.len());
                }
                b'{' if depth == 0 && expected == Some(at) => {
                    start = Some(at + 1);
                    depth = 1;
                }
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => {
                    let Some(outer) = depth.checked_sub(1) else {
                        return out;
                    };
                    depth = outer;
                    if let Some(start) = start.take_if(|_| depth == 0) {
                        out.push(start..at);
                    }
                }
                _ => {}
            }
            if !text[at].is_ascii_whitespace() {
                last = text[at];
            }
        }
    }
    out
}

/// Returns the place of the brace that opens a module, if only attributes and the visibility are
/// before its name: `#[allow(a)] pub mod tests {`.
fn module_brace(text: &[u8], from: usize) -> Option<usize> {
    let head = &text[from..text.len().min(from + HEAD_MAX)];
    let mut rest = head.trim_ascii_start();
    for _ in 0..ATTRIBUTES_MAX {
        if !rest.starts_with(b"#[") {
            break;
        }
        rest = rest[attribute_end(rest)?..].trim_ascii_start();
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
    let is_module = length > 0 && brace.starts_with(b"{");
    is_module.then_some(from + head.len() - brace.len())
}

/// Returns the end of the attribute with which a text begins. `None`: it has a text, whose brackets
/// would count.
fn attribute_end(text: &[u8]) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at + 1),
            b']' => depth -= 1,
            b'"' | b'\'' | b'/' => return None,
            _ => {}
        }
    }
    None
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
        let next = modules.partition_point(|lines| lines.end <= line.get());
        modules
            .get(next)
            .is_some_and(|lines| lines.contains(&line.get()))
    }
}

/// Returns the lines that are in some parts of a text as a whole. The parts are in order.
fn lines_of(parts: &[Range<usize>], text: &[u8]) -> Vec<Range<u32>> {
    let (mut line, mut from) = (1, 0);
    let mut out = Vec::new();
    for part in parts {
        let first = line + line_ends(&text[from..part.start]);
        line = first + line_ends(&text[part.clone()]);
        // Code outside of the module can be on the lines of its braces.
        out.push(first + 1..line);
        from = part.end;
    }
    out
}

fn line_ends(text: &[u8]) -> u32 {
    u32::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(u32::MAX)
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
        let inside = "\n    fn a() { b(\"}\", '}'); } // }\n";
        for head in [
            "#[cfg(test)]\nmod tests {",
            "#[cfg(test)] #[allow(clippy::unwrap_used)]\npub mod tests {",
        ] {
            let text = format!("fn f() {{}}\n{head}{inside}}}\nfn g() {{}}\n");
            assert_eq!(modules(&text), [inside], "{head}");
        }
    }

    #[test]
    fn only_code_is_a_module_of_tests() {
        for text in [
            "// #[cfg(test)] mod a {\nfn f() {}\n// }\n",
            "const A: &str = \"#[cfg(test)] mod a {\";\nfn f() {}\nconst B: &str = \"}\";\n",
            "#[cfg(test)]\nuse a::b;\nfn f() {}\n",
            "#[cfg(test)]\nmod tests;\nmod b { fn f() {} }\n",
            "#[cfg(test)]\n#[allow(a)] use b;\nmod c { fn f() {} }\n",
            "#[cfg(test)]\n#[doc = \"]\"] use b;\nmod c { fn f() {} }\n",
            "#[cfg(not(test))]\nmod a { fn f() {} }\n",
            "#[strip]\n#[cfg(test)]\nmod a { fn f() {} }\n",
            "run! { #[cfg(test)] mod a { fn f() {} } }\n",
            "run!( #[cfg(test)] mod a { fn f() {} } );\n",
            "#[cfg(test)]\nmod a { fn f() {}\n",
        ] {
            assert_eq!(modules(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn code_on_the_lines_of_the_braces_is_outside() {
        let text = b"a;\nfn f() {} #[cfg(test)] mod t {\nb;\nc;\n} fn g() {}\n";
        let lines: Vec<u32> = lines_of(&of(b"a.rs", text), text)
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(lines, [3, 4]);
        let text = b"fn f() {} #[cfg(test)] mod t {} fn g() {}\n";
        let lines = lines_of(&of(b"a.rs", text), text);
        assert!(lines.iter().all(Range::is_empty), "{lines:?}");
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
