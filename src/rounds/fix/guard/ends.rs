//! Detects code that ends a test run with success, or keeps tests from running. Pure.
//!
//! The code under test runs in the test process, so this applies to all program text and not only
//! to tests.

use super::{SHELLS, added};
use crate::diff::RepoPath;
use crate::rules::is_program_text;
use regex::Regex;
use std::sync::LazyLock;

/// Words before a name that mark a definition instead of a call.
const DEFINITIONS: &[&str] = &[
    "def", "fn", "func", "function", "fun", "void", "sub", "static", "private", "public", "async",
];

/// A call that ends the process without a status or with success.
static EXIT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let receiver = r"(?:(?:sys|os|process|system|kernel|deno|bun|environment|builtins|libc|runtime|platform)\s*(?:\.|::)\s*)?";
    let status = r"(?:(?:code|status|arg)\s*=\s*)?(?:0+|true|false\s*\|\|\s*0|none|null|undefined|exit_success|\.success|(?:\w+::)*exitcode::success)?";
    let call = format!(
        r"(?i)(?:^|[^\w.$>-]|std::){receiver}(?:exit|quit|die|reallyexit)!?\s*\(\s*{status}\s*\)"
    );
    Regex::new(&call).ok()
});
/// Other ways to end a process with success, or to keep tests from running.
static OTHERS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Statements without parentheses, as in Ruby, Perl and PHP.
        r"^\s*exit!?(?:\s+(?:0|true))?\s*(?:;|$|if\s|unless\s)",
        r"(?i)\b_exit\s*\(\s*(?:[^1-9\s]|$)",
        r"\braise\s+SystemExit\s*(?:\(\s*(?:0|None)?\s*\)\s*)?(?:#|;|$)",
        r"\bprocess\s*\.\s*exitCode\s*=\s*(?:0|undefined|null)\b",
        r"\bpytest\s*\.\s*(?:skip|exit|xfail|importorskip)\b",
        r"\bfrom\s+pytest\s+import\b.*\b(?:skip|exit|xfail|importorskip)\b",
        r"\bmark\s*\.\s*(?:skip|skipif|xfail)\b",
        r"\bpytestmark\b",
        r"\b_pytest\b",
        r"\bpytest_plugins\b",
        r"\bcollect_ignore",
        r"\bdef\s+pytest_\w",
        r"\bdef\s+load_tests\b",
        r"\bSkipTest\b",
        r"\bunittest\s*\.\s*(?:skip|main\s*=)",
        r"\b__test__\s*=\s*False\b",
        r"\bTestCase\s*\.\s*\w+\s*=[^=]",
        r"\bfunc\s+TestMain\s*\(",
        r"\b(?:globalThis|global|window)\s*\.\s*(?:it|test|describe|expect|assert)\s*=[^=]",
    ]
    .iter()
    .filter_map(|pattern| Regex::new(pattern).ok())
    .collect()
});

/// Returns the first added line that ends a test run or keeps tests from running.
pub(super) fn ends<'t>(path: &RepoPath, before: &[u8], after: &'t [u8]) -> Option<&'t [u8]> {
    let name = String::from_utf8_lossy(path.file_name()).to_lowercase();
    // Shell scripts run in their own processes, where an early success is usual.
    let is_shell = name
        .rsplit_once('.')
        .is_some_and(|(_, extension)| SHELLS.contains(&extension));
    if is_shell || !is_program_text(path.as_bytes()) {
        return None;
    }
    added(before, after).into_iter().find(|line| is_end(line))
}

/// Returns true if a line can end a test run.
fn is_end(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    if super::tests_of::is_comment(line) {
        return false;
    }
    let mut matches = EXIT.iter().flat_map(|exit| exit.find_iter(&text));
    matches.any(|found| is_call(&text, &found)) || OTHERS.iter().any(|other| other.is_match(&text))
}

/// Returns true if a match is a call of a function, and not its definition.
fn is_call(text: &str, found: &regex::Match<'_>) -> bool {
    let first = found
        .as_str()
        .chars()
        .next()
        .map_or(0, |c| if c.is_alphanumeric() { 0 } else { c.len_utf8() });
    let last = text[..found.start() + first].split_whitespace().next_back();
    !last.is_some_and(|word| DEFINITIONS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(path: &str, line: &str) -> bool {
        ends(&RepoPath::from(path), b"", line.as_bytes()).is_some()
    }

    #[test]
    fn ways_to_end_a_test_run_with_success_are_found_in_every_program_text() {
        for (path, line) in [
            ("test_0.py", "import os; os._exit(0)"),
            ("a.py", "    os._exit(0)"),
            ("a.py", "    os._exit(code)"),
            ("a.py", "sys.exit()"),
            ("a.py", "x = 1; exit(0)"),
            ("a.py", "raise SystemExit"),
            ("a.py", "    raise SystemExit(0)"),
            ("a.py", "pytest.skip(allow_module_level=True)"),
            ("a.py", "from pytest import skip as s"),
            ("a.py", "raise unittest.SkipTest('x')"),
            (
                "tests/helper.py",
                "def pytest_collection_modifyitems(items): items.clear()",
            ),
            ("a.js", "process.exit(0);"),
            ("a.ts", "  process.exit();"),
            ("a.ts", "process.exitCode = 0;"),
            ("a.js", "globalThis.test = () => {};"),
            ("main_test.go", "func TestMain(m *testing.M) {}"),
            ("a.go", "\tos.Exit(0)"),
            ("src/a.rs", "    std::process::exit(0);"),
            ("src/a.rs", "    process::exit(0);"),
            ("a.c", "    _Exit(0);"),
            ("a.c", "  exit(EXIT_SUCCESS);"),
            ("A.java", "System.exit(0);"),
            ("a.cs", "Environment.Exit(0);"),
            ("a.rb", "at_exit { exit!(0) }"),
            ("a.rb", "exit! if true"),
            ("a.php", "exit(0);"),
            ("a.pl", "exit;"),
            ("a.ts", "Deno.exit(0)"),
        ] {
            assert!(is_found(path, line), "{path}: {line}");
        }
    }

    #[test]
    fn other_code_is_not_taken_for_an_end() {
        for (path, line) in [
            ("a.py", "    sys.exit(main())"),
            ("a.py", "    sys.exit(1)"),
            ("a.py", "    raise SystemExit(2)"),
            ("a.py", "    raise SystemExit(main())"),
            ("a.py", "    def exit(self):"),
            ("a.py", "    def __exit__(self, *args):"),
            ("a.py", "    self.editor.exit()"),
            ("a.py", "    with ExitStack() as stack:"),
            ("a.py", "    on_exit()"),
            ("a.py", "# sys.exit(0)"),
            ("a.js", "  selection.exit().remove();"),
            ("a.js", "  process.exit(1);"),
            ("a.rs", "    fn exit() {"),
            ("a.rs", "    stack.skip(1)"),
            ("run.sh", "exit 0"),
            ("docs/a.md", "pytest.skip()"),
            ("a.json", "\"exit\": 0"),
        ] {
            assert!(!is_found(path, line), "{path}: {line}");
        }
    }
}
