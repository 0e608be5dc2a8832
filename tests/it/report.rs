#![cfg(unix)]
//! Tests of the reports of the real binary: inert, valid, and the same verdict in every format.

use crate::support::{Repo, Run};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

const FORMATS: [&str; 12] = [
    "human", "json", "jsonl", "sarif", "github", "summary", "markdown", "gitlab", "rdjson",
    "junit", "dotenv", "html",
];

/// Returns true if a line is a workflow command that our log uses.
fn is_ours(format: &str, line: &str) -> bool {
    let ours = [
        "::group::",
        "::endgroup::",
        "::error ",
        "::warning ",
        "::notice ",
    ];
    format == "github" && ours.iter().any(|c| line.starts_with(c))
}

/// Creates a change with a finding on a line of each of these files.
fn repo_with_yaml_load_in(names: &[&[u8]]) -> Repo {
    let repo = Repo::new();
    for name in names {
        let path = repo.path().join(OsStr::from_bytes(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "import yaml\ndoc = yaml.load(text)\n").unwrap();
    }
    repo.git(&["add", "-A"]);
    repo
}

/// Runs `review staged` in a format, as in GitHub Actions.
fn in_actions(repo: &Repo, format: &str) -> Run {
    repo.reviewer(&["review", "staged", "--no-gate", "--format", format])
        .env("GITHUB_ACTIONS", "true")
        .env("CI", "true")
        .run(1)
}

fn active(text: &str) -> Vec<char> {
    text.chars()
        .filter(|c| *c != '\n' && claude_reviewer::untrusted::is_active(*c))
        .collect()
}

#[test]
fn inj_11_no_file_name_starts_a_workflow_command() {
    let repo = repo_with_yaml_load_in(&[
        b"::error::x.py",
        b"::set-output name=a::b/c.py",
        b"dir/::warning::y.py",
        b"a\n::stop-commands::t.py",
        b"b%0A::set-env name=P::q.py",
        b"##[error]z.py",
        b"##vso[task.complete]z.py",
    ]);
    for format in FORMATS {
        let run = in_actions(&repo, format);
        for line in run.stdout.lines().chain(run.stderr.lines()) {
            assert!(
                is_ours(format, line) || !line.trim_start().starts_with("::"),
                "{format}: {line:?}"
            );
            assert!(
                !line.contains("##[") && !line.contains("##vso["),
                "{format}: {line:?}"
            );
        }
    }
    let json: serde_json::Value = serde_json::from_str(&in_actions(&repo, "json").stdout).unwrap();
    let files: Vec<&str> = json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["file"].as_str())
        .collect();
    for name in ["::error::x.py", "a\n::stop-commands::t.py", "##[error]z.py"] {
        assert!(
            files.contains(&name),
            "JSON keeps the real name {name:?}: {files:?}"
        );
    }
}

#[test]
fn inj_10_nothing_in_a_change_reaches_the_terminal_alive() {
    let repo = Repo::new();
    let hostile = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\x08\u{202e}\u{200b}\u{2028}\x7f";
    repo.stage(
        "a.py",
        format!("# {hostile}\nimport yaml\ndoc = yaml.load(text) # {hostile}\n# {hostile}\n"),
    );
    let name = format!("b{}.py", hostile.replace('/', ""));
    repo.stage(&name, "import yaml\ndoc = yaml.load(text)\n");
    for format in FORMATS {
        let run = repo.review(&["staged", "--format", format], 1);
        assert_eq!(
            active(&run.stdout),
            Vec::<char>::new(),
            "{format}: {:?}",
            run.stdout
        );
        assert_eq!(
            active(&run.stderr),
            Vec::<char>::new(),
            "{format}: {:?}",
            run.stderr
        );
    }
    let shown = repo.review(&["staged"], 1).stdout;
    assert!(
        shown.contains(r"\x1b]0;owned\x07\x1b[2J\u{9b}31m\r\x08\u{202e}\u{200b}\u{2028}\x7f"),
        "{shown}"
    );
}

#[test]
fn inj_14_sarif_names_files_by_relative_encoded_addresses() {
    let repo = repo_with_yaml_load_in(&[
        b"file:/etc/a.py",
        b"a b#c?d%.py",
        b"caf\xe9.py",
        "日本.py".as_bytes(),
    ]);
    let log: serde_json::Value = serde_json::from_str(&in_actions(&repo, "sarif").stdout).unwrap();
    let mut uris: Vec<&str> = log["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].as_str())
        .collect();
    uris.sort_unstable();
    uris.dedup();
    let expected = [
        "%E6%97%A5%E6%9C%AC.py",
        "a%20b%23c%3Fd%25.py",
        "caf%E9.py",
        "file%3A/etc/a.py",
    ];
    assert_eq!(uris, expected);
}

/// Returns text in the form of a secret, generated so that this file contains none.
fn made_up(prefix: &[&str], alphabet: &[u8], length: usize, seed: u64) -> String {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(alphabet[(state >> 33) as usize % alphabet.len()])
    };
    prefix.concat() + &(0..length).map(|_| next()).collect::<String>()
}

#[test]
fn sec_08_no_report_shows_a_secret() {
    let base32 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let alphanumeric = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let added = made_up(&["AK", "IA"], base32, 16, 1);
    let before = made_up(&["AK", "IA"], base32, 16, 2);
    let in_long_line = made_up(&["AK", "IA"], base32, 16, 3);
    let password = made_up(&[], alphanumeric, 20, 4);
    let repo = Repo::new();
    // An old secret is not a finding, but is next to one.
    repo.stage("old.py", format!("KEY = \"{before}\"\nimport yaml\n"));
    repo.commit("old");
    repo.stage(
        "old.py",
        format!("KEY = \"{before}\"\nimport yaml\ndoc = yaml.load(text)\n"),
    );
    repo.stage("new.py", format!("a = 1\nkey = \"{added}\"\nb = 2\n"));
    repo.stage(
        "long.js",
        format!(
            "{}k=\"{in_long_line}\";{}\n",
            "a=1;".repeat(900),
            "b=2;".repeat(900)
        ),
    );
    repo.stage(
        "app.env",
        format!("DATABASE_URL=postgres://app:{password}@db7.prod.internal/app\n"),
    );
    for format in FORMATS {
        for extra in [&[][..], &["-v"], &["--color", "always"]] {
            let run = repo.review(&[&["staged", "--format", format], extra].concat(), 1);
            for secret in [&added, &before, &in_long_line, &password] {
                // Not even most of it.
                let part = &secret[secret.len() / 3..];
                assert!(
                    !run.stdout.contains(part) && !run.stderr.contains(part),
                    "{format}: {}",
                    run.stdout
                );
            }
        }
    }
    let human = repo.review(&["staged"], 1).stdout;
    for file in ["new.py:2", "long.js:1", "app.env:1"] {
        assert!(human.contains(file), "{file}\n{human}");
    }
}

#[test]
fn ci_11_a_dumb_terminal_of_40_columns_gets_plain_text() {
    let repo = Repo::new();
    repo.stage(
        "src/a.py",
        "import yaml\n\n\ndef read(text):\n\treturn yaml.load(text) if text and len(text) < 10000 else None\n",
    );
    for (key, value) in [("TERM", "dumb"), ("NO_COLOR", "1")] {
        let run = repo
            .reviewer(&["review", "staged"])
            .env(key, value)
            .env("COLUMNS", "40")
            .run(1);
        assert!(run.stdout.is_ascii(), "{}", run.stdout);
        assert_eq!(active(&run.stdout), Vec::<char>::new());
        for line in run.stdout.lines() {
            assert!(line.len() <= 40, "{line:?}");
        }
    }
    let colour = repo
        .reviewer(&["review", "staged", "--color", "always"])
        .run(1);
    assert!(
        colour.stdout.contains("\x1b["),
        "colour that is asked for comes"
    );
}

#[test]
fn ci_10_a_reader_that_leaves_does_not_change_the_exit_code() {
    let repo = Repo::new();
    for n in 0..400 {
        repo.write(
            &format!("src/m{n}.py"),
            "import yaml\ndoc = yaml.load(text)\n",
        );
    }
    repo.git(&["add", "-A"]);
    for format in FORMATS {
        let mut child = Command::new(crate::support::binary())
            .args(["review", "staged", "--format", format])
            .current_dir(repo.path())
            .env("HOME", repo.home())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let out = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{format}: {stderr}");
        assert!(
            !stderr.contains("panicked") && !stderr.contains("error:"),
            "{format}: {stderr}"
        );
        assert!(
            stderr
                .trim_end()
                .lines()
                .last()
                .unwrap()
                .starts_with("review: complete "),
            "{format}: {stderr}"
        );
    }
}

#[test]
fn every_format_ends_with_the_same_exit_code() {
    let repo = repo_with_yaml_load_in(&[b"a.py"]);
    for format in FORMATS {
        let run = repo.review(&["staged", "--format", format], 1);
        assert!(
            run.stderr.ends_with("findings=1 exit=1\n"),
            "{format}: {}",
            run.stderr
        );
    }
    repo.commit("with it");
    for format in FORMATS {
        let run = repo.review(&["staged", "--format", format], 0);
        assert!(
            run.stderr.ends_with("findings=0 exit=0\n"),
            "{format}: {}",
            run.stderr
        );
    }
    assert!(
        repo.review(&["staged"], 0)
            .stdout
            .starts_with("No changes to review")
    );
}

#[test]
fn no_progress_line_without_a_terminal() {
    let repo = repo_with_yaml_load_in(&[b"a.py"]);
    let run = repo
        .reviewer(&["review", "staged"])
        .env("TERM", "xterm-256color")
        .run(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn inj_10_and_11_a_teams_rule_speaks_inert_text() {
    let repo = Repo::new();
    repo.write(
        ".claude-reviewer.toml",
        "version = 1\n[rules]\npaths = [\"rules\"]\n",
    );
    repo.write(
        "rules/team.toml",
        r###"[[rule]]
id = "team-word"
title = "::error::t \u001b[2J ##[error]t"
category = "bug"
severity = "major"
literals = ["forbidden-word"]
pattern = 'forbidden-word'
message = "::stop-commands::x \u001b]0;x\u0007\n::set-output::y"
suggestion = "s\u202e"
"###,
    );
    repo.git(&["add", "-A"]);
    repo.commit("rules");
    repo.stage("x.txt", "forbidden-word\n");
    for format in FORMATS {
        let run = repo.review(&["staged", "--format", format], 1);
        assert!(
            format == "dotenv" || run.stdout.contains("team-word"),
            "the rules of the worktree look: {}",
            run.stdout
        );
        assert_eq!(active(&run.stdout), Vec::<char>::new(), "{format}");
        for line in run.stdout.lines() {
            assert!(
                is_ours(format, line) || !line.trim_start().starts_with("::"),
                "{format}: {line:?}"
            );
            assert!(!line.contains("##["), "{format}: {line:?}");
        }
    }
}

/// JSON uses its own enumeration of kinds, SARIF that of the review: they must agree, with a
/// different name for each source.
#[test]
fn every_source_has_its_own_kind_in_every_format() {
    let repo = Repo::new();
    repo.stage("a.txt", "one\n").commit("first");
    let id = repo.stage("a.txt", "two\n").commit("second");
    repo.write("c.patch", repo.git(&["show", "--format=", "HEAD"]));
    let push = format!("refs/heads/main {id} refs/heads/main {}\n", "0".repeat(40));
    for (args, kind) in [
        (&["staged"][..], "staged"),
        (&["unstaged"], "unstaged"),
        (&["changes"], "changes"),
        (&["commit", "HEAD"], "commit"),
        (&["commit", "HEAD~1..HEAD"], "commit"),
        (&["branch", "--base", "HEAD~1"], "branch"),
        (&["--hook", "pre-push"], "branch"),
        (&["patch", "c.patch"], "patch"),
        (&["code", "a.txt"], "code"),
    ] {
        let said = |format: &str| -> serde_json::Value {
            let args = [&["review"], args, &["--format", format]].concat();
            let run = repo.reviewer(&args).stdin(push.clone()).run(0);
            serde_json::from_str(&run.stdout).unwrap()
        };
        assert_eq!(said("json")["source"]["kind"], kind, "{args:?}");
        assert_eq!(
            said("sarif")["runs"][0]["properties"]["source"],
            kind,
            "{args:?}"
        );
    }
}
