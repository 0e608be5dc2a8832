//! Tests of the whole command line: help, errors, exit codes, completions.

use crate::support::{Repo, reviewer};
use std::os::unix::ffi::OsStringExt as _;

/// An unfinished merge: a finding that every release will report.
const BAD: &str = "<<<<<<< HEAD\none\n=======\ntwo\n>>>>>>> topic\n";

const SUBCOMMANDS: [&str; 10] = [
    "review",
    "install-hooks",
    "policy",
    "doctor",
    "rules",
    "history",
    "complete",
    "serve-mcp",
    "completions",
    "man",
];

#[test]
fn version_and_help_go_to_stdout() {
    let repo = Repo::new();
    let version = repo.reviewer(&["--version"]).run(0);
    assert_eq!(
        version.stdout,
        concat!("claude-reviewer ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let help = repo.reviewer(&["--help"]).run(0);
    for name in SUBCOMMANDS {
        assert!(
            help.stdout.contains(&format!("\n  {name} ")),
            "{name}: {}",
            help.stdout
        );
        let own = repo.reviewer(&[name, "--help"]).run(0);
        assert!(
            own.stdout
                .contains(&format!("Usage: claude-reviewer {name}")),
            "{}",
            own.stdout
        );
        assert_eq!(own.stderr, "");
    }
    assert_eq!(help.stderr, "");
}

#[test]
fn a_misspelt_word_names_the_nearest_one() {
    let repo = Repo::new();
    for (args, meant) in [
        (&["reviw"][..], "'review'"),
        (&["review", "stagd"], "'staged'"),
        (&["review", "--fromat", "json"], "'--format'"),
        (&["review", "--format", "jsn"], "'json'"),
        (&["install-hooks", "--pre-comit"], "'--pre-commit'"),
        (&["completions", "bsh"], "'bash'"),
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(
            run.stderr.contains("tip: ") && run.stderr.contains(meant),
            "{args:?}: {}",
            run.stderr
        );
        assert_eq!(run.stdout, "", "{args:?}");
    }
    let run = repo.reviewer(&[]).run(2);
    assert!(
        run.stderr.contains("Usage: claude-reviewer"),
        "{}",
        run.stderr
    );
}

#[test]
fn the_exit_code_follows_the_verdict_in_every_format() {
    for format in ["human", "json", "sarif"] {
        let repo = Repo::new();
        repo.review(&["--format", format, "staged"], 0);
        repo.stage("fine.txt", "fine\n")
            .review(&["--format", format, "staged"], 0);
        repo.review(&["staged", "--format", format, "--backend", "claude"], 3);
        repo.review(
            &[
                "staged",
                "--format",
                format,
                "--backend",
                "claude",
                "--on-incomplete",
                "warn",
            ],
            0,
        );
        repo.stage("merge.txt", BAD)
            .review(&["--format", format, "staged"], 1);
        repo.review(&["staged", "--format", format, "--backend", "claude"], 1);
        repo.review(&["--format", format, "--exit-zero", "staged"], 0);
        repo.review(&["--format", format, "commit", "nope"], 2);
    }
}

#[test]
fn the_last_line_of_stderr_sums_the_review_up() {
    let repo = Repo::new();
    let last = |args: &[&str], code| {
        repo.review(args, code)
            .stderr
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    let starts = |line: &str, start: &str| assert!(line.starts_with(start), "{line}");
    starts(&last(&["staged"], 0), "review: complete files=0/0 ");
    repo.stage("fine.txt", "fine\n").stage("merge.txt", BAD);
    let line = last(&["staged"], 1);
    starts(
        &line,
        "review: complete files=2/2 backend=rules findings=1 ",
    );
    assert!(line.ends_with(" exit=1"), "{line}");
    starts(&last(&["commit", "nope"], 2), "review: incomplete ");
    starts(&last(&["staged", "--quiet"], 1), "review: complete ");
}

#[test]
fn an_error_has_its_causes_and_hints_on_lines_of_their_own() {
    let repo = Repo::new();
    repo.git(&["config", "core.hooksPath", "/nowhere/hooks"]);
    let run = repo.reviewer(&["install-hooks"]).run(2);
    let kinds: Vec<_> = run
        .stderr
        .lines()
        .filter_map(|l| Some(l.split_once(": ")?.0))
        .collect();
    assert_eq!(kinds, ["error", "hint", "hint"], "{}", run.stderr);
    let run = repo.reviewer(&["-C", "nowhere", "review"]).run(2);
    assert!(run.stderr.contains("\ncaused by: "), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}

#[test]
fn inj_10_an_error_shows_the_control_characters_of_what_it_names() {
    let repo = Repo::new();
    for args in [
        &[
            "-C",
            "no\x1b[2J\x1b]0;owned\x07\u{202e}\nerror: fake",
            "review",
            "staged",
        ][..],
        &["review", "commit", "\x1b[31mred\r"],
        &["--config", "\x1b[2J.toml", "review", "staged"],
        &["review", "patch", "\u{9b}2J\x1b.diff"],
    ] {
        let run = repo.reviewer(args).run(2);
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(
            !said.contains(['\x1b', '\x07', '\r', '\u{9b}', '\u{202e}']),
            "{args:?}: {said:?}"
        );
        assert!(!said.contains("\nerror: fake"), "{said}");
    }
}

#[test]
fn inj_10_an_argument_that_is_refused_shows_its_control_characters() {
    let repo = Repo::new();
    let evil = "\x1b[31mx\u{9b}2J\u{202e}\r\nerror: fake\n##[error]fake\n::error::fake";
    let option = format!("--{evil}");
    for args in [
        &["review", "staged", "--format", evil][..],
        &["review", "staged", "--report", evil],
        &["review", "staged", "--jobs", evil],
        &["review", evil],
        &["review", "staged", evil],
        &["review", "staged", &option],
        &["review", "staged", "--color=always", &option],
        &[evil],
        &[&option],
        &["rules", "explain", evil, evil],
    ] {
        let run = repo.reviewer(args).run(2);
        let active = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!run.stderr.contains(active), "{args:?}: {:?}", run.stderr);
        assert!(
            run.stderr.contains("\\x1b") && run.stderr.contains("\\u{202e}"),
            "{args:?}: {}",
            run.stderr
        );
        for start in ["\nerror: fake", "##[error]", "\n::error::"] {
            assert!(!run.stderr.contains(start), "{args:?}: {}", run.stderr);
        }
        assert_eq!(run.stdout, "", "{args:?}");
    }
    let odd = std::ffi::OsString::from_vec(b"--\xff\x1b[2J".to_vec());
    let out = std::process::Command::new(crate::support::binary())
        .arg("review")
        .arg(odd)
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(
        !said.contains('\x1b') && said.contains("review: incomplete "),
        "{said}"
    );
}

#[test]
fn the_summary_is_the_last_line_of_a_review_whose_arguments_are_refused_too() {
    let repo = Repo::new();
    let last = |args: &[&str]| {
        repo.reviewer(args)
            .run(2)
            .stderr
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned()
    };
    for args in [
        &["review", "--nope"][..],
        &["review", "stagd"],
        &["review", "staged", "--format", "\x1b"],
        &["-q", "--color", "never", "review", "--nope"],
        &["-qC", ".", "--config=x", "review", "--nope"],
        &["-C.", "review", "staged", "--jobs", "0"],
        &["--config", "policy", "review", "commit"],
    ] {
        let line = last(args);
        assert_eq!(
            line, "review: incomplete files=0/0 backend=none findings=0 exit=2",
            "{args:?}"
        );
    }
    for args in [
        &["policy", "review"][..],
        &["reviw"],
        &["-C", "review", "nope"],
        &[],
        &["--config", "review"],
    ] {
        assert!(!last(args).starts_with("review: "), "{args:?}");
    }
    let help = repo.reviewer(&["review", "--help"]).run(0);
    assert!(
        !help.stdout.contains("review: incomplete") && help.stderr.is_empty(),
        "{}",
        help.stderr
    );
}

#[test]
fn two_reports_for_one_file_are_refused() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n").write("sub/keep", "");
    std::os::unix::fs::symlink("f", repo.path().join("link")).unwrap();
    for args in [
        &["--report", "json=f", "--report", "sarif=f"][..],
        &["--report", "json=f", "--report", "sarif=./sub/../f"],
        &["--report", "json=f", "--output", "f"],
        &["--report", "json=f", "--output", "./f"],
    ] {
        let run = repo.review(&[&["staged"], args].concat(), 2);
        assert!(
            run.stderr.contains("two reports would be written to ")
                && run.stderr.contains("\nhint: "),
            "{args:?}"
        );
        assert!(run.stderr.ends_with(" exit=2\n"), "{}", run.stderr);
        assert!(!repo.path().join("f").exists(), "{args:?}");
    }
    repo.write("f", "before");
    repo.review(
        &["staged", "--report", "json=f", "--report", "sarif=link"],
        2,
    );
    assert_eq!(
        std::fs::read_to_string(repo.path().join("f")).unwrap(),
        "before"
    );
    for args in [
        &["--report", "json=-"][..],
        &["--output", "-", "--format", "json"],
    ] {
        let run = repo.review(&[&["staged"], args].concat(), 2);
        assert!(
            run.stderr
                .contains("hint: for standard output: --format json "),
            "{}",
            run.stderr
        );
    }
    repo.review(
        &[
            "staged", "--report", "json=f", "--report", "sarif=g", "--output", "h",
        ],
        0,
    );
    repo.review(
        &[
            "staged",
            "--report",
            "json=/dev/null",
            "--report",
            "sarif=/dev/null",
        ],
        0,
    );
    for name in ["f", "g", "h"] {
        assert!(
            std::fs::read_to_string(repo.path().join(name))
                .unwrap()
                .len()
                > 20,
            "{name}"
        );
    }
}

#[test]
fn dir_moves_the_run_and_relative_names_with_it() {
    let repo = Repo::new();
    repo.stage("deep/merge.txt", BAD);
    let outside = |args: &[&str]| reviewer(&repo.home(), &repo.home(), args);
    outside(&["-C", "../repo", "review", "staged"]).run(1);
    outside(&[
        "-C",
        "../repo/deep",
        "review",
        "staged",
        "--output",
        "out.json",
        "--format",
        "json",
    ])
    .run(1);
    assert!(repo.path().join("deep/out.json").is_file());
    outside(&["-C", "../nowhere", "review", "staged"]).run(2);
    outside(&["-C", "../repo/deep/merge.txt", "review", "staged"]).run(2);
    outside(&["review", "staged"]).run(2);
}

#[test]
fn cfg_10_odd_environments_neither_panic_nor_change_the_verdict() {
    let repo = Repo::new();
    repo.stage("merge.txt", BAD);
    let odd = std::ffi::OsString::from_vec(b"\xff\xfe".to_vec());
    for name in [
        "HOME",
        "XDG_CONFIG_HOME",
        "COLUMNS",
        "TERM",
        "LC_ALL",
        "CI",
        "NO_COLOR",
    ] {
        let empty = repo.reviewer(&["review", "staged"]).env(name, "").run(1);
        let strange = repo.reviewer(&["review", "staged"]).env(name, &odd).run(1);
        assert!(
            !empty.stderr.contains("panicked") && !strange.stderr.contains("panicked"),
            "{name}"
        );
    }
}

#[test]
fn a_report_that_cannot_be_written_is_no_pass() {
    let repo = Repo::new();
    repo.stage("fine.txt", "fine\n");
    let status = std::process::Command::new(crate::support::binary())
        .args(["review", "staged"])
        .current_dir(repo.path())
        .env("HOME", repo.home())
        .stdout(
            std::fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap(),
        )
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(3));
    repo.review(&["staged", "--output", "/dev/full"], 2);
    repo.review(&["staged", "--output", "no/such/folder/out.json"], 2);
}

#[test]
fn completions_are_scripts_that_their_shell_accepts() {
    let repo = Repo::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = repo.reviewer(&["completions", shell]).run(0).stdout;
        for name in SUBCOMMANDS {
            assert!(script.contains(name), "{shell} does not know {name}");
        }
        let file = repo.home().join(shell);
        std::fs::write(&file, &script).unwrap();
        // A shell that is not installed cannot be tested; bash exists wherever these tests run.
        if let Ok(out) = std::process::Command::new(shell)
            .arg("-n")
            .arg(&file)
            .output()
        {
            assert!(
                out.status.success(),
                "{shell}: {}",
                String::from_utf8_lossy(&out.stderr)
            );
        } else {
            assert_ne!(shell, "bash");
        }
    }
}

#[test]
fn the_manual_has_every_command_and_every_exit_code() {
    let repo = Repo::new();
    let page = repo.reviewer(&["man"]).run(0).stdout;
    assert!(
        page.starts_with(".ie") || page.starts_with(".TH"),
        "{}",
        &page[..80]
    );
    for name in SUBCOMMANDS {
        assert!(
            page.contains(&format!(
                "CLAUDE\\-REVIEWER {}",
                name.to_uppercase().replace('-', "\\-")
            )),
            "{name}"
        );
    }
    assert!(
        page.contains("CLAUDE\\-REVIEWER REVIEW STAGED"),
        "nested commands have sections too"
    );
    let codes: Vec<_> = page.lines().filter_map(|l| l.strip_prefix(".B ")).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "130", "143"]);
    assert!(
        !page.contains("hook\\-args"),
        "what hooks pass to themselves is nobody's business"
    );
}

#[test]
fn near_misses_name_the_command_to_run() {
    let repo = Repo::new();
    repo.commit("one");
    repo.git(&["branch", "-M", "main"]);
    repo.git(&["checkout", "-q", "-b", "feature"]);
    repo.write("src/a.txt", "a\n")
        .write("x.patch", "")
        .commit("two");
    for (args, hints) in [
        (
            &["review", "--staged"][..],
            &["claude-reviewer review staged"][..],
        ),
        (
            &["review", "--cached", "--format", "json"],
            &["claude-reviewer review staged --format json"],
        ),
        (
            &["review", "main..feature"],
            &[
                "claude-reviewer review commit main..feature",
                "claude-reviewer review branch feature --base main",
            ],
        ),
        (
            &["review", "main...feature"],
            &["claude-reviewer review branch feature --base main"],
        ),
        (
            &["review", "--base", "main"],
            &["claude-reviewer review branch --base main"],
        ),
        (
            &["review", "--base=main"],
            &["claude-reviewer review branch --base main"],
        ),
        (
            &["review", "--base", "main", "--head", "feature"],
            &["claude-reviewer review branch feature --base main"],
        ),
        (
            &["review", "main", "feature"],
            &["claude-reviewer review branch feature --base main"],
        ),
        (
            &["review", "src"],
            &["claude-reviewer review changes --files 'src/**'"],
        ),
        (
            &["-qC", "src", "review", "a.txt"],
            &["claude-reviewer -qC src review code a.txt"],
        ),
        (&["pr", "7"], &["claude-reviewer review pr 7"]),
        (&["rules", "check"], &["claude-reviewer rules test"]),
        (
            &["review", "staged", "--base", "main"],
            &[
                "this is an option of `claude-reviewer review branch`, `claude-reviewer review changes` and \
               `claude-reviewer verify-receipt`",
            ],
        ),
        (
            &["review", "pr", "7", "--untracked"],
            &[
                "this is an option of `claude-reviewer review unstaged` and `claude-reviewer review tree`",
            ],
        ),
        (
            &["review", "--files", "src", "main..feature"],
            &[
                "a range goes before --files: claude-reviewer review commit main..feature --files GLOB",
            ],
        ),
        (
            &["review", "src/a.txt"],
            &["claude-reviewer review code src/a.txt"],
        ),
        (&["review", "HEAD"], &["claude-reviewer review commit HEAD"]),
        (
            &["review", "x.patch"],
            &["claude-reviewer review patch x.patch"],
        ),
        (&["staged"], &["claude-reviewer review staged"]),
        (&["check"], &["claude-reviewer review"]),
        (
            &["-q", "check", "--offline"],
            &["claude-reviewer -q review --offline"],
        ),
        (
            &["explain", "merge-conflict"],
            &["claude-reviewer rules explain merge-conflict"],
        ),
    ] {
        let run = repo.reviewer(args).run(2);
        let found: Vec<_> = run
            .stderr
            .lines()
            .filter_map(|l| l.strip_prefix("hint: "))
            .collect();
        assert_eq!(found, hints, "{args:?}: {}", run.stderr);
        assert!(
            !run.stderr.contains("tip: ") && run.stdout.is_empty(),
            "{args:?}: {}",
            run.stderr
        );
        let first = run.stderr.lines().next().unwrap();
        assert!(first.starts_with("error: "), "{first}");
    }
    // For another subcommand, and for a flag without a value, no command is suggested.
    for args in [
        &["policy", "show", "--base", "main"][..],
        &["rules", "chekc"],
        &["review", "--commit"],
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(
            !run.stderr.contains("hint: claude-reviewer"),
            "{args:?}: {}",
            run.stderr
        );
    }
}
