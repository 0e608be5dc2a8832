//! What a fix may not change.

use super::*;

#[test]
fn dsp_05_a_fix_does_not_touch_what_checks_the_code() {
    let fixed = edit("a.py", BAD, GOOD);
    for (edits, reason) in [
        (
            create("conftest.py", "collect_ignore = ['a']\n"),
            "conftest.py is a configuration of tests; to allow it: --allow conftest.py",
        ),
        (
            create(".github/workflows/x.yml", "on: push\n"),
            "is a CI file",
        ),
        (
            create(".claude-reviewer.toml", "version = 1\nblock_on = []\n"),
            "is policy of the review",
        ),
        (
            create(".claude-reviewer/dispositions.toml", "version = 1\n"),
            "is policy of the review",
        ),
        (create(".gitattributes", "*.py -diff\n"), "is a file of git"),
        (create("Makefile", "all:\n"), "is a build script"),
        (create(".husky/pre-commit", "exit 0\n"), "is a hook"),
        (
            edit(
                "a.py",
                "import os\n",
                "import os  # claude-reviewer: ignore[eval-call] fine\n",
            ),
            "turns off a check",
        ),
    ] {
        let case = Case::new(vec![vec![fixed.clone(), edits]]);
        let run = case.refused(&["F1"], 1, reason);
        assert!(
            run.stderr
                .contains("hint: to permit it: claude-reviewer fix F1 --session "),
            "{}",
            run.stderr
        );
        assert_eq!(case.verdicts(), ["forbidden"; 3]);
    }
    let case = Case::new(vec![vec![fixed, create("conftest.py", "import os\n")]]);
    let run = case.fix(&["F1", "--allow", "conftest.py"]);
    assert_eq!(
        (run.code, case.text("conftest.py").as_str()),
        (0, "import os\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn dsp_05_a_fix_does_not_end_the_test_run_or_replace_its_runner() {
    let fixed = edit("a.py", BAD, GOOD);
    for (edits, reason) in [
        (
            create("test_0.py", "import os\nos._exit(0)\n"),
            "can end a test run with success",
        ),
        (
            create(
                "tests/__init__.py",
                "import pytest\npytest.skip(allow_module_level=True)\n",
            ),
            "loaded before the tests",
        ),
        (
            create("pytest.py", "print('1 passed')\n"),
            "named like a module of a test runner",
        ),
        (create("a.pth", "import os\n"), "Python runs when it starts"),
        (
            edit("a.py", "import os\n", "import os\nos._exit(0)\n"),
            "can end a test run with success",
        ),
        (edit("qa/run.py", "1", "2"), "run by a CI file"),
        (edit("lib/checks/all", "1", "2"), "run by a CI file"),
        (create("etc/githooks.d/x", "1\n"), "is a hook"),
    ] {
        let case = Case::new(vec![vec![fixed.clone(), edits]]);
        case.repo
            .stage("tests/test_a.py", "def test_a():\n    assert 1\n")
            .stage("qa/run.py", "x = 1\n");
        case.repo
            .stage("lib/checks/all", "x = 1\n")
            .stage("package.json", r#"{"scripts": {"lint": "lib/checks/all"}}"#);
        case.repo
            .stage(".gitlab-ci.yml", "a:\n  script:\n    - python qa/run.py\n")
            .commit("checks");
        case.repo
            .git(&["config", "core.hooksPath", "etc/githooks.d"]);
        case.refused(&["F1"], 1, reason);
        assert_eq!(case.verdicts(), ["forbidden"; 3]);
    }
}

#[test]
fn dsp_05_an_assertion_that_goes_is_no_fix() {
    let test = "from a import mean\n\n\ndef test_mean():\n    assert mean([2], 1) == 2\n";
    for edits in [
        edit(
            "tests/test_a.py",
            "    assert mean([2], 1) == 2\n",
            "    pass\n",
        ),
        edit("tests/test_a.py", "== 2", ">= 2"),
        edit(
            "tests/test_a.py",
            "def test_mean",
            "@pytest.mark.skip\ndef test_mean",
        ),
    ] {
        let case = Case::new(vec![vec![edit("a.py", BAD, GOOD), edits]]);
        case.repo.stage("tests/test_a.py", test).commit("test");
        case.refused(&["F1"], 1, "tests/test_a.py");
        assert_eq!(case.verdicts(), ["forbidden"; 3]);
    }
}

#[test]
fn dsp_05_hostile_paths_reach_nothing() {
    let outside = crate::support::temp_dir();
    let absolute = outside.path().join("x.py").display().to_string();
    for hostile in [
        create("../x.py", "x\n"),
        create(&absolute, "x\n"),
        create("~/x.py", "x\n"),
        create(".git/hooks/pre-commit", "x\n"),
        create("sub/.GIT/config", "x\n"),
        create("link/x.py", "x\n"),
        create("a.py", "x\n"),
        create("a.py/b.py", "x\n"),
        create(".env", "x\n"),
        create("b\u{202e}.py", "x\n"),
        edit("../README", "a", "b"),
        edit("link/victim", "victim", "x"),
        edit("README", "", "b"),
    ] {
        let case = Case::new(vec![vec![hostile]]);
        std::fs::write(outside.path().join("victim"), "victim\n").unwrap();
        std::os::unix::fs::symlink(outside.path(), case.repo.path().join("link")).unwrap();
        case.refused(
            &["F1"],
            1,
            "no fix of F1 was verified, and the worktree is unchanged: ",
        );
        assert!(
            case.verdicts()
                .iter()
                .all(|v| v == "no_change" || v == "rejected")
        );
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
        assert_eq!(
            std::fs::read_to_string(outside.path().join("victim")).unwrap(),
            "victim\n"
        );
    }
}
