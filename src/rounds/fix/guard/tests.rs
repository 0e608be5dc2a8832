//! Tests of forbidden changes, with several members of each class.

use super::*;

fn of(path: &str, before: Option<&str>, after: &str) -> ChangedFile {
    ChangedFile {
        path: RepoPath::from(path),
        before: before.map(|b| b.as_bytes().to_vec()),
        after: after.as_bytes().to_vec(),
    }
}

fn why(changed: ChangedFile, of_findings: &[&str], allowed: &[&str]) -> Option<String> {
    let of_findings = of_findings.iter().map(|p| RepoPath::from(*p)).collect();
    let allowed = Globs::new(allowed).unwrap();
    let around = GuardContext {
        of_policy: vec!["quality/rules".to_owned(), "STYLE.md".to_owned()],
        of_hooks: vec!["etc/git".to_owned()],
        run_by_checks: [RepoPath::from("qa/run.py")].into(),
        tree: ["qa/run.py", "pkg/tests/test_a.py", "pkg/a.py"]
            .map(RepoPath::from)
            .into(),
    };
    let bounds = Bounds {
        allowed: &allowed,
        of_findings: &of_findings,
        around: &around,
    };
    violations(&[changed], &bounds).pop().map(|v| v.why)
}

#[test]
fn dsp_05_paths_of_what_checks_the_code_are_known_by_class() {
    for (class, paths) in [
        (
            "policy of the review",
            &[
                ".claude-reviewer.toml",
                ".claude-reviewer/dispositions.toml",
                "a/.claude-reviewer/rules/x.toml",
                ".reviews/x",
            ][..],
        ),
        (
            "named by the policy",
            &["quality/rules/a.toml", "sub/style.md"],
        ),
        (
            "a hook",
            &[
                ".husky/pre-commit",
                ".pre-commit-config.yaml",
                "lefthook.yml",
                "scripts/pre-push",
                ".lintstagedrc.json",
                "hooks/pre-commit.sh",
                "hooks/check.py",
                "tools/hooks/x",
                "etc/git/anything",
                "lefthook-local.json",
                "scripts/commit-msg.py",
            ],
        ),
        (
            "a CI file",
            &[
                ".github/workflows/ci.yml",
                ".gitlab-ci.yml",
                "Jenkinsfile",
                "ci/run.sh",
                ".circleci/config.yml",
                "azure-pipelines.yml",
                "bitbucket-pipelines.yml",
                ".travis.yml",
                "action.yml",
                ".buildkite/pipeline.yml",
                "deploy.Jenkinsfile",
                "wercker.yaml",
                "wercker.json",
                "screwdriver.yaml",
                ".build.yml",
                ".builds/x.yml",
                ".zuul.yaml",
                "zuul.d/jobs.yaml",
                "tools/ci/check.sh",
                "codecov.toml",
                "dev/ci/run.py",
                ".evergreen.yml",
                "jenkins/pipeline.groovy",
                "action.json",
            ],
        ),
        (
            "a file of git",
            &[
                ".gitattributes",
                ".gitignore",
                ".gitmodules",
                "sub/.gitignore",
                "docs/CODEOWNERS",
            ],
        ),
        (
            "a coding agent",
            &[
                "CLAUDE.md",
                ".claude/settings.json",
                ".mcp.json",
                "sub/AGENTS.md",
                ".cursor/rules",
            ],
        ),
        (
            "a configuration of tests",
            &[
                "conftest.py",
                "tests/conftest.py",
                "pytest.ini",
                "tox.ini",
                "jest.config.js",
                "web/vitest.config.ts",
                "phpunit.xml",
                "spec/spec_helper.rb",
                ".mocharc.yml",
                "a/__snapshots__/x.js.snap",
                ".config/nextest.toml",
                "playwright.config.ts",
                ".coveragerc",
                "sub/dir/.pytest.toml",
                "pytest.yaml",
                ".jest/setup.js",
                ".mocharc.json5",
                "features/step_definitions/a.rb",
            ],
        ),
        (
            "a linter or a checker",
            &[
                ".eslintrc.json",
                "eslint.config.js",
                ".flake8",
                "ruff.toml",
                "clippy.toml",
                "deny.toml",
                ".golangci.yml",
                "tsconfig.json",
                "mypy.ini",
                "setup.cfg",
                ".gitleaksignore",
                ".pylintrc.toml",
                ".yamllint.json",
                "biome.yaml",
            ],
        ),
        (
            "a build script",
            &[
                "build.rs",
                "setup.py",
                "Makefile",
                "sub/Makefile.am",
                "rules.mk",
                "CMakeLists.txt",
                "Dockerfile",
                "Dockerfile.prod",
                "docker-compose.yml",
                "build.gradle",
                "pom.xml",
                "webpack.config.js",
                ".cargo/config.toml",
                "justfile",
                "tasks.py",
                "app.csproj",
                "Rakefile",
                "flake.nix",
                "BUILD.bazel",
                "mise.toml",
                ".mise.toml",
                "mise.local.toml",
                "hatch.toml",
                "moon.yml",
                "pdm.toml",
                "sub/BUILD.gn",
            ],
        ),
        (
            "a tool runs",
            &[
                ".envrc",
                "sub/.envrc",
                ".vscode/tasks.json",
                ".vscode/launch.json",
                ".idea/x.xml",
                "a.code-workspace",
            ],
        ),
        (
            "a script that checks",
            &[
                "scripts/run-tests.sh",
                "bin/test",
                "test.sh",
                "run_tests.sh",
                "tools/lint",
                "dev/pre_check.ps1",
            ],
        ),
        ("run by a CI file", &["qa/run.py"]),
        (
            "Python runs when it starts",
            &["src/x.pth", "pkg.egg-info/entry_points.txt"],
        ),
    ] {
        for path in paths {
            let found = why(of(path, Some("a\n"), "b\n"), &[], &[]).unwrap_or_default();
            let known_elsewhere =
                found.starts_with("is ") && !found.contains(class) && path.contains(".gitleaks");
            assert!(found.contains(class) || known_elsewhere, "{path}: {found}");
            assert!(
                why(of(path, None, "b\n"), &[], &[]).is_some(),
                "{path} is created"
            );
            assert_eq!(
                why(of(path, Some("a\n"), "b\n"), &[], &[path]),
                None,
                "{path} is allowed"
            );
        }
    }
    for path in [
        "src/main.rs",
        "app/tasks.py",
        "src/ci.rs",
        "lib/build/tool.py",
        "README.md",
        "github.py",
        "src/hooks.ts",
        "config.py",
        "src/hooks/useTitle.ts",
        "hooks/useTitle.tsx",
        "src/ci/provider.rs",
        "src/check.py",
        "scripts/release.sh",
        "src/test_data_loader/moon.json",
        "app/action.py",
        "latest.sh",
        "docs/hooks.md",
    ] {
        assert_eq!(why(of(path, Some("a\n"), "b\n"), &[], &[]), None, "{path}");
    }
}

#[test]
fn dsp_05_manifests_may_change_dependencies_only() {
    let package =
        r#"{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}, "jest": {"bail": true}}"#;
    for (after, is_refused) in [
        (package.replace("\"a\": \"1\"", "\"a\": \"2\""), false),
        (package.replace("jest\"}", "true\"}"), true),
        (package.replace("true}", "false}"), true),
        (
            package.replace("{\"scripts\"", "{\"husky\": {}, \"scripts\""),
            true,
        ),
        ("{".to_owned(), true),
    ] {
        assert_eq!(
            why(of("web/package.json", Some(package), &after), &[], &[]).is_some(),
            is_refused,
            "{after}"
        );
    }
    let cargo = "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n[lints.clippy]\nunwrap_used = \"deny\"\n";
    for (after, is_refused) in [
        (cargo.replace("\"1\"", "\"2\""), false),
        (
            format!("{cargo}[target.'cfg(unix)'.dependencies]\nc = \"1\"\n"),
            true,
        ),
        (cargo.replace("deny", "allow"), true),
        (
            cargo.replace("name = \"a\"", "name = \"a\"\nbuild = \"x.rs\""),
            true,
        ),
        (format!("{cargo}[build-dependencies]\nc = \"1\"\n"), true),
    ] {
        assert_eq!(
            why(of("Cargo.toml", Some(cargo), &after), &[], &[]).is_some(),
            is_refused,
            "{after}"
        );
    }
    let python = "[project]\ndependencies = [\"a\"]\n[tool.pytest.ini_options]\naddopts = \"-x\"\n";
    assert_eq!(
        why(
            of(
                "pyproject.toml",
                Some(python),
                &python.replace("\"a\"", "\"b\"")
            ),
            &[],
            &[]
        ),
        None
    );
    assert!(
        why(
            of("pyproject.toml", Some(python), &python.replace("-x", "-q")),
            &[],
            &[]
        )
        .is_some()
    );
}

#[test]
fn dsp_05_assertions_stay_and_no_test_is_skipped() {
    let test = "from a import mean\n\ndef test_mean():\n    got = mean([1, 3])\n    assert (\n        got == 2\n    )\n";
    let path = "tests/test_a.py";
    for after in [
        test.replace("    assert (\n        got == 2\n    )\n", "    pass\n"),
        test.replace("got == 2", "got"),
        test.replace("    assert (", "    # assert ("),
        test.replace("def test_mean", "def mean_test"),
        test.replace("def test_mean", "@pytest.mark.skip\ndef test_mean"),
        test.replace("    got = mean([1, 3])", "    got = 2"),
        test.replace("    got =", "    return\n    got ="),
        test.replace("from a", "import pytest; pytest.skip('x')\nfrom a"),
        String::new(),
    ] {
        assert!(
            why(of(path, Some(test), &after), &[], &[]).is_some(),
            "{after}"
        );
        assert_eq!(why(of(path, Some(test), &after), &[], &["tests/**"]), None);
    }
    let more = format!("{test}\ndef test_empty():\n    assert mean([]) == 0\n");
    assert_eq!(
        why(of(path, Some(test), &more), &[], &[]),
        None,
        "a test more"
    );
    let import = test.replace("from a import", "from b import");
    assert!(why(of(path, Some(test), &import), &[], &[]).is_some());
    assert_eq!(
        why(of(path, Some(test), &import), &[path], &[]),
        None,
        "a finding is about the test"
    );
    assert!(
        why(
            of(path, Some(test), &test.replace("== 2", "== 3")),
            &[path],
            &[]
        )
        .is_some()
    );
}

#[test]
fn dsp_05_assertions_in_other_languages_and_beside_code_stay() {
    for (path, before, check) in [
        (
            "src/a.rs",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn x() {\n        assert_eq!(a(), ());\n    }\n}\n",
            "        assert_eq!(a(), ());\n",
        ),
        (
            "src/a.test.ts",
            "it('adds', () => {\n  expect(add(1, 2)).toBe(3);\n});\n",
            "  expect(add(1, 2)).toBe(3);\n",
        ),
        (
            "a_test.go",
            "func TestA(t *testing.T) {\n\tif a() != 1 {\n\t\tt.Fatal(\"a\")\n\t}\n}\n",
            "\t\tt.Fatal(\"a\")\n",
        ),
        (
            "src/test/java/ATest.java",
            "@Test\nvoid a() {\n  assertEquals(1, a());\n}\n",
            "  assertEquals(1, a());\n",
        ),
        (
            "spec/a_spec.rb",
            "it 'adds' do\n  expect(add).to eq 3\nend\n",
            "  expect(add).to eq 3\n",
        ),
        (
            "tests/ATest.php",
            "public function testA() {\n  $this->assertSame(1, a());\n}\n",
            "  $this->assertSame(1, a());\n",
        ),
    ] {
        assert!(
            why(
                of(path, Some(before), &before.replace(check, "")),
                &[path],
                &[]
            )
            .is_some(),
            "{path}"
        );
        assert_eq!(
            why(of(path, Some(before), before), &[], &[]),
            None,
            "{path}"
        );
    }
    let rust = "fn a() -> u8 {\n    1\n}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn x() {\n        assert_eq!(super::a(), 1);\n    }\n}\n";
    assert_eq!(
        why(
            of(
                "src/a.rs",
                Some(rust),
                &rust.replace("    1\n", "    2 - 1\n")
            ),
            &[],
            &[]
        ),
        None,
        "code may change"
    );
}

#[test]
fn dsp_05_suppressions_and_emptied_files_are_no_fixes() {
    for comment in [
        "# claude-reviewer: ignore[eval-call] fine",
        "# noqa",
        "// eslint-disable-line",
        "#[allow(dead_code)]",
        "# type: ignore",
        "// NOLINT",
    ] {
        assert!(
            why(
                of("src/a.x", Some("a\n"), &format!("a {comment}\n")),
                &[],
                &[]
            )
            .is_some(),
            "{comment}"
        );
        assert_eq!(
            why(
                of("src/a.x", Some(&format!("a {comment}\n")), "b\n"),
                &[],
                &[]
            ),
            None,
            "{comment} goes"
        );
    }
    assert!(why(of("src/a.py", Some("a\n"), "\n"), &[], &[]).is_some());
}

#[test]
fn dsp_05_new_files_that_end_a_test_run_or_shadow_its_runner_are_refused() {
    for (path, text) in [
        ("test_0.py", "import os\nos._exit(0)\n"),
        ("tests/test_0.py", "import sys\n\nsys.exit(0)\n"),
        (
            "tests/__init__.py",
            "import pytest\npytest.skip(allow_module_level=True)\n",
        ),
        ("pkg/tests/__init__.py", ""),
        ("pkg/__init__.py", "x = 1\n"),
        ("pytest.py", "print('1 passed')\n"),
        ("unittest/__init__.py", ""),
        ("mocha.js", "console.log('ok')\n"),
        ("sitecustomize.py", "x = 1\n"),
        ("a.pth", "import os\n"),
        ("argparse.py", "x = 1\n"),
        ("pkg/tests/conftest.py", "x = 1\n"),
        ("pkg/helper.py", "import os\nos._exit(0)\n"),
        ("a.test.js", "describe.only('x', () => {});\n"),
        (
            "main_test.go",
            "package a\nfunc TestMain(m *testing.M) {}\n",
        ),
        ("tests/a.rs", "#[test]\nfn a() { std::process::exit(0) }\n"),
        ("spec/a_spec.rb", "at_exit { exit! }\nexit!\n"),
    ] {
        assert!(why(of(path, None, text), &[], &[]).is_some(), "{path}");
        assert_eq!(
            why(of(path, None, text), &[], &[path]),
            None,
            "{path} is allowed"
        );
    }
    for (path, text) in [
        (
            "tests/test_b.py",
            "def test_b():\n    class Stub:\n        pass\n    if not Stub:\n        return\n    assert b() == 1\n",
        ),
        ("src/new/__init__.py", "from .a import b\n"),
        ("src/cli.py", "def main():\n    sys.exit(run())\n"),
        (
            "a.test.js",
            "it('adds', () => { expect(add(1, 2)).toBe(3); });\n",
        ),
    ] {
        assert_eq!(why(of(path, None, text), &[], &[]), None, "{path}");
    }
}

#[test]
fn dsp_05_code_under_test_does_not_end_the_test_run() {
    let code = "def mean(all, n):\n    return sum(all) / n\n";
    for line in [
        "os._exit(0)",
        "    raise unittest.SkipTest",
        "sys.exit()",
        "pytest.skip('x', allow_module_level=True)",
    ] {
        assert!(
            why(
                of("a.py", Some(code), &format!("{line}\n{code}")),
                &["a.py"],
                &[]
            )
            .is_some(),
            "{line}"
        );
        assert_eq!(
            why(
                of(
                    "a.py",
                    Some(&format!("{line}\n{code}")),
                    &format!("{line}\n# x\n{code}")
                ),
                &[],
                &[]
            ),
            None,
            "{line} was there"
        );
    }
}

#[test]
fn dsp_05_examples_features_and_helpers_of_tests_are_checks() {
    let python = "def f(x):\n    \"\"\"\n    >>> f(1)\n    2\n    \"\"\"\n    return x + 1\n";
    let rust = "/// ```\n/// assert_eq!(a::one(), 1);\n/// ```\npub fn one() -> u8 {\n    1\n}\n";
    let elixir = "  @doc \"\"\"\n      iex> A.one()\n      1\n  \"\"\"\n  def one, do: 1\n";
    for (path, before, old, new) in [
        ("doctest_me.py", python, "    2\n", "    3\n"),
        ("a.py", python, "    >>> f(1)\n    2\n", ""),
        ("docs/a.rst", "Text\n\n>>> f(1)\n2\n\nmore\n", "2\n", "3\n"),
        ("src/a.rs", rust, "one(), 1", "one(), 2"),
        ("lib/a.ex", elixir, "      1\n", "      2\n"),
        (
            "features/a.feature",
            "Scenario: a\n  Then I see 1\n",
            "see 1",
            "see 2",
        ),
        ("features/steps/a.py", "assert x == 1\n", "x == 1", "x == 2"),
        ("a.robot", "Should Be Equal  1  1\n", "1  1", "2  2"),
        (
            "testing.py",
            "def check(a, b):\n    assert a == b\n",
            "assert a == b",
            "pass",
        ),
        (
            "lib/assertions.rb",
            "def same(a, b)\n  assert_equal a, b\nend\n",
            "assert_equal a, b",
            "true",
        ),
    ] {
        assert!(
            why(
                of(path, Some(before), &before.replace(old, new)),
                &[path],
                &[]
            )
            .is_some(),
            "{path}"
        );
        assert_eq!(
            why(
                of(path, Some(before), &before.replace(old, new)),
                &[],
                &[path]
            ),
            None,
            "{path} is allowed"
        );
    }
    for (path, before, old, new) in [
        ("a.py", python, "x + 1", "1 + x"),
        ("src/a.rs", rust, "    1\n", "    2 - 1\n"),
        (
            "testing.py",
            "def check(a, b):\n    x = 1\n    assert a == b\n",
            "x = 1",
            "x = 2",
        ),
    ] {
        assert_eq!(
            why(of(path, Some(before), &before.replace(old, new)), &[], &[]),
            None,
            "{path}"
        );
    }
    let more = python.replace("    2\n", "    2\n    >>> f(2)\n    3\n");
    assert_eq!(
        why(of("a.py", Some(python), &more), &[], &[]),
        None,
        "an example more"
    );
}
