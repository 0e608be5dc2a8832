//! Detects new files that a test runner loads in place of its own modules, or before the tests.
//! Pure.

use super::tests_of::is_test;
use crate::diff::RepoPath;
use std::collections::BTreeSet;

/// Modules of test runners, in any folder.
const RUNNERS: &[&str] = &[
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "unittest",
    "unittest2",
    "nose",
    "nose2",
    "doctest",
    "testtools",
    "behave",
    "hypothesis",
    "jest",
    "jasmine",
    "mocha",
    "chai",
    "sinon",
    "vitest",
    "qunit",
    "uvu",
    "ava",
    "rspec",
    "minitest",
    "cucumber",
    "phpunit",
    "codeception",
    "busted",
    "luaunit",
    "bats",
];
/// Modules that a Python test runner imports. They count only in folders that precede Python's own
/// library.
const LIBRARY: &[&str] = &[
    "abc",
    "argparse",
    "ast",
    "asyncio",
    "atexit",
    "bdb",
    "bisect",
    "builtins",
    "cmd",
    "code",
    "codecs",
    "collections",
    "configparser",
    "contextlib",
    "copy",
    "coverage",
    "dataclasses",
    "datetime",
    "difflib",
    "dis",
    "enum",
    "errno",
    "faulthandler",
    "fnmatch",
    "functools",
    "gc",
    "getpass",
    "glob",
    "hashlib",
    "heapq",
    "importlib",
    "inspect",
    "io",
    "itertools",
    "json",
    "keyword",
    "linecache",
    "locale",
    "logging",
    "mock",
    "multiprocessing",
    "operator",
    "os",
    "packaging",
    "pathlib",
    "pdb",
    "pickle",
    "pkgutil",
    "platform",
    "posixpath",
    "pprint",
    "queue",
    "random",
    "re",
    "reprlib",
    "runpy",
    "select",
    "selectors",
    "shlex",
    "shutil",
    "signal",
    "site",
    "socket",
    "stat",
    "string",
    "struct",
    "subprocess",
    "sys",
    "sysconfig",
    "tempfile",
    "textwrap",
    "threading",
    "time",
    "token",
    "tokenize",
    "tomllib",
    "traceback",
    "types",
    "typing",
    "warnings",
    "weakref",
    "xml",
    "zipfile",
    "zipimport",
    "zlib",
    "attr",
    "attrs",
    "exceptiongroup",
    "pygments",
    "py",
];
/// Modules that Python loads on startup.
const AT_START: &[&str] = &["sitecustomize", "usercustomize"];
/// File extensions of modules.
const MODULES: &[&str] = &[
    "py", "pyc", "pyd", "so", "pyw", "js", "cjs", "mjs", "ts", "cts", "mts", "rb", "php", "lua",
    "bash",
];

/// Returns the class of a new file, to follow "is", or `None` if a test runner does not load it by
/// itself.
pub(super) fn class(path: &RepoPath, tree: &BTreeSet<RepoPath>) -> Option<&'static str> {
    let text = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    let (folder, name) = text.rsplit_once('/').unwrap_or(("", &text));
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let is_module = MODULES.contains(&extension.rsplit('.').next().unwrap_or_default());
    // A package is identified by its folder. Files may be added to an existing one.
    let packages = new_folders(&text, tree);
    let packages = packages
        .iter()
        .map(|p| p.rsplit_once('/').unwrap_or(("", p)));
    let modules: Vec<(&str, &str)> = is_module
        .then_some((folder, stem))
        .into_iter()
        .chain(packages)
        .collect();
    if modules.iter().any(|(_, name)| AT_START.contains(name)) {
        return Some("a file that Python runs when it starts");
    }
    if modules.iter().any(|(_, name)| RUNNERS.contains(name)) {
        return Some("named like a module of a test runner");
    }
    let is_python = extension.starts_with("py") || extension.ends_with("so");
    if is_python
        && modules
            .iter()
            .any(|(folder, name)| LIBRARY.contains(name) && is_root(folder, tree))
    {
        return Some("named like a module that a test runner imports");
    }
    let is_loaded = matches!(name, "__init__.py" | "__main__.py") && has_tests_below(folder, tree);
    is_loaded.then_some("a file that is loaded before the tests beside or below it")
}

/// Returns the folders of a path that contain no file yet.
fn new_folders(path: &str, tree: &BTreeSet<RepoPath>) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
    ends.filter(|folder| !tree.iter().any(|f| is_below(f, folder)))
        .map(str::to_owned)
        .collect()
}

/// Returns true if a path is in a folder.
fn is_below(path: &RepoPath, folder: &str) -> bool {
    let path = String::from_utf8_lossy(path.as_bytes()).to_lowercase();
    folder.is_empty()
        || path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

/// Returns true if Python imports modules from a folder during a test run: the top, `src`, `lib`,
/// and folders with tests.
fn is_root(folder: &str, tree: &BTreeSet<RepoPath>) -> bool {
    matches!(folder, "" | "src" | "lib")
        || tree.iter().any(|f| {
            let path = String::from_utf8_lossy(f.as_bytes()).to_lowercase();
            path.rsplit_once('/').map_or("", |(folder, _)| folder) == folder && is_test(f)
        })
}

/// Returns true if a folder has tests.
fn has_tests_below(folder: &str, tree: &BTreeSet<RepoPath>) -> bool {
    tree.iter().any(|f| is_below(f, folder) && is_test(f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_files_that_a_test_runner_loads_are_found() {
        let tree = [
            "a.py",
            "pkg/mod.py",
            "pkg/tests/test_mod.py",
            "web/a.test.js",
            "other/x.py",
            "jest/kept.js",
        ];
        let tree: BTreeSet<RepoPath> = tree.into_iter().map(RepoPath::from).collect();
        for path in [
            "pytest.py",
            "pytest/__init__.py",
            "pkg/tests/pytest.py",
            "_pytest/assertion/rewrite.py",
            "unittest.py",
            "nose/core.py",
            "node_modules/mocha/index.js",
            "web/jest.js",
            "sitecustomize.py",
            "sub/usercustomize.py",
            "sitecustomize/__init__.py",
            "argparse.py",
            "src/inspect.py",
            "pkg/tests/json/__init__.py",
            "__init__.py",
            "pkg/__init__.py",
            "pkg/tests/__init__.py",
            "pkg/tests/__main__.py",
            "Pytest.py",
        ] {
            assert!(class(&RepoPath::from(path), &tree).is_some(), "{path}");
        }
        for path in [
            "b.py",
            "pkg/tests/test_more.py",
            "other/__init__.py",
            "new/__init__.py",
            "other/json.py",
            "src/app/logging.py",
            "types.ts",
            "jest/more.js",
            "docs/pytest.md",
            "src/re.rs",
        ] {
            assert_eq!(class(&RepoPath::from(path), &tree), None, "{path}");
        }
    }
}
