//! Tests of the policy file itself: malformed values, special files, oversized files, fixtures.

use super::{FILE, policy, shown};
use crate::support::{Repo, Run, binary, reviewer};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, Instant};

/// Runs until one run is fast enough: on a busy machine, a slow run proves nothing.
#[track_caller]
fn within(limit: Duration, what: &str, run: impl Fn() -> Run) -> Run {
    for _ in 0..5 {
        let start = Instant::now();
        let run = run();
        if start.elapsed() < limit {
            return run;
        }
    }
    panic!("{what} takes more than {limit:?}")
}

#[test]
fn cfg_01_a_malformed_policy_is_a_usage_error_with_file_line_and_key() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    for (text, message, hint) in [
        (
            "block_on = [\"critical\"\n[review]",
            "malformed TOML in .claude-reviewer.toml:2",
            "",
        ),
        (
            "version = 1\nblock-on = []",
            "unknown key \"block-on\" in .claude-reviewer.toml:2",
            "did you mean \"block_on\"?",
        ),
        (
            "\n[review]\njobs = \"4\"",
            "\"review.jobs\" in .claude-reviewer.toml:3 must be a whole number from 1 to 64, not a string",
            "",
        ),
        (
            "[review]\n\nignore = []",
            "unknown key \"review.ignore\" in .claude-reviewer.toml:3",
            "move \"ignore\" to the top level",
        ),
        (
            "timeout = \"2m\"",
            "unknown key \"timeout\" in .claude-reviewer.toml:1",
            "move \"timeout\" to [review]",
        ),
        (
            "[[path]]\nglob = \"x\"\nblock = []",
            "unknown key \"path.block\" in .claude-reviewer.toml:3",
            "did you mean \"block_on\"?",
        ),
        (
            "[[path]]\nblock_on = []",
            "[[path]] in .claude-reviewer.toml:1 has no glob",
            "",
        ),
        (
            "[path]\nglob = \"x\"",
            "\"path\" in .claude-reviewer.toml:1 must be a list of tables: [[path]]",
            "",
        ),
        (
            "review = 3",
            "\"review\" in .claude-reviewer.toml:1 must be a table: [review]",
            "",
        ),
        (
            "version = 2\nnew_key = 1",
            "\"version\" in .claude-reviewer.toml:1 is 2; this program supports version 1",
            "update claude-reviewer",
        ),
        (
            "version = \"1\"",
            "\"version\" in .claude-reviewer.toml:1 must be 1",
            "version = 1",
        ),
        (
            "block_on = [\n  \"critical\",\n  \"majr\",\n]",
            "\"block_on\" in .claude-reviewer.toml:3 has the unknown severity \"majr\"",
            "did you mean \"major\"?",
        ),
        (
            "ignore = [\"[\"]",
            "\"ignore\" in .claude-reviewer.toml:1 has an invalid pattern",
            "",
        ),
        (
            "[backend.local]\nbase_url = \"http://127.0.0.1:1\"",
            "\"backend.local.kind\" in .claude-reviewer.toml:1 is missing",
            "kind = \"openai\"",
        ),
    ] {
        repo.write(FILE, text);
        for args in [&["review", "staged"][..], &["policy", "show"]] {
            let run = repo.reviewer(args).run(2);
            assert!(
                run.stderr.contains(&format!("error: {message}")),
                "{text}: {}",
                run.stderr
            );
            assert!(run.stderr.contains(hint), "{text}: {}", run.stderr);
            assert!(run.stdout.is_empty(), "{}", run.stdout);
        }
    }
    repo.write(FILE, b"block_on = [\"critical\"]\n# \xff\n");
    let run = repo.review(&["staged"], 2);
    assert!(
        run.stderr.contains(".claude-reviewer.toml:2 is not UTF-8"),
        "{}",
        run.stderr
    );
}

#[test]
fn cfg_01_check_tells_every_problem_at_once() {
    let repo = Repo::new();
    repo.write(
        FILE,
        "block-on = []\n[review]\njobs = 0\n[reveiw]\nx = 1\n[backend.x]\napi_key = \"v\"\n",
    );
    let run = policy(&repo, &["check"], 2);
    for text in [
        "\"block-on\" in .claude-reviewer.toml:1",
        "\"review.jobs\" in .claude-reviewer.toml:3",
        "unknown key \"reveiw\" in .claude-reviewer.toml:4",
        "did you mean \"review\"?",
        "remove the key from the policy file",
    ] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    let run = policy(&repo, &["show"], 2);
    assert!(
        run.stderr
            .contains("show the other 3 problems: claude-reviewer policy check"),
        "{}",
        run.stderr
    );
    // A single file anywhere.
    std::fs::write(repo.home().join("p.toml"), "on_incomplete = 'never'").unwrap();
    let run = policy(&repo, &["check", "../home/p.toml"], 2);
    assert!(
        run.stdout.contains(
            "\"on_incomplete\" in ../home/p.toml:1 must be \"fail\" or \"warn\", not \"never\""
        ),
        "{}",
        run.stdout
    );
}

#[test]
fn cfg_09_a_policy_that_is_no_plain_file_is_refused_at_once() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let path = repo.path().join(FILE);
    let outside = repo.home().join("p.toml");
    std::fs::write(&outside, "version = 1\n").unwrap();
    type Make<'a> = Box<dyn Fn() + 'a>;
    let set: [(&str, Make<'_>); 8] = [
        (
            "a link to /dev/zero",
            Box::new(|| symlink("/dev/zero", &path).unwrap()),
        ),
        (
            "a link to a file outside",
            Box::new(|| symlink(&outside, &path).unwrap()),
        ),
        (
            "a link to a file inside",
            Box::new(|| symlink("a.txt", &path).unwrap()),
        ),
        (
            "a link to nothing",
            Box::new(|| symlink("nowhere", &path).unwrap()),
        ),
        (
            "a FIFO",
            Box::new(|| {
                assert!(
                    std::process::Command::new("mkfifo")
                        .arg(&path)
                        .status()
                        .unwrap()
                        .success()
                );
            }),
        ),
        ("a folder", Box::new(|| std::fs::create_dir(&path).unwrap())),
        (
            "1 GB",
            Box::new(|| {
                std::fs::File::create(&path)
                    .unwrap()
                    .set_len(1 << 30)
                    .unwrap();
            }),
        ),
        (
            "an unreadable file",
            Box::new(|| {
                std::fs::write(&path, "version = 1\n").unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
            }),
        ),
    ];
    for (name, make) in set {
        make();
        if name == "an unreadable file" && std::fs::read(&path).is_ok() {
            continue; // The superuser can read anything.
        }
        for args in [
            &["review", "staged"][..],
            &["policy", "show"],
            &["review", "staged", "--config", FILE],
        ] {
            if name.starts_with("a link to a file") && args.contains(&"--config") {
                continue; // The operator's own choice.
            }
            let run = within(Duration::from_secs(1), name, || {
                repo.reviewer(args).run_any()
            });
            assert_eq!(run.code, 2, "{name} {args:?}: {}{}", run.stdout, run.stderr);
            assert!(run.stderr.contains(FILE), "{name}: {}", run.stderr);
        }
        if path.is_dir() {
            std::fs::remove_dir(&path).unwrap();
        } else {
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn cfg_09_a_link_in_the_base_is_no_absence_of_a_policy() {
    let repo = Repo::new();
    repo.write("strict.toml", "block_on = ['minor']\n");
    symlink("strict.toml", repo.path().join(FILE)).unwrap();
    repo.git(&["add", "."]);
    repo.commit("base");
    repo.stage("b.txt", "b\n");
    repo.commit("head");
    for args in [
        &["review", "branch", "--base", "HEAD~1", "--gate"][..],
        &["policy", "show", "--at", "HEAD"],
    ] {
        let run = repo.reviewer(args).run(2);
        assert!(run.stderr.contains("is a symbolic link"), "{}", run.stderr);
    }
}

#[test]
fn cfg_09_a_policy_that_is_a_bomb_is_refused_at_once() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let many = |n: usize, of: fn(usize) -> String| (0..n).map(of).collect::<String>();
    for (name, text) in [
        ("deep lists", format!("ignore = {}", "[".repeat(1_000_000))),
        ("deep tables", format!("x = {}", "{a=".repeat(300_000))),
        (
            "a long dotted key",
            format!("{}x = 1", "a.".repeat(500_000)),
        ),
        ("many headers", many(90_000, |i| format!("[t{i}]\n"))),
        (
            "many entries of a list",
            many(60_000, |_| "[[path]]\n".to_owned()),
        ),
        (
            "many nested headers",
            many(2_000, |i| format!("[{}t]\n", "a.".repeat(i % 70))),
        ),
        (
            "a long list",
            format!("ignore = [{}]", "\"a\",".repeat(200_000)),
        ),
        (
            "many backends",
            many(30_000, |i| format!("[backend.b{i}]\nkind = 'openai'\n")),
        ),
        (
            "many severities",
            format!(
                "[rules.severity]\n{}",
                many(60_000, |i| format!("r{i} = 'major'\n"))
            ),
        ),
        (
            "many path rules",
            many(20_000, |i| {
                format!("[[path]]\nglob = 'x{i}*y'\nblock_on = []\n")
            }),
        ),
        (
            "costly patterns",
            format!(
                "ignore = [{}]",
                many(999, |i| format!("\"{}{i}\",", "{a,b}*".repeat(80)))
            ),
        ),
        (
            "a deep pattern",
            format!("ignore = [\"{}\"]", "{".repeat(500)),
        ),
        ("NUL bytes", "\0".repeat(1_000_000)),
    ] {
        repo.write(FILE, text);
        // An optimized build takes about a tenth of this.
        let run = within(Duration::from_secs(3), name, || repo.review(&["staged"], 2));
        assert!(run.stderr.len() < 10_000, "{name}: {}", run.stderr.len());
    }
}

#[test]
fn cfg_10_a_poor_environment_works_or_is_a_usage_error() {
    let repo = Repo::new();
    repo.stage("a.txt", "a\n");
    let bare = |args: &[&str], env: &[(&str, &[u8])]| {
        let mut c = std::process::Command::new(binary());
        c.env_clear().current_dir(repo.path()).args(args);
        for (k, v) in env {
            c.env(k, std::ffi::OsStr::from_bytes(v));
        }
        let out = c.output().unwrap();
        (
            out.status.code(),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    let environments: [&[(&str, &[u8])]; 7] = [
        &[],
        &[("HOME", b"")],
        &[("HOME", b"relative")],
        &[("HOME", b"/nowhere"), ("XDG_CONFIG_HOME", b"relative")],
        &[("HOME", b"/\xff\xfe"), ("XDG_CONFIG_HOME", b"/\xff")],
        &[("HOME", b"/dev/null")],
        &[("UNRELATED", b"\xff\xfe")],
    ];
    for env in environments {
        for args in [
            &["review", "staged"][..],
            &["policy", "show", "--origin"],
            &["policy", "check"],
        ] {
            let (code, stderr) = bare(args, env);
            assert_eq!(code, Some(0), "{env:?} {args:?}: {stderr}");
        }
    }
    let (code, stderr) = bare(&["policy", "trust", "--list"], &[]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("set HOME or XDG_CONFIG_HOME"), "{stderr}");
    for (name, value) in [
        ("MAX_REVIEW_ROUNDS", &b"\xff"[..]),
        ("MAX_REVIEW_ROUNDS", b"lots"),
        ("CLAUDE_CLI_PATH", b"./claude"),
        ("AUTO_RUN_TESTS", b"perhaps"),
        ("CLAUDE_REVIEWER_WAIVE", b"nothing"),
        ("CLAUDE_REVIEWER_WAIVE", b"\xff"),
    ] {
        let (code, stderr) = bare(&["review", "staged"], &[(name, value)]);
        assert_eq!(code, Some(2), "{name}: {stderr}");
        assert!(
            stderr.contains("error: ") && (stderr.contains(name) || stderr.contains("waiver")),
            "{name}: {stderr}"
        );
    }
}

#[test]
fn every_valid_fixture_is_accepted_and_every_invalid_one_refused() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policy");
    let home = crate::support::temp_dir();
    for (folder, code) in [("valid", 0), ("invalid", 2)] {
        let mut count = 0;
        for entry in std::fs::read_dir(dir.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let run = reviewer(
                home.path(),
                home.path(),
                &["policy", "check", path.to_str().unwrap()],
            )
            .run(code);
            if code == 2 {
                // The first line of the file has the expected result.
                let text = std::fs::read_to_string(&path).unwrap();
                let expected = text.lines().next().unwrap().trim_start_matches("# ");
                assert!(
                    run.stdout.contains(expected),
                    "{}: {expected}\n{}",
                    path.display(),
                    run.stdout
                );
            }
            count += 1;
        }
        assert!(count >= 2, "{folder}");
    }
}

#[test]
fn foreign_text_of_a_policy_is_inert_on_the_terminal() {
    let repo = Repo::new();
    repo.write(
        FILE,
        "\"\\u001b[31m\" = 1\nignore = [\"\\u001b]0;x\\u0007\"]\n",
    );
    for args in [&["check"][..], &["show"]] {
        let run = policy(&repo, args, 2);
        assert!(
            !run.stdout.contains('\u{1b}') && !run.stderr.contains('\u{1b}'),
            "{}{}",
            run.stdout,
            run.stderr
        );
    }
    repo.write(
        FILE,
        "ignore = [\"\\u001b]0;x\\u0007\\u202e\\U000E0041\"]\n",
    );
    assert_eq!(
        shown(&repo, &[])["ignore"][0],
        "\u{1b}]0;x\u{7}\u{202e}\u{e0041}"
    );
    for args in [
        &["show"][..],
        &["show", "--format", "toml"],
        &["show", "--format", "json"],
        &["check"],
    ] {
        let run = policy(&repo, args, 0);
        assert!(
            !run.stdout.contains(['\u{1b}', '\u{202e}', '\u{7}']),
            "{}",
            run.stdout
        );
    }
}
