//! The replacements that rules offer for the lines of their findings.
//!
//! A replacement is offered if it is certain: the rule itself defines it, the rule does not match
//! the new lines, they have no secret, and deleted lines are whole statements whose absence leaves
//! valid code.
//!
//! The caller decides how a rule matches new lines: by its expression ([`is_matched`]), or on the
//! syntax tree.

use super::language::Languages;
use super::walk::RulePatterns;
use super::{MARK, RuleSet};
use crate::diff::{LineNo, Text};
use crate::finding::LineSpan;
use std::borrow::Cow;

/// Lines that are replaced, at most, and their bytes.
const MAX_LINES: u32 = 100;
const MAX_BYTES: usize = 4096;
/// Lines above a deleted one that are read to find code.
const ABOVE: u32 = 20;

/// Returns the new lines, without a line end and a byte order mark. An empty text deletes the
/// lines. `is_matched` returns true if the rule would match its argument in place of the lines.
pub(super) fn replacement(
    rules: &RuleSet,
    compiled: &RulePatterns,
    (text, languages): (&Text, Languages),
    span: LineSpan,
    is_matched: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (first, last) = (span.first.get(), span.last.get());
    if last.checked_sub(first)? > MAX_LINES {
        return None;
    }
    let lines: Option<Vec<&[u8]>> = (first..=last).map(|n| text.line(LineNo::new(n)?)).collect();
    let old = lines?.join(&b'\n');
    let old = old.strip_prefix(MARK).unwrap_or(&old);
    if old.len() > MAX_BYTES {
        return None;
    }
    let new = String::from_utf8(compiled.fixed(old)).ok()?;
    if new.as_bytes() == old
        || is_matched(&new)
        || matches!(rules.mask(new.as_bytes()), Cow::Owned(_))
    {
        return None;
    }
    match new.trim().is_empty() {
        true => deletion(text, languages, span.first, old),
        false => Some(new),
    }
}

/// Returns true if the expression of a rule matches new lines: one of them, or all of them joined
/// as one statement.
pub(super) fn is_matched(compiled: &RulePatterns, new: &str) -> bool {
    let joined = new.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    new.lines()
        .chain([joined.as_str()])
        .any(|line| compiled.pattern.is_match(line.as_bytes()))
}

/// Returns the replacement for deleted statements: an empty text, or `pass` if a block of Python
/// may become empty.
fn deletion(text: &Text, languages: Languages, first: LineNo, old: &[u8]) -> Option<String> {
    let Some(above) = code_above(text, languages, first) else {
        // Only the first line of a file has no code above it.
        return is_start(text, languages, first).then(String::new);
    };
    if languages.any_of(&["python"]) {
        let indent: String = String::from_utf8_lossy(old)
            .chars()
            .take_while(|c| c.is_whitespace())
            .collect();
        return match above.as_bytes().last()? {
            b':' => Some(format!("{indent}pass")),
            b',' | b'(' | b'[' | b'{' | b'\\' | b'=' => None,
            _ => Some(String::new()),
        };
    }
    let ends = match languages.any_of(&["ruby"]) {
        // A line that ends with an operator continues.
        true => !above.ends_with([
            ',', '.', '\\', '=', '(', '[', '+', '-', '*', '/', '&', '?', ':',
        ]),
        // After a condition without braces, the next statement would become its body.
        false => above.ends_with([';', '{', '}']) || above.ends_with("<?php"),
    };
    ends.then(String::new)
}

/// Returns the nearest line of code above a line, without white space around it. `None`: there is
/// none, or the lines are unknown.
fn code_above(text: &Text, languages: Languages, line: LineNo) -> Option<String> {
    let above = (1..=ABOVE).map_while(|n| LineNo::new(line.get().checked_sub(n)?));
    let mut lines =
        above.map_while(|n| Some(String::from_utf8_lossy(text.line(n)?).trim().to_owned()));
    lines.find(|line| !is_blank(line, languages))
}

/// Returns true if every line above is known, and none is code.
fn is_start(text: &Text, languages: Languages, line: LineNo) -> bool {
    let mut above = (1..line.get()).filter_map(LineNo::new);
    line.get() <= ABOVE
        && above.all(|n| {
            text.line(n)
                .is_some_and(|l| is_blank(String::from_utf8_lossy(l).trim(), languages))
        })
}

fn is_blank(line: &str, languages: Languages) -> bool {
    let comment = if languages.any_of(&["python", "ruby"]) {
        "#"
    } else {
        "//"
    };
    line.is_empty() || line.starts_with(comment)
}

#[cfg(test)]
mod tests {
    //! When a replacement is offered. The replacements themselves are in the samples of the
    //! catalogue.

    use crate::diff::{RepoPath, code};
    use crate::policy::RulesPolicy;
    use crate::rules::{RuleSet, Scope};

    /// Returns the replacements that the rules offer in a file, in the order of the findings.
    fn offered(path: &str, text: &str) -> Vec<Option<String>> {
        let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
        let mut found = Vec::new();
        rules.scan(
            &code::added(RepoPath::from(path), text.as_bytes().to_vec()),
            Scope::All,
            &mut found,
        );
        found
            .iter()
            .map(|f| f.replacement().map(str::to_owned))
            .collect()
    }

    fn some(text: &str) -> Vec<Option<String>> {
        vec![Some(text.to_owned())]
    }

    #[test]
    fn a_statement_is_deleted_only_where_the_rest_stays_valid() {
        assert_eq!(offered("a.py", "x = 1\nbreakpoint()\ny = 2\n"), some(""));
        assert_eq!(
            offered("a.py", "def f():\n    # look\n    breakpoint()\n"),
            some("    pass"),
            "an empty block"
        );
        assert_eq!(
            offered("a.py", "# look\n\nbreakpoint()\n"),
            some(""),
            "the first statement"
        );
        assert_eq!(offered("a.js", "f();\ndebugger;\n"), some(""));
        assert_eq!(
            offered("a.js", "if (x)\n  debugger;\nf();\n"),
            [None],
            "the next statement would be the body"
        );
        assert_eq!(offered("a.js", "else\n  debugger;\n"), [None]);
        assert_eq!(offered("a.rb", "x = a +\n  binding.pry\n"), [None]);
        assert_eq!(offered("a.rb", "def f\n  binding.pry\nend\n"), some(""));
        assert_eq!(
            offered("a.php", "<?php\nforeach ($all as $x)\n    var_dump($x);\n"),
            [None]
        );
        assert_eq!(offered("a.rs", "fn f() {\n    dbg!(x);\n}\n"), some(""));
    }

    #[test]
    fn a_line_that_the_rule_would_still_find_is_not_offered() {
        let text = "os.chmod(a, 0o777); os.chmod(b, stat.S_IRWXO)\n";
        assert!(
            offered("a.py", text).iter().all(Option::is_none),
            "the second call has no replacement"
        );
        let both = "const a = { rejectUnauthorized: false }, b = { rejectUnauthorized: false };\n";
        assert_eq!(
            offered("a.js", both)[0].as_deref(),
            Some(both.replace("false", "true").trim_end())
        );
    }

    #[test]
    fn comparisons_inside_of_expressions_keep_their_meaning() {
        assert_eq!(
            offered("a.js", "const bad = a + b === NaN;\n"),
            [None],
            "only a part of the operand"
        );
        assert_eq!(
            offered("a.js", "if (x && y.z !== NaN) {\n"),
            some("if (x && !Number.isNaN(y.z)) {")
        );
        assert_eq!(
            offered("a.rs", "let x = dbg!(a + b) * 2;\n"),
            [None],
            "without parentheses"
        );
    }

    #[test]
    fn a_line_with_a_secret_is_not_offered() {
        let key = crate::rules::sample::expand("${github-token:ghp}", "rewrite");
        let text =
            format!("import requests\nrequests.get(url, auth=('me', '{key}'), verify=False)\n");
        assert!(
            offered("a.py", &text).iter().all(Option::is_none),
            "{:?}",
            offered("a.py", &text)
        );
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_are_not_part_of_it() {
        assert_eq!(
            offered(
                "a.js",
                "\u{feff}const a = { rejectUnauthorized: false };\r\n"
            ),
            some("const a = { rejectUnauthorized: true };")
        );
        assert_eq!(
            offered(
                "a.py",
                "import requests\r\nr = requests.get(\r\n    u,\r\n    verify=False,\r\n)\r\n"
            ),
            some("    verify=True,")
        );
    }
}
