//! Tests of claims about lines that name a definition which the change, or the file of the line,
//! defines several times.

use super::*;

/// Returns the position of a claim about a line of an unchanged file that was read, with two
/// changed definitions of `load`.
fn placed(files: [&str; 2], caller: &str, text: &str, line: i64) -> String {
    let (old, new) = match files[0].rsplit_once('.').map(|(_, extension)| extension) {
        Some("go") => (
            "package a\n\nfunc load(p int) {\n}\n",
            "package a\n\nfunc load(p int, q int) {\n}\n",
        ),
        Some("py") => ("def load(p):\n    pass\n", "def load(p, q):\n    pass\n"),
        _ => ("function load(p) {\n}\n", "function load(p, q) {\n}\n"),
    };
    let changed = files.map(|path| (path, old, new));
    let used = if files[0] == files[1] {
        &changed[..1]
    } else {
        &changed
    };
    let mut case = ClaimCase::new(used)
        .unchanged(caller, text)
        .read(caller, 1, 99);
    case.group.related.changed = used.iter().map(|_| vec!["load".to_owned()]).collect();
    let quote = text.lines().nth(line as usize - 1).unwrap().trim();
    place(&case.anchor(claim(caller, line, quote)))
}

#[test]
fn of_two_changed_definitions_the_imported_one_is_meant() {
    let py = ["lib/one.py", "lib/two.py"];
    for (files, caller, text, line, expected) in [
        (
            py,
            "app.py",
            "from lib.two import load\nx = load(1)\n",
            2,
            "lib/two.py:1 as numbered",
        ),
        (
            py,
            "app.py",
            "from lib import one\nx = one.load(1)\n",
            2,
            "lib/one.py:1 as numbered",
        ),
        // By the qualifier before the name.
        (
            py,
            "app.py",
            "from lib import one, two\nx = two.load(1)\n",
            2,
            "lib/two.py:1 as numbered",
        ),
        (
            py,
            "app.py",
            "from lib import one, two as t\nx = t.load(1)\n",
            2,
            "lib/two.py:1 as numbered",
        ),
        // By an alias.
        (
            py,
            "app.py",
            "from lib.two import load as read\nx = read(1)\n",
            2,
            "lib/two.py:1 as numbered",
        ),
        // Both files are imported, or neither is.
        (
            py,
            "app.py",
            "from lib import one, two\nx = load(1)\n",
            2,
            "lib/one.py:1 loosely",
        ),
        (
            py,
            "app.py",
            "from lib.two import load\nfrom lib import one\nx = load(1)\n",
            3,
            "lib/one.py:1 loosely",
        ),
        (
            py,
            "app.py",
            "x = store.load(1)\n",
            1,
            "lib/one.py:1 loosely",
        ),
        (
            ["lib/one.js", "lib/two.js"],
            "app.ts",
            "import { load as read } from './lib/two'\nread(1)\n",
            2,
            "lib/two.js:1 as numbered",
        ),
        // By the folder that exports the name.
        (
            ["one/a.js", "two/b.js"],
            "app.js",
            "const { load } = require('./two')\nload(1)\n",
            2,
            "two/b.js:1 as numbered",
        ),
        // Files of one package use each other's names.
        (
            ["one/a.go", "two/b.go"],
            "two/c.go",
            "package two\n\nvar x = load(1)\n",
            3,
            "two/b.go:3 as numbered",
        ),
        (
            ["one/a.go", "one/b.go"],
            "one/c.go",
            "package one\n\nvar x = load(1)\n",
            3,
            "one/a.go:3 loosely",
        ),
    ] {
        assert_eq!(
            placed(files, caller, text, line),
            expected,
            "{caller}: {text}"
        );
    }
}

#[test]
fn a_definition_in_the_file_of_the_line_makes_a_claim_doubtful() {
    let one = ["lib/one.py"; 2];
    for (text, line, expected) in [
        (
            "from lib.one import load\nx = load(1)\n",
            2,
            "lib/one.py:1 as numbered",
        ),
        ("x = load(1)\n", 1, "lib/one.py:1 as numbered"),
        (
            "def load(p):\n    pass\nx = load(1)\n",
            3,
            "lib/one.py:1 loosely",
        ),
        (
            "from lib import one\ndef load(p):\n    pass\nx = one.load(1)\n",
            4,
            "lib/one.py:1 as numbered",
        ),
        (
            "from lib.one import load as read\ndef load(p):\n    pass\nx = read(1)\n",
            4,
            "lib/one.py:1 as numbered",
        ),
        // A nested function is visible only in its outer function.
        (
            "def a():\n    def load(p):\n        pass\n    x = load(1)\n",
            4,
            "lib/one.py:1 loosely",
        ),
        (
            "def a():\n    def load(p):\n        pass\ndef b():\n    x = load(1)\n",
            5,
            "lib/one.py:1 as numbered",
        ),
    ] {
        assert_eq!(placed(one, "app.py", text, line), expected, "{text}");
    }
}

#[test]
fn an_unchanged_line_of_a_changed_file_means_its_own_definition() {
    let body: String = (0..30).map(|i| format!("y{i} = {i}\n")).collect();
    let old = format!("def load(p):\n    pass\n{body}x = load(1)\n");
    let new = old.replace("(p)", "(p, q)");
    let other = ("def load(p):\n    pass\n", "def load(p, q):\n    pass\n");
    let mut case = ClaimCase::new(&[("lib/one.py", other.0, other.1), ("lib/two.py", &old, &new)])
        .unchanged("lib/two.py", &new)
        .read("lib/two.py", 1, 99);
    case.group.related.changed = vec![vec!["load".to_owned()]; 2];
    assert_eq!(
        place(&case.anchor(claim("lib/two.py", 33, "x = load(1)"))),
        "lib/two.py:1 as numbered"
    );
}
