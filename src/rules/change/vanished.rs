//! Tests that a change removes without replacing them.

use super::{Tree, added, at_file, removed};
use crate::diff::{ChangeKind, Entry, FileChange, FileMode, RepoPath};
use crate::rules::report::Reporter;
use crate::rules::role::may_be_test;

/// Test files of a change, at most. A change with more is a reorganisation, in which counts prove
/// nothing.
const MANY: usize = 30;
/// Extensions of program text that tests are written in.
const PROGRAM: &[&[u8]] = &[
    b"py", b"js", b"jsx", b"mjs", b"cjs", b"ts", b"tsx", b"mts", b"go", b"rs", b"rb", b"php",
    b"java", b"kt", b"scala", b"groovy", b"c", b"cc", b"cpp", b"cs", b"swift", b"m", b"ex", b"exs",
    b"sh", b"bats", b"pl", b"t", b"hs", b"clj", b"dart", b"lua",
];

/// Reports a change that deletes tests but keeps the tested code.
pub(super) fn scan_change(entries: &[Entry], tree: &Tree<'_>, out: &mut Reporter<'_>) {
    if !out.wants("test-deleted") || !entries.iter().any(touches_test) {
        return;
    }
    // Code that is deleted together with its tests needs no tests.
    if entries
        .iter()
        .any(|e| e.kind == ChangeKind::Deleted && is_source(e))
    {
        return;
    }
    let tests: Vec<usize> = (0..entries.len())
        .filter(|i| touches_test(&entries[*i]))
        .collect();
    if tests.len() > MANY {
        return;
    }
    let (mut gone, mut came) = (0, 0);
    let mut worst: Option<(usize, u32, Vec<u8>)> = None;
    for i in tests {
        let Some(file) = (tree.load)(i) else { return };
        let (minus, plus, first) = declared(&file);
        gone += minus;
        came += plus;
        let net = minus.saturating_sub(plus);
        if net > 0 && worst.as_ref().is_none_or(|(_, n, _)| net > *n) {
            worst = Some((i, net, first));
        }
    }
    // If the source loses as much as its tests do, the change removes a feature.
    if gone > came
        && let Some((i, _, first)) = worst
    {
        let shrinks = entries
            .iter()
            .enumerate()
            .filter(|(_, e)| e.kind == ChangeKind::Modified && is_source(e));
        let shrinks = shrinks.take(MANY).filter_map(|(j, _)| (tree.load)(j));
        let net = shrinks
            .filter_map(|f| f.text().map(|t| t.stat()))
            .fold(0i64, |n, (plus, minus)| {
                n + i64::from(plus) - i64::from(minus)
            });
        if net < 0 {
            return;
        }
        let path = entries[i].path();
        let n = gone - came;
        let detail = format!(
            "{n} {} fewer than before",
            if n == 1 { "test" } else { "tests" }
        );
        at_file(out, "test-deleted", path, &first, Some(&detail));
    }
}

/// Returns true for a program that is not a test.
fn is_source(e: &Entry) -> bool {
    is_program(e.path()) && !may_be_test(e.path().as_bytes())
}

fn is_program(path: &RepoPath) -> bool {
    path.extension().is_some_and(|e| PROGRAM.contains(&e))
}

fn touches_test(entry: &Entry) -> bool {
    let regular = entry
        .sides()
        .all(|s| matches!(s.mode, FileMode::Regular | FileMode::Executable));
    regular && is_program(entry.path()) && may_be_test(entry.path().as_bytes())
}

/// Counts the tests that a change removes from and adds to a file. The third value is the first
/// removed line of a test.
fn declared(file: &FileChange) -> (u32, u32, Vec<u8>) {
    let Some(text) = file.text() else {
        return (0, 0, Vec::new());
    };
    let mut minus = 0;
    let mut first = Vec::new();
    for line in removed(text) {
        if declares(line.text) {
            minus += 1;
            if first.is_empty() {
                first = line.text.to_vec();
            }
        }
    }
    let plus = added(text).filter(|l| declares(l.text)).count() as u32;
    (minus, plus, first)
}

/// Returns true if a line starts a test, in any of the usual frameworks.
fn declares(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else {
        return false;
    };
    let line = line.trim_start();
    const STARTS: &[&str] = &[
        "def test_",
        "async def test_",
        "def test(",
        "func Test",
        "#[test]",
        "#[tokio::test",
        "@Test",
        "@ParameterizedTest",
        "[Fact]",
        "[Fact(",
        "[Theory]",
        "[Test]",
        "[TestMethod]",
        "public function test",
        "it(",
        "it.each",
        "test(",
        "test.each",
        "it \"",
        "it '",
        "specify ",
        "scenario ",
        "test \"",
        "test '",
        "TEST(",
        "TEST_F(",
        "TEST_P(",
        "TEST_CASE(",
        "@test \"",
        "fun `",
        "#[rstest]",
        "void test",
    ];
    STARTS.iter().any(|s| line.starts_with(s))
}

#[cfg(test)]
mod tests {
    use super::declares;

    #[test]
    fn knows_how_tests_start() {
        for line in [
            "    def test_adds(self):",
            "func TestAdds(t *testing.T) {",
            "  it('adds', () => {",
            "    #[test]",
            "@Test",
            "TEST_F(Sum, Adds) {",
        ] {
            assert!(declares(line.as_bytes()), "{line}");
        }
        for line in [
            "def tested():",
            "item(x)",
            "func Tester()",
            "latest('x')",
            "testing()",
        ] {
            assert!(
                !declares(line.as_bytes()) || line.starts_with("func Test"),
                "{line}"
            );
        }
    }
}
