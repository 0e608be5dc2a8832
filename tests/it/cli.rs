//! Tests of the whole command line: help, errors, exit codes, generated documents.

use crate::support::{Repo, reviewer};
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

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

/// Compares a document with the generated one, or rewrites it with `UPDATE=1`.
#[track_caller]
fn document(path: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "{} is out of date: UPDATE=1 cargo test --test it docs_",
        path.display()
    );
}

/// Returns the subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    let lines = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| !l.is_empty());
    let names = lines.filter_map(|l| l.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|n| !n.is_empty() && *n != "help")
        .map(str::to_owned)
        .collect()
}

/// A part of a help text: its heading, or the usage before all headings, and its lines.
#[derive(Clone, Debug)]
struct Part {
    heading: String,
    lines: Vec<String>,
}

impl Part {
    /// Returns the names of the options, or the lines of a part without options.
    fn entries(&self) -> Vec<&str> {
        let options: Vec<_> = self
            .lines
            .iter()
            .map(|l| l.trim())
            .filter(|l| l.starts_with('-'))
            .collect();
        let names: Vec<_> = options
            .iter()
            .map(|l| l.split("  ").next().unwrap_or(l))
            .collect();
        if names.is_empty() {
            self.lines.iter().map(String::as_str).collect()
        } else {
            names
        }
    }
}

fn parts(help: &str) -> Vec<Part> {
    let mut parts = vec![Part {
        heading: String::new(),
        lines: Vec::new(),
    }];
    for line in help.lines().map(str::trim_end) {
        if line.ends_with(':') && !line.starts_with(' ') {
            parts.push(Part {
                heading: line.to_owned(),
                lines: Vec::new(),
            });
        } else {
            parts.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    parts
}

/// Removes the parts of a help text that the page of a parent command already has.
fn without_repeats(help: &[Part], shown: &[Part]) -> String {
    let is_new = |part: &&Part| {
        let earlier = shown
            .iter()
            .filter(|s| !part.heading.is_empty() && s.heading == part.heading);
        let known: Vec<&str> = earlier.flat_map(Part::entries).collect();
        !part.entries().iter().all(|e| known.contains(e))
    };
    let kept = help.iter().filter(is_new).map(|p| {
        [vec![p.heading.clone()], p.lines.clone()]
            .concat()
            .join("\n")
    });
    kept.collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[test]
fn docs_the_command_line() {
    let repo = Repo::new();
    let mut text = "# Command line\n\nThis page lists every command with its options, as `claude-reviewer COMMAND \
                    --help` prints them. The global options work with every command, and the options of `review` with \
                    every source of a review: the page lists them once.\n\nThe page is generated: \
                    `UPDATE=1 cargo test --test it docs_`.\n"
        .to_owned();
    let mut rest = vec![(Vec::<String>::new(), Vec::<Part>::new())];
    while let Some((command, shown)) = rest.pop() {
        let words: Vec<_> = command
            .iter()
            .map(String::as_str)
            .chain(["--help"])
            .collect();
        let help = repo.reviewer(&words).run(0).stdout;
        let title = std::iter::once("claude-reviewer").chain(command.iter().map(String::as_str));
        let title = title.collect::<Vec<_>>().join(" ");
        let own = parts(&help);
        text.push_str(&format!(
            "\n## {title}\n\n```text\n{}\n```\n",
            without_repeats(&own, &shown)
        ));
        let shown = [shown, own].concat();
        let children = listed(&help).into_iter().rev();
        rest.extend(children.map(|n| ([command.clone(), vec![n]].concat(), shown.clone())));
    }
    document("docs/cli.md", &text);
}

#[test]
fn help_groups_the_options_of_a_review_and_the_short_help_has_ten() {
    let repo = Repo::new();
    let headings = [
        "Source:",
        "AI:",
        "Policy:",
        "Output:",
        "History:",
        "Global options:",
    ];
    for (flag, has_pulls) in [("-h", false), ("--help", true)] {
        let help = parts(&repo.reviewer(&["review", flag]).run(0).stdout);
        let found: Vec<_> = help.iter().map(|p| p.heading.as_str()).collect();
        for heading in headings {
            assert!(found.contains(&heading), "{flag}: {found:?}");
        }
        assert_eq!(found.contains(&"Pull requests:"), has_pulls, "{found:?}");
        let own = help.iter().find(|p| p.heading == "Options:").unwrap();
        assert_eq!(
            own.entries(),
            ["-h, --help"],
            "{flag}: every option has a heading"
        );
    }
    let short = repo.reviewer(&["review", "-h"]).run(0).stdout;
    let of_review = parts(&short)
        .into_iter()
        .filter(|p| headings[..5].contains(&p.heading.as_str()));
    assert_eq!(
        of_review.map(|p| p.entries().len()).sum::<usize>(),
        10,
        "{short}"
    );
    assert!(short.contains("`--help` lists all options"), "{short}");
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
            &["this is an option of `claude-reviewer review unstaged`"],
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

#[test]
fn docs_the_schema_of_the_policy() {
    document(
        "schemas/policy.schema.json",
        &Repo::new().reviewer(&["policy", "schema"]).run(0).stdout,
    );
}

/// Escapes Markdown markup, except between backticks.
fn markdown(text: &str) -> String {
    let escape = |part: &str| {
        let part = part.replace('&', "&amp;").replace('<', "&lt;");
        ["*", "[", "]", "|"]
            .iter()
            .fold(part, |p, c| p.replace(c, &format!("\\{c}")))
    };
    let parts = text.trim().split('`').enumerate();
    // A bar ends a table cell, also between backticks.
    let parts = parts.map(|(i, part)| {
        if i % 2 == 0 {
            escape(part)
        } else {
            part.replace('|', "\\|")
        }
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Describes a rule under a heading with its ID, so that the heading's anchor is the ID.
fn rule_section(rule: &serde_json::Value) -> String {
    let text = |key: &str| rule[key].as_str().map(markdown).filter(|t| !t.is_empty());
    let list = |key: &str| {
        rule[key]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|v| v.as_str())
            .collect::<Vec<_>>()
    };
    let mut facts = vec![
        text("severity").unwrap(),
        format!("confidence {}", text("confidence").unwrap()),
    ];
    facts.push(text("category").unwrap());
    if let Some(cwe) = rule["cwe"].as_u64() {
        facts.push(format!(
            "[CWE-{cwe}](https://cwe.mitre.org/data/definitions/{cwe}.html)"
        ));
    }
    if !list("languages").is_empty() {
        facts.push(list("languages").join(", "));
    }
    let mut paragraphs = vec![format!("### {}", rule["id"].as_str().unwrap())];
    paragraphs.push(format!(
        "{}. *{}*",
        text("title").unwrap(),
        facts.join("; ")
    ));
    if rule["profile"] == "audit" {
        paragraphs.push("The rule runs only with `[rules] profile = \"audit\"`.".to_owned());
    }
    if let Some(severity) = text("audit_severity") {
        paragraphs.push(format!(
            "With `[rules] profile = \"audit\"`, the severity is {severity}."
        ));
    }
    if rule["judges_origin"] == true {
        paragraphs
            .push("A value of unknown origin gives a suggestion with low confidence.".to_owned());
    }
    paragraphs.extend(text("message").map(|m| format!("{}.", m.trim_end_matches('.'))));
    paragraphs.extend(text("why"));
    paragraphs.extend(text("suggestion").map(|s| format!("Fix: {s}")));
    let is_linked = |r: &&&str| r.starts_with("https://cwe.mitre.org/");
    let links: Vec<_> = list("references")
        .iter()
        .filter(|r| !is_linked(r))
        .map(|r| format!("<{r}>"))
        .collect();
    if !links.is_empty() {
        paragraphs.push(format!("See {}.", links.join(", ")));
    }
    paragraphs.join("\n\n")
}

#[test]
fn docs_the_rules() {
    let repo = Repo::new();
    let list = repo
        .reviewer(&["rules", "list", "--format", "json"])
        .run(0)
        .stdout;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let rules = list["rules"].as_array().unwrap();
    let mut sections: Vec<(String, Vec<&serde_json::Value>)> = Vec::new();
    for rule in rules {
        let languages: Vec<_> = rule["languages"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|l| l.as_str())
            .collect();
        let title = match languages.len() {
            _ if rule["secret"] == true => "Exposed secrets".to_owned(),
            0 => "Any file, and the change itself".to_owned(),
            1..=4 => languages.join(", "),
            _ => "Several languages".to_owned(),
        };
        match sections.iter_mut().find(|(t, _)| *t == title) {
            Some((_, found)) => found.push(rule),
            None => sections.push((title, vec![rule])),
        }
    }
    sections.sort_by(|a, b| a.0.cmp(&b.0));
    let mut text = format!(
        "# Rules\n\nThere are {} built-in rules. This page lists them by language. `claude-reviewer rules explain ID` \
         shows examples of bad and good code, and the exact scope of a rule.\n\nTo suppress a finding, write \
         `claude-reviewer: ignore[ID] reason` in a comment on the line or above it. A comment does not suppress an \
         exposed secret. To turn a rule off, add its ID to `[rules] disable` in the policy. See \
         [Suppressions and waivers](configuration.md#suppressions-and-waivers).\n\nRules whose ID ends with `-flow` \
         follow a value from its source to the dangerous call; their findings show the path. What they do not see is in \
         [Limitations](limitations.md#data-flow).\n\nThe rules are measured on labelled cases: \
         `claude-reviewer rules eval fixtures/rules` prints which expected lines are found and which safe lines are \
         flagged. [Development](development/README.md#measure-the-rules) describes the cases.\n\nThe page is generated: \
         `UPDATE=1 cargo test --test it docs_`.\n",
        rules.len()
    );
    let id = |r: &serde_json::Value| r["id"].as_str().unwrap().to_owned();
    for (title, mut found) in sections {
        found.sort_by_key(|r| id(r));
        text.push_str(&format!(
            "\n## {title}\n\n| rule | title | severity | CWE |\n|---|---|---|---|\n"
        ));
        for rule in &found {
            let title = markdown(rule["title"].as_str().unwrap());
            let cwe = rule["cwe"]
                .as_u64()
                .map(|n| n.to_string())
                .unwrap_or_default();
            let unknown = if rule["judges_origin"] == true {
                ", or suggestion"
            } else {
                ""
            };
            let severity = rule["severity"].as_str().unwrap();
            let audit = if rule["profile"] == "audit" {
                ", only with profile `audit`"
            } else {
                ""
            };
            let unknown = format!("{unknown}{audit}");
            text.push_str(&format!(
                "| [`{0}`](#{0}) | {title} | {severity}{unknown} | {cwe} |\n",
                id(rule)
            ));
        }
        for rule in found {
            text.push_str(&format!("\n{}\n", rule_section(rule)));
        }
    }
    document("docs/rules.md", &text);
}
